"""From a scenario's link to the lines of a router: `perhop export`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perhop.errors import PerhopError
from perhop.routers.dialects.cisco import writer as to_ios
from perhop.routers.dialects.junos import writer as to_junos
from perhop.routers.dialects.perhop_router import writer as to_perhop_router
from perhop.routers.dialects.tc import writer as to_tc
from perhop.routers.writing.outgoing import Remarks, outgoing

if TYPE_CHECKING:
    from collections.abc import Callable

    from perhop.routers.writing.outgoing import Outgoing, Remark

WRITERS: dict[str, Callable[[Outgoing, Remarks], list[str]]] = {
    "ios": to_ios.lines,
    "junos": to_junos.lines,
    "tc": to_tc.lines,
    "perhop-router": to_perhop_router.lines,
}
"""Every dialect that can be written. A new one is a file and a line here."""
TREES = frozenset({"ios", "tc"})
"""Dialects with classes within classes of any depth; others have classes of one level."""
COMMENTS = {"ios": "!", "junos": "#", "tc": "#", "perhop-router": "#"}
NATIVE = frozenset({"perhop-router"})
"""Dialects that have perhop's own queues, and two interfaces that are named (`--devices`)."""


@dataclass(frozen=True, slots=True)
class Exported:
    """An export: the lines, and what they do not say as the scenario does."""

    dialect: str
    link: str
    text: str
    remarks: tuple[Remark, ...]

    @property
    def naming(self) -> str:
        """What to do about the interface's name; empty where the dialect has names of its own."""
        return "" if self.dialect in NATIVE else naming(self.link)

    def to_json(self) -> str:
        """The lines and the remarks as JSON."""
        remarks = [{"kind": r.kind, "place": r.place, "text": r.text} for r in self.remarks]
        return json.dumps(
            {"dialect": self.dialect, "link": self.link, "lines": self.text.splitlines(), "remarks": remarks},
            indent=1,
        )


def exported(
    canonical: str,
    origin: str,
    dialect: str,
    *,
    link: str | None = None,
    shape: bool = False,
    lenient: bool = False,
    devices: str | None = None,
) -> Exported:
    """The queue and the meters of a link as lines of a router's configuration.

    Args:
        canonical: The scenario as `perhop.simulation.canonical` gives it.
        origin: Its name in messages.
        dialect: One of `WRITERS`.
        link: The link's name; None: the only one with a queue.
        shape: Shape to the link's rate: the interface is faster.
        lenient: Leave out what the dialect cannot express, in place of refusing.
        devices: For perhop-router, the interfaces inside and outside: `eth1,eth0`.

    Raises:
        PerhopError: The dialect or the link is not known, or the dialect cannot express something.
    """
    if dialect not in WRITERS:
        raise PerhopError(f"--to must be one of {', '.join(WRITERS)}, not `{dialect}`")
    if devices is not None and dialect not in NATIVE:
        raise PerhopError(f"--devices has no effect with --to {dialect}: only {', '.join(NATIVE)} names two")
    remarks = Remarks()
    kinds = {"linux": dialect == "tc", "trees": dialect in TREES, "native": dialect in NATIVE}
    found = outgoing(canonical, origin, link, dialect=dialect, **kinds)
    found.shape = shape
    found.devices = None if devices is None else to_perhop_router.checked_devices(devices)
    body = WRITERS[dialect](found, remarks)
    missing = [remark for remark in remarks.listed if remark.kind == "left out"]
    if missing and not lenient:
        more = f" ({len(missing) - 1} more)" if len(missing) > 1 else ""
        said = f"{origin}: {missing[0].place}: {missing[0].text}{more}"
        raise PerhopError(f"{said}; change it, or leave it out with --lenient")
    sign = COMMENTS[dialect]
    head = [f"{sign} {found.place} of {origin}, written by perhop export."]
    head += [] if dialect in NATIVE else [f"{sign} {_one_line(naming(found.name))}"]
    head += [f"{sign} {_one_line(f'{r.kind}: {r.place}: {r.text}')}" for r in remarks.listed]
    return Exported(dialect, found.name, "\n".join([*head, *body]) + "\n", tuple(remarks.listed))


def naming(link: str) -> str:
    """What to do about an interface that has a link's name."""
    return f"The interface is called {link}, as the link is: write the name of yours."


def _one_line(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)
