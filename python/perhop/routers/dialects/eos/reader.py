"""Arista EOS as ports: a codepoint leads to a traffic class, and this to a transmit queue."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from perhop.routers import model
from perhop.routers.curves import COLORS
from perhop.routers.dialects.eos.definitions import QUEUES, Definitions
from perhop.routers.dialects.eos.queues import Holder, PolicyClass, TxQueue
from perhop.routers.model import Drop, Ecn, How, Match, Port, PortQueue, Rate, RateUnit, Selector

if TYPE_CHECKING:
    from perhop.routers.source import Account, Source

DEFAULT_CLASSES = (1, 0, 2, 3, 4, 5, 6, 7)
"""The traffic class of codepoints 0 to 7, 8 to 15 and so on."""


class _Ports:
    def __init__(self, found: Definitions, account: Account) -> None:
        self._found = found
        self._account = account

    def ports(self) -> list[Port]:
        """A port for each interface with queues or policers, and for each profile that none has."""
        ports: list[Port] = []
        used: set[str] = set()
        for interface in self._found.interfaces.values():
            name, line = interface.profile or ("", 0)
            profile = self._found.profiles.get(name)
            used.add(name)
            if interface.profile and profile is None:
                self._account.find("W15", line, f"QoS profile {name} is not defined")
            ports += [*self._output(interface, profile), *self._inputs(interface)]
        for name, profile in self._found.profiles.items():
            if name not in used:
                self._account.find("W15", profile.line, f"QoS profile {name} is attached to no interface")
                ports += [replace(port, attached=False) for port in self._output(profile, None)]
        return ports

    def _inputs(self, interface: Holder) -> list[Port]:
        ports: list[Port] = []
        for name, line in interface.policies:
            policy = self._account.defined(self._found.policies, name, line, "policy map")
            if policy is None:
                continue
            if all(entry.meter is None for entry in policy.values()):
                continue
            port = Port(interface.name, interface.line, "input", rate=interface.bandwidth or interface.speed)
            port.lines |= interface.lines | self._found.policy_lines[name]
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
        found = self._found.class_maps.get(entry.name)
        if found is None:
            self._account.find("W15", entry.line, f"class map {entry.name} is not defined")
            return Match(None, ((entry.line, f"class {entry.name}"),), entry.line)
        port.lines |= found.lines
        if found.codes:
            return Match(frozenset(found.codes), tuple(found.other), found.line)
        return Match(None, tuple(found.other) or ((found.line, f"class {entry.name}"),), found.line)

    def _output(self, own: Holder, profile: Holder | None) -> list[Port]:
        """The port of transmit queues; none without queues and without a shaper."""
        queues = dict(profile.queues) if profile is not None else {}
        for number, queue in own.queues.items():
            below = queues.get(number)
            queues[number] = queue if below is None else queue.over(below, self._account)
        shape = own.shape or (profile.shape if profile is not None else None)
        if not queues and shape is None:
            return []
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
        return [port]

    def _queues(self, port: Port, queues: dict[int, TxQueue]) -> None:
        codes, precedences = self._codepoints(port)
        if not queues:
            port.queues = [PortQueue("all", port.line)]
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
            where = f"queue {best.name}" if best is not None else "a queue of their own"
            which = f"tx-queues {names} are" if len(left) > 1 else f"tx-queue {names} is"
            text = f"{which} not configured, which is strict priority"
            self._account.find("W06", port.line, f"{text}: their packets are in {where} here")
        if best is not None:
            made.remove(best)
            made.append(best)
            best.match = Match(None, (), best.match.line)
        port.queues = made

    @cached_property
    def _attached(self) -> dict[str, int]:
        return {name: line for i in self._found.interfaces.values() for name, line in i.policies}

    def _codepoints(self, port: Port) -> tuple[dict[int, set[int]], dict[int, int]]:
        """The codepoints of each transmit queue, and the drop precedence of each."""
        classes = {code: (DEFAULT_CLASSES[code // 8], 0, 0) for code in model.ALL_CODEPOINTS}
        classes |= self._found.by_codepoint
        for name in self._attached:
            for entry in self._found.policies.get(name, {}).values():
                found = self._found.class_maps.get(entry.name)
                if entry.traffic_class is None or found is None:
                    continue
                number, line = entry.traffic_class
                for place, text in found.other:
                    self._account.find("W13", place, f"class {entry.name}: `{text}` is no codepoint")
                policed = set() if entry.meter is None else {entry.meter.line}
                port.lines |= found.lines | self._found.policy_lines[name] | (entry.lines - policed)
                for code in found.codes:
                    classes[code] = (number, classes[code][1], line)
        if any(line == 0 for _, _, line in classes.values()):
            text = "codepoints that no `qos map dscp` names have the classes of Trident and Jericho switches"
            self._account.find("W04", port.line, text)
        port.lines.update(line for _, _, line in classes.values() if line)
        result: dict[int, set[int]] = {}
        for code, (number, _, _) in classes.items():
            queue, line = self._found.by_class.get(number, (number, 0))
            port.lines.add(line)
            result.setdefault(queue, set()).add(code)
        port.lines.discard(0)
        port.lines.update(line for _, line in self._found.by_class.values())
        return result, {code: precedence for code, (_, precedence, _) in classes.items()}

    def _tx_queue(
        self, port: Port, given: TxQueue, codes: set[int], precedences: dict[int, int], *, strict: bool
    ) -> PortQueue:
        queue = PortQueue(str(given.number), given.line, match=Match(frozenset(codes), (), given.line))
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
            text = "packets without ECN are dropped on the same curve here; where they pass write"
            text += ' ecn = "mark-only"'
            queue.ecn, queue.ecn_line = Ecn.ALWAYS, given.marks.line
            if self._found.passes:
                port.lines.add(self._found.passes)
                text, queue.ecn = "packets without ECN pass, above max, too", Ecn.ONLY
            self._account.find("W08", given.marks.line, f"tx-queue {given.number}: {text}")
        return queue

    def _shares(self, queues: list[PortQueue]) -> None:
        """Queues that share and say no percentage have equal parts of what others leave."""
        sharing = [queue for queue in queues if queue.level is None and queue.guarantee is None]
        unsaid = [queue for queue in sharing if queue.share is None]
        said = sum(queue.share.number for queue in sharing if queue.share is not None)
        if unsaid and said:
            part = max(100 - said, 1.0) / len(unsaid)
            for queue in unsaid:
                number, text = max(1, round(part)), "equal parts of the rest"
                queue.share = Rate(number, RateUnit.REMAINING_PERCENT, 0, How.DEFAULT, text)
                text = f"tx-queue {queue.name}: no `bandwidth percent`: an equal part of what others leave"
                self._account.find("W04", queue.line, text)


def _drops(given: TxQueue, codes: set[int], precedences: dict[int, int]) -> list[Drop]:
    """The curves of drop precedences; one of all packets is for those precedences that have none."""
    ramps = {ramp.precedence: ramp for ramp in given.drops}
    if set(ramps) == {None}:
        return [Drop(Selector("all"), ramps[None].curve)]
    result = []
    for precedence, color in enumerate(COLORS):
        ramp = ramps.get(precedence) or ramps.get(None)
        if ramp is not None:
            own = frozenset(code for code in codes if precedences[code] == precedence)
            result.append(Drop(Selector(f"drop precedence {precedence}", own or None, color), ramp.curve))
    return result


def read(source: Source, account: Account) -> list[Port]:
    """The ports of a configuration."""
    found = Definitions(source, account)
    found.read()
    return _Ports(found, account).ports()
