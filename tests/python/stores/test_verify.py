"""`perhop store verify`: it finds whatever is no whole run, and removes it on request."""

from __future__ import annotations

import shutil
from array import array
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.python.stores.keeping import encode

from perhop.commands import cli
from perhop.errors import PerhopError
from perhop.stores.journal import joined
from perhop.stores.measures import Layout, Record
from perhop.stores.metrics import engine_id
from perhop.stores.outcomes import DirectoryStore, Entry, engine_digest, pack
from perhop.stores.segments import ARCHIVE, RUNS
from perhop.stores.sweeps import SweepStore
from perhop.stores.verify import verify

if TYPE_CHECKING:
    from collections.abc import Callable


def record(seed: int) -> Record:
    return Record(Layout('{"a":1}', engine_id(), ("loss",)), seed, 0.1, array("d", [0.5]))


def reproduced(out: Path) -> Path:
    """What `perhop reproduce --out` keeps: two runs of this engine, one of another; its one journal."""
    store = DirectoryStore(out / "runs", pytest.fail)
    store.save("a", {"x": 1})
    store.save("b", {"x": 2})
    store.close()
    (path,) = (out / "runs").iterdir()
    other = Entry("c", "another", pack({"x": 3})).content()
    path.write_bytes(path.read_bytes() + joined([other])[len(joined([])) :])
    return path


def swept(directory: Path) -> Path:
    """What `perhop sweep --store` keeps: three runs."""
    with SweepStore(directory, pytest.fail) as store:
        store.append([record(seed) for seed in (1, 2, 3)])
    return directory


def found(directory: Path) -> list[tuple[str, str]]:
    return [(finding.kind, finding.text) for checked in verify(directory) for finding in checked.findings]


def flip(path: Path, place: int = -2) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 8
    path.write_bytes(data)


def test_whole_stores_have_no_findings(tmp_path: Path) -> None:
    reproduced(tmp_path)
    for folder in ("pictures", "studies"):
        (tmp_path / "runs" / folder).mkdir()
    swept(tmp_path / "store")
    runs, sweeps = verify(tmp_path)
    assert (runs.directory, runs.whole, runs.others, runs.findings) == (tmp_path / "runs", 2, 1, [])
    assert (sweeps.directory, sweeps.whole, sweeps.others, sweeps.findings) == (tmp_path / "store", 3, 0, [])
    assert [checked.directory for checked in verify(tmp_path / "runs")] == [tmp_path / "runs"]
    assert [checked.directory for checked in verify(tmp_path / "store")] == [tmp_path / "store"]


def break_bit(out: Path) -> None:
    flip(next((out / "runs").glob("*.journal")))


def break_run(out: Path) -> None:
    content = Entry("d", engine_digest(), b"no run").content()
    (out / "runs" / "x.journal").write_bytes(joined([content]))


def break_type(out: Path) -> None:
    packed = pack({"x": {"$array": ["f8,(", [1], 0]}})
    (out / "runs" / "x.journal").write_bytes(joined([Entry("d", engine_digest(), packed).content()]))


def add_sweep(out: Path) -> None:
    (out / "runs" / "x.journal").write_bytes(encode([record(1)]))


def add_stranger(out: Path) -> None:
    (out / "runs" / "notes.txt").write_text("mine")


def add_earlier(out: Path) -> None:
    (out / "runs" / "x.npz").write_bytes(b"PK")


def add_unfinished(out: Path) -> None:
    (out / "runs" / ".x.new").write_bytes(b"perhop")
    (out / "runs" / ".x.journal.1-2.partial").write_bytes(b"perhop")


@pytest.mark.parametrize(
    ("change", "kinds", "texts"),
    [
        (break_bit, ["broken"], ["bytes cannot be read; 2 records are whole"]),
        (break_run, ["broken"], ["the run d is not whole"]),
        (break_type, ["broken"], ["the run d is not whole"]),
        (add_sweep, ["foreign", "foreign"], ["no run of `perhop reproduce`"] * 2),
        (add_stranger, ["foreign"], ["no file of this store"]),
        (add_earlier, ["earlier format"], ["1 run, not read"]),
        (add_unfinished, ["unfinished", "unfinished"], ["left by a program that was killed"] * 2),
    ],
)
def test_what_is_wrong_in_the_runs_of_reproduce(
    tmp_path: Path, change: Callable[[Path], None], kinds: list[str], texts: list[str]
) -> None:
    reproduced(tmp_path)
    change(tmp_path)
    said = found(tmp_path)
    assert [kind for kind, _ in said] == kinds
    for (_, text), expected in zip(said, texts, strict=True):
        assert text.startswith(str(tmp_path / "runs"))
        assert expected in text
    assert found(tmp_path) == said, "nothing is changed"
    assert call("store", "verify", str(tmp_path), "--delete") == 0
    assert found(tmp_path) == []
    if change is not break_bit:
        assert verify(tmp_path)[0].others == 1
    assert verify(tmp_path)[0].whole == 2


def call(*arguments: str) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["perhop", *arguments])
        with pytest.raises(SystemExit) as end:
            cli.main()
    return int(end.value.code or 0)


def test_a_journal_that_is_being_written_is_not_broken(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "runs", pytest.fail)
    store.save("a", {"x": 1})
    with next((tmp_path / "runs").iterdir()).open("ab") as file:
        file.write(b"half a record")
    assert found(tmp_path) == []
    store.close()
    assert len(found(tmp_path)) == 1


def test_what_is_wrong_in_a_store_of_sweeps(tmp_path: Path) -> None:
    swept(tmp_path)
    flip(max((tmp_path / "journals").iterdir()))
    (tmp_path / "journals" / "x.journal").write_bytes(encode([record(4)])[:-1])
    (tmp_path / "journals" / ".x.new").write_bytes(b"half")
    (tmp_path / "journals" / "notes").write_text("mine")
    said = found(tmp_path)
    assert [kind for kind, _ in said] == ["broken", "broken", "unfinished", "foreign"]
    assert (verify(tmp_path)[0].whole, verify(tmp_path)[0].others) == (2, 0)
    assert found(tmp_path) == said, "nothing is changed"
    SweepStore(tmp_path, lambda _: None).close()
    assert [kind for kind, _ in found(tmp_path)] == ["foreign"]
    assert call("store", "verify", str(tmp_path), "--delete") == 0
    assert found(tmp_path) == []
    assert verify(tmp_path)[0].whole == 2


def earlier(place: Path) -> Path:
    """A store of sweeps of the version before this one, mended: a run in a journal, four in a segment."""
    shutil.copytree(Path(__file__).parent / "earlier" / "sweeps", place)
    ((kind, text),) = found(place)
    assert (kind, text.rpartition(": ")[2]) == ("broken", "54 bytes cannot be read; 2 records are whole")
    SweepStore(place, lambda _: None).close()
    assert found(place) == []
    return place


def of_segment(store: Path, ending: str) -> Path:
    (path,) = (store / "segments").glob(f"*{ending}")
    return path


def test_what_is_wrong_in_a_segment_of_the_version_before(tmp_path: Path) -> None:
    store = earlier(tmp_path / "store")
    flip(of_segment(store, RUNS), 50)
    (store / "segments" / ".y.partial").write_bytes(b"half")
    (store / "segments" / "notes").write_text("mine")
    said = found(store)
    assert [kind for kind, _ in said] == ["broken", "unfinished", "foreign"]
    assert said[0][1] == f"{of_segment(store, RUNS)}: its content is not what its name says"
    assert verify(store)[0].others == 5
    assert found(store) == said, "nothing is changed"
    assert call("store", "verify", str(store), "--delete") == 0
    assert found(store) == []
    assert verify(store)[0].others == 5


def test_a_broken_archive_is_mended_and_what_was_set_aside_is_found(tmp_path: Path) -> None:
    store = earlier(tmp_path / "store")
    flip(of_segment(store, ARCHIVE))
    assert [kind for kind, _ in found(store)] == ["broken"]
    assert verify(store)[0].others == 1
    SweepStore(store, lambda _: None).close()
    ((kind, text),) = found(store)
    assert (kind, text.rpartition(": ")[2]) == ("broken", "set aside when the store was opened")
    assert verify(store)[0].others == 5
    assert call("store", "verify", str(store), "--delete") == 0
    assert found(store) == []


def test_a_missing_archive_of_a_segment_is_found(tmp_path: Path) -> None:
    store = earlier(tmp_path / "store")
    of_segment(store, ARCHIVE).unlink()
    ((kind, text),) = found(store)
    assert kind == "broken"
    assert text.endswith(f"its file *{ARCHIVE} is missing")
    assert call("store", "verify", str(store), "--delete") == 0
    assert found(store) == []
    assert verify(store)[0].others == 5


def test_its_exit_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = reproduced(tmp_path)
    assert call("store", "verify", str(tmp_path)) == 0
    assert capsys.readouterr().out == f"{tmp_path}/runs: 2 whole runs, 1 of other builds of the engine\n"
    flip(journal)
    assert call("store", "verify", str(tmp_path)) == 1
    assert f"  broken: {journal}: " in capsys.readouterr().out
    assert call("store", "verify", str(tmp_path / "nothing")) == 2
    assert "no store of finished runs" in capsys.readouterr().err


def test_a_place_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(PerhopError, match="no store of finished runs"):
        verify(tmp_path)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "x.journal").mkdir()
    with pytest.raises(PerhopError, match=r"x\.journal: cannot be read or removed: Is a directory"):
        verify(tmp_path)
