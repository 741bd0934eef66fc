"""Rates and amounts of Cisco's commands, and keywords that are abbreviated."""

from __future__ import annotations

from perhop.routers import units
from perhop.routers.model import Quantity, Rate, RateUnit, Unit

AMOUNTS: dict[str, tuple[Unit, float]] = {
    **dict.fromkeys(("packets", "packet"), (Unit.PACKETS, 1)),
    "bytes": (Unit.BYTES, 1),
    "kbytes": (Unit.BYTES, 1e3),
    "mbytes": (Unit.BYTES, 1e6),
    "gbytes": (Unit.BYTES, 1e9),
    "ms": (Unit.SECONDS, 1e-3),
    "us": (Unit.SECONDS, 1e-6),
    "percent": (Unit.PERCENT, 1),
}
RATES: dict[str, tuple[RateUnit, float]] = {
    "bps": (RateUnit.BPS, 1),
    "kbps": (RateUnit.BPS, 1e3),
    "kbit": (RateUnit.BPS, 1e3),
    "mbps": (RateUnit.BPS, 1e6),
    "gbps": (RateUnit.BPS, 1e9),
    "pps": (RateUnit.PACKETS, 1),
    "percent": (RateUnit.PERCENT, 1),
    "%": (RateUnit.PERCENT, 1),
    "per-thousand": (RateUnit.PERCENT, 0.1),
    "per-million": (RateUnit.PERCENT, 1e-4),
}
"""Percents are of the port's rate."""
LEADING = RATES.keys() - {"pps", "%"}
"""Units that may stand before the number."""


def rate(words: list[str], line: int, text: str, bare: float = 1.0) -> tuple[Rate | None, list[str]]:
    """Read a rate at the head of words, whose bare numbers count in `bare` bit/s; and what follows it.

    >>> rate(["percent", "20", "5"], 1, "")[0].unit, rate(["2", "mbps", "5"], 1, "")[1], rate(["x"], 1, "")
    (<RateUnit.PERCENT: 'percent'>, ['5'], (None, ['x']))
    """
    if len(words) > 1 and words[0].lower() in LEADING and units.number(words[1]) is not None:
        words = [words[1], words[0], *words[2:]]
    value = units.number(words[0]) if words else None
    if value is None:
        bps = units.scaled(words[0], units.DECIMAL) if words else None
        return (None, words) if bps is None else (Rate(bps, line=line, text=text), words[1:])
    unit = words[1].lower() if len(words) > 1 else ""
    if unit not in RATES:
        return Rate(value * bare, line=line, text=text), words[1:]
    kind, factor = RATES[unit]
    return Rate(value * factor, kind, line, text=text), words[2:]


def amount(words: list[str], line: int, text: str, each: float | None) -> tuple[Quantity | None, list[str]]:
    """Read an amount at the head of words, and what follows it; `each`: bytes of what is called a packet."""
    if len(words) > 1 and words[0].lower() in {
        "percent",
        "bytes",
    }:  # Catalyst writes the unit first, NX-OS bytes
        words = [words[1], words[0], *words[2:]]
    if not words or units.number(words[0]) is None:
        return None, words
    unit = words[1].lower() if len(words) > 1 else ""
    rest = words[2:] if unit in AMOUNTS else words[1:]
    kind, factor = AMOUNTS.get(unit, (Unit.PACKETS, 1))
    each = each if kind is Unit.PACKETS else None
    return Quantity(float(words[0]) * factor, kind, line, each=each, text=text), rest


def keyword(word: str, *choices: str) -> str | None:
    """The keyword that a word is, or abbreviates without doubt (three letters at least)."""
    word = word.lower()
    if word in choices:
        return word
    if len(word) < 3:
        return None
    found = [choice for choice in choices if choice.startswith(word)]
    return found[0] if len(found) == 1 else None
