"""Places of a command's results: a report's folder, JSON, tables as CSV, further files, and the terminal."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from perhop.commands import terminal
from perhop.files import outputs, swap
from perhop.plurals import counted
from perhop.processes import interrupts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import polars as pl


INVALID = 3
"""Exit status of a command of whose runs on real packets one is invalid."""
FOLDERS = {"--out": ("plots", "runs"), "--csv": (), "--store": ("broken", "journals", "segments")}
"""The folders within the folder that an option names."""


class Results:
    """What `--out`, `--json`, `--csv`, `--wide` and further options of a command ask for.

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
        store: Path | None = None,
        files: Mapping[str, Path | None] | None = None,
        wide: bool = False,
        reads: Sequence[Path] = (),
    ) -> None:
        """Prove, before the work begins, that everything can be written, each to a place of its own.

        Args:
            out: The folder of the report; other commands are kept out of it.
            json_file: Where JSON goes; `-` is standard output.
            csv: The folder of the tables.
            store: The folder of finished runs.
            files: Further files that the command writes, by the option that names each.
            wide: Show all columns of tables.
            reads: The files that the command reads; none of them is written over.

        Raises:
            PerhopError: One of them cannot be written, or would be overwritten; the message names the option.
        """
        named = {"--json": json_file, **(files or {})}
        outputs.apart(named, {"--out": out, "--csv": csv, "--store": store}, _is_written)
        if store is not None:
            outputs.prepare_directory(store, "--store")
        if out is not None:
            swap.claim_report(out)
        if csv is not None:
            from perhop.show import csv_tables

            csv_tables.prepare(csv)
        self.out = out
        self.width = terminal.width(wide=wide)
        self.json_path = None if json_file is None else outputs.prepare_file(json_file, reads=reads)
        self._csv, self._store = csv, store
        self._json = ""

    def say(self, text: str) -> None:
        """Print lines of results: on standard output, or on standard error if JSON has that."""
        (terminal.note if self.json_path == outputs.STDOUT else terminal.say)(text)

    def conclude(self, result: Any, command: str = "", cores: int = 1) -> None:  # noqa: ANN401
        """Write the report and JSON, if they were asked for, and print the result.

        Args:
            result: Has `text(width)`, `json()` and, for a command with `--out`, `write(out, command, cores)`.
            command: What to type for the same.
            cores: How many cores draw.
        """
        if self.out is not None:
            with interrupts.deferred():
                importlib.import_module("perhop.show.page")  # it loads matplotlib
            result.write(self.out, command, cores)
        if self.json_path is not None or self._csv is not None:
            self._json = result.json()
        put(self.json_path, self._json)
        self.say(result.text(self.width))

    def write_csv(self, frames: Mapping[str, pl.DataFrame] | None = None) -> None:
        """Write the tables of the concluded result as CSV, if they were asked for.

        Args:
            frames: Further tables, by name.
        """
        if self._csv is not None:
            from perhop.show import csv_tables

            csv_tables.write(self._csv, self._json, self.say, frames)

    def say_counts(self, work: Any) -> None:  # noqa: ANN401
        """Print what the work cost, and where the report is."""
        failed = f", {work.failed} failed" if work.failed else ""
        reused = f"{work.found} reused from {self._store}"
        self.say(f"\n{counted(work.simulated, 'run')} simulated, {reused}{failed}")
        self.say_where("")

    def say_where(self, before: str = "\n") -> None:
        """Print where the report is, if there is one; `before` is the text before it."""
        if self.out is not None:
            self.say(f"{before}report: {self.out / 'report.html'}")


def _is_written(option: str, inside: Path) -> bool:
    """Whether a command may write this name, relative to the folder that an option names."""
    if len(inside.parts) > 1:
        return inside.parts[0] in FOLDERS[option]
    return option != "--store" and (inside.name in swap.FILES or inside.suffix == ".csv")


def put(path: Path | None, text: str) -> None:
    """Write text to a file that `outputs.prepare_file` has named, or to standard output; None is nowhere."""
    if path == outputs.STDOUT:
        terminal.out_bytes(text.encode())
    elif path is not None:
        outputs.write(path, text)
