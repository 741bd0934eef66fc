"""What `--out` leaves of a plan: one page for whoever asked, pictures, the runs' values, and a manifest."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import polars as pl
from markupsafe import Markup

from perhop.planning.summary import answers, lead, limit_rows, notes, settings, verdict_rows
from perhop.planning.verdicts import BREAKS, HOLDS
from perhop.plurals import counted
from perhop.scenario.ranges import text_of
from perhop.show.page import HtmlPlot, HtmlRecords, render
from perhop.show.report_files import write_report
from perhop.show.sheet import LINE, SERIES, Margins, Sheet, styled, text_width, to_svg
from perhop.show.text import label
from perhop.sweeps import failing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from perhop.planning.job import Limit, Planned, Setting
    from perhop.show.sheet import Picture

STATES = {HOLDS: "yes", BREAKS: "no"}
BAR = 26.0
"""Height of a demand in the picture, in points."""
THICK = 0.34


def write_plan(out: Path, planned: Planned, command: str, jobs: int = 1) -> None:  # noqa: ARG001 - one picture
    """Picture, values of all runs, manifest and the page.

    Raises:
        PerhopError: A file cannot be written.
    """
    plots = [growth_plot(planned)] if any(setting.limits for setting, _ in settings(planned)) else []
    page = render(
        "plan.html.j2",
        title=planned.plan.title,
        answers=answers(planned),
        lead=f"{lead(planned)}.",
        tables=tables(planned),
        plots=plots,
        details=[*notes(planned), *failing.page(planned.failures, planned.names)],
        findings=_findings(planned),
        lines=None if planned.lines is None else planned.lines.text,
        changes="\n".join(planned.changes),
        command=command,
    )
    pictures: list[Picture] = [plot.picture for plot in plots]
    write_report(out, page, pictures, value_frame(planned), (command, _scenarios(planned)))


def tables(planned: Planned) -> list[HtmlRecords]:
    """Objectives and growth of each setting, and the setting itself."""
    found = []
    for (setting, what), rows in zip(settings(planned), verdict_rows(planned), strict=True):
        found.append(HtmlRecords.of(f"Objectives {what}", rows, states=STATES))
        if setting.limits:
            found.append(_growth_table(setting.limits, what))
    if planned.better is not None:
        rows = [
            {"key": name, "value": text_of(value)}
            for name, value in planned.better.winner.trial.factors.items()
        ]
        found.append(HtmlRecords.of("What the best setting changes", rows))
    return found


def _growth_table(limits: Sequence[Limit], what: str) -> HtmlRecords:
    """How far each demand can grow; the objectives that break may take several lines."""
    rows = limit_rows(limits)
    return HtmlRecords.of(f"Growth {what}", rows, states={row["first to break"]: "text" for row in rows})


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


def _values(planned: Planned, setting: Setting, what: str) -> Iterator[tuple[object, ...]]:
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
    with styled():
        sheet = _sheet(planned, title=title, remark=text)
        picture = sheet.picture("plan-growth", title)
        panels = [Markup(svg) for svg in sheet.inline(picture.svg, "plan-growth", [title])]  # noqa: S704
        slim = _sheet(planned, narrow=True)
        svgs = slim.inline(to_svg(slim.figure), "plan-growth-narrow", [title])
        narrow = [Markup(svg) for svg in svgs]  # noqa: S704 - our SVG
    return HtmlPlot(title, text, panels, narrow, 1, picture)


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


__all__ = ["growth_plot", "tables", "value_frame", "write_plan"]
