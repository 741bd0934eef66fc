"""Journals: finished runs, appended one after the other as they come, each under a checksum.

A journal is `MAGIC` and records. A record is the length of its content (u32), the CRC-32 of that length and
the content (u32), and the content; all little-endian. A scenario's record stands before its first run's: `S`,
then JSON with `number`, `scenario`, `engine` and `metrics`, the names of the measures. A run's is `R`, the
scenario's number (u32), the seed (u64), the wall time in seconds (f64) and the values (f64 each).

Only its writer appends to a journal, and holds a lock on it while it lives; so a journal whose lock is free
is complete, however its writer ended. What a writer was writing as it was killed is a torn tail: its checksum
fails, and it is cut off.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import struct
import time
import uuid
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

MAGIC = b"perhop runs 1\n"
ENDING = ".journal"
SYNC_EVERY_S = 1.0
"""A run that finishes this long after the last sync brings the next: for failing machines, not processes."""
_HEAD = struct.Struct("<II")
_LENGTH = struct.Struct("<I")
_KIND = re.compile(rb"[SR]")
"""What a record's content begins with."""
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
        self._directory = directory
        self._file: int | None = None
        self._numbers: dict[Layout, int] = {}
        self._size = 0
        self._synced_at = 0.0
        self._failed = False

    @property
    def size(self) -> int:
        """Bytes written."""
        return self._size

    def append(self, records: Iterable[Record]) -> None:
        """Write runs, all with one call; once this returns, killing this process does not lose them.

        Raises:
            OSError: They could not be written; the journal ends as it did before.
        """
        known = len(self._numbers)
        data = b"".join(self._encode(record) for record in records)
        try:
            self._write(data)
        except OSError:
            for layout in list(self._numbers)[known:]:
                del self._numbers[layout]
            raise
        if time.monotonic() - self._synced_at > SYNC_EVERY_S:
            self.sync()

    def sync(self) -> None:
        """Wait until the disk has everything.

        Raises:
            OSError: It does not take it.
        """
        if self._file is not None:
            os.fsync(self._file)
        self._synced_at = time.monotonic()

    def close(self) -> None:
        """Let go of the journal; it is complete now."""
        if self._file is not None:
            os.close(self._file)
        self._file = None
        self._numbers.clear()
        self._size = 0

    def _encode(self, record: Record) -> bytes:
        number = self._numbers.get(record.layout)
        head = b""
        if number is None:
            number = self._numbers[record.layout] = len(self._numbers)
            head = framed(_scenario(number, record.layout))
        return head + framed(_run(number, record))

    def _write(self, data: bytes) -> None:
        if self._file is None:
            self._file = self._create()
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(self._file, view) :]
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self._size)
            raise
        self._size += len(data)

    def _create(self) -> int:
        """A new journal; again if somebody who opens the store took the first for one that was left."""
        try:
            return self._create_once()
        except FileNotFoundError:
            return self._create_once()

    def _create_once(self) -> int:
        """A new journal, locked before it has its name: nobody takes it for one that was left after that.

        Raises:
            FileNotFoundError: Somebody did before the lock was ours.
        """
        name = uuid.uuid4().hex
        new, path = (self._directory / f".{name}.new", self._directory / f"{name}{ENDING}")
        file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            os.write(file, MAGIC)
            new.rename(path)
            sync_directory(self._directory)
        except OSError:
            os.close(file)
            new.unlink(missing_ok=True)
            raise
        self._size = len(MAGIC)
        self._synced_at = time.monotonic()
        return file


def encode(records: Sequence[Record]) -> bytes:
    """A whole journal with these runs."""
    numbers: dict[Layout, int] = {}
    parts = [MAGIC]
    for record in records:
        if record.layout not in numbers:
            numbers[record.layout] = len(numbers)
            parts.append(framed(_scenario(numbers[record.layout], record.layout)))
        parts.append(framed(_run(numbers[record.layout], record)))
    return b"".join(parts)


def decode(data: bytes) -> Contents:
    """The runs in a journal's bytes, as far as they can be read.

    A record that is broken in the middle costs that record, whichever of its bytes it is: the next one is
    found by its checksum.
    """
    layouts: dict[int, Layout] = {}
    records = []
    good = len(MAGIC) if data.startswith(MAGIC) else 0
    for content in _contents(data):
        record = _decode(content, layouts)
        if record is False:
            continue
        good += _HEAD.size + len(content)
        if isinstance(record, Record):
            records.append(record)
    return Contents(records, len(data), len(data) - good)


def framed(content: bytes) -> bytes:
    """A record: length, checksum, content."""
    length = _LENGTH.pack(len(content))
    return length + _LENGTH.pack(zlib.crc32(content, zlib.crc32(length))) + content


def _contents(data: bytes) -> Iterator[bytes]:
    """The content of each record whose checksum holds."""
    at = len(MAGIC) if data.startswith(MAGIC) else 0
    while at + _HEAD.size < len(data):
        content = _content(data, at)
        if content is None:
            at = _next(data, at + 1)
        else:
            yield content
            at += _HEAD.size + len(content)


def _content(data: bytes, at: int) -> bytes | None:
    """The content of the record that begins here; None if none does, or its checksum fails."""
    length, checksum = _HEAD.unpack_from(data, at)
    content = data[at + _HEAD.size : at + _HEAD.size + length]
    whole = 0 < length == len(content)
    return (
        content
        if whole and zlib.crc32(content, zlib.crc32(data[at : at + _LENGTH.size])) == checksum
        else None
    )


def _next(data: bytes, first: int) -> int:
    """Where the next record may begin, from `first` on; the end if nowhere."""
    for found in _KIND.finditer(data, first + _HEAD.size):
        at = found.start() - _HEAD.size
        # Looking at the length first keeps a long scan cheap: most bytes are no length of a record.
        if _LENGTH.unpack_from(data, at)[0] <= len(data) - found.start() and _content(data, at) is not None:
            return at
    return len(data)


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


def _decode(content: bytes, layouts: dict[int, Layout]) -> Record | bool:
    """A run; True for a scenario, which is kept in `layouts`; False for a run whose scenario is lost."""
    if content[:1] == b"S":
        known: Mapping[str, object] = json.loads(content[1:])
        names = known["metrics"]
        assert isinstance(names, list)
        layouts[int(str(known["number"]))] = Layout(
            str(known["scenario"]), str(known["engine"]), tuple(names)
        )
        return True
    _, number, seed, wall_s = _RUN.unpack_from(content)
    if number not in layouts:
        return False
    return Record(layouts[number], seed, wall_s, array("d", content[_RUN.size :]))


def sync_directory(path: Path) -> None:
    """Wait until the disk has the names in a directory."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
