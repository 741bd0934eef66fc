"""Figures 3 and 5: how long green packets wait, under Asymmetric Best-Effort and under flat best effort."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from perhop.plurals import counted
from perhop.show.declared import Axis, Plot, Table
from perhop.statistics.judging import above, all_of, below, fact, judge
from perhop.studies.hurley.common import (
    ABE,
    BLUE,
    FLAT,
    FORM_NAMES,
    FORMS,
    GREEN,
    RAP,
    RUNS,
    SETTING,
    THIS,
    TITLE,
    cdf,
    each,
    each_source,
    traffic,
    waits,
)
from perhop.studies.paper import claims
from perhop.studies.study import Study

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from perhop.measures.run import Run
    from perhop.show.declared import Factors
    from perhop.statistics.judging import Judgement
    from perhop.studies.evidence import Evidence, Sample

FLOWS = 10
UNLIMITED = "unlimited"
EQUAL_DROPS = "equal drops"
SCHEDULER = "scheduler"
WITHOUT: Mapping[str, Mapping[str, Any]] = {
    UNLIMITED: {"green_limit": None},
    EQUAL_DROPS: {"target": 1.0},
    SCHEDULER: {"target": 1.0, "green_limit": None},
}
"""ABE without N_g, without alpha (it is 1), and without both: its scheduler alone."""
ROUTER_NAMES = {
    ABE: "ABE",
    UNLIMITED: "ABE without N_g",
    EQUAL_DROPS: "ABE with alpha 1",
    SCHEDULER: "ABE's scheduler alone",
    FLAT: "flat",
}
ROUTERS = Axis("scheme", "Router", ROUTER_NAMES)
QUANTILE_METRICS = ("wait_p50", "wait_p95", "wait_p99")
GRID_MS = tuple(float(t) for t in range(0, 101, 2))
BOUND_MS = SETTING.green_bound_ms


def cell(scheme: str, form: str) -> dict[str, Any]:
    """The factors of one scenario."""
    return {"scheme": scheme, "form": form}


def key(scheme: str, form: str, service: str = GREEN) -> Factors:
    """The factors of one service's measures."""
    return {**cell(scheme, form), "service": service}


def build(blue: int) -> Callable[[Factors], Mapping[str, Any]]:
    """Scenarios with so many blue flows and ten green ones."""

    def scenario(factors: Factors) -> Mapping[str, Any]:
        setting, scheme = SETTING, str(factors["scheme"])
        if scheme in WITHOUT:
            setting, scheme = replace(SETTING, **WITHOUT[scheme]), ABE
        return setting.scenario("Hurley and Le Boudec", scheme, blue, FLOWS, str(factors["form"]))

    return scenario


def samples(factors: Factors, run: Run) -> Iterator[Sample]:
    """Waits of both services, their distribution for green, and what the sources got."""
    yield from traffic(factors, run)
    yield from waits(factors, run)
    yield from cdf(factors, run, GREEN, GRID_MS)
    yield from each_source(factors, run)


def shorter(evidence: Evidence) -> Judgement:
    """Every quantile of green's wait is below flat best effort's, paired."""
    return quantiles_below(evidence, (ABE, GREEN), (FLAT, GREEN), "Green's wait, ABE − flat")


def shorter_than_blue(evidence: Evidence) -> Judgement:
    """Under ABE every quantile of green's wait is below blue's in the same run."""
    return quantiles_below(evidence, (ABE, GREEN), (ABE, BLUE), "Wait under ABE, green − blue")


def quantiles_below(evidence: Evidence, a: tuple[str, str], b: tuple[str, str], words: str) -> Judgement:
    """Every quantile of one (router, service)'s wait is below another's, with all green sources."""
    found = {
        f: {m: evidence.difference(m, key(a[0], f, a[1]), key(b[0], f, b[1])) for m in QUANTILE_METRICS}
        for f in FORM_NAMES
    }
    text = "; ".join(
        f"{FORM_NAMES[f]} "
        + ", ".join(f"{m.removeprefix('wait_')} {e.text(1, sign=True)}" for m, e in by_metric.items())
        for f, by_metric in found.items()
    )
    return judge(
        all_of(*(below(e) for by_metric in found.values() for e in by_metric.values())),
        f"{words}, ms: {text}.",
    )


def less(evidence: Evidence, metric: str, a: tuple[str, str], b: tuple[str, str], words: str) -> Judgement:
    """One (router, service) has less of something than another, with all green sources."""
    found = {f: evidence.difference(metric, key(a[0], f, a[1]), key(b[0], f, b[1])) for f in FORM_NAMES}
    return judge(all_of(*map(below, found.values())), f"{words}, ms: {each(found, 1, sign=True)}.")


def bounded(evidence: Evidence) -> Judgement:
    """No green packet of any run waited longer than N_g + 1 packet times."""
    longest = {f: max(evidence.by_seed("wait_max", key(ABE, f)).values()) for f in FORM_NAMES}
    text = ", ".join(f"{FORM_NAMES[f]} {value:.1f}" for f, value in longest.items())
    return judge(
        fact(holds=max(longest.values()) <= BOUND_MS),
        f"Longest wait of a green packet in {counted(evidence.runs, 'run')}, ms "
        f"(bound {BOUND_MS:.1f}): {text}.",
    )


def both_gain(evidence: Evidence) -> Judgement:
    """Each blue source receives more, and each green one has less jitter, than under flat best effort."""
    checks, least = [], {}
    for form in FORM_NAMES:
        rates, jitter = (
            [
                evidence.difference(
                    metric,
                    {**key(ABE, form, service), "source": source},
                    {**key(FLAT, form, service), "source": source},
                )
                for source in range(1, FLOWS + 1)
            ]
            for metric, service in (("source_rate", BLUE), ("source_jitter", GREEN))
        )
        checks += [*map(above, rates), *map(below, jitter)]
        least[form] = min(rates, key=lambda e: e.low), max(jitter, key=lambda e: e.high)
    text = "; ".join(
        f"{FORM_NAMES[form]} {rate.text(3, sign=True)} Mbit/s and {jitter.text(2, sign=True)} ms"
        for form, (rate, jitter) in least.items()
    )
    return judge(
        all_of(*checks),
        f"The smallest gain of the {FLOWS} blue sources in rate, and of the {FLOWS} green ones in jitter "
        f"(RFC 3550), ABE − flat: {text}.",
    )


def neither_better(evidence: Evidence) -> Judgement:
    """Under ABE green loses a larger share, and blue waits longer with more jitter."""
    lost = {f: evidence.difference("loss", key(ABE, f), key(ABE, f, BLUE)) for f in FORM_NAMES}
    jitter = {f: evidence.difference("jitter", key(ABE, f, BLUE), key(ABE, f)) for f in FORM_NAMES}
    return judge(
        all_of(*map(above, lost.values()), *map(above, jitter.values())),
        f"Green's losses − blue's: {each(lost, 3, sign=True)}; blue's jitter − green's, ms: "
        f"{each(jitter, 1, sign=True)}.",
    )


def makes_it(evidence: Evidence, without: str) -> Judgement:
    """Green waits longer without a part of its admission, with all green sources."""
    name = ROUTER_NAMES[without]
    found = {f: evidence.difference("wait_p99", key(without, f), key(ABE, f)) for f in FORM_NAMES}
    gain = {f: evidence.difference("wait_p99", key(FLAT, f), key(ABE, f)) for f in FORM_NAMES}
    most = {f: max(evidence.by_seed("wait_max", key(without, f)).values()) for f in FORM_NAMES}
    return judge(
        all_of(*map(above, found.values())),
        f"99 % of green packets wait less than, ms: flat − ABE {each(gain, 1, sign=True)}; {name} − "
        f"ABE {each(found, 2, sign=True)}; longest wait with {name} "
        + ", ".join(f"{FORM_NAMES[f]} {value:.1f}" for f, value in most.items())
        + f" (N_g allows {BOUND_MS:.1f}).",
    )


def limit_suffices(evidence: Evidence) -> Judgement:
    """With N_g but alpha 1 green waits less than in flat best effort, with all green sources."""
    found = {f: evidence.difference("wait_p99", key(EQUAL_DROPS, f), key(FLAT, f)) for f in FORM_NAMES}
    return judge(
        all_of(*map(below, found.values())),
        f"99 % of green packets wait less than, {ROUTER_NAMES[EQUAL_DROPS]} − flat, ms: "
        f"{each(found, 2, sign=True)}.",
    )


def green_leaves_capacity(evidence: Evidence) -> Judgement:
    """Green alone uses less of the link than under flat best effort."""
    found = {f: evidence.difference("utilization", cell(ABE, f), cell(FLAT, f)) for f in FORM_NAMES}
    return judge(
        all_of(*map(below, found.values())),
        f"Share of the link used, ABE − flat: {each(found, 3, sign=True)}.",
    )


def _tables(services: tuple[str, ...]) -> tuple[Table, ...]:
    which = Axis("service", "Service", {s: s for s in services})
    return (
        Table(
            "Green packets' wait at the bottleneck, ms, by green source",
            {"wait_p50": "p50", "wait_p95": "p95", "wait_p99": "p99", "wait_max": "max"},
            ROUTERS,
            (FORMS,),
            where={"service": GREEN},
            digits=1,
        ),
        Table(
            "Green packets' jitter, ms: p99 − p50, and RFC 3550's from end to end",
            {"jitter": "p99−p50", "jitter_rfc3550": "RFC 3550"},
            ROUTERS,
            (FORMS,),
            where={"service": GREEN},
            digits=1,
        ),
        Table("Share of the link used", {"utilization": ""}, ROUTERS, (FORMS,)),
        Table(
            "Rate of a flow, Mbit/s, and losses, by service, with RAP",
            {"throughput": "rate", "loss": "lost"},
            ROUTERS,
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
        series=ROUTERS,
        y_label="share of green packets",
        facet=FORMS,
        # Without N_g the curve is ABE's, and that of its scheduler alone is flat best effort's.
        where={"service": GREEN, "scheme": (ABE, EQUAL_DROPS, FLAT)},
    )


FIG3_STATEMENT = THIS.item("fig3")
FIG3 = Study(
    id="hurley-fig3",
    title="How long green packets wait, ten blue and ten green flows",
    source=f"{TITLE}, Figure 3",
    summary="10 blue and 10 green flows, under ABE and flat best effort",
    cells=[cell(scheme, form) for form in FORM_NAMES for scheme in (ABE, FLAT)],
    scenario=build(FLOWS),
    samples=samples,
    published=FIG3_STATEMENT.values,
    claims=claims(
        FIG3_STATEMENT.claims,
        {
            "better-delays": shorter,
            "shorter-than-blue": shorter_than_blue,
            "less-jitter": {
                "": lambda e: less(e, "jitter", (ABE, GREEN), (ABE, BLUE), "Jitter p99 − p50, green − blue"),
                "p95 − p50 of the wait": lambda e: less(
                    e, "jitter_95", (ABE, GREEN), (ABE, BLUE), "Jitter p95 − p50, green − blue"
                ),
            },
            "bounded": bounded,
            "both-gain": both_gain,
            "neither-better": neither_better,
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
    summary="10 green flows and no blue one, under ABE, ABE without N_g or alpha, and flat best effort",
    cells=[cell(scheme, form) for form in FORM_NAMES for scheme in ROUTER_NAMES],
    scenario=build(0),
    samples=samples,
    published=FIG5_STATEMENT.values,
    claims=claims(
        FIG5_STATEMENT.claims,
        {
            "still-better": shorter,
            "due-to-control": {
                "delay control alone": lambda e: makes_it(e, UNLIMITED),
                "all that admits a green packet": lambda e: makes_it(e, SCHEDULER),
                "delay control would do without alpha": limit_suffices,
            },
            "few-in-queue": bounded,
            "leaves-capacity": green_leaves_capacity,
        },
    ),
    tables=_tables((GREEN,)),
    plots=(_plot(),),
    notes=FIG5_STATEMENT.notes,
    method=FIG5_STATEMENT.method,
    assumptions=FIG5_STATEMENT.assumptions,
    default_runs=RUNS,
)
