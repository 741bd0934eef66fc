"""The number of runs where nobody says one: as many as fit into a short wait, on a ladder of numbers.

What a run costs is counted in the events that the engine handles, not in seconds, so that the same command
makes the same runs on every machine, whatever else this one does. An event takes 0.04 to 0.2 µs in the
batched engine, about three times as long in the reference engine, and eight times where packets meet a class
in Python. Thirty runs of 2 million events so take a second on two cores where events are quick, and some
seconds where they are not. Fewer than five runs are never made: their intervals say little.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from perhop import _engine
from perhop.runs import one_run, parallel
from perhop.scenario.warmup import from_the_beginning

LADDER = (5, 10, 30)
"""Numbers of runs, ascending. Of thirty runs most intervals cover as often as they say, of
five fewer do (docs/project/validity.md)."""
FIRST = LADDER[0]
"""Runs that are made in any case, by which the others are decided."""
EVENTS = 60_000_000
"""Events of all runs together, at most."""
_COST = {"batched": 1, "reference": 3}
_PYTHON = 8


def cost(scenario: str, raw: Mapping[str, Any]) -> int:
    """The cost of a run, in events of the batched engine.

    Args:
        scenario: Canonical JSON.
        raw: What `perhop._engine.simulate` returned.
    """
    weight = _PYTHON if one_run.modules(scenario) else _COST[raw["engine"]]
    return int(raw["events"]) * weight


def fitting(costs: Sequence[int], events: int, ladder: Sequence[int] = LADDER) -> int:
    """The most runs of a ladder that fit into a budget, its lowest number in any case.

    Args:
        costs: Of some runs; their median counts, since the run whose packets are recorded costs more.
        events: The budget.
        ladder: Numbers of runs, ascending.
    """
    each = median(costs)
    return max(number for number in ladder if number == ladder[0] or number * each <= events)


def runs_of(scenario: str, seed: int, events: int, ladder: Sequence[int] = LADDER) -> int:
    """Choose the number of runs by simulating a scenario once.

    Args:
        scenario: Canonical JSON.
        seed: Of the run.
        events: The budget.
        ladder: Numbers of runs, ascending.

    Raises:
        ScenarioError: The scenario cannot be run.
        BlockError: A class in Python has failed.
    """
    cancel = _engine.Cancel()
    # On a thread of its own, so that Ctrl-C is heard meanwhile.
    (raw,) = parallel.parallel_map(
        lambda number: one_run.simulate(from_the_beginning(scenario), number, cancel),
        [seed],
        jobs=1,
        cancel=cancel,
    )
    return fitting([cost(scenario, raw)], events, ladder)


def reason(runs: int) -> str:
    """Why there are so many runs by default, and how to get the same again, in a sentence.

    Args:
        runs: How many.
    """
    most = LADDER[-1]
    if runs >= most:
        return f"{runs} by default, as a run is short; --runs {runs} repeats them."
    return (
        f"{runs} by default, as {most} would take long; --runs {runs} repeats them, more are more reliable."
    )
