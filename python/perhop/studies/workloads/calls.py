"""Calls beside web and video, or beside greedy flows: what does Asymmetric Best-Effort give them?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from perhop.measures.run import Run
from perhop.show.declared import Axis, Factors, Plot, tables
from perhop.statistics.judging import above, at_least, at_most, below
from perhop.studies.evidence import Sample
from perhop.studies.judges import Judge, Side, bounded, compared
from perhop.studies.sampling import MBPS
from perhop.studies.workloads import common
from perhop.studies.workloads.common import DROP_TAIL, FQ_CODEL, PACKET, RED, rate_mbps

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
    own = {"aqm": DROP_TAIL, "limit": "50p"}
    first = {"name": "calls", "match": {"dscp": 46}, "cap": "2Mbps", "rule": own}
    return {"scheduler": PRIORITY, "queues": [first, {"name": "data", "rule": data}]}


def build(factors: Factors) -> Mapping[str, Any]:
    """Ten calls, and users of web and video or greedy flows."""
    rule = str(factors["rule"])
    keys: dict[str, Any] = {**common.ENDS, "access": common.ACCESS}
    marks: Mapping[str, Mapping[str, Any]] = {ABE: {"service": "green"}, PRIORITY: {"dscp": 46}}
    calls = {"name": "calls", "count": CALLS, "application": {"model": "call"}, **keys, **marks.get(rule, {})}
    if factors["beside"] == GREEDY:
        others = [{"name": "greedy", "count": GREEDY_FLOWS, "transport": common.TCP, **keys}]
    else:
        others = common.web_and_video(WEB_USERS, VIDEO_USERS, **keys)
    return common.network("Calls beside other traffic", CAPACITY_MBPS, queue(rule), [calls, *others])


def samples(factors: Factors, run: Run) -> Iterator[Sample]:
    """The calls, pages, video, and the bottleneck."""
    yield from common.call_samples(factors, run, "calls")
    if factors["beside"] == GREEDY:
        yield Sample(factors, "others_rate", MBPS, rate_mbps(run, "greedy"))
    else:
        yield Sample(factors, "others_rate", MBPS, rate_mbps(run, "web", "video"))
        yield from common.page_samples(factors, run, "web")
        yield from common.video_samples(factors, run, "video")
    yield from common.bottleneck_samples(factors, run)


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


def users_and_greedy(*rules: str) -> dict[str, Any]:
    """The factors of a number under these rules beside users, and beside greedy flows."""
    beside = "beside web and video, and beside greedy flows"
    return {f"{RULE_NAMES[rule]} {beside}": (at(rule, USERS), at(rule, GREEDY)) for rule in rules}


ONLY_USERS = (USERS,)
GOOD, FAIR = 85.0, 70.0
"""R of a good call, and R from which ITU-T G.109 calls the quality medium."""

WORKLOADS_CALLS = common.THIS.study(
    "calls",
    title="Calls beside web and video, or beside greedy flows",
    source=f"{common.SOURCE}: Asymmetric Best-Effort",
    summary="ten calls beside 40 web and 6 video users or ten greedy flows on 20 Mbit/s, six queues",
    cells=[at(rule, beside) for beside in BESIDE.names for rule in RULE_NAMES],
    scenario=build,
    samples=samples,
    judges={
        "abe-shortens-the-delay": against("mouth_to_ear", [(ABE, DROP_TAIL), (ABE, RED)], below),
        "abe-lowers-r": against("r", [(ABE, RED)], below),
        "abe-loses-more-beside-users": compared("lost_or_late", users_and_greedy(ABE), above),
        "separate-queues-are-good": bounded("r", places(FQ_CODEL, PRIORITY), at_least, GOOD),
        "drop-tail-is-medium": bounded("r", places(DROP_TAIL), at_least, FAIR),
        "drop-tail-is-not-good": bounded("r", places(DROP_TAIL, RED), at_most, GOOD),
        "codel-is-not-better": against("r", [(CODEL, DROP_TAIL)], below),
        "bursts-cost-more": compared("lost_or_late", users_and_greedy(DROP_TAIL, RED), above),
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
        *tables(
            RULES,
            (BESIDE,),
            ("R of a call", "r", 1),
            ("Mean opinion score of a call", "mos", 2),
            ("From mouth to ear, ms", "mouth_to_ear", 1),
            ("Packets of calls lost or late, %", "lost_or_late", 2),
            ("Rate of the others together, Mbit/s", "others_rate", 2),
            *common.WAITS,
            common.USE,
        ),
        *tables(RULES, (BESIDE,), *common.OF_USERS, beside=USERS),
    ),
    plots=(
        Plot("calls", "Quality of a call: R", "dots", "r", RULES, BESIDE, "R"),
        Plot("pages", "Median time of a page beside the calls", "dots", "page_p50", RULES, BESIDE, "ms"),
    ),
    extra=True,
    default_runs=common.RUNS,
)
