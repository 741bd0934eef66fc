"""Observations of the measures of the catalog, from finished runs."""

from __future__ import annotations

import functools
import json
import math
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from perhop.measures import catalog, flow_table, naming
from perhop.measures.durations import Durations
from perhop.measures.finite_flows import FEWEST_FOR_P99, FiniteFlows, FiniteFlowsMeasure
from perhop.measures.run import Run
from perhop.runs import warming
from perhop.statistics.observations import Distribution, Observations, ObservedQueue
from perhop.statistics.proportions import FEW

Waits = tuple["Distribution | None", ...]
"""The waits of each run; None without any."""


def observations(
    metric: str,
    values: Sequence[float],
    *,
    trials: Sequence[float] | None = None,
    queues: Sequence[ObservedQueue] = (),
    waits: Waits | None = None,
    at_least: Sequence[bool] | None = None,
    beyond: tuple[float, float] = (0.0, 0.0),
) -> Observations:
    """Return the observations of a measure.

    Args:
        metric: Its name in sweeps, which says between which values it lies and which percentile it is.
        values: One for each run; NaN where a run has none.
        trials: Of a share: see `Observations`.
        queues: Of a share: see `Observations`.
        waits: Of a percentile: the distribution of each run.
        at_least: Of a mean: see `Observations`.
        beyond: Of a mean: see `Observations`.
    """
    last = metric.rpartition(".")[2]
    least, most = naming.bounds(metric)
    found = naming.percentile(metric)
    if found is not None and waits is not None and _are_too_few(metric, found[1], waits):
        values, waits = [math.nan] * len(values), (None,) * len(waits)
    return Observations(
        tuple(values),
        least,
        most,
        trials=None if trials is None else tuple(trials),
        queues=() if last in _NOT_OF_QUEUES else tuple(queues),
        are_counts=last in _COUNTS,
        are_drops=_LOSS.search(metric) is not None,
        clustering=_dispersion(trials) if last == "policing_ratio" and trials is not None else 1.0,
        distributions=None if found is None else waits,
        level=None if found is None or waits is None else found[1],
        level_below=None if waits is None else naming.level_below(metric),
        is_of_events=naming.is_of_events(metric),
        is_in_time=naming.unit_of_metric(metric) == "s/h",
        beyond=beyond,
        at_least=None if at_least is None else tuple(at_least),
    )


def _are_too_few(metric: str, level: float, waits: Waits) -> bool:
    """Whether the flows of all runs do not have such a percentile."""
    flows = sum(one.count for one in waits if one is not None)
    return metric.startswith("populations.") and level == 0.99 and flows < FEWEST_FOR_P99


_LOSS = re.compile(r"(?:^|\.)(?:loss|loss_[a-z]+|dropped_[a-z]+)$")
"""Shares and numbers of packets that queues drop."""
_NOT_OF_QUEUES = frozenset({"policing_ratio", "link_loss", "reordering_ratio"}) | naming.OF_FLOWS
"""Shares of what no queue does: meters, links, and the random draws of a run."""
_COUNTS = frozenset({"dropped_packets"})
"""Numbers of events, not shares."""


def _dispersion(arrivals: Sequence[float]) -> float:
    """The index of dispersion of the packets of a run, at least 1: meters drop what comes in bursts."""
    if len(arrivals) < 2 or not any(arrivals):
        return 1.0
    return max(1.0, statistics.variance(arrivals) / statistics.fmean(arrivals))


def of_class(
    entry: catalog.ClassMeasure,
    members: Sequence[flow_table.Members],
    transit: Waits,
    queues: Sequence[ObservedQueue],
) -> Observations:
    """A measure of a class of flows.

    Args:
        entry: The measure.
        members: The class's flows in each run.
        transit: Their one-way delays.
        queues: Those of the links, as they meet them.
    """
    return observations(
        entry.summary.metric or entry.name,
        [entry.value(flows) for flows in members],
        trials=None if entry.trials is None else [entry.trials(flows) for flows in members],
        queues=queues,
        waits=transit if entry.name == "one_way_delay_p99_s" and any(transit) else None,
        at_least=[flows.is_cut_off for flows in members]
        if entry.summary.metric in naming.OF_COMPLETED
        else None,
        beyond=beyond_rated(entry.summary.metric, members, transit, queues),
    )


LOSSES = ("loss", "late_ratio", "policing_ratio", "link_loss")
"""The shares of a class's packets that are lost to a call, by their metrics in sweeps."""


def beyond_rated(
    metric: str, members: Sequence[flow_table.Members], transit: Waits, queues: Sequence[ObservedQueue]
) -> tuple[float, float]:
    """The margin by which a class's rating as calls may be lower than the runs show; see `Observations`.

    Args:
        metric: Its name in sweeps; of another measure than a rating, it is nothing.
        members: See `of_class`.
        transit: See `of_class`.
        queues: See `of_class`.
    """
    codec = members[0].codec
    if codec is None or metric not in naming.RATINGS:
        return 0.0, 0.0
    return naming.per_loss(metric, codec) * unseen_loss(members, transit, queues), 0.0


def unseen_loss(
    members: Sequence[flow_table.Members], transit: Waits, queues: Sequence[ObservedQueue]
) -> float:
    """The margin by which a class may lose more of its packets than the runs show; see `of_class`."""
    entries = [entry for entry in catalog.CLASS if entry.summary.metric in LOSSES]
    return above([of_class(entry, members, transit, queues) for entry in entries])


def above(losses: Sequence[Observations]) -> float:
    """The margin by which the sum of some shares may be above what the runs show."""
    found = [one.estimate for one in losses]
    return math.fsum(one.high - one.mean for one in found if one is not None)


def of_flows(entry: FiniteFlowsMeasure, by_run: Sequence[FiniteFlows]) -> Observations:
    """A measure of the flows of a population, or of those of a range of sizes, in each run."""
    values, metric = [entry.value(flows) for flows in by_run], f"populations.{entry.name}"
    if not entry.of:
        return observations(metric, values)
    return of_durations(metric, values, [flows.quantity(entry.of) for flows in by_run])


def of_users(entry: catalog.ApplicationMeasure, by_run: Sequence[Mapping[str, Any]]) -> Observations:
    """A measure of the users of an application, who are given as the engine reports them in each run."""
    values = [number(users["measures"][entry.name]) for users in by_run]
    name = naming.times_of(entry.name)
    if name is None:
        return observations(entry.name, values)
    return of_durations(entry.name, values, [Durations.of_users(users, name) for users in by_run])


def of_durations(metric: str, values: Sequence[float], times: Sequence[Durations]) -> Observations:
    """A mean or a percentile of times of which some had not ended when the run did; values of each run."""
    if naming.percentile(metric) is None:
        return observations(metric, values, at_least=[one.is_cut_off for one in times])
    return observations(metric, values, waits=tuple(one.distribution if one.count else None for one in times))


def seen_by(transit: Waits, links: Sequence[ObservedQueue]) -> Sequence[ObservedQueue]:
    """The queues of the links as a class meets them, whose one-way delays are measured, or not."""
    known = any(one is not None and one.count for one in transit)
    return [replace(queue, waits=transit) for queue in links] if known else links


def of_queue(
    entry: catalog.Measure, places: Sequence[Mapping[str, Any]], queue: ObservedQueue
) -> Observations:
    """A measure of a link, of its queue, or of a class of packets that the queue distinguishes.

    Args:
        entry: The measure.
        places: The link or the class in each run, as the engine reports it.
        queue: The same.
    """
    assert entry.summary is not None
    trials = catalog.LINK_TRIALS.get(entry.name)
    return observations(
        entry.summary.metric,
        [number(place[entry.name]) for place in places],
        trials=None if trials is None else [trials(place) for place in places],
        queues=[queue],
        waits=queue.waits,
    )


def link_queues(
    runs: Sequence[Run], scenario: str, warm_up: warming.WarmUp | None = None
) -> list[ObservedQueue]:
    """The queues of the links of some runs of a canonical scenario; with the warm-up, if it was found."""
    depths = depths_of(scenario, warm_up)
    links = zip(*(run.raw["links"] for run in runs), strict=True)
    seconds = runs[0].raw["duration_s"] - runs[0].raw["warmup_s"]
    rare_load = has_rare_load(runs)
    return [queue_of(places, rare_load, room(depths, places[0], seconds)) for places in links]


def has_rare_load(runs: Sequence[Run]) -> bool:
    """Whether a population had flows in too few of the runs: see `Queue`."""
    begun = ([len(one["size_bytes"]) for one in run.raw["populations"]] for run in runs)
    return any(is_rare(flows) for flows in zip(*begun, strict=True))


def is_rare(flows: Sequence[float]) -> bool:
    """Whether too few runs have any, of some number of each run."""
    return sum(count > 0 for count in flows) < min(FEW, len(flows))


@functools.lru_cache(maxsize=64)
def depths_of(scenario: str, warm_up: warming.WarmUp | None = None) -> Mapping[str, tuple[float, float]]:
    """Return the packets and bytes that a queue holds before it drops, for drop-tail queues alone.

    None of them where runs have no steady state, in which a tail of waits says how rarely a queue is full.

    Args:
        scenario: Canonical JSON.
        warm_up: The one that was found, if it was.
    """
    content = json.loads(scenario)
    if warming.whole_run(content) is not None or (warm_up is not None and not warm_up.settles):
        return {}
    found = {name: _depth(link.get("queue")) for name, link in content["links"].items()}
    return {name: depth for name, depth in found.items() if depth is not None}


def _depth(queue: object) -> tuple[float, float] | None:
    """The least limit of the drop-tail queues of a block; None where another rule may drop."""
    if not isinstance(queue, Mapping):
        return None
    if "aqm" in queue:
        limit = _LIMIT.fullmatch(str(queue.get("limit", "")))
        if queue["aqm"] != "drop-tail" or limit is None:
            return None
        size = float(limit[1]) * _SIZES[limit[2]]
        return (size, math.inf) if limit[2] == "p" else (math.inf, size)
    inner = [_depth(block) for block in _blocks(queue)]
    known = [depth for depth in inner if depth is not None]
    if not known or len(known) < len(inner):
        return None
    return min(one[0] for one in known), min(one[1] for one in known)


def _blocks(value: object) -> Iterator[Mapping[str, Any]]:
    """The outermost blocks within a block or a list."""
    for inner in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        if isinstance(inner, Mapping) and not {"aqm", "scheduler"}.isdisjoint(inner):
            yield inner
        else:
            yield from _blocks(inner)


_SIZES = {"p": 1.0, "B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9}
_LIMIT = re.compile(r"([0-9.]+)(p|B|kB|MB|GB)")


def room(depths: Mapping[str, tuple[float, float]], link: Mapping[str, Any], seconds: float) -> float:
    """Return the wait of a packet in the full queue of a link, in seconds; 0 where it is not known.

    Args:
        depths: See `depths_of`.
        link: The link in a run, as the engine reports it.
        seconds: How long it was measured.
    """
    depth, sent = depths.get(str(link["name"])), float(link["sent_packets"])
    rate = link["mean_rate_bps"]
    if depth is None or not sent or not link["utilization"] or not rate:
        return 0.0
    packets, size = depth
    return min(packets * seconds * float(link["utilization"]) / sent, 8 * size / float(rate))


def queue_of(places: Sequence[Mapping[str, Any]], rare_load: bool, room_s: float = 0.0) -> ObservedQueue:
    """A link, or a class that its queue distinguishes, in each run, as the engine reports it.

    Args:
        places: The link or the class.
        rare_load: See `Queue`.
        room_s: See `Queue`.
    """
    drops, arrivals = (
        tuple(float(place[name]) for place in places) for name in ("dropped_packets", "arrived_packets")
    )
    own = waits([place["delay_s"] for place in places])
    return ObservedQueue(drops, arrivals, own, room_s, rare_load, longest(own))


def longest(of_runs: Waits) -> float:
    """The longest wait; 0 where nothing waited."""
    return max((float(one.values[-1]) for one in of_runs if one is not None and one.count), default=0.0)


def waits(histograms: Sequence[Mapping[str, Any] | None]) -> Waits:
    """The distribution of each run; None where it has no histogram."""
    return tuple(None if one is None else Distribution.from_histogram(one) for one in histograms)


def number(value: float | None) -> float:
    """A value as a number; NaN for none."""
    return math.nan if value is None else float(value)
