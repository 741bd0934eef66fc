#!/usr/bin/env python3
"""Say where a comment cannot be read alone, is wider than code, or uses words that make a sentence a riddle.

A doc comment (`///`, `//!`, a docstring, `#:`) that begins with one of `OPENINGS` needs the comment above it;
one that begins with one of `CLAUSES` is no statement.
The width of comments in Python is ruff's to check (E501); rustfmt leaves comments in Rust as they are.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent

OPENINGS = (
    *("That", "Those", "Such", "The same", "What is", "Whether such"),
    *("It", "Its", "They", "Their", "Them"),
)
OPENING = re.compile(rf"(?:{'|'.join(OPENINGS)})\b")
CLAUSES = ("How", "Where", "Of", "By", "What", "Which", "Who", "Whose")
"""Words that begin a clause or a fragment, refused as well in `STRICT`: a docstring there is a statement."""
CLAUSE = re.compile(rf"(?:{'|'.join((*OPENINGS, *CLAUSES))})\b")
ROOMS = (
    "blocks/ captures/ coursework/ errors.py extras.py files/ gym.py measures/ plurals.py processes/ "
    "real_packets/ rerunning/ runs/ show/ statistics/ stepping/ stores/"
)
STRICT = ("tools/", *(f"python/perhop/{room}" for room in ROOMS.split()))
"""The rooms, and the tools, whose docstrings all pass."""

WORDS = ("told", "stands", "tells", "mended", "whom")
WORD = re.compile(rf"\b(?:{'|'.join(WORDS)})\b", re.IGNORECASE)
MOST = 80
"""The most occurrences of all of `WORDS` together in `FOLDERS`."""
FOLDERS = (
    *("crates", "python", "docs", "tools", "benches", "tests", "explorer/src", "examples"),
    *("README.md", "CONTRIBUTING.md"),
)
QUOTES = re.compile(r"“[^”]*”|^quote = .*$", re.MULTILINE)
"""Sentences of papers, in pages and in `published.toml`: their words are not ours."""

DOC = re.compile(r"\s*(//!|///(?!/))\s?(.*)")
COMMENT = re.compile(r"\s*//")
TRAILING = re.compile(r'^(?:[^"/]|"(?:\\.|[^"\\])*"|/(?!/))*?\s//')
FENCE = re.compile(r"\s*//[/!]\s*```")
ROW = re.compile(r"\s*//[/!]\s*\|")


@dataclass(frozen=True)
class Finding:
    """A fault at one line of a file."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        """As compilers write it, so that editors jump to the line."""
        return f"{self.path}:{self.line}: {self.text}"


def main() -> int:
    """Print all findings; the exit status is 1 if there is any."""
    width = int(tomllib.loads((ROOT / "rustfmt.toml").read_text(encoding="utf-8"))["max_width"])
    found: list[Finding] = []
    for path in tracked("*.rs", "*.py", "*.pyi"):
        text = (ROOT / path).read_text(encoding="utf-8")
        if path.endswith(".rs"):
            found += [*openings(path, rust_docs(text)), *wide(path, text, width)]
        else:
            found += openings(path, python_docs(text))
    for finding in found:
        sys.stdout.write(f"{finding}\n")
    counts = Counter(word for path in tracked(*FOLDERS) for word, _ in riddles(read(ROOT / path)))
    many = too_many(counts)
    if many:
        sys.stdout.write(f"{many}\n")
    return 1 if found or many else 0


def tracked(*patterns: str) -> list[str]:
    """The files of the repository that git knows or would add, below or like one of `patterns`."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return sorted(path for path in set(done.stdout.splitlines()) if (ROOT / path).is_file())


def read(path: Path) -> str:
    """The file's text; empty for a picture or another file that has none."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


def openings(path: str, docs: Iterator[tuple[int, str]]) -> Iterator[Finding]:
    """A finding for each doc comment that begins with one of `OPENINGS`, or of `CLAUSES` in a strict room."""
    refused = CLAUSE if path.startswith(STRICT) else OPENING
    for line, text in docs:
        if begins := refused.match(text):
            yield Finding(
                path,
                line,
                f'a doc comment begins with "{begins[0]}", so it cannot be read alone; name its subject: '
                "a verb for a function (`Returns the …`), a noun phrase for anything else (`The time of …`)",
            )


def rust_docs(source: str) -> Iterator[tuple[int, str]]:
    """Line number and first line of each doc comment of a Rust file."""
    before = ""
    for number, line in enumerate(source.splitlines(), start=1):
        doc = DOC.match(line)
        if doc and doc[1] != before:
            yield number, doc[2]
        before = doc[1] if doc else ""


def python_docs(source: str) -> Iterator[tuple[int, str]]:
    """Line number and first line of each docstring, of constants and fields too, and of each comment `#:`."""
    for node in ast.walk(ast.parse(source)):
        for statement in getattr(node, "body", []) if not isinstance(node, ast.Lambda | ast.IfExp) else []:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                text = statement.value.value
                if isinstance(text, str):
                    yield statement.lineno, text.strip().partition("\n")[0]
    before = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and token.string.startswith("#:"):
            number = token.start[0]
            if number != before + 1:
                yield number, token.string.removeprefix("#:").strip()
            before = number


def wide(path: str, source: str, width: int) -> Iterator[Finding]:
    """A finding for each comment of a Rust file beyond `width`, if it can be wrapped.

    Rows of tables, code in documentation and lines that end with an address stay as they are.
    """
    code = False
    for number, line in enumerate(source.splitlines(), start=1):
        if FENCE.match(line):
            code = not code
        elif not DOC.match(line):
            code = False
        if len(line) <= width or not (COMMENT.match(line) or TRAILING.match(line)):
            continue
        if not (code or ROW.match(line) or "://" in line.split()[-1]):
            yield Finding(path, number, f"a comment of {len(line)} columns; wrap it at {width}, as code is")


def riddles(text: str) -> Iterator[tuple[str, int]]:
    """Each of `WORDS` that the text has outside quotations, and its line number."""
    shown = QUOTES.sub(lambda quote: "\n" * quote[0].count("\n"), text)
    for found in WORD.finditer(shown):
        yield found[0].lower(), shown.count("\n", 0, found.start()) + 1


def too_many(counts: Counter[str]) -> str:
    """Return a message if `WORDS` occur more often than `MOST`; empty if not."""
    total = sum(counts.values())
    if total <= MOST:
        return ""
    each = ", ".join(f"{counts[word]} `{word}`" for word in WORDS)
    where = f"grep -rnwiE '{'|'.join(WORDS)}' {' '.join(FOLDERS)}"
    return (
        f"{each}: {total} of at most {MOST}; write the word of the field in place of some "
        f"(reports, shows, is at, distinguishes). They are found by: {where}"
    )


if __name__ == "__main__":
    sys.exit(main())
