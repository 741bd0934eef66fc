"""The statements of Junos class-of-service: schedulers, drop profiles, classifiers, interfaces."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from perhop.routers import units
from perhop.routers.dialects.junos.policers import Policers
from perhop.routers.model import Quantity, Rate, RateUnit, Unit
from perhop.routers.syntax.statements import Statement, statements

if TYPE_CHECKING:
    from perhop.routers.curves import Color
    from perhop.routers.source import Account, Source

LOSS: dict[str, Color] = {"low": "green", "medium-low": "yellow", "medium-high": "yellow", "high": "red"}
CLASSIFIERS = {"dscp", "inet-precedence", "dscp-ipv6"}
DEFAULT_CLASSIFIER = {
    "expedited-forwarding": {"low": frozenset({46})},
    "assured-forwarding": {"low": frozenset({10}), "high": frozenset({12, 14})},
    "network-control": {"low": frozenset({48, 56})},
}
"""Junos's default for DSCP (Juniper, "Default DSCP and DSCP IPv6 Classifiers"); others are best effort."""
PRECEDENCES = {
    name: units.of_precedence(value)
    for name, value in {"be": 0, "af11": 1, "af21": 2, "af31": 3, "af41": 4, "ef": 5, "cs6": 6, "nc1": 6,
                        "cs7": 7, "nc2": 7}.items()
}  # fmt: skip
"""Junos's names of precedences."""
IGNORED = {
    "rewrite-rules": "marking of departing packets is not simulated",
    "host-outbound-traffic": "traffic of the router itself is not simulated",
    "system-defaults": "not about queues",
    "traceoptions": "not about queues",
}


@dataclass(slots=True)
class Profile:
    """A drop profile: fill levels and probabilities in percent, in the order of the file."""

    interpolated: bool = False
    fills: list[tuple[float, int]] = field(default_factory=list)
    probabilities: list[tuple[float, int]] = field(default_factory=list)
    lines: set[int] = field(default_factory=set)
    line: int = 0


@dataclass(slots=True)
class Scheduler:
    """A scheduler."""

    line: int = 0
    rate: Rate | None = None
    exact: bool = False
    rest: bool = False
    """Gets what others leave."""
    share: Rate | None = None
    """The share of what others leave."""
    buffer: Quantity | None = None
    buffer_rest: int = 0
    """The line that gives it the rest of the buffer."""
    priority: str = "low"
    priority_line: int = 0
    ceiling: Rate | None = None
    ecn_line: int = 0
    drops: list[tuple[str, str, str, int]] = field(default_factory=list)
    """Loss priority, protocol, drop profile, line."""
    lines: set[int] = field(default_factory=set)


@dataclass(slots=True)
class Classifier:
    """Codepoints of forwarding classes, by loss priority."""

    line: int = 0
    codes: dict[str, dict[str, set[int]]] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)
    """The first line of each forwarding class."""
    lines: set[int] = field(default_factory=set)

    def add_default(self) -> None:
        """Add the codepoints of Junos's own classifier."""
        for forwarding, by_loss in DEFAULT_CLASSIFIER.items():
            for loss, known in by_loss.items():
                self.codes.setdefault(forwarding, {}).setdefault(loss, set()).update(known)


@dataclass(slots=True)
class Unit0:
    """An interface or a unit of it."""

    line: int = 0
    scheduler_map: tuple[str, int] | None = None
    shaping: Rate | None = None
    shaping_burst: Quantity | None = None
    classifier: tuple[str, int] | None = None
    control: tuple[str, int] | None = None
    """The traffic control profile of the interface or unit, and its line."""
    lines: set[int] = field(default_factory=set)


class Definitions:
    """The definitions of a configuration, by kind and name."""

    def __init__(self, source: Source, account: Account) -> None:
        """Findings go to the account."""
        self._account = account
        self._statements = statements(source, account)
        self.profiles: dict[str, Profile] = {}
        self.schedulers: dict[str, Scheduler] = {}
        self.maps: dict[str, dict[str, tuple[str, Statement]]] = {}
        self.classes: dict[str, tuple[int, Statement]] = {}
        self.classifiers: dict[str, Classifier] = {}
        self.aliases: dict[str, dict[str, tuple[frozenset[int], Statement]]] = {}
        """Codepoints by kind of classifier and name."""
        self.controls: dict[str, Unit0] = {}
        """Traffic control profiles: what they say of the interfaces that name them."""
        self.interfaces: dict[str, Unit0] = {}
        self.speeds: dict[str, tuple[Rate, Statement]] = {}
        self.policers = Policers(account)
        self.family: dict[str, dict[str, Unit0]] = {}
        """Each interface with its units, by its name and theirs."""

    def read(self) -> None:
        """Read all statements."""
        rooted = any(s.words[0] in {"class-of-service", "firewall", "interfaces"} for s in self._statements)
        listed = [(s.words if rooted else ("class-of-service", *s.words), s) for s in self._statements]
        listed.sort(key=lambda item: item[0][1:2] != ("code-point-aliases",))  # classifiers use them
        for words, statement in listed:
            if self._statement(words, statement):
                self._account.understand(*statement.lines)

    def _ignore(self, statement: Statement, why: str = "not understood", *, missed: bool = False) -> bool:
        self._account.comment(*statement.around)
        self._account.note(statement.line, f"{why}: `{' '.join(statement.words)}`", missed=missed)
        return False

    def _statement(self, words: tuple[str, ...], statement: Statement) -> bool:
        handlers = {
            "drop-profiles": self._drop_profile,
            "schedulers": self._scheduler,
            "scheduler-maps": self._scheduler_map,
            "forwarding-classes": self._forwarding_class,
            "classifiers": self._classifier,
            "code-point-aliases": self._alias,
            "traffic-control-profiles": self._control,
            "interfaces": self._interface,
        }
        if words[0] == "class-of-service" and len(words) > 1:
            if words[1] in IGNORED:
                return self._ignore(statement, IGNORED[words[1]])
            handler = handlers.get(words[1])
            read = handler is not None and handler(words[2:], statement)
            return read or self._ignore(statement, missed=True)
        if words[0] in {"firewall", "interfaces"}:
            if self._speed(words, statement) or self.policers.statement(words, statement):
                return True
            interfaces = words[0] == "interfaces"
            limits = any("policer" in word for word in words) or (interfaces and "filter" in words)
            if not interfaces:
                limits = any(word.endswith("policer") for word in words[1:4])
            why = "not about queues" if interfaces and not limits else "not understood"
            return self._ignore(statement, why, missed=limits)
        if "apply-groups" in words or words[0] == "groups":
            text = "configuration groups are not expanded; give `show configuration | display inheritance`"
            return self._ignore(statement, text)
        return self._ignore(statement, "not about queues")

    # Definitions

    def _drop_profile(self, words: tuple[str, ...], statement: Statement) -> bool:
        if len(words) < 2:
            return False
        profile = self.profiles.setdefault(words[0], Profile(line=statement.line))
        rest = list(words[1:])
        if rest[0] == "interpolate":
            profile.interpolated = True
            rest = rest[1:]
        while rest:
            values, key = [], rest[0]
            if key not in {"fill-level", "drop-probability"} or len(rest) < 2:
                return False
            if rest[1] == "[":
                end = rest.index("]") if "]" in rest else len(rest)
                values, rest = rest[2:end], rest[end + 1 :]
            else:
                values, rest = rest[1:2], rest[2:]
            numbers = [units.number(value.rstrip("%")) for value in values]
            if None in numbers or not numbers:
                return False
            kept = profile.fills if key == "fill-level" else profile.probabilities
            kept += [(number, statement.line) for number in numbers if number is not None]
        profile.lines.update(statement.lines)
        return True

    def _scheduler(self, words: tuple[str, ...], statement: Statement) -> bool:
        if len(words) < 2:
            return False
        scheduler = self.schedulers.setdefault(words[0], Scheduler(statement.line))
        key, rest, line = words[1], [w for w in words[2:] if w not in {"[", "]"}], statement.line
        text = " ".join(words[1:])
        scheduler.lines.update(statement.lines)
        if key == "transmit-rate" and rest:
            if "rate-limit" in rest:
                said = f"scheduler {words[0]}: `{text}`: above its rate a packet waits here, not dropped"
                self._account.find("W10", line, said)
            if "exact" in rest or "rate-limit" in rest:
                scheduler.exact = True
                rest = [word for word in rest if word not in {"exact", "rate-limit"}]
            if rest[:1] == ["remainder"]:
                scheduler.rest = True
                said = f"scheduler {words[0]}: `{text}`: what the rates of the others leave"
                self._account.find("W05", line, f"{said} of the port's rate")
                share = units.number(rest[1]) if len(rest) == 2 else None
                if share:
                    scheduler.share = Rate(share, RateUnit.REMAINING_PERCENT, line, text=text)
                return len(rest) == 1 or bool(share)
            scheduler.rate = _rate(rest, line, text) or scheduler.rate
            return scheduler.rate is not None or not rest
        if key == "shaping-rate" and rest:
            rest, burst = _burst(rest, line, text)
            if burst is not None:
                self._account.find("W10", line, f"scheduler {words[0]}: `{text}`: its burst is not simulated")
            scheduler.ceiling = _rate(rest, line, text) or scheduler.ceiling
            return scheduler.ceiling is not None if rest else burst is not None
        if key == "buffer-size" and rest:
            return self._buffer(scheduler, rest, statement, text)
        if key == "priority" and len(rest) == 1:
            scheduler.priority, scheduler.priority_line = rest[0], line
            return rest[0] in {"low", "medium-low", "medium-high", "high", "strict-high"}
        if key == "drop-profile-map":
            options = dict(zip(rest[::2], rest[1::2], strict=False))
            name = options.pop("drop-profile", None)
            if name is None or set(options) - {"loss-priority", "protocol"} or len(rest) % 2:
                return False
            loss, protocol = options.get("loss-priority", "any"), options.get("protocol", "any")
            if loss not in {*LOSS, "any"} or protocol not in {"any", "tcp", "non-tcp", "both"}:
                return False
            scheduler.drops.append((loss, protocol, name, line))
            return True
        if key == "explicit-congestion-notification" and not rest:
            scheduler.ecn_line = line
            return True
        if key in {"excess-rate", "excess-priority", "adjust-percent", "adjust-minimum"}:
            return self._account.find("W06", line, f"`{text}`: sharing of excess by it is not simulated")
        return False

    def _buffer(self, scheduler: Scheduler, rest: list[str], statement: Statement, text: str) -> bool:
        line, number, unit = statement.line, None, Unit.BYTES
        match [word for word in rest if word != "exact"]:
            case ["shared"]:
                text = f"`{text}`: buffers that queues share are not simulated"
                return self._account.find("W09", line, text)
            case ["remainder", *more]:
                scheduler.buffer_rest = line
                return not more
            case ["percent", word] if units.number(word) is not None:
                number, unit = float(word), Unit.BUFFER_PERCENT
                scheduler.buffer = Quantity(number, unit, line, text=text)
            case ["temporal", word]:
                micro, unit = units.scaled(word, units.DECIMAL), Unit.SECONDS
                number = micro and micro * 1e-6
            case [word]:
                number = units.scaled(word, units.DECIMAL)
        if number:
            scheduler.buffer = Quantity(number, unit, line, text=text)
        return bool(number)

    def _scheduler_map(self, words: tuple[str, ...], statement: Statement) -> bool:
        if len(words) != 5 or (words[1], words[3]) != ("forwarding-class", "scheduler"):
            return False
        self.maps.setdefault(words[0], {})[words[2]] = (words[4], statement)
        return True

    def _forwarding_class(self, words: tuple[str, ...], statement: Statement) -> bool:
        match words:
            case ("class", name, "queue-num", said, *rest) | ("queue", said, name, *rest):
                number = units.whole(said)
            case _:
                return False
        fabric = rest in (["priority", "low"], ["priority", "high"])
        if number is None or (rest and not fabric):
            return False
        if fabric:
            text = f"class {name}: `{' '.join(rest)}` is of the switch fabric, which is not simulated"
            self._account.find("W13", statement.line, text)
        self.classes[name] = (number, statement)
        return True

    def _classifier(self, words: tuple[str, ...], statement: Statement) -> bool:
        if len(words) < 3 or words[0] not in CLASSIFIERS:
            return False
        classifier = self.classifiers.setdefault(words[1], Classifier(statement.line))
        if words[2] == "import" and words[3:] == ("default",) and words[0] != "inet-precedence":
            classifier.add_default()
            classifier.lines.update(statement.lines)
            return True
        if words[2] == "import":
            text = f"codepoints of an imported classifier are not used: `{' '.join(words)}`"
            return self._account.find("W13", statement.line, text)
        rest = [word for word in words[2:] if word not in {"[", "]"}]
        if rest[:5:2] != ["forwarding-class", "loss-priority", "code-points"] or len(rest) < 6:
            return False
        loss = rest[3]
        codes = units.all_of(rest[5:], lambda word: self._code_point(words[0], word, classifier))
        if codes is None or loss not in LOSS:
            return False
        for others in classifier.codes.values():  # an imported codepoint moves
            for held in others.values():
                held.difference_update(codes)
        classifier.codes.setdefault(rest[1], {}).setdefault(loss, set()).update(codes)
        classifier.places.setdefault(rest[1], statement.line)
        classifier.lines.update(statement.lines)
        return True

    def _code_point(self, kind: str, word: str, classifier: Classifier) -> frozenset[int] | None:
        """The codepoints of a word of a classifier: of an alias, else of a name or of bits."""
        alias = self.aliases.get(kind, {}).get(word)
        if alias is not None:
            classifier.lines.update(alias[1].lines)
            return alias[0]
        return _bits(kind, word)

    def _alias(self, words: tuple[str, ...], statement: Statement) -> bool:
        found = _bits(words[0], words[2]) if len(words) == 3 and words[0] in CLASSIFIERS else None
        if found is None:
            return False
        self.aliases.setdefault(words[0], {})[words[1]] = (found, statement)
        return True

    def _control(self, words: tuple[str, ...], statement: Statement) -> bool:
        """A traffic control profile: a scheduler map and a shaper by name."""
        if len(words) < 3:
            return False
        unit = self.controls.setdefault(words[0], Unit0(statement.line))
        unit.lines.update(statement.lines)
        if words[1] in {"guaranteed-rate", "excess-rate", "delay-buffer-rate", "overhead-accounting"}:
            text = f"traffic control profile {words[0]}: `{' '.join(words[1:])}` is not simulated"
            return self._account.find("W06", statement.line, text)
        return self._shaped(unit, words[1:], statement)

    def _interface(self, words: tuple[str, ...], statement: Statement) -> bool:
        if words[:1] == ("interface",):
            words = words[1:]
        if len(words) < 2:
            return False
        name, rest = words[0], words[1:]
        if rest[0] == "unit" and len(rest) > 2:
            name, rest = f"{name}.{rest[1]}", rest[2:]
        unit = self.interfaces.setdefault(name, Unit0(statement.line))
        self.family.setdefault(name.partition(".")[0], {})[name] = unit
        unit.lines.update(statement.lines)
        line = statement.line
        if self._shaped(unit, rest, statement):
            return True
        if rest[0] == "output-traffic-control-profile" and len(rest) == 2:
            unit.control = (rest[1], line)
            return True
        if rest[0] == "classifiers" and len(rest) == 3 and rest[1] in CLASSIFIERS:
            unit.classifier = (rest[2], line)
            return True
        if rest[0] == "rewrite-rules":
            self._ignore(statement, IGNORED["rewrite-rules"])
            return True
        return False

    def _shaped(self, unit: Unit0, rest: tuple[str, ...], statement: Statement) -> bool:
        """A scheduler map or a shaper of an interface, a unit of one, or a traffic control profile."""
        line = statement.line
        if rest[0] == "scheduler-map" and len(rest) == 2:
            unit.scheduler_map = (rest[1], line)
            return True
        if rest[0] != "shaping-rate" or len(rest) < 2:
            return False
        text = " ".join(rest)
        given, burst = _burst(list(rest[1:]), line, text)
        unit.shaping_burst = burst or unit.shaping_burst
        if not given:
            return burst is not None
        unit.shaping = _rate(given, line, text)
        return unit.shaping is not None

    def _speed(self, words: tuple[str, ...], statement: Statement) -> bool:
        """`interfaces NAME [… options] speed 1g`: the rate of the link."""
        if words[0] != "interfaces" or len(words) < 4 or words[-2] != "speed" or "unit" in words:
            return False
        bps = units.scaled(words[-1], units.DECIMAL)
        if not bps:
            return False
        self.speeds[words[1]] = (Rate(bps, line=statement.line, text=" ".join(words[-2:])), statement)
        return True


def _bits(kind: str, word: str) -> frozenset[int] | None:
    """The codepoints of a name or of bits; three bits are a precedence."""
    if kind == "inet-precedence":
        if re.fullmatch("[01]{3}", word):
            return units.of_precedence(int(word, 2))
        return PRECEDENCES.get(word)
    value = units.codepoint(word)
    return None if value is None else frozenset({value})


def _rate(words: list[str], line: int, text: str) -> Rate | None:
    words = [word for word in words if word != "rate"]
    if len(words) == 2 and words[0] == "percent" and units.number(words[1]):
        return Rate(float(words[1]), RateUnit.PERCENT, line, text=text)
    bps = units.scaled(words[0], units.DECIMAL) if len(words) == 1 else None
    return Rate(bps, line=line, text=text) if bps else None


def _burst(words: list[str], line: int, text: str) -> tuple[list[str], Quantity | None]:
    """The words without `burst-size SIZE`, and its size."""
    if "burst-size" not in words[:-1]:
        return words, None
    at = words.index("burst-size")
    size = units.scaled(words[at + 1], units.DECIMAL)
    if not size:
        return words, None
    return [*words[:at], *words[at + 2 :]], Quantity(size, Unit.BYTES, line, text=text)
