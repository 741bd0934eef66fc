"""`perhop schema`: the JSON Schemas of scenarios, sweeps, searches and plans."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from perhop import _engine
from perhop.commands import terminal
from perhop.errors import PerhopError

KINDS = ("scenario", "sweep", "tune", "plan")


def schema(kind: str) -> dict[str, Any]:
    """The JSON Schema (2020-12) of a kind of file.

    Args:
        kind: One of `KINDS`.

    Raises:
        PerhopError: There is no such kind.
    """
    if kind == "scenario":
        return _scenario()
    if kind == "plan":
        from perhop.planning import document
        from perhop.scenario.keys import whole_schema

        return whole_schema("Plan", document.KEYS, document.TOGETHER_OR_NOT)
    if kind in KINDS:
        from perhop.scenario.keys import whole_schema
        from perhop.sweeps import plan, tuning

        title, keys = ("Sweep", plan.KEYS) if kind == "sweep" else ("Search", tuning.KEYS)
        return _with_scenario(whole_schema(title, keys))
    raise PerhopError(f"there is a schema of {', '.join(KINDS)}, not of `{kind}`")


def text(kind: str) -> str:
    """The schema of a kind of file, as text.

    Raises:
        PerhopError: There is no such kind.
    """
    return json.dumps(schema(kind), indent=2, ensure_ascii=False)


def _scenario() -> dict[str, Any]:
    return dict(json.loads(_engine.scenario_schema()))


def _with_scenario(file: dict[str, Any]) -> dict[str, Any]:
    """The schema of a file that may hold a scenario as a table."""
    scenario = _scenario()
    parts = scenario.pop("$defs")
    scenario.pop("$schema", None)
    return {**file, "$defs": {**parts, "Scenario": scenario}}


def print_schema(
    kind: Annotated[
        str, typer.Argument(metavar="[scenario|sweep|tune|plan]", help="The kind of file.")
    ] = "scenario",
) -> None:
    """Print the JSON Schema of a kind of file, for editors and checkers."""
    terminal.say(text(kind))
