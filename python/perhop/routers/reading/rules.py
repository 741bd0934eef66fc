"""The AQM of a queue: its limit, its drop curves by color, its average."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from perhop.routers import curves, units
from perhop.routers.curves import COLORS, Color, Ramp, drop_precedence
from perhop.routers.model import ALL_CODEPOINTS, ECN_VALUES, Ecn, How, Quantity, Unit
from perhop.routers.reading.document import Entry, bytes_entry, configured
from perhop.routers.units import quoted

if TYPE_CHECKING:
    from perhop.routers.curves import Shape
    from perhop.routers.model import Block, Drop, PortQueue, Selector
    from perhop.routers.reading.amounts import Amounts
    from perhop.routers.source import Account

CODEL_KEYS = {"limit", "target", "interval", "ecn", "law"}
"""Keys that CoDel shares with schedulers that hold it."""


@dataclass(frozen=True, slots=True)
class Colors:
    """The colors that a queue distinguishes, and that of each codepoint that it knows."""

    codepoints: dict[int, Color] = field(default_factory=dict)
    listed: tuple[Color, ...] = ("green",)
    samples: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """A name and the codepoints of each profile, if codepoints have profiles in place of colors."""


@dataclass(frozen=True, slots=True)
class Rule:
    """The table of a queue's AQM, and those of its drop profiles."""

    entries: list[Entry]
    colors: Colors = field(default_factory=Colors)
    profiles: list[list[Entry]] = field(default_factory=list)


@dataclass(slots=True)
class Group:
    """Packets of a queue that have the same curve, limit and ECN mode."""

    shape: Shape | None
    selectors: list[Selector] = field(default_factory=list)
    codepoints: set[int] = field(default_factory=set)
    color: Color | None = None
    limit: Quantity | None = None
    ecn: Ecn | None = None
    line: int = 0
    everything: bool = False
    """Whether it is for all packets that no other group has."""

    @property
    def plain(self) -> bool:
        """Whether its packets drop on overflow only."""
        return self.shape is None and self.limit is None and self.ecn is None


class Rules:
    """Makes the tables `rule` of a port's queues."""

    def __init__(self, amounts: Amounts, account: Account) -> None:
        """Findings go to the account."""
        self._amounts = amounts
        self._account = account

    def rule(self, queue: PortQueue, service_bps: float | None, *, whole_port: bool) -> Rule:
        """A queue's AQM."""
        if queue.head_drop:
            self._account.find("W09", queue.line, f"class {queue.name} drops at the head; here at the tail")
        if queue.block is None:
            return _Curves(queue, service_bps, self._amounts, self._account).rule()
        listed: tuple[Color, ...] = ("green", "yellow") if queue.block.name == "rio" else ("green",)
        return Rule(self._block(queue.name, queue.block, whole_port=whole_port), Colors(listed=listed))

    def _block(self, who: str, block: Block, *, whole_port: bool) -> list[Entry]:
        keys, first = block.keys, configured(block.role, quoted(block.name), block.line)
        if block.role == "scheduler" and not whole_port:
            text = f"class {who}: {block.name} within a class is not simulated; CoDel in its place"
            self._account.find("W06", block.line, text)
            keys = tuple(item for item in block.keys if item[0] in CODEL_KEYS)
            for name, value, line in block.keys:
                if name not in CODEL_KEYS:
                    text = f"class {who}: {name} {value} of {block.name} has no effect here"
                    self._account.find("W13", line, text)
            first = configured("aqm", '"codel"', block.line, block.name)
        return [first, *(configured(key, value, line) for key, value, line in keys)]


class _Curves:
    """The table of a queue's AQM from its limit and its drop curves."""

    def __init__(self, queue: PortQueue, bps: float | None, amounts: Amounts, account: Account) -> None:
        self._queue = queue
        self._service_bps = bps
        self._amounts = amounts
        self._account = account
        self._limit = self._limit_of()
        quantities = [quantity for drop in queue.curves for quantity, _ in drop.curve.points]
        plain = all(q.unit is Unit.PERCENT or _countable(q) for q in quantities)
        self._in_packets = plain and _countable(self._limit)
        """Whether the curves and the limit are in packets."""
        self._total = self._limit.number if self._in_packets else self._bytes(self._limit)
        """The limit in packets or bytes."""

    def rule(self) -> Rule:
        queue = self._queue
        drops = [(drop, self._shape(drop)) for drop in self._reached()]
        if not any(shape is not None for _, shape in drops) and not self._limited(drops):
            how = How.CONFIGURED if queue.line > 0 else How.DEFAULT
            kind = Entry("aqm", '"drop-tail"', self._limit.line or queue.line, how)
            return Rule([kind, self._limit_entry()])
        return self._early(self._groups(drops))

    def _limited(self, drops: list[tuple[Drop, Shape | None]]) -> bool:
        """Whether some packets have a limit of their own; those that say the queue's are left out."""
        queue, limit = self._queue, self._limit
        own = queue.match.codepoints or ALL_CODEPOINTS
        for selector, quantity in queue.limits:
            if selector.codepoints is not None and not selector.codepoints & own:
                text = f"class {queue.name} takes no {selector.label}: its limit has no effect"
                self._account.find("W14", quantity.line, text)
        queue.limits = [
            (s, q)
            for s, q in queue.limits
            if (q.number, q.unit) != (limit.number, limit.unit) and (s.codepoints or own) & own
        ]
        return bool(queue.limits) or any(drop.limit is not None for drop, _ in drops)

    # Amounts

    def _service(self) -> float:
        if self._service_bps is not None:
            return self._service_bps
        queue = self._queue
        return self._amounts.port_rate(queue.line, f"the service rate of class {queue.name}")[0]

    def _bytes(self, quantity: Quantity, whole: Quantity | None = None) -> float:
        return self._amounts.bytes(quantity, self._service() if quantity.unit is Unit.SECONDS else 0.0, whole)

    def _shown(self, given: Quantity) -> str:
        """A limit of some packets as scenarios write it."""
        if _countable(given):
            return f"{max(1, round(given.number))}p"
        if self._in_packets and given.unit is Unit.PERCENT:
            return f"{max(1, round(given.number / 100 * self._total))}p"
        whole = Quantity(self._total, Unit.BYTES)
        return units.bytes_text(self._amounts.bytes(given, self._service(), whole))

    def _limit_of(self) -> Quantity:
        queue = self._queue
        if queue.limit is not None:
            return queue.limit
        highest = [drop.curve.points[-1][0] for drop in queue.curves if drop.curve.points]
        if self._amounts.lenient and highest:
            most = max(highest, key=lambda quantity: quantity.number)
            if most.unit in {Unit.BYTES, Unit.PACKETS, Unit.SECONDS, Unit.SEGMENTS}:
                said = "twice the largest max"
                self._account.find("W04", queue.line, f"class {queue.name}: queue limit assumed as {said}")
                return Quantity(2 * most.number, most.unit, 0, How.ASSUMED, most.each, said)
        self._account.find("W04", queue.line, f"class {queue.name}: no queue limit is configured")
        return self._amounts.buffer(queue.line, f"the queue limit of class {queue.name}", self._service_bps)

    def _limit_entry(self) -> Entry:
        limit = self._limit
        text = f"{max(1, round(self._total))}p" if self._in_packets else units.bytes_text(self._total)
        return Entry("limit", quoted(text), limit.line, limit.how, limit.text)

    # Curves

    def _reached(self) -> list[Drop]:
        """The curves of packets that the class takes; others are reported, and kept if there are no more."""
        queue = self._queue
        codepoints = queue.match.codepoints
        if codepoints is None:
            return queue.curves
        reached = [d for d in queue.curves if _of_others(d.selector) or d.selector.color is not None]
        reached += [d for d in queue.curves if codepoints & (d.selector.codepoints or frozenset())]
        kept = [drop for drop in queue.curves if drop in reached]
        if not kept:
            return queue.curves
        for drop in queue.curves:
            if drop not in reached:
                text = f"class {queue.name} takes no {drop.selector.label}: its curve has no effect"
                self._account.find("W14", drop.curve.line, text)
        return kept

    def _shape(self, drop: Drop) -> Shape | None:
        """A curve in bytes or packets; None: these packets drop on overflow only."""
        total, line = self._total, drop.curve.line
        points = []
        for quantity, p in drop.curve.points:
            if self._in_packets:
                percent = quantity.unit is Unit.PERCENT
                points.append((total * quantity.number / 100 if percent else quantity.number, p))
            else:
                points.append((self._bytes(quantity, Quantity(total, Unit.BYTES)), p))
        if not points:
            return None
        label = f"class {self._queue.name}, {drop.selector.label}"
        percents = [quantity.unit is Unit.PERCENT for quantity, _ in drop.curve.points]
        if any(percents) and not self._in_packets:
            base = self._limit.text or "the queue limit"
            self._account.find("W05", line, f"{label}: percent of {base}, {total:.0f} B")
        shape, fell = curves.shaped(points, drop.curve.interpolation, total, line, drop.curve.how)
        if fell:
            text = f"{label}: a probability below that of a lower fill; it stays as high as before here"
            self._account.find("W06", line, text)
        # Below the limit nothing is said; a curve of a table ends at the limit by nature.
        if shape is None:
            if not all(percents) and points[0][0] >= total:
                text = f"{label}: min is not below the queue limit; only tail drop acts"
                self._account.find("W03", line, text)
            return None
        if self._in_packets:
            shape = self._whole_packets(label, shape)
        elif not isinstance(shape, Ramp):  # fills below a byte are one
            fills = {0.0 if x <= 0 else max(1.0, float(math.floor(x + 0.5))): p for x, p in shape.points}
            shape = replace(shape, points=tuple(sorted(fills.items())))
        if shape.high >= total and not (all(percents) and shape.high <= total):
            text = f"{label}: max is not below the queue limit; tail drop acts first"
            self._account.find("W03", line, text)
        return curves.with_selectors(shape, (drop.selector,))

    def _whole_packets(self, label: str, shape: Shape) -> Shape:
        """The curve with whole packets; of points that become one, the last stays."""
        fills = [shape.low, shape.high] if isinstance(shape, Ramp) else [fill for fill, _ in shape.points]
        if max(abs(round(fill) - fill) for fill in fills) > 1e-6:
            listed = " and ".join(f"{fill:g}" for fill in fills)
            self._account.find("W16", shape.line, f"{label}: thresholds {listed} rounded to whole packets")
        if isinstance(shape, Ramp):
            return replace(shape, low=float(round(shape.low)), high=float(round(shape.high)))
        points = {float(round(fill)): p for fill, p in shape.points}
        return replace(shape, points=tuple(sorted(points.items())))

    def _early(self, groups: list[Group]) -> Rule:
        queue = self._queue
        special = any(group.limit is not None or group.ecn is not None for group in groups)
        for group in groups:
            if group.shape is not None:
                group.shape = curves.with_selectors(group.shape, tuple(group.selectors))
        shapes = curves.joined([group.shape for group in groups if group.shape is not None])
        assigned = None if special else curves.colored(shapes)
        first = next((shape.line for shape in shapes), queue.line)
        entries: list[Entry]
        profiles: list[list[Entry]] = []
        (only, *others) = groups
        if not others and only.everything and isinstance(only.shape, Ramp) and not special:
            entries = [configured("aqm", '"red"', first)]
            entries.append(self._curve_entry("thresholds", only.shape))
            if queue.adaptive:
                said = "max_p between 0.01 and 0.5, every 0.5 s"
                entries.append(configured("adaptive", "true", _place(queue), said))
            colors = Colors(dict.fromkeys(queue.match.codepoints or (), "green"))
        elif assigned is not None and not all(group.everything for group in groups):
            entries = [configured("aqm", '"wred"', first)]
            entries += [self._curve_entry(color, shape) for color, shape in assigned.items()]
            known = not queue.colors_assumed and any(group.color is not None for group in groups)
            if known and "yellow" in assigned and "red" not in assigned:
                said = "no curve for them: dropped on overflow only"
                profiles = [[configured("match", '{ color = "red" }', queue.line, said)]]
            colors = self._colors(assigned)
        else:
            entries = [configured("aqm", '"wred"', first)]
            profiles = [self._profile(group) for group in groups]
            colors = self._kinds(groups)
        entries.append(self._limit_entry())
        if shapes:
            entries += self._average()
            if queue.ecn is not Ecn.OFF:
                place = queue.ecn_line or queue.line
                entries.append(configured("ecn", ECN_VALUES[queue.ecn], place, str(queue.ecn)))
            entries += self._packet(first)
        return Rule(entries, colors, profiles)

    def _profile(self, group: Group) -> list[Entry]:
        labels = ", ".join(selector.label for selector in group.selectors)
        entries = []
        if group.color is not None:
            entries.append(configured("match", f'{{ color = "{group.color}" }}', group.line, labels))
        elif not group.everything:
            entries.append(configured("match", _match(group.codepoints), group.line, labels))
        if group.shape is not None:
            entries.append(self._curve_entry("curve", group.shape))
        if group.limit is not None:
            given = group.limit
            entries.append(Entry("limit", quoted(self._shown(given)), given.line, given.how, given.text))
        if group.ecn is not None and group.shape is not None:
            entries.append(configured("ecn", ECN_VALUES[group.ecn], group.line, str(group.ecn)))
        return entries

    def _colors(self, assigned: dict[Color, Shape]) -> Colors:
        """The colors of codepoints, for the template of traffic."""
        by_codepoint: dict[int, Color] = {}
        for color, shape in assigned.items():
            for selector in shape.selectors:
                for value in selector.codepoints or ():
                    own = selector.color or drop_precedence(value) or "green"
                    by_codepoint.setdefault(value, own if own in assigned else color)
        for value in self._queue.match.codepoints or ():
            by_codepoint.setdefault(value, "green")
        return Colors(by_codepoint, tuple(assigned))

    def _kinds(self, groups: list[Group]) -> Colors:
        """A codepoint of each profile, or the colors that profiles are for."""
        listed = [group.color for group in groups if group.color is not None]
        if listed:
            named = {value: g.color for g in groups if g.color for value in g.codepoints}
            for value in self._queue.match.codepoints or ():
                named.setdefault(value, "green")
            return Colors(named, tuple(listed))
        samples = []
        for group in groups:
            if not group.codepoints:
                continue
            chosen = [min(selector.codepoints) for selector in group.selectors if selector.codepoints]
            label = group.selectors[0].label if group.selectors else "others"
            samples.append((label, (*chosen, *sorted(group.codepoints))))
        return Colors(samples=tuple(samples)) if len(samples) > 1 else Colors()

    # Which packets have which curve

    def _groups(self, drops: list[tuple[Drop, Shape | None]]) -> list[Group]:
        """Packets with the same curve, limit and ECN mode, each group with its selectors."""
        queue = self._queue
        if any(drop.selector.color is not None for drop, _ in drops):
            return self._by_color(drops)
        universe = queue.match.codepoints or ALL_CODEPOINTS
        others = next(((d, s) for d, s in drops if d.selector.codepoints is None), None)
        if others is None and drops:
            others = self._without_curve(universe, drops)
        found: dict[object, Group] = {}
        for value in sorted(universe):
            own = ((drop, shape) for drop, shape in drops if value in (drop.selector.codepoints or ()))
            drop, shape = next(own, others or (None, None))
            limits = ((s, q) for s, q in queue.limits if s.codepoints is None or value in s.codepoints)
            limit = next(limits, None)
            own_limit = limit[1] if limit is not None else drop.limit if drop is not None else None
            ecn = drop.ecn if drop is not None and drop.ecn is not queue.ecn else None
            amount = None if own_limit is None else (own_limit.number, own_limit.unit)
            same = (None if shape is None else shape.numbers, amount, ecn)
            line = 0 if drop is None else drop.curve.line
            group = found.setdefault(same, Group(shape, limit=own_limit, ecn=ecn, line=line))
            group.codepoints.add(value)
            for selector in (None if drop is None else drop.selector, None if limit is None else limit[0]):
                if selector is not None and selector not in group.selectors:
                    group.selectors.append(selector)
            if group.line == 0 and own_limit is not None:
                group.line = own_limit.line
        groups = sorted(found.values(), key=lambda group: min(group.codepoints))
        if len(groups) == 1 or queue.match.codepoints is None:
            # The largest one is for all other packets.
            rest = max(groups, key=lambda group: len(group.codepoints))
            rest.everything = True
            groups.remove(rest)
            groups.append(rest)
            if rest.plain and len(groups) > 1:
                groups.pop()
        if not any(group.everything for group in groups):
            groups = [group for group in groups if not group.plain]
        return groups

    def _by_color(self, drops: list[tuple[Drop, Shape | None]]) -> list[Group]:
        groups = []
        for drop, shape in drops:
            ecn = drop.ecn if drop.ecn is not self._queue.ecn else None
            codes = set(drop.selector.codepoints or ())
            own = drop.selector
            groups.append(Group(shape, [own], codes, own.color, drop.limit, ecn, drop.curve.line))
        same = {(g.shape.numbers if g.shape else None, g.limit, g.ecn) for g in groups}
        if len(groups) == len(COLORS) and len(same) == 1:
            groups[0].everything, groups[0].color = True, None
            return groups[:1]
        return [group for group in groups if group.shape is not None or group.limit is not None]

    def _without_curve(
        self, universe: frozenset[int], drops: list[tuple[Drop, Shape | None]]
    ) -> tuple[Drop, Shape | None] | None:
        """The curve for codepoints that no curve names: the most lenient one, which is reported."""
        queue = self._queue
        missing = universe - frozenset[int]().union(*(drop.selector.codepoints or () for drop, _ in drops))
        if not missing:
            return None
        every = queue.match.codepoints is None
        names = "other codepoints" if every else units.listed(missing)
        text = f"class {queue.name}: no curve is configured for {names}; the most lenient one here"
        self._account.find("W04", drops[0][0].curve.line, text)
        free = next((pair for pair in drops if pair[1] is None), None)
        shaped = [(drop, shape) for drop, shape in drops if shape is not None]
        return free or min(shaped, key=lambda pair: curves.lenience(pair[1]))

    # The other keys

    def _average(self) -> list[Entry]:
        queue, average = self._queue, self._queue.average
        if average is None or average.weight is None:
            text = f"class {queue.name}: the weight of the average is not known; instantaneous (1) here"
            self._account.find("W02", 0 if average is None else average.line, text)
            weight = Entry("weight", "1.0", queue.line, How.ASSUMED, "weight unknown")
        else:
            weight = Entry("weight", units.decimal(average.weight), average.line, average.how, average.text)
        wait = Entry("wait", "false", _place(queue), How.DEFAULT, "1 to 1/p packets between drops")
        if not queue.spacing_known:
            text = f"class {queue.name}: how drops are spaced on this platform is not known"
            self._account.find("W12", queue.line, f"{text}; 1 to 1/p packets here")
            wait = Entry("wait", "false", 0, How.ASSUMED, "spacing of drops")
        return [weight, wait]

    def _packet(self, line: int) -> list[Entry]:
        queue, entries = self._queue, []
        if not self._in_packets:
            said = "p is the same for packets of all sizes"
            entries.append(Entry("scale-by-size", "false", _place(queue), How.DEFAULT, said))
        if queue.mean_packet is not None:
            given = queue.mean_packet
            return [*entries, bytes_entry("mean-packet", given.number, given)]
        why = f"class {queue.name}: idle time of its average counts in mean packets"
        value, how = self._amounts.packet(line, why)
        said = "--packet-size" if how is How.ASKED else ""
        return [*entries, Entry("mean-packet", quoted(units.bytes_text(value)), 0, how, said)]

    def _curve_entry(self, key: str, shape: Shape) -> Entry:
        def amount(value: float) -> str:
            if self._in_packets:
                return str(round(value))
            return units.bytes_text(value) if value > 0 else "0B"

        if isinstance(shape, Ramp):
            text = f"{amount(shape.low)}/{amount(shape.high)}/{units.plain(shape.most, 6)}"
        else:
            word = "interpolate" if shape.interpolation == "linear" else "segmented"
            text = f"{word} " + ", ".join(f"{amount(fill)}/{units.plain(p, 6)}" for fill, p in shape.points)
        labels = ", ".join(selector.label for selector in shape.selectors)
        return Entry(key, quoted(text), shape.line, shape.how, labels)


def _countable(quantity: Quantity) -> bool:
    return quantity.unit is Unit.PACKETS and quantity.each is None


def _of_others(selector: object) -> bool:
    return getattr(selector, "codepoints", None) is None and getattr(selector, "color", None) is None


def _match(codepoints: set[int]) -> str:
    """Codepoints as a match: by precedence, where they are all of some."""
    precedences = sorted({value // 8 for value in codepoints})
    if len(codepoints) == 8 * len(precedences):
        return f"{{ precedence = {precedences[0] if len(precedences) == 1 else json.dumps(precedences)} }}"
    return f"{{ dscp = {json.dumps(units.shown_codepoints(codepoints))} }}"


def _place(queue: PortQueue) -> int:
    """The line of a queue's first curve, which may be on another line than its class."""
    return queue.curves[0].curve.line if queue.curves else queue.line
