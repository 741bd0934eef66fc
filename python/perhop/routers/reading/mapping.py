"""From the configuration of a port to a scenario: schedulers, queues, meters, and a template of traffic.

What perhop cannot run yet is approximated and reported with its line; see `source.CODES`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from perhop.routers import units
from perhop.routers.model import ALL_CODEPOINTS, How, Match, Port, Queue, Rate, RateUnit, Unit
from perhop.routers.reading import trees
from perhop.routers.reading.amounts import Amounts
from perhop.routers.reading.document import Entry, Section
from perhop.routers.reading.meters import profile
from perhop.routers.reading.rules import Colors, Rules
from perhop.routers.reading.sharing import FULL, Shares, limit_of, rate_entry
from perhop.routers.reading.template import traffic
from perhop.routers.units import key, quoted

if TYPE_CHECKING:
    from perhop.routers.model import Jitter, Meter, TreeClass
    from perhop.routers.reading.amounts import Answers, Need
    from perhop.routers.reading.rules import Rule
    from perhop.routers.source import Account

DELAY = "5ms"
"""Of the link: no configuration has it."""
LEAST_BURST = 1500.0
LOCAL_USE = tuple(range(3, 64, 4))
"""Codepoints xxxx11, for local use (RFC 2474, section 6): with `--lenient` those of classes without any."""
MOST_STRICT = 2
POLICED_LIMIT = "1000p"
"""Of the queue behind policers of arriving packets, of which the configuration says nothing."""


class Mapping:
    """The scenario of one port."""

    def __init__(self, port: Port, answers: Answers, account: Account) -> None:
        """Findings go to the account; missing answers are in `needs`."""
        port = _below_link(_shaped_whole(port), answers, account)
        self._port = port
        self._answers = answers
        self._account = account
        self._amounts = Amounts(port, answers, account)
        self._rules = Rules(self._amounts, account)
        self._shares = Shares(port, self._amounts, account)
        self._local = iter(LOCAL_USE)
        self._policed: set[str] = set()
        """Queues whose own policer is that of a strict queue."""
        self.names: list[str] = []
        """Of the classes, as --match has them."""
        self._nested: list[Queue] = []
        """Queues of policies within classes, with the packets that each has."""
        self._policing: list[tuple[str, frozenset[int]]] = []
        """The meters with the packets of each."""
        self.link = f"links.{key(port.name)}"

    @property
    def needs(self) -> list[Need]:
        """Answers that are missing."""
        return self._amounts.needs

    def sections(self) -> list[Section]:
        """The tables of the scenario; only meant to be used if nothing is missing."""
        named = self._named(self._port.queues)
        self.names = [queue.name for queue in named]
        queues = self._disjoint(named)
        link = self._link()
        scheduled, order = self._scheduled(queues, f"{self.link}.queue")
        meters = self._meters(queues)
        top = Section("", [Entry("title", quoted(f"{self._port.name}, imported"))])
        top.entries += [Entry("duration", '"60s"'), Entry("warmup", '"10s"')]
        bps, _, _ = self._amounts.port_rate(self._port.line, "the rate of the link")
        flows = traffic(order, self._policing, self._port.default_name, self._answers.packet_size, bps)
        return [top, link, *scheduled, *meters, *flows]

    # Classes

    def _named(self, queues: list[Queue]) -> list[Queue]:
        """Each queue with a name of its own."""
        result: list[Queue] = []
        names: set[str] = set()
        for queue in queues:
            name = queue.name.strip() or "unnamed"
            while name in names:
                name += "+"
            if name != queue.name:
                self._account.find("W14", queue.line, f"class {queue.name!r} is called {name} here")
            names.add(name)
            result.append(queue if name == queue.name else replace(queue, name=name))
        return result

    def _disjoint(self, queues: list[Queue]) -> list[Queue]:
        """Each class with the packets that no earlier one takes; the last takes all others."""
        taken: set[int] = set()
        result: list[Queue] = []
        rest: Queue | None = None
        for queue in queues:
            if rest is not None:
                text = f"class {queue.name} can never match: class {rest.name} before it takes all packets"
                self._account.find("W14", queue.line, text)
                continue
            codepoints = self._codepoints(queue.match, queue.name, "class")
            if codepoints is None:
                rest = queue
                continue
            double = codepoints & taken
            left = codepoints - taken
            if not left:
                why = "earlier classes take all its packets" if codepoints else "no packet fulfills it"
                self._account.find("W14", queue.match.line or queue.line, f"class {queue.name}: {why}")
                continue
            if double:
                text = f"class {queue.name}: an earlier class takes {_listed(frozenset(double))}"
                self._account.find("W14", queue.match.line or queue.line, text)
            taken |= left
            match = replace(queue.match, codepoints=frozenset(left), unknown=())
            result.append(replace(queue, match=match))
        if taken == ALL_CODEPOINTS:
            if rest is not None and rest.line > 0:
                self._account.find("W14", rest.line, f"class {rest.name}: earlier classes take all packets")
            rest = result.pop()
        elif rest is None and result:
            rest = Queue(self._port.default_name, 0)
            self._account.find("W04", self._port.line, "no class for other packets: they get a queue")
        if rest is not None:
            result.append(replace(rest, match=Match(None)))
        return result

    def _codepoints(self, match: Match, name: str, what: str) -> frozenset[int] | None:
        """The packets of a class or policer; None: all others. An answer is for conditions beside these."""
        subject = f"{what} {name}"
        answered = self._answers.matches.get(name)
        if answered is not None:
            return self._answered(match, name, answered)
        if not match.unknown:
            return match.codepoints
        line, text = match.unknown[0]
        known = match.codepoints if match.possible == ALL_CODEPOINTS else match.most
        if not self._answers.lenient:
            why = f"{subject} is chosen by `{text}`, not by codepoint"
            if known:
                why = f"{subject}: `{text}` is no codepoint"
            shown = f"'{name}'" if " " in name else name
            self._amounts.need(f"--match {shown}=DSCP", line, why)
            return known or frozenset({next(self._local, 63)})
        if known:
            for place, other in match.unknown:
                why = f"{subject}: `{other}` is no codepoint; only its codepoints are used"
                self._account.find("W13", place, why)
            return known
        value = next(self._local, 63)
        said = f"{subject} is chosen by `{text}`: codepoint {value} is used for it; give --match"
        for place, _ in match.unknown:
            self._account.find("W13", place, said)
        return frozenset({value})

    def _answered(self, match: Match, name: str, answered: frozenset[int]) -> frozenset[int]:
        """The packets of a class with an answer, which replaces its conditions beside codepoints."""
        if not match.unknown:
            if match.codepoints is not None and match.codepoints != answered:
                shown = _listed(match.codepoints) or "no codepoint"
                text = f"--match {name}: {_listed(answered)} in place of {shown}"
                self._account.find("W14", match.line, f"{text}, which the configuration says")
            return answered
        kept = answered & match.most
        if kept != answered:
            text = f"--match {name}: the class does not take {_listed(answered - kept)}, by its other lines"
            self._account.find("W14", match.unknown[0][0], text)
        return match.sure | kept

    # The link

    def _link(self) -> Section:
        section = Section(f"[{self.link}]", queue="link")
        bps, how, line = self._link_rate()
        shaper = self._port.shaper
        said = "" if how is How.CONFIGURED else "--rate" if how is How.ASKED else ""
        if shaper is not None and not self._shaped():
            said = f"{shaper.text}, taken as the link's rate"
            burst = self._port.shaper_burst
            if burst is not None and burst.how is How.CONFIGURED:
                text = (
                    f"`{burst.text}`: the burst has no effect where the shaper's rate is taken as the link's"
                )
                self._account.find("W13", burst.line, f"{text}; give --rate")
        section.entries = [
            Entry("from", '"router"'),
            Entry("to", '"next"'),
            Entry("rate", quoted(units.rate_text(bps)), line, how, said),
            *self._emulated(),
        ]
        return section

    def _emulated(self) -> list[Entry]:
        """The delay, jitter and loss of the link, which only the configuration of an emulator has."""
        delay, loss = self._port.delay, self._port.loss
        entries = [Entry("delay", quoted(DELAY), 0, How.ASSUMED, "no configuration has it")]
        if delay is not None:
            text = quoted(units.time_text(delay.number))
            entries = [Entry("delay", text, delay.line, delay.how, delay.text)]
        jitter = self._port.jitter
        if jitter is not None:
            entries.append(_jitter(jitter))
            mean = (0.0 if delay is None else delay.number) + jitter.mean
            said = "that of the other direction, which no configuration has: the mean of this one"
            table = f"{{ delay = {quoted(units.time_text(mean))} }}"
            entries.append(Entry("reverse", table, 0, How.ASSUMED, said))
        if loss is not None:
            probability, line, said = loss
            entries.append(Entry("loss", units.plain(probability, 9), line, How.CONFIGURED, said))
        return entries

    def _link_rate(self) -> tuple[float, How, int]:
        """The rate of the link: where it is not known, that of a shaper."""
        if self._shaped():
            return self._amounts.link_rate(self._port.line, "the rate of the link")
        return self._amounts.port_rate(self._port.line, "the rate of the link")

    def _shaped(self) -> bool:
        """Whether there is a shaper below the rate of the link, and both are known."""
        shaper = self._port.shaper
        if shaper is None:
            return False
        known = self._answers.link_rate
        if known is None and self._port.rate is not None:
            known = self._port.rate.number
        if known is None or shaper.unit is RateUnit.PERCENT:
            return False
        return self._amounts.rate(shaper) < known

    # Schedulers

    def _scheduled(self, queues: list[Queue], path: str) -> tuple[list[Section], list[tuple[Queue, Colors]]]:
        """The tables of the port's queue; and its queues with the color of each codepoint."""
        result: list[Section] = []
        shaper = self._port.shaper
        if not queues:  # a link without a queue is not measured
            said = "policers only: a queue beside them"
            self._account.find("W04", self._port.line, f"{said} has {POLICED_LIMIT} here")
            limit = Entry("limit", quoted(POLICED_LIMIT), 0, How.ASSUMED, said)
            kind = Entry("aqm", '"drop-tail"', 0, How.ASSUMED, said)
            return [Section(f"[{path}]", [kind, limit], "queue")], []
        if self._port.tree:
            return self._tree(path, queues, self._port)
        queues = [self._below(queue) for queue in queues]
        if self._shaped() and shaper is not None:
            result.append(self._shaper_section(path, shaper))
            path += ".queue"
        if len(queues) == 1:
            section = Section(f"[{path}]", queue=queues[0].name)
            found = self._rules.rule(queues[0], self._service(queues[0]), whole_port=True)
            section.entries = found.entries
            return [*result, section, *_profiles(path, queues[0], found)], [(queues[0], found.colors)]
        top = Section(f"[{path}]", queue="scheduler")
        strict = sorted((q for q in queues if q.level is not None), key=lambda q: q.level or 0)
        others = [q for q in queues if q.level is None]
        shaped = self._shaped_strict(strict)
        tables = None
        if strict[:shaped] and (others or shaped):
            tables = self._low_latency(path, strict[:shaped], others, strict[shaped:] if shaped else [])
        if tables is None and (shaped is not None or self._limited(others)):
            tables = self._borrowing(path, others, strict)
        if tables is not None:
            sections, order = tables
            return [*result, *sections], order
        capped = all(self._shares.guaranteed(q) is not None for q in strict)
        keys: dict[str, list[Entry]]
        if strict and (len(others) <= 1 or len(strict) > MOST_STRICT):
            ordered = _explicit([*strict, *others])
            strict, others = ordered[: len(strict)], ordered[len(strict) :]
            keys = self._priority(top, strict, others)
            self._shares.unused(strict, {queue.name: limit_of(queue) for queue in strict})
            self._shares.unused(others, {queue.name: queue.guarantee for queue in others[:-1]})
        else:
            ordered = queues
            keys = (
                self._shares.sharing(top, strict, queues)
                if capped
                else self._shares.outweighing(top, strict, queues)
            )
            used = {queue.name: queue.guarantee or queue.share for queue in others}
            self._shares.unused(queues, used | {q.name: self._shares.guaranteed(q) for q in strict if capped})
        result.append(top)
        order = []
        for queue in ordered:
            sections, colors = self._queue(path, queue, keys[queue.name], last=queue is ordered[-1])
            result += sections
            order.append((queue, colors))
        return result, order

    def _tree(
        self, path: str, queues: list[Queue], port: Port
    ) -> tuple[list[Section], list[tuple[Queue, Colors]]]:
        """The tables of a hierarchical token bucket."""
        order: list[tuple[Queue, Colors]] = []
        taken = frozenset[int]().union(*(queue.match.codepoints or () for queue in queues))

        def leaf(queue: Queue, made: TreeClass, place: str) -> tuple[list[Entry], list[Section]]:
            keys = [] if queue is queues[-1] else [self._match_entry(queue)]
            if queue.within:
                sections, inner = self._inner(queue, made, f"{place}.queue", taken)
                order.extend(inner)
                return keys, sections
            section = Section(f"[{place}.queue]", queue=queue.name)
            found = self._rules.rule(queue, self._service(queue), whole_port=True)
            section.entries = found.entries
            order.append((queue, found.colors))
            return keys, [section, *_profiles(f"{place}.queue", queue, found)]

        return trees.sections(port, path, queues, self._link_rate()[0], leaf), order

    def _below(self, queue: Queue) -> Queue:
        """A queue without a ceiling that is not below the port's rate."""
        ceiling = queue.ceiling
        if ceiling is None:
            return queue
        port, _, _ = self._amounts.port_rate(ceiling.line, f"`{ceiling.text}` beside the link's rate")
        if self._amounts.rate(ceiling) < port * FULL or self.needs:
            return queue
        text = f"class {queue.name}: `{ceiling.text}` is not below {units.shown_rate(port)} and has no effect"
        self._account.find("W13", ceiling.line, text)
        return replace(queue, ceiling=None)

    def _limited(self, queues: list[Queue]) -> bool:
        """Whether some of these have a ceiling or a policy of their own, which only `htb` can say."""
        return any(queue.ceiling is not None or queue.within for queue in queues)

    def _borrowing(
        self, path: str, queues: list[Queue], strict: list[Queue]
    ) -> tuple[list[Section], list[tuple[Queue, Colors]]]:
        """The tables of a tree of `htb`: ceilings, strict queues that are shaped, policies within classes."""
        contended = any(map(self._borrows, queues))
        sure = [queue for queue in strict if contended and _shares_above(queue)]
        for queue in sure:
            self._shares.beside(queue)
        names = {queue.name for queue in sure}
        strict = [queue for queue in strict if queue.name not in names]
        queues = [*(replace(queue, level=None, in_profile=None) for queue in sure), *queues]
        ordered = _explicit([*strict, *queues])
        strict, queues = ordered[: len(strict)], ordered[len(strict) :]
        port, how, line = self._amounts.port_rate(self._port.line, "the rates of classes")
        base = max(port - self._shares.reserved, port * (1 - FULL))
        most = Rate(port, RateUnit.BPS, line, how, "what the classes share")
        limits = [self._strict_rate(queue, most) for queue in strict]
        left = max(base - sum(rate.number for rate, _ in limits), base * trees.BYPASS) if limits else base
        total = sum(self._amounts.rate(q.guarantee) for q in queues if q.guarantee is not None)
        if total > left * 1.0005 and not self.needs:
            text = f"the guarantees add up to {units.shown_rate(total)} of {units.shown_rate(left)}"
            self._account.find("W16", self._port.line, f"{text}; they are shares here")
        parts = self._shares.fractions(queues, left)
        scale = left / max(sum(parts), 1.0)
        ceilings = [None if q.ceiling is None else self._amounts.rate(q.ceiling) for q in queues]
        first = list(zip(strict, limits, strict=True))
        root = trees.shared(queues, [part * scale for part in parts], ceilings, most, first)
        for queue, made in zip(ordered, root.classes, strict=True):
            self._cburst(queue, made)
        for queue in strict:
            self._shares.unused(
                [replace(queue, cap=None, ceiling=None)], {queue.name: limit_of(queue) or queue.ceiling}
            )
        for queue in queues:
            self._shares.unused([queue], {queue.name: queue.guarantee or queue.share})
        return self._tree(path, ordered, replace(self._port, tree=[root], quantum_divisor=None))

    def _borrows(self, queue: Queue) -> bool:
        """Whether a queue may have more than its guarantee."""
        ceiling, rate = queue.ceiling, queue.guarantee
        return ceiling is None or rate is None or self._amounts.rate(ceiling) > self._amounts.rate(rate)

    def _shaped_strict(self, strict: list[Queue]) -> int | None:
        """The first strict queue that a shaper delays: one whose policer does not drop its packets before."""
        for place, queue in enumerate(strict):
            if queue.ceiling is None:
                continue
            found = _policer(queue)
            always = found is not None and found[1]
            if (
                found is None
                or not always
                or self._amounts.rate(found[0].rate) > self._amounts.rate(queue.ceiling)
            ):
                return place
        return None

    def _strict_rate(self, queue: Queue, most: Rate) -> tuple[Rate, Rate]:
        """The rate and the ceiling of a strict queue in a tree: its shaper's, or all."""
        ceiling = most if queue.ceiling is None else queue.ceiling
        ceiling = replace(ceiling, number=self._amounts.rate(ceiling), unit=RateUnit.BPS)
        rate = limit_of(queue)
        if rate is None:
            return ceiling, ceiling
        if queue.cap is not None:
            text = f"class {queue.name}: above `{rate.text}` it goes first up to its ceiling, not policed"
            self._account.find("W10", queue.cap.line, text)
        number = min(self._amounts.rate(rate), ceiling.number)
        return replace(rate, number=number, unit=RateUnit.BPS), ceiling

    def _cburst(self, queue: Queue, made: TreeClass) -> None:
        """The burst of a ceiling that the configuration has."""
        given = queue.ceiling_burst
        if given is None:
            return
        amount = self._amounts.bytes(given, made.ceil.number)
        if amount < LEAST_BURST:
            text = f"burst of {amount:.0f} B raised to a packet of 1500 bytes"
            self._account.find("W16", given.line, text)
            amount = LEAST_BURST
        made.cburst = replace(given, number=amount, unit=Unit.BYTES)

    def _inner(
        self, queue: Queue, made: TreeClass, path: str, taken: frozenset[int]
    ) -> tuple[list[Section], list[tuple[Queue, Colors]]]:
        """The tables of the policy within a class; `taken` are codepoints of other classes."""
        port = Port(queue.name, queue.line, queues=queue.within, shaper=made.ceil, sharing=self._port.sharing)
        port.default_name = self._port.default_name
        inner = Mapping(port, replace(self._answers, link_rate=None), self._account)
        inner._amounts.needs, inner._local = self.needs, self._local
        own = ALL_CODEPOINTS - taken if queue.match.codepoints is None else queue.match.codepoints
        named = inner._named(queue.within)
        within = []
        for one in named:
            codes = self._codepoints(one.match, one.name, "class")
            match = one.match if codes is None else replace(one.match, codepoints=codes & own, unknown=())
            rate = one.guarantee if queue.ceiling is not None else self._part(one.guarantee, made.rate.number)
            within.append(replace(one, match=match, guarantee=rate))
        queues = inner._disjoint(_complete(within, own))
        sections, order = inner._scheduled(queues, path)
        inside = frozenset[int]().union(*(one.match.codepoints or () for one in queues))
        self.names += [one.name for one in named] + inner.names
        shown = []
        for one, colors in order:
            match = one.match if one.match.codepoints is not None else Match(own - inside, (), one.match.line)
            here = replace(one, name=f"{queue.name}/{one.name}", match=match)
            shown.append((here, colors))
            if one.name not in inner._policed:
                self._nested.append(here)
        for section in sections:
            section.queue = f"{queue.name}/{section.queue}"
        self._nested += inner._nested
        return sections, shown

    def _part(self, rate: Rate | None, whole: float) -> Rate | None:
        """A guarantee within a class without a ceiling: its part of what the class is sure of."""
        if rate is None or rate.unit is not RateUnit.BPS:
            return rate
        part = min(100 * rate.number / whole, 100.0)
        text = f"`{rate.text}` is {part:.3g} % of what its class is sure of, and here of what this gets"
        self._account.find("W05", rate.line, text)
        return replace(rate, number=part, unit=RateUnit.PERCENT)

    def _match_entry(self, queue: Queue) -> Entry:
        listed = json.dumps(units.shown_codepoints(queue.match.codepoints or ()))
        how = How.ASKED if queue.name in self._answers.matches else How.CONFIGURED
        return Entry("match", f"{{ dscp = {listed} }}", queue.match.line or queue.line, how)

    def _shaper_section(self, path: str, shaper: Rate) -> Section:
        section = Section(f"[{path}]", queue="shaper")
        rate = self._amounts.rate(shaper)
        burst, line, how, said = (
            max(rate * 0.004 / 8, LEAST_BURST),
            shaper.line,
            How.DEFAULT,
            "4 ms of the rate",
        )
        if self._port.shaper_burst is not None:
            given = self._port.shaper_burst
            burst, line, how, said = self._amounts.bytes(given, rate), given.line, given.how, given.text
        if burst < LEAST_BURST:
            self._account.find("W16", line, f"burst of {burst:.0f} B raised to a packet of 1500 bytes")
            burst = LEAST_BURST
        section.entries = [
            Entry("scheduler", '"shaper"', shaper.line, How.CONFIGURED, shaper.text),
            Entry("rate", quoted(units.rate_text(rate)), shaper.line, shaper.how, shaper.text),
            Entry("burst", quoted(units.bytes_text(burst)), line, how, said),
        ]
        return section

    def _low_latency(
        self, path: str, strict: list[Queue], others: list[Queue], shaped: list[Queue]
    ) -> tuple[list[Section], list[tuple[Queue, Colors]]] | None:
        """Strict priority with policers in front of what others share; None if it does not say the same.

        `shaped` are strict queues after these, from the first one on that a shaper delays.
        """
        ordered = _explicit([*strict, *shaped, *others])
        strict, shaped = ordered[: len(strict)], ordered[len(strict) : len(strict) + len(shaped)]
        others = ordered[len(strict) + len(shaped) :]
        policers = {queue.name: _policer(queue) for queue in strict}
        if any(policers[queue.name] is None and queue.in_profile is not None for queue in strict):
            return None
        rates = {name: self._amounts.rate(found[0].rate) for name, found in policers.items() if found}
        limited = bool(shaped) or self._limited(others)
        if not rates and len(others) == 1 and not limited:
            return None  # `priority` says it, too
        if rates:
            port, _, _ = self._amounts.port_rate(strict[0].level_line, "the rates of strict queues")
            if sum(rates.values()) >= port * FULL:
                return None
        top = Section(f"[{path}]", queue="scheduler")
        top.entries.append(
            Entry("scheduler", '"llq"', strict[0].level_line, How.CONFIGURED, "strict priority, then others")
        )
        result, order = [top], []
        for queue in strict:
            keys = []
            found = policers[queue.name]
            if found is not None:
                meter, always = found
                bps = rates[queue.name]
                keys.append(rate_entry(meter.rate, bps))
                burst = self._amounts.bytes(meter.burst, bps)
                line = meter.burst.line or meter.line
                text = quoted(units.bytes_text(burst))
                keys.append(Entry("burst", text, line, meter.burst.how, meter.burst.text))
                if always:
                    keys.append(Entry("police", '"always"', meter.line, How.CONFIGURED))
                    self._policed.add(queue.name)
            sections, colors = self._queue(path, queue, keys, last=False, table="priority")
            result += sections
            order.append((queue, colors))
        self._shares.unused(
            strict, {name: found[0].rate if found else None for name, found in policers.items()}
        )
        self._shares.reserved = sum(rates.values())
        path += ".queue"
        if limited:
            tables, more = self._borrowing(path, others, shaped)
            return [*result, *tables], [*order, *more]
        if len(others) == 1:
            rest = Section(f"[{path}]", queue=others[0].name)
            rule = self._rules.rule(others[0], self._service(others[0]), whole_port=True)
            rest.entries = rule.entries
            self._shares.ceiling(others[0])
            self._shares.unused(others, {})
            profiles = _profiles(path, others[0], rule)
            return [*result, rest, *profiles], [*order, (others[0], rule.colors)]
        shared = Section(f"[{path}]", queue="scheduler")
        keys_of = self._shares.sharing(shared, [], others)
        self._shares.unused(others, {queue.name: queue.guarantee or queue.share for queue in others})
        result.append(shared)
        for queue in others:
            sections, colors = self._queue(path, queue, keys_of[queue.name], last=queue is others[-1])
            result += sections
            order.append((queue, colors))
        return result, order

    def _priority(self, top: Section, strict: list[Queue], others: list[Queue]) -> dict[str, list[Entry]]:
        """Strict priority; if rated queues share the rest, they follow with their guarantees as caps."""
        top.entries.append(
            Entry("scheduler", '"priority"', strict[0].level_line, How.CONFIGURED, "strict priority")
        )
        keys: dict[str, list[Entry]] = {}
        bursts: list[tuple[float, int, str]] = []
        for queue in strict:
            keys[queue.name] = []
            rate = limit_of(queue)
            if rate is None:
                continue
            bps = self._amounts.rate(rate)
            keys[queue.name].append(
                Entry("cap", quoted(units.rate_text(bps)), rate.line, rate.how, rate.text)
            )
            if queue.cap is not None:
                burst = self._amounts.bytes(queue.cap.burst, bps)
                bursts.append((burst, queue.cap.burst.line or rate.line, queue.cap.burst.text))
                text = f"class {queue.name}: above its rate it waits while others have packets, not dropped"
                self._account.find("W10", queue.cap.line, text)
        if bursts:
            burst, line, said = max(bursts)
            top.entries.append(Entry("burst", quoted(units.bytes_text(burst)), line, How.CONFIGURED, said))
            if len({value for value, _, _ in bursts}) > 1:
                text = f"strict queues have different bursts; perhop has one, {burst:.0f} B, the largest"
                self._account.find("W10", line, text)
        for queue in others:
            keys[queue.name] = []
        for queue in others[:-1]:
            rate = queue.guarantee
            if rate is not None:
                bps = self._amounts.rate(rate)
                entry = Entry(
                    "cap", quoted(units.rate_text(bps)), rate.line, rate.how, f"{rate.text}, as a cap"
                )
                keys[queue.name].append(entry)
            text = (
                f"class {queue.name} shares what strict queues leave; here it goes before later classes up "
                "to its guarantee, and what is left beyond all goes to the last class"
            )
            self._account.find("W06", (rate.line if rate else 0) or queue.line, text)
        return keys

    def _service(self, queue: Queue) -> float | None:
        """The rate at which a queue is served at least, in bit/s; None: that of the port."""
        rate = self._shares.guaranteed(queue) or queue.ceiling
        return None if rate is None else self._amounts.rate(rate)

    def _queue(
        self, path: str, queue: Queue, keys: list[Entry], *, last: bool, table: str = "queues"
    ) -> tuple[list[Section], Colors]:
        section = Section(f"[[{path}.{table}]]", queue=queue.name)
        section.entries.append(Entry("name", quoted(queue.name), queue.line))
        if not last:
            section.entries.append(self._match_entry(queue))
        section.entries += keys
        rule = Section(f"[{path}.{table}.rule]", queue=queue.name)
        found = self._rules.rule(queue, self._service(queue), whole_port=False)
        rule.entries = found.entries
        return [section, rule, *_profiles(f"{path}.{table}.rule", queue, found)], found.colors

    # Meters

    def _meters(self, queues: list[Queue]) -> list[Section]:
        result = []
        metered = [queue for queue in [*self._nested, *queues] if queue.name not in self._policed]
        listed = [(self._metered(q, queues), q.name, meter) for q in metered for meter in q.meters]
        listed = [*map(self._own_meter, self._port.meters), *listed]
        listed.sort(key=lambda item: item[0].codepoints is None)  # one that takes all comes last
        names: set[str] = set()
        taken: set[int] = set()
        for match, wanted, meter in listed:
            codepoints = None if match.codepoints is None else match.codepoints - taken
            if codepoints == frozenset() or taken == ALL_CODEPOINTS:
                text = f"policer of {wanted}: no packet is left for it; earlier ones take them"
                self._account.find("W14", meter.line, text)
                continue
            table = profile(meter, self._amounts, self._account, wanted)
            if table is None:
                continue
            name = wanted
            while name in names:
                name += "+"
            names.add(name)
            section = Section(f"[[{self.link}.meters]]", [Entry("name", quoted(name), meter.line)], name)
            if codepoints is not None and codepoints | taken != ALL_CODEPOINTS:
                codes = json.dumps(units.shown_codepoints(codepoints))
                how = How.CONFIGURED
                section.entries.append(Entry("match", f"{{ dscp = {codes} }}", match.line or meter.line, how))
            own = ALL_CODEPOINTS - taken if codepoints is None else codepoints
            self._policing.append((name, own))
            taken |= own
            result += [section, Section(f"[{self.link}.meters.profile]", table, name)]
        return result

    def _own_meter(self, given: tuple[Match, str, Meter]) -> tuple[Match, str, Meter]:
        """A meter of the port with the codepoints of its packets."""
        match, name, meter = given
        codepoints = self._codepoints(match, name, "policer of")
        return replace(match, codepoints=codepoints, unknown=()), name, meter

    def _metered(self, queue: Queue, queues: list[Queue]) -> Match:
        """A class's packets, by codepoint if it takes all others beside a class without a meter."""
        named = [one for one in queues if one.match.codepoints is not None]
        if queue.match.codepoints is not None or all(one.meters for one in named):
            return queue.match
        taken = frozenset[int]().union(*(one.match.codepoints or () for one in named))
        return replace(queue.match, codepoints=ALL_CODEPOINTS - taken)


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


def _listed(codepoints: frozenset[int]) -> str:
    return ", ".join(map(str, units.shown_codepoints(codepoints)))


def _profiles(path: str, queue: Queue, rule: Rule) -> list[Section]:
    """The tables of a queue's drop profiles."""
    return [Section(f"[[{path}.profiles]]", entries, queue.name) for entries in rule.profiles]


def _complete(queues: list[Queue], own: frozenset[int]) -> list[Queue]:
    """Queues within a class of these packets: if they take all of them, the last one takes all others."""
    codes = [queue.match.codepoints for queue in queues]
    known = [code for code in codes if code is not None]
    last = next((queue for queue in reversed(queues) if queue.match.codepoints), None)
    if last is None or len(known) < len(codes) or frozenset[int]().union(*known) != own:
        return queues
    rest = replace(last, match=replace(last.match, codepoints=None))
    return [*(queue for queue in queues if queue is not last), rest]


def _explicit(queues: list[Queue]) -> list[Queue]:
    """Queues of which only the last may take all that others do not: one before it names its packets."""
    named = frozenset[int]().union(*(queue.match.codepoints or () for queue in queues))
    return [
        replace(queue, match=replace(queue.match, codepoints=ALL_CODEPOINTS - named))
        if queue.match.codepoints is None and queue is not queues[-1]
        else queue
        for queue in queues
    ]


def _jitter(jitter: Jitter) -> Entry:
    """The random delay of a link."""
    times = {"max": jitter.most}
    if jitter.sd is not None:
        times = {"mean": jitter.mean, "sd": jitter.sd, **times}
    listed = [f"distribution = {quoted(jitter.distribution)}"]
    listed += [f"{name} = {quoted(units.time_text(value))}" for name, value in times.items()]
    listed.append(f"reorder = {str(jitter.reorder).lower()}")
    return Entry("jitter", f"{{ {', '.join(listed)} }}", jitter.line, How.CONFIGURED, jitter.text)


def _shares_above(queue: Queue) -> bool:
    """Whether a strict queue shares with others what it sends above a rate."""
    return queue.in_profile is not None and queue.cap is None and queue.ceiling is None


def _policer(queue: Queue) -> tuple[Meter, bool] | None:
    """The policer of a strict queue, and whether it acts always and not in congestion only."""
    if queue.cap is not None:
        return queue.cap, False
    if len(queue.meters) == 1:
        (meter,) = queue.meters
        if meter.kind == "one-bucket" and (meter.conform, meter.exceed) == ("transmit", "drop"):
            return meter, True
    return None
