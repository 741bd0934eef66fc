"""The class maps, policy maps and interfaces of a configuration, and how the systems differ."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from perhop.routers.model import Match, PortQueue, Quantity, Rate
    from perhop.routers.source import Account, Finding

GROUPS = ("qos-group", "traffic-class")
"""The groups that policies of arriving packets set, for classes of departing packets to match."""


@dataclass(slots=True)
class PolicyClass:
    """A class of a policy map: its queue, and what belongs to no queue."""

    queue: PortQueue
    child: str = ""
    child_line: int = 0
    shape_burst: Quantity | None = None
    random_detect: str = ""
    """The kind of `random-detect`: `dscp`, `precedence` and so on; empty without it."""
    random_detect_line: int = 0
    findings: dict[int, list[Finding]] = field(default_factory=dict)
    """Findings about policers by their first line; actions on later lines change them."""
    groups: dict[str, tuple[int, int]] = field(default_factory=dict)
    """The `qos-group` or `traffic-class` that it gives arriving packets: the number and the line."""
    buffers: Quantity | None = None
    """The part of the port's buffer that the class has."""
    place: int = 0
    """The line taken for a class without one."""
    lines: set[int] = field(default_factory=set)

    @property
    def acts(self) -> bool:
        """Whether it does more with its packets than to mark them."""
        queue = self.queue
        rates = (queue.guarantee, queue.share, queue.ceiling, queue.level, queue.cap)
        held = queue.meters or queue.curves or queue.limits or self.random_detect or self.child
        return any(value is not None for value in (*rates, queue.limit, self.buffers)) or bool(held)


@dataclass(frozen=True, slots=True)
class Flavour:
    """The differences between Cisco's systems."""

    name: str
    packet_bytes: float | None
    """Bytes of what thresholds call a packet; None: a packet."""
    police_burst: Callable[[float], Quantity]
    """The burst of a policer without one, from its rate in bit/s."""
    defaults: Callable[[PolicyClass, PortQueue, Account], None]
    """Fills in the system's defaults."""
    group: Callable[[str], int | None]
    """The qos-group of a class of the system's own, which has no class map."""


@dataclass(slots=True)
class Condition:
    """A `match` line: the codepoints that fulfill it, or a class map, or something else."""

    line: int
    text: str
    codepoints: frozenset[int] | None = None
    class_map: str = ""
    groups: tuple[str, frozenset[int]] | None = None
    """The `qos-group` or `traffic-class` that it matches, and the numbers."""
    negated: bool = False


@dataclass(slots=True)
class ClassMap:
    """A class map."""

    name: str
    line: int
    any: bool = False
    conditions: list[Condition] = field(default_factory=list)
    lines: set[int] = field(default_factory=set)


@dataclass(slots=True)
class Group:
    """The arriving packets that have a group: codepoints, other conditions, and the lines that say so."""

    matches: list[Match] = field(default_factory=list)
    lines: set[int] = field(default_factory=set)


@dataclass(slots=True)
class Policy:
    """A policy map."""

    name: str
    line: int
    classes: list[PolicyClass] = field(default_factory=list)
    lines: set[int] = field(default_factory=set)


@dataclass(slots=True)
class Interface:
    """An interface with the policies attached to it."""

    name: str
    line: int
    bandwidth: Rate | None = None
    speed: Rate | None = None
    policies: list[tuple[Literal["input", "output"], str, int]] = field(default_factory=list)
    lines: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Tables:
    """The class maps, policy maps and interfaces of a configuration, by name."""

    class_maps: dict[str, ClassMap]
    policies: dict[str, Policy]
    interfaces: dict[str, Interface]
