"""OpenConfig's QoS model as JSON (openconfig-qos, with queue management of revision 2026-04-30)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from perhop.routers import model, units
from perhop.routers.dialect import Dialect
from perhop.routers.model import Ecn, How, Match, Port, PortMeter, PortQueue, Quantity, Rate, RateUnit, Unit
from perhop.routers.syntax import jsontree
from perhop.routers.syntax.jsontree import NOTHING, Node

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perhop.routers.model import Action
    from perhop.routers.source import Account, Source

UNIFORM = ("uniform", "config")
RATES = ("one-rate-two-color", "two-rate-three-color")
ACTIONS = ("conform-action", "exceed-action", "violate-action")
RATE_KEYS = {"cir", "cir-pct", "pir", "pir-pct", "bc", "be", "queuing-behavior"}
KNOWN = {
    "name", "id", "enable-ecn", "drop", "weight", "min-threshold", "max-threshold", "min-threshold-percent",
    "max-threshold-percent", "max-drop-probability-percent",
}  # fmt: skip


class _Reader:
    def __init__(self, source: Source, account: Account) -> None:
        self._account = account
        self._root = NOTHING
        self._attached: dict[str, list[Node]] = {}
        """Classifiers by name, and the attachments of each to interfaces."""
        for index, text in enumerate(source.texts):
            root = jsontree.read(text, source.first(index), account)
            found = root.get("qos") or root.get("openconfig-qos") or root
            for key, member in root.pairs() if root is not found else ():
                if member is not found:
                    for line in {root.keys[key], *member.lines()}:
                        account.ignore(line, "not about queues")
            self._root = self._root or found

    def read(self) -> list[Port]:
        """A port for each interface with queues, and one for what it polices as it arrives."""
        ports = []
        for interface in self._root.objects("interfaces", "interface"):
            for entry in interface.objects("input", "classifiers", "classifier"):
                self._attached.setdefault(entry.get("config", "name").text, []).append(entry)
        for interface in self._root.objects("interfaces", "interface"):
            name = interface.get("interface-id").text or interface.get("config", "interface-id").text
            if not name:
                continue
            found = [self._sent(interface, name), self._arriving(interface, name)]
            ports += [port for port in found if port is not None]
        self._declared(ports)
        return ports

    def _sent(self, interface: Node, name: str) -> Port | None:
        output = interface.get("output")
        if not output:
            return None
        port = Port(name, interface.line, default_name="other")
        self._named_by(port, interface)
        self._unknown(port, output, {"queues", "scheduler-policy", "interface-id", "config"}, "output")
        self._queues(port, output)
        return port if port.queues else None

    def _arriving(self, interface: Node, name: str) -> Port | None:
        given = interface.get("input")
        policy = given.get("scheduler-policy", "config", "name").text
        if not policy:
            return None
        port = Port(f"{name} ingress", given.line, "input")
        self._named_by(port, interface)
        self._take(port, given, "scheduler-policy")
        queues, shared = self._scheduler(port, policy, given.line, every=True)
        for queue in [*queues.values(), *shared]:
            if queue.ceiling is not None:
                text = f"{queue.name}: `{queue.ceiling.text}`: a shaper of packets that arrive"
                self._account.find("W06", queue.ceiling.line, f"{text} is not simulated")
            named = [one.name for one in queue.within or [queue] if one.name]
            match = Match(None, (), queue.line)
            if named:
                match = Match.either([self._match(port, name, queue.line) for name in named], queue.line)
            match = Match(None, (), queue.line) if match.codepoints is None else match
            port.meters += [(match, f"police {queue.name}".rstrip(), meter) for meter in queue.meters]
        return port if port.meters else None

    def _named_by(self, port: Port, interface: Node) -> None:
        for key in ("interface-id", "config", "interface-ref"):
            self._take(port, interface, key)

    def _take(self, port: Port, node: Node, key: str) -> None:
        """Lines of which every word is read."""
        found = node.get(key)
        if found:
            port.lines.update(found.lines())
            port.lines.update(line for name, line in node.keys.items() if name.rpartition(":")[2] == key)

    def _unknown(self, port: Port, node: Node, known: set[str], where: str) -> None:
        """Report the keys that nothing reads, and take the others' lines."""
        port.lines.add(node.line)
        for key, member in node.pairs():
            if key.rpartition(":")[2] in known:
                port.lines.update({node.keys[key], member.line})
                continue
            text = f"{where}: not understood: `{f'{key} {member.text}'.rstrip()}`"
            self._account.miss_part(node.keys[key], text)

    def _declared(self, ports: list[Port]) -> None:
        """The declarations of queues, which have a name only, for the ports that have these."""
        for entry in self._root.objects("queues", "queue"):
            name = _name(entry)
            self._account.understand(*entry.lines())
            for port in ports:
                if any(queue.name == name for queue in port.queues):
                    port.lines.update(entry.lines())
            for key, member in entry.get("config").pairs():
                if key not in {"name", "queue-id"}:
                    text = f"queue {name}: `{key} {member.text}` has no effect here"
                    self._account.find("W13", member.line, text)
            if not any(queue.name == name for port in ports for queue in port.queues):
                self._account.find("W15", entry.line, f"queue {name} is attached to no interface")

    def _classifiers(self, port: Port) -> Iterator[Node]:
        """The classifiers of arriving packets: those attached to an interface, or all if none is."""
        for classifier in self._root.objects("classifiers", "classifier"):
            name = _name(classifier)
            for entry in self._attached.get(name, []):
                port.lines.update({entry.line, *entry.keys.values(), *entry.lines()})
            if self._attached and name not in self._attached:
                self._account.understand(*classifier.lines())
                self._account.find("W15", classifier.line, f"classifier {name} is attached to no interface")
                continue
            yield classifier

    # The tree

    def _word(self, node: Node, path: tuple[str, ...], known: tuple[str, ...]) -> str:
        """One of these words in capitals, without its module; others are reported."""
        found = node.get(*path)
        text = found.text.rpartition(":")[2].upper()
        if found and text not in known:
            self._account.miss_part(found.line, f"not understood: `{path[-1]} {found.text}`")
        return text

    def _named(self, name: str, *path: str) -> Node:
        for entry in self._root.objects(*path):
            if name in {entry.get("name").text, entry.get("config", "name").text}:
                return entry
        return NOTHING

    # Ports

    def _queues(self, port: Port, output: Node) -> None:
        wanted: dict[str, tuple[str, int]] = {}
        for entry in output.objects("queues", "queue"):
            name = _name(entry)
            node = entry.get("config", "queue-management-profile")
            wanted[name] = (node.text, node.line or entry.line)
            self._unknown(port, entry, {"name", "config"}, f"queue {name}")
            if config := entry.get("config"):
                self._unknown(port, config, {"name", "queue-management-profile"}, f"queue {name}")
        self._take(port, output, "scheduler-policy")
        policy = output.get("scheduler-policy", "config", "name").text
        inputs, shared = self._scheduler(port, policy, output.line)
        for name in [n for n in inputs if n not in wanted]:
            wanted[name] = ("", output.line)
        for name, (profile, line) in wanted.items():
            if not name:
                continue
            queue = inputs.get(name) or PortQueue(name, line)
            queue.match = self._match(port, name, line)
            if profile:
                found = self._named(profile, "queue-management-profiles", "queue-management-profile")
                if not found:
                    self._account.find("W15", line, f"queue management profile {profile} is not defined")
                else:
                    port.lines.update(found.lines())
                    self._management(queue, found)
            port.queues.append(queue)
        for group in shared:
            self._share(port, group)
        if port.queues:
            self._account.find("W09", output.line, "buffers may be shared between queues; fixed limits here")

    def _share(self, port: Port, group: PortQueue) -> None:
        """Give the queues of a scheduler its rate together: a class around them, or the port's shaper."""
        places = {id(queue): at for at, queue in enumerate(port.queues)}
        group.within = [queue for queue in group.within if id(queue) in places]
        group.match = Match.either([queue.match for queue in group.within], group.line)
        port.meters += [(group.match, f"police {group.name}", meter) for meter in group.meters]
        group.meters = []
        if group.ceiling is None or not group.within:
            return
        if len(group.within) == len(port.queues):
            port.shaper, port.shaper_burst = group.ceiling, group.ceiling_burst
            return
        if group.match.unknown or group.match.codepoints is None:
            text = f"`{group.ceiling.text}` of {group.name} is for its inputs together; here for each"
            self._account.find("W06", group.ceiling.line, text)
            for queue in group.within:
                queue.ceiling, queue.ceiling_burst = group.ceiling, group.ceiling_burst
            return
        for queue in group.within:
            queue.level = None
        held = {id(queue) for queue in group.within}
        before = port.queues[: min(places[one] for one in held)]
        after = [queue for queue in port.queues[len(before) :] if id(queue) not in held]
        port.queues = [*before, group, *after]

    def _scheduler(
        self, port: Port, name: str, place: int, *, every: bool = False
    ) -> tuple[dict[str, PortQueue], list[PortQueue]]:
        """The queues that a scheduler policy serves, and the schedulers that give several a rate together.

        With `every`, a scheduler without any queue has one, too.
        """
        result: dict[str, PortQueue] = {}
        shared: list[PortQueue] = []
        if not name:
            return result, shared
        policy = self._named(name, "scheduler-policies", "scheduler-policy")
        if not policy:
            self._account.find("W15", place, f"scheduler policy {name} is not defined")
            return result, shared
        self._unknown(port, policy, {"name", "config", "schedulers"}, f"scheduler policy {name}")
        for key in ("name", "config"):
            self._take(port, policy, key)
        for number, scheduler in enumerate(policy.objects("schedulers", "scheduler")):
            where = f"scheduler policy {name}, {scheduler.get('sequence').text or number}"
            self._unknown(port, scheduler, {"sequence", "config", "inputs", "output", *RATES}, where)
            self._take(port, scheduler, "output")
            if config := scheduler.get("config"):
                self._unknown(port, config, {"sequence", "priority", "type"}, where)
            strict = self._word(scheduler, ("config", "priority"), ("STRICT", "DWRR", "WRR")) == "STRICT"
            served = self._inputs(port, scheduler, where)
            if every and not served:
                served = [PortQueue("", scheduler.line)]
            holder = served[0] if len(served) == 1 else PortQueue(where, scheduler.line, within=served)
            self._rates(port, holder, scheduler, where)
            if len(served) > 1:
                shared.append(holder)
            for queue in [*served, holder]:
                if strict:
                    queue.level, queue.level_line = number, scheduler.line
            result |= {queue.name: queue for queue in served}
        return result, shared

    def _inputs(self, port: Port, scheduler: Node, where: str) -> list[PortQueue]:
        result = []
        for entry in scheduler.objects("inputs", "input"):
            self._unknown(port, entry, {"id", "config"}, where)
            if config := entry.get("config"):
                self._unknown(port, config, {"id", "queue", "weight", "input-type"}, where)
            name = entry.get("config", "queue").text
            if not name:
                self._account.find("W13", entry.line, f"{where}: input {entry.get('id').text} names no queue")
                continue
            queue = PortQueue(name, entry.line)
            weight, line = _number(entry, "config", "weight")
            if weight:
                queue.share = Rate(weight, RateUnit.WEIGHT, line, text=f"weight {weight:g}")
            result.append(queue)
        return result

    def _rates(self, port: Port, queue: PortQueue, scheduler: Node, where: str) -> None:
        holder = next((found for key in RATES if (found := scheduler.get(key))), NOTHING)
        node = holder.get("config")
        if not node:
            return
        two = node if holder is scheduler.get(RATES[1]) else NOTHING
        self._unknown(port, holder, {"config", *ACTIONS}, where)
        self._unknown(port, node, RATE_KEYS, where)
        for key in ACTIONS:
            self._take(port, holder, key)
        rate = self._rate(node, "cir")
        bc, place = _number(node, "bc")
        if rate is None:
            self._account.find("W13", node.line, f"queue {queue.name}: a scheduler's rates without `cir`")
            return
        burst = Quantity(bc, Unit.BYTES, place, text=f"bc {bc:.0f}") if bc else None
        if self._word(node, ("queuing-behavior",), ("POLICE", "SHAPE")) != "POLICE":
            queue.ceiling = rate if not two else self._rate(node, "pir") or rate
            queue.ceiling_burst = burst if not two else None
            if two:
                queue.guarantee = rate
            return
        if burst is None:
            self._account.find("W04", node.line, f"queue {queue.name}: no `bc`; 100 ms of the rate")
            burst = Quantity(0.1, Unit.SECONDS, 0, How.DEFAULT, text="100 ms of the rate")
        self._policer(queue, holder, rate, burst, two)

    def _rate(self, node: Node, key: str) -> Rate | None:
        for name, unit in ((key, RateUnit.BPS), (f"{key}-pct", RateUnit.PERCENT)):
            value, line = _number(node, name)
            if value:
                return Rate(value, unit, line, text=f"{name} {value:.15g}")
        return None

    def _action(self, holder: Node, key: str) -> Action:
        config = holder.get(key, "config")
        if not config:
            return "transmit" if key == "conform-action" else "drop"
        for name, member in config.pairs():
            if name != "drop" and not name.startswith("set-"):
                self._account.miss_part(member.line, f"{key}: not understood: `{name} {member.text}`")
        if self._word(config, ("drop",), ("TRUE", "FALSE")) == "TRUE":
            return "drop"
        return "mark" if any(name.startswith("set-") for name, _ in config.pairs()) else "transmit"

    def _policer(self, queue: PortQueue, holder: Node, rate: Rate, burst: Quantity, two: Node) -> None:
        conform, exceed, violate = (self._action(holder, key) for key in ACTIONS)
        line = holder.line
        if not two:
            queue.meters.append(PortMeter("one-bucket", rate, burst, line, conform=conform, exceed=exceed))
            return
        peak = self._rate(two, "pir")
        be, be_line = _number(two, "be")
        if peak is None or not be:
            self._account.find("W10", two.line, f"queue {queue.name}: no `pir` or `be`; one bucket here")
            queue.meters.append(PortMeter("one-bucket", rate, burst, two.line))
            return
        second = Quantity(be, Unit.BYTES, be_line, text=f"be {be:.0f}")
        text = f"queue {queue.name}: two-rate-three-color is read as RFC 2698, be as its peak burst"
        self._account.find("W10", two.line, text)
        exceed = "mark" if not holder.get("exceed-action") else exceed
        meter = PortMeter("rfc2698", rate, burst, two.line, peak, second)
        queue.meters.append(replace(meter, conform=conform, exceed=exceed, violate=violate))

    def _match(self, port: Port, queue: str, place: int) -> Match:
        groups = set()
        for group in self._root.objects("forwarding-groups", "forwarding-group"):
            if group.get("config", "output-queue").text == queue:
                groups.add(group.get("config", "name").text or group.get("name").text)
                port.lines.update(group.lines())
        matches: list[Match] = []
        for classifier in self._classifiers(port):
            for term in classifier.objects("terms", "term"):
                if term.get("actions", "config", "target-group").text not in groups:
                    continue
                port.lines.update([classifier.line, *classifier.keys.values(), *term.lines()])
                found, others = _conditions(term.get("conditions"))
                if not found and not others:
                    others = [(term.line, f"a term of a classifier without dscp, for queue {queue}")]
                codes = frozenset(found) or model.ALL_CODEPOINTS
                matches.append(Match.between(frozenset() if others else codes, codes, others, place))
        if matches:
            return Match.either(matches, place)
        return Match(None, ((place, f"queue {queue}, to which no codepoint leads"),), place)

    # Queue management

    def _management(self, queue: PortQueue, profile: Node) -> None:
        wred, red = profile.get("wred", *UNIFORM), profile.get("red", *UNIFORM)
        node = wred or red
        if not node:
            self._account.find("W13", profile.line, f"queue {queue.name}: a profile without wred or red")
            return
        for key, member in node.pairs():
            if key not in KNOWN:
                self._account.miss_part(member.line, f"not understood: `{key} {member.text}`")
        ecn = self._word(node, ("enable-ecn",), ("TRUE", "FALSE")) == "TRUE"
        drop = self._word(node, ("drop",), ("TRUE", "FALSE")) == "TRUE"
        if not ecn and not drop:
            text = f"queue {queue.name}: neither `drop` nor `enable-ecn`: tail drop"
            self._account.find("W17", node.line, text)
            return
        ends = []
        for word in ("min", "max"):
            number, line = _number(node, f"{word}-threshold")
            unit = Unit.BYTES
            if number is None:
                number, line = _number(node, f"{word}-threshold-percent")
                unit = Unit.PERCENT
            if number is None:
                self._account.find("W13", node.line, f"queue {queue.name}: no {word}-threshold; no curve")
                return
            ends.append(Quantity(number, unit, line, text=f"{word}-threshold {number:g}"))
        if ends[0].unit is not ends[1].unit or ends[0].number > ends[1].number:
            text = f"queue {queue.name}: min-threshold is above max; no curve"
            self._account.find("W16", ends[0].line, text)
            return
        percent, _ = _number(node, "max-drop-probability-percent")
        if percent is None or not 0 < percent <= 100:
            self._account.find("W04", node.line, f"queue {queue.name}: no probability at max; 100 % here")
            percent = 100.0
        curve = model.Curve.ramp(ends[0], ends[1], percent / 100, node.line)
        queue.curves = [model.Drop(model.Selector("all"), curve)]
        exponent, line = _number(node, "weight")
        weight = None if exponent is None else 2.0 ** -min(exponent, 32)
        said = "" if exponent is None else f"weight {exponent:g}"
        queue.average = model.Average(weight, line or node.line, How.CONFIGURED, said)
        if ecn:
            queue.ecn = Ecn.BELOW_MAX if drop else Ecn.ONLY
            queue.ecn_line = node.line


def _name(entry: Node) -> str:
    return entry.get("name").text or entry.get("config", "name").text


def _number(node: Node, *path: str) -> tuple[float | None, int]:
    found = node.get(*path)
    return units.number(found.text), found.line


def _conditions(node: Node) -> tuple[set[int], list[tuple[int, str]]]:
    """The codepoints of a term, and its conditions beside them."""
    codes: set[int] = set()
    others: list[tuple[int, str]] = []
    for family, part in node.pairs():
        config = part.get("config") or part
        for key, member in config.pairs():
            name = key.rpartition(":")[2]
            values = [units.codepoint(item.text) for item in member.items or [member]]
            ip = family.rpartition(":")[2] in {"ipv4", "ipv6"}
            if ip and name in {"dscp", "dscp-set"} and None not in values:
                codes.update(value for value in values if value is not None)
            else:
                shown = member.text or ", ".join(item.text for item in member.items or ())
                others.append((member.line, f"{family.rpartition(':')[2]} {name} {shown}".rstrip()))
    return codes, others


def read(source: Source, account: Account) -> list[Port]:
    """The ports of a configuration."""
    return _Reader(source, account).read()


def score(source: Source) -> float:
    """Names of OpenConfig's model."""
    words = ("queue-management-profile", "scheduler-policies", "forwarding-groups", "openconfig-qos")
    return 5.0 * sum(word in source.text for word in words)


DIALECTS = (Dialect("openconfig", "OpenConfig QoS", score=score, read=read),)
