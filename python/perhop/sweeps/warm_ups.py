"""What sweeps, searches and plans say of the warm-ups that were found for their scenarios."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from perhop.plurals import counted
from perhop.runs.companions import SETTLES, WARMUP
from perhop.show.numbers import exact

MOST_NAMED = 3
"""Scenarios that a sentence names."""


@dataclass(frozen=True, slots=True)
class Found:
    """The warm-up that was found for a scenario.

    Attributes:
        name: What it is called.
        seconds: The warm-up; 0 if the whole run counts.
        settles: Whether the runs settle within their first half.
    """

    name: str
    seconds: float
    settles: bool

    def json(self) -> dict[str, object]:
        """The values for JSON."""
        return {"warmup_s": self.seconds, "settles": self.settles}


def found_in(name: str, measured: Mapping[str, float]) -> Found | None:
    """The warm-up of a scenario by what one of its runs has measured; None where it was not found.

    Args:
        name: What the scenario is called.
        measured: Measures and companions by name.
    """
    if WARMUP not in measured:
        return None
    return Found(name, measured[WARMUP], measured[SETTLES] == 1)


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
    late = [one.name for one in found if one.seconds and not one.settles]
    if late:
        names = ", ".join(late[:MOST_NAMED]) + (", …" if len(late) > MOST_NAMED else "")
        where = f"{len(late)} of {counted(of, what)}: {names}"
        yield f"Half of the run is left out, as it has not settled by then, at {where}."
