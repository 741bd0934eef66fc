"""The sweep itself: what is missing to the backend, what is finished to the store, until there is enough."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from perhop.blocks.digests import not_reused
from perhop.processes import interrupts
from perhop.runs.companions import Gathered, chosen, meets
from perhop.statistics import stopping
from perhop.statistics.observations import Observations
from perhop.statistics.stopping import Look
from perhop.stores.measures import Layout, Record
from perhop.stores.metrics import Measured, engine_id
from perhop.sweeps import warm_ups
from perhop.sweeps.backend import Backend, Failed, Task

if TYPE_CHECKING:
    import polars as pl

    from perhop.stores.sweeps import SweepStore
    from perhop.sweeps.plan import Point, SweepPlan

Progress = Callable[[str, int], AbstractContextManager[Callable[[], None]]]
"""Given what is counted and how many there are: a step to call after each; if it has a method `waiting`, it
is called many times a second with the number of steps under way."""


@dataclass(slots=True)
class Counts:
    """How many runs were simulated, how many reused from the store, and how many failed."""

    simulated: int = 0
    found: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Failure:
    """A run that came to no end.

    Attributes:
        text: What the error says.
    """

    point: Point
    seed: int
    text: str


@dataclass(slots=True)
class Runner:
    """Gets runs: from the store if it has them, else from the backend into the store.

    Attributes:
        watched: Patterns of the metrics that `observed` gives.
        counts: What it cost.
        failures: The runs that failed, in the order in which they did.
        warm_ups: Of the points of which `observed` was asked: those that were found, by their keys.
    """

    store: SweepStore
    backend: Backend
    progress: Progress
    watched: tuple[str, ...] = ()
    counts: Counts = field(default_factory=Counts)
    failures: list[Failure] = field(default_factory=list)
    warm_ups: dict[str, warm_ups.Found] = field(default_factory=dict)
    _failed: dict[str, set[int]] = field(default_factory=dict)
    _finished: dict[str, set[int]] | None = None
    _counted: dict[str, set[int]] = field(default_factory=dict)
    _seen: dict[str, dict[int, dict[str, float]]] = field(default_factory=dict)
    _told: set[str] = field(default_factory=set)

    def ensure(self, points: Sequence[Point], seeds: Sequence[int]) -> None:
        """Have every point's run on every seed in the store; see `ensure_each`."""
        self.ensure_each(points, [seeds] * len(points))

    def ensure_each(self, points: Sequence[Point], of_points: Sequence[Sequence[int]]) -> None:
        """Have every point's run on each of its seeds in the store, but for those that fail.

        A run that failed is not tried again by this runner, and is not kept.

        Args:
            points: The points.
            of_points: The seeds of each; points with the same scenario have the same.

        Raises:
            StoreError: A run could not be kept.
            PerhopError: The backend cannot go on.
            KeyboardInterrupt: Ctrl-C; what had finished is in the store.
        """
        if self._finished is None:
            self._finished = self.store.finished(engine_id())
            if self.watched:
                kept = self.store.runs(*self.watched, engine=engine_id(), with_companions=True)
                self._seen = _seen(kept)
        by_key = {point.key: point for point in reversed(points)}
        distinct = {point.key: point.scenario for point in points}
        seeds_of = {point.key: seeds for point, seeds in zip(points, of_points, strict=True)}
        self._tell_what_is_not_reused(distinct)
        keys, scenarios = list(distinct), list(distinct.values())
        finished = [self._finished.setdefault(key, set()) for key in keys]
        for key, known in zip(keys, finished, strict=True):
            counted = self._counted.setdefault(key, set())
            self.counts.found += sum(seed in known and seed not in counted for seed in seeds_of[key])
            counted.update(seeds_of[key])
        tasks = [
            Task(index, seed)
            for index, (key, known) in enumerate(zip(keys, finished, strict=True))
            for seed in seeds_of[key]
            if seed not in known and seed not in self._failed.get(key, ())
        ]
        tasks.sort(key=lambda task: task.seed)  # points in turn
        if not tasks:
            return
        layouts: dict[int, Layout] = {}
        with self.progress("runs", len(tasks)) as step:
            self.backend.waiting = getattr(step, "waiting", None)
            groups = self.backend.run(scenarios, tasks)
            try:
                for group in groups:
                    with interrupts.deferred():  # what Ctrl-C leaves is counted as it is kept
                        whole = [(task, run) for task, run in group if not isinstance(run, Failed)]
                        self.store.append([_record(layouts, scenarios, task, run) for task, run in whole])
                        self.counts.simulated += len(whole)
                    for task, run in group:
                        key = keys[task.scenario]
                        if isinstance(run, Failed):
                            self._fail(by_key[key], task.seed, run.text)
                        else:
                            finished[task.scenario].add(task.seed)
                            self._look(key, task.seed, run)
                        step()
            finally:
                _close(groups)

    def observed(self, point: Point, seeds: Sequence[int]) -> dict[str, Observations]:
        """The watched metrics of a point's runs, by name, in the order of the seeds; NaN where a run failed.

        Where all failed, there are the metrics that are watched by name. Nothing where none is watched.

        Raises:
            KeyError: `ensure` was not called for a run.
        """
        if not self.watched:
            return {}
        failed, seen = self._failed.get(point.key, set()), self._seen.get(point.key, {})
        runs: list[dict[str, float]] = [{} if seed in failed else seen[seed] for seed in seeds]
        first = next(filter(None, runs), {})
        if (warm_up := warm_ups.found_in(point.label, point.scenario, first)) is not None:
            self.warm_ups[point.key] = warm_up
        names = first or dict.fromkeys(map(_unescaped, self.watched))
        gathered = Gathered({name: [run.get(name, math.nan) for run in runs] for name in names})
        return {name: gathered.of(name) for name in names if meets(name, self.watched)}

    def has_failed(self, point: Point, seeds: Sequence[int]) -> bool:
        """Whether one of a point's runs failed."""
        return not self._failed.get(point.key, set()).isdisjoint(seeds)

    def _fail(self, point: Point, seed: int, text: str) -> None:
        self._failed.setdefault(point.key, set()).add(seed)
        self.failures.append(Failure(point, seed, text))
        self.counts.failed += 1

    def _tell_what_is_not_reused(self, scenarios: Mapping[str, str]) -> None:
        """Say once of each class in Python that its runs are computed anew, and why."""
        said = {
            text for key, one in scenarios.items() if key not in self._counted for text in not_reused(one)
        }
        for text in sorted(said - self._told):
            self.store.say(f"warning: {text}")
        self._told |= said

    def _look(self, key: str, seed: int, run: Measured) -> None:
        if self.watched:
            values = {name: run.values[place] for place, name in chosen(run.names, self.watched)}
            self._seen.setdefault(key, {})[seed] = values


def _unescaped(pattern: str) -> str:
    """The name that a pattern without wildcards meets."""
    return re.sub(r"\[([*?[])\]", r"\1", pattern)


def _seen(frame: pl.DataFrame) -> dict[str, dict[int, dict[str, float]]]:
    """The values of runs by scenario, seed and name, of a frame that `SweepStore.runs` gave."""
    found: dict[str, dict[int, dict[str, float]]] = {}
    for row in frame.drop("engine", "wall_s").iter_rows(named=True):
        values = {name: value for name, value in row.items() if value is not None}
        found.setdefault(values.pop("scenario"), {})[values.pop("seed")] = values
    return found


def sweep(plan: SweepPlan, runner: Runner) -> tuple[list[int], list[Look | None]]:
    """Do every run of a plan that the store does not hold yet.

    Returns:
        How many runs of each point count: those on the first seeds. Without early stopping, all alike. They
        depend on the plan alone, and not on what else the store holds or on how the work was divided. And,
        with early stopping, the last look at each point; None of points of which a run failed.

    Raises:
        StoreError: A run could not be kept.
        PerhopError: The backend cannot go on.
        KeyboardInterrupt: Ctrl-C; what had finished is in the store.
    """
    if plan.until is None:
        runner.ensure(plan.points, range(plan.seed, plan.seed + plan.runs))
        return [plan.runs] * len(plan.points), []
    counts = [plan.until.least] * len(plan.points)
    looks: list[Look | None] = [None] * len(plan.points)
    open_ = list(range(len(plan.points)))
    while open_:
        of_points = [range(plan.seed, plan.seed + counts[index]) for index in open_]
        runner.ensure_each([plan.points[index] for index in open_], of_points)
        still = []
        for index, seeds in zip(open_, of_points, strict=True):
            point = plan.points[index]
            if runner.has_failed(point, seeds):
                looks[index] = None
                continue
            looks[index] = found = stopping.look(runner.observed(point, seeds), counts[index])
            if (more := plan.until.after(found)) > counts[index]:
                counts[index] = more
                still.append(index)
        open_ = still
    return counts, looks


def _record(layouts: dict[int, Layout], scenarios: Sequence[str], task: Task, run: Measured) -> Record:
    layout = layouts.get(task.scenario)
    if layout is None:
        layout = layouts[task.scenario] = Layout(scenarios[task.scenario], engine_id(), run.names)
    assert len(run.values) == len(layout.metrics)
    return Record(layout, task.seed, run.wall_s, run.values)


def _close(groups: object) -> None:
    """Stop what is under way; generators are closed as soon as nobody reads them."""
    close = getattr(groups, "close", None)
    if close is not None:
        close()
