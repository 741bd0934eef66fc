"""Measures of who gets what: targets, errors against them, fairness, reservation success, regimes.

Rates may be in any unit as long as all arguments of a call share it.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")


def targets(profiles: Sequence[float], capacity: float) -> list[float]:
    """Each flow's target rate at a link of the given capacity.

    With excess e = capacity - sum(profiles) >= 0 every one of the n flows gets its profile and an equal part
    of the excess, r_i + e/n (Kim et al.'s "fair share", Yeom and Reddy section 4). An oversubscribed link
    shares its capacity in proportion to the profiles, r_i * capacity / sum(profiles) (derived from Yeom and
    Reddy's Table 1).

    Args:
        profiles: Profile rate of each flow, 0 for best effort; at least one flow.
        capacity: Rate of the link.

    Raises:
        ValueError: No flow, a negative profile, or a capacity that is not positive.
    """
    if not profiles:
        raise ValueError("targets need at least one flow")
    if capacity <= 0 or min(profiles) < 0:
        raise ValueError("targets need a positive capacity and profiles of at least 0")
    total = math.fsum(profiles)
    excess = capacity - total
    if excess < 0:
        return [rate * capacity / total for rate in profiles]
    return [rate + excess / len(profiles) for rate in profiles]


def subscription(profiles: Sequence[float], capacity: float) -> float:
    """Sum of the profile rates over the capacity: 0.76 is 76 % subscribed.

    Raises:
        ValueError: A capacity that is not positive.
    """
    _positive(capacity)
    return math.fsum(profiles) / capacity


def _positive(capacity: float) -> None:
    if not capacity > 0:
        raise ValueError(f"a capacity is above 0, not {capacity:g}")


def rmse(values: Sequence[float], wanted: Sequence[float], weights: Sequence[float] | None = None) -> float:
    """Root-mean-square error of values against wanted ones, in their unit.

    Yeom and Reddy print this figure as "MSE": their published numbers are its root.

    Args:
        values: Achieved rates, of flows or of classes.
        wanted: Target of each.
        weights: Number of flows that share each value; 1 each if not given.

    Raises:
        ValueError: Lengths differ, or there is nothing to average.
    """
    weights = [1.0] * len(values) if weights is None else weights
    total = math.fsum(weights)
    if total <= 0:
        raise ValueError("a root-mean-square error needs at least one value")
    squares = (w * (x - t) ** 2 for x, t, w in zip(values, wanted, weights, strict=True))
    return math.sqrt(math.fsum(squares) / total)


def utilization(values: Sequence[float], capacity: float) -> float:
    """Delivered rate of all flows over the capacity of the link they share, as a fraction.

    Raises:
        ValueError: A capacity that is not positive.
    """
    _positive(capacity)
    return math.fsum(values) / capacity


def jain_index(values: Sequence[float], wanted: Sequence[float]) -> float | None:
    """Jain's index of x_i = value/target, (Σx)² / (n Σx²): 1 when all get the same share of their target.

    Flows whose target is 0 have no share and are left out.

    Returns:
        The index in (0, 1], or None if no flow has both a target and some throughput.

    Raises:
        ValueError: Lengths differ.
    """
    shares = [x / t for x, t in zip(values, wanted, strict=True) if t > 0]
    squares = math.fsum(share**2 for share in shares)
    return None if squares == 0 else math.fsum(shares) ** 2 / (len(shares) * squares)


def reservation_success(
    values: Sequence[float], profiles: Sequence[float], slack: Sequence[float] | None = None
) -> float | None:
    """Fraction of the reserved flows that reach their profile rate; best-effort flows do not count.

    Args:
        values: Rate of each flow; NaN for a flow that has none, which does not count.
        profiles: Profile rate of each.
        slack: By how much each may be below its profile, because a rate is measured in whole packets; 0 if
            not given.

    Returns:
        A fraction, or None if no flow has a profile.

    Raises:
        ValueError: Lengths differ.
    """
    slack = [0.0] * len(values) if slack is None else slack
    rates = zip(values, profiles, slack, strict=True)
    reached = [x >= rate - less for x, rate, less in rates if rate > 0 and not math.isnan(x)]
    return sum(reached) / len(reached) if reached else None


def fairness(values: Sequence[float]) -> float | None:
    """Largest over smallest rate of a class, a ratio of at least 1 (Yeom and Reddy, section 4.2).

    Args:
        values: Rate of each flow of the class; at least one.

    Returns:
        The ratio, or None if a flow got nothing.
    """
    return max(values) / min(values) if min(values) > 0 else None


def fairness_by_rtt(values: Sequence[float]) -> float | None:
    """Rate at the shortest over rate at the longest round trip of a class.

    Yeom and Reddy define fairness as `fairness` does; where the two differ, most of Table 3 follows this one.

    Args:
        values: Rate of each flow of the class, in the order of rising round-trip times; at least one.

    Returns:
        The ratio, or None if the last flow got nothing.
    """
    return values[0] / values[-1] if values[-1] > 0 else None


def differentiation(higher: Sequence[float], lower: Sequence[float]) -> float | None:
    """Smallest rate of a class over the largest of the next lower class (Yeom and Reddy, section 4.2).

    Args:
        higher: Rate of each flow of the class that reserved more.
        lower: The same of the next lower class.

    Returns:
        The ratio, above 1 where all of the higher class get more, or None if the lower class got nothing.
    """
    return min(higher) / max(lower) if max(lower) > 0 else None


def differentiation_by_rtt(higher: Sequence[float], lower: Sequence[float]) -> float | None:
    """Rate of a class at the longest round trip over that of the next lower class at the shortest.

    Yeom and Reddy define it as `differentiation` does; where they differ, most of Table 3 follows this one.

    Args:
        higher: Rates of the class that reserved more, in the order of rising round-trip times.
        lower: The same of the next lower class.

    Returns:
        The ratio, or None if the lower class's first flow got nothing.
    """
    return higher[-1] / lower[0] if lower[0] > 0 else None


def holds_up_to(levels: Sequence[T], values: Sequence[float], wanted: float) -> T | None:
    """The last level of load up to which a guarantee holds without a gap: the regime of Kim et al.'s figures.

    Args:
        levels: Levels of load, lightest first.
        values: What was achieved at each level. Pass means for the plain reading, or the lower ends of their
            intervals for the stricter one.
        wanted: The guaranteed rate.

    Returns:
        The level, or None if the guarantee fails at the lightest level already.

    Raises:
        ValueError: Lengths differ.
    """
    last = None
    for level, value in zip(levels, values, strict=True):
        if value < wanted:
            break
        last = level
    return last


def quantile(values: Iterable[float], q: float) -> float:
    """The q-quantile of numbers: the least that at least the share q of them does not exceed (nearest rank).

    All quantiles of measures have this definition (numpy's `inverted_cdf`). Those of the resampled means of
    an interval by the bootstrap are no measures.

    Args:
        values: At least one number.
        q: In [0, 1].

    Returns:
        One of the numbers.
    """
    ordered = sorted(values)
    return float(ordered[_nearest_rank(q, len(ordered)) - 1])


def _nearest_rank(q: float, values: int) -> int:
    """The place, from 1, of the q-quantile among so many sorted values, at least one.

    A product that exceeds a whole number by a rounding error counts as that number, as in the engine.
    """
    place = q * values
    return min(max(1, math.ceil(place - place * sys.float_info.epsilon)), values)


def histogram_quantile(
    edges: Sequence[float], counts: Sequence[int], q: float, longest: float | Sequence[float] = math.inf
) -> float | None:
    """The bin with the `quantile` of a histogram's values, as the largest value that it can hold.

    Args:
        edges: b + 1 ascending bin edges; the last may be infinite, and its bin then reads as its lower edge.
        counts: b counts.
        q: In [0, 1].
        longest: The largest value in each bin, or the largest of all, if it is known.

    Returns:
        The quantile in the unit of the edges, or None if the histogram is empty.
    """
    total = sum(counts)
    if total == 0:
        return None
    rank = _nearest_rank(q, total)
    bin_ = next(bin_ for bin_, below in enumerate(itertools.accumulate(counts)) if below >= rank)
    low, high = edges[bin_], edges[bin_ + 1]
    largest = min(high, longest[bin_] if isinstance(longest, Sequence) else longest)
    return float(low if math.isinf(largest) else largest)


def histogram_cdf(edges: Sequence[float], counts: Sequence[int], at: float) -> float | None:
    """The share of a histogram's values up to `at`, linear within a bin.

    Args:
        edges: b + 1 ascending bin edges.
        counts: b counts.
        at: In the unit of the edges.

    Returns:
        A share in [0, 1], or None if the histogram is empty.
    """
    total = sum(counts)
    if total == 0:
        return None
    below = 0.0
    for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True):
        if at >= high:
            below += count
        elif at > low:
            below += count * (at - low) / (high - low)
    return below / total
