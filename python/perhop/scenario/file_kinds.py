"""The kinds of TOML files, so that a command that gets another kind can name the right one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perhop.errors import PerhopError

_KINDS = {
    "scenario": ("a scenario", "perhop run"),
    "sweep": ("a sweep", "perhop sweep"),
    "tune": ("a search", "perhop tune"),
    "plan": ("a plan", "perhop plan"),
    "answers": ("a file of answers to a lab", "perhop course check LAB"),
    "router": ("a configuration of the router", "perhop-router"),
}


def expect(kind: str, data: Mapping[str, Any], path: Path) -> None:
    """Refuse a file of another kind; `kind` is one of scenario, sweep, tune, plan, answers.

    Raises:
        PerhopError: It is one; the message names the command for it.
    """
    found = kind_of(data)
    if found is not None and found != kind:
        what, command = _KINDS[found]
        raise PerhopError(f"{path}: this is {what}, not {_KINDS[kind][0]}; use `{command} {path}`")


def kind_of(data: Mapping[str, Any]) -> str | None:
    """The kind that a file's keys tell, if they do."""
    keys = set(data)
    if "objectives" in keys and not keys & {"configuration", "growth"}:
        return _of_objectives(data["objectives"])
    telling = {
        "answers": {"lab"},
        "plan": {"configuration", "growth"},
        "tune": {"search"},
        "sweep": {"scenario", "grid", "list", "latin-hypercube"},
    }
    for kind, any_of in telling.items():
        if keys & any_of:
            return kind
    if keys >= {"inside", "outside"}:
        return "router"
    return "scenario" if keys & {"links", "flows"} else None


def _of_objectives(objectives: object) -> str | None:
    """The kind of file with such objectives: a search minimizes or maximizes, a plan compares."""
    first = objectives[0] if isinstance(objectives, list) and objectives else None
    if not isinstance(first, str):
        return None
    if first.startswith(("minimize ", "maximize ")):
        return "tune"
    return "plan" if any(sign in first for sign in "<>%≤≥") else None
