"""The extent of work: how many runs, seeds and threads may be asked for."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np

from perhop.errors import PerhopError
from perhop.runs.parallel import available_cores

MAX_SEED = 2**64 - 1
MAX_RUNS = 100_000
"""Runs of one scenario that a command does at most."""

Engine: TypeAlias = Literal["batched", "reference"]
ENGINES: tuple[Engine, ...] = get_args(Engine)
"""The engines that compute a run; see docs/results.md."""


def seeds(first: int, runs: int) -> tuple[int, ...]:
    """The seeds of `runs` runs: first, first + 1, … All cells of a study share them, which pairs their runs.

    Raises:
        PerhopError: No run, more than `MAX_RUNS`, a negative seed, one beyond 64 bits, or something that is
            no whole number.
    """
    runs, first = _whole("runs", runs), _whole("seed", first)
    if not 1 <= runs <= MAX_RUNS:
        raise PerhopError(f"runs must be at least 1 and at most {MAX_RUNS:,}, not {runs}")
    if not 0 <= first <= MAX_SEED:
        raise PerhopError(f"seed must be at least 0 and fit in 64 bits, not {first}")
    if first + runs - 1 > MAX_SEED:
        raise PerhopError(
            f"seed {first} leaves no room for {runs} runs: the last seed must fit in 64 bits; "
            f"begin at {MAX_SEED - runs + 1} or below"
        )
    return tuple(range(first, first + runs))


def _whole(name: str, value: object) -> int:
    """A whole number as Python's own, whose sums do not overflow."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise PerhopError(f"{name} must be a whole number, not {value!r}")
    return int(value)


def workers(jobs: int | None) -> int:
    """The number of threads to use: all cores by default.

    Raises:
        PerhopError: Fewer than 1 or more than 1024 threads.
    """
    if jobs is None:
        return available_cores()
    jobs = _whole("jobs", jobs)
    if not 1 <= jobs <= 1024:
        raise PerhopError(f"jobs must lie between 1 and 1024, not {jobs}")
    return jobs


def threads_each(threads: int | None, jobs: int, runs: int) -> int:
    """The most threads of each run: if not given, the cores that the runs leave idle.

    Raises:
        PerhopError: Fewer than 1 or more than 1024 threads.
    """
    if threads is None:
        return max(1, available_cores() // max(1, min(jobs, runs)))
    threads = _whole("threads", threads)
    if not 1 <= threads <= 1024:
        raise PerhopError(f"threads must lie between 1 and 1024, not {threads}")
    return threads
