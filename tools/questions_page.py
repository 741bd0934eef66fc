"""Write the page of a group of questions from a full run: `python tools/questions_page.py GROUP RESULTS`.

GROUP is `today` or `workloads`, and its page docs/GROUP.md. RESULTS is the folder of
`perhop reproduce GROUP`, whose finished runs are used; missing ones are simulated.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from perhop.runs.parallel import available_cores
from perhop.show.questions_page import questions_page
from perhop.stores.outcomes import DirectoryStore
from perhop.studies import QUESTIONS
from perhop.studies.reproduction import Counts, execute, plan

PLACE = Path(__file__).parent.parent / "docs"
GROUPS = {group.id: group for group in QUESTIONS}


def main() -> None:
    """Write the page and its pictures, and remove the pictures of an earlier run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("group", choices=GROUPS)
    parser.add_argument("results", type=Path)
    given = parser.parse_args()
    group, results = GROUPS[given.group], given.results
    counts = Counts()
    outcomes = execute(
        plan(group.studies, runs=None, seed=1),
        jobs=available_cores(),
        store=DirectoryStore(results / "runs", print),
        counts=counts,
    )
    pages = questions_page(group, outcomes, f"perhop reproduce {group.id} --out results/{group.id}")
    (PLACE / "images").mkdir(exist_ok=True)
    for old in PLACE.glob(f"images/{group.id}-*.png"):
        old.unlink()
    for name, text in pages.texts.items():
        (PLACE / name).write_text(text, encoding="utf-8")
    for name, content in pages.pictures.items():
        (PLACE / name).write_bytes(content)
    print(f"{PLACE / group.id}.md; {counts.simulated} runs simulated, {counts.found} found")


if __name__ == "__main__":
    main()
