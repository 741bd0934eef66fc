"""A page about each paper in Markdown: figures, published beside measured, and every claim in one line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tools.papers.templates import Figure, Pages, figures, images, render

from perhop.show.table import interval, measured, pivot, published_text
from perhop.statistics.judging import STATES
from perhop.studies.assumptions import hangs
from perhop.studies.reproduction import by_paper
from perhop.studies.sentences import sentences

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perhop.show.declared import Row
    from perhop.show.table import Pivot
    from perhop.studies.reproduction import Distance, PaperOutcome, StudyOutcome
    from perhop.studies.sentences import Judged


@dataclass(frozen=True, slots=True)
class Grid:
    """A table of a page, as text."""

    title: str
    head: Sequence[str]
    lines: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Part:
    """One study on a page."""

    outcome: StudyOutcome
    figures: Sequence[Figure]
    grids: Sequence[Grid]


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of a paper's sentences that can be tested and that are judged, and of their claims."""

    testable: int
    judged: int
    claims: int


def count_sentences(listed: Sequence[Judged]) -> Counts:
    """The counts of a paper's sentences; claims may share one."""
    judged = [one for one in listed if one.claim]
    return Counts(len({one.quote for one in listed}), len({one.quote for one in judged}), len(judged))


def paper_pages(outcomes: Sequence[StudyOutcome], command: str) -> Pages:
    """One page for each paper that these outcomes belong to, and an index of them (`README.md`).

    Args:
        outcomes: The studies of a full run.
        command: What to type to get the same numbers again.
    """
    groups = [group for group in by_paper(outcomes) if group.paper]
    texts: dict[str, str] = {}
    drawn: dict[str, bytes] = {}
    for group in groups:
        parts = []
        for outcome in group.outcomes:
            own = list(figures(outcome))
            drawn |= images(own)
            grids = [pivot(table, outcome.rows) for table in outcome.study.tables]
            parts.append(Part(outcome, own, [_grid(grid) for grid in grids if grid is not None]))
        assert group.paper is not None
        listed = sentences(group)
        texts[f"{group.paper.id}.md"] = render(
            "paper.md.j2",
            group=group,
            parts=parts,
            hangs=[] if group.map is None else hangs(group.map.study, group.map.rows),
            sentences=listed,
            counts=count_sentences(listed),
            command=command,
        )
    texts["README.md"] = render(
        "papers.md.j2", groups=groups, printed=printed, totals=totals(groups), command=command
    )
    return Pages(texts, drawn)


def printed(group: PaperOutcome) -> Sequence[tuple[StudyOutcome, Distance]]:
    """Return the distance of each printed table from the measured one; a table of two items counts once."""
    found: dict[str, tuple[StudyOutcome, Distance]] = {}
    for outcome in group.outcomes:
        if not outcome.study.extra:
            for distance in outcome.distances:
                found.setdefault(distance.text, (outcome, distance))
    return list(found.values())


def totals(groups: Sequence[PaperOutcome]) -> str:
    """Return a sentence on the verdicts of all these papers' claims."""
    counts = {holds: sum(group.count(holds) for group in groups) for holds in STATES}
    left = sum(group.not_counted for group in groups)
    return (
        f"Of {sum(counts.values())} claims of the papers that are judged, {counts[True]} hold, "
        f"{counts[False]} do not, and {counts[None]} are undecided; "
        f"{left} more follow from how a setting was chosen and are not counted."
    )


def _grid(grid: Pivot) -> Grid:
    head = [grid.corner, *(", ".join(part for part in names if part) for names in grid.heads)]
    lines = [[label, *(_cell(grid, row) for row in rows)] for label, rows in grid.lines]
    return Grid(grid.title, head, lines)


def _cell(grid: Pivot, row: Row | None) -> str:
    """Published above measured, as far as there are both."""
    if row is None:
        return "–"
    found = " ".join(part for part in (measured(grid, row), interval(row, grid.digits)) if part)
    return found if row.published is None else f"{published_text(row, grid.digits)}<br>**{found}**"
