"""What commands and functions say to those who ask for something that is not there, and whether it helps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import perhop as package
from perhop.scenario import reading
from perhop.studies import PAPERS

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tests.python.conftest import Finished

    Perhop = Callable[..., Finished]

FILES = {
    "scenario": "small.toml",
    "sweep": 'scenario = "small.toml"\n[grid]\n"flows.gold.count" = [1, 2]\n',
    "tune": (
        'scenario = "small.toml"\ntrials = 2\nobjectives = ["minimize throughput_bps"]\n'
        '[search]\n"flows.gold.count" = "1..4"\n'
    ),
    "plan": 'scenario = "small.toml"\nobjectives = ["throughput of gold > 1 Mbit/s"]\n[growth]\nmost = 2\n',
    "router": '[inside]\ninterface = "eth0"\n[outside]\ninterface = "eth1"\n',
}
COMMANDS = {
    "scenario": "perhop run",
    "sweep": "perhop sweep",
    "tune": "perhop tune",
    "plan": "perhop plan",
    "router": "perhop-router",
}
TAKES = {
    "run": "scenario",
    "live": "scenario",
    "compare": "scenario",
    "sweep": "sweep",
    "tune": "tune",
    "plan": "plan",
}


@pytest.mark.parametrize(
    ("command", "kind"),
    [(command, kind) for command, takes in TAKES.items() for kind in FILES if kind != takes],
)
def test_a_file_of_another_kind_is_met_with_its_command(
    command: str, kind: str, perhop: Perhop, tmp_path: Path, small: Path
) -> None:
    name = "small.toml"
    if kind != "scenario":
        name = f"{kind}.toml"
        (tmp_path / name).write_text(FILES[kind], encoding="utf-8")
    done = perhop(command, name)
    assert done.code == 2
    assert done.err.startswith(f"error: {name}: this is ")
    assert done.err.endswith(f"; use `{COMMANDS[kind]} {name}`\n")
    assert small.exists()


@pytest.mark.parametrize("name", ["nosuch", "no/such/place", "kim-table1", "x" * 5000, "a\0b"])
def test_a_name_that_is_no_file_is_called_so_and_not_bad_syntax(name: str) -> None:
    with pytest.raises(package.PerhopError) as caught:
        package.run(name, runs=1)
    assert "no such file" in str(caught.value) or "file name" in str(caught.value).lower()
    assert "key" not in str(caught.value)


@pytest.mark.parametrize("take", [package.run, package.live, package.compare])
def test_a_class_is_no_scenario(take: Callable[[Any], object]) -> None:
    with pytest.raises(package.PerhopError, match=r"^a scenario is .*, not the class Scenario$"):
        take(package.Scenario)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "small.toml", "--engine", "foo"), "--engine must be batched or reference, not `foo`"),
        (("run", "small.toml", "--engine", ""), "--engine must be batched or reference, not ``"),
        (("live", "small.toml", "--device", "foo"), "--device must be auto, tun or packet, not `foo`"),
        (("compare", "small.toml", "--device", "foo"), "--device must be auto, tun or packet, not `foo`"),
    ],
)
@pytest.mark.usefixtures("small")
def test_an_unknown_value_of_an_option_is_met_with_those_it_takes(
    arguments: tuple[str, ...], message: str, perhop: Perhop
) -> None:
    done = perhop(*arguments)
    assert (done.code, done.out, done.err) == (2, "", f"error: {message}\n")


def test_toml_text_is_still_taken_for_text() -> None:
    with pytest.raises(package.ScenarioError, match="duration"):
        package.run('title = "no more than this"', runs=1)


def test_names_that_are_no_study_get_a_hint_that_helps(perhop: Perhop, small: Path) -> None:
    done = perhop("scenario", "something-else")
    assert done.code == 2
    assert done.err.startswith("error: no study `something-else`; there are kim-table1, ")
    assert "did you mean" not in done.err
    for command, name, near in (("reproduce", "kimm", "kim"), ("scenario", "bogus", "bouras")):
        hint = f"no study `{name}`; did you mean `{near}`? The studies of that paper are {near}-"
        assert hint in perhop(command, name).err
    assert "did you mean `kim-table1`?" in perhop("scenario", "kim-tabel1").err
    assert f"use `perhop run {small.name}`" in perhop("scenario", small.name).err
    paper = perhop("scenario", "kim")
    assert paper.code == 2
    assert "`kim` is a paper; its studies are kim-table1, " in paper.err


@pytest.mark.usefixtures("small")
def test_a_paper_stands_for_its_printed_items(perhop: Perhop) -> None:
    printed = [study for study in PAPERS[0].studies if not study.extra]
    done = perhop("reproduce", "kim", "--runs", "1", "--out", "small.toml/x")
    assert done.code == 2, "the place cannot be written to, so nothing runs"
    from perhop.studies import selection  # noqa: PLC0415 - what the command chose

    chosen = selection.chosen(["kim", "kim-table1"], everything=False)
    assert {study.id for study in chosen} == {study.id for study in printed}


def test_numbers_of_numpy_and_paths_make_a_scenario(small: Path) -> None:
    import tomllib  # noqa: PLC0415

    plain = tomllib.loads(small.read_text())
    numpied = tomllib.loads(small.read_text())
    numpied["flows"][0]["count"] = np.int64(2)
    numpied["flows"][1]["count"] = np.uint8(2)
    numpied["title"] = Path(plain["title"])
    plain["links"]["bottleneck"]["queue"]["gentle"] = True
    numpied["links"]["bottleneck"]["queue"]["gentle"] = np.bool_(True)  # noqa: FBT003
    plain["links"]["bottleneck"]["queue"]["weight"] = 0.25
    numpied["links"]["bottleneck"]["queue"]["weight"] = np.float32(0.25)
    assert reading.canonical(numpied) == reading.canonical(plain)


def test_numbers_of_numpy_work_in_the_builder() -> None:
    def built(count: int) -> package.Scenario:
        return package.Scenario(
            duration="1s",
            links={
                "link": package.scenario.Link(
                    from_="a",
                    to="b",
                    rate="1Mbps",
                    delay="1ms",
                    queue=package.scenario.Red(thresholds="5/15/0.1", limit="50p", weight=np.float64(0.5)),
                )
            },
            flows=[
                package.scenario.Flow(
                    name="tcp", count=count, from_="a", to="b", transport=package.scenario.Tcp(tcp="reno")
                )
            ],
        )

    count: int = np.int64(3)  # type: ignore[assignment]
    assert reading.canonical(built(count)) == reading.canonical(built(3))
    assert json.loads(built(count).to_json())["flows"][0]["count"] == 3
    assert package.run(built(count), runs=1).flows.height == 3


@pytest.mark.parametrize("value", [np.float32("nan"), np.float64("inf")])
def test_infinities_of_numpy_are_refused_with_their_place(value: object) -> None:
    with pytest.raises(package.PerhopError, match=r"flows\[0\]\.count.*finite"):
        reading.canonical({"flows": [{"count": value}]})


def test_one_thing_is_not_called_several(perhop: Perhop, tmp_path: Path, small: Path) -> None:
    assert small.exists()
    (tmp_path / "sweep.toml").write_text(
        'scenario = "small.toml"\nruns = 1\n[grid]\n"flows.gold.count" = [1]\n', encoding="utf-8"
    )
    done = perhop("sweep", "sweep.toml", "--store", "store")
    assert "1 point, 1 run of each: 1 run\n" in done.err
    assert "\n1 run simulated, " in done.out
    listed = perhop("list", "studies").out
    assert " 1 cells" not in f" {listed}"
    assert " 1 runs" not in listed


def test_a_place_that_takes_no_files_is_called_so(perhop: Perhop, small: Path) -> None:
    done = perhop("run", small, "--out", "/proc/x")
    assert done.code == 2
    assert (
        done.err
        == "error: --out /proc/x: cannot be created: /proc takes no new files; choose another place\n"
    )


def test_the_help_of_seed_says_what_else_a_result_depends_on(perhop: Perhop) -> None:
    text = " ".join(perhop("run", "--help").out.split())
    assert "renaming one changes the results of a seed" in text


@pytest.mark.parametrize(
    ("command", "counted"),
    [
        ("run", ["--runs N Simulated runs, each with its own seed"]),
        ("reproduce", ["--runs N Simulated runs of each cell of a study, each with"]),
        ("sweep", ["--runs N Simulated runs of each point, each with"]),
        ("tune", ["--runs N Simulated runs of each trial, each with"]),
        ("live", ["--runs N Runs on real packets, one after the other, each with"]),
        (
            "compare",
            [
                "--runs N Runs of each scenario on real packets, each with its own seed; --sim-runs counts",
                "--sim-runs M Simulated runs of each scenario: what `perhop run` calls --runs.",
            ],
        ),
    ],
)
def test_help_says_which_runs_are_counted(perhop: Perhop, command: str, counted: list[str]) -> None:
    text = " ".join(perhop(command, "--help").out.split())
    assert all(words in text for words in counted), text


@pytest.mark.parametrize(
    ("option", "name"),
    [("--out", "d"), ("--csv", "d"), ("--out", "d/manifest.json"), ("--csv", "d/classes.csv")],
)
def test_json_where_results_are_replaced_is_refused(
    perhop: Perhop, small: Path, option: str, name: str
) -> None:
    done = perhop("run", small.name, "--runs", "1", option, "d", "--json", name)
    assert done.code == 2
    assert done.err.startswith(f"error: --json {name}: is where {option} d writes")
    assert not small.with_name("d").exists()


def test_json_beside_the_files_of_a_report_is_written(perhop: Perhop, small: Path) -> None:
    assert perhop("run", small.name, "--runs", "1", "--out", "d", "--json", "d/run.json").code == 0
    assert (small.parent / "d" / "run.json").is_file()
