"""perhop on the peers' settings, with the probes of the study `kim-table1`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benches import engine
from benches.peers.program import Packets, Program
from tests.oracle.scenario import perhop_scenario

from perhop.studies.kim import table1

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.oracle.ns2 import Ns2Setting

OFTEN = {"interval": "100ms"}
"""Every flow's throughput, window and round trip, and the queue and its averages, ten times a second."""


def study_probes() -> Mapping[str, Any]:
    """What `kim-table1` samples over time; as long as it plots no course over time, nothing."""
    probes: Mapping[str, Any] = table1.build(table1.RIO).get("probes", {})
    return probes


def scenario(network: Ns2Setting, probes: Mapping[str, Any]) -> dict[str, Any]:
    """The setting in perhop's format."""
    return {**perhop_scenario(network), **({"probes": dict(probes)} if probes else {})}


def program(name: str, probes: Mapping[str, Any]) -> Program:
    """The engine with these probes."""

    def command(network: Ns2Setting, seed: int, folder: Path) -> list[str]:
        return engine.command(scenario(network, probes), seed, folder)

    def packets(output: str, _: Ns2Setting) -> Packets:
        answer = engine.answer(output)
        return Packets(answer.arrived, answer.sent)

    return Program(name, "perhop", lambda _: engine.missing(), command, packets)
