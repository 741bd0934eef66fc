"""Hold every record of a store against its checksum: the runs of `reproduce`, and the store of sweeps."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from perhop.errors import PerhopError
from perhop.files import filesystem
from perhop.plurals import counted, counted_are
from perhop.stores import measures, segments
from perhop.stores.directory import LEFT, is_complete, left, rewrite
from perhop.stores.journal import ENDING, pieces
from perhop.stores.metrics import engine_id
from perhop.stores.outcomes import EARLIER, PICTURES, STUDIES, Entry, engine_digest
from perhop.stores.sweeps import SweepStore

BROKEN, FOREIGN, EARLIER_FORMAT, UNFINISHED = "broken", "foreign", "earlier format", "unfinished"
FAULTS = (BROKEN, FOREIGN)
"""Findings that no command writes; others come from earlier versions and from killed programs."""
OTHERWISE = "its content is not what its name says"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something in a store that is no whole run of this version's."""

    kind: str
    text: str


@dataclass(slots=True)
class Checked:
    """The contents of a store.

    Attributes:
        whole: Runs of this engine that can be read.
        others: Whole runs of other engines, which stay and are not used.
    """

    directory: Path
    whole: int = 0
    others: int = 0
    findings: list[Finding] = field(default_factory=list)

    @property
    def faulty(self) -> bool:
        """Whether something is broken, or does not belong here."""
        return any(found.kind in FAULTS for found in self.findings)

    def add(self, kind: str, text: str) -> None:
        """Add a finding."""
        self.findings.append(Finding(kind, text))

    def count(self, engine: str, ours: str) -> None:
        """Count a whole run, by the engine that computed it."""
        self.whole += engine == ours
        self.others += engine != ours


def verify(directory: Path) -> list[Checked]:
    """Check every store in a directory, and change nothing.

    Args:
        directory: A store, or what `perhop reproduce --out` names.

    Raises:
        PerhopError: There is no store, or it cannot be read.
    """
    with _explained(directory):
        return [check(place) for place, check, _ in _stores(directory)]


def delete(directory: Path, say: Callable[[str], None]) -> None:
    """Remove what no command reads; what broke is repaired where the store has it twice.

    Args:
        directory: As for `verify`.
        say: Receives a sentence about each repair.

    Raises:
        PerhopError: A file cannot be removed.
    """
    with _explained(directory):
        for place, _, clean in _stores(directory):
            clean(place, say)


Store = tuple[Path, Callable[[Path], Checked], Callable[[Path, Callable[[str], None]], None]]
"""A store's folder, its checker, and the function that removes files that no command reads."""


def _stores(directory: Path) -> list[Store]:
    found: list[Store] = [
        *((place, _runs, _clean_runs) for place in (directory, directory / "runs") if _holds_runs(place)),
        *(
            (place, _sweeps, _clean_sweeps)
            for place in (directory, directory / "store")
            if _holds_sweeps(place)
        ),
    ]
    if not found:
        raise PerhopError(
            f"{directory}: no store of finished runs; name a directory that `perhop reproduce --out` or "
            "`perhop sweep --store` wrote to"
        )
    return found


def _holds_runs(directory: Path) -> bool:
    named = directory.name == "runs" and directory.is_dir()
    return named or any(any(directory.glob(pattern)) for pattern in (f"*{ENDING}", EARLIER))


def _holds_sweeps(directory: Path) -> bool:
    return (directory / "journals").is_dir()


def _runs(directory: Path) -> Checked:
    checked = Checked(directory)
    for path, contents in _journals(checked, directory):
        for entry in map(Entry.of, contents):
            if entry is None:
                checked.add(FOREIGN, f"{path}: a record that is no run of `perhop reproduce`")
            elif not entry.is_whole:
                checked.add(BROKEN, f"{path}: the run {entry.key} is not whole")
            else:
                checked.count(entry.engine, engine_digest())
    if earlier := sum(1 for _ in directory.glob(EARLIER)):
        checked.add(EARLIER_FORMAT, f"{directory / EARLIER}: {counted(earlier, 'run')}, not read")
    _others(checked, directory, (f"*{ENDING}", EARLIER, PICTURES, STUDIES))
    return checked


def _sweeps(store: Path) -> Checked:
    checked = Checked(store)
    archives = [path for path in segments.files(store) if path.name.endswith(segments.ARCHIVE)]
    runs = [measures.runs(contents) for _, contents in _journals(checked, store / "journals")]
    for name in segments.names(store):
        whole = [
            segments.whole(store, name, ending, lambda path: checked.add(BROKEN, f"{path}: {OTHERWISE}"))
            for ending in segments.ENDINGS
        ]
        runs += [segments.runs_of(archive) for archive in whole[-1:] if archive is not None]
        if not any(path.name.startswith(f"{name}-") for path in archives):
            checked.add(BROKEN, f"{store / 'segments' / name}: its file *{segments.ARCHIVE} is missing")
    for run in chain.from_iterable(runs):
        checked.count(run.layout.engine, engine_id())
    for path in sorted((store / "broken").glob("*")):
        checked.add(BROKEN, f"{path}: set aside when the store was opened")
    _others(checked, store / "journals", (f"*{ENDING}",))
    _others(checked, store / "segments", [f"*{one}" for one in segments.ENDINGS])
    return checked


def _journals(checked: Checked, directory: Path) -> Iterator[tuple[Path, list[bytes]]]:
    """The whole records of each journal; what is not is a finding, unless its writer is just writing it."""
    for path in sorted(directory.glob(f"*{ENDING}")):
        found = pieces(path.read_bytes())
        if found.unreadable and is_complete(path):
            broken, whole = counted(found.unreadable, "byte"), counted_are(len(found.contents), "record")
            checked.add(BROKEN, f"{path}: {broken} cannot be read; {whole} whole")
        yield path, [content for _, content in found.contents]


def _others(checked: Checked, directory: Path, known: Iterable[str]) -> None:
    """Add what killed programs left in a directory, and what does not belong there."""
    for path in left(directory):
        if is_complete(path):
            checked.add(UNFINISHED, f"{path}: left by a program that was killed")
    for path in sorted(directory.glob("*")):
        if not any(path.match(pattern) for pattern in (*known, *LEFT)):
            checked.add(FOREIGN, f"{path}: no file of this store")


def _clean_runs(directory: Path, _say: Callable[[str], None]) -> None:
    for path in directory.iterdir():
        if not path.is_file() or not is_complete(path):
            continue
        if path.suffix != ENDING:
            filesystem.remove(path, missing_ok=True)
            continue
        found = pieces(path.read_bytes())
        entries = ((place, Entry.of(place[1])) for place in found.contents)
        runs = [place for place, entry in entries if entry is not None and entry.is_whole]
        if found.unreadable or len(runs) < len(found.contents):
            rewrite(path, runs)


def _clean_sweeps(store: Path, say: Callable[[str], None]) -> None:
    SweepStore(store, say).close()
    for name in segments.names(store):
        for ending in segments.ENDINGS:
            segments.whole(store, name, ending, lambda path: filesystem.remove(path, missing_ok=True))
    known = (ENDING, *segments.ENDINGS)
    for path in (*(store / "journals").iterdir(), *segments.files(store), *(store / "broken").glob("*")):
        if path.parent.name == "broken" or (not path.name.endswith(known) and is_complete(path)):
            filesystem.remove(path, missing_ok=True)


@contextlib.contextmanager
def _explained(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        where = error.filename or directory
        raise PerhopError(f"{where}: cannot be read or removed: {error.strerror or error}") from None
