"""`perhop init`: three questions, and a scenario that runs as it is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import perhop as package
from perhop import filesystem

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.python.conftest import Finished

    Perhop = Callable[..., Finished]

ROOT = Path(__file__).parents[3]


def classes(path: Path) -> dict[str, dict[str, object]]:
    """What each class of a scenario gets in two runs."""
    return {row["class"]: row for row in package.run(path, runs=2).classes().iter_rows(named=True)}


def asked(place: Path, answers: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `perhop init` with answers on its standard input."""
    return subprocess.run(
        [sys.executable, "-m", "perhop", "init", *arguments],
        input=answers,
        cwd=place,
        env=os.environ | {"PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        check=False,
    )


def test_what_is_offered_is_a_scenario_that_runs_without_notices(perhop: Perhop, tmp_path: Path) -> None:
    done = perhop("init", "--yes")
    assert (done.code, done.err) == (0, "")
    assert done.out == "my.toml: written; next: perhop run my.toml\n"
    got = classes(tmp_path / "my.toml")
    assert (got["customers"]["flows"], got["others"]["flows"]) == (2, 8)
    # Who was promised 2 Mbit/s gets it; of ten equal users, each would get 1.
    assert float(str(got["customers"]["throughput_bps"])) > 1.9e6
    assert float(str(got["others"]["throughput_bps"])) < 1e6
    assert perhop("run", "my.toml", "--runs", "1").err == ""


def test_three_answers_or_none(tmp_path: Path) -> None:
    done = asked(tmp_path, "50Mbps\n3 staff, 5 guests\nstaff 4 Mbps\n")
    assert done.returncode == 0
    assert done.stderr.count("?") == 3
    text = (tmp_path / "my.toml").read_text()
    assert 'rate = "50Mbps"' in text
    assert 'rate = "4 Mbps"' in text
    assert asked(tmp_path, "\n\n\n", "one.toml").returncode == 0
    assert asked(tmp_path, "", "two.toml", "--yes").returncode == 0
    one, two = (tmp_path / name for name in ("one.toml", "two.toml"))
    assert one.read_text().replace("one.toml", "two.toml") == two.read_text()


def test_nobody_answers(tmp_path: Path) -> None:
    done = asked(tmp_path, "50Mbps\n")
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert last == "error: no answer; give --users, such as --users '2 customers, 8 others', or --yes"
    assert not list(tmp_path.iterdir())


def test_nothing_promised_is_codel(perhop: Perhop, tmp_path: Path) -> None:
    done = perhop("init", "--rate", "20Mbps", "--users", "4 people", "--promised", "nothing")
    assert done.code == 0
    text = (tmp_path / "my.toml").read_text()
    assert 'aqm = "codel"' in text
    assert "profile =" not in text
    assert float(str(classes(tmp_path / "my.toml")["people"]["throughput_bps"])) > 4e6


@pytest.mark.parametrize("rate", ["1bps", "64kbps", "2.5Gbps", "40Gbps"])
def test_any_rate_makes_a_valid_scenario(perhop: Perhop, tmp_path: Path, rate: str) -> None:
    assert perhop("init", "--yes", "--rate", rate).code == 0
    package.simulation.read(tmp_path / "my.toml")


def test_strange_names_stay_names(perhop: Perhop, tmp_path: Path) -> None:
    done = perhop("init", "a\nduration = 1.toml", "--yes", "--rate", "1Mbps", "--users", '2 a "b\\c#, 1 ☃ 日')
    assert done.code == 0
    assert set(classes(next(tmp_path.iterdir()))) == {'a "b\\c#', "☃ 日"}


def test_a_file_that_is_there_stays(perhop: Perhop, tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    file.write_text("mine")
    done = perhop("init", "--yes")
    assert done.code == 2
    assert "my.toml: exists" in done.err
    assert file.read_text() == "mine"
    with pytest.raises(FileExistsError):
        filesystem.write_new(file, b"theirs")
    assert file.read_text() == "mine"


def test_more_promised_than_there_is_is_said(perhop: Perhop) -> None:
    done = perhop("init", "--yes", "--promised", "customers 6Mbps")
    assert done.code == 0
    assert done.err.startswith("warning: my.toml: 12 Mbit/s are promised on a link of 10Mbps")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--rate", "5mbps"], ["--rate", "5mbps"]),
        (["--rate", "0Mbps"], ["--rate", "0Mbps"]),
        (["--rate", ""], ["--rate"]),
        (["--users", "customers 2"], ["--users", "customers 2", "2 customers"]),
        (["--users", "0 customers"], ["--users", "1 to"]),
        (["--users", "2 a, 3 a"], ["--users", "`a`", "twice"]),
        (["--users", "2 a\tb"], ["--users"]),
        (["--users", "2 a,"], ["--users"]),
        (["--promised", "clients 2Mbps"], ["--promised", "clients", "customers, others"]),
        (["--promised", "customers"], ["--promised", "customers 2Mbps", "nothing"]),
        (["--promised", "customers 2"], ["--promised", "unit"]),
        (["--promised", "customers 2Mbps, customers 3Mbps"], ["--promised", "twice"]),
        (
            ["--rate", "5Mbps", "--users", "2 a", "--promised", "nothing"],
            ["--yes", "no effect"],
        ),
        (["none/my.toml"], ["none/my.toml", "No such file"]),
        (["."], ["exists"]),
    ],
)
def test_an_answer_that_is_none(
    perhop: Perhop, tmp_path: Path, arguments: list[str], said: list[str]
) -> None:
    done = perhop("init", "--yes", *arguments)
    assert done.code == 2
    assert done.out == ""
    (line,) = done.err.splitlines()
    assert line.startswith("error: ")
    for word in said:
        assert word in line
    assert not list(tmp_path.iterdir())
