"""What Table 1's rates hang on: all its rows again, with one choice changed at a time.

The paper leaves these choices open. Which of its sentences hang on them says `perhop.studies.yeom.map`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from perhop.measures.fairness import rmse
from perhop.show.declared import Axis, Plot, Reference, Row, Table
from perhop.statistics.judging import Judgement, above, all_of, at_most, judge
from perhop.studies.evidence import Published
from perhop.studies.sampling import MBPS
from perhop.studies.yeom import ten_flows
from perhop.studies.yeom.common import (
    ALL_SCHEMES,
    INVERSE,
    LIMIT,
    PAPER,
    PROFILES,
    RIO,
    SCHEMES,
    SETTING,
    THIS,
    TWO_WINDOWS,
    Setting,
    cell,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from perhop.measures.run import Run
    from perhop.show.declared import Factors
    from perhop.statistics.intervals import Estimate
    from perhop.studies.evidence import Evidence, Sample

RUNS = 10
BASE = "unchanged"
QUICK = "marker window 0.1 s"
SLOW = "marker window 10 s"
DETERMINISTIC = "deterministic marker"
FOUR_THIRDS = "marker's 4/3 rule"
SMALL = "packets of 576 B"
NO_WAIT = "wait rule off"
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
    NO_WAIT: replace(SETTING, wait=False),
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


def representative(change: str, scheme: str) -> str:
    """The first change under which a scheme's runs are the same as under the named one."""
    return _first(scheme)[CHANGES[change].as_seen_by(scheme)]


@cache
def _first(scheme: str) -> Mapping[Setting, str]:
    """The first change of all that a scheme cannot tell apart."""
    named: dict[Setting, str] = {}
    for change, setting in CHANGES.items():
        named.setdefault(setting.as_seen_by(scheme), change)
    return named


def at(change: str, of: Factors) -> dict[str, Any]:
    """The factors of a number under a change."""
    return {"change": representative(change, str(of["scheme"])), **of}


def build(factors: Factors) -> Mapping[str, Any]:
    """Table 1's own scenario under the change."""
    setting = CHANGES[str(factors["change"])]
    return ten_flows.network(setting, str(factors["scheme"]), int(factors["subscription_percent"]))


def samples(factors: Factors, run: Run) -> Iterator[Sample]:
    """Table 1's rates, errors and use of the link."""
    kept = ("throughput", "rmse", "utilization")
    return (sample for sample in ten_flows.samples(factors, run) if sample.metric in kept)


def published() -> list[Published]:
    """Table 1's printed values, once for each change."""
    return [
        Published({"change": change, **value.factors}, value.metric, value.value)
        for change in CHANGES
        for value in THIS.item("table1").values
        if representative(change, str(value.factors["scheme"])) == change
    ]


def gap(evidence: Evidence, change: str, scheme: str) -> float:
    """Distance of a scheme's fifteen rates to the published ones, Mbit/s."""
    return ten_flows.gap(evidence, scheme, {"change": representative(change, scheme)})


def gaps(evidence: Evidence) -> Iterator[Row]:
    """Distance to the published rates, and to the unchanged setting's."""
    for change in CHANGES:
        for scheme in ALL_SCHEMES:
            factors: Factors = {"change": change, "scheme": scheme}
            found = gap(evidence, change, scheme)
            yield Row(factors, "difference_to_published", MBPS, None, found, None, evidence.runs)
            if change != BASE:
                yield Row(factors, "moved", MBPS, None, moved(evidence, change, scheme), None, evidence.runs)


def moved(evidence: Evidence, change: str, scheme: str) -> float:
    """The move of a scheme's fifteen rates by a change: the root of the mean square, Mbit/s."""
    keys = [ten_flows.entry(scheme, percent, rate) for percent in ten_flows.CAPACITY for rate in PROFILES]
    after, before = ([evidence.mean("throughput", at(name, key)) for key in keys] for name in (change, BASE))
    return rmse(after, before)


def gap_estimate(evidence: Evidence, change: str, scheme: str) -> Estimate:
    """The distance with an interval."""
    return ten_flows.gap_estimate(evidence, scheme, {"change": representative(change, scheme)})


def two_windows_needs_its_marker(evidence: Evidence) -> Judgement:
    """Two-windows unchanged, and under the changes that take it away."""
    found = {change: gap_estimate(evidence, change, TWO_WINDOWS) for change in (BASE, *UNDOING)}
    checks = [at_most(found[BASE], LIMIT), *(above(found[change], LIMIT) for change in UNDOING)]
    return judge(all_of(*checks), _distances("Two-windows", found))


def marker_moves_rio(evidence: Evidence) -> Judgement:
    """RIO under four changes of the marker."""
    found = {change: gap_estimate(evidence, change, RIO) for change in (BASE, *OTHER_MARKERS)}
    checks = [at_most(found[BASE], LIMIT), *(above(found[change], LIMIT) for change in OTHER_MARKERS)]
    return judge(all_of(*checks), _distances("RIO", found))


def packets_move_inverse(evidence: Evidence) -> Judgement:
    """Inverse-rate under two changes."""
    found = {change: gap_estimate(evidence, change, INVERSE) for change in (SMALL, LARGE)}
    return judge(all_of(*(above(e, LIMIT) for e in found.values())), _distances("Inverse-rate", found))


def _distances(scheme: str, found: Mapping[str, Estimate]) -> str:
    text = ", ".join(f"{change} {e.text()}" for change, e in found.items())
    return f"{scheme}, difference to the published rates, Mbit/s: {text}."


CHANGED = Axis("change", "Change", {change: change for change in CHANGES})

SENSITIVITY = THIS.study(
    "sensitivity",
    title="What Table 1's rates hang on",
    source=f"{PAPER}: settings that it leaves open",
    summary="Table 1 again with one choice changed at a time: marker, packets, RED, TCP",
    cells=[
        {"change": change, **cell(scheme, percent)}
        for change in CHANGES
        for percent in ten_flows.CAPACITY
        for scheme in ALL_SCHEMES
        if representative(change, scheme) == change
    ],
    scenario=build,
    samples=samples,
    published=published(),
    judges={
        "two-windows-needs-its-marker": two_windows_needs_its_marker,
        "marker-moves-rio": marker_moves_rio,
        "packets-move-inverse": packets_move_inverse,
    },
    tables=(
        Table(
            "Fifteen published rates of a scheme: root-mean-square difference to our means, Mbit/s",
            {"difference_to_published": ""},
            CHANGED,
            (SCHEMES,),
        ),
        Table(
            "By how much a change moves the fifteen rates of a scheme, root mean square, Mbit/s",
            {"moved": ""},
            CHANGED,
            (SCHEMES,),
        ),
    ),
    plots=(
        Plot(
            id="distance",
            title="Distance to the published rates with one choice changed",
            kind="dots",
            metric="difference_to_published",
            x=CHANGED,
            series=SCHEMES,
            y_label="root-mean-square difference of fifteen rates, Mbit/s",
            references=(Reference("limit", "change", dict.fromkeys(CHANGES, LIMIT)),),
        ),
    ),
    summaries=gaps,
    extra=True,
    default_runs=RUNS,
)
