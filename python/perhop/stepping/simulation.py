"""A simulation to step through: read between two steps, changed, copied, and ended like any other run."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from perhop import _engine
from perhop.errors import PerhopError, PerhopWarning, ScenarioError
from perhop.files import arguments
from perhop.measures.run import COLORS, Run
from perhop.processes import memory
from perhop.runs.extent import ENGINES, Engine, seeds
from perhop.runs.result import Result
from perhop.scenario.base import plain
from perhop.scenario.reading import ScenarioSource, read
from perhop.stepping.changing import KINDS, at, endless, put, settable

Time: TypeAlias = "str | float"
"""A time as scenarios write it (`5s`, `20ms`), or in seconds."""


def nanoseconds(time: Time, name: str = "time") -> int:
    """A time in nanoseconds.

    Raises:
        PerhopError: It is no time, or negative.
    """
    if isinstance(time, str):
        try:
            return _engine.duration_ns(time)
        except ScenarioError as error:
            raise PerhopError(f"{name}: {error}") from None
    given: object = time
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given < 1e9:
        raise PerhopError(f"{name}: a time is a text such as '5s', or seconds from 0 to 1e9, not {given!r}")
    return round(given * 1e9)


@dataclass(frozen=True, slots=True)
class ByColor:
    """Packets of each drop precedence."""

    green: int
    yellow: int
    red: int

    @property
    def total(self) -> int:
        """The packets of all colors."""
        return self.green + self.yellow + self.red


@dataclass(frozen=True, slots=True)
class QueueState:
    """A queue, or one class of its packets, at some time. Counts are since the run began, warm-up included.

    Attributes:
        length: Packets that wait; the one in transmission does not.
        bytes: Their bytes.
        arrived: Packets that came.
        sent: Packets whose transmission began.
        dropped: Packets dropped, by reason; a reason that did not occur is left out.
        notified: Packets marked as having met congestion (ECN), likewise.
        gauges: What AQMs and scheduler keep track of, by name, such as `average total`; none for a class.
        classes: The classes of packets that the queue distinguishes, by name; none for a class.
    """

    length: int
    bytes: int
    arrived: ByColor
    sent: ByColor
    dropped: Mapping[str, ByColor]
    notified: Mapping[str, ByColor]
    gauges: Mapping[str, float] = field(default_factory=dict)
    classes: Mapping[str, QueueState] = field(default_factory=dict)

    @property
    def drops(self) -> int:
        """Packets dropped for any reason."""
        return sum(packets.total for packets in self.dropped.values())

    @property
    def marks(self) -> int:
        """Packets marked as having met congestion."""
        return sum(packets.total for packets in self.notified.values())


@dataclass(frozen=True, slots=True)
class LinkState:
    """One direction of a link with a queue, at some time.

    Attributes:
        name: Its name; that of the other direction ends in ` (reverse)`.
        rate_bps: Its rate in bit/s; of one that follows a trace, its `rate`.
        delay_s: Its propagation delay in s.
        queue: Its queue.
        capacity_bits: What it could have sent since the run began: the integral of its rate, by its trace if
            it has one, zero in outages.
    """

    name: str
    rate_bps: float
    delay_s: float
    queue: QueueState
    capacity_bits: float

    @property
    def queueing_delay_s(self) -> float:
        """The time that the bytes that wait take at the link's rate, in s."""
        return self.queue.bytes * 8 / self.rate_bps


@dataclass(frozen=True, slots=True)
class FlowState:
    """A flow at some time. Counts are since the run began, warm-up included.

    Attributes:
        name: The name of its class, `/` and its number there from 0.
        window: Congestion window in packets; None for a transport without one.
        smoothed_rtt_s: Round-trip time as its sender has estimated it, in s; None before the first sample.
        sent: Packets sent, retransmissions included.
        retransmitted: Packets sent again; None but for TCP.
        timeouts: Retransmission timeouts (RAP: loss events found by a timeout; TFRC: expiries of the
            nofeedback timer); None for UDP.
        delivered_packets: Packets of data that reached the receiver for the first time.
        delivered_bytes: Their bytes on the wire.
        dropped: Packets of data that queues dropped.
        lost: Packets of data that links lost after they had sent them; None for a flow whose data pass no
            link that loses packets.
        marked: Packets sent, by the color that they were given.
        congested: Packets that reached the receiver marked as having met congestion (ECN); None without
            ECN.
        last_transit_s: One-way transit time of the last packet that arrived, in s; None for TCP.
    """

    name: str
    window: float | None
    smoothed_rtt_s: float | None
    sent: int
    retransmitted: int | None
    timeouts: int | None
    delivered_packets: int
    delivered_bytes: int
    dropped: ByColor
    lost: int | None
    marked: ByColor
    congested: int | None
    last_transit_s: float | None


@dataclass(frozen=True, slots=True)
class StateSample:
    """Everything at one time.

    Attributes:
        time_s: The time in s.
        links: The links with a queue, by name.
        flows: The flows, by name, without populations; none on the batched engine.
    """

    time_s: float
    links: Mapping[str, LinkState]
    flows: Mapping[str, FlowState]


@dataclass(frozen=True, slots=True)
class StateChange:
    """A value that was set during a run.

    Attributes:
        time_s: When, in s.
        key: The dotted path into the scenario.
        value: The value from then on.
    """

    time_s: float
    key: str
    value: Any


class Snapshot:
    """A simulation as it was at some time; `Simulation.restore` takes it any number of times."""

    __slots__ = ("_changes", "_scenario", "_seed", "_start", "_stepper")

    def __init__(
        self, stepper: _engine.Stepper, start: str, seed: int, scenario: str, changes: tuple[StateChange, ...]
    ) -> None:
        self._stepper, self._start, self._seed = stepper, start, seed
        self._scenario, self._changes = scenario, changes

    def __reduce__(self) -> Any:  # noqa: ANN401 - never returns
        """Refuse to be pickled or copied.

        Raises:
            PerhopError: Always.
        """
        raise PerhopError("a snapshot cannot be pickled or copied; restore() takes it any number of times")

    def __repr__(self) -> str:
        """Return which time the snapshot is of."""
        return f"Snapshot(now={self._stepper.now_ns / 1e9:g} s)"


class Links(Mapping[str, LinkState]):
    """The links with a queue, by name; each reading is of the present time."""

    def __init__(self, stepper: _engine.Stepper) -> None:
        self._stepper, self._names = stepper, stepper.link_names()

    def __getitem__(self, name: str) -> LinkState:
        """The link of this name as it is now.

        Raises:
            PerhopError: No link of this name has a queue.
        """
        raw = self._stepper.link(name) if name in self._names else None
        if raw is None:
            raise PerhopError(f"no link `{name}` with a queue; there are: {', '.join(self._names) or 'none'}")
        queue = queue_of(raw["classes"], dict(raw["gauges"]))
        return LinkState(name, raw["rate_bps"], raw["delay_s"], queue, raw["capacity_bits"])

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class Flows(Mapping[str, FlowState]):
    """The flows by name: `gold/0`, `gold/1`, …; `gold` where there is one. Readings are of now."""

    def __init__(self, stepper: _engine.Stepper) -> None:
        self._stepper = stepper
        self._numbers = {name: number for number, name in enumerate(stepper.flow_names())}

    def __getitem__(self, name: str) -> FlowState:
        """The flow of this name as it is now.

        Raises:
            PerhopError: There is none, it is one of several, a population, or on the batched engine.
        """
        number = self._numbers.get(name, self._numbers.get(f"{name}/0"))
        if number is None:
            near = ", ".join(dict.fromkeys(known.rpartition("/")[0] for known in self._numbers))
            raise PerhopError(f"no flow `{name}`; there are: {near or 'none'}")
        if name not in self._numbers and f"{name}/1" in self._numbers:
            raise PerhopError(f"`{name}` has several flows; write `{name}/0` for the first of them")
        try:
            raw = self._stepper.flow(number)
        except ScenarioError as error:
            raise PerhopError(f"flow `{name}`: {error}") from None
        raw |= {key: ByColor(*raw[key]) for key in ("dropped", "marked")}
        return FlowState(name=name if name in self._numbers else f"{name}/0", **raw)

    def __contains__(self, name: object) -> bool:
        return name in self._numbers or f"{name}/0" in self._numbers

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)


class Simulation:
    """A run of a scenario that one steps through: go on, read the state, change values, take snapshots.

    Where nothing is set, the result is that of `perhop.run`, byte for byte, wherever the run stopped
    meanwhile. Of the batched engine the number of events may differ, which is what a run cost.

    Attributes:
        scenario: The scenario at the start, as canonical JSON.
        seed: The seed.
        changes: What was set so far, in order.
    """

    def __init__(self, scenario: ScenarioSource, *, seed: int = 1, engine: Engine = "reference") -> None:
        """The network at time 0.

        Args:
            scenario: See `perhop.scenario.reading.ScenarioSource`.
            seed: As in `perhop.run`.
            engine: `reference` shows everything and can be changed. `batched` is faster and gives the same
                result, but simulates hosts ahead of the clock: links can be read, flows cannot, and only the
                parameters of a link's schedulers, AQMs and meters can be set.

        Raises:
            ScenarioError: The scenario is wrong, or the batched engine refuses the network.
            PerhopError: An argument is out of range, a file cannot be read, or memory is short.
        """
        checked = read(scenario)
        checked.warn()
        arguments.one_of("engine", engine, ENGINES)
        (self.seed,) = seeds(seed, 1)
        memory.fitting(checked.text, 1, 1, 1)
        self.scenario = checked.text
        self.changes: tuple[StateChange, ...] = ()
        self._scenario = checked.text
        self._go_on_with(_engine.Stepper(checked.text, self.seed, engine))

    def _go_on_with(self, stepper: _engine.Stepper) -> None:
        self._stepper, self._links, self._flows = stepper, Links(stepper), Flows(stepper)

    def __reduce__(self) -> Any:  # noqa: ANN401 - never returns
        """Refuse to be pickled or copied.

        Raises:
            PerhopError: Always.
        """
        raise PerhopError("a simulation cannot be pickled or copied; snapshot() and restore() copy its state")

    def __repr__(self) -> str:
        """Return the time that the simulation has reached."""
        return f"Simulation(now={self.now:g} s of {self.end:g} s, seed={self.seed})"

    @property
    def now(self) -> float:
        """The time in s up to which, included, everything has happened."""
        return self._stepper.now_ns / 1e9

    @property
    def end(self) -> float:
        """The end of the run in s."""
        return self._stepper.end_ns / 1e9

    @property
    def is_done(self) -> bool:
        """Whether the run is at its end."""
        return self._stepper.now_ns >= self._stepper.end_ns

    @property
    def links(self) -> Links:
        """The links with a queue, by name."""
        return self._links

    @property
    def flows(self) -> Flows:
        """The flows that can be read, by name."""
        return self._flows

    def run_until(self, time: Time) -> Simulation:
        """Simulate up to and including a time, and never beyond the end of the run.

        A time that has passed changes nothing. After Ctrl-C the simulation can go on from where it was.

        Args:
            time: From the start of the run: `5s`, or seconds.

        Returns:
            This simulation.

        Raises:
            PerhopError: It is no time.
        """
        self._go_on(nanoseconds(time))
        return self

    def run_for(self, time: Time) -> Simulation:
        """Simulate for a length of time, and never beyond the end of the run.

        Args:
            time: `100ms`, or seconds.

        Returns:
            This simulation.

        Raises:
            PerhopError: It is no time.
        """
        self._go_on(self._stepper.now_ns + nanoseconds(time))
        return self

    def _go_on(self, ns: int) -> None:
        try:
            self._stepper.run_until(ns)
        except ScenarioError as error:
            raise PerhopError(str(error)) from None

    def flow_states(self) -> Iterator[FlowState]:
        """The flows that can be read: without populations, and none on the batched engine."""
        flows = self.flows
        for name in flows:
            with suppress(PerhopError):
                yield flows[name]

    def sample(self) -> StateSample:
        """Return the state of all links and flows at the present time."""
        return StateSample(self.now, dict(self.links), {flow.name: flow for flow in self.flow_states()})

    def samples(self, every: Time) -> Iterator[StateSample]:
        """Simulate to the end, and yield a sample at each multiple of `every`.

        Yields:
            What is there to see at each of them.

        Raises:
            PerhopError: It is no time, or 0.
        """
        interval = nanoseconds(every, "every")
        if interval == 0:
            raise PerhopError("every: samples are apart from each other; write a time above 0s")
        while (at := (self._stepper.now_ns // interval + 1) * interval) <= self._stepper.end_ns:
            self._go_on(at)
            yield self.sample()
        self._go_on(self._stepper.end_ns)

    def __iter__(self) -> Iterator[StateSample]:
        """The samples at the times of the scenario's probe.

        Raises:
            PerhopError: The scenario has no probe.
        """
        interval = (json.loads(self.scenario).get("probes") or {}).get("interval")
        if interval is None:
            raise PerhopError(
                "the scenario has no probe, which says when to sample; set `probes.interval` or use samples()"
            )
        return self.samples(interval)

    def set(self, key: str, value: object) -> Simulation:
        """Change a value of the scenario from now on.

        What can change: `rate` and `delay` of a link (a packet that is being sent is finished at the earlier
        rate), the parameters of a link's schedulers (packets that wait stay where they are), AQMs (which keep
        their averages and counts) and meters (which keep their tokens), of profiles, the `rate` of a flow
        over UDP, and the parameters of a congestion control in Python; on the batched engine those of the
        schedulers, AQMs and meters of links. Everything else is refused, and then nothing changes. What acts
        differently than one may think is a `PerhopWarning`, as in a scenario.

        Args:
            key: A dotted path as in sweeps: `links.uplink.queue.limit`,
                `flows.video.transport.rate`. A part of a
                threshold set has a name of its own: `links.uplink.queue.thresholds.max_p`, and so `min` and
                `max`; for a queue with `thresholds` also `links.uplink.queue.max_p`.
            value: As the scenario would have it: `"60p"`, `0.1`.

        Returns:
            This simulation.

        Raises:
            PerhopError: There is no such key, it cannot change during a run, the value is wrong, or the run
                is at its end.
        """
        given: object = key
        if not isinstance(given, str):
            raise PerhopError(f"set: a key is a text such as 'links.uplink.rate', not {given!r}")
        if self.is_done:
            raise PerhopError(f"set `{key}`: the run is at its end, {self.end:g} s; nothing can act any more")
        table = json.loads(self._scenario)
        value = plain(value, key)
        if (number := endless(value)) is not None:
            raise PerhopError(f"set `{key}`: `{number}`: expected a finite number")
        place = key.rpartition(".")[2]
        if place in KINDS and isinstance(at(table, key), str) and at(table, key) != value:
            raise PerhopError(f"set `{key}`: the kind of {KINDS[place]} cannot change during a run")
        try:
            put(table, key, value)
        except PerhopError as error:
            raise PerhopError(f"{error}; {settable(json.loads(self._scenario), key)}") from None
        try:
            self._scenario, notices = self._stepper.change(json.dumps(table, allow_nan=False))
        except (ScenarioError, ValueError) as error:
            raise PerhopError(f"set `{key}`: {str(error).removeprefix('scenario: ')}") from None
        for notice in notices:
            warnings.warn(f"set `{key}`: {notice}", PerhopWarning, stacklevel=2)
        self.changes = (*self.changes, StateChange(self.now, key, value))
        return self

    def snapshot(self) -> Snapshot:
        """Return a copy of the present state for `restore`; going on does not change it."""
        return Snapshot(self._stepper.copy(), self.scenario, self.seed, self._scenario, self.changes)

    def restore(self, snapshot: Snapshot) -> Simulation:
        """Take over the state, the scenario and the seed of a snapshot, also of another simulation.

        Returns:
            This simulation.

        Raises:
            PerhopError: It is no snapshot.
        """
        given: object = snapshot
        if not isinstance(given, Snapshot):
            raise PerhopError(f"restore: give what snapshot() returned, not {type(given).__name__}")
        self._go_on_with(snapshot._stepper.copy())  # noqa: SLF001 - nobody else may look in
        self.scenario, self.seed = snapshot._start, snapshot._seed  # noqa: SLF001 - likewise
        self._scenario, self.changes = snapshot._scenario, snapshot._changes  # noqa: SLF001 - likewise
        return self

    def finish(self) -> Result:
        """Simulate to the end of the run, and return its result.

        Returns:
            What `perhop.run` returns, of one run. Its scenario is that of the start: where something was set,
            `perhop.run` on it gives another result. A link's utilization is of the integral of its rate.
        """
        self._go_on(self._stepper.end_ns)
        outcome = (Run(self.seed, self._stepper.outcome()),)
        return Result(self.scenario, outcome, was_changed=bool(self.changes))


def queue_of(classes: list[Any], gauges: Mapping[str, float]) -> QueueState:
    """A queue of the raw counters of its classes."""
    each = {raw["name"]: _class(raw) for raw in classes}
    if len(each) == 1:
        (only,) = each.values()
        return QueueState(
            only.length, only.bytes, only.arrived, only.sent, only.dropped, only.notified, gauges, each
        )
    parts = list(each.values())
    return QueueState(
        sum(part.length for part in parts),
        sum(part.bytes for part in parts),
        _sum([part.arrived for part in parts]),
        _sum([part.sent for part in parts]),
        _by_reason([part.dropped for part in parts]),
        _by_reason([part.notified for part in parts]),
        gauges,
        each,
    )


def _class(raw: Mapping[str, Any]) -> QueueState:
    dropped, notified = (
        {reason: ByColor(*packets) for reason, packets in raw[key]} for key in ("dropped", "notified")
    )
    return QueueState(
        raw["packets"], raw["bytes"], ByColor(*raw["arrived"]), ByColor(*raw["sent"]), dropped, notified
    )


def _sum(counts: list[ByColor]) -> ByColor:
    return ByColor(*(sum(getattr(count, color) for count in counts) for color in COLORS))


def _by_reason(counts: list[Mapping[str, ByColor]]) -> dict[str, ByColor]:
    reasons = dict.fromkeys(reason for count in counts for reason in count)
    return {reason: _sum([count[reason] for count in counts if reason in count]) for reason in reasons}
