"""Table 1's setting, two flows of each of five rates on three links, and what is sampled of a run."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from perhop.measures.fairness import jain_index, reservation_success, rmse, utilization
from perhop.measures.run import Run
from perhop.show.declared import Axis, Factors, Row
from perhop.statistics.intervals import Estimate
from perhop.studies.evidence import Evidence, Sample
from perhop.studies.sampling import MBPS, mean_mbps
from perhop.studies.yeom import common
from perhop.studies.yeom.common import DURATION_S, PROFILES, SETTING, THREE_DROP, TWO_WINDOWS, Setting, cell

COUNT = 2
"""Flows of each class."""
CAPACITY = {60: 12.0, 90: 8.0, 120: 6.0}
"""Rate of the bottleneck in Mbit/s by subscription in percent."""
TARGETS = {percent: common.class_targets(PROFILES, COUNT, c) for percent, c in CAPACITY.items()}
LEVELS = Axis("subscription_percent", "Subscription", {p: f"{p} %" for p in CAPACITY})
RESERVED = tuple(rate for rate in PROFILES if rate)
NEARLY = 0.9
"""The share of a rate that counts as nearly that rate, or within its reach."""
TOLERANCE = 0.01
"""The share of a reservation within which a rate counts as the reservation."""


def entry(scheme: str, percent: int, profile: float) -> dict[str, Any]:
    """The factors of one rate in the table."""
    return {**cell(scheme, percent), "profile_mbps": profile}


def class_name(rate: float) -> str:
    """The flow entry of a class."""
    return "best-effort" if rate == 0 else f"profile-{rate:g}"


def build(factors: Factors, setting: Setting = SETTING) -> Mapping[str, Any]:
    """Two flows of each class under one scheme at one subscription."""
    scheme, percent = str(factors["scheme"]), int(factors["subscription_percent"])
    entries = [setting.tcp(scheme, class_name(rate), rate, count=COUNT) for rate in PROFILES]
    return setting.scenario("Yeom and Reddy, Table 1", scheme, CAPACITY[percent], entries)


def samples(factors: Factors, run: Run, packet: int = SETTING.packet) -> Iterator[Sample]:
    """Class means and what follows from them; the paper's own measures take the five classes of a row."""
    percent = int(factors["subscription_percent"])
    rates = {rate: mean_mbps(run, class_name(rate)) for rate in PROFILES}
    for rate, value in rates.items():
        yield Sample({**factors, "profile_mbps": rate}, "throughput", MBPS, value)
    values, wanted = list(rates.values()), [TARGETS[percent][rate] for rate in rates]
    yield Sample(factors, "utilization", "fraction", utilization([common.total_mbps(run)], CAPACITY[percent]))
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
    """The marks of reserved flows' packets, where a claim asks for them."""
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
    """The losses of each class, and its rate over equation 3's bound, 1.2 B/(RTT √p), with its own RTT and p.

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
    keys, values = zip(*_published(evidence, scheme, more), strict=True)
    return rmse([evidence.mean("throughput", key) for key in keys], values)


def gap_estimate(evidence: Evidence, scheme: str, more: Factors | None = None) -> Estimate:
    """The `gap` of a scheme, with its interval."""
    return common.distance(evidence, _published(evidence, scheme, more))


def _published(evidence: Evidence, scheme: str, more: Factors | None) -> list[tuple[Factors, float]]:
    """The factors of a scheme's fifteen rates, and what is printed."""
    keys = [{**(more or {}), **entry(scheme, p, rate)} for p in CAPACITY for rate in PROFILES]
    printed = [evidence.published("throughput", key) for key in keys]
    return [(key, math.nan if v is None else v) for key, v in zip(keys, printed, strict=True)]


def gaps(evidence: Evidence) -> Iterator[Row]:
    """The distance of each scheme's means to the published ones, and how many of those lie among our runs."""
    for scheme in common.ALL_SCHEMES:
        yield evidence.row({"scheme": scheme}, "difference_to_published", MBPS, gap(evidence, scheme))
        inside = 0
        for percent, rate in itertools.product(CAPACITY, PROFILES):
            low, high = evidence.spread("throughput", entry(scheme, percent, rate))
            value = evidence.published("throughput", entry(scheme, percent, rate))
            inside += value is not None and low <= value <= high
        yield evidence.row({"scheme": scheme}, "published_within_runs", "of 15", inside)
