"""`perhop reproduce`: papers' tables and figures, run again and judged."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perhop.commands import terminal
from perhop.commands.context import Results
from perhop.errors import PerhopError
from perhop.files import outputs
from perhop.plurals import counted
from perhop.processes import interrupts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from perhop.stores.outcomes import DirectoryStore
    from perhop.studies import reproduction, writer
    from perhop.studies.reproduction import Counts, StudyOutcome
    from perhop.studies.study import Verdict


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
    """
    with interrupts.loading():
        from perhop.runs import extent
        from perhop.show import table
        from perhop.studies import reproduction, writer
        from perhop.studies.selection import chosen
    wanted = chosen(names or (), everything=everything)
    most = max(study.default_runs for study in wanted) if runs is None else runs
    first, _ = terminal.seeds(seed, most)
    threads = extent.workers(jobs)
    results = Results(out=out, json_file=json_file, wide=wide)
    kept = _store(out)
    planned = reproduction.plan(wanted, runs=runs, seed=first)
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
        _show(outcome, results.say, results.width)
        if pictures:
            results.say("\n" + table.prose(f"plots: {', '.join(map(str, pictures))}", results.width))

    with writer.ReproductionReport(out, command, planned.studies, threads) as report:
        try:
            outcomes = _reproduced(planned, report, show, jobs=threads, store=kept, counts=counts)
        except BrokenPipeError:
            raise  # the reader of standard output has left, which is no fault of the store
        except OSError as error:
            reason = error.strerror or error
            raise PerhopError(f"{kept.directory}: a run could not be kept: {reason}") from None
        report.finish(outcomes)
    if results.json_path is not None:
        results.write_json(reproduction.to_json(outcomes))
    _conclude(outcomes, counts, results)


def _reproduced(
    planned: reproduction.Plan,
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


def _show(outcome: StudyOutcome, say: Callable[[str], None], width: int | None) -> None:
    """A study's tables, notes and claims as text."""
    from perhop.show import table

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
    from perhop.show import table

    for distance in outcome.distances:
        say("\n" + table.prose(f"Distance to the {distance.text}.", width))
    for note in outcome.study.notes:
        if note.impossible:
            say("\n" + table.prose(f"Cannot be right: {note.text}", width))


def _show_verdict(verdict: Verdict, say: Callable[[str], None], width: int | None) -> None:
    from perhop.show import table

    state = verdict.state if verdict.claim.counted else f"{verdict.state} (not counted)"
    say(table.prose(f"{state}: {verdict.claim.text}", width, "  ", "    "))
    say(table.prose(verdict.judgement.evidence, width, "    "))
    if verdict.others:
        say(table.prose(verdict.by_others, width, "    "))
    if verdict.claim.chose:
        say(table.prose(f"Used to choose {verdict.claim.chose}.", width, "    "))
    if verdict.claim.why:
        say(table.prose(f"Expected because: {verdict.claim.why}", width, "    "))


def _conclude(outcomes: Sequence[StudyOutcome], counts: Counts, results: Results) -> None:
    """Print a line for each paper, what was left out, and where everything is: the report, and JSON."""
    from perhop import studies
    from perhop.show import table
    from perhop.statistics import judging, multiplicity
    from perhop.studies import reproduction

    say, width, out = results.say, results.width, results.out
    assert out is not None
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
    if results.json_path is not None and results.json_path != outputs.STDOUT:
        say(f"results: {results.json_path}")
    results.say_where("")


def _ids(outcomes: Sequence[StudyOutcome]) -> set[str]:
    return {outcome.study.id for outcome in outcomes}


def _counted(counts: Counts, out: Path) -> str:
    """What the runs cost."""
    text = f"{counted(counts.simulated, 'run')} simulated"
    text += f", {counts.shared} shared between studies" if counts.shared else ""
    return text + (f", {counts.found} reused from {out / 'runs'}" if counts.found else "")
