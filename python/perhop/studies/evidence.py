"""Samples of a study's runs beside published values, for claims to look up."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from perhop.show.declared import Factor, Factors, Row
from perhop.statistics.intervals import Estimate
from perhop.statistics.observations import Distribution, Observations, paired


@dataclass(frozen=True, slots=True)
class Sample:
    """One number that a study takes from one run: the cell's factors, the metric with its unit, the value.

    Attributes:
        value: NaN where the run alone does not show it.
        of: Of a share, a fraction or in a unit of `WHOLE`: of how many packets or users it is; 1 for a share
            of the flows of a run, which share its random numbers.
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
"""The value of a share of 1 in each unit of shares."""


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
        """Return the published value, or None."""
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

    def first_run(self, metric: str, keys: Iterable[Factors], shown: str, unit: str) -> Iterator[Row]:
        """Rows of a metric in the first run, since a mean over runs would hide how it moves in time.

        Args:
            metric: The metric.
            keys: The places; those where nothing was measured are left out.
            shown: The rows' metric.
            unit: The rows' unit.
        """
        for key in keys:
            if self.measured(metric, key):
                values = self.by_seed(metric, key)
                yield Row(key, shown, unit, None, values[min(values)], None, 1)

    def row(
        self, factors: Factors, metric: str, unit: str, mean: float | None, published: float | None = None
    ) -> Row:
        """A row of a study's summaries, which is read off the means of all runs."""
        return Row(factors, metric, unit, published, mean, None, self.runs)

    def within(self, where: Factors, published: Sequence[Published]) -> Evidence:
        """The samples that have these factors, without them, beside other published values."""
        left = (
            (seed, replace(sample, factors={k: v for k, v in sample.factors.items() if k not in where}))
            for samples in self._samples.values()
            if where.items() <= next(iter(samples.values())).factors.items()
            for seed, sample in samples.items()
        )
        return Evidence(left, published)


_Name: TypeAlias = "tuple[str, frozenset[tuple[str, Factor]]]"


def _name(metric: str, factors: Factors) -> _Name:
    return metric, frozenset(factors.items())
