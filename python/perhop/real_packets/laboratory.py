"""Runs scenarios on real packets, each run in a process of its own."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from perhop import _engine
from perhop.bounds import deriving
from perhop.bounds.deriving import Bounds
from perhop.errors import PerhopError, ScenarioError
from perhop.files import arguments
from perhop.measures.run import Run
from perhop.runs import extent, result
from perhop.runs.summary import Summary
from perhop.scenario import reading
from perhop.scenario.reading import ScenarioSource

WORKER = Path(__file__).with_name("worker.py")

Device: TypeAlias = Literal["auto", "tun", "packet"]
"""The devices that join hosts to the router."""


@dataclass(frozen=True)
class LiveReport:
    """A report of whether the machine kept up with one run.

    Attributes:
        seed: The run's seed.
        findings: What the engine reports: `valid`, `invalid` (why not, in sentences), `notes`, `kernel`,
            `senders` (for each group of flows), `real_time`, `cpu_s` and `wall_s` of the router's thread,
            `late_s` (how late packets left: `p50` to `max`, what is `allowed` of `p99`, and the longest
            `pause` of the router), `devices` (packets and bytes `read` and `sent`), packets `lost` in the
            router by reason, and `lost_outside` of it.
    """

    seed: int
    findings: Mapping[str, Any]

    @property
    def valid(self) -> bool:
        """Whether the machine kept up with the run, so that its result counts."""
        return bool(self.findings["valid"])

    @property
    def packets(self) -> int:
        """Packets that the router read."""
        return sum(int(device["read"]["packets"]) for device in self.findings["devices"])

    @property
    def cpu_per_packet_s(self) -> float:
        """CPU time of the router for each packet, with what the kernel did to hand it over."""
        return float(self.findings["cpu_s"]) / max(self.packets, 1)


@dataclass(frozen=True, repr=False, eq=False)
class LiveResult(result.Result):
    """The runs of one scenario on real packets: all that a simulation's result has, and reports."""

    COMMAND: ClassVar = "perhop live"
    RERUNS: ClassVar = False

    @cached_property
    def reports(self) -> tuple[LiveReport, ...]:
        """The reports on how well the machine kept up, one for each run."""
        return tuple(LiveReport(run.seed, json.loads(run.raw["live"])) for run in self.runs)

    @cached_property
    def bounds(self) -> Bounds:
        """No bounds: what a kernel does is no part of the scenario."""
        return deriving.none(self.scenario, "no bound holds of what a kernel does")

    @property
    def valid(self) -> bool:
        """Whether every run is valid."""
        return all(report.valid for report in self.reports)

    def text(self, width: int | None = None) -> str:
        """Return what `perhop live` prints, for text of that many columns; None for no limit."""
        from perhop.real_packets import machine  # noqa: PLC0415 - it reads results

        return machine.text(self, width)

    def json(self) -> str:
        """Return what `perhop live --json` writes."""
        from perhop.real_packets import machine  # noqa: PLC0415 - it reads results

        return machine.to_json(self)

    def _summary(self) -> Summary:
        from perhop.real_packets import machine  # noqa: PLC0415 - it reads results

        return machine.summarized(self)


def options(*, real_time: bool, device: Device = "auto") -> list[str]:
    """The options of a command that say how it makes runs on real packets, as words; no defaults."""
    return [*["--no-real-time"] * (not real_time), *(["--device", device] if device != "auto" else [])]


def seconds(canonical: str) -> float:
    """Return how long a run takes, in seconds; a canonical scenario in JSON."""
    return _engine.duration_ns(str(json.loads(canonical)["duration"])) / 1e9


def available() -> str | None:
    """Return what this system lacks for runs on real packets, or None, by trying the first steps of one."""
    try:
        ask({}, None)
    except _engine.LiveUnavailable as error:
        return str(error)
    return None


def run(
    scenario: ScenarioSource,
    *,
    runs: int = 1,
    seed: int = 1,
    real_time: bool = True,
    device: Device = "auto",
    watch_s: float | None = None,
    watch: Callable[[int, Mapping[str, Any]], None] | None = None,
) -> LiveResult:
    """Run a scenario on real packets, in real time, on the seeds `seed`, `seed + 1`, …, one after the other.

    Args:
        scenario: See `ScenarioSource`.
        runs: Number of runs.
        seed: First seed. It draws the flows' starts and the router's chance, as in a simulation; the kernel's
            TCP varies by itself.
        real_time: Give the router real-time priority where that is allowed.
        device: How the hosts are joined to the router: by "tun" devices, by "packet" sockets over Ethernet,
            or "auto": by TUN where it can be opened.
        watch_s: How often `watch` is called, in seconds.
        watch: Called with the seed and how it goes: `time_s`, `received_bytes` by group, `links` (packets
            `waiting`, `sent`, `dropped` by reason), `late_s`, packets `inside` the router.

    Raises:
        ScenarioError: The scenario is wrong, or asks for what no kernel has.
        PerhopError: The system cannot do it; the message says what is missing.
    """
    arguments.one_of("device", device, get_args(Device))
    checked = reading.read(scenario, real_packets=True)
    checked.warn()
    text = checked.text
    wanted = extent.seeds(seed, runs)
    manner = {"real_time": real_time, "device": device, "watch_s": watch_s if watch else None}

    def made(number: int) -> Run:
        watched = None if watch is None else partial(watch, number)
        return Run(number, ask({"scenario": text, "seed": number, **manner}, watched))

    try:
        return LiveResult(text, tuple(map(made, wanted)))
    except _engine.LiveUnavailable as error:
        raise PerhopError(f"no runs on real packets here: {error}") from None


def run_in_virtual_time(scenario: ScenarioSource, *, runs: int = 1, seed: int = 1) -> LiveResult:
    """Run perhop's own TCP and the data plane in virtual time, without the kernel.

    The segments and the data plane are those of a run on real packets, and nothing is late. It needs neither
    rights nor devices, and takes as long as a simulation.

    Args:
        scenario: See `ScenarioSource`. All flows have perhop's own TCP at both ends.
        runs: Number of runs.
        seed: First seed, as for a simulation.

    Raises:
        ScenarioError: The scenario is wrong, a flow has another sender or receiver, or it asks for what no
            run on real packets has.
        PerhopError: The system is not Linux.
    """
    text = reading.read(scenario, real_packets=True).text
    request = {"scenario": text, "virtual_time": True}
    try:
        made = (Run(number, ask({**request, "seed": number}, None)) for number in extent.seeds(seed, runs))
        return LiveResult(text, tuple(made))
    except _engine.LiveUnavailable as error:
        raise PerhopError(f"no runs of perhop's own TCP here: {error}") from None


def ask(request: Mapping[str, Any], watch: Callable[[Mapping[str, Any]], None] | None) -> Any:  # noqa: ANN401
    """Have a worker do something, and return what it gives.

    Raises:
        ScenarioError: As `run`.
        LiveUnavailable: The system lacks something.
        PerhopError: Something went wrong.
    """
    command = [sys.executable, "-I", str(WORKER), str(_engine.__file__)]
    # A session of its own: an interrupt from the terminal is ours to pass on.
    try:
        worker = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
    except OSError as error:
        raise PerhopError(f"{sys.executable}: cannot be started: {error.strerror or error}") from None
    assert worker.stdin is not None
    assert worker.stdout is not None
    try:
        worker.stdin.write(json.dumps(request).encode())
        worker.stdin.close()
        while True:
            kind, content = pickle.load(worker.stdout)  # noqa: S301 - our own process wrote it
            if kind == "glimpse" and watch is not None:
                watch(json.loads(content))
            elif kind == "done":
                return content
            elif kind == "ScenarioError":
                raise ScenarioError(content)
            elif kind == "LiveUnavailable":
                raise _engine.LiveUnavailable(content)
            elif kind != "glimpse":
                raise PerhopError(f"the run on real packets failed: {content}")
    except (EOFError, BrokenPipeError):
        status = worker.wait()
        raise PerhopError(f"the run on real packets ended unexpectedly (status {status})") from None
    finally:
        # Everything that it made in the system goes with it.
        worker.kill()
        worker.wait()
        worker.stdout.close()
