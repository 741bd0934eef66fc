"""Asymmetric Best-Effort's own bottleneck with the senders and the queues of today."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from perhop.show.declared import Axis, Plot, Table
from perhop.statistics.judging import above, at_most, below
from perhop.studies.evidence import Sample
from perhop.studies.hurley.common import (
    ABE,
    BLUE,
    DSD,
    FLAT,
    GREEN,
    GREEN_TRANSPORTS,
    LINK,
    SETTING,
    TFRC,
    mean_ms,
    throughput,
)
from perhop.studies.sampling import MBPS, waits
from perhop.studies.today.common import (
    BBR3,
    CODEL,
    CONTROLS,
    CUBIC,
    DUALPI2,
    FQ_CODEL,
    NEWRENO,
    PIE,
    PRAGUE,
    RUNS,
    SENDERS,
    SOURCE,
    THIS,
    TODAY_NAMES,
    Cells,
    link_samples,
    marking,
    sender,
    today,
    transit,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from perhop.measures.run import Run
    from perhop.show.declared import Factors

FLOWS = 10
PACKET = 1000
RULE_NAMES = {
    FLAT: "flat RED",
    ABE: "ABE",
    DSD: "DSD",
    **{rule: TODAY_NAMES[rule] for rule in (CODEL, PIE, DUALPI2, FQ_CODEL)},
}
RULES = Axis("rule", "Router", RULE_NAMES)
SERVICES = Axis("service", "Service", {BLUE: "blue", GREEN: "green"})
LIMIT = "60p"
HERE = replace(SETTING, rate_mbps=5.0)
"""The paper's setting on the link that the predictions were written for."""
BASE_MS = HERE.rtt_ms / 2 + 2 * 8e-2 + HERE.packet_ms
"""One-way delay of a packet that waits nowhere: propagation, and transmission on three links."""


def queue(rule: str, *, ecn: bool) -> dict[str, Any]:
    """The paper's routers, and today's with the same room; equal deadlines make EDF a FIFO."""
    if rule in (FLAT, ABE, DSD):
        made = HERE.queue(rule)
        return {**made, "rule": marking(made["rule"], ecn=ecn)}
    return today(rule, LIMIT, ecn=ecn)


def build(factors: Factors) -> Mapping[str, Any]:
    """Ten blue flows with these senders and ten green ones with TFRC."""
    rule, control = str(factors["rule"]), str(factors["control"])
    blue = {**HERE.entry(BLUE, FLOWS, {}), **sender(control, PACKET)}
    green = HERE.entry(GREEN, FLOWS, GREEN_TRANSPORTS[TFRC])
    made = HERE.network("Asymmetric Best-Effort's bottleneck", FLAT, [blue, green])
    link = {**made["links"][LINK], "queue": queue(rule, ecn=control == PRAGUE)}
    return {**{k: v for k, v in made.items() if k != "probes"}, "links": {LINK: link}}


def samples(factors: Factors, run: Run) -> Iterator[Sample]:
    """Rates and losses by service, their ratio, green's wait, and the link's."""
    for service in (BLUE, GREEN):
        key = {**factors, "service": service}
        yield Sample(key, "throughput", MBPS, throughput(run, service))
        sent = float(run.of_group(service, "sent_packets").sum())
        dropped = float(run.of_group(service, "dropped").sum())
        yield Sample(key, "service_loss", "%", 100.0 * dropped / max(sent, 1.0), sent)
    ratio = throughput(run, BLUE) / max(throughput(run, GREEN), 1e-9)
    yield Sample(factors, "ratio", "blue/green", ratio)
    mean = mean_ms(run, GREEN, "one_way_delay_s")
    if mean is not None:
        yield Sample(factors, "green_mean", "ms", max(0.0, mean - BASE_MS))
    yield from waits(factors, transit(run, GREEN), {"green_p99": 0.99}, BASE_MS)
    yield Sample(factors, "utilization", "fraction", float(run.link(LINK)["utilization"]))
    yield from link_samples(factors, run, LINK)


CELLS = Cells(RULE_NAMES, {})
TRANSIT_ERROR_MS = 0.031 * (BASE_MS + HERE.green_bound_ms)
"""How far a 99th percentile of the one-way delay can be off at the bound: 3.1 % of it."""

TODAY_HURLEY = THIS.study(
    "hurley",
    title="Asymmetric Best-Effort's bottleneck",
    source=f"{SOURCE}: Hurley and Le Boudec, Figure 2",
    summary="ten blue flows of four kinds and ten green TFRC flows on 5 Mbit/s, seven routers",
    cells=[CELLS.key(rule, control) for rule in RULE_NAMES for control in SENDERS],
    scenario=build,
    samples=samples,
    judges={
        "abe-bounds-green": CELLS.bounded(
            "green_p99", (ABE,), SENDERS, at_most, round(HERE.green_bound_ms + TRANSIT_ERROR_MS, 1)
        ),
        "blue-gains": CELLS.compared(
            "throughput",
            [((ABE, control), (FLAT, control)) for control in SENDERS],
            above,
            service=BLUE,
        ),
        "green-pays-more-beside-today": CELLS.compared(
            "throughput",
            [((ABE, control), (ABE, NEWRENO)) for control in (CUBIC, BBR3)],
            below,
            service=GREEN,
        ),
        "dsd-spares-green": CELLS.compared(
            "throughput",
            [((DSD, control), (ABE, control)) for control in SENDERS],
            above,
            service=GREEN,
        ),
        "codel-halves-the-wait": CELLS.compared(
            "green_p99",
            [((CODEL, control), (FLAT, control)) for control in (NEWRENO, CUBIC)],
            below,
            factor=0.5,
        ),
        "fq-codel-gives-both-delay": CELLS.compared(
            "green_p99",
            [((FQ_CODEL, control), (FLAT, control)) for control in SENDERS],
            below,
        ),
        "fq-codel-gives-both-rate": CELLS.compared(
            "throughput",
            [((FQ_CODEL, control), (FLAT, control)) for control in SENDERS],
            above,
            service=GREEN,
        ),
        "dualpi2-couples": CELLS.bounded("ratio", (DUALPI2,), (PRAGUE,), at_most, 2.0),
        "bbr3-starves-green-under-flat": CELLS.compared(
            "throughput",
            [((FLAT, BBR3), (FLAT, NEWRENO))],
            below,
            factor=0.5,
            service=GREEN,
        ),
    },
    tables=(
        Table(
            "Rate of a blue flow, Mbit/s",
            {"throughput": ""},
            RULES,
            (CONTROLS,),
            where={"service": BLUE},
        ),
        Table(
            "Rate of a green flow, Mbit/s",
            {"throughput": ""},
            RULES,
            (CONTROLS,),
            where={"service": GREEN},
        ),
        Table("99th percentile of green's wait, ms", {"green_p99": ""}, RULES, (CONTROLS,), digits=1),
        Table("Mean of green's wait, ms", {"green_mean": ""}, RULES, (CONTROLS,), digits=1),
        Table("Wait of all packets, 99th percentile, ms", {"wait_p99": ""}, RULES, (CONTROLS,), digits=1),
        Table(
            "Green packets dropped, %",
            {"service_loss": ""},
            RULES,
            (CONTROLS,),
            where={"service": GREEN},
            digits=2,
        ),
        Table(
            "Blue packets dropped, %",
            {"service_loss": ""},
            RULES,
            (CONTROLS,),
            where={"service": BLUE},
            digits=2,
        ),
        Table("Blue over green rate", {"ratio": ""}, RULES, (CONTROLS,), digits=2),
        Table("Use of the link", {"utilization": ""}, RULES, (CONTROLS,)),
    ),
    plots=(
        Plot(
            id="rates",
            title="Rate of a flow by service",
            kind="dots",
            metric="throughput",
            x=RULES,
            series=CONTROLS,
            y_label="Mbit/s",
            facet=SERVICES,
        ),
        Plot(
            id="green-wait",
            title="99th percentile of a green packet's wait",
            kind="dots",
            metric="green_p99",
            x=RULES,
            series=CONTROLS,
            y_label="ms",
        ),
    ),
    extra=True,
    default_runs=RUNS,
)
