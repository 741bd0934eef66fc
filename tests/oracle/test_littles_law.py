"""Little's law, L = lambda W, for every link and every class of packets in every example.

L is the mean of the probe's samples of the packets that wait, lambda W the sum of the waiting times over the
time: what the probe sees and what each packet waited are counted apart from one another.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.oracle.agreement import compared, simulate

from perhop import _engine
from perhop.scenario.warmup import from_the_beginning

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

EXAMPLES = Path(__file__).parents[2] / "examples"
SCENARIOS = sorted(
    path for path in EXAMPLES.glob("*.toml") if "links" in tomllib.loads(path.read_text(encoding="utf-8"))
)
SEEDS = range(1, 5)
MARGIN = 0.02
LEAST_PACKETS = 0.1
"""Below this mean, the samples of a queue that is nearly always empty say too little."""
LONGER = {"witness-htb": "60s"}
"""Examples that last longer here: the waits of a class, 0.3 s, are 3 % of the nine seconds measured."""
DROPPED_AFTER_WAITING = ("target", "controller", "overload", "late")
"""Reasons for which packets that waited are dropped. The waits of a class are those of packets sent."""


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_every_class_obeys_littles_law(path: Path) -> None:
    text, _ = _engine.read_toml(path.read_text(encoding="utf-8"), path.name, folder=path.parent)
    # These intervals have no common period with anything that sends regularly. A probe samples flows, too:
    # fewer times where there are hundreds.
    interval = "1997us" if _engine.memory(text)["flows"] < 500 else "49957us"
    scenario = {**json.loads(from_the_beginning(text)), "probes": {"interval": interval}}
    scenario["duration"] = LONGER.get(path.stem, scenario["duration"])
    runs = simulate(scenario, SEEDS)
    found: dict[str, list[Queue]] = {}
    for run in runs:
        for queue in queues(run):
            found.setdefault(queue.name, []).append(queue)
    full = [of_one for of_one in found.values() if all(queue.sampled >= LEAST_PACKETS for queue in of_one)]
    assert full, "no queue of this example ever fills"
    wrong = [of_one[0].name for of_one in full if not obeys(of_one)]
    assert not wrong


def test_a_queue_that_breaks_the_law_is_noticed() -> None:
    def of(missing: float) -> list[Queue]:
        return [Queue("x", 10.0, 10.0 * (1 - missing) + 0.01 * run, 0.0) for run in SEEDS]

    assert obeys(of(0.015))
    assert not obeys(of(0.04))


@dataclass(frozen=True, slots=True)
class Queue:
    """A link or a class of packets of one run.

    Attributes:
        name: The link's, or the link's and the class's.
        sampled: L, by the probe.
        waited: lambda W.
        uncounted: The most that packets may have waited that are not part of `waited`, as a part of all.
    """

    name: str
    sampled: float
    waited: float
    uncounted: float


def obeys(runs: Sequence[Queue]) -> bool:
    """Whether lambda W is L, within 2 % beyond the interval over the runs."""
    ratios = [queue.waited / queue.sampled for queue in runs]
    margin = MARGIN + max(queue.uncounted for queue in runs)
    return compared("theory", "", "", ours=ratios, theirs=[1.0], margin=margin).state != "differs"


def queues(run: dict[str, Any]) -> Iterator[Queue]:
    """Each link and each class of a run."""
    span = run["duration_s"] - run["warmup_s"]
    after = run["series"]["time_s"] > run["warmup_s"]
    for link in run["links"]:
        series = run["series"]["links"][link["name"]]
        sampled = float(series["queue_packets"][after].mean())
        yield Queue(link["name"], sampled, link["mean_queue_packets"], 0.0)
        for one in link["classes"]:
            sampled = float(series["classes"][one["name"]]["packets"][after].mean())
            delays = one["delay_s"]
            middles = (delays["edges"][1:] + delays["edges"][:-1]) / 2
            waited = float(np.dot(delays["counts"].sum(axis=1), middles)) / span
            through = one["measured"]
            dropped = sum(
                int(counts.sum())
                for reason, counts in through["dropped"].items()
                if reason in DROPPED_AFTER_WAITING
            )
            uncounted = dropped / max(1, int(through["arrived"].sum()))
            yield Queue(f"{link['name']}/{one['name']}", sampled, waited, uncounted)
