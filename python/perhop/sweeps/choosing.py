"""Which of a search's best trials to take, from runs on fresh seeds: one, none, or a tie.

The best trials and the scenario as it is run on the same seeds, which no trial has used. By each objective
they are distinguished as `perhop.statistics.multiplicity.ranking` does; with several objectives each has its
part of the 5 %. With one objective the best by it is taken. With several it is the nearest to the best values
of all, each measured as a part of its range over the trials (Euclid's distance). How sure that is follows
from the jackknife over seeds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from perhop.statistics.intervals import ALPHA, Estimate, half_width_of
from perhop.statistics.multiplicity import Ranking, of_extremes, ranking
from perhop.statistics.observations import Observations

if TYPE_CHECKING:
    from perhop.sweeps.tuning import Objective

_SAME = 1e-9
"""Distances that differ by less are equal."""


@dataclass(frozen=True, slots=True)
class Validated:
    """What a setting gives on fresh seeds.

    Attributes:
        key: Of its scenario.
        estimates: By metric; None where a run has no value.
        observed: What the runs gave, by metric; None likewise.
        holds: Every constraint is kept, by the intervals; False where one is missed, and None where the runs
            cannot tell.
    """

    key: str
    estimates: Mapping[str, Estimate | None]
    observed: Mapping[str, Observations | None] = field(repr=False)
    holds: bool | None


@dataclass(frozen=True, slots=True)
class Choice:
    """Which of several trials to take; trials by their places.

    Attributes:
        best: The best on fresh seeds; None where there is none, or several are equally good.
        tied: Those that are equally near to the best values of all objectives, where they are several.
        alike: Settings that cannot be distinguished from the best one.
        differ: Some two of the trials, or of them and the scenario as it is, surely differ.
        compared: The scenario as it is has a value of every objective.
        is_as_it_is: The best one is the scenario as it is.
        better: Metrics of the objectives by which the best one is surely better than as it is.
        worse: Those by which it is surely worse.
        ahead: Trials that are surely better than as it is by an objective, and surely worse by none.
    """

    best: int | None
    tied: tuple[int, ...] = ()
    alike: tuple[int, ...] = ()
    differ: bool = False
    compared: bool = False
    is_as_it_is: bool = False
    better: tuple[str, ...] = ()
    worse: tuple[str, ...] = ()
    ahead: tuple[int, ...] = ()

    @property
    def marked(self) -> tuple[int, ...]:
        """The trials to take: none where nothing is surely better than as it is; all that are tied."""
        if not self.differ and (self.compared or self.alike):
            return ()
        if self.best is None:
            return self.tied
        return (self.best,) if self.better or not self.compared else ()


def choose(
    objectives: Sequence[Objective], trials: Sequence[Validated], as_it_is: Validated | None
) -> Choice:
    """Which trial to take.

    Args:
        objectives: What to make small or large.
        trials: The best of a search, each with a value of every objective on the search's seeds.
        as_it_is: None where it is no scenario.
    """
    complete = [place for place, one in enumerate(trials) if _complete(one, objectives)]
    known = [place for place in complete if trials[place].holds]
    known = known or [place for place in complete if trials[place].holds is None] or complete
    if not known:
        return Choice(None)
    compared = as_it_is is not None and _complete(as_it_is, objectives)
    others = [trials[place] for place in known]
    own = others + ([as_it_is] if as_it_is is not None and compared else [])
    ranks = {
        objective.metric: ranking([one.observed[objective.metric] for one in own], ALPHA / len(objectives))
        for objective in objectives
    }
    differ = any(found.below for found in ranks.values())
    distances = _distances(objectives, np.array([_means(objectives, one) for one in others]))
    nearest = np.flatnonzero(distances <= distances.min() + _SAME)
    last = len(known)
    sides = [
        [_side(one, ranks[one.metric], i, last) if compared else 0 for one in objectives] for i in range(last)
    ]
    ahead = tuple(known[i] for i in range(last) if max(sides[i]) > 0 and min(sides[i]) >= 0)
    if len(objectives) > 1 and len(nearest) > 1:
        tied = tuple(known[i] for i in nearest)
        return Choice(None, tied, differ=differ, compared=compared, ahead=ahead)
    best = int(distances.argmin())
    if len(objectives) == 1:
        alike = [i for i in range(last) if i != best and not ranks[objectives[0].metric].apart(i, best)]
    else:
        alike = _as_near(objectives, others, best)
    return Choice(
        known[best],
        alike=tuple(known[i] for i in alike),
        differ=differ,
        compared=compared,
        is_as_it_is=as_it_is is not None and others[best].key == as_it_is.key,
        better=tuple(one.metric for one, side in zip(objectives, sides[best], strict=True) if side > 0),
        worse=tuple(one.metric for one, side in zip(objectives, sides[best], strict=True) if side < 0),
        ahead=ahead,
    )


def _complete(one: Validated, objectives: Sequence[Objective]) -> bool:
    return all(
        (found := one.estimates[objective.metric]) is not None and math.isfinite(found.mean)
        for objective in objectives
    )


def _side(objective: Objective, found: Ranking, best: int, other: int) -> int:
    """1 where the best is surely better than another by this objective, -1 where it is surely worse."""
    lower = ((best, other) in found.below) - ((other, best) in found.below)
    return -lower if objective.maximize else lower


def _means(objectives: Sequence[Objective], one: Validated) -> list[float]:
    """The objectives, each the better the smaller."""
    found = [one.estimates[objective.metric] for objective in objectives]
    return [
        math.nan if value is None else -value.mean if objective.maximize else value.mean
        for objective, value in zip(objectives, found, strict=True)
    ]


def _distances(objectives: Sequence[Objective], costs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how far each trial is from the best values of all objectives; costs: f64[trials, objectives]."""
    if len(objectives) == 1:
        return np.asarray(costs[:, 0])
    best, worst = costs.min(axis=0), costs.max(axis=0)
    span = np.where(worst > best, worst - best, 1.0)
    return np.asarray(np.sqrt((((costs - best) / span) ** 2).sum(axis=1)))


def _as_near(objectives: Sequence[Objective], trials: Sequence[Validated], best: int) -> list[int]:
    """The trials of which it is not sure that they are farther from the best values than the nearest."""
    runs = min(len(_values(one, objectives[0])) for one in trials)
    if runs < 2:
        return [i for i in range(len(trials)) if i != best]
    values = np.array([[_linear(one, objective) for objective in objectives] for one in trials])
    whole = _distances(objectives, values.mean(axis=2))
    left = (values.sum(axis=2)[:, :, None] - values) / (runs - 1)
    without = np.array([_distances(objectives, left[:, :, run]) for run in range(runs)])
    pseudo = runs * whole - (runs - 1) * without  # f64[runs, trials]
    found = []
    for other in range(len(trials)):
        farther = pseudo[:, other] - pseudo[:, best]
        half = half_width_of(farther.tolist(), runs)
        mean = float(whole[other] - whole[best])
        sure = of_extremes(Estimate(mean, (mean - half, mean + half), runs), max(2, len(trials)))
        if other != best and sure.low <= 0:
            found.append(other)
    return found


def _values(one: Validated, objective: Objective) -> Sequence[float]:
    found = one.observed[objective.metric]
    assert found is not None
    return found.values


def _linear(one: Validated, objective: Objective) -> list[float]:
    found = one.observed[objective.metric]
    assert found is not None
    sign = -1.0 if objective.maximize else 1.0
    return [sign * value for value in found.linear(range(len(found.values)))]
