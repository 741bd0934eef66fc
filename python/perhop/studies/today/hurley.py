"""Asymmetric Best-Effort's own bottleneck with the senders and the queues of today."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from perhop.measures.run import Run
from perhop.show.declared import Axis, Factors
from perhop.statistics.judging import above, at_most, below
from perhop.studies.evidence import Sample
from perhop.studies.hurley import common as paper
from perhop.studies.hurley.common import ABE, BLUE, DSD, FLAT, GREEN, LINK, SETTING
from perhop.studies.sampling import MBPS, mean_mbps, waits
from perhop.studies.today import common
from perhop.studies.today.common import BBR3, CODEL, CUBIC, DUALPI2, FQ_CODEL, NEWRENO, PRAGUE, SENDERS

FLOWS = 10
PACKET = 1000
RULE_NAMES = {FLAT: "flat RED", ABE: "ABE", DSD: "DSD", **common.COLORLESS_NAMES}
RULES = Axis("rule", "Router", RULE_NAMES)
LIMIT = "60p"
HERE = replace(SETTING, rate_mbps=5.0)
"""The paper's setting on the link that the predictions were written for."""
BASE_MS = HERE.rtt_ms / 2 + 2 * 8e-2 + HERE.packet_ms
"""One-way delay of a packet that waits nowhere: propagation, and transmission on three links."""


def queue(rule: str, *, ecn: bool) -> dict[str, Any]:
    """The paper's routers, and today's with the same room; equal deadlines make EDF a FIFO."""
    if rule in (FLAT, ABE, DSD):
        made = HERE.queue(rule)
        return {**made, "rule": common.marking(made["rule"], ecn=ecn)}
    return common.today(rule, LIMIT, ecn=ecn)


def build(factors: Factors) -> Mapping[str, Any]:
    """Ten blue flows with these senders and ten green ones with TFRC."""
    rule, control = str(factors["rule"]), str(factors["control"])
    blue = {**HERE.entry(BLUE, FLOWS, {}), **common.sender(control, PACKET)}
    green = HERE.entry(GREEN, FLOWS, paper.GREEN_TRANSPORTS[paper.TFRC])
    made = HERE.network("Asymmetric Best-Effort's bottleneck", FLAT, [blue, green])
    link = {**made["links"][LINK], "queue": queue(rule, ecn=control == PRAGUE)}
    return {**{k: v for k, v in made.items() if k != "probes"}, "links": {LINK: link}}


def samples(factors: Factors, run: Run) -> Iterator[Sample]:
    """Rates and losses by service, their ratio, green's wait, and the link's."""
    for service in (BLUE, GREEN):
        key = {**factors, "service": service}
        yield Sample(key, "throughput", MBPS, mean_mbps(run, service))
        sent = float(run.of_group(service, "sent_packets").sum())
        dropped = float(run.of_group(service, "dropped").sum())
        yield Sample(key, "service_loss", "%", 100.0 * dropped / max(sent, 1.0), sent)
    ratio = mean_mbps(run, BLUE) / max(mean_mbps(run, GREEN), 1e-9)
    yield Sample(factors, "ratio", "blue/green", ratio)
    mean = paper.mean_ms(run, GREEN, "one_way_delay_s")
    if mean is not None:
        yield Sample(factors, "green_mean", "ms", max(0.0, mean - BASE_MS))
    yield from waits(factors, common.transit(run, GREEN), {"green_p99": 0.99}, BASE_MS)
    yield Sample(factors, "utilization", "fraction", float(run.link(LINK)["utilization"]))
    yield from common.link_samples(factors, run, LINK)


CELLS = common.Cells(RULE_NAMES, {})
OF_BLUE, OF_GREEN = {"service": BLUE}, {"service": GREEN}
TRANSIT_ERROR_MS = 0.031 * (BASE_MS + HERE.green_bound_ms)
"""The error of a 99th percentile of the one-way delay at the bound: at most 3.1 % of it."""

TODAY_HURLEY = common.THIS.study(
    "hurley",
    title="Asymmetric Best-Effort's bottleneck",
    source=f"{common.SOURCE}: Hurley and Le Boudec, Figure 2",
    summary="ten blue flows of four kinds and ten green TFRC flows on 5 Mbit/s, seven routers",
    cells=CELLS.all(),
    scenario=build,
    samples=samples,
    judges={
        "abe-bounds-green": CELLS.bounded(
            "green_p99", (ABE,), SENDERS, at_most, round(HERE.green_bound_ms + TRANSIT_ERROR_MS, 1)
        ),
        "blue-gains": CELLS.compared("throughput", common.rule_pairs(ABE, FLAT), above, service=BLUE),
        "green-pays-more-beside-today": CELLS.compared(
            "throughput",
            [((ABE, control), (ABE, NEWRENO)) for control in (CUBIC, BBR3)],
            below,
            service=GREEN,
        ),
        "dsd-spares-green": CELLS.compared("throughput", common.rule_pairs(DSD, ABE), above, service=GREEN),
        "codel-halves-the-wait": CELLS.compared(
            "green_p99", common.rule_pairs(CODEL, FLAT, controls=(NEWRENO, CUBIC)), below, factor=0.5
        ),
        "fq-codel-gives-both-delay": CELLS.compared("green_p99", common.rule_pairs(FQ_CODEL, FLAT), below),
        "fq-codel-gives-both-rate": CELLS.compared(
            "throughput", common.rule_pairs(FQ_CODEL, FLAT), above, service=GREEN
        ),
        "dualpi2-couples": CELLS.bounded("ratio", (DUALPI2,), (PRAGUE,), at_most, 2.0),
        "bbr3-starves-green-under-flat": CELLS.compared(
            "throughput", [((FLAT, BBR3), (FLAT, NEWRENO))], below, factor=0.5, service=GREEN
        ),
    },
    tables=list(
        common.by_senders(
            RULES,
            ("Rate of a blue flow, Mbit/s", "throughput", 3, OF_BLUE),
            ("Rate of a green flow, Mbit/s", "throughput", 3, OF_GREEN),
            ("99th percentile of green's wait, ms", "green_p99", 1),
            ("Mean of green's wait, ms", "green_mean", 1),
            ("Wait of all packets, 99th percentile, ms", "wait_p99", 1),
            ("Green packets dropped, %", "service_loss", 2, OF_GREEN),
            ("Blue packets dropped, %", "service_loss", 2, OF_BLUE),
            ("Blue over green rate", "ratio", 2),
            ("Use of the link", "utilization", 3),
        )
    ),
    plots=(
        common.dots(
            "rates", "Rate of a flow by service", "throughput", RULES, "Mbit/s", facet=paper.SERVICES
        ),
        common.dots("green-wait", "99th percentile of a green packet's wait", "green_p99", RULES, "ms"),
    ),
    extra=True,
    default_runs=common.RUNS,
)
