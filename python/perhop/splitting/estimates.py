"""Estimates from runs with splitting, whose counts are sums of weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

from perhop.statistics import intervals
from perhop.statistics.intervals import Estimate

Counts: TypeAlias = dict[str, Any]
"""What the engine counted in a run; see `_engine.split_run`."""


def share(parts: Sequence[float], wholes: Sequence[float]) -> Estimate:
    """A share of packets: that of all runs together, with the interval of a ratio of means.

    The interval is that of the mean of `p + (part - p * whole) / mean whole`, one value for each run, whose
    mean is the share `p` (Cochran, Sampling Techniques, 1977, section 6.4). It allows for the skewness that
    weighted counts of rare events have (`perhop.statistics.intervals`).

    Args:
        parts: For each run the weighted number of packets that count.
        wholes: For each run that of all packets.
    """
    if not any(parts):
        return Estimate(0.0, (0.0, math.inf), len(parts))  # what no run has seen has no known upper end
    value = math.fsum(parts) / math.fsum(wholes)
    return intervals.estimate(_values(parts, wholes, value), least=0.0, most=1.0)


def variance(parts: Sequence[float], wholes: Sequence[float]) -> float:
    """The variance of a share as a single run has it."""
    value = math.fsum(parts) / math.fsum(wholes)
    return math.fsum((one - value) ** 2 for one in _values(parts, wholes, value)) / (len(parts) - 1)


def _values(parts: Sequence[float], wholes: Sequence[float], value: float) -> list[float]:
    mean = math.fsum(wholes) / len(wholes)
    return [value + (part - value * whole) / mean for part, whole in zip(parts, wholes, strict=True)]


def quantile(runs: Sequence[Counts], level: float) -> Estimate | None:
    """A quantile of the waits of all runs together, at most 3.1 % above it; None without a wait.

    Its interval has every wait for which the share of longer waits may be 1 - level, by the interval of that
    share. The upper end is infinite where no wait that was seen is long enough.
    """
    bins: dict[float, float] = {}
    for counts in runs:
        for one in counts["waits"]:
            bins[one["from_s"]] = max(one["longest_s"], bins.get(one["from_s"], 0.0))
    above = [math.fsum(one["packets"] for one in counts["waits"]) for counts in runs]
    wholes = list(above)
    if not bins or min(wholes) <= 0:
        return None
    value, low, high = math.nan, 0.0, math.inf
    for start, longest in sorted(bins.items()):
        above = [
            rest - math.fsum(one["packets"] for one in counts["waits"] if one["from_s"] == start)
            for rest, counts in zip(above, runs, strict=True)
        ]
        tail = share([max(0.0, rest) for rest in above], wholes)
        if math.isnan(value) and tail.mean <= 1 - level:
            value = longest
        if tail.low > 1 - level:
            low = longest
        # Behind the longest wait the share is 0 in every run, whatever the truth is.
        if tail.mean > 0 and tail.high < 1 - level:
            high = longest
            break
    if len(runs) == 1:
        return Estimate(value, None, 1)
    return Estimate(value, (min(low, value), max(high, value)), len(runs))
