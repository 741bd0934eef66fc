"""The names of Python that the documentation mentions exist."""

from __future__ import annotations

import ast
import importlib
import json
import re
from pathlib import Path

import pytest
from tools.transcripts import ROOT, blocks

PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
CODE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
DOTTED = re.compile(r"`([a-z_]\w*(?:\.[A-Za-z_]\w*)+)(?:\(.*?\))?`")
"""A dotted name in backticks, with or without arguments."""
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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_names_of_perhop_exist(page: Path) -> None:
    missing = [name for name in mentioned(page.read_text(encoding="utf-8")) if not exists(name)]
    assert not missing, f"{page.name} names what does not exist: {', '.join(missing)}"


def test_names_are_found_with_and_without_arguments_and_as_they_are_imported() -> None:
    text = (
        "`perhop.run(…, runs=3)`, `statistics.paired`, `live.congestion` and `perhop.none`\n\n"
        "```python\nfrom perhop import statistics\nperhop.inside\n```\n"
    )
    assert mentioned(text) == ["perhop.run", "perhop.statistics.paired", "perhop.none"]
    assert [name for name in mentioned(text) if not exists(name)] == ["perhop.none"]
