"""`perhop.sweep` and `perhop.tune`: sweeps and searches from Python."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perhop import extras
from perhop.errors import PerhopError
from perhop.files import arguments
from perhop.show.written import command_line
from perhop.sweeps import job, plan, tuning
from perhop.sweeps.job import Swept

if TYPE_CHECKING:
    from perhop.sweeps.tune import Tuned


def sweep(
    source: Path | str | Mapping[str, Any],
    *,
    store: Path | str = "results/store",
    runs: int | None = None,
    seed: int | None = None,
    until: str | None = None,
    jobs: int | None = None,
    backend: str = "local",
    address: str | None = None,
) -> Swept:
    """Simulate a scenario over many settings and seeds.

    Args:
        source: SWEEP.toml, as `perhop sweep` reads it (docs/sweeps.md), or a dict with the same keys, whose
            `scenario` may be a `perhop.Scenario`.
        store: The folder of finished runs; those that are there are not computed again.
        runs: Of each point. Default: the file's, else 6.
        seed: The first seed. Default: the file's, else 1.
        until: Stop each point when its 95 % intervals are this narrow, such as `2%`; `runs` is then the most.
        jobs: Threads; all cores if not given. Results are the same for any number.
        backend: `local`, or `ray` for a Ray cluster.
        address: Of the Ray cluster.

    Returns:
        `summaries`, one for each point, with the estimates of each metric. `text()`, `json()`, `frame()` (a
        row for each point) and `write()` give what the command prints and writes.

    Raises:
        PerhopError: The sweep cannot be read, an argument is wrong, or the store fails.
        ScenarioError: A point is no scenario that can be run.
    """
    place = job.Workplace(arguments.path("store", store), backend, jobs, address)
    read = of_file_or_data("a sweep", source)
    planned = plan.read_plan(read, plan.Given(runs, seed, until))
    swept = job.run_sweep(planned, place, say=_nothing, progress=quietly)
    given = {"--store": store, "--runs": runs, "--seed": seed, "--until": until}
    swept.command = repeating("sweep", read, **given)
    return swept


def tune(
    source: Path | str | Mapping[str, Any],
    *,
    store: Path | str = "results/store",
    trials: int | None = None,
    runs: int | None = None,
    seed: int | None = None,
    jobs: int | None = None,
    backend: str = "local",
    address: str | None = None,
) -> Tuned:
    """Search for the setting that is best by an objective, or for the Pareto front of several.

    Args:
        source: TUNE.toml, as `perhop tune` reads it (docs/sweeps.md), or a dict with the same keys.
        store: As for `sweep`.
        trials: How many settings to try. Default: the file's.
        runs: Of each trial. Default: the file's.
        seed: The first seed. Default: the file's.
        jobs: As for `sweep`.
        backend: As for `sweep`.
        address: As for `sweep`.

    Returns:
        `front`, the winners with their estimates on fresh seeds. `text()`, `json()`, `frame()` (a row for
        each trial) and `write()` give what the command prints and writes.

    Raises:
        PerhopError: The search cannot be read, Optuna is missing, an argument is wrong, or the store fails.
        ScenarioError: No point of the search is a scenario.
    """
    extras.TUNE.demand()
    from perhop.sweeps import tune as search  # noqa: PLC0415 - it needs Optuna

    place = job.Workplace(arguments.path("store", store), backend, jobs, address)
    read = of_file_or_data("a search", source)
    planned = tuning.read_tuning(read, trials=trials, runs=runs, seed=seed)
    tuned = search.tune(planned, place, say=_nothing, progress=quietly)
    given = {"--store": store, "--trials": trials, "--runs": runs, "--seed": seed}
    return replace(tuned, command=repeating("tune", read, **given))


def repeating(command: str, source: Path | Mapping[str, Any], *words: str, **options: object) -> str:
    """Return what to type for a result; empty where its source is no file but data in Python."""
    return "" if isinstance(source, Mapping) else command_line(command, str(source), *words, **options)


def quietly(_what: str, _total: int) -> contextlib.nullcontext[Callable[[], None]]:
    """Show no progress."""
    return contextlib.nullcontext(lambda: None)


def _nothing(_text: str) -> None:
    """Say nothing."""


def of_file_or_data(what: str, source: object) -> Path | Mapping[str, Any]:
    """Return the file that a source names, or its data; `what` it is, for messages.

    Raises:
        PerhopError: It is neither, or a key of the data is no text.
    """
    if isinstance(source, Mapping):
        _expect_texts(source, "")
        return source
    if isinstance(source, Path | str) and source != "":
        return Path(source)
    found = repr(source) if source == "" else type(source).__name__
    raise PerhopError(f"{what} is the path of its file, or a dict with the same keys, not {found}")


def _expect_texts(table: Mapping[Any, Any], place: str) -> None:
    """Refuse keys that no file has."""
    for key, value in table.items():
        if not isinstance(key, str):
            raise PerhopError(f"{place or 'the top level'}: a key is text, not {key!r}")
        if isinstance(value, Mapping):
            _expect_texts(value, f"{place}.{key}" if place else key)
