"""Changes to a scenario of the paper, as plain data: of its queue, its flows, its packets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perhop.studies.kim.common import window

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def queue(**keys: str | float) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    """Set keys of the bottleneck's queue."""

    def change(scenario: Mapping[str, Any]) -> Mapping[str, Any]:
        link = scenario["links"]["bottleneck"]
        changed = {**link, "queue": {**link["queue"], **keys}}
        return {**scenario, "links": {**scenario["links"], "bottleneck": changed}}

    return change


def entries(
    changed: Callable[[Mapping[str, Any]], Mapping[str, Any]],
) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    """Change every entry of flows."""
    return lambda scenario: {**scenario, "flows": [changed(entry) for entry in scenario["flows"]]}


def packets(size: int) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    """Set the size of packets, and with it the largest window in packets."""

    def changed(entry: Mapping[str, Any]) -> Mapping[str, Any]:
        sizes = {"packet": f"{size}B", "window": window(size)}
        return {**entry, "transport": {**entry["transport"], **sizes}}

    of_flows, of_queue = entries(changed), queue(**{"mean-packet": f"{size}B"})
    return lambda scenario: of_queue(of_flows(scenario))
