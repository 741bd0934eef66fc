"""Draw declared plots as SVG and PNG: direct labels, intervals, published values as hollow marks.

The same rows give the same bytes: element ids are salted with a constant and no date is written.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from perhop.show import marks
from perhop.show.declared import Axis, Bound, Factor, Plot, Row, chosen
from perhop.show.numbers import at_most
from perhop.show.sheet import (
    GRID,
    INK,
    LINE,
    MUTED,
    SERIES,
    TEXT,
    Drawing,
    Margins,
    Numbers,
    Picture,
    Sheet,
    draw,
    styled,
    text_width,
    tick_texts,
)
from perhop.show.text import label

if TYPE_CHECKING:
    from matplotlib.axes import Axes


__all__ = ["GRID", "INK", "MUTED", "SERIES", "Picture", "caption", "drawing", "figure"]

DOTS_BASE, DOTS_LINE = 62.0, 17.0
"""Height of a plot of dots without its categories, and of each, which stand below each other."""
MATRIX_BASE = 48.0
"""Height of a matrix without its lines, which are as high as those of dots."""
STATES_LINE = 11.0
"""Height of a claim in a picture of states."""
BESIDE = 0.32
"""The share of a panel that labels beside it may take; wider ones stand in a legend above it."""
SHARED_FROM = 0.25
"""Panels share a scale if each then fills at least this part of it."""
LEGEND_HANDLE, LEGEND_GAP = 24.0, 10.0
ROTATION = 30.0


def caption(plot: Plot, rows: Sequence[Row]) -> str:
    """Say how to read the marks that the plot uses."""
    found = chosen(rows, plot.metric, plot.where)
    if plot.kind == "states":
        return (
            "Dark: the claim holds there. “×”: it does not hold. “?”: cannot tell. "
            "Empty: there is nothing to judge. “*”: not counted."
        )
    if plot.kind == "matrix":
        return "" if plot.bound is None else _bounded(plot.bound, plot.interval)
    parts = [plot.reading] if plot.reading else []
    if not plot.reading and any(row.ci95 for row in found):
        parts.append(
            f"Bands: {plot.interval} intervals."
            if plot.is_curves
            else f"Error bars: {plot.interval} intervals."
        )
    some = next((row for row in found if row.is_partial), None)
    if some is not None:
        parts.append(f"Such as {some.runs} of {some.of}: so many runs have a value.")
    if any(row.published is not None for row in found):
        parts.append("Hollow: published.")
    if plot.limits:
        parts.append("Hollow: where the paper says the curve meets the profile.")
        places = {row.factors[plot.x.factor] for row in found}
        stated = [row.published for row in chosen(rows, plot.limits, plot.limits_where)]
        if any(value is not None and value not in places for value in stated):
            parts.append("One left of the curve: the paper says nowhere.")
    panels = _panels(plot, rows)
    parts += _at_most(plot, rows, panels)
    if len(panels) > 1 and plot.kind not in ("dots", "cdf"):
        alike = _shared(plot, rows, panels) is not None
        parts.append("All panels have the same scale." if alike else "The panels' scales differ.")
    return " ".join(parts)


def _bounded(bound: Bound, interval: str) -> str:
    return (
        f"Dark: {bound.met} (the whole {interval} interval is at least {bound.at:g}). "
        f"Light: {bound.missed} (below {bound.at:g}). "
        f"Gray with “?”: cannot tell."
    )


def _at_most(plot: Plot, rows: Sequence[Row], panels: Sequence[Factor | None]) -> Iterator[str]:
    """Yield how to read bounds, and those that are too far away to be drawn."""
    found = [(panel, *marks.bounds_of(plot, rows, panel)) for panel in panels]
    if plot.kind != "cdf":
        if any(near for _, near, _ in found):
            yield "Dotted: at most in any run."
        for panel, _, far in found:
            if far:
                ends = dict.fromkeys(at_most(end(row.mean or 0.0 for row in far)) for end in (min, max))
                of = "" if panel is None else f"{panel} "
                yield f"Above the scale: {of}at most {' to '.join(ends)} {plot.y_label}."
        return
    if any(near for _, near, _ in found):
        yield "Upright: at most, in any run."
    for panel, _, far in found:
        for row in far:
            of = ", ".join(map(str, filter(None, (panel, row.factors[plot.series.factor]))))
            yield f"Farther right: {of} at most {at_most(row.mean or 0.0)} {row.unit}."


def drawing(plot: Plot, rows: Sequence[Row], study: str) -> Drawing:
    """Draw a plot, once for the file and the page, and once more for a phone if it is a single wide panel."""
    plot = _readable(plot, rows)
    panels = _panels(plot, rows)
    title, name = _title(plot, study), f"{study}-{plot.id}"
    alts = [
        plot.title if panel is None or plot.facet is None else f"{plot.title}, {plot.facet.text(panel)}"
        for panel in panels
    ]
    return draw(partial(_sheet, plot, rows, panels), name, (title, caption(plot, rows)), alts)


def figure(plot: Plot, rows: Sequence[Row], study: str) -> Figure:
    """A declared plot as a figure, to be changed, shown or saved: what files of `drawing` show."""
    plot = _readable(plot, rows)
    with styled():
        sheet = _sheet(plot, rows, _panels(plot, rows), title=_title(plot, study), remark=caption(plot, rows))
        # Ticks are made when they are first drawn, and in the style of that moment.
        sheet.figure.draw_without_rendering()
    return sheet.figure


def _title(plot: Plot, study: str) -> str:
    return f"{plot.title} ({study})"


def _readable(plot: Plot, rows: Sequence[Row]) -> Plot:
    """The plot with every name as a picture can show it."""

    def axis(one: Axis) -> Axis:
        values = one.order(
            {*one.names, *(row.factors[one.factor] for row in rows if one.factor in row.factors)}
        )
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
        height = DOTS_BASE + DOTS_LINE * len(categories) + (LINE if plot.facet is not None else 0.0)
    elif plot.kind == "matrix":
        lines = {row.factors[plot.series.factor] for row in chosen(rows, plot.metric, plot.where)}
        height = MATRIX_BASE + DOTS_LINE * len(lines)
    elif plot.kind == "states":
        names = plot.series.order(
            row.factors[plot.series.factor] for row in chosen(rows, plot.metric, plot.where)
        )
        values = [plot.x.text(value) for value in plot.x.names]
        below = max(map(text_width, values), default=0.0)
        height = STATES_LINE * len(names) + below + _groups_height(plot) + 24.0
    elif narrow:
        height = 195.0
    sheet = Sheet(len(panels), height=height, title=title, remark=remark, narrow=narrow)
    limits = None if plot.kind in ("dots", "matrix", "states") else _shared(plot, rows, panels)
    for index, panel in enumerate(panels):
        _Panel(sheet, index, plot, rows, panel).draw(limits)
    return sheet


def _shared(plot: Plot, rows: Sequence[Row], panels: Sequence[Factor | None]) -> tuple[float, float] | None:
    """The ends of the scale that all panels share, or None if that would flatten one of them."""
    ranges = [found for panel in panels if (found := _range(plot, rows, panel)) is not None]
    if len(ranges) < 2 or not plot.one_scale:
        return None
    low, high = min(low for low, _ in ranges), max(high for _, high in ranges)
    if high <= low or any(top - bottom < SHARED_FROM * (high - low) for bottom, top in ranges):
        return None
    room = 0.05 * (high - low)
    return (0.0 if plot.from_zero else low - room), high + room


def _range(plot: Plot, rows: Sequence[Row], panel: Factor | None) -> tuple[float, float] | None:
    """The lowest and the highest value that a panel draws."""
    found = _of_panel(plot, rows, panel)
    values = [v for row in found for v in (row.mean, row.published, *(row.drawn or ())) if v is not None]
    if plot.kind != "cdf":
        values += [row.mean for row in marks.bounds_of(plot, rows, panel)[0] if row.mean is not None]
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


class _Panel:
    """One panel: what it draws, and the room that its texts need."""

    def __init__(
        self, sheet: Sheet, index: int, plot: Plot, rows: Sequence[Row], panel: Factor | None
    ) -> None:
        self.sheet, self.index, self.plot, self.rows, self.panel = sheet, index, plot, rows, panel
        found = _of_panel(plot, rows, panel)
        categories = plot.x.order(row.factors[plot.x.factor] for row in found)
        self.spaced = not plot.is_curves or plot.ordinal
        self.place: marks.Places = {
            value: float(i) if self.spaced else float(value) for i, value in enumerate(categories)
        }
        self.curves: marks.Curves = {
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
            marks.dots(axes, plot, self.curves, self.place)
            self._settle_dots(axes)
            return
        if plot.kind == "states":
            marks.states(axes, plot, self.curves, self.place)
            self._settle_states(axes)
            return
        if plot.kind == "matrix":
            marks.matrix(axes, plot, self.curves, self.place)
            self._settle_matrix(axes)
            return
        if self.spaced:
            axes.set_xticks(list(self.place.values()), [plot.x.text(value) for value in self.place])
        labels = {"lines": marks.lines, "cdf": marks.lines, "points": marks.points, "bars": marks.bars}[
            plot.kind
        ](axes, plot, self.curves, self.place)
        labels += marks.references(axes, plot, self.panel, self.place)
        if plot.limits is not None:
            marks.limits(axes, plot, self.rows, self.panel, self.place)
        marks.bounds(axes, plot, self.rows, self.panel, self.curves, place=self.place)
        axes.yaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]))
        if not self.spaced:
            wide = self.sheet.columns < 3 and self.sheet.cell_width > 300.0
            if plot.logarithmic:
                axes.set_xscale("log")
                axes.xaxis.set_major_locator(LogLocator(numticks=8 if wide else 5))
                axes.xaxis.set_minor_locator(NullLocator())
                axes.xaxis.set_major_formatter(Numbers())
            else:
                axes.xaxis.set_major_locator(MaxNLocator(nbins=8 if wide else 5, steps=[1, 2, 5, 10]))
        if limits is not None:
            axes.set_ylim(*limits)
        elif plot.from_zero:
            axes.set_ylim(bottom=0)
        self._settle(axes, labels)

    def _settle(self, axes: Axes, labels: Sequence[marks.Label]) -> None:
        plot, sheet = self.plot, self.sheet
        left = 20.0 + max(map(text_width, tick_texts(axes, "y")), default=0.0) + LINE * bool(plot.y_label)
        beside = max((text_width(one.text) for one in labels), default=0.0)
        above = plot.kind in ("bars", "cdf") or beside > BESIDE * sheet.cell_width
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
        # It begins where the axes do, and may go on above the labels beside them.
        axes.set_title(_fitted(title, sheet.cell_width - left - 14.0, bold=True), pad=legend + 4.0)
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
        """The angle at which the names below the axis fit, and how high they then are."""
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
        title = "" if plot.facet is None or self.panel is None else plot.facet.text(self.panel)
        above = 8.0 + legend + (LINE + 2.0 if title else 0.0)
        sheet.place(axes, self.index, Margins(left, 14.0, above, 34.0))
        axes.set_title(_fitted(title, wide, bold=True), pad=legend + 4.0)
        axes.set_yticks(list(self.place.values()), names)
        axes.set_xlabel(_fitted(plot.y_label, wide))
        axes.xaxis.set_major_locator(MaxNLocator(nbins=7 if wide > 250 else 5))
        axes.legend(**_LEGEND, ncols=columns, bbox_to_anchor=(-(left - 4.0) / wide, 1.0))

    def _settle_matrix(self, axes: Axes) -> None:
        sheet, plot = self.sheet, self.plot
        names = [_fitted(plot.series.text(value), 0.45 * sheet.cell_width) for value in self.curves]
        left = 14.0 + max(map(text_width, names), default=0.0)
        wide = sheet.cell_width - left - 8.0
        title = "" if plot.facet is None or self.panel is None else plot.facet.text(self.panel)
        angle, ticks = self._category_room(wide)
        sheet.place(axes, self.index, Margins(left, 8.0, 6.0 + (LINE + 2.0 if title else 0.0), 14.0 + ticks))
        axes.set_title(_fitted(title, wide, bold=True), pad=4.0)
        axes.set_yticks(range(len(names)), names)
        axes.set_xticks(list(self.place.values()), [plot.x.text(value) for value in self.place])
        axes.set_xlabel(_fitted(plot.x.label, wide))
        if angle:
            axes.tick_params(axis="x", labelrotation=angle)
            for text in axes.get_xticklabels():
                text.set(ha="right", rotation_mode="anchor")

    def _settle_states(self, axes: Axes) -> None:
        """Names of the claims to the left; the values below, and what they are values of above, upright."""
        sheet, plot = self.sheet, self.plot
        names = [_fitted(plot.series.text(value), 0.46 * sheet.cell_width) for value in self.curves]
        left = 14.0 + max(map(text_width, names), default=0.0)
        values = [plot.x.text(value) for value in self.place]
        below = 10.0 + max(map(text_width, values), default=0.0)
        above = _groups_height(plot)
        sheet.place(axes, self.index, Margins(left, 8.0, above, below))
        axes.set_yticks(range(len(names)), names)
        axes.set_xticks(list(self.place.values()), values, rotation=90)
        for group in dict.fromkeys(plot.groups[value] for value in self.place):
            middle = [at for value, at in self.place.items() if plot.groups[value] == group]
            axes.annotate(
                group,
                (sum(middle) / len(middle), -0.5),
                xytext=(0.0, 4.0),
                textcoords="offset points",
                rotation=90,
                ha="center",
                va="bottom",
                annotation_clip=False,
            )


def _groups_height(plot: Plot) -> float:
    return 12.0 + max((text_width(group) for group in plot.groups.values()), default=0.0)


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
    """Draw the legend above the axes, where it covers no mark."""
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


def _direct_labels(axes: Axes, labels: Sequence[marks.Label], height: float) -> None:
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
