"""Sweeps draw the bound of a delay beside what runs measure, by hand: a packet takes 0.2 ms on the link."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from perhop.bounds import deriving
from perhop.scenario import reading
from perhop.show.plot import figure
from perhop.statistics.intervals import estimate
from perhop.sweeps.pictures import AT_MOST, drawn, guarantees, html_plots, waiting_times
from perhop.sweeps.plan import Point
from perhop.sweeps.summary import PointSummary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perhop.scenario.ranges import Value
    from perhop.show.declared import Plot, Row

SCENARIO = """\
duration = "1s"
[links.edge]
from = "a"
to = "b"
rate = "10Mbps"
delay = "1ms"
queue = { aqm = "drop-tail", limit = "LIMIT" }
[[flows]]
name = "talk"
count = COUNT
from = "a"
to = "b"
transport = { udp = "cbr", rate = "80kbps", packet = "250B" }
"""
DELAY, WAIT, RATE = "flows.talk.one_way_delay_p99_s", "links.edge.delay_p99_s", "flows.talk.throughput_bps"


def point(count: int, wait: float = 1e-4, limit: str = "60p") -> PointSummary:
    """So many flows, whose last packet waits for all others, and what runs may measure of them."""
    scenario = reading.canonical(SCENARIO.replace("COUNT", str(count)).replace("LIMIT", limit))
    values = {DELAY: wait + 1.2e-3, WAIT: wait, RATE: 8e4}
    estimates = {name: estimate([value, value]) for name, value in values.items()}
    factors: dict[str, Value] = {"flows.talk.count": count, "links.edge.queue.limit": limit}
    return PointSummary(Point(factors, scenario, f"{count} {limit}"), 2, estimates)


def plotted(points: Sequence[PointSummary]) -> dict[str, tuple[Plot, Sequence[Row]]]:
    """The plots by metric."""
    found = [one for one in drawn(points, guarantees(points)) if isinstance(one, tuple)]
    return {plot.metric: (plot, rows) for plot, rows in found}


def dotted(plot: Plot, rows: Sequence[Row]) -> list[list[list[float]]]:
    """The dotted lines of the first panel, each with its x and its y."""
    lines = [line for line in figure(plot, rows, "x").axes[0].lines if line.get_linestyle() == ":"]
    return [np.asarray(line.get_data(), dtype=float).tolist() for line in lines if np.size(line.get_xdata())]


def heights(rows: Sequence[Row]) -> dict[object, float | None]:
    return {row.factors["x"]: row.mean for row in rows if row.metric == AT_MOST}


def test_each_delay_has_the_bound_of_each_point() -> None:
    points = [point(count) for count in (2, 3, 4)]
    plots = plotted(points)
    assert heights(plots[DELAY][1]) == pytest.approx({2: 1.4, 3: 1.6, 4: 1.8}, rel=1e-4)
    assert heights(plots[WAIT][1]) == pytest.approx({2: 0.2, 3: 0.4, 4: 0.6}, rel=1e-4)
    assert heights(plots[RATE][1]) == {}
    ((_, rows),) = waiting_times(points, guarantees(points))
    assert heights(rows) == heights(plots[WAIT][1])


def test_it_is_a_dotted_line_but_where_it_would_squeeze_the_others() -> None:
    points = [point(count, 1.1e-4) for count in (2, 3, 4)]
    ((x, y),) = dotted(*plotted(points)[WAIT])
    assert x == [2.0, 3.0]
    assert y == pytest.approx([0.2, 0.4], rel=1e-4)
    captions = [plot.caption for plot in html_plots(points, "sweep")]
    assert "Dotted: at most in any run. Above the scale: at most 0.6001 ms." in captions[1]
    assert "Dotted: at most in any run." in captions[0]
    assert "at most" not in captions[2]


def test_categories_have_it_above_their_marks() -> None:
    plot, rows = plotted([point(4, 3e-4, limit) for limit in ("60p", "1MB")])[WAIT]
    assert plot.kind == "points"
    assert [y for _, y in dotted(plot, rows)] == [pytest.approx([0.6, 0.6], rel=1e-4)] * 2


def test_points_that_are_large_together_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [point(count) for count in (2, 3)]  # 5 flows, and links in both directions
    monkeypatch.setattr(deriving, "MOST_PARTS", 9)
    assert len(guarantees(points)) == 2
    monkeypatch.setattr(deriving, "MOST_PARTS", 8)
    assert guarantees(points) == {}


def test_a_bound_that_is_too_high_leaves_the_axis_as_it_was() -> None:
    plot, _ = plotted([point(count, wait) for count, wait in ((80, 1.0e-3), (81, 1.1e-3))])[WAIT]
    assert not plot.from_zero
