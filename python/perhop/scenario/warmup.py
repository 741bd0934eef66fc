"""A scenario with another warm-up than its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from perhop import _engine
from perhop.errors import ArgumentError
from perhop.scenario import reading
from perhop.scenario.reading import Checked, ScenarioSource

AUTO = "auto"
"""The warm-up is to be found (`perhop.runs.warming`)."""


def read(scenario: ScenarioSource, warmup: str | None) -> Checked:
    """Check a scenario with another warm-up in place of its own.

    Args:
        scenario: See `ScenarioSource`.
        warmup: A duration, such as `10s`, or `auto`; None for the scenario's own.

    Raises:
        ScenarioError: The scenario is wrong.
        ArgumentError: `warmup` is no duration, or not below the duration of the run.
    """
    checked = reading.read(scenario)
    if warmup is None:
        return checked
    changed = reading.read(json.loads(with_warmup(checked.text, warmup)))
    # Canonical JSON has no lines: what is said of the file, too, keeps its place there.
    placed = {notice.partition(": ")[2]: notice for notice in checked.notices}
    notices = tuple(placed.get(notice.partition(": ")[2], notice) for notice in changed.notices)
    return Checked(changed.text, notices)


def from_the_beginning(text: str) -> str:
    """Return a scenario, in canonical JSON, without a warm-up that would have to be found.

    What measures no steady state counts from the beginning of a run.
    """
    return with_warmup(text, "0s") if json.loads(text)["warmup"] == AUTO else text


def with_warmup(text: str, warmup: str) -> str:
    """Return a scenario, in canonical JSON, with this warm-up.

    Raises:
        ArgumentError: It is no duration, or not below the duration of the run.
    """
    scenario: dict[str, Any] = json.loads(text)
    if warmup != AUTO:
        try:
            nanoseconds, _ = _engine.quantity("duration", warmup)
        except (ValueError, TypeError) as error:
            raise ArgumentError("warmup", f"{error}; or write {AUTO}") from None
        if nanoseconds >= duration_ns(scenario):
            raise ArgumentError(
                "warmup", f"must be below the duration of {scenario['duration']}, not {warmup}"
            )
    return _engine.scenario_from_json(json.dumps({**scenario, "warmup": warmup}), "scenario")


def duration_ns(scenario: Mapping[str, Any]) -> int:
    """The duration of a scenario's runs in nanoseconds."""
    nanoseconds, _ = _engine.quantity("duration", scenario["duration"])
    return int(nanoseconds)
