"""The sweep itself: what is missing to the backend, what is finished to the store, until there is enough."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from perhop.statistics import estimate
from perhop.sweep.backend import Task
from perhop.sweep.journal import Layout, Record
from perhop.sweep.metrics import engine_id
from perhop.sweep.summary import observations

if TYPE_CHECKING:
    from perhop.sweep.backend import Backend
    from perhop.sweep.metrics import Measured
    from perhop.sweep.plan import Plan, Point, UntilCi
    from perhop.sweep.store import SweepStore

Progress = Callable[[str, int], AbstractContextManager[Callable[[], None]]]
"""Given what is counted and how many there are: a step to call after each."""


@dataclass(slots=True)
class Counts:
    """How many runs were simulated, and how many found finished in the store."""

    simulated: int = 0
    found: int = 0


@dataclass(slots=True)
class Runner:
    """Gets runs: from the store if it has them, else from the backend into the store."""

    store: SweepStore
    backend: Backend
    progress: Progress
    counts: Counts = field(default_factory=Counts)
    _finished: dict[str, set[int]] | None = None

    def ensure(self, points: Sequence[Point], seeds: Sequence[int]) -> None:
        """Have every point's run on every seed in the store.

        Raises:
            StoreError: A run could not be kept.
            PerhopError: The backend cannot go on.
            KeyboardInterrupt: Ctrl-C; what had finished is in the store.
        """
        if self._finished is None:
            self._finished = self.store.finished(engine_id())
        distinct = {point.key: point.scenario for point in points}
        keys, scenarios = list(distinct), list(distinct.values())
        none: set[int] = set()
        tasks = [
            Task(index, seed)
            for seed in seeds
            for index, key in enumerate(keys)
            if seed not in self._finished.get(key, none)
        ]
        self.counts.found += len(keys) * len(seeds) - len(tasks)
        if not tasks:
            return
        layouts: dict[int, Layout] = {}
        with self.progress("runs", len(tasks)) as step:
            groups = self.backend.run(scenarios, tasks)
            try:
                for group in groups:
                    self.store.append([_record(layouts, scenarios, task, run) for task, run in group])
                    self.counts.simulated += len(group)
                    for task, _ in group:
                        self._finished.setdefault(keys[task.scenario], set()).add(task.seed)
                        step()
            finally:
                _close(groups)


def sweep(plan: Plan, runner: Runner) -> list[int]:
    """Do every run of a plan that the store does not hold yet.

    Returns:
        How many runs of each point count: those on the first seeds. Without early stopping, all alike. They
        depend on the plan alone, and not on what else the store holds or on how the work was divided.

    Raises:
        StoreError: A run could not be kept.
        PerhopError: The backend cannot go on.
        KeyboardInterrupt: Ctrl-C; what had finished is in the store.
    """
    counts = [plan.runs] * len(plan.points)
    if plan.until_ci is None:
        runner.ensure(plan.points, range(plan.seed, plan.seed + plan.runs))
        return counts
    open_ = list(range(len(plan.points)))
    for runs in looks(plan.until_ci.least, plan.runs):
        points = [plan.points[index] for index in open_]
        runner.ensure(points, range(plan.seed, plan.seed + runs))
        seeds = [(point.key, plan.seed, runs) for point in points]
        found = observations(runner.store, seeds, plan.until_ci.metrics)
        wide = []
        for index, point in zip(open_, points, strict=True):
            counts[index] = runs
            if not tight(found.get((point.key, runs), {}), plan.until_ci, runs):
                wide.append(index)
        open_ = wide
        if not open_:
            break
    return counts


def looks(least: int, most: int) -> Iterator[int]:
    """After how many runs the intervals are looked at: each time about half as many more."""
    runs = least
    while runs < most:
        yield runs
        runs += max(1, runs // 2)
    yield most


def tight(found: Mapping[str, Mapping[int, float]], rule: UntilCi, runs: int) -> bool:
    """Whether the interval of every watched metric is tight enough; one that some run lacks never is."""
    for pattern in rule.metrics:
        names = [name for name in found if fnmatchcase(name, pattern)]
        for name in names:
            values = [value for _, value in sorted(found[name].items()) if not math.isnan(value)]
            if len(values) < runs:
                return False
            half = estimate(values).half_width
            if half is None or half > rule.width * abs(estimate(values).mean):
                return False
    return True


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
