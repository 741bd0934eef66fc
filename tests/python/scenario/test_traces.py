"""Traces of the rates of links: from files, in scenarios, results and sweeps."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from perhop import ScenarioError, run
from perhop.output.summary import summarize
from perhop.traces import traces

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.python.conftest import Finished

    Perhop = Callable[..., Finished]

EXAMPLES = Path(__file__).parents[3] / "examples"
TRACE = "1\n3\n3\n6\n"
SCENARIO = """
duration = "2s"
[links.radio]
from = "mast"
to = "phone"
rate = "8Mbps"
delay = "10ms"
queue = { aqm = "drop-tail", limit = "100p" }
rate-trace = "walk.trace"
[[flows]]
name = "video"
from = "mast"
to = "phone"
start = "0s"
transport = { udp = "cbr", rate = "16Mbps" }
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """A scenario beside its trace, which sends four times 1500 bytes each 6 ms."""
    (tmp_path / "walk.trace").write_text(TRACE)
    path = tmp_path / "walk.toml"
    path.write_text(SCENARIO)
    return path


def test_a_trace_says_how_much_a_link_sends(scenario: Path) -> None:
    result = run(scenario)
    row = result.links.row(0, named=True)
    assert row["rate_bps"] == pytest.approx(8e6, rel=1e-3)
    assert row["utilization"] == pytest.approx(1, abs=0.01)
    assert result.classes()["throughput_bps"][0] == pytest.approx(8e6, rel=0.02)


def test_a_result_holds_its_trace_and_names_it_by_content(scenario: Path, tmp_path: Path) -> None:
    result = run(scenario)
    (tmp_path / "walk.trace").unlink()
    again = run(json.loads(result.scenario))
    assert again.scenario == result.scenario
    assert again.links.equals(result.links)
    (trace,) = traces(json.loads(result.scenario))
    assert (trace.link, trace.name) == ("radio", "walk.trace")
    assert trace.sha256 == hashlib.sha256(TRACE.encode()).hexdigest()
    assert f"radio: walk.trace (SHA-256 {trace.sha256[:12]}…)" in summarize(result).text()
    # Another content is another scenario.
    (tmp_path / "walk.trace").write_text("1\n")
    assert run(scenario).scenario != result.scenario


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "walk.trace: no such file; names are relative to the scenario's folder"),
        ("", "walk.trace:1: is empty: write a line for each opportunity"),
        ("1\nfast\n", "walk.trace:2: `fast` is no time in whole milliseconds"),
        ("10\n12\n1", "walk.trace:3: 1 comes after 12, but times do not go back; was the line cut off?"),
        ("0\n0\n", "walk.trace:2: the last time is 0"),
    ],
)
def test_a_bad_trace_is_one_line_with_its_place(
    perhop: Callable[..., Finished], scenario: Path, content: str | None, message: str
) -> None:
    trace = scenario.with_name("walk.trace")
    if content is None:
        trace.unlink()
    else:
        trace.write_text(content)
    done = perhop("run", scenario)
    assert done.code == 2
    assert done.err.count("\n") == 1
    assert f"{scenario}:9: links.radio.rate-trace: " in done.err
    assert message in done.err


def test_a_bad_csv_file_is_one_line_with_its_place(scenario: Path) -> None:
    scenario.write_text(SCENARIO.replace("walk.trace", "walk.csv"))
    for content, message in [
        ("0,5\n", "walk.csv:1: `0,5`: the first line names a time"),
        ("time_s,rate_Mbps\n0,5\n1\n", "walk.csv:3: `1` has 1 value, not a time and a rate; was"),
        ("time_s,rate_Mbps\n0,0\n1,0\n", "walk.csv:3: all rates are 0, so the link would never"),
    ]:
        scenario.with_name("walk.csv").write_text(content)
        with pytest.raises(ScenarioError, match="rate-trace") as caught:
            run(scenario)
        assert message in str(caught.value)


def test_a_sweep_varies_traces_beside_its_scenario(
    perhop: Callable[..., Finished], scenario: Path, tmp_path: Path
) -> None:
    (tmp_path / "slow.trace").write_text("6\n")
    elsewhere = tmp_path / "sweeps"
    elsewhere.mkdir()
    sweep = elsewhere / "sweep.toml"
    sweep.write_text(
        f'scenario = "../{scenario.name}"\nruns = 1\nmetrics = ["flows.video.throughput_bps"]\n'
        '[grid]\n"links.radio.rate-trace" = ["walk.trace", "slow.trace"]\n'
    )
    done = perhop("sweep", sweep, "--store", tmp_path / "store")
    assert done.code == 0, done.err
    assert "walk.trace" in done.out
    assert "slow.trace" in done.out


def test_the_examples_trace_follows_its_rule() -> None:
    bits, lines = 0, []
    for millisecond in range(1, 12001):
        if not 8000 < millisecond <= 9000:
            bits += 500 + 2 * abs(millisecond - 6000) // 3
        while bits >= 12000:
            bits -= 12000
            lines.append(f"{millisecond}\n")
    assert (EXAMPLES / "train-down.trace").read_text() == "".join(lines)
