"""A figure of panels side by side, laid out once and drawn once: as a file, and panel by panel for a page.

Everything is measured in points. A sheet is as wide as a page's column, so that on a desk its text has the
page's size; on a phone panels stand below each other. No layout engine draws the figure to measure it.
"""

from __future__ import annotations

import functools
import io
import re
import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path
from matplotlib.ticker import Formatter

from perhop.show.numbers import tick_labels
from perhop.show.text import label, printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK = "#1c1d1f"
MUTED = "#66696e"
GRID = "#dcdee0"
SERIES = ("#c2500a", "#0a6eb0", "#00805e", "#a34f86", "#8a6d00", "#3b8fb5", "#55585e")
"""Distinct to readers with any of the common color deficiencies, in light and in print."""
MARKS = "osD^vPX"
"""Markers of points, distinct without color."""

WIDTH = 720.0
NARROW_WIDTH = 276.0
"""The widths of a page's column on a desk and on a phone."""
COLUMNS = 3
HEIGHTS = {1: 250.0, 2: 215.0, 3: 195.0}
"""The height of a panel, by the number of columns."""
TEXT, SMALL, TITLE = 9.0, 8.0, 11.0
"""Sizes of all text: labels and names, remarks, the title of a file."""
LINE = 13.0
"""Height of a line of text."""
TITLE_CHARACTERS = 110
REMARK_CHARACTERS = 150
FONTS = "'DejaVu Sans', Verdana, Arial, sans-serif"
DPI = 160

STYLE: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": TEXT,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.labelpad": 3.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": TEXT,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlecolor": INK,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "legend.fontsize": TEXT,
    "text.color": INK,
    "text.parse_math": False,  # names are the user's: a `$` in one is a `$`
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": TEXT,
    "ytick.labelsize": TEXT,
    "svg.fonttype": "none",
    "svg.hashsalt": "perhop",
    "savefig.transparent": False,
    "figure.facecolor": "white",
}

_METADATA = re.compile(r"<metadata>.*?</metadata>\s*", re.DOTALL)
_TAG = re.compile(r"<[^>]+>")
_AXES = re.compile(r'^  <g id="axes_(\d+)">.*?^  </g>$', re.DOTALL | re.MULTILINE)
_REFERENCE = re.compile(r'(?:url\(|xlink:href=")#([\w.-]+)')
_DEFINITION = re.compile(r'<(clipPath|path) id="([^"]+)"[^>]*?(?:/>|>.*?</\1>)', re.DOTALL)
_COLORS = {
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    GRID: "var(--grid)",
    "#ffffff": "var(--paper)",
    **{color: f"var(--series-{index})" for index, color in enumerate(SERIES)},
}
_COLOR = re.compile("|".join(_COLORS))


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
class Margins:
    """Room about the axes of a panel."""

    left: float = 40.0
    right: float = 12.0
    top: float = 8.0
    bottom: float = 34.0


class Numbers(Formatter):
    """Ticks as the numbers on pages read."""

    def __call__(self, x: float, pos: int | None = None) -> str:  # noqa: ARG002 - the library's signature
        """Return the label of one number."""
        return tick_labels([x])[0]

    def format_ticks(self, values: Any) -> list[str]:  # noqa: ANN401 - the library's signature
        """All numbers of an axis, with the same decimals."""
        return tick_labels([float(value) for value in values])


class Shown(Figure):
    """A figure that notebooks show, pyplot or not."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """The picture and the size at which it is shown."""
        with styled():
            return to_png(self), {"width": round(self.get_figwidth() * 72)}


class Sheet:
    """A figure with places for panels, filled row by row.

    Args:
        panels: How many.
        height: Of a panel; by the number of columns if not given.
        title: Above all panels.
        remark: Below them, how to read the picture.
        narrow: For a phone: one column.
    """

    def __init__(
        self,
        panels: int,
        *,
        height: float | None = None,
        width: float | None = None,
        title: str = "",
        remark: str = "",
        narrow: bool = False,
    ) -> None:
        lines = -(-panels // COLUMNS)
        self.columns = 1 if narrow else max(1, -(-panels // lines))  # four panels stand two by two
        rows = -(-panels // self.columns)
        self.cell_width = (NARROW_WIDTH if narrow else width or WIDTH) / self.columns
        self.cell_height = height or HEIGHTS[self.columns]
        remarks = textwrap.wrap(
            printable(remark), int(REMARK_CHARACTERS * self.cell_width * self.columns / WIDTH)
        )
        self._head = 28.0 if title else 0.0
        foot = 6.0 + 11.0 * len(remarks) if remarks else 0.0
        self.width = self.cell_width * self.columns
        self.height = self._head + self.cell_height * rows + foot
        self.panels = panels
        self.figure = Shown(figsize=(self.width / 72, self.height / 72))
        if title:
            text = label(title, TITLE_CHARACTERS)
            size = min(TITLE, TITLE * (self.width - 12) / text_width(text, TITLE, bold=True))
            self.figure.text(
                6 / self.width, 1 - 8 / self.height, text, va="top", fontsize=size, fontweight="bold"
            )
        if remarks:
            self.figure.text(
                6 / self.width, 4 / self.height, "\n".join(remarks), fontsize=SMALL, color=MUTED, va="bottom"
            )

    def axes(self, index: int, margins: Margins) -> Axes:
        """The axes of a panel."""
        axes = self.figure.add_axes(self._rectangle(index, margins))
        axes.xaxis.set_major_formatter(Numbers())
        axes.yaxis.set_major_formatter(Numbers())
        return axes

    def place(self, axes: Axes, index: int, margins: Margins) -> None:
        """Give the axes of a panel the room that its texts leave."""
        axes.set_position(self._rectangle(index, margins))

    def _rectangle(self, index: int, margins: Margins) -> tuple[float, float, float, float]:
        """Left, bottom, width and height of a panel's axes, as fractions of the sheet."""
        x, y = self._corner(index)
        left, bottom = x + margins.left, self.height - y - self.cell_height + margins.bottom
        width = max(self.cell_width - margins.left - margins.right, 20.0)
        height = max(self.cell_height - margins.top - margins.bottom, 20.0)
        return left / self.width, bottom / self.height, width / self.width, height / self.height

    def _corner(self, index: int) -> tuple[float, float]:
        """The upper left corner of a panel, from that of the sheet."""
        row, column = divmod(index, self.columns)
        return column * self.cell_width, self._head + row * self.cell_height

    def picture(self, name: str, alt: str) -> Picture:
        """The whole sheet, for a file."""
        return Picture(name, printable(alt), to_svg(self.figure), to_png(self.figure))

    def inline(self, svg: str, name: str, alts: Sequence[str]) -> list[str]:
        """Each panel of the drawn sheet as an SVG element for a page; ids are unique to `name`."""
        groups = {int(found[1]) - 1: found[0] for found in _AXES.finditer(svg)}
        definitions = {found[2]: found[0] for found in _DEFINITION.finditer(svg)}
        out = []
        for index, alt in enumerate(alts):
            group = groups[index]
            missing = sorted(set(_REFERENCE.findall(group)) - {one[2] for one in _DEFINITION.finditer(group)})
            defs = "".join(definitions[one] for one in missing)
            x, y = self._corner(index)
            box = f"{x:g} {y:g} {self.cell_width:g} {self.cell_height:g}"
            out.append(_element(f"<defs>{defs}</defs>\n{group}", box, f"{name}-{index}", alt))
        return out


@dataclass(frozen=True, slots=True)
class Drawing:
    """A picture, drawn for a page and for files.

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


def draw(lay_out: Callable[..., Sheet], name: str, texts: tuple[str, str], alts: Sequence[str]) -> Drawing:
    """Draw a picture once for its file and the page, and once more for a phone if it is one wide column.

    Args:
        lay_out: Gives a new sheet, with the keywords `title` and `remark` for the file, `narrow` for a phone.
        name: Of the file.
        texts: The title of the picture, and how to read it.
        alts: What each panel shows, for readers who do not see it.
    """
    title, remark = texts
    with styled():
        sheet = lay_out(title=title, remark=remark)
        picture = sheet.picture(name, title)
        inline = sheet.inline(picture.svg, name, alts)
        narrow: list[str] = []
        if sheet.columns == 1:
            slim = lay_out(narrow=True)
            narrow = slim.inline(to_svg(slim.figure), f"{name}-narrow", alts)
    return Drawing(picture, inline, narrow, sheet.columns)


def _element(content: str, box: str, name: str, alt: str) -> str:
    """An SVG element with unique ids and colors that follow the page."""

    def adapted(tag: re.Match[str]) -> str:
        text = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", tag[0])
        text = re.sub(r"font-family: [^;\"]*;? ?", "", text)
        return _COLOR.sub(lambda color: _COLORS[color[0]], text)

    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" role="img" '
        f'aria-label="{escape(printable(alt))}" viewBox="{box}" stroke-linejoin="round">'
        f"\n{_TAG.sub(adapted, content)}\n</svg>"
    )


def whole(svg: str, name: str, alt: str) -> str:
    """A whole SVG document as an element for a page."""
    box = re.search(r'viewBox="([^"]*)"', svg)
    assert box is not None
    inner = svg[svg.index(">", svg.index("<svg")) + 1 : svg.rindex("</svg>")]
    return _element(re.sub(r"<style.*?</style>", "", inner, flags=re.DOTALL), box[1], name, alt)


def to_svg(figure: Figure) -> str:
    """A figure as an SVG document, the same bytes each time; its text stays text."""
    buffer = io.StringIO()
    with _no_complaints():
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    svg = _METADATA.sub("", printable(buffer.getvalue()))
    return svg.replace("'DejaVu Sans', sans-serif", FONTS)


def to_png(figure: Figure) -> bytes:
    """A figure as a PNG file, the same bytes each time."""
    buffer = io.BytesIO()
    with _no_complaints():
        figure.savefig(buffer, format="png", dpi=DPI, metadata={"Software": None})
    return buffer.getvalue()


def _no_complaints() -> warnings.catch_warnings[None]:
    """Letters that our font lacks are drawn as boxes in PNG files; SVG has them as text."""
    return warnings.catch_warnings(action="ignore", category=UserWarning)


@functools.lru_cache(maxsize=4096)
def text_width(text: str, size: float = TEXT, *, bold: bool = False) -> float:
    """Return how wide a line is."""
    return _extent(text, bold) * size / 100.0


@functools.lru_cache(maxsize=4096)
def _extent(text: str, bold: bool) -> float:
    font = FontProperties(family="DejaVu Sans", size=100.0, weight="bold" if bold else "normal")
    with _no_complaints():
        return float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0])


def styled() -> Any:  # noqa: ANN401 - the library's context manager
    """The one style of all pictures."""
    return mpl.rc_context(STYLE)


def tick_texts(axes: Axes, axis: str) -> Iterator[str]:
    """Yield the texts of an axis's ticks within its limits."""
    one = axes.xaxis if axis == "x" else axes.yaxis
    low, high = sorted(one.get_view_interval())
    slack = 1e-9 * (high - low)
    places = [at for at in one.get_majorticklocs() if low - slack <= at <= high + slack]
    yield from one.get_major_formatter().format_ticks(places)
