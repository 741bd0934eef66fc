"""Arista EOS: class maps, policies, QoS profiles and the transmit queues of interfaces.

A codepoint leads to a traffic class (`qos map dscp`, or `set traffic-class` of a policy), this to a transmit
queue (`qos map traffic-class … to tx-queue`). Structure comes from keywords; indentation counts for one line
only: `shape rate` is the interface's own if it is no deeper than `tx-queue`. Source: Arista EOS User
Manual, chapter "Quality of Service"; defaults of maps are those of its tables for Trident and Jericho.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from perhop.routers import units
from perhop.routers.dialects.eos.queues import (
    ClassMap,
    Holder,
    PolicyClass,
    QueueReader,
    TxQueue,
    policer,
    rate,
)
from perhop.routers.model import Rate
from perhop.routers.syntax.cli import OTHER_LINES, about_queues, words_of

if TYPE_CHECKING:
    from perhop.routers.source import Account, Source

QUEUES = 8
OTHERS = OTHER_LINES | {
    "evpn", "isis", "l2", "link-debounce", "multicast", "phone", "pim", "poe", "ptp", "sflow",
    "error-correction", "transceiver", "unidirectional", "traffic-policy", "vlan", "vxlan", "mlag",
    "mode", "address",
}  # fmt: skip
"""Commands of interfaces that are known not to be about queues."""
QOS = {"map", "profile", "rewrite", "random-detect"}
"""Words after `qos` of lines outside of interfaces."""
MARKING = "marking of packets is not simulated"
MULTICAST = "queues of multicast are not simulated"
OUTSIDE = ("hostname", "version", "boot", "ip", "ipv6", "router", "vlan", "management", "username", "daemon")
"""Commands outside of interfaces that end whatever comes before them."""


class Definitions:
    """The class maps, policies, maps, profiles and interfaces of a configuration."""

    def __init__(self, source: Source, account: Account) -> None:
        """Findings go to the account."""
        self._source = source
        self._account = account
        self.class_maps: dict[str, ClassMap] = {}
        self.policies: dict[str, dict[str, PolicyClass]] = {}
        self.policy_lines: dict[str, set[int]] = {}
        self.profiles: dict[str, Holder] = {}
        self.interfaces: dict[str, Holder] = {}
        self.by_codepoint: dict[int, tuple[int, int, int]] = {}
        """Traffic class, drop precedence, line."""
        self.by_class: dict[int, tuple[int, int]] = {}
        """Transmit queue and line."""
        self.passes: int = 0
        """The line that lets packets without ECN pass."""
        self._class_map: ClassMap | None = None
        self._policy: str = ""
        self._class: PolicyClass | None = None
        self._holder: Holder | None = None
        self._queue: QueueReader | None = None
        self._depth = 0
        """The indentation of the line that opened the queue."""
        self._skipped = ""
        """Why the block that is open has no effect."""

    def read(self) -> None:
        """Read all lines."""
        for line, text in self._source.numbered():
            words = words_of(text)
            depth = len(text) - len(text.lstrip())
            if not text.strip():
                continue
            if not words:
                self._account.comment(line)
                if depth == 0 and self._depth > 0:
                    self._leave()
                elif depth <= self._depth:
                    self._queue = None
            elif words in (["exit"], ["end"]):
                self._account.comment(line)
                if self._queue is not None:
                    self._queue = None
                else:
                    self._leave()
            elif self._skipped and not _opens(words):
                self._account.ignore(line, self._skipped)
            elif not self._line(line, words, depth):
                self._not_read(line, words, depth)

    def _not_read(self, line: int, words: list[str], depth: int) -> None:
        """A line that is not understood: lost, if it is where queues are configured."""
        inside = self._class_map is not None or bool(self._policy) or self._queue is not None
        about = about_queues(words)
        lost = inside and (depth > 0 or about)
        if lost or (self._holder is not None and about) or words[0].lower() == "qos":
            self._account.miss(line)
        else:
            self._account.ignore(line)

    def _leave(self) -> None:
        self._class_map = self._class = self._holder = self._queue = None
        self._policy = self._skipped = ""
        self._depth = 0

    def _line(self, line: int, words: list[str], depth: int) -> bool:
        head = words[0].lower()
        if head == "class-map" and len(words) > 1:
            return self._open_class_map(line, words[1:])
        if head == "policy-map" and len(words) > 1:
            return self._open_policy(line, words[1:])
        if head == "qos" and len(words) > 1 and words[1].lower() in QOS:
            return self._qos(line, words)
        if head == "interface" and len(words) > 1:
            self._leave()
            name = "".join(words[1:])
            self._holder = self.interfaces.setdefault(name, Holder(name, line))
            return self._account.take(line, self._holder.lines)
        if head in {"tx-queue", "uc-tx-queue", "mc-tx-queue"} and self._holder and len(words) == 2:
            return self._open_queue(self._holder, line, words, depth)
        if depth == 0 and head in OUTSIDE:
            inside = self._holder is not None and head in OTHERS
            if not inside or self._depth > 0:
                self._leave()
        if self._class_map is not None:
            return self._match(self._class_map, line, words)
        if self._policy:
            return self._policy_line(line, words)
        if self._holder is not None:
            return self._holder_line(self._holder, line, words, depth)
        return False

    # Class maps and policies

    def _open_class_map(self, line: int, words: list[str]) -> bool:
        self._leave()
        if words[0].lower() == "type" and len(words) > 2:
            if words[1].lower() != "qos":
                self._skipped = f"not about queues: a class map of type {words[1]}"
                return self._account.ignore(line, self._skipped)
            words = words[2:]
        if words[0].lower() in {"match-any", "match-all"} and len(words) > 1:
            words = words[1:]
        if len(words) != 1:
            return False
        self._class_map = self.class_maps.setdefault(words[0], ClassMap(words[0], line))
        return self._account.take(line, self._class_map.lines)

    def _match(self, class_map: ClassMap, line: int, words: list[str]) -> bool:
        if words[0].lower() == "description":
            return self._account.comment(line)
        rest = [word.lower() for word in words[1:]]
        if words[0].lower() != "match" or not rest:
            return False
        bare = rest[1:] if rest[0] in {"ip", "ipv6"} else rest
        if bare and bare[0] in {"dscp", "precedence"}:
            values = units.all_of(bare[1:], units.codepoints if bare[0] == "dscp" else _precedence)
            if values is None:
                return False
            class_map.codes |= values
        else:
            class_map.other.append((line, " ".join(words)))
        return self._account.take(line, class_map.lines)

    def _open_policy(self, line: int, words: list[str]) -> bool:
        self._leave()
        kind = "quality-of-service"
        if words[0].lower() == "type" and len(words) > 2:
            kind, words = words[1].lower(), words[2:]
        if kind not in {"quality-of-service", "qos"}:
            self._skipped = f"not about queues of interfaces: a policy of type {kind}"
            return self._account.ignore(line, self._skipped)
        if len(words) != 1:
            return False
        self._policy = words[0]
        self.policies.setdefault(words[0], {})
        return self._account.take(line, self.policy_lines.setdefault(words[0], set()))

    def _policy_line(self, line: int, words: list[str]) -> bool:
        head = words[0].lower()
        if head == "class" and len(words) == 2:
            self._class = self.policies[self._policy].setdefault(words[1], PolicyClass(words[1], line))
            return self._account.take(line, self._class.lines)
        entry = self._class
        if entry is None:
            return False
        if head == "set" and len(words) == 3 and words[1].lower() == "traffic-class":
            value = units.whole(words[2])
            if value is None or value >= QUEUES:
                return False
            entry.traffic_class = (value, line)
            return self._account.take(line, entry.lines)
        if head == "set":
            return self._account.ignore(line, MARKING)
        meter = policer(line, words, self._account) if head == "police" else None
        if meter is None:
            return False
        entry.meter = meter
        return self._account.take(line, entry.lines)

    # Maps

    def _qos(self, line: int, words: list[str]) -> bool:
        rest = [word.lower() for word in words[2:]]
        match [words[1].lower(), *rest]:
            case ["profile", _]:
                self._leave()
                self._holder = self.profiles.setdefault(words[2], Holder(words[2], line))
                return self._account.take(line, self._holder.lines)
            case ["map", *_]:
                return self._map(line, rest)
            case ["rewrite", *_]:
                return self._account.ignore(line, MARKING)
            case ["random-detect", "ecn", "allow", "non-ect", *_]:
                self.passes = line
                return self._account.understand(line)
            case ["random-detect", *_]:
                text = f"`{' '.join(words)}`: thresholds of a buffer that ports share are not simulated"
                return self._account.find("W09", line, text)
        return False

    def _map(self, line: int, words: list[str]) -> bool:
        if "to" not in words or len(words) < 4:
            return False
        at = words.index("to")
        kind, values, target = words[0], words[1:at], words[at + 1 :]
        if kind == "dscp" and target[:1] == ["traffic-class"] and len(target) in {2, 4}:
            codes = units.all_of(values)
            number = units.whole(target[1])
            precedence = 0
            if number is None or number >= QUEUES or codes is None:
                return False
            if len(target) == 4:
                if target[2] != "drop-precedence" or target[3] not in {"0", "1", "2"}:
                    return False
                precedence = int(target[3])
            for code in codes:
                self.by_codepoint[code] = (number, precedence, line)
            return self._account.understand(line)
        to_queue = target[:1] in (["tx-queue"], ["uc-tx-queue"]) and len(target) == 2
        if kind in {"traffic-class", "tc"} and to_queue:
            numbers = [units.whole(word) for word in values]
            queue = units.whole(target[1])
            if queue is None or queue >= QUEUES or not numbers or any(n is None for n in numbers):
                return False
            for one in numbers:
                self.by_class[one or 0] = (queue, line)
            return self._account.understand(line)
        if target[:1] == ["mc-tx-queue"]:
            return self._account.ignore(line, MULTICAST)
        if kind == "cos":
            return self._account.ignore(line, "queues are chosen by codepoint here")
        return self._account.ignore(line, MARKING)

    # Interfaces and profiles

    def _open_queue(self, holder: Holder, line: int, words: list[str], depth: int) -> bool:
        number = units.whole(words[1])
        if number is None or number >= QUEUES:
            self._queue = None
            return False
        multicast, queue = words[0].lower() == "mc-tx-queue", TxQueue(number, line)
        if not multicast:
            queue = holder.queues.setdefault(number, queue)
        self._queue, self._depth = QueueReader(queue, self._account), depth
        return self._account.ignore(line, MULTICAST) if multicast else self._account.take(line, queue.lines)

    def _holder_line(self, holder: Holder, line: int, words: list[str], depth: int) -> bool:
        queue = self._queue
        if queue is not None and not (depth <= self._depth and self._depth > 0):
            if queue.command(line, words):
                if queue.queue is not holder.queues.get(queue.queue.number):
                    return self._account.ignore(line, MULTICAST)
                return self._account.take(line, queue.queue.lines)
            if depth > self._depth > 0:
                return False
        self._queue = None
        return self._own_line(holder, line, words)

    def _own_line(self, holder: Holder, line: int, words: list[str]) -> bool:
        head, text = words[0].lower(), " ".join(words)
        rest = [word.lower() for word in words[1:]]
        if head == "description":
            return self._account.comment(line)
        if head == "shape" and rest[:1] == ["rate"]:
            found, left = rate(rest[1:], line, text, "kbps", self._account)
            if found is None or left:
                return False
            if holder.shape is not None and holder.shape.text != text:
                said = f"`{holder.shape.text}` is replaced by `{text}` further down"
                self._account.find("W17", holder.shape.line, said)
            holder.shape = found
            return self._account.take(line, holder.lines)
        if head == "bandwidth" and len(rest) == 1 and units.number(rest[0]):
            holder.bandwidth = Rate(float(rest[0]) * 1e3, line=line, text=text)
            return self._account.take(line, holder.lines)
        if head == "speed" and rest and (bps := _speed(rest[-1])):
            holder.speed = Rate(bps, line=line, text=text)
            return self._account.take(line, holder.lines)
        if (head == "service-profile" and len(words) == 2) or (head == "qos" and rest[:1] == ["profile"]):
            holder.profile = (words[-1], line)
            return self._account.take(line, holder.lines)
        if head == "service-policy":
            names = words[3:] if rest[:1] == ["type"] else words[1:]
            if len(names) == 2 and names[0].lower() == "input":
                holder.policies.append((names[1], line))
                return self._account.take(line, holder.lines)
            if len(names) == 2 and names[0].lower() == "output":
                return self._account.miss(line, "policies of departing packets are not simulated")
            return False
        if head == "priority-flow-control":
            return self._account.find("W09", line, f"`{text}`: flow control is not simulated")
        if head == "qos" and rest[:1] in (["trust"], ["cos"], ["dscp"]):
            text = "how arriving packets are classified; their codepoints decide here"
            return self._account.ignore(line, text)
        if head in {"no", "default"} and rest[:2] == ["shape", "rate"]:
            holder.shape = None
            return self._account.take(line, holder.lines)
        if head in OTHERS or (head == "no" and rest[:1] not in (["qos"], ["tx-queue"])):
            return self._account.ignore(line, "not about queues")
        return False


def _precedence(word: str) -> frozenset[int] | None:
    value = units.precedence(word)
    return None if value is None else units.of_precedence(value)


def _opens(words: list[str]) -> bool:
    """Whether a line opens a block, whatever is open."""
    head = words[0].lower()
    if head == "qos":
        return len(words) > 1 and words[1].lower() in {"map", "profile"}
    return head in {"class-map", "policy-map", "interface"}


def _speed(word: str) -> float | None:
    """The rate of `100g-4`, `10gfull`, `1000full` or `25g`.

    >>> _speed("100g-4"), _speed("1000full"), _speed("25g"), _speed("auto")
    (100000000000.0, 1000000000.0, 25000000000.0, None)
    """
    found = re.fullmatch(r"(\d{1,6}(?:\.\d)?)(g?)(?:full|half|-\d+)?", word)
    return None if found is None else float(found[1]) * (1e9 if found[2] else 1e6) or None
