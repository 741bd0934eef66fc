"""A comparison as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from perhop.real_packets.equivalence import Key, Line
from perhop.real_packets.explain import Change, otherwise
from perhop.show.numbers import rounded
from perhop.statistics.intervals import Difference

if TYPE_CHECKING:
    from perhop.real_packets.report import Compared


def to_json(compared: Compared) -> str:
    """Everything, in the measures' own units."""
    content = {
        "scenarios": [
            {
                "name": name,
                "title": comparison.title or name,
                "seeds": {
                    "simulated": [run.seed for run in comparison.simulated.runs],
                    "live": [run.seed for run in comparison.valid],
                    "left_out": [r.seed for r in comparison.live.reports if not r.valid],
                },
                "lines": [_json_line(line) for line in comparison.lines],
                "otherwise": otherwise(comparison.live.scenario),
                "explained": [_json_change(change) for change in changes],
                "live": [{"seed": report.seed, **report.findings} for report in comparison.live.reports],
            }
            for name, comparison, changes in zip(
                compared.names,
                compared.comparisons,
                compared.changes or [()] * len(compared.names),
                strict=True,
            )
        ],
        "directions": [
            {
                **_name(one.key),
                "simulated": {"mean": rounded(one.simulated.mean), "ci95": _pair(one.simulated.ci95)},
                "live": None if one.live is None else _json_difference(one.live),
                "agree": one.agree,
            }
            for one in compared.directions
        ],
    }
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _name(key: Key) -> dict[str, str]:
    return {key.kind: key.name, "measure": key.measure, "unit": key.of.unit}


def _json_line(line: Line) -> dict[str, Any]:
    test = line.test
    estimates = {
        name: None
        if found is None
        else {"mean": rounded(found.mean), "ci95": _pair(found.ci95), "runs": found.runs}
        for name, found in (("simulated", line.simulated), ("live", line.live))
    }
    tested: dict[str, Any] = {"verdict": line.verdict}
    if test is not None:
        tested = {
            "difference": _json_difference(test.difference),
            "margin": rounded(test.margin),
            "p": None if test.p is None else rounded(test.p),
            "verdict": test.verdict,
            "runs_needed": test.runs_needed,
        }
    return {**_name(line.key), **estimates, **tested}


def _json_difference(found: Difference) -> dict[str, Any]:
    return {
        "mean": rounded(found.value),
        "ci90": _pair(found.interval(0.9)),
        "ci95": _pair(found.interval()),
        "degrees_of_freedom": None if found.freedom is None else rounded(found.freedom),
    }


def _json_change(change: Change) -> dict[str, Any]:
    variation = change.variation
    return {
        "id": variation.id,
        "text": variation.text,
        "where": variation.where,
        "sysctl": dict(variation.sysctl),
        "transport": dict(variation.transport),
        "runs": change.runs,
        "left_out": change.left_out,
        "changes": [
            {
                **_name(key),
                "change": _json_difference(found),
                "left": _json_difference(change.left[key]) if key in change.left else None,
            }
            for key, found in change.by.items()
        ],
    }


def _pair(ends: tuple[float, float] | None) -> list[float] | None:
    return None if ends is None else [rounded(end) for end in ends]
