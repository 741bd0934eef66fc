"""What metrics do not exceed in any run, by their names in sweeps and plans.

A bound of a delay is above its mean, its percentiles and its maximum; where loss is excluded, it is 0.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perhop.bounds.deriving import Bounds

_DELAY = re.compile(r"(?:one_way_)?delay(?:_p\d+|_max|_variation)?_s")
"""Statistics of a delay that its bound is above."""
_LOSSES = frozenset({"loss", "policing_ratio", "link_loss"})
"""Shares of lost packets, which are 0 where loss is excluded."""


def is_delay(metric: str) -> bool:
    """Whether a metric is a statistic of a delay."""
    return _DELAY.fullmatch(metric.rpartition(".")[2]) is not None


def at_most(metric: str, bounds: Bounds) -> float | None:
    """What a metric does not exceed in any run; None without a bound. That of a bound is its own value."""
    kind, _, rest = metric.partition(".")
    place, _, last = rest.rpartition(".")
    if kind == "flows":
        found, delay = bounds.of_class(place), "one_way_delay_at_most_s"
    elif kind == "links":
        link, _, name = place.partition(".classes.")
        found, delay = bounds.of_queue(link, name or None), "delay_at_most_s"
    else:
        return None
    if last in _LOSSES:
        return 0.0 if found["loss_excluded"] else None
    value = found.get(delay if _DELAY.fullmatch(last) else last)
    return None if value is None else float(value)  # type: ignore[arg-type] # a number, or whether
