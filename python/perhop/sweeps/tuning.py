"""TUNE.toml: what to search, for which objectives, under which constraints."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from perhop.errors import ArgumentError, PerhopError, ScenarioError
from perhop.files import arguments
from perhop.measures import naming
from perhop.runs import extent
from perhop.scenario import document, file_kinds
from perhop.scenario.document import Base
from perhop.scenario.keys import COLUMN, RANGE, Key, Table, Text, Texts, Whole
from perhop.scenario.quantities import NUMBER, RATES, TIMES, UNIT, why_no_rate, with_printed
from perhop.scenario.ranges import Range, Value, parse_range, text_of
from perhop.statistics import judging
from perhop.statistics.intervals import Estimate
from perhop.statistics.observations import Observations
from perhop.sweeps import contradictions
from perhop.sweeps.plan import SCENARIO, SEED, SET, TITLE, Point, check_metrics, column, make_point

DEFAULT_TRIALS = 60
DEFAULT_BATCH = 4
"""Trials that are proposed and run together: with four runs each, work for 16 cores."""
DEFAULT_RUNS = 4
DEFAULT_VALIDATION_RUNS = 12
DEFAULT_POPULATION = 20
SAMPLERS = ("tpe", "nsga-ii")
MAX_TRIALS = 100_000
Derive: TypeAlias = "Callable[[Mapping[str, Observations]], Mapping[str, Observations]]"
"""From what runs gave, by metric, to other metrics, of each run or of all."""
_UNITS = with_printed({"": 1.0, "%": 0.01, **RATES, **TIMES, "p": 1.0})
_AN_OBJECTIVE = r"\s*(minimize|maximize)\s+(.+?)\s*"
_A_CONSTRAINT = rf"\s*(.+?)\s*(>=|<=)\s*({NUMBER})\s*"
_OBJECTIVE = re.compile(_AN_OBJECTIVE)
_CONSTRAINT = re.compile(rf"{_A_CONSTRAINT}({UNIT})\s*")
TRIALS = Whole(says="Settings that are tried.", default=DEFAULT_TRIALS, most=MAX_TRIALS)
BATCH = Whole(says="Trials that are proposed and run together.", default=DEFAULT_BATCH, most=MAX_TRIALS)
TRIAL_RUNS = Whole(says="Runs of each trial.", default=DEFAULT_RUNS, most=extent.MAX_RUNS)
VALIDATION_RUNS = Whole(
    says="Runs of each winner on seeds that no trial has used.",
    default=DEFAULT_VALIDATION_RUNS,
    most=extent.MAX_RUNS,
)
SAMPLER = Text(says="What proposes trials.", default=SAMPLERS[0], choices=SAMPLERS)
POPULATION = Whole(says="Of the sampler nsga-ii.", default=DEFAULT_POPULATION, least=2)
OBJECTIVES = Texts(
    says="What to make small or large.",
    required=True,
    example="minimize rmse_to_targets_bps",
    pattern=f"^{_AN_OBJECTIVE}$",
)
CONSTRAINTS = Texts(
    says="Bounds that means over the runs must keep.",
    least=0,
    example="loss <= 5%",
    pattern=f"^{_A_CONSTRAINT}({'|'.join(_UNITS)})\\s*$",
)
SEARCH = Table(
    says="What each factor may be: a range or values.",
    required=True,
    others={"anyOf": [RANGE, *COLUMN["anyOf"]]},
    least=1,
)
KEYS: dict[str, Key] = {
    "title": TITLE,
    "scenario": SCENARIO,
    "trials": TRIALS,
    "batch": BATCH,
    "runs": TRIAL_RUNS,
    "seed": SEED,
    "validation-runs": VALIDATION_RUNS,
    "sampler": SAMPLER,
    "population": POPULATION,
    "objectives": OBJECTIVES,
    "constraints": CONSTRAINTS,
    "set": SET,
    "search": SEARCH,
}
"""What TUNE.toml may hold."""


@dataclass(frozen=True, slots=True)
class Objective:
    """A metric's mean over the runs, to be made small or large."""

    metric: str
    maximize: bool

    def score(self, found: Observations) -> float:
        """What counts in a search: the mean; of a share of packets or flows the worse end of its interval.

        Where no run has an event, the end says how many there may be: none in few runs is not the best.

        Args:
            found: Runs of which one at least has a value.
        """
        own = found.estimate
        assert own is not None
        if found.trials is None:
            return own.mean
        return own.low if self.maximize else own.high

    @property
    def text(self) -> str:
        """The text as the file has it."""
        return f"{'maximize' if self.maximize else 'minimize'} {self.metric}"


@dataclass(frozen=True, slots=True)
class Constraint:
    """A bound that a metric's mean over the runs must keep.

    Attributes:
        bound: In the metric's own unit.
        text: The text as the file has it.
    """

    metric: str
    at_least: bool
    bound: float
    text: str

    def violation(self, found: Mapping[str, Estimate | None]) -> float:
        """The excess of the mean over the bound, relative to the bound; at most 0 where it is kept.

        Args:
            found: Estimates by metric; without one of this metric the violation is infinite.
        """
        own = found.get(self.metric)
        if own is None:
            return math.inf
        missed = self.bound - own.mean if self.at_least else own.mean - self.bound
        return missed / (abs(self.bound) or 1.0)

    def check(self, found: Mapping[str, Estimate | None]) -> judging.Check:
        """Whether the bound is kept, by the interval; open where a run has no value.

        Args:
            found: Estimates by metric.
        """
        own = found.get(self.metric)
        if own is None:
            return judging.Check(None)
        return (judging.at_least if self.at_least else judging.at_most)(own, self.bound)


@dataclass(frozen=True, slots=True)
class Choice:
    """A factor with named values: how each reads, and what it puts into the scenario."""

    values: Mapping[Value, Any]


@dataclass(frozen=True, slots=True)
class TuningPlan:
    """A checked search.

    Attributes:
        search: What each factor may be.
        batch: How many trials are proposed before the sampler learns of any of them.
        runs: Runs of each trial, on the same seeds for all: trials differ by their settings alone.
        validation_runs: Runs of each winner on seeds that no trial has used.
        population: Of the sampler nsga-ii.
        seen: Points that were looked at before the search.
        derive: Makes the metrics of objectives and constraints of those in `observed`; None where they are
            measured themselves.
        observed: The measured metrics that `derive` needs.
        fresh: The seeds of the winners' validation, where they are not those behind the trials'.
        compared: The best trials run again beside each other and beside the scenario as it is; else the best
            alone does, and whoever asked compares it.
    """

    title: str
    base: Base
    search: Mapping[str, Range | Choice]
    objectives: tuple[Objective, ...]
    constraints: tuple[Constraint, ...]
    trials: int
    batch: int
    runs: int
    seed: int
    validation_runs: int
    sampler: str
    population: int
    seen: tuple[Point, ...] = ()
    derive: Derive | None = None
    observed: tuple[str, ...] = ()
    fresh: range | None = None
    compared: bool = False

    @property
    def size(self) -> int | None:
        """Return how many settings there are; None where a factor is a range of fractions."""
        sizes = [
            len(entry.values) if isinstance(entry, Choice) else entry.size for entry in self.search.values()
        ]
        return None if None in sizes else math.prod(size for size in sizes if size is not None)

    def as_it_is(self) -> Point | None:
        """The scenario with what the file sets in it, but for all that is searched; None if it is none."""
        searched = frozenset(self.search)
        kept = {
            path: value
            for path, value in self.base.settings.items()
            if searched.isdisjoint(document.fields(value))
        }
        try:
            return make_point(replace(self.base, settings=kept), {}, {}, "the scenario as it is")
        except ScenarioError:
            return None

    @property
    def watched(self) -> tuple[str, ...]:
        """The measured metrics that a trial needs."""
        return self.observed if self.derive is not None else self.metrics

    @property
    def metrics(self) -> tuple[str, ...]:
        """What objectives and constraints look at."""
        wanted = [objective.metric for objective in self.objectives]
        wanted += [constraint.metric for constraint in self.constraints]
        return tuple(dict.fromkeys(wanted))

    @property
    def seeds(self) -> range:
        """The seeds of every trial."""
        return range(self.seed, self.seed + self.runs)

    @property
    def validation_seeds(self) -> range:
        """The seeds of the winners' validation, unless given those behind the trials'."""
        if self.fresh is not None:
            return self.fresh
        return range(self.seed + self.runs, self.seed + self.runs + self.validation_runs)

    def point(self, values: Mapping[str, Value], label: str) -> Point:
        """The point at which the factors have these values.

        Raises:
            ScenarioError: It is no scenario, such as where two thresholds are in the wrong order.
        """
        return make_point(
            self.base,
            values,
            {
                name: entry.values[values[name]] if isinstance(entry, Choice) else values[name]
                for name, entry in self.search.items()
            },
            label,
        )


def read_tuning(
    source: Path | Mapping[str, Any], *, trials: int | None, runs: int | None, seed: int | None
) -> TuningPlan:
    """Read TUNE.toml, or data with its keys; what the command line says comes before what the file says.

    Raises:
        PerhopError: The file cannot be read or makes no search; the message names file and key.
        ScenarioError: No point of the search that was looked at is a scenario.
    """
    extent.given(runs, seed)
    if trials is not None:
        arguments.whole("trials", trials)
    path = document.place_of(source, "tune")
    data = document.read(source, "a search needs a `scenario`, `objectives` and a [search]")
    file_kinds.expect("tune", data, path)
    where = str(path)
    document.known_keys(data, tuple(KEYS), where)
    sampler = SAMPLER.read(data, "sampler", where)
    plan = TuningPlan(
        TITLE.read(data, "title", where) or path.stem,
        document.read_base(data, path),
        search_space(SEARCH.read(data, "search", where), f"{where}: [search]"),
        _objectives(data, where),
        tuple(_constraint(text, where) for text in CONSTRAINTS.read(data, "constraints", where)),
        TRIALS.read(data, "trials", where) if trials is None else trials,
        BATCH.read(data, "batch", where),
        TRIAL_RUNS.read(data, "runs", where) if runs is None else runs,
        SEED.read(data, "seed", where) if seed is None else seed,
        VALIDATION_RUNS.read(data, "validation-runs", where),
        sampler,
        POPULATION.read(data, "population", where),
        compared=True,
    )
    contradictions.refuse([_sides(entry) for entry in plan.constraints], f"{where}: `constraints`")
    if not 1 <= plan.trials <= MAX_TRIALS:
        raise ArgumentError("trials", f"must lie between 1 and {MAX_TRIALS}, not {plan.trials}")
    extent.seeds_of_file(plan.seed, plan.runs + plan.validation_runs, where)
    return replace(plan, seen=(_check(plan, where),))


def _check(plan: TuningPlan, where: str) -> Point:
    """Refuse a search without a scenario, and metrics that nothing has.

    Raises:
        ScenarioError: There is no scenario.
        PerhopError: A path names nothing, or a metric is not measured.
    """
    point = first_point(plan)
    check_metrics([point], [literal(name) for name in plan.metrics], f"{where}: a metric")
    return point


def _sides(constraint: Constraint) -> contradictions.Sides:
    """A constraint as what a measure must lie between."""
    least, most = (constraint.bound, math.inf) if constraint.at_least else (-math.inf, constraint.bound)
    subject, rank = contradictions.ranked(constraint.metric)
    return contradictions.Sides(constraint.text, subject, rank, least, most)


def first_point(plan: TuningPlan) -> Point:
    """The first of a search's middle and ends that makes a scenario.

    Raises:
        ScenarioError: They all make none.
        PerhopError: A path names nothing.
    """
    refused: ScenarioError | None = None
    for part in (0.5, 0.0, 0.999):
        values = {name: _at(entry, part) for name, entry in plan.search.items()}
        label = ", ".join(f"{name} = {text_of(value)}" for name, value in values.items())
        try:
            return plan.point(values, f"the search's point {label}")
        except ScenarioError as error:
            refused = refused or error
    assert refused is not None
    raise refused


def literal(name: str) -> str:
    """A name as a pattern that meets this name alone."""
    return re.sub(r"([*?[])", r"[\1]", name)


def _at(entry: Range | Choice, part: float) -> Value:
    if isinstance(entry, Range):
        return entry.at(part)
    values = list(entry.values)
    return values[int(part * len(values))]


def search_space(table: Mapping[str, Any], where: str) -> dict[str, Range | Choice]:
    """What each factor of a search may be.

    Raises:
        PerhopError: There is none, or one is neither a range nor values.
    """
    if not table:
        raise PerhopError(f'{where}: name what to search, such as "links.uplink.queue.limit" = "50p..400p"')
    return {
        name: parse_range(value, f"{where}: `{name}`")
        if isinstance(value, str)
        else Choice(dict(column(name, value, where)))
        for name, value in table.items()
    }


def _required(data: Mapping[str, Any], key: str, where: str) -> Sequence[str]:
    if key not in data:
        raise PerhopError(f'{where}: needs `{key}`, such as ["minimize rmse_to_targets_bps"]')
    return OBJECTIVES.read(data, key, where)


def _objectives(data: Mapping[str, Any], where: str) -> tuple[Objective, ...]:
    """What to make small or large, each metric once.

    Raises:
        PerhopError: One is no objective, or a metric is in two.
    """
    found = [_objective(text, where) for text in _required(data, "objectives", where)]
    for place, one in enumerate(found):
        for other in found[:place]:
            if one.metric == other.metric:
                both = "nothing does both" if one.maximize != other.maximize else "once is enough"
                raise PerhopError(f"{where}: `objectives`: {other.text!r} and {one.text!r}: {both}")
    return tuple(found)


def _objective(text: str, where: str) -> Objective:
    found = _OBJECTIVE.fullmatch(text)
    if found is None:
        raise PerhopError(
            f'{where}: `objectives`: {text!r} is no objective; write "minimize" or "maximize" '
            'and a measure, such as "minimize rmse_to_targets_bps"'
        )
    return Objective(naming.current(found[2]), found[1] == "maximize")


def _constraint(text: str, where: str) -> Constraint:
    found = _CONSTRAINT.fullmatch(text)
    example = 'such as "links.uplink.utilization >= 97%"'
    if found is None:
        problem = f"is no constraint; write a measure, >= or <=, and a value, {example}"
        raise PerhopError(f"{where}: `constraints`: {text!r} {problem}")
    if found[4] not in _UNITS:
        problem = why_no_rate(f"{found[3]}{found[4]}")
        raise PerhopError(f"{where}: `constraints`: {text!r}: {problem}, or {example}")
    metric, bound, at_least = (naming.current(found[1]), float(found[3]) * _UNITS[found[4]], found[2] == ">=")
    if at_least and bound > 1 and naming.unit_of_metric(metric) == "fraction":
        raise PerhopError(f"{where}: `constraints`: {text!r}: it is a share, at most 100 %")
    return Constraint(metric, at_least, bound, text.strip().replace(found[1], metric))
