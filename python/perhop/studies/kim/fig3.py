"""Figure 3: twenty best-effort flows against assured flows that subscribe 10 % to 100 % of the link.

The paper does not say which queue this is. It is judged on that of section 3's general setting, which has the
figure's twenty best-effort flows; `kim-fig3-queue` has the one of the paragraph before, Figure 2's.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from perhop.judging import above, all_of, judge, within
from perhop.statistics import estimate, paired_difference
from perhop.studies.kim.common import (
    ASSURED,
    CAPACITY_MBPS,
    PAPER,
    SCHEMES,
    Curve,
    scaled,
    stated,
)
from perhop.studies.kim.regime import LARGE, SMALL, network, samples
from perhop.studies.paper import claims
from perhop.study import Axis, Evidence, Plot, Reference, Study, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from perhop.judging import Judgement
    from perhop.studies.kim.regime import Queue
    from perhop.study import Factors, Row

BEST_EFFORT_FLOWS = 20
PROFILES = (0.5, 1.0, 2.0)
"""Profile rates, Mbit/s."""
LEVELS = tuple(range(10, 101, 10))
"""Subscription, percent of the link."""
ALIKE = 0.1
"""Two schemes whose throughput differs by less than this fraction, at every level, count as similar."""

STATEMENT = stated("fig3")
CURVES = {
    (scheme, profile): Curve(
        {"scheme": scheme, "profile_mbps": profile}, "subscription_percent", LEVELS, profile, " %"
    )
    for profile in PROFILES
    for scheme in ("rio", "rio-plus-out")
}


def build(cell: Factors) -> Mapping[str, Any]:
    """The setting of one point: as many flows as fill the level."""
    return _setting(cell, LARGE)


def build_small(cell: Factors) -> Mapping[str, Any]:
    """The same at Figure 2's queue."""
    return _setting(cell, SMALL)


def _setting(cell: Factors, queue: Queue) -> Mapping[str, Any]:
    profile = float(cell["profile_mbps"])
    assured = round(float(cell["subscription_percent"]) / 100 * CAPACITY_MBPS / profile)
    return network(
        "Kim et al., Figure 3",
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


def always_fails(evidence: Evidence) -> Judgement:
    """RIO misses the 2 Mbit/s profile at every level."""
    curve = CURVES["rio", 2.0]
    text = ", ".join(
        f"{level} %: {e.text()}" for level, e in zip(LEVELS, curve.estimates(evidence), strict=True)
    )
    return judge(curve.fails(evidence), f"Mbit/s by level, {text}.")


def gap(evidence: Evidence, profile: float) -> dict[int, float]:
    """RI+O − RIO averaged over the levels, by seed, Mbit/s."""
    ours, rio = (
        [evidence.by_seed("throughput", CURVES[scheme, profile].at(level)) for level in LEVELS]
        for scheme in ("rio-plus-out", "rio")
    )
    seeds = sorted(ours[0])
    return {
        seed: sum(a[seed] - b[seed] for a, b in zip(ours, rio, strict=True)) / len(LEVELS) for seed in seeds
    }


def alike(evidence: Evidence) -> Judgement:
    """At 0.5 Mbit/s what the two schemes give differs by little at every level."""
    profile = PROFILES[0]
    rio, ours = (CURVES[scheme, profile] for scheme in ("rio", "rio-plus-out"))
    found = {
        level: scaled(
            evidence.difference("throughput", ours.at(level), rio.at(level)),
            1 / evidence.mean("throughput", rio.at(level)),
        )
        for level in LEVELS
    }
    text = ", ".join(f"{level} %: {_percent(e.mean)}" for level, e in found.items())
    return judge(
        all_of(*(within(e, -ALIKE, ALIKE) for e in found.values())),
        f"RI+O − RIO in percent of what RIO gives, at {text}.",
    )


def grows(evidence: Evidence) -> Judgement:
    """The gap in Mbit/s rises with the profile rate, each time with the interval of the paired increase."""
    gaps = {profile: gap(evidence, profile) for profile in PROFILES}
    steps = [paired_difference(gaps[b], gaps[a]) for a, b in itertools.pairwise(PROFILES)]
    means = ", ".join(
        f"{profile:g} Mbit/s: {estimate([v for _, v in sorted(found.items())]).text(sign=True)}"
        for profile, found in gaps.items()
    )
    return judge(
        all_of(*(above(step) for step in steps)),
        f"Mean of RI+O − RIO over the levels, Mbit/s, {means}; increases "
        f"{' and '.join(step.text(sign=True) for step in steps)}.",
    )


def to_fifty(evidence: Evidence) -> Judgement:
    """RI+O keeps all three profiles up to 50 %."""
    curves = {profile: CURVES["rio-plus-out", profile] for profile in PROFILES}
    text = ", ".join(
        f"{p:g} Mbit/s: {evidence.estimate('throughput', curve.at(50)).text()}" for p, curve in curves.items()
    )
    return judge(
        all_of(*(curve.keeps_to(evidence, 50) for curve in curves.values())),
        f"RI+O at 50 %, Mbit/s, profile {text}.",
    )


def _percent(fraction: float) -> str:
    return f"{fraction * 100:+.1f} %".replace("-", "−")


LOAD = Axis("subscription_percent", "Subscription, %")
RATES = Axis("profile_mbps", "Profile", {rate: f"profile {rate:g} Mbit/s" for rate in PROFILES})
SHORT = Axis("profile_mbps", "Profile, Mbit/s", {rate: f"{rate:g}" for rate in PROFILES})
READINGS = Axis("reading", "Reading", {"mean": "by the mean", "interval": "by the interval"})

FIG3 = Study(
    id="kim-fig3",
    title="Assured flows at growing subscription, three profile rates",
    source=f"{PAPER}, Figure 3",
    summary="20 best-effort flows, profiles of 0.5, 1 and 2 Mbit/s, 10 % to 100 % subscription",
    cells=[
        {"scheme": scheme, "profile_mbps": profile, "subscription_percent": level}
        for profile in PROFILES
        for scheme in ("rio", "rio-plus-out")
        for level in LEVELS
    ],
    scenario=build,
    samples=samples,
    published=STATEMENT.values,
    claims=claims(
        STATEMENT.claims,
        {
            "rio-half": CURVES["rio", 0.5].judge_kept,
            "rio-plus-out-half": CURVES["rio-plus-out", 0.5].judge_kept,
            "rio-one": CURVES["rio", 1.0].judge,
            "rio-plus-out-one": CURVES["rio-plus-out", 1.0].judge,
            "rio-two": always_fails,
            "rio-plus-out-two": CURVES["rio-plus-out", 2.0].judge_kept,
            "similar-at-low-profile": alike,
            "gap-grows-with-profile": grows,
            "guaranteed-to-50": to_fifty,
        },
    ),
    tables=(
        Table(
            "Subscription up to which assured flows keep their profile, %",
            {"holds_up_to": ""},
            READINGS,
            (SHORT, SCHEMES),
            digits=0,
        ),
        Table(
            "Throughput of an assured flow, Mbit/s, by profile and subscription (%)",
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
            facet=RATES,
            where={"class": ASSURED},
            references=(Reference("profile", "profile_mbps", {rate: rate for rate in PROFILES}),),
            limits="holds_up_to",
            limits_where={"reading": "mean"},
            from_zero=False,
        ),
    ),
    notes=STATEMENT.notes,
    method=STATEMENT.method,
    assumptions=STATEMENT.assumptions,
    summaries=limits,
    default_runs=16,
)

SMALL_STATEMENT = stated("fig3-queue")

FIG3_QUEUE = replace(
    FIG3,
    id="kim-fig3-queue",
    title="Figure 3 at the queue of Figure 2",
    source=f"{PAPER}, Figure 3: its queue, which it does not state",
    summary="the cells of kim-fig3 at Figure 2's queue of 200 packets, with packets of 1000 bytes",
    scenario=build_small,
    claims=claims(
        SMALL_STATEMENT.claims,
        {
            "rio-keeps-2": lambda evidence: judge(
                CURVES["rio", 2.0].keeps_to(evidence, 10),
                f"RIO at 10 %: {evidence.estimate('throughput', CURVES['rio', 2.0].at(10)).text()} Mbit/s, "
                "one flow against twenty.",
            ),
            "same-order": lambda evidence: judge(
                all_of(
                    *(
                        above(estimate([v for _, v in sorted(gap(evidence, profile).items())]))
                        for profile in PROFILES[1:]
                    )
                ),
                grows(evidence).evidence,
            ),
        },
    ),
    notes=SMALL_STATEMENT.notes,
    assumptions=SMALL_STATEMENT.assumptions,
    extra=True,
    default_runs=6,
)
