"""Throughput guarantees: Yeom and Reddy's ten flows under the paper's mechanisms and those of today."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from perhop.measures.run import Run
from perhop.show.declared import Axis, Factors
from perhop.statistics.judging import above, at_least, at_most, below
from perhop.studies.evidence import Sample
from perhop.studies.judges import Judge, together
from perhop.studies.today import common
from perhop.studies.today.common import BBR3, CUBIC, NEWRENO, PRAGUE, SENDERS, WFQ, Cells, Class
from perhop.studies.yeom.common import INVERSE, NO_OUT, PROFILES, RIO, SETTING, THREE_DROP
from perhop.studies.yeom.ten_flows import CAPACITY, COUNT, class_name

SRTCM, TRTCM = "srtcm", "trtcm"
RULE_NAMES = {
    RIO: "RIO",
    INVERSE: "inverse-rate",
    NO_OUT: "No-OUT",
    THREE_DROP: "three-drop",
    SRTCM: "srTCM, three-drop",
    TRTCM: "trTCM, three-drop",
    **common.TODAY_NAMES,
}
RULES = Axis("rule", "Queue and meter", RULE_NAMES)
LEVELS = (60, 90)
LEVEL_AXIS = Axis("subscription_percent", "Subscription", {p: f"{p} % subscribed" for p in LEVELS})
LIMIT = "200p"
BURST = "20kB"
"""CBS, EBS and PBS: two bandwidth-delay products of the largest reservation at the round trip of 40 ms."""
PEAK = 2.0
"""trTCM's peak rate over its committed rate."""
PACKET = SETTING.packet
CLASSES = tuple(Class(class_name(rate), COUNT, rate) for rate in PROFILES)
RESERVED = tuple(rate for rate in PROFILES if rate)
LARGEST = max(RESERVED)
PROFILE_AXIS = Axis("profile_mbps", "Profile, Mbit/s", {**{r: f"{r:g}" for r in RESERVED}, 0.0: "BE"})


def queue(rule: str, *, ecn: bool) -> dict[str, Any]:
    """The bottleneck's queue."""
    if rule in common.TODAY_NAMES:
        return common.today(rule, LIMIT, common.contracts(CLASSES), PACKET, ecn=ecn)
    return common.marking(SETTING.queue(THREE_DROP if rule in (SRTCM, TRTCM) else rule), ecn=ecn)


def meter(rule: str, rate_mbps: float) -> dict[str, Any]:
    """The profile of a reserved flow."""
    rate = f"{rate_mbps:g}Mbps"
    if rule == SRTCM:
        return {"marker": SRTCM, "rate": rate, "burst": BURST, "excess-burst": BURST}
    if rule == TRTCM:
        peak = {"peak-rate": f"{PEAK * rate_mbps:g}Mbps", "peak-burst": BURST}
        return {"marker": TRTCM, "rate": rate, "burst": BURST, **peak}
    return SETTING.profile(rule, rate_mbps)


def entry(rule: str, control: str, one: Class) -> dict[str, Any]:
    """The flows of a class."""
    flow: dict[str, Any] = {"name": one.name, "count": one.count, **common.sender(control, PACKET)}
    flow |= {"from": "edge", "to": "core", "access": {"rate": "100Mbps", "delay": "1ms"}, "start": "0s..1s"}
    if rule == WFQ:
        return {**flow, **common.codepoint(CLASSES, one.name)}
    if one.profile_mbps:
        flow["profile"] = meter(rule, one.profile_mbps)
        if rule == NO_OUT:
            flow["out-feedback"] = "0s"
    elif rule in (THREE_DROP, SRTCM, TRTCM):
        flow["color"] = "red"  # best effort is OUT-OUT
    return flow


def build(factors: Factors) -> Mapping[str, Any]:
    """Two flows of each class with these senders, through this queue."""
    rule, control = str(factors["rule"]), str(factors["control"])
    capacity = CAPACITY[int(factors["subscription_percent"])]
    made = SETTING.scenario("Throughput guarantees", RIO, capacity, [])
    link = {**made["links"]["bottleneck"], "queue": queue(rule, ecn=control == PRAGUE)}
    return {
        **made,
        "duration": "70s",
        "warmup": "10s",
        "links": {"bottleneck": link},
        "flows": [entry(rule, control, one) for one in CLASSES],
    }


def samples(factors: Factors, run: Run) -> Iterator[Sample]:
    """Rates by class; waiting time, losses and marks at the bottleneck."""
    capacity = CAPACITY[int(factors["subscription_percent"])]
    yield from common.class_samples(factors, run, CLASSES, capacity)
    yield from common.link_samples(factors, run, "bottleneck")
    marked = run.flows("marked")
    if int(marked.sum()) and any(group.profile_bps for group in run.groups):
        reserved = [index for index, one in enumerate(CLASSES) if one.profile_mbps]
        mine = sum(marked[run.flows("group") == index].sum(axis=0) for index in reserved)
        of = float(mine.sum())
        yield Sample(factors, "yellow", "%", 100.0 * float(mine[1]) / of, of)


AT_60, AT_90 = BOTH = tuple(Cells(RULE_NAMES, {"subscription_percent": percent}) for percent in LEVELS)
OF_LARGEST = {"profile_mbps": LARGEST}
PAPERS = (RIO, INVERSE, NO_OUT, THREE_DROP, SRTCM, TRTCM)


def both(judge: Callable[[Cells], Judge]) -> Judge:
    """Judge a statement at both subscriptions."""
    return together(*map(judge, BOTH))


TODAY_YEOM = common.THIS.study(
    "yeom",
    title="Throughput guarantees",
    source=f"{common.SOURCE}: Yeom and Reddy, Table 1",
    summary="two flows each of 0, 0.1, 0.5, 1 and 2 Mbit/s on 12 and 8 Mbit/s, eleven rules, four senders",
    cells=[*AT_60.all(), *AT_90.all()],
    scenario=build,
    samples=samples,
    judges={
        "queue-per-contract-keeps-all": together(
            *(cells.keeps((WFQ,), SENDERS, rate) for cells in BOTH for rate in RESERVED)
        ),
        "fq-codel-misses-the-largest": both(lambda at: at.misses((common.FQ_CODEL,), SENDERS, LARGEST)),
        "inverse-rate-keeps-the-largest": both(lambda at: at.keeps((INVERSE,), SENDERS, LARGEST)),
        "inverse-rate-starves-best-effort": AT_90.compared(
            "throughput", common.rule_pairs(INVERSE, RIO), below, factor=0.5, profile_mbps=0.0
        ),
        "trtcm-nearer-than-srtcm": AT_60.compared("rmse", common.rule_pairs(TRTCM, SRTCM), below),
        "srtcm-is-two-colors": both(lambda at: at.bounded("yellow", (SRTCM,), SENDERS, at_most, 5.0)),
        "no-out-helps-cubic": AT_90.compared(
            "throughput", [((NO_OUT, CUBIC), (RIO, CUBIC))], above, **OF_LARGEST
        ),
        "bbr3-nearer-than-newreno-under-rio": AT_90.compared(
            "over_profile", [((RIO, BBR3), (RIO, NEWRENO))], above, **OF_LARGEST
        ),
        "three-drop-keeps-with-cubic": AT_60.keeps((THREE_DROP, SRTCM, TRTCM), (CUBIC,), LARGEST),
        "in-is-not-lost": both(lambda at: at.bounded("in_loss", PAPERS, SENDERS, at_most, 0.1)),
        "all-fill-the-link": AT_60.bounded("utilization", RULE_NAMES, SENDERS, at_least, 0.9),
    },
    tables=(
        *(
            replace(table, title=f"{table.title}, {percent} % subscribed")
            for percent in LEVELS
            for table in common.by_senders(
                RULES,
                ("Rate of a flow that reserves 2 Mbit/s over that", "over_profile", 2, OF_LARGEST),
                ("Share of the 8 reserved flows that keep their profile", "kept", 2),
                ("Error against the targets, Mbit/s", "rmse", 3),
                ("Jain's index of rate over target", "jain_index", 3),
                ("99th percentile of the wait, ms", "wait_p99", 1),
                ("Packets dropped, %", "loss", 2),
                ("IN packets dropped, %", "in_loss", 3),
                ("Packets of reserved flows that are yellow, %", "yellow", 1),
                ("Use of the link", "utilization", 3),
                subscription_percent=percent,
            )
        ),
        *common.each_sender(
            "Rate of a flow by profile with {}, Mbit/s, 90 % subscribed",
            RULES,
            PROFILE_AXIS,
            digits=3,
            subscription_percent=90,
        ),
    ),
    plots=(
        common.kept_matrix(
            "largest",
            "Rate of a flow that reserves 2 Mbit/s over its reservation",
            RULES,
            LEVEL_AXIS,
            OF_LARGEST,
        ),
        common.dots("error", "Error against the targets", "rmse", RULES, "Mbit/s", facet=LEVEL_AXIS),
    ),
    extra=True,
    default_runs=common.RUNS,
)
