"""The directory of `perhop run --out`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from perhop.runs.page import drawn, run_page
from perhop.runs.summary import numbers
from perhop.show.report_files import write_report

if TYPE_CHECKING:
    from pathlib import Path

    from perhop.runs.result import Result
    from perhop.runs.summary import Summary


def write_run(out: Path, result: Result, shown: Summary, command: str) -> None:
    """Plots, flows of every run, manifest and the page.

    Raises:
        PerhopError: A file cannot be written.
    """
    plots, network = drawn(shown)
    scenario = {
        "seeds": [entry.seed for entry in result.runs],
        **({} if shown.by_default is None else {"runs_by_default": shown.by_default}),
        "scenario": json.loads(result.scenario),
        "results": numbers(result),
    }
    write_report(
        out,
        run_page(result, shown, command, plots, network),
        [*(plot.picture for plot in plots), network.picture],
        result.flows,
        (command, [scenario]),
    )
