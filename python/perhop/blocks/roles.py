"""The base classes of blocks in Python, by role."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from perhop._engine import Ack, Action, Loss, Packet, Queue, Random, Verdict
from perhop.blocks import class_state
from perhop.blocks.parameters import Bitrate, Bytes, ParameterError, path_of, read
from perhop.scenario.base import PythonApplication, PythonAqm, PythonCongestionControl, PythonMeter

if TYPE_CHECKING:
    Actions: TypeAlias = Action | Sequence[Action] | None

Color: TypeAlias = Literal["green", "yellow", "red"]
"""The color that a meter gives a packet."""
MOST_CONNECTIONS = 1000
"""The largest number of connections of one user."""


class _Checked(type):
    """Creates blocks from parameters as a scenario writes them."""

    def __call__(cls, *args: Any, **given: Any) -> Any:  # noqa: ANN401 - an object of the class
        """An object with these parameters; what is left out has its default.

        Raises:
            ParameterError: One is unknown, missing or wrong.
        """
        if args:
            raise ParameterError("", f"{cls.__name__}: write parameters by name, such as limit=…")
        values, table = read(cls, given)
        made = super().__call__(**values)
        object.__setattr__(made, "_table", table)
        return made


class Block(metaclass=_Checked):
    """The base class of all blocks in Python.

    Annotated attributes of a subclass are its parameters. Attributes without annotation are the state with
    which a run begins; give them immutable values, and create lists and dicts in `__post_init__`. Parameters
    cannot change once an object is made.

    Attributes:
        NAME: The name under which `--plugin` registers the class; by default the class's own, as `my-rule`.
        SOURCE: What it follows: a paper and figure, an RFC and section.
        YEAR: When that was published.
    """

    NAME: ClassVar[str] = ""
    SOURCE: ClassVar[str] = ""
    YEAR: ClassVar[int | None] = None
    ROLE: ClassVar[str] = ""
    TAG: ClassVar[str] = ""
    """The key of a scenario's table that names the block."""
    DECIDES: ClassVar[str] = ""
    """The method that every class of the role must have."""

    if TYPE_CHECKING:

        def __init__(self, **parameters: object) -> None: ...

    def __init_subclass__(cls) -> None:
        """Annotated attributes become parameters.

        Raises:
            TypeError: Objects of the class would share state, or it does not take its parameters.
        """
        super().__init_subclass__()
        class_state.refuse_shared(cls, Block)
        if "NAME" not in vars(cls):
            cls.NAME = re.sub(r"(?<!^)(?=[A-Z][a-z])", "-", cls.__name__).lower().replace("_", "-")
        if cls.__doc__ is None:
            cls.__doc__ = f"The class {path_of(cls)}."
        class_state.keep_defaults(cls)
        dataclass(kw_only=True, eq=False)(cls)
        class_state.fix_parameters(cls)

    @staticmethod
    def inherits(block: Block, method: str) -> bool:
        """Whether a block has no method of this name of its own."""
        base = BASES[block.ROLE]
        return getattr(type(block), method, None) is getattr(base, method)

    SAYS: ClassVar[tuple[str, ...]] = ()
    """Keys of the table that the class says itself."""

    @classmethod
    def says(cls) -> dict[str, Any]:
        """Return the table's keys of the class besides its parameters: those of `SAYS`.

        Raises:
            ParameterError: An attribute of the class is wrong.
        """
        return {}

    def placed(self, place: Any) -> None:  # noqa: ANN401 - each role has its own
        """Learn where the engine has placed the block; the engine calls this once, before any other method.

        Args:
            place: Of an AQM and a meter the rate of its place, in bit/s; see the other roles.
        """

    def place(self, name: str, value: object) -> None:
        """Set an attribute that the engine knows; a parameter of this name keeps its value."""
        if all(field.name != name for field in fields(self)):  # type: ignore[arg-type]
            setattr(self, name, value)

    def to_dict(self) -> dict[str, Any]:
        """The table of a scenario with this block."""
        table: dict[str, Any] = vars(self)["_table"]
        return {self.TAG: "python", "class": path_of(type(self)), **self.says(), **table}


class Aqm(Block, PythonAqm):
    """Active queue management in Python: decides which packets a queue drops or marks (RFC 7567).

    Times are whole nanoseconds since the start of the run. `packet` and `queue` cannot be changed; what is
    kept of them stays as it was. All randomness comes from `random`, so that runs can be repeated.

    Attributes:
        rate: The rate at which the queue is served, in bit/s; set before the first call.
    """

    ROLE, TAG, DECIDES = "aqm", "aqm", "on_arrival"

    if TYPE_CHECKING:
        rate: int

    def placed(self, place: int) -> None:
        """Store the rate of the link, in bit/s, as `rate`, unless the block has a parameter `rate`."""
        self.place("rate", place)

    def on_arrival(self, packet: Packet, queue: Queue, now: int, random: Random) -> Verdict:
        """The verdict on a packet that arrives; `queue` does not include it yet.

        Args:
            packet: Its `size` in bytes, `color`, `flow`, `ecn_capable`, `dscp`.
            queue: Its `packets` and `bytes`, `is_full(limit)`, `packets_of(color)`.
            now: The time in ns.
            random: `uniform()`, `chance(p)`, `exponential()`, `normal()`, `up_to(most)`.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method on_arrival")

    def on_departure(self, packet: Packet, queue: Queue, now: int, random: Random) -> Verdict:  # noqa: ARG002
        """The verdict on a packet that is taken from the head; `queue` is the rest.

        `now - packet.arrived` is its sojourn time. After a drop the next head is judged at the same time.
        """
        return Verdict.PASS

    def on_idle(self, since: int) -> None:
        """The queue is empty, and its last packet left at `since` (ns); called once for each idle period."""

    def gauges(self) -> dict[str, float]:
        """Return numbers by name for the probe to sample, such as an average; the names never change."""
        return {}


class Meter(Block, PythonMeter):
    """A meter in Python: measures traffic against a profile, and gives each packet a color (RFC 2475, 2.3.3).

    The parameters here are those of every meter; a subclass adds its own. What happens to a packet of a
    color is decided behind the meter: `out` makes it a policer. All randomness comes from `random`, so that
    runs can be repeated.

    Attributes:
        rate: The profile rate, in bit/s.
        af: The class of Assured Forwarding (RFC 2597) whose codepoints the marker writes: 1 to 4.
        out: What happens to packets out of profile.
        peak: The rate at which packets can come, in bit/s; set before the first call.
    """

    ROLE, TAG, DECIDES = "meter", "marker", "on_packet"

    rate: Bitrate
    af: int | None = None
    out: Literal["mark", "drop-red", "drop"] = "mark"

    if TYPE_CHECKING:
        peak: int

    def placed(self, place: int) -> None:
        """Store the peak rate at the meter, in bit/s, as `peak`, unless it has a parameter `peak`."""
        self.place("peak", place)

    def on_packet(self, packet: Packet, now: int, random: Random) -> Color:
        """The color of a packet: `green` in profile, `yellow` or `red` out of profile.

        Args:
            packet: Its `size` in bytes, `flow`, `dscp`, and the `color` with which it comes.
            now: The time in ns.
            random: `uniform()`, `chance(p)`, `exponential()`, `normal()`, `up_to(most)`.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method on_packet")


NEEDS = ("colors", "delivery", "l4s", "marks", "pacing", "recovery")
"""Records that a sender keeps only for congestion controls that ask for them."""


class _PacingRate:
    """The rate of a congestion control: settable only where the sender paces by it.

    Without `__get__`, an object's own value is found directly.
    """

    def __set__(self, control: CongestionControl, rate: float | None) -> None:
        if "pacing" not in control.NEEDS:
            raise AttributeError('`pacing_rate` has no effect; write NEEDS = ("pacing",) in the class')
        vars(control)["pacing_rate"] = rate


class CongestionControl(Block, PythonCongestionControl):
    """A congestion control of TCP in Python: decides how the window grows and shrinks (RFC 5681, RFC 9743).

    The sender finds losses and repairs them, keeps the timers, measures round trips and paces. The class
    sets `window`, and `threshold` if it has a slow start, whenever it is called. Times are whole nanoseconds
    since the start of the run. `ack` and `loss` cannot be changed; what is kept stays as it was. All
    randomness comes from `random`, so that runs can be repeated. Each flow has an object of its own.

    Attributes:
        NEEDS: What the sender keeps for the class: `delivery` (round trips and delivery rates of segments),
            `marks` (how many segments were marked), `pacing` (segments leave at `pacing_rate`), `colors`
            (the color of a lost segment), `recovery` (the class sets the window during recoveries, too, and
            gets their ACKs and each loss), `l4s` (data is ECT(1); the flow has accurate ECN).
        window: The congestion window in segments, at least 1; at first the initial window.
        threshold: The slow-start threshold in segments; at first `initial-ssthresh` or the receiver's window.
        pacing_rate: The rate at which segments leave, headers included, in bit/s; None: unlimited.
        most: The receiver's window in segments, beyond which `window` has no effect.
        packet: The size of a full segment on the wire, in bytes.
        counts_acks: The window is to grow by ACKs (RFC 5681), unless the transport says `byte-counting`.
        reserved: The rate of the flow's traffic profile in bit/s, or None.
    """

    ROLE, TAG, DECIDES = "congestion-control", "control", "on_ack"
    SAYS = ("needs",)
    NEEDS: ClassVar[tuple[str, ...]] = ()

    window = 1.0
    threshold = 1.0

    if TYPE_CHECKING:
        pacing_rate: float | None
        most: int
        packet: int
        counts_acks: bool
        reserved: int | None
    else:
        pacing_rate = _PacingRate()

    @classmethod
    def says(cls) -> dict[str, Any]:
        """Return the table's key `needs`: the records that the sender keeps for this class (`NEEDS`).

        Raises:
            ParameterError: `NEEDS` is no tuple of names of needs, or a parameter has the name of the state.
        """
        if not isinstance(cls.NEEDS, tuple) or not all(need in NEEDS for need in cls.NEEDS):  # type: ignore[redundant-expr]
            known = ", ".join(NEEDS)
            text = f'{path_of(cls)}: NEEDS is {cls.NEEDS!r}; write a tuple such as ("pacing",), of {known}'
            raise ParameterError("", text)
        for field in fields(cls):  # type: ignore[arg-type]
            if field.name in ("window", "threshold", "pacing_rate"):
                text = f"{path_of(cls)}: `{field.name}` is state that the sender reads; rename the parameter"
                raise ParameterError("", text)
        return {"needs": sorted(set(cls.NEEDS))} if cls.NEEDS else {}

    def placed(self, place: dict[str, Any]) -> None:
        """Store what the connection begins with in the attributes, but for parameters of such a name."""
        vars(self)["pacing_rate"] = None
        for name, value in place.items():
            self.place(name, value)

    def on_ack(self, ack: Ack, now: int, random: Random) -> None:
        """New data was acknowledged; called during a recovery from losses only with the need `recovery`.

        Args:
            ack: Its `delivered` segments, `acked` (the first segment that is not acknowledged), `in_flight`
                (segments), `smoothed_rtt_s` (of data; 0 before the first). With `delivery` also `rtt` (ns, of
                the newest segment; None if that was sent more than once), `delivery_rate` (bit/s), `round`
                and `is_app_limited`, with `marks` also `marked`, with `recovery` also `pipe` (segments in the
                network), `lost` (segments found lost since the last ACK) and `recovering`.
            now: The time in ns.
            random: `uniform()`, `chance(p)`, `exponential()`, `normal()`, `up_to(most)`.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method on_ack")

    def on_loss(self, loss: Loss, now: int, random: Random) -> None:  # noqa: ARG002
        """A loss was found, and a recovery begins: once in each. By default half the window is left.

        Args:
            loss: The `window` in force, `smoothed_rtt_s`; with `NEEDS` also `color`.
            now: The time in ns.
            random: As of `on_ack`.
        """
        self.threshold = max(loss.window / 2, 2.0)
        self.window = self.threshold

    def on_ecn(self, loss: Loss, now: int, random: Random) -> None:
        """Packets were marked (ECN): at most once in a window of data. By default as a loss."""
        self.on_loss(loss, now, random)

    def on_lost(self, lost: int, in_flight: int, now: int, random: Random) -> None:
        """A segment is lost; called with the needs `recovery` and `delivery`, before `on_ack`.

        Args:
            lost: Segments found to be lost since it was sent, itself included.
            in_flight: Segments in the network when it was sent, itself included.
            now: The time in ns.
            random: As of `on_ack`.
        """

    def on_timeout(self, loss: Loss, now: int, random: Random) -> None:
        """The retransmission timer expired. By default as a loss, and slow start from one segment."""
        self.on_loss(loss, now, random)
        self.window = 1.0

    def on_idle(self, idle: int) -> None:
        """The application has data again after so many nanoseconds in which nothing was outstanding."""

    def leave_slow_start(self) -> None:
        """Adapt to the end of slow start where the transport's `slow-start` ends it before a loss."""
        self.threshold = self.window


class Application(Block, PythonApplication):
    """A user of an application in Python: decides when to request and respond how much, over TCP.

    One object is both ends of its connections: the client, who requests, and the server, who responds. Each
    method returns an `Action`, a list of these, or None. Times are whole nanoseconds since the start of the
    run. All randomness comes from `random`, so that every mechanism gets the same users.

    Attributes:
        CONNECTIONS: How many connections each user has, numbered from 0.
        request: Size of an ordinary request, without headers: one of this size is one packet.
    """

    ROLE, TAG, DECIDES = "application", "model", "on_start"
    SAYS = ("connections",)
    CONNECTIONS: ClassVar[int] = 1

    request: Bytes = Bytes("200B")

    @classmethod
    def says(cls) -> dict[str, Any]:
        """Return the table's key `connections`, the number of TCP connections of a user, unless it is 1.

        Raises:
            ParameterError: `CONNECTIONS` is no number of connections.
        """
        if type(cls.CONNECTIONS) is not int or not 1 <= cls.CONNECTIONS <= MOST_CONNECTIONS:
            text = f"{path_of(cls)}: CONNECTIONS is {cls.CONNECTIONS!r}; write 1 to {MOST_CONNECTIONS}"
            raise ParameterError("", text)
        return {} if cls.CONNECTIONS == 1 else {"connections": cls.CONNECTIONS}

    def on_start(self, now: int, random: Random) -> Actions:
        """Return what the user does at its start; the engine calls this once.

        Args:
            now: The time in ns.
            random: `uniform()`, `chance(p)`, `exponential()`, `normal()`, `up_to(most)`.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method on_start")

    def on_request(self, connection: int, now: int, random: Random) -> Actions:
        """Return what the server does once all bytes of a request have arrived."""

    def on_response(self, connection: int, now: int, random: Random) -> Actions:
        """Return what the client does once all bytes of a response have arrived."""

    def on_timer(self, now: int, random: Random) -> Actions:
        """Return what the user does at the time that its last `Action.wait` named."""


BASES: dict[str, type[Block]] = {
    "aqm": Aqm,
    "meter": Meter,
    "congestion-control": CongestionControl,
    "application": Application,
}
"""The base class of each role."""
