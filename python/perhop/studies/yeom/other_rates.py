"""Inverse-rate against RIO with other reserved rates: section 3.2 speaks of them and prints none."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from perhop.measures.fairness import rmse
from perhop.measures.run import Run
from perhop.show.declared import Axis, Factors, Table
from perhop.statistics.judging import above, below
from perhop.studies.evidence import Sample
from perhop.studies.judges import Judge, of_pairs
from perhop.studies.sampling import MBPS, mean_mbps
from perhop.studies.yeom import common
from perhop.studies.yeom.common import INVERSE, RIO, SCHEME_NAMES, SCHEMES, SETTING

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


def build(factors: Factors) -> Mapping[str, Any]:
    """Two flows of each rate."""
    scheme, percent = str(factors["scheme"]), int(factors["subscription_percent"])
    entries = [
        SETTING.tcp(scheme, f"profile-{rate:g}", rate, count=COUNT) for rate in SETS[str(factors["set"])]
    ]
    return SETTING.scenario("Yeom and Reddy, other reserved rates", scheme, CAPACITY[percent], entries)


def samples(factors: Factors, run: Run) -> Iterator[Sample]:
    """Return how far the flows of each rate, and all together, are from their targets."""
    profiles, capacity = SETS[str(factors["set"])], CAPACITY[int(factors["subscription_percent"])]
    targets = common.class_targets(profiles, COUNT, capacity)
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
    """Judge whether of the highest rate less its target so much is less under inverse-rate than under RIO."""
    pairs = {
        f"{name} at {p} %": (highest(name, p, INVERSE), highest(name, p, RIO))
        for name, p in itertools.product(SETS, at)
    }
    found = of_pairs(lambda a, b: apart(a) - apart(b), "off_target", pairs)
    return found.all(below).said(
        f"{what} of the highest rate, {SCHEME_NAMES[INVERSE]} − RIO, Mbit/s: {{:+}} ({{failing}})."
    )


def similar_trends() -> Judge:
    """Judge the highest rate's share of its target, less those of the lowest and of best effort."""
    pairs = {
        f"{name} at {p} % over rate {rank}": (
            highest(name, p, INVERSE),
            {**highest(name, p, INVERSE), "rank": rank},
        )
        for name, p in itertools.product(SETS, CAPACITY)
        for rank in (4, 5)
    }
    found = of_pairs(lambda a, b: a - b, "share_of_target", pairs)
    return found.all(above).said("Share of the target, lead of the highest rate: {:+.2}.")


CHOICES = Axis("set", "Reserved rates", {n: "/".join(f"{r:g}" for r in s) for n, s in SETS.items()})
RANKS = Axis("rank", "Flows", {n: f"rate {n}" for n in range(1, 6)})

OTHER_RATES = common.THIS.study(
    "other-rates",
    title="Inverse-rate with other reserved rates",
    source=f"{common.PAPER}, section 3.2",
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
            "lacking less of the target": high_rates_better(
                "Shortfall from the target", lambda off_target: max(0.0, -off_target)
            ),
            "nearer to the target at 90 %": high_rates_better("Distance to the target", abs, (90,)),
        },
        "similar-trends": similar_trends(),
    },
    tables=[
        Table(
            f"Rate less target at {percent} %, Mbit/s, from the highest reserved rate to best effort",
            {"off_target": ""},
            CHOICES,
            (SCHEMES, RANKS),
            where={"subscription_percent": percent},
        )
        for percent in CAPACITY
    ],
    plots=(),
    extra=True,
    default_runs=20,
)
