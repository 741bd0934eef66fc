"""Ranges of values as users write them, such as `"2Mbps..10Mbps"` or `"0.01..0.2 log"`."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from perhop.errors import PerhopError
from perhop.scenario.quantities import NUMBER, UNIT, canonical

Value: TypeAlias = "str | int | float | bool"

_NUMBER = rf"({NUMBER})(?: (?!log))?({UNIT})"
RANGE = rf"\s*{_NUMBER}\s*\.\.\s*{_NUMBER}(\s+log)?\s*"
"""A range as text."""
_RANGE = re.compile(RANGE)
COUNTED = frozenset({"p", "B"})
"""Units of which there are no fractions: packets and bytes."""


@dataclass(frozen=True, slots=True)
class Range:
    """A range from `low` to `high`, both included.

    Attributes:
        low: In `unit`.
        high: In `unit`.
        unit: Written behind the number; empty for a plain number.
        whole: Whole numbers only.
        log: Spread evenly over orders of magnitude.
    """

    low: float
    high: float
    unit: str
    whole: bool
    log: bool

    @property
    def size(self) -> int | None:
        """The number of values; None of a range of fractions."""
        return int(self.high) - int(self.low) + 1 if self.whole else None

    def at(self, part: float) -> Value:
        """The value below which this part of the range lies; 0 ≤ part < 1."""
        low, high = (self.low, self.high + 1) if self.whole else (self.low, self.high)
        if self.log:
            low, high = math.log(low), math.log(high)
        number = low + (high - low) * part
        return self.value(math.exp(number) if self.log else number)

    def value(self, number: float) -> Value:
        """A number of this range as a scenario writes it; fractions to six significant digits."""
        number = min(max(number, self.low), self.high + (1 if self.whole else 0))
        if self.whole:
            number = min(math.floor(number), int(self.high))
        if self.unit:
            return f"{plain(number)}{self.unit}"
        return int(number) if self.whole else float(plain(number))


def parse_range(text: str, where: str) -> Range:
    """Read a range.

    Raises:
        PerhopError: It is none, its ends have two units, or are in the wrong order.
    """
    found = _RANGE.fullmatch(text)
    if found is None:
        raise PerhopError(
            f'{where}: {text!r} is no range; write such as "2Mbps..10Mbps", "1..20" or "0.01..0.2 log"'
        )
    low_text, low_unit, high_text, high_unit, log = found.groups()
    low_unit, high_unit = canonical(low_unit), canonical(high_unit)
    if low_unit != high_unit:
        units = " and ".join(f"`{unit}`" if unit else "none" for unit in (low_unit, high_unit))
        raise PerhopError(f"{where}: {text!r}: both ends need the same unit, not {units}")
    low, high = float(low_text), float(high_text)
    if not low < high:
        raise PerhopError(f"{where}: {text!r}: the first end must be the lower one")
    if not math.isfinite(high):
        raise PerhopError(f"{where}: {text!r}: the second end is larger than any number; give a smaller one")
    if log and low == 0:
        raise PerhopError(f"{where}: {text!r}: a logarithmic range begins above 0")
    integers = "." not in low_text and "." not in high_text
    whole = integers and (not low_unit or low_unit in COUNTED)
    return Range(low, high, low_unit, whole, bool(log))


def plain(number: float) -> str:
    """A number to six significant digits, without an exponent: scenarios know none."""
    if number == int(number) and abs(number) < 1e15:
        return str(int(number))
    digits = max(0, 5 - math.floor(math.log10(abs(number))))
    return f"{number:.{digits}f}".rstrip("0").rstrip(".") if digits else f"{number:.0f}"


def text_of(value: Value) -> str:
    """A value as a template or a table's cell shows it."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{Decimal(repr(value)):f}" if isinstance(value, float) else str(value)
