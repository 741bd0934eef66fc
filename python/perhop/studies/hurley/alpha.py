"""The control law of alpha: what becomes of it, iterated directly, smoothed, and as an integral law."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from perhop.show.declared import Axis, Plot, Reference, Row, Table
from perhop.statistics.judging import above, all_of, below, judge, near
from perhop.studies.evidence import Sample
from perhop.studies.hurley.common import ABE, BETA, LINK, RAP, RUNS, SETTING, THIS, TITLE, traffic

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from perhop.measures.run import Run
    from perhop.show.declared import Factors
    from perhop.statistics.judging import Judgement
    from perhop.studies.evidence import Evidence

FLOWS = 10
TARGET = BETA**2
SETTLED_S = 60.0
"""Alpha is judged from here on."""
SHOWN_S = 60
"""Plots show so much of a run: longer, and seconds run into one another."""


@dataclass(frozen=True, slots=True)
class Law:
    """How alpha is moved.

    Attributes:
        gain: The newest interval's weight in the two loss ratios; 1 takes each interval by itself.
    """

    name: str
    law: str
    gain: float


DIRECT = "direct"
SMOOTHED = "smoothed"
INTEGRAL = "integral"
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
    """Where alpha settles and how it moves; alpha and alpha_m in time."""
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
    """Alpha and alpha_m in time in the first run: a mean over runs would hide how they swing."""
    for metric in ("alpha_at", "alpha_m_at"):
        for law, at in itertools.product(LAWS, range(1, 201)):
            key: Factors = {**cell(law), "time_s": float(at)}
            try:
                values = evidence.by_seed(metric, key)
            except KeyError:
                continue
            first = min(values)
            yield Row(key, metric.removesuffix("_at") + "_one_run", "", None, values[first], None, 1)


def cell(law: str, rate_mbps: float = SETTING.rate_mbps) -> dict[str, Any]:
    """The factors of one scenario."""
    return {"law": law, "rate_mbps": rate_mbps}


def alternates(evidence: Evidence) -> Judgement:
    """The direct iteration swings from one interval to the next, the smoothed one does not."""
    found = {law: evidence.estimate("swing", cell(law)) for law in LAWS}
    text = ", ".join(f"{LAWS[law].name} {e.text(2)}" for law, e in found.items())
    return judge(
        all_of(below(found[DIRECT], -0.25), above(found[SMOOTHED]), above(found[INTEGRAL])),
        f"Correlation of log alpha with the next second's: {text}.",
    )


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


def integral_converges(evidence: Evidence) -> Judgement:
    """The integral law's alpha_m is at alpha_t on the paper's link."""
    found = {law: evidence.estimate("alpha_m_seen", cell(law)) for law in (SMOOTHED, INTEGRAL)}
    text = ", ".join(f"{LAWS[law].name} {e.text(2)}" for law, e in found.items())
    return judge(
        near(found[INTEGRAL], TARGET, 0.02 * TARGET),
        f"alpha_m from {SETTLED_S:g} s on (alpha_t {TARGET:g}): {text}.",
    )


def integral_winds_up(evidence: Evidence) -> Judgement:
    """Where green is cut off, the integral law drives alpha up without end, the published one does not."""
    found = {law: evidence.estimate("alpha", cell(law, 1.0)) for law in (SMOOTHED, INTEGRAL)}
    text = ", ".join(f"{LAWS[law].name} {e.text(1)}" for law, e in found.items())
    return judge(above(found[INTEGRAL], 2 * found[SMOOTHED].high), f"alpha on 1 Mbit/s: {text}.")


def _plot(metric: str, title: str, name: str, y_label: str) -> Plot:
    return Plot(
        id=metric.replace("_", "-"),
        title=title,
        kind="lines",
        metric=metric,
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
        "direct-alternates": alternates,
        "smoothed-rests-at-root": rests_at_root,
        "integral-converges": integral_converges,
        "integral-winds-up": integral_winds_up,
    },
    tables=(
        Table(
            "Where alpha settles (geometric mean from 60 s on), and by which factor it varies",
            {"alpha": "alpha", "alpha_spread": "varies"},
            AXIS,
            (PLACE_AXIS,),
            digits=2,
        ),
        Table(
            "alpha_m as the router sees it from 60 s on (alpha_t 9), and over the whole run",
            {"alpha_m_seen": "seen", "alpha_m": "run"},
            AXIS,
            (PLACE_AXIS,),
            digits=2,
        ),
        Table(
            "Correlation of log alpha with the next second's",
            {"swing": "next"},
            AXIS,
            (PLACE_AXIS,),
            digits=2,
        ),
    ),
    plots=(
        _plot("alpha_one_run", "alpha in one run", "alpha", "alpha"),
        _plot(
            "alpha_m_one_run",
            "alpha_m as the router sees it, in one run",
            "alpha_m",
            "green over blue losses",
        ),
    ),
    summaries=one_run,
    extra=True,
    default_runs=RUNS,
)
