"""On-off voices whose loss is rare: few runs without any prove no promise, and many decide."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from perhop.planning.objectives import Subjects, parse
from perhop.planning.verdicts import judge, score
from perhop.runs.companions import Gathered
from perhop.runs.metrics import names_of
from perhop.scenario import reading
from perhop.statistics import stopping
from perhop.stores.metrics import simulate

SCENARIO = """\
duration = "12s"
warmup = "0s"
[links.uplink]
from = "a"
to = "b"
rate = "320kbps"
delay = "5ms"
queue = { aqm = "drop-tail", limit = "30p" }
[[flows]]
name = "voice"
count = 14
from = "a"
to = "b"
transport = { udp = "on-off", rate = "32kbps", packet = "160B", on = "1s", off = "1.35s" }
"""
TRUE = 2.3e-4
"""The loss of 24 000 runs; one run of 25 has any, some eleven packets in a row."""
PLANS, RUNS = 60, 8


@cache
def values() -> tuple[tuple[str, ...], NDArray[np.float64]]:
    """The names of the measures, and their values: f64[runs, measures]."""
    text = reading.canonical(SCENARIO)
    runs = [simulate(text, seed) for seed in range(PLANS * RUNS)]
    return runs[0].names, np.array([run.values for run in runs])


def gathered(first: int, runs: int) -> Gathered:
    names, found = values()
    columns = found[first : first + runs].T.tolist()
    return Gathered(dict(zip(names, columns, strict=True)))


def states(promise: float, runs: int) -> list[str]:
    """The verdicts of plans of so many runs each."""
    text = reading.canonical(SCENARIO)
    objective = parse(f"loss of voice < {100 * promise:.6f} %", "plan.toml")
    bound = Subjects.of(text, names_of(text)).bind(objective, "plan.toml")
    return [
        judge(
            bound, {name: gathered(first, runs).of(name) for name in bound.metrics if name in values()[0]}
        ).state
        for first in range(0, PLANS * RUNS, runs)
    ]


@pytest.mark.parametrize("runs", [8, 12, 30])
def test_a_promise_of_half_the_loss_holds_by_luck_in_hardly_any_plan(runs: int) -> None:
    # Two in three plans of eight runs see no loss at all. At 5 % each, 2 of 60 are few.
    assert states(TRUE / 2, runs).count("holds") <= 2


def test_many_runs_decide() -> None:
    assert states(TRUE / 20, PLANS * RUNS) == ["breaks"]
    assert states(10 * TRUE, PLANS * RUNS) == ["holds"]


def test_no_loss_ends_no_sweep_early_and_is_no_best_setting() -> None:
    text = reading.canonical(SCENARIO)
    bound = Subjects.of(text, names_of(text)).bind(parse("loss of voice < 0.01 %", "plan.toml"), "plan.toml")
    without = 0
    for first in range(0, PLANS * RUNS, RUNS):
        found = gathered(first, RUNS).of("flows.voice.loss")
        assert stopping.look({"flows.voice.loss": found}, len(found.values)).reach > 0.1
        if not any(found.values):
            without += 1
            assert score([bound], {"flows.voice.loss": found}) < 0
    assert without > PLANS / 3
