"""Keep finished runs, so that interrupted work resumes where it stopped.

    RUNS/
      ID.journal      finished runs as they come, as `perhop.stores.journal` describes; one for each process

Each record is a whole run under its checksum: its key, the digest of the engine that computed it, and what
the engine gave. So a run is found by what is beside it under the same checksum, whatever its file is
called, and bytes that broke are never read.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import struct
import threading
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from perhop import _engine
from perhop.files import filesystem
from perhop.plurals import counted, counted_are
from perhop.stores.journal import ENDING, HEAD_BYTES, Journal, framed, joined, pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_ARRAY = "$array"
_ALIGNMENT = 8
_LEVEL = 1
_LENGTH = struct.Struct("<I")
EARLIER = "*.npz"
"""The files of perhop's versions before the store had records."""
ROTATE_BYTES = 64_000_000
"""A journal that has grown to this is followed by another, so that none is too large to be read at once."""


class RunStore(Protocol):
    """Finished runs by key; all methods may be called from several threads at once."""

    def load(self, key: str) -> dict[str, Any] | None:
        """The run of this key, or None if it is not kept (or no longer readable)."""
        ...

    def reject(self, key: str) -> None:
        """Say that what `load` gave is no whole run; it is computed and saved again."""
        ...

    def save(self, key: str, run: Mapping[str, Any]) -> None:
        """Keep a run; once this returns, a later process finds it whole."""
        ...

    def sync(self) -> None:
        """Wait until the disk has every run that was saved; they then outlive a failing machine."""
        ...


def run_key(scenario: str, seed: int) -> str:
    """What names a run: the canonical scenario, the seed, and the engine that computes it.

    The engine counts by its version and by the bytes of its library, so that runs of another build are never
    taken for this one's.
    """
    text = json.dumps([scenario, seed, _engine.version, engine_digest()])
    return hashlib.sha256(text.encode()).hexdigest()


@functools.cache
def engine_digest() -> str:
    """SHA-256 of the engine's library, in hex: what a run is computed by, to the byte."""
    library = _engine.__file__
    return hashlib.sha256(Path(library).read_bytes()).hexdigest() if library else ""


@dataclass(frozen=True, slots=True)
class Entry:
    """A run's record.

    Attributes:
        packed: What `unpack` takes.
    """

    key: str
    engine: str
    packed: bytes

    def content(self) -> bytes:
        """The record's bytes in a journal."""
        about = json.dumps({"key": self.key, "engine": self.engine}).encode()
        return b"O" + _LENGTH.pack(len(about)) + about + self.packed

    @classmethod
    def of(cls, content: bytes) -> Entry | None:
        """What `content` made; None for a record of another kind, such as a sweep's, or of none."""
        if content[:1] != b"O":
            return None
        begin = 1 + _LENGTH.size
        try:
            end = begin + _LENGTH.unpack_from(content, 1)[0]
            about = json.loads(content[begin:end])
            key, engine = about["key"], about["engine"]
        except (struct.error, ValueError, KeyError, TypeError, RecursionError):
            return None
        return cls(key, engine, content[end:]) if isinstance(key, str) and isinstance(engine, str) else None


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a run's content lies."""

    path: Path
    begin: int
    length: int


class DirectoryStore:
    """Journals of whole runs in a directory; it is for one process at a time."""

    def __init__(self, directory: Path, say: Callable[[str], None]) -> None:
        """Open the store, creating its directory; every record is held against its checksum.

        Args:
            directory: Where it lies.
            say: Receives a sentence about each run that cannot be read, and about runs in an earlier format.

        Raises:
            OSError: The directory cannot be made or read.
        """
        self.directory = directory
        self._say = say
        self._engine = engine_digest()
        self._places: dict[str, _Place] = {}
        self._lock = threading.Lock()
        filesystem.make_directory(directory)
        self._journal = Journal(directory)
        self._open()

    def load(self, key: str) -> dict[str, Any] | None:
        """See `RunStore`. A run that broke since the store was opened is said, and counts as missing."""
        with self._lock:
            place = self._places.get(key)
        if place is None:
            return None
        entry = _read(place)
        if entry is None or entry.key != key or entry.engine != self._engine:
            self._forget(key, f"a run in {place.path} is broken")
            return None
        try:
            return unpack(entry.packed)
        except (ValueError, KeyError, TypeError, SyntaxError, struct.error, zlib.error):
            self.reject(key)
            return None

    def reject(self, key: str) -> None:
        """See `RunStore`."""
        with self._lock:
            place = self._places.get(key)
        if place is not None:
            self._forget(key, f"a run in {place.path} is not whole")

    def save(self, key: str, run: Mapping[str, Any]) -> None:
        """See `RunStore`.

        Raises:
            OSError: It could not be kept, such as on a full disk; all earlier ones are.
        """
        content = Entry(key, self._engine, pack(run)).content()
        with self._lock:
            if self._journal.size > ROTATE_BYTES:
                self._journal.sync()
                self._journal.close()
            begin = self._journal.append([content])
            self._places[key] = _Place(self._journal.path, begin + HEAD_BYTES, len(content))
            self._journal.sync_when_due()

    def sync(self) -> None:
        """See `RunStore`.

        Raises:
            OSError: The disk does not take them.
        """
        with self._lock:
            self._journal.sync()

    def close(self) -> None:
        """Let go of the journal."""
        with self._lock:
            self._journal.close()

    def _forget(self, key: str, why: str) -> None:
        with self._lock:
            self._places.pop(key, None)
        self._say(f"warning: {why}; it is computed again")

    def _open(self) -> None:
        for path in sorted(self.directory.glob(f"*{ENDING}")):
            _take(path, self._add, self._say)
        for left in (*self.directory.glob(".*.new"), *self.directory.glob(filesystem.PARTIAL)):
            _remove_left(left)
        earlier = sum(1 for _ in self.directory.glob(EARLIER))
        if earlier:
            self._say(
                f"{counted(earlier, 'run')} in {self.directory}, in the format of an earlier version, cannot "
                f"be read; `perhop store verify {self.directory} --delete` deletes such runs"
            )

    def _add(self, path: Path, contents: Sequence[tuple[int, bytes]]) -> None:
        for begin, content in contents:
            entry = Entry.of(content)
            if entry is not None and entry.engine == self._engine:
                self._places[entry.key] = _Place(path, begin, len(content))


def _take(
    path: Path,
    add: Callable[[Path, Sequence[tuple[int, bytes]]], None],
    say: Callable[[str], None],
) -> None:
    """Read a journal; one that nobody writes any more is freed of what broke in it."""
    file = filesystem.open_file(path, filesystem.READ)
    try:
        complete = _lock_at_once(file)
        data = path.read_bytes()
        found = pieces(data)
        if not complete or not found.unreadable:
            add(path, found.contents)
            return
        say(
            f"warning: {path}: {found.unreadable} of {len(data)} bytes were not readable, as when a program "
            f"is killed while it writes; {counted_are(len(found.contents), 'finished run')} kept"
        )
        add(path, _mended(path, found.contents))
    finally:
        filesystem.close_file(file)


def _mended(path: Path, contents: Sequence[tuple[int, bytes]]) -> Sequence[tuple[int, bytes]]:
    """Write a journal anew without what broke in it; where its runs are then."""
    whole = [content for _, content in contents]
    try:
        if whole:
            filesystem.atomic_write(path, joined(whole), durable=True)
        else:
            filesystem.remove(path)
    except OSError:
        return contents  # it is read as it is, and repaired when there is room
    return pieces(joined(whole)).contents


def _remove_left(path: Path) -> None:
    """Remove what a writer left that was killed; one that lives holds a lock, or gives it its name."""
    with contextlib.suppress(OSError):
        if is_left(path):
            filesystem.remove(path)


def is_left(path: Path) -> bool:
    """Whether nobody is writing to a journal any more.

    Raises:
        OSError: It cannot be opened.
    """
    file = filesystem.open_file(path, filesystem.READ)
    try:
        return _lock_at_once(file)
    finally:
        filesystem.close_file(file)


def _lock_at_once(file: int) -> bool:
    """Lock a file; False if somebody has it."""
    try:
        filesystem.lock(file, filesystem.EXCLUSIVE | filesystem.AT_ONCE)
    except BlockingIOError:
        return False
    return True


def _read(place: _Place) -> Entry | None:
    """A run's record, held against its checksum again; None if it is not what it was."""
    try:
        with place.path.open("rb") as file:
            file.seek(place.begin - HEAD_BYTES)
            record = file.read(HEAD_BYTES + place.length)
    except OSError:
        return None
    content = record[HEAD_BYTES:]
    return Entry.of(content) if len(content) == place.length and framed(content) == record else None


def pack(run: Mapping[str, Any]) -> bytes:
    """A run as bytes, exact to the last bit: JSON that says where its arrays are, then these, compressed."""
    arrays: list[bytes] = []
    size = 0

    def strip(value: Any) -> Any:  # noqa: ANN401 - any JSON value, or an array
        nonlocal size
        if isinstance(value, np.ndarray):
            data = value.tobytes()
            begin = size
            arrays.append(data + bytes(-len(data) % _ALIGNMENT))
            size += len(arrays[-1])
            return {_ARRAY: [value.dtype.str, list(value.shape), begin]}
        if isinstance(value, dict):
            return {key: strip(entry) for key, entry in value.items()}
        if isinstance(value, list | tuple):
            return [strip(entry) for entry in value]
        return value

    text = json.dumps(strip(run)).encode()
    text += b" " * (-(len(text) + _LENGTH.size) % _ALIGNMENT)
    return zlib.compress(b"".join((_LENGTH.pack(len(text)), text, *arrays)), _LEVEL)


def unpack(packed: bytes) -> dict[str, Any]:
    """The run that `pack` packed.

    Raises:
        ValueError, KeyError, TypeError, SyntaxError, struct.error, zlib.error: These bytes are not a packed
            run; numpy says SyntaxError of an array's type that is none.
    """
    data = bytearray(zlib.decompress(packed))
    begin = _LENGTH.size + _LENGTH.unpack_from(data)[0]

    def filled(value: dict[str, Any]) -> Any:  # noqa: ANN401 - an object, or the array that it encodes
        if _ARRAY not in value:
            return value
        name, shape, offset = value[_ARRAY]
        return np.ndarray(shape, np.dtype(name), data, begin + offset)

    run = json.loads(data[_LENGTH.size : begin], object_hook=filled)
    if not isinstance(run, dict):
        raise TypeError("a packed run is a mapping")
    return run
