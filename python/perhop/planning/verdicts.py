"""Whether objectives hold in what runs measured: holds, breaks, or cannot tell, and by what margin.

An objective is about what all runs together give, which a 95 % interval bounds
(`perhop.statistics.observations`, `perhop.statistics.judging`), or about the share of runs that keep a bound;
then the interval is that of Clopper and Pearson (1934). Where an objective is about several groups of flows
or classes, it holds where it holds for each, and the worst is shown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from perhop.statistics import judging
from perhop.statistics.intervals import ALPHA, MOST_RUNS, UPPER, Estimate
from perhop.statistics.judging import Check
from perhop.statistics.multiplicity import holm, p_value
from perhop.statistics.observations import Observations

if TYPE_CHECKING:
    from perhop.planning.objectives import Bound

HOLDS, BREAKS, OPEN = "holds", "breaks", "cannot tell"
STATES: Mapping[bool | None, str] = {True: HOLDS, False: BREAKS, None: OPEN}
"""How a state reads."""
TIE_BREAK = 0.1
"""The weight of the mean beside the lowest, in what a search maximizes."""


@dataclass(frozen=True, slots=True)
class Share:
    """How many runs keep a bound.

    Attributes:
        kept: Runs that do.
        low: Lower end of the 95 % interval of the share.
        high: Its upper end.
    """

    kept: int
    runs: int
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ObjectiveVerdict:
    """What runs say of an objective.

    Attributes:
        holds: None where they cannot tell.
        found: What all runs give, in the bound's unit; None where a run has no value.
        margin: See `perhop.planning.objectives.Objective.margin`; of an objective for a share of the runs,
            `share_margin`.
        share: Of an objective for a share of the runs.
        values: Of each run, in the order of the seeds; NaN where one has none.
        runs_needed: Where the runs cannot tell: roughly how many would, if mean and spread stay as they are;
            None where it is decided, or where no affordable number would do.
        p: The two-sided p value of the statement that the bound is just met; at most 5 % where it is decided.
            None where a run has no value, and of a guarantee, by which no verdict errs.
        guaranteed: The bound of what the objective is about in any run (`perhop.planning.guarantees`), in the
            unit of the objective's; None without one.
    """

    bound: Bound
    holds: bool | None
    found: Estimate | None
    margin: Estimate | None
    share: Share | None
    values: tuple[float, ...]
    runs_needed: int | None = None
    p: float | None = None
    guaranteed: float | None = None

    @property
    def is_guaranteed(self) -> bool:
        """Whether the objective is kept in any run."""
        return self.guaranteed is not None and self.bound.objective.met(self.guaranteed)

    def beside(self, guaranteed: float | None) -> ObjectiveVerdict:
        """The verdict with the bound for any run; what it keeps holds where these runs cannot tell."""
        verdict = replace(self, guaranteed=guaranteed)
        if verdict.holds is None and verdict.is_guaranteed:
            return replace(verdict, holds=True, runs_needed=None, p=None)
        return verdict

    @property
    def state(self) -> str:
        """Holds, breaks, or cannot tell."""
        return STATES[self.holds]

    @property
    def text(self) -> str:
        """The objective as the file has it."""
        return self.bound.objective.text

    @property
    def missing(self) -> int:
        """Return how many runs have no value, such as where no page was complete."""
        return sum(math.isnan(value) for value in self.values)


def judge(bound: Bound, observed: Mapping[str, Observations]) -> ObjectiveVerdict:
    """Judge an objective.

    Args:
        bound: The objective with its metrics.
        observed: What the runs gave, by metric.
    """
    objective = bound.objective
    parts = [combined(part, observed) for part in bound.parts]
    values = _values(parts, upper=objective.upper)
    found = _estimates(bound, observed)
    if found is None or (objective.runs is not None and any(map(math.isnan, values))):
        return ObjectiveVerdict(bound, None, None, None, None, values)
    worst = (max if objective.upper else min)(found, key=lambda one: one.mean)
    if objective.runs is not None:
        share = _share([objective.met(value) for value in values])
        ends = (share.low, share.high) if share.runs > 1 else None
        margin = Estimate(share.kept / share.runs, ends, share.runs).mapped(objective.share_margin)
        holds = True if share.low >= objective.runs else False if share.high < objective.runs else None
        needed = _runs_for_all(objective.runs) if holds is None and share.kept == share.runs else None
        return ObjectiveVerdict(
            bound, holds, worst, margin, share, values, needed, _share_p(share, objective.runs)
        )
    compare = {
        "<": judging.below,
        "<=": judging.at_most,
        ">": judging.above,
        ">=": judging.at_least,
    }[objective.comparison]
    checks = [compare(one, objective.bound) for one in found]
    check = judging.all_of(*checks)
    p_values = [p_value(one, objective.bound) for one in found]
    p = None if None in p_values or bound.is_guarantee else max(p for p in p_values if p is not None)
    if check.holds is False:
        check, p = _broken(checks, p_values)
    margin = worst.mapped(objective.margin)
    return ObjectiveVerdict(bound, check.holds, worst, margin, None, values, check.runs_needed, p)


def _broken(checks: Sequence[Check], p_values: Sequence[float | None]) -> tuple[Check, float]:
    """Whether one of several groups surely misses its bound, and the p value, corrected for their number.

    Of many that just keep their bound, some miss it by chance more often than a single one does (Bonferroni).
    That all of them keep it needs no correction.
    """
    missed = [p for p, check in zip(p_values, checks, strict=True) if check.holds is False and p is not None]
    p = min(1.0, len(checks) * min(missed))
    return Check(False if len(checks) == 1 or p <= ALPHA else None), p


def corrected(verdicts: Sequence[ObjectiveVerdict]) -> list[tuple[bool | None, float | None]]:
    """The verdicts corrected for their number, with p values: all are right with 95 % (Holm 1979)."""
    adjusted = holm([verdict.p for verdict in verdicts])
    return [
        (verdict.holds if p is not None and p <= ALPHA else None, p)
        for verdict, p in zip(verdicts, adjusted, strict=True)
    ]


def _estimate(part: Sequence[str], observed: Mapping[str, Observations]) -> Estimate | None:
    """The losses of one subject of an objective. Without any in all runs, their bounds add up."""
    one = combined(part, observed)
    if one is None or not all(map(one.counts_in, range(len(one.values)))):
        return None
    found = one.estimate
    if found is None or found.ci95 is None or len(part) == 1 or found.mean > 0:
        return found
    known = [observed[metric].estimate for metric in part if metric in observed]
    kept = math.prod(1.0 - each.high for each in known if each is not None)
    return Estimate(0.0, (0.0, 1.0 - kept), found.runs, found.of)


def combined(part: Sequence[str], observed: Mapping[str, Observations]) -> Observations | None:
    """The runs' values of one subject of an objective; None where nothing was measured.

    Of several losses, in the order in which packets meet them, the share that one of them took.
    """
    first, *others = (observed.get(metric) for metric in part)
    if first is None or not any(others):
        return first
    kept = [1.0 - value for value in first.values]
    for one in others:
        if one is not None:
            kept = [k if math.isnan(v) else k * (1.0 - v) for k, v in zip(kept, one.values, strict=True)]
    return replace(first, values=tuple(1.0 - share for share in kept))


def _estimates(bound: Bound, observed: Mapping[str, Observations]) -> list[Estimate] | None:
    """The estimate of each part; None where a run lacks what one of them needs."""
    found = [_estimate(part, observed) for part in bound.parts]
    known = [one for one in found if one is not None]
    return known if len(known) == len(found) else None


def _values(parts: Sequence[Observations | None], *, upper: bool) -> tuple[float, ...]:
    """The worst part's own value in each run; NaN where one has none."""
    known = [one.values for one in parts if one is not None]
    if not known:
        return ()
    if len(known) < len(parts):
        return (math.nan,) * len(known[0])
    worst = max if upper else min
    return tuple(
        math.nan if any(map(math.isnan, values)) else worst(values) for values in zip(*known, strict=True)
    )


def smallest_margins(bounds: Sequence[Bound], observed: Mapping[str, Observations]) -> list[float]:
    """The smallest margin of all objectives in each run; NaN where one has no value there.

    A percentile counts in each run with what the run adds to that of all (`Observations.linear`), and a share
    of the runs as 0 or 1.
    """
    by_bound = []
    for bound in bounds:
        found = _worst(bound, observed)
        if found is None:
            return [math.nan] * max((len(one.values) for one in observed.values()), default=0)
        if bound.objective.runs is not None:
            own = _values([combined(part, observed) for part in bound.parts], upper=bound.objective.upper)
            if any(map(math.isnan, own)):
                return [math.nan] * len(own)
            by_bound.append([bound.objective.share_margin(float(bound.objective.met(one))) for one in own])
            continue
        values = found.linear(range(len(found.values)))
        by_bound.append([bound.objective.margin(value) for value in values])
    return [min(margins) for margins in zip(*by_bound, strict=True)]


def score(bounds: Sequence[Bound], observed: Mapping[str, Observations]) -> float:
    """What a search maximizes: the lowest end of all margins' intervals, and a tenth of their mean.

    The lowest end is what makes all objectives hold surely; a setting that varies from run to run has a low
    one. The mean decides where that end does not depend on what is searched; none counts there for less than
    -1, so that one objective far from its bound does not hide the others. A value whose upper end is not
    known counts as twice as large.

    Returns:
        NaN where a run lacks a value.
    """
    lows = []
    for bound in bounds:
        found = _estimates(bound, observed)
        if found is None:
            return math.nan
        for one in found:
            ends = (end if math.isfinite(end) else 2 * one.mean for end in (one.low, one.high))
            lows.append(min(map(bound.objective.margin, ends)))
    return min(lows) + TIE_BREAK * math.fsum(max(low, -1.0) for low in lows) / len(lows) if lows else math.nan


def _worst(bound: Bound, observed: Mapping[str, Observations]) -> Observations | None:
    """The worst subject of an objective; None where a run lacks what one of them needs."""
    found = _estimates(bound, observed)
    if found is None:
        return None
    pick = max if bound.objective.upper else min
    return combined(bound.parts[pick(range(len(found)), key=lambda place: found[place].mean)], observed)


def _share(kept: Sequence[bool]) -> Share:
    k, n = sum(kept), len(kept)
    tail = 1.0 - UPPER
    low = 0.0 if k == 0 else _root(lambda p: 1.0 - _binomial(k - 1, n, p) - tail)
    high = 1.0 if k == n else _root(lambda p: tail - _binomial(k, n, p))
    return Share(k, n, low, high)


def _share_p(share: Share, bound: float) -> float:
    """The two-sided p value of the statement that just this share of runs keeps a bound."""
    at_least = 1.0 - (_binomial(share.kept - 1, share.runs, bound) if share.kept else 0.0)
    return min(1.0, 2 * min(at_least, _binomial(share.kept, share.runs, bound)))


def _binomial(k: int, n: int, p: float) -> float:
    """The probability of at most k successes in n trials."""
    return math.fsum(math.comb(n, i) * p**i * (1.0 - p) ** (n - i) for i in range(k + 1))


def _root(rising: Callable[[float], float]) -> float:
    """Find the zero of a rising function of a probability, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if rising(middle) > 0 else (middle, high)
    return (low + high) / 2


def _runs_for_all(share: float) -> int | None:
    """Return how many runs, all of which keep a bound, show that this share does: p^n is at most 2.5 %."""
    needed = math.ceil(math.log(1.0 - UPPER) / math.log(share))
    return needed if needed <= MOST_RUNS else None
