"""Settings of a run that one steps through: which can change, and their places in the scenario."""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from perhop import _engine
from perhop.errors import PerhopError
from perhop.scenario import paths

THRESHOLD_PARTS = ("min", "max", "max_p")
"""The parts of a threshold set, which scenarios write as one text: `30/90/0.05`."""
KINDS = {
    "aqm": "an AQM",
    "scheduler": "a scheduler",
    "marker": "a meter",
    "tcp": "a transport",
    "udp": "a transport",
}
"""The nouns for tables, by the keys that name their kinds."""


def endless(value: object) -> float | None:
    """A number within a value that is not finite, if there is one."""
    if isinstance(value, float):
        return None if math.isfinite(value) else value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next((found for one in inner if (found := endless(one)) is not None), None)


MOST_NAMED = 8
"""Paths that a message lists."""
MOST_LIKELY = 20
"""Links whose paths are compared with one that does not exist."""
FIXED = ("name", "match", "aqm", "scheduler", "marker", "class", "source", "af", "out")
"""Keys of queues and meters that say what there is."""


def settable(scenario: Mapping[str, Any], key: str, most: int = MOST_NAMED) -> str:
    """Return the paths that can be set, for a message: those like this one first."""
    found: list[str] = []
    if "topology" in scenario:
        found += _of_all_links(scenario["topology"])
        scenario = json.loads(_engine.written_out(json.dumps(scenario)))
    # Of thousands of links those are worth a look whose names are near.
    likely = difflib.get_close_matches(key, scenario["links"], n=MOST_LIKELY, cutoff=0)
    unlikely = 0
    for name, link in scenario["links"].items():
        own = list(_of_link(name, link))
        found += own if name in likely else []
        unlikely += 0 if name in likely else len(own)
    for group in scenario["flows"]:
        place = f"flows.{group['name']}"
        if "udp" in group.get("transport", {}):
            found.append(f"{place}.transport.rate")
        if isinstance(profile := group.get("profile"), dict):
            found += _leaves(profile, f"{place}.profile")
    for name, profile in scenario.get("profiles", {}).items():
        found += _leaves(profile, f"profiles.{name}")
    near = difflib.get_close_matches(key, found, n=most, cutoff=0)
    more = len(found) + unlikely - len(near)
    return f"these can be set: {', '.join(near)}" + (f" and {more} more" if more else "")


def _of_all_links(topology: Mapping[str, Any]) -> Iterator[str]:
    """The paths of what all links of a topology are like, or those of a tier."""
    tiers = {f"topology.tiers.{name}": tier for name, tier in topology.get("tiers", {}).items()}
    for place, table in {"topology.link": topology["link"], **tiers}.items():
        yield from (f"{place}.{key}" for key in ("rate", "delay") if key in table)
        yield from _leaves(table.get("queue", {}), f"{place}.queue")


def _of_link(name: str, link: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"links.{name}.rate", f"links.{name}.delay")
    yield from _leaves(link.get("queue", {}), f"links.{name}.queue")
    for meter in link.get("meters", ()):
        yield from _leaves(meter["profile"], f"links.{name}.meters.{meter['name']}.profile")


def _leaves(table: object, place: str) -> Iterator[str]:
    """The paths of the parameters of a queue or a meter that a scenario gives."""
    entries: Iterable[tuple[Any, Any]] = ()
    if isinstance(table, dict):
        entries = table.items()
    elif isinstance(table, list):
        entries = ((entry.get("name"), entry) for entry in table if isinstance(entry, dict))
    for key, value in entries:
        if key not in FIXED:
            if isinstance(value, dict | list):
                yield from _leaves(value, f"{place}.{key}")
            else:
                yield f"{place}.{key}"


def put(scenario: dict[str, Any], key: str, value: object) -> None:
    """Set what a path names, which may be a part of a threshold set.

    Raises:
        PerhopError: There is no such table, or no threshold set.
    """
    where = f"set `{key}`"
    parent, _, part = key.rpartition(".")
    if part not in THRESHOLD_PARTS:
        paths.put(scenario, key, value, where)
        return
    for path in (parent, f"{parent}.thresholds"):
        found = at(scenario, path)
        if isinstance(found, str) and found.count("/") == 2:
            parts = found.split("/")
            parts[THRESHOLD_PARTS.index(part)] = str(value)
            paths.put(scenario, path, "/".join(parts), where)
            return
    raise PerhopError(
        f"{where}: `{parent}` is no threshold set such as 30/90/0.05, and has none as `thresholds`"
    )


def at(scenario: dict[str, Any], path: str) -> object:
    """Return the value at a path; None if there is none."""
    found: Any = json.loads(json.dumps(scenario))
    paths.write_link(found, path)
    probe = json.loads(json.dumps(found))
    try:
        keys = paths.put(probe, path, None, path)
    except PerhopError:
        return None
    for key in keys:
        try:
            found = found[key]
        except (KeyError, IndexError, TypeError):
            return None
    return found
