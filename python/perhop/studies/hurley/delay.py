"""Figures 3 and 5: how long green packets wait, under Asymmetric Best-Effort and under flat best effort."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perhop.judging import Judgement, by_interval
from perhop.studies.hurley.common import (
    ABE,
    BLUE,
    FLAT,
    FORM_NAMES,
    FORMS,
    GREEN,
    RAP,
    RUNS,
    SCHEME_NAMES,
    SCHEMES,
    SETTING,
    THIS,
    TITLE,
    cdf,
    traffic,
    waits,
)
from perhop.studies.paper import claims
from perhop.study import Axis, Plot, Study, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from perhop.runs import Run
    from perhop.study import Evidence, Factors, Sample

FLOWS = 10
GRID_MS = tuple(float(t) for t in range(0, 101, 2))
BOUND_MS = SETTING.green_bound_ms


def cell(scheme: str, form: str) -> dict[str, Any]:
    """The factors of one scenario."""
    return {"scheme": scheme, "form": form}


def key(scheme: str, form: str, service: str = GREEN) -> Factors:
    """The factors of one service's measures."""
    return {**cell(scheme, form), "service": service}


def build(blue: int, figure: int) -> Callable[[Factors], Mapping[str, Any]]:
    """Scenarios of one figure."""

    def scenario(factors: Factors) -> Mapping[str, Any]:
        title = f"Hurley and Le Boudec, Figure {figure}"
        return SETTING.scenario(title, str(factors["scheme"]), blue, FLOWS, str(factors["form"]))

    return scenario


def samples(factors: Factors, run: Run) -> Iterator[Sample]:
    """Waits of both services, their distribution for green, and what the sources got."""
    yield from traffic(factors, run)
    yield from waits(factors, run)
    yield from cdf(factors, run, GREEN, GRID_MS)


def tighter(evidence: Evidence, metric: str, words: str) -> Judgement:
    """Whether a measure of green's wait is less than half of flat best effort's, by its interval."""
    ours = {f: evidence.estimate(metric, key(ABE, f)) for f in FORM_NAMES}
    flat = {f: evidence.estimate(metric, key(FLAT, f)) for f in FORM_NAMES}
    text = "; ".join(f"{FORM_NAMES[f]} {ours[f].text(1)} against {flat[f].text(1)}" for f in FORM_NAMES)
    return by_interval(
        [*ours.values(), *flat.values()],
        f"{words}, ms, ABE against flat: {text}.",
        holds=all(ours[f].high < 0.5 * flat[f].low for f in FORM_NAMES),
    )


def shorter(evidence: Evidence) -> Judgement:
    """Every quantile of green's wait is below flat best effort's, paired."""
    metrics = ("wait_p50", "wait_p95", "wait_p99")
    found = {(f, m): evidence.difference(m, key(ABE, f), key(FLAT, f)) for f in FORM_NAMES for m in metrics}
    text = "; ".join(
        f"{FORM_NAMES[f]} "
        + ", ".join(f"{m.removeprefix('wait_')} {found[f, m].text(1, sign=True)}" for m in metrics)
        for f in FORM_NAMES
    )
    return by_interval(
        found.values(),
        f"Green's wait, ABE − flat, ms: {text}.",
        holds=all(e.high < 0 for e in found.values()),
    )


def bounded(evidence: Evidence) -> Judgement:
    """No green packet of any run waited longer than N_g + 1 packet times."""
    longest = {f: max(evidence.by_seed("wait_max", key(ABE, f)).values()) for f in FORM_NAMES}
    text = ", ".join(f"{FORM_NAMES[f]} {value:.1f}" for f, value in longest.items())
    return Judgement(
        max(longest.values()) <= BOUND_MS,
        f"Longest wait of a green packet in {evidence.runs} runs, ms (bound {BOUND_MS:.1f}): {text}.",
    )


def both_gain(evidence: Evidence) -> Judgement:
    """Blue receives more and green waits less than under flat best effort."""
    rates = {f: evidence.difference("throughput", key(ABE, f, BLUE), key(FLAT, f, BLUE)) for f in FORM_NAMES}
    waiting = {f: evidence.difference("jitter", key(ABE, f), key(FLAT, f)) for f in FORM_NAMES}
    text = "; ".join(
        f"with {FORM_NAMES[f]} blue {rates[f].text(sign=True)} Mbit/s, green's jitter "
        f"{waiting[f].text(1, sign=True)} ms"
        for f in FORM_NAMES
    )
    return by_interval(
        [*rates.values(), *waiting.values()],
        f"ABE − flat: {text}.",
        holds=all(rates[f].low > 0 and waiting[f].high < 0 for f in FORM_NAMES),
    )


def green_pays(evidence: Evidence) -> Judgement:
    """Green loses more and receives less than under flat best effort."""
    lost = {f: evidence.difference("loss", key(ABE, f), key(FLAT, f)) for f in FORM_NAMES}
    rates = {f: evidence.difference("throughput", key(ABE, f), key(FLAT, f)) for f in FORM_NAMES}
    text = "; ".join(
        f"{FORM_NAMES[f]} losses {lost[f].text(sign=True)}, rate {rates[f].text(sign=True)} Mbit/s"
        for f in FORM_NAMES
    )
    return by_interval(
        [*lost.values(), *rates.values()],
        f"Green, ABE − flat: {text}.",
        holds=all(lost[f].low > 0 and rates[f].high < 0 for f in FORM_NAMES),
    )


def _tables(services: tuple[str, ...]) -> tuple[Table, ...]:
    which = Axis("service", "Service", {s: s for s in services})
    return (
        Table(
            "Green packets' wait at the bottleneck, ms, by green source",
            {"wait_p50": "p50", "wait_p95": "p95", "wait_p99": "p99", "wait_max": "max"},
            SCHEMES,
            (FORMS,),
            where={"service": GREEN},
            digits=1,
        ),
        Table(
            "Green packets' jitter, ms: p99 − p50, and RFC 3550's from end to end",
            {"jitter": "p99−p50", "jitter_rfc3550": "RFC 3550"},
            SCHEMES,
            (FORMS,),
            where={"service": GREEN},
            digits=1,
        ),
        Table(
            "Rate of a flow, Mbit/s, and losses, by service, with RAP",
            {"throughput": "rate", "loss": "lost"},
            SCHEMES,
            (which,),
            where={"form": RAP},
        ),
    )


def _plot() -> Plot:
    return Plot(
        id="wait",
        title="How long green packets wait",
        kind="lines",
        metric="cdf",
        x=Axis("wait_ms", "Wait at the bottleneck, ms"),
        series=SCHEMES,
        y_label="share of green packets",
        facet=FORMS,
        where={"service": GREEN},
    )


FIG3_STATEMENT = THIS.item("fig3")
FIG3 = Study(
    id="hurley-fig3",
    title="How long green packets wait, ten blue and ten green flows",
    source=f"{TITLE}, Figure 3",
    summary="10 blue and 10 green flows, under ABE, duplicate scheduling (DSD) and flat best effort",
    cells=[cell(scheme, form) for form in FORM_NAMES for scheme in SCHEME_NAMES],
    scenario=build(FLOWS, 3),
    samples=samples,
    published=FIG3_STATEMENT.values,
    claims=claims(
        FIG3_STATEMENT.claims,
        {
            "far-shorter": lambda e: tighter(e, "wait_p99", "99 % of green packets wait less than"),
            "far-less-jitter": lambda e: tighter(e, "jitter", "Green's jitter p99 − p50"),
            "bounded": bounded,
            "both-gain": both_gain,
            "green-pays": green_pays,
        },
    ),
    tables=_tables((BLUE, GREEN)),
    plots=(_plot(),),
    notes=FIG3_STATEMENT.notes,
    method=FIG3_STATEMENT.method,
    assumptions=FIG3_STATEMENT.assumptions,
    default_runs=RUNS,
)

FIG5_STATEMENT = THIS.item("fig5")
FIG5 = Study(
    id="hurley-fig5",
    title="All green: the wait is still shorter",
    source=f"{TITLE}, Figure 5",
    summary="10 green flows and no blue one, under ABE and flat best effort",
    cells=[cell(scheme, form) for form in FORM_NAMES for scheme in (ABE, FLAT)],
    scenario=build(0, 5),
    samples=samples,
    published=FIG5_STATEMENT.values,
    claims=claims(FIG5_STATEMENT.claims, {"still-shorter": shorter, "bounded": bounded}),
    tables=_tables((GREEN,)),
    plots=(_plot(),),
    notes=FIG5_STATEMENT.notes,
    method=FIG5_STATEMENT.method,
    assumptions=FIG5_STATEMENT.assumptions,
    default_runs=RUNS,
)
