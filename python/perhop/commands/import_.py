"""`perhop import`: a scenario from a router's configuration, and how each value was obtained."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from perhop import _engine, routers
from perhop.commands import options, terminal
from perhop.commands.context import put
from perhop.errors import PerhopError, ScenarioError
from perhop.files import outputs
from perhop.plurals import counted
from perhop.processes import interrupts
from perhop.routers import beside, guarantees
from perhop.runs import extent
from perhop.show import table


def import_(
    configurations: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...", help="A router's configuration, or its parts; - is standard input."
        ),
    ],
    *,
    dialect: Annotated[
        str | None,
        options.option(
            "--from", "DIALECT", f"Its language (default: recognised): {', '.join(routers.READERS)}."
        ),
    ] = None,
    interface: Annotated[
        str | None, options.option("--interface", "NAME", "Whose queues (default: the only one with queues).")
    ] = None,
    rate: Annotated[str | None, options.option("--rate", "20Mbps", "The rate of the interface.")] = None,
    link_rate: Annotated[str | None, typer.Option("--link-rate", hidden=True)] = None,
    packet_size: Annotated[
        str | None, options.option("--packet-size", "1000B", "The mean size of packets.")
    ] = None,
    buffer: Annotated[
        str | None,
        options.option(
            "--buffer",
            "1MB",
            "The buffer of the port, or of a queue without a limit: bytes, packets (`200p`) or time at its "
            "rate (`50ms`).",
        ),
    ] = None,
    segment_size: Annotated[
        str | None,
        options.option("--segment-size", "208B", "What the device counts as a segment of its buffer (EOS)."),
    ] = None,
    matches: Annotated[
        list[str] | None,
        options.option(
            "--match",
            "CLASS=DSCP",
            "The codepoints of a class that the device chooses by something else; may be repeated.",
        ),
    ] = None,
    lenient: Annotated[
        bool, options.flag("--lenient", "Assume what is missing, and say so, in place of asking for it.")
    ] = False,
    traffic: Annotated[
        Path | None,
        options.source(
            "--traffic",
            "USERS.toml",
            "Who uses the link: the [[flows]] of a plan or a scenario, in place of a template.",
        ),
    ] = None,
    runs: Annotated[
        int | None,
        options.option(
            "--runs",
            "N",
            "Simulate the scenario, too: 99th percentiles of so many runs stand beside what is guaranteed.",
        ),
    ] = None,
    output: Annotated[Path, options.output("--output", "FILE.toml", "The scenario to write.", "-o")] = Path(
        "-"
    ),
    json_file: options.Json = None,
    wide: options.Wide = False,
) -> None:
    """Make a scenario of a router's configuration: queues, meters and matches of one interface.

    The scenario names the line of each value. The report says how each was obtained, and lists with codes
    W01 to W18 what perhop does differently, and every line that has no effect. Nothing is guessed: what the
    configuration does not say is asked for by an option. Traffic is yours: by --traffic, or to fill in, for
    which the scenario has a template. The report ends with what each class is guaranteed with this traffic,
    as `perhop bound` derives it, and with --runs also with what it gets.

    \b
    Examples:
      perhop import edge.cfg --rate 20Mbps --packet-size 1000B -o edge.toml
      perhop import edge.cfg --rate 20Mbps --traffic users.toml --runs 5
      perhop import tc.sh --interface eth0 -o eth0.toml
    """
    source = routers.Source([(str(path), beside.read(path)) for path in configurations])
    if rate is not None and link_rate is not None:
        raise PerhopError("--link-rate is the former name of --rate; give --rate alone")
    rate = rate or link_rate
    given = beside.answers(
        rate, packet_size, buffer, segment_size, matches=matches or [], lenient=lenient, demand=traffic
    )
    if runs is not None:
        extent.seeds(1, runs)
    reads = [*configurations, *([] if traffic is None else [traffic])]
    outputs.apart({"--output": output, "--json": json_file})
    where = outputs.prepare_file(output, "--output", reads=reads)
    json_path = None if json_file is None else outputs.prepare_file(json_file, reads=reads)
    done = routers.imported(source, given, dialect=dialect, interface=interface)
    origin = "scenario" if where == outputs.STDOUT else str(where)
    try:
        scenario, notices = _engine.read_toml(done.toml, origin, real_packets=False, folder=Path())
    except ScenarioError as error:
        users = "" if traffic is None else f" with the traffic of {traffic}"
        raise PerhopError(
            f"{source.names[0]}{users}: its values make no scenario that perhop accepts: {error}"
        ) from None
    standard = outputs.STDOUT in {where, json_path}
    say = terminal.note if standard else terminal.say
    put(where, done.toml)
    if where != outputs.STDOUT:
        interrupts.leaves(f"interrupted; {where} is written")
    width = terminal.width(wide=wide)
    say(_report(done, source, width))
    terminal.warn(notices)
    with terminal.progress("runs", runs or 0) as step:
        found = routers.guaranteed(
            json.loads(scenario),
            runs=runs or 0,
            progress=lambda _done, all_: step(all_),
            waiting=step.waiting,
        )
    put(json_path, done.to_json(source, guarantees=found.to_dict()) + "\n")
    say(_guaranteed(found, traffic, runs or 0, width))
    if where != outputs.STDOUT:
        what = "fill in the traffic, then" if traffic is None else "to run it"
        terminal.note(f"{where}: written; {what}: {terminal.command('run', str(where))}")


def _guaranteed(found: routers.Guarantees, traffic: Path | None, runs: int, width: int | None) -> str:
    """Tables of what is guaranteed and measured, and why where it is not; for a template, of queues alone."""
    name = "the template of traffic" if traffic is None else f"the traffic of {traffic}"
    measured = f", and the 99th percentile in {counted(runs, 'run')}" if runs else ""
    tables = [] if traffic is None else [("One-way delay of each class", found.classes)]
    lines = []
    for what, frame in (*tables, ("Waiting time in each queue", found.queues)):
        lines += ["", table.prose(f"{what} with {name}: at most in any run{measured}", width)]
        lines += table.records(guarantees.lines(frame), width)
        lines += [table.prose(reason, width) for reason in guarantees.reasons(frame)]
    return "\n".join(lines)


def _report(done: routers.Imported, source: routers.Source, width: int | None) -> str:
    """Tables by queue, then what differs, then the lines without effect."""
    lines = [f"{done.port}, read as {routers.DIALECTS[done.dialect].title}"]
    queues = dict.fromkeys(row.queue for row in done.rows)
    for queue in queues:
        listed = [
            {
                "parameter": row.parameter,
                "value": row.value,
                "line": source.place(row.line),
                "how": row.how,
                "from": row.said,
            }
            for row in done.rows
            if row.queue == queue
        ]
        lines += ["", queue, *table.records(listed, width)]
    differing = [finding for finding in done.findings if finding.code != "W13"]
    ignored = [finding for finding in done.findings if finding.code == "W13"]
    if differing:
        lines += ["", f"{counted(len(differing), 'warning')}:"]
        lines += [table.prose(f"{f.code} {source.place(f.line)}: {f.text}", width) for f in differing]
    if ignored:
        lines += ["", f"{counted(len(ignored), 'line')} without effect (W13):"]
        lines += [table.prose(f"{source.place(f.line)}: {f.text}", width) for f in ignored]
    return "\n".join(lines)
