"""The ratio of blue to green throughput over round trips, link rates, and readings of alpha p."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from perhop.show.declared import Axis, Factors, Plot, Reference, tables
from perhop.statistics.judging import Judgement, above, all_of, fact, judge, near
from perhop.studies.evidence import Evidence
from perhop.studies.hurley import common
from perhop.studies.hurley.common import ABE, BETA, FORM_NAMES, FORMS, GREEN, RAP, SETTING, SQRT, TFRC
from perhop.studies.judges import Judge, Numbers, differences, grouped, levels

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

FINAL, INITIAL, BERNOULLI = "final", "initial", "bernoulli"
READING_NAMES = {FINAL: "alpha p_a", INITIAL: "alpha p_b, then spread", BERNOULLI: "alpha p_b, not spread"}
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


def by_trip(rate: float, trips: Iterable[float] = ROUND_TRIPS) -> Numbers:
    """RAP's ratio at these round trips on one link: `44 ms 1.77 ± 0.03, …`."""
    return levels("ratio", {f"{rtt:g} ms": cell(rate, rtt) for rtt in trips})


def levels_off() -> Judge:
    """On the setting's link and faster ones RAP's ratio hardly depends on the path from 160 ms on."""
    long = [rtt for rtt in ROUND_TRIPS if rtt >= LONG_MS]
    rates = [rate for rate in RATES if rate >= BASE[0]]
    found = grouped(
        {f"{rate:g} Mbit/s": by_trip(rate, long).reads("{value}") for rate in rates}, "{name} {all}"
    )
    return found.all(near, LEVEL, LEVEL_TOLERANCE).said(
        f"Blue over green with RAP from {LONG_MS:g} ms on: {{:.2}}."
    )


def met_where_green_suffers(evidence: Evidence) -> Judgement:
    """Green loses more than a quarter of its packets where RAP's ratio rounds to beta or more."""
    met, checks = [], []
    for rate, rtt in itertools.product(RATES, ROUND_TRIPS):
        ratio = evidence.estimate("ratio", cell(rate, rtt))
        lost = evidence.estimate("loss", {**cell(rate, rtt), "service": GREEN})
        if ratio.mean >= BETA - common.BETA_TOLERANCE:
            met.append(f"{rate:g} Mbit/s, {rtt:g} ms {ratio.text(2)} ({lost.mean:.2f})")
            checks.append(above(lost, SUFFERS))
    return judge(
        all_of(*checks) if checks else fact(holds=False),
        f"Where blue over green is at least {BETA - common.BETA_TOLERANCE:g} with RAP (green's losses): "
        f"{'; '.join(met) or 'nowhere'}.",
    )


def reading_matters_little() -> Judge:
    """At the judged round trip the three readings of alpha p differ by less than a tenth."""
    judged, shortest = (
        levels("ratio", {READING_NAMES[reading]: cell(BASE[0], rtt, reading) for reading in READINGS})
        for rtt in (BASE[1], ROUND_TRIPS[0])
    )
    base = judged.only(READING_NAMES[FINAL])
    return judged.all(near, base.bound(), base.bound(lambda found: 0.1 * found.mean)).said(
        f"Blue over green at {BASE[1]:g} ms: {{:.2}}; at {ROUND_TRIPS[0]:g} ms: {{shortest:.2}}.",
        shortest=shortest,
    )


def source_decides() -> Judge:
    """TFRC's ratio is above those of the two others at every round trip on the setting's link."""
    by_form = {rtt: {form: cell(BASE[0], rtt, form=form) for form in FORM_NAMES} for rtt in ROUND_TRIPS}
    pairs = {(rtt, other): (at[TFRC], at[other]) for rtt, at in by_form.items() for other in (RAP, SQRT)}
    ratios = {
        f"{rtt:g} ms": levels("ratio", {FORM_NAMES[form]: key for form, key in at.items()})
        for rtt, at in by_form.items()
    }
    return (
        differences("ratio", pairs)
        .all(above)
        .said(
            f"Blue over green on {BASE[0]:g} Mbit/s: {{ratios:.1f}}.", ratios=grouped(ratios, "{name} {all}")
        )
    )


ROUNDTRIP = common.THIS.study(
    "rtt",
    title="The ratio of throughputs over round trips",
    source=f"{common.TITLE}: what the paper leaves open",
    summary="round trips of 44 to 400 ms on 2 to 10 Mbit/s; three readings of alpha p; three green sources",
    cells=list(cells()),
    scenario=build,
    samples=common.traffic,
    judges={
        "levels-off": levels_off(),
        "met-where-green-suffers": met_where_green_suffers,
        "reading-matters-little": reading_matters_little(),
        "source-decides": source_decides(),
        # On the slowest link green is all but cut off at short round trips.
        "slow-links-cut": by_trip(RATES[0], ROUND_TRIPS[:2])
        .any(above, 2 * BETA)
        .said(f"Blue over green on {RATES[0]:g} Mbit/s: {{all:.2}}.", all=by_trip(RATES[0])),
    },
    tables=(
        *tables(
            RATE_AXIS,
            (RTT_AXIS,),
            *(
                (f"Blue over green throughput (beta 3), by round trip, {name}", "ratio", 2, {"form": form})
                for form, name in FORM_NAMES.items()
            ),
            reading=FINAL,
        ),
        *tables(
            READING_AXIS,
            (RTT_AXIS,),
            (f"Blue over green throughput by reading of alpha p, RAP, {BASE[0]:g} Mbit/s", "ratio", 2),
            rate_mbps=BASE[0],
            form=RAP,
        ),
        *tables(
            FORMS,
            (RTT_AXIS,),
            (f"Green over blue losses (alpha_t 9), {BASE[0]:g} Mbit/s", "alpha_m", 2),
            rate_mbps=BASE[0],
            reading=FINAL,
        ),
        *tables(
            RATE_AXIS,
            (RTT_AXIS,),
            ("Green packets lost, share, RAP", "loss", 3),
            reading=FINAL,
            form=RAP,
            service=GREEN,
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
