"""The coverage of the true value by intervals: one scenario, many disjoint groups of runs."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from tools.coverage import intervals
from tools.coverage.truth import Truth

from perhop.runs import simulate
from perhop.runs.companions import Gathered, companions, is_companion
from perhop.runs.result import Result
from perhop.scenario import reading
from perhop.scenario.warmup import from_the_beginning

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from tools.coverage.intervals import Ends
    from tools.coverage.settings import Setting
    from tools.coverage.truth import Band


Where: TypeAlias = Literal["tables", "sweeps", "differences"]
WHERE: tuple[Where, ...] = get_args(Where)
Method: TypeAlias = Literal["perhop", "t"]
Found: TypeAlias = "dict[tuple[Method, Where, int, str], list[Ends]]"
"""The interval of each group, by method, place, runs of a group and measure."""

BATCH = 300
"""Runs that are held in memory at once."""
FEWEST_FOR_TRUTH = 3000
"""Runs from which true values are known well enough for groups of few runs."""
SLACK = 1e-4
"""A miss by less, relative to the values, is beyond the digits that are printed, and does not count."""


@dataclass(frozen=True, slots=True)
class Covered:
    """One measure of one scenario.

    Attributes:
        method: Of the interval: perhop's own, or Student's t of the runs' own values, for comparison.
        where: The place of the interval in results.
        measure: Its name.
        runs: Of each group.
        truth: Where the true value lies.
        groups: Groups with an interval.
        without: Groups without one, since too few runs have a value.
        below: Groups whose interval ends below the true value.
        above: Groups whose interval begins above it.
    """

    scenario: str
    method: Method
    where: Where
    measure: str
    runs: int
    truth: Band
    groups: int
    without: int
    below: int
    above: int

    @property
    def covered(self) -> int:
        """Groups whose interval contains the true value."""
        return self.groups - self.below - self.above


@dataclass(frozen=True, slots=True)
class Amount:
    """The numbers of groups and runs of a measurement.

    Attributes:
        runs: The numbers of runs that a group can have, each tried for itself.
        repetitions: Groups of each.
        most_runs: Runs of a scenario at most: larger groups are fewer.
        seed: The first seed.
        truth_from: Runs of a scenario at least.
    """

    runs: Sequence[int]
    repetitions: int
    most_runs: int
    seed: int = 1
    truth_from: int = FEWEST_FOR_TRUTH

    @property
    def pool(self) -> int:
        """Runs of a scenario in all."""
        wanted = max(self.repetitions * size for size in self.runs)
        return max(self.truth_from, min(wanted, self.most_runs))


def measure(
    name: str,
    setting: Setting,
    amount: Amount,
    *,
    places: Collection[Where] = WHERE,
    jobs: int | None = None,
) -> list[Covered]:
    """Try the intervals of a scenario.

    Args:
        name: What to call it.
        setting: The scenario.
        amount: How much to try.
        places: Where the intervals stand. The other setting is run for differences alone.
        jobs: Runs at once; all cores if not given.
    """
    settings = (setting.text, setting.other) if "differences" in places else (setting.text,)
    # The truth comes from runs without a warm-up, so the intervals are of such runs, too.
    texts = [from_the_beginning(reading.canonical(one)) for one in settings]
    truths = [Truth(text) for text in texts]
    _follow(truths, amount, jobs)
    found: Found = defaultdict(list)
    done = dict.fromkeys(amount.runs, 0)
    # Groups lie within a batch, so its size is a multiple of every group's.
    batch = math.lcm(*amount.runs)
    batch *= max(1, BATCH // batch)
    for first in range(0, amount.pool, batch):
        results = [
            simulate.run(json.loads(text), runs=batch, seed=amount.seed + first, jobs=jobs) for text in texts
        ]
        both = [
            [
                values | dict(companions(run.raw, result.scenario))
                for values, run in zip(of.add(result.runs), result.runs, strict=True)
            ]
            for of, result in zip(truths, results, strict=True)
        ]
        for size in amount.runs:
            for begin in range(0, batch, size):
                if done[size] == amount.repetitions or first + begin + size > amount.pool:
                    break
                done[size] += 1
                part = slice(begin, begin + size)
                group = Result(texts[0], tuple(results[0].runs[part]))
                of_perhop = dict(_group(group, [columns[part] for columns in both], places))
                of_t = _by_t(of_perhop, [of.values[first:][part] for of in truths])
                by_method: tuple[tuple[Method, dict[tuple[Where, str], Ends]], ...]
                by_method = ("perhop", of_perhop), ("t", of_t)
                for method, ends_of in by_method:
                    for (where, measured), ends in ends_of.items():
                        found[method, where, size, measured].append(ends)
    return list(_judged(name, found, done, truths))


def _follow(truths: Iterable[Truth], amount: Amount, jobs: int | None) -> None:
    """Find what becomes of finite flows in runs of twice the time, with other seeds than the groups have."""
    for truth in truths:
        scenario = json.loads(truth.scenario)
        if not any("arrivals" in group for group in scenario["flows"]):
            continue
        seconds = float(str(scenario["duration"]).removesuffix("s"))
        scenario["duration"] = f"{2 * seconds:g}s"
        for first in range(0, amount.truth_from, BATCH):
            seed = amount.seed + amount.pool + first
            truth.follow(simulate.run(scenario, runs=BATCH, seed=seed, jobs=jobs).runs, seconds)


def _by_t(
    wanted: Iterable[tuple[Where, str]], of_settings: Sequence[Sequence[Mapping[str, float]]]
) -> dict[tuple[Where, str], Ends]:
    """Student's t interval of the runs' own values, where they all have one."""
    found: dict[tuple[Where, str], Ends] = {}
    for where, name in wanted:
        values = [run[name] for run in of_settings[0]]
        if where == "differences":
            values = [a - b[name] for a, b in zip(values, of_settings[1], strict=True)]
        else:
            values = [value for value in values if not math.isnan(value)]
        found[where, name] = intervals.by_t(values)
    return found


def _group(
    result: Result, of_settings: Sequence[Sequence[Mapping[str, float]]], places: Collection[Where]
) -> Iterator[tuple[tuple[Where, str], Ends]]:
    columns = of_settings[0][0]
    names = [name for name in columns if not is_companion(name)]
    gathered = [Gathered({name: [run[name] for run in runs] for name in columns}) for runs in of_settings]
    if "tables" in places:
        for measured, ends in intervals.of_tables(result):
            yield ("tables", measured), ends
    if "sweeps" in places:
        for measured, ends in intervals.of_sweeps(gathered[0], names):
            yield ("sweeps", measured), ends
    if "differences" in places:
        for measured, ends in intervals.of_differences(gathered[0], gathered[1], names):
            yield ("differences", measured), ends


def _judged(
    name: str,
    found: Found,
    done: dict[int, int],
    truths: Sequence[Truth],
) -> Iterator[Covered]:
    for (method, where, size, measured), all_ends in found.items():
        truth = truths[0]
        true = truth.difference(truths[1], measured) if where == "differences" else truth.of(measured)
        if true is None:
            continue
        room = SLACK * (truth.scale(measured) if where == "differences" else max(map(abs, true)))
        known = [ends for ends in all_ends if ends is not None]
        below = sum(ends[1] < true[0] - room for ends in known)
        above = sum(ends[0] > true[1] + room for ends in known)
        yield Covered(
            name, method, where, measured, size, true, len(known), done[size] - len(known), below, above
        )
