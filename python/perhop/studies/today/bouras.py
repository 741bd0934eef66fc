"""Contracts on a path of three hops: TWAM and dynamic WRED beside the queues of today."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from perhop.measures.run import Run
from perhop.show.declared import Axis, Factors
from perhop.statistics.judging import above, at_most, below
from perhop.studies.bouras.common import BASELINE, CAPACITY, PACKET, PROPOSED, SETTING, Times, groups, spread
from perhop.studies.evidence import Sample
from perhop.studies.judges import together
from perhop.studies.sampling import MBPS
from perhop.studies.today import common
from perhop.studies.today.common import BBR3, CODEL, COLORLESS, CUBIC, NEWRENO, PRAGUE, SENDERS, WFQ

SCENARIO = 2
"""The paper's second: 50 Mbit/s, over-provisioned for contracts of 34 Mbit/s."""
TIMES = Times(steady=120, begin=40)
RUNS = 8
RATES = SETTING.rates
LARGEST = max(RATES)
CLASSES = tuple(common.Class(f"{rate:g}", len(numbers), rate) for rate, numbers in groups(RATES).items())
RULE_NAMES = {PROPOSED: "TWAM + DWRED", BASELINE: "TSW2CM + WRED", **common.TODAY_NAMES}
RULES = Axis("rule", "Queue and marker", RULE_NAMES)
CONTRACTS = Axis("profile_mbps", "Contract", {rate: f"contract of {rate:g} Mbit/s" for rate in groups(RATES)})


def build(factors: Factors) -> Mapping[str, Any]:
    """The ten flows of the paper with these senders, through this queue at each of the three hops."""
    rule, control = str(factors["rule"]), str(factors["control"])
    ecn, proposals = control == PRAGUE, (PROPOSED, BASELINE)
    made = SETTING.scenario(SCENARIO, rule if rule in proposals else BASELINE, TIMES)
    limit = str(SETTING.rule(BASELINE, CAPACITY[SCENARIO])["limit"])
    links = {}
    for name, link in made["links"].items():
        queue = (
            common.marking(link["queue"], ecn=ecn)
            if rule in proposals
            else common.today(rule, limit, common.contracts(CLASSES), PACKET, ecn=ecn)
        )
        links[name] = {**link, "queue": queue}
    flows = [{**entry, **common.sender(control, PACKET)} for entry in made["flows"]]
    if rule == WFQ:
        flows = [
            common.unmetered(flow, CLASSES, f"{rate:g}") for flow, rate in zip(flows, RATES, strict=True)
        ]
    paths = made["paths"] if rule == PROPOSED else {"lsp": {"via": made["paths"]["lsp"]["via"]}}
    title = "Contracts on a path of three hops"
    changed = {key: value for key, value in made.items() if key != "probes"}
    return {**changed, "title": title, "paths": paths, "links": links, "flows": flows}


def samples(factors: Factors, run: Run) -> Iterator[Sample]:
    """Rates by contract and their spread; the first hop's waiting time, losses and marks."""
    got = np.asarray(run.flows("throughput_bps")) / 1e6
    for rate, numbers in groups(RATES).items():
        mine = float(np.mean([got[number - 1] for number in numbers]))
        key = {**factors, "profile_mbps": rate}
        yield Sample(key, "throughput", MBPS, mine)
        yield Sample(key, "over_profile", "of the profile", mine / rate)
    met = float(np.sum(got >= common.KEPT * np.asarray(RATES)))
    yield Sample(factors, "contracts_met", "of 10", met, 1.0)
    yield Sample(factors, "spread", "fraction", spread(got, RATES))
    yield Sample(factors, "utilization", "fraction", float(np.sum(got)) / CAPACITY[SCENARIO])
    yield from common.link_samples(factors, run, "R1-R2")


CELLS = common.Cells(RULE_NAMES, {})

TODAY_BOURAS = common.THIS.study(
    "bouras",
    title="Contracts on a path of three hops",
    source=f"{common.SOURCE}: Bouras and Sevasti, Figure 3",
    summary="contracts of 1, 2 and 8 Mbit/s on 50 Mbit/s, round trip of 200 ms, seven rules, four senders",
    cells=CELLS.all(),
    scenario=build,
    samples=samples,
    judges={
        "proposal-nearer-to-proportion": CELLS.compared(
            "spread", common.rule_pairs(PROPOSED, BASELINE), below
        ),
        "proposal-keeps-the-largest": CELLS.keeps((PROPOSED,), SENDERS, LARGEST),
        "static-suffices-with-cubic": CELLS.keeps((BASELINE,), (CUBIC,), LARGEST),
        "bbr3-ignores-the-markers": CELLS.compared(
            "spread", [((PROPOSED, BBR3), (PROPOSED, NEWRENO))], above
        ),
        "colorless-miss-the-largest": CELLS.misses(COLORLESS, SENDERS, LARGEST),
        "queue-per-contract-keeps-all": together(
            *(CELLS.keeps((WFQ,), SENDERS, one.profile_mbps) for one in CLASSES)
        ),
        "codel-waits-less": CELLS.compared(
            "wait_p99", [((CODEL, CUBIC), (PROPOSED, CUBIC))], below, factor=0.2
        ),
        "codel-leaves-capacity-to-newreno": CELLS.compared(
            "utilization", [((CODEL, NEWRENO), (PROPOSED, NEWRENO))], below
        ),
        "prague-waits-little": CELLS.bounded("wait_p99", (common.DUALPI2,), (PRAGUE,), at_most, 2.0),
        "fq-codel-fair-to-all": CELLS.compared("spread", common.rule_pairs(common.FQ_CODEL, PROPOSED), above),
    },
    tables=(
        *common.by_senders(
            RULES,
            (
                "Rate of a flow with a contract of 8 Mbit/s over it",
                "over_profile",
                2,
                {"profile_mbps": LARGEST},
            ),
            ("Flows of ten that keep their contract", "contracts_met", 1),
            ("Standard deviation of rate over contract, share of the mean; 0 is in proportion", "spread", 2),
            ("Median wait at the first hop, ms", "wait_p50", 1),
            ("99th percentile of the wait at the first hop, ms", "wait_p99", 1),
            ("Packets dropped at the first hop, %", "loss", 3),
            ("Use of the path", "utilization", 3),
        ),
        *common.each_sender("Rate of a flow by contract with {}, Mbit/s", RULES, CONTRACTS),
    ),
    plots=(
        common.kept_matrix("contracts", "Rate of a flow over its contract", RULES, CONTRACTS),
        common.dots("waits", "99th percentile of the wait at the first hop", "wait_p99", RULES, "ms"),
    ),
    extra=True,
    default_runs=RUNS,
)
