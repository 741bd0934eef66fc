"""The true value of each measure of a scenario, from many runs.

- A mean over runs: the mean of all runs.
- A share of packets: that of all runs together, so each run counts by how many packets its share is of.
- A percentile: that of all waits or times of all runs together. Of waits it is known to a bin of their
  histogram, which is at most 3.1 % wide, or to two where it is near an edge. Of pages and responses, of which
  some are unfinished when a run ends, it is that by the product limit.
- Completion times and slowdowns: likewise, of the flows that begin within the time of a run, in other runs
  that last twice as long, so that (nearly) all of them complete.

Measures have the names of metrics in sweeps (`perhop.runs.metrics`); what tables have and sweeps do not is
named by its column: `flows.gold.dropped_green`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from perhop.measures import catalog, finite_flows, flow_table
from perhop.measures.durations import Durations
from perhop.measures.run import REVERSE
from perhop.runs import quality
from perhop.runs.metrics import measure
from perhop.runs.result import Result

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from perhop.measures.run import Run

Band: TypeAlias = tuple[float, float]
"""The bounds of a true value: the same number twice, unless it is known to a bin only."""

UNSURE = 0.02
"""The relative standard error, over 3000 runs, of the share of waits above a percentile."""
PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
CALL_MEASURES = ("mouth_to_ear_s", "lost_or_late", "burst_ratio", "r", "mos")


@dataclass(slots=True)
class Waits:
    """Waiting times of all runs in the bins of the engine's histograms.

    Attributes:
        counts: By the lower edge of a bin: its upper edge, how many waits, and the longest of them.
    """

    counts: dict[float, tuple[float, int, float]] = field(default_factory=dict)

    def add(self, histogram: Mapping[str, Any]) -> None:
        """Add those of a run."""
        counts = np.asarray(histogram["counts"])
        counts = counts if counts.ndim == 1 else counts.sum(axis=1)
        edges, longest = histogram["edges"], histogram["longest"]
        for place in np.flatnonzero(counts):
            low, high = float(edges[place]), float(edges[place + 1])
            _, before, most = self.counts.get(low, (high, 0, 0.0))
            self.counts[low] = high, before + int(counts[place]), max(most, float(longest[place]))

    def percentile(self, level: float) -> Band | None:
        """The bins in which it may lie, up to the longest wait in them; None without a wait."""
        error = UNSURE * min(level, 1 - level)
        ends = [self._bin(at) for at in (level - error, level + error)]
        return (ends[0][0], ends[1][1]) if self.counts else None

    def _bin(self, level: float) -> Band:
        left = level * sum(count for _, count, _ in self.counts.values())
        ends = 0.0, 0.0
        for low, (high, count, longest) in sorted(self.counts.items()):
            ends = low, min(high, longest)
            left -= count
            if left <= 0:
                break
        return ends


@dataclass(slots=True)
class Times:
    """Completion times, slowdowns or times of pages and responses of all runs.

    Attributes:
        ended: Of those that ended, an array for each run.
        open: Of the others, so far.
    """

    ended: list[NDArray[np.float64]] = field(default_factory=list)
    open: list[NDArray[np.float64]] = field(default_factory=list)

    def add(self, times: Durations) -> None:
        """Add those of a run."""
        self.ended.append(times.ended)
        self.open.append(times.open)

    def percentile(self, level: float) -> Band | None:
        """The percentile by the product limit; None where it falls among those that did not end."""
        value = Durations(np.concatenate(self.ended), np.concatenate(self.open)).quantile(level)
        return None if math.isnan(value) else _exactly(value)


@dataclass(slots=True)
class Truth:
    """The true values, from all runs together.

    Attributes:
        values: For each run the value of each measure; NaN where it has none.
    """

    scenario: str
    values: list[dict[str, float]] = field(default_factory=list)
    _ratios: dict[str, list[float]] = field(default_factory=dict)
    _waits: dict[str, Waits] = field(default_factory=lambda: defaultdict(Waits))
    _times: dict[str, Times] = field(default_factory=lambda: defaultdict(Times))
    _means: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    _known: dict[str, Band | None] = field(default_factory=dict)

    def add(self, runs: Sequence[Run]) -> list[dict[str, float]]:
        """Add runs of the scenario.

        Returns:
            The metrics of each in sweeps.
        """
        self._known.clear()
        measured = [measure(run.raw) for run in runs]
        added = [of_run | dict(_only_in_tables(run.raw)) for of_run, run in zip(measured, runs, strict=True)]
        for number, of_calls in enumerate(_calls(self.scenario, runs)):
            added[number] |= of_calls
        self.values += added
        for run, values in zip(runs, added, strict=True):
            for name, trials in _trials(run.raw):
                sums = self._ratios.setdefault(name, [0.0, 0.0])
                if not math.isnan(values[name]):
                    sums[0] += values[name] * trials
                    sums[1] += trials
            for name, delays in _histograms(run.raw):
                self._waits[name].add(delays)
            for name, times in _times_of_users(run.raw):
                self._times[name].add(times)
        return measured

    def follow(self, runs: Sequence[Run], begun_s: float) -> None:
        """Add runs that last longer than those of the scenario, for what becomes of its finite flows.

        Args:
            runs: The same scenario, of a longer duration.
            begun_s: The scenario's duration: of flows that began later nothing counts.
        """
        self._known.clear()
        for run in runs:
            for place, flows in _begun(run.raw, begun_s):
                for quantity in ("completion", "slowdown"):
                    times = flows.quantity(quantity)
                    self._times[f"{place}.{quantity}"].add(times)
                    unit = "_s" if quantity == "completion" else ""
                    self._means[f"{place}.{quantity}_mean{unit}"] += [times.mean] if times.count else []

    def of(self, name: str) -> Band | None:
        """The true value of a measure; None where it is not known, or the same in all runs."""
        if name not in self._known:
            self._known[name] = self._of(name) if self._varies(name) else None
        return self._known[name]

    def difference(self, other: Truth, name: str) -> Band | None:
        """The true difference to another scenario on the same seeds; None likewise."""
        pairs = [(a.get(name), b.get(name)) for a, b in zip(self.values, other.values, strict=True)]
        known = [a - b for a, b in pairs if a is not None and b is not None and not math.isnan(a - b)]
        if not known or min(known) == max(known):
            return None
        if _level(name) is None and name not in self._ratios and name not in self._means:
            return _exactly(math.fsum(known) / len(known))
        one, two = self._of(name), other._of(name)
        return None if one is None or two is None else (one[0] - two[1], one[1] - two[0])

    def _varies(self, name: str) -> bool:
        known = {run[name] for run in self.values if name in run and not math.isnan(run[name])}
        return len(known) > 1

    def _of(self, name: str) -> Band | None:
        if name in self._ratios:
            part, whole = self._ratios[name]
            return _exactly(part / whole) if whole else None
        place, _, last = name.rpartition(".")
        if (level := _level(name)) is not None:
            if last == "delay_variation_s":
                middle, high = (self._waits[f"{place}.delay"].percentile(share) for share in (0.5, 0.99))
                return None if middle is None or high is None else (high[0] - middle[1], high[1] - middle[0])
            what = f"{place}.{_stem(last)}"
            if what in self._waits:
                return self._waits[what].percentile(level)
            if what in self._times:
                return self._times[what].percentile(level)
        every = self._means.get(name) or [run[name] for run in self.values if name in run]
        known = [value for value in every if not math.isnan(value)]
        return _exactly(math.fsum(known) / len(known))

    def scale(self, name: str) -> float:
        """Return the order of magnitude of a measure's values."""
        return max((abs(run[name]) for run in self.values[:100] if not math.isnan(run[name])), default=0.0)


def _exactly(value: float) -> Band:
    return value, value


def _level(name: str) -> float | None:
    """The level of a percentile by a measure's name; None for any other measure."""
    last = name.rpartition(".")[2]
    if last == "delay_variation_s":
        return 0.99
    return next((level for part, level in PERCENTILES.items() if f"_{part}" in last), None)


def _stem(last: str) -> str:
    """The last part of a percentile's name without its level and what follows: of `delay_p99_s`, `delay`."""
    return next(last.partition(f"_{part}")[0] for part in PERCENTILES if f"_{part}" in last)


def _only_in_tables(raw: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for group, members in flow_table.members(raw):
        for entry in catalog.CLASS:
            if entry.name and not entry.summary.metric:
                yield f"flows.{group['name']}.{entry.name}", entry.value(members)


def _calls(scenario: str, runs: Sequence[Run]) -> Iterator[dict[str, float]]:
    """The ratings of calls of users, for each run."""
    names = [
        name + way
        for users in runs[0].raw.get("applications", ())
        if users["model"] == "call"
        for name in (str(users["name"]),)
        for way in ("", REVERSE)
    ]
    if not names:
        return
    rated = quality.calls(Result(scenario, tuple(runs)), names)
    means = rated.group_by(["seed", "class"]).mean()
    by_run: dict[int, dict[str, float]] = {run.seed: {} for run in runs}
    for row in means.iter_rows(named=True):
        for name in CALL_MEASURES:
            value = math.nan if row[name] is None else float(row[name])
            by_run[row["seed"]][f"applications.{row['class']}.{name}"] = value
    yield from (by_run[run.seed] for run in runs)


def _trials(raw: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield the number of packets of each share."""
    for group, members in flow_table.members(raw):
        for entry in catalog.CLASS:
            if entry.trials is not None:
                last = entry.summary.metric or entry.name
                yield f"flows.{group['name']}.{last}", entry.trials(members)
    for link in raw["links"]:
        yield from _trials_of_queue(f"links.{link['name']}", link, (*catalog.LINK, *catalog.QUEUE))
        for part in link["classes"]:
            place = f"links.{link['name']}.classes.{part['name']}"
            yield from _trials_of_queue(place, part, catalog.QUEUE)


def _trials_of_queue(
    place: str, counters: Mapping[str, Any], entries: Sequence[catalog.Measure]
) -> Iterator[tuple[str, float]]:
    for entry in entries:
        trials = catalog.LINK_TRIALS.get(entry.name)
        # A link has the same time in every run, whatever it sends: of its utilization all runs count alike.
        if trials is not None and entry.summary is not None and entry.name != "utilization":
            yield f"{place}.{entry.summary.metric}", trials(counters)


def _histograms(raw: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for group in raw["groups"]:
        if (delays := group.get("transit_s")) is not None:
            yield f"flows.{group['name']}.one_way_delay", delays
    for link in raw["links"]:
        yield f"links.{link['name']}.delay", link["delay_s"]
        for part in link["classes"]:
            yield f"links.{link['name']}.classes.{part['name']}.delay", part["delay_s"]


def _begun(raw: Mapping[str, Any], begun_s: float) -> Iterator[tuple[str, finite_flows.FiniteFlows]]:
    """The flows of a run's populations that began before a time, as `finite_flows.parts` gives them."""
    populations = []
    for population in raw["populations"]:
        early = population["started_s"] < begun_s
        columns = {key: value[early] for key, value in population.items() if key in _OF_FLOWS}
        populations.append({**population, **columns})
    yield from finite_flows.parts({**raw, "populations": populations})


_OF_FLOWS = ("started_s", "size_bytes", "idle_s", "completion_s", "open_s")
"""The engine's record of each flow of a population."""


def _times_of_users(raw: Mapping[str, Any]) -> Iterator[tuple[str, Durations]]:
    """Yield the times that users waited, with the name up to the statistic."""
    for users in raw.get("applications", ()):
        for quantity in users["samples"]:
            name = f"applications.{users['name']}.{quantity.removesuffix('_s')}"
            yield name, Durations.of_users(users, quantity)
