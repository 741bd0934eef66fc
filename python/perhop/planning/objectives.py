"""Objectives of a plan: sentences of a service-level agreement as bounds on what runs measure.

    P99 of one-way delay of voice < 20 ms
    page load time P95 of web < 2 s
    loss of AF11 < 0.1 % in 95 % of runs
    95 % of gold flows get their profile in 99 % of runs
    links.uplink.utilization >= 90 %
    worst case of voice < 10 ms
    no loss of gold within its profile

The last two are about any run, whatever the seed: network calculus decides them (`guarantees`).
A name is a group of flows, a class of packets of a link's queue, a link, or a codepoint, which means all
groups of flows that have it: then the worst of them counts. Names may stand in backticks.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from perhop.errors import PerhopError
from perhop.measures import catalog, naming
from perhop.planning import guarantees
from perhop.planning.words import EXAMPLES, LOSS, MEASURES, NO_LOSS, PROFILES, STATISTICS, UNITS, NamedMeasure
from perhop.routers import units as codepoints
from perhop.scenario.quantities import NUMBER, UNIT
from perhop.sweeps.contradictions import Sides, ranked

Comparison: TypeAlias = Literal["<", "<=", ">", ">="]

_PERCENTILE = r"[0-9]+(?:\.[0-9]+)?"
_BOUND = re.compile(
    rf"(?P<left>.+?)\s*(?P<comparison><=|>=|≤|≥|<|>)\s*(?P<value>{NUMBER})\s*(?P<unit>{UNIT})"
    rf"(?:\s+in\s+(?P<runs>{NUMBER})\s*%\s+of(?:\s+the)?\s+runs)?"
)
_PROFILE = re.compile(
    rf"(?:at\s+least\s+)?(?P<value>{NUMBER})\s*%\s+of(?:\s+the)?\s+(?P<name>.+?)\s+flows\s+"
    rf"(?:get|reach)\s+their\s+profiles?(?:\s+in\s+(?P<runs>{NUMBER})\s*%\s+of(?:\s+the)?\s+runs)?"
)
_NO_LOSS = re.compile(
    r"no\s+loss\s+of\s+(?:the\s+)?(?P<name>.+?)(?:\s+within\s+(?:its|their)\s+profiles?)?", re.IGNORECASE
)
_STATISTIC = rf"(?P<statistic>P{_PERCENTILE}|{'|'.join(STATISTICS)})"
_BEFORE = re.compile(rf"{_STATISTIC}\s+(?:of\s+)?(?:the\s+)?(?P<rest>.+)", re.IGNORECASE)
_AFTER = re.compile(rf"{_STATISTIC}(?:\s+(?P<rest>.+))?", re.IGNORECASE)
_OF = re.compile(r"(?:of\s+)(?:the\s+)?(?P<name>.+)")
_EXAMPLE = '"P99 of one-way delay of voice < 20 ms"'


@dataclass(frozen=True, slots=True)
class Objective:
    """One promise.

    Attributes:
        text: As the file has it.
        measure: What it bounds; None for a metric by name.
        statistic: Of the measure, such as `P99`; empty where it has one alone.
        subject: Whose, as the file has it; empty where it says nobody.
        bound: In the metric's unit.
        runs: In which share of the runs the bound must be kept; None where the mean over the runs counts.
    """

    text: str
    measure: NamedMeasure | None
    statistic: str
    subject: str
    comparison: Comparison
    bound: float
    runs: float | None

    @property
    def upper(self) -> bool:
        """Whether the bound is one from above."""
        return self.comparison.startswith("<")

    def met(self, value: float) -> bool:
        """Whether a value keeps the bound."""
        return {
            "<": value < self.bound,
            "<=": value <= self.bound,
            ">": value > self.bound,
            ">=": value >= self.bound,
        }[self.comparison]

    def share_margin(self, share: float) -> float:
        """How far a share of runs that keep the bound is from the one that must: 0 at it, 1 where all do."""
        assert self.runs is not None
        return (share - self.runs) / (1 - self.runs)

    def margin(self, value: float) -> float:
        """How far a value is from the bound on the way to the best possible one; negative where it breaks it.

        The best is 0 for a bound from above, and the end of the scale for one from below: 93.2 for R, 4.5 for
        MOS, 1 for shares. Where there is no such end, such as of a rate, it is twice the bound.
        """
        if self.upper:
            return (self.bound - value) / (self.bound or 1.0)
        best = None if self.measure is None else self.measure.best
        room = best - self.bound if best is not None and best > self.bound else self.bound
        return (value - self.bound) / (room or 1.0)


def parse(text: str, where: str) -> Objective:
    """Read an objective.

    Raises:
        PerhopError: It is none that perhop understands; the message says what to write instead.
    """
    plain = " ".join(text.split())
    if found := _PROFILE.fullmatch(plain):
        share = _share(found["value"], where, text)
        return Objective(
            plain, PROFILES, "", _name(found["name"]), ">=", share, _runs(found["runs"], where, text)
        )
    if found := _NO_LOSS.fullmatch(plain):
        return Objective(plain, NO_LOSS, "", _name(found["name"]), ">=", 1.0, None)
    found = _BOUND.fullmatch(plain)
    if found is None:
        raise PerhopError(
            f"{where}: {text!r} is no objective; write a measure, <, <=, > or >=, and a value, "
            f"such as {_EXAMPLE}"
        )
    measure, statistic, subject = _left(found["left"], where, text)
    comparison: Any = found["comparison"].replace("≤", "<=").replace("≥", ">=")
    unit = _metric_unit(subject) if measure is None else measure.unit
    return Objective(
        plain,
        measure,
        statistic,
        subject,
        comparison,
        _value(found["value"], found["unit"], unit, f"{where}: {text!r}"),
        _runs(found["runs"], where, text),
    )


def _left(left: str, where: str, text: str) -> tuple[NamedMeasure | None, str, str]:
    """The measure, the statistic and the name in the text before the comparison."""
    before = _BEFORE.fullmatch(left)
    statistic, rest = (before["statistic"], before["rest"]) if before else ("", left)
    known = sorted(
        ((name, measure) for measure in MEASURES for name in measure.names), key=lambda one: -len(one[0])
    )
    for name, measure in known:
        if re.match(rf"{re.escape(name)}(?:\s|$)", rest, re.IGNORECASE) is None:
            continue
        tail = rest[len(name) :].strip()
        if not statistic and (after := _AFTER.fullmatch(tail)):
            statistic, tail = after["statistic"], after["rest"] or ""
        of = _OF.fullmatch(tail)
        if tail and of is None:
            raise PerhopError(f"{where}: {text!r}: write `{name} of NAME` in place of `{name} {tail}`")
        return measure, _statistic(measure, statistic, where, text), _name(of["name"]) if of else ""
    if not before and "." in left:
        return None, "", naming.current(_name(left))
    names = [name for name, _ in known]
    near = difflib.get_close_matches(rest.partition(" of ")[0], names, n=1, cutoff=0.6)
    hint = f"did you mean `{near[0]}`?" if near else f"there are {', '.join(sorted(names, key=str.lower))}"
    raise PerhopError(f"{where}: {text!r}: nothing measured is called `{rest.partition(' of ')[0]}`; {hint}")


def _statistic(measure: NamedMeasure, word: str, where: str, text: str) -> str:
    """The statistic's name among the measure's own."""
    name = STATISTICS.get(word.lower(), word.upper())
    if name in measure.statistics:
        return name
    listed = [one for one in measure.statistics if one]
    if not name or not listed:
        said = " or ".join(f"`{one} of {measure.name}`" for one in listed) or f"`{measure.name}`"
        raise PerhopError(f"{where}: {text!r}: say which: {said}")
    raise PerhopError(f"{where}: {text!r}: {measure.name} is measured as {', '.join(listed)}, not as {name}")


def _name(text: str) -> str:
    return text.strip().strip("`").strip()


def _metric_unit(metric: str) -> str:
    bound = catalog.BOUNDS.get(metric.rpartition(".")[2])
    unit = naming.unit_of_metric(metric) if bound is None else bound.unit
    return unit if unit in UNITS else ""


def _value(number: str, unit: str, kind: str, where: str) -> float:
    factors = UNITS[kind]
    if unit not in factors:
        raise PerhopError(f"{where}: the bound must be {EXAMPLES[kind]}, not `{f'{number} {unit}'.strip()}`")
    value = float(f"{float(number) * factors[unit]:.12g}")
    if kind == "fraction" and value > 1:
        raise PerhopError(f"{where}: the bound is a share, at most 100 %, not {number} {unit}")
    return value


def _share(number: str, where: str, text: str) -> float:
    share = float(number) / 100
    if not 0 < share <= 1:
        raise PerhopError(
            f"{where}: {text!r}: a share must lie above 0 % and be at most 100 %, not {number} %"
        )
    return share


def _runs(number: str | None, where: str, text: str) -> float | None:
    if number is None:
        return None
    share = _share(number, where, text)
    if share >= 1:
        raise PerhopError(
            f"{where}: {text!r}: no number of runs shows that all do; write such as 99 % of runs"
        )
    return share


# ---------------------------------------------------------------- whose


@dataclass(frozen=True, slots=True)
class Bound:
    """An objective with what measures it.

    Attributes:
        parts: For each subject, the metrics of its value: one, or all losses of a group.
        unit: A key of `UNITS`, in which values are.
    """

    objective: Objective
    parts: tuple[tuple[str, ...], ...]
    unit: str

    @property
    def is_guarantee(self) -> bool:
        """Whether it is about any run, which network calculus decides and no run."""
        return all(map(guarantees.is_bound, self.metrics))

    @property
    def metrics(self) -> tuple[str, ...]:
        """Every metric that it needs."""
        return tuple(metric for part in self.parts for metric in part)

    def sides(self) -> Iterator[Sides]:
        """Between what each subject must lie."""
        objective = self.objective
        least, most = (-math.inf, objective.bound) if objective.upper else (objective.bound, math.inf)
        strict = not objective.comparison.endswith("=")
        for part in self.parts:
            subject, rank = ranked(part[0])
            kinds = [(subject, *part[1:])]
            if objective.upper and len(part) > 1:  # of several losses together, none is larger
                kinds.append((subject,))
            for kind in kinds:
                yield Sides(objective.text, kind, rank, least, most, strict, objective.runs or 1.0)


@dataclass(frozen=True, slots=True)
class Subjects:
    """The subjects that objectives may name in a scenario.

    Attributes:
        groups: The groups of flows as the canonical scenario has them, by name; those of requests, which go
            back, beside them.
        names: Every metric that its runs have.
        candidates: Who has a measure, by the measure's name and statistic, once it was asked for.
    """

    groups: Mapping[str, Mapping[str, Any]]
    names: frozenset[str]
    candidates: dict[tuple[str, str], dict[str, tuple[str, ...]]] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, scenario: str, names: Sequence[str]) -> Subjects:
        """The subjects of a canonical scenario."""
        groups = {group["name"]: group for group in json.loads(scenario)["flows"]}
        return cls(groups, frozenset([*names, *guarantees.names(names)]))

    def bind(self, objective: Objective, where: str) -> Bound:
        """The objective with the metrics that measure it.

        Raises:
            PerhopError: Nothing has this name, several do, or what has it lacks the measure.
        """
        place = f"{where}: {objective.text!r}"
        measure = objective.measure
        if measure is None:
            if objective.subject not in self.names:
                near = difflib.get_close_matches(objective.subject, sorted(self.names), n=3, cutoff=0.3)
                raise PerhopError(
                    f"{place}: no such metric; near it are {', '.join(near)} (docs/measures.md)"
                )
            return Bound(objective, ((objective.subject,),), _metric_unit(objective.subject))
        key = (measure.name, objective.statistic)
        candidates = self.candidates.get(key)
        if candidates is None:
            candidates = self.candidates[key] = dict(self._candidates(measure, objective.statistic))
        parts = self._chosen(objective, candidates, place)
        if objective.runs is not None and guarantees.is_bound(parts[0][0]):
            raise PerhopError(f"{place}: a guarantee is about any run; leave `in … of runs` out")
        return Bound(objective, tuple(parts), measure.unit)

    def _candidates(self, measure: NamedMeasure, statistic: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Who has a measure, by name, with its metrics; of equal names the first counts.

        Classes of packets that queues of several links have go by `CLASS at LINK`.
        """
        found: dict[str, tuple[str, ...]] = {}
        for kind, statistics in (
            ("flows", measure.flows),
            ("applications", measure.users),
            ("populations", measure.populations),
        ):
            metric = statistics.get(statistic)
            for name in () if metric is None else self._having(kind, metric):
                if kind != "flows" or self._measured(measure, name):
                    every = (metric, "policing_ratio", "link_loss") if metric == LOSS else (metric,)
                    found.setdefault(name, tuple(f"{kind}.{name}.{one}" for one in every))
        metric = measure.links.get(statistic)
        places = [] if metric is None else list(self._having("links", metric))
        short = {name: name.partition(".classes.") for name in places}
        classes = Counter(inner or link for link, _, inner in short.values())
        for name, (link, _, inner) in short.items():
            shown = inner or link
            if inner and classes[inner] > 1:
                shown = f"{inner} at {link}"
            found.setdefault(shown, (f"links.{name}.{metric}",))
        yield from found.items()

    def _having(self, kind: str, metric: str) -> Iterator[str]:
        start, end = f"{kind}.", f".{metric}"
        for name in sorted(self.names):
            if name.startswith(start) and name.endswith(end):
                yield name[len(start) : -len(end)]

    def _measured(self, measure: NamedMeasure, name: str) -> bool:
        """Whether a group of flows has a measure; metrics of sweeps have a name for every group."""
        group = self.groups.get(name.removesuffix(" (reverse)"), {})
        if measure.datagrams:
            return "tcp" not in group.get("transport", {})
        if measure.advice:
            return "codec" in group and name in self.groups
        if measure is PROFILES:
            return isinstance(group.get("profile"), dict)
        return True

    def _chosen(
        self, objective: Objective, candidates: Mapping[str, tuple[str, ...]], place: str
    ) -> list[tuple[str, ...]]:
        measure, subject = objective.measure, objective.subject
        assert measure is not None
        if subject in candidates:
            return [candidates[subject]]
        own = {name: parts for name, parts in candidates.items() if not name.endswith(" (reverse)")}
        listed = ", ".join(f"`{name}`" for name in own) or "nothing in this scenario"
        if not subject:
            if len(own) != 1:
                raise PerhopError(f"{place}: say whose {measure.name}: of {listed}")
            return list(own.values())
        alike = [name for name in candidates if name.lower() == subject.lower()]
        if len(alike) == 1:
            return [candidates[alike[0]]]
        found = codepoints.codepoints(subject)
        if found is not None and subject not in self.groups:
            marked = [name for name, group in self.groups.items() if group.get("dscp") in found]
            parts = [candidates[name] for name in marked if name in candidates]
            if parts:
                return parts
            if not marked:
                raise PerhopError(f"{place}: no flows have the codepoint {subject}; give them `dscp`")
        if subject in self.groups or found is not None:
            advice = f"; {measure.advice}" if measure.advice else f"; it is measured of {listed}"
            raise PerhopError(f"{place}: {measure.name} is not measured of `{subject}`{advice}")
        near = difflib.get_close_matches(subject, own, n=1, cutoff=0.5)
        hint = f"did you mean `{near[0]}`?" if near else f"it is measured of {listed}"
        raise PerhopError(f"{place}: there is no `{subject}` with a {measure.name}; {hint}")
