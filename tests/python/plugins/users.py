"""Users of applications in Python for the tests; processes import this module by its name."""

# ruff: noqa: ARG002 - the methods have the arguments that the engine gives

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from perhop import Action, Application, Bytes, Duration

if TYPE_CHECKING:
    from perhop._engine import Random
    from perhop.blocks.roles import Actions


class Client(Application):
    """Requests and responses as the engine has them in `request-response`.

    Attributes:
        response: Mean size of a response, without headers.
        think: Mean time from a response to the next request.
        service: Mean time that the server takes.
    """

    NAME = "client-in-python"

    response: Bytes = Bytes("10kB")
    think: Duration = Duration("1s")
    service: Duration = Duration("0s")

    size, serving, pause, serves = 0, 0, 0, False

    def on_start(self, now: int, random: Random) -> Actions:
        self.size = self.response
        self.serving = int(self.service * random.exponential())
        self.pause = int(self.think * random.exponential())
        return Action.request(self.request)

    def on_request(self, connection: int, now: int, random: Random) -> Actions:
        if self.serving == 0:
            return Action.respond(self.size)
        self.serves = True
        return Action.wait(self.serving)

    def on_response(self, connection: int, now: int, random: Random) -> Actions:
        return [Action.wait(self.pause)] if self.pause else self.on_start(now, random)

    def on_timer(self, now: int, random: Random) -> Actions:
        if self.serves:
            self.serves = False
            return Action.respond(self.size)
        return self.on_start(now, random)


class Browser(Application):
    """Asks on three connections at once, and again when all responses are there."""

    CONNECTIONS = 3

    think: Duration = Duration("100ms")
    open_ = 0

    def on_start(self, now: int, random: Random) -> Actions:
        self.open_ = self.CONNECTIONS
        return [Action.request(300, connection=number) for number in range(self.CONNECTIONS)]

    def on_request(self, connection: int, now: int, random: Random) -> Actions:
        return Action.respond(2000 + random.up_to(20_000), connection)

    def on_response(self, connection: int, now: int, random: Random) -> Actions:
        self.open_ -= 1
        return None if self.open_ else Action.wait(self.think)

    def on_timer(self, now: int, random: Random) -> Actions:
        return self.on_start(now, random)


class Faulty(Client):
    """Does what it must not at the third response."""

    what: str
    seen = 0

    def on_response(self, connection: int, now: int, random: Random) -> Actions:
        self.seen += 1
        if self.seen < 3:
            return Action.wait(1)
        if self.what == "raises":
            self.seen //= 0
        if self.what == "loops":
            while True:
                self.seen += 1
        if self.what == "too far":
            return Action.request(100, connection=1)
        if self.what == "nothing to send":
            return Action.request(0)
        nonsense = {"a number": 7, "a list of numbers": [7], "the class": Action, "half": 0.5}
        return nonsense[self.what]  # type: ignore[return-value]


class Forgetful(Client):
    """Keeps its state outside the object."""

    calls: ClassVar[list[int]] = []

    def on_response(self, connection: int, now: int, random: Random) -> Actions:
        self.calls.append(now)
        return Action.wait(1000 * len(self.calls))


class Stuck(Client):
    """Waits for the time that it is."""

    def on_response(self, connection: int, now: int, random: Random) -> Actions:
        return Action.wait(0)

    def on_timer(self, now: int, random: Random) -> Actions:
        return Action.wait(0)


class Unready(Client):
    """Fails before the run begins."""

    def __post_init__(self) -> None:
        raise RuntimeError("not ready")


class Greedy(Client):
    """Says of itself what cannot be."""

    CONNECTIONS = 0


class Silent(Application):
    """Has no method."""
