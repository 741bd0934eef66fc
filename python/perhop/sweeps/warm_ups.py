"""What sweeps, searches and plans say of the warm-ups that were found for their scenarios."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from perhop.plurals import counted
from perhop.runs import warming
from perhop.runs.companions import SETTLES, WARMUP
from perhop.show.numbers import exact

MOST_NAMED = 3
"""Scenarios that a sentence names."""
UNSETTLED = "it has no steady state"
"""The reason where only the runs have shown that the whole run counts."""


@dataclass(frozen=True, slots=True)
class Found:
    """The warm-up that was found for a scenario.

    Attributes:
        name: What it is called.
        seconds: The warm-up; 0 if the whole run counts.
        settles: Whether the runs settle within their first half.
        why: The reason why they do not; empty if they do.
    """

    name: str
    seconds: float
    settles: bool
    why: str = ""

    def json(self) -> dict[str, object]:
        """The values for JSON."""
        why = {} if self.settles else {"why": self.why}
        return {"warmup_s": self.seconds, "settles": self.settles, **why}


def found_in(name: str, scenario: str, measured: Mapping[str, float]) -> Found | None:
    """The warm-up of a scenario by what one of its runs has measured; None where it was not found.

    Args:
        name: What the scenario is called.
        scenario: Canonical JSON.
        measured: Measures and companions by name.
    """
    if WARMUP not in measured:
        return None
    seconds = measured[WARMUP]
    if measured[SETTLES] == 1:
        return Found(name, seconds, settles=True)
    why = "it has not settled by then" if seconds else warming.whole_run(json.loads(scenario)) or UNSETTLED
    return Found(name, seconds, settles=False, why=why)


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
    late = [one for one in found if one.seconds and not one.settles]
    if late:
        yield f"Half of the run is left out, as it has not settled by then, at {_named(late, of, what)}."
    whole = [one for one in found if not one.seconds and not one.settles]
    if whole:
        yield f"The whole run counts at {_named(whole, of, what)}, as {whole[0].why}."


def _named(found: Sequence[Found], of: int, what: str) -> str:
    """How many scenarios these are, and which: `2 of 4 points (limit = 0p, limit = 2p)`."""
    names = ", ".join(one.name for one in found[:MOST_NAMED]) + (", …" if len(found) > MOST_NAMED else "")
    return f"{len(found)} of {counted(of, what)} ({names})"
