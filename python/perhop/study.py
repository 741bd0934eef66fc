"""What a study is: cells to simulate, samples to take, published values to compare with, claims to judge.

A study is data and small functions; it neither runs anything nor draws anything. `perhop.reproduction` runs
it, and `perhop.output` shows it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from perhop.judging import STATES, Judgement, by_readings
from perhop.observations import Observations, paired
from perhop.output.numbers import exact
from perhop.statistics import MOST_RUNS, Estimate

if TYPE_CHECKING:
    from perhop.observations import Distribution
    from perhop.runs import Run

Factor: TypeAlias = "str | float | int | bool"
Factors: TypeAlias = "Mapping[str, Factor]"
"""The values that identify a number, such as `{"scheme": "rio", "profile_mbps": 2.0}`."""
Where: TypeAlias = "Mapping[str, Factor | tuple[Factor, ...]]"
"""Which rows to show: the value, or the values, that a factor must have."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One number out of one run.

    Attributes:
        value: NaN where the run alone does not show it.
        of: Of a share, a fraction or in a unit of `WHOLE`: of how many packets or users it is; 1 for a share
            of the flows of a run, which share its luck.
        level: Of a percentile: which, such as 0.99.
        distribution: Of a percentile: that of all packets, pages or flows of the run, in the value's unit.
        at_least: Of a mean: it is a lower bound, since the longest times had not ended when the run did.
        least: No value can be lower; nor can the interval.
    """

    factors: Factors
    metric: str
    unit: str
    value: float
    of: float | None = None
    level: float | None = None
    distribution: Distribution | None = None
    at_least: bool = False
    least: float = 0.0


WHOLE: Mapping[str, float] = {"%": 100.0, "of 10": 10.0}
"""What a share of 1 is in units of shares."""


@dataclass(frozen=True, slots=True)
class Published:
    """One number as the paper states it.

    Attributes:
        derived: It is arithmetic on printed numbers, such as the sum of a row.
        misprint: It cannot be right, and does not count in distances to what is printed.
    """

    factors: Factors
    metric: str
    value: float
    derived: bool = False
    misprint: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a study's result: the mean over runs beside what the paper says.

    Attributes:
        mean: None where the measure does not exist.
        ci95: None for a single run, and for measures that are read off the means of all runs; an end that is
            not known is infinite.
        derived: The published value is arithmetic on printed numbers.
        spread: The lowest and the highest single run, where the published value is a single run, too.
        of: How many runs there are, if only some of them have a value.
        misprint: The published value cannot be right.
    """

    factors: Factors
    metric: str
    unit: str
    published: float | None
    mean: float | None
    ci95: tuple[float, float] | None
    runs: int
    derived: bool = False
    spread: tuple[float, float] | None = None
    of: int | None = None
    misprint: bool = False

    @property
    def is_partial(self) -> bool:
        """Only some of the runs have a value."""
        return self.of is not None and self.runs < self.of

    @property
    def drawn(self) -> tuple[float, float] | None:
        """The interval's ends for a picture: one that is not known is as far away as the other."""
        if self.mean is None or self.ci95 is None:
            return None
        below, above = self.mean - self.ci95[0], self.ci95[1] - self.mean
        if math.isinf(below) and math.isinf(above):
            return None
        below, above = (above if math.isinf(below) else below), (below if math.isinf(above) else above)
        return self.mean - below, self.mean + above

    @property
    def within(self) -> bool | None:
        """Whether the published value lies among our single runs; None where that cannot be said."""
        if self.published is None or self.spread is None:
            return None
        return self.spread[0] <= self.published <= self.spread[1]


@dataclass(frozen=True, slots=True)
class Sentence:
    """A few words of a paper, verbatim, and where they stand in it, such as `"3, Table 1"`."""

    quote: str
    section: str


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read a sentence, or another rule for it: what it says, and what judges it so.

    Attributes:
        name: It, in a few words, such as "delay control alone".
        rule: How it is judged.
        judge: Judges it.
    """

    name: str
    rule: str
    judge: Callable[[Evidence], Judgement]


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement that the measurement can refute.

    Attributes:
        id: Its name within the study.
        text: The statement, in one sentence of ours.
        judge: Judges it; one with readings holds if all of them do.
        source: The paper's sentence that it judges; None for a finding of ours, which never counts with the
            paper's.
        rule: How it is judged.
        ours: What in the rule is ours, such as a threshold or a tolerance; empty where nothing is.
        tried: What was varied to find out why the claim does not hold; empty where nothing was.
        why: Why one would expect it, where it is a prediction: a statement written before the runs, of a
            study that belongs to no paper.
        readings: The ways to read its sentence, where there are several that the text allows alike.
        others: Rules that do not decide, such as one with another tolerance.
        chose: What it was used to choose of a study's setting; such a claim does not count.
    """

    id: str
    text: str
    judge: Callable[[Evidence], Judgement]
    source: Sentence | None = None
    rule: str = ""
    ours: str = ""
    tried: str = ""
    why: str = ""
    readings: Sequence[Reading] = ()
    others: Sequence[Reading] = ()
    chose: str = ""

    @property
    def finding(self) -> bool:
        """Whether the claim is ours beside a paper's: neither a sentence of the paper nor a prediction."""
        return self.source is None and not self.why

    @property
    def counted(self) -> bool:
        """Whether the claim chose no setting, so that its verdict says something of the paper."""
        return not self.chose

    @property
    def rules(self) -> str:
        """How it is judged, by each of its readings."""
        if not self.readings:
            return self.rule
        return " ".join(f"Read as “{one.name}”: {one.rule}" for one in self.readings)

    def verdict(self, evidence: Evidence) -> Verdict:
        """The verdict on the claim by all of its readings and rules."""
        readings = {one.name: one.judge(evidence) for one in self.readings}
        others = {one.name: one.judge(evidence) for one in self.others}
        return Verdict(self, by_readings(readings) if readings else self.judge(evidence), readings, others)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judged claim.

    Attributes:
        readings: The judgement of each reading of the sentence, by its name.
        others: The same of each rule that does not decide.
    """

    claim: Claim
    judgement: Judgement
    readings: Mapping[str, Judgement] = field(default_factory=dict)
    others: Mapping[str, Judgement] = field(default_factory=dict)

    @property
    def holds(self) -> bool | None:
        """True, False, or None where the runs cannot tell."""
        return self.judgement.holds

    @property
    def state(self) -> str:
        """How the verdict reads, with the runs that it would take where that can be said."""
        if self.holds is not None:
            return STATES[self.holds]
        if self.judgement.differ:
            return f"{STATES[None]} (readings differ)"
        needed = self.judgement.runs_needed
        return (
            f"{STATES[None]} (needs more than {MOST_RUNS} runs)"
            if needed is None
            else f"{STATES[None]} (needs about {needed} runs)"
        )

    @property
    def by_others(self) -> str:
        """What the rules that do not decide would say, such as "By other rules: within a tenth: holds."."""
        if not self.others:
            return ""
        said = "; ".join(f"{name}: {STATES[one.holds]}" for name, one in self.others.items())
        return f"By other rules: {said}."


@dataclass(frozen=True, slots=True)
class Note:
    """A remark on the paper's text; `impossible` marks a printed number that cannot be right."""

    text: str
    impossible: bool = False


@dataclass(frozen=True, slots=True)
class Axis:
    """A factor on an axis of a table or a plot.

    Attributes:
        factor: Its name.
        label: What a reader sees.
        names: Text for a value, in the order in which values appear; values not named are shown as they are,
            sorted as numbers.
    """

    factor: str
    label: str
    names: Mapping[Any, str] = field(default_factory=dict)

    def text(self, value: Factor) -> str:
        """How a value reads."""
        if value in self.names:
            return self.names[value]
        return exact(value) if isinstance(value, int | float) else str(value)

    def order(self, values: Iterable[Factor]) -> list[Factor]:
        """The distinct values in reading order."""
        named = list(self.names)
        return sorted(
            set(values), key=lambda v: (named.index(v) if v in named else len(named), *_sort_key(v))
        )


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound against which each number of a table or a plot is held by its 95 % interval.

    Attributes:
        met: What a number at or above the bound says, such as "keeps the profile".
        missed: What one below it says.
        at: The bound.
    """

    met: str
    missed: str
    at: float

    def state(self, row: Row) -> bool | None:
        """Whether the whole interval is at or above the bound; None where it contains the bound."""
        if row.mean is None:
            return None
        low, high = row.ci95 or (row.mean, row.mean)
        return True if low >= self.at else False if high < self.at else None


@dataclass(frozen=True, slots=True)
class Table:
    """A table: one line for each value of `rows`; a column for each metric and each value of `columns`.

    Attributes:
        metrics: Metrics to show, each with the head of its columns; a single one needs no head.
        bound: Each number says by a sign on which side of it it is.
    """

    title: str
    metrics: Mapping[str, str]
    rows: Axis
    columns: tuple[Axis, ...] = ()
    where: Where = field(default_factory=dict)
    digits: int = 3
    bound: Bound | None = None


@dataclass(frozen=True, slots=True)
class Reference:
    """A line to hold the measured values against.

    Attributes:
        by: The factor, facet or x, whose values choose the height.
        heights: Height for each value of that factor.
    """

    label: str
    by: str
    heights: Mapping[Any, float]


@dataclass(frozen=True, slots=True)
class Plot:
    """A picture of one metric, one panel for each value of `facet`.

    Attributes:
        kind: "lines" (a numeric or ordered x), "cdf" (cumulative distributions: lines that all end at 1),
            "points" (categories), "bars" (categories, series side by side), "dots" (categories below each
            other, the metric to the right), "matrix" (a field for each x and series, with its number and
            the color of its side of `bound`), or "states" (a field for each x and series, which says by color
            and sign whether a claim holds there: 1, does not: 0, or is open: 0.5).
        ordinal: Set the x values of lines at equal distances, whatever their size.
        limits: A metric whose published value is an x position: where the paper says the series meets the
            first reference line.
        limits_where: Factors that pick the right one of those values.
        band: The meaning of a shaded band of dots, and its ends.
        interval: What the rows' intervals are.
        reading: How to read lines and bands, where these are no means and intervals.
        bound: Of a matrix.
        logarithmic: The x axis of lines has a logarithmic scale.
        one_scale: Its panels show one quantity, and may have one scale.
        steady: Each named series keeps its color where another has no values; always so of "cdf".
        groups: Of states: what each x value belongs to.
    """

    id: str
    title: str
    kind: str
    metric: str
    x: Axis
    series: Axis
    y_label: str
    facet: Axis | None = None
    where: Where = field(default_factory=dict)
    references: tuple[Reference, ...] = ()
    ordinal: bool = False
    limits: str | None = None
    limits_where: Where = field(default_factory=dict)
    from_zero: bool = True
    band: tuple[str, float, float] | None = None
    interval: str = "95 %"
    reading: str = ""
    bound: Bound | None = None
    logarithmic: bool = False
    steady: bool = False
    one_scale: bool = True
    groups: Mapping[Any, str] = field(default_factory=dict)

    @property
    def is_curves(self) -> bool:
        """Whether the figure has lines over a numeric or ordered x."""
        return self.kind in ("lines", "cdf")

    def rank(self, value: Factor, index: int) -> int:
        """The place of a series among the colors; `index` is that among those of its panel."""
        if (self.steady or self.kind == "cdf") and value in self.series.names:
            return list(self.series.names).index(value)
        return index


@dataclass(frozen=True, slots=True)
class Study:
    """One table or figure of a paper, or one question about today's mechanisms.

    Attributes:
        id: First author and item, such as `kim-table1`, or group and item.
        cells: One mapping of factors for each scenario to simulate.
        scenario: The scenario of a cell, as plain data.
        samples: The numbers to keep of one run of a cell.
        summaries: Rows that are read off the means of all runs.
        extra: It is no printed item of the paper but a sensitivity study, a variant or a sweep, which
            `perhop reproduce` leaves to `--all`.
        is_map: It judges the paper's claims under other assumptions; see `perhop.studies.assumptions`.
        single_run: The published values come from one run, so they are held against the spread of single
            runs, not only against the interval of the mean.
        assumptions: What had to be chosen because the paper is silent.
        method: How the setting was simulated, in a few sentences.
    """

    id: str
    title: str
    source: str
    summary: str
    cells: Sequence[Factors]
    scenario: Callable[[Factors], Mapping[str, Any]]
    samples: Callable[[Factors, Run], Iterable[Sample]]
    published: Sequence[Published]
    claims: Sequence[Claim]
    tables: Sequence[Table]
    plots: Sequence[Plot]
    notes: Sequence[Note] = ()
    assumptions: Sequence[str] = ()
    method: str = ""
    summaries: Callable[[Evidence], Iterable[Row]] | None = None
    extra: bool = False
    is_map: bool = False
    single_run: bool = False
    default_runs: int = 6


class UnmeasuredError(KeyError):
    """Nothing was measured under a name, such as the losses of packets that nobody sent."""


class Evidence:
    """All samples of a study, for claims to look up: a number's name is its metric and all its factors."""

    def __init__(self, samples: Iterable[tuple[int, Sample]], published: Sequence[Published]) -> None:
        """Index (seed, sample) pairs and published values."""
        self._samples: dict[_Name, dict[int, Sample]] = defaultdict(dict)
        self._estimates: dict[_Name, Estimate] = {}
        self._published = {_name(p.metric, p.factors): p for p in published}
        seeds = set()
        for seed, sample in samples:
            self._samples[_name(sample.metric, sample.factors)][seed] = sample
            seeds.add(seed)
        self._seeds = sorted(seeds)

    def by_seed(self, metric: str, factors: Factors) -> Mapping[int, float]:
        """The value of every run that has one.

        Raises:
            UnmeasuredError: Nothing was measured under this name.
        """
        found = self._named(metric, factors).items()
        return {seed: sample.value for seed, sample in found if not math.isnan(sample.value)}

    def measured(self, metric: str, factors: Factors) -> bool:
        """Whether any run has a value."""
        return _name(metric, factors) in self._samples

    def estimate(self, metric: str, factors: Factors) -> Estimate:
        """The value and its interval, by the method of `docs/statistics.md` for a measure of its kind.

        Where the runs do not show it, the value is NaN, and the interval has no ends.

        Raises:
            UnmeasuredError: Nothing was measured under this name.
        """
        name = _name(metric, factors)
        if name not in self._estimates:
            found = self._observations(metric, factors).estimate
            self._estimates[name] = self._in_unit(found, metric, factors)
        return self._estimates[name]

    def mean(self, metric: str, factors: Factors) -> float:
        """The value of `estimate`."""
        return self.estimate(metric, factors).mean

    def spread(self, metric: str, factors: Factors) -> tuple[float, float]:
        """The lowest and the highest run; with n runs, one more falls in between with (n - 1)/(n + 1)."""
        values = self.by_seed(metric, factors).values()
        return min(values), max(values)

    def difference(
        self,
        metric: str,
        a: Factors,
        b: Factors,
        *,
        factor: float = 1.0,
        second_metric: str | None = None,
    ) -> Estimate:
        """The difference a - `factor` b, paired by seed, with its own interval; see `estimate`.

        Args:
            metric: Of both.
            a: The first number's factors.
            b: The second one's.
            factor: Of the second number; 1 for a share.
            second_metric: Of the second number, if it is another metric.

        Raises:
            UnmeasuredError: One of them was not measured.
        """
        second = self._observations(second_metric or metric, b, factor)
        found = paired(self._observations(metric, a), second)
        return self._in_unit(found, metric, a)

    def _named(self, metric: str, factors: Factors) -> Mapping[int, Sample]:
        name = _name(metric, factors)
        if name not in self._samples:
            raise UnmeasuredError(f"{metric} of {dict(factors)}")
        return self._samples[name]

    def _observations(self, metric: str, factors: Factors, factor: float = 1.0) -> Observations:
        """All runs of the study; of a share, as a fraction."""
        named = self._named(metric, factors)
        samples = [named.get(seed) for seed in self._seeds]
        known = list(named.values())
        is_share = all(sample.of is not None for sample in known)
        if is_share and factor != 1:
            raise ValueError(f"{metric} is a share, which is compared as it is")
        scale = factor / (WHOLE.get(known[0].unit, 1.0) if is_share else 1.0)
        values = tuple(math.nan if one is None else scale * one.value for one in samples)
        if is_share:
            return Observations(values, 0.0, 1.0, tuple(one.of or 0.0 if one else 0.0 for one in samples))
        least = scale * known[0].least
        if any(value < least for value in values):
            raise ValueError(f"{metric} is below {least:g}, which it says that no value is")
        if known[0].level is not None:
            distributions = tuple(
                of if of is None or scale == 1 else replace(of, values=scale * of.values)
                for of in (None if one is None else one.distribution for one in samples)
            )
            return Observations(values, least, level=known[0].level, distributions=distributions)
        at_least = tuple(one is not None and one.at_least for one in samples)
        return Observations(values, least, at_least=at_least)

    def _in_unit(self, found: Estimate | None, metric: str, factors: Factors) -> Estimate:
        if found is None:
            return Estimate(math.nan, (-math.inf, math.inf), 0, len(self._seeds))
        first = next(iter(self._named(metric, factors).values()))
        whole = 1.0 if first.of is None else WHOLE.get(first.unit, 1.0)
        return found.mapped(lambda value: whole * value)

    def published(self, metric: str, factors: Factors) -> float | None:
        """What the paper says, or None."""
        found = self._published.get(_name(metric, factors))
        return None if found is None else found.value

    @property
    def runs(self) -> int:
        """Number of runs of each cell."""
        return max((len(samples) for samples in self._samples.values()), default=0)

    def rows(self, *, spread: bool = False) -> list[Row]:
        """One row for each measured number, in the order in which the first run reported them.

        Args:
            spread: Give the lowest and the highest single run, too.
        """
        rows = []
        for name, samples in self._samples.items():
            sample = next(iter(samples.values()))
            found = self.estimate(sample.metric, sample.factors)
            stated = self._published.get(name)
            is_known = not math.isnan(found.mean)
            rows.append(
                Row(
                    sample.factors,
                    sample.metric,
                    sample.unit,
                    None if stated is None else stated.value,
                    found.mean if is_known else None,
                    found.ci95 if is_known else None,
                    found.runs,
                    derived=stated is not None and stated.derived,
                    spread=self.spread(sample.metric, sample.factors) if spread and found.runs > 1 else None,
                    of=found.of,
                    misprint=stated is not None and stated.misprint,
                )
            )
        return rows

    def within(self, where: Factors, published: Sequence[Published]) -> Evidence:
        """The samples that have these factors, without them, beside other published values."""
        left = (
            (seed, replace(sample, factors={k: v for k, v in sample.factors.items() if k not in where}))
            for samples in self._samples.values()
            if where.items() <= next(iter(samples.values())).factors.items()
            for seed, sample in samples.items()
        )
        return Evidence(left, published)


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
    """What a paper says about one of its items.

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


def chosen(rows: Iterable[Row], metric: str, where: Where) -> list[Row]:
    """The rows of one metric that have the given factor values."""

    def fits(row: Row) -> bool:
        return all(
            row.factors.get(name) in (wanted if isinstance(wanted, tuple) else (wanted,))
            for name, wanted in where.items()
        )

    return [row for row in rows if row.metric == metric and fits(row)]


def rounded(value: float) -> float:
    """The value to nine significant digits: enough for any reader, and the same text on every machine.

    Raises:
        ValueError: The value is not finite.
    """
    if not math.isfinite(value):
        raise ValueError(f"{value} has no place in a result")
    return float(f"{value:.8e}")


_Name: TypeAlias = "tuple[str, frozenset[tuple[str, Factor]]]"


def _name(metric: str, factors: Factors) -> _Name:
    return metric, frozenset(factors.items())


def _sort_key(value: Factor) -> tuple[int, float, str]:
    return (1, 0.0, value) if isinstance(value, str) else (0, float(value), "")


def one_line(text: str) -> str:
    """A text of several lines as one."""
    return " ".join(text.split())
