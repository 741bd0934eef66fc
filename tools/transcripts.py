"""The code blocks of the documentation: which are run, with what around them, and what they print.

    python -m tools.transcripts PAGE.md ...      run the blocks of pages and write what they print

The blocks of a page are run one after the other, in a folder of their own that has `examples`:

- `sh` holds commands of `perhop`, one in each line. A `text` block directly below it is what the last one
  prints; in it a line `…` stands for lines that are left out.
- `python` is run in one interpreter for each page, and may have such a block below it, too.
- `toml` and others are written to a file where `<!-- file: NAME -->` stands above them. A `toml` block must
  be TOML; what has `duration` and `flows` must be a valid scenario.
- `<!-- not run: REASON -->` above a block says that it is not run, and why. Its commands must still exist,
  with their options, and each line of `toml` must be valid by itself.

`tests/python/docs/test_blocks.py` runs all pages.
"""

from __future__ import annotations

import argparse
import io
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OPEN = re.compile(r"^( *)(```+)(\w*)$")
MARKER = re.compile(r"^ *<!-- (not run|file): (.+?) -->$")
LEFT_OUT = "…"
RUN = ("sh", "python")

Command = Callable[[list[str], Path], str]
"""Runs `perhop` with these words in a folder, returns what it prints, and raises where it fails."""


@dataclass(frozen=True, slots=True)
class Block:
    """A code block.

    Attributes:
        first: The line of the page, from 0, behind the opening fence.
        marker: What stands above it: `not run` or `file`, and its value; both empty without one.
        follows: Whether nothing but empty lines is between it and the block before.
    """

    language: str
    text: str
    first: int
    last: int
    marker: str
    value: str
    follows: bool

    def lines(self) -> list[str]:
        """Its commands, without comments, with what a backslash continues."""
        whole = self.text.replace("\\\n", " ")
        return [
            line for line in (re.sub(r"(^|\s)#.*", "", line).strip() for line in whole.splitlines()) if line
        ]


def blocks(text: str) -> list[Block]:
    """The code blocks of a page."""
    found: list[Block] = []
    lines = text.splitlines()
    at, end, marker = 0, -1, ("", "")
    while at < len(lines):
        line = lines[at]
        if opened := OPEN.match(line):
            indent, fence, language = opened.groups()
            first = at + 1
            last = next(no for no in range(first, len(lines)) if lines[no].strip() == fence)
            body = "\n".join(line.removeprefix(indent) for line in lines[first:last])
            follows = end >= 0 and not "".join(lines[end + 1 : at]).strip()
            found.append(Block(language, body + "\n", first, last, *marker, follows))
            at, end, marker = last, last, ("", "")
        elif line.strip():
            given = MARKER.match(line)
            marker = (given[1], given[2]) if given else ("", "")
        at += 1
    return found


def transcript(page: Path, place: Path, command: Command) -> Iterator[tuple[Block, str, Block | None]]:
    """Run a page's blocks; each that is run, what it prints, and the block that shows it, if there is one.

    Raises:
        AssertionError: A block fails; the message names its line.
    """
    names: dict[str, object] = {}
    every = blocks(page.read_text(encoding="utf-8"))
    for block, after in zip(every, [*every[1:], None], strict=True):
        if block.marker == "file":
            (place / block.value).write_text(block.text, encoding="utf-8")
        if block.marker == "not run" or block.language not in RUN:
            continue
        try:
            printed = shell(block, place, command) if block.language == "sh" else python(block, place, names)
        except Exception as error:
            raise AssertionError(f"{page.name}:{block.first + 1}: {error}") from error
        yield block, printed, after if after and after.language == "text" and after.follows else None


def shell(block: Block, place: Path, command: Command) -> str:
    """What the last command of a block prints."""
    printed = ""
    for line in block.lines():
        words = shlex.split(line.removeprefix(".venv/bin/"))
        if words[0] != "perhop":
            raise AssertionError(f"`{words[0]}` is not run: write `<!-- not run: REASON -->` above the block")
        words, mark, target = words[1:], *([">", words[-1]] if ">" in words else ["", ""])
        if mark:
            words = words[: words.index(">")]
        printed = command(words, place)
        if mark:
            (place / target).write_text(printed, encoding="utf-8")
            printed = ""
    return printed


def python(block: Block, place: Path, names: dict[str, object]) -> str:
    """What a block of Python prints."""
    printed = io.StringIO()
    with chdir(place), redirect_stdout(printed):
        exec(compile(block.text, f"line {block.first + 1}", "exec"), names)  # noqa: S102 - it is our documentation
    return printed.getvalue()


def agrees(shown: str, printed: str) -> bool:
    """Whether a page shows what is printed, but for lines that it leaves out."""
    pieces = re.split(
        rf"^{LEFT_OUT}$\n?", "\n".join(map(str.rstrip, shown.splitlines())) + "\n", flags=re.MULTILINE
    )
    pattern = r"(?:.*\n)*?".join(map(re.escape, pieces))
    return re.fullmatch(pattern, "\n".join(map(str.rstrip, printed.rstrip().splitlines())) + "\n") is not None


def prepare(place: Path) -> None:
    """Give a folder what pages take as given."""
    shutil.copytree(ROOT / "examples", place / "examples")


def main() -> None:
    """Write what blocks print into the pages."""
    parser = argparse.ArgumentParser(prog="tools.transcripts", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("pages", nargs="+", type=Path, metavar="PAGE.md")
    for page in parser.parse_args().pages:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            prepare(place)
            lines = page.read_text(encoding="utf-8").splitlines()
            shown = [(after, printed) for _, printed, after in transcript(page, place, _command) if after]
        for after, printed in reversed(shown):
            if LEFT_OUT not in after.text.splitlines():
                lines[after.first : after.last] = [line.rstrip() for line in printed.rstrip().splitlines()]
        page.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _command(words: list[str], place: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "perhop", *words], cwd=place, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


if __name__ == "__main__":
    main()
