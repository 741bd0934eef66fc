"""Measures of the finite flows of populations: completion times and slowdowns in one run, by size."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perhop.measures.catalog import Unit
from perhop.measures.durations import MOST_OPEN, Durations

FEWEST_FOR_P99 = 100
"""A 99th percentile of flows is reported of at least so many, those of all runs together."""
_COLUMNS = ("size_bytes", "idle_s", "completion_s", "open_s")

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
        open_s: f64[m], from the start to the end of the run; NaN for a flow that had completed.
    """

    size_bytes: NDArray[np.int64]
    idle_s: NDArray[np.float64]
    completion_s: NDArray[np.float64]
    open_s: NDArray[np.float64]

    @classmethod
    def of(cls, population: Mapping[str, Any], warmup_s: float) -> FiniteFlows:
        """The flows of a run's population that began after the warm-up."""
        begun = population["started_s"] >= warmup_s
        return cls(*(population[name][begun] for name in _COLUMNS))

    def sized(self, above: float, most: float) -> FiniteFlows:
        """The flows with more bytes than the first number, and at most the second."""
        chosen = (self.size_bytes > above) & (self.size_bytes <= most)
        return FiniteFlows(*(getattr(self, name)[chosen] for name in _COLUMNS))

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

    def quantity(self, name: str) -> Durations:
        """The completion times or slowdowns of the flows.

        Args:
            name: `completion` or `slowdown`.
        """
        unit = np.ones_like(self.idle_s) if name == "completion" else self.idle_s
        done = ~np.isnan(self.completion_s)
        return Durations(self.completion_s[done] / unit[done], self.open_s[~done] / unit[~done])


@dataclass(frozen=True, slots=True)
class FiniteFlowsMeasure:
    """A measure of the finite flows of a population in one run, or of those of a range of sizes.

    Attributes:
        name: The column of `Result.population_summary()`, and the metric in sweeps.
        head: What tables call the column.
        importance: The higher, the longer a narrow terminal keeps the column.
        of: `completion` or `slowdown`, if it is a mean or a percentile of these; else empty.
    """

    name: str
    unit: Unit
    head: str
    description: str
    importance: int
    value: Callable[[FiniteFlows], float]
    of: str = ""

    @property
    def is_mean(self) -> bool:
        """Whether it is a mean over flows."""
        return "_mean" in self.name


def _of_flows(
    what: str, unit: Unit, head: str, text: str, importance: Sequence[int]
) -> list[FiniteFlowsMeasure]:
    """Median, 99th percentile and mean of a quantity of the flows."""
    suffix = "_s" if unit == "s" else ""
    statistics: Sequence[tuple[str, str, Callable[[Durations], float]]] = (
        (
            "p50",
            (
                f"Median {text}; unfinished flows count by the product limit, and there is none where they "
                "leave it open."
            ),
            lambda of: of.quantile(0.5),
        ),
        (
            "p99",
            (
                f"99th percentile of the {text}; unfinished flows count by the product limit; of "
                f"{FEWEST_FOR_P99} flows at least, those of all runs together."
            ),
            lambda of: of.quantile(0.99, FEWEST_FOR_P99),
        ),
        (
            "mean",
            (
                f"Mean {text}; unfinished flows count by the product limit, and it is a lower bound where "
                f"they take longest, or more than {100 * MOST_OPEN:g} % of all time."
            ),
            lambda of: of.mean,
        ),
    )
    return [
        FiniteFlowsMeasure(
            f"{what}_{stem}{suffix}",
            unit,
            f"{head} {stem}{', ms' if unit == 's' else ''}",
            description,
            rank,
            lambda flows, of=of: of(flows.quantity(what)),  # type: ignore[misc]
            what,
        )
        for (stem, description, of), rank in zip(statistics, importance, strict=True)
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
        "Flows that began after the warm-up and had not completed by the end of the run.",
        255,
        lambda flows: float(np.isnan(flows.completion_s).sum()),
    ),
    *_of_flows("completion", "s", "FCT", "flow completion time", (255, 255, 30)),
    *_of_flows(
        "slowdown",
        "",
        "slowdown",
        "flow completion time over the least that the flow's path allows",
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


def needs_many(metric: str) -> bool:
    """Whether a metric of sweeps has no value of fewer than `FEWEST_FOR_P99` flows of all runs together."""
    return metric.startswith("populations.") and metric.rpartition(".")[2] in _OF_MANY


_OF_MANY = frozenset(one.name for one in MEASURES if "_p99" in one.name)


def parts(raw: Mapping[str, Any]) -> Iterator[tuple[str, FiniteFlows]]:
    """The flows of a run's populations, all and by size, with the place of their metrics in sweeps."""
    for population in raw["populations"]:
        name = raw["groups"][int(raw["flows"]["group"][population["flow"]])]["name"]
        flows = FiniteFlows.of(population, raw["warmup_s"])
        yield f"populations.{name}", flows
        for size, ends in SIZES.items():
            yield f"populations.{name}.{size}", flows.sized(*ends)


def metrics(raw: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """The metrics of a run's populations, with their names in sweeps."""
    for place, flows in parts(raw):
        for entry in MEASURES:
            yield f"{place}.{entry.name}", entry.value(flows)
    for population in raw["populations"]:
        name = raw["groups"][int(raw["flows"]["group"][population["flow"]])]["name"]
        yield f"populations.{name}.{OPEN.name}", population["mean_open"]
