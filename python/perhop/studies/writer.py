"""Write a directory of results: plots, data, manifest, and the page that shows them, all of them or none."""

from __future__ import annotations

import contextlib
import json
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from perhop.errors import PerhopError
from perhop.files.outputs import manifest, manifest_entry
from perhop.files.swap import earlier_plots, replace_report
from perhop.show.drawers import Drawers
from perhop.show.kept import KeptPictures
from perhop.show.report_files import _names, parquet, picture_files
from perhop.studies.page import StudyDrawn, StudyPart, reproduction_page
from perhop.studies.reproduction import StudyOutcome, sample_frame
from perhop.studies.study import Study

PAGE_EVERY_S = 1.0
"""Studies that follow one another faster are written together."""


class ReproductionReport:
    """The directory of `perhop reproduce`: it grows with the studies, and is whole at any time."""

    def __init__(
        self,
        out: Path,
        command: str,
        studies: Sequence[Study],
        jobs: int = 1,
        kept: KeptPictures | None = None,
    ) -> None:
        """A report on these studies, of which none has run yet; nothing is written before the first has.

        Args:
            out: Where.
            command: What to type for the same report.
            studies: What it is on.
            jobs: How many cores draw; the report is the same for any number.
            kept: Pictures of earlier reports, which are not drawn again.
        """
        self._out = out
        self._command = command
        self._pending = [study.id for study in studies]
        self._done: list[StudyPart] = []
        self._drawn: list[str] = []
        self._pictures: dict[str, bytes | str] = {}
        self._written = 0
        self._next_at = 0.0
        self._scenarios: list[str] = []
        self._kept = kept
        self._drawers = Drawers(jobs, sum(len(study.plots) + 1 for study in studies), kept)
        self._drawing: deque[StudyDrawn] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop drawing; where an error is on its way, such as Ctrl-C, first write what is drawn."""
        self._drawers.__exit__(kind, error, trace)
        if error is not None and self._written < len(self._done):
            with contextlib.suppress(PerhopError):
                self._write()

    def draw(self, outcome: StudyOutcome) -> None:
        """Have a study's plots and networks drawn."""
        self._drawing.append(StudyPart.drawn(outcome, self._drawers))

    def drawn(self, *, wait: bool = False) -> Iterator[tuple[StudyOutcome, list[Path]]]:
        """Add each study whose pictures are there, in the order of `draw`; write them within a second.

        To be called again and again while later studies run.

        Args:
            wait: Go on until all are.

        Yields:
            The study's outcome and its plots, as PNG.

        Raises:
            PerhopError: A file cannot be written.
        """
        while self._drawing and (wait or self._drawing[0].over):
            part = StudyPart.made(self._drawing.popleft(), self._drawers)
            plots = self._add(part)
            self._write_if_due()
            yield part.outcome, plots
        self._write_if_due()

    def _add(self, part: StudyPart) -> list[Path]:
        outcome, section = part.outcome, part.section
        pictures = [plot.picture for plot in section.plots] + [one.picture for one in section.networks]
        files = picture_files(pictures)
        self._drawn.extend(_names(files))
        self._pending.remove(outcome.study.id)
        self._done.append(part)
        self._scenarios.extend(_entries(outcome))
        self._pictures.update(files)
        return [self._out / "plots" / f"{plot.picture.name}.png" for plot in section.plots]

    def _write_if_due(self) -> None:
        """Write studies that are not written, unless others just were; the last one `finish` writes."""
        if self._pending and self._written < len(self._done) and time.monotonic() >= self._next_at:
            self._write()
            self._next_at = time.monotonic() + PAGE_EVERY_S

    def _write(self, more: Mapping[str, bytes | str] | None = None) -> None:
        stale = [] if self._written else [*earlier_plots(self._out), "samples.parquet"]
        replace_report(self._out, {**self._pictures, **self._page(), **(more or {})}, remove=stale)
        self._pictures.clear()
        self._written = len(self._done)

    def finish(self, outcomes: Sequence[StudyOutcome]) -> None:
        """Write the samples of all runs; the page then says that it is complete.

        Raises:
            PerhopError: A file cannot be written.
        """
        self._write({"samples.parquet": parquet(sample_frame(outcomes))})
        if self._kept is not None:
            self._kept.tidy()

    def _page(self) -> dict[str, str]:
        return {
            "manifest.json": manifest(self._command, self._scenarios, self._drawn),
            "report.html": reproduction_page(self._done, self._command, self._pending),
        }


def _entries(outcome: StudyOutcome) -> Iterator[str]:
    """The scenarios of a study, for the manifest."""
    for cell in outcome.cells:
        yield manifest_entry(
            {
                "study": outcome.study.id,
                "factors": dict(cell.factors),
                "seeds": list(outcome.seeds),
                "scenario": json.loads(cell.scenario),
            }
        )
