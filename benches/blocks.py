"""What every meter, AQM and scheduler costs: instructions and time a packet, and the state that it keeps.

The program is the bench `blocks` of `perhop-core`. Callgrind counts instructions, the same in every run;
times are medians over turns of all rows, and ratios are those of medians in the same run. Both are without
the loop around the block. A queue's packet is enqueued, judged and dequeued where 50 packets wait, half of
them green; a meter's flow sends twice its profile.

What TWAM and dynamic WRED do once an interval is spread over the packets of a round trip in Bouras &
Sevasti's network. `--write` records the instructions, not the times, for the claims about overhead.

    python -m benches.blocks [--samples 101] [--write] [--markdown] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import math
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benches import measuring
from benches.measuring import CountError
from tests.oracle import process

ROOT = Path(__file__).parent.parent
RECORDED = ROOT / "python" / "perhop" / "studies" / "costs.toml"
BUILD = ("cargo", "bench", "--locked", "--package", "perhop-core", "--bench", "blocks", "--no-run")
MEASURED = "blocks::work::measured"
"""The function in which the program does the work of one row at a time."""
LOOPS = {"meter": "meter", "aqm": "queue", "scheduler": "queue", "path": "path"}
"""By role, that of the row that does nothing in the same loop."""
COLORS = ("green", "yellow")
SPREAD = (150, 750)
"""Packets of an interval: 30 Mbit/s, packets of 1000 bytes, round trips of 40 and 200 ms."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one unit of work costs, without the loop around it.

    Attributes:
        instructions: That Callgrind counted; not a number where it was not asked.
        ns: Median over turns.
        state: Bytes that the block keeps, for a meter, an AQM or a path.
        kept: For an AQM: the averages and the sets of thresholds that it keeps.
    """

    instructions: float
    ns: float
    state: int | None
    kept: tuple[int, int] | None


Costs = Mapping[tuple[str, str], Cost]
"""By role and row."""


def build() -> Path:
    """Compiles the program, with all optimization.

    Raises:
        RunError: It does not compile here.
    """
    output = process.run([*BUILD, "--message-format=json"]).output
    built = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    programs = [one["executable"] for one in built if one.get("executable")]
    if not programs:
        raise process.RunError("cargo names no program")
    return Path(programs[-1])


def measure(program: Path, samples: int, *, counts: bool) -> Costs:
    """All rows of the program, in their order.

    Raises:
        CountError: Instructions cannot be counted here.
    """
    rows = _rows([str(program), "costs", str(samples)])
    totals: Sequence[float] = count(program) if counts else [math.nan] * len(rows)
    raw = {
        (row["role"], row["name"]): Cost(
            total / row["units"],
            measuring.Spread.of(row["ns"]).median,
            row["state"],
            None if row["kept"] is None else tuple(row["kept"]),
        )
        for row, total in zip(rows, totals, strict=True)
    }
    return {key: _without_loop(key, cost, raw) for key, cost in raw.items() if key[1] != "nothing"}


def _rows(command: Sequence[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in process.run(command).output.splitlines()]


def _without_loop(key: tuple[str, str], cost: Cost, raw: Costs) -> Cost:
    role, name = key
    if role not in LOOPS or "interval" in name:
        return cost
    loop = raw[LOOPS[role], "nothing"]
    return replace(cost, instructions=cost.instructions - loop.instructions, ns=cost.ns - loop.ns)


def count(program: Path) -> list[int]:
    """Instructions of each row.

    Raises:
        CountError: Valgrind is not installed, or does not count here.
    """
    if shutil.which("valgrind") is None:
        raise CountError("`valgrind` is not installed")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "row"
        options = [f"--toggle-collect={MEASURED}", f"--dump-after={MEASURED}"]
        silent = [f"--log-file={folder}/log", f"--callgrind-out-file={place}"]
        try:
            process.run(["valgrind", "--tool=callgrind", *options, *silent, str(program), "costs", "1"])
        except process.RunError as error:
            raise CountError(str(error)) from error
        parts = sorted(Path(folder).glob("row.*"), key=lambda part: int(part.suffix[1:]))
        found = [re.search(r"^totals: (\d+)$", part.read_text(), re.MULTILINE) for part in parts]
    return [int(one[1]) for one in found if one is not None]


# ---------------------------------------------------------------- tables
def meters(costs: Costs) -> list[list[str]]:
    """Rows of all meters, with ratios to the token bucket."""
    rows = {name: cost for (role, name), cost in costs.items() if role == "meter"}
    base = rows["token-bucket"]
    return [
        [name, *_beside(cost, base), _counted(rows[f"{name}, green"].instructions), f"{cost.state}"]
        for name, cost in rows.items()
        if "," not in name
    ]


def aqms(costs: Costs) -> list[list[str]]:
    """Rows of all AQMs, with ratios to drop-tail, and what a packet of each color takes."""
    rows = {name: cost for (role, name), cost in costs.items() if role == "aqm"}
    base = rows["drop-tail"]
    table = []
    for name, cost in rows.items():
        if "," in name or cost.kept is None:
            continue
        colors = [_counted(rows[f"{name}, {color}"].instructions) for color in COLORS]
        kept = "+".join(str(number) for number in cost.kept)
        table.append([name, *_beside(cost, base), *colors, kept, f"{cost.state}"])
    return table


def schedulers(costs: Costs) -> list[list[str]]:
    """Rows of all schedulers, with ratios to the FIFO."""
    rows = {name: cost for (role, name), cost in costs.items() if role == "scheduler"}
    return [[name, *_beside(cost, rows["fifo"])] for name, cost in rows.items()]


def _beside(cost: Cost, base: Cost) -> list[str]:
    ratio = cost.instructions / base.instructions
    times = [f"{cost.ns:.1f}", f"{cost.ns / base.ns:.2f}"]
    return [_counted(cost.instructions), _counted(ratio, 2), *times]


def _counted(number: float, digits: int = 0) -> str:
    return "-" if math.isnan(number) else f"{number:.{digits}f}"


def windows(costs: Costs) -> list[list[str]]:
    """TWAM beside the time sliding window, and dynamic WRED beside WRED that spares green packets, too."""
    mark, tsw = costs["meter", "twam"], costs["meter", "tsw"]
    interval, watch = costs["path", "interval of 10 flows"], costs["path", "watched packet"]
    static, dynamic = costs["aqm", "wred out"], costs["aqm", "dwred"]
    update = costs["dwred", "update of 1 paths"]
    lines: list[tuple[str, Sequence[tuple[Cost, float]], Cost]] = [
        ("tsw: marking a packet", [(tsw, 1)], tsw),
        ("  of a flow within its profile", [(costs["meter", "tsw, green"], 1)], tsw),
        ("  by the deterministic rule", [(costs["meter", "tsw deterministic"], 1)], tsw),
        ("twam: marking a packet", [(mark, 1)], tsw),
        ("  with a probability of 1", [(costs["meter", "twam, green"], 1)], tsw),
        ("  an interval of ten flows", [(interval, 1)], tsw),
        *(
            (f"  both, {packets} packets an interval", [(mark, 1), (interval, 1 / packets)], tsw)
            for packets in SPREAD
        ),
        ("  watching a packet and its ACK", [(watch, 1)], tsw),
        *(
            (f"  all three, {packets} packets", [(mark, 1), (interval, 1 / packets), (watch, 1)], tsw)
            for packets in SPREAD
        ),
        ("wred, green spared: a packet", [(static, 1)], static),
        ("dwred: a packet", [(dynamic, 1)], static),
        ("  an update", [(update, 1)], static),
        *(
            (f"  both, {packets} packets an interval", [(dynamic, 1), (update, 1 / packets)], static)
            for packets in SPREAD
        ),
    ]
    return [[text, *_beside(_sum(parts), base)] for text, parts, base in lines]


def _sum(parts: Sequence[tuple[Cost, float]]) -> Cost:
    instructions = sum(cost.instructions * times for cost, times in parts)
    return Cost(instructions, sum(cost.ns * times for cost, times in parts), None, None)


# ---------------------------------------------------------------- the record
Entry = dict[str, float]
"""The figures that the record keeps of a row, by key."""


def record(costs: Costs) -> dict[str, dict[str, Entry]]:
    """Instructions and bytes by role and row, as they are written."""
    found: dict[str, dict[str, Entry]] = {"meter": {}, "aqm": {}, "scheduler": {}}
    for role, name in costs:
        if role in found and "," not in name:
            found[role][name.replace(" ", "-")] = _entry(role, name, costs)
    ten, twenty = (costs["path", f"interval of {flows} flows"] for flows in (10, 20))
    one, sixteen = (costs["dwred", f"update of {paths} paths"] for paths in (1, 16))
    marker = _state(costs["meter", "twam"])
    member = (_state(twenty) - _state(ten)) // 10
    found["meter"]["twam"] |= {
        "instructions_per_interval": _tenth(ten),
        "instructions_per_interval_of_20_flows": _tenth(twenty),
        "instructions_per_watched_packet": _tenth(costs["path", "watched packet"]),
        "state_bytes_per_flow": marker + member,
        "state_bytes_per_marker": marker,
        "state_bytes_per_path": _state(ten) - 10 * member,
    }
    found["aqm"]["dwred"] |= {
        "instructions_per_update": _tenth(one),
        "instructions_per_update_of_16_paths": _tenth(sixteen),
        "state_bytes_per_path": (_state(sixteen) - _state(costs["aqm", "dwred"])) // 16,
    }
    return found


def _entry(role: str, name: str, costs: Costs) -> Entry:
    cost = costs[role, name]
    entry: Entry = {"instructions_per_packet": _tenth(cost)}
    for color in COLORS:
        if (alone := costs.get((role, f"{name}, {color}"))) is not None:
            entry[f"instructions_per_{color}_packet"] = _tenth(alone)
    if cost.kept is not None:
        entry["averages"], entry["threshold_sets"] = cost.kept
    if cost.state is not None:
        entry["state_bytes_per_flow" if role == "meter" else "state_bytes_per_queue"] = cost.state
    return entry


def _tenth(cost: Cost) -> float:
    return round(cost.instructions, 1)


def _state(cost: Cost) -> int:
    assert cost.state is not None
    return cost.state


HEADER = """\
# What each block costs: instructions a packet and bytes of state. `python -m benches.blocks --write` counts
# them with Valgrind and writes this file. Cargo's profile `bench`: all optimization, for any processor of the
# target. Instructions are without the loop around the block.
#
# A meter's flow sends twice its profile, so that half of its packets are green; for `green`, half of its
# profile. An AQM's packet is enqueued, judged and dequeued in a FIFO in which 50 packets wait; half of the
# packets are green, or all of the color that a key names. `averages` and `threshold_sets` are those that the
# AQM keeps, for a color or for all.
#
# An interval of TWAM is of ten flows: it reads their windows, computes equation 3, informs ten markers.
# A watched packet is one that the ingress notes, with its acknowledgement, to measure the round trip. State
# of a flow is its marker's and what the ingress keeps of its window. An update of dynamic WRED is a message
# of one path. No random stream is in the state: 32 bytes for each marker or queue that draws.
"""


def toml(found: Mapping[str, Mapping[str, Mapping[str, float]]], tools: Mapping[str, str]) -> str:
    """The file's text."""
    lines = [HEADER, "[tools]", *(f'{key} = "{value}"' for key, value in tools.items())]
    for role, rows in found.items():
        for name, entry in rows.items():
            lines += ["", f"[{role}.{name}]", *(f"{key} = {value}" for key, value in entry.items())]
    return "\n".join(lines) + "\n"


def tools() -> dict[str, str]:
    """What compiled and what counted."""
    compiler = process.run(["rustc", "--version", "--verbose"]).output
    counter = process.run(["valgrind", "--version"]).output
    host = re.search(r"^host: (\S+)$", compiler, re.MULTILINE)
    release = re.search(r"^release: (\S+)$", compiler, re.MULTILINE)
    assert host is not None
    assert release is not None
    return {"rustc": release[1], "target": host[1], "valgrind": counter.strip().removeprefix("valgrind-")}


# ---------------------------------------------------------------- the program
COLUMNS = ("instr.", "ratio", "ns", "ratio")
TABLES = {
    "meter": ((*COLUMNS, "green", "bytes"), meters),
    "AQM": ((*COLUMNS, "green", "yellow", "kept", "bytes"), aqms),
    "scheduler": (COLUMNS, schedulers),
    "windows": (COLUMNS, windows),
}

KEY = """\
ratio: to the token bucket, to drop-tail, to the FIFO, and in the last table to
tsw and to static WRED; green, yellow: instructions where all packets are; kept:
averages and sets of thresholds; bytes: state for each flow or queue"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description="what every block costs")
    parser.add_argument("--samples", type=int, default=101, help="turns of all rows")
    parser.add_argument("--write", action="store_true", help=f"record instructions in {RECORDED.name}")
    parser.add_argument("--markdown", action="store_true", help="print tables for docs/project/benchmarks.md")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    options = parser.parse_args(arguments)
    program = build()
    print(f"A packet {measuring.stay_on_one_core()} ({measuring.machine()})")
    try:
        costs = measure(program, options.samples, counts=True)
    except CountError as error:
        if options.write:
            parser.error(f"instructions cannot be counted: {error}")
        print(f"instructions not counted: {error}")
        costs = measure(program, options.samples, counts=False)
    for name, (columns, rows) in TABLES.items():
        print()
        print(measuring.table((name, *columns), rows(costs), markdown=options.markdown))
    print(f"\n{KEY}")
    if options.write:
        RECORDED.write_text(toml(record(costs), tools()), encoding="utf-8")
    if options.json:
        figures = [{"role": role, "name": name, **asdict(cost)} for (role, name), cost in costs.items()]
        options.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
