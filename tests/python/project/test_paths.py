"""Files of tests that documents, the Makefile and tools name are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
NAMED = re.compile(r"\btests/(?:python|oracle)/[\w/.-]*\w")
# The tests of a group of modules, of which tools/mutants.sh makes paths.
GROUPS = re.compile(r"^declare -A tests=\($(.*?)^\)$", re.MULTILINE | re.DOTALL)


def test_files_of_tests_that_documents_and_tools_name_are_there() -> None:
    named = {
        (path.name, name)
        for pattern in ("*.md", "docs/**/*.md", "tools/*.*", ".ci/*", "Makefile")
        for path in ROOT.glob(pattern)
        for name in NAMED.findall(path.read_text(encoding="utf-8"))
    }
    assert ("Makefile", "tests/python/stores/test_faults.py") in named
    assert not [(path, name) for path, name in named if not (ROOT / name).exists()]


def test_mutants_meet_tests_that_are_there() -> None:
    groups = GROUPS.search((ROOT / "tools" / "mutants.sh").read_text(encoding="utf-8"))
    assert groups is not None
    tests = re.findall(r"\w+/test_\w+", groups[1])
    assert "statistics/test_statistics" in tests
    assert not [name for name in tests if not (ROOT / "tests" / "python" / f"{name}.py").exists()]
