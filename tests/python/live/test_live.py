"""Scenarios on real packets, as a user types them; skipped where the system lacks what they need."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from tests.python.cli.test_cli import broken, refused
from tests.python.conftest import Finished
from tests.python.live.living import INVALID, LIVE, needs_live, skip_unless_valid, valid_run

import perhop as package
from perhop.errors import PerhopError
from perhop.processes.local_server import Patience
from perhop.real_packets import laboratory
from perhop.real_packets.metrics import RunningStatistics, endpoint, serve
from perhop.runs import simulate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Perhop = Callable[..., Finished]


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "live.toml"
    path.write_text(LIVE, encoding="utf-8")
    return path


def ended(done: Finished) -> Finished:
    """A command that ran; where the machine was too slow, it must have said so."""
    assert done.code in {0, INVALID}, done.err
    assert ("INVALID, seed" in done.out + done.err) == (done.code == INVALID)
    assert "Traceback" not in done.err
    return done


# ---------------------------------------------------------------- what it prints and writes


@needs_live
def test_it_prints_what_a_simulation_prints(perhop: Perhop, scenario: Path) -> None:
    done = ended(perhop("live", scenario))
    lines = done.out.splitlines()
    assert lines[0] == "Two classes on real packets"
    assert lines[1] == "2 s on real packets, the first 0.5 s excluded; 1 run, seed 1"
    assert "1 run: no interval" in " ".join(lines)
    heads = ["class  ", "gold  ", "best-effort  ", "link  ", "bottleneck  ", "seed  "]
    assert all(any(line.startswith(head) for line in lines) for head in heads)
    assert "gold: Linux TCP, reno, best-effort: Linux TCP, reno" in done.out
    assert done.err == ""


@needs_live
def test_statistics_json_and_report_together(perhop: Perhop, scenario: Path, tmp_path: Path) -> None:
    done = ended(perhop("live", scenario, "--runs", "2", "--stats", "--json", "-", "--out", tmp_path / "out"))
    content = json.loads(done.out)
    assert content["seeds"] == [1, 2]
    assert [entry["class"] for entry in content["classes"]] == ["gold", "best-effort"]
    if done.code == 0:
        assert content["classes"][0]["throughput_bps"] > 0
    assert [report["seed"] for report in content["live"]] == [1, 2]
    for report in content["live"]:
        assert report["valid"] == (report["invalid"] == [])
        assert set(report["late_s"]) >= {"p50", "p99", "max", "allowed", "pause"}
    said = re.findall(r"^seed (\d)  (\d+) s  Mbit/s each: gold [\d.]+, best-effort", done.err, re.MULTILINE)
    assert {seed for seed, _ in said} == {"1", "2"}
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"report.html", "manifest.json", "samples.parquet", "plots"}
    page = (tmp_path / "out" / "report.html").read_text()
    assert "How well the machine kept up" in page
    assert "gold: Linux TCP, reno" in page
    assert page.count("INVALID, seed") == sum(len(report["invalid"]) for report in content["live"])


@needs_live
def test_measures_that_do_not_apply_to_real_packets_have_no_value() -> None:
    text = """
duration = "2s"

[links.link]
from = "a"
to = "b"
rate = "2Mbps"
delay = "5ms"
queue = { aqm = "drop-tail", limit = "10p" }

[[flows]]
name = "calls"
from = "a"
to = "b"
transport = { udp = "cbr", rate = "700kbps" }

[[flows]]
name = "bulk"
from = "a"
to = "b"
transport = { tcp = "linux" }
"""
    flows = {row["class"]: row for row in valid_run(text).flows.iter_rows(named=True)}
    kernels = ("fast_retransmits", "ecn_reductions", "loss_events", "policed_green")
    assert {flows[name][of] for name in flows for of in kernels} == {None}
    of_tcp = ("acked_bps", "retransmitted_packets", "retransmission_ratio")
    assert {flows["calls"][of] for of in (*of_tcp, "timeouts")} == {None}
    assert None not in {flows["bulk"][of] for of in of_tcp}


@needs_live
def test_packets_balance_and_starts_are_the_seed_s() -> None:
    result = valid_run(LIVE, seed=7)
    simulated = simulate.run(LIVE, seed=7, runs=1)
    for run in (result.runs[0], simulated.runs[0]):
        for link in run.raw["links"]:
            dropped = sum(packets for packets in link["dropped"].values())
            assert np.array_equal(link["arrived"], link["sent"] + link["waiting"] + dropped)
            assert link["sent"].sum() > 0
    starts, drawn = (run.flows("started_s").tolist() for run in (result.runs[0], simulated.runs[0]))
    assert starts == drawn
    assert len(set(starts)) == 4
    # What the router read, it sent, lost (in queues, too), or still has.
    (report,) = result.reports
    sent = sum(device["sent"]["packets"] for device in report.findings["devices"])
    assert sent + sum(report.findings["lost"].values()) <= report.packets
    assert report.packets > 100
    assert 0 < report.cpu_per_packet_s < 1


@needs_live
def test_a_small_bottleneck_is_full() -> None:
    text = broken(LIVE, 'duration = "2s"\nwarmup = "500ms"', 'duration = "6s"\nwarmup = "2s"')
    result = valid_run(
        broken(text, 'in = "10/30/0.02", total = "5/15/0.1"', 'in = "20/45/0.02", total = "15/40/0.1"')
    )
    assert 0.95 <= result.links["utilization"][0] <= 1.0
    rates = result.classes()["throughput_bps"]
    assert 2 * sum(rates) == pytest.approx(5e6, rel=0.06)
    assert rates[0] > rates[1], "who was sold more gets more"


@needs_live
@pytest.mark.parametrize("device", ["tun", "packet"])
@pytest.mark.parametrize("version", [4, 6])
def test_both_versions_over_both_kinds_of_devices(version: int, device: Literal["tun", "packet"]) -> None:
    result = valid_run(broken(LIVE, "[live]", f"[live]\nip = {version}"), device=device)
    assert min(result.flows["throughput_bps"].to_list()) > 0
    assert min(result.flows["mean_rtt_s"].to_list()) > 0.05, "two ways of 30 ms"


@needs_live
def test_what_limited_a_flow_is_the_kernel_s_own_account() -> None:
    shares = ["receiver_limited", "sender_limited", "congestion_limited", "recovering", "idle"]
    (run,) = valid_run(LIVE).runs
    flows = run.raw["flows"]
    assert sum(flows[name] for name in shares) == pytest.approx(np.ones(len(flows["idle"])))
    assert (flows["congestion_limited"] + flows["recovering"]).min() > 0.5, "a small bottleneck"
    assert (flows["busy_s"] > 1).all()


DATAGRAMS = """\
duration = "5s"
warmup = "2s"
live = { max-lateness = "100ms" }
links.l = { from = "a", to = "b", rate = "9Mbps", delay = "9ms", queue = { aqm = "drop-tail", limit = "99p" }}
flows = [
  { name = "udp", from = "a", to = "b", start = "0s", transport = { udp = "cbr", rate = "400kbps" } },
  { name = "rap", from = "a", to = "b", start = "0s", transport = { rap = "aimd", ack = "100B" } },
  { name = "tfrc", from = "a", to = "b", start = "0s", transport = { tfrc = "rfc5348", ack = "100B" } },
]
"""


@needs_live
def test_senders_that_are_perhop_s_own() -> None:
    result = valid_run(DATAGRAMS)
    assert result.reports[0].findings["senders"] == ["perhop's own, over UDP"] * 3
    flows = {row["class"]: row for row in result.flows.iter_rows(named=True)}
    for flow in flows.values():
        assert flow["throughput_bps"] > 0
        assert flow["one_way_delay_s"] > 0.009
    assert flows["udp"]["sent_packets"] == pytest.approx(400e3 * 3 / 8000, abs=20)


SIZED = """\
duration = "3s"
live = { max-lateness = "100ms" }
links.l = { from = "a", to = "b", rate = "9Mbps", delay = "9ms", queue = { aqm = "drop-tail", limit = "99p" }}
flows = [
  { name = "tcp", transport = { tcp = "newreno" }, volume = "50kB" },
  { name = "udp", transport = { udp = "cbr", rate = "800kbps", packet = "1kB" }, volume = "9720B" },
  { name = "rap", transport = { rap = "aimd", ack = "100B" }, volume = "5kB" },
  { name = "tfrc", transport = { tfrc = "rfc5348", ack = "100B" }, volume = "5kB" },
  { name = "stopped", transport = { tcp = "newreno" }, volume = "900MB", stop = "1s" },
  { name = "endless", transport = { udp = "cbr", rate = "80kbps" } },
]
""".replace("transport =", 'from = "a", to = "b", start = "200ms", transport =')


@needs_live
def test_flows_complete_as_in_a_simulation() -> None:
    done = valid_run(SIZED)
    both = (done, simulate.run(SIZED, runs=1))
    found, simulated = ({row["class"]: row for row in one.flows.iter_rows(named=True)} for one in both)
    for name in ("tcp", "udp", "rap", "tfrc"):
        assert found[name]["slowdown"] >= 1, name
        assert found[name]["unfinished"] == 0, name
        idle = [flow[name]["completion_s"] / flow[name]["slowdown"] for flow in (found, simulated)]
        assert idle[0] == pytest.approx(idle[1], rel=1e-9), "the path is the same"
    # Ten packets, 10 ms apart within 1 %, that travel for 9 ms at least, on a machine with other work, too.
    assert 0.098 < found["udp"]["completion_s"] < 0.3
    for flow in (found, simulated):
        assert (flow["stopped"]["completion_s"], flow["stopped"]["unfinished"]) == (None, 1)
        assert (flow["endless"]["slowdown"], flow["endless"]["unfinished"]) == (None, None)


TRANSFERS = """\
duration = "5s"
live = { max-lateness = "100ms" }
probes.interval = "500ms"

[links.l]
from = "a"
to = "b"
rate = "40Mbps"
delay = "9ms"
queue = { aqm = "drop-tail", limit = "900p" }

[[flows]]
name = "web"
from = "a"
to = "b"
access = { rate = "80Mbps", delay = "1ms" }
transport = { tcp = "linux" }
arrivals = { rate = "40/s" }
sizes = { lognormal = { mean = "20kB", deviation = "40kB" } }
stop = "4s"

[[flows]]
name = "listed"
from = "a"
to = "b"
transport = { tcp = "linux" }
arrivals = { list = [["100ms", "1B"], ["1s", "1896B"], ["1s", "1897B"], ["4900ms", "40MB"]] }
"""


@needs_live
@pytest.mark.parametrize("device", ["tun", "packet"])
def test_flows_come_and_go_as_in_a_simulation(device: Literal["tun", "packet"]) -> None:
    result = valid_run(TRANSFERS, seed=3, device=device)
    simulated = simulate.run(TRANSFERS, seed=3, runs=1)
    found, drawn = (one.population_flows for one in (result, simulated))
    known = ["class", "started_s", "size_bytes", "idle_s"]
    assert found.select(known).equals(drawn.select(known))
    assert found.height > 120
    # All but the last have ended: from the start to the last byte, with a handshake before the first one.
    assert found["completion_s"].is_null().to_list() == [*[False] * (found.height - 1), True]
    done = found.drop_nulls("completion_s")
    assert (done["completion_s"] >= done["idle_s"] + 0.018).all()
    medians = [float(np.median(one["completion_s"].drop_nulls().to_numpy())) for one in (done, drawn)]
    assert 0.8 * medians[1] < medians[0] < medians[1] + 0.1, "no packet is lost, and hosts have other work"
    # Every byte has arrived, with 52 bytes of headers in each packet of at most 1500: counts are exact.
    web = done.filter(done["class"] == "web")["size_bytes"].to_list()
    packets = sum(-(-size // 1448) for size in web)
    row = next(row for row in result.flows.iter_rows(named=True) if row["class"] == "web")
    assert row["delivered_packets"] == packets
    assert row["throughput_bps"] * 5 / 8 == pytest.approx(sum(web) + 52 * packets, rel=1e-12)
    assert (row["completion_s"], row["unfinished"]) == (None, None), "these are measures of single flows"
    rates = result.series.filter(result.series["class"] == "web")["throughput_bps"]
    assert float(rates.to_numpy().sum()) * 0.5 / 8 == pytest.approx(sum(web) + 52 * packets, rel=1e-9)
    (link,) = result.runs[0].raw["links"]
    assert sum(packets.sum() for packets in link["dropped"].values()) == 0


@needs_live
def test_flows_that_come_and_go_are_compared() -> None:
    (found,) = package.compare(TRANSFERS, runs=1, sim_runs=2).comparisons
    skip_unless_valid(found.live)
    text = {line.key.text for line in found.lines}
    assert {"web: FCT p50, ms", "web: slowdown mean", "listed: FCT p50, ms"} <= text


USERS = """\
duration = "6s"
warmup = "500ms"
live = { max-lateness = "100ms" }
probes.interval = "500ms"

[links.l]
from = "a"
to = "b"
rate = "30Mbps"
delay = "15ms"
queue = { aqm = "drop-tail", limit = "900p" }

[[flows]]
name = "rpc"
count = 6
from = "a"
to = "b"
start = "500ms..600ms"
transport = { tcp = "linux" }
application.model = "request-response"
application.response = "14480B"
application.think = "150ms"
application.service = "10ms"
application.times = "constant"

[[flows]]
name = "reader"
from = "a"
to = "b"
start = "500ms"
transport = { tcp = "linux" }
application = { model = "web", reading = "200ms" }

[[flows]]
name = "viewer"
from = "a"
to = "b"
transport = { tcp = "linux" }
application = { model = "video", chunk = "1s" }

[[flows]]
name = "calls"
count = 3
from = "a"
to = "b"
access = { rate = "8Mbps", delay = "5ms" }
application = { model = "call" }
"""


@needs_live
@pytest.mark.parametrize("version", [4, 6])
def test_users_do_as_in_a_simulation(version: int) -> None:
    text = USERS.replace("live = {", f"live = {{ ip = {version},")
    result, simulated = valid_run(text, seed=2), simulate.run(text, seed=2, runs=1)
    found, expected = (one.applications() for one in (result, simulated))
    assert list(found) == list(expected) == ["request-response", "web", "video", "call"]
    # A round trip of 30 ms, the server's 10 ms, and 4 ms on the link: not less, and not much more.
    (rpc,), (calm,) = (one["request-response"].rows(named=True) for one in (found, expected))
    assert 0.040 < rpc["response_mean_s"] < calm["response_mean_s"] + 0.1
    assert rpc["response_mean_s"] > 0.9 * calm["response_mean_s"]
    assert 0.5 * calm["responses"] < rpc["responses"] < 1.1 * calm["responses"]
    # A request is a packet of 200 bytes and headers, a response ten packets; nobody began in the warm-up.
    by_class = result.flows.group_by("class").agg(
        pl.col("delivered_packets").sum(), (pl.col("throughput_bps") * pl.col("active_s")).sum().alias("bits")
    )
    flows = {row["class"]: row for row in by_class.iter_rows(named=True)}
    header = 52 if version == 4 else 72
    requests, responses = flows["rpc (reverse)"], flows["rpc"]
    assert rpc["responses"] <= requests["delivered_packets"] <= rpc["responses"] + rpc["unfinished_responses"]
    assert requests["bits"] / 8 == pytest.approx((200 + header) * requests["delivered_packets"], rel=1e-9)
    assert responses["delivered_packets"] >= 10 * rpc["responses"]
    # The pages are those that the simulated reader opens, as far as both came.
    pages = [
        one.application_samples.filter(pl.col("quantity") == "page_bytes")["value"].to_list()
        for one in (result, simulated)
    ]
    both = min(len(of_one) for of_one in pages)
    assert both >= 3
    assert pages[0][:both] == pages[1][:both]
    (viewer,) = found["video"].rows(named=True)
    assert viewer["chunks"] >= 3
    # Calls in both directions, 20 ms one way and some time in hosts; sources draw as the simulator's do.
    for name in ("calls", "calls (reverse)"):
        ours, theirs = (one.flows.filter(pl.col("class") == name) for one in (result, simulated))
        sent = [int(one["delivered_packets"].sum()) for one in (ours, theirs)]
        assert abs(sent[0] - sent[1]) <= 0.1 * sent[1] + 10
        assert 0.020 < float(np.mean(ours["one_way_delay_s"].drop_nulls().to_numpy())) < 0.15
    assert found["call"]["mos"].drop_nulls().len() == 2


@needs_live
def test_it_prints_tables_of_users(perhop: Perhop, scenario: Path, tmp_path: Path) -> None:
    scenario.write_text(USERS.replace('duration = "6s"', 'duration = "3s"'))
    done = ended(perhop("live", scenario, "--stats", "--out", tmp_path / "out"))
    assert "viewer: Linux TCP, cubic, calls: perhop's own, over UDP" in " ".join(done.out.split())
    heads = [*(f"\n{name}  " for name in ("rpc", "reader", "viewer", "calls")), "\ncalls (reverse)  "]
    assert all(done.out.count(head) == 2 for head in heads), "its traffic, and what users had of it"
    assert re.search(r"Mbit/s each: rpc [\d.]+, reader [\d.]+, viewer [\d.]+, calls [\d.]+;", done.err)
    assert (tmp_path / "out" / "report.html").exists()


@needs_live
def test_times_of_users_are_compared() -> None:
    (found,) = package.compare(USERS, runs=1, sim_runs=2).comparisons
    skip_unless_valid(found.live)
    text = {line.key.text for line in found.lines}
    assert {"rpc: response, mean, ms", "reader: page, mean, ms", "calls: one-way delay, ms"} <= text


WINDOWS = """\
duration = "2s"
warmup = "500ms"
live = { max-lateness = "100ms" }
probes.interval = "100ms"
links.l = { from = "a", to = "b", rate = "4Mbps", delay = "9ms", queue = { aqm = "drop-tail", limit = "40p" }}
paths.lsp = { via = ["a", "b"], control = { interval = "50ms", window = "SOURCE" } }

[[flows]]
name = "sold"
count = 2
path = "lsp"
transport = { tcp = "newreno" }
profile = { rate = "1Mbps", marker = "twam" }
start = "0s"
"""


@needs_live
@pytest.mark.parametrize("source", ["sender", "in-flight"])
def test_window_control(source: str) -> None:
    result = valid_run(WINDOWS.replace("SOURCE", source))
    late = result.series.filter(result.series["time_s"] > 1.0)
    seen = late["seen_packets"].drop_nulls().to_list()
    assert 0 < sum(seen) / len(seen) < 1000
    assert max(late["cwnd_packets"].drop_nulls().to_list()) > 1


# ---------------------------------------------------------------- what cannot be


@needs_live
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('start = "0s..200ms"', 'live = { congestion = "vegass" }', ["live.congestion", "vegass", "reno"]),
        ("max-lateness", 'sender = "kernel"\nmax-lateness', ["two-windows", 'live.sender = "perhop"']),
        (
            'burst = "10kB" }',
            'burst = "10kB" }\nout-feedback = "1ms"\nlive.sender = "kernel"',
            ["out-feedback"],
        ),
        ("[live]", '[live]\nsysctl = { "net.ipv4.tcp_sakk" = 0 }', ["live.sysctl", "net.ipv4.tcp_sakk"]),
        ("[live]", '[live]\nsysctl = { "net.ipv4.tcp_sack" = "much" }', ["live.sysctl", "much"]),
        ('packet = "1000B"', 'packet = "80B"', ["transport.packet", "128B"]),
    ],
    ids=["congestion", "two-windows", "out-feedback", "sysctl", "its value", "packet"],
)
def test_what_no_kernel_has_is_said_in_a_line(
    perhop: Perhop, scenario: Path, old: str, new: str, said: list[str]
) -> None:
    text = LIVE.replace(old, new, 1)
    if "two-windows" in said:
        text = text.replace('tcp = "newreno"', 'tcp = "two-windows"', 1)
    scenario.write_text(text)
    line = refused(perhop("live", scenario))
    for word in said:
        assert word in line


@needs_live
def test_more_flows_than_ports_are_refused_in_a_line(perhop: Perhop, scenario: Path) -> None:
    scenario.write_text(TRANSFERS.replace("40/s", "50000/s", 1))
    done = perhop("live", scenario)
    assert (done.code, done.out) == (2, "")
    *_, line = done.err.splitlines()  # A notice that the flows overload the link may come first.
    assert "error: " in line
    for word in ["flows[0].arrivals", "45534 flows", "a host has ports for no more"]:
        assert word in line


@needs_live
@pytest.mark.skipif(shutil.which("prlimit") is None, reason="there is no prlimit (util-linux)")
def test_a_limit_of_open_files_bounds_the_flows(scenario: Path) -> None:
    scenario.write_text(TRANSFERS)
    command = ["prlimit", "--nofile=400:400", sys.executable, "-m", "perhop", "live", str(scenario)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2, done.stderr
    assert "this process may open 400 files, so 72 flows may begin" in done.stderr
    assert done.stderr.count("\n") == 1, "a line"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0.0.0.0:9477", "127.0.0.1:9477"),
        ("[::]:9477", "only this machine"),
        ("192.168.1.7:80", "127.0.0.1:80"),
        ("example.org:9477", "only this machine"),
        ("9477", "not an address and a port"),
        ("127.0.0.1:99999", "not an address and a port"),
        ("", "not an address and a port"),
    ],
)
def test_metrics_are_for_this_machine(text: str, said: str) -> None:
    with pytest.raises(PerhopError, match=re.escape(said)):
        endpoint(text)


def test_metrics_address_is_read_before_anything_runs(perhop: Perhop, scenario: Path) -> None:
    assert "only this machine" in refused(perhop("live", scenario, "--metrics", "0.0.0.0:9477"))


def test_where_metrics_may_be() -> None:
    assert endpoint("127.0.0.1:9477") == ("127.0.0.1", 9477)
    assert endpoint("[::1]:0") == ("::1", 0)
    assert endpoint("localhost:9477") == ("127.0.0.1", 9477)


def test_metrics_say_what_was_seen() -> None:
    statistics = RunningStatistics()
    registry = CollectorRegistry()
    registry.register(statistics)
    assert generate_latest(registry) == b""
    link = {"waiting": 3, "sent": 100, "dropped": {"early": 2}}
    glimpse = {
        "time_s": 1.0,
        "received_bytes": {'a "class"': 1500.0},
        "links": {"bottleneck": link},
        "late_s": {"p50": 1e-5, "p99": 1e-3, "max": 0.25},
        "inside": 5,
    }
    statistics.see(4, glimpse)
    text = generate_latest(registry).decode()
    for line in (
        "perhop_live_seed 4.0",
        'perhop_live_received_bytes_total{class="a \\"class\\""} 1500.0',
        'perhop_live_queue_packets{link="bottleneck"} 3.0',
        'perhop_live_dropped_packets_total{link="bottleneck",reason="early"} 2.0',
        'perhop_live_lateness_seconds{quantile="1"} 0.25',
    ):
        assert line in text


def get(port: int, host: str) -> str:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(f"GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        return b"".join(iter(lambda: connection.recv(4096), b"")).decode()


def test_metrics_answer_to_names_of_this_machine_only() -> None:
    with serve("127.0.0.1", 0) as (_, place):
        port = int(place.split(":")[-1].split("/")[0])
        for host in (
            "localhost",
            f"localhost:{port}",
            "LOCALHOST.",
            f"127.0.0.1:{port}",
            "[::1]",
            "127.3.2.1",
        ):
            assert get(port, host).startswith("HTTP/1.0 200 "), host
        for host in (
            "evil.example",
            f"evil.example:{port}",
            "127.0.0.1.evil.example",
            "192.0.2.1",
            "a@localhost",
            "",
        ):
            assert get(port, host).startswith("HTTP/1.0 421 "), host
        with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
            connection.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            assert connection.recv(4096).startswith(b"HTTP/1.0 421 ")


def test_idle_readers_of_metrics_delay_nobody_for_long() -> None:
    with serve("127.0.0.1", 0) as (_, place), ExitStack() as idle:
        port = int(place.split(":")[-1].split("/")[0])
        began = time.monotonic()
        for _ in range(Patience.clients - 2):
            idle.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
        assert get(port, "localhost").startswith("HTTP/1.0 200 ")
        slow = [
            idle.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20)) for _ in range(9)
        ]
        slow[-1].settimeout(20)
        assert slow[-1].recv(1) == b"", "there are too many"
        # Readers who say nothing are given up, whatever they drip.
        assert eventually(lambda: "200" in get_or_nothing(port))
        assert time.monotonic() - began < 20


def get_or_nothing(port: int) -> str:
    try:
        return get(port, "localhost")
    except OSError:
        return ""


# ---------------------------------------------------------------- while it runs, and when it is stopped


class Running:
    """`perhop live` in the background."""

    def __init__(self, directory: Path, *arguments: str | Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "perhop", "live", *map(str, arguments)],
            cwd=directory,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        self.stderr = self.process.stderr

    def line(self, begins: str) -> str:
        """The next line on standard error that begins so."""
        for line in self.stderr:
            if line.startswith(begins):
                return line.strip()
        raise AssertionError(f"it ended without `{begins}`")

    def worker(self) -> int:
        """The process in which the run happens."""
        own = self.process.pid
        (child,) = Path(f"/proc/{own}/task/{own}/children").read_text().split()
        return int(child)

    def end(self, number: signal.Signals) -> str:
        """Stop it, and what it said then."""
        self.process.send_signal(number)
        return self.stderr.read()


@pytest.fixture
def endless(tmp_path: Path, scenario: Path) -> Iterator[Running]:
    scenario.write_text(broken(LIVE, 'duration = "2s"', 'duration = "1000s"'))
    started = Running(tmp_path, scenario, "--stats", "--metrics", "127.0.0.1:0")
    try:
        yield started
    finally:
        started.process.kill()
        started.process.wait()
        started.stderr.close()


def namespaces(process: int) -> set[str]:
    """The network namespaces of a process's threads, but for ours."""
    found = {str((task / "ns" / "net").readlink()) for task in Path(f"/proc/{process}/task").iterdir()}
    return found - {str(Path("/proc/self/ns/net").readlink())}


def anybody_in(wanted: set[str]) -> bool:
    for task in Path("/proc").glob("[0-9]*/task/*/ns/net"):
        try:
            if str(task.readlink()) in wanted:
                return True
        except OSError:
            continue
    return False


def eventually(holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.05)
    return False


@needs_live
def test_metrics_are_served_while_it_runs(endless: Running) -> None:
    place = endless.line("metrics: ").removeprefix("metrics: ")
    assert place.startswith("http://127.0.0.1:")
    endless.line("seed 1")

    def has_received() -> bool:
        with urllib.request.urlopen(place, timeout=10) as answer:  # noqa: S310 - our own server
            text = answer.read().decode()
        return bool(re.search(r'^perhop_live_received_bytes_total\{class="gold"\} [1-9]', text, re.MULTILINE))

    assert eventually(has_received)
    assert (
        endless.end(signal.SIGINT) == "interrupted; nothing was written, and nothing is left in the system\n"
    )
    assert endless.process.wait(30) == 130


@needs_live
@pytest.mark.parametrize("who", ["the command, by Ctrl-C", "the command, killed", "the worker, killed"])
def test_nothing_is_left_behind(perhop: Perhop, scenario: Path, endless: Running, who: str) -> None:
    endless.line("seed 1")
    worker = endless.worker()
    inside = namespaces(worker)
    assert len(inside) == 2, "one for each host"
    assert anybody_in(inside)
    if who == "the worker, killed":
        os.kill(worker, signal.SIGKILL)
        assert endless.stderr.read().endswith(
            "error: the run on real packets ended unexpectedly (status -9)\n"
        )
        assert endless.process.wait(30) == 2
    elif who == "the command, killed":
        endless.end(signal.SIGKILL)
        assert endless.process.wait(30) == -signal.SIGKILL
    else:
        assert "interrupted" in endless.end(signal.SIGINT)
        assert endless.process.wait(30) == 130
    assert eventually(lambda: not Path(f"/proc/{worker}").exists())
    assert eventually(lambda: not anybody_in(inside))
    assert not Path("/sys/class/net/perhop0").exists()
    if shutil.which("ip"):
        named = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=False).stdout
        assert "perhop" not in named
    if who == "the command, killed":
        scenario.write_text(LIVE)
        ended(perhop("live", scenario))


# ---------------------------------------------------------------- ordinary users

NOBODY = "setpriv --reuid=65534 --regid=65534 --clear-groups"


@pytest.fixture
def shared() -> Iterator[Path]:
    """A directory that everybody may enter, with a scenario in it."""
    directory = Path(tempfile.mkdtemp(prefix="perhop-test-"))
    directory.chmod(0o755)
    (directory / "live.toml").write_text(LIVE)
    yield directory
    shutil.rmtree(directory)


def as_nobody(directory: Path, mode: str, *options: str) -> Finished:
    """`perhop live` as an ordinary user, with a /dev/net/tun of this mode.

    All that is mounted lies in a mount namespace of the command's own, and goes with it.
    """
    if os.geteuid() != 0:
        pytest.skip("needs root, to become somebody else")
    if not all(shutil.which(name) for name in ("setpriv", "unshare", "mknod", "mount")):
        pytest.skip("needs setpriv, unshare, mknod and mount")
    python = shlex.quote(sys.executable)
    script = [
        *opened(directory),
        "mount -t tmpfs tmpfs /dev/net",
        f"mknod -m {mode} /dev/net/tun c 10 200",
        # By a shell: setpriv itself still has the rights that it gives up.
        f"""{NOBODY} sh -c "exec {python} -c 'import perhop'" || exit 99""",
        f"exec {NOBODY} {python} -m perhop live live.toml {shlex.join(options)}",
    ]
    done = subprocess.run(
        [
            "unshare",
            "--mount",
            "sh",
            "-c",
            " &&\n".join(script[:-2]) + " || exit 98\n" + "\n".join(script[-2:]),
        ],
        cwd=directory,
        env={"PATH": os.environ["PATH"], "HOME": str(directory), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode == 98:
        pytest.skip(f"no private mounts and devices here: {done.stderr.strip()}")
    if done.returncode == 99:
        pytest.skip(
            f"an ordinary user cannot run {sys.executable} with perhop: {done.stderr.splitlines()[-1]}"
        )
    if "does not let ordinary users make user namespaces" in done.stderr:
        pytest.skip(done.stderr.strip())
    return Finished(done.returncode, done.stdout, done.stderr)


def opened(directory: Path) -> list[str]:
    """Commands that bring the interpreter into view where it lies in a home that others cannot enter."""
    base = Path(sys.base_prefix).resolve()
    closed = next((one for one in reversed(base.parents) if not one.stat().st_mode & 0o001), None)
    if closed is None:
        return []
    aside = directory / "python"
    aside.mkdir()
    names = {
        name: shlex.quote(str(path)) for name, path in (("base", base), ("closed", closed), ("aside", aside))
    }
    commands = (
        "mount --bind {base} {aside}",
        "mount -t tmpfs -o mode=0755 tmpfs {closed}",
        "mkdir -p {base}",
        "mount --bind {aside} {base}",
    )
    return [command.format(**names) for command in commands]


@needs_live
def test_an_ordinary_user_where_the_device_is_open(shared: Path) -> None:
    assert "gold: Linux TCP, reno" in ended(as_nobody(shared, "0666")).out


@needs_live
def test_an_ordinary_user_where_it_is_not(shared: Path) -> None:
    out = ended(as_nobody(shared, "0600")).out
    assert "gold: Linux TCP, reno" in out
    assert "/dev/net/tun cannot be opened by this user, so the hosts are joined" in out


@needs_live
def test_an_ordinary_user_who_insists_on_it(shared: Path) -> None:
    line = refused(as_nobody(shared, "0600", "--device", "tun"))
    assert "/dev/net/tun cannot be opened by this user" in line
    assert "chmod 0666 /dev/net/tun" in line


def test_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(*_: object) -> Any:  # noqa: ANN401
        raise package._engine.LiveUnavailable("this kernel has no network namespaces")

    monkeypatch.setattr("perhop.real_packets.laboratory.ask", lacking)
    assert laboratory.available() == "this kernel has no network namespaces"
    with pytest.raises(PerhopError, match="no runs on real packets here: this kernel has no network"):
        package.live(LIVE)


NO_NAMESPACES = "echo 0 > /proc/sys/user/max_net_namespaces; exec "


@needs_live
def test_it_tries_before_it_says_that_all_is_well() -> None:
    program = "import perhop.real_packets.laboratory as real; print(real.available())"
    script = f"{NO_NAMESPACES}{shlex.quote(sys.executable)} -c '{program}'"
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "sh", "-c", script],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"no limits on namespaces here: {done.stderr.strip()}")
    assert "this system's limit of network namespaces is reached" in done.stdout
