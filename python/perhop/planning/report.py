"""What `--out` leaves of a plan: one page for whoever asked, pictures, the runs' values, and a manifest."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from perhop.planning.job import JudgedSetting, Limit, Planned
from perhop.planning.summary import answers, lead, notes, settings, tables
from perhop.plurals import counted
from perhop.scenario.ranges import text_of
from perhop.show.page import HtmlPlot, html_drawing
from perhop.show.report import Code, Origin, Part, Records, Report, Text
from perhop.show.report_files import write_report
from perhop.show.sheet import LINE, SERIES, Margins, Sheet, draw, text_width
from perhop.show.text import label
from perhop.sweeps import failing

BAR = 26.0
"""Height of a demand in the picture, in points."""
THICK = 0.34


def write_plan(out: Path, planned: Planned, command: str, jobs: int = 1) -> None:  # noqa: ARG001 - one picture
    """Picture, values of all runs, manifest and the page.

    Raises:
        PerhopError: A file cannot be written.
    """
    plots = [growth_plot(planned)] if any(setting.limits for setting, _ in settings(planned)) else []
    report = Report(
        planned.plan.title,
        [f"{lead(planned)}."],
        [*plots, *_parts(planned)],
        answers(planned),
        Origin(command, "every judged value of every run"),
    )
    write_report(out, report, value_frame(planned), _scenarios(planned))


def _parts(planned: Planned) -> Iterator[Part]:
    """The parts of the page below the answers and the picture."""
    yield from tables(planned)
    if planned.better is not None:
        factors = planned.better.winner.trial.factors
        rows = [{"key": name, "value": text_of(value)} for name, value in factors.items()]
        yield Records("What the best setting changes", rows)
    if planned.changes:
        yield Code("Changed lines of the configuration", planned.changes)
    if planned.lines is not None:
        yield Code("Lines for the router", [planned.lines.text], "All lines")
    yield Text([*notes(planned), *failing.page(planned.failures, planned.names)], "How to read this")
    if findings := _findings(planned):
        yield Text(findings, "What the simulation does differently from the router")


def _findings(planned: Planned) -> list[str]:
    """What reading the configuration said, but for lines without effect."""
    imported = planned.plan.imported
    if imported is None:
        return []
    listed = [f"`{one.code}` line {one.line}: {one.text}" for one in imported.findings if one.code != "W13"]
    ignored = len(imported.findings) - len(listed)
    if ignored:
        have = "has" if ignored == 1 else "have"
        listed.append(f"{counted(ignored, 'line')} of the configuration {have} no effect on queues.")
    return listed


def _scenarios(planned: Planned) -> list[Mapping[str, Any]]:
    seeds = [planned.plan.seeds[0], planned.plan.seeds[-1]]
    return [
        {"setting": what, "seeds": seeds, "scenario": json.loads(setting.scenario)}
        for setting, what in settings(planned)
    ]


def value_frame(planned: Planned) -> pl.DataFrame:
    """Every judged value: `setting`, `demand`, `multiple`, `objective`, `seed`, `value` in the metric's unit.

    Null where a run has no value. Today's demand has an empty `demand`.
    """
    rows = [row for setting, what in settings(planned) for row in _values(planned, setting, what)]
    types = {
        "setting": pl.String,
        "demand": pl.String,
        "multiple": pl.Float64,
        "objective": pl.String,
        "seed": pl.UInt64,
        "value": pl.Float64,
    }
    return pl.DataFrame(rows, schema=types, orient="row")


def _values(planned: Planned, setting: JudgedSetting, what: str) -> Iterator[tuple[object, ...]]:
    looked = [("", 1.0, setting.verdicts)]
    for limit in setting.limits:
        levels = limit.demand.levels
        looked += [(limit.demand.name, levels[at], found) for at, found in sorted(limit.looked.items())]
    for demand, multiple, verdicts in looked:
        for verdict in verdicts:
            for seed, value in zip(planned.plan.seeds, verdict.values, strict=True):
                yield what, demand, multiple, verdict.text, seed, None if math.isnan(value) else value


def growth_plot(planned: Planned) -> HtmlPlot:
    """How far each demand can grow: up to where everything holds, and where the first objective breaks."""
    title = "How far each demand can grow"
    text = (
        "Solid: every objective holds. Pale: the runs cannot tell. At its end an objective breaks, or, with "
        "an arrow, the search ended."
    )
    drawn = draw(partial(_sheet, planned), "plan-growth", (title, text), [title])
    return html_drawing(drawn, title, text)


def _sheet(planned: Planned, *, title: str = "", remark: str = "", narrow: bool = False) -> Sheet:
    drawn = [(setting, what) for setting, what in settings(planned) if setting.limits]
    names = [demand.name for demand in planned.plan.demands]
    columns = 1 if narrow else len(drawn)
    legend = 5.0 + LINE * math.ceil(len(drawn) / columns) if len(drawn) > 1 else 0.0
    height = BAR * len(names) * (0.6 + 0.4 * len(drawn)) + 52.0 + legend
    sheet = Sheet(1, height=height, title=title, remark=remark, narrow=narrow)
    shown = [label(name, 18 if narrow else 40) for name in names]
    left = 12.0 + max(map(text_width, shown))
    axes = sheet.axes(0, Margins(left, 16.0, 8.0 + legend, 36.0))
    most = 1.0
    for place, (setting, what) in enumerate(drawn):
        shift = (place - (len(drawn) - 1) / 2) * (THICK + 0.04)
        for limit in setting.limits:
            row = names.index(limit.demand.name) + shift
            most = max(most, _bar(axes, limit, row, SERIES[place], what))
    axes.set_yticks(range(len(names)), shown)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlim(0, 100 * (most - 1) * 1.05 or 1.0)
    axes.set_xlabel("Growth over today, %")
    axes.grid(visible=True, axis="x")
    axes.grid(visible=False, axis="y")
    if len(drawn) > 1:
        handles, texts = axes.get_legend_handles_labels()
        by_text = dict(zip(texts, handles, strict=True))
        axes.legend(
            by_text.values(),
            by_text,
            frameon=False,
            loc="lower left",
            bbox_to_anchor=(0.0, 1.0),
            ncols=columns,
        )
    return sheet


def _bar(axes: Any, limit: Limit, row: float, color: str, what: str) -> float:  # noqa: ANN401 - matplotlib's
    """Draw one demand of one setting; the largest multiple that it shows."""
    end = limit.demand.levels[-1] if limit.breaks is None else limit.breaks
    holds, ends = 100 * (limit.holds - 1), 100 * (end - 1)
    axes.barh(row, ends, height=THICK, color=color, alpha=0.28)
    axes.barh(row, holds, height=THICK, color=color, label=what)
    if limit.breaks is None:
        axes.plot([ends], [row], ">", color=color, markersize=6, clip_on=False)
    else:
        axes.plot([ends, ends], [row - THICK / 2, row + THICK / 2], color=color, linewidth=1.6)
    return end
