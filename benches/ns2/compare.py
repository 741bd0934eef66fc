"""How fast perhop is beside ns-2 on the same work: whole programs, one core, user CPU.

Both run RIO on the RI+O paper's Table 1 setting (40 NewReno flows, 20 Mbit/s, RTT 100 ms) with the same TCP
parameters, without traces or probes. The figure is the marginal cost of a simulated second,

    (user CPU of the long run - user CPU of the short run) / (their difference in simulated time),

so that neither program's start-up counts. Runs are interleaved, and each repetition has its own seed, the
same for every program; the printed cost is the median over the repetitions. ns-2 runs twice: with its
defaults, and with its unused packet headers removed and its fastest event queue, which changes no result.

    python benches/ns2/compare.py [--repeat 5] [--short 100] [--long 1000] [--json FILE] [--at-least RATIO]
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.oracle import ns2
from tests.oracle.scenario import perhop_scenario

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# Reads the scenario and the seed, says how many packets went through the bottleneck.
PERHOP = """
import json, sys
from perhop import _engine
scenario = _engine.scenario_from_json(sys.argv[1], "ns2-comparison")
result = _engine.simulate(scenario, int(sys.argv[2]))
bottleneck = next(link for link in result["links"] if link["name"] == "bottleneck")
print(int(bottleneck["arrived"].sum()))
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """User CPU of one program run, and the packets that arrived at its bottleneck."""

    user_seconds: float
    packets: int


@dataclass(frozen=True, slots=True)
class Marginal:
    """What one more simulated second costs: medians over the repetitions, in seconds of user CPU."""

    name: str
    second: float
    packet: float
    spread: tuple[float, float]


def run_ns2(setting: ns2.Ns2Setting, seed: int) -> Cost:
    """One run of ns-2."""
    run = ns2.run(setting, seed)
    return Cost(run.user_seconds, sum(point.arrived for point in run.queue.values()))


def run_perhop(setting: ns2.Ns2Setting, seed: int) -> Cost:
    """One run of perhop in a process of its own.

    Raises:
        RuntimeError: The child failed; its complaint has been printed.
    """
    command = [sys.executable, "-c", PERHOP, json.dumps(perhop_scenario(setting)), str(seed)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        answer = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"perhop ended with {process.returncode}")
    return Cost(usage.ru_utime, int(answer))


def measure(
    programs: dict[str, tuple[Callable[[ns2.Ns2Setting, int], Cost], ns2.Ns2Setting]],
    *,
    short_s: float,
    long_s: float,
    repeat: int,
) -> list[Marginal]:
    """Marginal cost of each program, from interleaved runs."""
    seconds: dict[str, list[float]] = {name: [] for name in programs}
    packets: dict[str, list[float]] = {name: [] for name in programs}
    for seed in range(1, repeat + 1):
        for name, (run, setting) in programs.items():
            short = run(replace(setting, duration_s=short_s), seed)
            long = run(replace(setting, duration_s=long_s), seed)
            cost = long.user_seconds - short.user_seconds
            seconds[name].append(cost / (long_s - short_s))
            packets[name].append(cost / (long.packets - short.packets))
    return [
        Marginal(
            name,
            statistics.median(seconds[name]),
            statistics.median(packets[name]),
            (min(seconds[name]), max(seconds[name])),
        )
        for name in programs
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, prints, and fails if the ratio is below `--at-least`."""
    parser = argparse.ArgumentParser(description="marginal cost per simulated second, perhop beside ns-2")
    parser.add_argument("--repeat", type=int, default=5, help="repetitions, each with its own seed")
    parser.add_argument("--short", type=float, default=100.0, help="simulated seconds of the short run")
    parser.add_argument("--long", type=float, default=1000.0, help="simulated seconds of the long run")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    parser.add_argument("--at-least", type=float, help="exit 1 if perhop is not this many times as fast")
    options = parser.parse_args(arguments)
    if options.repeat < 1 or not 0 < options.short < options.long:
        parser.error("--repeat must be at least 1, and 0 < --short < --long")
    if reason := ns2.available():
        print(f"skipped: {reason}")
        return 0
    if importlib.util.find_spec("perhop") is None or importlib.util.find_spec("perhop._engine") is None:
        print(f"error: perhop is not installed for {sys.executable}", file=sys.stderr)
        return 2

    setting = ns2.TABLE_1
    costs = measure(
        {
            "ns-2, its defaults": (run_ns2, replace(setting, headers="all")),
            "ns-2, tuned": (run_ns2, replace(setting, headers="lean", scheduler="Splay")),
            "perhop": (run_perhop, setting),
        },
        short_s=options.short,
        long_s=options.long,
        repeat=options.repeat,
    )
    *others, perhop = costs
    print(
        f"RIO, Table 1 setting, {sum(group.count for group in setting.groups)} flows:"
        f" marginal user CPU between {options.short:g} and {options.long:g} simulated seconds,"
        f" median of {options.repeat}"
    )
    print(f"{'':20} {'ms per simulated s':>22} {'ns per packet':>14} {'perhop is faster by':>20}")
    for cost in costs:
        low, high = cost.spread
        span = f"{cost.second * 1e3:.3f} ({low * 1e3:.3f}..{high * 1e3:.3f})"
        ratio = "" if cost is perhop else f"{cost.second / perhop.second:.1f} times"
        print(f"{cost.name:20} {span:>22} {cost.packet * 1e9:14.0f} {ratio:>20}")
    if options.json:
        figures = {
            cost.name: {
                "user_seconds_per_simulated_second": cost.second,
                "user_seconds_per_packet": cost.packet,
                "ratio_to_perhop": cost.second / perhop.second,
            }
            for cost in costs
        }
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    ratio_to_defaults = others[0].second / perhop.second
    if options.at_least is not None and ratio_to_defaults < options.at_least:
        print(f"perhop is {ratio_to_defaults:.1f} times as fast as ns-2, below {options.at_least:g}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
