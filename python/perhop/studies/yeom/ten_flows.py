"""Table 1's setting, two flows of each of five rates on three links, and what is sampled of a run."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from perhop.measures.fairness import jain_index, reservation_success, rmse, utilization
from perhop.show.declared import Axis, Row
from perhop.studies.evidence import Evidence, Sample
from perhop.studies.sampling import MBPS, mean_mbps
from perhop.studies.yeom.common import (
    ALL_SCHEMES,
    DURATION_S,
    PROFILES,
    SETTING,
    THREE_DROP,
    TWO_WINDOWS,
    Setting,
    cell,
    class_targets,
    distance,
    total_mbps,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from perhop.measures.run import Run
    from perhop.show.declared import Factors
    from perhop.statistics.intervals import Estimate
COUNT = 2
"""Flows of each class."""
CAPACITY = {60: 12.0, 90: 8.0, 120: 6.0}
"""Rate of the bottleneck in Mbit/s by subscription in percent."""
TARGETS = {percent: class_targets(PROFILES, COUNT, c) for percent, c in CAPACITY.items()}
LEVELS = Axis("subscription_percent", "Subscription", {p: f"{p} %" for p in CAPACITY})
RESERVED = tuple(rate for rate in PROFILES if rate)
NEARLY = 0.9
"""The share of a rate that counts as nearly that rate, or within its reach."""
TOLERANCE = 0.01
"""The share of a reservation within which a rate counts as the reservation."""


def entry(scheme: str, percent: int, profile: float) -> dict[str, Any]:
    """The factors of one rate in the table."""
    return {**cell(scheme, percent), "profile_mbps": profile}


def network(setting: Setting, scheme: str, percent: int) -> dict[str, Any]:
    """Two flows of each class."""
    entries = [setting.tcp(scheme, class_name(rate), rate, count=COUNT) for rate in PROFILES]
    return setting.scenario("Yeom and Reddy, Table 1", scheme, CAPACITY[percent], entries)


def class_name(rate: float) -> str:
    """The flow entry of a class."""
    return "best-effort" if rate == 0 else f"profile-{rate:g}"


def build(factors: Factors, setting: Setting = SETTING) -> Mapping[str, Any]:
    """The setting of one row."""
    return network(setting, str(factors["scheme"]), int(factors["subscription_percent"]))


def samples(factors: Factors, run: Run, packet: int = SETTING.packet) -> Iterator[Sample]:
    """Class means and what follows from them; the paper's own measures take the five classes of a row."""
    percent = int(factors["subscription_percent"])
    rates = {rate: mean_mbps(run, class_name(rate)) for rate in PROFILES}
    for rate, value in rates.items():
        yield Sample({**factors, "profile_mbps": rate}, "throughput", MBPS, value)
    values, wanted = list(rates.values()), [TARGETS[percent][rate] for rate in rates]
    yield Sample(factors, "utilization", "fraction", utilization([total_mbps(run)], CAPACITY[percent]))
    yield Sample(factors, "rmse", MBPS, rmse(values, wanted))
    index = jain_index(values, wanted)
    if index is not None:
        yield Sample(factors, "jain_index", "index", index)
    reached = reservation_success(
        [float(x) / 1e6 for x in run.flows("throughput_bps")], [r for r in PROFILES for _ in range(COUNT)]
    )
    if reached is not None:
        yield Sample(factors, "reservation_success", "fraction", reached, 1.0)
    yield Sample(factors, "shortfall", MBPS, shortfall(run))
    for rate in RESERVED:
        yield Sample({**factors, "profile_mbps": rate}, "class_shortfall", MBPS, shortfall(run, (rate,)))
    yield from colors(factors, run, packet)
    yield from losses(factors, run, packet)


def shortfall(run: Run, classes: Sequence[float] = RESERVED) -> float:
    """Mean over the flows of reserved classes of what each lacks of its reserved rate, Mbit/s."""
    lacking = [
        max(0.0, rate - float(value) / 1e6)
        for rate in classes
        for value in run.of_group(class_name(rate), "throughput_bps")
    ]
    return sum(lacking) / len(lacking)


def colors(factors: Factors, run: Run, packet: int = SETTING.packet) -> Iterator[Sample]:
    """How the packets of reserved flows were marked, where a claim asks for it."""
    if factors["scheme"] not in (TWO_WINDOWS, THREE_DROP):
        return
    for rate in RESERVED:
        named = {**factors, "profile_mbps": rate}
        sent_in, out_in, out_out = run.of_group(class_name(rate), "marked").sum(axis=0) / COUNT
        in_mbps = float(sent_in) * packet * 8 / 1e6 / DURATION_S
        yield Sample(named, "in_over_profile", "ratio", in_mbps / rate)
        yield Sample(named, "out_packets", "packets", float(out_in + out_out))
        if factors["scheme"] == THREE_DROP and out_in + out_out > 0:
            out = float(out_in + out_out)
            yield Sample(named, "out_out_share", "fraction", float(out_out) / out, out * COUNT)


def losses(factors: Factors, run: Run, packet: int = SETTING.packet) -> Iterator[Sample]:
    """What each class lost, and its rate over equation 3's bound, 1.2 B/(RTT √p), with its own RTT and p.

    A class that lost nothing has no bound.
    """
    for rate in PROFILES:
        name, named = class_name(rate), {**factors, "profile_mbps": rate}
        marked = run.of_group(name, "marked").sum(axis=0)
        dropped = run.of_group(name, "dropped").sum(axis=0)
        lost = float(dropped.sum())
        yield Sample(named, "drops", "packets", lost / COUNT)
        yield Sample(named, "sent_out", "packets", float(marked[1:].sum()) / COUNT)
        if out := float(marked[1:].sum()):
            yield Sample(named, "out_loss", "fraction", float(dropped[1:].sum()) / out, out)
        if lost:
            share = lost / float(np.sum(run.of_group(name, "sent_packets")))
            round_trip = float(np.mean(run.of_group(name, "mean_rtt_s")))
            bound = 1.2 * packet * 8 / 1e6 / (round_trip * math.sqrt(share))
            yield Sample(named, "over_bound", "ratio", mean_mbps(run, name) / bound)


def gap(evidence: Evidence, scheme: str, more: Factors | None = None) -> float:
    """Root-mean-square difference between a scheme's fifteen published and measured rates, Mbit/s."""
    keys = [{**(more or {}), **entry(scheme, p, rate)} for p in CAPACITY for rate in PROFILES]
    printed = [evidence.published("throughput", key) for key in keys]
    return rmse(
        [evidence.mean("throughput", key) for key in keys], [math.nan if v is None else v for v in printed]
    )


def gap_estimate(evidence: Evidence, scheme: str, more: Factors | None = None) -> Estimate:
    """The `gap` of a scheme, with its interval."""
    keys = [{**(more or {}), **entry(scheme, p, rate)} for p in CAPACITY for rate in PROFILES]
    printed = [evidence.published("throughput", key) for key in keys]
    return distance(evidence, [(k, math.nan if v is None else v) for k, v in zip(keys, printed, strict=True)])


def gaps(evidence: Evidence) -> Iterator[Row]:
    """How far each scheme's means are from the published ones, and how many of those lie among our runs."""
    for scheme in ALL_SCHEMES:
        yield Row(
            {"scheme": scheme},
            "difference_to_published",
            MBPS,
            None,
            gap(evidence, scheme),
            None,
            evidence.runs,
        )
        inside = 0
        for percent, rate in itertools.product(CAPACITY, PROFILES):
            low, high = evidence.spread("throughput", entry(scheme, percent, rate))
            value = evidence.published("throughput", entry(scheme, percent, rate))
            inside += value is not None and low <= value <= high
        yield Row({"scheme": scheme}, "published_within_runs", "of 15", None, inside, None, evidence.runs)


def fig3_samples(factors: Factors, run: Run, packet: int = SETTING.packet) -> Iterator[Sample]:
    """Table 1's, and what the bottleneck dropped of IN and of OUT packets."""
    yield from samples(factors, run, packet)
    dropped = sum(float(packets[0]) for packets in run.link("bottleneck")["dropped"].values())
    yield Sample(factors, "in_drops", "packets", dropped)
    link = run.link("bottleneck")
    lost, arrived = np.sum(list(link["dropped"].values()), axis=0), link["arrived"]
    of = float(arrived[0]), float(arrived[1:].sum())
    yield Sample(factors, "in_loss", "fraction", float(lost[0]) / of[0], of[0])
    yield Sample(factors, "all_out_loss", "fraction", float(lost[1:].sum()) / of[1], of[1])
