"""What `--out` leaves of a sweep: plots, every run's measures, a manifest, and the page that shows them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from perhop.output.files import manifest, write, write_parquet
from perhop.output.report import render
from perhop.output.writer import draw
from perhop.sweep.pictures import draw_all, html_plots
from perhop.sweep.store import SweepStore
from perhop.sweep.summary import lead, sample_frame, tables

if TYPE_CHECKING:
    from pathlib import Path

    from perhop.sweep.job import Swept

MOST_IN_FULL = 1000
"""Points whose scenarios a manifest holds, and that a page lists; beyond, a manifest has the store's keys."""


def write_sweep(out: Path, swept: Swept, store: Path, command: str) -> None:
    """Plots, samples, manifest and, last, the page.

    Raises:
        PerhopError: A file cannot be written, or the store cannot be read.
    """
    plan, counts, summaries = swept.plan, swept.counts, swept.summaries
    drawn = draw(out, draw_all(summaries, "sweep"))
    with SweepStore(store, lambda _: None) as opened:
        write_parquet(out / "samples.parquet", sample_frame(plan, counts, opened))
    scenarios = [
        {
            "factors": dict(point.factors),
            "seeds": [plan.seed, plan.seed + runs - 1],
            "key": point.key,
            **({"scenario": json.loads(point.scenario)} if len(plan.points) <= MOST_IN_FULL else {}),
        }
        for point, runs in zip(plan.points, counts, strict=True)
    ]
    write(out / "manifest.json", manifest(command, scenarios, drawn))
    long = len(summaries) > MOST_IN_FULL
    page = render(
        "sweep.html.j2",
        title=plan.title,
        lead=lead(plan, summaries),
        notes=[f"The first {MOST_IN_FULL} points; samples.parquet has them all."] if long else [],
        tables=[("Points", table) for table in tables(summaries[:MOST_IN_FULL])],
        plots=html_plots(summaries, "sweep"),
        command=command,
    )
    write(out / "report.html", page)
