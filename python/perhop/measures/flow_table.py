"""The flows of a run: columns of its flow table, the flows of each class, and all of them together."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from perhop.measures import emodel, fairness


class Columns:
    """The columns of a run's flow table as lists of numbers, each made when it is first asked for."""

    def __init__(self, flows: Mapping[str, Any]) -> None:
        self._flows = flows
        self._lists: dict[str, list[float]] = {}
        self._by_color: dict[str, list[list[float]]] = {}

    def of(self, name: str) -> list[float]:
        """A column."""
        if name not in self._lists:
            self._lists[name] = self._flows[name].tolist()
        return self._lists[name]

    def by_color(self, name: str) -> list[list[float]]:
        """A column of counts by color: one list for each color; NaN where a flow has no value."""
        if name not in self._by_color:
            self._by_color[name] = self._flows[name].T.tolist()
        return self._by_color[name]

    def parts(self, name: str) -> list[list[float]]:
        """A column of counts: one list for each color where it has colors, else one."""
        return self.by_color(name) if self._flows[name].ndim == 2 else [self.of(name)]


@dataclass(frozen=True, slots=True)
class Members:
    """The flows of one class in one run.

    Attributes:
        columns: Of all flows of the run.
        place: Of these flows among them.
        codec: Of calls; None for flows that are none.
        profile_bps: Profile rate of each flow, 0 for best effort.
        warmup_s: The warm-up of the run.
        transit: Histogram of the one-way delays of all their packets; None of TCP.
    """

    columns: Columns
    place: slice
    codec: emodel.CodecName | None = None
    profile_bps: float = 0.0
    warmup_s: float = 0.0
    transit: Mapping[str, Any] | None = None

    def of(self, name: str) -> list[float]:
        """A column of theirs; NaN where a flow has no value."""
        return self.columns.of(name)[self.place]

    def count(self, name: str, color: int | None = None) -> int:
        """The sum of a column of counts by color, of one color or of all; 0 where no flow has a value."""
        by_color = self.columns.by_color(name)
        chosen = by_color if color is None else [by_color[color]]
        return sum(_zero_for_none(count) for counts in chosen for count in counts[self.place])

    def calls(self) -> list[emodel.Rated]:
        """The rating of each flow as a call; none of flows that are no calls."""
        if self.codec is None:
            return []
        names = (
            "delivered_packets",
            "lost_packets",
            "late_packets",
            "play_out_delay_s",
            "loss_burst_packets",
        )
        gone = [self.columns.by_color(name) for name in ("dropped", "policed")]
        rated = []
        for flow, values in enumerate(zip(*map(self.of, names), strict=True), self.place.start):
            delivered, lost, late, play_out, burst = values
            rated.append(
                emodel.rated(
                    delivered=int(delivered),
                    gone=sum(_zero_for_none(color[flow]) for colors in gone for color in colors)
                    + _zero_for_none(lost),
                    late=_zero_for_none(late),
                    delay_s=None if math.isnan(play_out) else play_out,
                    mean_burst=None if math.isnan(burst) else burst,
                    codec=self.codec,
                )
            )
        return rated

    @property
    def is_cut_off(self) -> bool:
        """Whether a flow with a `volume` was unfinished: the mean of those that completed is too low."""
        return any(value == 1 for value in self.of("unfinished"))

    def loss(self, color: int | None = None) -> float:
        """The fraction of the packets that passed the meter which queues dropped; NaN where none passed."""
        return ratio(self.count("dropped", color), self.passed(color))

    def passed(self, color: int | None = None) -> int:
        """The packets that passed the meters, of a color or of all; links' meters may give other colors."""
        return max(0, self.count("marked", color) - self.count("policed", color))

    def packets(self, names: Sequence[str]) -> list[float]:
        """The sum of columns of counts, for each flow; what has no value counts as 0."""
        columns = [part[self.place] for name in names for part in self.columns.parts(name)]
        return [math.fsum(map(_zero_for_none, counts)) for counts in zip(*columns, strict=True)]


def members(raw: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], Members]]:
    """Each class of a run with its flows, which stand together in the flow table."""
    columns = Columns(raw["flows"])
    first = 0
    for group in raw["groups"]:
        place = slice(first, first + group["count"])
        first = place.stop
        yield (
            group,
            Members(
                columns,
                place,
                group.get("codec"),
                group["profile_bps"],
                raw["warmup_s"],
                group.get("transit_s"),
            ),
        )


@dataclass(frozen=True, slots=True)
class Flows:
    """All flows of one run.

    Attributes:
        rates: Throughput of each over its active time, in bit/s; NaN for a flow that never was active.
        profiles: Profile rate of each, 0 for best effort.
        slack: By how much each rate may be below its profile and reach it.
        total: Throughput of all together over the measured interval, in bit/s.
        active: From and until when each was active in that interval, in seconds.
        capacity: Mean rate between two times of the link that all share; None unless exactly one link has a
            queue rule, and of runs with users of applications or flows that come and go, which do not always
            have data to send.
    """

    rates: Sequence[float]
    profiles: Sequence[float]
    slack: Sequence[float]
    total: float
    active: Sequence[tuple[float, float]]
    capacity: Callable[[float, float], float] | None

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> Flows:
        """The flows of a run, as the engine reports it."""
        profiles = [group["profile_bps"] for group in raw["groups"] for _ in range(group["count"])]
        always = not raw.get("applications") and not any(group["is_population"] for group in raw["groups"])
        columns, warmup, links = Columns(raw["flows"]), raw["warmup_s"], raw["links"]
        active = [
            (begin, begin + max(0.0, span)) if span > 0 else (0.0, 0.0)
            for started, span in zip(columns.of("started_s"), columns.of("active_s"), strict=True)
            for begin in (max(started, warmup),)
        ]
        return cls(
            columns.of("throughput_bps"),
            profiles,
            slack_of(columns.of, profiles, warmup),
            8 * math.fsum(columns.of("delivered_bytes")) / (raw["duration_s"] - warmup),
            active,
            _mean_rate(links[0]) if always and len(links) == 1 else None,
        )

    @property
    def targets(self) -> list[float]:
        """The target at the link that all share of each flow that was active, over its active time.

        The flows are all that were active in the measured interval. Only the link's rate depends on the
        time, if it changes.
        """
        assert self.capacity is not None
        present = [
            (rate, span) for rate, span in zip(self.profiles, self.active, strict=True) if span[0] < span[1]
        ]
        profiles = [rate for rate, _ in present]
        none, by_capacity = [0.0] * len(present), dict[float, list[float]]()
        wanted = []
        for number, (_, span) in enumerate(present):
            capacity = self.capacity(*span)
            if capacity not in by_capacity:
                by_capacity[capacity] = fairness.targets(profiles, capacity) if capacity else none
            wanted.append(by_capacity[capacity][number])
        return wanted

    @property
    def aimed(self) -> list[tuple[float, float]]:
        """Rate and target of each flow that was active, but for those too briefly to have a rate."""
        spans = zip(self.rates, self.active, strict=True)
        rates = [rate for rate, (begin, end) in spans if begin < end]
        found = zip(rates, self.targets, strict=True)
        return [(rate, target) for rate, target in found if not math.isnan(rate)]

    @property
    def reserved(self) -> list[tuple[float, float]]:
        """Rate and profile of each flow that has a profile and was active."""
        return [(rate, profile) for rate, profile in _pairs(self.rates, self.profiles) if profile > 0]


def slack_of(of: Callable[[str], list[float]], profiles: Sequence[float], warmup_s: float) -> list[float]:
    """The shortfall from its profile that each flow may have, since rates are measured in whole packets.

    That is a packet over the active time. To the receiver of a flow that began after the warm-up, nothing
    comes during the first one-way delay.

    Args:
        of: The columns of the flows.
        profiles: Profile rate of each.
        warmup_s: The warm-up.
    """
    names = ("delivered_bytes", "delivered_packets", "active_s", "started_s", "one_way_delay_s")
    slack = []
    for profile, *values in zip(profiles, *map(of, names), strict=True):
        size, packets, active, started, transit = values
        bits = 8 * size / packets if packets else 0.0
        if started > warmup_s and not math.isnan(transit):
            bits += profile * transit
        slack.append(bits / active if active > 0 else 0.0)
    return slack


def _mean_rate(link: Mapping[str, Any]) -> Callable[[float, float], float]:
    """The mean rate of a link between two times; of one that sends by a trace, over the measured interval."""
    rows: list[tuple[float, float]] = link["rates"]
    if not rows:
        return lambda _begin, _end: float(link["mean_rate_bps"])
    times = [time for time, _ in rows]
    bits = [0.0]
    for (time, rate), (after, _) in pairwise(rows):
        bits.append(bits[-1] + rate * (after - time))

    def sent_by(time: float) -> float:
        place = bisect_right(times, time) - 1
        return bits[place] + rows[place][1] * (time - times[place])

    return lambda begin, end: (sent_by(end) - sent_by(begin)) / (end - begin)


def without_nan(values: Sequence[float]) -> list[float]:
    """The values of the flows that have one."""
    return [value for value in values if not math.isnan(value)]


def _pairs(values: Sequence[float], others: Sequence[float]) -> list[tuple[float, float]]:
    """A value of each flow and another, of those that have a value."""
    pairs = zip(values, others, strict=True)
    return [(value, other) for value, other in pairs if not math.isnan(value)]


def ratio(part: float, whole: float) -> float:
    """A part over a whole; NaN of nothing."""
    return part / whole if whole else math.nan


def _zero_for_none(count: float) -> int:
    return 0 if math.isnan(count) else int(count)
