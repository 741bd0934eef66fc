"""Pictures of a sweep: each metric over the factors, as lines over a grid or as marks over a sample."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator

from perhop.output.plot import (
    COLUMNS,
    MUTED,
    SERIES,
    SMALL_PANEL_INCHES,
    STYLE,
    Picture,
    inline_svg,
    pictures,
    to_png,
    to_svg,
)
from perhop.output.report import HtmlPlot, html_plot
from perhop.study import Axis, Plot, Row
from perhop.sweep.space import text_of
from perhop.sweep.summary import metric_names, short_names, shown_name, unit_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from perhop.sweep.space import Value
    from perhop.sweep.summary import PointSummary

MOST_PLOTS = 12
MOST_SERIES = 6
MOST_PANELS = 9
MOST_VECTORS = 1000
"""More marks than this are drawn as pixels."""
_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]+)?)([A-Za-z]+)")


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
class Marks:
    """A metric at the points of a sample, with one panel for each factor of numbers.

    Attributes:
        points: (value of each panel's factor, series, mean, half width).
    """

    metric: str
    panels: Sequence[Numbers]
    series: Sequence[str]
    points: Sequence[tuple[Sequence[float], int, float, float]]


def drawn(summaries: Sequence[PointSummary]) -> list[tuple[Plot, Sequence[Row]] | Marks]:
    """What to draw of a sweep: a picture for each of its first metrics; none of a single point."""
    factors = list(summaries[0].point.factors)
    values = {
        name: list(dict.fromkeys(summary.point.factors[name] for summary in summaries)) for name in factors
    }
    varied = [name for name in factors if len(values[name]) > 1]
    short = short_names(factors)
    numeric = [found for name in varied if (found := numbers(name, short[name], values[name])) is not None]
    if not varied:
        return []
    metrics = metric_names(summaries)[:MOST_PLOTS]
    full = math.prod(len(values[name]) for name in varied) == len(summaries)
    others = [name for name in varied if name not in {entry.factor for entry in numeric}]
    if numeric and (not full or max(len(entry.by_value) for entry in numeric) < 2):
        return [_marks(metric, numeric, others, summaries) for metric in metrics]
    return [_lines(metric, varied, numeric, values, summaries) for metric in metrics]


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
        units.add(found[2])
        by_value[value] = float(found[1])
    return Numbers(factor, name, units.pop(), by_value) if len(units) == 1 else None


def draw_all(summaries: Sequence[PointSummary], name: str) -> Iterator[Picture]:
    """Every picture, for files."""
    for entry in drawn(summaries):
        if isinstance(entry, Marks):
            yield marks_picture(entry, f"{name}-{_slug(entry.metric)}")
        else:
            yield pictures(entry[0], entry[1], name)


def html_plots(summaries: Sequence[PointSummary], name: str) -> list[HtmlPlot]:
    """Every picture, for a page."""
    return [
        marks_html(entry, f"{name}-{index}") if isinstance(entry, Marks) else html_plot(*entry, name)
        for index, entry in enumerate(drawn(summaries))
    ]


def _lines(
    metric: str,
    varied: Sequence[str],
    numeric: Sequence[Numbers],
    values: Mapping[str, Sequence[Value]],
    summaries: Sequence[PointSummary],
) -> tuple[Plot, Sequence[Row]]:
    """A metric over the factor with the most values; the one with the fewest makes the curves."""
    across = max(numeric, key=lambda entry: len(entry.by_value), default=None)
    x = across.factor if across is not None else max(varied, key=lambda name: len(values[name]))
    rest = sorted((name for name in varied if name != x), key=lambda name: len(values[name]))
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
        if found.ci95 is not None:
            ends = (found.ci95[0] * unit.factor, found.ci95[1] * unit.factor)
        factors: dict[str, str | float] = {
            "x": text_of(own[x]) if across is None else across.by_value[own[x]],
            "series": ", ".join(f"{short[name]} {text_of(own[name])}" for name in by_series) or "measured",
            "facet": ", ".join(f"{short[name]} {text_of(own[name])}" for name in by_facet),
        }
        rows.append(Row(factors, metric, unit.text, None, found.mean * unit.factor, ends, summary.runs))
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
        from_zero=_from_zero(rows),
    )
    return plot, rows


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
        half = (found.half_width or 0.0) * unit.factor
        points.append((at, names.setdefault(series, len(names)), found.mean * unit.factor, half))
    return Marks(metric, numeric[:MOST_PANELS], list(names), points)


def marks_picture(marks: Marks, name: str) -> Picture:
    """All panels in one figure, for a file."""
    with mpl.rc_context({**STYLE, "svg.fonttype": "path"}):
        figure = _marks_figure(marks, range(len(marks.panels)), footed=True)
        title = shown_name(marks.metric)
        figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
        figure.text(0.01, 0.005, _caption(marks), fontsize=8, color=MUTED, va="bottom")
        return Picture(name, title, to_svg(figure), to_png(figure))


def marks_html(marks: Marks, name: str) -> HtmlPlot:
    """Each panel as an SVG element, for a page."""
    panels = []
    with mpl.rc_context({**STYLE, "svg.fonttype": "none"}):
        for index, panel in enumerate(marks.panels):
            figure = _marks_figure(marks, [index], footed=False)
            svg = inline_svg(to_svg(figure), f"{name}-{index}", f"{marks.metric} over {panel.label}")
            panels.append(Markup(svg))  # noqa: S704 - the drawing library escapes names
    return HtmlPlot(shown_name(marks.metric), _caption(marks), panels)


def _caption(marks: Marks) -> str:
    parts = ["One mark for each point."]
    if any(half for _, _, _, half in marks.points):
        parts.append("Bars are 95 % intervals.")
    return " ".join(parts)


def _marks_figure(marks: Marks, panels: Sequence[int], *, footed: bool) -> Figure:
    columns = min(len(panels), COLUMNS)
    lines = math.ceil(len(panels) / columns)
    width, height = SMALL_PANEL_INCHES
    size = (width * columns, height * lines + (0.5 if footed else 0.0))
    foot = 0.2 / size[1] if footed else 0.0
    figure = Figure(figsize=size, layout=ConstrainedLayoutEngine(rect=(0, foot, 1, 1 - foot)))
    places = figure.subplots(lines, columns, squeeze=False, sharey=True)
    for place, panel in zip(places.flat, [*panels, *[None] * (lines * columns - len(panels))], strict=True):
        if panel is None:
            place.set_visible(False)
        else:
            _marks_panel(place, marks, panel)
    for line in places:
        line[0].set_ylabel(unit_of(marks.metric).text)
    if len(marks.series) > 1:
        places.flat[0].legend(frameon=False, fontsize=8, labelcolor="linecolor", handlelength=0.8)
    return figure


def _marks_panel(axes: Axes, marks: Marks, panel: int) -> None:
    dense = len(marks.points) > MOST_VECTORS
    for index, series in enumerate(marks.series[:MOST_SERIES]):
        own = [(at[panel], mean, half) for at, which, mean, half in marks.points if which == index]
        if not own:
            continue
        x, y, half = zip(*own, strict=True)
        axes.errorbar(
            x,
            y,
            yerr=half if any(half) else None,
            fmt="o",
            markersize=1.5 if dense else 3.5,
            elinewidth=0.3 if dense else 0.9,
            color=SERIES[index],
            alpha=0.85,
            label=series,
            rasterized=dense,
        )
    axes.set_xlabel(marks.panels[panel].label)
    values = sorted(set(marks.panels[panel].by_value.values()))
    if len(values) > MOST_SERIES:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6))
    else:
        axes.set_xticks(values, [f"{value:g}" for value in values])
        axes.margins(x=0.15)


def _slug(metric: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", metric).strip("-").lower()
