"""Quality of calls: a rating of a run's flows with the E-model of ITU-T Recommendation G.107.

The model itself is `perhop.measures.emodel`, whose names stand here, too.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from perhop.errors import PerhopError
from perhop.measures import flow_table, naming
from perhop.measures.emodel import (
    BASE_RATING,
    CODECS,
    Codec,
    CodecName,
    delay_impairment,
    loss_impairment,
    measured_burst_ratio,
    opinion_score,
    rated,
    rating,
)
from perhop.measures.run import REVERSE
from perhop.runs import observing, over_runs
from perhop.show.estimates import Estimates

if TYPE_CHECKING:
    from perhop.runs.result import Result

__all__ = [
    "BASE_RATING",
    "CODECS",
    "Codec",
    "CodecName",
    "call_summary",
    "calls",
    "delay_impairment",
    "loss_impairment",
    "measured_burst_ratio",
    "opinion_score",
    "rating",
]


def calls(
    result: Result,
    classes: Sequence[str],
    *,
    codec: CodecName | None = None,
    burst_ratio: float | None = None,
) -> pl.DataFrame:
    """Rate the flows of some classes as calls.

    Flows with `play-out` have a play-out buffer of this fixed length. Other flows have one as long as 99 %
    of their packets need: all are played as long after they were sent as the least delay that at least 99 %
    of the delivered packets do not exceed. A constant delay loses nothing then, nor do fewer than 100
    packets. Ta is the time from the sending of a packet to its play-out and the codec's delay; the packets
    that came too late count as lost, beside those that queues or meters dropped or links lost.

    BurstR is that of each flow, from its packets in the order in which they were sent.

    Args:
        result: Runs of a scenario, simulated or on real packets.
        classes: Names of groups of flows over UDP, RAP or TFRC.
        codec: One of `CODECS`. The flows' rate and packet size are the scenario's and do not follow it.
            Default: the `codec` of each class, `g711-plc` for a class without one.
        burst_ratio: In place of the measured one. See `loss_impairment`.

    Returns:
        One row for each run and flow: `seed`, `class`, `member`, `mouth_to_ear_s` (Ta), `lost_or_late`
        (fraction of the packets), `burst_ratio`, `r` and `mos`. A flow none of whose packets arrived is a
        dead call: it has R 0, score 1 and no delay. One that sent nothing after the warm-up has no values.

    Raises:
        PerhopError: A name is no class of the scenario, or a class of TCP, whose delay is not measured.
        ValueError: An unknown codec, or a burst ratio that is not positive.
    """
    loss_impairment(0.0, codec or DEFAULT, burst_ratio=1.0 if burst_ratio is None else burst_ratio)
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
    burst_ratio: float | None = None,
) -> pl.DataFrame:
    """`calls` by class: means over the flows of a class and then over the runs, with 95 % intervals.

    A dead call, of which nothing arrived, is in the means of R and of the score with 0 and 1, and not in that
    of the delay. A call that sent nothing after the warm-up is in none.

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
    found = rows(result, classes, codec=codec, burst_ratio=burst_ratio)
    return Estimates(result.rows.decided(found), infer_schema_length=None)


def rows(
    result: Result,
    classes: Sequence[str],
    *,
    codec: CodecName | None = None,
    burst_ratio: float | None = None,
) -> list[dict[str, Any]]:
    """The rows of `call_summary`."""
    rated = calls(result, classes, codec=codec, burst_ratio=burst_ratio)
    measures = ("mouth_to_ear_s", "lost_or_late", "burst_ratio", "r", "mos")
    own = _check(result, classes)
    links = observing.link_queues(result.runs, result.scenario, result.warm_up)
    members = _members(result)
    found: list[dict[str, Any]] = []
    for name in classes:
        of_class = rated.filter(pl.col("class") == name)
        by_run = of_class.group_by("seed", maintain_order=True).agg(pl.col(measures).mean())
        flows = of_class["member"].n_unique()
        transit = observing.waits([of_run.transit for of_run in members[name]])
        unseen = observing.unseen_loss(members[name], transit, observing.seen_by(transit, links))
        beyond = {
            rating: (naming.per_loss(rating, codec or own[name]) * unseen, 0.0) for rating in naming.RATINGS
        } | {"lost_or_late": (0.0, unseen)}
        found.append({"class": name, "calls": flows, **_estimates(by_run, measures, beyond)})
    return found


def _estimates(
    frame: pl.DataFrame, names: Iterable[str], beyond: Mapping[str, tuple[float, float]]
) -> dict[str, float | None]:
    """Columns of a frame with a row for each run, over the runs; see `over_runs.columns`.

    Args:
        frame: Of the runs.
        names: Of the columns.
        beyond: Of some columns: see `Observations`.
    """
    out: dict[str, float | None] = {}
    for name in names:
        values = frame[name].fill_null(math.nan).to_list()
        out |= over_runs.columns(
            name, observing.observations(name, values, beyond=beyond.get(name, (0.0, 0.0)))
        )
    return out


def _members(result: Result) -> dict[str, list[flow_table.Members]]:
    """The flows of each class in each run."""
    by_name: dict[str, list[flow_table.Members]] = {}
    for run in result.runs:
        for group, flows in flow_table.members(run.raw):
            by_name.setdefault(str(group["name"]), []).append(flows)
    return by_name


DEFAULT: CodecName = "g711-plc"
"""The codec of a class without one."""

_SCHEMA = {
    "seed": pl.UInt64,
    "class": pl.String,
    "member": pl.Int64,
    "mouth_to_ear_s": pl.Float64,
    "lost_or_late": pl.Float64,
    "burst_ratio": pl.Float64,
    "r": pl.Float64,
    "mos": pl.Float64,
}


def _rate(row: Mapping[str, Any], codec: CodecName, burst_ratio: float | None) -> tuple[object, ...]:
    """The row of one flow, from its row in `Result.flows`."""
    found = rated(
        delivered=row["delivered_packets"],
        gone=row["gone"],
        late=row["late_packets"] or 0,
        delay_s=row["play_out_delay_s"],
        mean_burst=row["loss_burst_packets"],
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
