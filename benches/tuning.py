"""What batches of trials cost a search: how good it is after as many trials with small and large batches.

A search that proposes its trials in batches learns later what the trials of a batch gave. So after as many
trials it may have found less than one that learns of each trial before the next. The searches are those of
`examples/tune-thresholds.toml`: the example itself, two objectives, by the hypervolume of the trials so far
within the constraints; and one of its objectives alone, with the other as a constraint, by the best value so
far. Each is done with several seeds, which are the sampler's and the runs'; searches with the same seed are
compared with each other. The last table has the time of a search by the number of its jobs.

    python -m benches.tuning [--repeat 8] [--batches 1 4 8 16] [--markdown] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benches import engine, measuring

from perhop.runs.parallel import available_cores
from perhop.statistics.intervals import estimate
from perhop.sweeps.job import Workplace
from perhop.sweeps.tune import tune
from perhop.sweeps.tuning import Constraint, Objective, read_tuning

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from perhop.sweeps.tune import Trial, Tuned
    from perhop.sweeps.tuning import TuningPlan

EXAMPLE = Path(__file__).parent.parent / "examples" / "tune-thresholds.toml"
USE, DELAY = "links.uplink.utilization", "links.uplink.delay_p95_s"
LEAST_USE = 0.97
REFERENCE = (0.9, 0.15)
"""Utilization and delay, s, from which the hypervolume counts: every useful setting is better than both."""
AFTER = (20, 40, 60)


def plans() -> dict[str, tuple[TuningPlan, Callable[[Sequence[Trial]], float]]]:
    """The searches, and what is measured of their first trials; more is better."""
    both = replace(read_tuning(EXAMPLE, trials=max(AFTER), runs=None, seed=None), validation_runs=1)
    one = replace(
        both,
        objectives=(Objective(DELAY, maximize=False),),
        constraints=(
            *both.constraints,
            Constraint(USE, at_least=True, bound=LEAST_USE, text=f"{USE} >= {LEAST_USE:.0%}"),
        ),
    )
    return {
        "two objectives: hypervolume": (both, hypervolume),
        "one objective: least delay, ms": (one, least),
    }


def _mean(trial: Trial, metric: str) -> float:
    found = trial.found[metric]
    return math.nan if found is None else found.mean


def hypervolume(trials: Sequence[Trial]) -> float:
    """The part of the rectangle from `REFERENCE` to a full link without delay that the trials dominate."""
    points = sorted((_mean(trial, DELAY), _mean(trial, USE)) for trial in trials if trial.feasible)
    area, top = 0.0, REFERENCE[0]
    for delay, use in points:
        if delay < REFERENCE[1] and use > top:
            area += (REFERENCE[1] - delay) * (use - top)
            top = use
    return area / (REFERENCE[1] * (1 - REFERENCE[0]))


def least(trials: Sequence[Trial]) -> float:
    """The least delay of trials within the constraints, ms; infinity where there is none."""
    return 1e3 * min((_mean(trial, DELAY) for trial in trials if trial.feasible), default=math.inf)


def search(plan: TuningPlan, store: Path, jobs: int) -> Tuned:
    """One search."""
    place = Workplace(store, "local", jobs, None)
    return tune(plan, place, say=print, progress=lambda _what, _total: nullcontext(lambda: None))


def compare(batches: Sequence[int], repeat: int, folder: Path) -> list[dict[str, Any]]:
    """For each search, batch and number of trials: the values by seed, and those of a batch of one."""
    figures = []
    for name, (plan, quality) in plans().items():
        found = {
            batch: [
                [
                    quality(done[:trials])
                    for done in [search(replace(plan, seed=1000 * seed, batch=batch), folder, 2).trials]
                    for trials in AFTER
                ]
                for seed in range(1, repeat + 1)
            ]
            for batch in batches
        }
        for batch, values in found.items():
            for place, trials in enumerate(AFTER):
                mine, first = ([one[place] for one in lists] for lists in (values, found[batches[0]]))
                figures.append(
                    {"search": name, "batch": batch, "trials": trials, "values": mine, "with_first": first}
                )
    return figures


def tables(figures: Sequence[dict[str, Any]], batches: Sequence[int], *, markdown: bool) -> str:
    """For each search a line for each batch: means, and in parentheses the difference to the first batch."""
    parts = []
    for name in dict.fromkeys(one["search"] for one in figures):
        rows = []
        for batch in batches:
            mine = [one for one in figures if (one["search"], one["batch"]) == (name, batch)]
            rows.append([f"{batch}", *(_cell(one) for one in mine)])
        header = [f"{name}; batch", *(f"after {trials} trials" for trials in AFTER)]
        parts.append(measuring.table(header, rows, markdown=markdown))
    return "\n\n".join(parts)


def _cell(one: dict[str, Any]) -> str:
    if not all(map(math.isfinite, [*one["values"], *one["with_first"]])):
        return "a search found nothing within the constraints"
    mean = f"{estimate(one['values']).mean:.4g}"
    if one["values"] is one["with_first"] or one["values"] == one["with_first"]:
        return mean
    change = estimate([mine - first for mine, first in zip(one["values"], one["with_first"], strict=True)])
    half = f" ± {change.half_width:.2g}" if change.half_width is not None else ""
    return f"{mean} ({change.mean:+.2g}{half})"


TIMED = ((1, 1), (1, 8), (4, 1), (4, 8))
"""Runs of a trial, and batch."""


def timed(repeat: int, folder: Path) -> list[dict[str, Any]]:
    """Wall time of 24 random trials of 600 s each, by jobs; the least of the repetitions."""
    plan, _ = plans()["one objective: least delay, ms"]
    long = replace(
        plan, base=replace(plan.base, settings={**plan.base.settings, "duration": "600s"}), trials=24
    )
    figures = []
    for runs, batch in TIMED:
        seconds: dict[int, list[float]] = {jobs: [] for jobs in (1, 2, 4) if jobs <= available_cores()}
        for turn in range(repeat):
            for jobs, times in seconds.items():
                store = folder / f"timed-{runs}-{batch}-{turn}-{jobs}"
                began = time.perf_counter()
                search(replace(long, runs=runs, batch=batch), store, jobs)
                times.append(time.perf_counter() - began)
        least_s = {jobs: min(times) for jobs, times in seconds.items()}
        figures.append({"runs": runs, "batch": batch, "seconds": least_s})
    return figures


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description="what batches of trials cost a search, and what they gain")
    parser.add_argument("--repeat", type=int, default=8, help="seeds of each search, at least 2")
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 4, 8, 16, 60], help="trials in a batch")
    parser.add_argument("--markdown", action="store_true", help="print tables for docs/project/benchmarks.md")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    options = parser.parse_args(arguments)
    if options.repeat < 2 or min(options.batches) < 1:
        parser.error("--repeat must be at least 2, and a batch at least 1")
    if reason := engine.missing():
        print(f"error: {reason}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as name:
        print(
            f"Means of {options.repeat} seeds; in parentheses the paired difference to batches of "
            f"{options.batches[0]}, with its 95 % interval\n"
        )
        found = compare(options.batches, options.repeat, Path(name) / "store")
        print(tables(found, options.batches, markdown=options.markdown), flush=True)
        times = timed(3, Path(name))
    jobs = list(times[0]["seconds"])
    rows = [
        [
            f"{one['runs']} of a trial, batch {one['batch']}",
            *(f"{one['seconds'][number]:.2f}" for number in jobs),
            *(f"{one['seconds'][1] / one['seconds'][number]:.2f}" for number in jobs[1:]),
        ]
        for one in times
    ]
    header = [
        "runs",
        *(f"s, --jobs {number}" for number in jobs),
        *(f"{number} over 1" for number in jobs[1:]),
    ]
    print("\n" + measuring.table(header, rows, markdown=options.markdown))
    if options.json is not None:
        options.json.write_text(
            json.dumps({"searches": found, "times": times}, indent=1) + "\n", encoding="utf-8"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
