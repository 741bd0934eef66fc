"""`--csv DIR`: the tables of a result as CSV files, with the names and numbers of its JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest
from tests.python.replay import captures
from typer.testing import CliRunner

from perhop.commands import terminal
from perhop.commands.cli import app
from perhop.measures import listing
from perhop.show import csv_columns, csv_tables

if TYPE_CHECKING:
    from typer.testing import Result as Ended

EXAMPLES = Path(__file__).parents[3] / "examples"
LEANING = re.compile(r"the same|likewise|^of these|these (chunks|datagrams|flows)", re.IGNORECASE)
"""What a text says that leans on the one before."""
LINE = """\
duration = "4s"
warmup = "1s"

[links.line]
from = "a"
to = "b"
rate = "1Mbps"
delay = "5ms"
queue = { aqm = "drop-tail", limit = "20p" }

[[flows]]
name = "call"
count = 2
from = "a"
to = "b"
transport = { udp = "cbr", rate = "64kbps", packet = "200B" }

[[flows]]
name = "download"
from = "a"
to = "b"
transport = { tcp = "newreno" }

[probes]
interval = "500ms"
"""

SWEEP = """\
scenario = "line.toml"
runs = 2
metrics = ["flows.*.throughput_bps", "links.*.delay_p99_s"]
[grid]
"flows.call.count" = [1, 2]
"""

TUNE = """\
scenario = "line.toml"
runs = 2
trials = 2
validation-runs = 2
objectives = ["maximize links.line.utilization"]
[search]
"flows.call.count" = "1..2"
"""

PLAN = """\
scenario = "line.toml"
runs = 3
objectives = ["throughput of call > 10 kbit/s"]
"""

COMMANDS = {
    "run": ("run", "line.toml", "--runs", "2"),
    "bound": ("bound", "line.toml"),
    "rare": ("rare", "line.toml", "--runs", "2", "--levels", "2:2"),
    "sweep": ("sweep", "sweep.toml"),
    "tune": ("tune", "tune.toml"),
    "plan": ("plan", "plan.toml"),
    "replay": ("replay", "in.pcap", "--queue", 'aqm = "codel"', "--rate", "1Mbps"),
}
"""Each with `--csv`; `compare` needs real packets, and its JSON has a test of its own."""
FILES = {
    "run": {"classes", "links", "flows", "flows-over-time", "queues-over-time"},
    "bound": {"classes", "links", "flows"},
    "rare": {"estimates", "levels", "runs"},
    "sweep": {"points"},
    "tune": {"trials", "front"},
    "plan": {"now-objectives"},
    "replay": {"classes", "flows"},
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with files for each command."""
    for name, text in (("line", LINE), ("sweep", SWEEP), ("tune", TUNE), ("plan", PLAN)):
        (tmp_path / f"{name}.toml").write_text(text, encoding="utf-8")
    (tmp_path / "in.csv").write_text("time_s,size_B\n0,1500\n", encoding="utf-8")
    (tmp_path / "in.pcap").write_bytes(captures.example())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def typed(*arguments: str) -> Ended:
    return CliRunner().invoke(app, arguments, catch_exceptions=True)


def expect_explained(directory: Path) -> None:
    """Each column has a meaning that can be read alone, and a unit that its values may have."""
    for row in pl.read_csv(directory / "columns.csv").iter_rows(named=True):
        meaning = row["meaning"] or ""
        assert meaning, row
        assert not re.search(LEANING, meaning), row
        values = pl.read_csv(directory / row["file"], infer_schema_length=None)[row["column"]].drop_nulls()
        if row["unit"] == "fraction" and not re.search(r"_(low|high)(_|$)", row["column"]):
            assert values.is_between(0.0, 1.0).all(), row
        if re.search(r"(packets|bytes|_bps|_s)$", row["column"]) and values.dtype.is_numeric():
            assert row["unit"], row


@pytest.mark.parametrize("command", COMMANDS)
def test_every_table_is_a_file_and_every_column_is_explained(command: str, place: Path) -> None:
    done = typed(*COMMANDS[command], "--csv", "tables")
    assert done.exit_code == 0, done.output
    assert "tables: tables" in done.stdout
    columns = pl.read_csv(place / "tables" / "columns.csv")
    found = {path.stem for path in (place / "tables").iterdir()} - {"columns"}
    assert found >= FILES[command], found
    for name in found:
        frame = pl.read_csv(place / "tables" / f"{name}.csv", infer_schema_length=None)
        assert frame.height > 0
        assert columns.filter(pl.col("file") == f"{name}.csv")["column"].to_list() == frame.columns
    expect_explained(place / "tables")
    units = {row["column"]: row["unit"] for row in columns.iter_rows(named=True)}
    assert all(units[name] == "bit/s" for name in units if name.endswith("throughput_bps"))
    assert all(units[name] == "s" for name in units if name.endswith("delay_p99_s"))


@pytest.mark.parametrize("example", ["hierarchy", "office", "policer", "transfers"])
def test_columns_of_examples_are_explained(example: str, tmp_path: Path) -> None:
    text = (EXAMPLES / f"{example}.toml").read_text(encoding="utf-8")
    for file in EXAMPLES.glob("*.t*"):  # what they read
        (tmp_path / file.name).write_bytes(file.read_bytes())
    short = re.sub("^(duration|warmup) = .*\n", "", text, flags=re.MULTILINE)
    scenario = tmp_path / f"{example}.toml"
    scenario.write_text(f'duration = "6s"\nwarmup = "2s"\n{short}', encoding="utf-8")
    done = typed("run", str(scenario), "--runs", "2", "--jobs", "1", "--csv", str(tmp_path / "tables"))
    assert done.exit_code == 0, done.output
    expect_explained(tmp_path / "tables")


def test_a_column_is_explained_by_its_table() -> None:
    known = csv_columns.Columns()
    assert known.explain("flows", "dropped_red")[0] == "packets"
    assert known.explain("classes", "dropped_red")[0] == "fraction"
    assert known.explain("classes", "policing_ratio") != known.explain("links", "policing_ratio")
    assert known.explain("flows", "throughput_bps") != known.explain("flows-over-time", "throughput_bps")
    assert known.explain("applications-call", "burst_ratio")[0] == ""
    for reason in reasons():
        assert known.explain("links", f"dropped_{reason}")[0] == "packets", reason


@pytest.mark.parametrize("line", [line for lines in listing.lines().values() for line in lines])
def test_a_description_is_read_alone(line: listing.Line) -> None:
    assert not re.search(LEANING, line.description), line


def reasons() -> list[str]:
    """Why queues drop packets, as the engine names it."""
    text = (EXAMPLES.parent / "crates" / "perhop-core" / "src" / "reason.rs").read_text(encoding="utf-8")
    return re.findall(r'^    \w+ = "([a-z-]+)",$', text, flags=re.MULTILINE)


@pytest.mark.usefixtures("place")
def test_the_numbers_are_those_of_json() -> None:
    done = typed("run", "line.toml", "--runs", "2", "--json", "out.json", "--csv", "tables")
    assert done.exit_code == 0, done.output
    content = json.loads(Path("out.json").read_text(encoding="utf-8"))
    classes, rows = pl.read_csv("tables/classes.csv"), content["classes"]
    for name in ("throughput_bps", "throughput_low_bps"):
        assert classes[name].to_list() == [row[name] for row in rows]
    queue = pl.read_csv("tables/queues-over-time.csv").filter(pl.col("quantity") == "queue")
    assert queue.columns == ["seed", "time_s", "link", "quantity", "packets"]
    assert sorted(set(queue["seed"])) == [1, 2]


@pytest.mark.usefixtures("place")
def test_points_of_a_sweep_have_factors_and_intervals_as_columns() -> None:
    assert typed("sweep", "sweep.toml", "--csv", "tables", "--json", "out.json").exit_code == 0
    points = pl.read_csv("tables/points.csv")
    content = json.loads(Path("out.json").read_text(encoding="utf-8"))["points"]
    assert points["flows.call.count"].to_list() == [1, 2]
    name = "links.line.delay_p99"
    found = [point["metrics"][f"{name}_s"] for point in content]
    assert points[f"{name}_s"].to_list() == [one["mean"] for one in found]
    ends = list(zip(points[f"{name}_low_s"], points[f"{name}_high_s"], strict=True))
    assert ends == [tuple(one["ci95"]) for one in found]


def test_a_comparison_s_lines_name_their_scenario() -> None:
    line = {
        "class": "call",
        "measure": "throughput",
        "unit": "bit/s",
        "simulated": {"mean": 2.0, "ci95": [1.0, 3.0], "runs": 30},
        "live": None,
        "difference": {"mean": 1.0, "ci90": [0.0, 2.0], "ci95": [-1.0, 3.0], "degrees_of_freedom": 4.0},
        "verdict": "cannot tell",
    }
    content = {"scenarios": [{"name": "small", "seeds": {"simulated": [1, 2], "live": [1]}, "lines": [line]}]}
    found = csv_tables.tables(content)
    assert set(found) == {"scenarios", "scenarios-lines"}
    assert found["scenarios"].to_dicts() == [{"name": "small", "seeds.simulated": "1; 2", "seeds.live": "1"}]
    (row,) = found["scenarios-lines"].to_dicts()
    assert row == {
        "scenarios.name": "small",
        "class": "call",
        "measure": "throughput",
        "unit": "bit/s",
        "simulated": 2.0,
        "simulated_low": 1.0,
        "simulated_high": 3.0,
        "live": None,
        "difference": 1.0,
        "difference_low": -1.0,
        "difference_high": 3.0,
        "verdict": "cannot tell",
    }


def test_a_later_result_replaces_the_tables_of_an_earlier_one(place: Path) -> None:
    assert typed("run", "line.toml", "--runs", "1", "--csv", "tables").exit_code == 0
    (place / "tables" / "notes.txt").write_text("mine", encoding="utf-8")
    assert typed("sweep", "sweep.toml", "--csv", "tables").exit_code == 0
    assert {path.name for path in (place / "tables").iterdir()} == {"columns.csv", "points.csv", "notes.txt"}


@pytest.mark.parametrize(
    ("directory", "said"),
    [
        (".", "--csv .: has in.csv, which no earlier --csv wrote; give a directory of its own"),
        ("line.toml", "--csv line.toml: not a directory"),
        ("", "a name is empty"),
    ],
)
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.usefixtures("place")
def test_a_place_that_cannot_be_is_refused_before_the_work(
    command: str, directory: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "progress", None)  # no run is begun
    done = typed(*COMMANDS[command], "--csv", directory)
    assert said in str(done.exception)
