"""Whether objectives hold in what runs measured: holds, breaks, or cannot tell, and by what margin.

An objective is about the mean over runs, which its 95 % t interval bounds (`perhop.judging`), or about the
share of runs that keep a bound; then the interval is that of Clopper and Pearson (1934).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perhop import judging
from perhop.statistics import MOST_RUNS, UPPER, Estimate, estimate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

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
class Verdict:
    """What runs say of an objective.

    Attributes:
        holds: None where they cannot tell.
        found: The mean over the runs, in the bound's unit; None where a run has no value.
        margin: See `perhop.planning.objectives.Objective.margin`.
        share: Of an objective for a share of the runs.
        values: Of each run, in the order of the seeds; NaN where one has none.
        runs_needed: Where the runs cannot tell: roughly how many would, if mean and spread stay as they are;
            None where it is decided, or where no affordable number would do.
    """

    bound: Bound
    holds: bool | None
    found: Estimate | None
    margin: Estimate | None
    share: Share | None
    values: tuple[float, ...]
    runs_needed: int | None = None

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
        """How many runs have no value, such as where no page was complete."""
        return sum(math.isnan(value) for value in self.values)


def judge(bound: Bound, observed: Mapping[str, Sequence[float]]) -> Verdict:
    """Judge an objective.

    Args:
        bound: The objective with its metrics.
        observed: Values by metric, one for each run in the order of the seeds; NaN where a run has none.
    """
    objective = bound.objective
    values = tuple(bound.value(run) for run in by_run(observed, bound.metrics))
    if any(map(math.isnan, values)):
        return Verdict(bound, None, None, None, None, values)
    found = estimate(values)
    margin = estimate([objective.margin(value) for value in values])
    if objective.runs is not None:
        share = _share([objective.met(value) for value in values])
        holds = True if share.low >= objective.runs else False if share.high < objective.runs else None
        needed = _runs_for_all(objective.runs) if holds is None and share.kept == share.runs else None
        return Verdict(bound, holds, found, margin, share, values, needed)
    compare = {
        "<": judging.below,
        "<=": judging.at_most,
        ">": judging.above,
        ">=": judging.at_least,
    }[objective.comparison]
    check = compare(found, objective.bound)
    return Verdict(bound, check.holds, found, margin, None, values, check.runs_needed)


def by_run(observed: Mapping[str, Sequence[float]], metrics: Sequence[str]) -> list[dict[str, float]]:
    """The values of some metrics run by run; a metric that no run has is left out."""
    known = [name for name in metrics if name in observed]
    runs = max((len(values) for values in observed.values()), default=0)
    return [{name: observed[name][run] for name in known} for run in range(runs)]


def smallest_margins(bounds: Sequence[Bound], observed: Mapping[str, Sequence[float]]) -> list[float]:
    """The smallest margin of all objectives in each run; NaN where one has no value there."""
    return [min(margins, default=math.nan) for margins in _margins(bounds, observed)]


def score(bounds: Sequence[Bound], observed: Mapping[str, Sequence[float]]) -> float:
    """What a search maximizes: the lowest end of all margins' intervals, and a tenth of their mean.

    The lowest end is what makes all objectives hold surely; a setting that varies from run to run has a low
    one. The mean decides where that end does not depend on what is searched; none counts there for less than
    -1, so that one objective far from its bound does not hide the others.

    Returns:
        NaN where a run lacks a value.
    """
    margins = _margins(bounds, observed)
    if not margins or not all(margins):
        return math.nan
    lows = [estimate(of_bound).low for of_bound in zip(*margins, strict=True)]
    return min(lows) + TIE_BREAK * math.fsum(max(low, -1.0) for low in lows) / len(lows)


def _margins(bounds: Sequence[Bound], observed: Mapping[str, Sequence[float]]) -> list[list[float]]:
    """The margins of all objectives, run by run; none of a run in which one has no value."""
    metrics = [name for bound in bounds for name in bound.metrics]
    listed = [
        [bound.objective.margin(bound.value(run)) for bound in bounds] for run in by_run(observed, metrics)
    ]
    return [[] if any(map(math.isnan, margins)) else margins for margins in listed]


def _share(kept: Sequence[bool]) -> Share:
    k, n = sum(kept), len(kept)
    tail = 1.0 - UPPER
    low = 0.0 if k == 0 else _root(lambda p: 1.0 - _binomial(k - 1, n, p) - tail)
    high = 1.0 if k == n else _root(lambda p: tail - _binomial(k, n, p))
    return Share(k, n, low, high)


def _binomial(k: int, n: int, p: float) -> float:
    """The probability of at most k successes in n trials."""
    return math.fsum(math.comb(n, i) * p**i * (1.0 - p) ** (n - i) for i in range(k + 1))


def _root(rising: Callable[[float], float]) -> float:
    """Where a rising function of a probability is zero, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if rising(middle) > 0 else (middle, high)
    return (low + high) / 2


def _runs_for_all(share: float) -> int | None:
    """How many runs, all of which keep a bound, show that this share does: p^n is at most 2.5 %."""
    needed = math.ceil(math.log(1.0 - UPPER) / math.log(share))
    return needed if needed <= MOST_RUNS else None
