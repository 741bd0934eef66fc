"""Traces of links and flows: from files, in scenarios, results and sweeps."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from perhop import ScenarioError, run
from perhop.runs.summary import summarize
from perhop.scenario.traces import traces

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
    result = run(scenario, runs=1)
    row = result.links.row(0, named=True)
    assert row["rate_bps"] == pytest.approx(8e6, rel=1e-3)
    assert row["utilization"] == pytest.approx(1, abs=0.01)
    assert result.classes()["throughput_bps"][0] == pytest.approx(8e6, rel=0.02)


def test_a_result_holds_its_trace_and_names_it_by_content(scenario: Path, tmp_path: Path) -> None:
    result = run(scenario, runs=1)
    (tmp_path / "walk.trace").unlink()
    again = run(json.loads(result.scenario), runs=1)
    assert again.scenario == result.scenario
    assert again.links.equals(result.links)
    (trace,) = traces(json.loads(result.scenario))
    assert (trace.owner, trace.kind, trace.name) == ("radio", "rates", "walk.trace")
    assert trace.sha256 == hashlib.sha256(TRACE.encode()).hexdigest()
    assert f"radio: walk.trace (SHA-256 {trace.sha256[:12]}…)" in " ".join(summarize(result).text().split())
    # Another content is another scenario.
    (tmp_path / "walk.trace").write_text("1\n")
    assert run(scenario, runs=1).scenario != result.scenario


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
            run(scenario, runs=1)
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


ARRIVALS = "time_s,size_B\n0.1,30000\n0.1,1000\n1.5,2000\n9,500\n"
CDF = "0 0\n1000 50\n3000 100\n"
POPULATION = """
duration = "2s"
[links.access]
from = "server"
to = "client"
rate = "8Mbps"
delay = "10ms"
queue = { aqm = "drop-tail", limit = "100p" }
[[flows]]
name = "measured"
from = "server"
to = "client"
transport = { udp = "cbr", rate = "8Mbps", packet = "1028B", jitter = 0.0 }
arrivals = { trace = "arrivals.csv" }
[[flows]]
name = "drawn"
from = "server"
to = "client"
transport = { tcp = "linux" }
arrivals = { rate = "20/s" }
sizes = { cdf = "small.txt" }
"""


@pytest.fixture
def population(tmp_path: Path) -> Path:
    """A scenario whose flows begin when a file says, and one whose sizes a file has."""
    (tmp_path / "arrivals.csv").write_text(ARRIVALS)
    (tmp_path / "small.txt").write_text(CDF)
    path = tmp_path / "population.toml"
    path.write_text(POPULATION)
    return path


def test_flows_begin_when_a_file_says_and_send_what_it_says(population: Path) -> None:
    flows = run(population, runs=2).population_flows
    measured = flows.filter(flows["class"] == "measured")
    assert measured.filter(measured["seed"] == 1)["started_s"].to_list() == [0.1, 0.1, 1.5]
    assert measured.filter(measured["seed"] == 2)["size_bytes"].to_list() == [30000, 1000, 2000]
    drawn = flows.filter(flows["class"] == "drawn")["size_bytes"].to_list()
    assert len(drawn) > 20
    assert max(drawn) <= 3000
    # Half of them are up to 1000 bytes, half from there to 3000.
    assert sum(drawn) / len(drawn) == pytest.approx(1250, rel=0.4)


def test_a_result_holds_the_files_of_its_flows_and_names_them_by_content(
    population: Path, tmp_path: Path
) -> None:
    result = run(population, runs=1)
    for name in ("arrivals.csv", "small.txt"):
        (tmp_path / name).unlink()
    again = run(json.loads(result.scenario), runs=1)
    assert again.scenario == result.scenario
    assert again.population_flows.equals(result.population_flows)
    found = {trace.kind: trace for trace in traces(json.loads(result.scenario))}
    assert {kind: (trace.owner, trace.name, trace.sha256) for kind, trace in found.items()} == {
        "arrivals": ("measured", "arrivals.csv", hashlib.sha256(ARRIVALS.encode()).hexdigest()),
        "sizes": ("drawn", "small.txt", hashlib.sha256(CDF.encode()).hexdigest()),
    }
    text = " ".join(summarize(result).text().split())
    assert f"Arrivals of flows from traces: {found['arrivals']}." in text
    assert f"Sizes of flows from distributions: {found['sizes']}." in text
    # A published distribution is no file.
    published = json.loads(result.scenario)
    published["flows"][1]["sizes"] = {"cdf": "hadoop"}
    assert [trace.kind for trace in traces(published)] == ["arrivals"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("arrivals.csv", None, "no such file; names are relative to the scenario's folder"),
        ("arrivals.csv", "", "arrivals.csv:1: is empty"),
        ("arrivals.csv", "time_s\n2\n1\n", "arrivals.csv:3: 1s comes after 2s"),
        ("arrivals.csv", "time_s\nsoon\n", "arrivals.csv:2: `soon` is not a number"),
        ("small.txt", None, "no such file; names are relative to the scenario's folder"),
        ("small.txt", "0 0\n9 0.5\n8 1\n", "small.txt:3: `8 1` follows 9 0.5"),
        ("small.txt", "0 0\n9 0.5\n", "small.txt:2: the last probability is 0.5"),
    ],
)
def test_a_bad_file_of_flows_is_one_line_with_its_place(
    perhop: Callable[..., Finished], population: Path, name: str, content: str | None, message: str
) -> None:
    file = population.with_name(name)
    if content is None:
        file.unlink()
    else:
        file.write_text(content)
    done = perhop("run", population)
    assert done.code == 2
    assert done.err.count("\n") == 1
    place = "14: flows[0].arrivals.trace" if name == "arrivals.csv" else "21: flows[1].sizes.cdf"
    assert f"{population}:{place}: " in done.err
    assert message in done.err


def test_a_sweep_varies_distributions(
    perhop: Callable[..., Finished], population: Path, tmp_path: Path
) -> None:
    (tmp_path / "large.txt").write_text("0 0\n9000 1\n")
    sweep = tmp_path / "sweep.toml"
    sweep.write_text(
        f'scenario = "{population.name}"\nruns = 1\nmetrics = ["flows.drawn.throughput_bps"]\n'
        '[grid]\n"flows.drawn.sizes.cdf" = ["small.txt", "large.txt", "web-search"]\n'
    )
    done = perhop("sweep", sweep, "--store", tmp_path / "store")
    assert done.code == 0, done.err
    for name in ("small.txt", "large.txt", "web-search"):
        assert name in done.out


def test_the_examples_trace_follows_its_rule() -> None:
    bits, lines = 0, []
    for millisecond in range(1, 12001):
        if not 8000 < millisecond <= 9000:
            bits += 500 + 2 * abs(millisecond - 6000) // 3
        while bits >= 12000:
            bits -= 12000
            lines.append(f"{millisecond}\n")
    assert (EXAMPLES / "train-down.trace").read_text() == "".join(lines)
