"""Run a scenario in the simulator and on real packets."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from perhop.real_packets import LIVE_RUNS, SIMULATED_RUNS, equivalence, laboratory
from perhop.runs import simulate
from perhop.scenario import reading

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perhop.real_packets.equivalence import Comparison, Margin
    from perhop.scenario.reading import ScenarioSource


def run(
    scenario: ScenarioSource,
    *,
    runs: int = LIVE_RUNS,
    sim_runs: int = SIMULATED_RUNS,
    seed: int = 1,
    jobs: int | None = None,
    given: Mapping[str, Margin] | None = None,
    real_time: bool = True,
) -> Comparison:
    """Run a scenario in the simulator and on real packets.

    Args:
        scenario: See `ScenarioSource`.
        runs: Runs on real packets.
        sim_runs: Simulated runs.
        seed: First seed of both.
        jobs: Threads of the simulator; all cores if not given.
        given: Margins, by name, where they are not the defaults; see `equivalence.MARGINS`.
        real_time: Give the router real-time priority where that is allowed.

    Raises:
        ScenarioError: The scenario is wrong, or asks for what no kernel has.
        PerhopError: The system cannot do it; the message says what is missing.
    """
    content = json.loads(reading.canonical(scenario))
    # Real packets first: they say soonest what cannot be.
    live = laboratory.run(content, runs=runs, seed=seed, real_time=real_time)
    simulated = simulate.run(content, runs=sim_runs, seed=seed, jobs=jobs)
    return equivalence.Comparison(simulated, live, {**equivalence.MARGINS, **(given or {})})
