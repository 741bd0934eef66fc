"""Values of a run beside its measures, from which intervals over runs follow; stores of sweeps keep them.

    links.uplink.loss#of            of how many packets a share is
    flows.web.completion_s#cut      1 where the mean is too low, since the end of the run cut the longest off
    flows.voice.r#per-loss          by how much a rating falls at most for each unit of lost share
    links.uplink.delay_s#of         how many waits a distribution is of
    links.uplink#room               how long a packet waits in the full queue, in seconds; 0 if not known
    links.uplink.delay_s#0.99       its quantile, at each of `perhop.statistics.observations.LEVELS`
    warmup_s#found                  the warm-up, where it was found
    warmup_s#settles                1 where the runs settle within their first half, likewise

Companions are no measures: tables, patterns and `SweepStore.runs` leave them out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from perhop.measures import catalog, finite_flows, flow_table, naming
from perhop.measures.durations import Durations
from perhop.runs import metrics, observing
from perhop.runs.warming import WarmUp
from perhop.statistics.observations import LEVELS, Distribution, Observations, ObservedQueue

OF = "#of"
ROOM = "#room"
CUT = "#cut"
PER_LOSS = "#per-loss"
WARMUP, SETTLES = "warmup_s#found", "warmup_s#settles"
AT = tuple(f"#{level:g}" for level in LEVELS)
_COMPANION = re.compile("#(of|room|cut|per-loss|found|settles|[0-9.]+)$")
"""Ends of the names of companions."""
_BEGUN = re.compile(r"^populations\.[^.]*\.flows_begun$")
"""The metrics that count the flows of a population that began in a run."""


def companions(
    raw: Mapping[str, Any], scenario: str, warm_up: WarmUp | None = None
) -> Iterator[tuple[str, float]]:
    """Yield the companions of the measures of one run, in an order that depends on its scenario alone.

    Args:
        raw: What `perhop._engine.simulate` returned.
        scenario: Canonical JSON.
        warm_up: The one that was found, where the scenario leaves that to perhop.
    """
    depths, seconds = observing.depths_of(scenario, warm_up), raw["duration_s"] - raw["warmup_s"]
    flows = flow_table.Flows.of(raw)
    if warm_up is not None:
        yield WARMUP, warm_up.seconds
        yield SETTLES, float(warm_up.settles)
    for of_run in catalog.RUN:
        if of_run.trials is not None and of_run.applies(flows):
            yield f"{of_run.name}{OF}", of_run.trials(flows)
    for group, members in flow_table.members(raw):
        yield from _of_class(f"flows.{group['name']}", members)
    for link in raw["links"]:
        place = f"links.{link['name']}"
        yield from _of_queue(place, link, (*catalog.LINK, *catalog.QUEUE))
        yield f"{place}{ROOM}", observing.room(depths, link, seconds)
        for packets in link["classes"]:
            yield from _of_queue(f"{place}.classes.{packets['name']}", packets, catalog.QUEUE)
    yield from _of_times_to_completion(raw)


def with_measures(raw: Mapping[str, Any], scenario: str, warm_up: WarmUp | None = None) -> dict[str, float]:
    """Every measure of one run, and then their companions; see `companions`."""
    return metrics.measure(raw) | dict(companions(raw, scenario, warm_up))


def _of_class(place: str, members: flow_table.Members) -> Iterator[tuple[str, float]]:
    """Yield the companions of the measures of a class of flows."""
    for entry in catalog.CLASS:
        metric = entry.summary.metric
        if metric and entry.trials is not None:
            yield f"{place}.{metric}{OF}", entry.trials(members)
        if metric in naming.RATINGS and members.codec is not None:
            yield f"{place}.{metric}{PER_LOSS}", naming.per_loss(metric, members.codec)
        if metric in naming.OF_COMPLETED:
            yield f"{place}.{metric}{CUT}", float(members.is_cut_off)
    if members.transit is not None:
        yield from _distribution(f"{place}.one_way_delay_s", Distribution.from_histogram(members.transit))


def _of_times_to_completion(raw: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield the companions of completion times and of the waiting times of users."""
    for place, of_size in finite_flows.parts(raw):
        quantities = {entry.of: of_size.quantity(entry.of) for entry in finite_flows.MEASURES if entry.of}
        names = {f"{place}.{entry.name}": quantities[entry.of] for entry in finite_flows.MEASURES if entry.of}
        yield from _of_times(names)
    for users in raw.get("applications", ()):
        place, measures = f"applications.{users['name']}", catalog.APPLICATION[users["model"]]
        samples = {one.name: name for one in measures if (name := naming.times_of(one.name)) is not None}
        times = {name: Durations.of_users(users, name) for name in samples.values()}
        yield from _of_times({f"{place}.{measure}": times[name] for measure, name in samples.items()})


def _of_times(measures: Mapping[str, Durations]) -> Iterator[tuple[str, float]]:
    """Companions of times: whether a mean is too low, and the distribution behind a percentile."""
    distributions: dict[str, Durations] = {}
    for metric, times in measures.items():
        if (found := naming.percentile(metric)) is None:
            yield f"{metric}{CUT}", float(times.is_cut_off)
        else:
            distributions[found[0]] = times
    for base, times in distributions.items():
        yield from _distribution(base, times.distribution)


def _of_queue(
    place: str, outcome: Mapping[str, Any], entries: Sequence[catalog.Measure]
) -> Iterator[tuple[str, float]]:
    for entry in entries:
        trials = catalog.LINK_TRIALS.get(entry.name)
        if entry.summary is not None and trials is not None:
            yield f"{place}.{entry.summary.metric}{OF}", trials(outcome)
    yield from _distribution(f"{place}.delay_s", Distribution.from_histogram(outcome["delay_s"]))


def _distribution(base: str, found: Distribution) -> Iterator[tuple[str, float]]:
    yield f"{base}{OF}", found.count
    yield from zip((f"{base}{at}" for at in AT), found.at_levels(), strict=True)


def is_companion(name: str) -> bool:
    """Whether a name is no measure, but a companion of one."""
    return _COMPANION.search(name) is not None


def meets(name: str, patterns: Iterable[str]) -> bool:
    """Whether a name is a measure that meets one of the patterns."""
    return not is_companion(name) and any(fnmatchcase(name, pattern) for pattern in patterns)


def with_companions(metrics: Iterable[str], names: Iterable[str]) -> set[str]:
    """Measures and those of their companions that are among some names."""
    known = frozenset(names)
    links = _links(known)
    wanted = {*metrics, WARMUP, SETTLES}
    for metric in tuple(wanted):
        if f"{metric}{PER_LOSS}" in known:
            wanted.add(f"{metric}{PER_LOSS}")
            wanted |= with_companions(_losses(metric, known), known)
        wanted.add(f"{metric}{CUT}")
        bases = []
        if (found := naming.percentile(metric)) is not None:
            bases.append(found[0])
        if f"{metric}{OF}" in known:
            wanted.add(f"{metric}{OF}")
            wanted.update(name for name in known if _BEGUN.search(name))
            for place in _places(metric, links):
                wanted |= {f"{place}.loss", f"{place}.loss{OF}", f"{place}{ROOM}"}
                bases.append(f"{place}.delay_s")
            if metric.startswith("flows."):
                bases.append(f"{metric.rpartition('.')[0]}.one_way_delay_s")
        wanted.update(f"{base}{at}" for base in bases for at in (OF, *AT))
    return wanted & known


@cache
def chosen(names: tuple[str, ...], patterns: tuple[str, ...]) -> tuple[tuple[int, str], ...]:
    """The names that meet a pattern and their companions, each after its place among all names."""
    wanted = with_companions([name for name in names if meets(name, patterns)], names)
    return tuple((place, name) for place, name in enumerate(names) if name in wanted)


def _losses(metric: str, names: Container[str]) -> list[str]:
    """Return those of some names that are shares of lost packets of a rating's class."""
    place = metric.rpartition(".")[0]
    return [name for loss in observing.LOSSES if (name := f"{place}.{loss}") in names]


def _places(metric: str, links: Iterable[str]) -> Iterable[str]:
    """The queues by which is known how the events of a share come in clusters."""
    return [metric.rpartition(".")[0]] if metric.startswith("links.") else links


@cache
def _links(names: frozenset[str]) -> tuple[str, ...]:
    ending = f".loss{OF}"
    return tuple(
        sorted(
            name.removesuffix(ending)
            for name in names
            if name.startswith("links.") and name.endswith(ending) and ".classes." not in name
        )
    )


def observed(runs: Sequence[Mapping[str, float]], patterns: Sequence[str]) -> dict[str, Observations]:
    """The measures that meet a pattern, over runs.

    Args:
        runs: The measures and companions of each run, in the order of the seeds; NaN where a run has none.
        patterns: Of measures.
    """
    gathered = Gathered({name: [run[name] for run in runs] for name in runs[0]})
    return {name: gathered.of(name) for name in runs[0] if meets(name, patterns)}


class Gathered:
    """The runs of one point: the measures and their companions as observations."""

    def __init__(self, columns: Mapping[str, Sequence[float]]) -> None:
        """Take the values of each run, in the order of the seeds, by name; NaN where a run has none."""
        self._columns = columns
        self._links = _links(frozenset(columns))
        self._rare_load = any(
            observing.is_rare(of_run) for name, of_run in columns.items() if _BEGUN.search(name)
        )
        self._waits: dict[str, observing.Waits | None] = {}

    def of(self, metric: str) -> Observations:
        """A measure's observations.

        Raises:
            KeyError: There is no such measure.
        """
        trials = self._columns.get(f"{metric}{OF}")
        found, cut = naming.percentile(metric), self._columns.get(f"{metric}{CUT}")
        beyond = 0.0
        if (per_loss := self._columns.get(f"{metric}{PER_LOSS}")) is not None:
            lost = [self.of(name) for name in _losses(metric, self._columns)]
            beyond = max(per_loss) * observing.above(lost)
        return observing.observations(
            metric,
            self._columns[metric],
            trials=trials,
            queues=() if trials is None else self._queues(metric),
            waits=None if found is None else self._distributions(found[0]),
            at_least=None if cut is None else [one == 1 for one in cut],
            beyond=(beyond, 0.0),
        )

    def _queues(self, metric: str) -> Sequence[ObservedQueue]:
        queues = [
            queue for place in _places(metric, self._links) if (queue := self._queue(place)) is not None
        ]
        transit = None
        if metric.startswith("flows."):
            transit = self._distributions(f"{metric.rpartition('.')[0]}.one_way_delay_s")
        return queues if transit is None else observing.seen_by(transit, queues)

    def _queue(self, place: str) -> ObservedQueue | None:
        loss, arrivals = (self._columns.get(f"{place}.loss{ending}") for ending in ("", OF))
        waits = self._distributions(f"{place}.delay_s")
        if loss is None or arrivals is None or waits is None:
            return None
        drops = tuple(
            0.0 if math.isnan(share) else share * of for share, of in zip(loss, arrivals, strict=True)
        )
        room_s = self._columns.get(f"{place}{ROOM}", (0.0,))
        return ObservedQueue(
            drops, tuple(arrivals), waits, min(room_s), self._rare_load, observing.longest(waits)
        )

    def _distributions(self, base: str) -> observing.Waits | None:
        """The distribution of each run; None where the store has none."""
        if base not in self._waits:
            counts = self._columns.get(f"{base}{OF}")
            levels = [self._columns.get(f"{base}{at}") for at in AT]
            if counts is None or None in levels:
                self._waits[base] = None
            else:
                rows = zip(*(one for one in levels if one is not None), strict=True)
                self._waits[base] = tuple(
                    Distribution.from_levels(count, row) if count > 0 else None
                    for count, row in zip(counts, rows, strict=True)
                )
        return self._waits[base]
