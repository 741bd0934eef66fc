"""What Figures 2 and 3 share: assured flows of one profile against best effort, at a 200-packet queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from perhop.measures import utilization
from perhop.studies.kim.common import ASSURED, BEST_EFFORT, CAPACITY_MBPS, MBPS, flows, mean_mbps, scenario
from perhop.study import Sample

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from perhop.runs import Run
    from perhop.study import Factors


def network(
    title: str, scheme: str, assured: int, profile_mbps: float, best_effort: int
) -> Mapping[str, Any]:
    """`assured` flows of one profile and `best_effort` flows without one, through RIO or RI+O."""
    queue = {
        "aqm": scheme,
        "limit": "200p",
        "in": "60/180/0.02",
        "total": "30/90/0.05",
        "mean-packet": "1000B",
    }
    if scheme == "rio-plus-out":
        queue["out"] = "10/30/0.1"
    entries = [flows(ASSURED, assured, profile_mbps, packet="1000B", burst="20kB")]
    if best_effort:
        entries.append(flows(BEST_EFFORT, best_effort, 0, packet="1000B", burst="20kB"))
    return scenario(title, queue, entries)


def samples(cell: Factors, run: Run) -> Iterator[Sample]:
    """Mean throughput of the assured and of the best-effort flows, and the bottleneck's utilization."""
    for group in run.groups:
        yield Sample({**cell, "class": group.name}, "throughput", MBPS, mean_mbps(run, group.name))
    total = float(np.sum(run.flows("throughput_bps"))) / 1e6
    yield Sample(cell, "utilization", "fraction", utilization([total], CAPACITY_MBPS))
