"""Figure 2: four assured flows at 40 % and 50 % subscription against more and more best-effort flows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perhop.show.declared import Axis, Plot, Reference, Table
from perhop.statistics.judging import above, all_of, judge
from perhop.studies.evidence import Evidence
from perhop.studies.kim.common import (
    ASSURED,
    KEEPS,
    OTHER_TOLERANCES,
    PAPER,
    SCHEMES,
    THIS,
    Curve,
    at_tolerance,
    tolerances,
)
from perhop.studies.kim.regime import SMALL, network, samples

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from perhop.show.declared import Factors, Row
    from perhop.statistics.intervals import Estimate
    from perhop.statistics.judging import Judgement

ASSURED_FLOWS = 4
PROFILES = {40: 2.0, 50: 2.5}
"""Profile rate in Mbit/s by subscription in percent."""
BEST_EFFORT_FLOWS = (0, 1, 2, 6, 11, 16, 26, 46, 96)

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
        for level in rio.measured(evidence)
        if min(rio.found(evidence, level).mean, ours.found(evidence, level).mean) < rio.kept_from()
    }


def keeps_to_stated(evidence: Evidence, keeps: float = KEEPS) -> Judgement:
    """RI+O keeps the profile up to the numbers of best-effort flows that the paper states for it."""
    return _keeps(
        evidence,
        {percent: CURVES["rio-plus-out", percent].published(evidence) for percent in PROFILES},
        keeps,
    )


def keeps_to_most(evidence: Evidence) -> Judgement:
    """RI+O keeps the profile with every number of best-effort flows."""
    return _keeps(evidence, dict.fromkeys(PROFILES, BEST_EFFORT_FLOWS[-1]), KEEPS)


def _keeps(evidence: Evidence, to: Mapping[int, int], keeps: float) -> Judgement:
    curves = {percent: CURVES["rio-plus-out", percent] for percent in PROFILES}
    text = "; ".join(
        f"{percent} %, {to[percent]} best-effort flows: {curve.found(evidence, to[percent]).text()} of "
        f"{curve.wanted:g}"
        for percent, curve in curves.items()
    )
    return judge(
        all_of(*(curve.keeps_to(evidence, to[percent], keeps) for percent, curve in curves.items())),
        f"RI+O, Mbit/s, {text}.",
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


LOAD = Axis("best_effort_flows", "Best-effort flows")
LEVELS = Axis(
    "subscription_percent", "Subscription", {p: f"{p} %, profile {r:g} Mbit/s" for p, r in PROFILES.items()}
)
SHORT = Axis("subscription_percent", "Subscription", {p: f"{p} %" for p in PROFILES})
READINGS = Axis("reading", "Reading", {"mean": "by the mean", "interval": "by the interval"})

FIG2 = THIS.study(
    "fig2",
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
    judges={
        "rio-40": tolerances(CURVES["rio", 40].judge),
        "rio-plus-out-40": tolerances(CURVES["rio-plus-out", 40].judge),
        "rio-50": tolerances(CURVES["rio", 50].judge),
        "rio-plus-out-50": tolerances(CURVES["rio-plus-out", 50].judge),
        "overcomes-best-effort": {
            "as far as the figure's own limits": keeps_to_stated,
            "less impact than under RIO": less_impact,
            "with every number of best-effort flows": keeps_to_most,
            **{
                f"the first, {name}": at_tolerance(keeps_to_stated, keeps)
                for name, keeps in OTHER_TOLERANCES.items()
            },
        },
    },
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
    summaries=limits,
    default_runs=16,
)
