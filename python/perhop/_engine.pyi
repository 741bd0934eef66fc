"""The engine: scenarios in, measurements out. Written in Rust; see `crates/perhop-python`."""

from collections.abc import Callable
from os import PathLike
from typing import Any, BinaryIO, Final, Literal, TypedDict, final

import numpy as np
from numpy.typing import NDArray

from perhop.runs.outcome import LiveOutcome, Outcome

version: str
"""The engine's version."""
optimized: bool
"""Whether it was compiled with all optimization, as for a wheel, and not in a hurry, as by `make build`."""

class ScenarioError(ValueError):
    """A scenario that cannot be run. `str()` is the whole message: file, line, key, problem and remedy."""

class LiveUnavailable(Exception):  # noqa: N818 - it is the system's, not the program's
    """This system cannot run scenarios on real packets: what is missing, and what would help."""

class CaptureError(ValueError):
    """A capture that cannot be replayed. `str()` says what is wrong with the file, without its name."""

class Cancelled(Exception):  # noqa: N818 - it is no error
    """The run was cancelled before its end."""

@final
class Cancel:
    """A way to end runs early, and to see how far they are, from any thread."""

    def __new__(cls, most_bytes: int | None = None) -> Cancel:
        """Runs that are given this object and take more memory than `most_bytes` raise `MemoryError`."""

    def cancel(self) -> None:
        """End every run that was given this object; they raise `Cancelled`."""
    def is_cancelled(self) -> bool:
        """Whether `cancel` was called."""
    def under_way(self) -> float:
        """The runs with this object that are on, each by the part of it that has been simulated."""

def excess(text: str, syntax: str) -> tuple[int, str] | None:
    """What of a text no reader takes: its line, and what it is; `syntax` is `toml`, `json` or `xml`."""

def scenario_from_toml(text: str, origin: str) -> str:
    """Read a scenario in TOML.

    Args:
        text: The scenario.
        origin: The name of the file in messages.

    Returns:
        The scenario as canonical JSON, defaults filled in.

    Raises:
        ScenarioError: The scenario cannot be run.
    """

def scenario_from_json(text: str, origin: str) -> str:
    """As `scenario_from_toml`, for JSON."""

def tcp_ends(text: str) -> list[tuple[str, str] | None]:
    """Return the sender and the receiver of each group's TCP on real packets, `kernel` or `perhop`.

    None for other transports and for users. The scenario is canonical JSON.
    """

def read_toml(
    text: str, origin: str, *, real_packets: bool = False, folder: str | PathLike[str] | None = None
) -> tuple[str, list[str]]:
    """Read a scenario in TOML that is to be run.

    Args:
        text: The scenario.
        origin: The name of the file in messages.
        real_packets: It is to be run by `live` and not by `simulate`.
        folder: Where the files are that the scenario names; without it, it may name none. Their text becomes
            part of the scenario.

    Returns:
        The scenario as canonical JSON, and notices: what in it cannot act, or acts otherwise than it seems.

    Raises:
        ScenarioError: The scenario cannot be run, or asks for what can have no effect there.
    """

def read_json(
    text: str, origin: str, *, real_packets: bool = False, folder: str | PathLike[str] | None = None
) -> tuple[str, list[str]]:
    """As `read_toml`, for JSON."""

def scenario_to_toml(text: str, origin: str) -> str:
    """A scenario in JSON as TOML, defaults filled in; `scenario_from_toml` reads the same from it.

    Raises:
        ScenarioError: The scenario cannot be run.
    """

def scenario_schema() -> str:
    """The JSON Schema (2020-12) of the scenario format."""

def blocks() -> str:
    """Every registered block as JSON.

    A list of objects: `name`, `role` ("aqm", "meter", "scheduler" or "congestion-control"), `summary`,
    `source`, and `parameters`, which maps a parameter's name to its `type`, whether it is `required`, its
    `default` (null if it has none) and `description`. A congestion control also has `kernel`: the name that
    Linux has for it, or null.
    """

def shape(scenario: str) -> str:
    """What the network of a scenario is like, as JSON.

    Args:
        scenario: In JSON, as `scenario_from_toml` returns it.

    Returns:
        `words`, `routers`, `links`, `tiers`, `degrees`, `parts`, `diameter` and `mean_hops`.

    Raises:
        ScenarioError: The scenario cannot be run.
    """

def written_out(scenario: str) -> str:
    """A scenario with a table for each link in place of its topology, as canonical JSON.

    Args:
        scenario: In JSON, as `scenario_from_toml` returns it.

    Raises:
        ScenarioError: The scenario cannot be run.
    """

def with_limits(scenario: str) -> str:
    """A scenario with the default limits of its queues written out, as canonical JSON.

    Args:
        scenario: In JSON, as `scenario_from_toml` returns it.

    Raises:
        ScenarioError: The scenario cannot be run.
    """

def bounds(text: str, cancel: Cancel | None = None) -> str:
    """Derive by network calculus what no run of a scenario can exceed, as JSON; `perhop.bounds` reads it.

    Args:
        text: The scenario in JSON, as `scenario_from_toml` returns it.
        cancel: Set it from another thread to end the derivation.

    Returns:
        `links`, each with its `classes`, and `flows`: each with `delay`, `backlog` (of queues) and `loss`, a
        bound or the reason why there is none, and the `steps` of the derivation; `notes` on the network.

    Raises:
        ScenarioError: The scenario cannot be run.
        Cancelled: `cancel` was set.
    """

def memory(scenario: str) -> dict[str, Any]:
    """How much memory a run takes; packets on their way are counted in large networks only.

    Args:
        scenario: In JSON, as `scenario_from_toml` returns it.

    Returns:
        `run_bytes`: while the run is on; `kept_bytes`: its result. `flows` and `flow_bytes`, `links` and
        `link_bytes`, `samples` and `sample_bytes`: what takes it. `text`: the same in words.

    Raises:
        ScenarioError: The scenario cannot be run.
    """

def tcp_presets() -> str:
    """The presets of TCP as JSON; docs/presets.md shows them.

    A list of objects with `name`, `system` and `defaults`: each a `key`, its `value`, its `source`,
    `since` when that is so, and whether it is a `rule` of the sender, where the key stays out of scenarios.
    """

def measures() -> str:
    """The catalog of measures as JSON; `perhop.measures.catalog` reads it.

    `flow`, `link` and `queue`: lists of objects with `name`, `unit`, `description`, `kind` ("count",
    "number", "optional" or "by-color") and `summary` (null, or how tables, sweeps and comparisons show it).
    """

def simulate(
    scenario: str,
    seed: int,
    cancel: Cancel | None = None,
    *,
    engine: Literal["batched", "reference"] | None = None,
    threads: int = 1,
) -> Outcome:
    """Run a scenario once; other threads go on meanwhile.

    Args:
        scenario: The scenario in JSON, as `scenario_from_toml` returns it.
        seed: From 0 to 2**64 - 1. The same scenario and seed give the same result on every machine.
        cancel: Set it from another thread to end the run.
        engine: The engine; if not given, the batched engine if it accepts the network, else the reference
            engine, which takes longer. The results are the same.
        threads: The batched engine divides a large network among at most so many threads. The results are
            the same.

    Raises:
        ScenarioError: The scenario cannot be run, or not by the batched engine if that is requested.
        Cancelled: `cancel` was set.
        MemoryError: The run takes more than `cancel` allows.
    """

def split_pilot(
    scenario: str,
    seed: int,
    backlog: tuple[str, str | None, str],
    what: tuple[str, float],
    most_events: int,
    cancel: Cancel | None = None,
) -> str:
    """Find levels for the splitting of a scenario's runs, as JSON; `perhop.splitting` reads it.

    Args:
        scenario: The scenario in JSON, as `scenario_from_toml` returns it.
        seed: Runs of the pilot share no random numbers with other runs of this seed.
        backlog: What says how near the event is: a link, a class of its queue or None for all, and `packets`
            or `bytes`.
        what: `loss` and 0; `wait` and the wait in nanoseconds; or `share` and a probability, for a quantile.
        most_events: The pilot looks for no more levels if it takes more.
        cancel: Set it from another thread to end it.

    Returns:
        `levels`, each with `from` and `trials`; `ending` (`reached`, `empty`, `stuck` or `unvaried`) and
        `events`.

    Raises:
        ScenarioError: The scenario cannot be run, or the link has no such queue.
        Cancelled: `cancel` was set.
    """

def split_run(
    scenario: str,
    seed: int,
    backlog: tuple[str, str | None, str],
    what: tuple[str, float],
    levels: list[tuple[int, int]],
    most_events: int,
    cancel: Cancel | None = None,
) -> str:
    """Run a scenario with splitting; return what was counted, as JSON.

    Args:
        scenario: The scenario in JSON, as `scenario_from_toml` returns it.
        seed: From 0 to 2**64 - 1.
        backlog: See `split_pilot`.
        what: See `split_pilot`; no `share`.
        levels: The least backlog of each level, and its number of trials.
        most_events: The run is given up if it takes more.
        cancel: Set it from another thread to end the run.

    Returns:
        After the warm-up: `classes`, each with `name` and, by color, the weighted numbers of packets that
        `arrived`, were `dropped` and `sent`; `waits`, each with `from_s`, `longest_s` and `packets`; `rare`
        and `squares` of the event. Further `events`, `main_events`, `stays`, `rare_stays`, and of each of
        the `levels` its `rises` and `copies`.

    Raises:
        ScenarioError: The scenario cannot be run, or the link has no such queue; or the run took too many
            events.
        Cancelled: `cancel` was set.
    """

def record(
    scenario: str,
    seed: int,
    cancel: Cancel | None = None,
    *,
    links: list[tuple[str, str]],
    comment: str,
    capture: Callable[[bytes], object] | None = None,
    events: Callable[[bytes], object] | None = None,
) -> Outcome:
    """As `simulate` on the reference engine, and record what becomes of packets at links.

    Args:
        scenario: The scenario in JSON, as `scenario_from_toml` returns it.
        seed: From 0 to 2**64 - 1.
        cancel: Set it from another thread to end the run; the engine sets it where a file cannot be written.
        links: The links, with the names of both directions.
        comment: What the capture says of the run.
        capture: Takes the pieces of a capture file (pcapng).
        events: Takes records as `record_format` describes them.

    Raises:
        ScenarioError: The scenario cannot be run.
        Cancelled: `cancel` was set.
        MemoryError: The run takes more than `cancel` allows.
    """

def record_format() -> tuple[list[tuple[str, str]], list[str], list[str]]:
    """How events are recorded: fields with their numpy types, the names of events, and those of reasons."""

class _Division(TypedDict):
    routers: list[int]
    work: list[float]
    border: int
    lookahead_s: float

def division(
    scenario: str, threads: int, cancel: Cancel | None = None
) -> tuple[_Division, None] | tuple[None, str]:
    """How a scenario is divided among at most so many threads if no engine is requested, or why it is not.

    Of each thread's part: how many routers it has, and its share of the work. `border` is the number of links
    between parts; a packet takes at least `lookahead_s` over them, and so long parts run on their own.

    Raises:
        ScenarioError: A flow's endpoints are not connected.
        Cancelled: `cancel` was set.
    """

def engine_for(
    scenario: str, cancel: Cancel | None = None
) -> tuple[Literal["batched", "reference"], str | None]:
    """The engine that runs a scenario if none is requested; other threads go on meanwhile.

    It takes the memory of the scenario's flows (`memory`), and none once it has returned.

    Args:
        scenario: In JSON, as `scenario_from_toml` returns it.
        cancel: Set it from another thread to end the setup of the flows.

    Returns:
        The engine, and why it is the reference engine; None for the batched engine.

    Raises:
        ScenarioError: The scenario cannot be run.
        Cancelled: `cancel` was set.
    """

def replay(
    file: BinaryIO,
    options: str,
    scenario: tuple[str, str] | None = None,
    cancel: Cancel | None = None,
    *,
    data_plane: bool = False,
    packets: bool = False,
) -> tuple[str, dict[str, Any] | None]:
    """Replay a capture; other threads go on meanwhile.

    Args:
        file: A pcap or pcapng file, open for reading bytes; it is read once, from where it is.
        options: In JSON: `meter`, `queue` and `rate`, or `link`; `interface`, `match`, `from`, `to`, `speed`,
            `allow-cut`, `seed` and `top`.
        scenario: The scenario of `link`, TOML or JSON, and the name of its file in messages.
        cancel: Set it from another thread to end the replay.
        data_plane: Forward the packets' bytes through the data plane. The verdicts are the same.
        packets: Keep what became of each packet.

    Returns:
        The report as JSON, and columns of what became of each packet, as arrays by name, with `reasons`: the
        names of verdicts below 255, which is a packet that left.

    Raises:
        CaptureError: The file cannot be read to its end, or has no packet to replay.
        ScenarioError: The options or the scenario are wrong.
        Cancelled: `cancel` was set.
    """

def interrupt_handled() -> None:
    """The handler of Ctrl-C is being called."""

def watch_interrupts() -> int:
    """Start a thread that ends the program if its handler of Ctrl-C is not called in time.

    Returns:
        A descriptor for `signal.set_wakeup_fd`.
    """

def end_with_parent() -> None:
    """Start a thread that ends this program soon after the one that has started it."""

def student_t_cdf(freedom: float, t: float) -> float:
    """The probability that Student's t is at most `t`.

    Args:
        freedom: Degrees of freedom, above 0; need not be whole.
        t: Any number.

    Raises:
        ValueError: There are no such degrees of freedom.
    """

def student_t_quantile(freedom: float, probability: float) -> float:
    """The value that Student's t exceeds with probability `1 - probability`.

    Args:
        freedom: Degrees of freedom, above 0; need not be whole.
        probability: From 0 to 1.

    Raises:
        ValueError: There are no such degrees of freedom, or no such probability.
    """

def beta_quantile(a: float, b: float, probability: float) -> float:
    """The value that a beta variable exceeds with probability `1 - probability`.

    Args:
        a: First parameter, above 0.
        b: Second parameter, above 0.
        probability: From 0 to 1.

    Raises:
        ValueError: There are no such parameters, or no such probability.
    """

def product_limit(
    ended: NDArray[np.float64],
    open: NDArray[np.float64],  # noqa: A002 - its name
) -> tuple[NDArray[np.float64], NDArray[np.float64], float | None]:
    """The distribution of times of which some had not ended, by the product limit (Kaplan & Meier 1958).

    Args:
        ended: Times that ended, f64[n] in one piece.
        open: Times so far of those that had not, f64[m] likewise.

    Returns:
        Times that ended, each once, ascending, as far as each counts for itself and at most another one that
        was cut off before; the share of all that is at most as long as each; and the mean of all, a lower
        bound where the longest is open; None if none ended.
    """

def live_probe() -> None:
    """Try everything that a run on real packets begins with. The process is changed for good, as by `live`.

    Raises:
        LiveUnavailable: Something is missing.
    """

def kernel_queue(
    *,
    device: str,
    commands: list[str],
    at_ns: list[int],
    size: list[int],
    dscp: list[int],
    ecn: list[int],
    flow: list[int],
    real_time: bool = True,
) -> dict[str, Any]:
    """Send packets through a queueing discipline of the kernel. It changes the process, as `live` does.

    Args:
        device: The name of the device, a TUN device in a network namespace of its own.
        commands: Lines that begin with `tc`, which set up the discipline there.
        at_ns: When to send each packet, in nanoseconds after the start.
        size: Their sizes, from 32 bytes.
        dscp: Their codepoints.
        ecn: Their ECN fields, 0 to 3.
        flow: The numbers of their flows.
        real_time: Whether the sender gets real-time priority where that is allowed.

    Returns:
        Lists with an entry for each packet: `began_ns` and `ended_ns` of the call that handed it over,
        whether it was `accepted`, and `left_ns`, `left_dscp`, `left_ecn`, None if it was dropped. And
        `counters` (what `tc -s -j qdisc` prints), `kernel`, `real_time`, `clock_step_ns`.

    Raises:
        LiveUnavailable: The system lacks something, such as the discipline.
        ScenarioError: A packet cannot be sent.
    """

def live_check(scenario: str) -> None:
    """Check that hosts could run a scenario on real packets, whatever this system has; Linux only.

    Args:
        scenario: The scenario in JSON, as `scenario_from_toml` returns it.

    Raises:
        ScenarioError: The scenario asks for what no kernel has.
        LiveUnavailable: This is not Linux.
    """

def live_in_virtual_time(scenario: str, seed: int) -> LiveOutcome:
    """Run a scenario once with perhop's own TCP and the data plane in virtual time, without the kernel.

    Args:
        scenario: The scenario in JSON, as `scenario_from_toml` returns it.
        seed: Draws the flows' starts and the router's chance, as in a simulation.

    Raises:
        ScenarioError: A flow has not perhop's own TCP at both ends, or asks for what no run on real packets
            has.
        LiveUnavailable: This system is not Linux.
    """

def live(
    scenario: str,
    seed: int,
    *,
    real_time: bool = True,
    device: str = "auto",
    watch_s: float | None = None,
    watch: Callable[[str], None] | None = None,
) -> LiveOutcome:
    """Run a scenario once on real packets, in real time.

    The process must have one thread, and is changed for good.

    Args:
        scenario: The scenario in JSON, as `scenario_from_toml` returns it.
        seed: Draws the flows' starts and the router's chance, as in a simulation.
        real_time: Give the router real-time priority where that is allowed.
        device: How hosts are joined to the router: by "tun" devices, by "packet" sockets and Ethernet, or
            "auto", TUN where it can be.
        watch_s: How often `watch` is called, in seconds.
        watch: Called with a line of JSON: how the run goes.

    Raises:
        ScenarioError: The scenario asks for what no kernel has.
        LiveUnavailable: This system lacks something, or does not allow it.
        RuntimeError: Something went wrong.
    """

@final
class Verdict:
    """The decision of an AQM about a packet."""

    PASS: Final[Verdict]
    """Admit the packet."""
    DROP: Final[Verdict]
    """Drop the packet, for the reason `controller`."""
    NOTIFY: Final[Verdict]
    """Mark the packet and admit it if it is ECN-capable, otherwise drop it; for the reason `controller`."""
    OVERFLOW: Final[Verdict]
    """Drop the packet because the queue has no room."""

    @staticmethod
    def drop(reason: str) -> Verdict:
        """Drop the packet for a reason, such as `early`.

        Raises:
            ValueError: There is no such reason; the message lists all.
        """
    @staticmethod
    def notify(reason: str) -> Verdict:
        """Mark the packet and admit it if it is ECN-capable, otherwise drop it; for a reason: `early`.

        Raises:
            ValueError: There is no such reason; the message lists all.
        """
    @staticmethod
    def _of(kind: str, reason: str | None) -> Verdict: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Packet:
    """A packet as it was at the call of a block in Python that got it; it can be read, and not changed."""

    @property
    def size(self) -> int:
        """Size on the wire in bytes, IP header included."""
    @property
    def color(self) -> Literal["green", "yellow", "red"]:
        """Drop precedence: `green` (in profile), `yellow` or `red`."""
    @property
    def flow(self) -> int:
        """The number of its flow in the run, from 0."""
    @property
    def is_backward(self) -> bool:
        """Whether it goes from receiver to sender, as ACKs do."""
    @property
    def ecn_capable(self) -> bool:
        """Whether it is ECN-capable: a mark in it notifies its ends of congestion (RFC 3168)."""
    @property
    def dscp(self) -> int:
        """The codepoint of the packet (RFC 2474): 0 to 63."""
    @property
    def arrived(self) -> int:
        """When it came to this queue, in ns: at departure `now - packet.arrived` is its sojourn time."""
    @property
    def service_rate(self) -> float:
        """The contracted rate of its flow, in bit/s; 0 without one."""
    def __deepcopy__(self, _memo: dict[int, object]) -> Packet: ...

@final
class Ack:
    """What an ACK of new data says, at a call of a congestion control in Python."""

    @property
    def delivered(self) -> int:
        """Segments newly acknowledged, in order or selectively."""
    @property
    def marked(self) -> int:
        """How many of them were marked. Requires the need `marks`."""
    @property
    def acked(self) -> int:
        """The number of the first segment that is not acknowledged."""
    @property
    def in_flight(self) -> int:
        """Segments sent and not acknowledged."""
    @property
    def smoothed_rtt_s(self) -> float:
        """The smoothed round-trip time in seconds; 0 before the first is known."""
    @property
    def rtt(self) -> int | None:
        """The round trip of the segment that the ACK acknowledges, in ns; None if it was sent more than once.

        Requires the need `delivery`, as the properties below.
        """
    @property
    def delivery_rate(self) -> float | None:
        """How fast the network delivered while that segment was under way, in bit/s, if there is a sample."""
    @property
    def round(self) -> int:
        """The number of the round trip, from 1 on; 0 without a sample."""
    @property
    def is_app_limited(self) -> bool:
        """The application had no more to send, so the delivery rate says little of the path."""
    @property
    def pipe(self) -> int:
        """Segments thought to be in the network. Requires the need `recovery`, as the properties below."""
    @property
    def lost(self) -> int:
        """Segments found to be lost since the ACK before this."""
    @property
    def recovering(self) -> bool:
        """Losses are being repaired."""
    def __deepcopy__(self, _memo: dict[int, object]) -> Ack: ...

@final
class Loss:
    """What a sender knows when it learns of congestion."""

    @property
    def window(self) -> float:
        """The window in force in segments, at most the receiver's."""
    @property
    def smoothed_rtt_s(self) -> float:
        """The smoothed round-trip time in seconds; 0 before the first is known."""
    @property
    def color(self) -> Literal["green", "yellow", "red"]:
        """The color of the first segment that is missing. Requires the need `colors`."""
    def __deepcopy__(self, _memo: dict[int, object]) -> Loss: ...

@final
class Action:
    """What a user of an application does next."""

    @staticmethod
    def request(size: int, connection: int = 0) -> Action:
        """The client asks for something in so many bytes, without headers.

        Raises:
            TypeError, ValueError: The size is no whole number from 1 to 10**12.
        """
    @staticmethod
    def respond(size: int, connection: int = 0) -> Action:
        """The server answers with so many bytes, without headers.

        Raises:
            TypeError, ValueError: The size is no whole number from 1 to 10**12.
        """
    @staticmethod
    def wait(span: int) -> Action:
        """`on_timer` is to be called after so many nanoseconds, in place of an earlier wish.

        Raises:
            TypeError, ValueError: The time is no whole number from 0.
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Queue:
    """What waited in a queue at the call that got it; the packet in transmission is not counted."""

    @property
    def packets(self) -> int:
        """Packets waiting."""
    @property
    def bytes(self) -> int:
        """Bytes waiting."""
    @property
    def ahead(self) -> int:
        """Packets waiting that are served before one that arrives now."""
    def packets_of(self, color: str) -> int:
        """Packets of a color waiting.

        Raises:
            ValueError: There is no such color.
        """
    def is_full(self, limit: Depth) -> bool:
        """Whether the packet of this call would exceed a limit."""
    def __len__(self) -> int: ...
    def __deepcopy__(self, _memo: dict[int, object]) -> Queue: ...

@final
class Random:
    """The random stream of a block, the same for the same seed; it draws during the call only."""

    def uniform(self) -> float:
        """Uniform on [0, 1)."""
    def chance(self, p: float) -> bool:
        """True with probability `p`; for 0 and 1 nothing is drawn.

        Raises:
            ValueError: `p` is not from 0 to 1.
        """
    def up_to(self, most: int) -> int:
        """Uniform on the whole numbers 0 to `most`."""
    def exponential(self) -> float:
        """Exponential with mean 1."""
    def normal(self) -> float:
        """Normal with mean 0 and standard deviation 1."""
    def __deepcopy__(self, _memo: dict[int, object]) -> Random: ...

@final
class Depth:
    """The room in a queue, in packets (`100p`) or bytes (`40kB`)."""

    def __new__(cls, text: str) -> Depth:
        """Read a depth.

        Raises:
            ValueError: The text is none; the message says what would be right.
        """
    @property
    def packets(self) -> int | None:
        """Packets; None if it is in bytes."""
    @property
    def bytes(self) -> int | None:
        """Bytes; None if it is in packets."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

def quantity(kind: str, value: object) -> tuple[Any, Any]:
    """A parameter of a block in Python.

    Args:
        kind: `duration` (in ns), `rate` (bit/s), `size` (bytes), `depth` or `probability`.
        value: Text with a unit, or a number for a probability.

    Returns:
        The value as a block has it, and as a scenario writes it.

    Raises:
        TypeError, ValueError: It is none; the message says what would be right.
    """

def inside_class() -> bool:
    """Whether this thread is in a call of a class."""

def set_forked(forked: bool) -> None:
    """Set whether `perhop.processes.forks` is to be asked when a class returns."""

def check_aqm(table: str, sequences: int) -> list[tuple[str, str | None]]:
    """Drive an AQM in Python through random sequences of calls; see `perhop check-block`.

    Args:
        table: Its table as JSON, with `aqm`, `class` and its parameters.
        sequences: How many sequences.

    Returns:
        Pairs of what is checked, and what is wrong, if anything is.
    """

def check_meter(table: str, sequences: int) -> list[tuple[str, str | None]]:
    """Drive a meter in Python through random sequences of packets; see `perhop check-block`.

    Args:
        table: Its table as JSON, with `marker`, `class` and its parameters.
        sequences: How many sequences.

    Returns:
        Pairs of what is checked, and what is wrong, if anything is.
    """

def check_congestion_control(table: str, sequences: int) -> list[tuple[str, str | None]]:
    """Drive a congestion control in Python through random sequences of calls; see `perhop check-block`.

    Args:
        table: Its table as JSON, with `control`, `class` and its parameters.
        sequences: How many sequences.

    Returns:
        Pairs of what is checked, and what is wrong, if anything is.
    """

def check_application(table: str, sequences: int) -> list[tuple[str, str | None]]:
    """Drive a user in Python through random sequences of events; see `perhop check-block`.

    Args:
        table: Its table as JSON, with `model`, `class` and its parameters.
        sequences: How many sequences.

    Returns:
        Pairs of what is checked, and what is wrong, if anything is.
    """

def duration_ns(text: str) -> int:
    """A duration as scenarios write it, such as `5s`, in nanoseconds.

    Raises:
        ScenarioError: It is no duration.
    """

@final
class Stepper:
    """A run in progress that goes on only as far as it is asked to. See `perhop.Simulation`."""

    def __new__(cls, scenario: str, seed: int, engine: str, cancel: Cancel | None = None) -> Stepper:
        """The network at time 0; `cancel` bounds its memory.

        Raises:
            ScenarioError: The scenario is wrong, or the engine refuses the network.
            MemoryError: It takes more than `cancel` allows.
        """
    @property
    def now_ns(self) -> int:
        """Up to when everything has happened, in nanoseconds."""
    @property
    def end_ns(self) -> int:
        """When the run ends, in nanoseconds."""
    def run_until(self, ns: int) -> None:
        """Run up to and including this time; other threads go on meanwhile. Ctrl-C ends it before."""
    def link_names(self) -> list[str]:
        """The links with a queue."""
    def flow_names(self) -> list[str]:
        """All flows, in their order."""
    def link(self, name: str) -> dict[str, Any] | None:
        """A link as it is now: `rate_bps`, `delay_s`, `gauges` (pairs) and `classes` (counters by color)."""
    def flow(self, number: int) -> dict[str, Any]:
        """A flow as it is now.

        Raises:
            ScenarioError: It cannot be seen, and why.
        """
    def change(self, scenario: str) -> tuple[str, list[str]]:
        """Go on with this scenario in JSON: its defaults filled in, and notices not reported before.

        Raises:
            ScenarioError: The scenario is wrong, or differs in what cannot change; nothing has changed.
        """
    def copy(self) -> Stepper:
        """A copy that goes on by itself."""
    def outcome(self) -> Outcome:
        """What was measured in a run that is at its end, as `simulate` returns it."""

@final
class QueueByHand:
    """A queue without clock and link. See `perhop.drive`."""

    def __new__(cls, table: str, rate: str, seed: int) -> QueueByHand:
        """The queue of an AQM's or a scheduler's table in JSON.

        Raises:
            ValueError: A parameter is wrong.
        """
    def copy(self) -> QueueByHand:
        """A copy that goes on by itself."""
    def offer(
        self, ns: int, number: int, fields: tuple[int, str, int, int, int, int, int]
    ) -> list[tuple[int, str, str | None, str, int]]:
        """Number, verdict, reason, color and ECN field: of a packet, and of those that it pushes out.

        Raises:
            ValueError: A field is out of range.
        """
    def departure(
        self, ns: int
    ) -> tuple[
        list[tuple[int, str, str | None, str, int]], tuple[int, str, str | None, str, int] | None, int | None
    ]:
        """Packets dropped at their departure, the one that is sent, and when to ask again, in nanoseconds."""
    def gauges(self) -> list[tuple[str, float]]:
        """What the block keeps track of."""
    def waiting(self) -> tuple[int, int]:
        """Packets and bytes that wait."""
    def classes(self) -> list[dict[str, Any]]:
        """The counters of each class of packets."""
    def state(self) -> str:
        """All of its state as text."""

@final
class MeterByHand:
    """A meter without clock. See `perhop.drive`."""

    def __new__(cls, table: str, rate: str, seed: int) -> MeterByHand:
        """The meter of a table in JSON.

        Raises:
            ValueError: A parameter is wrong.
        """
    def offer(self, ns: int, fields: tuple[int, str, int, int, int, int, int]) -> tuple[str, str | None]:
        """The color of a packet, and why it is dropped if it is.

        Raises:
            ValueError: A field is out of range.
        """
    def state(self) -> str:
        """All of its state as text."""
