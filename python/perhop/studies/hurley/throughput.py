"""Figures 2 and 4: what a flow of each service receives, under Asymmetric and under flat best effort."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from perhop.measures.run import Run
from perhop.show.declared import Axis, Factor, Factors, Plot, Row, Table, tables
from perhop.statistics.intervals import half_width_of
from perhop.statistics.judging import Judgement, above, below, fact, judge, near, within
from perhop.studies.evidence import Evidence, Sample
from perhop.studies.hurley import common
from perhop.studies.hurley.common import ABE, BETA, BLUE, FLAT, FORM_NAMES, FORMS, GREEN, SETTING
from perhop.studies.judges import Judge, level, of_runs, variants

FLOWS = 10
TIMES = tuple(float(t) for t in range(10, 201, 10))
FILE_PACKETS = 1000
"""A file of 1 MB: what a blue flow receives in about half a minute."""
SHORT_PACKETS = 200
"""A short file."""
ALPHA_M_TOLERANCE = 0.1
"""alpha_m counts as driven to alpha_t within this share of it."""

CLEARLY = 1.1
"""Blue is "clearly" ahead with at least this many times what it gets under flat best effort."""
FRIENDLY = (0.5, 2.0)
"""A flow's rate over TCP's under the same conditions, where it is TCP-friendly (RFC 5348, section 1)."""

OWN = "own"
EQUAL = "equal"
RTTS = Axis("rtt", "Green's RTT", {OWN: "shorter by its wait", EQUAL: "as blue's"})

CURVES = Axis(
    "curve",
    "Service and router",
    {f"{s}-{r}": f"{s}, {common.SCHEME_NAMES[r]}" for s in (BLUE, GREEN) for r in (ABE, FLAT)},
)

EVERYWHERE: Factors = {"curves": "all"}
HALF_WIDTH = Table(
    "The widest 95 % interval around a point of the curves that four runs would give (half of it): of the "
    "packets received by then, and of the mean rate up to the end, packets a second",
    {"half_width": "packets", "half_width_rate": "packets/s"},
    Axis("curves", "Curves", {"all": "all"}),
)


def cell(scheme: str, form: str, rtt: str = OWN) -> dict[str, Any]:
    """The factors of one scenario of Figure 2."""
    return {"scheme": scheme, "form": form, "rtt": rtt}


def fig2_build(factors: Factors) -> Mapping[str, Any]:
    """Ten blue and ten green flows."""
    setting = SETTING if factors["rtt"] == OWN else replace(SETTING, **common.ONE_FIFO)
    return setting.scenario(
        "Hurley and Le Boudec", str(factors["scheme"]), FLOWS, FLOWS, str(factors["form"])
    )


def fig2_samples(factors: Factors, run: Run) -> Iterator[Sample]:
    """Rates and what follows from them; packets received in time; how long blue takes for a file."""
    yield from common.traffic(factors, run)
    for sample in common.cumulative(factors, run, TIMES):
        curve = f"{sample.factors['service']}-{factors['scheme']}"
        yield replace(sample, factors={**sample.factors, "curve": curve})
    for metric, packets in (("transfer", FILE_PACKETS), ("short_transfer", SHORT_PACKETS)):
        taken = common.transfer_s(run, BLUE, packets)
        if taken is not None:
            yield Sample({**factors, "service": BLUE}, metric, "s", taken)


def half_width(evidence: Evidence, keys: list[Factors]) -> Iterator[Row]:
    """The widest 95 % interval that the paper's number of runs would give, over all points of its curves."""
    if evidence.runs > 1:
        widest = {key["time_s"]: 0.0 for key in keys}
        for key in keys:
            spread = half_width_of(list(evidence.by_seed("received", key).values()), common.PAPER_RUNS)
            widest[key["time_s"]] = max(widest[key["time_s"]], spread)
        published = evidence.published("half_width", EVERYWHERE)
        end = max(TIMES)
        for metric, unit, stated, value in (
            ("half_width", "packets", published, max(widest.values())),
            ("half_width_rate", "packets/s", None, widest[end] / end),
        ):
            yield Row(EVERYWHERE, metric, unit, stated, value, None, evidence.runs)


def received(scheme: str, service: str, at: float, form: str | None = common.RAP) -> Factors:
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
    """The part of beta − ratio that goes with blue's round-trip time; None where the ratio reaches beta."""
    own, equal = (evidence.mean("ratio", cell(ABE, form, rtt)) for rtt in (OWN, EQUAL))
    return (equal - own) / (BETA - own) if own < BETA else None


def of(scheme: str, rtt: str = OWN, **more: Factor) -> Callable[[str], Factors]:
    """The factors of a number of Figure 2, for each green source."""
    return lambda form: {**cell(scheme, form, rtt), **more}


def more(metric: str, a: tuple[str, str], b: tuple[str, str], unit: str, then: str = ".") -> Judge:
    """Judge whether one (router, service) has more of something than another, with all green sources."""
    found = common.changes(metric, *(of(scheme, service=service) for scheme, service in (a, b)))
    names = [f"{service} ({common.SCHEME_NAMES[scheme]})" for scheme, service in (a, b)]
    return found.all(above).said(
        f"{' − '.join(names)}, {unit}: {{:+}}{then}", ratio=common.by_form("ratio", of(FLAT))
    )


def clearly_higher(clearly: float = CLEARLY) -> Judge:
    """Judge whether blue gets so many times what it gets under flat best effort, with all green sources."""
    rates = {
        name: [("throughput", {**cell(scheme, form), "service": BLUE}) for scheme in (ABE, FLAT)]
        for form, name in FORM_NAMES.items()
    }
    found = of_runs({name: (lambda abe, flat: abe / flat, *pair) for name, pair in rates.items()})
    return found.all(above, clearly).said("Blue's rate under ABE over that under flat best effort: {:.2}.")


def friendly() -> Judge:
    """Judge whether a green flow gets from half to twice what TCP gets, under flat best effort."""
    low, high = FRIENDLY
    return (
        common.by_form("ratio", of(FLAT))
        .all(within, 1 / high, 1 / low)
        .said("Rate of TCP Reno over that of a green flow, flat best effort: {:.2}.")
    )


BETA_TOLERANCES = {"": common.BETA_TOLERANCE, ", within a quarter": BETA / 4, ", within a tenth": BETA / 10}
"""Beta as the nearest whole number, and two other tolerances."""


def beta_met(form: str, tolerance: float) -> Judge:
    """Judge whether the ratio with one green source is near beta."""
    return (
        level("ratio", cell(ABE, form))
        .all(near, BETA, tolerance)
        .said(
            f"Blue over green {{:.2}} (beta {BETA:g}); green loses {{lost:.2f}}.",
            lost=level("loss", {**cell(ABE, form), "service": GREEN}),
        )
    )


def alpha_driven(tolerance: float) -> Judge:
    """Judge whether the ratio of loss ratios over the whole run is near its target, with all sources."""
    target = BETA**2
    return (
        common.by_form("alpha_m", of(ABE))
        .all(near, target, tolerance * target)
        .said(f"Green over blue losses (alpha_t {target:g}): {{:.2}}.")
    )


def transfers_shorter(metric: str = "transfer") -> Judge:
    """Judge whether a blue file takes less time than under flat best effort, with all green sources."""
    packets = FILE_PACKETS if metric == "transfer" else SHORT_PACKETS
    found = common.changes(metric, of(ABE, service=BLUE), of(FLAT, service=BLUE))
    return found.all(below).said(
        f"A blue flow's first {packets} packets, s, ABE − flat: {{:+.1}} (flat: {{flat:.1}}).",
        flat=common.by_form(metric, of(FLAT, service=BLUE)),
    )


def short_rtt_raises_green() -> Judge:
    """Judge whether green's round trip is shorter, and its rate higher than with blue's round trip."""
    rates = common.changes("throughput", of(ABE, service=GREEN), of(ABE, EQUAL, service=GREEN))
    trips = common.changes("rtt", of(ABE, service=BLUE), of(ABE, service=GREEN))
    return (rates.all(above) & trips.all(above)).said(
        "Blue's round trip − green's, ms: {trips:+.1}; green's rate − that with blue's round trip, kbit/s: "
        "{kbit:+.2}.",
        trips=trips,
        kbit=rates.scaled(lambda mbit: 1e3 * mbit),
    )


def equal_trips_raise_ratio() -> Judge:
    """Judge whether the ratio of blue to green rises when green waits as long as blue."""
    found = common.changes("ratio", of(ABE, EQUAL), of(ABE)).all(above)
    return found.said("Ratio with equal round trips − ratio without: {:+.2}.")


FORMULA = "loss-throughput formula: sqrt(alpha_m) green over blue RTT"
RECEIVED = Plot(
    id="received",
    title="Packets received by a flow",
    kind="lines",
    metric="received",
    x=Axis("time_s", "Time, s"),
    series=CURVES,
    y_label="packets per flow",
)

FIG2 = common.THIS.study(
    "fig2",
    title="What blue and green flows receive, ten of each",
    source=f"{common.TITLE}, Figure 2",
    summary="10 blue TCP Reno and 10 green flows, under ABE and flat best effort; three green sources",
    cells=[
        *(cell(scheme, form) for form in FORM_NAMES for scheme in (ABE, FLAT)),
        *(cell(ABE, form, EQUAL) for form in FORM_NAMES),
    ],
    scenario=fig2_build,
    samples=fig2_samples,
    judges={
        "blue-above-flat": variants(
            clearly_higher, {"": CLEARLY, "a twentieth more": 1.05, "a fifth more": 1.2}
        ),
        "blue-above-green": more("throughput", (ABE, BLUE), (ABE, GREEN), "Mbit/s"),
        "green-pays": more("throughput", (FLAT, GREEN), (ABE, GREEN), "Mbit/s"),
        "green-loses-more": more("loss", (ABE, GREEN), (ABE, BLUE), "share lost"),
        "transfers-shorter": {
            "": transfers_shorter(),
            "a file of 200 packets": transfers_shorter("short_transfer"),
        },
        "beta": {
            name + words: beta_met(form, tolerance)
            for form, name in FORM_NAMES.items()
            for words, tolerance in BETA_TOLERANCES.items()
        },
        "alpha-driven": variants(
            alpha_driven, {"": ALPHA_M_TOLERANCE, "within a twentieth": 0.05, "within a fifth": 0.2}
        ),
        "short-rtt-raises-green": {
            "": short_rtt_raises_green(),
            "by the ratio of blue to green": equal_trips_raise_ratio(),
        },
        "green-friendly": friendly(),
        "green-takes-more-when-flat": more(
            "throughput", (FLAT, GREEN), (FLAT, BLUE), "Mbit/s", ". Blue over green: {ratio:.2}."
        ),
    },
    tables=(
        *tables(
            FORMS,
            (common.SCHEMES, common.SERVICES),
            ("Rate of a flow, Mbit/s, by router, green source and service", "throughput", 3),
            rtt=OWN,
        ),
        Table(
            "Packets lost, share; mean round-trip time, ms, under ABE",
            {"loss": "lost", "rtt": "RTT"},
            FORMS,
            (common.SERVICES,),
            where={"scheme": ABE, "rtt": OWN},
        ),
        *tables(
            FORMS,
            (RTTS,),
            (
                "Under ABE: blue over green throughput (beta 3), green over blue losses (alpha_t 9) and RTT",
                {"ratio": "blue/green", "alpha_m": "alpha_m", "rtt_ratio": "RTTs"},
                2,
            ),
            (
                f"Blue over green throughput by the {FORMULA}",
                {"formula_ratio": "blue/green"},
                2,
            ),
            scheme=ABE,
        ),
        Table(
            "Part of the ratio's shortfall against beta that green's shorter RTT makes",
            {"shortfall_by_rtt": "part"},
            FORMS,
            digits=2,
        ),
        *tables(
            FORMS,
            (common.SCHEMES,),
            (f"Time of a blue flow's first {FILE_PACKETS} packets, s", "transfer", 1),
            rtt=OWN,
        ),
        HALF_WIDTH,
    ),
    plots=(replace(RECEIVED, facet=FORMS, where={"rtt": OWN}),),
    summaries=fig2_summaries,
    default_runs=common.MANY_RUNS,
)


def fig4_build(factors: Factors) -> Mapping[str, Any]:
    """Ten blue flows, no green."""
    return SETTING.scenario("Hurley and Le Boudec, Figure 4", str(factors["scheme"]), FLOWS, 0, common.RAP)


def fig4_samples(factors: Factors, run: Run) -> Iterator[Sample]:
    """Rates; packets received in time; packets sent and dropped at the bottleneck."""
    yield from common.traffic(factors, run)
    for sample in common.cumulative(factors, run, TIMES):
        yield replace(sample, factors={**sample.factors, "curve": f"{BLUE}-{factors['scheme']}"})
    counters = run.link_class(common.LINK, BLUE)
    for name in ("arrived", "sent"):
        yield Sample(factors, name, "packets", float(counters[name].sum()))


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
    return judge(
        fact(holds=different == 0),
        f"A flow gets {rates[0]} under ABE and {rates[1]} under flat best effort (Mbit/s); of "
        f"{len(metrics) * evidence.runs} counts of packets, {different} differ.",
    )


FIG4 = common.THIS.study(
    "fig4",
    title="All blue: Asymmetric Best-Effort is flat best effort",
    source=f"{common.TITLE}, Figure 4",
    summary="10 blue TCP Reno flows and no green one, under ABE and flat best effort",
    cells=[{"scheme": scheme} for scheme in (ABE, FLAT)],
    scenario=fig4_build,
    samples=fig4_samples,
    judges={"reverts-to-flat": reverts},
    tables=(
        Table(
            "Rate of a flow, Mbit/s; packets that came to the bottleneck and left it",
            {"throughput": "rate", "arrived": "came", "sent": "left"},
            common.SCHEMES,
            digits=2,
        ),
        HALF_WIDTH,
    ),
    plots=(replace(RECEIVED, title="Packets received by a flow, all blue"),),
    summaries=lambda e: half_width(e, [received(r, BLUE, at, None) for r in (ABE, FLAT) for at in TIMES]),
    default_runs=common.RUNS,
)
