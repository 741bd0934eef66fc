"""The settings of the paper: one bottleneck, RIO's thresholds, five ways to keep a reservation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perhop.measures.fairness import targets
from perhop.measures.run import Run
from perhop.show.declared import Axis, Factors, Plot, Reference, Where
from perhop.statistics.intervals import Estimate, estimate
from perhop.studies.evidence import Evidence
from perhop.studies.judges import Numbers, Pairs, differences, levels
from perhop.studies.paper import Paper

PAPER = 'Yeom and Reddy, "Realizing throughput guarantees in a differentiated services network"'
THIS = Paper(__package__)
"""The paper's numbers and claims, and the studies of it."""
RUNS = 40
DURATION_S = 30.0

RIO, INVERSE, NO_OUT = "rio", "inverse-rate", "no-out"
TWO_WINDOWS, THREE_DROP = "two-windows", "three-drop"
COMPARED = (RIO, INVERSE, THREE_DROP, TWO_WINDOWS)
"""Schemes that the paper compares from its section 4.1 on."""

SCHEME_NAMES = {
    RIO: "RIO",
    INVERSE: INVERSE,
    NO_OUT: "No-OUT",
    TWO_WINDOWS: TWO_WINDOWS,
    THREE_DROP: THREE_DROP,
}
ALL_SCHEMES = tuple(SCHEME_NAMES)
"""The schemes in the order of the paper's Table 1."""
SCHEMES = Axis("scheme", "Scheme", SCHEME_NAMES)

PROFILES = (2.0, 1.0, 0.5, 0.1, 0.0)
"""The five reserved rates of most experiments, in Mbit/s; 0 is best effort."""
NAMES = {rate: "best effort" if rate == 0 else f"{rate:g} Mbit/s" for rate in PROFILES}
CLASSES = Axis("profile_mbps", "Profile, Mbit/s", {**{r: f"{r:g}" for r in PROFILES if r}, 0.0: "BE"})

RTT_MS = 40.0
"""2 · (18 + 1 + 1) ms, over the bottleneck and an access link at either end."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Values common to all experiments; yeom-sensitivity changes one of these at a time.

    Attributes:
        packet: Packet size of a TCP flow, in bytes.
        udp_packet: Packet size of a UDP flow, in bytes.
        receiver_window: TCP's receiver window, in packets.
        tick: Granularity of TCP's clock.
        min_rto: TCP's shortest timeout.
        initial_rto: TCP's timeout before the first round trip is known.
        window: The markers' window.
        rule: When a flow above its profile sends OUT packets.
        sender_window, sender_rule: The same of the marker in a two-windows sender.
        split: How the three-precedence marker splits OUT packets.
        out_in_average: Which packets the average counts that OUT-IN packets are tested on.
        weight: RED's averaging weight.
        wait: RED's wait rule.
        averages: Which arrivals update which average.
        reading: How equation 9 meets RED.
        limit: The bottleneck's buffer, in packets.
        feedback: How long a No-OUT marker's word takes to the sender.
        bottleneck_ms: Propagation delay of the bottleneck.
        start: When flows start.
    """

    packet: int = 1000
    udp_packet: int = 1000
    receiver_window: int = 23
    tick: str = "100ms"
    min_rto: str = "200ms"
    initial_rto: str = "6s"
    window: str = "1s"
    rule: str = "probabilistic"
    sender_window: str = "600ms"
    sender_rule: str = "four-thirds"
    split: str = "threshold"
    out_in_average: str = "all"
    weight: float = 0.002
    wait: bool = True
    averages: str = "every-arrival"
    reading: str = "max-p"
    limit: int = 200
    feedback: str = "0s"
    bottleneck_ms: float = 18.0
    start: str = "0s..100ms"

    def as_seen_by(self, scheme: str, *, udp: bool = False) -> Setting:
        """This setting without what a scheme's runs do not depend on; `udp`: they have a UDP source."""
        plain = Setting()
        changes: dict[str, Any] = {}
        if scheme != TWO_WINDOWS:
            changes |= {"sender_window": plain.sender_window, "sender_rule": plain.sender_rule}
        elif not udp:
            changes |= {"window": plain.window, "rule": plain.rule}
        if scheme != THREE_DROP:
            changes |= {"split": plain.split, "out_in_average": plain.out_in_average}
        if not udp:
            changes |= {"udp_packet": plain.udp_packet}
        return replace(self, **changes)

    def ceiling_mbps(self, rtt_ms: float) -> float:
        """The most that a receiver window for each round trip allows."""
        return self.receiver_window * self.packet * 8 / rtt_ms / 1e3

    def queue(self, scheme: str) -> dict[str, Any]:
        """The bottleneck's queue: RIO 20/40/0.5 and 50/100/0.02, with a scheme's changes."""
        common: dict[str, Any] = {
            "limit": f"{self.limit}p",
            "in": "50/100/0.02",
            "weight": self.weight,
            "wait": self.wait,
            "averages": self.averages,
            "mean-packet": f"{self.packet}B",
        }
        if scheme == THREE_DROP:
            three = {"out-in": "30/50/0.5", "out-out": "20/40/0.5", "out-in-average": self.out_in_average}
            return {"aqm": "rio-three", **common, **three}
        if scheme == INVERSE:
            return {"aqm": "inverse-rate", **common, "total": "20/40/0.5", "reading": self.reading}
        return {"aqm": "rio", **common, "total": "20/40/0.5"}

    def profile(self, scheme: str, rate_mbps: float, *, in_sender: bool = True) -> dict[str, Any]:
        """The meter of a reservation; `in_sender` says whether a TCP sender of two-windows has it."""
        rate = f"{rate_mbps:g}Mbps"
        if scheme == TWO_WINDOWS and in_sender:
            return {"marker": "tsw", "rate": rate, "window": self.sender_window, "rule": self.sender_rule}
        meter = {"rate": rate, "window": self.window, "rule": self.rule}
        if scheme == THREE_DROP:
            return {"marker": "three-precedence", **meter, "long-window": "10s", "split": self.split}
        return {"marker": "tsw", **meter}

    def tcp(
        self, scheme: str, name: str, profile: float | str, *, count: int = 1, rtt_ms: float = RTT_MS
    ) -> dict[str, Any]:
        """Greedy TCP flows; `profile` is a rate in Mbit/s, 0 for best effort, or a shared profile's name."""
        transport = {
            "tcp": "two-windows" if scheme == TWO_WINDOWS else "reno",
            "packet": f"{self.packet}B",
            "window": f"{self.receiver_window}p",
            "tick": self.tick,
            "min-rto": self.min_rto,
            "initial-rto": self.initial_rto,
        }
        entry = self._entry(scheme, name, profile, transport, count=count, rtt_ms=rtt_ms)
        if scheme == NO_OUT and "profile" in entry:
            entry["out-feedback"] = self.feedback
        return entry

    def udp(self, scheme: str, name: str, profile_mbps: float, sending_mbps: float) -> dict[str, Any]:
        """One source that sends at a constant rate, whatever is lost; it has no TCP sender to mark in."""
        transport = {"udp": "cbr", "rate": f"{sending_mbps:g}Mbps", "packet": f"{self.udp_packet}B"}
        return self._entry(RIO if scheme == TWO_WINDOWS else scheme, name, profile_mbps, transport)

    def scenario(
        self,
        title: str,
        scheme: str,
        capacity_mbps: float,
        entries: Sequence[Mapping[str, Any]],
        more: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The dumbbell with these flows, for 30 s."""
        link = {
            "from": "edge",
            "to": "core",
            "rate": f"{capacity_mbps:g}Mbps",
            "delay": f"{self.bottleneck_ms:g}ms",
            "queue": self.queue(scheme),
        }
        return {
            "title": title,
            "duration": f"{DURATION_S:g}s",
            "links": {"bottleneck": link},
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
            "start": self.start,
        }
        if profile:
            entry["profile"] = profile if isinstance(profile, str) else self.profile(scheme, profile)
        elif scheme == THREE_DROP:
            entry["color"] = "red"  # best effort is OUT-OUT
        return entry


SETTING = Setting()
"""One set of parameters for the whole paper; yeom-setting says why this one."""

FIG12_WINDOW = 1000
"""Figure 12's receiver window, which holds no source back."""
LIMIT = 0.12
"""Mbit/s: how near to Table 1's rates each of the five schemes shall come."""
FAIRLY_CLOSE = 0.2
"""An error that counts as fairly close to the targets, as a share of their mean (1.2, 0.8 and 0.6 Mbit/s)."""


def alike(settings: Mapping[str, Setting]) -> Callable[..., str]:
    """A function of name, scheme and `udp`: the first setting with the same runs as the named one.

    See `Setting.as_seen_by` for its arguments.
    """

    @cache
    def named(scheme: str, *, udp: bool) -> Mapping[Setting, str]:
        first: dict[Setting, str] = {}
        for name, setting in settings.items():
            first.setdefault(setting.as_seen_by(scheme, udp=udp), name)
        return first

    @cache
    def representative(name: str, scheme: str, *, udp: bool = False) -> str:
        return named(scheme, udp=udp)[settings[name].as_seen_by(scheme, udp=udp)]

    return representative


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


def by_scheme(metric: str, keys: Mapping[str, Factors]) -> Numbers:
    """A measure under several schemes: `RIO 1.534 ± 0.024, inverse-rate …`."""
    return levels(metric, {SCHEME_NAMES[s]: key for s, key in keys.items()})


def changes(pairs: Pairs) -> Numbers:
    """The difference of two rates under several schemes."""
    return differences("throughput", {SCHEME_NAMES[s]: pair for s, pair in pairs.items()})


def bars(
    name: str,
    title: str,
    x: Axis,
    series: Axis,
    reference: Reference,
    *,
    y_label: str = "Mbit/s per flow",
    facet: Axis | None = None,
    where: Where = MappingProxyType({}),
) -> Plot:
    """A plot of rates beside those that are due."""
    return Plot(name, title, "bars", "throughput", x, series, y_label, facet, dict(where), (reference,))


def distance(
    evidence: Evidence, pairs: Sequence[tuple[Factors, float]], less: Sequence[Factors] = ()
) -> Estimate:
    """The root-mean-square difference between mean and printed rates, Mbit/s, with an interval over runs.

    A root of squares of means is no mean over runs: its interval is a jackknife's (Efron & Stein 1981), which
    leaves out one run at a time.

    Args:
        evidence: All samples.
        pairs: The factors of each rate, and what is printed.
        less: The factors of rates of another setting, in the same order: the difference of the two distances.
    """
    named = [evidence.by_seed("throughput", factors) for factors in (*(of for of, _ in pairs), *less)]
    seeds = sorted(set.intersection(*(set(found) for found in named)))
    table = np.array([[found[seed] for found in named] for seed in seeds])
    printed = np.array([value for _, value in pairs])

    def statistic(means: NDArray[np.float64]) -> float:
        first, second = means[: len(printed)], means[len(printed) :]
        roots = [float(np.sqrt(np.mean((rates - printed) ** 2))) for rates in (first, second) if len(rates)]
        return roots[0] - (roots[1] if less else 0.0)

    runs = len(seeds)
    whole = statistic(table.mean(axis=0))
    if runs == 1:
        return estimate([whole])
    without = [statistic(np.delete(table, index, axis=0).mean(axis=0)) for index in range(runs)]
    return estimate([runs * whole - (runs - 1) * part for part in without])
