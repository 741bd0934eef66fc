"""The engine as the benchmarks run it: `run_engine.py` on a scenario of their own."""

from __future__ import annotations

import importlib.util
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.oracle import process

if TYPE_CHECKING:
    from collections.abc import Mapping

CHILD = Path(__file__).parent / "run_engine.py"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of `run_engine.py` about a run.

    Attributes:
        arrived: Packets that arrived at the bottleneck.
        sent: Packets that left it.
        packet_hops: Packets that arrived at any link with measurements, one for each link on their way.
        waiting: Mean number of packets that waited there.
        looks: How often probes looked.
        peak_bytes: Most memory that the process held.
        seconds: Wall time of the simulation alone.
    """

    arrived: int
    sent: int
    packet_hops: int
    waiting: float
    looks: int
    peak_bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Run:
    """One run: its user CPU, and what it said."""

    user_seconds: float
    answer: Answer


def missing() -> str | None:
    """Why the engine cannot be measured here, or None where it can."""
    if not (importlib.util.find_spec("perhop") and importlib.util.find_spec("perhop._engine")):
        return f"perhop is not installed for {sys.executable} (make fast)"
    from perhop import _engine  # noqa: PLC0415 - it may be missing

    return None if _engine.optimized else "perhop's engine is slower than that of a wheel (make fast)"


def command(scenario: Mapping[str, Any], seed: int, folder: Path, threads: int = 1) -> list[str]:
    """The command for one run on so many threads; the scenario goes into a new file in `folder`."""
    with tempfile.NamedTemporaryFile("w", dir=folder, suffix=".json", delete=False) as file:
        json.dump(scenario, file)
    return [sys.executable, str(CHILD), file.name, str(seed), str(threads)]


def answer(output: str) -> Answer:
    """What a run printed."""
    return Answer(**json.loads(output))


def run(scenario: Mapping[str, Any], seed: int, threads: int = 1) -> Run:
    """Runs a scenario once, on so many threads at most.

    Raises:
        process.RunError: The engine refused it.
    """
    with tempfile.TemporaryDirectory() as folder:
        cost = process.run(command(scenario, seed, Path(folder), threads))
    return Run(cost.user_seconds, answer(cost.output))


def run_file(scenario: Path, seed: int, threads: int = 1) -> Run:
    """Run a scenario's own file, in TOML or JSON, in a process of its own.

    Raises:
        process.RunError: The engine refused it.
    """
    cost = process.run([sys.executable, str(CHILD), str(scenario), str(seed), str(threads)])
    return Run(cost.user_seconds, answer(cost.output))
