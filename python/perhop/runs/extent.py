"""The extent of work: how many runs, seeds and threads may be asked for."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from perhop.errors import ArgumentError, PerhopError
from perhop.files import arguments
from perhop.runs.parallel import available_cores

MAX_SEED = 2**64 - 1
MAX_RUNS = 100_000
"""Runs of one scenario that a command does at most."""
MAX_THREADS = 1024

Engine: TypeAlias = Literal["batched", "reference"]
ENGINES: tuple[Engine, ...] = get_args(Engine)
"""The engines that compute a run; see docs/results.md."""


def seeds(first: int, runs: int, counted: str = "runs") -> tuple[int, ...]:
    """The seeds of `runs` runs: first, first + 1, … All cells of a study share them, which pairs their runs.

    Args:
        first: The first seed.
        runs: How many.
        counted: The name of the argument that counts them, for messages.

    Raises:
        ArgumentError: No run, more than `MAX_RUNS`, a negative seed, one beyond 64 bits, or something that is
            no whole number.
    """
    runs, first = arguments.whole(counted, runs), arguments.whole("seed", first)
    if not 1 <= runs <= MAX_RUNS:
        raise ArgumentError(counted, f"must be at least 1 and at most {MAX_RUNS:,}, not {runs}")
    if not 0 <= first <= MAX_SEED:
        raise ArgumentError("seed", f"must be at least 0 and fit in 64 bits, not {first}")
    if first + runs - 1 > MAX_SEED:
        raise ArgumentError(
            "seed",
            f"{first} leaves no room for {runs} runs: the last seed must fit in 64 bits; "
            f"begin at {MAX_SEED - runs + 1} or below",
        )
    return tuple(range(first, first + runs))


def given(runs: int | None, seed: int | None) -> None:
    """Refuse a number of runs and a first seed that are given in place of those of a file; None if not.

    Raises:
        ArgumentError: One of them cannot be.
    """
    seeds(1 if seed is None else seed, 1 if runs is None else runs)


def seeds_of_file(first: int, runs: int, where: str) -> tuple[int, ...]:
    """The seeds of runs that a file asks for.

    Raises:
        PerhopError: They cannot be; the message begins with `where`, the file and the place in it.
    """
    try:
        return seeds(first, runs)
    except ArgumentError as error:
        raise PerhopError(f"{where}: {error}") from None


def workers(jobs: int | None) -> int:
    """The number of threads to use: all cores by default.

    Raises:
        ArgumentError: Fewer than 1 or more than 1024 threads.
    """
    return available_cores() if jobs is None else _threads("jobs", jobs)


def threads_each(threads: int | None, jobs: int, runs: int) -> int:
    """The most threads of each run: if not given, the cores that the runs leave idle.

    Raises:
        ArgumentError: Fewer than 1 or more than 1024 threads.
    """
    if threads is None:
        return max(1, available_cores() // max(1, min(jobs, runs)))
    return _threads("threads", threads)


def _threads(name: str, value: object) -> int:
    number = arguments.whole(name, value)
    if not 1 <= number <= MAX_THREADS:
        raise ArgumentError(name, f"must lie between 1 and {MAX_THREADS}, not {number}")
    return number
