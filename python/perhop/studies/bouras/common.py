"""The common parts of the paper's scenarios: three hops, ten flows, markers, drop rules and measures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perhop.measures.run import Run
from perhop.show.declared import Axis
from perhop.studies.evidence import Sample
from perhop.studies.paper import Paper
from perhop.studies.sampling import MBPS

THIS = Paper(__package__)
TITLE = (
    'Bouras and Sevasti, "Performance enhancement of an AF service using TCP-aware marking and dynamic WRED"'
)
FLOWS = 10

Rates = tuple[float, ...]


def admissible_sets() -> dict[str, Rates]:
    """Every set of contracts in whole Mbit/s, in three groups, that agrees with the paper's text.

    The sum lies from 30 to 40: 50 Mbit/s is "higher than" it and over-provisioned where 30 is not, and the
    40 Mbit/s that scenario 4 leaves are to suffice. Flows 8, 9 and 10 have the largest rate, which is above
    5: with an equal share of 50 Mbit/s they fail to obtain it.
    """
    found: dict[str, Rates] = {}
    for small in range(1, 11):
        for middle in range(small + 1, 11):
            for large in range(max(middle + 1, 6), 11):
                rates = (float(small),) * 4 + (float(middle),) * 3 + (float(large),) * 3
                if 30 <= sum(rates) <= 40:
                    found[f"{small}/{middle}/{large}"] = rates
    return found


ADMISSIBLE = admissible_sets()
SETS: dict[str, Rates] = {**ADMISSIBLE, "1/3/5": (1.0,) * 3 + (3.0,) * 4 + (5.0,) * 3}
"""Contracted rates of flows 1 to 10, Mbit/s; `1/3/5` fills 30 Mbit/s exactly and has three small flows."""
SET_AXIS = Axis("set", "Contracts, Mbit/s", {name: name for name in SETS})
JUDGED_SET = "1/2/8"

ROUND_TRIPS = (40, 100, 150, 200)
JUDGED_ROUND_TRIP = 200
"""In ms. At 150 and 200 DWRED's queue is about as the paper says; at 200 BW*D is farther above 160."""
ROUND_TRIP_AXIS = Axis("round_trip", "Round trip", {ms: f"{ms} ms" for ms in ROUND_TRIPS})

FLOW_AXIS = Axis("flow", "Flow")
LARGE = (8, 9, 10)

TSW = "tsw"
BASELINE = "tsw+wred"
BASELINE_IN = "tsw+wred, IN 0.02"
ALIKE = "tsw+wred, alike"
PROPOSED = "twam+dwred"
PROPOSED_IN = "twam+dwred, IN 0.02"
EDGE = "twam+dwred, in flight"
SCHEME_NAMES = {
    BASELINE: "TSW2CM + WRED",
    BASELINE_IN: "TSW2CM + WRED, IN 0.02",
    ALIKE: "TSW2CM + WRED, colors alike",
    PROPOSED: "TWAM + DWRED",
    PROPOSED_IN: "TWAM + DWRED, IN 0.02",
    EDGE: "TWAM + DWRED, window seen at edge",
    "twam+wred": "TWAM + WRED",
    "tsw+dwred": "TSW2CM + DWRED",
}
SCHEMES = Axis("scheme", "Scheme", SCHEME_NAMES)

PACKET = 1000
SENDER: Mapping[str, Any] = {"tcp": "newreno"}
ACCESS_MS = 2.5
HOPS = 3
CAPACITY = {1: 30.0, 2: 50.0, 3: 50.0, 4: 50.0}
"""Rate of the links by scenario, Mbit/s."""
EF_CAP = 10.0
"""The most that EF traffic takes of it in scenario 4, Mbit/s."""


@dataclass(frozen=True, slots=True)
class Times:
    """When things happen in the scenarios, s.

    Attributes:
        steady: Length of scenarios 1 and 2.
        begin: From when on they are measured.
        late: When the late flows of scenario 3 begin.
        window: From when to when scenario 3 is measured.
        burst: Scenario 4's bursts are on for so long, from this time on, and then off for as long.
        phases: How often, on and off counted apart.
        settle: So much is left out after each change of scenario 4.
    """

    steady: float = 200
    begin: float = 50
    late: float = 50
    window: tuple[float, float] = (100, 250)
    burst: float = 50
    phases: int = 4
    settle: float = 10

    def measured(self, scenario: int) -> tuple[float, float]:
        """Return from when to when was measured."""
        bursts = (self.burst, self.burst * (1 + self.phases))
        return {3: self.window, 4: bursts}.get(scenario, (self.begin, self.steady))


TIMES = Times()
SHORT = Times(steady=120, begin=40, late=40, window=(100, 200), burst=40, phases=2, settle=10)
"""The shorter times of studies that run many settings."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One network and set of contracts.

    Attributes:
        round_trip: Propagation round trip of the path, ms.
        rates: Contracted rates of flows 1 to 10, Mbit/s.
        interval: How often windows are looked at.
        round_trips: The paper's alpha, where the interval is measured.
        thresholds: Of static WRED.
        packet: Size of a packet, bytes.
        tcp: What the transport of a flow has beside this size.
        buffer: Room of a queue, in bandwidth-delay products.
        average_s: Time over which TSW2CM averages.
        equation_3: How the denominator of equation 3 is read.
    """

    round_trip: float = JUDGED_ROUND_TRIP
    rates: Rates = SETS[JUDGED_SET]
    interval: str = "measured"
    round_trips: int = 1
    thresholds: str = "40/160"
    packet: int = PACKET
    tcp: Mapping[str, Any] = field(default_factory=lambda: SENDER)
    buffer: float = 2.0
    average_s: float = 1.0
    equation_3: str = "own-window"

    @property
    def hop_ms(self) -> float:
        """Propagation delay of each of the three links."""
        return (self.round_trip / 2 - 2 * ACCESS_MS) / HOPS

    def bdp_packets(self, rate_mbps: float) -> float:
        """Bandwidth-delay product of the path, in packets."""
        return rate_mbps * self.round_trip / (8e-3 * self.packet)

    def theoretical_windows(self, capacity_mbps: float) -> NDArray[np.float64]:
        """The bandwidth-delay product in proportion to the contracts, packets."""
        return np.array([self.bdp_packets(share) for share in proportional(self.rates, capacity_mbps)])

    def rule(self, scheme: str, rate_mbps: float) -> dict[str, Any]:
        """The drop rule of the Relative service's queue."""
        room = max(400, round(self.buffer * self.bdp_packets(rate_mbps)))
        common = {"limit": f"{room}p", "weight": 0.002, "wait": True, "mean-packet": f"{self.packet}B"}
        if aqm(scheme) == "dwred":
            in_profile = {"green": "same-thresholds"} if scheme == PROPOSED_IN else {}
            return {"aqm": "dwred", "out": "40/160/0.1", **in_profile, **common}
        most = {BASELINE_IN: "0.02", ALIKE: "0.1"}.get(scheme)
        in_profile = {} if most is None else {"green": f"{self.thresholds}/{most}"}
        return {"aqm": "wred", "yellow": f"{self.thresholds}/0.1", **in_profile, **common}

    def scenario(self, number: int, scheme: str, times: Times = TIMES) -> dict[str, Any]:
        """Ten TCP flows from R1 to R4: in scenario 3 some begin late, in scenario 4 there are EF bursts."""
        rate_mbps = CAPACITY[number]
        rule = self.rule(scheme, rate_mbps)
        begin, end = times.measured(number)
        late = last_of_groups(self.rates) if number == 3 else ()
        entries = [
            self._tcp(scheme, flow, rate, times.late if flow in late else 0)
            for flow, rate in enumerate(self.rates, start=1)
        ]
        links = {f"R{n}-R{n + 1}": self._link(n, rate_mbps, rule) for n in (1, 2, 3)}
        if number == 4:
            ef = {"name": "ef", "match": {"dscp": 46}, "cap": f"{EF_CAP:g}Mbps"}
            ef["rule"] = {"aqm": "drop-tail", "limit": "50p"}
            links["R2-R3"]["queue"] = {"scheduler": "priority", "queues": [ef, {"name": "af", "rule": rule}]}
            entries.append(bursts(times.burst))
        seen = "in-flight" if scheme == EDGE else "sender"
        control: dict[str, Any] = {"interval": self.interval, "window": seen}
        if self.round_trips > 1:
            control["round-trips"] = self.round_trips
        if self.equation_3 != "own-window":
            control["reading"] = self.equation_3
        return {
            "title": f"Bouras and Sevasti, scenario {number}",
            "duration": f"{end:g}s",
            "warmup": f"{begin:g}s",
            "paths": {"lsp": {"via": ["R1", "R2", "R3", "R4"], "control": control}},
            "links": links,
            "flows": entries,
            "probes": {"interval": "1s"},
        }

    def _link(self, number: int, rate_mbps: float, rule: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "from": f"R{number}",
            "to": f"R{number + 1}",
            "rate": f"{rate_mbps:g}Mbps",
            "delay": f"{round(self.hop_ms * 1e3)}us",
            "queue": dict(rule),
        }

    def _tcp(self, scheme: str, number: int, rate: float, start: float) -> dict[str, Any]:
        own = {"window": f"{self.average_s:g}s"} if marker(scheme) == TSW else {}
        profile = {"marker": marker(scheme), "rate": f"{rate:g}Mbps", **own}
        return {
            "name": f"flow {number}",
            "path": "lsp",
            "access": {"rate": "100Mbps", "delay": f"{ACCESS_MS:g}ms"},
            "transport": {**self.tcp, "packet": f"{self.packet}B"},
            "profile": profile,
            "start": f"{start:g}s..{start + 1:g}s",
        }


SETTING = Setting()
"""The one that the paper's claims are judged on."""


def bursts(seconds: float) -> dict[str, Any]:
    """UDP of 11 Mbit/s from R2 to R3 as EF, on and off for so long in turn."""
    period = f"{seconds:g}s"
    transport = {"udp": "on-off", "rate": "11Mbps", "on": period, "off": period, "periods": "constant"}
    return {"name": "bursts", "from": "R2", "to": "R3", "dscp": 46, "start": period, "transport": transport}


def marker(scheme: str) -> str:
    """The marker of a scheme."""
    return scheme.partition("+")[0]


def aqm(scheme: str) -> str:
    """The drop rule of a scheme."""
    return scheme.partition("+")[2].partition(",")[0]


def groups(rates: Rates) -> dict[float, list[int]]:
    """The flows of each contracted rate, the smallest rate first."""
    found: dict[float, list[int]] = {}
    for number, rate in enumerate(rates, start=1):
        found.setdefault(rate, []).append(number)
    return dict(sorted(found.items()))


def last_of_groups(rates: Rates) -> tuple[int, ...]:
    """The last flow of each group."""
    return tuple(max(numbers) for numbers in groups(rates).values())


def proportional(rates: Rates, capacity_mbps: float) -> list[float]:
    """The capacity shared in proportion to the contracts, Mbit/s: the paper's theoretical values."""
    return [rate * capacity_mbps / sum(rates) for rate in rates]


def spread(values: NDArray[np.float64], rates: Rates) -> float:
    """Standard deviation of value over contract, as a share of the mean; 0 is in proportion."""
    over = values / np.asarray(rates)
    return float(np.std(over) / np.mean(over))


def spread_of_equals(rates: Rates) -> float:
    """The spread where every flow has the same, whatever its contract."""
    return spread(np.ones(len(rates)), rates)


def group_shares(values: NDArray[np.float64], rates: Rates) -> dict[float, float]:
    """For each contract, the mean value over the contract's part of the sum; 1 is in proportion."""
    part = float(np.sum(values)) / sum(rates)
    return {
        rate: float(np.mean([values[number - 1] for number in numbers])) / (rate * part)
        for rate, numbers in groups(rates).items()
    }


def throughputs(run: Run) -> NDArray[np.float64]:
    """Return the throughputs of flows 1 to 10 after the warm-up, Mbit/s."""
    return np.asarray(run.flows("throughput_bps")[:FLOWS]) / 1e6


def windows(run: Run, since_s: float, column: str = "cwnd_packets") -> NDArray[np.float64]:
    """Congestion windows in packets from then on: one row a second, one column a flow."""
    series = run.raw["series"]
    rows = np.asarray(series["time_s"]) > since_s
    return np.asarray(series[column])[rows][:, :FLOWS]


def basics(factors: dict[str, Any], run: Run, setting: Setting, times: Times = TIMES) -> Iterator[Sample]:
    """Rates and windows against contracts, timeouts, round trips, use of the path, queues."""
    number, rates = int(factors["scenario"]), setting.rates
    capacity, (since, until) = CAPACITY[number], times.measured(number)
    got, seen = throughputs(run), windows(run, since)
    means = np.nanmean(seen, axis=0)
    theory = setting.theoretical_windows(capacity)
    part = np.asarray(rates) / sum(rates)
    # Equation 1: the path's window is its rate times its round trip, both as measured.
    equation_1 = (
        float(np.sum(got)) * 1e6 * float(np.mean(run.flows("mean_rtt_s")[:FLOWS])) / (8 * setting.packet)
    )
    marked_in = np.asarray(run.flows("marked")[:FLOWS], dtype=float)[:, 0]
    for flow, rate in enumerate(rates, start=1):
        key = {**factors, "flow": flow}
        yield Sample(key, "throughput", MBPS, float(got[flow - 1]))
        yield Sample(key, "over_contract", "fraction", float(got[flow - 1]) / rate)
        yield Sample(key, "window", "packets", float(means[flow - 1]))
    yield from by_group(factors, "window_share", means, rates)
    yield from by_group(factors, "rate_share", got, rates)
    yield from by_group(factors, "in_share", marked_in, rates)
    trips, timeouts = run.flows("mean_rtt_s")[:FLOWS], run.flows("timeouts")[:FLOWS]
    packets = float(np.sum(run.flows("marked")[:FLOWS]))
    looks = (until - since) / (float(np.mean(trips)) * setting.round_trips)
    single = {
        "contracts_met": ("of 10", np.sum(got >= np.asarray(rates))),
        "spread": ("fraction", spread(got, rates)),
        "window_spread": ("fraction", spread(means, rates)),
        "in_spread": ("fraction", spread(marked_in, rates)),
        "windows_over_product": ("ratio", np.sum(means) / equation_1),
        "window_error": ("packets", np.sqrt(np.mean((means - theory) ** 2))),
        "window_error_by_equation_1": ("packets", np.sqrt(np.mean((means - part * equation_1) ** 2))),
        "window_variation": ("fraction", np.mean(np.nanstd(seen, axis=0) / means)),
        "mean_window": ("packets", np.mean(means)),
        "timeouts": ("per flow", np.mean(timeouts)),
        "without_timeouts": ("of runs", np.sum(timeouts) == 0),
        "trip_ratio": ("ratio", np.max(trips) / np.min(trips)),
        "computations": ("per packet", FLOWS * looks / packets if marker(factors["scheme"]) != TSW else 1),
        "utilization": ("fraction", np.sum(got) / capacity),
    }
    for metric, (unit, value) in single.items():
        yield Sample(factors, metric, unit, float(value), 1.0 if unit in ("of runs", "of 10") else None)
    for link in ("R1-R2", "R2-R3"):
        waiting = float(run.link(link)["mean_queue_packets"])
        yield Sample(
            {**factors, "link": link}, "queue", "of the BDP", waiting / setting.bdp_packets(capacity)
        )


def by_group(
    factors: dict[str, Any], metric: str, values: NDArray[np.float64], rates: Rates
) -> Iterator[Sample]:
    """A sample for each contract: its flows' part of the sum, over that of their contracts."""
    for rate, share in group_shares(values, rates).items():
        yield Sample({**factors, "contract": rate}, metric, "fraction", share)
