"""What `--out` leaves of a search: the picture of its trials, their estimates, a manifest, and a page."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
from matplotlib.ticker import MaxNLocator

from perhop.scenario.ranges import text_of
from perhop.show.drawers import Drawers
from perhop.show.metric_names import shown_name, shown_text, unit_of
from perhop.show.numbers import PAGE
from perhop.show.page import HtmlPlot, html_drawing
from perhop.show.report import Origin, Records, Report
from perhop.show.report_files import write_report
from perhop.show.sheet import LINE, MUTED, SERIES, Margins, Sheet, draw, text_width, tick_texts
from perhop.show.text import label
from perhop.statistics.intervals import Estimate
from perhop.sweeps import failing, tune_answers
from perhop.sweeps.pictures import sides
from perhop.sweeps.report import found_by, split_tables
from perhop.sweeps.summary import short_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from perhop.sweeps.tune import Trial, Tuned, Winner

MOST_PAIRS = 6
STATES = {"kept": "yes", "missed": "no"}


def write_tuned(out: Path, tuned: Tuned, command: str, jobs: int = 1) -> None:
    """Plots, every trial's estimates, manifest and the page; pictures are drawn on so many cores.

    Raises:
        PerhopError: A file cannot be written.
    """
    plan = tuned.plan
    plots = html_plots(tuned, jobs)
    scenarios: list[Mapping[str, Any]] = [
        {
            "trial": winner.trial.number,
            "factors": dict(winner.trial.factors),
            "seeds": [plan.seed, plan.validation_seeds[-1]],
            "scenario": None if winner.trial.point is None else json.loads(winner.trial.point.scenario),
        }
        for winner in tuned.front
    ]
    report = Report(
        plan.title,
        [f"{tuned.lead()[0]}."],
        [
            *best_table(tuned),
            *plots,
            *front_tables(tuned),
            *found_by([*_details(tuned), *failing.page(tuned.failures, tuned.names)]),
        ],
        tune_answers.answers(tuned),
        Origin(command, "every measure of every run"),
    )
    write_report(out, report, trial_frame(tuned.trials), scenarios)


def _details(tuned: Tuned) -> list[str]:
    """What was searched, and what to think of the numbers."""
    searched = f"{tuned.lead()[1]}."
    if not tuned.front:
        return [searched]
    unbiased = tune_answers.unbiased(tuned)
    apart = (
        "All settings ran on the same fresh seeds. The best of several is better by chance alone, so they "
        "are distinguished by the studentized range (Tukey) at 95 %, from paired differences of their runs."
    )
    return (
        [searched, unbiased, apart] if len(tuned.front) > 1 or tuned.choice.compared else [searched, unbiased]
    )


def best_table(tuned: Tuned) -> list[Records]:
    """The row to take, beside what the scenario as it is gives; nothing where there is none, or a tie."""
    choice = tuned.choice
    if choice.best is None:
        return []
    best, as_it_is = tuned.front[choice.best], tuned.as_it_is

    def row(name: str, fresh: str, now: str) -> dict[str, str]:
        cells = {f"trial {best.trial.number}": name, "set, or measured on fresh seeds": fresh}
        return cells if as_it_is is None else {**cells, "as it is": now}

    def now(metric: str) -> str:
        return "" if as_it_is is None else shown_text(as_it_is.estimates[metric], metric, PAGE)

    lines = [
        *(row(name, text_of(value), "") for name, value in best.trial.factors.items()),
        *(
            row(shown_name(name), shown_text(best.fresh[name], name, PAGE), now(name))
            for name in tuned.plan.metrics
        ),
    ]
    if tuned.plan.constraints:
        held = "" if as_it_is is None else tune_answers.KEPT[as_it_is.holds]
        lines.append(row("constraints", tune_answers.KEPT[best.holds], held))
    title = "Recommended setting" if tuned.marked else "Best setting on fresh seeds, not recommended"
    return [Records(title, lines, states=STATES)]


def front_tables(tuned: Tuned) -> list[Records]:
    """One line for each trial of the front: its setting, what fresh seeds say, and what the search saw."""
    if len(tuned.front) < 2:
        return []
    plan = tuned.plan
    short = short_names(list(plan.search))
    goals = [objective.metric for objective in plan.objectives]
    marked = list(tuned.choice.marked)

    def first(winner: Winner) -> dict[str, str]:
        line = {"trial": f"{winner.trial.number}{tuned.star(winner)}"}
        line |= {short[name]: text_of(value) for name, value in winner.trial.factors.items()}
        return line | ({"constraints": tune_answers.KEPT[winner.holds]} if plan.constraints else {})

    def fresh(winner: Winner, metric: str) -> str:
        return shown_text(winner.fresh[metric], metric, PAGE)

    def searched(winner: Winner, metric: str) -> str:
        found = winner.trial.found[metric]
        return shown_text(None if found is None else replace(found, ci95=None), metric, PAGE)

    what = "The Pareto front" if len(goals) > 1 else "The best trials"
    seen = split_tables(f"{what} on search seeds (biased)", tuned.front, first, goals, searched)
    tables = [*split_tables(f"{what} on fresh seeds", tuned.front, first, plan.metrics, fresh), *seen]
    return [replace(table, marked=marked, states=STATES) for table in tables]


def trial_frame(trials: Sequence[Trial]) -> pl.DataFrame:
    """One row for each trial and metric: `trial`, the factors, `feasible`, `metric`, `mean`, `low`, `high`.

    Null where a trial has no value; `low` and `high` are the ends of the 95 % interval.
    """
    rows = [
        {
            "trial": trial.number,
            **dict(trial.factors),
            "feasible": trial.feasible,
            "metric": metric,
            "mean": None if found is None else found.mean,
            "low": None if found is None or found.ci95 is None else found.ci95[0],
            "high": None if found is None or found.ci95 is None or math.isinf(found.high) else found.high,
        }
        for trial in trials
        for metric, found in trial.found.items()
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


def _views(tuned: Tuned) -> list[tuple[str, str, str]]:
    """Name and axes of each picture: pairs of objectives, or the course of a single one."""
    metrics = [objective.metric for objective in tuned.plan.objectives]
    if not any(_known(trial, metrics) for trial in tuned.trials):
        return []
    if len(metrics) == 1:
        return [("tune-course", "", metrics[0])]
    pairs = [(x, y) for place, x in enumerate(metrics) for y in metrics[place + 1 :]]
    return [(f"tune-front-{number}", x, y) for number, (x, y) in enumerate(pairs[:MOST_PAIRS], 1)]


def _title(x: str, y: str) -> str:
    if not x:
        return f"Course of the search: {shown_name(y)}"
    return f"Pareto front: {shown_name(x).partition(',')[0]} and {shown_name(y).partition(',')[0]}"


def html_plots(tuned: Tuned, jobs: int = 1) -> list[HtmlPlot]:
    """The pictures of the search, for a page and for files, drawn on so many cores."""
    views = _views(tuned)
    with Drawers(jobs, len(views)) as drawers:
        return drawers.get([drawers.ask(_html_plot, tuned, *view) for view in views])


def _html_plot(tuned: Tuned, name: str, x: str, y: str) -> HtmlPlot:
    text = "Error bars: 95 % intervals on fresh seeds." if x else "The line is the best trial so far."
    title = _title(x, y)
    return html_drawing(draw(partial(_sheet, tuned, x, y), name, (title, text), [title]), title, text)


def _sheet(tuned: Tuned, x: str, y: str, *, title: str = "", remark: str = "", narrow: bool = False) -> Sheet:
    sheet = Sheet(1, height=240.0 if narrow else 300.0, title=title, remark=remark, narrow=narrow)
    axes = sheet.axes(0, Margins())
    if x:
        _front(axes, tuned, x, y)
    else:
        _course(axes, tuned, y)
    axes.set_ylabel(label(shown_name(y)))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=7, steps=[1, 2, 2.5, 5, 10]))
    names = axes.get_legend_handles_labels()[1]
    columns = max(1, min(len(names), int(sheet.width / (max(map(text_width, names), default=0.0) + 34.0))))
    left = 33.0 + max(map(text_width, tick_texts(axes, "y")), default=0.0)
    legend = LINE * math.ceil(len(names) / columns)
    sheet.place(axes, 0, Margins(left, 16.0, 8.0 + legend, 36.0))
    axes.legend(
        frameon=False,
        loc="lower left",
        bbox_to_anchor=(-left / (sheet.width - left - 16.0), 1.0),
        borderaxespad=0.1,
        ncols=columns,
        handletextpad=0.3,
        columnspacing=1.2,
    )
    return sheet


def _front(axes: Axes, tuned: Tuned, x: str, y: str) -> None:
    """All trials as the search saw them, and the winners as fresh seeds see them."""
    known = [trial for trial in tuned.trials if _known(trial, (x, y))]
    for feasible in (False, True):
        own = [trial for trial in known if trial.feasible is feasible]
        across, up = ([_at(trial.found[name], name) for trial in own] for name in (x, y))
        _dots(axes, across, up, feasible=feasible)
    winners = sorted(tuned.front, key=lambda winner: _at(winner.fresh[x], x))
    if winners:
        seen = [winner.trial.found for winner in winners]
        axes.plot(
            [_at(found[x], x) for found in seen],
            [_at(found[y], y) for found in seen],
            "o",
            color=SERIES[0],
            markersize=5,
            markerfacecolor="none",
            label="front, on search seeds",
        )
        axes.errorbar(
            [_at(winner.fresh[x], x) for winner in winners],
            [_at(winner.fresh[y], y) for winner in winners],
            xerr=_sides([winner.fresh[x] for winner in winners], x),
            yerr=_sides([winner.fresh[y] for winner in winners], y),
            fmt="o",
            color=SERIES[0],
            markersize=5,
            elinewidth=1.0,
            label="front, on fresh seeds",
        )
        if tuned.marked:
            axes.plot(
                [_at(one.fresh[x], x) for one in tuned.marked],
                [_at(one.fresh[y], y) for one in tuned.marked],
                "*",
                color=SERIES[1],
                markersize=13,
                label="recommended" if len(tuned.marked) == 1 else "equally good",
                zorder=5,
            )
        if tuned.choice.compared and tuned.as_it_is is not None:
            now = tuned.as_it_is.estimates
            axes.errorbar(
                [_at(now[x], x)],
                [_at(now[y], y)],
                xerr=_sides([now[x]], x),
                yerr=_sides([now[y]], y),
                fmt="s",
                color=SERIES[2],
                markersize=6,
                elinewidth=1.0,
                label="as it is",
                zorder=4,
            )
    axes.set_xlabel(label(shown_name(x)))
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6))


def _course(axes: Axes, tuned: Tuned, y: str) -> None:
    """Each trial, and the best so far within the constraints."""
    maximize = tuned.plan.objectives[0].maximize
    best: list[tuple[int, float]] = []
    known = [trial for trial in tuned.trials if _known(trial, (y,))]
    for feasible in (False, True):
        own = [trial for trial in known if trial.feasible is feasible]
        _dots(
            axes,
            [trial.number for trial in own],
            [_at(trial.found[y], y) for trial in own],
            feasible=feasible,
        )
    leader: Trial | None = None
    for trial in known:
        if trial.feasible:
            leader = trial if leader is None else _better(trial, leader, maximize=maximize)
            best.append((trial.number, _at(leader.found[y], y)))
    if best:
        best.append((len(tuned.trials) - 1, best[-1][1]))
        numbers, values = zip(*best, strict=True)
        axes.step(numbers, values, where="post", color=SERIES[0], linewidth=1.6, label="best so far")
    axes.set_xlabel("Trial")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _better(trial: Trial, leader: Trial, *, maximize: bool) -> Trial:
    """The better of two trials by a single objective, as the search has it."""
    assert trial.scores is not None
    assert leader.scores is not None
    ahead = trial.scores > leader.scores if maximize else trial.scores < leader.scores
    return trial if ahead else leader


def _dots(axes: Axes, x: Sequence[float], y: Sequence[float], *, feasible: bool) -> None:
    """Trials as the search saw them; hollow where they miss a constraint."""
    if x:
        axes.plot(
            x,
            y,
            "o",
            color=MUTED,
            alpha=0.55,
            markersize=4,
            markerfacecolor=MUTED if feasible else "none",
            label="trial" if feasible else "violates a constraint",
        )


def _known(trial: Trial, metrics: Sequence[str]) -> bool:
    return all(trial.found[name] is not None for name in metrics)


def _at(found: Estimate | None, metric: str) -> float:
    assert found is not None
    return found.mean * unit_of(metric).factor


def _sides(found: Sequence[Estimate | None], metric: str) -> list[list[float]]:
    """The error bars of values, in the metric's unit."""
    factor = unit_of(metric).factor
    drawn = [(one.mean, *(one.drawn or (one.mean, one.mean))) for one in found if one is not None]
    return sides([(mean * factor, low * factor, high * factor) for mean, low, high in drawn])
