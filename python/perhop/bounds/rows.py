"""The rows of bounds: of classes of flows, flows, links, classes of packets at links, and of steps.

Text, JSON and pages are made of these rows. `Bounds` makes data frames of them for those who ask for one:
polars takes longer to load than bounds of a small network take.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

from perhop.measures.catalog import FLOW_BOUNDS, QUEUE_BOUNDS, Bound

Entry: TypeAlias = Mapping[str, Any]
"""What the engine says of a link, a class of its queue, or a flow."""
Row: TypeAlias = dict[str, Any]
"""The values of a line by the names of their columns."""
ALL = "all"
"""The class of all packets, where a queue distinguishes none."""
TEXTS = ("text", "formula", "source")
"""What the engine says of a step."""


class Rows:
    """The rows of each table of `Bounds`, made when they are first asked for."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        """The rows of what the engine derived."""
        self._content = content

    @cached_property
    def by_class(self) -> dict[str, list[Entry]]:
        """What the engine says of each flow of a `[[flows]]` entry."""
        found: dict[str, list[Entry]] = {}
        for flow in self._content["flows"]:
            found.setdefault(class_of(flow), []).append(flow)
        return found

    @cached_property
    def classes(self) -> list[Row]:
        """The rows of `Bounds.classes`."""
        return [
            {"class": name, "flows": len(members), **_cells(members, FLOW_BOUNDS)}
            for name, members in self.by_class.items()
        ]

    @cached_property
    def flows(self) -> list[Row]:
        """The rows of `Bounds.flows`."""
        return [
            {
                "flow": flow["name"],
                "class": class_of(flow),
                **_cells([flow], FLOW_BOUNDS),
                "method": flow["method"],
                "route": ", ".join(flow["route"]),
            }
            for flow in self._content["flows"]
        ]

    @cached_property
    def links(self) -> list[Row]:
        """The rows of `Bounds.links`."""
        return [{"link": link["name"], **_cells([link], QUEUE_BOUNDS)} for link in self._content["links"]]

    @cached_property
    def link_classes(self) -> list[Row]:
        """The rows of `Bounds.link_classes`."""
        return [
            {"link": link["name"], "class": one["name"], **_cells([one], QUEUE_BOUNDS)}
            for link in self._content["links"]
            for one in classes_of(link)
        ]

    @cached_property
    def steps(self) -> list[Row]:
        """The rows of `Bounds.steps`."""
        return [
            {**place, "step": number, **{key: step.get(key) or None for key in TEXTS}}
            for place, entry in self._derived()
            for number, step in enumerate(entry.get("steps", ()), 1)
        ]

    def _derived(self) -> Iterator[tuple[dict[str, str | None], Entry]]:
        """Yield everything that has a derivation, with the columns that name it in `steps`."""
        for link in self._content["links"]:
            for one in link["classes"]:
                name = one["name"] if one in classes_of(link) else None
                yield {"link": link["name"], "class": name, "flow": None}, one
        for flow in self._content["flows"]:
            yield {"link": None, "class": class_of(flow), "flow": flow["name"]}, flow


def class_of(flow: Entry) -> str:
    """The name of the `[[flows]]` entry of a flow, which is called `NAME/0`, `NAME/1` and so on."""
    return str(flow["name"]).rpartition("/")[0]


def classes_of(link: Entry) -> Sequence[Entry]:
    """The classes of packets that a link's queue distinguishes; none if it has one for all of them."""
    classes: Sequence[Entry] = link["classes"]
    return () if [one["name"] for one in classes] == [ALL] else classes


def reason_column(one: Bound) -> str:
    """The column that says why a bound is not there."""
    return f"{one.key[0]}_reason"


def _cells(entries: Sequence[Entry], bounds: Sequence[Bound]) -> dict[str, object]:
    """The bounds of some flows together, or of a queue, and the first reason of each that is not there."""
    reasons = {
        reason_column(one): next((entry[of]["reason"] for entry in entries if "reason" in entry[of]), None)
        for one in bounds
        for of in (one.key[0],)
    }
    return {**values(entries, bounds), **reasons}


def values(entries: Sequence[Entry], bounds: Sequence[Bound]) -> dict[str, object]:
    """The bounds of some flows together, or of a queue; None where one of them has none."""
    found = {}
    for one in bounds:
        of, key = one.key
        known = [entry[of].get(key) for entry in entries]
        together = all if one.unit == "" else max
        found[one.name] = None if not known or None in known else together(known)
    return found
