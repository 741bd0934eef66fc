"""MikroTik RouterOS: simple queues, queue trees and interface queues of an export, versions 6 and 7.

Source: MikroTik's manual, "Queues" (sections "Simple Queue", "Queue Tree", "Interface Queue"), "HTB"
(`limit-at` is the guaranteed rate, `max-limit` the ceiling, `priority` 1 is served first, `bucket-size` times
the rate is how much a class can send at once), "Mangle". HTB is Linux's: classes become a tree of `htb`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from perhop.routers import linux, model, units
from perhop.routers.dialects.routeros.lines import Entry, Marks, Menus
from perhop.routers.dialects.routeros.queue_types import Types, rate
from perhop.routers.model import How, Match, Port, PortQueue, Quantity, Rate, RateUnit, TreeClass, Unit

if TYPE_CHECKING:
    from perhop.routers.source import Account, Source

MENUS = frozenset({
    "queue type", "queue simple", "queue tree", "queue interface", "ip firewall mangle",
    "ipv6 firewall mangle", "interface ethernet",
})  # fmt: skip
BUCKET = 0.1
"""The default of `bucket-size`: seconds of the rate."""
LEAST_BUCKET = 3000.0
"""Bytes: two packets."""
HTB_ROOTS = {"global", "global-in", "global-out", "global-total"}
DEEPEST = 8
BURSTS = ("burst-limit", "burst-threshold", "burst-time")
DIRECTIONS = ("upload", "download")
ANYWHERE = {"", "0.0.0.0/0", "::/0", "0.0.0.0/0,::/0"}
TARGETS = ("target", "dst", "target-addresses", "dst-address", "interface")
"""Keys that say which packets a simple queue is for."""
TOTAL_LIMITS = ("total-max-limit", "total-limit-at", "total-burst-limit")
TOTALS = ("total-priority", "total-queue", "total-burst-threshold", "total-burst-time", "total-bucket-size")
"""Further keys of simple queues about both directions together."""


def read(source: Source, account: Account) -> list[Port]:
    """The ports of an export: of each parent of a queue tree, direction of simple queues, interface queue."""
    return _Reader(source, account).read()


class _Reader:
    def __init__(self, source: Source, account: Account) -> None:
        self._account = account
        self._menus = Menus(source, account, MENUS)
        self._types = Types(self._menus.entries["queue type"], account)
        self._ethernet = _by(self._menus.entries["interface ethernet"], "name", "default-name")
        self._own_queues = _by(self._menus.entries["queue interface"], "interface", "name")
        self._tree = self._enabled("queue tree")
        self._simple = self._enabled("queue simple")
        self._mangle = self._enabled("ip firewall mangle") + self._enabled("ipv6 firewall mangle")

    def _enabled(self, menu: str) -> list[Entry]:
        for entry in self._menus.entries[menu]:
            if entry.off:
                self._account.ignore_whole(entry.lines, "disabled")
        return [entry for entry in self._menus.entries[menu] if not entry.off]

    def read(self) -> list[Port]:
        names = {entry.name for entry in self._tree}
        roots: dict[str, list[Entry]] = {}
        for entry in self._tree:
            parent = entry.get("parent") or "global"
            if parent not in names:
                roots.setdefault(parent, []).append(entry)
        held = _by(self._tree, "parent")
        ports = [self._of_tree(parent, listed, held) for parent, listed in roots.items()]
        if self._simple:
            ports += [self._of_simple(index) for index in range(len(DIRECTIONS))]
        taken = {port.name for port in ports}
        found = [self._of_interface(entry, taken) for entry in self._menus.entries["queue interface"]]
        return ports + [port for port in found if port is not None]

    # Interfaces

    def _speed(self, port: Port) -> None:
        entry = next(iter(self._ethernet.get(port.name, ())), None)
        if entry is None:
            return
        self._bandwidth(port, entry)
        found = re.match(r"(\d{1,6}(?:\.\d)?)([MG])", entry.get("speed"))
        if found is not None:
            given = _rate(entry, "speed", float(found[1]) * (1e9 if found[2] == "G" else 1e6))
            if port.rate is None or (given is not None and given.number < port.rate.number):
                port.rate = given
            port.lines |= entry.lines

    def _bandwidth(self, port: Port, entry: Entry) -> None:
        """The limits of an Ethernet interface: received, then sent; a bare number is kbit/s."""
        sent = entry.get("bandwidth").rpartition("/")[2]
        bps = rate(f"{sent}k" if sent.isdecimal() else sent)
        if bps:
            port.rate = _rate(entry, "bandwidth", bps)
            port.lines |= entry.lines
        elif bps is None:
            text = f"not understood: `bandwidth={entry.get('bandwidth')}`"
            self._account.miss_part(entry.place("bandwidth"), text)

    def _of_interface(self, entry: Entry, taken: set[str]) -> Port | None:
        name, kind = entry.get("interface") or entry.name, entry.get("queue")
        if not name or self._types.kind(kind) == "none" or name in taken:
            return None  # below a queue tree, whose shapers keep it empty, `_of_tree` says so
        port = Port(name, entry.line)
        port.lines |= entry.lines | self._types.lines(kind)
        with self._account.of_port(port.findings):
            self._speed(port)
            port.shaper = self._types.shaper(kind)
            queue = PortQueue("all", entry.line)
            self._types.fill(queue, kind, entry.place("queue"))
            port.queues = [queue]
        return port

    def _below(self, port: Port) -> None:
        """The interface queue below a queue tree: the shaper of a cake counts, its queue is empty."""
        for entry in self._own_queues.get(port.name, []):
            kind = entry.get("queue")
            if not kind:
                continue
            port.lines |= entry.lines
            shaper = self._types.shaper(kind)
            text = f"queue {kind} of the interface"
            if shaper is None:
                text += ": without effect below a queue tree that is slower"
                self._account.find("W13", entry.place("queue"), text)
                continue
            port.lines |= self._types.lines(kind)
            if port.rate is None or shaper.number < port.rate.number:
                port.rate = shaper
            text += ": its rate is that of the link here, below the queue tree"
            self._account.find("W06", entry.place("queue"), text)

    # Queue trees and simple queues

    def _of_tree(self, parent: str, roots: list[Entry], held: dict[str, list[Entry]]) -> Port:
        port = Port(parent, roots[0].line, default_name="unmarked")
        with self._account.of_port(port.findings):
            if parent in HTB_ROOTS:
                text = f"parent={parent}: all interfaces together; here one link"
                self._account.find("W09", roots[0].place("parent"), text)
            else:
                self._speed(port)
                self._below(port)
            marks = Marks(self._mangle, parent, self._account)
            _Classes(port, None, marks, held, self._types, self._account).fill(roots)
        return port

    def _of_simple(self, index: int) -> Port:
        names = {entry.name for entry in self._simple}
        roots = [entry for entry in self._simple if entry.get("parent", "none") not in names]
        port = Port(DIRECTIONS[index], self._simple[0].line, default_name="others")
        with self._account.of_port(port.findings):
            marks = Marks(self._mangle, "", self._account)
            for entry in self._simple:
                self._total(entry)
            held = _by(self._simple, "parent")
            reached = _Classes(port, index, marks, held, self._types, self._account).fill(roots)
            for entry in self._simple:
                if id(entry) not in reached:
                    text = f"{entry.name}: it is within itself or too deep; left out"
                    self._account.find("W15", entry.line, text)
        return port

    def _total(self, entry: Entry) -> None:
        for key in TOTAL_LIMITS:
            if rate(entry.get(key, "0")):
                entry.say(self._account, "W06", key, ": a limit of both directions is not simulated")
        for key in TOTALS:
            if entry.has(key):
                entry.say(self._account, "W13", key, " has no effect here")
        if entry.get("time"):
            entry.say(self._account, "W06", "time", ": it acts at all times here")


class _Classes:
    """Makes the classes and queues of a port; of a pair of values that of its direction counts."""

    def __init__(
        self,
        port: Port,
        direction: int | None,
        marks: Marks,
        children: dict[str, list[Entry]],
        types: Types,
        account: Account,
    ) -> None:
        self._port = port
        self._direction = direction
        self._key = "packet-mark" if direction is None else "packet-marks"
        self._marks = marks
        self._children = children
        self._types = types
        self._account = account
        self._reached: dict[int, Entry] = {}
        self._names: set[str] = set()
        """The names of classes."""
        self._times: dict[str, int] = {}
        """The number of classes that have a name already."""

    def _value(self, entry: Entry, key: str, default: str = "") -> str:
        value = entry.get(key, default)
        parts = value.split("/")
        return value if self._direction is None else parts[min(self._direction, len(parts) - 1)]

    def fill(self, roots: list[Entry]) -> dict[int, Entry]:
        """Add the entries without a parent, and those within them; returns those that the port has."""
        port = self._port
        if len(roots) == 1 and not self._children.get(roots[0].name):
            self._children = {}
            self._alone(roots[0])
        else:
            made = [self._class(root) for root in roots]
            queues = {queue.name: queue for queue in port.queues}
            for root in made:
                self._root(root, queues.get(root.queue))
            port.tree = made
            if len(made) == 1 and made[0].classes and made[0].ceil.unit is RateUnit.BPS:
                port.shaper = made[0].ceil
            self._rest()
        port.lines |= self._marks.lines
        for entry in self._reached.values():
            for key, (value, line) in entry.unread("comment", "name", "disabled", *BURSTS):
                self._account.not_understood(key, f"{key}={value}", line)
        return self._reached

    def _alone(self, entry: Entry) -> None:
        """One queue: a shaper for all packets."""
        made, port = self._class(entry), self._port
        (queue,) = port.queues
        if made.ceil.unit is RateUnit.BPS:
            port.shaper, port.shaper_burst = made.ceil, made.cburst
        if queue.match.codepoints not in {None, model.ALL_CODEPOINTS} or queue.match.unknown:
            key = self._key
            what = queue.match.unknown[0][1] if queue.match.unknown else f"{key}={entry.get(key)}"
            text = f"{entry.name}: `{what}`: other packets bypass it; here all packets are its"
            self._account.find("W14", queue.match.line or entry.line, text)
        queue.match = Match(None, (), entry.line)
        queue.guarantee = queue.ceiling = None
        unused = " has no effect here: nothing is beside it"
        if entry.has("limit-at") and rate(self._value(entry, "limit-at")):
            entry.say(self._account, "W13", "limit-at", unused)
        if self._value(entry, "priority", "8") != "8":
            entry.say(self._account, "W13", "priority", unused)

    def _class(self, entry: Entry, depth: int = 0) -> TreeClass:
        self._reached[id(entry)] = entry
        self._port.lines |= entry.lines
        inside = self._children.get(entry.name, []) if entry.name and depth < DEEPEST else []
        within = [inner for inner in inside if id(inner) not in self._reached]
        made = self._rates(entry)
        self._name(made)
        self._bursts(entry)
        for inner in within:
            if id(inner) not in self._reached:
                made.classes.append(self._class(inner, depth + 1))
        if within:
            self._parent(entry, made)
        else:
            self._leaf(entry, made)
        return made

    def _name(self, made: TreeClass) -> None:
        """Give a class a name of its own."""
        name, times = made.name, self._times.get(made.name, 0)
        while made.name in self._names:
            times += 1
            made.name = f"{name}+{times if times > 1 else ''}"
        self._times[name] = times
        self._names.add(made.name)

    def _leaf(self, entry: Entry, made: TreeClass) -> None:
        made.prio = self._priority(entry)
        queue = PortQueue(made.name, entry.line)
        queue.guarantee = made.rate if made.rate.how is How.CONFIGURED else None
        queue.ceiling = made.ceil if made.ceil.unit is RateUnit.BPS else None
        queue.match = self._match(entry)
        kind = self._value(entry, "queue", "default-small")
        if not entry.has("queue"):
            text = f"{made.name}: queue type not configured; default-small, a FIFO of 10 packets"
            self._account.find("W04", entry.line, text)
        self._port.lines |= self._types.lines(kind)
        self._types.fill(queue, kind, entry.place("queue"))
        shaper = self._types.shaper(kind)
        if shaper is not None and (made.ceil.unit is not RateUnit.BPS or shaper.number < made.ceil.number):
            if made.ceil.unit is RateUnit.BPS:
                text = f"{made.name}: `{made.ceil.text}` has no effect beside `{shaper.text}`, a lower one"
                self._account.find("W13", made.ceil.line, text)
            made.ceil = queue.ceiling = shaper
            made.cburst = None
            if made.rate.number > shaper.number:
                made.rate = shaper
        elif shaper is not None:
            text = f"{made.name}: `{shaper.text}` is not below `{made.ceil.text}` and has no effect"
            self._account.find("W13", shaper.line, text)
        made.queue = queue.name = made.name
        self._port.queues.append(queue)

    def _root(self, made: TreeClass, queue: PortQueue | None) -> None:
        """A queue without a parent reaches its max-limit: the interface's own HTB lends without a limit."""
        if made.rate.how is How.CONFIGURED and made.rate.text != made.ceil.text:
            text = f"{made.name}: `{made.rate.text}` has no effect in a queue without a parent: it reaches"
            text += f" `{made.ceil.text}`" if made.ceil.line else " the link's rate"
            self._account.find("W13", made.rate.line, text)
        made.rate, made.burst = made.ceil, made.cburst
        if queue is not None and queue.guarantee is not None:
            queue.guarantee = made.rate

    def _parent(self, entry: Entry, made: TreeClass) -> None:
        """Report what has no effect in a queue around others."""
        for name in ("queue", "priority", self._key, *(TARGETS if self._direction is not None else ())):
            if entry.has(name) and (name != "priority" or self._value(entry, name) != "8"):
                entry.say(self._account, "W13", name, " has no effect in a queue around others")
        sure = sum(inner.rate.number for inner in made.classes if inner.rate.unit is RateUnit.BPS)
        if made.rate.how is not How.CONFIGURED:
            most = made.ceil.number if made.ceil.unit is RateUnit.BPS else sure
            made.burst, text = made.cburst, "what its queues can use together"
            made.rate = Rate(most, RateUnit.BPS, made.ceil.line, How.DEFAULT, text)
        if made.ceil.unit is RateUnit.BPS and sure > made.ceil.number * (1 + 1e-9):
            text = f"{entry.name}: its queues are sure of {units.shown_rate(sure)} together, above"
            self._account.find("W17", entry.line, f"{text} its `{made.ceil.text}`: they get it all the same")

    def _rates(self, entry: Entry) -> TreeClass:
        name = entry.name or "queue"
        sure, most = self._limit(entry, "limit-at"), self._limit(entry, "max-limit")
        most = most or Rate(100, RateUnit.PERCENT, 0, How.DEFAULT, "no max-limit: the link's rate")
        sure = sure or Rate(linux.LEAST_RATE, RateUnit.BPS, 0, How.DEFAULT, "no limit-at: sure of nothing")
        if most.unit is RateUnit.BPS and sure.number > most.number:
            if sure.how is How.CONFIGURED:
                text = f"{name}: `{sure.text}` is above `{most.text}`, which is its rate here"
                self._account.find("W16", sure.line, text)
            sure = most
        made = TreeClass(name, entry.line, sure, most)
        made.burst, made.cburst = self._bucket(entry, sure), self._bucket(entry, most)
        return made

    def _limit(self, entry: Entry, key: str) -> Rate | None:
        if not entry.has(key):
            return None
        value = self._value(entry, key)
        bps = rate(value)
        if bps is None:
            self._account.miss_part(entry.place(key), f"{entry.name}: not understood: `{key}={value}`")
        return _rate(entry, key, bps, value) if bps else None

    def _bucket(self, entry: Entry, of: Rate) -> Quantity | None:
        """The amount that a class can send at once: `bucket-size` seconds of its rate."""
        if of.unit is not RateUnit.BPS:
            return None
        value = self._value(entry, "bucket-size", str(BUCKET))
        given = entry.has("bucket-size")
        seconds = units.number(value)
        if seconds is None or seconds > 10:
            text = f"{entry.name}: `bucket-size={value}` is from 0 to 10; {BUCKET} here"
            self._account.find("W16", entry.place("bucket-size"), text)
            seconds, given = BUCKET, False
        number = seconds * of.number / 8
        said = f"bucket-size {units.plain(seconds)} of {units.shown_rate(of.number)}"
        line, how = (entry.place("bucket-size"), How.CONFIGURED) if given else (0, How.DEFAULT)
        if number < LEAST_BUCKET:
            said, number = f"{said}, at least two packets", LEAST_BUCKET
        elif given:
            text = f"{entry.name}: `bucket-size={value}` is {number:.0f} B at {units.shown_rate(of.number)}"
            self._account.find("W05", line, text)
        return Quantity(number, Unit.BYTES, line, how, text=said)

    def _bursts(self, entry: Entry) -> None:
        if not rate(self._value(entry, "burst-limit", "0")):
            return
        for key in BURSTS:
            text = f"{entry.name}: `{key}={self._value(entry, key)}`"
            if entry.has(key) and key == "burst-limit":
                text += ": a higher rate for a time is not simulated"
                self._account.find("W06", entry.place(key), text)
            elif entry.has(key):
                self._account.find("W13", entry.place(key), f"{text} has no effect here")

    def _priority(self, entry: Entry) -> tuple[int, int]:
        value = units.whole(self._value(entry, "priority", "8"))
        if value is None or not 1 <= value <= 8:
            entry.say(self._account, "W16", "priority", " is from 1 to 8; 8 here")
            value = 8
        return value - 1, entry.place("priority")

    def _match(self, entry: Entry) -> Match:
        place = entry.place(self._key)
        targets: tuple[tuple[int, str], ...] = ()
        if self._direction is not None:
            said = [name for name in TARGETS if entry.get(name) not in ANYWHERE]
            targets = tuple((entry.place(name), f"{name}={entry.get(name)}") for name in said)
        given = [mark for mark in entry.get(self._key).split(",") if mark]
        if not given:
            return Match(None, targets[:1], entry.line)
        matches: list[Match] = []
        for mark in given:
            found, others = self._marks.of(mark)
            if not found and not others:
                text = f"{entry.name}: no rule of the mangle sets packet-mark {mark}"
                self._account.find("W15", place, text)
                others = [(place, f"packet-mark={mark}")]
            matches.append(Match(found or None, tuple(others), place))
        marked = Match.either(matches, place)
        return Match.every([marked, Match(None, targets)], place) if targets else marked

    def _rest(self) -> None:
        """The last queue: one for all packets, else one for those that bypass HTB.

        Simple queues are tried in their order, so one for all packets leaves nothing for later ones.
        """
        port = self._port
        everything = [q for q in port.queues if q.match.codepoints is None and not q.match.unknown]
        if everything and self._direction is None:
            port.queues = [queue for queue in port.queues if queue not in everything] + everything
        taken = frozenset[int]().union(*(q.match.codepoints or () for q in port.queues))
        if everything or taken == model.ALL_CODEPOINTS:
            return
        text = "packets without a queue bypass all shaping; here they get a class of their own"
        self._account.find("W17", port.line, text)
        bypass = PortQueue(port.default_name, 0)
        bypass.limit = Quantity(50, Unit.PACKETS, 0, How.DEFAULT, text="ethernet-default, 50 packets")
        port.queues.append(bypass)


def _rate(entry: Entry, key: str, bps: float, value: str = "") -> Rate | None:
    """The rate that a key of an entry says; `value`: its part of a pair."""
    return Rate(bps, RateUnit.BPS, entry.place(key), text=f"{key}={value or entry.get(key)}") if bps else None


def _by(entries: list[Entry], *keys: str) -> dict[str, list[Entry]]:
    """Entries by what any of the keys says."""
    result: dict[str, list[Entry]] = {}
    for entry in entries:
        for name in {entry.get(key) for key in keys}:
            result.setdefault(name, []).append(entry)
    return result
