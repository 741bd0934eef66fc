"""The rooms of the package: which may import which, in the code and in the table of docs/architecture.md."""

from __future__ import annotations

import re
from pathlib import Path

from tools import rooms

MOST = 27
"""Modules and folders at the top of the package."""


def test_every_module_is_in_a_room() -> None:
    assert {rooms.room(name) for name in rooms.modules()} == {*rooms.ROOMS, *rooms.FACE}
    assert len(rooms.ROOMS) + len(rooms.FACE) <= MOST


def test_rooms_import_only_from_rooms_before_them() -> None:
    """`Table._repr_html_` alone asks a higher room, by its name: tables show themselves as results do."""
    assert {one.partition(":")[0] for one in rooms.upward()} == {"scenario/base.py"}


def test_an_arrow_upwards_is_found(tmp_path: Path) -> None:
    wrong = tmp_path / "base.py"
    wrong.write_text("from perhop.commands import cli\nfrom perhop import runs\n", encoding="utf-8")
    assert [other for other, _ in rooms.imports("scenario.base", wrong)] == ["commands.cli", "runs"]


def test_the_table_of_the_docs_is_that_of_the_code() -> None:
    text = Path("docs/architecture.md").read_text(encoding="utf-8")
    drawn = re.search(r"<!-- rooms -->\n\n.*?\n\|[-| ]+\|\n(.*?)\n\n", text, re.DOTALL)
    assert drawn is not None
    assert drawn[1] == rooms.table(), "write what `python -m tools.rooms` prints into docs/architecture.md"
