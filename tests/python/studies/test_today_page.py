"""The page about today's mechanisms: every prediction with its verdict, and the one in docs is of today's."""

from __future__ import annotations

from pathlib import Path

from perhop.judging import Judgement
from perhop.output.today_page import findings, today_page
from perhop.reproduction import Cell, StudyOutcome
from perhop.studies import TODAY
from perhop.study import Factor, Row, Study, Verdict

DOCS = Path(__file__).parents[3] / "docs"


def refuted(study: Study) -> StudyOutcome:
    """No prediction holds, by a text with a sign that Markdown tables use; each plot has two numbers."""
    verdicts = [Verdict(claim, Judgement(holds=False, evidence="1 | 2")) for claim in study.claims]
    more: dict[str, Factor] = {"profile_mbps": 2.0, "service": "green"}
    rows = [
        Row({**cell, **more, "side": side}, plot.metric, "", None, 1.0, None, 1)
        for plot in study.plots
        for cell in study.cells
        for side in ("low", "bulk")
    ]
    return StudyOutcome(study, [Cell({}, "{}")], [1, 2], [], rows, verdicts)


def test_the_page_has_every_prediction_and_every_plot() -> None:
    pages = today_page([refuted(study) for study in TODAY.studies], "perhop reproduce today")
    text = pages.texts["today.md"]
    assert text.startswith("# Today's mechanisms beside the papers'\n")
    assert "](#today-map) | 12 | 0 | 12 | 0 |" in text
    for study in TODAY.studies:
        for claim in study.claims:
            assert f"| does not hold | {claim.text} | {claim.why} | 1 \\| 2 |" in text
            assert text.count(f"| does not hold | {claim.text} |") == 2
        for plot in study.plots:
            assert f"](images/{study.id}-{plot.id}.png)" in text
            assert pages.pictures[f"images/{study.id}-{plot.id}.png"].startswith(b"\x89PNG")


def test_the_page_in_the_documentation_is_of_todays_predictions() -> None:
    """`make today` writes it anew; the numbers are of the run at that time."""
    text = (DOCS / "today.md").read_text(encoding="utf-8")
    found, studies = findings()
    for sentence in found:
        assert f"- {sentence}\n" in text
    for study in TODAY.studies:
        ids = {claim.id for claim in study.claims}
        assert studies[study.id].why.keys() <= ids
        for sentence in studies[study.id].summary:
            assert f"- {sentence}\n" in text
        for claim in study.claims:
            (line,) = [one for one in text.splitlines() if f"| {claim.text} | {claim.why} |" in one]
            if line.startswith("| holds |"):
                assert claim.id not in studies[study.id].why, claim.id
            else:
                assert f"| {claim.text} | {studies[study.id].why[claim.id]} |" in text, claim.id
        for plot in study.plots:
            assert (DOCS / "images" / f"{study.id}-{plot.id}.png").exists()
