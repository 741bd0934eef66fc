"""Chance is claimed to be a difference in at most 5 %, and a difference is found as often as theory says."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import stats
from tests.python.statistics.claims import (
    COMMANDS,
    Row,
    Values,
    compare_claims,
    of_runs,
    of_samples,
    of_students_t,
    of_the_range,
    of_two_samples,
    plan_claims,
)

from perhop.planning.objectives import Bound, parse
from perhop.planning.verdicts import judge
from perhop.real_packets import equivalence
from perhop.real_packets.equivalence import between
from perhop.statistics.intervals import welch
from perhop.statistics.observations import Observations

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CHANCE = 0.001
"""A count that is less likely than this is no chance."""
TRIALS = 200
WHOLE_TRIALS = 50
"""Of whole commands; `python -m tests.python.statistics.claims` has as many of them as of samples."""


def most(share: float, trials: int = TRIALS) -> int:
    """How many of the trials chance may bring, if that share is true."""
    return int(stats.binom.ppf(1 - CHANCE, trials, share))


def check(row: Row) -> None:
    assert row.noise <= most(0.05, row.trials), row
    assert stats.binomtest(row.found, row.trials, row.theory).pvalue > CHANCE, row


def test_all_commands_claim_what_theory_says_of_normal_values() -> None:
    rows = list(of_samples(2 * TRIALS))
    assert [row.command for row in rows] == list(COMMANDS)
    for row in rows:
        check(row)


@pytest.mark.long
@pytest.mark.parametrize("command", COMMANDS)
def test_all_commands_claim_what_theory_says_of_runs(command: str, tmp_path: Path) -> None:
    """Whole commands, on runs of a scenario whose settings differ by luck alone, or by an added delay."""
    check(of_runs(command, tmp_path, WHOLE_TRIALS))


def test_theories_agree_where_one_is_a_case_of_another() -> None:
    assert of_the_range(2, 12, 2.0) == pytest.approx(of_students_t(12, 2.0), abs=2e-4)
    assert of_the_range(6, 12, 0.0) == pytest.approx(0.05, abs=5e-4)
    assert of_students_t(12, 0.0) == pytest.approx(0.05)
    assert of_two_samples(1000, 1000, 2.0) == pytest.approx(stats.norm.sf(1.96 - 2), abs=2e-3)


# ---------------------------------------------------------------- compare


def apart(random: np.random.Generator, share: float, runs: int) -> Values:
    """Runs of which this share is far from the others."""
    return (random.random(runs) < share) + 0.02 * random.normal(size=runs)


KINDS: dict[str, Callable[[np.random.Generator, int], Values]] = {
    "normal": lambda random, runs: random.normal(size=runs),
    "exponential": lambda random, runs: random.exponential(size=runs),
    "heavy tails": lambda random, runs: np.exp(random.normal(size=runs)),
    "one of two far away": lambda random, runs: apart(random, 0.5, runs),
    "one of five far away": lambda random, runs: apart(random, 0.2, runs),
    "one of twenty far away": lambda random, runs: apart(random, 0.05, runs),
}


@pytest.mark.parametrize("live", [2, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_few_live_runs_that_lie_close_together_are_no_difference(kind: str, live: int) -> None:
    """Welch's test alone takes their spread for that of all runs: with four it errs in up to a third."""
    random = np.random.default_rng(live)
    draw = KINDS[kind]
    found = sum(compare_claims(draw(random, 30), draw(random, live), 0.0) for _ in range(TRIALS))
    assert found <= most(0.05)


@pytest.mark.parametrize("ratio", [0.1, 0.3, 3.0, 10.0])
def test_live_runs_may_spread_otherwise(ratio: float) -> None:
    random = np.random.default_rng(5)
    found = sum(
        compare_claims(random.normal(size=30), ratio * random.normal(size=4), 0.0) for _ in range(TRIALS)
    )
    assert found <= most(0.05)


def test_a_difference_as_large_as_the_margin_is_neither() -> None:
    """Said to be larger in at most 2.5 % of the cases, to be smaller in at most 5 %."""
    random = np.random.default_rng(6)
    verdicts = [
        equivalence.tested(
            random.normal(size=30).tolist(), (random.normal(size=4) + 1.5).tolist(), 1.5
        ).verdict
        for _ in range(TRIALS)
    ]
    assert verdicts.count("different") <= most(0.025)
    assert verdicts.count("equivalent") <= most(0.05)


def test_two_samples_are_compared_by_the_longer_interval() -> None:
    many, few = [-1.0, 1.0] * 10, [0.5, 0.6]
    found = between(many, few)
    by_student = stats.ttest_ind(few, many).confidence_interval()
    assert found.interval() == pytest.approx((by_student.low, by_student.high))
    assert found.freedom == 20
    wide = [-9.0, 9.0, 0.0]
    assert between(many, wide) == welch(many, wide)
    assert between(many, [1.0]).interval() is None
    assert between([0.0, 0.0], [1.0, 1.0]).interval() == (1.0, 1.0)


def test_the_verdict_by_the_longer_interval_has_its_p_value_and_number_of_runs() -> None:
    many, few = [-1.0, 1.0] * 10, [0.5, 0.6]
    for margin in (0.0, 1.0, 3.0):
        found = equivalence.tested(many, few, margin)
        assert found.difference == between(many, few)
        above = stats.ttest_ind([x + margin for x in few], many, alternative="greater").pvalue
        below = stats.ttest_ind([x - margin for x in few], many, alternative="less").pvalue
        assert found.p == pytest.approx(max(above, below))
        assert found.verdict == ("equivalent" if margin == 3.0 else "cannot tell")
    # 21 degrees and s = 1 keep: 0.45 from the margin, n live runs and 20 others or as many.
    needed = equivalence.tested(many, few, 1.0).runs_needed
    assert needed is not None

    def half(runs: int) -> float:
        variance = (20 + 0.005) / 20
        others = max(20, runs)
        return float(stats.t.ppf(0.95, runs + others - 2) * math.sqrt(variance * (1 / runs + 1 / others)))

    assert half(needed) < 0.45 <= half(needed - 1)
    assert equivalence.tested(many, [5.5, 5.6], 1.0).verdict == "different"


# ---------------------------------------------------------------- plan


@pytest.mark.parametrize("kind", KINDS)
def test_a_setting_that_is_better_by_luck_is_not_surely_better(kind: str) -> None:
    random = np.random.default_rng(7)
    draw = KINDS[kind]
    for runs in (8, 30):
        found = sum(plan_claims(np.array([draw(random, runs), draw(random, runs)])) for _ in range(TRIALS))
        assert found <= most(0.025)


@pytest.mark.parametrize("runs", [8, 15, 30])
def test_a_better_setting_is_found_as_often_as_theory_says(runs: int) -> None:
    random = np.random.default_rng(8)
    found = 0
    for _ in range(4 * TRIALS):
        better, now = random.normal(size=(2, runs)) + 3 * random.normal(size=(1, runs))
        found += plan_claims(np.array([better - 2 * math.sqrt(2 / runs), now]))
    theory = of_students_t(runs, 2.0, sides=1)
    assert stats.binomtest(found, 4 * TRIALS, theory).pvalue > CHANCE


@pytest.mark.parametrize("groups", [1, 2, 6])
def test_a_bound_that_is_just_met_is_rarely_judged(groups: int) -> None:
    """The bound holds by chance in 2.5 %, and breaks in 2.5 %, however many groups have to keep it."""
    random = np.random.default_rng(9)
    names = [f"d{place}" for place in range(groups)]
    objective = parse("P99 of one-way delay of AF11 < 20 ms", "plan.toml")
    bound = Bound(objective, tuple((name,) for name in names), "s")
    states = []
    for _ in range(TRIALS):
        values = 0.02 + 0.001 * random.normal(size=(groups, 12))
        found = judge(
            bound, {name: Observations(tuple(row)) for name, row in zip(names, values, strict=True)}
        )
        states.append(found.state)
        assert found.p is not None
        assert (found.p <= 0.05) == (found.holds is not None)
    assert states.count("holds") <= most(0.025)
    assert states.count("breaks") <= most(0.025)


def test_a_group_that_surely_misses_its_bound_breaks_it_for_all() -> None:
    bound = Bound(parse("P99 of one-way delay of AF11 < 20 ms", "plan.toml"), (("a",), ("b",)), "s")
    good, bad = Observations((0.010, 0.011, 0.012)), Observations((0.030, 0.0301, 0.0302))
    found = judge(bound, {"a": good, "b": bad})
    assert found.state == "breaks"
    alone = judge(Bound(bound.objective, (("b",),), "s"), {"b": bad})
    assert alone.p is not None
    assert found.p == pytest.approx(2 * alone.p)
