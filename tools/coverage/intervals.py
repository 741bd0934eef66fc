"""The intervals that perhop gives of a few runs: in tables, in sweeps, and of paired differences."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING, Any, TypeAlias

from perhop._engine import student_t_quantile
from perhop.measures import catalog
from perhop.show.readable import end_names
from perhop.statistics.observations import paired

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from perhop.runs.companions import Gathered
    from perhop.runs.result import Result

Ends: TypeAlias = tuple[float, float] | None
"""The ends of an interval; None where there is none."""

_METRICS = {
    entry.name: entry.summary.metric or entry.name
    for entry in catalog.SUMMARIZED
    if entry.name and entry.summary is not None
}
_SIZES = (("to 100 kB", ".short"), ("to 10 MB", ".medium"), ("over", ".long"))


def of_tables(result: Result) -> Iterator[tuple[str, Ends]]:
    """Every measure with an interval in the tables of a result, by the name of its true value."""
    for row in result.group_summary().to_dicts():
        yield from _of_row(f"flows.{row['class']}", row)
    for row in result.link_summary().to_dicts():
        yield from _of_row(f"links.{row['link']}", row)
    for row in result.link_class_summary().to_dicts():
        yield from _of_row(f"links.{row['link']}.classes.{row['class']}", row)
    for row in result.population_summary().to_dicts():
        size = next((part for label, part in _SIZES if row["sizes"].startswith(label)), "")
        yield from _of_row(f"populations.{row['class']}{size}", row)
    for table in result.application_summary().values():
        for row in table.to_dicts():
            yield from _of_row(f"applications.{row['class']}", row)


def _of_row(place: str, row: Mapping[str, Any]) -> Iterator[tuple[str, Ends]]:
    own_names = place.startswith(("populations.", "applications."))
    for name, value in row.items():
        low, high = end_names(name)
        if low in row and value is not None:
            known = row[low] is not None or row[high] is not None
            metric = name if own_names else _METRICS[name]
            ends = (_or(row[low], -math.inf), _or(row[high], math.inf))
            yield f"{place}.{metric}", ends if known else None


def _or(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else value


def of_sweeps(runs: Gathered, names: Iterable[str]) -> Iterator[tuple[str, Ends]]:
    """The intervals of a sweep's summaries."""
    for name in names:
        found = runs.of(name).estimate
        if found is not None:
            yield name, found.ci95


def of_differences(runs: Gathered, others: Gathered, names: Iterable[str]) -> Iterator[tuple[str, Ends]]:
    """The intervals of paired differences of two settings, run by run on the same seeds."""
    for name in names:
        found = paired(runs.of(name), others.of(name))
        if found is not None:
            yield name, found.ci95


def by_t(values: Sequence[float]) -> Ends:
    """Student's t interval of a mean; None of fewer than two values, or where one is missing."""
    n = len(values)
    if n < 2 or any(map(math.isnan, values)):
        return None
    mean = math.fsum(values) / n
    half = student_t_quantile(n - 1, 0.975) * statistics.stdev(values, mean) / math.sqrt(n)
    return mean - half, mean + half
