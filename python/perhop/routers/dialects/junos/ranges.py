"""The numbers that statements of Junos take.

They are those of old releases and of M, MX and T Series, which later ones contain.

Sources: (1) Juniper, Junos OS 12.3 and 13.1 references of each statement; (2) Juniper, hierarchical
policers, Junos OS 13.2; (3) Juniper, vSRX and Junos 10.1 references of `buffer-size`.
"""

from __future__ import annotations

from perhop.routers.outgoing import Range

RANGES = {
    "transmit-rate": Range(3200, 160_000_000_000, 1, r"transmit-rate (\d+[kmg]?);"),
    "transmit-rate percent": Range(1, 100, 1, r"transmit-rate percent (\d+);"),
    "shaping-rate": Range(3200, 160_000_000_000, 1, r"shaping-rate (\d+[kmg]?)\b"),
    "burst-size": Range(0, 1_000_000_000, 1, r"shaping-rate \S+ burst-size (\d+[kmg]?);"),
    "temporal": Range(1, 32_000_000, 3, r"buffer-size temporal (\d+);"),
    "queue-num": Range(0, 7, 1, r"queue-num (\d+);"),
    "rate": Range(8000, 100_000_000_000, 2, r"(?:bandwidth-limit|information-rate) (\d+[kmg]?);"),
    "burst": Range(1500, 2_147_450_880, 2, r"(?:burst-size-limit|burst-size) (\d+[kmg]?);"),
    "fill-level": Range(0, 100, 1, r"(?:fill-level|drop-probability) (\d+)\b"),
}
"""Ranges by statement."""
