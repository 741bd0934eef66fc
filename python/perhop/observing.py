"""Observations of the measures of the catalog, from finished runs."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from perhop import catalog
from perhop.observations import Distribution, Observations, Queue

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perhop.runs import Run

Waits = tuple["Distribution | None", ...]
"""Of each run."""


def observations(
    metric: str,
    values: Sequence[float],
    *,
    trials: Sequence[float] | None = None,
    queues: Sequence[Queue] = (),
    waits: Waits | None = None,
) -> Observations:
    """What runs give of a measure.

    Args:
        metric: Its name in sweeps, which says between which values it lies and which percentile it is.
        values: One for each run; NaN where a run has none.
        trials: Of a share: see `Observations`.
        queues: Of a share: see `Observations`.
        waits: Of a percentile: the distribution of each run.
    """
    least, most = catalog.bounds(metric)
    found = catalog.percentile(metric)
    return Observations(
        tuple(values),
        least,
        most,
        trials=None if trials is None else tuple(trials),
        queues=tuple(queues),
        distributions=None if found is None else waits,
        level=None if found is None or waits is None else found[1],
    )


def of_class(
    entry: catalog.ClassMeasure, members: Sequence[catalog.Members], links: Sequence[Queue]
) -> Observations:
    """A measure of a class of flows.

    Args:
        entry: The measure.
        members: The class's flows in each run.
        links: The queues of the links.
    """
    transit = waits([flows.transit for flows in members])
    return observations(
        entry.summary.metric or entry.name,
        [entry.value(flows) for flows in members],
        trials=None if entry.trials is None else [entry.trials(flows) for flows in members],
        queues=() if entry.trials is None else seen_by(transit, links),
        waits=transit if entry.name == "p99_transit_s" and any(transit) else None,
    )


def seen_by(transit: Waits, links: Sequence[Queue]) -> Sequence[Queue]:
    """The queues of the links as a class meets them, whose one-way delays are measured, or not."""
    known = any(one is not None and one.count for one in transit)
    return [replace(queue, waits=transit) for queue in links] if known else links


def of_queue(entry: catalog.Measure, places: Sequence[Mapping[str, Any]]) -> Observations:
    """A measure of a link, of its queue, or of a class of packets that the queue tells apart.

    Args:
        entry: The measure.
        places: The link or the class in each run, as the engine reports it.
    """
    assert entry.summary is not None
    own = waits([place["delay_s"] for place in places])
    trials = catalog.LINK_TRIALS.get(entry.name)
    return observations(
        entry.summary.metric,
        [number(place[entry.name]) for place in places],
        trials=None if trials is None else [trials(place) for place in places],
        queues=() if trials is None else [_queue(places, own)],
        waits=own,
    )


def link_queues(runs: Sequence[Run]) -> list[Queue]:
    """The queues of the links of some runs."""
    links = zip(*(run.raw["links"] for run in runs), strict=True)
    return [_queue(places, waits([place["delay_s"] for place in places])) for places in links]


def _queue(places: Sequence[Mapping[str, Any]], own: Waits) -> Queue:
    drops, arrivals = (
        tuple(float(place[name]) for place in places) for name in ("dropped_packets", "arrived_packets")
    )
    return Queue(drops, arrivals, own)


def waits(histograms: Sequence[Mapping[str, Any] | None]) -> Waits:
    """The distribution of each run; None where it has no histogram."""
    return tuple(None if one is None else Distribution.from_histogram(one) for one in histograms)


def number(value: float | None) -> float:
    """A value as a number; NaN for none."""
    return math.nan if value is None else float(value)
