"""Shares of packets or flows that something happened to, and their intervals over runs.

The events of a run come in clusters: a queue that overflows drops many packets. So packets are no independent
trials, and runs that show no event at all do not show that there is none. The interval is that of Korn and
Graubard (1998, "Confidence intervals for proportions with small expected number of positive counts estimated
from survey data", Survey Methodology 24, 193-201): Clopper and Pearson's (1934) for as many independent
trials as would spread as much as the runs do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from perhop._engine import beta_quantile, student_t_quantile
from perhop.statistics.intervals import UPPER, Estimate

NORMAL = 1.959963984540054
"""The standard normal distribution's 97.5 % quantile."""
FEW = 5
"""Fewer runs with an event do not show by their spread how large clusters are."""


def proportion(events: Sequence[float], trials: Sequence[float], clustering: float = 1.0) -> Estimate:
    """The share of trials with an event, of all runs together, with its 95 % interval.

    Args:
        events: Of each run, at most its trials.
        trials: Of each run; those with none do not count.
        clustering: The variance of the number of events over that of independent trials, at least, where too
            few runs have events to show it: at least 1.

    Returns:
        Without an interval for a single run.

    Raises:
        ValueError: No run has trials.
    """
    counts = [(x, m) for x, m in zip(events, trials, strict=True) if m > 0]
    if not counts:
        raise ValueError("a proportion needs at least one trial")
    total = math.fsum(m for _, m in counts)
    share = min(1.0, math.fsum(x for x, _ in counts) / total)
    if len(counts) == 1:
        return Estimate(share, None, 1, len(events))
    return Estimate(
        share, interval(share, effective_trials(counts, share, clustering)), len(counts), len(events)
    )


def difference(a: Estimate, b: Estimate, correlation: float = 0.0) -> tuple[float, float]:
    """The 95 % interval of b - a, of two shares or percentiles, by the intervals of both.

    Without correlation that of Newcombe (1998, Stat. Med. 17, 873-890, method 10); with it, of Zou and Donner
    (2008, Stat. Med. 27, 1693-1702).
    """

    def reach(one: float, other: float) -> float:
        if math.isinf(one) or math.isinf(other):
            return math.inf
        return math.sqrt(max(0.0, one**2 + other**2 - 2 * correlation * one * other))

    value = b.mean - a.mean
    low = value - reach(b.mean - b.low, a.high - a.mean)
    return low, value + reach(b.high - b.mean, a.mean - a.low)


def effective_trials(counts: Sequence[tuple[float, float]], share: float, clustering: float) -> float:
    """The number of independent trials that say as much of the share as these runs; infinite without spread.

    They are no fewer than the runs (of unequal ones, than as many as weigh the same; Kish 1965): no runs
    spread more than those of which each has all of its trials with an event, or none.

    Args:
        counts: Events and trials of each run, at least two runs.
        share: Of all runs together.
        clustering: See `proportion`.
    """
    runs, total = len(counts), math.fsum(m for _, m in counts)
    fewest = total**2 / math.fsum(m**2 for _, m in counts)
    independent = share * (1 - share) / total
    variance = _variance(counts, share, total)
    rare = min(sum(x > 0 for x, _ in counts), sum(x < m for x, m in counts))
    if rare < min(FEW, runs):
        if independent == 0:
            return max(total / clustering, fewest)
        variance = max(variance, clustering * independent)
    if variance == 0:
        return math.inf
    quantile = student_t_quantile(_freedom([(x - share * m) ** 2 for x, m in counts]), UPPER)
    return max(share * (1 - share) / variance * (NORMAL / quantile) ** 2, fewest)


def _freedom(squares: Sequence[float]) -> float:
    """Degrees of freedom of a variance, by Satterthwaite (1946): 2n / (kurtosis - 1), at most n - 1.

    The variance is less certain where a few runs have most of the events.

    Args:
        squares: Of each run's deviation from the mean; not all are 0.
    """
    runs = len(squares)
    kurtosis = runs * math.fsum(x**2 for x in squares) / math.fsum(squares) ** 2
    return max(1.0, min(runs - 1.0, 2 * runs / (kurtosis - 1))) if kurtosis > 1 else runs - 1.0


def clustering_of(events: Sequence[float], trials: Sequence[float]) -> float:
    """The variance of a number of events over that of independent trials, at least 1 (Kish 1965).

    Args:
        events: Of each run, at most its trials.
        trials: Of each run.
    """
    counts = [(x, m) for x, m in zip(events, trials, strict=True) if m > 0]
    total = math.fsum(m for _, m in counts)
    share = math.fsum(x for x, _ in counts) / total if total else 0.0
    if len(counts) < 2 or not 0 < share < 1:
        return 1.0
    return max(1.0, _variance(counts, share, total) * total / (share * (1 - share)))


def _variance(counts: Sequence[tuple[float, float]], share: float, total: float) -> float:
    """The variance of the share of all runs together, as that of a ratio of two sums."""
    runs = len(counts)
    squares = math.fsum((x - share * m) ** 2 for x, m in counts)
    return runs / (runs - 1) * squares / total**2


def interval(share: float, trials: float) -> tuple[float, float]:
    """Clopper and Pearson's 95 % interval of a share; trials need not be whole."""
    if math.isinf(trials):
        return share, share
    events = share * trials
    low = 0.0 if events <= 0 else beta_quantile(events, trials - events + 1, 1 - UPPER)
    high = 1.0 if events >= trials else beta_quantile(events + 1, trials - events, UPPER)
    return low, high
