"""How numbers read on a page: estimates as in terminals, others with three digits, long ones in groups."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from perhop.show import numbers
from perhop.show.numbers import exact, fixed, measured

if TYPE_CHECKING:
    from collections.abc import Sequence

THIN = "\N{NARROW NO-BREAK SPACE}"
MISSING = "–"
SIGNIFICANT = 3
MOST_DECIMALS = 9
_WHOLE = re.compile(r"(?<![\d.])\d{5,}")
"""The digits before the point of a number that is long enough to be grouped."""
_QUANTITY = re.compile(r"(-?\d+(?:\.\d+)?(?:e-?\d+)?)([A-Za-z%]*)")
_UNITS = {"bps": "bit/s", "kbps": "kbit/s", "Mbps": "Mbit/s", "Gbps": "Gbit/s", "us": "µs", "p": "packets"}


def figure(value: float | None, half: float | None = None, *, sign: bool = False) -> str:
    """A number: to two digits of its half width, or with three significant digits without one."""
    if value is None or not math.isfinite(value):
        return MISSING
    places = _decimals(half, 2) if half else _decimals(value, SIGNIFICANT)
    return _fixed(value, places, sign=sign)


def estimate(value: float | None, half: float | None, *, sign: bool = False) -> str:
    """`2.113 ± 0.035`, or the number alone without an interval."""
    if value is None or not math.isfinite(value) or half is None or not math.isfinite(half):
        return figure(value, sign=sign)
    return _in_groups(measured(value, half, sign=sign))


def estimated(value: float, low: float | None, high: float | None) -> str:
    """A value with its interval as in terminals; see `perhop.show.numbers.estimated`.

    Args:
        value: A mean, a share or a percentile.
        low: Lower end of its interval; None without an interval, infinite where it is not known.
        high: Upper end; None where it is not known.
    """
    return _in_groups(numbers.estimated(value, low, high))


def interval(low: float, high: float, *, sign: bool = False) -> str:
    """`−0.11 to +0.09`; see `perhop.show.numbers.interval`."""
    return _in_groups(numbers.interval(low, high, sign=sign))


def count(value: float) -> str:
    """A count or a mean of counts, to the unit."""
    return _fixed(value, 0)


def percent(share: float | None) -> str:
    """A fraction in percent, without the sign: to a hundredth at most."""
    if share is None or not math.isfinite(share):
        return MISSING
    return _fixed(share * 100, min(_decimals(share * 100, SIGNIFICANT), 2))


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
        (n for n in range(MOST_DECIMALS) if all(abs(v - round(v, n)) <= 1e-9 * largest for v in values)),
        MOST_DECIMALS,
    )
    return [_fixed(value, places) for value in values]


def _decimals(value: float, significant: int) -> int:
    """Decimals of a number with so many significant digits, after rounding."""
    if not value or not math.isfinite(value):
        return 0
    magnitude = int(f"{abs(value):.{significant - 1}e}".partition("e")[2])
    return max(0, min(significant - 1 - magnitude, MOST_DECIMALS))


def _in_groups(text: str) -> str:
    """A text with the whole parts of its long numbers in groups of three digits."""
    return _WHOLE.sub(lambda found: f"{int(found[0]):,}".replace(",", THIN), text)


def _fixed(value: float, places: int, *, sign: bool = False) -> str:
    return _in_groups(fixed(value, places, sign=sign))
