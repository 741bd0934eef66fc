"""The packets that ten everyday questions cost until their intervals are narrow, by how runs are added.

Each question asks for metrics of a scenario of `examples` or of docs/questions.md, which is run on POOL seeds
once. Then each rule is applied to these runs, as if they were made one after another, from twenty places on,
round about. The table has medians over the places: runs, and the packets that are simulated in them.

- `--until`: what `perhop run --until` and sweeps do (`perhop.statistics.stopping`);
- uncorrected: 95 % intervals after 5, 7, 10, 15, … runs, which contain the truth less often than they say;
- `perhop run`: the number of runs that it makes by default, whatever intervals they have.

    python -m benches.questions [--pool 200] [--width 2%] [--only NAME] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import math
import re
import statistics
import tomllib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perhop.runs import budget, companions, simulate
from perhop.scenario import reading
from perhop.scenario.document import fraction
from perhop.show import table
from perhop.statistics import stopping
from perhop.statistics.stopping import Until

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROOT = Path(__file__).resolve().parent.parent
STARTS = 20
"""Places in the pool from which each rule is applied."""


@dataclass(frozen=True, slots=True)
class Question:
    """What somebody wants to know.

    Attributes:
        name: It in words.
        scenario: A file of `examples`, or the name of one in docs/questions.md.
        metrics: Patterns.
    """

    name: str
    scenario: str
    metrics: tuple[str, ...]


QUESTIONS = (
    Question("who gets what: throughput of each class", "first.toml", ("flows.*.throughput_bps",)),
    Question("loss of a class of flows", "first.toml", ("flows.best effort.loss",)),
    Question("mean queue", "first.toml", ("links.uplink.mean_queue_packets",)),
    Question("P99 of the wait at a link", "first.toml", ("links.uplink.delay_p99_s",)),
    Question("CUBIC beside BBR: throughput of both", "beside.toml", ("flows.*.throughput_bps",)),
    Question("a policer and one TCP: throughput", "burst.toml", ("flows.download.throughput_bps",)),
    Question("P99 of voice beside data", "classes.toml", ("links.line.classes.voice.delay_p99_s",)),
    Question("loss of a queue's class", "classes.toml", ("links.line.classes.data.loss",)),
    Question("fair by user: throughput of both", "fair.toml", ("flows.*.throughput_bps",)),
    Question(
        "median completion time of transfers",
        "transfers.toml",
        ("populations.transfers, fq-codel.completion_p50_s",),
    ),
)


@dataclass(frozen=True, slots=True)
class Cost:
    """What a question costs by one rule.

    Attributes:
        question: Its name.
        rule: The rule's name.
        runs: The median.
        packets: That many runs send, by the mean of all.
        met: The share of starts from which the intervals got narrow within the pool.
    """

    question: str
    rule: str
    runs: float
    packets: float
    met: float


def scenario_of(name: str) -> dict[str, Any]:
    """Read a scenario of `examples`, or of docs/questions.md, also out of a sweep."""
    example = ROOT / "examples" / name
    if example.exists():
        text = example.read_text(encoding="utf-8")
    else:
        page = (ROOT / "docs" / "questions.md").read_text(encoding="utf-8")
        found = re.search(rf"<!-- file: {re.escape(name)} -->\n```toml\n(.*?)```", page, re.DOTALL)
        if found is None:
            raise FileNotFoundError(f"{name}: neither in examples nor in docs/questions.md")
        text = found[1]
    content = tomllib.loads(text)
    scenario: dict[str, Any] = content.get("scenario", content)
    return scenario


Runs = list[dict[str, float]]
"""The measures of each run and their companions."""


def by_rule(runs: Runs, rule: Until) -> tuple[int, bool]:
    """Return how many runs `perhop run --until` makes, and whether the intervals are then narrow."""
    made = rule.least
    while True:
        look = stopping.look(companions.observed(runs[:made], rule.metrics), made)
        if (after := rule.after(look)) == made:
            return made, rule.is_met(look)
        made = after


def uncorrected(runs: Runs, rule: Until) -> tuple[int, bool]:
    """Return how many runs are made until 95 % intervals are narrow that do not know of the rule."""
    made = rule.least
    while True:
        found = companions.observed(runs[:made], rule.metrics).values()
        estimates = [one.estimate for one in found if not all(map(math.isnan, one.values))]
        met = all(
            one is not None and max(one.high - one.mean, one.mean - one.low) <= rule.width * abs(one.mean)
            for one in estimates
        )
        if met or made == rule.most:
            return made, met
        made = min(rule.most, made + made // 2)


RULES: dict[str, Callable[[Runs, Until], tuple[int, bool]]] = {
    "--until": by_rule,
    "uncorrected": uncorrected,
}


def costs(question: Question, pool: int, width: float) -> list[Cost]:
    """Apply all rules to a question."""
    text = reading.canonical(scenario_of(question.scenario))
    made = simulate.run(json.loads(text), runs=pool).runs
    packets = statistics.fmean(float(run.raw["packets"]) for run in made)
    measured = [companions.with_measures(run.raw, text) for run in made]
    wanted = [name for _, name in companions.chosen(tuple(measured[0]), question.metrics)]
    runs = [{name: one[name] for name in wanted} for one in measured]
    rule = Until(width, question.metrics, stopping.LEAST, pool)
    found = []
    for name, apply in RULES.items():
        starts = range(0, pool, max(1, pool // STARTS))
        stops = [apply(runs[start:] + runs[:start], rule) for start in starts]
        median = statistics.median(stop for stop, _ in stops)
        met = statistics.fmean(met for _, met in stops)
        found.append(Cost(question.name, name, median, median * packets, met))
    default = budget.fitting([budget.cost(text, run.raw) for run in made[: budget.FIRST]], budget.EVENTS)
    estimates = companions.observed(runs[:default], question.metrics)
    narrow = max(stopping.reach_of(one.estimate) for one in estimates.values()) <= width
    return [*found, Cost(question.name, "perhop run", default, default * packets, float(narrow))]


def text_of(found: Sequence[Cost], pool: int) -> list[str]:
    """The lines of the table."""
    rows = []
    for name in dict.fromkeys(one.question for one in found):
        row = {"question": name}
        for one in found:
            if one.question == name:
                more = "≥ " if one.runs >= pool else ""
                row[f"{one.rule}, runs"] = f"{more}{one.runs:g}"
                row[f"{one.rule}, packets"] = f"{more}{one.packets / 1e6:.3g} M"
        rows.append(row)
    return list(table.records(rows, None))


def main() -> None:
    """Measure, and print or write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pool", type=int, default=200, metavar="N", help="runs of each scenario")
    parser.add_argument("--width", default="2%", help="each side of an interval over its value")
    parser.add_argument("--only", metavar="NAME", help="questions whose name holds this")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers there")
    given = parser.parse_args()
    found: list[Cost] = []
    for question in QUESTIONS:
        if given.only is None or given.only in question.name:
            found += costs(question, given.pool, fraction(given.width, None))
            if given.json is not None:
                given.json.write_text(json.dumps([asdict(one) for one in found], indent=1), encoding="utf-8")
    print("\n".join(text_of(found, given.pool)))


if __name__ == "__main__":
    main()
