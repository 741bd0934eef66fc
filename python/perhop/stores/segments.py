"""Segments, which earlier versions made of the journals of sweeps: read, and mended from their second copy.

    segments/ID-SUM.journal.gz              a journal, compressed
    segments/ID-SUM.runs.parquet            its runs in long form: one row a measure
    segments/ID-SUM.scenarios.parquet       its scenarios

SUM is the first 32 hex digits of the SHA-256 of the file's bytes. The compressed journal is what is read; the
other two stand in where it is broken.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import polars as pl

from perhop.files import filesystem
from perhop.plurals import counted_are
from perhop.stores.journal import joined, pieces
from perhop.stores.measures import Encoder, Layout, Record, runs

RUNS, SCENARIOS, ARCHIVE = ENDINGS = (".runs.parquet", ".scenarios.parquet", ".journal.gz")
_SUM_DIGITS = 32


def read(store: Path, say: Callable[[str], None]) -> Iterator[list[Record]]:
    """The runs of each segment of a store.

    A broken archive is moved to `broken/` and made again from its other copy, which is said; so is the loss
    of both.

    Raises:
        OSError: A file cannot be read, moved or written.
    """
    for name in names(store):
        if (archive := whole(store, name, ARCHIVE, lambda path: _set_aside(store, path, say))) is None:
            found = _second_copy(store, name, say)
            if found:
                _write_archive(store, name, found)
                kept = counted_are(len(found), "run")
                say(f"warning: segment {name} was restored from its other copy; {kept} kept")
            yield found
        else:
            yield runs_of(archive)


def names(store: Path) -> list[str]:
    """The names of a store's segments, the oldest first."""
    return sorted({path.name.partition("-")[0] for path in files(store) if path.name.endswith(ENDINGS)})


def files(store: Path) -> list[Path]:
    """The files beside each other in the directory of segments; none where a store never had one."""
    directory = store / "segments"
    return sorted(directory.iterdir()) if directory.is_dir() else []


def whole(store: Path, name: str, ending: str, broken: Callable[[Path], None]) -> bytes | None:
    """The content of a segment's file of this ending; None where no whole one is there.

    Args:
        store: The store.
        name: The segment's.
        ending: One of `ENDINGS`.
        broken: Is called with each file whose content is not what its name says.
    """
    for path in files(store):
        if path.name.startswith(f"{name}-") and path.name.endswith(ending):
            data = path.read_bytes()
            if path.name == _file_name(name, data, ending):
                return data
            broken(path)
    return None


def runs_of(archive: bytes) -> list[Record]:
    """The runs in an archive."""
    return runs(content for _, content in pieces(gzip.decompress(archive)).contents)


def _file_name(name: str, data: bytes, ending: str) -> str:
    return f"{name}-{hashlib.sha256(data).hexdigest()[:_SUM_DIGITS]}{ending}"


def _second_copy(store: Path, name: str, say: Callable[[str], None]) -> list[Record]:
    """The runs in a segment's Parquet files; where these are not both whole, they are set aside."""
    tables = [
        whole(store, name, ending, lambda path: _set_aside(store, path, say)) for ending in (RUNS, SCENARIOS)
    ]
    if tables[0] is None or tables[1] is None:
        for path in files(store):
            if path.name.startswith(f"{name}-"):
                _set_aside(store, path, say)
        say(f"warning: both copies of segment {name} are broken; its runs are computed again")
        return []
    frame, scenarios = (pl.read_parquet(io.BytesIO(table)) for table in tables if table is not None)
    return _records(frame, dict(scenarios.iter_rows()))


def _records(frame: pl.DataFrame, scenarios: dict[str, str]) -> list[Record]:
    """Runs from their long form, in its order."""
    layouts: dict[tuple[str, str, tuple[str, ...]], Layout] = {}
    records = []
    same = ["scenario", "engine", "seed", "wall_s"]
    for (scenario, engine, seed, wall_s), rows in frame.group_by(same, maintain_order=True):
        of = (str(scenario), str(engine), tuple(rows["metric"]))
        layout = layouts.setdefault(of, Layout(scenarios[of[0]], of[1], of[2]))
        records.append(Record(layout, int(str(seed)), float(str(wall_s)), array("d", rows["value"])))
    return records


def _write_archive(store: Path, name: str, records: Sequence[Record]) -> None:
    data = gzip.compress(joined(Encoder().contents(records)), 6, mtime=0)
    filesystem.atomic_write(store / "segments" / _file_name(name, data, ARCHIVE), data, durable=True)


def _set_aside(store: Path, path: Path, say: Callable[[str], None]) -> None:
    place = store / "broken"
    filesystem.make_directory(place)
    with contextlib.suppress(FileNotFoundError):  # another process was first
        filesystem.rename(path, place / path.name)
        say(f"warning: {path} is broken and was moved to {place}")
