"""Meters in Python for the tests; processes import this module by its name."""

# ruff: noqa: ARG002 - the methods have the arguments that the engine gives

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from perhop import Bytes, Meter, Probability

if TYPE_CHECKING:
    from perhop._engine import Packet, Random
    from perhop.blocks.plugins import Color

SCALE = 8 * 10**9
"""Tokens of a byte: bits x 1e9, as the engine counts them, so that nothing is rounded."""


class Bucket(Meter):
    """The token bucket as the engine has it: Ibanez & Nichols 1998, section 2.

    Attributes:
        burst: The bucket's depth.
    """

    NAME = "bucket-in-python"
    SOURCE = "Ibanez & Nichols 1998, section 2"
    YEAR = 1998

    burst: Bytes

    drawn = 0

    def __post_init__(self) -> None:
        self.tokens = self.burst * SCALE

    def on_packet(self, packet: Packet, now: int, random: Random) -> Color:
        self.tokens = min(self.burst * SCALE, self.tokens + (now - self.drawn) * self.rate)
        self.drawn = now
        if self.tokens < packet.size * SCALE:
            return "yellow"
        self.tokens -= packet.size * SCALE
        return "green"


class Dice(Meter):
    """Each color with a probability, from the meter's own random stream."""

    green: Probability = Probability(0.5)

    def on_packet(self, packet: Packet, now: int, random: Random) -> Color:
        if random.chance(self.green):
            return "green"
        return "yellow" if random.chance(0.5) else "red"


class Faulty(Meter):
    """Does what it must not from the hundredth packet on."""

    what: str
    seen = 0

    def on_packet(self, packet: Packet, now: int, random: Random) -> Color:
        self.seen += 1
        if self.seen < 100:
            return "green"
        if self.what == "raises":
            return self.seen // 0  # type: ignore[return-value]
        if self.what == "changes the packet":
            packet.size = 1  # type: ignore[misc]
        nonsense = {"nothing": None, "a number": 1, "a word": "blue"}
        return nonsense[self.what]  # type: ignore[return-value]


class Forgetful(Meter):
    """Keeps its state outside the object, so that a second run goes on where the first ended."""

    calls: ClassVar[list[int]] = []

    def on_packet(self, packet: Packet, now: int, random: Random) -> Color:
        self.calls.append(now)
        return "yellow" if len(self.calls) % 7 == 0 else "green"


class Unready(Meter):
    """Fails before the run begins."""

    def __post_init__(self) -> None:
        raise RuntimeError("not ready")

    def on_packet(self, packet: Packet, now: int, random: Random) -> Color:
        return "green"


class Silent(Meter):
    """Has no method."""
