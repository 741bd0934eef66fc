"""Scenarios in the simulator and on real packets, on the same seeds."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

from perhop.errors import PerhopError, ScenarioError
from perhop.files import arguments
from perhop.plurals import counted
from perhop.real_packets import LIVE_RUNS, SIMULATED_RUNS, equivalence, explain, laboratory, report
from perhop.real_packets.equivalence import Margin
from perhop.real_packets.laboratory import Device, LiveResult
from perhop.real_packets.report import Compared
from perhop.runs import extent, simulate, warming
from perhop.runs.result import Result
from perhop.scenario import reading
from perhop.scenario.reading import ScenarioSource
from perhop.show.written import command_line
from perhop.sweeps.interface import quietly
from perhop.sweeps.run import Progress


def compare(
    *scenarios: ScenarioSource,
    runs: int = LIVE_RUNS,
    sim_runs: int = SIMULATED_RUNS,
    seed: int = 1,
    jobs: int | None = None,
    margins: Sequence[str] = (),
    explained: bool = False,
    holm: bool = False,
    real_time: bool = True,
    device: Device = "auto",
) -> Compared:
    """Run scenarios in the simulator and on real packets, and say which numbers are equivalent.

    Args:
        scenarios: One, or two whose difference is compared, too; see `ScenarioSource`.
        runs: Runs of each scenario on real packets, each in real time.
        sim_runs: Simulated runs of each scenario.
        seed: First seed of both.
        jobs: Threads of the simulator; all cores if not given.
        margins: What counts as no difference, as `perhop compare --margin` takes it: `10%`, `delay=5ms`.
        explained: Measure the effect of each difference between the kernel's TCP and the simulated one.
        holm: Give tables a column of verdicts corrected for their number (Holm 1979).
        real_time: Give the router real-time priority where that is allowed.
        device: How hosts are joined to the router: `auto`, `tun` or `packet`.

    Returns:
        `comparisons`, one for each scenario, with a verdict on each number. `text()`, `json()`, `frame()` (a
        row for each number) and `write()` give what the command prints and writes.

    Raises:
        ScenarioError: A scenario is wrong, or asks for what no kernel has.
        PerhopError: The system cannot do it, or an argument is wrong; the message says what is missing.
    """
    wanted = equivalence.margins(margins)
    arguments.one_of("device", device, get_args(Device))
    check_counts(seed, runs, sim_runs)
    read = [reading.read(one, real_packets=True) for one in scenarios]
    names = names_of(scenarios)
    work = Comparing((seed, runs, sim_runs, extent.workers(jobs)), (real_time, device))
    compared = work.compare([one.text for one in read], names, wanted, explained=explained, holm=holm)
    if not all(isinstance(one, str | Path) and Path(one).suffix == ".toml" for one in scenarios):
        return compared
    words = [*map(str, scenarios), *options(margins, explained=explained, holm=holm)]
    words += laboratory.options(real_time=real_time, device=device)
    given = {"--runs": runs, "--sim-runs": sim_runs, "--seed": None if seed == 1 else seed}
    return replace(compared, command=command_line("compare", *words, **given))


def check_counts(seed: int, runs: int, sim_runs: int) -> None:
    """Refuse numbers of runs, and a first seed, that cannot be.

    Raises:
        PerhopError: One of them cannot.
    """
    extent.seeds(seed, runs)
    extent.seeds(seed, sim_runs, "sim_runs")


def options(margins: Sequence[str], *, explained: bool, holm: bool) -> list[str]:
    """The options of `perhop compare` that are no numbers, as words of a command."""
    words = [part for text in margins for part in ("--margin", text)]
    return [*words, *["--explain"] * explained, *["--holm"] * holm]


def names_of(scenarios: Sequence[ScenarioSource]) -> list[str]:
    """Return what to call scenarios: their files' names, with more of the path where these are the same."""
    paths = [Path(one) if isinstance(one, str | Path) else None for one in scenarios]
    names = [f"scenario {number}" if path is None else path.stem for number, path in enumerate(paths, 1)]
    return [str(path) for path in paths] if len(set(names)) < len(names) else names


class Comparing:
    """Makes the runs of one comparison, all on the same seeds."""

    def __init__(
        self,
        counts: tuple[int, int, int, int],
        manner: tuple[bool, Device],
        *,
        places: Mapping[str, Path] | None = None,
        say: Callable[[str], None] = lambda _: None,
        progress: Progress = quietly,
    ) -> None:
        """Prepare a comparison, without a run.

        Args:
            counts: First seed, runs on real packets, simulated runs, and threads of the simulator.
            manner: Whether the router gets real-time priority, and how hosts are joined to it.
            places: The files of scenarios, by their text, for messages.
            say: Receives a sentence about what it will take, once the first run is accepted.
            progress: See `perhop.sweeps.run.Progress`; it counts seconds.
        """
        self.seed, self.runs, self.sim_runs, self.jobs = counts
        self.manner = manner
        # perhop's own TCP needs TUN devices.
        self.can_exchange = manner[1] != "packet" and os.access("/dev/net/tun", os.R_OK | os.W_OK)
        self.places = places or {}
        self.say, self.progress = say, progress
        self.step: Callable[[], None] = lambda: None
        self.announcement: str | None = None

    def compare(
        self,
        texts: Sequence[str],
        names: Sequence[str],
        margins: Mapping[str, Margin],
        *,
        explained: bool,
        holm: bool,
    ) -> Compared:
        """Run everything and compare.

        Args:
            texts: One scenario as canonical JSON, or two.
            names: What to call each.
            margins: By name; see `perhop.real_packets.equivalence.margins`.
            explained: Measure the effect of each difference between the kernel's TCP and the simulated one.
            holm: Tables have a column of verdicts corrected for their number.

        Raises:
            PerhopError: There are more than two scenarios, or the system cannot do it.
        """
        if not 1 <= len(texts) <= 2:
            raise PerhopError(f"compare takes one or two scenarios, not {len(texts)}")
        files = [self.places.get(text) for text in texts]
        texts = [warming.settled(text, jobs=self.jobs)[0] for text in texts]
        self.places = {text: file for text, file in zip(texts, files, strict=True) if file is not None}
        live_runs = [self.runs * (self._ways(text) if explained else 1) for text in texts]
        lengths = [laboratory.seconds(text) for text in texts]
        self.announcement = self._announced(sum(live_runs), lengths, live_runs)
        total = sum(int(length) * runs for length, runs in zip(lengths, live_runs, strict=True))
        with self.progress("seconds", total) as self.step:
            live = self._in_turn(texts)
            simulated = [self._simulate(text) for text in texts]
            comparisons = [
                equivalence.Comparison(*pair, margins) for pair in zip(simulated, live, strict=True)
            ]
            changes: list[list[explain.Change]] = []
            if explained:
                of = (self._simulate, self._virtual, self._live)
                can = self.can_exchange
                changes = [list(explain.explain(one, *of, exchanged=can)) for one in comparisons]
        return report.Compared(comparisons, names, changes, holm)

    def _announced(self, runs: int, lengths: Sequence[float], live_runs: Sequence[int]) -> str:
        """Return a line on the runs and the time that they will take."""
        seconds = sum(length * count for length, count in zip(lengths, live_runs, strict=True))
        simulated = f"{counted(self.sim_runs, 'simulated run')} of each"
        return f"{counted(runs, 'run')} on real packets, {seconds:.0f} s in all; {simulated}"

    def _in_turn(self, texts: Sequence[str]) -> list[LiveResult]:
        """Every scenario on one seed, then on the next: what else the machine does meets all of them."""
        made = [[self._live_run(text, self.seed + number) for text in texts] for number in range(self.runs)]
        return [
            laboratory.LiveResult(of[0].scenario, tuple(run for one in of for run in one.runs))
            for of in zip(*made, strict=True)
        ]

    def _live(self, text: str) -> LiveResult:
        return self._in_turn([text])[0]

    def _live_run(self, text: str, seed: int) -> LiveResult:
        real_time, device = self.manner
        try:
            return laboratory.run(
                json.loads(text),
                seed=seed,
                real_time=real_time,
                device=device,
                watch_s=1.0,
                watch=self._watch,
            )
        except ScenarioError as error:
            # The engine names the key; which file it is in is known here.
            raise PerhopError(f"{self.places.get(text, 'scenario')}: {error}") from None

    def _watch(self, _seed: int, _glimpse: object) -> None:
        """Count a second. The first call means that the run was accepted: announce it."""
        if self.announcement is not None:
            self.say(self.announcement)
            self.announcement = None
        self.step()

    def _virtual(self, text: str) -> LiveResult:
        return laboratory.run_in_virtual_time(json.loads(text), runs=self.sim_runs, seed=self.seed)

    def _simulate(self, text: str) -> Result:
        return simulate.run(json.loads(text), runs=self.sim_runs, seed=self.seed, jobs=self.jobs)

    def _ways(self, text: str) -> int:
        """Return in how many ways a scenario runs on real packets where differences are explained."""
        steps = explain.exchanges(text)[:-1] if self.can_exchange else []
        exchanged = sum(step.where == "exchanged" for step, _ in steps)
        return 1 + exchanged + sum(one.where == "live" for one, _ in explain.variations(text))
