"""`perhop tune`: the best setting of a scenario, or the Pareto front."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from perhop import extras
from perhop.commands import options, terminal
from perhop.commands.context import Results
from perhop.processes import interrupts


def tune(
    tune_file: Annotated[Path, typer.Argument(metavar="TUNE.toml", help="What to search (docs/sweeps.md).")],
    *,
    store: options.Store = options.DEFAULT_STORE,
    backend: options.Backend = "local",
    address: options.Address = None,
    trials: options.Trials = None,
    runs: Annotated[int | None, options.runs("Simulated runs of each trial")] = None,
    seed: options.SeedOfFile = None,
    jobs: options.Jobs = None,
    wide: options.Wide = False,
    out: options.Out = None,
    json_file: options.Json = None,
    csv: options.Csv = None,
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
        from perhop.sweeps import plan, tuning
    planned = tuning.read_tuning(tune_file, trials=trials, runs=runs, seed=seed)
    extras.TUNE.demand()
    with interrupts.loading():
        from perhop.sweeps import job  # behind a file that may be refused: it loads polars
    place = job.Workplace(store, backend, jobs, address)
    with interrupts.deferred():
        from perhop.sweeps import tune as search
    terminal.warn(f"{tune_file}: {notice}" for notice in plan.notices(planned.seen))
    results = Results(out=out, json_file=json_file, csv=csv, store=store, wide=wide, reads=[tune_file])
    tuned = search.tune(planned, place, say=terminal.note, progress=terminal.progress)
    given = {"--store": store, "--trials": trials, "--runs": runs, "--seed": seed, "--out": out}
    command = terminal.command("tune", str(tune_file), **given)
    winners = [winner.trial.point for winner in tuned.front if winner.trial.point is not None]
    terminal.warn(f"{tune_file}: a winner: {notice}" for notice in plan.notices(winners))
    results.conclude(tuned, command, extent.workers(jobs))
    results.write_csv()
    results.say_counts(tuned.work)
    if tuned.failures or not tuned.front:
        raise typer.Exit(1)
