"""MikroTik RouterOS: `/queue type` as queues, and the units of rates, sizes and times.

Source: MikroTik's manual, "Queues", section "Queue types" (kinds and their properties), and its page on CAKE
(`cake-bandwidth` shapes by itself; 0 is none). Defaults are those of verbose exports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perhop.routers import linux, model, units
from perhop.routers.dialects.routeros.lines import RATES, SIZES, TIMES, Entry
from perhop.routers.model import Block, Curve, Drop, How, PortQueue, Quantity, Rate, RateUnit, Selector, Unit
from perhop.routers.units import quoted

if TYPE_CHECKING:
    from perhop.routers.source import Account

DEFAULTS = {
    "default": ("pfifo", 50), "default-small": ("pfifo", 10), "ethernet-default": ("pfifo", 50),
    "wireless-default": ("sfq", 0), "hotspot-default": ("sfq", 0), "synchronous-default": ("red", 0),
    "pcq-upload-default": ("pcq", 0), "pcq-download-default": ("pcq", 0),
    "multi-queue-ethernet-default": ("mq-pfifo", 50), "only-hardware-queue": ("none", 0),
}  # fmt: skip
"""The types that are always there: their kind, and the limit in packets of a FIFO."""
RED = {
    "red-min-threshold": 10, "red-max-threshold": 50, "red-limit": 60, "red-burst": 20,
    "red-avg-packet": 1000,
}  # fmt: skip
SFQ_LIMIT = 127
TIMES_OF_CODEL = {"target": 0.005, "interval": 0.1}
CODEL_LIMITS = {"codel": 1000, "fq-codel": 10240}


def rate(text: str) -> float | None:
    """A rate in bit/s; `k`, `M` and `G` are 1000, 1000000 and so on; 0 and `unlimited` are none.

    >>> rate("10M"), rate("512k"), rate("1.5G"), rate("64000"), rate("unlimited"), rate("x")
    (10000000.0, 512000.0, 1500000000.0, 64000.0, 0.0, None)
    """
    return 0.0 if text in {"unlimited", "none", ""} else units.scaled(text, RATES)


def size(text: str) -> float | None:
    """A size in bytes; `KiB` is 1024, `k` 1000.

    >>> size("15000"), size("50KiB"), size("32.0MiB"), size("10k")
    (15000.0, 51200.0, 33554432.0, 10000.0)
    """
    return units.scaled(text, SIZES)


def time(text: str) -> float | None:
    """A time in seconds.

    >>> time("5ms"), time("100ms"), time("1s"), time("00:00:10")
    (0.005, 0.1, 1.0, 10.0)
    """
    parts = text.split(":")
    if len(parts) == 3 and all(units.number(part) is not None for part in parts):
        return sum(float(part) * factor for part, factor in zip(parts, (3600.0, 60.0, 1.0), strict=True))
    found = units.scaled(text, TIMES)
    return None if found is None else round(found, 9)


class Types:
    """The queue types of a configuration."""

    def __init__(self, entries: list[Entry], account: Account) -> None:
        """Findings go to the account."""
        self._account = account
        self._entries = {entry.name: entry for entry in entries if entry.name}

    def lines(self, name: str) -> set[int]:
        """The lines of a type."""
        return self._entries[name].lines if name in self._entries else set()

    def kind(self, name: str) -> str:
        """The kind of a type; empty if there is no such type."""
        entry = self._entries.get(name)
        default = DEFAULTS.get(name, ("", 0))[0]
        return default if entry is None else entry.get("kind", default)

    def shaper(self, name: str) -> Rate | None:
        """The rate of a type's own shaper, which only cake has."""
        entry = self._entries.get(name)
        if entry is None or self.kind(name) != "cake" or not entry.has("cake-bandwidth"):
            return None
        bps = rate(entry.get("cake-bandwidth"))
        if bps is None:
            self._bad(entry, "cake-bandwidth")
        text = f"cake-bandwidth={entry.get('cake-bandwidth')}"
        return Rate(bps, RateUnit.BPS, entry.place("cake-bandwidth"), text=text) if bps else None

    def fill(self, queue: PortQueue, name: str, line: int) -> None:
        """Give a queue the limit and the AQM of a type that a line names."""
        queue.spacing_known = True
        entry, kind = self._entries.get(name), self.kind(name)
        if not kind:
            self._account.find("W15", line, f"{queue.name}: queue type {name} is not defined")
            entry, kind = None, "pfifo"
        given = entry or Entry("queue type", line)
        given.get("default")
        match kind:
            case "pfifo" | "mq-pfifo" | "none":
                self._pfifo(queue, given, kind, name, line)
            case "bfifo":
                queue.limit = self._number(given, "bfifo-limit", 15000.0, sizes=True)
            case "red":
                self._red(queue, given)
            case "sfq" | "pcq":
                self._fair(queue, given, kind, line)
            case "codel" | "fq-codel":
                self._codel(queue, given, kind)
            case "cake":
                self._cake(queue, given, self.shaper(name))
            case _:
                text = f"{queue.name}: kind {kind} is not known; a FIFO in its place"
                self._account.find("W06", line, text)
                queue.limit = Quantity(50, Unit.PACKETS, 0, How.DEFAULT, text="50 packets")
        for key, (value, place) in given.unread("comment", "kind", "name"):
            self._account.find("W13", place, f"`{key}={value}` has no effect here")

    def _bad(self, entry: Entry, key: str) -> None:
        text = f"`{key}={entry.get(key)}` is no value that RouterOS takes; its default in its place"
        self._account.find("W16", entry.place(key), text)

    def _number(self, entry: Entry, key: str, default: float, *, sizes: bool = False) -> Quantity:
        unit = Unit.BYTES if sizes else Unit.PACKETS
        shown = units.bytes_text(default) if sizes else units.packets_text(default)
        if entry.has(key):
            text = entry.get(key)
            value = size(text) if sizes else units.number(text)
            if value:
                return Quantity(value, unit, entry.place(key), text=f"{key}={text}")
            self._bad(entry, key)
        return Quantity(default, unit, 0, How.DEFAULT, text=f"{key} of {shown}")

    def _pfifo(self, queue: PortQueue, entry: Entry, kind: str, name: str, line: int) -> None:
        key = "mq-pfifo-limit" if kind == "mq-pfifo" else "pfifo-limit"
        queue.limit = self._number(entry, key, DEFAULTS.get(name, ("", 50))[1] or 50)
        if kind == "mq-pfifo":
            text = f"{queue.name}: a queue for each of the hardware's; one is simulated"
            self._account.find("W09", line, text)
        if kind == "none":
            text = f"{queue.name}: {name} has no queue of its own; that of the hardware is not known"
            self._account.find("W09", line, text)
            queue.limit = None

    def _red(self, queue: PortQueue, entry: Entry) -> None:
        values = {key: self._number(entry, key, default) for key, default in RED.items()}
        each = values["red-avg-packet"].number

        def packets(key: str) -> Quantity:
            given = values[key]
            return Quantity(given.number, Unit.PACKETS, given.line, given.how, each, given.text)

        low, high = packets("red-min-threshold"), packets("red-max-threshold")
        queue.limit = packets("red-limit")
        line = entry.line
        text = f"{queue.name}: RouterOS has no probability; {linux.RED_PROBABILITY} at max, as in Linux"
        self._account.find("W04", line, text)
        average = values["red-avg-packet"]
        queue.mean_packet = Quantity(each, Unit.BYTES, average.line, average.how, text=average.text)
        if low.number > high.number:
            self._account.find("W16", line, f"{queue.name}: `{low.text}` is above `{high.text}`; no curve")
            return
        burst = min(int(values["red-burst"].number), 100_000)
        exponent = linux.wlog(low.number * each, burst, each)
        if exponent is None:
            text = f"{queue.name}: red-burst {burst} is too small for `{low.text}`: Linux refuses it"
            self._account.find("W17", line, text)
        else:
            text = f"{queue.name}: RouterOS has no weight; 2^-{exponent} from red-burst, as tc computes it"
            self._account.find("W02", line, text)
            said = f"Wlog {exponent}, from red-burst {burst}"
            queue.average = model.Average(2.0**-exponent, line, How.ASSUMED, said)
        queue.curves = [Drop(Selector("all"), Curve.ramp(low, high, linux.RED_PROBABILITY, line))]

    def _fair(self, queue: PortQueue, entry: Entry, kind: str, line: int) -> None:
        text = f"{queue.name}: {kind}: fairness among its flows is not simulated; a FIFO in its place"
        self._account.find("W06", line, text)
        if kind == "sfq":
            queue.limit = Quantity(SFQ_LIMIT, Unit.PACKETS, 0, How.DEFAULT, text="127 packets, Linux's sfq")
            return
        whole = entry.get("pcq-total-limit", "2000KiB")
        packets, place = units.whole(whole), entry.place("pcq-total-limit")
        if packets:  # before RouterOS 6.35
            queue.limit = Quantity(packets, Unit.PACKETS, place, text=f"pcq-total-limit={whole}")
        else:
            queue.limit = self._number(entry, "pcq-total-limit", 2000 * 1024.0, sizes=True)
        if rate(entry.get("pcq-rate", "0")):
            text = f"{queue.name}: `pcq-rate={entry.get('pcq-rate')}`: a rate of each flow is not enforced"
            self._account.find("W06", entry.place("pcq-rate"), text)

    def _codel(self, queue: PortQueue, entry: Entry, kind: str) -> None:
        keys: list[tuple[str, str, int]] = []
        limit = self._number(entry, f"{kind}-limit", CODEL_LIMITS[kind])
        keys.append(("limit", quoted(f"{limit.number:.0f}p"), limit.line or entry.line))
        for key, default in TIMES_OF_CODEL.items():
            seconds = self._time(entry, f"{kind}-{key}", default)
            keys.append((key, quoted(f"{units.plain(seconds * 1000, 6)}ms"), entry.place(f"{kind}-{key}")))
        if kind == "fq-codel":
            for key, name in (("quantum", "quantum"), ("memlimit", "memory-limit")):
                if entry.has(f"fq-codel-{key}"):
                    found = self._number(entry, f"fq-codel-{key}", 1514.0, sizes=True)
                    keys.append((name, quoted(units.bytes_text(found.number)), found.line))
            flows = units.whole(entry.get("fq-codel-flows", "1024"))
            if flows and flows <= linux.MOST_FLOWS:
                keys.append(("flows", str(flows), entry.place("fq-codel-flows")))
            else:
                self._bad(entry, "fq-codel-flows")
        marks = entry.get(f"{kind}-ecn", "yes" if kind == "fq-codel" else "no") == "yes"
        keys.append(("ecn", "true" if marks else "false", entry.place(f"{kind}-ecn")))
        keys.append(("law", '"linux"', entry.line))
        queue.block = Block("scheduler" if kind == "fq-codel" else "aqm", kind, tuple(keys), entry.line)

    def _time(self, entry: Entry, key: str, default: float) -> float:
        found = time(entry.get(key)) if entry.has(key) else default
        if not found:
            self._bad(entry, key)
        return found or default

    def _cake(self, queue: PortQueue, entry: Entry, bandwidth: Rate | None) -> None:
        """CAKE as fq_codel, with the times that it has for a round-trip time; its shaper is the caller's."""
        entry.get("cake-bandwidth")
        scheme = entry.get("cake-rtt-scheme")
        rtt = self._time(entry, "cake-rtt", linux.CAKE_SCHEMES.get(scheme, linux.CAKE_RTT))
        if scheme and scheme not in linux.CAKE_SCHEMES:
            self._bad(entry, "cake-rtt-scheme")
        memory = self._number(entry, "cake-memlimit", 4e6, sizes=True)
        self._account.find("W06", entry.line, f"{queue.name}: cake: {linux.CAKE_LOST}")
        for key in ("cake-overhead", "cake-mpu", "cake-atm", "cake-overhead-scheme"):
            value = entry.get(key)
            if value not in {"", "0", "none", "raw"}:
                text = f"{queue.name}: `{key}={value}`: packets have their IP size here"
                self._account.find("W18", entry.place(key), text)
        for key in ("cake-flowmode", "cake-diffserv", "cake-nat", "cake-ack-filter", "cake-wash"):
            value = entry.get(key)
            if value not in {"", "no", "none"}:
                self._account.find("W13", entry.place(key), f"{queue.name}: `{key}={value}` is not simulated")
        place = entry.place("cake-rtt" if entry.has("cake-rtt") else "cake-rtt-scheme")
        queue.block = linux.cake(rtt, bandwidth, place, entry.line, memory if memory.line else None)
