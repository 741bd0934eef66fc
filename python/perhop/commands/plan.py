"""`perhop plan` as a command: options, what is said, and how it ends."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from perhop import extras
from perhop.commands import kept, terminal
from perhop.errors import PerhopError
from perhop.files import outputs
from perhop.plurals import counted
from perhop.processes import interrupts


def plan(
    plan_file: Annotated[
        Path, typer.Argument(metavar="PLAN.toml", help="Links, demands and objectives (docs/plans.md).")
    ],
    *,
    store: kept.Store = kept.DEFAULT_STORE,
    backend: kept.Backend = "local",
    address: kept.Address = None,
    runs: Annotated[int | None, terminal.runs("Simulated runs of everything that is judged")] = None,
    trials: Annotated[
        int | None, typer.Option("--trials", metavar="N", help="How many settings the search tries.")
    ] = None,
    seed: kept.Seed = None,
    holm: terminal.Holm = False,
    jobs: terminal.Jobs = None,
    wide: terminal.Wide = False,
    out: terminal.Out = None,
    json_file: terminal.Json = None,
    csv: terminal.Csv = None,
    export: Annotated[
        Path | None,
        typer.Option(
            "--export",
            metavar="FILE",
            parser=terminal.place,
            help="Write the lines for the router there; needs [export] in the plan.",
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
        from perhop.planning import document, job
        from perhop.runs import extent
        from perhop.sweeps.job import Workplace
    kept.installed(backend=backend)
    if seed is not None:
        terminal.seeds(seed, 1)
    cores = extent.workers(jobs)
    planned = document.read_plan(plan_file, runs=runs, seed=seed, trials=trials)
    if planned.search is not None:
        extras.TUNE.demand()
    terminal.warn(f"{plan_file}: {notice}" for notice in planned.notices)
    if export is not None and planned.export is None:
        raise PerhopError(
            f'--export {export}: {plan_file} has no [export]; add such as `export = {{ to = "ios" }}`'
        )
    results = kept.KeptResults(store, out=out, json_file=json_file, csv=csv, wide=wide, reads=[plan_file])
    lines_path = None if export is None else outputs.prepare_file(export, "--export", reads=[plan_file])
    if lines_path == outputs.STDOUT:
        raise PerhopError("--export -: standard output has the tables; give it a file")
    if lines_path is not None and lines_path == results.json_path:
        raise PerhopError(f"--json and --export: both name {results.json_path}; give each a file of its own")
    imported = planned.imported
    if imported is not None:
        terminal.note(
            f"{planned.subject}: {counted(len(imported.findings), 'remark')}, which `perhop import` lists"
        )
    place = Workplace(store, backend, jobs, address)
    done = job.run_plan(planned, place, say=terminal.note, progress=terminal.progress)
    done = replace(done, holm=holm)
    given = {"--store": store, "--runs": runs, "--trials": trials, "--seed": seed, "--out": out}
    command = terminal.command("plan", str(plan_file), *(["--holm"] if holm else []), **given)
    if lines_path is not None and done.lines is not None:
        outputs.write(lines_path, done.lines.text)
    results.conclude(done, command, cores)
    results.say_counts(done.work)
    if lines_path is not None:
        terminal.note(f"{lines_path}: written")
    kept.end_with(done.failures)
