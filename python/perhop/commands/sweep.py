"""`perhop sweep`: a scenario over many settings and seeds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from perhop.commands import options, terminal
from perhop.commands.context import Results
from perhop.processes import interrupts


def sweep(
    sweep_file: Annotated[Path, typer.Argument(metavar="SWEEP.toml", help="What to vary (docs/sweeps.md).")],
    *,
    store: options.Store = options.DEFAULT_STORE,
    backend: options.Backend = "local",
    address: options.Address = None,
    runs: Annotated[int | None, options.runs("Simulated runs of each point")] = None,
    seed: options.SeedOfFile = None,
    until: Annotated[
        str | None,
        options.option(
            "--until",
            "2%",
            "Stop each point when its 95 % intervals are this narrow; --runs is then the most.",
        ),
    ] = None,
    jobs: options.Jobs = None,
    wide: options.Wide = False,
    out: options.Out = None,
    json_file: options.Json = None,
    csv: options.Csv = None,
) -> None:
    """Simulate a scenario over many settings and seeds, and print what each setting gives.

    Finished runs are kept in the store, by scenario, seed and engine: none is ever computed again, and the
    same command goes on after an interruption of any kind. Several sweeps may share a store.

    \b
    Examples:
      perhop sweep examples/sweep-thresholds.toml
      perhop sweep my.toml --runs 20 --out results/my
      perhop sweep my.toml --until 2% --json - | jq .points
    """
    with interrupts.loading():
        from perhop.runs import extent
        from perhop.sweeps import plan
    planned = plan.read_plan(sweep_file, plan.Given(runs, seed, until))
    with interrupts.loading():
        from perhop.sweeps import job  # behind a file that may be refused: it loads polars
    place = job.Workplace(store, backend, jobs, address)
    terminal.warn(f"{sweep_file}: {notice}" for notice in plan.notices(planned.points))
    results = Results(out=out, json_file=json_file, csv=csv, store=store, wide=wide, reads=[sweep_file])
    swept = job.run_sweep(planned, place, say=terminal.note, progress=terminal.progress)
    given = {"--store": store, "--runs": runs, "--seed": seed, "--until": until, "--out": out}
    command = terminal.command("sweep", str(sweep_file), **given)
    results.conclude(swept, command, extent.workers(jobs))
    results.write_csv()
    results.say_counts(swept.work)
    if swept.failures:
        raise typer.Exit(1)
