"""The tables of a result: the outcome of each run as columns and rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from perhop.bounds import deriving
from perhop.measures import catalog, flow_table
from perhop.measures.run import COLORS, Group, Run
from perhop.runs import observing
from perhop.show.readable import end_names
from perhop.statistics.intervals import Estimate
from perhop.statistics.observations import Observations, ObservedQueue

if TYPE_CHECKING:
    from perhop.bounds.deriving import Bounds

_TYPES: Mapping[catalog.Kind, pl.DataType] = {
    "count": pl.Int64(),
    "number": pl.Float64(),
    "optional-count": pl.Int64(),
    "optional": pl.Float64(),
}


def _schema(*entries: catalog.Measure) -> dict[str, pl.DataType]:
    return {entry.name: _TYPES[entry.kind] for entry in entries}


_BOUNDS = deriving.schema(catalog.QUEUE_BOUNDS)
LINK_SCHEMA = {"seed": pl.UInt64(), "link": pl.String(), **_schema(*catalog.LINK, *catalog.QUEUE), **_BOUNDS}

LINK_CLASS_SCHEMA = {
    "seed": pl.UInt64(),
    "link": pl.String(),
    "class": pl.String(),
    **_schema(*catalog.QUEUE),
    **_BOUNDS,
}

DELAY_SCHEMA = {
    "seed": pl.UInt64,
    "link": pl.String,
    "class": pl.String,
    "delay_s": pl.Float64,
    "packets": pl.Int64,
    "share": pl.Float64,
}

QUEUE_SCHEMA = {
    "seed": pl.UInt64,
    "time_s": pl.Float64,
    "link": pl.String,
    "quantity": pl.String,
    "packets": pl.Float64,
}


def _identity(run: Run) -> dict[str, pl.Series]:
    """The columns that name a flow: seed, class, member, profile."""
    groups = run.groups
    which = [int(g) for g in run.flows("group")]
    return {
        "seed": pl.Series([run.seed] * len(which), dtype=pl.UInt64),
        "class": pl.Series([groups[g].name for g in which], dtype=pl.String),
        "member": pl.Series(run.flows("member")),
        "profile_bps": pl.Series([groups[g].profile_bps for g in which], dtype=pl.Float64),
    }


def flow_frame(run: Run) -> pl.DataFrame:
    """One row for each flow of a run."""
    columns: dict[str, Any] = dict(_identity(run))
    optional = []
    for entry in catalog.FLOW:
        values = run.raw["flows"][entry.name]
        if entry.kind.endswith("by-color"):
            named = {
                f"{entry.name}_{color}": np.ascontiguousarray(values[:, index])
                for index, color in enumerate(COLORS)
            }
        else:
            named = {entry.name: values}
        columns |= named
        if entry.kind.startswith("optional"):
            known = pl.col(*named).fill_nan(None)
            optional.append(known if entry.kind == "optional" else known.cast(pl.Int64))
    # All columns at once: each operation of a frame has its price.
    return pl.DataFrame(columns).with_columns(optional)


def link_rows(run: Run, bounds: Bounds) -> Iterator[tuple[object, ...]]:
    """One row for each link of a run."""
    entries = (*catalog.LINK, *catalog.QUEUE)
    for link in run.raw["links"]:
        name = str(link["name"])
        yield (run.seed, name, *(link[entry.name] for entry in entries), *bounds.of_queue(name).values())


def delay_rows(run: Run) -> Iterator[tuple[object, ...]]:
    """One row for each bin of the histograms of queueing delay that is not empty."""
    for link in run.raw["links"]:
        for counters in ({**link, "name": "all"}, *link["classes"]):
            counts = counters["delay_s"]["counts"].sum(axis=1)
            below = np.cumsum(counts)
            for edge, packets, sum_ in zip(counters["delay_s"]["edges"][1:], counts, below, strict=True):
                if packets:
                    share = float(sum_) / float(below[-1])
                    yield (
                        run.seed,
                        str(link["name"]),
                        str(counters["name"]),
                        float(edge),
                        int(packets),
                        share,
                    )


def link_class_rows(run: Run, bounds: Bounds) -> Iterator[tuple[object, ...]]:
    """One row for each class of packets at each link."""
    for link in run.raw["links"]:
        for counters in link["classes"]:
            names = (str(link["name"]), str(counters["name"]))
            measured = (counters[entry.name] for entry in catalog.QUEUE)
            yield (run.seed, *names, *measured, *bounds.of_queue(*names).values())


def series_frame(run: Run) -> pl.DataFrame:
    """One row for each flow and probe sample."""
    series = run.raw["series"]
    times = series["time_s"]
    identity = _identity(run)
    flows = len(identity["member"])
    columns = {
        name: pl.Series(np.tile(values.to_numpy(), len(times)), dtype=values.dtype)
        for name, values in identity.items()
    }
    columns["time_s"] = pl.Series(np.repeat(times, flows), dtype=pl.Float64)
    measured = ("throughput_bps", "cwnd_packets", "rtt_s", "seen_packets")
    for name in measured:
        columns[name] = pl.Series(np.asarray(series[name]).reshape(-1), dtype=pl.Float64)
    interval = times[0] if len(times) else 0.0
    received = np.cumsum(np.asarray(series["throughput_bps"]), axis=0) * interval / 8.0
    columns["received_bytes"] = pl.Series(np.rint(received).reshape(-1), dtype=pl.Int64)
    return pl.DataFrame(columns).with_columns(pl.col(*measured).fill_nan(None))


def queue_frames(run: Run) -> list[pl.DataFrame]:
    """Return a frame for each link and quantity of its queue, with one row for each probe sample."""
    series = run.raw["series"]
    frames = []
    for link, probes in series["links"].items():
        quantities = {"queue": probes["queue_packets"]}
        quantities |= probes["gauges"]
        for name, samples in probes["classes"].items():
            quantities |= {f"{name} {what}": values for what, values in samples.items()}
        for quantity, values in quantities.items():
            size = len(values)
            frames.append(
                pl.DataFrame(
                    {
                        "seed": [run.seed] * size,
                        "time_s": series["time_s"],
                        "link": [link] * size,
                        "quantity": [quantity] * size,
                        "packets": values,
                    },
                    schema=QUEUE_SCHEMA,
                )
            )
    return frames


APPLICATION_SCHEMA = {
    "seed": pl.UInt64,
    "class": pl.String,
    "model": pl.String,
    "quantity": pl.String,
    "value": pl.Float64,
}


def application_frames(run: Run, key: Literal["samples", "open"] = "samples") -> list[pl.DataFrame]:
    """Return a frame for each group of users and quantity, with a row for each sample, or each open time."""
    frames = []
    for users in run.raw.get("applications", ()):
        for quantity, values in users[key].items():
            names = {"seed": run.seed, "class": users["name"], "model": users["model"], "quantity": quantity}
            columns: dict[str, object] = {name: [value] * len(values) for name, value in names.items()}
            frames.append(pl.DataFrame({**columns, "value": values}, schema=APPLICATION_SCHEMA))
    return frames


def application_row(group: str, runs: Sequence[Mapping[str, Any]], model: str) -> dict[str, object]:
    """The users of one group over the runs."""
    row: dict[str, object] = {"class": group, "users": runs[0]["users"]}
    for entry in catalog.APPLICATION[model]:
        row |= columns(entry.name, observing.of_users(entry, runs))
    return row


def class_row(
    group: Group, members: Sequence[flow_table.Members], links: Sequence[ObservedQueue], bounds: Bounds
) -> dict[str, object]:
    """One class over the runs; its flows in each of them, and the queues of the links."""
    guaranteed = bounds.of_class(group.name)
    flows = None if group.is_population else group.count
    row: dict[str, object] = {"class": group.name, "flows": flows, "profile_bps": group.profile_bps}
    transit = observing.waits([flows.transit for flows in members])
    queues = observing.seen_by(transit, links)
    for entry in catalog.beside(catalog.CLASS, catalog.FLOW_BOUNDS):
        if isinstance(entry, catalog.Bound):
            row[entry.name] = guaranteed[entry.name]
        elif entry.name:
            row |= columns(entry.name, observing.of_class(entry, members, transit, queues))
    return row


def queue_columns(
    places: Sequence[Mapping[str, Any]],
    entries: Iterable[catalog.Measure],
    queue: ObservedQueue,
    bounds: Mapping[str, object],
) -> dict[str, object]:
    """A link, or a class that its queue distinguishes, over the runs: its measures, with bounds beside them.

    Args:
        places: The link or the class in each run, as the engine reports it.
        entries: The measures.
        queue: The same as a queue.
        bounds: Its bounds by name.
    """
    out: dict[str, object] = {}
    for entry in catalog.beside(entries, catalog.QUEUE_BOUNDS):
        if isinstance(entry, catalog.Bound):
            out[entry.name] = bounds[entry.name]
        else:
            out |= columns(entry.name, observing.of_queue(entry, places, queue))
    return out


def estimates(
    frame: pl.DataFrame, names: Iterable[str], beyond: Mapping[str, tuple[float, float]]
) -> dict[str, float | None]:
    """Columns of a frame with a row for each run, over the runs; see `columns`.

    Args:
        frame: Of the runs.
        names: Of the columns.
        beyond: Of some columns: see `Observations`.
    """
    out: dict[str, float | None] = {}
    for name in names:
        values = frame[name].fill_null(math.nan).to_list()
        out |= columns(name, observing.observations(name, values, beyond=beyond.get(name, (0.0, 0.0))))
    return out


def columns(name: str, found: Observations) -> dict[str, float | None]:
    """The value and the ends of its interval; an upper one that is not known is infinite."""
    return ends(name, found.estimate)


def ends(name: str, one: Estimate | None) -> dict[str, float | None]:
    """An estimate as columns: the value and the ends of its interval; None where there is none."""
    low, high = end_names(name)
    least, most = (None, None) if one is None or one.ci95 is None else one.ci95
    return {name: None if one is None else one.mean, low: least, high: most}


def mean(places: Sequence[Mapping[str, Any]], name: str) -> float:
    """The mean over the runs of what every run counts."""
    return math.fsum(place[name] for place in places) / len(places)
