"""Records of measures: what a sweep keeps of a run, a number for each measure and companion.

A scenario's record comes before its first run's: `S`, then JSON with `number`, `scenario`, `engine` and
`metrics`, the names of the measures. A run's is `R`, the scenario's number (u32), the seed (u64), the wall
time in seconds (f64) and the values (f64 each).
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import struct
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from perhop.stores.directory import Contents

_RUN = struct.Struct("<cIQd")


@dataclass(frozen=True)
class Layout:
    """The common part of the records of one scenario's runs.

    Attributes:
        scenario: Canonical JSON.
        engine: What computed them.
        metrics: Names of the values, in their order.
    """

    scenario: str
    engine: str
    metrics: tuple[str, ...]

    @functools.cached_property
    def key(self) -> str:
        """The SHA-256 of the scenario, in hex."""
        return hashlib.sha256(self.scenario.encode()).hexdigest()


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


class Encoder:
    """Makes contents of records for journals: a run's, after its scenario's where the journal lacks that."""

    def __init__(self) -> None:
        self._numbers: dict[Layout, int] = {}
        self._unused = itertools.count()

    def begin(self) -> None:
        """Begin anew: take the journal to hold no scenario. No number is used twice."""
        self._numbers.clear()

    def contents(self, records: Iterable[Record]) -> list[bytes]:
        """The contents that stand for these runs."""
        return list(itertools.chain.from_iterable(map(self._contents, records)))

    def _contents(self, record: Record) -> Iterator[bytes]:
        layout = record.layout
        if layout not in self._numbers:
            self._numbers[layout] = next(self._unused)
            about = {
                "number": self._numbers[layout],
                "scenario": layout.scenario,
                "engine": layout.engine,
                "metrics": layout.metrics,
            }
            yield b"S" + json.dumps(about, ensure_ascii=False).encode()
        head = _RUN.pack(b"R", self._numbers[layout], record.seed, record.wall_s)
        yield head + record.values.tobytes()


def decode(contents: Iterable[bytes]) -> Iterator[Record | Layout | None]:
    """Yield the run or the scenario of each record of a journal, in order.

    None is of a run whose scenario is lost, and of a content that `Encoder` did not make.
    """
    layouts: dict[int, Layout] = {}
    for content in contents:
        try:
            yield _decoded(content, layouts)
        except (struct.error, ValueError, KeyError, TypeError, OverflowError, RecursionError):
            yield None


def runs(contents: Iterable[bytes]) -> list[Record]:
    """The runs among what `decode` gives."""
    return [one for one in decode(contents) if isinstance(one, Record)]


def usable(contents: Contents) -> Contents:
    """The contents of a journal that `decode` understands."""
    decoded = decode(content for _, content in contents)
    return [one for one, meaning in zip(contents, decoded, strict=True) if meaning is not None]


def _decoded(content: bytes, layouts: dict[int, Layout]) -> Record | Layout | None:
    if content[:1] == b"S":
        about: Any = json.loads(content[1:])
        metrics = tuple(map(str, about["metrics"]))
        layout = Layout(str(about["scenario"]), str(about["engine"]), metrics)
        layouts[int(about["number"])] = layout
        return layout
    if content[:1] != b"R":
        return None
    _, number, seed, wall_s = _RUN.unpack_from(content)
    values = array("d", content[_RUN.size :])
    found = layouts.get(number)
    return Record(found, seed, wall_s, values) if found and len(values) == len(found.metrics) else None
