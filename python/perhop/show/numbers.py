"""Numbers as text: with the digits that their intervals support, in terminals and on pages.

Functions write a number as terminals show it. `Style` says what pages do otherwise: long numbers are in
groups of three digits, and a number without an interval has three significant digits in place of four.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal

from perhop.statistics.intervals import Estimate, is_symmetric

MISSING = "–"
"""The sign for a number that is not known."""
MOST_DECIMALS = 6
MOST_DIGITS = 4
PAGE_DECIMALS = 9
PAGE_DIGITS = 3
THIN = "\N{NARROW NO-BREAK SPACE}"
_WHOLE = re.compile(r"(?<![\d.])\d{5,}")
"""The digits before the point of a number that is long enough to be grouped."""
_QUANTITY = re.compile(r"(-?\d+(?:\.\d+)?(?:e-?\d+)?)([A-Za-z%]*)")
_UNITS = {"bps": "bit/s", "kbps": "kbit/s", "Mbps": "Mbit/s", "Gbps": "Gbit/s", "us": "µs", "p": "packets"}
NOISE = 1e-9
"""An interval that is narrower than this part of its mean is none but for rounding errors."""


def measured(mean: float, half_width: float | None = None, *, sign: bool = False) -> str:
    """A mean as far as its interval lets it be known: `1.534 ± 0.024`, `20.3 ± 1.2`.

    Two digits of the half width, but no more than four of the mean, as without an interval.
    """
    if half_width is None:
        return significant(mean, sign=sign)
    if half_width <= NOISE * abs(mean):
        return f"{significant(mean, sign=sign)} ± 0"
    decimals = min(_decimals(half_width, 2), _decimals(mean, MOST_DIGITS) if mean else MOST_DECIMALS)
    return f"{fixed(mean, decimals, sign=sign)} ± {half_width:.{decimals}f}"


def shown(found: Estimate, factor: float = 1.0) -> str:
    """An estimate in another unit, with its interval; see `estimated`."""
    ends = (None, None) if found.ci95 is None else (end * factor for end in found.ci95)
    return estimated(found.mean * factor, *ends)


def estimated(mean: float, low: float | None = None, high: float | None = None) -> str:
    """A value with its interval: `1.534 ± 0.024`, or `0.07 (0.02–0.31)` where its sides differ.

    Where no run had an event, `below 0.05`; where the interval ends on one side alone, `100 (over 99.95)` or
    `0 (or more)`.

    Args:
        mean: The value.
        low: Lower end of the interval; None without an interval, infinite where it is not known.
        high: Upper end; None or infinite where it is not known, or without an interval.
    """
    if low is None:
        return significant(mean)
    if math.isinf(low):
        known = "not known" if high is None or math.isinf(high) else f"under {significant(high, 3)}"
        return f"{significant(mean, 3)} ({known})"
    if high is None or math.isinf(high):
        known = f"over {significant(low, 3)}" if low < mean else "or more"
        return f"{significant(mean, 3)} ({known})"
    half = (high - low) / 2
    if is_symmetric(mean, low, high) or 2 * half <= NOISE * abs(mean):
        return measured(mean, half)
    if mean <= 0 <= low:
        return f"below {significant(max(high, 10**-MOST_DECIMALS), 2)}"  # 0 is another answer
    return _with_ends(mean, low, high)


def _with_ends(mean: float, low: float, high: float) -> str:
    decimals = min(
        _decimals((high - low) / 2, 2), _decimals(mean, MOST_DIGITS + 1) if mean else MOST_DECIMALS
    )
    value, least, most = (fixed(one, decimals) for one in (mean, low, high))
    if mean and not round(mean, decimals):
        value = significant(mean, 1)  # 0 is another answer
    if mean >= high:
        return f"{value} (over {least})"
    return f"{value} ({least}–{most})" if low >= 0 else f"{value} ({least} to {most})"


def interval(low: float, high: float, *, sign: bool = False) -> str:
    """Both ends of an interval, to two digits of half its length: `−0.11 to +0.09`."""
    half = (high - low) / 2
    if half <= NOISE * max(abs(low), abs(high)):
        return f"{significant(low, sign=sign)} to {significant(high, sign=sign)}"
    decimals = _decimals(half, 2)
    return f"{fixed(low, decimals, sign=sign)} to {fixed(high, decimals, sign=sign)}"


def significant(value: float, digits: int = MOST_DIGITS, *, sign: bool = False) -> str:
    """A number with so many significant digits, without an exponent: `0.1235`, `24.00`."""
    return "0" if value == 0 else fixed(value, _decimals(value, digits), sign=sign)


def short(value: float, digits: int = MOST_DIGITS) -> str:
    """Return a number as `significant` does, without zeros at the end: `3.333`, `2`."""
    text = significant(value, digits)
    return text.rstrip("0").rstrip(".") if "." in text else text


def exact(value: float) -> str:
    """A number that is an input and not measured: all its digits, without an exponent: `20.0058`, `0.00001`.

    Fifteen significant digits, which every decimal number of as many has as a float (IEEE 754), so that a
    change of the unit does not show rounding errors of the computation.
    """
    text = f"{Decimal(f'{value:.15g}'):f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text).replace("-", "−")


def at_most(value: float, factor: float = 1.0) -> str:
    """A bound in another unit, rounded up to four significant digits: what is shown holds, too.

    Whole numbers keep all their digits.
    """
    found = Decimal(f"{value:.15g}") * Decimal(f"{factor:.15g}")
    if found == found.to_integral_value():
        return f"{found.to_integral_value():f}"
    last = Decimal(1).scaleb(min(found.adjusted() + 1 - MOST_DIGITS, 0))
    text = f"{found.quantize(last, ROUND_CEILING):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def fixed(value: float, decimals: int, *, sign: bool = False) -> str:
    """A number with so many decimals, a real minus sign, and no sign before what rounds to zero."""
    rounded = round(value, decimals)
    text = f"{rounded + 0.0:{'+' if sign and rounded else ''}.{decimals}f}"
    return text.replace("-", "−")


def _decimals(value: float, digits: int) -> int:
    """Return how many decimals show so many significant digits."""
    return min(max(digits - 1 - math.floor(math.log10(abs(value))), 0), MOST_DECIMALS)


def rounded(value: float) -> float:
    """The value to nine significant digits: enough for any reader, and the same text on every machine.

    Raises:
        ValueError: The value is not finite.
    """
    if not math.isfinite(value):
        raise ValueError(f"{value} has no place in a result")
    return float(f"{value:.8e}")


@dataclass(frozen=True, slots=True)
class Style:
    """The form of numbers in one medium; the functions of this module are those of `TERMINAL`.

    Attributes:
        is_page: Long numbers are in groups, and one without an interval has fewer digits.
    """

    is_page: bool

    def shown(self, found: Estimate, factor: float = 1.0) -> str:
        """An estimate in another unit, with its interval; see `estimated`."""
        return self._read(shown(found, factor))

    def estimated(self, mean: float, low: float | None = None, high: float | None = None) -> str:
        """A value with its interval; see `estimated`."""
        return self._read(estimated(mean, low, high))

    def interval(self, low: float, high: float, *, sign: bool = False) -> str:
        """Both ends of an interval; see `interval`."""
        return self._read(interval(low, high, sign=sign))

    def measured(self, value: float, half: float | None, *, sign: bool = False) -> str:
        """A value with half the width of its interval: `2.113 ± 0.035`; the value alone without one."""
        if self.is_page and (half is None or not math.isfinite(half) or not math.isfinite(value)):
            return figure(value, sign=sign)
        return self._read(measured(value, half, sign=sign))

    def value(self, value: float, half: float | None, *, sign: bool = False) -> str:
        """The value alone, to two digits of half the width of the interval beside it."""
        if self.is_page:
            return figure(value, half, sign=sign)
        return measured(value, half, sign=sign).partition(" ± ")[0]

    def _read(self, text: str) -> str:
        return _in_groups(text) if self.is_page else text


TERMINAL, PAGE = Style(is_page=False), Style(is_page=True)


def figure(value: float | None, half: float | None = None, *, sign: bool = False) -> str:
    """A number of a page: to two digits of its half width, or with three significant digits without one."""
    if value is None or not math.isfinite(value):
        return MISSING
    places = _page_decimals(half, 2) if half else _page_decimals(value, PAGE_DIGITS)
    return _grouped(value, places, sign=sign)


def count(value: float) -> str:
    """A count or a mean of counts on a page, to the unit."""
    return _grouped(value, 0)


def percent(share: float | None) -> str:
    """A fraction in percent on a page, without the sign: to a hundredth at most."""
    if share is None or not math.isfinite(share):
        return MISSING
    return _grouped(share * 100, min(_page_decimals(share * 100, PAGE_DIGITS), 2))


def quantity(text: str) -> str:
    """A value of a scenario, such as `40.3155ms`, with all its digits, and a space before the unit."""
    found = _QUANTITY.fullmatch(text)
    if found is None:
        return text
    unit = _UNITS.get(found[2], found[2])
    number = _in_groups(exact(float(found[1])))
    return f"{number}{THIN}{unit}" if unit else number


def tick_labels(values: Sequence[float]) -> list[str]:
    """The numbers of an axis, all with the decimals that tell them apart."""
    largest = max(map(abs, values), default=0.0)
    places = next(
        (n for n in range(PAGE_DECIMALS) if all(abs(v - round(v, n)) <= 1e-9 * largest for v in values)),
        PAGE_DECIMALS,
    )
    return [_grouped(value, places) for value in values]


def _page_decimals(value: float, digits: int) -> int:
    """Return how many decimals show so many significant digits of a number after rounding; none for 0."""
    if not value or not math.isfinite(value):
        return 0
    magnitude = int(f"{abs(value):.{digits - 1}e}".partition("e")[2])
    return max(0, min(digits - 1 - magnitude, PAGE_DECIMALS))


def _in_groups(text: str) -> str:
    """A text with the whole parts of its long numbers in groups of three digits."""
    return _WHOLE.sub(lambda found: f"{int(found[0]):,}".replace(",", THIN), text)


def _grouped(value: float, places: int, *, sign: bool = False) -> str:
    return _in_groups(fixed(value, places, sign=sign))
