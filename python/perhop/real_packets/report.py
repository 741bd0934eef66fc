"""What `perhop compare` shows: tables, JSON, plots, the page and the data beside it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import polars as pl

from perhop.plurals import counted
from perhop.real_packets.equivalence import MEASURES, corrected, directions
from perhop.real_packets.explain import otherwise
from perhop.real_packets.report_json import to_json
from perhop.runs.summary import throughput_beside, waiting_times_beside
from perhop.show.declared import Axis, Plot, Reference, Row
from perhop.show.numbers import exact, interval, measured, short, shown
from perhop.show.table import MISSING, continued, prose, records
from perhop.statistics.multiplicity import family, p_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from perhop.real_packets.equivalence import Comparison, Direction, Key, Line, Samples
    from perhop.real_packets.explain import Change
    from perhop.statistics.intervals import Difference

__all__ = [
    "EXPLAINED",
    "LEFT_OUT_FIRST",
    "READING",
    "READING_CHANGES",
    "READING_DIRECTIONS",
    "READING_HOLM",
    "SOURCES",
    "VERDICTS",
    "Compared",
    "Part",
    "column",
    "holm_cells",
    "invalid",
    "lead",
    "parts",
    "plots",
    "reading",
    "sample_frame",
    "text",
    "to_json",
    "verdict",
    "write",
]

SOURCES = Axis("source", "", {"simulated": "simulated", "live": "on real packets"})
LEFT_OUT_FIRST = ("p", "90 % interval", "margin", "difference", "p, Holm")
"""Columns that a narrow terminal does without, the least important one first: the verdict stays."""
VERDICTS = ("equivalent", "different", "cannot tell")

READING = (
    "Means with 95 % intervals over runs. Difference: live minus simulated. p: two one-sided t tests of a "
    "difference beyond the margin. Equivalent: the 90 % interval of the difference lies within the margin "
    "(p ≤ 0.05). Different: the 95 % interval lies beyond it. Cannot tell: neither, with the number of live "
    "runs that would tell, roughly, if differences and variances stay the same. Flows start as in the "
    "simulation of the same seed, but the kernel's TCP is not deterministic: runs are not paired, and "
    "variances may differ. Intervals are Welch's, or Student's where that is longer: a few runs may lie "
    "close together by chance. Each line is tested separately."
)
READING_HOLM = (
    "Holm: the verdict after Holm's correction, by which with 95 % none of these verdicts errs; p, Holm: its "
    "corrected p value, of the tests of equivalence, or where a line is different, of a difference within "
    "the margin."
)
READING_DIRECTIONS = (
    "First minus second, with 95 % intervals: simulated on the same seeds, live between independent runs. "
    "Open: an interval contains 0."
)
READING_CHANGES = (
    "First line: the difference to explain. Other lines: how much one change to the simulated TCP (on the "
    "same seeds) or to the kernel moves the mean, with 95 % intervals. A change to the simulated TCP "
    "explains the difference if it moves the mean as the first line says; a change to the kernel, if it "
    "moves it back. Changes do not add up. `--json` has all measures."
)


@dataclass(frozen=True)
class Compared:
    """Everything that one command compared.

    Attributes:
        comparisons: One scenario, or two.
        names: What to call each.
        changes: What explains the differences, for each scenario; empty where that was not asked for.
        holm: Tables have a column of verdicts corrected for their number.
    """

    comparisons: Sequence[Comparison]
    names: Sequence[str]
    changes: Sequence[Sequence[Change]] = field(default_factory=tuple)
    holm: bool = False

    @property
    def directions(self) -> list[Direction]:
        """First minus second, if there are two."""
        return directions(*self.comparisons) if len(self.comparisons) == 2 else []

    @property
    def headings(self) -> list[str]:
        """The heading of each comparison: the scenario's title, beside its name where there are two."""
        return [
            f"{name}: {one.title}" if one.title and len(self.comparisons) == 2 else one.title or name
            for name, one in zip(self.names, self.comparisons, strict=True)
        ]

    @property
    def left_out(self) -> int:
        """Live runs that were invalid."""
        made = sum(len(one.live.runs) - len(one.valid) for one in self.comparisons)
        return made + sum(change.left_out for changes in self.changes for change in changes)


@dataclass(frozen=True, slots=True)
class Part:
    """A table with its title, and what a reader should know of it, before and after.

    Attributes:
        gives_way: Columns that a narrow terminal does without; if there are none, the table continues below.
    """

    title: str
    before: Sequence[str]
    table: Sequence[Mapping[str, str]]
    after: Sequence[str] = ()
    gives_way: Sequence[str] = ()


def text(compared: Compared, width: int | None = None) -> str:
    """All of it as plain text for a terminal of that width; None for no limit."""
    blocks = []
    for part in parts(compared):
        before = [prose(paragraph, width) for paragraph in (part.title, *part.before)]
        after = [prose(item, width, "", "  " if item.startswith("- ") else "") for item in part.after]
        tables = [part.table] if part.gives_way else continued(part.table, 1, width)
        lines = [line for table in tables if table for line in ("", *records(table, width, part.gives_way))]
        blocks.append("\n".join([*before, *lines, *([""] if after else []), *after]))
    return "\n\n".join(blocks)


def parts(compared: Compared) -> list[Part]:
    """The parts of the report, in reading order."""
    found = []
    if compared.directions:
        title = f"{compared.names[0]} minus {compared.names[1]}"
        table = [_direction(one) for one in compared.directions]
        found.append(Part(title, [_agreement(compared.directions)], table, [READING_DIRECTIONS]))
    two = len(compared.comparisons) == 2
    for comparison, title, holm in zip(
        compared.comparisons, compared.headings, holm_cells(compared), strict=True
    ):
        after = [_counts(comparison), *invalid(comparison)]
        lines = [_line(line) | cells for line, cells in zip(comparison.lines, holm, strict=True)]
        found.append(Part(title, [lead(comparison)], lines, after, LEFT_OUT_FIRST))
    found[-1] = replace(found[-1], after=[*found[-1].after, *reading(compared)])
    said = dict.fromkeys(text for one in compared.comparisons for text in otherwise(one.live.scenario))
    if said:
        after = [f"- {text}" for text in said]
        after += [] if compared.changes else ["`--explain` measures the effect of each."]
        found.append(Part("How the kernel's TCP differs from the simulated one", [], (), after))
    for name, comparison, changes in zip(
        compared.names, compared.comparisons, compared.changes, strict=False
    ):
        if changes:
            found += _explained(comparison, changes, f", {name}" if two else "")
    return found


def holm_cells(compared: Compared) -> list[list[dict[str, str]]]:
    """Of each comparison, for each line the columns of corrected verdicts; none unless asked for."""
    if not compared.holm:
        return [[{} for _ in one.lines] for one in compared.comparisons]
    found = iter(corrected([line for one in compared.comparisons for line in one.lines]))
    cells = [[next(found) for _ in one.lines] for one in compared.comparisons]
    return [
        [{"Holm": state, "p, Holm": MISSING if p is None else p_text(p)} for state, p in of] for of in cells
    ]


def reading(compared: Compared) -> list[str]:
    """How to read the lines, and what their number, with that of the directions, means for all of them."""
    said = [READING]
    number = sum(len(one.lines) for one in compared.comparisons) + len(compared.directions)
    if text := family(number, "lines"):
        said.append(text)
    if compared.holm:
        said.append(READING_HOLM)
    return said


def lead(comparison: Comparison) -> str:
    """How long, and on which seeds."""
    raw = comparison.simulated.runs[0].raw
    simulated, live = (
        [run.seed for run in result.runs] for result in (comparison.simulated, comparison.live)
    )
    of = f"{len(comparison.valid)} valid of " if len(comparison.valid) < len(live) else ""
    return (
        f"{exact(raw['duration_s'])} s"
        + (f", the first {exact(raw['warmup_s'])} s excluded" if raw["warmup_s"] else "")
        + f"; {counted(len(simulated), 'simulated run')} ({_seeds(simulated)}), "
        f"{of}{len(live)} on real packets ({_seeds(live)})"
    )


def _seeds(seeds: Sequence[int]) -> str:
    return f"seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}"


def _line(line: Line) -> dict[str, str]:
    scale, test = line.key.of.scale, line.test
    ends = None if test is None else test.difference.interval(0.9)
    return {
        "": line.key.text,
        "simulated": shown(line.simulated, scale),
        "live": MISSING if line.live is None else shown(line.live, scale),
        "difference": MISSING if test is None else _value(test.difference, ends, scale),
        "90 % interval": MISSING if ends is None else interval(ends[0] * scale, ends[1] * scale, sign=True),
        "margin": MISSING if test is None else short(test.margin * scale, 3),
        "p": MISSING if test is None or test.p is None else p_text(test.p),
        "verdict": verdict(line),
    }


def verdict(line: Line) -> str:
    """The verdict, with the number of runs that would tell where these do not."""
    if line.test is None or line.verdict != "cannot tell":
        return line.verdict
    needed = line.test.runs_needed
    return f"cannot tell (needs {'over 1000' if needed is None else f'~{needed}'} runs)"


def _value(found: Difference, ends: tuple[float, float] | None, scale: float) -> str:
    """A difference as far as the interval beside it lets it be known."""
    return measured(found.value * scale, _half(ends, scale), sign=True).partition(" ± ")[0]


def _with_interval(found: Difference, scale: float) -> str:
    """A difference with half its 95 % interval: `+0.123 ± 0.024`."""
    return measured(found.value * scale, _half(found.interval(), scale), sign=True)


def _half(ends: tuple[float, float] | None, scale: float) -> float | None:
    return None if ends is None else (ends[1] - ends[0]) / 2 * scale


def _counts(comparison: Comparison) -> str:
    counts = {one: sum(line.verdict == one for line in comparison.lines) for one in VERDICTS}
    return (
        f"Of {counted(len(comparison.lines), 'line')}: "
        + ", ".join(f"{count} {one}" for one, count in counts.items())
        + "."
    )


def invalid(comparison: Comparison) -> list[str]:
    """Why live runs were left out."""
    return [
        f"LEFT OUT, seed {report.seed}: {why}."
        for report in comparison.live.reports
        for why in report.findings["invalid"]
    ]


def _direction(one: Direction) -> dict[str, str]:
    measure = one.key.of
    simulated = shown(one.simulated, measure.scale)
    return {
        "": one.key.text,
        "simulated": f"+{simulated}" if one.simulated.mean > 0 else simulated,
        "live": MISSING if one.live is None else _with_interval(one.live, measure.scale),
        "direction": {True: "same", False: "OPPOSITE", None: "open"}[one.agree],
    }


def _agreement(found: Sequence[Direction]) -> str:
    same, opposite, unsure = (sum(one.agree is state for one in found) for state in (True, False, None))
    have, are = "has" if same == 1 else "have", "is" if unsure == 1 else "are"
    counts = f"{same} {have} the same direction, {opposite} the opposite one, {unsure} {are} open"
    return f"Of {counted(len(found), 'difference')} {counts}."


EXPLAINED = {
    "throughput of a flow, Mbit/s": ("throughput",),
    "RTT, ms": ("rtt",),
    "one-way delay, ms": ("one-way",),
    "links": ("queue", "delay-p95"),
}
"""Tables of changes, with the measures in each."""


def _explained(comparison: Comparison, changes: Sequence[Change], of: str) -> list[Part]:
    """What each variation changes: a table for each measure of the classes, and one of the links."""
    found = []
    for name, measures in EXPLAINED.items():
        lines = [line for line in comparison.lines if line.key.measure in measures]
        if lines:
            table = [_explained_first(lines), *(_explained_line(lines, change) for change in changes)]
            found.append(Part(f"Effect of each change: {name}{of}", [], table))
    left_out = [
        f"LEFT OUT: {counted(change.left_out, 'invalid run')} {change.variation.text}."
        for change in changes
        if change.left_out
    ]
    if found:
        found[-1] = replace(found[-1], after=[READING_CHANGES, *left_out])
    return found


def _explained_first(lines: Sequence[Line]) -> dict[str, str]:
    """The first row of the table of explanations: the difference that they are to explain."""
    return {
        "": "live minus simulated, as compared",
        **{
            column(line.key): MISSING if line.test is None else _changed(line.key, line.test.difference)
            for line in lines
        },
    }


def _explained_line(lines: Sequence[Line], change: Change) -> dict[str, str]:
    keys = [line.key for line in lines]
    return {
        "": f"{change.variation.where}: {change.variation.text}",
        **{column(key): _changed(key, change.by[key]) if key in change.by else MISSING for key in keys},
    }


def column(key: Key) -> str:
    """The head of a number's column."""
    return key.name if key.kind == "class" else key.text


def _changed(key: Key, found: Difference) -> str:
    return _with_interval(found, key.of.scale)


def plots(compared: Compared) -> list[tuple[Plot, list[Row], str]]:
    """Each with its rows and a name for its file."""
    found = []
    for index, comparison in enumerate(compared.comparisons):
        name = "compare" if len(compared.comparisons) == 1 else f"compare-{'ab'[index]}"
        of = "" if len(compared.comparisons) == 1 else f", {compared.names[index]}"
        found += [(plot, rows, name) for plot, rows in _plots(comparison, of) if rows]
    return found


def _plots(comparison: Comparison, of: str) -> Iterator[tuple[Plot, list[Row]]]:
    tested = [line for line in comparison.lines if line.test is not None and line.test.margin > 0]
    names = {line.key.text: line.key.text.rpartition(",")[0] for line in tested}
    plot = Plot(
        id="differences",
        title=f"Live minus simulated, in units of the margin{of}",
        kind="dots",
        metric="difference",
        x=Axis("measure", "", names),
        series=Axis("verdict", "", {one: one for one in VERDICTS}),
        y_label="difference / margin",
        references=(Reference("no difference", "measure", dict.fromkeys(names, 0.0)),),
        band=("within the margin", -1.0, 1.0),
        interval="90 %",
        from_zero=False,
    )
    yield plot, [_in_margins(line) for line in tested]
    for metric, title in (("throughput", "Throughput of a flow"), ("rtt", "Round-trip time")):
        yield _side_by_side(comparison, metric, title + of, "class")
    yield _side_by_side(comparison, "delay-p95", "95th percentile of the waiting time" + of, "link")
    sources = {"simulated": comparison.simulated.runs, "live": comparison.valid}
    yield from waiting_times_beside(sources, SOURCES, of)
    yield from throughput_beside(sources, SOURCES, of)


def _in_margins(line: Line) -> Row:
    assert line.test is not None
    margin, ends = line.test.margin, line.test.difference.interval(0.9)
    return Row(
        {"measure": line.key.text, "verdict": line.verdict},
        "difference",
        "margins",
        None,
        line.test.difference.value / margin,
        None if ends is None else (ends[0] / margin, ends[1] / margin),
        0 if line.live is None else line.live.runs,
    )


def _side_by_side(comparison: Comparison, metric: str, title: str, kind: str) -> tuple[Plot, list[Row]]:
    measure = MEASURES[metric]
    rows = []
    lines = [line for line in comparison.lines if line.key.measure == metric]
    for line in lines:
        for source, found in (("simulated", line.simulated), ("live", line.live)):
            if found is not None:
                ends = found.ci95
                scaled = None if ends is None else (ends[0] * measure.scale, ends[1] * measure.scale)
                factors = {kind: line.key.name, "source": source}
                mean = found.mean * measure.scale
                rows.append(Row(factors, metric, measure.unit, None, mean, scaled, found.runs))
    plot = Plot(
        id=metric,
        title=title,
        kind="bars",
        metric=metric,
        x=Axis(kind, kind.capitalize(), {line.key.name: line.key.name for line in lines}),
        series=SOURCES,
        y_label=measure.label.rpartition(", ")[2] + (" per flow" if metric == "throughput" else ""),
    )
    return plot, rows


def sample_frame(compared: Compared) -> pl.DataFrame:
    """One row for each number of each run.

    Columns: `scenario`, `source` (simulated or live), `seed`, `valid`, `kind` (class or link), `name`,
    `measure`, `unit`, `value`.
    """
    rows: list[tuple[object, ...]] = []
    for name, comparison in zip(compared.names, compared.comparisons, strict=True):
        left_out = [r.seed for r in comparison.live.reports if not r.valid]
        rows += _sample_rows(name, "simulated", comparison.simulated_samples, [])
        rows += _sample_rows(name, "live", comparison.all_live_samples, left_out)
    strings = ("kind", "name", "measure", "unit")
    schema = {
        "scenario": pl.String,
        "source": pl.String,
        "seed": pl.UInt64,
        "valid": pl.Boolean,
        **dict.fromkeys(strings, pl.String),
        "value": pl.Float64,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def _sample_rows(
    scenario: str, source: str, samples: Samples, left_out: Sequence[int]
) -> Iterator[tuple[object, ...]]:
    for key, values in samples.items():
        names = (key.kind, key.name, key.measure, key.of.unit)
        for seed, value in values.items():
            yield (scenario, source, seed, seed not in left_out, *names, value)


def write(out: Path, compared: Compared, command: str) -> None:
    """Plots, samples, manifest and the page.

    Raises:
        PerhopError: A file cannot be written.
    """
    from perhop.real_packets import page  # noqa: PLC0415 - drawing takes long to import

    page.write(out, compared, command)
