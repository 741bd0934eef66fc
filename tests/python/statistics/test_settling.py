"""The warm-up by MSER-5, against values by hand, a process whose mean is known, and long runs."""

from __future__ import annotations

import json
import math
import tomllib
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perhop import run
from perhop.errors import ArgumentError
from perhop.runs import warming
from perhop.statistics.settling import BATCH, settled_from

EXAMPLES = Path(__file__).parents[3] / "examples"
STEADY = 20.0
DECAY = 0.98
START = 60.0


def _batches(*means: float) -> np.ndarray:
    return np.repeat(np.array(means, dtype=float), BATCH)


def test_values_by_hand() -> None:
    """Of 9, 3, 1, 3, 1, 3, 1, 3 the criterion is 6.38 / 8 from the first batch on, and 1 / 7 from the second.

    From the second on the mean is 15 / 7 and the variance 48 / 49; from the third on they are 2 and 1, over
    6. The negligible difference adds less than 0.0005 to a variance.
    """
    assert settled_from(_batches(9, 3, 1, 3, 1, 3, 1, 3)) == BATCH
    assert settled_from(_batches(2, 2, 2, 2, 2, 2, 2, 2)) == 0


def test_a_ramp_never_settles() -> None:
    """Each batch is above the one before."""
    assert settled_from(np.arange(200.0)) is None


def test_differences_of_less_than_a_percent_count_as_none() -> None:
    """A long time at one value attracts the cut only if what is before it differs."""
    assert settled_from(_batches(*[1000.001] * 10, *[1000] * 30)) == 0
    assert settled_from(_batches(*[1500] * 10, *[1000] * 30)) == 10 * BATCH


def test_too_few_samples_tell_nothing() -> None:
    """Three batches have no first half."""
    assert settled_from(np.zeros(3 * BATCH)) is None


def _approach(rng: np.random.Generator) -> np.ndarray:
    """An autoregressive process that begins far from its mean: 20 + 40 · 0.98ᵗ + noise."""
    noise = rng.normal(size=2000)
    values = np.empty(2000)
    level = START - STEADY
    for place, step in enumerate(noise):
        level = DECAY * level + step
        values[place] = STEADY + level
    return values


def test_the_mean_behind_the_cut_is_that_of_the_steady_state() -> None:
    """Without a cut 200 repetitions show the bias of the start, behind it none of four standard errors."""
    rng = np.random.default_rng(1)
    whole, behind = [], []
    for _ in range(200):
        values = _approach(rng)
        cut = settled_from(values)
        whole.append(values.mean())
        if cut is not None:
            behind.append(values[cut:].mean())

    def off(means: list[float]) -> float:
        return abs(float(np.mean(means)) - STEADY) / (float(np.std(means)) / math.sqrt(len(means)))

    assert len(behind) > 190
    assert off(whole) > 8
    assert off(behind) < 4


@pytest.fixture(scope="module")
def first() -> dict[str, Any]:
    """The first example without a warm-up: ten windows open at once."""
    return {**tomllib.loads((EXAMPLES / "first.toml").read_text()), "duration": "20s"}


def test_short_runs_behind_it_agree_with_a_long_one(first: dict[str, Any]) -> None:
    """The loss of short runs is that of a long run behind 60 s; with the slow start in, it is far off."""

    def loss(scenario: dict[str, Any], runs: int, warmup: str | None) -> tuple[float, float, float]:
        row = run(scenario, runs=runs, seed=7, warmup=warmup).link_summary().row(0, named=True)
        return row["loss"], row["loss_low"], row["loss_high"]

    truth, *_ = loss({**first, "duration": "600s"}, 3, "60s")
    found, low, high = loss(first, 20, "auto")
    assert low - 0.05 * truth < truth < high + 0.05 * truth, (truth, low, found, high)
    _, low, _ = loss(first, 20, None)
    assert low > 1.1 * truth


def test_it_is_found_and_told(first: dict[str, Any]) -> None:
    """The result has the scenario with the warm-up that was found, and says how; the seeds decide alone."""
    result = run(first, runs=2, warmup="auto")
    assert result.warm_up is not None
    assert result.warm_up.settles
    assert 1 < result.warm_up.seconds < 9
    assert result.runs[0].raw["warmup_s"] == result.warm_up.seconds
    assert f"the first {result.warm_up.seconds:g} s, found by MSER-5: " in " ".join(result.text().split())
    assert json.loads(result.json())["warmup"] == result.warm_up.json()
    assert run(first, runs=1, jobs=1, warmup="auto").warm_up == result.warm_up


def test_a_run_that_never_settles_says_so(first: dict[str, Any]) -> None:
    """A group that comes when nearly half of the run is over."""
    late = {**first["flows"][1], "name": "late", "count": 30, "start": "9.6s"}
    result = run({**first, "flows": [*first["flows"], late]}, runs=2, warmup="auto")
    assert result.warm_up is not None
    assert not result.warm_up.settles
    assert result.warm_up.seconds == 10
    assert "has not settled by then" in " ".join(result.text().split())


def test_a_run_whose_traffic_ends_says_so(first: dict[str, Any]) -> None:
    """The steady state of a drained network is that nothing is sent."""
    flows = [{**flow, "volume": "200kB"} for flow in first["flows"]]
    result = run({**first, "flows": flows}, runs=2, warmup="auto")
    assert result.warm_up == warming.WarmUp(0.0, "the traffic", settles=False)
    assert "the traffic ends before the run" in " ".join(result.text().split())


def test_what_is_said_of_a_warm_up_is_of_the_one_that_counts(first: dict[str, Any]) -> None:
    """A transfer that begins in the file's warm-up has a completion time behind a shorter one."""
    begins = {**first["flows"][0], "volume": "200kB", "start": "2s"}
    scenario = {**first, "flows": [begins], "warmup": "3s"}
    with pytest.warns(UserWarning, match="no completion time"):
        run(scenario, runs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(scenario, runs=1, warmup="1s")


def test_a_given_one_counts_in_place_of_the_scenarios(first: dict[str, Any]) -> None:
    """Whatever the file says."""
    given = run({**first, "warmup": "1s"}, runs=2, warmup="4s")
    of_file = run({**first, "warmup": "4s"}, runs=2)
    assert given.json() == of_file.json()
    assert given.warm_up is None


@pytest.mark.parametrize(
    ("warmup", "why"),
    [
        ("20s", "must be below the duration of 20s, not 20s"),
        ("soon", "or write auto"),
        ("-1s", "or write auto"),
    ],
)
def test_what_cannot_be_is_refused(first: dict[str, Any], warmup: str, why: str) -> None:
    """With the argument's name and what would be right."""
    with pytest.raises(ArgumentError, match=why):
        run(first, runs=1, warmup=warmup)


def test_at_the_last_seeds(first: dict[str, Any]) -> None:
    """The runs that find it need five seeds, also where one run is asked for."""
    result = run(first, runs=1, seed=2**64 - 1, warmup="auto")
    assert result.warm_up is not None
