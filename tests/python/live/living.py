"""What the tests of runs on real packets share."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.python.conftest import TWO_CLASSES

import perhop as package
from perhop.measures.run import Run
from perhop.real_packets import laboratory
from perhop.real_packets.laboratory import Device, LiveResult
from perhop.runs import simulate

LACKS = laboratory.available()
needs_live = pytest.mark.skipif(LACKS is not None, reason=f"needs network namespaces: {LACKS}")

LIVE = TWO_CLASSES.format(
    title="Two classes on real packets",
    duration="2s",
    settings='warmup = "500ms"\n\n[live]\nmax-lateness = "100ms"\n',
    rate="5Mbps",
    delay="20ms",
    access="5ms",
    profile="1Mbps",
    start="200ms",
)
"""Short, and lenient about lateness: what is tested is what perhop does, not how fast the machine is."""

INVALID = 3
"""How a command ends that had an invalid run; a loaded machine may bring that about."""


def valid_run(scenario: str, *, seed: int = 1, device: Device = "auto") -> LiveResult:
    """Run a scenario on real packets; the test is skipped if the machine was too slow for a valid run.

    Valid or not, each link must account for every packet, by color.
    """
    result = package.live(scenario, seed=seed, device=device)
    for link in result.runs[0].raw["links"]:
        out = link["sent"] + link["waiting"] + sum(link["dropped"].values())
        assert np.array_equal(link["arrived"], out), link["name"]
    skip_unless_valid(result)
    return result


def skip_unless_valid(result: LiveResult) -> None:
    """Skip the test if a run is invalid: then throughput, counts and delays say nothing about perhop."""
    if not result.valid:
        pytest.skip(f"this machine was too busy: {[report.findings['invalid'] for report in result.reports]}")


def pretend(scenario: str, runs: int, *, seed: int = 100, spoilt: tuple[int, ...] = ()) -> LiveResult:
    """Simulated runs in the place of live ones, some of them invalid."""

    def live_record(number: int) -> str:
        invalid = ["the machine slept"] if number in spoilt else []
        return json.dumps({"valid": not invalid, "invalid": invalid, "kernel": "6.1", "notes": []})

    result = simulate.run(scenario, runs=runs, seed=seed)
    made = tuple(Run(run.seed, {**run.raw, "live": live_record(run.seed)}) for run in result.runs)
    return LiveResult(result.scenario, made)
