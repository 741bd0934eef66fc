"""What `--out` leaves of a sweep: plots, every run's measures, a manifest, and the page that shows them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from perhop.scenario.ranges import text_of
from perhop.show.metric_names import shown_name, shown_text, unit_of
from perhop.show.numbers import PAGE
from perhop.show.report import Origin, Records, Report, Text
from perhop.show.report_files import write_report
from perhop.statistics.intervals import Estimate
from perhop.statistics.multiplicity import exceeds, family, first_runs
from perhop.stores.sweeps import SweepStore
from perhop.sweeps import failing
from perhop.sweeps.job import Swept
from perhop.sweeps.pictures import WAITS, html_plots
from perhop.sweeps.summary import (
    PointSummary,
    lead,
    metric_names,
    of_runs,
    precision,
    remarks,
    sample_frame,
    short_names,
    summarize,
)

Entry = TypeVar("Entry")
MOST_IN_FULL = 1000
"""Points whose scenarios a manifest holds, and that a page lists; beyond, a manifest has the store's keys."""


MOST_ANSWERS = 6
"""Metrics that the sentences at the top tell of."""
PAGE_CHARACTERS = 96
"""What a table of a page takes at most; more columns stand in another one."""


def write_sweep(out: Path, swept: Swept, store: Path, command: str, jobs: int = 1) -> None:
    """Plots, samples, manifest and the page; pictures are drawn on so many cores.

    Raises:
        PerhopError: A file cannot be written, or the store cannot be read.
    """
    plan, counts, summaries = swept.plan, swept.counts, swept.summaries
    with SweepStore(store, lambda _: None) as opened:
        samples = sample_frame(plan, counts, opened)
        waits = summarize(replace(plan, metrics=WAITS), counts, opened)
    waits = failing.without_estimates(waits, swept.failures)
    plots = html_plots(summaries, "sweep", waits, jobs)
    scenarios = [
        {
            "factors": dict(point.factors),
            "seeds": [plan.seed, plan.seed + runs - 1],
            "key": point.key,
            **({"scenario": json.loads(point.scenario)} if len(plan.points) <= MOST_IN_FULL else {}),
            **failing.of_point(swept.failures, point.key),
        }
        for point, runs in zip(plan.points, counts, strict=True)
    ]
    long = len(summaries) > MOST_IN_FULL
    details = [f"The first {MOST_IN_FULL} points are listed; `samples.parquet` has them all."] if long else []
    details += [*remarks(summaries), *precision(plan, swept.looks), *notes(summaries)]
    details += failing.page(swept.failures)
    report = Report(
        plan.title,
        [f"{lead(plan, summaries)}."],
        [*plots, *point_tables(summaries[:MOST_IN_FULL]), *found_by(details)],
        answers(summaries),
        Origin(command, "every measure of every run"),
    )
    write_report(out, report, samples, scenarios)


def found_by(details: Sequence[str]) -> list[Text]:
    """The end of a page: how its numbers were found; nothing without details."""
    return [Text(details, "How this was found")] if details else []


def answers(summaries: Sequence[PointSummary]) -> list[str]:
    """What each metric does over the points, a sentence for each."""
    metrics = metric_names(summaries)
    said = [text for metric in metrics[:MOST_ANSWERS] if (text := _answer(metric, summaries))]
    if len(metrics) > MOST_ANSWERS:
        said.append(f"{len(metrics) - MOST_ANSWERS} more metrics are in the plots and tables below.")
    return said or ["No point has a value of these metrics."]


def notes(summaries: Sequence[PointSummary]) -> list[str]:
    """Say how the sentences tell the extremes apart."""
    metrics = metric_names(summaries)[:MOST_ANSWERS]
    if len(summaries) < 2 or min(summary.runs for summary in summaries) < 2:
        return []
    how = (
        "Highest and lowest of many points differ by chance alone. They are distinguished by the studentized "
        "range (Tukey) at 95 %, from the paired differences of their runs on the same seeds."
    )
    return [how, text] if (text := family(len(metrics), "such sentences")) else [how]


def _answer(metric: str, summaries: Sequence[PointSummary]) -> str:
    """The lowest and the highest of all points, and whether they can be distinguished."""
    found = [(one, summary) for summary in summaries if (one := summary.estimates.get(metric)) is not None]
    if not found:
        return ""
    name = shown_name(metric).partition(",")[0]
    low, high = (pick(found, key=lambda entry: entry[0].mean) for pick in (min, max))
    if len(found) == 1:
        return f"**{name}**: {with_unit(low[0], metric)}."
    if low[0].mean == high[0].mean:
        widest, _ = max(found, key=lambda entry: entry[0].high - entry[0].low)
        if widest.low < widest.high and widest.mean in {widest.low, widest.high}:
            known = with_unit(widest, metric)
            return f"**{name}**: {known} at all {len(found)} points, as every run has the same value."
        return f"**{name}** is the same at all {len(found)} points: {with_unit(low[0], metric)}."
    text = (
        f"**{name}** goes from {with_unit(low[0], metric)} (at {_where(low[1], summaries)}) "
        f"to {with_unit(high[0], metric)} (at {_where(high[1], summaries)}), "
        f"lowest and highest of {len(found)}"
    )
    if low[0].ci95 is None or high[0].ci95 is None:
        return f"{text}; single runs have no interval."
    apart = _apart(low[1], high[1], metric, len(found))
    return f"{text}." if apart else f"{text}; that many may differ as much by chance."


def _apart(low: PointSummary, high: PointSummary, metric: str, points: int) -> bool:
    """Whether the extremes of so many points surely differ, by the runs on the seeds that both have."""
    runs = min(low.runs, high.runs)
    first, last = (first_runs(one.observed[metric], runs) for one in (low, high))
    return exceeds(last, first, points)


def _where(summary: PointSummary, summaries: Sequence[PointSummary]) -> str:
    factors = list(summaries[0].point.factors)
    short = short_names(factors)
    varied = [name for name in factors if len({one.point.factors[name] for one in summaries}) > 1] or factors
    return ", ".join(f"{short[name]} {text_of(summary.point.factors[name])}" for name in varied)


def with_unit(found: Estimate | None, metric: str) -> str:
    """An estimate with its unit."""
    return f"{f'{shown_text(found, metric, PAGE)} {unit_of(metric).text}'.rstrip()}{of_runs(found)}"


def point_tables(summaries: Sequence[PointSummary]) -> list[Records]:
    """One line for each point; what does not fit side by side has tables of its own, with names."""
    short = short_names(list(summaries[0].point.factors))
    metrics = metric_names(summaries)
    varying = len({summary.runs for summary in summaries}) > 1

    def point(summary: PointSummary) -> dict[str, str]:
        line = {short[name]: text_of(value) for name, value in summary.point.factors.items()}
        return {**line, "runs": str(summary.runs)} if varying else line

    def cell(summary: PointSummary, metric: str) -> str:
        found = summary.estimates.get(metric)
        return f"{shown_text(found, metric, PAGE)}{of_runs(found)}"

    return split_tables("Points", summaries, point, metrics, cell)


def split_tables(
    title: str,
    entries: Sequence[Entry],
    first: Callable[[Entry], Mapping[str, str]],
    metrics: Sequence[str],
    cell: Callable[[Entry, str], str],
) -> list[Records]:
    """Tables of entries by metrics, each as wide as a page; the columns `first` stand in all of them."""
    lead_in = [first(entry) for entry in entries]
    columns = {metric: [cell(entry, metric) for entry in entries] for metric in metrics}
    fixed = sum(_width(name, [line[name] for line in lead_in]) for name in lead_in[0])
    groups: list[list[str]] = []
    room = 0
    for metric in metrics:
        wide = _width(shown_name(metric), columns[metric])
        if not groups or wide > room:
            groups.append([])
            room = PAGE_CHARACTERS - fixed
        groups[-1].append(metric)
        room -= wide
    tables = []
    for group in groups or [[]]:
        lines = [
            {**line, **{shown_name(metric): columns[metric][place] for metric in group}}
            for place, line in enumerate(lead_in)
        ]
        named = ", ".join(dict.fromkeys(shown_name(metric).partition(",")[0] for metric in group))
        tables.append(Records(f"{title}: {named}" if len(groups) > 1 else title, lines))
    return tables


def _width(head: str, cells: Sequence[str]) -> int:
    """Characters that a column takes; its head may be broken between words."""
    return max(*(len(word) for word in head.split() or [""]), *(len(cell) for cell in cells), 3) + 3
