"""Results of functions that have a command share text, JSON, tables, and a report in a folder."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from perhop.errors import PerhopError
from perhop.files import arguments, swap
from perhop.show.latex import latex_table
from perhop.show.report import Report, as_notebook, as_text, tables

if TYPE_CHECKING:
    import polars as pl


class Shown:
    """The result of a function that has a command of its name.

    Results hold arrays and tables, so `==` compares identity; compare `json()` for equal numbers.

    Attributes:
        TABLE: The table that `frame` returns without a name.
        COLUMNS: The columns of that table where it has no rows.
    """

    __slots__ = ()
    TABLE: ClassVar[str]
    COLUMNS: ClassVar[Sequence[str]] = ()

    def __dir__(self) -> list[str]:
        """Return the names that complete it: those in capitals describe its class."""
        return [name for name in super().__dir__() if not name.isupper()]

    def text(self, width: int | None = None) -> str:
        """Return what the command prints, for text of that many columns; None for no limit."""
        return "\n\n".join(as_text(report, width) for report in self._reports(width))

    def _repr_html_(self) -> str:
        """Return what the command prints as HTML for notebooks."""
        return "".join(map(as_notebook, self._reports(None)))

    def to_latex(
        self, table: str | int | None = None, *, caption: str | None = None, label: str | None = None
    ) -> str:
        """Return a table that the command prints as LaTeX, for the package booktabs; all text is escaped.

        Args:
            table: Its name, as `frame` takes it, of a result of `perhop.run`; of others its title or, without
                one of its own, its number, from 1. By default the first table.
            caption: Of the table; with it or a label, the `tabular` is within a `table`.
            label: For references to it: letters, digits and `: . _ / + -`.

        Raises:
            PerhopError: The result has no such table; the message lists those that it has.
            ValueError: The label has other characters.
        """
        found = self._tables()
        name = next(iter(found), "") if table is None else named(str(table), found)
        if name not in found:
            raise PerhopError(f"the result has no table `{name}`; it has: {', '.join(found) or 'none'}")
        return latex_table(found[name], caption, label)

    def _tables(self) -> Mapping[str, Sequence[Mapping[str, str]]]:
        """Return the rows of each table that the command prints, by the name that `to_latex` takes."""
        found: dict[str, Sequence[Mapping[str, str]]] = {}
        shown = (one for report in self._reports(None) for one in tables(report))
        for number, (title, rows) in enumerate(shown, 1):
            found[title if title and title not in found else str(number)] = rows
        return found

    def _reports(self, width: int | None) -> Sequence[Report]:
        """Return what the command prints, for a terminal of that width; None for other media."""
        raise NotImplementedError

    def json(self) -> str:
        """Return what the command writes with `--json`: the same bytes for the same runs."""
        raise NotImplementedError

    def frame(self, table: str | None = None) -> pl.DataFrame:
        """Return a table that the command writes with `--csv`, as a data frame of polars.

        Args:
            table: Its name, such as `points`; by default the main one. Names of columns end in units, as in
                JSON; ends of 95 % intervals are in columns of their own.

        Returns:
            The table, without rows if there is nothing to be in it; `to_pandas()` makes one of pandas of it.

        Raises:
            PerhopError: There is no such table; the message lists those that there are.
        """
        from perhop.show import csv_tables  # noqa: PLC0415 - of all results, only few are asked for tables

        found = csv_tables.tables(json.loads(self.json()))
        name = self.TABLE if table is None else named(table, found)
        if table is not None and name not in found:
            found |= {more: frame for more, frame in self._more_frames().items() if frame.height}
            name = named(table, found)
        if table is not None and name not in found:
            raise PerhopError(f"there is no table `{table}`; there are: {', '.join(found) or 'none'}")
        return found[name] if name in found else csv_tables.empty(self.COLUMNS)

    def _more_frames(self) -> dict[str, pl.DataFrame]:
        """Return the tables of `--csv` that are not in the JSON, by name."""
        return {}

    def __repr__(self) -> str:
        """Return one line: what was computed, how much of it, and what came of it."""
        return f"{type(self).__name__} of {self._outline()}"

    def _outline(self) -> str:
        """Return what was computed, how much of it, and what came of it."""
        raise NotImplementedError


class Written(Shown):
    """The result of a function whose command has `--out`.

    Attributes:
        COMMAND: The command, such as `perhop sweep`.
        RERUNS: Whether `perhop rerun` repeats a report of it.
        command: What to type for the same result; empty if it was made of data in Python.
    """

    __slots__ = ()
    COMMAND: ClassVar[str]
    RERUNS: ClassVar[bool] = False
    command: str

    def write(self, folder: Path | str, command: str = "", jobs: int = 1) -> None:
        """Write what the command writes with `--out`: a report that opens offline, pictures and samples.

        Args:
            folder: Where; an earlier report there is replaced as a whole.
            command: What the report says gives the same again; by default the command with its options, or
                for what was made of data in Python `perhop rerun`, or the function.
            jobs: How many cores draw.

        Raises:
            PerhopError: A file cannot be written.
        """
        place = swap.claim_report(arguments.path("folder", folder), "folder")
        again = shlex.join(["perhop", "rerun", str(place)]) if self.RERUNS else ""
        function = f"{self.COMMAND.replace(' ', '.')}(…) in Python"
        self._write(place, command or self.command or again or function, jobs)

    def _write(self, place: Path, command: str, jobs: int) -> None:
        """Write the report into a folder that is claimed."""
        raise NotImplementedError


def named(name: str, known: Iterable[str]) -> str:
    """Return the table that a name means: `-` and `_` are the same, and `web` is `applications-web`."""
    plain = str(name).replace("_", "-")
    meant = (plain, f"applications-{plain}")
    return next((one for one in known if one.replace("_", "-") in meant), name)


def command_line(*words: str, **options: object) -> str:
    """Return what to type for a result; options that are None were not given."""
    given = [part for name, value in options.items() if value is not None for part in (name, str(value))]
    return shlex.join(["perhop", *words, *given])
