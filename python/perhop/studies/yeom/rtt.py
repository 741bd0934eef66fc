"""Tables 2 and 3: flows of five round-trip times, at 75 % and 25 % subscription."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from perhop.measures.fairness import (
    differentiation,
    differentiation_by_rtt,
    fairness,
    fairness_by_rtt,
    jain_index,
    reservation_success,
    rmse,
    utilization,
)
from perhop.studies.evidence import Sample
from perhop.studies.sampling import MBPS, mean_mbps
from perhop.studies.yeom.common import (
    COMPARED,
    SETTING,
    THREE_DROP,
    Setting,
    cell,
    class_targets,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from perhop.measures.run import Run
    from perhop.show.declared import Factors

PROFILES = (0.0, 0.5, 1.0)
"""Reserved rates in Mbit/s, at each round-trip time one flow of each."""
RTTS = (20, 40, 60, 80, 100)
"""Propagation round-trip times in ms."""
CAPACITY = {75: 10.0, 25: 30.0}
"""Rate of the bottleneck in Mbit/s by subscription in percent."""
TARGETS = {percent: class_targets(PROFILES, len(RTTS), c) for percent, c in CAPACITY.items()}
BOTTLENECK_MS = 8.0
"""So that a round trip of 20 ms is possible."""


CELLS: Sequence[dict[str, Any]] = [cell(scheme, percent) for percent in CAPACITY for scheme in COMPARED]


def entry(scheme: str, percent: int, profile: float, rtt: int) -> dict[str, Any]:
    """The factors of one flow."""
    return {**cell(scheme, percent), "profile_mbps": profile, "rtt_ms": rtt}


def network(setting: Setting, scheme: str, percent: int) -> dict[str, Any]:
    """Fifteen flows."""
    short = replace(setting, bottleneck_ms=BOTTLENECK_MS)
    entries = [
        short.tcp(scheme, flow_name(profile, rtt), profile, rtt_ms=rtt)
        for profile in PROFILES
        for rtt in RTTS
    ]
    return short.scenario("Yeom and Reddy, Table 2", scheme, CAPACITY[percent], entries)


def build(factors: Factors, setting: Setting = SETTING) -> Mapping[str, Any]:
    """The setting of one row."""
    return network(setting, str(factors["scheme"]), int(factors["subscription_percent"]))


def flow_name(profile: float, rtt: int) -> str:
    """The flow entry of one class and round-trip time."""
    return f"profile-{profile:g}-rtt-{rtt}"


def rates(run: Run) -> dict[float, list[float]]:
    """Rate of each flow in Mbit/s, by class, in the order of rising round-trip times."""
    return {profile: [mean_mbps(run, flow_name(profile, rtt)) for rtt in RTTS] for profile in PROFILES}


def table2_samples(factors: Factors, run: Run) -> Iterator[Sample]:
    """The rate of every flow."""
    for profile, values in rates(run).items():
        for rtt, value in zip(RTTS, values, strict=True):
            yield Sample({**factors, "profile_mbps": profile, "rtt_ms": rtt}, "throughput", MBPS, value)
    if factors["scheme"] == THREE_DROP:
        names = [flow_name(profile, rtt) for profile in PROFILES[1:] for rtt in RTTS]
        _, out_in, out_out = np.sum([run.of_group(name, "marked")[0] for name in names], axis=0)
        if out := float(out_in + out_out):
            yield Sample(factors, "out_out_share", "fraction", float(out_out) / out, out)


def table3_samples(factors: Factors, run: Run) -> Iterator[Sample]:
    """The paper's measures, both readings of fairness and of differentiation, and Jain's index."""
    percent = int(factors["subscription_percent"])
    classes = rates(run)
    values = [value for group in classes.values() for value in group]
    wanted = [TARGETS[percent][profile] for profile in classes for _ in RTTS]
    yield from table2_samples(factors, run)
    yield Sample(factors, "rmse", MBPS, rmse(values, wanted))
    yield Sample(factors, "utilization", "fraction", utilization(values, CAPACITY[percent]))
    reached = reservation_success(values, [profile for profile in classes for _ in RTTS])
    ratios: list[tuple[str, float | None, float | None]] = [
        ("reservation_success", None, reached),
        ("jain_index", None, jain_index(values, wanted)),
    ]
    for profile, group in classes.items():
        ratios.append(("fairness", profile, fairness(group)))
        ratios.append(("fairness_by_rtt", profile, fairness_by_rtt(group)))
    for lower, higher in itertools.pairwise(PROFILES):
        ratios.append(("differentiation", higher, differentiation(classes[higher], classes[lower])))
        ratios.append(
            ("differentiation_by_rtt", higher, differentiation_by_rtt(classes[higher], classes[lower]))
        )
    units = {"reservation_success": "fraction", "jain_index": "index"}
    for metric, of, value in ratios:
        if value is not None:
            named = factors if of is None else {**factors, "profile_mbps": of}
            of_flows = 1.0 if metric == "reservation_success" else None
            yield Sample(named, metric, units.get(metric, "ratio"), value, of_flows)
