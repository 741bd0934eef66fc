"""Cisco NX-OS: policies of `type queuing`, one drop curve for each queue."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from perhop.routers.dialect import Dialect
from perhop.routers.model import Average, How, Match, Quantity, Unit
from perhop.routers.mqc import Reader
from perhop.routers.mqc_class import Flavour

if TYPE_CHECKING:
    from perhop.routers.model import Port, Queue
    from perhop.routers.mqc_class import PolicyClass
    from perhop.routers.source import Account, Source


def police_burst(bps: float) -> Quantity:
    """200 ms of the rate."""
    del bps
    return Quantity(0.2, Unit.SECONDS, text="200 ms of the rate")


def defaults(entry: PolicyClass, queue: Queue, account: Account) -> None:
    """Buffers are shared and depend on the device, so a limit is asked for."""
    if entry.random_detect and queue.average is None:
        text = f"class {queue.name}: no `weight` is configured; 0 (instantaneous) here"
        account.find("W02", entry.random_detect_line, text)
        queue.average = Average(1.0, 0, How.DEFAULT, "weight 0")
    if queue.limit is None and queue.line > 0:
        text = f"class {queue.name}: buffers are shared between queues; a fixed limit here"
        account.find("W09", queue.line, text)


def implied_match(name: str) -> Match | None:
    """System classes are chosen by qos-group, which says nothing of codepoints: asked for."""
    if name.endswith("-q-default"):
        return Match(None)
    return None


FLAVOUR = Flavour("nx-os", None, police_burst, defaults, implied_match)


def read(source: Source, account: Account) -> list[Port]:
    """The ports of a configuration."""
    return Reader(source, account, FLAVOUR).read()


def score(source: Source) -> float:
    """Policies with types."""
    found = re.search(
        r"(?im)^\s*(policy-map|class-map|class|service-policy) type (queuing|network-qos|qos)", source.text
    )
    return 9.0 if found else 0.0


DIALECT = Dialect("nx-os", "Cisco NX-OS", score, read)
