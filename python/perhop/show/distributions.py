"""Plots over runs that several pages share: distributions of samples by group, and quantities over time.

`cdf_by_group` is what to call for samples of any kind, such as completion times by size class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perhop.show.declared import Axis, Plot, Row
from perhop.statistics.intervals import estimate

Numbers: TypeAlias = "NDArray[np.float64]"
Drawn: TypeAlias = "tuple[Plot, list[Row]]"

POINTS = 160
"""Points of a distribution's curve."""
MOST_TIMES = 1000
"""The most times of a curve over time; more samples are averaged in blocks."""
SHARE = "share"
_MARGIN = 1e-12


def cdf_by_group(
    samples: Mapping[str, Sequence[ArrayLike]],
    *,
    id: str,  # noqa: A002 - as in Plot
    title: str,
    x_label: str,
    y_label: str,
    group: str = "class",
    names: Sequence[str] = (),
    logarithmic: bool = False,
) -> Drawn | None:
    """The cumulative distribution of each group's samples: its mean over the runs, with a 95 % band.

    Each run counts alike, whatever the number of its samples; a run without samples of a group is left out of
    this group's curve. A single run has no band.

    Args:
        samples: For each group the samples of each run, in the unit of the x axis; NaN is none;
            infinite is one that is longer than can be drawn, such as a time that had not ended.
        id: The last part of the plot's file name.
        title: Of the plot.
        x_label: What is sampled, with its unit.
        y_label: Of what the curves are fractions: `fraction of transfers`.
        group: What the groups are, as a factor's name.
        names: All groups of the page in their order, which have the same color in all its plots; those of
            `samples` if not given.
        logarithmic: The x axis has a logarithmic scale; samples that are not above 0 stand at its left end.

    Returns:
        The plot and its rows; None without any sample.
    """
    rows: list[Row] = []
    for name, of_runs in samples.items():
        runs = [run for run in map(_known, of_runs) if run.size]
        finite = np.concatenate(runs) if runs else np.empty(0)
        finite = finite[np.isfinite(finite)]
        if finite.size:
            at = _grid(finite, logarithmic=logarithmic)
            shares = np.vstack([np.searchsorted(run, at, side="right") / run.size for run in runs])
            rows += curve({group: name}, "x", at, shares)
    if not rows:
        return None
    plot = Plot(
        id=id,
        title=title,
        kind="cdf",
        metric=SHARE,
        x=Axis("x", x_label),
        series=Axis(group, "", {name: name for name in names or samples}),
        y_label=y_label,
        logarithmic=logarithmic,
    )
    return plot, rows


def curve(
    factors: Mapping[str, str | float], x: str, at: Numbers, shares: Numbers, *, thinned: bool = False
) -> list[Row]:
    """The mean curve over the runs as rows, with intervals within [0, 1].

    Args:
        factors: Of all rows.
        x: The name of the x axis's factor.
        at: Where the curve is known.
        shares: One line for each run.
        thinned: Leave out points between which little changes.
    """
    if thinned and at.size > POINTS:
        mean = shares.mean(axis=0)
        steps = np.floor(mean * POINTS + _MARGIN)
        kept = np.flatnonzero(np.diff(steps, prepend=-1) + np.diff(steps, append=steps[-1] + 1) > 0)
        at, shares = at[kept], shares[:, kept]
    rows = []
    for place, of_runs in zip(at.tolist(), shares.T, strict=True):
        found = estimate(of_runs.tolist())
        ends = None if found.ci95 is None else (max(0.0, found.ci95[0]), min(1.0, found.ci95[1]))
        rows.append(Row({**factors, x: place}, SHARE, "fraction", None, found.mean, ends, found.runs))
    return rows


def over_time(
    factors: Mapping[str, str | float], metric: str, unit: str, runs: Sequence[tuple[Numbers, Numbers]]
) -> list[Row]:
    """The mean of a quantity over the runs at each time of a sample, with its interval over the runs.

    Args:
        factors: Of all rows; `time_s` joins them.
        metric: The name of what is sampled.
        unit: Of the values.
        runs: Times and values of each run; NaN is no value.
    """
    known: dict[float, list[float]] = {}
    for times, values in runs:
        for at, value in zip(*(blocks(one).tolist() for one in (times, values)), strict=True):
            if value == value:  # noqa: PLR0124 - not NaN
                known.setdefault(at, []).append(value)
    rows = []
    for at, values_there in sorted(known.items()):
        found = estimate(values_there)
        rows.append(Row({**factors, "time_s": at}, metric, unit, None, found.mean, found.ci95, found.runs))
    return rows


def blocks(values: Numbers) -> Numbers:
    """Means of so many consecutive values that at most `MOST_TIMES` remain; the last block may be shorter."""
    size = block_size(values.size)
    if size == 1:
        return values
    starts = np.arange(0, values.size, size)
    sums = np.add.reduceat(values, starts)
    found: Numbers = sums / np.diff(np.append(starts, values.size))
    return found


def block_size(samples: int) -> int:
    """Return how many samples `blocks` averages."""
    return max(1, -(-samples // MOST_TIMES))


def histogram_shares(histograms: Sequence[tuple[Numbers, NDArray[np.int64]]]) -> tuple[Numbers, Numbers]:
    """The cumulative shares of several runs' histograms at the edges of their bins.

    Args:
        histograms: Edges and counts of each run, at least one; the edges of the shorter ones begin those of
            the longest.

    Returns:
        The edges, and the shares at them, one line for each run that counted anything.
    """
    edges = max((edges for edges, _ in histograms), key=len)
    shares = np.ones((len(histograms), len(edges)))
    for line, (_, counts) in zip(shares, histograms, strict=True):
        line[0] = 0.0
        line[1 : len(counts) + 1] = np.cumsum(counts) / max(1, counts.sum())
    return edges, shares[[counts.sum() > 0 for _, counts in histograms]]


def _known(samples: ArrayLike) -> Numbers:
    """The samples that are numbers, sorted."""
    array = np.asarray(samples, dtype=np.float64).reshape(-1)
    return np.sort(array[~np.isnan(array)])


def _grid(pooled: Numbers, *, logarithmic: bool) -> Numbers:
    """The points of a curve: every sample, or quantiles of many, the tail among them."""
    if logarithmic and (pooled > 0).any():
        pooled = np.maximum(pooled, pooled[pooled > 0].min())
    distinct = np.unique(pooled)
    if distinct.size <= POINTS:
        return distinct
    at = np.append(np.linspace(0.0, 1.0, POINTS), (0.995, 0.999))
    return np.unique(np.quantile(pooled, at, method="inverted_cdf"))
