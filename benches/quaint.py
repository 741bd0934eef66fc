"""perhop on the metropolitan network with which Quaint was measured: wall time, packet-hops a second, memory.

Quaint is a parallel simulator of DiffServ networks (arXiv 2405.20815). Its network's graph is public, but
without a licence, so it is not a part of perhop: `src/data/partition/graph-for-metis.txt` in the branch
experiments-metis of github.com/network-digital-twin/experiment-utils (58 146 bytes), 5237 switches and 6067
links in the format of METIS. Parameters are those of Quaint's page and of its generator of workloads
(`WL_generation/generate_workloads.py` of ROSS-Network-Model): links of 25 Gbit/s and 4 ms; each access switch
sends 10 Mbit/s in packets of 1400 bytes to one switch that is none, in messages of 10 kB in the mean, each
with one of three priorities; meters of a single rate with bursts of 50 and 500 packets; three queues of
strict priority with 5, 20 and 20 MB, which drop green packets above 0.9 of a queue and yellow ones above 0.6.

What differs: which 88 switches are no access switches is not public, so here they are those with the most
links; nor are the rates of ports above 25 Gbit/s. The messages of a priority are a flow that is on for 8 ms
and off for 16 ms in the mean, three flows for each access switch. Meters are at the sources, not at each
port.

    python -m benches.quaint graph-for-metis.txt [--repeat 3] [--threads 1 2] [--markdown]
                            [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from benches import engine, measuring
from benches.measuring import Spread
from benches.peers.settings import Span

if TYPE_CHECKING:
    from collections.abc import Sequence

SWITCHES = 88
"""Switches that are no access switches: 70 mixed and 18 kernel ones."""
SPAN = Span(0.1, 1.1)
PRIORITIES = 3
PACKET, BURST, EXCESS = 1400, 50, 500
RATE_BPS = 25e9
CAPACITIES = (5_000_000, 20_000_000, 20_000_000)
GREEN, YELLOW = 0.9, 0.6

# Published, of a Xeon Gold 6230 with 2.1 GHz: packets that arrived, the share that did not, seconds, events.
# In omnet-bench (results/results-exp1-slim/100us-interval/ZteNet-#0-res-simulation.json of its simulations);
# in experiment-utils, the first output of src/plots.ipynb.
ARRIVED, NOT_ARRIVED = 242_070, 0.2193
SECONDS, EVENTS = {"OMNeT++/INET": 330.5, "Quaint": 6.28}, {"OMNeT++/INET": 64.2e6, "Quaint": 4.17e6}


class GraphError(ValueError):
    """A file that is no graph in the format of METIS."""


def read_graph(text: str) -> list[list[int]]:
    """The neighbors of each vertex, counted from 0.

    Raises:
        GraphError: It is not a graph without weights.
    """
    lines = [line.split() for line in text.splitlines() if not line.startswith("%")]
    try:
        (vertices, edges), *rows = [[int(word) for word in line] for line in lines]
    except ValueError as error:
        raise GraphError(f"no graph of METIS without weights: {error}") from error
    if len(rows) != vertices or sum(map(len, rows)) != 2 * edges:
        raise GraphError(
            f"{len(rows)} vertices with {sum(map(len, rows))} ends; its head says {vertices}, {edges} edges"
        )
    neighbors = [[other - 1 for other in row] for row in rows]
    ends = {(start, end) for start, row in enumerate(neighbors) for end in row}
    if any((end, start) not in ends for start, end in ends):
        raise GraphError("the adjacency is not symmetric")
    return neighbors


def is_no_access(neighbors: Sequence[Sequence[int]]) -> list[int]:
    """The switches with the most links."""
    by_links = sorted(range(len(neighbors)), key=lambda switch: (-len(neighbors[switch]), switch))
    return by_links[:SWITCHES]


def mean_hops(neighbors: Sequence[Sequence[int]]) -> float:
    """From access switches to the others, over all pairs."""
    ends = is_no_access(neighbors)
    total = 0
    for end in ends:
        distances = {end: 0}
        waiting = deque([end])
        while waiting:
            switch = waiting.popleft()
            for other in neighbors[switch]:
                if other not in distances:
                    distances[other] = distances[switch] + 1
                    waiting.append(other)
        total += sum(hops for switch, hops in distances.items() if switch not in set(ends))
    return total / (len(ends) * (len(neighbors) - len(ends)))


def scenario(neighbors: Sequence[Sequence[int]], seconds: float) -> dict[str, Any]:
    """The network for this long.

    Which switch each access switch sends to is drawn once, and the same in all runs.
    """
    ends = is_no_access(neighbors)
    draw = np.random.default_rng(1)
    pairs = [
        (f"s{switch}", f"s{ends[draw.integers(SWITCHES)]}", "10Mbps")
        for switch in sorted(set(range(len(neighbors))) - set(ends))
    ]

    def queue(priority: int) -> dict[str, Any]:
        capacity = CAPACITIES[priority]
        green, yellow = (int(capacity / PACKET * share) for share in (GREEN, YELLOW))
        rule = {
            "green": f"{green}/{green + 1}/1",
            "yellow": f"{yellow}/{yellow + 1}/1",
            "limit": f"{capacity}B",
        }
        last = priority == PRIORITIES - 1
        match = {} if last else {"match": {"dscp": [f"AF{priority + 1}{drop}" for drop in (1, 2, 3)]}}
        return {"name": f"priority {priority}", **match, "rule": {"aqm": "wred", **rule}}

    def flow(priority: int) -> dict[str, Any]:
        return {
            "name": f"priority {priority}",
            "count": len(pairs),
            "between": {"name": "pairs", "demands": pairs},
            "start": "0s..10ms",
            "transport": {
                "udp": "on-off",
                "rate": "10Mbps",
                "packet": f"{PACKET}B",
                "on": "8ms",
                "off": "16ms",
            },
            "profile": {
                "marker": "srtcm",
                "rate": f"{round(RATE_BPS / PRIORITIES)}bps",
                "burst": f"{BURST * PACKET}B",
                "excess-burst": f"{EXCESS * PACKET}B",
                "af": priority + 1,
                "out": "drop-red",
            },
        }

    links = [[f"s{one}", f"s{two}"] for one, row in enumerate(neighbors) for two in row if one < two]
    return {
        "duration": f"{round(seconds * 1e9)}ns",
        "topology": {
            "graph": {"name": "metropolitan", "links": links},
            "link": {
                "rate": f"{round(RATE_BPS)}bps",
                "delay": "4ms",
                "queue": {
                    "scheduler": "priority",
                    "queues": [queue(priority) for priority in range(PRIORITIES)],
                },
            },
        },
        "flows": [flow(priority) for priority in range(PRIORITIES)],
    }


def measured(neighbors: Sequence[Sequence[int]], threads: int, repeat: int) -> list[str]:
    """A row of the table: packet-hops by marginal wall time; the long run's time and memory."""
    rates, seconds, peaks, hops = [], [], [], []
    for seed in range(1, repeat + 1):
        short, long = (
            engine.run(scenario(neighbors, span), seed, threads).answer for span in (SPAN.short, SPAN.long)
        )
        rates.append((long.packet_hops - short.packet_hops) / (long.seconds - short.seconds))
        seconds.append(long.seconds)
        peaks.append(long.peak_bytes / 1e6)
        hops.append(long.packet_hops / 1e6)
    return [
        f"perhop, threads: {threads}",
        f"{Spread.of(hops).median:.1f}",
        Spread.of(seconds).text(),
        Spread.of(rates).text(1e-6, 2),
        f"{Spread.of(peaks).median:.0f}",
    ]


def published(name: str, hops: float) -> list[str]:
    """A row of the published figures, with packet-hops by the mean length of paths."""
    packet_hops = hops * ARRIVED / (1 - NOT_ARRIVED)
    rate = packet_hops / SECONDS[name]
    return [
        f"{name}, published ({EVENTS[name] / 1e6:.1f} million events)",
        f"about {packet_hops / 1e6:.1f}",
        f"{SECONDS[name]:g}",
        f"about {rate / 1e6:.2g}",
        "",
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs and prints."""
    parser = argparse.ArgumentParser(
        prog="python -m benches.quaint", description="perhop on Quaint's network."
    )
    parser.add_argument("graph", type=Path, help="graph-for-metis.txt of Quaint's experiment-utils")
    parser.add_argument("--repeat", type=int, default=3, help="repetitions, each with its own seed")
    parser.add_argument("--threads", type=int, nargs="+", default=[1], help="threads of a run")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    options = parser.parse_args(arguments)
    if missing := engine.missing():
        parser.error(missing)
    try:
        neighbors = read_graph(options.graph.read_text(encoding="ascii"))
    except (OSError, ValueError) as error:
        parser.error(f"{options.graph}: {error}")
    hops = mean_hops(neighbors)
    header = ("", "million packet-hops", "wall s", "million packet-hops a s", "memory, MB")
    rows = [measured(neighbors, threads, options.repeat) for threads in options.threads]
    rows += [published(name, hops) for name in SECONDS]
    print(f"{len(neighbors)} switches; from access switches to others {hops:.1f} hops in the mean")
    print(measuring.machine())
    print(measuring.table(header, rows, markdown=options.markdown))
    if options.json:
        named = [dict(zip(("program", *header[1:]), row, strict=True)) for row in rows]
        options.json.write_text(
            json.dumps({"mean_hops": hops, "rows": named}, indent=1) + "\n", encoding="utf-8"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
