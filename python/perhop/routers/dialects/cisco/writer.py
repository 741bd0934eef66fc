"""A link as class maps and policy maps of Cisco IOS and IOS-XE."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from perhop.routers import units
from perhop.routers.curves import drop_precedence
from perhop.routers.dialects.cisco.queue_lines import RANGES, QueueLines, dscp
from perhop.routers.model import ALL_CODEPOINTS
from perhop.routers.outgoing import DEFAULT_BURST_S, MARKERS, codepoints, rate, size, strict_classes, unique

if TYPE_CHECKING:
    from collections.abc import Iterable

    from perhop.routers.outgoing import MeterOut, Outgoing, QueueOut, Range, Remarks, Table

DEFAULT = "class-default"
MOST_NAME = 40
"""Characters of the name of a class map or policy map (Cisco IOS QoS command reference, `policy-map`)."""
MOST_CLASSES = 64
"""Classes of a policy map (the same reference, `class`)."""
MOST_LEVELS = 3
"""Policies within one another."""
VALUES_OF_A_MATCH = 8
"""Codepoints on one `match` line: IOS takes eight."""
STRICT_LEVELS = 2
UNORDERED = "IOS shares what is left among classes without order"


def lines(link: Outgoing, remarks: Remarks) -> list[str]:
    """The lines, in the order in which a device takes them."""
    return _Writer(link, remarks).lines()


class _Writer:
    def __init__(self, link: Outgoing, remarks: Remarks) -> None:
        self._link = link
        self._remarks = remarks
        self._queues = QueueLines(remarks)
        self._names: dict[str, str] = {}
        """Names of classes by place in the scenario."""
        base = _word(link.name).upper()
        self._output, self._child, self._input = (
            f"{base[: MOST_NAME - len(end)]}{end}" for end in ("-OUT", "-QUEUES", "-IN")
        )
        self._policies = {self._output, self._child, self._input}

    def lines(self) -> list[str]:
        link = self._link
        self._name()
        result, body = self._tree() if link.kind == "htb" else self._flat()
        arriving: list[str] = []
        for meter in link.meters:
            name = self._names[meter.place]
            result += _class_map(name, meter.codepoints)
            arriving += [f" class {name}", *self._police(meter)]
        child = self._child_name()
        result += [f"policy-map {child}", *body]
        if child != self._output:
            result += [f"policy-map {self._output}", f" class {DEFAULT}", *self._shape()]
            result.append(f"   service-policy {child}")
        if arriving:
            result += [f"policy-map {self._input}", *arriving]
            text = f"fit no queue: policy {self._input} is for arriving packets; attach it where they arrive"
            self._remarks.differs(f"{link.place}.meters", text)
        result.append(f"interface {_word(link.name)}")
        if not link.shape:
            result += self._told()
        result.append(f" service-policy output {self._output}")
        if arriving:
            result.append(f" service-policy input {self._input}")
        if child == self._output and not link.shape:
            text = "`bandwidth` states the rate and does not limit it; for a faster interface give --shape"
            self._remarks.differs(f"{link.place}.rate", text)
        return result

    def _told(self) -> list[str]:
        """The rate of the interface, where the command takes it."""
        link = self._link
        if link.rate / 1000 > RANGES["interface"].most:
            text = f"`bandwidth` takes {RANGES['interface'].most:g} kbit/s at most and is not written"
            self._remarks.differs(f"{link.place}.rate", text)
            return []
        return [f" bandwidth {self._kbps(link.place, 'rate', link.rate, RANGES['interface'], link.rate)}"]

    def _flat(self) -> tuple[list[str], list[str]]:
        """The class maps of the queues, and the classes of one policy."""
        strict = self._strict()
        result: list[str] = []
        body: list[str] = []
        for queue in self._link.queues:
            name = self._names[queue.place]
            result += _class_map(name, queue.codepoints)
            share = self._share(queue, strict)
            priority = any(line.startswith("  priority") for line in share)
            body += [f" class {name}", *share, *self._held(queue, priority=priority)]
        return result, body

    def _held(self, queue: QueueOut, *, priority: bool) -> list[str]:
        lines = [*self._queues.lines(queue, priority=priority), *self._policed(queue)]
        return lines if queue.meter is None else [*lines, *self._police(queue.meter)]

    # Trees

    def _tree(self) -> tuple[list[str], list[str]]:
        """Class maps and inner policies of a tree of classes, and the classes of the outer policy."""
        link = self._link
        text = "the tree is nested policies: bursts, and how classes share what is left, are the device's"
        self._remarks.differs(link.path, text)
        above: list[str] = []
        depth = 1 if self._child_name() == self._output else 2
        return above, self._level(link.scheduler["classes"], f"{link.path}.classes", link.rate, depth, above)

    def _child_name(self) -> str:
        """The policy of the queues; within one that shapes, unless a tree's root does."""
        link = self._link
        rooted = link.kind == "htb" and len(link.scheduler["classes"]) == 1
        return self._child if link.shaper is not None or (link.shape and not rooted) else self._output

    def _level(self, tables: list[Table], path: str, ceil: float, depth: int, above: list[str]) -> list[str]:
        """The classes of a policy; policies within it and class maps go `above`."""
        if depth > MOST_LEVELS:
            self._remarks.left_out(path, f"IOS has {MOST_LEVELS} policies within one another, not more")
            return []
        bodies: list[tuple[bool, list[str]]] = []
        first = strict_classes(tables)
        ahead = [table.get("prio") or 0 for table, goes in zip(tables, first, strict=True) if goes]
        levels = sorted(set(ahead))
        for number, table in enumerate(tables):
            place = f"{path}[{number}]"
            own = min(rate(table.get("ceil") or table["rate"]), ceil)
            inner = table.get("classes") or []
            leaves = [queue for queue in self._link.queues if f"{queue.place}.".startswith(f"{place}.")]
            rest = any(self._names[queue.place] == DEFAULT for queue in leaves)
            name = self._inner(place, table["name"], rest=rest) if inner else self._names[place]
            lines = [f" class {name}"]
            if first[number]:
                level = min(levels.index(table.get("prio") or 0) + 1, STRICT_LEVELS)
                lines.append("  priority" + (f" level {level}" if len(levels) > 1 else ""))
                lines.append(self._dropped(place, own, size(table["cburst"])))
            elif len(tables) > 1:
                words = self._kbps(place, "rate", rate(table["rate"]), RANGES["bandwidth"], ceil)
                lines.append(f"  bandwidth {words}")
            # IOS takes a policy of queues within a class that shapes only.
            if not first[number] and (own < ceil or inner):
                lines.append(f"  shape average {self._bps(place, 'ceil', own, 'shape')}")
            if table.get("prio") and not any(first):
                self._remarks.differs(f"{place}.prio", UNORDERED)
            if inner:
                child = self._policy(f"{_word(self._link.name).upper()}-{_word(table['name']).upper()}")
                body = self._level(inner, f"{place}.classes", own, depth + 1, above)
                above += [f"policy-map {child}", *body]
                lines.append(f"   service-policy {child}")
            elif leaves:
                lines += self._held(leaves[0], priority=first[number])
            above += _class_map(name, codepoints(leaves))
            bodies.append((rest, lines))
        return [line for _, lines in sorted(bodies, key=lambda item: item[0]) for line in lines]

    def _inner(self, place: str, name: str, *, rest: bool) -> str:
        """A word of its own for a class with others within it."""
        used = {used.lower() for used in self._names.values()}
        word = DEFAULT if rest else unique(_word(name), used, MOST_NAME)
        if word != name:
            self._remarks.differs(place, f"{name!r} is class {word} there")
        self._names[place] = word
        return word

    def _policy(self, base: str) -> str:
        name = unique(base, {used.lower() for used in self._policies}, MOST_NAME)
        self._policies.add(name)
        return name

    # Classes

    def _name(self) -> None:
        """A word of its own for each class; the one that takes all others is class-default."""
        used = {DEFAULT.lower()}
        rest = [queue.place for queue in self._link.queues if queue.rest]
        if self._link.kind == "htb" and not rest:
            rest = [self._link.queues[-1].place]
        for last in self._link.meters[-1:]:
            if last.codepoints == ALL_CODEPOINTS - codepoints(self._link.meters[:-1]):
                rest.append(last.place)
        classes: list[QueueOut | MeterOut] = [*self._link.queues, *self._link.meters]
        if max(len(self._link.queues), len(self._link.meters)) > MOST_CLASSES:
            self._remarks.left_out(self._link.place, f"a policy of IOS has {MOST_CLASSES} classes")
        for one in classes:
            name = DEFAULT if one.place in rest else unique(_word(one.name), used, MOST_NAME)
            used.add(name.lower())
            if name != one.name:
                self._remarks.differs(one.place, f"{one.name!r} is class {name} there")
            self._names[one.place] = name

    # Rates

    def _kbps(self, place: str, key: str, bps: float, taken: Range, whole: float) -> str:
        """A rate in kbit/s; a percentage of the whole, where that is more than the command takes."""
        kbps = max(1, math.floor(bps / 1000 + 0.5))
        given = f"{key} {units.shown_rate(bps)}"
        if kbps > taken.most:
            percent = int(RANGES["bandwidth percent"].fitted(math.floor(100 * bps / whole + 0.5)))
            said = f"{percent} % of {units.shown_rate(whole)}, as {taken.most:g} kbit/s are the most"
            self._remarks.rounded(place, given, bps, percent * whole / 100, said)
            return f"percent {percent}"
        self._remarks.rounded(place, given, bps, kbps * 1000.0, f"{kbps} kbit/s")
        return str(kbps)

    def _bps(self, place: str, key: str, bps: float, command: str) -> int:
        return self._remarks.rate(place, key, bps, RANGES[command])

    def _bytes(self, place: str, key: str, value: float, command: str) -> int:
        return self._remarks.bytes(place, key, value, RANGES[command])

    def _strict(self) -> list[QueueOut]:
        """The queues of strict priority; keys of schedulers that IOS has no words for are reported."""
        link, keys = self._link, self._link.scheduler
        place = link.queues[0].place.rpartition(".")[0]
        if link.kind == "drr":
            text = "drr: how IOS lets classes share is the device's; import reads it as wfq"
            self._remarks.differs(place, text)
        sharing = [queue for queue in link.queues if queue.rate is not None]
        if sharing and any(queue.weight is not None for queue in link.queues):
            text = "some devices refuse `bandwidth` beside `bandwidth remaining` in one policy"
            self._remarks.differs(place, text)
        free = [queue for queue in link.queues if queue.strict and queue.cap is None and queue.ceil is None]
        if free and sharing:
            text = "devices refuse `bandwidth` beside `priority` without a policer: give it one, or weights"
            self._remarks.differs(free[0].place, text)
        if strict := [queue for queue in link.queues if queue.strict]:
            return self._levels(strict)
        if link.kind != "priority":
            return []
        if keys.get("meter", "token-bucket") != "token-bucket":
            self._remarks.left_out(f"{place}.meter", f"IOS cannot measure caps by {keys['meter']}")
        strict = self._levels(link.queues[:-1])
        if link.queues[-1].cap is not None:
            self._remarks.left_out(f"{link.queues[-1].place}.cap", "IOS has no cap for the last class")
        if any(queue.cap is not None for queue in strict):
            text = "above its cap a strict class is policed in congestion there; here it waits"
            self._remarks.differs(place, text)
        return strict

    def _levels(self, strict: list[QueueOut]) -> list[QueueOut]:
        for queue in strict[STRICT_LEVELS:]:
            text = f"IOS has {STRICT_LEVELS} levels of strict priority, not {len(strict)}"
            self._remarks.left_out(queue.place, text)
        return strict

    def _share(self, queue: QueueOut, strict: list[QueueOut]) -> list[str]:
        if queue in strict:
            level = strict.index(queue) + 1
            if level > STRICT_LEVELS:
                return []
            words = ["  priority"] + (["level", str(level)] if len(strict) > 1 else [])
            if queue.ceil is not None:
                return [" ".join(words), self._dropped(queue.place, queue.ceil, queue.ceil_burst)]
            if queue.cap is not None and not queue.policed_always:
                words += self._policed_share(queue, queue.cap)
            return [" ".join(words)]
        result = []
        if queue.rate is not None:
            given = self._kbps(queue.place, "rate", queue.rate, RANGES["bandwidth"], self._link.whole)
            result.append(f"  bandwidth {given}")
        if queue.ceil is not None:
            result.append(f"  {self._shaped(queue.place, 'ceil', queue.ceil, queue.ceil_burst)}")
        if queue.prio and not strict:
            self._remarks.differs(f"{queue.place}.prio", UNORDERED)
        if queue.weight is not None:
            result.append(f"  bandwidth remaining ratio {self._ratio(queue)}")
        return result

    def _dropped(self, place: str, ceil: float, burst: float) -> str:
        """The ceiling of a strict class, which IOS does not shape."""
        text = "IOS has no shaper beside `priority`: above the ceiling packets are dropped there"
        self._remarks.differs(f"{place}.ceil", f"{text}; here they wait")
        return self._limited(place, ("ceil", ceil), ("cburst", burst))

    def _limited(self, place: str, rate: tuple[str, float], burst: tuple[str, float]) -> str:
        """A policer that drops what exceeds; its rate and burst with their keys in the scenario."""
        bps, bc = self._bps(place, *rate, "cir"), self._bytes(place, *burst, "bc")
        return f"  police cir {bps} bc {bc} conform-action transmit exceed-action drop"

    def _policed_share(self, queue: QueueOut, cap: float) -> list[str]:
        """The rate of a strict class, and its burst, if that is not the device's own of 200 ms."""
        burst = size(self._link.scheduler["burst"]) if queue.burst is None else queue.burst
        words = self._kbps(queue.place, "cap", cap, RANGES["priority"], self._link.whole).split()
        own = cap if words[0] == "percent" else 1000.0 * int(words[0])
        if abs(burst - own / 8 * DEFAULT_BURST_S) < 1:
            return words
        return [*words, str(self._bytes(queue.place, "burst", burst, "priority burst"))]

    def _ratio(self, queue: QueueOut) -> int:
        """The weight of a class; those of all are smaller in proportion, if one is above what IOS takes."""
        weights = [other.weight for other in self._link.queues if other.weight is not None]
        scale = min(1.0, RANGES["ratio"].most / max(weights))
        given = (queue.weight or 1.0) * scale
        ratio = max(1, math.floor(given + 0.5))
        said = f"ratio {ratio}" + (f" of {RANGES['ratio'].most:g} at most" if scale < 1 else "")
        self._remarks.rounded(queue.place, f"weight {queue.weight:g}", given, ratio, said)
        return ratio

    def _shaped(self, place: str, key: str, bps: float, burst: float) -> str:
        given = f"burst {units.plain(burst)} B"
        bits = self._remarks.fitted(place, given, burst * 8, RANGES["shape bc"], "bits")
        return f"shape average {self._bps(place, key, bps, 'shape')} {bits} 0"

    def _policed(self, queue: QueueOut) -> list[str]:
        """The policer of a strict class that acts without congestion, too."""
        if not queue.policed_always or queue.cap is None or queue.burst is None:
            return []
        return [self._limited(queue.place, ("rate", queue.cap), ("burst", queue.burst))]

    def _shape(self) -> list[str]:
        link = self._link
        if link.shaper is None:
            return [f"  shape average {self._bps(link.place, 'rate', link.rate, 'shape')}"]
        place = f"{link.place}.queue"
        bps, burst = link.shaper
        if bps >= link.rate:
            self._remarks.differs(f"{place}.rate", "the shaper is not below the link's rate: without effect")
        if link.shape:
            self._remarks.differs(f"{place}.rate", "--shape has no effect: the link has a shaper")
        return [f"  {self._shaped(place, 'rate', bps, burst)}"]

    # Meters

    def _police(self, meter: MeterOut) -> list[str]:
        place, marker, out = f"{meter.place}.profile", meter.marker, meter.out
        if marker not in MARKERS:
            self._remarks.left_out(f"{place}.marker", f"IOS has no policer like {marker}")
            return []
        if meter.mode != "color-blind":
            self._remarks.left_out(f"{place}.mode", "a color-aware policer needs classes for colors")
        words = ["  police cir", str(self._bps(place, "rate", meter.rate, "cir"))]
        words += ["bc", str(self._bytes(place, "burst", meter.burst, "bc"))]
        if marker == "trtcm":
            words += ["pir", str(self._bps(place, "peak-rate", meter.peak_rate, "pir"))]
        if meter.second:
            words += ["be", str(self._bytes(place, meter.second, meter.second_burst, "be"))]
        group = meter.group or _group(meter.codepoints)
        marks = out in {"mark", "drop-red"} if marker != "token-bucket" else out == "mark"
        if marks and group is None:
            text = "the policer writes AFn2 and AFn3, and its class is not of one AF class n; give `af`"
            self._remarks.left_out(f"{place}.af", text)
        marked = [f"set-dscp-transmit af{group}{p}" if group else "transmit" for p in (1, 2, 3)]
        exceed = marked[1] if marks else "drop"
        actions = ["conform-action transmit", f"exceed-action {exceed}"]
        if marker != "token-bucket":
            violate = marked[2] if out == "mark" else "drop"
            actions.append(f"violate-action {violate}")
        if marks and group is not None and meter.codepoints != {8 * group + 2}:
            actions[0] = f"conform-action {marked[0]}"
        return [" ".join([*words, *actions])]


def _word(name: str) -> str:
    return re.sub(r"[^\w./:+-]", "-", name) or "unnamed"


def _class_map(name: str, codepoints: Iterable[int]) -> list[str]:
    """The lines of a class map; class-default has none."""
    if name == DEFAULT:
        return []
    listed = [dscp(code) for code in sorted(codepoints)]
    rows = [listed[i : i + VALUES_OF_A_MATCH] for i in range(0, len(listed), VALUES_OF_A_MATCH)]
    return [f"class-map match-any {name}", *(f" match dscp {' '.join(row)}" for row in rows)]


def _group(codepoints: frozenset[int]) -> int | None:
    """The AF class of which all codepoints are."""
    groups = {code // 8 if drop_precedence(code) else None for code in codepoints}
    return groups.pop() if len(groups) == 1 else None
