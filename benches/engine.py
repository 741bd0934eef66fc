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
    """What `run_engine.py` tells of a run.

    Attributes:
        arrived: Packets that arrived at the bottleneck.
        sent: Packets that left it.
        waiting: Mean number of packets that waited there.
        looks: How often probes looked.
        peak_bytes: Most memory that the process held.
    """

    arrived: int
    sent: int
    waiting: float
    looks: int
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class Run:
    """One run: its user CPU, and what it said."""

    user_seconds: float
    answer: Answer


def missing() -> str | None:
    """Why the engine cannot be measured here, or None where it can."""
    if importlib.util.find_spec("perhop") and importlib.util.find_spec("perhop._engine"):
        return None
    return f"perhop is not installed for {sys.executable} (make build)"


def command(scenario: Mapping[str, Any], seed: int, folder: Path) -> list[str]:
    """The command for one run; the scenario goes into a new file in `folder`."""
    with tempfile.NamedTemporaryFile("w", dir=folder, suffix=".json", delete=False) as file:
        json.dump(scenario, file)
    return [sys.executable, str(CHILD), file.name, str(seed)]


def answer(output: str) -> Answer:
    """What a run printed."""
    return Answer(**json.loads(output))


def run(scenario: Mapping[str, Any], seed: int) -> Run:
    """Runs a scenario once.

    Raises:
        process.RunError: The engine refused it.
    """
    with tempfile.TemporaryDirectory() as folder:
        cost = process.run(command(scenario, seed, Path(folder)))
    return Run(cost.user_seconds, answer(cost.output))
