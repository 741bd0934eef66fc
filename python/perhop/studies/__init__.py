"""The papers' tables and figures, one package for each paper, and questions of our own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from perhop.errors import PerhopError
from perhop.studies import bouras, hurley, kim, others, today, workloads, yeom
from perhop.studies.paper import About, Paper
from perhop.studies.study import Study


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
        id: What names all of them on the command line, their package and their page in docs.
        title: What reports call them.
        about: What they are about, as the end of a sentence.
    """

    id: str
    title: str
    about: str
    studies: Sequence[Study]


TODAY = Questions("today", "Today's mechanisms", "today's mechanisms", today.STUDIES)
"""The papers' mechanisms beside those of today."""
WORKLOADS = Questions(
    "workloads", "Users and short transfers", "users of web, video and calls", workloads.STUDIES
)
"""The papers' mechanisms under users, in place of greedy flows."""
QUESTIONS = (TODAY, WORKLOADS)
"""The questions that belong to no paper, in the order of reports."""
GROUPS: Sequence[PaperStudies | Questions] = (*PAPERS, *QUESTIONS)
"""All groups of studies that have a name."""


def group_of(study_id: str) -> PaperStudies | Questions | None:
    """Return the paper, or the group of questions, that a study belongs to; None for a study of neither."""
    return next((group for group in GROUPS if any(one.id == study_id for one in group.studies)), None)


def in_order(studies: Iterable[Study]) -> list[Study]:
    """The order in which to run studies: each paper's headline item, other printed items, then the rest."""
    headlines = {paper.studies[0].id for paper in PAPERS}
    return sorted(studies, key=lambda study: (study.extra, study.id not in headlines))


STUDIES = {study.id: study for group in GROUPS for study in group.studies}
for _study in others.STUDIES:
    if _study.id in STUDIES:
        raise PerhopError(
            f"studies/others: {_study.id!r} is the id of another study; give yours one of its own"
        )
    STUDIES[_study.id] = _study
"""Every study by its id, paper by paper, then those of each group of questions, then those of neither."""

__all__ = [
    "GROUPS",
    "PAPERS",
    "QUESTIONS",
    "STUDIES",
    "TODAY",
    "WORKLOADS",
    "PaperStudies",
    "Questions",
    "group_of",
    "in_order",
]
