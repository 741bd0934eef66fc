"""The store of sweeps: the measures of every finished run, found again by scenario, seed and engine.

STORE/
journals/ID.journal     runs as they finish, one journal for each process (`perhop.stores.journal`)
segments/, broken/      what earlier versions left (`perhop.stores.segments`)
"""

from __future__ import annotations

import contextlib
import os
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import polars as pl

from perhop.errors import ArgumentError, PerhopWarning
from perhop.runs.companions import chosen, is_companion
from perhop.stores import measures, segments
from perhop.stores.directory import Journals, remove_left
from perhop.stores.measures import Record

_KEYS = {"scenario": pl.String, "engine": pl.String, "seed": pl.UInt64, "wall_s": pl.Float64}
_RUN = ("scenario", "engine", "seed")
"""The columns that identify a run."""


class StoreError(ArgumentError):
    """The store cannot be written to or read, such as on a full disk; what it holds stays."""


class SweepStore:
    """Finished runs by scenario, seed and engine; several processes may use one store at once.

    Attributes:
        directory: Where it lies.
        say: Receives a sentence about kept runs where there is something to know.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, SweepStore(folder) as store:
    ...     store.runs().columns
    ['scenario', 'engine', 'seed', 'wall_s']
    """

    def __init__(self, directory: str | os.PathLike[str], say: Callable[[str], None] | None = None) -> None:
        """Open the store, creating it; every record is held against its checksum, and what broke is mended.

        Args:
            directory: Where it lies.
            say: Receives a sentence about each fault; without it, a `PerhopWarning` has it.

        Raises:
            StoreError: It cannot be made, read or repaired, or `directory` is no path.
        """
        if not isinstance(directory, str | os.PathLike):
            raise StoreError("directory", f": is a path such as 'results/store', not {directory!r}")
        self.directory = Path(directory)
        self.say = _warn if say is None else say
        self._encoder = measures.Encoder()
        self._finished: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
        with self._explained("cannot be opened"):
            self._journals = Journals(self.directory / "journals", self.say, measures.usable)
            remove_left(self.directory / "segments")
            for records in self._records():
                self._note(records)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close; where an error is on its way already, closing adds none."""
        if error is None:
            self.close()
            return
        with contextlib.suppress(StoreError):
            self.close()

    def append(self, records: Sequence[Record]) -> None:
        """Keep finished runs; once this returns, killing this process does not lose them.

        Raises:
            StoreError: They could not be kept, such as on a full disk; all earlier ones are.
        """
        if not records:
            return
        if not self._journals.size:
            self._encoder.begin()
        with self._explained("a finished run could not be kept (all earlier ones are)"):
            try:
                self._journals.append(self._encoder.contents(records))
            except OSError:
                self._encoder.begin()
                raise
        self._note(records)

    def sync(self) -> None:
        """Wait until the disk has every run that was kept; they then outlive a failing machine.

        Raises:
            StoreError: The disk does not take them.
        """
        with self._explained("finished runs may not outlive a failing machine"):
            self._journals.sync()

    def close(self) -> None:
        """Wait until the disk has everything, and let go.

        Raises:
            StoreError: See `sync`.
        """
        try:
            self.sync()
        finally:
            self._journals.close()

    def finished(self, engine: str) -> dict[str, set[int]]:
        """The seeds that are finished, by scenario (SHA-256 in hex), of one engine.

        They are those that were kept as the store was opened, and what this process has added.
        """
        return {scenario: set(seeds) for scenario, seeds in self._finished[engine].items()}

    def runs(self, *patterns: str, engine: str | None = None, with_companions: bool = False) -> pl.DataFrame:
        """Every finished run, and those of its measures whose names meet a pattern.

        A run that two processes did at once is there once.

        Args:
            patterns: Of measures, such as `flows.*.throughput_bps`; without any, all measures.
            engine: What computed the runs, as in the column of that name; None for the runs of all engines.
            with_companions: Add what intervals need beside the measures (`perhop.runs.companions`).

        Returns:
            A row for each run: `scenario` (SHA-256 of its canonical JSON, in hex), `engine`, `seed`, `wall_s`
            (how long it took, in seconds), and a column for each measure, in its unit; NaN where the run has
            no value, null where its scenario has no such measure.

        Raises:
            StoreError: The store cannot be read.
        """
        frames = [pl.DataFrame(schema=_KEYS)]
        with self._explained("cannot be read"):
            for records in self._records():
                alike: dict[tuple[str, ...], list[Record]] = defaultdict(list)
                for record in records:
                    if engine in (None, record.layout.engine):
                        alike[record.layout.metrics].append(record)
                for names, group in alike.items():
                    wanted = (name for _, name in chosen(names, patterns or ("*",)))
                    frames.append(
                        _table(group, [one for one in wanted if with_companions or not is_companion(one)])
                    )
        return pl.concat(frames, how="diagonal").unique(_RUN, keep="first", maintain_order=True)

    def scenarios(self) -> pl.DataFrame:
        """The scenario of each run: `scenario` (SHA-256, as in `runs`) and `json`, its canonical text.

        Raises:
            StoreError: The store cannot be read.
        """
        with self._explained("cannot be read"):
            found = {one.layout.key: one.layout.scenario for records in self._records() for one in records}
        columns = {"scenario": list(found), "json": list(found.values())}
        return pl.DataFrame(columns, dict.fromkeys(columns, pl.String))

    def _records(self) -> Iterator[list[Record]]:
        """Every run that is kept, a file at a time."""
        journals = (
            measures.runs(content for _, content in contents) for _, contents in self._journals.read()
        )
        return chain(segments.read(self.directory, self.say), journals)

    def _note(self, records: Iterable[Record]) -> None:
        for record in records:
            self._finished[record.layout.engine][record.layout.key].add(record.seed)

    @contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        try:
            yield
        except (OSError, pl.exceptions.PolarsError) as error:
            reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
            raise StoreError("store", f"{self.directory}: {what}: {reason}") from None


def _table(records: Sequence[Record], names: Sequence[str]) -> pl.DataFrame:
    """Runs with the same measures, a row each, and the columns of some of these measures."""
    layout = records[0].layout
    values = np.frombuffer(b"".join(record.values for record in records))
    by_name = dict(zip(layout.metrics, values.reshape(len(records), -1).T, strict=True))
    keys = {
        "scenario": [record.layout.key for record in records],
        "engine": [record.layout.engine for record in records],
        "seed": [record.seed for record in records],
        "wall_s": [record.wall_s for record in records],
    }
    return pl.DataFrame(keys, _KEYS).with_columns(
        pl.Series(name, by_name[name], pl.Float64) for name in names
    )


def _warn(text: str) -> None:
    """Tell of a fault where nobody else does."""
    warnings.warn(text.removeprefix("warning: "), PerhopWarning, stacklevel=2)
