"""A link as class maps and policy maps of Cisco IOS and IOS-XE."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from perhop.routers import units
from perhop.routers.curves import COLORS
from perhop.routers.dialects.cisco.ranges import OTHER_CODEPOINTS, RANGES
from perhop.routers.model import ALL_CODEPOINTS
from perhop.routers.outgoing import (
    DEFAULT_BURST_S,
    MARKERS,
    depth,
    lost,
    rate,
    size,
    strict_classes,
    takes,
    thresholds,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from perhop.routers.outgoing import Depth, MeterOut, Outgoing, QueueOut, Range, Remarks

DEFAULT = "class-default"
MOST_NAME = 40
"""Characters of the name of a class map or policy map (Cisco IOS QoS command reference, `policy-map`)."""
MOST_CLASSES = 64
"""Of a policy map (the same, `class`)."""
MOST_LEVELS = 3
"""Policies within one another."""
VALUES_OF_A_MATCH = 8
"""Codepoints on one `match` line: IOS takes eight."""
STRICT_LEVELS = 2
DEFAULT_CURVE = "20 40 10"
"""The device's own thresholds of codepoints beside class selectors, AF and EF."""
WRITTEN = 1e-6
"""Scenarios have max_p with so many digits."""
NEUTRAL: dict[str, Any] = {
    "gentle": False, "spare-short-queue": False, "adaptive": False, "drop-at": "tail",
}  # fmt: skip
"""Keys of RED and WRED without a command, and the value that needs none."""


def lines(link: Outgoing, remarks: Remarks) -> list[str]:
    """The lines, in the order in which a device takes them."""
    return _Writer(link, remarks).lines()


class _Writer:
    def __init__(self, link: Outgoing, remarks: Remarks) -> None:
        self._link = link
        self._remarks = remarks
        self._names: dict[str, str] = {}
        """Names of classes by place in the scenario."""
        base = _word(link.name).upper()
        self._output, self._child, self._input = (_short(base, f"-{end}") for end in ("OUT", "QUEUES", "IN"))
        self._policies = {self._output, self._child, self._input}

    def lines(self) -> list[str]:
        link = self._link
        self._name()
        result, body = self._tree() if link.kind == "htb" else self._flat()
        arriving: list[str] = []
        for meter in link.meters:
            name = self._names[meter.place]
            if name != DEFAULT:
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
            if name != DEFAULT:
                result += _class_map(name, queue.codepoints)
            share = self._share(queue, strict)
            priority = any(line.startswith("  priority") for line in share)
            body += [f" class {name}", *share, *self._held(queue, priority=priority)]
        return result, body

    def _held(self, queue: QueueOut, *, priority: bool) -> list[str]:
        """What a class says of its queue."""
        lines = [*self._rule(queue, priority=priority), *self._policed(queue)]
        return lines if queue.meter is None else [*lines, *self._police(queue.meter)]

    # Trees

    def _tree(self) -> tuple[list[str], list[str]]:
        """Class maps and inner policies of a tree of classes, and the classes of the outer policy."""
        link = self._link
        roots = link.scheduler["classes"]
        place = link.path
        text = "the tree is nested policies: bursts, and how classes share what is left, are the device's"
        self._remarks.differs(place, text)
        above: list[str] = []
        path = f"{place}.classes"
        depth = 1 if self._child_name() == self._output else 2
        body = self._level(roots, path, link.rate, depth, above)
        return above, body

    def _child_name(self) -> str:
        """The policy of the queues; within one that shapes, unless a tree's root does."""
        link = self._link
        rooted = link.kind == "htb" and len(link.scheduler["classes"]) == 1
        return self._child if link.shaper is not None or (link.shape and not rooted) else self._output

    def _level(
        self, tables: list[dict[str, Any]], path: str, ceil: float, depth: int, above: list[str]
    ) -> list[str]:
        """The classes of a policy; policies within it and class maps go `above`."""
        if depth > MOST_LEVELS:
            self._remarks.left_out(path, f"IOS has {MOST_LEVELS} policies within one another, not more")
            return []
        bodies: list[tuple[bool, list[str]]] = []
        first = strict_classes(tables)
        levels = sorted(
            {table.get("prio") or 0 for table, strict in zip(tables, first, strict=True) if strict}
        )
        for number, table in enumerate(tables):
            place = f"{path}[{number}]"
            own = min(rate(table.get("ceil", table["rate"])), ceil)
            inner = table.get("classes") or []
            leaves = [queue for queue in self._link.queues if _under(queue, place)]
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
            if first[number]:
                pass
            elif own < ceil or inner:  # IOS takes a policy of queues within a class that shapes only
                lines.append(f"  shape average {self._bps(place, 'ceil', own, 'shape')}")
            if table.get("prio") and not any(first):
                self._remarks.differs(f"{place}.prio", "IOS shares what is left among classes without order")
            if inner:
                child = self._policy(f"{_word(self._link.name).upper()}-{_word(table['name']).upper()}")
                above_own = self._level(inner, f"{place}.classes", own, depth + 1, above)
                above += [f"policy-map {child}", *above_own]
                lines.append(f"   service-policy {child}")
            elif leaves:
                lines += self._held(leaves[0], priority=first[number])
            if name != DEFAULT:
                codes = frozenset[int]().union(*(queue.codepoints for queue in leaves))
                above += _class_map(name, codes)
            bodies.append((rest, lines))
        return [line for _, lines in sorted(bodies, key=lambda item: item[0]) for line in lines]

    def _inner(self, place: str, name: str, *, rest: bool) -> str:
        """A word of its own for a class with others within it."""
        base = _word(name)
        word = DEFAULT if rest else _short(base)
        number = 2
        while not rest and word.lower() in {used.lower() for used in self._names.values()}:
            word, number = _short(base, f"-{number}"), number + 1
        if word != name:
            self._remarks.differs(place, f"{name!r} is class {word} there")
        self._names[place] = word
        return word

    def _policy(self, base: str) -> str:
        """A name of its own for a policy within another one."""
        name, number = _short(base), 2
        while name in self._policies:
            name, number = _short(base, f"-{number}"), number + 1
        self._policies.add(name)
        return name

    # Classes

    def _name(self) -> None:
        """A word of its own for each class; the one that takes all others is class-default."""
        used = {DEFAULT.lower()}
        rest = [queue.place for queue in self._link.queues if queue.rest]
        if self._link.kind == "htb" and not rest:
            rest = [self._link.queues[-1].place]
        if self._link.meters and self._takes_all_others(self._link.meters[-1]):
            rest.append(self._link.meters[-1].place)
        classes: list[QueueOut | MeterOut] = [*self._link.queues, *self._link.meters]
        if max(len(self._link.queues), len(self._link.meters)) > MOST_CLASSES:
            self._remarks.left_out(self._link.place, f"a policy of IOS has {MOST_CLASSES} classes")
        for one in classes:
            base = _word(one.name)
            name = DEFAULT if one.place in rest else _short(base)
            number = 2
            while one.place not in rest and name.lower() in used:
                name, number = _short(base, f"-{number}"), number + 1
            used.add(name.lower())
            if name != one.name:
                self._remarks.differs(one.place, f"{one.name!r} is class {name} there")
            self._names[one.place] = name

    def _takes_all_others(self, last: MeterOut) -> bool:
        """Whether the last meter takes what no other meter takes: it is of class-default."""
        taken = frozenset[int]().union(*(one.codepoints for one in self._link.meters if one is not last))
        return last.codepoints == ALL_CODEPOINTS - taken

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
        return self._fitted(place, f"{key} {units.plain(bps)} bit/s", bps, command, "bit/s")

    def _bytes(self, place: str, key: str, value: float, command: str) -> int:
        return self._fitted(place, f"{key} {units.plain(value)} B", value, command, "B")

    def _fitted(self, place: str, given: str, value: float, command: str, unit: str) -> int:
        return self._remarks.fitted(place, given, value, RANGES[command], unit)

    def _strict(self) -> list[QueueOut]:
        """The queues of strict priority; keys of schedulers that IOS has no words for are reported."""
        link, keys = self._link, self._link.scheduler
        place = link.queues[0].place.rpartition(".")[0]
        if link.kind == "drr":
            self._remarks.differs(
                place, "drr: how IOS lets classes share is the device's; import reads it as wfq"
            )
        sharing = [queue for queue in link.queues if queue.rate is not None]
        if sharing and any(queue.weight is not None for queue in link.queues):
            text = "some devices refuse `bandwidth` beside `bandwidth remaining` in one policy"
            self._remarks.differs(place, text)
        free = [queue for queue in link.queues if queue.strict and queue.cap is None and queue.ceil is None]
        if free and sharing:
            text = "devices refuse `bandwidth` beside `priority` without a policer: give it one, or weights"
            self._remarks.differs(free[0].place, text)
        if any(queue.strict for queue in link.queues):
            return self._levels([queue for queue in link.queues if queue.strict])
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
            if queue.cap is not None:
                if queue.policed_always:
                    return [" ".join(words)]
                words += self._policed_share(queue, queue.cap)
            return [" ".join(words)]
        result = []
        if queue.rate is not None:
            given = self._kbps(queue.place, "rate", queue.rate, RANGES["bandwidth"], self._link.whole)
            result.append(f"  bandwidth {given}")
        if queue.ceil is not None:
            result.append(f"  {self._shaped(queue.place, 'ceil', queue.ceil, queue.ceil_burst)}")
        if queue.prio and not strict:
            self._remarks.differs(
                f"{queue.place}.prio", "IOS shares what is left among classes without order"
            )
        if queue.weight is not None:
            result.append(f"  bandwidth remaining ratio {self._ratio(queue)}")
        return result

    def _dropped(self, place: str, ceil: float, burst: float) -> str:
        """The ceiling of a strict class, which IOS does not shape."""
        text = (
            "IOS has no shaper beside `priority`: above the ceiling packets are dropped there; here they wait"
        )
        self._remarks.differs(f"{place}.ceil", text)
        bps, bc = self._bps(place, "ceil", ceil, "cir"), self._bytes(place, "cburst", burst, "bc")
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
        bits = self._fitted(place, given, burst * 8, "shape bc", "bits")
        return f"shape average {self._bps(place, key, bps, 'shape')} {bits} 0"

    def _policed(self, queue: QueueOut) -> list[str]:
        """The policer of a strict class that acts without congestion, too."""
        if not queue.policed_always or queue.cap is None or queue.burst is None:
            return []
        bps = self._bps(queue.place, "rate", queue.cap, "cir")
        burst = self._bytes(queue.place, "burst", queue.burst, "bc")
        return [f"  police cir {bps} bc {burst} conform-action transmit exceed-action drop"]

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

    # Queues

    def _rule(self, queue: QueueOut, *, priority: bool) -> list[str]:
        rule = queue.rule
        place = queue.rule_place
        kind = rule.get("aqm")
        result = []
        limit = None if "limit" not in rule else depth(rule["limit"])
        if limit is not None:
            unit = "packets" if limit.packets else "bytes"
            result.append(f"  queue-limit {self._amount(place, 'limit', limit, 'queue-limit')} {unit}")
        if kind == "drop-tail":
            return result
        if kind not in {"red", "wred"} or "target-delay" in rule:
            self._remarks.left_out(f"{place}.aqm", f"IOS cannot express {kind} as it is here")
            return result
        if priority:
            text = "IOS refuses `random-detect` in a class with `priority`; its queue limit only is written"
            self._remarks.left_out(f"{place}.aqm", text)
            return result
        for key, neutral in NEUTRAL.items():
            if rule.get(key, neutral) != neutral:
                self._remarks.left_out(f"{place}.{key}", f"IOS has no `{key}` in {kind}")
        if rule.get("wait", True):
            text = "how drops are spaced is the device's; import reads `wait = false`"
            self._remarks.differs(f"{place}.wait", text)
        self._by_size(rule, place)
        curves = self._curves(queue, place)
        result += self._limits(queue, place, limit)
        if (
            kind == "wred"
            and not any(key in rule for key in COLORS)
            and all("curve" not in profile for profile in rule.get("profiles", []))
        ):
            return result  # limits only
        if kind == "wred":
            lost(queue, self._remarks)
        by_precedence, selectors = self._selectors(queue, place, curves)
        result.append("  random-detect" if by_precedence else "  random-detect dscp-based")
        result.append(f"  random-detect exponential-weighting-constant {self._exponent(place, rule)}")
        missing = [name for name, key in selectors if key not in curves]
        if missing:
            text = f"no thresholds for {', '.join(missing[:3])}: the device has its own defaults for them"
            self._remarks.left_out(place, text)
        result += [f"  random-detect {name} {curves[key]}" for name, key in selectors if key in curves]
        return [*result, *self._ecn(place, rule)]

    def _selectors(
        self, queue: QueueOut, place: str, curves: dict[str, str]
    ) -> tuple[bool, list[tuple[str, str]]]:
        """Which packets have lines, each with the key of its curve; whether they are precedences.

        A class has lines for eight codepoints beside class selectors, AF and EF. Others have one by
        precedence, if all of a precedence have the same curve; else those that flows have come first, and
        those without a line have the device's own curve.
        """
        red = queue.rule["aqm"] == "red"
        keys = {code: "thresholds" if red else _key(queue, code) for code in sorted(queue.codepoints)}
        others = [code for code in keys if code not in units.SHOWN]
        if len(others) > OTHER_CODEPOINTS:
            kinds = {(code // 8, key) for code, key in keys.items()}
            if len(kinds) == len({precedence for precedence, _ in kinds}):
                return True, [(f"precedence {precedence}", key) for precedence, key in sorted(kinds)]
            others = [code for code in others if curves.get(keys[code]) != DEFAULT_CURVE]
            others.sort(key=lambda code: code not in queue.used)
        lost_ones = others[OTHER_CODEPOINTS:]
        if lost_ones:
            text = (
                f"has curves for {len(others)} codepoints beside class selectors, AF and EF; IOS takes lines "
                f"for {OTHER_CODEPOINTS} of these in a class"
            )
            if queue.used & set(lost_ones):
                self._remarks.left_out(place, text)
            else:
                said = f"{text}: the others keep the device's own thresholds; no flow here has them"
                self._remarks.differs(place, said)
        kept = {*units.SHOWN, *others[:OTHER_CODEPOINTS]}
        return False, [(f"dscp {_dscp(code)}", key) for code, key in keys.items() if code in kept]

    def _ecn(self, place: str, rule: dict[str, Any]) -> list[str]:
        mode = rule.get("ecn", False)
        for number, profile in enumerate(rule.get("profiles", [])):
            if profile.get("ecn", mode) != mode:
                text = "IOS marks packets of all codepoints of a class, or none"
                self._remarks.left_out(f"{place}.profiles[{number}].ecn", text)
        if mode in {"mark-only", "mark-only-below-max"}:
            text = f"IOS drops packets that are not ECN-capable and cannot express {mode}"
            self._remarks.left_out(f"{place}.ecn", text)
            return []
        if mode == "mark-above-max":
            self._remarks.differs(f"{place}.ecn", "above max IOS drops ECN-capable packets, too")
        return ["  random-detect ecn"] if mode else []

    def _by_size(self, rule: dict[str, Any], place: str) -> None:
        """With thresholds in bytes a packet's size has no part in its probability there."""
        profiles = [profile.get("curve") for profile in rule.get("profiles", [])]
        given = [rule.get(key) for key in ("thresholds", "green", "yellow", "red")] + profiles
        if rule.get("scale-by-size", True) and any("B/" in text for text in given if text):
            text = "IOS drops packets of all sizes with the same probability; import reads `false`"
            self._remarks.differs(f"{place}.scale-by-size", text)

    def _limits(self, queue: QueueOut, place: str, limit: Depth | None) -> list[str]:
        """Limits of profiles, for each codepoint that has one."""
        result = []
        for code in sorted(queue.codepoints):
            number = _profile(queue, code)
            text = None if number is None else queue.rule["profiles"][number].get("limit")
            if text is None or (limit is not None and depth(text) == limit):
                continue
            own = depth(text)
            amount = self._amount(f"{place}.profiles[{number}]", "limit", own, "queue-limit")
            unit = "packets" if own.packets else "bytes"
            result.append(f"  queue-limit dscp {_dscp(code)} {amount} {unit}")
        return result

    def _curves(self, queue: QueueOut, place: str) -> dict[str, str]:
        """The words of each drop curve, by color; red falls back to yellow, as it does in perhop."""
        result = {}
        for key in ("thresholds", "green", "yellow", "red"):
            given = queue.rule.get(key)
            if isinstance(given, str):
                result[key] = self._curve(f"{place}.{key}", given)
        if "yellow" in result:
            result.setdefault("red", result["yellow"])
        for number, profile in enumerate(queue.rule.get("profiles", [])):
            where = f"{place}.profiles[{number}]"
            if {"traffic-class", "service"} & set(profile.get("match", {})):
                text = "only `dscp`, `precedence` and `color` can be exported; the profile is not"
                self._remarks.left_out(f"{where}.match", text)
            elif "curve" in profile:
                result[str(number)] = self._curve(f"{where}.curve", profile["curve"])
        return {key: words for key, words in result.items() if words}

    def _curve(self, place: str, text: str) -> str:
        if text.startswith(("interpolate", "segmented")):
            self._remarks.left_out(place, "IOS has one segment, from min to max, and cannot express more")
            return ""
        curve = thresholds(text)
        words = []
        for key, value in (("min", curve.low), ("max", curve.high)):
            unit = "" if value.packets else " bytes"
            command = f"{key} {'packets' if value.packets else 'bytes'}"
            words.append(f"{self._amount(place, key, value, command)}{unit}")
        if curve.most <= 0:
            self._remarks.left_out(place, "IOS writes max_p as 1/D and cannot express 0")
            return " ".join(words)
        denominator = int(RANGES["denominator"].fitted(math.floor(1 / curve.most + 0.5)))
        said = f"1/{denominator}"
        if abs(1 / denominator - curve.most) > WRITTEN:
            self._remarks.rounded(place, f"max_p {curve.most:g}", curve.most, 1 / denominator, said)
        return f"{' '.join(words)} {denominator}"

    def _amount(self, place: str, key: str, value: Depth, command: str) -> int:
        unit = "packets" if value.packets else "B"
        return self._fitted(place, f"{key} {value.number:g} {unit}", value.number, command, unit)

    def _exponent(self, place: str, rule: dict[str, Any]) -> int:
        weight = float(rule["weight"])
        exponent = int(RANGES["exponent"].fitted(math.floor(-math.log2(weight) + 0.5)))
        said = f"2^-{exponent} = {2.0**-exponent:.4g}"
        self._remarks.rounded(f"{place}.weight", f"{weight:g}", weight, 2.0**-exponent, said)
        return exponent

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


def _under(queue: QueueOut, place: str) -> bool:
    """Whether a queue is that of a class of a tree, or of one within it."""
    return queue.place == place or queue.place.startswith(f"{place}.")


def _profile(queue: QueueOut, codepoint: int) -> int | None:
    """The drop profile that acts on a codepoint, by number."""
    profiles = queue.rule.get("profiles", [])
    color = queue.color(codepoint)
    return next((n for n, p in enumerate(profiles) if takes(p.get("match", {}), codepoint, color)), None)


def _key(queue: QueueOut, codepoint: int) -> str:
    """The drop curve of a codepoint: the number of a profile, or a color."""
    number = _profile(queue, codepoint)
    return queue.color(codepoint) if number is None else str(number)


def _short(base: str, end: str = "") -> str:
    """A name that is not longer than those of class maps and policy maps."""
    return base[: MOST_NAME - len(end)] + end


def _word(name: str) -> str:
    """A name as one word that IOS takes."""
    return re.sub(r"[^\w./:+-]", "-", name) or "unnamed"


def _dscp(codepoint: int) -> str:
    if codepoint == 0:
        return "default"
    return units.SHOWN.get(codepoint, str(codepoint)).lower()


def _class_map(name: str, codepoints: Iterable[int]) -> list[str]:
    listed = [_dscp(code) for code in sorted(codepoints)]
    rows = [listed[i : i + VALUES_OF_A_MATCH] for i in range(0, len(listed), VALUES_OF_A_MATCH)]
    return [f"class-map match-any {name}", *(f" match dscp {' '.join(row)}" for row in rows)]


def _group(codepoints: frozenset[int]) -> int | None:
    """The AF class of which all codepoints are."""
    groups = {code // 8 for code in codepoints if code % 8 in {2, 4, 6}}
    plain = all(code % 8 in {2, 4, 6} for code in codepoints)
    return next(iter(groups)) if plain and len(groups) == 1 and groups <= {1, 2, 3, 4} else None
