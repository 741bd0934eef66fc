"""Scenarios on real packets: the kernel's TCP through perhop's queues, in private network namespaces.

`run` gives what `perhop.run` gives for a simulation, with a report on how well the machine kept up; `compare`
runs both and tests whether they are equivalent.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from perhop.real_packets.comparing import compare
    from perhop.real_packets.equivalence import Comparison, Margin
    from perhop.real_packets.laboratory import LiveReport, LiveResult, available, run

__all__ = ["Comparison", "LiveReport", "LiveResult", "Margin", "available", "compare", "run"]

LIVE_RUNS = 4
SIMULATED_RUNS = 30
"""Simulated runs, as many as `perhop run` makes by default: beside runs in real time they cost little."""

_PLACES = {
    "Comparison": ("equivalence", "Comparison"),
    "LiveReport": ("laboratory", "LiveReport"),
    "LiveResult": ("laboratory", "LiveResult"),
    "Margin": ("equivalence", "Margin"),
    "available": ("laboratory", "available"),
    "compare": ("comparing", "compare"),
    "run": ("laboratory", "run"),
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever has this name
    """Load what is first asked for: `perhop --help` shall not wait for it."""
    if name not in _PLACES:
        raise AttributeError(f"module 'perhop.real_packets' has no attribute {name!r}")
    module, attribute = _PLACES[name]
    return getattr(importlib.import_module(f"perhop.real_packets.{module}"), attribute)
