"""`perhop live`: a scenario on real packets."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perhop.commands import options, terminal
from perhop.commands.context import INVALID, Results
from perhop.errors import PerhopError, ScenarioError
from perhop.processes import interrupts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perhop.real_packets import laboratory, metrics
    from perhop.real_packets.laboratory import LiveResult


def live(
    scenario: options.Scenario,
    *,
    runs: Annotated[int | None, options.runs("Runs on real packets, one after the other")] = None,
    seed: options.Seed = 1,
    stats: Annotated[
        bool, options.flag("--stats", "Print running statistics each second, on standard error.")
    ] = False,
    real_time: options.RealTime = True,
    device: options.Device = "auto",
    metrics_at: Annotated[
        str | None,
        options.option(
            "--metrics",
            "127.0.0.1:PORT",
            "Serve running statistics for Prometheus there, to this machine only.",
        ),
    ] = None,
    wide: options.Wide = False,
    out: options.Out = None,
    json_file: options.Json = None,
) -> None:
    """Run a scenario on real packets and print what `perhop run` prints.

    Two hosts in private network namespaces talk through perhop's router: TCP is the kernel's, UDP, RAP and
    TFRC are perhop's own senders. A run takes as long as the scenario says. It works for root, and for
    ordinary users where the system lets them make user namespaces; nothing of it is left behind, however it
    ends. A run in which the machine was too slow, or lost packets where the scenario has no queue, is called
    invalid, and the command then ends with status 3.

    \b
    Examples:
      perhop live my.toml
      perhop live my.toml --runs 4 --stats
      perhop live my.toml --metrics 127.0.0.1:9477
    """
    with interrupts.loading():
        from perhop.runs import extent
        from perhop.scenario import reading
    wanted = 1 if runs is None else runs
    extent.seeds(seed, wanted)
    checked = reading.read(scenario, real_packets=True)
    terminal.warn(checked.notices)
    with interrupts.loading():
        from perhop.real_packets import laboratory, metrics  # behind a file that may be refused
    served = None if metrics_at is None else metrics.endpoint(metrics_at)
    results = Results(out=out, json_file=json_file, wide=wide, reads=[scenario])
    interrupts.leaves("interrupted; nothing was written, and nothing is left in the system")
    try:
        with nullcontext() if served is None else metrics.serve(*served) as serving:
            meter = None
            if serving is not None:
                meter, place = serving
                terminal.note(f"metrics: {place}")
            result = run(checked.text, wanted, seed, stats=stats, manner=(real_time, device), meter=meter)
    except ScenarioError as error:
        # The engine names the key; which file it is in is known here.
        raise PerhopError(f"{scenario}: {error}") from None
    interrupts.leaves("interrupted")
    result = replace(result, name=scenario.stem)
    given = {"--runs": wanted, "--seed": None if seed == 1 else seed, "--out": out}
    manner = laboratory.options(real_time=real_time, device=device)
    results.conclude(result, terminal.command("live", str(scenario), *manner, **given))
    results.say_where()
    if not result.valid:
        raise typer.Exit(INVALID)


def run(
    canonical: str,
    runs: int,
    seed: int,
    *,
    stats: bool,
    manner: tuple[bool, laboratory.Device],
    meter: metrics.RunningStatistics | None = None,
) -> LiveResult:
    """Run on real packets, with a bar of seconds on a terminal, or with `stats` a line each second."""
    with interrupts.loading():
        from perhop.real_packets import laboratory
    content = json.loads(canonical)
    printer = _Printer(content)
    total = max(1, int(runs * laboratory.seconds(canonical)))
    with terminal.progress("seconds", 0 if stats else total) as step:

        def watch(number: int, glimpse: Mapping[str, Any]) -> None:
            if meter is not None:
                meter.see(number, glimpse)
            if stats:
                terminal.note(printer.line(number, glimpse))
            else:
                step()

        real_time, device = manner
        return laboratory.run(
            content, runs=runs, seed=seed, real_time=real_time, device=device, watch_s=1.0, watch=watch
        )


class _Printer:
    """Lines of running statistics."""

    def __init__(self, scenario: Mapping[str, Any]) -> None:
        self.counts = {group["name"]: int(group.get("count", 1)) for group in scenario["flows"]}
        self.last: tuple[float, Mapping[str, float]] = (0.0, {})

    def line(self, seed: int, glimpse: Mapping[str, Any]) -> str:
        """`seed 1  12 s  gold 1.53 …`: what each flow of a group got since the last line, in Mbit/s."""
        now, received = float(glimpse["time_s"]), glimpse["received_bytes"]
        then, before = self.last if self.last[0] < now else (0.0, {})
        self.last = (now, received)
        rates = [
            f"{name} {(got - before.get(name, 0.0)) * 8e-6 / (now - then) / self.counts[name]:.3f}"
            for name, got in received.items()
        ]
        links = []
        for name, link in glimpse["links"].items():
            dropped = ", ".join(f"{reason} {packets}" for reason, packets in link["dropped"].items())
            links.append(f"{name}: {link['waiting']} waiting, dropped {dropped or 'none'}")
        late = glimpse["late_s"]
        return (
            f"seed {seed}  {now:g} s  Mbit/s each: {', '.join(rates)};  {'; '.join(links)};  "
            f"late p50 {late['p50'] * 1e3:.3f} ms, p99 {late['p99'] * 1e3:.3f} ms"
        )
