"""Contracts on a path of three hops: TWAM and dynamic WRED beside the queues of today."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from perhop.show.declared import Axis, Plot, Table
from perhop.statistics.judging import above, at_most, below
from perhop.studies.bouras.common import BASELINE, CAPACITY, PACKET, PROPOSED, SETTING, Times, groups, spread
from perhop.studies.evidence import Sample
from perhop.studies.judges import together
from perhop.studies.sampling import MBPS
from perhop.studies.today.common import (
    BBR3,
    CODEL,
    COLORLESS,
    CONTROL_NAMES,
    CONTROLS,
    CUBIC,
    DUALPI2,
    FQ_CODEL,
    KEPT,
    NEWRENO,
    PRAGUE,
    PROFILE_KEPT,
    SENDERS,
    SOURCE,
    THIS,
    TODAY_NAMES,
    WFQ,
    Cells,
    Class,
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

SCENARIO = 2
"""The paper's second: 50 Mbit/s, over-provisioned for contracts of 34 Mbit/s."""
TIMES = Times(steady=120, begin=40)
RUNS = 8
RATES = SETTING.rates
LARGEST = max(RATES)
CLASSES = tuple(Class(f"{rate:g}", len(numbers), rate) for rate, numbers in groups(RATES).items())
RULE_NAMES = {PROPOSED: "TWAM + DWRED", BASELINE: "TSW2CM + WRED", **TODAY_NAMES}
RULES = Axis("rule", "Queue and marker", RULE_NAMES)
CONTRACTS = Axis("profile_mbps", "Contract", {rate: f"contract of {rate:g} Mbit/s" for rate in groups(RATES)})


def build(factors: Factors) -> Mapping[str, Any]:
    """The ten flows of the paper with these senders, through this queue at each of the three hops."""
    rule, control = str(factors["rule"]), str(factors["control"])
    ecn = control == PRAGUE
    proposals = (PROPOSED, BASELINE)
    made = SETTING.scenario(SCENARIO, rule if rule in proposals else BASELINE, TIMES)
    limit = str(SETTING.rule(BASELINE, CAPACITY[SCENARIO])["limit"])
    links = {}
    for name, link in made["links"].items():
        if rule == WFQ:
            queue = queue_per_contract(contracts(CLASSES), PACKET, limit, ecn=ecn)
        elif rule in COLORLESS:
            queue = today(rule, limit, ecn=ecn)
        else:
            queue = marking(link["queue"], ecn=ecn)
        links[name] = {**link, "queue": queue}
    flows = []
    for entry, rate in zip(made["flows"], RATES, strict=True):
        flow = {**entry, **sender(control, PACKET)}
        if rule not in proposals:
            flow |= {"profile": {"marker": "tsw", "rate": f"{rate:g}Mbps", "window": "1s"}}
        if rule == WFQ:
            flow.pop("profile")
            flow |= codepoint(CLASSES, f"{rate:g}")
        flows.append(flow)
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
    met = float(np.sum(got >= KEPT * np.asarray(RATES)))
    yield Sample(factors, "contracts_met", "of 10", met, 1.0)
    yield Sample(factors, "spread", "fraction", spread(got, RATES))
    yield Sample(factors, "utilization", "fraction", float(np.sum(got)) / CAPACITY[SCENARIO])
    yield from link_samples(factors, run, "R1-R2")


CELLS = Cells(RULE_NAMES, {})

TODAY_BOURAS = THIS.study(
    "bouras",
    title="Contracts on a path of three hops",
    source=f"{SOURCE}: Bouras and Sevasti, Figure 3",
    summary="contracts of 1, 2 and 8 Mbit/s on 50 Mbit/s, round trip of 200 ms, seven rules, four senders",
    cells=[CELLS.key(rule, control) for rule in RULE_NAMES for control in SENDERS],
    scenario=build,
    samples=samples,
    judges={
        "proposal-nearer-to-proportion": CELLS.compared(
            "spread",
            [((PROPOSED, control), (BASELINE, control)) for control in SENDERS],
            below,
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
        "prague-waits-little": CELLS.bounded("wait_p99", (DUALPI2,), (PRAGUE,), at_most, 2.0),
        "fq-codel-fair-to-all": CELLS.compared(
            "spread",
            [((FQ_CODEL, control), (PROPOSED, control)) for control in SENDERS],
            above,
        ),
    },
    tables=(
        Table(
            "Rate of a flow with a contract of 8 Mbit/s over it",
            {"over_profile": ""},
            RULES,
            (CONTROLS,),
            where={"profile_mbps": LARGEST},
            digits=2,
            bound=PROFILE_KEPT,
        ),
        Table("Flows of ten that keep their contract", {"contracts_met": ""}, RULES, (CONTROLS,), digits=1),
        Table(
            "Standard deviation of rate over contract, share of the mean; 0 is in proportion",
            {"spread": ""},
            RULES,
            (CONTROLS,),
            digits=2,
        ),
        Table("Median wait at the first hop, ms", {"wait_p50": ""}, RULES, (CONTROLS,), digits=1),
        Table(
            "99th percentile of the wait at the first hop, ms", {"wait_p99": ""}, RULES, (CONTROLS,), digits=1
        ),
        Table("Packets dropped at the first hop, %", {"loss": ""}, RULES, (CONTROLS,), digits=3),
        Table("Use of the path", {"utilization": ""}, RULES, (CONTROLS,)),
        *(
            Table(
                f"Rate of a flow by contract with {name}, Mbit/s",
                {"throughput": ""},
                RULES,
                (CONTRACTS,),
                where={"control": control},
                digits=2,
            )
            for control, name in CONTROL_NAMES.items()
        ),
    ),
    plots=(
        Plot(
            id="contracts",
            title="Rate of a flow over its contract",
            kind="matrix",
            metric="over_profile",
            x=CONTROLS,
            series=RULES,
            y_label="",
            facet=CONTRACTS,
            bound=PROFILE_KEPT,
        ),
        Plot(
            id="waits",
            title="99th percentile of the wait at the first hop",
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
