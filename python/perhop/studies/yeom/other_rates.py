"""Inverse-rate against RIO with other reserved rates: section 3.2 speaks of them and prints none."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from perhop.measures.fairness import rmse
from perhop.show.declared import Axis, Table
from perhop.statistics.judging import above, below
from perhop.studies.evidence import Sample
from perhop.studies.judges import of_runs
from perhop.studies.sampling import MBPS, mean_mbps
from perhop.studies.yeom.common import (
    INVERSE,
    PAPER,
    RIO,
    SCHEME_NAMES,
    SCHEMES,
    SETTING,
    THIS,
    class_targets,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from perhop.measures.run import Run
    from perhop.show.declared import Factors
    from perhop.studies.judges import Judge

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
    """Return how far the flows of each rate, and all together, are from their targets."""
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
    what: str, apart: Callable[[float], float], at: Sequence[int] = tuple(CAPACITY)
) -> Judge:
    """Judge what the highest rate of each set is off its target: less under inverse-rate than under RIO.

    Args:
        what: How the evidence names it.
        apart: What counts of rate less target.
        at: Levels of subscription.
    """
    found = of_runs(
        {
            f"{name} at {p} %": (
                lambda a, b: apart(a) - apart(b),
                *(("off_target", highest(name, p, scheme)) for scheme in (INVERSE, RIO)),
            )
            for name, p in itertools.product(SETS, at)
        }
    )
    return found.all(below).said(
        f"{what} of the highest rate, {SCHEME_NAMES[INVERSE]} − RIO, Mbit/s: {{:+}} ({{failing}})."
    )


def missing(off_target: float) -> float:
    """What a rate lacks of its target."""
    return max(0.0, -off_target)


def similar_trends() -> Judge:
    """Judge the highest rate's share of its target, less those of the lowest and of best effort."""
    leads = {
        f"{name} at {p} % over rate {rank}": (
            lambda a, b: a - b,
            ("share_of_target", highest(name, p, INVERSE)),
            ("share_of_target", {**highest(name, p, INVERSE), "rank": rank}),
        )
        for name, p in itertools.product(SETS, CAPACITY)
        for rank in (4, 5)
    }
    return of_runs(leads).all(above).said("Share of the target, lead of the highest rate: {:+.2}.")


CHOICES = Axis("set", "Reserved rates", {n: "/".join(f"{r:g}" for r in s) for n, s in SETS.items()})
RANKS = Axis("rank", "Flows", {n: f"rate {n}" for n in range(1, 6)})

OTHER_RATES = THIS.study(
    "other-rates",
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
    judges={
        "high-rates-closer": {
            "nearer to the target": high_rates_better("Distance to the target", abs),
            "lacking less of the target": high_rates_better("Shortfall from the target", missing),
            "nearer to the target at 90 %": high_rates_better("Distance to the target", abs, (90,)),
        },
        "similar-trends": similar_trends(),
    },
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
    extra=True,
    default_runs=20,
)
