"""`perhop run`: a scenario, simulated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from perhop import _engine
from perhop.commands import terminal
from perhop.commands.context import Results
from perhop.processes import interrupts, memory


def run(
    scenario: Annotated[Path, typer.Argument(metavar="SCENARIO.toml", help="A scenario file.")],
    *,
    runs: Annotated[
        int | None,
        typer.Option(
            "--runs",
            metavar="N",
            help="Simulated runs, each with its own seed; 1 has no interval. Default: 30 where a run is "
            "short, 10 or 5 where it takes long.",
        ),
    ] = None,
    seed: terminal.Seed = 1,
    jobs: terminal.Jobs = None,
    threads: terminal.Threads = None,
    engine: terminal.Engine = None,
    capture: Annotated[
        Path | None,
        typer.Option(
            "--capture",
            metavar="FILE.pcapng",
            parser=terminal.place,
            help="Write the packets of the run with the first seed, for Wireshark: TCP/IP headers, and why "
            "packets are dropped or marked.",
        ),
    ] = None,
    capture_link: Annotated[
        list[str] | None,
        typer.Option(
            "--capture-link",
            metavar="LINK",
            help="Where packets are recorded: a link of the scenario, both directions; may be repeated "
            "(default: the links with a queue).",
        ),
    ] = None,
    events: Annotated[
        Path | None,
        typer.Option(
            "--events",
            metavar="FILE.parquet",
            parser=terminal.place,
            help="Write what became of each packet of that run at these links, as a table.",
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            metavar="FILE.svg",
            parser=terminal.place,
            help="Draw throughput, queues and round-trip times over time, as SVG or PNG, and print them as "
            "blocks; - prints alone.",
        ),
    ] = None,
    wide: terminal.Wide = False,
    out: terminal.Out = None,
    json_file: terminal.Json = None,
    csv: terminal.Csv = None,
) -> None:
    """Simulate a scenario of your own and print what each class and each link got.

    `perhop schema` describes the format; docs/tutorial.md has a first scenario. Tables have means over the
    runs with 95 % intervals. Every figure excludes the scenario's `warmup`, loss and drops included.

    Without --runs their number depends on how many events a run has, and on nothing else: 30 of up to
    2 million, 10 of up to 6 million, else 5. A line says which, and how to repeat them.

    \b
    Examples:
      perhop run my.toml
      perhop run my.toml --runs 20 --out results/my
      perhop run my.toml --runs 20 --json - | jq .classes
      perhop run my.toml --csv tables
      perhop run my.toml --plot my.svg
      perhop run my.toml --runs 1 --capture my.pcapng
    """
    with interrupts.loading():
        from perhop.runs import budget, extent, over_time, recording, simulate, summary
        from perhop.scenario import reading
    first, least = terminal.seeds(seed, budget.FIRST if runs is None else runs)
    at_once = extent.workers(jobs)
    extent.threads_each(threads, at_once, least)
    checked = reading.read(scenario)
    terminal.warn(checked.notices)
    plot_path = over_time.prepare(plot, reads=[scenario])
    text = checked.text if plot is None else over_time.sampled(checked.text)
    results = Results(out=out, json_file=json_file, csv=csv, wide=wide, reads=[scenario])
    recorded: dict[str, Any] = {
        "capture": capture,
        "capture_links": capture_link or (),
        "events": events,
    }
    records = recording.plan(text, **recorded, reads=[scenario]) is not None
    memory.fitting(text, least, at_once, at_once)
    if records and engine is None:
        one = "Computed" if least == 1 else f"The run with seed {first} is computed"
        terminal.note(f"{one} by the reference engine, which is slower: its packets are recorded.")
    if engine is None and not (records and least == 1):
        _note_reference_engine(text)
    if threads is not None and threads > 1:
        _note_threads(text, threads, engine)
    with terminal.progress("runs", least) as step:
        result = simulate.run(
            json.loads(text),
            runs=runs,
            seed=first,
            jobs=at_once,
            threads=threads,
            engine=engine,
            **recorded,
            progress=lambda _done, all_: step(all_),
            waiting=step.waiting,
        )
    interrupts.leaves("interrupted")
    shown = summary.summarize(result, name=scenario.stem, by_default=runs is None)
    if out is not None:
        command = terminal.command(
            "run",
            str(scenario),
            *(word for link in capture_link or () for word in ("--capture-link", link)),
            **{"--runs": len(result.runs), "--seed": None if seed == 1 else seed, "--engine": engine},
            **{"--capture": capture, "--events": events, "--plot": plot, "--out": out},
        )
        with interrupts.deferred():
            from perhop.runs import page
        page.write_run(out, result, shown, command)
    numbers = summary.to_json(result, by_default=runs is None) if results.in_json else ""
    results.write_json(numbers)
    results.say(shown.text(results.width))
    over_time.show(plot_path, result.runs, shown.title, results.say, results.width)
    if records:
        kept = " and ".join(str(path) for path in (capture, events) if path is not None)
        results.say(f"\npackets of the run with seed {first}: {kept}")
    results.say_where()
    if csv is not None:
        results.write_csv(numbers, summary.frames_of_runs(result))


def _note_threads(text: str, threads: int, engine: str | None) -> None:
    """Say before the runs if they use fewer threads than asked for, and why."""
    from perhop.runs import parallel

    cancel = _engine.Cancel()
    ((used, reason),) = parallel.parallel_map(
        lambda scenario: _engine.threads_for(scenario, threads, cancel), [text], jobs=1, cancel=cancel
    )
    if engine == "reference":
        used, reason = 1, "the reference engine runs it, which uses one thread"
    if used < threads:
        why = reason or f"it is large enough for {used}"
        terminal.note(f"Each run uses {used} of {threads} threads: {why}.")


def _note_reference_engine(text: str) -> None:
    """Say before the runs why they take longer, where the batched engine refuses the network."""
    from perhop.runs import parallel

    cancel = _engine.Cancel()
    ((_, reason),) = parallel.parallel_map(
        lambda scenario: _engine.engine_for(scenario, cancel), [text], jobs=1, cancel=cancel
    )
    if reason is not None:
        terminal.note(f"Computed by the reference engine, which is slower: {reason}.")
