"""Blocks by hand: an AQM, a scheduler or a meter as an object that one drives packet by packet."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from numbers import Integral
from typing import Any, Literal, TypeAlias, overload

from perhop import _engine
from perhop.blocks import plugins
from perhop.errors import PerhopError
from perhop.measures.run import COLORS
from perhop.plurals import counted
from perhop.scenario import builder
from perhop.scenario.base import PythonBlock, Table, plain
from perhop.stepping.simulation import QueueState as Counters
from perhop.stepping.simulation import Time, nanoseconds, queue_of

Color: TypeAlias = Literal["green", "yellow", "red"]
EcnField: TypeAlias = Literal["not-capable", "ect1", "ect0", "ce"]
ECN: tuple[EcnField, ...] = ("not-capable", "ect1", "ect0", "ce")
"""The values of the ECN field by number (RFC 3168, section 5; RFC 9331)."""
RANGES = {
    "size": (1, 65535, " bytes"),
    "dscp": (0, 63, ""),
    "flow": (0, 2**32 - 1, ""),
    "path": (0, 2**32 - 1, ""),
    "contracted_bps": (0, 2**64 - 1, " bit/s"),
}
"""The least and the most of the numbers of a packet, and their unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Packet:
    """A packet as blocks see it.

    Attributes:
        size: Bytes on the wire, 1 to 65535.
        color: Drop precedence: green is IN, yellow and red are OUT.
        dscp: Codepoint, 0 to 63.
        ecn: The ECN field.
        flow: The number of its flow; FQ-CoDel and others tell flows apart by it.
        path: The number of the label-switched path: 1 for the first that the parameters name; 0: none.
        contracted_bps: Contracted rate of its flow in bit/s, as packets carry it; 0 for none.
        name: For the reader; no block sees it.
    """

    size: int = 1000
    color: Color = "yellow"
    dscp: int = 0
    ecn: EcnField = "not-capable"
    flow: int = 0
    path: int = 0
    contracted_bps: int = 0
    name: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision on a packet.

    Attributes:
        verdict: `pass`, `mark` (its ECN field now says that it met congestion) or `drop`.
        reason: Why it was dropped or marked: `early`, `forced`, `overflow` and others; None where it passes.
        packet: The packet, as it goes on.
        pushed_out: Packets that waited and were dropped to make room for it.
    """

    verdict: Literal["pass", "mark", "drop"]
    reason: str | None
    packet: Packet
    pushed_out: tuple[Packet, ...] = ()


@dataclass(frozen=True, slots=True)
class Departure:
    """The answer of a queue to a link that asks for a packet.

    Attributes:
        packet: The packet that is sent; None if nothing may be sent now.
        dropped: Packets that the AQM dropped as they were about to leave, before it.
        again_s: When to ask again, in s, where packets wait that may not be sent before.
    """

    packet: Packet | None
    dropped: tuple[Packet, ...] = ()
    again_s: float | None = None


class _Clock:
    """Times that never go back."""

    def __init__(self) -> None:
        self.ns = 0

    def at(self, time: Time) -> int:
        """The time in ns.

        Raises:
            PerhopError: It is no time, or before the last one.
        """
        ns = nanoseconds(time, "at")
        if ns < self.ns:
            raise PerhopError(f"at: {ns / 1e9:g} s has passed; the last call was at {self.ns / 1e9:g} s")
        self.ns = ns
        return ns


class DrivenQueue:
    """A queue under an AQM, or a scheduler with its queues. Its driver is the clock and the link.

    The blocks are those that simulations and the data plane run.
    """

    def __init__(self, table: Mapping[str, Any], rate: str, seed: int) -> None:
        self._clock = _Clock()
        self._packets: dict[int, Packet] = {}
        self._next = 0
        self._block: _engine.QueueByHand = _built(_engine.QueueByHand, table, rate, seed)
        self._name = str(table.get("aqm") or table.get("scheduler"))

    def __repr__(self) -> str:
        """Return the block, the packets that wait and the time of the last call."""
        return f"DrivenQueue of {self._name}: {counted(self.length, 'packet')} at {self._clock.ns / 1e9:g} s"

    def offer(self, packet: Packet | None = None, *, at: Time, **fields: Any) -> Decision:  # noqa: ANN401 - those of Packet
        """A packet arrives.

        Args:
            packet: The packet; one of 1000 bytes, yellow, if not given.
            at: When: `20ms`, or seconds. Never before the last call's time.
            fields: Fields of `Packet` that differ from the packet's.

        Returns:
            What becomes of it.

        Raises:
            PerhopError: A time before that of the last call, or a field out of range.
        """
        packet = _packet(packet, fields)
        now, number = self._clock.at(at), self._next
        self._next += 1
        self._packets[number] = packet
        (first, *others) = _asked(self._block.offer, now, number, _fields(packet))
        _, verdict, reason, _, _ = first
        went = self._known(first, keep=verdict != "drop")
        return Decision(verdict, reason, went, tuple(self._known(other) for other in others))

    def departure(self, *, at: Time) -> Departure:
        """The link has finished its last packet and asks for the next one.

        Where nothing waits, the queue learns that the link is idle from this time on: RED's average then
        decays.

        Args:
            at: When. Never before the last call's time.

        Returns:
            What is sent.

        Raises:
            PerhopError: A time before that of the last call.
        """
        dropped, sent, again = self._block.departure(self._clock.at(at))
        return Departure(
            None if sent is None else self._known(sent),
            tuple(self._known(fate) for fate in dropped),
            None if again is None else again / 1e9,
        )

    def _known(self, fate: tuple[int, str, str | None, str, int], *, keep: bool = False) -> Packet:
        number, _, _, color, ecn = fate
        packet = self._packets[number] if keep else self._packets.pop(number)
        went: Packet = replace(packet, color=color, ecn=ECN[ecn])  # type: ignore[arg-type] # one of the three
        return went

    @property
    def length(self) -> int:
        """Packets that wait."""
        return self._block.waiting()[0]

    @property
    def bytes(self) -> int:
        """Bytes that wait."""
        return self._block.waiting()[1]

    @property
    def gauges(self) -> dict[str, float]:
        """The state of the block as numbers by name, such as `average total`."""
        return dict(self._block.gauges())

    @property
    def counters(self) -> Counters:
        """Packets by color, reason and class, as of a simulation's queue."""
        return queue_of(self._block.classes(), self.gauges)

    @property
    def state(self) -> str:
        """The whole state as text, for reading; the format may change."""
        return self._block.state()


class DrivenMeter:
    """The meter of a traffic profile, with the marker or policer behind it. Its driver is the clock."""

    def __init__(self, table: Mapping[str, Any], rate: str, seed: int) -> None:
        self._clock = _Clock()
        self._block: _engine.MeterByHand = _built(_engine.MeterByHand, table, rate, seed)
        self._name = str(table.get("marker"))

    def __repr__(self) -> str:
        """Return the marker or policer, and the time of the last call."""
        return f"DrivenMeter of {self._name} at {self._clock.ns / 1e9:g} s"

    def offer(self, packet: Packet | None = None, *, at: Time, **fields: Any) -> Decision:  # noqa: ANN401 - those of Packet
        """A packet passes the meter.

        Args:
            packet: The packet; one of 1000 bytes, yellow, if not given.
            at: When: `20ms`, or seconds. Never before the last call's time.
            fields: Fields of `Packet` that differ from the packet's.

        Returns:
            The packet with its color, and whether a policer drops it.

        Raises:
            PerhopError: A time before that of the last call, or a field out of range.
        """
        packet = _packet(packet, fields)
        color, dropped = _asked(self._block.offer, self._clock.at(at), _fields(packet))
        return Decision("drop" if dropped else "pass", dropped, replace(packet, color=color))

    @property
    def state(self) -> str:
        """The whole state as text, for reading; the format may change."""
        return self._block.state()


@overload
def drive(block: builder.Meter, *, rate: str = ..., seed: int = ...) -> DrivenMeter: ...
@overload
def drive(block: builder.Aqm | builder.Scheduler, *, rate: str = ..., seed: int = ...) -> DrivenQueue: ...
@overload
def drive(block: Mapping[str, Any], *, rate: str = ..., seed: int = ...) -> DrivenQueue | DrivenMeter: ...
def drive(
    block: Table | PythonBlock | Mapping[str, Any], *, rate: str = "10Mbps", seed: int = 1
) -> DrivenQueue | DrivenMeter:
    """Return a queue rule or a meter to drive by hand: one packet after another, at times of one's own.

    Args:
        block: An AQM, a scheduler or a meter with its parameters, such as
            `perhop.scenario.Red(thresholds="5/15/0.1", limit="60p")`, the same as a dict
            (`{"aqm": "red", …}`), or an object of a subclass of `perhop.Aqm` or `perhop.Meter`.
        rate: The rate of the link that serves the queue, by which RED counts idle time and CoDel's relatives
            their delays; of a meter, the rate at which packets can come.
        seed: Of the block's random stream.

    Returns:
        A `DrivenQueue` for an AQM or a scheduler, a `DrivenMeter` for a meter.

    Raises:
        PerhopError: It is no such block, or a parameter is wrong.
    """
    given: object = block
    if isinstance(given, type):
        raise PerhopError(f"{given.__name__} is a class; write {given.__name__}(…) with its parameters")
    table = plain(block)
    if isinstance(table, Mapping) and "marker" in table:
        return DrivenMeter(completed(table), rate, seed)
    if isinstance(table, Mapping) and ("aqm" in table or "scheduler" in table):
        return DrivenQueue(completed(table), rate, seed)
    raise PerhopError(
        "a block is an AQM, a scheduler or a meter, such as perhop.scenario.Red(…), or a dict with the key "
        f"`aqm`, `scheduler` or `marker`; not {type(block).__name__}"
    )


def completed(table: Any) -> Any:  # noqa: ANN401 - a table, or a value in one
    """A table of a block with its classes in Python checked, and their defaults filled in.

    Raises:
        PerhopError: A class cannot be loaded, or one of its parameters is wrong.
    """
    if isinstance(table, Mapping):
        inner = {key: completed(value) for key, value in table.items()}
        for role, base in plugins.BASES.items():
            name = inner.get(base.TAG)
            if isinstance(name, str):
                rest = {key: value for key, value in inner.items() if key != base.TAG}
                text = plugins.complete(role, name, json.dumps(rest))
                if text is not None:
                    return {base.TAG: "python", **json.loads(text)}
        return inner
    return [completed(one) for one in table] if isinstance(table, list) else table


def _whole(value: object) -> bool:
    """Whether it is a whole number, numpy's included."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def _built(kind: Any, table: Mapping[str, Any], rate: object, seed: int) -> Any:  # noqa: ANN401 - a class of the engine
    if not isinstance(rate, str):
        raise PerhopError(f"rate: a text such as '10Mbps', not {rate!r}")
    if not _whole(seed) or seed < 0:
        raise PerhopError(f"seed: a whole number from 0, not {seed!r}")
    try:
        return kind(json.dumps(table, allow_nan=False), rate, seed)
    except (ValueError, OverflowError, TypeError) as error:
        said = str(error)
        unknown, *known = re.findall(r"`([^`]+)`", said) if "expected one of" in said else [""]
        near = difflib.get_close_matches(unknown, known, n=1)
        raise PerhopError(f"{said}; did you mean `{near[0]}`?" if near else said) from None


def _asked(offer: Any, *arguments: Any) -> Any:  # noqa: ANN401 - a method of the engine
    try:
        return offer(*arguments)
    except (ValueError, OverflowError, TypeError) as error:
        raise PerhopError(f"packet: {error}") from None


def _packet(packet: Packet | None, given: Mapping[str, Any]) -> Packet:
    known = [one.name for one in fields(Packet)]
    for name in given:
        if name not in known:
            raise PerhopError(f"packet: unknown field `{name}` (valid fields: {', '.join(known)})")
    if packet is not None and not isinstance(packet, Packet):
        raise PerhopError(f"packet: give a perhop.Packet or fields such as size=1500, not {packet!r}")
    packet = replace(packet or Packet(), **given)
    if packet.ecn not in ECN:
        raise PerhopError(f"packet: ecn is one of {', '.join(ECN)}, not {packet.ecn!r}")
    if packet.color not in COLORS:
        raise PerhopError(f"packet: color is one of {', '.join(COLORS)}, not {packet.color!r}")
    for name, (low, high, unit) in RANGES.items():
        value = getattr(packet, name)
        if not _whole(value) or not low <= value <= high:
            raise PerhopError(f"packet: {name} is a whole number from {low} to {high}{unit}, not {value!r}")
    return packet


def _fields(packet: Packet) -> tuple[int, str, int, int, int, int, int]:
    """Return a packet's fields as the engine takes them."""
    ecn = ECN.index(packet.ecn)
    return packet.size, packet.color, packet.dscp, ecn, packet.flow, packet.path, packet.contracted_bps
