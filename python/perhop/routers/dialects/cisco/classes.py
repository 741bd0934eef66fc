"""The commands of a class in a policy map: rates, limits, drop curves, policers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from perhop.routers import units
from perhop.routers.model import (
    Action,
    Average,
    Curve,
    Drop,
    Ecn,
    How,
    Meter,
    Quantity,
    Queue,
    Rate,
    RateUnit,
    Selector,
    Unit,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from perhop.routers.source import Account, Finding

AMOUNTS: dict[str, tuple[Unit, float]] = {
    "packets": (Unit.PACKETS, 1),
    "packet": (Unit.PACKETS, 1),
    "bytes": (Unit.BYTES, 1),
    "kbytes": (Unit.BYTES, 1e3),
    "mbytes": (Unit.BYTES, 1e6),
    "gbytes": (Unit.BYTES, 1e9),
    "ms": (Unit.SECONDS, 1e-3),
    "us": (Unit.SECONDS, 1e-6),
    "percent": (Unit.PERCENT, 1),
}
RATES = {"bps": 1.0, "kbps": 1e3, "mbps": 1e6, "gbps": 1e9, "kbit": 1e3}
PER = {"per-thousand": 0.1, "per-million": 1e-4}
"""Percents of the port's rate."""
ACTIONS = ("conform", "exceed", "violate")
STRICT_BURST_S = 0.2
"""The implied burst of a priority class: 200 ms of its rate."""


@dataclass(slots=True)
class PolicyClass:
    """A class of a policy map: its queue, and what belongs to no queue."""

    queue: Queue
    child: str = ""
    child_line: int = 0
    shape_burst: Quantity | None = None
    random_detect: str = ""
    """The kind of `random-detect`: `dscp`, `precedence` and so on; empty without it."""
    random_detect_line: int = 0
    findings: dict[int, list[Finding]] = field(default_factory=dict)
    """What there is to say of policers, by their first line: actions on lines after it change it."""
    groups: dict[str, tuple[int, int]] = field(default_factory=dict)
    """What it puts arriving packets into, `qos-group` or `traffic-class`: the number and the line."""
    buffers: Quantity | None = None
    """The part of the port's buffer that the class has."""
    place: int = 0
    """The line taken for a class without one."""
    lines: set[int] = field(default_factory=set)

    @property
    def acts(self) -> bool:
        """Whether it does more with its packets than to mark them."""
        queue = self.queue
        given = (
            queue.guarantee,
            queue.share,
            queue.ceiling,
            queue.limit,
            queue.level,
            queue.cap,
            self.buffers,
        )
        return any(value is not None for value in given) or bool(
            queue.meters or queue.curves or queue.limits or self.random_detect or self.child
        )


@dataclass(frozen=True, slots=True)
class Flavour:
    """What differs between Cisco's systems."""

    name: str
    packet_bytes: float | None
    """Bytes of what thresholds call a packet; None: a packet."""
    police_burst: Callable[[float], Quantity]
    """The burst of a policer without one, from its rate in bit/s."""
    defaults: Callable[[PolicyClass, Queue, Account], None]
    """Fills in the system's defaults."""
    group: Callable[[str], int | None]
    """The qos-group of a class of the system's own, which has no class map."""


def keyword(word: str, *choices: str) -> str | None:
    """The keyword that a word is, or abbreviates without doubt (three letters at least)."""
    word = word.lower()
    if word in choices:
        return word
    if len(word) < 3:
        return None
    found = [choice for choice in choices if choice.startswith(word)]
    return found[0] if len(found) == 1 else None


class ClassReader:
    """Reads the lines of one class."""

    def __init__(self, entry: PolicyClass, account: Account, flavour: Flavour) -> None:
        """Findings go to the account."""
        self.entry = entry
        self._account = account
        self._flavour = flavour
        self._police: tuple[int, list[str]] | None = None

    def command(self, line: int, words: list[str]) -> bool:
        """Read a line; False if a word of it is not understood."""
        head = words[0].lower()
        if self._police is not None and _action_name(head):
            place, earlier = self._police
            return self._policer(place, [*earlier, *words])
        self._police = None
        handlers: dict[str, Callable[[int, list[str]], bool]] = {
            "bandwidth": self._bandwidth,
            "priority": self._priority,
            "shape": self._shape,
            "queue-limit": self._queue_limit,
            "random-detect": self._random_detect,
            "police": self._policer,
            "service-policy": self._service_policy,
            "queue-buffers": self._buffers,
        }
        name = keyword(head, *handlers, "set", "fair-queue", "account", "pause", "mtu", "no")
        if name in handlers:
            return handlers[name](line, words)
        if name == "set":
            if (
                len(words) == 3
                and words[1].lower() in {"qos-group", "traffic-class"}
                and words[2].isdecimal()
            ):
                self.entry.groups[words[1].lower()] = (int(words[2]), line)
                return True
            self._account.ignore(line, "marking of departing packets is not simulated")
            return True
        if name == "fair-queue":
            limited = any("limit" in word.lower() for word in words)
            report = self._account.miss if limited else self._account.ignore
            report(line, "fair queueing within a class is not simulated")
            return True
        if head in {"trust", "netflow-sampler", "estimate", "compression", "log"}:
            self._account.ignore(line, "not about queues")
            return True
        if name == "account":
            self._account.find("W18", line, f"`{' '.join(words)}`: overhead is not counted here")
            return True
        if name == "pause" or head == "no-drop":
            self._account.find("W09", line, f"`{' '.join(words)}`: flow control is not simulated")
            return True
        return False

    def _replaces(self, before: Rate | Quantity | None, text: str) -> None:
        """Report the value of an earlier line that a later one replaces."""
        if before is not None and before.text != text:
            said = f"class {self.entry.queue.name}: `{before.text}` is replaced by `{text}` further down"
            self._account.find("W17", before.line, said)

    # Rates

    def _rate(self, words: list[str], line: int, text: str, bare: float) -> tuple[Rate | None, list[str]]:
        """A rate at the head of words, whose bare numbers count in `bare` bit/s; and what follows it."""
        if not words:
            return None, words
        if words[0].lower() == "percent" and len(words) > 1 and units.number(words[1]) is not None:
            return Rate(float(words[1]), RateUnit.PERCENT, line, How.CONFIGURED, text), words[2:]
        first = words[0].lower()
        if len(words) > 1 and (first in RATES or first in PER) and units.number(words[1]) is not None:
            words = [words[1], words[0], *words[2:]]  # the unit first
        value = units.number(words[0])
        if value is not None and len(words) > 1 and words[1].lower() in {"percent", "%"}:
            return Rate(value, RateUnit.PERCENT, line, How.CONFIGURED, text), words[2:]
        if value is not None and len(words) > 1 and words[1].lower() == "pps":
            return Rate(value, RateUnit.PACKETS, line, How.CONFIGURED, text), words[2:]
        if value is not None and len(words) > 1 and words[1].lower() in RATES:
            bps = value * RATES[words[1].lower()]
            return Rate(bps, RateUnit.BPS, line, How.CONFIGURED, text), words[2:]
        if value is not None and len(words) > 1 and words[1].lower() in PER:
            share = value * PER[words[1].lower()]
            return Rate(share, RateUnit.PERCENT, line, How.CONFIGURED, text), words[2:]
        if value is not None:
            return Rate(value * bare, RateUnit.BPS, line, How.CONFIGURED, text), words[1:]
        scaled = units.scaled(words[0], units.DECIMAL)
        if scaled is not None:
            return Rate(scaled, RateUnit.BPS, line, How.CONFIGURED, text), words[1:]
        return None, words

    def _accounted(self, line: int, words: list[str]) -> list[str]:
        """Words before `account`, which says what counts as overhead."""
        at = next((n for n, word in enumerate(words) if word.lower() == "account"), len(words))
        if at < len(words):
            self._account.find("W18", line, f"`{' '.join(words[at:])}`: overhead is not counted here")
        return words[:at]

    def _bandwidth(self, line: int, words: list[str]) -> bool:
        text = " ".join(words)
        rest = self._accounted(line, words[1:])
        queue = self.entry.queue
        if rest and rest[0].lower() == "remaining":
            if (
                len(rest) == 3
                and rest[1].lower() in {"percent", "ratio"}
                and units.number(rest[2]) is not None
            ):
                unit = RateUnit.REMAINING_PERCENT if rest[1].lower() == "percent" else RateUnit.WEIGHT
                self._replaces(queue.share, text)
                queue.share = Rate(float(rest[2]), unit, line, How.CONFIGURED, text)
                return True
            return False
        rate, left = self._rate(rest, line, text, 1000.0)
        if rate is None or left or rate.number <= 0:
            return False
        self._replaces(queue.guarantee, text)
        queue.guarantee = rate
        return True

    def _priority(self, line: int, words: list[str]) -> bool:
        queue = self.entry.queue
        rest = words[1:]
        level = 1
        if len(rest) > 1 and rest[0].lower() == "level" and units.whole(rest[1]) is not None:
            level, rest = int(rest[1]), rest[2:]
        rate, burst = None, None
        if rest:
            rate, rest = self._rate(rest, line, " ".join(words), 1000.0)
            if rate is None or rate.number <= 0:
                return False
            if rest and units.number(rest[0]):
                burst = Quantity(float(rest[0]), Unit.BYTES, line, text=" ".join(words))
                rest = rest[1:]
        if rest:
            return False
        if queue.cap is not None:
            self._replaces(queue.cap.rate, " ".join(words))
        queue.level, queue.level_line, queue.cap = max(0, level - 1), line, None
        if rate is not None:
            if burst is None:
                burst = Quantity(
                    STRICT_BURST_S, Unit.SECONDS, line, How.DEFAULT, text="burst of 200 ms of the rate"
                )
            queue.cap = Meter("one-bucket", rate, burst, line)
        return True

    def _shape(self, line: int, words: list[str]) -> bool:
        text = " ".join(words)
        rest = self._accounted(line, words[1:])
        if rest and rest[0].lower() in {"min", "max"}:
            return self._shape_between(line, rest, text)
        if rest and rest[0].lower() in {"average", "peak"}:
            if rest[0].lower() == "peak":
                self._account.find("W06", line, f"`{text}`: only its committed rate is simulated")
            rest = rest[1:]
        rate, rest = self._rate(rest, line, text, 1.0)
        if rate is None or rate.number <= 0:
            return False
        self._replaces(self.entry.queue.ceiling, text)
        self.entry.queue.ceiling, self.entry.shape_burst = rate, None
        self.entry.queue.ceiling_burst = None
        if rest and units.number(rest[0]):
            timed = len(rest) > 1 and rest[1].lower() in AMOUNTS
            unit, factor = AMOUNTS[rest[1].lower()] if timed else (Unit.BYTES, 1 / 8)
            self.entry.shape_burst = Quantity(float(rest[0]) * factor, unit, line, text=text)
            self.entry.queue.ceiling_burst = self.entry.shape_burst
            rest = rest[2:] if timed else rest[1:]
            if rest and units.number(rest[0]) is not None:
                text = f"`{text}`: the excess burst (be) is not simulated"
                if float(rest[0]) > 0:
                    self._account.find("W10", line, text)
                rest = rest[2:] if rest[1:2] == ["ms"] else rest[1:]
        return not rest

    def _shape_between(self, line: int, words: list[str], text: str) -> bool:
        """NX-OS: `shape min RATE max RATE`, a guarantee and a ceiling."""
        given: dict[str, Rate] = {}
        rest = words
        while rest and rest[0].lower() in {"min", "max"}:
            name = rest[0].lower()
            rate, rest = self._rate(rest[1:], line, text, 1.0)
            if rate is None:
                return False
            given[name] = rate
        ceiling, queue = given.get("max"), self.entry.queue
        if rest or ceiling is None or ceiling.number <= 0:
            return False
        self._replaces(queue.ceiling, text)
        queue.ceiling, queue.ceiling_burst, self.entry.shape_burst = ceiling, None, None
        least = given.get("min")
        if least is not None and least.number > 0:
            self._replaces(queue.guarantee, text)
            queue.guarantee = least
        return True

    def _service_policy(self, line: int, words: list[str]) -> bool:
        rest = [word for word in words[1:] if word.lower() not in {"output", "input"}]
        if len(rest) > 2 and rest[0].lower() == "type":
            rest = rest[2:]
        if len(rest) != 1:
            return False
        self.entry.child, self.entry.child_line = rest[0], line
        return True

    # Queue limits and drop curves

    def _amount(self, words: list[str], line: int, text: str) -> tuple[Quantity | None, list[str]]:
        """An amount at the head of words, and what follows."""
        if len(words) > 1 and words[0].lower() == "percent":  # Catalyst writes the unit first
            words = [words[1], "percent", *words[2:]]
        if len(words) > 1 and words[0].lower() == "bytes":  # and NX-OS in some releases
            words = [words[1], "bytes", *words[2:]]
        if not words or units.number(words[0]) is None:
            return None, words
        value = float(words[0])
        if len(words) > 1 and words[1].lower() in AMOUNTS:
            unit, factor = AMOUNTS[words[1].lower()]
            rest = words[2:]
        else:
            unit, factor, rest = Unit.PACKETS, 1, words[1:]
        each = self._flavour.packet_bytes if unit is Unit.PACKETS else None
        return Quantity(value * factor, unit, line, How.CONFIGURED, each, text), rest

    def _queue_limit(self, line: int, words: list[str]) -> bool:
        text = " ".join(words)
        rest = words[1:]
        if rest[:1] == ["dynamic"] and len(rest) == 2:
            self._account.find(
                "W09", line, f"`{text}`: a buffer that queues share is not simulated; a fixed limit here"
            )
            return True
        if len(rest) > 2 and rest[0].lower() in {
            "dscp",
            "precedence",
            "cos",
            "discard-class",
            "exp",
            "qos-group",
        }:
            return self._limit_of_some(line, rest, text)
        limit, rest = self._amount(rest, line, text)
        if limit is None or rest or limit.number <= 0:
            return False
        if limit.unit is Unit.PERCENT:  # of nothing but the port's buffer
            limit = replace(limit, unit=Unit.BUFFER_PERCENT)
        self._replaces(self.entry.queue.limit, text)
        self.entry.queue.limit = limit
        return True

    def _buffers(self, line: int, words: list[str]) -> bool:
        """Catalyst: `queue-buffers ratio N`, a percentage of the port's buffers."""
        if len(words) != 3 or words[1].lower() != "ratio" or units.number(words[2]) is None:
            return False
        text = " ".join(words)
        if float(words[2]) == 0:
            self._account.find(
                "W09", line, f"`{text}`: a buffer that ports share is not simulated; a fixed limit here"
            )
            return True
        self._replaces(self.entry.buffers, text)
        self.entry.buffers = Quantity(float(words[2]), Unit.BUFFER_PERCENT, line, text=text)
        return True

    def _limit_of_some(self, line: int, words: list[str], text: str) -> bool:
        """`queue-limit {dscp|precedence} WHICH N [UNIT]`."""
        if words[0].lower() not in {"dscp", "precedence"}:
            self._account.miss(line, f"packets are not distinguished by `{words[0]}` here")
            return True
        selector, rest = self._selector(words)
        limit, rest = self._amount(rest, line, text)
        if selector is None or limit is None or rest or limit.number <= 0:
            return False
        limits = self.entry.queue.limits
        for other, before in limits:
            if other.codepoints == selector.codepoints:
                self._replaces(before, text)
        limits[:] = [(s, q) for s, q in limits if s.codepoints != selector.codepoints]
        limits.append((selector, limit))
        return True

    def _random_detect(self, line: int, words: list[str]) -> bool:
        entry, queue, rest = self.entry, self.entry.queue, words[1:]
        entry.random_detect_line = entry.random_detect_line or line
        word = rest[0].lower() if rest else ""
        if not rest or word in {"dscp-based", "precedence-based", "prec-based"}:
            if rest[1:2] == ["aggregate"] and len(rest) > 2:
                entry.random_detect = "dscp" if word == "dscp-based" else "precedence"
                return self._thresholds(line, [words[0], "default", *rest[2:]])
            if len(rest) > 1 and rest[1:] != ["aggregate"]:
                return False
            entry.random_detect = "dscp" if word == "dscp-based" else "precedence"
            return True
        entry.random_detect = entry.random_detect or "precedence"
        if word == "ecn" and len(rest) == 1:
            queue.ecn, queue.ecn_line = Ecn.BELOW_MAX, line
            return True
        if word == "exponential-weighting-constant" and len(rest) == 2 and units.whole(rest[1]):
            self._weight(int(rest[1]), line, " ".join(words))
            return True
        if word == "default" and len(rest) == 1:  # IOS-XR: the thresholds are the platform's
            return True
        if word == "threshold" and len(rest) > 1:
            self._account.miss(line, "a preset whose numbers depend on the device; give them in its place")
            return True
        if word in {"minimum-threshold", "maximum-threshold"}:
            return self._named_thresholds(line, words)
        return self._thresholds(line, words)

    def _weight(self, exponent: int, line: int, text: str) -> None:
        if not 1 <= exponent <= 16:
            self._account.find("W16", line, f"`{text}`: the constant is 1 to 16")
        said = f"2^-{exponent}" if exponent else "0, instantaneous"
        weight = 2.0 ** -min(exponent, 32)
        self.entry.queue.average = Average(weight, line, How.CONFIGURED, said)

    def _selector(self, words: list[str]) -> tuple[Selector | None, list[str]]:
        """Which packets a curve is for, and the words after it."""
        kind = words[0].lower()
        if kind == "default":
            return Selector("all others"), words[1:]
        if kind == "dscp" and len(words) > 1 and words[1].lower() == "values":
            values: set[int] = set()
            rest = words[2:]
            while rest and (found := units.codepoints(rest[0])) is not None:
                values |= found
                rest = rest[1:]
            return (Selector(_label("dscp", values), frozenset(values)) if values else None), rest
        if kind in {"dscp", "precedence", "prec"} and len(words) > 1:
            if kind == "dscp":
                found = units.codepoints(words[1])
                return (None if found is None else Selector(words[1], found)), words[2:]
            parts = [units.precedence(part) for part in words[1].split(",") if part]
            if not parts or None in parts:
                return None, words
            codes = frozenset[int]().union(*(units.of_precedence(part) for part in parts if part is not None))
            return Selector(f"precedence {words[1]}", codes), words[2:]
        if units.number(kind) is not None:
            return Selector("all"), words
        return None, words

    def _thresholds(self, line: int, words: list[str]) -> bool:
        """`random-detect [WHICH] MIN [UNIT] MAX [UNIT] [D]`."""
        text = " ".join(words)
        selector, rest = self._selector(words[1:])
        if selector is None:
            return False
        if words[1].lower() == "dscp":
            self.entry.random_detect = "dscp"
        rest = [word for word in rest if word.lower() not in {"minimum-thresh", "maximum-thresh"}]
        if len(rest) > 2 and rest[0].lower() == "percent":  # Catalyst: once for both
            rest = ["percent", rest[1], "percent", *rest[2:]]
        low, rest = self._amount(rest, line, text)
        high, rest = self._amount(rest, line, text)
        if low is None or high is None:
            return False
        # IOS writes the unit once for each; XR may leave out the first one's.
        most, how = 0.1, How.DEFAULT
        lowered = [word.lower() for word in rest]
        if lowered and lowered[0] in {"mark-prob", "mark-probability"}:
            rest = rest[1:]
        if len(rest) == 1 and units.number(rest[0]) == 0:
            said = f"`{text}`: the denominator of the probability at max is 0; the line is left out"
            self._account.find("W16", line, said)
            return True
        if len(rest) == 1 and units.number(rest[0]):
            most, how = 1 / float(rest[0]), How.CONFIGURED
        elif (
            lowered[:2] == ["probability", "percent"] and len(rest) == 3 and units.number(rest[2]) is not None
        ):
            most, how = float(rest[2]) / 100, How.CONFIGURED
        elif rest:
            return False
        return self._curve(selector, low, high, most, line, text, how)

    def _named_thresholds(self, line: int, words: list[str]) -> bool:
        """NX-OS: `random-detect minimum-threshold A UNIT maximum-threshold B UNIT …`."""
        text = " ".join(words)
        rest = words[1:]
        low = high = None
        most, how, ecn = 1.0, How.DEFAULT, False
        average: Average | None = None
        while rest:
            word = rest[0].lower()
            if word == "minimum-threshold":
                low, rest = self._amount(rest[1:], line, text)
            elif word == "maximum-threshold":
                high, rest = self._amount(rest[1:], line, text)
            elif word == "drop-probability" and len(rest) > 1 and units.number(rest[1]) is not None:
                most, how, rest = float(rest[1]) / 100, How.CONFIGURED, rest[2:]
            elif word == "weight" and len(rest) > 1 and units.whole(rest[1]) is not None:
                exponent = int(rest[1])
                average = Average(2.0 ** -min(exponent, 32), line, How.CONFIGURED, f"weight {exponent}")
                rest = rest[2:]
            elif word == "ecn":
                ecn, rest = True, rest[1:]
            elif word == "cap-average":
                self._account.find("W02", line, f"`{text}`: that the average is capped is not simulated")
                rest = rest[1:]
            else:
                return False
            if low is None and word == "minimum-threshold":
                return False
        if low is None or high is None:
            return False
        if any("kbytes" in w.lower() or "mbytes" in w.lower() for w in words):
            self._account.find("W05", line, f"`{text}`: kbytes of 1000 bytes assumed")
        self.entry.queue.average = average or self.entry.queue.average
        if ecn:
            self.entry.queue.ecn, self.entry.queue.ecn_line = Ecn.BELOW_MAX, line
        return self._curve(Selector("all"), low, high, most, line, text, how)

    def _curve(
        self, selector: Selector, low: Quantity, high: Quantity, most: float, line: int, text: str, how: How
    ) -> bool:
        if low.unit != high.unit:
            # `10 20 ms`: the unit is given once, at the end.
            if low.unit is not Unit.PACKETS:
                return False
            factor = next(f for u, f in AMOUNTS.values() if u is high.unit)
            words = text.lower().split()
            factor = next((AMOUNTS[w][1] for w in reversed(words) if w in AMOUNTS), factor)
            low = Quantity(low.number * factor, high.unit, line, How.CONFIGURED, high.each, text)
        if low.number > high.number:
            self._account.find("W16", line, f"`{text}`: min is above max; the line is left out")
            return True
        if how is How.DEFAULT:
            shown = units.plain(most, 6)
            self._account.find("W04", line, f"`{text}`: probability at max not configured; {shown} assumed")
        if not 0 < most <= 1:
            self._account.find("W16", line, f"`{text}`: the probability at max is above 0 and at most 1")
            most = min(max(most, 1e-6), 1.0)
        curves = self.entry.queue.curves
        curves[:] = [drop for drop in curves if drop.selector.codepoints != selector.codepoints]
        curves.append(Drop(selector, Curve.ramp(low, high, most, line)))
        return True

    # Policers

    def _policer(self, place: int, words: list[str]) -> bool:
        """`police …` at `place`, with actions on it or on lines after it."""
        parsed = _Police(self, place, words)
        if not parsed.read():
            return False
        found: list[Finding] = []
        with self._account.of_port(found):
            meter = parsed.meter(self._flavour, self._account)
        self.entry.findings[place] = found
        self.entry.queue.meters = [m for m in self.entry.queue.meters if m.line != place] + [meter]
        self._police = (place, words)
        return True


def _label(kind: str, values: set[int]) -> str:
    return f"{kind} {' '.join(map(str, units.shown_codepoints(values)))}"


def _action_name(word: str) -> str | None:
    base = word.removesuffix("-action")
    return base if base in ACTIONS else None


class _Police:
    """The words of a policer."""

    def __init__(self, reader: ClassReader, line: int, words: list[str]) -> None:
        self._reader = reader
        self._line = line
        self._words = words
        self.cir: Rate | None = None
        self.pir: Rate | None = None
        self.bursts: list[Quantity] = []
        """bc, be."""
        self.peak_burst: Quantity | None = None
        self.actions: dict[str, tuple[Action, str]] = {}

    def read(self) -> bool:
        """Read all words; False if one is not understood."""
        rest = self._words[1:]
        text = " ".join(self._words)
        while rest:
            word = rest[0].lower()
            action = _action_name(word)
            if action:
                found, rest = _action(rest[1:])
                if found is None:
                    return False
                self.actions[action] = found
                continue
            if word in {"cir", "rate"}:
                self.cir, rest = self._reader._rate(rest[1:], self._line, text, 1.0)  # noqa: SLF001
                if self.cir is None:
                    return False
            elif word in {"pir", "peak-rate"}:
                self.pir, rest = self._reader._rate(rest[1:], self._line, text, 1.0)  # noqa: SLF001
                if self.pir is None:
                    return False
            elif word in {"bc", "burst", "be", "peak-burst"}:
                burst, rest = self._burst(rest[1:], text)
                if burst is None:
                    return False
                if word == "peak-burst" or (word == "be" and self.pir is not None):
                    self.peak_burst = burst
                else:
                    self.bursts.append(burst)
            elif self.cir is None:
                self.cir, rest = self._reader._rate(rest, self._line, text, 1.0)  # noqa: SLF001
                if self.cir is None:
                    return False
            else:
                burst, rest = self._burst(rest, text)
                if burst is None:
                    return False
                self.bursts.append(burst)
        return self.cir is not None and self.cir.number > 0 and len(self.bursts) <= 2

    def _burst(self, words: list[str], text: str) -> tuple[Quantity | None, list[str]]:
        if not words:
            return None, words
        factors = {"k": 1e3, "m": 1e6}
        plain = units.number(words[0])
        if plain and len(words) > 1 and words[1].lower() in AMOUNTS and words[1].lower() != "percent":
            unit, factor = AMOUNTS[words[1].lower()]
            return Quantity(float(words[0]) * factor, unit, self._line, text=text), words[2:]
        scaled = units.scaled(words[0], {"": 1.0, **factors})
        return (None if not scaled else Quantity(scaled, Unit.BYTES, self._line, text=text)), words[1:]

    def meter(self, flavour: Flavour, account: Account) -> Meter:
        """The meter that the words describe; actions that are not said are the system's defaults."""
        cir = self.cir or Rate(1.0)
        text = f"`{' '.join(self._words)}`"
        conform = self.actions.get("conform", ("transmit", ""))
        exceed = self.actions.get("exceed", ("drop", ""))
        violate = self.actions.get("violate", exceed)
        if "violate" in self.actions and "exceed" not in self.actions and self.pir is None:
            exceed = violate  # NX-OS: one rate, two outcomes
        burst = self.bursts[0] if self.bursts else None
        if burst is None:
            burst = flavour.police_burst(cir.number if cir.unit is RateUnit.BPS else 0.0)
            burst = Quantity(burst.number, burst.unit, self._line, How.DEFAULT, text=burst.text)
            account.find("W04", self._line, f"{text}: burst not configured; {burst.text}")
        for name, (kind, value) in (("exceed", exceed), ("violate", violate)):
            if kind == "mark" and name in self.actions:
                said = (
                    "here AFn2 for yellow and AFn3 for red, only of AF codepoints and in the class of theirs"
                )
                account.find("W10", self._line, f"{text}: {name} sets {value or 'a field'}; {said}")
        if conform[0] == "mark":
            account.find("W10", self._line, f"{text}: conform sets {conform[1]}; not simulated")
        if self.pir is not None:
            second = self.peak_burst or (self.bursts[1] if len(self.bursts) > 1 else None)
            if second is None:
                found = flavour.police_burst(self.pir.number if self.pir.unit is RateUnit.BPS else 0.0)
                second = Quantity(found.number, found.unit, self._line, How.DEFAULT, text=found.text)
                account.find("W04", self._line, f"{text}: peak burst not configured; {found.text}")
            return Meter(
                "rfc2698", cir, burst, self._line, self.pir, second,
                exceed=exceed[0], violate=violate[0] if "violate" in self.actions else "drop",
            )  # fmt: skip
        two = "violate" in self.actions and "exceed" in self.actions
        if two:
            second = self.bursts[1] if len(self.bursts) > 1 else None
            if second is None:
                second = Quantity(burst.number, burst.unit, self._line, How.DEFAULT, text="be as bc")
                account.find("W04", self._line, f"{text}: excess burst not configured; as bc")
            return Meter(
                "rfc2697", cir, burst, self._line, None, second, exceed=exceed[0], violate=violate[0]
            )
        if len(self.bursts) > 1:
            account.find(
                "W10", self._line, f"{text}: without a violate action there is one bucket; be is left out"
            )
        return Meter("one-bucket", cir, burst, self._line, exceed=exceed[0])


SETTERS = ("set-dscp-transmit", "set-dscp-tunnel-transmit", "set-prec-transmit", "set-qos-transmit",
           "set-cos-transmit", "set-mpls-exp-transmit", "set-mpls-exp-imposition-transmit",
           "set-mpls-exp-topmost-transmit", "set-clp-transmit", "set-discard-class-transmit",
           "set-cos-inner-transmit", "set-frde-transmit")  # fmt: skip
VALUELESS = ("set-clp-transmit", "set-frde-transmit")


def _action(words: list[str]) -> tuple[tuple[Action, str] | None, list[str]]:
    """An action at the head of words, with what it sets, and the words after it."""
    if not words:
        return None, words
    head = words[0].lower()
    if head == "transmit":
        return ("transmit", ""), words[1:]
    if head == "drop":
        return ("drop", ""), words[1:]
    if head == "policed-dscp-transmit":
        return ("mark", "a table's codepoint"), words[1:]
    if head in VALUELESS:
        return ("mark", head), words[1:]
    if head in SETTERS and len(words) > 1:
        return ("mark", words[1].lower()), words[2:]
    if head == "set" and words[1:3] == ["mpls", "experimental"] and len(words) > 4:
        return ("mark", words[4].lower()), words[5:]
    if head == "set" and len(words) > 2:
        return ("mark", words[2].lower()), words[3:]
    return None, words
