"""`perhop plan` as a command: options, what is said, and how it ends."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from perhop import extras
from perhop.commands import options, terminal
from perhop.commands.context import Results
from perhop.errors import PerhopError
from perhop.files import outputs
from perhop.plurals import counted
from perhop.processes import interrupts


def plan(
    plan_file: Annotated[
        Path, typer.Argument(metavar="PLAN.toml", help="Links, demands and objectives (docs/plans.md).")
    ],
    *,
    store: options.Store = options.DEFAULT_STORE,
    backend: options.Backend = "local",
    address: options.Address = None,
    runs: Annotated[int | None, options.runs("Simulated runs of everything that is judged")] = None,
    trials: Annotated[
        int | None, options.option("--trials", "N", "How many settings the search tries.")
    ] = None,
    seed: options.SeedOfFile = None,
    holm: options.Holm = False,
    jobs: options.Jobs = None,
    wide: options.Wide = False,
    out: options.Out = None,
    json_file: options.Json = None,
    csv: options.Csv = None,
    export: Annotated[
        Path | None,
        options.output(
            "--export", "FILE", "Write the lines for the router there; needs [export] in the plan."
        ),
    ] = None,
) -> None:
    """Judge which promises a configuration keeps, how far each demand can grow, and what would be better.

    The plan names a scenario or a router's configuration, who uses it, and objectives in the words of a
    service-level agreement. With [search] it looks for settings with the largest margin, judges them on
    fresh seeds, and writes them as lines for the router. Runs are kept in the store like those of a sweep,
    so the same command goes on after an interruption.

    \b
    Examples:
      perhop plan examples/plan/branch-office.toml
      perhop plan my.toml --out results/plan --export new.cfg
      perhop plan my.toml --runs 20 --json - | jq .now.growth
    """
    with interrupts.loading():
        from perhop.planning import document
        from perhop.runs import extent
    planned = document.read_plan(plan_file, runs=runs, seed=seed, trials=trials)
    if planned.search is not None:
        extras.TUNE.demand()
    with interrupts.loading():
        from perhop.planning import job  # behind a file that may be refused: it loads polars
        from perhop.sweeps.job import Workplace
    place = Workplace(store, backend, jobs, address)
    terminal.warn(f"{plan_file}: {notice}" for notice in planned.notices)
    if export is not None and planned.export is None:
        raise PerhopError(
            f'--export {export}: {plan_file} has no [export]; add such as `export = {{ to = "ios" }}`'
        )
    files = {"--export": export}
    results = Results(
        out=out, json_file=json_file, csv=csv, store=store, files=files, wide=wide, reads=[plan_file]
    )
    lines_path = None if export is None else outputs.prepare_file(export, "--export", reads=[plan_file])
    if lines_path == outputs.STDOUT:
        raise PerhopError("--export -: standard output has the tables; give it a file")
    imported = planned.imported
    if imported is not None:
        terminal.note(
            f"{planned.subject}: {counted(len(imported.findings), 'remark')}, which `perhop import` lists"
        )
    done = job.run_plan(planned, place, say=terminal.note, progress=terminal.progress)
    done = replace(done, holm=holm)
    given = {"--store": store, "--runs": runs, "--trials": trials, "--seed": seed, "--out": out}
    command = terminal.command("plan", str(plan_file), *(["--holm"] if holm else []), **given)
    if lines_path is not None and done.lines is not None:
        outputs.write(lines_path, done.lines.text)
    results.conclude(done, command, extent.workers(jobs))
    results.write_csv()
    results.say_counts(done.work)
    if lines_path is not None:
        terminal.note(f"{lines_path}: written")
    if done.failures:
        raise typer.Exit(1)
