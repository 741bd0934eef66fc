"""Draw declared plots as SVG and PNG: direct labels, intervals, published values as hollow marks.

The same rows give the same bytes: element ids are salted with a constant and no date is written.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import ScaledTranslation

from perhop.output.sheet import (
    GRID,
    INK,
    LINE,
    MARKS,
    MUTED,
    SERIES,
    TEXT,
    Margins,
    Picture,
    Sheet,
    styled,
    text_width,
    tick_texts,
    to_svg,
)
from perhop.output.text import label
from perhop.study import chosen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from matplotlib.axes import Axes

    from perhop.study import Axis, Factor, Plot, Reference, Row

__all__ = ["GRID", "INK", "MUTED", "SERIES", "Drawing", "Picture", "caption", "drawing"]

NAMED = {"blue": SERIES[1], "green": SERIES[2]}
DOTS_BASE, DOTS_LINE = 62.0, 17.0
"""Height of a plot of dots without its categories, and of each, which stand below each other."""
DENSE = 30
"""Lines of more points than this are drawn without marks."""
BESIDE = 0.32
"""The share of a panel that labels beside it may take; wider ones stand in a legend above it."""
SHARED_FROM = 0.25
"""Panels share a scale if each then fills at least this part of it."""
LEGEND_HANDLE, LEGEND_GAP = 24.0, 10.0
ROTATION = 30.0


@dataclass(frozen=True, slots=True)
class Drawing:
    """A declared plot, drawn.

    Attributes:
        picture: All panels, for files.
        panels: Each panel as an SVG element, for a page.
        narrow: The same for a phone, where the panels are too wide for one; empty where they are not.
        columns: How many panels stand side by side where there is room.
    """

    picture: Picture
    panels: Sequence[str]
    narrow: Sequence[str]
    columns: int


@dataclass(frozen=True, slots=True)
class Label:
    """A direct label at the right edge of a panel."""

    y: float
    text: str
    color: str


def caption(plot: Plot, rows: Sequence[Row]) -> str:
    """How to read the marks that the plot uses."""
    found = chosen(rows, plot.metric, plot.where)
    parts = []
    if any(row.ci95 for row in found):
        parts.append(
            f"Bands: {plot.interval} intervals."
            if plot.kind == "lines"
            else f"Error bars: {plot.interval} intervals."
        )
    if any(row.published is not None for row in found):
        parts.append("Hollow: published.")
    if plot.limits:
        parts.append("Hollow: where the paper says the curve meets the profile.")
        places = {row.factors[plot.x.factor] for row in found}
        stated = [row.published for row in chosen(rows, plot.limits, plot.limits_where)]
        if any(value is not None and value not in places for value in stated):
            parts.append("One left of the curve: the paper says nowhere.")
    panels = _panels(plot, rows)
    if len(panels) > 1 and plot.kind != "dots":
        alike = _shared(plot, rows, panels) is not None
        parts.append("All panels have the same scale." if alike else "The panels' scales differ.")
    return " ".join(parts)


def drawing(plot: Plot, rows: Sequence[Row], study: str) -> Drawing:
    """Draw a plot, once for the file and the page, and once more for a phone if it is a single wide panel."""
    plot = _readable(plot, rows)
    panels = _panels(plot, rows)
    name = f"{study}-{plot.id}"
    alts = [
        plot.title if panel is None or plot.facet is None else f"{plot.title}, {plot.facet.text(panel)}"
        for panel in panels
    ]
    title = f"{plot.title} ({study})"
    with styled():
        sheet = _sheet(plot, rows, panels, title=title, remark=caption(plot, rows))
        picture = sheet.picture(name, title)
        inline = sheet.inline(picture.svg, name, alts)
        narrow: list[str] = []
        if sheet.columns == 1:
            slim = _sheet(plot, rows, panels, narrow=True)
            narrow = slim.inline(to_svg(slim.figure), f"{name}-narrow", alts)
    return Drawing(picture, inline, narrow, sheet.columns)


def _readable(plot: Plot, rows: Sequence[Row]) -> Plot:
    """The plot with every name as a picture can show it."""

    def axis(one: Axis) -> Axis:
        values = one.order({row.factors[one.factor] for row in rows if one.factor in row.factors})
        names = {value: label(one.text(value)) for value in values}
        return replace(one, label=label(one.label), names=names)

    references = tuple(replace(one, label=label(one.label)) for one in plot.references)
    return replace(
        plot,
        title=label(plot.title, 90),
        y_label=label(plot.y_label),
        x=axis(plot.x),
        series=axis(plot.series),
        facet=None if plot.facet is None else axis(plot.facet),
        references=references,
    )


def _panels(plot: Plot, rows: Sequence[Row]) -> list[Factor | None]:
    if plot.facet is None:
        return [None]
    factor = plot.facet.factor
    return list(plot.facet.order(row.factors[factor] for row in chosen(rows, plot.metric, plot.where)))


def _sheet(
    plot: Plot,
    rows: Sequence[Row],
    panels: Sequence[Factor | None],
    *,
    title: str = "",
    remark: str = "",
    narrow: bool = False,
) -> Sheet:
    height = None
    if plot.kind == "dots":
        categories = {row.factors[plot.x.factor] for row in chosen(rows, plot.metric, plot.where)}
        height = DOTS_BASE + DOTS_LINE * len(categories)
    elif narrow:
        height = 195.0
    sheet = Sheet(len(panels), height=height, title=title, remark=remark, narrow=narrow)
    limits = None if plot.kind == "dots" else _shared(plot, rows, panels)
    for index, panel in enumerate(panels):
        _Panel(sheet, index, plot, rows, panel).draw(limits)
    return sheet


def _shared(plot: Plot, rows: Sequence[Row], panels: Sequence[Factor | None]) -> tuple[float, float] | None:
    """The ends of the scale that all panels share, or None if that would flatten one of them."""
    ranges = [found for panel in panels if (found := _range(plot, rows, panel)) is not None]
    if len(ranges) < 2:
        return None
    low, high = min(low for low, _ in ranges), max(high for _, high in ranges)
    if high <= low or any(top - bottom < SHARED_FROM * (high - low) for bottom, top in ranges):
        return None
    room = 0.05 * (high - low)
    return (0.0 if plot.from_zero else low - room), high + room


def _range(plot: Plot, rows: Sequence[Row], panel: Factor | None) -> tuple[float, float] | None:
    """The lowest and the highest value that a panel draws."""
    found = _of_panel(plot, rows, panel)
    values = [v for row in found for v in (row.mean, row.published, *(row.ci95 or ())) if v is not None]
    places = {row.factors[plot.x.factor] for row in found} | {panel}
    values += [h for reference in plot.references for at, h in reference.heights.items() if at in places]
    if not values:
        return None
    return (0.0 if plot.from_zero else min(values)), max(values)


def _of_panel(plot: Plot, rows: Sequence[Row], panel: Factor | None) -> list[Row]:
    found = chosen(rows, plot.metric, plot.where)
    if plot.facet is None or panel is None:
        return found
    return [row for row in found if row.factors[plot.facet.factor] == panel]


Curves = dict["Factor", list["Row"]]
Places = dict["Factor", float]


class _Panel:
    """One panel: what it draws, and the room that its texts need."""

    def __init__(
        self, sheet: Sheet, index: int, plot: Plot, rows: Sequence[Row], panel: Factor | None
    ) -> None:
        self.sheet, self.index, self.plot, self.rows, self.panel = sheet, index, plot, rows, panel
        found = _of_panel(plot, rows, panel)
        categories = plot.x.order(row.factors[plot.x.factor] for row in found)
        self.spaced = plot.kind != "lines" or plot.ordinal
        self.place: Places = {
            value: float(i) if self.spaced else float(value) for i, value in enumerate(categories)
        }
        self.curves: Curves = {
            value: sorted(
                (row for row in found if row.factors[plot.series.factor] == value),
                key=lambda row: self.place[row.factors[plot.x.factor]],
            )
            for value in plot.series.order(row.factors[plot.series.factor] for row in found)
        }

    def draw(self, limits: tuple[float, float] | None) -> None:
        """Draw into axes of a provisional size, then give them the room that the texts leave."""
        plot = self.plot
        axes = self.sheet.axes(self.index, Margins())
        if plot.kind == "dots":
            _dots(axes, plot, self.curves, self.place)
            self._settle_dots(axes)
            return
        if self.spaced:
            axes.set_xticks(list(self.place.values()), [plot.x.text(value) for value in self.place])
        labels = {"lines": _lines, "points": _points, "bars": _bars}[plot.kind](
            axes, plot, self.curves, self.place
        )
        labels += _references(axes, plot, self.panel, self.place)
        if plot.limits is not None:
            _limits(axes, plot, self.rows, self.panel, self.place)
        axes.yaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]))
        if not self.spaced:
            wide = self.sheet.columns < 3 and self.sheet.cell_width > 300.0
            axes.xaxis.set_major_locator(MaxNLocator(nbins=8 if wide else 5, steps=[1, 2, 5, 10]))
        if limits is not None:
            axes.set_ylim(*limits)
        elif plot.from_zero:
            axes.set_ylim(bottom=0)
        self._settle(axes, labels)

    def _settle(self, axes: Axes, labels: Sequence[Label]) -> None:
        plot, sheet = self.plot, self.sheet
        left = 20.0 + max(map(text_width, tick_texts(axes, "y")), default=0.0) + LINE * bool(plot.y_label)
        beside = max((text_width(one.text) for one in labels), default=0.0)
        above = plot.kind == "bars" or beside > BESIDE * sheet.cell_width
        right = 14.0 if above or not labels else beside + 12.0
        handles = axes.get_legend_handles_labels()[1] if above or plot.kind == "points" else []
        if len(handles) < 2 and plot.kind != "points":
            handles = []
        wide = sheet.cell_width - left - right
        columns = _legend_columns(handles, wide)
        legend = LINE * math.ceil(len(handles) / columns) if any(handles) else 0.0
        title = plot.facet.text(self.panel) if plot.facet is not None and self.panel is not None else ""
        angle, ticks = self._category_room(wide)
        name = f"{plot.x.label} (not to scale)" if plot.ordinal else plot.x.label
        margins = Margins(
            left, right, 6.0 + legend + (LINE + 2.0 if title else 0.0), 10.0 + ticks + (LINE if name else 0.0)
        )
        sheet.place(axes, self.index, margins)
        axes.set_title(_fitted(title, wide, bold=True), pad=legend + 4.0)
        axes.set_xlabel(_fitted(name, wide))
        axes.set_ylabel(_fitted(plot.y_label, sheet.cell_height - margins.top - margins.bottom))
        if angle:
            axes.tick_params(axis="x", labelrotation=angle)
            for text in axes.get_xticklabels():
                text.set(ha="right", rotation_mode="anchor")
        if any(handles):
            _legend(axes, columns)
        if not above:
            _direct_labels(axes, labels, sheet.cell_height - margins.top - margins.bottom)

    def _category_room(self, wide: float) -> tuple[float, float]:
        """By how much the names below the axis are turned so that they fit, and how high they then are."""
        if not self.spaced:
            return 0.0, LINE
        names = [self.plot.x.text(value) for value in self.place]
        widest = max(map(text_width, names), default=0.0)
        if widest + 6.0 <= wide / max(len(names), 1):
            return 0.0, LINE
        return ROTATION, LINE + widest * math.sin(math.radians(ROTATION))

    def _settle_dots(self, axes: Axes) -> None:
        sheet, plot = self.sheet, self.plot
        names = [plot.x.text(value) for value in self.place]
        most = 0.45 * sheet.cell_width
        names = [_fitted(name, most) for name in names]
        left = 14.0 + max(map(text_width, names), default=0.0)
        wide = sheet.cell_width - left - 14.0
        handles = axes.get_legend_handles_labels()[1]
        columns = _legend_columns(handles, sheet.cell_width - 14.0)
        legend = LINE * math.ceil(len(handles) / columns)
        sheet.place(axes, self.index, Margins(left, 14.0, 8.0 + legend, 34.0))
        axes.set_yticks(list(self.place.values()), names)
        axes.set_xlabel(_fitted(plot.y_label, wide))
        axes.xaxis.set_major_locator(MaxNLocator(nbins=7 if wide > 250 else 5))
        axes.legend(**_LEGEND, ncols=columns, bbox_to_anchor=(-(left - 4.0) / wide, 1.0))


_LEGEND: dict[str, Any] = {
    "loc": "lower left",
    "handlelength": 1.4,
    "columnspacing": 1.4,
    "handletextpad": 0.5,
    "borderpad": 0.2,
    "borderaxespad": 0.1,
    "labelspacing": 0.25,
    "frameon": False,
}


def _legend(axes: Axes, columns: int) -> None:
    """What the series are, above the axes, where it covers no mark."""
    axes.legend(**_LEGEND, ncols=columns, bbox_to_anchor=(0.0, 1.0))


def _legend_columns(names: Sequence[str], wide: float) -> int:
    widest = max(map(text_width, names), default=0.0) + LEGEND_HANDLE + LEGEND_GAP
    return max(1, min(len(names), int(wide / widest)))


def _fitted(text: str, wide: float, *, bold: bool = False) -> str:
    """The text, shortened to a width."""
    if text_width(text, bold=bold) <= wide:
        return text
    size = len(text)
    while size > 1 and text_width(text[:size].rstrip() + "…", bold=bold) > wide:
        size -= 1
    return text[:size].rstrip() + "…"


def _color(value: Factor, index: int) -> str:
    """The color of a series: its own where its first word is one, else the next of the palette."""
    return NAMED.get(str(value).partition(" ")[0], SERIES[index % len(SERIES)])


def _xy(plot: Plot, rows: Sequence[Row], place: Mapping[Factor, float]) -> tuple[list[float], list[float]]:
    drawn = [row for row in rows if row.mean is not None]
    return [place[row.factors[plot.x.factor]] for row in drawn], [row.mean or 0.0 for row in drawn]


def _ends(rows: Sequence[Row]) -> tuple[list[float], list[float]]:
    """Lower and upper ends of the intervals; the mean itself where there is none."""
    drawn = [row for row in rows if row.mean is not None]
    lows = [row.ci95[0] if row.ci95 else row.mean or 0.0 for row in drawn]
    highs = [row.ci95[1] if row.ci95 else row.mean or 0.0 for row in drawn]
    return lows, highs


def _lines(axes: Axes, plot: Plot, curves: Curves, place: Places) -> list[Label]:
    labels = []
    for index, (value, rows) in enumerate(curves.items()):
        color, name = _color(value, index), plot.series.text(value)
        x, y = _xy(plot, rows, place)
        if any(row.ci95 for row in rows):
            axes.fill_between(x, *_ends(rows), color=color, alpha=0.22, linewidth=0)
        dense = len(x) > DENSE
        axes.plot(
            x,
            y,
            color=color,
            linewidth=1.2 if dense else 1.8,
            linestyle="-" if index < len(SERIES) else "--",
            marker="" if dense else MARKS[index % len(MARKS)],
            markersize=4,
            label=name,
        )
        _published(axes, [(place[r.factors[plot.x.factor]], r) for r in rows], color)
        if y and name:
            labels.append(Label(y[-1], name, color))
    return labels


def _points(axes: Axes, plot: Plot, curves: Curves, place: Places) -> list[Label]:
    for index, (value, rows) in enumerate(curves.items()):
        color, mark = _color(value, index), MARKS[index % len(MARKS)]
        x, y = _xy(plot, rows, place)
        _error_bars(axes, x, y, rows, color)
        name = plot.series.text(value) if len(curves) > 1 else "_"
        axes.plot(x, y, color=color, linestyle="none", marker=mark, markersize=5, label=name)
        _published(axes, [(place[r.factors[plot.x.factor]] + 0.22, r) for r in rows], color)
    axes.set_xlim(-0.5, len(place) - 0.4)
    axes.margins(y=0.12)
    return []


def _dots(axes: Axes, plot: Plot, curves: Curves, place: Places) -> None:
    """Categories below each other, for long names; the marks of all series in one line."""
    for index, (value, rows) in enumerate(curves.items()):
        color = _color(value, index)
        y, x = _xy(plot, rows, place)
        _error_bars(axes, x, y, rows, color, sideways=True)
        mark = MARKS[index % len(MARKS)]
        axes.plot(
            x, y, color=color, linestyle="none", marker=mark, markersize=5, label=plot.series.text(value)
        )
        _published(axes, [(place[r.factors[plot.x.factor]], r) for r in rows], color, sideways=True)
    axes.set_ylim(len(place) - 0.5, -0.5)
    if plot.from_zero:
        axes.set_xlim(left=0)
    if plot.band is not None:
        name, low, high = plot.band
        axes.axvspan(low, high, color=MUTED, alpha=0.15, linewidth=0, label=name)
    axes.xaxis.grid(visible=True)
    axes.tick_params(axis="y", length=0)
    for index, reference in enumerate(plot.references):
        style = _reference_style(index)
        for value, height in reference.heights.items():
            if value in place:
                axes.plot([height, height], [place[value] - 0.5, place[value] + 0.5], **style)
        axes.plot([], [], **style, label=reference.label)


def _reference_style(index: int) -> dict[str, Any]:
    return {"color": MUTED, "linewidth": 1.1, "linestyle": ":" if index else "--"}


def _bars(axes: Axes, plot: Plot, curves: Curves, place: Places) -> list[Label]:
    width = 0.76 / max(len(curves), 1)
    # A single category must not fill the panel.
    axes.set_xlim(-0.6 - max(0, 2 - len(place)), len(place) - 0.4 + max(0, 2 - len(place)))
    for index, (value, rows) in enumerate(curves.items()):
        color = _color(value, index)
        shift = (index - (len(curves) - 1) / 2) * width
        x, y = _xy(plot, rows, place)
        x = [at + shift for at in x]
        axes.bar(x, y, width * 0.92, color=color, alpha=0.85, label=plot.series.text(value))
        _error_bars(axes, x, y, rows, INK)
        _published(axes, [(place[r.factors[plot.x.factor]] + shift, r) for r in rows], INK)
    return []


def _error_bars(
    axes: Axes,
    x: Sequence[float],
    y: Sequence[float],
    rows: Sequence[Row],
    color: str,
    *,
    sideways: bool = False,
) -> None:
    if not any(row.ci95 for row in rows):
        return
    lows, highs = _ends(rows)
    means = x if sideways else y
    below = [max(0.0, a - b) for a, b in zip(means, lows, strict=True)]
    above = [max(0.0, b - a) for a, b in zip(means, highs, strict=True)]
    ends: dict[str, Any] = {"xerr" if sideways else "yerr": [below, above]}
    axes.errorbar(x, y, **ends, fmt="none", ecolor=color, elinewidth=1.2, capsize=2.5)


def _published(
    axes: Axes, places: Sequence[tuple[float, Row]], color: str, *, sideways: bool = False
) -> None:
    known = [(at, row.published) for at, row in places if row.published is not None]
    if known:
        categories, values = [at for at, _ in known], [value for _, value in known]
        axes.plot(
            values if sideways else categories,
            categories if sideways else values,
            linestyle="none",
            marker="o",
            markersize=5,
            markerfacecolor="none",
            markeredgecolor=color,
            markeredgewidth=1.2,
        )


def _references(axes: Axes, plot: Plot, panel: Factor | None, place: Places) -> list[Label]:
    labels = []
    for index, reference in enumerate(plot.references):
        style = _reference_style(index)
        if plot.facet is not None and reference.by == plot.facet.factor:
            height = None if panel is None else reference.heights.get(panel)
            if height is not None:
                axes.axhline(height, **style)
                labels.append(Label(height, reference.label, MUTED))
        elif reference.by == plot.x.factor:
            _ticks(axes, reference, place, style)
    return labels


def _ticks(axes: Axes, reference: Reference, place: Places, style: Mapping[str, Any]) -> None:
    """A short line across each category, named in the legend."""
    known = [(place[value], height) for value, height in reference.heights.items() if value in place]
    for index, (x, height) in enumerate(known):
        axes.plot([x - 0.45, x + 0.45], [height, height], **style, label="_" if index else reference.label)


def _limits(axes: Axes, plot: Plot, rows: Sequence[Row], panel: Factor | None, place: Places) -> None:
    """A hollow diamond where the paper says that a curve meets the first reference line.

    A level below all simulated ones stands left of them; diamonds at one place are set side by side.
    """
    heights = plot.references[0].heights
    found = chosen(rows, plot.limits or "", plot.limits_where)
    drawn = plot.series.order(
        row.factors[plot.series.factor] for row in chosen(rows, plot.metric, plot.where)
    )
    if panel is None:
        return
    first = min(place.values())
    step = min((b - a for a, b in itertools.pairwise(sorted(place.values()))), default=1.0)
    marks: dict[float, list[Row]] = {}
    for row in found:
        if plot.facet is not None and row.factors[plot.facet.factor] != panel:
            continue
        if row.published is None:
            continue
        at = place.get(row.published, first - step if row.published < min(_numbers(place)) else None)
        if at is not None:
            marks.setdefault(at, []).append(row)
    for at, rank, count, row in (
        (at, rank, len(same), row) for at, same in marks.items() for rank, row in enumerate(same)
    ):
        axes.update_datalim([(at, heights[panel])])  # a shifted mark does not count by itself
        axes.autoscale_view()
        aside = 10.0 * (rank - (count - 1) / 2) / 72
        axes.plot(
            [at],
            [heights[panel]],
            transform=axes.transData + ScaledTranslation(aside, 0, axes.figure.dpi_scale_trans),
            linestyle="none",
            marker="D",
            markersize=7,
            markerfacecolor="none",
            markeredgecolor=SERIES[drawn.index(row.factors[plot.series.factor]) % len(SERIES)],
            markeredgewidth=1.6,
            zorder=5,
        )


def _numbers(place: Iterable[Factor]) -> list[float]:
    return [float(value) for value in place if not isinstance(value, str)] or [-math.inf]


def _direct_labels(axes: Axes, labels: Sequence[Label], height: float) -> None:
    """Write labels beside the right edge, pushed apart where they would overlap.

    Args:
        axes: Where.
        labels: What.
        height: Of the axes, in points.
    """
    low, high = axes.get_ylim()
    gap = (TEXT + 2.0) / height * (high - low)
    placed: list[float] = []
    ordered = sorted(labels, key=lambda entry: entry.y)
    for one in ordered:
        placed.append(max(one.y, placed[-1] + gap) if placed else max(one.y, low))
    overshoot = max(0.0, placed[-1] - high) if placed else 0.0
    last = math.inf
    for index in reversed(range(len(placed))):  # those pushed beyond the top move down together
        placed[index] = last = min(placed[index], high if overshoot else placed[index], last - gap)
    for one, y in zip(ordered, placed, strict=True):
        axes.annotate(
            one.text,
            (1.0, y),
            xycoords=axes.get_yaxis_transform(),
            xytext=(5, 0),
            textcoords="offset points",
            color=one.color,
            va="center",
            fontsize=TEXT,
            annotation_clip=False,
        )
