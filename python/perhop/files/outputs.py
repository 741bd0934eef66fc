"""Places of results: checked before the work begins, and files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import stat
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from perhop import _engine
from perhop.errors import ArgumentError, PerhopError
from perhop.files import filesystem, inputs
from perhop.files.filesystem import atomic_write

STDOUT = Path("-")
_STDOUT_NAMES = frozenset({Path("/dev/stdout"), Path("/dev/fd/1"), Path("/proc/self/fd/1")})


def prepare_directory(path: Path, option: str = "--out") -> Path:
    """Make the directory if it is missing and prove that files can be written to it.

    Raises:
        PerhopError: It cannot be made or written to, or it is `-`, which means standard output.
    """
    if path == STDOUT:
        raise refused(option, "-: standard output takes no folder; name one, such as `results`")
    try:
        filesystem.make_directory(path)
        probe = path / ".perhop-write-test"
        atomic_write(probe, b"")
        filesystem.remove(probe, missing_ok=True)  # another command may have removed it
    except FileNotFoundError:
        raise refused(
            option, f"{path}: cannot be created: {path.parent} takes no new files; choose another place"
        ) from None
    except (FileExistsError, NotADirectoryError):
        raise refused(option, f"{path}: not a directory; choose another place for the results") from None
    except (OSError, ValueError) as error:
        raise refused(option, f"{path}: cannot be written to: {_reason(error)}") from None
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
        raise refused(option, f"{path}: cannot be read: {_reason(error)}") from None
    status = os.fstat(file)
    place = (status.st_dev, status.st_ino)
    if place in _claimed:
        filesystem.close_file(file)
        return path
    try:
        filesystem.lock(file, filesystem.EXCLUSIVE | filesystem.AT_ONCE)
    except BlockingIOError:
        filesystem.close_file(file)
        raise refused(
            option,
            f"{path}: another perhop command is writing there; wait until it has ended, or choose "
            "another place",
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


def prepare_file(
    path: Path, option: str = "--json", reads: Sequence[Path] = (), endings: Sequence[str] = ()
) -> Path:
    """Prove, before the work begins, that a file can be written under this name; "-" is standard output.

    What is no regular file (a device, a named pipe) is not opened yet: that could wait for a reader, or end
    what it reads.

    Args:
        path: The name.
        option: The option, or the argument in Python, that it was given by, for messages.
        reads: The files that the command reads: none of them is written over, nor a file that they name, nor
            a module of Python that is loaded.
        endings: Of names that say the format; others are refused, and standard output is.

    Returns:
        The name to hand to `write`; `STDOUT` for any name of standard output.

    Raises:
        PerhopError: It names a directory, a socket or a file that the command reads, it or its directory is
            missing or not writable, or it has another ending.
    """
    if _is_stdout(path) and not endings:
        return STDOUT
    try:
        if path.is_file() and _is_read(path, reads):
            raise refused(option, f"{path}: is a file that this command reads; give another name")
        if endings and path.suffix not in endings:
            raise refused(option, f"{path}: name a file that ends in {' or '.join(endings)}")
        if path.is_dir():
            raise refused(option, f"{path}: is a directory; give a file name, or - for standard output")
        if path.is_socket():
            raise refused(option, f"{path}: is a socket; give a file name, or - for standard output")
        if _in_place(path):
            if not os.access(path, os.W_OK):
                raise refused(option, f"{path}: cannot be written: Permission denied")
            return path
        target = path.resolve()
        probe = target.with_name(f".{target.name}.write-test")
        atomic_write(probe, b"")
        filesystem.remove(probe)
    except (OSError, ValueError) as error:
        raise refused(option, f"{path}: cannot be written: {_reason(error)}") from None
    return path


def refused(option: str, says: str) -> PerhopError:
    """The error of a place that an option of the command line names, or an argument in Python."""
    return PerhopError(f"{option} {says}") if option.startswith("--") else ArgumentError(option, says)


def apart(
    files: Mapping[str, Path | None],
    folders: Mapping[str, Path | None] | None = None,
    is_written: Callable[[str, Path], bool] = lambda _option, _name: True,
) -> None:
    """Refuse, before the work begins, places of results of which one would replace another.

    Args:
        files: The files that a command writes, by the option that names each.
        folders: The folders into which it writes.
        is_written: Whether it may write a name, relative to the folder that an option names.

    Raises:
        PerhopError: Two options name one file, or a file lies where a folder's contents are written.
    """
    named = {option: path for option, path in files.items() if path is not None}
    for (one, path), (other, second) in itertools.combinations(named.items(), 2):
        if _is_stdout(path) and _is_stdout(second):
            raise PerhopError(f"{one} - and {other} - both mean standard output; give one of them a file")
        if _real(path) == _real(second) and not _in_place(path):
            raise PerhopError(f"{one} and {other} both name {path}; give each a file of its own")
    for (option, path), (other, folder) in itertools.product(named.items(), (folders or {}).items()):
        if folder is None or _is_stdout(path):
            continue
        place, around = _real(path), _real(folder)
        inside = place.relative_to(around) if place.is_relative_to(around) else None
        if inside is not None and (not inside.parts or is_written(other, inside)):
            raise PerhopError(f"{option} {path}: is where {other} {folder} writes; give it another name")


def _is_read(path: Path, reads: Sequence[Path]) -> bool:
    """Whether a file is read by the command: directly, by its name in another one, or as a module."""
    named = (file for read in reads for file in (read, *inputs.named_by(read)))
    modules = (getattr(module, "__file__", None) for module in tuple(sys.modules.values()))
    return any(file.is_file() and path.samefile(file) for file in named) or os.path.realpath(path) in {
        os.path.realpath(file) for file in modules if file is not None
    }


def _is_stdout(path: Path) -> bool:
    return path == STDOUT or path in _STDOUT_NAMES


def _real(path: Path) -> Path:
    """The file that a name leads to, through links; the name itself where the system does not know it."""
    with contextlib.suppress(OSError, ValueError):
        return Path(os.path.realpath(path))
    return path.absolute()


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
