"""`perhop rerun`: whether a report's numbers come out again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perhop.commands import terminal
from perhop.plurals import counted
from perhop.processes import interrupts

if TYPE_CHECKING:
    from perhop import rerunning
    from perhop.runs.result import Result

MOST_SHOWN = 10
"""Differences that are listed; the others are counted."""


def rerun(
    manifest: Annotated[
        Path,
        typer.Argument(
            metavar="MANIFEST.json",
            help="The manifest.json that `perhop run`, `sweep` or `compare` wrote by --out, or its folder.",
        ),
    ],
    *,
    jobs: terminal.Jobs = None,
    engine: terminal.Engine = None,
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
        from perhop.runs import extent
        from perhop.show import table
    threads = extent.workers(jobs)
    first = rerunning.read(manifest)
    terminal.warn(dict.fromkeys(notice for one in first.scenarios for notice in one.notices))
    if first.version != rerunning.version():
        terminal.note(f"{first.path} was made by perhop {first.version}; this is {rerunning.version()}.")
    with terminal.progress("runs", first.runs) as step:
        again = rerunning.rerun(
            first, jobs=threads, engine=engine, progress=lambda _done, _all: step(), waiting=step.waiting
        )
    interrupts.leaves("interrupted")
    if isinstance(first, rerunning.Manifest):
        assert again.result is not None
        _say_what(first, again.result)
    else:
        what = counted(len(first.parts), "point" if first.kind == "sweep" else "scenario")
        terminal.say(f"perhop {first.kind}: {what}, {counted(first.runs, 'run')}")
        if first.kind == "compare":
            terminal.say(
                "Only the simulated numbers are compared: real packets never give the same ones twice."
            )
    compared = (
        "numbers" if isinstance(first, rerunning.Manifest) or not first.settings else "numbers and settings"
    )
    if again.agrees:
        terminal.say(f"All {again.compared:,} {compared} agree.")
        return
    differ = "differs" if len(again.differences) == 1 else "differ"
    terminal.say(f"{len(again.differences):,} of {again.compared:,} {compared} {differ}:\n")
    shown = again.differences[:MOST_SHOWN]
    lines = [{"number": one.place, "then": str(one.then), "now": str(one.now)} for one in shown]
    for line in table.records(lines, terminal.width(wide=False)):
        terminal.say(line)
    if len(again.differences) > MOST_SHOWN:
        terminal.say(f"and {len(again.differences) - MOST_SHOWN:,} more")
    raise typer.Exit(1)


def _say_what(first: rerunning.Manifest, found: Result) -> None:
    """Print what was run, and what is not compared."""
    from perhop.runs import result

    terminal.say(f"{found.title}: {result.describe_runs(found.runs)}")
    if first.results is None:
        terminal.say("The manifest has no means: only the flows of each run are compared.")
    if first.samples is None:
        terminal.say("samples.parquet is not beside the manifest: only the means are compared.")
