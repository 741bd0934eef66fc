"""VyOS's policies with their classes and leaves, as statements configure them, and the values of leaves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from perhop.routers import linux, units
from perhop.routers.model import How, Match, Quantity, Rate, RateUnit, Unit
from perhop.routers.syntax.statements import Statement, statements

if TYPE_CHECKING:
    from collections.abc import Callable

    from perhop.routers.source import Account, Source

KINDS = ("shaper", "shaper-hfsc", "random-detect", "priority-queue", "rate-control", "drop-tail",
         "fair-queue", "fq-codel", "round-robin", "limiter", "cake", "network-emulator")  # fmt: skip
CURVES = ("realtime", "linkshare", "upperlimit")
"""The service curves of `shaper-hfsc`."""
IGNORED = {"description", "mtu", "hash-interval", "set-dscp"}
DSCP_NAMES = {
    "default": 0, "reliability": 1, "throughput": 2, "lowdelay": 4, "priority": 8, "immediate": 16,
    "flash": 24, "flash-override": 32, "critical": 40, "internet": 48, "network": 56,
}  # fmt: skip
"""Names that VyOS has beside those of RFCs 2474 and 2597, of the TOS field (python/vyos/qos/base.py)."""
PREFIXES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}
RATES = {"": 1e3, **{f"{p}{unit}": bits for p, bits in PREFIXES.items() for unit in ("bit", "bps")}}
"""A rate without a suffix is kbit/s in the code, although the help says bit/s."""
TIMES = {"": 1e-3, "ms": 1e-3, "s": 1.0, "us": 1e-6}
"""Seconds; a time without a suffix is in milliseconds."""
BURST = 15 * 1024


@dataclass(slots=True)
class Class:
    """A class of a policy: leaves by their words, and its matches."""

    name: str
    line: int
    account: Account
    values: dict[str, tuple[str, int]] = field(default_factory=dict)
    matches: dict[str, list[Match]] = field(default_factory=dict)
    """The conditions of each match, all of which a packet fulfills; one match is enough."""
    groups: list[tuple[str, int]] = field(default_factory=list)
    """Groups of matches that it names, with their lines."""
    lines: set[int] = field(default_factory=set)
    read: set[str] = field(default_factory=set)
    """Keys of `values` that something read; the others are reported."""

    def get(self, key: str, line: int = 0, default: str = "") -> tuple[str, int]:
        """The value of a leaf and its line; else the default with the given line."""
        self.read.add(key)
        return self.values.get(key, (default, line))

    def bad(self, key: str, value: str, line: int) -> None:
        """Report a value that is not understood."""
        self.account.not_understood(key, f"{key} {value}", line)

    def rate(self, key: str) -> Rate | None:
        """A rate in bit/s or percent; None: there is none, or it is that of the interface."""
        value, line = self.get(key)
        if not value:
            return None
        text = f"{key} {value}"
        if value == "auto":
            self.account.find("W01", line, f"`{text}`: the speed of the interface; give --rate")
            return None
        if value.endswith("%") and units.number(value[:-1]):
            return Rate(float(value[:-1]), RateUnit.PERCENT, line, text=text)
        bps = units.scaled(value, RATES)
        if not bps:
            self.bad(key, value, line)
            return None
        if units.number(value) is not None:
            self.account.find("W01", line, f"`{text}`: a rate without a suffix is kbit/s in VyOS's code")
        return Rate(bps, line=line, text=text)

    def time(self, key: str) -> tuple[float | None, int]:
        """A time in seconds with its line."""
        value, line = self.get(key)
        return units.scaled(value, TIMES) if value else None, line

    def amount(
        self, key: str, unit: Unit, parse: Callable[[str], float | None] = units.whole
    ) -> Quantity | None:
        """An amount above 0."""
        value, line = self.get(key)
        found = parse(value) if value else None
        if found:
            return Quantity(found, unit, line, text=f"{key} {value}")
        if value:
            self.bad(key, value, line)
        return None

    def burst(self) -> Quantity:
        """The burst of a shaper or a policer."""
        given = self.amount("burst", Unit.BYTES, linux.size)
        return given or Quantity(BURST, Unit.BYTES, 0, How.DEFAULT, text="burst 15k")

    def packets(self, key: str, default: int, who: str) -> Quantity:
        """A number of packets, which is said where it is not configured."""
        given = self.amount(key, Unit.PACKETS)
        if given is None:
            self.account.find("W04", self.line, f"{who}: no {key}; {default} packets")
        return given or Quantity(default, Unit.PACKETS, 0, How.DEFAULT, text=f"{default} packets")


@dataclass(slots=True)
class Policy:
    """A policy of some kind."""

    kind: str
    name: str
    line: int
    own: Class
    classes: dict[str, Class] = field(default_factory=dict)
    lines: set[int] = field(default_factory=set)


class Policies:
    """The policies of a source, and where they are attached."""

    def __init__(self, source: Source, account: Account) -> None:
        """Findings go to the account."""
        self._account = account
        self.policies: dict[str, Policy] = {}
        self.attached: list[tuple[str, str, str, Statement]] = []
        self.groups: dict[str, Class] = {}
        """Matches that classes share."""
        for statement in statements(source, account, by_line=True):
            if self._statement(statement):
                account.understand(*statement.lines)
            else:
                account.comment(*statement.around)
                missed = statement.words[:1] in {("qos",), ("traffic-policy",)}
                why = "not understood" if missed else "not about queues"
                account.note(statement.line, f"{why}: `{' '.join(statement.words)}`", missed=missed)

    def _statement(self, statement: Statement) -> bool:
        words = statement.words
        if words[:2] == ("qos", "policy"):
            return self._policy(words[2:], statement)
        if words[:1] == ("traffic-policy",):
            return self._policy(words[1:], statement)
        if words[:2] == ("qos", "traffic-match-group") and len(words) > 5 and words[3] == "match":
            group = self.groups.setdefault(words[2], Class(words[2], statement.line, self._account))
            group.lines.update(statement.lines)
            return self._match(group, f"{words[2]} {words[4]}", words[5:], statement)
        if words[:2] == ("qos", "interface") and len(words) == 5 and words[3] in {"egress", "ingress"}:
            self.attached.append((words[2], words[3], words[4], statement))
            return True
        if words[:1] == ("interfaces",) and "traffic-policy" in words and words[-2:-1] in {("out",), ("in",)}:
            direction = "egress" if words[-2] == "out" else "ingress"
            self.attached.append((words[2], direction, words[-1], statement))
            return True
        return False

    def _policy(self, words: tuple[str, ...], statement: Statement) -> bool:
        if len(words) < 2 or words[0] not in KINDS:
            return False
        line = statement.line
        policy = self.policies.setdefault(
            words[1], Policy(words[0], words[1], line, Class("", line, self._account))
        )
        rest = words[2:]
        policy.lines.update(statement.lines)
        owner = policy.own
        if rest[:1] in {("class",), ("precedence",)} and len(rest) > 1:
            owner = policy.classes.setdefault(rest[1], Class(rest[1], line, self._account))
            rest = rest[2:]
        elif rest[:1] == ("default",):
            owner = policy.classes.setdefault("default", Class("default", line, self._account))
            rest = rest[1:]
        owner.lines.update(statement.lines)
        if not rest:
            return True
        if rest[0] == "match" and len(rest) > 2:
            return self._match(owner, rest[1], rest[2:], statement)
        if rest[0] == "match-group" and len(rest) == 2:
            owner.groups.append((rest[1], line))
            return True
        if rest[0] in CURVES and len(rest) == 3 and rest[1] in {"m1", "m2", "d"}:
            return self._curve(owner, rest, line)
        if len(rest) == 1:
            owner.values[rest[0]] = ("", line)
            return policy.kind == "cake"
        if policy.kind == "cake" and rest[0] == "flow-isolation":
            rest = (rest[0], "-".join(rest[1:]))
        if len(rest) != 2:
            return False
        if rest[0] in IGNORED:
            self._account.find("W13", line, f"`{' '.join(rest)}` has no effect here")
        owner.values[rest[0]] = (rest[1], line)
        return True

    def _curve(self, owner: Class, rest: tuple[str, ...], line: int) -> bool:
        """A value of a service curve of hfsc: its rate in the long run is that of a class of htb."""
        text = " ".join(rest)
        if rest[1] != "m2":
            said = f"`{text}`: what a service curve says of the first moments is not simulated"
            return self._account.find("W06", line, said)
        owner.values[f"{rest[0]} m2"] = (rest[2], line)
        return True

    def _match(self, owner: Class, name: str, rest: tuple[str, ...], statement: Statement) -> bool:
        if rest[0] == "description":
            return True
        line = statement.line
        found = Match(None, ((line, f"match {' '.join(rest)}"),), line)
        if rest[0] in {"ip", "ipv6"} and len(rest) == 3 and rest[1] == "dscp":
            value = DSCP_NAMES.get(rest[2].lower(), units.codepoint(rest[2]))
            if value is not None:
                found = Match(frozenset({value}), (), line)
            if rest[2].lower() == "critical":
                text = "`dscp critical` is 0x0a in VyOS's code, which hardly a packet has; CS5 here, as meant"
                self._account.find("W17", line, text)
        owner.matches.setdefault(name, []).append(found)
        return True
