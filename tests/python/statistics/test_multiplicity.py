"""Many comparisons: the level under pure noise, the power, and corrected p values, against theory."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import stats

from perhop.statistics.intervals import Estimate, estimate
from perhop.statistics.multiplicity import (
    difference,
    exceeds,
    family,
    first_runs,
    holm,
    of_extremes,
    p_value,
    ranking,
    studentized_range_cdf,
    studentized_range_quantile,
)
from perhop.statistics.observations import Observations

if TYPE_CHECKING:
    from numpy.typing import NDArray

TRIALS = 400


def observed(values: NDArray[np.float64]) -> list[Observations]:
    return [Observations(tuple(row)) for row in values.tolist()]


@pytest.mark.parametrize(
    ("k", "freedom"), [(2, 1), (2, 5), (3, 10), (6, 11), (60, 5), (60, 19), (1000, 4), (20, 400)]
)
def test_the_studentized_range_is_that_of_scipy(k: int, freedom: int) -> None:
    quantile = studentized_range_quantile(0.95, k, freedom)
    assert quantile == pytest.approx(stats.studentized_range.ppf(0.95, k, freedom), rel=1e-5)
    assert studentized_range_cdf(0.8 * quantile, k, freedom) == pytest.approx(
        stats.studentized_range.cdf(0.8 * quantile, k, freedom), abs=1e-6
    )
    assert studentized_range_cdf(0.0, k, freedom) == 0


def test_of_two_settings_the_interval_is_students() -> None:
    found = estimate([1.0, 2.0, 3.0])
    assert of_extremes(found, 2).ci95 == pytest.approx(found.ci95)
    longer = of_extremes(found, 10)
    assert longer.low < found.low
    assert longer.high > found.high
    assert of_extremes(estimate([1.0]), 10).ci95 is None


def claims(values: NDArray[np.float64]) -> bool:
    """Whether the highest of these settings is said to exceed the lowest; f64[settings, runs]."""
    settings, means = observed(values), values.mean(axis=1)
    return exceeds(settings[int(means.argmax())], settings[int(means.argmin())], len(settings))


@pytest.mark.parametrize(("settings", "runs"), [(2, 5), (6, 12), (60, 6), (60, 20)])
def test_the_extremes_of_equal_settings_differ_in_5_percent(settings: int, runs: int) -> None:
    """Of normal values exactly, whatever luck the runs on a seed share."""
    random = np.random.default_rng(7)
    noise = random.normal(size=(TRIALS, settings, runs)) + 3 * random.normal(size=(TRIALS, 1, runs))
    found = sum(map(claims, noise))
    assert stats.binomtest(found, TRIALS, 0.05).pvalue > 0.0005
    assert found <= 0.08 * TRIALS


@pytest.mark.parametrize("kind", ["spreads that differ", "exponential"])
def test_neither_spreads_nor_skewness_make_chance_a_difference(kind: str) -> None:
    random = np.random.default_rng(8)
    if kind == "exponential":
        noise = random.exponential(size=(TRIALS, 20, 10))
    else:
        noise = random.normal(size=(TRIALS, 20, 10)) * np.exp(random.normal(size=(TRIALS, 20, 1)))
    assert sum(map(claims, noise)) <= 0.05 * TRIALS


def test_an_effect_of_two_standard_errors_is_found_as_often_as_theory_says() -> None:
    """Two settings: the power of the t test with 14 degrees of freedom, by the noncentral t distribution."""
    random = np.random.default_rng(9)
    runs = 15
    values = random.normal(size=(1000, 2, runs))
    values[:, 1] += 2 * math.sqrt(2 / runs)
    found = sum(map(claims, values))
    quantile = stats.t.ppf(0.975, runs - 1)
    power = stats.nct.sf(quantile, runs - 1, 2) + stats.nct.cdf(-quantile, runs - 1, 2)
    assert found / 1000 == pytest.approx(power, abs=0.045)


def test_no_pair_is_told_apart_unless_all_that_enclose_it_are() -> None:
    random = np.random.default_rng(10)
    values = random.normal(size=(5, 30)) * 0.1 + np.array([[0.0], [0.0], [1.0], [1.0], [2.0]])
    found = ranking([*observed(values), None])
    assert set(found.order) == set(range(5))
    assert {(a, b) for a in range(5) for b in range(5) if found.apart(a, b) and a < b} == {
        *((a, b) for a in (0, 1) for b in (2, 3, 4)),
        *((a, 4) for a in (2, 3)),
    }


def test_a_ranking_of_equal_settings_says_something_in_at_most_5_percent() -> None:
    random = np.random.default_rng(11)
    noise = random.normal(size=(TRIALS, 6, 12))
    assert sum(bool(ranking(observed(one)).below) for one in noise) <= 0.065 * TRIALS


def test_equal_settings_among_others_are_told_apart_in_at_most_5_percent() -> None:
    random = np.random.default_rng(12)
    noise = random.normal(size=(TRIALS, 6, 12)) + np.repeat([0.0, 9.0], 3)[:, None]
    wrong = 0
    for one in noise:
        found = ranking(observed(one))
        assert all(found.apart(a, b) for a in range(3) for b in range(3, 6))
        wrong += any(a // 3 == b // 3 for a, b in found.below)
    assert wrong <= 0.065 * TRIALS


def test_what_no_run_shows_to_be_rare_is_no_difference() -> None:
    """No loss of 1000 packets in 10 runs each, against one loss in one run."""
    never = Observations((0.0,) * 10, 0.0, 1.0, (1000.0,) * 10)
    once = Observations((0.001, *(0.0,) * 9), 0.0, 1.0, (1000.0,) * 10)
    often = Observations((0.05, 0.06) * 5, 0.0, 1.0, (1000.0,) * 10)
    assert not exceeds(once, never, 2)
    assert exceeds(often, never, 2)


def test_settings_with_fewer_runs_are_compared_on_the_seeds_of_both() -> None:
    long, short = Observations((1.0, 2.0, 3.0, 9.0)), Observations((0.0, 1.5, 2.0))
    found = difference(first_runs(long, 3), short)
    assert found is not None
    assert found.runs == 3
    assert found.mean == pytest.approx((1.0 + 0.5 + 1.0) / 3)


def test_holm_is_the_published_procedure() -> None:
    """Holm 1979: the smallest times n, the next times n - 1, never less than the one before."""
    assert holm([0.01, None, 0.04, 0.03, 0.005]) == pytest.approx([0.03, None, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_a_p_value_is_5_percent_at_the_end_of_the_interval() -> None:
    values = [1.0, 2.0, 3.0, 4.0, 6.0]
    plain = Estimate(3.2, stats.t.interval(0.95, 4, 3.2, stats.sem(values)), 5)
    assert p_value(plain, plain.high) == pytest.approx(0.05)
    assert p_value(plain, 0.0) == pytest.approx(stats.ttest_1samp(values, 0.0).pvalue)
    assert p_value(plain, 3.2) == 1.0
    assert p_value(estimate([1.0]), 0.0) is None
    assert p_value(Estimate(1.0, (1.0, 1.0), 5), 2.0) == 0.0
    never = Estimate(0.0, (0.0, 0.01), 5)
    assert p_value(never, 0.01) == pytest.approx(0.05)
    assert p_value(never, 0.02) == pytest.approx(2 * 0.025**2)
    assert p_value(Estimate(1.0, (0.5, math.inf), 5), 2.0) == 1.0


def test_many_verdicts_have_one_sentence() -> None:
    assert family(1, "lines") == ""
    assert family(20, "lines") == "20 lines are judged at 95 % each: one of them may err by chance."
    assert family(60, "lines") == "60 lines are judged at 95 % each: about 3 of them may err by chance."
    few = "lines are judged at 95 % each: that one or more err by chance has a probability of at most"
    assert family(2, "lines") == f"2 {few} 10 %."
    assert family(19, "lines") == f"19 {few} 95 %."
