"""From a scenario's link to the lines of a router: `perhop export`."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from perhop.errors import PerhopError
from perhop.routers.dialects import DIALECTS, WRITERS
from perhop.routers.outgoing import Remarks
from perhop.routers.writing import outgoing_link

if TYPE_CHECKING:
    from perhop.routers.outgoing import Remark


@dataclass(frozen=True, slots=True)
class Exported:
    """An export: the lines, and what they do not say as the scenario does."""

    dialect: str
    link: str
    text: str
    remarks: tuple[Remark, ...]
    naming: str
    """The advice about the interface's name; empty where the dialect has names of its own."""

    def to_json(self) -> str:
        """The lines and the remarks as JSON."""
        remarks = [asdict(remark) for remark in self.remarks]
        report = {"dialect": self.dialect, "link": self.link, "lines": self.text.splitlines()}
        return json.dumps({**report, "remarks": remarks}, indent=1)


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
    """Write the queue and the meters of a link as lines of a router's configuration.

    Args:
        canonical: The scenario as `perhop.scenario.reading.canonical` gives it.
        origin: Its name in messages.
        dialect: The name of one of `WRITERS`.
        link: The link's name; None: the only one with a queue.
        shape: Shape to the link's rate: the interface is faster.
        lenient: Leave out what the dialect cannot express, in place of refusing.
        devices: The interfaces inside and outside, `eth1,eth0`, for a dialect that names both.

    Raises:
        PerhopError: The dialect or the link is not known, or the dialect cannot express something.
    """
    language = WRITERS.get(dialect)
    if language is None or language.write is None:
        raise PerhopError(f"--to must be one of {', '.join(WRITERS)}, not `{dialect}`")
    if devices is not None and not language.native:
        native = ", ".join(name for name, other in WRITERS.items() if other.native)
        raise PerhopError(f"--devices has no effect with --to {dialect}: only {native} names two")
    remarks = Remarks()
    found = outgoing_link(canonical, origin, link, language, DIALECTS.values())
    found.shape = shape
    found.devices = devices
    body = language.write(found, remarks)
    missing = [remark for remark in remarks.listed if remark.kind == "left out"]
    if missing and not lenient:
        more = f" ({len(missing) - 1} more)" if len(missing) > 1 else ""
        said = f"{origin}: {missing[0].place}: {missing[0].text}{more}"
        raise PerhopError(f"{said}; change it, or leave it out with --lenient")
    naming = f"The interface is called {found.name}, as the link is: write the name of yours."
    naming = "" if language.native else naming
    comments = [f"{found.place} of {origin}, written by perhop export."]
    comments += [_one_line(naming)] if naming else []
    comments += [_one_line(f"{r.kind}: {r.place}: {r.text}") for r in remarks.listed]
    head = [f"{language.comment} {text}" for text in comments]
    return Exported(dialect, found.name, "\n".join([*head, *body]) + "\n", tuple(remarks.listed), naming)


def _one_line(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)
