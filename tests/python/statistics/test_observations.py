"""Percentiles over runs, and differences: by hand, and against a queue whose waits are known."""

from __future__ import annotations

import functools
import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from perhop.runs import observing
from perhop.statistics.observations import Distribution, Observations, ObservedQueue, paired, pooled


def of(*values: float) -> Distribution:
    return Distribution.from_values(values)


def test_a_distribution_is_linear_between_its_points() -> None:
    one = of(1.0, 2.0, 3.0, 4.0)
    assert [one.quantile(level) for level in (0.25, 0.5, 0.625, 1.0)] == [1.5, 2.5, 3.0, 4.0]
    assert [float(one.share_up_to(at)) for at in (0.5, 1.0, 2.5, 9.0)] == [0.0, 0.125, 0.5, 1.0]


def test_a_histogram_keeps_the_largest_value_of_each_bin() -> None:
    edges, longest = np.array([0.0, 1.0, 2.0, 4.0]), np.array([0.8, 0.0, 3.0])
    one = Distribution.from_histogram(
        {"edges": edges, "counts": np.array([[3, 0], [0, 0], [0, 1]]), "longest": longest}
    )
    assert [one.count, one.quantile(0.75), one.quantile(1.0)] == pytest.approx([4, 0.8, 3.0])
    assert float(one.share_up_to(1.9)) == 0.75  # nothing lies in the empty bin
    assert one.quantile(0.875) == pytest.approx(2.5)


def test_what_a_store_keeps_of_a_distribution_is_near_to_it() -> None:
    whole = Distribution.from_values(np.random.default_rng(1).exponential(1.0, 5000))
    kept = Distribution.from_levels(whole.count, whole.at_levels())
    for level in (0.05, 0.5, 0.97, 0.99, 0.998):
        assert kept.quantile(level) == pytest.approx(whole.quantile(level), rel=0.02)
    assert all(map(math.isnan, of().at_levels()))


def test_values_that_are_not_known_are_never_a_percentile() -> None:
    cut = Distribution(100.0, np.array([1.0, 2.0]), np.array([0.5, 0.92]))
    assert (cut.quantile(0.5), cut.quantile(0.95)) == (1.0, math.inf)
    kept = Distribution.from_levels(cut.count, cut.at_levels())
    assert (kept.quantile(0.5), kept.quantile(0.95)) == (1.0, math.inf)
    runs = (cut, cut)
    known = Observations((1.0, 1.1), distributions=runs, level=0.5).estimate
    assert known is not None
    assert known.mean == pytest.approx(1.0)
    assert Observations((math.nan, math.nan), distributions=runs, level=0.99).estimate is None


def test_the_percentile_of_runs_is_that_of_all_their_values() -> None:
    short, long = of(*range(1, 11)), of(*range(101, 191))
    assert pooled([short, long]).quantile(0.1) == pytest.approx(10.0)
    found = Observations((10.0, 190.0), distributions=(short, long), level=0.5).estimate
    assert found is not None
    assert found.mean == pytest.approx(
        140.5
    )  # 40 of the 90 and the ten are half of all; the mean of medians is 75


def test_the_median_of_runs_with_few_values_is_not_too_low() -> None:
    rng = np.random.default_rng(2)
    middles = []
    for _ in range(200):
        runs = tuple(of(*rng.exponential(1.0, 11)) for _ in range(30))
        found = Observations((math.nan,) * 30, distributions=runs, level=0.5).estimate
        assert found is not None
        middles.append(found.mean)
    assert math.fsum(middles) / 200 == pytest.approx(math.log(2), rel=0.02)


def test_runs_that_agree_to_the_last_digit_have_that_percentile() -> None:
    exact = Distribution(50.0, np.array([1.17, 1.2]), np.array([0.0, 1.0]))
    found = Observations((1.2, 1.2), distributions=(exact, exact), level=0.5).estimate
    assert found is not None
    assert (found.mean, found.ci95) == (1.2, (1.2, 1.2))


def test_too_few_waits_bound_a_percentile_from_below_alone() -> None:
    rng = np.random.default_rng(5)
    runs = tuple(Distribution.from_values(rng.exponential(1.0, 40)) for _ in range(5))
    found = Observations(tuple(one.quantile(0.99) for one in runs), distributions=runs, level=0.99).estimate
    assert found is not None
    assert math.isinf(found.high)
    assert found.low < found.mean


SERVICE, LOAD = 0.01, 0.8


def waits(rng: np.random.Generator, seconds: float) -> NDArray[np.float64]:
    """The waiting times of an M/D/1 queue that is empty at first (Lindley 1952)."""
    packets = rng.poisson(LOAD / SERVICE * seconds)
    steps = SERVICE - rng.exponential(SERVICE / LOAD, packets)
    walk = np.cumsum(steps) - steps[:1]
    found: NDArray[np.float64] = walk - np.minimum.accumulate(walk)
    return found


@functools.cache
def many_waits() -> NDArray[np.float64]:
    rng = np.random.default_rng(3)
    return np.concatenate([waits(rng, 10.0) for _ in range(8000)])


@pytest.mark.parametrize(("runs", "level"), [(5, 0.5), (30, 0.5), (30, 0.95), (30, 0.99), (50, 0.99)])
def test_percentiles_of_short_runs_are_covered(runs: int, level: float) -> None:
    """Ten seconds at load .8. The mean of the runs' own P99 is 14 % too low, however many there are."""
    rng = np.random.default_rng(7)
    true = float(np.quantile(many_waits(), level))
    repetitions, covered, middle = 200, 0, 0.0
    for _ in range(repetitions):
        of_runs = tuple(Distribution.from_values(waits(rng, 10.0)) for _ in range(runs))
        own = tuple(one.quantile(level) for one in of_runs)
        found = Observations(own, distributions=of_runs, level=level).estimate
        assert found is not None
        covered += found.low <= true <= found.high
        middle += found.mean / repetitions
    assert middle == pytest.approx(true, rel=0.03)
    assert covered >= stats.binom.ppf(0.001, repetitions, 0.93)


def test_differences_of_means_are_paired() -> None:
    a, b = Observations((5.0, 7.0, 9.0, math.nan)), Observations((4.0, 5.0, 6.0, 1.0))
    found = paired(a, b)
    assert found is not None
    assert (found.mean, found.runs, found.of) == (2.0, 3, 4)
    assert paired(Observations((math.nan,)), Observations((1.0,))) is None
    with pytest.raises(ValueError, match="the same seeds"):
        paired(a, Observations((1.0,)))


def test_two_shares_without_an_event_do_not_differ() -> None:
    none = Observations((0.0,) * 10, 0.0, 1.0, trials=(100.0,) * 10)
    found = paired(none, none)
    assert found is not None
    upper = 1 - 0.025 ** (1 / 1000)
    assert found.mean == 0
    assert found.ci95 == pytest.approx((-upper, upper))


def test_shares_are_weighed_by_their_trials() -> None:
    one = Observations((0.1, 0.4), 0.0, 1.0, trials=(300.0, 100.0))
    assert one.estimate is not None
    assert one.estimate.mean == pytest.approx(0.175)
    assert math.fsum(one.linear([0, 1])) / 2 == pytest.approx(0.175)


def test_counts_are_bounded_by_how_often_they_could_have_been() -> None:
    unfinished = Observations((0.0,) * 10, 0.0, trials=(50.0,) * 10, are_counts=True)
    assert unfinished.estimate is not None
    assert unfinished.estimate.high == pytest.approx(50 * (1 - 0.025 ** (1 / 500)))


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_paired_differences_of_percentiles_are_covered(level: float) -> None:
    rng = np.random.default_rng(11)
    repetitions, covered = 150, 0
    for number in range(repetitions):
        both = [tuple(Distribution.from_values(waits(rng, 10.0)) for _ in range(20)) for _ in range(2)]
        a, b = (
            Observations(tuple(one.quantile(level) for one in runs), distributions=runs, level=level)
            for runs in both
        )
        if number < 10:
            exact = paired(a, replace(a))
            assert exact is not None
            assert exact.ci95 == pytest.approx((0.0, 0.0), abs=1e-12)
        found = paired(a, b)
        assert found is not None
        covered += found.low <= 0 <= found.high
    assert stats.binom.ppf(0.001, repetitions, 0.93) <= covered


def test_the_distribution_of_many_runs_is_the_weighted_sum_of_theirs() -> None:
    rng = np.random.default_rng(4)
    runs = [Distribution.from_values(rng.exponential(1.0, count)) for count in rng.integers(3, 40, 25)]
    whole = pooled(runs)
    total = sum(one.count for one in runs)
    at = rng.exponential(1.0, 500)
    expected = sum(one.share_up_to(at) * one.count / total for one in runs)
    assert whole.count == total
    assert whole.share_up_to(at) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("level", [0.5, 0.99])
def test_pseudo_values_are_those_of_leaving_one_run_out(level: float) -> None:
    rng = np.random.default_rng(5)
    runs = [Distribution.from_values(rng.exponential(1.0, 200)) for _ in range(12)]
    found = Observations((math.nan,) * 12, distributions=tuple(runs), level=level).linear(range(12))
    whole = pooled(runs).quantile(level)
    without = [pooled([*runs[:place], *runs[place + 1 :]]).quantile(level) for place in range(12)]
    pseudo = np.array([12 * whole - 11 * one for one in without])
    assert found == pytest.approx(pseudo + (whole - pseudo.mean()), rel=1e-9)


@pytest.mark.parametrize(
    ("metric", "value", "ends"),
    [
        # Of 30 runs without an event, Clopper and Pearson's upper end is 1 - 0.025^(1/30) = 0.1157.
        ("flows.web.recovering", 0.0, (0.0, 0.11570)),
        ("flows.web.congestion_limited", 1.0, (1 - 0.11570, 1.0)),
        ("applications.film.stall_seconds_per_hour", 0.0, (0.0, math.inf)),
        ("applications.talk.burst_ratio", 1.0, (1 - 0.11570, math.inf)),
        ("applications.film.not_started", 0.0, (0.0, math.inf)),
        # What is no event is known where no run differs.
        ("links.uplink.utilization", 1.0, (1.0, 1.0)),
        ("flows.web.throughput_bps", 0.0, (0.0, 0.0)),
    ],
)
def test_runs_in_which_nothing_happens_do_not_show_that_nothing_can(
    metric: str, value: float, ends: tuple[float, float]
) -> None:
    found = observing.observations(metric, [value] * 30).estimate
    assert found is not None
    assert found.mean == value
    assert found.ci95 == pytest.approx(ends, rel=1e-4)


def test_no_flow_in_eight_runs_with_its_profile_is_one_trial_for_each_run() -> None:
    # Drops of the link's queue come in clusters of 500; these are no trials of the flows.
    queue = ObservedQueue((500.0, 0.0) * 4, (1000.0,) * 8, (None,) * 8)
    found = observing.observations(
        "flows.sold.profile_success", [0.0] * 8, trials=[1.0] * 8, queues=[queue]
    ).estimate
    assert found is not None
    assert found.ci95 == pytest.approx((0.0, 0.36942), abs=1e-5)  # Clopper and Pearson's of 0 of 8


def test_losses_of_a_link_do_not_come_as_the_drops_of_its_queue_do() -> None:
    queue = ObservedQueue((500.0, 0.0) * 4, (1000.0,) * 8, (None,) * 8)
    found = observing.observations("flows.a.link_loss", [0.0] * 8, trials=[50.0] * 8, queues=[queue]).estimate
    assert found is not None
    assert found.high == pytest.approx(1 - 0.025 ** (1 / 400))


def test_a_value_of_one_run_that_is_too_low_bounds_no_mean() -> None:
    found = Observations((539.0, math.nan, math.nan), at_least=(True, False, False)).estimate
    assert found is not None
    assert (found.mean, found.low, found.high) == (539.0, -math.inf, math.inf)
    assert found.text(0) == "539 (not known)"


def test_a_queue_with_flows_that_few_runs_have_is_one_trial_for_each_run() -> None:
    short = tuple(of(0.001, 0.002) for _ in range(30))
    queue = ObservedQueue((0.0,) * 30, (1000.0,) * 30, short, room_s=1.0, longest_s=0.002)
    bounds = []
    for seen in (queue, replace(queue, rare_load=True)):
        found = Observations(
            (0.0,) * 30, 0.0, 1.0, trials=(1000.0,) * 30, queues=(seen,), are_drops=True
        ).estimate
        assert found is not None
        bounds.append(found.high)
    assert bounds[0] < 1e-6
    assert bounds[1] == pytest.approx(1 - 0.025 ** (1 / 30))


def test_how_far_a_queue_was_from_full_is_known_by_its_own_waits_and_from_five_runs_on() -> None:
    own = tuple(of(0.01) for _ in range(8))
    queue = ObservedQueue((0.0,) * 8, (100.0,) * 8, own, room_s=0.1, longest_s=0.01)
    (seen,) = observing.seen_by(tuple(of(0.2) for _ in range(8)), [queue])  # propagation of 190 ms
    assert (queue.reserve, seen.reserve) == (5.0, 5.0)
    assert ObservedQueue((0.0,) * 2, (100.0,) * 2, own[:2], room_s=0.1, longest_s=0.01).reserve == 1.0


def test_a_difference_of_percentiles_is_that_of_all_waits() -> None:
    # Runs of ten seconds: the mean of the runs' own differences is too low.
    rng = np.random.default_rng(6)
    truth = float(np.subtract(*np.quantile(many_waits(), [0.99, 0.5])))
    covered, means = 0, []
    for _ in range(60):
        runs = tuple(Distribution.from_values(waits(rng, 10.0)) for _ in range(30))
        found = observing.observations("links.a.delay_variation_s", [1.0] * 30, waits=runs).estimate
        assert found is not None
        means.append(found.mean)
        covered += found.low <= truth <= found.high
    assert np.mean(means) == pytest.approx(truth, rel=0.03)
    assert covered >= 53
