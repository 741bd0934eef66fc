"""The commands of a class in a policy map: rates, limits, drop curves, policers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from perhop.routers import units
from perhop.routers.dialects.cisco import quantities
from perhop.routers.dialects.cisco.policers import Policer, action_name
from perhop.routers.dialects.cisco.policies import GROUPS
from perhop.routers.dialects.cisco.quantities import AMOUNTS, keyword
from perhop.routers.dialects.cisco.thresholds import Thresholds, selector
from perhop.routers.model import How, PortMeter, Quantity, Rate, RateUnit, Unit

if TYPE_CHECKING:
    from collections.abc import Callable

    from perhop.routers.dialects.cisco.policies import Flavour, PolicyClass
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
        self._thresholds = Thresholds(entry, account, flavour)
        self._police: tuple[int, list[str]] | None = None

    def command(self, line: int, words: list[str]) -> bool:
        """Read a line; False if a word of it is not understood."""
        head = words[0].lower()
        if self._police is not None and action_name(head):
            place, earlier = self._police
            return self._policer(place, [*earlier, *words])
        self._police = None
        handlers: dict[str, Callable[[int, list[str]], bool]] = {
            "bandwidth": self._bandwidth,
            "priority": self._priority,
            "shape": self._shape,
            "queue-limit": self._queue_limit,
            "random-detect": self._thresholds.command,
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
            report(line, "fair queueing within a class is not simulated")
            return True
        if head in {"trust", "netflow-sampler", "estimate", "compression", "log"}:
            return self._account.ignore(line, "not about queues")
        if name == "account":
            return self._account.find("W18", line, f"`{' '.join(words)}`: overhead is not counted here")
        if name == "pause" or head == "no-drop":
            return self._account.find("W09", line, f"`{' '.join(words)}`: flow control is not simulated")
        return False

    def _replaces(self, before: Rate | Quantity | None, text: str) -> None:
        """Report the value of an earlier line that a later one replaces."""
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
        text = " ".join(words)
        rest = self._accounted(line, words[1:])
        queue = self.entry.queue
        if rest and rest[0].lower() == "remaining":
            unit = REMAINING.get(rest[1].lower()) if len(rest) == 3 else None
            if unit is None or units.number(rest[2]) is None:
                return False
            self._replaces(queue.share, text)
            queue.share = Rate(float(rest[2]), unit, line, text=text)
            return True
        rate, left = quantities.rate(rest, line, text, 1000.0)
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
            rate, rest = quantities.rate(rest, line, text, 1000.0)
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
            queue.cap = PortMeter("one-bucket", rate, burst, line)
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
        rate, rest = quantities.rate(rest, line, text)
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
            rate, rest = quantities.rate(rest[1:], line, text)
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

    def _queue_limit(self, line: int, words: list[str]) -> bool:
        text = " ".join(words)
        rest = words[1:]
        if rest[:1] == ["dynamic"] and len(rest) == 2:
            return self._account.find(
                "W09", line, f"`{text}`: a buffer that queues share is not simulated; a fixed limit here"
            )
        if len(rest) > 2 and rest[0].lower() in PACKETS:
            return self._limit_of_some(line, rest, text)
        limit, rest = quantities.amount(rest, line, text, self._flavour.packet_bytes)
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
            return self._account.find(
                "W09", line, f"`{text}`: a buffer that ports share is not simulated; a fixed limit here"
            )
        self._replaces(self.entry.buffers, text)
        self.entry.buffers = Quantity(float(words[2]), Unit.BUFFER_PERCENT, line, text=text)
        return True

    def _limit_of_some(self, line: int, words: list[str], text: str) -> bool:
        """`queue-limit {dscp|precedence} WHICH N [UNIT]`."""
        if words[0].lower() not in {"dscp", "precedence"}:
            return self._account.miss(line, f"packets are not distinguished by `{words[0]}` here")
        which, rest = selector(words)
        limit, rest = quantities.amount(rest, line, text, self._flavour.packet_bytes)
        if which is None or limit is None or rest or limit.number <= 0:
            return False
        limits = self.entry.queue.limits
        for other, before in limits:
            if other.codepoints == which.codepoints:
                self._replaces(before, text)
        limits[:] = [(s, q) for s, q in limits if s.codepoints != which.codepoints]
        limits.append((which, limit))
        return True

    # Policers

    def _policer(self, place: int, words: list[str]) -> bool:
        """`police …` at `place`, with actions on it or on lines after it."""
        parsed = Policer(place, words)
        if not parsed.read():
            return False
        found: list[Finding] = []
        with self._account.of_port(found):
            meter = parsed.meter(self._flavour.police_burst, self._account)
        self.entry.findings[place] = found
        self.entry.queue.meters = [m for m in self.entry.queue.meters if m.line != place] + [meter]
        self._police = (place, words)
        return True
