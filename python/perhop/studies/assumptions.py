"""A map of assumptions: every claim of a paper, judged under each value of what the paper leaves open.

A paper's studies rest on one stated setting. Its map runs them again under other settings, with fewer runs,
and says of each claim where it holds: everywhere, somewhere or nowhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from perhop.measures.run import Run
from perhop.show.declared import Axis, Factors, Plot, Row, Table
from perhop.statistics.judging import Judgement
from perhop.studies.evidence import Evidence, Sample, UnmeasuredError
from perhop.studies.paper import Statement
from perhop.studies.study import Study

STATE_VALUES = {True: 1.0, False: 0.0, None: 0.5}
"""The state of a claim as a number of a row."""
RUNS = 4
STATED = "as stated"


@dataclass(frozen=True, slots=True)
class Place:
    """One setting of a map.

    Attributes:
        assumption: What differs from the stated setting, such as "Receiver's window"; or, of a grid, what
            its places have in common, such as "3.2 Mbit/s".
        value: Its value there, such as "64 packets".
        studies: The paper's studies as they are there.
    """

    assumption: str
    value: str
    studies: Sequence[Study]

    @property
    def name(self) -> str:
        """The name of the place, unique in its map."""
        return f"{self.assumption}: {self.value}" if self.value else self.assumption


def everywhere(
    assumption: str,
    value: str,
    studies: Sequence[Study],
    change: Callable[[Mapping[str, Any]], Mapping[str, Any]],
) -> Place:
    """A place at which the scenarios of all these studies are changed alike.

    Args:
        assumption: See `Place`.
        value: See `Place`.
        studies: The studies.
        change: Makes of a scenario, as plain data, the one that is run; it leaves its argument as it is.
    """

    def changed(study: Study) -> Study:
        return replace(study, scenario=lambda cell: change(study.scenario(cell)))

    return Place(assumption, value, [changed(study) for study in studies])


def map_of(
    paper: str,
    title: str,
    source: str,
    *,
    stated: Sequence[Study],
    places: Sequence[Place],
    statement: Statement,
    runs: int = RUNS,
) -> Study:
    """The map of a paper's assumptions, as a study.

    Args:
        paper: The paper's id, such as "kim"; the map is `kim-map`.
        title: What the report calls it.
        source: The paper's item, or what of it.
        stated: The studies whose claims are judged, in their stated setting, which is the map's first place.
        places: The other places, those of one assumption beside each other.
        statement: The map's own method, assumptions and notes; it has no claims.
        runs: Runs of each cell.
    """
    made = _Map(paper, [Place(STATED, "", stated), *places])
    columns = Axis("place", "Assumption", {place.name: place.value for place in made.places})
    lines = Axis("claim", "Claim", dict(made.labels()))
    return Study(
        id=f"{paper}-map",
        title=title,
        source=source,
        summary=f"every claim under {len(made.places)} settings",
        cells=list(made.cells()),
        scenario=made.scenario,
        samples=made.samples,
        published=(),
        claims=(),
        tables=(
            Table(
                "In how many settings each claim holds, does not hold, or is open",
                {"holds_at": "holds", "fails_at": "does not hold", "open_at": "cannot tell"},
                lines,
                digits=0,
            ),
        ),
        plots=(
            Plot(
                id="states",
                title="Where each claim holds",
                kind="states",
                metric="state",
                x=columns,
                series=lines,
                y_label="",
                groups={place.name: place.assumption for place in made.places},
            ),
        ),
        notes=statement.notes,
        assumptions=statement.assumptions,
        method=statement.method,
        summaries=made.summaries,
        extra=True,
        is_map=True,
        default_runs=runs,
    )


@dataclass(frozen=True, slots=True)
class _Map:
    paper: str
    places: Sequence[Place]

    def __post_init__(self) -> None:
        twice = [name for name, count in Counter(place.name for place in self.places).items() if count > 1]
        if twice:
            raise ValueError(f"{self.paper}-map has two places of one name: {twice[0]}")

    def judged(self, study: Study) -> Iterator[tuple[str, Callable[[Evidence], Judgement]]]:
        """The lines of a study's claims on sentences of the paper, each reading of one by itself.

        Together the readings would be open wherever they differ. A star marks claims that are not counted.
        """
        for claim in study.claims:
            if claim.finding:
                continue
            mark = "" if claim.counted else "*"
            name = f"{study.id.removeprefix(self.paper + '-')}: {claim.id}{mark}"
            if not claim.readings:
                yield name, claim.judge
            for one in claim.readings:
                yield f"{name} ({one.name})", one.judge

    @property
    def lines(self) -> Sequence[str]:
        """The names of all lines."""
        return [name for study in self.places[0].studies for name, _ in self.judged(study)]

    def labels(self) -> Iterator[tuple[str, str]]:
        """Yield each line with its label: from a claim's second reading on, the reading alone."""
        before = ""
        for name in self.lines:
            claim, _, reading = name.partition(" (")
            yield name, f"or ({reading}" if claim == before else name
            before = claim

    def cells(self) -> Iterator[dict[str, Any]]:
        for place in self.places:
            for study in place.studies:
                for cell in study.cells:
                    yield {"place": place.name, "of_study": study.id, **cell}

    def scenario(self, factors: Factors) -> Mapping[str, Any]:
        study, own = self.found(factors)
        return study.scenario(own)

    def samples(self, factors: Factors, run: Run) -> Iterator[Sample]:
        study, own = self.found(factors)
        where = {"place": factors["place"], "of_study": factors["of_study"]}
        for sample in study.samples(own, run):
            yield replace(sample, factors={**where, **sample.factors})

    def found(self, factors: Factors) -> tuple[Study, Factors]:
        """The study of a cell, and the cell's factors within it."""
        place = next(place for place in self.places if place.name == factors["place"])
        study = next(study for study in place.studies if study.id == factors["of_study"])
        return study, {name: value for name, value in factors.items() if name not in ("place", "of_study")}

    def summaries(self, evidence: Evidence) -> Iterator[Row]:
        """The state of every claim at every place, and at how many places it is in each state."""
        counts = {name: Counter[float]() for name in self.lines}
        for place in self.places:
            for study in place.studies:
                here = evidence.within({"place": place.name, "of_study": study.id}, study.published)
                for name, judge in self.judged(study):
                    value = _state(judge, here)
                    if value is not None:
                        counts[name][value] += 1
                    factors = {"claim": name, "place": place.name}
                    yield Row(factors, "state", "", None, value, None, evidence.runs)
        for name, count in counts.items():
            for metric, value in (("holds_at", 1.0), ("fails_at", 0.0), ("open_at", 0.5)):
                yield Row({"claim": name}, metric, "settings", None, float(count[value]), None, evidence.runs)


def _state(judge: Callable[[Evidence], Judgement], evidence: Evidence) -> float | None:
    """The state of a claim as a number; None where what it speaks of does not occur."""
    try:
        return STATE_VALUES[judge(evidence).holds]
    except UnmeasuredError:
        return None


@dataclass(frozen=True, slots=True)
class Hang:
    """The assumptions that change the verdict on one claim.

    Attributes:
        claim: The claim, or one reading of it, by the name of its study and its own.
        holds: At how many places it holds.
        fails: At how many it does not.
        open: At how many the runs cannot tell.
        on: The assumptions whose values change it: from holds to does not hold, or back, against the stated
            setting; where that leaves it open, against most of the places.
    """

    claim: str
    holds: int
    fails: int
    open: int
    on: Sequence[str]

    @property
    def where(self) -> str:
        """The extent of a claim: everywhere, somewhere or nowhere, or that most places are undecided."""
        if self.holds + self.fails + self.open == 1:
            return "as stated only"
        if self.holds + self.fails < self.open:
            return "mostly open"
        return "somewhere" if self.holds and self.fails else "everywhere" if self.holds else "nowhere"


def hangs(study: Study, rows: Sequence[Row]) -> Sequence[Hang]:
    """Return the assumptions that change each verdict, from the rows of a map."""
    groups = study.plots[0].groups
    states: dict[str, dict[str, float]] = {}
    for row in rows:
        if row.metric == "state" and row.mean is not None:
            states.setdefault(str(row.factors["claim"]), {})[str(row.factors["place"])] = row.mean
    found = []
    for claim, by_place in states.items():
        values = Counter(by_place.values())
        usual = by_place.get(STATED, 0.5)
        if usual == 0.5:
            usual = float(values[1.0] >= values[0.0])
        on = (groups[place] for place, value in by_place.items() if value == 1.0 - usual)
        found.append(Hang(claim, values[1.0], values[0.0], values[0.5], list(dict.fromkeys(on))))
    return found
