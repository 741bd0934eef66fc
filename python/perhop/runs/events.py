"""The table of a run's events: what became of each packet at the recorded links, as rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import IO, Any, cast

import numpy as np
import polars as pl
from polars.io.plugins import register_io_source

from perhop import _engine
from perhop.measures.run import COLORS
from perhop.runs import one_run
from perhop.runs.recording import REVERSE, links_of

_ECN = ("Not-ECT", "ECT(1)", "ECT(0)", "CE")
_NO_MEMBER = 2**32 - 1
"""The placeholder for the number of a flow in its population."""
_CHUNK = 1 << 18
"""Events that are converted at once."""


def arrivals(scenario: str, seed: int, cancel: _engine.Cancel, link: str) -> pl.DataFrame:
    """The packets that come to a link's queue in a run, behind its meters: rows of the table of events.

    Args:
        scenario: As canonical JSON.
        seed: Of the run.
        cancel: Set it from another thread to stop.
        link: Its name, of the forward direction.

    Raises:
        ScenarioError, BlockError, perhop._engine.Cancelled: See `perhop.run`.
    """
    records = bytearray()
    with ExitStack() as stack:
        if one_run.modules(scenario):
            stack.enter_context(one_run.interruptible(cancel))
        both = [(link, link + REVERSE)]
        outcome = _engine.record(scenario, seed, cancel, links=both, comment="", events=records.extend)
    table = _Table(links_of(scenario), outcome["groups"])
    frame = table.frame(np.frombuffer(records, dtype=table.kind))
    return frame.filter(pl.col("event") == "in", pl.col("link") == link)


class _Buffer:
    """A file for polars, whose bytes go to a function."""

    def __init__(self, take: Callable[[bytes], None]) -> None:
        self._take = take
        self.failed: Exception | None = None

    def write(self, data: bytes) -> int:
        try:
            self._take(bytes(data))
        except Exception as error:  # polars has an error of its own for it
            self.failed = error
            raise
        return len(data)

    def flush(self) -> None:
        """Do nothing: no bytes wait here."""

    def close(self) -> None:
        """The file is closed by whoever opened it."""


def write(
    spool: int, take: Callable[[bytes], None], links: Iterable[str], groups: Sequence[Mapping[str, Any]]
) -> None:
    """Write the records in a file as Parquet, in as much memory as some hundred thousand of them take."""
    table = _Table(links, groups)
    rows = os.fstat(spool).st_size // table.kind.itemsize

    def chunks(
        columns: list[str] | None, predicate: pl.Expr | None, most: int | None, _size: int | None
    ) -> Iterator[pl.DataFrame]:
        last = rows if most is None else min(rows, most)
        for first in range(0, last, _CHUNK):
            count = min(_CHUNK, last - first)
            size = table.kind.itemsize
            os.lseek(spool, first * size, os.SEEK_SET)
            records = np.frombuffer(os.read(spool, count * size), dtype=table.kind)
            frame = table.frame(records)
            frame = frame if predicate is None else frame.filter(predicate)
            yield frame if columns is None else frame.select(columns)

    buffer = _Buffer(take)
    try:
        register_io_source(chunks, schema=table.schema).sink_parquet(
            cast("IO[bytes]", buffer), row_group_size=_CHUNK
        )
    except Exception:
        if buffer.failed is not None:
            raise buffer.failed from None
        raise


class _Table:
    """A table that records become rows of."""

    def __init__(self, links: Iterable[str], groups: Sequence[Mapping[str, Any]]) -> None:
        fields, events, reasons = _engine.record_format()
        self.kind = np.dtype(fields)
        self._first = np.cumsum([0, *(int(group["count"]) for group in groups)])
        classes = [str(group["name"]) for group in groups]
        self._texts = {
            "link": [name + suffix for name in links for suffix in ("", REVERSE)],
            "event": events,
            "class": classes,
            "color": list(COLORS),
            "ecn": list(_ECN),
            "reason": reasons,
        }
        self._words = {
            name: pl.Series([*texts, None], dtype=pl.Enum(list(dict.fromkeys(texts))))
            for name, texts in self._texts.items()
        }

    @property
    def schema(self) -> pl.Schema:
        """The columns of the table."""
        return self.frame(np.zeros(0, dtype=self.kind)).schema

    def frame(self, records: np.ndarray[Any, np.dtype[Any]]) -> pl.DataFrame:
        """Records as rows."""
        flow = records["flow"].astype(np.int64)
        group = np.searchsorted(self._first, flow, side="right") - 1
        member = records["member"].astype(np.int64)
        reason = np.minimum(records["reason"], len(self._texts["reason"]))
        return pl.DataFrame(
            {
                "time_s": records["time_ns"] / 1e9,
                "link": self._word("link", records["link"]),
                "event": self._word("event", records["event"]),
                "flow": np.ascontiguousarray(records["flow"]),
                "class": self._word("class", group),
                "member": np.where(member == _NO_MEMBER, flow - self._first[group], member).astype(np.uint32),
                "sequence": np.ascontiguousarray(records["sequence"]),
                "size": np.ascontiguousarray(records["size"]),
                "color": self._word("color", records["color"]),
                "dscp": np.ascontiguousarray(records["dscp"]),
                "ecn": self._word("ecn", records["ecn"]),
                "reason": self._word("reason", reason),
                "is_ack": records["is_ack"] == 1,
            }
        )

    def _word(self, name: str, numbers: np.ndarray[Any, np.dtype[Any]]) -> pl.Series:
        return self._words[name].gather(pl.Series(numbers.astype(np.uint32)))
