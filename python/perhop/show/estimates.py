"""Data frames of means over runs that print themselves as commands print their tables."""

from __future__ import annotations

import html
import shutil
from typing import Any

import polars as pl

from perhop.show.latex import latex_table
from perhop.show.readable import LEFT_OUT_FIRST, end_names, html_table, readable
from perhop.show.table import records


class Estimates(pl.DataFrame):
    """A data frame of means over runs that prints itself for readers: `1.534 ± 0.024`, all columns.

    The columns are what they are in any polars data frame, and what is made of it is one, too: `NAME_low` and
    `NAME_high` are the ends of the 95 % interval of `NAME`, the unit last (`throughput_low_bps`). Frames that
    are made of it (`filter`, `select`) print as polars does.
    """

    def __str__(self) -> str:
        """The table as `perhop run` prints it, and the names of the columns."""
        if not self.height or not self.width:
            return f"no rows; columns: {', '.join(self.columns) or 'none'}"
        columns = shutil.get_terminal_size((80, 24)).columns
        lines = records(readable(self.to_dicts()), max(columns, 60), LEFT_OUT_FIRST, "A wider terminal")
        return "\n".join([*lines, _legend(self)])

    def __repr__(self) -> str:
        """Return the text of `str`."""
        return str(self)

    def _repr_html_(self, **_: Any) -> str:  # noqa: ANN401 - what polars is called with
        """The frame as a table for notebooks."""
        if not self.height or not self.width:
            return f"<pre>{html.escape(str(self))}</pre>"
        return html_table(readable(self.to_dicts())) + f"<p><small>{html.escape(_legend(self))}</small></p>"

    def to_latex(self, caption: str | None = None, label: str | None = None) -> str:
        """The frame as LaTeX, for the package booktabs; all text is escaped.

        Args:
            caption: Of the table; with it or a label, the `tabular` is within a `table`.
            label: For references to it: letters, digits and `: . _ / + -`.

        Raises:
            ValueError: The label has other characters, or the frame has no rows.
        """
        return latex_table(readable(self.to_dicts()) if self.width else [], caption, label)


def _legend(frame: pl.DataFrame) -> str:
    """The meaning of what is beside a number, and how to get at the numbers."""
    size = f"{frame.height} row{'' if frame.height == 1 else 's'}, {frame.width} columns in SI units"
    with_ends = [name for name in frame.columns if set(end_names(name)) <= set(frame.columns)]
    if not with_ends:
        return f"({size}: .columns)"
    known = any(frame[end].is_not_null().any() for name in with_ends for end in end_names(name))
    note = "± or in brackets: 95 % interval over the runs" if known else "1 run: no interval"
    return f"({note}; {size}: .columns)"
