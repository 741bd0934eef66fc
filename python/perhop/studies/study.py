"""A study: cells to simulate, samples to take, published values to compare with, claims to judge.

A study is data and small functions; it neither runs anything nor draws anything.
`perhop.studies.reproduction` runs it, and `perhop.show` shows it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, overload

from perhop.measures.run import Run
from perhop.show.declared import Factors, Plot, Row, Table
from perhop.statistics.intervals import MOST_RUNS
from perhop.statistics.judging import STATES, Judgement, by_readings
from perhop.studies.evidence import Evidence, Published, Sample


@dataclass(frozen=True, slots=True)
class Sentence:
    """A few words of a paper, verbatim, and where they stand in it, such as `"3, Table 1"`."""

    quote: str
    section: str


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read a sentence, or another rule for it: what it says, and what judges it so.

    Attributes:
        name: It, in a few words, such as "delay control alone".
        rule: How it is judged.
        judge: Judges it.
    """

    name: str
    rule: str
    judge: Callable[[Evidence], Judgement]


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement that the measurement can refute.

    Attributes:
        id: Its name within the study.
        text: The statement, in one sentence of ours.
        judge: Judges it; one with readings holds if all of them do.
        source: The paper's sentence that it judges; None for a finding of ours, which never counts with the
            paper's.
        rule: How it is judged.
        ours: What in the rule is ours, such as a threshold or a tolerance; empty where nothing is.
        tried: What was varied to find out why the claim does not hold; empty where nothing was.
        why: Why one would expect it, where it is a prediction: a statement written before the runs, of a
            study that belongs to no paper.
        readings: The ways to read its sentence, where there are several that the text allows alike.
        others: Rules that do not decide, such as one with another tolerance.
        chose: What it was used to choose of a study's setting; such a claim does not count.
    """

    id: str
    text: str
    judge: Callable[[Evidence], Judgement]
    source: Sentence | None = None
    rule: str = ""
    ours: str = ""
    tried: str = ""
    why: str = ""
    readings: Sequence[Reading] = ()
    others: Sequence[Reading] = ()
    chose: str = ""

    @property
    def finding(self) -> bool:
        """Whether the claim is ours beside a paper's: neither a sentence of the paper nor a prediction."""
        return self.source is None and not self.why

    @property
    def counted(self) -> bool:
        """Whether the claim chose no setting, so that its verdict says something of the paper."""
        return not self.chose

    @property
    def rules(self) -> str:
        """The rule of the claim, or that of each of its readings."""
        if not self.readings:
            return self.rule
        return " ".join(f"Read as “{one.name}”: {one.rule}" for one in self.readings)

    def verdict(self, evidence: Evidence) -> ClaimVerdict:
        """The verdict on the claim by all of its readings and rules."""
        readings = {one.name: one.judge(evidence) for one in self.readings}
        others = {one.name: one.judge(evidence) for one in self.others}
        return ClaimVerdict(
            self, by_readings(readings) if readings else self.judge(evidence), readings, others
        )


@dataclass(frozen=True, slots=True)
class ClaimVerdict:
    """A judged claim.

    Attributes:
        readings: The judgement of each reading of the sentence, by its name.
        others: The same of each rule that does not decide.
    """

    claim: Claim
    judgement: Judgement
    readings: Mapping[str, Judgement] = field(default_factory=dict)
    others: Mapping[str, Judgement] = field(default_factory=dict)

    @property
    def holds(self) -> bool | None:
        """True, False, or None where the runs cannot tell."""
        return self.judgement.holds

    @property
    def state(self) -> str:
        """The verdict in words, with an estimate of the runs needed if there is one."""
        if self.holds is not None:
            return STATES[self.holds]
        if self.judgement.differ:
            return f"{STATES[None]} (readings differ)"
        needed = self.judgement.runs_needed
        return (
            f"{STATES[None]} (needs more than {MOST_RUNS} runs)"
            if needed is None
            else f"{STATES[None]} (needs about {needed} runs)"
        )

    @property
    def by_others(self) -> str:
        """The verdicts of the rules that do not decide, such as "By other rules: within a tenth: holds."."""
        if not self.others:
            return ""
        said = "; ".join(f"{name}: {STATES[one.holds]}" for name, one in self.others.items())
        return f"By other rules: {said}."


@dataclass(frozen=True, slots=True)
class Note:
    """A remark on the paper's text; `impossible` marks a printed number that cannot be right."""

    text: str
    impossible: bool = False


T = TypeVar("T")


class Later(Sequence[T]):
    """A sequence that is made when somebody first looks into it.

    A map of assumptions has the claims of its paper at many places, and most commands run no map.
    """

    def __init__(self, make: Callable[[], Sequence[T]]) -> None:
        """The sequence that a function makes, which is called once or never."""
        self._made = functools.cache(make)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        return self._made()[index]

    def __len__(self) -> int:
        return len(self._made())


@dataclass(frozen=True, slots=True)
class Study:
    """One table or figure of a paper, or one question about today's mechanisms.

    Attributes:
        id: First author and item, such as `kim-table1`, or group and item.
        title: What the study is about, in a few words, as reports and `perhop list studies` head it.
        source: The paper and its item, or who asks the question.
        summary: The network and what is varied, in one line.
        cells: One mapping of factors for each scenario to simulate.
        scenario: Returns the scenario of a cell as plain data.
        samples: Yields the numbers to keep of one run of a cell.
        published: The printed values that measured ones are compared with; empty for a question of ours.
        claims: The statements that the runs judge.
        tables: The tables of the report.
        plots: The plots of the report.
        notes: Remarks on the paper's text, such as a printed number that cannot be right.
        assumptions: Choices of ours where the paper is silent.
        method: The simulated setting, in a few sentences.
        summaries: Yields rows that are computed from the means of all runs; None without such rows.
        extra: Whether the study is no printed item of the paper but a sensitivity study, a variant or a
            sweep, which `perhop reproduce` runs only by name or with `--all`.
        is_map: Whether it judges the paper's claims under other assumptions (`perhop.studies.assumptions`).
        single_run: Whether the published values come from one run: they are then compared with the spread of
            single runs, not only with the interval of the mean.
        default_runs: Runs of each cell unless `--runs` says otherwise.
    """

    id: str
    title: str
    source: str
    summary: str
    cells: Sequence[Factors]
    scenario: Callable[[Factors], Mapping[str, Any]]
    samples: Callable[[Factors, Run], Iterable[Sample]]
    published: Sequence[Published]
    claims: Sequence[Claim]
    tables: Sequence[Table]
    plots: Sequence[Plot]
    notes: Sequence[Note] = ()
    assumptions: Sequence[str] = ()
    method: str = ""
    summaries: Callable[[Evidence], Iterable[Row]] | None = None
    extra: bool = False
    is_map: bool = False
    single_run: bool = False
    default_runs: int = 6
