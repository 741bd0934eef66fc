"""A directory of journals: what is whole in them is read, what broke is cut out, and one of them is ours."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from perhop.files import filesystem
from perhop.plurals import counted_are
from perhop.stores.journal import ENDING, HEAD_BYTES, Journal, framed, joined, pieces

Contents = Sequence[tuple[int, bytes]]
"""The contents of records, each with the place in its file where it begins."""
LEFT = (".*.new", filesystem.PARTIAL)
"""Patterns of the names of files that a killed writer leaves."""


@dataclass(frozen=True, slots=True)
class Place:
    """The place where the content of a record lies.

    Attributes:
        begin: The place of its first byte in the file.
        length: Its bytes.
    """

    path: Path
    begin: int
    length: int

    def read(self) -> bytes | None:
        """The content, held against its checksum again; None if it is not what it was."""
        try:
            with self.path.open("rb") as file:
                file.seek(self.begin - HEAD_BYTES)
                record = file.read(HEAD_BYTES + self.length)
        except OSError:
            return None
        content = record[HEAD_BYTES:]
        return content if len(content) == self.length and framed(content) == record else None


class Journals:
    """The journals of a directory, all of which are read, and one of which this process appends to.

    Several processes may use one directory at once.
    """

    def __init__(
        self,
        directory: Path,
        say: Callable[[str], None],
        usable: Callable[[Contents], Contents] = lambda contents: contents,
    ) -> None:
        """Open the directory, creating it.

        Args:
            directory: Where it lies.
            say: Receives a sentence about each journal in which something broke.
            usable: Of the whole records of a journal, those that somebody can use; the others go where a
                journal is mended.

        Raises:
            OSError: The directory cannot be made or read.
        """
        self._directory, self._say, self._usable = directory, say, usable
        filesystem.make_directory(directory)
        self._own = Journal(directory)
        remove_left(directory)

    @property
    def size(self) -> int:
        """The bytes of the journal that is appended to; 0 where the next record begins a new one."""
        return self._own.size

    def read(self) -> Iterator[tuple[Path, Contents]]:
        """The whole records of each journal, the oldest journal first.

        A journal that nobody writes any more is freed of what broke in it, which is said. Where the disk does
        not take the mended journal, the broken one is read as it is.

        Raises:
            OSError: A journal cannot be read.
        """
        for path in sorted(self._directory.glob(f"*{ENDING}")):
            with contextlib.suppress(FileNotFoundError):  # another process found nothing whole in it
                yield path, self._contents(path)

    def append(self, contents: Sequence[bytes]) -> Place:
        """Write records; see `perhop.stores.journal.Journal.append`.

        Returns:
            Where the first of them lies.

        Raises:
            OSError: They could not be kept, such as on a full disk; all earlier ones are.
        """
        path, begin = self._own.append(contents)
        return Place(path, begin + HEAD_BYTES, len(contents[0]))

    def sync(self) -> None:
        """Wait until the disk has every record that was appended; they then outlive a failing machine.

        Raises:
            OSError: The disk does not take them.
        """
        self._own.sync()

    def close(self) -> None:
        """Let go of the journal that is appended to; it is complete now."""
        self._own.close()

    def _contents(self, path: Path) -> Contents:
        with _opened(path) as file:
            complete = _lock_at_once(file)
            data = path.read_bytes()
            found = pieces(data)
            contents = self._usable(found.contents)
            lost = found.unreadable + _bytes(found.contents) - _bytes(contents)
            if not complete or (contents and found.current and not lost):
                return contents
            if lost:
                runs = sum(not content.startswith(b"S") for _, content in contents)
                self._say(
                    f"warning: {path}: {lost} of {len(data)} bytes were not readable, as when a program is "
                    f"killed while it writes; {counted_are(runs, 'finished run')} kept"
                )
            try:
                return rewrite(path, contents)
            except OSError:
                return contents


def _bytes(contents: Contents) -> int:
    return sum(len(content) for _, content in contents)


def rewrite(path: Path, contents: Contents) -> Contents:
    """Write a journal anew with these contents alone, or remove it where there are none.

    Returns:
        The contents with their new places.

    Raises:
        OSError: The disk does not take it; the journal is as it was.
    """
    whole = joined(content for _, content in contents)
    if contents:
        filesystem.atomic_write(path, whole, durable=True)
    else:
        filesystem.remove(path, missing_ok=True)
    return pieces(whole).contents


def remove_left(directory: Path) -> None:
    """Remove what a writer left that was killed; one that lives holds a lock, or gives its file a name."""
    for path in left(directory):
        with contextlib.suppress(OSError):
            if is_complete(path):
                filesystem.remove(path)


def left(directory: Path) -> Iterable[Path]:
    """The files in a directory that a writer may have left that was killed."""
    return sorted(path for pattern in LEFT for path in directory.glob(pattern))


def is_complete(path: Path) -> bool:
    """Whether nobody is writing to a file any more.

    Raises:
        OSError: It cannot be opened.
    """
    with _opened(path) as file:
        return _lock_at_once(file)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    file = filesystem.open_file(path, filesystem.READ)
    try:
        yield file
    finally:
        filesystem.close_file(file)


def _lock_at_once(file: int) -> bool:
    """Lock a file; False if somebody has it."""
    try:
        filesystem.lock(file, filesystem.EXCLUSIVE | filesystem.AT_ONCE)
    except BlockingIOError:
        return False
    return True
