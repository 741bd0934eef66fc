"""The pages about the papers: everything is on them, and those in docs/papers are of today's claims."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tools.papers.paper import paper_pages

from perhop.show.declared import Row
from perhop.statistics.judging import Judgement
from perhop.studies import PAPERS, STUDIES, PaperStudies
from perhop.studies.reproduction import Cell, StudyOutcome
from perhop.studies.study import ClaimVerdict

PAGES = Path(__file__).parents[3] / "docs" / "papers"


def outcome(study_id: str) -> StudyOutcome:
    """All claims hold, by a text with a sign that Markdown tables use; the first table has one number."""
    study = STUDIES[study_id]
    verdicts = [ClaimVerdict(claim, Judgement(holds=True, evidence="1 | 2")) for claim in study.claims]
    rows = [
        Row({**p.factors}, p.metric, "Mbit/s", p.value, p.value + 1, (p.value, p.value + 2), 6)
        for p in study.published
    ]
    return StudyOutcome(study, [Cell({}, "{}")], [1, 2], [], rows, verdicts)


def test_a_page_shows_published_beside_measured_and_each_claim_in_one_line() -> None:
    pages = paper_pages([outcome("kim-table1")], "perhop reproduce --all")
    text = pages.texts["kim.md"]
    assert text.startswith("# Kim, Park and Bahk\n")
    assert "| 1.765<br>**2.765 ±1.000** | 1.009<br>**2.009 ±1.000** |" in text
    for claim in STUDIES["kim-table1"].claims:
        quoted = f"<br>“{claim.source.quote}” ({claim.source.section})" if claim.source else ""
        rule = claim.rules + (f"<br>*{claim.ours}*" if claim.ours else "")
        assert text.count(f"| holds | {claim.text}{quoted} | {rule} | 1 \\| 2 |") == 1
    assert "](images/kim-table1-who-gets-what.png)" in text
    assert pages.pictures["images/kim-table1-who-gets-what.png"].startswith(b"\x89PNG")
    assert "[Kim, Park and Bahk](kim.md)" in pages.texts["README.md"]
    assert text == paper_pages([outcome("kim-table1")], "perhop reproduce --all").texts["kim.md"]


def test_a_page_lists_sentences_of_studies_that_did_not_run() -> None:
    text = paper_pages([outcome("kim-table1")], "perhop reproduce").texts["kim.md"]
    others = [claim for claim in STUDIES["kim-fig2"].claims if claim.source]
    assert others
    for claim in others:
        assert claim.source is not None
        assert f"| “{claim.source.quote}” | {claim.source.section} | not run |" in text


@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: paper.id)
def test_the_pages_in_the_documentation_are_of_todays_claims(paper: PaperStudies) -> None:
    """`make papers` writes them anew; the numbers are of the run at that time."""
    text = (PAGES / f"{paper.id}.md").read_text(encoding="utf-8")
    assert paper.about.proposes in text
    assert paper.about.decides in text
    for known in paper.about.know:
        assert f"- {known}\n" in text
    for study in paper.studies:
        for claim in study.claims:
            assert f"| {claim.text.replace('|', chr(92) + '|')}" in text
            assert claim.source is None or f"| “{claim.source.quote}” | {claim.source.section} |" in text
        for plot in study.plots:
            assert (PAGES / "images" / f"{study.id}-{plot.id}.png").exists()


@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: paper.id)
def test_every_claim_says_how_it_is_judged(paper: PaperStudies) -> None:
    assert paper.about.decides
    assert 3 <= len(paper.about.know) <= 5
    for study in paper.studies:
        for claim in study.claims:
            assert claim.rules, (study.id, claim.id)
    quotes = [claim.source.quote for study in paper.studies for claim in study.claims if claim.source]
    assert quotes
    for entry in paper.about.unjudged:
        assert entry.why
        assert entry.sentence.quote not in quotes


def test_the_readme_says_what_came_of_the_claims() -> None:
    totals = re.compile(r"^Of \d+ claims of the papers .* not counted\.$", re.MULTILINE)
    (said,) = totals.findall((PAGES / "README.md").read_text(encoding="utf-8"))
    assert said in (PAGES.parents[1] / "README.md").read_text(encoding="utf-8")
