"""What a search tries next: every setting once where there are few, else what Optuna's sampler proposes.

A sampler may propose a setting again, more often the smaller the space of settings is. A repeat is no trial:
it has its runs already, and would say nothing new. The sampler is asked again, and if it goes on to repeat
itself, an untried setting is drawn.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from perhop import extras
from perhop.scenario.ranges import Range, Value

try:
    import optuna
    from optuna.samplers import NSGAIISampler, TPESampler
    from optuna.study import StudyDirection
    from optuna.trial import TrialState
except ImportError:
    raise extras.TUNE.missing from None

if TYPE_CHECKING:
    from perhop.sweeps.tuning import Choice, TuningPlan

MOST_REPEATS = 20
"""So often in a row a sampler may repeat itself before an untried setting is drawn."""

Setting = Mapping[str, Value]


class Proposals:
    """Proposes settings, none twice, and lets the sampler learn of them."""

    def __init__(self, plan: TuningPlan) -> None:
        self._plan = plan
        self.total = plan.trials
        self._every: Iterator[Setting] | None = None
        if plan.size is not None and plan.size <= plan.trials:
            self.total = plan.size
            self._every = settings(plan.search)
            return
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        directions = [
            StudyDirection.MAXIMIZE if objective.maximize else StudyDirection.MINIMIZE
            for objective in plan.objectives
        ]
        self._study = optuna.create_study(directions=directions, sampler=_sampler(plan))
        self._asked: dict[tuple[Value, ...], optuna.Trial] = {}

    def next(self) -> Setting:
        """A setting that was not proposed before.

        It has all its factors before another is asked for, so that the sampler keeps away from it.
        """
        if self._every is not None:
            return next(self._every)
        for _ in range(MOST_REPEATS):
            asked, setting = self._ask()
            if _key(setting) not in self._asked:
                break
            self._study.tell(asked, state=TrialState.FAIL)
        else:
            self._study.enqueue_trial(self._untried())
            asked, setting = self._ask()
        self._asked[_key(setting)] = asked
        return setting

    def tell(self, setting: Setting, values: Sequence[float] | None, violations: Mapping[str, float]) -> None:
        """Let the sampler learn of a setting that it proposed.

        Args:
            setting: As `next` gave it.
            values: Of the objectives; None where it has none.
            violations: By how much each constraint is missed, at most 0 where it is kept.
        """
        if self._every is not None:
            return
        asked = self._asked[_key(setting)]
        if values is None:
            self._study.tell(asked, state=TrialState.FAIL)
            return
        for text, violation in violations.items():
            asked.set_constraint(text, violation)
        self._study.tell(asked, list(values))

    def _ask(self) -> tuple[optuna.Trial, Setting]:
        asked = self._study.ask()
        return asked, {name: _suggested(asked, name, entry) for name, entry in self._plan.search.items()}

    def _untried(self) -> dict[str, Value | float]:
        """The parameters of a setting that was not proposed, drawn by the seed."""
        random = np.random.default_rng([self._plan.seed, len(self._asked)])
        while True:
            drawn = {name: _drawn(random, entry) for name, entry in self._plan.search.items()}
            setting = {
                name: entry.value(float(drawn[name])) if isinstance(entry, Range) else drawn[name]
                for name, entry in self._plan.search.items()
            }
            if _key(setting) not in self._asked:
                return drawn


def settings(search: Mapping[str, Range | Choice]) -> Iterator[Setting]:
    """Every setting of a finite space once, the last factor changing first."""
    columns = [list(_values(entry)) for entry in search.values()]
    for row in itertools.product(*columns):
        yield dict(zip(search, row, strict=True))


def _values(entry: Range | Choice) -> Iterator[Value]:
    if isinstance(entry, Range):
        yield from (entry.value(number) for number in range(int(entry.low), int(entry.high) + 1))
    else:
        yield from entry.values


def _key(setting: Mapping[str, Value]) -> tuple[Value, ...]:
    return tuple(setting.values())


def _sampler(plan: TuningPlan) -> optuna.samplers.BaseSampler:
    if plan.sampler == "nsga-ii":
        return NSGAIISampler(population_size=plan.population, seed=plan.seed)
    # Trials of the same batch count as bad ones, so that the next proposal keeps away from them.
    return TPESampler(seed=plan.seed, constant_liar=True)


def _suggested(trial: optuna.Trial, name: str, entry: Range | Choice) -> Value:
    if not isinstance(entry, Range):
        values = list(entry.values)
        chosen = trial.suggest_categorical(name, values)
        return next(value for value in values if value == chosen and type(value) is type(chosen))
    if entry.whole:
        return entry.value(trial.suggest_int(name, int(entry.low), int(entry.high), log=entry.log))
    return entry.value(trial.suggest_float(name, entry.low, entry.high, log=entry.log))


def _drawn(random: np.random.Generator, entry: Range | Choice) -> Value | float:
    """A parameter as the sampler has it."""
    if not isinstance(entry, Range):
        return list(entry.values)[int(random.integers(len(entry.values)))]
    if entry.whole:
        return int(random.integers(int(entry.low), int(entry.high) + 1))
    if entry.log:
        return math.exp(random.uniform(math.log(entry.low), math.log(entry.high)))
    return float(random.uniform(entry.low, entry.high))
