"""Values of VyOS's leaves: rates, amounts, times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perhop.routers import units
from perhop.routers.linux import quantities as tc_units
from perhop.routers.model import How, Quantity, Rate, RateUnit, Unit
from perhop.routers.source import MEANINGS

if TYPE_CHECKING:
    from collections.abc import Callable

    from perhop.routers.dialects.vyos.policies import Class
    from perhop.routers.source import Account

RATES = {
    "": 1e3,
    **{f"{p}{unit}": 1000.0**n for n, p in enumerate(["", "k", "m", "g"]) for unit in ("bit", "bps")},
}
"""A rate without a suffix is kbit/s in the code, although the help says bit/s."""
TIMES = {"": 1e-3, "ms": 1e-3, "s": 1.0, "us": 1e-6}
"""Seconds; a time without a suffix is in milliseconds."""
BURST = 15 * 1024


class Values:
    """Reads the values of leaves."""

    def __init__(self, account: Account) -> None:
        """Findings go to the account."""
        self._account = account

    def bad(self, key: str, value: str, line: int) -> None:
        """Report a value that is not understood."""
        text = f"not understood: `{key} {value}`"
        if MEANINGS.search(key):
            self._account.miss_part(line, text)
        else:
            self._account.find("W13", line, text)

    def rate(self, entry: Class, key: str) -> Rate | None:
        """A rate in bit/s or percent; None: there is none, or it is that of the interface."""
        value, line = entry.get(key)
        if not value:
            return None
        text = f"{key} {value}"
        if value == "auto":
            self._account.find("W01", line, f"`{text}`: the speed of the interface; give --rate")
            return None
        if value.endswith("%") and units.number(value[:-1]):
            return Rate(float(value[:-1]), RateUnit.PERCENT, line, text=text)
        bps = units.scaled(value, RATES)
        if not bps:
            self.bad(key, value, line)
            return None
        if units.number(value) is not None:
            self._account.find("W01", line, f"`{text}`: a rate without a suffix is kbit/s in VyOS's code")
        return Rate(bps, line=line, text=text)

    def time(self, entry: Class, key: str) -> tuple[float | None, int]:
        """A time in seconds with its line."""
        value, line = entry.get(key)
        return units.scaled(value, TIMES) if value else None, line

    def amount(
        self, entry: Class, key: str, unit: Unit, parse: Callable[[str], float | None] = units.whole
    ) -> Quantity | None:
        """An amount above 0."""
        value, line = entry.get(key)
        found = parse(value) if value else None
        if found:
            return Quantity(found, unit, line, text=f"{key} {value}")
        if value:
            self.bad(key, value, line)
        return None

    def burst(self, entry: Class) -> Quantity:
        """The burst of a shaper or a policer."""
        given = self.amount(entry, "burst", Unit.BYTES, tc_units.size)
        return given or Quantity(BURST, Unit.BYTES, 0, How.DEFAULT, text="burst 15k")

    def packets(self, entry: Class, key: str, default: int, who: str) -> Quantity:
        """A number of packets, which is said where it is not configured."""
        given = self.amount(entry, key, Unit.PACKETS)
        if given is None:
            self._account.find("W04", entry.line, f"{who}: no {key}; {default} packets")
        return given or Quantity(default, Unit.PACKETS, 0, How.DEFAULT, text=f"{default} packets")
