"""The vocabulary of judges: name the numbers of a claim, check each, and show them in a sentence.

A judge is a function of a study's `Evidence` that returns a `Judgement`. Most claims need no function of
their own, only three lines of this vocabulary:

    queues = {"RIO": ({"queue": "rio"}, {"queue": "red"}), "RI+O": ({"queue": "ri+o"}, {"queue": "red"})}
    faster = differences("throughput", queues).all(above).said("Queue − RED, Mbit/s: {:+.2}.")

`levels` and `differences` name numbers; `all`, `any` and `most` say what each must be; `said` writes the
evidence. A sentence is a format string. `{}` stands for the numbers that are checked, `{failing}` for the
names of those whose check fails or is open, `{holding}` and `{held}` for the names and the number of those
whose check holds, and a keyword for any other numbers. The format of a field is
that of each number in it; see `show`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

from perhop.show.declared import Factors
from perhop.statistics.intervals import Estimate, estimate
from perhop.statistics.judging import Check, Judgement, all_of, any_of, at_least_of, by_readings, judge
from perhop.studies.evidence import Evidence

Judge: TypeAlias = Callable[[Evidence], Judgement]
Judges: TypeAlias = Mapping[str, Judge]
"""The judges of a claim's readings and rules, by their names; "" names its own rule."""
Side: TypeAlias = Callable[..., Check]
"""A check of `perhop.statistics.judging` on an estimate, such as `above`, with further arguments."""
Bound: TypeAlias = "float | Mapping[Any, float] | Callable[[Any], float] | MeasuredBound"
"""A further argument of a check: one for all numbers, or one for each by its name."""
Pairs: TypeAlias = "Mapping[Any, tuple[Factors, Factors]]"
"""The factors of two places each, by the pair's name."""
FEW = 8
"""Up to so many numbers are listed by `few`; of more, the lowest and the highest."""


def show(found: Estimate, form: str = "") -> str:
    """A number as text.

    Args:
        found: The number.
        form: `.2` gives two digits and the interval; three digits if empty. `+` in front adds the sign. `~`
            gives about three digits and the interval. A form of Python's such as `.2f` or `+.0%` gives the
            value alone.
    """
    if form == "~":
        if math.isnan(found.mean):
            return "not known"
        size = abs(found.mean)
        return found.text(3 if size < 1 else 2 if size < 100 else 1)
    if form and form[-1] in "fg%":
        return format(found.mean, form).replace("-", "−")
    digits = form.lstrip("+.")
    return found.text(int(digits) if digits else 3, sign=form.startswith("+"))


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of a sentence: what it shows in a form, and the form where the sentence gives none."""

    shown: Callable[[str], str]
    usual: str = ""

    def __format__(self, form: str) -> str:
        return self.shown(form or self.usual)


@dataclass(frozen=True, slots=True)
class Number:
    """A number of a claim, and numbers that are shown beside it by their names, as those of a difference."""

    value: Estimate
    beside: Mapping[str, Callable[[], Estimate]] = field(default_factory=dict)

    def said(self, name: Hashable, one: str, form: str) -> str:
        """The number as one item of a list."""
        fields = {
            key: _Field(lambda form, find=find: show(find(), form), form.lstrip("+"))  # type: ignore[misc]
            for key, find in self.beside.items()
        }
        return one.format(name=name, value=_Field(lambda form: show(self.value, form), form), **fields)


Listing: TypeAlias = Callable[[Mapping[Any, Number], str], str]


def _listing(one: str, between: str) -> Listing:
    return lambda found, form: between.join(item.said(name, one, form) for name, item in found.items())


_USUAL = _listing("{name} {value}", ", ")


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers of a claim by their names, looked up when there is evidence.

    Attributes:
        find: Looks them up.
        listing: Writes them in a form of `show`.
    """

    find: Callable[[Evidence], Mapping[Any, Number]]
    listing: Listing = _USUAL

    def __call__(self, evidence: Evidence) -> dict[Any, Estimate]:
        """The estimates by name."""
        return {name: number.value for name, number in self.find(evidence).items()}

    def reads(self, one: str, between: str = ", ", **beside: Numbers) -> Numbers:
        """These numbers in other words.

        Args:
            one: How one of them reads: `{name}`, `{value}`, of a difference its sides `{first}` and
                `{second}`, and the further numbers shown with it.
            between: The text between two of them.
            beside: Further numbers of the same names.
        """

        def find(evidence: Evidence) -> dict[Any, Number]:
            others = {key: numbers(evidence) for key, numbers in beside.items()}

            def shown(name: Hashable) -> dict[str, Callable[[], Estimate]]:
                return {key: partial(of.__getitem__, name) for key, of in others.items()}

            return {
                name: replace(number, beside={**number.beside, **shown(name)})
                for name, number in self.find(evidence).items()
            }

        return Numbers(find if beside else self.find, _listing(one, between))

    def few(self) -> Numbers:
        """These numbers; where they are more than `FEW`, only the lowest and the highest are shown."""

        def listing(found: Mapping[Any, Number], form: str) -> str:
            if len(found) <= FEW:
                return self.listing(found, form)
            ordered = sorted(found, key=lambda name: found[name].value.mean)
            ends = [self.listing({name: found[name]}, form) for name in (ordered[0], ordered[-1])]
            return f"{len(found)} cells, from {' to '.join(ends)}"

        return replace(self, listing=listing)

    def first(self, count: int = 1) -> Numbers:
        """So many of them, the first ones."""
        return replace(self, find=lambda evidence: dict(list(self.find(evidence).items())[:count]))

    def ordered(self) -> Numbers:
        """These numbers from the lowest mean to the highest."""
        return replace(
            self,
            find=lambda evidence: dict(
                sorted(self.find(evidence).items(), key=lambda item: item[1].value.mean)
            ),
        )

    def only(self, name: Hashable) -> Numbers:
        """The one of them of this name."""
        return self._one(lambda _: name)

    def lowest(self, by: Callable[[Estimate], float] = lambda found: found.mean) -> Numbers:
        """The one of them of the lowest mean, or that is lowest by another function."""
        return self._one(lambda found: min(found, key=lambda name: by(found[name].value)))

    def highest(self, by: Callable[[Estimate], float] = lambda found: found.mean) -> Numbers:
        """The one of them of the highest mean, or that is highest by another function."""
        return self._one(lambda found: max(found, key=lambda name: by(found[name].value)))

    def _one(self, choose: Callable[[Mapping[Any, Number]], Any]) -> Numbers:
        def find(evidence: Evidence) -> dict[Any, Number]:
            found = self.find(evidence)
            name = choose(found)
            return {name: found[name]}

        return replace(self, find=find)

    def mapped(self, how: Callable[[Estimate], Estimate]) -> Numbers:
        """Return the result of a function of each number."""
        return replace(
            self,
            find=lambda evidence: {
                name: replace(number, value=how(number.value)) for name, number in self.find(evidence).items()
            },
        )

    def scaled(self, how: Callable[[float], float]) -> Numbers:
        """Return the result of a monotone function of each number, such as a change of unit."""
        return self.mapped(lambda found: found.mapped(how))

    def relative(self, whole: Numbers) -> Numbers:
        """Each of them as a part of the mean of the other number of its name."""

        def part(number: Number, of: float) -> Number:
            return replace(number, value=number.value.mapped(lambda x: x / of))

        def find(evidence: Evidence) -> dict[Any, Number]:
            wholes = whole(evidence)
            return {name: part(number, wholes[name].mean) for name, number in self.find(evidence).items()}

        return replace(self, find=find)

    def __or__(self, other: Numbers) -> Numbers:
        """These numbers and others after them, which read as these do."""
        return replace(self, find=lambda evidence: {**self.find(evidence), **other.find(evidence)})

    def bound(self, made: Callable[[Estimate], float] = lambda found: found.mean) -> MeasuredBound:
        """Return a bound for other numbers: the mean, or another function, of the number of the same name.

        A single number bounds all others.
        """
        return MeasuredBound(self, made)

    def all(self, side: Side, *bounds: Bound) -> Statement:
        """Each of them passes a check."""
        return self._stated(lambda checks: all_of(*checks), side, bounds)

    def any(self, side: Side, *bounds: Bound) -> Statement:
        """One of them, at least, passes a check."""
        return self._stated(lambda checks: any_of(*checks), side, bounds)

    def most(self, wanted: int, side: Side, *bounds: Bound) -> Statement:
        """State that at least `wanted` of the numbers pass a check."""
        return self._stated(lambda checks: at_least_of(wanted, checks), side, bounds)

    def _stated(
        self, combined: Callable[[Iterable[Check]], Check], side: Side, bounds: tuple[Bound, ...]
    ) -> Statement:
        def check(evidence: Evidence) -> tuple[Check, Mapping[Any, Check]]:
            limits = [bound.of(evidence) if isinstance(bound, MeasuredBound) else bound for bound in bounds]
            found = {name: side(value, *_of(name, limits)) for name, value in self(evidence).items()}
            return combined(found.values()), found

        return Statement(check, self)


@dataclass(frozen=True, slots=True)
class MeasuredBound:
    """A bound that depends on numbers of the same evidence; see `Numbers.bound`."""

    numbers: Numbers
    made: Callable[[Estimate], float]

    def of(self, evidence: Evidence) -> float | Mapping[Any, float]:
        """Return the bound of each name, or the only bound."""
        found = {name: self.made(value) for name, value in self.numbers(evidence).items()}
        return found if len(found) > 1 else next(iter(found.values()))


def _of(
    name: Hashable, bounds: Iterable[float | Mapping[Any, float] | Callable[[Any], float]]
) -> list[float]:
    return [
        bound[name] if isinstance(bound, Mapping) else bound(name) if callable(bound) else bound
        for bound in bounds
    ]


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of a claim on its numbers; `said` makes a judge of it.

    Attributes:
        check: Checks it, and gives each single check by its name.
        numbers: What `{}` stands for in its sentence.
    """

    check: Callable[[Evidence], tuple[Check, Mapping[Any, Check]]]
    numbers: Numbers | None = None

    def __and__(self, other: Statement) -> Statement:
        """Both statements; `{}` and `{failing}` stand for the numbers and checks of the first."""

        def check(evidence: Evidence) -> tuple[Check, Mapping[Any, Check]]:
            (mine, checks), (others, _) = self.check(evidence), other.check(evidence)
            return all_of(mine, others), checks

        return replace(self, check=check)

    def said(self, text: str, **shown: Numbers | Callable[[Evidence], str]) -> Judge:
        """The judge of a claim that is this statement.

        Args:
            text: The evidence as a format string; see the module.
            shown: Its named fields: further numbers, or functions that write of the evidence.
        """

        def judged(evidence: Evidence) -> Judgement:
            check, checks = self.check(evidence)
            fields = {name: _field(what, evidence) for name, what in shown.items()}
            mine = [] if self.numbers is None else [_field(self.numbers, evidence)]
            fields["failing"] = _Field(lambda word: failing(checks, word or "against"))
            fields["holding"] = _Field(lambda _: holding(checks))
            fields["held"] = _Field(lambda _: str(sum(one.holds is True for one in checks.values())))
            return judge(check, text.format(*mine, **fields))

        return judged


def of_statements(statements: Mapping[Any, Statement], combined: Callable[..., Check] = all_of) -> Statement:
    """A statement about statements: that all of them hold, or any; its checks are theirs, by name."""

    def check(evidence: Evidence) -> tuple[Check, Mapping[Any, Check]]:
        found = {name: one.check(evidence)[0] for name, one in statements.items()}
        return combined(*found.values()), found

    return Statement(check)


def stated(check: Callable[[Evidence], Check]) -> Statement:
    """A statement that a function checks, such as a `fact`."""
    return Statement(lambda evidence: (check(evidence), {}))


def _field(what: Numbers | Callable[[Evidence], str], evidence: Evidence) -> _Field:
    if isinstance(what, Numbers):
        numbers = what
        return _Field(lambda form: numbers.listing(numbers.find(evidence), form))
    return _Field(lambda form: format(what(evidence), form))


def levels(metric: str, places: Mapping[Any, Factors], *, measured: bool = False) -> Numbers:
    """A metric in several places.

    Args:
        metric: The metric.
        places: Each place's factors by its name.
        measured: Leave out places where no run has a value.
    """

    def find(evidence: Evidence) -> dict[Any, Number]:
        return {
            name: Number(evidence.estimate(metric, factors))
            for name, factors in places.items()
            if not measured or evidence.measured(metric, factors)
        }

    return Numbers(find)


def level(metric: str, factors: Factors) -> Numbers:
    """A metric in one place."""
    return levels(metric, {"": factors}).reads("{value}")


def differences(
    metric: str,
    pairs: Pairs,
    *,
    factor: float = 1.0,
    second_metric: str | None = None,
    measured: bool = False,
) -> Numbers:
    """The differences first − `factor` second of several pairs of places, paired by seed.

    Args:
        metric: The metric.
        pairs: The factors of both places by the pair's name.
        factor: Of the second number.
        second_metric: The second number's metric, if it is another.
        measured: Leave out pairs of whose first place no run has a value.
    """

    def number(evidence: Evidence, first: Factors, second: Factors) -> Number:
        other = second_metric or metric
        found = evidence.difference(metric, first, second, factor=factor, second_metric=other)
        sides = {"first": (metric, first), "second": (other, second)}
        return Number(found, {key: partial(evidence.estimate, *side) for key, side in sides.items()})

    return Numbers(
        lambda evidence: {
            name: number(evidence, *pair)
            for name, pair in pairs.items()
            if not measured or evidence.measured(metric, pair[0])
        }
    )


def difference(metric: str, first: Factors, second: Factors, *, factor: float = 1.0) -> Numbers:
    """The difference first − `factor` second of two places, paired by seed."""
    return differences(metric, {"": (first, second)}, factor=factor).reads("{value}")


def made(named: Mapping[Any, Callable[[Evidence], Estimate]]) -> Numbers:
    """Return the results of functions of the evidence, by name."""
    return Numbers(lambda evidence: {name: Number(how(evidence)) for name, how in named.items()})


def of_runs(named: Mapping[Any, tuple[Any, ...]]) -> Numbers:
    """Return the results of functions of several numbers of the same run.

    Args:
        named: For each result, by its name, the function and its arguments, each a metric with its factors:
            `{"share": (lambda part, whole: part / whole, ("sent", ours), ("sent", all_of_them))}`.
    """
    return Numbers(
        lambda evidence: {name: Number(combined(evidence, *result)) for name, result in named.items()}
    )


def combined(evidence: Evidence, how: Callable[..., float], *named: tuple[str, Factors]) -> Estimate:
    """The estimate of what a function makes of several numbers of the same run.

    Args:
        evidence: What was measured.
        how: The function.
        named: Its arguments, each a metric with its factors; runs that lack one of them are left out.
    """
    values = [evidence.by_seed(metric, factors) for metric, factors in named]
    seeds = sorted(set.intersection(*(set(found) for found in values)))
    return estimate([how(*(found[seed] for found in values)) for seed in seeds])


def of_pairs(how: Callable[[float, float], float], metric: str, pairs: Pairs) -> Numbers:
    """Return the results of a function of a metric in two places, run by run, by the pair's name."""
    return of_runs(
        {name: (how, (metric, first), (metric, second)) for name, (first, second) in pairs.items()}
    )


def mean_differences(metric: str, groups: Mapping[Any, Iterable[Iterable[Factors]]]) -> Numbers:
    """The mean of a metric over some places less that over as many others, run by run, by group.

    Args:
        metric: The metric.
        groups: The factors of the first places, then those of the others, by the group's name.
    """
    return of_runs(
        {
            name: (less_means, *((metric, place) for places in group for place in places))
            for name, group in groups.items()
        }
    )


def less_means(*values: float) -> float:
    """The mean of the first half of some numbers less that of the second half."""
    half = len(values) // 2
    return (sum(values[:half]) - sum(values[half:])) / half


def grouped(groups: Mapping[Any, Numbers], one: str = "{name}: {all}", between: str = "; ") -> Numbers:
    """Numbers in groups: their names are those of group and number.

    Args:
        groups: The numbers of each group by its name.
        one: How one group reads.
        between: The text between two groups.
    """

    def find(evidence: Evidence) -> dict[tuple[Any, Any], Number]:
        return {
            (group, name): number
            for group, numbers in groups.items()
            for name, number in numbers.find(evidence).items()
        }

    def listing(found: Mapping[Any, Number], form: str) -> str:
        members: dict[Any, dict[Any, Number]] = {}
        for (group, name), number in found.items():
            members.setdefault(group, {})[name] = number
        return between.join(
            one.format(name=group, all=_Field(lambda own, g=group: groups[g].listing(members[g], own), form))  # type: ignore[misc]
            for group in members
        )

    return Numbers(find, listing)


def failing(checks: Mapping[Any, Check], word: str = "against") -> str:
    """The names of the checks that fail, after this word, then of those that the runs leave open."""
    wrong = [str(name) for name, check in checks.items() if check.holds is False]
    unsettled = [str(name) for name, check in checks.items() if check.holds is None]
    return f"{word}: {', '.join(wrong) or 'none'}; open: {', '.join(unsettled) or 'none'}"


def holding(checks: Mapping[Any, Check]) -> str:
    """The names of the checks that hold."""
    return ", ".join(str(name) for name, check in checks.items() if check.holds) or "none"


def bounded(metric: str, places: Mapping[Any, Factors], side: Side, bound: float, where: str = "") -> Judge:
    """A judge of whether a metric is on one side of a bound in every place that was measured.

    Args:
        metric: The metric.
        places: Each place's factors by its name.
        side: The side, such as `at_least`.
        bound: The bound.
        where: What the evidence begins with.
    """
    found = levels(metric, places, measured=True).few()
    return found.all(side, bound).said(where + "{:~}; bound " + f"{bound:g}; " + "{failing:against it}.")


def compared(
    metric: str,
    pairs: Pairs,
    side: Side,
    *,
    factor: float = 1.0,
    second_metric: str | None = None,
    reads: str = "{name}: {first} against {second}",
    between: str = ", ",
) -> Judge:
    """A judge of whether a metric of each pair's first place is above, or below, `factor` times the second's.

    Args:
        metric: The metric.
        pairs: The factors of both places by the pair's name.
        side: `above` or `below`.
        factor: Of the second number.
        second_metric: The second number's metric, if it is another.
        reads: How a pair reads in the evidence.
        between: The text between two pairs.
    """
    found = differences(metric, pairs, factor=factor, second_metric=second_metric).reads(reads, between)
    times = "" if factor == 1 else f"; compared with {factor:g} times the second"
    return found.all(side).said("{:~}" + times + "; {failing:against it}.")


def together(*judges: Judge) -> Judge:
    """The judge of a claim that makes several statements, with the evidence of each."""

    def judged(evidence: Evidence) -> Judgement:
        found = [one(evidence) for one in judges]
        whole = all_of(*(Check(one.holds, one.runs_needed) for one in found))
        return judge(whole, " ".join(one.evidence for one in found))

    return judged


def readings_together(judges: Judges) -> Judge:
    """The judge of a rule that reads a sentence in several ways: what all of them say."""
    return lambda evidence: by_readings({name: judged(evidence) for name, judged in judges.items()})


def variants(judge: Callable[[Any], Judge], values: Mapping[str, Any]) -> Judges:
    """The judges of rules that differ in one value alone.

    Args:
        judge: Makes a judge of the value.
        values: The value of each rule by the rule's name.
    """
    return {name: judge(value) for name, value in values.items()}


def readings_by_rule(judges_of: Callable[[Any], Judges], values: Mapping[str, Any]) -> Judges:
    """The judges of a claim with readings whose rules differ in one value.

    Args:
        judges_of: The judges of the readings at a value.
        values: The value of each rule by its name; that of "" decides, and is for the readings. By each other
            rule the claim is judged by what all readings say.
    """
    others = {name: readings_together(judges_of(value)) for name, value in values.items() if name}
    return {**judges_of(values[""]), **others}
