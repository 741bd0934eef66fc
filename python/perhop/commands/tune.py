"""`perhop tune`: the best setting of a scenario, or the Pareto front."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from perhop import extras
from perhop.commands import kept, terminal
from perhop.processes import interrupts


def tune(
    tune_file: Annotated[Path, typer.Argument(metavar="TUNE.toml", help="What to search (docs/sweeps.md).")],
    *,
    store: kept.Store = kept.DEFAULT_STORE,
    backend: kept.Backend = "local",
    address: kept.Address = None,
    trials: Annotated[
        int | None, typer.Option("--trials", metavar="N", help="How many settings to try.")
    ] = None,
    runs: Annotated[int | None, terminal.runs("Simulated runs of each trial")] = None,
    seed: kept.Seed = None,
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
    """
    with interrupts.loading():
        from perhop.runs import extent
        from perhop.sweeps import job, plan, tuning
    kept.installed(extras.TUNE, backend=backend)
    if runs is not None or seed is not None:
        terminal.seeds(1 if seed is None else seed, 1 if runs is None else runs)
    with interrupts.deferred():
        from perhop.sweeps import tune as search
    cores = extent.workers(jobs)
    planned = tuning.read_tuning(tune_file, trials=trials, runs=runs, seed=seed)
    terminal.warn(f"{tune_file}: {notice}" for notice in plan.notices(planned.seen))
    results = kept.KeptResults(store, out=out, json_file=json_file, csv=csv, wide=wide, reads=[tune_file])
    place = job.Workplace(store, backend, jobs, address)
    tuned = search.tune(planned, place, say=terminal.note, progress=terminal.progress)
    given = {"--store": store, "--trials": trials, "--runs": runs, "--seed": seed, "--out": out}
    command = terminal.command("tune", str(tune_file), **given)
    winners = [winner.trial.point for winner in tuned.front if winner.trial.point is not None]
    terminal.warn(f"{tune_file}: a winner: {notice}" for notice in plan.notices(winners))
    results.conclude(tuned, command, cores)
    results.say_counts(tuned.work)
    if not tuned.front:
        raise typer.Exit(1)
    kept.end_with(tuned.failures)
