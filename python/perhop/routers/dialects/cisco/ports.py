"""The ports of Cisco's systems: class maps, policy maps and interfaces, and the queues that they make."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from perhop.errors import PerhopError
from perhop.routers import units
from perhop.routers.model import ALL_CODEPOINTS, Match, Port, PortQueue
from perhop.routers.source import Finding

if TYPE_CHECKING:
    from collections.abc import Callable

    from perhop.routers.model import Quantity, Rate
    from perhop.routers.source import Account

GROUPS = ("qos-group", "traffic-class")
"""The groups that policies of arriving packets set, for classes of departing packets to match."""
CLASS_DEFAULT = "class-default"
DEEPEST = 8
"""Class maps within class maps, and policies within policies."""
MOST_QUEUES = 20_000
"""Queues of all interfaces: policies that hold others several times make many of a few lines."""


@dataclass(slots=True)
class PolicyClass:
    """A class of a policy map: its queue, and what belongs to no queue."""

    queue: PortQueue
    child: str = ""
    child_line: int = 0
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

    police_burst: Callable[[float], Quantity]
    """The burst of a policer without one, from its rate in bit/s."""
    defaults: Callable[[PolicyClass, PortQueue, Account], None]
    """Fills in the system's defaults."""
    packet_bytes: float | None = None
    """Bytes of what thresholds call a packet; None: a packet."""
    group: Callable[[str], int | None] = lambda _name: None
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

    class_maps: dict[str, ClassMap] = field(default_factory=dict)
    policies: dict[str, Policy] = field(default_factory=dict)
    interfaces: dict[str, Interface] = field(default_factory=dict)


class Ports:
    """Makes the ports of a configuration that has been read."""

    def __init__(self, tables: Tables, account: Account, flavour: Flavour) -> None:
        """Findings go to the account."""
        self._class_maps = tables.class_maps
        self._policies = tables.policies
        self._interfaces = tables.interfaces
        self._account = account
        self._flavour = flavour
        self._found: dict[str, tuple[Match, set[int]]] = {}
        """The packets of class maps that were looked at, with their lines."""
        self._looking: set[str] = set()
        """Class maps that are being looked at, as one within another."""
        self._reached: dict[str, set[str]] = {}
        """Policies within each, by name."""
        self._queues = 0
        self._classified: dict[str, dict[int, Group]] = {}
        """The groups by their kind and number."""

    def ports(self) -> list[Port]:
        """The ports with policies; a policy that is not attached is a port of its own name."""
        ports: list[Port] = []
        attached: set[str] = set()
        for interface in self._interfaces.values():
            for direction, name, line in interface.policies:
                policy = self._account.defined(self._policies, name, line, "policy map")
                if policy is None:
                    continue
                attached |= self._names(policy)
                held = [entry for one in self._names(policy) for entry in self._policies[one].classes]
                if direction == "input" and not any(entry.queue.meters for entry in held):
                    continue
                others = [other for way, other, _ in interface.policies if way == "output" and other != name]
                if direction == "output" and others and not any(entry.acts for entry in policy.classes):
                    self._account.ignore(line, "a policy that only marks; marking is not simulated")
                    continue
                rate, speed = interface.bandwidth or interface.speed, interface.speed
                port = Port(interface.name, interface.line, direction, rate=rate)
                if rate is not speed and rate is not None and speed is not None:
                    text = f"`{speed.text}` has no effect here beside `{rate.text}`"
                    self._account.find("W13", speed.line, text)
                port.lines |= interface.lines
                self._fill(port, policy)
                ports.append(port)
        for policy in self._policies.values():
            if policy.name not in attached and policy.classes:
                text = f"policy map {policy.name} is attached to no interface"
                self._account.find("W15", policy.line, text)
                port = Port(policy.name, policy.line, attached=False)
                self._fill(port, policy)
                ports.append(port)
        # Policies within policies that are attached come with these.
        inner = {name for policy in self._policies.values() for name in self._names(policy) - {policy.name}}
        return [port for port in ports if port.name not in inner or port.name in self._interfaces]

    def _names(self, policy: Policy) -> set[str]:
        """The names of a policy and of those within it."""
        if policy.name not in self._reached:
            found = new = {policy.name}
            for _ in range(DEEPEST):
                new = {entry.child for name in new for entry in self._policies[name].classes} - found
                new &= self._policies.keys()
                found = found | new
            self._reached[policy.name] = found
        return self._reached[policy.name]

    def _fill(self, port: Port, policy: Policy, depth: int = 0) -> None:
        """Give a port the queues of a policy; a parent that only shapes is the port's shaper."""
        port.lines |= policy.lines
        port.default_name = CLASS_DEFAULT
        parents = [entry for entry in policy.classes if entry.child]
        if len(policy.classes) == 1 and parents and depth < DEEPEST:
            (parent,) = parents
            child = self._account.defined(self._policies, parent.child, parent.child_line, "policy map")
            if child is not None:
                self._around(port, policy, parent)
                self._fill(port, child, depth + 1)
                return
        for entry in sorted(policy.classes, key=self._is_last):
            port.lines |= entry.lines
            for found in entry.findings.values():
                port.findings += found
            queue = replace(entry.queue, curves=list(entry.queue.curves), meters=list(entry.queue.meters))
            queue.match = self._match_of(port, entry)
            if entry.child:
                self._within(port, entry, queue, depth)
            if port.direction == "input":
                port.meters += [(queue.match, queue.name, meter) for meter in queue.meters]
                if not queue.meters:
                    text = f"class {queue.name}: no meter; without effect on input"
                    port.findings.append(Finding(entry.queue.line, "W13", text))
                continue
            if not queue.within:
                self._flavour.defaults(entry, queue, self._account)
            port.queues.append(queue)
            self._count(policy, entry)
        self._unheld(port, policy)
        last = any(q.match.codepoints is None and not q.match.unknown for q in port.queues)
        if port.direction == "output" and not last:
            rest = PortQueue(CLASS_DEFAULT, 0)
            self._flavour.defaults(PolicyClass(rest, place=policy.line), rest, self._account)
            port.queues.append(rest)

    def _around(self, port: Port, policy: Policy, parent: PolicyClass) -> None:
        """Give a port what the only class of a policy says of the policy within it."""
        port.lines |= parent.lines
        self._match_of(port, parent)
        given = parent.queue
        for value in (given.guarantee, given.share, given.limit, given.cap and given.cap.rate):
            if value is not None:
                self._account.ignore(value.line, "without effect in a class that holds a policy")
        for found in parent.findings.values():
            port.findings += found
        if given.ceiling is not None:
            if port.shaper is not None:
                self._shaped_twice(given.ceiling, given.ceiling.line)
            port.shaper, port.shaper_burst = given.ceiling, given.ceiling_burst
        port.meters += [(Match(None), f"{given.name} of {policy.name}", meter) for meter in given.meters]

    def _shaped_twice(self, simulated: Rate, line: int) -> None:
        self._account.find("W06", line, f"a shaper within a shaper: only `{simulated.text}` is simulated")

    def _count(self, policy: Policy, entry: PolicyClass) -> None:
        """Refuse a class that makes more queues than can be meant."""
        self._queues += 1
        if self._queues > MOST_QUEUES:
            place = self._account.source.place(entry.queue.line)
            raise PerhopError(
                f"{place}: policy {policy.name}: with this class the policies of all interfaces, and those "
                f"within them, have more than {MOST_QUEUES:,} queues"
            )

    def _is_last(self, entry: PolicyClass) -> bool:
        """Whether a class takes what others leave, wherever it is listed."""
        return entry.queue.name == CLASS_DEFAULT or self._flavour.group(entry.queue.name) == 0

    def _unheld(self, port: Port, policy: Policy) -> None:
        """Report groups of packets for which a policy of system-defined classes has none."""
        groups = [self._flavour.group(entry.queue.name) for entry in policy.classes]
        if port.direction == "input" or all(group is None for group in groups):
            return
        for number, group in self._classified.get(GROUPS[0], {}).items():
            match = Match.either(group.matches, policy.line)
            if number not in groups and number and match.most:
                names = units.listed(match.sure) or "packets"
                text = f"qos-group {number} has no class in policy {policy.name}: its {names} join the others"
                self._account.find("W06", policy.line, text)

    def _within(self, port: Port, entry: PolicyClass, queue: PortQueue, depth: int) -> None:
        """Give a class of several the queues of the policy within it."""
        child = self._account.defined(self._policies, entry.child, entry.child_line, "policy map")
        if child is None:
            return
        if depth >= DEEPEST or queue.level is not None or port.direction == "input":
            why = "a strict class" if queue.level is not None else "this class"
            text = f"policy {entry.child} within class {queue.name}: a policy within {why} is not simulated"
            self._account.find("W06", entry.child_line, f"{text}; its packets share one queue")
            return
        inner = Port(queue.name, entry.child_line)
        self._fill(inner, child, depth + 1)
        port.lines |= inner.lines
        port.meters += inner.meters
        port.findings += inner.findings
        queue.within = inner.queues
        if inner.shaper is not None and queue.ceiling is None:
            queue.ceiling, queue.ceiling_burst = inner.shaper, inner.shaper_burst
        elif inner.shaper is not None and queue.ceiling is not None:
            self._shaped_twice(queue.ceiling, inner.shaper.line)

    def _match_of(self, port: Port, entry: PolicyClass) -> Match:
        name, line = entry.queue.name, entry.queue.line
        if name == CLASS_DEFAULT:
            return Match(None, (), line)
        class_map = self._class_maps.get(name)
        if class_map is not None:
            match, lines = self._matched(class_map)
            port.lines |= lines
            return match
        group = self._flavour.group(name)
        if group == 0:
            port.lines |= self._grouped(GROUPS[0], frozenset({0}), (line, ""))[1]
            return Match(None, (), line)
        if group is not None:
            return self._of_group(port, entry, group)
        selectors = [drop.selector for drop in entry.queue.curves] + [one for one, _ in entry.queue.limits]
        implied = frozenset(value for one in selectors for value in one.codepoints or ())
        text = f"class map {name} is not defined"
        if implied:
            text += f": it takes {units.listed(implied)}, for which it has curves"
        self._account.find("W15", line, text)
        return Match(implied, (), line) if implied else Match(None, ((line, f"class {name}"),), line)

    def _of_group(self, port: Port, entry: PolicyClass, number: int) -> Match:
        line, share = entry.queue.line, entry.queue.share
        match, lines = self._grouped(GROUPS[0], frozenset({number}), (line, f"qos-group {number}"))
        port.lines |= lines
        unsaid = match.unknown and match.codepoints is None and not lines
        if unsaid and share is not None and share.number == 0:
            return Match(frozenset(), (), line)  # where nothing is said, no packet is of this group
        return match

    # Matches

    def _matched(self, class_map: ClassMap, depth: int = 0) -> tuple[Match, set[int]]:
        """The packets of a class map, and the lines that say so."""
        if class_map.name not in self._found:
            self._looking.add(class_map.name)
            self._found[class_map.name] = self._joined(class_map, depth)
            self._looking.remove(class_map.name)
        return self._found[class_map.name]

    def _joined(self, class_map: ClassMap, depth: int) -> tuple[Match, set[int]]:
        lines = set(class_map.lines)
        matches: list[Match] = []
        for condition in class_map.conditions:
            found = Match(condition.codepoints)
            if condition.codepoints is None:
                found = Match(None, ((condition.line, condition.text),))
            if condition.class_map:
                inner = self._class_maps.get(condition.class_map)
                if inner is None or inner.name in self._looking or depth >= DEEPEST:
                    text = f"class map {condition.class_map} is not defined"
                    self._account.find("W15", condition.line, text)
                else:
                    found, inner_lines = self._matched(inner, depth + 1)
                    lines |= inner_lines
            if condition.groups is not None:
                found, inner_lines = self._grouped(*condition.groups, (condition.line, condition.text))
                lines |= inner_lines
            matches.append(found.others if condition.negated else found)
        if not class_map.conditions:
            text = f"class map {class_map.name} has no `match`: no packet fulfills it"
            self._account.find("W14", class_map.line, text)
            return Match(frozenset(), (), class_map.line), lines
        place = class_map.conditions[0].line
        match = Match.either(matches, place) if class_map.any else Match.every(matches, place)
        if not match.most:
            self._account.find("W14", place, f"class map {class_map.name}: no packet fulfills all its lines")
        return match, lines

    # Groups, which policies of arriving packets set and classes of departing ones match

    def _grouped(self, kind: str, numbers: frozenset[int], said: tuple[int, str]) -> tuple[Match, set[int]]:
        """The packets of a group, and the lines that say so."""
        if kind not in self._classified:
            self._classified[kind] = {}  # a class by group in a policy of arriving packets finds none
            self._classified[kind] = self._classify(kind)
        found = [group for number in numbers if (group := self._classified[kind].get(number)) is not None]
        if not self._classified[kind]:
            return Match(None, (said,)), set()
        lines = set[int]().union(*(group.lines for group in found))
        return Match.either([match for group in found for match in group.matches], said[0]), lines

    def _classify(self, kind: str) -> dict[int, Group]:
        """The groups of arriving packets; of policies that differ, the first one's."""
        policies = [policy for interface in self._interfaces.values() for policy in interface.policies]
        attached = [(name, line) for direction, name, line in policies if direction == "input"]
        named = dict(attached) or {policy.name: policy.line for policy in self._policies.values()}
        known = [self._policies[name] for name in named if name in self._policies]
        setting = [policy for policy in known if any(kind in entry.groups for entry in policy.classes)]
        if not setting:
            return {}
        for other in setting[1:]:
            text = f"policies {setting[0].name} and {other.name} both set {kind}"
            self._account.find("W14", other.line, f"{text}: here the first for all packets")
        result: dict[int, Group] = {}
        left = ALL_CODEPOINTS
        scratch = Port("", 0)
        for entry in sorted(setting[0].classes, key=lambda entry: entry.queue.name == CLASS_DEFAULT):
            number, line = entry.groups.get(kind, (0, 0))
            match = self._match_of(scratch, entry)
            group = result.setdefault(number, Group())
            group.lines |= {setting[0].line, line, *scratch.lines} | ({entry.queue.line} if line else set())
            group.matches.append(Match.between(left & match.sure, left & match.most, match.unknown, line))
            left = left - match.sure
            scratch.lines = set()
        result.setdefault(0, Group()).matches.append(Match(left))
        for name, line in attached:
            if name == setting[0].name:
                result[0].lines.add(line)
        return result
