"""Populations: flow completion times and slowdowns of finite flows that come and go, by size."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from perhop.measures import finite_flows
from perhop.measures.finite_flows import FiniteFlows
from perhop.runs import observing, over_runs

if TYPE_CHECKING:
    from perhop.measures.run import Run
    from perhop.runs.result import Result

SIZES = (finite_flows.SHORT, finite_flows.MEDIUM)
"""Bytes of payload that divide short flows from medium ones, and these from long ones."""


def by_run(result: Result) -> Iterator[tuple[str, list[FiniteFlows]]]:
    """Each population by its name, with its flows in each run."""
    names = [class_of(result.runs[0], one["flow"]) for one in result.runs[0].raw["populations"]]
    for number, name in enumerate(names):
        found = [(run.raw["populations"][number], run.raw["warmup_s"]) for run in result.runs]
        yield name, [FiniteFlows.of(population, warmup) for population, warmup in found]


def rows(result: Result, sizes: Sequence[float] = SIZES) -> list[dict[str, Any]]:
    """The rows of `Result.population_summary`.

    Raises:
        ValueError: The sizes do not increase, or one is not positive.
    """
    if any(low >= high for low, high in pairwise([0.0, *sizes])):
        raise ValueError(f"sizes are positive and increase, such as {SIZES}, not {tuple(sizes)}")
    found: list[dict[str, Any]] = []
    for number, (name, flows_by_run) in enumerate(by_run(result)):
        mean_open = [run.raw["populations"][number]["mean_open"] for run in result.runs]
        found.append({"class": name, "sizes": "all", **_estimates(flows_by_run, mean_open)})
        for above, most in pairwise([0.0, *sizes, math.inf]):
            part = [flows.sized(above, most) for flows in flows_by_run]
            if any(len(flows.size_bytes) for flows in part):
                none = [math.nan] * len(part)
                found.append({"class": name, "sizes": _range(above, most), **_estimates(part, none)})
    return found


def _estimates(flows: Sequence[FiniteFlows], mean_open: Sequence[float]) -> dict[str, float | None]:
    out: dict[str, float | None] = {}
    for entry in finite_flows.MEASURES:
        out |= over_runs.columns(entry.name, observing.of_flows(entry, flows))
    name = finite_flows.OPEN.name
    return out | over_runs.columns(name, observing.observations(name, mean_open))


def class_of(run: Run, flow: int) -> str:
    """The class of a flow of a run, by its number."""
    return run.groups[int(run.flows("group")[flow])].name


def _range(low: float, high: float) -> str:
    """A range of sizes in words, such as `to 100 kB`."""
    if high == math.inf:
        return f"over {_bytes(low)}"
    return f"to {_bytes(high)}"


def _bytes(size: float) -> str:
    for scale, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= scale:
            return f"{size / scale:g} {unit}"
    return f"{size:g} B"
