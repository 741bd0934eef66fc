"""The papers' tables and figures, one package for each paper, and questions about today's mechanisms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from perhop.studies import bouras, hurley, kim, today, yeom
from perhop.studies.paper import Paper

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from perhop.studies.paper import About
    from perhop.study import Study


@dataclass(frozen=True, slots=True)
class PaperStudies:
    """A paper with its studies, its headline item first."""

    id: str
    about: About
    studies: Sequence[Study]


PAPERS = tuple(
    PaperStudies(package.__name__.rpartition(".")[2], Paper(package.__name__).about(), package.STUDIES)
    for package in (kim, yeom, hurley, bouras)
)
"""The papers in the order in which reports show them."""


@dataclass(frozen=True, slots=True)
class Questions:
    """Studies that belong to no paper; their claims are predictions.

    Attributes:
        id: What names all of them on the command line.
    """

    id: str
    title: str
    studies: Sequence[Study]


TODAY = Questions("today", "Today's mechanisms", today.STUDIES)
"""What the papers' mechanisms are worth beside those of today."""


def of_paper(study_id: str) -> PaperStudies | None:
    """The paper that a study belongs to, or None for one that belongs to none."""
    return next((paper for paper in PAPERS if any(study.id == study_id for study in paper.studies)), None)


def in_order(studies: Iterable[Study]) -> list[Study]:
    """The order in which to run studies: each paper's headline item, other printed items, then the rest."""
    headlines = {paper.studies[0].id for paper in PAPERS}
    return sorted(studies, key=lambda study: (study.extra, study.id not in headlines))


STUDIES = {
    study.id: study for studies in (*(paper.studies for paper in PAPERS), TODAY.studies) for study in studies
}
"""Every study by its id, paper by paper, then those of today's mechanisms."""

__all__ = ["PAPERS", "STUDIES", "TODAY", "PaperStudies", "Questions", "in_order", "of_paper"]
