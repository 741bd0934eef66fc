"""Intervals against hand-computed vectors and against what must hold for any observations."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perhop.statistics import Estimate, estimate, overlap, paired_difference

rates = st.floats(-1e6, 1e6)


@pytest.mark.parametrize(
    ("observations", "mean", "half_width"),
    [
        ([1.0, 3.0], 2.0, 12.706205 * math.sqrt(2) / math.sqrt(2)),
        ([1.0, 2.0, 3.0, 4.0], 2.5, 3.182446 * 1.2909944 / 2),
        ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 3.5, 2.570582 * 1.8708287 / math.sqrt(6)),
        ([2.0] * 10, 2.0, 0.0),
    ],
)
def test_interval(observations: list[float], mean: float, half_width: float) -> None:
    found = estimate(observations)
    assert found.mean == pytest.approx(mean)
    assert found.half_width == pytest.approx(half_width, rel=1e-6)
    assert found.runs == len(observations)


def test_one_run_has_no_interval() -> None:
    found = estimate([1.5])
    assert found.ci95 is None
    assert found.half_width is None
    assert (found.low, found.high) == (1.5, 1.5)
    assert found.text() == "1.500"


@pytest.mark.parametrize("observations", [[], [math.nan], [1.0, math.inf]])
def test_refuses_what_has_no_mean(observations: list[float]) -> None:
    with pytest.raises(ValueError, match="an estimate needs"):
        estimate(observations)


def test_text() -> None:
    found = Estimate(-0.12345, (-0.2, -0.0469), 6)
    assert found.text() == "−0.123 ± 0.077"
    assert Estimate(0.5, (0.25, 0.75), 6).text(2, sign=True) == "+0.50 ± 0.25"


def test_pairing_cancels_what_runs_share() -> None:
    a = {1: 10.0, 2: 20.0, 3: 30.0}
    b = {3: 29.0, 1: 9.0, 2: 19.0, 7: 1000.0}
    found = paired_difference(a, b)
    assert found == Estimate(1.0, (1.0, 1.0), 3)


def test_pairing_needs_a_common_seed() -> None:
    with pytest.raises(ValueError, match="same seeds"):
        paired_difference({1: 1.0}, {2: 1.0})


def test_overlap() -> None:
    assert overlap(Estimate(1, (0.5, 1.5), 6), Estimate(2, (1.5, 2.5), 6))
    assert not overlap(Estimate(1, (0.5, 1.4), 6), Estimate(2, (1.5, 2.5), 6))
    assert overlap(Estimate(1, None, 1), Estimate(2, (0.9, 3.1), 6))


@given(st.lists(rates, min_size=1, max_size=20))
def test_the_mean_lies_in_its_interval(observations: list[float]) -> None:
    found = estimate(observations)
    assert found.low <= found.mean <= found.high
    assert min(observations) - 1e-6 <= found.mean <= max(observations) + 1e-6


@given(st.dictionaries(st.integers(0, 99), st.tuples(rates, rates), min_size=1))
def test_differences_are_antisymmetric(pairs: dict[int, tuple[float, float]]) -> None:
    a = {seed: x for seed, (x, _) in pairs.items()}
    b = {seed: y for seed, (_, y) in pairs.items()}
    there, back = paired_difference(a, b), paired_difference(b, a)
    assert there.mean == pytest.approx(-back.mean)
    assert there.low == pytest.approx(-back.high)
