"""Linux's red and gred: drop curves, averages, virtual queues, RIO."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from perhop.routers import units
from perhop.routers.curves import COLORS
from perhop.routers.dialects.tc.options import Options
from perhop.routers.linux import quantities as tc_units
from perhop.routers.model import (
    ECN_VALUES,
    Average,
    Block,
    Curve,
    Drop,
    Ecn,
    How,
    PortQueue,
    Quantity,
    Selector,
    Unit,
)
from perhop.routers.units import quoted

if TYPE_CHECKING:
    from perhop.routers.dialects.tc.commands import Command
    from perhop.routers.source import Account

MOST_VQS = 16
RED_PROBABILITY = 0.02
SLOW_AVERAGE = 10
"""tc itself warns from this exponent on."""


@dataclass(frozen=True, slots=True)
class VirtualQueue:
    """The configuration of a virtual queue of gred."""

    curve: Curve
    limit: Quantity | None
    prio: float
    average: Average | None
    ecn: Ecn


class Reds:
    """Reads the parameters of red and gred."""

    def __init__(self, account: Account) -> None:
        """Findings go to the account."""
        self._account = account

    def red(self, queue: PortQueue, command: Command) -> None:
        """Give a queue the curve, the limit and the average of a qdisc red."""
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

    def _ecn(self, queue: PortQueue, options: Options, command: Command) -> Ecn:
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
        self,
        queue: PortQueue,
        command: Command,
        options: Options,
        low: Quantity | None,
        high: Quantity | None,
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
        queue: PortQueue,
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

    def gred(
        self, queue: PortQueue, setup: Command, changes: list[Command], virtual: dict[int, frozenset[int]]
    ) -> None:
        """Give a queue the curves of gred's virtual queues; `virtual`: the codepoints of each, by number."""
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
            one = PortQueue(f"vq {int(number)}", change.line)
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
        queue: PortQueue,
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
            order = sorted(queue.curves, key=_leniency)
            if len(order) <= len(COLORS):
                queue.colors_assumed = True
                queue.curves = [
                    replace(drop, selector=Selector(drop.selector.label, None, color))
                    for drop, color in zip(order, COLORS, strict=False)
                ]

    def _rio(self, queue: PortQueue, found: dict[int, VirtualQueue], prios: dict[int, float]) -> None:
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


def _stand_in(number: int) -> int:
    """A codepoint of local use for a virtual queue without one."""
    return 4 * number + 3


def _leniency(drop: Drop) -> tuple[float, float]:
    """The order of curves by their largest and smallest threshold, highest first."""
    points = drop.curve.points
    return -points[-1][0].number, -points[0][0].number
