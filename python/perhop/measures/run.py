"""One finished run, as the engine reports it, with names instead of indices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perhop.plurals import counted

REVERSE = " (reverse)"
"""The end of the name of the class of requests of a group of users."""
COLORS = ("green", "yellow", "red")
"""Drop precedences in the order of every array's color axis: green is in-profile, yellow and red are out."""


@dataclass(frozen=True, slots=True)
class Group:
    """The flows of one `[[flows]]` entry; a profile of 0 bit/s is best effort.

    A population, whose flows come and go, counts as one flow.
    """

    name: str
    count: int
    profile_bps: float
    is_population: bool = False


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Run:
    """One simulation of one scenario with one seed.

    Attributes:
        seed: The seed.
        raw: What `perhop._engine.simulate` returned: scalars, and arrays with one entry for each of the n
            flows (rates in bit/s, times in s); see its docstring.
    """

    seed: int
    raw: Mapping[str, Any]

    def __repr__(self) -> str:
        """The seed and the numbers of flows and links; the values are too many to print."""
        flows, links = sum(group.count for group in self.groups), len(self.raw["links"])
        return f"Run(seed={self.seed}: {counted(flows, 'flow')}, {counted(links, 'link')}; see .raw)"

    @property
    def groups(self) -> tuple[Group, ...]:
        """The scenario's flow entries, in its order."""
        return tuple(
            Group(str(g["name"]), int(g["count"]), float(g["profile_bps"]), bool(g["is_population"]))
            for g in self.raw["groups"]
        )

    def flows(self, column: str) -> NDArray[np.float64]:
        """A column of the flow table, one value for each flow (or one row by color)."""
        values: NDArray[np.float64] = self.raw["flows"][column]
        return values

    def of_group(self, name: str, column: str) -> NDArray[np.float64]:
        """The column's values for the flows of one `[[flows]]` entry.

        Raises:
            KeyError: No entry has this name.
        """
        names = [group["name"] for group in self.raw["groups"]]
        if name not in names:
            raise KeyError(name)
        values: NDArray[np.float64] = self.flows(column)[self.flows("group") == names.index(name)]
        return values

    def carried_bps(self, *names: str) -> float:
        """Return the rate of the flows of these `[[flows]]` entries together, over the measured time.

        The rate of a flow is over the time in which it was active, so the sum of rates may be more.

        Raises:
            KeyError: No entry has one of these names.
        """
        bits = sum(
            float(np.nansum(self.of_group(name, "throughput_bps") * self.of_group(name, "active_s")))
            for name in names
        )
        return bits / float(self.raw["duration_s"] - self.raw["warmup_s"])

    def link(self, name: str) -> Mapping[str, Any]:
        """The statistics of one link.

        Raises:
            KeyError: No such link.
        """
        for link in self.raw["links"]:
            if link["name"] == name:
                found: Mapping[str, Any] = link
                return found
        raise KeyError(name)

    def link_class(self, link: str, name: str) -> Mapping[str, Any]:
        """The counters and statistics of one class of packets that a link's queue distinguishes.

        Raises:
            KeyError: No such link, or no such class.
        """
        for of_class in self.link(link)["classes"]:
            if of_class["name"] == name:
                found: Mapping[str, Any] = of_class
                return found
        raise KeyError(name)
