"""Linux tc: a device's qdiscs, classes and filters as ports, for what it sends and for what arrives."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

from perhop.routers import linux, model, units
from perhop.routers.dialects.tc import filters as tc_filters
from perhop.routers.dialects.tc import trees as tc_trees
from perhop.routers.dialects.tc.commands import class_of, devices, major
from perhop.routers.dialects.tc.options import Options
from perhop.routers.dialects.tc.qdiscs import Leaves
from perhop.routers.model import Match, Port, PortQueue, Quantity, Rate, RateUnit, TreeClass, Unit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from perhop.routers.dialects.tc.commands import Command, Device
    from perhop.routers.dialects.tc.filters import Filter
    from perhop.routers.source import Account, Source

T = TypeVar("T")
DEEPEST = 16
TREES = {"htb", "hfsc", "cbq"}
BANDS = {"prio", "ets", "pfifo_fast"}
NETEM_LIMIT = 1000
NETEM_REACH = 4.0
"""Standard deviations to which netem's tables of distributions reach (iproute2, netem/maketable.c)."""
ARRIVING = {"ingress", "clsact"}


def read(source: Source, account: Account) -> list[Port]:
    """The ports of a script or of what tc shows: what each device sends, and polices as it arrives."""
    return [port for device in devices(source, account) for port in _Interface(device, account).ports()]


class _Interface:
    def __init__(self, device: Device, account: Account) -> None:
        self._account = account
        self._device = device
        self._name = device.name or "dev"
        self._leaves = Leaves(account, device.lengths)
        filters = tc_filters.read(device.filters, account)
        self._arriving = [found for found in filters if found.incoming]
        self._filters = [found for found in filters if not found.incoming]
        self._led: set[int] = set()
        """Lines of filters that lead to a queue."""
        self._below: dict[str, list[Command]] = {}
        """Qdiscs by the major part of their parent."""
        self._at: dict[tuple[str, str], list[Command]] = {}
        """Qdiscs by the class that holds them."""
        self._classes: dict[tuple[str, str], list[tuple[int, Command]]] = {}
        """Classes with their order by kind and the major part of their handle; empty where it has none."""
        self._leads: dict[tuple[str, str], list[tuple[int, Filter]]] = {}
        """Filters with their order by the class to which they lead, whose major part they may leave out."""
        self._index()

    def _index(self) -> None:
        for qdisc in self._device.qdiscs:
            self._at.setdefault(class_of(qdisc.parent), []).append(qdisc)
            if qdisc.parent not in {"root", ""}:
                self._below.setdefault(major(qdisc.parent), []).append(qdisc)
        for order, command in enumerate(self._device.classes):
            handle = command.handle or command.parent  # what `tc -j class show` prints has no parent
            key = command.kind, major(handle) if ":" in handle else ""
            self._classes.setdefault(key, []).append((order, command))
        for order, found in enumerate(self._filters):
            target = found.target
            sets_index = found.parent == "egress" and target.startswith(":")  # tc_index, for gred
            if target and not sets_index:
                named = class_of(target)
                key = ("", named[1]) if target.startswith(":") else named
                self._leads.setdefault(key, []).append((order, found))

    def ports(self) -> list[Port]:
        """A port for a root qdisc, and one for policers of packets that arrive."""
        roots = [q for q in self._device.qdiscs if q.parent == "root" and q.verb != "change"]
        result = [] if not roots else [self._sent(roots[-1])]
        policed = self._police(self._arriving)
        hooks = [q for q in self._device.qdiscs if q.kind in ARRIVING]
        if hooks and policed:
            name = f"{self._name} ingress" if roots else self._name
            port = Port(name, hooks[0].line, "input", meters=policed)
            for hook in hooks:
                port.lines |= hook.lines
                hook.read = True
            for command in self._device.filters:
                if tc_filters.arriving(command.parent):
                    port.lines |= command.lines
            result.append(port)
        return result

    def _police(self, filters: list[Filter]) -> list[tuple[Match, str, model.PortMeter]]:
        listed = tc_filters.policers(filters, self._account)
        return [(match, f"police {found.line}", meter) for found, meter, match in listed]

    def _sent(self, root: Command) -> Port:
        port = Port(self._name, root.line, default_name="unclassified")
        self._root(port, root)
        commands = [*self._device.qdiscs, *self._device.classes]
        commands = [command for command in commands if command.kind not in ARRIVING]
        for command in commands:
            port.lines |= command.lines
        for command in self._device.filters:
            if not tc_filters.arriving(command.parent):
                port.lines |= command.lines
        for found, meter, match in tc_filters.policers(self._filters, self._account):
            port.meters.append((match, f"police {found.target or 'filter'}", meter))
            self._led.add(found.line)
        self._unread(commands)
        for command in self._device.lengths:
            port.lines |= command.lines
        self._leaves.close()
        return port

    def _unread(self, commands: list[Command]) -> None:
        """Report what leads to nothing: qdiscs and classes that nothing holds, filters to no queue."""
        for command in commands:
            if not command.read:
                where = f"{command.kind} {command.handle}".rstrip()
                text = f"{command.object} {where}: nothing that is simulated holds it; no effect here"
                self._account.miss_part(command.line, f"{text}: `{' '.join(command.words)}`")
        for found in self._filters:
            passes = not found.target and found.meter is None
            if found.line not in self._led and not found.shared and not passes:
                text = f"a filter to {found.target or 'no class'}, which is no queue here: no effect"
                self._account.miss_part(found.line, text)

    # Qdiscs

    def _root(self, port: Port, root: Command, depth: int = 0) -> None:
        if depth > DEEPEST:
            return
        below = self._below.get(major(root.handle), []) if root.handle else []
        children = [qdisc for qdisc in below if qdisc is not root]
        match root.kind:
            case "tbf":
                self._tbf(port, root, children, depth)
            case "netem":
                self._netem(port, root, children, depth)
            case kind if kind in TREES:
                self._tree(port, root, depth)
            case kind if kind in BANDS:
                self._bands(port, root, depth)
            case "drr":
                self._drr(port, root, depth)
            case "mq" | "mqprio" | "multiq":
                self._hardware(port, root, children, depth)
            case _:
                port.shaper = self._leaves.shaper(root)
                beside = self._at.get(class_of(root.parent), [])
                port.queues = [self._leaves.queue("all", root, beside, self._virtual)]

    def _hardware(self, port: Port, root: Command, children: list[Command], depth: int) -> None:
        options = Options(root, self._account)
        options.say("W09", "a queue for each of the hardware's; the first one's qdisc is simulated")
        options.close()
        if not children:
            port.queues = [self._leaves.queue("all", root, [], {}, plain=True)]
            return
        for other in children[1:]:
            if (other.kind, other.words) == (children[0].kind, children[0].words):
                other.read = True
        self._root(port, children[0], depth + 1)

    @cached_property
    def _virtual(self) -> dict[int, frozenset[int]]:
        """The codepoints of gred's virtual queues, from filters that set the minor part only."""
        result: dict[int, frozenset[int]] = {}
        for found in self._filters:
            minor = re.fullmatch(r"0?:([0-9a-fA-F]{1,4})", found.target)
            if minor and found.match.codepoints:
                number = int(minor[1], 16) & 0xF
                result[number] = result.get(number, frozenset()) | found.match.codepoints
                self._led.add(found.line)
        return result

    def _child(self, classid: str) -> Command | None:
        found = [qdisc for qdisc in self._at.get(class_of(classid), []) if ":" in qdisc.parent]
        found = [q for q in found if q.verb != "change"] or found
        return found[-1] if found else None

    def _held(self, name: str, holder: Command, depth: int, *, nested: bool = True) -> PortQueue:
        """The queue of a class: that of its qdisc, whose shaper is its ceiling.

        `nested`: a scheduler within the class is simulated.
        """
        child = self._child(name)
        if child is None:
            return self._leaves.queue(name, holder, [], {}, plain=True)
        inner = Port(name, child.line)
        self._root(inner, child, depth + 1)
        if len(inner.queues) == 1 and not inner.tree:
            queue = replace(inner.queues[0], name=name)
        elif inner.tree or not nested:
            text = f"{name}: `{child.kind}` within this class is not simulated; a FIFO in its place"
            self._account.find("W06", child.line, text)
            queue = PortQueue(name, child.line, limit=self._leaves.length(child))
            self._lost(inner)
        else:
            queue = PortQueue(name, child.line, within=inner.queues, spacing_known=True)
        if inner.delay is not None or inner.loss is not None:  # a jitter comes with a delay
            text = f"{name}: delay and loss of netem within a class are not simulated"
            self._account.find("W06", child.line, text)
        queue.ceiling, queue.ceiling_burst = inner.shaper, inner.shaper_burst
        return queue

    def _lost(self, inner: Port) -> None:
        """Report the classes of a tree that is not simulated, but for the ceiling of the only root."""
        if len(inner.tree) == 1 and inner.tree[0].ceil.unit is RateUnit.BPS:
            inner.shaper = inner.tree[0].ceil
        made = list(inner.tree)
        while made:
            one = made.pop(0)
            made += one.classes
            if one.ceil is not inner.shaper:
                shown = "`, `".join(dict.fromkeys(rate.text for rate in (one.rate, one.ceil) if rate.line))
                self._account.find("W06", one.line, f"class {one.name}: `{shown}` is not simulated")

    def _tbf(self, port: Port, root: Command, children: list[Command], depth: int) -> None:
        options = Options(root, self._account)
        rate, burst = options.rate("rate"), options.size("burst", "buffer", "maxburst")
        limit, latency = options.size("limit"), options.time("latency", "lat")
        peak = options.rate("peakrate")
        options.skip("mtu", "minburst")
        options.sizes("mpu", "overhead", "linklayer")
        options.close()
        if peak is not None:
            options.say("W10", f"`{peak.text}` is not simulated")
        if rate is None:
            self._account.miss_part(root.line, "tbf without a rate")
        else:
            port.shaper, port.shaper_burst = rate, burst
        if children:
            for unused in (limit, latency):
                if unused is not None:
                    options.say("W13", f"`{unused.text}` has no effect beside a qdisc within it")
            self._inner(port, children[0], depth)
            return
        queue = PortQueue("all", root.line)
        if limit is not None:
            queue.limit = limit
        elif latency is not None and rate is not None:
            number = latency.number * rate.number / 8 + (burst.number if burst else 0)
            text = f"{latency.text}: latency · rate + burst"
            options.say("W05", f"`{text}` is {number:.0f} B")
            queue.limit = Quantity(number, Unit.BYTES, root.line, text=text)
        port.queues = [queue]

    def _inner(self, port: Port, child: Command, depth: int) -> None:
        """Fill a port with what a shaper or an emulator holds; of two shapers the slower one counts."""
        held = Port(port.name, port.line)
        self._root(held, child, depth + 1)
        port.queues, port.tree, port.sharing = held.queues, held.tree, held.sharing
        port.quantum_divisor, port.rate = held.quantum_divisor, held.rate
        port.delay, port.loss = port.delay or held.delay, port.loss or held.loss
        port.jitter = port.jitter or held.jitter
        outer, inner = port.shaper, held.shaper
        if outer is None or inner is None:
            if inner is not None:
                port.shaper, port.shaper_burst = inner, held.shaper_burst
            return
        slower, other = (inner, outer) if inner.number < outer.number else (outer, inner)
        if slower is inner:
            port.shaper, port.shaper_burst = inner, held.shaper_burst
        text = f"`{other.text}`: a shaper beside a slower one, `{slower.text}`; no effect here"
        self._account.find("W13", other.line, text)

    def _netem(self, port: Port, root: Command, children: list[Command], depth: int) -> None:
        options = Options(root, self._account)
        limit = options.packets("limit")
        self._delay(port, options, root)
        port.loss = self._losses(options, root.line)
        port.shaper = options.rate("rate")
        options.skip("seed")
        options.close()
        if children:
            self._inner(port, children[0], depth)
            return
        queue = PortQueue("all", root.line, limit=limit)
        if limit is None:
            options.say("W04", f"no limit; {NETEM_LIMIT} packets")
            queue.limit = Quantity(NETEM_LIMIT, Unit.PACKETS, 0, model.How.DEFAULT, text="1000 packets")
        if port.delay is not None:
            options.say("W06", "its limit counts packets that it delays, too; here those that wait only")
        port.queues = [queue]

    def _delay(self, port: Port, options: Options, root: Command) -> None:
        """Delay and jitter (Linux, net/sched/sch_netem.c, `tabledist`): uniform unless there is a table."""
        line, times, table = root.line, options.delay(), options.text("distribution")
        if not times:
            return
        delay, spread = times[0], times[1] if len(times) > 1 else 0.0
        text = f"delay {units.time_text(delay)}"
        uniform = table in {None, "uniform"}
        reach = spread if uniform else NETEM_REACH * spread
        least = max(delay - reach, 0.0)
        port.delay = Quantity(least, Unit.SECONDS, line, text=text)
        if not spread:
            return
        text += f" {units.time_text(spread)}"
        if table not in {None, "uniform", "normal"}:
            options.say("W06", f"`distribution {table}` is not simulated; normal here")
        if reach > delay:
            options.say("W06", f"`{text}`: delays below 0 are none on Linux; here others take their place")
        mean, most = delay - least, delay + reach - least
        if not uniform and spread > mean:
            options.miss(f"`{text}`: a normal jitter above the delay is not simulated")
            return
        overtakes = "rate" not in root.words  # with a rate netem sends in order
        if uniform:
            port.jitter = model.Jitter("uniform", most / 2, most, line, text, None, overtakes)
        else:
            port.jitter = model.Jitter("normal", mean, most, line, text, spread, overtakes)

    def _losses(self, options: Options, line: int) -> tuple[float, int, str] | None:
        """Losses; a packet with a wrong bit is lost, too, where its checksum is looked at."""
        lost, spoilt = options.chance("loss"), options.chance("corrupt")
        if spoilt is not None:
            text = f"netem: `{spoilt[1]}`: a corrupted packet is lost on the link here, not where it arrives"
            self._account.find("W06", line, text)
        found = [chance for chance in (lost, spoilt) if chance is not None]
        arrives = math.prod(1 - value for value, _ in found)
        return (round(1 - arrives, 12), line, ", ".join(text for _, text in found)) if found else None

    # Classes

    def _tree(self, port: Port, root: Command, depth: int) -> None:
        options = Options(root, self._account)
        default, r2q = options.text("default"), options.number("r2q")
        port.rate = options.rate("bandwidth") if root.kind == "cbq" else None
        options.skip("direct_qlen", "direct_packets_stat", "offload", "ver", "avpkt", "cell", "allot", "mpu")
        options.close()
        if root.kind == "cbq":
            text = "cbq is gone from the kernel since 6.8; here htb, which has no estimate of idle time"
            self._account.find("W17", root.line, text)
        classes = self._of(root)
        if not classes:
            self._account.find("W17", root.line, f"{root.kind} without classes: packets bypass it")
            port.queues = [PortQueue("direct", root.line)]
            return
        tree = tc_trees.Tree(classes, self._account)
        top = tree.only_root()
        if top is not None and top.ceil.unit is RateUnit.BPS:
            port.shaper = top.ceil
        port.tree = self._lent(root, tree.roots)
        port.quantum_divisor = None if r2q is None else (max(1, int(r2q)), root.line)
        for leaf in tree.leaves:
            queue = self._held(leaf.handle, leaf, depth)
            queue.line = leaf.line
            if queue.ceiling is not None:
                tree.limit(leaf, queue.ceiling)
            queue.guarantee, queue.ceiling = tree.rates(leaf)
            if queue.guarantee.unit is not RateUnit.BPS:
                queue.guarantee = None
            if queue.ceiling.unit is not RateUnit.BPS:
                queue.ceiling = None
            queue.ceiling_burst = None
            queue.match = self._matched(leaf.handle, leaf.line, root)
            port.queues.append(queue)
        self._default(port, root, default)

    def _lent(self, root: Command, roots: list[TreeClass]) -> list[TreeClass]:
        """Classes without a parent, within one of the link's rate where the qdisc lends it: htb does not."""
        reach = [one for one in roots if (one.rate.number, one.rate.unit) != (one.ceil.number, one.ceil.unit)]
        if root.kind == "htb" or not reach:
            return roots
        whole = Rate(100, RateUnit.PERCENT, 0, model.How.DEFAULT, f"{root.kind} lends the link's rate")
        return [TreeClass(root.handle or "1:", root.line, whole, whole, classes=roots)]

    def _default(self, port: Port, root: Command, default: str | None) -> None:
        self._last_everything(port)
        wanted = None if default is None else self._hex(default)
        minors = {self._hex(queue.name.partition(":")[2] or "0"): queue for queue in reversed(port.queues)}
        rest = None if wanted is None else minors.get(wanted)
        if wanted is not None and rest is None and wanted != 0:
            text = f"{root.kind}: `default {default}` (hexadecimal) is no class"
            self._account.find("W15", root.line, f"{text}: unclassified packets bypass shaping")
        if rest is not None:
            port.queues.remove(rest)
            port.queues.append(rest)
            rest.match = Match(None, (), rest.line)
        if port.queues[-1].match.sure == model.ALL_CODEPOINTS:
            return
        bypass = "are dropped" if root.kind == "hfsc" else "bypass all shaping"
        text = f"{root.kind} without a default class: unclassified packets {bypass}"
        self._account.find("W17", root.line, f"{text}; here they get a class of their own")
        port.queues.append(PortQueue("unclassified", 0, limit=self._leaves.length(root)))

    def _of(self, root: Command) -> list[Command]:
        """The classes of a qdisc; all of its kind, where it has no handle."""
        if not root.handle:
            return [command for command in self._device.classes if command.kind == root.kind]
        keys = {(root.kind, major(root.handle)), (root.kind, "")}
        return _in_order(self._classes.get(key, []) for key in keys)

    def _last_everything(self, port: Port) -> None:
        """Put a class last that takes what other filters leave, wherever it is among the classes."""
        port.queues.sort(key=lambda queue: queue.match.codepoints is None and not queue.match.unknown)

    def _hex(self, text: str) -> int | None:
        text = text.partition(":")[2] or text
        return int(text, 16) if re.fullmatch(r"(0x)?[0-9a-fA-F]{1,8}", text) else None

    def _matched(self, classid: str, line: int, root: Command) -> Match:
        """The codepoints that filters send to a class, before earlier filters' ones are taken out."""
        found = self._leading(classid, root)
        self._led.update(one.line for one in found)
        if not found:
            return Match(None, ((line, f"class {classid}, to which no filter leads"),), line)
        chosen = next((one for one in found if one.match.codepoints), found[0])
        return Match.either([one.match for one in found], chosen.line)

    def _leading(self, classid: str, root: Command) -> list[Filter]:
        named = class_of(classid)
        keys = [named] if named[0] != major(root.handle) else [named, ("", named[1])]
        return _in_order(self._leads.get(key, []) for key in keys)

    def _bands(self, port: Port, root: Command, depth: int) -> None:
        options = Options(root, self._account)
        ets = root.kind == "ets"
        bands = int(options.number("bands") or (0 if ets else 3))
        strict = int(options.number("strict") or 0)
        quanta = options.list("quanta")
        priomap = options.list("priomap") or ([] if ets else list(linux.PRIOMAP))
        options.skip("multiqueue")
        options.close()
        if ets:
            bands = bands or strict + len(quanta)
        bands = min(max(bands, 1), 16)
        names = [f"{root.handle.rstrip(':') or '1'}:{band + 1:x}" for band in range(bands)]
        if not ets:  # as tc fills it (iproute2, tc/q_prio.c)
            length = len(linux.PRIOMAP)
            priomap += [*priomap[:1] * length, linux.PRIOMAP[-1]][: length - len(priomap)]
        targeted = [f for name in names for f in self._leading(name, root)]
        taken = frozenset[int]().union(*(f.match.sure for f in targeted))
        of_tos: dict[int, set[int]] = {}
        for code in model.ALL_CODEPOINTS - taken:
            of_tos.setdefault(linux.band(code, priomap, bands), set()).add(code)
        for band, name in enumerate(names):
            queue = self._held(name, root, depth, nested=ets and band >= strict)
            if not ets or band < strict:
                queue.level, queue.level_line = band, root.line
            else:
                number = quanta[band - strict] if band - strict < len(quanta) else 1514
                queue.share = Rate(float(number), RateUnit.WEIGHT, root.line, text=f"quantum {number}")
            queue.match = Match(frozenset(of_tos.get(band, ())), (), root.line)
            if self._leading(name, root):
                found = self._matched(name, root.line, root)
                queue.match = Match.either([found, queue.match], found.line)
            port.queues.append(queue)
        port.sharing = "drr"
        _small_weights(port.queues)
        self._used(port, root)

    def _used(self, port: Port, root: Command) -> None:
        used = [q for q in port.queues if q.match.codepoints != frozenset()]
        for queue in port.queues:
            if queue not in used:
                self._account.find("W14", root.line, f"band {queue.name}: no codepoint leads to it; left out")
        port.queues = used
        self._last_everything(port)
        # The queue of the most codepoints takes all others, so that all packets have one.
        if used and all(q.match.codepoints is not None for q in used):
            union = frozenset[int]().union(*(q.match.codepoints or () for q in used))
            if union != model.ALL_CODEPOINTS:
                self._account.find("W14", root.line, "packets that no filter matches: in the last band here")

    def _drr(self, port: Port, root: Command, depth: int) -> None:
        Options(root, self._account).close()
        port.sharing = "drr"
        for command in self._of(root):
            given = Options(command, self._account)
            quantum = given.size("quantum")
            given.close()
            queue = self._held(command.handle, command, depth)
            number = quantum.number if quantum is not None else 1514.0
            text = quantum.text if quantum is not None else "quantum of one MTU"
            queue.share = Rate(number, RateUnit.WEIGHT, command.line, text=text)
            queue.line = command.line
            queue.match = self._matched(command.handle, command.line, root)
            port.queues.append(queue)
        _small_weights(port.queues)
        self._last_everything(port)
        text = "drr drops packets that no filter matches; here they get a queue"
        if port.queues and port.queues[-1].match.codepoints is not None:
            self._account.find("W17", root.line, text)


def _in_order(groups: Iterable[list[tuple[int, T]]]) -> list[T]:
    return [item for _, item in sorted(chain.from_iterable(groups), key=lambda entry: entry[0])]


def _small_weights(queues: list[PortQueue]) -> None:
    """Quanta as small whole weights: divided by the least one, in hundredths."""
    shares = [q.share for q in queues if q.share is not None and q.share.number > 0]
    if not shares:
        return
    least = min(share.number for share in shares)
    for queue in queues:
        if queue.share is not None:
            weight = max(1, round(100 * queue.share.number / least))
            queue.share = Rate(weight, RateUnit.WEIGHT, queue.share.line, text=queue.share.text)
