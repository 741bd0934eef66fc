"""The store of sweeps: what finished is found again, whatever breaks."""

from __future__ import annotations

import errno
import fcntl
import gzip
import hashlib
import math
import multiprocessing
import os
import sys
import warnings
from array import array
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perhop.errors import PerhopWarning
from perhop.files.filesystem import AT_ONCE, FileSystem, replaced
from perhop.stores.journal import ENDING, MAGIC, framed, joined, pieces
from perhop.stores.sweep_journal import Contents, Layout, Record, decode, encode
from perhop.stores.sweeps import ARCHIVE, RUNS, SCENARIOS, StoreError, SweepStore, is_whole

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import FrameType

ONE = Layout('{"a":1}', "engine", ("throughput_bps", "loss"))
TWO = Layout('{"b":"ü"}', "engine", ("throughput_bps",))


def record(layout: Layout, seed: int) -> Record:
    values = array("d", [seed * 0.1, math.nan][: len(layout.metrics)])
    return Record(layout, seed, 0.25, values)


FEW = [record(ONE, 1), record(TWO, 1), record(ONE, 2), record(TWO, 2**64 - 1)]


def names(records: Sequence[Record]) -> list[tuple[str, int, bytes]]:
    return [(r.layout.scenario, r.seed, r.values.tobytes()) for r in records]


def opened(directory: Path) -> tuple[list[tuple[str, int, float]], list[str]]:
    """What a store holds of throughput, and what it said as it was opened."""
    said: list[str] = []
    with SweepStore(directory, said.append) as store, store.connect() as database:
        rows = database.execute(
            "SELECT json, seed, value FROM runs JOIN scenarios USING (scenario) "
            "WHERE metric = 'throughput_bps' ORDER BY json, seed"
        ).fetchall()
    return rows, said


EXPECTED = [
    ('{"a":1}', 1, 0.1),
    ('{"a":1}', 2, 0.2),
    ('{"b":"ü"}', 1, 0.1),
    ('{"b":"ü"}', 2**64 - 1, (2**64 - 1) * 0.1),
]


def filled(directory: Path) -> None:
    with SweepStore(directory, pytest.fail) as store:
        store.append(FEW)


def only(directory: Path, ending: str) -> Path:
    found = list((directory / "segments").glob(f"*{ending}"))
    assert len(found) == 1
    return found[0]


# ---------------------------------------------------------------- journals


@given(st.lists(st.tuples(st.sampled_from([ONE, TWO]), st.integers(0, 2**64 - 1)), max_size=8))
def test_a_journal_reads_as_it_was_written(runs: list[tuple[Layout, int]]) -> None:
    records = [record(layout, seed) for layout, seed in runs]
    read = decode(encode(records))
    assert names(read.records) == names(records)
    assert read.unreadable == 0
    assert [r.layout for r in read.records] == [r.layout for r in records]


def test_a_journal_cut_anywhere_keeps_every_whole_record() -> None:
    data = encode(FEW)
    kept = [decode(data[:size]) for size in range(len(data) + 1)]
    counts = [len(contents.records) for contents in kept]
    assert counts == sorted(counts)
    assert counts[-1] == 4
    for contents in kept:
        assert names(contents.records) == names(FEW[: len(contents.records)])
    whole = {len(encode(FEW[:count])) for count in range(5)}
    for size, contents in enumerate(kept):
        if size in whole:
            assert contents.unreadable == 0


@pytest.mark.parametrize("bit", [1, 128])
def test_a_flipped_bit_is_noticed_and_costs_little(bit: int) -> None:
    data = encode(FEW)
    scenarios_end = len(encode(FEW[:2]))
    for place in range(len(data)):
        broken = bytearray(data)
        broken[place] ^= bit
        read = decode(bytes(broken))
        assert read.unreadable > 0
        assert set(names(read.records)) <= set(names(FEW))
        lost = len(FEW) - len(read.records)
        assert lost <= (0 if place < len(MAGIC) else 1 if place >= scenarios_end else 2), place
    last = bytearray(data)
    last[-1] ^= bit
    assert len(decode(bytes(last)).records) == 3


def test_zeros_at_the_end_are_no_records() -> None:
    """What a file system may leave after a power failure."""
    read = decode(encode(FEW) + bytes(100))
    assert len(read.records) == 4
    assert read.unreadable == 100


def test_runs_without_their_scenario_or_with_other_values_are_lost() -> None:
    run = joined([]) + encode([record(ONE, 1)])[len(encode([])) :]
    (_, scenario), (_, content) = pieces(run).contents
    assert decode(joined([content, content])) == Contents([], len(joined([content] * 2)), 2 * len(content))
    assert decode(joined([scenario, content[:-8], content, b"O"])).unreadable == len(content[:-8]) + 1
    assert decode(joined([scenario, content + bytes(8)])).records == []
    assert decode(joined([b"S{", scenario, b"R", content])).unreadable == len(b"S{" + b"R")


# ---------------------------------------------------------------- segments


def test_what_was_kept_is_found(tmp_path: Path) -> None:
    filled(tmp_path)
    assert opened(tmp_path) == (EXPECTED, [])
    assert list((tmp_path / "journals").iterdir()) == []
    with SweepStore(tmp_path, pytest.fail) as store:
        found = store.finished("engine")
        # Sets have no order of their own to be sorted by.
        assert sorted(map(sorted, found.values())) == [[1, 2], [1, 2**64 - 1]]
        assert store.finished("another engine") == {}


def test_values_are_those_of_one_engine_whose_names_meet_a_pattern(tmp_path: Path) -> None:
    one, two = (hashlib.sha256(layout.scenario.encode()).hexdigest() for layout in (ONE, TWO))
    other = Layout(ONE.scenario, "another engine", ONE.metrics)
    with SweepStore(tmp_path, pytest.fail) as store:
        store.append([*FEW, record(other, 5)])
        throughput = {
            one: {1: {"throughput_bps": 0.1}, 2: {"throughput_bps": 0.2}},
            two: {1: {"throughput_bps": 0.1}, 2**64 - 1: {"throughput_bps": (2**64 - 1) * 0.1}},
        }
        assert store.values("engine", ["through*", "nothing"]) == throughput
        losses = store.values("engine", ["loss"])
        assert {seed: list(values) for seed, values in losses[one].items()} == {1: ["loss"], 2: ["loss"]}
        assert list(losses) == [one]
        assert math.isnan(losses[one][2]["loss"])
        assert store.values("engine", ["Loss"]) == store.values("engine", []) == {}
        assert list(store.values("another engine", ["*"])[one][5]) == ["throughput_bps", "loss"]


def test_an_empty_store_is_a_store(tmp_path: Path) -> None:
    assert opened(tmp_path) == ([], [])
    with SweepStore(tmp_path, pytest.fail) as store:
        assert (store.finished("engine"), store.values("engine", ["*"])) == ({}, {})


@pytest.mark.parametrize("ending", [RUNS, SCENARIOS, ARCHIVE])
@pytest.mark.parametrize("damage", [lambda d: d[:-1], lambda _d: b"", lambda d: d[:40] + b"\0\1" + d[42:]])
def test_a_broken_file_is_set_aside_and_mended(tmp_path: Path, ending: str, damage: object) -> None:
    assert callable(damage)
    filled(tmp_path)
    path = only(tmp_path, ending)
    before = path.read_bytes()
    path.write_bytes(damage(before))
    rows, said = opened(tmp_path)
    assert rows == EXPECTED
    assert len(said) == 2
    assert said[0] == f"warning: {path} is broken and was moved to {tmp_path / 'broken'}"
    assert (tmp_path / "broken" / path.name).read_bytes() == damage(before)
    assert "restored from its other copy; 4 runs are kept" in said[1]
    assert only(tmp_path, ending).name == path.name
    assert only(tmp_path, ending).read_bytes() == before
    assert opened(tmp_path) == (EXPECTED, [])


def test_a_file_that_is_mended_from_its_twin_holds_the_same_runs(tmp_path: Path) -> None:
    """Scenarios, engines and wall times are distinguished, though all runs have the same metrics."""
    layouts = [Layout(scenario, engine, ("loss",)) for scenario in ("{}", "[]") for engine in ("one", "two")]
    runs = [Record(layout, seed, seed / 4, array("d", [0.5])) for layout in layouts for seed in (3, 1)]
    with SweepStore(tmp_path, pytest.fail) as store:
        store.append(runs)
    path = only(tmp_path, ARCHIVE)
    before = path.read_bytes()
    path.unlink()
    assert len(opened(tmp_path)[1]) == 1
    assert only(tmp_path, ARCHIVE) == path
    assert path.read_bytes() == before
    assert decode(gzip.decompress(before)).records == runs


def test_a_segment_that_does_not_read_as_it_was_written_keeps_its_journal(tmp_path: Path) -> None:
    class Forgetful(FileSystem):
        """A disk that loses the last byte of each file that is moved into place."""

        def rename(self, old: Path, new: Path) -> None:
            os.truncate(old, old.stat().st_size - 1)
            super().rename(old, new)

    store = SweepStore(tmp_path, pytest.fail)
    store.append(FEW)
    with replaced(Forgetful()), pytest.raises(StoreError, match="does not read as it was written"):
        store.close()
    assert len(list((tmp_path / "journals").iterdir())) == 1
    assert opened(tmp_path) == (EXPECTED, [])


def test_a_missing_file_is_mended(tmp_path: Path) -> None:
    filled(tmp_path)
    for ending in (RUNS, SCENARIOS):
        only(tmp_path, ending).unlink()
    assert opened(tmp_path)[0] == EXPECTED


def test_a_stranger_among_the_files_keeps_nothing_from_being_checked(tmp_path: Path) -> None:
    filled(tmp_path)
    path = only(tmp_path, ARCHIVE)
    path.write_bytes(b"broken")
    stranger = tmp_path / "segments" / "0"
    stranger.write_bytes(b"mine")
    assert opened(tmp_path)[0] == EXPECTED
    assert is_whole(path)
    assert stranger.read_bytes() == b"mine"


def test_of_two_whole_files_of_a_segment_one_is_left(tmp_path: Path) -> None:
    """As where a library of another version began the same compaction before."""
    filled(tmp_path)
    path = only(tmp_path, ARCHIVE)
    other = gzip.compress(gzip.decompress(path.read_bytes()), 1)
    name = f"{path.name.partition('-')[0]}-{hashlib.sha256(other).hexdigest()[:32]}{ARCHIVE}"
    (path.parent / name).write_bytes(other)
    assert opened(tmp_path) == (EXPECTED, [])
    assert is_whole(only(tmp_path, ARCHIVE))


@pytest.mark.parametrize("ending", [RUNS, SCENARIOS])
def test_half_of_a_copy_is_none(tmp_path: Path, ending: str) -> None:
    filled(tmp_path)
    only(tmp_path, ARCHIVE).unlink()
    only(tmp_path, ending).unlink()
    rows, said = opened(tmp_path)
    assert rows == []
    assert "is broken and was moved to" in said[0]
    assert "both copies of segment" in said[1]
    assert opened(tmp_path) == ([], [])


def test_both_copies_broken_are_said_and_counted_as_missing(tmp_path: Path) -> None:
    filled(tmp_path)
    with SweepStore(tmp_path, pytest.fail) as store:
        store.append([record(ONE, 7)])
    first = min((tmp_path / "segments").glob(f"*{RUNS}"))
    name = first.name.partition("-")[0]
    kept = 1 if len(decode_archive(tmp_path, name)) == 4 else 4
    for ending in (RUNS, ARCHIVE):
        next((tmp_path / "segments").glob(f"{name}-*{ending}")).write_bytes(b"nothing")
    rows, said = opened(tmp_path)
    assert len(rows) == kept
    assert f"both copies of segment {name} are broken" in said[-1]
    assert opened(tmp_path) == (rows, [])


def decode_archive(directory: Path, name: str) -> Sequence[Record]:
    path = next((directory / "segments").glob(f"{name}-*{ARCHIVE}"))
    return decode(gzip.decompress(path.read_bytes())).records


def test_a_torn_journal_is_cut_and_said(tmp_path: Path) -> None:
    filled(tmp_path)
    left = tmp_path / "journals" / f"left{ENDING}"
    left.write_bytes(encode([record(ONE, 9)]) + framed(b"R" + bytes(40))[:-3])
    size = left.stat().st_size
    rows, said = opened(tmp_path)
    assert ('{"a":1}', 9, 0.9) in rows
    assert len(rows) == 5
    assert said[0].startswith(f"warning: {left}: 58 of {size} bytes were not readable, as when a program")
    assert said[0].endswith("; 1 finished run is kept")
    assert len(said) == 1
    assert not left.exists()


def test_a_compaction_cut_short_is_done_again(tmp_path: Path) -> None:
    """Killed after the segment's files were written and before the journal was removed."""
    filled(tmp_path)
    path = only(tmp_path, ARCHIVE)
    name = path.name.partition("-")[0]
    (tmp_path / "journals" / f"{name}{ENDING}").write_bytes(gzip.decompress(path.read_bytes()))
    (tmp_path / "segments" / ".x.partial").write_bytes(b"half")
    only(tmp_path, RUNS).unlink()
    assert opened(tmp_path) == (EXPECTED, [])
    assert len(list((tmp_path / "segments").iterdir())) == 3


def test_a_long_journal_becomes_a_segment_while_its_writer_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perhop.stores.sweeps.ROTATE_BYTES", 100)
    with SweepStore(tmp_path, pytest.fail) as store:
        store.append(FEW[:2])
        assert len(list((tmp_path / "segments").glob(f"*{RUNS}"))) == 1
        store.append(FEW[2:])
    assert len(list((tmp_path / "segments").glob(f"*{RUNS}"))) == 2
    assert opened(tmp_path) == (EXPECTED, [])


# ---------------------------------------------------------------- several writers


def write_some(directory: str, first: int, count: int) -> None:
    from pathlib import Path  # noqa: PLC0415 - in another process

    for seed in range(first, first + count):
        with SweepStore(Path(directory), lambda _: None) as store:
            store.append([record(ONE, seed)])
            store.append([record(TWO, seed)])


def test_two_writers_do_not_harm_each_other(tmp_path: Path) -> None:
    """Each opens and closes the store, and so compacts it, while the other writes."""
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=write_some, args=(str(tmp_path), 100 * n, 8)) for n in (1, 2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
        assert writer.exitcode == 0
    rows, said = opened(tmp_path)
    assert said == []
    assert [seed for scenario, seed, _ in rows if scenario == ONE.scenario] == [
        *range(100, 108),
        *range(200, 208),
    ]


def test_a_journal_that_gets_its_name_in_the_meantime_harms_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(tmp_path)
    glob = type(tmp_path).glob

    def stale(self: Path, pattern: str) -> list[Path]:
        return [*glob(self, pattern), *([self / ".gone.new"] if pattern == ".*.new" else [])]

    monkeypatch.setattr(type(tmp_path), "glob", stale)
    assert opened(tmp_path) == (EXPECTED, [])


def test_a_new_journal_that_is_taken_for_a_left_one_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = fcntl.flock

    def late(file: int, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", lock)
        for left in (tmp_path / "journals").glob(".*.new"):
            left.unlink()
        lock(file, operation)

    with SweepStore(tmp_path, pytest.fail) as store:
        monkeypatch.setattr(fcntl, "flock", late)
        store.append(FEW)
    assert opened(tmp_path) == (EXPECTED, [])


def test_a_living_writers_journal_is_read_and_left_alone(tmp_path: Path) -> None:
    with SweepStore(tmp_path, pytest.fail) as writer:
        writer.append(FEW)
        assert opened(tmp_path) == (EXPECTED, [])
        assert len(list((tmp_path / "journals").iterdir())) == 1
        writer.append([record(ONE, 3)])
    assert len(opened(tmp_path)[0]) == 5


# ---------------------------------------------------------------- full disks


def test_a_full_disk_keeps_what_was_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk takes half of a record, then nothing."""
    store = SweepStore(tmp_path, pytest.fail)
    store.append(FEW)
    write = os.write
    room = [30]

    def full(file: int, data: bytes) -> int:
        if not room[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken = write(file, bytes(data)[: room[0]])
        room[0] -= taken
        return taken

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(
        StoreError,
        match=r": a finished run could not be kept .all earlier ones are.: No space left on device",
    ):
        store.append([record(ONE, 3)])
    monkeypatch.undo()
    store.append([record(Layout("{}", "engine", ("throughput_bps",)), 1)])
    store.close()
    rows, said = opened(tmp_path)
    assert said == []
    assert rows == [*EXPECTED, ("{}", 1, 0.1)]


def test_a_disk_that_is_full_at_the_end_keeps_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SweepStore(tmp_path, pytest.fail)
    store.append(FEW)

    def full(_file: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(
        StoreError, match=": finished runs could not be moved into a segment; their journal stays: No"
    ):
        store.close()
    monkeypatch.undo()
    assert opened(tmp_path) == (EXPECTED, [])


def test_a_place_that_cannot_be_a_store_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_text("x")
    with pytest.raises(StoreError, match=rf"^--store {place}: cannot be opened: \w"):
        SweepStore(place, pytest.fail)


def test_a_store_may_be_named_by_text_alone(tmp_path: Path) -> None:
    with SweepStore(str(tmp_path)) as store:
        store.append(FEW)
        with store.connect() as database:
            found = database.execute("SELECT count(DISTINCT (scenario, seed)) FROM runs").fetchone()
    assert found == (len(FEW),)
    # A broken file is reported as a warning where nobody else hears of it.
    (broken,) = tmp_path.glob(f"segments/*{RUNS}")
    broken.write_bytes(b"x")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        SweepStore(str(tmp_path)).close()
    assert all(one.category is PerhopWarning for one in caught)
    texts = [str(one.message) for one in caught]
    assert texts[0].startswith(f"{broken} is broken and was moved to ")
    assert "was restored from its other copy" in texts[1]
    for wrong in (3, None, b"results"):
        with pytest.raises(StoreError, match=r"^directory: is a path such as 'results/store', not "):
            SweepStore(wrong)  # type: ignore[arg-type]


def test_an_error_on_its_way_is_not_replaced_by_that_of_closing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_file: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def use() -> None:
        with SweepStore(tmp_path, pytest.fail) as store:
            store.append(FEW)
            monkeypatch.setattr(os, "fsync", full)
            raise ValueError("of the caller")

    with pytest.raises(ValueError, match="of the caller"):
        use()
    monkeypatch.undo()
    assert opened(tmp_path) == (EXPECTED, [])


# ---------------------------------------------------------------- Ctrl-C


class NeverWaits(FileSystem):
    """Nobody else is there: whoever waits for a lock waits for himself."""

    def lock(self, file: int, kind: int) -> None:
        try:
            super().lock(file, kind | AT_ONCE)
        except BlockingIOError:
            if kind & AT_ONCE:
                raise
            pytest.fail("it waits for a lock of its own")


class Struck:
    """Raises a KeyboardInterrupt before the line of this number, of those that take and release locks."""

    FILES = ("store.py", "filesystem.py", "contextlib.py")
    FUNCTIONS = (
        "_lock",
        "lock",
        "_patiently",
        "<lambda>",
        "__enter__",
        "__exit__",
        "helper",
        "close_file",
        "close",
    )

    def __init__(self, line: int) -> None:
        self.left = line

    def __call__(self, frame: FrameType, event: str, _argument: object) -> Struck | None:
        code = frame.f_code
        if event == "line":
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self if code.co_filename.endswith(self.FILES) and code.co_name in self.FUNCTIONS else None


def test_ctrl_c_at_any_line_leaves_no_lock_that_the_store_waits_for(tmp_path: Path) -> None:
    line, struck = 0, True
    while struck:
        line += 1
        directory = tmp_path / str(line)
        tracer = Struck(line)
        with replaced(NeverWaits()), suppress(KeyboardInterrupt), SweepStore(directory, pytest.fail) as store:
            sys.settrace(tracer)
            try:
                store.append(FEW[:1])
                store.seal()
                store.finished("engine")
            finally:
                sys.settrace(None)
        struck = tracer.left <= 0
    assert line > 20, "locks are taken and released in so many lines"
