"""Answers against runs: what is right, and for what is not a hint that does not give the answer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import stdev
from typing import Literal, TypeAlias

from perhop._engine import student_t_quantile
from perhop.coursework.answers import Answer
from perhop.coursework.bench import Bench
from perhop.coursework.lab import ALIKE, FILE, Choice, Condition, Goal, Lab, Number, Question, SettingQuestion
from perhop.errors import PerhopError
from perhop.scenario.ranges import Value
from perhop.show.numbers import exact
from perhop.statistics.intervals import UPPER, Estimate, estimate, paired_difference

State: TypeAlias = Literal["right", "wrong", "missing"]
FACTORS = (1000.0, 1e6, 100.0, 8.0)
"""Factors of units: an answer that is wrong by one of them was given in another unit."""


@dataclass(frozen=True, slots=True)
class Checked:
    """The verdict on one answer; `hint` helps with a wrong one."""

    question: Question
    state: State
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The numbers that are right."""

    low: float
    high: float

    def __contains__(self, value: float) -> bool:
        """Whether a number is one of them."""
        return self.low <= value <= self.high


def scenarios(lab: Lab, bench: Bench, answers: Mapping[str, Answer], origin: str) -> list[str]:
    """All scenarios that checking these answers takes, as canonical JSON.

    Raises:
        PerhopError, ScenarioError: A setting of the student makes none; the message names it.
    """
    wanted: list[str] = []
    for question in lab.questions:
        answer = answers[question.key]
        if answer is None:
            continue
        if isinstance(question, SettingQuestion):
            assert isinstance(answer, dict)
            wanted.append(_with(question, answer, bench, origin))
        else:
            wanted += [bench.scenario_of(lab.measures[name]) for name in _measures(question, lab)]
    return list(dict.fromkeys(wanted))


def _measures(question: Number | Choice, lab: Lab) -> list[str]:
    if isinstance(question, Number):
        names = [question.measure, *(slip.measure for slip in question.slips)]
    else:
        conditions = [one for option in question.options.values() for one in option.when]
        names = [name for one in conditions for name in (one.left, one.right) if isinstance(name, str)]
    others = [other for name in names for other in (lab.measures[name].minus, lab.measures[name].over)]
    return [*names, *filter(None, others)]


def check(lab: Lab, bench: Bench, answers: Mapping[str, Answer], origin: str) -> list[Checked]:
    """Check every answer against runs.

    Args:
        lab: The lab.
        bench: Where its scenarios are run.
        answers: By key, as `answers.read` returns them.
        origin: The file of the answers, for messages.

    Raises:
        PerhopError: The lab's own questions do not fit its runs.
    """
    return [_checked(lab, bench, question, answers[question.key], origin) for question in lab.questions]


def _checked(lab: Lab, bench: Bench, question: Question, answer: Answer, origin: str) -> Checked:
    if answer is None:
        return Checked(question, "missing")
    if isinstance(question, Number):
        assert isinstance(answer, float)
        hint = number_hint(question, answer, bench)
    elif isinstance(question, Choice):
        assert isinstance(answer, str)
        hint = "" if answer == right_option(lab, question, bench) else _why_not(question, answer)
    else:
        assert isinstance(answer, dict)
        hint = setting_hint(question, answer, bench, origin)
    return Checked(question, "wrong" if hint else "right", hint)


def accepted(samples: Sequence[float], tolerance: float) -> Accepted:
    """Return the right values: a further run's with a probability of 95 %, and their rounding.

    The mean ± t(0.975, n - 1) * s * sqrt(1 + 1/n), or ± the relative tolerance where that is more.

    Args:
        samples: One value for each run, at least two.
        tolerance: Relative to the mean.
    """
    mean, n = estimate(samples).mean, len(samples)
    half = student_t_quantile(n - 1, UPPER) * stdev(samples) * math.sqrt(1 + 1 / n)
    half = max(half, tolerance * abs(mean))
    return Accepted(mean - half, mean + half)


def number_hint(question: Number, answer: float, bench: Bench) -> str:
    """Return a hint on a number; empty if it is right."""
    right = accepted(list(bench.samples(question.measure).values()), question.tolerance)
    if answer in right:
        return ""
    slips = [(slip, list(bench.samples(slip.measure).values())) for slip in question.slips]
    fitting = [(slip, found) for slip, found in slips if answer in accepted(found, question.tolerance)]
    if fitting:
        return min(fitting, key=lambda pair: abs(estimate(pair[1]).mean - answer))[0].say
    asked = f"asked in {question.unit}" if question.unit else "asked without a unit"
    for factor in FACTORS:
        if answer / factor in right or answer * factor in right:
            return f"Not the right order: look at the unit; the answer is {asked}. {question.hint}"
    if answer and -answer in right:
        return f"Look at the sign. {question.hint}"
    return question.hint


def holds(condition: Condition, bench: Bench) -> bool:
    """Whether a condition holds: with the whole 95 % interval of the difference, on the same seeds."""
    left = bench.samples(condition.left)
    if isinstance(condition.right, str):
        right = bench.samples(condition.right)
    else:
        right = dict.fromkeys(left, condition.right)
    found = paired_difference(left, right)
    if condition.relation == "<":
        return found.high < 0
    if condition.relation == ">":
        return found.low > 0
    room = ALIKE * abs(estimate(list(right.values())).mean)
    return -room < found.low and found.high < room


def right_option(lab: Lab, question: Choice, bench: Bench) -> str:
    """The option whose conditions hold.

    Raises:
        PerhopError: There is not exactly one: the lab is wrong.
    """
    right = [
        letter
        for letter, option in question.options.items()
        if option.when and all(holds(one, bench) for one in option.when)
    ]
    if len(right) != 1:
        raise PerhopError(
            f"{lab.folder / FILE}: question `{question.key}`: the conditions of {len(right)} options hold in "
            "runs; it must be one"
        )
    return right[0]


def _why_not(question: Choice, answer: str) -> str:
    return question.options[answer].say or question.hint


def setting_hint(question: SettingQuestion, answer: Mapping[str, Value], bench: Bench, origin: str) -> str:
    """Return the goals that a setting misses and its values; empty if it reaches all."""
    scenario = _with(question, answer, bench, origin)
    results = [_reached(goal, bench, scenario) for goal in question.goals]
    if all(reached for reached, _ in results):
        return ""
    return f"In runs with your setting: {'; '.join(text for _, text in results)}. {question.hint}"


def _with(question: SettingQuestion, answer: Mapping[str, Value], bench: Bench, origin: str) -> str:
    label = f"{origin}: `{question.key}`"
    try:
        return bench.scenario(question.scenario, question.settings, answer, label)
    except (PerhopError, ValueError) as error:
        # What is wrong is behind the lab's file and the label; the student knows neither.
        reason = str(error).partition(f"{label}: ")[2] or str(error)
        raise PerhopError(f"{label}: {reason}") from None


def _reached(goal: Goal, bench: Bench, scenario: str) -> tuple[bool, str]:
    found = estimate(list(bench.metric(scenario, goal.metric, goal.scale).values()))
    inside = found.high < goal.bound if goal.relation == "below" else found.low > goal.bound
    on_average = found.mean < goal.bound if goal.relation == "below" else found.mean > goal.bound
    state = "reached" if inside else "within the interval only, leave more room" if on_average else "missed"
    return (
        inside,
        f"{goal.name} {_text(found)} {goal.unit} (goal: {goal.relation} {exact(goal.bound)}), {state}",
    )


def _text(found: Estimate) -> str:
    return f"{found.mean:.4g} ± {found.half_width or 0:.2g}"
