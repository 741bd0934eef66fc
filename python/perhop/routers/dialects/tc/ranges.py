"""The numbers that commands of tc take: fields of 32 bits, and what a qdisc checks.

Source: (1) Linux, `include/uapi/linux/pkt_sched.h` and `net/sched/sch_*.c`.
"""

from __future__ import annotations

from perhop.routers.outgoing import Range

FIELD = 2**32 - 1
"""The largest value of a field of 32 bits."""
RANGES = {
    "size": Range(1, FIELD, 1, r"\b(?:limit|burst|cburst|min|max|avpkt|memory_limit) (\d+)\b"),
    "quantum": Range(1, FIELD, 1, r"\bquantum (\d+)\b"),
    "flows": Range(1, 65536, 1, r"\bflows (\d+)\b"),
    "r2q": Range(1, FIELD, 1, r"\br2q (\d+)\b"),
    "htb prio": Range(0, 7, 1, r"\bhtb .*\bprio (\d+)\b"),
    "gred prio": Range(1, 16, 1, r"\bvq \d+ .* prio (\d+)$"),
    "vq": Range(0, 15, 1, r"\bvq (\d+)\b"),
    "vqs": Range(1, 16, 1, r"\bvqs (\d+)\b"),
    "bands": Range(1, 16, 1, r"\bbands (\d+)\b"),
    "strict": Range(1, 16, 1, r"\bstrict (\d+)\b"),
    "prio": Range(1, 65535, 1, r"\bfilter .*\bprio (\d+)\b"),
    "probability": Range(0, 1, 1, r"\bprobability (\S+)"),
}
"""Ranges by parameter. Rates have 64 bits, which no scenario exceeds."""
