"""How numbers read on a page: as many digits as their interval carries, else three; one form everywhere."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from perhop.output.numbers import NOISE, exact
from perhop.statistics import is_symmetric

if TYPE_CHECKING:
    from collections.abc import Sequence

THIN = "\N{NARROW NO-BREAK SPACE}"
MINUS = "−"
MISSING = "–"
SIGNIFICANT = 3
GROUPED_FROM = 10_000
MOST_DECIMALS = 9
_QUANTITY = re.compile(r"(-?\d+(?:\.\d+)?(?:e-?\d+)?)([A-Za-z%]*)")
_UNITS = {"bps": "bit/s", "kbps": "kbit/s", "Mbps": "Mbit/s", "Gbps": "Gbit/s", "us": "µs", "p": "packets"}


def figure(value: float | None, half: float | None = None, *, sign: bool = False) -> str:
    """A number: to two digits of its half width, or with three significant digits without one."""
    if value is None or not math.isfinite(value):
        return MISSING
    return _fixed(value, _decimals(half, 2) if half else decimals(value), sign=sign)


def decimals(value: float, half: float | None = None) -> int:
    """Decimals that a number is worth."""
    if half and math.isfinite(half):
        return _carried(half)
    return _decimals(value, SIGNIFICANT)


def estimate(value: float | None, half: float | None, *, sign: bool = False) -> str:
    """`2.11 ± 0.10`, or the number alone without an interval."""
    if value is None or not math.isfinite(value) or half is None or not math.isfinite(half):
        return figure(value, sign=sign)
    if half <= NOISE * abs(value):
        half = 0.0
    # An interval far wider than its mean needs no decimals of its own, one of no width none of the mean's.
    places = decimals(value, half)
    return f"{_fixed(value, places, sign=sign)} ± {_fixed(half, places)}"


def estimated(value: float, low: float | None, high: float | None) -> str:
    """`2.11 ± 0.10`; with sides that differ `2.11 (1.90–2.61)`, `below 0.05`, `61.2 (over 60.3)`.

    Args:
        value: A mean, a share or a percentile.
        low: Lower end of its interval; None without an interval, infinite where it is not known.
        high: Upper end; None where it is not known.
    """
    if low is None:
        return figure(value)
    if math.isinf(low) or high is None or math.isinf(high):
        known = f"over {figure(low)}" if math.isfinite(low) else "not known"
        if high is not None and math.isfinite(high):
            known = f"under {figure(high)}"
        return f"{figure(value)} ({known})"
    half = (high - low) / 2
    if is_symmetric(value, low, high) or half <= NOISE * abs(value):
        return estimate(value, half)
    if value <= 0 <= low:
        return f"below {_fixed(high, _decimals(high, 2))}"
    places = _carried(half)
    if value >= high:
        return f"{_fixed(value, places)} (over {_fixed(low, places)})"
    dash = "–" if low >= 0 else " to "
    return f"{_fixed(value, places)} ({_fixed(low, places)}{dash}{_fixed(high, places)})"


def interval(low: float, high: float, *, sign: bool = False) -> str:
    """`−0.11 to +0.09`."""
    places = _decimals((high - low) / 2, 2) if high > low else decimals(high)
    return f"{_fixed(low, places, sign=sign)} to {_fixed(high, places, sign=sign)}"


def count(value: float) -> str:
    """A count or a mean of counts, to the unit."""
    return _fixed(value, 0)


def percent(share: float | None, half: float | None = None) -> str:
    """A fraction in percent, without the sign: to a hundredth at most."""
    if share is None or not math.isfinite(share):
        return MISSING
    if half is not None:
        places = min(decimals(share * 100, half * 100), 2)
        return f"{_fixed(share * 100, places)} ± {_fixed(half * 100, places)}"
    return _fixed(share * 100, min(_decimals(share * 100, SIGNIFICANT), 2))


def quantity(text: str) -> str:
    """A value of a scenario, such as `40.3155ms`, with all its digits, and a space before the unit."""
    found = _QUANTITY.fullmatch(text)
    if found is None:
        return text
    unit = _UNITS.get(found[2], found[2])
    whole, point, part = exact(float(found[1])).partition(".")
    number = f"{_grouped(whole)}{point}{part}"
    return f"{number}{THIN}{unit}" if unit else number


def tick_labels(values: Sequence[float]) -> list[str]:
    """The numbers of an axis, all with the decimals that tell them apart."""
    largest = max(map(abs, values), default=0.0)
    places = next(
        (n for n in range(MOST_DECIMALS) if all(abs(v - round(v, n)) <= 1e-9 * largest for v in values)),
        MOST_DECIMALS,
    )
    return [_fixed(value, places) for value in values]


def _carried(half: float) -> int:
    """Decimals for one significant digit of a half width, two where the first is a 1."""
    places = _decimals(half, 2)
    leading = f"{half:.1e}"[0]
    return places if leading == "1" or not places else places - 1


def _decimals(value: float, significant: int) -> int:
    """Decimals of a number with so many significant digits, after rounding."""
    if not value or not math.isfinite(value):
        return 0
    magnitude = int(f"{abs(value):.{significant - 1}e}".partition("e")[2])
    return max(0, min(significant - 1 - magnitude, MOST_DECIMALS))


def _grouped(whole: str) -> str:
    """The digits before the point in groups of three, from `GROUPED_FROM` on."""
    number = int(whole.replace(MINUS, "-"))
    return f"{number:,}".replace(",", THIN).replace("-", MINUS) if abs(number) >= GROUPED_FROM else whole


def _fixed(value: float, places: int, *, sign: bool = False) -> str:
    text = f"{abs(round(value, places)):.{places}f}"
    whole, point, part = text.partition(".")
    whole = _grouped(whole)
    nonzero = any(digit not in "0." for digit in text)
    mark = MINUS if value < 0 else "+" if sign else ""
    return f"{mark if nonzero else ''}{whole}{point}{part}"
