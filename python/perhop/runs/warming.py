"""`--warmup auto`: how long runs take to settle, found from runs of their own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perhop import _engine
from perhop.measures.run import Run
from perhop.runs import one_run
from perhop.runs.extent import workers
from perhop.runs.parallel import parallel_map
from perhop.scenario.warmup import duration_ns, with_warmup
from perhop.statistics.settling import settled_from

PILOTS = 5
"""Runs whose samples are averaged: a mean over runs settles when their distribution does."""
SAMPLES = 1000
"""Samples of each of these runs."""
_THROUGHPUT = "the throughput"
MOST_VALUES = 5_000_000
"""Samples of all flows of a run; a large network is sampled less often."""


@dataclass(frozen=True, slots=True)
class WarmUp:
    """The warm-up that was found.

    Attributes:
        seconds: How long it is: when the last of all series settles; half of the run if one does not; nothing
            if all traffic ends.
        last: The series that settles last: "the queue of `uplink`", "the throughput of `voice`".
        settles: Whether it does so in the first half of the run, and anything is sent after.
    """

    seconds: float
    last: str
    settles: bool

    def sentence(self) -> str:
        """The way in which it was found, as a part of a sentence."""
        if not self.settles and not self.seconds:
            return f"{self.last} ends before the run, which so has no steady state"
        if not self.settles:
            return f"half of the run, as by MSER-5 {self.last} has not settled by then"
        return f"found by MSER-5: {self.last} settles last"

    def json(self) -> dict[str, object]:
        """The values for JSON."""
        return {"seconds": self.seconds, "last_to_settle": self.last, "settles": self.settles}


def warmed(
    text: str, seeds: Sequence[int], *, jobs: int | None = None, cancel: _engine.Cancel | None = None
) -> tuple[str, WarmUp]:
    """Find the warm-up of a scenario, and return the scenario with it; see `find`."""
    found = find(text, seeds, jobs=jobs, cancel=cancel)
    return with_warmup(text, f"{round(found.seconds * 1e9)}ns"), found


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
    length_ns = duration_ns(scenario)
    flows = sum(int(entry.get("count", 1)) for entry in scenario.get("flows", []))
    samples = max(100, min(SAMPLES, MOST_VALUES // max(1, flows)))
    probes = {"interval": f"{max(1, length_ns // samples)}ns"}
    pilot = json.dumps({**scenario, "warmup": "0s", "probes": probes})
    flag = cancel if cancel is not None else _engine.Cancel()
    sampled = parallel_map(
        lambda seed: dict(_series(Run(seed, one_run.simulate(pilot, seed, flag)))),
        seeds,
        jobs=workers(jobs),
        cancel=flag,
    )
    means = {name: np.mean([one[name] for one in sampled], axis=0) for name in sampled[0]}
    return _latest(means, length_ns / 1e9)


def _latest(series: Mapping[str, NDArray[np.float64]], duration_s: float) -> WarmUp:
    """Find the series that settles last."""
    found, most = WarmUp(0.0, "nothing", settles=True), 0
    for name, samples in series.items():
        begins = settled_from(samples)
        if begins is None:
            return WarmUp(duration_s / 2, name, settles=False)
        if begins > most:
            found, most = WarmUp(duration_s * begins / len(samples), name, settles=True), begins
    rates = [samples for name, samples in series.items() if name.startswith(_THROUGHPUT)]
    if any(rate.any() for rate in rates) and not any(rate[most:].any() for rate in rates):
        return WarmUp(0.0, "the traffic", settles=False)
    return found


def _series(run: Run) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Yield all that has to settle: the packets that wait at each link, and the rate of each class."""
    series = run.raw["series"]
    for link, queue in series["links"].items():
        yield f"the queue of `{link}`", np.asarray(queue["queue_packets"], dtype=float)
    rates = np.asarray(series["throughput_bps"]).reshape(len(series["time_s"]), -1)
    groups = run.flows("group")
    for number, group in enumerate(run.groups):
        yield f"{_THROUGHPUT} of `{group.name}`", np.nansum(rates[:, groups == number], axis=1)
