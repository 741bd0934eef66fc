"""perhop's own TCP and the data plane in virtual time, without the kernel: no rights are needed."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from tests.python.cli.test_cli import broken

from perhop import ScenarioError
from perhop.real_packets import explain, laboratory
from perhop.runs import simulate
from perhop.scenario import reading

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="perhop's data plane is for Linux")

ENDS = 'live = { sender = "perhop", receiver = "perhop" }'
ONE = f"""\
duration = "11s"
warmup = "1s"
{ENDS}
[links.l]
from = "a"
to = "b"
rate = "80Mbps"
delay = "25ms"
[[flows]]
name = "one"
from = "a"
to = "b"
start = "0s"
transport = {{ tcp = "newreno", packet = "1000B", window = "20p" }}
"""

SHARED = f"""\
duration = "30s"
warmup = "5s"
{ENDS}
[links.l]
from = "a"
to = "b"
rate = "5Mbps"
delay = "20ms"
queue = {{ aqm = "red", thresholds = "5/15/0.1", limit = "60p" }}
[[flows]]
name = "shared"
count = 4
from = "a"
to = "b"
transport = {{ tcp = "TCP", packet = "1000B" }}
"""


def test_a_flow_that_its_window_limits_has_a_window_in_each_round_trip() -> None:
    flows = laboratory.run_in_virtual_time(ONE).flows
    # A packet is sent in 0.1 ms, its ACK of 40 bytes, or 52 with timestamps, on a link without queue.
    rtt = 0.0501
    assert flows["throughput_bps"][0] == pytest.approx(20 * 8000 / rtt, rel=5e-3), "a window more or less"
    assert flows["mean_rtt_s"][0] == pytest.approx(rtt, rel=2e-3)


def test_runs_on_one_seed_are_equal() -> None:
    text = SHARED.replace("TCP", "newreno")
    one, again = (laboratory.run_in_virtual_time(text, seed=7) for _ in range(2))
    other = laboratory.run_in_virtual_time(text, seed=8)
    assert one.json() == again.json() != other.json()
    assert one.valid


@pytest.mark.parametrize("tcp", ["ns-1998", "newreno", "linux"])
def test_it_agrees_with_the_simulation(tcp: str) -> None:
    text = SHARED.replace("TCP", tcp)
    virtual = laboratory.run_in_virtual_time(text, runs=6)
    simulated = simulate.run(text, runs=6, seed=1)
    for measure, within in (("utilization", 0.02), ("mean_queue_packets", 0.1), ("loss", 0.15)):
        ours, theirs = (np.mean(result.links[measure].to_numpy()) for result in (virtual, simulated))
        assert ours == pytest.approx(theirs, rel=within), measure


def test_other_senders_are_refused_by_their_group() -> None:
    udp = broken(
        broken(ONE, ENDS + "\n", ""),
        'tcp = "newreno", packet = "1000B", window = "20p"',
        'udp = "cbr", rate = "1Mbps"',
    )
    with pytest.raises(ScenarioError, match=r"flows\[0\]: virtual time needs perhop's own TCP at both ends"):
        laboratory.run_in_virtual_time(udp)
    kernels = broken(ONE, ENDS, 'live = { sender = "perhop" }')
    with pytest.raises(ScenarioError, match=r"flows\[0\]: virtual time"):
        laboratory.run_in_virtual_time(kernels)


def test_the_wire_is_told_from_scheduling_where_all_flows_are_tcp() -> None:
    def steps(text: str) -> list[str]:
        return [step.id for step, _ in explain.exchanges(reading.canonical(text))]

    kernels = broken(ONE, ENDS + "\n", "")
    assert steps(kernels) == ["wire", "scheduling", "receiver", "sender"]
    assert steps(ONE) == ["wire", "scheduling"]
    with_udp = f"""{kernels}
[[flows]]
name = "calls"
from = "a"
to = "b"
transport = {{ udp = "cbr", rate = "100kbps" }}
"""
    assert steps(with_udp) == ["wire-and-scheduling", "receiver", "sender"]
    first, second, *_ = explain.exchanges(reading.canonical(kernels))
    assert json.loads(first[1]) == json.loads(second[1]), "they differ in time alone"
