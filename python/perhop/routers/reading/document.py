"""A scenario as text with comments, and the report of an import: both from the same entries."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from perhop.routers import units
from perhop.routers.model import How
from perhop.routers.units import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from perhop.routers.model import Quantity, Rate
    from perhop.routers.source import Finding, Source

VALUES = 44
"""Columns of key and value before a comment."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A key of a scenario with its value as TOML, where it comes from, and how it was obtained."""

    key: str
    value: str
    line: int = 0
    how: How | None = None
    """The way in which the value was obtained; None: it is no value of the device, such as a name."""
    said: str = ""
    """The text of the configuration there, or what was done with it."""


Keys = dict[str, list[Entry]]
"""Keys of each queue, by its name."""


@dataclass(slots=True)
class Section:
    """A table of a scenario: its header as TOML (empty at the top), comments before it, and its entries."""

    header: str
    entries: list[Entry] = field(default_factory=list)
    queue: str = ""
    """Whose values these are, in the report."""
    comments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the report: a value in perhop, and how it was obtained."""

    queue: str
    parameter: str
    value: str
    line: int
    how: str
    said: str


def configured(key: str, value: str, line: int, said: str = "") -> Entry:
    """The key of a value that the configuration says."""
    return Entry(key, value, line, How.CONFIGURED, said)


def rate_entry(key: str, bps: float, given: Rate, said: str = "") -> Entry:
    """The key of a rate, with what the configuration says of it."""
    return Entry(key, quoted(units.rate_text(bps)), given.line, given.how, said or given.text)


def bytes_entry(key: str, number: float, given: Quantity, line: int = 0) -> Entry:
    """The key of an amount in bytes; `line` is for one that has no line of its own."""
    return Entry(key, quoted(units.bytes_text(number)), given.line or line, given.how, given.text)


def match_entry(codepoints: Iterable[int], line: int, how: How = How.CONFIGURED) -> Entry:
    """The key `match` of these codepoints."""
    return Entry("match", f"{{ dscp = {json.dumps(units.shown_codepoints(codepoints))} }}", line, how)


def fresh(name: str, taken: set[str]) -> str:
    """A name that is not taken yet: the name, `name+` and so on; from then on it is taken."""
    while name in taken:
        name += "+"
    taken.add(name)
    return name


def to_toml(sections: list[Section], head: list[str], source: Source) -> str:
    """The scenario as text: each value with the line that it comes from."""
    lines = [f"# {_one_line(text)}".rstrip() for text in head]
    for section in sections:
        if section.header or section.comments:
            lines.append("")
        lines += [f"# {_one_line(text)}".rstrip() for text in section.comments]
        if section.header:
            lines.append(section.header)
        for entry in section.entries:
            text = f"{entry.key} = {entry.value}"
            comment = _comment(entry, source)
            lines.append(f"{text:{VALUES}}  # {comment}" if comment else text)
    return "\n".join(lines) + "\n"


def _comment(entry: Entry, source: Source) -> str:
    parts = []
    if entry.line > 0:
        parts.append(source.place(entry.line))
    if entry.how is not None and entry.how != "configured":
        parts.append(str(entry.how))
    if entry.said:
        parts.append(entry.said)
    return _one_line(": ".join(parts)) if entry.line > 0 and len(parts) > 1 else _one_line(", ".join(parts))


def _one_line(text: str) -> str:
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)


def rows(sections: list[Section]) -> list[Row]:
    """The report's table: every value that the device determines."""
    return [
        Row(section.queue, entry.key, entry.value, entry.line, str(entry.how), entry.said)
        for section in sections
        for entry in section.entries
        if entry.how is not None
    ]


@dataclass(frozen=True, slots=True)
class Imported:
    """An import: the scenario, the report's rows, and what there is to say of lines."""

    dialect: str
    port: str
    toml: str
    rows: tuple[Row, ...]
    findings: tuple[Finding, ...]

    def to_json(self, source: Source, **others: Mapping[str, object]) -> str:
        """The report as JSON, with other parts beside its own, by name."""
        values = [{**asdict(row), "line": row.line or None} for row in self.rows]
        warnings = []
        for finding in self.findings:
            place = source.place(finding.line) if finding.line else None
            warning = {"code": finding.code, "line": finding.line or None, "place": place}
            warnings.append({**warning, "text": finding.text})
        report = {"dialect": self.dialect, "port": self.port, "values": values, "warnings": warnings}
        return json.dumps({**report, **others}, indent=1)
