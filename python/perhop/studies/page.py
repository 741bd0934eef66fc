"""The page of `perhop reproduce`: one HTML file that opens offline."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from perhop.plurals import counted
from perhop.show.drawers import Drawers, Picturing
from perhop.show.page import HtmlNetwork, HtmlPlot, Section, html_network, html_plot, html_table, render
from perhop.show.table import pivot
from perhop.show.topology import distinct
from perhop.statistics.judging import STATES
from perhop.statistics.multiplicity import family
from perhop.studies.reproduction import PaperOutcome, StudyOutcome, by_paper
from perhop.studies.sentences import sentences


@dataclass(frozen=True, slots=True)
class StudyDrawn:
    """A study's outcome and its pictures, which may not be drawn yet."""

    outcome: StudyOutcome
    plots: Sequence[Picturing[HtmlPlot]]
    networks: Sequence[Picturing[HtmlNetwork]]

    @property
    def over(self) -> bool:
        """Whether all pictures are drawn."""
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
    """Return a sentence on the verdicts of the claims."""
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
