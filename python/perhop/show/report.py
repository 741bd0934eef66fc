"""A report: what a command found, as one model for terminals, pages and notebooks.

A command builds it from a few kinds of parts, and one renderer for each medium lays them out: `as_text` and
`as_notebook` here, `perhop.show.page.as_page` with the template `report.html.j2`. Pictures are parts, too;
they stand on pages alone.
"""

from __future__ import annotations

import html
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from perhop import _engine
from perhop.show.readable import html_table
from perhop.show.table import Pivot, Way, continued, pivot_rows, prose, records
from perhop.show.table import as_text as grid_as_text
from perhop.show.text import printable


class Part(Protocol):
    """One part of a report.

    Attributes:
        kind: The macro of `parts.html.j2` that places it on a page.
    """

    kind: ClassVar[str]


@dataclass(frozen=True, slots=True)
class Records:
    """A table with one line for each record.

    Attributes:
        title: Above the table, except in notebooks.
        lines: At least one record; all have the same keys, which are the heads of the columns.
        notes: Below the table on a page, in Markdown.
        marked: The places of lines that stand out on a page.
        states: The class of a cell on a page, by its text: `yes`, `no`, or `text` for one of several lines.
        gives_way: Columns that a narrow terminal does without, the least important one first.
        stem: The columns with which each table begins where a terminal shows what does not fit in tables
            below; 0 where it breaks texts instead.
    """

    kind: ClassVar = "records"
    title: str
    lines: Sequence[Mapping[str, str]]
    notes: Sequence[str] = ()
    marked: Collection[int] = ()
    states: Mapping[str, str] = field(default_factory=dict)
    gives_way: Sequence[Way] = ()
    stem: int = 0


@dataclass(frozen=True, slots=True)
class Text:
    """Paragraphs; those that begin with a bullet become a list.

    Attributes:
        paragraphs: In Markdown on a page, and as they are elsewhere.
        title: Above them on a page.
        folded: What a page shows in their place until a reader unfolds them; empty where it shows them.
    """

    kind: ClassVar = "text"
    paragraphs: Sequence[str]
    title: str = ""
    folded: str = ""


@dataclass(frozen=True, slots=True)
class Code:
    """Lines that stand as they are, such as those of a configuration; `folded` as in `Text`."""

    kind: ClassVar = "code"
    title: str
    lines: Sequence[str]
    folded: str = ""


@dataclass(frozen=True, slots=True)
class Items:
    """A list: a sentence for each item, and further ones below it; nothing without items."""

    kind: ClassVar = "items"
    title: str
    items: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Grid:
    """A table of a study for a terminal: published beside measured values."""

    kind: ClassVar = "grid"
    grid: Pivot


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a report, which the foot of its page shows.

    Attributes:
        command: What to type.
        samples: The rows of `samples.parquet` beside the page.
        promise: What the command gives again.
        made: Which version made it, and by what.
        manifest: What `manifest.json` beside the page holds.
    """

    command: str
    samples: str
    promise: str = "The same command gives the same numbers, on any number of cores and machines:"
    made: str = f"Simulated with perhop {_engine.version}"
    manifest: str = "version, scenarios, seeds"


@dataclass(frozen=True, slots=True)
class Report:
    """The report of a command: a lead, answers and parts.

    Attributes:
        title: Empty in a terminal where the parts have their own.
        lead: What was done, a paragraph each.
        parts: In reading order.
        answers: What it means, in sentences of Markdown; a page begins with them.
        origin: How to get it again, for a page.
    """

    title: str
    lead: Sequence[str]
    parts: Sequence[Part]
    answers: Sequence[str] = ()
    origin: Origin | None = None


def as_text(report: Report, width: int | None = None) -> str:
    """The report as plain text for a terminal of that width; None for no limit."""
    head = [report.title, *report.lead] if report.title else report.lead
    blocks = [_paragraphs(some, width) for some in (head, [plain(one) for one in report.answers])]
    blocks += [block for part in report.parts for block in _blocks(part, width)]
    return "\n\n".join(filter(None, blocks))


def _blocks(part: Part, width: int | None) -> Iterator[str]:
    """Yield the blocks of text of a part, which empty lines separate."""
    match part:
        case Records():
            tables = continued(part.lines, part.stem, width) if part.stem else [part.lines]
            for place, table in enumerate(tables):
                title = [part.title] if part.title and not place else []
                yield "\n".join([*title, *records(table, width, part.gives_way)])
        case Text():
            yield _paragraphs(part.paragraphs, width)
        case Code():
            yield "\n".join([part.title, *part.lines])
        case Grid():
            yield grid_as_text(part.grid, width)
        case Items() if part.items:
            lines = (line for item in part.items for line in _item(item, width))
            yield "\n".join([prose(part.title, width), *lines])


def _item(sentences: Sequence[str], width: int | None) -> list[str]:
    """An item of a list, indented; its further sentences more so."""
    first, *rest = sentences
    return [prose(first, width, "  ", "    "), *(prose(one, width, "    ") for one in rest)]


def _paragraphs(paragraphs: Sequence[str], width: int | None) -> str:
    return "\n".join(prose(one, width, "", "  " if one.startswith("- ") else "") for one in paragraphs)


def as_notebook(report: Report) -> str:
    """The report as HTML for a notebook: its tables, without titles, and texts in small type."""
    shown = _html_paragraphs([report.title, *report.lead, *map(plain, report.answers)])
    return "".join([shown, *(_notebook_part(part) for part in report.parts)])


def _notebook_part(part: Part) -> str:
    match part:
        case Records() if part.lines:
            return _html_table(part.lines)
        case Grid():
            return _html_paragraphs([part.grid.title]) + _html_table(pivot_rows(part.grid))
        case Items() if part.items:
            items = "".join(f"<li>{_escaped(' '.join(item))}</li>" for item in part.items)
            return f"{_html_paragraphs([part.title])}<ul>{items}</ul>"
        case Text() if part.paragraphs:
            return f"<p><small>{_escaped(' '.join(part.paragraphs))}</small></p>"
    return ""


def tables(report: Report) -> Iterator[tuple[str, Sequence[Mapping[str, str]]]]:
    """Yield the title and the rows of each table of a report; titles may be empty."""
    for part in report.parts:
        if isinstance(part, Records) and part.lines:
            yield part.title, part.lines
        elif isinstance(part, Grid):
            yield part.grid.title, pivot_rows(part.grid)


def plain(sentence: str) -> str:
    """A sentence of Markdown without the stars that make words strong."""
    return sentence.replace("**", "")


def _html_paragraphs(paragraphs: Sequence[str]) -> str:
    return "".join(f"<p>{_escaped(one)}</p>" for one in paragraphs if one)


def _html_table(lines: Sequence[Mapping[str, str]]) -> str:
    return html_table([{head: printable(cell) for head, cell in line.items()} for line in lines])


def _escaped(words: str) -> str:
    return html.escape(printable(words))
