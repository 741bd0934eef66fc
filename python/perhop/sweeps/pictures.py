"""Pictures of a sweep: each metric over the factors, as lines over a grid or as marks over a sample."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from matplotlib.ticker import MaxNLocator

from perhop import _engine
from perhop.bounds import deriving
from perhop.bounds.metrics import at_most, is_delay
from perhop.scenario.quantities import NUMBER, UNIT, canonical
from perhop.scenario.ranges import Value, text_of
from perhop.show.declared import Axis, Plot, Row
from perhop.show.drawers import Drawers
from perhop.show.metric_names import Unit, shown_name, unit_of
from perhop.show.numbers import tick_labels
from perhop.show.page import HtmlPlot, html_drawing, html_plot
from perhop.show.sheet import MARKS as SHAPES
from perhop.show.sheet import SERIES, TEXT, Margins, Sheet, draw, text_width, tick_texts
from perhop.show.text import label
from perhop.sweeps.summary import PointSummary, metric_names, short_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from perhop.bounds.deriving import Bounds


MOST_PLOTS = 12
MOST_SERIES = 6
MOST_PANELS = 9
SIDE = 0.15
"""The room at either side of few values, as a part of their range."""
MOST_VECTORS = 1000
"""More marks than this are drawn as pixels."""
AT_MOST = "at most"
"""The metric of bounds in plots."""
_QUANTITY = re.compile(rf"({NUMBER}) ?((?!$){UNIT})")


@dataclass(frozen=True, slots=True)
class Numbers:
    """A factor whose values are numbers of one unit."""

    factor: str
    name: str
    unit: str
    by_value: Mapping[Value, float]

    @property
    def label(self) -> str:
        """What an axis says."""
        return f"{self.name}, {self.unit}" if self.unit else self.name


@dataclass(frozen=True, slots=True)
class Mark:
    """A metric at one point of a sample, as it is shown.

    Attributes:
        at: The value of each panel's factor.
        series: The place of the series.
        low: Lower end of the interval; the mean itself without one.
        high: Upper end, likewise.
        partial: The mean is of fewer runs than there are, since others have no value.
    """

    at: Sequence[float]
    series: int
    mean: float
    low: float
    high: float
    partial: bool


@dataclass(frozen=True, slots=True)
class Marks:
    """A metric at the points of a sample, with one panel for each factor of numbers."""

    metric: str
    panels: Sequence[Numbers]
    series: Sequence[str]
    points: Sequence[Mark]


def guarantees(summaries: Sequence[PointSummary]) -> dict[str, Bounds]:
    """Derive the bounds of each point, by its key; nothing where the points together are large."""
    parts = 0
    for summary in summaries:
        size = _engine.memory(summary.point.scenario)
        parts += size["flows"] + size["links"]
        if parts > deriving.MOST_PARTS:
            return {}
    return {one.point.key: deriving.beside_runs(one.point.scenario) for one in summaries}


def drawn(
    summaries: Sequence[PointSummary], bounds: Mapping[str, Bounds] | None = None
) -> list[tuple[Plot, Sequence[Row]] | Marks]:
    """What to draw of a sweep: a picture for each of its first metrics with a value; none of one point.

    Args:
        summaries: The points.
        bounds: Those of the points, by their keys; lines of delays have them beside what runs measure.
    """
    design = _Design.of(summaries)
    if not design.varied:
        return []
    known = [name for name in metric_names(summaries) if any(one.estimates.get(name) for one in summaries)]
    metrics = known[:MOST_PLOTS]
    if design.is_sample:
        others = [name for name in design.varied if name not in {entry.factor for entry in design.numeric}]
        return [_marks(metric, design.numeric, others, summaries) for metric in metrics]
    return [_lines(metric, design, summaries, bounds or {}) for metric in metrics]


@dataclass(frozen=True, slots=True)
class _Design:
    """The factors of a sweep.

    Attributes:
        values: Of each factor.
        varied: Factors with more than one value.
        numeric: Those of them that are numbers of one unit.
        is_sample: Points are drawn from the numbers' ranges, not every combination.
    """

    values: Mapping[str, Sequence[Value]]
    varied: Sequence[str]
    numeric: Sequence[Numbers]
    is_sample: bool

    @classmethod
    def of(cls, summaries: Sequence[PointSummary]) -> _Design:
        """The design of these points."""
        factors = list(summaries[0].point.factors)
        values = {
            name: list(dict.fromkeys(summary.point.factors[name] for summary in summaries))
            for name in factors
        }
        varied = [name for name in factors if len(values[name]) > 1]
        short = short_names(factors)
        found = (numbers(name, short[name], values[name]) for name in varied)
        numeric = [entry for entry in found if entry is not None]
        full = math.prod(len(values[name]) for name in varied) == len(summaries)
        is_sample = bool(numeric) and (not full or max(len(entry.by_value) for entry in numeric) < 2)
        return cls(values, varied, numeric, is_sample)

    @property
    def across(self) -> tuple[str, Numbers | None]:
        """The factor with the most values, numbers first, and its numbers if it has any."""
        found = max(self.numeric, key=lambda entry: len(entry.by_value), default=None)
        if found is not None:
            return found.factor, found
        return max(self.varied, key=lambda name: len(self.values[name])), None


def numbers(factor: str, name: str, values: Sequence[Value]) -> Numbers | None:
    """A factor as numbers of one unit, or None if its values are no such."""
    units = set()
    by_value: dict[Value, float] = {}
    for value in values:
        if isinstance(value, bool):
            return None
        if isinstance(value, int | float):
            units.add("")
            by_value[value] = float(value)
            continue
        found = _QUANTITY.fullmatch(value)
        if found is None:
            return None
        units.add(canonical(found[2]))
        by_value[value] = float(found[1])
    return Numbers(factor, name, units.pop(), by_value) if len(units) == 1 else None


def html_plots(
    summaries: Sequence[PointSummary], name: str, waits: Sequence[PointSummary] = (), jobs: int = 1
) -> list[HtmlPlot]:
    """Every picture, for a page and for files, drawn on so many cores.

    Args:
        summaries: The points.
        name: Of the files.
        waits: The points with the metrics `WAITS`.
        jobs: How many cores draw; the pictures are the same for any number.
    """
    bounds = guarantees(summaries) if waits or any(map(is_delay, metric_names(summaries))) else {}
    entries = [*drawn(summaries, bounds), *(waiting_times(waits, bounds) if waits else ())]
    with Drawers(jobs, len(entries)) as drawers:
        asked = [
            drawers.ask(marks_plot, entry, f"{name}-{_slug(entry.metric)}")
            if isinstance(entry, Marks)
            else drawers.ask(html_plot, *entry, name)
            for entry in entries
        ]
        return drawers.get(asked)


def _bound_row(
    metric: str, found: Bounds | None, factors: Mapping[str, str | float], unit: Unit
) -> list[Row]:
    """The bound of a delay, as a height of a plot; nothing where there is none."""
    value = None if found is None or not is_delay(metric) else at_most(metric, found)
    return [] if value is None else [Row(factors, AT_MOST, unit.text, None, value * unit.factor, None, 1)]


def _lines(
    metric: str, design: _Design, summaries: Sequence[PointSummary], bounds: Mapping[str, Bounds]
) -> tuple[Plot, Sequence[Row]]:
    """A metric over the factor with the most values; the one with the fewest makes the curves."""
    values = design.values
    x, across = design.across
    rest = sorted((name for name in design.varied if name != x), key=lambda name: len(values[name]))
    by_series = [name for name in rest[:1] if len(values[name]) <= MOST_SERIES]
    by_facet = [name for name in rest if name not in by_series]
    unit = unit_of(metric)
    short = short_names(list(summaries[0].point.factors))
    rows = []
    for summary in summaries:
        found = summary.estimates.get(metric)
        if found is None:
            continue
        own = summary.point.factors
        ends = None
        if found.drawn is not None:
            ends = (found.drawn[0] * unit.factor, found.drawn[1] * unit.factor)
        factors: dict[str, str | float] = {
            "x": text_of(own[x]) if across is None else across.by_value[own[x]],
            "series": ", ".join(f"{short[name]} {text_of(own[name])}" for name in by_series) or "measured",
            "facet": ", ".join(f"{short[name]} {text_of(own[name])}" for name in by_facet),
        }
        row = Row(factors, metric, unit.text, None, found.mean * unit.factor, ends, found.runs)
        rows += [replace(row, of=found.of), *_bound_row(metric, bounds.get(summary.point.key), factors, unit)]
    panels = list(dict.fromkeys(str(row.factors["facet"]) for row in rows))[:MOST_PANELS]
    series = {str(row.factors["series"]): str(row.factors["series"]) for row in rows}
    if list(series) == ["measured"]:
        series = {"measured": ""}
    plot = Plot(
        id=_slug(metric),
        title=shown_name(metric).partition(",")[0],
        kind="points" if across is None else "lines",
        metric=metric,
        x=Axis("x", short[x] if across is None else across.label),
        series=Axis("series", "", series),
        y_label=unit.text or "",
        facet=Axis("facet", "", {name: name for name in panels}) if by_facet else None,
        where={"facet": tuple(panels)} if by_facet else {},
        from_zero=_from_zero([row for row in rows if row.metric == metric]),
        at_most=AT_MOST,
    )
    return plot, rows


PERCENTILES: Mapping[str, str] = {"p50": "median", "p95": "95th percentile", "p99": "99th percentile"}
TAIL = "p99"
"""The percentile beside which the bound is drawn."""
WAITS = tuple(f"links.*.delay_{part}_s" for part in PERCENTILES)
"""The metrics that `waiting_times` draws."""
_WAIT = re.compile(r"links\.(.+)\.delay_(p\d+)_s")


def waiting_times(
    summaries: Sequence[PointSummary], bounds: Mapping[str, Bounds] | None = None
) -> list[tuple[Plot, list[Row]]]:
    """Return how long packets waited over the factor with the most values: median and tail of each queue.

    A link whose queue distinguishes classes of packets has a panel for each class. Nothing of a sample.

    Args:
        summaries: With the metrics `WAITS`.
        bounds: Those of the points, by their keys.
    """
    design = _Design.of(summaries)
    if not design.varied or design.is_sample:
        return []
    x, across = design.across
    rest = [name for name in design.varied if name != x]
    short = short_names(list(summaries[0].point.factors))
    rows: list[Row] = []
    for summary in summaries:
        own = summary.point.factors
        at = ", ".join(f"{short[name]} {text_of(own[name])}" for name in rest)
        for metric, found in summary.estimates.items():
            parts = _WAIT.fullmatch(metric)
            if parts is None or found is None:
                continue
            factor = unit_of(metric).factor
            ends = None if found.drawn is None else (found.drawn[0] * factor, found.drawn[1] * factor)
            factors: dict[str, str | float] = {
                "x": text_of(own[x]) if across is None else across.by_value[own[x]],
                "part": parts[2],
                "queue": parts[1],
                "panel": ", ".join(filter(None, (parts[1].replace(".classes.", " "), at))),
            }
            row = Row(factors, "delay", "ms", None, found.mean * factor, ends, found.runs)
            rows.append(replace(row, of=found.of))
            if parts[2] == TAIL:
                known = (bounds or {}).get(summary.point.key)
                rows += _bound_row(metric, known, factors, unit_of(metric))
    apart = {
        str(row.factors["queue"]).partition(".classes.")[0]
        for row in rows
        if ".classes." in str(row.factors["queue"])
    }
    rows = [row for row in rows if row.factors["queue"] not in apart]
    panels = list(dict.fromkeys(str(row.factors["panel"]) for row in rows))
    if not panels:
        return []
    left_out = f" (the first {MOST_PANELS} of {len(panels)} panels)" if len(panels) > MOST_PANELS else ""
    plot = Plot(
        id="waiting-times",
        title=f"Waiting time of packets: median and tail{left_out}",
        kind="points" if across is None else "lines",
        metric="delay",
        x=Axis("x", short[x] if across is None else across.label),
        series=Axis("part", "", PERCENTILES),
        y_label="ms",
        facet=Axis("panel", "", {name: name for name in panels[:MOST_PANELS]}),
        where={"panel": tuple(panels[:MOST_PANELS])},
        steady=True,
        at_most=AT_MOST,
    )
    return [(plot, rows)]


def _from_zero(rows: Sequence[Row]) -> bool:
    """Whether zero belongs on the axis: not where it would hide what varies."""
    means = [row.mean for row in rows if row.mean is not None]
    return not means or min(means) < 0.6 * max(means)


def _marks(
    metric: str, numeric: Sequence[Numbers], others: Sequence[str], summaries: Sequence[PointSummary]
) -> Marks:
    unit = unit_of(metric)
    names: dict[str, int] = {}
    points = []
    for summary in summaries:
        found = summary.estimates.get(metric)
        if found is None:
            continue
        own = summary.point.factors
        series = ", ".join(text_of(own[name]) for name in others)
        at = [entry.by_value[own[entry.factor]] for entry in numeric[:MOST_PANELS]]
        mean, low, high = (value * unit.factor for value in (found.mean, *(found.drawn or [found.mean] * 2)))
        which = names.setdefault(series, len(names))
        points.append(Mark(at, which, mean, low, high, found.missing > 0))
    return Marks(metric, numeric[:MOST_PANELS], list(names), points)


def marks_plot(marks: Marks, name: str) -> HtmlPlot:
    """A panel for each factor."""
    title = shown_name(marks.metric)
    alts = [f"{title} over {panel.label}" for panel in marks.panels]
    text = _caption(marks)
    return html_drawing(draw(partial(_marks_sheet, marks), name, (title, text), alts), title, text)


def _caption(marks: Marks) -> str:
    parts = ["One mark for each point."]
    if any(one.low < one.high for one in marks.points):
        parts.append("Error bars: 95 % intervals.")
    if hollow := sum(one.partial for one in marks.points):
        parts.append(
            f"{hollow} of {len(marks.points)} marks are hollow: of fewer runs, as the others have no value."
        )
    return " ".join(parts)


def _marks_sheet(marks: Marks, *, title: str = "", remark: str = "", narrow: bool = False) -> Sheet:
    sheet = Sheet(
        len(marks.panels), height=195.0 if narrow else None, title=title, remark=remark, narrow=narrow
    )
    names = [label(name) for name in marks.series[:MOST_SERIES]] if len(marks.series) > 1 else []
    legend = 13.0 if names else 0.0
    panels = [sheet.axes(index, Margins(top=8.0 + legend)) for index in range(len(marks.panels))]
    for index, axes in enumerate(panels):
        _marks_panel(axes, marks, index, sheet.cell_width - 60.0)
    low, high = (pick(axes.get_ylim()[end] for axes in panels) for end, pick in enumerate((min, max)))
    for index, axes in enumerate(panels):
        axes.set_ylim(low, high)
        left = 33.0 + max(map(text_width, tick_texts(axes, "y")), default=0.0)
        sheet.place(axes, index, Margins(left, 16.0, 8.0 + legend, 36.0))
        axes.set_ylabel(unit_of(marks.metric).text)
    if names:
        panels[0].legend(
            loc="lower left",
            bbox_to_anchor=(0.0, 1.0),
            ncols=len(names),
            frameon=False,
            labelcolor="linecolor",
            handlelength=0.8,
            borderaxespad=0.1,
            columnspacing=1.0,
        )
    return sheet


def sides(found: Sequence[tuple[float, float, float]]) -> list[list[float]]:
    """Return how far the ends of intervals are from the values, as error bars take it: below, and above.

    Args:
        found: A value, and the lower and the upper end, each.
    """
    return [
        [max(0.0, value - low) for value, low, _ in found],
        [max(0.0, high - value) for value, _, high in found],
    ]


def _marks_panel(axes: Axes, marks: Marks, panel: int, wide: float) -> None:
    dense = len(marks.points) > MOST_VECTORS
    for index, series in enumerate(marks.series[:MOST_SERIES]):
        own = [one for one in marks.points if one.series == index]
        for hollow in (False, True):
            drawn = [one for one in own if one.partial is hollow]
            if not drawn:
                continue
            axes.errorbar(
                [one.at[panel] for one in drawn],
                [one.mean for one in drawn],
                yerr=sides([(one.mean, one.low, one.high) for one in drawn]),
                fmt=SHAPES[index],
                markersize=1.5 if dense else 3.5,
                markerfacecolor="white" if hollow else SERIES[index],
                elinewidth=0.3 if dense else 0.9,
                color=SERIES[index],
                alpha=0.85,
                label=label(series) if drawn[0] is own[0] else None,
                rasterized=dense,
            )
    axes.yaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]))
    axes.set_xlabel(label(marks.panels[panel].label))
    values = sorted(set(marks.panels[panel].by_value.values()))
    if len(values) <= MOST_SERIES and _fit(values, wide):
        axes.set_xticks(values)
        axes.margins(x=SIDE)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6))


def _fit(values: Sequence[float], wide: float) -> bool:
    """Whether each value has room for its number on an axis of this width in points; values ascend."""
    needed = max(map(text_width, tick_labels(values))) + TEXT
    scale = wide / (1 + 2 * SIDE) / (values[-1] - values[0] or 1.0)
    return all((high - low) * scale >= needed for low, high in pairwise(values))


def _slug(metric: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", metric).strip("-").lower()
