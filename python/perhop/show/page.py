"""The report page: one HTML file that opens offline, on a desk or on a phone."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import jinja2
from markupsafe import Markup

from perhop import _engine
from perhop.show.declared import Plot, Row
from perhop.show.plot import caption, drawing
from perhop.show.sheet import SERIES, Drawing, Picture
from perhop.show.table import Pivot, interval, measured, published_text, spans, spread_text
from perhop.show.text import inline_markdown, markdown, printable
from perhop.show.topology import draw_network

if TYPE_CHECKING:
    from perhop.show.report import Report


@dataclass(frozen=True, slots=True)
class Section:
    """One part of a page: text, tables, panels and pictures of the networks, ready to be placed.

    Attributes:
        heads: For each table, the lines of its head as (name, columns under it).
    """

    id: str
    title: str
    lead: str
    tables: Sequence[HtmlTable]
    plots: Sequence[HtmlPlot]
    networks: Sequence[HtmlNetwork]


@dataclass(frozen=True, slots=True)
class HtmlTable:
    """A table as strings; a cell holds its lines."""

    title: str
    corner: str
    heads: Sequence[Sequence[tuple[str, int]]]
    lines: Sequence[tuple[str, Sequence[Sequence[str]]]]
    names: Sequence[str]


@dataclass(frozen=True, slots=True)
class HtmlPlot:
    """A plot as SVG elements.

    Attributes:
        narrow: Panels for a phone, where the others are too wide for one.
        columns: How many panels stand side by side.
        picture: The same for a file.
    """

    kind: ClassVar = "plot"
    title: str
    caption: str
    panels: Sequence[Markup]
    narrow: Sequence[Markup]
    columns: int
    picture: Picture


@dataclass(frozen=True, slots=True)
class HtmlNetwork:
    """The picture of a network, for a page, below its title if it has one, and for a file."""

    kind: ClassVar = "network"
    svg: Markup
    picture: Picture
    title: str = ""


def html_table(grid: Pivot) -> HtmlTable:
    """Strings of a grid: published above measured above half width, as far as there are any."""
    digits = grid.digits
    lines = []
    for label, rows in grid.lines:
        cells = []
        for row in rows:
            if row is None:
                cells.append(["–"])
                continue
            published = [published_text(row, digits)] if grid.published else []
            ends = [interval(row, digits)] if grid.interval else []
            spread = spread_text(row, digits) if grid.spread else ()
            cells.append([*published, measured(grid, row), *ends, *spread])
        lines.append((label, cells))
    depth = len(grid.heads[0])
    return HtmlTable(
        grid.title, grid.corner, [spans(grid.heads, level) for level in range(depth)], lines, grid.names
    )


def html_network(scenario: Mapping[str, Any], name: str) -> HtmlNetwork:
    """The picture of a scenario's network."""
    svg, picture = draw_network(scenario, name)
    return HtmlNetwork(Markup(svg), picture)  # noqa: S704 - the drawing library escapes names


def html_plot(plot: Plot, rows: Sequence[Row], name: str) -> HtmlPlot:
    """A declared plot, ready to be placed on a page and written to a file."""
    return html_drawing(drawing(plot, rows, name), plot.title, caption(plot, rows))


def html_drawing(drawn: Drawing, title: str, text: str) -> HtmlPlot:
    """A picture with its title and how to read it, ready to be placed on a page and written to a file."""
    # The SVG is ours: numbers, and labels that the drawing library escapes.
    panels, narrow = ([Markup(svg) for svg in svgs] for svgs in (drawn.panels, drawn.narrow))  # noqa: S704
    return HtmlPlot(title, text, panels, narrow, drawn.columns, drawn.picture)


def as_page(report: Report) -> str:
    """The page of a report."""
    return render("report.html.j2", report=report)


def render(template: str, **values: object) -> str:
    """A page from its template."""
    return environment().get_template(template).render(version=_engine.version, series=SERIES, **values)


@functools.cache
def environment() -> jinja2.Environment:
    """Return where templates are found and how they are filled in: HTML is escaped, Markdown is not.

    No text that is filled in brings controls into a page; the filters `inline` and `markdown` render
    the little Markdown that our texts use.
    """
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("perhop.show", "."),
        autoescape=jinja2.select_autoescape(["html.j2"]),
        undefined=jinja2.StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "inline": functools.lru_cache(4096, typed=True)(lambda text: inline_markdown(printable(text))),
        "markdown": markdown,
        "longest_word": lambda text: max(map(len, text.split()), default=0),
    }
    return made


def _printable(value: object) -> object:
    return printable(value) if type(value) is str else value
