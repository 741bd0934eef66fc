"""ns-3 on the peers' settings: `ns3/table1.cc`, compiled against Debian's `libns3-dev` when it is needed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from benches.peers.program import Program, printed

if TYPE_CHECKING:
    from tests.oracle.ns2 import Ns2Setting

SOURCE = Path(__file__).parent / "ns3" / "table1.cc"
MODULES = (
    "ns3-core",
    "ns3-network",
    "ns3-internet",
    "ns3-point-to-point",
    "ns3-applications",
    "ns3-traffic-control",
)


def compiled(folder: Path) -> Path:
    """Where the program lies in a folder."""
    return folder / "table1"


def build(folder: Path) -> str | None:
    """Compiles the program into a folder; says why that cannot be done here, or None."""
    return compile_with_ns3(SOURCE, compiled(folder))


def compile_with_ns3(source: Path, program: Path) -> str | None:
    """Compiles a source; says why that cannot be done here, or None."""
    for tool in ("g++", "pkg-config"):
        if shutil.which(tool) is None:
            return f"the program `{tool}` is not installed"
    found = subprocess.run(
        ["pkg-config", "--libs", *MODULES], capture_output=True, text=True, timeout=30, check=False
    )
    if found.returncode != 0:
        return "ns-3 is not installed (Debian: package libns3-dev)"
    # Debian's files also name libraries that ns-3's own bring along, some without the packages they are in.
    libraries = dict.fromkeys(word for word in found.stdout.split() if word.startswith(("-lns3", "-L")))
    done = subprocess.run(
        ["g++", "-std=c++17", "-O3", "-o", program, source, *libraries],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode != 0:
        return f"{source.name} does not compile: {(done.stderr.strip().splitlines() or ['no reason'])[0]}"
    return None


def arguments(network: Ns2Setting, seed: int, tcp: str = "ns3::TcpNewReno") -> list[str]:
    """The program's command line. SACK is always on; `tcp` is the type of congestion control."""
    delays = [
        network.access_delay_s if group.access_delay_s is None else group.access_delay_s
        for group in network.groups
        for _ in range(group.count)
    ]
    values: dict[str, object] = {
        "rate": network.rate_bps,
        "delay": network.delay_s,
        "accessRate": network.access_rate_bps,
        "accessDelays": ",".join(repr(delay) for delay in delays),
        "min": network.total_thresholds.min,
        "max": network.total_thresholds.max,
        "maxP": network.total_thresholds.max_p,
        "weight": network.weight,
        "limit": network.limit_packets,
        "packet": network.packet_bytes,
        "window": network.window_packets,
        "initialWindow": network.initial_window,
        "minRto": network.min_rto_s,
        "tick": network.tick_s,
        "tcp": tcp,
        "delayedAck": network.delayed_ack_s or 0,
        "startFrom": network.start_s[0],
        "startTo": network.start_s[1],
        "duration": network.duration_s,
        "seed": seed,
    }
    return [f"--{key}={value}" for key, value in values.items()]


def program(name: str, tcp: str = "ns3::TcpNewReno") -> Program:
    """ns-3 as Debian ships it."""

    def command(network: Ns2Setting, seed: int, folder: Path) -> list[str]:
        return [str(compiled(folder)), *arguments(network, seed, tcp)]

    return Program(name, "ns-3", build, command, printed)
