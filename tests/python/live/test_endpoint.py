"""perhop's own TCP on real packets, as sender, as receiver and as both, beside the kernel's."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest
from tests.python.cli.test_cli import refused
from tests.python.conftest import Finished
from tests.python.live.living import needs_live, skip_unless_valid

import perhop as package
from perhop.errors import PerhopWarning

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Perhop = Callable[..., Finished]

ONE = """\
duration = "3s"
warmup = "1s"
live = {{ max-lateness = "100ms", ip = {version} }}
[links.l]
from = "a"
to = "b"
rate = "8Mbps"
delay = "10ms"
queue = {{ aqm = "drop-tail", limit = "40p" }}
[[flows]]
name = "one"
count = 2
from = "a"
to = "b"
transport = {{ tcp = "{tcp}", packet = "1000B" }}
live = {{ {ends} }}
"""

ENDS = [ends for ends in product(["kernel", "perhop"], repeat=2) if "perhop" in ends]


@needs_live
@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("ends", ENDS, ids=" to ".join)
@pytest.mark.parametrize("tcp", ["linux", "newreno"])
def test_either_end_fills_a_link(tcp: str, ends: tuple[str, str], version: int) -> None:
    sender, receiver = ends
    keys = f'sender = "{sender}", receiver = "{receiver}"'
    done = package.live(ONE.format(tcp=tcp, ends=keys, version=version))
    (report,) = done.reports
    said = "perhop's own TCP" if sender == "perhop" else "Linux TCP, "
    assert report.findings["senders"][0].startswith(said)
    assert report.findings["senders"][0].endswith(", to perhop's own") == (receiver == "perhop")
    skip_unless_valid(done)
    # Half of the link: a transfer that works, on a machine with other work, too.
    assert done.links["utilization"][0] > 0.85
    # At the kernel's receiver data behind a gap count when the gap is filled.
    assert 6.5e6 < sum(done.flows["throughput_bps"]) < 8.8e6
    assert min(done.flows["mean_rtt_s"]) > 0.02


GUARANTEES = """\
duration = "6s"
warmup = "2s"
live = { max-lateness = "100ms", sender = "perhop" }
[links.l]
from = "a"
to = "b"
rate = "4Mbps"
delay = "10ms"
queue = { aqm = "rio", in = "40/80/0.02", total = "10/30/0.3", limit = "100p" }
[[flows]]
name = "sold"
count = 2
from = "a"
to = "b"
access = { rate = "20Mbps", delay = "1ms" }
transport = { tcp = "TCP", packet = "1000B", window = "60p" }
profile = { marker = "token-bucket", rate = "1Mbps", burst = "10kB" }
[[flows]]
name = "rest"
count = 2
from = "a"
to = "b"
transport = { tcp = "newreno", packet = "1000B", window = "60p" }
"""


@needs_live
@pytest.mark.parametrize("scheme", ["two-windows", "no-out"])
def test_senders_of_throughput_guarantees(scheme: str) -> None:
    text = GUARANTEES.replace("TCP", "two-windows" if scheme == "two-windows" else "newreno", 1)
    if scheme == "no-out":
        text = text.replace("profile =", 'out-feedback = "0s"\nprofile =')
    done = package.live(text.replace(', sender = "perhop"', ""))
    (report,) = done.reports
    assert report.findings["senders"][0] == "perhop's own TCP"
    assert report.findings["senders"][1].startswith("Linux TCP"), "which can do what this group does"
    skip_unless_valid(done)
    sold = done.flows.filter(done.flows["class"] == "sold")
    assert sold["marked_green"].sum() > 100, "the host's meter, or the router's, has marked its packets"
    assert sold["marked_yellow"].sum() > 0
    # Half of both profiles: transfers that work, on a machine with other work, too.
    assert sold["throughput_bps"].sum() > 1e6


COMING = """\
duration = "3s"
live = { max-lateness = "100ms", sender = "perhop", receiver = "perhop" }
[links.l]
from = "a"
to = "b"
rate = "8Mbps"
delay = "5ms"
queue = { aqm = "drop-tail", limit = "40p" }
[[flows]]
name = "short"
from = "a"
to = "b"
transport = { tcp = "linux" }
arrivals = { rate = "20/s" }
sizes = { constant = "20kB" }
"""


@needs_live
def test_its_connections_come_and_go() -> None:
    done = package.live(COMING)
    (report,) = done.reports
    assert not any("a flow failed" in text for text in report.findings["invalid"])
    skip_unless_valid(done)
    # A second is enough for a flow of 20 kB.
    early = done.population_flows.filter(done.population_flows["started_s"] < 2)
    assert early.height > 20
    assert early["completion_s"].null_count() == 0


@needs_live
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('tcp = "newreno"', 'udp = "cbr", rate = "1Mbps"', ["flows[0].live.sender", "only TCP"]),
        (
            'sender = "perhop"',
            'sender = "perhop", congestion = "cubic"',
            ["flows[0].live.congestion", "kernel"],
        ),
        ('tcp = "newreno"', 'tcp = "quic"', ["flows[0].transport.tcp", "QUIC", "simulator only"]),
        ('sender = "perhop"', 'sender = "linux"', ["sender", "kernel", "perhop"]),
        ('packet = "1000B"', 'packet = "30B"', ["flows[0].transport.packet"]),
        (
            "max-lateness",
            'sysctl = { "net.ipv4.ip_forward" = 0 }, max-lateness',
            ["live.sysctl.net.ipv4.ip_forward", "no effect"],
        ),
    ],
    ids=["datagrams", "two controls", "quic", "another", "packet", "forwarding"],
)
def test_what_it_cannot_do_is_said_in_a_line(
    perhop: Perhop, tmp_path: Path, old: str, new: str, said: list[str]
) -> None:
    scenario = tmp_path / "own.toml"
    text = ONE.format(tcp="newreno", ends='sender = "perhop"', version=4)
    assert old in text
    scenario.write_text(text.replace(old, new))
    line = refused(perhop("live", scenario))
    for word in said:
        assert word in line


@needs_live
@pytest.mark.parametrize("key", ["sender", "receiver"])
def test_ends_for_all_groups_need_a_group_that_has_them(perhop: Perhop, tmp_path: Path, key: str) -> None:
    scenario = tmp_path / "own.toml"
    text = ONE.format(tcp="newreno", ends="", version=4).replace("live = {  }", "")
    text = text.replace("max-lateness", f'{key} = "perhop", max-lateness')
    scenario.write_text(text.replace('tcp = "newreno"', 'udp = "cbr", rate = "1Mbps"'))
    assert f"live.{key}: no group has TCP without users" in refused(perhop("live", scenario))


@needs_live
@pytest.mark.parametrize("sender", ["kernel", "perhop"])
def test_a_flow_that_stops_before_it_starts_sends_nothing(sender: str) -> None:
    text = ONE.format(tcp="newreno", ends=f'sender = "{sender}"', version=4)
    text = text.replace("count = 2", 'count = 2\nstart = "500ms"\nstop = "400ms"')
    with pytest.warns(PerhopWarning, match="never begin"):
        done = package.live(text)
    assert set(done.flows["delivered_packets"]) == {0}


@needs_live
def test_accurate_ecn_needs_no_kernel_with_perhops_tcp_at_both_ends() -> None:
    text = ONE.format(tcp="linux", ends='sender = "perhop", receiver = "perhop"', version=4)
    queue = 'queue = { aqm = "codel", ecn = true, limit = "100p" }'
    done = package.live(
        text.replace('queue = { aqm = "drop-tail", limit = "40p" }', queue).replace(
            "count = 2", 'count = 2\necn = "accurate"'
        )
    )
    skip_unless_valid(done)
    assert sum(done.flows["ecn_reductions"]) > 0


@needs_live
def test_it_needs_devices_of_whole_packets(perhop: Perhop, tmp_path: Path) -> None:
    scenario = tmp_path / "own.toml"
    scenario.write_text(ONE.format(tcp="newreno", ends='sender = "perhop"', version=4))
    line = refused(perhop("live", scenario, "--device", "packet"))
    assert "flows[0].live: perhop's own TCP needs TUN devices" in line
