"""What a paper says, read from the `published.toml` beside its studies."""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypeAlias

from perhop.statistics.judging import by_readings
from perhop.studies.statement import Statement, one_line, statement
from perhop.studies.study import Claim, Reading, Sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from perhop.statistics.judging import Judgement
    from perhop.studies.evidence import Evidence
    from perhop.studies.statement import Wording


@dataclass(frozen=True, slots=True)
class Unjudged:
    """A sentence of a paper that no claim judges, and why not."""

    sentence: Sentence
    why: str


@dataclass(frozen=True, slots=True)
class About:
    """What a reader should know of a paper; from the table `[paper]` and the tables `[[unjudged]]`.

    Attributes:
        authors: As in a citation, such as "Kim, Park and Bahk".
        title: The paper's title.
        mechanism: What it proposes, in a few words.
        proposes: The same in a paragraph: which problem it sees, and how its mechanism works.
        decides: What decides its outcome in a simulation, in one or two sentences.
        know: Three or four things that a reader should know.
        unjudged: Its testable sentences that no claim judges.
    """

    authors: str
    title: str
    mechanism: str
    proposes: str
    decides: str
    know: Sequence[str]
    unjudged: Sequence[Unjudged]


@dataclass(frozen=True, slots=True)
class Paper:
    """One paper's `published.toml`.

    It holds what a reader should know, `method` and `assumptions` for all of it, and a table for each item.

    Attributes:
        package: The package that holds the file, such as `perhop.studies.hurley`.
        file: The file.
    """

    package: str
    file: str = "published.toml"

    def about(self) -> About:
        """What a reader should know of the paper."""
        data = self._data()
        paper = data["paper"]
        return About(
            authors=paper["authors"],
            title=paper["title"],
            mechanism=paper["mechanism"],
            proposes=one_line(paper["proposes"]),
            decides=one_line(paper["decides"]),
            know=[one_line(text) for text in paper["know"]],
            unjudged=[
                Unjudged(Sentence(one_line(entry["quote"]), entry["section"]), one_line(entry["why"]))
                for entry in data.get("unjudged", [])
            ],
        )

    def item(self, name: str) -> Statement:
        """What the file says about one item ("table1", …), with what holds for all of them in front."""
        data = self._data()
        own = data[name]
        method = " ".join(part for part in (data.get("method", ""), own.get("method", "")) if part)
        assumptions = [*data.get("assumptions", []), *own.get("assumptions", [])]
        return statement({**own, "method": method, "assumptions": assumptions})

    def _data(self) -> dict[str, Any]:
        return _read(self.package, self.file)


@functools.cache
def _read(package: str, file: str) -> dict[str, Any]:
    """The content of a file of claims; nobody changes it."""
    return tomllib.loads(files(package).joinpath(file).read_text(encoding="utf-8"))


Judges: TypeAlias = "Mapping[str, Callable[[Evidence], Judgement]]"
"""What judges the readings and rules of a claim, by their names; "" names its own rule."""


def claims(
    wordings: Mapping[str, Wording], judges: Mapping[str, Callable[[Evidence], Judgement] | Judges]
) -> Sequence[Claim]:
    """The words of claims joined with the functions that judge them.

    Args:
        wordings: The words, by the claims' ids.
        judges: By the same ids: a function; or, for a claim with readings or other rules, one for each of
            these by its name, and one for the rule that decides, if there is one, by the name "".

    Raises:
        ValueError: A claim, a reading or a rule has no judge, or a judge none of these.
    """
    if wordings.keys() != judges.keys():
        raise ValueError(f"claims without words or judge: {sorted(wordings.keys() ^ judges.keys())}")
    return [_claim(name, found, judges[name]) for name, found in wordings.items()]


def _claim(name: str, found: Wording, judge: Callable[[Evidence], Judgement] | Judges) -> Claim:
    judged = {"": judge} if callable(judge) else judge
    named = {*({} if found.readings else {""}), *found.readings, *found.others}
    if named != judged.keys():
        raise ValueError(f"{name}: rules without words or judge: {sorted(named ^ judged.keys())}")
    readings, others = (
        [Reading(one, rule, judged[one]) for one, rule in rules.items()]
        for rules in (found.readings, found.others)
    )
    return Claim(
        name,
        found.text,
        _by_readings(readings) if readings else judged[""],
        found.source,
        found.rule,
        found.ours,
        found.tried,
        found.why,
        readings,
        others,
        found.chose,
    )


def _by_readings(readings: Sequence[Reading]) -> Callable[[Evidence], Judgement]:
    return lambda evidence: by_readings({one.name: one.judge(evidence) for one in readings})
