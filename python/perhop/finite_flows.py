"""Measures of the finite flows of populations: completion times and slowdowns in one run, by size."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from perhop.measures import quantile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from perhop.catalog import Unit

FEWEST_FOR_P99 = 100
"""A 99th percentile of flows is reported of at least so many."""

SHORT, MEDIUM = 100e3, 10e6
"""Bytes of payload of the largest short flow, and of the largest medium one; larger flows are long."""

SIZES: Mapping[str, tuple[float, float]] = {
    "short": (0.0, SHORT),
    "medium": (SHORT, MEDIUM),
    "long": (MEDIUM, math.inf),
}
"""Ranges of payload: more bytes than the first, at most the second."""


@dataclass(frozen=True, slots=True)
class FiniteFlows:
    """Flows of a population that began after the warm-up.

    Attributes:
        size_bytes: i64[m], payload.
        idle_s: f64[m], the least time that their bytes take.
        completion_s: f64[m], NaN for a flow that was unfinished at the end.
    """

    size_bytes: NDArray[np.int64]
    idle_s: NDArray[np.float64]
    completion_s: NDArray[np.float64]

    @classmethod
    def of(cls, population: Mapping[str, Any], warmup_s: float) -> FiniteFlows:
        """Those of a population of a run, as the engine reports it."""
        begun = population["started_s"] >= warmup_s
        return cls(*(population[name][begun] for name in ("size_bytes", "idle_s", "completion_s")))

    def sized(self, above: float, most: float) -> FiniteFlows:
        """Those with more bytes than the first number, and at most the second."""
        chosen = (self.size_bytes > above) & (self.size_bytes <= most)
        return FiniteFlows(self.size_bytes[chosen], self.idle_s[chosen], self.completion_s[chosen])

    @property
    def times(self) -> NDArray[np.float64]:
        """Completion times of those that completed."""
        return self.completion_s[~np.isnan(self.completion_s)]

    @property
    def slowdowns(self) -> NDArray[np.float64]:
        """Slowdowns of those that completed."""
        done = ~np.isnan(self.completion_s)
        slowdowns: NDArray[np.float64] = self.completion_s[done] / self.idle_s[done]
        return slowdowns


@dataclass(frozen=True, slots=True)
class FiniteFlowsMeasure:
    """A measure of the finite flows of a population in one run, or of those of a range of sizes.

    Attributes:
        name: The column of `Result.population_summary()`, and the metric in sweeps.
        head: What tables call the column.
        importance: The higher, the longer a narrow terminal keeps the column.
    """

    name: str
    unit: Unit
    head: str
    description: str
    importance: int
    value: Callable[[FiniteFlows], float]


def _average(values: NDArray[np.float64]) -> float:
    return math.fsum(values) / len(values) if len(values) else math.nan


def _quantile(share: float, fewest: int, values: NDArray[np.float64]) -> float:
    """A quantile of at least so many values, else NaN."""
    return quantile(values, share) if len(values) >= fewest else math.nan


def _of_flows(
    what: str, unit: Unit, head: str, text: str, importance: Sequence[int]
) -> list[FiniteFlowsMeasure]:
    """Median, 99th percentile and mean of a quantity of the flows that completed."""

    def values(flows: FiniteFlows) -> NDArray[np.float64]:
        return flows.times if what == "completion" else flows.slowdowns

    suffix = "_s" if unit == "s" else ""
    statistics: Sequence[tuple[str, str, str, Callable[[NDArray[np.float64]], float]]] = (
        ("p50", "p50", f"Median {text}.", partial(_quantile, 0.5, 1)),
        (
            "p99",
            "p99",
            f"99th percentile of the {text}; of {FEWEST_FOR_P99} flows at least.",
            partial(_quantile, 0.99, FEWEST_FOR_P99),
        ),
        ("mean", "mean", f"Mean {text}.", _average),
    )
    return [
        FiniteFlowsMeasure(
            f"{what}_{stem}{suffix}",
            unit,
            f"{head} {label}{', ms' if unit == 's' else ''}",
            description,
            rank,
            lambda flows, of=of: of(values(flows)),  # type: ignore[misc]
        )
        for (stem, label, description, of), rank in zip(statistics, importance, strict=True)
    ]


MEASURES: tuple[FiniteFlowsMeasure, ...] = (
    FiniteFlowsMeasure(
        "flows_begun",
        "",
        "flows per run",
        "Flows that began after the warm-up.",
        55,
        lambda flows: float(len(flows.size_bytes)),
    ),
    FiniteFlowsMeasure(
        "unfinished",
        "",
        "unfinished",
        "Of these, flows that had not completed by the end of the run.",
        255,
        lambda flows: float(np.isnan(flows.completion_s).sum()),
    ),
    *_of_flows("completion", "s", "FCT", "flow completion time of those that completed", (255, 255, 30)),
    *_of_flows(
        "slowdown",
        "",
        "slowdown",
        "flow completion time over the least that the flow's path allows, of those that completed",
        (40, 35, 255),
    ),
)

OPEN = FiniteFlowsMeasure(
    "open_flows",
    "",
    "open flows",
    "Flows that were open at once, on average over the time after the warm-up; those of all sizes together.",
    20,
    lambda _: math.nan,
)


def metrics(raw: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """The metrics of a run's populations, with their names in sweeps."""
    for population in raw["populations"]:
        name = raw["groups"][int(raw["flows"]["group"][population["flow"]])]["name"]
        flows = FiniteFlows.of(population, raw["warmup_s"])
        parts = {"": flows, **{f"{size}.": flows.sized(*ends) for size, ends in SIZES.items()}}
        for part, of_part in parts.items():
            for entry in MEASURES:
                yield f"populations.{name}.{part}{entry.name}", entry.value(of_part)
        yield f"populations.{name}.{OPEN.name}", population["mean_open"]
