"""Which metrics a sweep shows that names none: what each kind of traffic is about, as `perhop run` has it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from perhop.measures import catalog
from perhop.show.readable import KEPT

LINKS = ("utilization", "delay_p99_s")
"""The measures that a sweep shows of each link."""
DATAGRAMS = ("throughput_bps", "one_way_delay_p99_s", "loss")
TRANSFERS = ("completion_s", "unfinished")
COMING_AND_GOING = ("completion_p50_s", "completion_p99_s", "unfinished")
CALLS = ("mos", "one_way_delay_p99_s", "loss")
_TARGETS = "rmse_to_targets_bps"


def of_traffic(scenarios: Iterable[str]) -> tuple[str, ...]:
    """Patterns of metrics for these scenarios: of their flows, users and links, each once.

    Args:
        scenarios: Canonical JSON.
    """
    flows: dict[str, None] = {}
    links: dict[str, None] = {}
    some_have_profiles = False
    for scenario in scenarios:
        content = json.loads(scenario)
        for group in content["flows"]:
            flows.update(dict.fromkeys(_of_group(group)))
            some_have_profiles = some_have_profiles or "profile" in group
        for name in content.get("links", {}):
            links.update(dict.fromkeys(f"links.{_literal(name)}.{measure}" for measure in LINKS))
    return (*flows, *(links or ["links.*.utilization"]), *([_TARGETS] if some_have_profiles else []))


def _of_group(group: Mapping[str, Any]) -> Iterator[str]:
    """Yield the metrics of a group of flows, or of users of an application."""
    name, model = _literal(str(group["name"])), group.get("application", {}).get("model")
    users = [entry.name for entry in catalog.APPLICATION.get(model, ()) if entry.importance == KEPT]
    if users:
        yield from (f"applications.{name}.{measure}" for measure in users)
    elif "arrivals" in group:
        yield from (f"populations.{name}.{measure}" for measure in COMING_AND_GOING)
    else:
        yield from (f"flows.{name}.{measure}" for measure in _of_flows(group))


def _of_flows(group: Mapping[str, Any]) -> tuple[str, ...]:
    """The measures of a group of flows, by what they are."""
    if "codec" in group:
        return CALLS
    if "tcp" not in group.get("transport", {}):
        return DATAGRAMS
    return TRANSFERS if "volume" in group else ("throughput_bps",)


def _literal(name: str) -> str:
    """A name as a pattern that it alone meets."""
    return re.sub(r"([*?[])", r"[\1]", name)
