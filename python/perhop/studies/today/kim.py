"""Profiles at one bottleneck: Kim, Park and Bahk's Table 1 under RIO, RI+O and the queues of today."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perhop.show.declared import Axis, Plot, Table
from perhop.statistics.judging import above, at_least, at_most, below
from perhop.studies.evidence import Sample
from perhop.studies.judges import together
from perhop.studies.kim.common import CAPACITY_MBPS, PACKET
from perhop.studies.kim.table1 import COUNTS, class_name, network
from perhop.studies.today.common import (
    BBR3,
    CODEL,
    COLORLESS,
    CONTROL_NAMES,
    CONTROLS,
    CUBIC,
    DUALPI2,
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

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from perhop.measures.run import Run
    from perhop.show.declared import Factors

RIO, RI_PLUS_O, RED = "rio", "rio-plus-out", "red"
RULE_NAMES = {RIO: "RIO", RI_PLUS_O: "RI+O", RED: "RED", **TODAY_NAMES}
RULES = Axis("rule", "Queue", RULE_NAMES)
LIMIT = "868p"
TOTAL, OUT = "347/694/0.05", "10/30/0.01"
"""The set of the paper's text, and the OUT set that its Table 1 has a gain for."""
CLASSES = tuple(Class(class_name(rate), count, rate) for rate, count in COUNTS.items())
RESERVED = tuple(rate for rate in COUNTS if rate)
PROFILES = Axis("profile_mbps", "Profile, Mbit/s", {**{r: f"{r:g}" for r in RESERVED}, 0.0: "best effort"})
PANELS = Axis("profile_mbps", "Profile", {r: f"profile of {r:g} Mbit/s" for r in RESERVED})


def queue(rule: str, *, ecn: bool) -> dict[str, Any]:
    """The bottleneck's queue: RIO, RI+O and RED with the paper's thresholds, the others as their RFCs say."""
    if rule == WFQ:
        return queue_per_contract(contracts(CLASSES), PACKET, LIMIT, ecn=ecn)
    if rule not in (RIO, RI_PLUS_O, RED):
        return today(rule, LIMIT, ecn=ecn)
    common = {"limit": LIMIT, "mean-packet": f"{PACKET}B"}
    if rule == RED:
        return marking({"aqm": RED, "thresholds": TOTAL, **common}, ecn=ecn)
    out = {"out": OUT} if rule == RI_PLUS_O else {}
    return marking({"aqm": rule, "in": "390/694/0.02", "total": TOTAL, **out, **common}, ecn=ecn)


def build(factors: Factors) -> Mapping[str, Any]:
    """Table 1's forty flows with other senders, through this queue."""
    rule, control = str(factors["rule"]), str(factors["control"])
    made = network("rio", TOTAL)
    flows = []
    for entry in made["flows"]:
        flow = {**entry, **sender(control, PACKET)}
        if rule == WFQ:
            flow.pop("profile", None)
            flow |= codepoint(CLASSES, str(entry["name"]))
        flows.append(flow)
    link = {**made["links"]["bottleneck"], "queue": queue(rule, ecn=control == PRAGUE)}
    title = "Profiles at one bottleneck"
    return {**made, "title": title, "warmup": "20s", "links": {"bottleneck": link}, "flows": flows}


def samples(factors: Factors, run: Run) -> Iterator[Sample]:
    """Rates by class; waiting time, losses and marks at the bottleneck."""
    yield from class_samples(factors, run, CLASSES, CAPACITY_MBPS)
    yield from link_samples(factors, run, "bottleneck")


CELLS = Cells(RULE_NAMES, {})
LARGEST = 2.0

TODAY_KIM = THIS.study(
    "kim",
    title="Profiles at one bottleneck",
    source=f"{SOURCE}: Kim, Park and Bahk, Table 1",
    summary="five profile rates and best effort on 20 Mbit/s, eight queues, four kinds of senders",
    cells=[CELLS.key(rule, control) for rule in RULE_NAMES for control in SENDERS],
    scenario=build,
    samples=samples,
    judges={
        "queue-per-contract-keeps-all": together(*(CELLS.keeps((WFQ,), SENDERS, rate) for rate in RESERVED)),
        "colorless-miss-the-largest": CELLS.misses(COLORLESS, SENDERS, LARGEST),
        "colorless-keep-the-smallest": CELLS.keeps(COLORLESS, SENDERS, min(RESERVED)),
        "rio-beats-colorless": CELLS.compared(
            "throughput",
            [((RIO, control), (rule, control)) for control in SENDERS for rule in COLORLESS],
            above,
            profile_mbps=LARGEST,
        ),
        "rio-gains-from-senders": CELLS.compared(
            "over_profile",
            [((RIO, control), (RIO, NEWRENO)) for control in (CUBIC, BBR3, PRAGUE)],
            above,
            profile_mbps=LARGEST,
        ),
        "ri-plus-o-gains-with-cubic": CELLS.compared(
            "throughput",
            [((RI_PLUS_O, CUBIC), (RIO, CUBIC))],
            above,
            profile_mbps=LARGEST,
        ),
        "rio-waits-longer-than-codel": CELLS.compared(
            "wait_p50",
            [((RIO, control), (CODEL, control)) for control in (NEWRENO, CUBIC)],
            above,
            factor=5.0,
        ),
        "bbr3-shortens-rio": CELLS.compared("wait_p50", [((RIO, BBR3), (RIO, CUBIC))], below, factor=0.5),
        "prague-waits-little": CELLS.bounded("wait_p99", (DUALPI2,), (PRAGUE,), at_most, 2.0),
        "all-fill-the-link": CELLS.bounded("utilization", RULE_NAMES, SENDERS, at_least, 0.9),
        "in-is-not-lost": CELLS.bounded("in_loss", (RIO, RI_PLUS_O), SENDERS, at_most, 0.1),
    },
    tables=(
        Table(
            "Rate of a flow with a profile of 2 Mbit/s over its profile",
            {"over_profile": ""},
            RULES,
            (CONTROLS,),
            where={"profile_mbps": LARGEST},
            digits=2,
            bound=PROFILE_KEPT,
        ),
        Table(
            "Share of the 20 reserved flows that keep their profile",
            {"kept": ""},
            RULES,
            (CONTROLS,),
            digits=2,
        ),
        Table(
            "Error against profile plus equal part of the rest, Mbit/s",
            {"rmse": ""},
            RULES,
            (CONTROLS,),
            digits=3,
        ),
        Table("Jain's index of rate over target", {"jain_index": ""}, RULES, (CONTROLS,)),
        Table("Median wait, ms", {"wait_p50": ""}, RULES, (CONTROLS,), digits=1),
        Table("99th percentile of the wait, ms", {"wait_p99": ""}, RULES, (CONTROLS,), digits=1),
        Table("Packets dropped, %", {"loss": ""}, RULES, (CONTROLS,), digits=2),
        Table("Packets marked, %", {"marks": ""}, RULES, (CONTROLS,), where={"control": PRAGUE}, digits=2),
        Table("Use of the link", {"utilization": ""}, RULES, (CONTROLS,)),
        *(
            Table(
                f"Rate of a flow by profile with {name}, Mbit/s",
                {"throughput": ""},
                RULES,
                (PROFILES,),
                where={"control": control},
            )
            for control, name in CONTROL_NAMES.items()
        ),
    ),
    plots=(
        Plot(
            id="profiles",
            title="Rate of a reserved flow over its profile",
            kind="matrix",
            metric="over_profile",
            x=CONTROLS,
            series=RULES,
            y_label="",
            facet=PANELS,
            where={"profile_mbps": (2.0, 1.0, 0.5)},
            bound=PROFILE_KEPT,
        ),
        Plot(
            id="waits",
            title="99th percentile of the wait in the queue",
            kind="dots",
            metric="wait_p99",
            x=RULES,
            series=CONTROLS,
            y_label="ms",
        ),
    ),
    extra=True,
    default_runs=RUNS,
)
