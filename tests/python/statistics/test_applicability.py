"""A measure that does not apply to a flow, a link or users is null there; 0 is a count or share of zero."""

from __future__ import annotations

import json
import math
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import perhop as package
from perhop import _engine
from perhop.measures import catalog
from perhop.runs.metrics import measure
from perhop.runs.summary import summarize, to_json
from perhop.show.numbers import MISSING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

CONTROLS = [block["name"] for block in json.loads(_engine.blocks()) if block["role"] == "congestion-control"]
"""Every congestion control that needs no class in Python."""
CONTROLS.remove("python")

TRANSPORTS: Mapping[str, dict[str, Any]] = {
    **{name: {"tcp": name} for name in ("reno", "newreno", "linux")},
    **{f"tcp {name}": {"tcp": "linux", "congestion": name} for name in CONTROLS},
    "udp": {"udp": "cbr", "rate": "300kbps", "packet": "500B"},
    "rap": {"rap": "aimd"},
    "tfrc": {"tfrc": "rfc5348"},
}

pytestmark = pytest.mark.filterwarnings("ignore::perhop.PerhopWarning")
"""Notices on rules that do not fit one another do not matter here."""

ECN = {"tcp dctcp": {"ecn"}, "tcp prague": {"ecn"}}
"""Controls that need it."""

Features = frozenset[str]


def tcp(features: Features) -> bool:
    return "tcp" in features


def datagrams(features: Features) -> bool:
    return "tcp" not in features


def having(*names: str) -> Callable[[Features], bool]:
    return lambda features: features >= set(names)


APPLIES: Mapping[str, Callable[[Features], bool]] = {
    "acked_bps": tcp,
    "retransmitted_packets": tcp,
    "timeouts": lambda features: "udp" not in features,
    "fast_retransmits": tcp,
    "loss_events": lambda features: bool(features & {"rap", "tfrc"}),
    "one_way_delay_s": datagrams,
    "one_way_delay_p99_s": datagrams,
    "jitter_s": datagrams,
    "late_packets": datagrams,
    "late_ratio": having("play-out"),
    "play_out_delay_s": datagrams,
    "loss_burst_packets": datagrams,
    "mean_rtt_s": lambda features: "udp" not in features,
    "mean_timed_rtt_s": tcp,
    "policed": having("policed"),
    "policing_ratio": having("policed"),
    "completion_s": having("volume"),
    "slowdown": having("volume"),
    "unfinished": having("volume"),
    "retransmission_ratio": tcp,
    "lost_packets": having("lossy"),
    "link_loss": having("lossy"),
    "congestion_marked_packets": having("ecn"),
    "congestion_marking_ratio": having("ecn"),
    "ecn_reductions": having("tcp", "ecn"),
    "receiver_limited": tcp,
    "sender_limited": tcp,
    "buffer_limited": tcp,
    "congestion_limited": tcp,
    "recovering": tcp,
    "idle": tcp,
    "busy_s": tcp,
    "receiver_window_bytes": tcp,
    "send_buffer_bytes": tcp,
}
"""To which flows each measure applies that some flows do not have."""

ALWAYS = {"started_s", "active_s", "throughput_bps"}
"""Measures of each flow that was active."""

SAMPLED = {"loss_burst_packets", "completion_s", "slowdown", "send_buffer_bytes", "mean_rtt_s"}
"""Of these, measures that may lack a sample: nothing was lost, the volume did not arrive; or a limit."""


def scenario(transport: dict[str, Any], features: Features) -> dict[str, Any]:
    flow: dict[str, Any] = {"name": "f", "from": "a", "to": "b", "transport": transport}
    if "ecn" in features:
        exact = transport.get("congestion") == "prague"
        flow["ecn"] = "l4s" if "tcp" not in features else "accurate" if exact else "classic"
    if "volume" in features:
        flow["volume"] = "40kB"
    if "policed" in features:
        flow["profile"] = {"rate": "200kbps", "marker": "token-bucket", "burst": "5kB", "out": "drop"}
    if "play-out" in features:
        flow["play-out"] = "60ms"
    link: dict[str, Any] = {
        "from": "a",
        "to": "b",
        "rate": "500kbps",
        "delay": "5ms",
        "queue": {"aqm": "red", "limit": "20p", "thresholds": "5/15/0.1", "ecn": "ecn" in features},
    }
    if "lossy" in features:
        link["loss"] = 0.01
    return {"duration": "4s", "links": {"link": link}, "flows": [flow]}


def check(transport: str, extra: set[str]) -> None:
    kind = next(iter(TRANSPORTS[transport]))
    features = frozenset({kind, *extra})
    result = package.run(scenario(TRANSPORTS[transport], features), runs=1)
    row = result.flows.row(0, named=True)
    assert row["delivered_packets"] > 0
    for entry in catalog.FLOW:
        name = f"{entry.name}_green" if entry.kind.endswith("by-color") else entry.name
        if not entry.kind.startswith("optional") or entry.name in ALWAYS:
            assert row[name] is not None, (transport, extra, name)
        elif not APPLIES[entry.name](features):
            assert row[name] is None, (transport, extra, name, row[name])
        elif entry.name not in SAMPLED:
            assert row[name] is not None, (transport, extra, name)


EXTRAS = ("ecn", "volume", "policed", "lossy")


def test_each_measure_that_a_flow_may_lack_says_which_have_it() -> None:
    optional = {entry.name for entry in catalog.FLOW if entry.kind.startswith("optional")}
    assert optional == set(APPLIES) | ALWAYS


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_measures_of_every_transport(transport: str) -> None:
    check(transport, ECN.get(transport, set()))


@pytest.mark.parametrize("transport", ["newreno", "linux", "udp", "rap", "tfrc"])
@pytest.mark.parametrize("extra", EXTRAS)
def test_measures_of_what_a_flow_has_beside_its_transport(transport: str, extra: str) -> None:
    if extra == "ecn" and transport in {"rap", "tfrc"}:
        pytest.skip("they have no ECN")
    check(transport, {extra})


@given(st.sampled_from(["newreno", "linux", "udp", "rap", "tfrc"]), st.sets(st.sampled_from(EXTRAS)))
@settings(max_examples=20, deadline=None)
def test_measures_of_any_flow(transport: str, extra: set[str]) -> None:
    check(transport, extra - {"ecn"} if transport in {"rap", "tfrc"} else extra)


def test_a_play_out_buffer_has_late_packets() -> None:
    check("udp", {"play-out"})


@pytest.mark.parametrize(("policed", "lossy"), list(product([False, True], repeat=2)))
def test_measures_of_links(policed: bool, lossy: bool) -> None:
    used = scenario(TRANSPORTS["udp"], frozenset({"udp", "lossy"} if lossy else {"udp"}))
    if policed:
        bucket = {"rate": "100kbps", "marker": "token-bucket", "burst": "3kB", "out": "drop"}
        used["links"]["link"]["meters"] = [{"name": "edge", "profile": bucket}]
    unused = {**used["links"]["link"], "from": "b", "to": "c"}
    result = package.run({**used, "links": {**used["links"], "unused": unused}}, runs=1)
    rows = {row["link"]: row for row in result.links.iter_rows(named=True)}
    for name in ("link", "unused"):
        row, came = rows[name], name == "link"
        assert (row["policed_packets"] is not None) == policed
        assert (row["policing_ratio"] is not None) == (policed and came)
        assert (row["lost_packets"] is not None) == lossy
        assert (row["link_loss"] is not None) == (lossy and came)
        assert row["reordered_packets"] is None
        for measured in (
            "loss",
            "loss_yellow",
            "delay_p50_s",
            "delay_p99_s",
            "delay_variation_s",
            "delay_max_s",
        ):
            assert (row[measured] is not None) == came, (name, measured)
        for counted in ("arrived_packets", "sent_packets", "dropped_packets", "waiting_packets"):
            assert (row[counted] == 0) or came
            assert row[counted] is not None


MODELS = {
    "web": "tcp",
    "video": "tcp",
    "request-response": "tcp",
    "game": "udp",
    "call": "udp",
}
"""The transport of users' flows."""


def test_each_application_has_a_transport() -> None:
    assert set(MODELS) == set(catalog.APPLICATION) - {"python"}


@pytest.mark.parametrize("model", MODELS)
def test_measures_of_users(model: str) -> None:
    users: dict[str, Any] = {"name": "users", "from": "a", "to": "b", "application": {"model": model}}
    if MODELS[model] == "tcp":
        users["transport"] = {"tcp": "linux"}
    used = {**scenario(TRANSPORTS["udp"], frozenset({"udp"})), "flows": [users]}
    used["links"]["link"]["rate"] = "8Mbps"
    for duration, any_sample in (("20ms", False), ("20s", True)):
        raw = package.run({**used, "duration": duration}, runs=1).runs[0].raw
        for application in raw["applications"]:
            for entry in catalog.APPLICATION[model]:
                value = application["measures"][entry.name]
                is_count = entry.unit == "" and entry.name != "qoe"
                if is_count:
                    assert value is not None, entry.name
                elif not any_sample:
                    assert value is None, (entry.name, value)
                else:
                    assert value is not None, entry.name
        if not any_sample:
            continue
        again = raw["flows"]["retransmitted_packets"].tolist()
        assert all(math.isnan(count) == (MODELS[model] == "udp") for count in again)


TWO = """\
duration = "5s"

[links.link]
from = "a"
to = "b"
rate = "1Mbps"
delay = "5ms"
queue = { aqm = "drop-tail", limit = "10p" }

[[flows]]
name = "calls"
count = 2
from = "a"
to = "b"
transport = { udp = "cbr", rate = "700kbps" }

[[flows]]
name = "bulk"
count = 2
from = "a"
to = "b"
transport = { tcp = "newreno" }
"""


def test_frames_tables_json_and_sweeps_have_no_retransmissions_of_udp() -> None:
    result = package.run(TWO, runs=2)
    flows = result.flows
    for name in ("retransmitted_packets", "timeouts", "fast_retransmits", "ecn_reductions", "policed_yellow"):
        column = flows.filter(flows["class"] == "calls")[name]
        assert column.null_count() == len(column), name
    bulk = flows.filter(flows["class"] == "bulk")
    assert bulk["retransmitted_packets"].dtype.is_integer()
    assert (bulk["retransmitted_packets"] > 0).all()
    assert bulk["ecn_reductions"].null_count() == 4, "no ECN"
    assert bulk["loss_events"].null_count() == 4
    rows = {row["class"]: row for row in result.classes().iter_rows(named=True)}
    assert rows["calls"]["retransmission_ratio"] is None
    assert rows["calls"]["retransmission_ratio_low"] is None
    assert rows["bulk"]["retransmission_ratio"] > 0
    swept = measure(result.runs[0].raw)
    assert math.isnan(swept["flows.calls.retransmission_ratio"])
    assert swept["flows.bulk.retransmission_ratio"] > 0
    lines = {line.split()[0]: line for line in summarize(result).text(400).splitlines() if line}
    assert lines["class"].endswith("retransmitted, %")
    assert lines["calls"].endswith(MISSING)
    assert lines["bulk"].split()[-2] == "±"
    written = json.loads(to_json(result))
    assert "NaN" not in json.dumps(written)
