"""`perhop run --plot`: throughput, queues and round-trip times over time, as a sheet and as blocks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from perhop import _engine
from perhop.commands.cli import app
from perhop.measures.run import Run
from perhop.runs import over_time
from perhop.scenario import reading

if TYPE_CHECKING:
    from typer.testing import Result as Ended

SCENARIO = """\
title = "Two groups"
duration = "4s"
warmup = "0s"

[links.line]
from = "a"
to = "b"
rate = "2Mbps"
delay = "5ms"
queue = { aqm = "drop-tail", limit = "20p" }

[[flows]]
name = "downloads"
count = 2
from = "a"
to = "b"
transport = { tcp = "newreno" }

[[flows]]
name = "call"
from = "a"
to = "b"
transport = { udp = "cbr", rate = "64kbps", packet = "200B" }
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "two.toml").write_text(SCENARIO, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


def typed(*arguments: str) -> Ended:
    return CliRunner().invoke(app, ("run", "two.toml", "--runs", "2", *arguments))


@pytest.mark.parametrize("name", ["two.svg", "two.png"])
def test_one_sheet_has_all_quantities_of_all_groups(name: str) -> None:
    done = typed("--plot", name)
    assert done.exit_code == 0, done.output
    assert f"plot: {name}" in done.stdout
    data = Path(name).read_bytes()
    if name.endswith(".png"):
        assert data.startswith(b"\x89PNG")
        return
    for text in (
        "Two groups",
        "throughput of a flow, Mbit/s",
        "queue, packets",
        "RTT, ms",
        "downloads",
        "call",
    ):
        assert text in data.decode(), text


def test_a_terminal_has_a_line_of_blocks_for_each() -> None:
    done = typed("--plot", "-")
    assert done.exit_code == 0, done.output
    lines = [line for line in done.stdout.splitlines() if set(line) & set(over_time.BLOCKS)]
    assert [next(name for name in ("downloads", "call", "line") if name in line) for line in lines] == [
        *("downloads", "call"),
        "line",
        "downloads",
    ]
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert list(Path().iterdir()) == [Path("two.toml")]


def test_a_scenario_without_probes_is_sampled_and_has_the_same_results() -> None:
    text = reading.read(Path("two.toml")).text
    assert json.loads(over_time.sampled(text))["probes"] == {"interval": "20000000ns"}
    own = json.dumps({**json.loads(text), "probes": {"interval": "1s"}})
    assert over_time.sampled(own) == own
    for name, more in (("plain.json", ()), ("drawn.json", ("--plot", "-"))):
        assert typed("--json", name, *more).exit_code == 0
    assert Path("drawn.json").read_text(encoding="utf-8") == Path("plain.json").read_text(encoding="utf-8")


def test_lines_are_of_the_first_run_and_bands_of_all() -> None:
    """A queue of 20 packets never shows more, however few runs there are; its line is that of a run."""
    text = over_time.sampled(reading.read(Path("two.toml")).text)
    runs = [Run(seed, _engine.simulate(text, seed)) for seed in (1, 2, 3)]
    rows = dict(over_time.panels(runs))["queue, packets"]
    of_runs = [run.raw["series"]["links"]["line"]["queue_packets"] for run in runs]
    assert [row.mean for row in rows] == of_runs[0].tolist()
    assert [row.ci95 for row in rows] == [(min(each), max(each)) for each in zip(*of_runs, strict=True)]
    assert max(row.ci95[1] for row in rows if row.ci95) <= 20
    alone = dict(over_time.panels(runs[:1]))["queue, packets"]
    assert [row.ci95 for row in alone] == [None] * len(rows)
    assert [row.mean for row in alone] == [row.mean for row in rows]


def test_another_format_is_refused_before_the_work() -> None:
    done = typed("--plot", "two.pdf")
    assert (
        str(done.exception)
        == "--plot two.pdf: name a file that ends in .svg or .png, or - for the terminal alone"
    )


@pytest.mark.parametrize(
    ("values", "room", "shown"),
    [
        ([0.0, 1.0, 2.0, 8.0], 4, "▁▁▂█"),
        ([1.0, 3.0, None, None, 4.0, 4.0], 3, "▄ █"),
        ([5.0], 10, "█"),
        ([0.0, 0.0], 2, "▁▁"),
    ],
)
def test_blocks_reach_from_zero_to_the_highest(values: list[float | None], room: int, shown: str) -> None:
    assert over_time.blocks(values, room) == shown
