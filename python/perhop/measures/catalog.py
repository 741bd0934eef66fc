"""The catalog of measures: what each is called, its unit, what it means, and how it comes from a run.

A measure is declared once. Those of a flow, a link and a queue are entries of the engine
(`crates/perhop-sim/src/measures`); those of a class of flows and of a whole run, which combine several flows,
are entries here. Data frames, summary tables, pages, sweeps, comparisons, `docs/measures.md` and
`perhop list measures` follow from these entries and name no measure themselves.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from perhop import _engine
from perhop.measures import emodel, fairness
from perhop.measures.run import COLORS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

Unit: TypeAlias = Literal["bit/s", "s", "packets", "B", "fraction", "s/h", ""]
Kind: TypeAlias = Literal["count", "number", "optional-count", "optional", "by-color", "optional-by-color"]
Statistic: TypeAlias = Literal["mean", "sum", "share"]


@dataclass(frozen=True, slots=True)
class Shown:
    """The form in which readers see values of a unit.

    Attributes:
        symbol: In tables of a terminal.
        word: On pages.
        factor: From the unit to this one.
        digits: Decimals in plots and searches.
    """

    symbol: str
    word: str
    factor: float
    digits: int

    def head(self, label: str) -> str:
        """A column's head in a terminal: `throughput, Mbit/s`."""
        return f"{label}, {self.symbol}" if self.symbol else label

    def long_head(self, label: str) -> str:
        """The head of the column on a page."""
        return f"{label}, {self.word}" if self.word else label


SHOWN: Mapping[Unit, Shown] = {
    "bit/s": Shown("Mbit/s", "Mbit/s", 1e-6, 3),
    "s": Shown("ms", "ms", 1e3, 1),
    "packets": Shown("p", "packets", 1.0, 1),
    "B": Shown("B", "bytes", 1.0, 0),
    "fraction": Shown("%", "%", 100.0, 2),
    "s/h": Shown("s/h", "s/h", 1.0, 1),
    "": Shown("", "", 1.0, 4),
}
"""How each unit is shown."""


@dataclass(frozen=True, slots=True)
class Compared:
    """The way in which `perhop compare` holds a measure against real packets.

    Attributes:
        id: Its name in the comparison's results.
        margin: The margin that it is held to, by name.
    """

    id: str
    margin: str


@dataclass(frozen=True, slots=True)
class Summary:
    """The form in which summary tables, sweeps and comparisons show a measure.

    Attributes:
        label: What tables call it, without its unit.
        long_label: What pages call it.
        statistic: What becomes of the values of a class's flows.
        place: Among the columns of summary tables, ascending; None for no table.
        classes_only: Of a queue, it is in the table of its classes alone.
        importance: The greater, the longer a narrow terminal keeps the column.
        metric: The last part of its name in sweeps; empty where they do not have it.
        above: It is in tables with every column alone, and in others where a flow has more than this.
        share_of: Of a share, the measures of flows whose sum is the number of packets that it is of.
    """

    label: str
    long_label: str
    statistic: Statistic
    place: int | None
    classes_only: bool
    importance: int
    metric: str
    compared: Compared | None
    above: float | None = None
    share_of: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure of a flow, a link or a queue, as the engine declares it.

    Attributes:
        name: The key in the engine's dictionaries, and the column in data frames.
        unit: There; tables show Mbit/s, ms and %.
        kind: Whether it is a whole number, a number, or a whole number for each color, and whether it may
            be missing: where it does not apply to a flow or link, or has no sample.
        summary: None for what is in data frames alone.
    """

    name: str
    unit: Unit
    description: str
    kind: Kind
    summary: Summary | None


def _entry(data: Mapping[str, Any]) -> Measure:
    summary = data["summary"]
    if summary is not None:
        compared = summary["compared"]
        compared = None if compared is None else Compared(**compared)
        summary = Summary(**{**summary, "compared": compared, "share_of": tuple(summary["share_of"])})
    return Measure(**{**data, "summary": summary})


_DECLARED: Mapping[str, Any] = json.loads(_engine.measures())
FLOW, LINK, QUEUE = (tuple(_entry(data) for data in _DECLARED[of]) for of in ("flow", "link", "queue"))
"""The engine's entries: of a flow; of a link; of a link's queue, and of each class that it distinguishes."""


@dataclass(frozen=True, slots=True)
class ApplicationMeasure:
    """A measure of the users of an application, as the engine declares it.

    Attributes:
        name: The key in the engine's dictionaries, and the column in data frames.
        label: What tables call it, without its unit.
        importance: The greater, the longer a narrow terminal keeps the column.
        unit: There; tables show Mbit/s, ms and %.
    """

    name: str
    label: str
    importance: int
    unit: Unit
    description: str


APPLICATION: Mapping[str, tuple[ApplicationMeasure, ...]] = {
    model: tuple(ApplicationMeasure(**data) for data in entries)
    for model, entries in _DECLARED["application"].items()
}
"""The measures of each application, by its name. Those of calls are the E-model's (`perhop.runs.quality`)."""


def in_tables(entries: Sequence[Measure], *, classes: bool = False) -> list[Measure]:
    """The measures that a summary table has, in the order of its columns.

    Args:
        entries: From which.
        classes: It is the table of the classes that queues tell apart.
    """
    shown = [
        (summary.place, entry)
        for entry in entries
        if (summary := entry.summary) is not None
        and summary.place is not None
        and (classes or not summary.classes_only)
    ]
    return [entry for _, entry in sorted(shown, key=lambda pair: pair[0])]


# ---------------------------------------------------------------- over the flows of a class


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

    def loss(self, color: int | None = None) -> float:
        """The fraction of the packets that passed the meter which queues dropped; NaN where none passed."""
        return _ratio(self.count("dropped", color), self.passed(color))

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
class ClassMeasure:
    """A measure of a class of flows in one run.

    Attributes:
        name: The column of `Result.group_summary()`; empty where that has none.
        value: From the class's flows; NaN where they have none.
        trials: Of a share: how many packets or flows it is of; None for what is none.
    """

    name: str
    unit: Unit
    description: str
    value: Callable[[Members], float]
    summary: Summary
    trials: Callable[[Members], float] | None = None


def _mean(name: str, flows: Members) -> float:
    known = _known(flows.of(name))
    return math.fsum(known) / len(known) if known else math.nan


def _sum(name: str, flows: Members) -> float:
    known = _known(flows.of(name))
    return math.fsum(known) if known else math.nan


def _shares(of: Sequence[str], name: str, flows: Members) -> list[tuple[float, float]]:
    """The share of each flow that has one, with the number of packets that it is a fraction of."""
    pairs = zip(flows.of(name), flows.packets(of), strict=True)
    return [(share, packets) for share, packets in pairs if not math.isnan(share)]


def _share(of: Sequence[str], name: str, flows: Members) -> float:
    """A class's share of packets, over all packets of its flows that have such a share."""
    known = _shares(of, name, flows)
    return _ratio(
        math.fsum(share * packets for share, packets in known), math.fsum(packets for _, packets in known)
    )


def _trials(of: Sequence[str], name: str, flows: Members) -> float:
    """The number of packets of which a class's share is."""
    return math.fsum(packets for _, packets in _shares(of, name, flows))


_STATISTICS: Mapping[Statistic, Callable[[str, Members], float]] = {"mean": _mean, "sum": _sum}


def _over_flows(entry: Measure) -> ClassMeasure:
    """What follows for a class from a measure of its flows."""
    assert entry.summary is not None
    column = "" if entry.summary.place is None else entry.name
    own, trials = _OF_CLASS.get(entry.name), None
    if of := entry.summary.share_of:
        own, trials = partial(_share, of, entry.name), partial(_trials, of, entry.name)
    value = own or partial(_STATISTICS[entry.summary.statistic], entry.name)
    return ClassMeasure(column, entry.unit, entry.description, value, entry.summary, trials)


def _p99_transit(flows: Members) -> float:
    """The percentile of all packets of the class; without their histogram, the mean over its flows."""
    if flows.transit is None:
        return _mean("one_way_delay_p99_s", flows)
    histogram = flows.transit
    counts, longest = histogram["counts"].tolist(), histogram["longest"].tolist()
    return _number(fairness.histogram_quantile(histogram["edges"].tolist(), counts, 0.99, longest))


_OF_CLASS: Mapping[str, Callable[[Members], float]] = {"one_way_delay_p99_s": _p99_transit}
"""Measures of a class that are not the mean or the sum of those of its flows."""


def _of_sweeps(
    metric: str,
    unit: Unit,
    description: str,
    value: Callable[[Members], float],
    trials: Callable[[Members], float] | None = None,
) -> ClassMeasure:
    """A measure of a class that sweeps have, and tables do not."""
    summary = Summary("", "", "mean", None, classes_only=False, importance=0, metric=metric, compared=None)
    return ClassMeasure("", unit, description, value, summary, trials)


def _dropped(color: int) -> ClassMeasure:
    """The loss of a class's packets of one color."""
    name = COLORS[color]
    summary = Summary(
        f"{name} lost",
        f"{name} lost",
        "mean",
        5,
        classes_only=False,
        importance=255,
        metric="",
        compared=Compared(f"loss-{name}", "loss"),
    )
    return ClassMeasure(
        f"dropped_{name}",
        "fraction",
        f"Fraction of the class's {name} data packets that queues dropped; policed packets are excluded.",
        lambda flows: flows.loss(color),
        summary,
        lambda flows: flows.passed(color),
    )


def _of_calls(
    name: Literal["r", "mos"], label: str, place: int, importance: int, description: str
) -> ClassMeasure:
    """A measure of the calls of a class."""

    def value(flows: Members) -> float:
        known = [one for one in (getattr(call, name) for call in flows.calls()) if one is not None]
        return math.fsum(known) / len(known) if known else math.nan

    summary = Summary(
        label, label, "mean", place, classes_only=False, importance=importance, metric=name, compared=None
    )
    return ClassMeasure(f"call_{name}", "", description, value, summary)


def _slack(of: Callable[[str], list[float]], profiles: Sequence[float], warmup_s: float) -> list[float]:
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


def _profile_success(flows: Members) -> float:
    rates = flows.of("throughput_bps")
    profiles = [flows.profile_bps] * len(rates)
    slack = _slack(flows.of, profiles, flows.warmup_s)
    return _number(fairness.reservation_success(rates, profiles, slack))


def _one_cluster(_: object) -> float:
    """The flows of a run share its random numbers: a share of them counts as one trial."""
    return 1.0


def _equal_shares(flows: Members) -> float:
    rates = _known(flows.of("throughput_bps"))
    return _number(fairness.jain_index(rates, [1.0] * len(rates)))


def _known(values: Sequence[float]) -> list[float]:
    return [value for value in values if not math.isnan(value)]


_IN_TABLES = in_tables(FLOW)
_IN_SWEEPS = [entry for entry in FLOW if entry.summary is not None and entry not in _IN_TABLES]
_OF_FLOWS = [_over_flows(entry) for entry in (*_IN_TABLES, *_IN_SWEEPS)]
_FIRST = [entry for entry in _OF_FLOWS if entry.name == "throughput_bps"]

CLASS: tuple[ClassMeasure, ...] = (
    *_FIRST,
    _of_sweeps(
        "throughput_min_bps",
        "bit/s",
        "The class's lowest rate.",
        lambda flows: min(_known(flows.of("throughput_bps")), default=math.nan),
    ),
    _of_sweeps(
        "throughput_max_bps",
        "bit/s",
        "The class's highest rate.",
        lambda flows: max(_known(flows.of("throughput_bps")), default=math.nan),
    ),
    _of_sweeps("jain_index", "", "Jain's index of the class's rates.", _equal_shares),
    _of_sweeps(
        "profile_success",
        "fraction",
        "Fraction of the class's flows that reach their profile rate over their active time, to a packet; "
        "none for best effort.",
        _profile_success,
        _one_cluster,
    ),
    _of_sweeps(
        "loss",
        "fraction",
        "Fraction of the class's data packets that queues dropped; policed packets are excluded.",
        Members.loss,
        Members.passed,
    ),
    *(_dropped(color) for color in range(len(COLORS))),
    *(entry for entry in _OF_FLOWS if entry not in _FIRST),
    _of_calls(
        "r",
        "R",
        80,
        140,
        "Transmission rating R of the class's calls by the E-model (ITU-T G.107), 0 to 100, mean over its "
        "flows; 0 for a call of which nothing arrived, none for a class without `codec`.",
    ),
    _of_calls(
        "mos",
        "MOS",
        81,
        255,
        "Mean opinion score of the class's calls by the E-model (ITU-T G.107), 1 to 4.5, mean over its "
        "flows; 1 for a call of which nothing arrived, none for a class without `codec`.",
    ),
)
"""The measures of a class, in the order of columns and of sweeps, measures of its flows among them
if these have a summary."""


SUMMARIZED: tuple[ClassMeasure | Measure, ...] = (*CLASS, *LINK, *QUEUE)
"""What may stand in summary tables: measures of classes of flows, links and queues."""


LINK_TRIALS: Mapping[str, Callable[[Mapping[str, Any]], float]] = {
    "policing_ratio": lambda link: float(link["arrived_packets"] + (link["policed_packets"] or 0)),
    "link_loss": lambda link: float(link["sent_packets"]),
    "reordering_ratio": lambda link: float(link["sent_packets"]),
    "dropped_packets": lambda queue: float(queue["arrived_packets"]),
    "loss": lambda queue: float(queue["arrived_packets"]),
    **{
        f"loss_{color}": partial(lambda place, queue: float(queue["measured"]["arrived"][place]), place)
        for place, color in enumerate(COLORS)
    },
}
"""How many packets the shares of links and queues are of, by the measure's name."""


def bounds(metric: str) -> tuple[float, float]:
    """Between which values a measure lies, by the last part of its name: shares, say, from 0 to 1."""
    last = metric.rpartition(".")[2]
    if last in _BOUNDS:
        return _BOUNDS[last]
    is_share = unit_of_metric(metric) == "fraction" or last == "jain_index"
    return 0.0, 1.0 if is_share else math.inf


_BOUNDS: Mapping[str, tuple[float, float]] = {
    "qoe": (-math.inf, math.inf),
    "stall_seconds_per_hour": (0.0, 3600.0),
    "r": (0.0, emodel.BASE_RATING),
    "mos": (1.0, emodel.opinion_score(emodel.BASE_RATING)),
}
"""The bounds of measures that are neither fractions nor merely non-negative."""

OF_FLOWS = frozenset({"profile_success", "reservation_success"})
"""Shares of flows. The flows of a run share its random numbers, so that a run is one trial."""


def is_of_events(metric: str) -> bool:
    """Whether a mean is of what may happen to flows or users, and in many runs does not: stalls, say."""
    last = metric.rpartition(".")[2]
    return last in _OF_EVENTS or last.startswith("unfinished")


RATINGS = frozenset({"r", "mos"})
"""Ratings of calls by the E-model, which fall with the share of lost packets."""


def per_loss(metric: str, codec: emodel.CodecName) -> float:
    """The steepest fall of a rating of calls with the share of lost packets."""
    scale = 1.0 if metric == "r" else emodel.SCORE_PER_RATING
    return scale * emodel.rating_per_loss(codec)


_OF_EVENTS = frozenset(
    {
        *("receiver_limited", "sender_limited", "buffer_limited", "congestion_limited", "recovering", "idle"),
        *("stalls", "stall_seconds_per_hour", "not_started", "down_late", "up_late"),
        "burst_ratio",
    }
)
_PERCENTILE = re.compile(r"(?:_p|^p)([0-9]+)(?=_|$)")


def percentile(metric: str) -> tuple[str, float] | None:
    """Split a percentile into its quantity and level: `links.a.delay_p99_s` is (`links.a.delay_s`, 0.99)."""
    place, dot, last = metric.rpartition(".")
    if last == "delay_variation_s":
        return f"{place}{dot}delay_s", 0.99
    found = _PERCENTILE.search(last)
    if found is None:
        return None
    base = f"{last[: found.start()]}{last[found.end() :]}".lstrip("_")
    return f"{place}{dot}{base}", float(f"0.{found[1]}")


def level_below(metric: str) -> float | None:
    """The lower level of a difference of two percentiles, of which `percentile` says the upper one."""
    return 0.5 if metric.rpartition(".")[2] == "delay_variation_s" else None


def times_of(measure: str) -> str | None:
    """The samples of which a measure of users is the mean or a percentile, if they are times.

    Args:
        measure: Its name, such as `page_p95_s` or `page_mean_s`.

    Returns:
        Their name, such as `page_s`.
    """
    found = percentile(measure)
    if found is not None:
        return found[0]
    if measure.endswith("_mean_s"):
        return f"{measure.removesuffix('_mean_s')}_s"
    return measure if measure == "startup_s" else None


def is_cut_off(flows: Members) -> bool:
    """Whether a flow with a `volume` was unfinished: the mean of those that completed is too low."""
    return any(value == 1 for value in flows.of("unfinished"))


OF_COMPLETED = frozenset({"completion_s", "slowdown"})
"""Measures of flows that have a `volume` and completed."""


# ---------------------------------------------------------------- over all flows of a run


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
            _slack(columns.of, profiles, warmup),
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


@dataclass(frozen=True, slots=True)
class RunMeasure:
    """A measure of all flows of a run together.

    Attributes:
        name: In sweeps.
        applies: Whether the scenario's runs have it.
    """

    name: str
    unit: Unit
    description: str
    value: Callable[[Flows], float]
    applies: Callable[[Flows], bool] = lambda _: True
    trials: Callable[[Flows], float] | None = None


RUN: tuple[RunMeasure, ...] = (
    RunMeasure(
        "throughput_bps",
        "bit/s",
        "Delivered rate of all flows together, over the measured interval.",
        lambda flows: flows.total,
    ),
    RunMeasure(
        "rmse_to_profiles_bps",
        "bit/s",
        "Root-mean-square error of the reserved flows' rates against their profiles, each over its active "
        "time.",
        lambda flows: _over(fairness.rmse, flows.reserved),
        lambda flows: any(flows.profiles),
    ),
    RunMeasure(
        "reservation_success",
        "fraction",
        "Fraction of the reserved flows that reach their profile rate over their active time, to a packet.",
        lambda flows: _number(fairness.reservation_success(flows.rates, flows.profiles, flows.slack)),
        lambda flows: any(flows.profiles),
        _one_cluster,
    ),
    RunMeasure(
        "rmse_to_targets_bps",
        "bit/s",
        "RMS error of the flows' rates against their targets, each over its active time; none with users or "
        "flows that come and go.",
        lambda flows: _over(fairness.rmse, flows.aimed),
        lambda flows: flows.capacity is not None,
    ),
    RunMeasure(
        "jain_index",
        "",
        "Jain's index of rate over target, all flows that were active; none with users or flows that come "
        "and go.",
        lambda flows: _over(fairness.jain_index, flows.aimed),
        lambda flows: flows.capacity is not None,
    ),
)
"""Targets, and Jain's index over all flows, are defined at one link that all flows share; runs have them if
exactly one link has a queue rule, and no users or flows that come and go are among them."""


# ---------------------------------------------------------------- views


@dataclass(frozen=True, slots=True)
class Line:
    """A measure in a listing.

    Attributes:
        name: Its key or column.
        metric: Its name in sweeps, with `NAME` and `CLASS` for what the scenario names; empty without one.
    """

    name: str
    unit: Unit
    metric: str
    description: str


def lines() -> dict[str, list[Line]]:
    """Every measure, by what it is measured of."""
    from perhop.measures import finite_flows  # noqa: PLC0415 - it needs numpy, which takes its time

    def over_flows(entry: ClassMeasure) -> Line:
        metric = entry.summary.metric
        by_flow = {one.name: one.summary for one in FLOW}
        several = {
            "mean": "mean over the class's flows that have a value",
            "sum": "sum over the class's flows",
            "share": "of all packets of the class",
        }
        how = "of all packets of the class" if entry.name in _OF_CLASS else several[entry.summary.statistic]
        own = f" ({how})" if entry.name in by_flow else ""
        text = f"{entry.description.removesuffix('.')}{own}."
        return Line(entry.name, entry.unit, f"flows.NAME.{metric}" if metric else "", text)

    def of_link(place: str) -> Callable[[Measure], Line]:
        def line(entry: Measure) -> Line:
            metric = "" if entry.summary is None else f"{place}.{entry.summary.metric}"
            return Line(entry.name, entry.unit, metric, entry.description)

        return line

    return {
        "run": [Line("", entry.unit, entry.name, entry.description) for entry in RUN],
        "class of flows": [over_flows(entry) for entry in CLASS],
        "flow": [Line(entry.name, entry.unit, "", entry.description) for entry in FLOW],
        "population, and a range of sizes of its flows": [
            Line(entry.name, entry.unit, f"populations.NAME{of_size}.{entry.name}", entry.description)
            for entries, of_size in ((finite_flows.MEASURES, "[.SIZE]"), ((finite_flows.OPEN,), ""))
            for entry in entries
        ],
        "link": [of_link("links.NAME")(entry) for entry in LINK],
        "queue of a link, and each class that it distinguishes": [
            of_link("links.NAME[.classes.CLASS]")(entry) for entry in QUEUE
        ],
        **{
            f"group of users: {model}": [
                Line(entry.name, entry.unit, f"applications.NAME.{entry.name}", entry.description)
                for entry in entries
            ]
            for model, entries in APPLICATION.items()
            if entries
        },
    }


_FORMER = {
    "mean_transit": "one_way_delay",
    "transit": "one_way_delay",
    "p99_transit": "one_way_delay_p99",
    "transit_p99": "one_way_delay_p99",
}
"""Former names of measures, without their unit, and what they are called."""
_FORMER_NAME = re.compile(rf"^(|.*\.)({'|'.join(_FORMER)})((?:_low|_high)?_s)$")


def current(name: str) -> str:
    """The name today of a measure, a column or a metric that files of earlier versions may hold."""
    found = _FORMER_NAME.match(name)
    return name if found is None else f"{found[1]}{_FORMER[found[2]]}{found[3]}"


def unit_of_metric(metric: str) -> Unit:
    """The unit of a metric of sweeps, by the last part of its name; none where no measure has that."""
    return _UNITS.get(metric.rpartition(".")[2], "")


def _units() -> Iterator[tuple[str, Unit]]:
    yield from ((entry.name, entry.unit) for entry in RUN)
    yield from ((entry.summary.metric, entry.unit) for entry in CLASS)
    # Those of finite flows that have a unit: perhop.measures.finite_flows needs numpy, which takes its time.
    yield from ((f"completion_{statistic}_s", "s") for statistic in ("p50", "p99", "mean"))
    yield from ((one.summary.metric, one.unit) for one in (*LINK, *QUEUE) if one.summary is not None)
    yield from ((one.name, one.unit) for entries in APPLICATION.values() for one in entries)


_UNITS: Mapping[str, Unit] = dict(_units())


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


def _over(
    measure: Callable[[Sequence[float], Sequence[float]], float | None], pairs: Sequence[tuple[float, float]]
) -> float:
    """A measure of values and what was wanted of each; NaN where there are none."""
    if not pairs:
        return math.nan
    values, wanted = zip(*pairs, strict=True)
    return _number(measure(values, wanted))


def _pairs(values: Sequence[float], others: Sequence[float]) -> list[tuple[float, float]]:
    """A value of each flow and another, of those that have a value."""
    pairs = zip(values, others, strict=True)
    return [(value, other) for value, other in pairs if not math.isnan(value)]


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else math.nan


def _zero_for_none(count: float) -> int:
    return 0 if math.isnan(count) else int(count)


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
