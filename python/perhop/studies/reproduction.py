"""Run studies: cells times seeds on all cores, then rows and judged claims."""

from __future__ import annotations

import contextlib
import json
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from perhop import _engine
from perhop.measures.run import Run
from perhop.plurals import counted
from perhop.processes import memory
from perhop.runs import extent
from perhop.runs.parallel import parallel_map
from perhop.scenario.warmup import from_the_beginning
from perhop.show.declared import Factors, Row
from perhop.show.numbers import rounded
from perhop.statistics.judging import STATES, Judgement
from perhop.stores.outcomes import DirectoryStore, run_key
from perhop.studies import GROUPS, PaperStudies, Questions, group_of, selection
from perhop.studies.evidence import Evidence, Sample
from perhop.studies.kept import Judged, KeptStudies
from perhop.studies.study import ClaimVerdict, Reading, Study


@dataclass(frozen=True, slots=True)
class Cell:
    """One scenario of a study, checked and canonical."""

    factors: Factors
    scenario: str


@dataclass(frozen=True, slots=True)
class Task:
    """One run to do."""

    study: int
    cell: int
    seed: int


@dataclass(frozen=True, slots=True)
class RunPlan:
    """All runs of the chosen studies."""

    studies: Sequence[Study]
    cells: Sequence[Sequence[Cell]]
    seeds: Sequence[Sequence[int]]
    tasks: Sequence[Task]


TABLE = 5
"""The fewest printed numbers of one measure that count as a table."""


@dataclass(frozen=True, slots=True)
class Distance:
    """The distance of our means from a table of printed numbers.

    Attributes:
        count: How many numbers are printed, those left out that cannot be right.
        rms: The root-mean-square difference.
        largest: The largest difference.
    """

    metric: str
    unit: str
    count: int
    rms: float
    largest: float

    @property
    def text(self) -> str:
        """The distance in words."""
        name = self.metric.replace("_", " ")
        return (
            f"{self.count} printed values of {name}: root-mean-square difference {self.rms:.3f} "
            f"{self.unit}, largest {self.largest:.2f}"
        )


@dataclass(frozen=True, slots=True)
class StudyOutcome:
    """The samples, tables and verdicts of a study.

    Attributes:
        samples: (seed, sample) of every run, ordered by cell, then seed; of each sample the value with its
            name and unit, without what only judging needs.
    """

    study: Study
    cells: Sequence[Cell]
    seeds: Sequence[int]
    samples: Sequence[tuple[int, Sample]]
    rows: Sequence[Row]
    verdicts: Sequence[ClaimVerdict]

    def __reduce__(self) -> tuple[Callable[..., StudyOutcome], tuple[Any, ...]]:
        """Pickle the study and its claims by their names: judges are functions, which do not pickle."""
        return _restored, (self.study.id, self.cells, self.seeds, *self.judged)

    @property
    def judged(self) -> Judged:
        """The part that runs decide, with claims by their names."""
        verdicts = [(one.claim.id, one.judgement, one.readings, one.others) for one in self.verdicts]
        return self.samples, self.rows, verdicts

    @property
    def claims(self) -> Sequence[ClaimVerdict]:
        """The verdicts on sentences of the paper, or on predictions."""
        return [verdict for verdict in self.verdicts if not verdict.claim.finding]

    @property
    def counted(self) -> Sequence[ClaimVerdict]:
        """The verdicts on claims that were not used to choose a setting."""
        return [verdict for verdict in self.claims if verdict.claim.counted]

    @property
    def findings(self) -> Sequence[ClaimVerdict]:
        """The verdicts on statements of ours."""
        return [verdict for verdict in self.verdicts if verdict.claim.finding]

    @property
    def distances(self) -> Sequence[Distance]:
        """Return how far what was measured is from the tables that the paper prints."""
        apart: dict[tuple[str, str], list[float]] = {}
        for row in self.rows:
            if row.published is None or row.mean is None or row.ci95 is None or row.derived or row.misprint:
                continue
            apart.setdefault((row.metric, row.unit), []).append(row.mean - row.published)
        return [
            Distance(
                *name, len(found), math.sqrt(sum(d * d for d in found) / len(found)), max(map(abs, found))
            )
            for name, found in apart.items()
            if len(found) >= TABLE
        ]


def _restored(name: str, cells: Sequence[Cell], seeds: Sequence[int], *judged: Any) -> StudyOutcome:  # noqa: ANN401
    """The outcome of a study of this name, of what `StudyOutcome.judged` gave."""
    study = selection.study(name)
    samples, rows, verdicts = judged
    claims = {claim.id: claim for claim in study.claims}
    found = [ClaimVerdict(claims[claim], *verdict) for claim, *verdict in verdicts]
    return StudyOutcome(study, cells, seeds, samples, rows, found)


@dataclass(frozen=True, slots=True)
class PaperOutcome:
    """The outcomes of one paper's studies; `paper` is None for studies that belong to none."""

    paper: PaperStudies | None
    outcomes: Sequence[StudyOutcome]

    @property
    def title(self) -> str:
        """The paper's authors, or what else the studies are about."""
        if self.paper:
            return self.paper.about.authors
        group = group_of(self.outcomes[0].study.id)
        return group.title if isinstance(group, Questions) else "Other studies"

    @property
    def not_run(self) -> int:
        """Return how many claims of the paper belong to studies that were not run."""
        if self.paper is None:
            return 0
        done = {outcome.study.id for outcome in self.outcomes}
        left = (study for study in self.paper.studies if study.id not in done)
        return sum(not claim.finding and claim.counted for study in left for claim in study.claims)

    def count(self, holds: bool | None) -> int:
        """Return how many claims of the paper are in this state, those left out that chose a setting."""
        return sum(verdict.holds is holds for outcome in self.outcomes for verdict in outcome.counted)

    @property
    def not_counted(self) -> int:
        """Return how many claims were used to choose a setting, so that their verdicts do not count."""
        return sum(len(outcome.claims) - len(outcome.counted) for outcome in self.outcomes)

    @property
    def map(self) -> StudyOutcome | None:
        """The map of the paper's assumptions, if it was run."""
        return next((outcome for outcome in self.outcomes if outcome.study.is_map), None)


def by_paper(outcomes: Sequence[StudyOutcome]) -> list[PaperOutcome]:
    """The outcomes paper by paper, in the papers' order and each paper's order of studies; then the rest.

    Groups of questions follow in their order, and last what belongs to no group.
    """
    groups = []
    for group in (*GROUPS, None):
        mine = [outcome for outcome in outcomes if group_of(outcome.study.id) is group]
        if isinstance(group, PaperStudies):
            order = [study.id for study in group.studies]
            mine.sort(key=lambda one: order.index(one.study.id))
        if mine:
            groups.append(PaperOutcome(group if isinstance(group, PaperStudies) else None, mine))
    return groups


@dataclass(slots=True)
class Counts:
    """Numbers of runs: simulated, found from an earlier command, or shared with another cell."""

    simulated: int = 0
    found: int = 0
    shared: int = 0

    def text(self, store: Path | None) -> str:
        """The cost in words; reused runs are those of the store."""
        text = f"{counted(self.simulated, 'run')} simulated"
        text += f", {self.shared} shared between studies" if self.shared else ""
        return text + (f", {self.found} reused from {store}" if self.found else "")


def plan(studies: Sequence[Study], *, runs: int | None, seed: int) -> RunPlan:
    """Build and check every scenario, and list the runs to do.

    Args:
        studies: The studies, each with at least one cell.
        runs: Runs of each cell; each study's own default if None.
        seed: First seed; all cells share the seeds.

    Raises:
        ScenarioError: A study describes a network that cannot be.
    """

    def checked(study: Study, factors: Factors) -> Cell:
        text = json.dumps(study.scenario(factors))
        # A paper says what it leaves out: a study that says nothing counts from the beginning.
        return Cell(factors, from_the_beginning(_engine.scenario_from_json(text, f"study {study.id}")))

    cells = [[checked(study, factors) for factors in study.cells] for study in studies]
    seeds = [extent.seeds(seed, study.default_runs if runs is None else runs) for study in studies]
    tasks = [
        Task(index, cell, number)
        for index in range(len(studies))
        for cell in range(len(cells[index]))
        for number in seeds[index]
    ]
    return RunPlan(studies, cells, seeds, tasks)


def execute(
    planned: RunPlan,
    *,
    jobs: int,
    store: DirectoryStore | None,
    counts: Counts,
    finished: Callable[[], None] | None = None,
    judged: Callable[[StudyOutcome], None] | None = None,
    waiting: Callable[[float], None] | None = None,
) -> list[StudyOutcome]:
    """Do every run that the store does not hold yet, and judge each study as soon as its runs are done.

    The outcome is the same for any number of threads, and whether runs were computed or found.

    Args:
        planned: What to do.
        jobs: Threads.
        store: Where finished runs are kept, each as soon as it is finished.
        counts: Is counted up while the runs finish.
        finished: Called on the calling thread after each run.
        judged: Called on the calling thread with each study's outcome, in the order of the studies,
            while later ones still run.
        waiting: Called on the calling thread many times a second with what is under way, in whole runs.

    Raises:
        OSError: The store cannot be written to.
        KeyboardInterrupt: Ctrl-C; what had finished is in the store.
    """
    cancel = _engine.Cancel(memory.share(jobs))
    work = _Work(planned, store, counts, cancel)
    gathering = _Gathering(planned, store, finished, judged)
    tasks = gathering.without_kept(counts)
    try:
        parallel_map(work, tasks, jobs=jobs, cancel=cancel, finished=gathering, waiting=waiting)
    except BaseException:
        with contextlib.suppress(OSError):
            _sync(store)
        raise
    _sync(store)
    return [gathering.outcomes[index] for index in range(len(planned.studies))]


def _sync(store: DirectoryStore | None) -> None:
    if store is not None:
        store.sync()


class _Work:
    """The samples of one task, from the store where it holds the run, else from a simulation."""

    def __init__(
        self, planned: RunPlan, store: DirectoryStore | None, counts: Counts, cancel: _engine.Cancel
    ) -> None:
        self._planned, self._store, self._counts, self._cancel = planned, store, counts, cancel
        self._lock = threading.Lock()
        self._ours: set[str] = set()

    def __call__(self, task: Task) -> list[Sample]:
        scenario = self._planned.cells[task.study][task.cell].scenario
        key = run_key(scenario, task.seed)
        found = None if self._store is None else self._found(task, key, self._store)
        if found is not None:
            return found
        raw = _engine.simulate(scenario, task.seed, self._cancel)
        if self._store is not None:
            self._store.save(key, raw)
        with self._lock:
            self._counts.simulated += 1
            self._ours.add(key)
        return self._sample(task, raw)

    def _found(self, task: Task, key: str, store: DirectoryStore) -> list[Sample] | None:
        raw = store.load(key)
        if raw is None:
            return None
        try:
            samples = self._sample(task, raw)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError):
            store.reject(key)
            return None
        with self._lock:
            self._counts.shared += key in self._ours
            self._counts.found += key not in self._ours
        return samples

    def _sample(self, task: Task, raw: Mapping[str, Any]) -> list[Sample]:
        factors = self._planned.cells[task.study][task.cell].factors
        return list(self._planned.studies[task.study].samples(factors, Run(task.seed, raw)))


class _Gathering:
    """Samples by study; judges a study when those of its last run come in. Reports them in order."""

    def __init__(
        self,
        planned: RunPlan,
        store: DirectoryStore | None,
        finished: Callable[[], None] | None,
        judged: Callable[[StudyOutcome], None] | None,
    ) -> None:
        self._planned, self._store, self._finished, self._judged = planned, store, finished, judged
        self._kept = None if store is None else KeptStudies(store.studies)
        self._tasks = planned.tasks
        self._samples: list[dict[int, list[Sample]]] = [{} for _ in planned.studies]
        self.outcomes: dict[int, StudyOutcome] = {}
        self._told = 0

    def without_kept(self, counts: Counts) -> Sequence[Task]:
        """The tasks of studies that these runs have not judged before; the others are reported at once."""
        planned = self._planned
        for index, study in enumerate(planned.studies):
            runs = self._runs(index)
            found = None if self._kept is None or runs is None else self._kept.find(study.id, runs)
            if found is None:
                continue
            self._tell(index, _restored(study.id, planned.cells[index], planned.seeds[index], *found))
            for _ in runs or ():
                counts.found += 1
                if self._finished is not None:
                    self._finished()
        self._tasks = [task for task in planned.tasks if task.study not in self.outcomes]
        return self._tasks

    def __call__(self, place: int, samples: list[Sample]) -> None:
        planned = self._planned
        index = self._tasks[place].study
        mine = self._samples[index]
        mine[place] = samples
        if self._finished is not None:
            self._finished()
        if len(mine) < len(planned.cells[index]) * len(planned.seeds[index]):
            return
        listed = [(self._tasks[place].seed, one) for place in sorted(mine) for one in mine[place]]
        outcome = judge(planned.studies[index], planned.cells[index], planned.seeds[index], listed)
        if self._kept is not None and (runs := self._runs(index)) is not None:
            self._kept.keep(outcome.study.id, runs, outcome.judged)
        self._tell(index, outcome)

    def _tell(self, index: int, outcome: StudyOutcome) -> None:
        self.outcomes[index] = outcome
        while self._judged is not None and self._told in self.outcomes:
            self._judged(self.outcomes[self._told])
            self._told += 1

    def _runs(self, index: int) -> Sequence[bytes] | None:
        """The digests of a study's runs; None if the store lacks one, or if the study is not perhop's own."""
        study = self._planned.studies[index]
        if self._store is None or not any(study is one for group in GROUPS for one in group.studies):
            return None
        cells, seeds = self._planned.cells[index], self._planned.seeds[index]
        found = [self._store.digest(run_key(cell.scenario, seed)) for cell in cells for seed in seeds]
        return None if None in found else [one for one in found if one is not None]


def judge(
    study: Study, cells: Sequence[Cell], seeds: Sequence[int], samples: Sequence[tuple[int, Sample]]
) -> StudyOutcome:
    """Rows and verdicts of one study from the samples of its runs."""
    evidence = Evidence(samples, study.published)
    rows = evidence.rows(spread=study.single_run)
    if study.summaries is not None:
        rows.extend(study.summaries(evidence))
    verdicts = [claim.verdict(evidence) for claim in study.claims]
    values = [(seed, Sample(one.factors, one.metric, one.unit, one.value)) for seed, one in samples]
    return StudyOutcome(study, cells, seeds, values, rows, verdicts)


def to_json(outcomes: Sequence[StudyOutcome]) -> str:
    """The results as JSON text, byte for byte the same for the same studies, seeds and engine."""
    studies = [
        {
            "id": outcome.study.id,
            "rows": [_row(row) for row in outcome.rows],
            "claims": [_claim(verdict) for verdict in outcome.verdicts],
        }
        for outcome in outcomes
    ]
    papers = [_paper(group) for group in by_paper(outcomes) if group.paper]
    data = {"papers": papers, "studies": studies}
    return json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _paper(group: PaperOutcome) -> dict[str, Any]:
    """The totals of a paper's claims that were run."""
    return {
        "id": group.paper.id if group.paper else "",
        **{state.replace(" ", "_"): group.count(holds) for holds, state in STATES.items()},
        "not_counted": group.not_counted,
        "not_run": group.not_run,
    }


def sample_frame(outcomes: Sequence[StudyOutcome]) -> pl.DataFrame:
    """All samples in long form.

    Columns: `study`, `seed`, every factor of any of the studies (null where a study has no such factor),
    `metric`, `unit`, `value`.
    """
    factors = sorted({name for o in outcomes for _, sample in o.samples for name in sample.factors})
    names = ("study", "seed", *factors, "metric", "unit", "value")
    columns: dict[str, list[object]] = {name: [] for name in names}
    for outcome in outcomes:
        samples = [sample for _, sample in outcome.samples]
        own = {name for sample in samples for name in sample.factors}
        columns["study"] += [outcome.study.id] * len(samples)
        columns["seed"] += [seed for seed, _ in outcome.samples]
        for name in factors:
            columns[name] += (
                [sample.factors.get(name) for sample in samples] if name in own else [None] * len(samples)
            )
        columns["metric"] += [sample.metric for sample in samples]
        columns["unit"] += [sample.unit for sample in samples]
        columns["value"] += [None if math.isnan(sample.value) else sample.value for sample in samples]
    types = dict.fromkeys(("study", "metric", "unit"), pl.String) | {"seed": pl.UInt64, "value": pl.Float64}
    return pl.DataFrame(
        {name: pl.Series(values, dtype=types.get(name), strict=False) for name, values in columns.items()}
    )


def _claim(verdict: ClaimVerdict) -> dict[str, Any]:
    claim, source = verdict.claim, verdict.claim.source
    return {
        "id": claim.id,
        "text": claim.text,
        **({"why": claim.why} if claim.why else {}),
        "quote": None if source is None else source.quote,
        "section": None if source is None else source.section,
        "rule": claim.rule,
        "ours": claim.ours,
        "counted": claim.counted,
        **({"chose": claim.chose} if claim.chose else {}),
        **_judged(verdict.judgement),
        **_rules("readings", claim.readings, verdict.readings),
        **_rules("other_rules", claim.others, verdict.others),
    }


def _judged(judgement: Judgement) -> dict[str, Any]:
    return {"holds": judgement.holds, "runs_needed": judgement.runs_needed, "evidence": judgement.evidence}


def _rules(key: str, rules: Sequence[Reading], found: Mapping[str, Judgement]) -> dict[str, Any]:
    """The judgement by each of several rules; nothing where there are none."""
    listed = [{"name": one.name, "rule": one.rule, **_judged(found[one.name])} for one in rules]
    return {key: listed} if listed else {}


def _row(row: Row) -> dict[str, Any]:
    return {
        **row.factors,
        "metric": row.metric,
        "unit": row.unit,
        "published": None if row.published is None else rounded(row.published),
        "mean": None if row.mean is None else rounded(row.mean),
        "ci95": None if row.ci95 is None else [None if math.isinf(end) else rounded(end) for end in row.ci95],
        "runs": row.runs,
        **({} if row.spread is None else {"range": [rounded(end) for end in row.spread]}),
    }
