"""The rows of summary tables: one class, link or group of users over the runs, with 95 % intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from perhop.measures import catalog, naming
from perhop.runs import observing
from perhop.show.readable import end_names
from perhop.statistics import stopping
from perhop.statistics.intervals import Estimate

if TYPE_CHECKING:
    from perhop.bounds.deriving import Bounds
    from perhop.measures import flow_table
    from perhop.measures.run import Group
    from perhop.statistics.observations import Observations, ObservedQueue


def application_row(group: str, runs: Sequence[Mapping[str, Any]], model: str) -> dict[str, object]:
    """The users of one group over the runs."""
    row: dict[str, object] = {"class": group, "users": runs[0]["users"]}
    for entry in catalog.APPLICATION[model]:
        row |= columns(entry.name, observing.of_users(entry, runs))
    return row


def class_row(
    group: Group, members: Sequence[flow_table.Members], links: Sequence[ObservedQueue], bounds: Bounds
) -> dict[str, object]:
    """One class over the runs; its flows in each of them, and the queues of the links."""
    guaranteed = bounds.of_class(group.name)
    flows = None if group.is_population else group.count
    row: dict[str, object] = {"class": group.name, "flows": flows, "profile_bps": group.profile_bps}
    transit = observing.waits([flows.transit for flows in members])
    queues = observing.seen_by(transit, links)
    for entry in catalog.beside(catalog.CLASS, catalog.FLOW_BOUNDS):
        if isinstance(entry, catalog.Bound):
            row[entry.name] = guaranteed[entry.name]
        elif entry.name:
            row |= columns(entry.name, observing.of_class(entry, members, transit, queues))
    return row


def queue_columns(
    places: Sequence[Mapping[str, Any]],
    entries: Iterable[catalog.Measure],
    queue: ObservedQueue,
    bounds: Mapping[str, object],
) -> dict[str, object]:
    """A link, or a class that its queue distinguishes, over the runs: its measures, with bounds beside them.

    Args:
        places: The link or the class in each run, as the engine reports it.
        entries: The measures.
        queue: The same as a queue.
        bounds: Its bounds by name.
    """
    out: dict[str, object] = {}
    for entry in catalog.beside(entries, catalog.QUEUE_BOUNDS):
        if isinstance(entry, catalog.Bound):
            out[entry.name] = bounds[entry.name]
        else:
            out |= columns(entry.name, observing.of_queue(entry, places, queue))
    return out


def columns(name: str, found: Observations) -> dict[str, float | None]:
    """The value and the ends of its interval; an upper one that is not known is infinite."""
    return ends(name, found.estimate)


def ends(name: str, one: Estimate | None) -> dict[str, float | None]:
    """An estimate as columns: the value and the ends of its interval; None where there is none."""
    low, high = end_names(name)
    least, most = (None, None) if one is None or one.ci95 is None else one.ci95
    return {name: None if one is None else one.mean, low: least, high: most}


def widened(row: Mapping[str, Any], runs: int) -> dict[str, Any]:
    """A row with intervals that are valid though their width decided how many runs there are.

    Args:
        row: Of a summary.
        runs: How many.
    """
    out = dict(row)
    for name, value in row.items():
        low, high = end_names(name)
        if value is None or row.get(low) is None or row[high] is None:
            continue
        least, most = _BOUNDS[name] if name in _BOUNDS else naming.bounds(name)
        one = stopping.widened(Estimate(value, (row[low], row[high]), runs), runs, least, most)
        out |= ends(name, one)
    return out


_BOUNDS = {
    entry.name: (0.0, 1.0) if entry.unit == "fraction" else naming.bounds(entry.summary.metric or entry.name)
    for entry in catalog.SUMMARIZED
    if entry.summary is not None
}
"""Between which values measures lie, by the names of their columns."""


def mean(places: Sequence[Mapping[str, Any]], name: str) -> float:
    """The mean over the runs of what every run counts."""
    return math.fsum(place[name] for place in places) / len(places)
