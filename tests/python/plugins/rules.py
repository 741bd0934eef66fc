"""AQMs in Python for the tests; processes import this module by its name."""

# ruff: noqa: ARG002 - the methods have the arguments that the engine gives

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar, Literal

from perhop import Aqm, Bitrate, Bytes, Depth, Duration, Probability, Verdict

if TYPE_CHECKING:
    from perhop._engine import Packet, Queue, Random


class Blue(Aqm):
    """BLUE as the engine has it: Feng, Shin, Kandlur & Saha 2002, figure 2.

    Attributes:
        limit: The room in the queue.
    """

    NAME = "blue-in-python"
    SOURCE = "Feng, Shin, Kandlur & Saha 2002, figure 2"
    YEAR = 2002

    limit: Depth
    increment: Probability = Probability(0.02)
    decrement: Probability = Probability(0.002)
    freeze: Duration = Duration("100ms")
    ecn: bool = False

    probability = 0.0
    moved = 0

    def __post_init__(self) -> None:
        self.idle_since: int | None = None

    def on_arrival(self, packet: Packet, queue: Queue, now: int, random: Random) -> Verdict:
        if self.idle_since is not None and self.probability > 0:
            self.move(-self.decrement, self.idle_since)
        self.idle_since = None
        if queue.is_full(self.limit):
            self.move(self.increment, now)
            return Verdict.OVERFLOW
        if not random.chance(self.probability):
            return Verdict.PASS
        return Verdict.NOTIFY if self.ecn else Verdict.DROP

    def on_idle(self, since: int) -> None:
        self.idle_since = since

    def gauges(self) -> dict[str, float]:
        return {"probability": self.probability}

    def move(self, step: float, now: int) -> None:
        if now - self.moved > self.freeze:
            self.probability, self.moved = min(1.0, max(0.0, self.probability + step)), now


class Tail(Aqm):
    """Drop-tail, and a parameter of every type."""

    limit: Depth = Depth("20p")
    rate_: Bitrate | None = None
    share: Probability = Probability(0.5)
    size: Bytes = Bytes("1.5kB")
    count: int = 3
    factor: float = 1.5
    word: Literal["one", "two"] = "one"
    text: str = ""

    def on_arrival(self, packet: Packet, queue: Queue, now: int, random: Random) -> Verdict:
        return Verdict.OVERFLOW if queue.is_full(self.limit) else Verdict.PASS


class Sojourn(Aqm):
    """Drops at departure what has waited for longer than a target, at most one packet in an interval."""

    limit: Depth
    target: Duration
    dropped = -(10**9)

    def on_arrival(self, packet: Packet, queue: Queue, now: int, random: Random) -> Verdict:
        return Verdict.OVERFLOW if queue.is_full(self.limit) else Verdict.PASS

    def on_departure(self, packet: Packet, queue: Queue, now: int, random: Random) -> Verdict:
        if now - packet.arrived > self.target and now - self.dropped > 10 * self.target:
            self.dropped = now
            return Verdict.drop("target")
        return Verdict.PASS


class Faulty(Aqm):
    """Does what it must not from the hundredth packet on."""

    what: str
    seen = 0

    def on_arrival(self, packet: Packet, queue: Queue, now: int, random: Random) -> Verdict:
        self.seen += 1
        if self.seen < 100 or self.what == "nan":
            return Verdict.PASS
        if self.what == "raises":
            return self.seen // 0  # type: ignore[return-value]
        if self.what == "loops":
            while True:
                time.sleep(0)
        if self.what == "changes the packet":
            packet.size = 1  # type: ignore[misc]
        if self.what == "changes the queue":
            queue.packets = 0  # type: ignore[misc]
        if self.what == "a chance":
            random.chance(1.5)
        if self.what == "invents":
            packet.mine = 1  # type: ignore[attr-defined]
        nonsense = {"nothing": None, "a number": 7, "a word": "drop", "the class": Verdict}
        return nonsense[self.what]  # type: ignore[return-value]

    def gauges(self) -> dict[str, float]:
        if self.what == "gauge":
            return {"state": "good"}  # type: ignore[dict-item]
        if self.what == "nan":
            return {"state": float("nan") if self.seen else 0.0}
        return {}


class Forgetful(Aqm):
    """Keeps its state outside the object, so that a second run goes on where the first ended."""

    calls: ClassVar[list[int]] = []

    def on_arrival(self, packet: Packet, queue: Queue, now: int, random: Random) -> Verdict:
        self.calls.append(now)
        return Verdict.DROP if len(self.calls) % 7 == 0 else Verdict.PASS


class Keeper(Aqm):
    """Keeps packets and views of the queue beyond their calls, and with them what they said then."""

    limit: Depth
    draws: bool = False

    def __post_init__(self) -> None:
        self.kept: list[tuple[Packet, int, Queue, int]] = []
        self.random: Random | None = None

    def on_arrival(self, packet: Packet, queue: Queue, now: int, random: Random) -> Verdict:
        self.random = random if self.draws else None
        self.kept.append((packet, packet.size, queue, queue.packets))
        return Verdict.OVERFLOW if queue.is_full(self.limit) else Verdict.PASS

    def gauges(self) -> dict[str, float]:
        if self.random is not None:
            self.random.uniform()
        return {
            "packets": len(self.kept),
            "of another size": sum(packet.size != size for packet, size, *_ in self.kept),
            "of another queue": sum(queue.packets != packets for *_, queue, packets in self.kept),
        }


class Unready(Aqm):
    """Fails before the run begins."""

    def __post_init__(self) -> None:
        if getattr(self, "limit", None) is None:
            raise RuntimeError("no limit")

    def on_arrival(self, packet: Packet, queue: Queue, now: int, random: Random) -> Verdict:
        return Verdict.PASS
