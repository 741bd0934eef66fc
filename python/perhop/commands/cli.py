"""The command line: `perhop reproduce`, `run`, `live`, `compare`, `sweep`, `tune`, `plan` and others.

Exit status: 0 fine, 1 faults that `store verify` or `check-block` found, differences that `rerun` found or
answers that `course check` found wrong, 2 a request that cannot be met (one line on standard error says why),
3 runs on real packets that are invalid, 130 interrupted by Ctrl-C, 143 by SIGTERM.

Its length is that of the options and the help that users read.
"""

from __future__ import annotations

import difflib
import io
import json
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perhop import _engine
from perhop.commands import live as living
from perhop.commands import sweep as sweeping
from perhop.commands import terminal
from perhop.commands.check_block import check_block
from perhop.commands.compare import compare
from perhop.commands.course import app as course
from perhop.commands.doctor import doctor
from perhop.commands.explore import explore
from perhop.commands.export import export
from perhop.commands.import_ import import_
from perhop.commands.init import init
from perhop.commands.list import app as listing
from perhop.commands.plan import plan
from perhop.commands.replay import replay
from perhop.commands.rerun import rerun
from perhop.commands.store import app as stores
from perhop.commands.topology import topology
from perhop.errors import PerhopError, PerhopWarning, ScenarioError
from perhop.plurals import counted
from perhop.processes import interrupts, memory, scarcity
from perhop.processes.lazy import Lazy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from perhop import studies
    from perhop.blocks import plugins
    from perhop.commands import schemas
    from perhop.files import outputs
    from perhop.runs import (
        budget,
        csv_tables,
        extent,
        over_time,
        parallel,
        recording,
        report_files,
        simulate,
        summary,
    )
    from perhop.scenario import reading
    from perhop.show import table
    from perhop.show.declared import Factors
    from perhop.statistics import judging, multiplicity
    from perhop.stores import outcomes as stored
    from perhop.stores.outcomes import DirectoryStore, RunStore
    from perhop.studies import reproduction, writer
    from perhop.studies.reproduction import Counts, StudyOutcome
    from perhop.studies.study import Study, Verdict
else:
    budget = Lazy("perhop.runs.budget")
    judging = Lazy("perhop.statistics.judging")
    multiplicity = Lazy("perhop.statistics.multiplicity")
    parallel = Lazy("perhop.runs.parallel")
    plugins = Lazy("perhop.blocks.plugins")
    recording = Lazy("perhop.runs.recording")
    reproduction = Lazy("perhop.studies.reproduction")
    schemas = Lazy("perhop.commands.schemas")
    simulate = Lazy("perhop.runs.simulate")
    extent = Lazy("perhop.runs.extent")
    reading = Lazy("perhop.scenario.reading")
    stored = Lazy("perhop.stores.outcomes")
    studies = Lazy("perhop.studies")
    csv_tables = Lazy("perhop.runs.csv_tables")
    outputs = Lazy("perhop.files.outputs")
    over_time = Lazy("perhop.runs.over_time")
    summary = Lazy("perhop.runs.summary")
    table = Lazy("perhop.show.table")
    report_files = Lazy("perhop.runs.report_files")
    writer = Lazy("perhop.studies.writer")

app = typer.Typer(
    name="perhop",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help=(
        "Who gets what at a congested link, and will it stay so when deployed?\n\n"
        "perhop simulates Differentiated Services and active queue management: links, flows, service "
        "profiles and queue rules go in; each flow's throughput against its profile, each class's loss and "
        "delay come out, with 95 % intervals over independent runs.\n\n"
        "Start here:\n\n"
        "\b\n"
        "  perhop reproduce              papers' tables and figures, judged\n"
        "  perhop list studies           which papers' items there are\n"
        "  perhop init                   asks three questions, writes my.toml\n"
        "  perhop import edge.cfg        a router's configuration as a scenario\n"
        "  perhop run my.toml            a scenario of your own\n"
        "  perhop live my.toml           the same scenario on real packets\n"
        "  perhop compare my.toml        both, and whether they agree\n"
        "  perhop replay in.pcap my.toml packets of a capture at the scenario's link\n"
        "  perhop sweep my-sweep.toml    the same over many settings\n"
        "  perhop tune my-tune.toml      the best setting\n"
        "  perhop plan my-plan.toml      what a configuration promises, and bears\n"
        "  perhop course list            labs for a course"
    ),
)
app.add_typer(listing, name="list")
app.add_typer(stores, name="store")
app.add_typer(course, name="course")


@app.callback(invoke_without_command=True)
def root(
    *,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    plugin: Annotated[
        list[str] | None,
        typer.Option(
            "--plugin",
            metavar="MODULE",
            help="Register the blocks of a Python module under their own names; may stand behind a command, "
            "and be repeated.",
        ),
    ] = None,
) -> None:
    """Options of `perhop` itself."""
    # Commands say what there is to be said of a scenario themselves, with the name of its file.
    warnings.simplefilter("ignore", PerhopWarning)
    if version:
        terminal.say(f"perhop {_engine.version}")
        raise typer.Exit
    for module in plugin or ():
        plugins.register(module)
        terminal.always("--plugin", module)


@app.command(short_help="Rerun papers' tables and figures and judge their claims.")
def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="STUDY",
            help="Studies by id (see `perhop list studies`), all of a paper, such as kim, or of a group: "
            "today (the papers' mechanisms beside those of today), workloads (with users of web, video and "
            "calls); "
            "unless given, the printed items of all papers.",
        ),
    ] = None,
    *,
    everything: Annotated[
        bool,
        typer.Option("--all", help="Run sensitivity studies, variants, sweeps and the groups, too."),
    ] = False,
    runs: Annotated[int | None, terminal.runs("Simulated runs of each cell of a study")] = None,
    seed: terminal.Seed = 1,
    jobs: terminal.Jobs = None,
    wide: terminal.Wide = False,
    out: Annotated[
        Path,
        typer.Option(
            "--out", metavar="DIR", parser=terminal.place, help="Where the report, plots and data go."
        ),
    ] = Path("results"),
    json_file: terminal.Json = None,
) -> None:
    """Rerun papers' tables and figures; print published and measured values, and judge each claim.

    Each study's tables, verdicts and plots appear, and are in DIR/report.html, as soon as its own runs are
    done; the headline item of each paper comes first. DIR gets report.html (one file, opens offline), plots/
    (SVG and PNG), samples.parquet, manifest.json, and runs/: every finished run is kept there, so that the
    same command resumes after an interruption. An earlier report in DIR, its plots included, is replaced.
    Without --runs every study takes its default number of runs.

    \b
    Examples:
      perhop reproduce
      perhop reproduce today --out results/today
      perhop reproduce kim-table1 --runs 40 --out results/table1
    """  # noqa: D301
    chosen = _chosen(names, everything=everything)
    most = max(study.default_runs for study in chosen) if runs is None else runs
    first, _ = terminal.seeds(seed, most)
    threads = extent.workers(jobs)
    outputs.claim_directory(out)
    json_path = None if json_file is None else outputs.prepare_file(json_file)
    kept = _store(out)
    planned = reproduction.plan(chosen, runs=runs, seed=first)
    counts = reproduction.Counts()
    given = {"--runs": runs, "--seed": None if seed == 1 else seed, "--out": out}
    command = terminal.command("reproduce", *(names or []), *(["--all"] if everything else []), **given)
    width = terminal.width(wide=wide)
    cells = sum(len(entry) for entry in planned.cells)
    sizes = (counted(len(chosen), "study", "studies"), counted(cells, "cell"))
    terminal.note(f"{', '.join(sizes)}, {counted(len(planned.tasks), 'run')}")
    say = terminal.note if json_path == outputs.STDOUT else terminal.say

    def kept_runs() -> str:
        done = counts.simulated + counts.found + counts.shared
        all_ = counted(len(planned.tasks), "run")
        return f"interrupted: {done} of {all_} are kept in {kept.directory}; the same command resumes"

    interrupts.leaves(kept_runs)

    def show(outcome: StudyOutcome, pictures: Sequence[Path]) -> None:
        _show(outcome, say, width)
        if pictures:
            say("\n" + table.prose(f"plots: {', '.join(map(str, pictures))}", width))

    with writer.ReproductionReport(out, command, planned.studies, threads) as report:
        try:
            outcomes = _reproduced(planned, report, show, jobs=threads, store=kept, counts=counts)
        except BrokenPipeError:
            raise  # the reader of standard output has left, which is no fault of the store
        except OSError as error:
            reason = error.strerror or error
            raise PerhopError(f"{kept.directory}: a run could not be kept: {reason}") from None
        report.finish(outcomes)
    if json_path is not None and json_path != outputs.STDOUT:
        outputs.write(json_path, reproduction.to_json(outcomes))
    if json_path == outputs.STDOUT:
        terminal.out_bytes(reproduction.to_json(outcomes).encode())
    _conclude(outcomes, counts, (out, json_path), say, width)


def _reproduced(
    planned: reproduction.Plan,
    report: writer.ReproductionReport,
    show: Callable[[StudyOutcome, Sequence[Path]], None],
    *,
    jobs: int,
    store: RunStore,
    counts: reproduction.Counts,
) -> list[StudyOutcome]:
    """Do all runs; show each study when its pictures are drawn, while later studies still run."""
    with terminal.progress("runs", len(planned.tasks)) as step:

        def show_drawn(*, wait: bool = False) -> None:
            for outcome, pictures in report.drawn(wait=wait):
                with step.paused():
                    show(outcome, pictures)

        def finished() -> None:
            step()
            show_drawn()

        def waiting(under_way: float) -> None:
            step.waiting(under_way)
            show_drawn()

        outcomes = reproduction.execute(
            planned,
            jobs=jobs,
            store=store,
            counts=counts,
            finished=finished,
            judged=report.draw,
            waiting=waiting,
        )
        show_drawn(wait=True)
        return outcomes


app.command("init", short_help="Ask three questions and write a first scenario.")(init)
app.command("import", short_help="Make a scenario of a router's configuration.")(import_)
app.command("export", short_help="Write a link's queue and meters as a router's configuration.")(export)


@app.command(short_help="Simulate a scenario of your own.")
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
    """  # noqa: D301
    first, least = terminal.seeds(seed, budget.FIRST if runs is None else runs)
    at_once = extent.workers(jobs)
    extent.threads_each(threads, at_once, least)
    checked = reading.read(scenario)
    terminal.warn(checked.notices)
    plot_path = over_time.prepare(plot, reads=[scenario])
    text = checked.text if plot is None else over_time.sampled(checked.text)
    if out is not None:
        outputs.claim_directory(out)
    csv_tables.prepare(csv)
    json_path = None if json_file is None else outputs.prepare_file(json_file, reads=[scenario])
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
    say = terminal.note if json_path == outputs.STDOUT else terminal.say
    if out is not None:
        command = terminal.command(
            "run",
            str(scenario),
            *(word for link in capture_link or () for word in ("--capture-link", link)),
            **{"--runs": len(result.runs), "--seed": None if seed == 1 else seed, "--engine": engine},
            **{"--capture": capture, "--events": events, "--plot": plot, "--out": out},
        )
        report_files.write_run(out, result, shown, command)
    wanted = json_path is not None or csv is not None
    numbers = summary.to_json(result, by_default=runs is None) if wanted else ""
    _write_json(json_path, numbers)
    width = terminal.width(wide=wide)
    say(shown.text(width))
    over_time.show(plot_path, result.runs, shown.title, say, width)
    if records:
        kept = " and ".join(str(path) for path in (capture, events) if path is not None)
        say(f"\npackets of the run with seed {first}: {kept}")
    if out is not None:
        say(f"\nreport: {out / 'report.html'}")
    if csv is not None:
        csv_tables.write(csv, numbers, say, summary.frames_of_runs(result))


def _write_json(path: Path | None, text: str) -> None:
    """Write the results as JSON, if they were asked for."""
    if path == outputs.STDOUT:
        terminal.out_bytes(text.encode())
    elif path is not None:
        outputs.write(path, text)


def _note_threads(text: str, threads: int, engine: str | None) -> None:
    """Say before the runs if they use fewer threads than asked for, and why."""
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
    cancel = _engine.Cancel()
    ((_, reason),) = parallel.parallel_map(
        lambda scenario: _engine.engine_for(scenario, cancel), [text], jobs=1, cancel=cancel
    )
    if reason is not None:
        terminal.note(f"Computed by the reference engine, which is slower: {reason}.")


@app.command(short_help="Print a study's scenario, to change it or to run it on real packets.")
def scenario(
    study: Annotated[str, typer.Argument(metavar="STUDY", help="A study by id (see `perhop list studies`).")],
    factors: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FACTOR=VALUE", help="Selects one of the study's cells, such as out=10/30/0.01."
        ),
    ] = None,
) -> None:
    """Print the scenario of one cell of a study as TOML, defaults filled in.

    \b
    Examples:
      perhop scenario kim-table1 out=10/30/0.01 > ri+o.toml
      perhop live ri+o.toml
    """  # noqa: D301
    found = _study(study)
    wanted = dict(_factor(text) for text in factors or ())
    known = dict.fromkeys(name for cell in found.cells for name in cell)
    unknown = next((name for name in wanted if name not in known), None)
    if unknown is not None:
        raise PerhopError(f"{study} has no factor `{unknown}`; its cells differ by {', '.join(known)}")
    cells = [
        cell for cell in found.cells if all(str(cell.get(name)) == value for name, value in wanted.items())
    ]
    if len(cells) != 1:
        listed = cells or found.cells
        what = (
            f"{len(cells)} cells of {study} match; choose one"
            if cells
            else f"no cell of {study} matches; there are"
        )
        raise PerhopError(f"{what}: {'; '.join(map(_cell, listed))}")
    text = _engine.scenario_to_toml(json.dumps(found.scenario(cells[0])), study)
    terminal.say(f"# {study}: {_cell(cells[0])}\n{text}")


app.command("live", short_help="Run a scenario on real packets, with the kernel's TCP.")(living.live)
app.command("compare", short_help="Compare the simulator with real packets, number by number.")(compare)
app.command("replay", short_help="Replay a capture into a meter, a queue or a link.")(replay)
app.command("topology", short_help="Generate or read a network, describe it, write it as a scenario.")(
    topology
)
app.command("rerun", short_help="Run a report's scenario again and compare every number.")(rerun)
app.command("sweep", short_help="Simulate a scenario over many settings and seeds.")(sweeping.sweep)
app.command("tune", short_help="Search for the best setting, or for the Pareto front.")(sweeping.tune)
app.command("plan", short_help="Judge promises, and how far each demand can grow.")(plan)


app.command("check-block", short_help="Check a block of your own, a class in Python.")(check_block)


app.command("explore", short_help="Watch a scenario run in the browser, and change it.")(explore)


app.command("doctor", short_help="Say which parts work on this machine, and why others do not.")(doctor)


@app.command(short_help="Print the JSON Schema of scenarios, sweeps, searches or plans.")
def schema(
    kind: Annotated[
        str, typer.Argument(metavar="[scenario|sweep|tune|plan]", help="The kind of file.")
    ] = "scenario",
) -> None:
    """Print the JSON Schema of a kind of file, for editors and checkers."""
    terminal.say(schemas.text(kind))


def main() -> None:
    """Run the command line and exit with its status."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that lacks a sign shows a question mark
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr.reconfigure(errors="backslashreplace")
    warnings.showwarning = _warn  # type: ignore[assignment] # takes what is asked and more
    try:
        sys.exit(_status())
    except KeyboardInterrupt:
        outputs.remove_unused()
        terminal.note(interrupts.left())
        sys.exit(interrupts.status())
    except BrokenPipeError:
        # The reader closed the pipe (`| head`): it needs no more output.
        terminal.abandon_stdout()
        sys.exit(1)
    except Exception as error:
        outputs.remove_unused()
        if not _told(error):
            raise
        sys.exit(2)


def _status() -> int:
    """Run the command; its exit status.

    Raises:
        KeyboardInterrupt: Ctrl-C or SIGTERM ended it.
    """
    with interrupts.translated():
        status: int = app(_plugins_first(sys.argv[1:]), prog_name="perhop", standalone_mode=False)
    if status == interrupts.EXIT:  # what Typer makes of a KeyboardInterrupt
        raise KeyboardInterrupt
    return status


def _plugins_first(words: Sequence[str]) -> list[str]:
    """The words of a command line, with `--plugin MODULE` before the command: it applies to every command."""
    first: list[str] = []
    rest: list[str] = []
    left = iter(words)
    for word in left:
        if word == "--":
            rest += [word, *left]
        elif word == "--plugin":
            first += [word, *(module for module in (next(left, None),) if module is not None)]
        elif word.startswith("--plugin="):
            first.append(word)
        else:
            rest.append(word)
    return [*first, *rest]


def _warn(message: Warning | str, *_place: object) -> None:
    """Other projects' warnings may quote what a file says."""
    terminal.note(f"warning: {message}")


UsageError: type[typer.BadParameter] = next(
    one for one in typer.BadParameter.__mro__ if one.__name__ == "UsageError"
)
"""What typer raises of options and arguments; it has this from another package in some of its versions."""


def _told(error: Exception) -> bool:
    """Say what is wrong; False if it is no fault of the user or the system."""
    match error:
        case PerhopError() | ScenarioError():
            terminal.fail(error)
        case UsageError():
            text = io.StringIO()
            error.show(text)
            terminal.note(text.getvalue().rstrip("\n"))
        case scarcity.ScarceMemoryError():
            terminal.fail(f"out of memory: {error}")
        case MemoryError():
            more = "give the command fewer --jobs, or a smaller scenario"
            terminal.fail(f"out of memory: {error}; {more}" if str(error) else f"out of memory; {more}")
        case _ if scarcity.is_cause(error):
            terminal.fail(f"out of memory: {error}; raise the limit (ulimit -v)")
        case OSError():
            # Help texts are written by typer; everything else has said what it could not read or write.
            terminal.abandon_stdout()
            terminal.fail(error.strerror or error)
        case _:
            return False
    return True


def _chosen(names: Sequence[str] | None, *, everything: bool) -> list[Study]:
    """The studies to run, in the order in which to run them."""
    if names and everything:
        raise PerhopError("--all has no effect beside named studies; leave one of them out")
    if names:
        named = [study for name in names for study in _studies(name)]
        return studies.in_order({study.id: study for study in named}.values())
    return studies.in_order(study for study in studies.STUDIES.values() if everything or not study.extra)


def _factor(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise PerhopError(f"`{text}` is no FACTOR=VALUE, such as scheme=rio")
    return name, value


def _cell(cell: Factors) -> str:
    """A cell as it is named on the command line."""
    return " ".join(
        f"'{name}={value}'" if " " in str(value) else f"{name}={value}" for name, value in cell.items()
    )


def _studies(name: str) -> Sequence[Study]:
    """The study of this name, the printed items of a paper of this name, or all of a group of questions."""
    for group in studies.QUESTIONS:
        if group.id == name:
            return group.studies
    for paper in studies.PAPERS:
        if paper.id == name:
            return [study for study in paper.studies if not study.extra]
    return [_study(name)]


def _study(name: str) -> Study:
    if name in studies.STUDIES:
        return studies.STUDIES[name]
    raise PerhopError(f"no study `{name}`; {_hint(name)}")


def _hint(name: str) -> str:
    """What somebody may have meant who names no study."""
    if name.endswith(".toml") or Path(name).is_file():
        return f"to simulate a scenario file, use `perhop run {name}`"
    for paper in studies.PAPERS:
        if paper.id == name.lower():
            return f"`{paper.id}` is a paper; its studies are {', '.join(one.id for one in paper.studies)}"
    for group in studies.QUESTIONS:
        if group.id == name.lower():
            return f"`{group.id}` is a group; its studies are {', '.join(one.id for one in group.studies)}"
    papers = {paper.id: paper for paper in studies.PAPERS}
    near = difflib.get_close_matches(name.lower(), [*studies.STUDIES, *papers], n=1, cutoff=0.6)
    if near and near[0] in papers:
        listed = ", ".join(study.id for study in papers[near[0]].studies)
        return f"did you mean `{near[0]}`? The studies of that paper are {listed}"
    listed = f"there are {', '.join(studies.STUDIES)} (`perhop list studies` says what each shows)"
    return f"did you mean `{near[0]}`? (`perhop list studies`)" if near else listed


def _store(out: Path) -> DirectoryStore:
    try:
        return stored.DirectoryStore(out / "runs", terminal.note)
    except OSError as error:
        raise PerhopError(
            f"--out {out}: {out / 'runs'} cannot be opened: {error.strerror or error}"
        ) from None


def _show(outcome: StudyOutcome, say: Callable[[str], None], width: int | None) -> None:
    """A study's tables, notes and claims as text."""
    study = outcome.study
    say("\n" + table.prose(f"{study.id}: {study.title}", width) + "\n" + table.prose(study.source, width))
    for shown in study.tables:
        grid = table.pivot(shown, outcome.rows)
        if grid is not None:
            say("\n" + table.as_text(grid, width))
    if len(outcome.seeds) == 1:
        say("\n1 run: no interval.")
    elif study.single_run:
        say(
            "\n"
            + table.prose("↓ ↑ The published single run is lower or higher than every run of ours.", width)
        )
    _show_remarks(outcome, say, width)
    for title, verdicts in (
        ("Predictions" if any(one.claim.why for one in outcome.claims) else "Claims", outcome.claims),
        ("Findings of ours, not the paper's", outcome.findings),
    ):
        if verdicts:
            say(f"\n{title}")
        for verdict in verdicts:
            _show_verdict(verdict, say, width)


def _show_remarks(outcome: StudyOutcome, say: Callable[[str], None], width: int | None) -> None:
    """How far the study's tables are from what is printed, and which printed numbers cannot be right."""
    for distance in outcome.distances:
        say("\n" + table.prose(f"Distance to the {distance.text}.", width))
    for note in outcome.study.notes:
        if note.impossible:
            say("\n" + table.prose(f"Cannot be right: {note.text}", width))


def _show_verdict(verdict: Verdict, say: Callable[[str], None], width: int | None) -> None:
    state = verdict.state if verdict.claim.counted else f"{verdict.state} (not counted)"
    say(table.prose(f"{state}: {verdict.claim.text}", width, "  ", "    "))
    say(table.prose(verdict.judgement.evidence, width, "    "))
    if verdict.others:
        say(table.prose(verdict.by_others, width, "    "))
    if verdict.claim.chose:
        say(table.prose(f"Used to choose {verdict.claim.chose}.", width, "    "))
    if verdict.claim.why:
        say(table.prose(f"Expected because: {verdict.claim.why}", width, "    "))


def _conclude(
    outcomes: Sequence[StudyOutcome],
    counts: Counts,
    written: tuple[Path, Path | None],
    say: Callable[[str], None],
    width: int | None,
) -> None:
    """One line for each paper, what was left out, and where everything is: the report, and JSON."""
    out, json_path = written
    say("")
    groups = reproduction.by_paper(outcomes)
    any_left = any(group.not_counted for group in groups)
    lines = [
        {
            "": group.title,
            **{state: str(group.count(holds)) for holds, state in judging.STATES.items()},
            **({"not counted": str(group.not_counted)} if any_left else {}),
            "not run": str(group.not_run),
        }
        for group in groups
    ]
    for line in table.records(lines, width):
        say(line)
    if text := multiplicity.family(sum(len(outcome.counted) for outcome in outcomes), "claims"):
        say("\n" + table.prose(text, width))
    for holds in (False, None):
        found = {
            outcome.study.id: [verdict.claim.id for verdict in outcome.counted if verdict.holds is holds]
            for outcome in outcomes
        }
        if any(found.values()):
            say(f"\n{judging.STATES[holds]}")
        for study, claims in found.items():
            if claims:
                say(table.prose(f"{study}: {', '.join(claims)}", width, "  ", "    "))
    left = [study.id for study in studies.STUDIES.values() if study.extra and study.id not in _ids(outcomes)]
    if left and len(outcomes) > 1:
        say(
            "\n"
            + table.prose(f"Not run: {', '.join(left)}. `perhop reproduce --all` runs these, too.", width)
        )
    say("\n" + _counted(counts, out))
    if json_path is not None and json_path != outputs.STDOUT:
        say(f"results: {json_path}")
    say(f"report: {out / 'report.html'}")


def _ids(outcomes: Sequence[StudyOutcome]) -> set[str]:
    return {outcome.study.id for outcome in outcomes}


def _counted(counts: Counts, out: Path) -> str:
    """What the runs cost."""
    text = f"{counted(counts.simulated, 'run')} simulated"
    text += f", {counts.shared} shared between studies" if counts.shared else ""
    return text + (f", {counts.found} reused from {out / 'runs'}" if counts.found else "")
