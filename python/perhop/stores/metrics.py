"""The numbers of a run that a sweep keeps, and the identity of what computes them."""

from __future__ import annotations

import functools
import hashlib
import time
from array import array
from dataclasses import dataclass
from pathlib import Path

from perhop import _engine
from perhop.measures import catalog, durations, fairness, finite_flows
from perhop.runs import companions, metrics, observing, one_run, warming
from perhop.statistics import observations, settling
from perhop.stores.outcomes import engine_digest


@dataclass(frozen=True, slots=True)
class Measured:
    """One finished run.

    Attributes:
        names: Names of the measures and of their companions; the same tuple for all runs of one scenario.
        values: f64, one for each name; NaN where the run has none.
        wall_s: How long the run took, measuring included.
    """

    names: tuple[str, ...]
    values: array[float]
    wall_s: float


_MEASURING = (
    *(fairness, catalog, durations, finite_flows, observations, observing, metrics, companions),
    *(settling, warming),
)
"""The modules that measure a run, besides this one."""


@functools.cache
def engine_id() -> str:
    """Return the identity of what computes a run: version, library and measuring code, to the byte.

    It is part of a finished run's key: runs of another build are never taken for this one's.
    """
    digest = hashlib.sha256(engine_digest().encode())
    for source in (*(str(module.__file__) for module in _MEASURING), __file__):
        digest.update(Path(source).read_bytes())
    return f"{_engine.version}+{digest.hexdigest()[:16]}"


def simulate(scenario: str, seed: int, cancel: _engine.Cancel | None = None) -> Measured:
    """Run a scenario once and measure it.

    Args:
        scenario: Canonical JSON.
        seed: The seed.
        cancel: Set it from another thread to end the run.

    Raises:
        ScenarioError: The scenario cannot be run.
        perhop._engine.Cancelled: `cancel` was set.
    """
    flag = cancel or _engine.Cancel()
    settled, warm_up = warming.settled_beside_others(scenario, flag)
    began = time.perf_counter()
    raw = one_run.simulate(settled, seed, flag)
    measured = companions.with_measures(raw, scenario, warm_up)
    return Measured(tuple(measured), array("d", measured.values()), time.perf_counter() - began)
