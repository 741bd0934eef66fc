"""The intervals that perhop gives of a few runs: in tables, in sweeps, and of paired differences."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

from perhop import catalog
from perhop.output.readable import end_names
from perhop.statistics import paired_difference
from perhop.sweep.summary import estimated

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from perhop.simulation import Result
    from perhop.statistics import Estimate

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
    for row in result.classes().to_dicts():
        yield from _of_row(f"flows.{row['class']}", row)
    for row in result.link_summary().to_dicts():
        yield from _of_row(f"links.{row['link']}", row)
    for row in result.link_class_summary().to_dicts():
        yield from _of_row(f"links.{row['link']}.classes.{row['class']}", row)
    for row in result.population_summary().to_dicts():
        size = next((part for label, part in _SIZES if row["sizes"].startswith(label)), "")
        yield from _of_row(f"populations.{row['class']}{size}", row)
    for table in result.applications().values():
        for row in table.to_dicts():
            yield from _of_row(f"applications.{row['class']}", row)


def _of_row(place: str, row: Mapping[str, Any]) -> Iterator[tuple[str, Ends]]:
    own_names = place.startswith(("populations.", "applications."))
    for name, value in row.items():
        low, high = end_names(name)
        if low in row and value is not None:
            known = row[low] is not None and row[high] is not None
            metric = name if own_names else _METRICS[name]
            yield f"{place}.{metric}", (row[low], row[high]) if known else None


def of_sweeps(runs: Sequence[Mapping[str, float]]) -> Iterator[tuple[str, Ends]]:
    """The same of a sweep's summaries; each run has its metrics by name."""
    for name in runs[0]:
        found = estimated({seed: run[name] for seed, run in enumerate(runs)})
        if found is not None:
            yield name, _ends(found)


def of_differences(
    runs: Sequence[Mapping[str, float]], others: Sequence[Mapping[str, float]]
) -> Iterator[tuple[str, Ends]]:
    """The same of paired differences of two settings, run by run on the same seeds."""
    for name in runs[0]:
        a, b = ({seed: run.get(name, math.nan) for seed, run in enumerate(one)} for one in (runs, others))
        if not any(math.isnan(value) for value in (*a.values(), *b.values())):
            yield name, _ends(paired_difference(a, b))


def _ends(found: Estimate) -> Ends:
    return found.ci95
