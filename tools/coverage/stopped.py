"""Try how often intervals contain the truth until whose width runs were added: `perhop run --until`.

    python -m tools.coverage.stopped --write             in full: 3000 runs of each scenario
    python -m tools.coverage.stopped --scenario mm1 --runs 1000

Every scenario is run many times. All runs together give the true values, and Pollaczek and Khinchine's
formula the mean queue of M/M/1 and M/G/1. Each measure is asked for to a width that some twenty runs have,
from disjoint groups of these runs, by the rule and by looks at intervals without a correction.
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

from tools.coverage.page import KINDS, kind_of
from tools.coverage.settings import SETTINGS
from tools.coverage.truth import Truth

from perhop import _engine
from perhop.runs import simulate
from perhop.runs.companions import Gathered, companions, is_companion
from perhop.scenario import reading
from perhop.statistics import stopping
from perhop.statistics.stopping import Until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tools.coverage.truth import Band

    from perhop.statistics.observations import Observations

DATA = Path(__file__).parents[2] / "docs" / "project" / "stopped.json"
NEEDED = 20
"""Runs of which an interval has the width that is asked for, if the spread were known."""
BATCH = 300
"""Runs that are simulated at once."""
RULES = ("rule", "uncorrected")


# ---------------------------------------------------------------- queues whose mean is known

RATE_BPS = 1e6
LOAD = 0.8
HEADERS = 28
"""Bytes of a UDP packet beside its payload."""
Points = list[list[float]]
"""A distribution function of payload: bytes and shares, linear between them."""


def exponential(mean: float) -> Points:
    """The payload of packets whose sizes, with headers, are exponentially distributed; none is below them."""
    shares = [*(place / 400 for place in range(12, 400)), 0.9999]
    points = [[-mean * math.log1p(-share) - HEADERS, share] for share in shares]
    return [[1.0, 0.0], *points, [points[-1][0] + 1, 1.0]]


QUEUES: dict[str, Points] = {
    "mm1": exponential(1000.0),
    "mg1": [[12, 0.0], [13, 0.58], [548, 0.581], [549, 0.91], [1471, 0.911], [1472, 1.0]],
}
"""Sizes of packets that come as a Poisson process: exponential, and of 40, 576 and 1500 bytes."""
QUEUE = "links.link.mean_queue_packets"
_TITLES = {
    "mm1": "M/M/1 at load 0.8, mean queue by Pollaczek and Khinchine",
    "mg1": "M/G/1 with three sizes at load 0.8, likewise",
}


def moments(points: Points) -> tuple[float, float]:
    """The mean of the service time of a packet, in seconds, and that of its square."""
    scale = 8 / RATE_BPS
    ends = [
        (scale * (low + HEADERS), scale * (high + HEADERS), above - below)
        for (low, below), (high, above) in pairwise(points)
    ]
    first = math.fsum(share * (a + b) / 2 for a, b, share in ends)
    return first, math.fsum(share * (a * a + a * b + b * b) / 3 for a, b, share in ends)


def queue(points: Points) -> tuple[dict[str, Any], float]:
    """A scenario with a Poisson process of such packets at a link, and the mean number that wait.

    By Pollaczek and Khinchine's formula, and Little's: rate² E[S²] / (2 (1 - load)).
    """
    mean, square = moments(points)
    rate = round(LOAD / mean)
    link = {"from": "a", "to": "b", "rate": f"{RATE_BPS:.0f}bps", "delay": "1ms"}
    packets = {
        "name": "packets",
        "from": "a",
        "to": "b",
        "transport": {"udp": "cbr", "rate": "10Gbps", "packet": "20000B"},
        "access": {"rate": "10Gbps", "delay": "0s"},
        "arrivals": {"rate": f"{rate}/s"},
        "sizes": {"points": points},
    }
    scenario = {
        "duration": "25s",
        "warmup": "5s",
        "links": {"link": {**link, "queue": {"aqm": "drop-tail", "limit": "100000p"}}},
        "flows": [packets],
    }
    return scenario, rate**2 * square / (2 * (1 - rate * mean))


# ---------------------------------------------------------------- the two rules


def by_rule(of: Callable[[int], Observations], width: float, most: int) -> Iterator[tuple[int, Band | None]]:
    """The number of runs after each look of the rule, and the interval; the last is that of the stop."""
    rule, runs = Until(width, (), stopping.LEAST, most), stopping.LEAST
    while True:
        look = stopping.look({"x": of(runs)}, runs)
        yield runs, None if look.estimate is None else look.estimate.ci95
        if rule.after(look) == runs:
            return
        runs = rule.after(look)


def uncorrected(
    of: Callable[[int], Observations], width: float, most: int
) -> Iterator[tuple[int, Band | None]]:
    """Likewise, of 95 % intervals that are not widened, after 5, 7, 10, 15, … runs."""
    runs = 5
    while True:
        one = of(runs)
        yield runs, None if one.estimate is None else one.estimate.ci95
        if _reach(one) <= width or runs >= most:
            return
        runs = min(most, runs + runs // 2)


def _reach(one: Observations) -> float:
    """The longer side of an interval over its value; infinite where it is not known."""
    found = one.estimate
    if found is None or found.ci95 is None or found.mean == 0 or not one.has_all:
        return math.inf
    return max(found.high - found.mean, found.mean - found.low) / abs(found.mean)


# ---------------------------------------------------------------- counting


@dataclass(frozen=True, slots=True)
class Stopped:
    """One measure of one scenario under one rule.

    Attributes:
        groups: Stops.
        below: Stops whose interval ends below the true value.
        above: Stops whose interval begins above it.
        runs: Of all groups together.
    """

    scenario: str
    measure: str
    rule: str
    groups: int
    below: int
    above: int
    runs: int

    @property
    def covered(self) -> int:
        """Stops whose interval contains the true value."""
        return self.groups - self.below - self.above


def measure(name: str, runs: int, jobs: int | None = None, seed: int = 1) -> list[Stopped]:
    """Try all measures of a scenario.

    Args:
        name: One of `SETTINGS` or of `QUEUES`.
        runs: Of the scenario in all.
        jobs: Runs at once; all cores if not given.
        seed: The first seed.
    """
    known: dict[str, Band] = {}
    pool: list[dict[str, float]] = []
    if name in QUEUES:
        scenario, mean = queue(QUEUES[name])
        known, text = {QUEUE: (mean, mean)}, reading.canonical(scenario)
    else:
        text = reading.canonical(SETTINGS[name].text)
    truth = Truth(text)
    for first in range(0, runs, BATCH):
        made = simulate.run(
            json.loads(text), runs=min(BATCH, runs - first), seed=seed + first, jobs=jobs
        ).runs
        if known:  # to measure all of many small flows takes long
            pool += [{QUEUE: float(run.link("link")["mean_queue_packets"])} for run in made]
            continue
        for values, run in zip(truth.add(made), made, strict=True):
            pool.append(values | dict(companions(run.raw, text)))
    if not known:
        # Of finite flows and of users, the true values take longer runs: `tools.coverage` tries those.
        others = ("populations.", "applications.")
        names = [one for one in pool[0] if not is_companion(one) and not one.startswith(others)]
        known = {one: band for one in names if (band := truth.of(one)) is not None}
    whole = _gathered(pool, range(len(pool)))
    return [
        one
        for measured, band in known.items()
        if math.isfinite(width := _reach(whole.of(measured)) * math.sqrt(len(pool) / NEEDED)) and width > 0
        for one in _of_measure(name, measured, band, pool, width)
    ]


def _gathered(pool: Sequence[Mapping[str, float]], places: range) -> Gathered:
    return Gathered({name: [pool[place][name] for place in places] for name in pool[0]})


def _of_measure(
    scenario: str, measured: str, truth: Band, pool: Sequence[Mapping[str, float]], width: float
) -> Iterator[Stopped]:
    """Both rules, each from one stop to the next."""
    from perhop.runs.companions import with_companions  # noqa: PLC0415

    names = with_companions([measured], pool[0])
    own = [{name: values[name] for name in names} for values in pool]
    for rule, looks in zip(RULES, (by_rule, uncorrected), strict=True):
        first, groups, below, above = 0, 0, 0, 0
        while first + 4 * NEEDED <= len(own):
            begin = first

            def of(runs: int, begin: int = begin) -> Observations:
                return _gathered(own, range(begin, begin + runs)).of(measured)

            for runs, ends in looks(of, width, 4 * NEEDED):
                stop, interval = runs, ends
            first += stop
            if interval is not None:
                groups += 1
                below += interval[1] < truth[0]
                above += interval[0] > truth[1]
        yield Stopped(scenario, measured, rule, groups, below, above, first)


# ---------------------------------------------------------------- the page


def content(rows: Sequence[Stopped], of: str) -> str:
    """The text of docs/project/stopped.json: groups, of these below and above the true value, and runs."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        entry = found.setdefault(
            (row.scenario, row.measure), {"scenario": row.scenario, "measure": row.measure}
        )
        entry[row.rule] = [row.groups, row.below, row.above, row.runs]
    lines = ",\n".join(f"  {json.dumps(entry)}" for entry in found.values())
    return f'{{"of": {json.dumps(of)}, "rows": [\n{lines}\n]}}\n'


def shown(found: Mapping[str, Any]) -> dict[str, Any]:
    """The section of the page on these numbers.

    Args:
        found: `of` and `rows`, as in the JSON file.
    """
    lines = []
    for name in (*QUEUES, *SETTINGS):
        for kind in KINDS:
            some = [
                row for row in found["rows"] if row["scenario"] == name and kind_of(row["measure"]) == kind
            ]
            if some:
                title = _TITLES.get(name) or SETTINGS[name].kind
                lines.append(
                    [title, kind, len(some), *(cell for rule in RULES for cell in _cells(some, rule))]
                )
    return {"of": found["of"], "needed": NEEDED, "lines": lines}


def _cells(rows: Sequence[Mapping[str, Any]], rule: str) -> tuple[str, str]:
    """The coverage of measures, as `95.2; 93.1`: the mean and the least; and the mean number of runs."""
    each = [1 - (row[rule][1] + row[rule][2]) / row[rule][0] for row in rows]
    runs = sum(row[rule][3] / row[rule][0] for row in rows) / len(rows)
    return f"{100 * sum(each) / len(each):.1f}; {100 * min(each):.1f}", f"{runs:.1f}"


def main() -> None:
    """Measure what is asked for, and print or write it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    every = [*QUEUES, *SETTINGS]
    parser.add_argument("--scenario", choices=every, action="append", help="this one alone")
    parser.add_argument("--runs", type=int, default=3000, metavar="N", help="runs of each scenario")
    parser.add_argument("--jobs", type=int, metavar="N", help="runs at once")
    parser.add_argument("--write", action="store_true", help="write docs/project/stopped.json")
    given = parser.parse_args()
    rows: list[Stopped] = []
    for name in given.scenario or every:
        began = time.monotonic()
        rows += (found := measure(name, given.runs, given.jobs))
        print(f"{name}: {len(found) // len(RULES)} measures, {time.monotonic() - began:.0f} s", flush=True)
        for rule in RULES:
            some = [row for row in found if row.rule == rule]
            covered = sum(row.covered / row.groups for row in some) / len(some)
            runs = sum(row.runs / row.groups for row in some) / len(some)
            print(f"  {rule}: {100 * covered:.1f} %, {runs:.1f} runs, on average", flush=True)
        if given.write:
            of = f"perhop {_engine.version}, {platform.system()}: {given.runs:,} runs of each scenario"
            DATA.write_text(content(rows, of), encoding="utf-8")


if __name__ == "__main__":
    main()
