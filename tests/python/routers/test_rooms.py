"""The rooms of `perhop.routers`: who may import whom, and who knows of a dialect."""

from __future__ import annotations

import ast
import doctest
import importlib
import re
from pathlib import Path

import pytest

from perhop.routers import DIALECTS
from perhop.routers.dialects import MODULES

ROOT = Path(__file__).parents[3] / "python" / "perhop" / "routers"
GROUND = ("units", "source", "model", "curves", "outgoing")
"""What every room may use; a later one may use those before it."""
ROOMS = {
    "dialect": GROUND,
    "syntax": GROUND,
    "linux": GROUND,
    "reading": GROUND,
    "beside": (*GROUND, "reading"),
    "writing": (*GROUND, "dialect"),
    "dialects": (*GROUND, "dialect", "syntax", "linux"),
    "importing": (*GROUND, "dialect", "reading", "dialects"),
    "exporting": (*GROUND, "dialect", "writing", "dialects"),
    "guarantees": (),
    "__init__": ("source", "model", "reading", "dialects", "importing", "exporting", "guarantees"),
}
WORDS = {"tc", "cisco", "junos", "arista", "eos", "mikrotik", "ios_xr", "nx_os", "iosxr", "nxos"}
"""Names of dialects in code, beside those that they declare."""
FILES = sorted(ROOT.rglob("*.py"))


def name_of(path: Path) -> tuple[str, ...]:
    """A module's path below the package, without `__init__`."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts


def imports(path: Path) -> set[tuple[str, ...]]:
    """The modules of the package that a module imports, by their paths; also those for types only."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("perhop.routers"):
            base = tuple((node.module or "").split(".")[2:])
            for one in node.names:
                inner = (*base, one.name)
                below = ROOT.joinpath(*inner)
                found.add(inner if below.is_dir() or below.with_suffix(".py").exists() else base)
    return found


@pytest.mark.parametrize("path", FILES, ids=str)
def test_dependencies_point_one_way(path: Path) -> None:
    own = name_of(path)
    room = own[0]
    assert room in {*ROOMS, *GROUND}, f"say in ROOMS what {room} may use"
    allowed = ROOMS[room] if room in ROOMS else GROUND[: GROUND.index(room)]
    within = {room} if (ROOT / room).is_dir() else set()
    for other in imports(path):
        assert other[:1] in {(name,) for name in (*allowed, *within)}, ".".join(other)
        if own[0] == other[0] == "dialects" and len(own) > 1:
            assert own[1] == other[1], f"{'.'.join(own)} imports another dialect: {'.'.join(other)}"


def test_no_module_imports_itself_over_others() -> None:
    """No circles: modules can be put in an order in which each imports earlier ones only."""
    left = {name_of(path): imports(path) - {name_of(path)} for path in FILES}
    while left:
        free = [name for name, needed in left.items() if not any(other in left for other in needed)]
        assert free, f"a circle among {sorted('.'.join(name) for name in left)}"
        for name in free:
            del left[name]


@pytest.mark.parametrize(
    "path",
    [path for path in FILES if name_of(path)[0] != "dialects"],
    ids=lambda path: "/".join(name_of(path)),
)
def test_nothing_outside_its_folder_names_a_dialect(path: Path) -> None:
    titles = {word for one in DIALECTS.values() for word in (one.name, one.title, *one.title.split())}
    names = {name.lower() for name in titles} - {
        "and",
        "qos",
        "linux",
        "config_db",
        "class-of-service",
    } | WORDS
    tree = ast.parse(path.read_text(encoding="utf-8"))
    spoken = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings
    for node in ast.walk(tree):
        said = ""
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in spoken:
            said = node.value
        elif isinstance(node, ast.Name | ast.Attribute):
            said = node.id if isinstance(node, ast.Name) else node.attr
        found = names & set(re.findall(r"[\w-]+", said.lower()))
        assert not found, f"{found} in `{said}`: let the dialect declare what this code knows of it"


def test_each_dialect_is_a_folder_or_a_module_that_is_listed_once() -> None:
    inside = [path for path in (ROOT / "dialects").iterdir() if path.stem != "__init__"]
    found = {path.stem for path in inside if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert found == set(MODULES)
    declared = [importlib.import_module(f"perhop.routers.dialects.{name}").DIALECTS for name in MODULES]
    assert len(MODULES) == len(set(MODULES))
    assert len(DIALECTS) == sum(map(len, declared))


@pytest.mark.parametrize(
    "path", [path for path in FILES if ">>> " in path.read_text(encoding="utf-8")], ids=lambda path: path.stem
)
def test_examples_of_the_documentation(path: Path) -> None:
    name = ".".join(("perhop.routers", *name_of(path)))
    result = doctest.testmod(importlib.import_module(name.removesuffix(".__init__")))
    assert result.attempted > 0
    assert result.failed == 0
