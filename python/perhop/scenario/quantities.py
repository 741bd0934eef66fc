"""Units as users write them: those of scenarios, and those that tables and figures print."""

from __future__ import annotations

from collections.abc import Mapping

from perhop import _engine

PRINTED: Mapping[str, str] = {
    "bit/s": "bps",
    "kbit/s": "kbps",
    "Mbit/s": "Mbps",
    "Gbit/s": "Gbps",
    "µs": "us",  # The micro sign, and below the Greek letter, which looks alike.
    "μs": "us",
    "packets": "p",
    "packet": "p",
    "bytes": "B",
}
"""Units as tables and figures print them, each with its name in scenarios; the engine reads the same ones."""
NUMBER = r"(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)"
"""A decimal as a regular expression: `1`, `1.5` or `.5`."""
UNIT = r"(?:[A-Za-zµμ%]+(?:/[a-z]+)?|/[a-z]+)?"
"""A unit, or none, as a regular expression."""
RATES: Mapping[str, float] = {"bps": 1.0, "kbps": 1e3, "Mbps": 1e6, "Gbps": 1e9}
"""Units of rates in scenarios, in bit/s."""
TIMES: Mapping[str, float] = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
"""Units of times, in seconds."""


def canonical(unit: str) -> str:
    """A unit's name in scenarios."""
    return PRINTED.get(unit, unit)


def why_no_rate(text: str) -> str:
    """Return the engine's message on a rate that it does not read."""
    try:
        _engine.quantity("rate", text)
    except ValueError as error:
        return str(error)
    return f"`{text}` is a rate"


def with_printed(factors: Mapping[str, float]) -> dict[str, float]:
    """Factors of units, and of the same units as tables print them."""
    printed = {unit: factors[name] for unit, name in PRINTED.items() if name in factors}
    return {**factors, **printed}
