"""What Figures 2 and 3 share: assured flows of one profile against best effort, at either of two queues."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from perhop.measures.fairness import utilization
from perhop.studies.evidence import Sample
from perhop.studies.kim.common import (
    ASSURED,
    BEST_EFFORT,
    CAPACITY_MBPS,
    PACKET,
    flows,
    scenario,
)
from perhop.studies.sampling import MBPS, mean_mbps

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from perhop.measures.run import Run
    from perhop.show.declared import Factors


BUCKET = "20kB"
"""160 kbit, the bucket of section 3's text; 320 kbit is said for Table 1 only."""


@dataclass(frozen=True, slots=True)
class Queue:
    """One of the paper's two queues, with RI+O's OUT set there."""

    keys: Mapping[str, str]
    out: str


SMALL = Queue({"limit": "200p", "in": "60/180/0.02", "total": "30/90/0.05"}, "10/30/0.1")
"""The queue of the paragraph on Figure 2."""
LARGE = Queue({"limit": "868p", "in": "390/694/0.02", "total": "347/694/0.05"}, "5/15/0.01")
"""The queue of section 3's general setting, Table 1's, with the OUT set of that table's best row."""


def network(
    title: str, scheme: str, queue: Queue, *, assured: int, profile_mbps: float, best_effort: int
) -> Mapping[str, Any]:
    """`assured` flows of one profile and `best_effort` flows without one, through RIO or RI+O."""
    keys = {"aqm": scheme, **queue.keys, "mean-packet": f"{PACKET}B"}
    if scheme == "rio-plus-out":
        keys["out"] = queue.out
    entries = [flows(ASSURED, assured, profile_mbps, burst=BUCKET)]
    if best_effort:
        entries.append(flows(BEST_EFFORT, best_effort, 0, burst=BUCKET))
    return scenario(title, keys, entries)


def samples(cell: Factors, run: Run) -> Iterator[Sample]:
    """Mean throughput of the assured and of the best-effort flows, and the bottleneck's utilization."""
    for group in run.groups:
        yield Sample({**cell, "class": group.name}, "throughput", MBPS, mean_mbps(run, group.name))
    total = float(np.sum(run.flows("throughput_bps"))) / 1e6
    yield Sample(cell, "utilization", "fraction", utilization([total], CAPACITY_MBPS))
