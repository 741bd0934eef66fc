"""`perhop.reproduce`: papers' tables and figures from Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import polars as pl

from perhop.files import arguments, outputs
from perhop.plurals import counted
from perhop.runs import extent
from perhop.show.report import Report
from perhop.show.written import Written, command_line
from perhop.statistics.judging import STATES
from perhop.stores.outcomes import DirectoryStore
from perhop.studies import STUDIES, reproduction
from perhop.studies.report import conclusion, study_report
from perhop.studies.reproduction import Counts, StudyOutcome
from perhop.studies.selection import chosen


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Reproduction(Written):
    """Studies that were run and judged: tables of papers run again, with a verdict on each claim.

    Attributes:
        outcomes: One for each study: `rows`, published beside measured, and `verdicts` on its claims.
        counts: How many runs were simulated, shared between studies, and found in the store.
        store: The folder in which runs are kept; None without one.
    """

    COMMAND: ClassVar = "perhop reproduce"
    TABLE: ClassVar = "studies-claims"
    outcomes: Sequence[StudyOutcome]
    counts: Counts = field(default_factory=Counts)
    store: Path | None = None
    command: str = ""

    def claims(self) -> pl.DataFrame:
        """Return one row for each claim: `study`, `claim`, `state`, `text` and `evidence`."""
        columns = ("study", "claim", "state", "text", "evidence")
        rows = [
            (outcome.study.id, one.claim.id, one.state, one.claim.text, one.judgement.evidence)
            for outcome in self.outcomes
            for one in (*outcome.claims, *outcome.findings)
        ]
        return pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String), orient="row")

    def samples(self) -> pl.DataFrame:
        """Return every number of every run, in long form: `study`, `seed`, its factors, `metric`, `value`."""
        return reproduction.sample_frame(self.outcomes)

    def _reports(self, width: int | None) -> list[Report]:  # noqa: ARG002 - the same for any width
        return [*map(study_report, self.outcomes), self.conclusion()]

    def conclusion(self) -> Report:
        """Return what came of all claims, what was not run, and what the runs cost."""
        extra = [study.id for study in STUDIES.values() if study.extra]
        return conclusion(self.outcomes, extra, self.counts.text(self.store))

    def json(self) -> str:
        """Return what `perhop reproduce --json` writes."""
        return reproduction.to_json(self.outcomes)

    def _write(self, place: Path, command: str, jobs: int) -> None:
        from perhop.studies.writer import ReproductionReport  # noqa: PLC0415 - pictures load matplotlib

        studies = [outcome.study for outcome in self.outcomes]
        with ReproductionReport(place, command, studies, jobs) as report:
            for outcome in self.outcomes:
                report.draw(outcome)
            for _ in report.drawn(wait=True):
                pass  # it writes the page with each study
            report.finish(self.outcomes)

    def _outline(self) -> str:
        states = Counter(verdict.holds for one in self.outcomes for verdict in one.counted)
        claims = counted(sum(states.values()), "claim")
        said = ", ".join(f"{states[holds]} {state}" for holds, state in STATES.items() if states[holds])
        return f"{counted(len(self.outcomes), 'study', 'studies')}: {claims}: {said}"


def reproduce(
    *names: str,
    everything: bool = False,
    runs: int | None = None,
    seed: int = 1,
    jobs: int | None = None,
    store: Path | str | None = None,
) -> Reproduction:
    """Rerun papers' tables and figures, and judge their claims.

    Args:
        names: Studies (`kim-table1`), papers (`kim`) or groups (`today`); without names, the printed items of
            all papers. `perhop list studies` has all.
        everything: Sensitivity studies, variants, sweeps and groups, too.
        runs: Of each cell of a study; each study's own number if not given.
        seed: The first seed.
        jobs: Threads; all cores if not given. Results are the same for any number.
        store: A folder in which finished runs are kept, and from which they are taken; the `runs` folder of
            `perhop reproduce --out` is one.

    Returns:
        `outcomes`, one for each study. `claims()` has a row for each claim, `samples()` every number of every
        run; `text()`, `json()`, `frame()` and `write()` give what the command prints and writes.

    Raises:
        PerhopError: There is no such study, or an argument is out of range.
    """
    extent.given(runs, seed)
    planned = reproduction.plan(
        chosen(arguments.texts("names", names), everything=everything), runs=runs, seed=seed
    )
    place = None if store is None else outputs.prepare_directory(arguments.path("store", store), "store")
    kept = None if place is None else DirectoryStore(place, lambda _: None)
    counts = Counts()
    outcomes = reproduction.execute(planned, jobs=extent.workers(jobs), store=kept, counts=counts)
    given = {"--runs": runs, "--seed": None if seed == 1 else seed}
    command = command_line("reproduce", *names, *["--all"] * everything, **given)
    return Reproduction(outcomes, counts, place, command)
