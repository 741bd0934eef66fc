"""`perhop export`: a link's queue and meters as lines of a router's configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from perhop import routers
from perhop.commands import options, terminal
from perhop.commands.context import put
from perhop.files import outputs
from perhop.plurals import counted
from perhop.scenario import reading
from perhop.show import table

LANGUAGES = ", ".join(
    f"{name} ({dialect.family})" if dialect.family else name for name, dialect in routers.WRITERS.items()
)


def export(
    scenario: options.Scenario,
    *,
    dialect: Annotated[str, options.option("--to", "DIALECT", f"The router's language: {LANGUAGES}.")],
    link: Annotated[
        str | None, options.option("--link", "NAME", "Which link (default: the only one with a queue).")
    ] = None,
    shape: Annotated[
        bool, options.flag("--shape", "Shape to the link's rate: the interface is faster than the link.")
    ] = False,
    lenient: Annotated[
        bool, options.flag("--lenient", "Leave out what the language cannot express, and say so.")
    ] = False,
    devices: Annotated[
        str | None,
        options.option(
            "--devices",
            "IN,OUT",
            "For perhop-router: its interface towards the customers, and that towards the network.",
        ),
    ] = None,
    output: Annotated[Path, options.output("--output", "FILE", "The configuration to write.", "-o")] = Path(
        "-"
    ),
    json_file: options.Json = None,
    wide: options.Wide = False,
) -> None:
    """Write the queue and the meters of a link as lines of a router's configuration.

    Comments in it, and the report, say which values are rounded and by how much, what the router does in
    another way, and with --lenient what is left out. Only the forward direction is written; for
    perhop-router, also the reverse one if it has a queue.

    \b
    Examples:
      perhop export branch.toml --to ios -o branch.cfg
      perhop export network.toml --link uplink --to ios --shape -o uplink.cfg
      perhop export network.toml --link uplink --to junos --shape -o uplink.conf
      perhop export network.toml --link uplink --to tc --shape -o uplink.sh
      perhop export branch.toml --to perhop-router --devices eth1,eth0 -o out.toml
    """
    outputs.apart({"--output": output, "--json": json_file})
    where = outputs.prepare_file(output, "--output", reads=[scenario])
    json_path = None if json_file is None else outputs.prepare_file(json_file, reads=[scenario])
    done = routers.exported(
        reading.canonical(scenario),
        str(scenario),
        dialect,
        link=link,
        shape=shape,
        lenient=lenient,
        devices=devices,
    )
    say = terminal.note if outputs.STDOUT in {where, json_path} else terminal.say
    put(where, done.text)
    put(json_path, done.to_json() + "\n")
    say(_report(done, terminal.width(wide=wide)))
    if where != outputs.STDOUT:
        terminal.note(f"{where}: written")


def _report(done: routers.Exported, width: int | None) -> str:
    """What the lines do not say as the scenario does."""
    naming = [table.prose(done.naming, width)] if done.naming else []
    if not done.remarks:
        return "\n".join([f"{done.link}, written for {done.dialect}: every value unchanged", *naming])
    lines = [f"{done.link}, written for {done.dialect}; {counted(len(done.remarks), 'remark')}:"]
    lines += [table.prose(f"{r.kind}: {r.place}: {r.text}", width) for r in done.remarks]
    return "\n".join([*lines, *naming])
