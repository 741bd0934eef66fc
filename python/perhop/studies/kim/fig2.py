"""Figure 2: four assured flows at 40 % and 50 % subscription against more and more best-effort flows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perhop.judging import above, all_of, any_of, below, judge
from perhop.studies.kim.common import (
    ASSURED,
    PAPER,
    SCHEMES,
    Curve,
    stated,
)
from perhop.studies.kim.regime import SMALL, network, samples
from perhop.studies.paper import claims
from perhop.study import Axis, Evidence, Plot, Reference, Study, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from perhop.judging import Check, Judgement
    from perhop.statistics import Estimate
    from perhop.study import Factors, Row

ASSURED_FLOWS = 4
PROFILES = {40: 2.0, 50: 2.5}
"""Profile rate in Mbit/s by subscription in percent."""
BEST_EFFORT_FLOWS = (0, 1, 2, 6, 11, 16, 26, 46, 96)

STATEMENT = stated("fig2")
CURVES = {
    (scheme, percent): Curve(
        {"scheme": scheme, "subscription_percent": percent},
        "best_effort_flows",
        BEST_EFFORT_FLOWS,
        profile,
        " best-effort flows",
    )
    for percent, profile in PROFILES.items()
    for scheme in ("rio", "rio-plus-out")
}


def build(cell: Factors) -> Mapping[str, Any]:
    """The setting of one point."""
    return network(
        "Kim et al., Figure 2",
        str(cell["scheme"]),
        SMALL,
        assured=ASSURED_FLOWS,
        profile_mbps=PROFILES[int(cell["subscription_percent"])],
        best_effort=int(cell["best_effort_flows"]),
    )


def limits(evidence: Evidence) -> Iterator[Row]:
    """Up to how many best-effort flows each curve keeps its promise."""
    for curve in CURVES.values():
        yield from curve.rows(evidence, never=None)


def gains(evidence: Evidence, percent: int) -> dict[int, Estimate]:
    """RI+O − RIO at every number of best-effort flows with which not both keep the profile by the means."""
    rio, ours = (CURVES[scheme, percent] for scheme in ("rio", "rio-plus-out"))
    return {
        level: evidence.difference("throughput", ours.at(level), rio.at(level))
        for level, a, b in zip(
            BEST_EFFORT_FLOWS, rio.estimates(evidence), ours.estimates(evidence), strict=True
        )
        if min(a.mean, b.mean) < rio.kept_from
    }


def wider(evidence: Evidence) -> Judgement:
    """There are more best-effort flows with which RI+O keeps the profile than with which RIO does."""

    def beyond(percent: int) -> Check:
        rio, ours = (CURVES[scheme, percent] for scheme in ("rio", "rio-plus-out"))
        return any_of(
            *(
                all_of(
                    ours.keeps_to(evidence, level),
                    below(evidence.estimate("throughput", rio.at(level)), rio.kept_from),
                )
                for level in BEST_EFFORT_FLOWS
            )
        )

    found = {key: curve.limit(evidence) for key, curve in CURVES.items()}
    text = "; ".join(
        f"{p} %: RIO {_say(found['rio', p])}, RI+O {_say(found['rio-plus-out', p])}" for p in PROFILES
    )
    return judge(
        all_of(*(beyond(percent) for percent in PROFILES)),
        f"Best-effort flows up to which the mean keeps the profile, {text}.",
    )


def overcomes(evidence: Evidence) -> Judgement:
    """RI+O keeps the profile with every number of best-effort flows."""
    curves = {percent: CURVES["rio-plus-out", percent] for percent in PROFILES}
    most = BEST_EFFORT_FLOWS[-1]
    text = "; ".join(
        f"{percent} %: {evidence.estimate('throughput', curve.at(most)).text()} of {curve.wanted:g}"
        for percent, curve in curves.items()
    )
    return judge(
        all_of(*(curve.keeps_to(evidence, most) for curve in curves.values())),
        f"RI+O with {most} best-effort flows, Mbit/s, {text}.",
    )


def less_impact(evidence: Evidence) -> Judgement:
    """Wherever best-effort flows take the profile away from either scheme, RI+O leaves assured flows more."""
    found = {percent: gains(evidence, percent) for percent in PROFILES}
    text = "; ".join(
        f"{percent} %: " + ", ".join(f"{level}: {e.text(sign=True)}" for level, e in levels.items())
        for percent, levels in found.items()
    )
    return judge(
        all_of(*(above(e) for levels in found.values() for e in levels.values())),
        f"RI+O − RIO in Mbit/s by best-effort flows, {text}.",
    )


def gain(evidence: Evidence) -> Judgement:
    """RI+O − RIO where RI+O reaches its published limit."""
    levels = {percent: CURVES["rio-plus-out", percent].published(evidence) for percent in PROFILES}
    found = {
        percent: evidence.difference(
            "throughput",
            CURVES["rio-plus-out", percent].at(level),
            CURVES["rio", percent].at(level),
        )
        for percent, level in levels.items()
    }
    text = "; ".join(
        f"{percent} %, {levels[percent]} best-effort flows: {e.text(sign=True)} Mbit/s"
        for percent, e in found.items()
    )
    return judge(all_of(*(above(e) for e in found.values())), f"RI+O − RIO, {text}.")


def _say(level: int | None) -> str:
    return "none" if level is None else str(level)


LOAD = Axis("best_effort_flows", "Best-effort flows")
LEVELS = Axis(
    "subscription_percent", "Subscription", {p: f"{p} %, profile {r:g} Mbit/s" for p, r in PROFILES.items()}
)
SHORT = Axis("subscription_percent", "Subscription", {p: f"{p} %" for p in PROFILES})
READINGS = Axis("reading", "Reading", {"mean": "by the mean", "interval": "by the interval"})

FIG2 = Study(
    id="kim-fig2",
    title="Assured flows against a growing number of best-effort flows",
    source=f"{PAPER}, Figure 2",
    summary="4 assured flows, 0 to 96 best-effort flows, 40 % and 50 % subscription",
    cells=[
        {"scheme": scheme, "subscription_percent": percent, "best_effort_flows": count}
        for percent in PROFILES
        for scheme in ("rio", "rio-plus-out")
        for count in BEST_EFFORT_FLOWS
    ],
    scenario=build,
    samples=samples,
    published=STATEMENT.values,
    claims=claims(
        STATEMENT.claims,
        {
            "rio-40": CURVES["rio", 40].judge,
            "rio-plus-out-40": CURVES["rio-plus-out", 40].judge,
            "rio-50": CURVES["rio", 50].judge,
            "rio-plus-out-50": CURVES["rio-plus-out", 50].judge,
            "wider-regime": wider,
            "overcomes-best-effort": overcomes,
            "less-impact": less_impact,
            "gain-at-limit": gain,
        },
    ),
    tables=(
        Table(
            "Best-effort flows up to which assured flows keep their profile",
            {"holds_up_to": ""},
            READINGS,
            (SHORT, SCHEMES),
            digits=0,
        ),
        Table(
            "Throughput of an assured flow, Mbit/s, by subscription and number of best-effort flows",
            {"throughput": ""},
            LOAD,
            (SHORT, SCHEMES),
            where={"class": ASSURED},
        ),
    ),
    plots=(
        Plot(
            id="assured",
            title="Throughput of an assured flow",
            kind="lines",
            metric="throughput",
            x=LOAD,
            series=SCHEMES,
            y_label="Mbit/s per assured flow",
            facet=LEVELS,
            where={"class": ASSURED},
            references=(Reference("profile", "subscription_percent", PROFILES),),
            ordinal=True,
            limits="holds_up_to",
            limits_where={"reading": "mean"},
        ),
    ),
    notes=STATEMENT.notes,
    method=STATEMENT.method,
    assumptions=STATEMENT.assumptions,
    summaries=limits,
    default_runs=16,
)
