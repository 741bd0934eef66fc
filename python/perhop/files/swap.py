"""Replace the files of a report together: whatever fails, it is the old report or the new one, whole.

The new files are written into a directory beside the report's own, which may fail anywhere and changes
nothing, until the disk has them. Then they are moved into place, which takes no room on the disk; a move
that fails is undone with those before it. A command that is killed in between, or whose disk refuses to undo
moves, too, leaves both directories, from which the next one goes on. Each step is on the disk before the next
begins, so that this holds after a power failure, too.
"""

from __future__ import annotations

import contextlib
import errno
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from perhop.errors import PerhopError
from perhop.files import filesystem, inputs
from perhop.files.outputs import claim_directory, refused, write

NEW, OLD = ".perhop-report-new", ".perhop-report-old"
"""Directories of the report to come and of the one replaced. OLD exists once NEW is complete."""
_PLAN = ".plan.json"
"""The file in NEW of names to move and to remove. It goes first when both directories go."""


FILES = ("manifest.json", "report.html", "samples.parquet")
"""The files of a report, beside its plots."""


def claim_report(out: Path, option: str = "--out") -> Path:
    """Claim the directory of a report; the files of an earlier report there may be replaced, no others.

    Raises:
        PerhopError: It cannot be written to, another command writes there, or a file that no report of perhop
            brought has the name of one of a report's.
    """
    claim_directory(out, option)
    theirs = next((name for name in FILES if (out / name).exists()), None)
    if theirs is not None and not (out / NEW).exists() and "perhop" not in _manifest(out):
        raise refused(
            option, f"{out}: has {theirs}, which no earlier --out wrote; give a directory of its own"
        )
    return out


def replace_report(out: Path, files: Mapping[str, bytes | str], *, remove: Iterable[str] = ()) -> None:
    """Write files into a directory and remove others, all or nothing.

    Args:
        out: The directory of the report; its other files stay.
        files: Contents by path within it.
        remove: Files to remove, where they are there.

    Raises:
        PerhopError: A file cannot be written; the directory then holds what it held before, or the message
            says that the next call puts it right.
    """
    new, old = out / NEW, out / OLD
    try:
        _recover(out)
        try:
            _make(new)
            for name, content in files.items():
                _make((new / name).parent)
                write(new / name, content, durable=True)
            plan = {"move": sorted(files), "remove": sorted(set(remove) - files.keys())}
            write(new / _PLAN, json.dumps(plan), durable=True)
            _check(out, files)
            _make(old)
        except BaseException:
            with contextlib.suppress(OSError):
                _forget(out)
            raise
        _commit(out)
        with contextlib.suppress(OSError):
            _forget(out)
    except OSError as error:
        left = "the earlier one is unchanged"
        if _is_begun(out):
            left = f"files of it and of the earlier one may be mixed until the next command with --out {out}"
        raise PerhopError(f"{out}: the report cannot be written: {error.strerror or error}; {left}") from None


def earlier_plots(out: Path) -> list[str]:
    """The plots that the manifest of the report in a directory names, as paths within it."""
    names = _manifest(out).get("plots")
    if not isinstance(names, list):
        return []
    return [
        f"plots/{name}"
        for name in names
        if isinstance(name, str) and Path(name).name == name and Path(name).suffix in {".svg", ".png"}
    ]


def _manifest(out: Path) -> Mapping[str, Any]:
    """The manifest of the report in a directory; empty if there is none."""
    try:
        manifest = out / "manifest.json"
        found = inputs.from_json(manifest.read_bytes(), str(manifest))
    except (OSError, PerhopError):
        return {}
    return found if isinstance(found, dict) else {}


def _check(out: Path, files: Iterable[str]) -> None:
    for name in files:
        if (out / name).is_dir():
            raise PerhopError(f"{out / name}: cannot be written: Is a directory")
        parent = (out / name).parent
        if parent.exists() and not parent.is_dir():
            raise PerhopError(f"{parent}: not a directory; the plots of the report go there")


def _recover(out: Path) -> None:
    """Finish what another command had begun to move; forget what it had not completed."""
    if _is_begun(out):
        _commit(out)
    _forget(out)


def _is_begun(out: Path) -> bool:
    """Whether files may have been moved, and not all of them."""
    return (out / OLD).is_dir() and (out / NEW / _PLAN).exists()


def _commit(out: Path) -> None:
    """Move the new files into place, or undo it, whichever command moved them."""
    plan = json.loads((out / NEW / _PLAN).read_bytes())
    moves, removals = list(map(str, plan["move"])), list(map(str, plan["remove"]))
    places = sorted(
        {(out / top / name).parent for top in ("", NEW, OLD) for name in (*moves, *removals, ".")}
    )
    try:
        for name in (*removals, *(name for name in moves if (out / NEW / name).exists())):
            _set_aside(out, name)
        _sync(places)
        for name in moves:
            _put_in_place(out, name)
        _sync(places)
    except BaseException:
        for name in moves:
            if not (out / NEW / name).exists():
                _move(out / name, out / NEW / name)
        _sync(places)
        for name in (*moves, *removals):
            if (out / OLD / name).exists():
                _move(out / OLD / name, out / name)
        _sync(places)
        with contextlib.suppress(OSError):
            _forget(out)
        for directory in {(out / name).parent for name in moves} - {out}:
            with contextlib.suppress(OSError):
                filesystem.remove_directory(directory)  # where it was made for them, and is empty
        raise


def _sync(places: Iterable[Path]) -> None:
    for place in places:
        if place.is_dir():
            filesystem.sync_directory(place)


def _set_aside(out: Path, name: str) -> None:
    target, old = out / name, out / OLD / name
    if target.exists() and not _stays(target):
        _make(old.parent)
        _move(target, old)


def _put_in_place(out: Path, name: str) -> None:
    target, new = out / name, out / NEW / name
    if not new.exists():
        return  # Another command did it.
    if _stays(target):
        write(target, new.read_bytes())
        return
    _make(target.parent)
    _move(new, target)


def _stays(path: Path) -> bool:
    """Whether this name is of something that is written to and not replaced: a link, a device."""
    return path.is_symlink() or (path.exists() and not path.is_file())


def _make(directory: Path) -> None:
    filesystem.make_directory(directory)


def _move(source: Path, target: Path) -> None:
    try:
        filesystem.rename(source, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        write(target, source.read_bytes())  # `plots` may be a link to another disk
        filesystem.remove(source)


def _forget(out: Path) -> None:
    """Remove both directories; what cannot be removed does no harm without the plan.

    Raises:
        OSError: The plan is still there, so nothing else was removed: nobody could go on from a part of it.
    """
    if (out / NEW / _PLAN).exists():
        filesystem.remove(out / NEW / _PLAN)
        filesystem.sync_directory(out / NEW)
    _remove_tree(out / NEW)
    _remove_tree(out / OLD)


def _remove_tree(directory: Path) -> None:
    for path in sorted(directory.rglob("*"), reverse=True):  # what a directory holds comes before it
        with contextlib.suppress(OSError):
            filesystem.remove_directory(path) if path.is_dir() else filesystem.remove(path)
    with contextlib.suppress(OSError):
        filesystem.remove_directory(directory)
