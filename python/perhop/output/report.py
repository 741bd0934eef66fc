"""The report page: one HTML file that opens offline, on a desk or on a phone."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import jinja2
from markupsafe import Markup

from perhop import _engine
from perhop.judging import STATES
from perhop.multiplicity import family
from perhop.output.drawers import Drawers
from perhop.output.plot import caption, drawing
from perhop.output.sentences import sentences
from perhop.output.sheet import SERIES
from perhop.output.table import interval, measured, pivot, published_text, spans, spread_text
from perhop.output.text import inline_markdown, markdown, printable
from perhop.output.topology import distinct, draw_network
from perhop.reproduction import by_paper
from perhop.wording import counted

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from perhop.output.drawers import Picturing
    from perhop.output.sheet import Picture
    from perhop.output.table import Pivot
    from perhop.reproduction import PaperOutcome, StudyOutcome
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
class HtmlRecords:
    """A table with one line for each record.

    Attributes:
        notes: What a reader should know of it, in Markdown.
        marked: Lines that stand out.
        states: The class of a cell, by its text.
    """

    title: str
    heads: Sequence[str]
    lines: Sequence[Sequence[str]]
    notes: Sequence[str] = ()
    marked: Collection[int] = ()
    states: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def of(title: str, records: Sequence[Mapping[str, str]], **more: Any) -> HtmlRecords:  # noqa: ANN401
        """From records of the same keys."""
        return HtmlRecords(title, list(records[0]), [list(one.values()) for one in records], **more)


@dataclass(frozen=True, slots=True)
class HtmlPlot:
    """A plot as SVG elements.

    Attributes:
        narrow: Panels for a phone, where the others are too wide for one.
        columns: How many panels stand side by side.
        picture: The same for a file.
    """

    title: str
    caption: str
    panels: Sequence[Markup]
    narrow: Sequence[Markup]
    columns: int
    picture: Picture


@dataclass(frozen=True, slots=True)
class HtmlNetwork:
    """The picture of a network, for a page and for a file."""

    svg: Markup
    picture: Picture


@dataclass(frozen=True, slots=True)
class StudyDrawn:
    """A study's outcome and its pictures, which may not be drawn yet."""

    outcome: StudyOutcome
    plots: Sequence[Picturing[HtmlPlot]]
    networks: Sequence[Picturing[HtmlNetwork]]

    @property
    def over(self) -> bool:
        """All of them are."""
        asked: list[Picturing[Any]] = [*self.plots, *self.networks]
        return all(one.over.is_set() for one in asked)


@dataclass(frozen=True, slots=True)
class StudyPart:
    """A study's outcome with its part of the page and its line of the contents, both filled in once."""

    outcome: StudyOutcome
    section: Section
    html: Markup
    line: Markup

    @staticmethod
    def drawn(outcome: StudyOutcome, drawers: Drawers) -> StudyDrawn:
        """Have the pictures of one study drawn."""
        study = outcome.study
        networks = distinct((json.loads(cell.scenario) for cell in outcome.cells), study.id)
        return StudyDrawn(
            outcome,
            [drawers.ask(html_plot, plot, outcome.rows, study.id) for plot in study.plots],
            [drawers.ask(html_network, *one) for one in networks],
        )

    @staticmethod
    def of(outcome: StudyOutcome) -> StudyPart:
        """Draw the part of one study."""
        with Drawers(1, 0) as drawers:
            return StudyPart.made(StudyPart.drawn(outcome, drawers), drawers)

    @staticmethod
    def made(drawn: StudyDrawn, drawers: Drawers) -> StudyPart:
        """The part of a study when its pictures are there; waits for them."""
        outcome = drawn.outcome
        section = _section(outcome, drawers.get(drawn.plots), drawers.get(drawn.networks))
        html, line = (
            Markup(render(name, outcome=outcome, section=section, states=STATES))  # noqa: S704 - a template's output
            for name in ("study.html.j2", "contents.html.j2")
        )
        return StudyPart(outcome, section, html, line)


def reproduction_page(parts: Sequence[StudyPart], command: str, pending: Sequence[str] = ()) -> str:
    """The page of `perhop reproduce`: one table for all papers, then each paper with its studies.

    Args:
        parts: The studies that are done.
        command: What to type to get the same page again.
        pending: The ids of the studies that still run.
    """
    groups = by_paper([part.outcome for part in parts])
    papers = [group for group in groups if group.paper] or groups
    states = [(holds, state, sum(group.count(holds) for group in papers)) for holds, state in STATES.items()]
    return render(
        "reproduction.html.j2",
        answers=_reproduced(papers, states),
        command=command,
        pending=pending,
        states=states,
        groups=groups,
        parts={part.outcome.study.id: part for part in parts},
        sentences={group.paper.id: sentences(group) for group in groups if group.paper},
    )


def _reproduced(groups: Sequence[PaperOutcome], states: Sequence[tuple[bool | None, str, int]]) -> list[str]:
    """What came of the claims, in a sentence."""
    of = f" of {len(groups)} papers" if len(groups) > 1 else ""
    total = sum(count for _, _, count in states)
    if not total:
        return ["No claim was judged."]
    holds, fails, open_ = (next(n for state, _, n in states if state is one) for one in (True, False, None))
    noun = "claim" if total == 1 else "claims"
    said = (
        f"Of {total} {noun}{of} that were run, **{holds} {_verb(holds, 'holds', 'hold')}**, "
        f"**{fails} {_verb(fails, 'does', 'do')} not hold**, and {open_} cannot be decided from these runs."
    )
    if left := sum(group.not_counted for group in groups):
        said += f" Not counted: {counted(left, 'claim')} that follow from how a setting was chosen."
    return [said, text] if (text := family(total, "claims")) else [said]


def _verb(count: int, one: str, many: str) -> str:
    return one if count == 1 else many


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


def _section(outcome: StudyOutcome, plots: Sequence[HtmlPlot], networks: Sequence[HtmlNetwork]) -> Section:
    study = outcome.study
    grids = [pivot(table, outcome.rows) for table in study.tables]
    return Section(
        study.id,
        study.title,
        study.source,
        [html_table(grid) for grid in grids if grid is not None],
        plots,
        networks,
    )


def html_network(scenario: Mapping[str, Any], name: str) -> HtmlNetwork:
    """The picture of a scenario's network."""
    svg, picture = draw_network(scenario, name)
    return HtmlNetwork(Markup(svg), picture)  # noqa: S704 - the drawing library escapes names


def html_plot(plot: Plot, rows: Sequence[Row], name: str) -> HtmlPlot:
    """A declared plot, ready to be placed on a page and written to a file."""
    drawn = drawing(plot, rows, name)
    # The SVG is ours: numbers, and labels that the drawing library escapes.
    panels, narrow = ([Markup(svg) for svg in svgs] for svgs in (drawn.panels, drawn.narrow))  # noqa: S704
    return HtmlPlot(plot.title, caption(plot, rows), panels, narrow, drawn.columns, drawn.picture)


def render(template: str, **values: object) -> str:
    """A page from its template."""
    return environment().get_template(template).render(version=_engine.version, series=SERIES, **values)


@functools.cache
def environment() -> jinja2.Environment:
    """Where templates are found, and how they are filled in: HTML is escaped, Markdown is not.

    No text that is filled in brings controls into a page; the filters `inline` and `markdown` render
    the little Markdown that our texts use.
    """
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("perhop.output", "."),
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
