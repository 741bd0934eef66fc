"""Means and intervals over independent runs.

One run is one observation: the packets and the flows of a run share its luck, so they never enter as
independent samples. All intervals are two-sided 95 % Student t intervals, `mean ± t(0.975, n - 1) * s /
sqrt(n)`; the factor on s is 3.182/√4 for four runs and 2.571/√6 for six. A single run carries no interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scipy.special import stdtrit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over runs and its 95 % interval, in the unit of the observations.

    Attributes:
        mean: Arithmetic mean of the observations.
        ci95: (low, high), or None where there is only one observation.
        runs: Number of observations.
    """

    mean: float
    ci95: tuple[float, float] | None
    runs: int

    @property
    def half_width(self) -> float | None:
        """Half the interval's length, or None where there is no interval."""
        return None if self.ci95 is None else (self.ci95[1] - self.ci95[0]) / 2

    @property
    def low(self) -> float:
        """Lower end of the interval; the mean itself where there is no interval."""
        return self.mean if self.ci95 is None else self.ci95[0]

    @property
    def high(self) -> float:
        """Upper end of the interval; the mean itself where there is no interval."""
        return self.mean if self.ci95 is None else self.ci95[1]

    def text(self, digits: int = 3, *, sign: bool = False) -> str:
        """`1.534 ± 0.024`, or `1.534` without an interval; with `sign`, `+0.123 ± 0.024`."""
        mean = (f"{self.mean:+.{digits}f}" if sign else f"{self.mean:.{digits}f}").replace("-", "−")
        return mean if self.half_width is None else f"{mean} ± {self.half_width:.{digits}f}"


def estimate(observations: Sequence[float]) -> Estimate:
    """The mean of independent observations with its 95 % t interval.

    Args:
        observations: One value for each run, all finite, at least one.

    Raises:
        ValueError: No observations, or one that is not finite.
    """
    n = len(observations)
    if n == 0:
        raise ValueError("an estimate needs at least one observation")
    if not all(math.isfinite(x) for x in observations):
        raise ValueError("an estimate needs finite observations")
    mean = math.fsum(observations) / n
    if n == 1:
        return Estimate(mean, None, 1)
    variance = math.fsum((x - mean) ** 2 for x in observations) / (n - 1)
    half = float(stdtrit(n - 1, 0.5 + CONFIDENCE / 2)) * math.sqrt(variance / n)
    return Estimate(mean, (mean - half, mean + half), n)


def half_width_of(observations: Sequence[float], runs: int) -> float:
    """Half the 95 % t interval that a mean of `runs` runs would have, by the spread of these observations.

    For holding a published interval against runs of another number: t(0.975, runs - 1) * s / sqrt(runs).

    Args:
        observations: One value for each run, at least two.
        runs: At least 2.

    Raises:
        ValueError: Too few observations or runs.
    """
    n = len(observations)
    if n < 2 or runs < 2:
        raise ValueError("a spread needs at least two observations, and an interval at least two runs")
    mean = math.fsum(observations) / n
    variance = math.fsum((x - mean) ** 2 for x in observations) / (n - 1)
    return float(stdtrit(runs - 1, 0.5 + CONFIDENCE / 2)) * math.sqrt(variance / runs)


def paired_difference(a: Mapping[int, float], b: Mapping[int, float]) -> Estimate:
    """The mean of a - b over the seeds that both share, with its own 95 % t interval.

    Runs of two mechanisms on one seed share their luck (start times, random streams of the blocks they have
    in common), which cancels in the difference.

    Args:
        a: Observation by seed.
        b: Observation by seed.

    Raises:
        ValueError: No seed in common.
    """
    seeds = sorted(a.keys() & b.keys())
    if not seeds:
        raise ValueError("a paired difference needs runs on the same seeds")
    return estimate([a[seed] - b[seed] for seed in seeds])


def overlap(a: Estimate, b: Estimate) -> bool:
    """Whether two 95 % intervals share a point; an estimate without an interval counts as its mean alone.

    A cautious screen for two independent samples, not a test of equality: intervals that overlap slightly may
    still belong to means that differ.
    """
    return a.low <= b.high and b.low <= a.high
