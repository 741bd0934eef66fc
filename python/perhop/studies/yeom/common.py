"""What the paper's settings share: one bottleneck, RIO's thresholds, five ways to keep a reservation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from perhop.judging import Judgement, by_interval
from perhop.measures import targets
from perhop.studies.paper import Paper
from perhop.study import Axis

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perhop.runs import Run
    from perhop.statistics import Estimate

PAPER = 'Yeom and Reddy, "Realizing throughput guarantees in a differentiated services network"'
stated = Paper(__package__).item
"""What the paper says about one item ("table1", …)."""
MBPS = "Mbit/s"
RUNS = 20

RIO = "rio"
INVERSE = "inverse-rate"
NO_OUT = "no-out"
TWO_WINDOWS = "two-windows"
THREE_DROP = "three-drop"
ALL_SCHEMES = (RIO, INVERSE, NO_OUT, TWO_WINDOWS, THREE_DROP)
"""In the order of the paper's Table 1."""
COMPARED = (RIO, INVERSE, THREE_DROP, TWO_WINDOWS)
"""Those that the paper compares from its section 4.1 on."""

SCHEME_NAMES = {
    RIO: "RIO",
    INVERSE: "inverse-rate",
    NO_OUT: "No-OUT",
    TWO_WINDOWS: "two-windows",
    THREE_DROP: "three-drop",
}
SCHEMES = Axis("scheme", "Scheme", SCHEME_NAMES)

PROFILES = (2.0, 1.0, 0.5, 0.1, 0.0)
"""The five reserved rates of most experiments, in Mbit/s; 0 is best effort."""
NAMES = {rate: "best effort" if rate == 0 else f"{rate:g} Mbit/s" for rate in PROFILES}
CLASSES = Axis("profile_mbps", "Profile, Mbit/s", {**{r: f"{r:g}" for r in PROFILES if r}, 0.0: "BE"})

BOTTLENECK_MS = 18.0
ACCESS_MS = 1.0
RTT_MS = 40.0
"""2 * (18 + 1 + 1) ms."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What is the same in every experiment; yeom-sensitivity changes one of these at a time.

    Attributes:
        packet: Packet size of every flow, in bytes.
        receiver_window: TCP's receiver window, in packets.
        tick: Granularity of TCP's clock.
        min_rto: TCP's shortest timeout.
        window: The markers' window.
        rule: When a flow above its profile sends OUT packets.
        split: How the three-precedence marker splits OUT packets.
        weight: RED's averaging weight.
        wait: RED's wait rule.
        averages: Which arrivals update which average.
        reading: How equation 9 meets RED.
        bottleneck_ms: Propagation delay of the bottleneck.
    """

    packet: int = 1000
    receiver_window: int = 20
    tick: str = "10ms"
    min_rto: str = "200ms"
    window: str = "1s"
    rule: str = "probabilistic"
    split: str = "threshold"
    weight: float = 0.002
    wait: bool = True
    averages: str = "every-arrival"
    reading: str = "max-p"
    bottleneck_ms: float = BOTTLENECK_MS

    def ceiling_mbps(self, rtt_ms: float) -> float:
        """The most that a receiver window for each round trip allows."""
        return self.receiver_window * self.packet * 8 / rtt_ms / 1e3

    def queue(self, scheme: str) -> dict[str, Any]:
        """The bottleneck's queue: RIO 20/40/0.5 and 50/100/0.02, with a scheme's changes."""
        common: dict[str, Any] = {
            "limit": "200p",
            "in": "50/100/0.02",
            "weight": self.weight,
            "wait": self.wait,
            "averages": self.averages,
            "mean-packet": f"{self.packet}B",
        }
        if scheme == THREE_DROP:
            return {"aqm": "rio-three", **common, "out-in": "30/50/0.5", "out-out": "20/40/0.5"}
        if scheme == INVERSE:
            return {"aqm": "inverse-rate", **common, "total": "20/40/0.5", "reading": self.reading}
        return {"aqm": "rio", **common, "total": "20/40/0.5"}

    def profile(self, scheme: str, rate_mbps: float) -> dict[str, Any]:
        """The meter of a reservation."""
        meter = {"rate": f"{rate_mbps:g}Mbps", "window": self.window, "rule": self.rule}
        if scheme == THREE_DROP:
            return {"marker": "three-precedence", **meter, "long-window": "10s", "split": self.split}
        return {"marker": "tsw", **meter}

    def tcp(
        self,
        scheme: str,
        name: str,
        profile: float | str,
        *,
        count: int = 1,
        rtt_ms: float = RTT_MS,
    ) -> dict[str, Any]:
        """Greedy TCP flows; `profile` is a rate in Mbit/s, 0 for best effort, or a shared profile's name."""
        tcp = "two-windows" if scheme == TWO_WINDOWS else "reno"
        transport = {
            "tcp": tcp,
            "packet": f"{self.packet}B",
            "window": f"{self.receiver_window}p",
            "tick": self.tick,
            "min-rto": self.min_rto,
        }
        entry = self._entry(scheme, name, profile, transport, count=count, rtt_ms=rtt_ms)
        if scheme == NO_OUT and "profile" in entry:
            entry["out-feedback"] = "0s"
        return entry

    def udp(self, scheme: str, name: str, profile_mbps: float, sending_mbps: float) -> dict[str, Any]:
        """One source that sends at a constant rate, whatever is lost."""
        transport = {"udp": "cbr", "rate": f"{sending_mbps:g}Mbps", "packet": f"{self.packet}B"}
        return self._entry(scheme, name, profile_mbps, transport)

    def scenario(
        self,
        title: str,
        scheme: str,
        capacity_mbps: float,
        entries: Sequence[Mapping[str, Any]],
        more: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The dumbbell with these flows, for 30 s."""
        return {
            "title": title,
            "duration": "30s",
            "links": {
                "bottleneck": {
                    "from": "edge",
                    "to": "core",
                    "rate": f"{capacity_mbps:g}Mbps",
                    "delay": f"{self.bottleneck_ms:g}ms",
                    "queue": self.queue(scheme),
                }
            },
            "flows": list(entries),
            **(more or {}),
        }

    def _entry(
        self,
        scheme: str,
        name: str,
        profile: float | str,
        transport: Mapping[str, Any],
        *,
        count: int = 1,
        rtt_ms: float = RTT_MS,
    ) -> dict[str, Any]:
        access_ms = (rtt_ms / 2 - self.bottleneck_ms) / 2
        entry: dict[str, Any] = {
            "name": name,
            "count": count,
            "from": "edge",
            "to": "core",
            "access": {"rate": "100Mbps", "delay": f"{access_ms:g}ms"},
            "transport": dict(transport),
            "start": "0s..1s",
        }
        if profile:
            entry["profile"] = profile if isinstance(profile, str) else self.profile(scheme, profile)
        elif scheme == THREE_DROP:
            entry["color"] = "red"  # best effort is OUT-OUT
        return entry


SETTING = Setting()
"""One set of parameters for the whole paper; yeom-setting says why this one."""

LIMIT = 0.12
"""Mbit/s: the distance to Table 1's rates that was asked for, of four schemes."""
ASKED = (RIO, INVERSE, NO_OUT, THREE_DROP)


def mean_mbps(run: Run, name: str) -> float:
    """Mean throughput over the flows of one entry, Mbit/s."""
    return float(np.mean(run.of_group(name, "throughput_bps"))) / 1e6


def sum_mbps(run: Run, *names: str) -> float:
    """Throughput of all flows of some entries together, Mbit/s."""
    return sum(float(np.sum(run.of_group(name, "throughput_bps"))) for name in names) / 1e6


def total_mbps(run: Run) -> float:
    """Throughput of all flows together, Mbit/s."""
    return float(np.sum(run.flows("throughput_bps"))) / 1e6


def cell(scheme: str, percent: int) -> dict[str, Any]:
    """The factors of one scheme at one subscription."""
    return {"scheme": scheme, "subscription_percent": percent}


def class_targets(profiles: Sequence[float], count: int, capacity_mbps: float) -> dict[float, float]:
    """The target of each class on a link that `count` flows of each share, Mbit/s."""
    wanted = targets([rate for rate in profiles for _ in range(count)], capacity_mbps)
    return dict(zip(profiles, wanted[::count], strict=True))


def by_scheme(found: Mapping[str, Estimate], digits: int = 3, *, sign: bool = False) -> str:
    """`RIO 1.534 ± 0.024, inverse-rate …`."""
    return ", ".join(f"{SCHEME_NAMES[s]} {e.text(digits, sign=sign)}" for s, e in found.items())


def all_above(found: Mapping[Any, Estimate], evidence: str) -> Judgement:
    """Whether every difference lies above 0 with its whole interval."""
    return by_interval(found.values(), evidence, holds=all(e.low > 0 for e in found.values()))


def all_below(found: Mapping[Any, Estimate], evidence: str) -> Judgement:
    """Whether every difference lies below 0 with its whole interval."""
    return by_interval(found.values(), evidence, holds=all(e.high < 0 for e in found.values()))


def signed(value: float, digits: int = 3) -> str:
    """`+0.123` or `−0.123`."""
    return f"{value:+.{digits}f}".replace("-", "−")
