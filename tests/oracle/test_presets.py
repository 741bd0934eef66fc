"""The table of presets in docs/project/validity.json is whole; an exchange found each cause in it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.oracle import presets
from tests.oracle.presets import Setting, Use
from tools import validity

CELLS: list[dict[str, Any]] = json.loads(validity.DATA.read_text(encoding="utf-8"))["presets"]["rows"]


def test_every_preset_has_every_rate_and_round_trip() -> None:
    found = [(cell["preset"], cell["rate"], cell["rtt_ms"]) for cell in CELLS]
    assert found == [(one.preset, one.rate, one.rtt_ms) for one in presets.settings()]


@pytest.mark.parametrize(
    "cell", CELLS, ids=lambda cell: f"{cell['preset']}-{cell['rate']:g}-{cell['rtt_ms']}"
)
def test_a_cell_below_ninety_percent_has_its_cause_by_an_exchange(cell: dict[str, Any]) -> None:
    assert sum(cell["shares"]) == pytest.approx(1, abs=0.01)
    if cell["use"] < presets.ENOUGH:
        assert max(one["use"] for one in cell["exchanged"]) >= presets.ENOUGH
        assert "Not found" not in presets.cause(cell)


@pytest.mark.parametrize("preset", presets.PRESETS)
def test_the_table_is_what_a_run_gives(preset: str) -> None:
    setting = Setting(preset, 1e7, 10)
    (cell,) = [cell for cell in CELLS if (cell["preset"], cell["rate"], cell["rtt_ms"]) == (preset, 1e7, 10)]
    found = Use.of(setting)
    assert found.use == pytest.approx(cell["use"], abs=0.02)
    assert found.queue_packets == pytest.approx(cell["queue_packets"], rel=0.2, abs=1)
