"""`perhop.plan`: a plan from Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from perhop import extras
from perhop.files import arguments
from perhop.planning.document import read_plan
from perhop.planning.job import Planned, run_plan
from perhop.sweeps.interface import of_file_or_data, quietly, repeating
from perhop.sweeps.job import Workplace

__all__ = ["Planned", "plan"]


def plan(
    source: Path | str | Mapping[str, Any],
    *,
    store: str | Path = "results/store",
    runs: int | None = None,
    seed: int | None = None,
    trials: int | None = None,
    jobs: int | None = None,
    backend: str = "local",
    address: str | None = None,
    holm: bool = False,
) -> Planned:
    """Judge which promises a configuration keeps, how far each demand can grow, and what would be better.

    Args:
        source: PLAN.toml, as `perhop plan` reads it (docs/plans.md), or a dict with the same keys.
        store: The directory of finished runs; those that are there are not computed again.
        runs: Of everything that is judged, at least 2. Default: the file's.
        seed: The first seed. Default: the file's.
        trials: How many settings a search tries. Default: the file's.
        jobs: Threads. Default: all cores. Results are the same for any number.
        backend: As for `perhop.sweep`.
        address: As for `perhop.sweep`.
        holm: Give tables a column of verdicts corrected for their number (Holm 1979).

    Returns:
        Verdicts (`now.verdicts`), limits of growth (`now.limits`), the better setting (`better`), and lines
        for the router (`lines`). `text()`, `json()`, `frame()` and `write()` give what the command prints
        and writes.

    Raises:
        PerhopError: The plan cannot be read, an extra is missing, or the store fails.
        ScenarioError: The plan's scenario is wrong.
    """
    place = Workplace(arguments.path("store", store), backend, jobs, address)
    read = of_file_or_data("a plan", source)
    planned = read_plan(read, runs=runs, seed=seed, trials=trials)
    if planned.search is not None:
        extras.TUNE.demand()
    done = run_plan(planned, place, say=lambda _: None, progress=quietly)
    given = {"--store": store, "--runs": runs, "--trials": trials, "--seed": seed}
    return replace(done, holm=holm, command=repeating("plan", read, *(["--holm"] * holm), **given))
