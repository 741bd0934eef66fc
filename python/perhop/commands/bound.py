"""`perhop bound`: what no run of a scenario can exceed, and how that follows."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from perhop.commands import options, terminal
from perhop.commands.context import Results
from perhop.processes import interrupts


def bound(
    scenario: options.Scenario,
    *,
    steps: Annotated[
        bool,
        options.flag("--steps", "Show how each bound follows, step by step, with formulas and sources."),
    ] = False,
    of: Annotated[
        str | None,
        options.option(
            "--of",
            "NAME",
            "Show how the bounds of this one alone follow: a class of flows, a flow, a link, or a class of "
            "packets at links.",
        ),
    ] = None,
    wide: options.Wide = False,
    out: options.Out = None,
    json_file: options.Json = None,
    csv: options.Csv = None,
) -> None:
    """Print what no run of a scenario can exceed: delays, backlogs, and where no packet can be lost.

    Network calculus derives these bounds from the scenario alone; nothing is simulated. A bound holds for
    every packet of every run, with any seed and the warm-up included, as long as the traffic is what the
    scenario says. Where there is none, a line says why. `perhop run` shows bounds beside percentiles.

    \b
    Examples:
      perhop bound my.toml
      perhop bound my.toml --of voice
      perhop bound my.toml --steps --wide
      perhop bound my.toml --json - | jq .link_classes
    """
    with interrupts.loading():
        from perhop.scenario import reading
    checked = reading.read(scenario)
    terminal.warn(checked.notices)
    results = Results(out=out, json_file=json_file, csv=csv, wide=wide, reads=[scenario])
    with interrupts.deferred():
        from perhop.bounds import deriving  # behind all that may be refused: it loads numpy
    found = replace(deriving.of_text(checked.text), name=scenario.stem, with_steps=steps)
    found = found if of is None else found.about(of)
    results.conclude(found, terminal.command("bound", str(scenario), **{"--out": out}))
    if not steps and of is None:
        again = terminal.command("bound", str(scenario), "--steps")
        results.say(f"\nHow each follows, step by step: {again}")
    results.say_where()
    results.write_csv()
