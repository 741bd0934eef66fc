"""When there are enough runs: intervals that are valid though runs are added until they are narrow.

Who stops at the first interval that is narrow enough selects narrow ones: of normal values, such intervals at
95 % contain the truth in as few as 92 % of cases. Simons (1968, "On the cost of not knowing the variance when
making a fixed-width confidence interval for the mean", Ann. Math. Stat. 39, 1946-1952) showed that a fixed
number of runs restores the coverage, whatever the spread of the values. So each interval, at a look and in
results, is as wide as that of `SPARE` runs less. A stricter level for every look (Pocock 1977, Biometrika 64,
191-199) costs a share of the runs instead, about a quarter, however many there are.

The next look is halfway to where the interval will be narrow enough by forecast, as in Hall's accelerated
sampling (P. Hall 1983, "Sequential estimation saving sampling operations", J. R. Stat. Soc. B 45, 219-223):
few looks, and few runs beyond those that are needed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from perhop.statistics.intervals import Estimate

if TYPE_CHECKING:
    from perhop.statistics.observations import Observations

SPARE = 3
"""Runs that an interval does not count: the fewest with which normal values of any spread are covered in 95 %
of cases, by simulation of the rule (tests/python/statistics/test_stopping.py)."""
FEWEST = SPARE + 1
"""Fewer runs have no interval."""
TOO_FEW = f"must be at least {FEWEST} where intervals decide how many there are"
"""The text of messages about a smaller number."""
LEAST = 5
"""Runs before the first look, if nobody says another number: fewer say little of skewed values."""
METRICS = ("flows.*.throughput_bps",)
"""Patterns of the metrics that get narrow intervals, if nobody names others: the throughput of each class."""
_NEARER = 0.5
"""The part of the missing runs, by forecast, that is made before the next look."""
_GROWTH = 0.5
"""The part of the runs so far that is added before the next look, at most."""
_STEP = 0.05
"""And at least."""


@dataclass(frozen=True, slots=True)
class Look:
    """The widest interval of the metrics that are to get narrow ones, after some runs.

    Attributes:
        runs: How many.
        metric: The one with the widest interval in proportion to its value; empty if no metric has a value.
        estimate: Its value and interval; None where it is not known.
        reach: The longer side of the interval over the value; infinite where it is not known.
    """

    runs: int
    metric: str
    estimate: Estimate | None
    reach: float


@dataclass(frozen=True, slots=True)
class Until:
    """Add runs until intervals are narrow.

    Attributes:
        width: Each side of a 95 % interval over its value, at most.
        metrics: Patterns of the metrics of which this must hold.
        least: Runs before the first look.
        most: Runs at most.
    """

    width: float
    metrics: tuple[str, ...]
    least: int
    most: int

    def is_met(self, look: Look) -> bool:
        """Whether all intervals are narrow enough."""
        return look.reach <= self.width

    def needed(self, look: Look) -> float:
        """Forecast the number of runs whose intervals are narrow enough, if values and spreads stay."""
        return SPARE + (look.runs - SPARE) * (look.reach / self.width) ** 2

    def after(self, look: Look) -> int:
        """Return after how many runs to look again; the same number if that was the last look."""
        if self.is_met(look) or not look.metric:
            return look.runs
        missing = _NEARER * (self.needed(look) - look.runs)
        step = max(1, int(_STEP * look.runs), int(min(missing, _GROWTH * look.runs)))
        return min(look.runs + step, self.most)


def look(observed: Mapping[str, Observations], runs: int) -> Look:
    """Find the widest interval of some metrics.

    A metric that no run has does not apply, such as retransmissions of UDP where a pattern names those of all
    flows. That of a metric which some runs lack is not known; nor, in proportion, is one around 0, such as a
    loss of which no run has any. A rate that is 0 in all runs is known.

    Args:
        observed: What the runs gave, by metric.
        runs: How many runs.
    """
    found = Look(runs, "", None, math.inf)
    reached = -math.inf
    for metric, one in observed.items():
        if all(map(math.isnan, one.values)):
            continue
        estimate = interval_of(one)
        reach = reach_of(estimate) if one.has_all else math.inf
        if reach > reached:
            found, reached = Look(runs, metric, estimate, reach), reach
    return found


def interval_of(one: Observations) -> Estimate | None:
    """The value of a metric, with an interval that is valid though its width decides on the runs."""
    return widened(one.estimate, len(one.values), one.least, one.most)


def widened(
    found: Estimate | None, runs: int, least: float = -math.inf, most: float = math.inf
) -> Estimate | None:
    """An estimate with an interval as wide as that of `SPARE` runs less.

    Args:
        found: With its interval over the runs.
        runs: How many, at least `FEWEST`.
        least: No value can be lower; nor can the interval.
        most: No value can be higher.
    """
    if found is None or found.ci95 is None:
        return found
    factor = math.sqrt(runs / (runs - SPARE))
    low, high = (found.mean + factor * (end - found.mean) for end in found.ci95)
    return replace(found, ci95=(max(low, least), min(high, most)))


def reach_of(found: Estimate | None) -> float:
    """The longer side of an interval over its value; infinite where it is not known."""
    if found is None or found.ci95 is None:
        return math.inf
    side = max(found.high - found.mean, found.mean - found.low)
    if side == 0:
        return 0.0
    return side / abs(found.mean) if found.mean else math.inf
