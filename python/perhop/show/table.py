"""Tables: one model, laid out as plain text for terminals and pipes, and as cells for the report page.

Text fits a width. A table of records first breaks its heads, then its texts over several lines; columns that
its caller calls less important are left out next, with a note below; what is left is cut. A grid of a study
continues below itself. A width of None shows everything, however wide.
"""

from __future__ import annotations

import itertools
import math
import re
import textwrap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from perhop.files import arguments
from perhop.show.numbers import MISSING
from perhop.statistics.intervals import is_symmetric

if TYPE_CHECKING:
    from perhop.show.declared import Bound, Row, Table

DERIVED = "†"
LOWER, HIGHER = "↓", "↑"
"""A published value that is lower or higher than every single run."""
CUT = "…"
SIGNS = {True: "✓", False: "✗", None: "?"}
"""The signs of numbers at or above a table's bound, below it, and with an interval that contains it."""
PROSE = 100
"""Sentences are no longer than this, however wide the terminal is."""
GAP = 2
Way: TypeAlias = "str | tuple[str, str]"
"""A column that gives way, or one with the column without which it says nothing."""
SHORTEST_TEXT = 14
"""Texts in a table are not broken into less than this many characters, if columns may give way instead."""
_BROKEN_TEXT = 12
"""Texts are not broken into less than this many characters, if a second table can have the other columns."""


@dataclass(frozen=True, slots=True)
class Pivot:
    """Result rows laid out as a grid.

    Attributes:
        heads: Names of each column, outermost first.
        lines: (label, one result row for each column, or None where nothing was measured).
        published: Some entry has a published value.
        interval: Some entry has an interval.
        spread: Some entry with a published value has the spread of its single runs.
        bound: What numbers are held against.
    """

    title: str
    corner: str
    heads: Sequence[tuple[str, ...]]
    lines: Sequence[tuple[str, Sequence[Row | None]]]
    digits: int
    published: bool
    interval: bool
    spread: bool = False
    bound: Bound | None = None

    @property
    def names(self) -> list[str]:
        """The names of an entry's lines."""
        return [
            *(["published"] if self.published else []),
            "measured",
            *(["95 %"] if self.interval else []),
            *(["lowest", "highest"] if self.spread else []),
        ]


def pivot(table: Table, rows: Sequence[Row]) -> Pivot | None:
    """Lay a study's rows out as the table says, or None if none of them belong in it."""
    from perhop.show import declared  # noqa: PLC0415 - for studies alone, and it takes as long to load as this

    found = [row for metric in table.metrics for row in declared.chosen(rows, metric, table.where)]
    if not found:
        return None
    factor = table.rows.factor
    names = [axis.factor for axis in table.columns]
    across = [axis.order(row.factors[axis.factor] for row in found) for axis in table.columns]
    keys = list(itertools.product(table.metrics, *across))
    place = {(row.factors[factor], row.metric, *(row.factors[name] for name in names)): row for row in found}
    heads = []
    for metric, *values in keys:
        inner = tuple(axis.text(value) for axis, value in zip(table.columns, values, strict=True))
        heads.append((table.metrics[str(metric)], *inner) if len(table.metrics) > 1 else inner)
    down = table.rows.order(row.factors[factor] for row in found)
    return Pivot(
        table.title if table.bound is None else f"{table.title} ({_key(table.bound)})",
        table.rows.label,
        heads,
        [(table.rows.text(value), [place.get((value, *key)) for key in keys]) for value in down],
        table.digits,
        published=any(row.published is not None for row in found),
        interval=any(row.ci95 is not None for row in found),
        spread=any(row.within is not None for row in found),
        bound=table.bound,
    )


def _key(bound: Bound) -> str:
    """The key of the signs of a table with a bound."""
    return f"{SIGNS[True]} {bound.met}, {SIGNS[False]} {bound.missed}, {SIGNS[None]} cannot tell"


def measured(grid: Pivot, row: Row) -> str:
    """The measured number of an entry, behind the sign of its side of the bound where there is one."""
    return ("" if grid.bound is None else SIGNS[grid.bound.state(row)]) + number(row.mean, grid.digits)


def spans(heads: Sequence[tuple[str, ...]], level: int) -> list[tuple[str, int]]:
    """The names on one level of the heads with the number of columns under each."""
    innermost = level == len(heads[0]) - 1
    groups: list[tuple[tuple[str, ...], int]] = []
    for head in heads:
        prefix = head[: level + 1]
        if groups and groups[-1][0] == prefix and not innermost:
            groups[-1] = (prefix, groups[-1][1] + 1)
        else:
            groups.append((prefix, 1))
    return [(prefix[-1], count) for prefix, count in groups]


def number(value: float | None, digits: int) -> str:
    """A number, or a dash."""
    return MISSING if value is None else f"{value:.{digits}f}"


def interval(row: Row, digits: int) -> str:
    """The interval as ±.024, as (.02–.31) where its sides differ, or nothing; how many runs have a value."""
    runs = f" {row.runs} of {row.of} runs" if row.is_partial and row.mean is not None else ""
    return _ends(row, digits) + runs


def _ends(row: Row, digits: int) -> str:
    if row.mean is None or row.ci95 is None:
        return ""
    low, high = row.ci95
    below, above = (_short(side, digits) for side in (row.mean - low, high - row.mean))
    if below == above or is_symmetric(row.mean, low, high):
        return "±" + _short((high - low) / 2, digits)
    if math.isinf(high):
        return "" if math.isinf(low) else f"(over {_short(low, digits)})"
    return f"({_short(low, digits)}{' to ' if low < 0 else '–'}{_short(high, digits)})"


def _short(value: float, digits: int) -> str:
    """A number without the zero before its decimal point."""
    sign = "-" if value < 0 else ""
    return sign + f"{abs(value):.{digits}f}".removeprefix("0" if digits else "")


def published_text(row: Row, digits: int) -> str:
    """The published value, marked where it is arithmetic on printed ones, and where it is beyond all runs."""
    beyond = ""
    if row.published is not None and row.spread is not None and not row.within:
        beyond = LOWER if row.published < row.spread[0] else HIGHER
    return number(row.published, digits) + beyond + (DERIVED if row.derived else "")


def spread_text(row: Row, digits: int) -> tuple[str, str]:
    """The lowest and the highest single run, or nothing."""
    return ("", "") if row.spread is None else (f"{row.spread[0]:.{digits}f}", f"{row.spread[1]:.{digits}f}")


def as_text(grid: Pivot, width: int | None = None) -> str:
    """The table as plain text: published above measured, or mean±half width where nothing is published.

    Columns that do not fit beside each other follow below, under the same labels.
    """
    body = [line for label, rows in grid.lines for line in _text_lines(grid, label, rows)]
    inner = [["", *(head[-1] for head in grid.heads)]] if grid.heads[0] else []
    widths = [max(len(line[column]) for line in [*inner, *body]) for column in range(len(body[0]))]
    parts = []
    for columns in _blocks(widths, width):
        chosen = [[line[column] for column in (0, *columns)] for line in [*inner, *body]]
        lines = align(chosen, rule=len(inner))
        heads = [grid.heads[column - 1] for column in columns]
        parts.append("\n".join([*_outer(heads, [widths[c] for c in (0, *columns)]), *lines]))
    return "\n".join([prose(grid.title, width), "\n\n".join(parts)])


def _outer(heads: Sequence[tuple[str, ...]], widths: Sequence[int]) -> list[str]:
    """The levels of the heads above the innermost, each name over its columns."""
    outer = []
    for level in range(len(heads[0]) - 1):
        cells, column = [" " * widths[0]], 1
        for name, count in spans(heads, level):
            room = sum(widths[column : column + count]) + GAP * (count - 1)
            cells.append((name if len(name) <= room else name[: room - 1] + CUT).center(room))
            column += count
        outer.append((" " * GAP).join(cells).rstrip())
    return outer


def _blocks(widths: Sequence[int], width: int | None) -> list[list[int]]:
    """The columns but the first in as many blocks as it takes for each to fit, the first column before it."""
    blocks: list[list[int]] = []
    room = 0
    for column, needed in enumerate(widths[1:], 1):
        if not blocks or (width is not None and needed + GAP > room):
            blocks.append([])
            room = (width or 0) - widths[0]
        blocks[-1].append(column)
        room -= needed + GAP
    return blocks


def align(
    lines: Sequence[Sequence[str]], *, rule: int = 0, left: Collection[int] = frozenset({0})
) -> list[str]:
    """Pad cells to columns, those in `left` to the left, the others right; with a rule below `rule` lines."""
    widths = [max(len(cell) for cell in column) for column in zip(*lines, strict=True)]
    out = [
        (" " * GAP)
        .join(
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        .rstrip()
        for line in lines
    ]
    if rule:
        out.insert(rule, "─" * (sum(widths) + GAP * (len(widths) - 1)))
    return out


def records(
    lines: Sequence[Mapping[str, str]],
    width: int | None = None,
    gives_way: Sequence[Way] = (),
    remedy: str = "--wide",
) -> list[str]:
    """A list of records as text, one column for each key of the first record.

    Args:
        lines: At least one record.
        width: Columns of the terminal; None for no limit.
        gives_way: Columns that a narrow terminal may do without, the least important one first; a pair is
            one, and the column without which it says nothing. The note below the table names those that were
            left out. If the others do not fit either, they stand in several tables one below the other, each
            with the first column; those after the first table leave out records that have none of their
            values.
        remedy: What shows them.
    """
    arguments.columns(width)
    shown = _kept(lines, width, gives_way)
    of_shown = [{name: line[name] for name in shown} for line in lines]
    fits = any(_fitted(lines, shown, width, shortest) for shortest in (SHORTEST_TEXT, _BROKEN_TEXT))
    parts = [of_shown] if fits else continued(of_shown, 1, width)
    parts[1:] = [[line for line in part if set([*line.values()][1:]) - {MISSING}] for part in parts[1:]]
    text = [row for part in parts if part for row in ("", *_one_table(part, width))][1:]
    left_out = [name for name in lines[0] if name not in shown]
    if not left_out:
        return text
    what = "1 column" if len(left_out) == 1 else f"{len(left_out)} columns"
    note = f"{what} left out: {'; '.join(left_out)}. {remedy} shows {'it' if len(left_out) == 1 else 'them'}."
    return [*text, *prose(note, width).splitlines()]


def _one_table(lines: Sequence[Mapping[str, str]], width: int | None) -> list[str]:
    """All columns of records as text, with texts broken as often as the width demands."""
    names = list(lines[0])
    tried = (_fitted(lines, names, width, shortest) for shortest in (SHORTEST_TEXT, _BROKEN_TEXT, 1))
    widths = next(filter(None, tried), [1] * len(names))
    heads = _broken(names, widths)
    body = [row for line in lines for row in _broken([line[name] for name in names], widths)]
    cells = [[line[name] for line in lines if line[name] not in ("", MISSING)] for name in names]
    texts = {place for place, own in enumerate(cells) if own and all(_is_text([cell]) for cell in own)}
    return align([*heads, *body], rule=len(heads), left={0, *texts})


def continued(
    lines: Sequence[Mapping[str, str]], first: int, width: int | None
) -> list[list[dict[str, str]]]:
    """Records cut into tables that fit a width one below the other, each with the first few columns."""
    arguments.columns(width)
    if not lines:
        return []
    heads = list(lines[0])
    needed = [_least(head, [line[head] for line in lines]) for head in heads]
    stem = sum(needed[:first]) + GAP * max(first - 1, 0)
    blocks = _blocks([stem, *needed[first:]], width)
    tables = [[*heads[:first], *(heads[first - 1 + column] for column in block)] for block in blocks]
    return [[{head: line[head] for head in table} for line in lines] for table in tables or [heads]]


def _kept(lines: Sequence[Mapping[str, str]], width: int | None, gives_way: Sequence[Way]) -> list[str]:
    """The columns that are shown: as few are left out as the width allows, in the given order."""
    names = list(lines[0])
    gone: list[str] = []
    beside = dict(one for one in gives_way if not isinstance(one, str))
    for name in (one if isinstance(one, str) else one[0] for one in gives_way):
        if _fitted(lines, [other for other in names if other not in gone], width) is not None:
            break
        gone += [name] if name in names else []
    # A wide column that went last may have made room for a narrow one that went before it.
    for name in reversed(gone):
        if beside.get(name) in gone:
            continue
        shown = [other for other in names if other not in gone or other == name]
        if _fitted(lines, shown, width) is not None:
            gone.remove(name)
    return [name for name in names if name not in gone]


def _fitted(
    lines: Sequence[Mapping[str, str]], names: Sequence[str], width: int | None, shortest: int = SHORTEST_TEXT
) -> list[int] | None:
    """A width for each column with which the table fits, texts no shorter than `shortest`; None without."""
    cells = {name: [line[name] for line in lines] for name in names}
    natural = [max(map(len, (name, *cells[name]))) for name in names]
    if width is None or _total(natural) <= width:
        return natural
    widths = [max(_longest_word(name), *map(len, cells[name])) for name in names]
    least = [_least(name, cells[name], shortest) for name in names]
    while _total(widths) > width:
        room, column = max(
            (now - low, place) for place, (now, low) in enumerate(zip(widths, least, strict=True))
        )
        if room <= 0:
            return None
        widths[column] -= 1
    return _widened(widths, natural, width)


def _least(name: str, cells: Sequence[str], shortest: int = SHORTEST_TEXT) -> int:
    """The least width of a column: a head may break at its spaces, a text anywhere; a number stays whole."""
    widest, head = max(map(len, cells)), _longest_word(name)
    if not _is_text(cells):
        return max(widest, head)
    return max(min(widest, shortest), head if shortest > 1 else 1)


def _longest_word(name: str) -> int:
    return max(map(len, name.split()), default=0)


def _widened(widths: list[int], natural: Sequence[int], width: int) -> list[int]:
    """Give the rest of the width to heads that would else be broken, the first ones first."""
    room = width - _total(widths)
    for column, wanted in enumerate(natural):
        more = wanted - widths[column]
        if 0 < more <= room:
            widths[column] += more
            room -= more
    return widths


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _is_text(cells: Sequence[str]) -> bool:
    """Whether cells hold words, which may be broken, and not numbers with or without an interval."""
    return any(re.search(r"[^\W\d_]{2}", _OF_INTERVALS.sub("", cell)) for cell in cells)


_OF_INTERVALS = re.compile(
    r"^below (?=[\d−])|(?<=\d )to (?=[\d−])|(?<=\()(?:over|under|not known)|, \d+ of \d+ runs$"
)
"""The words of an interval, and of how many runs it is."""


def _broken(cells: Sequence[str], widths: Sequence[int]) -> list[list[str]]:
    """One line of cells, over as many lines as the longest takes."""
    broken = [
        textwrap.wrap(cell, width, break_on_hyphens=False) or [""]
        for cell, width in zip(cells, widths, strict=True)
    ]
    return [list(line) for line in itertools.zip_longest(*broken, fillvalue="")]


def prose(text: str, width: int | None, indent: str = "", hanging: str | None = None) -> str:
    """A paragraph in lines that fit, and that are no longer than is pleasant to read.

    Args:
        text: The paragraph.
        width: Columns of the terminal; None for no limit.
        indent: Before the first line.
        hanging: Before the others; as `indent` if not given.
    """
    arguments.columns(width)
    return textwrap.fill(
        text,
        min(PROSE if width is None else width, PROSE),
        initial_indent=indent,
        subsequent_indent=indent if hanging is None else hanging,
        break_on_hyphens=False,
    )


def pivot_rows(grid: Pivot) -> list[dict[str, str]]:
    """The table as records, for notebooks and LaTeX: the heads of a column become one, with commas."""
    heads = [grid.corner, *(", ".join(head) or "measured" for head in grid.heads)]
    body = (line for label, rows in grid.lines for line in _text_lines(grid, label, rows))
    return [dict(zip(heads, line, strict=True)) for line in body]


def _text_lines(grid: Pivot, label: str, rows: Sequence[Row | None]) -> list[list[str]]:
    if not grid.published:
        merged = [MISSING if r is None else measured(grid, r) + interval(r, grid.digits) for r in rows]
        return [[label, *merged]]
    published = [MISSING if r is None else published_text(r, grid.digits) for r in rows]
    found = [MISSING if r is None else measured(grid, r) for r in rows]
    lines = [[f"{label}, published", *published], ["  measured", *found]]
    if grid.interval:
        lines.append(["  95 %", *("" if r is None else interval(r, grid.digits) for r in rows)])
    if grid.spread:
        ends = [("", "") if r is None else spread_text(r, grid.digits) for r in rows]
        lines.append(["  lowest", *(low for low, _ in ends)])
        lines.append(["  highest", *(high for _, high in ends)])
    return lines
