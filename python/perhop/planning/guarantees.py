"""What network calculus guarantees of objectives in any run, beside what some runs measure (`perhop.bounds`).

Bounds themselves are metrics, too: `links.uplink.delay_at_most_s`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from perhop.bounds.metrics import at_most
from perhop.measures import catalog
from perhop.statistics.observations import Observations

if TYPE_CHECKING:
    from perhop.bounds.deriving import Bounds
    from perhop.planning.objectives import Bound


def is_bound(metric: str) -> bool:
    """Whether a metric is a bound, which no run measures."""
    return metric.rpartition(".")[2] in catalog.BOUNDS


def names(measured: Iterable[str]) -> Iterator[str]:
    """Yield the metrics that are bounds, of every group, link and class that has measured metrics."""
    for metric in measured:
        place, _, last = metric.rpartition(".")
        if last == "loss":
            of = catalog.FLOW_BOUNDS if metric.startswith("flows.") else catalog.QUEUE_BOUNDS
            yield from (f"{place}.{one.name}" for one in of)


def guaranteed(bound: Bound, bounds: Bounds) -> float | None:
    """The bound of what an objective is about, of its worst subject; None where one of them has none."""
    objective = bound.objective
    if not objective.upper and not all(map(is_bound, bound.metrics)):
        return None
    values = [at_most(part[0], bounds) for part in bound.parts]
    known = [value for value in values if value is not None]
    return (max if objective.upper else min)(known) if len(known) == len(values) else None


def is_kept(bound: Bound, bounds: Bounds) -> bool:
    """Whether an objective is kept in any run."""
    value = guaranteed(bound, bounds)
    return value is not None and bound.objective.met(value)


def observed(metrics: Iterable[str], bounds: Bounds, runs: int) -> dict[str, Observations]:
    """Return the bounds among some metrics, as if each run had measured them."""
    values = {metric: at_most(metric, bounds) for metric in metrics if is_bound(metric)}
    return {
        metric: Observations((math.nan if value is None else value,) * runs)
        for metric, value in values.items()
    }
