"""How many runs a scenario gets where nobody says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import perhop
from perhop.errors import PerhopError
from perhop.processes import memory
from perhop.runs import budget
from perhop.scenario import reading

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.python.conftest import Finished

    Perhop = Callable[..., Finished]

EXAMPLES = Path("examples")


def test_the_ladder() -> None:
    """As many runs as fit, never fewer than the first rung; the median counts."""
    assert budget.EVENTS == 60_000_000
    for each, runs in (
        (1, 30),
        (2_000_000, 30),
        (2_000_001, 10),
        (6_000_000, 10),
        (6_000_001, 5),
        (10**12, 5),
    ):
        assert budget.fitting([each], budget.EVENTS) == runs
    assert budget.fitting([10**9, 1000, 1000, 1000, 1000], budget.EVENTS) == 30
    assert budget.fitting([100], 3000, (8, 12, 30)) == 30
    assert budget.fitting([100], 2999, (8, 12, 30)) == 12


def test_a_short_run_is_made_thirty_times(perhop: Perhop, small: Path) -> None:
    """The line says how many and how to repeat them, and that repeats every number."""
    done = perhop("run", small, "--json", "all.json", "--out", "out")
    said = " ".join(done.out.split())
    assert "30 runs, seeds 1 to 30" in said
    assert "30 by default, as a run is short; --runs 30 repeats them." in said
    by_default = json.loads(Path(small.parent / "all.json").read_text(encoding="utf-8"))
    manifest = json.loads(Path(small.parent / "out" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["scenarios"][0]["runs_by_default"] is True
    assert manifest["command"] == f"perhop run {small} --runs 30 --out out"
    again = perhop("run", small, "--runs", "30", "--json", "-")
    asked = json.loads(again.out)
    assert (by_default.pop("runs_by_default"), asked.pop("runs_by_default")) == (True, False)
    assert by_default == asked
    assert "by default" not in again.err


def test_longer_runs_are_made_less_often(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    each = perhop.run(small, runs=1).runs[0].raw["events"]
    counts = []
    for most in (40 * each, 20 * each, each):
        monkeypatch.setattr(budget, "EVENTS", most)
        counts.append(len(perhop.run(small, runs=None).runs))
    assert counts == [30, 10, 5]
    assert "as 30 would take long; --runs 5 repeats them" in budget.reason(5)


def test_the_number_does_not_depend_on_how_the_runs_are_made(small: Path, tmp_path: Path) -> None:
    """Not on threads, and not on a run whose packets are recorded, which has more events."""
    seen: list[tuple[int, int]] = []
    alone = perhop.run(small, runs=None, jobs=1, progress=lambda *done: seen.append(done))
    assert seen[:5] == [(number, 5) for number in range(1, 6)]
    assert seen[5:] == [(number, 30) for number in range(6, 31)]
    recorded = perhop.run(small, runs=None, jobs=2, capture=tmp_path / "packets.pcapng")
    assert [run.seed for run in alone.runs] == [run.seed for run in recorded.runs] == list(range(1, 31))
    assert [run.raw["engine"] for run in recorded.runs] == ["reference", *["batched"] * 29]
    assert alone.classes().equals(recorded.classes())


def test_slower_engines_count_for_more(small: Path) -> None:
    result = perhop.run(small, engine="reference", runs=1)
    events = result.runs[0].raw["events"]
    assert budget.cost(result.scenario, result.runs[0].raw) == 3 * events
    link = perhop.scenario.Link(from_="a", to="b", rate="1Mbps", delay="1ms", queue=Rule())
    flow = perhop.scenario.Flow(name="tcp", from_="a", to="b", transport=perhop.scenario.Tcp(tcp="newreno"))
    slow = perhop.run(perhop.Scenario(duration="1s", links={"link": link}, flows=[flow]), runs=1)
    assert budget.cost(slow.scenario, slow.runs[0].raw) == 8 * slow.runs[0].raw["events"]


class Rule(perhop.Aqm):
    """Passes every packet."""

    def on_arrival(self, *_: object) -> perhop.Verdict:
        return perhop.Verdict.PASS


def test_seeds_and_memory_leave_room(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    last = perhop.run(small, runs=None, seed=2**64 - 12)
    assert [run.seed for run in last.runs] == list(range(2**64 - 12, 2**64 - 2))
    with pytest.raises(PerhopError, match="no room for 5 runs"):
        perhop.run(small, runs=None, seed=2**64 - 2)
    fitting = memory.fitting

    def little(scenario: str, runs: int, jobs: int | None, cores: int) -> tuple[int, int]:
        if runs > 20:
            raise PerhopError("not enough memory")
        return fitting(scenario, runs, jobs, cores)

    monkeypatch.setattr(memory, "fitting", little)
    assert len(perhop.run(small, runs=None).runs) == 10


@pytest.mark.parametrize(("name", "runs"), [("first", 30), ("dualpi2", 30), ("network", 10), ("office", 5)])
def test_examples(name: str, runs: int) -> None:
    text = reading.canonical(EXAMPLES / f"{name}.toml")
    assert budget.runs_of(text, 1, budget.EVENTS) == runs
