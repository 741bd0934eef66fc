"""The price of low delay, and the gain of other flows: ABE beside DualPI2, FQ-CoDel and NQB."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from perhop.measures.run import Run
from perhop.show.declared import Axis, Factor, Factors, Plot, Row, tables
from perhop.statistics.judging import above, at_least, at_most, below
from perhop.studies import judges
from perhop.studies.evidence import Evidence, Sample
from perhop.studies.hurley.common import BLUE, GREEN, GREEN_TRANSPORTS, TFRC
from perhop.studies.judges import Judge, Side
from perhop.studies.sampling import MBPS, mean_mbps, waits
from perhop.studies.today import common
from perhop.studies.today.common import BBR3, CODEL, CONTROL_NAMES, CUBIC, DUALPI2, FQ_CODEL, TODAY_NAMES

FLAT, ABE, DSD, NQB = "flat", "abe", "dsd", "nqb"
RULE_NAMES = {
    FLAT: "flat RED",
    ABE: "ABE",
    DSD: "DSD",
    **{rule: TODAY_NAMES[rule] for rule in (CODEL, FQ_CODEL, DUALPI2)},
    NQB: "NQB on DRR",
}
RULES = Axis("rule", "Router", RULE_NAMES)
ADAPTIVE, SPARSE = "adaptive", "sparse"
KINDS = Axis(
    "low", "Low-delay flows", {ADAPTIVE: "adaptive low-delay flows", SPARSE: "sparse low-delay flows"}
)
BULK = (CUBIC, BBR3)
BULK_AXIS = Axis("bulk", "Bulk flows", {c: CONTROL_NAMES[c] for c in BULK})

LINK = "bottleneck"
CAPACITY_MBPS = 20.0
FLOWS = 4
PACKET = 1000
SPARSE_MBPS = 0.25
SPARSE_PACKET = 250
LEFT_MBPS = CAPACITY_MBPS / FLOWS - SPARSE_MBPS
"""The rate that sparse flows leave to each bulk flow."""
LIMIT = "200p"
NQB_LIMIT = "10p"
GREEN_LIMIT = 24
BOUND_MS = 10.0
"""DSD's bound, and the time of ABE's 24 packets and the one in transmission."""
NQB_DSCP = 45
FORWARD_MS, BACK_MS, ACCESS_MS = 1.0, 37.0, 0.5
ACCESS_MBPS = 100.0


def base_ms(low: str) -> float:
    """One-way delay of a low-delay packet that waits nowhere: propagation, three transmissions."""
    bits = 8e-3 * (SPARSE_PACKET if low == SPARSE else PACKET)
    return FORWARD_MS + 2 * ACCESS_MS + bits * (2 / ACCESS_MBPS + 1 / CAPACITY_MBPS)


def queue(rule: str) -> dict[str, Any]:
    """The bottleneck's queue."""
    red = {"thresholds": "10/100/0.1", "limit": LIMIT, "wait": False, "mean-packet": f"{PACKET}B"}
    if rule == ABE:
        aqm = {"aqm": "abe", **red, "green-limit": f"{GREEN_LIMIT}p"}
        return {"scheduler": "edf", "blue": "80ms", "rule": aqm}
    if rule == DSD:
        control = {"control": "1s", "base-rtt": f"{FORWARD_MS + BACK_MS + 4 * ACCESS_MS:g}ms"}
        return {"scheduler": "dsd", "bound": f"{BOUND_MS:g}ms", **control, "rule": {"aqm": "red", **red}}
    if rule == NQB:
        shallow = {"aqm": "drop-tail", "limit": NQB_LIMIT}
        nqb = {"name": "nqb", "match": {"dscp": NQB_DSCP}, "rule": shallow}
        default = {"name": "default", "rule": common.today(CODEL, LIMIT, ecn=False)}
        return {"scheduler": "drr", "queues": [nqb, default]}
    if rule in (FQ_CODEL, DUALPI2):
        return common.today(rule, LIMIT, ecn=False)
    # Equal deadlines make EDF a FIFO with separate counters of the two services.
    aqm = {"aqm": "red", **red} if rule == FLAT else common.today(rule, LIMIT, ecn=False)
    return {"scheduler": "edf", "blue": "0s", "green": "0s", "rule": aqm}


def low_delay(rule: str, low: str) -> dict[str, Any]:
    """The senders of low-delay flows: adaptive ones by TFRC or Prague, sparse ones at a constant rate."""
    mark: dict[str, Any] = {"dscp": NQB_DSCP} if rule == NQB else {}
    if rule in (FLAT, ABE, DSD, CODEL):
        mark = {"service": GREEN}
    if low == SPARSE:
        transport = {"udp": "cbr", "rate": f"{SPARSE_MBPS:g}Mbps", "packet": f"{SPARSE_PACKET}B"}
        return {"transport": transport, **mark, **({"ecn": "l4s"} if rule == DUALPI2 else {})}
    if rule == DUALPI2:
        return common.sender(common.PRAGUE, PACKET)
    return {"transport": GREEN_TRANSPORTS[TFRC], **mark}


def build(factors: Factors) -> Mapping[str, Any]:
    """Four bulk flows and four low-delay flows."""
    rule = str(factors["rule"])
    access = {"rate": f"{ACCESS_MBPS:g}Mbps", "delay": f"{ACCESS_MS:g}ms"}
    ends = {"count": FLOWS, "from": "edge", "to": "core", "access": access, "start": "0s..1s"}
    bulk = {"name": "bulk", **ends, **common.sender(str(factors["bulk"]), PACKET)}
    if rule in (FLAT, ABE, DSD, CODEL):
        bulk["service"] = BLUE
    low = {"name": "low", **ends, **low_delay(rule, str(factors["low"]))}
    link = {
        "from": "edge",
        "to": "core",
        "rate": f"{CAPACITY_MBPS:g}Mbps",
        "delay": f"{FORWARD_MS:g}ms",
        "reverse": {"delay": f"{BACK_MS:g}ms"},
        "queue": queue(rule),
    }
    times = {"duration": "100s", "warmup": "20s"}
    return {"title": "Low delay beside bulk", **times, "links": {LINK: link}, "flows": [bulk, low]}


def samples(factors: Factors, run: Run) -> Iterator[Sample]:
    """For each side: rate, loss and marks; how long low-delay packets wait, and all packets."""
    for side in ("bulk", "low"):
        key = {**factors, "side": side}
        yield Sample(key, "throughput", MBPS, mean_mbps(run, side))
        sent = max(float(run.of_group(side, "sent_packets").sum()), 1.0)
        yield Sample(key, "loss", "%", 100.0 * float(run.of_group(side, "dropped").sum()) / sent, sent)
    if factors["rule"] == DUALPI2 and factors["low"] == ADAPTIVE:  # TCP, alone in the L4S queue
        yield from waits(factors, run.link_class(LINK, "l4s")["delay_s"], {"low_p99": 0.99})
    else:
        yield from waits(factors, common.transit(run, "low"), {"low_p99": 0.99}, base_ms(str(factors["low"])))
    yield from waits(factors, run.link(LINK)["delay_s"], {"wait_p99": 0.99})
    yield Sample(factors, "utilization", "fraction", float(run.link(LINK)["utilization"]))


def cell(rule: str, low: str, bulk: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - factors
    """All factors of a number."""
    return {"rule": rule, "low": low, "bulk": bulk, **more}


def relative(evidence: Evidence) -> Iterator[Row]:
    """Each side's rate over what it gets under flat RED, run by run on the same seeds."""
    for rule, low, bulk, side in itertools.product(RULE_NAMES, KINDS.names, BULK, ("low", "bulk")):
        here, flat = (("throughput", cell(one, low, bulk, side=side)) for one in (rule, FLAT))
        found = judges.combined(evidence, lambda mine, theirs: mine / theirs, here, flat)
        yield Row(here[1], "relative", "of flat RED", None, found.mean, found.ci95, found.runs)


def under(metric: str, rules: Iterable[str], low: str, check: Side, bound: float, **more: Factor) -> Judge:
    """Judge whether a number is on one side of a bound under these rules beside each kind of bulk flows."""
    places = {
        f"{RULE_NAMES[rule]} beside {CONTROL_NAMES[bulk]}": cell(rule, low, bulk, **more)
        for rule in rules
        for bulk in BULK
    }
    return judges.bounded(metric, places, check, bound)


def against(metric: str, first: str, second: str, low: str, check: Side, **more: Factor) -> Judge:
    """Judge whether a number is larger (smaller) under the first rule, beside each kind of bulk flows."""
    pairs = {
        f"beside {CONTROL_NAMES[bulk]}": (cell(first, low, bulk, **more), cell(second, low, bulk, **more))
        for bulk in BULK
    }
    reads = f"{{name}}: {RULE_NAMES[first]} {{first}}, {RULE_NAMES[second]} {{second}}"
    return judges.compared(metric, pairs, check, reads=reads, between="; ")


def _plot(
    name: str, title: str, metric: str = "relative", y_label: str = "of flat RED", **where: str
) -> Plot:
    return Plot(name, title, "dots", metric, RULES, BULK_AXIS, y_label, KINDS, where)


OF_LOW, OF_BULK = {"side": "low"}, {"side": "bulk"}
TODAY = (FQ_CODEL, DUALPI2, NQB)

TODAY_ABE = common.THIS.study(
    "abe",
    title="The cost of low delay, and who pays it",
    source=f"{common.SOURCE}: Asymmetric Best-Effort",
    summary="four bulk flows and four low-delay flows on 20 Mbit/s, adaptive or sparse, seven routers",
    cells=[cell(rule, low, bulk) for low in KINDS.names for rule in RULE_NAMES for bulk in BULK],
    scenario=build,
    samples=samples,
    summaries=relative,
    judges={
        "abe-bounds-the-wait": under("low_p99", (ABE, DSD), ADAPTIVE, at_most, 1.05 * BOUND_MS),
        "abe-adaptive-pays-rate": against("throughput", ABE, FLAT, ADAPTIVE, below, side="low"),
        "abe-bulk-gains": against("throughput", ABE, FLAT, ADAPTIVE, above, side="bulk"),
        "l4s-waits-less": under("low_p99", (DUALPI2,), ADAPTIVE, at_most, 2.0),
        "l4s-gets-more-than-green": against("throughput", DUALPI2, ABE, ADAPTIVE, above, side="low"),
        "l4s-bulk-gets-less-than-blue": against("throughput", DUALPI2, ABE, ADAPTIVE, below, side="bulk"),
        "sparse-lose-nothing-today": under("loss", TODAY, SPARSE, at_most, 0.1, side="low"),
        "sparse-wait-little-today": under("low_p99", TODAY, SPARSE, at_most, 2.0),
        "sparse-lose-under-abe": under("loss", (ABE,), SPARSE, above, 0.5, side="low"),
        "sparse-cost-bulk-nothing": under(
            "throughput", TODAY, SPARSE, at_least, 0.95 * LEFT_MBPS, side="bulk"
        ),
        "nqb-caps-greedy": against("throughput", NQB, FQ_CODEL, ADAPTIVE, below, side="low"),
        "nqb-loses-where-greedy": under("loss", (NQB,), ADAPTIVE, above, 1.0, side="low"),
    },
    tables=[
        replace(table, title=f"{table.title} ({kind})")
        for low, kind in KINDS.names.items()
        for table in tables(
            RULES,
            (BULK_AXIS,),
            ("99th percentile of a low-delay packet's wait, ms", "low_p99", 2),
            ("Low-delay packets lost, %", "loss", 3, OF_LOW),
            ("Rate of a low-delay flow, Mbit/s", "throughput", 3, OF_LOW),
            ("Rate of a low-delay flow over that under flat RED", "relative", 2, OF_LOW),
            ("Rate of a bulk flow, Mbit/s", "throughput", 3, OF_BULK),
            ("Rate of a bulk flow over that under flat RED", "relative", 2, OF_BULK),
            ("Bulk packets lost, %", "loss", 3, OF_BULK),
            ("99th percentile of all packets' wait, ms", "wait_p99", 1),
            ("Use of the link", "utilization", 3),
            low=low,
        )
    ],
    plots=(
        _plot("wait", "What low delay gives: 99th percentile of a low-delay packet's wait", "low_p99", "ms"),
        _plot("low-rate", "What it pays: rate of a low-delay flow over that under flat RED", side="low"),
        _plot("bulk-rate", "What the other gains: rate of a bulk flow over that under flat RED", side="bulk"),
    ),
    extra=True,
    default_runs=common.RUNS,
)
