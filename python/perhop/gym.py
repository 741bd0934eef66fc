"""Environments of Gymnasium on top of `perhop.Simulation`: `pip install 'perhop[gym]'`.

`AqmEnv` sets parameters of a link's queue; `CongestionEnv` sets the rate of one flow among others. Both are
registered, as `perhop/Aqm-v0` and `perhop/Congestion-v0`, for `gymnasium.make` and `gymnasium.make_vec`.
An episode is one run. `reset(seed=…)` makes episodes reproducible: each draws the seed of its run from the
environment's random numbers, so that the next episode is another run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from perhop.errors import PerhopError
from perhop.extras import GYM
from perhop.plurals import counted
from perhop.scenario.warmup import from_the_beginning
from perhop.stepping.simulation import FlowState, LinkState, Simulation, Time, nanoseconds

GYM.demand()

import gymnasium  # noqa: E402 - not before it is known to be there
from gymnasium.spaces import Box  # noqa: E402 - likewise

if TYPE_CHECKING:
    from perhop.scenario.reading import ScenarioSource

Array: TypeAlias = NDArray[np.float32]
SUBSAMPLES = 5
"""Readings of the queue in an interval, for its mean delay."""

AQM_OBSERVATION = (
    ("queue", "packets", "packets that wait now"),
    ("delay", "s", "mean over the interval of the time that the bytes waiting take at the link's rate"),
    ("arrivals", "packets/s", "packets that came in the interval"),
    (
        "goodput",
        "fraction",
        "first deliveries of all flows in the interval, over what the link can send; at most 1",
    ),
    ("loss", "fraction", "packets dropped in the interval, over those that came"),
    ("marks", "fraction", "packets marked (ECN) in the interval, over those that came"),
)
"""Observations of `AqmEnv`: name, unit, meaning; then each parameter's setting from 0 to 1."""

CONGESTION_OBSERVATION = (
    ("rate", "Mbit/s", "the rate at which the flow sends"),
    ("delivered", "Mbit/s", "first deliveries in the interval"),
    ("loss", "fraction", "packets dropped in the interval, over those sent"),
    ("transit", "s", "one-way transit time of the last packet that arrived; 0 before the first"),
    ("trend", "s", "how much longer that is than an interval ago"),
)
"""Observations of `CongestionEnv`: name, unit, meaning."""

AQM_SCENARIO: dict[str, Any] = {
    "duration": "30s",
    "warmup": "2s",
    "links": {
        "uplink": {
            "from": "a",
            "to": "b",
            "rate": "8Mbps",
            "delay": "10ms",
            "queue": {"aqm": "red", "thresholds": "5/30/0.1", "limit": "150p", "gentle": True},
        }
    },
    "flows": [{"name": "bulk", "count": 6, "from": "a", "to": "b", "transport": {"tcp": "linux"}}],
}
"""The default scenario of `AqmEnv`."""

CONGESTION_SCENARIO: dict[str, Any] = {
    "duration": "30s",
    "warmup": "1s",
    "links": {
        "uplink": {
            "from": "a",
            "to": "b",
            "rate": "8Mbps",
            "delay": "20ms",
            "queue": {"aqm": "drop-tail", "limit": "60p"},
        }
    },
    "flows": [
        {"name": "agent", "from": "a", "to": "b", "transport": {"udp": "cbr", "rate": "1Mbps"}},
        {"name": "bulk", "count": 2, "from": "a", "to": "b", "transport": {"tcp": "linux"}},
    ],
}
"""The default scenario of `CongestionEnv`."""
AGENT_WINDOW = "perhop.stepping.agent_window:AgentWindow"
"""The `congestion` of a flow whose window an agent sets."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter that an agent sets.

    Attributes:
        key: The key below the link's `queue`, as `Simulation.set` takes it: `max_p`, `limit`, `target`.
        low: The value for a setting of 0.
        high: The value for a setting of 1.
        unit: What follows the number: `p`, `ms`; empty for a plain number.
        log: Settings are proportional to the value's logarithm.
    """

    key: str
    low: float
    high: float
    unit: str = ""
    log: bool = False

    def __post_init__(self) -> None:
        """Check it.

        Raises:
            PerhopError: The key is no text, or the bounds are no finite numbers, equal, or not above 0 where
                settings are logarithmic. `low` may be the greater of the two.
        """
        key: object = self.key
        if not isinstance(key, str) or not key:
            raise PerhopError(f"Parameter: key is a text such as 'max_p', not {key!r}")
        for name in ("low", "high"):
            bound = getattr(self, name)
            if isinstance(bound, bool) or not isinstance(bound, Real) or not isfinite(bound):
                raise PerhopError(f"Parameter `{self.key}`: {name} is a finite number, not {bound!r}")
            if self.log and bound <= 0:
                raise PerhopError(
                    f"Parameter `{self.key}`: {name} is above 0 where log is set, not {bound!r}"
                )
        if self.low == self.high:
            raise PerhopError(f"Parameter `{self.key}`: low and high differ; both are {self.low!r}")

    def value(self, setting: float) -> str | float:
        """The value for a setting from 0 to 1, as scenarios write it."""
        if self.log:
            number = self.low * (self.high / self.low) ** setting
        else:
            number = self.low + (self.high - self.low) * setting
        if not self.unit:
            return float(f"{number:.6g}")
        return f"{number:.0f}{self.unit}" if self.unit == "p" else f"{number:.6f}{self.unit}"


@dataclass(frozen=True, slots=True)
class Interval:
    """The events at the link between two steps.

    Attributes:
        seconds: How long it took.
        delay_s: Mean queueing delay, in s.
        arrived: Packets that came.
        dropped: Packets dropped.
        marked: Packets marked (ECN).
        goodput: First deliveries of all flows over what the link can send, from 0 to 1: all flows are taken
            to pass the link.
    """

    seconds: float
    delay_s: float
    arrived: int
    dropped: int
    marked: int
    goodput: float


def near_target(target_s: float = 0.02, weight: float = 1.0) -> Callable[[Interval], float]:
    """A reward: goodput, less by `weight` for each target by which the mean queueing delay exceeds it.

    Args:
        target_s: The queueing delay that costs nothing, in s.
        weight: What each further target costs, as a fraction of the link.
    """

    def reward(interval: Interval) -> float:
        return interval.goodput - weight * max(0.0, interval.delay_s / target_s - 1.0)

    return reward


class _Env(gymnasium.Env[Array, Array]):
    """An episode is a run; a step is an interval of it."""

    metadata = {"render_modes": []}  # noqa: RUF012 - so Gymnasium has it

    def __init__(self, scenario: ScenarioSource, interval: Time) -> None:
        if nanoseconds(interval, "interval") == 0:
            raise PerhopError("interval: a step takes time; write a time above 0s, such as 100ms")
        self._interval = nanoseconds(interval) / 1e9
        self._scenario = scenario
        self._running = False
        self.simulation = Simulation(scenario)

    def _acted(self, action: Array) -> Array:
        """An action, within the bounds of the action space.

        Raises:
            PerhopError: It is of another shape or holds what is no number, or no episode is running.
        """
        if not self._running:
            raise PerhopError("step: no episode is running; call reset() first")
        (count,) = self.action_space.shape or (0,)
        try:
            given = np.asarray(action, dtype=np.float32)
        except (TypeError, ValueError):
            given = np.full(1, np.nan, dtype=np.float32)
        if given.shape != (count,) or np.isnan(given).any():
            raise PerhopError(f"step: an action is an array of {counted(count, 'number')}, not {action!r}")
        clipped: Array = np.clip(given, self.action_space.low, self.action_space.high)  # type: ignore[attr-defined]
        return clipped

    def _ends(self) -> bool:
        """Whether this step was the last one; no other follows it."""
        self._running = not self.simulation.is_done
        return not self._running

    def _begin(self, seed: int | None) -> None:
        """A run of another seed, at the end of its warm-up."""
        super().reset(seed=seed)
        self.simulation = Simulation(self._scenario, seed=int(self.np_random.integers(2**63)))
        self.simulation.run_until(json.loads(from_the_beginning(self.simulation.scenario))["warmup"])
        self._running = True


class AqmEnv(_Env):
    """The parameters of a link's queue, set once in an interval.

    Observation: `AQM_OBSERVATION`, then the settings. Action: a setting from 0 to 1 for each parameter. The
    episode is truncated at the end of the run; it has no other end. `info` has the `Interval` and the values
    that were set.

    Attributes:
        simulation: The run of this episode, for reading.
    """

    def __init__(
        self,
        scenario: ScenarioSource | None = None,
        *,
        link: str = "uplink",
        parameters: Sequence[Parameter] = (Parameter("max_p", 0.001, 0.5, log=True),),
        interval: Time = "100ms",
        reward: Callable[[Interval], float] | None = None,
    ) -> None:
        """An environment before its first episode.

        Args:
            scenario: What is simulated; `AQM_SCENARIO` if not given. Its warm-up precedes the first step.
            link: The link whose queue is set.
            parameters: What is set. An AQM's parameters can change during a run; see `Simulation.set`.
            interval: The time of a step.
            reward: The reward of an interval; `near_target()` if not given.

        Raises:
            PerhopError: The scenario is wrong, has no such link, or a parameter cannot be set.
        """
        super().__init__(AQM_SCENARIO if scenario is None else scenario, interval)
        if link not in self.simulation.links:
            known = ", ".join(self.simulation.links) or "none"
            raise PerhopError(f"link: no link `{link}` with a queue; there are: {known}")
        self._link, self._parameters = link, _checked(parameters)
        self._reward = near_target() if reward is None else reward
        for parameter in self._parameters:
            for setting in (0.0, 1.0):
                self.simulation.set(f"links.{link}.queue.{parameter.key}", parameter.value(setting))
        count = len(self._parameters)
        low = np.zeros(len(AQM_OBSERVATION) + count, dtype=np.float32)
        high = np.array([np.inf] * 3 + [1.0] * 3 + [1.0] * count, dtype=np.float32)
        self.observation_space = Box(low, high, dtype=np.float32)
        self.action_space = Box(0.0, 1.0, shape=(count,), dtype=np.float32)
        self._settings = np.full(count, 0.5, dtype=np.float32)
        self._values: tuple[str | float, ...] = ()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Begin an episode, at the end of the scenario's warm-up, with settings of 0.5."""
        del options
        self._begin(seed)
        self._values = ()
        self._apply(np.full(len(self._parameters), 0.5, dtype=np.float32))
        link = self.simulation.links[self._link]
        seen = Interval(0.0, link.queueing_delay_s, 0, 0, 0, 0.0)
        return self._observe(link, seen), {"interval": seen, "values": self._values}

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Set the parameters, and go on for an interval.

        Raises:
            PerhopError: The action is of another shape, or no episode is running.
        """
        self._apply(self._acted(action))
        before, bytes_before = self.simulation.links[self._link], self._delivered()
        began, delays = self.simulation.now, []
        for _ in range(SUBSAMPLES):
            self.simulation.run_for(self._interval / SUBSAMPLES)
            link = self.simulation.links[self._link]
            delays.append(link.queueing_delay_s)
        seconds = max(1e-9, self.simulation.now - began)
        possible = link.capacity_bits - before.capacity_bits
        delivered = (self._delivered() - bytes_before) * 8 / possible if possible else 0.0
        seen = Interval(
            seconds,
            float(np.mean(delays)),
            link.queue.arrived.total - before.queue.arrived.total,
            link.queue.drops - before.queue.drops,
            link.queue.marks - before.queue.marks,
            min(1.0, delivered),
        )
        info = {"interval": seen, "values": self._values}
        return self._observe(link, seen), float(self._reward(seen)), False, self._ends(), info

    def _apply(self, settings: Array) -> None:
        self._settings = settings
        pairs = zip(self._parameters, settings, strict=True)
        values = tuple(parameter.value(float(setting)) for parameter, setting in pairs)
        for number, (parameter, value) in enumerate(zip(self._parameters, values, strict=True)):
            if not self._values or self._values[number] != value:
                self.simulation.set(f"links.{self._link}.queue.{parameter.key}", value)
        self._values = values

    def _delivered(self) -> int:
        return sum(flow.delivered_bytes for flow in self.simulation.flow_states())

    def _observe(self, link: LinkState, seen: Interval) -> Array:
        rate = seen.arrived / seen.seconds if seen.seconds else 0.0
        came = max(1, seen.arrived)
        fractions = [seen.goodput, min(1.0, seen.dropped / came), min(1.0, seen.marked / came)]
        return np.array(
            [link.queue.length, seen.delay_s, rate, *fractions, *self._settings], dtype=np.float32
        )


def _checked(parameters: object) -> tuple[Parameter, ...]:
    """Return the parameters that an agent sets.

    Raises:
        PerhopError: It is no list of parameters, is empty, or names a key twice.
    """
    listed = tuple(parameters) if isinstance(parameters, Sequence) and not isinstance(parameters, str) else ()
    if not listed or not all(isinstance(one, Parameter) for one in listed):
        raise PerhopError(
            f"parameters: give a list such as [Parameter('max_p', 0.001, 0.5)], not {parameters!r}"
        )
    keys = [one.key for one in listed]
    for key in keys:
        if keys.count(key) > 1:
            raise PerhopError(f"parameters: `{key}` is given {keys.count(key)} times; give it once")
    return listed


class CongestionEnv(_Env):
    """The rate of one flow over UDP, or the window of one over TCP, among others, set once in an interval.

    Observation: `CONGESTION_OBSERVATION`; the agent sees the receiver without delay. A window is in segments
    in place of Mbit/s, and the smoothed round-trip time of TCP is in place of the transit time. Action: a
    from -1 to 1. The rate or window is multiplied by 1 + `gain` a where a is positive, and divided by
    1 - `gain` a where it is negative, as in Jay et al., "A Deep Reinforcement Learning Perspective on
    Internet Congestion Control", 2019, section 3.
    The episode is truncated at the end of the run; it has no other end.

    Attributes:
        simulation: The run of this episode, for reading.
    """

    def __init__(
        self,
        scenario: ScenarioSource | None = None,
        *,
        flow: str = "agent",
        sets: Literal["rate", "window"] = "rate",
        rates_mbps: tuple[float, float] = (0.1, 20.0),
        first_mbps: float = 1.0,
        windows: tuple[float, float] = (1.0, 1000.0),
        first_window: float = 10.0,
        gain: float = 0.25,
        interval: Time = "100ms",
        delay_weight: float = 10.0,
        loss_weight: float = 5.0,
    ) -> None:
        """An environment before its first episode.

        Args:
            scenario: What is simulated; `CONGESTION_SCENARIO` if not given. Its warm-up comes first.
            flow: The class of the flow: one flow, over UDP (`udp = "cbr"`), or over TCP with
                `congestion = "perhop.stepping.agent_window:AgentWindow"`.
            sets: What the agent sets: the `rate` of the flow over UDP, or the `window` of the flow over TCP.
            rates_mbps: The lowest and the highest rate, in Mbit/s.
            first_mbps: The rate from the end of the warm-up on.
            windows: The smallest and the largest window, in segments.
            first_window: The window from the end of the warm-up on.
            gain: The most by which a rate changes in a step, as a fraction.
            interval: The time of a step.
            delay_weight: What a second of transit time costs, in Mbit/s.
            loss_weight: What it costs to lose all packets, in Mbit/s.

        Raises:
            PerhopError: The scenario is wrong, or has no such flow over UDP.
        """
        if sets not in ("rate", "window"):
            raise PerhopError(f"sets: rate or window, not {sets!r}")
        self._sets_window = sets == "window"
        super().__init__(_congestion_scenario(sets) if scenario is None else scenario, interval)
        self._flow, self._gain = flow, gain
        self._weights = (delay_weight, loss_weight)
        if not 0 < rates_mbps[0] < rates_mbps[1]:
            raise PerhopError(f"rates_mbps: two rates above 0, the lower one first, not {rates_mbps}")
        if not 1 <= windows[0] < windows[1]:
            raise PerhopError(f"windows: two windows of at least 1, the smaller one first, not {windows}")
        self._range = windows if self._sets_window else rates_mbps
        self._first = float(np.clip(first_window if self._sets_window else first_mbps, *self._range))
        self._value, self._transit = self._first, 0.0
        for one in json.loads(self.simulation.scenario).get("flows") or []:
            if one.get("name") == flow:
                self._check(flow, one.get("transport", {}))
        self._set()
        low = np.array([0.0, 0.0, 0.0, 0.0, -np.inf], dtype=np.float32)
        high = np.array([np.inf, np.inf, 1.0, np.inf, np.inf], dtype=np.float32)
        self.observation_space = Box(low, high, dtype=np.float32)
        self.action_space = Box(-1.0, 1.0, shape=(1,), dtype=np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Begin an episode, at the end of the scenario's warm-up, with the first rate."""
        del options
        self._begin(seed)
        flow = self.simulation.flows[self._flow]
        self._value = self._first
        self._set()
        self._transit = self._transit_of(flow)
        return np.array([self._value, 0.0, 0.0, self._transit, 0.0], dtype=np.float32), {}

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Change the rate or the window, and go on for an interval.

        Raises:
            PerhopError: The action is of another shape, or no episode is running.
        """
        change = self._gain * float(self._acted(action)[0])
        value = self._value * (1 + change) if change >= 0 else self._value / (1 - change)
        self._value = float(np.clip(value, *self._range))
        self._set()
        before, began = self.simulation.flows[self._flow], self.simulation.now
        self.simulation.run_for(self._interval)
        after = self.simulation.flows[self._flow]
        seconds = max(1e-9, self.simulation.now - began)
        delivered = (after.delivered_bytes - before.delivered_bytes) * 8e-6 / seconds
        dropped = after.dropped.total - before.dropped.total + (after.lost or 0) - (before.lost or 0)
        loss = min(1.0, dropped / max(1, after.sent - before.sent))
        transit = self._transit_of(after)
        trend, self._transit = transit - self._transit, transit
        seen = np.array([self._value, delivered, loss, transit, trend], dtype=np.float32)
        reward = delivered - self._weights[0] * transit - self._weights[1] * loss
        info = {"window" if self._sets_window else "rate_mbps": self._value}
        return seen, float(reward), False, self._ends(), info

    def _check(self, flow: str, transport: dict[str, Any]) -> None:
        """Check that the flow has what is set.

        Raises:
            PerhopError: It has not.
        """
        if not self._sets_window and "rate" not in transport:
            raise PerhopError(f'flow: `{flow}` has no rate to set; name a flow over UDP (udp = "cbr")')
        congestion = transport.get("congestion")
        given = congestion.get("class") if isinstance(congestion, dict) else congestion
        if self._sets_window and given != AGENT_WINDOW:
            raise PerhopError(
                f"flow: `{flow}` has no window to set; name a flow over TCP with congestion = "
                f'"{AGENT_WINDOW}"'
            )

    def _transit_of(self, flow: FlowState) -> float:
        return (flow.smoothed_rtt_s if self._sets_window else flow.last_transit_s) or 0.0

    def _set(self) -> None:
        place = f"flows.{self._flow}.transport"
        if self._sets_window:
            self.simulation.set(f"{place}.congestion.segments", self._value)
        else:
            self.simulation.set(f"{place}.rate", f"{self._value:.6f}Mbps")


def _congestion_scenario(sets: str) -> dict[str, Any]:
    """`CONGESTION_SCENARIO`, where the agent sends over TCP if it sets its window."""
    if sets == "rate":
        return CONGESTION_SCENARIO
    agent, *others = CONGESTION_SCENARIO["flows"]
    tcp = {"tcp": "newreno", "sack": True, "packet": "1000B", "congestion": AGENT_WINDOW}
    return {**CONGESTION_SCENARIO, "flows": [{**agent, "transport": tcp}, *others]}


for _name, _environment in (("perhop/Aqm-v0", AqmEnv), ("perhop/Congestion-v0", CongestionEnv)):
    if _name not in gymnasium.registry:
        gymnasium.register(_name, entry_point=f"perhop.gym:{_environment.__name__}")
