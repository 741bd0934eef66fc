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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from perhop.errors import ScenarioError
from perhop.plurals import counted
from perhop.processes import interrupts
from perhop.scenario.ranges import Value, text_of
from perhop.show.metric_names import shown_name, shown_text
from perhop.show.report import Records, Report, Text, plain
from perhop.show.table import continued
from perhop.show.written import Written
from perhop.statistics.intervals import Estimate
from perhop.statistics.judging import all_of
from perhop.statistics.observations import Observations
from perhop.stores.metrics import engine_id
from perhop.stores.sweeps import SweepStore
from perhop.sweeps import failing, tune_answers
from perhop.sweeps.choosing import Choice, Validated, choose
from perhop.sweeps.job import Workplace, kept, open_backend
from perhop.sweeps.plan import Point
from perhop.sweeps.proposals import Proposals
from perhop.sweeps.run import Counts, Failure, Progress, Runner
from perhop.sweeps.summary import MOST_COLUMNS, MOST_LINES, estimate_json, short_names
from perhop.sweeps.tuning import TuningPlan, literal
from perhop.sweeps.warm_ups import Found

BEST = 5
"""How many of the best trials run again on fresh seeds, where there is one objective."""
RECOMMENDED = "★"
"""Marks the trial to take."""
AS_IT_IS = "as it is"
"""The scenario without the search's settings, in tables."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One setting that was tried.

    Attributes:
        number: From 0, in the order of the proposals.
        point: None where the setting makes no scenario.
        found: Estimates over the trial's runs, by metric; None where a run has no value.
        feasible: Every constraint is kept, by the mean.
        scores: Of each objective (`Objective.score`); None where a run lacks a value.
    """

    number: int
    factors: Mapping[str, Value]
    point: Point | None
    found: Mapping[str, Estimate | None]
    feasible: bool
    scores: tuple[float, ...] | None = None

    @property
    def label(self) -> str:
        """The setting, as messages name it."""
        return ", ".join(f"{name} = {text_of(value)}" for name, value in self.factors.items())


@dataclass(frozen=True, slots=True)
class Winner:
    """One of the best trials, with what it gives on fresh seeds."""

    trial: Trial
    validated: Validated

    @property
    def fresh(self) -> Mapping[str, Estimate | None]:
        """Estimates over the validation's runs, by metric."""
        return self.validated.estimates

    @property
    def holds(self) -> bool | None:
        """Whether every constraint is kept there, too: see `Validated.holds`."""
        return self.validated.holds


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Tuned(Written):
    """A finished search: every trial, and the winners on seeds that the search did not use.

    Attributes:
        plan: What was searched, for which objectives, under which constraints.
        trials: Every setting that was tried, in the order of the proposals.
        front: The winners: the best by one objective, best first, or the Pareto front of several, by the
            first.
        work: How many runs were simulated, found in the store, and failed.
        as_it_is: What the scenario as it is gives on the same fresh seeds; None where it is none, or where
            it was not asked for.
        choice: Which winner to take.
        failures: The runs that failed, in the order of trials and seeds; their trials have no estimates.
        warm_ups: Those that were found, by the keys of scenarios.
    """

    COMMAND: ClassVar = "perhop tune"
    TABLE: ClassVar = "trials"
    plan: TuningPlan
    trials: Sequence[Trial]
    front: Sequence[Winner]
    work: Counts
    as_it_is: Validated | None
    choice: Choice
    failures: Sequence[Failure] = ()
    warm_ups: Mapping[str, Found] = field(default_factory=dict)
    command: str = ""

    def _outline(self) -> str:
        taken = " and ".join(f"trial {one.trial.number} ({one.trial.label})" for one in self.marked)
        none = "none is surely better than as it is" if self.front else "none keeps the constraints"
        came = f"take {taken}" if taken else none
        return (
            f"{self.plan.title!r}: {counted(len(self.trials), 'trial')}; {came}{failing.count(self.failures)}"
        )

    @property
    def names(self) -> dict[str, str]:
        """The names of the tried points by their keys: the first trial of each, and its setting."""
        tried = [(trial.number, trial.point) for trial in reversed(self.trials) if trial.point is not None]
        names = {} if self.as_it_is is None else {self.as_it_is.key: f"the scenario {AS_IT_IS}"}
        return names | {point.key: f"trial {number} ({point.label})" for number, point in tried}

    @property
    def marked(self) -> list[Winner]:
        """The winners to take: those surely better than the scenario as it is, and all that are tied."""
        return [self.front[place] for place in self.choice.marked]

    def star(self, winner: Winner) -> str:
        """Return the sign by which tables mark a winner to take; empty text for the others."""
        return f" {RECOMMENDED}" if any(winner is one for one in self.marked) else ""

    def _reports(self, width: int | None) -> list[Report]:
        said = [*map(plain, tune_answers.answers(self)), *self.lead()]
        tables = [Records("", table[:MOST_LINES]) for table in self.tables(width)]
        failed = Text(failing.sentences(self.failures, self.names))
        return [Report(self.plan.title, said, [*tables, failed])]

    def lead(self) -> list[str]:
        """Return sentences on what was searched, and on how it was validated."""
        return tune_answers.lead(self)

    def tables(self, width: int | None = MOST_COLUMNS) -> list[list[dict[str, str]]]:
        """One line for each winner: what fresh seeds say of it, and what the search saw of its objectives."""
        short = short_names(list(self.plan.search))
        lines = []
        for winner in self.front:
            line = {"trial": f"{winner.trial.number}{self.star(winner)}"}
            line |= {short[name]: text_of(value) for name, value in winner.trial.factors.items()}
            lines.append(line | self._measured(winner.validated, winner.trial.found))
        if self.front and self.as_it_is is not None:
            line = {"trial": AS_IT_IS} | dict.fromkeys(short.values(), "")
            lines.append(line | self._measured(self.as_it_is, {}))
        return continued(lines, 1 + len(short), width) if lines else []

    def _measured(self, fresh: Validated, searched: Mapping[str, Estimate | None]) -> dict[str, str]:
        """The cells of a setting: objectives on fresh seeds and on those of the search, and constraints."""
        goals = [objective.metric for objective in self.plan.objectives]
        bounds = [name for name in self.plan.metrics if name not in goals]
        line = {shown_name(name): shown_text(fresh.estimates[name], name) for name in goals}
        line["searched"] = ", ".join(shown_text(_mean(searched[name]), name) for name in goals if searched)
        line |= {shown_name(name): shown_text(fresh.estimates[name], name) for name in bounds}
        if self.plan.constraints:
            line["constraints"] = tune_answers.KEPT[fresh.holds]
        return line

    def json(self) -> str:
        """Return what `perhop tune --json` writes: the same bytes for the same file and engine."""
        plan = self.plan
        content = {
            "title": plan.title,
            "engine": engine_id(),
            "objectives": [objective.text for objective in plan.objectives],
            "constraints": [entry.text for entry in plan.constraints],
            "seeds": [plan.seeds[0], plan.seeds[-1]],
            "validation_seeds": [plan.validation_seeds[0], plan.validation_seeds[-1]],
            "trials": [_trial_json(trial, self.warm_ups) for trial in self.trials],
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
            "as_it_is": None if self.as_it_is is None else _as_it_is_json(self.as_it_is),
            "choice": self._choice_json(),
            "failed": failing.as_json(self.failures),
        }
        return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    def _write(self, place: Path, command: str, jobs: int) -> None:
        from perhop.sweeps import tune_report  # noqa: PLC0415 - pictures load matplotlib

        tune_report.write_tuned(place, self, command, jobs)

    def _choice_json(self) -> dict[str, Any]:
        """Which trial to take, by numbers of trials and names of metrics."""
        choice = self.choice
        return {
            "take": [winner.trial.number for winner in self.marked],
            "best": None if choice.best is None else self.front[choice.best].trial.number,
            "not_distinguishable_from_best": [self.front[place].trial.number for place in choice.alike],
            "surely_better_than_as_it_is": list(choice.better),
            "surely_worse_than_as_it_is": list(choice.worse),
        }


def tune(plan: TuningPlan, place: Workplace, *, say: Callable[[str], None], progress: Progress) -> Tuned:
    """Search, and run the winners again on fresh seeds.

    Args:
        plan: What to search.
        place: Where runs are kept and computed.
        say: Receives a sentence about each fault that was found in the store.
        progress: See `perhop.sweeps.run.Progress`.

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
    proposals = Proposals(plan)
    with progress("trials", proposals.total) as step:
        trials = list(_trials(plan, proposals, runner, step))
    runner.progress = progress
    winners, as_it_is = _validated(plan, runner, front(plan, trials))
    choice = choose(plan.objectives, [winner.validated for winner in winners], as_it_is)
    keys = [trial.point.key for trial in trials if trial.point is not None]
    failures = failing.ordered(runner.failures, keys)
    warm_ups = {key: found for key in keys if (found := runner.warm_ups.get(key)) is not None}
    return Tuned(plan, trials, winners, runner.counts, as_it_is, choice, failures, warm_ups)


def _validated(
    plan: TuningPlan, runner: Runner, best: Sequence[Trial]
) -> tuple[list[Winner], Validated | None]:
    """Run the best trials again on fresh seeds, and the scenario as it is beside them."""
    points = [trial.point for trial in best if trial.point is not None]
    as_it_is = plan.as_it_is() if plan.compared and points else None
    runner.ensure(points if as_it_is is None else [*points, as_it_is], plan.validation_seeds)
    winners = [Winner(trial, _fresh(plan, runner, point)) for trial, point in zip(best, points, strict=True)]
    return winners, None if as_it_is is None else _fresh(plan, runner, as_it_is)


def _fresh(plan: TuningPlan, runner: Runner, point: Point) -> Validated:
    observed = _observed(plan, runner, point, plan.validation_seeds)
    found = _estimates(observed)
    checks = [entry.check(found) for entry in plan.constraints]
    return Validated(point.key, found, observed, all_of(*checks).holds if checks else True)


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
        """Note that so many runs of the trial are under way."""
        report: Callable[[float], None] | None = getattr(self.step, "waiting", None)
        if report is not None:
            report(self.trials * (self.done + under_way) / self.runs)


def front(plan: TuningPlan, trials: Sequence[Trial]) -> list[Trial]:
    """The best trials within the constraints, best by the first objective first.

    With several objectives, those that no other beats: a trial beats another if it is no worse by any
    objective and better by one. With one objective the `BEST` best, or where they are not compared, the best.
    Of trials with the same scenario, the first counts.
    """
    distinct = {trial.point.key: trial for trial in reversed(trials) if trial.feasible and trial.point}
    costs = {key: _costs(plan, trial) for key, trial in distinct.items()}
    ordered = sorted(distinct.items(), key=lambda entry: (costs[entry[0]], entry[1].number))
    if len(plan.objectives) == 1:
        return [trial for _, trial in ordered[: BEST if plan.compared else 1]]
    return [trial for key, trial in ordered if not any(_beats(other, costs[key]) for other in costs.values())]


def _beats(one: Sequence[float], other: Sequence[float]) -> bool:
    return all(a <= b for a, b in zip(one, other, strict=True)) and tuple(one) != tuple(other)


def _costs(plan: TuningPlan, trial: Trial) -> tuple[float, ...]:
    """The scores, each the better the smaller."""
    assert trial.scores is not None
    return tuple(
        -score if objective.maximize else score
        for objective, score in zip(plan.objectives, trial.scores, strict=True)
    )


def _trials(
    plan: TuningPlan, proposals: Proposals, runner: Runner, step: Callable[[], None]
) -> Iterator[Trial]:
    for first in range(0, proposals.total, plan.batch):
        numbers = range(first, min(first + plan.batch, proposals.total))
        proposed = [proposals.next() for _ in numbers]
        runner.progress = _as_part_of(step, len(numbers))
        for trial in _tried(plan, runner, numbers, proposed):
            violations = {entry.text: entry.violation(trial.found) for entry in plan.constraints}
            proposals.tell(trial.factors, trial.scores, violations)
            step()
            yield trial


def _as_part_of(step: Callable[[], None], trials: int) -> Progress:
    return lambda _what, runs: contextlib.nullcontext(_Part(step, trials, runs))


def _tried(
    plan: TuningPlan, runner: Runner, numbers: Sequence[int], proposed: Sequence[Mapping[str, Value]]
) -> list[Trial]:
    """The trials of a batch: all their runs at once."""
    points = [_point(plan, number, factors) for number, factors in zip(numbers, proposed, strict=True)]
    runner.ensure([point for point in points if point is not None], plan.seeds)
    trials = []
    for number, factors, point in zip(numbers, proposed, points, strict=True):
        if point is None:
            unknown = dict.fromkeys(plan.metrics)
            trials.append(Trial(number, factors, None, unknown, feasible=False))
            continue
        observed = _observed(plan, runner, point, plan.seeds)
        found = _estimates(observed)
        trials.append(Trial(number, factors, point, found, _keeps(plan, found), _scores(plan, observed)))
    return trials


def _point(plan: TuningPlan, number: int, factors: Mapping[str, Value]) -> Point | None:
    try:
        return plan.point(factors, f"trial {number}")
    except ScenarioError:
        return None


def _scores(plan: TuningPlan, observed: Mapping[str, Observations | None]) -> tuple[float, ...] | None:
    """What the sampler learns of a trial: a number for each objective, or None where a metric is missing."""
    if any(found is None or found.estimate is None for found in observed.values()):
        return None
    return tuple(one.score(found) for one in plan.objectives if (found := observed[one.metric]) is not None)


def _observed(
    plan: TuningPlan, runner: Runner, point: Point, seeds: Sequence[int]
) -> dict[str, Observations | None]:
    """What the runs gave of the plan's metrics; None where a run has no value."""
    observed: Mapping[str, Observations] = runner.observed(point, seeds)
    if plan.derive is not None:
        observed = plan.derive(observed)
    out: dict[str, Observations | None] = {}
    for name in plan.metrics:
        found = observed.get(name)
        known = found is not None and all(map(found.counts_in, range(len(found.values))))
        out[name] = found if known else None
    return out


def _estimates(observed: Mapping[str, Observations | None]) -> dict[str, Estimate | None]:
    return {name: None if found is None else found.estimate for name, found in observed.items()}


def _mean(found: Estimate | None) -> Estimate | None:
    return None if found is None else Estimate(found.mean, None, found.runs)


def _keeps(plan: TuningPlan, found: Mapping[str, Estimate | None]) -> bool:
    """Whether every metric is there and every constraint is kept, by the mean."""
    if any(entry is None for entry in found.values()):
        return False
    return all(entry.violation(found) <= 0 for entry in plan.constraints)


def _trial_json(trial: Trial, warm_ups: Mapping[str, Found]) -> dict[str, Any]:
    warm_up = None if trial.point is None else warm_ups.get(trial.point.key)
    return {
        "trial": trial.number,
        "factors": dict(trial.factors),
        "scenario": None if trial.point is None else trial.point.key,
        "feasible": trial.feasible,
        **({} if warm_up is None else warm_up.json()),
        "metrics": _metrics_json(trial.found),
    }


def _as_it_is_json(found: Validated) -> dict[str, Any]:
    return {"scenario": found.key, "fresh": _metrics_json(found.estimates), "holds": found.holds}


def _metrics_json(found: Mapping[str, Estimate | None]) -> dict[str, Any]:
    return {name: estimate_json(entry) for name, entry in found.items()}
