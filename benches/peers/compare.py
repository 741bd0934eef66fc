"""How fast perhop is beside ns-2, ns-3 and csg-htsim on the same work: whole programs, one core, user CPU.

The settings (`settings.py`) are variations of the RI+O paper's Table 1: NewReno flows over RIO, and over RED
in ns-3, which has no RIO; and without profiles, over RED in all programs. csg-htsim has neither, and runs its
RandomQueue. The figure is the marginal cost of a simulated second,

    (user CPU of the long run - user CPU of the short run) / (their difference in simulated time),

so that no program's start-up counts. Runs are interleaved, and each repetition has its own seed, the same
for every program; costs are medians over the repetitions and ratios those of the medians, each with its
range over them. perhop runs with the probes of the study `kim-table1`, and once more with probes ten times a
second; the others run without traces. ns-2 runs with its defaults and, tuned, with its unused packet headers
removed and its fastest event queue, which changes no result. Programs that are not installed are named and
left out; the environment variable HTSIM says where csg-htsim is.

    python -m benches.peers.compare [--repeat 3] [--settings 40 400] [--instructions perhop] [--markdown]
                                    [--json FILE] [--at-least RATIO]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benches import measuring
from benches.measuring import Spread, marginal
from benches.peers import htsim, ns2, ns3, perhop_runner
from benches.peers.program import UnusableError
from benches.peers.settings import SETTINGS, Setting, Span
from tests.oracle import process

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benches.peers.program import Packets, Program

PERHOP = "perhop"
PROGRAMS = (
    perhop_runner.program(PERHOP, perhop_runner.study_probes()),
    perhop_runner.program("perhop, probes at 10 Hz", perhop_runner.OFTEN),
    ns2.program("ns-2", kind="ns-2", headers="all", scheduler="Calendar"),
    ns2.program("ns-2, tuned", kind="ns-2 tuned", headers="lean", scheduler="Splay"),
    ns3.program("ns-3 (RED)"),
    htsim.program("htsim (RandomQueue)"),
)
COUNTED = Span(5, 25)
"""Simulated seconds at 40 flows over which instructions are counted; fewer in proportion at more flows."""


@dataclass(slots=True)
class Marginals:
    """What one program did beyond its short runs: a value for each repetition.

    Attributes:
        seconds: User CPU for each simulated second.
        packets: User CPU for each packet that arrived at the bottleneck.
        use: Share of the bottleneck's rate that packets took.
        instructions: For each packet, or why they were not counted.
    """

    seconds: list[float] = field(default_factory=list)
    packets: list[float] = field(default_factory=list)
    use: list[float] = field(default_factory=list)
    instructions: float | str | None = None

    def add(
        self, setting: Setting, span: Span, short: tuple[float, Packets], long: tuple[float, Packets]
    ) -> None:
        """One repetition: (user CPU, packets) of both runs."""
        self.seconds.append(marginal((short[0], span.short), (long[0], span.long)))
        self.packets.append(marginal((short[0], short[1].arrived), (long[0], long[1].arrived)))
        rate = marginal((short[1].sent, span.short), (long[1].sent, span.long))
        self.use.append(rate * setting.network.packet_bytes * 8 / setting.network.rate_bps)


@dataclass(frozen=True, slots=True)
class Row:
    """One program on one setting, ready to be shown.

    Attributes:
        program: Its name.
        second: User CPU for each simulated second.
        packet: User CPU for each packet.
        use: Share of the bottleneck's rate, median.
        instructions: As in `Marginals`.
        ratio: How many times as fast perhop is, by repetition; None for perhop itself.
        wanted: How many times as fast it should be.
    """

    program: str
    second: Spread
    packet: Spread
    use: float
    instructions: float | str | None
    ratio: Spread | None
    wanted: float | None

    def cells(self) -> list[str]:
        """As tables show it."""
        ratio = "" if self.ratio is None else self.ratio.text()
        goal = ""
        if self.wanted is not None and self.ratio is not None:
            goal = f"≥ {self.wanted:g}: {measuring.verdict(holds=self.ratio.median >= self.wanted)}"
        count = f"{self.instructions:.0f}" if isinstance(self.instructions, float) else ""
        return [
            self.program,
            self.second.text(1e3, 3),
            f"{self.packet.median * 1e9:.0f}",
            count,
            f"{self.use * 100:.1f} %",
            ratio,
            goal,
        ]


HEADER = (
    "",
    "ms per simulated s",
    "ns per packet",
    "instructions",
    "link use",
    "perhop is faster by",
    "wanted",
)


def measure(
    setting: Setting, programs: Sequence[Program], folder: Path, seeds: Sequence[int]
) -> dict[str, Marginals]:
    """Marginal costs by program, from interleaved runs."""
    found = {program.name: Marginals() for program in programs}
    for seed in seeds:
        for program in programs:
            span = setting.spans[program.kind]
            short, long = (
                _run(program, setting, seconds, seed, folder) for seconds in (span.short, span.long)
            )
            found[program.name].add(setting, span, short, long)
    return found


def _run(
    program: Program, setting: Setting, seconds: float, seed: int, folder: Path
) -> tuple[float, Packets]:
    network = replace(setting.network, duration_s=seconds)
    cost = process.run(program.command(network, seed, folder))
    return cost.user_seconds, program.packets(cost.output, network)


def instructions(setting: Setting, program: Program, folder: Path) -> float | str:
    """Marginal instructions for each packet at the bottleneck, or why they cannot be counted here."""
    runs = []
    for seconds in (COUNTED.short, COUNTED.long):
        network = replace(setting.network, duration_s=seconds * 40 / setting.flows)
        try:
            counted = measuring.count_instructions(program.command(network, 1, folder))
        except measuring.CountError as error:
            return str(error)
        runs.append((float(counted.instructions), float(program.packets(counted.output, network).arrived)))
    return marginal(*runs)


def rows(setting: Setting, found: Mapping[str, Marginals], kinds: Mapping[str, str]) -> list[Row]:
    """The programs' figures, with ratios to the plain perhop of the same repetition."""
    plain = found[PERHOP].seconds
    return [
        Row(
            name,
            Spread.of(one.seconds),
            Spread.of(one.packets),
            Spread.of(one.use).median,
            one.instructions,
            None if kinds[name] == PERHOP else ratio(one.seconds, plain),
            setting.wanted.get(kinds[name]),
        )
        for name, one in found.items()
    ]


def ratio(theirs: Sequence[float], ours: Sequence[float]) -> Spread:
    """Ratio of the medians, which one disturbed run does not move, and the range of those by repetition."""
    each = [their / our for their, our in zip(theirs, ours, strict=True)]
    return replace(Spread.of(each), median=Spread.of(theirs).median / Spread.of(ours).median)


def as_json(setting: Setting, table: Sequence[Row]) -> dict[str, Any]:
    """A setting's figures for a machine to read; spreads are [median, low, high]."""

    def triple(spread: Spread | None) -> list[float] | None:
        return None if spread is None else [spread.median, spread.low, spread.high]

    return {
        "title": setting.title,
        "programs": {
            row.program: {
                "user_seconds_per_simulated_second": triple(row.second),
                "user_seconds_per_packet": triple(row.packet),
                "instructions_per_packet": row.instructions if isinstance(row.instructions, float) else None,
                "utilization": row.use,
                "perhop_is_faster_by": triple(row.ratio),
                "wanted": row.wanted,
            }
            for row in table
        },
    }


def compare(options: argparse.Namespace, folder: Path) -> Iterator[tuple[Setting, list[Row]]]:
    """Every chosen setting with its rows, as they are done; prints what cannot take part."""
    wanted = {kind for key in options.settings for kind in SETTINGS[key].spans}
    ready = []
    for program in (program for program in PROGRAMS if program.kind in wanted):
        if reason := program.prepare(folder):
            print(f"without {program.name}: {reason}")
        else:
            ready.append(program)
    if not any(program.name == PERHOP for program in ready):
        return
    for key in options.settings:
        setting = SETTINGS[key]
        programs = [program for program in ready if program.kind in setting.spans]
        found = measure(setting, programs, folder, range(1, options.repeat + 1))
        for program in programs:
            if options.instructions in {"all", program.name}:
                found[program.name].instructions = instructions(setting, program, folder)
        yield setting, rows(setting, found, {program.name: program.kind for program in programs})


def show(setting: Setting, table: Sequence[Row], *, markdown: bool) -> None:
    """Prints one setting."""
    print(f"\n### {setting.title}\n" if markdown else f"\n{setting.title}")
    print(measuring.table(HEADER, [row.cells() for row in table], markdown=markdown), flush=True)
    for row in table:
        if isinstance(row.instructions, str):
            print(f"instructions of {row.program} not counted: {row.instructions}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, prints, and fails if a ratio to ns-2 is below `--at-least`."""
    parser = argparse.ArgumentParser(
        description="marginal cost per simulated second, perhop beside ns-2, ns-3 and csg-htsim",
        epilog=f"csg-htsim: {htsim.MISSING}",
    )
    parser.add_argument("--repeat", type=int, default=3, help="repetitions, each with its own seed")
    parser.add_argument(
        "--settings", nargs="+", choices=SETTINGS, default=list(SETTINGS), help="which to run"
    )
    parser.add_argument(
        "--instructions",
        choices=("none", PERHOP, "all"),
        default=PERHOP,
        help="whose are counted, for each packet",
    )
    parser.add_argument("--markdown", action="store_true", help="print tables for docs/project/benchmarks.md")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    parser.add_argument(
        "--at-least", type=float, help="exit 1 if perhop is not this many times as fast as ns-2"
    )
    options = parser.parse_args(arguments)
    if options.repeat < 1:
        parser.error("--repeat must be at least 1")

    print(
        f"Marginal user CPU {measuring.stay_on_one_core()} ({measuring.machine()}),"
        f" median (range) of {options.repeat}"
    )
    done: dict[str, list[Row]] = {}
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        try:
            for setting, table in compare(options, Path(folder)):
                show(setting, table, markdown=options.markdown)
                done[setting.title] = table
                figures[setting.title] = as_json(setting, table)
        except UnusableError as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
    if not done:
        return 2
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    print()
    return summary(done, options.at_least)


def summary(done: Mapping[str, Sequence[Row]], at_least: float | None) -> int:
    """Prints one line for each wanted ratio; 1 if one to ns-2 is below `at_least`."""
    failed = 0
    for title, table in done.items():
        for row in table:
            if row.ratio is None or row.wanted is None:
                continue
            holds = measuring.verdict(holds=row.ratio.median >= row.wanted)
            print(
                f"{title}: {row.ratio.text()} times as fast as {row.program}, wanted {row.wanted:g}: {holds}"
            )
            if at_least is not None and row.program == "ns-2" and row.ratio.median < at_least:
                print(f"  below the {at_least:g} that were asked for")
                failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
