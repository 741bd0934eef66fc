"""A paper's numbers and claims, read from the `published.toml` beside its studies."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypedDict

from perhop.measures.run import Run
from perhop.show.declared import Factors, Plot, Row, Table
from perhop.statistics.judging import Judgement
from perhop.studies.evidence import Evidence, Published, Sample
from perhop.studies.judges import Judge, Judges, readings_together
from perhop.studies.study import Claim, Note, Reading, Sentence, Study

if TYPE_CHECKING:
    from typing import Unpack


@dataclass(frozen=True, slots=True)
class Statement:
    """The values, claims and notes of one item of a paper.

    Attributes:
        claims: What its claims say, by id; they have no judge yet.
    """

    values: Sequence[Published]
    notes: Sequence[Note]
    claims: Mapping[str, Claim]
    assumptions: Sequence[str]
    method: str


@dataclass(frozen=True, slots=True)
class Unjudged:
    """A sentence of a paper that no claim judges, and why not."""

    sentence: Sentence
    why: str


@dataclass(frozen=True, slots=True)
class About:
    """Remarks for readers of a paper, from the table `[paper]` and the tables `[[unjudged]]`.

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


class _Own(TypedDict):
    """The fields of a `Study` that its module gives."""

    title: str
    source: str
    summary: str
    cells: Sequence[Factors]
    scenario: Callable[[Factors], Mapping[str, Any]]
    samples: Callable[[Factors, Run], Iterable[Sample]]
    tables: Sequence[Table]
    plots: Sequence[Plot]


class Own(_Own, total=False):
    """The fields of a `Study` that its module gives, with those that have a default."""

    published: Sequence[Published]
    summaries: Callable[[Evidence], Iterable[Row]] | None
    extra: bool
    single_run: bool
    default_runs: int


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
        """Return the remarks for readers of the paper."""
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

    @functools.cache  # noqa: B019 - a paper is a constant
    def item(self, name: str) -> Statement:
        """Return the statement of one item ("table1", …), with the assumptions of all items in front."""
        data = self._data()
        own = data[name]
        method = " ".join(part for part in (data.get("method", ""), own.get("method", "")) if part)
        assumptions = [*data.get("assumptions", []), *own.get("assumptions", [])]
        return statement({**own, "method": method, "assumptions": assumptions})

    def study(self, item: str, *, judges: Mapping[str, Judge | Judges], **own: Unpack[Own]) -> Study:
        """The study of one item, with what the file says of it.

        Its id is the package's name and the item's, such as `hurley-fig2`. The file gives the published
        values, the words of claims, the notes, the method and the assumptions.

        Args:
            item: The item.
            judges: What judges each claim, by its id; see `claims`.
            own: The other fields of `Study`.
        """
        said = self.item(item)
        own.setdefault("published", said.values)
        return Study(
            id=f"{self.package.rpartition('.')[2]}-{item}",
            claims=claims(said.claims, judges),
            notes=said.notes,
            assumptions=said.assumptions,
            method=said.method,
            **own,
        )

    def _data(self) -> dict[str, Any]:
        return _read(self.package, self.file)


@functools.cache
def _read(package: str, file: str) -> dict[str, Any]:
    """The content of a file of claims; nobody changes it."""
    return tomllib.loads(files(package).joinpath(file).read_text(encoding="utf-8"))


def claims(wordings: Mapping[str, Claim], judges: Mapping[str, Judge | Judges]) -> Sequence[Claim]:
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
    return [_claim(found, judges[name]) for name, found in wordings.items()]


def _claim(words: Claim, judge: Judge | Judges) -> Claim:
    judged = {"": judge} if callable(judge) else judge
    rules = [*([] if words.readings else [""]), *(one.name for one in (*words.readings, *words.others))]
    if judged.keys() != set(rules):
        raise ValueError(f"{words.id}: rules without words or judge: {sorted(judged.keys() ^ set(rules))}")
    readings, others = (
        [replace(one, judge=judged[one.name]) for one in found] for found in (words.readings, words.others)
    )
    own = readings_together({one.name: one.judge for one in readings}) if readings else judged[""]
    return replace(words, judge=own, readings=readings, others=others)


def statement(data: Mapping[str, Any]) -> Statement:
    """Read the published values, notes and claim texts of one item from its TOML table.

    `[[values]]` tables hold one printed row each: `metric`, `factors` shared by the row, and `by`, `at`,
    `values`: the name of one more factor, its values, and the printed number at each; `misprint` lists those
    of its values whose number cannot be right. Or, for one number, `metric`, `factors` and `value`.
    `[[notes]]` hold `text` and, for a printed number that cannot be right, `impossible = true`.
    `[claims.ID]` hold `text` and, as far as they apply, `quote` and `section` (together), `rule`, `ours`,
    `tried`, `why`, `chose`, and `readings` (in place of `rule`) and `others`, lists of `name` and `rule`.
    `assumptions` lists what was chosen where the paper is silent; `method` says how it was simulated.

    Raises:
        KeyError, ValueError: The table is not of this form.
    """
    values = [
        Published(
            {**row.get("factors", {}), **more},
            row["metric"],
            float(value),
            misprint=bool(more) and more[row["by"]] in row.get("misprint", []),
        )
        for row in data.get("values", [])
        for more, value in _printed(row)
    ]
    notes = [Note(one_line(n["text"]), bool(n.get("impossible", False))) for n in data.get("notes", [])]
    claims = {name: _words(name, entry) for name, entry in data.get("claims", {}).items()}
    assumptions = [one_line(text) for text in data.get("assumptions", [])]
    return Statement(values, notes, claims, assumptions, one_line(data["method"]))


_WORDS = ("rule", "ours", "tried", "why", "chose")
_RULES = ("readings", "others")


def _words(name: str, entry: Mapping[str, Any]) -> Claim:
    """A claim that nothing judges yet."""
    unknown = entry.keys() - {"quote", "section", "text", *_WORDS, *_RULES}
    if unknown:
        raise ValueError(f"a claim has no {min(unknown)!r}")
    if "readings" in entry and ("rule" in entry or len(entry["readings"]) < 2):
        raise ValueError("a claim has one `rule`, or two `readings` or more")
    source = Sentence(one_line(entry["quote"]), entry["section"]) if "quote" in entry else None
    words = {key: one_line(entry.get(key, "")) for key in _WORDS}
    readings, others = (
        [Reading(one["name"], one_line(one["rule"]), _unjudged) for one in entry.get(key, [])]
        for key in _RULES
    )
    text = one_line(entry["text"])
    return Claim(name, text, _unjudged, source, **words, readings=readings, others=others)


def _unjudged(_: Evidence) -> Judgement:
    raise NotImplementedError("a claim is judged by what `claims` joins with its words")


def _printed(row: Mapping[str, Any]) -> Iterable[tuple[Factors, float]]:
    """The numbers of one `[[values]]` table, each with the factor that identifies it."""
    if "value" in row:
        return [({}, row["value"])]
    return [({row["by"]: at}, value) for at, value in zip(row["at"], row["values"], strict=True)]


def one_line(text: str) -> str:
    """A text of several lines as one."""
    return " ".join(text.split())
