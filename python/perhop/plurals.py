"""Numbers as words that messages share."""

from __future__ import annotations


def counted(number: int, one: str, more: str | None = None) -> str:
    """A number of things: "1 run", "3 runs"."""
    return f"{number:,} {one if number == 1 else more or one + 's'}"


def counted_are(number: int, one: str) -> str:
    """A number of things as the subject of a sentence: "1 run is", "3 runs are"."""
    return f"{counted(number, one)} {'is' if number == 1 else 'are'}"


def lasting(seconds: float) -> str:
    """A duration: "34 s", "5 min", "3 h", "11 days"."""
    for unit, length, most in (("s", 1, 120), ("min", 60, 120), ("h", 3600, 48), ("days", 86400, 730)):
        if seconds < length * most:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds / (365.25 * 86400):,.0f} years"
