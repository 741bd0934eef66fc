"""`perhop compare`: a scenario simulated and on real packets, side by side."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perhop.commands import live as living
from perhop.commands import terminal
from perhop.commands.context import Results
from perhop.errors import PerhopError, ScenarioError
from perhop.plurals import counted
from perhop.processes import interrupts
from perhop.real_packets import LIVE_RUNS, SIMULATED_RUNS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from perhop.real_packets import explain, laboratory, report
    from perhop.real_packets.equivalence import Margin
    from perhop.real_packets.laboratory import LiveResult
    from perhop.runs.result import Result


def compare(
    scenarios: Annotated[
        list[Path], typer.Argument(metavar="SCENARIO.toml", help="A scenario file, or two of them.")
    ],
    *,
    runs: Annotated[
        int,
        typer.Option(
            "--runs",
            metavar="N",
            help="Runs of each scenario on real packets, each with its own seed; --sim-runs counts simulated "
            "ones.",
        ),
    ] = LIVE_RUNS,
    sim_runs: Annotated[
        int,
        typer.Option(
            "--sim-runs",
            metavar="M",
            help="Simulated runs of each scenario: what `perhop run` calls --runs.",
        ),
    ] = SIMULATED_RUNS,
    margin: Annotated[
        list[str] | None,
        typer.Option(
            "--margin",
            metavar="[NAME=]SIZE",
            help="What counts as no difference: 10%, or for one kind of measure delay=5ms, loss=0.5pp, "
            "queue=3p, throughput=20%. May be given several times.",
        ),
    ] = None,
    explained: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Measure the effect of each difference between the kernel's TCP and the simulated one: many "
            "more runs.",
        ),
    ] = False,
    holm: terminal.Holm = False,
    seed: terminal.Seed = 1,
    jobs: terminal.Jobs = None,
    real_time: living.RealTime = True,
    device: living.Device = "auto",
    wide: terminal.Wide = False,
    out: terminal.Out = None,
    json_file: terminal.Json = None,
    csv: terminal.Csv = None,
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
        from perhop.real_packets import equivalence, report
        from perhop.runs import extent
        from perhop.scenario import reading
    if len(scenarios) > 2:
        raise PerhopError(f"compare takes one or two scenarios, not {len(scenarios)}")
    wanted = equivalence.margins(margin or [])
    first, _ = terminal.seeds(seed, max(runs, sim_runs))
    for count in (runs, sim_runs):
        extent.seeds(seed, count)
    threads = extent.workers(jobs)
    read = [reading.read(path) for path in scenarios]
    for path in scenarios:
        reading.read(path, real_packets=True)  # Refusals name the file and the line.
    terminal.warn(notice for checked in read for notice in checked.notices)
    texts = [checked.text for checked in read]
    results = Results(out=out, json_file=json_file, csv=csv, wide=wide, reads=scenarios)
    names = _names(scenarios)
    work = _Work(
        (first, runs, sim_runs, threads), (real_time, device), dict(zip(texts, scenarios, strict=True))
    )
    interrupts.leaves("interrupted; nothing was written, and nothing is left in the system")
    compared = replace(work.compare(texts, names, wanted, explained=explained), holm=holm)
    interrupts.leaves("interrupted")
    if out is not None:
        given = {
            "--runs": runs,
            "--sim-runs": sim_runs,
            "--seed": None if seed == 1 else seed,
            "--out": out,
        }
        flags = [part for text in margin or [] for part in ("--margin", text)] + ["--explain"] * explained
        flags += ["--holm"] * holm
        report.write(out, compared, terminal.command("compare", *map(str, scenarios), *flags, **given))
    text = report.to_json(compared) if results.in_json else ""
    results.write_json(text)
    results.say(report.text(compared, results.width))
    results.say_where()
    results.write_csv(text)
    if compared.left_out:
        raise typer.Exit(living.INVALID)


class _Work:
    """Makes the runs of one command, all on the same seeds, with progress."""

    def __init__(
        self,
        counts: tuple[int, int, int, int],
        manner: tuple[bool, laboratory.Device],
        places: Mapping[str, Path],
    ) -> None:
        self.seed, self.runs, self.sim_runs, self.jobs = counts
        self.manner = manner
        self.places = places
        self.step: Callable[[], None] = lambda: None
        self.announcement: str | None = None

    def _announced(self, texts: Sequence[str], live: Sequence[int]) -> str:
        """What it will take."""
        seconds = sum(living.seconds(text) * count for text, count in zip(texts, live, strict=True))
        simulated = f"{counted(self.sim_runs, 'simulated run')} of each"
        return f"{counted(sum(live), 'run')} on real packets, {seconds:.0f} s in all; {simulated}"

    def _live_runs(self, texts: Sequence[str], *, explained: bool) -> list[int]:
        from perhop.real_packets import explain

        def ways(text: str) -> int:
            return 1 + sum(one.where == "live" for one, _ in explain.variations(text)) if explained else 1

        return [self.runs * ways(text) for text in texts]

    def compare(
        self, texts: Sequence[str], names: Sequence[str], wanted: Mapping[str, Margin], *, explained: bool
    ) -> report.Compared:
        """All of it."""
        with interrupts.loading():
            from perhop.real_packets import equivalence, explain, report
        live_runs = self._live_runs(texts, explained=explained)
        total = sum(int(living.seconds(text)) * runs for text, runs in zip(texts, live_runs, strict=True))
        self.announcement = self._announced(texts, live_runs)
        with terminal.progress("seconds", total) as self.step:
            live = self._in_turn(texts)
            simulated = [self._simulate(text) for text in texts]
            comparisons = [
                equivalence.Comparison(*pair, wanted) for pair in zip(simulated, live, strict=True)
            ]
            changes: list[list[explain.Change]] = []
            if explained:
                changes = [list(explain.explain(one, self._simulate, self._live)) for one in comparisons]
        return report.Compared(comparisons, names, changes)

    def _in_turn(self, texts: Sequence[str]) -> list[LiveResult]:
        """Every scenario on one seed, then on the next: what else the machine does meets all of them."""
        from perhop.real_packets import laboratory

        made = [[self._live_run(text, self.seed + number) for text in texts] for number in range(self.runs)]
        return [
            laboratory.LiveResult(of[0].scenario, tuple(run for one in of for run in one.runs))
            for of in zip(*made, strict=True)
        ]

    def _live(self, text: str) -> LiveResult:
        return self._in_turn([text])[0]

    def _live_run(self, text: str, seed: int) -> LiveResult:
        from perhop.real_packets import laboratory

        real_time, device = self.manner
        try:
            return laboratory.run(
                json.loads(text),
                seed=seed,
                real_time=real_time,
                device=device,
                watch_s=1.0,
                watch=self._watch,
            )
        except ScenarioError as error:
            # The engine names the key; which file it is in is known here.
            raise PerhopError(f"{self.places.get(text, 'scenario')}: {error}") from None

    def _watch(self, _seed: int, _glimpse: object) -> None:
        """A second has passed; by the first, what cannot be has been refused."""
        if self.announcement is not None:
            terminal.note(self.announcement)
            self.announcement = None
        self.step()

    def _simulate(self, text: str) -> Result:
        from perhop.runs import simulate

        return simulate.run(json.loads(text), runs=self.sim_runs, seed=self.seed, jobs=self.jobs)


def _names(paths: Sequence[Path]) -> list[str]:
    """What to call the scenarios: their files' names, with more of the path where these are the same."""
    names = [path.stem for path in paths]
    return [str(path) for path in paths] if len(set(names)) < len(names) else names
