"""Every change of the file system goes through one module; nobody writes where another command does."""

from __future__ import annotations

import ast
import errno
import os
import re
import signal
import struct
import subprocess
import sys
import zlib
from array import array
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import perhop
from perhop.errors import PerhopError
from perhop.files import outputs
from perhop.files.filesystem import (
    FileSystem,
    atomic_write,
    make_directory,
    remove,
    remove_directory,
    replaced,
)
from perhop.stores.journal import HEAD_BYTES, MAGIC, Journal, Pieces, framed, joined, pieces
from perhop.stores.measures import Layout, Record
from perhop.stores.sweeps import SweepStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.python.conftest import Finished

PACKAGE = Path(perhop.__file__).parent
ALLOWED = {
    ("files/filesystem.py", "*"): "the one place",
    ("processes/forks.py", "os.write"): "to a pipe of its parent, before it ends",
    ("commands/terminal.py", "os.open"): "opens the null device",
    ("commands/entry.py", "os.open"): "opens the null device",
    ("commands/entry.py", "open"): "likewise",
    ("commands/entry.py", "os.write"): "to standard error, since nothing else is loaded",
    ("processes/interrupts.py", "os.write"): "to standard error, since nothing else may be loaded",
    ("rerunning/__init__.py", "rename"): "columns of a data frame",
    ("rerunning/manifest.py", "replace"): "values of a data frame",
    ("sets.py", "replace"): "values of a data frame",
}
METHODS = {
    *(
        "write_text",
        "write_bytes",
        "unlink",
        "rename",
        "mkdir",
        "rmdir",
        "touch",
        "symlink_to",
        "hardlink_to",
    ),
    *("savez", "savez_compressed", "tofile", "TemporaryDirectory", "NamedTemporaryFile", "TemporaryFile"),
    *("mkstemp", "mkdtemp"),
}
OF_OS = {
    *(
        "open",
        "write",
        "pwrite",
        "replace",
        "rename",
        "remove",
        "unlink",
        "link",
        "symlink",
        "mkdir",
        "makedirs",
    ),
    *("rmdir", "removedirs", "truncate", "ftruncate", "fsync", "fdatasync", "sync"),
}
INTO_BUFFERS = {"write_parquet", "savefig"}


def writes(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The calls that change a file system, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = written(node)
            if name is not None:
                yield node.lineno, name


def written(call: ast.Call) -> str | None:
    """The name of a call if it changes a file system."""
    if isinstance(call.func, ast.Name):
        return "open" if call.func.id == "open" and for_writing(call) else None
    if not isinstance(call.func, ast.Attribute):
        return None
    name, of = call.func.attr, call.func.value
    whose = of.id if isinstance(of, ast.Name) else ""
    if (whose == "os" and name in OF_OS) or (
        whose == "shutil" and name not in ("get_terminal_size", "which")
    ):
        return f"{whose}.{name}"
    changes = (
        (name in METHODS and whose not in ("filesystem", "_system"))
        or (name == "open" and for_writing(call))
        or (name == "replace" and len(call.args) == 1 and not call.keywords)
        or (name in INTO_BUFFERS and not into_a_buffer(call))
    )
    return name if changes else None


def for_writing(call: ast.Call) -> bool:
    values = (*call.args, *(word.value for word in call.keywords))
    texts = [one.value for one in values if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    return any(text.strip("bt+") in ("w", "a", "x") or text == "r+b" for text in texts)


def into_a_buffer(call: ast.Call) -> bool:
    return bool(call.args) and isinstance(call.args[0], ast.Name) and call.args[0].id == "buffer"


def test_nothing_writes_past_the_one_module() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{line}: {name}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for line, name in writes(ast.parse(path.read_text(encoding="utf-8")))
        if not any((str(path.relative_to(PACKAGE)), one) in ALLOWED for one in (name, "*"))
    ]
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        'Path("x").write_text("")',
        'open("x", "w")',
        'Path("x").open(mode="ab")',
        'os.replace("a", "b")',
        "path.replace(other)",
        'shutil.rmtree("x")',
        "frame.write_parquet(path)",
        "os.fsync(3)",
        "path.unlink(missing_ok=True)",
    ],
)
def test_the_search_for_writes_finds_them(text: str) -> None:
    assert list(writes(ast.parse(text)))


@pytest.mark.parametrize("text", ['"a".replace("b", "c")', 'path.open("rb")', "frame.write_parquet(buffer)"])
def test_the_search_for_writes_finds_nothing_else(text: str) -> None:
    assert not list(writes(ast.parse(text)))


# ---------------------------------------------------------------- calls


class Recording(FileSystem):
    """Notes what is called, in order."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def sync(self, file: int) -> None:
        self.calls.append(f"sync {Path(f'/proc/self/fd/{file}').readlink().name}")
        super().sync(file)

    def rename(self, old: Path, new: Path) -> None:
        self.calls.append(f"rename {new.name}")
        super().rename(old, new)

    def unlink(self, path: Path) -> None:
        self.calls.append(f"unlink {path.name}")
        super().unlink(path)


def test_a_durable_write_is_synced_before_and_after_it_has_its_name(tmp_path: Path) -> None:
    system = Recording()
    with replaced(system):
        atomic_write(tmp_path / "file", b"x", durable=True)
    first, *rest = system.calls
    assert first.startswith("sync .file.")
    assert rest == ["rename file", f"sync {tmp_path.name}"]


def test_a_new_directory_is_synced_with_those_above_it(tmp_path: Path) -> None:
    system = Recording()
    with replaced(system):
        make_directory(tmp_path / "a" / "b")
        # One that is there may have been made by a command that failed before it had synced the name.
        make_directory(tmp_path / "a" / "b")
    assert system.calls == [f"sync {tmp_path.parent.name}", f"sync {tmp_path.name}", "sync a", "sync a"]
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(FileExistsError, match="File exists") as refused:
        make_directory(tmp_path / "file")
    assert (refused.value.errno, refused.value.filename) == (errno.EEXIST, str(tmp_path / "file"))
    with pytest.raises(OSError, match=r"File exists|Not a directory"):
        make_directory(tmp_path / "file" / "below")


@pytest.mark.parametrize("is_directory", [True, False])
def test_somebody_else_makes_the_directory_first(tmp_path: Path, is_directory: bool) -> None:
    class Late(FileSystem):
        def make_directory(self, path: Path) -> None:
            path.mkdir() if is_directory else path.write_bytes(b"")
            super().make_directory(path)

    with replaced(Late()):
        if is_directory:
            make_directory(tmp_path / "a" / "b")
        else:
            with pytest.raises(FileExistsError):
                make_directory(tmp_path / "a")
    assert (tmp_path / "a" / "b").is_dir() is is_directory


def test_files_are_made_for_whom_the_umask_says(tmp_path: Path) -> None:
    before = os.umask(0o026)
    try:
        atomic_write(tmp_path / "file", b"")
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640


def test_a_write_that_fails_says_why_whatever_fails_after_it(tmp_path: Path) -> None:
    class Failing(FileSystem):
        """Full, and nothing that is done about it works."""

        def write(self, _file: int, _data: memoryview) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        def close(self, file: int) -> None:
            super().close(file)
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        def unlink(self, _path: Path) -> None:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    with replaced(Failing()), pytest.raises(OSError, match="No space"):
        atomic_write(tmp_path / "file", b"new")


def test_closing_is_done_though_a_signal_comes(tmp_path: Path) -> None:
    class Interrupted(FileSystem):
        def close(self, file: int) -> None:
            super().close(file)
            raise InterruptedError(errno.EINTR, os.strerror(errno.EINTR))

    with replaced(Interrupted()):
        atomic_write(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"


def test_removing_what_is_missing_is_an_error_unless_it_is_said(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        remove(tmp_path / "none")
    remove(tmp_path / "none", missing_ok=True)
    with pytest.raises(OSError, match="Is a directory"):
        remove(tmp_path, missing_ok=True)


def test_short_and_interrupted_writes_go_on(tmp_path: Path) -> None:
    class Short(FileSystem):
        turn = 0

        def write(self, file: int, data: memoryview) -> int:
            self.turn += 1
            if self.turn % 2:
                raise InterruptedError(errno.EINTR, os.strerror(errno.EINTR))
            return super().write(file, data[:3])

    with replaced(Short()):
        atomic_write(tmp_path / "file", b"ten bytes.")
    assert (tmp_path / "file").read_bytes() == b"ten bytes."


def test_a_directory_is_removed_however_often_a_signal_comes(tmp_path: Path) -> None:
    class Interrupted(FileSystem):
        turns = 3

        def remove_directory(self, path: Path) -> None:
            self.turns -= 1
            if self.turns:
                raise InterruptedError(errno.EINTR, os.strerror(errno.EINTR))
            super().remove_directory(path)

    (tmp_path / "empty").mkdir()
    with replaced(Interrupted()):
        remove_directory(tmp_path / "empty")
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------- journals


def test_a_journal_is_synced_once_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    system = Recording()
    with replaced(system):
        journal = Journal(tmp_path)
        path, _ = journal.append([b"Rone"])
        begun = len(system.calls)
        now[0] += 0.9
        journal.append([b"Rtwo"])
        assert system.calls[begun:] == []
        now[0] += 0.2
        journal.append([b"Rthree"])
        journal.append([b"Rfour"])
        assert system.calls[begun:] == [f"sync {path.name}"]


def test_a_new_journals_name_is_on_the_disk_before_its_first_record(tmp_path: Path) -> None:
    system = Recording()
    with replaced(system):
        path, _ = Journal(tmp_path).append([b"Rone"])
    assert system.calls == [f"rename {path.name}", f"sync {tmp_path.name}"]


def test_a_long_journal_is_on_the_disk_before_another_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path)
    path, _ = journal.append([b"Rone"])
    system = Recording()
    monkeypatch.setattr("perhop.stores.journal.ROTATE_BYTES", journal.size)
    with replaced(system):
        journal.append([b"Rtwo"])
    assert system.calls == [f"sync {path.name}"]
    assert journal.size == 0


def test_a_store_of_sweeps_is_on_the_disk_before_it_lets_go(tmp_path: Path) -> None:
    system = Recording()
    with SweepStore(tmp_path, pytest.fail) as store:
        for seed in (1, 2):
            store.append([Record(Layout("{}", "engine", ("loss",)), seed, 0.1, array("d", [0.5]))])
        (journal,) = (tmp_path / "journals").iterdir()
        with replaced(system):
            store.close()
    assert system.calls == [f"sync {journal.name}"]


class Refusing(FileSystem):
    """Takes some bytes, then no more; and refuses to cut files if so set."""

    room = 10**9
    stubborn = True

    def write(self, file: int, data: memoryview) -> int:
        if not self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken = super().write(file, data[: self.room])
        self.room -= taken
        return taken

    def truncate(self, file: int, size: int) -> None:
        if self.stubborn:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        super().truncate(file, size)


def test_a_journal_that_cannot_be_cut_is_followed_by_another(tmp_path: Path) -> None:
    """Cutting it later, to the size that it should have, would take finished runs with it."""
    system = Refusing()
    with replaced(system):
        journal = Journal(tmp_path)
        journal.append([b"Rone"])
        for stubborn, after in ((True, b"Rtwo"), (False, b"Rthree")):
            system.room, system.stubborn = 5, stubborn
            with pytest.raises(OSError, match="No space"):
                journal.append([b"R, of which a part is written"])
            system.room = 10**9
            journal.append([after])
        journal.close()
    kept = [
        content for path in sorted(tmp_path.iterdir()) for _, content in pieces(path.read_bytes()).contents
    ]
    assert sorted(kept) == [b"Rone", b"Rthree", b"Rtwo"]


def test_a_journal_that_can_neither_be_cut_nor_closed_says_why_it_failed(
    tmp_path: Path,
) -> None:
    class Failing(Refusing):
        def close(self, file: int) -> None:
            super().close(file)
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    system = Failing()
    journal = Journal(tmp_path)
    journal.append([b"Rone"])
    system.room = 0
    with replaced(system), pytest.raises(OSError, match="No space"):
        journal.append([b"Rtwo"])
    journal.append([b"Rthree"])
    assert len(list(tmp_path.iterdir())) == 2


def test_journals_of_the_version_before_are_read() -> None:
    def framed_before(content: bytes) -> bytes:
        length = struct.pack("<I", len(content))
        return length + struct.pack("<I", zlib.crc32(length + content)) + content

    records = [framed_before(b"Rone"), framed_before(b"Rtwo")]
    magic = b"perhop runs 1\n"
    whole = pieces(b"".join((magic, *records)))
    assert whole == Pieces([(22, b"Rone"), (34, b"Rtwo")], unreadable=0, current=False)
    assert pieces(b"X" + magic[1:] + b"".join(records)).contents == whole.contents
    assert pieces(magic + records[0] + records[1][:-1]) == Pieces([(22, b"Rone")], 11, current=False)
    assert pieces(MAGIC).current


def test_bytes_between_records_cost_none_and_empty_ones_are_none() -> None:
    one, two = framed(b"R"), framed(b"Rtwo")
    at = len(MAGIC) + HEAD_BYTES
    assert pieces(joined([b"R", b"Rtwo"])).contents == [(at, b"R"), (at + len(one), b"Rtwo")]
    for between in (b"x", b"R", bytes(30)):
        found = pieces(MAGIC + between + one + between + two)
        assert [content for _, content in found.contents] == [b"R", b"Rtwo"]
        assert found.unreadable == 2 * len(between)
    assert pieces(joined([b""])) == Pieces([], HEAD_BYTES, current=True)


def test_a_new_journal_says_nothing_of_itself(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.sync()
    assert (journal.size, list(tmp_path.iterdir())) == (0, [])
    path, begin = journal.append([b"Rone"])
    assert (path.parent, begin) == (tmp_path, len(MAGIC))
    assert journal.size == path.stat().st_size
    journal.close()
    assert journal.size == 0


def test_names_of_journals_sort_by_age(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    for now in (9, 10, 0xFFF, 0x1000, 2**60 - 1, 2**60):
        monkeypatch.setattr("time.time_ns", lambda now=now: now)
        journal = Journal(tmp_path)
        path, _ = journal.append([b"R"])
        made.append(path.name)
        journal.close()
    assert made == sorted(made)
    assert all(re.fullmatch(r"[0-9a-f]{32}\.journal", name) for name in made)


def test_a_journals_first_bytes_are_written_whole(tmp_path: Path) -> None:
    class Short(FileSystem):
        def write(self, file: int, data: memoryview) -> int:
            return super().write(file, data[:5])

    with replaced(Short()):
        journal = Journal(tmp_path)
        path, _ = journal.append([b"Rone"])
    data = path.read_bytes()
    assert data.startswith(MAGIC)
    assert pieces(data).unreadable == 0


# ---------------------------------------------------------------- two commands


def test_two_commands_do_not_write_to_one_directory(
    perhop: Callable[..., Finished], tmp_path: Path, small: Path
) -> None:
    outputs.claim_directory(tmp_path / "out")
    outputs.claim_directory(tmp_path / "out")
    refused = perhop("run", small, "--out", "out")
    assert refused.code == 2
    assert refused.out == ""
    assert refused.err == (
        "error: --out out: another perhop command is writing there; wait until it has ended, or choose "
        "another place\n"
    )
    assert list((tmp_path / "out").iterdir()) == []
    outputs.release_directories()


HOLD = "import sys, time; from pathlib import Path; from perhop.files import outputs as files; "
HOLD += "files.claim_directory(Path(sys.argv[1])); print('claimed', flush=True); time.sleep(600)"


def test_a_killed_command_keeps_nobody_out(tmp_path: Path) -> None:
    out = tmp_path / "out"
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(out)], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"claimed\n"
    with pytest.raises(PerhopError, match="another perhop command is writing there"):
        outputs.claim_directory(out)
    holder.send_signal(signal.SIGKILL)
    holder.wait(60)
    holder.stdout.close()
    outputs.claim_directory(out)
    outputs.release_directories()


def test_a_file_system_without_locks_keeps_nobody_out(tmp_path: Path) -> None:
    class Without(FileSystem):
        def lock(self, _file: int, _kind: int) -> None:
            raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

    with replaced(Without()):
        outputs.claim_directory(tmp_path)
        outputs.claim_directory(tmp_path)
    outputs.claim_directory(tmp_path)
    outputs.release_directories()


def test_what_a_killed_command_left_half_written_goes(tmp_path: Path) -> None:
    (tmp_path / "plots").mkdir()
    left = [tmp_path / ".report.html.12-34.partial", tmp_path / "plots" / ".a.svg.12-34.partial"]
    mine = tmp_path / ".notes.partial"
    for path in (*left, mine):
        path.write_bytes(b"half")
    outputs.claim_directory(tmp_path)
    outputs.release_directories()
    assert not any(path.exists() for path in left)
    assert mine.exists()


def test_a_directory_that_cannot_be_opened_is_said(tmp_path: Path) -> None:
    class Without(FileSystem):
        def open(self, path: Path, flags: int) -> int:
            if path == tmp_path:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return super().open(path, flags)

    with (
        replaced(Without()),
        pytest.raises(PerhopError, match=r"--out .*: cannot be read: Input/output error"),
    ):
        outputs.claim_directory(tmp_path)
