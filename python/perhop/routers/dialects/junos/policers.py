"""Policers of Junos's firewall, and the filters and interfaces that use them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from perhop.routers import model, units
from perhop.routers.model import ALL_CODEPOINTS, Match, Port, PortMeter, Quantity, Rate, RateUnit, Unit

if TYPE_CHECKING:
    from perhop.routers.source import Account
    from perhop.routers.syntax.statements import Statement

SLOWEST = 61_000.0
"""Bit/s: slower policers have coarse steps on old platforms (Junos 9.3)."""
LIMITS = {
    "if-exceeding": {"bandwidth-percent", "bandwidth-limit", "burst-size-limit"},
    "if-exceeding-pps": {"pps-limit", "packet-burst"},
}
"""The numbers of a policer, by the words before them."""
THREE_COLOR = {
    "committed-information-rate", "committed-burst-size", "excess-burst-size", "peak-information-rate",
    "peak-burst-size",
}  # fmt: skip


@dataclass(slots=True)
class Policer:
    """A policer's numbers, by the words of Junos."""

    line: int
    kind: Literal["", "rfc2697", "rfc2698"] = ""
    numbers: dict[str, tuple[float, int, str]] = field(default_factory=dict)
    action: model.Action | None = None
    color_aware: bool = False
    drop_red: bool = False
    lines: set[int] = field(default_factory=set)


@dataclass(slots=True)
class Term:
    """A term of a filter: what it matches and which policer it applies."""

    line: int
    codes: set[int] = field(default_factory=set)
    forwarding: list[str] = field(default_factory=list)
    other: list[tuple[int, str]] = field(default_factory=list)
    policer: str = ""
    chosen: str = ""
    """The forwarding class that it chooses."""
    continues: bool = False
    """Whether its packets come to the next term, too."""
    lost: list[tuple[int, str]] = field(default_factory=list)
    """Actions that are not simulated: line and text."""
    lines: set[int] = field(default_factory=set)


def by_class(name: str) -> str:
    """The condition of a queue for whose class nothing says the codepoints."""
    return f"forwarding-class {name}"


def _number(policer: Policer, words: tuple[str, ...], statement: Statement, known: set[str]) -> bool:
    value = units.scaled(words[2], units.DECIMAL)
    if words[1] not in known or not value:
        return False
    policer.numbers[words[1]] = (value, statement.line, " ".join(words[1:]))
    return True


def _taken(term: Term, classes: dict[str, model.PortQueue], line: int) -> Match:
    """The packets of a term; those of forwarding classes are the ones that are in their queues."""
    held = [_held(classes, name) for name in term.forwarding if name in classes]
    codes = frozenset(term.codes).union(*(match.sure for match in held))
    others = [(term.line, by_class(name)) for name in term.forwarding if name not in classes]
    others += [*term.other, *(said for match in held for said in match.unknown)]
    if not codes and (others or not term.forwarding):
        codes = ALL_CODEPOINTS
    return Match.between(frozenset() if others else codes, codes, others, line)


def _held(classes: dict[str, model.PortQueue], name: str) -> Match:
    """The packets of a class; the last one has those that no other takes."""
    match = classes[name].match
    others = [queue.match for queue in classes.values() if queue.name != name]
    return match if match.sure != ALL_CODEPOINTS else Match.either(others, match.line).others


class Policers:
    """Collects policers, filters and where they are attached."""

    def __init__(self, account: Account) -> None:
        """Findings go to the account."""
        self._account = account
        self.policers: dict[str, Policer] = {}
        self.filters: dict[str, dict[str, Term]] = {}
        self.attached: list[tuple[str, str, str, Statement]] = []
        """Interface, `policer` or `filter`, name, statement: of packets that leave."""
        self.arriving: list[tuple[str, str, str, Statement]] = []
        """Interface, `policer` or `filter`, name, statement: of packets that arrive."""
        self._read: dict[str, tuple[frozenset[int], list[tuple[Match, str, str]]]] = {}
        """Filters that something applies: their lines, and their policing terms with their packets."""
        self._codes: dict[str, frozenset[int]] = {}
        self._chosen: dict[str, tuple[Match, frozenset[int]]] = {}

    def statement(self, words: tuple[str, ...], statement: Statement) -> bool:
        """Read a statement of `firewall` or `interfaces`."""
        if words[0] == "interfaces":
            return self._attachment(words[1:], statement)
        rest = words[1:]
        if rest[:1] == ("family",) and len(rest) > 2:
            rest = rest[2:]
        if rest[:1] == ("policer",) and len(rest) > 2:
            return self._policer(rest[1], rest[2:], statement)
        if rest[:1] == ("three-color-policer",) and len(rest) > 2:
            return self._three_color(rest[1], rest[2:], statement)
        if rest[:1] == ("filter",) and len(rest) > 4 and rest[2] == "term":
            return self._term(rest[1], rest[3], rest[4:], statement)
        return False

    def _attachment(self, words: tuple[str, ...], statement: Statement) -> bool:
        if "family" not in words or "unit" not in words:
            return False
        name = words[0] if words[0] != "interface" else words[1]
        unit = words[words.index("unit") + 1] if words.index("unit") + 1 < len(words) else ""
        tail = words[words.index("family") + 2 :]
        if len(tail) == 3 and tail[0] in {"policer", "filter"} and tail[1] in {"output", "input"}:
            listed = self.attached if tail[1] == "output" else self.arriving
            listed.append((f"{name}.{unit}", tail[0], tail[2], statement))
            return True
        return False

    def chosen(self, forwarding: str) -> tuple[Match, frozenset[int]]:
        """The packets for which a filter of arriving packets chooses a forwarding class, and its lines."""
        if forwarding not in self._chosen:
            self._chosen[forwarding] = self._choice(forwarding)
        return self._chosen[forwarding]

    def _choice(self, forwarding: str) -> tuple[Match, frozenset[int]]:
        matches: list[Match] = []
        lines: set[int] = set()
        place = 0
        attachments: dict[str, set[int]] = {}
        for _, kind, name, statement in self.arriving:
            if kind == "filter":
                attachments.setdefault(name, set()).update(statement.lines)
        for name, attached in attachments.items():
            terms = [term for term in self.filters.get(name, {}).values() if term.chosen == forwarding]
            lines |= attached if terms else set()
            for term in terms:
                lines |= term.lines
                place = place or term.line
                found = _taken(term, {}, place)
                if found.sure == ALL_CODEPOINTS:
                    unknown = ((term.line, f"filter {name}, all packets"),)
                    found = Match.between(frozenset(), ALL_CODEPOINTS, unknown, place)
                matches.append(found)
        return Match.either(matches, place), frozenset(lines)

    def _get(self, name: str, statement: Statement) -> Policer:
        policer = self.policers.setdefault(name, Policer(statement.line))
        policer.lines.update(statement.lines)
        return policer

    def _policer(self, name: str, words: tuple[str, ...], statement: Statement) -> bool:
        policer = self._get(name, statement)
        if words[0] in LIMITS and len(words) == 3:
            return _number(policer, words, statement, LIMITS[words[0]])
        if words[0] in {"logical-interface-policer", "filter-specific", "physical-interface-policer"}:
            text = f"policer {name}: `{words[0]}`: each filter that names it has one of its own here"
            self._account.find("W10", statement.line, text)
            return len(words) == 1
        if words[0] == "then" and len(words) >= 2:
            if words[1] == "discard":
                policer.action = "drop"
                return len(words) == 2
            if words[1] in {"loss-priority", "forwarding-class"}:
                policer.action = policer.action or "mark"
                if words[1] == "forwarding-class":
                    text = f"policer {name} moves what exceeds to another class; here it only gets a color"
                    self._account.find("W10", statement.line, text)
                return len(words) == 3
        return False

    def _three_color(self, name: str, words: tuple[str, ...], statement: Statement) -> bool:
        policer = self._get(name, statement)
        if words[0] == "action" and words[-1] == "discard":
            policer.drop_red = True
            return True
        if words[0] not in {"single-rate", "two-rate"} or len(words) < 2:
            return False
        policer.kind = "rfc2697" if words[0] == "single-rate" else "rfc2698"
        if words[1] in {"color-blind", "color-aware"}:
            policer.color_aware = words[1] == "color-aware"
            return True
        return len(words) == 3 and _number(policer, words, statement, THREE_COLOR)

    def _term(self, name: str, term_name: str, words: tuple[str, ...], statement: Statement) -> bool:
        term = self.filters.setdefault(name, {}).setdefault(term_name, Term(statement.line))
        term.lines.update(statement.lines)
        rest = [word for word in words[1:] if word not in {"[", "]"}]
        if words[0] == "from" and rest:
            if rest[0] == "precedence" and None not in (found := [units.precedence(w) for w in rest[1:]]):
                for value in found:
                    term.codes |= units.of_precedence(value or 0)
            elif rest[0] in {"dscp", "traffic-class"}:
                values = [units.codepoint(word) for word in rest[1:]]
                if not values or None in values:
                    return False
                term.codes.update(value for value in values if value is not None)
            elif rest[0] == "forwarding-class":
                term.forwarding += rest[1:]
            else:
                term.other.append((statement.line, " ".join(words)))
            return True
        if words[0] == "then" and rest:
            if rest[0] in {"policer", "three-color-policer"}:
                term.policer = rest[-1]
                return True
            if rest[0] == "forwarding-class" and len(rest) == 2:
                term.chosen = rest[1]
                return True
            if rest[0] in {"discard", "reject", "loss-priority"}:
                term.lost.append((statement.line, " ".join(words)))
                return True
            term.continues = term.continues or rest[0] == "next"
            return rest[0] in {"accept", "count", "next"}
        return False

    def attach(self, ports: list[Port], codes: dict[str, frozenset[int]]) -> None:
        """Give ports the meters of their policers and filters; `codes` are those of forwarding classes."""
        self._codes = codes
        named, based = dict[str, Port](), dict[str, Port]()
        for port in ports:
            for name in (port.name, f"{port.name}.0"):
                named.setdefault(name, port)
            based.setdefault(port.name.partition(".")[0], port)
        for interface, kind, name, statement in self.attached:
            base = interface.partition(".")[0]
            found = named.get(interface) or based.get(base)
            if found is None:
                found = named[interface] = based[base] = Port(interface, statement.line, "input")
                ports.append(found)
            if kind == "filter" and found.queues:
                self._move(found, name)
            self._give(found, kind, name, statement)
        taken = {port.name for port in ports}
        for interface, kind, name, statement in self.arriving:
            port = Port(f"{interface} ingress" if interface in taken else interface, statement.line, "input")
            self._give(port, kind, name, statement)
            if port.meters:
                ports.append(port)
                taken.add(port.name)
        if not ports:
            return
        used = {name for _, kind, name, _ in (*self.attached, *self.arriving) if kind == "policer"}
        used |= {term.policer for terms in self.filters.values() for term in terms.values()}
        for name, policer in self.policers.items():
            if name not in used:
                self._account.find("W15", policer.line, f"policer {name} is not attached")

    def _move(self, port: Port, name: str) -> None:
        """Let packets join the queue of the class that a filter of departing packets chooses for them."""
        classes = {queue.name: queue for queue in port.queues}
        rest = port.queues[-1] if port.queues[-1].match.sure == ALL_CODEPOINTS else None
        went: dict[int, str] = {}
        asked: dict[str, list[Match]] = {}
        before = frozenset[int]()
        for term_name, term in self.filters.get(name, {}).items():
            found = _taken(term, classes, term.line)
            left = Match.between(found.sure - before, found.most - before, found.unknown, term.line)
            before |= frozenset() if term.continues else found.sure
            if not term.chosen:
                continue
            went |= dict.fromkeys(left.sure, term.chosen)
            text = f"filter {name}, term {term_name}: "
            if term.chosen not in classes:
                text += f"forwarding class {term.chosen} has no scheduler at {port.name}"
                self._account.find("W15", term.line, f"{text}: its packets go with others")
            elif left.unknown and classes[term.chosen] is rest:
                text += f"`{left.unknown[0][1]}` is no codepoint; which packets join {rest.name}"
                self._account.miss_part(left.unknown[0][0], f"{text} is not simulated")
            elif left.unknown:
                asked.setdefault(term.chosen, []).append(left)
        for queue in port.queues:
            own = frozenset(code for code, chosen in went.items() if chosen == queue.name)
            added = Match.either([Match(own), *asked.get(queue.name, ())], queue.match.line)
            kept = queue.match
            if added.most and kept.unknown[:1] == ((queue.line, by_class(queue.name)),):
                kept = Match(frozenset(), (), kept.line)
            if queue is not rest:
                gone = went.keys() - own
                kept = Match.between(kept.sure - gone, kept.most - gone, kept.unknown, kept.line)
                queue.match = Match.either([kept, added], kept.line)

    def _give(self, port: Port, kind: str, name: str, statement: Statement) -> None:
        port.lines.update(statement.lines)
        if kind == "policer":
            self._add(port, Match(None), name, name, statement.line)
            return
        if name not in self.filters:
            self._account.find("W15", statement.line, f"filter {name} is not defined")
            return
        if name not in self._read:
            self._read[name] = self._filter(name)
        lines, policing = self._read[name]
        port.shared.append(lines)
        for match, term_name, policer in policing:
            self._add(port, match, f"{name} {term_name}", policer, match.line)

    def _filter(self, name: str) -> tuple[frozenset[int], list[tuple[Match, str, str]]]:
        """The lines of a filter, and its terms with policers, each with what earlier terms leave."""
        policing: list[tuple[Match, str, str]] = []
        before = frozenset[int]()
        for term_name, term in self.filters[name].items():
            for line, text in term.lost:
                self._account.miss_part(line, f"filter {name}, term {term_name}: `{text}` is not simulated")
            codes = frozenset(term.codes).union(*(self._codes.get(one, ()) for one in term.forwarding))
            for line, text in term.other if codes and term.policer else ():
                said = f"term {term_name}: `{text}` is no codepoint; it has no effect"
                self._account.find("W13", line, said)
            found = Match(codes or None, () if codes else tuple(term.other), term.line)
            left = Match.between(found.sure - before, found.most - before, found.unknown, term.line)
            if term.policer and not left.most:
                text = f"filter {name}, term {term_name}: earlier terms take its packets"
                self._account.find("W14", term.line, text)
            elif term.policer:
                policing.append((left, term_name, term.policer))
            if not term.continues:
                before |= found.sure if not term.other else frozenset()
        return frozenset[int]().union(*(t.lines for t in self.filters[name].values())), policing

    def _add(self, port: Port, match: Match, name: str, wanted: str, line: int) -> None:
        policer = self._account.defined(self.policers, wanted, line, "policer")
        if policer is None:
            return
        port.lines |= policer.lines
        meter = self._meter(policer, wanted)
        if meter is not None:
            port.meters.append((match, name, meter))

    def _meter(self, policer: Policer, name: str) -> PortMeter | None:
        """A policer as a meter; None (with a finding) if numbers are missing."""
        numbers = policer.numbers

        def rate(key: str) -> Rate | None:
            found = numbers.get(key)
            return None if found is None else Rate(found[0], RateUnit.BPS, found[1], text=found[2])

        def burst(key: str) -> Quantity | None:
            found = numbers.get(key)
            return None if found is None else Quantity(found[0], Unit.BYTES, found[1], text=found[2])

        cir, cbs, second, peak = rate("bandwidth-limit"), burst("burst-size-limit"), None, None
        if "bandwidth-percent" in numbers:
            value, line, text = numbers["bandwidth-percent"]
            cir = Rate(value, RateUnit.PERCENT, line, text=text)
        if policer.kind:
            cir, cbs = rate("committed-information-rate"), burst("committed-burst-size")
            second = burst("excess-burst-size" if policer.kind == "rfc2697" else "peak-burst-size")
            peak = rate("peak-information-rate")
        if "pps-limit" in numbers and "packet-burst" in numbers:
            (pps, line, text), (size, place, said) = numbers["pps-limit"], numbers["packet-burst"]
            cir = Rate(pps, RateUnit.PACKETS, line, text=text)
            cbs = Quantity(size, Unit.PACKETS, place, text=said)
        incomplete = policer.kind and (second is None or (policer.kind == "rfc2698" and peak is None))
        if cir is None or cbs is None or incomplete:
            text = f"policer {name}: a rate or burst is missing; it is left out"
            self._account.find("W13", policer.line, text)
            return None
        if cir.unit is RateUnit.BPS and cir.number < SLOWEST:
            text = f"policer {name}: below {SLOWEST / 1000:g} kbit/s some platforms round coarsely"
            self._account.find("W16", cir.line, text)
        if policer.kind:
            meter = PortMeter(policer.kind, cir, cbs, policer.line, second_burst=second, exceed="mark")
            meter = replace(meter, violate="drop" if policer.drop_red else "mark")
            peak = peak if policer.kind == "rfc2698" else None
            return replace(meter, peak_rate=peak, color_aware=policer.color_aware)
        return PortMeter("one-bucket", cir, cbs, policer.line, exceed=policer.action or "transmit")
