"""Which trial to take: ties and no difference are said, on pure noise and with an effect of known size."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest

from perhop.statistics.observations import Observations
from perhop.sweeps.choosing import Choice, Validated, choose
from perhop.sweeps.tuning import Objective

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

DELAY, RATE = Objective("delay", maximize=False), Objective("rate", maximize=True)


def validated(key: str, *, holds: bool = True, **metrics: ArrayLike) -> Validated:
    """A setting with these values of each run by metric."""
    observed = {
        name: Observations(tuple(np.asarray(values, dtype=float))) for name, values in metrics.items()
    }
    return Validated(key, {name: one.estimate for name, one in observed.items()}, observed, holds)


def noise(random: np.random.Generator, settings: int, runs: int) -> np.ndarray:
    """f64[settings, runs] without any effect; runs on a seed share luck."""
    return 20 + random.normal(size=(settings, runs)) + 3 * random.normal(size=(1, runs))


def of_delay(values: np.ndarray) -> Choice:
    """The choice among all rows but the last, which is the scenario as it is."""
    *trials, now = (validated(str(i), delay=row) for i, row in enumerate(values))
    return choose([DELAY], trials, now)


def test_on_pure_noise_a_search_names_a_difference_in_at_most_one_of_twenty() -> None:
    random = np.random.default_rng(21)
    choices = [of_delay(noise(random, 6, 12)) for _ in range(400)]
    assert sum(choice.differ for choice in choices) <= 0.065 * 400
    assert sum(bool(choice.marked) for choice in choices) <= 0.05 * 400
    assert all(len(choice.alike) == 4 for choice in choices if not choice.differ)


def test_on_pure_noise_a_front_names_a_difference_in_at_most_one_of_twenty() -> None:
    random = np.random.default_rng(22)
    differ = 0
    for _ in range(300):
        delay, rate = noise(random, 7, 12), noise(random, 7, 12)
        *trials, now = (validated(str(i), delay=delay[i], rate=rate[i]) for i in range(7))
        found = choose([DELAY, RATE], trials, now)
        differ += found.differ
        assert found.differ or not found.marked
    assert differ <= 0.065 * 300


def test_an_effect_is_found_as_often_as_the_studentized_range_allows() -> None:
    """One trial beside the scenario as it is, two standard errors better: the power of a paired t test."""
    from scipy import stats  # noqa: PLC0415

    random = np.random.default_rng(23)
    runs = 12
    found = 0
    for _ in range(600):
        values = noise(random, 2, runs)
        values[0] -= 2 * math.sqrt(2 / runs)
        found += bool(of_delay(values).better)
    power = stats.nct.sf(stats.t.ppf(0.975, runs - 1), runs - 1, 2)
    assert found / 600 == pytest.approx(power, abs=0.06)


def test_what_is_surely_better_is_taken() -> None:
    values = noise(np.random.default_rng(24), 6, 12)
    values[3] -= 9
    found = of_delay(values)
    assert (found.best, found.marked, found.better, found.alike) == (3, (3,), ("delay",), ())
    values[5] -= 9  # as it is, too
    found = of_delay(values)
    assert (found.best, found.marked, found.better, found.worse) == (3, (), (), ())


def test_trials_that_are_as_good_are_named() -> None:
    values = noise(np.random.default_rng(25), 6, 12)
    values[1:4] -= 9
    found = of_delay(values)
    assert found.best in {1, 2, 3}
    assert {found.best, *found.alike} == {1, 2, 3}


def test_the_scenario_as_it_is_may_be_among_the_trials() -> None:
    values = noise(np.random.default_rng(26), 2, 12)
    values[1] = values[0]
    trials = [validated("now", delay=values[0])]
    found = choose([DELAY], trials, validated("now", delay=values[1]))
    assert found.is_as_it_is
    assert not found.differ


def test_a_front_of_two_is_a_tie_for_either_order_of_the_objectives() -> None:
    random = np.random.default_rng(27)
    one = validated("a", delay=noise(random, 1, 12)[0], rate=noise(random, 1, 12)[0])
    other = validated("b", delay=noise(random, 1, 12)[0] + 50, rate=noise(random, 1, 12)[0] + 50)
    for objectives in ([DELAY, RATE], [RATE, DELAY]):
        found = choose(objectives, [one, other], None)
        assert (found.best, found.tied, found.marked) == (None, (0, 1), (0, 1))


def test_no_order_of_objectives_or_trials_changes_the_choice() -> None:
    random = np.random.default_rng(28)
    values = {"a": (0, 0), "b": (10, 60), "c": (60, 90)}  # delay to be small, rate to be large
    trials = [
        validated(key, delay=noise(random, 1, 12)[0] + d, rate=noise(random, 1, 12)[0] + r)
        for key, (d, r) in values.items()
    ]
    for objectives in ([DELAY, RATE], [RATE, DELAY]):
        for order in ([0, 1, 2], [2, 1, 0], [1, 2, 0]):
            found = choose(objectives, [trials[i] for i in order], None)
            assert found.best is not None
            assert trials[order[found.best]].key == "b"
            assert found.alike == ()


def test_the_nearest_of_a_front_may_be_one_of_several() -> None:
    random = np.random.default_rng(29)
    steps = np.linspace(0, 4, 5)
    trials = [
        validated(str(i), delay=noise(random, 1, 12)[0] + d, rate=noise(random, 1, 12)[0] + d)
        for i, d in enumerate(steps)
    ]
    found = choose([DELAY, RATE], trials, None)
    assert found.best is None or found.alike


def test_a_trade_is_better_by_one_objective_and_worse_by_another() -> None:
    random = np.random.default_rng(30)
    trial = validated("a", delay=noise(random, 1, 12)[0] - 30, rate=noise(random, 1, 12)[0] - 30)
    now = validated("b", delay=noise(random, 1, 12)[0], rate=noise(random, 1, 12)[0])
    found = choose([DELAY, RATE], [trial], now)
    assert (found.better, found.worse, found.ahead) == (("delay",), ("rate",), ())
    better = validated("c", delay=noise(random, 1, 12)[0] - 30, rate=noise(random, 1, 12)[0] + 90)
    assert choose([DELAY, RATE], [trial, better], now).ahead == (1,)


def test_what_misses_a_constraint_is_taken_only_where_all_do() -> None:
    random = np.random.default_rng(31)
    values = noise(random, 3, 12) + np.array([[0.0], [30.0], [60.0]])
    trials = [validated(str(i), holds=i > 0, delay=row) for i, row in enumerate(values)]
    assert choose([DELAY], trials, None).best == 1
    none = [validated(str(i), holds=False, delay=row) for i, row in enumerate(values)]
    assert choose([DELAY], none, None).best == 0


def test_trials_without_a_value_are_passed_over() -> None:
    lacking = Validated("a", {"delay": None}, {"delay": None}, holds=False)
    assert choose([DELAY], [lacking], None) == Choice(None)
    random = np.random.default_rng(32)
    known = validated("b", delay=noise(random, 1, 12)[0])
    found = choose([DELAY], [lacking, known], lacking)
    assert (found.best, found.compared, found.marked) == (1, False, (1,))


def test_single_runs_tell_nothing_apart() -> None:
    trials = [validated(str(i), delay=[float(i)]) for i in range(3)]
    found = choose([DELAY], trials, validated("now", delay=[9.0]))
    assert not found.differ
    assert found.marked == ()
    assert list(pairwise((found.best, *found.alike))) == [(0, 1), (1, 2)]
