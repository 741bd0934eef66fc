"""`perhop compare`: a scenario simulated and on real packets, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from perhop.commands import options, terminal
from perhop.commands.context import INVALID, Results
from perhop.errors import PerhopError
from perhop.processes import interrupts
from perhop.real_packets import LIVE_RUNS, SIMULATED_RUNS


def compare(
    scenarios: Annotated[
        list[Path], typer.Argument(metavar="SCENARIO.toml", help="A scenario file, or two of them.")
    ],
    *,
    runs: Annotated[
        int,
        options.option(
            "--runs",
            "N",
            "Runs of each scenario on real packets, each with its own seed; --sim-runs counts simulated "
            "ones.",
        ),
    ] = LIVE_RUNS,
    sim_runs: Annotated[
        int,
        options.option("--sim-runs", "M", "Simulated runs of each scenario: what `perhop run` calls --runs."),
    ] = SIMULATED_RUNS,
    margin: Annotated[
        list[str] | None,
        options.option(
            "--margin",
            "[NAME=]SIZE",
            "What counts as no difference: 10%, or for one kind of measure delay=5ms, loss=0.5pp, queue=3p, "
            "throughput=20%. May be given several times.",
        ),
    ] = None,
    explained: Annotated[
        bool,
        options.flag(
            "--explain",
            "Measure the effect of each difference between the kernel's TCP and the simulated one: many more "
            "runs.",
        ),
    ] = False,
    holm: options.Holm = False,
    seed: options.Seed = 1,
    jobs: options.Jobs = None,
    real_time: options.RealTime = True,
    device: options.Device = "auto",
    wide: options.Wide = False,
    out: options.Out = None,
    json_file: options.Json = None,
    csv: options.Csv = None,
) -> None:
    """Run a scenario in the simulator and on real packets, and say which numbers are equivalent.

    With two scenarios, such as one with RIO and one with RI+O, it also says whether what the first does
    differently from the second has the same direction in both. Runs on real packets take as long as the
    scenario says, one after the other. Invalid ones are left out, and the command then ends with status 3;
    verdicts do not change the exit status.

    \b
    Margins, unless given:
      throughput          10 % of the simulated mean
      RTT, one-way delay  10 %, at least 1 ms
      delay at a link     10 %, at least 2 ms
      completion time     10 %, at least 2 ms
      mean-slowdown       10 %
      queue               10 %, at least 2 packets
      loss                1 percentage point
      utilization         2 percentage points
    `--margin 10%` sets the percentage of all that have one.

    \b
    Examples:
      perhop compare my.toml
      perhop compare rio.toml rio-plus-out.toml --runs 6
      perhop compare my.toml --margin 5% --explain --out results/compared
    """
    with interrupts.loading():
        from perhop.runs import extent
        from perhop.scenario import reading
    if len(scenarios) > 2:
        raise PerhopError(f"compare takes one or two scenarios, not {len(scenarios)}")
    threads = extent.workers(jobs)
    read = [reading.read(path) for path in scenarios]
    for path in scenarios:
        reading.read(path, real_packets=True)  # Refusals name the file and the line.
    with interrupts.loading():
        from perhop.real_packets import comparing, equivalence, laboratory  # behind files that may be refused
    wanted = equivalence.margins(margin or [])
    comparing.check_counts(seed, runs, sim_runs)
    terminal.warn(notice for checked in read for notice in checked.notices)
    texts = [checked.text for checked in read]
    results = Results(out=out, json_file=json_file, csv=csv, wide=wide, reads=scenarios)
    work = comparing.Comparing(
        (seed, runs, sim_runs, threads),
        (real_time, device),
        places=dict(zip(texts, scenarios, strict=True)),
        say=terminal.note,
        progress=terminal.progress,
    )
    interrupts.leaves("interrupted; nothing was written, and nothing is left in the system")
    names = comparing.names_of(scenarios)
    compared = work.compare(texts, names, wanted, explained=explained, holm=holm)
    interrupts.leaves("interrupted")
    words = [*map(str, scenarios), *comparing.options(margin or [], explained=explained, holm=holm)]
    words += laboratory.options(real_time=real_time, device=device)
    given = {"--runs": runs, "--sim-runs": sim_runs, "--seed": None if seed == 1 else seed, "--out": out}
    results.conclude(compared, terminal.command("compare", *words, **given))
    results.say_where()
    results.write_csv()
    if compared.left_out:
        raise typer.Exit(INVALID)
