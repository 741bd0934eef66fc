"""Why runs have no value of a measure, in words that messages share."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping

from perhop.measures import finite_flows, listing
from perhop.plurals import counted

_CLAUSE = re.compile(r"[;,] (?:and )?(none (?!where they leave)[^(]*?)(?: \([^)]*\))?\.$")
"""The clause of a measure's description on flows, links or users without a value."""
_OF_WHAT_ENDS = ("completion_", "slowdown", "page_", "response_", "startup_")
"""First parts of the names of measures of transfers, pages, responses and first chunks."""
NOTHING = "nothing was measured after the warm-up"


def why(metric: str, runs: int, key: str = "`runs`") -> str:
    """Why runs have no value of a metric of sweeps, and what to change where that helps.

    Args:
        metric: Its name, such as `flows.bulk.completion_s`.
        runs: How many runs there are.
        key: What says so.
    """
    if finite_flows.needs_many(metric):
        return (
            f"it needs at least {finite_flows.FEWEST_FOR_P99} flows in the {counted(runs, 'run')} together, "
            f"nearly all finished: raise {key}, or `duration` in the scenario"
        )
    last = metric.rpartition(".")[2]
    if last.startswith(_OF_WHAT_ENDS):
        return (
            "none that began after the warm-up ended within a run, or too few did: raise `duration` in the "
            "scenario"
        )
    return _clauses().get((metric.partition(".")[0], last), NOTHING)


@functools.cache
def _clauses() -> Mapping[tuple[str, str], str]:
    """Clauses that say for which flows, links or users a metric has no value, by its first and last part."""
    found = {}
    for line in (line for lines in listing.lines().values() for line in lines if line.metric):
        if (clause := _CLAUSE.search(line.description)) is not None:
            found[line.metric.partition(".")[0], line.metric.rpartition(".")[2]] = clause[1]
    return found
