"""How often intervals contain the true value: one scenario, many disjoint groups of runs."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from tools.coverage import intervals
from tools.coverage.truth import Truth

import perhop
from perhop.simulation import Result

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tools.coverage.intervals import Ends
    from tools.coverage.settings import Setting
    from tools.coverage.truth import Band

    from perhop.runs import Run

Where: TypeAlias = Literal["tables", "sweeps", "differences"]
WHERE: tuple[Where, ...] = get_args(Where)

BATCH = 300
"""Runs that are held in memory at once."""
FEWEST_FOR_TRUTH = 3000
"""Runs from which true values are known well enough for groups of few runs."""
SLACK = 1e-5
"""A miss by less, relative to the true value, is not seen by anybody and does not count."""


@dataclass(frozen=True, slots=True)
class Covered:
    """One measure of one scenario.

    Attributes:
        where: Where the interval stands.
        measure: Its name.
        runs: Of each group.
        truth: Where the true value lies.
        groups: Groups with an interval.
        without: Groups without one, since too few runs have a value.
        below: Groups whose interval ends below the true value.
        above: Groups whose interval begins above it.
    """

    scenario: str
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
    """How much is tried.

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


def measure(name: str, setting: Setting, amount: Amount, *, jobs: int | None = None) -> list[Covered]:
    """Try all intervals of a scenario.

    Args:
        name: What to call it.
        setting: The scenario.
        amount: How much to try.
        jobs: Runs at once; all cores if not given.
    """
    text, other = (json.loads(perhop.simulation.canonical(one)) for one in (setting.text, setting.other))
    truth, other_truth = Truth(json.dumps(text)), Truth(json.dumps(other))
    found: dict[tuple[Where, int, str], list[Ends]] = defaultdict(list)
    done = dict.fromkeys(amount.runs, 0)
    # Groups lie within a batch, so its size is a multiple of every group's.
    batch = math.lcm(*amount.runs)
    batch *= max(1, BATCH // batch)
    for first in range(0, amount.pool, batch):
        seed = amount.seed + first
        result = perhop.run(text, runs=batch, seed=seed, jobs=jobs)
        pairs = perhop.run(other, runs=batch, seed=seed, jobs=jobs)
        values, other_values = truth.add(result.runs), other_truth.add(pairs.runs)
        for size in amount.runs:
            for begin in range(0, batch, size):
                if done[size] == amount.repetitions or first + begin + size > amount.pool:
                    break
                done[size] += 1
                part = slice(begin, begin + size)
                for where, measured, ends in _group(
                    result, result.runs[part], values[part], other_values[part]
                ):
                    found[where, size, measured].append(ends)
    return list(_judged(name, found, done, truth, other_truth))


def _group(
    result: Result,
    runs: Sequence[Run],
    values: Sequence[dict[str, float]],
    others: Sequence[dict[str, float]],
) -> Iterator[tuple[Where, str, Ends]]:
    for measured, ends in intervals.of_tables(Result(result.scenario, tuple(runs))):
        yield "tables", measured, ends
    for measured, ends in intervals.of_sweeps(values):
        yield "sweeps", measured, ends
    for measured, ends in intervals.of_differences(values, others):
        yield "differences", measured, ends


def _judged(
    name: str,
    found: dict[tuple[Where, int, str], list[Ends]],
    done: dict[int, int],
    truth: Truth,
    other: Truth,
) -> Iterator[Covered]:
    for (where, size, measured), all_ends in found.items():
        band = truth.difference(other, measured) if where == "differences" else truth.of(measured)
        if band is None:
            continue
        room = SLACK * max(map(abs, band))
        known = [ends for ends in all_ends if ends is not None]
        below = sum(ends[1] < band[0] - room for ends in known)
        above = sum(ends[0] > band[1] + room for ends in known)
        yield Covered(name, where, measured, size, band, len(known), done[size] - len(known), below, above)
