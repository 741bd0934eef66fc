"""Integration tests of crates that make one program of them: none is left out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PROGRAMS = sorted(Path("crates").glob("*/tests/all.rs"))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.parts[1])
def test_every_file_of_tests_is_part_of_the_program(program: Path) -> None:
    named = set(re.findall(r"^mod (\w+);$", program.read_text(encoding="utf-8"), re.MULTILINE))
    files = {path.stem for path in program.parent.glob("*.rs")} - {"all"}
    assert files
    assert files <= named
