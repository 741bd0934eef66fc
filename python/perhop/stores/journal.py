"""The format of stores: finished runs as records, appended one after the other, each under a checksum.

A journal is `MAGIC`, which holds the format's version, and records. A record is the length of its content
(u32), the first 16 bytes of the SHA-256 of that length and the content, and the content; all little-endian.
The content's first byte says what it is: `O` is a whole outcome (`perhop.stores.outcomes`), `S` a scenario
and `R` the measures of one of its runs (`perhop.stores.measures`). Journals of version 1, which had a CRC-32
in place of the SHA-256, are read, too.

Only its writer appends to a journal, and holds a lock on it while it lives; so a journal whose lock is free
is complete, however its writer ended. What a writer was writing as it was killed is a torn tail: its checksum
fails, and it is cut off.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import struct
import time
import uuid
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from perhop.files import filesystem
from perhop.files.filesystem import sync_directory

MAGIC = b"perhop runs 2\n"
ENDING = ".journal"
SYNC_EVERY_S = 1.0
"""A run that finishes this long after the last sync brings the next: for failing machines, not processes."""
ROTATE_BYTES = 64_000_000
"""A journal that has grown to this is followed by another, so that none is too large to be read at once."""
_LENGTH = struct.Struct("<I")
_KIND = re.compile(rb"[SRO]")
"""The first byte of a record's content."""


@dataclass(frozen=True, slots=True)
class _Framing:
    """The framing of one version of the format: content under a checksum."""

    magic: bytes
    digest_bytes: int
    digest: Callable[[bytes, bytes], bytes]

    @property
    def head(self) -> int:
        return _LENGTH.size + self.digest_bytes


def _sha256(length: bytes, content: bytes) -> bytes:
    found = hashlib.sha256(length)
    found.update(content)
    return found.digest()[:16]


def _crc32(length: bytes, content: bytes) -> bytes:
    return _LENGTH.pack(zlib.crc32(content, zlib.crc32(length)))


_NOW = _Framing(MAGIC, 16, _sha256)
_BEFORE = _Framing(b"perhop runs 1\n", 4, _crc32)
HEAD_BYTES = _NOW.head
"""A record's length without its content."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """The readable part of a journal.

    Attributes:
        contents: Of each whole record, and where in the file it begins.
        unreadable: Bytes whose checksum fails, records cut short included.
        current: The journal has this version's format.
    """

    contents: Sequence[tuple[int, bytes]]
    unreadable: int
    current: bool


class Journal:
    """Appends records to a journal of its own; the file appears with the first of them."""

    def __init__(self, directory: Path) -> None:
        """A writer into this directory, which must exist."""
        self._directory = directory
        self._file: int | None = None
        self._path = directory
        self._size = 0
        self._synced_at = 0.0

    @property
    def size(self) -> int:
        """Bytes written; 0 where a new file begins with the next record."""
        return self._size

    def append(self, contents: Iterable[bytes]) -> tuple[Path, int]:
        """Write records, all with one call; once this returns, killing this process does not lose them.

        The disk has them for certain about a second later, if more are written then, or after `sync`.

        Returns:
            The file, and where in it the first of them begins.

        Raises:
            OSError: They could not be written, and the journal ends as it did before; or the disk does not
                take what was written.
        """
        data = b"".join(map(framed, contents))
        if self._file is None:
            self._file = self._create()
        path, begin = self._path, self._size
        try:
            filesystem.write_all(self._file, data)
        except OSError:
            self._take_back()
            raise
        self._size += len(data)
        if self._size > ROTATE_BYTES:
            self.sync()
            self.close()
        elif time.monotonic() - self._synced_at > SYNC_EVERY_S:
            self.sync()
        return path, begin

    def sync(self) -> None:
        """Wait until the disk has everything.

        Raises:
            OSError: It does not take it.
        """
        if self._file is not None:
            filesystem.sync(self._file)
        self._synced_at = time.monotonic()

    def close(self) -> None:
        """Let go of the journal; it is complete now."""
        file, self._file, self._size = self._file, None, 0
        if file is not None:
            filesystem.close_file(file)

    def _take_back(self) -> None:
        """Cut off what was written in part; a journal that refuses even this is left as it is."""
        assert self._file is not None
        try:
            filesystem.truncate(self._file, self._size)
        except OSError:
            with contextlib.suppress(OSError):
                self.close()

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
        # Names sort by age: of two records of the same run, the later one counts.
        name = f"{time.time_ns():016x}{uuid.uuid4().hex[:16]}"
        new, path = (self._directory / f".{name}.new", self._directory / f"{name}{ENDING}")
        file = filesystem.open_file(new, filesystem.APPEND_NEW)
        try:
            filesystem.lock(file, filesystem.EXCLUSIVE)
            filesystem.write_all(file, MAGIC)
            filesystem.rename(new, path)
            sync_directory(self._directory)
        except OSError:
            with contextlib.suppress(OSError):
                filesystem.close_file(file)
            with contextlib.suppress(OSError):
                filesystem.remove(new)
            raise
        self._path = path
        self._size = len(MAGIC)
        self._synced_at = time.monotonic()
        return file


def framed(content: bytes) -> bytes:
    """A record: length, checksum, content."""
    length = _LENGTH.pack(len(content))
    return length + _NOW.digest(length, content) + content


def joined(contents: Iterable[bytes]) -> bytes:
    """A whole journal with these records."""
    return b"".join((MAGIC, *map(framed, contents)))


def pieces(data: bytes) -> Pieces:
    """The records in a journal's bytes, as far as they can be read.

    A record that is broken in the middle costs that record, whichever of its bytes it is: the next one is
    found by its checksum.
    """
    for framing in (_NOW, _BEFORE):
        if data.startswith(framing.magic):
            return _pieces(data, framing, len(framing.magic))
    # The bytes that say the version are broken themselves.
    found = _pieces(data, _NOW, 0)
    return found if found.contents else _pieces(data, _BEFORE, 0)


def _pieces(data: bytes, framing: _Framing, start: int) -> Pieces:
    contents = list(_contents(data, framing, start))
    good = start + sum(framing.head + len(content) for _, content in contents)
    return Pieces(contents, len(data) - good, framing is _NOW)


def _contents(data: bytes, framing: _Framing, at: int) -> Iterator[tuple[int, bytes]]:
    while at + framing.head < len(data):
        content = _content(data, framing, at)
        if content is None:
            at = _next(data, framing, at + 1)
        else:
            yield at + framing.head, content
            at += framing.head + len(content)


def _content(data: bytes, framing: _Framing, at: int) -> bytes | None:
    """The content of the record that begins here; None if none does, or its checksum fails."""
    (length,) = _LENGTH.unpack_from(data, at)
    content = data[at + framing.head : at + framing.head + length]
    if not 0 < length == len(content):
        return None
    stated = data[at + _LENGTH.size : at + framing.head]
    return content if framing.digest(data[at : at + _LENGTH.size], content) == stated else None


def _next(data: bytes, framing: _Framing, first: int) -> int:
    """Return the place at which the next record may begin, from `first` on; the end if nowhere."""
    for found in _KIND.finditer(data, first + framing.head):
        at = found.start() - framing.head
        # Looking at the length first keeps a long scan cheap: most bytes are no length of a record.
        if (
            _LENGTH.unpack_from(data, at)[0] <= len(data) - found.start()
            and _content(data, framing, at) is not None
        ):
            return at
    return len(data)
