"""Short transfers beside greedy flows: does what holds for the rate of greedy flows hold for them?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from perhop.measures.finite_flows import SIZES, FiniteFlows
from perhop.show.declared import Axis, Plot, Table
from perhop.statistics.judging import above, at_most, below
from perhop.studies.evidence import Sample
from perhop.studies.judges import bounded, compared, together
from perhop.studies.sampling import MBPS, times
from perhop.studies.today.common import link_samples
from perhop.studies.workloads.common import (
    BASIC,
    CUSTOMERS,
    DROP_TAIL,
    FQ_CODEL,
    GOLD,
    LINK,
    NO_OUT,
    READ_COLORS,
    READ_NOTHING,
    RED,
    RI_PLUS_O,
    RIO,
    RULE_NAMES,
    RUNS,
    SOURCE,
    TCP,
    THIS,
    WFQ,
    network,
    of_customer,
    profile,
    queue,
    rate_mbps,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from perhop.measures.durations import Durations
    from perhop.measures.run import Run
    from perhop.show.declared import Factors

SHORT_RULES = {rule: name for rule, name in RULE_NAMES.items() if rule != NO_OUT}
COLORED = tuple(rule for rule in READ_COLORS if rule != NO_OUT)
RULES = Axis("rule", "Rule", SHORT_RULES)
SHORT, MEDIUM = "short", "medium"
SIZE_AXIS = Axis("size", "Transfers", {SHORT: "up to 100 kB", MEDIUM: "100 kB to 10 MB"})
CAPACITY_MBPS = 20.0
PROFILES_MBPS = {GOLD: 12.0, BASIC: 4.0}
GREEDY_FLOWS = 4
SLOWDOWNS = {"slowdown": None, "slowdown_p50": 0.5, "slowdown_p95": 0.95}
"""Which percentile each metric of the slowdowns is; None for the mean."""
LOAD = 0.2
"""Of the link, by the transfers of each customer."""
INVERSE_FLOWS = 8
"""Open flows of a customer that inverse-rate drop reckons with: the greedy ones and as many transfers."""


def build(factors: Factors) -> Mapping[str, Any]:
    """Two customers, each with greedy flows and transfers that come and go."""
    rule = str(factors["rule"])
    flows: list[dict[str, Any]] = []
    for name in PROFILES_MBPS:
        keys = {"transport": TCP, **of_customer(rule, name)}
        flows.append({"name": f"{name} greedy", "count": GREEDY_FLOWS, **keys})
        sizes = {"cdf": "web-search", "scale": 0.1}
        flows.append({"name": f"{name} transfers", "arrivals": {"load": LOAD}, "sizes": sizes, **keys})
    shared = {name: profile(rule, rate) for name, rate in PROFILES_MBPS.items()}
    return network(
        "Short transfers beside greedy flows",
        CAPACITY_MBPS,
        queue(rule, PROFILES_MBPS, 0.4, INVERSE_FLOWS),
        flows,
        **({} if rule == WFQ else {"profiles": shared}),
    )


def samples(factors: Factors, run: Run) -> Iterator[Sample]:
    """Sample each customer (rate of greedy flows, slowdowns of transfers), and how both compare."""
    greedy = {}
    names = [group.name for group in run.groups]
    populations = [one for one in run.raw["populations"] if len(one["started_s"])]
    begun = dict(zip((n for n in names if n.endswith("transfers")), populations, strict=True))
    slowdowns: dict[tuple[str, str], Durations] = {}
    for name in PROFILES_MBPS:
        key = {**factors, "customer": name}
        greedy[name] = rate_mbps(run, f"{name} greedy")
        yield Sample(key, "greedy_rate", MBPS, greedy[name])
        flows = FiniteFlows.of(begun[f"{name} transfers"], run.raw["warmup_s"])
        for size in SIZE_AXIS.names:
            slowdowns[name, size] = flows.sized(*SIZES[size]).quantity("slowdown")
            yield from times({**key, "size": size}, slowdowns[name, size], SLOWDOWNS)
        unfinished = float(np.isnan(flows.completion_s).mean())
        yield Sample(key, "unfinished", "%", 100 * unfinished, len(flows.completion_s))
    yield Sample(factors, "greedy_ratio", "gold/basic", greedy[GOLD] / greedy[BASIC])
    for size in SIZE_AXIS.names:
        gold, basic = (slowdowns[name, size] for name in (GOLD, BASIC))
        # Of a mean of gold's that is too low the ratio is not known on either side.
        ratio = math.nan if gold.is_cut_off else basic.mean / gold.mean
        at_least = basic.is_cut_off
        yield Sample({**factors, "size": size}, "slowdown_ratio", "basic/gold", ratio, at_least=at_least)
    yield from link_samples(factors, run, LINK)
    yield Sample(factors, "utilization", "fraction", float(run.link(LINK)["utilization"]))


def at(rule: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - factors
    """The factors of a number."""
    return {"rule": rule, **more}


def places(rules: tuple[str, ...], **more: Any) -> dict[str, Any]:  # noqa: ANN401 - factors
    """The factors of a number under each of these rules."""
    return {RULE_NAMES[rule]: at(rule, **more) for rule in rules}


WORKLOADS_SHORT = THIS.study(
    "short",
    title="Short transfers beside greedy flows",
    source=f"{SOURCE}: transfers that come and go",
    summary="two customers (12 and 4 Mbit/s) with greedy flows and short transfers on 20 Mbit/s, eight rules",
    cells=[at(rule) for rule in SHORT_RULES],
    scenario=build,
    samples=samples,
    judges={
        "greedy-follow-profiles": bounded("greedy_ratio", places(COLORED), above, 1.5),
        "short-follow-less": together(
            *(
                compared(
                    "slowdown_ratio",
                    {RULE_NAMES[rule]: (at(rule, size=size), at(rule)) for rule in COLORED},
                    below,
                    second_metric="greedy_ratio",
                )
                for size in SIZE_AXIS.names
            )
        ),
        "short-follow-less-than-medium": compared(
            "slowdown_ratio",
            {RULE_NAMES[rule]: (at(rule, size=SHORT), at(rule, size=MEDIUM)) for rule in COLORED},
            below,
        ),
        "gold-is-served-better": bounded("slowdown_ratio", places(COLORED, size=SHORT), above, 1.05),
        "colorless-treat-both-alike": together(
            bounded("slowdown_ratio", places(READ_NOTHING, size=SHORT), at_most, 1.15),
            bounded("greedy_ratio", places(READ_NOTHING), at_most, 1.15),
        ),
        "fq-codel-serves-short-best": compared(
            "slowdown",
            {
                f"{customer} under FQ-CoDel beside gold under {RULE_NAMES[rule]}": (
                    at(FQ_CODEL, customer=customer, size=SHORT),
                    at(rule, customer=GOLD, size=SHORT),
                )
                for customer in PROFILES_MBPS
                for rule in (*COLORED, DROP_TAIL, RED)
            },
            below,
        ),
        "ri-plus-o-shortens-transfers": compared(
            "slowdown",
            {
                f"{customer}: RI+O beside RIO": (
                    at(RI_PLUS_O, customer=customer, size=SHORT),
                    at(RIO, customer=customer, size=SHORT),
                )
                for customer in PROFILES_MBPS
            },
            below,
        ),
        "basic-short-beat-drop-tail": compared(
            "slowdown",
            {
                f"basic under {RULE_NAMES[rule]} beside drop-tail": (
                    at(rule, customer=BASIC, size=SHORT),
                    at(DROP_TAIL, customer=BASIC, size=SHORT),
                )
                for rule in COLORED
            },
            below,
        ),
    },
    tables=(
        Table("Rate of four greedy flows, Mbit/s", {"greedy_rate": ""}, RULES, (CUSTOMERS,), digits=2),
        Table("Rate of gold's greedy flows over that of basic's", {"greedy_ratio": ""}, RULES, digits=2),
        Table(
            "Mean slowdown of basic's transfers over that of gold's",
            {"slowdown_ratio": ""},
            RULES,
            (SIZE_AXIS,),
            digits=2,
        ),
        *(
            Table(f"{title} of transfers {name}", {metric: ""}, RULES, (CUSTOMERS,), {"size": size}, 2)
            for metric, title in (
                ("slowdown", "Mean slowdown"),
                ("slowdown_p50", "Median slowdown"),
                ("slowdown_p95", "95th percentile of the slowdown"),
            )
            for size, name in SIZE_AXIS.names.items()
        ),
        Table("Transfers unfinished at the end, %", {"unfinished": ""}, RULES, (CUSTOMERS,), digits=2),
        Table("Median of the wait, ms", {"wait_p50": ""}, RULES, digits=1),
        Table("99th percentile of the wait, ms", {"wait_p99": ""}, RULES, digits=1),
        Table("Packets dropped, %", {"loss": ""}, RULES, digits=2),
        Table("Use of the link", {"utilization": ""}, RULES, digits=3),
    ),
    plots=(
        Plot(
            id="slowdowns",
            title="Mean slowdown of transfers",
            kind="dots",
            metric="slowdown",
            x=RULES,
            series=CUSTOMERS,
            y_label="slowdown",
            facet=SIZE_AXIS,
        ),
        Plot(
            id="rates",
            title="Rate of four greedy flows",
            kind="dots",
            metric="greedy_rate",
            x=RULES,
            series=CUSTOMERS,
            y_label=MBPS,
        ),
    ),
    extra=True,
    default_runs=RUNS,
)
