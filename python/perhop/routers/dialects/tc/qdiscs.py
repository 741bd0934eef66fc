"""The qdiscs of Linux that hold packets: FIFOs, fair queues, and AQMs that perhop has as blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from perhop.routers import linux, model, units
from perhop.routers.dialects.tc.options import Options
from perhop.routers.dialects.tc.red import gred, red
from perhop.routers.model import Block, Curve, Drop, Ecn, How, PortQueue, Quantity, Rate, Selector, Unit
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
MODERN_LIMITS = {"codel": 1000, "fq_codel": 10240, "pie": 1000, "fq_pie": 10240, "dualpi2": 10000}
MODERN_TIMES = {
    "codel": {"target": "target", "interval": "interval"},
    "fq_codel": {"target": "target", "interval": "interval"},
    "pie": {"target": "target", "tupdate": "update"},
    "fq_pie": {"target": "target", "tupdate": "update"},
    "dualpi2": {"target": "target", "tupdate": "interval", "step_thresh": "step"},
}
"""The times of each qdisc, by their keys in a scenario."""
MODERN_UNUSED = (
    "ce_threshold", "ce_threshold_selector", "drop_batch", "ecn_prob", "flows", "quantum", "memory_limit",
)  # fmt: skip
"""Parameters that some of these qdiscs have without an effect here."""
PFIFO = 1000
FRAME = 1514.0
"""Bytes of a packet in bfifo's default limit: an MTU with its Ethernet header."""


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
    ) -> PortQueue:
        """The queue of a leaf. `plain`: a class without a qdisc, which has a FIFO."""
        queue = PortQueue(name, command.line, spacing_known=True)
        if plain or command.object == "class":
            queue.limit = self.length(command)
            if queue.limit.how is How.DEFAULT:
                text = f"{name}: no qdisc; a FIFO of 1000 packets (txqueuelen)"
                self._account.find("W04", command.line, text)
            return queue
        match command.kind:
            case "red":
                red(queue, Options(command, self._account))
            case "gred":
                changes = [q for q in qdiscs if q.kind == "gred" and q.verb == "change" and q is not command]
                changes = [q for q in changes if q.parent == command.parent]
                options = Options(command, self._account)
                gred(queue, options, [Options(one, self._account) for one in changes], virtual)
            case "codel" | "fq_codel" | "pie" | "fq_pie" | "dualpi2":
                self._modern(queue, command)
            case "pfifo" | "bfifo" | "pfifo_head_drop":
                self._fifo(queue, command)
            case "cake":
                self._cake(queue, command)
            case "choke":
                self._choke(queue, command)
            case "sfq" | "fq" | "sfb" | "hhf":
                self._fair(queue, command)
            case _:
                words = " ".join(command.words)
                text = f"qdisc `{command.kind} {words}`".rstrip() + " is not simulated; a FIFO in its place"
                self._account.find("W06", command.line, text)
                queue.limit = Options(command, self._account).packets("limit")
        return queue

    def shaper(self, command: Command) -> Rate | None:
        """The rate of a qdisc's own shaper, which only cake has among those that hold packets."""
        words = command.words
        if command.kind != "cake" or "bandwidth" not in words[:-1]:
            return None
        if words[words.index("bandwidth") + 1] in {"unlimited", "0"}:
            return None
        rate = Options(command, self._account).rate("bandwidth")
        if rate is not None and "autorate-ingress" in words:
            text = f"cake: `autorate-ingress`: its rate is {units.shown_rate(rate.number)} all the time here"
            self._account.find("W06", command.line, text)
        return rate

    def _fair(self, queue: PortQueue, command: Command) -> None:
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

    def _choke(self, queue: PortQueue, command: Command) -> None:
        """CHOKe as RED of packets (iproute2, tc/q_choke.c)."""
        options = Options(command, self._account)
        given = {name: options.packets(name) for name in ("limit", "min", "max", "burst")}
        line, limit = command.line, given["limit"]
        options.say("W06", "its comparison of an arriving packet with another one is not simulated; RED here")
        avpkt = options.size("avpkt")
        each = avpkt.number if avpkt is not None else 1000.0
        queue.mean_packet = Quantity(each, Unit.BYTES, line, text=f"avpkt {each:g}")
        options.skip("bandwidth")
        chance = options.text("probability")
        most = linux.RED_PROBABILITY if chance is None else linux.probability(chance)
        queue.limit = limit
        if limit is None or most is None:
            self._account.find("W13", line, "choke without a limit or with a wrong probability; no curve")
            return
        high = given["max"] or Quantity(limit.number // 4, Unit.PACKETS, line, How.DEFAULT, text="limit / 4")
        low = given["min"] or Quantity(high.number // 3, Unit.PACKETS, line, How.DEFAULT, text="max / 3")
        count = given["burst"].number if given["burst"] else (2 * low.number + high.number) // 3
        exponent = linux.wlog(low.number * each, int(min(count, 100_000)), each)
        if exponent is not None:
            said = f"Wlog {exponent}, from burst {count:.0f}"
            queue.average = model.Average(2.0**-exponent, line, How.CONFIGURED, said)
        if low.number > high.number:
            options.say("W16", f"`{low.text}` is above `{high.text}`; no curve")
        else:
            queue.curves = [Drop(Selector("all"), Curve.ramp(low, high, most, line))]
        if options.flag("ecn"):
            queue.ecn, queue.ecn_line = Ecn.BELOW_MAX, line
        options.close()

    def _cake(self, queue: PortQueue, command: Command) -> None:
        options = Options(command, self._account)
        options.text("bandwidth")
        options.flag("autorate-ingress")
        line = command.line
        scheme = next((name for name in linux.CAKE_SCHEMES if options.flag(name)), "internet")
        rtt = options.time("rtt")
        memory = options.size("memlimit")
        tins = next((name for name in CAKE_TINS if options.flag(name)), CAKE_TINS[0])
        flows = next((name for name in CAKE_FLOWS if options.flag(name)), CAKE_FLOWS[0])
        options.say("W06", f"{linux.CAKE_LOST}: `{tins}` and `{flows}` have no effect here")
        frames = [name for name in (*CAKE_FRAMES, "raw", "noatm") if options.flag(name)]
        if shown := " ".join(name for name in frames if name in CAKE_FRAMES):
            options.say("W18", f"`{shown}`: packets have their IP size here")
        options.sizes("overhead", "mpu")
        for name in CAKE_FLAGS:
            if options.flag(name) and not name.startswith(("no", "egress", "split-gso")):
                options.say("W13", f"`{name}` is not simulated")
        options.skip("fwmark")
        options.close()
        seconds = linux.CAKE_SCHEMES[scheme] if rtt is None else rtt.number
        queue.block = linux.cake(seconds, self.shaper(command), line, line, memory)

    def _fifo(self, queue: PortQueue, command: Command) -> None:
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

    # Blocks that perhop has

    def _modern(self, queue: PortQueue, command: Command) -> None:
        options, line = Options(command, self._account), command.line
        if command.kind == "fq_pie":
            options.say("W06", "fairness among its flows is not simulated; PIE in its place")
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
                options.say("W06", "`bytemode`: large packets are dropped as often as small ones here")
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
        options.skip(*MODERN_UNUSED)
        options.close()
        name = "pie" if command.kind == "fq_pie" else command.kind.replace("_", "-")
        role: Literal["aqm", "scheduler"] = "scheduler" if name in {"fq-codel", "dualpi2"} else "aqm"
        queue.block = Block(role, name, tuple(keys), line)

    def _flows(self, options: Options, keys: list[tuple[str, str, int]], line: int) -> None:
        for name in ("quantum", "memory_limit"):
            size = options.size(name)
            if size is not None:
                keys.append((name.replace("_", "-"), quoted(units.bytes_text(size.number)), line))
        for name, key in (("flows", "flows"), ("drop_batch", "batch")):
            value = options.number(name)
            if value and value <= linux.MOST_FLOWS:
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
