"""How the engine's time and memory grow with flows, hops, routers and probes, and with simulated time.

Everything is the RI+O paper's Table 1 setting made larger: link, thresholds and limits in proportion to the
flows, simulated time in inverse proportion, so that each run takes a few seconds. Hops are a chain of routers
behind the bottleneck, the propagation delay divided among them. Routers are a torus: each has a link to the
right and one downward, and one NewReno flow to the router three columns and three rows on, so that three
flows share each link and every packet takes six hops, whatever the size. Time is marginal user CPU on one
core (`measuring.py`). Threads are those of one run, in wall time on all cores: of the largest torus, and of
`examples/large.toml`, whose runs take minutes each and which is measured only if it is named. Memory is the
most that a process held, less that of a process that simulated a single flow; at 40 flows it is about what
one and the same run differs by. A packet in flight is one, or its acknowledgement, on a link or in the
bottleneck's mean queue.

    python -m benches.growth [--repeat 3] [--parts PART…] [--markdown] [--json FILE]

The part peer has perhop and ns-3 on a torus of 100 routers (`peers/ns3/torus.cc`), each with four flows of
TCP and one of UDP. ns-3 has no WFQ, so perhop runs both what ns-3 has, strict priority over RED, and WFQ
with WRED.

The parts are flows, time, hops, routers, threads, large, probes and peer.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benches import engine, measuring
from benches.measuring import Spread, marginal
from benches.peers import ns3
from benches.peers.settings import Span, scaled
from tests.oracle import process
from tests.oracle.ns2 import TABLE_1, Group, Ns2Setting
from tests.oracle.scenario import perhop_scenario

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benches.engine import Run

MOST_TIME = 2.5
"""Time for each packet at 4000 flows over that at 40."""
FLOW_BYTES = 4096
PACKET_BYTES = 64
SLACK_BYTES = 256 * 1024
"""What the peak of one and the same run differs by from process to process, and more."""

FLOWS = {40: Span(100, 6100), 400: Span(10, 310), 4000: Span(5, 25), 40_000: Span(3, 6)}
HOPS = {1: Span(20, 520), 3: Span(20, 520), 10: Span(20, 270)}
ROUTERS = {10: Span(10, 60), 20: Span(4, 16), 32: Span(2, 7)}
"""Rows and columns of the torus; at least seven, so that three steps on are nearer than the way round."""
STEPS = 3
THREADS = (1, 2, 4, 8, 16)
FASTER = 1.7
"""Time on one core over that on two, at the largest torus."""
LARGE = Path(__file__).parents[1] / "examples" / "large.toml"
TIMES = {40: Span(100, 1000), 400: Span(20, 200)}
PEER_SIZE = 10
PEER_TCP = 4
PEER, NS3_PEER = Span(2, 12), Span(2, 4)
RED = {"aqm": "red", "thresholds": "20/60/0.1", "limit": "100p"}
WRED = {"aqm": "wred", "yellow": "20/60/0.1", "limit": "100p"}
VOICE = {"name": "voice", "match": {"dscp": 46}}
PEER_QUEUES: dict[str, dict[str, Any]] = {
    "perhop: priority, RED": {
        "scheduler": "priority",
        "queues": [{**VOICE, "rule": RED}, {"name": "rest", "rule": RED}],
    },
    "perhop: WFQ, WRED": {
        "scheduler": "wfq",
        "queues": [{**VOICE, "weight": 4, "rule": WRED}, {"name": "rest", "rule": WRED}],
    },
}
LOOKS_A_SECOND = 100
PROBED = {40: Span(20, 520), 400: Span(10, 110)}


@dataclass(frozen=True, slots=True)
class Growth:
    """One line of a table.

    Attributes:
        size: Flows, or hops.
        packet_ns: Time for each packet at the bottleneck.
        memory_bytes: Of the long run, less the smallest one's; median.
        in_flight: Packets on links and in the bottleneck's queue, mean.
        flows: How many.
    """

    size: int
    packet_ns: Spread
    memory_bytes: float
    in_flight: float
    flows: int

    @property
    def flow_bytes(self) -> float:
        """Memory of a flow, after what its packets may take."""
        return (self.memory_bytes - PACKET_BYTES * self.in_flight) / self.flows

    @property
    def allowed_bytes(self) -> float:
        """The most memory that is wanted."""
        return FLOW_BYTES * self.flows + PACKET_BYTES * self.in_flight

    @property
    def is_small(self) -> bool:
        """Whether it is no more."""
        return self.memory_bytes <= self.allowed_bytes


@dataclass(frozen=True, slots=True)
class Part:
    """One table, and the lines that close it."""

    title: str
    header: tuple[str, ...]
    rows: list[list[str]]
    closing: list[str]
    figures: list[dict[str, Any]]


def of_flows(flows: int) -> Ns2Setting:
    """The setting with this many flows; a single one has the smallest link."""
    if flows >= 40:
        return scaled(TABLE_1, flows // 40)
    return replace(TABLE_1, groups=(Group(flows, 0.0),), rate_bps=TABLE_1.rate_bps * flows / 40)


def scenario(
    network: Ns2Setting, seconds: float, *, hops: int = 1, interval_s: float = 0.0
) -> dict[str, Any]:
    """The network for this long, behind its bottleneck a chain of links that are never the narrowest."""
    found = perhop_scenario(replace(network, duration_s=seconds, delay_s=network.delay_s / hops))
    bottleneck = found["links"]["bottleneck"]
    stops = ["edge", *(f"router {hop}" for hop in range(1, hops)), "core"]
    bottleneck["to"] = stops[1]
    for hop in range(1, hops):
        found["links"][f"hop {hop + 1}"] = {
            "from": stops[hop],
            "to": stops[hop + 1],
            "rate": f"{round(network.rate_bps * 1.25)}bps",
            "delay": bottleneck["delay"],
            "queue": {"aqm": "drop-tail", "limit": f"{network.limit_packets}p"},
        }
    if interval_s > 0:
        found["probes"] = {"interval": f"{round(interval_s * 1e9)}ns"}
    return found


def smallest_bytes(repeat: int) -> float:
    """Peak memory of a process that simulates a single flow for a second."""
    one = scenario(of_flows(1), 1.0)
    return Spread.of([float(engine.run(one, seed).answer.peak_bytes) for seed in range(1, repeat + 1)]).median


def in_flight(network: Ns2Setting, run: Run) -> float:
    """Packets and acknowledgements on links, and packets in the bottleneck's mean queue."""
    (access_s,) = {group.access_delay_s or network.access_delay_s for group in network.groups}
    round_trip_s = 2 * (network.delay_s + 2 * access_s)
    return network.rate_bps * round_trip_s / (8 * network.packet_bytes) + run.answer.waiting


def packet_ns(short: Run, long: Run) -> float:
    """Marginal time for each packet."""
    return 1e9 * marginal(
        (short.user_seconds, short.answer.arrived), (long.user_seconds, long.answer.arrived)
    )


def grow(
    sizes: dict[int, Span], network: Callable[[int], Ns2Setting], repeat: int, base: float, *, chain: bool
) -> list[Growth]:
    """Time and memory by size: the number of flows, or of hops in a `chain`; runs are interleaved."""
    times: dict[int, list[float]] = {size: [] for size in sizes}
    longest: dict[int, list[Run]] = {size: [] for size in sizes}
    for seed in range(1, repeat + 1):
        for size, span in sizes.items():
            hops = size if chain else 1
            short, long = (
                engine.run(scenario(network(size), seconds, hops=hops), seed)
                for seconds in (span.short, span.long)
            )
            times[size].append(packet_ns(short, long))
            longest[size].append(long)
    return [
        Growth(
            size,
            Spread.of(times[size]),
            Spread.of([run.answer.peak_bytes - base for run in longest[size]]).median,
            Spread.of([in_flight(network(size), run) for run in longest[size]]).median,
            sum(group.count for group in network(size).groups),
        )
        for size in sizes
    ]


def flows(repeat: int) -> Part:
    """More flows on a wider link."""
    found = grow(FLOWS, of_flows, repeat, smallest_bytes(repeat), chain=False)
    first = found[0].packet_ns.median
    rows = [
        [
            f"{one.size}",
            one.packet_ns.text(),
            f"{one.packet_ns.median / first:.2f}",
            f"{one.memory_bytes / 2**20:.1f}",
            f"{one.in_flight:.0f}",
            f"{one.flow_bytes:.0f}",
            f"{one.allowed_bytes / 2**20:.1f}: {measuring.verdict(holds=one.is_small)}",
        ]
        for one in found
    ]
    at_4000 = next(one for one in found if one.size == 4000).packet_ns.median / first
    memory = measuring.verdict(holds=all(one.is_small for one in found))
    time = measuring.verdict(holds=at_4000 <= MOST_TIME)
    return Part(
        "Flows",
        (
            "flows",
            "ns per packet",
            "of that at 40",
            "memory, MB",
            "packets in flight",
            "bytes a flow besides",
            "memory wanted, MB",
        ),
        rows,
        [
            f"time per packet at 4000 flows: {at_4000:.2f} times that at 40, wanted {MOST_TIME:g}: {time}",
            f"memory: wanted {FLOW_BYTES} bytes a flow and {PACKET_BYTES} a packet in flight: {memory}",
        ],
        [{**asdict(one), "flow_bytes": one.flow_bytes, "allowed_bytes": one.allowed_bytes} for one in found],
    )


def time(repeat: int) -> Part:
    """How memory grows when one network runs ten times as long."""
    rows, figures, most = [], [], 0.0
    for count, span in TIMES.items():
        short, long = (
            Spread.of(
                [
                    float(engine.run(scenario(of_flows(count), seconds), seed).answer.peak_bytes)
                    for seed in range(1, repeat + 1)
                ]
            ).median
            for seconds in (span.short, span.long)
        )
        most = max(most, long - short)
        rows.append(
            [
                f"{count} flows, {span.short:g} s → {span.long:g} s",
                f"{short / 2**20:.2f}",
                f"{long / 2**20:.2f}",
                f"{(long - short) / 1024:+.0f}",
            ]
        )
        figures.append({"flows": count, "short_bytes": short, "long_bytes": long, **asdict(span)})
    verdict = measuring.verdict(holds=most <= SLACK_BYTES)
    return Part(
        "Simulated time, without probes (whose series grow by nature)",
        ("", "peak of the process, MB", "after ten times as long, MB", "difference, kB"),
        rows,
        [f"memory independent of simulated time, within {SLACK_BYTES // 1024} kB: {verdict}"],
        figures,
    )


def hops(repeat: int) -> Part:
    """More routers on the way."""
    found = grow(HOPS, lambda _: TABLE_1, repeat, smallest_bytes(repeat), chain=True)
    first = found[0]
    rows = [
        [
            f"{one.size}",
            one.packet_ns.text(),
            ""
            if one is first
            else f"{(one.packet_ns.median - first.packet_ns.median) / (one.size - first.size):.1f}",
            f"{one.memory_bytes / 2**20:.2f}",
        ]
        for one in found
    ]
    return Part(
        "Hops",
        ("hops, 40 flows", "ns per packet", "ns per further hop", "memory, MB"),
        rows,
        [],
        [asdict(one) for one in found],
    )


def torus(size: int, seconds: float) -> dict[str, Any]:
    """A torus of `size` times `size` routers with a flow for each, for this long."""

    def router(row: int, column: int) -> str:
        return f"router {row % size + 1}-{column % size + 1}"

    places = [(row, column) for row in range(size) for column in range(size)]
    ends = [
        (router(row, column), router(row + down, column + right))
        for row, column in places
        for down, right in ((0, 1), (1, 0))
    ]
    link = {"rate": "10Mbps", "delay": "1ms", "queue": {"aqm": "drop-tail", "limit": "50p"}}
    names = ("bottleneck", *(f"link {number}" for number in range(2, len(ends) + 1)))
    return {
        "duration": f"{round(seconds * 1e9)}ns",
        "links": {
            name: {"from": start, "to": end, **link} for name, (start, end) in zip(names, ends, strict=True)
        },
        "flows": [
            {
                "name": f"flow {number}",
                "from": router(row, column),
                "to": router(row + STEPS, column + STEPS),
                "start": "0s..1s",
                "transport": {"tcp": "newreno"},
            }
            for number, (row, column) in enumerate(places, start=1)
        ],
    }


def routers(repeat: int) -> Part:
    """Larger networks with as much to do for each router."""
    base = smallest_bytes(repeat)
    hop_ns: dict[int, list[float]] = {size: [] for size in ROUTERS}
    begun: dict[int, list[float]] = {size: [] for size in ROUTERS}
    memory: dict[int, list[float]] = {size: [] for size in ROUTERS}
    for seed in range(1, repeat + 1):
        for size, span in ROUTERS.items():
            short, long = (engine.run(torus(size, seconds), seed) for seconds in (span.short, span.long))
            runs = [(run.user_seconds, run.answer.packet_hops) for run in (short, long)]
            each = marginal(*runs)
            hop_ns[size].append(1e9 * each)
            begun[size].append(short.user_seconds - each * short.answer.packet_hops)
            memory[size].append(long.answer.peak_bytes - base)
    first = Spread.of(hop_ns[min(ROUTERS)]).median
    rows, figures = [], []
    for size in ROUTERS:
        hop, start, held = (Spread.of(values[size]) for values in (hop_ns, begun, memory))
        rows.append(
            [
                f"{size * size}",
                hop.text(),
                f"{hop.median / first:.2f}",
                f"{1e3 / hop.median:.1f}",
                f"{start.median:.2f}",
                f"{held.median / 2**20:.1f}",
                f"{held.median / size**2 / 1024:.1f}",
            ]
        )
        figures.append(
            {
                "routers": size * size,
                "packet_hop_ns": asdict(hop),
                "start_seconds": start.median,
                "memory_bytes": held.median,
            }
        )
    return Part(
        "Routers",
        (
            "routers, a flow each",
            "ns per packet and hop",
            f"of that at {min(ROUTERS) ** 2}",
            "million packet-hops per s",
            "start, s",
            "memory, MB",
            "kB per router, its two links and its flow",
        ),
        rows,
        [],
        figures,
    )


def threads(repeat: int) -> Part:
    """One run of the largest torus on several threads: marginal wall time, without the start of the run."""
    size, span = max(ROUTERS), ROUTERS[max(ROUTERS)]

    def seconds(seed: int, count: int) -> float:
        short, long = (engine.run(torus(size, duration), seed, count) for duration in (span.short, span.long))
        return (long.answer.seconds - short.answer.seconds) / (span.long - span.short)

    return _by_threads(f"Threads, {size * size} routers, a flow each", "simulated s", seconds, repeat)


def large(repeat: int) -> Part:
    """One run of `examples/large.toml` on several threads."""

    def seconds(seed: int, count: int) -> float:
        return engine.run_file(LARGE, seed, count).answer.seconds

    return _by_threads("Threads, examples/large.toml", "run", seconds, repeat)


def _by_threads(title: str, unit: str, seconds: Callable[[int, int], float], repeat: int) -> Part:
    """A table of the wall time by number of threads, up to one for each core; runs are interleaved."""
    counts = [count for count in THREADS if count <= max(2, measuring.cores())]
    found: dict[int, list[float]] = {count: [] for count in counts}
    with measuring.on_all_cores():
        for seed in range(1, repeat + 1):
            for count in counts:
                found[count].append(seconds(seed, count))
    gains = {
        count: Spread.of([one / more for one, more in zip(found[1], found[count], strict=True)])
        for count in counts
    }
    holds = measuring.verdict(holds=gains[2].median >= FASTER)
    return Part(
        title,
        ("threads", f"wall s per {unit}", "one thread's time over it"),
        [[f"{count}", Spread.of(found[count]).text(1.0, 2), gains[count].text(1.0, 2)] for count in counts],
        [f"{title}: two threads are {gains[2].median:.2f} times as fast as one, wanted {FASTER:g}: {holds}"],
        [
            {"threads": count, "seconds": asdict(Spread.of(found[count])), "gain": asdict(gains[count])}
            for count in counts
        ],
    )


def probes(repeat: int) -> Part:
    """The price of a look."""
    rows, figures = [], []
    for count, span in PROBED.items():
        looks = [_look(count, span, seed) for seed in range(1, repeat + 1)]
        seconds, held = (Spread.of(values) for values in zip(*looks, strict=True))
        rows.append(
            [
                f"{count}",
                seconds.text(1e6, 2),
                f"{seconds.median * 1e9 / count:.1f}",
                f"{held.median / count:.0f}",
            ]
        )
        figures.append({"flows": count, "look_seconds": asdict(seconds), "look_bytes": held.median})
    return Part(
        "Probes",
        ("flows", "µs per look", "ns per look and flow", "bytes per look and flow"),
        rows,
        [],
        figures,
    )


def _look(count: int, span: Span, seed: int) -> tuple[float, float]:
    """Time and memory of one look: between runs that look and that do not."""
    seen = {}
    for interval_s in (0.0, 1 / LOOKS_A_SECOND):
        short, long = (
            engine.run(scenario(of_flows(count), seconds, interval_s=interval_s), seed)
            for seconds in (span.short, span.long)
        )
        seen[interval_s] = (
            long.user_seconds - short.user_seconds,
            float(long.answer.peak_bytes),
            float(long.answer.looks - short.answer.looks),
            float(long.answer.looks),
        )
    plain, looking = seen.values()
    return (looking[0] - plain[0]) / looking[2], (looking[1] - plain[1]) / looking[3]


def full_torus(size: int, seconds: float, queue: dict[str, Any]) -> dict[str, Any]:
    """The torus of `peers/ns3/torus.cc`, for this long, with this queue at both ends of each link."""
    found = torus(size, seconds)
    link = {"rate": "10Mbps", "delay": "2ms", "queue": queue, "reverse": {"queue": queue}}
    places = [(row, column) for row in range(size) for column in range(size)]

    def router(row: int, column: int) -> str:
        return f"router {row % size + 1}-{column % size + 1}"

    tcp = {"tcp": "newreno", "sack": True, "packet": "1000B", "window": "12p"}
    udp = {"udp": "cbr", "rate": "200kbps", "packet": "500B"}
    found["links"] = {
        name: {"from": ends["from"], "to": ends["to"], **link} for name, ends in found["links"].items()
    }
    found["flows"] = [
        flow
        for number, (row, column) in enumerate(places, start=1)
        for flow in (
            {
                "name": f"tcp {number}",
                "count": PEER_TCP,
                "from": router(row, column),
                "to": router(row + STEPS, column + STEPS),
                "start": "0s..1s",
                "transport": tcp,
            },
            {
                "name": f"udp {number}",
                "from": router(row, column),
                "to": router(row + STEPS, column - STEPS),
                "start": "0s..1s",
                "dscp": 46,
                "transport": udp,
            },
        )
    ]
    return found


def peer(repeat: int) -> Part:
    """Of perhop and ns-3 on one network of the size that ns-3 can do: marginal time for each packet-hop."""
    names = (*PEER_QUEUES, "ns-3: priority, RED")
    costs: dict[str, list[float]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "torus"
        missing = ns3.compile_with_ns3(ns3.SOURCE.with_name("torus.cc"), program)
        for seed in range(1, repeat + 1):
            for name, queue in PEER_QUEUES.items():
                runs = [
                    engine.run(full_torus(PEER_SIZE, seconds, queue), seed)
                    for seconds in (PEER.short, PEER.long)
                ]
                costs[name].append(marginal(*((run.user_seconds, run.answer.packet_hops) for run in runs)))
            if missing is None:
                theirs = []
                for seconds in (NS3_PEER.short, NS3_PEER.long):
                    options = {"size": PEER_SIZE, "steps": STEPS, "tcp": PEER_TCP, "duration": seconds}
                    words = [f"--{key}={value}" for key, value in {**options, "seed": seed}.items()]
                    cost = process.run([str(program), *words])
                    said = dict(word.split("=", 1) for word in cost.output.split())
                    theirs.append((cost.user_seconds, float(said["hops"])))
                costs[names[-1]].append(marginal(*theirs))
    found = {name: Spread.of(values) for name, values in costs.items() if values}
    first = found[names[0]].median
    return Part(
        f"Beside ns-3: {PEER_SIZE * PEER_SIZE} routers, {PEER_SIZE * PEER_SIZE * (PEER_TCP + 1)} flows",
        ("", "ns per packet-hop", "million packet-hops per s", f"of {names[0]}"),
        [
            [name, cost.text(1e9, 0), f"{1e-6 / cost.median:.2f}", f"{cost.median / first:.1f}"]
            for name, cost in found.items()
        ],
        [] if missing is None else [f"without ns-3: {missing}"],
        [{"program": name, "packet_hop_seconds": asdict(cost)} for name, cost in found.items()],
    )


PARTS = {
    "flows": flows,
    "time": time,
    "hops": hops,
    "routers": routers,
    "threads": threads,
    "large": large,
    "probes": probes,
    "peer": peer,
}
USUAL = [name for name in PARTS if name != "large"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description="time and memory of the engine as its work grows")
    parser.add_argument("--repeat", type=int, default=3, help="repetitions, each with its own seed")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=USUAL, help="which to measure")
    parser.add_argument("--markdown", action="store_true", help="print tables for docs/project/benchmarks.md")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    options = parser.parse_args(arguments)
    if options.repeat < 1:
        parser.error("--repeat must be at least 1")
    if reason := engine.missing():
        print(f"error: {reason}", file=sys.stderr)
        return 2

    print(
        f"Marginal user CPU {measuring.stay_on_one_core()} ({measuring.machine()}),"
        f" median (range) of {options.repeat}"
    )
    closing: list[str] = []
    figures = {}
    for name in options.parts:
        part = PARTS[name](options.repeat)
        print(f"\n### {part.title}\n" if options.markdown else f"\n{part.title}")
        print(measuring.table(part.header, part.rows, markdown=options.markdown), flush=True)
        closing.extend(part.closing)
        figures[name] = part.figures
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    print("\n" + "\n".join(closing))
    return 0


if __name__ == "__main__":
    sys.exit(main())
