"""Linux tc: the classes of htb as a tree with rates, ceilings, bursts and priorities."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perhop.routers import units
from perhop.routers.model import Rate, RateUnit, TreeClass
from perhop.routers.tc_qdiscs import Options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perhop.routers.model import Quantity
    from perhop.routers.source import Account
    from perhop.routers.tc_commands import Command

LEAST = 1000.0
"""Bit/s of a class without a rate, which tc refuses."""
PRIOS = 8
DEEPEST = 8
"""Classes within classes; Linux refuses more."""


def major(handle: str) -> str:
    """The major part of a handle: `1` of `1:` and `1:10`."""
    return handle.partition(":")[0].lstrip("0") or "0"


def same_class(one: str, other: str) -> bool:
    """Whether two handles name one class."""
    a, b = one.partition(":"), other.partition(":")
    return major(one) == major(other) and (a[2].lstrip("0") or "0") == (b[2].lstrip("0") or "0")


class Tree:
    """The classes of a qdisc htb."""

    def __init__(self, classes: Sequence[Command], account: Account) -> None:
        """Findings go to the account."""
        self._account = account
        self._classes = classes = self._once(classes)
        self._made: dict[int, TreeClass] = {id(command): self._class(command) for command in classes}
        self.leaves = [c for c in classes if not any(same_class(o.parent, c.handle) for o in classes)]
        self.roots: list[TreeClass] = []
        self._reached: set[int] = set()
        for command in classes:
            if not any(same_class(command.parent, other.handle) for other in classes):
                self.roots.append(self._within(command, 0))
        self.leaves = [leaf for leaf in self.leaves if id(leaf) in self._reached]
        for command in classes:
            if id(command) not in self._reached:
                text = f"htb class {command.handle} is within itself or too deep; left out"
                self._account.find("W15", command.line, text)

    def _once(self, classes: Sequence[Command]) -> list[Command]:
        """The classes, each handle once: the kernel refuses a second one."""
        kept: list[Command] = []
        for command in classes:
            if any(same_class(command.handle, other.handle) for other in kept):
                text = f"htb class {command.handle} is there already; this one is left out"
                self._account.find("W17", command.line, text)
            else:
                kept.append(command)
        return kept

    def only_root(self) -> TreeClass | None:
        """The root class that shapes all packets, if there is one."""
        return self.roots[0] if len(self.roots) == 1 and self.roots[0].classes else None

    def rates(self, leaf: Command) -> tuple[Rate, Rate]:
        """The rate and the ceiling of a class."""
        made = self._made[id(leaf)]
        return made.rate, made.ceil

    def _within(self, command: Command, depth: int) -> TreeClass:
        self._reached.add(id(command))
        made = self._made[id(command)]
        children = [c for c in self._classes if same_class(c.parent, command.handle)]
        if depth < DEEPEST:
            made.classes = [self._within(c, depth + 1) for c in children if id(c) not in self._reached]
        if made.classes:
            self._idle(made)
            self._exceeded(made)
        else:
            made.queue = command.handle
        return made

    def _idle(self, made: TreeClass) -> None:
        """Report what has no effect in a class that holds no packets."""
        if made.prio is not None and made.prio[0] != 0:
            text = f"htb class {made.name}: `prio {made.prio[0]}` has no effect in a class around others"
            self._account.find("W13", made.prio[1], text)
        made.prio = made.quantum = None

    def _exceeded(self, made: TreeClass) -> None:
        """Report classes whose rates together are above that of the class around them."""
        total = sum(inner.rate.number for inner in made.classes)
        if total > made.rate.number * (1 + 1e-9):
            text = f"htb class {made.name}: its classes are sure of {units.rate_text(total)} together"
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
            self._account.find("W13", line, f"htb class {command.handle} without a rate")
            rate = ceil or Rate(LEAST, RateUnit.BPS, line, text="no rate")
        ceil = ceil or rate
        if rate.number > ceil.number:
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

    def _overhead(self, options: Options, command: Command) -> None:
        for name in ("mpu", "overhead", "linklayer", "mtu"):
            value = options.text(name)
            if value is not None and value not in {"0", "0b", "ethernet"} and name != "mtu":
                text = f"htb class {command.handle}: `{name} {value}`: packets have their IP size here"
                self._account.find("W18", command.line, text)


def _positive(quantity: Quantity | None) -> Quantity | None:
    return quantity if quantity is not None and quantity.number > 0 else None
