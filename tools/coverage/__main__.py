"""Try how often 95 % intervals contain what they are for, over ten kinds of scenario.

    python -m tools.coverage --write               in full: 1000 groups of each (five hours of a core)
    python -m tools.coverage --scenario md1        one scenario
    python -m tools.coverage --runs 5 --runs 30 --repetitions 600 --json FILE

Each scenario is run thousands of times. All runs together give the true values; disjoint groups of a few runs
give the intervals, from the tables of `perhop.run`, from the summaries of sweeps, and of paired differences.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from tools.coverage import measuring, page
from tools.coverage.settings import SETTINGS

from perhop import _engine
from perhop.runs import budget

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

DATA = Path(__file__).parents[2] / "docs" / "project" / "coverage.json"
RUNS = (budget.LADDER[0], budget.LADDER[-1])
"""Runs of a group: the fewest that `perhop run` makes by default, and as many as it makes of a short run."""


def _kinds(rows: Sequence[measuring.Covered]) -> Iterator[tuple[str, list[measuring.Covered]]]:
    """The rows by the place of the interval, number of runs and method, with what to call these."""
    for where in measuring.WHERE:
        for size in sorted({row.runs for row in rows}):
            for method in ("t", "perhop"):
                wanted = (where, size, method)
                some = [row for row in rows if (row.where, row.runs, row.method) == wanted and row.groups]
                yield f"{where}, {size} runs, {method}", some


def main() -> None:
    """Measure what is asked for, and print or write it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scenario", choices=[*SETTINGS], action="append", help="this one alone")
    parser.add_argument("--runs", type=int, action="append", metavar="N", help="runs of a group")
    parser.add_argument("--repetitions", type=int, default=1000, metavar="N", help="groups of each scenario")
    parser.add_argument("--most-runs", type=int, default=100_000, metavar="N", help="of a scenario, at most")
    parser.add_argument("--jobs", type=int, metavar="N", help="runs at once")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers there")
    parser.add_argument("--write", action="store_true", help="write docs/project/coverage.json")
    given = parser.parse_args()
    amount = measuring.Amount(given.runs or RUNS, given.repetitions, given.most_runs)
    rows: list[measuring.Covered] = []
    for name in given.scenario or SETTINGS:
        began = time.monotonic()
        found = measuring.measure(name, SETTINGS[name], amount, jobs=given.jobs)
        rows += found
        print(f"{name}: {len(found)} intervals, {time.monotonic() - began:.0f} s", flush=True)
        if given.json is not None:
            given.json.write_text(json.dumps([asdict(row) for row in rows], indent=1), encoding="utf-8")
        for kind, some in _kinds(found):
            if some:
                least = min(some, key=lambda row: row.covered / row.groups)
                mean = sum(row.covered / row.groups for row in some) / len(some)
                print(
                    f"  {kind}: {100 * mean:.1f} % on average; "
                    f"least {100 * least.covered / least.groups:.1f} %, {least.measure}"
                )
    if given.write:
        of = f"perhop {_engine.version}, {platform.system()} {platform.release().split('-')[0]}"
        DATA.write_text(page.content(rows, of), encoding="utf-8")


if __name__ == "__main__":
    main()
