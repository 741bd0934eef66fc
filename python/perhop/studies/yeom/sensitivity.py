"""The sensitivity of Table 1's rates: all its rows again, with one choice changed at a time.

The paper leaves these choices open. Which of its sentences depend on them says `perhop.studies.yeom.map`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from perhop.measures.fairness import rmse
from perhop.measures.run import Run
from perhop.show.declared import Axis, Factors, Plot, Reference, Row, tables
from perhop.statistics.judging import above, at_most
from perhop.studies.evidence import Evidence, Published, Sample
from perhop.studies.judges import Judge, Numbers, made
from perhop.studies.sampling import MBPS
from perhop.studies.yeom import common, ten_flows
from perhop.studies.yeom.common import ALL_SCHEMES, INVERSE, LIMIT, RIO, SETTING, TWO_WINDOWS, Setting

BASE = "unchanged"
QUICK = "marker window 0.1 s"
SLOW = "marker window 10 s"
DETERMINISTIC = "deterministic marker"
FOUR_THIRDS = "marker's 4/3 rule"
SMALL = "packets of 576 B"
LARGE = "packets of 1500 B"
UNLIMITED = "receiver window 1000 p"
FINE = "TCP clock 10 ms"

CHANGES: Mapping[str, Setting] = {
    BASE: SETTING,
    QUICK: replace(SETTING, window="100ms"),
    "marker window 0.5 s": replace(SETTING, window="500ms"),
    "marker window 2 s": replace(SETTING, window="2s"),
    SLOW: replace(SETTING, window="10s"),
    DETERMINISTIC: replace(SETTING, rule="deterministic"),
    FOUR_THIRDS: replace(SETTING, rule="four-thirds"),
    "two-windows' marker probabilistic": replace(SETTING, sender_rule="probabilistic"),
    "two-windows' marker window 0.4 s": replace(SETTING, sender_window="400ms"),
    "two-windows' marker window 1 s": replace(SETTING, sender_window="1s"),
    SMALL: replace(SETTING, packet=576),
    LARGE: replace(SETTING, packet=1500),
    "wait rule off": replace(SETTING, wait=False),
    "weight 0.0005": replace(SETTING, weight=0.0005),
    "weight 0.02": replace(SETTING, weight=0.02),
    "own-class averages": replace(SETTING, averages="own-class"),
    "receiver window 20 p": replace(SETTING, receiver_window=20),
    UNLIMITED: replace(SETTING, receiver_window=1000),
    FINE: replace(SETTING, tick="10ms"),
    "first timeout 3 s": replace(SETTING, initial_rto="3s"),
    "timeout at least 1 s": replace(SETTING, min_rto="1s"),
    "starts in the first second": replace(SETTING, start="0s..1s"),
}

UNDOING = ("two-windows' marker probabilistic", "two-windows' marker window 1 s", UNLIMITED, FINE)
"""Changes that take two-windows away from the printed rates."""
OTHER_MARKERS = (QUICK, SLOW, DETERMINISTIC, FOUR_THIRDS)
"""Changes that take RIO away from them."""


representative = common.alike(CHANGES)


def at(change: str, of: Factors) -> dict[str, Any]:
    """The factors of a number under a change."""
    return {"change": representative(change, str(of["scheme"])), **of}


def build(factors: Factors) -> Mapping[str, Any]:
    """Table 1's own scenario under the change."""
    return ten_flows.build(factors, CHANGES[str(factors["change"])])


def samples(factors: Factors, run: Run) -> Iterator[Sample]:
    """Table 1's rates, errors and use of the link."""
    kept = ("throughput", "rmse", "utilization")
    return (sample for sample in ten_flows.samples(factors, run) if sample.metric in kept)


def published() -> list[Published]:
    """Table 1's printed values, once for each change."""
    return [
        replace(value, factors={"change": change, **value.factors})
        for change in CHANGES
        for value in common.THIS.item("table1").values
        if representative(change, str(value.factors["scheme"])) == change
    ]


def gaps(evidence: Evidence) -> Iterator[Row]:
    """Distance to the published rates, and to the unchanged setting's."""
    for change in CHANGES:
        for scheme in ALL_SCHEMES:
            factors: Factors = {"change": change, "scheme": scheme}
            found = ten_flows.gap(evidence, scheme, {"change": representative(change, scheme)})
            yield evidence.row(factors, "difference_to_published", MBPS, found)
            if change != BASE:
                yield evidence.row(factors, "moved", MBPS, moved(evidence, change, scheme))


def moved(evidence: Evidence, change: str, scheme: str) -> float:
    """The move of a scheme's fifteen rates by a change: the root of the mean square, Mbit/s."""
    keys = [
        ten_flows.entry(scheme, percent, rate) for percent in ten_flows.CAPACITY for rate in common.PROFILES
    ]
    after, before = ([evidence.mean("throughput", at(name, key)) for key in keys] for name in (change, BASE))
    return rmse(after, before)


def _distances(scheme: str, *changes: str) -> Numbers:
    """The distance of a scheme's fifteen rates to the published ones under these changes, Mbit/s."""
    gap = partial(ten_flows.gap_estimate, scheme=scheme)
    return made({name: partial(gap, more={"change": representative(name, scheme)}) for name in changes})


def _taken_away(words: str, scheme: str, *changes: str) -> Judge:
    """Judge whether a scheme is near the published rates unchanged, and far under each of these changes."""
    near, away = _distances(scheme, BASE), _distances(scheme, *changes)
    return (near.all(at_most, LIMIT) & away.all(above, LIMIT)).said(
        f"{words}, difference to the published rates, Mbit/s: {{all}}.", all=near | away
    )


CHANGED = Axis("change", "Change", {change: change for change in CHANGES})

SENSITIVITY = common.THIS.study(
    "sensitivity",
    title="What Table 1's rates depend on",
    source=f"{common.PAPER}: settings that it leaves open",
    summary="Table 1 again with one choice changed at a time: marker, packets, RED, TCP",
    cells=[
        {"change": change, **common.cell(scheme, percent)}
        for change in CHANGES
        for percent in ten_flows.CAPACITY
        for scheme in ALL_SCHEMES
        if representative(change, scheme) == change
    ],
    scenario=build,
    samples=samples,
    published=published(),
    judges={
        "two-windows-needs-its-marker": _taken_away("Two-windows", TWO_WINDOWS, *UNDOING),
        "marker-moves-rio": _taken_away("RIO", RIO, *OTHER_MARKERS),
        "packets-move-inverse": _distances(INVERSE, SMALL, LARGE)
        .all(above, LIMIT)
        .said("Inverse-rate, difference to the published rates, Mbit/s: {}."),
    },
    tables=[
        *tables(
            CHANGED,
            (common.SCHEMES,),
            (
                "Fifteen published rates of a scheme: root-mean-square difference to our means, Mbit/s",
                "difference_to_published",
                3,
            ),
            (
                "By how much a change moves the fifteen rates of a scheme, root mean square, Mbit/s",
                "moved",
                3,
            ),
        )
    ],
    plots=(
        Plot(
            id="distance",
            title="Distance to the published rates with one choice changed",
            kind="dots",
            metric="difference_to_published",
            x=CHANGED,
            series=common.SCHEMES,
            y_label="root-mean-square difference of fifteen rates, Mbit/s",
            references=(Reference("limit", "change", dict.fromkeys(CHANGES, LIMIT)),),
        ),
    ),
    summaries=gaps,
    extra=True,
    default_runs=10,
)
