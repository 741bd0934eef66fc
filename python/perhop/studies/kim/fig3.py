"""Figure 3: twenty best-effort flows against assured flows that subscribe 10 % to 100 % of the link.

The paper does not say which queue this is. The text allows two alike: that of the paragraph before, Figure
2's, whose OUT set it states; and that of section 3's general setting, Table 1's, which has the figure's
twenty best-effort flows, with the OUT set of that table's best row. Each claim is judged at both.
"""

from __future__ import annotations

import functools
import itertools
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from perhop.show.declared import Axis, Plot, Reference, Table
from perhop.statistics.intervals import estimate, paired_difference
from perhop.statistics.judging import above, all_of, by_readings, judge, within
from perhop.studies.evidence import Evidence, Published
from perhop.studies.kim.common import (
    ASSURED,
    CAPACITY_MBPS,
    KEEPS,
    OTHER_TOLERANCES,
    PAPER,
    SCHEMES,
    THIS,
    Curve,
    scaled,
)
from perhop.studies.kim.regime import LARGE, SMALL, network, samples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from perhop.show.declared import Factors, Row
    from perhop.statistics.judging import Judgement
    from perhop.studies.kim.regime import Queue

TITLE = "Kim et al., Figure 3"
BEST_EFFORT_FLOWS = 20
PROFILES = (0.5, 1.0, 2.0)
"""Profile rates, Mbit/s."""
LEVELS = tuple(range(10, 101, 10))
"""Subscription, percent of the link."""
ALIKE = 0.1
"""Two schemes whose throughput differs by less than this fraction, at every level, count as similar."""

OTHER_ALIKE = {"a twentieth": 0.05, "a fifth": 0.2}
QUEUES = {"figure-2": SMALL, "table-1": LARGE}
QUEUE_NAMES = {"figure-2": "at Figure 2's queue", "table-1": "at Table 1's queue"}
"""The two readings of every claim."""

STATEMENT = THIS.item("fig3")
CURVES = {
    (queue, scheme, profile): Curve(
        {"queue": queue, "scheme": scheme, "profile_mbps": profile},
        "subscription_percent",
        LEVELS,
        profile,
        " %",
    )
    for queue in QUEUES
    for profile in PROFILES
    for scheme in ("rio", "rio-plus-out")
}


def build(cell: Factors) -> Mapping[str, Any]:
    """The setting of one point: as many flows as fill the level."""
    return setting(cell, QUEUES[str(cell["queue"])])


def setting(cell: Factors, queue: Queue) -> Mapping[str, Any]:
    """The setting of one point at any queue."""
    profile = float(cell["profile_mbps"])
    assured = round(float(cell["subscription_percent"]) / 100 * CAPACITY_MBPS / profile)
    return network(
        TITLE,
        str(cell["scheme"]),
        queue,
        assured=assured,
        profile_mbps=profile,
        best_effort=BEST_EFFORT_FLOWS,
    )


def limits(evidence: Evidence) -> Iterator[Row]:
    """Up to which subscription each curve keeps its promise."""
    for curve in CURVES.values():
        yield from curve.rows(evidence, never=0.0)


def published() -> list[Published]:
    """The printed limits, once for each queue."""
    return [
        Published({"queue": queue, **value.factors}, value.metric, value.value)
        for queue in QUEUES
        for value in STATEMENT.values
    ]


def at_both(
    judged: Callable[[Evidence, str], Judgement],
    others: Mapping[str, Callable[[Evidence, str], Judgement]] = MappingProxyType({}),
) -> dict[str, Callable[[Evidence], Judgement]]:
    """The judges of a claim at either queue, its two readings; of other rules, what both queues say."""

    def together(other: Callable[[Evidence, str], Judgement]) -> Callable[[Evidence], Judgement]:
        return lambda evidence: by_readings(
            {name: other(evidence, queue) for queue, name in QUEUE_NAMES.items()}
        )

    def at(queue: str) -> Callable[[Evidence], Judgement]:
        return lambda evidence: judged(evidence, queue)

    return {
        **{name: at(queue) for queue, name in QUEUE_NAMES.items()},
        **{name: together(other) for name, other in others.items()},
    }


def _with_tolerances(
    judged: Callable[[Evidence, str, float], Judgement],
) -> dict[str, Callable[[Evidence], Judgement]]:
    def at(keeps: float) -> Callable[[Evidence, str], Judgement]:
        return lambda evidence, queue: judged(evidence, queue, keeps)

    return at_both(at(KEEPS), {name: at(keeps) for name, keeps in OTHER_TOLERANCES.items()})


def limit(scheme: str, profile: float, *, contrasted: bool) -> dict[str, Callable[[Evidence], Judgement]]:
    """The judges of a limit; `contrasted` with the other scheme's, so that it ends there."""

    def judged(evidence: Evidence, queue: str, keeps: float) -> Judgement:
        curve = CURVES[queue, scheme, profile]
        return curve.judge(evidence, keeps) if contrasted else curve.judge_kept(evidence, keeps)

    return _with_tolerances(judged)


def always_fails(evidence: Evidence, queue: str) -> Judgement:
    """RIO misses the 2 Mbit/s profile at every level."""
    curve = CURVES[queue, "rio", 2.0]
    text = ", ".join(
        f"{level} %: {curve.found(evidence, level).text()}" for level in curve.measured(evidence)
    )
    return judge(curve.fails(evidence), f"Mbit/s by level, {text}.")


def gap(evidence: Evidence, queue: str, profile: float) -> dict[int, float]:
    """RI+O − RIO averaged over the levels, by seed, Mbit/s."""
    levels = CURVES[queue, "rio", profile].measured(evidence)
    ours, rio = (
        [evidence.by_seed("throughput", CURVES[queue, scheme, profile].at(level)) for level in levels]
        for scheme in ("rio-plus-out", "rio")
    )
    seeds = sorted(ours[0])
    return {
        seed: sum(a[seed] - b[seed] for a, b in zip(ours, rio, strict=True)) / len(levels) for seed in seeds
    }


def alike(evidence: Evidence, queue: str, part: float = ALIKE) -> Judgement:
    """At 0.5 Mbit/s what the two schemes give differs by little at every level."""
    rio, ours = (CURVES[queue, scheme, PROFILES[0]] for scheme in ("rio", "rio-plus-out"))
    found = {
        level: scaled(
            evidence.difference("throughput", ours.at(level), rio.at(level)),
            1 / evidence.mean("throughput", rio.at(level)),
        )
        for level in rio.measured(evidence)
    }
    text = ", ".join(f"{level} %: {scaled(e, 100).text(1, sign=True)}" for level, e in found.items())
    return judge(
        all_of(*(within(e, -part, part) for e in found.values())),
        f"RI+O − RIO in percent of what RIO gives, at {text}.",
    )


def grows(evidence: Evidence, queue: str) -> Judgement:
    """RI+O − RIO lies above 0 for the two larger profiles, and rises from each profile to the next."""
    gaps = {profile: gap(evidence, queue, profile) for profile in PROFILES}
    found = {profile: estimate([v for _, v in sorted(one.items())]) for profile, one in gaps.items()}
    steps = [paired_difference(gaps[b], gaps[a]) for a, b in itertools.pairwise(PROFILES)]
    means = ", ".join(f"{profile:g} Mbit/s: {one.text(sign=True)}" for profile, one in found.items())
    return judge(
        all_of(*(above(found[profile]) for profile in PROFILES[1:]), *(above(step) for step in steps)),
        f"Mean of RI+O − RIO over the levels, Mbit/s, {means}; increases "
        f"{' and '.join(step.text(sign=True) for step in steps)}.",
    )


def to_fifty(evidence: Evidence, queue: str, keeps: float = KEEPS) -> Judgement:
    """RI+O keeps all three profiles up to 50 %."""
    curves = {profile: CURVES[queue, "rio-plus-out", profile] for profile in PROFILES}
    text = ", ".join(f"{p:g} Mbit/s: {curve.found(evidence, 50).text()}" for p, curve in curves.items())
    return judge(
        all_of(*(curve.keeps_to(evidence, 50, keeps) for curve in curves.values())),
        f"RI+O at 50 %, Mbit/s, profile {text}.",
    )


LOAD = Axis("subscription_percent", "Subscription, %")
RATES = Axis("profile_mbps", "Profile", {rate: f"profile {rate:g} Mbit/s" for rate in PROFILES})
SHORT = Axis("profile_mbps", "Profile, Mbit/s", {rate: f"{rate:g}" for rate in PROFILES})
READINGS = Axis("reading", "Reading", {"mean": "by the mean", "interval": "by the interval"})

FIG3 = THIS.study(
    "fig3",
    title="Assured flows at growing subscription, three profile rates",
    source=f"{PAPER}, Figure 3",
    summary="20 best-effort flows, profiles of 0.5, 1 and 2 Mbit/s, 10 % to 100 % subscription, two queues",
    cells=[
        {"queue": queue, "scheme": scheme, "profile_mbps": profile, "subscription_percent": level}
        for queue in QUEUES
        for profile in PROFILES
        for scheme in ("rio", "rio-plus-out")
        for level in LEVELS
    ],
    scenario=build,
    samples=samples,
    published=published(),
    judges={
        "rio-half": limit("rio", 0.5, contrasted=False),
        "rio-plus-out-half": limit("rio-plus-out", 0.5, contrasted=False),
        "rio-one": limit("rio", 1.0, contrasted=True),
        "rio-plus-out-one": limit("rio-plus-out", 1.0, contrasted=True),
        "rio-two": at_both(always_fails),
        "rio-plus-out-two": limit("rio-plus-out", 2.0, contrasted=False),
        "similar-at-low-profile": at_both(
            alike,
            {name: functools.partial(alike, part=part) for name, part in OTHER_ALIKE.items()},
        ),
        "gap-grows-with-profile": at_both(grows),
        "guaranteed-to-50": _with_tolerances(to_fifty),
    },
    tables=(
        *(
            Table(
                f"Subscription up to which assured flows keep their profile, %, {name}",
                {"holds_up_to": ""},
                READINGS,
                (SHORT, SCHEMES),
                where={"queue": queue},
                digits=0,
            )
            for queue, name in QUEUE_NAMES.items()
        ),
        *(
            Table(
                f"Throughput of an assured flow, Mbit/s, by profile and subscription (%), {name}",
                {"throughput": ""},
                LOAD,
                (SHORT, SCHEMES),
                where={"class": ASSURED, "queue": queue},
            )
            for queue, name in QUEUE_NAMES.items()
        ),
    ),
    plots=tuple(
        Plot(
            id=f"assured-{queue}",
            title=f"Throughput of an assured flow {name}",
            kind="lines",
            metric="throughput",
            x=LOAD,
            series=SCHEMES,
            y_label="Mbit/s per assured flow",
            facet=RATES,
            where={"class": ASSURED, "queue": queue},
            references=(Reference("profile", "profile_mbps", {rate: rate for rate in PROFILES}),),
            limits="holds_up_to",
            limits_where={"reading": "mean", "queue": queue},
            from_zero=False,
        )
        for queue, name in QUEUE_NAMES.items()
    ),
    summaries=limits,
    default_runs=16,
)
