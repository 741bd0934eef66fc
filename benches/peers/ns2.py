"""ns-2 on the peers' settings, by the script that agreement is tested with."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from benches.peers.program import Packets, Program
from tests.oracle import ns2

if TYPE_CHECKING:
    from pathlib import Path

    from tests.oracle.ns2 import Ns2Setting


def program(
    name: str, *, kind: str, headers: Literal["lean", "all"], scheduler: Literal["Calendar", "Splay"]
) -> Program:
    """ns-2 with these packet headers and this event queue, neither of which changes a result."""

    def command(network: Ns2Setting, seed: int, _: Path) -> list[str]:
        return ns2.command(replace(network, headers=headers, scheduler=scheduler), seed)

    def packets(output: str, network: Ns2Setting) -> Packets:
        points = ns2.parse(output, network, 1, 0.0).queue.values()
        arrived = sum(point.arrived for point in points)
        return Packets(arrived, arrived - sum(point.early + point.forced for point in points))

    return Program(name, kind, lambda _: ns2.available(), command, packets)
