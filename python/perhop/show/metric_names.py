"""Metrics as readers see them: their names, their units and their estimates."""

from __future__ import annotations

import re
from dataclasses import dataclass

from perhop.measures import catalog, finite_flows, naming
from perhop.show.numbers import MISSING, TERMINAL, Style, exact, short
from perhop.statistics.intervals import Estimate
from perhop.statistics.stopping import SPARE

ENDINGS = ("_bps", "_s", "_packets")
"""Units at the end of a name, which readers see behind a comma."""
WIDENED = (
    f"All intervals are as wide as those of {SPARE} fewer runs: so they contain the true value in 95 % of "
    "cases, of very skewed values in fewer, though they decide how many runs there are."
)
"""A sentence about intervals until which runs were added."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit in which readers see a metric."""

    text: str
    factor: float
    digits: int


def unit_of(metric: str) -> Unit:
    """The unit in which readers see a metric."""
    shown = catalog.SHOWN[naming.unit_of_metric(metric)]
    return Unit(shown.symbol, shown.factor, shown.digits)


_LABELS = {
    re.sub("[ -]", "_", entry.summary.label): entry.summary.label
    for entry in catalog.SUMMARIZED
    if entry.summary is not None
}
"""Labels of measures in tables, by the names of metrics that spell them: `one-way delay p99`."""


_PLACES = frozenset({"flows", "links", "populations", "applications"})
"""The first parts of metrics that name a place behind it."""
_WORDS = {"rmse": "RMSE", "rtt": "RTT", "completion": "FCT", "r": "R", "mos": "MOS"}
"""Words of metrics as readers see them in all tables."""
_USERS = {
    one.name: one.label
    for entries in catalog.APPLICATION.values()
    for one in entries
    if naming.times_of(one.name) is None or one.name == "startup_s"
}
"""Labels of measures of users; tables have those of times beside each other, where `p50` says enough."""


def shown_name(metric: str) -> str:
    """A metric's name for readers: `gold throughput, Mbit/s`."""
    kind, _, rest = metric.partition(".")
    place, _, last = rest.rpartition(".") if kind in _PLACES else ("", "", metric)
    if kind == "populations":
        name, _, size = place.rpartition(".")
        place = f"{name} {size}" if size in finite_flows.SIZES else place
    unit, users = unit_of(metric), _USERS.get(last) if kind == "applications" else None
    for ending in ENDINGS:
        last = last.removesuffix(ending)
    words = [_WORDS.get(word, word) for word in last.split("_")]
    what = users or _LABELS.get(last, " ".join(words))
    text = " ".join(filter(None, (place.replace(".classes.", " "), what)))
    return f"{text}, {unit.text}" if unit.text else text


def shown_text(found: Estimate | None, metric: str, style: Style = TERMINAL) -> str:
    """An estimate in the unit in which readers see it, which the metric's shown name has."""
    return MISSING if found is None else style.shown(found, unit_of(metric).factor)


def within(width: float, digits: int | None = None) -> str:
    """A part of a value as `±2 %`."""
    return f"±{exact(width * 100) if digits is None else short(width * 100, digits)} %"
