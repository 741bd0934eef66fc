"""Where both sides gain: link rate, share of green, beta, N_g and D, one or two at a time."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from perhop.studies.hurley.common import (
    ABE,
    BLUE,
    DSD,
    FLAT,
    GREEN,
    RAP,
    SCHEME_NAMES,
    SETTING,
    THIS,
    TITLE,
    Setting,
    traffic,
    waits,
)
from perhop.studies.paper import claims
from perhop.study import Axis, Judgement, Plot, Row, Study, Table, by_interval

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from perhop.runs import Run
    from perhop.statistics import Estimate
    from perhop.study import Evidence, Factors, Sample

FLOWS = 20
HALF = FLOWS // 2
ROUTERS = (ABE, DSD, FLAT)


@dataclass(frozen=True, slots=True)
class Point:
    """One place of the sweep.

    Attributes:
        changes: What differs from the paper's setting.
        green: How many of the 20 flows are green.
    """

    name: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    green: int = HALF

    @property
    def setting(self) -> Setting:
        """The setting of this place."""
        return replace(SETTING, **self.changes)


BASE = "unchanged"
RATES = (1.0, 2.0, 5.0, 10.0, 20.0)
GREENS = (2, 6, 10, 14, 18)
POINTS = {
    point.name: point
    for point in (
        Point(BASE),
        *(Point(f"beta {beta:g}", {"beta": beta}) for beta in (1.0, 2.0, 5.0)),
        *(Point(f"N_g {limit}", {"green_limit": limit}) for limit in (2, 5, 20)),
        *(Point(f"D {ms} ms", {"deadline": f"{ms}ms"}) for ms in (20, 50, 200)),
        Point("integral law", {"law": "integral"}),
    )
}
GRID = {
    (rate, green): Point(f"{rate:g} Mbit/s, {green} green", {"rate_mbps": rate}, green)
    for rate in RATES
    for green in GREENS
}

CHANGED = Axis("change", "Change", {name: name for name in POINTS})
RATE_AXIS = Axis("rate_mbps", "Link, Mbit/s")
GREEN_AXIS = Axis("green_flows", "Green flows of 20")
ROUTER_AXIS = Axis("scheme", "Router", {s: SCHEME_NAMES[s] for s in (ABE, DSD)})

STATEMENT = THIS.item("sweep")


def cells() -> Iterator[dict[str, Any]]:
    """One change at a time, and link rate against share of green; under every router that it concerns."""
    for name in POINTS:
        for scheme in (ABE, FLAT) if name != BASE else ROUTERS:
            yield {"part": "changes", "change": name, "scheme": scheme}
    for rate, green in GRID:
        for scheme in ROUTERS:
            yield {"part": "grid", "rate_mbps": rate, "green_flows": green, "scheme": scheme}


def point(factors: Factors) -> Point:
    """The place that a cell belongs to."""
    if factors["part"] == "changes":
        return POINTS[str(factors["change"])]
    return GRID[float(factors["rate_mbps"]), int(factors["green_flows"])]


def build(factors: Factors) -> Mapping[str, Any]:
    """Twenty flows, some of them green."""
    here = point(factors)
    title = f"Asymmetric Best-Effort, {here.name}"
    return here.setting.scenario(title, str(factors["scheme"]), FLOWS - here.green, here.green, RAP)


def samples(factors: Factors, run: Run) -> Iterator[Sample]:
    """Rates, losses and waits of both services."""
    yield from traffic(factors, run)
    yield from waits(factors, run)


@dataclass(frozen=True, slots=True)
class Gain:
    """What each side gains against flat best effort, paired by seed.

    Attributes:
        blue: Throughput of a blue flow, Mbit/s.
        green: 99 % quantile of green's wait, ms, below flat best effort's.
    """

    blue: Estimate
    green: Estimate

    @property
    def both(self) -> bool:
        """Both intervals lie above zero."""
        return self.blue.low > 0 and self.green.low > 0


def gain(evidence: Evidence, key: Factors, scheme: str = ABE) -> Gain:
    """The gains at one place."""
    ours, flat = {**key, "scheme": scheme}, {**key, "scheme": FLAT}
    return Gain(
        evidence.difference("throughput", {**ours, "service": BLUE}, {**flat, "service": BLUE}),
        evidence.difference("wait_p99", {**flat, "service": GREEN}, {**ours, "service": GREEN}),
    )


def places() -> Iterator[tuple[dict[str, Any], str]]:
    """The factors of every place and router that is held against flat best effort."""
    for cell in cells():
        if cell["scheme"] != FLAT:
            yield {k: v for k, v in cell.items() if k != "scheme"}, str(cell["scheme"])


def gains(evidence: Evidence) -> Iterator[Row]:
    """Both gains of every place, and whether both are above zero."""
    for key, scheme in places():
        found = gain(evidence, key, scheme)
        factors = {**key, "scheme": scheme}
        runs = evidence.runs
        flat = evidence.mean("throughput", {**key, "scheme": FLAT, "service": BLUE})
        percent = 100 / flat
        low, high = (end * percent for end in (found.blue.low, found.blue.high))
        interval = (low, high) if runs > 1 else None
        yield Row(factors, "blue_gain", "%", None, found.blue.mean * percent, interval, runs)
        yield Row(factors, "green_gain", "ms", None, found.green.mean, found.green.ci95, runs)
        if runs > 1:
            yield Row(factors, "both_gain", "yes = 1", None, float(found.both), None, runs)


def grid_key(rate: float, green: int) -> dict[str, Any]:
    """The factors of one place of the grid."""
    return {"part": "grid", "rate_mbps": rate, "green_flows": green}


def everywhere(evidence: Evidence, scheme: str) -> Judgement:
    """Both sides gain at every place of the grid."""
    found = {place: gain(evidence, grid_key(*place), scheme) for place in GRID}
    without = [GRID[place].name for place, g in found.items() if not g.both]
    blue = [GRID[place].name for place, g in found.items() if g.blue.low <= 0]
    text = f"Both gain at {len(found) - len(without)} of {len(found)} places"
    text += f"; not at: {'; '.join(without)}" if without else ""
    text += f" (blue does not at {len(blue)})." if without else "."
    return by_interval([e for g in found.values() for e in (g.blue, g.green)], text, holds=not without)


def beta_buys(evidence: Evidence) -> Judgement:
    """The ratio grows with beta, and stays below it from 2 on."""
    names = {1.0: "beta 1", 2.0: "beta 2", 3.0: BASE, 5.0: "beta 5"}
    found = {
        beta: evidence.estimate("ratio", {"part": "changes", "change": name, "scheme": ABE})
        for beta, name in names.items()
    }
    values = list(found.values())
    rising = all(a.high < b.low for a, b in itertools.pairwise(values))
    below = all(e.high < beta for beta, e in found.items() if beta >= 2)
    text = ", ".join(f"beta {beta:g}: {e.text(2)}" for beta, e in found.items())
    return by_interval(values, f"Blue over green throughput, {text}.", holds=rising and below)


def limit_trades(evidence: Evidence) -> Judgement:
    """The 99 % quantile of green's wait against N_g; green's losses."""
    names = {2: "N_g 2", 5: "N_g 5", 10: BASE, 20: "N_g 20"}
    key = {
        n: {"part": "changes", "change": name, "scheme": ABE, "service": GREEN} for n, name in names.items()
    }
    wait = {n: evidence.estimate("wait_p99", k) for n, k in key.items()}
    text = ", ".join(
        f"{n}: {wait[n].text(1)} ms, longest {max(evidence.by_seed('wait_max', key[n]).values()):.1f}, lost "
        f"{evidence.mean('loss', key[n]):.3f}"
        for n in names
    )
    bounded = all(
        max(evidence.by_seed("wait_max", key[n]).values()) <= replace(SETTING, green_limit=n).green_bound_ms
        for n in names
    )
    return by_interval(
        wait.values(), f"Green's p99 by N_g, {text}.", holds=bounded and wait[2].high < wait[10].low
    )


def deadline_matters_little(evidence: Evidence) -> Judgement:
    """Green's and blue's waits against D."""
    names = {20: "D 20 ms", 50: "D 50 ms", 100: BASE, 200: "D 200 ms"}
    found = {
        d: evidence.estimate("wait_p99", {"part": "changes", "change": name, "scheme": ABE, "service": GREEN})
        for d, name in names.items()
    }
    rates = {
        d: evidence.estimate("ratio", {"part": "changes", "change": name, "scheme": ABE})
        for d, name in names.items()
    }
    text = ", ".join(f"{d} ms: p99 {found[d].text(1)} ms, ratio {rates[d].text(2)}" for d in names)
    base = found[100]
    return by_interval(
        found.values(),
        f"By D, {text}.",
        holds=all(abs(e.mean / base.mean - 1) <= 0.1 for d, e in found.items() if d >= 50),
    )


def _grid_table(scheme: str, metric: str, title: str, digits: int) -> Table:
    return Table(
        f"{title}, {SCHEME_NAMES[scheme]}",
        {metric: ""},
        RATE_AXIS,
        (GREEN_AXIS,),
        where={"part": "grid", "scheme": scheme},
        digits=digits,
    )


def _plot(metric: str, title: str, y_label: str) -> Plot:
    return Plot(
        id=metric.replace("_", "-"),
        title=title,
        kind="lines",
        metric=metric,
        x=GREEN_AXIS,
        series=RATE_AXIS,
        y_label=y_label,
        facet=ROUTER_AXIS,
        where={"part": "grid"},
        from_zero=False,
    )


SWEEP = Study(
    id="hurley-sweep",
    title="Where both sides gain",
    source=f"{TITLE}: settings beyond the paper's",
    summary="link rate against share of green; beta, N_g and D one at a time; against flat best effort",
    cells=list(cells()),
    scenario=build,
    samples=samples,
    published=STATEMENT.values,
    claims=claims(
        STATEMENT.claims,
        {
            "abe-both-gain": lambda e: everywhere(e, ABE),
            "dsd-both-gain": lambda e: everywhere(e, DSD),
            "beta-buys-ratio": beta_buys,
            "limit-bounds-wait": limit_trades,
            "deadline-matters-little": deadline_matters_little,
        },
    ),
    tables=(
        Table(
            "ABE with one change: blue's gain in throughput against flat best effort, %; by how much "
            "green's p99 wait is shorter, ms; both above zero by their intervals (1: yes); blue over green throughput",
            {"blue_gain": "blue, %", "green_gain": "green, ms", "both_gain": "both", "ratio": "blue/green"},
            CHANGED,
            where={"part": "changes", "scheme": ABE},
            digits=2,
        ),
        *(
            _grid_table(scheme, metric, title, digits)
            for scheme in (ABE, DSD)
            for metric, title, digits in (
                (
                    "blue_gain",
                    "Blue's gain in throughput against flat best effort, %, by green flows of 20",
                    1,
                ),
                ("green_gain", "By how much green's p99 wait is shorter, ms, by green flows of 20", 1),
                ("both_gain", "Both sides gain, by their intervals (1: yes), by green flows of 20", 0),
            )
        ),
    ),
    plots=(
        _plot("blue_gain", "Blue's gain in throughput against flat best effort", "%"),
        _plot("green_gain", "By how much green's p99 wait is shorter than in flat best effort", "ms"),
    ),
    notes=STATEMENT.notes,
    method=STATEMENT.method,
    assumptions=STATEMENT.assumptions,
    summaries=gains,
    findings=True,
    default_runs=10,
)
