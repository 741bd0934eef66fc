"""Replace the files of a report together: whatever fails, it is the old report or the new one, whole.

The new files are written into a directory beside the report's own, which may fail anywhere and changes
nothing, until the disk has them. Then they are moved into place, which takes no room on the disk; a move
that fails is undone with those before it. A command that is killed in between leaves both directories, from
which the next one goes on.
"""

from __future__ import annotations

import contextlib
import errno
import json
from pathlib import Path
from typing import TYPE_CHECKING

from perhop import filesystem
from perhop.errors import PerhopError
from perhop.output.files import write

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

NEW, OLD = ".perhop-report-new", ".perhop-report-old"
"""What is to come, and what was replaced. OLD exists once NEW is complete."""
_REMOVED = ".removed.json"


def replace_report(out: Path, files: Mapping[str, bytes | str], *, remove: Iterable[str] = ()) -> None:
    """Write files into a directory and remove others, all or nothing.

    Args:
        out: The directory of the report; its other files stay.
        files: Contents by path within it.
        remove: Files to remove, where they are there.

    Raises:
        PerhopError: A file cannot be written; the directory then holds what it held before.
    """
    new, old = out / NEW, out / OLD
    try:
        _recover(out)
        try:
            _make(new)
            for name, content in files.items():
                _make((new / name).parent)
                write(new / name, content, durable=True)
            write(new / _REMOVED, json.dumps(sorted(set(remove) - files.keys())), durable=True)
            _check(out, files)
            _make(old)
        except BaseException:
            _remove_tree(new)
            raise
        _commit(out)
    except OSError as error:
        raise PerhopError(
            f"{out}: the report cannot be written: {error.strerror or error}; the earlier one is unchanged"
        ) from None


def earlier_plots(out: Path) -> list[str]:
    """The plots that the manifest of the report in a directory names, as paths within it."""
    try:
        names = json.loads((out / "manifest.json").read_bytes())["plots"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    if not isinstance(names, list):
        return []
    return [
        f"plots/{name}"
        for name in names
        if isinstance(name, str) and Path(name).name == name and Path(name).suffix in {".svg", ".png"}
    ]


def _check(out: Path, files: Iterable[str]) -> None:
    for name in files:
        if (out / name).is_dir():
            raise PerhopError(f"{out / name}: cannot be written: Is a directory")
        parent = (out / name).parent
        if parent.exists() and not parent.is_dir():
            raise PerhopError(f"{parent}: not a directory; the plots of the report go there")


def _recover(out: Path) -> None:
    """Finish what a killed command had begun to move; forget what it had not completed."""
    if (out / OLD).is_dir() and (out / NEW / _REMOVED).exists():  # else all had been moved
        _commit(out)
    _remove_tree(out / NEW)
    _remove_tree(out / OLD)


def _commit(out: Path) -> None:
    """Move the new files into place, or undo it."""
    new, old = out / NEW, out / OLD
    moved: list[tuple[Path, Path]] = []
    made: list[Path] = []
    try:
        removed = [str(name) for name in json.loads((new / _REMOVED).read_bytes())]
        names = sorted(str(path.relative_to(new)) for path in new.rglob("*") if path.is_file())
        for name in (*removed, *(name for name in names if name != _REMOVED)):
            target = out / name
            if _stays(target):
                if (new / name).exists():
                    write(target, (new / name).read_bytes())
                continue
            if target.exists():
                _make((old / name).parent)
                _move(target, old / name, moved)
            if (new / name).exists():
                if not target.parent.exists():
                    _make(target.parent)
                    made.append(target.parent)
                _move(new / name, target, moved)
    except BaseException:
        for source, target in reversed(moved):
            _move(target, source, [])
        for directory in reversed(made):
            filesystem.remove_directory(directory)
        _remove_tree(old)
        _remove_tree(new)
        raise
    _remove_tree(new)
    _remove_tree(old)


def _stays(path: Path) -> bool:
    """Whether this name stands for something that is written to and not replaced: a link, a device."""
    return path.is_symlink() or (path.exists() and not path.is_file())


def _make(directory: Path) -> None:
    filesystem.make_directory(directory)


def _move(source: Path, target: Path, moved: list[tuple[Path, Path]]) -> None:
    try:
        filesystem.rename(source, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        write(target, source.read_bytes())  # `plots` may be a link to another disk
        filesystem.remove(source)
    moved.append((source, target))


def _remove_tree(directory: Path) -> None:
    """Remove what is not needed any more; what cannot be removed does no harm."""
    for path in sorted(directory.rglob("*"), reverse=True):  # what a directory holds comes before it
        with contextlib.suppress(OSError):
            filesystem.remove_directory(path) if path.is_dir() else filesystem.remove(path)
    with contextlib.suppress(OSError):
        filesystem.remove_directory(directory)
