"""Data frames of a result: the outcome of each run as columns and rows. `Result` says what each has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from perhop.bounds import frames as of_bounds
from perhop.measures import catalog
from perhop.measures.run import COLORS, Run
from perhop.runs import populations

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


_BOUNDS = of_bounds.schema(catalog.QUEUE_BOUNDS)
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

REASON_SCHEMA = {
    "seed": pl.UInt64,
    "link": pl.String,
    "reason": pl.String,
    "color": pl.String,
    "packets": pl.Int64,
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


OF_QUEUE: dict[str, Literal["queue_packets", "arrived", "dropped"]] = {
    "queue": "queue_packets",
    "arrived": "arrived",
    "dropped": "dropped",
}
"""Samples of all packets at a link: the name in the frame, and the key in the outcome."""


def queue_frames(run: Run) -> list[pl.DataFrame]:
    """Return a frame for each link and quantity of its queue, with one row for each probe sample."""
    series = run.raw["series"]
    frames = []
    for link, probes in series["links"].items():
        quantities = {name: probes[key] for name, key in OF_QUEUE.items()}
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


POPULATION_SCHEMA = {
    "seed": pl.UInt64,
    "class": pl.String,
    "started_s": pl.Float64,
    "size_bytes": pl.Int64,
    "idle_s": pl.Float64,
    "completion_s": pl.Float64,
    "slowdown": pl.Float64,
}


def population_frame(run: Run) -> pl.DataFrame:
    """One row for each flow of a population of a run, in the order in which they began."""
    rows = [pl.DataFrame(schema=POPULATION_SCHEMA)]
    for population in run.raw["populations"]:
        name = populations.class_of(run, population["flow"])
        columns = {key: population[key] for key in ("started_s", "size_bytes", "idle_s", "completion_s")}
        frame = pl.DataFrame(columns).with_columns(
            pl.lit(run.seed, pl.UInt64).alias("seed"),
            pl.lit(name).alias("class"),
            pl.col("size_bytes").cast(pl.Int64),
            pl.col("completion_s").fill_nan(None),
        )
        rows.append(
            frame.with_columns(slowdown=pl.col("completion_s") / pl.col("idle_s")).select(
                POPULATION_SCHEMA.keys()
            )
        )
    return pl.concat(rows)


# ---------------------------------------------------------------- of all runs


def flows(runs: Sequence[Run], bounds: Bounds) -> pl.DataFrame:
    """See `Result.flows`."""
    measured = pl.concat([flow_frame(run) for run in runs])
    return measured.hstack(of_bounds.flow_columns(bounds.flows, measured.height))


def links(runs: Sequence[Run], bounds: Bounds) -> pl.DataFrame:
    """See `Result.links`."""
    rows = [row for run in runs for row in link_rows(run, bounds)]
    return pl.DataFrame(rows, schema=LINK_SCHEMA, orient="row")


def link_classes(runs: Sequence[Run], bounds: Bounds) -> pl.DataFrame:
    """See `Result.link_classes`."""
    rows = [row for run in runs for row in link_class_rows(run, bounds)]
    return pl.DataFrame(rows, schema=LINK_CLASS_SCHEMA, orient="row")


def delays(runs: Sequence[Run]) -> pl.DataFrame:
    """See `Result.delays`."""
    return pl.DataFrame([row for run in runs for row in delay_rows(run)], schema=DELAY_SCHEMA, orient="row")


def by_reason(runs: Sequence[Run], count: Literal["dropped", "notified"]) -> pl.DataFrame:
    """See `Result.drops` and `Result.notifications`."""
    rows = [
        (run.seed, str(link["name"]), reason, color, int(packets))
        for run in runs
        for link in run.raw["links"]
        for reason, by_color in link["measured"].get(count, {}).items()
        for color, packets in zip(COLORS, by_color, strict=True)
    ]
    return pl.DataFrame(rows, schema=REASON_SCHEMA, orient="row")


def series(runs: Sequence[Run]) -> pl.DataFrame:
    """See `Result.series`."""
    return pl.concat([series_frame(run) for run in runs])


def queues(runs: Sequence[Run]) -> pl.DataFrame:
    """See `Result.queues`."""
    samples = [frame for run in runs for frame in queue_frames(run)]
    return pl.concat(samples) if samples else pl.DataFrame(schema=QUEUE_SCHEMA)


def population_flows(runs: Sequence[Run]) -> pl.DataFrame:
    """See `Result.population_flows`."""
    return pl.concat([population_frame(run) for run in runs])


def application_samples(runs: Sequence[Run]) -> pl.DataFrame:
    """See `Result.application_samples`."""
    samples = [frame for run in runs for frame in application_frames(run)]
    return pl.concat(samples) if samples else pl.DataFrame(schema=APPLICATION_SCHEMA)
