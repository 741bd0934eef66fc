"""A deterministic parallel map over threads; the engine releases the GIL, so threads use all cores."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar, cast

from perhop._engine import Cancel
from perhop.processes import memory
from perhop.runs import one_run

T = TypeVar("T")
R = TypeVar("R")

_NAP_S = 0.05


def available_cores() -> int:
    """Number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def parallel_map(
    work: Callable[[T], R],
    tasks: Sequence[T],
    *,
    jobs: int,
    cancel: Cancel,
    finished: Callable[[int, R], None] | None = None,
    waiting: Callable[[float], None] | None = None,
    expected: int = 0,
) -> list[R]:
    """`[work(task) for task in tasks]` on `jobs` threads, in the order of the tasks on any number of them.

    If a task fails, or Ctrl-C arrives, `cancel` is set so that running simulations stop at once, tasks that
    have not begun are dropped, and the exception goes on to the caller.

    Args:
        work: Called once for each task, on any thread; stops early when `cancel` is set.
        tasks: Arguments.
        jobs: Number of threads, at least 1.
        cancel: The engine's cancellation flag that `work` hands to the engine.
        finished: Called on the calling thread after each finished task, in the order in which they finish,
            with the task's place in `tasks` and its result.
        waiting: Called on the calling thread many times a second with `cancel.under_way()`.
        expected: How many bytes the tasks take for certain; see `memory.Guard`.

    Raises:
        PerhopError: Memory is about to run out.
    """
    done: SimpleQueue[_Done[R]] = SimpleQueue()
    to_do, turn, stopped = enumerate(tasks), threading.Lock(), threading.Event()

    def take_tasks() -> None:
        while not stopped.is_set():
            with turn:
                place, task = next(to_do, (None, None))
            if place is None:
                return
            try:
                done.put(_Done(place, work(task)))  # type: ignore[arg-type]
            except BaseException as error:  # noqa: BLE001 - the calling thread raises it
                done.put(_Done(place, error=error))

    guard = memory.Guard(expected)
    results: dict[int, R] = {}
    threads = [
        threading.Thread(target=take_tasks, name=f"perhop-{number}", daemon=True)
        for number in range(min(jobs, len(tasks)))
    ]
    try:
        for thread in threads:
            thread.start()
        for _ in tasks:
            one = _next(done, cancel, guard, waiting)
            results[one.place] = one.get()
            if finished is not None:
                finished(one.place, results[one.place])
    except BaseException:
        cancel.cancel()
        raise
    finally:
        stopped.set()
        one_run.join([thread for thread in threads if thread.ident is not None])
    return [results[place] for place in range(len(tasks))]


@dataclass(frozen=True, slots=True)
class _Done(Generic[R]):
    """The result or the error of the task at a place."""

    place: int
    result: R | None = None
    error: BaseException | None = None

    def get(self) -> R:
        if self.error is not None:
            raise self.error
        return cast("R", self.result)


def _next(
    done: SimpleQueue[_Done[R]], cancel: Cancel, guard: memory.Guard, waiting: Callable[[float], None] | None
) -> _Done[R]:
    """The next finished task, waited for in short naps.

    A signal handler that restarts system calls (polars installs one) keeps Ctrl-C from ending an unbounded
    wait.
    """
    while True:
        try:
            return done.get(timeout=_NAP_S)
        except Empty:
            guard.check()
            if waiting is not None:
                waiting(cancel.under_way())
