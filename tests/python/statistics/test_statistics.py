"""Intervals against hand-computed vectors and against what must hold for any observations."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from perhop._engine import student_t_cdf, student_t_quantile
from perhop.statistics.intervals import (
    MOST_RUNS,
    Difference,
    Estimate,
    equivalence,
    estimate,
    half_width_of,
    overlap,
    paired,
    paired_difference,
    runs_to_exclude,
    welch,
)

if TYPE_CHECKING:
    from collections.abc import Callable

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


def test_the_interval_of_skewed_runs_is_longer_on_the_side_of_their_tail() -> None:
    # Hall (1992): of (0, 0, 0, 0, 5), g = sqrt(5) and t = 2.776445; with g/sqrt(n) = 1 and s/sqrt(n) = 1
    # the ends are 1 - 3 ((1 ± t - 1/6)^(1/3) - 1); the lower one, -0.6, is within that of t alone.
    found = estimate([0.0, 0.0, 0.0, 0.0, 5.0])
    upper = 1 - 3 * (math.cbrt(1 - 2.776445 - 1 / 6) - 1)
    assert found.ci95 == pytest.approx((1 - 2.776445, upper), rel=1e-6)
    assert found.text(1) == "1.0 (−1.8 to 7.7)"
    assert estimate([0.0, 0.0, 0.0, 0.0, 5.0], least=0.0).text(1) == "1.0 (0.0 to 7.7)"


_DRAWS: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "exponential": lambda rng: rng.exponential(1.0, (4000, 10)),
    "normal": lambda rng: rng.normal(1.0, 0.3, (4000, 10)),
    "heavy tails on both sides": lambda rng: 1.0 + rng.standard_t(3, (4000, 10)),
}


@pytest.mark.parametrize("draw", _DRAWS)
def test_intervals_of_ten_runs_cover_the_mean(draw: str) -> None:
    # Student's t alone covers the mean of exponential observations in 90 %; Hall's transformation alone that
    # of observations with heavy tails on both sides, as differences have them, in 93 %.
    found = [estimate(sample) for sample in _DRAWS[draw](np.random.default_rng(1)).tolist()]
    covered = sum(one.low <= 1.0 <= one.high for one in found) / len(found)
    assert 0.94 < covered < 0.975


def test_an_interval_that_ends_at_0_is_not_written_as_one_that_goes_below() -> None:
    assert Estimate(2.5, (0.0, 6.0), 5).text(1) == "2.5 (0.0 to 6.0)"
    assert Estimate(2.5, (-0.5, 6.0), 5).text(1) == "2.5 ± 3.2"
    assert Estimate(0.0, (0.0, math.inf), 5).text(0) == "0 (or more)"


def test_one_run_has_no_interval() -> None:
    found = estimate([1.5])
    assert found == Estimate(1.5, None, 1)
    assert found.half_width is None
    assert (found.low, found.high) == (1.5, 1.5)
    assert found.text() == "1.500"


@pytest.mark.parametrize(
    ("observations", "problem"),
    [
        ([], "an estimate needs at least one observation"),
        ([math.nan], "an estimate needs finite observations"),
        ([1.0, math.inf], "an estimate needs finite observations"),
    ],
)
def test_refuses_what_has_no_mean(observations: list[float], problem: str) -> None:
    with pytest.raises(ValueError, match=f"^{problem}$"):
        estimate(observations)


def test_the_half_width_of_another_number_of_runs() -> None:
    # s = 1.2909944 of four observations; t(0.975, 5) = 2.570582 and t(0.975, 1) = 12.706205.
    assert half_width_of([1.0, 2.0, 3.0, 4.0], 6) == pytest.approx(2.570582 * 1.2909944 / math.sqrt(6))
    assert half_width_of([1.0, 3.0], 2) == pytest.approx(12.706205)


@pytest.mark.parametrize(("observations", "runs"), [([1.0], 6), ([1.0, 2.0], 1)])
def test_a_half_width_needs_a_spread_and_two_runs(observations: list[float], runs: int) -> None:
    problem = r"^a spread needs at least two observations, and an interval at least two runs$"
    with pytest.raises(ValueError, match=problem):
        half_width_of(observations, runs)


def forecast(runs: int) -> float:
    """Half the interval of so many runs with a standard deviation of 1."""
    return float(stats.t.ppf(0.975, runs - 1)) / math.sqrt(runs)


@pytest.mark.parametrize("runs", [5, 6, 9, 40, MOST_RUNS])
def test_a_forecast_is_the_first_number_of_runs_whose_interval_fits(runs: int) -> None:
    found = Estimate(2.0, (2 - forecast(4), 2 + forecast(4)), 4)
    assert runs_to_exclude(found, 2 + (forecast(runs - 1) + forecast(runs)) / 2) == runs
    # Four runs do already, but what is asked for is a number of more.
    assert runs_to_exclude(found, 2 + 1.001 * forecast(4)) == 5
    assert runs_to_exclude(found, 2 + (forecast(MOST_RUNS) + forecast(MOST_RUNS + 1)) / 2) is None


@pytest.mark.parametrize("events", [1, 2, 3])
def test_the_long_side_of_a_rare_share_shrinks_faster_than_by_the_root(events: int) -> None:
    def exact(count: int, runs: int) -> tuple[float, float]:
        """Clopper and Pearson's interval of events in so many runs of a thousand packets."""
        packets = 1000 * runs
        low = stats.beta.ppf(0.025, count, packets - count + 1)
        return float(low), float(stats.beta.ppf(0.975, count + 1, packets - count))

    mean, (low, high) = events / 30_000, exact(events, 30)
    for factor in (4, 8, 16):
        bound = exact(factor * events, factor * 30)[1]
        needed = runs_to_exclude(Estimate(mean, (low, high), 30), bound)
        by_the_root = 30 * ((high - mean) / (bound - mean)) ** 2
        assert needed is not None
        assert 0.6 < needed / (factor * 30) < 1.3
        assert by_the_root / (factor * 30) > 1.5


def test_no_number_of_runs_fits_into_no_room() -> None:
    assert runs_to_exclude(Estimate(2.0, (2.0, 2.0), 4), 2.0) is None
    with pytest.raises(ValueError, match=r"^a forecast needs an interval$"):
        runs_to_exclude(Estimate(2.0, None, 1), 1.0)


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
    with pytest.raises(ValueError, match=r"^a paired difference needs runs on the same seeds$"):
        paired_difference({1: 1.0}, {2: 1.0})


def test_overlap() -> None:
    touching = Estimate(1, (0.5, 1.5), 6), Estimate(2, (1.5, 2.5), 6)
    assert overlap(*touching)
    assert overlap(*reversed(touching))
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


# By hand: means 2.5 and 4, variances 5/3 and 5/2; so the squared error is 5/12 + 1/2 = 11/12, and the
# degrees of freedom are (11/12)² / ((5/12)²/3 + (1/2)²/4) = (121/144) / (25/432 + 1/16) = 363/52.
A, B = [1.0, 2.0, 3.0, 4.0], [2.0, 3.0, 4.0, 5.0, 6.0]


def test_welch_by_hand() -> None:
    found = welch(A, B)
    assert found.value == pytest.approx(1.5)
    assert found.error == pytest.approx(math.sqrt(11 / 12))
    assert found.freedom == pytest.approx(363 / 52)
    # t(0.95, 6.98) = 1.896 and t(0.975, 6.98) = 2.366, between the printed values for 6 and 7 degrees.
    assert found.interval(0.9) == pytest.approx((1.5 - 1.896 * 0.95743, 1.5 + 1.896 * 0.95743), abs=2e-3)
    assert found.interval() == pytest.approx((1.5 - 2.366 * 0.95743, 1.5 + 2.366 * 0.95743), abs=2e-3)


def test_paired_differences_have_the_same_interval() -> None:
    a, b = {1: 5.0, 2: 7.0, 3: 9.0}, {1: 4.0, 2: 5.0, 3: 6.0}
    assert paired(a, b).interval() == pytest.approx(paired_difference(a, b).ci95)
    assert paired(a, b).freedom == 2
    assert paired({1: 2.0}, {1: 0.5}) == Difference(1.5, None, None)
    assert Difference(1.5, None, 2.0).interval() is None
    assert Difference(1.5, 0.5, None).interval() is None


def test_equal_samples_have_the_degrees_of_the_pooled_test() -> None:
    assert welch([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]).freedom == pytest.approx(4)


@pytest.mark.parametrize("margin", [0.5, 1.5, 2.0, 3.3, 6.0])
def test_one_sided_tests_are_those_of_scipy(margin: float) -> None:
    above = stats.ttest_ind([x + margin for x in B], A, equal_var=False, alternative="greater").pvalue
    below = stats.ttest_ind([x - margin for x in B], A, equal_var=False, alternative="less").pvalue
    found = equivalence(A, B, margin)
    assert found.p == pytest.approx(max(above, below))
    assert (found.verdict == "equivalent") == (max(above, below) <= 0.05)


def test_verdicts() -> None:
    # 90 % of -0.32 to 3.32, 95 % of -0.77 to 3.77.
    assert equivalence(A, B, 3.4).verdict == "equivalent"
    assert equivalence(A, B, 3.2).verdict == "cannot tell"
    assert equivalence(A, [x + 5 for x in B], 4.1).verdict == "different"
    assert equivalence([x + 5 for x in B], A, 4.1).verdict == "different"
    # The interval excludes 0 but not the margin.
    assert equivalence(A, [x + 5 for x in B], 5.0).verdict == "cannot tell"


@pytest.mark.parametrize("margin", [9.0, 4.1, 5.0])
def test_a_verdict_carries_what_it_was_decided_by(margin: float) -> None:
    shifted = [x + 5 for x in B]
    found = equivalence(A, shifted, margin)
    assert (found.difference, found.margin) == (welch(A, shifted), margin)
    assert found.p == pytest.approx(
        stats.ttest_ind([x - margin for x in shifted], A, equal_var=False, alternative="less").pvalue
    )


def test_an_interval_that_ends_at_the_margin_does_not_lie_beyond_it() -> None:
    shifted = [x + 5 for x in B]
    low, _ = welch(A, shifted).interval() or (0.0, 0.0)
    assert equivalence(A, shifted, low).verdict == "cannot tell"
    assert equivalence(shifted, A, low).verdict == "cannot tell"
    assert equivalence(A, shifted, math.nextafter(low, 0)).verdict == "different"
    assert equivalence(shifted, A, math.nextafter(low, 0)).verdict == "different"


def test_the_number_of_runs_that_would_tell_does() -> None:
    # Spreads that keep as samples grow: pairs at the mean ± s.
    def sample(mean: float, runs: int) -> list[float]:
        return [mean + (-1) ** n for n in range(runs)]

    found = equivalence(sample(0, 4), sample(0.5, 4), 1.0)
    assert found.verdict == "cannot tell"
    assert found.runs_needed is not None
    needed = found.runs_needed + found.runs_needed % 2
    assert equivalence(sample(0, needed), sample(0.5, needed), 1.0).verdict == "equivalent"
    assert equivalence(sample(0, 10), sample(0.5, 10), 1.0).verdict == "cannot tell"
    assert equivalence(sample(0, 4), sample(1, 4), 1.0).runs_needed is None


def test_the_number_of_runs_that_would_tell_by_hand() -> None:
    # Four of each, 1 above and below their means: s² = 4/3. With n of each the error is sqrt(8/3n), of 2n - 2
    # degrees. Within the margin, 0.5 away from it, by 90 %: t(0.95, 56) sqrt(8/87) = 1.6725 0.3032 = 0.507
    # for 29, and 1.6716 sqrt(8/90) = 0.498 for 30. Beyond it, by 95 %: 1.9893 sqrt(8/126) = 0.501 for 42, and
    # 1.9886 sqrt(8/129) = 0.495 for 43.
    a, b = [-1.0, 1.0, -1.0, 1.0], [-0.5, 1.5, -0.5, 1.5]
    assert equivalence(a, b, 1.0).runs_needed == 30
    assert equivalence(b, a, 1.0).runs_needed == 30
    assert equivalence(a, b, 0.0).runs_needed == 43
    # The next run would tell: 1.8595 sqrt(8/15) = 1.358 for five.
    assert equivalence(a, a, 1.37).runs_needed == 5


@pytest.mark.parametrize("runs", [MOST_RUNS, MOST_RUNS + 1])
def test_no_more_runs_are_proposed_than_anybody_makes(runs: int) -> None:
    def room(runs: int) -> float:
        return float(stats.t.ppf(0.95, 2 * runs - 2)) * math.sqrt(8 / (3 * runs))

    a = [-1.0, 1.0, -1.0, 1.0]
    found = equivalence(a, a, (room(runs - 1) + room(runs)) / 2)
    assert found.runs_needed == (runs if runs <= MOST_RUNS else None)


def test_what_has_no_spread_is_decided_by_its_difference() -> None:
    same = equivalence([0.0, 0.0], [0.0, 0.0, 0.0], 0.0)
    assert (same.verdict, same.p) == ("equivalent", 0.0)
    assert same.difference.freedom == 3.0
    apart = equivalence([0.0, 0.0], [1.0, 1.0], 0.5)
    assert (apart.verdict, apart.p) == ("different", 1.0)
    assert equivalence([0.0, 0.0], [1.0, 1.0], 2.0).verdict == "equivalent"


def test_spreads_too_small_to_square() -> None:
    found = equivalence([0.0, 0.0], [0.0, 1e-150], 0.0)
    assert found.difference.freedom == pytest.approx(1.0)
    assert found.verdict == "cannot tell"
    assert found.runs_needed is not None


def test_one_run_decides_nothing() -> None:
    found = equivalence([1.0, 2.0, 3.0], [2.0], 10.0)
    assert found.difference == Difference(0.0, None, None)
    assert found.difference.interval() is None
    assert (found.verdict, found.p, found.margin, found.runs_needed) == ("cannot tell", None, 10.0, 2)


def test_no_mean_reads_as_minus_zero() -> None:
    assert Estimate(-0.0001, (-0.0201, 0.0199), 5).text(3) == "0.000 ± 0.020"
    assert Estimate(-0.0001, (-0.0201, 0.0199), 5).text(3, sign=True) == "+0.000 ± 0.020"
    assert Estimate(-0.0301, (-0.0501, -0.0101), 5).text(3) == "−0.030 ± 0.020"


def test_a_margin_is_not_negative() -> None:
    with pytest.raises(ValueError, match="margin"):
        equivalence(A, B, -1.0)


samples = st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=8)


@given(samples, samples, st.floats(0, 1e3))
def test_verdicts_agree_with_the_intervals(a: list[float], b: list[float], margin: float) -> None:
    found = equivalence(a, b, margin)
    back = equivalence(b, a, margin)
    assert found.verdict == back.verdict
    ends = found.difference.interval(0.9)
    assert ends is not None
    slack = 1e-6 * max(1.0, margin, *map(abs, ends))
    if found.verdict == "equivalent":
        assert -margin - slack <= ends[0] <= ends[1] <= margin + slack
    if found.verdict == "different":
        assert min(abs(end) for end in found.difference.interval() or ()) >= margin - slack
    assert (found.runs_needed is None) or found.verdict == "cannot tell"


@pytest.mark.parametrize("freedom", [1, 1.3, 2, 2.7, 3, 4, 5, 9, 15.55, 29, 99, 999])
def test_students_t_is_that_of_scipy(freedom: float) -> None:
    for probability in (0.025, 0.5, 0.9, 0.95, 0.975, 0.995):
        expected = special.stdtrit(freedom, probability)
        assert student_t_quantile(freedom, probability) == pytest.approx(expected, rel=1e-11, abs=1e-11)
    for t in (-30.0, -3.0, -0.5, 0.0, 0.1, 2.0, 8.0):
        assert student_t_cdf(freedom, t) == pytest.approx(special.stdtr(freedom, t), rel=1e-11)


def test_students_t_by_the_tables() -> None:
    assert student_t_quantile(3, 0.975) == pytest.approx(3.182446, abs=5e-7)
    assert student_t_quantile(1, 0.95) == pytest.approx(6.313752, abs=5e-7)
    assert student_t_quantile(1, 1.0) == math.inf
    assert student_t_cdf(1, 1.0) == pytest.approx(0.75)


@pytest.mark.parametrize("freedom", [0.0, -1.0, math.nan])
def test_students_t_needs_degrees_of_freedom(freedom: float) -> None:
    with pytest.raises(ValueError, match="degrees of freedom above 0"):
        student_t_cdf(freedom, 1.0)


@pytest.mark.parametrize("probability", [-0.1, 1.1, math.nan])
def test_a_quantile_needs_a_probability(probability: float) -> None:
    with pytest.raises(ValueError, match="from 0 to 1"):
        student_t_quantile(3, probability)
