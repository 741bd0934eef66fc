"""A deterministic parallel map over threads; the engine releases the GIL, so threads use all cores."""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, TypeVar

from perhop import memory

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from perhop._engine import Cancel

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
    pool = ThreadPoolExecutor(max_workers=jobs, thread_name_prefix="perhop")
    places = {pool.submit(work, task): place for place, task in enumerate(tasks)}
    done: SimpleQueue[Future[R]] = SimpleQueue()
    for future in places:
        future.add_done_callback(done.put)
    guard = memory.Guard(expected)
    try:
        for _ in places:
            future = _next(done, cancel, guard, waiting)
            result = future.result()
            if finished is not None:
                finished(places[future], result)
    except BaseException:
        cancel.cancel()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    return [future.result() for future in places]


def _next(
    done: SimpleQueue[Future[R]],
    cancel: Cancel,
    guard: memory.Guard,
    waiting: Callable[[float], None] | None,
) -> Future[R]:
    """The next finished future, waited for in short naps.

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
