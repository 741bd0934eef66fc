"""Names of metrics: units, bounds, percentiles, and the names that earlier versions gave."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

from perhop.measures import emodel
from perhop.measures.catalog import APPLICATION, CLASS, LINK, QUEUE, RUN, Unit

OF_FLOWS = frozenset({"profile_success", "reservation_success"})
"""Shares of flows. The flows of a run share its random numbers, so that a run is one trial."""


OF_COMPLETED = frozenset({"completion_s", "slowdown"})
"""Measures of flows that have a `volume` and completed."""


RATINGS = frozenset({"r", "mos"})
"""Ratings of calls by the E-model, which fall with the share of lost packets."""


def per_loss(metric: str, codec: emodel.CodecName) -> float:
    """The steepest fall of a rating of calls with the share of lost packets."""
    scale = 1.0 if metric == "r" else emodel.SCORE_PER_RATING
    return scale * emodel.rating_per_loss(codec)


def bounds(metric: str) -> tuple[float, float]:
    """Return the bounds of a measure's values by the last part of its name: for shares, 0 and 1."""
    last = metric.rpartition(".")[2]
    if last in _BOUNDS:
        return _BOUNDS[last]
    is_share = unit_of_metric(metric) == "fraction" or last == "jain_index"
    return 0.0, 1.0 if is_share else math.inf


_BOUNDS: Mapping[str, tuple[float, float]] = {
    "qoe": (-math.inf, math.inf),
    "stall_seconds_per_hour": (0.0, 3600.0),
    "r": (0.0, emodel.BASE_RATING),
    "mos": (1.0, emodel.opinion_score(emodel.BASE_RATING)),
}
"""The bounds of measures that are neither fractions nor merely non-negative."""


def is_of_events(metric: str) -> bool:
    """Whether a mean is of what may happen to flows or users, and in many runs does not: stalls, say."""
    last = metric.rpartition(".")[2]
    return last in _OF_EVENTS or last.startswith("unfinished")


_OF_EVENTS = frozenset(
    {
        *("receiver_limited", "sender_limited", "buffer_limited", "congestion_limited", "recovering", "idle"),
        *("stalls", "stall_seconds_per_hour", "not_started", "down_late", "up_late"),
        "burst_ratio",
    }
)
_PERCENTILE = re.compile(r"(?:_p|^p)([0-9]+)(?=_|$)")


def percentile(metric: str) -> tuple[str, float] | None:
    """Split a percentile into its quantity and level: `links.a.delay_p99_s` is (`links.a.delay_s`, 0.99)."""
    place, dot, last = metric.rpartition(".")
    if last == "delay_variation_s":
        return f"{place}{dot}delay_s", 0.99
    found = _PERCENTILE.search(last)
    if found is None:
        return None
    base = f"{last[: found.start()]}{last[found.end() :]}".lstrip("_")
    return f"{place}{dot}{base}", float(f"0.{found[1]}")


def level_below(metric: str) -> float | None:
    """The lower level of a difference of two percentiles, of which `percentile` says the upper one."""
    return 0.5 if metric.rpartition(".")[2] == "delay_variation_s" else None


def times_of(measure: str) -> str | None:
    """The samples of which a measure of users is the mean or a percentile, if they are times.

    Args:
        measure: Its name, such as `page_p95_s` or `page_mean_s`.

    Returns:
        Their name, such as `page_s`.
    """
    found = percentile(measure)
    if found is not None:
        return found[0]
    if measure.endswith("_mean_s"):
        return f"{measure.removesuffix('_mean_s')}_s"
    return measure if measure == "startup_s" else None


_FORMER = {
    "mean_transit": "one_way_delay",
    "transit": "one_way_delay",
    "p99_transit": "one_way_delay_p99",
    "transit_p99": "one_way_delay_p99",
}
"""Former names of measures, without their unit, and what they are called."""
_FORMER_NAME = re.compile(rf"^(|.*\.)({'|'.join(_FORMER)})((?:_low|_high)?_s)$")


def current(name: str) -> str:
    """The name today of a measure, a column or a metric that files of earlier versions may hold."""
    found = _FORMER_NAME.match(name)
    return name if found is None else f"{found[1]}{_FORMER[found[2]]}{found[3]}"


def unit_of_metric(metric: str) -> Unit:
    """The unit of a metric of sweeps, by the last part of its name; none where no measure has that."""
    return _UNITS.get(metric.rpartition(".")[2], "")


def _units() -> Iterator[tuple[str, Unit]]:
    yield from ((entry.name, entry.unit) for entry in RUN)
    yield from ((entry.summary.metric, entry.unit) for entry in CLASS)
    # Those of finite flows that have a unit: perhop.measures.finite_flows needs numpy, which takes its time.
    yield from ((f"completion_{statistic}_s", "s") for statistic in ("p50", "p99", "mean"))
    yield from ((one.summary.metric, one.unit) for one in (*LINK, *QUEUE) if one.summary is not None)
    yield from ((one.name, one.unit) for entries in APPLICATION.values() for one in entries)


_UNITS: Mapping[str, Unit] = dict(_units())
