"""The queues of VyOS's policies and classes."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from perhop.routers import units
from perhop.routers.dialects.vyos.policies import Class
from perhop.routers.linux import cake
from perhop.routers.linux import quantities as tc_units
from perhop.routers.model import (
    ALL_CODEPOINTS,
    Average,
    Block,
    Curve,
    Drop,
    How,
    Match,
    PortQueue,
    Quantity,
    Selector,
    Unit,
)
from perhop.routers.units import quoted

if TYPE_CHECKING:
    from perhop.routers.dialects.vyos.policies import Policy
    from perhop.routers.dialects.vyos.values import Values
    from perhop.routers.source import Account

AVERAGE_PACKET = 1024
MAX_THRESHOLD = 18
MARK_PROBABILITY = 10
MOST_FLOWS = 65536
"""Queues of fq_codel."""
THRESHOLDS = {"average-packet", "maximum-threshold", "minimum-threshold", "queue-limit", "mark-probability"}


class Leaves:
    """Makes queues of what leaves say."""

    def __init__(self, values: Values, account: Account) -> None:
        """Findings go to the account."""
        self._values = values
        self._account = account

    def fill(
        self, queue: PortQueue, entry: Class, policy: Policy | None, kind: str, *, bands: bool = False
    ) -> None:
        """The queue of a class or of a policy; `bands`: a scheduler within the class is simulated."""
        line = entry.get("queue-type", queue.line)[1]
        if kind == "fq-codel":
            limit = self._values.packets(entry, "queue-limit", 10240, queue.name)
            keys = [("limit", quoted(f"{limit.number:.0f}p"), limit.line or line)]
            for key in ("target", "interval"):
                value, place = entry.get(key)
                time = (
                    tc_units.time(value) if re.search("[a-z]", value) else (units.number(value) or 0) / 1000
                )
                if value and time:
                    keys.append((key, quoted(f"{units.plain(time * 1000, 6)}ms"), place))
                elif value:
                    self._values.bad(key, value, place)
            quantum, place = entry.get("codel-quantum")
            if units.whole(quantum):
                keys.append(("quantum", quoted(f"{quantum}B"), place))
            flows, place = entry.get("flows")
            if 1 <= (units.whole(flows) or 0) <= MOST_FLOWS:
                keys.append(("flows", flows, place))
            elif flows:
                self._values.bad("flows", flows, place)
            keys.append(("ecn", "false", line))  # VyOS gives `noecn`
            queue.block = Block("scheduler", "fq-codel", (*keys, ("law", '"linux"', line)), line)
            return
        if kind == "cake":
            self._cake(queue, entry)
            return
        if kind == "random-detect":
            if policy is None:
                self._red(queue, entry)
            else:
                self._random_detect(queue, policy)
            return
        if kind not in {"fair-queue", "priority", "drop-tail", "rate-control"}:
            self._account.miss_part(line, f"not understood: `queue-type {kind}`")
        if kind == "priority" and bands:
            self._bands(queue, entry, line)
            return
        if kind in {"fair-queue", "priority"}:
            text = f"class {queue.name}: {kind} within it is not simulated; a FIFO in its place"
            self._account.find("W06", line, text)
        queue.limit = self._values.packets(
            entry, "queue-limit", 127 if kind == "fair-queue" else 1000, queue.name
        )

    def _cake(self, queue: PortQueue, entry: Class) -> None:
        """The policy `cake` (python/vyos/qos/cake.py)."""
        value, line = entry.get("rtt", entry.line)
        rtt = units.number(value) if value else cake.RTT * 1000
        if not rtt:
            self._values.bad("rtt", value, line)
        self._account.find("W06", entry.line, f"class {queue.name}: cake: {cake.LOST}")
        queue.block = cake.block(
            (rtt or cake.RTT * 1000) / 1000, self._values.rate(entry, "bandwidth"), line, entry.line
        )

    def _bands(self, queue: PortQueue, entry: Class, line: int) -> None:
        """A class with `queue-type priority`: three bands by the TOS field, each with the limit."""
        limit = self._values.packets(entry, "queue-limit", 1000, queue.name)
        for band in range(3):
            inner = PortQueue(f"{queue.name}.{band + 1}", line, limit=limit, level=band, level_line=line)
            codes = {code for code in ALL_CODEPOINTS if tc_units.band(code, tc_units.PRIOMAP, 3) == band}
            inner.match = Match(frozenset(codes), (), line)
            queue.within.append(inner)

    def _random_detect(self, queue: PortQueue, policy: Policy) -> None:
        """A policy: gred with a virtual queue for each precedence, as intended, with one average."""
        text = (
            "VyOS chooses gred's virtual queue by tcindex, which is gone from the kernel: there all packets "
            "get the curve of precedence 0; here precedences have their own, as intended"
        )
        self._account.find("W17", policy.line, text)
        limits = []
        for p in range(8):
            entry = policy.classes.get(str(p)) or Class(str(p), policy.line)
            curve, limit = self._precedence(queue, entry, p)
            limits.append(limit)
            if curve is not None:
                own = Quantity(limit, Unit.BYTES, entry.line, curve.how, text="queue-limit")
                queue.curves.append(Drop(Selector(f"precedence {p}", units.of_precedence(p)), curve, own))
        most = max(limits)
        queue.limit = Quantity(most, Unit.BYTES, policy.line, How.DEFAULT, text="the largest queue-limit")
        queue.curves = [
            replace(drop, limit=None) if drop.limit is not None and drop.limit.number >= most else drop
            for drop in queue.curves
        ]

    def _red(self, queue: PortQueue, entry: Class) -> None:
        """A class with `queue-type random-detect`: red with the values of precedence 0."""
        text = f"class {queue.name}: red without `bandwidth`: idle time is at 10 Mbit/s"
        self._account.find("W02", entry.line, text)
        curve, limit = self._precedence(queue, entry, 0)
        queue.limit = Quantity(limit, Unit.BYTES, entry.line, How.DEFAULT, text="4 max")
        if curve is not None:
            queue.curves = [Drop(Selector("all"), curve)]

    def _precedence(self, queue: PortQueue, entry: Class, p: int) -> tuple[Curve | None, float]:
        """The curve of a precedence and the limit of its virtual queue, in bytes."""
        found = {key: entry.get(key) for key in sorted(THRESHOLDS & set(entry.values))}
        given = {key: units.whole(value) for key, (value, _) in found.items()}
        for key, (value, line) in found.items():
            if not given[key]:
                self._values.bad(key, value, line)
        size = given.get("average-packet") or AVERAGE_PACKET
        most = given.get("maximum-threshold") or MAX_THRESHOLD
        least = given.get("minimum-threshold")
        least = (9 + p) * most // MAX_THRESHOLD if least is None else least
        limit = float((given.get("queue-limit") or 4 * most) * size)
        chance = 1 / (given.get("mark-probability") or MARK_PROBABILITY)
        if least > most:
            self._account.find(
                "W16", entry.line, f"precedence {p}: min {least} is above max {most}; left out"
            )
            return None, limit
        how = How.CONFIGURED if given else How.DEFAULT
        said = f"packets of {size} bytes"
        low = Quantity(least * size, Unit.BYTES, entry.line, how, text=said)
        high = Quantity(most * size, Unit.BYTES, entry.line, how, text=said)
        if p == 0:
            exponent = tc_units.wlog(least * size, (2 * least + most) // 3, size)
            if exponent is not None:
                queue.average = Average(2.0**-exponent, entry.line, How.DEFAULT, f"Wlog {exponent}")
            queue.mean_packet = Quantity(size, Unit.BYTES, entry.line, how, text=f"average-packet {size}")
        return Curve.ramp(low, high, chance, entry.line, how), limit
