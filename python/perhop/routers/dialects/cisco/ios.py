"""Cisco IOS and IOS-XE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perhop.routers import units
from perhop.routers.dialect import SHARING, Dialect
from perhop.routers.dialects.cisco.policies import Flavour
from perhop.routers.dialects.cisco.reader import Reader
from perhop.routers.dialects.cisco.writer import lines
from perhop.routers.model import ALL_CODEPOINTS, Average, Curve, Drop, How, Quantity, Selector, Unit

if TYPE_CHECKING:
    from perhop.routers.dialects.cisco.policies import PolicyClass
    from perhop.routers.model import Port, PortQueue
    from perhop.routers.source import Account, Source

LIMIT = 64
"""Packets: the queue limit of IOS where none is configured; ASR 1000 has 50 ms of packets of 1500 bytes."""
STRICT_LIMIT = 512
EXPONENT = 9
MAXIMUM, OTHERS = 40.0, 20.0
"""Packets: max of every codepoint, and min of those that the table of `random-detect dscp` does not name."""
MINIMUM = {
    **{8 * n + 2 * p: 36.0 - 4 * p for n in range(1, 5) for p in range(1, 4)},
    **{8 * n: 20.0 + 2 * n for n in range(1, 8)},
    46: 36.0,
}
"""Packets: min of AFnp, of class selectors and of EF in that table (Cisco IOS QoS command reference)."""


def police_burst(bps: float) -> Quantity:
    """250 ms of the rate, at least 1500 bytes."""
    if bps <= 0:
        return Quantity(0.25, Unit.SECONDS, text="250 ms of the rate")
    return Quantity(max(1500.0, bps / 32), Unit.BYTES, text="250 ms of the rate, at least 1500 B")


def defaults(entry: PolicyClass, queue: PortQueue, account: Account) -> None:
    """Queue limits, averaging weights and curves that are not configured."""
    place = queue.line or entry.place
    if entry.buffers is not None and queue.limit is None:
        queue.limit = entry.buffers
        text = (
            f"`{entry.buffers.text}`: ports share buffers, of which a queue may have more; a fixed limit here"
        )
        account.find("W09", entry.buffers.line, text)
    elif entry.buffers is not None:
        account.find("W13", entry.buffers.line, f"`{entry.buffers.text}` has no effect beside a queue limit")
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
    _curves(entry, queue, account)


def _curves(entry: PolicyClass, queue: PortQueue, account: Account) -> None:
    """The system's own thresholds, at most 1/10, for codepoints of the class that no line names.

    By codepoint those of the command reference, in packets. By precedence those that IOS-XE shows:
    min = limit (1/4 + p/32), max = limit / 2; likewise where thresholds are bytes or times, with the
    precedence that has the codepoint's min in the command reference.
    """
    line = entry.random_detect_line
    given = {point.unit for drop in queue.curves for point, _ in drop.curve.points}
    named = [drop.selector.codepoints for drop in queue.curves]
    if None in named:
        return
    left = (queue.match.codepoints or ALL_CODEPOINTS).difference(*(codes for codes in named if codes))
    if not left:
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
    names = ", ".join(map(str, units.shown_codepoints(left)))
    which = "" if not queue.curves else " for " + (names if queue.match.codepoints else "other codepoints")
    whose = "IOS by codepoint" if packets else "IOS-XE, of its queue limit"
    text = f"class {queue.name}: no thresholds are configured{which}; those of {whose}"
    account.find("W04", line, f"{text}: compare with `show policy-map interface`")
    groups: dict[float, set[int]] = {}
    for code in left:
        step = (MINIMUM.get(code, OTHERS) - OTHERS) / 2 if dscp else code // 8
        groups.setdefault(step, set()).add(code)
    for step, codes in sorted(groups.items(), key=lambda item: min(item[1])):
        label = _label(codes, step, dscp=dscp)
        least, most = (OTHERS + 2 * step, MAXIMUM) if packets else (25 + 3.125 * step, 50)
        unit = Unit.PACKETS if packets else Unit.PERCENT
        low, high = (Quantity(x, unit, line, How.DEFAULT, text=f"{label}: default") for x in (least, most))
        curve = Curve.ramp(low, high, 0.1, line, How.DEFAULT)
        queue.curves.append(Drop(Selector(label, frozenset(codes)), curve))


def _label(codes: set[int], step: float, *, dscp: bool) -> str:
    if not dscp:
        return f"precedence {step:g}"
    return "others" if step == 0 else ", ".join(map(str, units.shown_codepoints(codes)))


def group(name: str) -> int | None:
    """IOS has no classes without a class map but class-default."""
    del name
    return None


FLAVOUR = Flavour("ios", None, police_burst, defaults, group)


def read(source: Source, account: Account) -> list[Port]:
    """The ports of a configuration."""
    return Reader(source, account, FLAVOUR).read()


def score(source: Source) -> float:
    """Policy maps without what IOS-XR and NX-OS have."""
    text = source.text.lower()
    return sum(word in text for word in ("policy-map ", "class-map ", "random-detect", "service-policy"))


DIALECT = Dialect(
    "ios",
    "Cisco IOS and IOS-XE",
    score=score,
    read=read,
    write=lines,
    comment="!",
    schedulers=SHARING | {"htb"},
)
