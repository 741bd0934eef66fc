"""MikroTik RouterOS: simple queues, queue trees and interface queues of an export, versions 6 and 7.

Source: MikroTik's manual, "Queues" (sections "Simple Queue", "Queue Tree", "Interface Queue"), "HTB"
(`limit-at` is the guaranteed rate, `max-limit` the ceiling, `priority` 1 is served first, `bucket-size` times
the rate is how much a class can send at once), "Mangle". HTB is Linux's: classes become a tree of `htb`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from perhop.routers import units
from perhop.routers.dialects.routeros.lines import Entry, Menus
from perhop.routers.dialects.routeros.marks import Marks
from perhop.routers.dialects.routeros.queue_types import Types, rate
from perhop.routers.model import (
    ALL_CODEPOINTS,
    How,
    Match,
    Port,
    PortQueue,
    Quantity,
    Rate,
    RateUnit,
    TreeClass,
    Unit,
)
from perhop.routers.source import MEANINGS

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
LEAST = 1000.0
"""Bit/s of a class without `limit-at`, which is sure of nothing."""
HTB_ROOTS = {"global", "global-in", "global-out", "global-total"}
DEEPEST = 8
BURSTS = ("burst-limit", "burst-threshold", "burst-time")
DIRECTIONS = ("upload", "download")
ANYWHERE = {"", "0.0.0.0/0", "::/0", "0.0.0.0/0,::/0"}
TARGETS = ("target", "dst", "target-addresses", "dst-address", "interface")
"""Keys that say which packets a simple queue is for."""


@dataclass(frozen=True, slots=True)
class Side:
    """The value of a pair that counts: that of upload, of download, or the only one of a queue tree."""

    index: int | None

    def of(self, entry: Entry, key: str, default: str = "") -> str:
        """A value of an entry."""
        value = entry.get(key, default)
        if self.index is None:
            return value
        parts = value.split("/")
        return parts[min(self.index, len(parts) - 1)]


class Reader:
    """Reads an export."""

    def __init__(self, source: Source, account: Account) -> None:
        """Findings go to the account."""
        self._account = account
        self._menus = Menus(source, account, MENUS)
        self._types = Types(self._menus.entries["queue type"], account)
        self._tree = self._enabled("queue tree")
        self._simple = self._enabled("queue simple")
        mangle = self._enabled("ip firewall mangle") + self._enabled("ipv6 firewall mangle")
        self._mangle = mangle
        self._names: set[str] = set()
        """The names of classes of the port that is being made."""
        self._times: dict[str, int] = {}
        """The number of classes that have a name already."""

    def _enabled(self, menu: str) -> list[Entry]:
        result = []
        for entry in self._menus.entries[menu]:
            if entry.off:
                self._account.ignore_whole(entry.lines, "disabled")
            else:
                result.append(entry)
        return result

    def read(self) -> list[Port]:
        """A port for each parent of a queue tree, each direction of simple queues, each interface queue."""
        names = {entry.name for entry in self._tree}
        held = _by_parent(self._tree)
        roots: dict[str, list[Entry]] = {}
        for entry in self._tree:
            parent = entry.get("parent") or "global"
            if parent not in names:
                roots.setdefault(parent, []).append(entry)
        ports = [self._of_tree(parent, listed, held) for parent, listed in roots.items()]
        if self._simple:
            ports += [self._of_simple(index) for index in range(len(DIRECTIONS))]
        taken = {port.name for port in ports}
        for entry in self._menus.entries["queue interface"]:
            port = self._of_interface(entry, taken)
            if port is not None:
                ports.append(port)
        return ports

    # Interfaces

    def _interface(self, name: str) -> Entry | None:
        """The entry of an Ethernet interface by its name, or by the one that it came with."""
        found = self._ethernet.get(name)
        return found[0] if found else None

    @cached_property
    def _ethernet(self) -> dict[str, list[Entry]]:
        return _by_name(self._menus.entries["interface ethernet"], "name", "default-name")

    @cached_property
    def _own_queues(self) -> dict[str, list[Entry]]:
        """The queues of interfaces by these."""
        return _by_name(self._menus.entries["queue interface"], "interface", "name")

    def _speed(self, port: Port) -> None:
        entry = self._interface(port.name)
        if entry is None:
            return
        self._bandwidth(port, entry)
        found = re.match(r"(\d{1,6}(?:\.\d)?)([MG])", entry.get("speed"))
        if found is not None:
            bps = float(found[1]) * (1e9 if found[2] == "G" else 1e6)
            text = f"speed={entry.get('speed')}"
            given = Rate(bps, RateUnit.BPS, entry.place("speed"), text=text) if bps else None
            if port.rate is None or (given is not None and given.number < port.rate.number):
                port.rate = given
            port.lines |= entry.lines

    def _bandwidth(self, port: Port, entry: Entry) -> None:
        """The limits of an Ethernet interface: received, then sent; a bare number is kbit/s."""
        sent = entry.get("bandwidth").rpartition("/")[2]
        bps = rate(f"{sent}k" if sent.isdecimal() else sent)
        if bps:
            text = f"bandwidth={entry.get('bandwidth')}"
            port.rate = Rate(bps, RateUnit.BPS, entry.place("bandwidth"), text=text)
            port.lines |= entry.lines
        elif bps is None:
            text = f"not understood: `bandwidth={entry.get('bandwidth')}`"
            self._account.miss_part(entry.place("bandwidth"), text)

    def _of_interface(self, entry: Entry, taken: set[str]) -> Port | None:
        name, kind = entry.get("interface") or entry.name, entry.get("queue")
        if not name or self._types.kind(kind) == "none":
            return None
        if name in taken:
            return None  # below a queue tree, whose shapers keep it empty; `_of_tree` says so
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
            if shaper is None:
                text = f"queue {kind} of the interface: without effect below a queue tree that is slower"
                self._account.find("W13", entry.place("queue"), text)
                continue
            port.lines |= self._types.lines(kind)
            if port.rate is None or shaper.number < port.rate.number:
                port.rate = shaper
            text = f"queue {kind} of the interface: its rate is that of the link here, below the queue tree"
            self._account.find("W06", entry.place("queue"), text)

    # Queue trees

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
            self._fill(port, roots, Side(None), "packet-mark", marks, held)
        return port

    def _of_simple(self, index: int) -> Port:
        names = {entry.name for entry in self._simple}
        roots = [entry for entry in self._simple if entry.get("parent", "none") not in names]
        port = Port(DIRECTIONS[index], self._simple[0].line, default_name="others")
        with self._account.of_port(port.findings):
            marks = Marks(self._mangle, "", self._account)
            for entry in self._simple:
                self._total(entry)
            reached = self._fill(port, roots, Side(index), "packet-marks", marks, _by_parent(self._simple))
            for entry in self._simple:
                if id(entry) not in reached:
                    text = f"{entry.name}: it is within itself or too deep; left out"
                    self._account.find("W15", entry.line, text)
        return port

    def _total(self, entry: Entry) -> None:
        for key in ("total-max-limit", "total-limit-at", "total-burst-limit"):
            if rate(entry.get(key, "0")):
                text = f"{entry.name}: `{key}={entry.get(key)}`: a limit of both directions is not simulated"
                self._account.find("W06", entry.place(key), text)
        for key in ("total-priority", "total-queue", "total-burst-threshold", "total-burst-time",
                    "total-bucket-size"):  # fmt: skip
            if entry.has(key):
                text = f"{entry.name}: `{key}={entry.get(key)}` has no effect here"
                self._account.find("W13", entry.place(key), text)
        if entry.get("time"):
            text = f"{entry.name}: `time={entry.get('time')}`: it acts at all times here"
            self._account.find("W06", entry.place("time"), text)

    def _fill(
        self,
        port: Port,
        roots: list[Entry],
        side: Side,
        key: str,
        marks: Marks,
        children: dict[str, list[Entry]],
    ) -> dict[int, Entry]:
        """The classes and queues of a port, from the entries without a parent; returns those that it has."""
        reached: dict[int, Entry] = {}
        self._names, self._times = set[str](), {}
        alone = len(roots) == 1 and not children.get(roots[0].name)
        if alone:
            self._alone(port, roots[0], side, key, marks, reached)
        else:
            made = [self._class(port, root, side, key, marks, children, reached, 0) for root in roots]
            queues = {queue.name: queue for queue in port.queues}
            for root in made:
                self._root(root, queues.get(root.queue))
            port.tree = made
            if len(made) == 1 and made[0].classes and made[0].ceil.unit is RateUnit.BPS:
                port.shaper = made[0].ceil
            self._rest(port, ordered=side.index is not None)
        port.lines |= marks.lines
        for entry in reached.values():
            self._unknown(entry)
        return reached

    def _alone(
        self, port: Port, entry: Entry, side: Side, key: str, marks: Marks, reached: dict[int, Entry]
    ) -> None:
        """One queue: a shaper for all packets."""
        made = self._class(port, entry, side, key, marks, {}, reached, 0)
        (queue,) = port.queues
        if made.ceil.unit is RateUnit.BPS:
            port.shaper, port.shaper_burst = made.ceil, made.cburst
        if queue.match.codepoints not in {None, ALL_CODEPOINTS} or queue.match.unknown:
            what = queue.match.unknown[0][1] if queue.match.unknown else f"{key}={entry.get(key)}"
            text = f"{entry.name}: `{what}`: other packets bypass it; here all packets are its"
            self._account.find("W14", queue.match.line or entry.line, text)
        queue.match = Match(None, (), entry.line)
        queue.guarantee = queue.ceiling = None
        if entry.has("limit-at") and rate(side.of(entry, "limit-at")):
            text = (
                f"{entry.name}: `limit-at={entry.get('limit-at')}` has no effect here: nothing is beside it"
            )
            self._account.find("W13", entry.place("limit-at"), text)
        if side.of(entry, "priority", "8") != "8":
            text = (
                f"{entry.name}: `priority={entry.get('priority')}` has no effect here: nothing is beside it"
            )
            self._account.find("W13", entry.place("priority"), text)

    def _class(
        self,
        port: Port,
        entry: Entry,
        side: Side,
        key: str,
        marks: Marks,
        children: dict[str, list[Entry]],
        reached: dict[int, Entry],
        depth: int,
    ) -> TreeClass:
        reached[id(entry)] = entry
        port.lines |= entry.lines
        within = [e for e in children.get(entry.name, []) if entry.name and id(e) not in reached]
        if depth >= DEEPEST:
            within = []
        made = self._rates(entry, side)
        name, times = made.name, self._times.get(made.name, 0)
        while made.name in self._names:
            times += 1
            made.name = f"{name}+{times if times > 1 else ''}"
        self._times[name] = times
        self._names.add(made.name)
        self._bursts(entry, side)
        if within:
            for inner in within:
                if id(inner) not in reached:
                    made.classes.append(
                        self._class(port, inner, side, key, marks, children, reached, depth + 1)
                    )
            self._parent(entry, side, key, made)
            return made
        made.prio = self._priority(entry, side)
        queue = PortQueue(made.name, entry.line)
        queue.guarantee = made.rate if made.rate.how is How.CONFIGURED else None
        queue.ceiling = made.ceil if made.ceil.unit is RateUnit.BPS else None
        queue.match = self._match(entry, key, marks)
        kind = side.of(entry, "queue", "default-small")
        if not entry.has("queue"):
            text = f"{made.name}: queue type not configured; default-small, a FIFO of 10 packets"
            self._account.find("W04", entry.line, text)
        port.lines |= self._types.lines(kind)
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
        port.queues.append(queue)
        return made

    def _root(self, made: TreeClass, queue: PortQueue | None) -> None:
        """A queue without a parent reaches its max-limit: the interface's own HTB lends without a limit."""
        if made.rate.how is How.CONFIGURED and made.rate.text != made.ceil.text:
            text = f"{made.name}: `{made.rate.text}` has no effect in a queue without a parent: it reaches"
            text += f" `{made.ceil.text}`" if made.ceil.line else " the link's rate"
            self._account.find("W13", made.rate.line, text)
        made.rate, made.burst = made.ceil, made.cburst
        if queue is not None and queue.guarantee is not None:
            queue.guarantee = made.rate

    def _parent(self, entry: Entry, side: Side, key: str, made: TreeClass) -> None:
        """Report what has no effect in a queue around others."""
        for name in ("queue", "priority", key, *(TARGETS if side.index is not None else ())):
            if entry.has(name) and (name != "priority" or side.of(entry, name) != "8"):
                text = f"{entry.name}: `{name}={entry.get(name)}` has no effect in a queue around others"
                self._account.find("W13", entry.place(name), text)
        sure = sum(inner.rate.number for inner in made.classes if inner.rate.unit is RateUnit.BPS)
        if made.rate.how is not How.CONFIGURED:
            most = made.ceil.number if made.ceil.unit is RateUnit.BPS else sure
            made.burst = made.cburst
            made.rate = Rate(
                most, RateUnit.BPS, made.ceil.line, How.DEFAULT, "what its queues can use together"
            )
        if made.ceil.unit is RateUnit.BPS and sure > made.ceil.number * (1 + 1e-9):
            text = f"{entry.name}: its queues are sure of {units.shown_rate(sure)} together, above"
            self._account.find("W17", entry.line, f"{text} its `{made.ceil.text}`: they get it all the same")

    def _rates(self, entry: Entry, side: Side) -> TreeClass:
        name = entry.name or "queue"
        sure, most = self._rate(entry, side, "limit-at"), self._rate(entry, side, "max-limit")
        if most is None:
            most = Rate(100, RateUnit.PERCENT, 0, How.DEFAULT, "no max-limit: the link's rate")
        if sure is None:
            sure = Rate(LEAST, RateUnit.BPS, 0, How.DEFAULT, "no limit-at: sure of nothing")
        if most.unit is RateUnit.BPS and sure.number > most.number:
            if sure.how is How.CONFIGURED:
                text = f"{name}: `{sure.text}` is above `{most.text}`, which is its rate here"
                self._account.find("W16", sure.line, text)
            sure = Rate(most.number, RateUnit.BPS, most.line, most.how, most.text)
        made = TreeClass(name, entry.line, sure, most)
        made.burst, made.cburst = self._bucket(entry, side, sure), self._bucket(entry, side, most)
        return made

    def _rate(self, entry: Entry, side: Side, key: str) -> Rate | None:
        if not entry.has(key):
            return None
        value = side.of(entry, key)
        bps = rate(value)
        text = f"{key}={value}"
        if bps is None:
            self._account.miss_part(entry.place(key), f"{entry.name}: not understood: `{text}`")
        return Rate(bps, RateUnit.BPS, entry.place(key), text=text) if bps else None

    def _bucket(self, entry: Entry, side: Side, of: Rate) -> Quantity | None:
        """The amount that a class can send at once: `bucket-size` seconds of its rate."""
        if of.unit is not RateUnit.BPS:
            return None
        value = side.of(entry, "bucket-size", str(BUCKET))
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

    def _bursts(self, entry: Entry, side: Side) -> None:
        limit = rate(side.of(entry, "burst-limit", "0"))
        for key in BURSTS:
            value = side.of(entry, key)
            if limit and entry.has(key) and key == "burst-limit":
                text = f"{entry.name}: `{key}={value}`: a higher rate for a time is not simulated"
                self._account.find("W06", entry.place(key), text)
            elif limit and entry.has(key):
                text = f"{entry.name}: `{key}={value}` has no effect here"
                self._account.find("W13", entry.place(key), text)

    def _priority(self, entry: Entry, side: Side) -> tuple[int, int]:
        value = units.whole(side.of(entry, "priority", "8"))
        if value is None or not 1 <= value <= 8:
            text = f"{entry.name}: `priority={entry.get('priority')}` is from 1 to 8; 8 here"
            self._account.find("W16", entry.place("priority"), text)
            value = 8
        return value - 1, entry.place("priority")

    def _match(self, entry: Entry, key: str, marks: Marks) -> Match:
        given = [mark for mark in entry.get(key).split(",") if mark]
        place = entry.place(key)
        targets: tuple[tuple[int, str], ...] = ()
        if key == "packet-marks":
            values = [(entry.place(name), entry.get(name), name) for name in TARGETS]
            targets = tuple(
                (line, f"{name}={value}") for line, value, name in values if value not in ANYWHERE
            )
        if not given:
            return Match(None, targets[:1], entry.line)
        matches: list[Match] = []
        for mark in given:
            found, others = marks.of(mark)
            if not found and not others:
                text = f"{entry.name}: no rule of the mangle sets packet-mark {mark}"
                self._account.find("W15", place, text)
                others = [(place, f"packet-mark={mark}")]
            matches.append(Match(found or None, tuple(others), place))
        marked = Match.either(matches, place)
        return Match.every([marked, Match(None, targets)], place) if targets else marked

    def _rest(self, port: Port, *, ordered: bool) -> None:
        """The last queue: one for all packets, else one for those that bypass HTB.

        Simple queues are tried in their order, so one for all packets leaves nothing for later ones.
        """
        everything, others = list[PortQueue](), list[PortQueue]()
        for queue in port.queues:
            whole = queue.match.codepoints is None and not queue.match.unknown
            (everything if whole else others).append(queue)
        if everything:
            if not ordered:
                port.queues = others + everything
            return
        taken = frozenset[int]().union(*(q.match.codepoints or () for q in port.queues))
        if taken == ALL_CODEPOINTS:
            return
        text = "packets without a queue bypass all shaping; here they get a class of their own"
        self._account.find("W17", port.line, text)
        bypass = PortQueue(port.default_name, 0)
        bypass.limit = Quantity(50, Unit.PACKETS, 0, How.DEFAULT, text="ethernet-default, 50 packets")
        port.queues.append(bypass)

    def _unknown(self, entry: Entry) -> None:
        """Report keys that nothing read."""
        for key, (value, line) in entry.values.items():
            if key not in entry.read and line and key not in {"comment", "name", "disabled", *BURSTS}:
                text = f"not understood: `{key}={value}`"
                if MEANINGS.search(key):
                    self._account.miss_part(line, text)
                else:
                    self._account.find("W13", line, text)


def _by_parent(entries: list[Entry]) -> dict[str, list[Entry]]:
    result: dict[str, list[Entry]] = {}
    for entry in entries:
        result.setdefault(entry.get("parent"), []).append(entry)
    return result


def _by_name(entries: list[Entry], *keys: str) -> dict[str, list[Entry]]:
    """Entries by what any of the keys says."""
    result: dict[str, list[Entry]] = {}
    for entry in entries:
        for name in {entry.get(key) for key in keys}:
            result.setdefault(name, []).append(entry)
    return result


def read(source: Source, account: Account) -> list[Port]:
    """The ports of an export."""
    return Reader(source, account).read()
