"""`perhop run`: a scenario, simulated."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perhop import _engine
from perhop.commands import options, terminal
from perhop.commands.context import Results
from perhop.files import outputs
from perhop.plurals import counted
from perhop.processes import interrupts, memory

if TYPE_CHECKING:
    from perhop.runs.result import Result
    from perhop.statistics.stopping import Until

MOST_LISTED = 3
"""Threads whose parts are listed."""


def run(
    scenario: options.Scenario,
    *,
    runs: Annotated[
        int | None,
        options.option(
            "--runs",
            "N",
            "Simulated runs, each with its own seed; 1 has no interval. Default: 30 where a run is short, 10 "
            "or 5 where it takes long.",
        ),
    ] = None,
    until: Annotated[
        str | None,
        options.option(
            "--until",
            "2%",
            "Add runs until the 95 % intervals of each class's throughput are this narrow, each side over "
            "the value; --runs is then the most (default: 1000).",
        ),
    ] = None,
    until_of: Annotated[
        list[str] | None,
        options.option(
            "--until-of",
            "METRIC",
            "The metric of which that holds, in place of throughput: its name or pattern in sweeps; may be "
            "repeated.",
        ),
    ] = None,
    seed: options.Seed = 1,
    jobs: options.Jobs = None,
    threads: options.Threads = None,
    engine: options.Engine = None,
    warmup: Annotated[
        str | None,
        options.option(
            "--warmup",
            "DURATION|auto",
            "Exclude this initial period in place of the scenario's `warmup`; auto finds it, also where that "
            "sets none: until the last queue and the last class's rate have settled (MSER-5).",
        ),
    ] = None,
    capture: Annotated[
        Path | None,
        options.output(
            "--capture",
            "FILE.pcapng",
            "Write the packets of the run with the first seed, for Wireshark: TCP/IP headers, and why "
            "packets are dropped or marked.",
        ),
    ] = None,
    capture_link: Annotated[
        list[str] | None,
        options.option(
            "--capture-link",
            "LINK",
            "Where packets are recorded: a link of the scenario, both directions; may be repeated (default: "
            "the links with a queue).",
        ),
    ] = None,
    events: Annotated[
        Path | None,
        options.output(
            "--events",
            "FILE.parquet",
            "Write what became of each packet of that run at these links, as a table.",
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        options.output(
            "--plot",
            "FILE.svg",
            "Draw throughput, queues and round-trip times over time, as SVG or PNG, and print them as "
            "blocks; - prints alone.",
        ),
    ] = None,
    wide: options.Wide = False,
    out: options.Out = None,
    json_file: options.Json = None,
    csv: options.Csv = None,
) -> None:
    """Simulate a scenario of your own and print what each class and each link got.

    `perhop schema` describes the format; docs/tutorial.md has a first scenario. Tables have means over the
    runs with 95 % intervals. Every figure excludes the scenario's `warmup`, loss and drops included. `at
    most` is a bound for any run, which `perhop bound` derives.

    Without --runs their number depends on how many events a run has, and on nothing else: 30 of up to
    2 million, 10 of up to 6 million, else 5. A line says which, and how to repeat them.

    \b
    Examples:
      perhop run my.toml
      perhop run my.toml --runs 20 --out results/my
      perhop run my.toml --until 2% --until-of links.uplink.delay_p99_s
      perhop run my.toml --warmup 0s
      perhop run my.toml --runs 20 --json - | jq .classes
      perhop run my.toml --csv tables
      perhop run my.toml --plot my.svg
      perhop run my.toml --runs 1 --capture my.pcapng
    """
    with interrupts.loading():
        from perhop.scenario import warmup as warmups

        checked = warmups.read(scenario, warmup)  # a file that is refused waits for nothing more
        from perhop.runs import budget, extent, recording
        from perhop.runs import until as stopping
    rule = stopping.read(until, until_of or (), runs)
    least = rule.least if rule is not None else budget.FIRST if runs is None else runs
    extent.seeds(seed, least if rule is None else rule.most)
    at_once = extent.workers(jobs)
    extent.threads_each(threads, at_once, least)
    terminal.warn(checked.notices)
    files = {"--plot": None if plot == outputs.STDOUT else plot, "--capture": capture, "--events": events}
    results = Results(out=out, json_file=json_file, csv=csv, files=files, wide=wide, reads=[scenario])
    text = checked.text
    if plot is not None:
        with interrupts.deferred():
            from perhop.runs import over_time
        plot, text = over_time.prepare(plot, reads=[scenario]), over_time.sampled(text)
    recorded: dict[str, Any] = {"capture": capture, "capture_links": capture_link or (), "events": events}
    records = recording.plan(text, **recorded, reads=[scenario]) is not None
    memory.fitting(text, least, at_once, at_once)
    if records and engine is None:
        one = "Computed" if least == 1 else f"The run with seed {seed} is computed"
        terminal.note(f"{one} by the reference engine, which is slower: its packets are recorded.")
    if engine is None and not (records and least == 1):
        _note_reference_engine(text)
    if threads is not None and threads > 1:
        _note_threads(text, threads, engine)
    _refuse_unknown(text, rule)
    _find_warm_up(text, at_once)
    arguments: dict[str, Any] = {
        "runs": runs,
        "until": until,
        "until_of": until_of or (),
        "seed": seed,
        "jobs": at_once,
        "threads": threads,
        "engine": engine,
        "warmup": warmup,
        **recorded,
    }
    with terminal.progress("runs" if rule is None else stopping.progress(rule), least) as step:
        result = _simulated(text, arguments, step)
    interrupts.leaves("interrupted")
    result = replace(result, name=scenario.stem)
    command = terminal.command(
        "run",
        str(scenario),
        *(word for metric in until_of or () for word in ("--until-of", metric)),
        *(word for link in capture_link or () for word in ("--capture-link", link)),
        **{"--until": until, "--runs": runs if rule and not result.interrupted_of else len(result.runs)},
        **{"--seed": None if seed == 1 else seed, "--engine": engine},
        **{"--warmup": warmup},
        **{"--capture": capture, "--events": events, "--plot": plot, "--out": out},
    )
    _note_warm_up(result)
    with interrupts.deferred():  # what is measured is written; a second Ctrl-C ends at once
        results.conclude(result, command)
        if plot is not None:
            over_time.show(plot, result.runs, result.title, results.say, results.width)
        _say_where(results, seed, (capture, events))
        if csv is not None:
            from perhop.runs import summary

            results.write_csv(summary.frames_of_runs(result))
    if result.interrupted_of:
        raise typer.Exit(interrupts.status())


def _simulated(text: str, arguments: dict[str, Any], step: terminal.Steps) -> Result:
    """The runs, or those that had finished when Ctrl-C came."""
    with interrupts.deferred():
        from perhop.runs import simulate  # behind all that may be refused: it loads numpy and every measure
    try:
        return simulate.run(
            json.loads(text), **arguments, progress=lambda _done, all_: step(all_), waiting=step.waiting
        )
    except simulate.Interrupted as end:
        made, wanted = len(end.result.runs), end.result.interrupted_of
        terminal.note(
            f"Interrupted: what follows is of the first {made} of {wanted} runs, which had finished."
        )
        return end.result


def _say_where(results: Results, seed: int, recorded: tuple[Path | None, ...]) -> None:
    if kept := " and ".join(str(path) for path in recorded if path is not None):
        results.say(f"\npackets of the run with seed {seed}: {kept}")
    results.say_where()


def _note_warm_up(result: Result) -> None:
    """Say where a run is too short for its warm-up."""
    if result.warm_up is not None and result.warm_up.seconds and not result.warm_up.settles:
        terminal.note(f"Warm-up: {result.warm_up.why}.")


def _refuse_unknown(text: str, rule: Until | None) -> None:
    """Refuse metrics of `--until-of` that nothing has, before anything runs."""
    from perhop.runs import until

    if rule is not None:
        until.Watch(text, rule)


def _find_warm_up(text: str, jobs: int) -> None:
    """Find the warm-up before the runs, if it has to be found, with progress of its own."""
    with interrupts.deferred():
        from perhop.runs import warming
    if warming.is_auto(text):
        with terminal.progress("runs that find the warm-up", len(warming.SEEDS)) as step:
            warming.settled(text, jobs=jobs, waiting=step.waiting)


def _note_threads(text: str, threads: int, engine: str | None) -> None:
    """Say before the runs how they are divided among threads, and why if they use fewer than asked for."""
    from perhop.runs import parallel

    cancel = _engine.Cancel()
    ((divided, reason),) = parallel.parallel_map(
        lambda scenario: _engine.division(scenario, threads, cancel), [text], jobs=1, cancel=cancel
    )
    if engine == "reference":
        divided, reason = None, "the reference engine runs it, which uses one thread"
    if divided is None:
        terminal.note(f"Each run uses 1 of {threads} threads: {reason}.")
        return
    used = len(divided["routers"])
    fewer = "" if used == threads else f" of {threads}, as it is large enough for {used}"
    routers = _listed(divided["routers"], used)
    work = _listed([round(100 * share) for share in divided["work"]], used)
    border, round_ms = counted(divided["border"], "link"), 1e3 * divided["lookahead_s"]
    terminal.note(
        f"Each run uses {used}{fewer} threads, with {routers} routers and {work} % of the work; {border} "
        f"between them, and rounds of {round_ms:.3g} ms."
    )


def _listed(values: list[int], used: int) -> str:
    """Values of each thread, or the least and the most of many."""
    return " and ".join(map(str, values)) if used <= MOST_LISTED else f"{min(values)} to {max(values)}"


def _note_reference_engine(text: str) -> None:
    """Say before the runs why they take longer, where the batched engine refuses the network."""
    from perhop.runs import parallel

    cancel = _engine.Cancel()
    ((_, reason),) = parallel.parallel_map(
        lambda scenario: _engine.engine_for(scenario, cancel), [text], jobs=1, cancel=cancel
    )
    if reason is not None:
        terminal.note(f"Computed by the reference engine, which is slower: {reason}.")
