"""What `--out` leaves of a search: the picture of its trials, their estimates, a manifest, and a page."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import polars as pl
from markupsafe import Markup
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator

from perhop.output.files import manifest, write, write_parquet
from perhop.output.plot import MUTED, SERIES, STYLE, Picture, inline_svg, to_png, to_svg
from perhop.output.report import HtmlPlot, render
from perhop.output.writer import draw
from perhop.sweep.summary import shown_name, unit_of

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes

    from perhop.statistics import Estimate
    from perhop.sweep.tune import Trial, Tuned, Winner

SIZE_INCHES = (6.2, 4.2)
MOST_PAIRS = 6


def write_tuned(out: Path, tuned: Tuned, command: str) -> None:
    """Plots, every trial's estimates, manifest and, last, the page.

    Raises:
        PerhopError: A file cannot be written.
    """
    drawn = draw(out, _pictures(tuned))
    write_parquet(out / "samples.parquet", trial_frame(tuned.trials))
    plan = tuned.plan
    scenarios: list[Mapping[str, Any]] = [
        {
            "trial": winner.trial.number,
            "factors": dict(winner.trial.factors),
            "seeds": [plan.seed, plan.validation_seeds[-1]],
            "scenario": None if winner.trial.point is None else json.loads(winner.trial.point.scenario),
        }
        for winner in tuned.front
    ]
    write(out / "manifest.json", manifest(command, scenarios, drawn))
    first, *notes = tuned.lead()
    page = render(
        "sweep.html.j2",
        title=plan.title,
        lead=first,
        notes=notes,
        tables=[("Winners", table) for table in tuned.tables()],
        plots=_html_plots(tuned),
        command=command,
    )
    write(out / "report.html", page)


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
            "high": None if found is None or found.ci95 is None else found.ci95[1],
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


def _pictures(tuned: Tuned) -> Iterator[Picture]:
    for name, x, y in _views(tuned):
        with mpl.rc_context({**STYLE, "svg.fonttype": "path"}):
            figure = _figure(tuned, x, y)
            figure.suptitle(_title(x, y), x=0.01, ha="left", fontsize=11, fontweight="bold")
            yield Picture(name, _title(x, y), to_svg(figure), to_png(figure))


def _html_plots(tuned: Tuned) -> list[HtmlPlot]:
    out = []
    for name, x, y in _views(tuned):
        with mpl.rc_context({**STYLE, "svg.fonttype": "none"}):
            svg = inline_svg(to_svg(_figure(tuned, x, y)), name, _title(x, y))
        text = "Bars are 95 % intervals on fresh seeds." if x else "The line is the best trial so far."
        out.append(HtmlPlot(_title(x, y), text, [Markup(svg)]))  # noqa: S704 - the library escapes names
    return out


def _figure(tuned: Tuned, x: str, y: str) -> Figure:
    figure = Figure(figsize=SIZE_INCHES, layout=ConstrainedLayoutEngine())
    axes = figure.subplots()
    if x:
        _front(axes, tuned, x, y)
    else:
        _course(axes, tuned, y)
    axes.set_ylabel(shown_name(y))
    axes.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=4)
    return figure


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
            label="front, as searched",
        )
        axes.errorbar(
            [_at(winner.fresh[x], x) for winner in winners],
            [_at(winner.fresh[y], y) for winner in winners],
            xerr=[_half(winner, x) for winner in winners],
            yerr=[_half(winner, y) for winner in winners],
            fmt="o",
            color=SERIES[0],
            markersize=5,
            elinewidth=1.0,
            label="front, on fresh seeds",
        )
    axes.set_xlabel(shown_name(x))


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
    pick = max if maximize else min
    for trial in known:
        if trial.feasible:
            value = _at(trial.found[y], y)
            best.append((trial.number, pick(value, best[-1][1]) if best else value))
    if best:
        best.append((len(tuned.trials) - 1, best[-1][1]))
        numbers, values = zip(*best, strict=True)
        axes.step(numbers, values, where="post", color=SERIES[0], linewidth=1.6, label="best so far")
    axes.set_xlabel("Trial")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


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
            label="trial" if feasible else "outside the constraints",
        )


def _known(trial: Trial, metrics: Sequence[str]) -> bool:
    return all(trial.found[name] is not None for name in metrics)


def _at(found: Estimate | None, metric: str) -> float:
    assert found is not None
    return found.mean * unit_of(metric).factor


def _half(winner: Winner, metric: str) -> float:
    found = winner.fresh[metric]
    return 0.0 if found is None else (found.half_width or 0.0) * unit_of(metric).factor
