"""The page of `perhop compare`: the verdicts in words and as a picture, then every number."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perhop.plurals import counted
from perhop.real_packets import report
from perhop.real_packets.explain import otherwise
from perhop.show.figures import MISSING, estimate, estimated, figure, interval
from perhop.show.page import HtmlRecords, html_plot, render
from perhop.show.report_files import write_report
from perhop.statistics.multiplicity import p_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from perhop.real_packets.equivalence import Comparison, Direction, Line
    from perhop.real_packets.explain import Change
    from perhop.real_packets.report import Compared
    from perhop.statistics.intervals import Difference, Estimate

MOST_NAMED = 5
"""Numbers that a sentence names."""
STATES = {"equivalent": "yes", "same": "yes", "different": "no", "OPPOSITE": "no"}


@dataclass(frozen=True, slots=True)
class HtmlPart:
    """A table, or a heading, with what a reader should know of it; `folded` names what is folded."""

    title: str
    table: HtmlRecords | None = None
    before: Sequence[str] = ()
    after: Sequence[str] = ()
    folded: str = ""


def write(out: Path, compared: Compared, command: str) -> None:
    """Plots, samples, manifest and the page.

    Raises:
        PerhopError: A file cannot be written.
    """
    drawn = [(plot.kind, html_plot(plot, rows, name)) for plot, rows, name in report.plots(compared)]
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
    page = render(
        "compare.html.j2",
        title="Simulation and real packets: " + " and ".join(compared.names),
        answers=answers(compared),
        leads=[
            f"{_named(compared, place)}{report.lead(one)}." for place, one in enumerate(compared.comparisons)
        ],
        first=[plot for kind, plot in drawn if kind == "dots"],
        rest=[plot for kind, plot in drawn if kind != "dots"],
        parts=list(_parts(compared)),
        kernel=compared.comparisons[0].live.reports[0].findings["kernel"],
        command=command,
    )
    write_report(
        out, page, [plot.picture for _, plot in drawn], report.sample_frame(compared), (command, scenarios)
    )


def _named(compared: Compared, place: int) -> str:
    return f"{compared.names[place]}: " if len(compared.comparisons) > 1 else ""


def answers(compared: Compared) -> list[str]:
    """How well simulation and real packets agree, in sentences."""
    said = [_direction_answer(compared)] if compared.directions else []
    for place, comparison in enumerate(compared.comparisons):
        text = _named(compared, place) + _verdicts(comparison)
        said.append(text if len(compared.comparisons) > 1 else text[0].upper() + text[1:])
        said += report.invalid(comparison)
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


def _verdicts(comparison: Comparison) -> str:
    lines = comparison.lines
    equivalent, different, unsure = (
        [line for line in lines if line.verdict == one] for one in report.VERDICTS
    )
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


def _parts(compared: Compared) -> Iterator[HtmlPart]:
    """What follows the answer and its picture, in reading order."""
    reading = "How to read this table"
    if compared.directions:
        title = f"{compared.names[0]} minus {compared.names[1]}: simulated, and on real packets"
        table = HtmlRecords.of(title, [_direction(one) for one in compared.directions], states=STATES)
        yield HtmlPart(title, table, (), [report.READING_DIRECTIONS], reading)
    holm, last = report.holm_cells(compared), len(compared.comparisons) - 1
    for place, comparison in enumerate(compared.comparisons):
        title = f"Verdicts: {compared.headings[place]}"
        rows = [_line(line) | cells for line, cells in zip(comparison.lines, holm[place], strict=True)]
        table = HtmlRecords.of(title, rows, states=STATES)
        said = report.reading(compared) if place == last else [report.READING]
        yield HtmlPart(title, table, (), said, reading)
    said = list(dict.fromkeys(t for one in compared.comparisons for t in otherwise(one.live.scenario)))
    if said:
        after = [f"- {text}" for text in said]
        more = [] if compared.changes else ["`perhop compare --explain` measures the effect of each."]
        yield HtmlPart("How the kernel's TCP differs from the simulated one", None, (), [*after, *more])
    for place, changes in enumerate(compared.changes):
        if changes:
            yield from _explained(compared.comparisons[place], changes, _named(compared, place))


def _line(line: Line) -> dict[str, str]:
    measure, test = line.key.of, line.test
    scale = measure.scale
    ends = None if test is None else test.difference.interval(0.9)
    return {
        "number": line.key.text,
        "verdict": report.verdict(line),
        "difference": MISSING
        if test is None
        else figure(test.difference.value * scale, _half(ends, scale), sign=True),
        "margin": MISSING if test is None else "±" + figure(test.margin * scale),
        "90 % interval": MISSING if ends is None else interval(ends[0] * scale, ends[1] * scale, sign=True),
        "simulated": _estimate(line.simulated, scale),
        "on real packets": MISSING if line.live is None else _estimate(line.live, scale),
        "p": MISSING if test is None or test.p is None else p_text(test.p),
    }


def _half(ends: tuple[float, float] | None, scale: float) -> float | None:
    return None if ends is None else (ends[1] - ends[0]) / 2 * scale


def _estimate(found: Estimate, scale: float) -> str:
    ends = (None, None) if found.ci95 is None else (end * scale for end in found.ci95)
    return estimated(found.mean * scale, *ends)


def _direction(one: Direction) -> dict[str, str]:
    scale = one.key.of.scale
    simulated = _estimate(one.simulated, scale)
    return {
        "number": one.key.text,
        "direction": {True: "same", False: "OPPOSITE", None: "open"}[one.agree],
        "simulated": f"+{simulated}" if one.simulated.mean > 0 else simulated,
        "on real packets": MISSING if one.live is None else _difference(one.live, scale),
    }


def _difference(found: Difference, scale: float) -> str:
    return estimate(found.value * scale, _half(found.interval(), scale), sign=True)


def _explained(comparison: Comparison, changes: Sequence[Change], of: str) -> Iterator[HtmlPart]:
    """What each variation changes: a table for each measure of the classes, and one of the links."""
    for name, measures in report.EXPLAINED.items():
        lines = [line for line in comparison.lines if line.key.measure in measures]
        if not lines:
            continue
        keys = [line.key for line in lines]
        rows = [
            {
                "change": "live minus simulated, as compared",
                **{
                    report.column(line.key): MISSING
                    if line.test is None
                    else _difference(line.test.difference, line.key.of.scale)
                    for line in lines
                },
            }
        ]
        rows += [
            {
                "change": f"{change.variation.where}: {change.variation.text}",
                **{
                    report.column(key): _difference(change.by[key], key.of.scale)
                    if key in change.by
                    else MISSING
                    for key in keys
                },
            }
            for change in changes
        ]
        title = f"{of}Effect of each change: {name}"
        left_out = [
            f"LEFT OUT: {counted(change.left_out, 'invalid run')} {change.variation.text}."
            for change in changes
            if change.left_out
        ]
        table = HtmlRecords.of(title, rows)
        yield HtmlPart(title, table, (), [report.READING_CHANGES, *left_out], "How to read this table")
