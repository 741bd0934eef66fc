"""Inverse-rate against RIO with other reserved rates: section 3.2 speaks of them and prints none."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from perhop.measures.fairness import rmse
from perhop.show.declared import Axis, Table
from perhop.statistics.judging import Judgement, above, all_of, below, judge
from perhop.studies.evidence import Evidence, Sample
from perhop.studies.paper import claims
from perhop.studies.study import Study
from perhop.studies.yeom.common import (
    INVERSE,
    MBPS,
    PAPER,
    RIO,
    SCHEME_NAMES,
    SCHEMES,
    SETTING,
    class_targets,
    combined,
    failing,
    mean_mbps,
    stated,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from perhop.measures.run import Run
    from perhop.show.declared import Factors

COUNT = 2
"""Flows of each rate."""
SETS: Mapping[str, tuple[float, ...]] = {
    "even": (1.8, 0.9, 0.6, 0.3, 0.0),
    "wide": (2.5, 0.8, 0.2, 0.1, 0.0),
    "narrow": (1.2, 1.0, 0.8, 0.6, 0.0),
}
"""Reserved rates in Mbit/s by the name of their set; each adds up to 7.2 Mbit/s, as Table 1's."""
CAPACITY = {60: 12.0, 90: 8.0}
"""Rate of the bottleneck in Mbit/s by subscription in percent."""

STATEMENT = stated("other-rates")


def wanted(name: str, percent: int) -> dict[float, float]:
    """The target of each rate of a set, Mbit/s."""
    return class_targets(SETS[name], COUNT, CAPACITY[percent])


def build(factors: Factors) -> Mapping[str, Any]:
    """Two flows of each rate."""
    scheme, percent = str(factors["scheme"]), int(factors["subscription_percent"])
    entries = [
        SETTING.tcp(scheme, f"profile-{rate:g}", rate, count=COUNT) for rate in SETS[str(factors["set"])]
    ]
    return SETTING.scenario("Yeom and Reddy, other reserved rates", scheme, CAPACITY[percent], entries)


def samples(factors: Factors, run: Run) -> Iterator[Sample]:
    """How far the flows of each rate, and all together, are from their targets."""
    targets = wanted(str(factors["set"]), int(factors["subscription_percent"]))
    rates = {rate: mean_mbps(run, f"profile-{rate:g}") for rate in targets}
    for rank, (rate, value) in enumerate(rates.items(), start=1):
        named = {**factors, "rank": rank}
        yield Sample(named, "off_target", MBPS, value - targets[rate], least=-targets[rate])
        yield Sample(named, "share_of_target", "ratio", value / targets[rate])
    yield Sample(factors, "rmse", MBPS, rmse(list(rates.values()), list(targets.values())))


def highest(name: str, percent: int, scheme: str) -> dict[str, Any]:
    """The factors of the flows of a set's highest rate."""
    return {"set": name, "subscription_percent": percent, "scheme": scheme, "rank": 1}


def high_rates_better(
    what: str, apart: Callable[[float], float], levels: Sequence[int] = tuple(CAPACITY)
) -> Callable[[Evidence], Judgement]:
    """A claim on what the highest rate of each set is off its target: less under inverse-rate than under RIO.

    Args:
        what: How the evidence names it.
        apart: What counts of rate less target.
        levels: Of subscription.
    """

    def judged(evidence: Evidence) -> Judgement:
        found = {}
        for name, percent in itertools.product(SETS, levels):
            ours, rios = (highest(name, percent, scheme) for scheme in (INVERSE, RIO))
            found[f"{name} at {percent} %"] = combined(
                evidence, lambda a, b: apart(a) - apart(b), ("off_target", ours), ("off_target", rios)
            )
        checks = {name: below(e) for name, e in found.items()}
        text = ", ".join(f"{name} {e.text(sign=True)}" for name, e in found.items())
        return judge(
            all_of(*checks.values()),
            f"{what} of the highest rate, {SCHEME_NAMES[INVERSE]} − RIO, Mbit/s: {text} ({failing(checks)}).",
        )

    return judged


def missing(off_target: float) -> float:
    """What a rate lacks of its target."""
    return max(0.0, -off_target)


def similar_trends(evidence: Evidence) -> Judgement:
    """The highest rate's share of its target, less those of the lowest reserved rate and of best effort."""
    found = {
        f"{name} at {percent} % over rate {rank}": combined(
            evidence,
            lambda a, b: a - b,
            ("share_of_target", highest(name, percent, INVERSE)),
            ("share_of_target", {**highest(name, percent, INVERSE), "rank": rank}),
        )
        for name, percent in itertools.product(SETS, CAPACITY)
        for rank in (4, 5)
    }
    text = ", ".join(f"{name} {e.text(2, sign=True)}" for name, e in found.items())
    return judge(
        all_of(*(above(e) for e in found.values())), f"Share of the target, lead of the highest rate: {text}."
    )


CHOICES = Axis("set", "Reserved rates", {n: "/".join(f"{r:g}" for r in s) for n, s in SETS.items()})
RANKS = Axis("rank", "Flows", {n: f"rate {n}" for n in range(1, 6)})

OTHER_RATES = Study(
    id="yeom-other-rates",
    title="Inverse-rate with other reserved rates",
    source=f"{PAPER}, section 3.2",
    summary="three other sets of reserved rates of the same sum, under RIO and inverse-rate",
    cells=[
        {"set": name, "subscription_percent": percent, "scheme": scheme}
        for name in SETS
        for percent in CAPACITY
        for scheme in (RIO, INVERSE)
    ],
    scenario=build,
    samples=samples,
    published=STATEMENT.values,
    claims=claims(
        STATEMENT.claims,
        {
            "high-rates-closer": {
                "nearer to the target": high_rates_better("Distance to the target", abs),
                "lacking less of the target": high_rates_better("Shortfall from the target", missing),
                "nearer to the target at 90 %": high_rates_better("Distance to the target", abs, (90,)),
            },
            "similar-trends": similar_trends,
        },
    ),
    tables=tuple(
        Table(
            f"Rate less target at {percent} %, Mbit/s, from the highest reserved rate to best effort",
            {"off_target": ""},
            CHOICES,
            (SCHEMES, RANKS),
            where={"subscription_percent": percent},
        )
        for percent in CAPACITY
    ),
    plots=(),
    notes=STATEMENT.notes,
    method=STATEMENT.method,
    assumptions=STATEMENT.assumptions,
    extra=True,
    default_runs=20,
)
