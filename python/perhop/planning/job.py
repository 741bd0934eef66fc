"""A plan from its file to its results: verdicts, growth, better settings, and lines for the router."""

from __future__ import annotations

import difflib
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from perhop import routers
from perhop.bounds import deriving
from perhop.planning import growth, guarantees
from perhop.planning.document import Plan, exported, tuning_plan
from perhop.planning.growth import Bracket, Demand, State
from perhop.planning.verdicts import STATES, ObjectiveVerdict, judge, smallest_margins
from perhop.plurals import counted
from perhop.processes import interrupts
from perhop.scenario.ranges import Value
from perhop.show.written import Written
from perhop.statistics.intervals import Estimate, estimate
from perhop.statistics.multiplicity import difference
from perhop.statistics.observations import Observations
from perhop.stores.sweeps import SweepStore
from perhop.sweeps import failing
from perhop.sweeps.job import Workplace, kept, open_backend
from perhop.sweeps.plan import Point, make_point
from perhop.sweeps.run import Counts, Failure, Progress, Runner
from perhop.sweeps.tuning import literal
from perhop.sweeps.warm_ups import Found

if TYPE_CHECKING:
    from perhop.show.report import Report
    from perhop.sweeps.tune import Tuned, Winner

Multiples = Mapping[str, float]
"""Multiples of today's demands, by the name of the demand."""


@dataclass(frozen=True, slots=True)
class Guaranteed:
    """The growth of a demand that guarantees bear.

    Attributes:
        level: The highest level up to which they all stand.
        objectives: Those that are guaranteed today, as the plan has them.
    """

    level: int
    objectives: Sequence[str]


@dataclass(frozen=True, slots=True)
class Limit:
    """The growth that one demand can have while the others stay.

    Attributes:
        looked: The verdicts on the objectives that do not break today, by the level that was looked at.
        guaranteed: The growth up to which what is guaranteed today still is; None where nothing is.
        untold: Of these, the verdicts of today that the runs cannot tell. At a higher level such an objective
            counts where it surely breaks.
    """

    demand: Demand
    bracket: Bracket
    looked: Mapping[int, Sequence[ObjectiveVerdict]]
    guaranteed: Guaranteed | None = None
    untold: Sequence[ObjectiveVerdict] = ()

    @property
    def holds(self) -> float:
        """The largest multiple up to which every objective that holds today does, as far as was looked."""
        return self.demand.levels[self.bracket.holds]

    @property
    def breaks(self) -> float | None:
        """The smallest multiple at which an objective breaks; None where none does up to the largest."""
        return None if self.bracket.breaks is None else self.demand.levels[self.bracket.breaks]

    @property
    def first(self) -> list[ObjectiveVerdict]:
        """The objectives that break there, the one that is missed by most first."""
        if self.bracket.breaks is None:
            return []
        broken = [one for one in self.looked[self.bracket.breaks] if one.holds is False]
        return sorted(broken, key=lambda one: math.inf if one.margin is None else one.margin.mean)


@dataclass(frozen=True, slots=True)
class JudgedSetting:
    """What one setting of the router gives.

    Attributes:
        scenario: Canonical JSON, with today's demand.
        verdicts: Under today's demand.
        limits: How far each demand can grow; empty where no objective holds today.
        margins: The smallest margin of all objectives in each run, under the demand of the search.
    """

    scenario: str
    verdicts: Sequence[ObjectiveVerdict]
    limits: Sequence[Limit]
    margins: Sequence[float]

    @property
    def margin(self) -> Estimate | None:
        """The mean of the smallest margins; None where a run lacks one."""
        known = bool(self.margins) and not any(map(math.isnan, self.margins))
        return estimate(self.margins) if known else None


@dataclass(frozen=True, slots=True)
class Better:
    """The best setting that the search found, on seeds that the search did not use.

    Attributes:
        gain: By how much the smallest margin is larger than as it is, run by run on the same seeds; None
            where one of both has none.
    """

    tuned: Tuned
    winner: Winner
    setting: JudgedSetting
    gain: Estimate | None

    @property
    def sure(self) -> bool:
        """Whether the whole interval of the gain is above zero."""
        return self.gain is not None and self.gain.low > 0


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Planned(Written):
    """A finished plan: which promises hold, how far demands can grow, and what would be better.

    Attributes:
        plan: The links, demands and objectives that were judged.
        now: The configuration as it is.
        searched: The search; None without one.
        better: The best that it found; None without a search, or where no trial had a value.
        lines: Lines for the router: of the better setting where it surely is, else as it is; None unless
            asked for.
        changes: How these differ from the lines of the configuration as it is, as a unified diff.
        work: How many runs were simulated, found in the store, and failed.
        holm: Tables have a column of verdicts corrected for their number.
        failures: The runs that failed: what rests on them cannot be decided.
        names: What points are called, by their keys.
        warm_ups: Those that were found, by the keys of points.
    """

    COMMAND: ClassVar = "perhop plan"
    TABLE: ClassVar = "now-objectives"
    plan: Plan
    now: JudgedSetting
    searched: Tuned | None
    better: Better | None
    lines: routers.Exported | None
    changes: Sequence[str]
    work: Counts
    holm: bool = False
    failures: Sequence[Failure] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    warm_ups: Mapping[str, Found] = field(default_factory=dict)
    command: str = ""

    def _reports(self, width: int | None) -> list[Report]:  # noqa: ARG002 - the same for any width
        from perhop.planning.summary import as_report  # noqa: PLC0415 - it needs this class

        return [as_report(self)]

    def json(self) -> str:
        """Return what `perhop plan --json` writes: the same bytes for the same file and engine."""
        from perhop.planning.summary import to_json  # noqa: PLC0415

        return to_json(self)

    def _write(self, place: Path, command: str, jobs: int) -> None:
        from perhop.planning import report  # noqa: PLC0415 - pictures load matplotlib

        report.write_plan(place, self, command, jobs)

    def _outline(self) -> str:
        states = Counter(verdict.state for verdict in self.now.verdicts)
        said = ", ".join(f"{count} {state}" for state in STATES.values() if (count := states[state]))
        runs = f"{counted(self.plan.runs, 'run')} of each setting"
        return f"{self.plan.title!r}: {runs}; objectives: {said}{failing.count(self.failures)}"


def run_plan(plan: Plan, place: Workplace, *, say: Callable[[str], None], progress: Progress) -> Planned:
    """Do what is missing of a plan, and judge.

    Args:
        plan: What to do.
        place: Where runs are kept and computed.
        say: Receives a sentence about each fault that was found in the store.
        progress: See `perhop.sweeps.run.Progress`.

    Raises:
        PerhopError: The store fails, the backend cannot go on, or lines for the router cannot be written.
        KeyboardInterrupt: Ctrl-C; what had finished is in the store.
    """
    with open_backend(place) as backend, SweepStore(place.store, say) as store:
        runner = Runner(store, backend, progress, tuple(map(literal, plan.measured)))
        interrupts.leaves(lambda: kept(runner.counts, place.store))
        names: dict[str, str] = {}
        now = _Laboratory(plan, runner, names).setting()
        searched, better = _better(plan, runner, now, names) if plan.search is not None else (None, None)
        store.sync()
    lines, changes = _lines(plan, now, better)
    names |= {} if searched is None else searched.names
    failures = failing.ordered(runner.failures, list(names))
    return Planned(
        plan,
        now,
        searched,
        better,
        lines,
        changes,
        runner.counts,
        failures=failures,
        names=names,
        warm_ups={key: replace(one, name=names.get(key, one.name)) for key, one in runner.warm_ups.items()},
    )


@dataclass(slots=True)
class _Laboratory:
    """Runs one setting of the router under several demands, always on the same seeds.

    Attributes:
        names: What points are called, by their keys; those of this setting are added.
        winner: The setting; None for the configuration as it is.
    """

    plan: Plan
    runner: Runner
    names: dict[str, str]
    winner: Winner | None = None

    def setting(self) -> JudgedSetting:
        """Everything about this setting."""
        plan = self.plan
        searched: Multiples = {} if plan.search is None else plan.search.demands
        today, tried = self._points([{}, searched], ["today's demand", "the demand of the search"])
        verdicts = self._verdicts(today)
        margins = smallest_margins(plan.measured_bounds, self.runner.observed(tried, plan.seeds))
        return JudgedSetting(today.scenario, verdicts, self._limits(verdicts), margins)

    def _points(self, demands: Sequence[Multiples], labels: Sequence[str]) -> list[Point]:
        """The points of these demands, with all their runs in the store; guarantees alone need no runs."""
        points = [self._point(multiples, label) for multiples, label in zip(demands, labels, strict=True)]
        which = "as it is" if self.winner is None else f"trial {self.winner.trial.number}"
        for point, label in zip(points, labels, strict=True):
            self.names.setdefault(point.key, f"{which}, {label}")
        if self.plan.measured:
            self.runner.ensure(points, self.plan.seeds)
        return points

    def _point(self, multiples: Multiples, label: str) -> Point:
        if self.winner is None:
            return make_point(self.plan.base(multiples), {}, {}, label)
        assert self.plan.search is not None
        factors = self.winner.trial.factors
        values = {name: _value(self.plan.search.factors[name], value) for name, value in factors.items()}
        return make_point(self.plan.base(multiples, templates=True), factors, values, label)

    def _verdicts(self, point: Point) -> list[ObjectiveVerdict]:
        bounds = deriving.beside_runs(point.scenario)
        derived = guarantees.observed(self.plan.metrics, bounds, self.plan.runs)
        observed = {**self.runner.observed(point, self.plan.seeds), **derived}
        return [
            judge(bound, observed).beside(guarantees.guaranteed(bound, bounds)) for bound in self.plan.bounds
        ]

    def _guaranteed(self, demand: Demand, today: Sequence[ObjectiveVerdict]) -> Guaranteed | None:
        """Return up to which level of a demand every objective that is guaranteed today still is."""
        watched = [verdict.bound for verdict in today if verdict.is_guaranteed]
        if not watched:
            return None
        search, kept = growth.bracket(len(demand.levels) - 1), None
        try:
            while True:
                level = search.send(kept)
                bounds = deriving.beside_runs(self._point({demand.name: demand.levels[level]}, "").scenario)
                kept = all(guarantees.is_kept(bound, bounds) for bound in watched)
        except StopIteration as end:
            found: Bracket = end.value
            return Guaranteed(found.holds, [bound.objective.text for bound in watched])

    def _limits(self, today: Sequence[ObjectiveVerdict]) -> list[Limit]:
        """Return how far each demand can grow while what holds today does, and nothing else surely breaks.

        The searches go side by side.
        """
        if not any(verdict.holds for verdict in today):
            return []
        watched = [verdict.bound for verdict in today if verdict.holds is not False]
        untold = [verdict for verdict in today if verdict.holds is None]
        searches = {demand.name: growth.bracket(len(demand.levels) - 1) for demand in self.plan.demands}
        looked: dict[str, dict[int, list[ObjectiveVerdict]]] = {name: {} for name in searches}
        found: dict[str, Bracket] = {}
        asked: dict[str, int] = {}
        answers: dict[str, State] = dict.fromkeys(searches)
        while answers:
            asked = {}
            for name, answer in answers.items():
                try:
                    asked[name] = searches[name].send(answer if looked[name] else None)
                except StopIteration as end:
                    found[name] = end.value
            demands = {demand.name: demand for demand in self.plan.demands if demand.name in asked}
            multiples = [{name: demands[name].levels[level]} for name, level in asked.items()]
            labels = [f"{name} times {one[name]:.4g}" for name, one in zip(asked, multiples, strict=True)]
            points = self._points(multiples, labels)
            answers = {}
            for (name, level), point in zip(asked.items(), points, strict=True):
                verdicts = [one for one in self._verdicts(point) if one.bound in watched]
                looked[name][level] = verdicts
                answers[name] = together(verdicts, [verdict.bound for verdict in untold])
        return [
            Limit(demand, found[demand.name], looked[demand.name], self._guaranteed(demand, today), untold)
            for demand in self.plan.demands
        ]


def together(verdicts: Sequence[ObjectiveVerdict], untold: Sequence[object] = ()) -> State:
    """All objectives hold, one breaks, or the runs cannot tell.

    Args:
        verdicts: Of one level of a demand.
        untold: The bounds that count only where they break, since today's runs cannot tell of them.
    """
    if any(verdict.holds is False for verdict in verdicts):
        return False
    return True if all(verdict.holds for verdict in verdicts if verdict.bound not in untold) else None


def _value(entry: object, value: Value) -> object:
    """What a factor's value puts into the scenario."""
    values = getattr(entry, "values", None)
    return value if values is None else values[value]


def _better(
    plan: Plan, runner: Runner, now: JudgedSetting, names: dict[str, str]
) -> tuple[Tuned, Better | None]:
    with interrupts.deferred():
        from perhop.sweeps import tune  # noqa: PLC0415 - it needs an optional package
    tuned = tune.search(tuning_plan(plan), runner)
    if not tuned.front:
        return tuned, None
    winner = tuned.front[0]
    setting = _Laboratory(plan, runner, names, winner).setting()
    return tuned, Better(tuned, winner, setting, gain(setting.margins, now.margins))


def gain(better: Sequence[float], now: Sequence[float]) -> Estimate | None:
    """The gain of the smallest margin over the present one, with the interval by which a search compares.

    Of settings that do not differ, the differences are symmetric about 0, however skewed the margins are. So
    the interval is not corrected for the skewness that a few of them show by chance.

    Args:
        better: The smallest margin of each run; NaN where one has none.
        now: As it is, on the same seeds.
    """
    if not now or any(map(math.isnan, (*better, *now))):
        return None
    return difference(Observations(tuple(better)), Observations(tuple(now)))


def _lines(
    plan: Plan, now: JudgedSetting, better: Better | None
) -> tuple[routers.Exported | None, list[str]]:
    if plan.export is None:
        return None, []
    before = exported(plan, now.scenario)
    if better is None or not better.sure:
        return before, []
    after = exported(plan, better.setting.scenario)
    names = "as it is", "better"
    return after, list(difflib.unified_diff(_body(before), _body(after), *names, lineterm="", n=1))


def _body(lines: routers.Exported) -> list[str]:
    """The lines without their comments."""
    return [line for line in lines.text.splitlines() if not line.startswith("!")]
