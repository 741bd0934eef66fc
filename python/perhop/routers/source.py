"""Configuration files as numbered lines, and the account of them: each is used, reported, or a comment."""

from __future__ import annotations

import bisect
import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

T = TypeVar("T")
START = r"(?im)^[^\S\n]*"
"""The start of a line with its blanks. `\\s` would run through all empty lines, from each of them on."""
CODES = {
    "W01": "the unit of a threshold is assumed",
    "W02": "the averaging weight is not configured",
    "W03": "max is not below the queue limit: tail drop acts first",
    "W04": "the queue limit or a threshold is not configured",
    "W05": "time or percent converted",
    "W06": "a curve or scheduler is approximated",
    "W07": "packets that cannot be distinguished have one curve",
    "W08": "ECN may behave differently on this platform",
    "W09": "head drop, shared or dynamic buffers",
    "W10": "a meter is approximated",
    "W12": "the spacing of drops on this platform is unknown",
    "W13": "not used, kept verbatim",
    "W14": "classes overlap, or one can never match",
    "W15": "a name is not defined, or not attached",
    "W16": "outside the platform's range, or rounded by hardware",
    "W17": "the platform accepts it but ignores it or computes something else",
    "W18": "layer-2 overhead is accounted for differently",
}
"""The codes of findings; they are stable."""


MEANINGS = re.compile(
    r"(?i)(?<![a-z])(priority|bandwidth|rate|limit|ceil\w*|burst\w*|drop\w*|discard|match|polic(?:e|er|ers|ing)|"
    r"shap\w+|traffic-shape|random-detect|w?red|ecn|queue\w*|wrr\w*|srr\w*|scheduler|qos|dscp|precedence|quantum|"
    r"guarantee\w*|threshold\w*|max-limit|limit-at)(?![a-z])"
)
"""Words of lines about priority, rate, limit, drop or match."""
LONGEST = 160
"""Characters of a line in a message."""


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """A code of `CODES` and a sentence about a line, for the user."""

    line: int
    code: str
    text: str


class Source:
    """The lines of one or several files, numbered from 1 on through all of them."""

    def __init__(self, files: Sequence[tuple[str, bytes]]) -> None:
        """Files by name. Bytes that are not UTF-8 become U+FFFD."""
        self.names = [name for name, _ in files]
        self.texts = [data.decode("utf-8", "replace").removeprefix("\ufeff") for _, data in files]
        self._firsts: list[int] = []
        lines: list[str] = []
        for text in self.texts:
            self._firsts.append(len(lines) + 1)
            lines += lines_of(text)
        self.lines = tuple(lines)

    @property
    def text(self) -> str:
        """The lines as one text."""
        return "\n".join(self.lines)

    def numbered(self) -> Iterable[tuple[int, str]]:
        """Each line with its number."""
        return enumerate(self.lines, 1)

    def starting(self, pattern: str) -> int:
        """Count the lines that start with a pattern, behind blanks and in any case of letters."""
        return len(re.findall(rf"{START}(?:{pattern})", self.text))

    def first(self, file: int) -> int:
        """The number of the first line of a file."""
        return self._firsts[file]

    def place(self, line: int) -> str:
        """The place of a line: `line 7`, or `edge.cfg:7` where there are several files."""
        if line <= 0:
            return "-"
        file = bisect.bisect_right(self._firsts, line) - 1
        number = line - self._firsts[file] + 1
        return f"line {number}" if len(self.names) == 1 else f"{self.names[file]}:{number}"


class Account:
    """The account of lines: each is used, reported, or a comment.

    Reports of a line return True, with which a reader says that a line is dealt with.
    """

    def __init__(self, source: Source) -> None:
        """Takes a source, no line of which has been read."""
        self.source = source
        self.used: set[int] = set()
        self.understood: set[int] = set()
        """Lines that were read, whether or not the chosen port uses them."""
        self.comments: set[int] = {number for number, text in source.numbered() if not text.strip()}
        self.findings: list[Finding] = []
        self._known: set[Finding] = set()
        self.missed: set[int] = set()
        """Lines about priority, rate, limit, drop or match without the effect that they have on a device."""

    def use(self, lines: Iterable[int]) -> None:
        """Lines whose every word has a meaning in the result."""
        self.used.update(line for line in lines if line > 0)

    def understand(self, *lines: int) -> bool:
        """Take lines that a reader understands; they are used if the port to which they belong is chosen."""
        self.understood.update(lines)
        return True

    def take(self, line: int, lines: set[int]) -> bool:
        """Take a line that a reader understands as one of the lines of something."""
        lines.add(line)
        return self.understand(line)

    def comment(self, *lines: int) -> bool:
        """Take comments, or lines that only end a block."""
        self.comments.update(lines)
        return True

    def find(self, code: str, line: int, text: str) -> bool:
        """Report a line (0: none in particular)."""
        finding = Finding(line, code, text)
        if finding not in self._known:
            self._known.add(finding)
            self.findings.append(finding)
        return True

    @contextmanager
    def of_port(self, findings: list[Finding]) -> Iterator[None]:
        """Collect what is found within as one port's: it is reported if that port is imported."""
        before = self.findings, self._known
        self.findings, self._known = findings, set(findings)
        try:
            yield
        finally:
            self.findings, self._known = before

    def defined(self, table: Mapping[str, T], name: str, line: int, what: str) -> T | None:
        """The entry of a table that a line names; a name that is not defined is reported."""
        if name not in table:
            self.find("W15", line, f"{what} {name} is not defined")
        return table.get(name)

    def ignore(self, line: int, why: str = "not understood") -> bool:
        """Report a line that has no effect on the result, verbatim."""
        if 0 < line <= len(self.source.lines):
            self.find("W13", line, f"{why}: `{shortened(self.source.lines[line - 1])}`")
        return True

    def miss(self, line: int, why: str = "not understood") -> bool:
        """Report a line about priority, rate, limit, drop or match without effect: an error, unless lenient.

        A line without effect on the device, too, or about nothing of these, is for `ignore`.
        """
        self.missed.add(line)
        return self.ignore(line, why)

    def miss_part(self, line: int, text: str) -> bool:
        """Report in other words what `miss` reports verbatim, such as one value of a line."""
        self.missed.add(line)
        return self.find("W13", line, text)

    def not_understood(self, key: str, said: str, line: int) -> None:
        """Report a key with its value, as missed if the key is about priority, rate, limit, drop or match."""
        self.note(line, f"not understood: `{said}`", missed=MEANINGS.search(key) is not None)

    def note(self, line: int, text: str, *, missed: bool) -> bool:
        """Report what has no effect in other words; `missed`: as `miss_part` does."""
        return self.miss_part(line, text) if missed else self.find("W13", line, text)

    def lost(self, port: set[int], others: set[int]) -> list[Finding]:
        """The missed lines in blocks of a port: those of which the line before, of any block, is one of its.

        `others` are lines of other ports. A line before all blocks belongs to every port.
        """
        blocks = sorted(port | others | self.understood)
        result = []
        for finding in sorted(self.findings):
            if finding.code != "W13" or finding.line not in self.missed:
                continue
            at = bisect.bisect_right(blocks, finding.line) - 1
            if at < 0 or blocks[at] in port:
                result.append(finding)
        return result

    def ignore_whole(
        self, lines: Iterable[int], why: str = "not understood", *, missed: bool = False
    ) -> None:
        """Report a command of several lines without effect, verbatim and once; `missed`: as `miss` does."""
        places = sorted(line for line in lines if 0 < line <= len(self.source.lines))
        if not places:
            return
        parts = (self.source.lines[line - 1].rstrip().removesuffix("\\") for line in places)
        self.find("W13", places[0], f"{why}: `{shortened(' '.join(parts))}`")
        self.comments.update(places[1:])
        self.missed.update(places[:1] if missed else ())

    def leave_out(self, lines: set[int]) -> None:
        """Forget what was said of lines of other ports than the imported one: only that they are others'.

        Names that are not defined or not attached stay: they are said of the whole configuration.
        """
        self.findings = [f for f in self.findings if f.line not in lines or f.code == "W15"]
        self._known = set(self.findings)
        self.understood |= lines

    def close(self, port: str) -> None:
        """Report every line of which nothing was said, for the port that is imported."""
        for number in self.silent():
            self.ignore(number, f"not part of {port}" if number in self.understood else "not understood")

    def silent(self) -> list[int]:
        """Lines that are neither used, nor reported, nor comments: none after `close`."""
        known = self.used | self.comments | {finding.line for finding in self.findings}
        return [number for number, _ in self.source.numbered() if number not in known]


def lines_of(text: str) -> list[str]:
    """The lines of a text: line feeds, carriage returns or both end them, other separators do not."""
    return re.split(r"\r\n|\n|\r", text)


def shortened(text: str) -> str:
    """A line as a message shows it."""
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
