"""Drop curves as perhop has them, and the packets of a queue as its three colors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perhop.routers.model import How, Selector

ROUNDING = 0.005
"""A ramp that is off by less, in probability, replaces a curve."""
Color = Literal["green", "yellow", "red"]
COLORS: tuple[Color, Color, Color] = ("green", "yellow", "red")

SLIVER = 0.0101
"""A jump to 1 within this part of the limit counts as a step: tables of fill levels have whole percents."""


def drop_precedence(codepoint: int) -> Color | None:
    """The color of a codepoint of Assured Forwarding (RFC 2597, section 6); None: it has none."""
    group, rest = divmod(codepoint, 8)
    return COLORS[rest // 2 - 1] if 1 <= group <= 4 and rest in {2, 4, 6} else None


@dataclass(frozen=True, slots=True)
class Ramp:
    """min/max/max_p in bytes or packets, and the selectors that it is for."""

    low: float
    high: float
    most: float
    line: int
    how: How
    selectors: tuple[Selector, ...] = ()

    def probability(self, fill: float) -> float:
        """The drop probability at an average fill; from `high` on all is dropped."""
        if fill >= self.high:
            return 1.0
        if fill <= self.low:
            return 0.0
        return self.most * (fill - self.low) / (self.high - self.low)

    @property
    def numbers(self) -> tuple[float, float, float]:
        """min, max, max_p."""
        return self.low, self.high, self.most


@dataclass(frozen=True, slots=True)
class Fit:
    """A ramp in place of a curve, and how far it is off at most, in probability and at which fill."""

    ramp: tuple[float, float, float] | None
    """The ramp; None: the curve never drops before the queue is full."""
    deviation: float = 0.0
    at: float = 0.0


def probability(points: Sequence[tuple[float, float]], interpolation: str, fill: float) -> float:
    """The drop probability of a curve at a fill; see `model.Curve`."""
    before = [point for point in points if point[0] <= fill]
    if not before:
        return 0.0
    if interpolation == "step":
        return before[-1][1]
    if len(before) == len(points):
        last, p = points[-1]
        return p if fill == last else 1.0
    (x0, p0), (x1, p1) = before[-1], points[len(before)]
    return p0 + (p1 - p0) * (fill - x0) / (x1 - x0)


def fit(points: Sequence[tuple[float, float]], interpolation: str, total: float | None) -> Fit:
    """A ramp for a curve: min is the largest fill with p = 0, max the last one before p = 1.

    A step curve that never reaches 1 gets its max at the limit. Points are in the order of fill, in the unit
    of `total`, the queue's limit (None: unknown).
    """
    end = points[-1][0] if total is None else max(total, points[-1][0])
    if all(p == 0.0 for _, p in points):
        last = points[-1][0]
        if interpolation == "step" or (total is not None and last >= total):
            return Fit(None)
        return Fit((last, last, 1.0))
    low = 0.0
    for fill, p in points:
        if p > 0.0:
            if interpolation == "step":
                low = fill
            break
        low = fill
    partial = [(fill, p) for fill, p in points if 0.0 < p < 1.0]
    if not partial:
        high, most = next((fill, p) for fill, p in points if p >= 1.0)
        if total is not None and interpolation == "step" and high >= total:
            return Fit(None)
        if total is not None and low >= total * (1 - SLIVER / 100) and high >= total:
            return Fit(None)
    else:
        high, most = partial[-1]
        if interpolation == "step":
            high = next((fill for fill, p in points if p >= 1.0), end)
    ramp = (low, max(high, low), most)
    deviation, at = _deviation(points, interpolation, ramp, end)
    return Fit(ramp, deviation, at)


def _deviation(
    points: Sequence[tuple[float, float]], interpolation: str, ramp: tuple[float, float, float], end: float
) -> tuple[float, float]:
    """The largest difference in probability below the limit, and where; slivers behind max do not count."""
    model = Ramp(*ramp, 0, None)  # type: ignore[arg-type] # only its probability is asked for
    step = end * 1e-9
    worst, where = 0.0, 0.0
    for place in sorted({fill for fill, _ in points} | {ramp[0], ramp[1]}):
        for fill in (place - step, place + step):
            if not 0.0 <= fill < end:
                continue
            off = abs(probability(points, interpolation, fill) - model.probability(fill))
            steep = probability(points, interpolation, min(fill + SLIVER * end, end)) >= 1.0
            if fill >= ramp[1] and steep:
                continue
            if off > worst + 1e-9:
                worst, where = off, fill
    return worst, where


@dataclass(frozen=True, slots=True)
class Points:
    """A curve of several segments or steps, and the selectors that it is for."""

    points: tuple[tuple[float, float], ...]
    """Fill and probability; fills rise."""
    interpolation: Literal["linear", "step"]
    line: int
    how: How
    selectors: tuple[Selector, ...] = ()

    @property
    def numbers(self) -> tuple[object, ...]:
        """The numbers by which two curves are equal."""
        return self.interpolation, *self.points

    @property
    def low(self) -> float:
        """The fill from which on the curve drops."""
        return self.points[0][0]

    @property
    def high(self) -> float:
        """The last point."""
        return self.points[-1][0]

    @property
    def most(self) -> float:
        """The probability there."""
        return self.points[-1][1]


Shape = Ramp | Points


def shaped(
    points: Sequence[tuple[float, float]],
    interpolation: Literal["linear", "step"],
    total: float | None,
    line: int,
    how: How,
) -> tuple[Shape | None, bool]:
    """A curve as perhop has it, and whether a probability that falls had to be left out.

    None drops on overflow only. A curve that is a ramp but for `ROUNDING` is one.
    """
    rising: list[tuple[float, float]] = []
    most = 0.0
    for fill, p in points:
        most = max(most, p)
        rising.append((fill, most))
        if most >= 1.0:  # what is behind it says no more
            break
    fell = any(p < q for (_, p), (_, q) in zip(points, rising, strict=False))
    found = fit(rising, interpolation, total)
    if found.ramp is None:
        return None, fell
    if found.deviation <= ROUNDING:
        return Ramp(*found.ramp, line, how), fell
    zeros = sum(p == 0.0 for _, p in rising)
    first = max(0, zeros - 1) if interpolation == "linear" else zeros
    return Points(tuple(rising[first:]), interpolation, line, how), fell


def with_selectors(shape: Shape, selectors: tuple[Selector, ...]) -> Shape:
    """The curve, for other packets."""
    return replace(shape, selectors=selectors)


def joined(shapes: Sequence[Shape]) -> list[Shape]:
    """Equal curves as one, for the packets of all."""
    distinct: list[Shape] = []
    for shape in shapes:
        same = next((i for i, other in enumerate(distinct) if other.numbers == shape.numbers), None)
        if same is None:
            distinct.append(shape)
        else:
            distinct[same] = with_selectors(distinct[same], distinct[same].selectors + shape.selectors)
    return distinct


def lenience(shape: Shape) -> tuple[float, float, float]:
    """The most lenient curve has the least: drops late, and with a small probability."""
    return -shape.high, -shape.low, shape.most


def colored(shapes: Sequence[Shape]) -> dict[Color, Shape] | None:
    """Curves by color: that of selectors, or drop precedences of one AF class; None if they are of others."""
    selectors = [selector for shape in shapes for selector in shape.selectors]
    found: dict[Color, Shape] = {}
    if all(selector.color is not None for selector in selectors):
        found = {s.color: shape for shape in shapes for s in shape.selectors if s.color is not None}
    else:
        codes = [s.codepoints if len(s.codepoints or ()) == 1 else None for s in selectors]
        values = [value for one in codes for value in one or ()]
        known = [color for value in values if (color := drop_precedence(value)) is not None]
        if len(known) < len(selectors) or len({value // 8 for value in values}) != 1:
            return None
        found = dict(zip(known, (shape for shape in shapes for _ in shape.selectors), strict=True))
    return {color: found[color] for color in COLORS if color in found}
