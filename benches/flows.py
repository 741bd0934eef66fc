"""Short flows that come and go: what each costs in perhop and in ns-2, and a run of a million over 1 Gbit/s.

The first table is marginal user CPU for each flow (`measuring.py`): a run of many transfers less one of few,
over the setting of `tests/oracle/finite.py`, on the same arrivals in both programs. perhop frees what a flow
took once it is over; ns-2's script keeps an agent for each. The second run is whole: flows of 8 kB that fill
70 % of 1 Gbit/s.

    python -m benches.flows [--repeat 3] [--markdown] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from benches import engine, measuring
from benches.measuring import Spread, marginal
from tests.oracle import finite, ns2, process

FEW, MANY = 1000, 4000
"""Transfers of a short run and of a long one."""
MILLION = 1_000_000
RATE = 11_000
"""Flows a second: 5.6 packets of 1500 bytes each, with headers, on a link of 1 Gbit/s."""


def setting(flows: int) -> finite.Setting:
    """So many transfers at a load of 0.6."""
    return replace(finite.SETTINGS["NewReno, drop-tail"], flows=flows, duration=150 * flows // FEW)


def population(flows: int) -> dict[str, Any]:
    """The transfers of `setting` as one population, each of as many packets."""
    one = setting(flows)
    scenario = finite.perhop_scenario(one, 1)
    payload = 1000 - 40
    listed = [[f"{start:.6f}s", f"{volume * payload}B"] for start, volume in one.transfers(1)]
    group = {
        key: value for key, value in scenario["flows"][0].items() if key not in {"start", "volume", "name"}
    }
    return {**scenario, "flows": [{**group, "name": "transfers", "arrivals": {"list": listed}}]}


def million() -> dict[str, Any]:
    """A million flows of 8 kB over a link of 1 Gbit/s."""
    link = {
        "from": "servers",
        "to": "clients",
        "rate": "1Gbps",
        "delay": "5ms",
        "queue": {"aqm": "drop-tail", "limit": "1000p"},
    }
    group = {
        "name": "short",
        "from": "servers",
        "to": "clients",
        "transport": {"tcp": "newreno", "sack": True, "initial-window": "10p", "packet": "1500B"},
        "arrivals": {"rate": f"{RATE}/s"},
        "sizes": {"constant": "8kB"},
    }
    return {"duration": f"{MILLION // RATE}s", "links": {"bottleneck": link}, "flows": [group]}


def perhop_seconds() -> float:
    """User CPU of a flow in perhop."""
    few, many = (engine.run(population(flows), 1).user_seconds for flows in (FEW, MANY))
    return marginal((few, FEW), (many, MANY))


def ns2_seconds() -> float:
    """User CPU of a flow in ns-2.

    Raises:
        process.RunError: ns-2 refused the setting or failed.
    """
    costs = [
        process.run(["ns", str(finite.SCRIPT), *finite.arguments(setting(flows), 1)]).user_seconds
        for flows in (FEW, MANY)
    ]
    return marginal((costs[0], FEW), (costs[1], MANY))


def main() -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeat", type=int, default=3, help="runs of each program")
    parser.add_argument("--markdown", action="store_true", help="tables for docs/project/benchmarks.md")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    asked = parser.parse_args()
    if why := engine.missing():
        print(why)
        return 2
    print(f"{measuring.machine()}, {measuring.stay_on_one_core()}, {asked.repeat} runs each\n")
    rows = {"perhop": Spread.of([perhop_seconds() for _ in range(asked.repeat)])}
    if why := ns2.available():
        print(f"ns-2 is not measured: {why}\n")
    else:
        rows["ns-2"] = Spread.of([ns2_seconds() for _ in range(asked.repeat)])
    ratio = {name: f"{spread.median / rows['perhop'].median:.0f}" for name, spread in rows.items()}
    header = ["transfers of 5 to 500 packets", "µs for each flow", "over perhop"]
    lines = [[name, spread.text(1e6), ratio[name]] for name, spread in rows.items()]
    print(measuring.table(header, lines, markdown=asked.markdown), "\n", sep="")
    runs = [engine.run(million(), 1) for _ in range(asked.repeat)]
    seconds = Spread.of([run.user_seconds for run in runs])
    memory = Spread.of([run.answer.peak_bytes for run in runs])
    whole = [[f"{MILLION:,}", seconds.text(), memory.text(1e-6)]]
    header = ["flows of 8 kB over 1 Gbit/s", "s, user CPU", "MB at most"]
    print(measuring.table(header, whole, markdown=asked.markdown))
    if asked.json:
        found = {name: spread.median for name, spread in rows.items()}
        million_run = {"seconds": seconds.median, "bytes": memory.median}
        asked.json.write_text(json.dumps({"seconds_a_flow": found, "million": million_run}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
