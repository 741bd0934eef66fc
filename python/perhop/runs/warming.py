"""`--warmup auto`: how long runs take to settle, found from runs of their own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perhop import _engine
from perhop.errors import ArgumentError
from perhop.measures.run import Run
from perhop.runs import one_run
from perhop.runs.extent import workers
from perhop.runs.parallel import parallel_map
from perhop.statistics.settling import settled_from

AUTO = "auto"
PILOTS = 5
"""Runs whose samples are averaged: a mean over runs settles when their distribution does."""
SAMPLES = 1000
"""Samples of each of these runs."""
MOST_VALUES = 5_000_000
"""Samples of all flows of a run; a large network is sampled less often."""


@dataclass(frozen=True, slots=True)
class WarmUp:
    """The warm-up that was found.

    Attributes:
        seconds: How long it is: when the last of all series settles, or half of the run.
        last: What settles last: "the queue of `uplink`", "the throughput of `voice`".
        settles: Whether it does so in the first half of the run.
    """

    seconds: float
    last: str
    settles: bool

    def sentence(self) -> str:
        """The way in which it was found, as a part of a sentence."""
        if not self.settles:
            return f"half of the run, as by MSER-5 {self.last} has not settled by then"
        return f"found by MSER-5: {self.last} settles last"

    def json(self) -> dict[str, object]:
        """The values for JSON."""
        return {"seconds": self.seconds, "last_to_settle": self.last, "settles": self.settles}


def with_warmup(text: str, warmup: str) -> str:
    """A scenario with another warm-up.

    Args:
        text: Canonical JSON.
        warmup: A duration, such as `10s`.

    Raises:
        ArgumentError: It is no duration, or not below the duration of the run.
    """
    scenario: dict[str, Any] = json.loads(text)
    try:
        nanoseconds, _ = _engine.quantity("duration", warmup)
    except ValueError as error:
        raise ArgumentError("warmup", f"{error}; or write {AUTO}") from None
    if nanoseconds >= _duration_ns(scenario):
        raise ArgumentError("warmup", f"must be below the duration of {scenario['duration']}, not {warmup}")
    return json.dumps({**scenario, "warmup": f"{nanoseconds}ns"})


def find(
    text: str, seeds: Sequence[int], *, jobs: int | None = None, cancel: _engine.Cancel | None = None
) -> WarmUp:
    """Find the warm-up of a scenario: when the last of its queues and of the rates of its classes settles.

    Args:
        text: Canonical JSON; its own `warmup` counts for nothing.
        seeds: Of the runs whose samples are averaged.
        jobs: Runs at once; as many as there are cores if not given.
        cancel: Set it from another thread to stop.

    Raises:
        ScenarioError: The scenario cannot be run.
        perhop._engine.Cancelled: `cancel` was set.
    """
    scenario: dict[str, Any] = json.loads(text)
    duration_ns = _duration_ns(scenario)
    flows = sum(int(entry.get("count", 1)) for entry in scenario.get("flows", []))
    samples = max(100, min(SAMPLES, MOST_VALUES // max(1, flows)))
    probes = {"interval": f"{max(1, duration_ns // samples)}ns"}
    pilot = json.dumps({**scenario, "warmup": "0s", "probes": probes})
    flag = cancel if cancel is not None else _engine.Cancel()
    raw = parallel_map(
        lambda seed: one_run.simulate(pilot, seed, flag), seeds, jobs=workers(jobs), cancel=flag
    )
    runs = [Run(seed, outcome) for seed, outcome in zip(seeds, raw, strict=True)]
    return _latest(runs, duration_ns / 1e9)


def _duration_ns(scenario: Mapping[str, Any]) -> int:
    nanoseconds, _ = _engine.quantity("duration", scenario["duration"])
    return int(nanoseconds)


def _latest(runs: Sequence[Run], duration_s: float) -> WarmUp:
    """The series that settles last, of the means over the runs."""
    times = runs[0].raw["series"]["time_s"]
    found = WarmUp(0.0, "nothing", settles=True)
    for (name, first), *others in zip(*(list(_series(run)) for run in runs), strict=True):
        mean = np.mean([first, *(samples for _, samples in others)], axis=0)
        begins = settled_from(mean)
        if begins is None:
            return WarmUp(duration_s / 2, name, settles=False)
        if begins and (seconds := float(times[begins])) > found.seconds:
            found = WarmUp(seconds, name, settles=True)
    return found


def _series(run: Run) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Yield all that has to settle: the packets that wait at each link, and the rate of each class."""
    series = run.raw["series"]
    for link, queue in series["links"].items():
        yield f"the queue of `{link}`", np.asarray(queue["queue_packets"], dtype=float)
    rates = np.asarray(series["throughput_bps"]).reshape(len(series["time_s"]), -1)
    groups = run.flows("group")
    for number, group in enumerate(run.groups):
        yield f"the throughput of `{group.name}`", np.nansum(rates[:, groups == number], axis=1)
