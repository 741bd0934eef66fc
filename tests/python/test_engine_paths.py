"""The engine's fast path against its plain one, on every study: they agree in every number."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from perhop import _engine
from perhop.reproduction import plan
from perhop.store import pack
from perhop.studies import STUDIES

if TYPE_CHECKING:
    from perhop.study import Study

SECONDS = 6
"""Simulated seconds of each run: slow start, losses and timeouts, looks and control messages."""


def shortened(scenario: str) -> str:
    """The scenario with a shorter run, and probes whose looks fall between packets."""
    table = json.loads(scenario)
    table["duration"] = f"{SECONDS}s"
    table["warmup"] = "2s"
    table["probes"] = {"interval": "70ms"}
    for flow in table["flows"]:
        flow.pop("stop", None)
        flow["start"] = "0s..1s"
    return _engine.scenario_from_json(json.dumps(table), "shortened")


@pytest.mark.parametrize("study", STUDIES.values(), ids=list(STUDIES))
def test_the_fast_path_and_the_plain_one_give_the_same_numbers(study: Study) -> None:
    cells = plan([study], runs=1, seed=1).cells[0]
    scenarios = sorted({shortened(cell.scenario) for cell in cells})
    for scenario in scenarios:
        fast = _engine.simulate(scenario, 3)
        plain = _engine.simulate(scenario, 3, plainly=True)
        assert fast["packets"] == plain["packets"] > 0
        for run in (fast, plain):
            del run["events"]
        assert pack(fast) == pack(plain)
