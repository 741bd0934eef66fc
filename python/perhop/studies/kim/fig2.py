"""Figure 2: four assured flows at 40 % and 50 % subscription against more and more best-effort flows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perhop.show.declared import Axis, Factors, Table
from perhop.statistics.judging import above
from perhop.studies import judges
from perhop.studies.evidence import Evidence
from perhop.studies.judges import Judge, Numbers, differences, grouped, levels, of_statements, variants
from perhop.studies.kim import curves
from perhop.studies.kim.common import ASSURED, PAPER, SCHEMES, THIS
from perhop.studies.kim.curves import KEEPS, OTHER_TOLERANCES, RI_PLUS_O, RIO, TOLERANCES, Curve

ASSURED_FLOWS = 4
PROFILES = {40: 2.0, 50: 2.5}
"""Profile rate in Mbit/s by subscription in percent."""
BEST_EFFORT_FLOWS = (0, 1, 2, 6, 11, 16, 26, 46, 96)
LIMITS = {
    (v.factors["scheme"], v.factors["subscription_percent"]): int(v.value) for v in THIS.item("fig2").values
}
"""The printed limits."""

CURVES = {
    (scheme, percent): Curve(
        {"scheme": scheme, "subscription_percent": percent},
        "best_effort_flows",
        BEST_EFFORT_FLOWS,
        profile,
        " best-effort flows",
        LIMITS[scheme, percent],
    )
    for percent, profile in PROFILES.items()
    for scheme in (RIO, RI_PLUS_O)
}


def build(cell: Factors) -> Mapping[str, Any]:
    """The setting of one point."""
    return curves.network(
        "Kim et al., Figure 2",
        str(cell["scheme"]),
        curves.SMALL,
        assured=ASSURED_FLOWS,
        profile_mbps=PROFILES[int(cell["subscription_percent"])],
        best_effort=int(cell["best_effort_flows"]),
    )


def _gains(percent: int) -> Numbers:
    """RI+O − RIO at every number of best-effort flows with which not both keep the profile by the means."""
    rio, ours = CURVES[RIO, percent], CURVES[RI_PLUS_O, percent]

    def find(evidence: Evidence) -> Mapping[int, judges.Number]:
        rates = [curve.rates(BEST_EFFORT_FLOWS)(evidence) for curve in (rio, ours)]
        lost = [n for n in rates[0] if min(of[n].mean for of in rates) < KEEPS * rio.wanted]
        return differences("throughput", {n: (ours.at(n), rio.at(n)) for n in lost}).find(evidence)

    return Numbers(find).reads("{name}: {value}")


def _keeps(to: Mapping[int, int], keeps: float = KEEPS) -> Judge:
    """Judge whether RI+O keeps the profile up to these numbers of best-effort flows, by subscription."""
    ours = {percent: CURVES[RI_PLUS_O, percent] for percent in PROFILES}
    rates = levels("throughput", {(p, to[p], curve.wanted): curve.at(to[p]) for p, curve in ours.items()})
    return of_statements({p: curve.keeps_to(to[p], keeps) for p, curve in ours.items()}).said(
        "RI+O, Mbit/s, {rates}.",
        rates=rates.reads("{name[0]} %, {name[1]} best-effort flows: {value} of {name[2]:g}", "; "),
    )


STATED = {percent: LIMITS[RI_PLUS_O, percent] for percent in PROFILES}
LOAD = Axis("best_effort_flows", "Best-effort flows")
LEVELS = Axis(
    "subscription_percent", "Subscription", {p: f"{p} %, profile {r:g} Mbit/s" for p, r in PROFILES.items()}
)
SHORT = Axis("subscription_percent", "Subscription", {p: f"{p} %" for p in PROFILES})

FIG2 = THIS.study(
    "fig2",
    title="Assured flows against a growing number of best-effort flows",
    source=f"{PAPER}, Figure 2",
    summary="4 assured flows, 0 to 96 best-effort flows, 40 % and 50 % subscription",
    cells=[cell for curve in CURVES.values() for cell in curve.cells()],
    scenario=build,
    samples=curves.samples,
    judges={
        **{
            f"{scheme}-{percent}": variants(curve.judge, TOLERANCES)
            for (scheme, percent), curve in CURVES.items()
        },
        "overcomes-best-effort": {
            "as far as the figure's own limits": _keeps(STATED),
            "less impact than under RIO": grouped({percent: _gains(percent) for percent in PROFILES})
            .all(above)
            .said(
                "RI+O − RIO in Mbit/s by best-effort flows, 40 %: {at_40:+}; 50 %: {at_50:+}.",
                at_40=_gains(40),
                at_50=_gains(50),
            ),
            "with every number of best-effort flows": _keeps(dict.fromkeys(PROFILES, BEST_EFFORT_FLOWS[-1])),
            **{f"the first, {name}": _keeps(STATED, keeps) for name, keeps in OTHER_TOLERANCES.items()},
        },
    },
    tables=[
        Table(
            "Best-effort flows up to which assured flows keep their profile",
            {"holds_up_to": ""},
            curves.BY_READING,
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
    ],
    plots=[
        curves.plot(
            name="assured",
            title="Throughput of an assured flow",
            x=LOAD,
            facet=LEVELS,
            wanted=PROFILES,
            ordinal=True,
            limits="holds_up_to",
            limits_where={"reading": "mean"},
        )
    ],
    summaries=curves.limits(CURVES.values()),
    default_runs=16,
)
