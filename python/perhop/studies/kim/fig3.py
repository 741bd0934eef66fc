"""Figure 3: twenty best-effort flows against assured flows that subscribe 10 % to 100 % of the link.

The paper does not say which queue this is. The text allows two alike: that of the paragraph before, Figure
2's, whose OUT set it states; and that of section 3's general setting, Table 1's, which has the figure's
twenty best-effort flows, with the OUT set of that table's best row. Each claim is judged at both.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from perhop.show.declared import Axis, Factors, Table
from perhop.statistics.intervals import Estimate
from perhop.statistics.judging import Judgement, above, all_of, below, judge, within
from perhop.studies.evidence import Evidence
from perhop.studies.judges import (
    Judge,
    Judges,
    combined,
    differences,
    less_means,
    levels,
    of_statements,
    readings_by_rule,
)
from perhop.studies.kim import curves
from perhop.studies.kim.common import ASSURED, CAPACITY_MBPS, PAPER, SCHEMES, THIS
from perhop.studies.kim.curves import LARGE, RI_PLUS_O, RIO, SMALL, TOLERANCES, Curve

TITLE = "Kim et al., Figure 3"
BEST_EFFORT_FLOWS = 20
PROFILES = (0.5, 1.0, 2.0)
"""Profile rates, Mbit/s."""
LEVELS = tuple(range(10, 101, 10))
"""Subscription, percent of the link."""
ALIKE = {"": 0.1, "a twentieth": 0.05, "a fifth": 0.2}
"""Two schemes whose throughput differs by less than this fraction, at every level, count as similar."""
QUEUES = {"figure-2": SMALL, "table-1": LARGE}
QUEUE_NAMES = {"figure-2": "at Figure 2's queue", "table-1": "at Table 1's queue"}
"""The two readings of every claim."""
PRINTED = THIS.item("fig3").values
LIMITS = {(v.factors["scheme"], v.factors["profile_mbps"]): int(v.value) for v in PRINTED}
CURVES = {
    (queue, scheme, profile): Curve(
        {"queue": queue, "scheme": scheme, "profile_mbps": profile},
        "subscription_percent",
        LEVELS,
        profile,
        " %",
        LIMITS[scheme, profile],
    )
    for queue in QUEUES
    for profile in PROFILES
    for scheme in (RIO, RI_PLUS_O)
}


def build(cell: Factors) -> Mapping[str, Any]:
    """The setting of one point: as many flows as fill the level."""
    profile = float(cell["profile_mbps"])
    return curves.network(
        TITLE,
        str(cell["scheme"]),
        QUEUES[str(cell["queue"])],
        assured=round(float(cell["subscription_percent"]) / 100 * CAPACITY_MBPS / profile),
        profile_mbps=profile,
        best_effort=BEST_EFFORT_FLOWS,
    )


def _at_both(judge_of: Callable[[str, Any], Judge], values: Mapping[str, Any]) -> Judges:
    """The judges of a claim at either queue, its two readings."""
    return readings_by_rule(
        lambda value: {name: judge_of(queue, value) for queue, name in QUEUE_NAMES.items()}, values
    )


def _limit(scheme: str, profile: float, *, contrasted: bool) -> Judges:
    """The judges of a limit; `contrasted` with the other scheme's, so that it ends there."""
    return _at_both(
        lambda queue, keeps: CURVES[queue, scheme, profile].judge(keeps, contrasted=contrasted), TOLERANCES
    )


def _always_fails(queue: str, _: object) -> Judge:
    curve = CURVES[queue, RIO, 2.0]
    found = curve.rates(LEVELS).reads("{name} %: {value}")
    return found.all(below, curve.wanted).said("Mbit/s by level, {}.")


def alike(queue: str, part: float) -> Judge:
    """Judge whether at 0.5 Mbit/s what the two schemes give differs by that part at most at every level."""
    rio, ours = (CURVES[queue, scheme, PROFILES[0]] for scheme in (RIO, RI_PLUS_O))
    apart = differences("throughput", {n: (ours.at(n), rio.at(n)) for n in LEVELS}, measured=True)
    found = apart.relative(levels("throughput", {n: rio.at(n) for n in LEVELS}, measured=True))
    return found.all(within, -part, part).said(
        "RI+O − RIO in percent of what RIO gives, at {percent:+.1}.",
        percent=found.scaled(lambda x: 100 * x).reads("{name} %: {value}"),
    )


def grows(queue: str, _: object = None) -> Judge:
    """Judge whether RI+O − RIO, in the mean over the levels, grows from each profile to the next.

    It is to lie above 0 for the two larger profiles.
    """

    def rates(evidence: Evidence, profile: float) -> list[tuple[str, Factors]]:
        pair = [CURVES[queue, scheme, profile] for scheme in (RI_PLUS_O, RIO)]
        return [("throughput", curve.at(level)) for curve in pair for level in curve.measured(evidence)]

    def step(evidence: Evidence, before: float, after: float) -> Estimate:
        first, second = rates(evidence, after), rates(evidence, before)

        def more(*found: float) -> float:
            return less_means(*found[: len(first)]) - less_means(*found[len(first) :])

        return combined(evidence, more, *first, *second)

    def judged(evidence: Evidence) -> Judgement:
        found = {profile: combined(evidence, less_means, *rates(evidence, profile)) for profile in PROFILES}
        steps = [step(evidence, *pair) for pair in itertools.pairwise(PROFILES)]
        means = ", ".join(f"{profile:g} Mbit/s: {one.text(sign=True)}" for profile, one in found.items())
        return judge(
            all_of(*(above(found[profile]) for profile in PROFILES[1:]), *(above(step) for step in steps)),
            f"Mean of RI+O − RIO over the levels, Mbit/s, {means}; increases "
            f"{' and '.join(step.text(sign=True) for step in steps)}.",
        )

    return judged


def _to_fifty(queue: str, keeps: float) -> Judge:
    ours = {profile: CURVES[queue, RI_PLUS_O, profile] for profile in PROFILES}
    rates = levels("throughput", {profile: curve.at(50) for profile, curve in ours.items()})
    return of_statements({profile: curve.keeps_to(50, keeps) for profile, curve in ours.items()}).said(
        "RI+O at 50 %, Mbit/s, profile {rates}.", rates=rates.reads("{name:g} Mbit/s: {value}")
    )


LOAD = Axis("subscription_percent", "Subscription, %")
RATES = Axis("profile_mbps", "Profile", {rate: f"profile {rate:g} Mbit/s" for rate in PROFILES})
SHORT = Axis("profile_mbps", "Profile, Mbit/s", {rate: f"{rate:g}" for rate in PROFILES})

FIG3 = THIS.study(
    "fig3",
    title="Assured flows at growing subscription, three profile rates",
    source=f"{PAPER}, Figure 3",
    summary="20 best-effort flows, profiles of 0.5, 1 and 2 Mbit/s, 10 % to 100 % subscription, two queues",
    cells=[cell for curve in CURVES.values() for cell in curve.cells()],
    scenario=build,
    samples=curves.samples,
    published=[
        replace(value, factors={"queue": queue, **value.factors}) for queue in QUEUES for value in PRINTED
    ],
    judges={
        "rio-half": _limit(RIO, 0.5, contrasted=False),
        "rio-plus-out-half": _limit(RI_PLUS_O, 0.5, contrasted=False),
        "rio-one": _limit(RIO, 1.0, contrasted=True),
        "rio-plus-out-one": _limit(RI_PLUS_O, 1.0, contrasted=True),
        "rio-two": _at_both(_always_fails, {"": None}),
        "rio-plus-out-two": _limit(RI_PLUS_O, 2.0, contrasted=False),
        "similar-at-low-profile": _at_both(alike, ALIKE),
        "gap-grows-with-profile": _at_both(grows, {"": None}),
        "guaranteed-to-50": _at_both(_to_fifty, TOLERANCES),
    },
    tables=(
        *(
            Table(
                f"Subscription up to which assured flows keep their profile, %, {name}",
                {"holds_up_to": ""},
                curves.BY_READING,
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
    plots=[
        curves.plot(
            name=f"assured-{queue}",
            title=f"Throughput of an assured flow {name}",
            x=LOAD,
            facet=RATES,
            wanted={rate: rate for rate in PROFILES},
            where={"queue": queue},
            limits="holds_up_to",
            limits_where={"reading": "mean", "queue": queue},
            from_zero=False,
        )
        for queue, name in QUEUE_NAMES.items()
    ],
    summaries=curves.limits(CURVES.values(), never=0.0),
    default_runs=16,
)
