"""What `perhop run` shows of a scenario: one line for each class and link, and pictures."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from perhop.output.readable import LEFT_OUT_FIRST, readable
from perhop.output.table import prose, records
from perhop.simulation import describe_runs
from perhop.study import Axis, Plot, Reference, Row, rounded
from perhop.traces import traces

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from perhop.simulation import Result

MEASURED = Axis("series", "", {"measured": "measured"})


@dataclass(frozen=True, slots=True)
class Summary:
    """A scenario's outcome in words and pictures.

    Attributes:
        classes: One record of strings for each class.
        links: The same for each link.
        link_classes: The same for each class of packets that a link's queue tells apart, if any does.
        plots: Plots with the rows they draw.
        scenario: What was simulated.
        machine: On real packets, one record for each run: how well the machine kept up.
        remarks: What a reader should know of it.
        counted: What the numbers are: what is counted when, and what ± means.
    """

    title: str
    lead: str
    classes: Sequence[Mapping[str, str]]
    links: Sequence[Mapping[str, str]]
    plots: Sequence[tuple[Plot, Sequence[Row]]]
    scenario: Mapping[str, Any]
    link_classes: Sequence[Mapping[str, str]] = ()
    counted: str = ""
    machine: Sequence[Mapping[str, str]] = ()
    remarks: Sequence[str] = ()

    def text(self, width: int | None = None) -> str:
        """The summary as plain text for a terminal of that width; None for no limit."""
        tables = [
            records(table, width, LEFT_OUT_FIRST)
            for table in (self.classes, self.links, self.link_classes)
            if table
        ]
        notes = [prose(self.counted, width)] if self.counted else []
        parts = [prose(self.title, width), prose(self.lead, width)]
        return "\n".join(
            [
                *parts,
                *("\n".join(["", *table]) for table in tables),
                "",
                *notes,
            ]
        )


def summarize(result: Result, how: str = "simulated", name: str = "") -> Summary:
    """What to show of a result; `name` stands for a title where the scenario has none."""
    scenario = json.loads(result.scenario)
    links, link_classes = result.link_summary(), result.link_class_summary()
    return Summary(
        title=str(scenario.get("title") or name or result.title),
        lead=describe_runs(result.runs, how),
        classes=readable(result.classes()),
        links=readable(links),
        plots=[_class_plot(result), *_delay_plots(result), *_series_plots(result)],
        scenario=scenario,
        link_classes=readable(link_classes) if link_classes.height else (),
        counted=_counted(result),
    )


def _counted(result: Result) -> str:
    """What is counted when, and what is known of how far to trust it."""
    warmup = result.runs[0].raw["warmup_s"]
    sentences = [
        f"All figures exclude the warm-up (the first {warmup:g} s), loss and drops included."
        if warmup
        else "All figures are of the whole run: the scenario sets no warm-up.",
        "Lost: packets dropped, of those that arrived.",
    ]
    if len(result.runs) > 1:
        sentences.append(f"Means over {len(result.runs)} runs; ±: half width of the 95 % interval.")
    else:
        sentences.append("1 run: no interval; --runs 5 gives intervals.")
    names = result.classes()
    if names["jitter_s"].is_not_null().any():
        sentences.append("Jitter: RFC 3550, from host to host.")
    if names["policing_ratio"].is_not_null().any():
        sentences.append("Policed: packets that the meter dropped, of those sent.")
    if names["unfinished"].is_not_null().any():
        sentences.append("FCT: flow completion time, over the flows that completed.")
    links = result.links
    if links["lost_packets"].is_not_null().any():
        sentences.append("Link loss: packets that a link lost after it had sent them, of those that it sent.")
    if links["reordered_packets"].is_not_null().any():
        sentences.append("Reordered: packets that came after one that the link had sent later.")
    followed = [str(trace) for trace in traces(json.loads(result.scenario))]
    if followed:
        sentences.append(f"Rates of links from traces: {'; '.join(followed)}.")
    if not result.link_classes.is_empty():
        sentences.append("Delay variation: p99 − p50 of the waiting time at the link.")
    return " ".join(sentences)


def to_json(result: Result) -> str:
    """Classes and links as JSON text, byte for byte the same for the same scenario, seeds and engine."""

    def rows(frame: pl.DataFrame) -> list[dict[str, Any]]:
        return [
            {name: rounded(v) if isinstance(v, float) else v for name, v in row.items()}
            for row in frame.iter_rows(named=True)
        ]

    engine = {"name": result.engine, "reason": result.engine_reason}
    content = {
        **({"engine": engine} if result.engine else {}),
        "seeds": [run.seed for run in result.runs],
        "classes": rows(result.classes()),
        "links": rows(result.link_summary()),
        "link_classes": rows(result.link_class_summary()),
    }
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _class_plot(result: Result) -> tuple[Plot, list[Row]]:
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
    ]
    names = frame["class"].to_list()
    profiles = dict(zip(names, (rate / 1e6 for rate in frame["profile_bps"]), strict=True))
    profile = Reference("profile", "class", {name: rate for name, rate in profiles.items() if rate})
    plot = Plot(
        id="throughput",
        title="Throughput of a flow",
        kind="bars",
        metric="throughput",
        x=Axis("class", "Class", {name: name for name in names}),
        series=MEASURED,
        y_label="Mbit/s per flow",
        references=(profile,),
    )
    return plot, rows


_SERIES = {"series": "measured"}


def _delay_plots(result: Result) -> list[tuple[Plot, list[Row]]]:
    """How long packets of each class waited, runs together; where a queue tells classes of packets apart."""
    apart = result.link_classes["link"].unique(maintain_order=True)
    if apart.is_empty():
        return []
    chosen = result.delays.filter(pl.col("link").is_in(apart.implode()), pl.col("class") != "all")
    counts = (
        chosen.group_by(["link", "class", "delay_s"], maintain_order=True)
        .agg(pl.col("packets").sum())
        .sort("link", "class", "delay_s")
        .with_columns(
            share=pl.col("packets").cum_sum().over("link", "class")
            / pl.col("packets").sum().over("link", "class")
        )
    )
    rows = [
        _point({"link": link, "class": name, "delay_ms": at * 1e3}, "share", "fraction", share)
        for link, name, at, _, share in counts.iter_rows()
    ]
    names = {name: name for name in counts["class"].unique(maintain_order=True)}
    plot = Plot(
        id="delay",
        title="Waiting time of packets",
        kind="lines",
        metric="share",
        x=Axis("delay_ms", "Waiting time, ms"),
        series=Axis("class", "Packets", names),
        y_label="fraction of packets",
        facet=Axis("link", "Link"),
    )
    return [(plot, rows)]


def _series_plots(result: Result) -> list[tuple[Plot, list[Row]]]:
    means = _rates_in_time(result)
    if not means:
        return []
    time = Axis("time_s", "Time, s")
    classes = {group.name: group.name for group in result.runs[0].groups}
    rates = [
        _point({"class": name, "time_s": at}, "throughput", "Mbit/s", float(rate) / 1e6)
        for at, by_class in means.items()
        for name, rate in zip(classes, by_class, strict=True)
    ]
    in_packets = pl.col("quantity").str.contains("^(queue|average .*|.* packets)$")
    queues = (
        result.queues.filter(in_packets)
        .group_by(["link", "quantity", "time_s"], maintain_order=True)
        .agg(pl.col("packets").mean())
    )
    lengths = [
        _point({"link": link, "quantity": quantity, "time_s": at}, "queue", "packets", value)
        for link, quantity, at, value in queues.iter_rows()
    ]
    quantities = {name: name for name in queues["quantity"].unique(maintain_order=True)}
    plots = [
        (
            Plot(
                id="throughput-in-time",
                title="Throughput over time, mean over the flows of a class",
                kind="lines",
                metric="throughput",
                x=time,
                series=Axis("class", "Class", classes),
                y_label="Mbit/s per flow",
            ),
            rates,
        )
    ]
    if lengths:
        plots.append(
            (
                Plot(
                    id="queue-in-time",
                    title="Queue over time",
                    kind="lines",
                    metric="queue",
                    x=time,
                    series=Axis("quantity", "Quantity", quantities),
                    y_label="packets",
                    facet=Axis("link", "Link"),
                ),
                lengths,
            )
        )
    return plots


def _rates_in_time(result: Result) -> dict[float, NDArray[np.float64]]:
    """For each time of a sample the throughput of each class, means over its flows and the runs.

    `result.series` has it, too, but copies samples several times, which may be most of the memory there is.
    """
    sums: dict[float, NDArray[np.float64]] = {}
    runs: Counter[float] = Counter()
    for run in result.runs:
        series = run.raw["series"]
        ends = np.cumsum([group.count for group in run.groups])
        parts = np.split(series["throughput_bps"], ends[:-1], axis=1)  # views
        means = np.column_stack([part.mean(axis=1) for part in parts])
        for at, by_class in zip(series["time_s"].tolist(), means, strict=True):
            sums[at] = sums.get(at, 0.0) + by_class
            runs[at] += 1
    return {at: total / runs[at] for at, total in sums.items()}


def _point(factors: Mapping[str, str | float], metric: str, unit: str, value: float) -> Row:
    return Row(factors, metric, unit, None, value, None, 1)
