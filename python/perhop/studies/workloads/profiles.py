"""Two customers with profiles: do pages and video follow them as the rates of greedy flows do?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from perhop.measures.run import Run
from perhop.show.declared import Axis, Factors, Plot, tables
from perhop.statistics.judging import above, at_least, at_most, below
from perhop.studies.evidence import Sample
from perhop.studies.judges import Judge, Side, bounded, compared, together
from perhop.studies.sampling import MBPS
from perhop.studies.workloads import common
from perhop.studies.workloads.common import BASIC, CUSTOMERS, GOLD, READ_COLORS, RED, RIO, RULE_NAMES

RULES = Axis("rule", "Rule", RULE_NAMES)
USERS, GREEDY = "users", "greedy"
TRAFFIC = Axis("traffic", "Traffic", {USERS: "web and video", GREEDY: "greedy flows"})
CAPACITY_MBPS = 100.0
PROFILES_MBPS = {GOLD: 60.0, BASIC: 20.0}
WEB_USERS, VIDEO_USERS, CONNECTIONS = 100, 15, 6
GREEDY_FLOWS = 15
KEPT = 0.95


def build(factors: Factors) -> Mapping[str, Any]:
    """Two customers, each with as many users, or with greedy flows in their place."""
    rule, traffic = str(factors["rule"]), str(factors["traffic"])
    flows: list[dict[str, Any]] = []
    for name in PROFILES_MBPS:
        keys = common.of_customer(rule, name)
        if traffic == GREEDY:
            flows.append({"name": name, "count": GREEDY_FLOWS, "transport": common.TCP, **keys})
        else:
            flows += common.web_and_video(WEB_USERS, VIDEO_USERS, f"{name} ", **keys)
    return common.network_of_customers(
        "Two customers with profiles",
        rule,
        flows,
        rate_mbps=CAPACITY_MBPS,
        profiles_mbps=PROFILES_MBPS,
        scale=1.0,
        connections=GREEDY_FLOWS if traffic == GREEDY else WEB_USERS * CONNECTIONS + VIDEO_USERS,
    )


def samples(factors: Factors, run: Run) -> Iterator[Sample]:
    """Sample each customer (rate, pages, video), how both compare, and the bottleneck."""
    greedy = factors["traffic"] == GREEDY
    rates = {}
    for name, contracted in PROFILES_MBPS.items():
        key = {**factors, "customer": name}
        groups = (name,) if greedy else (f"{name} web", f"{name} video")
        rates[name] = common.rate_mbps(run, *groups)
        yield Sample(key, "rate", MBPS, rates[name])
        yield Sample(key, "over_profile", "of the profile", rates[name] / contracted)
        if not greedy:
            yield from common.page_samples(key, run, f"{name} web")
            yield from common.video_samples(key, run, f"{name} video")
    yield Sample(factors, "rate_ratio", "gold/basic", rates[GOLD] / rates[BASIC])
    if not greedy:
        pages, videos = (
            [common.of_users(run, f"{name} {model}") for name in (GOLD, BASIC)] for model in ("web", "video")
        )
        if all("page_p50_s" in one for one in pages):
            ratio = pages[1]["page_p50_s"] / pages[0]["page_p50_s"]
            yield Sample(factors, "page_ratio", "basic/gold", ratio)
        if all("quality_bps" in one for one in videos):
            ratio = videos[0]["quality_bps"] / videos[1]["quality_bps"]
            yield Sample(factors, "quality_ratio", "gold/basic", ratio)
    yield from common.bottleneck_samples(factors, run)


def at(rule: str, traffic: str = USERS, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - factors
    """The factors of a number."""
    return {"rule": rule, "traffic": traffic, **more}


def places(rules: tuple[str, ...], traffic: str = USERS, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - factors
    """The factors of a number under each of these rules."""
    return {RULE_NAMES[rule]: at(rule, traffic, **more) for rule in rules}


def rules_compared(
    metric: str,
    pairs: list[tuple[str, str]],
    side: Side,
    *,
    factor: float = 1.0,
    **more: Any,  # noqa: ANN401 - factors
) -> Judge:
    """A claim about pairs of rules for users."""
    named = {
        f"{RULE_NAMES[one]} beside {RULE_NAMES[other]}": (at(one, **more), at(other, **more))
        for one, other in pairs
    }
    return compared(metric, named, side, factor=factor)


def profiles_kept(traffic: str) -> Judge:
    """Judge whether each customer has its profile's rate under the rules that read colors."""
    kept = (places(READ_COLORS, traffic, customer=name) for name in PROFILES_MBPS)
    return together(*(bounded("over_profile", one, at_least, KEPT) for one in kept))


WORKLOADS_PROFILES = common.THIS.study(
    "profiles",
    title="Two customers with profiles: pages and video, or greedy flows",
    source=f"{common.SOURCE}: profiles of customers",
    summary="100 web and 15 video users of two customers (60 and 20 Mbit/s) on 100 Mbit/s, nine rules",
    cells=[at(rule, traffic) for traffic in TRAFFIC.names for rule in RULE_NAMES],
    scenario=build,
    samples=samples,
    judges={
        "greedy-keep-their-profiles": profiles_kept(GREEDY),
        "users-keep-their-profiles": profiles_kept(USERS),
        "colorless-treat-both-alike": together(
            bounded("quality_ratio", places(common.READ_NOTHING), at_most, 1.1),
            bounded("quality_ratio", places(common.READ_NOTHING), at_least, 0.9),
        ),
        "rates-differ-less-for-users": compared(
            "rate_ratio",
            {RULE_NAMES[rule]: (at(rule), at(rule, GREEDY)) for rule in READ_COLORS},
            below,
        ),
        "video-follows-profiles": bounded("quality_ratio", places(READ_COLORS), above, 1.5),
        "pages-follow-less": compared(
            "page_ratio",
            {RULE_NAMES[rule]: (at(rule), at(rule)) for rule in READ_COLORS},
            below,
            second_metric="quality_ratio",
        ),
        "basic-pages-pay": rules_compared("page_p50", [(RIO, RED)], above, customer=BASIC),
        "gold-pages-gain": rules_compared(
            "page_p50", [(RIO, common.DROP_TAIL), (RIO, RED)], below, customer=GOLD
        ),
        "fq-codel-pages-beat-gold": compared(
            "page_p50",
            {
                f"{customer} under FQ-CoDel beside gold under RIO": (
                    at(common.FQ_CODEL, customer=customer),
                    at(RIO, customer=GOLD),
                )
                for customer in PROFILES_MBPS
            },
            below,
        ),
        "ri-plus-o-shortens-pages": rules_compared(
            "page_p50", [(common.RI_PLUS_O, RIO)], below, customer=GOLD
        ),
        "gold-video-does-not-stall": bounded(
            "stalled", places((*READ_COLORS, common.WFQ), customer=GOLD), at_most, 1.0
        ),
        "wfq-gives-gold-most-video": rules_compared(
            "quality", [(common.WFQ, rule) for rule in READ_COLORS], above, customer=GOLD
        ),
        "three-drop-is-rio": together(
            rules_compared("rate", [(common.THREE_DROP, RIO)], above, factor=0.97, customer=GOLD),
            rules_compared("rate", [(common.THREE_DROP, RIO)], below, factor=1.03, customer=GOLD),
        ),
        "no-out-loses-least": rules_compared(
            "loss", [(common.NO_OUT, rule) for rule in READ_COLORS if rule != common.NO_OUT], below
        ),
        "in-is-not-lost": bounded("in_loss", places(READ_COLORS), below, 0.1),
    },
    tables=(
        *(
            replace(table, title=f"{table.title}, {name}")
            for by_customer in (
                ("Rate of a customer, Mbit/s", "rate", 1),
                ("Rate of a customer over its profile", "over_profile", 2),
            )
            for traffic, name in TRAFFIC.names.items()
            for table in tables(RULES, (CUSTOMERS,), by_customer, traffic=traffic)
        ),
        *tables(RULES, (TRAFFIC,), ("Rate of gold over that of basic", "rate_ratio", 2)),
        *tables(RULES, (CUSTOMERS,), *common.OF_USERS, traffic=USERS),
        *tables(RULES, (TRAFFIC,), *common.WAITS, ("IN packets dropped, %", "in_loss", 3), common.USE),
    ),
    plots=(
        Plot(
            id="rates",
            title="Rate of a customer over its profile",
            kind="dots",
            metric="over_profile",
            x=RULES,
            series=CUSTOMERS,
            y_label="of the profile",
            facet=TRAFFIC,
        ),
        Plot("pages", "Median time of a page", "dots", "page_p50", RULES, CUSTOMERS, "ms"),
        Plot("video", "Quality of video", "dots", "quality", RULES, CUSTOMERS, MBPS),
    ),
    extra=True,
    default_runs=common.RUNS,
)
