"""What a rule in Python costs: BLUE of `examples/my_aqm.py` beside the compiled one, and beside ns-2.

The setting is the RI+O paper's Table 1 (`peers/settings.py`), with the rule in place of RIO; ns-2 runs its
own RED with two drop precedences, which is C++. Figures are marginal: those of a long run less those of a
short one. The cost of a call is the difference between both forms of BLUE for each packet at the bottleneck:
they decide alike packet by packet.

    python -m benches.python_blocks [--repeat 3] [--instructions] [--markdown] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benches import engine, measuring
from benches.measuring import Spread, marginal
from benches.peers import ns2, perhop_runner
from benches.peers.program import Packets, Program
from benches.peers.settings import SETTINGS, Span
from tests.oracle import process

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.oracle.ns2 import Ns2Setting

EXAMPLES = Path(__file__).parent.parent / "examples"
RUNNER = """\
import json, sys
sys.path.append(sys.argv[3])
from perhop import _engine
from perhop.scenario.warmup import from_the_beginning
text = from_the_beginning(_engine.read_json(open(sys.argv[1]).read(), "benchmark")[0])
link = next(one for one in _engine.simulate(text, int(sys.argv[2]))["links"] if one["name"] == "bottleneck")
print(json.dumps([int(link["arrived"].sum()), int(link["sent"].sum())]))
"""
PYTHON, COMPILED, NS2 = "BLUE in Python", "BLUE, compiled", "ns-2, its own RED"
SPANS = {PYTHON: Span(50, 450), COMPILED: Span(50, 850), NS2: Span(50, 150)}
COUNTED = Span(5, 15)
WANTED = 1.0
"""A rule in Python is to be at least as fast as ns-2."""


def program(name: str, rule: Mapping[str, Any]) -> Program:
    """The engine with this rule at the bottleneck."""

    def command(network: Ns2Setting, seed: int, folder: Path) -> list[str]:
        place = folder / "scenario.json"
        place.write_text(json.dumps(scenario(network, rule)), encoding="utf-8")
        return [sys.executable, "-c", RUNNER, str(place), str(seed), str(EXAMPLES)]

    def packets(output: str, _: Ns2Setting) -> Packets:
        return Packets(*json.loads(output))

    return Program(name, "perhop", lambda _: engine.missing(), command, packets)


def scenario(network: Ns2Setting, rule: Mapping[str, Any]) -> dict[str, Any]:
    """Table 1 with another rule, and room for as many packets."""
    table: dict[str, Any] = perhop_runner.scenario(network, {})
    link = table["links"]["bottleneck"]
    link["queue"] = {**rule, "limit": f"{network.limit_packets}p"}
    return table


PROGRAMS = (
    program(PYTHON, {"aqm": "my_aqm:MyBlue"}),
    program(COMPILED, {"aqm": "blue"}),
    ns2.program(NS2, kind="ns-2", headers="all", scheduler="Calendar"),
)


@dataclass(slots=True)
class Costs:
    """What one program did beyond its short runs: a value for each repetition.

    Attributes:
        packet_s: User CPU for each packet that arrived at the bottleneck.
        second_s: The same for each simulated second.
        instructions: For each packet, if they were counted.
    """

    packet_s: list[float] = field(default_factory=list)
    second_s: list[float] = field(default_factory=list)
    instructions: float | None = None


def measure(programs: Sequence[Program], repeat: int, folder: Path) -> dict[str, Costs]:
    """Marginal costs by program, from interleaved runs."""
    network = SETTINGS["40"].network
    found = {one.name: Costs() for one in programs}
    for seed in range(1, repeat + 1):
        for one in programs:
            span = SPANS[one.name]
            runs = []
            for seconds in (span.short, span.long):
                setting = replace(network, duration_s=seconds)
                cost = process.run(one.command(setting, seed, folder))
                runs.append((cost.user_seconds, one.packets(cost.output, setting).arrived, seconds))
            (short_s, short, _), (long_s, long, _) = runs
            found[one.name].packet_s.append(marginal((short_s, short), (long_s, long)))
            found[one.name].second_s.append(marginal((short_s, span.short), (long_s, span.long)))
    return found


def count(one: Program, folder: Path) -> float:
    """Marginal instructions for each packet at the bottleneck.

    Raises:
        CountError: They cannot be counted here.
    """
    runs = []
    for seconds in (COUNTED.short, COUNTED.long):
        setting = replace(SETTINGS["40"].network, duration_s=seconds)
        counted = measuring.count_instructions(one.command(setting, 1, folder))
        runs.append((float(counted.instructions), float(one.packets(counted.output, setting).arrived)))
    return marginal(*runs)


def rows(found: Mapping[str, Costs]) -> list[list[str]]:
    """The table's lines."""
    python = Spread.of(found[PYTHON].second_s).median
    return [
        [
            name,
            Spread.of(costs.packet_s).text(1e9, 0),
            "-" if costs.instructions is None else f"{costs.instructions:,.0f}",
            f"{Spread.of(costs.second_s).median / python:.2f}",
        ]
        for name, costs in found.items()
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description="what a rule in Python costs")
    parser.add_argument("--repeat", type=int, default=3, help="repetitions, each with its own seed")
    parser.add_argument("--instructions", action="store_true", help="count instructions, too")
    parser.add_argument("--markdown", action="store_true", help="print tables for docs/project/benchmarks.md")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    options = parser.parse_args(arguments)
    if options.repeat < 1:
        parser.error("--repeat must be at least 1")
    print(f"Marginal user CPU {measuring.stay_on_one_core()} ({measuring.machine()}), median (range)")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ready = []
        for one in PROGRAMS:
            if reason := one.prepare(folder):
                print(f"without {one.name}: {reason}")
            else:
                ready.append(one)
        found = measure(ready, options.repeat, folder)
        for one in ready if options.instructions else ():
            try:
                found[one.name].instructions = count(one, folder)
            except measuring.CountError as error:
                print(f"instructions of {one.name} not counted: {error}")
    header = ["a rule at the bottleneck of Table 1", "ns a packet", "instructions", "time over Python's"]
    print(measuring.table(header, rows(found), markdown=options.markdown))
    call = Spread.of(found[PYTHON].packet_s).median - Spread.of(found[COMPILED].packet_s).median
    print(f"\na call of the class: {call * 1e9:.0f} ns")
    if NS2 in found:
        ratio = Spread.of(found[NS2].second_s).median / Spread.of(found[PYTHON].second_s).median
        holds = measuring.verdict(holds=ratio >= WANTED)
        print(f"{ratio:.1f} times as fast as ns-2, wanted {WANTED:g}: {holds}")
    if options.json:
        figures = {
            one: {"packet_s": costs.packet_s, "second_s": costs.second_s, "instructions": costs.instructions}
            for one, costs in found.items()
        }
        options.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
