"""`perhop sweep` from its file to its results."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from perhop.errors import PerhopError
from perhop.files.outputs import Written
from perhop.plurals import counted, counted_are
from perhop.processes import interrupts
from perhop.runs import extent
from perhop.show.numbers import exact
from perhop.stores.sweeps import SweepStore
from perhop.sweeps import failing
from perhop.sweeps.backend import LocalBackend
from perhop.sweeps.run import Counts, Runner, sweep
from perhop.sweeps.summary import summarize, to_json, to_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from perhop.sweeps.backend import Backend
    from perhop.sweeps.plan import SweepPlan
    from perhop.sweeps.run import Failure, Progress
    from perhop.sweeps.summary import PointSummary


@dataclass(frozen=True, slots=True)
class Workplace:
    """The place where runs are kept and computed.

    Attributes:
        backend: "local" or "ray".
        address: Of a Ray cluster; None for `RAY_ADDRESS`, or a Ray of its own.
    """

    store: Path
    backend: str
    jobs: int | None
    address: str | None


@dataclass(slots=True)
class Swept(Written):
    """A finished sweep.

    Attributes:
        counts: How many runs of each point count.
        work: What it cost.
        reached: With early stopping, how wide the intervals of each point are; see `perhop.sweeps.run.sweep`.
        store: Where the runs are kept.
        failures: The runs that failed, in the order of the points and seeds; their points have no estimates.
    """

    COMMAND: ClassVar = "perhop sweep"
    plan: SweepPlan
    counts: Sequence[int]
    summaries: Sequence[PointSummary]
    work: Counts
    store: Path
    reached: Sequence[float | None] = ()
    failures: Sequence[Failure] = ()

    def text(self, width: int | None = None) -> str:
        """The sweep as plain text for a terminal of that width; None for no limit."""
        return to_text(self.plan, self.summaries, width, self.reached, self.failures)

    def json(self) -> str:
        """The sweep as JSON text."""
        return to_json(self.plan, self.summaries, self.failures, self.reached)

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
        runner = Runner(store, backend, progress, plan.until_ci.metrics if plan.until_ci else ())
        interrupts.leaves(lambda: kept(runner.counts, place.store))
        counts, reached = sweep(plan, runner)
        store.sync()
        failures = failing.ordered(runner.failures, [point.key for point in plan.points])
        summaries = failing.without_estimates(summarize(plan, counts, store), failures)
        return Swept(plan, counts, summaries, runner.counts, place.store, reached, failures)


def planned(plan: SweepPlan) -> str:
    """What a sweep is about to do, in a sentence."""
    points = counted(len(plan.points), "point")
    if plan.until_ci is None:
        runs = counted(len(plan.points) * plan.runs, "run")
        return f"{points}, {counted(plan.runs, 'run')} of each: {runs}"
    rule = plan.until_ci
    runs = f"{rule.least} to {plan.runs} runs" if rule.least < plan.runs else counted(plan.runs, "run")
    return (
        f"{points}, {runs} of each, until the 95 % intervals of "
        f"{', '.join(rule.metrics)} are within ±{exact(rule.width * 100)} %"
    )


def kept(counts: Counts, store: Path) -> str:
    """The line after Ctrl-C: how many runs are kept, and how to resume."""
    done = counts.simulated + counts.found
    return f"interrupted: {counted_are(done, 'run')} kept in {store}; the same command resumes"


def open_backend(place: Workplace) -> Backend:
    """The backend that the command line names.

    Raises:
        PerhopError: There is none of this name, or what it needs is not installed.
    """
    if place.backend == "local":
        if place.address is not None:
            raise PerhopError("--address names a Ray cluster; give --backend ray, too")
        return LocalBackend(extent.workers(place.jobs))
    if place.backend == "ray":
        jobs = None if place.jobs is None else extent.workers(place.jobs)
        backend: Backend = importlib.import_module("perhop.sweeps.ray_backend").RayBackend(
            place.address, jobs
        )
        return backend
    raise PerhopError(f"--backend {place.backend}: there are local and ray")
