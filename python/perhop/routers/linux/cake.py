"""CAKE of Linux, RouterOS and VyOS as fq_codel with its times; its shaper is the caller's.

Source: Linux, net/sched/sch_cake.c; iproute2, tc/q_cake.c and man/man8/tc-cake.8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perhop.routers import units
from perhop.routers.model import Block, RateUnit
from perhop.routers.units import quoted

if TYPE_CHECKING:
    from perhop.routers.model import Quantity, Rate

RTT = 0.1
"""Seconds: the round-trip time that CAKE assumes, the scheme `internet`."""
FRAME = 1514
"""Bytes of the largest frame of Ethernet."""
SCHEMES = {
    "datacentre": 1e-4, "datacenter": 1e-4, "lan": 1e-3, "metro": 1e-2, "regional": 3e-2, "internet": RTT,
    "oceanic": 0.3, "satellite": 1.0, "interplanetary": 3600.0,
}  # fmt: skip
LOST = "fairness among hosts, its tins and COBALT are not simulated; fq_codel in its place"


def block(rtt: float, bandwidth: Rate | None, place: int, line: int, memory: Quantity | None = None) -> Block:
    """The interval is the round-trip time, of which the target is a twentieth; both are more on a slow link.

    The target is at least one and a half frames, by which the interval grows, too (`cake_set_rate`).
    """
    given = rtt / 20
    frame = FRAME * 8 / bandwidth.number if bandwidth is not None and bandwidth.unit is RateUnit.BPS else 0.0
    target = max(1.5 * frame, given)
    interval = max(rtt + target - given, 2 * target)
    keys = [
        ("target", quoted(f"{units.plain(target * 1000, 6)}ms"), place),
        ("interval", quoted(f"{units.plain(interval * 1000, 6)}ms"), place),
        ("law", '"linux"', line),
    ]
    if memory is not None:
        keys.insert(0, ("memory-limit", quoted(units.bytes_text(memory.number)), memory.line))
    return Block("scheduler", "fq-codel", tuple(keys), line)
