"""`perhop witness`: a link's packets through the kernel's queueing discipline and through perhop's block."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from perhop.commands import options, terminal
from perhop.commands.context import INVALID, Results
from perhop.processes import interrupts


def witness(
    scenario: options.Scenario,
    *,
    link: Annotated[
        str | None, options.option("--link", "NAME", "The link (default: the only one with a queue).")
    ] = None,
    arrivals: Annotated[
        Path | None,
        options.option(
            "--arrivals", "CAPTURE", "Send the packets of a pcap or pcapng file, not those of the simulation."
        ),
    ] = None,
    seed: Annotated[
        int, options.option("--seed", "S", "Of the simulation, and of what an AQM decides by chance.")
    ] = 1,
    real_time: Annotated[
        bool,
        options.flag(
            "--real-time/--no-real-time", "Give the sender real-time priority where that is allowed."
        ),
    ] = True,
    wide: options.Wide = False,
    out: options.Out = None,
    json_file: options.Json = None,
    csv: options.Csv = None,
) -> None:
    """Compare perhop's queue with the kernel's own queueing discipline, packet by packet.

    The link's queue is set up in the kernel by `tc`, in a private network namespace, and the packets that
    come to the link in the simulation are sent into it in real time. perhop's block decides about the same
    packets, at the times at which they really came: which are dropped or marked, and in which order do they
    leave? Neither has the link behind it: `shaper` (tbf) and `htb` limit the rate themselves, and other
    queues get a shaper of the link's rate around them. A discipline that this kernel does not have is named.

    It needs Linux, `tc`, and either root or user namespaces. If the kernel sent packets that were not seen,
    the run is called invalid, and the command ends with status 3; differences do not change the status.

    \b
    Examples:
      perhop witness my.toml
      perhop witness my.toml --link uplink --out results/witness
      perhop witness my.toml --arrivals captured.pcap
    """
    with interrupts.loading():
        from perhop.scenario import reading
    terminal.warn(reading.read(scenario).notices)
    reads = [scenario] if arrivals is None else [scenario, arrivals]
    results = Results(out=out, json_file=json_file, csv=csv, wide=wide, reads=reads)
    with interrupts.deferred():
        from perhop.real_packets import laboratory, witnessing  # behind all that may be refused
    interrupts.leaves("interrupted; nothing was written, and nothing is left in the system")
    found = witnessing.witness(scenario, link=link, arrivals=arrivals, seed=seed, real_time=real_time)
    interrupts.leaves("interrupted")
    given = {
        "--link": link,
        "--arrivals": arrivals,
        "--seed": None if seed == 1 else seed,
        "--out": out,
    }
    manner = laboratory.options(real_time=real_time)
    found = replace(found, command=terminal.command("witness", str(scenario), *manner, **given))
    results.conclude(found, found.command)
    results.say_where()
    results.write_csv({"packets": found.packets})
    if not found.valid:
        raise typer.Exit(INVALID)
