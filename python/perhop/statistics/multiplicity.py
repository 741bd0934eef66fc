"""Many comparisons at once: what may be said of the best of several settings, and of many verdicts.

The highest and the lowest of k settings differ by chance alone, the more the larger k is. So the difference
of two settings that were picked by their means is held against the studentized range (Tukey 1953, "The
problem of multiple comparisons"): the distribution of the range of k means over their standard error. All
settings run on the same seeds, so the error is that of the paired difference of these two settings
(Games and Howell 1976, J. Educ. Stat. 1, 113-125, do the same with Welch's error for independent samples):
settings may then differ in spread. Of normal observations the means do not depend on the errors, so for
settings of equal spread the level of the test of the extremes is exact.

Many verdicts at 95 % each: `holm` corrects p values (Holm 1979, Scand. J. Stat. 6, 65-70).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from perhop._engine import student_t_cdf, student_t_quantile
from perhop.statistics.intervals import ALPHA, UPPER, Estimate, half_width_of
from perhop.statistics.observations import Observations, ObservedQueue, paired

_REACH = 9.0
"""Standard deviations beyond which the normal distribution is left out."""
_GRID = np.linspace(-_REACH, _REACH, 40_001)
"""Points between which the normal distribution is linear to 3e-8."""
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(200)


def studentized_range_cdf(q: float, k: int, freedom: float) -> float:
    """The probability that the range of k normal means over their standard error is at most q.

    By the double integral over the largest mean and over the standard error, with Gauss and Legendre's
    quadrature; to five digits.

    Args:
        q: The range over the standard error of one mean.
        k: How many means, at least 2.
        freedom: Degrees of freedom of the standard error, at least 1.
    """
    if q <= 0:
        return 0.0
    sigma = 1 / math.sqrt(2 * freedom)
    low, high = max(0.0, 1 - _REACH * sigma), 1 + _REACH * sigma
    spreads = low + (high - low) * (_NODES + 1) / 2
    weights = _WEIGHTS * (high - low) / 2 * _chi_density(spreads, freedom)
    return min(1.0, float(weights @ _range_cdf(q * spreads, k)))


def _chi_density(spreads: NDArray[np.float64], freedom: float) -> NDArray[np.float64]:
    """The density of a standard error over its true value."""
    constant = freedom / 2 * math.log(freedom / 2) - math.lgamma(freedom / 2) + math.log(2)
    logs = (freedom - 1) * np.log(spreads) - freedom / 2 * spreads**2
    return np.exp(constant + logs)


@functools.cache
def _normal() -> NDArray[np.float64]:
    """The normal distribution at `_GRID`."""
    return np.array([0.5 * math.erfc(-z / math.sqrt(2)) for z in _GRID.tolist()])


def _range_cdf(widths: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    """The probability that the range of k standard normal values is at most that wide."""
    largest = _REACH * _NODES
    density = np.exp(-(largest**2) / 2) / math.sqrt(2 * math.pi) * _WEIGHTS * _REACH
    normal = _normal()
    within = np.interp(largest, _GRID, normal) - np.interp(largest - widths[:, None], _GRID, normal)
    return k * np.asarray(within ** (k - 1) @ density)


@functools.lru_cache(maxsize=1024)
def studentized_range_quantile(level: float, k: int, freedom: float) -> float:
    """The value that the studentized range of k means does not exceed with this probability.

    Args:
        level: Between 0 and 1.
        k: How many means, at least 2.
        freedom: Degrees of freedom, at least 1.
    """
    low, high = 0.0, 4.0
    while studentized_range_cdf(high, k, freedom) < level:
        low, high = high, 2 * high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if studentized_range_cdf(middle, k, freedom) < level else (low, middle)
    return (low + high) / 2


def difference(a: Observations, b: Observations) -> Estimate | None:
    """The difference a - b over the runs on the same seeds, with its symmetric 95 % interval.

    Student's t of the differences. Where no run shows how rare an event is, the longer side of the interval
    of `perhop.statistics.observations.paired`. Its ends are otherwise corrected for skewness; of two settings
    that were picked by their means, that correction is picked, too.

    Returns:
        None where no run has both.
    """
    found = paired(a, b)
    if found is None or found.ci95 is None or a.is_bound or b.is_bound:
        return found  # of lower bounds, with the side that is not known
    if any(one.estimate is not None and _is_open(one.estimate) for one in (a, b)):
        half = max(found.high - found.mean, found.mean - found.low)
    else:
        places = [place for place in range(len(a.values)) if a.counts_in(place) and b.counts_in(place)]
        differences = [x - y for x, y in zip(a.linear(places), b.linear(places), strict=True)]
        half = half_width_of(differences, len(differences))
    return Estimate(found.mean, (found.mean - half, found.mean + half), found.runs, found.of)


def _is_open(found: Estimate) -> bool:
    """All runs share an extreme value, and the interval says how far from it the true one may be."""
    return found.low < found.high and found.mean in {found.low, found.high}


def of_extremes(found: Estimate, k: int, alpha: float = ALPHA) -> Estimate:
    """The interval of a `difference` of two out of k settings that were picked by their means.

    Each side is longer than that of a single difference by q(1 - alpha; k, n - 1) / sqrt(2) over
    t(0.975, n - 1); with two settings and 5 % it is as long.

    Args:
        found: Over n pairs of runs, with its 95 % interval.
        k: How many settings there were to pick from, at least 2.
        alpha: The probability that the interval of the extremes of equal settings does not contain 0.
    """
    if found.ci95 is None or found.runs < 2:
        return found
    freedom = float(found.runs - 1)
    longer = studentized_range_quantile(1 - alpha, k, freedom) / math.sqrt(2)
    longer /= student_t_quantile(freedom, UPPER)
    low = found.mean - longer * (found.mean - found.low)
    high = found.mean + longer * (found.high - found.mean)
    return Estimate(found.mean, (low, high), found.runs, found.of)


@dataclass(frozen=True, slots=True)
class Ranking:
    """Several settings by one measure, and which of them the runs tell apart.

    Attributes:
        order: Places of the settings that have a value, lowest first.
        below: Pairs of places of which the first is surely lower than the second.
    """

    order: tuple[int, ...]
    below: frozenset[tuple[int, int]]

    def apart(self, one: int, other: int) -> bool:
        """Whether two settings surely differ."""
        return (one, other) in self.below or (other, one) in self.below


def ranking(settings: Sequence[Observations | None], alpha: float = ALPHA) -> Ranking:
    """Rank settings that ran on the same seeds, and return which of them differ.

    Two settings differ where the interval of `of_extremes` excludes 0, and so does that of every pair that
    encloses them in the order of the means. So nothing is said of equal settings unless their extremes are
    distinguished, which has the probability alpha; where only some are equal it is less.

    Args:
        settings: What the runs of each gave, on the same seeds in the same order; None where there is none.
        alpha: The probability of a difference that is not there, in one or more pairs.
    """
    known = [(place, one) for place, one in enumerate(settings) if one is not None]
    means = {place: found.mean for place, one in known if (found := one.estimate) is not None}
    order = sorted(means, key=lambda place: (means[place], place))
    below: set[tuple[int, int]] = set()
    for span in range(len(order) - 1, 0, -1):
        for first in range(len(order) - span):
            last = first + span
            around = [(first - 1, last), (first, last + 1)]
            inside = [(a, b) for a, b in around if a >= 0 and b < len(order)]
            if all((order[a], order[b]) in below for a, b in inside):
                low, high = settings[order[first]], settings[order[last]]
                assert low is not None
                assert high is not None
                if exceeds(high, low, len(order), alpha):
                    below.add((order[first], order[last]))
    return Ranking(tuple(order), frozenset(below))


def first_runs(found: Observations, runs: int) -> Observations:
    """Return the observations of the first `runs` runs."""
    return replace(
        found,
        values=found.values[:runs],
        trials=None if found.trials is None else found.trials[:runs],
        queues=tuple(
            ObservedQueue(queue.drops[:runs], queue.arrivals[:runs], queue.waits[:runs])
            for queue in found.queues
        ),
        distributions=None if found.distributions is None else found.distributions[:runs],
        at_least=None if found.at_least is None else found.at_least[:runs],
    )


def exceeds(high: Observations, low: Observations, k: int, alpha: float = ALPHA) -> bool:
    """Whether one of k settings is surely higher than another, on the same seeds."""
    found = difference(high, low)
    if found is None or found.ci95 is None:
        return False
    return of_extremes(found, k, alpha).low > 0


# ---------------------------------------------------------------- many verdicts


def family(number: int, what: str) -> str:
    """Return a sentence on how many of several verdicts at 95 % each may err; empty for one.

    Args:
        number: How many verdicts.
        what: What they are, in the plural.
    """
    if number < 2:
        return ""
    each = f"{number} {what} are judged at 95 % each"
    if number * ALPHA < 1:  # by Bonferroni's inequality, however they depend on each other
        chance = round(number * ALPHA * 100)
        return f"{each}: that one or more err by chance has a probability of at most {chance} %."
    expected = round(number * ALPHA)
    return f"{each}: {f'about {expected}' if expected > 1 else 'one'} of them may err by chance."


def p_value(found: Estimate, bound: float) -> float | None:
    """The two-sided p value of the statement that the true value is the bound; None without an interval.

    By the side of the interval towards the bound: Student's t, or, where no run shows how rare an event is,
    (1 - share)^n with as many trials n as make the interval what it is (Clopper and Pearson 1934). It is at
    most 5 % where the interval excludes the bound.
    """
    if found.ci95 is None or found.runs < 2:
        return None
    room = abs(bound - found.mean)
    side = found.high - found.mean if bound > found.mean else found.mean - found.low
    if room == 0:
        return 1.0
    if side == 0:
        return 0.0
    if math.isinf(side):
        return 1.0
    if _is_open(found):
        return min(1.0, 2 * math.pow(1 - UPPER, room / side))
    freedom = float(found.runs - 1)
    deviation = room / side * student_t_quantile(freedom, UPPER)
    return min(1.0, 2 * student_t_cdf(freedom, -deviation))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """The p values, corrected such that of all that are at most 5 % none errs with 95 % (Holm 1979).

    Args:
        p_values: None where a verdict has none; it does not count.
    """
    known = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    out: list[float | None] = [None] * len(p_values)
    least = 0.0
    for done, (p, place) in enumerate(known):
        least = max(least, min(1.0, (len(known) - done) * p))
        out[place] = least
    return out


def p_text(value: float) -> str:
    """A p value as tables show it."""
    return "<0.001" if value < 0.001 else f"{value:.3f}"
