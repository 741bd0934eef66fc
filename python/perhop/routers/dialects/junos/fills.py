"""Drop curves as drop profiles of Junos: fill levels and probabilities in whole percents."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perhop.routers.outgoing import depth, thresholds

if TYPE_CHECKING:
    from collections.abc import Callable

    from perhop.routers.outgoing import Depth, Remarks

MOST_POINTS = 64


@dataclass(frozen=True, slots=True)
class Fills:
    """A drop profile: points in percent, joined by lines (`interpolate`) or constant up to the next."""

    interpolated: bool
    points: tuple[tuple[int, int], ...]

    def words(self) -> list[str]:
        """The statements of the profile, those of `interpolate` without the word."""
        if not self.interpolated:
            return [f"fill-level {fill} drop-probability {p}" for fill, p in self.points]
        fills = " ".join(str(fill) for fill, _ in self.points)
        return [f"fill-level [ {fills} ]", f"drop-probability [ {' '.join(str(p) for _, p in self.points)} ]"]


def fills(text: str, fill: Callable[[Depth], float], place: str, remarks: Remarks) -> Fills | None:
    """The drop profile of a curve of a checked scenario; None if nothing of it can be written.

    Args:
        text: `min/max/max_p`, `interpolate …` or `segmented …`.
        fill: The part of the queue's limit that a threshold is.
        place: The curve's place in the scenario.
        remarks: Gets what is rounded.
    """
    word, _, rest = text.partition(" ")
    step = word == "segmented"
    if rest:
        points = [
            (fill(depth(at.strip())), float(p)) for at, p in (one.split("/") for one in rest.split(","))
        ]
    else:
        curve = thresholds(text)
        points = [(fill(curve.low), 0.0), (fill(curve.high), curve.most)]
        if curve.low == curve.high:
            step, points = True, [(points[1][0], 1.0)]
    points = _up_to_the_limit(points, step, place, remarks)
    if not points:
        remarks.differs(place, "drops above the limit only: no drop profile is written")
        return None
    whole = _whole(points, place, remarks)
    if not step:
        whole = _with_jumps(whole, place, remarks)
    if len(whole) > MOST_POINTS:
        remarks.left_out(place, f"a drop profile has {MOST_POINTS} points, not {len(whole)}")
    return Fills(not step, tuple(whole[:MOST_POINTS]))


def _up_to_the_limit(
    points: list[tuple[float, float]], step: bool, place: str, remarks: Remarks
) -> list[tuple[float, float]]:
    """The curve without what lies beyond a full queue."""
    kept = [(at, p) for at, p in points if at <= 1.0 + 1e-12]
    if len(kept) == len(points):
        return kept
    remarks.differs(place, "what the curve says beyond the queue's limit has no words")
    if step or not kept:
        return kept
    (x0, p0), (x1, p1) = kept[-1], points[len(kept)]
    return kept if x0 >= 1.0 else [*kept, (1.0, p0 + (p1 - p0) * (1.0 - x0) / (x1 - x0))]


def _whole(points: list[tuple[float, float]], place: str, remarks: Remarks) -> list[tuple[int, int]]:
    """The points in whole percents, fills rising."""
    result: list[tuple[int, int]] = []
    for at, p in points:
        level = math.floor(100 * at + 0.5)
        if result and level <= result[-1][0]:
            level = result[-1][0] + 1
        if level > 100:
            remarks.left_out(place, f"points closer to each other than 1 % of the limit, at {100 * at:.4g} %")
            break
        chance = math.floor(100 * p + 0.5)
        if level == 0 and at > 0:
            remarks.differs(place, f"fill {100 * at:.3g} % of the limit becomes 0 %")
        else:
            remarks.rounded(place, f"fill {100 * at:.4g} % of the limit", at, level / 100, f"{level} %")
        if p > 0 and chance == 0:
            remarks.left_out(place, f"Junos has probabilities in whole percents, and {p:g} becomes 0")
        else:
            remarks.rounded(place, f"p {p:g}", p, chance / 100, f"{chance} %")
        result.append((level, chance))
    return result


def _with_jumps(points: list[tuple[int, int]], place: str, remarks: Remarks) -> list[tuple[int, int]]:
    """Junos draws a line from (0, 0) and to (100, 100); a jump takes a percent of the limit."""
    result = list(points)
    first, p = points[0]
    if p > 0 and first > 0:
        result.insert(0, (first - 1, 0))
        text = f"the jump at {first} % is a line from {first - 1} % there"
        remarks.differs(place, text)
    last, p = points[-1]
    if p < 100 and last < 100:
        result.append((last + 1, 100))
    return result
