"""Short transfers beside greedy flows: does what holds for the rate of greedy flows hold for them?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from perhop.measures.durations import Durations
from perhop.measures.finite_flows import SIZES, FiniteFlows
from perhop.measures.run import Run
from perhop.show.declared import Axis, Factors, Plot, tables
from perhop.statistics.judging import above, at_most, below
from perhop.studies.evidence import Sample
from perhop.studies.judges import Judge, bounded, compared, together
from perhop.studies.sampling import MBPS, times
from perhop.studies.workloads import common
from perhop.studies.workloads.common import BASIC, CUSTOMERS, DROP_TAIL, GOLD, READ_NOTHING, RULE_NAMES

SHORT_RULES = {rule: name for rule, name in RULE_NAMES.items() if rule != common.NO_OUT}
COLORED = tuple(rule for rule in common.READ_COLORS if rule != common.NO_OUT)
RULES = Axis("rule", "Rule", SHORT_RULES)
SHORT, MEDIUM = "short", "medium"
SIZE_AXIS = Axis("size", "Transfers", {SHORT: "up to 100 kB", MEDIUM: "100 kB to 10 MB"})
CAPACITY_MBPS = 20.0
PROFILES_MBPS = {GOLD: 12.0, BASIC: 4.0}
GREEDY_FLOWS = 4
SLOWDOWNS = {"slowdown": None, "slowdown_p50": 0.5, "slowdown_p95": 0.95}
"""The percentile of each metric of the slowdowns; None for the mean."""
LOAD = 0.2
"""The load of the link by the transfers of each customer."""
INVERSE_FLOWS = 8
"""Open flows of a customer that inverse-rate drop reckons with: the greedy ones and as many transfers."""


def build(factors: Factors) -> Mapping[str, Any]:
    """Two customers, each with greedy flows and transfers that come and go."""
    rule = str(factors["rule"])
    flows: list[dict[str, Any]] = []
    for name in PROFILES_MBPS:
        keys = {"transport": common.TCP, **common.of_customer(rule, name)}
        flows.append({"name": f"{name} greedy", "count": GREEDY_FLOWS, **keys})
        sizes = {"cdf": "web-search", "scale": 0.1}
        flows.append({"name": f"{name} transfers", "arrivals": {"load": LOAD}, "sizes": sizes, **keys})
    return common.network_of_customers(
        "Short transfers beside greedy flows",
        rule,
        flows,
        rate_mbps=CAPACITY_MBPS,
        profiles_mbps=PROFILES_MBPS,
        scale=0.4,
        connections=INVERSE_FLOWS,
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
        greedy[name] = common.rate_mbps(run, f"{name} greedy")
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
    yield from common.bottleneck_samples(factors, run)


def at(rule: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - factors
    """The factors of a number."""
    return {"rule": rule, **more}


def places(rules: tuple[str, ...], **more: Any) -> dict[str, Any]:  # noqa: ANN401 - factors
    """The factors of a number under each of these rules."""
    return {RULE_NAMES[rule]: at(rule, **more) for rule in rules}


def slowdowns_below(pairs: Mapping[str, tuple[tuple[str, str], tuple[str, str]]]) -> Judge:
    """Judge whether short transfers slow down less under the first (rule, customer) of each pair."""

    def of(rule: str, customer: str) -> dict[str, Any]:
        return at(rule, customer=customer, size=SHORT)

    return compared("slowdown", {name: (of(*a), of(*b)) for name, (a, b) in pairs.items()}, below)


WORKLOADS_SHORT = common.THIS.study(
    "short",
    title="Short transfers beside greedy flows",
    source=f"{common.SOURCE}: transfers that come and go",
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
        "fq-codel-serves-short-best": slowdowns_below(
            {
                f"{customer} under FQ-CoDel beside gold under {RULE_NAMES[rule]}": (
                    (common.FQ_CODEL, customer),
                    (rule, GOLD),
                )
                for customer in PROFILES_MBPS
                for rule in (*COLORED, DROP_TAIL, common.RED)
            }
        ),
        "ri-plus-o-shortens-transfers": slowdowns_below(
            {
                f"{customer}: RI+O beside RIO": ((common.RI_PLUS_O, customer), (common.RIO, customer))
                for customer in PROFILES_MBPS
            }
        ),
        "basic-short-beat-drop-tail": slowdowns_below(
            {
                f"basic under {RULE_NAMES[rule]} beside drop-tail": ((rule, BASIC), (DROP_TAIL, BASIC))
                for rule in COLORED
            }
        ),
    },
    tables=(
        *tables(RULES, (CUSTOMERS,), ("Rate of four greedy flows, Mbit/s", "greedy_rate", 2)),
        *tables(RULES, (), ("Rate of gold's greedy flows over that of basic's", "greedy_ratio", 2)),
        *tables(
            RULES,
            (SIZE_AXIS,),
            ("Mean slowdown of basic's transfers over that of gold's", "slowdown_ratio", 2),
        ),
        *tables(
            RULES,
            (CUSTOMERS,),
            *(
                (f"{title} of transfers {name}", metric, 2, {"size": size})
                for metric, title in (
                    ("slowdown", "Mean slowdown"),
                    ("slowdown_p50", "Median slowdown"),
                    ("slowdown_p95", "95th percentile of the slowdown"),
                )
                for size, name in SIZE_AXIS.names.items()
            ),
            ("Transfers unfinished at the end, %", "unfinished", 2),
        ),
        *tables(RULES, (), *common.WAITS, common.USE),
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
        Plot("rates", "Rate of four greedy flows", "dots", "greedy_rate", RULES, CUSTOMERS, MBPS),
    ),
    extra=True,
    default_runs=common.RUNS,
)
