"""The measured coverage as rows of validity.json, and as the tables of validity.md (docs/project)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tools.coverage.settings import SETTINGS

from perhop.measures import naming
from perhop.measures.run import COLORS
from perhop.statistics.proportions import interval

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tools.coverage.measuring import Covered

Entry = dict[str, Any]

WANTED = 0.95
NEAR = 0.02
"""The largest distance of a measured coverage from 95 %."""
_DROPPED = {f"dropped_{color}" for color in COLORS}
WHERE = {"tables": "in tables", "sweeps": "in sweeps", "differences": "of differences"}
"""The places of intervals, in words."""
KINDS = ("means", "shares", "percentiles of waits", "finite flows", "users and calls")


def content(rows: Sequence[Covered], of: str) -> str:
    """The text of docs/project/coverage.json.

    Args:
        rows: All that was measured.
        of: With what.
    """
    columns = dict.fromkeys(f"{row.method} {row.runs}" for row in sorted(rows, key=_order))
    lines = ",\n".join(f"  {json.dumps(entry)}" for entry in entries(rows))
    return f'{{"of": {json.dumps(of)}, "columns": {json.dumps([*columns])}, "rows": [\n{lines}\n]}}\n'


def _order(row: Covered) -> tuple[bool, int]:
    return row.method != "t", row.runs


def entries(rows: Iterable[Covered]) -> list[Entry]:
    """One entry for each measure: how often each method covers it, by the number of runs.

    The list of a method and number is: groups with an interval, of these below and above the true value, and
    groups without an interval.
    """
    found: dict[tuple[str, str, str], Entry] = {}
    for row in rows:
        entry = found.setdefault(
            (row.scenario, row.where, row.measure),
            {
                "scenario": row.scenario,
                "where": row.where,
                "measure": row.measure,
                "truth": [float(f"{end:.5g}") for end in row.truth],
            },
        )
        entry[f"{row.method} {row.runs}"] = [row.groups, row.below, row.above, row.without]
    return list(found.values())


@dataclass(frozen=True, slots=True)
class Share:
    """A count of intervals that cover."""

    covered: int
    groups: int

    @property
    def share(self) -> float:
        """As a fraction; 1 of none."""
        return self.covered / self.groups if self.groups else 1.0

    @property
    def text(self) -> str:
        """`94.8 (93.3–96.1)`: percent, with Clopper and Pearson's 95 % interval."""
        if not self.groups:
            return "–"
        low, high = interval(self.share, self.groups)
        return f"{100 * self.share:.1f} ({100 * low:.1f}–{100 * high:.1f})"


def share_of(entry: Mapping[str, Any], column: str) -> Share:
    """Return the coverage of one measure by one method and number of runs."""
    groups, below, above, _ = entry.get(column, (0, 0, 0, 0))
    return Share(groups - below - above, groups)


def kind_of(measure: str) -> str:
    """Return the kind of the measure, one of `KINDS`."""
    place, _, last = measure.rpartition(".")
    if place.startswith("populations."):
        return "finite flows"
    if place.startswith("applications."):
        return "users and calls"
    if last == "delay_variation_s" or naming.percentile(measure) is not None:
        return "percentiles of waits"
    is_share = naming.unit_of_metric(measure) == "fraction" or last in _DROPPED
    return "shares" if is_share else "means"


def shown(found: Mapping[str, Any]) -> Entry:
    """Return the section of the page on the entries.

    Args:
        found: `of`, `columns` (method and number of runs of each column) and `rows`, as in the JSON file.
    """
    rows, columns = found["rows"], found["columns"]
    groups = [(kind, "tables") for kind in KINDS]
    groups += [("in sweeps", "sweeps"), ("paired differences", "differences")]
    lines = []
    for name, setting in SETTINGS.items():
        for label, where in groups:
            some = [
                row
                for row in rows
                if (row["scenario"], row["where"]) == (name, where)
                and (label not in KINDS or label == kind_of(row["measure"]))
            ]
            if some:
                lines.append([setting.kind, label, len(some), *(_summary(some, one) for one in columns)])
    measures = [
        [row["scenario"], row["measure"], *(share_of(row, one).text for one in columns)]
        for row in rows
        if row["where"] == "tables"
    ]
    return {
        "of": found["of"],
        "heads": [_head(one) for one in columns],
        "lines": lines,
        "measures": measures,
        "enough": [[label, *(_near(rows, where, one) for one in columns)] for where, label in WHERE.items()],
    }


def _summary(rows: Sequence[Mapping[str, Any]], column: str) -> str:
    shares = [share_of(row, column) for row in rows]
    known = [one for one in shares if one.groups]
    if not known:
        return "–"
    mean = sum(one.share for one in known) / len(known)
    return f"{100 * mean:.1f}; {100 * min(one.share for one in known):.1f}"


def _near(rows: Sequence[Mapping[str, Any]], where: str, column: str) -> str:
    """Return a count of the measures whose coverage is 95 %, within `NEAR` or what chance allows."""
    shares = [share_of(row, column) for row in rows if row["where"] == where]
    known = [one for one in shares if one.groups]
    enough = sum(interval(one.share, one.groups)[1] >= WANTED - NEAR for one in known)
    return f"{enough} of {len(known)}"


def _head(column: str) -> str:
    method, runs = column.split()
    return f"{'t of the runs’ values' if method == 't' else 'perhop'}, {runs} runs"
