"""Settings whose result is known on paper: queueing formulas, shares, bounds, and laws of TCP.

Poisson arrivals are flows of a single packet at uniform times: given their number, the arrivals of a Poisson
process are just that, and the number itself then adds no variance.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from tests.oracle.agreement import Agreement, bounded, compared, simulate

from perhop.plurals import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

Part: TypeAlias = "Callable[[Sequence[int]], Iterator[Agreement]]"

SERVICE_S = 1e-3
"""Of a packet of 1000 bytes on a link of 8 Mbit/s."""
PACKETS = 50_000
_HEADERS = 28
"""Bytes of a UDP packet beside its payload."""
EXACT = 0.02
"""Margin where the formula is exact."""
APPROXIMATE = 0.1
"""Margin where the formula is an approximation, such as the square-root law of TCP."""


def all_of_theory(seeds: Sequence[int]) -> Iterator[Agreement]:
    """Every comparison with theory."""
    for part in PARTS:
        yield from part(seeds)


def m_d_1(seeds: Sequence[int]) -> Iterator[Agreement]:
    """One FIFO queue with Poisson arrivals: Pollaczek and Khinchine's mean, Erlang's distribution (1909)."""
    for load in (0.5, 0.8, 0.9):
        setting = f"M/D/1, load {load:g}"
        waits = [_waits(run) for run in simulate(_poisson({"x": load}), seeds)]
        yield _exact(setting, "mean wait, ms", [w.mean() * 1e3 for w in waits], 1e3 * _md1_mean(load))
        for within in (0.0, 2.0):
            shares = [float((w <= within * SERVICE_S + 1e-9).mean()) for w in waits]
            label = "share that does not wait" if within == 0 else f"share that waits at most {within:g} ms"
            yield _exact(setting, label, shares, _md1_within(load, within))


def m_m_1(seeds: Sequence[int]) -> Iterator[Agreement]:
    """Packets of exponential sizes: the mean wait and its distribution, 1 - rho e^(-(mu - lambda) t).

    Sizes are quantiles of the exponential distribution in random order, in whole bytes, 5000 on average.
    """
    quantiles = (np.arange(2 * PACKETS) + 0.5) / (2 * PACKETS)
    sizes = np.maximum(np.rint(-5000 * np.log1p(-quantiles)), _HEADERS + 1)
    for load in (0.5, 0.8):
        setting = f"M/M/1, load {load:g}"
        waits = [_waits(run) for run in simulate(_poisson({"x": load}, sizes, rate_bps=40e6), seeds)]
        yield _exact(
            setting,
            "mean wait, ms",
            [w.mean() * 1e3 for w in waits],
            1e3 * load * SERVICE_S / (1 - load),
        )
        for within in (0.0, 2.0):
            shares = [float((w <= within * SERVICE_S + 1e-9).mean()) for w in waits]
            label = "share that does not wait" if within == 0 else f"share that waits at most {within:g} ms"
            yield _exact(setting, label, shares, 1 - load * math.exp(-(1 - load) * within))


def m_g_1(seeds: Sequence[int]) -> Iterator[Agreement]:
    """Packets of 40, 576 and 1500 bytes, as 7 to 4 to 1.

    Pollaczek and Khinchine's mean wait is lambda E[S^2] / (2 (1 - rho)).
    """
    sizes = np.repeat([40, 576, 1500], [7 * PACKETS // 6, 4 * PACKETS // 6, PACKETS // 6])
    mean, square = (float(((sizes * 1e-6) ** power).mean()) for power in (1, 2))
    for load in (0.5, 0.8):
        waits = [1e3 * _waits(run).mean() for run in simulate(_poisson({"x": load}, sizes), seeds)]
        expected = load / mean * square / (2 * (1 - load))
        yield _exact(f"M/G/1, three sizes, load {load:g}", "mean wait, ms", waits, 1e3 * expected)


def m_d_1_k(seeds: Sequence[int]) -> Iterator[Agreement]:
    """M/D/1 with room for few packets: the embedded Markov chain of M/D/1/K gives the loss."""
    for load, room in ((0.9, 3), (1.2, 5)):
        tail = {"aqm": "drop-tail", "limit": f"{room}p"}
        runs = simulate(_poisson({"x": load}, queue=tail), seeds)
        losses = [float(np.isnan(run["populations"][0]["completion_s"]).mean()) for run in runs]
        yield compared(
            "theory",
            f"M/D/1 with room for {room} waiting packets, load {load:g}",
            "loss, %",
            ours=[100 * loss for loss in losses],
            theirs=[100 * _md1k_loss(load, room)],
            margin=0.03,
        )


def priorities(seeds: Sequence[int]) -> Iterator[Agreement]:
    """Two classes under strict priority without preemption: Cobham's means (1954), and P99 of the waits.

    A packet of the first class waits as in M/D/1 with its own load and, if it finds one of the other class in
    service, for what is left of that. One of the second class waits for the work that it finds and for all
    of the first class that comes meanwhile (Kella & Yechiali 1988; inverted numerically).
    """
    high, low = 0.3, 0.5
    queues = [
        {"name": "high", "match": {"dscp": 46}, "rule": {"aqm": "drop-tail", "limit": "100000p"}},
        {"name": "low", "rule": {"aqm": "drop-tail", "limit": "100000p"}},
    ]
    described = _poisson({"high": high, "low": low}, queue={"scheduler": "priority", "queues": queues})
    runs = simulate(described, seeds)
    residual = (high + low) * SERVICE_S / 2
    expected = (residual / (1 - high), residual / ((1 - high) * (1 - high - low)))
    for index, (name, wait) in enumerate(zip(("high", "low"), expected, strict=True)):
        waits = [1e3 * float(_waits(run, index).mean()) for run in runs]
        yield _exact(
            "two priorities, loads 0.3 and 0.5", f"mean wait of the {name} one, ms", waits, 1e3 * wait
        )
    setting = "two priorities, loads 0.3 and 0.5"
    within = {"high": _first_within(high, low), "low": _second_within(high, low)}
    for index, (name, probability) in enumerate(within.items()):
        tails = [1e3 * float(np.quantile(_waits(run, index), 0.99)) for run in runs]
        expected_ms = 1e3 * SERVICE_S * _quantile(probability, 0.99)
        yield _exact(setting, f"P99 of the wait of the {name} one, ms", tails, expected_ms)


def processor_sharing(seeds: Sequence[int]) -> Iterator[Agreement]:
    """Transfers under fair queueing share the link as under M/G/1-PS: the slowdown is 1 / (1 - rho).

    So it is for each size, whatever the distribution of sizes (Kleinrock 1967). Packets of 100 bytes and a
    quantum of one come near to the fluid model, and CoDel never acts.
    """
    of_class = {"5kB": (20_000, 5_000), "50kB": (2_000, 50_000)}  # how many, and their bytes on the wire
    for load in (0.5, 0.7):
        span = sum(count * size * 1e-6 for count, size in of_class.values()) / load
        queue = {
            "scheduler": "fq-codel",
            "flows": 65535,
            "quantum": "100B",
            "limit": "1000000p",
            "target": "1000s",
            "interval": "1000s",
        }

        def described(seed: int, span: float = span, queue: dict[str, Any] = queue) -> dict[str, Any]:
            random = np.random.default_rng(seed)
            groups = [
                # Of packets of 100 bytes, 28 are headers.
                _arriving(name, "100B", np.full(count, size * (100 - _HEADERS) // 100), span, random)
                for name, (count, size) in of_class.items()
            ]
            return _link(queue, groups, math.ceil(span) + 20)

        runs = simulate(described, seeds)
        for index, (name, (_, size)) in enumerate(of_class.items()):
            slowdowns = [1 + float(_waits(run, index).mean()) / (size * 1e-6) for run in runs]
            setting = f"transfers under fq-codel as M/G/1-PS, load {load:g}"
            yield _exact(setting, f"slowdown of {name}", slowdowns, 1 / (1 - load))


def shares(seeds: Sequence[int]) -> Iterator[Agreement]:
    """Queues that always have packets get the link by their weights."""
    weights = {"one": 1, "two": 2, "five": 5}
    for scheduler in ("drr", "wfq"):
        queues = [
            {
                "name": name,
                "weight": weight,
                "rule": {"aqm": "drop-tail", "limit": "50p"},
                **({} if name == "five" else {"match": {"dscp": weight}}),
            }
            for name, weight in weights.items()
        ]
        groups = [
            {**_cbr(name, "8Mbps", packet), "dscp": weights[name]}
            for name, packet in zip(weights, ("1500B", "300B", "1000B"), strict=True)
        ]
        described = _link({"scheduler": scheduler, "queues": queues}, groups, 20, warmup_s=2)
        runs = simulate(described, seeds)
        for index, (name, weight) in enumerate(weights.items()):
            rates = [float(run["flows"]["throughput_bps"][index]) / 1e6 for run in runs]
            yield _exact(
                f"{scheduler}, weights 1, 2, 5, all overloaded", f"rate of {name}, Mbit/s", rates, weight
            )


def wfq_bound(seeds: Sequence[int]) -> Iterator[Agreement]:
    """Start-time fair queueing keeps a reserved flow's wait short (Goyal, Vin & Cheng 1997)."""
    queues = [
        {
            "name": "reserved",
            "rate": "2Mbps",
            "match": {"dscp": 46},
            "rule": {"aqm": "drop-tail", "limit": "50p"},
        },
        {"name": "rest", "rule": {"aqm": "drop-tail", "limit": "50p"}},
    ]
    reserved = _cbr("reserved", "1.9Mbps", "500B")
    reserved["transport"]["jitter"] = 0
    groups = [{**reserved, "dscp": 46}, _cbr("rest", "12Mbps", "1500B")]
    runs = simulate(_link({"scheduler": "wfq", "queues": queues}, groups, 20, warmup_s=2), seeds)
    most = 1500 * 8 / 8e6  # the longest packet of each other queue, of which there is one
    waits = [float(run["links"][0]["classes"][0]["delay_s"]["max"].max()) for run in runs]
    yield bounded(
        "wfq, a flow within its reserved rate",
        "longest wait, ms",
        ours=[w * 1e3 for w in waits],
        most=1e3 * most,
    )


def parekh_gallager(seeds: Sequence[int]) -> Iterator[Agreement]:
    """A flow behind a token bucket (sigma, rho) with a guaranteed rate g >= rho: sigma / g + L / C at most.

    This is Parekh and Gallager's bound (1993) on the delay until the last bit; the wait before transmission
    is less by the packet's own time. Start-time fair queueing promises L / C for each other queue (Goyal, Vin
    & Cheng 1997, theorem 4), which is the same where there is one. A policer makes the flow conform; more is
    offered to it, so that bursts of sigma come.
    """
    packet, longest, rate = 500, 1500, 2e6
    for burst in (5_000, 20_000):
        for others in (1, 3):
            reserved = {
                **_cbr("reserved", "80Mbps", f"{packet}B"),
                "profile": {"rate": "2Mbps", "marker": "token-bucket", "burst": f"{burst}B", "out": "drop"},
            }
            reserved["transport"] |= {"udp": "on-off", "on": "10ms", "off": "100ms"}
            tail = {"rule": {"aqm": "drop-tail", "limit": "100p"}}
            queues: list[dict[str, Any]] = [
                {"name": "reserved", "match": {"dscp": "AF11"}, "rate": "2Mbps", **tail},
                *(
                    {"name": f"other {number}", "match": {"dscp": number}, "weight": 1, **tail}
                    for number in range(1, others + 1)
                ),
            ]
            queues[-1].pop("match")
            groups = [
                reserved,
                *(
                    {**_cbr(f"other {number}", "12Mbps", f"{longest}B"), "dscp": number}
                    for number in range(1, others + 1)
                ),
            ]
            runs = simulate(_link({"scheduler": "wfq", "queues": queues}, groups, 20), seeds)
            waits = [1e3 * float(run["links"][0]["classes"][0]["delay_s"]["max"].max()) for run in runs]
            bound = burst * 8 / rate + others * longest * 8 / 8e6 - packet * 8 / 8e6
            setting = f"wfq, sigma {burst / 1e3:g} kB, {counted(others, 'other queue')}"
            yield bounded(setting, "longest wait, ms", ours=waits, most=1e3 * bound)
            yield bounded(setting, "longest wait, ms", ours=waits, least=0.8e3 * bound)


def meters(seeds: Sequence[int]) -> Iterator[Agreement]:
    """A source at twice its profile rate has half of its packets marked IN (RFC 2697, RFC 2859)."""
    for marker, extra in (("token-bucket", {"burst": "10kB"}), ("tsw", {"window": "1s"})):
        group = {**_cbr("x", "2Mbps", "1000B"), "profile": {"rate": "1Mbps", "marker": marker, **extra}}
        runs = simulate(_link({"aqm": "drop-tail", "limit": "100p"}, [group], 200), seeds)
        parts = [run["flows"]["marked"][0] / run["flows"]["marked"][0].sum() for run in runs]
        expected = 0.5 + (10e3 / (2e6 / 8 * 200) if marker == "token-bucket" else 0)
        yield _exact(
            f"{marker}, source at twice the profile rate", "share IN", [float(p[0]) for p in parts], expected
        )


def red_equilibrium(seeds: Sequence[int]) -> Iterator[Agreement]:
    """An overload that does not react: the average settles where RED drops just what is too much.

    Without `wait` the packets from one drop to the next are uniform on 1 … 1/p_b (Floyd & Jacobson 1993,
    section 7), so that 2 p_b / (1 + p_b) of all are dropped.
    """
    low, high, max_p = 20, 80, 0.1
    red = {"aqm": "red", "thresholds": f"{low}/{high}/{max_p}", "wait": False, "limit": "500p"}
    for overload in (0.03, 0.08):
        group = _cbr("x", f"{round(8000 * (1 + overload))}kbps", "1000B")
        runs = simulate(_link(red, [group], 200, warmup_s=20), seeds)
        dropped = overload / (1 + overload)
        average = low + (high - low) * dropped / (2 - dropped) / max_p
        queues = [float(run["links"][0]["mean_queue_packets"]) for run in runs]
        yield _exact(f"RED, an overload of {overload:.0%}", "mean queue, packets", queues, average)


def sawtooth(seeds: Sequence[int]) -> Iterator[Agreement]:
    """One TCP flow without a buffer worth speaking of: three quarters of the link, and the square-root law.

    The window rises by one a round trip from W/2 to W, so the link is used to 3/4, and of 3/8 W² packets one
    is lost: rate = sqrt(3/2 / p) / RTT (Mathis, Semke, Mahdavi & Ott 1997, equation 3).
    """
    described = _link({"aqm": "drop-tail", "limit": "3p"}, [_TCP], 1000, warmup_s=100, delay="48ms")
    runs = simulate(described, seeds)
    rates = [float(run["flows"]["throughput_bps"][0]) for run in runs]
    yield _approximate("one TCP flow, hardly a buffer", "link used, %", [rate / 8e4 for rate in rates], 75.0)
    yield _square_root("one TCP flow, hardly a buffer", runs, rates, math.sqrt(3 / 2))


def response(seeds: Sequence[int]) -> Iterator[Agreement]:
    """TCP flows over RED: the square-root law where losses are rare, with timeouts where they are not.

    The second is equation 30 of Padhye, Firoiu, Towsley & Kurose (1998) without delayed ACKs, and with a
    timeout of four round trips (RFC 5348, section 3.1).
    """
    red = {"aqm": "red", "thresholds": "20/300/0.1", "wait": False, "limit": "900p"}
    for count in (3, 10):
        setting = f"{count} TCP flows over RED"
        group = {**_TCP, "count": count, "transport": {**_TCP["transport"], "send-jitter": "1ms"}}
        runs = simulate(_link(red, [group], 400, warmup_s=50, delay="48ms"), seeds)
        rates = [float(run["flows"]["throughput_bps"].mean()) for run in runs]
        if count == 3:
            yield _square_root(setting, runs, rates, math.sqrt(3 / 2))
        else:
            parts = [rate / _padhye(run) for run, rate in zip(runs, rates, strict=True)]
            yield _approximate(setting, "rate, in that of Padhye's equation", parts, 1.0)


def bbr(seeds: Sequence[int]) -> Iterator[Agreement]:
    """Known faults of BBR's first version (Hock, Bless & Zitterbart 2017).

    Each flow takes the rate that it gets from the others as the path's. So several keep nearly the two
    bandwidth-delay products that their windows allow, and more. Where the buffer holds less, Reno halves its
    window at each loss, and BBR does not.
    """
    transport = {**_TCP["transport"], "congestion": "bbr"}
    product = 0.04 * 8e6 / 8e3  # packets: 40 ms at the link's rate

    def inside(buffer: int, flows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        queue = {"aqm": "drop-tail", "limit": f"{buffer}p"}
        return simulate(_link(queue, flows, 120, warmup_s=40, delay="18ms"), seeds)

    runs = inside(round(8 * product), [{**_TCP, "count": 4, "transport": transport}])
    in_flight = [1 + float(run["links"][0]["mean_queue_packets"]) / product for run in runs]
    quantity = "in flight, bandwidth-delay products"
    yield bounded("4 BBR flows, a buffer of 8 products", quantity, ours=in_flight, least=1.5)
    runs = inside(round(0.2 * product), [{**_TCP, "transport": transport}, {**_TCP, "name": "Reno"}])
    rates = [run["flows"]["throughput_bps"] for run in runs]
    shares = [100 * float(rate[1] / rate.sum()) for rate in rates]
    yield bounded(
        "BBR beside Reno, a buffer of a fifth of the product", "Reno's share, %", ours=shares, most=25
    )


PARTS: tuple[Part, ...] = (
    m_d_1,
    m_m_1,
    m_g_1,
    m_d_1_k,
    priorities,
    processor_sharing,
    shares,
    wfq_bound,
    parekh_gallager,
    meters,
    red_equilibrium,
    sawtooth,
    response,
    bbr,
)


_TCP: dict[str, Any] = {
    "name": "x",
    "from": "a",
    "to": "b",
    "access": {"rate": "100Mbps", "delay": "1ms"},
    "transport": {
        "tcp": "newreno",
        "sack": True,
        "packet": "1kB",
        "window": "1000p",
        "limited-transmit": True,
    },
}


def _md1_mean(load: float) -> float:
    return load * SERVICE_S / (2 * (1 - load))


def _md1_within(load: float, services: float) -> float:
    """The probability to wait no longer than so many service times."""
    terms = (
        (load * (k - services)) ** k / math.factorial(k) * math.exp(-load * (k - services))
        for k in range(int(services) + 1)
    )
    return (1 - load) * sum(terms)


def _first_within(high: float, low: float) -> Callable[[float], float]:
    """The probability that a packet of the first of two classes waits so many service times at most."""
    finds = low / (1 - high)

    def within(services: float) -> float:
        steps = np.linspace(max(services - 1, 0.0), services, 201)
        values = np.array([_md1_within(high, float(step)) for step in steps])
        area = float(((values[1:] + values[:-1]) / 2 * np.diff(steps)).sum())
        return (1 - finds) * _md1_within(high, services) + finds * area

    return within


def _second_within(high: float, low: float) -> Callable[[float], float]:
    """The second class's transform: V(s + high (1 - G(s))), V the work in M/D/1, G a busy period."""

    def transform(s: complex) -> complex:
        busy = 0j
        for _ in range(200):
            busy = np.exp(-(s + high - high * busy))
        slowed = s + high - high * busy
        load = high + low
        return complex((1 - load) * slowed / (slowed - load + load * np.exp(-slowed)))

    return lambda services: 1 - _inverted(lambda s: (1 - transform(s)) / s, services)


def _inverted(transform: Callable[[complex], complex], at: float) -> float:
    """A function from its Laplace transform, by Euler summation (Abate & Whitt 1995)."""
    first, terms, averaged = 18.4, 30, 12
    real = np.array(
        [
            (-1) ** k * transform((first + 2j * math.pi * k) / (2 * at)).real
            for k in range(terms + averaged + 1)
        ]
    )
    sums = np.cumsum(np.concatenate([[real[0] / 2], real[1:]]))[terms:]
    weights = [math.comb(averaged, k) / 2**averaged for k in range(averaged + 1)]
    return float(math.exp(first / 2) / at * np.dot(weights, sums))


def _quantile(within: Callable[[float], float], share: float) -> float:
    low, high = 0.01, 200.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if within(middle) > share else (middle, high)
    return high


def _md1k_loss(load: float, room: int) -> float:
    """The loss of M/D/1 with `room` waiting places: 1 - 1 / (pi_0 + load), pi the chain at departures."""
    comes = [math.exp(-load) * load**j / math.factorial(j) for j in range(room + 2)]
    chain = np.zeros((room + 1, room + 1))
    for left in range(room + 1):
        first = max(left - 1, 0)
        for after in range(first, room):
            chain[left, after] = comes[after - first]
        chain[left, room] = 1 - chain[left].sum()
    system = np.vstack([chain.T - np.eye(room + 1), np.ones(room + 1)])
    stationary = np.linalg.lstsq(system, np.append(np.zeros(room + 1), 1.0), rcond=None)[0]
    return float(1 - 1 / (stationary[0] + load))


def _square_root(
    setting: str, runs: Sequence[dict[str, Any]], rates: Sequence[float], constant: float
) -> Agreement:
    """C of rate = C · packet / (RTT sqrt(p)), from the measured round trip and loss."""
    constants = [
        rate * _mean_rtt(run) * math.sqrt(_loss_events(run)) / 8e3
        for run, rate in zip(runs, rates, strict=True)
    ]
    return _approximate(setting, "C of the square-root law", constants, constant)


def _padhye(run: dict[str, Any]) -> float:
    """bit/s of a flow with packets of 1000 bytes."""
    loss, rtt = _loss_events(run), _mean_rtt(run)
    timeouts = 4 * rtt * min(1, 3 * math.sqrt(3 * loss / 8)) * loss * (1 + 32 * loss**2)
    return 8e3 / (rtt * math.sqrt(2 * loss / 3) + timeouts)


def _loss_events(run: dict[str, Any]) -> float:
    flows = run["flows"]
    return float((flows["fast_retransmits"] + flows["timeouts"]).sum() / flows["sent_packets"].sum())


def _mean_rtt(run: dict[str, Any]) -> float:
    return float(run["flows"]["mean_rtt_s"].mean())


def _exact(setting: str, quantity: str, ours: Sequence[float], theirs: float) -> Agreement:
    return compared("theory", setting, quantity, ours=[float(x) for x in ours], theirs=[theirs], margin=EXACT)


def _approximate(setting: str, quantity: str, ours: Sequence[float], theirs: float) -> Agreement:
    return compared("theory", setting, quantity, ours=ours, theirs=[theirs], margin=APPROXIMATE)


def _waits(run: dict[str, Any], group: int | None = None) -> NDArray[np.float64]:
    """How much longer each flow took than on the idle path, in seconds; of one population, or of all.

    Without those of the first second, and those that did not complete.
    """
    populations = run["populations"] if group is None else [run["populations"][group]]
    waits = [(one["completion_s"] - one["idle_s"])[one["started_s"] >= 1] for one in populations]
    all_ = np.concatenate(waits)
    return np.asarray(all_[np.isfinite(all_)])


def _poisson(
    loads: dict[str, float],
    sizes: NDArray[Any] | None = None,
    *,
    queue: dict[str, Any] | None = None,
    rate_bps: float = 8e6,
) -> Callable[[int], dict[str, Any]]:
    """For each seed, a scenario of Poisson arrivals of packets of a class for each load.

    Args:
        loads: Of the classes.
        sizes: Bytes of all packets, which come in random order; default: 1000 of each of 50 000.
        queue: Of the link; default: a FIFO without loss.
        rate_bps: Of the link.
    """
    bytes_ = np.full(PACKETS, 1000) if sizes is None else sizes
    total = sum(loads.values())
    span = float(bytes_.sum()) * 8 / rate_bps / total

    def described(seed: int) -> dict[str, Any]:
        random = np.random.default_rng(seed)
        shuffled = random.permutation(bytes_) - _HEADERS
        ends = np.rint(np.cumsum(list(loads.values())) / total * len(shuffled)).astype(int)
        groups = [
            {**_arriving(name, "64kB", part, span, random), **({"dscp": 46} if name == "high" else {})}
            for name, part in zip(loads, np.split(shuffled, ends[:-1]), strict=True)
        ]
        tail = {"aqm": "drop-tail", "limit": "100000p"}
        return _link(tail if queue is None else queue, groups, math.ceil(span) + 5, rate_bps=rate_bps)

    return described


def _arriving(
    name: str, packet: str, payload: NDArray[Any], span_s: float, random: np.random.Generator
) -> dict[str, Any]:
    """A population of so many flows, of these payloads in bytes, at uniform times."""
    times = np.sort(random.uniform(0, span_s, len(payload)))
    rows = "".join(f"{time:.9f},{size:.0f}\n" for time, size in zip(times, payload, strict=True))
    return {**_cbr(name, "8Gbps", packet), "arrivals": {"trace": {"data": "time_s,size_B\n" + rows}}}


def _cbr(name: str, rate: str, packet: str) -> dict[str, Any]:
    return {
        "name": name,
        "from": "a",
        "to": "b",
        "transport": {"udp": "cbr", "rate": rate, "packet": packet},
    }


def _link(
    queue: dict[str, Any],
    groups: list[dict[str, Any]],
    duration_s: int,
    *,
    warmup_s: int = 0,
    delay: str = "1ms",
    rate_bps: float = 8e6,
) -> dict[str, Any]:
    return {
        "title": "a setting of theory",
        "duration": f"{duration_s}s",
        "warmup": f"{warmup_s}s",
        "links": {
            "link": {"from": "a", "to": "b", "rate": f"{rate_bps:.0f}bps", "delay": delay, "queue": queue}
        },
        "flows": groups,
    }
