"""Write docs/today.md from a full run: `python tools/today_page.py RESULTS`.

RESULTS is the folder of `perhop reproduce today`, whose finished runs are used; missing ones are simulated.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from perhop.output.today_page import today_page
from perhop.parallel import available_cores
from perhop.reproduction import Counts, execute, plan
from perhop.store import DirectoryStore
from perhop.studies import TODAY

PLACE = Path(__file__).parent.parent / "docs"
COMMAND = "perhop reproduce today --out results/today"


def main() -> None:
    """Write the page and its pictures, and remove the pictures of an earlier run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    results = parser.parse_args().results
    counts = Counts()
    outcomes = execute(
        plan(TODAY.studies, runs=None, seed=1),
        jobs=available_cores(),
        store=DirectoryStore(results / "runs", print),
        counts=counts,
    )
    pages = today_page(outcomes, COMMAND)
    (PLACE / "images").mkdir(exist_ok=True)
    for old in PLACE.glob("images/today-*.png"):
        old.unlink()
    for name, text in pages.texts.items():
        (PLACE / name).write_text(text, encoding="utf-8")
    for name, content in pages.pictures.items():
        (PLACE / name).write_bytes(content)
    print(f"{PLACE / 'today.md'}; {counts.simulated} runs simulated, {counts.found} found")


if __name__ == "__main__":
    main()
