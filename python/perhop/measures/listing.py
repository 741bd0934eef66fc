"""Every measure in a listing, as `perhop list measures` and docs/measures.md show it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from perhop.measures import catalog, finite_flows


@dataclass(frozen=True, slots=True)
class Line:
    """A measure in a listing.

    Attributes:
        name: Its key or column.
        metric: Its name in sweeps, with `NAME` and `CLASS` for what the scenario names; empty without one.
    """

    name: str
    unit: catalog.Unit
    metric: str
    description: str


BOUNDS_OF_FLOWS = "flow and of a class of flows: bounds"
BOUNDS_OF_QUEUES = "queue of a link and of each class that it distinguishes: bounds"
_OVER_FLOWS = {
    "mean": "mean over the class's flows that have a value",
    "sum": "sum over the class's flows",
    "share": "of all packets of the class",
}


def _of_class(entry: catalog.ClassMeasure) -> Line:
    metric = f"flows.NAME.{entry.summary.metric}" if entry.summary.metric else ""
    text = entry.description.removesuffix(".")
    if any(one.name == entry.name for one in catalog.FLOW):
        text += f" ({_OVER_FLOWS['share' if entry.name in catalog.OF_CLASS else entry.summary.statistic]})"
    return Line(entry.name, entry.unit, metric, f"{text}.")


def _of_links(entries: Iterable[catalog.Measure], place: str) -> list[Line]:
    return [
        Line(one.name, one.unit, f"{place}.{one.summary.metric}" if one.summary else "", one.description)
        for one in entries
    ]


def _of_bounds(bounds: Iterable[catalog.Bound]) -> list[Line]:
    return [Line(one.name, one.unit, "", one.description) for one in bounds]


def lines() -> dict[str, list[Line]]:
    """Every measure, by what it is measured of."""
    return {
        "run": [Line("", entry.unit, entry.name, entry.description) for entry in catalog.RUN],
        "class of flows": [_of_class(entry) for entry in catalog.CLASS],
        "flow": [Line(entry.name, entry.unit, "", entry.description) for entry in catalog.FLOW],
        "population, and a range of sizes of its flows": [
            Line(entry.name, entry.unit, f"populations.NAME{of_size}.{entry.name}", entry.description)
            for entries, of_size in ((finite_flows.MEASURES, "[.SIZE]"), ((finite_flows.OPEN,), ""))
            for entry in entries
        ],
        "link": _of_links(catalog.LINK, "links.NAME"),
        "queue of a link, and each class that it distinguishes": _of_links(
            catalog.QUEUE, "links.NAME[.classes.CLASS]"
        ),
        **{
            f"group of users: {model}": [
                Line(entry.name, entry.unit, f"applications.NAME.{entry.name}", entry.description)
                for entry in entries
            ]
            for model, entries in catalog.APPLICATION.items()
            if entries
        },
        BOUNDS_OF_FLOWS: _of_bounds(catalog.FLOW_BOUNDS),
        BOUNDS_OF_QUEUES: _of_bounds(catalog.QUEUE_BOUNDS),
    }
