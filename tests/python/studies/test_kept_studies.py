"""A study whose runs are all stored and were judged before is taken as it was judged, and only then."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from perhop.files import kept
from perhop.stores.outcomes import STUDIES as FOLDER
from perhop.stores.outcomes import DirectoryStore, run_key
from perhop.studies import STUDIES
from perhop.studies.reproduction import Counts, StudyOutcome, execute, plan

if TYPE_CHECKING:
    from pathlib import Path

    from perhop.studies.study import Study

STUDY = STUDIES["hurley-fig2"]
RUNS = 2


class Read(Exception):  # noqa: N818 - it tells what happened
    """A run was read from the store."""


def outcome_of(place: Path, study: Study = STUDY) -> tuple[StudyOutcome, Counts]:
    counts = Counts()
    store = DirectoryStore(place, pytest.fail)
    (outcome,) = execute(plan([study], runs=RUNS, seed=1), jobs=2, store=store, counts=counts)
    store.close()
    return outcome, counts


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, StudyOutcome]:
    """A store of a study's runs without judged studies, and the study's outcome."""
    place = tmp_path_factory.mktemp("filled") / "runs"
    outcome, counts = outcome_of(place)
    assert counts.simulated == len(STUDY.cells) * RUNS
    for path in (place / FOLDER).iterdir():
        path.unlink()
    return place, outcome


@pytest.fixture
def place(filled: tuple[Path, StudyOutcome], tmp_path: Path) -> Path:
    """A copy of the store."""
    (tmp_path / "runs").mkdir()
    for path in filled[0].glob("*.journal"):
        (tmp_path / "runs" / path.name).write_bytes(path.read_bytes())
    return tmp_path / "runs"


def no_run_may_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(_store: DirectoryStore, key: str) -> None:
        raise Read(key)

    monkeypatch.setattr(DirectoryStore, "load", load)


def test_a_judged_study_is_the_same_and_no_run_is_read(
    filled: tuple[Path, StudyOutcome], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = outcome_of(place)
    no_run_may_be_read(monkeypatch)
    again, counts = outcome_of(place)
    assert again == first == filled[1]
    assert again.rows
    assert again.verdicts
    assert len(again.samples) > len(STUDY.cells) * RUNS
    assert all(type(row.mean) is float for row in again.rows if row.mean is not None)
    assert (counts.simulated, counts.found) == (0, len(STUDY.cells) * RUNS)


def test_another_run_of_the_same_key_is_judged(place: Path) -> None:
    """The key alone does not say what the store holds."""
    first, _ = outcome_of(place)
    (cell, *_), store = first.cells, DirectoryStore(place, pytest.fail)
    other = store.load(run_key(cell.scenario, 2))
    assert other is not None
    store.save(run_key(cell.scenario, 1), other)
    store.close()
    again, counts = outcome_of(place)
    assert again.rows != first.rows
    assert (counts.simulated, counts.found) == (0, len(STUDY.cells) * RUNS)


def test_a_lost_run_is_made_again_although_the_study_was_judged(place: Path) -> None:
    first, _ = outcome_of(place)
    journal = max(place.glob("*.journal"))
    journal.write_bytes(journal.read_bytes()[:-1])
    counts = Counts()
    store = DirectoryStore(place, lambda _: None)
    (again,) = execute(plan([STUDY], runs=RUNS, seed=1), jobs=1, store=store, counts=counts)
    assert again == first
    assert (counts.simulated, counts.found) == (1, len(STUDY.cells) * RUNS - 1)


@pytest.mark.parametrize(("whole", "damaged"), [(b'"rows"', b'"lines"'), (b"}", b""), (b"\n", b"")])
def test_a_damaged_file_is_judged_again(place: Path, whole: bytes, damaged: bytes) -> None:
    first, _ = outcome_of(place)
    (path,) = (place / FOLDER).iterdir()
    content = path.read_bytes()
    assert whole in content
    path.write_bytes(content.replace(whole, damaged))
    assert outcome_of(place)[0] == first
    assert path.read_bytes() == content


def test_other_code_judges_again(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome_of(place)
    monkeypatch.setattr(kept, "code", lambda: "of another version")
    no_run_may_be_read(monkeypatch)
    with pytest.raises(Read):
        outcome_of(place)


def test_a_study_of_somebody_is_judged_each_time(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing says which code it calls."""
    mine = replace(STUDY)
    outcome_of(place, mine)
    assert not (place / FOLDER).exists()
    no_run_may_be_read(monkeypatch)
    with pytest.raises(Read):
        outcome_of(place, mine)
