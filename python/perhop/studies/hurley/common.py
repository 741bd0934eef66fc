"""The common parts of the paper's settings: one bottleneck, n blue and m green flows, three routers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perhop.measures.fairness import histogram_cdf
from perhop.measures.run import Run
from perhop.show.declared import Axis, Factors
from perhop.studies import sampling
from perhop.studies.evidence import Sample
from perhop.studies.judges import Numbers, differences, levels
from perhop.studies.paper import Paper
from perhop.studies.sampling import MBPS, mean_mbps

THIS = Paper(__package__)
TITLE = 'Hurley and Le Boudec, "A proposal for an Asymmetric Best-Effort service"'
RUNS = 10
MANY_RUNS = 40
"""Runs where small differences decide, such as what a round trip that is a twentieth shorter gives green."""
PAPER_RUNS = 4

ABE = "abe"
FLAT = "flat"
DSD = "dsd"
SCHEME_NAMES = {ABE: "ABE", FLAT: "flat", DSD: "DSD"}
SCHEMES = Axis("scheme", "Router", SCHEME_NAMES)

RAP = "rap"
SQRT = "sqrt"
TFRC = "tfrc"
FORM_NAMES = {RAP: "RAP", SQRT: "1/√p", TFRC: "TFRC"}
FORMS = Axis("form", "Green source", FORM_NAMES)

BLUE = "blue"
GREEN = "green"
SERVICES = Axis("service", "Service", {BLUE: "blue", GREEN: "green"})

BETA = 3.0
LINK = "r1"


@dataclass(frozen=True, slots=True)
class Setting:
    """Values common to all figures; the sweeps change one or two of these at a time.

    Attributes:
        rate_mbps: Rate of the bottleneck.
        rtt_ms: Propagation round trip, half of it on the bottleneck, a quarter on each access link.
        deadline: How long after its arrival a blue packet is due (D).
        green_limit: The most packets that a green one may find before it (N_g); None sets no such limit.
        beta: How much more throughput blue is to get.
        target: alpha_t; the square of beta unless given.
        law: How alpha is moved.
        gain: The newest interval's weight in the measured loss ratios.
        alpha_on: Which of RED's probabilities alpha multiplies.
        spread: RED spreads its drops evenly.
        thresholds: RED's `min/max/max_p`.
        weight: RED's w_q.
        room: What the buffer holds.
    """

    rate_mbps: float = 3.2
    rtt_ms: float = 200.0
    deadline: str = "100ms"
    green_limit: int | None = 10
    beta: float = BETA
    target: float | None = None
    law: str = "published"
    gain: float = 0.1
    alpha_on: str = "final"
    spread: bool = True
    thresholds: str = "0/40/0.2"
    weight: float = 0.02
    room: str = "60p"

    @property
    def packet_ms(self) -> float:
        """Transmission time of a packet."""
        return 8 / self.rate_mbps

    @property
    def green_bound_ms(self) -> float:
        """The longest wait of a green packet: N_g packets, and what is left of the one in transmission."""
        if self.green_limit is None:
            return math.inf
        return (self.green_limit + 1) * self.packet_ms

    def queue(self, scheme: str) -> dict[str, Any]:
        """The bottleneck's queue."""
        red = {"thresholds": self.thresholds, "limit": self.room, "weight": self.weight}
        red |= {"wait": False, "mean-packet": "1000B"}
        if scheme == FLAT:
            # Equal offsets make EDF the FIFO of flat best effort, with separate books for the two services.
            return {"scheduler": "edf", "blue": "0s", "green": "0s", "rule": {"aqm": "red", **red}}
        if scheme == DSD:
            times = {"bound": f"{self.green_bound_ms:g}ms", "control": "1s", "base-rtt": f"{self.rtt_ms:g}ms"}
            return {"scheduler": "dsd", **times, "rule": {"aqm": "red", **red}}
        target = self.beta**2 if self.target is None else self.target
        rule = {"aqm": "abe", **red, "target": target, "law": self.law, "gain": self.gain}
        rule |= {"alpha-on": self.alpha_on} if self.spread else {"spread": False}
        if self.green_limit is not None:
            rule["green-limit"] = f"{self.green_limit}p"
        return {"scheduler": "edf", "blue": self.deadline, "rule": rule}

    def scenario(self, title: str, scheme: str, blue: int, green: int, form: str) -> dict[str, Any]:
        """The dumbbell with this many flows of each service, for 200 s, of which 10 are not counted."""
        services = ((BLUE, blue, BLUE_TRANSPORT), (GREEN, green, GREEN_TRANSPORTS[form]))
        return self.network(title, scheme, [self.entry(*one) for one in services if one[1]])

    def network(self, title: str, scheme: str, entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The dumbbell with these flows, for 200 s, of which 10 are not counted."""
        rate, delay = f"{self.rate_mbps:g}Mbps", f"{self.rtt_ms / 4:g}ms"
        link = {"from": "r1", "to": "r2", "rate": rate, "delay": delay, "queue": self.queue(scheme)}
        times = {"duration": "200s", "warmup": "10s", "probes": {"interval": "1s"}}
        return {"title": title, **times, "links": {LINK: link}, "flows": list(entries)}

    def entry(
        self, service: str, count: int, transport: Mapping[str, Any], *, name: str | None = None
    ) -> dict[str, Any]:
        """Return an entry of so many flows of one service."""
        access = {"rate": "100Mbps", "delay": f"{self.rtt_ms / 8:g}ms"}
        return {
            "name": name or service,
            "count": count,
            "from": "r1",
            "to": "r2",
            "access": access,
            "egress": access,
            "transport": dict(transport),
            "service": service,
            "start": "0s..1s",
        }


BLUE_TRANSPORT = {"tcp": "reno", "packet": "1000B"}
GREEN_TRANSPORTS = {
    RAP: {"rap": "aimd", "packet": "1000B"},
    SQRT: {"tfrc": "square-root", "packet": "1000B"},
    TFRC: {"tfrc": "rfc5348", "packet": "1000B"},
}

SETTING = Setting()
"""One set of parameters for the whole paper."""

ONE_FIFO: Mapping[str, Any] = {"deadline": "0s", "green_limit": None}
"""ABE's admission before one FIFO, so that green waits as long as blue."""

BETA_TOLERANCE = 0.5
"""A ratio of throughputs is "approximately beta" where beta is the nearest whole number."""


def by_form(metric: str, key: Callable[[str], Factors]) -> Numbers:
    """A number with each green source: `RAP 2.41 ± 0.02, TFRC …`."""
    return levels(metric, {name: key(form) for form, name in FORM_NAMES.items()})


def changes(metric: str, first: Callable[[str], Factors], second: Callable[[str], Factors]) -> Numbers:
    """The difference of two numbers with each green source."""
    return differences(metric, {name: (first(form), second(form)) for form, name in FORM_NAMES.items()})


def services(run: Run) -> list[str]:
    """The services that have flows in this run."""
    return [group.name for group in run.groups]


def mean_ms(run: Run, service: str, column: str) -> float | None:
    """Mean over a service's flows of a column in s, as ms; None where no flow has a value."""
    values = run.of_group(service, column)
    known = values[np.isfinite(values)]
    return float(np.mean(known)) * 1e3 if len(known) else None


def loss(run: Run, service: str) -> float:
    """Share of a service's packets that the bottleneck dropped, over the whole run."""
    books = run.link_class(LINK, service)
    dropped = sum(int(packets.sum()) for packets in books["dropped"].values())
    return dropped / max(int(books["arrived"].sum()), 1)


def traffic(factors: Factors, run: Run) -> Iterator[Sample]:
    """Throughput, loss and round-trip time of each service, and the ratios between the two."""
    found = services(run)
    for service in found:
        key = {**factors, "service": service}
        yield Sample(key, "throughput", MBPS, mean_mbps(run, service))
        came = float(run.link_class(LINK, service)["arrived"].sum())
        yield Sample(key, "loss", "fraction", loss(run, service), came)
        rtt = mean_ms(run, service, "mean_rtt_s")
        if rtt is not None:
            yield Sample(key, "rtt", "ms", rtt)
    if found == [BLUE, GREEN]:
        yield from ratios(factors, run)
    used = float(run.link(LINK)["utilization"])
    yield Sample(factors, "utilization", "fraction", used)


def ratios(factors: Factors, run: Run) -> Iterator[Sample]:
    """Blue over green throughput, green over blue losses and round trips, and what follows from these."""
    if mean_mbps(run, GREEN) > 0:
        yield Sample(factors, "ratio", "blue/green", mean_mbps(run, BLUE) / mean_mbps(run, GREEN))
    if loss(run, BLUE) > 0:
        losses = loss(run, GREEN) / loss(run, BLUE)
        yield Sample(factors, "alpha_m", "green/blue", losses)
        blue, green = (mean_ms(run, service, "mean_rtt_s") for service in (BLUE, GREEN))
        if blue and green:
            yield Sample(factors, "rtt_ratio", "green/blue", green / blue)
            yield Sample(factors, "formula_ratio", "blue/green", math.sqrt(losses) * green / blue)


def waits(factors: Factors, run: Run) -> Iterator[Sample]:
    """Quantiles of each service's wait at the bottleneck, ms; jitter as p99 − p50 and as in RFC 3550."""
    for service in services(run):
        key = {**factors, "service": service}
        books = run.link_class(LINK, service)
        if books["delay_max_s"] is None:
            continue
        levels = {"wait_p50": 0.5, "wait_p95": 0.95, "wait_p99": 0.99}
        yield from sampling.waits(key, books["delay_s"], levels)
        yield Sample(key, "wait_max", "ms", 1e3 * books["delay_max_s"])
        yield Sample(key, "jitter", "ms", 1e3 * (books["delay_p99_s"] - books["delay_p50_s"]))
        yield Sample(key, "jitter_95", "ms", 1e3 * (books["delay_p95_s"] - books["delay_p50_s"]))
        rfc = mean_ms(run, service, "jitter_s")  # none for TCP
        if rfc is not None:
            yield Sample(key, "jitter_rfc3550", "ms", rfc)


def each_source(factors: Factors, run: Run) -> Iterator[Sample]:
    """The rate of each blue source, the jitter (RFC 3550) of each green one: reasons to choose a service."""
    wants = {
        BLUE: ("source_rate", MBPS, "throughput_bps", 1e-6),
        GREEN: ("source_jitter", "ms", "jitter_s", 1e3),
    }
    for service in services(run):
        metric, unit, column, scale = wants[service]
        for source, value in enumerate(run.of_group(service, column), 1):
            yield Sample(
                {**factors, "service": service, "source": source}, metric, unit, scale * float(value)
            )


def cdf(factors: Factors, run: Run, service: str, grid_ms: tuple[float, ...]) -> Iterator[Sample]:
    """Share of a service's packets that waited no longer than each of these times."""
    delay = run.link_class(LINK, service)["delay_s"]
    edges, counts = [float(e) for e in delay["edges"]], [int(n) for n in delay["counts"].sum(axis=1)]
    for at in grid_ms:
        share = histogram_cdf(edges, counts, at / 1e3)
        if share is not None:
            key = {**factors, "service": service, "wait_ms": at}
            yield Sample(key, "cdf", "fraction", share, float(sum(counts)))


def received(run: Run) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Times in s from 0 on, and the packets that each flow has received by then: one column a flow."""
    series = run.raw["series"]
    times = np.concatenate(([0.0], np.asarray(series["time_s"])))
    packets = np.cumsum(np.asarray(series["throughput_bps"]), axis=0) * float(times[1]) / 8000.0
    return times, np.vstack((np.zeros(packets.shape[1]), packets))


def of_service(run: Run, service: str) -> NDArray[np.bool_]:
    """A mask of the flows of a service."""
    return np.asarray(run.flows("group") == services(run).index(service))


def transfer_s(run: Run, service: str, packets: float) -> float | None:
    """The time of a flow's first packets, mean over a service's flows; None if one never has so many."""
    times, got = received(run)
    flows = of_service(run, service)
    taken = []
    for column, start in zip(got[:, flows].T, run.flows("started_s")[flows], strict=True):
        if column[-1] < packets:
            return None
        row = int(np.searchsorted(column, packets))
        share = (packets - column[row - 1]) / (column[row] - column[row - 1])
        taken.append(times[row - 1] + share * float(times[1]) - start)
    return float(np.mean(taken))


def cumulative(factors: Factors, run: Run, times_s: tuple[float, ...]) -> Iterator[Sample]:
    """Packets that a flow of each service has received by these times, mean over the flows."""
    times, got = received(run)
    for service in services(run):
        for at in times_s:
            value = float(np.mean(got[int(np.searchsorted(times, at)), of_service(run, service)]))
            yield Sample({**factors, "service": service, "time_s": at}, "received", "packets", value)
