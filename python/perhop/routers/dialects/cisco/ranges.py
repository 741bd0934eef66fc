"""The numbers that commands of IOS and IOS-XE take.

Sources: (1) Cisco's models of IOS-XE, as `CiscoDevNet/terraform-provider-iosxe` 0.14 documents them
(`policy_map`, `interface_ethernet`); (2) Cisco MWR 2941 and ME 3600X command references; (3) Cisco
Catalyst 3650 command reference, IOS-XE 16.5.
"""

from __future__ import annotations

from perhop.routers.outgoing import Range

RANGES = {
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
"""Ranges by command. Thresholds in bytes are not above the largest queue limit."""
OTHER_CODEPOINTS = 8
"""Codepoints of a class with `random-detect dscp` lines beside class selectors, AF and EF (2)."""
