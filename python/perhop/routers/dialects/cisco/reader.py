"""The modular QoS command line of Cisco's systems: class maps, policy maps, and where they are attached.

Structure comes from keywords and not from indentation, which configurations in the wild lose. The
package says what differs between the systems.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from perhop.routers import units
from perhop.routers.dialects.cisco import ports
from perhop.routers.dialects.cisco.classes import ClassReader
from perhop.routers.dialects.cisco.policers import keyword
from perhop.routers.dialects.cisco.ports import ClassMap, Interface, Policy, PolicyClass, Ports, Tables
from perhop.routers.model import ALL_CODEPOINTS, Port, PortQueue, Rate
from perhop.routers.syntax.cli import OTHER_LINES, about_queues, words_of

if TYPE_CHECKING:
    from perhop.routers.dialects.cisco.ports import Flavour
    from perhop.routers.source import Account, Source

ENDS = {"exit", "end", "end-policy-map", "end-class-map", "exit-address-family", "root"}
INTERFACE_QUEUES = {
    "random-detect", "fair-queue", "traffic-shape", "rate-limit", "priority-group", "custom-queue-list",
    "custom-queue", "queue-limit", "mls", "wrr-queue", "srr-queue",
}  # fmt: skip
"""Commands of interfaces that are about queues, and that are not read."""
TRUST = {"trust", "cos", "dscp-mutation", "vlan-based"}
"""Words after `mls qos` or `qos` in lines about the classification of arriving packets."""
OUTSIDE = {
    "aaa", "access-list", "archive", "banner", "boot", "boot-start-marker", "control-plane", "enable",
    "errdisable", "event", "feature", "hardware", "hostname", "key", "license", "line", "login", "monitor",
    "multilink", "nat", "object-group", "platform", "prefix-set", "privilege", "radius", "redundancy", "ring",
    "route-map",
    "route-policy", "router", "rsvp", "scheduler", "service", "sla", "snmp-server", "ssh", "subscriber",
    "tacacs", "telemetry", "template", "track", "username", "version", "wireless", "zone", "zone-pair",
}  # fmt: skip
"""Commands outside of all blocks of which no class map, policy map or interface has the like."""
DEEP = 1000
"""An indentation that no line has."""
HARDWARE_QUEUES = {"hold-queue", "tx-ring-limit"}
"""Queues of an interface beside those of its policy."""
OLD_QUEUES = {("ip", "rtp"), *(("frame-relay", word) for word in ("traffic-shaping", "class", "ip"))}
"""Priority and shapers of interfaces from before policies: `ip rtp priority`, map classes of Frame Relay."""
SKIPPED = {
    "class", "match", "mtu", "pause", "congestion-control", "queue-limit", "inspect", "set",
    "multicast-optimize",
}  # fmt: skip
"""Commands within blocks that have no effect, where indentation is lost."""
POLICIES = {"qos", "queuing", "queueing", "lan-queuing"}
"""Types of class maps and policies that are about queues of interfaces."""


def read(flavour: Flavour, source: Source, account: Account) -> list[Port]:
    """The ports of a configuration; a policy that is not attached is a port of its own name."""
    return _Reader(source, account, flavour).read()


class _Reader:
    def __init__(self, source: Source, account: Account, flavour: Flavour) -> None:
        self._source = source
        self._account = account
        self._flavour = flavour
        self._found = Tables()
        self._class_map: ClassMap | None = None
        self._policy: Policy | None = None
        self._class: ClassReader | None = None
        self._interface: Interface | None = None
        self._skipped = ""
        """Why the block that is open has no effect."""
        self._depth = (0, False)
        """The indentation of the line that opened the block, and whether a line within it has more."""
        self._other = DEEP
        """The indentation of an interface's last line that is not about queues: deeper ones are its own."""

    def read(self) -> list[Port]:
        for line, text in self._source.numbered():
            words = words_of(text)
            if not text.strip():
                continue
            if not words:
                self._account.comment(line)
            elif words[0].lower() in ENDS and len(words) == 1:
                self._account.comment(line)
                if words[0].lower() not in {"exit", "root"}:
                    self._leave()
            else:
                indentation = len(text) - len(text.lstrip())
                opened, indented = self._depth
                self._depth = (opened, indented or indentation > opened)
                others = self._interface is not None and words[0].lower() in OTHER_LINES
                self._other = indentation if others else DEEP if indentation <= self._other else self._other
                if not self._line(line, words, indentation):
                    self._not_read(line, words, indentation)
        return Ports(self._found, self._account, self._flavour).ports()

    def _leave(self) -> None:
        self._class_map = self._policy = self._class = self._interface = None
        self._skipped = ""

    def _open(self, indentation: int) -> None:
        self._leave()
        self._depth, self._other = (indentation, False), DEEP

    def _not_read(self, line: int, words: list[str], indentation: int) -> None:
        """A line that is not understood: it may end a block that has no end of its own."""
        opened, indented = self._depth
        if indentation <= opened and (indented or words[0].lower() in OUTSIDE):
            self._leave()
        within = self._class_map is not None or self._policy is not None
        about = self._interface is not None and about_queues(words) and indentation <= self._other
        if within or about:
            self._account.miss(line)
        else:
            self._account.ignore(line)

    def _line(self, line: int, words: list[str], indentation: int) -> bool:
        head = words[0].lower()
        if head == "class-map" and len(words) > 1:
            self._open(indentation)
            return self._open_class_map(line, words[1:])
        if head == "policy-map" and len(words) > 1:
            self._open(indentation)
            return self._open_policy(line, words[1:])
        if head == "interface" and len(words) > 1:
            self._open(indentation)
            name = "".join(words[1:])
            self._interface = self._found.interfaces.setdefault(name, Interface(name, line))
            return self._account.take(line, self._interface.lines)
        if head == "line" and len(words) > 1:  # a console, whose `speed` is none of an interface
            self._leave()
            return False
        if head == "system" and words[1:] == ["qos"]:
            self._open(indentation)
            self._interface = self._found.interfaces.setdefault("system qos", Interface("system qos", line))
            return self._account.take(line, self._interface.lines)
        if self._skipped and (head in SKIPPED or indentation > self._depth[0]):
            if head in {"pause", "queue-limit", "congestion-control"}:
                self._account.find("W09", line, f"`{' '.join(words)}`: not simulated")
            else:
                self._account.ignore(line, self._skipped)
            return True
        if self._class_map is not None and keyword(head, "match", "description"):
            return self._match(self._class_map, line, words)
        if self._policy is not None:
            return self._policy_line(self._policy, line, words)
        if self._interface is not None:
            return self._interface_line(self._interface, line, words)
        return False

    def _skip(self, line: int, why: str) -> bool:
        self._skipped = why
        return self._account.ignore(line, why)

    # Class maps

    def _open_class_map(self, line: int, words: list[str]) -> bool:
        any_of = self._flavour.packet_bytes is not None  # match-any is the default of IOS-XR
        while len(words) > 1:
            if words[0].lower() == "type" and len(words) > 2:
                if words[1].lower() not in POLICIES:
                    return self._skip(line, f"not about queues: a class map of type {words[1]}")
                words = words[2:]
            elif words[0].lower() in {"match-any", "match-all"}:
                any_of = words[0].lower() == "match-any"
                words = words[1:]
            else:
                break
        name = words[0]
        if len(words) > 1:
            self._account.miss(line, f"words after the name of class map {name} are not understood")
        self._class_map = self._found.class_maps.setdefault(name, ClassMap(name, line, any_of))
        return self._account.take(line, self._class_map.lines)

    def _match(self, class_map: ClassMap, line: int, words: list[str]) -> bool:
        if keyword(words[0], "match", "description") == "description":
            return self._account.comment(line)
        rest = words[1:]
        negated = bool(rest) and rest[0].lower() == "not"
        rest = rest[1:] if negated else rest
        if rest and rest[0].lower() in {"ip", "ipv4", "ipv6"}:
            rest = rest[1:]
        if not rest:
            return False
        condition = ports.Condition(line, " ".join(words), negated=negated)
        kind = keyword(rest[0], "dscp", "precedence", "any", "class-map")
        if kind in {"dscp", "precedence"} and len(rest) > 1 and rest[1].lower() in {"ipv4", "ipv6"}:
            rest = [rest[0], *rest[2:]]  # as IOS-XR has it
        if rest[0].lower() in ports.GROUPS:
            numbers = units.all_of(rest[1:])
            if numbers is None:
                return False
            condition.groups = (rest[0].lower(), numbers)
        elif kind == "any":
            condition.codepoints = ALL_CODEPOINTS
        elif kind == "class-map" and len(rest) == 2:
            condition.class_map = rest[1]
        elif kind in {"dscp", "precedence"}:
            parse = units.codepoints if kind == "dscp" else units.precedences
            condition.codepoints = units.all_of(rest[1:], parse)
            if condition.codepoints is None:
                return False
        class_map.conditions.append(condition)
        return self._account.take(line, class_map.lines)

    # Policies

    def _open_policy(self, line: int, words: list[str]) -> bool:
        if words[0].lower() == "type" and len(words) > 2:
            if words[1].lower() not in POLICIES:
                return self._skip(line, f"not about queues: a policy of type {words[1]}")
            words = words[2:]
        # As in the device, a policy map that is entered again is continued.
        self._policy = self._found.policies.setdefault(words[0], Policy(words[0], line))
        if len(words) > 1:
            self._account.miss(line, "words after the name are not understood")
        return self._account.take(line, self._policy.lines)

    def _policy_line(self, policy: Policy, line: int, words: list[str]) -> bool:
        head = words[0].lower()
        if head == "description":
            return self._account.comment(line)
        if head == "class" and len(words) > 1:
            rest = words[1:]
            if rest[0].lower() == "type" and len(rest) > 2:
                rest = rest[2:]
            if len(rest) > 1:
                self._account.miss(line, "words after the name are not understood")
            known = next((c for c in policy.classes if c.queue.name == rest[0]), None)
            entry = known or PolicyClass(PortQueue(rest[0], line))
            if known is None:
                policy.classes.append(entry)
            self._class = ClassReader(entry, self._account, self._flavour)
            return self._account.take(line, entry.lines)
        if self._class is None:
            return False
        if self._class.command(line, words):
            return self._account.take(line, self._class.entry.lines)
        return False

    # Interfaces

    def _interface_line(self, interface: Interface, line: int, words: list[str]) -> bool:
        word = keyword(words[0], "service-policy", "bandwidth", "description")
        rest = words[1:]
        if word == "description":
            return self._account.comment(line)
        if word == "bandwidth" and rest and rest[0].lower() in {"receive", "inherit"}:
            return self._account.ignore(line, "not about queues of departing packets")
        if word == "bandwidth" and len(rest) == 1 and units.number(rest[0]):
            interface.bandwidth = Rate(float(rest[0]) * 1000, line=line, text=" ".join(words))
            return self._account.take(line, interface.lines)
        if words[0].lower() == "speed" and rest:
            bps = float(rest[0]) * 1e6 if units.number(rest[0]) else units.scaled(rest[0], units.DECIMAL)
            if bps:
                text = " ".join(words)
                interface.speed = Rate(bps, line=line, text=text)
                return len(rest) == 1 and self._account.take(line, interface.lines)
        if word == "service-policy":
            if rest and rest[0].lower() == "type" and len(rest) > 2:
                if rest[1].lower() not in POLICIES:
                    return self._account.ignore(line, f"not about queues: a policy of type {rest[1]}")
                rest = rest[2:]
            if len(rest) == 3 and rest[2].lower() == "no-stats":
                rest = rest[:2]
            if len(rest) > 3 and rest[2].lower() in {"account", "accounting"}:
                self._account.find("W18", line, f"`{' '.join(rest[2:])}`: packets have their IP size here")
                rest = rest[:2]
            if len(rest) == 2 and rest[0].lower() in {"input", "output"}:
                direction: Literal["input", "output"] = "input" if rest[0].lower() == "input" else "output"
                interface.policies.append((direction, rest[1], line))
                return self._account.take(line, interface.lines)
            return False
        qos = rest[1:] if words[0].lower() == "mls" else rest if words[0].lower() == "qos" else []
        if qos and qos[0].lower() in TRUST:
            text = "how arriving packets are classified; their codepoints decide here"
            return self._account.ignore(line, text)
        if words[0].lower() in INTERFACE_QUEUES:
            return False
        if words[0].lower() == "priority-flow-control":
            return self._account.find("W09", line, f"`{' '.join(words)}`: flow control is not simulated")
        if words[0].lower() in HARDWARE_QUEUES:
            return self._account.ignore(line, "perhop has no such queue of the interface beside its policy's")
        if tuple(word.lower() for word in words[:2]) in OLD_QUEUES:
            return self._account.miss(line)
        if words[0].lower() in OTHER_LINES:
            return self._account.ignore(line, "not about queues")
        return False
