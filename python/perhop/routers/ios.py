"""Cisco IOS and IOS-XE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perhop.routers import units
from perhop.routers.dialect import Dialect
from perhop.routers.model import Average, Curve, Drop, How, Match, Quantity, Selector, Unit
from perhop.routers.mqc import Reader
from perhop.routers.mqc_class import Flavour

if TYPE_CHECKING:
    from perhop.routers.model import Port, Queue
    from perhop.routers.mqc_class import PolicyClass
    from perhop.routers.source import Account, Source

LIMIT = 64
"""Packets: the queue limit of IOS where none is configured; ASR 1000 has 50 ms of packets of 1500 bytes."""
STRICT_LIMIT = 512
EXPONENT = 9


def police_burst(bps: float) -> Quantity:
    """250 ms of the rate, at least 1500 bytes."""
    if bps <= 0:
        return Quantity(0.25, Unit.SECONDS, text="250 ms of the rate")
    return Quantity(max(1500.0, bps / 32), Unit.BYTES, text="250 ms of the rate, at least 1500 B")


def defaults(entry: PolicyClass, queue: Queue, account: Account) -> None:
    """Queue limits, averaging weights and curves that are not configured."""
    place = queue.line or entry.place
    if queue.limit is None:
        number = STRICT_LIMIT if queue.level is not None else LIMIT
        text = f"IOS: {number} packets"
        queue.limit = Quantity(number, Unit.PACKETS, 0, How.DEFAULT, text=text)
        said = "some platforms have 50 ms of the rate" if queue.level is None else "of a priority class"
        text = f"class {queue.name}: no queue limit is configured; {number} packets ({said})"
        account.find("W04", place, text)
    if not entry.random_detect:
        return
    if queue.average is None:
        text = (
            f"class {queue.name}: no weighting constant; {EXPONENT} (1/512) here, 4 (1/16) on some platforms"
        )
        account.find("W02", entry.random_detect_line, text)
        queue.average = Average(2.0**-EXPONENT, 0, How.DEFAULT, "2^-9")
    if not queue.curves:
        _curves(entry, queue, account)


def _curves(entry: PolicyClass, queue: Queue, account: Account) -> None:
    """IOS-XE's thresholds by precedence: min = limit (1/4 + p/32), max = limit / 2, at most 1/10."""
    line = entry.random_detect_line
    text = (
        f"class {queue.name}: no thresholds are configured; those of IOS-XE by precedence, of its queue limit"
    )
    if entry.random_detect == "dscp":
        text += "; `dscp-based` has its own by codepoint, which may differ: see `show policy-map interface`"
    account.find("W04", line, text)
    for p in range(8):
        low = Quantity(100 * (1 / 4 + p / 32), Unit.PERCENT, line, How.DEFAULT, text=f"precedence {p}: min")
        high = Quantity(50, Unit.PERCENT, line, How.DEFAULT, text=f"precedence {p}: max")
        curve = Curve.ramp(low, high, 0.1, line, How.DEFAULT)
        codes = units.of_precedence(p)
        if queue.match.codepoints is not None:
            codes &= queue.match.codepoints
        if codes:
            queue.curves.append(Drop(Selector(f"precedence {p}", codes), curve))


def implied_match(name: str) -> Match | None:
    """IOS has no classes without a class map but class-default."""
    del name
    return None


FLAVOUR = Flavour("ios", None, police_burst, defaults, implied_match)


def read(source: Source, account: Account) -> list[Port]:
    """The ports of a configuration."""
    return Reader(source, account, FLAVOUR).read()


def score(source: Source) -> float:
    """Policy maps without what IOS-XR and NX-OS have."""
    text = source.text.lower()
    return sum(word in text for word in ("policy-map ", "class-map ", "random-detect", "service-policy"))


DIALECT = Dialect("ios", "Cisco IOS and IOS-XE", score, read)
