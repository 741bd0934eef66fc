"""The ratio of blue to green throughput over round trips, link rates, and readings of alpha p."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from perhop.show.declared import Axis, Plot, Reference, Table
from perhop.statistics.judging import above, all_of, any_of, fact, judge, near
from perhop.studies.hurley.common import (
    ABE,
    BETA,
    BETA_TOLERANCE,
    FORM_NAMES,
    FORMS,
    GREEN,
    RAP,
    SETTING,
    SQRT,
    TFRC,
    THIS,
    TITLE,
    traffic,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from perhop.measures.run import Run
    from perhop.show.declared import Factors
    from perhop.statistics.intervals import Estimate
    from perhop.statistics.judging import Judgement
    from perhop.studies.evidence import Evidence, Sample

FLOWS = 10
ROUND_TRIPS = (44.0, 80.0, 120.0, 160.0, 200.0, 300.0, 400.0)
RATES = (2.0, SETTING.rate_mbps, 5.0, 10.0)
BASE = (SETTING.rate_mbps, SETTING.rtt_ms)
LONG_MS = 160.0
"""A round trip from here on is long: windows of three packets and more."""
LEVEL = 2.45
LEVEL_TOLERANCE = 0.2
SUFFERS = 0.25
"""A share of green's packets lost from which on it counts as badly off."""

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


def cell(rate: float, rtt: float, reading: str = FINAL, form: str = RAP) -> dict[str, Any]:
    """The factors of one scenario."""
    return {"rate_mbps": rate, "rtt_ms": rtt, "reading": reading, "form": form}


def cells() -> Iterator[dict[str, Any]]:
    """Rates against round trips with each green source; at the setting's rate every reading, too."""
    for form, rate, rtt in itertools.product(FORM_NAMES, RATES, ROUND_TRIPS):
        yield cell(rate, rtt, form=form)
    for rtt in ROUND_TRIPS:
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


def levels_off(evidence: Evidence) -> Judgement:
    """On the setting's link and faster ones RAP's ratio hardly depends on the path from 160 ms on."""
    found = {
        (rate, rtt): evidence.estimate("ratio", cell(rate, rtt))
        for rate in RATES
        if rate >= BASE[0]
        for rtt in ROUND_TRIPS
        if rtt >= LONG_MS
    }
    text = "; ".join(
        f"{rate:g} Mbit/s " + ", ".join(f"{e.text(2)}" for (at, _), e in found.items() if at == rate)
        for rate in dict.fromkeys(rate for rate, _ in found)
    )
    return judge(
        all_of(*(near(e, LEVEL, LEVEL_TOLERANCE) for e in found.values())),
        f"Blue over green with RAP from {LONG_MS:g} ms on: {text}.",
    )


def met_where_green_suffers(evidence: Evidence) -> Judgement:
    """Where RAP's ratio rounds to beta or more, green loses more than a quarter of its packets."""
    met, checks = [], []
    for rate, rtt in itertools.product(RATES, ROUND_TRIPS):
        ratio = evidence.estimate("ratio", cell(rate, rtt))
        lost = evidence.estimate("loss", {**cell(rate, rtt), "service": GREEN})
        if ratio.mean >= BETA - BETA_TOLERANCE:
            met.append(f"{rate:g} Mbit/s, {rtt:g} ms {ratio.text(2)} ({lost.mean:.2f})")
            checks.append(above(lost, SUFFERS))
    return judge(
        all_of(*checks) if checks else fact(holds=False),
        f"Where blue over green is at least {BETA - BETA_TOLERANCE:g} with RAP (green's losses): "
        f"{'; '.join(met) or 'nowhere'}.",
    )


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
    """TFRC's ratio is above those of the two others at every round trip on the setting's link."""
    checks = [
        above(evidence.difference("ratio", cell(BASE[0], rtt, form=TFRC), cell(BASE[0], rtt, form=other)))
        for rtt in ROUND_TRIPS
        for other in (RAP, SQRT)
    ]
    text = "; ".join(
        f"{rtt:g} ms "
        + ", ".join(
            f"{FORM_NAMES[form]} {evidence.mean('ratio', cell(BASE[0], rtt, form=form)):.1f}"
            for form in FORM_NAMES
        )
        for rtt in ROUND_TRIPS
    )
    return judge(all_of(*checks), f"Blue over green on {BASE[0]:g} Mbit/s: {text}.")


def slow_links_cut(evidence: Evidence) -> Judgement:
    """On the slowest link green is all but cut off at short round trips."""
    found = {rtt: evidence.estimate("ratio", cell(RATES[0], rtt)) for rtt in ROUND_TRIPS}
    return judge(
        any_of(*(above(found[rtt], 2 * BETA) for rtt in ROUND_TRIPS[:2])),
        f"Blue over green on {RATES[0]:g} Mbit/s: {listed(found)}.",
    )


ROUNDTRIP = THIS.study(
    "rtt",
    title="The ratio of throughputs over round trips",
    source=f"{TITLE}: what the paper leaves open",
    summary="round trips of 44 to 400 ms on 2 to 10 Mbit/s; three readings of alpha p; three green sources",
    cells=list(cells()),
    scenario=build,
    samples=samples,
    judges={
        "levels-off": levels_off,
        "met-where-green-suffers": met_where_green_suffers,
        "reading-matters-little": reading_matters_little,
        "source-decides": source_decides,
        "slow-links-cut": slow_links_cut,
    },
    tables=(
        *(
            Table(
                f"Blue over green throughput (beta 3), by round trip, {name}",
                {"ratio": ""},
                RATE_AXIS,
                (RTT_AXIS,),
                where={"reading": FINAL, "form": form},
                digits=2,
            )
            for form, name in FORM_NAMES.items()
        ),
        Table(
            f"Blue over green throughput by reading of alpha p, RAP, {BASE[0]:g} Mbit/s",
            {"ratio": ""},
            READING_AXIS,
            (RTT_AXIS,),
            where={"rate_mbps": BASE[0], "form": RAP},
            digits=2,
        ),
        Table(
            f"Green over blue losses (alpha_t 9), {BASE[0]:g} Mbit/s",
            {"alpha_m": ""},
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
            where={"reading": FINAL, "form": RAP, "service": GREEN},
        ),
    ),
    plots=(
        Plot(
            id="ratio",
            title="Blue over green throughput",
            kind="lines",
            metric="ratio",
            x=RTT_AXIS,
            series=RATE_AXIS,
            y_label="blue over green",
            facet=FORMS,
            where={"reading": FINAL, "rate_mbps": RATES[1:]},
            references=(Reference("beta", "form", dict.fromkeys(FORM_NAMES, BETA)),),
        ),
    ),
    extra=True,
    default_runs=6,
)
