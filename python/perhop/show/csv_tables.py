"""The tables of a result as CSV files, for `--csv DIR`.

They are the lists of records in the result's JSON, and so have its names and units: one file for each list,
one column for each key. `columns.csv` says of each column its unit and meaning.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from perhop.errors import PerhopError
from perhop.files import outputs
from perhop.files.swap import replace_report
from perhop.show import csv_columns
from perhop.show.readable import end_names

COLUMNS = "columns.csv"
"""The file that explains the columns of the others, and marks a folder as ours."""
NOT_RESULTS = frozenset({"scenario", "export", "looked_at"})
"""Tables of the JSON that are no records of results: what was run, a router's lines, what a search tried."""
_PLAIN = frozenset({"factors", "metrics"})
"""Tables in a record whose own name says nothing: their keys are columns."""
Record = dict[str, Any]


def prepare(directory: Path) -> None:
    """Claim the directory before the work begins.

    Raises:
        PerhopError: It cannot be written to, or has CSV files of somebody else, which might be replaced.
    """
    theirs = sorted({path.name for path in directory.glob("*.csv")} - set(_earlier(directory)))
    if theirs:
        raise PerhopError(
            f"--csv {directory}: has {theirs[0]}, which no earlier --csv wrote; give a directory of its own"
        )
    outputs.claim_directory(directory, "--csv")


def write(
    directory: Path, text: str, say: Callable[[str], None], more: Mapping[str, pl.DataFrame] | None = None
) -> None:
    """Write the tables of a result, in place of those of an earlier one, and say where; all of them or none.

    Args:
        directory: What `prepare` was given.
        text: The result as JSON.
        say: Prints a line.
        more: Further tables by name.

    Raises:
        PerhopError: A file cannot be written.
    """
    frames = tables(json.loads(text))
    frames |= {name: frame for name, frame in (more or {}).items() if frame.height}
    content = {f"{name}.csv": _csv(frame) for name, frame in frames.items()}
    content[COLUMNS] = _csv(_described(frames))
    replace_report(directory, content, remove=_earlier(directory))
    say(f"\ntables: {directory}")


def tables(content: Mapping[str, Any]) -> dict[str, pl.DataFrame]:
    """The lists of records in a result's JSON, by name; lists within records begin with its first value."""
    found: dict[str, list[Record]] = {}
    for name, records in _lists("", content):
        found.setdefault(name, []).extend(records)
    return {name: pl.DataFrame(records, infer_schema_length=None) for name, records in found.items()}


def empty(columns: Sequence[str]) -> pl.DataFrame:
    """A table without rows."""
    return pl.DataFrame(schema=list(columns))


def _lists(place: str, content: Mapping[str, Any]) -> Iterator[tuple[str, list[Record]]]:
    for key, value in content.items():
        name = f"{place}-{key}" if place else key
        if key in NOT_RESULTS:
            continue
        if isinstance(value, dict):
            yield from _lists(name, value)
        elif _is_records(value):
            yield from _records(name, value, {})


def _is_records(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) for one in value)


def _records(
    name: str, records: Sequence[Mapping[str, Any]], of: Mapping[str, Any]
) -> Iterator[tuple[str, list[Record]]]:
    """A list of records and those within it; `of` says to what the records belong."""
    flat = [{**of, **dict(_cells("", record))} for record in records]
    if any(len(record) > len(of) for record in flat):
        yield name, flat
    for record, row in zip(records, flat, strict=True):
        first = next((key for key in row if key not in of), None)
        owner = {**of, **({} if first is None else {f"{name.rpartition('-')[2]}.{first}": row[first]})}
        for key, value in record.items():
            if _is_records(value):
                yield from _records(f"{name}-{key}", value, owner)


def _cells(prefix: str, record: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The columns of a record."""
    for key, value in record.items():
        name = f"{prefix}{key}"
        if (key in NOT_RESULTS and isinstance(value, dict)) or _is_records(value):
            continue
        if isinstance(value, dict) and "mean" in value:
            yield from _estimate(name, value)
        elif isinstance(value, dict):
            yield from _cells(prefix if key in _PLAIN else f"{name}.", value)
        elif isinstance(value, list):
            yield name, "; ".join(map(_item, value))
        else:
            yield name, value


def _item(value: object) -> str:
    """An item of a list, as `overflow 3` where it is a name and a number."""
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _estimate(name: str, value: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """A mean, and the ends of its interval as data frames call them."""
    low, high = value.get("ci95") or (None, None)
    yield from zip((name, *end_names(name)), (value["mean"], low, high), strict=True)


def _csv(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_csv(buffer)
    return buffer.getvalue()


def _described(frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    known = csv_columns.Columns()
    rows = [
        (f"{table}.csv", column, *known.explain(table, column))
        for table, frame in frames.items()
        for column in frame.columns
    ]
    return pl.DataFrame(rows, schema=["file", "column", "unit", "meaning"], orient="row")


def _earlier(directory: Path) -> list[str]:
    """The files that an earlier result left there."""
    try:
        frame = pl.read_csv(directory / COLUMNS, columns=["file"])
    except (OSError, pl.exceptions.PolarsError):
        return []
    named = [name for name in frame["file"].unique().to_list() if isinstance(name, str)]
    return [COLUMNS, *(name for name in named if "/" not in name and name.endswith(".csv"))]
