"""Observations of one measure over the runs of one setting, and estimates from them.

A measure is a mean over the runs, a share of packets or flows, or a percentile of waits or completion times.
Shares are of all runs together (`perhop.statistics.proportions`). So are percentiles: the mean of the runs'
own percentiles does not come nearer to the percentile of all waits however many short runs there are. A
percentile's interval is Woodruff's (1952, "Confidence intervals for medians and other position measures", J.
Am. Stat. Assoc. 47, 635-646): the values between which the pooled distribution passes through the interval of
the share of waits above the percentile, whose spread between runs shows how few independent waits there are.
Where the runs' own percentiles nearly agree, it is that of the jackknife over runs.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perhop._engine import product_limit
from perhop.statistics.intervals import Estimate, estimate
from perhop.statistics.proportions import (
    FEW,
    clustering_of,
    difference,
    effective_trials,
    interval,
    proportion,
)

LEVELS = (
    *(0.0, 0.05, 0.1, 0.2, 0.3, 0.375, 0.425, 0.45, 0.475, 0.5, 0.525, 0.55, 0.575, 0.625, 0.7, 0.8, 0.85),
    *(0.9, 0.92, 0.935, 0.9425, 0.95, 0.9575, 0.965, 0.975, 0.9825, 0.9875, 0.99, 0.9925, 0.995, 0.9975),
    *(0.999, 0.9995, 1.0),
)
"""Shares of a run's values at which a store of sweeps keeps its distribution."""
TAIL = (0.9, 0.95, 0.99)
"""Percentiles above which waits come in clusters as losses do."""
AGREED = 0.1
"""The runs' own percentiles nearly agree: they differ by no more than this part of that of all."""
ROUNDING = 1e-9
"""The rounding error of a share."""
MOST_POINTS = 4000
"""A distribution of single times has at most so many points."""
_PARTS = 6
"""Distributions that are added at once: fewer cost more calls, more cost more points."""
FEWEST_ABOVE = 1.0
"""Fewer values above the upper end of a percentile's interval do not show that end."""


@dataclass(frozen=True, eq=False)
class Distribution:
    """A distribution of waits or times, of one run or of several: linear between points.

    Attributes:
        count: How many values it is of.
        values: f64[k], ascending; infinite where not known, such as of flows that did not finish.
        shares: f64[k], ascending: which share of the values is at most that.
    """

    count: float
    values: NDArray[np.float64]
    shares: NDArray[np.float64]

    @classmethod
    def from_histogram(cls, histogram: Mapping[str, Any]) -> Self:
        """Make the distribution of a histogram of the engine.

        Args:
            histogram: `edges` (b + 1), `counts` (b, or b by color) and `longest` (b), the largest in a bin.
        """
        counts = np.asarray(histogram["counts"])
        counts = counts if counts.ndim == 1 else counts.sum(axis=1)
        bins = np.flatnonzero(counts)
        total = float(counts.sum())
        tops = np.minimum(np.asarray(histogram["longest"])[bins], np.asarray(histogram["edges"])[bins + 1])
        bottoms = np.asarray(histogram["edges"])[bins]
        above = np.cumsum(counts[bins]) / total if total else np.empty(0)
        values = np.column_stack((np.minimum(bottoms, tops), tops)).ravel()
        shares = np.column_stack((np.concatenate(([0.0], above))[: len(bins)], above)).ravel()
        return cls(total, np.maximum.accumulate(values), shares)

    @classmethod
    def from_values(cls, values: ArrayLike) -> Self:
        """Make the distribution of single values, all finite."""
        ordered = np.sort(np.asarray(values, dtype=np.float64))
        count = len(ordered)
        return cls(float(count), *_through_steps(ordered, np.arange(1, count + 1) / max(count, 1)))

    @classmethod
    def from_times(cls, ended: NDArray[np.float64], open_: NDArray[np.float64]) -> Self:
        """Make the distribution of times, of which some had not ended (product limit, Kaplan & Meier 1958).

        It is estimated as long as each time carries the weight of at most one censored time beside its own.

        Args:
            ended: Times that ended, f64[n].
            open_: Times so far of those that had not, f64[m].
        """
        times, shares, _ = product_limit(np.ascontiguousarray(ended), np.ascontiguousarray(open_))
        times, shares = _through_steps(times, shares)
        if len(times) > MOST_POINTS:
            # All of the tail, and as many below it.
            rest = np.linspace(0, len(times) - 1, MOST_POINTS // 2).astype(int)
            kept = np.union1d(rest, np.arange(len(times) - MOST_POINTS // 2, len(times)))
            times, shares = times[kept], shares[kept]
        return cls(float(len(ended) + len(open_)), times, shares)

    @classmethod
    def from_levels(cls, count: float, values: Sequence[float]) -> Self:
        """Return the distribution that `at_levels` has reduced."""
        return cls(count, np.asarray(values, dtype=np.float64), np.asarray(LEVELS))

    def at_levels(self) -> list[float]:
        """The quantiles at `LEVELS`, infinite where not known; NaN if the distribution is of no values."""
        return [self.quantile(level) for level in LEVELS] if self.count else [math.nan] * len(LEVELS)

    def quantile(self, level: float) -> float:
        """The value that a share `level` of the values does not exceed; infinite where that is not known."""
        if not len(self.shares) or level > self.shares[-1]:
            return math.inf
        place = int(np.searchsorted(self.shares, level))
        if place == 0:
            return float(self.values[0])
        low, high = self.values[place - 1], self.values[place]
        below, above = self.shares[place - 1], self.shares[place]
        if math.isinf(high):
            return math.inf if level > below else float(low)
        return float(low + (high - low) * (level - below) / (above - below))

    def share_up_to(self, at: float | NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the share of the values that are at most `at`."""
        known = np.isfinite(self.values)
        if not known.any():
            return np.zeros_like(np.asarray(at, dtype=np.float64))
        return np.asarray(np.interp(at, self.values[known], self.shares[known], left=0.0))

    def share_below(self, at: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the share of the values below `at`, of a distribution that is known as a whole."""
        below = np.interp(-at, -self.values[::-1], self.shares[::-1])
        return np.where(at > self.values[0], below, 0.0)

    @property
    def known(self) -> tuple[float, float]:
        """Up to which value it is known, infinite if as a whole, and which share of the values that is."""
        known = np.flatnonzero(np.isfinite(self.values))
        if not len(known):
            return -math.inf, 0.0
        share = float(self.shares[known[-1]])
        return (math.inf, 1.0) if share >= 1 else (float(self.values[known[-1]]), share)


def _through_steps(
    values: NDArray[np.float64], shares: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A line through the middles of the steps of a distribution function.

    That through their tops is too high by half a step, which is much where a run has few values.
    """
    if not len(values):
        return values, shares
    middles = (np.concatenate(([0.0], shares[:-1])) + shares) / 2
    return np.append(values, values[-1]), np.append(middles, shares[-1])


def pooled(distributions: Sequence[Distribution]) -> Distribution:
    """The distribution of all their values; each has at least one. Those asked for last are kept.

    Where one is not known, the others alone say which share of the longer values ends there, as the product
    limit has it: its own longer values are taken for like theirs. The whole is known up to the share that all
    know of their own.
    """
    return _pooled(tuple(distributions))


@functools.lru_cache(maxsize=16)
def _pooled(distributions: tuple[Distribution, ...]) -> Distribution:
    total = math.fsum(one.count for one in distributions)
    limit = math.fsum(one.count * one.known[1] for one in distributions) / total
    if limit == 1:
        return _sum(distributions)
    values = _distinct([one.values for one in distributions])
    values = values[np.isfinite(values)]
    longer, ending = np.zeros(len(values)), np.zeros(len(values))
    for one in distributions:
        known = values <= one.known[0]
        up_to = one.share_up_to(values)
        before = np.concatenate(([0.0], up_to[:-1]))
        longer += np.where(known, one.count * (1 - before), 0.0)
        ending += np.where(known, one.count * (up_to - before), 0.0)
    hazard = np.divide(ending, longer, out=np.zeros(len(values)), where=longer > 0)
    shares = 1 - np.cumprod(1 - np.minimum(hazard, 1.0))
    limit += ROUNDING
    kept = int(np.searchsorted(shares, limit)) + 1
    return Distribution(total, values[:kept], np.minimum(shares[:kept], limit))


def _distinct(arrays: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """All values of some arrays, each once, ascending.

    `np.unique` does this, too, but loads `numpy.ma`, which takes a sixth of the time of numpy as a whole.
    """
    values = np.sort(np.concatenate(arrays))
    last = np.append(values[1:] > values[:-1], True)[: len(values)]
    distinct: NDArray[np.float64] = values[last]
    return distinct


def _sum(distributions: Sequence[Distribution]) -> Distribution:
    """The distribution of all values of some that are known as a whole.

    It is made of sums of parts, so that work grows with the number of points times the logarithm of that of
    distributions.
    """
    if len(distributions) == 1:
        return distributions[0]
    size = -(-len(distributions) // _PARTS)
    parts = [_sum(distributions[first : first + size]) for first in range(0, len(distributions), size)]
    total = math.fsum(one.count for one in parts)
    values = _distinct([one.values for one in parts])
    below, up_to = np.zeros(len(values)), np.zeros(len(values))
    for one in parts:
        below += one.share_below(values) * (one.count / total)
        up_to += one.share_up_to(values) * (one.count / total)
    # Where the distribution function jumps, two points have the same value.
    kept = np.column_stack((below < up_to, np.ones(len(values), dtype=bool))).ravel()
    shares = np.minimum(np.column_stack((below, up_to)).ravel()[kept], 1.0)
    shares[-1] = 1.0  # All of it is known, whatever the sums lack by rounding.
    return Distribution(total, np.repeat(values, 2)[kept], shares)


@dataclass(frozen=True)
class ObservedQueue:
    """A queue in each run, by which is known how its drops come in clusters.

    Attributes:
        drops: Packets.
        arrivals: Packets.
        waits: What waited; None where a run has no distribution.
        room_s: How long a packet waits in a full queue; 0 where a queue drops before it is full, and where
            its traffic differs from run to run: see `rare_load`.
        rare_load: Some flows came in so few runs that what they do to the queue is as good as unknown: runs
            without drops say no more than one packet of each would.
        longest_s: The longest wait of all runs.
    """

    drops: tuple[float, ...]
    arrivals: tuple[float, ...]
    waits: tuple[Distribution | None, ...]
    room_s: float = 0.0
    rare_load: bool = False
    longest_s: float = 0.0

    @cached_property
    def clustering(self) -> float:
        """The variance of drops over runs, relative to independent drops; of waits if few runs have drops."""
        if self.drops and sum(drops > 0 for drops in self.drops) >= min(FEW, len(self.drops)):
            return clustering_of(self.drops, self.arrivals)
        if self.rare_load:
            return max(1.0, math.fsum(self.arrivals) / len(self.arrivals))
        return _clustering([one for one in self.waits if one is not None and one.count])

    @cached_property
    def reserve(self) -> float:
        """The longest possible wait, in multiples of twice the longest one seen; at least 1."""
        if self.rare_load or len(self.drops) < FEW or self.longest_s <= 0:
            return 1.0
        return max(1.0, self.room_s / (2 * self.longest_s))


@dataclass(frozen=True)
class Observations:
    """Observations of one measure over the runs of one setting.

    Attributes:
        values: One for each run, in the order of the seeds; NaN where a run has none.
        least: No value can be lower.
        most: No value can be higher.
        trials: Of a share: how many packets or flows each run's value is of.
        are_counts: The values are numbers of events among the trials, not shares of them.
        queues: Of a share: the queues in which the events may have happened.
        are_drops: The events are drops of the queues, which do not happen before a queue is full.
        clustering: Of a share: how much its events spread over runs, at least, over what independent ones
            would.
        distributions: Of a percentile: each run's distribution; None where a run has none.
        level: Of a percentile: 0.99 of P99.
        level_below: Of a difference of two percentiles of the same waits, the level of the lower one.
        is_of_events: Of a mean: it is of what may happen to flows or users, such as stalls, so that runs that
            all have the same value do not show that it is always the same.
        is_in_time: It is how much of that happens in an hour: runs in which nothing happens do not bound it.
        beyond: Of a mean: by how much it may be lower and higher for events that no run shows, at least.
        at_least: Of a mean: whether each run's value is a lower bound, since what would have been longest had
            not ended when the run did; None if none is.
    """

    values: tuple[float, ...]
    least: float = -math.inf
    most: float = math.inf
    trials: tuple[float, ...] | None = None
    are_counts: bool = False
    queues: tuple[ObservedQueue, ...] = ()
    are_drops: bool = False
    clustering: float = 1.0
    distributions: tuple[Distribution | None, ...] | None = None
    level: float | None = None
    level_below: float | None = None
    is_of_events: bool = False
    is_in_time: bool = False
    beyond: tuple[float, float] = (0.0, 0.0)
    at_least: tuple[bool, ...] | None = None

    @cached_property
    def estimate(self) -> Estimate | None:
        """The value with its interval; None where no run has one, or where it is not known."""
        if self.level_below is not None and len(self.values) > 1:
            return paired(*self._both_levels(self.level_below))
        if self.level is not None and self.distributions is not None:
            return self._percentile(self.level, self.distributions)
        known = [place for place, value in enumerate(self.values) if not math.isnan(value)]
        if not known:
            return None
        if self.trials is not None:
            return self._share(known, self.trials)
        values = [self.values[place] for place in known]
        found = estimate(values, least=self.least, most=self.most)
        ends = found.ci95
        if ends is not None and self.is_of_events and min(values) == max(values):
            # In at most this share of runs something happens, and then the value may be any. How much that is
            # in an hour does not follow from a number of runs.
            rare = interval(0.0, found.runs)[1]
            most = math.inf if self.is_in_time and found.mean == self.least else self.most
            ends = _towards(found.mean, self.least, rare), _towards(found.mean, most, rare)
        if ends is not None:
            low, high = found.mean - self.beyond[0], found.mean + self.beyond[1]
            ends = min(ends[0], max(low, self.least)), max(ends[1], min(high, self.most))
        if self.is_bound:
            ends = (-math.inf if ends is None else ends[0]), math.inf
        return Estimate(found.mean, ends, found.runs, len(self.values))

    @property
    def is_bound(self) -> bool:
        """Whether the mean is a lower bound: of some runs the longest times are missing."""
        return self.at_least is not None and any(self.at_least)

    @property
    def has_all(self) -> bool:
        """Whether every run has a value; of a percentile, whether every run has values."""
        return all(map(self._has, range(len(self.values))))

    def _has(self, place: int) -> bool:
        if self.level is not None and self.distributions is not None:
            one = self.distributions[place]
            return one is not None and one.count > 0
        return not math.isnan(self.values[place])

    def _share(self, known: Sequence[int], trials: Sequence[float]) -> Estimate | None:
        of = [trials[place] for place in known]
        total = math.fsum(of)
        if total == 0:
            return None
        values = [self.values[place] for place in known]
        events = values if self.are_counts else [x * m for x, m in zip(values, of, strict=True)]
        clustering = max((queue.clustering for queue in self.queues), default=1.0)
        found = proportion(events, of, max(clustering, self.clustering))
        ends = found.ci95
        if self.are_drops and found.mean == 0 and ends is not None:
            # At most this share of the packets waits longer than twice the longest wait of these runs. Behind
            # that the tail falls at least as an exponential one (Glynn & Whitt 1994, "Logarithmic asymptotics
            # for steady-state tail probabilities in a single-server queue", J. Appl. Probab. 31A, 131-156).
            ends = 0.0, ends[1] ** min((queue.reserve for queue in self.queues), default=1.0)
        found = Estimate(found.mean, ends, found.runs, len(self.values))
        return found.mapped(lambda share: share * total / len(of)) if self.are_counts else found

    def _percentile(self, level: float, distributions: Sequence[Distribution | None]) -> Estimate | None:
        known = [one for one in distributions if one is not None and one.count]
        reported = {value for value in self.values if not math.isnan(value)}
        if len(known) < 2:
            value = self._own_percentile(level, known)
            return None if math.isinf(value) else Estimate(value, None, len(known), len(self.values))
        if len(reported) == 1 and len(known) == len(self.values) and self.has_all:
            (value,) = reported
            return Estimate(value, (value, value), len(known), len(self.values))
        whole = pooled(known)
        value = whole.quantile(level)
        if math.isinf(value):
            return None
        own = [one.quantile(level) for one in known]
        if max(own) - min(own) <= AGREED * value:
            ends = estimate(_pseudo_values(known, level), least=self.least).ci95
            return Estimate(value, ends, len(known), len(self.values))
        # Above lower percentiles are more waits, which show better how they come in clusters.
        counts = {at: _above(known, whole, at) for at in (level, *(one for one in TAIL if one < level))}
        above = {at: math.fsum(x for x, _ in found) / whole.count for at, found in counts.items()}
        trials = min(effective_trials(counts[at], above[at], 1.0) for at in counts)
        low, high = interval(above[level], trials)
        upper = whole.quantile(1 - low) if low * whole.count >= FEWEST_ABOVE else math.inf
        ends = min(value, whole.quantile(1 - high)), max(value, upper)
        return Estimate(value, ends, len(known), len(self.values))

    def _both_levels(self, below: float) -> tuple[Observations, Observations]:
        """Split the difference of two percentiles into the upper one and the lower one."""
        upper, lower = (
            tuple(
                math.nan if one is None or not one.count else one.quantile(level)
                for one in self.distributions or ()
            )
            for level in (self.level or below, below)
        )
        return (
            replace(self, values=upper, level_below=None),
            replace(self, values=lower, level=below, level_below=None),
        )

    def _own_percentile(self, level: float, known: Sequence[Distribution]) -> float:
        """The percentile of one run alone, if the run has it."""
        value = next((value for value in self.values if not math.isnan(value)), math.inf)
        return value if math.isfinite(value) or not known else known[0].quantile(level)

    def linear(self, places: Sequence[int]) -> list[float]:
        """One value for each of these runs, such that their mean is the estimate over these runs.

        Of a mean, the values. Of a share, the linear part of the ratio of sums. Of a percentile, the
        pseudo-values of the jackknife over runs (Tukey 1958), shifted to that mean.
        """
        if self.level_below is not None:
            upper, lower = (one.linear(places) for one in self._both_levels(self.level_below))
            return [high - low for high, low in zip(upper, lower, strict=True)]
        if self.level is not None and self.distributions is not None:
            known = [one for place in places if (one := self.distributions[place]) is not None]
            return _pseudo_values(known, self.level)
        values = [self.values[place] for place in places]
        if self.trials is None or self.are_counts:
            return values
        trials = [self.trials[place] for place in places]
        total = math.fsum(trials)
        share = math.fsum(x * m for x, m in zip(values, trials, strict=True)) / total
        scale = len(places) / total
        return [share + scale * m * (x - share) for x, m in zip(values, trials, strict=True)]

    def counts_in(self, place: int) -> bool:
        """Whether a run has what the measure needs."""
        return self._has(place) and (self.trials is None or self.trials[place] > 0)


def paired(a: Observations, b: Observations) -> Estimate | None:
    """The difference a - b over the runs on the same seeds, with its interval; None where no run has both.

    Of shares and percentiles, the interval is made of both and of their correlation over the runs (MOVER:
    Zou & Donner 2008, "Construction of confidence limits about effect measures", Stat. Med. 27, 1693-1702).

    Args:
        a: Runs on some seeds.
        b: Runs on the same seeds, in the same order.

    Raises:
        ValueError: One has more runs than the other.
    """
    if len(a.values) != len(b.values):
        raise ValueError("a paired difference needs runs on the same seeds")
    places = [place for place in range(len(a.values)) if a.counts_in(place) and b.counts_in(place)]
    if not places:
        return None
    values = a.linear(places), b.linear(places)
    differences = [x - y for x, y in zip(*values, strict=True)]
    if not all(map(math.isfinite, differences)):
        return None
    found = estimate(differences)
    if a.is_bound or b.is_bound:
        ends = (-math.inf if b.is_bound else found.low, math.inf if a.is_bound else found.high)
        return Estimate(found.mean, ends, found.runs, len(a.values))
    found = Estimate(found.mean, found.ci95, found.runs, len(a.values))
    first, second = a.estimate, b.estimate
    if found.ci95 is None or first is None or second is None or (a.trials is None and a.level is None):
        return found
    if not any(differences) and min(values[0]) < max(values[0]):
        return found  # the runs vary, and are the same
    return Estimate(found.mean, difference(second, first, _correlation(*values)), found.runs, found.of)


def _towards(value: float, end: float, share: float) -> float:
    """The mean of a value and, in a share of the cases, a bound of it."""
    return value if end == value else value + share * (end - value)


def _correlation(a: Sequence[float], b: Sequence[float]) -> float:
    """Pearson's correlation; 0 where a sequence does not vary, or there are two runs."""
    if len(a) < 3 or min(a) == max(a) or min(b) == max(b):
        return 0.0
    return max(-1.0, min(1.0, statistics.correlation(a, b)))


def _clustering(runs: Sequence[Distribution]) -> float:
    if len(runs) < 2:
        return 1.0
    whole = pooled(runs)
    above = [_above(runs, whole, level) for level in TAIL]
    return max(clustering_of([x for x, _ in found], [m for _, m in found]) for found in above)


def _above(runs: Sequence[Distribution], whole: Distribution, level: float) -> list[tuple[float, float]]:
    """Count for each run the values above a percentile of all runs together, and all its values."""
    value = whole.quantile(level)
    if math.isinf(value):
        return [(0.0, one.count) for one in runs]
    return [(one.count * (1 - float(one.share_up_to(value))), one.count) for one in runs]


def _pseudo_values(runs: Sequence[Distribution], level: float) -> list[float]:
    """The jackknife's pseudo-values of a percentile over runs, shifted to its mean."""
    together = pooled(runs)
    whole, n = together.quantile(level), len(runs)
    if n < 3 or math.isinf(whole):
        return [one.quantile(level) for one in runs]
    if together.known[1] < 1:
        without = [pooled([*runs[:place], *runs[place + 1 :]]).quantile(level) for place in range(n)]
    else:
        without = [_less(together, one, level).quantile(level) for one in runs]
    pseudo = [n * whole - (n - 1) * one for one in without]
    shift = whole - math.fsum(pseudo) / n
    return [value + shift for value in pseudo]


def _less(together: Distribution, one: Distribution, level: float) -> Distribution:
    """The distribution of all values but those of one run, near a quantile; both are known as a whole."""
    left = together.count - one.count
    # Without the run, no share changes by more than this.
    change = one.count / left
    first, last = np.searchsorted(together.shares, (level - change, level + change))
    near = slice(max(0, int(first) - 2), int(last) + 2)
    values = together.values[near]
    # Of two points with the same value, the first is the lower end of a jump.
    jumps = np.append(values[1:] == values[:-1], False)
    own = np.where(jumps, one.share_below(values), one.share_up_to(values))
    shares = (together.count * together.shares[near] - one.count * own) / left
    return Distribution(left, values, np.maximum.accumulate(shares))
