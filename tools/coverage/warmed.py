"""Try how often intervals behind a found warm-up contain the values of long runs.

    python -m tools.coverage.warmed --write              in full: 100 groups of each scenario
    python -m tools.coverage.warmed --scenario first --groups 20

Short runs behind the warm-up that `perhop run` finds, and the same with their beginning, are held against
runs of twenty times the time, of which the first twentieth does not count. Scenarios of `tools.coverage` for
which no warm-up is looked for, as their traffic ends, are left out.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools.coverage.page import KINDS, kind_of
from tools.coverage.settings import SETTINGS
from tools.coverage.truth import Truth

from perhop import _engine
from perhop.runs import simulate, warming
from perhop.runs.companions import Gathered, companions
from perhop.scenario import reading
from perhop.scenario.warmup import duration_ns, with_warmup
from perhop.show.numbers import exact

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tools.coverage.truth import Band

DATA = Path(__file__).parents[2] / "docs" / "project" / "warmed.json"
RUNS = 30
"""Runs of a group: as many as `perhop run` makes of short ones."""
LONGER = 20
LONG_RUNS = 150
MEASURES = (
    "throughput_bps",
    "utilization",
    "loss",
    "mean_queue_packets",
    *(f"delay_{level}_s" for level in ("p50", "p95", "p99")),
)
"""Measures that runs of any length have in common: no counts, no longest waits."""
NEGLIGIBLE = 1e-3
"""A smaller part of the value is no miss: where a link is always full, intervals have no width."""
WAYS = ("found", "with the beginning")


@dataclass(frozen=True, slots=True)
class Warmed:
    """One measure of one scenario.

    Attributes:
        way: One of `WAYS`.
        groups: Groups with an interval.
        below: Groups whose interval ends below the true value.
        above: Groups whose interval begins above it.
        bias: How far the mean of the groups' values lies from the truth, as a part of it.
    """

    scenario: str
    measure: str
    way: str
    groups: int
    below: int
    above: int
    bias: float


def settings() -> Iterator[tuple[str, str]]:
    """The scenarios that have a steady state, as canonical JSON without a warm-up of their own."""
    for name, setting in SETTINGS.items():
        text = with_warmup(reading.canonical(setting.text), "auto")
        if warming.whole_run(json.loads(text)) is None:
            yield name, text


def measure(name: str, text: str, groups: int, jobs: int | None = None) -> tuple[float, list[Warmed]]:
    """The warm-up that is found, and all measures both ways.

    Args:
        name: Of the scenario.
        text: Canonical JSON, with `auto`.
        groups: How many.
        jobs: Runs at once; all cores if not given.
    """
    _, warm_up = warming.settled(text, jobs=jobs)
    assert warm_up is not None
    truth = _truth(text, jobs)
    out = []
    for way, warmup in zip(WAYS, ("auto", "0s"), strict=True):
        found: dict[str, list[tuple[float, Band]]] = {name: [] for name in truth}
        for group in range(groups):
            result = simulate.run(
                json.loads(text), runs=RUNS, seed=1 + group * RUNS, jobs=jobs, warmup=warmup
            )
            runs = [
                values | dict(companions(run.raw, result.scenario))
                for values, run in zip(Truth(result.scenario).add(result.runs), result.runs, strict=True)
            ]
            gathered = Gathered({name: [run[name] for run in runs] for name in runs[0]})
            for measured, of_groups in found.items():
                estimate = gathered.of(measured).estimate
                if estimate is not None and estimate.ci95 is not None:
                    of_groups.append((estimate.mean, estimate.ci95))
        out += [_judged(name, measured, way, found[measured], band) for measured, band in truth.items()]
    return warm_up.seconds, out


def _truth(text: str, jobs: int | None) -> dict[str, Band]:
    """The values of long runs, by measure."""
    scenario = json.loads(text)
    short_ns = duration_ns(scenario)
    long = {**scenario, "duration": f"{LONGER * short_ns}ns", "warmup": f"{short_ns}ns"}
    result = simulate.run(long, runs=LONG_RUNS, seed=10_000_000, jobs=jobs)
    truth = Truth(result.scenario)
    truth.add(result.runs)
    names = [name for name in truth.values[0] if name.rpartition(".")[2] in MEASURES and "." in name]
    return {name: band for name in names if (band := truth.of(name)) is not None and band[1] > 0}


def _judged(
    scenario: str, measured: str, way: str, found: Sequence[tuple[float, Band]], truth: Band
) -> Warmed:
    middle = (truth[0] + truth[1]) / 2
    slack = NEGLIGIBLE * middle
    mean = sum(value for value, _ in found) / max(1, len(found))
    return Warmed(
        scenario,
        measured,
        way,
        len(found),
        sum(ends[1] < truth[0] - slack for _, ends in found),
        sum(ends[0] > truth[1] + slack for _, ends in found),
        mean / middle - 1,
    )


def content(rows: Sequence[Warmed], warm_ups: Mapping[str, float], of: str) -> str:
    """The text of docs/project/warmed.json."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        entry = found.setdefault(
            (row.scenario, row.measure), {"scenario": row.scenario, "measure": row.measure}
        )
        entry[row.way] = [row.groups, row.below, row.above, round(row.bias, 5)]
    lines = ",\n".join(f"  {json.dumps(entry)}" for entry in found.values())
    head = f'"of": {json.dumps(of)}, "warm_ups": {json.dumps(dict(warm_ups))}'
    return f'{{{head}, "rows": [\n{lines}\n]}}\n'


def shown(found: Mapping[str, Any]) -> dict[str, Any]:
    """The section of the page on these numbers.

    Args:
        found: `of`, `warm_ups` in seconds and `rows`, as in the JSON file.
    """
    lines = []
    for name, seconds in found["warm_ups"].items():
        duration_s = duration_ns(json.loads(reading.canonical(SETTINGS[name].text))) / 1e9
        for kind in KINDS:
            some = [
                row for row in found["rows"] if row["scenario"] == name and kind_of(row["measure"]) == kind
            ]
            if some:
                cut = f"{exact(seconds)} of {exact(duration_s)} s"
                cells = (cell for way in WAYS for cell in _cells(some, way))
                lines.append([SETTINGS[name].kind, cut, kind, len(some), *cells])
    return {"of": found["of"], "lines": lines}


def _cells(rows: Sequence[Mapping[str, Any]], way: str) -> tuple[str, str]:
    """The coverage as `95.2; 93.1`, the mean and the least; and the largest bias in percent."""
    each = [1 - (row[way][1] + row[way][2]) / row[way][0] for row in rows if row[way][0]]
    bias = max((row[way][3] for row in rows), key=abs)
    return f"{100 * sum(each) / len(each):.1f}; {100 * min(each):.1f}", f"{100 * bias:+.2f}"


def main() -> None:
    """Measure what is asked for, and print or write it."""
    known = dict(settings())
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scenario", choices=[*known], action="append", help="this one alone")
    parser.add_argument("--groups", type=int, default=100, metavar="N", help=f"of {RUNS} runs each")
    parser.add_argument("--jobs", type=int, metavar="N", help="runs at once")
    parser.add_argument("--write", action="store_true", help="write docs/project/warmed.json")
    given = parser.parse_args()
    rows: list[Warmed] = []
    warm_ups: dict[str, float] = {}
    for name in given.scenario or known:
        began = time.monotonic()
        warm_ups[name], found = measure(name, known[name], given.groups, given.jobs)
        rows += found
        print(f"{name}: {warm_ups[name]:g} s, {time.monotonic() - began:.0f} s", flush=True)
        for row in found:
            print(f"  {row}", flush=True)
        if given.write:
            of = f"perhop {_engine.version}, {platform.system()}: {given.groups} groups of {RUNS} runs each"
            DATA.write_text(content(rows, warm_ups, of), encoding="utf-8")


if __name__ == "__main__":
    main()
