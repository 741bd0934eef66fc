"""The settings of the comparison: the RI+O paper's Table 1, with one round trip, with many and under RED.

Each is there at two sizes, and under RED also without access links.

A setting is written once, as `tests/oracle/ns2.py` writes it, and every program gets it from there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tests.oracle.ns2 import TABLE_1, Group, Ns2Setting, Thresholds

if TYPE_CHECKING:
    from collections.abc import Mapping

ROUND_TRIPS_S = (0.060, 0.140)
"""Where round trips differ, they are spread evenly over this range: their mean is Table 1's."""


@dataclass(frozen=True, slots=True)
class Span:
    """Simulated seconds of a program's short and long run."""

    short: float
    long: float


@dataclass(frozen=True, slots=True)
class Setting:
    """One comparison.

    Attributes:
        title: As tables show it.
        network: What is simulated.
        spans: How long each program simulates, by the program's kind; those without a span do not run.
        wanted: How many times as fast as which kind of program perhop should be.
    """

    title: str
    network: Ns2Setting
    spans: Mapping[str, Span]
    wanted: Mapping[str, float]

    @property
    def flows(self) -> int:
        """How many."""
        return sum(group.count for group in self.network.groups)


def scaled(network: Ns2Setting, factor: int) -> Ns2Setting:
    """`factor` times as many flows on a link with that many times the rate, the thresholds and the limit."""

    def thresholds(one: Thresholds) -> Thresholds:
        return replace(one, min=one.min * factor, max=one.max * factor)

    return replace(
        network,
        groups=tuple(replace(group, count=group.count * factor) for group in network.groups),
        rate_bps=network.rate_bps * factor,
        in_thresholds=thresholds(network.in_thresholds),
        total_thresholds=thresholds(network.total_thresholds),
        limit_packets=network.limit_packets * factor,
    )


def with_many_round_trips(network: Ns2Setting) -> Ns2Setting:
    """The network's flows, each with a round trip of its own."""
    profiles = [group.profile_bps for group in network.groups for _ in range(group.count)]
    low, high = ROUND_TRIPS_S
    step = (high - low) / (len(profiles) - 1)
    # The bottleneck's delay leaves the shortest round trip 5 ms for each of its four access links. A stride
    # without a divisor in common with the number of flows gives every class short and long round trips.
    delay_s = low / 2 - 0.01
    groups = tuple(
        Group(1, profile, (low + step * (flow * 7 % len(profiles))) / 4 - delay_s / 2)
        for flow, profile in enumerate(profiles)
    )
    return replace(network, groups=groups, delay_s=delay_s)


def without_access(network: Ns2Setting) -> Ns2Setting:
    """The network with its hosts at the routers, and the same round trip."""
    delay_s = network.delay_s + 2 * network.access_delay_s
    return replace(network, access_rate_bps=math.inf, access_delay_s=0.0, delay_s=delay_s)


RED = replace(TABLE_1, aqm="RED", groups=(Group(40, 0.0),))
"""Table 1 without profiles, under RED: work that all programs can do."""
SMALL = {"perhop": Span(200, 3200), "ns-2": Span(50, 250)}
# ns-2 takes about 8 s to set up 400 flows, and not always the same: the long run must do as much again.
LARGE = {"perhop": Span(20, 220), "ns-2": Span(10, 80)}
SMALL_HTSIM = {"perhop": SMALL["perhop"], "htsim": Span(50, 450)}
LARGE_HTSIM = {"perhop": LARGE["perhop"], "htsim": Span(5, 35)}

SETTINGS = {
    "40": Setting(
        "40 flows, 20 Mbit/s",
        TABLE_1,
        {**SMALL, "ns-2 tuned": SMALL["ns-2"], "ns-3": Span(10, 30)},
        {"ns-2": 80, "ns-3": 400},
    ),
    "40-rtts": Setting(
        "40 flows, 20 Mbit/s, each its own RTT", with_many_round_trips(TABLE_1), SMALL, {"ns-2": 25}
    ),
    "400": Setting(
        "400 flows, 200 Mbit/s",
        scaled(TABLE_1, 10),
        {**LARGE, "ns-3": Span(2, 5)},
        {"ns-2": 80, "ns-3": 400},
    ),
    "400-rtts": Setting(
        "400 flows, 200 Mbit/s, each its own RTT",
        with_many_round_trips(scaled(TABLE_1, 10)),
        LARGE,
        {"ns-2": 25},
    ),
    "40-red": Setting("40 flows, 20 Mbit/s, RED", RED, {**SMALL, **SMALL_HTSIM, "ns-3": Span(10, 30)}, {}),
    "40-red-bare": Setting("40 flows, 20 Mbit/s, RED, no access links", without_access(RED), SMALL_HTSIM, {}),
    "400-red": Setting(
        "400 flows, 200 Mbit/s, RED", scaled(RED, 10), {**LARGE, **LARGE_HTSIM, "ns-3": Span(2, 5)}, {}
    ),
    "400-red-bare": Setting(
        "400 flows, 200 Mbit/s, RED, no access links", without_access(scaled(RED, 10)), LARGE_HTSIM, {}
    ),
}
