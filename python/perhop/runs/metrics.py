"""Numbers of a run, one for each measure, named after the scenario's parts.

Names end in their unit where they have one: `flows.gold.throughput_bps`, `links.uplink.delay_p95_s`.
Fractions and counts carry none.
"""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from perhop import _engine
from perhop.measures import catalog, finite_flows, flow_table
from perhop.runs import one_run

WILDCARDS = frozenset("*?[")


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
    return tuple(measure(one_run.simulate(json.dumps(content), 0, _engine.Cancel())))


def unknown(patterns: Iterable[str], names: Sequence[str]) -> list[str]:
    """Return the patterns that meet none of the names; one without wildcards is looked up."""
    known = frozenset(names)
    return [
        pattern
        for pattern in patterns
        if pattern not in known
        and (WILDCARDS.isdisjoint(pattern) or not any(fnmatchcase(name, pattern) for name in names))
    ]


def why_unknown(pattern: str, names: Sequence[str]) -> str:
    """Say of a pattern that it meets nothing that is measured, and what is near it."""
    if pattern.startswith("links.") and "jitter" in pattern:
        return (
            f"nothing measured is called `{pattern}`; jitter (RFC 3550) is of flows: write "
            "flows.NAME.jitter_s, or delay_variation_s for p99 − p50 of the waiting time at a link"
        )
    plain = pattern.replace("*", "").replace("?", "")
    measured = plain.rpartition(".")[2]
    same = [name for name in names if measured and name.rpartition(".")[2].startswith(measured)]
    near = difflib.get_close_matches(plain, same or names, n=3, cutoff=0.3) or [*same, *names][:3]
    return (
        f"nothing measured is called `{pattern}`; near it are {', '.join(near)} "
        "(docs/measures.md lists the names)"
    )


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
