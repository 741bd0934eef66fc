"""Places of a command's results: a report's folder, JSON, tables as CSV, and text at the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perhop.commands import terminal
from perhop.errors import PerhopError
from perhop.files import outputs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import polars as pl


REPORT = ("manifest.json", "report.html", "samples.parquet")
"""The files of a report, beside its plots."""


class Results:
    """What `--out`, `--json`, `--csv` and `--wide` of a command ask for.

    Attributes:
        out: The folder of the report; None without `--out`.
        width: The columns of text; None for no limit.
    """

    def __init__(
        self,
        *,
        out: Path | None = None,
        json_file: Path | None = None,
        csv: Path | None = None,
        wide: bool = False,
        reads: Sequence[Path] = (),
    ) -> None:
        """Prove, before the work begins, that everything can be written.

        Args:
            out: The folder of the report; other commands are kept out of it.
            json_file: Where JSON goes; `-` is standard output.
            csv: The folder of the tables.
            wide: Show all columns of tables.
            reads: The files that the command reads; none of them is written over.

        Raises:
            PerhopError: One of them cannot be written, or would be overwritten; the message names the option.
        """
        from perhop.runs import csv_tables

        for option, folder in (("--out", out), ("--csv", csv)):
            if json_file is not None and folder is not None and _is_replaced(json_file, folder):
                raise PerhopError(
                    f"--json {json_file}: is where {option} {folder} writes; give it another name"
                )
        if out is not None:
            outputs.claim_directory(out)
        csv_tables.prepare(csv)
        self.out = out
        self.width = terminal.width(wide=wide)
        self.json_path = None if json_file is None else outputs.prepare_file(json_file, reads=reads)
        self._csv = csv

    @property
    def in_json(self) -> bool:
        """Whether anything is written from the JSON of the results: that itself, or tables as CSV."""
        return self.json_path is not None or self._csv is not None

    def say(self, text: str) -> None:
        """Print lines of results: on standard output, or on standard error if JSON has that."""
        (terminal.note if self.json_path == outputs.STDOUT else terminal.say)(text)

    def write_json(self, text: str) -> None:
        """Write the results as JSON, if they were asked for."""
        put(self.json_path, text)

    def write_csv(self, json_text: str, frames: Mapping[str, pl.DataFrame] | None = None) -> None:
        """Write the tables as CSV, if they were asked for.

        Args:
            json_text: The results as JSON.
            frames: Further tables, by name.
        """
        from perhop.runs import csv_tables

        csv_tables.write(self._csv, json_text, self.say, frames)

    def say_where(self, before: str = "\n") -> None:
        """Print where the report is, if there is one; `before` is the text before it."""
        if self.out is not None:
            self.say(f"{before}report: {self.out / 'report.html'}")


def _is_replaced(path: Path, folder: Path) -> bool:
    """Return whether a file is a folder of results, or one of the files that are written there."""
    if path.absolute() == folder.absolute():
        return True
    return path.absolute().parent == folder.absolute() and (path.name in REPORT or path.suffix == ".csv")


def put(path: Path | None, text: str) -> None:
    """Write text to a file that `outputs.prepare_file` has named, or to standard output; None is nowhere."""
    if path == outputs.STDOUT:
        terminal.out_bytes(text.encode())
    elif path is not None:
        outputs.write(path, text)
