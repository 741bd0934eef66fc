"""The report page: one HTML file that opens offline, on a desk or on a phone."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jinja2
from markupsafe import Markup

from perhop import _engine
from perhop.judging import STATES
from perhop.output.plot import SERIES, caption, inline_panels
from perhop.output.sentences import sentences
from perhop.output.table import half_width, number, pivot, published_text, spans, spread_text
from perhop.output.topology import distinct, inline_topology
from perhop.reproduction import by_paper

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perhop.output.summary import Summary
    from perhop.output.table import Pivot
    from perhop.reproduction import Outcome
    from perhop.study import Plot, Row


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
    networks: Sequence[Markup]


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
    """A plot as SVG elements."""

    title: str
    caption: str
    panels: Sequence[Markup]


@dataclass(frozen=True, slots=True)
class StudyPart:
    """A study's outcome and its part of the page, which is drawn once."""

    outcome: Outcome
    section: Section

    @staticmethod
    def of(outcome: Outcome) -> StudyPart:
        """Draw the part of one study."""
        return StudyPart(outcome, _section(outcome))


def reproduction_page(parts: Sequence[StudyPart], command: str, pending: Sequence[str] = ()) -> str:
    """The page of `perhop reproduce`: one table for all papers, then each paper with its studies.

    Args:
        parts: The studies that are done.
        command: What to type to get the same page again.
        pending: The ids of the studies that still run.
    """
    sections = {part.outcome.study.id: part.section for part in parts}
    groups = by_paper([part.outcome for part in parts])
    return render(
        "reproduction.html.j2",
        command=command,
        pending=pending,
        states=[
            (holds, state, sum(group.count(holds) for group in groups)) for holds, state in STATES.items()
        ],
        groups=groups,
        sections=sections,
        sentences={group.paper.id: sentences(group) for group in groups if group.paper},
    )


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
            interval = [half_width(row, digits)] if grid.interval else []
            spread = spread_text(row, digits) if grid.spread else ()
            cells.append([*published, number(row.mean, digits), *interval, *spread])
        lines.append((label, cells))
    depth = len(grid.heads[0])
    return HtmlTable(
        grid.title, grid.corner, [spans(grid.heads, level) for level in range(depth)], lines, grid.names
    )


def run_page(summary: Summary, command: str) -> str:
    """The page of `perhop run`: classes, links and, where the scenario asks for probes, their course in time.

    Args:
        summary: The scenario's outcome.
        command: What to type to get the same page again.
    """
    plots = [html_plot(plot, rows, "run") for plot, rows in summary.plots]
    network = _network(summary.scenario, "run")
    return render("run.html.j2", command=command, summary=summary, plots=plots, network=network)


def _section(outcome: Outcome) -> Section:
    study = outcome.study
    grids = [pivot(table, outcome.rows) for table in study.tables]
    return Section(
        study.id,
        study.title,
        study.source,
        [html_table(grid) for grid in grids if grid is not None],
        [html_plot(plot, outcome.rows, study.id) for plot in study.plots],
        [_network(*one) for one in distinct((json.loads(c.scenario) for c in outcome.cells), study.id)],
    )


def _network(scenario: Mapping[str, Any], name: str) -> Markup:
    return Markup(inline_topology(scenario, name))  # noqa: S704 - the drawing library escapes names


def html_plot(plot: Plot, rows: Sequence[Row], name: str) -> HtmlPlot:
    """A declared plot, ready to be placed on a page."""
    # The SVG is ours: numbers, and labels that the drawing library escapes.
    panels = [Markup(svg) for svg in inline_panels(plot, rows, name)]  # noqa: S704
    return HtmlPlot(plot.title, caption(plot, rows), panels)


def render(template: str, **values: object) -> str:
    """A page from its template."""
    return environment().get_template(template).render(version=_engine.version, series=SERIES, **values)


def environment() -> jinja2.Environment:
    """Where templates are found, and how they are filled in: HTML is escaped, Markdown is not."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader("perhop.output", "."),
        autoescape=jinja2.select_autoescape(["html.j2"]),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
