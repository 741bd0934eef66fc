"""Numbers of a run that a sweep keeps: one for each measure, named after the scenario's parts.

Names end in their unit where they have one: `flows.gold.throughput_bps`, `links.uplink.delay_p95_s`.
Fractions and counts carry none.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import sys
import time
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perhop import _engine
from perhop.measures import catalog, durations, fairness, finite_flows, flow_table
from perhop.runs import observing, one_run
from perhop.statistics import observations
from perhop.stores.companions import companions, is_companion
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
    *(fairness, catalog, durations, finite_flows, observations, observing),
    sys.modules[companions.__module__],
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
    began = time.perf_counter()
    raw = one_run.simulate(scenario, seed, cancel or _engine.Cancel())
    measured = measure(raw) | dict(companions(raw, scenario))
    return Measured(tuple(measured), array("d", measured.values()), time.perf_counter() - began)


def names_of(scenario: str) -> tuple[str, ...]:
    """The names of a scenario's metrics, from a run too short to send anything.

    Raises:
        ScenarioError: The scenario cannot be run.
    """
    content = json.loads(scenario)
    content |= {"duration": "1us", "warmup": "0s"}
    content.pop("probes", None)
    # What happens later would lie beyond the end.
    for link in content["links"].values():
        for direction in (link, link.get("reverse", {})):
            direction.pop("changes", None)
            direction.pop("outages", None)
    for group in content["flows"]:
        group.pop("stop", None)
        if not {"list", "trace"}.isdisjoint(group.get("arrivals", {})):
            group["arrivals"] = {"list": [["0s", "1B"]]}
            for key in ("sizes", "start"):
                group.pop(key, None)
        if "replay" in group:
            group["replay"] = {"data": "time_s,size_B\n0,1\n"}
            group.pop("start", None)
    return tuple(name for name in simulate(json.dumps(content), 0).names if not is_companion(name))


def measure(raw: Mapping[str, Any]) -> dict[str, float]:
    """Every measure of one run, in an order that depends on its scenario alone; NaN where it has none.

    Args:
        raw: What `perhop._engine.simulate` returned.
    """
    return dict(_measured(raw))


def _measured(raw: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    flows = flow_table.Flows.of(raw)
    for entry in catalog.RUN:
        if entry.applies(flows):
            yield entry.name, entry.value(flows)
    for group, members in flow_table.members(raw):
        for of_class in catalog.CLASS:
            if of_class.summary.metric:
                yield f"flows.{group['name']}.{of_class.summary.metric}", of_class.value(members)
    yield from finite_flows.metrics(raw)
    for link in raw["links"]:
        place = f"links.{link['name']}"
        yield from _values(place, link, catalog.LINK)
        yield from _values(place, link, catalog.QUEUE)
        for packets in link["classes"]:
            yield from _values(f"{place}.classes.{packets['name']}", packets, catalog.QUEUE)
    for users in raw.get("applications", ()):
        for name, value in users["measures"].items():
            yield f"applications.{users['name']}.{name}", math.nan if value is None else float(value)


def _values(
    place: str, outcome: Mapping[str, Any], entries: Sequence[catalog.Measure]
) -> Iterator[tuple[str, float]]:
    for entry in entries:
        if entry.summary is not None:
            value = outcome[entry.name]
            yield f"{place}.{entry.summary.metric}", math.nan if value is None else float(value)
