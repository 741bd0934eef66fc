"""Figures 2 and 4: what a flow of each service receives, under Asymmetric and under flat best effort."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from perhop.judging import Judgement, by_interval
from perhop.statistics import half_width_of
from perhop.studies.hurley.common import (
    ABE,
    BETA,
    BLUE,
    FLAT,
    FORM_NAMES,
    FORMS,
    GREEN,
    LINK,
    PAPER_RUNS,
    RAP,
    RUNS,
    SCHEME_NAMES,
    SCHEMES,
    SERVICES,
    SETTING,
    TFRC,
    THIS,
    TITLE,
    cumulative,
    traffic,
)
from perhop.studies.paper import claims
from perhop.study import Axis, Plot, Row, Sample, Study, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from perhop.runs import Run
    from perhop.study import Evidence, Factors

FLOWS = 10
TIMES = tuple(float(t) for t in range(10, 201, 10))

OWN = "own"
EQUAL = "equal"
RTTS = Axis("rtt", "Green's RTT", {OWN: "shorter by its wait", EQUAL: "as blue's"})
EXTRA_MS = {RAP: 6.7, TFRC: 3.8}
"""One-way delay that makes green's mean round-trip time blue's, found by trial; the table shows both."""

CURVES = Axis(
    "curve",
    "Service and router",
    {f"{s}-{r}": f"{s}, {SCHEME_NAMES[r]}" for s in (BLUE, GREEN) for r in (ABE, FLAT)},
)

EVERYWHERE: Factors = {"curves": "all"}
HALF_WIDTH = Table(
    "The widest 95 % interval around a point of the curves that four runs would give, packets (half of it)",
    {"half_width": "four runs"},
    Axis("curves", "Curves", {"all": "all"}),
)

FIG2_STATEMENT = THIS.item("fig2")
FIG4_STATEMENT = THIS.item("fig4")


def cell(scheme: str, form: str, rtt: str = OWN) -> dict[str, Any]:
    """The factors of one scenario of Figure 2."""
    return {"scheme": scheme, "form": form, "rtt": rtt}


def fig2_build(factors: Factors) -> Mapping[str, Any]:
    """Ten blue and ten green flows."""
    form = str(factors["form"])
    extra = EXTRA_MS[form] if factors["rtt"] == EQUAL else 0.0
    setting = replace(SETTING, green_extra_ms=extra)
    return setting.scenario("Hurley and Le Boudec, Figure 2", str(factors["scheme"]), FLOWS, FLOWS, form)


def fig2_samples(factors: Factors, run: Run) -> Iterator[Sample]:
    """Rates and what follows from them; packets received in time."""
    yield from traffic(factors, run)
    for sample in cumulative(factors, run, TIMES):
        curve = f"{sample.factors['service']}-{factors['scheme']}"
        yield replace(sample, factors={**sample.factors, "curve": curve})


def half_width(evidence: Evidence, keys: list[Factors]) -> Iterator[Row]:
    """The widest 95 % interval that the paper's number of runs would give, over all points of its curves."""
    if evidence.runs > 1:
        spreads = (list(evidence.by_seed("received", key).values()) for key in keys)
        widest = max(half_width_of(values, PAPER_RUNS) for values in spreads)
        published = evidence.published("half_width", EVERYWHERE)
        yield Row(EVERYWHERE, "half_width", "packets", published, widest, None, evidence.runs)


def received(scheme: str, service: str, at: float, form: str | None = RAP) -> Factors:
    """The factors of one point of a curve."""
    own = {} if form is None else {"form": form, "rtt": OWN}
    return {"scheme": scheme, **own, "service": service, "time_s": at, "curve": f"{service}-{scheme}"}


def fig2_summaries(evidence: Evidence) -> Iterator[Row]:
    """The paper's interval, and where the ratio falls short of beta."""
    keys = [received(r, s, at) for r in (ABE, FLAT) for s in (BLUE, GREEN) for at in TIMES]
    yield from half_width(evidence, keys)
    for form in FORM_NAMES:
        share = rtt_share(evidence, form)
        if share is not None:
            yield Row({"form": form}, "shortfall_by_rtt", "fraction", None, share, None, evidence.runs)


def rtt_share(evidence: Evidence, form: str) -> float | None:
    """The part of the ratio's shortfall against beta that goes with equal round trips; None without one."""
    own, equal = (evidence.mean("ratio", cell(ABE, form, rtt)) for rtt in (OWN, EQUAL))
    return None if own >= BETA else (equal - own) / (BETA - own)


def more(evidence: Evidence, a: tuple[str, str], b: tuple[str, str]) -> Judgement:
    """Whether flows of one (router, service) receive more than those of another, by the interval."""
    found = {
        form: evidence.difference(
            "throughput", {**cell(a[0], form), "service": a[1]}, {**cell(b[0], form), "service": b[1]}
        )
        for form in FORM_NAMES
    }
    names = [f"{service} ({SCHEME_NAMES[scheme]})" for scheme, service in (a, b)]
    text = ", ".join(f"with {FORM_NAMES[form]} {e.text(sign=True)}" for form, e in found.items())
    return by_interval(
        found.values(), f"{' − '.join(names)}, Mbit/s: {text}.", holds=all(e.low > 0 for e in found.values())
    )


def beta_met(evidence: Evidence) -> Judgement:
    """The ratio with the default green source, within a tenth of beta."""
    found = {form: evidence.estimate("ratio", cell(ABE, form)) for form in FORM_NAMES}
    equal = {form: evidence.estimate("ratio", cell(ABE, form, EQUAL)) for form in FORM_NAMES}
    text = "; ".join(
        f"{FORM_NAMES[f]} {e.text(2)}, with blue's RTT {equal[f].text(2)}, alpha_m "
        f"{evidence.mean('alpha_m', cell(ABE, f)):.1f}"
        for f, e in found.items()
    )
    return Judgement(abs(found[RAP].mean / BETA - 1) <= 0.1, f"Blue over green (beta {BETA:g}): {text}.")


def short_rtt_raises_green(evidence: Evidence) -> Judgement:
    """Ratio with blue's round-trip time − ratio with green's own."""
    found = {
        form: evidence.difference("ratio", cell(ABE, form, EQUAL), cell(ABE, form)) for form in FORM_NAMES
    }
    text = "; ".join(f"{FORM_NAMES[f]} {e.text(2, sign=True)}" for f, e in found.items())
    shares = ", ".join(
        f"{FORM_NAMES[f]} {share:.0%}" for f in FORM_NAMES if (share := rtt_share(evidence, f)) is not None
    )
    return by_interval(
        found.values(),
        f"Ratio with equal round trips − ratio without: {text}. Part of the shortfall: {shares}.",
        holds=all(e.low > 0 for e in found.values()),
    )


FIG2 = Study(
    id="hurley-fig2",
    title="What blue and green flows receive, ten of each",
    source=f"{TITLE}, Figure 2",
    summary="10 blue TCP Reno and 10 green flows, under ABE and flat best effort; green as RAP and as TFRC",
    cells=[
        *(cell(scheme, form) for form in FORM_NAMES for scheme in (ABE, FLAT)),
        *(cell(ABE, form, EQUAL) for form in FORM_NAMES),
    ],
    scenario=fig2_build,
    samples=fig2_samples,
    published=FIG2_STATEMENT.values,
    claims=claims(
        FIG2_STATEMENT.claims,
        {
            "blue-above-green": lambda e: more(e, (ABE, BLUE), (ABE, GREEN)),
            "blue-above-flat": lambda e: more(e, (ABE, BLUE), (FLAT, BLUE)),
            "beta": beta_met,
            "short-rtt-raises-green": short_rtt_raises_green,
        },
    ),
    tables=(
        Table(
            "Rate of a flow, Mbit/s, by router, green source and service",
            {"throughput": ""},
            FORMS,
            (SCHEMES, SERVICES),
            where={"rtt": OWN},
        ),
        Table(
            "Packets lost, share; mean round-trip time, ms, under ABE",
            {"loss": "lost", "rtt": "RTT"},
            FORMS,
            (SERVICES,),
            where={"scheme": ABE, "rtt": OWN},
        ),
        Table(
            "Under ABE: blue over green throughput (beta 3), green over blue losses (alpha_t 9) and RTT",
            {"ratio": "blue/green", "alpha_m": "alpha_m", "rtt_ratio": "RTTs"},
            FORMS,
            (RTTS,),
            where={"scheme": ABE},
            digits=2,
        ),
        Table(
            "Blue over green throughput by the loss-throughput formula: sqrt(alpha_m) green over blue RTT",
            {"formula_ratio": "blue/green"},
            FORMS,
            (RTTS,),
            where={"scheme": ABE},
            digits=2,
        ),
        Table(
            "Part of the ratio's shortfall against beta that green's shorter RTT makes",
            {"shortfall_by_rtt": "part"},
            FORMS,
            digits=2,
        ),
        HALF_WIDTH,
    ),
    plots=(
        Plot(
            id="received",
            title="Packets received by a flow",
            kind="lines",
            metric="received",
            x=Axis("time_s", "Time, s"),
            series=CURVES,
            y_label="packets per flow",
            facet=FORMS,
            where={"rtt": OWN},
        ),
    ),
    notes=FIG2_STATEMENT.notes,
    method=FIG2_STATEMENT.method,
    assumptions=FIG2_STATEMENT.assumptions,
    summaries=fig2_summaries,
    default_runs=RUNS,
)


def fig4_build(factors: Factors) -> Mapping[str, Any]:
    """Ten blue flows, no green."""
    return SETTING.scenario("Hurley and Le Boudec, Figure 4", str(factors["scheme"]), FLOWS, 0, RAP)


def fig4_samples(factors: Factors, run: Run) -> Iterator[Sample]:
    """Rates; packets received in time; packets sent and dropped at the bottleneck."""
    yield from traffic(factors, run)
    for sample in cumulative(factors, run, TIMES):
        yield replace(sample, factors={**sample.factors, "curve": f"{BLUE}-{factors['scheme']}"})
    books = run.link_class(LINK, BLUE)
    for name in ("arrived", "sent"):
        yield Sample(factors, name, "packets", float(books[name].sum()))


def reverts(evidence: Evidence) -> Judgement:
    """Every count and every point of the curve is the same in every run."""
    metrics: list[tuple[str, dict[str, Any]]] = [("arrived", {}), ("sent", {})] + [
        ("received", {"service": BLUE, "time_s": at}) for at in TIMES
    ]
    different = 0
    for metric, more_factors in metrics:
        keys = []
        for scheme in (ABE, FLAT):
            curve = {"curve": f"{BLUE}-{scheme}"} if metric == "received" else {}
            keys.append({"scheme": scheme, **more_factors, **curve})
        ours, flat = (evidence.by_seed(metric, key) for key in keys)
        different += sum(ours[seed] != flat[seed] for seed in ours)
    rates = [evidence.estimate("throughput", {"scheme": s, "service": BLUE}).text() for s in (ABE, FLAT)]
    return Judgement(
        different == 0,
        f"A flow gets {rates[0]} under ABE and {rates[1]} under flat best effort (Mbit/s); of "
        f"{len(metrics) * evidence.runs} counts of packets, {different} differ.",
    )


FIG4 = Study(
    id="hurley-fig4",
    title="All blue: Asymmetric Best-Effort is flat best effort",
    source=f"{TITLE}, Figure 4",
    summary="10 blue TCP Reno flows and no green one, under ABE and flat best effort",
    cells=[{"scheme": scheme} for scheme in (ABE, FLAT)],
    scenario=fig4_build,
    samples=fig4_samples,
    published=FIG4_STATEMENT.values,
    claims=claims(FIG4_STATEMENT.claims, {"reverts-to-flat": reverts}),
    tables=(
        Table(
            "Rate of a flow, Mbit/s; packets that came to the bottleneck and left it",
            {"throughput": "rate", "arrived": "came", "sent": "left"},
            SCHEMES,
            digits=2,
        ),
        HALF_WIDTH,
    ),
    plots=(
        Plot(
            id="received",
            title="Packets received by a flow, all blue",
            kind="lines",
            metric="received",
            x=Axis("time_s", "Time, s"),
            series=CURVES,
            y_label="packets per flow",
        ),
    ),
    notes=FIG4_STATEMENT.notes,
    method=FIG4_STATEMENT.method,
    assumptions=FIG4_STATEMENT.assumptions,
    summaries=lambda e: half_width(e, [received(r, BLUE, at, None) for r in (ABE, FLAT) for at in TIMES]),
    default_runs=RUNS,
)
