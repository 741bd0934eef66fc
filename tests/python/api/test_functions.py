"""The functions of `perhop` that go with its commands: they give what the commands give."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.python.conftest import SMALL

import perhop as package
from perhop.commands import cli
from perhop.measures import catalog, flow_table
from perhop.scenario import Codel, Scenario
from perhop.statistics import paired_difference

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.python.conftest import Finished

    Perhop = Callable[..., Finished]

SWEEP = 'scenario = "small.toml"\nruns = 2\n[grid]\n"links.bottleneck.rate" = ["1Mbps", "2Mbps"]\n'
MOST_NAMES = 45


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL, encoding="utf-8")
    return path


def test_each_command_has_a_function_of_its_name() -> None:
    """Commands without a function print or write something that other names have."""
    beside = {
        "init",
        "import",
        "export",
        "scenario",
        "topology",
        "check-block",
        "explore",
        "doctor",
        "schema",
    }
    beside |= {"list", "store"}
    assert {name for name, *_ in cli.COMMANDS} - beside <= set(package.__all__)


def test_the_root_has_few_names() -> None:
    assert len(package.__all__) <= MOST_NAMES
    assert all(getattr(package, name) is not None for name in package.__all__)


@pytest.mark.parametrize("module", ["gym", "measures", "quality", "routers", "scenario", "statistics"])
def test_documented_modules_are_there(module: str) -> None:
    pytest.importorskip("gymnasium") if module == "gym" else None
    assert getattr(package, module).__doc__


@pytest.mark.parametrize("runs", [2, None])
def test_run_gives_what_the_command_gives(perhop: Perhop, small: Path, runs: int | None) -> None:
    said = [] if runs is None else ["--runs", str(runs)]
    result = package.run(small, runs=runs)
    assert result.json() == perhop("run", "small.toml", *said, "--json", "-").out
    text = perhop("run", "small.toml", *said).out
    assert result.text(80).splitlines()[3:] == text.rstrip("\n").splitlines()[3:]


def test_a_result_writes_a_report_that_can_be_run_again(perhop: Perhop, small: Path) -> None:
    place = small.parent / "out"
    package.run(small, runs=2).write(place)
    assert (place / "report.html").is_file()
    assert perhop("rerun", "out").code == 0
    assert package.rerun(place).agrees


def test_sweep_gives_what_the_command_gives(perhop: Perhop, small: Path) -> None:
    file = small.with_name("sweep.toml")
    file.write_text(SWEEP, encoding="utf-8")
    printed = perhop("sweep", "sweep.toml", "--store", "one", "--json", "-").out
    assert package.sweep(file, store=small.parent / "two").json() == printed
    grid = {"links.bottleneck.rate": ["1Mbps", "2Mbps"]}
    data = {"title": "sweep", "scenario": Scenario.read(small), "runs": 2, "grid": grid}
    of_data = package.sweep(data, store=small.parent / "two")
    assert of_data.work.simulated == 0
    assert json.loads(of_data.json())["points"] == json.loads(printed)["points"]


def test_reproduce_gives_what_the_command_gives(perhop: Perhop, tmp_path: Path) -> None:
    done = perhop("reproduce", "kim-fig2", "--runs", "2", "--out", "out", "--json", "-")
    again = package.reproduce("kim-fig2", runs=2, store=tmp_path / "out" / "runs")
    assert again.json() == done.out
    assert again.claims().height > 0
    with pytest.raises(package.PerhopError, match="no study `kim-fig9`"):
        package.reproduce("kim-fig9")


def test_differences_are_paired_by_seed(small: Path) -> None:
    scenario = Scenario.read(small)
    rio = package.run(scenario, runs=4)
    codel = package.run(scenario.with_("links.bottleneck.queue", Codel()), runs=4)
    found = rio.difference(codel, "throughput_bps")
    entry = next(one for one in catalog.CLASS if one.name == "throughput_bps")
    for place, name in enumerate(found["class"]):
        by_seed = [
            {run.seed: entry.value(list(flow_table.members(run.raw))[place][1]) for run in result.runs}
            for result in (rio, codel)
        ]
        wanted = paired_difference(*by_seed)
        assert found["throughput_bps"][place] == pytest.approx(wanted.mean), name
        assert found["throughput_low_bps"][place] == pytest.approx(wanted.low), name
        assert found["throughput_high_bps"][place] == pytest.approx(wanted.high), name
    (waits,) = rio.difference(codel, "delay_p99_s").iter_rows(named=True)
    assert waits["link"] == "bottleneck"
    assert rio.difference(codel, "loss", of="links")["link"].to_list() == ["bottleneck"]


@pytest.mark.parametrize(
    ("measure", "of", "said"),
    [
        ("throughput", None, "neither result has the measure `throughput`"),
        ("throughput_bps", "queues", "of must be groups, links"),
    ],
)
def test_differences_that_cannot_be(small: Path, measure: str, of: str | None, said: str) -> None:
    result = package.run(small, runs=2)
    with pytest.raises(package.PerhopError, match=said):
        result.difference(result, measure, of=of)
    with pytest.raises(package.PerhopError, match="give both results the same seeds"):
        result.difference(package.run(small, runs=2, seed=7), "throughput_bps")


def test_course_checks_answers(perhop: Perhop, tmp_path: Path) -> None:
    assert perhop("course", "start", "red").code == 0
    checked = package.course("red", tmp_path / "red" / "answers.toml")
    assert {one.state for one in checked} == {"missing"}


def test_a_run_in_which_values_were_set_writes_no_report(small: Path) -> None:
    simulation = package.Simulation(small)
    simulation.run_until("1s")
    simulation.set("links.bottleneck.rate", "1Mbps")
    with pytest.raises(package.PerhopError, match="values were set during this run"):
        simulation.finish().write(small.parent / "out")
    assert not (small.parent / "out").exists()
