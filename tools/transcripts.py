"""The code blocks of the documentation: which are run, with what around them, and what they print.

    python -m tools.transcripts PAGE.md ...      run the blocks of pages and write what they print

A page with commands says where they run, in a sentence that both readers and this program read: "Commands
run in [any folder](…)" or "… in [a clone of the repository](…)". The blocks of a page are run one after the
other, in an empty folder or in one with what a clone has:

- `sh` holds commands, one in each line: `perhop …`, `python FILE`, and either as `(cd FOLDER && …)`. A `text`
  block directly below it is what the last one prints; in it a line `…` replaces lines that are left out.
- `<!-- status: N -->` above such a block says that its last command ends with this exit status. Then the
  `text` is what it says on standard error.
- `python` is run in one interpreter for each page, and may have such a block below it, too.
- `toml` and others are written to a file where `<!-- file: NAME -->` is above them. A `toml` block must
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
MARKER = re.compile(r"^ *<!-- (not run|file|status): (.+?) -->$")
FOLDER = re.compile(r"^Commands run in \[(any folder|a clone of the repository)\]\(", re.MULTILINE)
INSIDE = re.compile(r"\(cd (\S+) && (.+)\)")
CLONE = "a clone of the repository"
BUILT = {"target", "results"}
"""Folders that a fresh clone does not have; it has no hidden files either."""
LEFT_OUT = "…"
RUN = ("sh", "python")

Command = Callable[[list[str], Path, int], str]
"""Runs `perhop` with these words in a folder and returns what it prints, on standard error if it is to fail.

Raises where the exit status is not the one that is given.
"""


@dataclass(frozen=True, slots=True)
class Block:
    """A code block.

    Attributes:
        first: The line of the page, from 0, behind the opening fence.
        marker: The marker above it: `not run`, `file` or `status`, and its value; both empty without one.
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
        """The commands of the block, without comments, with what a backslash continues."""
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
    """Return the output of the last command of a block."""
    printed = ""
    lines = block.lines()
    for number, given in enumerate(lines, 1):
        inside = INSIDE.fullmatch(given)
        here, line = (place / inside[1], inside[2]) if inside else (place, given)
        words = shlex.split(line)
        words, target = (words[: words.index(">")], words[-1]) if ">" in words else (words, "")
        status = int(block.value) if block.marker == "status" and number == len(lines) else 0
        match words:
            case ["perhop", *options]:
                printed = command(options, here, status)
            case ["python", file]:
                printed = _ended(["python", file], [sys.executable, file], here, status)
            case _:
                raise AssertionError(
                    f"`{words[0]}` is not run: write `<!-- not run: REASON -->` above the block"
                )
        if target:
            (here / target).write_text(printed, encoding="utf-8")
            printed = ""
    return printed


def python(block: Block, place: Path, names: dict[str, object]) -> str:
    """Return the output of a block of Python."""
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


def folder(text: str) -> str:
    """Return the place where a page says that its commands run; empty if it does not.

    Raises:
        AssertionError: It says so twice, or below its first block that is run.
    """
    found = list(FOLDER.finditer(text))
    if not found:
        return ""
    below = text[: found[0].start()].count("\n")
    if len(found) > 1 or any(block.language in RUN and block.first < below for block in blocks(text)):
        raise AssertionError("write `Commands run in [FOLDER](…)` once, above the first command")
    return found[0][1]


def prepare(text: str, place: Path) -> None:
    """Make `place` the folder in which a page's commands run."""
    if folder(text) != CLONE:
        return
    for there in ROOT.iterdir():
        if there.name == "examples":
            shutil.copytree(there, place / there.name)
        elif there.name not in BUILT and not there.name.startswith("."):
            (place / there.name).symlink_to(there)


def main() -> None:
    """Write what blocks print into the pages."""
    parser = argparse.ArgumentParser(prog="tools.transcripts", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("pages", nargs="+", type=Path, metavar="PAGE.md")
    for page in parser.parse_args().pages:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            text = page.read_text(encoding="utf-8")
            prepare(text, place)
            lines = text.splitlines()
            shown = [(after, printed) for _, printed, after in transcript(page, place, _command) if after]
        for after, printed in reversed(shown):
            if LEFT_OUT not in after.text.splitlines():
                lines[after.first : after.last] = [line.rstrip() for line in printed.rstrip().splitlines()]
        page.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _command(words: list[str], place: Path, status: int) -> str:
    return _ended(["perhop", *words], [sys.executable, "-m", "perhop", *words], place, status)


def _ended(shown: list[str], words: list[str], place: Path, status: int) -> str:
    done = subprocess.run(words, cwd=place, capture_output=True, text=True, check=False)
    if done.returncode != status:
        raise AssertionError(f"`{shlex.join(shown)}` ends with status {done.returncode}: {done.stderr}")
    return done.stderr if status else done.stdout


if __name__ == "__main__":
    main()
