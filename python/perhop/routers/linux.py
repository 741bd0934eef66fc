"""Parts of Linux that several dialects share: quantities as `tc` writes them, CAKE, hfsc.

Sources: iproute2, tc/tc_util.c, tc/tc_red.c, tc/q_cake.c, man/man8/tc-cake.8; Linux, net/sched/sch_cake.c.
"""

from __future__ import annotations

import bisect
from dataclasses import replace
from typing import TYPE_CHECKING

from perhop.routers import units
from perhop.routers.model import Block, Curves, How, Quantity, Rate, RateUnit, TreeClass, Unit
from perhop.routers.units import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perhop.routers.source import Account

KILO = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
KIBI = {f"{prefix}i": 1024.0**n for n, prefix in enumerate("kmgt", 1)}
RATES = {"": 1.0}
RATES |= {f"{prefix}bit": factor for prefix, factor in (KILO | KIBI).items()}
RATES |= {f"{prefix}bps": 8 * factor for prefix, factor in (KILO | KIBI).items()}
SIZES = {"": 1.0, "b": 1.0}
SIZES |= {f"{prefix}{unit}": 1024.0**n for n, prefix in enumerate("kmg", 1) for unit in ("", "b")}
SIZES |= {f"{prefix}bit": 1024.0**n / 8 for n, prefix in enumerate("kmg", 1)}
TIMES = {
    "": 1e-6, "us": 1e-6, "usec": 1e-6, "usecs": 1e-6, "ms": 1e-3, "msec": 1e-3, "msecs": 1e-3,
    "s": 1.0, "sec": 1.0, "secs": 1.0, "ns": 1e-9,
}  # fmt: skip
MOST_WLOG = 31
RED_PROBABILITY = 0.02
"""The probability of red where none is configured."""
MOST_FLOWS = 65536
"""Queues of fq_codel."""
PRIOMAP = (1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1)
"""The bands of priorities in prio and pfifo_fast, by default."""
TOS_PRIORITY = (0, 0, 0, 0, 2, 2, 2, 2, 6, 6, 6, 6, 4, 4, 4, 4)
"""The kernel's priority of a packet by bits 1 to 4 of its TOS field (net/ipv4/route.c, `ip_tos2prio`)."""
CAKE_RTT = 0.1
"""Seconds: the round-trip time that CAKE assumes, the scheme `internet`."""
FRAME = 1514
"""Bytes of the largest frame of Ethernet."""
CAKE_SCHEMES = {
    "datacentre": 1e-4, "datacenter": 1e-4, "lan": 1e-3, "metro": 1e-2, "regional": 3e-2,
    "internet": CAKE_RTT, "oceanic": 0.3, "satellite": 1.0, "interplanetary": 3600.0,
}  # fmt: skip
CAKE_LOST = "fairness among hosts, its tins and COBALT are not simulated; fq_codel in its place"
LEAST_RATE = 1000.0
"""Bit/s of a class without a rate, which tc refuses."""
MOST_QUANTUM = 60_000.0
"""Bytes of the largest turn where turns are in proportion to shares."""


def rate(text: str) -> float | None:
    """A rate in bit/s: `3.5mbps` is bytes, 28 Mbit/s.

    >>> rate("3.5mbps"), rate("10mbit"), rate("64000"), rate("1kibit")
    (28000000.0, 10000000.0, 64000.0, 1024.0)
    """
    return units.scaled(text, RATES)


def size(text: str) -> float | None:
    """A size in bytes: `15k` is 15 · 1024.

    >>> size("15k"), size("2mbit"), size("1540b"), size("40kb")
    (15360.0, 262144.0, 1540.0, 40960.0)
    """
    return units.scaled(text, SIZES)


def time(text: str) -> float | None:
    """A time in seconds; a bare number is microseconds.

    >>> time("20ms"), time("500"), time("1s")
    (0.02, 0.0005, 1.0)
    """
    found = units.scaled(text, TIMES)
    return None if found is None else round(found, 12)


def probability(text: str) -> float | None:
    """A probability, also in percent."""
    found = units.scaled(text, {"": 1.0, "%": 0.01})
    return found if found is not None and found <= 1 else None


def band(codepoint: int, priomap: Sequence[int], bands: int) -> int:
    """The band of packets that no filter takes; those of priorities without a band are in the last one.

    >>> [band(codepoint, PRIOMAP, 3) for codepoint in (0, 46, 4, 10, 48)]
    [1, 1, 0, 2, 1]
    """
    priority = TOS_PRIORITY[(2 * codepoint) % 16]
    return priomap[priority] if priority < len(priomap) else bands - 1


def wlog(low: float, burst: int, avpkt: float) -> int | None:
    """RED's averaging exponent, as tc computes it of `min`, `burst` and `avpkt`; None: tc refuses.

    >>> wlog(30000, 55, 1000), wlog(40000, 45, 1500), wlog(102400, 113, 1500), wlog(60000, 55, 1000)
    (5, 5, 6, None)
    """
    if avpkt <= 0:
        return None
    a = burst + 1 - low / avpkt
    if a < 1:
        return None
    weight = 0.5
    for exponent in range(1, MOST_WLOG + 1):
        if a <= (1 - (1 - weight) ** burst) / weight:
            return exponent
        weight /= 2
    return None


def bursts(low: float, avpkt: float, exponent: int, most: int = 4096) -> tuple[int, int] | None:
    """The least and the largest `burst` that give an exponent; None: none does."""

    def found(burst: int) -> int:
        beyond = 0 if avpkt <= 0 or burst + 1 - low / avpkt < 1 else MOST_WLOG + 1
        return wlog(low, burst, avpkt) or beyond

    # A larger burst never gives a smaller exponent.
    first = bisect.bisect_left(range(1, most), exponent, key=found) + 1
    last = bisect.bisect_right(range(1, most), exponent, key=found)
    return (first, last) if first <= last and found(first) == exponent else None


def cake(rtt: float, bandwidth: Rate | None, place: int, line: int, memory: Quantity | None = None) -> Block:
    """CAKE as fq_codel with its times; its shaper is the caller's.

    The interval is the round-trip time, and the target a twentieth of it. On a slow link both are more: the
    target is at least one and a half frames, by which the interval grows, too (`cake_set_rate`).
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


def hfsc_class(name: str, line: int, rates: Sequence[Rate | None], account: Account) -> TreeClass:
    """A class of hfsc as one of htb; `rates` are those of its real-time, link-sharing and upper-limit curves.

    Its quantum is its share, of which `hfsc_turns` makes bytes.
    """
    sure, share, most = rates
    rate = sure or share or Rate(LEAST_RATE, line=line, text="no rate")
    ceil = Rate(100, RateUnit.PERCENT, 0, How.DEFAULT, "no ul: the link's rate")
    if most is not None:
        ceil = most
    elif share is None and sure is not None:  # without a share it has nothing of what others leave
        ceil = replace(sure, text=f"`{sure.text}` without a share: no more than this")
    if ceil.unit is RateUnit.BPS and rate.number > ceil.number:
        text = f"hfsc class {name}: `{rate.text}` is above `{ceil.text}`, which is its rate here"
        account.find("W16", line, text)
        rate = ceil
    made = TreeClass(name, line, rate, ceil)
    made.curves = Curves(sure.number if sure else 0.0, share.number if share else 0.0)
    turn = share or rate
    made.quantum = Quantity(turn.number, Unit.BYTES, turn.line, How.ASSUMED, text=turn.text)
    return made


def hfsc_turns(classes: list[TreeClass]) -> None:
    """Make the turns of classes, which are their shares so far, bytes in proportion to them."""
    shares = [made.quantum.number for made in classes if made.quantum is not None]
    unit = min(float(FRAME), MOST_QUANTUM * min(shares) / max(shares)) / min(shares) if shares else 0.0
    for made in classes:
        if made.quantum is not None:
            said = f"in proportion to `{made.quantum.text}`"
            number = max(1.0, unit * made.quantum.number)
            made.quantum = replace(made.quantum, number=number, line=0, text=said)
