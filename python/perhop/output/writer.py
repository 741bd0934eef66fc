"""Write a directory of results: plots, data, manifest, and the page that shows them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from perhop.output.files import manifest, prepare_directory, remove_plots, write, write_parquet
from perhop.output.plot import pictures
from perhop.output.report import reproduction_page, run_page
from perhop.output.topology import distinct, topology
from perhop.reproduction import sample_frame

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from perhop.output.plot import Picture
    from perhop.output.summary import Summary
    from perhop.reproduction import Outcome
    from perhop.simulation import Result
    from perhop.study import Plot, Row


def write_reproduction(out: Path, outcomes: Sequence[Outcome], command: str) -> None:
    """Plots, samples, manifest and, last, the page.

    Raises:
        PerhopError: A file cannot be written.
    """
    plots = [(plot, outcome.rows, outcome.study.id) for outcome in outcomes for plot in outcome.study.plots]
    networks = [
        network
        for outcome in outcomes
        for network in distinct((json.loads(cell.scenario) for cell in outcome.cells), outcome.study.id)
    ]
    drawn = draw(out, _pictures(plots, networks))
    write_parquet(out / "samples.parquet", sample_frame(outcomes))
    scenarios = [
        {
            "study": outcome.study.id,
            "factors": dict(cell.factors),
            "seeds": list(outcome.seeds),
            "scenario": json.loads(cell.scenario),
        }
        for outcome in outcomes
        for cell in outcome.cells
    ]
    write(out / "manifest.json", manifest(command, scenarios, drawn))
    write(out / "report.html", reproduction_page(outcomes, command))


def write_run(out: Path, result: Result, shown: Summary, command: str) -> None:
    """Plots, flows of every run, manifest and, last, the page.

    Raises:
        PerhopError: A file cannot be written.
    """
    plots = [(plot, rows, "run") for plot, rows in shown.plots]
    drawn = draw(out, _pictures(plots, [(shown.scenario, "run")]))
    write_parquet(out / "samples.parquet", result.flows)
    scenario = {"seeds": [entry.seed for entry in result.runs], "scenario": json.loads(result.scenario)}
    write(out / "manifest.json", manifest(command, [scenario], drawn))
    write(out / "report.html", run_page(shown, command))


def draw(out: Path, pictures: Iterable[Picture]) -> list[str]:
    """Draw into `plots/`, instead of what an earlier report drew there; the names of the files.

    Raises:
        PerhopError: A file cannot be written or removed.
    """
    directory = prepare_directory(out / "plots")
    remove_plots(out)
    names = []
    for picture in pictures:
        for ending, content in (("svg", picture.svg), ("png", picture.png)):
            write(directory / f"{picture.name}.{ending}", content)
            names.append(f"{picture.name}.{ending}")
    return names


def _pictures(
    plots: Sequence[tuple[Plot, Sequence[Row], str]],
    networks: Sequence[tuple[Mapping[str, Any], str]],
) -> Iterator[Picture]:
    yield from (pictures(plot, rows, name) for plot, rows, name in plots)
    yield from (topology(scenario, name) for scenario, name in networks)
