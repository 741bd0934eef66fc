"""What terminals and Python show: tables that fit, numbers, intervals, and one rule for the warm-up."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from tests.python.live.living import INVALID, LIVE, needs_live
from typer.testing import CliRunner

import perhop as package
from perhop.commands import terminal
from perhop.commands.cli import app
from perhop.errors import PerhopError
from perhop.plurals import counted
from perhop.runs import simulate
from perhop.runs.metrics import measure
from perhop.show.declared import Axis, Row, Table
from perhop.show.numbers import estimated, fixed, measured, short, significant
from perhop.show.readable import readable
from perhop.show.table import as_text, continued, pivot, prose, records
from perhop.sweeps.plan import Given, read_plan

if TYPE_CHECKING:
    from typer.testing import Result as Ended

MIXED = """\
title = "A call beside downloads, over a link that drops much while it begins"
duration = "8s"
warmup = "4s"

[links."a bottleneck with a long name"]
from = "edge"
to = "core"
rate = "1Mbps"
delay = "10ms"
queue = { aqm = "rio", limit = "20p", in = "10/18/0.02", total = "5/15/0.1" }

[[flows]]
name = "downloads of the gold class"
count = 3
from = "edge"
to = "core"
access = { rate = "10Mbps", delay = "1ms" }
transport = { tcp = "newreno", packet = "1000B" }
profile = { rate = "0.333333Mbps", marker = "token-bucket", burst = "10kB" }

[[flows]]
name = "call"
from = "edge"
to = "core"
access = { rate = "10Mbps", delay = "1ms" }
transport = { udp = "cbr", rate = "64kbps", packet = "200B" }
"""

SWEEP = """\
scenario = "mixed.toml"
runs = 2
metrics = ["flows.*.throughput_bps", "flows.*.loss", "links.*.utilization", "links.*.delay_*", "jain_index"]
[set]
duration = "5s"
[grid]
"flows.call.count" = [1, 2]
"""

TUNE = """\
scenario = "mixed.toml"
runs = 2
trials = 3
validation-runs = 2
objectives = [
    "maximize links.a bottleneck with a long name.utilization",
    "minimize flows.call.one_way_delay_p99_s",
]
constraints = ["flows.call.throughput_bps >= 1kbps"]
[set]
duration = "5s"
[search]
"flows.call.count" = "1..3"
"""

COMMANDS = {
    "run": ("run", "mixed.toml", "--runs", "2"),
    "bound": ("bound", "mixed.toml"),
    "bound, steps": ("bound", "mixed.toml", "--steps"),
    "rare": ("rare", "mixed.toml", "--link", "a bottleneck with a long name", "--runs", "2"),
    "sweep": ("sweep", "sweep.toml"),
    "tune": ("tune", "tune.toml"),
    "list studies": ("list", "studies"),
    "list blocks": ("list", "blocks"),
    "list measures": ("list", "measures"),
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with files for each command, and no width given."""
    for name, text in (("mixed", MIXED), ("sweep", SWEEP), ("tune", TUNE), ("live", LIVE)):
        (tmp_path / f"{name}.toml").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    return tmp_path


def typed(*arguments: str) -> Ended:
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code in {0, INVALID}, done.output
    return done


def widest(text: str) -> int:
    return max(map(len, text.splitlines()))


# ---------------------------------------------------------------- commands


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.usefixtures("place")
def test_every_command_fits_the_terminal(command: str, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    text = typed(*COMMANDS[command]).stdout
    assert 60 <= widest(text) <= columns


@needs_live
@pytest.mark.parametrize("command", [("live", "live.toml"), ("compare", "live.toml", "--runs", "1")])
@pytest.mark.usefixtures("place")
def test_commands_on_real_packets_fit_the_terminal(command: tuple[str, ...]) -> None:
    text = typed(*command).stdout
    assert widest(text) <= 80
    assert "--wide shows" in " ".join(text.split())


def test_a_column_goes_with_the_one_that_it_stands_beside() -> None:
    lines = [{"class": "voice", "p99": "1.234 ± 0.567", "at most": "2", "loss": "0"}]
    ways = ("loss", ("at most", "p99"), "p99")
    assert records(lines, 40, ways)[0].split() == ["class", "p99", "at", "most", "loss"]
    assert records(lines, 26, ways)[0].split() == ["class", "p99", "at"]
    # Without the percentile its bound would fit.
    assert records(lines, 18, ways)[0].split() == ["class", "loss"]
    assert "at most" in " ".join(records(lines, 18, ways)[3:])


@pytest.mark.usefixtures("place")
def test_wide_shows_all_columns() -> None:
    narrow, wide = (" ".join(typed(*COMMANDS["run"], *more).stdout.split()) for more in ((), ("--wide",)))
    assert "columns left out: " in narrow
    assert "--wide shows them" in narrow
    assert "left out" not in wide
    delays = ("one-way delay, ms", "one-way delay p99, ms", "jitter, ms", "delay p95, ms")
    for head in (*delays, "packets per run"):
        assert head in wide


@pytest.mark.usefixtures("place")
def test_the_width_is_the_terminal_s_and_80_in_a_pipe(place: Path) -> None:
    command = [sys.executable, "-m", "perhop", *COMMANDS["run"]]
    given = dict(os.environ)  # without what readline sets behind Python's back
    piped = subprocess.run(
        command, cwd=place, env=given, capture_output=True, text=True, check=True, timeout=120
    )
    assert widest(piped.stdout) <= 80
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 150, 0, 0))
    with subprocess.Popen(command, cwd=place, env=given, stdout=slave, stderr=subprocess.DEVNULL) as process:
        os.close(slave)
        shown = b""
        while True:
            try:
                part = os.read(master, 65536)
            except OSError:  # Linux says so at the end
                break
            shown += part
        assert process.wait(120) == 0
    os.close(master)
    assert 100 < widest(shown.decode()) <= 150


@pytest.mark.parametrize("command", [COMMANDS["sweep"], COMMANDS["tune"], COMMANDS["run"]])
@pytest.mark.usefixtures("place")
def test_a_log_learns_how_far_the_work_is(command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "PROGRESS_EVERY_S", 0.0)
    monkeypatch.setattr(terminal, "FIRST_NOTE_S", 0.0)
    assert ": 1 of " in typed(*command).stderr


@pytest.mark.usefixtures("place")
def test_a_log_of_reproduce_learns_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "PROGRESS_EVERY_S", 0.0)
    monkeypatch.setattr(terminal, "FIRST_NOTE_S", 0.0)
    done = typed("reproduce", "hurley-fig3", "--runs", "1", "--out", "out")
    assert "runs: 1 of " in done.stderr
    assert "1 run: no interval." in done.stdout
    assert widest(done.stdout) <= 80


# ---------------------------------------------------------------- runs and intervals


@pytest.mark.usefixtures("place")
def test_run_makes_thirty_runs_and_says_where_there_is_no_interval() -> None:
    found = json.loads(typed("run", "mixed.toml", "--json", "-").stdout)
    assert found["seeds"] == list(range(1, 31))
    assert all(row["throughput_low_bps"] < row["throughput_bps"] for row in found["classes"])
    one = " ".join(typed("run", "mixed.toml", "--runs", "1").stdout.split())
    assert "1 run, seed 1" in one
    assert "1 run: no interval" in one
    assert "±" not in one


@pytest.mark.usefixtures("place")
def test_one_way_delay_is_shown_where_it_is_measured() -> None:
    result = package.run("mixed.toml", runs=2)
    downloads, call = result.classes().iter_rows(named=True)
    assert downloads["one_way_delay_s"] is None
    assert downloads["one_way_delay_p99_s"] is None
    assert 0.012 < call["one_way_delay_s"] < call["one_way_delay_p99_s"] < 0.3
    assert call["one_way_delay_p99_low_s"] <= call["one_way_delay_p99_s"] <= call["one_way_delay_p99_high_s"]
    rows = readable(result.rows.groups)
    assert {"one-way delay, ms", "one-way delay p99, ms", "jitter, ms"} <= set(rows[0])
    assert rows[0]["one-way delay p99, ms"] == "–"
    tcp_alone = readable([row for row in result.rows.groups if row["class"] != "call"])
    assert not {"one-way delay, ms", "jitter, ms"} & set(tcp_alone[0])


@pytest.mark.usefixtures("place")
def test_everything_but_what_says_so_excludes_the_warm_up() -> None:
    result = package.run("mixed.toml", runs=2)
    for row, run in zip(result.links.iter_rows(named=True), result.runs, strict=True):
        link = run.raw["links"][0]
        dropped = sum(int(packets.sum()) for packets in link["measured"]["dropped"].values())
        assert 0 < dropped == row["dropped_packets"] < row["dropped_whole_run"]
        assert row["loss"] == dropped / int(link["measured"]["arrived"].sum())
        # Flows and their only link tell of the same packets but for what was on its way.
        flows = result.flows.filter(pl.col("seed") == row["seed"])
        colors = ("green", "yellow", "red")
        assert sum(flows[f"dropped_{color}"].sum() for color in colors) == row["dropped_packets"]
        assert measure(run.raw)["links.a bottleneck with a long name.loss"] == pytest.approx(row["loss"])
        by_reason = result.drops.filter(pl.col("seed") == row["seed"])["packets"].sum()
        assert by_reason == row["dropped_packets"]
    summary = result.link_summary().row(0, named=True)
    assert summary["loss"] == pytest.approx(
        float(result.links["dropped_packets"].sum()) / float(result.links["arrived_packets"].sum())
    )
    text = " ".join(typed("run", "mixed.toml", "--runs", "2").stdout.split())
    assert "All figures exclude the warm-up (the first 4 s), loss and drops included." in text


@pytest.mark.usefixtures("place")
def test_rates_over_a_part_of_the_time_are_explained() -> None:
    link = "links.l = { from = 'a', to = 'b', rate = '1Mbps', delay = '5ms' }"
    flow = "from = 'a', to = 'b', transport = { udp = 'cbr', rate = '500kbps' }"
    for keys, is_said in (("stop = '9s'", True), ("start = '11s'", True), ("start = '1s'", False)):
        flows = f"flows = [{{ name = 'one', {flow} }}, {{ name = 'other', {flow}, {keys} }}]"
        Path("part.toml").write_text(f"duration = '20s'\n{link}\n{flows}\n")
        said = " ".join(typed("run", "part.toml", "--runs", "1").stdout.split())
        assert ("Throughput: of each flow over the time in which it was active" in said) == is_said, keys


@pytest.mark.usefixtures("place")
def test_measures_that_some_runs_lack_are_named_with_how_many_have_them() -> None:
    queue = "{ aqm = 'drop-tail', limit = '9p' }"
    link = f"links.l = {{ from = 'a', to = 'b', rate = '10Mbps', delay = '5ms', queue = {queue} }}"
    flows = "arrivals = { rate = '2/s' }, sizes = { constant = '9kB' }, transport = { tcp = 'linux' }"
    text = f"duration = '500ms'\n{link}\nflows = [{{ name = 'files', from = 'a', to = 'b', {flows} }}]\n"
    Path("rare.toml").write_text(text)
    done = typed("run", "rare.toml", "--runs", "8", "--json", "rare.json")
    some = {
        (one["table"], one["measure"]): one for one in json.loads(Path("rare.json").read_text())["partial"]
    }
    for place, name in (
        (("populations", "completion_mean_s"), "files FCT mean"),
        (("links", "loss"), "l lost"),
        (("classes", "dropped_yellow"), "files yellow lost"),
    ):
        assert 0 < some[place]["runs"] < 8
        assert some[place]["of"] == name.split()[0]
    assert "Not all runs have a value: files" in " ".join(done.stdout.split())
    assert " more (see --json)." in " ".join(done.stdout.split())


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("keys", ["volume = '10kB'", "stop = '1s'", "start = '9s'"])
def test_a_class_that_was_never_active_has_no_rate(keys: str) -> None:
    """The class ends before the warm-up does, or begins after the run."""
    link = "links.l = { from = 'a', to = 'b', rate = '1Mbps', delay = '5ms' }"
    flow = "from = 'a', to = 'b', transport = { tcp = 'linux' }"
    flows = f"flows = [{{ name = 'long', {flow} }}, {{ name = 'never', {flow}, {keys} }}]"
    Path("some.toml").write_text(f"duration = '6s'\nwarmup = '3s'\n{link}\n{flows}\n")
    done = typed("run", "some.toml", "--runs", "2", "--out", "results")
    assert done.exit_code == 0, done.stderr
    row = next(line for line in done.stdout.splitlines() if line.startswith("never"))
    assert set(row.split()[2:]) == {"–"}
    assert "never active in the measured time" in Path("results/report.html").read_text(encoding="utf-8")


def test_jitter_and_delay_variation_are_two_names(place: Path) -> None:
    result = package.run(Path(__file__).parents[3] / "examples" / "queues.toml", runs=1)
    assert "delay_variation_s" in result.link_classes.columns
    assert not [name for name in result.link_classes.columns if "jitter" in name]
    heads = list(readable(result.rows.link_classes)[0])
    assert "delay variation, ms" in heads
    assert not [head for head in heads if "jitter" in head]
    (place / "sweep.toml").write_text(SWEEP.replace("links.*.delay_*", "links.*.jitter_s"))
    with pytest.raises(PerhopError, match=r"flows\.NAME\.jitter_s, or delay_variation_s for p99 − p50"):
        read_plan(place / "sweep.toml", Given())


# ---------------------------------------------------------------- Python and notebooks


@pytest.mark.usefixtures("place")
def test_a_result_describes_itself_in_a_few_lines() -> None:
    result = package.run("mixed.toml", runs=2)
    text = repr(result)
    assert len(text) < 1000
    assert len(text.splitlines()) <= 8
    for word in (
        "A call beside downloads",
        "2 runs, seeds 1 to 2",
        "call (1 flow)",
        ".group_summary()",
        ".flows",
    ):
        assert word in text
    assert "means with 95 % intervals" in text
    assert "values of one run, without intervals" in repr(package.run("mixed.toml", runs=1))
    assert len(repr(result.runs[0])) < 200
    page = result._repr_html_()
    assert page.count("<table>") == 2
    assert "±" in page


@pytest.mark.usefixtures("place")
def test_estimates_print_their_intervals_and_stay_data_frames() -> None:
    result = package.run("mixed.toml", runs=3)
    classes = result.classes()
    assert isinstance(classes, pl.DataFrame)
    text = str(classes)
    row = classes.row(0, named=True)
    half = (row["throughput_high_bps"] - row["throughput_low_bps"]) / 2e6
    assert measured(row["throughput_bps"] / 1e6, half) in text
    assert "± or in brackets: 95 % interval" in text
    assert "…" not in text
    assert repr(classes) == text
    assert "±" in classes._repr_html_()
    assert "±" in str(result.link_summary())
    assert classes["throughput_bps"].to_list()[0] == row["throughput_bps"]
    assert "1 run: no interval" in str(package.run("mixed.toml", runs=1).classes())
    assert str(result.link_class_summary()).startswith("no rows")


def test_the_documentation_s_examples_run(tmp_path: Path) -> None:
    pages = ("results.md", "traffic.md", "packets.md")
    text = "".join(Path("docs", page).read_text(encoding="utf-8") for page in pages)
    names: dict[str, Any] = {}
    # What is marked as not run reads what a command has written.
    for code in re.findall(r"(?<!-->\n)```python\n(.*?)```", text, re.DOTALL):
        exec(code.replace("runs=5", "runs=2").replace('"run.', f'"{tmp_path}/run.'), names)  # noqa: S102 - it is ours
    assert names["rated"]["mos"].is_between(1, 4.5).all()
    assert names["ends"].columns == ["class", "throughput_bps", "throughput_low_bps", "throughput_high_bps"]
    assert names["worst"].filter(pl.col("class") == "ef")["one_way_delay_p99_s"][0] > 0
    assert names["drops"].columns == ["class", "reason", "len"]
    assert names["drops"]["len"].min() > 0
    assert names["queue"]["waiting"].min() == 0
    assert names["queue"]["waiting"].max() > 100


# ---------------------------------------------------------------- tables


LINES = [
    {"name": "first", "throughput, Mbit/s": "1.534 ± 0.024", "rate": "10", "reasons": "full 12, early 345"},
    {"name": "second", "throughput, Mbit/s": "12.5 ± 1.2", "rate": "10", "reasons": "none"},
]


def test_what_fits_stays_as_it_is() -> None:
    assert records(LINES, 80) == records(LINES, None)
    assert records(LINES, 80)[2] == "first        1.534 ± 0.024    10  full 12, early 345"


def test_heads_and_texts_break_before_columns_give_way() -> None:
    assert (
        records(LINES, 45, ["rate"])
        == [
            "name    throughput,  rate  reasons",
            "             Mbit/s",
            "──────────────────────────────────────────",
            "first   1.534 ± 0.024    10  full 12, early",
            "                             345",
            "second     12.5 ± 1.2    10  none",
        ]
        or widest("\n".join(records(LINES, 45, ["rate"]))) <= 45
    )
    assert "left out" not in "\n".join(records(LINES, 45, ["rate"]))


def test_a_number_with_its_interval_is_no_text() -> None:
    """A number with its interval is kept on one line and right-aligned, also beside an empty cell."""
    lines = [
        {"class": "a", "x": "8.01 (over 7.35)", "y": "below 0.05", "z": "–"},
        {"class": "b", "x": "−0.01 (−0.02 to 0.07)", "y": "2 ± 1, 4 of 6 runs", "z": "loss of x"},
    ]
    text = records(lines)
    assert text[2:] == [
        "a           8.01 (over 7.35)          below 0.05  –",
        "b      −0.01 (−0.02 to 0.07)  2 ± 1, 4 of 6 runs  loss of x",
    ]
    assert any("8.01 (over 7.35)" in line for line in records(lines, 53, ["z"]))


def test_the_least_important_columns_give_way_and_are_named() -> None:
    text = records(LINES, 40, ["rate", "reasons"])
    assert widest("\n".join(text)) <= 40
    assert text[-1] == "1 column left out: rate. --wide shows it."[-len(text[-1]) :]
    both = " ".join(records(LINES, 24, ["rate", "reasons"]))
    assert "2 columns left out: rate; reasons." in both


def test_a_narrow_column_comes_back_when_a_wide_one_has_gone() -> None:
    lines = [{"name": "a", "n": "1", "wide one": "x" * 3 + "1" * 30, "value": "1.5"}]
    text = records([{**lines[0], "wide one": "1" * 34}], 40, ["n", "wide one"])
    assert text[0].split() == ["name", "n", "value"]


def test_what_cannot_give_way_is_broken() -> None:
    lines = [{"a very long name of a column": "one two three four five six seven eight nine ten", "n": "1"}]
    assert widest("\n".join(records(lines, 40))) <= 40


def test_columns_that_do_not_fit_stand_in_a_table_below() -> None:
    numbers = {f"number {place}": "1.5 ± 0.1" for place in range(6)}
    lines = [{"class": "calls", **numbers, "MOS": "4.4"}, {"class": "data", **numbers, "MOS": "–"}]
    text = records(lines, 60, ["number 0"])
    assert widest("\n".join(text)) <= 60
    below = text[text.index("") + 1 :]
    assert [line.split()[0] for line in text[:3] if not line.startswith("─")] == ["class", "calls"]
    # Those that have none of its values are not in it.
    assert [line.split() for line in below[:3] if not line.startswith("─")] == [
        ["class", "MOS"],
        ["calls", "4.4"],
    ]
    assert below[-1] == "1 column left out: number 0. --wide shows it."


def test_grids_continue_below_under_the_same_labels() -> None:
    rows = [
        Row({"load": str(load), "scheme": f"scheme {n}"}, "rate", "", None, 1.25, (1.0, 1.5), 4)
        for load in (1, 2)
        for n in range(12)
    ]
    names = Axis("scheme", "Scheme", {f"scheme {n}": f"scheme {n}" for n in range(12)})
    grid = pivot(Table("Rates", {"rate": "rate"}, Axis("load", "Load"), (names,), digits=2), rows)
    assert grid is not None
    narrow = as_text(grid, 80)
    assert widest(narrow) <= 80
    assert [line.split()[0] for line in narrow.splitlines() if "±" in line] == ["1", "2", "1", "2"]
    assert all(f"scheme {n}" in narrow for n in range(12))
    assert widest(as_text(grid)) > 80


def test_records_continue_below_with_their_first_columns() -> None:
    lines = [{"point": "1", **{f"metric {n}": "1.534 ± 0.024" for n in range(8)}}]
    tables = continued(lines, 1, 80)
    assert len(tables) == 2
    assert all(next(iter(table[0])) == "point" for table in tables)
    assert all(widest("\n".join(records(table, 80))) <= 80 for table in tables)
    assert len(continued(lines, 1, None)) == 1


def test_sentences_are_no_longer_than_is_pleasant() -> None:
    text = "word " * 60
    assert widest(prose(text, None)) <= 100
    assert widest(prose(text, 300)) <= 100
    assert 70 < widest(prose(text, 80)) <= 80


# ---------------------------------------------------------------- numbers


@pytest.mark.parametrize(
    ("mean", "half", "text"),
    [
        (1.53412, 0.02371, "1.534 ± 0.024"),
        (20.3371, 1.1812, "20.3 ± 1.2"),
        (99.99958, 0.00027, "100.00 ± 0.00"),
        (0.0007, 0.002, "0.0007 ± 0.0020"),
        (-0.5, 0.25, "−0.50 ± 0.25"),
        (123456.0, 789.0, "123456 ± 789"),
        (0.0, 0.5, "0.00 ± 0.50"),
        (2.0, 0.0, "2.000 ± 0"),
        (10 / 3, None, "3.333"),
        (0.0, None, "0"),
        (12345.678, None, "12346"),
    ],
)
def test_means_show_what_is_known_of_them(mean: float, half: float | None, text: str) -> None:
    assert measured(mean, half) == text


@pytest.mark.parametrize(
    ("mean", "low", "high", "text"),
    [
        (0.3, 0.0, 21.0, "0.3 (0–21)"),
        (0.0004, 1e-9, 0.32, "0.0004 (0.00–0.32)"),
        (-0.2, -14.0, 32.0, "−0.2 (−14 to 32)"),
        (0.0, 0.0, 21.0, "below 21"),
        (0.0, 0.0, 3e-10, "below 0.000001"),
    ],
)
def test_what_is_not_zero_does_not_read_zero(mean: float, low: float, high: float, text: str) -> None:
    assert estimated(mean, low, high) == text


def test_numbers_as_readers_see_them() -> None:
    assert [short(value) for value in (10 / 3, 2.0, 0.5, 1000.0)] == ["3.333", "2", "0.5", "1000"]
    assert significant(0.000123456) == "0.000123"
    assert (fixed(-0.0001, 2), fixed(0.5, 1, sign=True)) == ("0.00", "+0.5")
    assert [counted(n, "run") for n in (0, 1, 2, 1200)] == ["0 runs", "1 run", "2 runs", "1,200 runs"]


@pytest.mark.usefixtures("place")
def test_profiles_are_shown_as_they_were_written() -> None:
    rows: list[dict[str, Any]] = readable(simulate.run(MIXED, runs=1).rows.groups)
    assert [row["profile, Mbit/s"] for row in rows] == ["0.333333", "best effort"]
