"""Two customers with profiles: do pages and video follow them as the rates of greedy flows do?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perhop.show.declared import Axis, Plot, Table
from perhop.statistics.judging import above, at_least, at_most, below
from perhop.studies.evidence import Sample
from perhop.studies.judges import bounded, compared, together
from perhop.studies.sampling import MBPS
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
    THREE_DROP,
    WFQ,
    network,
    of_customer,
    of_users,
    page_samples,
    profile,
    queue,
    rate_mbps,
    video_samples,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from perhop.measures.run import Run
    from perhop.show.declared import Factors
    from perhop.studies.judges import Judge, Side

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
        keys = {"transport": TCP, **of_customer(rule, name)}
        if traffic == GREEDY:
            flows.append({"name": name, "count": GREEDY_FLOWS, **keys})
            continue
        web, video = {"model": "web", "scale": 10.0}, {"model": "video"}
        flows.append({"name": f"{name} web", "count": WEB_USERS, "application": web, **keys})
        flows.append({"name": f"{name} video", "count": VIDEO_USERS, "application": video, **keys})
    flows_of_customer = GREEDY_FLOWS if traffic == GREEDY else WEB_USERS * CONNECTIONS + VIDEO_USERS
    shared = {name: profile(rule, rate) for name, rate in PROFILES_MBPS.items()}
    return network(
        "Two customers with profiles",
        CAPACITY_MBPS,
        queue(rule, PROFILES_MBPS, 1.0, flows_of_customer),
        flows,
        **({} if rule == WFQ else {"profiles": shared}),
    )


def samples(factors: Factors, run: Run) -> Iterator[Sample]:
    """Sample each customer (rate, pages, video), how both compare, and the bottleneck."""
    greedy = factors["traffic"] == GREEDY
    rates = {}
    for name, contracted in PROFILES_MBPS.items():
        key = {**factors, "customer": name}
        groups = (name,) if greedy else (f"{name} web", f"{name} video")
        rates[name] = rate_mbps(run, *groups)
        yield Sample(key, "rate", MBPS, rates[name])
        yield Sample(key, "over_profile", "of the profile", rates[name] / contracted)
        if not greedy:
            yield from page_samples(key, run, f"{name} web")
            yield from video_samples(key, run, f"{name} video")
    yield Sample(factors, "rate_ratio", "gold/basic", rates[GOLD] / rates[BASIC])
    if not greedy:
        pages = [of_users(run, f"{name} web") for name in (GOLD, BASIC)]
        videos = [of_users(run, f"{name} video") for name in (GOLD, BASIC)]
        if all("page_p50_s" in one for one in pages):
            ratio = pages[1]["page_p50_s"] / pages[0]["page_p50_s"]
            yield Sample(factors, "page_ratio", "basic/gold", ratio)
        if all("quality_bps" in one for one in videos):
            ratio = videos[0]["quality_bps"] / videos[1]["quality_bps"]
            yield Sample(factors, "quality_ratio", "gold/basic", ratio)
    yield from link_samples(factors, run, LINK)
    yield Sample(factors, "utilization", "fraction", float(run.link(LINK)["utilization"]))


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


BY_CUSTOMER = (
    ("rate", "Rate of a customer, Mbit/s", 1),
    ("over_profile", "Rate of a customer over its profile", 2),
)
BY_USERS = (
    ("page_p50", "Median time of a page, ms", 0),
    ("page_mean", "Mean time of a page, ms", 0),
    ("page_p95", "95th percentile of the time of a page, ms", 0),
    ("unfinished", "Pages unfinished at the end, %", 1),
    ("quality", "Quality of video, Mbit/s", 2),
    ("stalled", "Stalls, seconds in an hour of video", 1),
)
OF_LINK = (
    ("wait_p50", "Median of the wait, ms", 1),
    ("wait_p99", "99th percentile of the wait, ms", 1),
    ("loss", "Packets dropped, %", 2),
    ("in_loss", "IN packets dropped, %", 3),
    ("utilization", "Use of the link", 3),
)

WORKLOADS_PROFILES = THIS.study(
    "profiles",
    title="Two customers with profiles: pages and video, or greedy flows",
    source=f"{SOURCE}: profiles of customers",
    summary="100 web and 15 video users of two customers (60 and 20 Mbit/s) on 100 Mbit/s, nine rules",
    cells=[at(rule, traffic) for traffic in TRAFFIC.names for rule in RULE_NAMES],
    scenario=build,
    samples=samples,
    judges={
        "greedy-keep-their-profiles": together(
            *(
                bounded("over_profile", places(READ_COLORS, GREEDY, customer=name), at_least, KEPT)
                for name in PROFILES_MBPS
            )
        ),
        "users-keep-their-profiles": together(
            *(
                bounded("over_profile", places(READ_COLORS, customer=name), at_least, KEPT)
                for name in PROFILES_MBPS
            )
        ),
        "colorless-treat-both-alike": together(
            bounded("quality_ratio", places(READ_NOTHING), at_most, 1.1),
            bounded("quality_ratio", places(READ_NOTHING), at_least, 0.9),
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
        "gold-pages-gain": rules_compared("page_p50", [(RIO, DROP_TAIL), (RIO, RED)], below, customer=GOLD),
        "fq-codel-pages-beat-gold": compared(
            "page_p50",
            {
                f"{customer} under FQ-CoDel beside gold under RIO": (
                    at(FQ_CODEL, customer=customer),
                    at(RIO, customer=GOLD),
                )
                for customer in PROFILES_MBPS
            },
            below,
        ),
        "ri-plus-o-shortens-pages": rules_compared("page_p50", [(RI_PLUS_O, RIO)], below, customer=GOLD),
        "gold-video-does-not-stall": bounded(
            "stalled", places((*READ_COLORS, WFQ), customer=GOLD), at_most, 1.0
        ),
        "wfq-gives-gold-most-video": rules_compared(
            "quality", [(WFQ, rule) for rule in READ_COLORS], above, customer=GOLD
        ),
        "three-drop-is-rio": together(
            rules_compared("rate", [(THREE_DROP, RIO)], above, factor=0.97, customer=GOLD),
            rules_compared("rate", [(THREE_DROP, RIO)], below, factor=1.03, customer=GOLD),
        ),
        "no-out-loses-least": rules_compared(
            "loss", [(NO_OUT, rule) for rule in READ_COLORS if rule != NO_OUT], below
        ),
        "in-is-not-lost": bounded("in_loss", places(READ_COLORS), below, 0.1),
    },
    tables=(
        *(
            Table(
                f"{title}, {TRAFFIC.names[traffic]}",
                {metric: ""},
                RULES,
                (CUSTOMERS,),
                {"traffic": traffic},
                digits,
            )
            for metric, title, digits in BY_CUSTOMER
            for traffic in TRAFFIC.names
        ),
        Table("Rate of gold over that of basic", {"rate_ratio": ""}, RULES, (TRAFFIC,), digits=2),
        *(
            Table(title, {metric: ""}, RULES, (CUSTOMERS,), {"traffic": USERS}, digits)
            for metric, title, digits in BY_USERS
        ),
        *(Table(title, {metric: ""}, RULES, (TRAFFIC,), digits=digits) for metric, title, digits in OF_LINK),
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
        Plot(
            id="pages",
            title="Median time of a page",
            kind="dots",
            metric="page_p50",
            x=RULES,
            series=CUSTOMERS,
            y_label="ms",
        ),
        Plot(
            id="video",
            title="Quality of video",
            kind="dots",
            metric="quality",
            x=RULES,
            series=CUSTOMERS,
            y_label=MBPS,
        ),
    ),
    extra=True,
    default_runs=RUNS,
)
