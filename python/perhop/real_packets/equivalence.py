"""Simulation beside real packets: the numbers that are compared, their margins, and the verdicts.

Runs of both draw their flows' starts from the same seeds, but the kernel's TCP varies by itself, so the two
are taken as independent samples, which are never paired. Their spreads may differ, and so differences are
Welch's. But there are few live runs, and few runs may lie close together by chance, which Welch's test takes
for their spread: of equal distributions, thirty runs and four differ by it in 6 % of the cases if they are
normal, in 12 % if exponential, and in a third if one run of five is far from the others. So the interval of a
difference is Student's, by the spread of all runs together, where that is the longer one.
"""

from __future__ import annotations

import json
import math
import re
import statistics
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, TypeAlias

from perhop._engine import student_t_cdf, student_t_quantile
from perhop.errors import ArgumentError
from perhop.files import arguments
from perhop.measures import catalog, finite_flows, flow_table
from perhop.measures.finite_flows import FiniteFlows
from perhop.measures.run import COLORS, Run
from perhop.real_packets.laboratory import LiveResult
from perhop.runs.result import Result
from perhop.scenario.quantities import RATES, TIMES, UNIT, canonical, with_printed
from perhop.show.readable import LOSS
from perhop.statistics.intervals import (
    ALPHA,
    CONFIDENCE,
    MOST_RUNS,
    Difference,
    Equivalence,
    Estimate,
    Verdict,
    equivalence,
    estimate,
    paired_difference,
    welch,
)
from perhop.statistics.multiplicity import holm
from perhop.statistics.proportions import difference, proportion

Kind: TypeAlias = Literal["class", "link"]
VERDICTS: tuple[Verdict, ...] = ("equivalent", "different", "cannot tell")


@dataclass(frozen=True, slots=True)
class ComparedMeasure:
    """A number that a run gives of each class or link.

    Attributes:
        id: Its name in results, such as `loss-green`.
        label: What a reader sees, unit included.
        unit: Its unit in results.
        scale: From that unit to the reader's.
        margin: The margin that it is held to, by name.
    """

    id: str
    label: str
    unit: str
    scale: float
    margin: str


_OF_APPLICATIONS = frozenset({"response_mean_s", "page_mean_s", "startup_s"})
"""Measures of users that are compared."""


def _measures() -> Iterator[ComparedMeasure]:
    """Yield the catalog's compared measures, and those of flows that come and go and of users."""
    for entry in catalog.SUMMARIZED:
        if entry.summary is not None and (compared := entry.summary.compared) is not None:
            shown = catalog.SHOWN[entry.unit]
            label = shown.head(entry.summary.label)
            yield ComparedMeasure(compared.id, label, entry.unit, shown.factor, compared.margin)
    yield ComparedMeasure("fct-p50", "FCT p50, ms", "s", 1e3, "completion")
    yield ComparedMeasure("slowdown-mean", "slowdown mean", "", 1.0, "mean-slowdown")
    for users in catalog.APPLICATION.values():
        for one in users:
            if one.name in _OF_APPLICATIONS:
                shown = catalog.SHOWN[one.unit]
                label = shown.head(one.label)
                yield ComparedMeasure(one.name, label, one.unit, shown.factor, "completion")


MEASURES = {measure.id: measure for measure in _measures()}

_FINITE = {entry.name: entry for entry in finite_flows.MEASURES}
_OF_POPULATIONS = {"fct-p50": _FINITE["completion_p50_s"], "slowdown-mean": _FINITE["slowdown_mean"]}


@dataclass(frozen=True, slots=True)
class Margin:
    """A margin of equivalence: the larger of a part of the simulated mean and an amount.

    Attributes:
        relative: A fraction of the simulated mean.
        absolute: In the measure's unit.
    """

    relative: float
    absolute: float

    def of(self, mean: float) -> float:
        """The margin about a simulated mean."""
        return max(self.relative * abs(mean), self.absolute)


MARGINS: Mapping[str, Margin] = {
    "throughput": Margin(0.1, 0.0),
    "loss": Margin(0.0, 0.01),
    "rtt": Margin(0.1, 1e-3),
    "one-way": Margin(0.1, 1e-3),
    "completion": Margin(0.1, 2e-3),
    "mean-slowdown": Margin(0.1, 0.0),
    "utilization": Margin(0.0, 0.02),
    "queue": Margin(0.1, 2.0),
    "delay": Margin(0.1, 2e-3),
}
"""Defaults. Parts of a whole are held to percentage points; amounts that may be near zero have a floor."""

_UNITS: Mapping[str, Mapping[str, float]] = {
    "throughput": with_printed(RATES),
    "loss": {"pp": 0.01},
    "utilization": {"pp": 0.01},
    "queue": with_printed({"p": 1.0}),
    **{name: with_printed(TIMES) for name in ("rtt", "one-way", "completion", "delay")},
}


def margins(given: Iterable[str]) -> dict[str, Margin]:
    """Margins as a user writes them, over the defaults.

    `10%` is a part of the simulated mean, for all that has such a margin by default; `delay=5ms`,
    `loss=0.5pp`, `queue=3p`, `throughput=20%` set one margin altogether.

    Raises:
        PerhopError: An entry is no margin.
    """
    found = dict(MARGINS)
    for text in arguments.texts("margins", given):
        name, is_named, value = text.rpartition("=")
        match = re.fullmatch(rf"(\d+(?:\.\d*)?|\.\d+)\s*((?!$){UNIT})", value.strip())
        if is_named and name not in MARGINS:
            raise ArgumentError(
                "margins", f"{text}: no margin is called `{name}`; there are {', '.join(MARGINS)}"
            )
        if match is None or (match[2] != "%" and match[2] not in _UNITS.get(name, {})):
            units = ", ".join(f"`{name}=5{unit}`" for unit in _UNITS.get(name, {}) if unit == canonical(unit))
            raise ArgumentError(
                "margins",
                f"{text}: not a margin; write {'`10%`' if not is_named else f'`{name}=10%`'}"
                + (f" or {units}" if units else " or one with a name, such as `delay=5ms`"),
            )
        number, unit = float(match[1]), match[2]
        if not is_named:
            found |= {
                key: Margin(number / 100, margin.absolute) for key, margin in found.items() if margin.relative
            }
        elif unit == "%":
            found[name] = Margin(number / 100, 0.0)
        else:
            found[name] = Margin(0.0, number * _UNITS[name][unit])
    return found


@dataclass(frozen=True, slots=True)
class Key:
    """Names one number of a run: a measure of a class of flows or of a link.

    Attributes:
        is_only_color: Of the loss of packets of a color: all packets of the runs have this color, so that
            tables do not name it.
    """

    kind: Kind
    name: str
    measure: str
    is_only_color: bool = field(default=False, compare=False)

    @property
    def of(self) -> ComparedMeasure:
        """The measure."""
        return MEASURES[self.measure]

    @property
    def text(self) -> str:
        """The text of the line's name."""
        return f"{self.name}: {LOSS if self.is_only_color else self.of.label}"


_OF_COLORS = frozenset(f"loss-{color}" for color in COLORS)

Samples: TypeAlias = "Mapping[Key, Mapping[int, float]]"
"""Numbers by seed."""


def collect(runs: Iterable[Run]) -> dict[Key, dict[int, float]]:
    """Every number that is compared, by seed, in reading order; what a run does not have is left out."""
    found: dict[Key, dict[int, float]] = {}
    for run in runs:
        for key, value in (*_of_classes(run), *_of_populations(run), *_of_applications(run), *_of_links(run)):
            found.setdefault(key, {})[run.seed] = value
    colors = _OF_COLORS & {key.measure for key in found}
    if len(colors) == 1:
        found = {replace(key, is_only_color=key.measure in colors): values for key, values in found.items()}
    order = list(MEASURES)
    names = list(dict.fromkeys((key.kind, key.name) for key in found))
    return {
        key: found[key]
        for key in sorted(found, key=lambda k: (names.index((k.kind, k.name)), order.index(k.measure)))
    }


def _of_classes(run: Run) -> Iterator[tuple[Key, float]]:
    for group, members in flow_table.members(run.raw):
        for entry in catalog.CLASS:
            if (compared := entry.summary.compared) is not None:
                value = entry.value(members)
                if not math.isnan(value):
                    yield Key("class", str(group["name"]), compared.id), value


def _of_populations(run: Run) -> Iterator[tuple[Key, float]]:
    for population in run.raw["populations"]:
        name = str(run.raw["groups"][int(run.raw["flows"]["group"][population["flow"]])]["name"])
        flows = FiniteFlows.of(population, run.raw["warmup_s"])
        for measure, entry in _OF_POPULATIONS.items():
            value = entry.value(flows)
            if not math.isnan(value):
                yield Key("class", name, measure), value


def _of_applications(run: Run) -> Iterator[tuple[Key, float]]:
    for users in run.raw["applications"]:
        for name, value in users["measures"].items():
            if name in _OF_APPLICATIONS and value is not None:
                yield Key("class", str(users["name"]), name), float(value)


def _of_links(run: Run) -> Iterator[tuple[Key, float]]:
    for link in run.raw["links"]:
        for entry in (*catalog.LINK, *catalog.QUEUE):
            if entry.summary is not None and (compared := entry.summary.compared) is not None:
                value = link[entry.name]
                if value is not None:
                    yield Key("link", str(link["name"]), compared.id), float(value)


def packets(runs: Iterable[Run]) -> dict[Key, list[float]]:
    """Return the number of packets behind each share that `collect` finds, one for each run that has it."""
    found: dict[Key, list[float]] = {}
    for run in runs:
        for group, members in flow_table.members(run.raw):
            for of_class in catalog.CLASS:
                compared = of_class.summary.compared
                if compared is None or of_class.trials is None or math.isnan(of_class.value(members)):
                    continue
                key = Key("class", str(group["name"]), compared.id)
                found.setdefault(key, []).append(of_class.trials(members))
        for link in run.raw["links"]:
            for entry in (*catalog.LINK, *catalog.QUEUE):
                trials = catalog.LINK_TRIALS.get(entry.name)
                compared = None if entry.summary is None else entry.summary.compared
                if compared is not None and trials is not None and link[entry.name] is not None:
                    found.setdefault(Key("link", str(link["name"]), compared.id), []).append(trials(link))
    return {key: of for key, of in found.items() if len(of) > 1 and all(of)}


def between(a: Sequence[float], b: Sequence[float]) -> Difference:
    """The difference b - a of two independent samples: Welch's or Student's, whose 95 % interval is longer.

    Args:
        a: One value for each run, all finite, at least one.
        b: Likewise.
    """
    return max(welch(a, b), _student(a, b), key=_length)


def _student(a: Sequence[float], b: Sequence[float]) -> Difference:
    """The interval by the spread of all runs together, taken to be alike in both samples."""
    value = math.fsum(b) / len(b) - math.fsum(a) / len(a)
    if min(len(a), len(b)) < 2:
        return Difference(value, None, None)
    error = math.sqrt(_pooled(a, b) * (1 / len(a) + 1 / len(b)))
    return Difference(value, error, float(len(a) + len(b) - 2))


def _pooled(a: Sequence[float], b: Sequence[float]) -> float:
    """The variance of all runs about the mean of their own sample."""
    squares = [(len(one) - 1) * statistics.variance(one) for one in (a, b)]
    return sum(squares) / (len(a) + len(b) - 2)


def _length(found: Difference) -> float:
    ends = found.interval()
    return 0.0 if ends is None else ends[1] - ends[0]


def tested(a: Sequence[float], b: Sequence[float], margin: float) -> Equivalence:
    """The tests of `perhop.statistics.equivalence`, by the difference `between` both.

    Args:
        a: One value for each run, all finite, at least one.
        b: Likewise.
        margin: At least 0.
    """
    found = between(a, b)
    narrow, wide = found.interval(1 - 2 * ALPHA), found.interval()
    if found == welch(a, b) or found.error is None or found.freedom is None or not narrow or not wide:
        return equivalence(a, b, margin)
    p = student_t_cdf(found.freedom, (abs(found.value) - margin) / found.error)
    if _within(narrow, margin) == "equivalent":
        return Equivalence(found, margin, p, "equivalent")
    if _within(wide, margin) == "different":
        return Equivalence(found, margin, p, "different")
    return Equivalence(found, margin, p, "cannot tell", _runs_needed(a, b, found.value, margin))


def _runs_needed(a: Sequence[float], b: Sequence[float], value: float, margin: float) -> int | None:
    """Return how many runs of b would tell, if both spread as all runs together do."""
    room = abs(abs(value) - margin)
    confidence = 1 - 2 * ALPHA if abs(value) < margin else CONFIDENCE
    variance = _pooled(a, b)

    def tell(runs: int) -> bool:
        others = max(len(a), runs)
        error = math.sqrt(variance * (1 / runs + 1 / others))
        return student_t_quantile(runs + others - 2, 0.5 + confidence / 2) * error < room

    needed = bisect_left(range(MOST_RUNS + 1), 1, lo=len(b) + 1, key=tell)
    return needed if needed <= MOST_RUNS else None


def _within(ends: tuple[float, float], margin: float) -> Verdict:
    """The verdict on a difference by its interval."""
    low, high = ends
    if -margin <= low and high <= margin:
        return "equivalent"
    return "different" if low > margin or high < -margin else "cannot tell"


@dataclass(frozen=True, slots=True)
class Line:
    """One number, simulated beside live.

    Attributes:
        live: None where no valid live run has it; `test` likewise.
    """

    key: Key
    simulated: Estimate
    live: Estimate | None
    test: Equivalence | None

    @property
    def verdict(self) -> str:
        """The verdict, or "cannot tell" without a test."""
        return "cannot tell" if self.test is None else self.test.verdict

    @property
    def p(self) -> float | None:
        """The p value of the verdict: of a difference within the margin where it is "different" (two-sided).

        Else of one beyond it (the larger of two one-sided ones).
        """
        if self.test is None or self.test.verdict != "different":
            return None if self.test is None else self.test.p
        found = self.test.difference
        if found.error is None or found.freedom is None:
            return None
        if found.error == 0:
            return 0.0
        beyond = (abs(found.value) - self.test.margin) / found.error
        return min(1.0, 2 * student_t_cdf(found.freedom, -beyond))


def corrected(lines: Sequence[Line]) -> list[tuple[str, float | None]]:
    """Each line's verdict, and its p value, where with 95 % none of all verdicts may err (Holm 1979)."""
    return [
        (line.verdict if p is not None and p <= ALPHA else "cannot tell", p)
        for line, p in zip(lines, holm([line.p for line in lines]), strict=True)
    ]


@dataclass(frozen=True, eq=False)
class Comparison:
    """A scenario simulated and on real packets.

    Attributes:
        margins: What counts as no difference, by name.
    """

    simulated: Result
    live: LiveResult
    margins: Mapping[str, Margin]

    @property
    def title(self) -> str:
        """The scenario's title; empty where it has none."""
        return str(json.loads(self.live.scenario).get("title") or "")

    @property
    def valid(self) -> Sequence[Run]:
        """The live runs that count."""
        return [run for run, report in zip(self.live.runs, self.live.reports, strict=True) if report.valid]

    @cached_property
    def simulated_samples(self) -> Samples:
        """The value of every simulated run."""
        return collect(self.simulated.runs)

    @cached_property
    def live_samples(self) -> Samples:
        """The value of every valid live run."""
        return collect(self.valid)

    @cached_property
    def all_live_samples(self) -> Samples:
        """The value of every live run, the invalid ones too."""
        return collect(self.live.runs)

    @cached_property
    def lines(self) -> list[Line]:
        """Every number that the simulation gives, beside what was measured live."""
        return [self._line(key, list(values.values())) for key, values in self.simulated_samples.items()]

    def _line(self, key: Key, simulated: Sequence[float]) -> Line:
        expected = estimate(simulated)
        live = list(self.live_samples.get(key, {}).values())
        if not live:
            return Line(key, expected, None, None)
        margin = self.margins[key.of.margin].of(expected.mean)
        test = tested(simulated, live, margin)
        if test.difference.error == 0 and key in self._packets:
            # All runs lost nothing, say, which does not show that nothing can be lost.
            first, second = (
                proportion([value * of for value, of in zip(values, packets, strict=True)], packets)
                for values, packets in zip((simulated, live), self._packets[key], strict=True)
            )
            test = replace(test, p=None, verdict=_within(difference(first, second), margin), runs_needed=None)
        return Line(key, expected, estimate(live), test)

    @cached_property
    def _packets(self) -> Mapping[Key, tuple[list[float], list[float]]]:
        """The number of packets behind each share, in every simulated run and in every valid live one."""
        simulated, live = packets(self.simulated.runs), packets(self.valid)
        return {key: (simulated[key], live[key]) for key in simulated if key in live}


@dataclass(frozen=True, slots=True)
class Direction:
    """The difference of two mechanisms in a number, simulated and live.

    Attributes:
        simulated: First minus second.
        live: The same; None where there is nothing to compare.
    """

    key: Key
    simulated: Estimate
    live: Difference | None

    @property
    def agree(self) -> bool | None:
        """Whether both differences have the same sign; None where an interval holds 0, or there is none."""
        live = None if self.live is None else _sign(self.live.interval())
        simulated = _sign(self.simulated.ci95)
        return None if not simulated or not live else simulated == live


def directions(first: Comparison, second: Comparison) -> list[Direction]:
    """First minus second for every number that both have.

    Simulated, runs are on the same seeds and differences are paired; live, they are between independent runs.
    """
    found = []
    for key, here in first.simulated_samples.items():
        there = second.simulated_samples.get(key)
        if there is None or not here.keys() & there.keys():
            continue
        live = [list(one.live_samples.get(key, {}).values()) for one in (second, first)]
        found.append(Direction(key, paired_difference(here, there), between(*live) if all(live) else None))
    return found


def _sign(interval: tuple[float, float] | None) -> int:
    """+1 or -1 where the interval lies on one side of 0, else 0."""
    if interval is None:
        return 0
    low, high = interval
    return (low > 0) - (high < 0)
