"""The report of `perhop compare`, for terminals and its page; its JSON; and all samples."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import polars as pl

from perhop import _engine
from perhop.plurals import counted
from perhop.real_packets.equivalence import VERDICTS, corrected, directions
from perhop.real_packets.explain import exchanges, otherwise
from perhop.real_packets.pictures import plots
from perhop.real_packets.report_json import to_json
from perhop.show.numbers import MISSING, PAGE, TERMINAL, exact, figure, short
from perhop.show.report import Origin, Records, Report, Text
from perhop.show.written import Written
from perhop.statistics.multiplicity import family, p_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from perhop.real_packets.equivalence import Comparison, Direction, Key, Line, Samples
    from perhop.real_packets.explain import Change
    from perhop.show.declared import Plot
    from perhop.show.numbers import Style
    from perhop.show.page import HtmlPlot
    from perhop.show.report import Part
    from perhop.statistics.intervals import Difference

LEFT_OUT_FIRST = ("p", "90 % interval", "margin", "difference", "p, Holm")
"""Columns that a narrow terminal does without, the least important one first: the verdict stays."""
STATES = {"equivalent": "yes", "same": "yes", "different": "no", "OPPOSITE": "no"}
MOST_NAMED = 5
"""Numbers that a sentence names."""
HOW_TO_READ = "How to read this table"
PAGE_COLUMNS = {
    "number": "",
    "verdict": "verdict",
    "direction": "direction",
    "difference": "difference",
    "margin": "margin",
    "90 % interval": "90 % interval",
    "simulated": "simulated",
    "on real packets": "live",
    "p": "p",
}
"""The columns of a page, in their order, and what terminals call them."""

__all__ = [
    "EXPLAINED",
    "Compared",
    "answers",
    "column",
    "holm_cells",
    "lead",
    "page",
    "plots",
    "sample_frame",
    "to_json",
    "verdict",
    "write",
]

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
READING_PARTS = (
    "First line: the difference. Other lines: its parts, with 95 % intervals, which add up to it but for "
    "invalid runs. perhop's own TCP is the simulated one behind real segments. Wire: what segments change in "
    "virtual time (handshakes, options, windows in bytes). Scheduling: what real time adds, as threads run "
    "late and packets pass the kernel's IP; where a flow is not TCP, both are one part. "
    "Receiver, sender: what changes where the kernel's take the place of perhop's."
)
NO_PARTS = (
    "The parts of the difference (wire, scheduling, receiver, sender) are not measured: perhop's own TCP "
    "needs TUN devices (`--device tun`, and /dev/net/tun)."
)
READING_CHANGES = (
    "First line: the difference to explain. Other lines: how much one change to the simulated TCP (on the "
    "same seeds) or to the kernel moves the mean, with 95 % intervals. A change to the simulated TCP "
    "explains the difference if it moves the mean as the first line says; a change to the kernel, if it "
    "moves it back. Changes do not add up. `--json` has all measures."
)


@dataclass(frozen=True, repr=False, eq=False)
class Compared(Written):
    """Scenarios in the simulator and on real packets, with a verdict on each number.

    Attributes:
        comparisons: One for each scenario, of which there are at most two: `lines`, each with a number's
            `simulated` and `live` estimates and its `verdict`.
        names: What to call each.
        changes: What explains the differences, for each scenario; empty where that was not asked for.
        holm: Tables have a column of verdicts corrected for their number.
    """

    COMMAND: ClassVar = "perhop compare"
    RERUNS: ClassVar = True
    TABLE: ClassVar = "scenarios-lines"
    comparisons: Sequence[Comparison]
    names: Sequence[str]
    changes: Sequence[Sequence[Change]] = field(default_factory=tuple)
    holm: bool = False
    command: str = ""

    def _outline(self) -> str:
        counts = Counter(line.verdict for one in self.comparisons for line in one.lines)
        said = ", ".join(f"{counts[one]} {one}" for one in VERDICTS if counts[one])
        return f"{' and '.join(map(repr, self.names))}: {counted(sum(counts.values()), 'number')}; {said}"

    @property
    def directions(self) -> list[Direction]:
        """The differences, first scenario minus second, of each number; none for a single scenario."""
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
        """The number of runs on real packets that were invalid, and so left out."""
        made = sum(len(one.live.runs) - len(one.valid) for one in self.comparisons)
        return made + sum(change.left_out for changes in self.changes for change in changes)

    def _reports(self, width: int | None) -> list[Report]:  # noqa: ARG002 - the same for any width
        return [Report("", [], list(_parts(self, TERMINAL)))]

    def json(self) -> str:
        """Return what `perhop compare --json` writes."""
        return to_json(self)

    def _write(self, place: Path, command: str, jobs: int) -> None:  # noqa: ARG002 - one picture
        write(place, self, command)


def page(compared: Compared, drawn: Sequence[tuple[Plot, HtmlPlot]], command: str) -> Report:
    """The report for a page: the verdicts in words and as a picture, then every number.

    Args:
        compared: What was compared.
        drawn: Its plots.
        command: What to type for the same page.
    """
    kernel = compared.comparisons[0].live.reports[0].findings["kernel"]
    return Report(
        "Simulation and real packets: " + " and ".join(compared.names),
        [f"{_named(compared, place)}{lead(one)}." for place, one in enumerate(compared.comparisons)],
        [
            *(shown for plot, shown in drawn if plot.kind == "dots"),
            *_parts(compared, PAGE),
            *(shown for plot, shown in drawn if plot.kind != "dots"),
        ],
        answers(compared),
        Origin(
            command,
            "every number of every run",
            "The same command gives the same simulated numbers; those on real packets differ from run to "
            "run:",
            f"perhop {_engine.version} on Linux {kernel}",
        ),
    )


def _parts(compared: Compared, style: Style) -> Iterator[Part]:
    """Yield the parts of the report in reading order."""
    if compared.directions:
        title = f"{compared.names[0]} minus {compared.names[1]}"
        rows = [_direction(one, style) for one in compared.directions]
        if style.is_page:
            yield Records(f"{title}: simulated, and on real packets", rows, states=STATES)
        else:
            yield Text([title, _agreement(compared.directions)])
            yield Records("", rows, stem=1)
        yield Text([READING_DIRECTIONS], folded=HOW_TO_READ)
    for place, holm in enumerate(holm_cells(compared)):
        yield from _verdicts(compared, place, holm, style)
    if said := dict.fromkeys(one for of in compared.comparisons for one in otherwise(of.live.scenario)):
        title = "How TCP on real packets differs from the simulated one"
        command = "perhop compare --explain" if style.is_page else "--explain"
        after = [] if compared.changes else [f"`{command}` measures the effect of each."]
        yield from [] if style.is_page else [Text([title])]
        yield Text([*(f"- {one}" for one in said), *after], title)
    for place, changes in enumerate(compared.changes):
        if changes:
            yield from _effects(compared, place, style)


def _verdicts(compared: Compared, place: int, holm: Sequence[dict[str, str]], style: Style) -> Iterator[Part]:
    """One comparison: a line for each number, with the columns of corrected verdicts, and how to read it."""
    comparison, title = compared.comparisons[place], compared.headings[place]
    rows = [_line(line, style) | cells for line, cells in zip(comparison.lines, holm, strict=True)]
    is_last = place == len(compared.comparisons) - 1
    if style.is_page:
        yield Records(f"Verdicts: {title}", rows, states=STATES)
        yield Text(reading(compared) if is_last else [READING], folded=HOW_TO_READ)
        return
    yield Text([title, lead(comparison)])
    yield Records("", rows, gives_way=LEFT_OUT_FIRST)
    yield Text([_counts(comparison), *invalid(comparison), *(reading(compared) if is_last else [])])


# ---------------------------------------------------------------- answers


def _named(compared: Compared, place: int) -> str:
    return f"{compared.names[place]}: " if len(compared.comparisons) > 1 else ""


def answers(compared: Compared) -> list[str]:
    """Return how well simulation and real packets agree, in sentences."""
    said = [_direction_answer(compared)] if compared.directions else []
    for place, comparison in enumerate(compared.comparisons):
        text = _named(compared, place) + _judged(comparison)
        said.append(text if len(compared.comparisons) > 1 else text[0].upper() + text[1:])
        said += invalid(comparison)
    return said


def _direction_answer(compared: Compared) -> str:
    found = compared.directions
    same, opposite, unsure = (sum(one.agree is state for one in found) for state in (True, False, None))
    against = [one.key.text.rpartition(",")[0] for one in found if one.agree is False]
    return (
        f"{compared.names[0]} against {compared.names[1]}: of {counted(len(found), 'difference')}, "
        f"**{same} {'has' if same == 1 else 'have'} the same direction** in the simulator and on real "
        f"packets, **{opposite} the opposite one**{_list(against)}, and {_are(unsure)} open."
    )


def _judged(comparison: Comparison) -> str:
    lines = comparison.lines
    equivalent, different, unsure = ([line for line in lines if line.verdict == one] for one in VERDICTS)
    names = [line.key.text.rpartition(",")[0] for line in different]
    return (
        f"of {counted(len(lines), 'number')}, **{_are(len(equivalent))} equivalent** within their margins, "
        f"**{_are(len(different))} different**{_list(names)}, and {len(unsure)} cannot be decided "
        "from these runs."
    )


def _are(count: int) -> str:
    return f"{count} {'is' if count == 1 else 'are'}"


def _list(names: Sequence[str]) -> str:
    if not names:
        return ""
    rest = len(names) - MOST_NAMED
    return f" ({', '.join(names[:MOST_NAMED])}{f' and {rest} more' if rest > 0 else ''})"


# ---------------------------------------------------------------- tables and notes


def holm_cells(compared: Compared) -> list[list[dict[str, str]]]:
    """Return for each line of each comparison the columns of corrected verdicts; none unless asked for."""
    if not compared.holm:
        return [[{} for _ in one.lines] for one in compared.comparisons]
    found = iter(corrected([line for one in compared.comparisons for line in one.lines]))
    cells = [[next(found) for _ in one.lines] for one in compared.comparisons]
    return [
        [{"Holm": state, "p, Holm": MISSING if p is None else p_text(p)} for state, p in of] for of in cells
    ]


def reading(compared: Compared) -> list[str]:
    """Say how to read the lines, and what their number, with that of the directions, means for all."""
    said = [READING]
    number = sum(len(one.lines) for one in compared.comparisons) + len(compared.directions)
    if text := family(number, "lines"):
        said.append(text)
    if compared.holm:
        said.append(READING_HOLM)
    return said


def lead(comparison: Comparison) -> str:
    """Return how long, and on which seeds."""
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


def _line(line: Line, style: Style) -> dict[str, str]:
    scale, test = line.key.of.scale, line.test
    ends = None if test is None else test.difference.interval(0.9)
    cells = {
        "": line.key.text,
        "simulated": style.shown(line.simulated, scale),
        "live": MISSING if line.live is None else style.shown(line.live, scale),
        "difference": MISSING,
        "90 % interval": MISSING,
        "margin": MISSING,
        "p": MISSING,
        "verdict": verdict(line),
    }
    if test is not None:
        # As far as the interval beside it lets the difference be known.
        cells["difference"] = style.value(test.difference.value * scale, _half(ends, scale), sign=True)
        margin = test.margin * scale
        cells["margin"] = "±" + figure(margin) if style.is_page else short(margin, 3)
        if test.p is not None:
            cells["p"] = p_text(test.p)
    if ends is not None:
        cells["90 % interval"] = style.interval(ends[0] * scale, ends[1] * scale, sign=True)
    return _columns(cells, style)


def _columns(cells: Mapping[str, str], style: Style) -> dict[str, str]:
    """The cells of a line in the order of its medium, by the heads of its columns."""
    if not style.is_page:
        return dict(cells)
    return {head: cells[name] for head, name in PAGE_COLUMNS.items() if name in cells}


def verdict(line: Line) -> str:
    """The verdict, with the number of runs that would tell where these do not."""
    if line.test is None or line.verdict != "cannot tell":
        return line.verdict
    needed = line.test.runs_needed
    return f"cannot tell (needs {'over 1000' if needed is None else f'~{needed}'} runs)"


def _with_interval(found: Difference, scale: float, style: Style) -> str:
    """A difference with half its 95 % interval: `+0.123 ± 0.024`."""
    return style.measured(found.value * scale, _half(found.interval(), scale), sign=True)


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


def _direction(one: Direction, style: Style) -> dict[str, str]:
    measure = one.key.of
    simulated = style.shown(one.simulated, measure.scale)
    cells = {
        "": one.key.text,
        "simulated": f"+{simulated}" if one.simulated.mean > 0 else simulated,
        "live": MISSING if one.live is None else _with_interval(one.live, measure.scale, style),
        "direction": {True: "same", False: "OPPOSITE", None: "open"}[one.agree],
    }
    return _columns(cells, style)


def _agreement(found: Sequence[Direction]) -> str:
    same, opposite, unsure = (sum(one.agree is state for one in found) for state in (True, False, None))
    have, are = "has" if same == 1 else "have", "is" if unsure == 1 else "are"
    counts = f"{same} {have} the same direction, {opposite} the opposite one, {unsure} {are} open"
    return f"Of {counted(len(found), 'difference')} {counts}."


EXCHANGES = {"virtual", "exchanged"}
"""The places of the steps from the simulation to real packets."""
EXPLAINED = {
    "throughput of a flow, Mbit/s": ("throughput",),
    "RTT, ms": ("rtt",),
    "one-way delay, ms": ("one-way",),
    "links": ("queue", "delay-p95"),
}
"""Tables of changes, with the measures in each."""


def _effects(compared: Compared, place: int, style: Style) -> Iterator[Part]:
    """Yield the effects of variations: a table for each measure of the classes, and one of the links."""
    changes = compared.changes[place]
    parts = [change for change in changes if change.variation.where in EXCHANGES]
    if parts:
        yield from _table_of_changes(
            compared, place, parts, ("Parts of the difference", READING_PARTS), style
        )
    elif exchanges(compared.comparisons[place].live.scenario):
        yield Text([NO_PARTS])
    others = [change for change in changes if change.variation.where not in EXCHANGES]
    yield from _table_of_changes(compared, place, others, ("Effect of each change", READING_CHANGES), style)


def _table_of_changes(
    compared: Compared, place: int, changes: Sequence[Change], says: tuple[str, str], style: Style
) -> Iterator[Part]:
    """Yield changes as a table for each measure of the classes, and one of the links.

    `says` has what the tables show, and how to read them.
    """
    what, how = says
    comparison, first = compared.comparisons[place], "change" if style.is_page else ""
    found = []
    for name, measures in EXPLAINED.items():
        lines = [line for line in comparison.lines if line.key.measure in measures]
        if not lines:
            continue
        rows = [{first: "live minus simulated, as compared"} | _to_explain(lines, style)]
        rows += [{first: _title(change)} | _effect(lines, change, style) for change in changes]
        found.append((f"{what}: {name}", rows))
    left_out = [
        f"LEFT OUT: {counted(change.left_out, 'invalid run')} {change.variation.text}."
        for change in changes
        if change.left_out
    ]
    of = f", {compared.names[place]}" if len(compared.comparisons) > 1 else ""
    for title, rows in found:
        if style.is_page:
            yield Records(_named(compared, place) + title, rows)
            yield Text([how, *left_out], folded=HOW_TO_READ)
        else:
            yield Text([title + of])
            yield Records("", rows, stem=1)
    if found and not style.is_page:
        yield Text([how, *left_out])


def _title(change: Change) -> str:
    """The head of a change's row."""
    where, text = change.variation.where, change.variation.text
    return text if where in EXCHANGES else f"{where}: {text}"


def _to_explain(lines: Sequence[Line], style: Style) -> dict[str, str]:
    """The first row of a table of explanations: the difference that they are to explain."""
    return {
        column(line.key): MISSING if line.test is None else _changed(line.key, line.test.difference, style)
        for line in lines
    }


def _effect(lines: Sequence[Line], change: Change, style: Style) -> dict[str, str]:
    keys = [line.key for line in lines]
    return {
        column(key): _changed(key, change.by[key], style) if key in change.by else MISSING for key in keys
    }


def column(key: Key) -> str:
    """The head of a number's column."""
    return key.name if key.kind == "class" else key.text


def _changed(key: Key, found: Difference, style: Style) -> str:
    return _with_interval(found, key.of.scale, style)


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
    from perhop.show.page import html_plot  # noqa: PLC0415 - drawing takes long to import
    from perhop.show.report_files import write_report  # noqa: PLC0415

    drawn = [(plot, html_plot(plot, rows, name)) for plot, rows, name in plots(compared)]
    scenarios = [
        {
            "name": name,
            "seeds": {
                "simulated": [run.seed for run in comparison.simulated.runs],
                "live": [run.seed for run in comparison.live.runs],
            },
            "scenario": json.loads(comparison.live.scenario),
        }
        for name, comparison in zip(compared.names, compared.comparisons, strict=True)
    ]
    pictures = [shown.picture for _, shown in drawn]
    write_report(out, page(compared, drawn, command), sample_frame(compared), scenarios, pictures)
