"""What the paper's settings share: a 20 Mbit/s dumbbell with an RTT of 100 ms, greedy NewReno, 100 s."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from perhop.judging import Judgement
from perhop.measures import holds_up_to
from perhop.studies.paper import Paper
from perhop.study import Axis, Row

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perhop.runs import Run
    from perhop.statistics import Estimate
    from perhop.study import Evidence, Factors

stated = Paper(__package__).item
"""What the paper says about one item ("table1", …)."""
PAPER = (
    'Kim, Park and Bahk, "A modified RIO queue management scheme that reduces the bandwidth skew problem in '
    'Assured Service"'
)
CAPACITY_MBPS = 20.0
MBPS = "Mbit/s"
ASSURED = "assured"
BEST_EFFORT = "best-effort"

SCHEMES = Axis("scheme", "Scheme", {"rio": "RIO", "rio-plus-out": "RI+O"})


def flows(name: str, count: int, profile_mbps: float, *, packet: str, burst: str) -> dict[str, Any]:
    """`count` greedy NewReno flows; a profile of 0 is best effort."""
    entry: dict[str, Any] = {
        "name": name,
        "count": count,
        "from": "edge",
        "to": "core",
        "access": {"rate": "10Mbps", "delay": "1ms"},
        "transport": {"tcp": "newreno", "packet": packet},
        "start": "0s..1s",
    }
    if profile_mbps > 0:
        entry["profile"] = {"rate": f"{profile_mbps:g}Mbps", "marker": "token-bucket", "burst": burst}
    return entry


def scenario(title: str, queue: Mapping[str, str], entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The dumbbell with this queue at the bottleneck."""
    return {
        "title": title,
        "duration": "100s",
        "links": {
            "bottleneck": {
                "from": "edge",
                "to": "core",
                "rate": "20Mbps",
                "delay": "48ms",
                "queue": dict(queue),
            }
        },
        "flows": list(entries),
    }


def mean_mbps(run: Run, name: str) -> float:
    """Mean throughput over the flows of one entry, Mbit/s."""
    return float(np.mean(run.of_group(name, "throughput_bps"))) / 1e6


@dataclass(frozen=True, slots=True)
class Curve:
    """What assured flows get at growing load, against the rate they were promised.

    Attributes:
        factors: Names the curve.
        load: The factor that grows along it.
        levels: Its values, lightest first.
        wanted: The promised rate, Mbit/s.
        unit: What follows a level in text.
    """

    factors: Factors
    load: str
    levels: Sequence[int]
    wanted: float
    unit: str

    def at(self, level: int) -> Factors:
        """The factors of the assured flows' throughput at one level."""
        return {**self.factors, self.load: level, "class": ASSURED}

    def estimates(self, evidence: Evidence) -> list[Estimate]:
        """Throughput at every level, Mbit/s."""
        return [evidence.estimate("throughput", self.at(level)) for level in self.levels]

    def limit(self, evidence: Evidence, *, strict: bool = False) -> int | None:
        """The level up to which the promise holds by the means, or by the lower ends of their intervals."""
        found = self.estimates(evidence)
        return holds_up_to(self.levels, [e.low if strict else e.mean for e in found], self.wanted)

    def published(self, evidence: Evidence) -> int:
        """The limit that the paper states.

        Raises:
            KeyError: It states none.
        """
        value = evidence.published("holds_up_to", {**self.factors, "reading": "mean"})
        if value is None:
            raise KeyError(str(self.factors))
        return int(value)

    def rows(self, evidence: Evidence, *, never: float | None) -> list[Row]:
        """Both readings of the limit as rows; `never` where the promise fails from the first level on.

        The paper's limit stands beside the reading by the means, by which claims are judged.
        """
        published = self.published(evidence)
        rows = []
        for reading, stated_limit in (("mean", published), ("interval", None)):
            limit = self.limit(evidence, strict=reading == "interval")
            mean = never if limit is None else float(limit)
            factors = {**self.factors, "reading": reading}
            rows.append(
                Row(factors, "holds_up_to", self.unit.strip(), stated_limit, mean, None, evidence.runs)
            )
        return rows

    def judge(self, evidence: Evidence) -> Judgement:
        """Whether the limit by the means is the paper's; the stricter reading is told beside it."""
        published = self.published(evidence)
        plain, strict = self.limit(evidence), self.limit(evidence, strict=True)
        after = [level for level in self.levels if level > published][:1]
        near = ", ".join(
            f"{evidence.estimate('throughput', self.at(level)).text()} at {level}{self.unit}"
            for level in (published, *after)
        )
        by_interval = f" ({self._say(strict)} by the lower end of the interval)" if evidence.runs > 1 else ""
        return Judgement(
            plain == published,
            f"published: up to {published}{self.unit}; measured: {self._say(plain)}{by_interval}. "
            f"Assured flows get {near} (Mbit/s, profile {self.wanted:g}).",
        )

    def _say(self, level: int | None) -> str:
        return "not even at the first level" if level is None else f"up to {level}{self.unit}"
