"""The gains of both sides by link rate, share of green, beta, N_g and D, one or two at a time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from perhop.measures.run import Run
from perhop.show.declared import Axis, Factor, Factors, Plot, Row, Table, tables
from perhop.statistics import judging
from perhop.statistics.intervals import Estimate
from perhop.statistics.judging import Check, Judgement, above, all_of, below, fact, judge, near
from perhop.studies.evidence import Evidence, Sample
from perhop.studies.hurley import common
from perhop.studies.hurley.common import ABE, BLUE, DSD, FLAT, GREEN, SCHEME_NAMES, SETTING
from perhop.studies.judges import Judge, differences, level, levels, stated

FLOWS = 20
HALF = FLOWS // 2
ROUTERS = (ABE, DSD, FLAT)
CUT_OFF = 0.9
"""A service that loses more than this share of its packets, or in some run gets none through after the
warm-up, is cut off: it gains nothing from a short wait."""


BASE = "unchanged"
SLOW = 1.0
"""Links up to this rate in Mbit/s count as slow."""
FAST = 10.0
"""Links from this rate on count as fast."""
RATES = (1.0, 2.0, SETTING.rate_mbps, 5.0, 10.0, 20.0)
GREENS = (2, 6, 10, 14, 18)
CHANGES: Mapping[str, Mapping[str, Any]] = {
    BASE: {},
    **{f"beta {beta:g}": {"beta": beta} for beta in (1.0, 2.0, 5.0)},
    **{f"N_g {limit}": {"green_limit": limit} for limit in (2, 5, 20)},
    **{f"D {ms} ms": {"deadline": f"{ms}ms"} for ms in (20, 50, 200)},
    "integral law": {"law": "integral"},
}
"""The changes of the paper's setting, one at a time."""
GRID = tuple(itertools.product(RATES, GREENS))

CHANGED = Axis("change", "Change", {name: name for name in CHANGES})
RATE_AXIS = Axis("rate_mbps", "Link", {rate: f"{rate:g} Mbit/s" for rate in RATES})
GREEN_AXIS = Axis("green_flows", "Green flows of 20")
ROUTER_AXIS = Axis("scheme", "Router", {s: SCHEME_NAMES[s] for s in (ABE, DSD)})


def cells() -> Iterator[dict[str, Any]]:
    """One change at a time, and link rate against share of green; under every router that it concerns."""
    for name in CHANGES:
        for scheme in (ABE, FLAT) if name != BASE else ROUTERS:
            yield {"part": "changes", "change": name, "scheme": scheme}
    for place, scheme in itertools.product(GRID, ROUTERS):
        yield {**grid_key(*place), "scheme": scheme}


def build(factors: Factors) -> Mapping[str, Any]:
    """Twenty flows, some of them green."""
    if factors["part"] == "changes":
        name, green = str(factors["change"]), HALF
        changes = CHANGES[name]
    else:
        rate, green = float(factors["rate_mbps"]), int(factors["green_flows"])
        name, changes = f"{rate:g} Mbit/s, {green} green", {"rate_mbps": rate}
    setting, title = replace(SETTING, **changes), f"Asymmetric Best-Effort, {name}"
    return setting.scenario(title, str(factors["scheme"]), FLOWS - green, green, common.RAP)


def samples(factors: Factors, run: Run) -> Iterator[Sample]:
    """Rates, losses and waits of both services."""
    yield from common.traffic(factors, run)
    yield from common.waits(factors, run)


@dataclass(frozen=True, slots=True)
class Gain:
    """The gain of each side against flat best effort, paired by seed.

    Attributes:
        blue: Throughput of a blue flow, Mbit/s.
        green: 99 % quantile of green's wait, ms, below flat best effort's; None where green is cut off.
    """

    blue: Estimate
    green: Estimate | None

    @property
    def both(self) -> bool:
        """Both intervals lie above zero."""
        return self.blue.low > 0 and self.green is not None and self.green.low > 0


def silenced(evidence: Evidence, green: Factors) -> bool:
    """Whether in some run green gets no packet through after the warm-up, so that no wait is measured."""
    waited = evidence.by_seed("wait_p99", green) if evidence.measured("wait_p99", green) else {}
    return waited.keys() != evidence.by_seed("loss", green).keys()


def gain(evidence: Evidence, key: Factors, scheme: str = ABE) -> Gain:
    """The gains at one place."""
    ours, flat = ({**key, "scheme": router} for router in (scheme, FLAT))
    blue = evidence.difference("throughput", {**ours, "service": BLUE}, {**flat, "service": BLUE})
    ours, flat = ({**router, "service": GREEN} for router in (ours, flat))
    if evidence.mean("loss", ours) > CUT_OFF or silenced(evidence, ours):
        return Gain(blue, None)
    return Gain(blue, evidence.difference("wait_p99", flat, ours))


def gains(evidence: Evidence) -> Iterator[Row]:
    """Both gains of every place, and whether both are above zero."""
    runs = evidence.runs
    for factors in cells():
        key, scheme = {k: v for k, v in factors.items() if k != "scheme"}, factors["scheme"]
        if scheme == FLAT:
            continue
        found = gain(evidence, key, scheme)
        flat = evidence.mean("throughput", {**key, "scheme": FLAT, "service": BLUE})
        percent = 100 / flat
        low, high = (end * percent for end in (found.blue.low, found.blue.high))
        interval = (low, high) if runs > 1 else None
        yield Row(factors, "blue_gain", "%", None, found.blue.mean * percent, interval, runs)
        known = found.green is not None and not math.isnan(found.green.mean)
        green, ends = (found.green.mean, found.green.ci95) if found.green and known else (None, None)
        yield Row(factors, "green_gain", "ms", None, green, ends, runs)
        if runs > 1:
            yield Row(factors, "both_gain", "yes = 1", None, float(found.both), None, runs)


def grid_key(rate: float, green: int) -> dict[str, Any]:
    """The factors of one place of the grid."""
    return {"part": "grid", "rate_mbps": rate, "green_flows": green}


def on_the_grid(evidence: Evidence, scheme: str) -> dict[tuple[float, int], Gain]:
    """The gains at every place of the grid."""
    return {place: gain(evidence, grid_key(*place), scheme) for place in GRID}


def places_text(found: list[tuple[float, int]]) -> str:
    """`1 Mbit/s with 2, 6, 10 green; …`."""
    by_rate: dict[float, list[str]] = {}
    for rate, green in found:
        by_rate.setdefault(rate, []).append(str(green))
    return "; ".join(f"{rate:g} Mbit/s with {', '.join(greens)} green" for rate, greens in by_rate.items())


def cut_off(evidence: Evidence, key: Factors) -> Check:
    """Green loses more than nine tenths under ABE, or in some run gets none through after the warm-up."""
    green = {**key, "scheme": ABE, "service": GREEN}
    if silenced(evidence, green):
        return fact(holds=True)
    return above(evidence.estimate("loss", green), CUT_OFF)


def gain_where_green_lives(evidence: Evidence) -> Judgement:
    """Under ABE both sides gain wherever green is not cut off."""
    found = on_the_grid(evidence, ABE)
    cut = [place for place, g in found.items() if g.green is None]
    without = [place for place, g in found.items() if g.green is not None and not g.both]
    text = f"Both gain at {sum(g.both for g in found.values())} of {len(found)} places."
    text += f" Green is cut off at: {places_text(cut)}." if cut else ""
    text += f" One side does not gain at: {places_text(without)}." if without else ""
    alive = [g for g in found.values() if g.green is not None]
    return judge(all_of(*(above(e) for g in alive for e in (g.blue, g.green) if e is not None)), text)


def slow_links_cut_off(evidence: Evidence) -> Judgement:
    """Green is cut off with few green flows on the slowest link only."""
    found = {place: cut_off(evidence, grid_key(*place)) for place in GRID}
    cut = [place for place, check in found.items() if check.holds]
    lost = {
        (rate, green): evidence.mean("loss", {**grid_key(rate, green), "scheme": ABE, "service": BLUE})
        for rate, green in cut
    }
    least = f"; blue loses at least {min(lost.values()):.3f} there" if lost else ""
    slow = judging.any_of(*(check for (rate, _), check in found.items() if rate <= SLOW))
    fast = [judging.opposite(check) for (rate, _), check in found.items() if rate > SLOW]
    return judge(all_of(slow, *fast), f"Green is cut off at: {places_text(cut) or 'none'}{least}.")


def dsd_idle_when_fast(evidence: Evidence) -> Judgement:
    """Under DSD green waits longer than in flat best effort on fast links."""
    found = on_the_grid(evidence, DSD)
    fast = {place: g.green for place, g in found.items() if place[0] >= FAST}
    both = [place for place in found if found[place].both]
    checks = [fact(holds=False) if e is None else below(e) for e in fast.values()]
    longer = sum(check.holds is True for check in checks)
    return judge(
        all_of(*checks),
        f"Green waits longer at {longer} of {len(fast)} places from {FAST:g} Mbit/s on; both gain at: "
        f"{places_text(both) or 'none'}.",
    )


def changed(values: Mapping[Any, str], **more: Factor) -> dict[Any, Factors]:
    """The factors of a number under ABE with each of these changes."""
    return {
        value: {"part": "changes", "change": name, "scheme": ABE, **more} for value, name in values.items()
    }


def beta_buys() -> Judge:
    """The ratio grows with beta, from below it at 1 to above it at 5."""
    places = changed({1: "beta 1", 2: "beta 2", 3: BASE, 5: "beta 5"})
    ratios = levels("ratio", places).reads("beta {name}: {value}")
    rising = differences("ratio", {b: (places[b], places[a]) for a, b in itertools.pairwise(places)})
    return (rising.all(above) & ratios.only(1).all(below, 1.0) & ratios.only(5).all(above, 5.0)).said(
        "Blue over green throughput, {ratios:.2}; at beta 5 green loses {lost:.3f}.",
        ratios=ratios,
        lost=level("loss", {**places[5], "service": GREEN}),
    )


def limit_idle() -> Judge:
    """N_g against green's p99 wait and its longest."""
    places = changed({2: "N_g 2", 5: "N_g 5", 10: BASE, 20: "N_g 20"}, service=GREEN)
    waits = levels("wait_p99", places)
    bounds = {n: replace(SETTING, green_limit=n).green_bound_ms for n in places}

    def longest(evidence: Evidence) -> dict[int, float]:
        return {n: max(evidence.by_seed("wait_max", key).values()) for n, key in places.items()}

    def listed(evidence: Evidence) -> str:
        found, most = waits(evidence), longest(evidence)
        return ", ".join(
            f"{n}: {found[n].text(1)} ms, longest {most[n]:.1f} (bound {bounds[n]:.1f})" for n in places
        )

    base = waits.only(10)
    within = stated(
        lambda evidence: fact(holds=all(most <= bounds[n] for n, most in longest(evidence).items()))
    )
    return (waits.all(near, base.bound(), base.bound(lambda found: 0.05 * found.mean)) & within).said(
        "99 % of green packets wait less than, by N_g, {listed}.", listed=listed
    )


def deadline_matters_little() -> Judge:
    """Green's and blue's waits against D."""
    deadlines = {20: "D 20 ms", 50: "D 50 ms", 100: BASE, 200: "D 200 ms"}
    waits, ratios = levels("wait_p99", changed(deadlines, service=GREEN)), levels("ratio", changed(deadlines))

    def listed(evidence: Evidence) -> str:
        ratio = ratios(evidence)
        return ", ".join(
            f"{d} ms: p99 {wait.text(1)} ms, ratio {ratio[d].text(2)}" for d, wait in waits(evidence).items()
        )

    base = waits.only(100)
    longer = levels("wait_p99", changed({d: name for d, name in deadlines.items() if d >= 50}, service=GREEN))
    return longer.all(near, base.bound(), base.bound(lambda found: 0.1 * found.mean)).said(
        "By D, {listed}.", listed=listed
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


BY_GREEN = "by green flows of 20"

SWEEP = common.THIS.study(
    "sweep",
    title="Where both sides gain",
    source=f"{common.TITLE}: settings beyond the paper's",
    summary="link rate against share of green; beta, N_g and D one at a time; against flat best effort",
    cells=list(cells()),
    scenario=build,
    samples=samples,
    judges={
        "abe-both-gain-where-green-lives": gain_where_green_lives,
        "slow-links-cut-green-off": slow_links_cut_off,
        "dsd-idle-on-fast-links": dsd_idle_when_fast,
        "beta-buys-ratio": beta_buys(),
        "limit-idle": limit_idle(),
        "deadline-matters-little": deadline_matters_little(),
    },
    tables=(
        Table(
            "ABE with one change: blue's gain in throughput against flat best effort, %; by how much "
            "green's p99 wait is shorter, ms; both above zero, by their intervals (1: yes); throughputs",
            {"blue_gain": "blue, %", "green_gain": "green, ms", "both_gain": "both", "ratio": "blue/green"},
            CHANGED,
            where={"part": "changes", "scheme": ABE},
            digits=2,
        ),
        *(
            replace(table, title=f"{table.title}, {SCHEME_NAMES[scheme]}")
            for scheme in (ABE, DSD)
            for table in tables(
                RATE_AXIS,
                (GREEN_AXIS,),
                (f"Blue's gain in throughput against flat best effort, %, {BY_GREEN}", "blue_gain", 1),
                (f"By how much green's p99 wait is shorter, ms, {BY_GREEN}", "green_gain", 1),
                (f"Both sides gain, by their intervals (1: yes), {BY_GREEN}", "both_gain", 0),
                (f"Blue over green throughput, {BY_GREEN}", "ratio", 2),
                part="grid",
                scheme=scheme,
            )
        ),
    ),
    plots=(
        _plot("blue_gain", "Blue's gain in throughput against flat best effort", "%"),
        _plot("green_gain", "By how much green's p99 wait is shorter than in flat best effort", "ms"),
    ),
    summaries=gains,
    extra=True,
    default_runs=10,
)
