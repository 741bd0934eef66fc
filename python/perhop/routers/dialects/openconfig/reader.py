"""OpenConfig's QoS model as JSON (openconfig-qos, with queue management of revision 2026-04-30)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perhop.routers import units
from perhop.routers.model import (
    ALL_CODEPOINTS,
    Average,
    Curve,
    Drop,
    Ecn,
    How,
    Match,
    Port,
    PortMeter,
    PortQueue,
    Quantity,
    Rate,
    RateUnit,
    Selector,
    Unit,
)
from perhop.routers.syntax import jsontree
from perhop.routers.syntax.jsontree import Node

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


class Reader:
    """Reads the tree of a source."""

    def __init__(self, source: Source, account: Account) -> None:
        """Findings go to the account."""
        self._account = account
        self._root: Node | None = None
        self._attached: dict[str, list[Node]] = {}
        """Classifiers by name, and the attachments of each to interfaces."""
        for index, text in enumerate(source.texts):
            root = jsontree.read(text, source.first(index), account)
            if root is None:
                continue
            found = root.get("qos") or root.get("openconfig-qos") or root
            for key, member in root.pairs() if root is not found else ():
                if member is not found:
                    for line in {root.keys[key], *member.lines()}:
                        account.ignore(line, "not about queues")
            self._root = self._root or found

    def read(self) -> list[Port]:
        """A port for each interface with queues, and one for what it polices as it arrives."""
        ports = []
        for interface in self._list(self._root, "interfaces", "interface"):
            for entry in self._list(interface, "input", "classifiers", "classifier"):
                self._attached.setdefault(self._text(entry, "config", "name"), []).append(entry)
        for interface in self._list(self._root, "interfaces", "interface"):
            name = self._text(interface, "interface-id") or self._text(interface, "config", "interface-id")
            if not name:
                continue
            found = [self._sent(interface, name), self._arriving(interface, name)]
            ports += [port for port in found if port is not None]
        self._declared(ports)
        return ports

    def _sent(self, interface: Node, name: str) -> Port | None:
        output = interface.get("output")
        if output is None:
            return None
        port = Port(name, interface.line, default_name="other")
        self._named_by(port, interface)
        self._unknown(port, output, {"queues", "scheduler-policy", "interface-id", "config"}, "output")
        self._queues(port, output)
        return port if port.queues else None

    def _arriving(self, interface: Node, name: str) -> Port | None:
        """Policers of packets that arrive: the schedulers of the policy at the input."""
        given = interface.get("input")
        policy = self._text(given, "scheduler-policy", "config", "name")
        if given is None or not policy:
            return None
        port = Port(f"{name} ingress", given.line, "input")
        self._named_by(port, interface)
        self._take(port, given, "scheduler-policy")
        queues, shared = self._scheduler(port, policy, given.line, every=True)
        for queue in [*queues.values(), *shared]:
            if queue.ceiling is not None:
                text = (
                    f"{queue.name}: `{queue.ceiling.text}`: a shaper of packets that arrive is not simulated"
                )
                self._account.find("W06", queue.ceiling.line, text)
            named = [one.name for one in queue.within or [queue] if one.name]
            match = Match(None, (), queue.line)
            if named:
                match = Match.either([self._match(port, name, queue.line) for name in named], queue.line)
            match = Match(None, (), queue.line) if match.codepoints is None else match
            port.meters += [(match, f"police {queue.name}".rstrip(), meter) for meter in queue.meters]
        return port if port.meters else None

    def _named_by(self, port: Port, interface: Node) -> None:
        """The lines that say which interface it is."""
        for key in ("interface-id", "config", "interface-ref"):
            if interface.get(key) is not None:
                self._take(port, interface, key)

    def _take(self, port: Port, node: Node, key: str) -> None:
        """Lines of which every word is read."""
        found = node.get(key)
        if found is not None:
            port.lines.update(found.lines())
            port.lines.update(line for name, line in node.keys.items() if name.rpartition(":")[2] == key)

    def _unknown(self, port: Port, node: Node, known: set[str], where: str) -> None:
        """Report the keys that nothing reads, and take the others' lines."""
        port.lines.add(node.line)
        for key, member in node.pairs():
            name = key.rpartition(":")[2]
            if name in known:
                port.lines.update({node.keys[key], member.line})
                continue
            text = f"{where}: not understood: `{f'{key} {member.text}'.rstrip()}`"
            self._account.miss_part(node.keys[key], text)

    def _declared(self, ports: list[Port]) -> None:
        """The declarations of queues, which have a name only, for the ports that have these."""
        for entry in self._list(self._root, "queues", "queue"):
            name = self._text(entry, "name") or self._text(entry, "config", "name")
            self._account.understand(*entry.lines())
            for port in ports:
                if any(queue.name == name for queue in port.queues):
                    port.lines.update(entry.lines())
            for key, member in (entry.get("config") or Node(0)).pairs():
                if key not in {"name", "queue-id"}:
                    text = f"queue {name}: `{key} {member.text}` has no effect here"
                    self._account.find("W13", member.line, text)
            if not any(queue.name == name for port in ports for queue in port.queues):
                self._account.find("W15", entry.line, f"queue {name} is attached to no interface")

    def _classifiers(self, port: Port) -> Iterator[Node]:
        """The classifiers of arriving packets: those attached to an interface, or all if none is."""
        for classifier in self._list(self._root, "classifiers", "classifier"):
            name = self._text(classifier, "name") or self._text(classifier, "config", "name")
            for entry in self._attached.get(name, []):
                port.lines.update({entry.line, *entry.keys.values(), *entry.lines()})
            if self._attached and name not in self._attached:
                self._account.understand(*classifier.lines())
                self._account.find("W15", classifier.line, f"classifier {name} is attached to no interface")
                continue
            yield classifier

    # The tree

    def _list(self, node: Node | None, *path: str) -> Iterator[Node]:
        found = None if node is None else node.get(*path)
        yield from (
            item for item in (found.items or () if found is not None else ()) if item.members is not None
        )

    def _text(self, node: Node | None, *path: str) -> str:
        found = None if node is None else node.get(*path)
        return "" if found is None else found.text

    def _number(self, node: Node | None, *path: str) -> tuple[float | None, int]:
        found = None if node is None else node.get(*path)
        return (None, 0) if found is None else (units.number(found.text), found.line)

    def _word(self, node: Node, path: tuple[str, ...], known: tuple[str, ...]) -> str:
        """One of these words in capitals, without its module; others are reported."""
        found = node.get(*path)
        text = "" if found is None else found.text.rpartition(":")[2].upper()
        if found is not None and text not in known:
            self._account.miss_part(found.line, f"not understood: `{path[-1]} {found.text}`")
        return text

    def _named(self, name: str, *path: str) -> Node | None:
        for entry in self._list(self._root, *path):
            if name in {self._text(entry, "name"), self._text(entry, "config", "name")}:
                return entry
        return None

    # Ports

    def _queues(self, port: Port, output: Node) -> None:
        wanted: dict[str, tuple[str, int]] = {}
        for entry in self._list(output, "queues", "queue"):
            name = self._text(entry, "name") or self._text(entry, "config", "name")
            node = entry.get("config", "queue-management-profile")
            wanted[name] = ("", entry.line) if node is None else (node.text, node.line)
            self._unknown(port, entry, {"name", "config"}, f"queue {name}")
            config = entry.get("config")
            if config is not None:
                self._unknown(port, config, {"name", "queue-management-profile"}, f"queue {name}")
        self._take(port, output, "scheduler-policy")
        policy = self._text(output, "scheduler-policy", "config", "name")
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
                if found is None:
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
        if policy is None:
            self._account.find("W15", place, f"scheduler policy {name} is not defined")
            return result, shared
        self._unknown(port, policy, {"name", "config", "schedulers"}, f"scheduler policy {name}")
        for key in ("name", "config"):
            self._take(port, policy, key)
        for number, scheduler in enumerate(self._list(policy, "schedulers", "scheduler")):
            where = f"scheduler policy {name}, {self._text(scheduler, 'sequence') or number}"
            self._unknown(port, scheduler, {"sequence", "config", "inputs", "output", *RATES}, where)
            self._take(port, scheduler, "output")
            config = scheduler.get("config")
            if config is not None:
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
        """The queues that a scheduler serves, with their weights."""
        result = []
        for entry in self._list(scheduler, "inputs", "input"):
            self._unknown(port, entry, {"id", "config"}, where)
            config = entry.get("config")
            if config is not None:
                self._unknown(port, config, {"id", "queue", "weight", "input-type"}, where)
            name = self._text(entry, "config", "queue")
            if not name:
                text = f"{where}: input {self._text(entry, 'id')} names no queue"
                self._account.find("W13", entry.line, text)
                continue
            queue = PortQueue(name, entry.line)
            weight, line = self._number(entry, "config", "weight")
            if weight:
                queue.share = Rate(weight, RateUnit.WEIGHT, line, text=f"weight {weight:g}")
            result.append(queue)
        return result

    def _rates(self, port: Port, queue: PortQueue, scheduler: Node, where: str) -> None:
        """The shaper or the policer of a scheduler."""
        kind = next((key for key in RATES if scheduler.get(key) is not None), None)
        holder = None if kind is None else scheduler.get(kind)
        node = None if holder is None else holder.get("config")
        if holder is None or node is None:
            return
        two = node if kind == "two-rate-three-color" else None
        self._unknown(port, holder, {"config", *ACTIONS}, where)
        self._unknown(port, node, RATE_KEYS, where)
        for key in ACTIONS:
            self._take(port, holder, key)
        rate = self._rate(node, "cir")
        bc, place = self._number(node, "bc")
        if rate is None:
            self._account.find("W13", node.line, f"queue {queue.name}: a scheduler's rates without `cir`")
            return
        burst = Quantity(bc, Unit.BYTES, place, text=f"bc {bc:.0f}") if bc else None
        if self._word(node, ("queuing-behavior",), ("POLICE", "SHAPE")) != "POLICE":
            queue.ceiling = rate if two is None else self._rate(node, "pir") or rate
            queue.ceiling_burst = burst if two is None else None
            if two is not None:
                queue.guarantee = rate
            return
        if burst is None:
            self._account.find("W04", node.line, f"queue {queue.name}: no `bc`; 100 ms of the rate")
            burst = Quantity(0.1, Unit.SECONDS, 0, How.DEFAULT, text="100 ms of the rate")
        self._policer(queue, holder, rate, burst, two)

    def _rate(self, node: Node, key: str) -> Rate | None:
        """A rate in bit/s, or in percent of the interface's."""
        for name, unit in ((key, RateUnit.BPS), (f"{key}-pct", RateUnit.PERCENT)):
            value, line = self._number(node, name)
            if value:
                return Rate(value, unit, line, text=f"{name} {value:.15g}")
        return None

    def _action(self, holder: Node, key: str) -> Action:
        """The treatment of packets: they are dropped, marked, or pass."""
        config = holder.get(key, "config")
        if config is None:
            return "transmit" if key == "conform-action" else "drop"
        for name, member in config.pairs():
            if name != "drop" and not name.startswith("set-"):
                self._account.miss_part(member.line, f"{key}: not understood: `{name} {member.text}`")
        if self._word(config, ("drop",), ("TRUE", "FALSE")) == "TRUE":
            return "drop"
        return "mark" if any(name.startswith("set-") for name, _ in config.pairs()) else "transmit"

    def _policer(self, queue: PortQueue, holder: Node, rate: Rate, burst: Quantity, two: Node | None) -> None:
        conform, exceed, violate = (self._action(holder, key) for key in ACTIONS)
        line = holder.line
        if two is None:
            queue.meters.append(PortMeter("one-bucket", rate, burst, line, conform=conform, exceed=exceed))
            return
        peak = self._rate(two, "pir")
        be, be_line = self._number(two, "be")
        if peak is None or not be:
            self._account.find("W10", two.line, f"queue {queue.name}: no `pir` or `be`; one bucket here")
            queue.meters.append(PortMeter("one-bucket", rate, burst, two.line))
            return
        second = Quantity(be, Unit.BYTES, be_line, text=f"be {be:.0f}")
        text = f"queue {queue.name}: two-rate-three-color is read as RFC 2698, be as its peak burst"
        self._account.find("W10", two.line, text)
        exceed = "mark" if holder.get("exceed-action") is None else exceed
        queue.meters.append(
            PortMeter(
                "rfc2698",
                rate,
                burst,
                two.line,
                peak,
                second,
                conform=conform,
                exceed=exceed,
                violate=violate,
            )
        )

    def _match(self, port: Port, queue: str, place: int) -> Match:
        """The codepoints whose forwarding group has this queue."""
        groups = set()
        for group in self._list(self._root, "forwarding-groups", "forwarding-group"):
            if self._text(group, "config", "output-queue") == queue:
                groups.add(self._text(group, "config", "name") or self._text(group, "name"))
                port.lines.update(group.lines())
        matches: list[Match] = []
        for classifier in self._classifiers(port):
            for term in self._list(classifier, "terms", "term"):
                if self._text(term, "actions", "config", "target-group") not in groups:
                    continue
                port.lines.update([classifier.line, *classifier.keys.values(), *term.lines()])
                conditions = term.get("conditions")
                found, others = self._conditions(conditions) if conditions is not None else (set[int](), [])
                if not found and not others:
                    others = [(term.line, f"a term of a classifier without dscp, for queue {queue}")]
                codes = frozenset(found) or ALL_CODEPOINTS
                matches.append(Match.between(frozenset() if others else codes, codes, others, place))
        if matches:
            return Match.either(matches, place)
        return Match(None, ((place, f"queue {queue}, to which no codepoint leads"),), place)

    def _conditions(self, node: Node) -> tuple[set[int], list[tuple[int, str]]]:
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

    # Queue management

    def _management(self, queue: PortQueue, profile: Node) -> None:
        wred, red = profile.get("wred", *UNIFORM), profile.get("red", *UNIFORM)
        node = wred or red
        if node is None:
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
            number, line = self._number(node, f"{word}-threshold")
            unit = Unit.BYTES
            if number is None:
                number, line = self._number(node, f"{word}-threshold-percent")
                unit = Unit.PERCENT
            if number is None:
                self._account.find("W13", node.line, f"queue {queue.name}: no {word}-threshold; no curve")
                return
            ends.append(Quantity(number, unit, line, text=f"{word}-threshold {number:g}"))
        if ends[0].unit is not ends[1].unit or ends[0].number > ends[1].number:
            self._account.find(
                "W16", ends[0].line, f"queue {queue.name}: min-threshold is above max; no curve"
            )
            return
        percent, _ = self._number(node, "max-drop-probability-percent")
        if percent is None or not 0 < percent <= 100:
            self._account.find("W04", node.line, f"queue {queue.name}: no probability at max; 100 % here")
            percent = 100.0
        curve = Curve.ramp(ends[0], ends[1], percent / 100, node.line)
        queue.curves = [Drop(Selector("all"), curve)]
        exponent, line = self._number(node, "weight")
        weight = None if exponent is None else 2.0 ** -min(exponent, 32)
        said = "" if exponent is None else f"weight {exponent:g}"
        queue.average = Average(weight, line or node.line, How.CONFIGURED, said)
        if ecn:
            queue.ecn = Ecn.BELOW_MAX if drop else Ecn.ONLY
            queue.ecn_line = node.line


def read(source: Source, account: Account) -> list[Port]:
    """The ports of a configuration."""
    return Reader(source, account).read()
