"""A link as a configuration of perhop-router ([perhop-router.md](../../../docs/perhop-router.md)).

The router has the simulator's queues and meters, so their tables are written as they are in the scenario.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from perhop.errors import PerhopError
from perhop.routers import units
from perhop.routers.curves import drop_precedence
from perhop.routers.dialect import Dialect
from perhop.routers.outgoing import depth, nanoseconds
from perhop.routers.units import key, quoted, toml_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perhop.routers.outgoing import Outgoing, Remarks, Table

PLACEHOLDERS = ("INSIDE", "OUTSIDE")
"""Names without --devices. No interface has them, so a router that is started with them says so."""
LONGEST_NAME = 15
"""Characters of the name of an interface in Linux."""
NOT_THERE = {
    "python": "a class in Python, which acts in simulations only",
    "dwred": "`dwred`, which needs the window control of label-switched paths",
}
PATHS = ("path", "traffic-class")
"""Keys of a match that only packets on label-switched paths agree with."""
NO_PATHS = "perhop-router has no label-switched paths; match by `dscp` or `precedence`"
MEDIUM = ("rate-trace", "changes", "outages", "loss", "burst-loss", "jitter")
"""Keys of a link that are about the wire, not about the queue before it."""
INLINE = frozenset({"match", "not", "profile"})
BUFFERS = 10_000
"""The router's default, in packets."""
MOST_BUFFERS = 1_000_000
SPARE = 1_000
"""Packets beside those in queues: of the other direction, or on their way."""
SMALLEST = 40
"""Bytes of an IP packet, for limits in bytes."""
GREEN = 3
"""The codepoint of Asymmetric Best-Effort's green service."""


def lines(link: Outgoing, remarks: Remarks) -> list[str]:
    """The configuration. Its queues and meters are those of the scenario, with every default written out."""
    return _Writer(link, remarks).lines()


def checked_devices(text: str) -> tuple[str, str]:
    """`IN,OUT`, as the router takes them.

    Raises:
        PerhopError: They are not two names of interfaces.
    """
    names = [name.strip() for name in text.split(",")]
    if len(names) != 2:
        said = "two interfaces, inside and outside, such as eth1,eth0"
        raise PerhopError(f"--devices takes {said}, not `{text}`")
    for name in names:
        good = name.isprintable() and not any(c.isspace() or c in '/:%"\\' for c in name)
        if not good or not 1 <= len(name) <= LONGEST_NAME:
            said = f"1 to {LONGEST_NAME} characters without spaces, such as eth0"
            raise PerhopError(f"--devices: `{name}` is no name of an interface; write {said}")
    if names[0] == names[1]:
        raise PerhopError(f"--devices: `{names[0]}` cannot be on both sides; name two interfaces")
    return names[0], names[1]


class _Writer:
    def __init__(self, link: Outgoing, remarks: Remarks) -> None:
        self._link = link
        self._remarks = remarks
        self._table: Table = link.scenario["links"][link.name]
        self._devices = None if link.devices is None else checked_devices(link.devices)
        self._needed = SPARE

    def lines(self) -> list[str]:
        link, table = self._link, self._table
        if link.shape:
            text = "--shape has no effect: the router sends at this rate anyway"
            self._remarks.differs(f"{link.place}.rate", text)
        upstream = self._direction("upstream", table, link.place, table["rate"])
        reverse = table.get("reverse") or {}
        rate = reverse.get("rate") or table["rate"]
        downstream = self._direction("downstream", reverse, f"{link.place}.reverse", rate)
        return [
            *self._buffers(),
            'unmatched = "trust"  # codepoints stay: AFn1 is green, AFn2 yellow, AFn3 red, all others yellow',
            *self._interfaces(),
            *upstream,
            *downstream,
            *self._classes(),
        ]

    def _interfaces(self) -> list[str]:
        if self._devices is None:
            text = "placeholders; name the interfaces with --devices IN,OUT"
            inside, outside = PLACEHOLDERS
            self._remarks.differs(self._link.place, f"between {inside} and {outside}: {text}")
        names = zip(("inside", "outside"), self._devices or PLACEHOLDERS, strict=True)
        tables = [("", f"[{side}]", f"device = {quoted(name)}", 'kind = "packet"') for side, name in names]
        return [line for table in tables for line in table]

    def _direction(self, name: str, table: Table, place: str, rate: str) -> list[str]:
        """A direction with a queue; nothing for one without."""
        queue = table.get("queue")
        meters = table.get("meters") or []
        if queue is None:
            if meters:
                text = "the router has meters only before a queue, and there is none"
                self._remarks.left_out(f"{place}.meters", text)
            return []
        for where, said in _lacking(queue, f"{place}.queue"):  # without it there is nothing to write
            raise PerhopError(f"{self._link.origin}: {where}: {said}")
        self._medium(table, place)
        self._needed += math.ceil(_most(queue))
        places = [f"{place}.meters[{number}]" for number in range(len(meters))]
        kept = [meter for meter, where in zip(meters, places, strict=True) if self._can(meter, where)]
        return _toml([name], {"rate": rate, "queue": queue, "meters": kept})

    def _medium(self, table: Table, place: str) -> None:
        given = table.get("delay", "0ms")
        if nanoseconds(given) > 0:
            text = f"{given} not added: the wire has a delay of its own (the key `delay` would add to it)"
            self._remarks.differs(f"{place}.delay", text)
        for one in MEDIUM:
            if table.get(one):
                self._remarks.differs(f"{place}.{one}", "not written: the wire does this, not the router")

    def _can(self, meter: Table, place: str) -> bool:
        lacking = sorted((said for _, said in _lacking(meter, place)), key=lambda said: said != NO_PATHS)
        for said in lacking[:1]:
            self._remarks.left_out(place, said)
        return not lacking

    def _buffers(self) -> list[str]:
        """Room for all packets that queues may hold."""
        if self._needed <= BUFFERS:
            return []
        if self._needed > MOST_BUFFERS:
            text = f"it holds at most {MOST_BUFFERS} packets, which is less than the limits"
            self._remarks.differs(f"{self._link.place}.queue", f"{text} of its queues allow")
        return [f"buffers = {min(self._needed, MOST_BUFFERS)}  # as many as the limits of the queues allow"]

    def _classes(self) -> list[str]:
        """The codepoints that have another color in the scenario than the router gives them."""
        colors: dict[int, set[str]] = {}
        for number, flow in enumerate(self._link.scenario.get("flows") or []):
            if flow.get("profile") is not None:
                text = "their hosts mark them; to mark them in the router, add a class with this profile"
                self._remarks.differs(f"flows[{number}].profile", text)
                continue
            code = flow.get("dscp")
            if code is None:
                code = GREEN if flow.get("service") == "green" else 0
            colors.setdefault(code, set()).add(flow.get("color") or _trusted(code))
        result: list[str] = []
        for code, found in sorted(colors.items()):
            shown = units.shown_codepoints([code])[0]
            if len(found) > 1:
                text = f"flows of codepoint {shown} have several colors; in the router it is {_trusted(code)}"
                self._remarks.differs("flows", text)
            elif found != {_trusted(code)}:
                name = f"codepoint-{shown}".lower()
                table = {"name": name, "match": {"dscp": code}, "color": found.pop(), "dscp": code}
                result += _toml(["classes"], table, array=True)
        return result


def _trusted(code: int) -> str:
    """The color that the router gives a codepoint with `trust` (RFC 2597, section 6)."""
    return drop_precedence(code) or "yellow"


def _lacking(value: Table, place: str) -> Iterator[tuple[str, str]]:
    """What the router does not have of a queue or a meter, each with its place."""
    for where, table in _tables(value, place):
        for tag in ("aqm", "scheduler", "marker"):
            if table.get(tag) in NOT_THERE:
                yield where, f"perhop-router does not have {NOT_THERE[table[tag]]}"
        if where.endswith((".match", ".not")):
            yield from ((f"{where}.{one}", NO_PATHS) for one in PATHS if one in table)


def _tables(value: Any, place: str) -> Iterator[tuple[str, Table]]:  # noqa: ANN401 - of a scenario
    """A table and all tables in it, with their places."""
    if isinstance(value, dict):
        yield place, value
        for name, inner in value.items():
            yield from _tables(inner, f"{place}.{name}")
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _tables(inner, f"{place}[{number}]")


def _most(queue: Table) -> float:
    if isinstance(queue.get("limit"), str):
        limit = depth(queue["limit"])
        return limit.number if limit.packets else limit.number / SMALLEST
    inner = [queue[name] for name in ("rule", "queue") if isinstance(queue.get(name), dict)]
    inner += [one for name in ("queues", "classes", "priority") for one in queue.get(name) or []]
    return sum(_most(one) for one in inner)


def _toml(path: list[str], table: Table, *, array: bool = False) -> list[str]:
    """A table under this header, then the tables in it."""
    header = ".".join(key(part) for part in path)
    result = ["", f"[[{header}]]" if array else f"[{header}]"]
    later: list[str] = []
    for name, value in table.items():
        if value is None or value == []:
            continue
        if isinstance(value, dict) and name not in INLINE:
            later += _toml([*path, name], value)
        elif isinstance(value, list) and isinstance(value[0], dict):
            for one in value:
                later += _toml([*path, name], one, array=True)
        else:
            result.append(f"{key(name)} = {toml_value(value, name)}")
    return [*result, *later]


DIALECTS = (Dialect("perhop-router", "perhop-router", write=lines, native=True),)
