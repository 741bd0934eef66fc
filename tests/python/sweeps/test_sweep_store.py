"""The store of sweeps: what finished is found again, whatever breaks."""

from __future__ import annotations

import errno
import fcntl
import gzip
import hashlib
import io
import math
import multiprocessing
import os
import shutil
import sys
import warnings
import zlib
from array import array
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.python.stores.keeping import Contents, decode, encode, kept_runs

from perhop.errors import PerhopWarning
from perhop.files.filesystem import AT_ONCE, FileSystem, replaced
from perhop.stores.journal import ENDING, MAGIC, framed, joined, pieces
from perhop.stores.measures import Encoder, Layout, Record
from perhop.stores.segments import ARCHIVE, RUNS, SCENARIOS
from perhop.stores.sweeps import StoreError, SweepStore

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
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
    with SweepStore(directory, said.append) as store:
        runs = store.runs("throughput_bps").join(store.scenarios(), on="scenario").sort("json", "seed")
    # A store without any run has no measures, either.
    return runs.select("json", "seed", "throughput_bps").rows() if runs.height else [], said


EXPECTED = [
    ('{"a":1}', 1, 0.1),
    ('{"a":1}', 2, 0.2),
    ('{"b":"ü"}', 1, 0.1),
    ('{"b":"ü"}', 2**64 - 1, (2**64 - 1) * 0.1),
]


def filled(directory: Path) -> None:
    with SweepStore(directory, pytest.fail) as store:
        store.append(FEW)


def only(directory: Path) -> Path:
    """The one journal of a store."""
    (found,) = (directory / "journals").iterdir()
    return found


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


def test_no_number_of_a_scenario_is_used_twice() -> None:
    """A broken record of a scenario then leaves its runs without one, and never with that of another."""
    encoder = Encoder()
    first = encoder.contents([record(ONE, 1)])
    encoder.begin()
    second = encoder.contents([record(Layout("{}", "engine", ONE.metrics), 2)])
    (kept,) = decode(joined([first[0], second[1], first[1]])).records
    assert (kept.layout, kept.seed) == (ONE, 1)
    assert len(decode(joined([*first, *second])).records) == 2


# ---------------------------------------------------------------- the store


def test_what_was_kept_is_found(tmp_path: Path) -> None:
    filled(tmp_path)
    assert opened(tmp_path) == (EXPECTED, [])
    before = only(tmp_path).read_bytes()
    with SweepStore(tmp_path, pytest.fail) as store:
        found = store.finished("engine")
        # Sets have no order of their own to be sorted by.
        assert sorted(map(sorted, found.values())) == [[1, 2], [1, 2**64 - 1]]
        assert store.finished("another engine") == {}
        store.append([record(ONE, 3)])
        assert store.finished("engine")[ONE.key] == {1, 2, 3}
        assert found[ONE.key] == {1, 2}, "what was given is not changed"
    assert before in [path.read_bytes() for path in (tmp_path / "journals").iterdir()]


def test_runs_have_the_measures_whose_names_meet_a_pattern(tmp_path: Path) -> None:
    other = Layout(ONE.scenario, "another engine", (*ONE.metrics, "loss#of"))
    keys = ["scenario", "engine", "seed", "wall_s"]
    with SweepStore(tmp_path, pytest.fail) as store:
        store.append([*FEW, Record(other, 5, 0.5, array("d", [0.5, 0.25, 8.0]))])
        throughput = store.runs("through*", "nothing", engine="engine")
        assert throughput.columns == [*keys, "throughput_bps"]
        assert sorted(throughput.drop("wall_s", "engine").rows()) == sorted(
            [
                (ONE.key, 1, 0.1),
                (ONE.key, 2, 0.2),
                (TWO.key, 1, 0.1),
                (TWO.key, 2**64 - 1, (2**64 - 1) * 0.1),
            ]
        )
        losses = store.runs("loss")
        assert losses.columns == [*keys, "loss"]
        # NaN where a run has no value, null where its scenario has no such measure.
        assert sorted(zip(losses["wall_s"], map(str, losses["loss"]), strict=True)) == [
            (0.25, "None"),
            (0.25, "None"),
            (0.25, "nan"),
            (0.25, "nan"),
            (0.5, "0.25"),
        ]
        assert store.runs().columns == [*keys, "throughput_bps", "loss"]
        assert store.runs("Loss").columns == keys
        other_losses = store.runs("loss", engine="another engine", with_companions=True)
        assert other_losses.drop(keys).rows() == [(0.25, 8.0)]
        assert store.scenarios().rows() == [(ONE.key, ONE.scenario), (TWO.key, TWO.scenario)]


def test_an_empty_store_is_a_store(tmp_path: Path) -> None:
    assert opened(tmp_path) == ([], [])
    with SweepStore(tmp_path, pytest.fail) as store:
        store.append([])
        assert store.finished("engine") == {}
        assert (store.runs().height, store.scenarios().height) == (0, 0)
    assert list((tmp_path / "journals").iterdir()) == []


def test_a_flipped_bit_in_a_store_is_said_once_and_costs_little(tmp_path: Path) -> None:
    filled(tmp_path / "whole")
    whole = only(tmp_path / "whole").read_bytes()
    for place in range(0, len(whole), 3):
        directory = tmp_path / str(place)
        (directory / "journals").mkdir(parents=True)
        broken = bytearray(whole)
        broken[place] ^= 1 << place % 8
        (directory / "journals" / f"x{ENDING}").write_bytes(broken)
        rows, said = opened(directory)
        assert set(rows) <= set(EXPECTED)
        assert len(rows) >= 4 - (0 if place < len(MAGIC) else 2)
        assert len(said) == 1
        assert f"; {len(rows)} finished run" in said[0]
        assert opened(directory) == (rows, [])


def test_a_run_whose_scenario_is_lost_goes_with_it(tmp_path: Path) -> None:
    filled(tmp_path)
    path = only(tmp_path)
    first, *others = [content for _, content in pieces(path.read_bytes()).contents]
    assert first.startswith(b"S")
    path.write_bytes(joined(others))
    rows, said = opened(tmp_path)
    assert rows == [row for row in EXPECTED if row[0] == TWO.scenario]
    lost = sum(len(content) for content in others if content.startswith(b"R\0\0\0\0"))
    (text,) = said
    assert text.startswith(f"warning: {path}: {lost} of {len(joined(others))} bytes were not readable, as")
    assert text.endswith("; 2 finished runs are kept")
    assert opened(tmp_path) == (rows, [])


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
    assert left.read_bytes() == encode([record(ONE, 9)])


def test_a_run_that_is_kept_twice_is_there_once(tmp_path: Path) -> None:
    filled(tmp_path)
    with SweepStore(tmp_path, pytest.fail) as store:
        store.append(FEW[:2])
    assert len(kept_runs(tmp_path)) == 6
    assert opened(tmp_path) == (EXPECTED, [])


def test_a_journal_that_goes_while_the_store_is_read_harms_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As another process removes one in which nothing is whole."""
    filled(tmp_path)
    glob = type(tmp_path).glob

    def stale(self: Path, pattern: str) -> list[Path]:
        return [*glob(self, pattern), *([self / f"gone{ENDING}"] if pattern == f"*{ENDING}" else [])]

    monkeypatch.setattr(type(tmp_path), "glob", stale)
    assert opened(tmp_path) == (EXPECTED, [])


def test_a_long_journal_is_followed_by_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perhop.stores.journal.ROTATE_BYTES", 100)
    with SweepStore(tmp_path, pytest.fail) as store:
        store.append(FEW[:2])
        store.append(FEW[2:])
    journals = sorted((tmp_path / "journals").iterdir())
    assert [len(decode(path.read_bytes()).records) for path in journals] == [2, 2]
    assert opened(tmp_path) == (EXPECTED, [])


# ---------------------------------------------------------------- stores of earlier versions

EARLIER = Path(__file__).parents[1] / "stores" / "earlier" / "sweeps"
"""What the version before this one left: four runs in a segment, and a journal torn in its second run."""
EARLIER_SEGMENT = "18ec6b26e742f4b637973bf31f9b4772"
TORN = [*EXPECTED[:2], ('{"a":1}', 9, 0.9), *EXPECTED[2:]]


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    """A copy of that store, mended."""
    store = tmp_path / "store"
    shutil.copytree(EARLIER, store)
    rows, said = opened(store)
    assert rows == TORN
    (text,) = said
    assert text.startswith(f"warning: {only(store)}: 54 of 243 bytes were not readable, as when a program is")
    assert text.endswith("; 1 finished run is kept")
    return store


def of_segment(store: Path, ending: str) -> Path:
    (found,) = (store / "segments").glob(f"*{ending}")
    return found


def test_a_store_of_the_version_before_goes_on(earlier: Path) -> None:
    with SweepStore(earlier, pytest.fail) as store:
        assert store.finished("engine") == {ONE.key: {1, 2, 9}, TWO.key: {1, 2**64 - 1}}
        store.append([record(ONE, 10)])
    assert opened(earlier) == (sorted([*TORN, ('{"a":1}', 10, 1.0)]), [])
    kept = sorted(path.name for path in (EARLIER / "segments").iterdir())
    assert sorted(path.name for path in (earlier / "segments").iterdir()) == kept


@pytest.mark.parametrize("damage", [lambda d: d[:-1], lambda _d: b"", lambda d: d[:40] + b"\0\1" + d[42:]])
def test_a_broken_archive_is_set_aside_and_mended(earlier: Path, damage: Callable[[bytes], bytes]) -> None:
    path = of_segment(earlier, ARCHIVE)
    before = path.read_bytes()
    path.write_bytes(damage(before))
    rows, said = opened(earlier)
    assert rows == TORN
    assert said == [
        f"warning: {path} is broken and was moved to {earlier / 'broken'}",
        f"warning: segment {EARLIER_SEGMENT} was restored from its other copy; 4 runs are kept",
    ]
    assert (earlier / "broken" / path.name).read_bytes() == damage(before)
    assert gzip.decompress(of_segment(earlier, ARCHIVE).read_bytes()) == gzip.decompress(before)
    assert opened(earlier) == (TORN, [])


def test_a_missing_archive_is_mended_with_all_that_its_runs_had(earlier: Path) -> None:
    path = of_segment(earlier, ARCHIVE)
    before = path.read_bytes()
    path.unlink()
    assert len(opened(earlier)[1]) == 1
    assert gzip.decompress(of_segment(earlier, ARCHIVE).read_bytes()) == gzip.decompress(before)


def test_runs_from_a_second_copy_are_not_mixed_up(tmp_path: Path) -> None:
    """Scenarios, engines and wall times are distinguished, though all runs have the same metrics."""
    layouts = [Layout(scenario, engine, ("loss",)) for scenario in ("{}", "[]") for engine in ("one", "two")]
    runs = [Record(layout, seed, seed / 4, array("d", [0.5])) for layout in layouts for seed in (3, 1)]
    rows = [(run.layout.key, run.layout.engine, run.seed, run.wall_s, "loss", run.values[0]) for run in runs]
    names = {"scenario": pl.String, "engine": pl.String, "seed": pl.UInt64, "wall_s": pl.Float64}
    frames = {
        RUNS: pl.DataFrame(rows, {**names, "metric": pl.String, "value": pl.Float64}, orient="row"),
        SCENARIOS: pl.DataFrame(
            {"scenario": [one.key for one in layouts[1:3]], "json": [one.scenario for one in layouts[1:3]]}
        ),
    }
    (tmp_path / "segments").mkdir()
    for ending, frame in frames.items():
        buffer = io.BytesIO()
        frame.write_parquet(buffer)
        name = f"a-{hashlib.sha256(buffer.getvalue()).hexdigest()[:32]}{ending}"
        (tmp_path / "segments" / name).write_bytes(buffer.getvalue())
    SweepStore(tmp_path, lambda _: None).close()
    assert decode(gzip.decompress(of_segment(tmp_path, ARCHIVE).read_bytes())).records == runs


@pytest.mark.parametrize("ending", [RUNS, SCENARIOS])
def test_a_second_copy_that_breaks_costs_nothing(earlier: Path, ending: str) -> None:
    of_segment(earlier, ending).write_bytes(b"broken")
    assert opened(earlier) == (TORN, [])
    of_segment(earlier, ending).unlink()
    assert opened(earlier) == (TORN, [])


@pytest.mark.parametrize("ending", [RUNS, SCENARIOS])
@pytest.mark.parametrize("gone", [True, False])
def test_both_copies_broken_are_said_and_counted_as_missing(
    earlier: Path, ending: str, *, gone: bool
) -> None:
    for one in (ending, ARCHIVE):
        path = of_segment(earlier, one)
        path.unlink() if gone else path.write_bytes(b"nothing")
    rows, said = opened(earlier)
    assert rows == [('{"a":1}', 9, 0.9)]
    assert said[-1] == (
        f"warning: both copies of segment {EARLIER_SEGMENT} are broken; its runs are computed again"
    )
    assert all(f"is broken and was moved to {earlier / 'broken'}" in text for text in said[:-1])
    assert len(said) == (2 if gone else 4)
    assert opened(earlier) == (rows, [])
    assert list((earlier / "segments").iterdir()) == []


def test_a_stranger_among_the_files_keeps_nothing_from_being_checked(earlier: Path) -> None:
    of_segment(earlier, ARCHIVE).write_bytes(b"broken")
    stranger = earlier / "segments" / "0"
    stranger.write_bytes(b"mine")
    (earlier / "segments" / ".x.partial").write_bytes(b"half")
    assert opened(earlier)[0] == TORN
    assert opened(earlier) == (TORN, [])
    assert stranger.read_bytes() == b"mine"
    assert len(list((earlier / "segments").iterdir())) == 4


def test_of_two_whole_archives_of_a_segment_one_is_read(earlier: Path) -> None:
    """As where a library of another version had begun to make the segment, and its journal is there still."""
    journal = gzip.decompress(of_segment(earlier, ARCHIVE).read_bytes())
    other = gzip.compress(journal, 1)
    name = f"{EARLIER_SEGMENT}-{hashlib.sha256(other).hexdigest()[:32]}{ARCHIVE}"
    (earlier / "segments" / name).write_bytes(other)
    (earlier / "journals" / f"{EARLIER_SEGMENT}{ENDING}").write_bytes(journal)
    assert opened(earlier) == (TORN, [])


def test_a_journal_of_version_1_is_written_anew(tmp_path: Path) -> None:
    def framed_before(content: bytes) -> bytes:
        length = len(content).to_bytes(4, "little")
        return length + zlib.crc32(length + content).to_bytes(4, "little") + content

    contents = [content for _, content in pieces(encode(FEW)).contents]
    (tmp_path / "journals").mkdir()
    path = tmp_path / "journals" / f"x{ENDING}"
    path.write_bytes(b"perhop runs 1\n" + b"".join(map(framed_before, contents)))
    assert opened(tmp_path) == (EXPECTED, [])
    assert path.read_bytes() == encode(FEW)


# ---------------------------------------------------------------- several writers


def write_some(directory: str, first: int, count: int) -> None:
    for seed in range(first, first + count):
        with SweepStore(Path(directory), lambda _: None) as store:
            store.append([record(ONE, seed)])
            store.append([record(TWO, seed)])


def test_two_writers_do_not_harm_each_other(tmp_path: Path) -> None:
    """Each opens and closes the store, and so reads all journals, while the other writes."""
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


def test_a_disk_that_fails_at_the_end_keeps_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SweepStore(tmp_path, pytest.fail)
    store.append(FEW)

    def full(_file: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match=": finished runs may not outlive a failing machine: No space"):
        store.close()
    monkeypatch.undo()
    assert opened(tmp_path) == (EXPECTED, [])


def test_a_scenario_that_did_not_fit_is_written_again(tmp_path: Path) -> None:
    class Full(FileSystem):
        def write(self, _file: int, _data: memoryview) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    store = SweepStore(tmp_path, pytest.fail)
    store.append(FEW[:1])
    with replaced(Full()), pytest.raises(StoreError, match="No space left"):
        store.append(FEW[1:2])
    assert store.finished("engine") == {ONE.key: {1}}
    store.append(FEW[1:])
    store.close()
    assert opened(tmp_path) == (EXPECTED, [])


def test_a_place_that_cannot_be_a_store_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_text("x")
    with pytest.raises(StoreError, match=rf"^store {place}: cannot be opened: \w"):
        SweepStore(place, pytest.fail)


def test_a_store_may_be_named_by_text_alone(tmp_path: Path) -> None:
    with SweepStore(str(tmp_path)) as store:
        store.append(FEW)
        assert store.runs().height == len(FEW)
    # A broken journal is reported as a warning where nobody else hears of it.
    broken = only(tmp_path)
    broken.write_bytes(broken.read_bytes()[:-1])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        SweepStore(str(tmp_path)).close()
    ((category, text),) = [(one.category, str(one.message)) for one in caught]
    assert category is PerhopWarning
    assert text.startswith(f"{broken}: ")
    assert text.endswith("; 3 finished runs are kept")
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
    """Raises a KeyboardInterrupt before the line of this number, of those of stores and their files."""

    FILES = (*(f"stores/{name}.py" for name in ("sweeps", "directory", "journal")), "filesystem.py")

    def __init__(self, line: int) -> None:
        self.left = line

    def __call__(self, frame: FrameType, event: str, _argument: object) -> Struck | None:
        if event == "line":
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self if frame.f_code.co_filename.endswith(self.FILES) else None


def test_ctrl_c_at_any_line_loses_no_run_and_leaves_no_lock_that_the_store_waits_for(tmp_path: Path) -> None:
    line, struck = 0, True
    while struck:
        line += 1
        directory = tmp_path / str(line)
        tracer = Struck(line)
        kept = 0
        with replaced(NeverWaits()), suppress(KeyboardInterrupt), SweepStore(directory, pytest.fail) as store:
            sys.settrace(tracer)
            try:
                for number in (1, 2):
                    store.append(FEW[:number])
                    kept = number
                store.sync()
            finally:
                sys.settrace(None)
        struck = tracer.left <= 0
        rows, _ = opened(directory)
        assert [row for row in EXPECTED if row in rows] == rows
        assert len(rows) >= kept
        assert opened(directory) == (rows, [])
    assert line > 100, "so many lines keep runs"
