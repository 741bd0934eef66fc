"""Write the pages about the papers, or the page of a group of questions, from a full run.

    python -m tools.papers papers RESULTS       docs/papers and the README's sentence
    python -m tools.papers today RESULTS        docs/today.md; `workloads` likewise

RESULTS is the folder of `perhop reproduce`, whose finished runs are used; missing ones are simulated.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

from tools.papers.paper import paper_pages, totals
from tools.papers.questions import questions_page

from perhop.runs.parallel import available_cores
from perhop.stores.outcomes import DirectoryStore
from perhop.studies import PAPERS, QUESTIONS
from perhop.studies.reproduction import Counts, by_paper, execute, plan

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tools.papers.templates import Pages

    from perhop.studies import Questions
    from perhop.studies.reproduction import StudyOutcome

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
TOTALS = re.compile(r"(?<=<!-- totals -->\n).*(?=\n)")
"""The line of the README that says what came of the claims."""
GROUPS = {group.id: group for group in QUESTIONS}


def main() -> None:
    """Run what is missing, and write the pages and their pictures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pages", choices=["papers", *GROUPS])
    parser.add_argument("results", type=Path)
    given = parser.parse_args()
    studies = [study for paper in PAPERS for study in paper.studies]
    counts = Counts()
    outcomes = execute(
        plan(studies if given.pages == "papers" else GROUPS[given.pages].studies, runs=None, seed=1),
        jobs=available_cores(),
        store=DirectoryStore(given.results / "runs", print),
        counts=counts,
    )
    if given.pages == "papers":
        _write_papers(outcomes)
    else:
        _write_group(GROUPS[given.pages], outcomes)
    print(f"{counts.simulated} runs simulated, {counts.found} found")


def _write_papers(outcomes: Sequence[StudyOutcome]) -> None:
    place = DOCS / "papers"
    pages = paper_pages(outcomes, "perhop reproduce --all")
    _write(place, pages, old=(*place.glob("*.md"), *place.glob("images/*.png")))
    text = README.read_text(encoding="utf-8")
    README.write_text(TOTALS.sub(totals(by_paper(outcomes)), text), encoding="utf-8")


def _write_group(group: Questions, outcomes: Sequence[StudyOutcome]) -> None:
    command = f"perhop reproduce {group.id} --out results/{group.id}"
    _write(DOCS, questions_page(group, outcomes, command), old=DOCS.glob(f"images/{group.id}-*.png"))


def _write(place: Path, pages: Pages, old: Iterable[Path]) -> None:
    """Write pages and their pictures instead of what an earlier run left."""
    (place / "images").mkdir(parents=True, exist_ok=True)
    for file in old:
        file.unlink()
    for name, text in pages.texts.items():
        (place / name).write_text(text, encoding="utf-8")
        print(place / name)
    for name, content in pages.pictures.items():
        (place / name).write_bytes(content)


if __name__ == "__main__":
    main()
