"""The code blocks of the documentation run as they stand, show what is printed, or say why they are not run.

`tools/transcripts.py` says how blocks are written, and writes what they print.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.python.conftest import run_in
from tools.transcripts import CLONE, ROOT, Block, agrees, blocks, folder, prepare, transcript

from perhop.commands import cli
from perhop.scenario import reading

if TYPE_CHECKING:
    from tests.python.processes import Server

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "course").rglob("*.md")])
"""The sheets of labs run in the labs' folders: tests/python/course."""
ELSEWHERE = dict.fromkeys(
    ("results.md", "traffic.md", "packets.md"),
    "tests/python/output/test_tables.py runs their blocks and judges the values",
)
RUNNING = [page for page in PAGES if "```sh" in page.read_text() or "```python" in page.read_text()]
SHOWING = {
    "tutorial.md",
    "engineer.md",
    "researcher.md",
    "teacher.md",
    "data.md",
    "plans.md",
    "guarantees.md",
    "rare-events.md",
    "questions.md",
    "which-aqm.md",
}

FILE = re.compile(r"[\w./+-]+\.(toml|cfg|pcap|pcapng|py|json|graphml)")
OWN = re.compile(r"my\.|[A-Z]+\.")
"""A file of the reader: `my.toml`, `SCENARIO.toml`."""

LONG = {"questions.md", "which-aqm.md", "buffer-size.md", "plans.md"}
"""Pages of many runs: `make test-long`."""

Check = Callable[[Path, Path], int]


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.fixture
def follow(server: Server) -> Check:
    """Runs a page's blocks in a folder, and says how many of them show what they print."""

    def command(words: list[str], place: Path, status: int) -> str:
        done = run_in(server, place, *words)
        assert done.code == status, done.err
        return done.err if status else done.out

    def check(page: Path, place: Path) -> int:
        prepare(page.read_text(encoding="utf-8"), place)
        shown = 0
        for block, printed, after in transcript(page, place, command):
            if after is not None:
                assert agrees(after.text, printed), (
                    f"{named(page)}:{block.first + 1} prints something else than the page shows; "
                    f"`python -m tools.transcripts {named(page)}` writes it anew:\n{printed}"
                )
                shown += 1
        for block, file in absent(page, place):
            pytest.fail(f"{named(page)}:{block.first + 1}: there is no {file} in the folder of the page")
        return shown

    return check


def absent(page: Path, place: Path) -> Iterator[tuple[Block, str]]:
    """What the folder lacks of what commands that are not run read, but for files of the reader."""
    for block in blocks(page.read_text(encoding="utf-8")):
        for line in block.lines() if block.marker == "not run" and block.language == "sh" else []:
            program, *words = shlex.split(line)
            read = [word for before, word in pairwise(["", *words]) if before[:1] not in ("-", ">")]
            for word in read if program == "perhop" else []:
                if FILE.fullmatch(word) and not OWN.match(word) and not (place / word).exists():
                    yield block, word


@pytest.mark.parametrize("page", RUNNING, ids=named)
def test_a_page_with_commands_says_where_they_run(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    where = folder(text)
    assert where, "write `Commands run in [any folder](…)` or `… in [a clone of the repository](…)`"
    code = "".join(block.text for block in blocks(text) if block.language in ("sh", "python"))
    assert where == CLONE or "examples/" not in code


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_commands_stand_in_blocks_that_are_run(page: Path) -> None:
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.language != "sh":
            assert not re.search(r"^(\$ |\.venv/bin/)", block.text, re.MULTILINE), (
                f"{named(page)}:{block.first + 1}: write commands into `sh`, and what they print into `text`"
            )


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=named(page), marks=pytest.mark.long if page.name in LONG else ())
        for page in RUNNING
        if page.name not in ELSEWHERE
    ],
)
def test_the_blocks_of_a_page_run(page: Path, tmp_path: Path, follow: Check) -> None:
    # The notes of teachers show that their answers are right, by `perhop course check`.
    shows = page.name in SHOWING or page.parent.name == "teachers"
    assert follow(page, tmp_path) >= shows


def test_pages_that_are_run_elsewhere_are_there() -> None:
    for page, reason in ELSEWHERE.items():
        test = ROOT / reason.partition(" ")[0]
        assert page in test.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", RUNNING, ids=named)
def test_commands_that_are_not_run_exist_with_their_options(page: Path) -> None:
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.marker == "not run" and block.language == "sh":
            for line in block.lines():
                words = line.removeprefix("sudo ").removeprefix(".venv/bin/").split()
                if words[0] == "perhop":
                    assert understood(words[1:]), f"{named(page)}:{block.first + 1}: {line}"


def understood(words: list[str]) -> bool:
    """Whether there is such a command with such options."""
    command: Any = cli.loaded(words.pop(0))
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    options = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
    return all(word.partition("=")[0] in options for word in words if word.startswith("-") and word != "-")


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_toml_is_toml_and_scenarios_are_valid(page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    prepare(text, tmp_path)
    for block in blocks(text):
        if block.language == "toml" and block.marker == "not run":
            assert all(tomllib.loads(line) for line in block.lines())
        elif block.language == "toml":
            table = tomllib.loads(block.text)
            if {"duration", "flows"} <= table.keys():
                reading.read(table)


def test_a_block_that_fails_is_told_with_its_line(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A page\n\n```sh\nmake coffee\n```\n", encoding="utf-8")
    with pytest.raises(
        AssertionError, match=r"page\.md:4: `make` is not run: write `<!-- not run: REASON -->`"
    ):
        list(transcript(page, tmp_path, lambda _words, _place, _status: ""))


PAGE = """\
<!-- file: one.toml -->
```toml
a = 1
```

```sh
perhop run one.toml \\
    --runs 2   # a comment
perhop schema > schema.json
perhop list blocks
```

```text
first
…
last
```

<!-- not run: no reason -->

```sh
perhop live one.toml
```

```python
print(1 + 1)
```

Text between them.

```text
unrelated
```
"""


def test_blocks_are_found_with_their_markers_and_outputs(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE, encoding="utf-8")
    called: list[list[str]] = []

    def command(words: list[str], _place: Path, _status: int) -> str:
        called.append(words)
        return "first\nsecond\nlast  \n"

    found = list(transcript(page, tmp_path, command))
    assert called == [["run", "one.toml", "--runs", "2"], ["schema"], ["list", "blocks"]]
    assert (tmp_path / "one.toml").read_text() == "a = 1\n"
    assert (tmp_path / "schema.json").read_text().startswith("first")
    assert [(block.language, printed) for block, printed, _ in found] == [
        ("sh", "first\nsecond\nlast  \n"),
        ("python", "2\n"),
    ]
    (_, printed, after), (_, _, unrelated) = found
    assert isinstance(after, Block)
    assert agrees(after.text, printed)
    assert unrelated is None


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a\nb\n", "a\nb\n\n", True),
        ("a\nb\n", "a\nc\n", False),
        ("a\n", "a\nb\n", False),
        ("…\nb\n…\n", "a\nb\nc\n", True),
        ("…\nb\n…\n", "a\nbc\n", False),
        ("a (1)\n", "a (1)  \n", True),
        ("a…\n", "abc\n", False),
    ],
)
def test_what_is_shown_agrees_with_what_is_printed(shown: str, printed: str, same: bool) -> None:
    assert agrees(shown, printed) is same
