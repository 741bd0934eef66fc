"""Profiles at one bottleneck: Kim, Park and Bahk's Table 1 under RIO, RI+O and the queues of today."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from perhop.measures.run import Run
from perhop.show.declared import Axis, Factors
from perhop.statistics.judging import above, at_least, at_most, below
from perhop.studies.evidence import Sample
from perhop.studies.judges import together
from perhop.studies.kim.common import CAPACITY_MBPS, PACKET
from perhop.studies.kim.table1 import COUNTS, class_name, network
from perhop.studies.today import common
from perhop.studies.today.common import BBR3, CODEL, COLORLESS, CUBIC, DUALPI2, NEWRENO, PRAGUE, SENDERS, WFQ

RIO, RI_PLUS_O, RED = "rio", "rio-plus-out", "red"
RULE_NAMES = {RIO: "RIO", RI_PLUS_O: "RI+O", RED: "RED", **common.TODAY_NAMES}
RULES = Axis("rule", "Queue", RULE_NAMES)
LIMIT = "868p"
TOTAL, OUT = "347/694/0.05", "10/30/0.01"
"""The set of the paper's text, and the OUT set that its Table 1 has a gain for."""
CLASSES = tuple(common.Class(class_name(rate), count, rate) for rate, count in COUNTS.items())
RESERVED = tuple(rate for rate in COUNTS if rate)
PROFILES = Axis("profile_mbps", "Profile, Mbit/s", {**{r: f"{r:g}" for r in RESERVED}, 0.0: "best effort"})
PANELS = Axis("profile_mbps", "Profile", {r: f"profile of {r:g} Mbit/s" for r in RESERVED})


def queue(rule: str, *, ecn: bool) -> dict[str, Any]:
    """The bottleneck's queue: RIO, RI+O and RED with the paper's thresholds, the others as their RFCs say."""
    if rule in common.TODAY_NAMES:
        return common.today(rule, LIMIT, common.contracts(CLASSES), PACKET, ecn=ecn)
    sizes = {"limit": LIMIT, "mean-packet": f"{PACKET}B"}
    if rule == RED:
        return common.marking({"aqm": RED, "thresholds": TOTAL, **sizes}, ecn=ecn)
    out = {"out": OUT} if rule == RI_PLUS_O else {}
    return common.marking({"aqm": rule, "in": "390/694/0.02", "total": TOTAL, **out, **sizes}, ecn=ecn)


def build(factors: Factors) -> Mapping[str, Any]:
    """Table 1's forty flows with other senders, through this queue."""
    rule, control = str(factors["rule"]), str(factors["control"])
    made = network("rio", TOTAL)
    flows = [{**entry, **common.sender(control, PACKET)} for entry in made["flows"]]
    if rule == WFQ:
        flows = [common.unmetered(flow, CLASSES, str(flow["name"])) for flow in flows]
    link = {**made["links"]["bottleneck"], "queue": queue(rule, ecn=control == PRAGUE)}
    title = "Profiles at one bottleneck"
    return {**made, "title": title, "warmup": "20s", "links": {"bottleneck": link}, "flows": flows}


def samples(factors: Factors, run: Run) -> Iterator[Sample]:
    """Rates by class; waiting time, losses and marks at the bottleneck."""
    yield from common.class_samples(factors, run, CLASSES, CAPACITY_MBPS)
    yield from common.link_samples(factors, run, "bottleneck")


CELLS = common.Cells(RULE_NAMES, {})
LARGEST = 2.0
OF_LARGEST = {"profile_mbps": LARGEST}

TODAY_KIM = common.THIS.study(
    "kim",
    title="Profiles at one bottleneck",
    source=f"{common.SOURCE}: Kim, Park and Bahk, Table 1",
    summary="five profile rates and best effort on 20 Mbit/s, eight queues, four kinds of senders",
    cells=CELLS.all(),
    scenario=build,
    samples=samples,
    judges={
        "queue-per-contract-keeps-all": together(*(CELLS.keeps((WFQ,), SENDERS, rate) for rate in RESERVED)),
        "colorless-miss-the-largest": CELLS.misses(COLORLESS, SENDERS, LARGEST),
        "colorless-keep-the-smallest": CELLS.keeps(COLORLESS, SENDERS, min(RESERVED)),
        "rio-beats-colorless": CELLS.compared(
            "throughput", common.rule_pairs(RIO, *COLORLESS), above, **OF_LARGEST
        ),
        "rio-gains-from-senders": CELLS.compared(
            "over_profile", [((RIO, c), (RIO, NEWRENO)) for c in (CUBIC, BBR3, PRAGUE)], above, **OF_LARGEST
        ),
        "ri-plus-o-gains-with-cubic": CELLS.compared(
            "throughput", [((RI_PLUS_O, CUBIC), (RIO, CUBIC))], above, **OF_LARGEST
        ),
        "rio-waits-longer-than-codel": CELLS.compared(
            "wait_p50", common.rule_pairs(RIO, CODEL, controls=(NEWRENO, CUBIC)), above, factor=5.0
        ),
        "bbr3-shortens-rio": CELLS.compared("wait_p50", [((RIO, BBR3), (RIO, CUBIC))], below, factor=0.5),
        "prague-waits-little": CELLS.bounded("wait_p99", (DUALPI2,), (PRAGUE,), at_most, 2.0),
        "all-fill-the-link": CELLS.bounded("utilization", RULE_NAMES, SENDERS, at_least, 0.9),
        "in-is-not-lost": CELLS.bounded("in_loss", (RIO, RI_PLUS_O), SENDERS, at_most, 0.1),
    },
    tables=(
        *common.by_senders(
            RULES,
            ("Rate of a flow with a profile of 2 Mbit/s over its profile", "over_profile", 2, OF_LARGEST),
            ("Share of the 20 reserved flows that keep their profile", "kept", 2),
            ("Error against profile plus equal part of the rest, Mbit/s", "rmse", 3),
            ("Jain's index of rate over target", "jain_index", 3),
            ("Median wait, ms", "wait_p50", 1),
            ("99th percentile of the wait, ms", "wait_p99", 1),
            ("Packets dropped, %", "loss", 2),
            ("Packets marked, %", "marks", 2, {"control": PRAGUE}),
            ("Use of the link", "utilization", 3),
        ),
        *common.each_sender("Rate of a flow by profile with {}, Mbit/s", RULES, PROFILES, digits=3),
    ),
    plots=(
        common.kept_matrix(
            "profiles",
            "Rate of a reserved flow over its profile",
            RULES,
            PANELS,
            {"profile_mbps": (2.0, 1.0, 0.5)},
        ),
        common.dots("waits", "99th percentile of the wait in the queue", "wait_p99", RULES, "ms"),
    ),
    extra=True,
    default_runs=common.RUNS,
)
