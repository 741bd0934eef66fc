"""The marks of a plot: lines, points, dots, bars, intervals, published values and reference lines."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from matplotlib.patches import Rectangle
from matplotlib.transforms import ScaledTranslation

from perhop.show.declared import Factor, Plot, Reference, Row, chosen
from perhop.show.sheet import INK, MARKS, MUTED, SERIES

if TYPE_CHECKING:
    from matplotlib.axes import Axes


NAMED = {"blue": SERIES[1], "green": SERIES[2]}
_DASHES = ("-", "--", ":", "-.")
DENSE = 30
"""Lines of more points than this are drawn without marks."""
Curves = dict["Factor", list["Row"]]
Places = dict["Factor", float]


@dataclass(frozen=True, slots=True)
class Label:
    """A direct label at the right edge of a panel."""

    y: float
    text: str
    color: str


def _color(value: Factor, index: int) -> str:
    """The color of a series: its own where its first word is one, else the next of the palette."""
    return NAMED.get(str(value).partition(" ")[0], SERIES[index % len(SERIES)])


def _xy(plot: Plot, rows: Sequence[Row], place: Mapping[Factor, float]) -> tuple[list[float], list[float]]:
    drawn = [row for row in rows if row.mean is not None]
    return [place[row.factors[plot.x.factor]] for row in drawn], [row.mean or 0.0 for row in drawn]


def _ends(rows: Sequence[Row]) -> tuple[list[float], list[float]]:
    """Lower and upper ends of the intervals; the mean itself where there is none."""
    drawn = [row for row in rows if row.mean is not None]
    ends = [row.drawn or (row.mean or 0.0, row.mean or 0.0) for row in drawn]
    lows, highs = [low for low, _ in ends], [high for _, high in ends]
    return lows, highs


def lines(axes: Axes, plot: Plot, curves: Curves, place: Places) -> list[Label]:
    """Draw one line for each series, its interval as a band; returns labels for their ends."""
    labels = []
    for number, (value, rows) in enumerate(curves.items()):
        index = plot.rank(value, number)
        color, name = _color(value, index), plot.series.text(value)
        x, y = _xy(plot, rows, place)
        if any(row.ci95 for row in rows):
            axes.fill_between(x, *_ends(rows), color=color, alpha=0.22, linewidth=0)
        dense = len(x) > DENSE or plot.kind == "cdf"
        axes.plot(
            x,
            y,
            color=color,
            linewidth=1.2 if dense else 1.8,
            linestyle=_DASHES[index // len(SERIES) % len(_DASHES)],
            marker="" if dense else MARKS[index % len(MARKS)],
            markersize=4,
            label=name,
        )
        _partial(axes, [(place[r.factors[plot.x.factor]], r) for r in rows], color)
        _published(axes, [(place[r.factors[plot.x.factor]], r) for r in rows], color)
        if y and name and plot.kind != "cdf":  # cumulative distributions all end at one place
            labels.append(Label(y[-1], name, color))
    return labels


def points(axes: Axes, plot: Plot, curves: Curves, place: Places) -> list[Label]:
    """Draw one mark for each value, with its interval, beside the published one."""
    for index, (value, rows) in enumerate(curves.items()):
        color, mark = _color(value, index), MARKS[index % len(MARKS)]
        x, y = _xy(plot, rows, place)
        _error_bars(axes, x, y, rows, color)
        name = plot.series.text(value) if len(curves) > 1 else "_"
        axes.plot(x, y, color=color, linestyle="none", marker=mark, markersize=5, label=name)
        _partial(axes, [(place[r.factors[plot.x.factor]], r) for r in rows], color)
        _published(axes, [(place[r.factors[plot.x.factor]] + 0.22, r) for r in rows], color)
    axes.set_xlim(-0.5, len(place) - 0.4)
    axes.margins(y=0.12)
    return []


def dots(axes: Axes, plot: Plot, curves: Curves, place: Places) -> None:
    """Categories below each other, for long names; the marks of a category's series close to its line.

    Each series has a height of its own, so that equal values do not hide each other.
    """
    step = min(0.32, 0.64 / max(len(curves), 1))
    for index, (value, rows) in enumerate(curves.items()):
        color, shift = _color(value, index), step * (index - (len(curves) - 1) / 2)
        y, x = _xy(plot, rows, {category: at + shift for category, at in place.items()})
        _error_bars(axes, x, y, rows, color, sideways=True)
        mark = MARKS[index % len(MARKS)]
        axes.plot(
            x, y, color=color, linestyle="none", marker=mark, markersize=5, label=plot.series.text(value)
        )
        _published(axes, [(place[r.factors[plot.x.factor]] + shift, r) for r in rows], color, sideways=True)
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


FIELDS: Mapping[bool | None, str] = {True: SERIES[2], False: SERIES[0], None: MUTED}
"""Colors of a matrix: at or above the bound, below it, or the interval contains it."""


def matrix(axes: Axes, plot: Plot, curves: Curves, place: Places) -> None:
    """A field for each x and series: its number, in the color of its side of the bound."""
    for line, rows in enumerate(curves.values()):
        for row in rows:
            if row.mean is None:
                continue
            state = None if plot.bound is None else plot.bound.state(row)
            x, strong = place[row.factors[plot.x.factor]], state is True
            field = Rectangle((x - 0.5, line - 0.5), 1, 1)
            field.set(
                facecolor=FIELDS[state], alpha=0.85 if strong else 0.28, edgecolor="white", linewidth=1.5
            )
            axes.add_patch(field)
            text = f"{row.mean:.2f}" + ("?" if state is None else "")
            weight = "bold" if strong else "normal"
            axes.text(
                x, line, text, ha="center", va="center", fontweight=weight, color="white" if strong else INK
            )
    axes.set_xlim(-0.5, len(place) - 0.5)
    axes.set_ylim(len(curves) - 0.5, -0.5)
    axes.grid(visible=False)
    axes.tick_params(axis="both", length=0)
    for side in axes.spines.values():
        side.set_visible(False)


SIGNS: Mapping[float, tuple[str, str, float]] = {
    1.0: (SERIES[2], "", 0.85),
    0.0: (SERIES[0], "×", 0.45),
    0.5: (MUTED, "?", 0.22),
}
"""The color, sign and opacity of a claim's states: holds, does not hold, and open."""


def states(axes: Axes, plot: Plot, curves: Curves, place: Places) -> None:
    """A field for each x and series: whether a claim holds there, in a color and with a sign."""
    for line, rows in enumerate(curves.values()):
        for row in rows:
            if row.mean is None:
                continue
            color, sign, strength = SIGNS[row.mean]
            x = place[row.factors[plot.x.factor]]
            field = Rectangle((x - 0.5, line - 0.5), 1, 1)
            field.set(facecolor=color, alpha=strength, edgecolor="white", linewidth=0.8)
            axes.add_patch(field)
            axes.text(x, line, sign, ha="center", va="center", color=INK)
    bounds = [
        at
        for (before, _), (value, at) in itertools.pairwise(place.items())
        if plot.groups.get(before) != plot.groups.get(value)
    ]
    for at in bounds:
        axes.axvline(at - 0.5, color=INK, linewidth=1.0)
    axes.set_xlim(-0.5, len(place) - 0.5)
    axes.set_ylim(len(curves) - 0.5, -0.5)
    axes.grid(visible=False)
    axes.tick_params(axis="both", length=0)
    for side in axes.spines.values():
        side.set_visible(False)


def _reference_style(index: int) -> dict[str, Any]:
    return {"color": MUTED, "linewidth": 1.1, "linestyle": ":" if index else "--"}


def bars(axes: Axes, plot: Plot, curves: Curves, place: Places) -> list[Label]:
    """Draw the bars of all series side by side, with their intervals."""
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


def _partial(axes: Axes, places: Sequence[tuple[float, Row]], color: str) -> None:
    """Say at a mark of how many runs it is, where the others have no value."""
    for at, row in places:
        if row.is_partial and row.mean is not None:
            axes.annotate(
                f"{row.runs} of {row.of}",
                (at, row.mean),
                xytext=(0, 5),
                textcoords="offset points",
                ha="center",
                color=color,
                fontsize="small",
            )


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


def references(axes: Axes, plot: Plot, panel: Factor | None, place: Places) -> list[Label]:
    """Draw the reference lines of a panel; returns labels for those that cross all of it."""
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


_BOUND: Mapping[str, Any] = {"linewidth": 1.4, "linestyle": ":"}
FARTHEST = 4.0
"""A bound beyond this many times the end of the curves is left out: they would be squeezed."""


def bounds_of(plot: Plot, rows: Sequence[Row], panel: Factor | None) -> tuple[list[Row], list[Row]]:
    """The bounds of a panel's curves: those that it shows, and those that are too far away."""

    def of_panel(metric: str) -> list[Row]:
        found = chosen(rows, metric, plot.where)
        return [row for row in found if plot.facet is None or row.factors[plot.facet.factor] == panel]

    found = of_panel(plot.at_most or "")
    if not found:
        return [], []
    if plot.kind == "cdf":
        values = [float(row.factors[plot.x.factor]) for row in of_panel(plot.metric)]
    else:
        values = [max((row.mean or 0.0, *(row.drawn or ()))) for row in of_panel(plot.metric)]
    end = max(values, default=0.0)
    near = [row for row in found if (row.mean or 0.0) <= FARTHEST * end]
    return near, [row for row in found if row not in near]


def bounds(
    axes: Axes, plot: Plot, rows: Sequence[Row], panel: Factor | None, curves: Curves, *, place: Places
) -> None:
    """Draw the bound of each curve in its color: of a distribution an upright line, else a dotted curve."""
    near, _ = bounds_of(plot, rows, panel)
    for number, value in enumerate(curves):
        style: dict[str, Any] = {"color": _color(value, plot.rank(value, number)), **_BOUND}
        own = [row for row in near if row.factors[plot.series.factor] == value and row.mean is not None]
        if plot.kind == "cdf":
            for row in own:
                axes.axvline(row.mean or 0.0, **style)
            continue
        heights = sorted((place[row.factors[plot.x.factor]], row.mean or 0.0) for row in own)
        if plot.kind == "points":
            for at, height in heights:
                axes.plot([at - 0.3, at + 0.3], [height, height], **style)
        else:
            axes.plot([at for at, _ in heights], [height for _, height in heights], **style)
    if near:
        axes.plot([], [], color=MUTED, label="at most", **_BOUND)


def limits(axes: Axes, plot: Plot, rows: Sequence[Row], panel: Factor | None, place: Places) -> None:
    """A hollow diamond where the paper says that a curve meets the first reference line.

    A level below all simulated ones is left of them; diamonds at one place are set side by side.
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
    found_at: dict[float, list[Row]] = {}
    for row in found:
        if plot.facet is not None and row.factors[plot.facet.factor] != panel:
            continue
        if row.published is None:
            continue
        at = place.get(row.published, first - step if row.published < min(_numbers(place)) else None)
        if at is not None:
            found_at.setdefault(at, []).append(row)
    for at, rank, count, row in (
        (at, rank, len(same), row) for at, same in found_at.items() for rank, row in enumerate(same)
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
