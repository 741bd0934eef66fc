"""Congestion controls in Python for the tests; processes import this module by its name."""

# ruff: noqa: ARG002 - the methods have the arguments that the engine gives

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from perhop import CongestionControl, Probability

if TYPE_CHECKING:
    from perhop._engine import Ack, Loss, Random


class Reno(CongestionControl):
    """Reno as the engine has it: RFC 5681, section 3.1.

    Attributes:
        left: What a loss leaves of the window.
    """

    NAME = "reno-in-python"
    SOURCE = "RFC 5681, section 3.1"
    YEAR = 1990

    left: Probability = Probability(0.5)

    def on_ack(self, ack: Ack, now: int, random: Random) -> None:
        left = 1.0 if self.counts_acks else float(ack.delivered)
        if self.window < self.threshold:
            slow = left if self.counts_acks else min(left, self.threshold - self.window)
            self.window += slow
            left -= slow
        if left > 0:
            self.window += left / self.window
        self.window = min(self.window, self.most)

    def on_loss(self, loss: Loss, now: int, random: Random) -> None:
        self.threshold = max(loss.window * self.left, 2.0)
        self.window = self.threshold


class Dctcp(Reno):
    """DCTCP as the engine has it: RFC 8257."""

    NEEDS = ("marks",)

    alpha, delivered, marked, end = 1.0, 0, 0, 0

    def on_ack(self, ack: Ack, now: int, random: Random) -> None:
        self.delivered += ack.delivered
        self.marked += min(ack.marked, ack.delivered)
        if ack.acked > self.end:
            self.alpha = 15 / 16 * self.alpha + self.marked / self.delivered / 16
            self.delivered, self.marked, self.end = 0, 0, ack.acked + ack.in_flight
        if ack.marked < ack.delivered:
            super().on_ack(ack, now, random)

    def on_ecn(self, loss: Loss, now: int, random: Random) -> None:
        self.threshold = max(loss.window * (1 - self.alpha / 2), 2.0)
        self.window = self.threshold


class Rate(CongestionControl):
    """Sends at the largest delivery rate, with twice its bandwidth-delay product in flight; some chance."""

    NEEDS = ("delivery", "pacing")

    best, least = 0.0, 1 << 62

    def on_ack(self, ack: Ack, now: int, random: Random) -> None:
        if ack.delivery_rate is None or ack.rtt is None:
            return
        assert ack.round >= 1
        assert ack.is_app_limited in (True, False)
        self.best, self.least = max(self.best, ack.delivery_rate), min(self.least, ack.rtt)
        self.pacing_rate = self.best * (0.9 + 0.2 * random.uniform())
        self.window = max(4.0, 2 * self.best * self.least / 1e9 / (8 * self.packet))

    def on_loss(self, loss: Loss, now: int, random: Random) -> None:
        self.best *= 0.9
        self.window = max(4.0, loss.window / 2)


class Held(CongestionControl):
    """The window that it is told."""

    segments: float = 4.0
    calls = 0

    def on_ack(self, ack: Ack, now: int, random: Random) -> None:
        self.calls += 1
        self.window = self.segments

    def on_loss(self, loss: Loss, now: int, random: Random) -> None:
        pass


class Faulty(CongestionControl):
    """Does what it must not from the hundredth ACK on."""

    what: str
    seen = 0

    def on_ack(self, ack: Ack, now: int, random: Random) -> None:
        self.seen += 1
        self.window = 4.0
        if self.seen < 100:
            return
        if self.what == "raises":
            self.seen //= 0
        elif self.what == "loops":
            while True:
                self.seen += 1
        elif self.what == "changes the ack":
            ack.delivered = 1  # type: ignore[misc]
        elif self.what == "needs":
            self.seen = int(ack.rtt or 0)
        elif self.what == "paces":
            self.pacing_rate = 1e6
        else:
            nonsense = {
                "nothing": None,
                "a word": "wide",
                "nan": float("nan"),
                "infinity": float("inf"),
                "none": 0.5,
            }
            self.window = nonsense[self.what]  # type: ignore[assignment]


class Forgetful(Reno):
    """Keeps its state outside the object, so that a second run goes on where the first ended."""

    calls: ClassVar[list[int]] = []

    def on_ack(self, ack: Ack, now: int, random: Random) -> None:
        self.calls.append(now)
        self.window = 2.0 + len(self.calls) % 7


class Unready(Reno):
    """Fails before the run begins."""

    def __post_init__(self) -> None:
        raise RuntimeError("not ready")


class Needy(Reno):
    """Needs what there is not."""

    NEEDS = ("luck",)


class Taken(Reno):
    """Has a parameter with the name of what the sender reads."""

    window: float = 2.0


class Silent(CongestionControl):
    """Has no method."""
