"""What congestion controls and applications in Python cost: twins of Reno and of `request-response`.

Both forms decide alike, so the difference between their times is the cost of the calls: one for each ACK of
new data outside recoveries, and three events for each exchange (request, response, timer). Figures are
marginal: those of a long run less those of a short one.

    python -m benches.python_ends [--repeat 3] [--instructions] [--markdown]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benches import engine, measuring
from benches.measuring import Spread, marginal
from tests.oracle import process

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ROOT = Path(__file__).parent.parent
SPANS = (20, 220)
COUNTED = (5, 25)
RUNNER = """\
import json, sys
sys.path.append(sys.argv[3])
from perhop import _engine
from perhop.scenario.warmup import from_the_beginning
text, _ = _engine.read_json(open(sys.argv[1]).read(), "benchmark")
raw = _engine.simulate(from_the_beginning(text), int(sys.argv[2]))
users = [one["measures"]["responses"] for one in raw["applications"]]
print(int(sum(users) if users else raw["flows"]["delivered_packets"].sum()))
"""
ENDS = {"from": "a", "to": "b"}
LINK = {**ENDS, "rate": "50Mbps", "delay": "10ms", "queue": {"aqm": "drop-tail", "limit": "200p"}}


def greedy(congestion: str) -> Callable[[int], dict[str, Any]]:
    """Ten flows over a link of 50 Mbit/s with this congestion control, for so many seconds."""
    flow = {"name": "tcp", "count": 10, **ENDS, "transport": {"tcp": "newreno", "congestion": congestion}}
    return lambda seconds: {"duration": f"{seconds}s", "links": {"l": LINK}, "flows": [flow]}


def users(model: str) -> Callable[[int], dict[str, Any]]:
    """A hundred users of requests and responses that fit into a packet."""
    flow = {
        "name": "users",
        "count": 100,
        **ENDS,
        "transport": {"tcp": "newreno", "packet": "1500B", "ack": "52B"},
        "application": {"model": model, "response": "1kB", "think": "100ms"},
    }
    return lambda seconds: {"duration": f"{seconds}s", "links": {"l": LINK}, "flows": [flow]}


@dataclass(frozen=True)
class Pair:
    """A block in both forms.

    Attributes:
        unit: What a run counts.
        forms: Scenarios by form.
    """

    unit: str
    forms: Mapping[str, Callable[[int], dict[str, Any]]]


MODULES = "tests.python.plugins"
PAIRS = (
    Pair("packet", {"Reno in Python": greedy(f"{MODULES}.controls:Reno"), "Reno, compiled": greedy("reno")}),
    Pair(
        "exchange",
        {
            "request-response in Python": users(f"{MODULES}.users:Client"),
            "request-response, compiled": users("request-response"),
        },
    ),
)


def command(scenario: Mapping[str, Any], seed: int, folder: Path) -> list[str]:
    """One run, which prints how many packets or exchanges it had."""
    place = folder / "scenario.json"
    place.write_text(json.dumps(scenario), encoding="utf-8")
    return [sys.executable, "-c", RUNNER, str(place), str(seed), str(ROOT)]


def seconds_each(form: Callable[[int], dict[str, Any]], seed: int, folder: Path) -> float:
    """Marginal user CPU for each packet or exchange."""
    short, long = (process.run(command(form(span), seed, folder)) for span in SPANS)
    return marginal((short.user_seconds, int(short.output)), (long.user_seconds, int(long.output)))


def instructions_each(form: Callable[[int], dict[str, Any]], folder: Path) -> float:
    """Marginal instructions for each packet or exchange.

    Raises:
        CountError: They cannot be counted here.
    """
    short, long = (measuring.count_instructions(command(form(span), 1, folder)) for span in COUNTED)
    return marginal(
        (float(short.instructions), float(short.output)), (float(long.instructions), float(long.output))
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description="what congestion controls and applications in Python cost")
    parser.add_argument("--repeat", type=int, default=3, help="repetitions, each with its own seed")
    parser.add_argument("--instructions", action="store_true", help="count instructions, too")
    parser.add_argument("--markdown", action="store_true", help="print tables for docs/project/benchmarks.md")
    options = parser.parse_args(arguments)
    if options.repeat < 1:
        parser.error("--repeat must be at least 1")
    if why := engine.missing():
        parser.error(why)
    print(f"Marginal user CPU {measuring.stay_on_one_core()} ({measuring.machine()}), median (range)")
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for pair in PAIRS:
            for form, scenario in pair.forms.items():
                costs = [seconds_each(scenario, seed, folder) for seed in range(1, options.repeat + 1)]
                counted = "-"
                if options.instructions:
                    try:
                        counted = f"{instructions_each(scenario, folder):,.0f}"
                    except measuring.CountError as error:
                        print(f"instructions of {form} not counted: {error}")
                rows.append([form, f"for each {pair.unit}", Spread.of(costs).text(1e9, 0), counted])
    print(measuring.table(["block", "", "ns", "instructions"], rows, markdown=options.markdown))
    return 0


if __name__ == "__main__":
    sys.exit(main())
