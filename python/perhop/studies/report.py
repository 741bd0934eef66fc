"""The report of `perhop reproduce`: tables, remarks and claims of each study, and a count of all."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from perhop.show.report import Grid, Items, Part, Records, Report, Text
from perhop.show.table import pivot
from perhop.statistics.judging import STATES
from perhop.statistics.multiplicity import family
from perhop.studies.reproduction import StudyOutcome, by_paper
from perhop.studies.study import ClaimVerdict


def study_report(outcome: StudyOutcome) -> Report:
    """The report of one study for a terminal."""
    study = outcome.study
    return Report(f"{study.id}: {study.title}", [study.source], list(_parts(outcome)))


def _parts(outcome: StudyOutcome) -> Iterator[Part]:
    study = outcome.study
    grids = (pivot(table, outcome.rows) for table in study.tables)
    yield from (Grid(grid) for grid in grids if grid is not None)
    if len(outcome.seeds) == 1:
        yield Text(["1 run: no interval."])
    elif study.single_run:
        yield Text(["↓ ↑ The published single run is lower or higher than every run of ours."])
    yield from (Text([f"Distance to the {distance.text}."]) for distance in outcome.distances)
    yield from (Text([f"Cannot be right: {note.text}"]) for note in study.notes if note.impossible)
    claims = "Predictions" if any(one.claim.why for one in outcome.claims) else "Claims"
    yield Items(claims, [_sentences(one) for one in outcome.claims])
    yield Items("Findings of ours, not the paper's", [_sentences(one) for one in outcome.findings])


def _sentences(verdict: ClaimVerdict) -> list[str]:
    """A claim with its state, then the evidence and what else decides."""
    claim = verdict.claim
    state = verdict.state if claim.counted else f"{verdict.state} (not counted)"
    more = [
        verdict.judgement.evidence,
        verdict.by_others if verdict.others else "",
        f"Used to choose {claim.chose}." if claim.chose else "",
        f"Expected because: {claim.why}" if claim.why else "",
    ]
    return [f"{state}: {claim.text}", *filter(None, more)]


def conclusion(outcomes: Sequence[StudyOutcome], extra: Collection[str], cost: str) -> Report:
    """One line for each paper, the claims that do not hold or are left open, and what was not run.

    Args:
        outcomes: Of all studies that were run.
        extra: The ids of the studies that run with `--all` alone.
        cost: What the runs cost, in a sentence.
    """
    groups = by_paper(outcomes)
    any_left = any(group.not_counted for group in groups)
    lines = [
        {
            "": group.title,
            **{state: str(group.count(holds)) for holds, state in STATES.items()},
            **({"not counted": str(group.not_counted)} if any_left else {}),
            "not run": str(group.not_run),
        }
        for group in groups
    ]
    run = {outcome.study.id for outcome in outcomes}
    left = [name for name in extra if name not in run] if len(outcomes) > 1 else []
    several = family(sum(len(outcome.counted) for outcome in outcomes), "claims")
    return Report(
        "",
        [],
        [
            Records("", lines),
            Text([several] if several else []),
            *(Items(STATES[holds], list(_ids_of(outcomes, holds))) for holds in (False, None)),
            Text([f"Not run: {', '.join(left)}. `perhop reproduce --all` runs these, too."] if left else []),
            Text([cost]),
        ],
    )


def _ids_of(outcomes: Sequence[StudyOutcome], holds: bool | None) -> Iterator[list[str]]:
    """The claims of each study that are in this state."""
    for outcome in outcomes:
        if claims := [verdict.claim.id for verdict in outcome.counted if verdict.holds is holds]:
            yield [f"{outcome.study.id}: {', '.join(claims)}"]
