"""`perhop sweep` and `perhop tune` as commands: options, what is said, and how it ends."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perhop import extras
from perhop.commands import terminal
from perhop.plurals import counted
from perhop.processes.lazy import Lazy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from perhop.files import outputs
    from perhop.runs import csv_tables, extent
    from perhop.sweeps import job, plan, report, tune_report, tuning
    from perhop.sweeps import tune as search
else:
    extent = Lazy("perhop.runs.extent")
    csv_tables = Lazy("perhop.runs.csv_tables")
    outputs = Lazy("perhop.files.outputs")
    job = Lazy("perhop.sweeps.job")
    plan = Lazy("perhop.sweeps.plan")
    report = Lazy("perhop.sweeps.report")
    search = Lazy("perhop.sweeps.tune")
    tune_report = Lazy("perhop.sweeps.tune_report")
    tuning = Lazy("perhop.sweeps.tuning")

Store = Annotated[
    Path,
    typer.Option("--store", metavar="DIR", parser=terminal.place, help="Where finished runs are kept."),
]
Backend = Annotated[
    str, typer.Option("--backend", metavar="local|ray", help="This machine's cores, or a Ray cluster.")
]
Address = Annotated[
    str | None,
    typer.Option(
        "--address",
        metavar="HOST:PORT",
        help="The Ray cluster, or auto for this machine's; without one, a Ray starts here.",
    ),
]
Seed = Annotated[int | None, typer.Option("--seed", metavar="S", help="First seed (default: the file's).")]
DEFAULT_STORE = Path("results/store")


def sweep(
    sweep_file: Annotated[Path, typer.Argument(metavar="SWEEP.toml", help="What to vary (docs/sweeps.md).")],
    *,
    store: Store = DEFAULT_STORE,
    backend: Backend = "local",
    address: Address = None,
    runs: Annotated[int | None, terminal.runs("Simulated runs of each point")] = None,
    seed: Seed = None,
    until_ci: Annotated[
        str | None,
        typer.Option(
            "--until-ci",
            metavar="2%",
            help="Stop each point when its 95 % intervals are this tight; --runs is then the most.",
        ),
    ] = None,
    jobs: terminal.Jobs = None,
    wide: terminal.Wide = False,
    out: terminal.Out = None,
    json_file: terminal.Json = None,
    csv: terminal.Csv = None,
) -> None:
    """Simulate a scenario over many settings and seeds, and print what each setting gives.

    Finished runs are kept in the store, by scenario, seed and engine: none is ever computed again, and the
    same command goes on after an interruption of any kind. Several sweeps may share a store.

    \b
    Examples:
      perhop sweep examples/sweep-thresholds.toml
      perhop sweep my.toml --runs 20 --out results/my
      perhop sweep my.toml --until-ci 2% --json - | jq .points
    """  # noqa: D301
    installed(extras.STORE, backend=backend)
    if runs is not None or seed is not None:
        terminal.seeds(1 if seed is None else seed, 1 if runs is None else runs)
    cores = extent.workers(jobs)
    planned = plan.read_plan(sweep_file, plan.Given(runs, seed, until_ci))
    terminal.warn(f"{sweep_file}: {notice}" for notice in plan.notices(planned.points))
    json_path = prepared(sweep_file, store, (out, csv), json_file)
    place = job.Workplace(store, backend, jobs, address)
    swept = job.run_sweep(planned, place, say=terminal.note, progress=terminal.progress)
    given = {"--store": store, "--runs": runs, "--seed": seed, "--until-ci": until_ci, "--out": out}
    command = terminal.command("sweep", str(sweep_file), **given)
    width = terminal.width(wide=wide)
    conclude(
        swept,
        width,
        json_path,
        (out, csv),
        lambda place: report.write_sweep(place, swept, store, command, cores),
    )
    say_counts(swept.work, store, out, json_path)
    end_with(swept.failures)


def tune(
    tune_file: Annotated[Path, typer.Argument(metavar="TUNE.toml", help="What to search (docs/sweeps.md).")],
    *,
    store: Store = DEFAULT_STORE,
    backend: Backend = "local",
    address: Address = None,
    trials: Annotated[
        int | None, typer.Option("--trials", metavar="N", help="How many settings to try.")
    ] = None,
    runs: Annotated[int | None, terminal.runs("Simulated runs of each trial")] = None,
    seed: Seed = None,
    jobs: terminal.Jobs = None,
    wide: terminal.Wide = False,
    out: terminal.Out = None,
    json_file: terminal.Json = None,
    csv: terminal.Csv = None,
) -> None:
    """Search for the setting that is best by an objective, or for the Pareto front of several.

    Every setting is tried on the same seeds, and none twice. The best run again on fresh seeds beside the
    scenario as it is; what cannot be distinguished there is said to be alike. Runs are kept in the store like
    those of a sweep, so the same command goes on after an interruption of any kind, and with more --trials it
    searches on. The exit status is 1 if no trial keeps the constraints.

    \b
    Examples:
      perhop tune examples/tune-thresholds.toml
      perhop tune my.toml --trials 200 --out results/tuned
      perhop tune my.toml --backend ray --address head:6379
    """  # noqa: D301
    installed(extras.TUNE, extras.STORE, backend=backend)
    if runs is not None or seed is not None:
        terminal.seeds(1 if seed is None else seed, 1 if runs is None else runs)
    cores = extent.workers(jobs)
    planned = tuning.read_tuning(tune_file, trials=trials, runs=runs, seed=seed)
    terminal.warn(f"{tune_file}: {notice}" for notice in plan.notices(planned.seen))
    json_path = prepared(tune_file, store, (out, csv), json_file)
    place = job.Workplace(store, backend, jobs, address)
    tuned = search.tune(planned, place, say=terminal.note, progress=terminal.progress)
    given = {"--store": store, "--trials": trials, "--runs": runs, "--seed": seed, "--out": out}
    command = terminal.command("tune", str(tune_file), **given)
    winners = [winner.trial.point for winner in tuned.front if winner.trial.point is not None]
    terminal.warn(f"{tune_file}: a winner: {notice}" for notice in plan.notices(winners))
    width = terminal.width(wide=wide)
    conclude(
        tuned,
        width,
        json_path,
        (out, csv),
        lambda place: tune_report.write_tuned(place, tuned, command, cores),
    )
    say_counts(tuned.work, store, out, json_path)
    if not tuned.front:
        raise typer.Exit(1)
    end_with(tuned.failures)


def installed(*parts: extras.Extra, backend: str) -> None:
    """Refuse before anything is made where a part is missing.

    Raises:
        PerhopError: One is.
    """
    for part in (*parts, *([extras.RAY] if backend == "ray" else [])):
        part.demand()


Places = tuple[Path | None, Path | None]
"""The directories of the report and of the tables as CSV; None for what is not asked for."""


def prepared(file: Path, store: Path, places: Places, json_file: Path | None) -> Path | None:
    """Prove, before the work begins, that results can be written; the name to write JSON to.

    Raises:
        PerhopError: They cannot.
    """
    outputs.prepare_directory(store, "--store")
    out, csv = places
    if out is not None:
        outputs.claim_directory(out)
    csv_tables.prepare(csv)
    return None if json_file is None else outputs.prepare_file(json_file, reads=[file])


def conclude(
    result: Any,  # noqa: ANN401
    width: int | None,
    json_path: Path | None,
    places: Places,
    write: Callable[[Path], None],
) -> None:
    """Write what was asked for, then say the result.

    Args:
        result: Has `text(width)` and `json()`.
        width: Of the terminal; None for no limit.
        json_path: Where JSON goes.
        places: Where the report and the tables as CSV go.
        write: Writes the report there.
    """
    out, csv = places
    if out is not None:
        write(out)
    if json_path == outputs.STDOUT:
        terminal.out_bytes(result.json().encode())
    elif json_path is not None:
        outputs.write(json_path, result.json())
    terminal_say(json_path)(result.text(width))
    csv_tables.write(csv, result.json(), terminal_say(json_path))


def say_counts(work: Any, store: Path, out: Path | None, json_path: Path | None) -> None:  # noqa: ANN401
    """What it cost, and where the report is."""
    say = terminal_say(json_path)
    failed = f", {work.failed} failed" if work.failed else ""
    say(f"\n{counted(work.simulated, 'run')} simulated, {work.found} reused from {store}{failed}")
    if out is not None:
        say(f"report: {out / 'report.html'}")


def end_with(failures: Sequence[Any]) -> None:
    """End with status 1 where a run failed.

    Raises:
        typer.Exit: One did.
    """
    if failures:
        raise typer.Exit(1)


def terminal_say(json_path: Path | None) -> Any:  # noqa: ANN401
    """Where text goes: standard output, unless JSON has it."""
    return terminal.note if json_path == outputs.STDOUT else terminal.say
