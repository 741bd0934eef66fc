"""Linux tc: qdiscs, classes and filters of each device as a port."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from perhop.routers import tc_trees, tc_units, units
from perhop.routers.dialect import Dialect
from perhop.routers.model import (
    ALL_CODEPOINTS,
    How,
    Match,
    Meter,
    Port,
    Quantity,
    Queue,
    Rate,
    RateUnit,
    Unit,
)
from perhop.routers.tc_commands import Command, commands
from perhop.routers.tc_qdiscs import Leaves, Options
from perhop.routers.tc_trees import major, same_class

if TYPE_CHECKING:
    from perhop.routers.source import Account, Source

PRIOMAP = (1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1)
TOS_PRIORITY = (0, 0, 0, 0, 2, 2, 2, 2, 6, 6, 6, 6, 4, 4, 4, 4)
"""The kernel's priority of a packet by bits 1 to 4 of its TOS field (net/ipv4/route.c, `ip_tos2prio`)."""
DEEPEST = 16


@dataclass(slots=True)
class Device:
    """What is configured at a device."""

    name: str
    line: int
    qdiscs: list[Command] = field(default_factory=list)
    classes: list[Command] = field(default_factory=list)
    filters: list[Command] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter: which packets, to which class, with which policer."""

    match: Match
    target: str
    meter: Meter | None
    line: int
    order: float
    parent: str
    shared: str = ""
    """The index of a policer that filters share."""


class Reader:
    """Reads the commands of a source."""

    def __init__(self, source: Source, account: Account) -> None:
        """Findings go to the account."""
        self._account = account
        self._leaves = Leaves(account)
        self._devices: dict[str, Device] = {}
        for command in commands(source, account):
            self._take(command)
        named = [device for device in self._devices.values() if device.name]
        blank = self._devices.get("")
        if blank is not None and len(named) == 1:  # `tc -j class show` has no device
            named[0].classes += blank.classes
            named[0].filters += blank.filters
            del self._devices[""]

    def _take(self, command: Command) -> None:
        device = self._devices.setdefault(command.dev, Device(command.dev, command.line))
        listed = {"qdisc": device.qdiscs, "class": device.classes, "filter": device.filters}[command.object]
        if command.verb == "del":
            self._delete(device, command)
            return
        if command.object != "filter":
            same = [c for c in listed if c.parent == command.parent and c.handle == command.handle]
            if command.verb in {"change", "replace"} and same and command.object == "class":
                listed.remove(same[-1])
                self._superseded(same[-1])
            elif command.verb == "replace" or (command.verb == "add" and command.object == "qdisc"):
                for old in [
                    c for c in device.qdiscs if c.parent == command.parent and listed is device.qdiscs
                ]:
                    listed.remove(old)
                    self._superseded(old)
        listed.append(command)

    def _superseded(self, old: Command) -> None:
        self._account.find("W17", old.line, f"replaced by a later command: `tc {old.object} … {old.kind}`")

    def _delete(self, device: Device, command: Command) -> None:
        if command.object == "qdisc" and command.parent == "root":
            for old in [*device.qdiscs, *device.classes, *device.filters]:
                self._account.find(
                    "W17", old.line, f"deleted by a later command: `tc {old.object} … {old.kind}`"
                )
            device.qdiscs, device.classes, device.filters = [], [], []
        self._account.ignore(command.line, "deletes; nothing of it is left")

    def read(self) -> list[Port]:
        """A port for each device with a root qdisc."""
        return [port for device in self._devices.values() if (port := self._port(device)) is not None]

    # Ports

    def _port(self, device: Device) -> Port | None:
        roots = [q for q in device.qdiscs if q.parent == "root" and q.verb != "change"]
        filters = self._first([found for f in device.filters if (found := self._filter(f)) is not None])
        ingress = [q for q in device.qdiscs if q.kind in {"ingress", "clsact"}]
        if not roots:
            return self._ingress(device, ingress, filters)
        port = Port(device.name or "dev", roots[0].line, default_name="unclassified")
        for command in [*device.qdiscs, *device.classes, *device.filters]:
            port.lines |= command.lines
        self._root(port, device, roots[-1], filters)
        for found, meter, match in self._policers(filters):
            port.meters.append((match, f"police {found.target or 'filter'}", meter))
        return port

    def _policers(self, filters: list[Filter]) -> list[tuple[Filter, Meter, Match]]:
        """The first filter of each policer, the policer, and the packets of all filters that share it."""
        groups: dict[str, list[Filter]] = {}
        for found in filters:
            if found.meter is not None or found.shared:
                groups.setdefault(found.shared or f"line {found.line}", []).append(found)
        result = []
        for index, group in groups.items():
            meter = next((found.meter for found in group if found.meter is not None), None)
            if meter is None:
                self._account.find("W15", group[0].line, f"police: index {index} is not defined")
                continue
            codes = [found.match.codepoints for found in group]
            known = [code for code in codes if code is not None]
            union = frozenset[int]().union(*known) if len(known) == len(codes) else None
            result.append((group[0], meter, replace(group[0].match, codepoints=union)))
        return result

    def _ingress(self, device: Device, ingress: list[Command], filters: list[Filter]) -> Port | None:
        policed = self._policers(filters)
        if not ingress or not policed:
            return None
        port = Port(device.name or "dev", ingress[0].line, "input")
        for command in [*device.qdiscs, *device.filters]:
            port.lines |= command.lines
        port.meters = [(match, f"police {found.line}", meter) for found, meter, match in policed]
        return port

    def _root(self, port: Port, device: Device, root: Command, filters: list[Filter], depth: int = 0) -> None:
        children = [q for q in device.qdiscs if q is not root and self._under(q, root)]
        if depth > DEEPEST:
            return
        match root.kind:
            case "tbf":
                self._tbf(port, device, root, children, filters, depth)
            case "htb":
                self._htb(port, device, root, filters)
            case "prio" | "ets":
                self._bands(port, device, root, filters)
            case "drr":
                self._drr(port, device, root, filters)
            case "mq" | "mqprio" | "multiq":
                text = f"{root.kind}: a queue for each of the hardware's; the first one's qdisc is simulated"
                self._account.find("W09", root.line, text)
                if children:
                    self._root(port, device, children[0], filters, depth + 1)
                else:
                    port.queues = [self._leaves.queue("all", root, device.qdiscs, {})]
            case _:
                port.queues = [self._leaves.queue("all", root, device.qdiscs, self._virtual(filters))]

    def _virtual(self, filters: list[Filter]) -> dict[int, frozenset[int]]:
        """The codepoints of gred's virtual queues, from filters that set the minor part only."""
        result: dict[int, frozenset[int]] = {}
        for found in filters:
            minor = re.fullmatch(r"0?:([0-9a-fA-F]{1,4})", found.target)
            if minor and found.match.codepoints:
                number = int(minor[1], 16) & 0xF
                result[number] = result.get(number, frozenset()) | found.match.codepoints
        return result

    def _under(self, child: Command, parent: Command) -> bool:
        return (
            bool(parent.handle)
            and child.parent not in {"root", ""}
            and major(child.parent) == major(parent.handle)
        )

    def _child(self, device: Device, classid: str) -> Command | None:
        found = [q for q in device.qdiscs if ":" in q.parent and same_class(q.parent, classid)]
        found = [q for q in found if q.verb != "change"] or found
        return found[-1] if found else None

    def _tbf(
        self,
        port: Port,
        device: Device,
        root: Command,
        children: list[Command],
        filters: list[Filter],
        depth: int,
    ) -> None:
        options = Options(root, self._account)
        rate, burst = options.rate("rate"), options.size("burst", "buffer", "maxburst")
        limit, latency = options.size("limit"), options.time("latency", "lat")
        peak = options.rate("peakrate")
        options.skip("mtu", "minburst", "mpu", "overhead", "linklayer")
        options.close()
        if peak is not None:
            self._account.find("W10", root.line, "tbf: peakrate is not simulated")
        if rate is None:
            self._account.find("W13", root.line, "tbf without a rate")
        else:
            port.shaper, port.shaper_burst = rate, burst
        if children:
            for unused in (limit, latency):
                if unused is not None:
                    text = f"tbf: `{unused.text}` has no effect beside a qdisc within it"
                    self._account.find("W13", root.line, text)
            self._root(port, device, children[0], filters, depth + 1)
            return
        queue = Queue("all", root.line)
        if limit is not None:
            queue.limit = limit
        elif latency is not None and rate is not None:
            number = latency.number * rate.number / 8 + (burst.number if burst else 0)
            text = f"{latency.text}: latency · rate + burst"
            self._account.find("W05", root.line, f"tbf: `{text}` is {number:.0f} B")
            queue.limit = Quantity(number, Unit.BYTES, root.line, text=text)
        port.queues = [queue]

    # Classes

    def _htb(self, port: Port, device: Device, root: Command, filters: list[Filter]) -> None:
        options = Options(root, self._account)
        default, r2q = options.text("default"), options.number("r2q")
        options.skip("direct_qlen", "direct_packets_stat", "offload", "ver")
        options.close()
        classes = [c for c in device.classes if c.kind == "htb"]
        if not classes:
            self._account.find("W17", root.line, "htb without classes: packets bypass it")
            port.queues = [Queue("direct", root.line)]
            return
        tree = tc_trees.Tree(classes, self._account)
        top = tree.only_root()
        if top is not None:
            port.shaper = top.ceil
        port.tree = tree.roots
        port.quantum_divisor = None if r2q is None else (max(1, int(r2q)), root.line)
        for leaf in tree.leaves:
            child = self._child(device, leaf.handle)
            queue = self._leaves.queue(leaf.handle, child or leaf, device.qdiscs, self._virtual(filters))
            queue.line = leaf.line
            queue.guarantee, queue.ceiling = tree.rates(leaf)
            queue.match = self._matched(leaf.handle, filters, leaf.line, root)
            port.queues.append(queue)
        wanted = None if default is None else self._hex(default)
        rest = next((q for q in port.queues if wanted is not None and self._minor(q.name) == wanted), None)
        if wanted is not None and rest is None and wanted != 0:
            text = f"htb: `default {default}` (hexadecimal) is no class: unclassified packets bypass shaping"
            self._account.find("W15", root.line, text)
        if rest is not None:
            port.queues.remove(rest)
            port.queues.append(rest)
            rest.match = Match(None, (), rest.line)
        else:
            text = "htb without a default class: unclassified packets bypass all shaping"
            self._account.find("W17", root.line, f"{text}; here they get a class of their own")
            bypass = Queue("unclassified", 0)
            bypass.limit = Quantity(1000, Unit.PACKETS, 0, How.DEFAULT, text="txqueuelen 1000")
            port.queues.append(bypass)

    def _hex(self, text: str) -> int | None:
        text = text.partition(":")[2] or text
        return int(text, 16) if re.fullmatch(r"(0x)?[0-9a-fA-F]{1,8}", text) else None

    def _minor(self, handle: str) -> int | None:
        return self._hex(handle.partition(":")[2] or "0")

    def _matched(self, classid: str, filters: list[Filter], line: int, root: Command) -> Match:
        """The codepoints that filters send to a class, before earlier filters' ones are taken out."""
        codes: set[int] = set()
        unknown: list[tuple[int, str]] = []
        place = chosen = 0
        everything = False
        for found in filters:
            if found.parent == "egress" and found.target.startswith(":"):
                continue  # sets tc_index, for gred
            full = (
                found.target if not found.target.startswith(":") else root.handle.rstrip(":") + found.target
            )
            if not found.target or not same_class(full, classid):
                continue
            place = place or found.line
            if found.match.unknown:
                unknown += found.match.unknown
            elif found.match.codepoints is None:
                everything = True
            else:
                codes |= found.match.codepoints
                chosen = chosen or found.line
        if everything and not codes:
            return Match(None, (), place)
        if codes:
            return Match(frozenset(codes), tuple(unknown), chosen)
        text = f"class {classid}, to which no filter leads"
        return Match(None, tuple(unknown) or ((line, text),), place or line)

    def _bands(self, port: Port, device: Device, root: Command, filters: list[Filter]) -> None:
        options = Options(root, self._account)
        bands = int(options.number("bands") or (3 if root.kind == "prio" else 0))
        strict = int(options.number("strict") or 0)
        quanta = options.list("quanta")
        priomap = options.list("priomap") or (list(PRIOMAP) if root.kind == "prio" else [])
        options.skip("multiqueue")
        options.close()
        if root.kind == "ets":
            bands = bands or strict + len(quanta)
        bands = min(max(bands, 1), 16)
        names = [f"{root.handle.rstrip(':') or '1'}:{band + 1:x}" for band in range(bands)]
        unmapped = bands - 1
        targeted = [f for f in filters if any(same_class(f.target, name) for name in names)]
        for band, name in enumerate(names):
            child = self._child(device, name)
            queue = self._leaves.queue(
                name, child or root, device.qdiscs, self._virtual(filters), plain=child is None
            )
            if root.kind == "prio" or band < strict:
                queue.level, queue.level_line = band, root.line
            else:
                number = quanta[band - strict] if band - strict < len(quanta) else 1514
                queue.share = Rate(float(number), RateUnit.WEIGHT, root.line, text=f"quantum {number}")
            if any(same_class(f.target, name) for f in targeted):
                queue.match = self._matched(name, targeted, root.line, root)
            else:
                codes = {
                    c
                    for c in ALL_CODEPOINTS
                    if (priomap[TOS_PRIORITY[(2 * c) % 16]] if len(priomap) == 16 else unmapped) == band
                }
                codes -= {c for f in targeted for c in f.match.codepoints or ()}
                queue.match = Match(frozenset(codes), (), root.line)
            port.queues.append(queue)
        port.sharing = "drr"
        _small_weights(port.queues)
        used = [q for q in port.queues if q.match.codepoints != frozenset()]
        for queue in port.queues:
            if queue not in used:
                self._account.find("W14", root.line, f"band {queue.name}: no codepoint leads to it; left out")
        port.queues = used
        # The queue of the most codepoints stands for all others, so that all packets have one.
        if used and all(q.match.codepoints is not None for q in used):
            union = frozenset[int]().union(*(q.match.codepoints or () for q in used))
            if union != ALL_CODEPOINTS:
                self._account.find("W14", root.line, "packets that no filter matches: in the last band here")

    def _drr(self, port: Port, device: Device, root: Command, filters: list[Filter]) -> None:
        options = Options(root, self._account)
        options.close()
        port.sharing = "drr"
        for command in [c for c in device.classes if c.kind == "drr"]:
            given = Options(command, self._account)
            quantum = given.size("quantum")
            given.close()
            child = self._child(device, command.handle)
            queue = self._leaves.queue(
                command.handle, child or command, device.qdiscs, self._virtual(filters), plain=child is None
            )
            number = quantum.number if quantum is not None else 1514.0
            text = quantum.text if quantum is not None else "quantum of one MTU"
            queue.share = Rate(number, RateUnit.WEIGHT, command.line, text=text)
            queue.line = command.line
            queue.match = self._matched(command.handle, filters, command.line, root)
            port.queues.append(queue)
        _small_weights(port.queues)
        text = "drr drops packets that no filter matches; here they get a queue"
        if port.queues and port.queues[-1].match.codepoints is not None:
            self._account.find("W17", root.line, text)

    # Filters

    def _first(self, filters: list[Filter]) -> list[Filter]:
        """Filters in the order in which they are tried, each with the packets that no earlier one takes."""
        taken: dict[str, set[int]] = {}
        result = []
        for found in sorted(filters, key=lambda f: f.order or math.inf):
            before = taken.setdefault(found.parent, set())
            codes = found.match.codepoints
            if codes is not None and not found.match.unknown:
                if codes <= before:
                    self._account.find("W14", found.line, "a filter whose packets earlier ones take")
                    continue
                if codes & before:
                    names = ", ".join(map(str, units.shown_codepoints(codes & before)))
                    self._account.find("W14", found.line, f"earlier filters take {names}")
                result.append(replace(found, match=replace(found.match, codepoints=codes - before)))
                before |= codes
            else:
                result.append(found)
        return result

    def _filter(self, command: Command) -> Filter | None:
        """A filter; None (with a finding) if it does nothing with queues."""
        words, line, target = list(command.words), command.line, ""
        codes: frozenset[int] | None = None
        unknown: list[tuple[int, str]] = []
        police: list[str] | None = None
        shown = " ".join([command.kind, *command.words])
        if command.kind in {"fw", "route", "bpf", "cgroup", "flow", "tcindex", "rsvp"}:
            unknown.append((line, shown))
            if command.kind == "tcindex":
                self._account.find(
                    "W17", line, "tcindex is gone from the kernel: this filter matches nothing"
                )
        while words:
            word = words[0]
            if word in {"flowid", "classid"} and len(words) > 1:
                target, words = words[1], words[2:]
            elif word == "police":
                police, words = words[1:], []
            elif word == "action" and len(words) > 1 and words[1] == "police":
                police, words = words[2:], []
            elif word == "match" and len(words) > 3:
                used, found = _u32(words[1:])
                if found is None:
                    unknown.append((line, " ".join(words[: 1 + used])))
                else:
                    codes = found if codes is None else codes & found
                words = words[1 + used :]
            elif word in {"ip_tos", "dsfield", "ip_dsfield"} and len(words) > 1:
                value, _, mask = words[1].partition("/")
                found = _tos(value, mask or "0xfc")
                if found is None:
                    unknown.append((line, shown))
                else:
                    codes = found if codes is None else codes & found
                words = words[2:]
            elif word == "handle" and len(words) > 1:
                words = words[2:]
            elif word in {"eth_type", "skip_hw", "skip_sw", "not_in_hw", "direct-action", "da"}:
                words = words[2:] if word == "eth_type" else words[1:]
            else:
                unknown.append((line, shown))
                words = words[1:]
        if codes is None and not unknown and command.kind not in {"u32", "matchall", "flower", "basic"}:
            unknown.append((line, shown))
        everything = codes is None or codes == ALL_CODEPOINTS
        match = Match(None if everything else codes, tuple(dict.fromkeys(unknown)), line)
        shared = _index(police or [])
        defined = police is not None and ("rate" in police or not shared)
        meter = self._police(police or [], line, shown) if defined else None
        if not target and meter is None and not shared:
            self._account.ignore(line, "a filter without a class or policer")
            return None
        order = command.prio
        return Filter(match, target, meter, line, order, command.parent, shared)

    def _police(self, words: list[str], line: int, shown: str) -> Meter | None:
        rate = burst = None
        exceed = "reclassify"
        while words:
            word, value = words[0], words[1] if len(words) > 1 else ""
            if word == "rate":
                found = tc_units.rate(value)
                rate = None if not found else Rate(found, RateUnit.BPS, line, text=f"rate {value}")
            elif word in {"burst", "buffer", "maxburst"}:
                size = tc_units.size(value)
                burst = None if not size else Quantity(size, Unit.BYTES, line, text=f"burst {value}")
            elif word == "conform-exceed":
                exceed = value.partition("/")[0]
            elif word in {"drop", "pass", "ok", "continue", "reclassify", "pipe", "shot"}:
                exceed, words = word, ["", *words]
            elif word in {
                "flowid",
                "classid",
                "mtu",
                "minburst",
                "mpu",
                "overhead",
                "linklayer",
                "index",
                "conform",
            }:
                pass
            else:
                self._account.find("W10", line, f"police: `{word} {value}` is not simulated")
            words = words[2:]
        if rate is None or burst is None:
            self._account.find("W10", line, f"police without rate and burst is left out: `{shown}`")
            return None
        if exceed not in {"drop", "shot"}:
            text = f"police: what exceeds is not dropped but `{exceed}`; here it becomes yellow"
            self._account.find("W10", line, text)
        return Meter("one-bucket", rate, burst, line, exceed="drop" if exceed in {"drop", "shot"} else "mark")


def _index(words: list[str]) -> str:
    """The index by which filters share a policer, if it has one."""
    return words[words.index("index") + 1] if "index" in words[:-1] else ""


def _u32(words: list[str]) -> tuple[int, frozenset[int] | None]:
    """A `match` of u32: how many words it has, and its codepoints if it is about the TOS field only."""
    if (
        words[0] in {"ip", "ip6"}
        and len(words) >= 4
        and words[1] in {"dsfield", "tos", "priority", "precedence"}
    ):
        return 4, _tos(words[2], words[3])
    if words[0] in {"ip", "ip6", "tcp", "udp", "icmp"}:
        return min(4, len(words)), None
    if words[0] == "u8" and len(words) >= 5 and words[3] == "at" and words[4] == "1":
        return 5, _tos(words[1], words[2])
    if words[0] == "u32" and len(words) >= 3 and _number(words[2]) == 0:
        return (5 if words[3:4] == ["at"] else 3), ALL_CODEPOINTS
    if words[0] in {"u8", "u16", "u32"}:
        return min(5 if words[3:4] == ["at"] else 3, len(words)), None
    return 1, None


def _number(text: str) -> int | None:
    return int(text, 0) if re.fullmatch(r"0x[0-9a-fA-F]{1,8}|0|[1-9][0-9]{0,9}", text) else None


def _tos(value: str, mask: str) -> frozenset[int] | None:
    first, bits = _number(value), _number(mask)
    if first is None or bits is None:
        return None
    bits &= 0xFC
    return frozenset(c for c in range(64) if (c << 2) & bits == first & bits)


def _small_weights(queues: list[Queue]) -> None:
    """Quanta as small whole weights: divided by the least one, in hundredths."""
    shares = [q.share for q in queues if q.share is not None and q.share.number > 0]
    if not shares:
        return
    least = min(share.number for share in shares)
    for queue in queues:
        if queue.share is not None:
            weight = max(1, round(100 * queue.share.number / least))
            queue.share = Rate(weight, RateUnit.WEIGHT, queue.share.line, text=queue.share.text)


def read(source: Source, account: Account) -> list[Port]:
    """The ports of a script or of what tc shows."""
    return Reader(source, account).read()


def score(source: Source) -> float:
    """Commands of tc, or what it shows."""
    found = re.findall(
        r"(?m)^\s*(?:sudo\s+)?(?:\S*/|\$\{?)?(?:tc|TC)\}? +(?:-\S+ +)*(?:qdisc|class|filter) ", source.text
    )
    shown = re.findall(r"(?m)^(?:qdisc|class) \S+ \S*:", source.text)
    json = '"kind"' in source.text and '"handle"' in source.text
    return 3.0 * len(found) + 3.0 * len(shown) + 9.0 * json


DIALECT = Dialect("tc", "Linux tc", score, read)
