"""The parallel map keeps order, and stops at the first failure."""

from __future__ import annotations

import threading
import time

import pytest

from perhop._engine import Cancel
from perhop.runs.parallel import available_cores, parallel_map


@pytest.mark.parametrize("jobs", [1, 2, 7])
def test_order_does_not_depend_on_the_number_of_threads(jobs: int) -> None:
    def work(n: int) -> int:
        time.sleep(0.002 * (5 - n % 5))
        return n * n

    ticks: list[tuple[threading.Thread, int, int]] = []
    squares = parallel_map(
        work,
        range(20),
        jobs=jobs,
        cancel=Cancel(),
        finished=lambda place, result: ticks.append((threading.current_thread(), place, result)),
    )
    assert squares == [n * n for n in range(20)]
    assert sorted(ticks, key=lambda tick: tick[1]) == [
        (threading.current_thread(), n, n * n) for n in range(20)
    ]


def test_a_failure_drops_what_has_not_begun() -> None:
    begun: list[int] = []

    def work(n: int) -> None:
        begun.append(n)
        time.sleep(0.01)
        if n == 1:
            raise LookupError("one")

    with pytest.raises(LookupError, match="one"):
        parallel_map(work, range(1000), jobs=2, cancel=Cancel())
    assert len(begun) < 100


def test_cores() -> None:
    assert available_cores() >= 1
