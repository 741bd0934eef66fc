"""What the paper's scenarios share: a path of three hops, ten flows, two ways to mark and two to drop."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from perhop.studies.paper import Paper
from perhop.study import Axis, Sample

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from perhop.runs import Run
    from perhop.study import Evidence, Factors

THIS = Paper(__package__)
TITLE = (
    'Bouras and Sevasti, "Performance enhancement of an AF service using TCP-aware marking and dynamic WRED"'
)
MBPS = "Mbit/s"
RUNS = 10

SETS = {
    "A": (1.0, 1.0, 1.0, 3.0, 3.0, 3.0, 3.0, 5.0, 5.0, 5.0),
    "C": (2.0, 2.0, 2.0, 2.0, 4.0, 4.0, 4.0, 6.0, 6.0, 6.0),
}
"""Contracted rates of flows 1 to 10, Mbit/s: two ways to fill in what the paper's lost Figure 1 says."""
SET_AXIS = Axis("set", "Contracts", {name: f"set {name}" for name in SETS})
FLOW_AXIS = Axis("flow", "Flow")
LARGE = (8, 9, 10)

TSW, TWAM, WRED, DWRED = "tsw", "twam", "wred", "dwred"
BASELINE = "tsw+wred"
PROPOSED = "twam+dwred"
EDGE = "twam+dwred, in flight"
ALIKE = "tsw+wred, alike"
SCHEME_NAMES = {
    BASELINE: "TSW2CM + WRED",
    ALIKE: "TSW2CM + WRED, colors alike",
    PROPOSED: "TWAM + DWRED",
    EDGE: "TWAM + DWRED, window seen at edge",
    "twam+wred": "TWAM + WRED",
    "tsw+dwred": "TSW2CM + DWRED",
}
SCHEMES = Axis("scheme", "Scheme", SCHEME_NAMES)
COMPARED = (BASELINE, ALIKE, PROPOSED, EDGE)
"""Baseline and proposal, each in two readings: of thresholds, and of where the window is seen."""

RTT_MS = 40.0
PACKET = 1000


@dataclass(frozen=True, slots=True)
class Setting:
    """What is the same in every scenario.

    Attributes:
        hop_ms: Propagation delay of each of the three links.
        access_ms: That of each host's link.
        interval: How often windows are looked at: once a propagation round trip.
        reading: How equation 3's denominator is read.
        weight: RED's averaging weight.
        wait: RED's wait rule.
    """

    hop_ms: float = 5.0
    access_ms: float = 2.5
    interval: str = "40ms"
    reading: str = "own-window"
    weight: float = 0.002
    wait: bool = True

    def rule(self, scheme: str, rate_mbps: float) -> dict[str, Any]:
        """The drop rule of the Relative service's queue."""
        room = max(400, round(2 * bdp_packets(rate_mbps)))
        common = {"limit": f"{room}p", "weight": self.weight, "wait": self.wait, "mean-packet": f"{PACKET}B"}
        if aqm(scheme) == DWRED:
            return {"aqm": "dwred", "out": "40/160/0.1", **common}
        thresholds = "40/160/0.1"
        in_profile = {"green": thresholds} if scheme == ALIKE else {}
        return {"aqm": "wred", "yellow": thresholds, **in_profile, **common}

    def scenario(
        self,
        title: str,
        scheme: str,
        rates: tuple[float, ...],
        rate_mbps: float,
        *,
        seconds: float = 200,
        warmup: float = 20,
        late: tuple[int, ...] = (),
        bursts: bool = False,
    ) -> dict[str, Any]:
        """Ten TCP flows from R1 to R4, some of which may begin late; EF bursts from R2 to R3 if asked for."""
        rule = self.rule(scheme, rate_mbps)
        entries = [
            self._tcp(scheme, number, rate, late=number in late) for number, rate in enumerate(rates, start=1)
        ]
        links = {f"R{n}-R{n + 1}": self._link(n, rate_mbps, rule) for n in (1, 2, 3)}
        if bursts:
            ef = {
                "name": "ef",
                "match": {"dscp": 46},
                "cap": "10Mbps",
                "rule": {"aqm": "drop-tail", "limit": "50p"},
            }
            links["R2-R3"]["queue"] = {"scheduler": "priority", "queues": [ef, {"name": "af", "rule": rule}]}
            entries.append(
                {
                    "name": "bursts",
                    "from": "R2",
                    "to": "R3",
                    "dscp": 46,
                    "start": "100s",
                    "transport": {
                        "udp": "on-off",
                        "rate": "11Mbps",
                        "on": "100s",
                        "off": "100s",
                        "periods": "constant",
                    },
                }
            )
        window = "in-flight" if scheme == EDGE else "sender"
        control = {"interval": self.interval, "window": window, "reading": self.reading}
        return {
            "title": title,
            "duration": f"{seconds:g}s",
            "warmup": f"{warmup:g}s",
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
            "delay": f"{self.hop_ms:g}ms",
            "queue": dict(rule),
        }

    def _tcp(self, scheme: str, number: int, rate: float, *, late: bool) -> dict[str, Any]:
        profile: dict[str, Any] = {"marker": "twam", "rate": f"{rate:g}Mbps"}
        if marker(scheme) == TSW:
            profile = {"marker": "tsw", "rate": f"{rate:g}Mbps", "window": "1s"}
        return {
            "name": f"flow {number}",
            "path": "lsp",
            "access": {"rate": "100Mbps", "delay": f"{self.access_ms:g}ms"},
            "transport": {"tcp": "newreno", "packet": f"{PACKET}B"},
            "profile": profile,
            "start": "200s..201s" if late else "0s..1s",
        }


SETTING = Setting()
"""One set of parameters for the whole paper."""


def marker(scheme: str) -> str:
    """The marker of a scheme."""
    return scheme.partition("+")[0]


def aqm(scheme: str) -> str:
    """The drop rule of a scheme."""
    return scheme.partition("+")[2].partition(",")[0]


def bdp_packets(rate_mbps: float) -> float:
    """Bandwidth-delay product of the path, in packets."""
    return rate_mbps * RTT_MS / (8e-3 * PACKET)


def proportional(rates: tuple[float, ...], capacity_mbps: float) -> list[float]:
    """The capacity shared in proportion to the contracts, Mbit/s: the paper's theoretical values."""
    return [rate * capacity_mbps / sum(rates) for rate in rates]


def theoretical_windows(rates: tuple[float, ...], capacity_mbps: float) -> NDArray[np.float64]:
    """The same of the bandwidth-delay product, packets."""
    return np.array([bdp_packets(share) for share in proportional(rates, capacity_mbps)])


def throughputs(run: Run, flows: int = 10) -> NDArray[np.float64]:
    """Of flows 1 to 10 after the warm-up, Mbit/s."""
    return np.asarray(run.flows("throughput_bps")[:flows]) / 1e6


def windows(run: Run, since_s: float) -> NDArray[np.float64]:
    """Congestion windows in packets from then on: one row a second, one column a flow."""
    series = run.raw["series"]
    rows = np.asarray(series["time_s"]) > since_s
    return np.asarray(series["cwnd_packets"])[rows][:, :10]


def queue_share(run: Run, link: str, rate_mbps: float) -> float:
    """Mean queue of a link over the path's bandwidth-delay product."""
    return float(run.link(link)["mean_queue_packets"]) / bdp_packets(rate_mbps)


def basics(
    factors: Factors, run: Run, rates: tuple[float, ...], rate_mbps: float, since_s: float
) -> Iterator[Sample]:
    """Rates against contracts, windows against theory, timeouts, use of the path, queues."""
    got = throughputs(run)
    seen = windows(run, since_s)
    wanted = np.asarray(proportional(rates, rate_mbps))
    theory = theoretical_windows(rates, rate_mbps)
    for number, rate in enumerate(rates, start=1):
        key = {**factors, "flow": number}
        yield Sample(key, "throughput", MBPS, float(got[number - 1]))
        yield Sample(key, "over_contract", "fraction", float(got[number - 1]) / rate)
        window = seen[:, number - 1]
        window = window[np.isfinite(window)]
        if len(window):
            yield Sample(key, "window", "packets", float(np.mean(window)))
            yield Sample(
                key, "window_over_theory", "fraction", float(np.mean(window)) / float(theory[number - 1])
            )
    yield Sample(factors, "contracts_met", "of 10", float(np.sum(got >= np.asarray(rates))))
    yield Sample(factors, "spread", "fraction", float(np.std(got / wanted) / np.mean(got / wanted)))
    yield Sample(factors, "timeouts", "per flow", float(np.mean(run.flows("timeouts")[:10])))
    yield Sample(factors, "utilization", "fraction", float(np.sum(got)) / rate_mbps)
    yield Sample(factors, "mean_window", "packets", float(np.nanmean(seen)))
    for link in ("R1-R2", "R2-R3"):
        yield Sample({**factors, "link": link}, "queue", "of the BDP", queue_share(run, link, rate_mbps))


def groups(rates: tuple[float, ...]) -> dict[float, list[int]]:
    """The flows of each contracted rate."""
    found: dict[float, list[int]] = {}
    for number, rate in enumerate(rates, start=1):
        found.setdefault(rate, []).append(number)
    return found


def in_order(evidence: Evidence, metric: str, factors: Factors, rates: tuple[float, ...]) -> bool:
    """Whether every flow of a group has more than every flow of the group below, by the means."""
    by_group = [
        [evidence.mean(metric, {**factors, "flow": number}) for number in numbers]
        for _, numbers in sorted(groups(rates).items())
    ]
    return all(max(low) < min(high) for low, high in itertools.pairwise(by_group))


def group_text(
    evidence: Evidence, metric: str, factors: Factors, rates: tuple[float, ...], digits: int = 2
) -> str:
    """The mean of each group: `1: 1.52, 3: 4.61, 5: 7.60`."""
    parts = []
    for rate, numbers in sorted(groups(rates).items()):
        values = [evidence.mean(metric, {**factors, "flow": number}) for number in numbers]
        parts.append(f"{rate:g}: {sum(values) / len(values):.{digits}f}")
    return ", ".join(parts)
