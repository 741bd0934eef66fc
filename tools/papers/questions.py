"""The page of a group of questions in Markdown: what was found, plots, and every prediction in one line."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

from tools.papers.templates import Figure, Pages, figures, images, render

from perhop.studies.paper import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perhop.studies import Questions
    from perhop.studies.reproduction import StudyOutcome
    from perhop.studies.study import ClaimVerdict


@dataclass(frozen=True, slots=True)
class Found:
    """The findings on a study's results, written after the runs.

    Attributes:
        summary: What was found.
        why: Why a prediction did not hold, or was left open, by its id.
    """

    summary: Sequence[str]
    why: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Part:
    """One study on the page."""

    outcome: StudyOutcome
    found: Found
    figures: Sequence[Figure]

    def count(self, holds: bool | None) -> int:
        """Count its predictions in this state."""
        return sum(verdict.holds is holds for verdict in self.outcome.claims)

    @property
    def missed(self) -> Sequence[ClaimVerdict]:
        """The predictions that did not hold, or that the runs leave open."""
        return [verdict for verdict in self.outcome.claims if not verdict.holds]

    def learned(self, verdict: ClaimVerdict) -> str:
        """Why a prediction did not hold, or was left open."""
        return self.found.why.get(verdict.claim.id, "")


@dataclass(frozen=True, slots=True)
class Findings:
    """The findings on a group, written after the runs, and the questions of its page.

    Attributes:
        title: The page's.
        question: The page's first sentence.
        found: What was found in all studies together.
        studies: What was found in each, by its id.
    """

    title: str
    question: str
    found: Sequence[str]
    studies: Mapping[str, Found]


def findings(group: Questions) -> Findings:
    """Return the findings in `found.toml` beside a group's studies, written after the runs."""
    text = files(f"perhop.studies.{group.id}").joinpath("found.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text)
    studies = {
        name: Found(
            [one_line(line) for line in entry["summary"]],
            {claim: one_line(line) for claim, line in entry.get("why", {}).items()},
        )
        for name, entry in data["studies"].items()
    }
    # The question keeps its lines, as it is a paragraph of its own.
    return Findings(data["title"], data["question"], [one_line(line) for line in data["found"]], studies)


def questions_page(group: Questions, outcomes: Sequence[StudyOutcome], command: str) -> Pages:
    """The page (such as `today.md`) and its pictures.

    Args:
        group: Which questions.
        outcomes: All studies of the group, of a full run.
        command: What to type to get the same numbers again.
    """
    said = findings(group)
    parts = [Part(outcome, said.studies[outcome.study.id], list(figures(outcome))) for outcome in outcomes]
    text = render("questions.md.j2", group=group, said=said, parts=parts, command=command)
    drawn = [figure for part in parts for figure in part.figures]
    return Pages({f"{group.id}.md": text}, images(drawn))
