"""Means and intervals over independent runs.

One run is one observation: the packets and flows of a run share its random numbers, so they never enter as
independent samples. The interval of a mean is two-sided, at 95 %: Student's t, `mean ± t(0.975, n - 1) * s /
sqrt(n)`. Where the observations are skewed, the side towards their tail is longer, by Hall's transformation
(P. Hall 1992, "On the removal of skewness by transformation", J. R. Stat. Soc. B 54, 221-228). The other side
is not shortened: few observations may look skewed by chance. A single run carries no interval. Shares and
percentiles have intervals of their own: `perhop.statistics.proportions`, `perhop.statistics.observations`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from perhop._engine import student_t_cdf, student_t_quantile

CONFIDENCE = 0.95
UPPER = 0.5 + CONFIDENCE / 2
"""Probability below the upper end of an interval."""
ALPHA = 0.05
"""Level of each of the two one-sided tests."""
FEWEST_SKEWED = 5
"""The skewness of fewer observations says nothing."""
MOST_RUNS = 1000
"""The most runs that a forecast proposes."""

Verdict: TypeAlias = Literal["equivalent", "different", "cannot tell"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate of a measure over runs: a value and its 95 % interval, in the unit of the observations.

    Attributes:
        mean: The value: the mean over the runs; of a share or a percentile, that of all runs together.
        ci95: (low, high), or None where there is only one observation. `high` is infinite where the runs
            bound it from below alone.
        runs: Number of runs that have a value.
        of: Number of runs; None where they all have one.
    """

    mean: float
    ci95: tuple[float, float] | None
    runs: int
    of: int | None = None

    @property
    def half_width(self) -> float | None:
        """Half the interval's length, or None where there is no interval."""
        return None if self.ci95 is None else (self.ci95[1] - self.ci95[0]) / 2

    @property
    def low(self) -> float:
        """Lower end of the interval; the value itself where there is no interval."""
        return self.mean if self.ci95 is None else self.ci95[0]

    @property
    def high(self) -> float:
        """Upper end of the interval; the value itself where there is no interval."""
        return self.mean if self.ci95 is None else self.ci95[1]

    @property
    def missing(self) -> int:
        """The number of runs without a value."""
        return 0 if self.of is None else self.of - self.runs

    @property
    def drawn(self) -> tuple[float, float] | None:
        """The interval's ends for a picture: one that is not known is as far away as the other."""
        if self.ci95 is None or math.isfinite(self.ci95[1]):
            return self.ci95
        return self.ci95[0], 2 * self.mean - self.ci95[0]

    def mapped(self, to: Callable[[float], float]) -> Estimate:
        """The estimate of a monotone function of the measure."""
        ends = None if self.ci95 is None else sorted(map(to, self.ci95))
        ci95 = None if ends is None else (ends[0], ends[1])
        return Estimate(to(self.mean), ci95, self.runs, self.of)

    def text(self, digits: int = 3, *, sign: bool = False) -> str:
        """`1.534 ± 0.024`, or `1.534` without an interval; with `sign`, `+0.123 ± 0.024`.

        Where the two sides of the interval differ, `1.534 (1.501 to 1.632)`.
        """
        mean = _fixed(self.mean, digits, sign=sign)
        if self.ci95 is None:
            return mean
        if is_symmetric(self.mean, *self.ci95):
            return f"{mean} ± {(self.ci95[1] - self.ci95[0]) / 2:.{digits}f}"
        if math.isinf(self.ci95[0]):
            known = _fixed(self.ci95[1], digits, sign=sign)
            return f"{mean} (not known)" if math.isinf(self.ci95[1]) else f"{mean} (under {known})"
        low, high = (_fixed(end, digits, sign=sign) for end in self.ci95)
        if math.isinf(self.ci95[1]):
            return f"{mean} (over {low})" if self.ci95[0] < self.mean else f"{mean} (or more)"
        return f"{mean} ({low} to {high})"


MOST_ASYMMETRY = 1.5
"""An interval is written with ± while neither side is longer than the other by more than this factor."""


def is_symmetric(mean: float, low: float, high: float) -> bool:
    """Whether the interval may be written as `mean ± half width`: not if that alone reaches below 0."""
    below, above = mean - low, high - mean
    if low >= 0 > mean - (high - low) / 2:
        return False
    return math.isfinite(above) and above <= MOST_ASYMMETRY * below and below <= MOST_ASYMMETRY * above


def _fixed(value: float, digits: int, *, sign: bool) -> str:
    rounded = round(value, digits) + 0.0  # never −0.000
    return (f"{rounded:+.{digits}f}" if sign else f"{rounded:.{digits}f}").replace("-", "−")


def estimate(observations: Sequence[float], *, least: float = -math.inf, most: float = math.inf) -> Estimate:
    """The mean of independent observations with its 95 % interval.

    Args:
        observations: One value for each run, all finite, at least one.
        least: No value can be lower; nor can the interval.
        most: No value can be higher.

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
    low, high = _interval(observations, mean)
    return Estimate(mean, (max(low, least), min(high, most)), n)


def _interval(observations: Sequence[float], mean: float) -> tuple[float, float]:
    """Student's t, and after Hall's transformation, whichever end is farther; t alone for few runs."""
    n = len(observations)
    error = math.sqrt(_variance(observations) / n)
    if error == 0:
        return mean, mean
    quantile = student_t_quantile(n - 1, UPPER)
    if n < FEWEST_SKEWED:
        return mean - quantile * error, mean + quantile * error
    spread = error * math.sqrt(n)
    cubes = math.fsum(((x - mean) / spread) ** 3 for x in observations)
    skewness = n / ((n - 1) * (n - 2)) * cubes / math.sqrt(n)
    below = max(quantile, _unskewed(quantile, skewness))
    above = max(quantile, -_unskewed(-quantile, skewness))
    return mean - below * error, mean + above * error


def _unskewed(quantile: float, skewness: float) -> float:
    """Hall's inverse transformation of a quantile; the skewness of the observations is over sqrt(n)."""
    if abs(skewness) < 1e-6:
        return quantile
    return 3 / skewness * (math.cbrt(1 + skewness * (quantile - skewness / 6)) - 1)


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
    return student_t_quantile(runs - 1, UPPER) * math.sqrt(_variance(observations) / runs)


def runs_to_exclude(found: Estimate, bound: float) -> int | None:
    """Return how many runs would give an interval that excludes a bound, if value and spread stay.

    The shorter side of the interval shrinks as t(0.975, n - 1) / sqrt(n); what the longer one has beyond it
    is due to skewness, and shrinks as 1 / n (Hall 1992). That of a share of which no run had an event is all
    of that kind.

    Args:
        found: An estimate with an interval.
        bound: In the unit of the mean.

    Returns:
        A number of runs, or None where `MOST_RUNS` would not do.

    Raises:
        ValueError: The estimate has no interval.
    """
    if found.ci95 is None:
        raise ValueError("a forecast needs an interval")
    room = abs(bound - found.mean)
    below, above = found.mean - found.low, found.high - found.mean
    side = above if bound > found.mean else below
    if room == 0 or math.isinf(side):
        return None
    shorter = min(below, above)
    spread = shorter * math.sqrt(found.runs) / student_t_quantile(found.runs - 1, UPPER)
    excess = (side - shorter) * found.runs
    for runs in range(found.runs + 1, MOST_RUNS + 1):
        if student_t_quantile(runs - 1, UPPER) * spread / math.sqrt(runs) + excess / runs <= room:
            return runs
    return None


def paired_difference(a: Mapping[int, float], b: Mapping[int, float]) -> Estimate:
    """The mean of a - b over the seeds that both share, with its own 95 % interval.

    Runs of two mechanisms on one seed share chance (start times, random streams of the blocks they have
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


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of two independent means, b - a, in the unit of the observations.

    Attributes:
        value: Mean of b minus mean of a.
        error: Its standard error, or None where one of the samples has no spread to go by.
        freedom: Welch's degrees of freedom, or None likewise.
    """

    value: float
    error: float | None
    freedom: float | None

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float] | None:
        """The two-sided t interval, or None without a standard error."""
        if self.error is None or self.freedom is None:
            return None
        half = student_t_quantile(self.freedom, 0.5 + confidence / 2) * self.error
        return self.value - half, self.value + half


def welch(a: Sequence[float], b: Sequence[float]) -> Difference:
    """The difference b - a of two independent samples, whose spreads may differ (Welch 1947).

    The degrees of freedom are those of Welch and Satterthwaite,
    (s_a²/n_a + s_b²/n_b)² / ((s_a²/n_a)²/(n_a - 1) + (s_b²/n_b)²/(n_b - 1)).

    Args:
        a: One value for each run, all finite, at least one.
        b: Likewise.

    Raises:
        ValueError: No observations, or one that is not finite.
    """
    value = estimate(b).mean - estimate(a).mean
    if min(len(a), len(b)) < 2:
        return Difference(value, None, None)
    parts = [_variance(sample) / len(sample) for sample in (a, b)]
    return Difference(value, math.sqrt(sum(parts)), _freedom(parts, [len(a), len(b)]))


def _freedom(parts: Sequence[float], runs: Sequence[int]) -> float:
    """Degrees of freedom of a difference, by each mean's part in its squared error."""
    largest = max(parts)
    if largest == 0:
        return float(sum(runs) - len(runs))  # without any spread every number says the same
    # As shares, whose squares do not vanish however small the parts are.
    shares = [part / largest for part in parts]
    return sum(shares) ** 2 / math.fsum(share**2 / (n - 1) for share, n in zip(shares, runs, strict=True))


def paired(a: Mapping[int, float], b: Mapping[int, float]) -> Difference:
    """The difference a - b of `paired_difference`, for intervals at any level.

    Raises:
        ValueError: No seed in common.
    """
    seeds = sorted(a.keys() & b.keys())
    if len(seeds) < 2:
        return Difference(paired_difference(a, b).mean, None, None)
    differences = [a[seed] - b[seed] for seed in seeds]
    error = math.sqrt(_variance(differences) / len(seeds))
    return Difference(math.fsum(differences) / len(seeds), error, float(len(seeds) - 1))


@dataclass(frozen=True, slots=True)
class Equivalence:
    """Whether two means differ by no more than a margin.

    Attributes:
        difference: b - a.
        margin: What counts as no difference, at most.
        p: The larger of the two one-sided p values; None where there is no spread to go by.
        verdict: "equivalent": p is at most 0.05, which is to say that the 90 % interval of the difference
        lies
            within the margin. "different": the 95 % interval lies beyond the margin on one side, and so
            excludes 0. "cannot tell": neither.
        runs_needed: For "cannot tell": roughly how many runs of b would tell, if difference and spread stay
            what they are and a has no fewer; None where it is decided, or where `MOST_RUNS` would not do.
    """

    difference: Difference
    margin: float
    p: float | None
    verdict: Verdict
    runs_needed: int | None = None


def equivalence(a: Sequence[float], b: Sequence[float], margin: float) -> Equivalence:
    """Two one-sided t tests of abs(mean of b - mean of a) < margin (Schuirmann 1987), with `welch`'s degrees.

    Args:
        a: One value for each run, all finite, at least one.
        b: Likewise.
        margin: At least 0; with 0 nothing is ever equivalent but what has no spread.

    Raises:
        ValueError: No observations, one that is not finite, or a negative margin.
    """
    if not margin >= 0:
        raise ValueError(f"a margin is at least 0, not {margin:g}")
    found = welch(a, b)
    if found.error is None or found.freedom is None:
        return Equivalence(found, margin, None, "cannot tell", 2)
    p = _tost(found.value, found.error, found.freedom, margin)
    if p <= ALPHA:
        return Equivalence(found, margin, p, "equivalent")
    low, high = found.interval() or (0.0, 0.0)
    if low > margin or high < -margin:
        return Equivalence(found, margin, p, "different")
    return Equivalence(found, margin, p, "cannot tell", _runs_needed(a, b, found.value, margin))


def _tost(value: float, error: float, freedom: float, margin: float) -> float:
    if error == 0:
        return 0.0 if abs(value) <= margin else 1.0
    above = student_t_cdf(freedom, -(value + margin) / error)
    below = student_t_cdf(freedom, (value - margin) / error)
    return max(above, below)


def _variance(observations: Sequence[float]) -> float:
    mean = math.fsum(observations) / len(observations)
    return math.fsum((x - mean) ** 2 for x in observations) / (len(observations) - 1)


def _runs_needed(a: Sequence[float], b: Sequence[float], value: float, margin: float) -> int | None:
    """The smallest number of runs of b whose interval would end before the margin."""
    room = abs(abs(value) - margin)
    confidence = 1 - 2 * ALPHA if abs(value) < margin else CONFIDENCE
    spreads = _variance(a), _variance(b)
    for runs in range(len(b) + 1, MOST_RUNS + 1):
        counts = max(len(a), runs), runs
        parts = [spread / count for spread, count in zip(spreads, counts, strict=True)]
        freedom = _freedom(parts, counts)
        if student_t_quantile(freedom, 0.5 + confidence / 2) * math.sqrt(sum(parts)) < room:
            return runs
    return None
