"""The rooms of the package: their order, what each is for, and which rooms it imports.

`ROOMS` is the rule: a room imports only from rooms before it. `table` writes it from the sources, so that the
table in docs/architecture.md cannot differ from the code.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(__file__).resolve().parent.parent / "python" / "perhop"
ROOMS = (
    "errors",
    "extras",
    "plurals",
    "files",
    "processes",
    "statistics",
    "scenario",
    "blocks",
    "measures",
    "show",
    "bounds",
    "runs",
    "splitting",
    "stepping",
    "gym",
    "stores",
    "sweeps",
    "studies",
    "routers",
    "planning",
    "captures",
    "real_packets",
    "coursework",
    "rerunning",
    "commands",
)
"""Folders and single modules of the package, lowest first."""
LOADERS = ("import_module", "importlib.import_module")
"""Functions that load a module by its name."""
LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")
"""A link of Markdown."""
FACE = ("__init__", "__main__")
"""Modules above all rooms: the names that users import, and the program."""


BY_NAME = "scenario/base.py:"
"""The one place that asks a higher room, by its name: a table shows itself in notebooks as results do."""


@functools.cache
def modules() -> dict[str, Path]:
    """Every module of the package by its name below `perhop`, such as `runs.result`."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts
        found[".".join(name)] = path
    return found


def imports(name: str, path: Path) -> Iterator[tuple[str, int]]:
    """Yield the modules of the package that a module imports, also by name as text, with the line.

    Args:
        name: The module's name below `perhop`.
        path: Its file.
    """
    known = modules()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        named: list[str] = []
        if isinstance(node, ast.Import):
            named = [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            named = [f"{node.module}.{one.name}" for one in node.names]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in LOADERS:
            first = node.args[0].values[0] if isinstance(node.args[0], ast.JoinedStr) else node.args[0]
            named = [str(first.value)] if isinstance(first, ast.Constant) else []
        for full in named:
            below = full.removeprefix("perhop.") if full.startswith("perhop.") else None
            while below and below not in known:
                below = below.rpartition(".")[0]
            if below and below != name:
                yield below, node.lineno  # type: ignore[attr-defined] # of an import or a call


def room(module: str) -> str:
    """The room of a module."""
    return module.partition(".")[0]


def arrows() -> dict[str, dict[str, list[str]]]:
    """For each room the rooms that it imports, each with the places (`file:line`)."""
    found: dict[str, dict[str, list[str]]] = {name: defaultdict(list) for name in (*FACE, *ROOMS)}
    for name, path in modules().items():
        for other, line in imports(name, path):
            if room(other) != room(name):
                found[room(name)][room(other)].append(f"{path.relative_to(PACKAGE)}:{line}")
    return found


def upward() -> list[str]:
    """Every import of a room that is not before its own, as `file:line imports room`."""
    order = {name: place for place, name in enumerate(ROOMS)}
    return [
        f"{place} imports {other}"
        for name, others in arrows().items()
        if name not in FACE
        for other, places in others.items()
        if order.get(other, len(order)) >= order[name]
        for place in places
    ]


def table() -> str:
    """The rooms as rows of a table, highest first: name, what it is for, and the rooms right below it.

    A room that another one imports, and that it also reaches through a third, is not shown below it again.
    """
    found = {
        name: {other for other in others if other in ROOMS[: ROOMS.index(name)]}
        for name, others in arrows().items()
        if name in ROOMS
    }
    reached: dict[str, set[str]] = {}
    for name in ROOMS:
        reached[name] = set().union(*({one} | reached.get(one, set()) for one in found[name]))
    lines = []
    for name in reversed(ROOMS):
        through = set().union(*(reached.get(one, set()) for one in found[name]))
        below = [other for other in reversed(ROOMS) if other in found[name] - through - {name}]
        lines.append(f"| `{name}` | {_purpose(name)} | {', '.join(below)} |")
    return "\n".join(lines)


def _purpose(name: str) -> str:
    """The first line of a room's docstring, without its full stop and links."""
    text = ast.get_docstring(ast.parse(modules()[name].read_text(encoding="utf-8"))) or ""
    return LINK.sub(r"\1", text.splitlines()[0].rstrip("."))


if __name__ == "__main__":
    print(table())
    sys.exit("\n".join(one for one in upward() if not one.startswith(BY_NAME)) or None)
