"""The true value of each measure of a scenario, from many runs.

- A mean over runs: the mean of all runs.
- A fraction of counted packets: the pooled counts, all that were dropped over all that came.
- A percentile: that of all waits or times of all runs together. Waits are known to a bin of their histogram
  (at most 3.1 % wide), and so is the percentile: it is a band, not a number. Flows, pages and responses that
  were unfinished count as the longest; a percentile that falls among them is not known.

Measures have the names of metrics in sweeps (`perhop.sweep.metrics`); what tables have and sweeps do not is
named by its column: `flows.gold.dropped_green`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from perhop import catalog, finite_flows, quality
from perhop.runs import COLORS, REVERSE
from perhop.simulation import Result
from perhop.sweep.metrics import measure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from perhop.runs import Run

Band: TypeAlias = tuple[float, float]
"""Where a true value lies: the same number twice, unless it is known to a bin only."""

PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
CALL_MEASURES = ("mouth_to_ear_s", "lost_or_late", "burst_ratio", "r", "mos")
_COUNTED = {"links": "responses", "pages": "unfinished_pages"}


@dataclass(slots=True)
class Waits:
    """Waiting times of all runs in the bins of the engine's histograms, whose edges are the same in all runs.

    Attributes:
        edges: f64[b + 1], of the longest histogram so far.
        counts: i64[b].
    """

    edges: NDArray[np.float64] = field(default_factory=lambda: np.zeros(1))
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def add(self, delays: Mapping[str, Any]) -> None:
        """Add those of a run."""
        counts = delays["counts"].sum(axis=1)
        if len(counts) > len(self.counts):
            self.edges = delays["edges"]
            self.counts = np.pad(self.counts, (0, len(counts) - len(self.counts)))
        self.counts[: len(counts)] += counts

    def percentile(self, level: float) -> Band | None:
        """The bin with it; None without a wait."""
        below = np.cumsum(self.counts)
        if not len(below) or below[-1] == 0:
            return None
        place = int(np.searchsorted(below, math.ceil(level * int(below[-1]))))
        return float(self.edges[place]), float(self.edges[place + 1])


@dataclass(slots=True)
class Times:
    """Completion times, slowdowns or times of pages and responses of all runs.

    Attributes:
        values: Of those that completed.
        unfinished: How many did not.
    """

    values: list[NDArray[np.float64]] = field(default_factory=list)
    unfinished: int = 0

    def percentile(self, level: float) -> Band | None:
        """The percentile with the unfinished ones as the longest; None where it falls among these."""
        values = np.sort(np.concatenate(self.values)) if self.values else np.zeros(0)
        rank = math.ceil(level * (len(values) + self.unfinished))
        if not 1 <= rank <= len(values):
            return None
        return float(values[rank - 1]), float(values[rank - 1])


@dataclass(slots=True)
class Truth:
    """What runs say together.

    Attributes:
        values: For each run the value of each measure; NaN where it has none.
    """

    scenario: str
    values: list[dict[str, float]] = field(default_factory=list)
    _ratios: dict[str, list[float]] = field(default_factory=dict)
    _waits: dict[str, Waits] = field(default_factory=lambda: defaultdict(Waits))
    _times: dict[str, Times] = field(default_factory=lambda: defaultdict(Times))
    _known: dict[str, Band | None] = field(default_factory=dict)

    def add(self, runs: Sequence[Run]) -> list[dict[str, float]]:
        """Add runs of the scenario.

        Returns:
            For each run the value of each measure; NaN where it has none.
        """
        self._known.clear()
        added = [measure(run.raw) | dict(_only_in_tables(run.raw)) for run in runs]
        for number, of_calls in enumerate(_calls(self.scenario, runs)):
            added[number] |= of_calls
        self.values += added
        for run in runs:
            for name, part, whole in _counts(run.raw):
                sums = self._ratios.setdefault(name, [0.0, 0.0])
                sums[0] += part
                sums[1] += whole
            for name, delays in _histograms(run.raw):
                self._waits[name].add(delays)
            for name, times, unfinished in _samples(run.raw):
                self._times[name].values.append(times)
                self._times[name].unfinished += unfinished
        return added

    def of(self, name: str) -> Band | None:
        """The true value of a measure; None where it is not known, or the same in all runs."""
        if name not in self._known:
            self._known[name] = self._of(name) if self._varies(name) else None
        return self._known[name]

    def difference(self, other: Truth, name: str) -> Band | None:
        """That of this scenario less that of another on the same seeds; None likewise."""
        pairs = [(a.get(name), b.get(name)) for a, b in zip(self.values, other.values, strict=True)]
        known = [a - b for a, b in pairs if a is not None and b is not None and not math.isnan(a - b)]
        if not known or min(known) == max(known):
            return None
        if _statistic(name) is None and name not in self._ratios:
            mean = math.fsum(known) / len(known)
            return mean, mean
        one, two = self._of(name), other._of(name)
        return None if one is None or two is None else (one[0] - two[1], one[1] - two[0])

    def _varies(self, name: str) -> bool:
        known = {run[name] for run in self.values if name in run and not math.isnan(run[name])}
        return len(known) > 1

    def _of(self, name: str) -> Band | None:
        if name in self._ratios:
            part, whole = self._ratios[name]
            return (part / whole, part / whole) if whole else None
        if (level := _statistic(name)) is not None:
            place, _, last = name.rpartition(".")
            if last == "delay_variation_s":
                middle, high = (self._waits[place].percentile(share) for share in (0.5, 0.99))
                return None if middle is None or high is None else (high[0] - middle[1], high[1] - middle[0])
            if place in self._waits:
                return self._waits[place].percentile(level)
            of_times = f"{place}.{last.partition('_')[0]}"
            if of_times in self._times:
                return self._times[of_times].percentile(level)
        known = [run[name] for run in self.values if name in run and not math.isnan(run[name])]
        mean = math.fsum(known) / len(known)
        return mean, mean


def _statistic(name: str) -> float | None:
    """The level of a percentile that is pooled, by a measure's name; None for any other measure.

    The percentiles of a flow's own delays are not: a run has no histogram of these.
    """
    place, _, last = name.rpartition(".")
    if last == "delay_variation_s":
        return 0.99
    if place.startswith("flows."):
        return None
    return next((level for part, level in PERCENTILES.items() if f"_{part}" in last), None)


def _only_in_tables(raw: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for group, members in catalog.members(raw):
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


def _counts(raw: Mapping[str, Any]) -> Iterator[tuple[str, float, float]]:
    """Fractions as counts: the name, how many, and of how many."""
    for group, members in catalog.members(raw):
        place = f"flows.{group['name']}"
        by_color = [(members.count("dropped", c), members.count("marked", c)) for c in range(len(COLORS))]
        policed = [members.count("policed", color) for color in range(len(COLORS))]
        for color, (dropped, marked), out in zip(COLORS, by_color, policed, strict=True):
            yield f"{place}.dropped_{color}", dropped, marked - out
        passed = sum(marked for _, marked in by_color) - sum(policed)
        yield f"{place}.loss", sum(dropped for dropped, _ in by_color), passed
    for link in raw["links"]:
        place = f"links.{link['name']}"
        yield f"{place}.loss", link["dropped_packets"], link["arrived_packets"]
        if link["lost_packets"] is not None:
            yield f"{place}.link_loss", link["lost_packets"], link["sent_packets"]
        if link["policed_packets"] is not None:
            policed_here = link["policed_packets"]
            yield f"{place}.policing_ratio", policed_here, policed_here + link["arrived_packets"]
        for part in link["classes"]:
            yield f"{place}.classes.{part['name']}.loss", part["dropped_packets"], part["arrived_packets"]


def _histograms(raw: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for link in raw["links"]:
        yield f"links.{link['name']}", link["delay_s"]
        for part in link["classes"]:
            yield f"links.{link['name']}.classes.{part['name']}", part["delay_s"]


def _samples(raw: Mapping[str, Any]) -> Iterator[tuple[str, NDArray[np.float64], int]]:
    """Times of what completes: the name up to the statistic, those that completed, and how many did not."""
    for population in raw["populations"]:
        name = raw["groups"][int(raw["flows"]["group"][population["flow"]])]["name"]
        flows = finite_flows.FiniteFlows.of(population, raw["warmup_s"])
        parts = {"": flows} | {f".{size}": flows.sized(*ends) for size, ends in finite_flows.SIZES.items()}
        for size, part in parts.items():
            unfinished = int(np.isnan(part.completion_s).sum())
            yield f"populations.{name}{size}.completion", part.times, unfinished
            yield f"populations.{name}{size}.slowdown", part.slowdowns, unfinished
    for users in raw.get("applications", ()):
        for quantity, values in users["samples"].items():
            unfinished = users["measures"].get(f"unfinished_{quantity.removesuffix('_s')}s") or 0
            name = f"applications.{users['name']}.{quantity.removesuffix('_s')}"
            yield name, np.asarray(values, dtype=float), int(unfinished)
