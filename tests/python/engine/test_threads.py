"""Runs of large networks on several threads: the same results, and what the program says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from perhop import _engine
from perhop.errors import PerhopError
from perhop.runs import simulate, summary
from perhop.scenario import reading

if TYPE_CHECKING:
    from tests.python.conftest import Finished

    Perhop = Callable[..., Finished]

NETWORK = Path("examples/network.toml").resolve()
SMALL = Path("examples/first.toml").resolve()


@pytest.fixture
def short(tmp_path: Path) -> Path:
    """The example of a network, which two threads run, for two simulated seconds."""
    text = NETWORK.read_text(encoding="utf-8")
    text = text.replace('duration = "6s"', 'duration = "2s"').replace('warmup = "2s"', 'warmup = "500ms"')
    path = tmp_path / "network.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_results_are_the_same_for_any_number_of_threads(short: Path) -> None:
    divided, _ = _engine.division(reading.canonical(short), 2)
    assert divided is not None
    assert len(divided["routers"]) == len(divided["work"]) == 2
    one, two, three = (summary.to_json(simulate.run(short, threads=threads, runs=1)) for threads in (1, 2, 3))
    assert one == two == three


def test_the_command_says_how_runs_are_divided_or_why_not(perhop: Perhop, short: Path) -> None:
    done = perhop("run", short, "--runs", 1, "--threads", 2)
    assert done.code == 0
    divided, _ = _engine.division(reading.canonical(short), 2)
    assert divided is not None
    routers, work = divided["routers"], [round(100 * share) for share in divided["work"]]
    said = (
        f"Each run uses 2 threads, with {routers[0]} and {routers[1]} routers and {work[0]} and {work[1]} % "
        f"of the work; {divided['border']} links between them, and rounds of "
    )
    assert said in " ".join(done.err.split())
    small = perhop("run", SMALL, "--runs", 1, "--threads", 2)
    assert "Each run uses 1 of 2 threads: it has" in small.err
    reference = perhop("run", short, "--runs", 1, "--threads", 2, "--engine", "reference")
    assert "Each run uses 1 of 2 threads: the reference engine runs it" in reference.err
    refused = perhop("run", SMALL, "--threads", 0)
    assert (refused.code, refused.out) == (2, "")
    assert "--threads must lie between 1 and 1024, not 0" in refused.err


def test_threads_must_be_a_whole_number(short: Path) -> None:
    with pytest.raises(PerhopError, match="threads must lie between 1 and 1024, not 2000"):
        simulate.run(short, threads=2000, runs=1)
    with pytest.raises(PerhopError, match="threads must be a whole number"):
        simulate.run(short, threads=1.5, runs=1)  # type: ignore[arg-type]
