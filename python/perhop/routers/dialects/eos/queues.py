"""Arista EOS: the commands of a transmit queue, of a policer, and the units of both.

Sources: Arista EOS User Manual, chapter "Quality of Service", section "Quality of Service Configuration
Commands" (`bandwidth percent`, `bandwidth guaranteed`, `priority`, `shape rate`, `random-detect ecn`,
`police`), and the published schema of the collection `arista.avd` (`tx_queues`, `random_detect`). What these
leave open is assumed, and each assumption is a finding.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from perhop.routers import units
from perhop.routers.model import Average, Curve, How, PortMeter, Quantity, Rate, RateUnit, Unit

if TYPE_CHECKING:
    from collections.abc import Container

    from perhop.routers.source import Account

AMOUNTS: dict[str, tuple[Unit, float]] = {
    "segments": (Unit.SEGMENTS, 1), "packets": (Unit.PACKETS, 1), "bytes": (Unit.BYTES, 1),
    "kbytes": (Unit.BYTES, 1e3), "mbytes": (Unit.BYTES, 1e6), "ms": (Unit.SECONDS, 1e-3),
    "milliseconds": (Unit.SECONDS, 1e-3), "us": (Unit.SECONDS, 1e-6), "microseconds": (Unit.SECONDS, 1e-6),
}  # fmt: skip
"""Units of amounts; a platform takes some of them."""
RATES: dict[str, tuple[RateUnit, float]] = {
    "bps": (RateUnit.BPS, 1), "kbps": (RateUnit.BPS, 1e3), "mbps": (RateUnit.BPS, 1e6),
    "gbps": (RateUnit.BPS, 1e9), "pps": (RateUnit.PACKETS, 1), "percent": (RateUnit.PERCENT, 1),
}  # fmt: skip
MOST_WEIGHT = 15


Words = list[str]
Given = dict[str, Quantity | float]
"""Thresholds, and probabilities or weights, by their words."""


@dataclass(slots=True)
class Ramp:
    """A `random-detect` line: where packets of a drop precedence (None: of all) drop or are marked."""

    curve: Curve
    precedence: int | None
    text: str
    line: int


@dataclass(slots=True)
class TxQueue:
    """A transmit queue of an interface or of a QoS profile, as far as it is configured."""

    number: int
    line: int
    percent: Rate | None = None
    guarantee: Rate | None = None
    ceiling: Rate | None = None
    strict: bool | None = None
    """Whether it has strict priority; None: it is not configured, which is strict priority."""
    strict_line: int = 0
    drops: list[Ramp] = field(default_factory=list)
    marks: Ramp | None = None
    average: Average | None = None
    limit: Quantity | None = None
    lines: set[int] = field(default_factory=set)

    def over(self, other: TxQueue, account: Account) -> TxQueue:
        """Merge this queue of an interface with that of its profile; its own values win."""
        result = TxQueue(self.number, self.line, lines=self.lines | other.lines)
        for name in ("percent", "guarantee", "ceiling", "marks", "average", "limit"):
            own, given = getattr(self, name), getattr(other, name)
            setattr(result, name, given if own is None else own)
            if own is not None and given is not None and given.line > 0:
                self._replaced(given.text, given.line, own.text, account)
        result.drops = self.drops or other.drops
        if self.drops:
            for ramp in other.drops:
                self._replaced(ramp.text, ramp.line, self.drops[0].text, account)
        said = other if self.strict is None else self
        result.strict, result.strict_line = said.strict, said.strict_line
        return result

    def _replaced(self, before: str, line: int, now: str, account: Account) -> None:
        if before != now:
            text = f"tx-queue {self.number}: `{before}` of the profile is replaced by `{now}`"
            account.find("W17", line, f"{text} of the interface")


@dataclass(slots=True)
class ClassMap:
    """A class map: the codepoints of each line, and other conditions."""

    name: str
    line: int
    codes: set[int] = field(default_factory=set)
    other: list[tuple[int, str]] = field(default_factory=list)
    lines: set[int] = field(default_factory=set)


@dataclass(slots=True)
class PolicyClass:
    """A class of a policy: where its packets go, and how they are policed."""

    name: str
    line: int
    traffic_class: tuple[int, int] | None = None
    """The traffic class with its line."""
    meter: PortMeter | None = None
    lines: set[int] = field(default_factory=set)


@dataclass(slots=True)
class Holder:
    """An interface or a QoS profile: its transmit queues, its shaper."""

    name: str
    line: int
    queues: dict[int, TxQueue] = field(default_factory=dict)
    shape: Rate | None = None
    bandwidth: Rate | None = None
    speed: Rate | None = None
    profile: tuple[str, int] | None = None
    policies: list[tuple[str, int]] = field(default_factory=list)
    lines: set[int] = field(default_factory=set)


def _measured(words: Words, known: Container[str]) -> tuple[float, str, Words] | None:
    """The number at the head of words, its unit if it has one, and what follows."""
    value = units.number(words[0]) if words else None
    if value is None:
        return None
    unit = words[1].lower() if len(words) > 1 else ""
    return (value, unit, words[2:]) if unit in known else (value, "", words[1:])


def rate(words: Words, line: int, text: str, bare: str, account: Account) -> tuple[Rate | None, Words]:
    """A rate at the head of words, whose bare numbers have the unit `bare`; and what follows it."""
    found = _measured(words, RATES)
    if found is None:
        return None, words
    value, unit, rest = found
    if not unit:
        shown = {"bps": "bit/s", "kbps": "kbit/s"}[bare]
        account.find("W05", line, f"`{text}`: a rate without a unit is read as {shown}")
    kind, factor = RATES[unit or bare]
    return Rate(value * factor, kind, line, text=text) if value > 0 else None, rest


def amount(words: Words, line: int, text: str, account: Account) -> tuple[Quantity | None, Words]:
    """An amount at the head of words, in bytes if it has no unit; and what follows it."""
    found = _measured(words, AMOUNTS)
    if found is None:
        return None, words
    value, unit, rest = found
    kind, factor = AMOUNTS[unit or "bytes"]
    if not unit:
        account.find("W05", line, f"`{text}`: an amount without a unit is read as bytes")
    if unit in {"kbytes", "mbytes"}:
        account.find("W05", line, f"`{text}`: {unit} of {factor:.0f} bytes assumed")
    return Quantity(value * factor, kind, line, text=text), rest


class QueueReader:
    """Reads the lines of one transmit queue."""

    def __init__(self, queue: TxQueue, account: Account) -> None:
        """Findings go to the account."""
        self.queue = queue
        self._account = account

    def command(self, line: int, words: list[str]) -> bool:
        """Read a line; False if a word of it is not understood."""
        head, text = words[0].lower(), " ".join(words)
        lowered = [word.lower() for word in words[1:]]
        if head == "no" and lowered in (["priority"], ["priority", "strict"]):
            return self._strict(line, strict=False)
        if head in {"no", "default"} and lowered:
            return self._without(line, lowered)
        if head == "scheduler" and words[1:2] == ["profile"]:
            return self._account.ignore(line, "how the chip schedules has no effect here")
        if head == "priority" and lowered in ([], ["strict"]):
            return self._strict(line, strict=True)
        if head == "bandwidth" and len(words) > 1:
            return self._bandwidth(line, words[1:], text)
        if head == "shape" and words[1:2] == ["rate"]:
            found, rest = rate(words[2:], line, text, "kbps", self._account)
            if found is None or rest:
                return False
            self._replaces(self.queue.ceiling, text)
            self.queue.ceiling = found
            return True
        if head == "latency" and words[1:2] == ["maximum"]:
            limit, rest = amount(words[2:], line, text, self._account)
            if limit is None or rest or limit.number <= 0:
                return False
            self._replaces(self.queue.limit, text)
            self.queue.limit = limit
            return True
        if head == "random-detect" and len(words) > 1:
            return self._random_detect(line, lowered, text)
        return False

    def _without(self, line: int, words: list[str]) -> bool:
        """`no …` and `default …`: the value is that of a queue that does not say it."""
        queue = self.queue
        match words:
            case ["priority", *_]:
                queue.strict, queue.strict_line = None, line
            case ["bandwidth", "percent", *_]:
                queue.percent = None
            case ["bandwidth", "guaranteed", *_]:
                queue.guarantee = None
            case ["bandwidth"]:
                queue.percent = queue.guarantee = None
            case ["shape", "rate", *_]:
                queue.ceiling = None
            case ["latency", "maximum", *_]:
                queue.limit = None
            case ["random-detect", "ecn", "count", *more]:
                return not more
            case ["random-detect", "ecn", *_]:
                queue.marks = None
            case ["random-detect", "drop", *_]:
                queue.drops = []
            case _:
                return False
        return True

    def _replaces(self, before: Rate | Quantity | Ramp | None, text: str) -> None:
        if before is not None and before.text != text:
            said = f"tx-queue {self.queue.number}: `{before.text}` is replaced by `{text}` further down"
            self._account.find("W17", before.line, said)

    def _strict(self, line: int, *, strict: bool) -> bool:
        if self.queue.strict is not None and self.queue.strict is not strict:
            said = f"tx-queue {self.queue.number}: its priority is configured again further down"
            self._account.find("W17", self.queue.strict_line, said)
        self.queue.strict, self.queue.strict_line = strict, line
        return True

    def _bandwidth(self, line: int, words: list[str], text: str) -> bool:
        if words[0].lower() == "percent" and len(words) == 2 and units.number(words[1]):
            self._replaces(self.queue.percent, text)
            self.queue.percent = Rate(float(words[1]), RateUnit.REMAINING_PERCENT, line, text=text)
            return True
        if words[0].lower() != "guaranteed":
            return False
        rest = words[1:]
        if len(rest) == 2 and rest[0].lower() == "percent":
            rest = [rest[1], "percent"]
        found, left = rate(rest, line, text, "kbps", self._account)
        if found is None or left:
            return False
        self._replaces(self.queue.guarantee, text)
        self.queue.guarantee = found
        return True

    def _random_detect(self, line: int, words: list[str], text: str) -> bool:
        kind, rest = words[0], words[1:]
        if kind == "ecn" and rest == ["count"]:
            return self._account.ignore(line, "counters have no effect")
        if kind not in {"drop", "ecn"}:
            return False
        precedence: int | None = None
        if kind == "drop" and rest[:1] == ["drop-precedence"] and len(rest) > 1:
            if rest[1] not in {"0", "1", "2"}:
                return False
            precedence, rest = int(rest[1]), rest[2:]
        given: Given = {}
        names = {"drop-probability": 100.0, "max-mark-probability": 100.0, "weight": float(MOST_WEIGHT)}
        while rest:
            name = rest[0]
            if name in {"minimum-threshold", "maximum-threshold"}:
                found, rest = amount(rest[1:], line, text, self._account)
                if found is None:
                    return False
                given[name] = found
            elif name in names and len(rest) > 1 and units.whole(rest[1]) is not None:
                value = float(rest[1])
                if value > names[name]:
                    self._account.find("W16", line, f"`{text}`: {name} is at most {names[name]:g}")
                    value = names[name]
                given[name], rest = value, rest[2:]
            else:
                return False
        return self._ramp(line, kind, precedence, given, text)

    def _ramp(self, line: int, kind: str, precedence: int | None, given: Given, text: str) -> bool:
        low, high = given.get("minimum-threshold"), given.get("maximum-threshold")
        if not isinstance(low, Quantity) or not isinstance(high, Quantity) or low.unit != high.unit:
            return False
        if low.number > high.number:
            return self._account.find("W16", line, f"`{text}`: min is above max; the line is left out")
        name = "drop-probability" if kind == "drop" else "max-mark-probability"
        most, how = given.get(name), How.CONFIGURED
        if not isinstance(most, float):
            most, how = 100.0, How.DEFAULT
            self._account.find("W04", line, f"`{text}`: {name} not configured; 100 % assumed")
        if most <= 0:
            return self._account.find("W16", line, f"`{text}`: {name} is 1 to 100; the line is left out")
        ramp = Ramp(Curve.ramp(low, high, most / 100, line, how), precedence, text, line)
        weight = given.get("weight")
        if isinstance(weight, float):
            self._weight(weight, line, text)
        if kind == "ecn":
            self._replaces(self.queue.marks, text)
            self.queue.marks = ramp
        else:
            for other in self.queue.drops:
                if other.precedence == precedence:
                    self._replaces(other, text)
            self.queue.drops = [drop for drop in self.queue.drops if drop.precedence != precedence] + [ramp]
        return True

    def _weight(self, weight: float, line: int, text: str) -> None:
        means = f"the exponent of 2^-{weight:g}" if weight else "instantaneous"
        said = f"`{text}`: weight {weight:g} is read as {means}, which the manual does not say"
        self._account.find("W02", line, said)
        before = self.queue.average
        if before is not None and before.weight != 2.0**-weight:
            said = f"tx-queue {self.queue.number}: `{before.text}` is replaced: a queue has one average here"
            self._account.find("W17", before.line, said)
        self.queue.average = Average(2.0**-weight, line, text=f"weight {weight:g}")


def policer(line: int, words: list[str], account: Account) -> PortMeter | None:
    """`police …`: one rate, which drops, or two, between which packets are marked; None: not understood.

    >>> from perhop.routers.source import Account, Source
    >>> account = Account(Source([("x", b"")]))
    >>> policer(1, "police rate 5 mbps burst-size 64 bytes".split(), account).rate.number
    5000000.0
    """
    text = " ".join(words)
    rates, bursts = list[Rate](), list[Quantity]()
    rest = [word.lower() for word in words[1:]]
    if rest and units.number(rest[0]) is not None:
        rest = ["cir", *rest]
    marks = False
    while rest:
        name = rest[0]
        if name in {"cir", "rate", "pir"}:
            found, rest = rate(rest[1:], line, text, "bps", account)
            if found is None or found.unit is RateUnit.PERCENT:
                return None
            if found.unit is RateUnit.PACKETS:
                account.find("W10", line, f"`{text}`: the device counts packets; here the meter counts bytes")
            rates.append(found)
        elif name in {"bc", "burst-size", "be"}:
            burst, rest = amount(rest[1:], line, text, account)
            if burst is None or burst.number <= 0 or burst.unit is Unit.SEGMENTS:
                return None
            bursts.append(burst)
        elif rest[:3] == ["action", "set", "drop-precedence"]:
            marks, rest = True, rest[3:]
        elif rest[:3] == ["action", "set", "dscp"] and len(rest) > 3:
            marks, rest = True, rest[4:]
        else:
            return None
    if len(rates) not in {1, 2} or len(bursts) != len(rates):
        return None
    if len(rates) == 1:
        if marks:
            account.find("W10", line, f"`{text}`: what exceeds becomes yellow")
        return PortMeter("one-bucket", rates[0], bursts[0], line, exceed="mark" if marks else "drop")
    account.find("W10", line, f"`{text}`: between the rates packets are yellow, above the second one dropped")
    return PortMeter("rfc2698", rates[0], bursts[0], line, rates[1], bursts[1], exceed="mark", violate="drop")
