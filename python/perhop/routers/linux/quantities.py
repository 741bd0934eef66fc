"""Numbers of Linux's tc: rates, sizes, times, RED's exponent (iproute2, tc/tc_util.c, tc/tc_red.c)."""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING

from perhop.routers import units

if TYPE_CHECKING:
    from collections.abc import Sequence

_BITS = {f"{p}bit": 1000.0**n for n, p in enumerate(["", "k", "m", "g", "t"])}
_BINARY_BITS = {f"{p}ibit": 1024.0**n for n, p in enumerate(["k", "m", "g", "t"], 1)}
_BYTES = {f"{p}bps": 8 * 1000.0**n for n, p in enumerate(["", "k", "m", "g", "t"])}
_BINARY_BYTES = {f"{p}ibps": 8 * 1024.0**n for n, p in enumerate(["k", "m", "g", "t"], 1)}
RATES = {"": 1.0, **_BITS, **_BINARY_BITS, **_BYTES, **_BINARY_BYTES}
SIZES = {
    "": 1.0,
    "b": 1.0,
    **{f"{p}{b}": 1024.0**n for n, p in enumerate(["k", "m", "g"], 1) for b in ("", "b")},
    **{f"{p}bit": 1024.0**n / 8 for n, p in enumerate(["k", "m", "g"], 1)},
}
TIMES = {
    "": 1e-6,
    **dict.fromkeys(("us", "usec", "usecs"), 1e-6),
    **dict.fromkeys(("ms", "msec", "msecs"), 1e-3),
    **dict.fromkeys(("s", "sec", "secs"), 1.0),
    "ns": 1e-9,
}
MOST_WLOG = 31
PRIOMAP = (1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1)
"""The bands of priorities in prio and pfifo_fast, by default."""
TOS_PRIORITY = (0, 0, 0, 0, 2, 2, 2, 2, 6, 6, 6, 6, 4, 4, 4, 4)
"""The kernel's priority of a packet by bits 1 to 4 of its TOS field (net/ipv4/route.c, `ip_tos2prio`)."""


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
