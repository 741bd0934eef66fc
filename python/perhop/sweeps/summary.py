"""What a sweep says: means and intervals at each point, from the store."""

from __future__ import annotations

import contextlib
import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import polars as pl

from perhop.measures import absent
from perhop.plurals import counted
from perhop.runs.companions import Gathered, meets
from perhop.runs.metrics import names_of
from perhop.scenario.ranges import Value, text_of
from perhop.show.metric_names import WIDENED, shown_name, shown_text, within
from perhop.show.numbers import rounded
from perhop.show.report import Part, Records, Report, Text
from perhop.statistics import stopping
from perhop.statistics.intervals import Estimate
from perhop.statistics.observations import Observations
from perhop.statistics.stopping import Look, Until
from perhop.stores.metrics import engine_id
from perhop.stores.sweeps import SweepStore
from perhop.sweeps import failing, warm_ups
from perhop.sweeps.backend import RunErrors
from perhop.sweeps.plan import Point, SweepPlan
from perhop.sweeps.run import Failure

Seeds = tuple[str, int, int]
"""A scenario's key, its first seed, and how many runs count."""

MOST_LINES = 40
MOST_COLUMNS = 100
MOST_NAMED = 5
"""Metrics that a sentence names."""


@dataclass(frozen=True, slots=True)
class PointSummary:
    """The estimates at one point.

    Attributes:
        runs: How many runs count.
        estimates: By metric; None where no run has a value. With early stopping the intervals are those of
            `perhop.statistics.stopping`.
        observed: What the runs gave, by metric.
        warm_up: The one that was found; None where the scenario sets one, or no run ended.
    """

    point: Point
    runs: int
    estimates: Mapping[str, Estimate | None]
    observed: Mapping[str, Observations] = field(default_factory=dict, repr=False)
    warm_up: warm_ups.Found | None = None


def counting(frame: pl.DataFrame, wanted: Sequence[Seeds]) -> dict[Seeds, pl.DataFrame]:
    """The runs that count, of each scenario: a column for each of its measures, a row for each seed.

    Args:
        frame: Of the store, with columns as `SweepStore.runs` has them.
        wanted: Which runs count.

    Returns:
        `seed`, in ascending order, and the measures; a seed whose run failed has no row.
    """
    parts = frame.drop("engine", "wall_s").partition_by("scenario", as_dict=True, include_key=False)
    found = {}
    for key, first, runs in dict.fromkeys(wanted):
        last = pl.lit(first + runs - 1, pl.UInt64)
        part = parts.get((key,), pl.DataFrame(schema={"seed": pl.UInt64}))
        rows = part.filter(pl.col("seed").is_between(pl.lit(first, pl.UInt64), last)).sort("seed")
        has = [column.name for column in rows if column.null_count() < rows.height]
        found[key, first, runs] = rows.select("seed", *(name for name in has if name != "seed"))
    return found


def summarize(plan: SweepPlan, counts: Sequence[int], store: SweepStore) -> list[PointSummary]:
    """Estimates of the plan's metrics at each of its points.

    Args:
        plan: The sweep.
        counts: How many runs of each point count, as `perhop.sweeps.run.sweep` returned them.
        store: Holds them all.

    Raises:
        StoreError: The store cannot be read.
    """
    wanted = _wanted(plan, counts)
    kept = store.runs(*plan.metrics, engine=engine_id(), with_companions=True)
    found = counting(kept, wanted)
    known = {name: place for place, name in enumerate(_measured_names(plan.points))}
    names = sorted(
        {name for rows in found.values() for name in rows.columns if meets(name, plan.metrics)} - {"seed"},
        key=lambda name: (known.get(name, len(known)), name),
    )
    ordered = list(_ordered(names, plan.metrics))
    estimated = _estimate_of if plan.until is None else stopping.interval_of
    out = []
    for point, (key, first, runs) in zip(plan.points, wanted, strict=True):
        seeds = pl.DataFrame({"seed": pl.Series(range(first, first + runs), dtype=pl.UInt64)})
        rows = seeds.join(found[key, first, runs], on="seed", how="left", maintain_order="left")
        own = rows.drop("seed").fill_null(math.nan).to_dict(as_series=False)
        gathered = Gathered(own)
        observed = {name: gathered.of(name) for name in ordered if name in own}
        estimates = {name: estimated(one) for name, one in observed.items()}
        one_run = found[key, first, runs].head(1).to_dicts()
        warm_up = warm_ups.found_in(point.label, point.scenario, one_run[0]) if one_run else None
        out.append(PointSummary(point, runs, estimates, observed, warm_up))
    return out


def _estimate_of(one: Observations) -> Estimate | None:
    return one.estimate


def _wanted(plan: SweepPlan, counts: Sequence[int]) -> list[Seeds]:
    return [(point.key, plan.seed, runs) for point, runs in zip(plan.points, counts, strict=True)]


def _measured_names(points: Sequence[Point]) -> tuple[str, ...]:
    """The metrics of the first point where the shortest run does not fail; none where all do."""
    for point in points:
        with contextlib.suppress(*RunErrors):
            return names_of(point.scenario)
    return ()


def _ordered(names: Sequence[str], patterns: Sequence[str]) -> Iterator[str]:
    """The metrics in the order of the patterns that ask for them."""
    seen: set[str] = set()
    for pattern in patterns:
        matching = [name for name in names if fnmatchcase(name, pattern) and name not in seen]
        seen.update(matching)
        yield from matching


def metric_names(summaries: Sequence[PointSummary]) -> list[str]:
    """Every metric that some point has, in order."""
    return list(dict.fromkeys(name for summary in summaries for name in summary.estimates))


def short_names(factors: Sequence[str]) -> dict[str, str]:
    """Factors by what readers see: the last part of a path, or as much of it as distinguishes it."""
    out = {}
    for name in factors:
        parts = name.split(".")
        size = 1
        while sum(other == name or other.endswith("." + ".".join(parts[-size:])) for other in factors) > 1:
            size += 1
        out[name] = ".".join(parts[-size:])
    return out


def lines_of(summaries: Sequence[PointSummary]) -> list[dict[str, str]]:
    """One line for each point: its factors, the number of its runs where that differs, and every metric."""
    counts = {summary.runs for summary in summaries}
    short = short_names(list(summaries[0].point.factors))
    metrics = metric_names(summaries)
    lines = []
    for summary in summaries:
        line = {short[name]: text_of(value) for name, value in summary.point.factors.items()}
        if len(counts) > 1:
            line["runs"] = str(summary.runs)
        lines.append(
            line | {shown_name(metric): _cell(summary.estimates.get(metric), metric) for metric in metrics}
        )
    return lines


def as_report(
    plan: SweepPlan,
    summaries: Sequence[PointSummary],
    looks: Sequence[Look | None] = (),
    failures: Sequence[Failure] = (),
) -> Report:
    """The sweep as a terminal and a notebook show it.

    Args:
        plan: The sweep.
        summaries: Of its points.
        looks: See `precision`.
        failures: The runs that failed.
    """
    lines = lines_of(summaries[:MOST_LINES])
    parts: list[Part] = [Records("", lines, stem=len(lines[0]) - len(metric_names(summaries[:MOST_LINES])))]
    rest = f"The first {MOST_LINES} of {len(summaries)} points; --out and --json give them all."
    parts += [
        Text([rest] if len(summaries) > MOST_LINES else []),
        Text([*remarks(summaries), *precision(plan, looks)]),
        Text(failing.sentences(failures)),
    ]
    return Report(plan.title, [lead(plan, summaries)], parts)


def lead(plan: SweepPlan, summaries: Sequence[PointSummary]) -> str:
    """Return how many points and runs, in a sentence."""
    least, most = (pick(summary.runs for summary in summaries) for pick in (min, max))
    runs = counted(least, "run") if least == most else f"{least} to {most} runs"
    text = f"{counted(len(summaries), 'point')}, {runs} of each from seed {plan.seed}"
    if any(one is not None and one.missing for summary in summaries for one in summary.estimates.values()):
        text += ", not all of which have every value"
    known = "means with 95 % intervals" if least > 1 else "1 run: no interval"
    return f"{text}; {known}; warm-up excluded"


def of_runs(found: Estimate | None) -> str:
    """Say of how many runs an estimate is if not all have a value, as `, 1 of 10 runs`; else nothing."""
    return "" if found is None or not found.missing else f", {found.runs} of {found.of} runs"


def _cell(found: Estimate | None, metric: str) -> str:
    return f"{shown_text(found, metric)}{of_runs(found)}"


def remarks(summaries: Sequence[PointSummary]) -> list[str]:
    """What to know of measures that some runs lack, or of which the longest times are missing."""
    found = [(summary, name, one) for summary in summaries for name, one in summary.estimates.items()]
    said = []
    partial = next((one for _, _, one in found if one is not None and one.missing), None)
    if partial is not None:
        said.append(f"Such as {partial.runs} of {partial.of} runs: the others have no value.")
    bounds = {name: None for summary, name, one in found if one and _is_bound(summary.observed.get(name))}
    if bounds:
        names = ", ".join(shown_name(name).partition(",")[0] for name in bounds)
        said.append(
            f"{names} (over …): a lower bound, too low by what the longest would have taken, which were "
            "unfinished at the end of the run."
        )
    unknown = {n: None for summary, n, one in found if one is None and _is_open(summary.observed.get(n))}
    if unknown:
        names = ", ".join(shown_name(name).partition(",")[0] for name in unknown)
        said.append(
            f"No {names} where a larger share was unfinished at the end of the run, or too few ended."
        )
    settled = [one.warm_up for one in summaries if one.warm_up is not None]
    return [*said, *_absent(summaries), *warm_ups.sentences(settled, len(summaries), "point")]


def _absent(summaries: Sequence[PointSummary]) -> Iterator[str]:
    """Yield why cells are empty, a sentence for each reason."""
    reasons: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for summary in summaries:
        for name, observed in summary.observed.items():
            if summary.estimates[name] is None and not _is_open(observed):
                reasons[absent.why(name, summary.runs)][name] += 1
    for reason, points in reasons.items():
        names = [shown_name(name).partition(",")[0] for name in points]
        rest = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        least = min(points.values())
        where = "" if least == len(summaries) else f" at {least} of {counted(len(summaries), 'point')}"
        yield f"No run has a value of {', '.join(names[:MOST_NAMED])}{rest}{where}: {reason}."


def precision(plan: SweepPlan, looks: Sequence[Look | None]) -> list[str]:
    """What early stopping asks of the intervals, and how wide they are, in sentences; none without it.

    Args:
        plan: The sweep.
        looks: See `perhop.sweeps.run.sweep`.
    """
    known = [one for one in looks if one is not None]
    if plan.until is None or not known:
        return []
    of, aim = f"the intervals of {', '.join(plan.until.metrics)}", within(plan.until.width)
    wide = [place for place, one in enumerate(looks) if one is not None and not plan.until.is_met(one)]
    finite = [one.reach for one in known if math.isfinite(one.reach)]
    most = f"the widest is {within(max(finite), 2)}" if finite else ""
    if not wide:
        return [f"As `until` asks, {of} are within {aim}; {most}.", WIDENED]
    named = plan.points[wide[0]].label
    where = f"At {len(wide)} of {counted(len(plan.points), 'point')}, first at {named}"
    open_ = len(known) - len(finite)
    less = f"at {counted(open_, 'point')} a value is 0 or some runs have none" if open_ else ""
    after = f"after {counted(plan.runs, 'run')}, the most that it makes"
    said = "; ".join(filter(None, (f"{where}, {of} are wider than {aim} {after}", most, less)))
    return [f"{said}.", WIDENED]


def _is_bound(found: Observations | None) -> bool:
    return found is not None and found.is_bound


def _is_open(found: Observations | None) -> bool:
    """Whether a percentile is not known though there are values."""
    return found is not None and any(one is not None and one.count for one in found.distributions or ())


def to_json(
    plan: SweepPlan,
    summaries: Sequence[PointSummary],
    failures: Sequence[Failure] = (),
    looks: Sequence[Look | None] = (),
) -> str:
    """The sweep as JSON text, byte for byte the same for the same plan and engine, however computed.

    Args:
        plan: The sweep.
        summaries: Of its points.
        failures: The runs that failed.
        looks: See `precision`.
    """
    content = {
        "title": plan.title,
        "engine": engine_id(),
        "seed": plan.seed,
        "points": [
            {
                "factors": dict(summary.point.factors),
                "scenario": summary.point.key,
                "runs": summary.runs,
                **({} if summary.warm_up is None else summary.warm_up.json()),
                **({} if plan.until is None else _look_json(looks[place], plan.until)),
                "metrics": {name: estimate_json(found) for name, found in summary.estimates.items()},
            }
            for place, summary in enumerate(summaries)
        ],
        "failed": failing.as_json(failures),
    }
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _look_json(look: Look | None, until: Until) -> dict[str, Any]:
    """Return how wide the intervals of a point are, beside what early stopping asks for, as JSON data."""
    known = look is not None and math.isfinite(look.reach)
    return {
        "within": look is not None and until.is_met(look),
        "widest": rounded(look.reach) if look is not None and known else None,
    }


def estimate_json(found: Estimate | None) -> dict[str, Any] | None:
    """An estimate as JSON data."""
    if found is None:
        return None
    ends = None
    if found.ci95 is not None:
        ends = [None if math.isinf(end) else rounded(end) for end in found.ci95]
    content: dict[str, Any] = {"mean": rounded(found.mean), "ci95": ends, "runs": found.runs}
    return content if not found.missing else {**content, "of": found.of}


def sample_frame(plan: SweepPlan, counts: Sequence[int], store: SweepStore) -> pl.DataFrame:
    """Every run that counts in long form, all its metrics: `point`, the factors, `seed`, `metric`, `value`.

    Ordered by point, metric and seed; null where a run has no value.

    Raises:
        StoreError: The store cannot be read.
    """
    wanted = _wanted(plan, counts)
    found = counting(store.runs(engine=engine_id()), wanted)
    longs = [
        found[seeds]
        .unpivot(index="seed", variable_name="metric", value_name="value")
        .with_columns(pl.lit(index, pl.UInt32).alias("point"), pl.col("value").fill_nan(None))
        for index, seeds in enumerate(wanted)
        if found[seeds].height
    ]
    types = {"point": pl.UInt32, "seed": pl.UInt64, "metric": pl.String, "value": pl.Float64}
    frame = pl.concat([pl.DataFrame(schema=types), *(one.select(*types) for one in longs)])
    frame = frame.sort("point", "metric", "seed")
    factors = factor_frame([point.factors for point in plan.points])
    return factors.join(frame, on="point", how="inner", maintain_order="left_right")


def factor_frame(points: Sequence[Mapping[str, Value]]) -> pl.DataFrame:
    """The settings of points, one row each: `point` from 0, and a column for each factor.

    Args:
        points: The factors of each point, the same ones at all.
    """
    columns = {name: pl.Series([point[name] for point in points], strict=False) for name in points[0]}
    return pl.DataFrame({"point": pl.Series(range(len(points)), dtype=pl.UInt32), **columns})
