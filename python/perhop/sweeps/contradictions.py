"""Bounds that nothing can keep at once, such as a loss of at least 50 % and of at most 1 %."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass

from perhop.errors import PerhopError

_STATISTIC = re.compile(r"_(min|mean|p[0-9]+|max)(?=_|$)")
_RANKS = {"min": 0.0, "max": 100.0}


@dataclass(frozen=True, slots=True)
class Sides:
    """Between what a measure must lie.

    Attributes:
        text: As the file has it.
        subject: What is bounded, but for the statistic.
        rank: Of the statistic: 0 of the minimum, 99 of P99, 100 of the maximum; None of a mean or of what has
            no statistic. Of two with a rank the lower one is never larger.
        least: The lower bound, or minus infinity.
        most: The upper bound, or infinity.
        strict: The bound itself is not kept.
        share: In which share of the runs it must be kept; 1 of a bound for all of them together.
    """

    text: str
    subject: object
    rank: float | None
    least: float
    most: float
    strict: bool = False
    share: float = 1.0


def ranked(metric: str) -> tuple[str, float | None]:
    """A metric's name without its statistic, and the statistic's rank."""
    head, _, last = metric.rpartition(".")
    found = _STATISTIC.search(last)
    if found is None:
        return metric, None
    return f"{head}.{last[: found.start()]}{last[found.end() :]}", rank_of(found[1])


def rank_of(statistic: str) -> float | None:
    """The rank of a statistic such as `P99` or `max`; None of a mean."""
    word = statistic.lower()
    if word.startswith("p") and word[1:].isdigit():
        return float(word[1:])
    return _RANKS.get(word[:3])


def refuse(bounds: Iterable[Sides], where: str) -> None:
    """Refuse bounds that contradict each other.

    Raises:
        PerhopError: Two of them do; the message names both.
    """
    for one, other in itertools.permutations(bounds, 2):
        if _contradict(one, other):
            raise PerhopError(
                f"{where}: {one.text!r} and {other.text!r} contradict each other: nothing keeps both"
            )


def _contradict(low: Sides, high: Sides) -> bool:
    """Whether the lower bound of one lies above the upper bound of the other."""
    if low.subject != high.subject or not _ordered(low.rank, high.rank):
        return False
    if min(low.share, high.share) < 1 and low.share + high.share <= 1:
        return False
    # What all runs give together, such as their mean, says little of a share of the runs, and vice versa.
    if (low.share < 1) != (high.share < 1):
        return False
    return low.least > high.most or (low.least == high.most and (low.strict or high.strict))


def _ordered(low: float | None, high: float | None) -> bool:
    """Whether a statistic of the first rank is never larger than one of the second."""
    if low is None or high is None:
        return low is high or low == _RANKS["min"] or high == _RANKS["max"]
    return low <= high
