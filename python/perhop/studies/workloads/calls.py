"""Calls beside web and video, or beside greedy flows: what does Asymmetric Best-Effort give them?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perhop.show.declared import Axis, Plot, Table
from perhop.statistics.judging import above, at_least, at_most, below
from perhop.studies.evidence import Sample
from perhop.studies.judges import bounded, compared
from perhop.studies.sampling import MBPS
from perhop.studies.today.common import link_samples
from perhop.studies.workloads.common import (
    ACCESS,
    DROP_TAIL,
    FQ_CODEL,
    LINK,
    PACKET,
    RED,
    RUNS,
    SOURCE,
    TCP,
    THIS,
    call_samples,
    network,
    page_samples,
    rate_mbps,
    video_samples,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from perhop.measures.run import Run
    from perhop.show.declared import Factors
    from perhop.studies.judges import Judge, Side

ABE, CODEL, PRIORITY = "abe", "codel", "priority"
RULE_NAMES = {
    DROP_TAIL: "drop-tail",
    RED: "RED",
    ABE: "ABE",
    CODEL: "CoDel",
    FQ_CODEL: "FQ-CoDel",
    PRIORITY: "calls first",
}
RULES = Axis("rule", "Queue", RULE_NAMES)
USERS, GREEDY = "users", "greedy"
BESIDE = Axis("beside", "Beside the calls", {USERS: "beside web and video", GREEDY: "beside greedy flows"})
CAPACITY_MBPS = 20.0
CALLS, WEB_USERS, VIDEO_USERS, GREEDY_FLOWS = 10, 40, 6, 10
LIMIT = "200p"
GREEN_LIMIT = 24


def queue(rule: str) -> dict[str, Any]:
    """The bottleneck's queue."""
    red = {"thresholds": "10/100/0.1", "limit": LIMIT, "wait": False, "mean-packet": f"{PACKET}B"}
    if rule == RED:
        return {"aqm": RED, **red}
    if rule == ABE:
        aqm = {"aqm": ABE, **red, "green-limit": f"{GREEN_LIMIT}p"}
        return {"scheduler": "edf", "blue": "120ms", "rule": aqm}
    if rule == FQ_CODEL:
        return {"scheduler": rule}
    if rule == CODEL:
        return {"aqm": rule, "limit": LIMIT}
    data = {"aqm": DROP_TAIL, "limit": LIMIT}
    if rule == DROP_TAIL:
        return data
    first = {
        "name": "calls",
        "match": {"dscp": 46},
        "cap": "2Mbps",
        "rule": {"aqm": DROP_TAIL, "limit": "50p"},
    }
    return {"scheduler": PRIORITY, "queues": [first, {"name": "data", "rule": data}]}


def build(factors: Factors) -> Mapping[str, Any]:
    """Ten calls, and users of web and video or greedy flows."""
    rule = str(factors["rule"])
    common = {"from": "isp", "to": "homes", "access": ACCESS}
    marks: Mapping[str, Mapping[str, Any]] = {ABE: {"service": "green"}, PRIORITY: {"dscp": 46}}
    mark = marks.get(rule, {})
    flows: list[dict[str, Any]] = [
        {"name": "calls", "count": CALLS, "application": {"model": "call"}, **common, **mark}
    ]
    if factors["beside"] == GREEDY:
        flows.append({"name": "greedy", "count": GREEDY_FLOWS, "transport": TCP, **common})
    else:
        web, video = {"model": "web", "scale": 10.0}, {"model": "video"}
        flows.append({"name": "web", "count": WEB_USERS, "application": web, "transport": TCP, **common})
        flows.append(
            {"name": "video", "count": VIDEO_USERS, "application": video, "transport": TCP, **common}
        )
    return network("Calls beside other traffic", CAPACITY_MBPS, queue(rule), flows)


def samples(factors: Factors, run: Run) -> Iterator[Sample]:
    """The calls, pages, video, and the bottleneck."""
    yield from call_samples(factors, run, "calls")
    if factors["beside"] == GREEDY:
        yield Sample(factors, "others_rate", MBPS, rate_mbps(run, "greedy"))
    else:
        yield Sample(factors, "others_rate", MBPS, rate_mbps(run, "web", "video"))
        yield from page_samples(factors, run, "web")
        yield from video_samples(factors, run, "video")
    yield from link_samples(factors, run, LINK)
    yield Sample(factors, "utilization", "fraction", float(run.link(LINK)["utilization"]))


def at(rule: str, beside: str) -> dict[str, Any]:
    """The factors of a number."""
    return {"rule": rule, "beside": beside}


def places(*rules: str, beside: tuple[str, ...] = (USERS, GREEDY)) -> dict[str, Any]:
    """The factors of a number under these rules, by how they read."""
    return {f"{RULE_NAMES[rule]} {BESIDE.names[one]}": at(rule, one) for rule in rules for one in beside}


def against(
    metric: str,
    pairs: list[tuple[str, str]],
    side: Side,
    *,
    factor: float = 1.0,
    beside: tuple[str, ...] = (USERS, GREEDY),
) -> Judge:
    """A claim about pairs of rules, beside each of these."""
    named = {
        f"{RULE_NAMES[first]} and {RULE_NAMES[second]} {BESIDE.names[one]}": (at(first, one), at(second, one))
        for first, second in pairs
        for one in beside
    }
    return compared(metric, named, side, factor=factor)


ONLY_USERS = (USERS,)
GOOD, FAIR = 85.0, 70.0
"""R of a good call, and R from which ITU-T G.109 calls the quality medium."""
OF_CALLS = (
    ("r", "R of a call", 1),
    ("mos", "Mean opinion score of a call", 2),
    ("mouth_to_ear", "From mouth to ear, ms", 1),
    ("lost_or_late", "Packets of calls lost or late, %", 2),
    ("others_rate", "Rate of the others together, Mbit/s", 2),
    ("wait_p50", "Median of the wait, ms", 1),
    ("wait_p99", "99th percentile of the wait, ms", 1),
    ("loss", "Packets dropped, %", 2),
    ("utilization", "Use of the link", 3),
)
OF_USERS = (
    ("page_p50", "Median time of a page, ms", 0),
    ("page_mean", "Mean time of a page, ms", 0),
    ("page_p95", "95th percentile of the time of a page, ms", 0),
    ("unfinished", "Pages unfinished at the end, %", 1),
    ("quality", "Quality of video, Mbit/s", 2),
    ("stalled", "Stalls, seconds in an hour of video", 1),
)

WORKLOADS_CALLS = THIS.study(
    "calls",
    title="Calls beside web and video, or beside greedy flows",
    source=f"{SOURCE}: Asymmetric Best-Effort",
    summary="ten calls beside 40 web and 6 video users or ten greedy flows on 20 Mbit/s, six queues",
    cells=[at(rule, beside) for beside in BESIDE.names for rule in RULE_NAMES],
    scenario=build,
    samples=samples,
    judges={
        "abe-shortens-the-delay": against("mouth_to_ear", [(ABE, DROP_TAIL), (ABE, RED)], below),
        "abe-lowers-r": against("r", [(ABE, RED)], below),
        "abe-loses-more-beside-users": compared(
            "lost_or_late",
            {"ABE beside web and video, and beside greedy flows": (at(ABE, USERS), at(ABE, GREEDY))},
            above,
        ),
        "separate-queues-are-good": bounded("r", places(FQ_CODEL, PRIORITY), at_least, GOOD),
        "drop-tail-is-medium": bounded("r", places(DROP_TAIL), at_least, FAIR),
        "drop-tail-is-not-good": bounded("r", places(DROP_TAIL, RED), at_most, GOOD),
        "codel-is-not-better": against("r", [(CODEL, DROP_TAIL)], below),
        "bursts-cost-more": compared(
            "lost_or_late",
            {
                f"{RULE_NAMES[rule]} beside web and video, and beside greedy flows": (
                    at(rule, USERS),
                    at(rule, GREEDY),
                )
                for rule in (DROP_TAIL, RED)
            },
            above,
        ),
        "abe-leaves-pages-alone": against("page_p50", [(ABE, RED)], below, factor=1.05, beside=ONLY_USERS),
        "fq-codel-has-the-shortest-pages": against(
            "page_p50",
            [(FQ_CODEL, rule) for rule in RULE_NAMES if rule != FQ_CODEL],
            below,
            beside=ONLY_USERS,
        ),
        "fq-codel-keeps-video": against(
            "quality", [(FQ_CODEL, DROP_TAIL)], above, factor=0.95, beside=ONLY_USERS
        ),
        "calls-first-cost-nothing": against(
            "page_p50", [(PRIORITY, DROP_TAIL)], below, factor=1.05, beside=ONLY_USERS
        ),
    },
    tables=(
        *(Table(title, {metric: ""}, RULES, (BESIDE,), digits=digits) for metric, title, digits in OF_CALLS),
        *(
            Table(title, {metric: ""}, RULES, (BESIDE,), {"beside": USERS}, digits)
            for metric, title, digits in OF_USERS
        ),
    ),
    plots=(
        Plot(
            id="calls",
            title="Quality of a call: R",
            kind="dots",
            metric="r",
            x=RULES,
            series=BESIDE,
            y_label="R",
        ),
        Plot(
            id="pages",
            title="Median time of a page beside the calls",
            kind="dots",
            metric="page_p50",
            x=RULES,
            series=BESIDE,
            y_label="ms",
        ),
    ),
    extra=True,
    default_runs=RUNS,
)
