"""`perhop reproduce`: papers' tables and figures, run again and judged."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perhop.commands import options, terminal
from perhop.commands.context import Results, put
from perhop.errors import PerhopError
from perhop.files import outputs
from perhop.plurals import counted
from perhop.processes import interrupts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from perhop.stores.outcomes import DirectoryStore
    from perhop.studies import reproduction, writer
    from perhop.studies.reproduction import StudyOutcome


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
        bool, options.flag("--all", "Run sensitivity studies, variants, sweeps and the groups, too.")
    ] = False,
    runs: Annotated[int | None, options.runs("Simulated runs of each cell of a study")] = None,
    seed: options.Seed = 1,
    jobs: options.Jobs = None,
    wide: options.Wide = False,
    out: Annotated[Path, options.output("--out", "DIR", "Where the report, plots and data go.")] = Path(
        "results"
    ),
    json_file: options.Json = None,
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
    """
    with interrupts.loading():
        from perhop.runs import extent
        from perhop.studies.selection import chosen
    wanted = chosen(names or (), everything=everything)
    most = max(study.default_runs for study in wanted) if runs is None else runs
    extent.seeds(seed, most)
    threads = extent.workers(jobs)
    results = Results(out=out, json_file=json_file, wide=wide)
    with interrupts.deferred():
        from perhop.show import table  # behind all that may be refused: pictures load matplotlib
        from perhop.show.kept import KeptPictures
        from perhop.show.report import as_text
        from perhop.studies import reproduction, writer
        from perhop.studies.interface import Reproduction
        from perhop.studies.report import study_report
    kept = _store(out)
    planned = reproduction.plan(wanted, runs=runs, seed=seed)
    counts = reproduction.Counts()
    given = {"--runs": runs, "--seed": None if seed == 1 else seed, "--out": out}
    command = terminal.command("reproduce", *(names or []), *(["--all"] if everything else []), **given)
    cells = sum(len(entry) for entry in planned.cells)
    sizes = (counted(len(wanted), "study", "studies"), counted(cells, "cell"))
    terminal.note(f"{', '.join(sizes)}, {counted(len(planned.tasks), 'run')}")

    def kept_runs() -> str:
        done = counts.simulated + counts.found + counts.shared
        all_ = counted(len(planned.tasks), "run")
        return f"interrupted: {done} of {all_} are kept in {kept.directory}; the same command resumes"

    interrupts.leaves(kept_runs)

    def show(outcome: StudyOutcome, pictures: Sequence[Path]) -> None:
        results.say("\n" + as_text(study_report(outcome), results.width))
        if pictures:
            results.say("\n" + table.prose(f"plots: {', '.join(map(str, pictures))}", results.width))

    pictures = KeptPictures(kept.pictures)
    with writer.ReproductionReport(out, command, planned.studies, threads, pictures) as report:
        try:
            outcomes = _reproduced(planned, report, show, jobs=threads, store=kept, counts=counts)
        except BrokenPipeError:
            raise  # the reader of standard output has left, which is no fault of the store
        except OSError as error:
            reason = error.strerror or error
            raise PerhopError(f"{kept.directory}: a run could not be kept: {reason}") from None
        report.finish(outcomes)
    done = Reproduction(outcomes, counts, out / "runs")
    if results.json_path is not None:
        put(results.json_path, done.json())
    results.say("\n" + as_text(done.conclusion(), results.width))
    if results.json_path is not None and results.json_path != outputs.STDOUT:
        results.say(f"results: {results.json_path}")
    results.say_where("")


def _reproduced(
    planned: reproduction.RunPlan,
    report: writer.ReproductionReport,
    show: Callable[[StudyOutcome, Sequence[Path]], None],
    *,
    jobs: int,
    store: DirectoryStore,
    counts: reproduction.Counts,
) -> list[StudyOutcome]:
    """Do all runs; show each study when its pictures are drawn, while later studies still run."""
    from perhop.studies import reproduction

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


def _store(out: Path) -> DirectoryStore:
    from perhop.stores import outcomes as stored

    try:
        return stored.DirectoryStore(out / "runs", terminal.note)
    except OSError as error:
        raise PerhopError(
            f"--out {out}: {out / 'runs'} cannot be opened: {error.strerror or error}"
        ) from None
