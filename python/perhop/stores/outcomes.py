"""Whole outcomes of runs, which `perhop reproduce` keeps: their records, and the store that finds them.

    RUNS/
      ID.journal      finished runs as they come, one journal for each process (`perhop.stores.journal`)

The content of a run's record is `O`, the length of a JSON text (u32), that text with the run's key and the
digest of the engine that computed it, and the run as `pack` makes it. So a run is found by what is beside it
under the same checksum, whatever its file is called, and bytes that broke are never read.
"""

from __future__ import annotations

import functools
import hashlib
import json
import struct
import threading
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from perhop import _engine
from perhop.plurals import counted
from perhop.stores.directory import Journals, Place

_ARRAY = "$array"
_ALIGNMENT = 8
_LEVEL = 1
_LENGTH = struct.Struct("<I")
Unreadable = (ValueError, KeyError, TypeError, SyntaxError, struct.error, zlib.error)
"""Errors of `unpack` for bytes that are no packed run; numpy raises SyntaxError for an unknown type."""
PICTURES = "pictures"
"""The directory of a report's pictures beside its runs (`perhop.show.kept`)."""
STUDIES = "studies"
"""The directory of judged studies beside their runs (`perhop.studies.kept`)."""
EARLIER = "*.npz"
"""The files of perhop's versions before the store had records."""


def run_key(scenario: str, seed: int) -> str:
    """Return the key of a run, of the canonical scenario, the seed, and the engine that computes it.

    The engine counts by its version and by the bytes of its library, so that runs of another build are never
    taken for this one's.
    """
    key = _scenario_hashed(scenario).copy()
    key.update(json.dumps([seed, _engine.version, engine_digest()])[1:].encode())
    return key.hexdigest()


@functools.lru_cache(maxsize=64)
def _scenario_hashed(scenario: str) -> hashlib._Hash:
    """The SHA-256 of the text that `run_key` takes, up to the seed: runs of a scenario have it in common."""
    return hashlib.sha256(f"[{json.dumps(scenario)}, ".encode())


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

    @property
    def is_whole(self) -> bool:
        """Whether `packed` is a run."""
        try:
            unpack(self.packed)
        except Unreadable:
            return False
        return True

    def content(self) -> bytes:
        """The record's bytes in a journal."""
        about = json.dumps({"key": self.key, "engine": self.engine}).encode()
        return b"O" + _LENGTH.pack(len(about)) + about + self.packed

    @classmethod
    def of(cls, content: bytes) -> Entry | None:
        """Return the entry of a record that `content` made; None for a record of another kind."""
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


class DirectoryStore:
    """Finished runs by key, in the journals of a directory; for one process at a time and its threads."""

    def __init__(self, directory: Path, say: Callable[[str], None]) -> None:
        """Open the store, creating its directory; every record is held against its checksum.

        Args:
            directory: Where it lies.
            say: Receives a sentence about each run that cannot be read, and about runs in an earlier format.

        Raises:
            OSError: The directory cannot be made or read.
        """
        self.directory = directory
        self.pictures = directory / PICTURES
        self.studies = directory / STUDIES
        self._say = say
        self._engine = engine_digest()
        self._lock = threading.Lock()
        self._journals = Journals(directory, say)
        self._places: dict[str, Place] = {}
        self._digests: dict[str, bytes] = {}
        for path, contents in self._journals.read():
            for begin, content in contents:
                entry = Entry.of(content)
                if entry is not None and entry.engine == self._engine:
                    self._note(entry.key, Place(path, begin, len(content)), content)
        if earlier := sum(1 for _ in directory.glob(EARLIER)):
            say(
                f"{counted(earlier, 'run')} in {directory}, in the format of an earlier version, cannot be "
                f"read; `perhop store verify {directory} --delete` deletes such runs"
            )

    def digest(self, key: str) -> bytes | None:
        """The SHA-256 of the record of the run of this key, or None if it is not kept."""
        with self._lock:
            return self._digests.get(key)

    def load(self, key: str) -> dict[str, Any] | None:
        """The run of this key, or None if it is not kept.

        A run that broke since the store was opened is said, and counts as missing.
        """
        with self._lock:
            place = self._places.get(key)
        if place is None:
            return None
        content = place.read()
        entry = None if content is None else Entry.of(content)
        if entry is None or entry.key != key or entry.engine != self._engine:
            self._forget(key, f"a run in {place.path} is broken")
            return None
        try:
            return unpack(entry.packed)
        except Unreadable:
            self.reject(key)
            return None

    def reject(self, key: str) -> None:
        """Say that what `load` gave is no whole run; it is computed and saved again."""
        with self._lock:
            place = self._places.get(key)
        if place is not None:
            self._forget(key, f"a run in {place.path} is not whole")

    def save(self, key: str, run: Mapping[str, Any]) -> None:
        """Keep a run; once this returns, a later process finds it whole.

        Raises:
            OSError: It could not be kept, such as on a full disk; all earlier ones are.
        """
        content = Entry(key, self._engine, pack(run)).content()
        with self._lock:
            self._note(key, self._journals.append([content]), content)

    def sync(self) -> None:
        """Wait until the disk has every run that was saved; they then outlive a failing machine.

        Raises:
            OSError: The disk does not take them.
        """
        with self._lock:
            self._journals.sync()

    def close(self) -> None:
        """Let go of the journal."""
        with self._lock:
            self._journals.close()

    def _note(self, key: str, place: Place, content: bytes) -> None:
        self._places[key] = place
        self._digests[key] = hashlib.sha256(content).digest()

    def _forget(self, key: str, why: str) -> None:
        with self._lock:
            self._places.pop(key, None)
            self._digests.pop(key, None)
        self._say(f"warning: {why}; it is computed again")


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
        One of `Unreadable`: These bytes are not a packed run.
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
