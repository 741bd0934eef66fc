"""What RFC 9332 promises of DualPI2, with Prague in the L4S queue and CUBIC in the classic one.

- **Waits**: L4S packets wait less than 1 ms at the median and less than 2 ms at the 99th percentile, from 4
  to 200 Mbit/s and from 5 to 100 ms (De Schepper, Albisser, Tilmans & Briscoe 2022, arXiv 2209.01078). A
  packet of 1500 bytes takes 3 ms at 4 Mbit/s, and an L4S packet is not marked for its sojourn while at most
  `Th_len` packets wait (RFC 9332, appendix A): there the promise cannot hold.
- **Coupling**: L4S packets are marked with k p', classic ones dropped with p'^2 (RFC 9332, appendix A).
- **Rates**: what both response functions make of the same p' (`Law`). CUBIC is RFC 9438's (`alpha =
  "raised"`, `reduction = "exact"`), which the law cites; with Linux's, which raises its increase less, Prague
  gets a tenth more.
- **Overload**: flows that do not react lose the same part in both queues, what is too much for the link.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from tests.oracle.agreement import Agreement, bounded, compared, simulate

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Marks: TypeAlias = Literal["even", "random"]
MARKS: tuple[Marks, ...] = ("even", "random")
"""How a flow's marks come: the law's two ends."""
ORDERS = ("weighted-round-robin", "time-shifted-fifo")

RATES_MBPS = (4, 12, 40, 120, 200)
ROUND_TRIPS_MS = (5, 10, 20, 50, 100)
PACKET_BYTES = 1500
TARGET_S = 0.015
"""Of the queueing delay of classic packets: DualPI2's default."""
COUPLING = 2.0
"""DualPI2's k."""
PRAGUE_TARGET_S = 0.025
"""The round trip whose rate Prague's flows with shorter ones take: the default of `target-rtt`."""
LEAST_SHARE = 1 / 16
"""Of the link, for classic packets that wait: DualPI2's default."""
EXACT = 0.02


def all_of_dualpi2(seeds: Sequence[int]) -> Iterator[Agreement]:
    """Every comparison."""
    for flows in (1, 5):
        for rate in RATES_MBPS:
            yield from waits(rate, flows, seeds)
    yield from slow_link(seeds)
    for case in coupling_cases():
        yield coupling(case, seeds)
    for case in law_cases():
        yield rates(case, seeds)
    yield from overload(seeds)


def waits(
    rate_mbps: int, flows: int, seeds: Sequence[int], round_trips: Sequence[int] = ROUND_TRIPS_MS
) -> Iterator[Agreement]:
    """The promise of short waits, for the worst of the round trips."""
    setting = f"{rate_mbps} Mbit/s, 5 to 100 ms, {_each(flows)}"
    runs = [simulate(beside_cubic(rate_mbps, rtt, flows), seeds) for rtt in round_trips]
    yield from _waits(setting, runs)
    if flows == 1:
        shares = [_least_share(column) for column in zip(*runs, strict=True)]
        yield bounded(setting, "share of the slower flow, %", ours=shares, least=100 * LEAST_SHARE)


def slow_link(seeds: Sequence[int]) -> Iterator[Agreement]:
    """At 4 Mbit/s the time that a packet takes is what breaks the promise: smaller packets keep it."""
    setting = f"4 Mbit/s, 5 to 100 ms, {_each(1)}"
    for packet_bytes, unit in ((PACKET_BYTES, "packets"), (300, "ms")):
        runs = [simulate(beside_cubic(4, rtt, 1, packet_bytes=packet_bytes), seeds) for rtt in ROUND_TRIPS_MS]
        yield from _waits(f"{setting}, packets of {packet_bytes} bytes", runs, unit)


def coupling(case: Law, seeds: Sequence[int]) -> Agreement:
    """Marks by the controller over the root of drops: k, where p' hardly varies."""
    runs = simulate(case.scenario(), seeds)
    found = [_marked(run) / math.sqrt(_dropped(run)) for run in runs]
    quantity = "marked over root of dropped"
    return compared("theory", case.name, quantity, ours=found, theirs=[COUPLING], margin=EXACT)


def rates(case: Law, seeds: Sequence[int], *, k: float = COUPLING) -> Agreement:
    """Prague's rate over CUBIC's, beside the middle of what the law allows; the margin is the rest of it."""
    runs = simulate(case.scenario(k), seeds)
    low, high = (case.solve(marks).ratio for marks in MARKS)
    return compared(
        "theory",
        case.name,
        "rate of Prague over CUBIC's",
        ours=[_ratio(run) for run in runs],
        theirs=[(low + high) / 2],
        margin=(high - low) / (high + low),
    )


def overload(seeds: Sequence[int]) -> Iterator[Agreement]:
    """Unresponsive flows in both queues: each loses what is too much for the link (RFC 9332, section 4.2)."""
    rate = 40
    for order in ORDERS:
        for l4s, classic in ((44, 10), (60, 20), (30, 30), (10, 60)):
            runs = simulate(unresponsive(rate, l4s, classic, {"order": order}), seeds)
            for index, name in enumerate(("L4S", "classic")):
                yield compared(
                    "theory",
                    f"UDP, {l4s} L4S and {classic} classic on {rate} Mbit/s, {order}",
                    f"loss of {name} packets, %",
                    ours=[100 * run["links"][0]["classes"][index]["loss"] for run in runs],
                    theirs=[100 * (1 - rate / (l4s + classic))],
                    margin=EXACT,
                )


@dataclass(frozen=True, slots=True)
class Equilibrium:
    """Where both response functions and the link meet: p', and window and rate of a flow of each kind."""

    p: float
    prague: float
    cubic: float
    prague_rate: float
    cubic_rate: float

    @property
    def ratio(self) -> float:
        """Of Prague's rate to CUBIC's."""
        return self.prague_rate / self.cubic_rate


@dataclass(frozen=True, slots=True)
class Law:
    """As many flows of Prague as of CUBIC on a link under DualPI2.

    Attributes:
        rate_mbps: The link's rate.
        rtt_ms: The round trip without queues.
        flows: Of each kind.
        target_s: Prague's `target-rtt`; 0 for none.
    """

    rate_mbps: int
    rtt_ms: int
    flows: int
    target_s: float

    @property
    def name(self) -> str:
        """As a setting."""
        kind = "no target" if self.target_s == 0 else f"target {self.target_s * 1e3:g} ms"
        return f"{self.rate_mbps} Mbit/s, {self.rtt_ms} ms, {_each(self.flows)}, {kind}"

    @property
    def reaches(self) -> bool:
        """Whether the law holds: windows of two segments and more, and CUBIC in its Reno-friendly region."""
        return all(self._reaches(self.solve(marks)) for marks in MARKS)

    def scenario(self, k: float = COUPLING) -> dict[str, Any]:
        """The flows on their link, where marks are coupled by k."""
        target = f"{self.target_s * 1e3:g}ms"
        return beside_cubic(self.rate_mbps, self.rtt_ms, self.flows, target=target, queue={"k": k})

    def solve(self, marks: Marks) -> Equilibrium:
        """The p' at which the flows fill the link, by bisection: both rates fall as p' rises."""
        segments = self.rate_mbps * 1e6 / 8 / PACKET_BYTES
        low, high = 1e-9, 1 / COUPLING
        for _ in range(100):
            middle = self._at(math.sqrt(low * high), marks)
            if self.flows * (middle.prague_rate + middle.cubic_rate) > segments:
                low = middle.p
            else:
                high = middle.p
        return self._at(low, marks)

    def _at(self, p: float, marks: Marks) -> Equilibrium:
        rtt = self.rtt_ms / 1e3
        prague = _marks_in_a_round(COUPLING * p, rtt, self.target_s, marks) / (COUPLING * p)
        cubic = max(_reno_window(p**2), _cubic_window(p**2, rtt + TARGET_S))
        return Equilibrium(p, prague, cubic, prague / rtt, cubic / (rtt + TARGET_S))

    def _reaches(self, found: Equilibrium) -> bool:
        reno = _reno_window(found.p**2)
        return min(found.prague, reno) >= 2 and reno >= _cubic_window(
            found.p**2, self.rtt_ms / 1e3 + TARGET_S
        )


@functools.cache
def law_cases() -> tuple[Law, ...]:
    """With so many flows that one flow's window does not move p'."""
    cases = [
        Law(rate, rtt, flows, target)
        for target in (0.0, PRAGUE_TARGET_S)
        for rate, flows in ((40, 5), (120, 10), (200, 10))
        for rtt in ROUND_TRIPS_MS
        # The target acts on shorter round trips.
        if target == 0 or rtt / 1e3 < target
    ]
    return tuple(case for case in cases if case.reaches)


def coupling_cases() -> tuple[Law, ...]:
    """Ten flows of each, whose losses come often enough that p' hardly varies."""
    return tuple(Law(rate, rtt, 10, 0.0) for rate in (120, 200) for rtt in (5, 10, 20))


def _marks_in_a_round(p: float, rtt: float, target: float, marks: Marks) -> float:
    """Marks that a flow of Prague gets in a round trip: its window times p.

    Each segment without a mark adds 1/W segments, with a target and a shorter round trip (rtt / target)^2 as
    much. A reduction takes p/2 of the window, once in the time T. Balance: (1 - p) a = p W rtt / (2 T).
    T is the round trip or the target where marks come evenly; where they come at random, and each has to wait
    for the end of a round, it is longer by rtt / (p W), with a target by a round trip besides.
    """
    is_scaled = rtt < target
    increase = (rtt / target) ** 2 if is_scaled else 1.0
    least = target / rtt if is_scaled else 1.0
    found = 1.0
    for _ in range(200):
        late = 0.0 if marks == "even" else 1 / found + is_scaled
        found = math.sqrt(found * 2 * (1 - p) * increase * (least + late))
    return found


def _reno_window(p: float) -> float:
    """RFC 9438, section 4.3: in its Reno-friendly region CUBIC's mean window is Reno's."""
    return math.sqrt(3 / 2 / p)


def _cubic_window(p: float, rtt: float) -> float:
    """RFC 9438, section 5.1, with C = 0.4 and beta = 0.7."""
    return math.pow(0.4 * 3.7 / (4 * 0.3), 0.25) * math.pow(rtt / p, 0.75)


def _waits(
    setting: str, runs_by_rtt: Sequence[Sequence[dict[str, Any]]], unit: str = "ms"
) -> Iterator[Agreement]:
    """At most 1 and 2 ms, or transmission times of a packet at 4 Mbit/s."""
    unit_s = 1e-3 if unit == "ms" else 8 * PACKET_BYTES / 4e6
    for name, key, most in (("median", "delay_p50_s", 1), ("99th percentile", "delay_p99_s", 2)):
        longest = [
            max(float(run["links"][0]["classes"][0][key]) for run in column)
            for column in zip(*runs_by_rtt, strict=True)
        ]
        quantity = f"{name} of L4S waits, {unit}"
        yield bounded(setting, quantity, ours=[wait / unit_s for wait in longest], most=most)


def _least_share(runs: Sequence[dict[str, Any]]) -> float:
    """In percent."""
    return min(
        100 * float(run["flows"]["throughput_bps"].min() / run["flows"]["throughput_bps"].sum())
        for run in runs
    )


def _ratio(run: dict[str, Any]) -> float:
    flows = run["flows"]
    prague, cubic = (flows["throughput_bps"][flows["group"] == group].mean() for group in (0, 1))
    return float(prague / cubic)


def _marked(run: dict[str, Any]) -> float:
    measured = run["links"][0]["classes"][0]["measured"]
    return float(measured["notified"]["controller"].sum() / measured["sent"].sum())


def _dropped(run: dict[str, Any]) -> float:
    measured = run["links"][0]["classes"][1]["measured"]
    return float(sum(counts.sum() for counts in measured["dropped"].values()) / measured["arrived"].sum())


def _each(flows: int) -> str:
    return "one flow of each" if flows == 1 else f"{flows} flows of each"


def beside_cubic(
    rate_mbps: int,
    rtt_ms: int,
    flows: int,
    *,
    target: str = "25ms",
    packet_bytes: int = PACKET_BYTES,
    queue: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Prague's flows, ECT(1), and as many of CUBIC without ECN."""
    tcp = {"tcp": "linux", "packet": f"{packet_bytes}B", "window": "20000p"}
    access = {"access": {"rate": "1Gbps", "delay": "500us"}}
    prague = {**tcp, "congestion": {"control": "prague", "target-rtt": target}}
    cubic = {**tcp, "congestion": {"control": "cubic", "alpha": "raised"}, "reduction": "exact"}
    return _link(
        rate_mbps,
        rtt_ms,
        queue or {},
        [
            {"name": "Prague", "count": flows, "ecn": "l4s", "transport": prague, **access},
            {"name": "CUBIC", "count": flows, "transport": cubic, **access},
        ],
    )


def unresponsive(rate_mbps: int, l4s_mbps: int, classic_mbps: int, queue: dict[str, Any]) -> dict[str, Any]:
    """A UDP flow in each queue."""
    udp = {"udp": "cbr", "packet": f"{PACKET_BYTES}B"}
    return _link(
        rate_mbps,
        20,
        queue,
        [
            {"name": "L4S", "ecn": "l4s", "transport": {**udp, "rate": f"{l4s_mbps}Mbps"}},
            {"name": "classic", "transport": {**udp, "rate": f"{classic_mbps}Mbps"}},
        ],
    )


def _link(rate_mbps: int, rtt_ms: int, queue: dict[str, Any], groups: list[dict[str, Any]]) -> dict[str, Any]:
    link = {"from": "a", "to": "b", "rate": f"{rate_mbps}Mbps", "delay": f"{500 * rtt_ms - 1000}us"}
    return {
        "title": "DualPI2",
        "duration": "60s",
        "warmup": "20s",
        "links": {"link": {**link, "queue": {"scheduler": "dualpi2", **queue}}},
        "flows": [{"from": "a", "to": "b", **group} for group in groups],
    }
