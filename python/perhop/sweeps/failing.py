"""Reports of runs that failed: the point, the seed, and the error's text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from perhop.plurals import counted

if TYPE_CHECKING:
    from perhop.sweeps.run import Failure
    from perhop.sweeps.summary import PointSummary

MOST_LISTED = 20
"""Failed runs that a terminal or a page lists; JSON and the manifest have all."""


def ordered(failures: Sequence[Failure], keys: Sequence[str] = ()) -> tuple[Failure, ...]:
    """Failed runs by their points, in the order of these keys, and by seed: not by which ended first."""
    place = {key: number for number, key in reversed(list(enumerate(keys)))}
    return tuple(
        sorted(failures, key=lambda one: (place.get(one.point.key, len(place)), one.point.label, one.seed))
    )


def sentences(failures: Sequence[Failure], names: Mapping[str, str] | None = None) -> list[str]:
    """A sentence on how many runs failed, and one for each; none without any.

    Args:
        failures: In order.
        names: What points are called, by their keys, where it is not by their factors.
    """
    if not failures:
        return []
    points = len({one.point.key for one in failures})
    head = (
        f"{counted(len(failures), 'run')} failed, at {counted(points, 'point')}, which "
        f"{'has' if points == 1 else 'have'} no estimates:"
    )
    lines = [
        f"{', '.join(filter(None, (_name(one, names), f'seed {one.seed}')))}: {one.text}"
        for one in failures[:MOST_LISTED]
    ]
    more = len(failures) - MOST_LISTED
    return [head, *lines, *([f"and {more:,} more; --json lists all"] if more > 0 else [])]


def _name(failure: Failure, names: Mapping[str, str] | None) -> str:
    return (names or {}).get(failure.point.key) or failure.point.label


def count(failures: Sequence[Failure]) -> str:
    """How many runs failed, as the end of a line; nothing where none did."""
    return f"; {counted(len(failures), 'run')} failed" if failures else ""


def page(failures: Sequence[Failure], names: Mapping[str, str] | None = None) -> list[str]:
    """Format the failed runs as Markdown for the end of a page."""
    head, *lines = sentences(failures, names) or [""]
    return [f"**{head}**", *(f"- {line}" for line in lines)] if head else []


def as_json(failures: Sequence[Failure]) -> list[dict[str, Any]]:
    """Failed runs as JSON data."""
    return [
        {"factors": dict(one.point.factors), "scenario": one.point.key, "seed": one.seed, "error": one.text}
        for one in failures
    ]


def of_point(failures: Sequence[Failure], key: str) -> dict[str, Any]:
    """What a manifest says of a point of which runs failed: nothing where none did."""
    found = {str(one.seed): one.text for one in failures if one.point.key == key}
    return {"failed": found} if found else {}


def without_estimates(summaries: Sequence[PointSummary], failures: Sequence[Failure]) -> list[PointSummary]:
    """The summaries, but for points of which a run failed: those that are left may not stand for all."""
    failed = {one.point.key for one in failures}
    return [
        replace(one, estimates=dict.fromkeys(one.estimates), observed={}) if one.point.key in failed else one
        for one in summaries
    ]
