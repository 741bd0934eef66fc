"""The list of unsafe code in docs/project/unsafe.md is complete."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[3]
ROW = re.compile(r"^\| `(?P<file>[^`]+\.rs)` \| (?P<uses>\d+) \|")


def uses(source: str) -> int:
    """How often the keyword is in Rust code outside comments and text."""
    code = re.sub(r'"(?:\\.|[^"\\])*"|//[^\n]*', "", source)
    return len(re.findall(r"\bunsafe\b", code))


def test_the_keyword_is_counted_outside_comments_and_text() -> None:
    assert uses('unsafe { f("unsafe") } // unsafe\n#[expect(unsafe_code)] unsafe fn g() {}') == 2


def test_every_use_of_unsafe_is_listed_with_its_reason() -> None:
    found = Counter(
        {
            str(path.relative_to(ROOT)): uses(path.read_text())
            for folder in ("crates", "fuzz")
            for path in (ROOT / folder).rglob("*.rs")
            if "target" not in path.parts
        }
    )
    rows = (ROW.match(line) for line in (ROOT / "docs" / "project" / "unsafe.md").read_text().splitlines())
    listed = Counter({row["file"]: int(row["uses"]) for row in rows if row is not None})
    assert +found == listed
