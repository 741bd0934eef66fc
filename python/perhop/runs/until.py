"""`perhop run --until`: runs are added until intervals are narrow (`perhop.statistics.stopping`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from perhop.errors import ArgumentError
from perhop.files import arguments
from perhop.plurals import counted
from perhop.scenario.document import fraction
from perhop.show.numbers import rounded
from perhop.statistics import stopping
from perhop.statistics.intervals import MOST_RUNS
from perhop.statistics.stopping import Look, Until

if TYPE_CHECKING:
    from perhop.measures.run import Run
    from perhop.runs.warming import WarmUp


def read(until: str | float | None, metrics: Sequence[str], runs: int | None) -> Until | None:
    """Read the rule that arguments of `perhop.run` ask for; None where they ask for a number of runs.

    Args:
        until: The width, such as `2%`.
        metrics: Patterns; without any, the throughput of each class.
        runs: At most; None for 1000.

    Raises:
        ArgumentError: They make no rule.
    """
    patterns = tuple(arguments.texts("until_of", metrics))
    if until is None:
        if patterns:
            raise ArgumentError("until_of", "has no effect without `until` (--until 2%)")
        return None
    width, most = fraction(until, None), MOST_RUNS if runs is None else arguments.whole("runs", runs)
    if most < stopping.FEWEST:
        raise ArgumentError("runs", f"{stopping.TOO_FEW}, not {most}")
    return Until(width, patterns or stopping.METRICS, min(stopping.LEAST, most), most)


def progress(rule: Until) -> str:
    """The name of the runs in progress."""
    return f"runs until {_percent(rule.width)}"


def _of(rule: Until) -> str:
    known = rule.metrics == stopping.METRICS
    return "each class's throughput" if known else ", ".join(rule.metrics)


def _percent(width: float, digits: int | None = None) -> str:
    from perhop.show.metric_names import within  # noqa: PLC0415 - it loads numpy, and a refusal needs none

    return within(width, digits)


@dataclass(frozen=True, slots=True)
class Reached:
    """The intervals until which runs were added, and whether they are narrow enough.

    Attributes:
        rule: What was asked for.
        look: The last look: the runs, and the widest interval.
        interrupted: Whether Ctrl-C came first.
    """

    rule: Until
    look: Look
    interrupted: bool = False

    def sentence(self) -> str:
        """Say whether the intervals are as narrow as asked for, and which is the widest."""
        from perhop.show.metric_names import WIDENED, shown_name, shown_text, unit_of  # noqa: PLC0415

        found, aim = self.look, f"{_of(self.rule)} are within {_percent(self.rule.width)}"
        widest = ""
        if found.metric:
            value = f"{shown_text(found.estimate, found.metric)} {unit_of(found.metric).text}".rstrip()
            within = f" ({_percent(found.reach, 3)})" if math.isfinite(found.reach) else ""
            widest = f"that of {shown_name(found.metric).partition(',')[0]}, {value}{within}"
        if self.rule.is_met(found):
            return f"As `until` asks, the intervals of {aim}; the last to be so is {widest}. {WIDENED}"
        if not found.metric:
            return (
                f"Not as `until` asks: none of {counted(found.runs, 'run')} has a value of {_of(self.rule)}."
            )
        why = "when it was interrupted" if self.interrupted else "the most that may be made"
        said = f"Not as `until` asks: after {counted(found.runs, 'run')}, {why}"
        less = "in proportion its interval has no width, as where it is 0 or not all runs have it"
        if math.isfinite(found.reach):
            less = f"about {counted(math.ceil(self.rule.needed(found)), 'run')} would be enough"
        return f"{said}, not all intervals of {aim}; the widest is {widest}: {less}. {WIDENED}"

    def json(self) -> dict[str, Any]:
        """The values for JSON."""
        found = self.look.estimate
        ends = None if found is None or found.ci95 is None else found.ci95
        return {
            "width": self.rule.width,
            "metrics": [*self.rule.metrics],
            "most_runs": self.rule.most,
            "within": self.rule.is_met(self.look),
            **({"interrupted": True} if self.interrupted else {}),
            "widest": {
                "metric": self.look.metric or None,
                "value": None if found is None else rounded(found.mean),
                "ci95": None if ends is None else [None if math.isinf(end) else rounded(end) for end in ends],
                "width": None if math.isinf(self.look.reach) else rounded(self.look.reach),
            },
        }


@dataclass(slots=True)
class Watch:
    """Looks at the runs of a scenario; measures each run once.

    Attributes:
        scenario: Canonical JSON.
        rule: What is asked for.
        warm_up: The one that was found, if it was.
    """

    scenario: str
    rule: Until
    warm_up: WarmUp | None = None
    _values: list[dict[str, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Refuse patterns of metrics that meet nothing.

        Raises:
            ArgumentError: There is one.
        """
        from perhop.runs import metrics  # noqa: PLC0415 - it loads numpy, and a refusal needs none

        names = metrics.names_of(self.scenario)
        if missing := metrics.unknown(self.rule.metrics, names):
            raise ArgumentError("until_of", f": {metrics.why_unknown(missing[0], names)}")

    def look(self, runs: Sequence[Run]) -> Look:
        """Find the widest interval over the runs, the first of which are those of the last look."""
        from perhop.runs import companions  # noqa: PLC0415 - likewise

        for run in runs[len(self._values) :]:
            measured = companions.with_measures(run.raw, self.scenario, self.warm_up)
            wanted = companions.chosen(tuple(measured), self.rule.metrics)
            self._values.append({name: measured[name] for _, name in wanted})
        return stopping.look(companions.observed(self._values, self.rule.metrics), len(runs))

    def interrupted(self, runs: Sequence[Run]) -> Reached:
        """Look at the runs that there are after Ctrl-C."""
        return Reached(replace(self.rule, most=len(runs)), self.look(runs), interrupted=True)
