"""Congestion controls in Python for the tests; processes import this module by its name."""

# ruff: noqa: ARG002 - the methods have the arguments that the engine gives

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from perhop import CongestionControl, Duration, Probability

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


BITS = 20
"""Windows of Prague are counted in 2^-20 segments."""
ONE = 1 << BITS
GAIN = 4
TRANSITION = 500


class Prague(CongestionControl):
    """TCP Prague as the engine has it: RFC 9331, section 4.

    Attributes:
        target: Round-trip times up to this get the same rate.
    """

    NEEDS = ("l4s", "marks", "pacing")

    target: Duration = Duration("25ms")

    fraction, limit, srtt, upscaled, saw_mark = 0, 0, 0.0, ONE << GAIN, False
    upscaled_before = ONE << GAIN
    acked, marked, ends, began, rounds, increase, reduced = 0, 0, 0, 0, 0, ONE, -1

    @property
    def window(self) -> float:
        return float(max(-(-self.fraction // ONE), 1))

    @window.setter
    def window(self, segments: float) -> None:
        self.fraction = int(segments * ONE)
        self.pace()

    def placed(self, place: dict[str, Any]) -> None:
        super().placed(place)
        self.limit = int(self.threshold * ONE)

    def pace(self) -> None:
        if self.srtt > 0:
            gain = 2.0 if self.fraction < self.limit // 2 else 1.0
            rate = gain * (self.fraction / ONE) / self.srtt * float(self.packet * 8)
            self.pacing_rate = float(int(max(rate, 1.0)))

    def on_ack(self, ack: Ack, now: int, random: Random) -> None:
        self.srtt = ack.smoothed_rtt_s
        self.upscaled_before = self.upscaled
        marked = min(ack.marked, ack.delivered)
        self.saw_mark = self.saw_mark or marked > 0
        self.acked += ack.delivered
        self.marked += marked
        self.grow(ack.delivered - marked)
        if ack.acked >= self.ends and (not self.independent() or now >= self.began + self.target):
            self.begin_round(ack, now)
        self.pace()

    def on_loss(self, loss: Loss, now: int, random: Random) -> None:
        self.reduce(self.fraction - (self.fraction >> 1))

    def on_ecn(self, loss: Loss, now: int, random: Random) -> None:
        if self.reduced < 0 or now >= self.reduced + self.target or not self.independent():
            self.reduced = now
            alpha = self.upscaled_before >> GAIN
            self.reduce(self.fraction - ((alpha * self.fraction + ONE) >> (BITS + 1)))

    def leave_slow_start(self) -> None:
        self.limit = self.fraction
        self.pace()

    def grow(self, segments: int) -> None:
        slow = min(segments << BITS, max(self.limit - self.fraction, 0))
        self.fraction += slow
        left = segments - -(-slow // ONE)
        if left > 0:
            window = max(-(-self.fraction // ONE), 1)
            self.fraction += max((left * self.increase + window // 2) // window, left)
        self.fraction = min(self.fraction, self.most << BITS)

    def reduce(self, window: int) -> None:
        self.fraction = self.limit = max(window, min(2 << BITS, self.fraction))
        self.pace()

    def independent(self) -> bool:
        return self.target > 0 and self.fraction >= self.limit and self.rounds >= TRANSITION

    def begin_round(self, ack: Ack, now: int) -> None:
        if self.saw_mark:
            share = (self.marked << BITS) // max(self.acked, 1)
            self.upscaled = min(self.upscaled - (self.upscaled >> GAIN) + share, ONE << GAIN)
            self.began = now
        self.acked = self.marked = 0
        self.ends = ack.acked + ack.in_flight
        self.rounds += self.fraction >= self.limit
        rtt, target = int(ack.smoothed_rtt_s * 1e6) >> 7, max(self.target // 1000 >> 7, 1)
        self.increase = ONE
        if self.rounds >= TRANSITION and self.target > 0 and 0 < rtt < target and rtt <= 100_000 >> 7:
            square = target * target
            self.increase = ((rtt << BITS) * rtt + square // 2) // square


class Owner(CongestionControl):
    """Holds its window whatever is lost, and says what it sees of a recovery by an error."""

    NEEDS = ("delivery", "recovery")

    segments: float = 12.0
    tell: str = ""
    repaired = 0

    def on_ack(self, ack: Ack, now: int, random: Random) -> None:
        self.window = self.segments
        self.repaired += ack.recovering
        assert ack.pipe <= ack.in_flight
        if self.tell == "acks" and self.repaired > 3 and ack.lost > 0:
            raise RuntimeError("an ACK of a recovery")

    def on_lost(self, lost: int, in_flight: int, now: int, random: Random) -> None:
        if self.tell == "losses" and lost > 1:
            raise RuntimeError(f"{in_flight >= 1}, a lost segment")

    def on_loss(self, loss: Loss, now: int, random: Random) -> None:
        pass


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
    """The window that it is given."""

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
        elif self.what == "pipe":
            self.seen = ack.pipe
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


class FirstAcks(CongestionControl):
    """Keeps a window of four segments, and what the first ACKs said: `delivered`, and the rate in bit/s."""

    NEEDS = ("delivery", "recovery")

    seen: ClassVar[list[tuple[int, float]]] = []

    def on_ack(self, ack: Ack, now: int, random: Random) -> None:
        self.window = 4.0
        self.seen.append((ack.delivered, ack.delivery_rate or 0.0))
