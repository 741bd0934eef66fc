"""A file system that fails, shortens, tears, reorders or forgets what commands do to it, by a seed."""

from __future__ import annotations

import errno
import os
import random
import shutil
import threading
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING

from perhop.files.filesystem import FileSystem

if TYPE_CHECKING:
    from pathlib import Path

BLOCK = 512
"""What a disk writes at once, in bytes."""


class Crash(BaseException):
    """The process was killed, or the machine failed: nothing after it happens."""


class Kind(Enum):
    """What goes wrong."""

    ONCE = auto()  # one call fails
    FULL = auto()  # from one call on, the disk has no room: the first write is cut short, then all fail
    DYING = auto()  # from one call on, everything that changes something fails
    SHORT = auto()  # writes take less than they are given and are interrupted; nothing fails
    KILL = auto()  # the process is killed before, in the middle of, or after one call
    POWER = auto()  # the machine fails there: what was not synced is there, in part, in another order, or not


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong, and at which call."""

    kind: Kind
    at: int

    @property
    def crashes(self) -> bool:
        """The process ends there."""
        return self.kind in (Kind.KILL, Kind.POWER)


@dataclass(slots=True, eq=False)
class Node:
    """A file: its content as programs see it, as the disk surely has it, and what happened in between."""

    content: bytearray = field(default_factory=bytearray)
    durable: bytes = b""
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)  # (place, data), (size, None): cut

    def change(self, place: int, data: bytes | None) -> None:
        self.pending.append((place, data))
        _change(self.content, place, data)

    def sync(self) -> None:
        self.durable = bytes(self.content)
        self.pending.clear()

    def after_failure(self, chance: random.Random) -> bytes:
        """What a machine that fails leaves of it."""
        left = bytearray(self.durable)
        for place, data in self.pending:
            fate = chance.random()
            if data is None or fate < 0.4:
                _change(left, place, data)
            elif fate < 0.6:
                _change(left, place, data[: chance.randrange(len(data) + 1)])
            elif fate < 0.7:
                _change(left, place, bytes(len(data)))
            elif fate < 0.8:
                torn = chance.randrange(0, len(data), BLOCK) if data else 0
                _change(left, place, data[:torn] + bytes(len(data) - torn))
        return bytes(left)


def _change(content: bytearray, place: int, data: bytes | None) -> None:
    if data is None:
        del content[place:]
    else:
        content.extend(bytes(max(0, place + len(data) - len(content))))
        content[place : place + len(data)] = data


@dataclass(frozen=True, slots=True)
class Naming:
    """A change of names in a directory: `old` goes, `new` names `node` (None: a directory)."""

    old: Path | None
    new: Path | None
    node: Node | None

    def concerns(self, directory: Path) -> bool:
        return any(path is not None and path.parent == directory for path in (self.old, self.new))

    def apply(self, names: dict[Path, Node | None]) -> None:
        if self.old is not None:
            names.pop(self.old, None)
        if self.new is not None:
            names[self.new] = self.node


@dataclass(slots=True)
class _Open:
    path: Path
    node: Node | None  # None: a directory
    append: bool
    place: int = 0


class FaultyFileSystem(FileSystem):
    """Works on real files below `root`, and remembers what of them the disk is sure to have."""

    def __init__(
        self, root: Path, fault: Fault | None, seed: int, before: FaultyFileSystem | None = None
    ) -> None:
        """A file system on which `fault` happens, or none.

        Args:
            root: Where it is.
            fault: What happens.
            seed: Of its luck.
            before: Whose programs have ended; what these did not sync is not safe yet. None: everything is.
        """
        self.root = root
        self.calls = 0
        self.fault = fault
        self.struck = False
        self._chance = random.Random(seed)  # noqa: S311 - a test's own luck
        self._crashed = False
        self._lock = threading.RLock()
        self._open: dict[int, _Open] = {}
        self._names: dict[Path, Node | None] = {}
        self._naming: list[Naming] = []
        for path in root.rglob("*"):
            self._names[path] = None
            if path.is_file():
                content = path.read_bytes()
                self._names[path] = Node(bytearray(content), content)
        self._durable = dict(self._names)
        if before is not None and not before.failed:
            self._names, self._durable, self._naming = before._names, before._durable, before._naming

    # ------------------------------------------------------------ calls

    def open(self, path: Path, flags: int) -> int:
        path = path.absolute()
        makes = bool(flags & os.O_CREAT) and path not in self._names
        with self._call(refuse=makes):
            file = super().open(path, flags)
            if makes:
                self._rename(Naming(None, path, Node()))
            node = self._names.get(path)
            if node is not None and flags & os.O_TRUNC:
                node.change(0, None)
            self._open[file] = _Open(path, node, bool(flags & os.O_APPEND))
            return file

    def write(self, file: int, data: memoryview) -> int:
        with self._lock:
            whole = bytes(data)
            part = whole[: self._chance.randrange(len(whole) + 1)]
            if self.fault is not None and self.fault.kind is Kind.SHORT:
                self.struck = True
                self._sometimes_interrupt()
                return self._write(file, part or whole[:1])
            torn = self.fault is not None and self.calls + 1 == self.fault.at and self._chance.random() < 0.5
            if torn and self.fault is not None and part and self.fault.kind is not Kind.ONCE:
                # Some of it is written; the process ends there, or the next call fails.
                self.calls += 1
                self.struck = True
                self._write(file, part)
                if self.fault.crashes:
                    self.crash()
                return len(part)
            with self._call():
                return self._write(file, whole)

    def truncate(self, file: int, size: int) -> None:
        with self._call(refuse=self._dying()):
            super().truncate(file, size)
            node = self._open[file].node
            assert node is not None
            node.change(size, None)

    def sync(self, file: int) -> None:
        with self._call():
            opened = self._open[file]
            if opened.node is not None:
                opened.node.sync()
                return
            for naming in [one for one in self._naming if one.concerns(opened.path)]:
                naming.apply(self._durable)
                self._naming.remove(naming)

    def lock(self, file: int, kind: int) -> None:
        with self._lock:
            self._still_there()
            super().lock(file, kind)

    def close(self, file: int) -> None:
        with self._lock:
            self._still_there()
            del self._open[file]
            super().close(file)

    def rename(self, old: Path, new: Path) -> None:
        old, new = old.absolute(), new.absolute()
        with self._call():
            super().rename(old, new)
            below = [path for path in self._names if old in path.parents]
            self._rename(Naming(old, new, self._names[old]))
            for path in below:
                self._rename(Naming(path, new / path.relative_to(old), self._names[path]))

    def link(self, file: Path, name: Path) -> None:
        file, name = file.absolute(), name.absolute()
        with self._call():
            super().link(file, name)
            self._rename(Naming(None, name, self._names[file]))

    def unlink(self, path: Path) -> None:
        path = path.absolute()
        with self._call(refuse=self._dying()):
            super().unlink(path)
            self._rename(Naming(path, None, None))

    def make_directory(self, path: Path) -> None:
        path = path.absolute()
        with self._call():
            super().make_directory(path)
            self._rename(Naming(None, path, None))

    def remove_directory(self, path: Path) -> None:
        path = path.absolute()
        with self._call(refuse=self._dying()):
            super().remove_directory(path)
            self._rename(Naming(path, None, None))

    # ------------------------------------------------------------ faults

    @property
    def failed(self) -> bool:
        """Whether the machine has failed: what is there now is on the disk."""
        return self.fault is not None and self.fault.kind is Kind.POWER and self._crashed

    def end(self) -> None:
        """The process is gone, with its descriptors and locks; after a failure, so is what was not synced."""
        for file in list(self._open):
            os.close(file)
        self._open.clear()
        if self.failed:
            self._fail()

    def _fail(self) -> None:
        names = dict(self._durable)
        for naming in self._naming:
            if self._chance.random() < 0.5:
                naming.apply(names)
        for path in self.root.iterdir():  # not itself: it may be somebody's working directory
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        for path, node in sorted(names.items(), key=lambda entry: len(entry[0].parts)):
            if not path.parent.is_dir():
                continue  # its directory's own name is lost
            if node is None:
                path.mkdir()
            else:
                path.write_bytes(node.after_failure(self._chance))

    def _call(self, *, refuse: bool = True) -> _Call:
        return _Call(self, refuse=refuse)

    def begin(self, *, refuse: bool) -> None:
        """Count a call, and let it fail if it is its turn.

        Args:
            refuse: A full disk refuses it, and a failing one.
        """
        self._still_there()
        self.calls += 1
        fault = self.fault
        if fault is None or self.calls < fault.at:
            return
        if fault.kind is Kind.SHORT:
            self._sometimes_interrupt()
        elif self.calls == fault.at and fault.crashes:
            self.struck = True
            if self._chance.random() < 0.5:
                self.crash()
        elif self.calls == fault.at and fault.kind is Kind.ONCE:
            self.struck = True
            number = self._chance.choice((errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EINTR))
            raise OSError(number, os.strerror(number))
        elif fault.kind in (Kind.FULL, Kind.DYING) and refuse:
            self.struck = True
            number = errno.ENOSPC if fault.kind is Kind.FULL else errno.EIO
            raise OSError(number, os.strerror(number))

    def finish(self) -> None:
        """The call is done, and the process may end after it."""
        if self.fault is not None and self.fault.crashes and self.calls == self.fault.at:
            self.crash()

    def crash(self) -> None:
        """End the process here."""
        self._crashed = True
        raise Crash

    def _still_there(self) -> None:
        if self._crashed:
            raise Crash

    def _dying(self) -> bool:
        return self.fault is not None and self.fault.kind is not Kind.FULL

    def _sometimes_interrupt(self) -> None:
        if self._chance.random() < 0.1:
            self.struck = True
            raise InterruptedError(errno.EINTR, os.strerror(errno.EINTR))

    def _write(self, file: int, data: bytes) -> int:
        self._still_there()
        opened = self._open[file]
        place = opened.place
        if opened.append and opened.node is not None:
            place = len(opened.node.content)
        taken = os.write(file, data)
        assert taken == len(data)
        opened.place = place + taken
        if opened.node is not None:
            opened.node.change(place, data)
        return taken

    def _rename(self, naming: Naming) -> None:
        naming.apply(self._names)
        self._naming.append(naming)


class _Call:
    """What every call that can fail goes through."""

    def __init__(self, system: FaultyFileSystem, *, refuse: bool) -> None:
        self._system, self._refuse = system, refuse

    def __enter__(self) -> None:
        self._system._lock.acquire()
        try:
            self._system.begin(refuse=self._refuse)
        except BaseException:
            self._system._lock.release()
            raise

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._system.finish()
        finally:
            self._system._lock.release()
