"""Throughput of the live data plane by the kind of its devices: TUN or packet sockets, batches, offloads.

One data plane (a token bucket, a RIO queue, a delay of 1 ms) forwards between two hosts in network
namespaces, which `crates/perhop-live/tests/common/hosts.rs` joins to it in each of these ways. A round
measures every way, one after the other, so that a ratio compares runs of the same minute. A figure *per core*
is what the forwarding thread forwards in a second of its CPU time, system calls included; on TUN they include
the receiving host's part of reception. A run that loses a packet without a count fails.

    python -m benches.data_plane [--repeat 5] [--seconds 2] [--markdown] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benches import measuring
from benches.measuring import Spread

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parent.parent
WAYS = {
    "tun": "TUN, a packet a call",
    "tun-split": "TUN, offload from the host only",
    "tun-offload": "TUN, offload in both directions",
    "packet": "packet sockets, a frame a call",
    "packet-batch": "packet sockets, 64 frames a call",
    "packet-offload": "packet sockets, 64 frames a call, offload from the host",
}
BEFORE = {way: way.partition("-")[0] for way in WAYS}
"""The way without batches that a way is compared with."""
LOADS = (
    ("udp", 1500, "100Gbps"),
    ("tcp", 1500, "100Gbps"),
    ("udp", 64, "100Gbps"),
    ("tcp", 1500, "1Gbps"),
)
"""Traffic, size of packets, rate of the plane's link."""


def build() -> Path:
    """The program that measures."""
    package = ("-p", "perhop-live", "--example", "data_plane")
    subprocess.run(["cargo", "build", "--release", "--quiet", *package], cwd=ROOT, check=True)
    return ROOT / "target" / "release" / "examples" / "data_plane"


def run(program: Path, way: str, load: tuple[str, int, str], seconds: int) -> dict[str, Any]:
    """One run."""
    traffic, size, rate = load
    command = [str(program), way, traffic, str(size), rate, str(seconds)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=seconds + 30)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def per_core(one: dict[str, Any]) -> float:
    """Bit forwarded in a second of CPU time."""
    return 8.0 * float(one["bytes"]) / float(one["cpu_s"])


def ratio(figures: Sequence[dict[str, Any]], way: str) -> float:
    """How many times as much a core forwards as without batches: the median over the rounds."""
    mine, before = ([one for one in figures if one["way"] == name] for name in (way, BEFORE[way]))
    return statistics.median(per_core(a) / per_core(b) for a, b in zip(mine, before, strict=True))


def tables(figures: Sequence[dict[str, Any]], *, markdown: bool) -> str:
    """A table for each load, a line for each way."""
    head = ["Gbit/s", "CPU", "Gbit/s a core", "kpackets/s a core", "ratio", "late p50, p99, us"]
    parts = []
    for load in LOADS:
        here = [one for one in figures if (one["traffic"], one["size"], one["rate"]) == load]
        rows = []
        for way, name in WAYS.items():
            mine = [one for one in here if one["way"] == way]
            late = [statistics.median(one["lateness_us"][place] for one in mine) for place in (0, 1)]
            rows.append(
                [
                    name,
                    Spread.of([8 * one["bytes"] / one["seconds"] for one in mine]).text(1e-9, 2),
                    f"{statistics.median(one['cpu_s'] / one['seconds'] for one in mine):.0%}",
                    Spread.of([per_core(one) for one in mine]).text(1e-9, 2),
                    Spread.of([one["packets"] / one["cpu_s"] for one in mine]).text(1e-3, 0),
                    f"{ratio(here, way):.2f}",
                    f"{late[0]:.0f}, {late[1]:.0f}",
                ]
            )
        traffic, size, rate = load
        parts.append(
            measuring.table([f"{traffic}, {size} bytes, link {rate}", *head], rows, markdown=markdown)
        )
    return "\n\n".join(parts)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    program = build()
    try:
        figures = [
            run(program, way, load, options.seconds)
            for _ in range(options.repeat)
            for load in LOADS
            for way in WAYS
        ]
    except subprocess.CalledProcessError as error:
        print(f"the data plane was not measured: {error.stderr.strip()}", file=sys.stderr)
        return 1
    if options.json is not None:
        options.json.write_text(json.dumps(figures))
    print(tables(figures, markdown=options.markdown))
    return 0


if __name__ == "__main__":
    sys.exit(main())
