"""`perhop sweep` from its file to its results."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from perhop import extras
from perhop.errors import ArgumentError
from perhop.files import arguments
from perhop.plurals import counted, counted_are
from perhop.processes import interrupts
from perhop.runs import extent
from perhop.show.metric_names import within
from perhop.show.report import Report
from perhop.show.written import Written
from perhop.statistics.stopping import Look
from perhop.stores.sweeps import SweepStore
from perhop.sweeps import failing
from perhop.sweeps.backend import Backend, LocalBackend
from perhop.sweeps.plan import SweepPlan
from perhop.sweeps.run import Counts, Failure, Progress, Runner, sweep
from perhop.sweeps.summary import PointSummary, as_report, summarize, to_json

BACKENDS = ("local", "ray")


@dataclass(frozen=True, slots=True)
class Workplace:
    """The place where runs are kept and computed.

    Attributes:
        store: The folder of finished runs.
        backend: One of `BACKENDS`.
        jobs: Threads; None for all cores.
        address: Of a Ray cluster; None for `RAY_ADDRESS`, or a Ray of its own.
    """

    store: Path
    backend: str = "local"
    jobs: int | None = None
    address: str | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be, before anything is read or made.

        Raises:
            PerhopError: There is no such backend, or what it needs is not installed.
        """
        arguments.one_of("backend", self.backend, BACKENDS)
        extent.workers(self.jobs)
        if self.address is not None and self.backend == "local":
            raise ArgumentError("address", "names a Ray cluster; give the backend ray, too")
        if self.backend == "ray":
            extras.RAY.demand()


@dataclass(slots=True, repr=False, eq=False)
class Swept(Written):
    """A finished sweep: the estimates of each metric at each point, and the cost of the runs.

    Attributes:
        plan: The points, their scenarios and seeds, and the metrics to show.
        counts: How many runs of each point count.
        summaries: One for each point: `point.factors`, and `estimates` by metric, means with 95 % intervals
            in the units that end the metrics' names.
        work: How many runs were simulated, found in the store, and failed.
        store: The folder in which the runs are kept.
        looks: With early stopping, the last look at each point, with its widest interval; else empty.
        failures: The runs that failed, in the order of the points and seeds; their points have no estimates.
    """

    COMMAND: ClassVar = "perhop sweep"
    RERUNS: ClassVar = True
    TABLE: ClassVar = "points"
    plan: SweepPlan
    counts: Sequence[int]
    summaries: Sequence[PointSummary]
    work: Counts
    store: Path
    looks: Sequence[Look | None] = ()
    failures: Sequence[Failure] = ()
    command: str = ""

    def _reports(self, width: int | None) -> list[Report]:  # noqa: ARG002 - the same for any width
        return [as_report(self.plan, self.summaries, self.looks, self.failures)]

    def json(self) -> str:
        """Return what `perhop sweep --json` writes."""
        return to_json(self.plan, self.summaries, self.failures, self.looks)

    def _outline(self) -> str:
        sizes = f"{counted(len(self.summaries), 'point')}, {counted(sum(self.counts), 'run')}"
        return f"{self.plan.title!r}: {sizes}{failing.count(self.failures)}"

    def _write(self, place: Path, command: str, jobs: int) -> None:
        from perhop.sweeps import report  # noqa: PLC0415 - pictures load matplotlib

        report.write_sweep(place, self, self.store, command, jobs)


def run_sweep(plan: SweepPlan, place: Workplace, *, say: Callable[[str], None], progress: Progress) -> Swept:
    """Do what is missing of a sweep, and estimate.

    Args:
        plan: What to do.
        place: The place where runs are kept and computed.
        say: Receives sentences about the plan and about faults that were found in the store.
        progress: See `perhop.sweeps.run.Progress`.

    Raises:
        PerhopError: The store fails, or the backend cannot go on.
        KeyboardInterrupt: Ctrl-C; what had finished is in the store.
    """
    say(planned(plan))
    with open_backend(place) as backend, SweepStore(place.store, say) as store:
        runner = Runner(store, backend, progress, plan.until.metrics if plan.until else ())
        interrupts.leaves(lambda: kept(runner.counts, place.store))
        counts, looks = sweep(plan, runner)
        store.sync()
        failures = failing.ordered(runner.failures, [point.key for point in plan.points])
        summaries = failing.without_estimates(summarize(plan, counts, store), failures)
        return Swept(plan, counts, summaries, runner.counts, place.store, looks, failures)


def planned(plan: SweepPlan) -> str:
    """What a sweep is about to do, in a sentence."""
    points = counted(len(plan.points), "point")
    if plan.until is None:
        runs = counted(len(plan.points) * plan.runs, "run")
        return f"{points}, {counted(plan.runs, 'run')} of each: {runs}"
    rule = plan.until
    runs = f"{rule.least} to {rule.most} runs" if rule.least < rule.most else counted(rule.most, "run")
    return (
        f"{points}, {runs} of each, until the 95 % intervals of "
        f"{', '.join(rule.metrics)} are within {within(rule.width)}"
    )


def kept(counts: Counts, store: Path) -> str:
    """The line after Ctrl-C: how many runs are kept, and how to resume."""
    done = counts.simulated + counts.found
    return f"interrupted: {counted_are(done, 'run')} kept in {store}; the same command resumes"


def open_backend(place: Workplace) -> Backend:
    """The backend of a place."""
    if place.backend == "local":
        return LocalBackend(extent.workers(place.jobs))
    ray = importlib.import_module("perhop.sweeps.ray_backend")
    backend: Backend = ray.RayBackend(place.address, place.jobs)
    return backend
