"""Backends of runs: this machine's cores, or another place behind the same protocol."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Protocol, Self, TypeAlias

from perhop import _engine
from perhop.errors import BlockError, ScenarioError
from perhop.processes import memory
from perhop.runs import one_run
from perhop.stores.metrics import Measured, simulate

_NAP_S = 0.05
_AT_ONCE = 256
"""Runs handed over together at most, so that short ones share a write."""


@dataclass(frozen=True, slots=True)
class Task:
    """One run to do: the place of its scenario, and its seed."""

    scenario: int
    seed: int


@dataclass(frozen=True, slots=True)
class Failed:
    """A run that came to no end: one of its classes in Python raised, or its scenario cannot be run.

    Attributes:
        text: What the error says.
    """

    text: str


Done: TypeAlias = "tuple[Task, Measured | Failed]"
RunErrors = (BlockError, ScenarioError)
"""The errors that are of one run, so that the others go on."""


def attempt(scenario: str, seed: int, cancel: _engine.Cancel | None = None) -> Measured | Failed:
    """Run a scenario once and measure it, or say why it cannot be.

    Args:
        scenario: Canonical JSON.
        seed: The seed.
        cancel: As for `perhop.stores.metrics.simulate`.

    Raises:
        perhop._engine.Cancelled: `cancel` was set.
        PerhopError: What is wrong concerns all runs, such as a class that has changed.
    """
    try:
        return simulate(scenario, seed, cancel)
    except RunErrors as error:
        return Failed(" ".join(str(error).split()))


class Backend(Protocol):
    """Computes runs; the same results bit for bit, wherever and in whatever order.

    Attributes:
        waiting: Called many times a second with what is under way, in whole runs, where the backend knows.
    """

    waiting: Callable[[float], None] | None

    def run(self, scenarios: Sequence[str], tasks: Sequence[Task]) -> Iterator[list[Done]]:
        """Each task's run, or why it failed, in groups as they finish.

        To be consumed on the thread that calls. Leaving the iterator early stops what is under way.

        Args:
            scenarios: Canonical JSON.
            tasks: Each with an index into `scenarios`.

        Raises:
            PerhopError: The backend cannot go on.
        """
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class LocalBackend:
    """Threads of this process: the engine lets go of the interpreter's lock while it runs."""

    def __init__(self, jobs: int) -> None:
        """A backend with this many threads, at least 1."""
        self.jobs = jobs
        self.waiting: Callable[[float], None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing is kept between calls of `run`."""

    def run(self, scenarios: Sequence[str], tasks: Sequence[Task]) -> Iterator[list[Done]]:
        """See `Backend`."""
        cancel = _engine.Cancel(memory.share(self.jobs))
        guard = memory.Guard()

        def nap() -> None:
            guard.check()
            if self.waiting is not None:
                self.waiting(cancel.under_way())

        left = iter(tasks)
        take = threading.Lock()
        done: SimpleQueue[Done | BaseException] = SimpleQueue()

        def work() -> None:
            try:
                while True:
                    with take:
                        task = next(left, None)
                    if task is None:
                        return
                    done.put((task, attempt(scenarios[task.scenario], task.seed, cancel)))
            except BaseException as error:  # noqa: BLE001 - raised again on the thread that waits
                done.put(error)

        threads = [
            threading.Thread(target=work, name=f"perhop-{number}", daemon=True)
            for number in range(min(self.jobs, len(tasks)))
        ]
        try:
            for thread in threads:
                thread.start()
            missing = len(tasks)
            while missing:
                group = _together(done, nap)
                missing -= len(group)
                yield group
        finally:
            cancel.cancel()
            with take:
                left = iter(())
            one_run.join([thread for thread in threads if thread.ident is not None])


def _together(done: SimpleQueue[Done | BaseException], nap: Callable[[], None]) -> list[Done]:
    """What has finished by now, at least one; waited for in short naps, so that Ctrl-C gets through.

    What had finished before a thread failed is handed over before its error.
    """
    group: list[Done] = []
    while len(group) < _AT_ONCE:
        try:
            found = done.get(timeout=0 if group else _NAP_S)
        except Empty:
            if group:
                return group
            nap()
            continue
        if isinstance(found, BaseException):
            if not group:
                raise found
            done.put(found)
            return group
        group.append(found)
    return group
