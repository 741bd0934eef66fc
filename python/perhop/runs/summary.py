"""What `perhop run` shows of a scenario: one line for each class and link, and pictures."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import polars as pl

from perhop.measures import catalog, finite_flows
from perhop.plurals import lasting
from perhop.runs import budget, frames, observing, populations
from perhop.runs.result import describe_runs
from perhop.scenario.traces import traces
from perhop.show import limits
from perhop.show.declared import Axis, Plot, Reference, Row
from perhop.show.distributions import SHARE, block_size, cdf_by_group, curve, histogram_shares, over_time
from perhop.show.numbers import exact, rounded
from perhop.show.readable import HEADS, LEFT_OUT_FIRST, LOSS, end_names, readable
from perhop.show.table import prose, records

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from perhop.measures.run import Run
    from perhop.runs.result import Result
    from perhop.show.distributions import Drawn

TIME = Axis("time_s", "Time, s")
MEAN_OF_CLASS = "mean over the flows of a class"
MEASURED = Axis("series", "", {"measured": "measured"})


@dataclass(frozen=True, slots=True)
class Summary:
    """A scenario's outcome in words and pictures.

    Attributes:
        classes: One record of strings for each class.
        all_columns: The same with every column.
        links: The same for each link.
        populations: The same for each population and range of sizes of its flows.
        applications: By model, the same for each group of users.
        link_classes: The same for each class of packets that a link's queue distinguishes, if any does.
        plots: Plots with the rows they draw.
        scenario: What was simulated.
        machine: On real packets, one record for each run: how well the machine kept up.
        remarks: What a reader should know of it.
        limited: What kept flows from sending more.
        counted: What the numbers are: what is counted when, and what ± means.
        by_default: Whether nobody said how many runs to make; None where that is not known.
    """

    title: str
    lead: str
    classes: Sequence[Mapping[str, str]]
    links: Sequence[Mapping[str, str]]
    plots: Sequence[tuple[Plot, Sequence[Row]]]
    scenario: Mapping[str, Any]
    link_classes: Sequence[Mapping[str, str]] = ()
    populations: Sequence[Mapping[str, str]] = ()
    applications: Mapping[str, Sequence[Mapping[str, str]]] = field(default_factory=dict)
    all_columns: Sequence[Mapping[str, str]] = ()
    limited: Sequence[str] = ()
    counted: str = ""
    machine: Sequence[Mapping[str, str]] = ()
    remarks: Sequence[str] = ()
    by_default: bool | None = None

    def text(self, width: int | None = None) -> str:
        """The summary as plain text for a terminal of that width; None for no limit."""
        tables = [
            records(table, width, LEFT_OUT_FIRST)
            for table in (
                (self.all_columns or self.classes) if width is None else self.classes,
                self.populations,
                *self.applications.values(),
                self.links,
                self.link_classes,
            )
            if table
        ]
        notes = [prose(text, width) for text in (*self.limited, self.counted) if text]
        parts = [prose(self.title, width), prose(self.lead, width)]
        return "\n".join(
            [
                *parts,
                *("\n".join(["", *table]) for table in tables),
                "",
                *notes,
            ]
        )


def summarize(
    result: Result, how: str = "simulated", name: str = "", *, by_default: bool | None = None
) -> Summary:
    """What to show of a result.

    Args:
        result: The runs.
        how: How they were made.
        name: The title where the scenario has none.
        by_default: Whether nobody said how many runs to make; None where that is not known.
    """
    scenario = json.loads(result.scenario)
    classes, links, link_classes = result.classes(), result.link_summary(), result.link_class_summary()
    of_flows = result.population_summary()
    shown = readable(classes, limits.remarkable(result.runs))
    of_links = readable(links)
    of_classes = readable(link_classes) if link_classes.height else []
    of_populations = readable(of_flows) if of_flows.height else []
    rows = (*shown, *of_links, *of_classes, *of_populations)
    return Summary(
        title=str(scenario.get("title") or name or result.title),
        lead=describe_runs(result.runs, how),
        classes=shown,
        links=of_links,
        link_classes=of_classes,
        populations=of_populations,
        all_columns=readable(classes, None),
        plots=[
            class_plot(result),
            *user_times(result),
            *waiting_times(result.runs),
            *over_time_of(result.runs),
        ],
        scenario=scenario,
        applications={model: readable(frame) for model, frame in result.applications().items()},
        counted=_counted(result, {head for row in rows for head in row}, by_default=bool(by_default)),
        by_default=by_default,
        limited=list(limits.sentences(result.runs, scenario)),
    )


def _counted(result: Result, heads: Collection[str], *, by_default: bool) -> str:
    """Footnotes: which packets count, how many runs there are, and what each column in `heads` means."""
    warmup = result.runs[0].raw["warmup_s"]
    sentences = [
        f"All figures exclude the warm-up (the first {exact(warmup)} s), loss and drops included."
        if warmup
        else "All figures are of the whole run: the scenario sets no warm-up.",
    ]
    if any(head.endswith(LOSS) for head in heads):
        sentences.append("Lost: packets dropped, of those that arrived.")
    if len(result.runs) > 1:
        sentences.append(f"{len(result.runs)} runs; ± or in brackets: the 95 % interval.")
        if by_default:
            sentences.append(budget.reason(len(result.runs)))
    else:
        sentences.append(f"1 run: no interval; --runs {30 if result.engine else 5} gives intervals.")
    sentences += _explained(result, heads)
    return " ".join(sentences)


_MOSTLY = 0.9
"""A flow that is active for less of the measured time has a rate that is not a part of the link's."""

_COLUMNS = {
    HEADS["jitter_s"]: "Jitter: RFC 3550, from host to host.",
    HEADS["policing_ratio"]: "Policed: packets that the meter dropped, of those sent.",
    HEADS["late_ratio"]: "Late: for the play-out buffer, of the packets that arrived.",
    HEADS["call_r"]: "R, MOS: E-model of ITU-T G.107, without echo.",
    "FCT": "FCT: flow completion time; unfinished flows count by the product limit. No p99 where they leave "
    "it open.",
    "slowdown": "Slowdown: FCT over the least time on the idle path.",
    HEADS["link_loss"]: "Link loss: packets that a link lost after it had sent them, of those that it sent.",
    HEADS["reordering_ratio"]: "Reordered: packets that came after one that the link had sent later.",
    HEADS["delay_variation_s"]: "Delay variation: p99 − p50 of the waiting time at the link.",
}
"""What a column is, by what its head begins with; said below the tables that have it."""

_FROM_FILES = {
    "rates": "Rates of links from traces",
    "arrivals": "Arrivals of flows from traces",
    "sizes": "Sizes of flows from distributions",
    "packets": "Packets replayed",
}
"""What a scenario has from files."""


def _explained(result: Result, heads: Collection[str]) -> list[str]:
    """Footnotes for columns that only some tables have, and for data that comes from files."""
    sentences = []
    raw = result.runs[0].raw
    mostly_s = _MOSTLY * (raw["duration_s"] - raw["warmup_s"])
    if any((run.flows("active_s") < mostly_s).any() for run in result.runs):
        sentences.append("Throughput: of each flow over the time in which it was active (`active_s`).")
    if any(run.raw["populations"] for run in result.runs):
        come_and_go = [flow for flow in json.loads(result.scenario)["flows"] if "arrivals" in flow]
        part = any(
            "stop" in flow or not str(flow.get("start", "0s")).startswith("0s") for flow in come_and_go
        )
        sentences.append(
            "The throughput of flows that come and go is that of all of a class together, over the whole "
            f"measured time{', also before its `start` and after its `stop`' if part else ''}."
        )
        sentences.append("Sizes are of payload.")
    sentences += [text for head, text in _COLUMNS.items() if any(_begins(shown, head) for shown in heads)]
    sentences += filter(None, (_cut_off(result), _unseen(result), _partial(result)))
    followed = list(traces(json.loads(result.scenario)))
    for kind, text in _FROM_FILES.items():
        if of_kind := [str(trace) for trace in followed if trace.kind == kind]:
            sentences.append(f"{text}: {'; '.join(of_kind)}.")
    return sentences


def _cut_off(result: Result) -> str:
    """A note that mean times are lower bounds where the longest were unfinished at the end of the runs."""
    frames_ = (result.classes(), result.population_summary(), *result.applications().values())
    heads = [
        HEADS[name].partition(",")[0]
        for frame in frames_
        for name in frame.columns
        if name in _TIMES and math.inf in frame[end_names(name)[1]].to_list()
    ]
    if not heads:
        return ""
    return (
        f"{', '.join(dict.fromkeys(heads))} (over …): a lower bound, too low by what the longest would have "
        "taken, which were unfinished at the end of the run."
    )


def _unseen(result: Result) -> str:
    """A note on how long users were simulated where an event that is measured per hour happened to none."""
    for users in result.runs[0].raw.get("applications", ()):
        for entry in catalog.APPLICATION[users["model"]]:
            if entry.unit != "s/h":
                continue
            frame, high = result.applications()[users["model"]], end_names(entry.name)[1]
            frame = frame.filter((pl.col(entry.name) == 0) & (pl.col(high) == math.inf))
            if frame.height:
                watched = float(frame["users"].sum()) * _measured_s(result) * len(result.runs)
                return (
                    f"{entry.label.capitalize()} 0 (or more): none in {lasting(watched)}, all users and runs "
                    "together; longer or more runs show how rare it is."
                )
    return ""


def _measured_s(result: Result) -> float:
    raw = result.runs[0].raw
    return float(raw["duration_s"] - raw["warmup_s"])


@dataclass(frozen=True, slots=True)
class Partial:
    """A measure that some runs lack.

    Attributes:
        table: Its key in the results as JSON.
        name: Of the class or link.
        column: Its column there.
        head: What tables call it.
        runs: How many have a value.
    """

    table: str
    name: str
    column: str
    head: str
    runs: int


def partial(result: Result) -> list[Partial]:
    """Which measures are of fewer runs than there are, because the others have no value."""
    found = [
        Partial(table, name, column, head, sum(not math.isnan(value) for value in values))
        for of in (_values_of_classes, _values_of_users, _values_of_links, _values_of_populations)
        for table, name, column, head, values in of(result)
    ]
    return [one for one in found if 0 < one.runs < len(result.runs)]


Values = tuple[str, str, str, str, list[float]]
"""Of a measure in each run: table, name of the line, column, head, values."""


def _values_of_classes(result: Result) -> Iterator[Values]:
    by_run = [list(catalog.members(run.raw)) for run in result.runs]
    for of_class in zip(*by_run, strict=True):
        for entry in catalog.CLASS:
            if entry.name in HEADS:
                values = [entry.value(members) for _, members in of_class]
                yield "classes", str(of_class[0][0]["name"]), entry.name, _head(entry.name), values


def _values_of_users(result: Result) -> Iterator[Values]:
    for users in zip(*(run.raw.get("applications", ()) for run in result.runs), strict=True):
        for entry in catalog.APPLICATION[users[0]["model"]]:
            if catalog.percentile(entry.name) is None:
                values = [observing.number(each["measures"][entry.name]) for each in users]
                yield "applications", str(users[0]["name"]), entry.name, entry.label, values


def _values_of_links(result: Result) -> Iterator[Values]:
    for places in zip(*(run.raw["links"] for run in result.runs), strict=True):
        for entry in catalog.in_tables((*catalog.LINK, *catalog.QUEUE)):
            if catalog.percentile(entry.name) is None:
                values = [observing.number(place[entry.name]) for place in places]
                yield "links", str(places[0]["name"]), entry.name, _head(entry.name), values


def _values_of_populations(result: Result) -> Iterator[Values]:
    for name, flows in populations.by_run(result):
        for entry in finite_flows.MEASURES:
            if entry.is_mean:
                values = [entry.value(one) for one in flows]
                yield "populations", name, entry.name, _head(entry.name), values


def _head(column: str) -> str:
    return HEADS[column].partition(",")[0]


def _partial(result: Result) -> str:
    """Which means are of fewer runs than there are, in a sentence; empty where none is."""
    some = [f"{one.name} {one.head} in {one.runs} of {len(result.runs)}" for one in partial(result)]
    if not some:
        return ""
    rest = f" and {len(some) - MOST_PARTIAL} more (see --json)" if len(some) > MOST_PARTIAL else ""
    return f"Not all runs have a value: {', '.join(some[:MOST_PARTIAL])}{rest}."


MOST_PARTIAL = 5
"""Measures that some runs lack and that a note names."""

_TIMES = {
    *catalog.OF_COMPLETED,
    *(one.name for one in finite_flows.MEASURES if one.is_mean),
    *(
        one.name
        for entries in catalog.APPLICATION.values()
        for one in entries
        if catalog.times_of(one.name) is not None and catalog.percentile(one.name) is None
    ),
}
"""Means of times that the end of a run may cut off."""


def _begins(shown: str, head: str) -> bool:
    """Whether a column is the one of this head, or one of several of this word."""
    return shown == head or shown.startswith((f"{head} ", f"{head},"))


def to_json(result: Result, *, by_default: bool | None = None) -> str:
    """Classes and links as JSON text, byte for byte the same for the same scenario, seeds and engine.

    Args:
        result: The runs.
        by_default: Whether nobody said how many runs to make; None where that does not stand in the text.
    """
    engine = {"name": result.engine, "reason": result.engine_reason}
    content = {
        **({"engine": engine} if result.engine else {}),
        "seeds": [run.seed for run in result.runs],
        **({} if by_default is None else {"runs_by_default": by_default}),
        **numbers(result),
        **partial_json(result),
    }
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def numbers(result: Result) -> dict[str, Any]:
    """Every number of the tables as plain data, the same for the same scenario and seeds."""

    def rows(frame: pl.DataFrame) -> list[dict[str, Any]]:
        return [{name: _plain(value) for name, value in row.items()} for row in frame.iter_rows(named=True)]

    of_populations = result.population_summary()
    applications = {model: rows(frame) for model, frame in result.applications().items()}
    return {
        "classes": rows(result.classes()),
        **({"applications": applications} if applications else {}),
        "links": rows(result.link_summary()),
        "link_classes": rows(result.link_class_summary()),
        **({"populations": rows(of_populations)} if of_populations.height else {}),
    }


def frames_of_runs(result: Result) -> dict[str, pl.DataFrame]:
    """What tables are made of, by name: of each run its flows, and its samples over time."""
    return {
        "flows": result.flows,
        "flows-of-populations": result.population_flows,
        "flows-over-time": result.series,
        "queues-over-time": result.queues,
    }


def partial_json(result: Result) -> dict[str, Any]:
    """The measures that some runs lack, as data; nothing where there is none."""
    found = [
        {"table": one.table, "of": one.name, "measure": one.column, "runs": one.runs}
        for one in partial(result)
    ]
    return {"partial": found} if found else {}


def _plain(value: object) -> object:
    """A cell as JSON has it: null for the end of an interval that is not known."""
    if not isinstance(value, float):
        return value
    return None if math.isinf(value) else rounded(value)


QUANTITIES = {
    "page_s": ("page-times", "Page times", "page time, ms", "fraction of pages"),
    "response_s": ("response-times", "Response times", "response time, ms", "fraction of responses"),
}
"""What users wait for, and the words of its plot."""


def user_times(result: Result) -> Iterator[tuple[Plot, Sequence[Row]]]:
    """How long transfers, pages and responses take: a distribution for each, by class.

    Those that had not ended by the end of the run count as the longest.
    """
    names = [group.name for group in result.runs[0].groups]
    flows = result.population_flows.filter(pl.col("started_s") >= result.runs[0].raw["warmup_s"])
    flows = flows.with_columns(pl.col("completion_s").fill_null(math.inf))
    kinds = [
        (("completion-times", "Flow completion times", "completion time, ms", "fraction of flows"), flows)
    ]
    samples = result.application_samples.with_columns(completion_s=pl.col("value"))
    open_ = [frame for run in result.runs for frame in frames.application_frames(run, "open")]
    if open_:
        samples = pl.concat([samples, *(frame.with_columns(completion_s=math.inf) for frame in open_)])
    kinds += [(words, samples.filter(pl.col("quantity") == name)) for name, words in QUANTITIES.items()]
    for (place, title, x_label, y_label), frame in kinds:
        by_class = {
            str(name): [
                of_class.filter(pl.col("seed") == run.seed)["completion_s"].to_numpy() * 1e3
                for run in result.runs
            ]
            for (name,), of_class in frame.group_by(["class"], maintain_order=True)
        }
        drawn = cdf_by_group(
            by_class, id=place, title=title, x_label=x_label, y_label=y_label, names=names, logarithmic=True
        )
        if drawn:
            yield drawn


def class_plot(result: Result) -> tuple[Plot, list[Row]]:
    """The throughput of a flow of each class, beside its profile."""
    frame = result.classes()
    rows = [
        Row(
            {"class": row["class"], **_SERIES},
            "throughput",
            "Mbit/s",
            None,
            row["throughput_bps"] / 1e6,
            None
            if row["throughput_low_bps"] is None
            else (row["throughput_low_bps"] / 1e6, row["throughput_high_bps"] / 1e6),
            len(result.runs),
        )
        for row in frame.iter_rows(named=True)
        if row["throughput_bps"] is not None  # a class that was never active has no rate
    ]
    names = frame["class"].to_list()
    profiles = dict(zip(names, (rate / 1e6 for rate in frame["profile_bps"]), strict=True))
    # Flows that come and go are counted together: their rate is not that of a flow, which a profile is for.
    together = set(frame.filter(pl.col("flows").is_null())["class"])
    kept = {name: rate for name, rate in profiles.items() if rate and name not in together}
    profile = Reference("profile", "class", kept)
    plot = Plot(
        id="throughput",
        title="Throughput of a flow",
        kind="bars",
        metric="throughput",
        x=Axis("class", "Class", {name: f"{name}, all" if name in together else name for name in names}),
        series=MEASURED,
        y_label="Mbit/s per flow",
        references=(profile,),
    )
    return plot, rows


_SERIES = {"series": "measured"}


def waiting_times(runs: Sequence[Run], only: str | None = None) -> list[Drawn]:
    """How long packets waited: a panel for each link (or one only), a curve for each class of its queue."""
    links: dict[str, list[Row]] = {}
    used: Counter[str] = Counter()
    for link, name, histograms in _histograms(runs):
        if only not in (None, link):
            continue
        links.setdefault(link, []).extend(_waits({"link": link, "class": name}, histograms))
        used[link] += _packets(histograms)
    series = Axis("class", "Packets", {name: name for name in _names(runs)})
    return _waiting(links, used, series, Axis("link", "Link"), name="delay", title="Waiting time of packets")


def waiting_times_beside(sources: Mapping[str, Sequence[Run]], series: Axis, of: str = "") -> list[Drawn]:
    """Waiting times of several sources: a panel for each class of each link, a curve for each source.

    Args:
        sources: Their runs, by name.
        series: The axis of these names.
        of: What the title says besides.
    """
    panels: dict[str, list[Row]] = {}
    used: Counter[str] = Counter()
    for source, runs in sources.items():
        for link, name, histograms in _histograms(runs) if runs else ():
            panel = f"{link}, {name}"
            panels.setdefault(panel, []).extend(_waits({"queue": panel, series.factor: source}, histograms))
            used[panel] += _packets(histograms)
    title = f"Waiting time of packets{of}"
    return _waiting(panels, used, series, Axis("queue", "Queue"), name="waiting-times", title=title)


def _waits(factors: Mapping[str, str | float], histograms: Histograms) -> list[Row]:
    edges, shares = histogram_shares(histograms)
    return curve(factors, "delay_ms", edges * 1e3, shares, thinned=True) if len(shares) else []


def _packets(histograms: Histograms) -> int:
    return sum(int(counts.sum()) for _, counts in histograms)


def _waiting(
    panels: Mapping[str, Sequence[Row]],
    used: Counter[str],
    series: Axis,
    facet: Axis,
    *,
    name: str,
    title: str,
) -> list[Drawn]:
    """The plot of the panels with the most packets."""
    shown = {panel for panel, packets in used.most_common(MOST_PANELS) if packets}
    rows = [row for panel, of_panel in panels.items() if panel in shown for row in of_panel]
    if not rows:
        return []
    left_out = f" (the {MOST_PANELS} queues with the most packets)" if len(used) > MOST_PANELS else ""
    plot = Plot(
        id=name,
        title=title + left_out,
        kind="cdf",
        metric=SHARE,
        x=Axis("delay_ms", "Waiting time, ms"),
        series=series,
        y_label="fraction of packets",
        facet=replace(facet, names={panel: panel for panel in panels}),
    )
    return [(plot, rows)]


MOST_CLASSES = 14
"""Classes whose throughput over time is drawn: as many as colors and dashes tell apart."""
MOST_PANELS = 6
"""Links whose waiting times are drawn."""
ALL = "all packets"


def _names(runs: Sequence[Run]) -> list[str]:
    """Classes in one order for all pictures of a page: those of flows, then those of packets at links."""
    of_packets = [one["name"] for link in runs[0].raw["links"] for one in link["classes"]]
    return list(dict.fromkeys([*(group.name for group in runs[0].groups), *of_packets, ALL]))


Histograms: TypeAlias = "list[tuple[NDArray[np.float64], NDArray[np.int64]]]"


def _histograms(runs: Sequence[Run]) -> Iterator[tuple[str, str, Histograms]]:
    """The waiting times of each run: for each link each class that it distinguishes, or all its packets."""
    for number, link in enumerate(runs[0].raw["links"]):
        links = [run.raw["links"][number] for run in runs]
        names = [one["name"] for one in link["classes"]]
        for place, name in enumerate(names):
            yield link["name"], name, [_histogram(one["classes"][place]) for one in links]
        if not names:
            yield link["name"], ALL, [_histogram(one) for one in links]


def _histogram(queue: Mapping[str, Any]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    delays = queue["delay_s"]
    return delays["edges"], delays["counts"].sum(axis=1)


def over_time_of(runs: Sequence[Run]) -> list[Drawn]:
    """Rates of classes and lengths of queues over time, if the scenario has probes."""
    return [*throughput_over_time(runs), *queues_over_time(runs)]


def throughput_over_time(runs: Sequence[Run]) -> list[Drawn]:
    """The mean throughput of each class's flows over time, if the scenario has probes."""
    what = f"Throughput over time, {MEAN_OF_CLASS}"
    return _classes_over_time(runs, "throughput", what, "Mbit/s per flow", _throughput)


def windows_over_time(runs: Sequence[Run]) -> list[Drawn]:
    """The mean congestion window of each class's flows over time, if the scenario has probes and TCP."""
    what = f"Congestion window over time, {MEAN_OF_CLASS}"
    return _classes_over_time(runs, "window", what, "packets per flow", _windows)


def rtts_over_time(runs: Sequence[Run]) -> list[Drawn]:
    """The mean round-trip time of each class's flows over time, if the scenario has probes and TCP."""
    return _classes_over_time(runs, "rtt", f"RTT over time, {MEAN_OF_CLASS}", "ms", _rtts)


def _classes_over_time(
    runs: Sequence[Run],
    metric: str,
    title: str,
    y_label: str,
    rows_of: Callable[[Sequence[Run]], list[Row]],
) -> list[Drawn]:
    if not has_samples(runs):
        return []
    rows = rows_of(runs)
    if not rows:
        return []
    plot = Plot(
        id=f"{metric}-in-time",
        title=_of_classes(runs, title),
        kind="lines",
        metric=metric,
        x=TIME,
        series=Axis("class", "Class", {name: name for name in _names(runs)}),
        y_label=y_label,
        steady=True,
    )
    return [(plot, rows)]


def queues_over_time(runs: Sequence[Run], only: str | None = None) -> list[Drawn]:
    """The packets that wait at each link (or one only) over time, if the scenario has probes and queues."""
    if not has_samples(runs):
        return []
    links = [link for link in runs[0].raw["series"]["links"] if only in (None, link)]
    rows = [row for link in links for row in _queue_over_time(runs, link)]
    if not rows:
        return []
    plot = Plot(
        id="queue-in-time",
        title=f"Queue over time{_averaged(runs)}",
        kind="lines",
        metric="queue",
        x=TIME,
        series=Axis("quantity", "Quantity", {name: name for name in _names(runs)}),
        y_label="packets",
        facet=Axis("link", "Link"),
        steady=True,
    )
    return [(plot, rows)]


def has_samples(runs: Sequence[Run]) -> bool:
    """Whether the scenario has probes."""
    return bool(runs[0].raw["series"]["time_s"].size)


def throughput_beside(sources: Mapping[str, Sequence[Run]], series: Axis, of: str = "") -> list[Drawn]:
    """Throughput over time for runs of several sources: a panel for each class, a curve for each source.

    Args:
        sources: See `waiting_times_beside`.
        series: See `waiting_times_beside`.
        of: See `waiting_times_beside`.
    """
    known = {name: runs for name, runs in sources.items() if runs}
    first = next(iter(known.values()), ())
    if not first or not has_samples(first):
        return []
    rows = [row for name, runs in known.items() for row in _throughput(runs, {series.factor: name})]
    classes = {group.name: group.name for group in first[0].groups}
    plot = Plot(
        id="throughput-in-time",
        title=f"{_of_classes(first, f'Throughput over time, {MEAN_OF_CLASS}')}{of}",
        kind="lines",
        metric="throughput",
        x=TIME,
        series=series,
        y_label="Mbit/s per flow",
        facet=Axis("class", "Class", classes),
        steady=True,
    )
    return [(plot, rows)]


def _averaged(runs: Sequence[Run]) -> str:
    """What a title says of averaged samples."""
    size = block_size(runs[0].raw["series"]["time_s"].size)
    return f", means of {size} samples" if size > 1 else ""


def _of_classes(runs: Sequence[Run], what: str) -> str:
    """The title of a plot of classes over time."""
    classes = len(runs[0].groups)
    left_out = f" (the first {MOST_CLASSES} of {classes} classes)" if classes > MOST_CLASSES else ""
    return f"{what}{_averaged(runs)}{left_out}"


def _throughput(runs: Sequence[Run], factors: Mapping[str, str | float] | None = None) -> list[Row]:
    """The mean throughput of each class's flows over time in Mbit/s.

    `Result.series` has it, too, but copies samples several times, which may be most of the memory there is.
    """
    return _class_means(runs, "throughput_bps", ("throughput", "Mbit/s", 1e6), factors)


def _windows(runs: Sequence[Run]) -> list[Row]:
    """The mean congestion window of each class's flows over time in packets; none of flows without one."""
    return _class_means(runs, "cwnd_packets", ("window", "packets", 1.0), None)


def _rtts(runs: Sequence[Run]) -> list[Row]:
    """The mean round-trip time of each class's flows over time in ms; none of flows without one."""
    return _class_means(runs, "rtt_s", ("rtt", "ms", 1e-3), None)


def _class_means(
    runs: Sequence[Run],
    column: Literal["throughput_bps", "cwnd_packets", "rtt_s"],
    shown: tuple[str, str, float],
    factors: Mapping[str, str | float] | None,
) -> list[Row]:
    """The mean of a column of the samples over each class's flows that have a value, over time.

    Args:
        runs: At least one.
        column: Of the samples.
        shown: The metric's name, its unit, and how many of the column's unit it is.
        factors: Of all rows.
    """
    metric, unit, size = shown
    groups = runs[0].groups
    ends = np.cumsum([group.count for group in groups])
    by_class: list[list[tuple[NDArray[np.float64], NDArray[np.float64]]]] = [[] for _ in groups]
    for run in runs:
        series = run.raw["series"]
        parts = np.split(series[column], ends[:-1], axis=1)  # views
        for samples, part in zip(by_class, parts, strict=True):
            samples.append((series["time_s"], _mean_known(part) / size))
    return [
        row
        for group, samples in zip(groups[:MOST_CLASSES], by_class, strict=False)
        for row in over_time({"class": group.name, **(factors or {})}, metric, unit, samples)
    ]


def _mean_known(samples: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean of each line's values that are numbers; NaN without any."""
    known = ~np.isnan(samples)
    if known.all():
        found: NDArray[np.float64] = samples.mean(axis=1)
        return found
    counts = known.sum(axis=1)
    sums = np.where(known, samples, 0.0).sum(axis=1)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _queue_over_time(runs: Sequence[Run], link: str) -> Iterator[Row]:
    """What waits at a link: the packets of each class, or all; and the averages that its AQM works with."""
    probes = [(run.raw["series"]["time_s"], run.raw["series"]["links"][link]) for run in runs]
    _, first = probes[0]
    for name in first["classes"]:
        of_class = [(times, one["classes"][name]["packets"]) for times, one in probes]
        yield from over_time({"link": link, "quantity": name}, "queue", "packets", of_class)
    if not first["classes"]:
        everything = [(times, one["queue_packets"]) for times, one in probes]
        yield from over_time({"link": link, "quantity": ALL}, "queue", "packets", everything)
    for name in first["gauges"]:
        if name.startswith("average "):
            gauge = [(times, one["gauges"][name]) for times, one in probes]
            yield from over_time({"link": link, "quantity": name}, "queue", "packets", gauge)
