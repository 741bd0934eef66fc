"""A lab: its questions, and which measurements of which scenarios answer them, read from `lab.toml`."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from perhop.errors import PerhopError
from perhop.measures import naming
from perhop.scenario import document

LABS = Path(__file__).parent / "labs"
"""The labs that come with perhop, a folder each."""
ORDER = ("red", "assured", "delay", "windows", "bounds")
FILE = "lab.toml"
SHEET = "sheet.md"
MOST_RUNS = 100
DEFAULT_RUNS = 5
"""Runs by default, on the seeds of `perhop run`: those of a student's runs."""
DEFAULT_TOLERANCE = 0.02
"""The relative tolerance of a number: answers are rounded."""
ALIKE = 0.05
"""`A ~ B`: the means differ by less than this part of B."""
_CONDITION = re.compile(r"\s*([\w-]+)\s*([<>~])\s*([\w-]+|[0-9.]+)\s*")
_KEY = re.compile(r"[a-z][a-z0-9-]*")


@dataclass(frozen=True, slots=True)
class LabMeasure:
    """A number that each run of a scenario has.

    Attributes:
        scenario: Name of a file of the lab.
        settings: Values by path, as `[set]` of sweeps.
        metric: As sweeps name it (docs/measures.md).
        scale: Factor from the metric's unit to that of answers.
        minus: Name of another measure that is subtracted, run by run, or empty.
        over: Name of another measure that it is divided by, run by run, or empty.
    """

    scenario: str
    settings: Mapping[str, Any]
    metric: str
    scale: float = 1.0
    minus: str = ""
    over: str = ""


@dataclass(frozen=True, slots=True)
class Slip:
    """A number that is typically given instead of the right one, and what to say then."""

    measure: str
    say: str


@dataclass(frozen=True, slots=True)
class Number:
    """A question whose answer is a number.

    Attributes:
        measure: Name of what is asked for.
        unit: Of the answer; empty for a bare number.
        tolerance: Relative; an answer may be off by this, or by as much as single runs vary, if that is more.
    """

    key: str
    ask: str
    hint: str
    measure: str
    unit: str
    tolerance: float
    slips: tuple[Slip, ...]


@dataclass(frozen=True, slots=True)
class Condition:
    """`left < right`, `left > right` or `left ~ right`, of means over runs on the same seeds.

    Attributes:
        right: Name of a measure, or a number in the unit of `left`.
    """

    left: str
    relation: str
    right: str | float


@dataclass(frozen=True, slots=True)
class Option:
    """An answer to choose; it is right if all its conditions hold."""

    text: str
    when: tuple[Condition, ...]
    say: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """A question whose answer is the letter of an option."""

    key: str
    ask: str
    hint: str
    options: Mapping[str, Option]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A number within bounds that a setting chooses."""

    least: float
    most: float
    whole: bool


@dataclass(frozen=True, slots=True)
class Goal:
    """A goal of a setting: `measure` with the setting in its scenario, below or above a bound.

    Attributes:
        name: What is measured, as messages say it.
        bound: In the measure's unit after scaling.
        unit: Of the bound.
    """

    name: str
    metric: str
    scale: float
    relation: str
    bound: float
    unit: str


@dataclass(frozen=True, slots=True)
class SettingQuestion:
    """A question whose answer is a setting of a scenario: the check simulates it.

    Attributes:
        settings: Values by path; `{name}` in their text is replaced by a parameter.
    """

    key: str
    ask: str
    hint: str
    scenario: str
    settings: Mapping[str, Any]
    parameters: Mapping[str, Parameter]
    goals: tuple[Goal, ...]


Question: TypeAlias = "Number | Choice | SettingQuestion"


@dataclass(frozen=True, slots=True)
class Lab:
    """A lab.

    Attributes:
        name: Of its folder.
        minutes: How long it takes.
        runs: Of each scenario, from seed 1.
    """

    name: str
    folder: Path
    title: str
    about: str
    minutes: int
    runs: int
    measures: Mapping[str, LabMeasure]
    questions: tuple[Question, ...]

    @property
    def files(self) -> tuple[str, ...]:
        """The names of a student's files: the sheet and the scenarios."""
        scenarios = sorted(path.name for path in self.folder.glob("*.toml") if path.name != FILE)
        return (SHEET, *scenarios)


def shipped() -> tuple[str, ...]:
    """The labs that come with perhop, in their order."""
    return ORDER


def find(name: str) -> Lab:
    """A lab by its name, or by a folder that has a `lab.toml`.

    Raises:
        PerhopError: There is none, or it is not as it must be.
    """
    if name in ORDER:
        return read(LABS / name)
    folder = Path(name)
    try:
        if (folder / FILE).is_file():
            return read(folder)
    except (OSError, ValueError):
        pass
    near = difflib.get_close_matches(name, ORDER, n=1, cutoff=0.5)
    hint = f"did you mean `{near[0]}`?" if near else f"there are {', '.join(ORDER)}."
    raise PerhopError(f"no lab `{name}`; {hint} A folder with a `{FILE}` is a lab, too")


def read(folder: Path) -> Lab:
    """The lab in a folder.

    Raises:
        PerhopError: `lab.toml` cannot be read, or a key is wrong; the message names it.
    """
    path = folder / FILE
    data = document.read(path)
    where = str(path)
    document.known_keys(data, ("title", "about", "minutes", "runs", "measures", "questions"), where)
    measures = {
        name: _measure(_table(one, f"{where}: [measures.{name}]"), f"{where}: [measures.{name}]")
        for name, one in document.table(data, "measures", where).items()
    }
    for name, one in measures.items():
        for other in filter(None, (one.minus, one.over)):
            if other not in measures or measures[other].minus or measures[other].over:
                raise PerhopError(
                    f"{where}: [measures.{name}]: `{other}` must be a measure without `minus` and `over`"
                )
    entries = data.get("questions")
    if not isinstance(entries, list) or not entries:
        raise PerhopError(f"{where}: needs [[questions]]")
    questions = tuple(
        _question(one, measures, f"{where}: question {no}") for no, one in enumerate(entries, 1)
    )
    keys = [one.key for one in questions]
    twice = next((key for key, count in Counter(keys).items() if count > 1), None)
    if twice is not None:
        raise PerhopError(f"{where}: two questions have the key `{twice}`")
    return Lab(
        folder.resolve().name,
        folder,
        _text(data, "title", where),
        _text(data, "about", where),
        document.whole(data, "minutes", 90, where),
        document.whole(data, "runs", DEFAULT_RUNS, where, least=2, most=MOST_RUNS),
        measures,
        questions,
    )


def _question(data: object, measures: Mapping[str, LabMeasure], where: str) -> Question:
    table = _table(data, where)
    key = _text(table, "key", where)
    if not _KEY.fullmatch(key) or key == "lab":
        raise PerhopError(f"{where}: `key` must be small letters, digits and hyphens, not {key!r}")
    where = f"{where} ({key})"
    common = {"key": key, "ask": _text(table, "ask", where), "hint": _text(table, "hint", where)}
    if "options" in table:
        document.known_keys(table, (*common, "options"), where)
        options = document.table(table, "options", where)
        return Choice(
            **common, options={name: _option(one, measures, where) for name, one in options.items()}
        )
    if "parameters" in table:
        return _setting(table, common, where)
    document.known_keys(table, (*common, "measure", "unit", "tolerance", "slips"), where)
    tolerance = document.fraction(table.get("tolerance", DEFAULT_TOLERANCE), f"{where}: `tolerance`")
    slips = tuple(_slip(one, measures, where) for one in _list(table, "slips", where))
    measure = _known(_text(table, "measure", where), measures, where)
    unit = document.text(table, "unit", "", where)
    return Number(**common, measure=measure, unit=unit, tolerance=tolerance, slips=slips)


def _measure(table: Mapping[str, Any], where: str) -> LabMeasure:
    document.known_keys(table, ("scenario", "set", "metric", "scale", "minus", "over"), where)
    return LabMeasure(
        _file(table, where),
        document.table(table, "set", where),
        naming.current(_text(table, "metric", where)),
        _number(table, "scale", 1.0, where),
        document.text(table, "minus", "", where),
        document.text(table, "over", "", where),
    )


def _slip(data: object, measures: Mapping[str, LabMeasure], where: str) -> Slip:
    table = _table(data, f"{where}: `slips`")
    document.known_keys(table, ("measure", "say"), f"{where}: `slips`")
    return Slip(_known(_text(table, "measure", where), measures, where), _text(table, "say", where))


def _option(data: object, measures: Mapping[str, LabMeasure], where: str) -> Option:
    table = _table(data, f"{where}: `options`")
    document.known_keys(table, ("text", "when", "say"), f"{where}: `options`")
    when = document.texts(table, "when", (), where)
    said = document.text(table, "say", "", where)
    return Option(_text(table, "text", where), tuple(_condition(one, measures, where) for one in when), said)


def _condition(text: str, measures: Mapping[str, LabMeasure], where: str) -> Condition:
    found = _CONDITION.fullmatch(text)
    if found is None:
        raise PerhopError(
            f"{where}: `{text}` is no condition such as `one < other`, `one > 5` or `one ~ other`"
        )
    left, relation, right = found.groups()
    _known(left, measures, where)
    try:
        return Condition(left, relation, float(right))
    except ValueError:
        return Condition(left, relation, _known(right, measures, where))


def _setting(table: Mapping[str, Any], common: Mapping[str, str], where: str) -> SettingQuestion:
    document.known_keys(table, (*common, "scenario", "set", "parameters", "goals"), where)
    parameters = {}
    for name, one in document.table(table, "parameters", where).items():
        place = f"{where}: `parameters.{name}`"
        limits = _table(one, place)
        document.known_keys(limits, ("least", "most", "whole"), place)
        whole = limits.get("whole", False) is True
        parameters[name] = Parameter(
            _number(limits, "least", None, place), _number(limits, "most", None, place), whole
        )
    goals = tuple(_goal(one, where) for one in _list(table, "goals", where))
    if not goals or not parameters:
        raise PerhopError(f"{where}: needs `parameters` and `goals`")
    settings = document.table(table, "set", where)
    return SettingQuestion(
        **common, scenario=_file(table, where), settings=settings, parameters=parameters, goals=goals
    )


def _goal(data: object, where: str) -> Goal:
    table = _table(data, f"{where}: `goals`")
    document.known_keys(table, ("name", "metric", "scale", "unit", "below", "above"), f"{where}: `goals`")
    if ("below" in table) == ("above" in table):
        raise PerhopError(f"{where}: a goal has `below` or `above`, one of them")
    relation = "below" if "below" in table else "above"
    return Goal(
        _text(table, "name", where),
        naming.current(_text(table, "metric", where)),
        _number(table, "scale", 1.0, where),
        relation,
        _number(table, relation, None, where),
        document.text(table, "unit", "", where),
    )


def _table(data: object, where: str) -> Mapping[str, Any]:
    if not isinstance(data, dict):
        raise PerhopError(f"{where} must be a table, not {data!r}")
    return data


def _list(table: Mapping[str, Any], key: str, where: str) -> list[Any]:
    found = table.get(key, [])
    if not isinstance(found, list):
        raise PerhopError(f"{where}: `{key}` must be a list of tables, not {found!r}")
    return found


def _text(table: Mapping[str, Any], key: str, where: str) -> str:
    found = document.text(table, key, "", where)
    if not found:
        raise PerhopError(f"{where}: needs `{key}`")
    return found


def _number(table: Mapping[str, Any], key: str, default: float | None, where: str) -> float:
    found = table.get(key, default)
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise PerhopError(f"{where}: `{key}` must be a number, not {found!r}")
    return float(found)


def _file(table: Mapping[str, Any], where: str) -> str:
    name = _text(table, "scenario", where)
    if Path(name).name != name:
        raise PerhopError(f"{where}: `scenario` must be a file in the folder of the lab, not {name!r}")
    return name


def _known(name: str, measures: Mapping[str, LabMeasure], where: str) -> str:
    if name not in measures:
        near = difflib.get_close_matches(name, measures, n=1, cutoff=0.4)
        hint = f"did you mean `{near[0]}`?" if near else f"there are {', '.join(measures) or 'none'}"
        raise PerhopError(f"{where}: no measure `{name}`; {hint}")
    return name
