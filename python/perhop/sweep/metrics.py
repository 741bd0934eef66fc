"""What a sweep keeps of a run: a number for each measure, under a name that follows the scenario's.

Names end in their unit where they have one: `flows.gold.throughput_bps`, `links.uplink.delay_p95_s`.
Fractions and counts carry none. `CATALOG` lists them.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import time
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from perhop import _engine, measures
from perhop.runs import COLORS
from perhop.store import engine_digest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

CATALOG: dict[str, str] = {
    "throughput_bps": "Delivered rate of all flows together.",
    "rmse_to_targets_bps": "Root-mean-square error of the flows' rates against their targets.",
    "rmse_to_profiles_bps": "Root-mean-square error of the reserved flows' rates against their profiles.",
    "reservation_success": "Fraction of the reserved flows that reach their profile rate.",
    "jain_index": "Jain's index of rate over target, all flows.",
    "flows.NAME.throughput_bps": "Mean rate of a flow of the group.",
    "flows.NAME.throughput_min_bps": "The group's lowest rate.",
    "flows.NAME.throughput_max_bps": "The group's highest rate.",
    "flows.NAME.jain_index": "Jain's index of the group's rates.",
    "flows.NAME.loss": "Fraction of the group's data packets that queues dropped.",
    "flows.NAME.rtt_s": "Mean round trip; none for flows that measure none.",
    "flows.NAME.transit_s": "Mean one-way delay; none for TCP.",
    "flows.NAME.transit_p99_s": "The 99th percentile of a flow's one-way delay; none for TCP.",
    "flows.NAME.jitter_s": "Mean interarrival jitter (RFC 3550); none for TCP.",
    "links.NAME.utilization": "Fraction of the link's capacity in use.",
    "links.NAME.mean_queue_packets": "Mean queue length.",
    "links.NAME.dropped_packets": "Packets that the queue dropped.",
    "links.NAME.loss": "Fraction of arrived packets that the queue dropped.",
    "links.NAME.loss_COLOR": "The same for green, yellow and red packets.",
    "links.NAME.delay_p50_s": "Waiting time: median; likewise p95, p99 and max.",
    "links.NAME.delay_variation_s": "Delay variation: p99 − p50 of the waiting time.",
    "links.NAME.classes.CLASS.MEASURE": "Loss and waiting times of a class that the queue tells apart.",
}
"""Every measure, by the form of its name; all of them exclude the warm-up. Targets and Jain's index over all
flows need one link that all flows share; they are there if exactly one link has a queue rule."""

QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


@dataclass(frozen=True, slots=True)
class Measured:
    """One finished run.

    Attributes:
        names: Names of the measures; the same tuple for all runs of one scenario.
        values: f64, one for each name; NaN where the run has none.
        wall_s: How long the run took, measuring included.
    """

    names: tuple[str, ...]
    values: array[float]
    wall_s: float


@functools.cache
def engine_id() -> str:
    """What computes a run: the engine's version and, to the byte, its library and how runs are measured.

    It is part of a finished run's key: runs of another build are never taken for this one's.
    """
    digest = hashlib.sha256(engine_digest().encode())
    for source in (measures.__file__, __file__):
        digest.update(Path(source).read_bytes())
    return f"{_engine.version}+{digest.hexdigest()[:16]}"


def simulate(scenario: str, seed: int, cancel: _engine.Cancel | None = None) -> Measured:
    """Run a scenario once and measure it.

    Args:
        scenario: Canonical JSON.
        seed: The seed.
        cancel: Set it from another thread to end the run.

    Raises:
        ScenarioError: The scenario cannot be run.
        perhop._engine.Cancelled: `cancel` was set.
    """
    began = time.perf_counter()
    measured = measure(_engine.simulate(scenario, seed, cancel))
    return Measured(tuple(measured), array("d", measured.values()), time.perf_counter() - began)


def names_of(scenario: str) -> tuple[str, ...]:
    """What is measured of a scenario: the names that a run too short to send anything has.

    Raises:
        ScenarioError: The scenario cannot be run.
    """
    content = json.loads(scenario)
    content |= {"duration": "1us", "warmup": "0s"}
    content.pop("probes", None)
    return simulate(json.dumps(content), 0).names


def measure(raw: Mapping[str, Any]) -> dict[str, float]:
    """Every measure of one run, in an order that depends on its scenario alone; NaN where it has none.

    Args:
        raw: What `perhop._engine.simulate` returned.
    """
    found: dict[str, float] = dict(_overall(raw))
    found.update(_groups(raw))
    for link in raw["links"]:
        found.update(_link(f"links.{link['name']}", link))
    return found


def _overall(raw: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    rates: list[float] = raw["flows"]["throughput_bps"].tolist()
    profiles = [group["profile_bps"] for group in raw["groups"] for _ in range(group["count"])]
    yield "throughput_bps", math.fsum(rates)
    reserved = [(rate, profile) for rate, profile in zip(rates, profiles, strict=True) if profile > 0]
    if reserved:
        yield "rmse_to_profiles_bps", measures.rmse(*zip(*reserved, strict=True))
        yield "reservation_success", _number(measures.reservation_success(rates, profiles))
    if len(raw["links"]) == 1:
        wanted = measures.targets(profiles, raw["links"][0]["rate_bps"])
        yield "rmse_to_targets_bps", measures.rmse(rates, wanted)
        yield "jain_index", _number(measures.jain_index(rates, wanted))


def _groups(raw: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    flows = raw["flows"]
    columns = {
        name: flows[name].tolist()
        for name in ("throughput_bps", "mean_rtt_s", "mean_transit_s", "p99_transit_s", "jitter_s")
    }
    marked, dropped = (flows[name].sum(axis=1).tolist() for name in ("marked", "dropped"))
    first = 0
    for group in raw["groups"]:
        own = slice(first, first + group["count"])
        first = own.stop
        place = f"flows.{group['name']}"
        rates = columns["throughput_bps"][own]
        yield f"{place}.throughput_bps", math.fsum(rates) / len(rates)
        yield f"{place}.throughput_min_bps", min(rates)
        yield f"{place}.throughput_max_bps", max(rates)
        yield f"{place}.jain_index", _number(measures.jain_index(rates, [1.0] * len(rates)))
        yield f"{place}.loss", _ratio(sum(dropped[own]), sum(marked[own]))
        yield f"{place}.rtt_s", _mean(columns["mean_rtt_s"][own])
        yield f"{place}.transit_s", _mean(columns["mean_transit_s"][own])
        yield f"{place}.transit_p99_s", _mean(columns["p99_transit_s"][own])
        yield f"{place}.jitter_s", _mean(columns["jitter_s"][own])


def _link(place: str, link: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    yield f"{place}.utilization", float(link["utilization"])
    yield f"{place}.mean_queue_packets", float(link["mean_queue_packets"])
    yield from _books(place, link)
    for books in link["classes"]:
        yield from _books(f"{place}.classes.{books['name']}", books)


def _books(place: str, books: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """What a link and each of its classes have in common."""
    counts = books["measured"]
    arrived: list[int] = counts["arrived"].tolist()
    by_reason = [packets.tolist() for packets in counts["dropped"].values()]
    dropped = [sum(column) for column in zip(*by_reason, strict=True)] or [0] * len(arrived)
    yield f"{place}.dropped_packets", float(sum(dropped))
    yield f"{place}.loss", _ratio(sum(dropped), sum(arrived))
    for color, lost, came in zip(COLORS, dropped, arrived, strict=True):
        yield f"{place}.loss_{color}", _ratio(lost, came)
    delay = books["delay_s"]
    waits = dict(zip(QUANTILES, quantiles(delay["edges"], delay["counts"].sum(axis=1)), strict=True))
    for name, value in waits.items():
        yield f"{place}.delay_{name}_s", value
    yield f"{place}.delay_variation_s", waits["p99"] - waits["p50"]
    yield f"{place}.delay_max_s", float(delay["max"].max()) if len(delay["counts"]) else math.nan


def quantiles(edges: NDArray[np.float64], counts: NDArray[np.int64]) -> list[float]:
    """`measures.histogram_quantile` for all of `QUANTILES` at once, bit for bit; NaN without a count.

    Args:
        edges: f64[b + 1], ascending and finite.
        counts: i64[b].
    """
    below = counts.cumsum()
    total = int(below[-1]) if len(below) else 0
    if total == 0:
        return [math.nan] * len(QUANTILES)
    wanted = [q * total for q in QUANTILES.values()]
    out = []
    for target, bin_ in zip(wanted, below.searchsorted(wanted).tolist(), strict=True):
        low, high, count = float(edges[bin_]), float(edges[bin_ + 1]), int(counts[bin_])
        out.append(low + (high - low) * min(1, (target - (int(below[bin_]) - count)) / count))
    return out


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else math.nan


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return math.fsum(known) / len(known) if known else math.nan
