"""Figure 3: twenty best-effort flows against assured flows that subscribe 10 % to 100 % of the link."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from perhop.judging import Judgement, by_interval
from perhop.statistics import estimate, paired_difference
from perhop.studies.kim.common import (
    ASSURED,
    CAPACITY_MBPS,
    PAPER,
    SCHEMES,
    Curve,
    stated,
)
from perhop.studies.kim.regime import network, samples
from perhop.studies.paper import claims
from perhop.study import Axis, Evidence, Plot, Reference, Study, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from perhop.study import Factors, Row

BEST_EFFORT_FLOWS = 20
PROFILES = (0.5, 1.0, 2.0)
"""Profile rates, Mbit/s."""
LEVELS = tuple(range(10, 101, 10))
"""Subscription, percent of the link."""
ALIKE = 0.05
"""Two schemes that differ by less than this fraction of the profile, at every level, count as alike."""

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
    profile = float(cell["profile_mbps"])
    assured = round(float(cell["subscription_percent"]) / 100 * CAPACITY_MBPS / profile)
    return network("Kim et al., Figure 3", str(cell["scheme"]), assured, profile, BEST_EFFORT_FLOWS)


def limits(evidence: Evidence) -> Iterator[Row]:
    """Up to which subscription each curve keeps its promise."""
    for curve in CURVES.values():
        yield from curve.rows(evidence, never=0.0)


def always_fails(evidence: Evidence) -> Judgement:
    """RIO misses the 2 Mbit/s profile at every level."""
    found = CURVES["rio", 2.0].estimates(evidence)
    kept = [level for level, e in zip(LEVELS, found, strict=True) if e.mean >= 2.0]
    text = ", ".join(f"{level} %: {e.mean:.3f}" for level, e in zip(LEVELS, found, strict=True))
    kept_text = ", ".join(f"{level} %" for level in kept) or "none"
    return Judgement(
        not kept, f"Levels where the mean reaches the profile: {kept_text}. Mbit/s by level, {text}."
    )


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
    """At 0.5 Mbit/s the two schemes differ by less than a twentieth of the profile at every level."""
    profile = PROFILES[0]
    found = {
        level: evidence.difference(
            "throughput", CURVES["rio-plus-out", profile].at(level), CURVES["rio", profile].at(level)
        )
        for level in LEVELS
    }
    sizes = [abs(e.mean) / profile for e in found.values()]
    text = ", ".join(f"{level} %: {_percent(e.mean / profile)}" for level, e in found.items())
    return Judgement(
        max(sizes) < ALIKE,
        f"RI+O − RIO in percent of the profile, at {text}; the largest is {max(sizes) * 100:.1f} %, "
        f"the mean of the sizes {sum(sizes) / len(sizes) * 100:.1f} %.",
    )


def grows(evidence: Evidence) -> Judgement:
    """The gap in Mbit/s rises with the profile rate, each time with the interval of the paired increase."""
    gaps = {profile: gap(evidence, profile) for profile in PROFILES}
    found = {profile: estimate(list(by_seed.values())) for profile, by_seed in gaps.items()}
    text = "; ".join(
        f"{profile:g} Mbit/s: {e.text(sign=True)} ({_percent(e.mean / profile)} of the profile)"
        for profile, e in found.items()
    )
    steps = {
        (less, more): paired_difference(gaps[more], gaps[less]) for less, more in itertools.pairwise(PROFILES)
    }
    rises = "; ".join(f"from {a:g} to {b:g} Mbit/s {e.text(sign=True)}" for (a, b), e in steps.items())
    return by_interval(
        steps.values(),
        f"RI+O − RIO, mean over the levels, {text}. Increase, {rises} Mbit/s.",
        holds=all(e.low > 0 for e in steps.values()),
    )


def _percent(share: float) -> str:
    return f"{share * 100:+.1f} %".replace("-", "−")


def to_fifty(evidence: Evidence) -> Judgement:
    """RI+O keeps all three profiles up to 50 %."""
    found = {profile: CURVES["rio-plus-out", profile].limit(evidence) for profile in PROFILES}
    text = ", ".join(
        f"{p:g} Mbit/s: {'never' if level is None else f'{level} %'}" for p, level in found.items()
    )
    return Judgement(
        all((level or 0) >= 50 for level in found.values()), f"RI+O holds by the mean up to, {text}."
    )


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
            "rio-half": CURVES["rio", 0.5].judge,
            "rio-plus-out-half": CURVES["rio-plus-out", 0.5].judge,
            "rio-one": CURVES["rio", 1.0].judge,
            "rio-plus-out-one": CURVES["rio-plus-out", 1.0].judge,
            "rio-two": always_fails,
            "rio-plus-out-two": CURVES["rio-plus-out", 2.0].judge,
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
)
