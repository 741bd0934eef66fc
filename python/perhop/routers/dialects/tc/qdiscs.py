"""The qdiscs of Linux that hold packets: red, gred, and those that perhop has as blocks."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from perhop.routers import units
from perhop.routers.linux import cake
from perhop.routers.linux import quantities as tc_units
from perhop.routers.model import (
    ECN_VALUES,
    Average,
    Block,
    Curve,
    Drop,
    Ecn,
    How,
    Quantity,
    Queue,
    Rate,
    RateUnit,
    Selector,
    Unit,
)
from perhop.routers.units import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perhop.routers.dialects.tc.commands import Command
    from perhop.routers.source import Account

FAIR_LIMITS = {"sfq": 127, "fq": 10000, "hhf": 1000}
"""Packets (Linux, net/sched/sch_sfq.c, sch_fq.c, sch_hhf.c); sfb has the length of its device."""
CAKE_TINS = ("diffserv3", "diffserv4", "diffserv8", "precedence", "besteffort")
"""The first one is the default."""
CAKE_FLOWS = (
    "triple-isolate", "flowblind", "srchost", "dsthost", "hosts", "flows", "dual-srchost", "dual-dsthost",
)  # fmt: skip
CAKE_FLAGS = (
    "nat", "nonat", "wash", "nowash", "split-gso", "no-split-gso", "ack-filter", "ack-filter-aggressive",
    "no-ack-filter", "ingress", "egress",
)  # fmt: skip
CAKE_FRAMES = (
    "conservative", "atm", "ptm", "pppoa-vcmux", "pppoa-llc", "pppoe-vcmux", "pppoe-llcsnap", "bridged-vcmux",
    "bridged-llcsnap", "ipoa-vcmux", "ipoa-llcsnap", "pppoe-ptm", "bridged-ptm", "via-ethernet", "ethernet",
    "ether-vlan", "docsis",
)  # fmt: skip
MOST_VQS = 16
MOST_FLOWS = 65536
MODERN_LIMITS = {"codel": 1000, "fq_codel": 10240, "pie": 1000, "fq_pie": 10240, "dualpi2": 10000}
MODERN_TIMES = {
    "codel": {"target": "target", "interval": "interval"},
    "fq_codel": {"target": "target", "interval": "interval"},
    "pie": {"target": "target", "tupdate": "update"},
    "fq_pie": {"target": "target", "tupdate": "update"},
    "dualpi2": {"target": "target", "tupdate": "interval", "step_thresh": "step"},
}
"""The times of each qdisc, by their keys in a scenario."""
RED_PROBABILITY = 0.02
PFIFO = 1000
FRAME = 1514.0
"""Bytes of a packet in bfifo's default limit: an MTU with its Ethernet header."""
DIGITS = frozenset("0123456789.")
SLOW_AVERAGE = 10
"""tc itself warns from this exponent on."""


@dataclass(frozen=True, slots=True)
class VirtualQueue:
    """What a virtual queue of gred is configured to."""

    curve: Curve
    limit: Quantity | None
    prio: float
    average: Average | None
    ecn: Ecn


class Options:
    """The parameters of a command as words; what is not asked for is reported by `close`."""

    def __init__(self, command: Command, account: Account) -> None:
        """Of a command."""
        self._command = command
        self._account = account
        self._words = list(command.words)
        command.read = True

    def _value(self, *names: str) -> tuple[str, str] | None:
        for name in names:
            if name in self._words and self._words.index(name) + 1 < len(self._words):
                at = self._words.index(name)
                value = self._words[at + 1]
                del self._words[at : at + 2]
                return name, value
        return None

    def flag(self, name: str) -> bool:
        """Whether a word is there."""
        if name in self._words:
            self._words.remove(name)
            return True
        return False

    def text(self, name: str) -> str | None:
        """A value as text."""
        found = self._value(name)
        return None if found is None else found[1]

    def _bad(self, name: str, value: str) -> None:
        text = f"{self._command.kind}: `{name} {value}` is no value that tc takes; left out"
        self._account.miss_part(self._command.line, text)

    def number(self, name: str) -> float | None:
        """A plain number."""
        found = self._value(name)
        if found is None:
            return None
        value = units.number(found[1])
        if value is None:
            self._bad(*found)
        return value

    def rate(self, *names: str) -> Rate | None:
        """A rate; of `tc -j` in bytes a second."""
        found = self._value(*names)
        if found is None:
            return None
        percent = units.number(found[1].removesuffix("%")) if found[1].endswith("%") else None
        if percent:
            return Rate(percent, RateUnit.PERCENT, self._command.line, text=" ".join(found))
        bare = self._command.json and units.number(found[1]) is not None
        bps = float(found[1]) * 8 if bare else tc_units.rate(found[1])
        if not bps:
            self._bad(*found)
            return None
        return Rate(bps, RateUnit.BPS, self._command.line, text=" ".join(found))

    def size(self, *names: str) -> Quantity | None:
        """A size in bytes."""
        found = self._value(*names)
        if found is None:
            return None
        value = tc_units.size(found[1].partition("/")[0])
        if not value:
            self._bad(*found)
            return None
        return Quantity(value, Unit.BYTES, self._command.line, text=" ".join(found))

    def packets(self, *names: str) -> Quantity | None:
        """A number of packets, perhaps with `p`."""
        found = self._value(*names)
        if found is None:
            return None
        value = units.whole(found[1].removesuffix("p"))
        if not value:
            self._bad(*found)
            return None
        return Quantity(value, Unit.PACKETS, self._command.line, text=" ".join(found))

    def time(self, *names: str) -> Quantity | None:
        """A time in seconds."""
        found = self._value(*names)
        if found is None:
            return None
        value = tc_units.time(found[1])
        if not value:
            self._bad(*found)
            return None
        return Quantity(value, Unit.SECONDS, self._command.line, text=" ".join(found))

    def sizes(self, *names: str) -> None:
        """What counts headers beside the packet: packets have their IP size here."""
        for name in names:
            value = self.text(name)
            if value is not None and value not in {"0", "0b", "ethernet"}:
                text = f"{self._command.kind}: `{name} {value}`: packets have their IP size here"
                self._account.find("W18", self._command.line, text)

    def series(self, name: str) -> list[str]:
        """The values after a word; `tc -j` names those behind the first one."""
        if name not in self._words:
            return []
        at = self._words.index(name)
        end = at + 1
        labels = {"jitter", "correlation"} if self._command.json else {"random"}
        while end < len(self._words) and (self._words[end] in labels or self._words[end][:1] in DIGITS):
            end += 1
        found = [word for word in self._words[at + 1 : end] if word not in labels]
        if found:  # else a model of losses with states: `close` reports it
            del self._words[at:end]
        return found

    def chance(self, name: str) -> tuple[float, str] | None:
        """A probability of netem, each packet for itself, and its text."""
        found = self.series(name)
        value = tc_units.probability(found[0]) if found else None
        if not found or value is None or len(found) > 2:
            if found:
                self._bad(name, " ".join(found))
            return None
        self.uncorrelated(name, found[1:])
        return value, f"{name} {found[0]}"

    def uncorrelated(self, name: str, found: list[str]) -> None:
        """The correlation of a value with that of the packet before."""
        if any(tc_units.probability(word) for word in found):
            text = f"netem: `{name}`: its correlation `{found[0]}` is not simulated; packets are independent"
            self._account.find("W06", self._command.line, text)

    def delay(self) -> list[float]:
        """The delay of netem and its jitter in seconds, as far as they are there."""
        found = self.series("delay") or self.series("latency")
        values = [units.number(word) if self._command.json else tc_units.time(word) for word in found[:2]]
        self.uncorrelated("delay", found[2:])
        times = [value for value in values if value is not None]
        if len(times) < len(values) or len(found) > 3:
            self._bad("delay", " ".join(found))
            return []
        return times

    def list(self, name: str) -> list[int]:
        """Whole numbers after a word."""
        if name not in self._words:
            return []
        at = self._words.index(name)
        end = at + 1
        while end < len(self._words) and re.fullmatch("[0-9]{1,9}", self._words[end]):
            end += 1
        values = [int(word) for word in self._words[at + 1 : end]]
        del self._words[at:end]
        return values

    def skip(self, *names: str) -> None:
        """Values without effect on what is simulated."""
        for name in names:
            while (found := self._value(name)) is not None:
                text = f"{self._command.kind}: `{' '.join(found)}` has no effect here"
                self._account.find("W13", self._command.line, text)

    def rest(self) -> str:
        """The words that nobody asked for."""
        words, self._words = self._words, []
        return " ".join(words)

    def close(self) -> None:
        """Report the words that nobody asked for."""
        if self._words:
            text = f"{self._command.kind}: not understood: `{' '.join(self._words)}`"
            self._account.miss_part(self._command.line, text)


class Leaves:
    """Makes queues of qdiscs that hold packets."""

    def __init__(self, account: Account, lengths: Sequence[Command] = ()) -> None:
        """Findings go to the account; the commands set the length of queues that say none."""
        self._account = account
        self._lengths: list[tuple[Command, float]] = []
        self._used: set[int] = set()
        """The lines of lengths that a queue has."""
        for command in lengths:
            number = Options(command, account).packets(command.words[0])
            if number is not None:
                self._lengths.append((command, number.number))

    def length(self, command: Command, each: float | None = None) -> Quantity:
        """The limit of a queue that says none: as its device has it when it is made, later of pfifo_fast.

        `each`: bytes of a packet, of a queue that counts bytes.
        """
        before = [one for one in self._lengths if one[0].line < command.line or command.kind == "pfifo_fast"]
        number, line, how = float(PFIFO), 0, How.DEFAULT
        if before:
            number, line, how = before[-1][1], before[-1][0].line, How.CONFIGURED
            self._used.add(line)
        text = f"txqueuelen {number:g}"
        unit = Unit.PACKETS if each is None else Unit.BYTES
        return Quantity(number * (each or 1), unit, line, how, text=text)

    def close(self) -> None:
        """Report the lengths that no queue has."""
        for command, number in self._lengths:
            if command.line not in self._used:
                text = f"`txqueuelen {number:g}`: no queue that is made after it takes its limit from it"
                self._account.find("W13", command.line, text)

    def queue(
        self,
        name: str,
        command: Command,
        qdiscs: list[Command],
        virtual: dict[int, frozenset[int]],
        *,
        plain: bool = False,
    ) -> Queue:
        """The queue of a leaf. `plain`: a class without a qdisc, which has a FIFO."""
        queue = Queue(name, command.line, spacing_known=True)
        kind = "pfifo" if plain or command.object == "class" else command.kind
        if plain or command.object == "class":
            queue.limit = self.length(command)
            if queue.limit.how is How.DEFAULT:
                text = f"{name}: no qdisc; a FIFO of 1000 packets (txqueuelen)"
                self._account.find("W04", command.line, text)
            return queue
        match kind:
            case "red":
                self._red(queue, command)
            case "gred":
                changes = [q for q in qdiscs if q.kind == "gred" and q.verb == "change" and q is not command]
                changes = [q for q in changes if q.parent == command.parent]
                self._gred(queue, command, changes, virtual)
            case "codel" | "fq_codel" | "pie" | "dualpi2":
                self._modern(queue, command)
            case "pfifo" | "bfifo" | "pfifo_head_drop":
                self._fifo(queue, command)
            case "cake":
                self._cake(queue, command)
            case "choke":
                self._choke(queue, command)
            case "fq_pie":
                text = "fq_pie: fairness among its flows is not simulated; PIE in its place"
                self._account.find("W06", command.line, text)
                self._modern(queue, command)
            case "sfq" | "fq" | "sfb" | "hhf":
                self._fair(queue, command)
            case _:
                words = " ".join(command.words)
                text = f"qdisc `{kind} {words}`".rstrip() + " is not simulated; a FIFO in its place"
                self._account.find("W06", command.line, text)
                queue.limit = Options(command, self._account).packets("limit")
        return queue

    def shaper(self, command: Command) -> Rate | None:
        """The rate of a qdisc's own shaper, which only cake has among those that hold packets."""
        words = command.words
        if command.kind != "cake" or "bandwidth" not in words[:-1]:
            return None
        value = words[words.index("bandwidth") + 1]
        if value in {"unlimited", "0"}:
            return None
        rate = Options(command, self._account).rate("bandwidth")
        if rate is not None and "autorate-ingress" in words:
            text = f"cake: `autorate-ingress`: its rate is {units.shown_rate(rate.number)} all the time here"
            self._account.find("W06", command.line, text)
        return rate

    def _fair(self, queue: Queue, command: Command) -> None:
        """Fair queueing as a FIFO with its limit."""
        options = Options(command, self._account)
        queue.limit = options.packets("limit")
        default = FAIR_LIMITS.get(command.kind)
        if queue.limit is None:
            text = f"{default} packets, Linux's {command.kind}"
            own = default and Quantity(default, Unit.PACKETS, 0, How.DEFAULT, text=text)
            queue.limit = own or self.length(command)
        lost = "fairness among its flows"
        if command.kind == "sfb":
            lost = "its dropping of packets of the flows that fill the queue (an AQM, Stochastic Fair Blue)"
        text = f"{command.kind}: {lost} is not simulated; a FIFO in its place"
        rest = options.rest()
        text += f", without `{rest}`" if rest else ""
        self._account.find("W06", command.line, text)

    def _choke(self, queue: Queue, command: Command) -> None:
        """CHOKe as RED of packets (iproute2, tc/q_choke.c)."""
        options = Options(command, self._account)
        given = {name: options.packets(name) for name in ("limit", "min", "max", "burst")}
        line, limit = command.line, given["limit"]
        text = "choke: its comparison of an arriving packet with another one is not simulated; RED here"
        self._account.find("W06", line, text)
        avpkt, each = options.size("avpkt"), 1000.0
        if avpkt is not None:
            each = avpkt.number
        text = f"avpkt {each:g}"
        queue.mean_packet = Quantity(each, Unit.BYTES, line, text=text)
        options.skip("bandwidth")
        chance = options.text("probability")
        most = RED_PROBABILITY if chance is None else tc_units.probability(chance)
        queue.limit = limit
        if limit is None or most is None:
            self._account.find("W13", line, "choke without a limit or with a wrong probability; no curve")
            return
        high = given["max"] or Quantity(limit.number // 4, Unit.PACKETS, line, How.DEFAULT, text="limit / 4")
        low = given["min"] or Quantity(high.number // 3, Unit.PACKETS, line, How.DEFAULT, text="max / 3")
        count = given["burst"].number if given["burst"] else (2 * low.number + high.number) // 3
        exponent = tc_units.wlog(low.number * each, int(min(count, 100_000)), each)
        if exponent is not None:
            said = f"Wlog {exponent}, from burst {count:.0f}"
            queue.average = Average(2.0**-exponent, line, How.CONFIGURED, said)
        if low.number > high.number:
            self._account.find("W16", line, f"choke: `{low.text}` is above `{high.text}`; no curve")
        else:
            queue.curves = [Drop(Selector("all"), Curve.ramp(low, high, most, line))]
        if options.flag("ecn"):
            queue.ecn, queue.ecn_line = Ecn.BELOW_MAX, line
        options.close()

    def _cake(self, queue: Queue, command: Command) -> None:
        options = Options(command, self._account)
        options.text("bandwidth")
        options.flag("autorate-ingress")
        line = command.line
        scheme = next((name for name in cake.SCHEMES if options.flag(name)), "internet")
        rtt = options.time("rtt")
        memory = options.size("memlimit")
        tins = next((name for name in CAKE_TINS if options.flag(name)), CAKE_TINS[0])
        flows = next((name for name in CAKE_FLOWS if options.flag(name)), CAKE_FLOWS[0])
        text = f"cake: {cake.LOST}: `{tins}` and `{flows}` have no effect here"
        self._account.find("W06", line, text)
        self._sizes(options, command)
        for name in CAKE_FLAGS:
            if options.flag(name) and not name.startswith(("no", "egress", "split-gso")):
                self._account.find("W13", line, f"cake: `{name}` is not simulated")
        options.skip("fwmark")
        options.close()
        seconds = cake.SCHEMES[scheme] if rtt is None else rtt.number
        queue.block = cake.block(seconds, self.shaper(command), line, line, memory)

    def _sizes(self, options: Options, command: Command) -> None:
        """The frame of the link that cake counts beside the packet."""
        frames = [name for name in CAKE_FRAMES if options.flag(name)]
        options.flag("raw")
        options.flag("noatm")
        if frames:
            text = f"cake: `{' '.join(frames)}`: packets have their IP size here"
            self._account.find("W18", command.line, text)
        options.sizes("overhead", "mpu")

    def _fifo(self, queue: Queue, command: Command) -> None:
        options = Options(command, self._account)
        queue.limit = options.size("limit") if command.kind == "bfifo" else options.packets("limit")
        queue.head_drop = command.kind == "pfifo_head_drop"
        if queue.limit is None and command.kind != "bfifo":
            queue.limit = self.length(command)
            if queue.limit.how is How.DEFAULT:
                text = f"{queue.name}: limit not configured; txqueuelen, 1000 packets"
                self._account.find("W04", command.line, text)
        elif queue.limit is None and (found := self.length(command, FRAME)).how is How.CONFIGURED:
            queue.limit = found
        options.close()

    def _red(self, queue: Queue, command: Command) -> None:
        options = Options(command, self._account)
        low, high, limit = options.size("min"), options.size("max"), options.size("limit")
        if limit is None:
            self._account.find("W04", command.line, "red without a limit, which tc refuses")
        if high is None and (low is not None or limit is not None):
            number = 3 * low.number if low is not None else limit.number / 4 if limit is not None else 0.0
            high = Quantity(number, Unit.BYTES, command.line, How.DEFAULT, text="max = 3 min, or limit / 4")
        if low is None and high is not None:
            number = float(int(high.number / 3))
            low = Quantity(number, Unit.BYTES, command.line, How.DEFAULT, text="min = max / 3")
        queue.limit = limit
        curve = self._parameters(queue, command, options, low, high)
        if curve is not None:
            queue.curves = [Drop(Selector("all"), curve)]
        queue.ecn = self._ecn(queue, options, command)
        queue.adaptive = options.flag("adaptive") or options.flag("adaptative")
        options.skip("Scell_log")
        options.close()

    def _ecn(self, queue: Queue, options: Options, command: Command) -> Ecn:
        ecn, hard, nodrop = options.flag("ecn"), options.flag("harddrop"), options.flag("nodrop")
        queue.ecn_line = command.line
        if not ecn:
            for name in [name for name, given in (("harddrop", hard), ("nodrop", nodrop)) if given]:
                text = f"{queue.name}: `{name}` has no effect without `ecn`"
                self._account.find("W17", command.line, text)
            return Ecn.OFF
        if nodrop:
            return Ecn.ONLY_BELOW_MAX if hard else Ecn.ONLY
        return Ecn.BELOW_MAX if hard else Ecn.ALWAYS

    def _parameters(
        self, queue: Queue, command: Command, options: Options, low: Quantity | None, high: Quantity | None
    ) -> Curve | None:
        """The curve and the average of red, or of a virtual queue of gred."""
        avpkt, burst = options.size("avpkt"), options.number("burst")
        ewma, bandwidth = options.number("ewma"), options.rate("bandwidth")
        given = options.text("probability")
        most = RED_PROBABILITY if given is None else tc_units.probability(given)
        if given is None:
            text = f"{queue.name}: probability not configured; {RED_PROBABILITY} is tc's default"
            self._account.find("W04", command.line, text)
        if most is None or low is None or high is None or low.number > high.number:
            self._account.find(
                "W13", command.line, f"{queue.name}: min, max or probability is missing or wrong"
            )
            return None
        if bandwidth is None and ewma is None:
            text = f"{queue.name}: no `bandwidth`: idle time is at 10 Mbit/s; here at the queue's rate"
            self._account.find("W02", command.line, text)
        if bandwidth is not None:
            text = f"{queue.name}: `{bandwidth.text}`: idle time is at that rate; here at the queue's rate"
            self._account.find("W02", command.line, text)
        if avpkt is not None:
            queue.mean_packet = avpkt
        self._wlog(queue, command, low, high, avpkt, burst, ewma)
        how = How.CONFIGURED if given is not None else How.DEFAULT
        return Curve.ramp(low, high, most, command.line, how)

    def _wlog(
        self,
        queue: Queue,
        command: Command,
        low: Quantity,
        high: Quantity,
        avpkt: Quantity | None,
        burst: float | None,
        ewma: float | None,
    ) -> None:
        line = command.line
        if ewma is not None:
            queue.average = Average(
                2.0 ** -min(ewma, 31), line, How.CONFIGURED, f"Wlog {ewma:.0f}, from ewma"
            )
            return
        if avpkt is None:
            text = (
                f"{queue.name}: no `avpkt`, so the averaging weight is not known (tc -j -d shows it as ewma)"
            )
            self._account.find("W02", line, text)
            return
        count = int(burst) if burst is not None else int((2 * low.number + high.number) / (3 * avpkt.number))
        exponent = tc_units.wlog(low.number, min(count, 100_000), avpkt.number)
        if exponent is None:
            text = (
                f"{queue.name}: burst {count} is too small for min {low.number:.0f}: tc refuses the command"
            )
            self._account.find("W17", line, text)
            return
        how = How.CONFIGURED if burst is not None else How.DEFAULT
        said = f"Wlog {exponent}, from burst {count} and avpkt {avpkt.number:.0f}"
        queue.average = Average(2.0**-exponent, line, how, said)
        if burst is None:
            self._account.find("W02", line, f"{queue.name}: burst not configured; {count}, tc's default")
        if exponent >= SLOW_AVERAGE:
            self._account.find(
                "W16", line, f"{queue.name}: Wlog {exponent}: tc warns that the burst is large"
            )
        if int(high.number).bit_length() + exponent >= 32:
            self._account.find(
                "W17", line, f"{queue.name}: the kernel refuses max {high.number:.0f} with Wlog {exponent}"
            )

    # gred

    def _gred(
        self, queue: Queue, setup: Command, changes: list[Command], virtual: dict[int, frozenset[int]]
    ) -> None:
        options = Options(setup, self._account)
        options.flag("setup")
        vqs = int(options.number("vqs") or options.number("DPs") or 0)
        default = int(options.number("default") or 0)
        grio = options.flag("grio")
        whole = options.size("limit")
        table_ecn = self._ecn(queue, options, setup)
        options.close()
        if not 1 <= vqs <= MOST_VQS:
            self._account.find("W16", setup.line, f"gred: 1 to {MOST_VQS} virtual queues, not {vqs}")
        found: dict[int, VirtualQueue] = {}
        for change in changes:
            given = Options(change, self._account)
            number = given.number("vq")
            number = number if number is not None else given.number("DP")
            if number is None or number >= max(vqs, 1):
                self._account.find(
                    "W13", change.line, "gred: a virtual queue beyond those of `setup`; left out"
                )
                continue
            one = Queue(f"vq {int(number)}", change.line)
            low, high, limit = given.size("min"), given.size("max"), given.size("limit")
            curve = self._parameters(one, change, given, low, high)
            prio = given.number("prio")
            prio = prio if prio is not None else given.number("priority")
            ecn = self._ecn(one, given, change)
            given.close()
            queue.mean_packet = queue.mean_packet or one.mean_packet
            if curve is not None:
                own = ecn if ecn is not Ecn.OFF else table_ecn
                found[int(number)] = VirtualQueue(curve, limit, prio or 0.0, one.average, own)
        modes = {entry.ecn for entry in found.values()}
        queue.ecn = next(iter(modes)) if len(modes) == 1 else Ecn.OFF
        if not found:
            self._account.find("W17", setup.line, "gred without virtual queues: a plain FIFO up to its limit")
            queue.limit = whole
            return
        self._virtual_queues(queue, setup, found, default, virtual, whole, grio=grio)

    def _virtual_queues(
        self,
        queue: Queue,
        setup: Command,
        found: dict[int, VirtualQueue],
        default: int,
        virtual: dict[int, frozenset[int]],
        whole: Quantity | None,
        *,
        grio: bool,
    ) -> None:
        # `prio 0` or none: that of the default virtual queue, else 8.
        fallback = (found[default].prio if default in found else 0.0) or 8.0
        prios = {number: entry.prio or fallback for number, entry in found.items()}
        averages = [entry.average for entry in found.values() if entry.average is not None]
        weights = {average.weight for average in averages}
        if len(weights) > 1:
            text = "gred: virtual queues with different Wlog: shared averages are off by powers of 2"
            self._account.find("W17", max(entry.curve.line for entry in found.values()), text)
        queue.average = averages[0] if averages else None
        limits = [entry.limit for entry in found.values() if entry.limit is not None]
        queue.limit = max(limits, key=lambda q: q.number) if limits else whole
        if whole is not None and queue.limit is not None and whole.number < queue.limit.number:
            queue.limit = whole
        distinct = len(set(prios.values())) == len(prios)
        if not virtual and len(found) > 1:
            text = "gred: no filter sets tc_index, so which packets are of which virtual queue is not known"
            self._account.find("W14", setup.line, f"{text}; the most lenient is green here")
        if grio and distinct and len(found) == 2 and queue.limit is not None:
            self._rio(queue, found, prios)
            return
        if not grio:
            text = "gred without grio: each virtual queue has its own average; here one over all packets"
            self._account.find("W06", setup.line, text)
        elif distinct and len(found) > 2:
            text = "gred in RIO mode: each virtual queue is judged by itself and those before it"
            self._account.find("W06", setup.line, f"{text}; here one average over all packets")
        # A packet without a filter has tc_index 0; the default is for numbers that no virtual queue has.
        rest = 0 if 0 in found else default
        for number, entry in sorted(
            found.items(), key=lambda item: (bool(virtual) and item[0] == rest, item[0])
        ):
            codes: frozenset[int] | None = virtual.get(number) or frozenset({_stand_in(number)})
            if virtual and number == rest:
                codes = None
            limit = entry.limit
            if limit is not None and queue.limit is not None and limit.number >= queue.limit.number:
                limit = None  # the queue's acts first, or is the same
            queue.curves.append(Drop(Selector(f"vq {number}", codes), entry.curve, limit, entry.ecn))
        if not virtual:  # no codepoints are known: colors by leniency
            order = sorted(
                queue.curves, key=lambda d: (-d.curve.points[-1][0].number, -d.curve.points[0][0].number)
            )
            names = ("green", "yellow", "red")
            if len(order) <= len(names):
                queue.colors_assumed = True
                queue.curves = [
                    replace(d, selector=Selector(d.selector.label, None, names[i]))  # type: ignore[arg-type]
                    for i, d in enumerate(order)
                ]

    def _rio(self, queue: Queue, found: dict[int, VirtualQueue], prios: dict[int, float]) -> None:
        first, second = sorted(found, key=lambda number: prios[number])

        def text(number: int) -> str:
            (low, _), (high, most) = found[number].curve.points
            most_text = units.plain(most, 6)
            return quoted(f"{units.bytes_text(low.number)}/{units.bytes_text(high.number)}/{most_text}")

        limit = queue.limit
        average = found[first].average
        weight = 1.0 if average is None or average.weight is None else average.weight
        shown = units.plain(weight, 12)
        keys = [
            ("in", text(first), found[first].curve.line),
            ("total", text(second), found[second].curve.line),
            ("averages", '"own-class"', queue.line),
            ("limit", quoted(units.bytes_text(limit.number if limit else 1.0)), limit.line if limit else 0),
            ("weight", shown if "." in shown else f"{shown}.0", found[first].curve.line),
            ("wait", "false", queue.line),
            ("scale-by-size", "false", queue.line),
        ]
        if queue.ecn is not Ecn.OFF:
            keys.append(("ecn", ECN_VALUES[queue.ecn], queue.ecn_line))
        elif any(entry.ecn is not Ecn.OFF for entry in found.values()):
            said = "gred in RIO mode: ECN of one virtual queue only; here packets of both are dropped"
            self._account.find("W08", queue.ecn_line, said)
        if queue.mean_packet is not None:
            keys.append(
                ("mean-packet", quoted(units.bytes_text(queue.mean_packet.number)), queue.mean_packet.line)
            )
        queue.block = Block("aqm", "rio", tuple(keys), queue.line)
        said = "gred in RIO mode: the kernel adds averages of virtual queues; here one is of all packets"
        self._account.find("W06", queue.line, said)

    # Blocks that perhop has

    def _modern(self, queue: Queue, command: Command) -> None:
        options = Options(command, self._account)
        line = command.line
        keys: list[tuple[str, str, int]] = []
        limit = options.packets("limit")
        number = limit.number if limit else MODERN_LIMITS[command.kind]
        keys.append(("limit", quoted(f"{number:.0f}p"), line))
        for name, key in MODERN_TIMES[command.kind].items():
            value = options.time(name)
            if value is not None:
                keys.append((key, quoted(units.time_text(value.number)), line))
        if command.kind == "fq_codel":
            self._flows(options, keys, line)
        elif command.kind in {"pie", "fq_pie"}:
            for name in ("alpha", "beta"):  # in sixteenths (net/sched/sch_pie.c, `calculate_probability`)
                gain = options.number(name)
                if gain:
                    keys.append((name, units.plain(gain / 16, 6), line))
            if options.flag("bytemode"):
                text = f"{command.kind}: `bytemode`: large packets are dropped as often as small ones here"
                self._account.find("W06", line, text)
            options.flag("nobytemode")
        elif command.kind == "dualpi2":
            self._dualpi2(options, keys, line)
        ecn, no_ecn = options.flag("ecn"), options.flag("noecn")
        if command.kind == "fq_codel":
            json_says = command.json and not ecn
            keys.append(("ecn", "false" if no_ecn or json_says else "true", line))
        elif command.kind != "dualpi2" and ecn:
            keys.append(("ecn", "true", line))
        keys.append(("law", '"linux"', line))
        options.skip(
            "ce_threshold",
            "ce_threshold_selector",
            "drop_batch",
            "ecn_prob",
            "flows",
            "quantum",
            "memory_limit",
        )
        options.close()
        name = {"fq_pie": "pie"}.get(command.kind, command.kind.replace("_", "-"))
        role: Literal["aqm", "scheduler"] = "scheduler" if name in {"fq-codel", "dualpi2"} else "aqm"
        queue.block = Block(role, name, tuple(keys), line)

    def _flows(self, options: Options, keys: list[tuple[str, str, int]], line: int) -> None:
        """The queues of fq_codel."""
        for name in ("quantum", "memory_limit"):
            size = options.size(name)
            if size is not None:
                keys.append((name.replace("_", "-"), quoted(units.bytes_text(size.number)), line))
        for name, key in (("flows", "flows"), ("drop_batch", "batch")):
            value = options.number(name)
            if value and value <= MOST_FLOWS:
                keys.append((key, f"{value:.0f}", line))

    def _dualpi2(self, options: Options, keys: list[tuple[str, str, int]], line: int) -> None:
        """The coupling and the shares of dualpi2 (iproute2, tc/q_dualpi2.c)."""
        for name, key in (("coupling_factor", "k"), ("alpha", "alpha"), ("beta", "beta")):
            value = options.number(name)
            if value:
                keys.append((key, units.plain(value, 9), line))
        share = options.text("classic_protection")
        part = None if share is None else units.number(share.removesuffix("%"))
        if part is not None and part <= 100:
            keys.append(("classic-share", units.plain(part / 100, 6), line))
        for flag, word in (("drop_on_overload", "drop"), ("overflow", "overflow")):
            if options.flag(flag):
                keys.append(("overload", quoted(word), line))


def _stand_in(number: int) -> int:
    """A codepoint of local use for a virtual queue without one."""
    return 4 * number + 3
