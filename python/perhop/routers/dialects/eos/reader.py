"""Arista EOS: class maps, policies, QoS profiles and the transmit queues of interfaces.

A codepoint leads to a traffic class (`qos map dscp`, or `set traffic-class` of a policy), this to a transmit
queue (`qos map traffic-class … to tx-queue`). Structure comes from keywords; indentation counts for one line
only: `shape rate` is the interface's own if it is no deeper than `tx-queue`. Source: Arista EOS User
Manual, chapter "Quality of Service"; defaults of maps are those of its tables for Trident and Jericho.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

from perhop.routers import units
from perhop.routers.dialects.eos.queues import (
    PRECEDENCES,
    ClassMap,
    Holder,
    PolicyClass,
    QueueReader,
    TxQueue,
    ecn_mode,
    policer,
    rate,
)
from perhop.routers.model import ALL_CODEPOINTS, Drop, How, Match, Port, Queue, Rate, RateUnit, Selector
from perhop.routers.syntax.cli import OTHER_LINES, about_queues, words_of

if TYPE_CHECKING:
    from perhop.routers.source import Account, Source

DEFAULT_CLASSES = (1, 0, 2, 3, 4, 5, 6, 7)
"""The traffic class of codepoints 0 to 7, 8 to 15 and so on."""
QUEUES = 8
OTHERS = OTHER_LINES | {
    "evpn", "isis", "l2", "link-debounce", "multicast", "phone", "pim", "poe", "ptp", "sflow",
    "error-correction", "transceiver", "unidirectional", "traffic-policy", "vlan", "vxlan", "mlag",
    "mode", "address",
}  # fmt: skip
"""Commands of interfaces that are known not to be about queues."""
OUTSIDE = ("hostname", "version", "boot", "ip", "ipv6", "router", "vlan", "management", "username", "daemon")
"""Commands outside of interfaces that end whatever comes before them."""


class Reader:
    """Reads a configuration."""

    def __init__(self, source: Source, account: Account) -> None:
        """Findings go to the account."""
        self._source = source
        self._account = account
        self.class_maps: dict[str, ClassMap] = {}
        self.policies: dict[str, dict[str, PolicyClass]] = {}
        self._policy_lines: dict[str, set[int]] = {}
        self.profiles: dict[str, Holder] = {}
        self.interfaces: dict[str, Holder] = {}
        self._by_codepoint: dict[int, tuple[int, int, int]] = {}
        """Traffic class, drop precedence, line."""
        self._by_class: dict[int, tuple[int, int]] = {}
        """Transmit queue and line."""
        self._passes: int = 0
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

    def read(self) -> list[Port]:
        """A port for each interface with queues or policers, and for each profile that none has."""
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
        return self._ports()

    def _not_read(self, line: int, words: list[str], depth: int) -> None:
        """A line that is not understood: lost, if it is where queues are configured."""
        inside = self._class_map is not None or bool(self._policy) or self._queue is not None
        about = about_queues(words)
        if (
            (inside and (depth > 0 or about))
            or (self._holder is not None and about)
            or words[0].lower() == "qos"
        ):
            self._account.miss(line)
        else:
            self._account.ignore(line)

    def _leave(self) -> None:
        self._class_map = self._class = self._holder = self._queue = None
        self._policy = self._skipped = ""
        self._depth = 0

    def _take(self, line: int, lines: set[int]) -> bool:
        self._account.understand(line)
        lines.add(line)
        return True

    def _line(self, line: int, words: list[str], depth: int) -> bool:
        head = words[0].lower()
        if head == "class-map" and len(words) > 1:
            return self._open_class_map(line, words[1:])
        if head == "policy-map" and len(words) > 1:
            return self._open_policy(line, words[1:])
        if (
            head == "qos"
            and len(words) > 1
            and words[1].lower() in {"map", "profile", "rewrite", "random-detect"}
        ):
            return self._qos(line, words)
        if head == "interface" and len(words) > 1:
            self._leave()
            name = "".join(words[1:])
            self._holder = self.interfaces.setdefault(name, Holder(name, line))
            return self._take(line, self._holder.lines)
        if (
            head in {"tx-queue", "uc-tx-queue", "mc-tx-queue"}
            and self._holder is not None
            and len(words) == 2
        ):
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
                self._account.ignore(line, self._skipped)
                return True
            words = words[2:]
        if words[0].lower() in {"match-any", "match-all"} and len(words) > 1:
            words = words[1:]
        if len(words) != 1:
            return False
        self._class_map = self.class_maps.setdefault(words[0], ClassMap(words[0], line))
        return self._take(line, self._class_map.lines)

    def _match(self, class_map: ClassMap, line: int, words: list[str]) -> bool:
        if words[0].lower() == "description":
            self._account.comment(line)
            return True
        rest = [word.lower() for word in words[1:]]
        if words[0].lower() != "match" or not rest:
            return False
        bare = rest[1:] if rest[0] in {"ip", "ipv6"} else rest
        values: set[int] = set()
        for word in bare[1:]:
            if bare[0] == "dscp":
                found = units.codepoints(word)
            elif bare[0] == "precedence":
                value = units.precedence(word)
                found = None if value is None else frozenset(units.of_precedence(value))
            else:
                break
            if found is None:
                return False
            values |= found
        if bare and bare[0] in {"dscp", "precedence"}:
            if not values:
                return False
            class_map.codes |= values
        else:
            class_map.other.append((line, " ".join(words)))
        return self._take(line, class_map.lines)

    def _open_policy(self, line: int, words: list[str]) -> bool:
        self._leave()
        kind = "quality-of-service"
        if words[0].lower() == "type" and len(words) > 2:
            kind, words = words[1].lower(), words[2:]
        if kind not in {"quality-of-service", "qos"}:
            self._skipped = f"not about queues of interfaces: a policy of type {kind}"
            self._account.ignore(line, self._skipped)
            return True
        if len(words) != 1:
            return False
        self._policy = words[0]
        self.policies.setdefault(words[0], {})
        return self._take(line, self._policy_lines.setdefault(words[0], set()))

    def _policy_line(self, line: int, words: list[str]) -> bool:
        head = words[0].lower()
        if head == "class" and len(words) == 2:
            found = self.policies[self._policy].setdefault(words[1], PolicyClass(words[1], line))
            self._class = found
            return self._take(line, found.lines)
        entry = self._class
        if entry is None:
            return False
        if head == "set" and len(words) == 3 and words[1].lower() == "traffic-class":
            value = units.whole(words[2])
            if value is None or value >= QUEUES:
                return False
            entry.traffic_class = (value, line)
            return self._take(line, entry.lines)
        if head == "set":
            self._account.ignore(line, "marking of packets is not simulated")
            return True
        if head == "police":
            meter = policer(line, words, self._account)
            if meter is None:
                return False
            entry.meter = meter
            return self._take(line, entry.lines)
        return False

    # Maps

    def _qos(self, line: int, words: list[str]) -> bool:
        rest = [word.lower() for word in words[2:]]
        match words[1].lower():
            case "profile" if len(words) == 3:
                self._leave()
                self._holder = self.profiles.setdefault(words[2], Holder(words[2], line))
                return self._take(line, self._holder.lines)
            case "map":
                return self._map(line, rest)
            case "rewrite":
                self._account.ignore(line, "marking of packets is not simulated")
                return True
            case "random-detect" if rest[:3] == ["ecn", "allow", "non-ect"]:
                self._passes = line
                self._account.understand(line)
                return True
            case "random-detect":
                text = f"`{' '.join(words)}`: thresholds of a buffer that ports share are not simulated"
                self._account.find("W09", line, text)
                return True
        return False

    def _map(self, line: int, words: list[str]) -> bool:
        if "to" not in words or len(words) < 4:
            return False
        at = words.index("to")
        kind, values, target = words[0], words[1:at], words[at + 1 :]
        if kind == "dscp" and target[:1] == ["traffic-class"] and len(target) in {2, 4}:
            codes: set[int] = set()
            for word in values:
                found = units.codepoints(word)
                if found is None:
                    return False
                codes |= found
            number = units.whole(target[1])
            precedence = 0
            if len(target) == 4:
                if target[2] != "drop-precedence" or target[3] not in {"0", "1", "2"}:
                    return False
                precedence = int(target[3])
            if number is None or number >= QUEUES or not codes:
                return False
            for code in codes:
                self._by_codepoint[code] = (number, precedence, line)
            self._account.understand(line)
            return True
        if (
            kind in {"traffic-class", "tc"}
            and target[:1] in (["tx-queue"], ["uc-tx-queue"])
            and len(target) == 2
        ):
            numbers = [units.whole(word) for word in values]
            queue = units.whole(target[1])
            if queue is None or queue >= QUEUES or not numbers or any(n is None for n in numbers):
                return False
            for one in numbers:
                self._by_class[one or 0] = (queue, line)
            self._account.understand(line)
            return True
        why = (
            "queues are chosen by codepoint here" if kind == "cos" else "marking of packets is not simulated"
        )
        why = "queues of multicast are not simulated" if target[:1] == ["mc-tx-queue"] else why
        self._account.ignore(line, why)
        return True

    # Interfaces and profiles

    def _open_queue(self, holder: Holder, line: int, words: list[str], depth: int) -> bool:
        number = units.whole(words[1])
        if number is None or number >= QUEUES:
            self._queue = None
            return False
        if words[0].lower() == "mc-tx-queue":
            self._queue = QueueReader(TxQueue(number, line), self._account)
            self._depth = depth
            self._account.ignore(line, "queues of multicast are not simulated")
            return True
        queue = holder.queues.setdefault(number, TxQueue(number, line))
        self._queue, self._depth = QueueReader(queue, self._account), depth
        return self._take(line, queue.lines)

    def _holder_line(self, holder: Holder, line: int, words: list[str], depth: int) -> bool:
        queue = self._queue
        if queue is not None and not (depth <= self._depth and self._depth > 0):
            if queue.command(line, words):
                multicast = queue.queue is not holder.queues.get(queue.queue.number)
                if multicast:
                    self._account.ignore(line, "queues of multicast are not simulated")
                return multicast or self._take(line, queue.queue.lines)
            if depth > self._depth > 0:
                return False
        self._queue = None
        return self._own_line(holder, line, words)

    def _own_line(self, holder: Holder, line: int, words: list[str]) -> bool:
        head, text = words[0].lower(), " ".join(words)
        rest = [word.lower() for word in words[1:]]
        if head == "description":
            self._account.comment(line)
            return True
        if head == "shape" and rest[:1] == ["rate"]:
            found, left = rate(rest[1:], line, text, "kbps", self._account)
            if found is None or left:
                return False
            if holder.shape is not None and holder.shape.text != text:
                said = f"`{holder.shape.text}` is replaced by `{text}` further down"
                self._account.find("W17", holder.shape.line, said)
            holder.shape = found
            return self._take(line, holder.lines)
        if head == "bandwidth" and len(rest) == 1 and units.number(rest[0]):
            holder.bandwidth = Rate(float(rest[0]) * 1e3, RateUnit.BPS, line, text=text)
            return self._take(line, holder.lines)
        if head == "speed" and rest and (bps := _speed(rest[-1])):
            holder.speed = Rate(bps, RateUnit.BPS, line, text=text)
            return self._take(line, holder.lines)
        if (head == "service-profile" and len(words) == 2) or (head == "qos" and rest[:1] == ["profile"]):
            holder.profile = (words[-1], line)
            return self._take(line, holder.lines)
        if head == "service-policy":
            names = words[3:] if rest[:1] == ["type"] else words[1:]
            if len(names) == 2 and names[0].lower() == "input":
                holder.policies.append((names[1], line))
                return self._take(line, holder.lines)
            if len(names) == 2 and names[0].lower() == "output":
                self._account.miss(line, "policies of departing packets are not simulated")
                return True
            return False
        if head == "priority-flow-control":
            self._account.find("W09", line, f"`{text}`: flow control is not simulated")
            return True
        if head == "qos" and rest[:1] in (["trust"], ["cos"], ["dscp"]):
            self._account.ignore(line, "how arriving packets are classified; their codepoints decide here")
            return True
        if head in {"no", "default"} and rest[:2] == ["shape", "rate"]:
            holder.shape = None
            return self._take(line, holder.lines)
        if head in OTHERS or (head == "no" and rest[:1] not in (["qos"], ["tx-queue"])):
            self._account.ignore(line, "not about queues")
            return True
        return False

    # Ports

    def _ports(self) -> list[Port]:
        ports: list[Port] = []
        used: set[str] = set()
        for interface in self.interfaces.values():
            profile = None
            if interface.profile is not None:
                name, line = interface.profile
                profile = self.profiles.get(name)
                used.add(name)
                if profile is None:
                    self._account.find("W15", line, f"QoS profile {name} is not defined")
            port = self._output(interface, profile)
            if port is not None:
                ports.append(port)
            ports += self._inputs(interface)
        for name, profile in self.profiles.items():
            if name not in used:
                self._account.find("W15", profile.line, f"QoS profile {name} is attached to no interface")
                port = self._output(profile, None)
                if port is not None:
                    port.attached = False
                    ports.append(port)
        return ports

    def _inputs(self, interface: Holder) -> list[Port]:
        """The policers of arriving packets."""
        ports: list[Port] = []
        for name, line in interface.policies:
            policy = self.policies.get(name)
            if policy is None:
                self._account.find("W15", line, f"policy map {name} is not defined")
                continue
            meters = [entry for entry in policy.values() if entry.meter is not None]
            if not meters:
                continue
            port = Port(interface.name, interface.line, "input", rate=interface.bandwidth or interface.speed)
            port.lines |= interface.lines | self._policy_lines[name]
            for entry in policy.values():
                port.lines |= entry.lines
                with self._account.of_port(port.findings):
                    match = self._matched(entry, port)
                if entry.meter is not None:
                    port.meters.append((match, entry.name, entry.meter))
            ports.append(port)
        return ports

    def _matched(self, entry: PolicyClass, port: Port) -> Match:
        if entry.name == "class-default":
            return Match(None, (), entry.line)
        found = self.class_maps.get(entry.name)
        if found is None:
            self._account.find("W15", entry.line, f"class map {entry.name} is not defined")
            return Match(None, ((entry.line, f"class {entry.name}"),), entry.line)
        port.lines |= found.lines
        if found.codes:
            return Match(frozenset(found.codes), tuple(found.other), found.line)
        other = tuple(found.other) or ((found.line, f"class {entry.name}"),)
        return Match(None, other, found.line)

    def _output(self, own: Holder, profile: Holder | None) -> Port | None:
        queues = dict(profile.queues) if profile is not None else {}
        for number, queue in own.queues.items():
            below = queues.get(number)
            queues[number] = queue if below is None else queue.over(below, self._account)
        shape = own.shape or (profile.shape if profile is not None else None)
        if not queues and shape is None:
            return None
        port = Port(own.name, own.line, default_name="other")
        port.lines |= own.lines
        if profile is not None:
            port.lines |= profile.lines
            if own.shape is not None and profile.shape is not None:
                text = f"`{profile.shape.text}` of the profile is replaced by"
                text += f" `{own.shape.text}` of the interface"
                self._account.find("W17", profile.shape.line, text)
        port.rate = own.bandwidth or own.speed
        if own.bandwidth is not None and own.speed is not None:
            text = f"`{own.speed.text}` has no effect here beside `{own.bandwidth.text}`"
            self._account.find("W13", own.speed.line, text)
        port.shaper = shape
        with self._account.of_port(port.findings):
            self._queues(port, queues)
        return port

    def _queues(self, port: Port, queues: dict[int, TxQueue]) -> None:
        codes, precedences = self._codepoints(port)
        if not queues:
            port.queues = [Queue("all", port.line)]
            return
        left = {number for number in codes if number not in queues}
        shared = {number for number, queue in queues.items() if queue.strict is False}
        floor = max(shared, default=-1)
        made = []
        for number in sorted(queues, reverse=True):
            queue = queues[number]
            port.lines |= queue.lines
            strict = number > floor if queue.strict is None else queue.strict
            if strict and queue.percent is not None:
                if queue.strict is None:
                    text = f"tx-queue {number}: strict priority is the default; with `{queue.percent.text}`"
                    self._account.find("W17", queue.percent.line, f"{text} it shares, as with `no priority`")
                    strict = False
                else:
                    text = f"tx-queue {number}: `{queue.percent.text}` has no effect beside strict priority"
                    self._account.find("W17", queue.percent.line, text)
            made.append(self._tx_queue(port, queue, codes.get(number, set()), precedences, strict=strict))
        self._shares(made)
        best = next((queue for queue in made if 0 in (queue.match.codepoints or ())), None)
        if left:
            names = ", ".join(map(str, sorted(left)))
            noun = "tx-queues" if len(left) > 1 else "tx-queue"
            verb = "are" if len(left) > 1 else "is"
            where = f"queue {best.name}" if best is not None else "a queue of their own"
            text = f"{noun} {names} {verb} not configured, which is strict priority"
            self._account.find("W06", port.line, f"{text}: their packets are in {where} here")
        if best is not None:
            made.remove(best)
            made.append(best)
            best.match = Match(None, (), best.match.line)
        port.queues = made

    @cached_property
    def _attached(self) -> dict[str, int]:
        """The policies that interfaces have, each with the line of the last one."""
        return {name: line for i in self.interfaces.values() for name, line in i.policies}

    def _codepoints(self, port: Port) -> tuple[dict[int, set[int]], dict[int, int]]:
        """The codepoints of each transmit queue, and the drop precedence of each."""
        classes = {code: (DEFAULT_CLASSES[code // 8], 0, 0) for code in ALL_CODEPOINTS}
        classes |= self._by_codepoint
        for name in self._attached:
            for entry in self.policies.get(name, {}).values():
                found = self.class_maps.get(entry.name)
                if entry.traffic_class is None or found is None:
                    continue
                number, line = entry.traffic_class
                for place, text in found.other:
                    self._account.find("W13", place, f"class {entry.name}: `{text}` is no codepoint")
                policed = set() if entry.meter is None else {entry.meter.line}
                port.lines |= found.lines | self._policy_lines[name] | (entry.lines - policed)
                for code in found.codes:
                    classes[code] = (number, classes[code][1], line)
        if any(line == 0 for _, _, line in classes.values()):
            text = "codepoints that no `qos map dscp` names have the classes of Trident and Jericho switches"
            self._account.find("W04", port.line, text)
        port.lines.update(line for _, _, line in classes.values() if line)
        result: dict[int, set[int]] = {}
        for code, (number, _, _) in classes.items():
            queue, line = self._by_class.get(number, (number, 0))
            port.lines.add(line)
            result.setdefault(queue, set()).add(code)
        port.lines.discard(0)
        port.lines.update(line for _, line in self._by_class.values())
        return result, {code: precedence for code, (_, precedence, _) in classes.items()}

    def _tx_queue(
        self, port: Port, given: TxQueue, codes: set[int], precedences: dict[int, int], *, strict: bool
    ) -> Queue:
        queue = Queue(str(given.number), given.line)
        queue.match = Match(frozenset(codes), (), given.line)
        if strict:
            queue.level, queue.level_line = QUEUES - 1 - given.number, given.strict_line or given.line
        queue.guarantee, queue.ceiling, queue.limit = given.guarantee, given.ceiling, given.limit
        queue.share = None if strict else given.percent
        if queue.limit is None:
            text = f"tx-queue {given.number}: its buffer is shared with others; a fixed limit here"
            self._account.find("W09", given.line, text)
        queue.average = given.average
        if given.drops and given.marks is not None:
            ramp = given.marks
            text = f"tx-queue {given.number}: a queue with curves that drop has no other one that marks here"
            self._account.find("W08", ramp.line, f"{text}: `{ramp.text}` is left out")
        if given.drops:
            queue.curves = _drops(given, codes, precedences)
        elif given.marks is not None:
            queue.curves = [Drop(Selector("all"), given.marks.curve)]
            queue.ecn, queue.ecn_line = ecn_mode(passes=bool(self._passes)), given.marks.line
            if self._passes:
                port.lines.add(self._passes)
                text = "packets without ECN pass, above max, too"
            else:
                text = "packets without ECN are dropped on the same curve here"
                text += '; where they pass write ecn = "mark-only"'
            self._account.find("W08", given.marks.line, f"tx-queue {given.number}: {text}")
        return queue

    def _shares(self, queues: list[Queue]) -> None:
        """Queues that share and say no percentage have equal parts of what others leave."""
        sharing = [queue for queue in queues if queue.level is None and queue.guarantee is None]
        unsaid = [queue for queue in sharing if queue.share is None]
        said = sum(queue.share.number for queue in sharing if queue.share is not None)
        if unsaid and said:
            part = max(100 - said, 1.0) / len(unsaid)
            for queue in unsaid:
                queue.share = Rate(
                    max(1, round(part)), RateUnit.REMAINING_PERCENT, 0, How.DEFAULT, "equal parts of the rest"
                )
                text = f"tx-queue {queue.name}: no `bandwidth percent`: an equal part of what others leave"
                self._account.find("W04", queue.line, text)


def _drops(given: TxQueue, codes: set[int], precedences: dict[int, int]) -> list[Drop]:
    """The curves of drop precedences; one of all packets is for those precedences that have none."""
    ramps = {ramp.precedence: ramp for ramp in given.drops}
    if set(ramps) == {None}:
        return [Drop(Selector("all"), ramps[None].curve)]
    result = []
    for precedence, color in enumerate(PRECEDENCES):
        ramp = ramps.get(precedence) or ramps.get(None)
        if ramp is not None:
            own = frozenset(code for code in codes if precedences[code] == precedence)
            selector = Selector(f"drop precedence {precedence}", own or None, color)
            result.append(Drop(selector, ramp.curve))
    return result


def _opens(words: list[str]) -> bool:
    """Whether a line opens a block, whatever is open."""
    head = words[0].lower()
    return head in {"class-map", "policy-map", "interface"} or (
        head == "qos" and len(words) > 1 and words[1].lower() in {"map", "profile"}
    )


def _speed(word: str) -> float | None:
    """The rate of `100g-4`, `10gfull`, `1000full` or `25g`.

    >>> _speed("100g-4"), _speed("1000full"), _speed("25g"), _speed("auto")
    (100000000000.0, 1000000000.0, 25000000000.0, None)
    """
    found = re.fullmatch(r"(\d{1,6}(?:\.\d)?)(g?)(?:full|half|-\d+)?", word)
    return None if found is None else float(found[1]) * (1e9 if found[2] else 1e6) or None


def read(source: Source, account: Account) -> list[Port]:
    """The ports of a configuration."""
    return Reader(source, account).read()
