"""Write docs/papers, and the README's sentence about them: `python tools/paper_pages.py RESULTS`.

RESULTS is the folder of `perhop reproduce --all`, whose finished runs are used; missing ones are simulated.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from perhop.runs.parallel import available_cores
from perhop.show.paper_page import paper_pages, totals
from perhop.stores.outcomes import DirectoryStore
from perhop.studies import PAPERS
from perhop.studies.reproduction import Counts, by_paper, execute, plan

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "docs" / "papers"
README = ROOT / "README.md"
TOTALS = re.compile(r"(?<=<!-- totals -->\n).*(?=\n)")
"""The line of the README that says what came of the claims."""
COMMAND = "perhop reproduce --all"


def main() -> None:
    """Write the pages and their pictures, and remove what an earlier run left."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    results = parser.parse_args().results
    counts = Counts()
    outcomes = execute(
        plan([study for paper in PAPERS for study in paper.studies], runs=None, seed=1),
        jobs=available_cores(),
        store=DirectoryStore(results / "runs", print),
        counts=counts,
    )
    pages = paper_pages(outcomes, COMMAND)
    (PAGES / "images").mkdir(parents=True, exist_ok=True)
    for old in (*PAGES.glob("*.md"), *PAGES.glob("images/*.png")):
        old.unlink()
    for name, text in pages.texts.items():
        (PAGES / name).write_text(text, encoding="utf-8")
    for name, content in pages.pictures.items():
        (PAGES / name).write_bytes(content)
    text = README.read_text(encoding="utf-8")
    README.write_text(TOTALS.sub(totals(by_paper(outcomes)), text), encoding="utf-8")
    print(f"{len(pages.texts)} pages in {PAGES}; {counts.simulated} runs simulated, {counts.found} found")


if __name__ == "__main__":
    main()
