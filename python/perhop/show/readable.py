"""Rows of results as readers see them: means with intervals in one cell, in units of the field."""

from __future__ import annotations

import html
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from perhop.measures import catalog, finite_flows
from perhop.measures.run import COLORS
from perhop.show.numbers import MISSING, at_most, estimated, exact, short
from perhop.show.table import Way

_SUMMARIES = {
    entry.name: (entry.unit, entry.summary)
    for entry in catalog.SUMMARIZED
    if entry.summary is not None and entry.summary.place is not None
}
_ABOVE = {
    "burst_ratio": 1.0,
    **{name: summary.above for name, (_, summary) in _SUMMARIES.items() if summary.above is not None},
    **{name: one.summary.above for name, one in catalog.BOUNDS.items() if one.summary.above is not None},
}
"""Measures that stand in tables with every column alone, and in others where a value is above this."""
_OF_USERS = {one.name: one for entries in catalog.APPLICATION.values() for one in entries}
HEADS = {
    "profile_bps": "profile, Mbit/s",
    "rate_bps": "rate, Mbit/s",
    "arrived_packets": "packets per run",
    "mouth_to_ear_s": "mouth to ear, ms",
    "lost_or_late": "lost or late, %",
    "burst_ratio": "BurstR",
    "r": "R",
    "mos": "MOS",
    **{one.name: one.head for one in (*finite_flows.MEASURES, finite_flows.OPEN)},
    **{name: catalog.SHOWN[unit].head(summary.label) for name, (unit, summary) in _SUMMARIES.items()},
    **{name: catalog.SHOWN[one.unit].head(one.label) for name, one in _OF_USERS.items()},
    **{name: catalog.SHOWN[one.unit].head(one.summary.label) for name, one in catalog.BOUNDS.items()},
}
"""The heads of columns: of measures, and of the columns beside them for context."""
LOSS = HEADS["loss"]
REASONS = {"dropped_": "drops per run", "notified_": "notified per run"}
"""Columns that start so, each of which counts one reason, are shown as one."""
UNITS = ("_bps", "_s", "_packets")
_FACTORS = {
    "profile_bps": 1e-6,
    "rate_bps": 1e-6,
    "arrived_packets": 1.0,
    "mouth_to_ear_s": 1e3,
    "lost_or_late": 100.0,
    "burst_ratio": 1.0,
    "r": 1.0,
    "mos": 1.0,
    **{one.name: 1e3 if one.unit == "s" else 1.0 for one in (*finite_flows.MEASURES, finite_flows.OPEN)},
    **{name: catalog.SHOWN[unit].factor for name, (unit, _) in _SUMMARIES.items()},
    **{name: catalog.SHOWN[one.unit].factor for name, one in _OF_USERS.items()},
}
_IMPORTANCE = {
    "rate, Mbit/s": 10,
    "flows": 50,
    "BurstR": 20,
    HEADS["mouth_to_ear_s"]: 145,
    HEADS["lost_or_late"]: 150,
    **{one.head: one.importance for one in (*finite_flows.MEASURES, finite_flows.OPEN)},
    "packets per run": 60,
    "notified per run": 110,
    "profile, Mbit/s": 140,
    **{HEADS[name]: one.importance for name, one in _OF_USERS.items()},
    **{HEADS[name]: summary.importance for name, (_, summary) in _SUMMARIES.items()},
    **{HEADS[name]: one.summary.importance for name, one in catalog.BOUNDS.items()},
}
KEPT = 255
"""The importance of columns that every terminal shows."""
_BESIDE = {HEADS[name]: HEADS[one.of] for name, one in catalog.BOUNDS.items()}
LEFT_OUT_FIRST: tuple[Way, ...] = tuple(
    (head, _BESIDE[head]) if head in _BESIDE else head
    for head in sorted(_IMPORTANCE, key=lambda head: _IMPORTANCE[head])
    if _IMPORTANCE[head] < KEPT
)
"""Columns that a narrow terminal does without, the least important one first; bounds go with percentiles."""


def readable(rows: Sequence[Mapping[str, Any]], also: Collection[str] | None = ()) -> list[dict[str, str]]:
    """Each row as strings; columns without any value, and ends of intervals, are no columns of their own.

    Args:
        rows: Means over runs, with the ends of their intervals; all have the same columns.
        also: Of the measures that stand in tables with every column alone, those that this one has, too,
            besides those with a value above their bound; None for all of them. A bound stands in others where
            what it is beside has a value.
    """

    def belongs(column: _Column) -> bool:
        name = column.names[0]
        bound = None if also is None else catalog.BOUNDS.get(name)
        if bound is not None and all(row.get(bound.of) is None for row in rows):
            return False
        if name not in _ABOVE or also is None or name in also:
            return column.has_value(rows)
        return any(row[name] is not None and row[name] > _ABOVE[name] for row in rows)

    columns = [column for column in _columns(list(rows[0]) if rows else []) if belongs(column)]
    colors = [place for place, column in enumerate(columns) if column.names[0] in _BY_COLOR]
    if len(colors) == 1:
        columns[colors[0]] = replace(columns[colors[0]], head=LOSS)
    return [{column.head: column.text(row) for column in columns} for row in rows]


_BY_COLOR = tuple(f"dropped_{color}" for color in COLORS)


def html_table(lines: Sequence[Mapping[str, str]]) -> str:
    """Records as an HTML table."""
    heads = "".join(f"<th>{html.escape(name)}</th>" for name in lines[0])
    rows = "".join(
        "<tr>" + "".join(f"<td>{html.escape(_together(text))}</td>" for text in line.values()) + "</tr>"
        for line in lines
    )
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"


def _together(text: str) -> str:
    """A number and its interval stay on one line."""
    return text.replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}").replace(" (", "\N{NO-BREAK SPACE}(")


@dataclass(frozen=True, slots=True)
class _Column:
    """One column as readers see it.

    Attributes:
        names: Its columns in the frame: one, or the counts of each reason.
        ends: Those that hold the ends of its interval, where there are any.
        factor: From the frame's unit to the readers'; None for what is shown as it is.
        prefix: Of the columns of reasons; else empty.
    """

    head: str
    names: tuple[str, ...]
    ends: tuple[str, str] | None
    factor: float | None
    prefix: str = ""

    def has_value(self, rows: Sequence[Mapping[str, Any]]) -> bool:
        if self.names[0] == "profile_bps":
            return any(row["profile_bps"] for row in rows)
        return any(row[name] is not None for row in rows for name in self.names)

    def text(self, row: Mapping[str, Any]) -> str:
        if self.prefix:
            found = {name.removeprefix(self.prefix): row[name] for name in self.names}
            return ", ".join(f"{why.replace('_', ' ')} {n:.0f}" for why, n in found.items() if n) or "none"
        value = row[self.names[0]]
        if value is None:
            return MISSING
        if self.names[0] in _TEXTS:
            return _TEXTS[self.names[0]](value)
        if self.factor is None or not isinstance(value, int | float):
            return short(value) if isinstance(value, float) else str(value)
        low, high = (None, None) if self.ends is None else (row[end] for end in self.ends)
        ends = (None if end is None else end * self.factor for end in (low, high))
        return estimated(value * self.factor, *ends)


def bound_text(one: catalog.Bound, value: float | bool | None) -> str:
    """A bound without its unit, rounded up; of loss, whether it is excluded."""
    if value is None:
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    return at_most(value, catalog.SHOWN[one.unit].factor)


_TEXTS: Mapping[str, Callable[[Any], str]] = {
    "profile_bps": lambda rate: exact(rate / 1e6) if rate else "best effort",
    "rate_bps": lambda rate: exact(rate * _FACTORS["rate_bps"]),
    **{name: partial(bound_text, one) for name, one in catalog.BOUNDS.items()},
}
"""The form of values that are no estimates."""


def _columns(names: Sequence[str]) -> Iterator[_Column]:
    ends = {name: end_names(name) for name in names}
    partners = {end for name in names if set(ends[name]) <= set(names) for end in ends[name]}
    seen = set()
    for name in names:
        prefix = _reason(name)
        if name in partners or prefix in seen:
            continue
        if prefix:
            seen.add(prefix)
            own = tuple(other for other in names if _reason(other) == prefix)
            yield _Column(REASONS[prefix], own, None, None, prefix)
            continue
        both = ends[name] if set(ends[name]) <= set(names) else None
        yield _Column(HEADS.get(name, name), (name,), both, _FACTORS.get(name))


def _reason(name: str) -> str:
    """The prefix of a column that counts packets by reason; else nothing."""
    if name.startswith(_BY_COLOR):
        return ""
    return next((prefix for prefix in REASONS if name.startswith(prefix)), "")


def end_names(name: str) -> tuple[str, str]:
    """Return the names of the columns of the ends of an interval."""
    unit = next((unit for unit in UNITS if name.endswith(unit)), "")
    stem = name.removesuffix(unit)
    return f"{stem}_low{unit}", f"{stem}_high{unit}"
