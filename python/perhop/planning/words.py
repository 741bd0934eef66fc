"""What objectives of a plan may be about: words of service-level agreements, and the metrics behind them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from perhop.measures.emodel import BASE_RATING
from perhop.scenario.quantities import RATES, TIMES, with_printed

Statistics: TypeAlias = "Mapping[str, str]"
"""The metric of sweeps for each statistic, by its name; the empty name is the one that needs no saying."""

UNITS: Mapping[str, Mapping[str, float]] = {
    "s": with_printed(TIMES),
    "fraction": {"%": 0.01, "": 1.0},
    "bit/s": with_printed(RATES),
    "s/h": {"s/h": 1.0},
    "": {"": 1.0},
}
"""How a bound may be written, by the unit of what is measured."""
EXAMPLES: Mapping[str, str] = {
    "s": "a time such as 20 ms",
    "fraction": "a share such as 0.1 %",
    "bit/s": "a rate such as 2 Mbit/s",
    "s/h": "seconds in an hour, such as 10 s/h",
    "": "a number without a unit",
}


@dataclass(frozen=True, slots=True)
class NamedMeasure:
    """Something that an objective may bound.

    Attributes:
        names: What it is called, the usual name first.
        unit: A key of `UNITS`.
        flows: Its metrics of a group of flows, `flows.NAME.METRIC`.
        links: Of a link, or of a class of packets that a link's queue distinguishes.
        users: Of the users of an application.
        populations: Of flows that come and go.
        datagrams: It is measured of UDP, RAP and TFRC only.
        advice: What to do where a group of flows lacks it.
        best: The largest possible value, where there is one.
    """

    names: tuple[str, ...]
    unit: str
    flows: Statistics = field(default_factory=dict)
    links: Statistics = field(default_factory=dict)
    users: Statistics = field(default_factory=dict)
    populations: Statistics = field(default_factory=dict)
    datagrams: bool = False
    advice: str = ""
    best: float | None = None

    @property
    def name(self) -> str:
        """The usual name of the measure."""
        return self.names[0]

    @property
    def statistics(self) -> tuple[str, ...]:
        """The statistics that it has of anything."""
        every = (*self.flows, *self.links, *self.users, *self.populations)
        return tuple(dict.fromkeys(every))


LOSS = "loss"
"""The share of the packets that meters, queues and links lost together (`perhop.planning.objectives`)."""
PROFILE = "profile_success"
_WAITS = {"P50": "delay_p50_s", "P95": "delay_p95_s", "P99": "delay_p99_s", "maximum": "delay_max_s"}


def _three(stem: str, ending: str, *, tail: str) -> dict[str, str]:
    """Mean, median and one percentile of a measure of users or populations."""
    return {
        "mean": f"{stem}_mean{ending}",
        "P50": f"{stem}_p50{ending}",
        f"P{tail}": f"{stem}_p{tail}{ending}",
    }


MEASURES: tuple[NamedMeasure, ...] = (
    NamedMeasure(
        ("one-way delay", "one way delay"),
        "s",
        flows={"mean": "one_way_delay_s", "P99": "one_way_delay_p99_s"},
        users={"P99": "down_p99_s"},
        datagrams=True,
        advice="write such as `P99 of waiting time of CLASS`, of a class of the queue",
    ),
    NamedMeasure(("waiting time", "queueing delay", "queuing delay"), "s", links=_WAITS),
    NamedMeasure(("worst case",), "s", flows={"": "one_way_delay_at_most_s"}, links={"": "delay_at_most_s"}),
    NamedMeasure(("delay variation",), "s", links={"": "delay_variation_s"}),
    NamedMeasure(
        ("jitter",), "s", flows={"": "jitter_s"}, datagrams=True, advice="it is measured of datagrams"
    ),
    NamedMeasure(("loss", "packet loss"), "fraction", flows={"": LOSS}, links={"": "loss"}),
    NamedMeasure(
        ("throughput",),
        "bit/s",
        flows={"": "throughput_bps", "mean": "throughput_bps", "minimum": "throughput_min_bps"},
    ),
    NamedMeasure(("round-trip time", "round trip time", "RTT"), "s", flows={"": "rtt_s", "mean": "rtt_s"}),
    NamedMeasure(("utilization",), "fraction", links={"": "utilization"}, best=1.0),
    NamedMeasure(
        ("R-factor", "R factor", "R"),
        "",
        flows={"": "r"},
        best=BASE_RATING,
        advice='it needs a codec: give the flows `codec = "g711-plc"`',
    ),
    NamedMeasure(
        ("MOS", "mean opinion score"),
        "",
        flows={"": "mos"},
        best=4.5,
        advice='it needs a codec: give the flows `codec = "g711-plc"`',
    ),
    NamedMeasure(("page load time", "page load"), "s", users=_three("page", "_s", tail="95")),
    NamedMeasure(("unfinished pages",), "", users={"": "unfinished_pages"}),
    NamedMeasure(("response time",), "s", users=_three("response", "_s", tail="99")),
    NamedMeasure(("unfinished responses",), "", users={"": "unfinished_responses"}),
    NamedMeasure(("video quality",), "bit/s", users={"": "quality_bps"}),
    NamedMeasure(("start-up time", "startup time"), "s", users={"": "startup_s", "mean": "startup_s"}),
    NamedMeasure(("stalling",), "s/h", users={"": "stall_seconds_per_hour"}),
    NamedMeasure(("completion time",), "s", populations=_three("completion", "_s", tail="99")),
    NamedMeasure(("slowdown",), "", populations=_three("slowdown", "", tail="99")),
)
"""What an objective may be about, but for metrics by name and shares of flows that get their profile."""

PROFILES = NamedMeasure(("flows that get their profile",), "fraction", flows={"": PROFILE}, best=1.0)
"""The share of a group's flows that reach their profile rate."""

NO_LOSS = NamedMeasure(("no loss",), "", flows={"": "loss_excluded"}, links={"": "loss_excluded"}, best=1.0)
"""Whether loss is excluded in any run."""

STATISTICS: Mapping[str, str] = {
    "mean": "mean",
    "average": "mean",
    "median": "P50",
    "maximum": "maximum",
    "largest": "maximum",
    "longest": "maximum",
    "minimum": "minimum",
    "lowest": "minimum",
    "smallest": "minimum",
}
"""Statistics in words; percentiles are written `P95`."""
