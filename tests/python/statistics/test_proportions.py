"""Intervals of shares, against values by hand, and against draws whose share is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from perhop._engine import beta_quantile
from perhop.statistics.proportions import NORMAL, clustering_of, effective_trials, interval, proportion


@pytest.mark.parametrize(("a", "b", "p"), [(1.0, 22000.0, 0.975), (3.5, 1e4, 0.025), (40.0, 3.0, 0.5)])
def test_quantiles_of_the_beta_distribution_are_those_of_scipy(a: float, b: float, p: float) -> None:
    assert beta_quantile(a, b, p) == pytest.approx(float(stats.beta.ppf(p, a, b)), rel=1e-9)


@pytest.mark.parametrize(("a", "b", "p"), [(0.0, 1.0, 0.5), (1.0, math.inf, 0.5), (1.0, 1.0, 1.5)])
def test_quantiles_of_no_distribution_are_refused(a: float, b: float, p: float) -> None:
    with pytest.raises(ValueError, match=r"^a (beta distribution|probability)"):
        beta_quantile(a, b, p)


def test_independent_events_have_clopper_and_pearsons_interval() -> None:
    # Their 1934 charts: 9 of 10 is 55.50 % to 99.75 %.
    assert interval(0.9, 10.0) == pytest.approx((0.55498, 0.99747), abs=1e-5)
    assert interval(0.0, 10.0) == pytest.approx((0.0, 1 - 0.025**0.1))
    assert interval(1.0, 10.0) == pytest.approx((0.025**0.1, 1.0))


def test_runs_that_spread_count_for_fewer_trials() -> None:
    # Shares .1, .2, .3, .2, .2 of 100 each: the variance of their mean is .005/5 = .001, so .2 * .8 / .001
    # = 160 trials. The kurtosis is 5 (2 * .1^4)/(2 * .1^2)^2 = 2.5: 2 * 5/1.5 = 6.7 degrees, at most 4.
    events = [10.0, 20.0, 30.0, 20.0, 20.0]
    counts = [(x, 100.0) for x in events]
    t = float(stats.t.ppf(0.975, 4))
    assert effective_trials(counts, 0.2, 1.0) == pytest.approx(160 * (NORMAL / t) ** 2)
    found = proportion(events, [100.0] * 5)
    assert (found.mean, found.runs) == (0.2, 5)
    assert found.ci95 == pytest.approx(interval(0.2, 160 * (NORMAL / t) ** 2))


def test_runs_without_an_event_bound_the_share() -> None:
    found = proportion([0.0] * 8, [2750.0] * 8)
    assert found.ci95 == pytest.approx((0.0, 1 - 0.025 ** (1 / 22000)))
    assert proportion([0.0] * 8, [2750.0] * 8, 10.0).high == pytest.approx(1 - 0.025 ** (1 / 2200))
    assert proportion([5.0] * 8, [5.0] * 8).low == pytest.approx(0.025 ** (1 / 40))
    assert proportion([1.0], [10.0]).ci95 is None
    with pytest.raises(ValueError, match="at least one trial"):
        proportion([0.0], [0.0])


def test_clustering_is_the_variance_over_that_of_independent_events() -> None:
    # One run of four has 8 of 100: the mean .02 has the variance (.06^2 + 3 * .02^2)/12 = .0004, and that of
    # 400 independent packets is .02 * .98/400 = .000049.
    assert clustering_of([8.0, 0.0, 0.0, 0.0], [100.0] * 4) == pytest.approx(0.0004 / 0.000049)
    assert clustering_of([2.0] * 4, [100.0] * 4) == 1.0
    assert clustering_of([0.0] * 4, [100.0] * 4) == 1.0


@pytest.mark.parametrize("runs", [5, 30])
@pytest.mark.parametrize(
    ("clusters", "size"), [(0.05, 1), (0.05, 10), (0.2, 10), (1.0, 1), (1.0, 10), (5.0, 10)]
)
def test_intervals_cover_rare_losses_in_clusters(runs: int, clusters: float, size: int) -> None:
    """So many clusters of losses in a run, of so many packets on average: the bound is too low in few cases.

    Of geometric sizes, losses spread 2 * size - 1 times as far as single ones.
    """
    rng = np.random.default_rng(runs)
    share, repetitions = clusters * size / 2750, 400
    too_low = covered = 0
    for _ in range(repetitions):
        events = [float(rng.geometric(1 / size, n).sum()) for n in rng.poisson(clusters, runs)]
        found = proportion(events, [2750.0] * runs, 2.0 * size - 1)
        too_low += found.high < share
        covered += found.low <= share <= found.high
    assert too_low <= stats.binom.ppf(0.999, repetitions, 0.05)
    assert covered >= stats.binom.ppf(0.001, repetitions, 0.94)


def test_a_run_is_at_least_one_trial() -> None:
    """One of 18 flows fails in two of 40 runs: at least what forty trials show."""
    found = proportion([1.0] * 38 + [17 / 18] * 2, [1.0] * 40)
    assert found.mean == pytest.approx(1 - 2 / 18 / 40)
    failed = 40 * (1 - found.mean)
    assert found.low == pytest.approx(1 - stats.beta.ppf(0.975, failed + 1, 40 - failed))
    # Runs of unequal weight are fewer.
    found = proportion([0.0, 0.0, 0.0, 100.0], [100.0, 100.0, 100.0, 1000.0])
    assert effective_trials([(0.0, 100.0)] * 3 + [(100.0, 1000.0)], found.mean, 1.0) >= 1300**2 / 1_030_000
