"""The ratio of blue to green throughput over round trips, link rates, and readings of alpha p."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from perhop.judging import above, all_of, any_of, below, judge, near
from perhop.studies.hurley.common import (
    ABE,
    BETA,
    FORM_NAMES,
    FORMS,
    QUARTER,
    RAP,
    SETTING,
    THIS,
    TITLE,
    traffic,
    within_a_quarter,
)
from perhop.studies.paper import claims
from perhop.study import Axis, Plot, Reference, Study, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from perhop.judging import Judgement
    from perhop.runs import Run
    from perhop.statistics import Estimate
    from perhop.study import Evidence, Factors, Sample

FLOWS = 10
ROUND_TRIPS = (44.0, 80.0, 120.0, 160.0, 200.0, 300.0, 400.0)
RATES = (2.0, 3.0, 5.0, 10.0)
BASE = (SETTING.rate_mbps, SETTING.rtt_ms)

FINAL = "final"
INITIAL = "initial"
BERNOULLI = "bernoulli"
READING_NAMES = {
    FINAL: "alpha p_a",
    INITIAL: "alpha p_b, then spread",
    BERNOULLI: "alpha p_b, not spread",
}
READINGS: Mapping[str, Mapping[str, Any]] = {
    FINAL: {},
    INITIAL: {"alpha_on": "initial"},
    BERNOULLI: {"spread": False},
}

RTT_AXIS = Axis("rtt_ms", "Propagation round trip, ms")
RATE_AXIS = Axis("rate_mbps", "Link", {rate: f"{rate:g} Mbit/s" for rate in RATES})
READING_AXIS = Axis("reading", "Reading of alpha p", READING_NAMES)

STATEMENT = THIS.item("rtt")


def cell(rate: float, rtt: float, reading: str = FINAL, form: str = RAP) -> dict[str, Any]:
    """The factors of one scenario."""
    return {"rate_mbps": rate, "rtt_ms": rtt, "reading": reading, "form": form}


def cells() -> Iterator[dict[str, Any]]:
    """Rates against round trips; at the paper's setting's rate every reading and TFRC, too."""
    for rate, rtt in itertools.product(RATES, ROUND_TRIPS):
        yield cell(rate, rtt)
    for rtt in ROUND_TRIPS:
        yield cell(BASE[0], rtt, form="tfrc")
        for reading in (INITIAL, BERNOULLI):
            yield cell(BASE[0], rtt, reading)


def build(factors: Factors) -> Mapping[str, Any]:
    """Ten blue and ten green flows under ABE."""
    setting = replace(
        SETTING,
        rate_mbps=float(factors["rate_mbps"]),
        rtt_ms=float(factors["rtt_ms"]),
        **READINGS[str(factors["reading"])],
    )
    return setting.scenario(
        "Asymmetric Best-Effort over round trips", ABE, FLOWS, FLOWS, str(factors["form"])
    )


def samples(factors: Factors, run: Run) -> Iterator[Sample]:
    """Rates, losses and round trips of both services."""
    yield from traffic(factors, run)


def ratios(evidence: Evidence, reading: str = FINAL, form: str = RAP) -> dict[float, Estimate]:
    """The ratio at each round trip, at the setting's rate."""
    return {rtt: evidence.estimate("ratio", cell(BASE[0], rtt, reading, form)) for rtt in ROUND_TRIPS}


def listed(found: Mapping[float, Estimate]) -> str:
    """`44 ms 1.77 ± 0.03, …`."""
    return ", ".join(f"{rtt:g} ms {e.text(2)}" for rtt, e in found.items())


def met_from(evidence: Evidence) -> Judgement:
    """Within a quarter of beta from 160 ms on, and not below 120 ms, at the setting's rate."""
    found = ratios(evidence)
    long = [within_a_quarter(e) for rtt, e in found.items() if rtt >= 160]
    least = BETA * (1 - QUARTER)
    short = [below(e, least) for rtt, e in found.items() if rtt < 120]
    return judge(all_of(*long, *short), f"Blue over green on {BASE[0]:g} Mbit/s: {listed(found)}.")


def reading_matters_little(evidence: Evidence) -> Judgement:
    """At the judged round trip the three readings of alpha p differ by less than a tenth."""
    found = {r: ratios(evidence, r)[BASE[1]] for r in READINGS}
    text = ", ".join(f"{READING_NAMES[r]} {e.text(2)}" for r, e in found.items())
    shortest = {r: ratios(evidence, r)[ROUND_TRIPS[0]] for r in READINGS}
    base = found[FINAL].mean
    return judge(
        all_of(*(near(e, base, 0.1 * base) for e in found.values())),
        f"Blue over green at {BASE[1]:g} ms: {text}; at {ROUND_TRIPS[0]:g} ms: "
        + ", ".join(f"{READING_NAMES[r]} {e.text(2)}" for r, e in shortest.items())
        + ".",
    )


def source_decides(evidence: Evidence) -> Judgement:
    """TFRC's ratio is above RAP's at every round trip."""
    found = {rtt: (ratios(evidence, form="tfrc")[rtt], ratios(evidence)[rtt]) for rtt in ROUND_TRIPS}
    checks = [
        above(evidence.difference("ratio", cell(BASE[0], rtt, form="tfrc"), cell(BASE[0], rtt)))
        for rtt in ROUND_TRIPS
    ]
    text = ", ".join(f"{rtt:g} ms {a.text(1)} against {b.text(1)}" for rtt, (a, b) in found.items())
    return judge(all_of(*checks), f"Blue over green, TFRC against RAP: {text}.")


def slow_links_cut(evidence: Evidence) -> Judgement:
    """On the slowest link green is all but cut off at short round trips."""
    found = {rtt: evidence.estimate("ratio", cell(RATES[0], rtt)) for rtt in ROUND_TRIPS}
    return judge(
        any_of(*(above(found[rtt], 2 * BETA) for rtt in ROUND_TRIPS[:2])),
        f"Blue over green on {RATES[0]:g} Mbit/s: {listed(found)}.",
    )


ROUNDTRIP = Study(
    id="hurley-rtt",
    title="The ratio of throughputs over round trips",
    source=f"{TITLE}: what the paper leaves open",
    summary="round trips of 44 to 400 ms on 2 to 10 Mbit/s; three readings of alpha p; RAP and TFRC",
    cells=list(cells()),
    scenario=build,
    samples=samples,
    published=STATEMENT.values,
    claims=claims(
        STATEMENT.claims,
        {
            "beta-from-160-ms": met_from,
            "reading-matters-little": reading_matters_little,
            "source-decides": source_decides,
            "slow-links-cut": slow_links_cut,
        },
    ),
    tables=(
        Table(
            "Blue over green throughput (beta 3), by round trip, RAP",
            {"ratio": ""},
            RATE_AXIS,
            (RTT_AXIS,),
            where={"reading": FINAL, "form": RAP},
            digits=2,
        ),
        Table(
            "Blue over green throughput by reading of alpha p, RAP, 5 Mbit/s",
            {"ratio": ""},
            READING_AXIS,
            (RTT_AXIS,),
            where={"rate_mbps": BASE[0], "form": RAP},
            digits=2,
        ),
        Table(
            "Blue over green throughput, and green over blue losses (alpha_t 9), 5 Mbit/s",
            {"ratio": "blue/green", "alpha_m": "alpha_m"},
            FORMS,
            (RTT_AXIS,),
            where={"rate_mbps": BASE[0], "reading": FINAL},
            digits=2,
        ),
        Table(
            "Green packets lost, share, RAP",
            {"loss": ""},
            RATE_AXIS,
            (RTT_AXIS,),
            where={"reading": FINAL, "form": RAP, "service": "green"},
        ),
    ),
    plots=(
        Plot(
            id="ratio",
            title="Blue over green throughput",
            kind="lines",
            metric="ratio",
            x=RTT_AXIS,
            series=READING_AXIS,
            y_label="blue over green",
            facet=Axis("form", "Green source", FORM_NAMES),
            where={"rate_mbps": BASE[0]},
            references=(Reference("beta", "form", dict.fromkeys(FORM_NAMES, BETA)),),
        ),
    ),
    notes=STATEMENT.notes,
    method=STATEMENT.method,
    assumptions=STATEMENT.assumptions,
    extra=True,
    default_runs=6,
)
