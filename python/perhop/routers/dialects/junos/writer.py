"""A link as Junos class-of-service and policers of a firewall filter, in braces."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from perhop.routers import outgoing, units
from perhop.routers.curves import COLORS
from perhop.routers.dialects.junos.words import (
    RANGES,
    Block,
    code_points,
    drop_profile,
    interface,
    short,
    text_lines,
    word,
)
from perhop.routers.model import ALL_CODEPOINTS

if TYPE_CHECKING:
    from perhop.routers.curves import Color
    from perhop.routers.dialects.junos.words import Fills, Node
    from perhop.routers.outgoing import Depth, Outgoing, QueueOut, Remarks, Table

MOST_CLASSES = 8
"""Forwarding classes, each with a queue."""
STRICT = ("strict-high", "high")
"""Priorities that are served before others, highest first."""
REST = "best-effort"
"""The forwarding class of packets that no classifier names, whatever its queue."""
LOSS: dict[Color, str] = {"green": "low", "yellow": "medium-high", "red": "high"}
TEMPORAL_US = 50_000
"""The least of the platforms' largest `buffer-size temporal` (Junos 10.1: M320 and T Series)."""
MOST_TEMPORAL_US = 32_000_000
"""The largest of them (vSRX)."""
SLOWEST = 61_000.0
"""Bit/s: slower policers have coarse steps on old platforms (Junos 9.3)."""
KINDS = {"srtcm": "single-rate", "trtcm": "two-rate"}


def lines(link: Outgoing, remarks: Remarks) -> list[str]:
    """The configuration, as `show configuration` has it."""
    return _Writer(link, remarks).lines()


class _Writer:
    def __init__(self, link: Outgoing, remarks: Remarks) -> None:
        self._link = link
        self._remarks = remarks
        self._base = word(link.name)
        self._names: dict[str, str] = {}
        """Forwarding classes by place in the scenario."""
        self._profiles: dict[Fills, str] = {}
        """Names of drop profiles."""

    def lines(self) -> list[str]:
        link = self._link
        self._name()
        shares = self._shares()
        classes: list[Node] = []
        classifier: list[Node] = []
        schedulers: list[Node] = []
        # The first queue has the packets that no classifier names.
        rest = [queue for queue in link.queues if queue.rest] or link.queues[-1:]
        for number, queue in enumerate(rest + [queue for queue in link.queues if queue is not rest[0]]):
            name = self._names[queue.place]
            classes.append(f"class {name} queue-num {number}")
            held, loss = self._scheduler(queue, shares[queue.place])
            if loss or not queue.rest:
                classifier.append(_classified(name, queue, loss))
            schedulers.append(Block(f"{name}-SCHEDULER", held))
        if len(link.queues) > MOST_CLASSES:
            text = f"Junos has {MOST_CLASSES} forwarding classes, not {len(link.queues)}"
            self._remarks.left_out(link.place, text)
        names = [self._names[queue.place] for queue in link.queues]
        entries: list[Node] = [f"forwarding-class {name} scheduler {name}-SCHEDULER" for name in names]
        nodes: list[Node] = [
            Block("forwarding-classes", classes),
            Block("classifiers", [Block(f"dscp {self._base}-IN", classifier)] if classifier else []),
            Block("drop-profiles", [_profile(fills, name) for fills, name in self._profiles.items()]),
            Block("schedulers", schedulers),
            Block("scheduler-maps", [Block(f"{self._base}-MAP", entries)]),
            Block("interfaces", [self._interface(classified=bool(classifier))]),
        ]
        nodes = [Block("class-of-service", nodes)]
        policers, terms = self._filter()
        if terms:
            name, unit = interface(link.name)
            family = Block("family inet", [Block("filter", [f"output {self._base}-OUT"])])
            inner = Block("family inet", [Block(f"filter {self._base}-OUT", terms)])
            nodes.append(Block("firewall", [*policers, inner]))
            nodes.append(Block("interfaces", [Block(name, [Block(f"unit {unit or 0}", [family])])]))
        return text_lines(nodes)

    # Classes

    def _name(self) -> None:
        used: set[str] = set()
        for queue in self._link.queues:
            base = word(queue.name)
            name = outgoing.unique(base, used if queue.rest or base != REST else {*used, REST})
            used.add(name.lower())
            if name != queue.name:
                self._remarks.differs(queue.place, f"{queue.name!r} is forwarding class {name} there")
            self._names[queue.place] = name

    def _interface(self, *, classified: bool) -> Node:
        link = self._link
        name, unit = interface(link.name)
        held: list[Node] = [f"scheduler-map {self._base}-MAP"]
        place = f"{link.place}.queue"
        if link.shaper is not None:
            bps, burst = link.shaper
            rate = self._bps(place, "rate", bps, "shaping-rate")
            held.append(f"shaping-rate {rate} burst-size {self._bytes(place, 'burst', burst)}")
            if link.shape:
                self._remarks.differs(f"{place}.rate", "--shape has no effect: the link has a shaper")
        elif link.shape:
            held.append(f"shaping-rate {self._bps(link.place, 'rate', link.rate, 'shaping-rate')}")
        else:
            text = "nothing here says or limits the rate; for a faster interface give --shape"
            self._remarks.differs(f"{link.place}.rate", text)
        bound: list[Node] = [Block("classifiers", [f"dscp {self._base}-IN"])] if classified else []
        if unit:
            return Block(name, [Block(f"unit {unit}", held + bound)])
        return Block(name, [*held, Block("unit 0", bound)])

    # Numbers

    def _bps(self, place: str, key: str, bps: float, command: str = "transmit-rate") -> str:
        whole = self._remarks.rate(place, key, bps, RANGES[command])
        if command == "rate" and whole < SLOWEST:
            text = f"below {SLOWEST / 1000:g} kbit/s some platforms round coarsely"
            self._remarks.differs(f"{place}.{key}", text)
        return short(whole)

    def _bytes(self, place: str, key: str, value: float, command: str = "burst-size") -> str:
        return short(self._remarks.bytes(place, key, value, RANGES[command]))

    def _percent(self, place: str, key: str, value: float, whole: int) -> str:
        self._remarks.rounded(place, f"{key} {100 * value:.4g} %", value, whole / 100, f"{whole} %")
        return f"percent {whole}"

    # Schedulers

    def _shares(self) -> dict[str, tuple[list[Node], float]]:
        """The statements of each queue's share, and the rate that it gets at least."""
        link = self._link
        place = link.queues[0].place.rpartition(".")[0]
        result: dict[str, tuple[list[Node], float]] = {}
        strict = [queue for queue in link.queues if queue.strict]
        if link.kind == "priority":
            strict = link.queues[:-1]
            if link.queues[-1].cap is not None:
                self._remarks.left_out(f"{link.queues[-1].place}.cap", "there is no cap for the last class")
        for number, queue in enumerate(strict):
            result[queue.place] = self._strict(queue, number, len(strict))
        others = [queue for queue in link.queues if queue.place not in result]
        if link.kind == "drr":
            self._remarks.differs(place, "drr: how classes share is the device's; import reads it as wfq")
        if len(others) == 1:
            (only,) = others
            words: list[Node] = [] if not strict else ["transmit-rate remainder"]
            if only.rate is not None:
                words = [f"transmit-rate {self._bps(only.place, 'rate', only.rate)}", *self._ceiling(only)]
            return result | {only.place: ([*words, "priority low"], only.rate or self._link.whole)}
        return result | self._sharing(others, place)

    def _strict(self, queue: QueueOut, number: int, all_of_them: int) -> tuple[list[Node], float]:
        if number >= len(STRICT):
            text = f"Junos has {len(STRICT)} priorities before the others, not {all_of_them}"
            self._remarks.left_out(queue.place, text)
            return [], self._link.whole
        words: list[Node] = [f"priority {STRICT[number]}"]
        if queue.ceil is not None:
            words.append(f"shaping-rate {self._bps(queue.place, 'ceil', queue.ceil, 'shaping-rate')}")
            return words, queue.ceil
        if queue.cap is None or queue.strict:  # a policer is the filter's
            return words, self._link.whole
        text = "above its cap a class waits there also when no other has packets"
        self._remarks.differs(f"{queue.place}.cap", text)
        return [*words, f"shaping-rate {self._bps(queue.place, 'cap', queue.cap, 'shaping-rate')}"], queue.cap

    def _ceiling(self, queue: QueueOut) -> list[Node]:
        """The ceiling of a class that shares; bursts, quanta and the order of borrowing are the device's."""
        if queue.prio and not any(other.strict for other in self._link.queues):
            text = "Junos shares what is left among classes of one priority without order"
            self._remarks.differs(f"{queue.place}.prio", text)
        if queue.ceil is None:
            return []
        return [f"shaping-rate {self._bps(queue.place, 'ceil', queue.ceil, 'shaping-rate')}"]

    def _sharing(self, others: list[QueueOut], place: str) -> dict[str, tuple[list[Node], float]]:
        """Guaranteed rates as they are; weights as percentages of the link, or of what the rates leave."""
        sure = sum(queue.rate or 0.0 for queue in others)
        weighted = [queue for queue in others if queue.rate is None]
        total = sum(queue.weight or 1.0 for queue in weighted)
        result: dict[str, tuple[list[Node], float]] = {}
        for queue in others:
            if queue.rate is not None:
                words = f"transmit-rate {self._bps(queue.place, 'rate', queue.rate)}"
                result[queue.place] = ([words, *self._ceiling(queue), "priority low"], queue.rate)
                if queue.weight is not None:
                    text = "no weight beside a rate: how classes share what is left is the device's"
                    self._remarks.differs(f"{queue.place}.weight", text)
        if sure and len(weighted) == 1:
            left: list[Node] = ["transmit-rate remainder", "priority low"]
            return result | {weighted[0].place: (left, self._link.whole)}
        if not sure:
            wanted = [(queue.weight or 1.0) / total for queue in weighted]
            for queue, exact, whole in zip(weighted, wanted, _percentages(wanted), strict=True):
                words = f"transmit-rate {self._percent(queue.place, 'share', exact, whole)}"
                result[queue.place] = ([words, "priority low"], self._link.whole * whole / 100)
            return result
        if weighted:
            text = "weights beside rates are written as rates: shares of what the other rates leave"
            self._remarks.differs(place, text)
        for queue in weighted:
            bps = max(1.0, (self._link.whole - sure) * (queue.weight or 1.0) / total)
            words = f"transmit-rate {self._bps(queue.place, 'share', bps)}"
            result[queue.place] = ([words, "priority low"], math.floor(bps + 0.5))
        return result

    def _scheduler(
        self, queue: QueueOut, share: tuple[list[Node], float]
    ) -> tuple[list[Node], dict[int, str]]:
        """The statements of a scheduler, and the loss priorities of codepoints that it distinguishes."""
        rule, place = queue.rule, queue.rule_place
        words, service = share
        kind = rule.get("aqm")
        result = list(words)
        limit = self._limit(queue, service)
        if limit is None:
            return result, {}
        whole, statement = limit
        result.append(statement)
        if kind == "drop-tail":
            return result, {}
        if kind not in {"red", "wred"} or "target-delay" in rule:
            named = kind or rule.get("scheduler")
            self._remarks.left_out(f"{place}.aqm", f"Junos cannot express {named} as it is here")
            return result, {}
        self._same(queue)
        loss: dict[int, str] = {}
        if kind == "red":
            name = self._curve(f"{place}.thresholds", rule["thresholds"], whole, queue)
            if name is not None:
                result.append(f"drop-profile-map loss-priority any protocol any drop-profile {name}")
        else:
            maps, loss = self._curves(queue, whole)
            result += maps
        return [*result, *self._ecn(queue)], loss

    def _limit(self, queue: QueueOut, service: float) -> tuple[float, str] | None:
        """The limit in bytes, as it is written: a time at the queue's rate."""
        rule, place = queue.rule, queue.rule_place
        if "limit" not in rule:
            kind = rule.get("aqm") or rule.get("scheduler")
            self._remarks.left_out(place, f"Junos cannot express {kind} without a limit")
            return None
        given = self._in_bytes(place, "limit", outgoing.depth(rule["limit"]), queue)
        micro = max(1, math.floor(given * 8e6 / service + 0.5))
        if micro > MOST_TEMPORAL_US:
            text = f"{micro} us at {units.shown_rate(service)}: no platform has more than"
            self._remarks.left_out(f"{place}.limit", f"{text} {MOST_TEMPORAL_US} us")
            micro = MOST_TEMPORAL_US
        elif micro > TEMPORAL_US:
            text = f"{micro} us: platforms cap it, some at {TEMPORAL_US} us, SRX Series at 2000000 us"
            self._remarks.differs(f"{place}.limit", text)
        written = micro * service / 8e6
        said = f"{micro} us at {units.shown_rate(service)}, {written:.6g} B"
        self._remarks.rounded(place, f"limit {units.plain(given)} B", given, written, said)
        return written, f"buffer-size temporal {micro}"

    def _in_bytes(self, place: str, key: str, value: Depth, queue: QueueOut) -> float:
        if not value.packets:
            return value.number
        packet = outgoing.size(queue.rule.get("mean-packet", "1kB"))
        text = f"{key} {units.packets_text(value.number)}: a time or a fill there, of packets of {packet:g} B"
        self._remarks.differs(place, text)
        return value.number * packet

    # Drop curves

    def _same(self, queue: QueueOut) -> None:
        """Remark what Junos does in its own way, in every drop profile."""
        rule, place = queue.rule, queue.rule_place
        outgoing.red_keys(rule, place, self._remarks, "Junos")
        if float(rule.get("weight", 1.0)) != 1.0:
            text = f"no statement sets the weight {rule['weight']:g}: the device has its own; import reads 1"
            self._remarks.differs(f"{place}.weight", text)
        outgoing.by_size(rule, place, self._remarks, "Junos")

    def _curves(self, queue: QueueOut, whole: float) -> tuple[list[Node], dict[int, str]]:
        """Curves by loss priority, and the loss priority of each codepoint of the queue."""
        outgoing.lost(queue, self._remarks)
        place = queue.rule_place
        acting = {code: queue.curve(code, queue.color(code)) for code in sorted(queue.codepoints)}
        keys: list[str | None] = list(dict.fromkeys(acting.values()))
        named: dict[str | None, str]
        if queue.rule.get("profiles") and any(key is not None and key.isdecimal() for key in keys):
            if len(keys) > len(COLORS):
                text = f"{len(keys)} kinds of packets in one queue; three loss priorities tell them apart"
                self._remarks.left_out(f"{place}.profiles", text)
            text = "profiles are drop profiles of loss priorities there; import reads colors"
            self._remarks.differs(f"{place}.profiles", text)
            kept = keys[: len(COLORS)]
            kept.sort(key=lambda key: (key is None, key or ""))
            named = {key: LOSS[color] for key, color in zip(kept, COLORS, strict=False)}
            loss = {code: named.get(key, LOSS["red"]) for code, key in acting.items()}
        else:
            loss = {code: LOSS[queue.color(code)] for code in acting}
        maps: list[Node] = []
        for level in LOSS.values():
            chosen = next((acting[code] for code in acting if loss[code] == level), None)
            if chosen is None:
                continue
            where, curve = self._text_of(queue, chosen)
            name = None if curve is None else self._curve(where, curve, whole, queue)
            if name is not None:
                maps.append(f"drop-profile-map loss-priority {level} protocol any drop-profile {name}")
        return maps, loss

    def _text_of(self, queue: QueueOut, key: str) -> tuple[str, str | None]:
        """The key of a curve, and the curve; what else a profile has is left out."""
        if not key.isdecimal():
            return f"{queue.rule_place}.{key}", str(queue.rule[key])
        where = f"{queue.rule_place}.profiles[{key}]"
        profile: Table = queue.rule["profiles"][int(key)]
        if profile.get("limit", queue.rule["limit"]) != queue.rule["limit"]:
            self._remarks.left_out(f"{where}.limit", "one limit for all packets of a queue")
        if profile.get("ecn", queue.rule.get("ecn", False)) != queue.rule.get("ecn", False):
            self._remarks.left_out(f"{where}.ecn", "ECN is for all packets of a queue, or for none")
        return f"{where}.curve", profile.get("curve")

    def _curve(self, place: str, text: str, whole: float, queue: QueueOut) -> str | None:

        def fill(value: Depth) -> float:
            return self._in_bytes(place, "threshold", value, queue) / whole

        fills = drop_profile(text, fill, place, self._remarks)
        if fills is None:
            return None
        key = place.removeprefix(queue.rule_place).removesuffix(".curve").strip(".")
        name = f"{self._names[queue.place]}-{re.sub(r'[^A-Za-z0-9]+', '-', key).strip('-').upper()}"
        return self._profiles.setdefault(fills, name)

    def _ecn(self, queue: QueueOut) -> list[Node]:
        mode, place = queue.rule.get("ecn", False), f"{queue.rule_place}.ecn"
        if not mode:
            return []
        if mode in {"mark-only", "mark-only-below-max"}:
            text = f"{mode}: only QFX Series drop packets that are not ECN-capable at the tail"
            self._remarks.differs(place, text)
        elif mode == "mark-above-max":
            self._remarks.differs(place, "above max ECN-capable packets are dropped, too")
        return ["explicit-congestion-notification"]

    # Meters

    def _filter(self) -> tuple[list[Node], list[Node]]:
        """The policers of the link, and the terms of the filter that applies them."""
        link = self._link
        policers: list[Node] = []
        terms: list[Node] = []
        used = {"others"}
        meters = self._meters()
        for meter in meters:
            name = outgoing.unique(word(meter.name), used)
            used.add(name.lower())
            found = self._policer(meter, name)
            then: list[Node] = []
            if found is not None:
                policers.append(found[0])
                then = [found[1]]
            others = outgoing.codepoints(one for one in meters if one is not meter)
            held: list[Node] = [Block("then", [*then, "accept"])]
            if not (meter is meters[-1] and meter.codepoints == ALL_CODEPOINTS - others):
                held.insert(0, Block("from", [f"dscp {code_points(meter.codepoints)}"]))
            terms.append(Block(f"term {name}", held))
        if not policers:
            return [], []
        if terms:
            terms.append(Block("term others", [Block("then", ["accept"])]))
            text = "the filter is for IPv4; one for IPv6 has the same terms with `traffic-class`"
            self._remarks.differs(f"{link.place}.meters", text)
        return policers, terms

    def _meters(self) -> list[outgoing.MeterOut]:
        """Every meter, also the policers of strict queues; one that takes all others is the last."""
        link = self._link
        meters = [queue.meter for queue in link.queues if queue.meter is not None] + link.meters
        taken = outgoing.codepoints(meters)
        for queue in link.queues:
            if queue.strict and queue.cap is not None:
                if queue.codepoints & taken:
                    text = "a packet passes one policer of a filter; that of the meter is written"
                    self._remarks.left_out(f"{queue.place}.rate", text)
                    continue
                when = "always" if queue.policed_always else "always, not in congestion only"
                text = f"the policer acts {when}; import reads it as a meter of the link"
                self._remarks.differs(f"{queue.place}.rate", text)
                meters.insert(0, outgoing.MeterOut.of_strict(queue))
        rest = [queue.codepoints for queue in link.queues if queue.rest]
        return sorted(meters, key=lambda meter: meter.codepoints in rest)

    def _policer(self, meter: outgoing.MeterOut, name: str) -> tuple[Node, Node] | None:
        place, marker, out = f"{meter.place}.profile", meter.marker, meter.out
        if marker not in outgoing.MARKERS:
            self._remarks.left_out(f"{place}.marker", f"Junos has no policer like {marker}")
            return None
        cir = self._bps(place, "rate", meter.rate, "rate")
        cbs = self._bytes(place, "burst", meter.burst, "burst")
        if out != "drop":
            text = "loss priorities, which drop profiles see; codepoints are those of rewrite rules"
            self._remarks.differs(f"{place}.out", text)
        if marker == "token-bucket":
            limits: list[Node] = [f"bandwidth-limit {cir}", f"burst-size-limit {cbs}"]
            action = "then discard" if out in {"drop", "drop-red"} else "then loss-priority high"
            return Block(f"policer {name}", [Block("if-exceeding", limits), action]), f"policer {name}"
        if out == "drop":
            text = "a three-color policer drops red packets only; here also yellow ones"
            self._remarks.left_out(f"{place}.out", text)
        kind = KINDS[marker]
        held: list[Node] = [meter.mode]
        held += [f"committed-information-rate {cir}", f"committed-burst-size {cbs}"]
        if marker == "trtcm":
            held.append(f"peak-information-rate {self._bps(place, 'peak-rate', meter.peak_rate, 'rate')}")
        held.append(f"{meter.second}-size {self._bytes(place, meter.second, meter.second_burst, 'burst')}")
        inner: list[Node] = [Block(kind, held)]
        if out != "mark":
            inner.insert(0, Block("action", ["loss-priority high then discard"]))
        return Block(f"three-color-policer {name}", inner), Block("three-color-policer", [f"{kind} {name}"])


def _classified(name: str, queue: QueueOut, loss: dict[int, str]) -> Block:
    """The codepoints of a forwarding class, by loss priority."""
    levels = dict.fromkeys(loss.get(code, "low") for code in sorted(queue.codepoints))
    held: list[Node] = [
        f"loss-priority {level} code-points "
        + code_points(code for code in queue.codepoints if loss.get(code, "low") == level)
        for level in LOSS.values()
        if level in levels
    ]
    return Block(f"forwarding-class {name}", held)


def _profile(fills: Fills, name: str) -> Block:
    words: list[Node] = list(fills.words())
    return Block(name, [Block("interpolate", words)] if fills.interpolated else words)


def _percentages(parts: list[float]) -> list[int]:
    """Whole percents of parts of a whole, at least one each, which add up to 100.

    >>> _percentages([0.6, 0.3, 0.1]), _percentages([1 / 3] * 3)
    ([60, 30, 10], [34, 33, 33])
    """
    result = [max(1, math.floor(100 * part)) for part in parts]
    order = sorted(range(len(parts)), key=lambda i: result[i] - 100 * parts[i])
    for i in order[: max(0, 100 - sum(result))]:
        result[i] += 1
    while sum(result) > 100 and max(result) > 1:
        result[result.index(max(result))] -= 1
    return result
