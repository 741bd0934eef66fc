"""Cisco IOS-XR: blocks end with `end-policy-map`; a packet of a threshold is 256 bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perhop.routers.dialect import Dialect
from perhop.routers.dialects.cisco.ios import group
from perhop.routers.dialects.cisco.policies import Flavour
from perhop.routers.dialects.cisco.reader import Reader
from perhop.routers.model import Average, How, Quantity, Unit

if TYPE_CHECKING:
    from perhop.routers.dialects.cisco.policies import PolicyClass
    from perhop.routers.model import Port, PortQueue
    from perhop.routers.source import Account, Source

PACKET = 256.0
LIMIT_S = 0.1
STRICT_LIMIT_S = 0.01


def police_burst(bps: float) -> Quantity:
    """10 ms of the rate (NCS 540)."""
    del bps
    return Quantity(0.01, Unit.SECONDS, text="10 ms of the rate")


def defaults(entry: PolicyClass, queue: PortQueue, account: Account) -> None:
    """Queue limits of CRS and ASR 9000; an average that cannot be set."""
    if queue.limit is None:
        time = LIMIT_S if queue.level is None else STRICT_LIMIT_S
        text = f"{time * 1000:g} ms of the guaranteed rate"
        queue.limit = Quantity(time, Unit.SECONDS, 0, How.DEFAULT, text=text)
        text = f"class {queue.name}: no queue limit is configured; {text} (CRS, ASR 9000; 10 ms on NCS 500)"
        account.find("W04", queue.line or entry.place, text)
    if not entry.random_detect:
        return
    line = entry.random_detect_line
    if queue.average is None:
        text = f"class {queue.name}: IOS-XR has a fixed average or none (ASR 9000 compares the queue itself)"
        account.find("W02", line, f"{text}; instantaneous here")
        queue.average = Average(1.0, 0, How.ASSUMED, "cannot be configured")
    if not queue.curves:
        text = (
            f"class {queue.name}: no thresholds are configured, the platform's are not known; tail drop here"
        )
        account.find("W04", line, text)


FLAVOUR = Flavour("ios-xr", PACKET, police_burst, defaults, group)


def read(source: Source, account: Account) -> list[Port]:
    """The ports of a configuration."""
    return Reader(source, account, FLAVOUR).read()


def score(source: Source) -> float:
    """Blocks that end by name."""
    text = source.text.lower()
    return 8.0 * ("end-policy-map" in text or "end-class-map" in text) + 2.0 * ("!! ios xr" in text)


DIALECT = Dialect("ios-xr", "Cisco IOS-XR", score=score, read=read)
