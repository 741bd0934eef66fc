"""OpenConfig's QoS model as JSON (openconfig-qos, with queue management of revision 2026-04-30)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perhop.routers import jsontree, units
from perhop.routers.dialect import Dialect
from perhop.routers.model import (
    Average,
    Curve,
    Drop,
    Ecn,
    How,
    Match,
    Meter,
    Port,
    Quantity,
    Queue,
    Rate,
    RateUnit,
    Selector,
    Unit,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perhop.routers.jsontree import Node
    from perhop.routers.source import Account, Source

UNIFORM = ("uniform", "config")
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
        for index, text in enumerate(source.texts):
            first = source.first(index)
            parsed = jsontree.parse(text, first)
            jsontree.account_for(parsed, text, first, account)
            root = parsed.root
            found = None if root is None else root.get("qos") or root.get("openconfig-qos:qos") or root
            for key, member in root.pairs() if root is not None else ():
                if root is not None and member is not found and key.rpartition(":")[2] != "qos":
                    for line in {root.keys[key], *member.lines()}:
                        account.ignore(line, "not about queues")
            if found is not None:
                self._root = self._root or found

    def read(self) -> list[Port]:
        """A port for each interface with queues."""
        ports = []
        for interface in self._list(self._root, "interfaces", "interface"):
            name = self._text(interface, "interface-id") or self._text(interface, "config", "interface-id")
            output = interface.get("output")
            if output is None or not name:
                continue
            port = Port(name, interface.line, default_name="other")
            port.lines.update(interface.lines())
            self._queues(port, output)
            if port.queues:
                ports.append(port)
        return ports

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
        inputs = self._scheduler(port, self._text(output, "scheduler-policy", "config", "name"), output.line)
        for name in [n for n in inputs if n not in wanted]:
            wanted[name] = ("", output.line)
        for name, (profile, line) in wanted.items():
            if not name:
                continue
            queue = inputs.get(name) or Queue(name, line)
            queue.match = self._match(port, name, line)
            if profile:
                found = self._named(profile, "queue-management-profiles", "queue-management-profile")
                if found is None:
                    self._account.find("W15", line, f"queue management profile {profile} is not defined")
                else:
                    port.lines.update(found.lines())
                    self._management(queue, found)
            port.queues.append(queue)
        if port.queues:
            self._account.find("W09", output.line, "buffers may be shared between queues; fixed limits here")

    def _scheduler(self, port: Port, name: str, place: int) -> dict[str, Queue]:
        """The queues that a scheduler policy serves."""
        result: dict[str, Queue] = {}
        if not name:
            return result
        policy = self._named(name, "scheduler-policies", "scheduler-policy")
        if policy is None:
            self._account.find("W15", place, f"scheduler policy {name} is not defined")
            return result
        port.lines.update(policy.lines())
        for number, scheduler in enumerate(self._list(policy, "schedulers", "scheduler")):
            strict = self._text(scheduler, "config", "priority").rpartition(":")[2] == "STRICT"
            for entry in self._list(scheduler, "inputs", "input"):
                queue_name = self._text(entry, "config", "queue")
                if not queue_name:
                    continue
                queue = Queue(queue_name, entry.line)
                weight, line = self._number(entry, "config", "weight")
                if strict:
                    queue.level, queue.level_line = number, scheduler.line
                elif weight:
                    queue.share = Rate(weight, RateUnit.WEIGHT, line, text=f"weight {weight:g}")
                self._rates(queue, scheduler)
                result[queue_name] = queue
        return result

    def _rates(self, queue: Queue, scheduler: Node) -> None:
        one, two = (
            scheduler.get("one-rate-two-color", "config"),
            scheduler.get("two-rate-three-color", "config"),
        )
        node = one or two
        if node is None:
            return
        cir, line = self._number(node, "cir")
        bc, place = self._number(node, "bc")
        if not cir:
            self._account.find("W13", node.line, f"queue {queue.name}: a scheduler's rates without `cir`")
            return
        rate = Rate(cir, RateUnit.BPS, line, text=f"cir {cir:.0f}")
        burst = Quantity(bc, Unit.BYTES, place, text=f"bc {bc:.0f}") if bc else None
        policing = self._text(node, "queuing-behavior").rpartition(":")[2] == "POLICE"
        if one is not None and not policing:
            queue.ceiling = rate
            return
        if burst is None:
            self._account.find("W04", node.line, f"queue {queue.name}: no `bc`; 100 ms of the rate")
            burst = Quantity(0.1, Unit.SECONDS, 0, How.DEFAULT, text="100 ms of the rate")
        if two is None:
            queue.meters.append(Meter("one-bucket", rate, burst, node.line))
            return
        pir, pir_line = self._number(two, "pir")
        be, be_line = self._number(two, "be")
        if not pir or not be:
            self._account.find("W10", two.line, f"queue {queue.name}: no `pir` or `be`; one bucket here")
            queue.meters.append(Meter("one-bucket", rate, burst, two.line))
            return
        peak = Rate(pir, RateUnit.BPS, pir_line, text=f"pir {pir:.0f}")
        second = Quantity(be, Unit.BYTES, be_line, text=f"be {be:.0f}")
        text = f"queue {queue.name}: two-rate-three-color is read as RFC 2698, be as its peak burst"
        self._account.find("W10", two.line, text)
        queue.meters.append(
            Meter("rfc2698", rate, burst, two.line, peak, second, exceed="mark", violate="drop")
        )

    def _match(self, port: Port, queue: str, place: int) -> Match:
        """The codepoints whose forwarding group has this queue."""
        groups = set()
        for group in self._list(self._root, "forwarding-groups", "forwarding-group"):
            if self._text(group, "config", "output-queue") == queue:
                groups.add(self._text(group, "config", "name") or self._text(group, "name"))
                port.lines.update(group.lines())
        codes: set[int] = set()
        unknown: list[tuple[int, str]] = []
        for classifier in self._list(self._root, "classifiers", "classifier"):
            for term in self._list(classifier, "terms", "term"):
                if self._text(term, "actions", "config", "target-group") not in groups:
                    continue
                port.lines.update([classifier.line, *classifier.keys.values(), *term.lines()])
                conditions = term.get("conditions")
                found = self._conditions(conditions) if conditions is not None else set()
                if found:
                    codes |= found
                else:
                    unknown.append((term.line, f"a term of a classifier without dscp, for queue {queue}"))
        if codes:
            return Match(frozenset(codes), tuple(unknown), place)
        return Match(None, tuple(unknown) or ((place, f"queue {queue}, to which no codepoint leads"),), place)

    def _conditions(self, node: Node) -> set[int]:
        result: set[int] = set()
        for family in ("ipv4", "ipv6"):
            one, many = node.get(family, "config", "dscp"), node.get(family, "config", "dscp-set")
            listed = [*([one] if one is not None else []), *(many.items or () if many is not None else ())]
            for item in listed:
                value = units.codepoint(item.text)
                if value is not None:
                    result.add(value)
        return result

    # Queue management

    def _management(self, queue: Queue, profile: Node) -> None:
        wred, red = profile.get("wred", *UNIFORM), profile.get("red", *UNIFORM)
        node = wred or red
        if node is None:
            self._account.find("W13", profile.line, f"queue {queue.name}: a profile without wred or red")
            return
        for key, member in node.pairs():
            if key not in KNOWN:
                self._account.find("W13", member.line, f"not understood: `{key} {member.text}`")
        ecn = self._text(node, "enable-ecn") == "true"
        drop = self._text(node, "drop") == "true"
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


def score(source: Source) -> float:
    """Names of OpenConfig's model."""
    words = ("queue-management-profile", "scheduler-policies", "forwarding-groups", "openconfig-qos")
    return 5.0 * sum(word in source.text for word in words)


DIALECT = Dialect("openconfig", "OpenConfig QoS", score, read)
