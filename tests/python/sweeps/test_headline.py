"""The sentences of a sweep: the extremes are named, and distinguished by the studentized range."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from perhop.statistics.observations import Observations
from perhop.sweeps.plan import Point
from perhop.sweeps.report import answers, notes
from perhop.sweeps.summary import PointSummary

RATE = "flows.gold.throughput_bps"


def points(*settings: list[float]) -> list[PointSummary]:
    """A sweep over `limit`: each point's values, one for each seed."""
    found = []
    for place, values in enumerate(settings):
        one = Observations(tuple(values))
        factors = {"links.up.queue.limit": f"{place}p"}
        found.append(
            PointSummary(Point(factors, "{}", str(place)), len(values), {RATE: one.estimate}, {RATE: one})
        )
    return found


def noise(seed: int, settings: int, runs: int) -> np.ndarray:
    """f64[settings, runs] without any effect; runs on a seed share luck."""
    random = np.random.default_rng(seed)
    return 1e6 + 1e4 * random.normal(size=(settings, runs)) + 3e4 * random.normal(size=(1, runs))


@pytest.mark.parametrize("runs", [6, 20])
def test_without_an_effect_at_most_one_sweep_in_twenty_says_that_there_is_one(runs: int) -> None:
    sure = 0
    for seed in range(200):
        (text,) = answers(points(*noise(seed, 60, runs).tolist()))
        assert ", lowest and highest of 60" in text
        sure += "by chance" not in text
    assert sure <= 0.07 * 200


def test_an_effect_of_two_standard_errors_is_said_as_often_as_theory_says() -> None:
    """Two points: the power of the paired t test with 19 degrees of freedom, by the noncentral t."""
    runs, sure = 20, 0
    for seed in range(500):
        values = noise(seed, 2, runs)
        values[1] += 2 * 1e4 * math.sqrt(2 / runs)
        (text,) = answers(points(*values.tolist()))
        sure += "by chance" not in text
    quantile = stats.t.ppf(0.975, runs - 1)
    power = stats.nct.sf(quantile, runs - 1, 2) + stats.nct.cdf(-quantile, runs - 1, 2)
    assert sure / 500 == pytest.approx(power, abs=0.065)


def test_a_large_effect_is_said_without_a_reservation() -> None:
    values = noise(1, 60, 20)
    values[17] += 1e5
    (text,) = answers(points(*values.tolist()))
    assert text.endswith("), lowest and highest of 60.")
    assert "limit 17" in text


def test_intervals_may_overlap_where_paired_runs_differ_surely() -> None:
    """Seeds vary by far more than the settings do, which cancels in the differences."""
    values = noise(2, 2, 10)
    values[1] = values[0] + 2e4
    (text,) = answers(points(*values.tolist()))
    assert text.endswith("lowest and highest of 2.")


def test_points_that_stopped_early_are_compared_on_common_seeds() -> None:
    (text,) = answers(points([1e6, 1.1e6, 1.2e6, 5e6, 9e6], [1.5e6, 1.61e6, 1.7e6]))
    assert "lowest and highest of 2" in text
    (text,) = answers(points([1e6], [2e6]))
    assert "single runs have no interval" in text
    (text,) = answers(points([1e6, 1e6], [1e6, 1e6]))
    assert "is the same at all 2 points" in text


def test_points_without_an_event_are_not_said_to_be_the_same() -> None:
    found = []
    for place, packets in enumerate((2000.0, 500.0)):
        one = Observations((0.0,) * 5, 0.0, 1.0, trials=(packets,) * 5)
        point = Point({"links.up.delay": f"{place}ms"}, "{}", str(place))
        found.append(PointSummary(point, 5, {"links.up.loss": one.estimate}, {"links.up.loss": one}))
    (text,) = answers(found)
    assert text == "**up loss**: below 0.15 % at all 2 points, as every run has the same value."


def test_the_page_says_how_extremes_are_judged() -> None:
    assert "studentized range" in notes(points([1e6, 2e6], [1e6, 3e6]))[0]
    assert notes(points([1e6], [3e6])) == []
