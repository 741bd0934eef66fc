"""`perhop rerun`: whether a report's numbers come out again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from perhop import _engine
from perhop.commands import options, terminal
from perhop.processes import interrupts


def rerun(
    manifest: Annotated[
        Path,
        typer.Argument(
            metavar="MANIFEST.json",
            help="The manifest.json that `perhop run`, `sweep` or `compare` wrote by --out, or its folder.",
        ),
    ],
    *,
    jobs: options.Jobs = None,
    engine: options.Engine = None,
) -> None:
    """Run the scenarios of a report again, on the same seeds, and say whether every number agrees.

    Of `perhop run`: the means and intervals that the manifest holds and, if samples.parquet is beside it,
    each number of each flow in each run. Of `perhop sweep`: each measure of each run, and the settings that
    samples.parquet has of each point. Of `perhop compare`:
    each simulated number; real packets never give the same ones twice. Nothing is written. The exit status
    is 1 if a number differs, else 0.

    \b
    Examples:
      perhop run my.toml --out results/my
      perhop rerun results/my/manifest.json
    """
    with interrupts.loading():
        from perhop import rerunning
        from perhop.rerunning import manifest as manifests
        from perhop.runs import extent
    threads = extent.workers(jobs)
    first = manifests.read(manifest)
    if first.kind == "sweep":
        from perhop.sweeps import plan

        points = [plan.Point(one.factors, one.checked.text, "", one.notices) for one in first.parts]
        terminal.warn(f"{first.path}: {notice}" for notice in plan.notices(points))
    else:
        terminal.warn(dict.fromkeys(notice for part in first.parts for notice in part.checked.notices))
    if first.version != _engine.version:
        terminal.note(f"{first.path} was made by perhop {first.version}; this is {_engine.version}.")
    with terminal.progress("runs", first.runs) as step:
        again = rerunning.rerun(
            first, jobs=threads, engine=engine, progress=lambda _done, _all: step(), waiting=step.waiting
        )
    interrupts.leaves("interrupted")
    terminal.say(again.text(terminal.width(wide=False)))
    if not again.agrees:
        raise typer.Exit(1)
