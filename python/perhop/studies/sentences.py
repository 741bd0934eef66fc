"""Every testable sentence of a paper: judged by which claim, and how, or why it cannot be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perhop.studies.reproduction import PaperOutcome

NOT_RUN = "not run"


@dataclass(frozen=True, slots=True)
class Judged:
    """One sentence of a paper and what became of it.

    Attributes:
        verdict: A state, "not run", or "not judged".
        how: How the claim that judges it does so, or why nothing does.
        claim: The claim's name; empty where nothing judges it.
        command: What repeats the runs that it is judged by.
    """

    quote: str
    section: str
    verdict: str
    how: str
    claim: str = ""
    command: str = ""


def sentences(group: PaperOutcome) -> Sequence[Judged]:
    """Every testable sentence of a paper, in the order of its studies; those that no claim judges come last.

    Args:
        group: The paper's outcomes; claims of its other studies count as not run.
    """
    if group.paper is None:
        return []
    verdicts = {
        (outcome.study.id, verdict.claim.id): verdict.state
        + ("" if verdict.claim.counted else "; not counted")
        for outcome in group.outcomes
        for verdict in outcome.claims
    }
    judged = [
        Judged(
            claim.source.quote,
            claim.source.section,
            verdicts.get((study.id, claim.id), NOT_RUN),
            claim.rules or claim.text,
            f"{study.id}, {claim.id}",
            f"perhop reproduce {study.id}",
        )
        for study in group.paper.studies
        for claim in study.claims
        if claim.source is not None
    ]
    rest = [
        Judged(entry.sentence.quote, entry.sentence.section, "not judged", entry.why)
        for entry in group.paper.about.unjudged
    ]
    return [*judged, *rest]
