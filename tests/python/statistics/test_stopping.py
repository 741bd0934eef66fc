"""Runs are added until intervals are narrow: how often these contain the truth, and when to look."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import stats

from perhop._engine import student_t_quantile
from perhop.statistics import stopping
from perhop.statistics.intervals import UPPER, Estimate
from perhop.statistics.observations import Observations
from perhop.statistics.stopping import Look, Until

if TYPE_CHECKING:
    from collections.abc import Callable

WIDTH = 0.02
RULE = Until(WIDTH, stopping.METRICS, stopping.LEAST, 1000)


def covered(needed: float, repetitions: int, seed: int = 1) -> tuple[float, float]:
    """How often the interval of normal values contains their mean at the stop, and the mean number of runs.

    The mean of some normal values does not depend on their variance, which alone decides when to stop. So the
    coverage of each repetition is known, given its variances, and those are drawn.

    Args:
        needed: How many runs would be needed if the spread were known, which says how large it is.
        repetitions: How many.
        seed: Of the draws.
    """
    random = np.random.default_rng(seed)
    spread = WIDTH * math.sqrt(needed) / stats.norm.ppf(UPPER)
    coverage, all_runs = [], 0
    for _ in range(repetitions):
        runs, squares = 0, 0.0
        after = RULE.least
        while after > runs:
            squares += random.chisquare(after - runs if runs else after - 1)
            runs = after
            half = student_t_quantile(runs - 1, UPPER) * spread * math.sqrt(squares / (runs - 1) / runs)
            found = stopping.widened(Estimate(1.0, (1 - half, 1 + half), runs), runs)
            assert found is not None
            side = found.high - found.mean
            after = RULE.after(Look(runs, "x", found, side))
        all_runs += runs
        coverage.append(2 * stats.norm.cdf(side / spread * math.sqrt(runs)) - 1)
    return float(np.mean(coverage)), all_runs / repetitions


SURE = 0.002
"""Three standard errors of a coverage over so many repetitions."""


@pytest.mark.parametrize("needed", [6, 25, 45])
def test_normal_values_are_covered_whatever_their_spread(needed: float) -> None:
    """The least coverage is at about 30 runs; the rule costs little more than `SPARE` runs."""
    coverage, runs = covered(needed, 4000)
    assert coverage >= 0.95 - SURE
    assert runs < 1.1 * needed + 2 * stopping.SPARE


@pytest.mark.parametrize("spare", [0, 2])
def test_no_fewer_spare_runs_would_do(monkeypatch: pytest.MonkeyPatch, spare: int) -> None:
    """Without any, as of intervals that do not know of the rule, 92 % are covered."""
    monkeypatch.setattr(stopping, "SPARE", spare)
    coverage, _ = covered(25, 4000)
    assert coverage < 0.95 - SURE


@pytest.mark.parametrize(
    ("draw", "least"),
    [
        (lambda random, size: random.standard_normal(size), 0.95),
        (lambda random, size: random.exponential(size=size), 0.91),
        (lambda random, size: random.lognormal(0.0, 0.75, size), 0.90),
    ],
    ids=["normal", "exponential", "lognormal"],
)
def test_skewed_values_are_covered_less(
    draw: Callable[[np.random.Generator, int], np.ndarray], least: float
) -> None:
    """By the whole rule, from values to the last look; docs/statistics.md has these numbers."""
    random = np.random.default_rng(5)
    sample = draw(random, 200_000)
    mean, spread = float(sample.mean()), float(sample.std())
    inside, repetitions = 0, 800
    for _ in range(repetitions):
        values: list[float] = []
        after = RULE.least
        while after > len(values):
            drawn = draw(random, after - len(values))
            values += [1 + WIDTH * 2 * float(x - mean) / spread for x in drawn]  # some 16 runs
            found = stopping.look({"x": Observations(tuple(values))}, len(values))
            after = RULE.after(found)
        assert RULE.is_met(found)
        assert found.estimate is not None
        inside += found.estimate.low <= 1 <= found.estimate.high
    assert inside >= stats.binom.ppf(1e-3, repetitions, least)


def test_looks_come_closer_as_intervals_get_narrow() -> None:
    def after(runs: int, reach: float) -> int:
        return RULE.after(Look(runs, "x", None, reach))

    assert after(40, WIDTH) == 40
    assert after(40, WIDTH * 1.001) == 42
    assert after(43, WIDTH * math.sqrt(1.45)) == 43 + 9
    assert after(40, 2 * WIDTH) == 60
    assert after(5, math.inf) == 7
    assert after(999, math.inf) == 1000
    assert after(1000, math.inf) == 1000
    assert RULE.needed(Look(43, "x", None, 2 * WIDTH)) == pytest.approx(163)


def test_an_interval_is_as_wide_as_that_of_fewer_runs_within_the_bounds() -> None:
    found = stopping.widened(Estimate(0.4, (0.3, 0.9), 12), 12, 0.0, 1.0)
    assert found is not None
    assert found.ci95 == pytest.approx((0.4 - 0.1 * math.sqrt(12 / 9), 0.4 + 0.5 * math.sqrt(12 / 9)))
    found = stopping.widened(Estimate(0.4, (0.0, math.inf), 4), 4, 0.0)
    assert found is not None
    assert found.ci95 == (0.0, math.inf)
    assert stopping.widened(None, 4) is None
    assert stopping.widened(Estimate(1.0, None, 1), 4) == Estimate(1.0, None, 1)


def test_the_widest_interval_in_proportion_to_its_value_counts() -> None:
    wide, narrow = Observations((90.0, 100.0, 110.0, 100.0)), Observations((1.0, 1.0, 1.0, 1.01))
    look = stopping.look({"narrow": narrow, "wide": wide}, 4)
    assert look.metric == "wide"
    assert look.estimate == stopping.interval_of(wide)
    assert look.estimate is not None
    assert look.reach == pytest.approx((look.estimate.high - 100) / 100)


def test_what_is_the_same_in_all_runs_is_known() -> None:
    """Of rates, 0 is one, too: a class that sends nothing keeps no run going."""
    assert stopping.look({"a": Observations((3.0,) * 5), "b": Observations((0.0,) * 5, 0.0)}, 5).reach == 0


def test_a_metric_that_no_run_has_is_not_waited_for() -> None:
    none, some, all_of_them = (
        Observations(values) for values in ((math.nan,) * 4, (1.0, math.nan, 1.0, 1.0), (1.0,) * 4)
    )
    assert stopping.look({"none": none, "all": all_of_them}, 4).reach == 0
    assert stopping.look({"some": some, "all": all_of_them}, 4).reach == math.inf
    assert stopping.look({"none": none}, 4) == Look(4, "", None, math.inf)


def test_no_event_is_no_narrow_interval() -> None:
    never = Observations((0.0,) * 5, 0.0, 1.0, trials=(2000.0,) * 5)
    assert stopping.look({"loss": never}, 5).reach == math.inf
    no_stalls = Observations((0.0,) * 5, 0.0, is_of_events=True)
    assert stopping.look({"stalls": no_stalls}, 5).reach == math.inf
