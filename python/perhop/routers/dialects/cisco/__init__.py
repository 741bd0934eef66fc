"""Cisco's IOS, IOS-XR and NX-OS: one reader of their modular QoS command line, three sets of defaults."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from perhop.routers import units
from perhop.routers.dialect import SHARING, Dialect
from perhop.routers.dialects.cisco.ports import Flavour
from perhop.routers.dialects.cisco.reader import read
from perhop.routers.dialects.cisco.writer import lines
from perhop.routers.model import ALL_CODEPOINTS, Average, Curve, Drop, How, Quantity, Selector, Unit

if TYPE_CHECKING:
    from perhop.routers.dialects.cisco.ports import PolicyClass
    from perhop.routers.model import PortQueue
    from perhop.routers.source import Account, Source


def _no_thresholds(entry: PolicyClass, queue: PortQueue, account: Account) -> None:
    """Report a class whose drop curve is the platform's own."""
    if not queue.curves:
        text = f"class {queue.name}: no thresholds are configured, the platform's are not known"
        account.find("W04", entry.random_detect_line, f"{text}; tail drop here")


# IOS and IOS-XE

LIMIT, STRICT_LIMIT = 64, 512
"""Packets: the queue limit of IOS where none is configured; ASR 1000 has 50 ms of packets of 1500 bytes."""
EXPONENT = 9
MAXIMUM, OTHERS = 40.0, 20.0
"""Packets: max of every codepoint, and min of those that the table of `random-detect dscp` does not name."""
MINIMUM = {
    **{8 * n + 2 * p: 36.0 - 4 * p for n in range(1, 5) for p in range(1, 4)},
    **{8 * n: 20.0 + 2 * n for n in range(1, 8)},
    46: 36.0,
}
"""Packets: min of AFnp, of class selectors and of EF in that table (Cisco IOS QoS command reference)."""


def _ios_burst(bps: float) -> Quantity:
    """250 ms of the rate, at least 1500 bytes."""
    if bps <= 0:
        return Quantity(0.25, Unit.SECONDS, text="250 ms of the rate")
    return Quantity(max(1500.0, bps / 32), Unit.BYTES, text="250 ms of the rate, at least 1500 B")


def _ios(entry: PolicyClass, queue: PortQueue, account: Account) -> None:
    """Queue limits, averaging weights and curves that are not configured."""
    buffers = entry.buffers
    if buffers is not None and queue.limit is None:
        queue.limit = buffers
        text = f"`{buffers.text}`: ports share buffers, of which a queue may have more; a fixed limit here"
        account.find("W09", buffers.line, text)
    elif buffers is not None:
        account.find("W13", buffers.line, f"`{buffers.text}` has no effect beside a queue limit")
    if queue.limit is None:
        number, said = LIMIT, "some platforms have 50 ms of the rate"
        if queue.level is not None:
            number, said = STRICT_LIMIT, "of a priority class"
        queue.limit = Quantity(number, Unit.PACKETS, 0, How.DEFAULT, text=f"IOS: {number} packets")
        text = f"class {queue.name}: no queue limit is configured; {number} packets ({said})"
        account.find("W04", queue.line or entry.place, text)
    if not entry.random_detect:
        return
    if queue.average is None:
        text = f"class {queue.name}: no weighting constant; {EXPONENT} (1/512) here"
        account.find("W02", entry.random_detect_line, f"{text}, 4 (1/16) on some platforms")
        queue.average = Average(2.0**-EXPONENT, 0, How.DEFAULT, "2^-9")
    _ios_curves(entry, queue, account)


def _ios_curves(entry: PolicyClass, queue: PortQueue, account: Account) -> None:
    """The system's own thresholds, at most 1/10, for codepoints of the class that no line names.

    By codepoint those of the command reference, in packets. By precedence those that IOS-XE shows:
    min = limit (1/4 + p/32), max = limit / 2; likewise where thresholds are bytes or times, with the
    precedence that has the codepoint's min in the command reference.
    """
    line = entry.random_detect_line
    given = {point.unit for drop in queue.curves for point, _ in drop.curve.points}
    named = [drop.selector.codepoints for drop in queue.curves]
    left = (queue.match.codepoints or ALL_CODEPOINTS).difference(*(codes for codes in named if codes))
    if None in named or not left:
        return
    if Unit.PERCENT in given:
        text = f"class {queue.name}: no thresholds are configured for other codepoints"
        account.find("W04", line, f"{text}; Catalyst's own are not known: they drop at the limit")
        whole = Quantity(100, Unit.PERCENT, line, How.DEFAULT, text="others: at the limit")
        curve = Curve.ramp(whole, whole, 1.0, line, How.DEFAULT)
        queue.curves.append(Drop(Selector("others", frozenset(left)), curve))
        return
    dscp = entry.random_detect == "dscp"
    units_of = given | (set() if queue.limit is None else {queue.limit.unit})
    packets = dscp and units_of <= {Unit.PACKETS}
    names = units.listed(left) if queue.match.codepoints else "other codepoints"
    which = f" for {names}" if queue.curves else ""
    whose = "IOS by codepoint" if packets else "IOS-XE, of its queue limit"
    text = f"class {queue.name}: no thresholds are configured{which}; those of {whose}"
    account.find("W04", line, f"{text}: compare with `show policy-map interface`")
    groups: dict[float, set[int]] = {}
    for code in left:
        step = (MINIMUM.get(code, OTHERS) - OTHERS) / 2 if dscp else code // 8
        groups.setdefault(step, set()).add(code)
    for step, codes in sorted(groups.items(), key=lambda item: min(item[1])):
        label = f"precedence {step:g}"
        if dscp:
            label = "others" if step == 0 else units.listed(codes)
        least, most = (OTHERS + 2 * step, MAXIMUM) if packets else (25 + 3.125 * step, 50)
        unit = Unit.PACKETS if packets else Unit.PERCENT
        low, high = (Quantity(x, unit, line, How.DEFAULT, text=f"{label}: default") for x in (least, most))
        curve = Curve.ramp(low, high, 0.1, line, How.DEFAULT)
        queue.curves.append(Drop(Selector(label, frozenset(codes)), curve))


def _ios_score(source: Source) -> float:
    text = source.text.lower()
    return sum(word in text for word in ("policy-map ", "class-map ", "random-detect", "service-policy"))


# IOS-XR: blocks end with `end-policy-map`; a packet of a threshold is 256 bytes

LIMIT_S, STRICT_LIMIT_S = 0.1, 0.01


def _ios_xr(entry: PolicyClass, queue: PortQueue, account: Account) -> None:
    """Queue limits of CRS and ASR 9000; an average that cannot be set."""
    if queue.limit is None:
        time = LIMIT_S if queue.level is None else STRICT_LIMIT_S
        text = f"{time * 1000:g} ms of the guaranteed rate"
        queue.limit = Quantity(time, Unit.SECONDS, 0, How.DEFAULT, text=text)
        text = f"class {queue.name}: no queue limit is configured; {text} (CRS, ASR 9000; 10 ms on NCS 500)"
        account.find("W04", queue.line or entry.place, text)
    if not entry.random_detect:
        return
    if queue.average is None:
        text = f"class {queue.name}: IOS-XR has a fixed average or none (ASR 9000 compares the queue itself)"
        account.find("W02", entry.random_detect_line, f"{text}; instantaneous here")
        queue.average = Average(1.0, 0, How.ASSUMED, "cannot be configured")
    _no_thresholds(entry, queue, account)


def _ios_xr_score(source: Source) -> float:
    text = source.text.lower()
    return 8.0 * ("end-policy-map" in text or "end-class-map" in text) + 2.0 * ("!! ios xr" in text)


# NX-OS: policies of `type queuing`, one drop curve for each queue


def _nx_os(entry: PolicyClass, queue: PortQueue, account: Account) -> None:
    """Buffers are shared and depend on the device, so a limit is asked for."""
    if entry.random_detect and queue.average is None:
        text = f"class {queue.name}: no `weight` is configured; 0 (instantaneous) here"
        account.find("W02", entry.random_detect_line, text)
        queue.average = Average(1.0, 0, How.DEFAULT, "weight 0")
    if entry.random_detect:
        _no_thresholds(entry, queue, account)
    sure, most = queue.guarantee, queue.ceiling
    if sure is not None and queue.share is not None and sure.text == (most.text if most else ""):
        text = f"class {queue.name}: the least rate of `{sure.text}` has no effect beside its share"
        account.find("W06", sure.line, text)
        queue.guarantee = None
    if queue.limit is None and queue.line > 0:
        text = f"class {queue.name}: buffers are shared between queues; a fixed limit here"
        account.find("W09", queue.line, text)


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


def _nx_os_score(source: Source) -> float:
    typed = "(policy-map|class-map|class|service-policy) type (queuing|network-qos|qos)"
    return 9.0 * (source.starting(typed) > 0)


IOS = Flavour(_ios_burst, _ios)
IOS_XR = Flavour(
    lambda _bps: Quantity(0.01, Unit.SECONDS, text="10 ms of the rate"),  # NCS 540
    _ios_xr,
    packet_bytes=256.0,
)
NX_OS = Flavour(lambda _bps: Quantity(0.2, Unit.SECONDS, text="200 ms of the rate"), _nx_os, group=group)
DIALECTS = (
    Dialect(
        "ios",
        "Cisco IOS and IOS-XE",
        family="Cisco",
        score=_ios_score,
        read=partial(read, IOS),
        write=lines,
        comment="!",
        schedulers=SHARING | {"htb"},
    ),
    Dialect("ios-xr", "Cisco IOS-XR", score=_ios_xr_score, read=partial(read, IOS_XR)),
    Dialect("nx-os", "Cisco NX-OS", score=_nx_os_score, read=partial(read, NX_OS)),
)
