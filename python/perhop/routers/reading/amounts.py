"""Quantities into bytes, packets and bit/s: every conversion is asked for or reported, none is silent."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from perhop.routers import units
from perhop.routers.model import How, Quantity, Rate, RateUnit, Unit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from perhop.routers.model import Port
    from perhop.routers.source import Account

ASSUMED_PACKET = 1000.0
"""Bytes, with `--lenient`: the packet size of perhop's senders."""
ASSUMED_SEGMENT = 208.0
"""Bytes, with `--lenient`: a cell of the buffer of many Broadcom chips."""
ASSUMED_BUFFER_S = 0.05
"""Seconds, with `--lenient`: a buffer holds what is sent in this time."""
LEAST_BUFFER = 3000.0
"""Bytes of a buffer that is given as a time: two packets."""
ASSUMED_RATES = (
    (r"(?i)fa(st)?eth", 1e8),
    (r"(?i)(ten|xe-|te[0-9]|ten-?gig)", 1e10),
    (r"(?i)(hundred|et-|hu[0-9])", 1e11),
    (r"(?i)(fo(rty)?gig|fo[0-9])", 4e10),
    (r"(?i)serial", 1.544e6),
)
ASSUMED_RATE = 1e9
"""Bit/s, with `--lenient`, if the name of the interface does not tell more."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """The demand on a link, from a plan or another scenario.

    Attributes:
        file: Its name.
        flows: As `[[flows]]` has them; the port's link is that of flows without ends of their own.
        profiles: As `[profiles]` has them.
    """

    file: str
    flows: Sequence[Mapping[str, Any]]
    profiles: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Answers:
    """Facts about the device that a user gives beside its configuration."""

    link_rate: float | None = None
    """Bit/s."""
    packet_size: float | None = None
    """Mean, in bytes."""
    buffer: Quantity | None = None
    """The buffer of the port, or of each queue where the platform has no other limit."""
    matches: dict[str, frozenset[int]] = field(default_factory=dict)
    """Codepoints of classes by name."""
    lenient: bool = False
    segment_size: float | None = None
    """Bytes of a segment of the device's buffer memory."""
    traffic: Traffic | None = None
    """Who uses the link; None for a template."""


@dataclass(frozen=True, slots=True)
class Need:
    """An answer that is missing: the option that gives it, the line that needs it, and why."""

    option: str
    line: int
    why: str


class Amounts:
    """Resolves the quantities of one port; what is missing is in `needs`."""

    def __init__(self, port: Port, answers: Answers, account: Account) -> None:
        """Takes a port and the answers; findings go to the account."""
        self._port = port
        self._answers = answers
        self._account = account
        self.needs: list[Need] = []

    def need(self, option: str, line: int, why: str) -> None:
        """Ask for an option by name."""
        entry = Need(option, line, why)
        if entry not in self.needs:
            self.needs.append(entry)

    @property
    def lenient(self) -> bool:
        """Whether stated assumptions stand in for missing answers."""
        return self._answers.lenient

    def port_rate(self, line: int, why: str) -> tuple[float, How, int]:
        """The rate that the port's queues share, in bit/s: that of its shaper, or of the link."""
        shaper = self._port.shaper
        if shaper is not None:
            if shaper.unit is not RateUnit.PERCENT:
                return self.rate(shaper), shaper.how, shaper.line
            link, how, _ = self.link_rate(shaper.line, f"{shaper.text} of the link")
            bps = link * shaper.number / 100
            shown = f"`{shaper.text}` is {units.shown_rate(bps)}, of {units.shown_rate(link)}"
            if how is not How.ASSUMED:
                self._account.find("W05", shaper.line, shown)
            return bps, how, shaper.line
        return self.link_rate(line, why)

    def link_rate(self, line: int, why: str) -> tuple[float, How, int]:
        """The rate of the link, in bit/s."""
        if self._answers.link_rate is not None:
            return self._answers.link_rate, How.ASKED, 0
        rate = self._port.rate
        if rate is not None:
            return rate.number, rate.how, rate.line
        if not self.lenient:
            self.need("--rate", line, why)
        found = next((bps for name, bps in ASSUMED_RATES if re.match(name, self._port.name)), ASSUMED_RATE)
        if self.lenient:
            text = f"rate of the link assumed: {units.shown_rate(found)}; give --rate"
            self._account.find("W05", self._port.line, text)
        return found, How.ASSUMED, 0

    @property
    def shaped(self) -> bool:
        """Whether there is a shaper below the rate of the link, and both are known."""
        shaper, known = self._port.shaper, self._answers.link_rate
        if known is None and self._port.rate is not None:
            known = self._port.rate.number
        if shaper is None or known is None or shaper.unit is RateUnit.PERCENT:
            return False
        return self.rate(shaper) < known

    def scenario_rate(self) -> tuple[float, How, int]:
        """The rate of the scenario's link, in bit/s: where that of the device is not known, its shaper's."""
        given = self.link_rate if self.shaped else self.port_rate
        return given(self._port.line, "the rate of the link")

    def packet(self, line: int, why: str) -> tuple[float, How]:
        """The mean packet size, in bytes."""
        if self._answers.packet_size is not None:
            return self._answers.packet_size, How.ASKED
        if not self.lenient:
            self.need("--packet-size", line, why)
        else:
            text = f"packets of {ASSUMED_PACKET:.0f} bytes assumed; give --packet-size"
            self._account.find("W01", self._port.line, text)
        return ASSUMED_PACKET, How.ASSUMED

    def segment(self, line: int, why: str) -> float:
        """The size of a segment of the device's buffer memory, in bytes."""
        if self._answers.segment_size is not None:
            return self._answers.segment_size
        if not self.lenient:
            self.need("--segment-size", line, why)
        return ASSUMED_SEGMENT

    def buffer(self, line: int, why: str, service_bps: float | None = None) -> Quantity:
        """The buffer of the port, in bytes or packets; of a queue that is served at a rate, if it has one.

        A time is at this rate, and at least `LEAST_BUFFER`.
        """
        given = self._answers.buffer
        if given is None:
            given = Quantity(ASSUMED_BUFFER_S, Unit.SECONDS, 0, How.ASSUMED, text="50ms")
            if self.lenient:
                self._account.find("W04", line, f"{why}: buffer assumed as 50 ms at its rate; give --buffer")
            else:
                self.need("--buffer", line, why)
        if given.unit is Unit.SECONDS:
            rate = service_bps or self.port_rate(line, "the buffer as a time")[0]
            return replace(given, number=max(given.number * rate / 8, LEAST_BUFFER), unit=Unit.BYTES)
        return given

    def rate(self, rate: Rate) -> float:
        """A rate in bit/s; percent is of the port's rate."""
        if rate.unit is RateUnit.BPS:
            return rate.number
        if rate.unit is RateUnit.PACKETS:
            each, _ = self.packet(rate.line, f"`{rate.text}` in bit/s")
            bps = rate.number * each * 8
            text = f"`{rate.text}` counts packets: {units.shown_rate(bps)} here, of packets of {each:g} bytes"
            self._account.find("W05", rate.line, text)
            return bps
        return self.port_rate(rate.line, rate.text or "a rate in percent")[0] * rate.number / 100

    def bytes(self, quantity: Quantity, service_bps: float, total: Quantity | None = None) -> float:
        """A quantity in bytes; time is at the queue's service rate, percent of `total`."""
        amount = quantity.number
        match quantity.unit:
            case Unit.BYTES:
                return amount
            case Unit.PACKETS:
                if quantity.each is not None:
                    text = f"`{quantity.text}`: packets of {quantity.each:g} bytes"
                    said = "which this platform counts; confirm on the device"
                    self._account.find("W01", quantity.line, f"{text}, {said}")
                    return amount * quantity.each
                each, _ = self.packet(quantity.line, f"`{quantity.text}` in bytes")
                text = f"`{quantity.text}`: packets of {each:g} bytes; confirm on the device"
                self._account.find("W01", quantity.line, text)
                return amount * each
            case Unit.SEGMENTS:
                size = self.segment(quantity.line, f"`{quantity.text}` in bytes")
                result = amount * size
                text = f"`{quantity.text}` is {result:.0f} B of segments of {size:g} bytes"
                self._account.find("W05", quantity.line, text)
                return result
            case Unit.SECONDS:
                result = amount * service_bps / 8
                text = f"`{quantity.text}` is {result:.0f} B at {units.shown_rate(service_bps)}"
                self._account.find("W05", quantity.line, text)
                return result
            case Unit.PERCENT:
                return amount / 100 * (0.0 if total is None else self.bytes(total, service_bps))
            case Unit.BUFFER_PERCENT:
                whole = self.buffer(quantity.line, f"`{quantity.text}` of the port's buffer")
                base = self.bytes(whole, service_bps)
                text = f"`{quantity.text}` is {amount / 100 * base:.0f} B of a buffer of {base:.0f} B"
                self._account.find("W05", quantity.line, text)
                return amount / 100 * base
