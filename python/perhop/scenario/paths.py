"""Dotted paths into a scenario, such as `links.uplink.queue.limit` or `flows.gold.profile.rate`."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from perhop import _engine
from perhop.errors import PerhopError, ScenarioError

Keys: TypeAlias = "tuple[str | int, ...]"
"""A place in a scenario: keys of tables and indices of lists, from the top."""
MOST_DOTS = 80
"""Dots of a path that can part its names."""
MOST_NAMED = 12
"""Names that a message lists."""


class Entries:
    """The indices of the entries of lists by name, kept while many paths are looked up in one scenario."""

    def __init__(self) -> None:
        """Begin without places of lists."""
        # With each list, so that no other one gets its identity.
        self._known: dict[int, tuple[Sequence[Any], Mapping[str, int]]] = {}

    def of(self, entries: Sequence[Any]) -> Mapping[str, int]:
        """Return the index of each name in a list: of equal names the first, and a name before a number."""
        if id(entries) not in self._known:
            numbers = {str(index): index for index in range(len(entries))}
            named: dict[str, int] = {}
            for index, entry in enumerate(entries):
                if isinstance(entry, Mapping) and isinstance(entry.get("name"), str):
                    named.setdefault(entry["name"], index)
            self._known[id(entries)] = (entries, numbers | named)
        return self._known[id(entries)][1]

    def changed(self, table: object, key: object) -> None:
        """Forgets what a new value there may have made wrong."""
        if key == "name" or isinstance(table, list):
            self._known.clear()


def put(
    scenario: dict[str, Any],
    path: str,
    value: object,
    where: str,
    folder: Path | None = None,
    *,
    entries: Entries | None = None,
) -> Keys:
    """Set what a path names; the last key may be new, all before it must be there.

    Entries of a list are named by their `name`, or counted from 0. Names may hold dots: the longest name that
    fits is taken. A link of a topology gets a table of its own, which differs from what the topology says in
    this value. A congestion control that is named, or left out, gets its table.

    Args:
        scenario: Plain data, changed in place.
        path: Names of tables and a key, joined by dots.
        value: What to put there.
        where: The place in the user's file, for messages.
        folder: Where the files are that the scenario names.
        entries: The same for all paths of a scenario that nothing else changes meanwhile.

    Returns:
        The place by keys and indices: the same for every name that it goes by.

    Raises:
        PerhopError: There is no such table.
    """
    links = write_link(scenario, path, folder)
    entries = Entries() if entries is None else entries
    table: Any = scenario
    rest, passed = path, ""
    keys: Keys = ()
    while True:
        if rest.startswith("congestion.") and isinstance(table, dict) and "tcp" in table:
            control = table.get("congestion", _default_control(table["tcp"]))
            if isinstance(control, str):  # a name is short for a table of defaults
                table["congestion"] = {"control": control}
        name = _leading(table, rest, entries)
        if name is None and isinstance(table, dict) and "." not in rest and rest:
            table[rest] = value
            entries.changed(table, rest)
            return (*keys, rest)
        if name is None:
            raise PerhopError(f"{where}: {_missing(table, rest, passed, links)}")
        keys = (*keys, entries.of(table)[name] if isinstance(table, list) else name)
        if name == rest:
            table[keys[-1]] = value
            entries.changed(table, keys[-1])
            return keys
        table, rest = table[keys[-1]], rest[len(name) + 1 :]
        passed = f"{passed}.{name}" if passed else name


def is_of_a_control(path: str) -> bool:
    """Whether a path is to a parameter of a congestion control: set after what chooses the control."""
    return ".congestion." in path


@cache
def _default_controls() -> dict[str, str]:
    """The congestion control that each preset of TCP has as its default; under no name that of all others."""
    presets = json.loads(_engine.tcp_presets())
    defaults = {
        preset["name"]: default["value"]
        for preset in presets
        for default in preset["defaults"]
        if default["key"] == "congestion"
    }
    return {"": defaults[presets[0]["name"]], **defaults}


def _default_control(tcp: object) -> str:
    """The congestion control of a transport that gives none, by the value of its key `tcp`."""
    defaults = _default_controls()
    return defaults.get(str(tcp), defaults[""])


def _leading(table: object, path: str, entries: Entries) -> str | None:
    """The longest name of an entry with which a path begins."""
    # Its own beginnings are fewer than the names of a large table; no name has more dots than that.
    parts = path.split(".", MOST_DOTS)
    beginnings = (path, *(".".join(parts[:count]) for count in range(len(parts) - 1, 0, -1)))
    names = table if isinstance(table, Mapping) else entries.of(table) if isinstance(table, list) else ()
    return next((name for name in beginnings if name in names), None)


def write_link(scenario: dict[str, Any], path: str, folder: Path | None = None) -> Sequence[str]:
    """Give the link that a path leads into, if it is one of a topology, the table that says the same.

    Args:
        scenario: Plain data, changed in place.
        path: As for `put`.
        folder: Where the files are that the scenario names.

    Returns:
        The names of the topology's links, if the path is one of a link's.
    """
    top, _, rest = path.partition(".")
    if "topology" not in scenario or top != "links":
        return ()
    own: dict[str, Any] = scenario.get("links") or {}
    links = _all_links(json.dumps(scenario), folder)
    if links is None:
        return ()  # whoever reads the scenario says what is wrong
    name = max((known for known in links if rest.startswith(f"{known}.")), key=len, default=None)
    scenario["links"] = own if name is None else {name: links[name], **own}
    return [known for known in links if known not in own]


def _all_links(scenario: str, folder: Path | None) -> dict[str, Any] | None:
    """All links of a scenario, those of its topology included; None if it cannot be read."""
    try:
        return dict(json.loads(_engine.written_out(scenario))["links"])
    except ScenarioError:  # it may name files
        with suppress(ScenarioError):
            text, _ = _engine.read_json(scenario, "scenario", folder=folder)
            return dict(json.loads(_engine.written_out(text))["links"])
    return None


def _names(table: object) -> Iterator[str]:
    """Yield the names by which the entries of a table or list are called."""
    if isinstance(table, Mapping):
        yield from table
    elif isinstance(table, list):
        for index, entry in enumerate(table):
            yield str(index)
            if isinstance(entry, Mapping) and isinstance(entry.get("name"), str):
                yield entry["name"]


def _missing(table: object, rest: str, passed: str, links: Iterable[str]) -> str:
    """Return a message on the missing part of a path and on those there; `links`: of the topology."""
    inside = f"`{passed}`" if passed else "the scenario"
    name = rest.partition(".")[0]
    if not name:
        return "the path ends in a dot, or has two in a row"
    known = [known for known in _names(table) if not known.isdigit()]
    if passed == "links":
        known += links
    if not isinstance(table, Mapping | list):
        return f"{inside} is {table!r}, no table with a `{name}`"
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    more = f" and {len(known) - MOST_NAMED} more" if len(known) > MOST_NAMED else ""
    there = ", ".join(known[:MOST_NAMED]) + more
    hint = f"did you mean `{near[0]}`?" if near else f"there are {there or 'none'}"
    return f"{inside} has no `{name}`; {hint}"
