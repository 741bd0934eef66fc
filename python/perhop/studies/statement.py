"""A paper's item: published values, claims and notes, read from TOML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perhop.show.declared import Factors
from perhop.studies.evidence import Published
from perhop.studies.study import Note, Sentence


@dataclass(frozen=True, slots=True)
class Wording:
    """The words of a claim; see `Claim`.

    Attributes:
        readings: The rule of each reading, by its name.
        others: The same of the rules that do not decide.
    """

    text: str
    source: Sentence | None
    rule: str
    ours: str
    tried: str
    why: str
    chose: str
    readings: Mapping[str, str]
    others: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Statement:
    """The values, claims and notes of one item of a paper.

    Attributes:
        claims: What its claims say, by id; they have no judge yet.
    """

    values: Sequence[Published]
    notes: Sequence[Note]
    claims: Mapping[str, Wording]
    assumptions: Sequence[str]
    method: str


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
    claims = {name: _wording(entry) for name, entry in data.get("claims", {}).items()}
    assumptions = [one_line(text) for text in data.get("assumptions", [])]
    return Statement(values, notes, claims, assumptions, one_line(data["method"]))


_WORDS = ("rule", "ours", "tried", "why", "chose")
_RULES = ("readings", "others")


def _wording(entry: Mapping[str, Any]) -> Wording:
    unknown = entry.keys() - {"quote", "section", "text", *_WORDS, *_RULES}
    if unknown:
        raise ValueError(f"a claim has no {min(unknown)!r}")
    if "readings" in entry and ("rule" in entry or len(entry["readings"]) < 2):
        raise ValueError("a claim has one `rule`, or two `readings` or more")
    source = None
    if "quote" in entry:
        source = Sentence(one_line(entry["quote"]), entry["section"])
    rule, ours, tried, why, chose = (one_line(entry.get(key, "")) for key in _WORDS)
    readings, others = ({one["name"]: one_line(one["rule"]) for one in entry.get(key, [])} for key in _RULES)
    return Wording(one_line(entry["text"]), source, rule, ours, tried, why, chose, readings, others)


def _printed(row: Mapping[str, Any]) -> Iterable[tuple[Factors, float]]:
    """The numbers of one `[[values]]` table, each with the factor that identifies it."""
    if "value" in row:
        return [({}, row["value"])]
    return [({row["by"]: at}, value) for at, value in zip(row["at"], row["values"], strict=True)]


def one_line(text: str) -> str:
    """A text of several lines as one."""
    return " ".join(text.split())
