"""Throughput guarantees: Yeom and Reddy's ten flows under the paper's mechanisms and those of today."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perhop.show.declared import Axis, Plot, Table
from perhop.statistics.judging import above, at_least, at_most, below
from perhop.studies.evidence import Sample
from perhop.studies.judges import together
from perhop.studies.today.common import (
    BBR3,
    COLORLESS,
    CONTROL_NAMES,
    CONTROLS,
    CUBIC,
    FQ_CODEL,
    NEWRENO,
    PRAGUE,
    PROFILE_KEPT,
    RUNS,
    SENDERS,
    SOURCE,
    THIS,
    TODAY_NAMES,
    WFQ,
    Cells,
    Class,
    class_samples,
    codepoint,
    contracts,
    link_samples,
    marking,
    queue_per_contract,
    sender,
    today,
)
from perhop.studies.yeom.common import INVERSE, NO_OUT, PROFILES, RIO, SETTING, THREE_DROP
from perhop.studies.yeom.ten_flows import CAPACITY, COUNT, class_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from perhop.measures.run import Run
    from perhop.show.declared import Factors

SRTCM, TRTCM = "srtcm", "trtcm"
RULE_NAMES = {
    RIO: "RIO",
    INVERSE: "inverse-rate",
    NO_OUT: "No-OUT",
    THREE_DROP: "three-drop",
    SRTCM: "srTCM, three-drop",
    TRTCM: "trTCM, three-drop",
    **{rule: name for rule, name in TODAY_NAMES.items() if rule in (*COLORLESS, WFQ)},
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
    if rule == WFQ:
        return queue_per_contract(contracts(CLASSES), PACKET, LIMIT, ecn=ecn)
    if rule in COLORLESS:
        return today(rule, LIMIT, ecn=ecn)
    return marking(SETTING.queue(THREE_DROP if rule in (SRTCM, TRTCM) else rule), ecn=ecn)


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
    flow: dict[str, Any] = {
        "name": one.name,
        "count": one.count,
        "from": "edge",
        "to": "core",
        "access": {"rate": "100Mbps", "delay": "1ms"},
        **sender(control, PACKET),
        "start": "0s..1s",
    }
    if rule == WFQ:
        return {**flow, **codepoint(CLASSES, one.name)}
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
    yield from class_samples(factors, run, CLASSES, capacity)
    yield from link_samples(factors, run, "bottleneck")
    marked = run.flows("marked")
    if int(marked.sum()) and any(group.profile_bps for group in run.groups):
        reserved = [index for index, one in enumerate(CLASSES) if one.profile_mbps]
        mine = sum(marked[run.flows("group") == index].sum(axis=0) for index in reserved)
        of = float(mine.sum())
        yield Sample(factors, "yellow", "%", 100.0 * float(mine[1]) / of, of)


AT_60, AT_90 = (Cells(RULE_NAMES, {"subscription_percent": percent}) for percent in LEVELS)


def _table(percent: int, title: str, metric: str, digits: int = 2, *, bound: bool = False) -> Table:
    where: dict[str, Any] = {"subscription_percent": percent}
    if metric == "over_profile":
        where["profile_mbps"] = LARGEST
    return Table(
        f"{title}, {percent} % subscribed",
        {metric: ""},
        RULES,
        (CONTROLS,),
        where=where,
        digits=digits,
        bound=PROFILE_KEPT if bound else None,
    )


TODAY_YEOM = THIS.study(
    "yeom",
    title="Throughput guarantees",
    source=f"{SOURCE}: Yeom and Reddy, Table 1",
    summary="two flows each of 0, 0.1, 0.5, 1 and 2 Mbit/s on 12 and 8 Mbit/s, eleven rules, four senders",
    cells=[
        cells.key(rule, control) for cells in (AT_60, AT_90) for rule in RULE_NAMES for control in SENDERS
    ],
    scenario=build,
    samples=samples,
    judges={
        "queue-per-contract-keeps-all": together(
            *(cells.keeps((WFQ,), SENDERS, rate) for cells in (AT_60, AT_90) for rate in RESERVED)
        ),
        "fq-codel-misses-the-largest": together(
            *(cells.misses((FQ_CODEL,), SENDERS, LARGEST) for cells in (AT_60, AT_90))
        ),
        "inverse-rate-keeps-the-largest": together(
            *(cells.keeps((INVERSE,), SENDERS, LARGEST) for cells in (AT_60, AT_90))
        ),
        "inverse-rate-starves-best-effort": AT_90.compared(
            "throughput",
            [((INVERSE, control), (RIO, control)) for control in SENDERS],
            below,
            factor=0.5,
            profile_mbps=0.0,
        ),
        "trtcm-nearer-than-srtcm": AT_60.compared(
            "rmse",
            [((TRTCM, control), (SRTCM, control)) for control in SENDERS],
            below,
        ),
        "srtcm-is-two-colors": together(
            *(cells.bounded("yellow", (SRTCM,), SENDERS, at_most, 5.0) for cells in (AT_60, AT_90))
        ),
        "no-out-helps-cubic": AT_90.compared(
            "throughput",
            [((NO_OUT, CUBIC), (RIO, CUBIC))],
            above,
            profile_mbps=LARGEST,
        ),
        "bbr3-nearer-than-newreno-under-rio": AT_90.compared(
            "over_profile", [((RIO, BBR3), (RIO, NEWRENO))], above, profile_mbps=LARGEST
        ),
        "three-drop-keeps-with-cubic": AT_60.keeps((THREE_DROP, SRTCM, TRTCM), (CUBIC,), LARGEST),
        "in-is-not-lost": together(
            *(
                cells.bounded(
                    "in_loss", (RIO, INVERSE, NO_OUT, THREE_DROP, SRTCM, TRTCM), SENDERS, at_most, 0.1
                )
                for cells in (AT_60, AT_90)
            )
        ),
        "all-fill-the-link": AT_60.bounded("utilization", RULE_NAMES, SENDERS, at_least, 0.9),
    },
    tables=(
        *(
            table
            for percent in LEVELS
            for table in (
                _table(
                    percent, "Rate of a flow that reserves 2 Mbit/s over that", "over_profile", bound=True
                ),
                _table(percent, "Share of the 8 reserved flows that keep their profile", "kept"),
                _table(percent, "Error against the targets, Mbit/s", "rmse", 3),
                _table(percent, "Jain's index of rate over target", "jain_index", 3),
                _table(percent, "99th percentile of the wait, ms", "wait_p99", 1),
                _table(percent, "Packets dropped, %", "loss"),
                _table(percent, "IN packets dropped, %", "in_loss", 3),
                _table(percent, "Packets of reserved flows that are yellow, %", "yellow", 1),
                _table(percent, "Use of the link", "utilization", 3),
            )
        ),
        *(
            Table(
                f"Rate of a flow by profile with {name}, Mbit/s, 90 % subscribed",
                {"throughput": ""},
                RULES,
                (PROFILE_AXIS,),
                where={"control": control, "subscription_percent": 90},
            )
            for control, name in CONTROL_NAMES.items()
        ),
    ),
    plots=(
        Plot(
            id="largest",
            title="Rate of a flow that reserves 2 Mbit/s over its reservation",
            kind="matrix",
            metric="over_profile",
            x=CONTROLS,
            series=RULES,
            y_label="",
            facet=LEVEL_AXIS,
            where={"profile_mbps": LARGEST},
            bound=PROFILE_KEPT,
        ),
        Plot(
            id="error",
            title="Error against the targets",
            kind="dots",
            metric="rmse",
            x=RULES,
            series=CONTROLS,
            y_label="Mbit/s",
            facet=LEVEL_AXIS,
        ),
    ),
    extra=True,
    default_runs=RUNS,
)
