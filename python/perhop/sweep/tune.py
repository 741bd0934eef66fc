"""The search: Optuna proposes, the store's runs answer, the winners are run again on fresh seeds.

Trials are proposed in batches. The runs of a batch are computed together, on all cores, and the sampler
learns of them in the order of the trials. The size of a batch is the file's and not the machine's, so the
same trials are proposed for any number of jobs.

Nothing but the runs is kept. A search is a function of its file: a sampler with a fixed seed proposes the
same trials again, and their runs are found in the store. So it goes on where it stopped, by the same
guarantees as a sweep, and there is no second record that could disagree or break.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perhop import extras, interrupts
from perhop.errors import ScenarioError
from perhop.output.table import continued, prose, records
from perhop.statistics import Estimate
from perhop.sweep.job import Workplace, kept, open_backend
from perhop.sweep.metrics import engine_id
from perhop.sweep.run import Counts, Runner
from perhop.sweep.space import Range, Value, text_of
from perhop.sweep.store import SweepStore
from perhop.sweep.summary import (
    MOST_COLUMNS,
    MOST_LINES,
    estimate_json,
    short_names,
    shown_name,
    shown_text,
)
from perhop.sweep.tuning import literal
from perhop.wording import counted

try:
    import optuna
    from optuna.samplers import NSGAIISampler, TPESampler
    from optuna.study import StudyDirection
    from optuna.trial import TrialState
except ImportError:
    raise extras.TUNE.missing from None

if TYPE_CHECKING:
    from perhop.observations import Observations
    from perhop.sweep.plan import Point
    from perhop.sweep.run import Progress
    from perhop.sweep.tuning import TuningPlan


RECOMMENDED = "★"
"""Marks the trial to take."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One setting that was tried.

    Attributes:
        number: From 0, in the order of the proposals.
        point: None where the setting makes no scenario.
        found: Estimates over the trial's runs, by metric; None where a run has no value.
        feasible: Every constraint is kept, by the mean.
    """

    number: int
    factors: Mapping[str, Value]
    point: Point | None
    found: Mapping[str, Estimate | None]
    feasible: bool


@dataclass(frozen=True, slots=True)
class Winner:
    """A trial that no other beats, with what it gives on fresh seeds.

    Attributes:
        fresh: Estimates over the validation's runs, by metric.
        holds: Every constraint is kept there, too, by the mean.
    """

    trial: Trial
    fresh: Mapping[str, Estimate | None]
    holds: bool


@dataclass(frozen=True, slots=True)
class Tuned:
    """A finished search.

    Attributes:
        front: The winners, by the first objective: one, or the Pareto front of several objectives.
        work: What it cost.
    """

    plan: TuningPlan
    trials: Sequence[Trial]
    front: Sequence[Winner]
    work: Counts

    def text(self, width: int | None = None) -> str:
        """The winners as plain text for a terminal of that width; None for no limit."""
        best = recommended(self)
        answer = [] if best is None or len(self.front) == 1 else [self._recommendation(best)]
        parts = [prose(line, width) for line in (self.plan.title, *answer, *self.lead())]
        for table in self.tables(width):
            parts += ["", *records(table[:MOST_LINES], width)]
        return "\n".join(parts)

    def _recommendation(self, best: Winner) -> str:
        """The trial to take, with its setting as a file would have it."""
        short = short_names(list(self.plan.search))
        factors = ", ".join(f"{short[name]} = {text_of(value)}" for name, value in best.trial.factors.items())
        return (
            f"Recommended: {factors} (trial {best.trial.number}), the nearest to the best values of all "
            "objectives on fresh seeds"
        )

    def lead(self) -> list[str]:
        """What was searched and how it ended, in sentences."""
        plan = self.plan
        feasible = sum(trial.feasible for trial in self.trials)
        refused = sum(trial.point is None for trial in self.trials)
        goals = (entry.text.replace(entry.metric, _plain(entry.metric)) for entry in plan.objectives)
        goal = "; ".join(goals)
        bounds = ", ".join(
            entry.text.replace(entry.metric, _plain(entry.metric)) for entry in plan.constraints
        )
        lines = [
            f"{goal}, subject to {bounds}" if bounds else goal,
            f"{counted(len(self.trials), 'trial')} of {counted(plan.runs, 'run')}, "
            f"{feasible} within the constraints" + (f", {refused} were no valid scenario" if refused else ""),
        ]
        if not self.front:
            return [*lines, "No trial keeps the constraints; widen the search, or relax them."]
        seeds = plan.validation_seeds
        what = "The best trial" if len(plan.objectives) == 1 else f"The Pareto front of {len(self.front)}"
        return [
            *lines,
            (
                f"{what}, run again on fresh seeds ({seeds[0]} to {seeds[-1]}), with 95 % intervals; "
                "the column “searched” has the values by which the search chose, which are biased."
            ),
        ]

    def tables(self, width: int | None = MOST_COLUMNS) -> list[list[dict[str, str]]]:
        """One line for each winner: what fresh seeds say of it, and what the search saw of its objectives."""
        short = short_names(list(self.plan.search))
        best = recommended(self) if len(self.front) > 1 else None
        lines = []
        for winner in self.front:
            line = {"trial": f"{winner.trial.number}{' ' + RECOMMENDED if winner is best else ''}"}
            line |= {short[name]: text_of(value) for name, value in winner.trial.factors.items()}
            goals = [objective.metric for objective in self.plan.objectives]
            bounds = [name for name in self.plan.metrics if name not in goals]
            line |= {shown_name(name): shown_text(winner.fresh[name], name) for name in goals}
            line["searched"] = ", ".join(shown_text(_mean(winner.trial.found[name]), name) for name in goals)
            line |= {shown_name(name): shown_text(winner.fresh[name], name) for name in bounds}
            if self.plan.constraints:
                line["constraints"] = "kept" if winner.holds else "missed"
            lines.append(line)
        return continued(lines, 1 + len(short), width) if lines else []

    def json(self) -> str:
        """The search as JSON text, byte for byte the same for the same file and engine."""
        plan = self.plan
        content = {
            "title": plan.title,
            "engine": engine_id(),
            "objectives": [objective.text for objective in plan.objectives],
            "constraints": [entry.text for entry in plan.constraints],
            "seeds": [plan.seeds[0], plan.seeds[-1]],
            "validation_seeds": [plan.validation_seeds[0], plan.validation_seeds[-1]],
            "trials": [_trial_json(trial) for trial in self.trials],
            "front": [
                {
                    "trial": winner.trial.number,
                    "factors": dict(winner.trial.factors),
                    "searched": _metrics_json(winner.trial.found),
                    "fresh": _metrics_json(winner.fresh),
                    "holds": winner.holds,
                }
                for winner in self.front
            ],
        }
        return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _plain(metric: str) -> str:
    """A metric as readers call it, without its unit."""
    return shown_name(metric).partition(",")[0]


def recommended(tuned: Tuned) -> Winner | None:
    """The trial to take: of those that keep the constraints on fresh seeds, the nearest to the best of all.

    Each objective is measured on fresh seeds, as a part of its range over the front; the distance is
    Euclid's. With one objective that is the best trial.
    """
    known = [winner for winner in tuned.front if winner.holds] or list(tuned.front)
    if not known:
        return None
    distance = dict.fromkeys(range(len(known)), 0.0)
    for objective in tuned.plan.objectives:
        values = [_fresh(winner, objective.metric) for winner in known]
        best, worst = (max, min) if objective.maximize else (min, max)
        span = abs(best(values) - worst(values)) or 1.0
        for place, value in enumerate(values):
            distance[place] += ((value - best(values)) / span) ** 2
    return known[min(distance, key=lambda place: (distance[place], place))]


def _fresh(winner: Winner, metric: str) -> float:
    found = winner.fresh[metric]
    return math.nan if found is None else found.mean


def tune(plan: TuningPlan, place: Workplace, *, say: Callable[[str], None], progress: Progress) -> Tuned:
    """Search, and run the winners again on fresh seeds.

    Args:
        plan: What to search.
        place: Where runs are kept and computed.
        say: Told of whatever was broken in the store.
        progress: See `perhop.sweep.run.Progress`.

    Raises:
        PerhopError: The store fails, the backend cannot go on, or a path names nothing.
        KeyboardInterrupt: Ctrl-C; what had finished is in the store.
    """
    with open_backend(place) as backend, SweepStore(place.store, say) as store:
        runner = Runner(store, backend, progress, tuple(map(literal, plan.watched)))
        interrupts.leaves(lambda: kept(runner.counts, place.store))
        return search(plan, runner)


def search(plan: TuningPlan, runner: Runner) -> Tuned:
    """Search with a runner that watches the plan's metrics, and run the winners again on fresh seeds.

    Raises:
        PerhopError: The store fails, the backend cannot go on, or a path names nothing.
        KeyboardInterrupt: Ctrl-C; what had finished is in the store.
    """
    progress = runner.progress
    with progress("trials", plan.trials) as step:
        trials = list(_trials(plan, runner, step))
    runner.progress = progress
    winners = _validated(plan, runner, front(plan, trials))
    return Tuned(plan, trials, winners, runner.counts)


def _validated(plan: TuningPlan, runner: Runner, best: Sequence[Trial]) -> list[Winner]:
    """Run the best trials again on fresh seeds."""
    points = [trial.point for trial in best if trial.point is not None]
    runner.ensure(points, plan.validation_seeds)
    winners = []
    for trial, point in zip(best, points, strict=True):
        fresh = _estimates(plan, runner, point, plan.validation_seeds)
        winners.append(Winner(trial, fresh, _keeps(plan, fresh)))
    return winners


@dataclass(slots=True)
class _Part:
    """Progress of a batch's runs, as part of the progress of all trials."""

    step: Callable[[], None]
    trials: int
    runs: int
    done: int = 0

    def __call__(self) -> None:
        self.done += 1
        self.waiting(0.0)

    def waiting(self, under_way: float) -> None:
        """So many of its runs are under way."""
        told: Callable[[float], None] | None = getattr(self.step, "waiting", None)
        if told is not None:
            told(self.trials * (self.done + under_way) / self.runs)


def front(plan: TuningPlan, trials: Sequence[Trial]) -> list[Trial]:
    """The trials within the constraints that no other beats, best by the first objective first.

    A trial beats another if it is no worse by any objective and better by one; of trials with the same
    scenario, the first counts.
    """
    distinct = {trial.point.key: trial for trial in reversed(trials) if trial.feasible and trial.point}
    costs = {key: _costs(plan, trial) for key, trial in distinct.items()}
    best = [
        trial
        for key, trial in distinct.items()
        if not any(_beats(other, costs[key]) for other in costs.values())
    ]
    best.sort(key=lambda trial: (_costs(plan, trial), trial.number))
    return best if len(plan.objectives) > 1 else best[:1]


def _beats(one: Sequence[float], other: Sequence[float]) -> bool:
    return all(a <= b for a, b in zip(one, other, strict=True)) and tuple(one) != tuple(other)


def _costs(plan: TuningPlan, trial: Trial) -> tuple[float, ...]:
    """The objectives, each the better the smaller."""
    means = []
    for objective in plan.objectives:
        found = trial.found[objective.metric]
        assert found is not None
        means.append(-found.mean if objective.maximize else found.mean)
    return tuple(means)


def _trials(plan: TuningPlan, runner: Runner, step: Callable[[], None]) -> Iterator[Trial]:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    directions = [
        StudyDirection.MAXIMIZE if objective.maximize else StudyDirection.MINIMIZE
        for objective in plan.objectives
    ]
    study = optuna.create_study(directions=directions, sampler=_sampler(plan))
    for first in range(0, plan.trials, plan.batch):
        numbers = range(first, min(first + plan.batch, plan.trials))
        proposals = [_proposal(plan, study) for _ in numbers]
        runner.progress = _as_part_of(step, len(numbers))
        tried = _tried(plan, runner, numbers, [factors for _, factors in proposals])
        for (asked, _), trial in zip(proposals, tried, strict=True):
            _tell(plan, study, asked, trial)
            step()
            yield trial


def _proposal(plan: TuningPlan, study: optuna.Study) -> tuple[optuna.Trial, dict[str, Value]]:
    """The next trial; it gets all its factors before another is asked for, which then keeps away from it."""
    asked = study.ask()
    return asked, {name: _suggested(asked, name, entry) for name, entry in plan.search.items()}


def _as_part_of(step: Callable[[], None], trials: int) -> Progress:
    return lambda _what, runs: contextlib.nullcontext(_Part(step, trials, runs))


def _tell(plan: TuningPlan, study: optuna.Study, asked: optuna.Trial, trial: Trial) -> None:
    """Let the sampler learn of a trial."""
    costs = _told(plan, trial)
    if costs is None:
        study.tell(asked, state=TrialState.FAIL)
        return
    for entry in plan.constraints:
        found = trial.found[entry.metric]
        assert found is not None
        asked.set_constraint(entry.text, entry.violation(found.mean))
    study.tell(asked, costs)


def _sampler(plan: TuningPlan) -> optuna.samplers.BaseSampler:
    if plan.sampler == "nsga-ii":
        return NSGAIISampler(population_size=plan.population, seed=plan.seed)
    # Trials of the same batch count as bad ones, so that the next proposal keeps away from them.
    return TPESampler(seed=plan.seed, constant_liar=True)


def _suggested(trial: optuna.Trial, name: str, entry: Any) -> Value:  # noqa: ANN401 - Range or Choice
    if not isinstance(entry, Range):
        chosen: Value = trial.suggest_categorical(name, list(entry.values))
        return chosen
    if entry.whole:
        return entry.value(trial.suggest_int(name, int(entry.low), int(entry.high), log=entry.log))
    return entry.value(trial.suggest_float(name, entry.low, entry.high, log=entry.log))


def _tried(
    plan: TuningPlan, runner: Runner, numbers: Sequence[int], proposed: Sequence[Mapping[str, Value]]
) -> list[Trial]:
    """The trials of a batch: all their runs at once."""
    points = [_point(plan, number, factors) for number, factors in zip(numbers, proposed, strict=True)]
    runner.ensure([point for point in points if point is not None], plan.seeds)
    trials = []
    for number, factors, point in zip(numbers, proposed, points, strict=True):
        if point is None:
            trials.append(Trial(number, factors, None, dict.fromkeys(plan.metrics), feasible=False))
            continue
        found = _estimates(plan, runner, point, plan.seeds)
        trials.append(Trial(number, factors, point, found, _keeps(plan, found)))
    return trials


def _point(plan: TuningPlan, number: int, factors: Mapping[str, Value]) -> Point | None:
    try:
        return plan.point(factors, f"trial {number}")
    except ScenarioError:
        return None


def _told(plan: TuningPlan, trial: Trial) -> list[float] | None:
    """What the sampler learns of a trial: its objectives, or None where it has none."""
    if any(found is None for found in trial.found.values()):
        return None
    return [found.mean for o in plan.objectives if (found := trial.found[o.metric]) is not None]


def _estimates(
    plan: TuningPlan, runner: Runner, point: Point, seeds: Sequence[int]
) -> dict[str, Estimate | None]:
    observed: Mapping[str, Observations] = runner.observed(point, seeds)
    if plan.derive is not None:
        observed = plan.derive(observed)
    out: dict[str, Estimate | None] = {}
    for name in plan.metrics:
        found = observed.get(name)
        known = found is not None and all(map(found.counts_in, range(len(found.values))))
        out[name] = found.estimate if known and found is not None else None
    return out


def _mean(found: Estimate | None) -> Estimate | None:
    return None if found is None else Estimate(found.mean, None, found.runs)


def _keeps(plan: TuningPlan, found: Mapping[str, Estimate | None]) -> bool:
    """Whether every metric is there and every constraint is kept, by the mean."""
    if any(entry is None for entry in found.values()):
        return False
    return all(
        (mean := found[entry.metric]) is not None and entry.violation(mean.mean) <= 0
        for entry in plan.constraints
    )


def _trial_json(trial: Trial) -> dict[str, Any]:
    return {
        "trial": trial.number,
        "factors": dict(trial.factors),
        "scenario": None if trial.point is None else trial.point.key,
        "feasible": trial.feasible,
        "metrics": _metrics_json(trial.found),
    }


def _metrics_json(found: Mapping[str, Estimate | None]) -> dict[str, Any]:
    return {name: estimate_json(entry) for name, entry in found.items()}
