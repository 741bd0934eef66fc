"""Verdicts with three states, by intervals, and how they combine."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perhop.statistics.intervals import MOST_RUNS, Estimate, estimate, runs_to_exclude
from perhop.statistics.judging import (
    Check,
    above,
    all_of,
    any_of,
    at_least,
    at_least_of,
    at_most,
    below,
    fact,
    judge,
    near,
    opposite,
    within,
)

# Mean 2, standard deviation 1: half width 3.182 * 1 / sqrt(4) = 1.591 for four runs.
FOUR = estimate([1.0, 1.0, 3.0, 3.0])
ONE = estimate([2.0])
YES, NO, OPEN = Check(holds=True), Check(holds=False), Check(None, 9)


def test_a_bound_is_compared_with_the_whole_interval() -> None:
    tight = Estimate(2.0, (1.9, 2.1), 4)
    assert [above(tight, bound).holds for bound in (1.8, 2.0, 2.2)] == [True, None, False]
    assert [below(tight, bound).holds for bound in (1.8, 2.0, 2.2)] == [False, None, True]
    assert [at_least(tight, bound).holds for bound in (1.9, 2.1, 2.11)] == [True, None, False]
    assert [at_most(tight, bound).holds for bound in (1.89, 1.9, 2.1)] == [False, None, True]
    assert [within(tight, 1.9, high).holds for high in (1.8, 2.0, 2.1)] == [False, None, True]
    assert [within(tight, low, 2.1).holds for low in (1.9, 2.0, 2.11)] == [True, None, False]
    assert near(tight, 2.05, 0.2).holds is True
    # Without a bound it is zero.
    low = Estimate(0.5, (0.4, 0.6), 4)
    assert (above(low).holds, below(low).holds) == (True, False)


def test_a_mean_without_spread_that_equals_the_bound() -> None:
    exact = Estimate(2.0, (2.0, 2.0), 4)
    assert above(exact, 2.0).holds is False
    assert below(exact, 2.0).holds is False
    assert at_least(exact, 2.0).holds is True
    assert at_most(exact, 2.0).holds is True


def test_one_run_tells_nothing() -> None:
    assert above(ONE, 0.0) == Check(None, 2)
    assert below(ONE, 0.0) == Check(None, 2)


def test_how_many_runs_would_tell() -> None:
    # s = 2/sqrt(3) = 1.1547. Seven runs: 2.447 s / sqrt(7) = 1.068; eight: 2.365 s / sqrt(8) = 0.965.
    assert above(FOUR, 1.0) == Check(None, 8)
    assert runs_to_exclude(FOUR, 1.0) == 8
    assert above(FOUR, 2.0) == Check(None, None)  # no number of runs distinguishes a mean from itself
    assert runs_to_exclude(FOUR, 2 + 1e-9) is None
    with pytest.raises(ValueError, match="needs an interval"):
        runs_to_exclude(ONE, 1.0)


@given(
    st.lists(st.floats(-100, 100), min_size=2, max_size=9),
    st.floats(-100, 100),
)
def test_opposite_bounds_never_both_hold(values: list[float], bound: float) -> None:
    found = estimate(values)
    states = above(found, bound).holds, below(found, bound).holds
    assert states in {(True, False), (False, True), (None, None), (False, False)}
    needed = above(found, bound).runs_needed
    assert needed is None or len(values) < needed <= MOST_RUNS


@pytest.mark.parametrize("checks", list(itertools.product([YES, NO, OPEN], repeat=2)))
def test_checks_combine_as_in_three_valued_logic(checks: tuple[Check, Check]) -> None:
    states = {check.holds for check in checks}
    assert all_of(*checks).holds is (False if False in states else None if None in states else True)
    assert any_of(*checks).holds is (True if True in states else None if None in states else False)
    assert opposite(all_of(*checks)).holds is any_of(*map(opposite, checks)).holds
    assert at_least_of(2, checks) == all_of(*checks)
    assert at_least_of(1, checks).holds is any_of(*checks).holds


def test_the_opposite_of_an_open_check_needs_the_same_runs() -> None:
    assert [opposite(check) for check in (YES, NO, OPEN)] == [NO, YES, OPEN]


def test_combined_checks_ask_for_the_runs_that_they_need() -> None:
    few, many, never = Check(None, 5), Check(None, 50), Check(None, None)
    assert all_of(few, many, YES) == Check(None, 50)
    assert all_of(few, never) == Check(None, None)
    assert any_of(many, few, NO) == Check(None, 5)
    assert any_of(never, many) == Check(None, 50)
    assert any_of(never, NO) == Check(None, None)
    assert at_least_of(2, [YES, few, many]) == Check(None, 50)


def test_no_checks_are_no_verdict() -> None:
    for combine in (all_of, any_of):
        with pytest.raises(ValueError, match=r"^a verdict needs at least one check$"):
            combine()


def test_a_judgement_carries_its_check() -> None:
    judgement = judge(any_of(OPEN, fact(holds=False)), "1 ~ 2")
    assert (judgement.holds, judgement.evidence, judgement.runs_needed) == (None, "1 ~ 2", 9)
    assert [judge(fact(holds=holds), "").holds for holds in (True, False)] == [True, False]
