"""The catalog of measures: what each is called, its unit, what it means, and how it comes from a run.

A measure is declared once. Those of a flow, a link and a queue are entries of the engine
(`crates/perhop-sim/src/measures`); those of a class of flows and of a whole run, which combine several flows,
are entries here, computed from the columns of `flow_table`. Data frames, summary tables, pages, sweeps,
comparisons, `docs/measures.md` and `perhop list measures` follow from these entries and name no measure
themselves; `naming` reads units, bounds and percentiles from the names of metrics.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias, TypeVar

from perhop import _engine
from perhop.measures import fairness
from perhop.measures.flow_table import Flows, Members, ratio, slack_of, without_nan
from perhop.measures.run import COLORS

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
"""The form in which each unit is shown."""


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
    known = without_nan(flows.of(name))
    return math.fsum(known) / len(known) if known else math.nan


def _sum(name: str, flows: Members) -> float:
    known = without_nan(flows.of(name))
    return math.fsum(known) if known else math.nan


def _shares(of: Sequence[str], name: str, flows: Members) -> list[tuple[float, float]]:
    """The share of each flow that has one, with the number of packets that it is a fraction of."""
    pairs = zip(flows.of(name), flows.packets(of), strict=True)
    return [(share, packets) for share, packets in pairs if not math.isnan(share)]


def _share(of: Sequence[str], name: str, flows: Members) -> float:
    """A class's share of packets, over all packets of its flows that have such a share."""
    known = _shares(of, name, flows)
    return ratio(
        math.fsum(share * packets for share, packets in known), math.fsum(packets for _, packets in known)
    )


def _trials(of: Sequence[str], name: str, flows: Members) -> float:
    """The number of packets of which a class's share is."""
    return math.fsum(packets for _, packets in _shares(of, name, flows))


_STATISTICS: Mapping[Statistic, Callable[[str, Members], float]] = {"mean": _mean, "sum": _sum}


def _over_flows(entry: Measure) -> ClassMeasure:
    """Return the measure of a class that combines a measure of its flows."""
    assert entry.summary is not None
    column = "" if entry.summary.place is None else entry.name
    own, trials = OF_CLASS.get(entry.name), None
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


OF_CLASS: Mapping[str, Callable[[Members], float]] = {"one_way_delay_p99_s": _p99_transit}
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


def _profile_success(flows: Members) -> float:
    rates = flows.of("throughput_bps")
    profiles = [flows.profile_bps] * len(rates)
    slack = slack_of(flows.of, profiles, flows.warmup_s)
    return _number(fairness.reservation_success(rates, profiles, slack))


def _one_cluster(_: object) -> float:
    """The flows of a run share its random numbers: a share of them counts as one trial."""
    return 1.0


def _equal_shares(flows: Members) -> float:
    rates = without_nan(flows.of("throughput_bps"))
    return _number(fairness.jain_index(rates, [1.0] * len(rates)))


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
        lambda flows: min(without_nan(flows.of("throughput_bps")), default=math.nan),
    ),
    _of_sweeps(
        "throughput_max_bps",
        "bit/s",
        "The class's highest rate.",
        lambda flows: max(without_nan(flows.of("throughput_bps")), default=math.nan),
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
"""Measures of summary tables: those of classes of flows, links and queues."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound, the same in every run: network calculus derives it from the scenario alone (`perhop.bound`).

    Attributes:
        name: The column.
        key: Its place in what the engine derives of a flow or a queue: what is bounded, and the value.
        of: The measure after which tables have it.
    """

    name: str
    unit: Unit
    key: tuple[str, str]
    of: str
    summary: Summary
    description: str


def _beside(label: str, long_label: str = "", importance: int = 0) -> Summary:
    """The form in which tables show a bound; one without importance is in those with every column alone."""
    return Summary(
        label,
        long_label or label,
        "mean",
        None,
        classes_only=False,
        importance=importance,
        metric="",
        compared=None,
        above=None if importance else math.inf,
    )


_DELAY, _BACKLOG, _LOSS = ("delay", "at_most_s"), ("backlog", "at_most_bytes"), ("loss", "excluded")
FLOW_BOUNDS = (
    Bound(
        "one_way_delay_at_most_s",
        "s",
        _DELAY,
        "one_way_delay_p99_s",
        _beside("one-way at most", "one-way delay at most", 135),
        "One-way delay that no packet exceeds in any run, warm-up included, by network calculus; of a class "
        "the largest of its flows; none where there is no bound.",
    ),
    Bound(
        "loss_excluded",
        "",
        _LOSS,
        "one_way_delay_p99_s",
        _beside("loss excluded"),
        "Whether no packet of the flow, or of all flows of a class, can be lost in any run: at a queue, a "
        "meter or a link; none where that is not derived.",
    ),
)
QUEUE_BOUNDS = (
    Bound(
        "delay_at_most_s",
        "s",
        _DELAY,
        "delay_p99_s",
        _beside("at most", "delay at most", 135),
        "Waiting time in the queue that no packet exceeds in any run, warm-up included, by network calculus; "
        "none where there is no bound.",
    ),
    Bound(
        "backlog_at_most_bytes",
        "B",
        _BACKLOG,
        "delay_p99_s",
        _beside("backlog at most"),
        "Bytes that wait at most in any run, warm-up included, by network calculus; none where there is no "
        "bound.",
    ),
    Bound(
        "loss_excluded",
        "",
        _LOSS,
        "delay_p99_s",
        _beside("loss excluded"),
        "Whether the queue can drop no packet in any run; none where that is not derived.",
    ),
)
BOUNDS: Mapping[str, Bound] = {one.name: one for one in (*FLOW_BOUNDS, *QUEUE_BOUNDS)}
"""Every bound, by its name: of flows, of links and the classes of their queues."""

M = TypeVar("M", ClassMeasure, Measure)


def beside(entries: Iterable[M], bounds: Iterable[Bound]) -> Iterator[M | Bound]:
    """Yield measures, and after each the bounds that tables have beside it."""
    for entry in entries:
        yield entry
        yield from (bound for bound in bounds if bound.of == entry.name)


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
"""Numbers of packets of which shares of links and queues are, by the measure's name."""


# ---------------------------------------------------------------- over all flows of a run


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


def _over(
    measure: Callable[[Sequence[float], Sequence[float]], float | None], pairs: Sequence[tuple[float, float]]
) -> float:
    """A measure of values and what was wanted of each; NaN where there are none."""
    if not pairs:
        return math.nan
    values, wanted = zip(*pairs, strict=True)
    return _number(measure(values, wanted))


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
