"""Hold every record of a store against its checksum: the runs of `reproduce`, and the store of sweeps."""

from __future__ import annotations

import contextlib
import gzip
import importlib
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from perhop.errors import PerhopError
from perhop.files import filesystem
from perhop.plurals import counted, counted_are
from perhop.stores.journal import ENDING, joined, pieces
from perhop.stores.outcomes import EARLIER, Entry, engine_digest, is_left, unpack

BROKEN, FOREIGN, EARLIER_FORMAT, UNFINISHED = "broken", "foreign", "earlier format", "unfinished"
FAULTS = (BROKEN, FOREIGN)
"""What no command writes; the rest is left by earlier versions and by programs that were killed."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something in a store that is no whole run of this version's."""

    kind: str
    text: str


@dataclass(slots=True)
class Checked:
    """What a store holds.

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
        """One more finding."""
        self.findings.append(Finding(kind, text))


def verify(directory: Path) -> list[Checked]:
    """Check every store in a directory, and change nothing.

    Args:
        directory: A store, or what `perhop reproduce --out` names.

    Raises:
        PerhopError: There is no store, or it cannot be read.
    """
    with _explained(directory):
        checked = [_runs(place) for place in _places(directory, _holds_runs, "runs")]
        return checked + [_sweeps(place) for place in _places(directory, _holds_sweeps, "store")]


def delete(directory: Path, say: Callable[[str], None]) -> None:
    """Remove what no command reads; what broke is repaired where the store has it twice.

    Args:
        directory: As for `verify`.
        say: Receives a sentence about each repair.

    Raises:
        PerhopError: A file cannot be removed.
    """
    with _explained(directory):
        for place in _places(directory, _holds_runs, "runs"):
            for path in place.glob(f"*{ENDING}"):
                _sift(path)
            others = (path for path in place.iterdir() if path.is_file() and path.suffix != ENDING)
            _remove(path for path in others if path.suffix != ".new" or is_left(path))
        for place in _places(directory, _holds_sweeps, "store"):
            sweeps = importlib.import_module("perhop.stores.sweeps")
            sweeps.SweepStore(place, say).close()
            _remove((place / "broken").glob("*"))
            _remove(path for path in (place / "segments").iterdir() if not path.name.endswith(sweeps.ENDINGS))


def _sift(path: Path) -> None:
    """Keep the whole runs of a journal that nobody writes any more."""
    if not is_left(path):
        return
    found = pieces(path.read_bytes())
    entries = [Entry.of(content) for _, content in found.contents]
    runs = [entry.content() for entry in entries if entry is not None and _is_run(entry)]
    if not runs:
        filesystem.remove(path)
    elif found.unreadable or len(runs) < len(entries):
        filesystem.atomic_write(path, joined(runs), durable=True)


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        filesystem.remove(path, missing_ok=True)


def _places(directory: Path, holds: Callable[[Path], bool], below: str) -> list[Path]:
    if not (_holds_runs(directory) or _holds_sweeps(directory)) and not any(
        holds_one(directory / name) for holds_one, name in ((_holds_runs, "runs"), (_holds_sweeps, "store"))
    ):
        raise PerhopError(
            f"{directory}: no store of finished runs; name a directory that `perhop reproduce --out` or "
            "`perhop sweep --store` wrote to"
        )
    return [place for place in (directory, directory / below) if holds(place)]


def _holds_runs(directory: Path) -> bool:
    named = directory.name == "runs" and directory.is_dir()
    return named or any(any(directory.glob(pattern)) for pattern in (f"*{ENDING}", EARLIER))


def _holds_sweeps(directory: Path) -> bool:
    return (directory / "journals").is_dir() and (directory / "segments").is_dir()


def _runs(directory: Path) -> Checked:
    checked = Checked(directory)
    ours = engine_digest()
    for path in sorted(directory.glob(f"*{ENDING}")):
        for entry in map(Entry.of, _contents(checked, path)):
            if entry is None:
                checked.add(FOREIGN, f"{path}: a record that is no run of `perhop reproduce`")
            elif not _is_run(entry):
                checked.add(BROKEN, f"{path}: the run {entry.key} is not whole")
            elif entry.engine == ours:
                checked.whole += 1
            else:
                checked.others += 1
    earlier = sum(1 for _ in directory.glob(EARLIER))
    if earlier:
        checked.add(EARLIER_FORMAT, f"{directory / EARLIER}: {counted(earlier, 'run')}, not read")
    _unfinished(checked, directory)
    _strangers(checked, directory, (f"*{ENDING}", EARLIER, ".*.new", filesystem.PARTIAL))
    return checked


def _is_run(entry: Entry) -> bool:
    try:
        unpack(entry.packed)
    except (ValueError, KeyError, TypeError, SyntaxError, struct.error, zlib.error):
        return False
    return True


def _sweeps(directory: Path) -> Checked:
    journals = importlib.import_module("perhop.stores.sweep_journal")
    ours = importlib.import_module("perhop.sweeps.metrics").engine_id()
    store = importlib.import_module("perhop.stores.sweeps")
    checked = Checked(directory)
    engines: Counter[str] = Counter()
    for path in sorted((directory / "journals").glob(f"*{ENDING}")):
        _contents(checked, path)
        engines.update(record.layout.engine for record in journals.decode(path.read_bytes()).records)
    segments: dict[str, set[str]] = {}
    for ending in store.ENDINGS:
        for path in sorted((directory / "segments").glob(f"*{ending}")):
            endings = segments.setdefault(path.name.partition("-")[0], set())
            if not store.is_whole(path):
                checked.add(BROKEN, f"{path}: its content is not what its name says")
                continue
            endings.add(ending)
            if ending == store.ARCHIVE:
                records = journals.decode(gzip.decompress(path.read_bytes())).records
                engines.update(record.layout.engine for record in records)
    for name, endings in segments.items():
        for ending in store.ENDINGS:
            if ending not in endings and not any((directory / "segments").glob(f"{name}-*{ending}")):
                checked.add(BROKEN, f"{directory / 'segments' / name}: its file *{ending} is missing")
    for path in sorted((directory / "broken").glob("*")):
        checked.add(BROKEN, f"{path}: set aside when the store was opened")
    _unfinished(checked, directory / "journals")
    _unfinished(checked, directory / "segments")
    _strangers(checked, directory / "journals", (f"*{ENDING}", ".*.new"))
    _strangers(checked, directory / "segments", (*(f"*{one}" for one in store.ENDINGS), filesystem.PARTIAL))
    checked.whole = engines.pop(ours, 0)
    checked.others = engines.total()
    return checked


def _contents(checked: Checked, path: Path) -> Iterator[bytes]:
    """The whole records of a journal; what is not is a finding, unless its writer is just writing it."""
    found = pieces(path.read_bytes())
    if found.unreadable and is_left(path):
        broken, whole = counted(found.unreadable, "byte"), counted_are(len(found.contents), "record")
        checked.add(BROKEN, f"{path}: {broken} cannot be read; {whole} whole")
    return (content for _, content in found.contents)


def _unfinished(checked: Checked, directory: Path) -> None:
    for pattern in (".*.new", filesystem.PARTIAL):
        for path in sorted(directory.glob(pattern)):
            if is_left(path):
                checked.add(UNFINISHED, f"{path}: left by a program that was killed")


def _strangers(checked: Checked, directory: Path, known: Iterable[str]) -> None:
    for path in sorted(directory.iterdir()):
        if not any(path.match(pattern) for pattern in known):
            checked.add(FOREIGN, f"{path}: no file of this store")


@contextlib.contextmanager
def _explained(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        where = error.filename or directory
        raise PerhopError(f"{where}: cannot be read or removed: {error.strerror or error}") from None
