"""What `perhop run` shows of a scenario: one line for each class and link, and pictures."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from perhop.output.table import MISSING, records
from perhop.runs import COLORS
from perhop.study import Axis, Plot, Reference, Row, rounded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
    """

    title: str
    lead: str
    classes: Sequence[Mapping[str, str]]
    links: Sequence[Mapping[str, str]]
    plots: Sequence[tuple[Plot, Sequence[Row]]]
    scenario: Mapping[str, Any]
    link_classes: Sequence[Mapping[str, str]] = ()
    counted: str = (
        "Packets and drops of links are counted over the whole run, warm-up included; all else after it."
    )
    machine: Sequence[Mapping[str, str]] = ()
    remarks: Sequence[str] = ()

    def text(self) -> str:
        """The summary as plain text."""
        tables = [records(table) for table in (self.classes, self.links, self.link_classes) if table]
        return "\n".join(
            [self.title, self.lead, *("\n".join(["", *table]) for table in tables), "", self.counted]
        )


def summarize(result: Result, how: str = "simulated") -> Summary:
    """What to show of a result."""
    seeds = [run.seed for run in result.runs]
    raw = result.runs[0].raw
    lead = (
        f"{raw['duration_s']:g} s {how}"
        + (f", the first {raw['warmup_s']:g} s not counted" if raw["warmup_s"] else "")
        + f"; {len(seeds)} run{'s' if len(seeds) > 1 else ''}, "
        + (
            f"seeds {seeds[0]} to {seeds[-1]}; means with 95 % intervals"
            if len(seeds) > 1
            else f"seed {seeds[0]}"
        )
    )
    title = str(json.loads(result.scenario).get("title") or "Scenario")
    plots = [_class_plot(result), *_delay_plots(result), *_series_plots(result)]
    rows = list(result.classes().iter_rows(named=True))
    colors = [color for color in COLORS if any(row[f"dropped_{color}"] is not None for row in rows)]
    classes = [_class(row, colors) for row in rows]
    links = [_link(row) for row in result.link_summary().iter_rows(named=True)]
    link_classes = [_link_class(row) for row in result.link_class_summary().iter_rows(named=True)]
    return Summary(title, lead, classes, links, plots, json.loads(result.scenario), link_classes)


def to_json(result: Result) -> str:
    """Classes and links as JSON text, byte for byte the same for the same scenario, seeds and engine."""

    def rows(frame: pl.DataFrame) -> list[dict[str, Any]]:
        return [
            {name: rounded(v) if isinstance(v, float) else v for name, v in row.items()}
            for row in frame.iter_rows(named=True)
        ]

    content = {
        "seeds": [run.seed for run in result.runs],
        "classes": rows(result.classes()),
        "links": rows(result.link_summary()),
        "link_classes": rows(result.link_class_summary()),
    }
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _class(row: Mapping[str, Any], colors: Sequence[str]) -> dict[str, str]:
    """One line; losses by drop precedence where packets have more than one."""
    heads = {color: f"{color} lost, %" if len(colors) > 1 else "lost, %" for color in colors}
    throughput = f"{row['throughput_bps'] / 1e6:.3f}"
    if row["throughput_low_bps"] is not None:
        throughput += f" ± {(row['throughput_high_bps'] - row['throughput_low_bps']) / 2e6:.3f}"
    return {
        "class": str(row["class"]),
        "flows": str(row["flows"]),
        "profile, Mbit/s": f"{row['profile_bps'] / 1e6:g}" if row["profile_bps"] else "best effort",
        "throughput, Mbit/s": throughput,
        **{head: _percent(row[f"dropped_{color}"]) for color, head in heads.items()},
        "RTT, ms": _milliseconds(row["mean_rtt_s"]),
    }


def _link(row: Mapping[str, Any]) -> dict[str, str]:
    used = f"{row['utilization'] * 100:.1f}"
    if row["utilization_low"] is not None:
        used += f" ± {(row['utilization_high'] - row['utilization_low']) * 50:.1f}"
    notified = {"notified per run": _by_reason(row, "notified_")} if _has(row, "notified_") else {}
    return {
        "link": str(row["link"]),
        "used, %": used,
        "queue, p": f"{row['mean_queue_packets']:.1f}",
        **{f"delay {q}, ms": _milliseconds(row[f"delay_{q}_s"]) for q in ("p50", "p95", "p99")},
        "drops per run": _by_reason(row, "dropped_"),
        **notified,
    }


def _has(row: Mapping[str, Any], prefix: str) -> bool:
    return any(name.startswith(prefix) for name in row)


def _by_reason(row: Mapping[str, Any], prefix: str) -> str:
    counts = {
        name.removeprefix(prefix): value for name, value in row.items() if name.startswith(prefix) and value
    }
    return ", ".join(f"{reason} {value:.0f}" for reason, value in counts.items()) or "none"


def _link_class(row: Mapping[str, Any]) -> dict[str, str]:
    return {
        "link": str(row["link"]),
        "packets": str(row["class"]),
        "per run": f"{row['arrived_packets']:.0f}",
        "lost, %": _percent(row["loss"]),
        **{
            f"delay {q}, ms": _milliseconds(row[f"delay_{q}_s"])
            for q in ("p50", "p95", "p99", "max", "jitter")
        },
    }


def _percent(share: float | None) -> str:
    return MISSING if share is None else f"{share * 100:.2f}"


def _milliseconds(seconds: float | None) -> str:
    return MISSING if seconds is None else f"{seconds * 1e3:.1f}"


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
        title="How long packets wait",
        kind="lines",
        metric="share",
        x=Axis("delay_ms", "Wait, ms"),
        series=Axis("class", "Packets", names),
        y_label="share that waits no longer",
        facet=Axis("link", "Link"),
    )
    return [(plot, rows)]


def _series_plots(result: Result) -> list[tuple[Plot, list[Row]]]:
    if result.series.is_empty():
        return []
    time = Axis("time_s", "Time, s")
    means = result.series.group_by(["class", "time_s"], maintain_order=True).agg(
        pl.col("throughput_bps").mean()
    )
    classes = {name: name for name in means["class"].unique(maintain_order=True)}
    rates = [
        _point({"class": name, "time_s": at}, "throughput", "Mbit/s", v / 1e6)
        for name, at, v in means.iter_rows()
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
                title="Throughput of a flow in time, mean of its class",
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
                    title="Queue in time",
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


def _point(factors: Mapping[str, str | float], metric: str, unit: str, value: float) -> Row:
    return Row(factors, metric, unit, None, value, None, 1)
