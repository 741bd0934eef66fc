"""Runs on a Ray cluster: batches go out, results come back to the driver, which alone writes the store."""

from __future__ import annotations

import itertools
import logging
import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, Self

from perhop import extras
from perhop.blocks import sending
from perhop.errors import PerhopError
from perhop.runs import one_run
from perhop.stores.metrics import Measured, engine_id
from perhop.sweeps.backend import Done, Failed, Task, attempt

# Ray reads these as it is imported: it is not to report home, and not to warn of devices that we do not use.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")

try:
    import ray
except ImportError:
    raise extras.RAY.missing from None

MOST_IN_BATCH = 64
BATCHES_PER_CPU = 8
"""Batches for each processor, so that all end at about the same time; a lost node costs a few of them."""
IN_FLIGHT_PER_CPU = 2
RETRIES = 20
"""How often a batch may lose its worker or node; a run that always kills its worker must end."""
_NAP_S = 0.5
_COUNT_EVERY_S = 1.0
"""A cluster may grow or shrink: its processors are counted again this often."""
_KNOCK_S = 10.0


class Refused(Exception):  # noqa: N818 - it is an answer
    """A worker's engine is not the driver's."""


class RayBackend:
    """The processors of a Ray cluster."""

    def __init__(self, address: str | None, jobs: int | None) -> None:
        """Connect.

        Args:
            address: `HOST:PORT` of a cluster, `auto` for this machine's; None for what `RAY_ADDRESS` says or,
                if it says nothing, a Ray that is started for this sweep and ends with it.
            jobs: Batches under way at once; by the cluster's processors if None.

        Raises:
            PerhopError: No cluster answers there.
        """
        self.jobs = jobs
        self.waiting: Callable[[float], None] | None = None
        known = address or os.environ.get("RAY_ADDRESS") or "local"
        options: dict[str, Any] = {"include_dashboard": False, "num_cpus": jobs} if known == "local" else {}
        _knock(known)
        try:
            ray.init(address=known, log_to_driver=False, logging_level=logging.ERROR, **options)
        except (ConnectionError, ValueError, RuntimeError, TimeoutError) as error:
            reason = " ".join(str(error).split())
            raise PerhopError(f"--address {known}: no Ray cluster answers: {reason}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the cluster; what this driver had under way there ends."""
        ray.shutdown()

    def run(self, scenarios: Sequence[str], tasks: Sequence[Task]) -> Iterator[list[Done]]:
        """See `perhop.sweeps.backend.Backend`."""
        compute = ray.remote(num_cpus=1, max_retries=RETRIES, scheduling_strategy="SPREAD")(batch)
        # Runs of a scenario together: its text and the names of its measures then travel once for a batch.
        left = _batches(sorted(tasks, key=lambda task: task.scenario), self._cpus())
        pending: dict[Any, Sequence[Task]] = {}
        most, count_at = 0, 0.0

        def hand_out() -> None:
            nonlocal most, count_at
            if (now := time.monotonic()) >= count_at:
                most, count_at = self.jobs or IN_FLIGHT_PER_CPU * self._cpus(), now + _COUNT_EVERY_S
            for chosen in itertools.islice(left, max(0, most - len(pending))):
                texts = {task.scenario: scenarios[task.scenario] for task in chosen}
                work = [(task.scenario, task.seed) for task in chosen]
                classes = sending.shipped(set().union(*map(one_run.modules, texts.values())))
                pending[compute.remote(engine_id(), texts, work, classes)] = chosen

        while True:
            hand_out()
            if not pending:
                return
            for reference in _ready(list(pending)):
                runs = _result(reference)
                yield list(zip(pending.pop(reference), runs, strict=True))
                hand_out()

    def _cpus(self) -> int:
        resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
        return max(1, int(resources.get("CPU", 1)))


def _ready(pending: list[Any]) -> list[Any]:
    """The references whose batches have ended, waited for so long that Ctrl-C gets through.

    All of them at once: to look through thousands costs the driver as much as a dozen runs.
    """
    ready, _ = ray.wait(pending, num_returns=1, timeout=_NAP_S)
    if ready:
        ready, _ = ray.wait(pending, num_returns=len(pending), timeout=0)
    return ready


def _knock(address: str) -> None:
    """Refuse an address at which nobody listens: Ray itself would try for minutes.

    Raises:
        PerhopError: Nobody does.
    """
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdigit():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_KNOCK_S).close()
    except (OSError, OverflowError) as error:
        raise PerhopError(f"--address {address}: no Ray cluster answers: {error}") from None


def batch(
    engine: str, scenarios: dict[int, str], tasks: list[tuple[int, int]], classes: sending.Sent
) -> list[Measured | Failed]:
    """Several runs, on a worker; those that failed with the reason.

    Args:
        engine: What the driver would compute them with.
        scenarios: Canonical JSON, by the number that tasks use.
        tasks: (scenario, seed) of each run.
        classes: The sources of modules with classes in Python, and of what they import.

    Raises:
        Refused: The worker has another engine.
    """
    if engine_id() != engine:
        raise Refused(engine_id())
    sending.receive(classes)
    names: dict[int, tuple[str, ...]] = {}
    runs: list[Measured | Failed] = []
    for scenario, seed in tasks:
        run = attempt(scenarios[scenario], seed)
        if isinstance(run, Failed):
            runs.append(run)
            continue
        # One tuple for all runs of a scenario: pickling then writes it once.
        runs.append(Measured(names.setdefault(scenario, run.names), run.values, run.wall_s))
    return runs


def _batches(tasks: Sequence[Task], cpus: int) -> Iterator[Sequence[Task]]:
    size = max(1, min(MOST_IN_BATCH, len(tasks) // (cpus * BATCHES_PER_CPU)))
    for first in range(0, len(tasks), size):
        yield tasks[first : first + size]


def _result(reference: Any) -> list[Measured | Failed]:  # noqa: ANN401 - a reference of Ray's
    try:
        runs: list[Measured | Failed] = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        if isinstance(cause, Refused):
            raise PerhopError(
                f"--backend ray: a worker has engine {cause}, the driver {engine_id()}; "
                "install the same build of perhop on every node (docs/sweeps.md)"
            ) from None
        raise PerhopError(f"--backend ray: a worker failed: {_last_line(error)}") from None
    except ray.exceptions.RayError as error:
        raise PerhopError(f"--backend ray: a batch could not be finished: {_last_line(error)}") from None
    return runs


def _last_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
