"""Data frames of bounds, for those who ask for one: the rows of tables, with types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from perhop.bounds.rows import TEXTS, reason_column
from perhop.measures import catalog
from perhop.measures.catalog import FLOW_BOUNDS, QUEUE_BOUNDS, Bound

if TYPE_CHECKING:
    from perhop.bounds.rows import Row, Rows

_TYPES: Mapping[catalog.Unit, pl.DataType] = {"s": pl.Float64(), "B": pl.Int64(), "": pl.Boolean()}


def schema(bounds: Iterable[Bound]) -> dict[str, pl.DataType]:
    """The columns of bounds in data frames."""
    return {one.name: _TYPES[one.unit] for one in bounds}


def classes(rows: Rows) -> pl.DataFrame:
    """See `Bounds.classes`."""
    return _frame(rows.classes, {"class": pl.String, "flows": pl.Int64}, FLOW_BOUNDS)


def flows(rows: Rows) -> pl.DataFrame:
    """See `Bounds.flows`."""
    more = {"method": pl.String, "route": pl.String}
    return _frame(rows.flows, {"flow": pl.String, "class": pl.String}, FLOW_BOUNDS, more)


def links(rows: Rows) -> pl.DataFrame:
    """See `Bounds.links`."""
    return _frame(rows.links, {"link": pl.String}, QUEUE_BOUNDS)


def link_classes(rows: Rows) -> pl.DataFrame:
    """See `Bounds.link_classes`."""
    return _frame(rows.link_classes, {"link": pl.String, "class": pl.String}, QUEUE_BOUNDS)


def steps(rows: Rows) -> pl.DataFrame:
    """See `Bounds.steps`."""
    names = {"link": pl.String, "class": pl.String, "flow": pl.String, "step": pl.Int64}
    return pl.DataFrame(rows.steps, schema={**names, **dict.fromkeys(TEXTS, pl.String)}, orient="row")


def flow_columns(flows: pl.DataFrame, rows: int) -> pl.DataFrame:
    """The bounds of all flows for so many rows, those of each run alike; null where there are none."""
    names = schema(FLOW_BOUNDS)
    if not flows.height or rows % flows.height:
        return pl.DataFrame({name: pl.Series([None] * rows, dtype=kind) for name, kind in names.items()})
    return pl.concat([flows.select(list(names))] * (rows // flows.height))


def _frame(
    rows: Sequence[Row],
    names: Mapping[str, Any],
    bounds: Sequence[Bound],
    more: Mapping[str, Any] | None = None,
) -> pl.DataFrame:
    reasons = {reason_column(one): pl.String for one in bounds}
    return pl.DataFrame(rows, schema={**names, **schema(bounds), **reasons, **(more or {})}, orient="row")
