"""Samples of rates, of percentiles, and of times that the end of a run cuts off: waits, pages, transfers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from perhop.measures.durations import Durations
from perhop.measures.run import Run
from perhop.show.declared import Factors
from perhop.statistics.observations import Distribution
from perhop.studies.evidence import Sample

MBPS = "Mbit/s"


def mean_mbps(run: Run, name: str) -> float:
    """Mean throughput over the flows of one entry, Mbit/s."""
    return float(np.mean(run.of_group(name, "throughput_bps"))) / 1e6


def waits(
    factors: Factors, delays_s: Mapping[str, Any] | None, levels: Mapping[str, float], less_ms: float = 0.0
) -> Iterator[Sample]:
    """Percentiles of what the packets of a run waited, in ms.

    Args:
        factors: The samples'.
        delays_s: Histogram of the delays; nothing without one, or without packets.
        levels: Which percentile each metric is, such as 0.99.
        less_ms: Part of each delay that is no wait, such as the propagation delay.
    """
    if delays_s is None:
        return
    found = Distribution.from_histogram(delays_s)
    in_ms = replace(found, values=np.maximum(1e3 * found.values - less_ms, 0.0))
    if found.count:
        yield from _percentiles(factors, in_ms, levels, "ms")


def times(
    factors: Factors,
    found: Durations,
    levels: Mapping[str, float | None],
    unit: str = "",
    scale: float = 1.0,
) -> Iterator[Sample]:
    """Means and percentiles of times, or slowdowns, of which some had not ended when the run did.

    Args:
        factors: The samples'.
        found: The times; nothing without any.
        levels: Which percentile each metric is; None for the mean.
        unit: The samples'.
        scale: The unit in that of the times.
    """
    if not found.count:
        return
    whole = found.distribution
    scaled = replace(whole, values=scale * whole.values)
    for metric, level in levels.items():
        if level is None:
            yield Sample(factors, metric, unit, scale * found.mean, at_least=found.is_cut_off)
        else:
            yield from _percentiles(factors, scaled, {metric: level}, unit)


def _percentiles(
    factors: Factors, whole: Distribution, levels: Mapping[str, float], unit: str
) -> Iterator[Sample]:
    for metric, level in levels.items():
        value = whole.quantile(level)
        known = math.nan if math.isinf(value) else value
        yield Sample(factors, metric, unit, known, level=level, distribution=whole)
