"""Draw declared plots as SVG and PNG: direct labels, intervals, published values as hollow marks.

The same rows give the same bytes: element ids are salted with a constant and no date is written.
"""

from __future__ import annotations

import io
import itertools
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import ScaledTranslation

from perhop.study import chosen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

    from perhop.study import Factor, Plot, Reference, Row

INK = "#1c1d1f"
MUTED = "#66696e"
GRID = "#dcdee0"
SERIES = ("#c2500a", "#0a6eb0", "#00805e", "#a34f86", "#8a6d00", "#3b8fb5", "#55585e")
"""Distinct to readers with any of the common colour blindnesses, in light and in print."""

NAMED = {"blue": SERIES[1], "green": SERIES[2]}

PANEL_INCHES = (4.5, 3.0)
SMALL_PANEL_INCHES = (3.9, 2.9)
DOTS_INCHES = (6.4, 1.2, 0.24)
"""Width; height without the categories; height of each category, which stand below each other."""
COLUMNS = 3
DENSE = 30
"""Lines of more points than this are drawn without marks."""
MOST_LABEL_SIGNS = 36
"""Labels of more signs in all do not fit below a panel side by side."""
HEADROOM_STEPS = 20
"""How often a panel may grow by a twentieth to keep its legend off the marks."""
MARKS = "osD^vP"
"""Told apart without colour where marks of all series share a line."""
STYLE: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.5,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.titlecolor": INK,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "text.color": INK,
    "text.parse_math": False,  # names are the user's: a `$` in one is a `$`
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "svg.hashsalt": "perhop",
    "savefig.transparent": False,
    "figure.facecolor": "white",
}


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawn figure.

    Attributes:
        name: For file names: letters, digits and dashes.
        alt: What it shows, for readers who do not see it.
    """

    name: str
    alt: str
    svg: str
    png: bytes


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
            f"Bands are {plot.interval} intervals."
            if plot.kind == "lines"
            else f"Bars at the marks are {plot.interval} intervals."
        )
    if any(row.published is not None for row in found):
        parts.append("Hollow: published.")
    if plot.limits:
        parts.append("Hollow: where the paper says the curve meets the profile.")
        places = {row.factors[plot.x.factor] for row in found}
        stated = [row.published for row in chosen(rows, plot.limits, plot.limits_where)]
        if any(value is not None and value not in places for value in stated):
            parts.append("One left of the curve: it says nowhere.")
    return " ".join(parts)


def pictures(plot: Plot, rows: Sequence[Row], study: str) -> Picture:
    """All panels of a plot in one figure, for a file."""
    panels = _panels(plot, rows)
    with mpl.rc_context({**STYLE, "svg.fonttype": "path"}):
        figure = _figure(plot, rows, panels, footed=True)
        title = f"{plot.title} ({study})"
        figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
        figure.text(0.01, 0.005, caption(plot, rows), fontsize=8, color=MUTED, va="bottom")
        if plot.kind == "bars":
            uncover(figure)  # not before the title has taken its room
        return Picture(f"{study}-{plot.id}", title, to_svg(figure), to_png(figure))


def inline_panels(plot: Plot, rows: Sequence[Row], study: str) -> list[str]:
    """Each panel as an SVG element for a page: text stays text, and ids are unique to the panel."""
    out = []
    with mpl.rc_context({**STYLE, "svg.fonttype": "none"}):
        for index, panel in enumerate(_panels(plot, rows)):
            figure = _figure(plot, rows, [panel], footed=False)
            if plot.kind == "bars":
                uncover(figure)
            name = f"{study}-{plot.id}-{index}"
            alt = (
                plot.title
                if panel is None or plot.facet is None
                else f"{plot.title}, {plot.facet.text(panel)}"
            )
            out.append(inline_svg(to_svg(figure), name, alt))
    return out


def _panels(plot: Plot, rows: Sequence[Row]) -> list[Factor | None]:
    if plot.facet is None:
        return [None]
    factor = plot.facet.factor
    return list(plot.facet.order(row.factors[factor] for row in chosen(rows, plot.metric, plot.where)))


def _figure(plot: Plot, rows: Sequence[Row], panels: Sequence[Factor | None], *, footed: bool) -> Figure:
    alone = len(panels) == 1
    lines = math.ceil(len(panels) / COLUMNS)
    columns = math.ceil(len(panels) / lines)  # four panels stand two by two
    width, height = PANEL_INCHES if alone else SMALL_PANEL_INCHES
    if plot.kind == "dots":
        categories = {row.factors[plot.x.factor] for row in chosen(rows, plot.metric, plot.where)}
        width, base, each = DOTS_INCHES
        height = base + each * len(categories)
    foot = 0.2 if footed else 0.0
    size = (width * columns, height * lines + 0.5 * footed)
    engine = ConstrainedLayoutEngine(rect=(0, foot / size[1], 1, 1 - foot / size[1]))
    figure = Figure(figsize=size, layout=engine)
    axes = figure.subplots(lines, columns, squeeze=False)
    for index, place in enumerate(axes.flat):
        if index >= len(panels):
            place.set_visible(False)
            continue
        _panel(place, plot, rows, panels[index])
        if plot.kind == "points":
            labels = [label.get_text() for label in place.get_xticklabels()]
            crowded = not alone or sum(map(len, labels)) > MOST_LABEL_SIGNS
            place.tick_params(axis="x", labelrotation=28 if crowded else 0, labelsize=8)
        if index % columns:
            place.set_ylabel("")
    return figure


def uncover(figure: Figure) -> None:
    """Raise the top of each panel until its legend covers no mark: what is published may stand anywhere."""
    for _ in range(HEADROOM_STEPS):
        figure.draw_without_rendering()
        covered = [axes for axes in figure.axes if _covers_a_mark(axes)]
        if not covered:
            return
        for axes in covered:
            axes.set_ylim(top=axes.get_ylim()[1] * 1.05)


def _covers_a_mark(axes: Axes) -> bool:
    legend = axes.get_legend()
    if legend is None:
        return False
    box = legend.get_window_extent()
    places = (line.get_transform().transform(line.get_xydata()) for line in axes.get_lines())
    return any(box.contains(float(x), float(y)) for points in places for x, y in points)


def _panel(axes: Axes, plot: Plot, rows: Sequence[Row], panel: Factor | None) -> None:
    found = chosen(rows, plot.metric, plot.where)
    if plot.facet is not None and panel is not None:
        factor = plot.facet.factor
        found = [row for row in found if row.factors[factor] == panel]
        axes.set_title(plot.facet.text(panel))
    categories = plot.x.order(row.factors[plot.x.factor] for row in found)
    spaced = plot.kind != "lines" or plot.ordinal
    place = {value: float(i) if spaced else float(value) for i, value in enumerate(categories)}
    if spaced and plot.kind != "dots":
        axes.set_xticks(list(place.values()), [plot.x.text(value) for value in categories])
    curves = {
        value: sorted(
            (row for row in found if row.factors[plot.series.factor] == value),
            key=lambda row: place[row.factors[plot.x.factor]],
        )
        for value in plot.series.order(row.factors[plot.series.factor] for row in found)
    }
    if plot.kind == "dots":
        _dots(axes, plot, curves, place)
        return
    draw = {"lines": _lines, "points": _points, "bars": _bars}[plot.kind]
    labels = draw(axes, plot, curves, place)
    labels += _references(axes, plot, panel, place)
    if plot.limits is not None:
        _limits(axes, plot, rows, panel, place)
    axes.set_xlabel(f"{plot.x.label} (not to scale)" if plot.ordinal else plot.x.label)
    axes.set_ylabel(plot.y_label)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]))
    if plot.from_zero:
        axes.set_ylim(bottom=0)
    _direct_labels(axes, labels)


def _color(value: Factor, index: int) -> str:
    """The colour of a series: its own where its first word is one, else the next of the palette."""
    return NAMED.get(str(value).partition(" ")[0], SERIES[index % len(SERIES)])


Curves = dict["Factor", list["Row"]]
Places = dict["Factor", float]


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
        color = _color(value, index)
        x, y = _xy(plot, rows, place)
        lows, highs = _ends(rows)
        axes.fill_between(x, lows, highs, color=color, alpha=0.22, linewidth=0)
        dense = len(x) > DENSE
        axes.plot(
            x, y, color=color, linewidth=1.2 if dense else 1.8, marker="" if dense else "o", markersize=3.5
        )
        _published(axes, [(place[r.factors[plot.x.factor]], r) for r in rows], color)
        if y:
            labels.append(Label(y[-1], plot.series.text(value), color))
    return labels


def _points(axes: Axes, plot: Plot, curves: Curves, place: Places) -> list[Label]:
    for index, (value, rows) in enumerate(curves.items()):
        color = _color(value, index)
        x, y = _xy(plot, rows, place)
        _error_bars(axes, x, y, rows, color)
        axes.plot(x, y, color=color, linestyle="none", marker="o", markersize=5)
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
    axes.set_yticks(list(place.values()), [plot.x.text(value) for value in place])
    axes.set_ylim(len(place) - 0.5, -0.5)
    if plot.from_zero:
        axes.set_xlim(left=0)
    if plot.band is not None:
        name, low, high = plot.band
        axes.axvspan(low, high, color=MUTED, alpha=0.15, linewidth=0, label=name)
    axes.set_xlabel(plot.y_label)
    axes.xaxis.grid(visible=True)
    axes.tick_params(axis="y", length=0)
    for index, reference in enumerate(plot.references):
        for value, height in reference.heights.items():
            if value in place:
                ends = [place[value] - 0.5, place[value] + 0.5]
                axes.plot(
                    [height, height], ends, color=MUTED, linewidth=1.1, linestyle=":" if index else "--"
                )
        axes.plot([], [], color=MUTED, linewidth=1.1, linestyle=":" if index else "--", label=reference.label)
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1.0),
        ncols=3,
        fontsize=8,
        handlelength=1.2,
        columnspacing=1.2,
        handletextpad=0.4,
        frameon=False,
    )


def _bars(axes: Axes, plot: Plot, curves: Curves, place: Places) -> list[Label]:
    width = 0.76 / max(len(curves), 1)
    for index, (value, rows) in enumerate(curves.items()):
        color = _color(value, index)
        shift = (index - (len(curves) - 1) / 2) * width
        x, y = _xy(plot, rows, place)
        x = [at + shift for at in x]
        axes.bar(x, y, width * 0.92, color=color, alpha=0.85, label=plot.series.text(value))
        _error_bars(axes, x, y, rows, INK)
        _published(axes, [(place[r.factors[plot.x.factor]] + shift, r) for r in rows], INK)
    if len(curves) > 1:
        axes.legend(loc="best", labelcolor="linecolor", handlelength=1, framealpha=0.85, edgecolor="none")
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
        style: dict[str, Any] = {"color": MUTED, "linewidth": 1.1, "linestyle": ":" if index else "--"}
        if plot.facet is not None and reference.by == plot.facet.factor:
            height = None if panel is None else reference.heights.get(panel)
            if height is not None:
                axes.axhline(height, **style)
                labels.append(Label(height, reference.label, MUTED))
        elif reference.by == plot.x.factor:
            _ticks(axes, reference, place, style)
    return labels


def _ticks(axes: Axes, reference: Reference, place: Places, style: Mapping[str, Any]) -> None:
    """A short line across each category, named at the first."""
    known = [(place[value], height) for value, height in reference.heights.items() if value in place]
    for x, height in known:
        axes.plot([x - 0.45, x + 0.45], [height, height], **style)
    if known:
        x, height = known[0]
        box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 0.8}
        axes.text(x + 0.49, height, reference.label, color=MUTED, va="center", fontsize=8, bbox=box)


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


def _numbers(place: Mapping[Factor, float]) -> list[float]:
    return [float(value) for value in place if not isinstance(value, str)] or [-math.inf]


def _direct_labels(axes: Axes, labels: Sequence[Label]) -> None:
    """Write labels beside the right edge, pushed apart where they would overlap."""
    low, high = axes.get_ylim()
    gap = 0.075 * (high - low)
    last = -math.inf
    for label in sorted(labels, key=lambda entry: entry.y):
        y = max(label.y, last + gap)
        last = y
        axes.annotate(
            label.text,
            (1.0, y),
            xycoords=axes.get_yaxis_transform(),
            xytext=(5, 0),
            textcoords="offset points",
            color=label.color,
            va="center",
            fontsize=9,
            annotation_clip=False,
        )


def to_svg(figure: Figure) -> str:
    """A figure as an SVG document, the same bytes each time."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


def to_png(figure: Figure) -> bytes:
    """A figure as a PNG file, the same bytes each time."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=160, metadata={"Software": None})
    return buffer.getvalue()


def inline_svg(svg: str, name: str, alt: str) -> str:
    """An SVG document as an element: no prolog, unique ids, colours that follow the page."""
    element = svg[svg.index("<svg") :]
    element = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", element)
    element = re.sub(r"<metadata>.*?</metadata>", "", element, flags=re.DOTALL)
    for variable, color in {"ink": INK, "muted": MUTED, "grid": GRID, "paper": "#ffffff"}.items():
        element = element.replace(color, f"var(--{variable})")
    for index, color in enumerate(SERIES):
        element = element.replace(color, f"var(--series-{index})")
    size = re.search(r'width="([\d.]+)pt" height="([\d.]+)pt"', element)
    if size is not None:
        element = element.replace(size.group(0), "", 1)
    return element.replace("<svg", f'<svg role="img" aria-label="{_escape(alt)}"', 1)


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
