"""Figures 2 and 3's setting: assured flows of one profile against growing load, at either of two queues."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from perhop.measures.fairness import holds_up_to, utilization
from perhop.measures.run import Run
from perhop.show.declared import Axis, Factors, Plot, Reference, Row, Where
from perhop.statistics.judging import at_least, below
from perhop.studies.evidence import Evidence, Sample
from perhop.studies.judges import Judge, Numbers, Statement, levels
from perhop.studies.kim.common import ASSURED, BEST_EFFORT, CAPACITY_MBPS, PACKET, SCHEMES, flows, scenario
from perhop.studies.sampling import MBPS, mean_mbps

BUCKET = "20kB"
"""160 kbit, the bucket of section 3's text; 320 kbit is said for Table 1 only."""
KEEPS = 0.99
"""A profile counts as kept from this fraction of it on: the paper reads its limits off figures, which show
no thousandths."""
OTHER_TOLERANCES = {"no tolerance": 1.0, "3 % of tolerance": 0.97}
"""The fractions that do not decide, by the names of their rules."""
TOLERANCES = {"": KEEPS, **OTHER_TOLERANCES}
RIO, RI_PLUS_O = "rio", "rio-plus-out"
BY_READING = Axis("reading", "Reading", {"mean": "by the mean", "interval": "by the interval"})
Y_LABEL = "Mbit/s per assured flow"


SMALL = {"limit": "200p", "in": "60/180/0.02", "total": "30/90/0.05", "out": "10/30/0.1"}
"""The queue of the paragraph on Figure 2, with RI+O's OUT set."""
LARGE = {"limit": "868p", "in": "390/694/0.02", "total": "347/694/0.05", "out": "5/15/0.01"}
"""The queue of section 3's general setting, Table 1's, with the OUT set of that table's best row."""


def network(
    title: str, scheme: str, queue: Mapping[str, str], *, assured: int, profile_mbps: float, best_effort: int
) -> Mapping[str, Any]:
    """`assured` flows of one profile and `best_effort` flows without one, through RIO or RI+O."""
    keys = {"aqm": scheme, "mean-packet": f"{PACKET}B", **queue}
    if scheme == RIO:
        keys.pop("out")
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


@dataclass(frozen=True, slots=True)
class Curve:
    """The throughput of assured flows at growing load, against the rate they were promised.

    Attributes:
        factors: Names the curve.
        load: The factor that grows along it.
        levels: Its values, lightest first.
        wanted: The promised rate, Mbit/s.
        unit: What follows a level in text.
        published: The level up to which the paper says that the promise is kept, if it says one.
    """

    factors: Factors
    load: str
    levels: Sequence[int]
    wanted: float
    unit: str
    published: int | None = None

    def at(self, level: int) -> Factors:
        """The factors of the assured flows' throughput at one level."""
        return {**self.factors, self.load: level, "class": ASSURED}

    def cells(self) -> list[Factors]:
        """The scenarios of all levels."""
        return [{**self.factors, self.load: level} for level in self.levels]

    def measured(self, evidence: Evidence) -> list[int]:
        """The levels that were run: all of them, but for a map of assumptions."""
        return [level for level in self.levels if evidence.measured("throughput", self.at(level))]

    def rates(self, listed: Iterable[int]) -> Numbers:
        """Throughput at those of some levels that were run, Mbit/s: `1.98 ± 0.01 at 16 best-effort flows`."""
        found = levels("throughput", {level: self.at(level) for level in listed}, measured=True)
        return found.reads(f"{{value}} at {{name}}{self.unit}")

    def limit(self, evidence: Evidence, *, strict: bool = False) -> int | None:
        """The level up to which the promise is kept by the means, or by the lower ends of their intervals."""
        found = self.rates(self.levels)(evidence)
        kept = [one.low if strict else one.mean for one in found.values()]
        return holds_up_to(list(found), kept, KEEPS * self.wanted)

    def rows(self, evidence: Evidence, *, never: float | None) -> Iterator[Row]:
        """Both readings of the limit as rows; `never` where the promise fails from the first level on."""
        stated = evidence.published("holds_up_to", {**self.factors, "reading": "mean"})
        for reading, printed in (("mean", stated), ("interval", None)):
            limit = self.limit(evidence, strict=reading == "interval")
            mean = never if limit is None else float(limit)
            yield evidence.row(
                {**self.factors, "reading": reading}, "holds_up_to", self.unit.strip(), mean, printed
            )

    def keeps_to(self, last: int, keeps: float = KEEPS) -> Statement:
        """The promise is kept at every level up to `last`."""
        return self.rates(level for level in self.levels if level <= last).all(at_least, keeps * self.wanted)

    def misses(self, level: int, keeps: float = KEEPS) -> Statement:
        """The promise is not kept at a level."""
        return self.rates([level]).all(below, keeps * self.wanted)

    def judge(self, keeps: float = KEEPS, *, contrasted: bool = True) -> Judge:
        """Judge whether the promise is kept up to the paper's limit, and no more at the next level.

        Args:
            keeps: The fraction of a profile from which on it counts as kept.
            contrasted: The paper says what happens at the next level, too.

        Raises:
            ValueError: The paper states no limit.
        """
        last = self.published
        if last is None:
            raise ValueError(f"the paper states no limit of {dict(self.factors)}")
        kept, near = self.keeps_to(last, keeps), self.rates([last])
        if contrasted:
            after = self.rates([level for level in self.levels if level > last]).first()
            kept, near = kept & after.all(below, self.wanted), near | after
        return kept.said(
            f"published: up to {last}{self.unit}; measured by the means: {{limit}}. Assured flows get "
            f"{{near}} (Mbit/s, profile {self.wanted:g}).",
            limit=lambda evidence: self._say(self.limit(evidence)),
            near=near,
        )

    def _say(self, level: int | None) -> str:
        return "not even at the first level" if level is None else f"up to {level}{self.unit}"


def limits(drawn: Iterable[Curve], never: float | None = None) -> Callable[[Evidence], Iterator[Row]]:
    """The summaries of a study of curves: up to which load each keeps its promise; see `Curve.rows`."""
    return lambda evidence: (row for curve in drawn for row in curve.rows(evidence, never=never))


def plot(
    name: str,
    title: str,
    x: Axis,
    facet: Axis,
    wanted: Mapping[Any, float],
    *,
    where: Where = MappingProxyType({}),
    **more: Any,  # noqa: ANN401
) -> Plot:
    """A plot of what an assured flow gets by load, with the promised rate of each panel."""
    reference = Reference("profile", facet.factor, wanted)
    of_assured = {"class": ASSURED, **where}
    return Plot(
        name, title, "lines", "throughput", x, SCHEMES, Y_LABEL, facet, of_assured, (reference,), **more
    )
