"""Junos class-of-service as ports: braces, `set` lines or JSON."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from perhop.routers import model
from perhop.routers.dialects.junos import definitions
from perhop.routers.dialects.junos.policers import by_class
from perhop.routers.model import Curve, Drop, Ecn, How, Match, Port, PortQueue, Quantity, Selector, Unit

if TYPE_CHECKING:
    from perhop.routers.curves import Color
    from perhop.routers.dialects.junos.definitions import Unit0
    from perhop.routers.source import Account, Source
    from perhop.routers.syntax.statements import Statement

PRIORITIES = {"strict-high": 0, "high": 1}
"""Priorities that are served before others; those below them share by rate."""
MOST_POINTS = 64
DEFAULT_CLASSES = {
    0: "best-effort", 1: "expedited-forwarding", 2: "assured-forwarding", 3: "network-control",
}  # fmt: skip
"""Junos's own forwarding classes by their queues."""


def interpolated(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Points in percent, with the ends that Junos adds."""
    result = list(points)
    if not result or result[0][0] > 0:
        result.insert(0, (0.0, 0.0))
    if result[-1][0] < 100:
        result.append((100.0, 100.0))
    return result


class _Ports:
    def __init__(self, found: definitions.Definitions, account: Account) -> None:
        self._found = found
        self._account = account

    def ports(self) -> list[Port]:
        """A port for each interface, or unit of one, that has a scheduler map."""
        self._controlled()
        named = self._found.interfaces.items()
        ports = [port for name, unit in named if (port := self._port(name, unit)) is not None]
        if not ports:
            ports = self._unattached()
        codes: dict[str, frozenset[int]] = {}
        for classifier in self._found.classifiers.values():
            for name, held in classifier.codes.items():
                codes.setdefault(name, frozenset[int]().union(*held.values()))
        self._found.policers.attach(ports, codes)
        return ports

    def _controlled(self) -> None:
        """Give interfaces what their traffic control profiles say."""
        for unit in self._found.interfaces.values():
            if unit.control is None:
                continue
            name, line = unit.control
            profile = self._account.defined(self._found.controls, name, line, "traffic control profile")
            if profile is None:
                continue
            unit.lines |= profile.lines
            unit.scheduler_map = unit.scheduler_map or profile.scheduler_map
            if profile.shaping is not None:
                unit.shaping, unit.shaping_burst = profile.shaping, profile.shaping_burst

    def _port(self, name: str, unit: Unit0) -> Port | None:
        base = self._found.interfaces.get(name.partition(".")[0], unit)
        if unit.scheduler_map is None:
            return None
        wanted, line = unit.scheduler_map
        if self._account.defined(self._found.maps, wanted, line, "scheduler map") is None:
            return None
        port = Port(name, unit.line, default_name="other")
        port.lines |= unit.lines | base.lines
        self._shape(port, name, unit, base)
        if name.partition(".")[0] in self._found.speeds:
            port.rate, where = self._found.speeds[name.partition(".")[0]]
            port.lines.update(where.lines)
        bound = next((u for u in self._of(name).values() if u.classifier), None)
        if bound is not None:
            port.lines |= bound.lines
        self._queues(port, wanted, None if bound is None else bound.classifier)
        return port

    def _of(self, name: str) -> dict[str, Unit0]:
        """An interface with its units, or a unit alone, by name."""
        family = self._found.family.get(name.partition(".")[0], {})
        return {name: family[name]} if "." in name and name in family else family

    def _shape(self, port: Port, name: str, unit: Unit0, base: Unit0) -> None:
        """The shaper: the unit's own, else the interface's, else that of the interface's only shaped unit."""
        within = [u for n, u in self._of(name).items() if n != name and u.scheduler_map is None]
        own = [unit] if base is unit else [unit, base]
        shaped, inner = ([u for u in units if u.shaping is not None] for units in (own, within))
        chosen = shaped[0] if shaped else inner[0] if len(inner) == 1 else None
        if chosen is not None:
            port.shaper, port.shaper_burst = chosen.shaping, chosen.shaping_burst
            port.lines |= chosen.lines
        for other in (*shaped, *inner):
            if other is not chosen and other.shaping is not None:
                text = f"`{other.shaping.text}`: a shaper beside another is not simulated"
                self._account.find("W06", other.shaping.line, f"{port.name}: {text}")

    def _unattached(self) -> list[Port]:
        ports = []
        for name, entries in self._found.maps.items():
            first = next(iter(entries.values()))[1]
            self._account.find("W15", first.line, f"scheduler map {name} is attached to no interface")
            port = Port(name, first.line, default_name="other")
            self._queues(port, name, None)
            ports.append(port)
        return ports

    def _bound(self, port: Port, classifier: tuple[str, int] | None) -> definitions.Classifier | None:
        """The classifier of an interface; else the only one that there is, or that any interface has."""
        if classifier is not None:
            wanted, line = classifier
            if wanted == "default" and wanted not in self._found.classifiers:
                made = definitions.Classifier(line)
                made.add_default()
                return made
            return self._account.defined(self._found.classifiers, wanted, line, "classifier")
        bound = bool(self._bound_names)
        names = self._bound_names or dict.fromkeys(self._found.classifiers)
        known = [name for name in names if name in self._found.classifiers]
        if known and not bound:
            text = f"classifier {known[0]} is bound to no interface; its codepoints are used"
            self._account.find("W15", self._found.classifiers[known[0]].line, text)
        if len(known) > 1:
            text = f"several classifiers and none at {port.name}: codepoints of {known[0]} are used"
            self._account.find("W15", port.line, text)
        return self._found.classifiers[known[0]] if known else None

    @cached_property
    def _bound_names(self) -> dict[str, None]:
        return dict.fromkeys(u.classifier[0] for u in self._found.interfaces.values() if u.classifier)

    @cached_property
    def _first_lines(self) -> dict[str, int]:
        """The first line of a scheduler's priority, by priority; 0 where one has it by default."""
        lines: dict[str, int] = {}
        for scheduler in self._found.schedulers.values():
            line = scheduler.priority_line
            lines[scheduler.priority] = min(line, lines.get(scheduler.priority, line))
        return lines

    def _queues(self, port: Port, name: str, bound: tuple[str, int] | None) -> None:
        classifier = self._bound(port, bound)
        if classifier is not None:
            port.lines |= classifier.lines
        entries = self._found.maps[name]
        buffers = [s.buffer for n, _ in entries.values() if (s := self._found.schedulers.get(n)) and s.buffer]
        left = 100 - sum(q.number for q in buffers if q.unit is Unit.BUFFER_PERCENT)
        queues = []
        for forwarding, (scheduler_name, statement) in entries.items():
            port.lines.update(statement.lines)
            if forwarding in self._found.classes:
                port.lines.update(self._found.classes[forwarding][1].lines)
            scheduler = self._account.defined(
                self._found.schedulers, scheduler_name, statement.line, "scheduler"
            )
            scheduler = scheduler or definitions.Scheduler(statement.line)
            port.lines |= scheduler.lines
            queues.append(self._queue(port, forwarding, scheduler, classifier, max(left, 0.0), statement))
        numbers = {name: number for name, (number, _) in self._found.classes.items()}
        served = {*entries, *(DEFAULT_CLASSES.get(numbers.get(entry, -1), "") for entry in entries)}
        for forwarding, place in classifier.places.items() if classifier is not None else ():
            if forwarding not in served:
                text = f"forwarding class {forwarding} has no scheduler in {name}: its packets go with others"
                self._account.find("W15", place, text)
        rest = next((q for q in queues if q.name == "best-effort"), None)
        rest = rest or next((q for q in queues if numbers.get(q.name) == 0), None)
        if rest is not None:
            queues.remove(rest)
            queues.append(rest)
            rest.match = Match(None, (), rest.line)
        known = self._found.schedulers
        named = [known[name] for name, _ in entries.values() if name in known]
        ranks = {scheduler.priority for scheduler in named} - PRIORITIES.keys()
        if len(ranks) > 1:
            text = f"priorities {', '.join(sorted(ranks))}: their order is not simulated; rates are kept"
            self._account.find("W06", min(self._first_lines.get(rank, 0) for rank in ranks), text)
        port.queues = queues

    def _queue(
        self,
        port: Port,
        forwarding: str,
        scheduler: definitions.Scheduler,
        classifier: definitions.Classifier | None,
        left: float,
        statement: Statement,
    ) -> PortQueue:
        queue = PortQueue(forwarding, statement.line)
        codes = {} if classifier is None else self._codes(classifier, forwarding)
        every = frozenset[int]().union(*codes.values())
        place = classifier.line if classifier is not None else 0
        chosen, lines = self._found.policers.chosen(forwarding)
        port.shared.append(lines)
        if every or chosen.most:
            queue.match = Match.either([Match(every), chosen], place or chosen.line)
        else:
            queue.match = Match(None, ((statement.line, by_class(forwarding)),), statement.line)
        queue.limit = scheduler.buffer
        if scheduler.buffer_rest:
            text = "buffer-size remainder"
            queue.limit = Quantity(left, Unit.BUFFER_PERCENT, scheduler.buffer_rest, text=text)
        queue.level = PRIORITIES.get(scheduler.priority)
        queue.level_line = scheduler.priority_line
        queue.guarantee = None if scheduler.rest else scheduler.rate
        queue.share = scheduler.share
        queue.ceiling = scheduler.ceiling
        if scheduler.exact and queue.ceiling is None:
            queue.ceiling = scheduler.rate
        elif scheduler.exact and scheduler.rate is not None and scheduler.ceiling is not None:
            text = f"class {forwarding}: `{scheduler.rate.text}`: `exact` has no effect here"
            text += f" beside `{scheduler.ceiling.text}`"
            self._account.find("W13", scheduler.rate.line, text)
        if scheduler.priority == "high" and queue.ceiling is None:
            queue.in_profile = scheduler.rate
        if scheduler.ecn_line:
            queue.ecn, queue.ecn_line = Ecn.BELOW_MAX, scheduler.ecn_line
            text = "QFX series drop packets that are not ECN-capable at the tail only; for them write"
            self._account.find("W08", scheduler.ecn_line, f'{text} ecn = "mark-only"')
        queue.curves = self._drops(port, queue, scheduler, codes)
        if queue.curves:
            queue.average = model.Average(None, queue.curves[0].curve.line, How.DEFAULT)
            text = f"class {forwarding}: M, T and SRX series drop at the head"
            self._account.find("W09", queue.curves[0].curve.line, f'{text}; for them write drop-at = "head"')
        return queue

    def _codes(self, classifier: definitions.Classifier, forwarding: str) -> dict[str, set[int]]:
        """The codepoints of a class by loss priority, also by the name that Junos has for its queue."""
        number = self._found.classes[forwarding][0] if forwarding in self._found.classes else -1
        default = DEFAULT_CLASSES.get(number, forwarding)
        names = {forwarding} if default in self._found.classes else {forwarding, default}
        result: dict[str, set[int]] = {}
        for name in sorted(names):
            for loss, codes in classifier.codes.get(name, {}).items():
                result.setdefault(loss, set()).update(codes)
        return result

    def _drops(
        self, port: Port, queue: PortQueue, scheduler: definitions.Scheduler, codes: dict[str, set[int]]
    ) -> list[Drop]:
        """The curves of a queue by color; TCP's where protocols differ."""
        by_protocol: dict[str, dict[str, tuple[str, int]]] = {}
        for loss, protocol, name, line in scheduler.drops:
            for each in definitions.LOSS if loss == "any" else [loss]:
                by_protocol.setdefault(each, {})[protocol] = (name, line)
        wanted = {loss: self._of_protocols(queue, found) for loss, found in by_protocol.items()}
        if len({name for name, _ in wanted.values()}) == 1 and len(wanted) == len(definitions.LOSS):
            name, line = next(iter(wanted.values()))
            curve = self._curve(port, name, line)
            return [] if curve is None else [Drop(Selector("all"), curve)]
        drops: list[Drop] = []
        named: dict[Color, str] = {}
        for loss, color in definitions.LOSS.items():
            if loss not in wanted:
                continue
            name, line = wanted[loss]
            if color in named:
                if named[color] != name:
                    text = f"class {queue.name}: medium-high gets the curve of medium-low, not {name}"
                    self._account.find("W07", line, text)
                continue
            named[color] = name
            found = self._curve(port, name, line)
            if found is not None:
                values = frozenset(codes.get(loss, set()))
                if color == "yellow":
                    values |= frozenset(codes.get("medium-high", set()))
                drops.append(Drop(Selector(f"loss priority {loss}", values or None, color), found))
        return drops

    def _of_protocols(self, queue: PortQueue, found: dict[str, tuple[str, int]]) -> tuple[str, int]:
        """The drop profile of a loss priority and its line: TCP's; packets that get another are reported."""
        order = ("tcp", "any", "both", "non-tcp")
        chosen, *others = [found[protocol] for protocol in order if protocol in found]
        for name, line in others:
            if name != chosen[0]:
                text = f"class {queue.name}: packets without TCP get {chosen[0]} here, not {name}"
                self._account.find("W07", line, text)
        if set(found) in ({"tcp"}, {"non-tcp"}):
            which = "without TCP" if "tcp" in found else "of TCP"
            text = f"class {queue.name}: packets {which} have no drop profile; they get {chosen[0]} here"
            self._account.find("W07", chosen[1], text)
        return chosen

    def _curve(self, port: Port, name: str, line: int) -> Curve | None:
        profile = self._found.profiles.get(name)
        if profile is None:
            self._account.find("W15", line, f"drop profile {name} is not defined; packets drop at 100 %")
            return None
        port.lines |= profile.lines
        if len(profile.fills) != len(profile.probabilities) or not profile.fills:
            text = f"drop profile {name}: {len(profile.fills)} fill levels and {len(profile.probabilities)}"
            self._account.find("W13", profile.line, f"{text} probabilities; it is left out")
            return None
        points = [(x, y) for (x, _), (y, _) in zip(profile.fills, profile.probabilities, strict=True)]
        if not profile.interpolated:
            points.sort()
        fills = [x for x, _ in points]
        bad = any(b <= a for a, b in pairwise(fills)) or len(points) > MOST_POINTS
        if bad or max(fills) > 100 or max(y for _, y in points) > 100:
            text = f"drop profile {name}: at most {MOST_POINTS} fill levels, rising, up to 100; left out"
            self._account.find("W16", profile.line, text)
            return None
        kind: Literal["linear", "step"] = "linear" if profile.interpolated else "step"
        if profile.interpolated:
            points = interpolated(points)
        return Curve(
            tuple(
                (Quantity(x, Unit.PERCENT, profile.line, text=f"{name}: fill level {x:g}"), y / 100)
                for x, y in points
            ),
            kind,
            profile.line,
        )


def read(source: Source, account: Account) -> list[Port]:
    """The ports of a configuration."""
    found = definitions.Definitions(source, account)
    found.read()
    return _Ports(found, account).ports()
