"""Quality of calls: a rating of a run's flows with the E-model of ITU-T Recommendation G.107.

The model itself is `perhop.emodel`, whose names stand here, too.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl

from perhop import frames
from perhop.emodel import (
    BASE_RATING,
    CODECS,
    LATE,
    Codec,
    CodecName,
    delay_impairment,
    loss_impairment,
    opinion_score,
    rated,
    rating,
)
from perhop.errors import PerhopError
from perhop.output.readable import Estimates
from perhop.runs import REVERSE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perhop.simulation import Result

__all__ = [
    "BASE_RATING",
    "CODECS",
    "LATE",
    "Codec",
    "CodecName",
    "call_summary",
    "calls",
    "delay_impairment",
    "loss_impairment",
    "opinion_score",
    "rating",
]


def calls(
    result: Result,
    classes: Sequence[str],
    *,
    codec: CodecName | None = None,
    burst_ratio: float = 1.0,
) -> pl.DataFrame:
    """Rate the flows of some classes as calls.

    Flows with `play-out` have a play-out buffer of this fixed length: Ta is the time from the sending of a
    packet to its play-out and the codec's delay, and the packets that came too late count as lost, beside
    those that queues or meters dropped or links lost.

    Other flows have a buffer as long as the P99 of their delay. It plays a packet if it arrives no later than
    99 % of the delivered packets of its flow. Ta is this percentile of the one-way delay and the codec's
    delay, and 1 % of the delivered packets count as lost.

    Args:
        result: Runs of a scenario, simulated or on real packets.
        classes: Names of groups of flows over UDP, RAP or TFRC.
        codec: One of `CODECS`. The flows' rate and packet size are the scenario's and do not follow it.
            Default: the `codec` of each class, `g711-plc` for a class without one.
        burst_ratio: See `loss_impairment`.

    Returns:
        One row for each run and flow: `seed`, `class`, `member`, `mouth_to_ear_s` (Ta), `lost_or_late`
        (fraction of the packets), `r` and `mos`. A flow none of whose packets arrived has R 0, score 1 and
        no delay; one that sent nothing after the warm-up has no values.

    Raises:
        PerhopError: A name is no class of the scenario, or a class of TCP, whose delay is not measured.
        ValueError: An unknown codec, or a burst ratio that is not positive.
    """
    loss_impairment(0.0, codec or DEFAULT, burst_ratio=burst_ratio)
    own = _check(result, classes)
    flows = result.flows.filter(pl.col("class").is_in(list(classes)))
    gone = [name for name in flows.columns if name.startswith(("dropped_", "policed_"))] + ["lost_packets"]
    rows = flows.with_columns(gone=pl.sum_horizontal(*gone)).iter_rows(named=True)
    return pl.DataFrame(
        [_rate(row, codec or own[row["class"]], burst_ratio) for row in rows], schema=_SCHEMA, orient="row"
    )


def call_summary(
    result: Result,
    classes: Sequence[str],
    *,
    codec: CodecName | None = None,
    burst_ratio: float = 1.0,
) -> pl.DataFrame:
    """`calls` by class: means over the flows of a class and then over the runs, with 95 % intervals.

    Args:
        result: See `calls`.
        classes: See `calls`.
        codec: See `calls`.
        burst_ratio: See `calls`.

    Returns:
        One row for each class: `class`, `calls` (flows), and the measures of `calls`, each with the ends of
        its interval beside it, null for a single run.

    Raises:
        PerhopError: See `calls`.
        ValueError: See `calls`.
    """
    rated = calls(result, classes, codec=codec, burst_ratio=burst_ratio)
    measures = ("mouth_to_ear_s", "lost_or_late", "r", "mos")
    rows: list[dict[str, Any]] = []
    for name in classes:
        of_class = rated.filter(pl.col("class") == name)
        by_run = of_class.group_by("seed", maintain_order=True).agg(pl.col(measures).mean())
        flows = of_class["member"].n_unique()
        rows.append({"class": name, "calls": flows, **frames.estimates(by_run, measures)})
    return Estimates(rows, infer_schema_length=None)


DEFAULT: CodecName = "g711-plc"
"""The codec of a class without one."""

_SCHEMA = {
    "seed": pl.UInt64,
    "class": pl.String,
    "member": pl.Int64,
    "mouth_to_ear_s": pl.Float64,
    "lost_or_late": pl.Float64,
    "r": pl.Float64,
    "mos": pl.Float64,
}


def _rate(row: Mapping[str, Any], codec: CodecName, burst_ratio: float) -> tuple[object, ...]:
    """The row of one flow, from its row in `Result.flows`."""
    fixed = row["late_packets"] is not None
    found = rated(
        delivered=row["delivered_packets"],
        gone=row["gone"],
        late=row["late_packets"],
        delay_s=row["play_out_delay_s"] if fixed else row["p99_transit_s"],
        codec=codec,
        burst_ratio=burst_ratio,
    )
    return (row["seed"], row["class"], row["member"], *found)


def _check(result: Result, classes: Sequence[str]) -> dict[str, CodecName]:
    """The codec of each class; refuses names that are no classes of datagrams.

    Raises:
        PerhopError: The first such name.
    """
    if isinstance(classes, str) or not classes:
        raise PerhopError(f'classes must be a list of names, such as ["calls"], not {classes!r}')
    entries = json.loads(result.scenario)["flows"]
    by_name = {entry["name"]: entry for entry in entries}
    by_name |= {entry["name"] + REVERSE: entry for entry in entries}
    groups = {group.name: by_name[group.name] for group in result.runs[0].groups}
    for name in classes:
        if name not in groups:
            raise PerhopError(f"there is no class {name!r}; classes: {', '.join(map(repr, groups))}")
        if "tcp" in groups[name].get("transport", {}):
            raise PerhopError(
                f"class {name!r} is TCP, whose one-way delay is not measured; calls are UDP, RAP or TFRC"
            )
    return {name: groups[name].get("codec", DEFAULT) for name in classes}
