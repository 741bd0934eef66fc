"""The names of Python that the documentation mentions exist."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
from pathlib import Path

import polars as pl
import pytest
from tools.transcripts import ROOT, blocks

import perhop
from perhop.runs.accessor import Plots

PAGES = sorted(
    [
        *(ROOT / "README.md", ROOT / "CONTRIBUTING.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "course").rglob("*.md"),
        *(ROOT / "examples").rglob("*.py"),
        *(ROOT / "examples").rglob("*.ipynb"),
    ]
)
CODE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
DOTTED = re.compile(r"`([a-z_]\w*(?:\.[A-Za-z_]\w*)+)(?:\(.*?\))?`")
"""A dotted name in backticks, with or without arguments."""
MEMBER = re.compile(r"`(?:(?:result|sim|simulation|found)\.([a-z_]\w*)[^`]*|\.([a-z_]\w*)\([^`]*)`")
"""A member of an object in backticks: `result.links`, `.network()`."""
SCHEMA = json.loads((ROOT / "docs" / "scenario.schema.json").read_text(encoding="utf-8"))
GROUPS = frozenset({"perhop.blocks", "perhop.meters", "perhop.congestion_controls", "perhop.applications"})
"""Groups of entry points, which are named like modules."""


def mentioned(text: str) -> list[str]:
    """The full names of perhop that a page mentions: `perhop.run`, and `statistics.paired` where its code has
    `from perhop import statistics`.
    """
    imported = {"perhop": "perhop"}
    for block in blocks(text):
        for node in ast.walk(ast.parse(block.text)) if block.language == "python" else ():
            if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "perhop":
                imported |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
    found = []
    for name in DOTTED.findall(CODE.sub("", text)):
        head, _, rest = name.partition(".")
        if head in imported and name not in GROUPS and not is_key(head, rest):
            found.append(f"{imported[head]}.{rest}")
    return found


def is_key(table: str, key: str) -> bool:
    """Whether a table of the scenario has this key; `live` is that of the run or of flows."""
    tables = [fields for name, fields in SCHEMA["$defs"].items() if name.lower().endswith(table)]
    return any(key in fields.get("properties", {}) for fields in tables)


def exists(name: str) -> bool:
    """Whether a dotted name can be reached by imports and attributes."""
    head, *rest = name.split(".")
    path, value = head, importlib.import_module(head)
    for part in rest:
        path = f"{path}.{part}"
        try:
            value = getattr(value, part)
        except AttributeError:
            try:
                value = importlib.import_module(path)
            except ImportError:
                return False
    return True


def members(text: str) -> list[str]:
    """The members of objects that a page mentions outside its code, which runs."""
    return [first or second for first, second in MEMBER.findall(CODE.sub("", text))]


def is_member(name: str) -> bool:
    """Whether a public class has an attribute of this name, or the pictures and data frames of a result."""
    public = [getattr(perhop, one) for one in perhop.__all__]
    classes = [*filter(inspect.isclass, public), Plots, pl.DataFrame]
    return any(hasattr(one, name) or name in inspect.get_annotations(one) for one in classes)


def former(text: str) -> list[str]:
    """The former names of methods of results that a page still calls; a replay has `classes()` of its own."""
    names = [
        name
        for name in dir(perhop.Result)
        if "its former name" in (getattr(perhop.Result, name).__doc__ or "")
    ]
    assert "classes" in names
    kept = {"classes"} if "perhop.replay(" in text else set()
    return [name for name in names if name not in kept and re.search(rf"\b{name}\(\)", text)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_names_of_perhop_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    names = mentioned(text) if page.suffix == ".md" else []
    missing = [name for name in names if not exists(name)] + [
        name for name in members(text) if not is_member(name)
    ]
    assert not missing, f"{page.name} names what does not exist: {', '.join(missing)}"
    assert not former(text), f"{page.name} has former names: {', '.join(former(text))}"


def test_members_are_found_in_words_and_former_names_in_code_too() -> None:
    text = "`result.links`, `.queue()` and `sim.none`\n\n```python\nresult.inside.applications()\n```\n"
    assert members(text) == ["links", "queue", "none"]
    assert [name for name in members(text) if not is_member(name)] == ["none"]
    assert former(text) == ["applications"]
    assert former("perhop.replay(x).classes()") == []


def test_names_are_found_with_and_without_arguments_and_as_they_are_imported() -> None:
    text = (
        "`perhop.run(…, runs=3)`, `statistics.paired`, `live.congestion` and `perhop.none`\n\n"
        "```python\nfrom perhop import statistics\nperhop.inside\n```\n"
    )
    assert mentioned(text) == ["perhop.run", "perhop.statistics.paired", "perhop.none"]
    assert [name for name in mentioned(text) if not exists(name)] == ["perhop.none"]
