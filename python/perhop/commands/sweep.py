"""`perhop sweep`: a scenario over many settings and seeds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from perhop.commands import kept, terminal
from perhop.processes import interrupts


def sweep(
    sweep_file: Annotated[Path, typer.Argument(metavar="SWEEP.toml", help="What to vary (docs/sweeps.md).")],
    *,
    store: kept.Store = kept.DEFAULT_STORE,
    backend: kept.Backend = "local",
    address: kept.Address = None,
    runs: Annotated[int | None, terminal.runs("Simulated runs of each point")] = None,
    seed: kept.Seed = None,
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
    """
    with interrupts.loading():
        from perhop.runs import extent
        from perhop.sweeps import job, plan
    kept.installed(backend=backend)
    if runs is not None or seed is not None:
        terminal.seeds(1 if seed is None else seed, 1 if runs is None else runs)
    cores = extent.workers(jobs)
    planned = plan.read_plan(sweep_file, plan.Given(runs, seed, until_ci))
    terminal.warn(f"{sweep_file}: {notice}" for notice in plan.notices(planned.points))
    results = kept.KeptResults(store, out=out, json_file=json_file, csv=csv, wide=wide, reads=[sweep_file])
    place = job.Workplace(store, backend, jobs, address)
    swept = job.run_sweep(planned, place, say=terminal.note, progress=terminal.progress)
    given = {"--store": store, "--runs": runs, "--seed": seed, "--until-ci": until_ci, "--out": out}
    command = terminal.command("sweep", str(sweep_file), **given)
    results.conclude(swept, command, cores)
    results.say_counts(swept.work)
    kept.end_with(swept.failures)
