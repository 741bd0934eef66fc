"""Places of results: checked before the work begins, and files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import json
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from perhop import _engine
from perhop.errors import PerhopError
from perhop.files import filesystem
from perhop.files.filesystem import atomic_write

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

STDOUT = Path("-")
_STDOUT_NAMES = frozenset({Path("/dev/stdout"), Path("/dev/fd/1"), Path("/proc/self/fd/1")})


def prepare_directory(path: Path, option: str = "--out") -> Path:
    """Make the directory if it is missing and prove that files can be written to it.

    Raises:
        PerhopError: It cannot be made or written to.
    """
    try:
        filesystem.make_directory(path)
        probe = path / ".perhop-write-test"
        atomic_write(probe, b"")
        filesystem.remove(probe, missing_ok=True)  # another command may have removed it
    except FileNotFoundError:
        raise PerhopError(
            f"{option} {path}: cannot be created: {path.parent} takes no new files; choose another place"
        ) from None
    except (FileExistsError, NotADirectoryError):
        raise PerhopError(f"{option} {path}: not a directory; choose another place for the results") from None
    except (OSError, ValueError) as error:
        raise PerhopError(f"{option} {path}: cannot be written to: {_reason(error)}") from None
    return path


_claimed: dict[tuple[int, int], int] = {}
"""The directories that this process has locked, by device and inode, and the descriptors that hold them."""
_made: list[Path] = []
"""The directories that were missing when this process claimed them, each before those that it lies in."""


def claim_directory(path: Path, option: str = "--out") -> Path:
    """`prepare_directory`, and keep other commands out until this process ends, however it does.

    Where the file system has no locks, such as some network file systems, nobody is kept out.

    Raises:
        PerhopError: It cannot be made or written to, or another command writes there.
    """
    missing = [place for place in (path.absolute(), *path.absolute().parents) if not place.exists()]
    prepare_directory(path, option)
    try:
        file = filesystem.open_file(path, filesystem.READ)
    except OSError as error:
        raise PerhopError(f"{option} {path}: cannot be read: {_reason(error)}") from None
    status = os.fstat(file)
    place = (status.st_dev, status.st_ino)
    if place in _claimed:
        filesystem.close_file(file)
        return path
    try:
        filesystem.lock(file, filesystem.EXCLUSIVE | filesystem.AT_ONCE)
    except BlockingIOError:
        filesystem.close_file(file)
        raise PerhopError(
            f"{option} {path}: another perhop command is writing there; wait until it has ended, or choose "
            "another place"
        ) from None
    except OSError:
        filesystem.close_file(file)
        return path
    _claimed[place] = file
    _made.extend(missing)
    _remove_left(path)
    return path


def _remove_left(directory: Path) -> None:
    """Remove what commands that were killed left half-written; nobody else writes here now."""
    for left in (*directory.glob(filesystem.PARTIAL), *directory.glob(f"*/{filesystem.PARTIAL}")):
        if filesystem.is_partial(left):
            with contextlib.suppress(OSError):
                filesystem.remove(left)


def remove_unused() -> None:
    """Remove the directories that this process has made and that are empty: the command has failed."""
    while _made:
        with contextlib.suppress(OSError):
            filesystem.remove_directory(_made.pop(0))


def release_directories() -> None:
    """Let others write to what this process has claimed."""
    _made.clear()
    while _claimed:
        filesystem.close_file(_claimed.popitem()[1])


def prepare_file(path: Path, option: str = "--json", reads: Sequence[Path] = ()) -> Path:
    """Prove, before the work begins, that a file can be written under this name; "-" is standard output.

    `reads` are the files that the command reads: none of them is written over.

    What is no regular file (a device, a named pipe) is not opened yet: that could wait for a reader, or end
    what it reads.

    Returns:
        The name to hand to `write`; `STDOUT` for any name of standard output.

    Raises:
        PerhopError: It names a directory, a socket or a file that the command reads, or it or its directory
            is missing or not writable.
    """
    if path == STDOUT or path in _STDOUT_NAMES:
        return STDOUT
    try:
        if path.is_file() and any(read.is_file() and path.samefile(read) for read in reads):
            raise PerhopError(f"{option} {path}: is a file that this command reads; give another name")
        if path.is_dir():
            raise PerhopError(f"{option} {path}: is a directory; give a file name, or - for standard output")
        if path.is_socket():
            raise PerhopError(f"{option} {path}: is a socket; give a file name, or - for standard output")
        if _in_place(path):
            if not os.access(path, os.W_OK):
                raise PerhopError(f"{option} {path}: cannot be written: Permission denied")
            return path
        target = path.resolve()
        probe = target.with_name(f".{target.name}.write-test")
        atomic_write(probe, b"")
        filesystem.remove(probe)
    except (OSError, ValueError) as error:
        raise PerhopError(f"{option} {path}: cannot be written: {_reason(error)}") from None
    return path


def write(path: Path, data: bytes | str, *, durable: bool = False) -> None:
    """Write a whole file at once, or leave what was there; a symbolic link keeps pointing to it.

    With `durable` it waits until the disk has the file. What is no regular file (a device, a named pipe,
    `/dev/fd/N`) is never replaced: it is opened and written to.

    Raises:
        PerhopError: It cannot be written.
    """
    content = data.encode() if isinstance(data, str) else data
    try:
        if _in_place(path):
            _write_in_place(path, content)
        else:
            atomic_write(path.resolve(), content, durable=durable)
    except OSError as error:
        raise PerhopError(f"{path}: cannot be written: {_reason(error)}") from None


class Written:
    """The result of a command, which can write the report that the command writes.

    Attributes:
        COMMAND: The command, such as `perhop sweep`.
    """

    __slots__ = ()
    COMMAND: ClassVar[str]

    def write(self, folder: Path | str, command: str = "", jobs: int = 1) -> None:
        """Write what the command writes with `--out`: a report that opens offline, pictures and samples.

        Args:
            folder: Where; an earlier report there is replaced as a whole.
            command: The command that the report names as its origin; `COMMAND` if it is not given.
            jobs: How many cores draw.

        Raises:
            PerhopError: A file cannot be written.
        """
        self._write(claim_directory(Path(folder)), command or self.COMMAND, jobs)

    def _write(self, place: Path, command: str, jobs: int) -> None:
        """Write the report into a folder that is claimed."""
        raise NotImplementedError


def manifest(command: str, scenarios: Sequence[str], plots: Sequence[str]) -> str:
    """Return the origin of a report's files as JSON: version, command, plots, scenarios with seeds.

    Args:
        command: What to type for the same files.
        scenarios: As `manifest_entry` writes them.
        plots: Names of files.
    """
    content = {"perhop": _engine.version, "command": command, "plots": list(plots), "scenarios": []}
    head = json.dumps(content, indent=1, ensure_ascii=False).removesuffix("[]\n}")
    entries = "[\n" + ",\n".join(scenarios) + "\n ]" if scenarios else "[]"
    return f"{head}{entries}\n}}\n"


def manifest_entry(scenario: Mapping[str, Any]) -> str:
    """A scenario and its seeds as they stand in a manifest; most of the work of writing one."""
    text = json.dumps(scenario, indent=1, ensure_ascii=False)
    return "\n".join(f"  {line}" for line in text.split("\n"))


def _write_in_place(path: Path, content: bytes) -> None:
    file = filesystem.open_file(path, filesystem.APPEND)
    try:
        filesystem.write_all(file, content)
    finally:
        filesystem.close_file(file)


def _in_place(path: Path) -> bool:
    """Whether this name is of something that must not be replaced by a new file."""
    if path.is_relative_to("/dev") or path.is_relative_to("/proc"):
        return path.exists()
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        return False


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
