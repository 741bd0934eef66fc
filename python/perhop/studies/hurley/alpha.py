"""The control law of alpha: what becomes of it, iterated directly, smoothed, and as an integral law."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perhop.measures.run import Run
from perhop.show.declared import Axis, Factors, Plot, Reference, Row, tables
from perhop.statistics.judging import Judgement, above, all_of, below, judge, near
from perhop.studies.evidence import Evidence, Sample
from perhop.studies.hurley.common import ABE, BETA, LINK, RAP, RUNS, SETTING, THIS, TITLE, traffic
from perhop.studies.judges import Numbers, levels

FLOWS = 10
TARGET = BETA**2
SETTLED_S = 60.0
"""Alpha is judged from here on."""
SHOWN_S = 60
"""Plots show so much of a run: longer, and seconds run into one another."""


@dataclass(frozen=True, slots=True)
class Law:
    """A law by which alpha moves.

    Attributes:
        gain: The newest interval's weight in the two loss ratios; 1 takes each interval by itself.
    """

    name: str
    law: str
    gain: float


DIRECT, SMOOTHED, INTEGRAL = "direct", "smoothed", "integral"
LAWS = {
    DIRECT: Law("published, interval by interval", "published", 1.0),
    SMOOTHED: Law("published, smoothed", "published", 0.1),
    INTEGRAL: Law("integral", "integral", 0.1),
}
AXIS = Axis("law", "Law", {key: law.name for key, law in LAWS.items()})
SLOW_MBPS = 1.0
SLOW_RTT_MS = 44.0
PLACES = {
    SETTING.rate_mbps: f"{SETTING.rate_mbps:g} Mbit/s, {SETTING.rtt_ms:g} ms",
    SLOW_MBPS: f"{SLOW_MBPS:g} Mbit/s, {SLOW_RTT_MS:g} ms",
}
"""The paper's setting; and a path on which alpha p comes to 1, so that alpha_m no longer follows alpha."""
PLACE_AXIS = Axis("rate_mbps", "Link", PLACES)


def build(factors: Factors) -> Mapping[str, Any]:
    """Figure 2's setting under one law."""
    law = LAWS[str(factors["law"])]
    setting = replace(SETTING, law=law.law, gain=law.gain, rate_mbps=float(factors["rate_mbps"]))
    if setting.rate_mbps == SLOW_MBPS:
        setting = replace(setting, rtt_ms=SLOW_RTT_MS)
    return setting.scenario("Hurley and Le Boudec, the law of alpha", ABE, FLOWS, FLOWS, RAP)


def gauge(run: Run, name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Times in s, and what the router kept track of."""
    series = run.raw["series"]
    return np.asarray(series["time_s"]), np.asarray(series["links"][LINK]["gauges"][name])


def swing(values: NDArray[np.float64]) -> float:
    """Correlation of a series' logarithm with itself one step later: near −1 where it alternates."""
    logs = np.log(values) - np.mean(np.log(values))
    power = float(np.sum(logs * logs))
    return float(np.sum(logs[1:] * logs[:-1])) / power if power > 0 else 0.0


def samples(factors: Factors, run: Run) -> Iterator[Sample]:
    """The level and the movement of alpha; alpha and alpha_m in time."""
    yield from traffic(factors, run)
    times, alpha = gauge(run, "alpha")
    settled = alpha[times >= SETTLED_S]
    logs = np.log(settled)
    yield Sample(factors, "alpha", "", math.exp(float(np.mean(logs))))
    yield Sample(factors, "alpha_spread", "factor", math.exp(float(np.std(logs))))
    yield Sample(factors, "swing", "correlation", swing(settled), least=-1.0)
    for at, value in zip(times, alpha, strict=True):
        yield Sample({**factors, "time_s": float(at)}, "alpha_at", "", float(value))
    _, measured = gauge(run, "alpha_m")
    seen = measured[(times >= SETTLED_S) & (measured > 0)]
    yield Sample(factors, "alpha_m_seen", "green/blue", math.exp(float(np.mean(np.log(seen)))))
    for at, value in zip(times, measured, strict=True):
        if math.isfinite(value):
            yield Sample({**factors, "time_s": float(at)}, "alpha_m_at", "green/blue", float(value))


def one_run(evidence: Evidence) -> Iterator[Row]:
    """Alpha and alpha_m in time in the first run."""
    for metric in ("alpha_at", "alpha_m_at"):
        keys = [{**cell(law), "time_s": float(at)} for law, at in itertools.product(LAWS, range(1, 201))]
        yield from evidence.first_run(metric, keys, metric.removesuffix("_at") + "_one_run", "")


def cell(law: str, rate_mbps: float = SETTING.rate_mbps) -> dict[str, Any]:
    """The factors of one scenario."""
    return {"law": law, "rate_mbps": rate_mbps}


def by_law(metric: str, laws: Iterable[str] = LAWS, rate_mbps: float = SETTING.rate_mbps) -> Numbers:
    """A number under each of these laws."""
    return levels(metric, {LAWS[law].name: cell(law, rate_mbps) for law in laws})


def rests_at_root(evidence: Evidence) -> Judgement:
    """The smoothed law comes to rest at alpha_t sqrt(c), c being what alpha_m is to alpha, at both places."""
    parts, checks = [], []
    for rate, name in PLACES.items():
        seen = evidence.estimate("alpha_m_seen", cell(SMOOTHED, rate))
        gain = seen.mean / evidence.mean("alpha", cell(SMOOTHED, rate))
        predicted = TARGET * math.sqrt(gain)
        parts.append(f"{name}: alpha_m {seen.text(2)}, c = {gain:.2f}, alpha_t sqrt(c) = {predicted:.2f}")
        checks.append(near(seen, predicted, 0.03 * predicted))
    return judge(all_of(*checks), f"{'; '.join(parts)}.")


def _plot(name: str, title: str, y_label: str) -> Plot:
    return Plot(
        id=f"{name.replace('_', '-')}-one-run",
        title=title,
        kind="lines",
        metric=f"{name}_one_run",
        x=Axis("time_s", "Time, s"),
        series=Axis("law", "Law", dict.fromkeys(LAWS, name)),
        y_label=y_label,
        facet=AXIS,
        where={"rate_mbps": SETTING.rate_mbps, "time_s": tuple(float(at) for at in range(1, SHOWN_S + 1))},
        references=(Reference("alpha_t", "law", dict.fromkeys(LAWS, TARGET)),),
    )


ALPHA = THIS.study(
    "alpha",
    title="The law that moves alpha",
    source=f"{TITLE}, section 2",
    summary="Figure 2's setting and a slow link; alpha_t^2/alpha_m directly and smoothed, an integral law",
    cells=[cell(law, rate) for rate in PLACES for law in LAWS],
    scenario=build,
    samples=samples,
    judges={
        "direct-alternates": (
            by_law("swing", [DIRECT]).all(below, -0.25) & by_law("swing", [SMOOTHED, INTEGRAL]).all(above)
        ).said("Correlation of log alpha with the next second's: {all:.2}.", all=by_law("swing")),
        "smoothed-rests-at-root": rests_at_root,
        "integral-converges": by_law("alpha_m_seen", [INTEGRAL])
        .all(near, TARGET, 0.02 * TARGET)
        .said(
            f"alpha_m from {SETTLED_S:g} s on (alpha_t {TARGET:g}): {{both:.2}}.",
            both=by_law("alpha_m_seen", [SMOOTHED, INTEGRAL]),
        ),
        "integral-winds-up": by_law("alpha", [INTEGRAL], SLOW_MBPS)
        .all(above, by_law("alpha", [SMOOTHED], SLOW_MBPS).bound(lambda found: 2 * found.high))
        .said("alpha on 1 Mbit/s: {both:.1}.", both=by_law("alpha", [SMOOTHED, INTEGRAL], SLOW_MBPS)),
    },
    tables=list(
        tables(
            AXIS,
            (PLACE_AXIS,),
            (
                "Where alpha settles (geometric mean from 60 s on), and by which factor it varies",
                {"alpha": "alpha", "alpha_spread": "varies"},
                2,
            ),
            (
                "alpha_m as the router sees it from 60 s on (alpha_t 9), and over the whole run",
                {"alpha_m_seen": "seen", "alpha_m": "run"},
                2,
            ),
            ("Correlation of log alpha with the next second's", {"swing": "next"}, 2),
        )
    ),
    plots=(
        _plot("alpha", "alpha in one run", "alpha"),
        _plot("alpha_m", "alpha_m as the router sees it, in one run", "green over blue losses"),
    ),
    summaries=one_run,
    extra=True,
    default_runs=RUNS,
)
