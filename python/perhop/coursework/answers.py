"""Answers of a student: the file to fill in, and how it is read."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from perhop.coursework.lab import Choice, Lab, Number, Parameter, Question, SettingQuestion
from perhop.errors import PerhopError
from perhop.scenario import document, file_kinds
from perhop.scenario.ranges import Value, plain

NAME = "answers.toml"
WIDTH = 100
Answer: TypeAlias = "float | str | Mapping[str, Value] | None"
"""A number, the letter of an option, values of parameters by name; None where there is none yet."""


def template(lab: Lab) -> str:
    """The file to fill in."""
    head = f"""\
# Answers to the lab "{lab.title}". Replace "" by your answers: a number without its unit, or the letter of
# an option in quotes. Then type
#
#   perhop course check {lab.name} {NAME}

lab = {json.dumps(lab.name)}
"""
    return head + "".join(_entry(no, one) for no, one in enumerate(lab.questions, 1))


def _entry(number: int, question: Question) -> str:
    lines = ["", *_comment(f"{number}. {question.ask}")]
    if isinstance(question, Choice):
        for letter, option in question.options.items():
            lines += _comment(f"{letter}: {option.text}", "   ")
    if isinstance(question, SettingQuestion):
        for name, one in question.parameters.items():
            lines += _comment(f"{name}: {limits(one)}", "   ")
            lines.append(f'{question.key}.{name} = ""')
    else:
        unit = f" # {question.unit}" if isinstance(question, Number) and question.unit else ""
        lines.append(f'{question.key} = ""{unit}')
    return "\n".join(lines) + "\n"


def _comment(text: str, indent: str = "") -> list[str]:
    lead = f"# {indent}"
    return textwrap.wrap(text, WIDTH, initial_indent=lead, subsequent_indent=lead + "   ")


def limits(parameter: Parameter) -> str:
    """Return the bounds of a parameter in words."""
    kind = "a whole number" if parameter.whole else "a number"
    return f"{kind} from {plain(parameter.least)} to {plain(parameter.most)}"


def read(path: Path, lab: Lab) -> dict[str, Answer]:
    """A student's answers by the key of the question.

    Raises:
        PerhopError: The file cannot be read, or an answer is not of the kind that is asked for.
    """
    data = document.read(path)
    file_kinds.expect("answers", data, path)
    where = str(path)
    keys = [question.key for question in lab.questions]
    document.known_keys(data, ("lab", *keys), where)
    name = data.get("lab", lab.name)
    if name != lab.name:
        raise PerhopError(f"{where}: `lab` is {name!r}; these are no answers to the lab `{lab.name}`")
    return {question.key: _answer(question, data.get(question.key, ""), where) for question in lab.questions}


def _answer(question: Question, found: object, where: str) -> Answer:
    place = f"{where}: `{question.key}`"
    if found == "":
        return None
    if isinstance(question, Number):
        return _number(found, place, f" in {question.unit}" if question.unit else "")
    if isinstance(question, SettingQuestion):
        return _setting(question, found, where)
    if not isinstance(found, str) or found.strip().lower() not in question.options:
        letters = list(question.options)
        raise PerhopError(
            f"{place} must be {', '.join(letters[:-1])} or {letters[-1]} in quotes, not {found!r}"
        )
    return found.strip().lower()


def _number(found: object, place: str, asked: str = "") -> float:
    if isinstance(found, str):
        raise PerhopError(
            f"{place}: write the number{asked} alone, without quotes and unit, not {_short(found)}"
        )
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise PerhopError(f"{place} must be a number{asked}, not {_short(found)}")
    try:
        value = float(found)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise PerhopError(f"{place} must be a finite number{asked}, not {_short(found)}")
    return value


def _setting(question: SettingQuestion, found: object, where: str) -> Mapping[str, Value] | None:
    place = f"{where}: `{question.key}`"
    names = list(question.parameters)
    if not isinstance(found, dict):
        raise PerhopError(f"{place} has {' and '.join(names)}: write {question.key}.{names[0]} = …")
    document.known_keys(found, names, place)
    if any(found.get(name, "") == "" for name in names):
        return None
    return {
        name: _within(found[name], one, f"{where}: `{question.key}.{name}`")
        for name, one in question.parameters.items()
    }


def _within(found: Any, parameter: Parameter, place: str) -> Value:  # noqa: ANN401 - whatever a file holds
    value = _number(found, place)
    if not parameter.least <= value <= parameter.most or (parameter.whole and not value.is_integer()):
        raise PerhopError(f"{place} must be {limits(parameter)}, not {_short(found)}")
    return int(value) if parameter.whole else value


def _short(found: object) -> str:
    """A value for a message, however long it is."""
    try:
        text = repr(found)
    except ValueError:  # too many digits
        return "this one"
    return text if len(text) <= 60 else f"{text[:57]}…"
