"""What kind of file a TOML file is, so that a command that was handed another kind can name the right one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perhop.errors import PerhopError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Any

_KINDS = {
    "scenario": ("a scenario", "perhop run"),
    "sweep": ("a sweep", "perhop sweep"),
    "tune": ("a search", "perhop tune"),
    "router": ("a configuration of the router", "perhop-router"),
}


def expect(kind: str, data: Mapping[str, Any], path: Path) -> None:
    """Refuse a file of another kind; `kind` is one of scenario, sweep, tune.

    Raises:
        PerhopError: It is one; the message names the command for it.
    """
    found = _kind(set(data))
    if found is not None and found != kind:
        what, command = _KINDS[found]
        raise PerhopError(f"{path}: this is {what}, not {_KINDS[kind][0]}; use `{command} {path}`")


def _kind(keys: set[str]) -> str | None:
    if keys & {"search", "objectives"}:
        return "tune"
    if keys & {"scenario", "grid", "list", "latin-hypercube"}:
        return "sweep"
    if keys >= {"inside", "outside"}:
        return "router"
    return "scenario" if keys & {"links", "flows"} else None
