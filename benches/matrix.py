"""What each transport costs over each discipline, as a ratio to NewReno over a FIFO with RED in the same run.

The network is that of the RI+O paper's Table 1: 40 flows at 20 Mbit/s, half of them with a profile. The
bottleneck's RED is blind to color and has the thresholds of OUT packets. Ten of the twenty best-effort flows
ask for the green service, which EDF, WFQ and DRR serve apart. Datagrams offer 110 % of the link. Costs are
marginal user CPU (`measuring.py`) for each simulated second and for each packet that arrives at the
bottleneck; runs are interleaved, each repetition has its own seed, and ratios are those of the medians.

Three tables: every transport over FIFO with RED, and NewReno over every discipline, each with the ratio that
is wanted; then every transport over every discipline. A star marks what the reference engine computed. The
fourth table has the programs that simulate the same features: ns-2 with the same sender, and ns-3 where it is
installed.

    python -m benches.matrix [--repeat 3] [--transports …] [--disciplines …] [--instructions] [--markdown]
                             [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benches import engine, measuring
from benches.measuring import Spread, marginal
from benches.peers import ns2, ns3
from benches.peers.compare import ratio
from benches.peers.settings import Span
from tests.oracle import process
from tests.oracle.ns2 import TABLE_1
from tests.oracle.scenario import perhop_scenario

from perhop import _engine

if TYPE_CHECKING:
    from benches.peers.program import Packets, Program
    from tests.oracle.ns2 import Ns2Setting

NETWORK = replace(TABLE_1, aqm="RED")
GREEN = 10
"""Best-effort flows that ask for the green service."""
OFFERED = 1.1
"""What datagrams offer, over the link's rate."""
DELAYED_ACK_S = 0.04
EDGE = Span(100, 1100)
"""Simulated seconds of a cell of the first two tables."""
INNER = Span(20, 270)
"""Of any other cell."""
COUNTED = Span(5, 25)
"""Over which instructions are counted."""

BASE = ("NewReno", "FIFO, RED")


@dataclass(frozen=True, slots=True)
class Transport:
    """What the flows are.

    Attributes:
        keys: Of the table `transport`, beside or instead of those of NewReno.
        alone: `keys` is the whole table; otherwise it changes that of NewReno as ns-2 has it.
        ecn: The flows' key `ecn`; None for flows that are not capable.
        wanted: The time for a packet over NewReno's, at most.
    """

    keys: Mapping[str, Any] = field(default_factory=dict)
    alone: bool = False
    ecn: str | None = None
    wanted: float | None = None

    def flow(self, entry: Mapping[str, Any], network: Ns2Setting) -> dict[str, Any]:
        """An entry of `flows` with this transport."""
        packet = f"{network.packet_bytes}B"
        table = {**self.keys, "packet": packet} if self.alone else {**entry["transport"], **self.keys}
        if "udp" in table:
            flows = sum(group.count for group in network.groups)
            table["rate"] = f"{round(OFFERED * network.rate_bps / flows)}bps"
        return {**entry, "transport": table, **({} if self.ecn is None else {"ecn": self.ecn})}


@dataclass(frozen=True, slots=True)
class Discipline:
    """What the bottleneck does.

    Attributes:
        queue: The link's table `queue`; `RED` is replaced by the AQM of `NETWORK`.
        wanted: The time for a packet over that of FIFO with RED, at most.
    """

    queue: Mapping[str, Any]
    wanted: float | None = None


RED = "RED"
"""Placeholder: replaced by the AQM of `NETWORK`."""
LIMIT = f"{NETWORK.limit_packets}p"
SHARES = [
    {"name": "green", "match": {"service": "green"}, "weight": 1, "rule": RED},
    {"name": "rest", "weight": 3, "rule": RED},
]
TRANSPORTS: Mapping[str, Transport] = {
    "NewReno": Transport(),
    "delayed ACK": Transport({"delayed-ack": f"{DELAYED_ACK_S * 1e3:g}ms"}, wanted=2),
    "SACK": Transport({"sack": True}, wanted=2),
    'tcp = "linux"': Transport({"tcp": "linux"}, alone=True, wanted=2),
    "ECN": Transport(ecn="classic", wanted=2),
    "paced": Transport({"pacing": "window"}, wanted=3),
    "BBR": Transport({"tcp": "linux", "congestion": "bbr"}, alone=True, wanted=3),
    "DCTCP": Transport({"tcp": "linux", "congestion": "dctcp"}, alone=True, ecn="accurate"),
    "Prague": Transport({"tcp": "linux", "congestion": "prague"}, alone=True, ecn="l4s", wanted=3),
    "RAP": Transport({"rap": "aimd"}, alone=True, wanted=3),
    "TFRC": Transport({"tfrc": "rfc5348"}, alone=True, wanted=3),
    "UDP": Transport({"udp": "cbr"}, alone=True),
}
DISCIPLINES: Mapping[str, Discipline] = {
    "FIFO, RED": Discipline({"rule": RED}),
    "EDF": Discipline({"scheduler": "edf", "blue": "100ms", "rule": RED}, wanted=2),
    "WFQ": Discipline({"scheduler": "wfq", "queues": SHARES}, wanted=2),
    "DRR": Discipline({"scheduler": "drr", "queues": SHARES}),
    "CoDel": Discipline({"rule": {"aqm": "codel", "limit": LIMIT}}, wanted=2),
    "PIE": Discipline({"rule": {"aqm": "pie", "limit": LIMIT}}, wanted=2),
    "FQ-CoDel": Discipline({"scheduler": "fq-codel", "limit": LIMIT}, wanted=2),
    "DualPI2": Discipline({"scheduler": "dualpi2", "limit": LIMIT}, wanted=2),
}


def scenario(transport: Transport, discipline: Discipline, seconds: float) -> dict[str, Any]:
    """A cell as perhop's scenario."""
    found = perhop_scenario(replace(NETWORK, duration_s=seconds))
    link = found["links"]["bottleneck"]
    red, marks = link["queue"], transport.ecn is not None
    table = _filled(discipline.queue, red, marks=marks)
    link["queue"] = table["rule"] if set(table) == {"rule"} else table
    *profiled, plain = found["flows"]
    green = {**plain, "name": "green", "count": GREEN, "service": "green"}
    rest = {**plain, "count": plain["count"] - GREEN}
    found["flows"] = [transport.flow(entry, NETWORK) for entry in (*profiled, green, rest)]
    return found


def _filled(table: Mapping[str, Any], red: Mapping[str, Any], *, marks: bool) -> dict[str, Any]:
    """A table of a queue with its AQMs in place, which mark where flows are capable."""

    def filled(value: Any) -> Any:  # noqa: ANN401 - whatever a table holds
        if value == RED:
            value = red
        if isinstance(value, Mapping):
            inner = {key: filled(one) for key, one in value.items()}
            return {**inner, "ecn": True} if "aqm" in inner and marks else inner
        return [filled(one) for one in value] if isinstance(value, list) else value

    return {key: filled(value) for key, value in table.items()}


@dataclass(slots=True)
class Cell:
    """What was measured of a transport over a discipline: a value for each repetition.

    Attributes:
        engine: Which engine computed it.
        seconds: User CPU for each simulated second.
        packets: User CPU for each packet at the bottleneck.
        use: Share of the bottleneck's rate that packets took.
        instructions: For each packet; None where they were not counted.
    """

    engine: str
    seconds: list[float] = field(default_factory=list)
    packets: list[float] = field(default_factory=list)
    use: list[float] = field(default_factory=list)
    instructions: float | None = None

    @property
    def mark(self) -> str:
        """A star where the reference engine computed it."""
        return "" if self.engine == "batched" else " *"


Found = dict[tuple[str, str], Cell]


def measure(names: Sequence[tuple[str, str]], seeds: Sequence[int]) -> Found:
    """All cells, by transport and discipline; runs are interleaved."""
    cancel = _engine.Cancel()
    found: Found = {}
    for name in names:
        text = json.dumps(scenario(TRANSPORTS[name[0]], DISCIPLINES[name[1]], EDGE.long))
        checked = _engine.scenario_from_json(text, "benchmark")
        found[name] = Cell(_engine.engine_for(checked, cancel)[0])
    for seed in seeds:
        for name, cell in found.items():
            span = span_of(name)
            short, long = (
                engine.run(scenario(TRANSPORTS[name[0]], DISCIPLINES[name[1]], seconds), seed)
                for seconds in (span.short, span.long)
            )
            cell.seconds.append(marginal((short.user_seconds, span.short), (long.user_seconds, span.long)))
            cell.packets.append(
                marginal((short.user_seconds, short.answer.arrived), (long.user_seconds, long.answer.arrived))
            )
            sent = marginal((short.answer.sent, span.short), (long.answer.sent, span.long))
            cell.use.append(sent * NETWORK.packet_bytes * 8 / NETWORK.rate_bps)
    return found


def span_of(name: tuple[str, str]) -> Span:
    """How long a cell is simulated."""
    return EDGE if name[0] == BASE[0] or name[1] == BASE[1] else INNER


def count(name: tuple[str, str]) -> float:
    """Marginal instructions for each packet at the bottleneck.

    Raises:
        measuring.CountError: They cannot be counted here.
    """
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        for seconds in (COUNTED.short, COUNTED.long):
            made = scenario(TRANSPORTS[name[0]], DISCIPLINES[name[1]], seconds)
            counted = measuring.count_instructions(engine.command(made, 1, Path(folder)))
            runs.append((float(counted.instructions), float(engine.answer(counted.output).arrived)))
    return marginal(*runs)


HEADER = ("ms per simulated s", "ns per packet", "instructions", "link use", "of NewReno over RED", "wanted")


def edge(found: Found, names: Mapping[str, float | None], key: int) -> tuple[list[list[str]], list[str]]:
    """A table of the cells that share a transport or a discipline with the base, and its verdicts.

    Args:
        found: All cells.
        names: What is listed, with the ratios that are wanted.
        key: The place of a name in a cell's: 0 for transports, 1 for disciplines.
    """
    base = found[BASE]
    rows, verdicts = [], []
    for name, wanted in names.items():
        cell = found[(name, BASE[1]) if key == 0 else (BASE[0], name)]
        found_ratio = ratio(cell.packets, base.packets)
        goal = ""
        if wanted is not None:
            verdict = measuring.verdict(holds=found_ratio.median <= wanted)
            goal = f"≤ {wanted:g}: {verdict}"
            verdicts.append(f"{name}: {found_ratio.text(1, 2)} times a packet of the base, wanted {goal}")
        rows.append(
            [
                name + cell.mark,
                Spread.of(cell.seconds).text(1e3, 3),
                f"{Spread.of(cell.packets).median * 1e9:.0f}",
                "" if cell.instructions is None else f"{cell.instructions:.0f}",
                f"{Spread.of(cell.use).median * 100:.1f} %",
                "1" if cell is base else found_ratio.text(1, 2),
                goal,
            ]
        )
    return rows, verdicts


def cross(found: Found, transports: Sequence[str], disciplines: Sequence[str]) -> list[list[str]]:
    """Every transport over every discipline: ns for a packet, and that over the base's."""
    base = Spread.of(found[BASE].packets).median
    rows = []
    for transport in transports:
        row = [transport]
        for discipline in disciplines:
            cell = found[transport, discipline]
            packet = Spread.of(cell.packets).median
            row.append(f"{packet * 1e9:.0f} ({packet / base:.1f}){cell.mark}")
        rows.append(row)
    return rows


@dataclass(frozen=True, slots=True)
class Peer:
    """Another program with the features of a transport.

    Attributes:
        program: Which.
        network: With the same features.
        transport: perhop's, over FIFO with RED.
        wanted: How many times as fast perhop is to be.
        span: Simulated seconds.
    """

    program: Program
    network: Ns2Setting
    transport: str
    span: Span
    wanted: float | None = None


def peers() -> dict[str, Peer]:
    """The programs beside perhop, by what they simulate."""
    plain = ns2.program("ns-2", kind="ns-2", headers="all", scheduler="Calendar")
    span = Span(50, 250)
    sack = replace(NETWORK, tcp="Sack1")
    return {
        "ns-2, NewReno": Peer(plain, NETWORK, "NewReno", span, 60),
        "ns-2, NewReno, delayed ACK": Peer(
            plain, replace(NETWORK, delayed_ack_s=DELAYED_ACK_S), "delayed ACK", span
        ),
        "ns-2, Sack1": Peer(plain, sack, "SACK", span),
        "ns-2, Sack1, delayed ACK": Peer(
            plain, replace(sack, delayed_ack_s=DELAYED_ACK_S), 'tcp = "linux"', span, 30
        ),
        "ns-3, NewReno, SACK": Peer(ns3.program("ns-3"), NETWORK, "SACK", Span(10, 30)),
        "ns-3, its default: CUBIC, SACK, delayed ACK": Peer(
            ns3.program("ns-3", tcp="ns3::TcpCubic"),
            replace(NETWORK, delayed_ack_s=DELAYED_ACK_S),
            'tcp = "linux"',
            Span(10, 30),
            400,
        ),
    }


def beside(found: Found, seeds: Sequence[int], folder: Path) -> tuple[list[list[str]], list[str], list[Any]]:
    """The other programs' costs, and how many times as fast perhop is; what is left out, with the reason."""
    rows, left_out, figures = [], [], []
    reasons: dict[str, str | None] = {}
    for name, peer in peers().items():
        if (peer.transport, BASE[1]) not in found:
            continue
        program = peer.program.name
        if program not in reasons:
            reasons[program] = peer.program.prepare(folder)
            if reasons[program] is not None:
                left_out.append(f"without {program}: {reasons[program]}")
        if reasons[program] is not None:
            continue
        costs = [_peer_cost(peer, seed, folder) for seed in seeds]
        ours = found[peer.transport, BASE[1]].packets
        faster = ratio([cost for _, cost in costs], ours)
        goal = ""
        if peer.wanted is not None:
            goal = f"≥ {peer.wanted:g}: {measuring.verdict(holds=faster.median >= peer.wanted)}"
        seconds, packet = (Spread.of(values) for values in zip(*costs, strict=True))
        rows.append(
            [name, seconds.text(1e3, 2), f"{packet.median * 1e9:.0f}", peer.transport, faster.text(), goal]
        )
        figures.append({"program": name, "transport": peer.transport, "seconds_per_packet": packet.median})
    return rows, left_out, figures


def _peer_cost(peer: Peer, seed: int, folder: Path) -> tuple[float, float]:
    """Marginal user CPU of a simulated second, and of a packet."""
    runs: list[tuple[float, Packets]] = []
    for seconds in (peer.span.short, peer.span.long):
        network = replace(peer.network, duration_s=seconds)
        cost = process.run(peer.program.command(network, seed, folder))
        runs.append((cost.user_seconds, peer.program.packets(cost.output, network)))
    (short, before), (long, after) = runs
    second = marginal((short, peer.span.short), (long, peer.span.long))
    return second, marginal((short, before.arrived), (long, after.arrived))


@dataclass(slots=True)
class Report:
    """The output: tables, and the verdicts that close it."""

    markdown: bool
    verdicts: list[str] = field(default_factory=list)

    def show(self, title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print a table."""
        print(f"\n### {title}\n" if self.markdown else f"\n{title}")
        print(measuring.table(header, rows, markdown=self.markdown), flush=True)

    def cells(self, found: Found, transports: Sequence[str], disciplines: Sequence[str]) -> None:
        """Print the tables of the cells."""
        names = {name: TRANSPORTS[name].wanted for name in (BASE[0], *transports)}
        rows, verdicts = edge(found, names, 0)
        self.show("Transports over FIFO with RED", ("", *HEADER), rows)
        names = {name: DISCIPLINES[name].wanted for name in (BASE[1], *disciplines)}
        rows, more = edge(found, names, 1)
        self.show("Disciplines under NewReno", ("", *HEADER), rows)
        self.verdicts += verdicts + more
        title = "Transports over disciplines: ns per packet (of NewReno over RED)"
        self.show(title, ("", *disciplines), cross(found, transports, disciplines))


def count_edges(found: Found) -> None:
    """Count the instructions of the cells of the first two tables, or say why that cannot be done."""
    try:
        for name, cell in found.items():
            if span_of(name) == EDGE:
                cell.instructions = count(name)
    except measuring.CountError as error:
        print(f"instructions not counted: {error}")


def as_json(found: Found) -> list[dict[str, Any]]:
    """All cells, for a machine to read."""
    return [
        {
            "transport": transport,
            "discipline": discipline,
            "engine": cell.engine,
            "user_seconds_per_simulated_second": cell.seconds,
            "user_seconds_per_packet": cell.packets,
            "instructions_per_packet": cell.instructions,
            "utilization": cell.use,
        }
        for (transport, discipline), cell in found.items()
    ]


def cells(transports: Sequence[str], disciplines: Sequence[str]) -> list[tuple[str, str]]:
    """The names of all cells, with those that the first two tables need."""
    wanted = [(transport, discipline) for discipline in disciplines for transport in transports]
    edges = [*((name, BASE[1]) for name in transports), *((BASE[0], name) for name in disciplines)]
    return list(dict.fromkeys([BASE, *edges, *wanted]))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description="the cost of a packet by transport and discipline")
    parser.add_argument("--repeat", type=int, default=3, help="repetitions, each with its own seed")
    parser.add_argument("--transports", nargs="+", choices=TRANSPORTS, default=list(TRANSPORTS))
    parser.add_argument("--disciplines", nargs="+", choices=DISCIPLINES, default=list(DISCIPLINES))
    parser.add_argument(
        "--instructions",
        action="store_true",
        help="count them for the first two tables (slow under valgrind)",
    )
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
        f" median (range) of {options.repeat}; * is the reference engine"
    )
    seeds = range(1, options.repeat + 1)
    found = measure(cells(options.transports, options.disciplines), seeds)
    if options.instructions:
        count_edges(found)
    report = Report(options.markdown)
    report.cells(found, options.transports, options.disciplines)
    with tempfile.TemporaryDirectory() as folder:
        rows, left_out, other = beside(found, seeds, Path(folder))
    if rows:
        header = ("", "ms per simulated s", "ns per packet", "perhop's", "perhop is faster by", "wanted")
        report.show("Other programs with the same features over RED", header, rows)
    print("\n" + "\n".join((*left_out, *report.verdicts)))
    if options.json is not None:
        figures = {"cells": as_json(found), "peers": other}
        options.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
