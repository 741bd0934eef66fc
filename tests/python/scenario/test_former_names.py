"""Former names of measures: files of commands that hold them are read, and reports can be rerun."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

from perhop.measures import naming

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.python.conftest import Finished

SCENARIO = """\
duration = "3s"

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
"""


FORMER = {"one_way_delay_s": "transit_s", "one_way_delay_p99_s": "transit_p99_s"}
"""Metrics and their former names."""


@pytest.mark.parametrize(
    ("former", "now"),
    [
        ("p99_transit_s", "one_way_delay_p99_s"),
        ("p99_transit_low_s", "one_way_delay_p99_low_s"),
        ("mean_transit_high_s", "one_way_delay_high_s"),
        ("flows.a.b.transit_p99_s", "flows.a.b.one_way_delay_p99_s"),
        ("flows.call.transit_s", "flows.call.one_way_delay_s"),
        ("active_s", "active_s"),
        ("flows.transit_s.loss", "flows.transit_s.loss"),
    ],
)
def test_each_former_name_has_one_of_today(former: str, now: str) -> None:
    assert naming.current(former) == now


def test_a_report_with_former_names_agrees(perhop: Callable[..., Finished], tmp_path: Path) -> None:
    (tmp_path / "call.toml").write_text(SCENARIO, encoding="utf-8")
    assert perhop("run", "call.toml", "--runs", "2", "--out", "out").code == 0
    manifest, samples = tmp_path / "out" / "manifest.json", tmp_path / "out" / "samples.parquet"
    text = manifest.read_text(encoding="utf-8")
    for now, former in (("one_way_delay_p99", "p99_transit"), ("one_way_delay", "mean_transit")):
        assert f'"{now}_s"' in text
        text = re.sub(rf'"{now}_(?!at_most)', f'"{former}_', text)  # bounds came later
    assert "one_way" not in text.replace("one_way_delay_at_most_s", "")
    assert json.loads(text)
    manifest.write_text(text, encoding="utf-8")
    names = {"one_way_delay_p99_s": "p99_transit_s", "one_way_delay_s": "mean_transit_s"}
    pl.read_parquet(samples).rename(names).write_parquet(samples)
    done = perhop("rerun", "out")
    assert done.code == 0, done.out + done.err


SETS = {
    "sweep": """\
metrics = ["flows.call.{}"]
[grid]
"flows.call.count" = [1]
[until]
width = 0.5
metrics = ["flows.call.{}"]
""",
    "tune": """\
trials = 2
validation-runs = 2
objectives = ["minimize flows.call.{}"]
constraints = ["flows.call.{} <= 20ms"]
[search]
"flows.call.count" = "1..2"
""",
    "plan": """\
objectives = ["flows.call.{} < 20 ms"]
""",
}
"""What files of earlier versions hold, with the former name of a metric in each place that takes one."""


@pytest.mark.parametrize("command", SETS)
def test_files_with_former_names_are_read(
    command: str, perhop: Callable[..., Finished], tmp_path: Path
) -> None:
    (tmp_path / "call.toml").write_text(SCENARIO, encoding="utf-8")
    said = []
    for name in ("transit_p99_s", "one_way_delay_p99_s"):
        text = 'scenario = "call.toml"\nruns = 4\n' + SETS[command].format(name, name)
        (tmp_path / f"{command}.toml").write_text(text, encoding="utf-8")
        done = perhop(command, f"{command}.toml", "--wide")
        assert done.code == 0, done.out + done.err
        found, _, _ = done.out.replace("transit_p99_s", "one_way_delay_p99_s").rpartition("\n\n")
        said.append(" ".join(found.replace("─", "").split()))  # without what came from the store
    assert said[0] == said[1]


def test_the_samples_of_a_sweep_with_former_names_agree(
    perhop: Callable[..., Finished], tmp_path: Path
) -> None:
    (tmp_path / "call.toml").write_text(SCENARIO, encoding="utf-8")
    sweep = 'scenario = "call.toml"\nruns = 2\n[grid]\n"flows.call.count" = [1, 2]\n'
    (tmp_path / "sweep.toml").write_text(sweep, encoding="utf-8")
    assert perhop("sweep", "sweep.toml", "--out", "out").code == 0
    samples = tmp_path / "out" / "samples.parquet"
    former = {f"flows.call.{now}": f"flows.call.{then}" for now, then in FORMER.items()}
    then = pl.read_parquet(samples).with_columns(pl.col("metric").cast(pl.String).replace(former))
    assert set(former.values()) <= set(then["metric"])
    then.write_parquet(samples)
    done = perhop("rerun", "out")
    assert done.code == 0, done.out + done.err
