"""Configurations of Junos as text: blocks, names, drop profiles, and the numbers that statements take.

The ranges are those of old releases and of M, MX and T Series, which later ones contain. Sources: (1)
Juniper, Junos OS 12.3 and 13.1 references of each statement; (2) Juniper, hierarchical policers, Junos 13.2;
(3) Juniper, vSRX and Junos 10.1 references of `buffer-size`.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perhop.routers import units
from perhop.routers.outgoing import Range, depth, thresholds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from perhop.routers.outgoing import Depth, Remarks

RANGES = {
    "transmit-rate": Range(3200, 160_000_000_000),  # (1)
    "shaping-rate": Range(3200, 160_000_000_000),  # (1)
    "burst-size": Range(0, 1_000_000_000),  # (1)
    "rate": Range(8000, 100_000_000_000),  # (2)
    "burst": Range(1500, 2_147_450_880),  # (2)
}
"""Ranges by statement."""
MOST_POINTS = 64


@dataclass(frozen=True, slots=True)
class Block:
    """Words with what is in braces behind them."""

    head: str
    held: list[Node]


Node = str | Block
"""A statement, or a block."""


def text_lines(nodes: Sequence[Node], indent: str = "") -> list[str]:
    """The lines of statements and blocks; a block without anything is none."""
    result = []
    for node in nodes:
        if isinstance(node, str):
            result.append(f"{indent}{node};")
        elif node.held:
            result += [f"{indent}{node.head} {{", *text_lines(node.held, f"{indent}    "), f"{indent}}}"]
    return result


def word(name: str) -> str:
    """A name as one word."""
    return re.sub(r"[^A-Za-z0-9_-]", "-", name).strip("-") or "unnamed"


def interface(name: str) -> tuple[str, str]:
    """The interface of a link, and its unit if the name has one.

    >>> interface("ge-0/0/1.7"), interface("to the core")
    (('ge-0/0/1', '7'), ('to-the-core', ''))
    """
    found = re.sub(r"[^A-Za-z0-9_./:-]", "-", name) or "unnamed"
    base, dot, unit = found.rpartition(".")
    return (base, unit) if dot and base and unit.isdecimal() else (found, "")


def short(number: int) -> str:
    """A number with `g`, `m` or `k` where nothing is lost.

    >>> short(2_000_000), short(64_000), short(15_140)
    ('2m', '64k', '15140')
    """
    for factor, unit in ((10**9, "g"), (10**6, "m"), (10**3, "k")):
        if number and number % factor == 0:
            return f"{number // factor}{unit}"
    return str(number)


def code_points(codes: Iterable[int]) -> str:
    """Codepoints as a list, by name where Junos has one."""
    listed = ["be" if code == 0 else units.SHOWN.get(code, f"{code:06b}").lower() for code in sorted(codes)]
    return listed[0] if len(listed) == 1 else f"[ {' '.join(listed)} ]"


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


def drop_profile(text: str, fill: Callable[[Depth], float], place: str, remarks: Remarks) -> Fills | None:
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
        pairs = [one.split("/") for one in rest.split(",")]
        points = [(fill(depth(at.strip())), float(p)) for at, p in pairs]
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
        remarks.differs(place, f"the jump at {first} % is a line from {first - 1} % there")
    last, p = points[-1]
    if p < 100 and last < 100:
        result.append((last + 1, 100))
    return result
