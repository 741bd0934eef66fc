"""Pictures drawn on several cores: the same bytes, whatever becomes of a drawer, and no process is left."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.python.output.test_report import outcome

from perhop.show.drawers import MOST_DRAWERS, PICTURES_FOR_A_DRAWER, Drawers
from perhop.studies import STUDIES
from perhop.studies.page import StudyPart
from perhop.studies.writer import ReproductionReport

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.python.conftest import Finished

    Perhop = Callable[..., Finished]


def process_of(_number: int) -> int:
    return os.getpid()


def slowly(_number: int) -> int:
    time.sleep(0.05)
    return os.getpid()


def doubled(number: int) -> int:
    if number < 0:
        raise ValueError(f"{number} is negative")
    return 2 * number


def files(directory: Path) -> dict[str, bytes]:
    """All that a report consists of, without the runs."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and "runs" not in path.relative_to(directory).parts
    }


def gone(process: int) -> bool:
    """Whether a process, which may be no child of ours, has ended; a zombie has."""
    try:
        with open(f"/proc/{process}/stat", encoding="ascii") as file:  # noqa: PTH123 - no path of the project
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_without_drawers_everything_is_drawn_at_once_and_here() -> None:
    for drawers in (Drawers(1, 100), Drawers(8, 5)):
        with drawers:
            asked = [drawers.ask(process_of, number) for number in range(3)]
            assert all(one.over.is_set() for one in asked)
            assert set(drawers.get(asked)) == {os.getpid()}


@pytest.mark.parametrize(
    ("jobs", "expected", "most"),
    [(2, 5, 0), (2, 6, 1), (2, 100, 1), (8, 18, 3), (8, 100, 7), (1024, 10_000, MOST_DRAWERS)],
)
def test_there_are_as_many_drawers_as_pay(jobs: int, expected: int, most: int) -> None:
    assert Drawers(jobs, expected).most == most


def test_drawers_draw_while_the_caller_does_something_else() -> None:
    with Drawers(3, 12) as drawers:
        asked = [drawers.ask(slowly, number) for number in range(6)]
        end = time.monotonic() + 120
        while not all(one.over.is_set() for one in asked):
            assert time.monotonic() < end
            time.sleep(0.01)
        drawn_by = drawers.get(asked)
    assert os.getpid() not in drawn_by
    assert set(drawn_by) <= {process.pid for process in drawers._processes}


def test_the_caller_helps_and_the_order_is_that_of_asking() -> None:
    with Drawers(2, 50) as drawers:
        asked = [drawers.ask(doubled, number) for number in range(50)]
        assert drawers.get(list(reversed(asked))) == [2 * number for number in reversed(range(50))]


def test_what_fails_fails_where_it_is_wanted() -> None:
    with Drawers(2, 50) as drawers:
        asked = [drawers.ask(doubled, number) for number in (1, -1, 2)]
        with pytest.raises(ValueError, match="-1 is negative"):
            drawers.get(asked)


def test_what_cannot_be_sent_to_a_drawer_is_drawn_here() -> None:
    with Drawers(2, 50) as drawers:
        asked = [drawers.ask(lambda: os.getpid()) for _ in range(3)]  # noqa: PLW0108 - a lambda is the point
        assert drawers.get(asked) == [os.getpid()] * 3


def test_a_drawer_that_is_killed_loses_no_picture() -> None:
    with Drawers(2, 50) as drawers:
        asked = [drawers.ask(slowly, number) for number in range(20)]
        end = time.monotonic() + 120
        while not asked[1].over.is_set():
            assert time.monotonic() < end
            time.sleep(0.01)
        (process,) = drawers._processes
        process.kill()
        drawn_by = drawers.get(asked)
    assert drawn_by[0] == process.pid
    assert drawn_by[-1] == os.getpid()


def test_a_python_that_cannot_be_started_is_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with Drawers(3, 50) as drawers:
        asked = [drawers.ask(doubled, number) for number in range(5)]
        assert drawers.get(asked) == [0, 2, 4, 6, 8]


def test_leaving_early_leaves_no_process() -> None:
    with Drawers(4, 50) as drawers:
        asked = [drawers.ask(slowly, number) for number in range(500)]
        end = time.monotonic() + 120
        while not drawers._processes:
            assert time.monotonic() < end
            time.sleep(0.01)
    assert not asked[-1].over.is_set()
    assert all(process.returncode is not None for process in drawers._processes)


PARENT = """\
import time
from perhop.show.drawers import Drawers
drawers = Drawers(2, 6)
drawers.ask(time.sleep, 0.0)
drawers.ask(time.sleep, 0.0)
while not drawers._processes:
    time.sleep(0.01)
print(drawers._processes[0].pid, flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_drawer_ends_when_who_started_it_is_killed() -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    drawer = int(parent.stdout.readline())
    assert not gone(drawer)
    parent.kill()
    parent.communicate(timeout=60)
    assert parent.returncode == -signal.SIGKILL
    end = time.monotonic() + 60
    while not gone(drawer):
        assert time.monotonic() < end
        time.sleep(0.02)


def test_plots_of_all_studies_can_be_sent_to_a_drawer() -> None:
    for study in STUDIES.values():
        assert pickle.loads(pickle.dumps(study.plots)) == study.plots, study.id  # noqa: S301 - our own


def test_a_study_is_the_same_however_it_is_drawn(tmp_path: Path) -> None:
    made = outcome()
    studies = [replace(made, study=replace(made.study, id=f"study-{number}")) for number in range(4)]
    reports = {}
    for jobs in (1, 3):
        place = tmp_path / f"{jobs}"
        place.mkdir()
        reported: list[Any] = []
        with ReproductionReport(place, "perhop reproduce", [one.study for one in studies], jobs) as report:
            for one in studies:
                report.draw(one)
                reported += report.drawn()
            reported += report.drawn(wait=True)
            report.finish(studies)
        assert [one.study.id for one, _ in reported] == [one.study.id for one in studies]
        assert [path.name for path in reported[0][1]] == [
            f"study-0-assured-{kind}.png" for kind in ("lines", "points", "bars")
        ]
        reports[jobs] = files(place)
    assert reports[1] == reports[3]
    assert len(reports[1]) == 4 * (3 + 1) * 2 + 3
    assert str(StudyPart.of(studies[0]).html) in reports[3]["report.html"].decode()


def test_reproduce_gives_the_same_for_any_jobs(perhop: Perhop, tmp_path: Path) -> None:
    """Text, report, plots and data; only the words on reused runs differ."""
    found, texts = {}, {}
    for jobs in (1, 2):
        done = perhop(
            *("reproduce", "bouras-fig2", "bouras-fig4", "bouras-fig5", "--runs", "2", "--jobs", f"{jobs}"),
            *("--out", "out", "--json", "results.json"),
        )
        assert done.code == 0, done.err
        texts[jobs] = done.out.rpartition("\n\n")[0]
        found[jobs] = {**files(tmp_path / "out"), "json": (tmp_path / "results.json").read_bytes()}
    assert texts[1] == texts[2]
    assert found[1] == found[2]


SWEEP = """\
scenario = "small.toml"
runs = 2
metrics = ["links.*.utilization", "links.*.mean*", "links.*.delay_p*_s", "flows.*.throughput_bps"]
[set]
duration = "5s"
[grid]
"links.bottleneck.queue.limit" = ["20p", "40p", "60p"]
"""
TUNE = """\
scenario = "small.toml"
trials = 6
runs = 1
validation-runs = 2
objectives = [
    "minimize links.bottleneck.mean_queue_packets",
    "maximize links.bottleneck.utilization",
    "maximize flows.gold.throughput_bps",
    "minimize links.bottleneck.delay_p95_s",
]
[set]
duration = "5s"
[search]
"links.bottleneck.queue.limit" = "20p..200p"
"""


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("command", "text"), [("sweep", SWEEP), ("tune", TUNE)])
def test_reports_of_sweeps_and_searches_are_the_same_for_any_jobs(
    perhop: Perhop, tmp_path: Path, command: str, text: str
) -> None:
    (tmp_path / "it.toml").write_text(text, encoding="utf-8")
    found = {}
    for jobs in (1, 2, 4):
        done = perhop(command, "it.toml", "--store", "store", "--out", "out", "--jobs", f"{jobs}")
        assert done.code == 0, done.err
        found[jobs] = files(tmp_path / "out")
    assert sum(name.endswith(".svg") for name in found[1]) >= PICTURES_FOR_A_DRAWER
    assert found[1] == found[2] == found[4]
