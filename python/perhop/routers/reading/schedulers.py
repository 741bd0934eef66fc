"""From the queues of a port to the tables of its scheduler.

What perhop cannot run yet is approximated and reported with its line; see `source.CODES`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from perhop.routers import units
from perhop.routers.model import ALL_CODEPOINTS, How, Match, Port, PortQueue, Quantity, Rate, RateUnit, Unit
from perhop.routers.reading import document, trees
from perhop.routers.reading.amounts import Amounts
from perhop.routers.reading.classes import Classes, complete, explicit
from perhop.routers.reading.document import Entry, Keys, Section, bytes_entry, configured, rate_entry
from perhop.routers.reading.rules import Colors, Rules
from perhop.routers.reading.sharing import FULL, Shares, limit_of
from perhop.routers.units import quoted

if TYPE_CHECKING:
    from perhop.routers.model import PortMeter, TreeClass
    from perhop.routers.reading.amounts import Answers
    from perhop.routers.source import Account

LEAST_BURST = 1500.0
MOST_STRICT = 2
POLICED_LIMIT = "1000p"
"""The limit of the queue behind policers of arriving packets; the configuration says nothing of it."""


Queues = list[PortQueue]


@dataclass(slots=True)
class Tables:
    """The tables of a scheduler, and its queues in order, each with the color of every codepoint."""

    sections: list[Section] = field(default_factory=list)
    order: list[tuple[PortQueue, Colors]] = field(default_factory=list)

    def add(self, other: Tables) -> None:
        """Append what another scheduler or queue has."""
        self.sections += other.sections
        self.order += other.order


class Schedulers:
    """The schedulers of one port."""

    def __init__(self, port: Port, answers: Answers, account: Account) -> None:
        """Findings go to the account; missing answers are in `amounts.needs`."""
        self.port = port = _below_link(_shaped_whole(port), answers, account)
        self._answers = answers
        self._account = account
        self.amounts = Amounts(port, answers, account)
        self.classes = Classes(port, answers, self.amounts, account)
        self._rules = Rules(self.amounts, account)
        self._shares = Shares(port, self.amounts, account)
        self.policed: set[str] = set()
        """Queues whose own policer is that of a strict queue."""
        self.names: list[str] = []
        """The names of classes, as --match has them."""
        self.nested: Queues = []
        """Queues of policies within classes, with the packets that each has."""

    def queues(self) -> Queues:
        """The queues of the port, by name and with their packets."""
        named = self.classes.named(self.port.queues)
        self.names = [queue.name for queue in named]
        return self.classes.disjoint(named)

    def scheduled(self, queues: Queues, path: str) -> Tables:
        """The tables of the port's queue."""
        if not queues:  # a link without a queue is not measured
            said = "policers only: a queue beside them"
            self._account.find("W04", self.port.line, f"{said} has {POLICED_LIMIT} here")
            limit = Entry("limit", quoted(POLICED_LIMIT), 0, How.ASSUMED, said)
            kind = Entry("aqm", '"drop-tail"', 0, How.ASSUMED, said)
            return Tables([Section(f"[{path}]", [kind, limit], "queue")])
        if self.port.tree:
            return self._tree(path, queues, self.port)
        queues = [self._below(queue) for queue in queues]
        result = Tables()
        if self.amounts.shaped and self.port.shaper is not None:
            result.sections.append(self._shaper(path, self.port.shaper))
            path += ".queue"
        result.add(self._alone(path, queues[0]) if len(queues) == 1 else self._together(path, queues))
        return result

    def _alone(self, path: str, queue: PortQueue, *, whole_port: bool = True) -> Tables:
        """The table of a queue's AQM, and those of its drop profiles."""
        found = self._rules.rule(queue, self._service(queue), whole_port=whole_port)
        profiles = [Section(f"[[{path}.profiles]]", entries, queue.name) for entries in found.profiles]
        return Tables([Section(f"[{path}]", found.entries, queue.name), *profiles], [(queue, found.colors)])

    def _together(self, path: str, queues: Queues) -> Tables:
        """Several queues: strict ones and others that share, by the scheduler that says most of it."""
        strict = sorted((q for q in queues if q.level is not None), key=lambda q: q.level or 0)
        others = [q for q in queues if q.level is None]
        shaped = self._shaped_strict(strict)
        tables = None
        if strict[:shaped] and (others or shaped):
            tables = self._low_latency(path, strict[:shaped], others, strict[shaped:] if shaped else [])
        if tables is None and (shaped is not None or self._limited(others)):
            tables = self._borrowing(path, others, strict)
        if tables is not None:
            return tables
        top = Section(f"[{path}]", queue="scheduler")
        capped = all(self._shares.guaranteed(q) is not None for q in strict)
        if strict and (len(others) <= 1 or len(strict) > MOST_STRICT):
            queues = explicit([*strict, *others])
            strict, others = queues[: len(strict)], queues[len(strict) :]
            keys = self._priority(top, strict, others)
            self._shares.unused(strict, {queue.name: limit_of(queue) for queue in strict})
            self._shares.unused(others, {queue.name: queue.guarantee for queue in others[:-1]})
        else:
            share = self._shares.sharing if capped else self._shares.outweighing
            keys = share(top, strict, queues)
            used = {queue.name: queue.guarantee or queue.share for queue in others}
            self._shares.unused(queues, used | {q.name: self._shares.guaranteed(q) for q in strict if capped})
        return self._listed(path, top, queues, keys)

    def _listed(self, path: str, top: Section, queues: Queues, keys: Keys) -> Tables:
        """A scheduler with its queues, of which the last takes all other packets."""
        result = Tables([top])
        for queue in queues:
            result.add(self._queue(path, queue, keys[queue.name], last=queue is queues[-1]))
        return result

    def _tree(self, path: str, queues: Queues, port: Port) -> Tables:
        result = Tables()
        taken = frozenset[int]().union(*(queue.match.codepoints or () for queue in queues))

        def leaf(queue: PortQueue, made: TreeClass, place: str) -> tuple[list[Entry], list[Section]]:
            keys = [] if queue is queues[-1] else [self._match(queue)]
            place += ".queue"
            held = self._inner(queue, made, place, taken) if queue.within else self._alone(place, queue)
            result.order.extend(held.order)
            return keys, held.sections

        result.sections = trees.sections(port, path, queues, self.amounts.scenario_rate()[0], leaf)
        return result

    def _below(self, queue: PortQueue) -> PortQueue:
        """A queue without a ceiling that is not below the port's rate."""
        ceiling = queue.ceiling
        if ceiling is None:
            return queue
        port, _, _ = self.amounts.port_rate(ceiling.line, f"`{ceiling.text}` beside the link's rate")
        if self.amounts.rate(ceiling) < port * FULL or self.amounts.needs:
            return queue
        text = f"class {queue.name}: `{ceiling.text}` is not below {units.shown_rate(port)} and has no effect"
        self._account.find("W13", ceiling.line, text)
        return replace(queue, ceiling=None)

    def _limited(self, queues: Queues) -> bool:
        """Whether some of these have a ceiling or a policy of their own, which only `htb` can say."""
        return any(queue.ceiling is not None or queue.within for queue in queues)

    def _borrowing(self, path: str, queues: Queues, strict: Queues) -> Tables:
        """The tables of a tree of `htb`: ceilings, strict queues that are shaped, policies within classes."""
        contended = any(map(self._borrows, queues))
        sure = [queue for queue in strict if contended and _shares_above(queue)]
        for queue in sure:
            self._shares.beside(queue)
        names = {queue.name for queue in sure}
        strict = [queue for queue in strict if queue.name not in names]
        queues = [*(replace(queue, level=None, in_profile=None) for queue in sure), *queues]
        ordered = explicit([*strict, *queues])
        strict, queues = ordered[: len(strict)], ordered[len(strict) :]
        port, how, line = self.amounts.port_rate(self.port.line, "the rates of classes")
        base = max(port - self._shares.reserved, port * (1 - FULL))
        most = Rate(port, RateUnit.BPS, line, how, "what the classes share")
        limits = [self._strict_rate(queue, most) for queue in strict]
        left = max(base - sum(rate.number for rate, _ in limits), base * trees.BYPASS) if limits else base
        total = sum(self.amounts.rate(q.guarantee) for q in queues if q.guarantee is not None)
        self._shares.exceeded(total, left)
        parts = self._shares.fractions(queues, left)
        scale = left / max(sum(parts), 1.0)
        ceilings = [None if q.ceiling is None else self.amounts.rate(q.ceiling) for q in queues]
        first = list(zip(strict, limits, strict=True))
        root = trees.shared(queues, [part * scale for part in parts], ceilings, most, first)
        for queue, made in zip(ordered, root.classes, strict=True):
            self._cburst(queue, made)
        for queue in strict:
            alone = replace(queue, cap=None, ceiling=None)
            self._shares.unused([alone], {queue.name: limit_of(queue) or queue.ceiling})
        for queue in queues:
            self._shares.unused([queue], {queue.name: queue.guarantee or queue.share})
        return self._tree(path, ordered, replace(self.port, tree=[root], quantum_divisor=None))

    def _borrows(self, queue: PortQueue) -> bool:
        ceiling, rate = queue.ceiling, queue.guarantee
        return ceiling is None or rate is None or self.amounts.rate(ceiling) > self.amounts.rate(rate)

    def _shaped_strict(self, strict: Queues) -> int | None:
        """The first strict queue that a shaper delays: one whose policer does not drop its packets before."""
        for place, queue in enumerate(strict):
            ceiling, found = queue.ceiling, _policer(queue)
            if ceiling is None:
                continue
            if found is None or not found[1] or self.amounts.rate(found[0].rate) > self.amounts.rate(ceiling):
                return place
        return None

    def _strict_rate(self, queue: PortQueue, most: Rate) -> tuple[Rate, Rate]:
        """The rate and the ceiling of a strict queue in a tree: its shaper's, or all."""
        ceiling = most if queue.ceiling is None else queue.ceiling
        ceiling = replace(ceiling, number=self.amounts.rate(ceiling), unit=RateUnit.BPS)
        rate = limit_of(queue)
        if rate is None:
            return ceiling, ceiling
        if queue.cap is not None:
            text = f"class {queue.name}: above `{rate.text}` it goes first up to its ceiling, not policed"
            self._account.find("W10", queue.cap.line, text)
        number = min(self.amounts.rate(rate), ceiling.number)
        return replace(rate, number=number, unit=RateUnit.BPS), ceiling

    def _cburst(self, queue: PortQueue, made: TreeClass) -> None:
        given = queue.ceiling_burst
        if given is None:
            return
        amount = self.amounts.bytes(given, made.ceil.number)
        made.cburst = replace(given, number=self._a_packet(amount, given.line), unit=Unit.BYTES)

    def _inner(self, queue: PortQueue, made: TreeClass, path: str, taken: frozenset[int]) -> Tables:
        """The tables of the policy within a class; `taken` are codepoints of other classes."""
        port = Port(queue.name, queue.line, queues=queue.within, shaper=made.ceil, sharing=self.port.sharing)
        port.default_name = self.port.default_name
        inner = Schedulers(port, replace(self._answers, link_rate=None), self._account)
        inner.amounts.needs, inner.classes.local = self.amounts.needs, self.classes.local
        own = ALL_CODEPOINTS - taken if queue.match.codepoints is None else queue.match.codepoints
        named = inner.classes.named(queue.within)
        within = []
        for one in named:
            codes = self.classes.codepoints(one.match, one.name, "class")
            match = one.match if codes is None else replace(one.match, codepoints=codes & own, unknown=())
            rate = one.guarantee if queue.ceiling is not None else self._part(one.guarantee, made.rate.number)
            within.append(replace(one, match=match, guarantee=rate))
        queues = inner.classes.disjoint(complete(within, own))
        found = inner.scheduled(queues, path)
        inside = frozenset[int]().union(*(one.match.codepoints or () for one in queues))
        self.names += [one.name for one in named] + inner.names
        result = Tables(found.sections)
        for one, colors in found.order:
            match = one.match if one.match.codepoints is not None else Match(own - inside, (), one.match.line)
            here = replace(one, name=f"{queue.name}/{one.name}", match=match)
            result.order.append((here, colors))
            if one.name not in inner.policed:
                self.nested.append(here)
        for section in result.sections:
            section.queue = f"{queue.name}/{section.queue}"
        self.nested += inner.nested
        return result

    def _part(self, rate: Rate | None, whole: float) -> Rate | None:
        """A guarantee within a class without a ceiling: its part of what the class is sure of."""
        if rate is None or rate.unit is not RateUnit.BPS:
            return rate
        part = min(100 * rate.number / whole, 100.0)
        text = f"`{rate.text}` is {part:.3g} % of what its class is sure of, and here of what this gets"
        self._account.find("W05", rate.line, text)
        return replace(rate, number=part, unit=RateUnit.PERCENT)

    def _match(self, queue: PortQueue) -> Entry:
        how = How.ASKED if queue.name in self._answers.matches else How.CONFIGURED
        return document.match_entry(queue.match.codepoints or (), queue.match.line or queue.line, how)

    def _shaper(self, path: str, shaper: Rate) -> Section:
        rate = self.amounts.rate(shaper)
        least, text = max(rate * 0.004 / 8, LEAST_BURST), "4 ms of the rate"
        burst = self.port.shaper_burst or Quantity(least, Unit.BYTES, shaper.line, How.DEFAULT, text=text)
        number = self._a_packet(self.amounts.bytes(burst, rate), burst.line)
        entries = [
            configured("scheduler", '"shaper"', shaper.line, shaper.text),
            rate_entry("rate", rate, shaper),
            bytes_entry("burst", number, burst),
        ]
        return Section(f"[{path}]", entries, "shaper")

    def _a_packet(self, burst: float, line: int) -> float:
        if burst >= LEAST_BURST:
            return burst
        self._account.find("W16", line, f"burst of {burst:.0f} B raised to a packet of 1500 bytes")
        return LEAST_BURST

    def _low_latency(self, path: str, strict: Queues, others: Queues, shaped: Queues) -> Tables | None:
        """Strict priority with policers in front of what others share; None if it does not say the same.

        `shaped` are strict queues after these, from the first one on that a shaper delays.
        """
        ordered = explicit([*strict, *shaped, *others])
        strict, shaped = ordered[: len(strict)], ordered[len(strict) : len(strict) + len(shaped)]
        others = ordered[len(strict) + len(shaped) :]
        policers = {queue.name: _policer(queue) for queue in strict}
        if any(policers[queue.name] is None and queue.in_profile is not None for queue in strict):
            return None
        rates = {name: self.amounts.rate(found[0].rate) for name, found in policers.items() if found}
        limited = bool(shaped) or self._limited(others)
        if not rates and len(others) == 1 and not limited:
            return None  # `priority` says it, too
        if rates:
            port, _, _ = self.amounts.port_rate(strict[0].level_line, "the rates of strict queues")
            if sum(rates.values()) >= port * FULL:
                return None
        top = configured("scheduler", '"llq"', strict[0].level_line, "strict priority, then others")
        result = Tables([Section(f"[{path}]", [top], "scheduler")])
        for queue in strict:
            keys = self._policed(queue, policers[queue.name])
            result.add(self._queue(path, queue, keys, last=False, table="priority"))
        used = {name: found[0].rate if found else None for name, found in policers.items()}
        self._shares.unused(strict, used)
        self._shares.reserved = sum(rates.values())
        result.add(self._behind(f"{path}.queue", others, shaped, limited=limited))
        return result

    def _policed(self, queue: PortQueue, policer: tuple[PortMeter, bool] | None) -> list[Entry]:
        if policer is None:
            return []
        meter, always = policer
        bps = self.amounts.rate(meter.rate)
        burst = self.amounts.bytes(meter.burst, bps)
        keys = [self._shares.rate(meter.rate, bps), bytes_entry("burst", burst, meter.burst, meter.line)]
        if always:
            keys.append(configured("police", '"always"', meter.line))
            self.policed.add(queue.name)
        return keys

    def _behind(self, path: str, others: Queues, shaped: Queues, *, limited: bool) -> Tables:
        """The queues that share the link behind policed strict ones."""
        if limited:
            return self._borrowing(path, others, shaped)
        if len(others) == 1:
            result = self._alone(path, others[0])
            self._shares.ceiling(others[0])
            self._shares.unused(others, {})
            return result
        top = Section(f"[{path}]", queue="scheduler")
        keys = self._shares.sharing(top, [], others)
        self._shares.unused(others, {queue.name: queue.guarantee or queue.share for queue in others})
        return self._listed(path, top, others, keys)

    def _priority(self, top: Section, strict: Queues, others: Queues) -> Keys:
        """Strict priority; if rated queues share the rest, they follow with their guarantees as caps."""
        top.entries.append(configured("scheduler", '"priority"', strict[0].level_line, "strict priority"))
        keys: Keys = {queue.name: [] for queue in (*strict, *others)}
        bursts: list[tuple[float, int, str]] = []
        for queue in strict:
            rate = limit_of(queue)
            if rate is None:
                continue
            bps = self.amounts.rate(rate)
            keys[queue.name].append(rate_entry("cap", bps, rate))
            if queue.cap is not None:
                burst = self.amounts.bytes(queue.cap.burst, bps)
                bursts.append((burst, queue.cap.burst.line or rate.line, queue.cap.burst.text))
                text = f"class {queue.name}: above its rate it waits while others have packets, not dropped"
                self._account.find("W10", queue.cap.line, text)
        if bursts:
            burst, line, said = max(bursts)
            top.entries.append(configured("burst", quoted(units.bytes_text(burst)), line, said))
            if len({value for value, _, _ in bursts}) > 1:
                text = f"strict queues have different bursts; perhop has one, {burst:.0f} B, the largest"
                self._account.find("W10", line, text)
        for queue in others[:-1]:
            rate = queue.guarantee
            if rate is not None:
                bps = self.amounts.rate(rate)
                keys[queue.name].append(rate_entry("cap", bps, rate, f"{rate.text}, as a cap"))
            text = (
                f"class {queue.name} shares what strict queues leave; here it goes before later classes up "
                "to its guarantee, and what is left beyond all goes to the last class"
            )
            self._account.find("W06", (rate.line if rate else 0) or queue.line, text)
        return keys

    def _service(self, queue: PortQueue) -> float | None:
        """The rate at which a queue is served at least, in bit/s; None: that of the port."""
        rate = self._shares.guaranteed(queue) or queue.ceiling
        return None if rate is None else self.amounts.rate(rate)

    def _queue(
        self, path: str, queue: PortQueue, keys: list[Entry], *, last: bool, table: str = "queues"
    ) -> Tables:
        """A queue of a scheduler, with the keys of its share."""
        section = Section(f"[[{path}.{table}]]", queue=queue.name)
        section.entries.append(Entry("name", quoted(queue.name), queue.line))
        section.entries += [*([] if last else [self._match(queue)]), *keys]
        held = self._alone(f"{path}.{table}.rule", queue, whole_port=False)
        return Tables([section, *held.sections], held.order)


def _shaped_whole(port: Port) -> Port:
    """A port whose only queue is shaped has this shaper; within another one the lower of the two counts."""
    if len(port.queues) != 1 or port.tree or port.queues[0].ceiling is None:
        return port
    (queue,) = port.queues
    ceiling, outer = queue.ceiling, port.shaper
    if queue.match.codepoints is not None or queue.match.unknown or ceiling is None:
        return port
    if outer is not None and (outer.unit is not ceiling.unit or outer.number <= ceiling.number):
        return port
    alone = replace(queue, ceiling=None, ceiling_burst=None)
    return replace(port, queues=[alone], shaper=ceiling, shaper_burst=queue.ceiling_burst)


def _below_link(port: Port, answers: Answers, account: Account) -> Port:
    """A port without a shaper that is above the rate of the link."""
    shaper = port.shaper
    known = answers.link_rate or (None if port.rate is None else port.rate.number)
    if shaper is None or known is None or shaper.unit is not RateUnit.BPS:
        return port
    if shaper.number * FULL <= known:
        return port
    text = f"`{shaper.text}` is above the link's {units.shown_rate(known)} and has no effect"
    account.find("W13", shaper.line, text)
    return replace(port, shaper=None, shaper_burst=None)


def _shares_above(queue: PortQueue) -> bool:
    """Whether a strict queue shares with others what it sends above a rate."""
    return queue.in_profile is not None and queue.cap is None and queue.ceiling is None


def _policer(queue: PortQueue) -> tuple[PortMeter, bool] | None:
    """The policer of a strict queue, and whether it acts always and not in congestion only."""
    if queue.cap is not None:
        return queue.cap, False
    if len(queue.meters) == 1:
        (meter,) = queue.meters
        if meter.kind == "one-bucket" and (meter.conform, meter.exceed) == ("transmit", "drop"):
            return meter, True
    return None
