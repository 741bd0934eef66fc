"""The commands of a class in a policy map: rates, limits, drop curves, policers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from perhop.routers import model, units
from perhop.routers.dialects.cisco import policers
from perhop.routers.dialects.cisco.policers import AMOUNTS, keyword
from perhop.routers.dialects.cisco.ports import GROUPS
from perhop.routers.model import Curve, How, Quantity, Rate, RateUnit, Selector, Unit

if TYPE_CHECKING:
    from collections.abc import Callable

    from perhop.routers.dialects.cisco.ports import Flavour, PolicyClass
    from perhop.routers.source import Account, Finding

REMAINING = {"percent": RateUnit.REMAINING_PERCENT, "ratio": RateUnit.WEIGHT}
PACKETS = {"dscp", "precedence", "cos", "discard-class", "exp", "qos-group"}
"""Words before packets for which a limit is."""
STRICT_BURST_S = 0.2
"""The implied burst of a priority class: 200 ms of its rate."""


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
        head, text = words[0].lower(), " ".join(words)
        if self._police is not None and policers.action_name(head):
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
            if len(words) == 3 and words[1].lower() in GROUPS and words[2].isdecimal():
                self.entry.groups[words[1].lower()] = (int(words[2]), line)
                return True
            return self._account.ignore(line, "marking of departing packets is not simulated")
        if name == "fair-queue":
            limited = any("limit" in word.lower() for word in words)
            report = self._account.miss if limited else self._account.ignore
            return report(line, "fair queueing within a class is not simulated")
        if head in {"trust", "netflow-sampler", "estimate", "compression", "log"}:
            return self._account.ignore(line, "not about queues")
        if name == "account":
            return self._account.find("W18", line, f"`{text}`: overhead is not counted here")
        if name == "pause" or head == "no-drop":
            return self._account.find("W09", line, f"`{text}`: flow control is not simulated")
        return False

    def _replaces(self, before: Rate | Quantity | None, text: str) -> None:
        if before is not None and before.text != text:
            said = f"class {self.entry.queue.name}: `{before.text}` is replaced by `{text}` further down"
            self._account.find("W17", before.line, said)

    # Rates

    def _accounted(self, line: int, words: list[str]) -> list[str]:
        """Words before `account`, which says what counts as overhead."""
        at = next((n for n, word in enumerate(words) if word.lower() == "account"), len(words))
        if at < len(words):
            self._account.find("W18", line, f"`{' '.join(words[at:])}`: overhead is not counted here")
        return words[:at]

    def _bandwidth(self, line: int, words: list[str]) -> bool:
        queue, text = self.entry.queue, " ".join(words)
        rest = self._accounted(line, words[1:])
        if rest and rest[0].lower() == "remaining":
            unit = REMAINING.get(rest[1].lower()) if len(rest) == 3 else None
            if unit is None or units.number(rest[2]) is None:
                return False
            self._replaces(queue.share, text)
            queue.share = Rate(float(rest[2]), unit, line, text=text)
            return True
        rate, left = policers.rate(rest, line, text, 1000.0)
        if rate is None or left or rate.number <= 0:
            return False
        self._replaces(queue.guarantee, text)
        queue.guarantee = rate
        return True

    def _priority(self, line: int, words: list[str]) -> bool:
        queue, text = self.entry.queue, " ".join(words)
        rest, level = words[1:], 1
        if len(rest) > 1 and rest[0].lower() == "level" and units.whole(rest[1]) is not None:
            level, rest = int(rest[1]), rest[2:]
        rate, burst = None, None
        if rest:
            rate, rest = policers.rate(rest, line, text, 1000.0)
            if rate is None or rate.number <= 0:
                return False
            if rest and units.number(rest[0]):
                burst, rest = Quantity(float(rest[0]), Unit.BYTES, line, text=text), rest[1:]
        if rest:
            return False
        if queue.cap is not None:
            self._replaces(queue.cap.rate, text)
        queue.level, queue.level_line, queue.cap = max(0, level - 1), line, None
        if rate is not None:
            said = "burst of 200 ms of the rate"
            burst = burst or Quantity(STRICT_BURST_S, Unit.SECONDS, line, How.DEFAULT, text=said)
            queue.cap = model.PortMeter("one-bucket", rate, burst, line)
        return True

    def _shape(self, line: int, words: list[str]) -> bool:
        queue, text = self.entry.queue, " ".join(words)
        rest = self._accounted(line, words[1:])
        kind = rest[0].lower() if rest else ""
        if kind in {"min", "max"}:
            return self._shape_between(line, rest, text)
        if kind == "peak":
            self._account.find("W06", line, f"`{text}`: only its committed rate is simulated")
        rate, rest = policers.rate(rest[1:] if kind in {"average", "peak"} else rest, line, text)
        if rate is None or rate.number <= 0:
            return False
        self._replaces(queue.ceiling, text)
        queue.ceiling, queue.ceiling_burst = rate, None
        if rest and units.number(rest[0]):
            timed = len(rest) > 1 and rest[1].lower() in AMOUNTS
            unit, factor = AMOUNTS[rest[1].lower()] if timed else (Unit.BYTES, 1 / 8)
            queue.ceiling_burst = Quantity(float(rest[0]) * factor, unit, line, text=text)
            rest = rest[2:] if timed else rest[1:]
            if rest and units.number(rest[0]) is not None:
                if float(rest[0]) > 0:
                    self._account.find("W10", line, f"`{text}`: the excess burst (be) is not simulated")
                rest = rest[2:] if rest[1:2] == ["ms"] else rest[1:]
        return not rest

    def _shape_between(self, line: int, rest: list[str], text: str) -> bool:
        """NX-OS: `shape min RATE max RATE`, a guarantee and a ceiling."""
        given: dict[str, Rate] = {}
        while rest and rest[0].lower() in {"min", "max"}:
            name = rest[0].lower()
            rate, rest = policers.rate(rest[1:], line, text)
            if rate is None:
                return False
            given[name] = rate
        ceiling, queue = given.get("max"), self.entry.queue
        if rest or ceiling is None or ceiling.number <= 0:
            return False
        self._replaces(queue.ceiling, text)
        queue.ceiling, queue.ceiling_burst = ceiling, None
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

    # Queue limits

    def _amount(self, words: list[str], line: int, text: str) -> tuple[Quantity | None, list[str]]:
        return policers.amount(words, line, text, self._flavour.packet_bytes)

    def _queue_limit(self, line: int, words: list[str]) -> bool:
        rest, text = words[1:], " ".join(words)
        if rest[:1] == ["dynamic"] and len(rest) == 2:
            text = f"`{text}`: a buffer that queues share is not simulated; a fixed limit here"
            return self._account.find("W09", line, text)
        if len(rest) > 2 and rest[0].lower() in PACKETS:
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
        text = " ".join(words)
        if len(words) != 3 or words[1].lower() != "ratio" or units.number(words[2]) is None:
            return False
        if float(words[2]) == 0:
            text = f"`{text}`: a buffer that ports share is not simulated; a fixed limit here"
            return self._account.find("W09", line, text)
        self._replaces(self.entry.buffers, text)
        self.entry.buffers = Quantity(float(words[2]), Unit.BUFFER_PERCENT, line, text=text)
        return True

    def _limit_of_some(self, line: int, words: list[str], text: str) -> bool:
        """`queue-limit {dscp|precedence} WHICH N [UNIT]`."""
        if words[0].lower() not in {"dscp", "precedence"}:
            return self._account.miss(line, f"packets are not distinguished by `{words[0]}` here")
        which, rest = _selector(words)
        limit, rest = self._amount(rest, line, text)
        if which is None or limit is None or rest or limit.number <= 0:
            return False
        limits = self.entry.queue.limits
        for other, before in limits:
            if other.codepoints == which.codepoints:
                self._replaces(before, text)
        limits[:] = [(s, q) for s, q in limits if s.codepoints != which.codepoints]
        limits.append((which, limit))
        return True

    # Drop curves

    def _random_detect(self, line: int, words: list[str]) -> bool:
        entry, queue, rest = self.entry, self.entry.queue, words[1:]
        entry.random_detect_line = entry.random_detect_line or line
        word = rest[0].lower() if rest else ""
        if not rest or word in {"dscp-based", "precedence-based", "prec-based"}:
            kind = "dscp" if word == "dscp-based" else "precedence"
            if rest[1:2] == ["aggregate"] and len(rest) > 2:
                entry.random_detect = kind
                return self._thresholds(line, [words[0], "default", *rest[2:]])
            if len(rest) > 1 and rest[1:] != ["aggregate"]:
                return False
            entry.random_detect = kind
            return True
        entry.random_detect = entry.random_detect or "precedence"
        if word == "ecn" and len(rest) == 1:
            queue.ecn, queue.ecn_line = model.Ecn.BELOW_MAX, line
            return True
        if word == "exponential-weighting-constant" and len(rest) == 2 and (exponent := units.whole(rest[1])):
            if exponent > 16:
                self._account.find("W16", line, f"`{' '.join(words)}`: the constant is 1 to 16")
            queue.average = model.Average(2.0 ** -min(exponent, 32), line, text=f"2^-{exponent}")
            return True
        if word == "default" and len(rest) == 1:  # IOS-XR: the thresholds are the platform's
            return True
        if word == "threshold" and len(rest) > 1:
            why = "a preset whose numbers depend on the device; give them in its place"
            return self._account.miss(line, why)
        if word in {"minimum-threshold", "maximum-threshold"}:
            return self._named_thresholds(line, words)
        return self._thresholds(line, words)

    def _thresholds(self, line: int, words: list[str]) -> bool:
        """`random-detect [WHICH] MIN [UNIT] MAX [UNIT] [D]`."""
        text = " ".join(words)
        which, rest = _selector(words[1:])
        if which is None:
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
        numbers = [units.number(word) for word in rest]
        if numbers == [0]:
            said = f"`{text}`: the denominator of the probability at max is 0; the line is left out"
            return self._account.find("W16", line, said)
        if len(rest) == 1 and numbers[0]:
            most, how = 1 / numbers[0], How.CONFIGURED
        elif lowered[:2] == ["probability", "percent"] and len(rest) == 3 and numbers[2] is not None:
            most, how = numbers[2] / 100, How.CONFIGURED
        elif rest:
            return False
        return self._curve(which, low, high, most, line, text, how)

    def _named_thresholds(self, line: int, words: list[str]) -> bool:
        """NX-OS: `random-detect minimum-threshold A UNIT maximum-threshold B UNIT …`."""
        rest, text = words[1:], " ".join(words)
        low = high = None
        most, how, ecn = 1.0, How.DEFAULT, False
        average: model.Average | None = None
        while rest:
            word = rest[0].lower()
            if word == "minimum-threshold":
                low, rest = self._amount(rest[1:], line, text)
                if low is None:
                    return False
            elif word == "maximum-threshold":
                high, rest = self._amount(rest[1:], line, text)
            elif word == "drop-probability" and len(rest) > 1 and units.number(rest[1]) is not None:
                most, how, rest = float(rest[1]) / 100, How.CONFIGURED, rest[2:]
            elif word == "weight" and len(rest) > 1 and (exponent := units.whole(rest[1])) is not None:
                average = model.Average(2.0 ** -min(exponent, 32), line, text=f"weight {exponent}")
                rest = rest[2:]
            elif word == "ecn":
                ecn, rest = True, rest[1:]
            elif word == "cap-average":
                self._account.find("W02", line, f"`{text}`: that the average is capped is not simulated")
                rest = rest[1:]
            else:
                return False
        if low is None or high is None:
            return False
        if any("kbytes" in w.lower() or "mbytes" in w.lower() for w in words):
            self._account.find("W05", line, f"`{text}`: kbytes of 1000 bytes assumed")
        queue = self.entry.queue
        queue.average = average or queue.average
        if ecn:
            queue.ecn, queue.ecn_line = model.Ecn.BELOW_MAX, line
        return self._curve(Selector("all"), low, high, most, line, text, how)

    def _curve(
        self, selector: Selector, low: Quantity, high: Quantity, most: float, line: int, text: str, how: How
    ) -> bool:
        if low.unit != high.unit:
            # `10 20 ms`: the unit is given once, at the end.
            if low.unit is not Unit.PACKETS:
                return False
            factor = next(f for u, f in AMOUNTS.values() if u is high.unit)
            factor = next((AMOUNTS[w][1] for w in reversed(text.lower().split()) if w in AMOUNTS), factor)
            low = Quantity(low.number * factor, high.unit, line, each=high.each, text=text)
        if low.number > high.number:
            return self._account.find("W16", line, f"`{text}`: min is above max; the line is left out")
        if how is How.DEFAULT:
            shown = units.plain(most, 6)
            self._account.find("W04", line, f"`{text}`: probability at max not configured; {shown} assumed")
        if not 0 < most <= 1:
            self._account.find("W16", line, f"`{text}`: the probability at max is above 0 and at most 1")
            most = min(max(most, 1e-6), 1.0)
        curves = self.entry.queue.curves
        curves[:] = [drop for drop in curves if drop.selector.codepoints != selector.codepoints]
        curves.append(model.Drop(selector, Curve.ramp(low, high, most, line)))
        return True

    # Policers

    def _policer(self, place: int, words: list[str]) -> bool:
        """`police …` at `place`, with actions on it or on lines after it."""
        parsed = policers.Policer(place, words)
        if not parsed.read():
            return False
        found: list[Finding] = []
        with self._account.of_port(found):
            meter = parsed.meter(self._flavour.police_burst, self._account)
        self.entry.findings[place] = found
        self.entry.queue.meters = [m for m in self.entry.queue.meters if m.line != place] + [meter]
        self._police = (place, words)
        return True


def _selector(words: list[str]) -> tuple[Selector | None, list[str]]:
    """The packets that a curve or a limit is for, and the words after them."""
    kind = words[0].lower()
    if kind == "default":
        return Selector("all others"), words[1:]
    if kind == "dscp" and len(words) > 1 and words[1].lower() == "values":
        values: set[int] = set()
        rest = words[2:]
        while rest and (found := units.codepoints(rest[0])) is not None:
            values |= found
            rest = rest[1:]
        label = f"dscp {' '.join(map(str, units.shown_codepoints(values)))}"
        return (Selector(label, frozenset(values)) if values else None), rest
    if kind == "dscp" and len(words) > 1:
        found = units.codepoints(words[1])
        return (None if found is None else Selector(words[1], found)), words[2:]
    if kind in {"precedence", "prec"} and len(words) > 1:
        found = units.precedences(words[1])
        return (None, words) if found is None else (Selector(f"precedence {words[1]}", found), words[2:])
    if units.number(kind) is not None:
        return Selector("all"), words
    return None, words
