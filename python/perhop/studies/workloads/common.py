"""The common parts of studies of users: customers with profiles, queues, measures of users, judges."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from perhop.measures import flow_table
from perhop.measures.durations import Durations
from perhop.measures.emodel import CodecName
from perhop.measures.run import Run
from perhop.show.declared import Axis, Factors
from perhop.studies.evidence import Sample
from perhop.studies.paper import Paper
from perhop.studies.sampling import MBPS, times
from perhop.studies.today.common import link_samples

THIS = Paper(__package__, "claims.toml")
"""The claims of each study, its method and its assumptions."""
SOURCE = "The papers' mechanisms under web, video, calls and short transfers"
RUNS = 8
PACKET = 1500
TCP = {"tcp": "linux", "packet": f"{PACKET}B", "window": "1000p"}
"""All senders: Linux's defaults (CUBIC, SACK, RACK-TLP, delayed ACKs, a first window of 10 packets)."""
ACCESS = {"rate": "1Gbps", "delay": "1ms"}
ENDS = {"from": "isp", "to": "homes"}
LINK = "bottleneck"
DELAY = "18ms"
"""The delay of the bottleneck each way: 40 ms with two access links on each way."""

DROP_TAIL, RED, RIO, RI_PLUS_O = "drop-tail", "red", "rio", "rio-plus-out"
THREE_DROP, INVERSE, NO_OUT = "three-drop", "inverse-rate", "no-out"
FQ_CODEL, WFQ = "fq-codel", "wfq"
RULE_NAMES = {
    DROP_TAIL: "drop-tail",
    RED: "RED",
    RIO: "RIO",
    RI_PLUS_O: "RI+O",
    THREE_DROP: "three-drop",
    INVERSE: "inverse-rate",
    NO_OUT: "No-OUT",
    FQ_CODEL: "FQ-CoDel",
    WFQ: "WFQ by customer",
}
READ_COLORS = (RIO, RI_PLUS_O, THREE_DROP, INVERSE, NO_OUT)
READ_NOTHING = (DROP_TAIL, RED, FQ_CODEL)

GOLD, BASIC = "gold", "basic"
CUSTOMERS = Axis("customer", "Customer", {GOLD: "gold", BASIC: "basic"})
CODEPOINTS = {GOLD: "AF11", BASIC: "AF21"}


def queue(rule: str, profiles_mbps: Mapping[str, float], scale: float, connections: int) -> dict[str, Any]:
    """The bottleneck's queue.

    Args:
        rule: Which one.
        profiles_mbps: The rate of each customer's profile.
        scale: Of thresholds and limits; 1 at 100 Mbit/s.
        connections: Of a customer; what inverse-rate drop takes for a connection's share of a profile.
    """
    if rule == FQ_CODEL:
        return {"scheduler": FQ_CODEL}
    limit = f"{500 * scale:g}p"
    if rule == WFQ:
        return queue_per_customer(profiles_mbps, limit)
    if rule == DROP_TAIL:
        return {"aqm": DROP_TAIL, "limit": limit}

    def thresholds(low: float, high: float, most: float) -> str:
        return f"{low * scale:g}/{high * scale:g}/{most:g}"

    inside, total = thresholds(200, 400, 0.02), thresholds(50, 200, 0.1)
    rio = {"in": inside, "total": total}
    smallest = f"{int(1e6 * min(profiles_mbps.values()) / connections)}bps"
    own: dict[str, Any] = {
        RED: {"aqm": RED, "thresholds": total},
        RI_PLUS_O: {"aqm": RI_PLUS_O, **rio, "out": thresholds(25, 100, 0.1)},
        THREE_DROP: {"aqm": "rio-three", "in": inside, "out-in": thresholds(100, 300, 0.1), "out-out": total},
        INVERSE: {"aqm": INVERSE, **rio, "r-min": smallest},
    }.get(rule, {"aqm": RIO, **rio})
    return {**own, "limit": limit, "mean-packet": f"{PACKET}B"}


def queue_per_customer(profiles_mbps: Mapping[str, float], limit: str) -> dict[str, Any]:
    """WFQ: a queue under CoDel for each customer, by codepoint, with its rate; one more for the rest."""
    rule = {"aqm": "codel", "limit": limit}
    queues = [
        {"name": name, "match": {"dscp": CODEPOINTS[name]}, "rate": f"{rate:g}Mbps", "rule": rule}
        for name, rate in profiles_mbps.items()
    ]
    return {"scheduler": WFQ, "queues": [*queues, {"name": "rest", "rule": rule}]}


def profile(rule: str, rate_mbps: float) -> dict[str, Any]:
    """A customer's profile, shared by all its flows: one meter at the first router."""
    marker = "three-precedence" if rule == THREE_DROP else "tsw"
    return {"marker": marker, "rate": f"{rate_mbps:g}Mbps"}


def of_customer(rule: str, customer: str) -> dict[str, Any]:
    """The keys of a customer's flows: its profile, or its codepoint where it has a queue of its own."""
    keys: dict[str, Any] = {**ENDS, "access": ACCESS}
    if rule == WFQ:
        return {**keys, "dscp": CODEPOINTS[customer]}
    return {**keys, "profile": customer, **({"out-feedback": "0s"} if rule == NO_OUT else {})}


def network(
    title: str,
    rate_mbps: float,
    discipline: Mapping[str, Any],
    flows: list[dict[str, Any]],
    **more: Any,  # noqa: ANN401 - further tables of the scenario
) -> dict[str, Any]:
    """One bottleneck towards homes, in one direction; 120 s, of which 30 are not counted."""
    link = {**ENDS, "rate": f"{rate_mbps:g}Mbps", "delay": DELAY, "queue": dict(discipline)}
    times = {"duration": "120s", "warmup": "30s"}
    return {"title": title, **times, "links": {LINK: link}, "flows": flows, **more}


def web_and_video(web: int, video: int, prefix: str = "", **keys: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - keys of flows
    """The entries of so many users of each, whose names begin with a prefix."""
    return [
        {
            "name": f"{prefix}{model}",
            "count": count,
            "application": {"model": model, **more},
            "transport": TCP,
            **keys,
        }
        for model, count, more in (("web", web, {"scale": 10.0}), ("video", video, {}))
    ]


def network_of_customers(
    title: str,
    rule: str,
    flows: list[dict[str, Any]],
    *,
    rate_mbps: float,
    profiles_mbps: Mapping[str, float],
    scale: float,
    connections: int,
) -> dict[str, Any]:
    """The `network` of customers with profiles under one rule; see `queue`."""
    shared = {name: profile(rule, rate) for name, rate in profiles_mbps.items()}
    discipline = queue(rule, profiles_mbps, scale, connections)
    return network(title, rate_mbps, discipline, flows, **({} if rule == WFQ else {"profiles": shared}))


# ---------------------------------------------------------------- measures


def users(run: Run, group: str) -> Mapping[str, Any]:
    """A group of users as the engine reports it."""
    found: Mapping[str, Any]
    (found,) = (one for one in run.raw["applications"] if one["name"] == group)
    return found


def of_users(run: Run, group: str) -> Mapping[str, float]:
    """The measures of a group of users, without those that have no value."""
    return {
        name: float(value)
        for name, value in users(run, group)["measures"].items()
        if value is not None and math.isfinite(float(value))
    }


CODEC: CodecName = "g711-plc"
"""The codec of the calls of the application `call`, with concealment of what is lost."""
PAGES = {"page_p50": 0.5, "page_mean": None, "page_p95": 0.95}
"""The percentile of each metric of the times of pages; None for the mean."""


def page_samples(factors: Factors, run: Run, group: str) -> Iterator[Sample]:
    """Times of pages, ms, and how many were unfinished, of those that were asked for."""
    yield from times(factors, Durations.of_users(users(run, group), "page_s"), PAGES, "ms", 1e3)
    found = of_users(run, group)
    begun = found["pages"] + found["unfinished_pages"]
    if begun:
        yield Sample(factors, "unfinished", "%", 100 * found["unfinished_pages"] / begun, begun)


def video_samples(factors: Factors, run: Run, group: str) -> Iterator[Sample]:
    """Quality, Mbit/s, and seconds of stalls in an hour of video."""
    found = of_users(run, group)
    if "quality_bps" in found:
        yield Sample(factors, "quality", MBPS, found["quality_bps"] / 1e6)
    if "stall_seconds_per_hour" in found:
        yield Sample(factors, "stalled", "s/h", found["stall_seconds_per_hour"])


def call_samples(factors: Factors, run: Run, group: str) -> Iterator[Sample]:
    """Sample the calls towards the users: means of R, MOS, mouth-to-ear delay; packets lost or late."""
    (flows,) = (members for one, members in flow_table.members(run.raw) if one["name"] == group)
    calls = replace(flows, codec=CODEC).calls()
    for metric, unit, factor, values in (
        ("r", "", 1.0, [call.r for call in calls]),
        ("mos", "", 1.0, [call.mos for call in calls]),
        ("mouth_to_ear", "ms", 1e3, [call.mouth_to_ear_s for call in calls]),
    ):
        known = [value for value in values if value is not None]
        if known:
            yield Sample(factors, metric, unit, factor * math.fsum(known) / len(known))
    lost = math.fsum(flows.packets(["dropped", "policed", "lost_packets"]))
    if sent := math.fsum(flows.packets(["delivered_packets"])) + lost:
        share = (lost + math.fsum(flows.packets(["late_packets"]))) / sent
        yield Sample(factors, "lost_or_late", "%", 100.0 * share, sent)


def rate_mbps(run: Run, *groups: str) -> float:
    """The rate that the flows of these groups get together."""
    return run.carried_bps(*groups) / 1e6


def bottleneck_samples(factors: Factors, run: Run) -> Iterator[Sample]:
    """Waits, losses, marks and use of the bottleneck."""
    yield from link_samples(factors, run, LINK)
    yield Sample(factors, "utilization", "fraction", float(run.link(LINK)["utilization"]))


# ---------------------------------------------------------------- tables

OF_USERS = (
    ("Median time of a page, ms", "page_p50", 0),
    ("Mean time of a page, ms", "page_mean", 0),
    ("95th percentile of the time of a page, ms", "page_p95", 0),
    ("Pages unfinished at the end, %", "unfinished", 1),
    ("Quality of video, Mbit/s", "quality", 2),
    ("Stalls, seconds in an hour of video", "stalled", 1),
)
WAITS = (
    ("Median of the wait, ms", "wait_p50", 1),
    ("99th percentile of the wait, ms", "wait_p99", 1),
    ("Packets dropped, %", "loss", 2),
)
USE = ("Use of the link", "utilization", 3)
