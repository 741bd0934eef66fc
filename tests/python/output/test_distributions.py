"""Distributions and time lines over runs, by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from perhop.show import distributions
from perhop.show.declared import Axis, Plot, Row
from perhop.show.distributions import cdf_by_group, histogram_shares, over_time
from perhop.show.plot import drawing

TEXTS: Any = {"id": "fct", "title": "Completion", "x_label": "time, s", "y_label": "fraction of transfers"}


def test_a_cdf_is_the_mean_of_the_runs_own_with_a_band() -> None:
    # Run 1: 1, 2, 2, 4 (and one that is none); run 2: 2, 8. A run without samples has no share in the mean.
    drawn = cdf_by_group({"short": [[1, 2, np.nan, 2, 4], [2, 8], [np.nan]], "long": [[], [], []]}, **TEXTS)
    assert drawn is not None
    plot, rows = drawn
    found = {row.factors["x"]: (row.mean, row.runs) for row in rows}
    # 1/4 and 0; 3/4 and 1/2; 1 and 1/2; 1 and 1.
    assert found == {1.0: (0.125, 2), 2.0: (0.625, 2), 4.0: (0.75, 2), 8.0: (1.0, 2)}
    # Two runs, t = 12.7: the interval reaches beyond a fraction's range and is cut there.
    assert rows[0].ci95 == (0.0, 1.0)
    assert rows[-1].ci95 == (1.0, 1.0)
    assert {row.factors["class"] for row in rows} == {"short"}
    assert list(plot.series.names) == ["short", "long"]


def test_no_samples_are_no_plot_and_one_run_has_no_band() -> None:
    assert cdf_by_group({"x": [[], [np.nan]]}, **TEXTS) is None
    drawn = cdf_by_group({"x": [[3.0, 1.0]]}, **TEXTS)
    assert drawn is not None
    assert [(row.factors["x"], row.mean, row.ci95) for row in drawn[1]] == [
        (1.0, 0.5, None),
        (3.0, 1.0, None),
    ]


def test_many_samples_are_drawn_at_quantiles_with_the_tail() -> None:
    samples = np.arange(1, 100_001)
    drawn = cdf_by_group({"x": [samples]}, **TEXTS)
    assert drawn is not None
    at, shares = zip(*((row.factors["x"], row.mean) for row in drawn[1]), strict=True)
    assert len(at) <= distributions.POINTS + 2
    assert shares == pytest.approx(np.asarray(at) / 100_000, abs=2e-5)
    assert (at[0], at[-1]) == (1.0, 100_000.0)


def test_a_logarithmic_axis_keeps_samples_that_are_not_above_zero() -> None:
    drawn = cdf_by_group({"x": [[0.0, 0.0, 0.5, 50.0]]}, **TEXTS, logarithmic=True)
    assert drawn is not None
    assert [(row.factors["x"], row.mean) for row in drawn[1]] == [(0.5, 0.75), (50.0, 1.0)]
    svg = drawing(*drawn, "test").picture.svg
    assert "fraction of transfers" in svg


def test_histograms_of_different_length() -> None:
    long, short = np.array([0.0, 1.0, 2.0, 4.0]), np.array([0.0, 1.0])
    edges, shares = histogram_shares(
        [(short, np.array([5])), (long, np.array([1, 0, 3])), (short, np.array([0]))]
    )
    assert edges.tolist() == long.tolist()
    assert shares.tolist() == [[0, 1, 1, 1], [0, 0.25, 0.25, 1]]


def test_a_time_line_is_the_mean_over_the_runs_that_have_a_sample() -> None:
    times = np.array([1.0, 2.0, 3.0])
    runs = [(times, np.array([1.0, 2.0, np.nan])), (times[:2], np.array([3.0, 2.0]))]
    rows = over_time({"class": "x"}, "rate", "Mbit/s", runs)
    assert [(row.factors["time_s"], row.mean, row.runs) for row in rows] == [(1.0, 2.0, 2), (2.0, 2.0, 2)]
    assert rows[0].ci95 == pytest.approx((2 - 12.706, 2 + 12.706), abs=1e-3)


def test_long_time_lines_are_averaged_in_blocks() -> None:
    values = np.arange(2500.0)
    found = distributions.blocks(values)
    assert len(found) == 834
    assert found[:2].tolist() == [1.0, 4.0]
    assert found[-1] == 2499.0  # the last block has one sample
    assert distributions.blocks(values[:1000]) is not None
    assert distributions.block_size(1000) == 1


def test_a_series_keeps_its_color_where_another_is_missing() -> None:
    axis = Axis("class", "", {"a": "a", "b": "b"})
    plot = Plot("x", "X", "lines", "m", Axis("x", ""), axis, "y", steady=True)
    assert [plot.rank("b", 0), plot.rank("other", 3)] == [1, 3]
    rows = [Row({"class": "b", "x": float(at)}, "m", "", None, 1.0, None, 1) for at in range(2)]
    assert "#0a6eb0" in drawing(plot, rows, "test").picture.svg  # the second of the palette
