"""What a paper says, read from the `published.toml` beside its studies."""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from perhop.study import Claim, Sentence, Statement, one_line, statement

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from perhop.judging import Judgement
    from perhop.study import Evidence, Wording


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


def claims(
    wordings: Mapping[str, Wording], judges: Mapping[str, Callable[[Evidence], Judgement]]
) -> Sequence[Claim]:
    """The words of claims joined with the functions that judge them.

    Raises:
        ValueError: A claim has no judge, or a judge no claim.
    """
    if wordings.keys() != judges.keys():
        raise ValueError(f"claims without words or judge: {sorted(wordings.keys() ^ judges.keys())}")
    return [
        Claim(name, found.text, judges[name], found.source, found.rule, found.ours, found.tried, found.why)
        for name, found in wordings.items()
    ]
