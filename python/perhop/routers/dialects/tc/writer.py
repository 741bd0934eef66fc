"""A link as commands of Linux's tc: a shell script for one device."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from perhop.routers import linux, outgoing, units
from perhop.routers.curves import COLORS
from perhop.routers.model import ALL_CODEPOINTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from perhop.routers.outgoing import Depth, Outgoing, QueueOut, Remarks, Table

FIELD = 2**32 - 1
"""The largest value of a field of 32 bits (Linux, `include/uapi/linux/pkt_sched.h`, `net/sched/sch_*.c`)."""
RANGES = {"size": outgoing.Range(1, FIELD), "quantum": outgoing.Range(1, FIELD)}
"""Ranges by parameter. Rates have 64 bits, which no scenario exceeds."""
HANDLE = "1:"
"""The handle of the qdisc that has the classes."""
SHAPER = "f000:"
MTU = 1514
MOST_BANDS = 16
MOST_VQS = 16
PASS = "action ok"
"""The action for packets whose meter is left out, so that the meter of all others does not police them."""
SHAPER_S = 0.004
"""The burst of --shape: what comes in this time, at least one frame."""
EXPONENTS = (1, 15)
ECN = {
    False: "", True: " ecn harddrop", "mark-above-max": " ecn", "mark-only": " ecn nodrop",
    "mark-only-below-max": " ecn harddrop nodrop",
}  # fmt: skip
PLAIN = frozenset({"aqm", "scheduler", "limit", "law"})
LINUX: Table = {
    "mtu": "1.5kB", "hash": "stochastic", "batch": 64, "backlog": "port", "mark-below": 0.1, "k": 2.0,
    "order": "weighted-round-robin", "overload": "drop", "range": "400us", "rtt-max": "100ms",
    "shift": "50ms",
}  # fmt: skip
"""Defaults of perhop that need no word."""
WORDS: dict[str, dict[str, str]] = {
    "codel": {"target": "target", "interval": "interval"},
    "pie": {"target": "target", "update": "tupdate"},
    "fq-codel": {"target": "target", "interval": "interval", "quantum": "quantum", "flows": "flows",
                 "memory-limit": "memory_limit"},
    "dualpi2": {"target": "target", "update": "tupdate"},
}  # fmt: skip
"""The parameters of tc of blocks that it has with the same keys."""
TIMES = frozenset({"target", "interval", "update"})


def lines(link: Outgoing, remarks: Remarks) -> list[str]:
    """The commands, in the order in which they are to run."""
    return _Writer(link, remarks).lines()


class _Writer:
    def __init__(self, link: Outgoing, remarks: Remarks) -> None:
        self._link = link
        self._remarks = remarks
        self._device = re.sub(r"[^\w.@-]", "-", link.name)[:15] or "eth0"
        self._lines: list[str] = []
        self._virtual: list[tuple[int, int]] = []
        """Codepoints and the virtual queues of gred that they are of."""
        self._order = 0
        self._police: dict[int, str] = {}
        """Codepoints and the actions of their policers."""
        self._police_others = ""
        """The action for packets of all other codepoints."""

    def lines(self) -> list[str]:
        link = self._link
        if self._device != link.name:
            self._remarks.differs(link.place, f"{link.name!r} is device {self._device} there")
        self._meters()
        parent = self._shaper()
        match link.kind:
            case "htb":
                self._htb(parent)
            case _ if len(link.queues) == 1:
                self._leaf(link.queues[0], parent, "1:")
            case "priority":
                self._bands(parent, len(link.queues))
            case _ if any(queue.strict for queue in link.queues):
                self._bands(parent, sum(queue.strict for queue in link.queues))
            case _ if len({queue.rate is None for queue in link.queues}) > 1:
                self._mixed(parent)
            case _:
                self._drr(parent)
        self._egress()
        return self._lines

    # Meters

    def _meters(self) -> None:
        """A policer for each meter; filters of all its codepoints share it by its index."""
        link = self._link
        meters = [queue.meter for queue in link.queues if queue.meter is not None] + link.meters
        taken = outgoing.codepoints(meters)
        for queue in link.queues:
            if queue.strict and queue.policed_always and not queue.codepoints & taken:
                meters.insert(0, outgoing.MeterOut.of_strict(queue))
                text = "import reads the policer as a meter of the link"
                self._remarks.differs(f"{queue.place}.rate", text)
        passed = frozenset[int]()
        for index, meter in enumerate(meters, 1):
            action = self._policer(meter, index)
            others = outgoing.codepoints(one for one in meters if one is not meter)
            if action is None:
                passed |= meter.codepoints
                continue
            if index == len(meters) and meter.codepoints == ALL_CODEPOINTS - others:
                self._police_others = action
            else:
                self._police |= dict.fromkeys(sorted(meter.codepoints), action)
        if self._police_others:
            self._police |= dict.fromkeys(sorted(passed), PASS)

    def _policer(self, meter: outgoing.MeterOut, index: int) -> str | None:
        place = f"{meter.place}.profile"
        if meter.marker != "token-bucket" or meter.out == "mark":
            text = "tc polices by one token bucket and drops what exceeds: it cannot mark"
            self._remarks.left_out(place, f"{text}, or have two buckets")
            return None
        bps = self._rate(place, "rate", meter.rate)
        burst = self._bytes(place, "burst", meter.burst)
        return f"action police rate {bps} burst {burst} conform-exceed drop index {index}"

    def _egress(self) -> None:
        """Filters before the qdisc: policers, and the virtual queues of gred."""
        virtual = dict(self._virtual)
        if not virtual and not self._police and not self._police_others:
            return
        self._add("qdisc", "clsact")
        made: set[str] = set()

        def acting(action: str) -> str:
            """The action; in full for the first filter that has it."""
            if action in {"", PASS} or action not in made:
                made.add(action)
                return action
            return f"action police index {action.rpartition(' ')[2]}"

        for code in sorted({*virtual, *self._police}):
            action = self._police.get(code, self._police_others)
            target = f"classid :{virtual[code]:x}" if code in virtual else ""
            self._filter("egress", code, target, lambda action=action: acting(action))  # type: ignore[misc]
        if self._police_others:
            self._order += 1
            words = f"protocol all prio {self._order} matchall {acting(self._police_others)}"
            self._add("filter", f"egress {words}")

    def _add(self, what: str, words: str, verb: str = "add") -> None:
        self._lines.append(f"tc {what} {verb} dev {self._device} {words}")

    def _shaper(self) -> str:
        """Write the shaper; returns the parent of the queues: the root, or a token bucket."""
        link = self._link
        place = f"{link.place}.queue"
        if link.shaper is not None:
            bps, burst = link.shaper
            if link.shape:
                self._remarks.differs(f"{place}.rate", "--shape has no effect: the link has a shaper")
        elif link.shape:
            bps, burst = link.rate, max(link.rate / 8 * SHAPER_S, MTU)
        else:
            text = "nothing in these lines limits the rate; for a faster device give --shape"
            self._remarks.differs(f"{link.place}.rate", text)
            return "root"
        written = self._bytes(place, "burst", burst)
        words = f"rate {self._rate(place, 'rate', bps)} burst {written} limit {max(written, 10 * MTU)}"
        self._add("qdisc", f"root handle {SHAPER} tbf {words}")
        return f"parent {SHAPER}1"

    # Numbers

    def _rate(self, place: str, key: str, bps: float) -> str:
        whole = max(8, 8 * math.floor(bps / 8 + 0.5))  # the kernel has bytes a second
        self._remarks.rounded(place, f"{key} {units.plain(bps)} bit/s", bps, whole, f"{whole} bit/s")
        for factor, unit in ((10**9, "gbit"), (10**6, "mbit"), (10**3, "kbit")):
            if whole % factor == 0:
                return f"{whole // factor}{unit}"
        return f"{whole}bit"

    def _bytes(self, place: str, key: str, value: float) -> int:
        return self._remarks.bytes(place, key, value, RANGES["size"])

    def _depth(self, place: str, key: str, value: Depth, packet: float) -> int:
        if not value.packets:
            return self._bytes(place, key, value.number)
        text = f"{key} {units.packets_text(value.number)}: bytes there, of packets of {packet:g} B"
        self._remarks.differs(place, text)
        return self._bytes(place, key, value.number * packet)

    # Classes

    def _htb(self, parent: str) -> None:
        link = self._link
        names = [table["name"] for table in _classes(link.scheduler["classes"])]
        handles = all(re.fullmatch(r"1:(?!0+$)[0-9a-f]{1,4}", name) for name in names)
        kept = len(set(names)) == len(names) and handles
        minor = {name: name if kept else f"1:{number:x}" for number, name in enumerate(names, 1)}
        rest = next((queue.name for queue in link.queues if queue.rest), link.queues[-1].name)
        words = f"default {minor[rest].removeprefix('1:')}"
        if "r2q" in link.scheduler:
            words += f" r2q {link.scheduler['r2q']}"
        self._add("qdisc", f"{parent} handle {HANDLE} htb {words}")
        leaves = {queue.name: queue for queue in link.queues}
        self._tree(link.scheduler["classes"], HANDLE, f"{link.path}.classes", minor)
        for number, (name, queue) in enumerate(leaves.items(), 0x10):
            self._renamed(queue, minor[name])
            self._leaf(queue, f"parent {minor[name]}", f"{number:x}:")
        for name, queue in leaves.items():
            if name != rest:
                self._filters(queue.codepoints, minor[name])

    def _tree(self, tables: list[Table], parent: str, path: str, minor: dict[str, str]) -> None:
        for number, table in enumerate(tables):
            place = f"{path}[{number}]"
            words = [f"parent {parent} classid {minor[table['name']]} htb"]
            for key in ("rate", "ceil", "burst", "cburst", "quantum"):
                if key in ("rate", "ceil") and key in table:
                    words.append(f"{key} {self._rate(place, key, outgoing.rate(table[key]))}")
                elif key in table:
                    words.append(f"{key} {self._bytes(place, key, outgoing.size(table[key]))}")
            inner = table.get("classes") or []
            if "prio" in table and not inner:
                words.append(f"prio {table['prio']}")
            self._add("class", " ".join(words))
            self._tree(inner, minor[table["name"]], f"{place}.classes", minor)

    def _mixed(self, parent: str) -> None:
        """Guaranteed rates beside weights: a tree of one level, whose classes borrow from each other."""
        link = self._link
        queues, place = link.queues, f"{link.place}.queue"
        text = "rates beside weights are a tree (htb): a weight is a rate there"
        self._remarks.differs(place, f"{text}, its share of what rates leave")
        total = link.rate if link.shaper is None else link.shaper[0]
        left = max(total - sum(queue.rate or 0.0 for queue in queues), 8.0)
        weights = sum(queue.weight or 1.0 for queue in queues if queue.rate is None)
        self._add("qdisc", f"{parent} handle {HANDLE} htb default {len(queues) + 1:x}")
        whole = self._rate(place, "rate", total)
        self._add("class", f"parent {HANDLE} classid 1:1 htb rate {whole}")
        for number, queue in enumerate(queues, 2):
            name = f"1:{number:x}"
            self._renamed(queue, name)
            own = left * (queue.weight or 1.0) / weights if queue.rate is None else queue.rate
            words = f"rate {self._rate(queue.place, 'share', own)} ceil {whole}"
            self._add("class", f"parent 1:1 classid {name} htb {words}")
            self._leaf(queue, f"parent {name}", f"{0x10 + number:x}:")
        for number, queue in enumerate(queues[:-1], 2):
            self._filters(queue.codepoints, f"1:{number:x}")

    def _renamed(self, queue: QueueOut, name: str) -> None:
        if queue.name != name:
            self._remarks.differs(queue.place, f"{queue.name!r} is {name} there")

    def _bands(self, parent: str, strict: int) -> None:
        """Strict priority, alone (prio) or before queues that share (ets)."""
        queues = self._link.queues
        bands = len(queues)
        if bands > MOST_BANDS:
            self._remarks.left_out(self._link.place, f"tc has {MOST_BANDS} bands, not {bands}")
        for queue in queues:
            if queue.cap is not None and not queue.policed_always:
                text = "prio and ets cannot limit a band: its cap or policer is not written"
                self._remarks.left_out(f"{queue.place}.{'rate' if queue.strict else 'cap'}", text)
        last = " ".join([str(bands - 1)] * 16)
        if strict == bands:
            words = f"prio bands {bands} priomap {last}"
        else:
            quanta = " ".join(str(value) for value in self._quanta(queues[strict:]))
            words = f"ets bands {bands} strict {strict} quanta {quanta} priomap {last}"
        self._add("qdisc", f"{parent} handle {HANDLE} {words}")
        for number, queue in enumerate(queues, 1):
            self._renamed(queue, f"1:{number:x}")
            self._leaf(queue, f"parent 1:{number:x}", f"{0x10 + number:x}:")
        for number, queue in enumerate(queues[:-1], 1):
            self._filters(queue.codepoints, f"1:{number:x}")

    def _drr(self, parent: str) -> None:
        queues = self._link.queues
        self._add("qdisc", f"{parent} handle {HANDLE} drr")
        for number, (queue, quantum) in enumerate(zip(queues, self._quanta(queues), strict=True), 1):
            name = f"1:{number:x}"
            self._renamed(queue, name)
            self._add("class", f"parent {HANDLE} classid {name} drr quantum {quantum}")
            self._leaf(queue, f"parent {name}", f"{0x10 + number:x}:")
        for number, queue in enumerate(queues[:-1], 1):
            self._filters(queue.codepoints, f"1:{number:x}")
        self._order += 1
        words = f"protocol all prio {self._order} matchall flowid 1:{len(queues):x}"
        self._add("filter", f"parent {HANDLE} {words}")

    def _quanta(self, queues: list[QueueOut]) -> list[int]:
        """Quanta in the ratio of weights or of guaranteed rates; the least one is a frame."""
        link = self._link
        place = queues[0].place.rpartition("[")[0]
        if link.kind == "wfq":
            self._remarks.differs(place, "tc has no wfq: deficit round robin with the same ratio is written")
        rates = [queue.rate for queue in queues if queue.rate is not None]
        if rates and (len(rates) < len(queues) or any(queue.weight is not None for queue in queues)):
            text = "guaranteed rates beside weights cannot be written as quanta; give all queues one of them"
            self._remarks.left_out(place, text)
            shares = [1.0] * len(queues)
        else:
            shares = [queue.rate or queue.weight or 1.0 for queue in queues]
        least = min(shares)
        result = []
        for queue, share in zip(queues, shares, strict=True):
            exact = MTU * share / least
            given = f"quantum {units.plain(exact, 3)} B"
            result.append(self._remarks.fitted(queue.place, given, exact, RANGES["quantum"], "B"))
        return result

    # Filters

    def _filters(self, codes: Iterable[int], target: str) -> None:
        for code in sorted(codes):
            self._filter(f"parent {HANDLE}", code, f"flowid {target}")

    def _filter(self, where: str, code: int, target: str, action: Callable[[], str] = str) -> None:
        for protocol, field in (("ip", "ip dsfield"), ("ipv6", "ip6 priority")):
            prio = 1 if protocol == "ip" else 2
            self._order = max(self._order, prio)
            words = f"protocol {protocol} prio {prio} u32 match {field} 0x{code << 2:02x} 0xfc"
            self._add("filter", " ".join(filter(None, (where, words, target, action()))))

    # Queues

    def _leaf(self, queue: QueueOut, parent: str, handle: str) -> None:
        rule, place = queue.rule, queue.rule_place
        kind = rule.get("aqm") or rule.get("scheduler")
        limit = None if "limit" not in rule else outgoing.depth(rule["limit"])
        head = f"{parent} handle {handle}"
        if kind == "drop-tail":
            if limit is not None:
                words = "pfifo" if limit.packets else "bfifo"
                unit = "packets" if limit.packets else "B"
                given = f"limit {limit.number:g} {unit}"
                number = self._remarks.fitted(f"{place}.limit", given, limit.number, RANGES["size"], unit)
                self._add("qdisc", f"{head} {words} limit {number}")
        elif kind in WORDS:
            self._block(rule, place, str(kind), limit, head)
        elif kind == "red" and "thresholds" in rule:
            words = self._ramp(place, rule, rule["thresholds"], limit, queue)
            if not words:
                return
            words += " adaptive" if rule.get("adaptive") else ""
            self._add("qdisc", f"{head} red {words}{ECN[rule.get('ecn', False)]}")
        elif kind == "rio":
            self._rio(queue, rule, limit, head, parent)
        elif kind == "wred":
            self._gred(queue, rule, limit, head, parent)
        else:
            self._remarks.left_out(place, f"tc cannot express {kind} as it is here")

    def _block(self, rule: Table, place: str, kind: str, limit: Depth | None, head: str) -> None:
        words = [kind.replace("-", "_")]
        if limit is None:
            if rule.get("law") != "linux":
                self._remarks.differs(f"{place}.limit", f"not given: {words[0]} has its own default")
        else:
            if not limit.packets:
                self._remarks.left_out(f"{place}.limit", f"{words[0]} has its limit in packets")
            given = f"limit {units.packets_text(limit.number)}"
            whole = self._remarks.fitted(f"{place}.limit", given, limit.number, RANGES["size"], "packets")
            words.append(f"limit {whole}")
        known = WORDS[kind]
        for key, value in rule.items():
            if key in known:
                shown = value
                if key in TIMES:
                    shown = f"{max(1, math.floor(outgoing.nanoseconds(value) / 1000 + 0.5))}us"
                if key in {"quantum", "memory-limit"}:
                    shown = self._bytes(place, key, outgoing.size(value))
                words.append(f"{known[key]} {shown}")
        ecn = rule.get("ecn", False)
        if kind == "fq-codel":
            words.append("ecn" if ecn else "noecn")
        elif kind != "dualpi2" and ecn:
            words.append("ecn")
        others = sorted(set(rule) - set(known) - PLAIN - {"ecn", "mean-packet"})
        for key in (key for key in others if rule[key] != LINUX.get(key)):
            self._remarks.differs(f"{place}.{key}", f"not written: {words[0]} has its own default")
        if rule.get("law", "linux") != "linux":
            self._remarks.differs(f"{place}.law", f'Linux has its own {kind}: import reads `law = "linux"`')
        self._add("qdisc", f"{head} {' '.join(words)}")

    def _ramp(self, place: str, rule: Table, text: str, limit: Depth | None, queue: QueueOut) -> str:
        """The parameters of red, or of a virtual queue of gred."""
        spaced = "Linux lets 1 to 1/p packets pass between drops"
        outgoing.red_keys({**rule, "adaptive": False}, place, self._remarks, "tc", spaced)
        outgoing.by_size(rule, place, self._remarks, "Linux")
        if text.startswith(("interpolate", "segmented")):
            self._remarks.left_out(place, "tc has one segment, from min to max, and cannot express more")
            return ""
        curve = outgoing.thresholds(text)
        packet = max(1, math.floor(outgoing.size(rule.get("mean-packet", "1kB")) + 0.5))
        low = self._depth(place, "min", curve.low, packet)
        high = self._depth(place, "max", curve.high, packet)
        whole = self._depth(place, "limit", limit, packet) if limit is not None else 2 * high
        if limit is None:
            self._remarks.differs(place, "no limit: tc needs one, twice max is written")
        weight = float(rule["weight"])
        least, most = EXPONENTS
        wanted = min(max(math.floor(-math.log2(weight) + 0.5), least), most)
        order = sorted(range(least, most + 1), key=lambda n: abs(n - wanted))
        bursts = ((n, linux.bursts(low, packet, n, 65536)) for n in order)
        exponent, burst = next(((n, found[0]) for n, found in bursts if found is not None), (wanted, 0))
        if burst == 0:
            text = f"min of {low} B is too many packets of {packet} B for an average of tc"
            self._remarks.left_out(place, text)
            return ""
        said = f"2^-{exponent} = {2.0**-exponent:.4g}"
        self._remarks.rounded(f"{place}.weight", f"{weight:g}", weight, 2.0**-exponent, said)
        bandwidth = self._rate(place, "idle rate", queue.rate or self._link.rate)
        words = f"limit {whole} min {low} max {high} avpkt {packet} burst {burst}"
        return f"{words} probability {units.plain(curve.most, 9)} bandwidth {bandwidth}"

    def _rio(self, queue: QueueOut, rule: Table, limit: Depth | None, head: str, parent: str) -> None:
        """RIO: a virtual queue of IN packets and one of OUT packets."""
        place = queue.rule_place
        coupled = rule.get("coupling", "coupled") == "coupled"
        if coupled:
            text = "the kernel adds the averages of IN and of OUT packets; here one is of all packets"
            self._remarks.differs(f"{place}.total", text)
        else:
            text = "gred without grio has it; import reads one average over all packets"
            self._remarks.differs(f"{place}.coupling", text)
        if rule.get("averages", "own-class") != "own-class":
            text = 'the kernel updates an average at arrivals of its own packets: `averages = "own-class"`'
            self._remarks.differs(f"{place}.averages", text)
        setup, change = self._gred_words(head, parent, 2)
        # A packet without a filter has tc_index 0: OUT, which is not within a contract.
        made = [self._ramp(f"{place}.{key}", rule, rule[key], limit, queue) for key in ("total", "in")]
        whole = re.search(r"limit (\d+)", made[0])
        size_of = f" limit {whole[1]}" if whole else ""
        grio = " grio" if coupled else ""
        self._add("qdisc", f"{setup} default 0{grio}{size_of}{self._gred_ecn(rule, place)}")
        for number, words in enumerate(made):
            self._add("qdisc", f"{change} vq {number} {words} prio {2 - number if coupled else 1}", "change")
        green = [code for code in sorted(queue.codepoints) if queue.color(code) == "green"]
        self._virtual += [(code, 1) for code in green]
        if not green or len(green) == len(queue.codepoints):
            which = "green" if green else "yellow or red"
            text = f"all codepoints of the queue are {which} in the scenario; give flows `dscp` and `color`"
            self._remarks.left_out(place, text)

    @staticmethod
    def _gred_words(head: str, parent: str, vqs: int) -> tuple[str, str]:
        """The beginning of the commands that set up gred and its virtual queues."""
        change = f"{parent} handle {head.rpartition(' ')[2]} gred"
        return f"{head} gred setup vqs {vqs}", change

    def _gred_ecn(self, rule: Table, place: str) -> str:
        modes = ECN[rule.get("ecn", False)]
        if "nodrop" in modes:
            self._remarks.left_out(f"{place}.ecn", f"gred cannot express {rule['ecn']}")
            return ""
        return modes

    def _gred(self, queue: QueueOut, rule: Table, limit: Depth | None, head: str, parent: str) -> None:
        """WRED: virtual queues with one priority have one average."""
        place = queue.rule_place
        outgoing.lost(queue, self._remarks)
        acting = {code: queue.curve(code, queue.color(code)) for code in sorted(queue.codepoints)}
        bare = [code for code, key in acting.items() if key is None]
        if bare:
            names = units.listed(bare[:3])
            self._remarks.left_out(place, f"no curve for {names}: every virtual queue of gred has one")
        keys = [key for key in dict.fromkeys(acting.values()) if key is not None]
        keys.sort(key=lambda key: (not key.isdecimal(), COLORS.index(key) if key in COLORS else int(key)))
        written = {key: words for key in keys if (words := self._virtual_queue(queue, key, limit))}
        listed = [written[key] for key in acting.values() if key in written]
        made = list(dict.fromkeys(written.values()))
        if not made:
            return
        if len(made) > MOST_VQS:
            text = f"gred has {MOST_VQS} virtual queues, not {len(made)}"
            self._remarks.left_out(f"{place}.profiles", text)
            made = made[:MOST_VQS]
        # A packet without a filter has tc_index 0: the virtual queue of most codepoints is number 0.
        most = max(made, key=listed.count)
        made.sort(key=lambda words: words != most)
        modes = self._gred_ecn(rule, place)
        if len(made) == 1:  # one curve for all packets
            self._add("qdisc", f"{head} red {made[0]}{ECN[rule.get('ecn', False)]}")
            return
        limits = [int(found[1]) for words in made if (found := re.search(r"limit (\d+)", words))]
        setup, change = self._gred_words(head, parent, len(made))
        self._add("qdisc", f"{setup} default 0 grio limit {max(limits)}{modes}")
        for number, words in enumerate(made):
            self._add("qdisc", f"{change} vq {number} {words} prio 1", "change")
        for code, key in acting.items():
            words = written.get(key or "", "")
            if words in made and (number := made.index(words)):
                self._virtual.append((code, number))

    def _virtual_queue(self, queue: QueueOut, key: str, limit: Depth | None) -> str:
        """The parameters of the virtual queue of a color, or of a profile by its number."""
        rule, place = queue.rule, queue.rule_place
        if not key.isdecimal():
            return self._ramp(f"{place}.{key}", rule, rule[key], limit, queue)
        where = f"{place}.profiles[{key}]"
        profile = rule["profiles"][int(key)]
        if "limit" in profile and profile["limit"] != rule.get("limit"):
            text = "a virtual queue counts its own packets against its limit; here it is of the whole queue"
            self._remarks.differs(f"{where}.limit", text)
            limit = outgoing.depth(profile["limit"])
        if profile.get("ecn", rule.get("ecn", False)) != rule.get("ecn", False):
            self._remarks.left_out(f"{where}.ecn", "ECN is written for all virtual queues, or for none")
        return self._ramp(f"{where}.curve", rule, profile["curve"], limit, queue)


def _classes(tables: list[Table]) -> Iterable[Table]:
    for table in tables:
        yield table
        yield from _classes(table.get("classes") or [])
