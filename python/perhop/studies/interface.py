"""`perhop.reproduce`: papers' tables and figures from Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from perhop.runs import extent
from perhop.stores.outcomes import DirectoryStore
from perhop.studies import reproduction
from perhop.studies.reproduction import StudyOutcome
from perhop.studies.selection import chosen


@dataclass(frozen=True, slots=True)
class Reproduction:
    """Studies that were run and judged.

    Attributes:
        outcomes: One for each study: its rows (published beside measured), and the verdicts on its claims.
    """

    outcomes: Sequence[StudyOutcome]

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

    def json(self) -> str:
        """Return what `perhop reproduce --json` writes."""
        return reproduction.to_json(self.outcomes)


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

    Raises:
        PerhopError: There is no such study, or an argument is out of range.
    """
    planned = reproduction.plan(chosen(names, everything=everything), runs=runs, seed=seed)
    kept = None if store is None else DirectoryStore(Path(store), lambda _: None)
    outcomes = reproduction.execute(
        planned, jobs=extent.workers(jobs), store=kept, counts=reproduction.Counts()
    )
    return Reproduction(outcomes)
