"""Declarations of tables and plots: which rows, on which axes. They draw nothing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from perhop.show.numbers import exact

Factor: TypeAlias = "str | float | int | bool"
Factors: TypeAlias = "Mapping[str, Factor]"
"""The values that identify a number, such as `{"scheme": "rio", "profile_mbps": 2.0}`."""
Among: TypeAlias = "Factor | tuple[Factor, ...]"
"""The value, or the values, that a factor must have."""
Where: TypeAlias = "Mapping[str, Among]"
"""A choice of rows: what each of some factors must be."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a study's result: the mean over runs beside what the paper says.

    Attributes:
        mean: None where the measure does not exist.
        ci95: None for a single run, and for measures that are read off the means of all runs; an end that is
            not known is infinite.
        derived: The published value is arithmetic on printed numbers.
        spread: The lowest and the highest single run, where the published value is a single run, too.
        of: How many runs there are, if only some of them have a value.
        misprint: The published value cannot be right.
    """

    factors: Factors
    metric: str
    unit: str
    published: float | None
    mean: float | None
    ci95: tuple[float, float] | None
    runs: int
    derived: bool = False
    spread: tuple[float, float] | None = None
    of: int | None = None
    misprint: bool = False

    @property
    def is_partial(self) -> bool:
        """Whether only some of the runs have a value."""
        return self.of is not None and self.runs < self.of

    @property
    def drawn(self) -> tuple[float, float] | None:
        """The interval's ends for a picture: one that is not known is as far away as the other."""
        if self.mean is None or self.ci95 is None:
            return None
        below, above = self.mean - self.ci95[0], self.ci95[1] - self.mean
        if math.isinf(below) and math.isinf(above):
            return None
        below, above = (above if math.isinf(below) else below), (below if math.isinf(above) else above)
        return self.mean - below, self.mean + above

    @property
    def within(self) -> bool | None:
        """Whether the published value lies among our single runs; None where that cannot be said."""
        if self.published is None or self.spread is None:
            return None
        return self.spread[0] <= self.published <= self.spread[1]


@dataclass(frozen=True, slots=True)
class Axis:
    """A factor on an axis of a table or a plot.

    Attributes:
        factor: Its name.
        label: What a reader sees.
        names: Text for a value, in the order in which values appear; values not named are shown as they are,
            sorted as numbers.
    """

    factor: str
    label: str
    names: Mapping[Any, str] = field(default_factory=dict)

    def text(self, value: Factor) -> str:
        """Return how a value reads."""
        if value in self.names:
            return self.names[value]
        return exact(value) if isinstance(value, int | float) else str(value)

    def order(self, values: Iterable[Factor]) -> list[Factor]:
        """The distinct values in reading order."""
        named = list(self.names)
        return sorted(
            set(values), key=lambda v: (named.index(v) if v in named else len(named), *_sort_key(v))
        )


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound against which each number of a table or a plot is held by its 95 % interval.

    Attributes:
        met: What a number at or above the bound says, such as "keeps the profile".
        missed: What one below it says.
        at: The bound.
    """

    met: str
    missed: str
    at: float

    def state(self, row: Row) -> bool | None:
        """Whether the whole interval is at or above the bound; None where it contains the bound."""
        if row.mean is None:
            return None
        low, high = row.ci95 or (row.mean, row.mean)
        return True if low >= self.at else False if high < self.at else None


@dataclass(frozen=True, slots=True)
class Table:
    """A table: one line for each value of `rows`; a column for each metric and each value of `columns`.

    Attributes:
        metrics: Metrics to show, each with the head of its columns; a single one needs no head.
        bound: Each number says by a sign on which side of it it is.
    """

    title: str
    metrics: Mapping[str, str]
    rows: Axis
    columns: tuple[Axis, ...] = ()
    where: Where = field(default_factory=dict)
    digits: int = 3
    bound: Bound | None = None


Shown: TypeAlias = "str | Mapping[str, str]"
"""The metric of a table, or several, each with the head of its columns."""
Listed: TypeAlias = "tuple[str, Shown, int] | tuple[str, Shown, int, Where]"
"""A table: title, metrics, number of digits and, if it has its own, the values that factors must have."""


def tables(rows: Axis, columns: tuple[Axis, ...], *listed: Listed, **where: Among) -> Iterator[Table]:
    """Declare tables that share their axes.

    Args:
        rows: The lines of each table.
        columns: The columns of each table.
        listed: The tables.
        where: The values that factors must have in all tables.
    """
    for title, shown, digits, *own in listed:
        metrics = {shown: ""} if isinstance(shown, str) else shown
        yield Table(title, metrics, rows, columns, {**where, **own[0]} if own else where, digits)


@dataclass(frozen=True, slots=True)
class Reference:
    """A line to hold the measured values against.

    Attributes:
        by: The factor, facet or x, whose values choose the height.
        heights: Height for each value of that factor.
    """

    label: str
    by: str
    heights: Mapping[Any, float]


@dataclass(frozen=True, slots=True)
class Plot:
    """A picture of one metric, one panel for each value of `facet`.

    Attributes:
        kind: "lines" (a numeric or ordered x), "cdf" (cumulative distributions: lines that all end at 1),
            "points" (categories), "bars" (categories, series side by side), "dots" (categories below each
            other, the metric to the right), "matrix" (a field for each x and series, with its number and
            the color of its side of `bound`), or "states" (a field for each x and series, which says by color
            and sign whether a claim holds there: 1, does not: 0, or is open: 0.5).
        ordinal: Set the x values of lines at equal distances, whatever their size.
        limits: A metric whose published value is an x position: where the paper says the series meets the
            first reference line.
        limits_where: Factors that pick the right one of those values.
        band: The meaning of a shaded band of dots, and its ends.
        interval: What the rows' intervals are.
        reading: How to read lines and bands, where these are no means and intervals.
        bound: Of a matrix.
        logarithmic: The x axis of lines has a logarithmic scale.
        one_scale: Its panels show one quantity, and may have one scale.
        steady: Each named series keeps its color where another has no values; always so of "cdf".
        groups: Of states: what each x value belongs to.
        at_most: The metric of bounds that no value exceeds: places on the x axis of distributions, else
            heights.
    """

    id: str
    title: str
    kind: str
    metric: str
    x: Axis
    series: Axis
    y_label: str
    facet: Axis | None = None
    where: Where = field(default_factory=dict)
    references: tuple[Reference, ...] = ()
    ordinal: bool = False
    limits: str | None = None
    limits_where: Where = field(default_factory=dict)
    from_zero: bool = True
    band: tuple[str, float, float] | None = None
    interval: str = "95 %"
    reading: str = ""
    bound: Bound | None = None
    logarithmic: bool = False
    steady: bool = False
    one_scale: bool = True
    groups: Mapping[Any, str] = field(default_factory=dict)
    at_most: str | None = None

    @property
    def is_curves(self) -> bool:
        """Whether the figure has lines over a numeric or ordered x."""
        return self.kind in ("lines", "cdf")

    def rank(self, value: Factor, index: int) -> int:
        """The place of a series among the colors; `index` is that among those of its panel."""
        if (self.steady or self.kind == "cdf") and value in self.series.names:
            return list(self.series.names).index(value)
        return index


def chosen(rows: Iterable[Row], metric: str, where: Where) -> list[Row]:
    """The rows of one metric that have the given factor values."""

    def fits(row: Row) -> bool:
        return all(
            row.factors.get(name) in (wanted if isinstance(wanted, tuple) else (wanted,))
            for name, wanted in where.items()
        )

    return [row for row in rows if row.metric == metric and fits(row)]


def _sort_key(value: Factor) -> tuple[int, float, str]:
    return (1, 0.0, value) if isinstance(value, str) else (0, float(value), "")
