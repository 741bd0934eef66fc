"""The store of sweeps: a directory in which every finished run lies twice, each copy under its checksum.

    STORE/
      journals/ID.journal                     runs as they finish, one journal for each process that writes
      segments/ID-SUM.runs.parquet            what a complete journal holds, in long form: one row a measure
      segments/ID-SUM.scenarios.parquet       its scenarios
      segments/ID-SUM.journal.gz              the journal itself, compressed
      broken/                                 files whose checksum failed
      lock                                    held while segments change

SUM is the SHA-256 of the file's bytes (its first 32 hex digits). When a store is opened, complete journals
become segments, and every file is held against its sum: one that is broken is moved to `broken/` and made
again from its twin. A journal goes only after its segment has been read back. Nothing is changed in place.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import os
import tempfile
import warnings
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
import polars as pl

from perhop import extras
from perhop.errors import PerhopError, PerhopWarning
from perhop.files import filesystem
from perhop.files.filesystem import AT_ONCE, EXCLUSIVE, SHARED, atomic_write, sync_directory
from perhop.plurals import counted_are
from perhop.stores.companions import PATTERN, meets, with_companions
from perhop.stores.journal import ENDING
from perhop.stores.sweep_journal import Contents, JournalWriter, Layout, Record, decode, encode

try:
    import duckdb
except ImportError:
    raise extras.STORE.missing from None

if TYPE_CHECKING:
    from types import TracebackType

RUNS, SCENARIOS, ARCHIVE = ".runs.parquet", ".scenarios.parquet", ".journal.gz"
ENDINGS = (RUNS, SCENARIOS, ARCHIVE)
SUM_DIGITS = 32
ROTATE_BYTES = 64_000_000
"""A journal that has grown to this becomes a segment while its writer goes on with a new one."""
VIEWS = {"kept": RUNS, "scenarios": SCENARIOS}
EMPTY = {
    "kept": "CREATE TABLE kept "
    "(scenario VARCHAR, engine VARCHAR, seed UBIGINT, wall_s DOUBLE, metric VARCHAR, value DOUBLE)",
    "scenarios": "CREATE TABLE scenarios (scenario VARCHAR, json VARCHAR)",
}


class StoreError(PerhopError):
    """The store cannot be written to or read, such as on a full disk; what it holds stays."""


class SweepStore:
    """Finished runs by scenario, seed and engine; several processes may use one store at once.

    Attributes:
        directory: Where it lies.
        say: Receives a sentence about kept runs where there is something to know.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with SweepStore(folder) as store, store.connect() as database:
    ...         database.execute("SELECT count(*) FROM runs").fetchone()
    (0,)
    """

    def __init__(self, directory: str | os.PathLike[str], say: Callable[[str], None] | None = None) -> None:
        """Open the store, creating it; complete journals become segments, and every file is checked.

        Args:
            directory: Where it lies.
            say: Receives a sentence about each broken file; without it, a `PerhopWarning` has it.

        Raises:
            StoreError: It cannot be made, read or repaired, or `directory` is no path.
        """
        if not isinstance(directory, str | os.PathLike):
            raise StoreError(f"directory: is a path such as 'results/store', not {directory!r}")
        self.directory = directory = Path(directory)
        self._journals = directory / "journals"
        self._segments = directory / "segments"
        self.say = _warn if say is None else say
        with self._explained("cannot be opened"):
            for place in (self._journals, self._segments):
                filesystem.make_directory(place)
            self._writer = JournalWriter(self._journals)
            self._lock_file = _LockFile(directory / "lock")
            try:
                with self._lock(EXCLUSIVE):
                    self._compact()
                    self._check()
            except BaseException:
                self._lock_file.close()
                raise

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
        with self._explained("a finished run could not be kept (all earlier ones are)"):
            self._writer.append(records)
            if self._writer.size > ROTATE_BYTES:
                self.seal()

    def seal(self) -> None:
        """Make what this process has written so far a segment.

        Raises:
            StoreError: The disk does not take it; the journal stays, and becomes a segment later.
        """
        with self._explained("finished runs could not be moved into a segment; their journal stays"):
            if self._writer.size:
                self._writer.sync()
                self._writer.close()
            with self._lock(EXCLUSIVE):
                self._compact()

    def close(self) -> None:
        """Make what was written a segment, and let go.

        Raises:
            StoreError: See `seal`.
        """
        try:
            self.seal()
        finally:
            self._writer.close()
            self._lock_file.close()

    def finished(self, engine: str) -> dict[str, set[int]]:
        """The seeds that are finished, by scenario (SHA-256 in hex), of one engine.

        Raises:
            StoreError: The store cannot be read.
        """
        found: defaultdict[str, set[int]] = defaultdict(set)
        with self.connect() as database:
            rows = database.execute(
                "SELECT scenario, list(DISTINCT seed) FROM runs WHERE engine = ? GROUP BY scenario", [engine]
            ).fetchall()
        for scenario, seeds in rows:
            found[scenario].update(seeds)
        return found

    def values(self, engine: str, patterns: Sequence[str]) -> dict[str, dict[int, dict[str, float]]]:
        """The metrics that meet a pattern and their companions: by scenario (SHA-256 in hex), seed and name.

        Args:
            engine: Of which engine.
            patterns: Of metrics, such as `flows.*.throughput_bps`.

        Raises:
            StoreError: The store cannot be read.
        """
        found: dict[str, dict[int, dict[str, float]]] = {}
        with self.connect() as database:
            names = [name for (name,) in database.execute("SELECT DISTINCT metric FROM kept").fetchall()]
            chosen = sorted(with_companions([name for name in names if meets(name, patterns)], names))
            rows = database.execute(
                "SELECT scenario, seed, metric, value FROM kept "
                "WHERE engine = ? AND list_contains(?::VARCHAR[], metric)",
                [engine, chosen],
            ).fetchall()
        for scenario, seed, metric, value in rows:
            found.setdefault(scenario, {}).setdefault(seed, {})[metric] = value
        return found

    @contextmanager
    def connect(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """In a `with` block: a DuckDB connection with the views `runs` and `scenarios` of all finished runs.

        `runs`: `scenario` (SHA-256 of its canonical JSON, hex), `engine`, `seed`, `wall_s`, `metric`,
        `value` (NaN where the run has none); a run that two processes did at once is there twice.
        `scenarios`: `scenario`, `json`. `kept`: as `runs`, with the companions of the measures
        (`perhop.stores.companions`), which intervals need.

        Raises:
            StoreError: The store cannot be read.
        """
        with (
            self._explained("cannot be read"),
            tempfile.TemporaryDirectory(prefix="perhop-") as scratch,
            duckdb.connect() as database,
            self._lock(SHARED),
        ):
            _views(database, self._parquet_files(Path(scratch)))
            yield database

    def _parquet_files(self, scratch: Path) -> Mapping[str, Sequence[Path]]:
        """The segments, and in the scratch directory what lies in journals still."""
        files = {ending: sorted(self._segments.glob(f"*{ending}")) for ending in (RUNS, SCENARIOS)}
        for journal in sorted(self._journals.glob(f"*{ENDING}")):
            records = decode(journal.read_bytes()).records
            if records:
                for ending, frame in _frames(records).items():
                    path = scratch / f"{journal.stem}{ending}"
                    frame.write_parquet(path)
                    files[ending].append(path)
        return files

    def _compact(self) -> None:
        """Make segments of all journals whose writers are gone; the lock is ours."""
        for path in sorted(self._journals.glob(f"*{ENDING}")):
            with path.open("rb") as file:
                try:
                    filesystem.lock(file.fileno(), EXCLUSIVE | AT_ONCE)
                except BlockingIOError:
                    continue  # its writer lives
                contents = decode(file.read())
                self._tell(path, contents)
                if contents.records:
                    self._make(path.stem, contents.records)
                filesystem.remove(path)
        for partial in self._segments.glob(filesystem.PARTIAL):
            filesystem.remove(partial)
        for left in self._journals.glob(".*.new"):
            # A writer that lives gives its new journal its name, or takes the lock, at any moment.
            with contextlib.suppress(FileNotFoundError, BlockingIOError), left.open("rb") as file:
                filesystem.lock(file.fileno(), EXCLUSIVE | AT_ONCE)
                filesystem.remove(left)

    def _tell(self, path: Path, contents: Contents) -> None:
        if contents.unreadable:
            kept = counted_are(len(contents.records), "finished run")
            self.say(
                f"warning: {path}: {contents.unreadable} of {contents.size} bytes were not readable, as when "
                f"a program is killed while it writes; {kept} kept"
            )

    def _make(self, name: str, records: Sequence[Record], endings: Sequence[str] = ENDINGS) -> None:
        """Write the files of a segment and read them back.

        Raises:
            OSError: The disk does not take them, or gives back something else.
        """
        frames = _frames(records)
        for ending in endings:
            data = (
                gzip.compress(encode(records), 6, mtime=0) if ending == ARCHIVE else _parquet(frames[ending])
            )
            path = self._segments / f"{name}-{_sum(data)}{ending}"
            atomic_write(path, data, durable=True)
            if not is_whole(path):
                raise OSError(f"{path} does not read as it was written")
        sync_directory(self._segments)

    def _check(self) -> None:
        """Hold every file against its sum, and make broken or missing ones again; the lock is ours."""
        segments: defaultdict[str, dict[str, Path]] = defaultdict(dict)
        for path in sorted(self._segments.iterdir()):
            ending = next((one for one in ENDINGS if path.name.endswith(one)), None)
            if ending is None:
                continue
            name = path.name.partition("-")[0]
            if not is_whole(path):
                self._set_aside(path)
                segments[name] |= {}
            elif ending in segments[name]:
                filesystem.remove(
                    path
                )  # written by another version of a library before a compaction was cut short
            else:
                segments[name][ending] = path
        for name, files in segments.items():
            missing = [ending for ending in ENDINGS if ending not in files]
            if missing:
                self._mend(name, files, missing)

    def _set_aside(self, path: Path) -> None:
        place = self.directory / "broken"
        filesystem.make_directory(place)
        filesystem.rename(path, place / path.name)
        self.say(f"warning: {path} is broken and was moved to {place}")

    def _mend(self, name: str, files: Mapping[str, Path], missing: Sequence[str]) -> None:
        """Make the missing files of a segment from those that are left."""
        if ARCHIVE in files:
            records = decode(gzip.decompress(files[ARCHIVE].read_bytes())).records
        elif RUNS in files and SCENARIOS in files:
            records = _records(pl.read_parquet(files[RUNS]), pl.read_parquet(files[SCENARIOS]))
        else:
            for path in files.values():
                self._set_aside(path)
            self.say(f"warning: both copies of segment {name} are broken; its runs are computed again")
            return
        self._make(name, records, missing)
        kept = counted_are(len(records), "run")
        self.say(f"warning: segment {name} was restored from its other copy; {kept} kept")

    def _lock(self, kind: int) -> _Held:
        return _Held(self._lock_file, kind)

    @contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        try:
            yield
        except (OSError, duckdb.Error, pl.exceptions.PolarsError) as error:
            reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
            raise StoreError(f"--store {self.directory}: {what}: {reason}") from None


def _warn(text: str) -> None:
    """Tell of a broken file where nobody else does."""
    warnings.warn(text.removeprefix("warning: "), PerhopWarning, stacklevel=2)


class _LockFile:
    """The file that a store locks, always by the same descriptor while the store is open.

    Ctrl-C may come between any two steps, so that a lock is not released. Closing the store then takes the
    lock again: by another descriptor it would wait for itself.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None

    def lock(self, kind: int) -> None:
        """Lock the file."""
        if self._file is None:
            self._file = filesystem.open_file(self._path, filesystem.APPEND_OR_NEW)
        filesystem.lock(self._file, kind)

    def unlock(self) -> None:
        """Unlock the file, if it is open."""
        if self._file is not None:
            filesystem.lock(self._file, filesystem.UNLOCKED)

    def close(self) -> None:
        """Close the file, which unlocks it."""
        if self._file is not None:
            file, self._file = self._file, None
            filesystem.close_file(file)


class _Held:
    """A lock of a file, held for a while."""

    def __init__(self, file: _LockFile, kind: int) -> None:
        self._file, self._kind = file, kind

    def __enter__(self) -> None:
        self._file.lock(self._kind)

    def __exit__(self, *_error: object) -> None:
        self._file.unlock()


def _views(database: duckdb.DuckDBPyConnection, files: Mapping[str, Sequence[Path]]) -> None:
    for view, ending in VIEWS.items():
        if files[ending]:
            rows = database.read_parquet([str(path) for path in files[ending]])
            (rows.distinct() if view == "scenarios" else rows).create_view(view)
        else:
            database.execute(EMPTY[view])
    database.execute(
        f"CREATE VIEW runs AS SELECT * FROM kept WHERE NOT regexp_matches(metric, '{PATTERN}')"  # noqa: S608
    )


def _frames(records: Sequence[Record]) -> dict[str, pl.DataFrame]:
    """Runs in long form, in their order, and their scenarios."""
    keys = {record.layout: _key(record.layout.scenario) for record in records}
    counts = np.array([len(record.values) for record in records])
    whose = pl.Series(np.repeat(np.arange(len(records)), counts))
    runs = pl.DataFrame(
        {
            "scenario": pl.Series([keys[record.layout] for record in records], dtype=pl.String)[whose],
            "engine": pl.Series([record.layout.engine for record in records], dtype=pl.String)[whose],
            "seed": pl.Series([record.seed for record in records], dtype=pl.UInt64)[whose],
            "wall_s": pl.Series([record.wall_s for record in records], dtype=pl.Float64)[whose],
            "metric": pl.Series(
                [name for record in records for name in record.layout.metrics], dtype=pl.String
            ),
            "value": pl.Series(np.concatenate([record.values for record in records]), dtype=pl.Float64),
        }
    )
    scenarios = {keys[layout]: layout.scenario for layout in keys}
    texts = pl.DataFrame(
        {"scenario": list(scenarios), "json": list(scenarios.values())},
        schema={"scenario": pl.String, "json": pl.String},
    )
    return {RUNS: runs, SCENARIOS: texts}


def _records(runs: pl.DataFrame, scenarios: pl.DataFrame) -> list[Record]:
    """What `_frames` made frames of."""
    texts = dict(scenarios.iter_rows())
    same = ["scenario", "engine", "seed", "wall_s"]
    layouts: dict[tuple[str, str, tuple[str, ...]], Layout] = {}
    records = []
    for (scenario, engine, seed, wall_s), rows in runs.group_by(same, maintain_order=True):
        name = (str(scenario), str(engine), tuple(rows["metric"]))
        layout = layouts.setdefault(name, Layout(texts[scenario], name[1], name[2]))
        records.append(Record(layout, int(str(seed)), float(str(wall_s)), array("d", rows["value"])))
    return records


def _key(scenario: str) -> str:
    return hashlib.sha256(scenario.encode()).hexdigest()


def _parquet(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


def _sum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:SUM_DIGITS]


def is_whole(path: Path) -> bool:
    """Whether a file's bytes are those that its name says."""
    stated = path.name.partition("-")[2].partition(".")[0]
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:SUM_DIGITS] == stated
    except OSError:
        return False
