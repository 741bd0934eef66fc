"""What sweeps, searches and plans say of the warm-ups that were found for their scenarios."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from perhop.plurals import counted
from perhop.scenario.warmup import duration_ns
from perhop.show.numbers import exact


@dataclass(frozen=True, slots=True)
class Found:
    """The warm-up that was found for a scenario.

    Attributes:
        scenario: Canonical JSON.
        name: What it is called.
        seconds: The warm-up; 0 if the whole run counts.
    """

    scenario: str
    name: str
    seconds: float


def sentences(found: Sequence[Found], of: int, what: str) -> Iterator[str]:
    """Yield how long the warm-ups are, and where runs are too short for theirs; nothing where none was found.

    Args:
        found: In order.
        of: How many scenarios there are.
        what: One of them is called, such as `point`.
    """
    if not found:
        return
    least, most = (pick(one.seconds for one in found) for pick in (min, max))
    span = f"{exact(least)} s" if least == most else f"{exact(least)} to {exact(most)} s"
    span = span if most else "none is found, or the whole run counts"
    differ = "" if least == most else "; set one `warmup` where they should not differ"
    yield f"Warm-up, as `perhop run` finds it for each {what} that sets none: {span}{differ}."
    late = [one for one in found if 2 * one.seconds == duration_ns(json.loads(one.scenario)) / 1e9]
    if late:
        where = f"{len(late)} of {counted(of, what)}, first at {late[0].name}"
        yield f"Half of the run is left out, as it has not settled by then, at {where}."
