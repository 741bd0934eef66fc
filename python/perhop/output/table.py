"""Tables: one model, laid out as plain text for terminals and pipes, and as cells for the report page."""

from __future__ import annotations

import itertools
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perhop.study import chosen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perhop.study import Row, Table

DERIVED = "†"
LOWER, HIGHER = "↓", "↑"
"""A published value that is lower or higher than every single run."""
MISSING = "–"


@dataclass(frozen=True, slots=True)
class Pivot:
    """Result rows laid out as a grid.

    Attributes:
        heads: Names of each column, outermost first.
        lines: (label, one result row for each column, or None where nothing was measured).
        published: Some entry has a published value.
        interval: Some entry has an interval.
        spread: Some entry with a published value has the spread of its single runs.
    """

    title: str
    corner: str
    heads: Sequence[tuple[str, ...]]
    lines: Sequence[tuple[str, Sequence[Row | None]]]
    digits: int
    published: bool
    interval: bool
    spread: bool = False

    @property
    def names(self) -> list[str]:
        """What the lines of an entry say."""
        return [
            *(["published"] if self.published else []),
            "measured",
            *(["95 %"] if self.interval else []),
            *(["lowest", "highest"] if self.spread else []),
        ]


def pivot(table: Table, rows: Sequence[Row]) -> Pivot | None:
    """Lay a study's rows out as the table says, or None if none of them belong in it."""
    found = [row for metric in table.metrics for row in chosen(rows, metric, table.where)]
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
        table.title,
        table.rows.label,
        heads,
        [(table.rows.text(value), [place.get((value, *key)) for key in keys]) for value in down],
        table.digits,
        published=any(row.published is not None for row in found),
        interval=any(row.ci95 is not None for row in found),
        spread=any(row.within is not None for row in found),
    )


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


def half_width(row: Row, digits: int) -> str:
    """The interval's half width as ±.024, or nothing."""
    if row.ci95 is None:
        return ""
    return "±" + f"{(row.ci95[1] - row.ci95[0]) / 2:.{digits}f}".removeprefix("0")


def published_text(row: Row, digits: int) -> str:
    """The published value, marked where it is arithmetic on printed ones, and where it is beyond all runs."""
    beyond = ""
    if row.published is not None and row.spread is not None and not row.within:
        beyond = LOWER if row.published < row.spread[0] else HIGHER
    return number(row.published, digits) + beyond + (DERIVED if row.derived else "")


def spread_text(row: Row, digits: int) -> tuple[str, str]:
    """The lowest and the highest single run, or nothing."""
    return ("", "") if row.spread is None else (f"{row.spread[0]:.{digits}f}", f"{row.spread[1]:.{digits}f}")


def as_text(grid: Pivot) -> str:
    """The table as plain text: published above measured, or mean±half width where nothing is published."""
    body = [line for label, rows in grid.lines for line in _text_lines(grid, label, rows)]
    depth = len(grid.heads[0])
    inner = [["", *(head[-1] for head in grid.heads)]] if depth else []
    lines = align([*inner, *body], rule=len(inner))
    widths = [max(len(line[column]) for line in [*inner, *body]) for column in range(len(body[0]))]
    outer = []
    for level in range(depth - 1):
        cells, column = [" " * widths[0]], 1
        for name, count in spans(grid.heads, level):
            cells.append(name.center(sum(widths[column : column + count]) + 2 * (count - 1)))
            column += count
        outer.append("  ".join(cells).rstrip())
    return "\n".join([*textwrap.wrap(grid.title, 88), *outer, *lines])


def align(lines: Sequence[Sequence[str]], *, rule: int = 0) -> list[str]:
    """Pad cells to columns: the first left, the others right; with a rule below the first `rule` lines."""
    widths = [max(len(cell) for cell in column) for column in zip(*lines, strict=True)]
    out = [
        "  ".join(
            [line[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True))]
        ).rstrip()
        for line in lines
    ]
    if rule:
        out.insert(rule, "─" * (sum(widths) + 2 * (len(widths) - 1)))
    return out


def records(lines: Sequence[Mapping[str, str]]) -> list[str]:
    """A list of records as text, one column for each key of the first record."""
    head = list(lines[0])
    return align([head, *([line[name] for name in head] for line in lines)], rule=1)


def _text_lines(grid: Pivot, label: str, rows: Sequence[Row | None]) -> list[list[str]]:
    if not grid.published:
        merged = [
            MISSING if r is None else number(r.mean, grid.digits) + half_width(r, grid.digits) for r in rows
        ]
        return [[label, *merged]]
    published = [MISSING if r is None else published_text(r, grid.digits) for r in rows]
    measured = [MISSING if r is None else number(r.mean, grid.digits) for r in rows]
    lines = [[f"{label}, published", *published], ["  measured", *measured]]
    if grid.interval:
        lines.append(["  95 %", *("" if r is None else half_width(r, grid.digits) for r in rows)])
    if grid.spread:
        ends = [("", "") if r is None else spread_text(r, grid.digits) for r in rows]
        lines.append(["  lowest", *(low for low, _ in ends)])
        lines.append(["  highest", *(high for _, high in ends)])
    return lines
