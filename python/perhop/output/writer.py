"""Write a directory of results: plots, data, manifest, and the page that shows them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from perhop.output.files import manifest, prepare_directory, remove_plots, write, write_parquet
from perhop.output.plot import pictures
from perhop.output.report import StudyPart, reproduction_page, run_page
from perhop.output.topology import distinct, topology
from perhop.reproduction import sample_frame

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from perhop.output.plot import Picture
    from perhop.output.summary import Summary
    from perhop.reproduction import Outcome
    from perhop.simulation import Result
    from perhop.study import Plot, Row, Study


class ReproductionReport:
    """The directory of `perhop reproduce`: it grows with each study, and every file in it is always whole."""

    def __init__(self, out: Path, command: str, studies: Sequence[Study]) -> None:
        """A report on these studies, of which none has run yet; nothing is written before the first has."""
        self._out = out
        self._command = command
        self._pending = [study.id for study in studies]
        self._done: list[StudyPart] = []
        self._drawn: list[str] = []

    def add(self, outcome: Outcome) -> list[Path]:
        """Draw a study's plots and networks, and write the page anew with it.

        Returns:
            The study's plots, as PNG.

        Raises:
            PerhopError: A file cannot be written.
        """
        if not self._done:
            remove_plots(self._out)
        directory = prepare_directory(self._out / "plots")
        study = outcome.study
        networks = distinct((json.loads(cell.scenario) for cell in outcome.cells), study.id)
        plots = [(plot, outcome.rows, study.id) for plot in study.plots]
        drawn = [draw_one(directory, picture) for picture in _pictures(plots, networks)]
        self._drawn.extend(name for names in drawn for name in names)
        self._pending.remove(study.id)
        self._done.append(StudyPart.of(outcome))
        self._write_page()
        return [directory / names[1] for names in drawn[: len(plots)]]

    def finish(self, outcomes: Sequence[Outcome]) -> None:
        """Write the samples of all runs; the page then says that it is complete.

        Raises:
            PerhopError: A file cannot be written.
        """
        write_parquet(self._out / "samples.parquet", sample_frame(outcomes))
        self._write_page()

    def _write_page(self) -> None:
        scenarios = [
            {
                "study": part.outcome.study.id,
                "factors": dict(cell.factors),
                "seeds": list(part.outcome.seeds),
                "scenario": json.loads(cell.scenario),
            }
            for part in self._done
            for cell in part.outcome.cells
        ]
        write(self._out / "manifest.json", manifest(self._command, scenarios, self._drawn))
        write(self._out / "report.html", reproduction_page(self._done, self._command, self._pending))


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
        names.extend(draw_one(directory, picture))
    return names


def draw_one(directory: Path, picture: Picture) -> list[str]:
    """Write a picture as SVG and PNG; the names of the two files.

    Raises:
        PerhopError: A file cannot be written.
    """
    for ending, content in (("svg", picture.svg), ("png", picture.png)):
        write(directory / f"{picture.name}.{ending}", content)
    return [f"{picture.name}.svg", f"{picture.name}.png"]


def _pictures(
    plots: Sequence[tuple[Plot, Sequence[Row], str]],
    networks: Sequence[tuple[Mapping[str, Any], str]],
) -> Iterator[Picture]:
    yield from (pictures(plot, rows, name) for plot, rows, name in plots)
    yield from (topology(scenario, name) for scenario, name in networks)
