"""The numbers that devices take, by command: what an export writes stays within them, or says so.

Sources: (1) Cisco's models of IOS-XE, as `CiscoDevNet/terraform-provider-iosxe` 0.14 documents them
(`policy_map`, `interface_ethernet`); (2) Cisco MWR 2941 and ME 3600X command references; (3) Cisco
Catalyst 3650 command reference, IOS-XE 16.5; (4) Juniper, Junos OS 12.3 and 13.1 references of each
statement; (5) Juniper, hierarchical policers, Junos OS 13.2; (6) Juniper, vSRX and Junos 10.1 references of
`buffer-size`; (7) Linux, `include/uapi/linux/pkt_sched.h` and `net/sched/sch_*.c`: fields of 32 bits, and
what a qdisc checks.
"""

from __future__ import annotations

from dataclasses import dataclass

FIELD = 2**32 - 1
"""The largest value of a field of 32 bits."""


@dataclass(frozen=True, slots=True)
class Range:
    """The numbers that a command takes."""

    least: float
    most: float
    source: int
    """Of the numbered ones of this module."""
    line: str
    """A regular expression of lines with the command; its group is the number."""

    def fitted(self, value: float) -> float:
        """The nearest number that the command takes."""
        return min(max(value, self.least), self.most)


IOS = {
    "bandwidth": Range(1, 100_000_000, 1, r"^  bandwidth (\d+)$"),
    "bandwidth percent": Range(1, 100, 1, r"^  bandwidth percent (\d+)$"),
    "ratio": Range(1, 1000, 2, r"^  bandwidth remaining ratio (\d+)$"),
    "level": Range(1, 2, 1, r"^  priority level (\d+)\b"),
    "priority": Range(1, 2_000_000, 3, r"^  priority (?:level \d+ )?(\d+)\b"),
    "priority percent": Range(1, 100, 3, r"^  priority (?:level \d+ )?percent (\d+)\b"),
    "priority burst": Range(32, 2_000_000, 3, r"^  priority (?:level \d+ )?(?:percent )?\d+ (\d+)$"),
    "shape": Range(8000, 100_000_000_000, 1, r"^  shape average (\d+)\b"),
    "shape bc": Range(32, 800_000_000, 1, r"^  shape average \d+ (\d+) \d+$"),
    "shape be": Range(0, 154_400_000, 1, r"^  shape average \d+ \d+ (\d+)$"),
    "queue-limit": Range(1, 64_000_000, 1, r"^  queue-limit (?:dscp \S+ )?(\d+) (?:packets|bytes)$"),
    "min packets": Range(1, 4096, 2, r"^  random-detect (?:dscp|precedence) \S+ (\d+) \d+ \d+$"),
    "max packets": Range(1, 4096, 2, r"^  random-detect (?:dscp|precedence) \S+ \d+ (\d+) \d+$"),
    "min bytes": Range(
        1, 64_000_000, 1, r"^  random-detect (?:dscp|precedence) \S+ (\d+) bytes \d+ bytes \d+$"
    ),
    "max bytes": Range(
        1, 64_000_000, 1, r"^  random-detect (?:dscp|precedence) \S+ \d+ bytes (\d+) bytes \d+$"
    ),
    "denominator": Range(1, 65535, 2, r"^  random-detect (?:dscp|precedence) .* (\d+)$"),
    "exponent": Range(1, 16, 2, r"^  random-detect exponential-weighting-constant (\d+)$"),
    "precedence": Range(0, 7, 2, r"^  random-detect precedence (\d+) "),
    "dscp": Range(0, 63, 2, r"^  (?:random-detect|queue-limit) dscp (\d+) "),
    "cir": Range(8000, 100_000_000_000, 1, r"^  police cir (\d+) "),
    "pir": Range(8000, 64_000_000_000, 1, r"^  police .* pir (\d+) "),
    "bc": Range(1000, 512_000_000, 1, r"^  police .* bc (\d+) "),
    "be": Range(1000, 512_000_000, 1, r"^  police .* be (\d+) "),
    "interface": Range(1, 200_000_000, 1, r"^ bandwidth (\d+)$"),
}
"""Cisco IOS and IOS-XE. Thresholds in bytes are not above the largest queue limit."""
IOS_THRESHOLDS = 29
"""`random-detect dscp` lines of a class (2): class selectors, AF, EF and 8 others."""
IOS_OTHERS = 8
JUNOS = {
    "transmit-rate": Range(3200, 160_000_000_000, 4, r"transmit-rate (\d+[kmg]?);"),
    "transmit-rate percent": Range(1, 100, 4, r"transmit-rate percent (\d+);"),
    "shaping-rate": Range(3200, 160_000_000_000, 4, r"shaping-rate (\d+[kmg]?)\b"),
    "burst-size": Range(0, 1_000_000_000, 4, r"shaping-rate \S+ burst-size (\d+[kmg]?);"),
    "temporal": Range(1, 32_000_000, 6, r"buffer-size temporal (\d+);"),
    "queue-num": Range(0, 7, 4, r"queue-num (\d+);"),
    "rate": Range(8000, 100_000_000_000, 5, r"(?:bandwidth-limit|information-rate) (\d+[kmg]?);"),
    "burst": Range(1500, 2_147_450_880, 5, r"(?:burst-size-limit|burst-size) (\d+[kmg]?);"),
    "fill-level": Range(0, 100, 4, r"(?:fill-level|drop-probability) (\d+)\b"),
}
"""Junos: the ranges of old releases and of M, MX and T Series, which later ones contain."""
TC = {
    "size": Range(1, FIELD, 7, r"\b(?:limit|burst|cburst|min|max|avpkt|memory_limit) (\d+)\b"),
    "quantum": Range(1, FIELD, 7, r"\bquantum (\d+)\b"),
    "flows": Range(1, 65536, 7, r"\bflows (\d+)\b"),
    "r2q": Range(1, FIELD, 7, r"\br2q (\d+)\b"),
    "htb prio": Range(0, 7, 7, r"\bhtb .*\bprio (\d+)\b"),
    "gred prio": Range(1, 16, 7, r"\bvq \d+ .* prio (\d+)$"),
    "vq": Range(0, 15, 7, r"\bvq (\d+)\b"),
    "vqs": Range(1, 16, 7, r"\bvqs (\d+)\b"),
    "bands": Range(1, 16, 7, r"\bbands (\d+)\b"),
    "strict": Range(1, 16, 7, r"\bstrict (\d+)\b"),
    "prio": Range(1, 65535, 7, r"\bfilter .*\bprio (\d+)\b"),
    "probability": Range(0, 1, 7, r"\bprobability (\S+)"),
}
"""Linux. Rates have 64 bits, which no scenario exceeds."""
RANGES = {"ios": IOS, "junos": JUNOS, "tc": TC}
