"""CAKE of Linux, RouterOS and VyOS as fq_codel with its times; its shaper is the caller's.

Source: Linux, net/sched/sch_cake.c; iproute2, tc/q_cake.c and man/man8/tc-cake.8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perhop.routers import units
from perhop.routers.document import quoted
from perhop.routers.model import Block

if TYPE_CHECKING:
    from perhop.routers.model import Quantity

RTT = 0.1
"""Seconds: the round-trip time that CAKE assumes, the scheme `internet`."""
SCHEMES = {
    "datacentre": 1e-4, "datacenter": 1e-4, "lan": 1e-3, "metro": 1e-2, "regional": 3e-2, "internet": RTT,
    "oceanic": 0.3, "satellite": 1.0, "interplanetary": 3600.0,
}  # fmt: skip
LOST = "fairness among hosts, its tins and COBALT are not simulated; fq_codel in its place"


def block(rtt: float, place: int, line: int, memory: Quantity | None = None) -> Block:
    """The interval is the round-trip time, of which the target is a twentieth."""
    keys = [
        ("target", quoted(f"{units.plain(rtt * 50, 6)}ms"), place),
        ("interval", quoted(f"{units.plain(rtt * 1000, 6)}ms"), place),
        ("law", '"linux"', line),
    ]
    if memory is not None:
        keys.insert(0, ("memory-limit", quoted(units.bytes_text(memory.number)), memory.line))
    return Block("scheduler", "fq-codel", tuple(keys), line)
