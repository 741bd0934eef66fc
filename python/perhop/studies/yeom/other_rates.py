"""Inverse-rate against RIO with other reserved rates: section 3.2 speaks of them and prints none."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from perhop.judging import Judgement, all_of, below, judge
from perhop.measures import rmse
from perhop.studies.paper import claims
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
from perhop.study import Axis, Evidence, Sample, Study, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from perhop.runs import Run
    from perhop.study import Factors

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
        yield Sample(
            {**factors, "rank": rank}, "off_target", MBPS, value - targets[rate], least=-targets[rate]
        )
    yield Sample(factors, "rmse", MBPS, rmse(list(rates.values()), list(targets.values())))


def highest(name: str, percent: int, scheme: str) -> dict[str, Any]:
    """The factors of the flows of a set's highest rate."""
    return {"set": name, "subscription_percent": percent, "scheme": scheme, "rank": 1}


def high_rates_better(evidence: Evidence) -> Judgement:
    """The distance to the target of the highest rate: inverse-rate − RIO."""
    found = {}
    for name, percent in itertools.product(SETS, CAPACITY):
        ours, rios = (highest(name, percent, scheme) for scheme in (INVERSE, RIO))
        found[f"{name} at {percent} %"] = combined(
            evidence, lambda a, b: abs(a) - abs(b), ("off_target", ours), ("off_target", rios)
        )
    checks = {name: below(e) for name, e in found.items()}
    text = ", ".join(f"{name} {e.text(sign=True)}" for name, e in found.items())
    return judge(
        all_of(*checks.values()),
        f"Distance of the highest rate to its target, {SCHEME_NAMES[INVERSE]} − RIO, Mbit/s: {text} "
        f"({failing(checks)}).",
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
    claims=claims(STATEMENT.claims, {"high-rates-closer": high_rates_better}),
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
