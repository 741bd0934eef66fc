"""What the paper's settings share: a 20 Mbit/s dumbbell with an RTT of 100 ms, greedy NewReno, 100 s.

The NewReno is that of ns-2 in 1998 (`tcp = "ns-1998"`), with the largest window that TCP can advertise
without the window scale option.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perhop._engine import student_t_quantile
from perhop.measures.fairness import holds_up_to
from perhop.show.declared import Axis, Row
from perhop.statistics.intervals import UPPER, Estimate
from perhop.statistics.judging import all_of, at_least, below, judge
from perhop.studies.paper import Paper

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from perhop.show.declared import Factors
    from perhop.statistics.judging import Check, Judgement
    from perhop.studies.evidence import Evidence

THIS = Paper(__package__)
"""What the paper says, and the studies of it."""
PAPER = (
    'Kim, Park and Bahk, "A modified RIO queue management scheme that reduces the bandwidth skew problem in '
    'Assured Service"'
)
LINUX_TCP: Mapping[str, Any] = {"tcp": "linux", "loss-detection": "duplicate-acks", "slow-start": "standard"}
"""Linux's SACK, PRR and CUBIC, with the loss detection of RFC 6675: without RACK-TLP and HyStart."""
CAPACITY_MBPS = 20.0
ASSURED = "assured"
BEST_EFFORT = "best-effort"

SCHEMES = Axis("scheme", "Scheme", {"rio": "RIO", "rio-plus-out": "RI+O"})

TCP = "ns-1998"
"""The NewReno of the paper's time."""
LARGEST_WINDOW = 65_535
"""Bytes that TCP's window field can advertise (RFC 793), without the scale option of RFC 1323."""
HEADERS = 40
PACKET = 576
"""Bytes of every packet, that of the draft whose setting section 3 takes over."""
KEEPS = 0.99
"""A profile counts as kept from this fraction of it on: the paper reads its limits off figures, which show
no thousandths."""
OTHER_TOLERANCES = {"no tolerance": 1.0, "3 % of tolerance": 0.97}
"""The fractions that do not decide, by the names of their rules."""


def window(packet: int) -> str:
    """The largest window in packets of so many bytes, headers included."""
    return f"{LARGEST_WINDOW // (packet - HEADERS)}p"


def flows(name: str, count: int, profile_mbps: float, *, burst: str) -> dict[str, Any]:
    """`count` greedy NewReno flows; a profile of 0 is best effort."""
    entry: dict[str, Any] = {
        "name": name,
        "count": count,
        "from": "edge",
        "to": "core",
        "access": {"rate": "10Mbps", "delay": "1ms"},
        "transport": {"tcp": TCP, "packet": f"{PACKET}B", "window": window(PACKET)},
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


def scaled(found: Estimate, factor: float) -> Estimate:
    """An estimate in another unit."""
    ends = None if found.ci95 is None else (found.ci95[0] * factor, found.ci95[1] * factor)
    return Estimate(found.mean * factor, ends, found.runs)


def corrected(found: Estimate, comparisons: int) -> Estimate:
    """The interval of one of several comparisons, wide enough for all of them together (Bonferroni).

    Each side is longer by the ratio of the two quantiles of Student's t.
    """
    if found.ci95 is None or found.runs < 2:
        return found
    freedom = found.runs - 1
    longer = student_t_quantile(freedom, 1 - (1 - UPPER) / comparisons) / student_t_quantile(freedom, UPPER)
    low = found.mean - longer * (found.mean - found.low)
    high = found.mean + longer * (found.high - found.mean)
    return Estimate(found.mean, (low, high), found.runs, found.of)


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

    def measured(self, evidence: Evidence) -> list[int]:
        """The levels that were run: all of them, but for a map of assumptions."""
        return [level for level in self.levels if evidence.measured("throughput", self.at(level))]

    def found(self, evidence: Evidence, level: int) -> Estimate:
        """Throughput at one level, Mbit/s."""
        return evidence.estimate("throughput", self.at(level))

    def estimates(self, evidence: Evidence) -> list[Estimate]:
        """Throughput at every measured level, Mbit/s."""
        return [self.found(evidence, level) for level in self.measured(evidence)]

    def kept_from(self, keeps: float = KEEPS) -> float:
        """The rate from which the promise counts as kept, Mbit/s."""
        return keeps * self.wanted

    def limit(self, evidence: Evidence, *, strict: bool = False) -> int | None:
        """The level up to which the promise is kept by the means, or by the lower ends of their intervals."""
        found = self.estimates(evidence)
        rates = [e.low if strict else e.mean for e in found]
        return holds_up_to(self.measured(evidence), rates, self.kept_from())

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
        """Both readings of the limit as rows; `never` where the promise fails from the first level on."""
        stated_limit = evidence.published("holds_up_to", {**self.factors, "reading": "mean"})
        rows = []
        for reading, printed in (("mean", stated_limit), ("interval", None)):
            limit = self.limit(evidence, strict=reading == "interval")
            mean = never if limit is None else float(limit)
            factors = {**self.factors, "reading": reading}
            rows.append(Row(factors, "holds_up_to", self.unit.strip(), printed, mean, None, evidence.runs))
        return rows

    def keeps_to(self, evidence: Evidence, last: int, keeps: float = KEEPS) -> Check:
        """The promise is kept at every level up to `last`."""
        return all_of(
            *(
                at_least(self.found(evidence, level), self.kept_from(keeps))
                for level in self.measured(evidence)
                if level <= last
            )
        )

    def misses(self, evidence: Evidence, level: int, keeps: float = KEEPS) -> Check:
        """The promise is not kept at a level."""
        return below(self.found(evidence, level), self.kept_from(keeps))

    def judge(self, evidence: Evidence, keeps: float = KEEPS) -> Judgement:
        """Whether the promise is kept up to the paper's limit, and no more at the next level."""
        published = self.published(evidence)
        after = [level for level in self.measured(evidence) if level > published][:1]
        return self._judge(evidence, published, after, keeps)

    def judge_kept(self, evidence: Evidence, keeps: float = KEEPS) -> Judgement:
        """Whether the promise is kept up to the paper's limit, of which the paper says no more."""
        return self._judge(evidence, self.published(evidence), [], keeps)

    def _judge(self, evidence: Evidence, published: int, after: Sequence[int], keeps: float) -> Judgement:
        check = all_of(
            self.keeps_to(evidence, published, keeps),
            *(below(self.found(evidence, level), self.wanted) for level in after),
        )
        near = ", ".join(
            f"{self.found(evidence, level).text()} at {level}{self.unit}" for level in (published, *after)
        )
        return judge(
            check,
            f"published: up to {published}{self.unit}; measured by the means: "
            f"{self._say(self.limit(evidence))}. Assured flows get {near} (Mbit/s, profile {self.wanted:g}).",
        )

    def fails(self, evidence: Evidence) -> Check:
        """The promise is broken at every level."""
        return all_of(*(below(found, self.wanted) for found in self.estimates(evidence)))

    def _say(self, level: int | None) -> str:
        return "not even at the first level" if level is None else f"up to {level}{self.unit}"


def at_tolerance(
    judged: Callable[[Evidence, float], Judgement], keeps: float
) -> Callable[[Evidence], Judgement]:
    """A judge with one tolerance of a profile."""
    return lambda evidence: judged(evidence, keeps)


def tolerances(judged: Callable[[Evidence, float], Judgement]) -> dict[str, Callable[[Evidence], Judgement]]:
    """The judges of a claim by the tolerance of a profile: the one that decides, and the others."""
    others = {name: at_tolerance(judged, keeps) for name, keeps in OTHER_TOLERANCES.items()}
    return {"": at_tolerance(judged, KEEPS), **others}
