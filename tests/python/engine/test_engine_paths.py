"""The batched engine against the reference engine, on every study: they agree in every number."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import pytest

from perhop import _engine
from perhop.stores.outcomes import pack
from perhop.studies import STUDIES, WORKLOADS
from perhop.studies.reproduction import plan

if TYPE_CHECKING:
    from perhop.studies.study import Study

COST = {"events": 0, "engine": None, "engine_reason": None}
"""What may differ: how the numbers were computed."""
ALWAYS = 50
"""Cells of a study that are always tried; searches and sensitivity studies have hundreds more."""
BATCHED = [study for study in STUDIES.values() if study not in WORKLOADS.studies]
"""Users and flows that come and go: random networks in Rust have these."""
LARGE = [study for study in BATCHED if len(study.cells) > ALWAYS]
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


def scenarios(study: Study) -> tuple[list[str], list[str]]:
    """The scenarios of a study: those that are always tried, and the rest."""
    cells = plan([study], runs=1, seed=1).cells[0]
    found = sorted({shortened(cell.scenario) for cell in cells})
    random.Random(study.id).shuffle(found)  # noqa: S311 - a test's own luck
    return found[:ALWAYS], found[ALWAYS:]


@pytest.mark.parametrize("study", BATCHED, ids=lambda study: study.id)
def test_both_engines_give_the_same_numbers(study: Study) -> None:
    compare_engines(scenarios(study)[0])


@pytest.mark.long
@pytest.mark.parametrize("study", LARGE, ids=lambda study: study.id)
def test_both_engines_give_the_same_numbers_in_all_cells(study: Study) -> None:
    compare_engines(scenarios(study)[1])


def compare_engines(scenarios: list[str]) -> None:
    """Run scenarios on both engines."""
    assert scenarios
    for scenario in scenarios:
        fast = _engine.simulate(scenario, 3, engine="batched")
        plain = _engine.simulate(scenario, 3, engine="reference")
        assert fast["packets"] == plain["packets"] > 0
        assert pack({**fast, **COST}) == pack({**plain, **COST})
