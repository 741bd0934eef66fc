"""Try how often the intervals of `perhop rare` contain the truth, and how many events splitting saves.

    python -m tools.coverage.splitting --write             in full: 200 groups of each queue
    python -m tools.coverage.splitting --queue mm1 --groups 20

Packets come as a Poisson process at a link with room for some. The probability that one finds no room follows
from the Markov chain of the packets that each one leaves behind (M/G/1/K; Kleinrock 1975, "Queueing Systems",
volume 1, section 5.6; Takagi 1993, "Queueing Analysis", volume 2). Each group of runs has seeds of its own.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from tools.coverage.stopped import HEADERS, QUEUES, RATE_BPS, Points, moments, queue

import perhop
from perhop import _engine
from perhop.statistics.proportions import interval

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from perhop.splitting.result import Rare

DATA = Path(__file__).parents[2] / "docs" / "project" / "splitting.json"
RUNS = (5, 10)
"""Runs of a group: the fewest that are sensible, and the default."""
NODES = 24
"""Nodes of Gauss and Legendre's rule on each piece of a distribution."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """A queue with little room.

    Attributes:
        title: What it is, for readers.
        sizes: Of packets.
        load: Of the link.
        room: Packets that may wait.
    """

    title: str
    sizes: Points
    load: float
    room: int

    @property
    def rate(self) -> int:
        """Packets a second."""
        mean, _ = moments(self.sizes)
        return round(self.load / mean)

    @property
    def scenario(self) -> dict[str, Any]:
        """Twenty seconds of it."""
        made, _ = queue(self.sizes)
        made["links"]["link"]["queue"]["limit"] = f"{self.room}p"
        made["flows"][0]["arrivals"] = {"rate": f"{self.rate}/s"}
        return {**made, "duration": "22s", "warmup": "2s"}

    @property
    def loss(self) -> float:
        """The probability that a packet finds no room."""
        return loss(self.sizes, self.rate, self.room)


FIXED: Points = [[1000 - HEADERS - 0.5, 0.0], [1000 - HEADERS + 0.5, 1.0]]
"""Packets of a thousand bytes, give or take half a byte, as a distribution needs a width."""
BUFFERS = {
    "md1": Buffer("M/D/1 at load 0.5, room for 10", FIXED, 0.5, 10),
    "mm1": Buffer("M/M/1 at load 0.5, room for 19", QUEUES["mm1"], 0.5, 19),
    "mg1": Buffer("M/G/1 with three sizes at load 0.5, room for 18", QUEUES["mg1"], 0.5, 18),
    "mm1-far": Buffer("M/M/1 at load 0.5, room for 29", QUEUES["mm1"], 0.5, 29),
}


def loss(sizes: Points, rate: float, room: int) -> float:
    """The probability that a packet of a Poisson process finds this many waiting beside one that is sent."""
    coming = _arrivals(sizes, rate, room + 1)
    mean, _ = moments(sizes)
    # left[j]: how often a packet leaves j others behind, in proportion to an empty link.
    left = np.zeros(room + 1)
    left[0] = 1.0
    for j in range(room):
        others = math.fsum(left[i] * coming[j - i + 1] for i in range(1, j + 1))
        left[j + 1] = (left[j] - coming[j] * left[0] - others) / coming[0]
    return float(1 - 1 / (left[0] / left.sum() + rate * mean))


def _arrivals(sizes: Points, rate: float, most: int) -> list[float]:
    """The probability of 0, 1, … packets during the time of one."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    scale = 8 / RATE_BPS
    out = np.zeros(most)
    for (low, below), (high, above) in pairwise(sizes):
        middle, half = (low + high) / 2 + HEADERS, (high - low) / 2
        expected = rate * scale * (middle + half * nodes)
        for k in range(most):
            density = np.exp(-expected + k * np.log(expected) - math.lgamma(k + 1))
            out[k] += (above - below) * float((weights * density).sum()) / 2
    return [float(one) for one in out]


@dataclass(frozen=True, slots=True)
class Covered:
    """The intervals of groups of runs.

    Attributes:
        name: Of the queue.
        runs: Of a group.
        groups: Groups.
        below: Groups whose interval ends below the truth.
        above: Groups whose interval begins above it.
        mean: The mean of the groups' estimates over the truth.
        gain: The median of how many times as many events plain runs would need.
    """

    name: str
    runs: int
    groups: int
    below: int
    above: int
    mean: float
    gain: float


def measure(name: str, groups: int, jobs: int | None = None) -> Iterator[Covered]:
    """Try a queue with each number of runs.

    Args:
        name: One of `BUFFERS`.
        groups: Of each number of runs.
        jobs: Runs at once; all cores if not given.
    """
    buffer = BUFFERS[name]
    truth = buffer.loss
    for runs in RUNS:
        seeds = range(1, groups * runs + 1, runs)
        found: list[Rare] = [perhop.rare(buffer.scenario, runs=runs, seed=seed, jobs=jobs) for seed in seeds]
        estimates = [one.estimate for one in found]
        known = [one for one in estimates if one is not None]
        yield Covered(
            name,
            runs,
            len(known),
            sum(one.high < truth for one in known),
            sum(one.low > truth for one in known),
            math.fsum(one.mean for one in known) / len(known) / truth,
            float(np.median([one.gain or 0.0 for one in found])),
        )


def entry(row: Covered) -> dict[str, Any]:
    """The row as docs/project/splitting.json has it."""
    return {
        "queue": row.name,
        "runs": row.runs,
        "groups": [row.groups, row.below, row.above],
        "mean_of_truth": round(row.mean, 4),
        "gain": float(f"{row.gain:.2g}"),
    }


def content(rows: Sequence[Mapping[str, Any]], of: str) -> str:
    """The text of docs/project/splitting.json."""
    lines = ",\n".join(f"  {json.dumps(row)}" for row in rows)
    return f'{{"of": {json.dumps(of)}, "rows": [\n{lines}\n]}}\n'


def shown(found: Mapping[str, Any]) -> dict[str, Any]:
    """The section of the page on these numbers.

    Args:
        found: `of` and `rows`, as in the JSON file.
    """
    lines = []
    for row in found["rows"]:
        buffer, (groups, below, above) = BUFFERS[row["queue"]], row["groups"]
        share = (groups - below - above) / groups
        low, high = interval(share, groups)
        covered = f"{100 * share:.1f} ({100 * low:.1f}–{100 * high:.1f})"
        truth = f"{buffer.loss:.3g}"
        lines.append(
            [buffer.title, truth, row["runs"], groups, covered, row["mean_of_truth"], f"{row['gain']:,.0f}"]
        )
    return {"of": found["of"], "lines": lines}


def main() -> None:
    """Measure what is asked for, and print or write it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--queue", choices=[*BUFFERS], action="append", help="this one alone")
    parser.add_argument("--groups", type=int, default=200, metavar="N", help="of each number of runs")
    parser.add_argument("--jobs", type=int, metavar="N", help="runs at once")
    parser.add_argument("--write", action="store_true", help=f"write {DATA.name}, and keep its other queues")
    given = parser.parse_args()
    asked = given.queue or list(BUFFERS)
    kept = [row for row in json.loads(DATA.read_text(encoding="utf-8"))["rows"] if row["queue"] not in asked]
    for name in asked:
        began = time.monotonic()
        print(f"{name}: loss {BUFFERS[name].loss:.4g}", flush=True)
        for row in measure(name, given.groups, given.jobs):
            kept.append(entry(row))
            print(f"  {row}", flush=True)
        print(f"  {time.monotonic() - began:.0f} s", flush=True)
        if given.write:
            of = f"perhop {_engine.version}, {platform.system()}: {given.groups} groups of each"
            kept.sort(key=lambda row: list(BUFFERS).index(row["queue"]))
            DATA.write_text(content(kept, of), encoding="utf-8")


if __name__ == "__main__":
    main()
