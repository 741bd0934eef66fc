"""Journals of sweeps: the measures of finished runs, in the format of `perhop.stores.journal`.

A scenario's record comes before its first run's: `S`, then JSON with `number`, `scenario`, `engine` and
`metrics`, the names of the measures. A run's is `R`, the scenario's number (u32), the seed (u64), the wall
time in seconds (f64) and the values (f64 each).
"""

from __future__ import annotations

import json
import struct
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perhop.stores.journal import Journal, joined, pieces

if TYPE_CHECKING:
    from pathlib import Path

_RUN = struct.Struct("<cIQd")


@dataclass(frozen=True, slots=True)
class Layout:
    """What the runs of one scenario share.

    Attributes:
        scenario: Canonical JSON.
        engine: What computed them.
        metrics: Names of the values, in their order.
    """

    scenario: str
    engine: str
    metrics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Record:
    """One finished run.

    Attributes:
        values: f64, one for each of the layout's metrics; NaN where the run has none.
    """

    layout: Layout
    seed: int
    wall_s: float
    values: array[float]


@dataclass(frozen=True, slots=True)
class Contents:
    """What could be read of a journal.

    Attributes:
        size: Its bytes.
        unreadable: Bytes whose checksum fails, records cut short included.
    """

    records: Sequence[Record]
    size: int
    unreadable: int


class JournalWriter:
    """Appends finished runs to a journal of its own; the file appears with the first of them."""

    def __init__(self, directory: Path) -> None:
        """A writer into this directory, which must exist."""
        self._journal = Journal(directory)
        self._numbers: dict[Layout, int] = {}

    @property
    def size(self) -> int:
        """Bytes written."""
        return self._journal.size

    def append(self, records: Iterable[Record]) -> None:
        """Write runs, all with one call; once this returns, killing this process does not lose them.

        Raises:
            OSError: They could not be written; the journal ends as it did before.
        """
        if not self._journal.size:
            self._numbers.clear()
        known = len(self._numbers)
        contents = [content for record in records for content in _encode(record, self._numbers)]
        try:
            self._journal.append(contents)
        except OSError:
            for layout in list(self._numbers)[known:]:
                del self._numbers[layout]
            raise
        self._journal.sync_when_due()

    def sync(self) -> None:
        """Wait until the disk has everything.

        Raises:
            OSError: It does not take it.
        """
        self._journal.sync()

    def close(self) -> None:
        """Let go of the journal; it is complete now."""
        self._journal.close()


def encode(records: Sequence[Record]) -> bytes:
    """A whole journal with these runs."""
    numbers: dict[Layout, int] = {}
    return joined(content for record in records for content in _encode(record, numbers))


def decode(data: bytes) -> Contents:
    """The runs in a journal's bytes, as far as they can be read.

    A run is lost with its scenario's record.
    """
    layouts: dict[int, Layout] = {}
    records = []
    found = pieces(data)
    lost = 0
    for _, content in found.contents:
        record = _decode(content, layouts)
        if record is None:
            lost += len(content)
        elif isinstance(record, Record):
            records.append(record)
    return Contents(records, len(data), found.unreadable + lost)


def _encode(record: Record, numbers: dict[Layout, int]) -> list[bytes]:
    """A run's record, after its scenario's if that is new."""
    if record.layout in numbers:
        return [_run(numbers[record.layout], record)]
    number = numbers[record.layout] = len(numbers)
    return [_scenario(number, record.layout), _run(number, record)]


def _scenario(number: int, layout: Layout) -> bytes:
    content = {
        "number": number,
        "scenario": layout.scenario,
        "engine": layout.engine,
        "metrics": layout.metrics,
    }
    return b"S" + json.dumps(content, ensure_ascii=False).encode()


def _run(number: int, record: Record) -> bytes:
    return _RUN.pack(b"R", number, record.seed, record.wall_s) + record.values.tobytes()


def _decode(content: bytes, layouts: dict[int, Layout]) -> Record | Layout | None:
    """A run, or a scenario, which is kept in `layouts`; None for a run whose scenario is lost, or neither."""
    try:
        if content[:1] == b"S":
            return _scenario_of(json.loads(content[1:]), layouts)
        if content[:1] != b"R":
            return None
        _, number, seed, wall_s = _RUN.unpack_from(content)
        values = array("d", content[_RUN.size :])
    except (struct.error, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
    layout = layouts.get(number)
    if layout is None or len(values) != len(layout.metrics):
        return None
    return Record(layout, seed, wall_s, values)


def _scenario_of(known: Mapping[str, Any], layouts: dict[int, Layout]) -> Layout:
    """A scenario, under its number in `layouts`."""
    metrics = tuple(map(str, known["metrics"]))
    layout = layouts[int(known["number"])] = Layout(str(known["scenario"]), str(known["engine"]), metrics)
    return layout
