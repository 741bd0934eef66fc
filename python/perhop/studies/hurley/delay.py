"""Figures 3 and 5: how long green packets wait, under Asymmetric Best-Effort and under flat best effort."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from perhop.measures.run import Run
from perhop.plurals import counted
from perhop.show.declared import Axis, Factors, Plot, Table, tables
from perhop.statistics.judging import Judgement, above, below, fact, judge
from perhop.studies.evidence import Evidence, Sample
from perhop.studies.hurley import common
from perhop.studies.hurley.common import ABE, BLUE, FLAT, FORM_NAMES, FORMS, GREEN, RAP, SETTING, changes
from perhop.studies.judges import Judge, Numbers, difference, differences, grouped, together

FLOWS = 10
UNLIMITED, EQUAL_DROPS, SCHEDULER = "unlimited", "equal drops", "scheduler"
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
    yield from common.traffic(factors, run)
    yield from common.waits(factors, run)
    yield from common.cdf(factors, run, GREEN, GRID_MS)
    yield from common.each_source(factors, run)


def of(scheme: str, service: str = GREEN) -> Callable[[str], Factors]:
    """The factors of a service's measures under a router, for each green source."""
    return lambda form: key(scheme, form, service)


def quantiles_below(a: tuple[str, str], b: tuple[str, str], words: str) -> Judge:
    """Judge whether every quantile of one (router, service)'s wait is below another's, with all sources."""

    def of_form(form: str) -> Numbers:
        pair = (key(a[0], form, a[1]), key(b[0], form, b[1]))
        each = {metric.removeprefix("wait_"): difference(metric, *pair) for metric in QUANTILE_METRICS}
        return grouped(each, "{name} {all}", ", ")

    found = grouped({name: of_form(form) for form, name in FORM_NAMES.items()}, "{name} {all}")
    return found.all(below).said(f"{words}, ms: {{:+.1}}.")


SHORTER = quantiles_below((ABE, GREEN), (FLAT, GREEN), "Green's wait, ABE − flat")


def less_jitter(metric: str, quantile: str) -> Judge:
    """Judge whether, by one measure of jitter, green has less of it than blue with all green sources."""
    found = changes(metric, of(ABE), of(ABE, BLUE)).all(below)
    return found.said(f"Jitter {quantile} − p50, green − blue, ms: {{:+.1}}.")


def _longest(evidence: Evidence, scheme: str) -> dict[str, float]:
    """The longest wait of a green packet in all runs, ms, with each green source."""
    return {
        name: max(evidence.by_seed("wait_max", key(scheme, form)).values())
        for form, name in FORM_NAMES.items()
    }


def _listed(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.1f}" for name, value in values.items())


def bounded(evidence: Evidence) -> Judgement:
    """Judge whether no green packet of any run waited longer than N_g + 1 packet times."""
    longest = _longest(evidence, ABE)
    return judge(
        fact(holds=max(longest.values()) <= BOUND_MS),
        f"Longest wait of a green packet in {counted(evidence.runs, 'run')}, ms "
        f"(bound {BOUND_MS:.1f}): {_listed(longest)}.",
    )


def both_gain() -> Judge:
    """Judge whether each blue source receives more, and each green one has less jitter, than when flat."""

    def sources(metric: str, service: str) -> dict[str, Numbers]:
        def at(scheme: str, form: str, n: int) -> Factors:
            return {**key(scheme, form, service), "source": n}

        return {
            name: differences(metric, {n: (at(ABE, form, n), at(FLAT, form, n)) for n in range(1, FLOWS + 1)})
            for form, name in FORM_NAMES.items()
        }

    rates, jitter = sources("source_rate", BLUE), sources("source_jitter", GREEN)

    def least(evidence: Evidence) -> str:
        texts = []
        for name in FORM_NAMES.values():
            rate = min(rates[name](evidence).values(), key=lambda found: found.low)
            worst = max(jitter[name](evidence).values(), key=lambda found: found.high)
            texts.append(f"{name} {rate.text(3, sign=True)} Mbit/s and {worst.text(2, sign=True)} ms")
        return "; ".join(texts)

    return (grouped(rates).all(above) & grouped(jitter).all(below)).said(
        f"The smallest gain of the {FLOWS} blue sources in rate, and of the {FLOWS} green ones in jitter "
        "(RFC 3550), ABE − flat: {least}.",
        least=least,
    )


def neither_better() -> Judge:
    """Judge whether under ABE green loses a larger share, and blue waits longer with more jitter."""
    lost = changes("loss", of(ABE), of(ABE, BLUE)).all(above)
    jitter = changes("jitter", of(ABE, BLUE), of(ABE)).all(above)
    return together(
        lost.said("Green's losses − blue's: {:+};"), jitter.said("blue's jitter − green's, ms: {:+.1}.")
    )


def makes_it(without: str) -> Judge:
    """Judge whether green waits longer without a part of its admission, with all green sources."""
    name = ROUTER_NAMES[without]
    return (
        changes("wait_p99", of(without), of(ABE))
        .all(above)
        .said(
            f"99 % of green packets wait less than, ms: flat − ABE {{gain:+.1}}; {name} − ABE {{:+.2}}; "
            f"longest wait with {name} {{longest}} (N_g allows {BOUND_MS:.1f}).",
            gain=changes("wait_p99", of(FLAT), of(ABE)),
            longest=lambda evidence: _listed(_longest(evidence, without)),
        )
    )


def _tables(services: tuple[str, ...]) -> tuple[Table, ...]:
    which = Axis("service", "Service", {s: s for s in services})
    waits = {"wait_p50": "p50", "wait_p95": "p95", "wait_p99": "p99", "wait_max": "max"}
    jitter = {"jitter": "p99−p50", "jitter_rfc3550": "RFC 3550"}
    green = {"service": GREEN}
    return (
        *tables(
            ROUTERS,
            (FORMS,),
            ("Green packets' wait at the bottleneck, ms, by green source", waits, 1, green),
            ("Green packets' jitter, ms: p99 − p50, and RFC 3550's from end to end", jitter, 1, green),
            ("Share of the link used", "utilization", 3),
        ),
        Table(
            "Rate of a flow, Mbit/s, and losses, by service, with RAP",
            {"throughput": "rate", "loss": "lost"},
            ROUTERS,
            (which,),
            where={"form": RAP},
        ),
    )


# Without N_g the curve is ABE's, and that of its scheduler alone is flat best effort's.
PLOT = Plot(
    id="wait",
    title="How long green packets wait",
    kind="lines",
    metric="cdf",
    x=Axis("wait_ms", "Wait at the bottleneck, ms"),
    series=ROUTERS,
    y_label="share of green packets",
    facet=FORMS,
    where={"service": GREEN, "scheme": (ABE, EQUAL_DROPS, FLAT)},
)

FIG3 = common.THIS.study(
    "fig3",
    title="How long green packets wait, ten blue and ten green flows",
    source=f"{common.TITLE}, Figure 3",
    summary="10 blue and 10 green flows, under ABE and flat best effort",
    cells=[cell(scheme, form) for form in FORM_NAMES for scheme in (ABE, FLAT)],
    scenario=build(FLOWS),
    samples=samples,
    judges={
        "better-delays": SHORTER,
        "shorter-than-blue": quantiles_below((ABE, GREEN), (ABE, BLUE), "Wait under ABE, green − blue"),
        "less-jitter": {
            "": less_jitter("jitter", "p99"),
            "p95 − p50 of the wait": less_jitter("jitter_95", "p95"),
        },
        "bounded": bounded,
        "both-gain": both_gain(),
        "neither-better": neither_better(),
    },
    tables=_tables((BLUE, GREEN)),
    plots=(PLOT,),
    default_runs=common.RUNS,
)

FIG5 = common.THIS.study(
    "fig5",
    title="All green: the wait is still shorter",
    source=f"{common.TITLE}, Figure 5",
    summary="10 green flows and no blue one, under ABE, ABE without N_g or alpha, and flat best effort",
    cells=[cell(scheme, form) for form in FORM_NAMES for scheme in ROUTER_NAMES],
    scenario=build(0),
    samples=samples,
    judges={
        "still-better": SHORTER,
        "due-to-control": {
            "delay control alone": makes_it(UNLIMITED),
            "all that admits a green packet": makes_it(SCHEDULER),
            "delay control would do without alpha": changes("wait_p99", of(EQUAL_DROPS), of(FLAT))
            .all(below)
            .said(f"99 % of green packets wait less than, {ROUTER_NAMES[EQUAL_DROPS]} − flat, ms: {{:+.2}}."),
        },
        "few-in-queue": bounded,
        "leaves-capacity": changes("utilization", lambda form: cell(ABE, form), lambda form: cell(FLAT, form))
        .all(below)
        .said("Share of the link used, ABE − flat: {:+}."),
    },
    tables=_tables((GREEN,)),
    plots=(PLOT,),
    default_runs=common.RUNS,
)
