"""Verdicts with three states: a claim holds, does not hold, or cannot be decided from the runs.

A `Check` holds one estimate against one bound by its 95 % interval: it holds where the whole interval lies
on the claimed side, it does not hold where the whole interval lies on the other side, and it is undecided
where the interval contains the bound. A claim that makes several statements combines checks by `all_of` and
`any_of`; `by_readings` combines what each reading of its sentence says, where there are several.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from perhop.statistics.intervals import Estimate, runs_to_exclude

STATES = {True: "holds", False: "does not hold", None: "cannot tell"}
"""The text of each state."""


@dataclass(frozen=True, slots=True)
class Check:
    """Whether one statement holds in what was measured.

    Attributes:
        holds: True, False, or None where the intervals leave it open.
        runs_needed: Where it is open: roughly how many runs of each cell would tell, if mean and spread
            stay what they are; None where it is decided, or where no affordable number would do.
    """

    holds: bool | None
    runs_needed: int | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether a claim holds in what was measured, and the numbers that say so.

    Attributes:
        holds: True, False, or None where the runs cannot tell.
        evidence: The measured numbers, as a sentence.
        runs_needed: As in `Check`.
        differ: It is open since two readings of the sentence disagree, whatever the number of runs.
    """

    holds: bool | None
    evidence: str
    runs_needed: int | None = None
    differ: bool = False


def judge(check: Check, evidence: str) -> Judgement:
    """The judgement of a claim that is this check."""
    return Judgement(check.holds, evidence, check.runs_needed)


def by_readings(found: Mapping[str, Judgement]) -> Judgement:
    """The judgement of a sentence that can be read in several ways: what all of its readings say.

    Args:
        found: The judgement of each reading, by its name.
    """
    states = {one.holds for one in found.values()}
    evidence = " ".join(f"“{name}”: {STATES[one.holds]}. {one.evidence}" for name, one in found.items())
    if {True, False} <= states:
        return Judgement(None, evidence, differ=True)
    if None in states:
        unsettled = [Check(one.holds, one.runs_needed) for one in found.values() if one.holds is None]
        return Judgement(None, evidence, _most(unsettled))
    return Judgement(states.pop(), evidence)


def fact(*, holds: bool) -> Check:
    """A statement without chance in it, such as one about the text or about a parameter."""
    return Check(holds)


def above(found: Estimate, bound: float = 0.0) -> Check:
    """The mean lies above the bound: the whole interval does."""
    return _compare(found, bound, holds=found.low > bound, fails=found.high <= bound)


def at_least(found: Estimate, bound: float) -> Check:
    """The mean is at least the bound: the whole interval is."""
    return _compare(found, bound, holds=found.low >= bound, fails=found.high < bound)


def below(found: Estimate, bound: float = 0.0) -> Check:
    """The mean lies below the bound: the whole interval does."""
    return _compare(found, bound, holds=found.high < bound, fails=found.low >= bound)


def at_most(found: Estimate, bound: float) -> Check:
    """The mean is at most the bound: the whole interval is."""
    return _compare(found, bound, holds=found.high <= bound, fails=found.low > bound)


def within(found: Estimate, low: float, high: float) -> Check:
    """The mean lies in [low, high]: the whole interval does."""
    return all_of(at_least(found, low), at_most(found, high))


def near(found: Estimate, target: float, tolerance: float) -> Check:
    """The mean differs from the target by at most the tolerance."""
    return within(found, target - tolerance, target + tolerance)


def opposite(check: Check) -> Check:
    """The statement's negation."""
    return Check(None if check.holds is None else not check.holds, check.runs_needed)


def all_of(*checks: Check) -> Check:
    """Judge whether every statement holds. Open ones matter only where none fails."""
    _some(checks)
    if any(check.holds is False for check in checks):
        return Check(holds=False)
    unsettled = [check for check in checks if check.holds is None]
    return Check(None, _most(unsettled)) if unsettled else Check(holds=True)


def any_of(*checks: Check) -> Check:
    """Judge whether at least one statement holds. Open ones matter only where none holds."""
    _some(checks)
    if any(check.holds for check in checks):
        return Check(holds=True)
    unsettled = [check for check in checks if check.holds is None]
    return Check(None, _least(unsettled)) if unsettled else Check(holds=False)


def at_least_of(wanted: int, checks: Iterable[Check]) -> Check:
    """Judge whether at least `wanted` of the statements hold, such as "most of the flows"."""
    listed = list(checks)
    _some(listed)
    certain = sum(check.holds is True for check in listed)
    unsettled = [check for check in listed if check.holds is None]
    if certain >= wanted:
        return Check(holds=True)
    if certain + len(unsettled) < wanted:
        return Check(holds=False)
    return Check(None, _most(unsettled))


def _compare(found: Estimate, bound: float, *, holds: bool, fails: bool) -> Check:
    if math.isnan(found.mean):
        return Check(None)
    if found.half_width is None:
        return Check(None, 2)
    if holds or fails:
        return Check(holds)
    return Check(None, runs_to_exclude(found, bound))


def _some(checks: Iterable[Check]) -> None:
    if not list(checks):
        raise ValueError("a verdict needs at least one check")


def _most(unsettled: Iterable[Check]) -> int | None:
    needed = [check.runs_needed for check in unsettled]
    return None if None in needed else max(n for n in needed if n is not None)


def _least(unsettled: Iterable[Check]) -> int | None:
    needed = [math.inf if check.runs_needed is None else check.runs_needed for check in unsettled]
    return None if math.isinf(min(needed)) else int(min(needed))
