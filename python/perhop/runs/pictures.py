"""The pictures of a run: what each class gets, how long users and packets wait, and samples over time."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import polars as pl

from perhop.runs import frames
from perhop.show.declared import Axis, Plot, Reference, Row
from perhop.show.distributions import SHARE, block_size, cdf_by_group, curve, histogram_shares, over_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from perhop.bounds.deriving import Bounds
    from perhop.measures.run import Run
    from perhop.runs.result import Result
    from perhop.show.distributions import Drawn

TIME = Axis("time_s", "Time, s")
MEAN_OF_CLASS = "mean over the flows of a class"
MEASURED = Axis("series", "", {"measured": "measured"})


QUANTITIES = {
    "page_s": ("page-times", "Page times", "page time, ms", "fraction of pages"),
    "response_s": ("response-times", "Response times", "response time, ms", "fraction of responses"),
}
"""The times that users wait, and the words of their plots."""


def of_result(result: Result) -> list[Drawn]:
    """The plots of the page of a result, the most important first."""
    return [
        class_plot(result),
        *user_times(result),
        *waiting_times(result.runs, result.bounds),
        *over_time_of(result.runs),
    ]


def user_times(result: Result) -> Iterator[Drawn]:
    """Return how long transfers, pages and responses take: a distribution for each, by class.

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
    groups = result.rows.groups
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
        for row in groups
        if row["throughput_bps"] is not None  # a class that was never active has no rate
    ]
    profiles = {row["class"]: row["profile_bps"] / 1e6 for row in groups}
    # Flows that come and go are counted together: their rate is not that of a flow, which a profile is for.
    together = {row["class"] for row in groups if row["flows"] is None}
    kept = {name: rate for name, rate in profiles.items() if rate and name not in together}
    profile = Reference("profile", "class", kept)
    plot = Plot(
        id="throughput",
        title="Throughput of a flow",
        kind="bars",
        metric="throughput",
        x=Axis("class", "Class", {name: f"{name}, all" if name in together else name for name in profiles}),
        series=MEASURED,
        y_label="Mbit/s per flow",
        references=(profile,),
    )
    return plot, rows


_SERIES = {"series": "measured"}


def waiting_times(runs: Sequence[Run], bounds: Bounds, only: str | None = None) -> list[Drawn]:
    """Draw waiting times: a panel for each link (or one only), a curve for each class of its queue.

    A bound of the waiting time is an upright line.
    """
    links: dict[str, list[Row]] = {}
    used: Counter[str] = Counter()
    for link, name, histograms in _histograms(runs):
        if only not in (None, link):
            continue
        factors = {"link": link, "class": name}
        links.setdefault(link, []).extend(_waits(factors, histograms))
        at_most = bounds.of_queue(link, None if name == ALL else name)["delay_at_most_s"]
        if isinstance(at_most, float):
            links[link].append(Row(factors, AT_MOST, "ms", None, at_most * 1e3, None, len(runs)))
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
        at_most=AT_MOST,
    )
    return [(plot, rows)]


MOST_CLASSES = 14
"""Classes whose throughput over time is drawn: as many as colors and dashes tell apart."""
MOST_PANELS = 6
"""Links whose waiting times are drawn."""
ALL = "all packets"
AT_MOST = "at most"
"""The metric of bounds in plots."""


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
    runs: Sequence[Run], metric: str, title: str, y_label: str, rows_of: Callable[[Sequence[Run]], list[Row]]
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
    """Return the words of a title on averaged samples."""
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
    """Yield the queue at a link: the packets of each class, or all; and the averages of its AQM."""
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
