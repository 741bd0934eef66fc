"""Every change that perhop makes to a file system, in one place, so that tests can make each of them fail.

The functions below are what the rest of the package uses. They work on a `FileSystem`, by default the
operating system's; tests put one in its place that fails, writes less than it was given, or loses what was
not synced.

On Windows a lock is of one byte far beyond the end of the file, because locks of bytes keep others from
reading them; a shared lock is exclusive there, and names in directories are not synced.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

if sys.platform == "win32":
    import msvcrt

    _ALWAYS = os.O_NOINHERIT | os.O_BINARY
    _TEMPORARY = os.O_TEMPORARY
else:
    import fcntl

    _ALWAYS = os.O_CLOEXEC
    _TEMPORARY = 0

T = TypeVar("T")

READ = os.O_RDONLY
SHARED, EXCLUSIVE, AT_ONCE, UNLOCKED = 1, 2, 4, 8
"""Kinds of locks, as on Linux."""
APPEND = os.O_WRONLY | os.O_APPEND
APPEND_OR_NEW = APPEND | os.O_CREAT
APPEND_NEW = APPEND_OR_NEW | os.O_EXCL
_WHOLE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
_SCRATCH = os.O_RDWR | os.O_CREAT | os.O_TRUNC
_LOCKED_BYTE = 1 << 62
_WAIT_S = 0.05
_WITHOUT_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
"""Errors of file systems without hard links; Linux gives EPERM."""
PARTIAL = ".*.partial"
"""The names of files that `atomic_write` has not finished, as a pattern."""
_PARTIAL = re.compile(r"\..+\.\d+-\d+\.partial")


class FileSystem:
    """The operating system's calls, each as it is; all raise `OSError`."""

    def open(self, path: Path, flags: int) -> int:
        """A descriptor, closed in programs that this one starts."""
        return os.open(path, flags | _ALWAYS, 0o666)

    def write(self, file: int, data: memoryview) -> int:
        """Return how many bytes were taken, perhaps fewer than there are."""
        return os.write(file, data)

    def truncate(self, file: int, size: int) -> None:
        """Cut a file to a size."""
        os.ftruncate(file, size)

    def sync(self, file: int) -> None:
        """Wait until the disk has a file's content, or a directory's names."""
        os.fsync(file)

    def lock(self, file: int, kind: int) -> None:
        """`EXCLUSIVE`, `SHARED` (perhaps with `AT_ONCE`) or `UNLOCKED`, as when the descriptor is closed."""
        if sys.platform == "win32":
            _lock_byte(file, kind)
        else:
            fcntl.flock(file, kind)

    def close(self, file: int) -> None:
        """Let go of a descriptor."""
        os.close(file)

    def rename(self, old: Path, new: Path) -> None:
        """Give a file its new name, in place of the file that has it."""
        os.replace(old, new)  # noqa: PTH105 - one call, one line

    def link(self, file: Path, name: Path) -> None:
        """Give a file one more name, which nobody has."""
        os.link(file, name)

    def unlink(self, path: Path) -> None:
        """Remove a name."""
        os.unlink(path)  # noqa: PTH108

    def make_directory(self, path: Path) -> None:
        """Make one directory."""
        os.mkdir(path)  # noqa: PTH102

    def remove_directory(self, path: Path) -> None:
        """Remove an empty directory."""
        os.rmdir(path)  # noqa: PTH106


if sys.platform == "win32":

    def _lock_byte(file: int, kind: int) -> None:
        place = os.lseek(file, 0, os.SEEK_CUR)
        os.lseek(file, _LOCKED_BYTE, os.SEEK_SET)
        try:
            with contextlib.suppress(OSError):  # there was none
                msvcrt.locking(file, msvcrt.LK_UNLCK, 1)
            while kind != UNLOCKED:
                try:
                    msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
                except PermissionError as problem:
                    if kind & AT_ONCE:
                        raise BlockingIOError(problem.errno, problem.strerror) from problem
                    time.sleep(_WAIT_S)
                else:
                    return
        finally:
            os.lseek(file, place, os.SEEK_SET)


_system = FileSystem()


@contextmanager
def replaced(system: FileSystem) -> Iterator[None]:
    """Use another file system meanwhile."""
    global _system  # noqa: PLW0603 - that there is exactly one is the point
    before, _system = _system, system
    try:
        yield
    finally:
        _system = before


def open_file(path: Path, flags: int) -> int:
    """A descriptor, to be closed with `close_file`."""
    return _patiently(lambda: _system.open(path, flags))


def close_file(file: int) -> None:
    """Let go of a descriptor.

    Raises:
        OSError: What was written did not arrive, as some network file systems say only now.
    """
    # The descriptor is gone even where a signal interrupts the call.
    with contextlib.suppress(InterruptedError):
        _system.close(file)


def write_all(file: int, data: bytes) -> None:
    """Write everything, in as many calls as it takes."""
    view = memoryview(data)
    while view:
        left = view
        view = view[_patiently(lambda left=left: _system.write(file, left)) :]  # type: ignore[misc]


def truncate(file: int, size: int) -> None:
    """Cut a file to a size."""
    _patiently(lambda: _system.truncate(file, size))


def sync(file: int) -> None:
    """Wait until the disk has a file's content, or a directory's names."""
    _patiently(lambda: _system.sync(file))


def lock(file: int, kind: int) -> None:
    """Lock a file until it is closed, in place of an earlier lock by the same descriptor; or unlock it.

    Raises:
        BlockingIOError: With `AT_ONCE`, somebody else has it.
    """
    _patiently(lambda: _system.lock(file, kind))


def rename(old: Path, new: Path) -> None:
    """Give a file its new name, in place of the file that has it."""
    _patiently(lambda: _system.rename(old, new))


def remove(path: Path, *, missing_ok: bool = False) -> None:
    """Remove a file."""
    with contextlib.suppress(*([FileNotFoundError] if missing_ok else [])):
        _patiently(lambda: _system.unlink(path))


def remove_directory(path: Path) -> None:
    """Remove an empty directory."""
    _patiently(lambda: _system.remove_directory(path))


def make_directory(path: Path) -> None:
    """Make a directory and those that it lies in, as far as they are missing; they survive a power failure.

    Raises:
        FileExistsError, NotADirectoryError: Something of that name is no directory.
    """
    missing = []
    place = path
    while not place.exists():
        missing.append(place)
        place = place.parent
    if not place.is_dir():
        raise FileExistsError(17, os.strerror(17), str(place))
    # A command that failed may have made it and not come to sync its name.
    with contextlib.suppress(PermissionError):
        sync_directory(place.parent)
    for place in reversed(missing):
        try:
            _patiently(lambda place=place: _system.make_directory(place))  # type: ignore[misc]
        except FileExistsError:
            if not place.is_dir():
                raise
        # Without its name in the directory above, all that is in it would be lost.
        sync_directory(place.parent)


def sync_directory(path: Path) -> None:
    """Wait until the disk has the names in a directory; Windows has no call for that."""
    if sys.platform == "win32":
        return
    file = open_file(path, READ)
    try:
        sync(file)
    finally:
        close_file(file)


def atomic_write(path: Path, data: bytes, *, durable: bool = False) -> None:
    """Write a whole file under its name at once, or leave what was there.

    Args:
        path: Its name.
        data: Its content.
        durable: Wait until the disk has it, so that it outlives a failing machine.

    Raises:
        OSError: The directory is missing or not writable, or the disk is full.
    """
    temporary = _partial(path)
    try:
        _write_whole(temporary, data, durable=durable)
        rename(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            remove(temporary)
        raise
    if durable:
        sync_directory(path.parent)


def write_new(path: Path, data: bytes) -> None:
    """Write a whole file at once under a name that nobody has, and wait until the disk has it.

    A failure leaves none. On file systems without hard links a process that is killed may leave part of it.

    Raises:
        FileExistsError: Somebody has it, and it is left as it is.
        OSError: The directory is missing or not writable, or the disk is full.
    """
    temporary = _partial(path)
    try:
        _write_whole(temporary, data, durable=True)
        try:
            _patiently(lambda: _system.link(temporary, path))
        except OSError as problem:
            if problem.errno not in _WITHOUT_LINKS:
                raise
            _write_under_its_name(path, data)
    finally:
        with contextlib.suppress(OSError):
            remove(temporary)
    try:
        sync_directory(path.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            remove(path)
        raise


def _write_under_its_name(path: Path, data: bytes) -> None:
    file = open_file(path, APPEND_NEW)
    try:
        try:
            write_all(file, data)
            sync(file)
        finally:
            close_file(file)
    except BaseException:
        with contextlib.suppress(OSError):
            remove(path)
        raise


def write_folder(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write new files into a folder, all of them or none; a folder that is missing appears with them.

    Raises:
        FileExistsError: There is a file of one of the names, and it is left as it is.
        OSError: The folder cannot be made or written to, or the disk is full.
    """
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    place = _partial(folder.absolute()) if missing else folder
    made = [place, *missing[1:]] if missing else []
    written: list[Path] = []
    try:
        make_directory(place)
        for name, content in contents.items():
            if missing:
                atomic_write(place / name, content, durable=True)
            else:
                write_new(place / name, content)
            written.append(place / name)
        if missing:
            rename(place, folder)
            written, made[0] = [folder / name for name in contents], folder
            sync_directory(folder.parent)
    except BaseException:
        for file in written:
            with contextlib.suppress(OSError):
                remove(file)
        for empty in made:
            with contextlib.suppress(OSError):
                remove_directory(empty)
        raise


@contextmanager
def appearing(path: Path) -> Iterator[Callable[[bytes], None]]:
    """A file that is written piece by piece, and has its name once the block has ended without an error.

    Raises:
        OSError: The directory is missing or not writable, or the disk is full.
    """
    temporary = _partial(path)
    try:
        file = open_file(temporary, _WHOLE)
        try:
            yield lambda data: write_all(file, data)
        except BaseException:
            with contextlib.suppress(OSError):
                close_file(file)
            raise
        close_file(file)
        rename(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            remove(temporary)
        raise


@contextmanager
def scratch(beside: Path) -> Iterator[int]:
    """The descriptor of a file without a name, to be written and read; the file goes with the block.

    Raises:
        OSError: The directory is missing or not writable.
    """
    temporary = _partial(beside.with_name(f"{beside.name}.scratch"))
    file = open_file(temporary, _SCRATCH | _TEMPORARY)
    try:
        if sys.platform != "win32":  # there it goes as it is closed
            remove(temporary)
        yield file
    finally:
        with contextlib.suppress(OSError):
            close_file(file)


def _partial(path: Path) -> Path:
    """Under which name a file is written."""
    return path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.partial")


def is_partial(path: Path) -> bool:
    """Whether this is a name that `atomic_write` gives to what is not whole yet."""
    return _PARTIAL.fullmatch(path.name) is not None


def _write_whole(path: Path, data: bytes, *, durable: bool) -> None:
    file = open_file(path, _WHOLE)
    try:
        write_all(file, data)
        if durable:
            sync(file)
    except BaseException:
        with contextlib.suppress(OSError):
            close_file(file)
        raise
    close_file(file)


def _patiently(call: Callable[[], T]) -> T:
    """Repeat a call that a signal interrupted; Python does so for some calls, and not for all."""
    while True:
        try:
            return call()
        except InterruptedError:
            continue
