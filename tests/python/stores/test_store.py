"""Finished runs are kept exactly, or not at all."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import zlib
from array import array
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tests.python.stores.keeping import encode

from perhop import _engine
from perhop.files.filesystem import FileSystem, atomic_write, replaced
from perhop.stores.journal import MAGIC, joined, pieces
from perhop.stores.measures import Layout, Record
from perhop.stores.outcomes import DirectoryStore, Entry, engine_digest, pack, run_key, unpack

arrays = st.one_of(
    hnp.arrays(np.float64, hnp.array_shapes(min_dims=1, max_dims=2, min_side=0)),
    hnp.arrays(np.int64, hnp.array_shapes(min_dims=1, max_dims=2, min_side=0)),
)
texts = st.text(max_size=8).filter(lambda name: name != "$array")
values = st.recursive(
    st.one_of(arrays, st.floats(allow_nan=False), st.integers(-(2**53), 2**53), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=8,
)


def same(a: Any, b: Any) -> bool:  # noqa: ANN401 - any packed value
    if isinstance(a, np.ndarray):
        return (
            isinstance(b, np.ndarray)
            and a.dtype == b.dtype
            and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
        )
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[name], b[name]) for name in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b)


@given(st.dictionaries(texts, values, max_size=4))
def test_packing_is_exact(run: dict[str, Any]) -> None:
    assert same(run, unpack(pack(run)))
    assert pack(run) == pack(run)


def test_unpacked_arrays_can_be_written_to() -> None:
    found = unpack(pack({"x": np.arange(3)}))
    found["x"][0] = 7
    assert found["x"].tolist() == [7, 1, 2]


def test_unpacked_arrays_are_aligned() -> None:
    for length in range(9):
        arrays = {"n" * length: np.zeros(length, np.int8), "x": np.ones(3), "y": np.arange(2.0)}
        found = unpack(pack(arrays))
        assert found["x"].flags.aligned
        assert found["y"].flags.aligned
        assert same(found, arrays)


def opened(directory: Path) -> tuple[DirectoryStore, list[str]]:
    said: list[str] = []
    return DirectoryStore(directory, said.append), said


RUNS: dict[str, dict[str, Any]] = {
    name: {"name": name, "x": np.arange(number, number + 5)} for number, name in enumerate("abc")
}


def filled(directory: Path, names: str = "abc") -> Path:
    """A store with these runs, and the one journal that it consists of."""
    store = DirectoryStore(directory, pytest.fail)
    for name in names:
        store.save(name, RUNS[name])
    store.close()
    return max(directory.iterdir())


def found_in(store: DirectoryStore) -> str:
    """The runs that a store gives, each of which must be as it was kept."""
    found = {name: store.load(name) for name in RUNS}
    assert all(run is None or same(run, RUNS[name]) for name, run in found.items())
    return "".join(name for name, run in found.items() if run is not None)


def test_keeps_and_finds(tmp_path: Path) -> None:
    store, said = opened(tmp_path / "runs")
    assert found_in(store) == ""
    store.save("a", RUNS["a"])
    store.save("b", RUNS["b"])
    assert found_in(store) == "ab"
    store.close()
    again, said_again = opened(tmp_path / "runs")
    assert found_in(again) == "ab"
    assert said == said_again == []
    assert len(list((tmp_path / "runs").iterdir())) == 1


def test_a_flipped_bit_costs_one_run_and_is_said_once(tmp_path: Path) -> None:
    whole = filled(tmp_path / "whole").read_bytes()
    for place in range(len(whole)):
        directory = tmp_path / str(place)
        directory.mkdir()
        broken = bytearray(whole)
        broken[place] ^= 1 << place % 8
        (directory / "x.journal").write_bytes(broken)
        store, said = opened(directory)
        kept = found_in(store)
        assert len(kept) == (3 if place < len(MAGIC) else 2)
        assert len(said) == 1
        assert f"{len(kept)} finished runs are kept" in said[0]
        again, nothing = opened(directory)
        assert found_in(again) == kept
        assert nothing == []
        shutil.rmtree(directory)


def test_a_run_that_breaks_while_the_store_is_open_is_said_and_missing(tmp_path: Path) -> None:
    path = filled(tmp_path)
    store, said = opened(tmp_path)
    data = bytearray(path.read_bytes())
    data[-3] ^= 4
    path.write_bytes(data)
    assert found_in(store) == found_in(store) == "ab"
    assert said == [f"warning: a run in {path} is broken; it is computed again"]


def test_a_journal_cut_anywhere_keeps_every_whole_run(tmp_path: Path) -> None:
    path = filled(tmp_path)
    whole = path.read_bytes()
    counts = []
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        counts.append(len(found_in(opened(tmp_path)[0])))
    assert counts == sorted(counts)
    assert counts[-1] == 3


def test_a_journal_copied_over_another_gives_no_false_run(tmp_path: Path) -> None:
    one, other = filled(tmp_path / "one", "ab"), filled(tmp_path / "other", "c")
    shutil.copy(other, one)
    store, said = opened(tmp_path / "one")
    assert found_in(store) == "c"
    assert said == []


def test_a_run_under_another_key_is_not_found(tmp_path: Path) -> None:
    tmp_path.joinpath("x.journal").write_bytes(joined([Entry("b", engine_digest(), pack({})).content()]))
    store, _ = opened(tmp_path)
    assert store.load("a") is None
    assert store.load("b") == {}


@pytest.mark.parametrize("entry", [("b", engine_digest()), ("a", "f" * 64)])
def test_a_run_that_becomes_another_while_the_store_is_open_is_missing(
    tmp_path: Path, entry: tuple[str, str]
) -> None:
    path = tmp_path / "x.journal"
    path.write_bytes(joined([Entry("a", engine_digest(), pack({})).content()]))
    store, said = opened(tmp_path)
    path.write_bytes(joined([Entry(*entry, pack({})).content()]))
    assert store.load("a") is None
    assert said == [f"warning: a run in {path} is broken; it is computed again"]


@pytest.mark.parametrize(
    "about", [b"", b"{", b"[]", b'{"key": "a"}', b'{"key": 1, "engine": "e"}', b'{"key": "a", "engine": 1}']
)
def test_a_record_that_does_not_say_whose_it_is_is_none(about: bytes) -> None:
    assert Entry.of(b"O" + len(about).to_bytes(4, "little") + about + b"rest") is None
    assert Entry.of(b"O") is None
    assert Entry.of(b"") is None
    assert Entry.of(Entry("a", "e", b"rest").content()) == Entry("a", "e", b"rest")


def test_of_two_records_of_a_run_the_later_counts(tmp_path: Path) -> None:
    for value in (1, 2):
        store, _ = opened(tmp_path)
        store.save("a", {"x": value})
        store.close()
    assert opened(tmp_path)[0].load("a") == {"x": 2}


def test_a_torn_journal_is_mended_on_the_disk_or_read_as_it_is(tmp_path: Path) -> None:
    path = filled(tmp_path)
    torn = path.read_bytes()[:-1]
    path.write_bytes(torn)

    class Noting(FileSystem):
        full = True

        def __init__(self) -> None:
            self.synced: list[str] = []

        def sync(self, file: int) -> None:
            self.synced.append(Path(f"/proc/self/fd/{file}").readlink().name)
            super().sync(file)

        def rename(self, old: Path, new: Path) -> None:
            if self.full:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            assert self.synced[-1] == old.name, "what replaces it is on the disk"
            super().rename(old, new)

    system = Noting()
    with replaced(system):
        for full in (True, False):
            system.full = full
            store, said = opened(tmp_path)
            assert found_in(store) == "ab"
            assert len(said) == 1
            assert (path.read_bytes() == torn) is full
        assert opened(tmp_path)[1] == []


def test_a_journal_without_a_whole_run_goes(tmp_path: Path) -> None:
    (tmp_path / "x.journal").write_bytes(MAGIC + b"half")
    assert len(opened(tmp_path)[1]) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_journal_that_was_begun_and_holds_nothing_goes(tmp_path: Path) -> None:
    (tmp_path / "x.journal").write_bytes(MAGIC)
    assert opened(tmp_path)[1] == []
    assert list(tmp_path.iterdir()) == []


def test_runs_of_another_engine_are_not_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(tmp_path)
    monkeypatch.setattr("perhop.stores.outcomes.engine_digest", lambda: "another")
    store, said = opened(tmp_path)
    assert found_in(store) == ""
    assert said == []
    monkeypatch.undo()
    assert found_in(opened(tmp_path)[0]) == "abc"


@pytest.mark.parametrize("part", ["version", "digest"])
def test_the_engine_is_part_of_a_runs_key(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = run_key("scenario", 1)
    if part == "version":
        monkeypatch.setattr("perhop._engine.version", "0.0.0")
    else:
        monkeypatch.setattr("perhop.stores.outcomes.engine_digest", lambda: "another")
    assert run_key("scenario", 1) != before


def test_the_engines_digest_is_that_of_its_library() -> None:
    library = _engine.__file__
    assert library is not None
    assert engine_digest() == hashlib.sha256(Path(library).read_bytes()).hexdigest()


def test_a_run_that_is_rejected_is_kept_anew(tmp_path: Path) -> None:
    filled(tmp_path, "a")
    store, said = opened(tmp_path)
    store.reject("a")
    store.reject("a")
    assert len(said) == 1
    assert "is not whole; it is computed again" in said[0]
    assert store.load("a") is None
    store.save("a", {"name": "another"})
    store.close()
    assert opened(tmp_path)[0].load("a") == {"name": "another"}


def test_bytes_under_a_right_checksum_that_are_no_run_count_as_missing(tmp_path: Path) -> None:
    for number, packed in enumerate((b"", b"no", zlib.compress(b"\0\0"), pack({})[:-1])):
        entry = Entry(str(number), engine_digest(), packed)
        (tmp_path / f"{number}.journal").write_bytes(joined([entry.content()]))
    store, said = opened(tmp_path)
    assert [store.load(str(number)) for number in range(4)] == [None] * 4
    assert len(said) == 4


def test_records_of_a_sweep_are_no_runs(tmp_path: Path) -> None:
    record = Record(Layout("{}", "engine", ("x",)), 1, 0.0, array("d", [1.0]))
    (tmp_path / "x.journal").write_bytes(encode([record]))
    assert found_in(opened(tmp_path)[0]) == ""


def test_runs_in_the_earlier_format_are_said_and_left(tmp_path: Path) -> None:
    for name in "ab":
        np.savez_compressed(tmp_path / f"{name}.npz", text=np.arange(3))
    store, said = opened(tmp_path)
    assert store.load("a") is None
    assert len(said) == 1
    assert f"2 runs in {tmp_path}, in the format of an earlier version" in said[0]
    assert f"`perhop store verify {tmp_path} --delete`" in said[0]
    assert len(list(tmp_path.iterdir())) == 2


def test_a_store_of_the_version_before_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four runs, of which the journal was torn in the last."""
    monkeypatch.setattr("perhop.stores.outcomes.engine_digest", lambda: "engine")
    shutil.copytree(Path(__file__).parent / "earlier" / "runs", tmp_path / "runs")
    store, said = opened(tmp_path / "runs")
    (path,) = (tmp_path / "runs").iterdir()
    assert found_in(store) == "abc"
    assert store.load("d") is None
    (text,) = said
    assert text.startswith(f"warning: {path}: 128 of 533 bytes were not readable, as when a program")
    assert text.endswith("; 3 finished runs are kept")
    store.save("d", {"x": 4})
    store.close()
    again, nothing = opened(tmp_path / "runs")
    assert (found_in(again), again.load("d"), nothing) == ("abc", {"x": 4}, [])


def test_a_journal_of_version_1_is_written_anew(tmp_path: Path) -> None:
    path = filled(tmp_path, "ab")
    now = path.read_bytes()
    contents = [content for _, content in pieces(now).contents]
    lengths = [len(content).to_bytes(4, "little") for content in contents]
    sums = [zlib.crc32(length + content) for length, content in zip(lengths, contents, strict=True)]
    before = zip(lengths, (one.to_bytes(4, "little") for one in sums), contents, strict=True)
    path.write_bytes(b"perhop runs 1\n" + b"".join(part for record in before for part in record))
    store, said = opened(tmp_path)
    assert (found_in(store), said) == ("ab", [])
    assert path.read_bytes() == now


def test_a_journal_whose_writer_lives_is_read_and_left_alone(tmp_path: Path) -> None:
    writer, _ = opened(tmp_path)
    writer.save("a", RUNS["a"])
    path = max(tmp_path.iterdir())
    with path.open("ab") as file:
        file.write(b"half a record")
    store, said = opened(tmp_path)
    assert found_in(store) == "a"
    assert said == []
    assert path.read_bytes().endswith(b"half a record")


def test_what_a_killed_writer_left_is_removed(tmp_path: Path) -> None:
    filled(tmp_path, "a")
    for name in (".x.new", ".x.journal.12-34.partial"):
        (tmp_path / name).write_bytes(b"half")
    assert found_in(opened(tmp_path)[0]) == "a"
    assert len(list(tmp_path.iterdir())) == 1


def test_what_cannot_be_removed_keeps_nobody_out(tmp_path: Path) -> None:
    filled(tmp_path, "a")
    (tmp_path / ".x.new").write_bytes(b"half")

    class Vanished(FileSystem):
        def open(self, path: Path, flags: int) -> int:
            if path.name == ".x.new":
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
            return super().open(path, flags)

    with replaced(Vanished()):
        assert found_in(opened(tmp_path)[0]) == "a"


def test_two_threads_that_find_the_same_run_broken_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(tmp_path, "a")
    store, said = opened(tmp_path)
    # What the other thread does between this one's two looks at the places of runs.
    monkeypatch.setattr("perhop.stores.directory.Place.read", lambda _place: store.reject("a"))
    assert store.load("a") is None
    assert len(said) == 2


def test_a_long_journal_is_followed_by_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perhop.stores.journal.ROTATE_BYTES", 20)
    store, _ = opened(tmp_path)
    for name, run in RUNS.items():
        store.save(name, run)
    assert found_in(store) == "abc"
    assert len(list(tmp_path.iterdir())) == 3
    assert found_in(opened(tmp_path)[0]) == "abc"


def test_a_full_disk_costs_the_run_that_did_not_fit(tmp_path: Path) -> None:
    room = [len(filled(tmp_path / "whole", "ab").read_bytes()) + 5]

    class Full(FileSystem):
        def write(self, file: int, data: memoryview) -> int:
            if not room[0]:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            taken = super().write(file, data[: room[0]])
            room[0] -= taken
            return taken

    store, _ = opened(tmp_path / "full")
    with replaced(Full()):
        store.save("a", RUNS["a"])
        store.save("b", RUNS["b"])
        with pytest.raises(OSError, match="No space left"):
            store.save("c", RUNS["c"])
    assert found_in(store) == "ab"
    store.save("c", RUNS["c"])
    store.close()
    again, said = opened(tmp_path / "full")
    assert found_in(again) == "abc"
    assert said == []


def test_keys_tell_scenarios_and_seeds_apart() -> None:
    keys = {run_key(scenario, seed) for scenario in ("a", "b", "a1") for seed in (1, 11)}
    assert len(keys) == 6
    assert run_key("a", 1) == run_key("a", 1)


def test_a_failed_write_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "file"
    atomic_write(path, b"old")

    class Full(FileSystem):
        def rename(self, old: Path, new: Path) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(old), None, str(new))

    with replaced(Full()), pytest.raises(OSError, match="No space"):
        atomic_write(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
