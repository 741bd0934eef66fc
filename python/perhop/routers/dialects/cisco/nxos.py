"""Cisco NX-OS: policies of `type queuing`, one drop curve for each queue."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from perhop.routers.dialect import Dialect
from perhop.routers.dialects.cisco.policies import Flavour
from perhop.routers.dialects.cisco.reader import Reader
from perhop.routers.model import Average, How, Quantity, Unit

if TYPE_CHECKING:
    from perhop.routers.dialects.cisco.policies import PolicyClass
    from perhop.routers.model import Port, PortQueue, Rate
    from perhop.routers.source import Account, Source


def police_burst(bps: float) -> Quantity:
    """200 ms of the rate."""
    del bps
    return Quantity(0.2, Unit.SECONDS, text="200 ms of the rate")


def defaults(entry: PolicyClass, queue: PortQueue, account: Account) -> None:
    """Buffers are shared and depend on the device, so a limit is asked for."""
    if entry.random_detect and queue.average is None:
        text = f"class {queue.name}: no `weight` is configured; 0 (instantaneous) here"
        account.find("W02", entry.random_detect_line, text)
        queue.average = Average(1.0, 0, How.DEFAULT, "weight 0")
    if entry.random_detect and not queue.curves:
        text = (
            f"class {queue.name}: no thresholds are configured, the platform's are not known; tail drop here"
        )
        account.find("W04", entry.random_detect_line, text)
    if (
        queue.guarantee is not None
        and queue.share is not None
        and queue.guarantee.text == _text(queue.ceiling)
    ):
        text = (
            f"class {queue.name}: the least rate of `{queue.guarantee.text}` has no effect beside its share"
        )
        account.find("W06", queue.guarantee.line, text)
        queue.guarantee = None
    if queue.limit is None and queue.line > 0:
        text = f"class {queue.name}: buffers are shared between queues; a fixed limit here"
        account.find("W09", queue.line, text)


def _text(rate: Rate | None) -> str:
    return "" if rate is None else rate.text


def group(name: str) -> int | None:
    """The qos-group of a system-defined queuing class, 0 of the default one.

    Those of the Nexus 7000, such as `1p7q4t-out-q2`, are chosen by CoS, but for the default one.

    >>> group("c-out-8q-q3"), group("c-out-4q-q-default"), group("c-out-q2"), group("GOLD")
    (3, 0, 2, None)
    >>> group("1p7q4t-out-q-default"), group("8e-4q8q-out-q-default"), group("1p7q4t-out-q2")
    (0, 0, None)
    """
    if re.fullmatch(r"(?:[0-9]e-)?(?:[0-9][pqte]){1,4}-out-q-default", name.lower()):
        return 0
    found = re.fullmatch(r"c-out-(?:[48]q-)?q(?:([0-7])|-default)", name.lower())
    return None if found is None else int(found[1] or 0)


FLAVOUR = Flavour("nx-os", None, police_burst, defaults, group)


def read(source: Source, account: Account) -> list[Port]:
    """The ports of a configuration."""
    return Reader(source, account, FLAVOUR).read()


def score(source: Source) -> float:
    """Policies with types."""
    typed = "(policy-map|class-map|class|service-policy) type (queuing|network-qos|qos)"
    return 9.0 * (source.starting(typed) > 0)


DIALECT = Dialect("nx-os", "Cisco NX-OS", score=score, read=read)
