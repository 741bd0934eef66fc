"""Linux tc: the classes of htb, hfsc and cbq as a tree with rates, ceilings, bursts and priorities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from perhop.routers import linux, units
from perhop.routers.dialects.tc.commands import class_of
from perhop.routers.dialects.tc.options import Options
from perhop.routers.model import How, Quantity, Rate, RateUnit, TreeClass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perhop.routers.dialects.tc.commands import Command
    from perhop.routers.source import Account

PRIOS = 8
DEEPEST = 8
"""Classes within classes; Linux refuses more."""
CURVES = {"rt": ("rt",), "ls": ("ls",), "sc": ("rt", "ls"), "ul": ("ul",)}
"""The curves that each word of hfsc sets: `sc` is the real-time and the link-sharing one."""


@dataclass(frozen=True, slots=True)
class ServiceCurve:
    """A curve of hfsc: its rate in the long run, and what it says of the first moments."""

    rate: Rate
    first: str = ""


class Tree:
    """The classes of a qdisc htb, hfsc or cbq."""

    def __init__(self, classes: Sequence[Command], account: Account) -> None:
        """Findings go to the account."""
        self._account = account
        classes = self._once(classes)
        kinds = {"htb": self._class, "hfsc": self._hfsc, "cbq": self._cbq}
        self._made: dict[int, TreeClass] = {id(command): kinds[command.kind](command) for command in classes}
        self._children: dict[tuple[str, str], list[Command]] = {}
        for command in classes:
            self._children.setdefault(class_of(command.parent), []).append(command)
        self.leaves = [c for c in classes if class_of(c.handle) not in self._children]
        self.roots: list[TreeClass] = []
        self._reached: set[int] = set()
        handles = {class_of(command.handle) for command in classes}
        for command in classes:
            if class_of(command.parent) not in handles:
                self.roots.append(self._within(command, 0))
        if any(command.kind == "hfsc" for command in classes):
            linux.hfsc_turns(self.roots)
        self.leaves = [leaf for leaf in self.leaves if id(leaf) in self._reached]
        for command in classes:
            if id(command) not in self._reached:
                text = f"{command.kind} class {command.handle} is within itself or too deep; left out"
                self._account.find("W15", command.line, text)

    def _once(self, classes: Sequence[Command]) -> list[Command]:
        """The classes, each handle once: the kernel refuses a second one."""
        kept: dict[tuple[str, str], Command] = {}
        for command in classes:
            if class_of(command.handle) in kept:
                text = f"{command.kind} class {command.handle} is there already; this one is left out"
                self._account.find("W17", command.line, text)
            else:
                kept[class_of(command.handle)] = command
        return list(kept.values())

    def only_root(self) -> TreeClass | None:
        """The root class that shapes all packets, if there is one."""
        return self.roots[0] if len(self.roots) == 1 and self.roots[0].classes else None

    def limit(self, leaf: Command, shaper: Rate) -> None:
        """Give a class the ceiling of a shaper that it holds, if it is the lower one; else report it."""
        made = self._made[id(leaf)]
        if made.ceil.unit is RateUnit.BPS and shaper.number >= made.ceil.number:
            text = f"class {made.name}: `{shaper.text}` is not below `{made.ceil.text}` and has no effect"
            self._account.find("W13", shaper.line, text)
            return
        if made.ceil.how is How.CONFIGURED:
            text = f"class {made.name}: `{made.ceil.text}` has no effect beside `{shaper.text}`, a lower one"
            self._account.find("W13", made.ceil.line, text)
        made.ceil, made.cburst = shaper, None
        if made.rate.unit is RateUnit.BPS and made.rate.number > shaper.number:
            made.rate = shaper

    def rates(self, leaf: Command) -> tuple[Rate, Rate]:
        """The rate and the ceiling of a class."""
        made = self._made[id(leaf)]
        return made.rate, made.ceil

    def _within(self, command: Command, depth: int) -> TreeClass:
        self._reached.add(id(command))
        made = self._made[id(command)]
        children = self._children.get(class_of(command.handle), [])
        if depth < DEEPEST:
            made.classes = [self._within(c, depth + 1) for c in children if id(c) not in self._reached]
        if command.kind == "hfsc":
            linux.hfsc_turns(made.classes)
        if made.classes:
            self._idle(made)
            self._exceeded(made)
        else:
            made.queue = command.handle
        return made

    def _idle(self, made: TreeClass) -> None:
        """Report what has no effect in a class that holds no packets."""
        if made.prio is not None and made.prio[0] != 0:
            text = f"class {made.name}: `prio {made.prio[0]}` has no effect in a class around others"
            self._account.find("W13", made.prio[1], text)
        made.prio = made.quantum = None

    def _exceeded(self, made: TreeClass) -> None:
        """Report classes whose rates together are above that of the class around them."""
        if any(rate.unit is not RateUnit.BPS for rate in (made.rate, *(c.rate for c in made.classes))):
            return
        total = sum(c.curves.real_time if c.curves else c.rate.number for c in made.classes)
        if total > made.rate.number * (1 + 1e-9):
            text = f"class {made.name}: its classes are sure of {units.rate_text(total)} together"
            text += f", above its `{made.rate.text}`: Linux gives them their rates all the same"
            self._account.find("W17", made.line, text)

    def _class(self, command: Command) -> TreeClass:
        options = Options(command, self._account)
        line = command.line
        rate, ceil = options.rate("rate"), options.rate("ceil")
        burst, cburst = options.size("burst", "buffer", "maxburst"), options.size("cburst", "cbuffer")
        prio, quantum = options.number("prio"), options.size("quantum")
        self._overhead(options, command)
        options.skip("level", "loss")
        options.close()
        if rate is None:
            self._account.miss_part(line, f"htb class {command.handle} without a rate")
            rate = ceil or Rate(linux.LEAST_RATE, line=line, text="no rate")
        ceil = ceil or rate
        if rate.unit is ceil.unit and rate.number > ceil.number:
            text = f"htb class {command.handle}: `{rate.text}` is above `{ceil.text}`, which is its rate here"
            self._account.find("W16", line, text)
            rate = ceil
        if prio is not None and not 0 <= prio < PRIOS:
            text = f"htb class {command.handle}: prio {prio:g} is not from 0 to 7; the kernel takes 7"
            self._account.find("W16", line, text)
            prio = PRIOS - 1
        return TreeClass(
            command.handle,
            line,
            rate,
            ceil,
            _positive(burst),
            _positive(cburst),
            None if prio is None else (int(prio), line),
            _positive(quantum),
        )

    def _hfsc(self, command: Command) -> TreeClass:
        curves = self._curves(command)
        sure, share, most = (curves.get(key) for key in ("rt", "ls", "ul"))
        text = f"hfsc class {command.handle}: as a class of htb, with the rates of its curves"
        lost = dict.fromkeys(curve.first for curve in curves.values() if curve.first)
        text += f"; `{'`, `'.join(lost)}` is not simulated" if lost else ""
        self._account.find("W06", command.line, text)
        if sure is None and share is None:
            self._account.miss_part(command.line, f"hfsc class {command.handle} without a curve")
        rates = [None if curve is None else curve.rate for curve in (sure, share, most)]
        return linux.hfsc_class(command.handle, command.line, rates, self._account)

    def _curves(self, command: Command) -> dict[str, ServiceCurve]:
        """The curves of a class of hfsc (iproute2, tc/q_hfsc.c)."""
        words = list(command.words)
        command.read = True
        result: dict[str, ServiceCurve] = {}
        while words and words[0] in CURVES:
            name, said, rate = words[0], [name := words[0]], None
            words = words[1:]
            while len(words) > 1 and words[0] in {"m1", "d", "m2", "umax", "dmax", "rate"}:
                key, value = words[0], words[1]
                said += [key, value]
                if key in {"m2", "rate"}:
                    rate = linux.rate(value)
                words = words[2:]
            text = " ".join(said)
            if not rate:
                self._account.miss_part(command.line, f"hfsc: a curve without a rate: `{text}`")
                continue
            found = Rate(rate, RateUnit.BPS, command.line, text=text)
            first = text if {"d", "dmax"} & set(said) else ""
            result |= dict.fromkeys(CURVES[name], ServiceCurve(found, first))
        if words:
            self._account.miss_part(command.line, f"hfsc: not understood: `{' '.join(words)}`")
        return result

    def _cbq(self, command: Command) -> TreeClass:
        options = Options(command, self._account)
        rate, prio, line = options.rate("rate"), options.number("prio"), command.line
        bounded = options.flag("bounded")
        options.skip("bandwidth", "weight", "allot", "avpkt", "maxburst", "minburst", "cell", "mpu", "ewma")
        options.close()
        if rate is None:
            self._account.miss_part(line, f"cbq class {command.handle} without a rate")
            rate = Rate(linux.LEAST_RATE, line=line, text="no rate")
        free = Rate(100, RateUnit.PERCENT, 0, How.DEFAULT, "not bounded: the link's rate")
        place = None if prio is None else (min(max(int(prio) - 1, 0), PRIOS - 1), line)
        return TreeClass(command.handle, line, rate, rate if bounded else free, prio=place)

    def _overhead(self, options: Options, command: Command) -> None:
        for name in ("mpu", "overhead", "linklayer", "mtu"):
            value = options.text(name)
            if value is not None and value not in {"0", "0b", "ethernet"} and name != "mtu":
                text = f"htb class {command.handle}: `{name} {value}`: packets have their IP size here"
                self._account.find("W18", command.line, text)


def _positive(quantity: Quantity | None) -> Quantity | None:
    return quantity if quantity is not None and quantity.number > 0 else None
