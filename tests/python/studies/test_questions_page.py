"""The pages of groups of questions: every prediction with its verdict, and those in docs are current."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.papers.questions import findings, questions_page

from perhop.show.declared import Factor, Row
from perhop.statistics.judging import Judgement
from perhop.studies import QUESTIONS, Questions
from perhop.studies.reproduction import Cell, StudyOutcome
from perhop.studies.study import ClaimVerdict, Study

DOCS = Path(__file__).parents[3] / "docs"
each_group = pytest.mark.parametrize("group", QUESTIONS, ids=lambda group: group.id)


def refuted(study: Study) -> StudyOutcome:
    """No prediction holds, by a text with a sign that Markdown tables use; each plot has two numbers."""
    verdicts = [ClaimVerdict(claim, Judgement(holds=False, evidence="1 | 2")) for claim in study.claims]
    more: dict[str, Factor] = {"profile_mbps": 2.0, "service": "green", "customer": "gold", "size": "short"}
    rows = [
        Row({**cell, **more, "side": side}, plot.metric, "", None, 1.0, None, 1)
        for plot in study.plots
        for cell in study.cells
        for side in ("low", "bulk")
    ]
    return StudyOutcome(study, [Cell({}, "{}")], [1, 2], [], rows, verdicts)


@each_group
def test_the_page_has_every_prediction_and_every_plot(group: Questions) -> None:
    pages = questions_page(group, [refuted(study) for study in group.studies], f"perhop reproduce {group.id}")
    text = pages.texts[f"{group.id}.md"]
    assert text.startswith(f"# {findings(group).title}\n")
    assert f"`perhop reproduce {group.id}` gives the same numbers" in text
    for study in group.studies:
        count = len(study.claims)
        assert f"](#{study.id}) | {count} | 0 | {count} | 0 |" in text
        for claim in study.claims:
            assert f"| does not hold | {claim.text} | {claim.why} | 1 \\| 2 |" in text
            assert text.count(f"| does not hold | {claim.text} |") == 2
        for plot in study.plots:
            assert f"](images/{study.id}-{plot.id}.png)" in text
            assert pages.pictures[f"images/{study.id}-{plot.id}.png"].startswith(b"\x89PNG")


@each_group
def test_the_page_in_the_documentation_is_of_the_predictions(group: Questions) -> None:
    """`make today` and `make workloads` write them anew; the numbers are of the run at that time."""
    text = (DOCS / f"{group.id}.md").read_text(encoding="utf-8")
    said = findings(group)
    for sentence in said.found:
        assert f"- {sentence}\n" in text
    for study in group.studies:
        ids = {claim.id for claim in study.claims}
        why = said.studies[study.id].why
        assert why.keys() <= ids
        for sentence in said.studies[study.id].summary:
            assert f"- {sentence}\n" in text
        for claim in study.claims:
            (line,) = [one for one in text.splitlines() if f"| {claim.text} | {claim.why} |" in one]
            if line.startswith("| holds |"):
                assert claim.id not in why, claim.id
            else:
                assert f"| {claim.text} | {why[claim.id]} |" in text, claim.id
        for plot in study.plots:
            assert (DOCS / "images" / f"{study.id}-{plot.id}.png").exists()
