"""Flows of a scenario that replay a capture."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest
from tests.python.replay.captures import Packet, pcap

import perhop as package
from perhop.runs.summary import summarize
from perhop.scenario.traces import traces

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.python.conftest import Finished

    Perhop = Callable[..., Finished]

EXAMPLE = Path(__file__).parents[3] / "examples" / "capture.pcap"
SCENARIO = """
duration = "2s"
[links.edge]
from = "a"
to = "b"
rate = "15Mbps"
delay = "10ms"
queue = { aqm = "drop-tail", limit = "20p" }
[[flows]]
name = "measured"
from = "a"
to = "b"
start = "0s"
replay = "capture.pcap"
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """A scenario beside the capture that one of its flows replays."""
    shutil.copy(EXAMPLE, tmp_path)
    path = tmp_path / "replayed.toml"
    path.write_text(SCENARIO)
    return path


@pytest.mark.parametrize("engine", ["batched", "reference"])
def test_a_replayed_flow_alone_meets_what_the_capture_does_at_the_link(
    scenario: Path, engine: Literal["batched", "reference"]
) -> None:
    link = package.run(scenario, engine=engine, runs=1).runs[0].raw["links"][0]
    outcomes = package.replay(scenario.with_name("capture.pcap"), scenario=scenario, link="edge").outcomes()
    left = outcomes["left"].is_not_null()
    sent = int(outcomes.filter(left)["packets"].sum())
    lost = int(outcomes.filter(~left)["packets"].sum())
    assert lost > 0
    assert (sum(link["sent"]), sum(link["arrived"])) == (sent, sent + lost)


def test_a_result_holds_the_packets_and_names_the_capture(scenario: Path) -> None:
    result = package.run(scenario, runs=1)
    scenario.with_name("capture.pcap").unlink()
    again = package.run(json.loads(result.scenario), runs=1)
    assert again.scenario == result.scenario
    assert again.flows.equals(result.flows)
    (trace,) = traces(json.loads(result.scenario))
    assert (trace.owner, trace.kind, trace.name) == ("measured", "packets", "capture.pcap")
    assert f"Packets replayed: {trace}." in " ".join(summarize(result).text().split())


def test_a_replayed_flow_shares_a_link_with_tcp(scenario: Path) -> None:
    packets = [Packet(n * 1_000_000, 1500, 46) for n in range(2000)]
    scenario.with_name("capture.pcap").write_bytes(pcap(packets, captured=60))
    alone = '[[flows]]\nname = "tcp"\nfrom = "a"\nto = "b"\ntransport = { tcp = "linux" }\nstart = "0s"\n'
    scenario.write_text(SCENARIO + alone)
    shared = package.run(scenario, runs=2).classes()
    throughput = dict(zip(shared["class"], shared["throughput_bps"], strict=True))
    # 12 Mbit/s that answer to nothing, of 15.
    assert throughput["measured"] > 9e6
    assert throughput["measured"] + throughput["tcp"] < 15e6


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no such file; names are relative to the scenario's folder"),
        (b"", "is empty; `tcpdump -w FILE` writes a capture"),
        (b"time_s,size_B\n", "is no capture: it begins neither as pcap nor as pcapng"),
        (pcap([Packet(0, 1000), Packet(1, 1000)])[:-5], "is cut off after 1 whole packets"),
        (pcap([Packet(1, 1000), Packet(0, 1000)]), "packet 2 is 1ns earlier than packet 1"),
        (pcap([]), "has no packet of IP to replay"),
    ],
)
def test_a_bad_capture_is_one_line_with_its_place(
    perhop: Callable[..., Finished], scenario: Path, content: bytes | None, message: str
) -> None:
    capture = scenario.with_name("capture.pcap")
    if content is None:
        capture.unlink()
    else:
        capture.write_bytes(content)
    done = perhop("run", scenario)
    assert done.code == 2
    assert done.err.count("\n") == 1
    assert f"{scenario}:14: flows[0].replay: " in done.err
    assert message in done.err


def test_a_sweep_varies_what_is_beside_a_replay(
    perhop: Callable[..., Finished], scenario: Path, tmp_path: Path
) -> None:
    sweep = tmp_path / "sweep.toml"
    sweep.write_text(
        f'scenario = "{scenario.name}"\nruns = 1\nmetrics = ["flows.measured.loss"]\n'
        '[grid]\n"links.edge.rate" = ["15Mbps", "30Mbps"]\n'
    )
    done = perhop("sweep", sweep, "--store", tmp_path / "store")
    assert done.code == 0, done.err
