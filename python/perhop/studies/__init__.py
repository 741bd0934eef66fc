"""The papers' tables and figures, one package for each paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from perhop.studies import bouras, hurley, kim, yeom
from perhop.studies.paper import Paper

if TYPE_CHECKING:
    from collections.abc import Sequence

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

STUDIES = {study.id: study for paper in PAPERS for study in paper.studies}
"""Every study by its id, paper by paper."""

__all__ = ["PAPERS", "STUDIES", "PaperStudies"]
