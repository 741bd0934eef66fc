"""Every setting tried against every claim: round trips, sets of contracts, and readings of WRED's colors.

The paper's round trip and contracts stood in its Figure 1, which is lost, and it gives one set of thresholds
for two colors. The runs are shorter than those of the figures; the claims are judged by the same rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perhop.judging import Judgement, above, all_of, below, fact, judge
from perhop.studies.bouras import judges
from perhop.studies.bouras.common import (
    ADMISSIBLE,
    ALIKE,
    BASELINE,
    BASELINE_IN,
    JUDGED_ROUND_TRIP,
    JUDGED_SET,
    PROPOSED,
    PROPOSED_IN,
    ROUND_TRIP_AXIS,
    ROUND_TRIPS,
    SET_AXIS,
    SETS,
    THIS,
    TITLE,
    Times,
)
from perhop.studies.bouras.judges import Case, cell
from perhop.studies.bouras.scenarios import SCENARIO_AXIS, samples, setting_of
from perhop.studies.paper import claims
from perhop.study import Axis, Row, Sample, Study, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from perhop.runs import Run
    from perhop.study import Evidence, Factors

SHORT = Times(steady=120, begin=40, late=40, window=(100, 200), burst=40, phases=2, settle=10)
READINGS = {
    "OUT only": (PROPOSED, BASELINE),
    "static IN 0.02": (PROPOSED, BASELINE_IN),
    "both IN 0.02": (PROPOSED_IN, BASELINE_IN),
    "static alike": (PROPOSED, ALIKE),
}
"""Which packets the thresholds are for, and with it the schemes that are compared.

OUT packets only, in both; the static queue's IN packets by the same thresholds with a max_p of 0.02; both
queues' IN packets so; both colors of the static queue by one set.
"""
CROSSED = ("1/3/5", "1/2/7", "1/2/8", "2/4/6")
"""The sets that are crossed with all round trips and readings."""
VERDICTS = {True: 1.0, False: 0.0, None: 0.5}
QUOTED = (0.20, 0.25)
"""Mean queue over BW*D that section 4 quotes from the authors' earlier work."""
ABOUT = 0.03
"""How far "approximately" goes."""
ALL_SETS_AT = (150, 200)
"""The round trips at which the queue is about that; all sets are run there."""

STATEMENT = THIS.item("settings")


def cases() -> dict[str, Case]:
    """Every setting by its name: the judged one, then the crossed ones, then the other sets."""
    found: dict[str, Case] = {}

    def add(contracts: str, round_trip: int, reading: str) -> None:
        name = f"{round_trip} ms, {contracts}, {reading}"
        found[name] = Case(*READINGS[reading], contracts, round_trip)

    add(JUDGED_SET, JUDGED_ROUND_TRIP, "OUT only")
    for reading in READINGS:
        for round_trip in ROUND_TRIPS:
            for contracts in CROSSED:
                add(contracts, round_trip, reading)
    for round_trip in ALL_SETS_AT:
        for contracts in SETS:
            add(contracts, round_trip, "OUT only")
    return found


CASES = cases()
SETTINGS = Axis("setting", "Round trip, contracts, reading", {name: name for name in CASES})
SCENARIOS = (1, 2, 3, 4)


def cells() -> list[dict[str, Any]]:
    """Each scenario, scheme, set and round trip once."""
    found = {}
    for case in CASES.values():
        for scheme in (case.proposed, case.baseline):
            for number in SCENARIOS:
                key = case.key(number, scheme)
                found[tuple(key.values())] = key
    return list(found.values())


def build(factors: Factors) -> Mapping[str, Any]:
    """One scenario under one scheme, in short."""
    return setting_of(factors).scenario(int(factors["scenario"]), str(factors["scheme"]), SHORT)


def take(factors: Factors, run: Run) -> Iterator[Sample]:
    """The samples of the figures."""
    return samples(factors, run, SHORT)


def verdicts(evidence: Evidence) -> Iterator[Row]:
    """One row for each setting and claim, and how many hold."""
    for setting, case in CASES.items():
        held = 0
        for claim, judged in judges.ALL.items():
            holds = judged(evidence, case).holds
            held += holds is True
            yield Row(
                {"setting": setting, "claim": claim},
                "verdict",
                "",
                None,
                VERDICTS[holds],
                None,
                evidence.runs,
            )
        yield Row(
            {"setting": setting, "claim": "hold"}, "verdict", "", None, float(held), None, evidence.runs
        )


def round_trip_of_the_queue(evidence: Evidence) -> Judgement:
    """At two of the round trips DWRED's queue is about what the paper quotes, at the others not."""
    found = {
        ms: [evidence.mean("queue", {**cell(n, PROPOSED, JUDGED_SET, ms), "link": "R1-R2"}) for n in (1, 2)]
        for ms in ROUND_TRIPS
    }
    low, high = QUOTED
    fits = tuple(
        ms for ms, shares in found.items() if all(low - ABOUT <= share <= high + ABOUT for share in shares)
    )
    text = "; ".join(f"{ms} ms: {a:.2f} and {b:.2f}" for ms, (a, b) in found.items())
    return judge(fact(holds=fits == ALL_SETS_AT), f"Mean queue over BW*D on 30 and on 50 Mbit/s: {text}.")


def set_decides(evidence: Evidence) -> Judgement:
    """With some sets flows 8, 9 and 10 miss their contracts under the baseline, with others not."""

    def miss(ms: int) -> list[str]:
        cases = {name: Case(contracts=name, round_trip=ms) for name in ADMISSIBLE}
        return [n for n, case in cases.items() if judges.of_large(evidence, case, 2).mean < judges.KEPT]

    found = {ms: miss(ms) for ms in ALL_SETS_AT}
    text = "; ".join(
        f"{ms} ms: {len(names)} of {len(ADMISSIBLE)} ({', '.join(names)})" for ms, names in found.items()
    )
    return judge(
        fact(holds=all(0 < len(names) < len(ADMISSIBLE) for names in found.values())),
        f"Sets with which flows 8, 9 and 10 miss their contracts on 50 Mbit/s under the baseline, {text}.",
    )


def low_thresholds_at_long_trips(evidence: Evidence) -> Judgement:
    """Where 160 packets are the bandwidth-delay product, static WRED's large flows are safe; beyond, not."""
    found = {ms: judges.of_large(evidence, Case(round_trip=ms), 2) for ms in ROUND_TRIPS}
    return judge(
        all_of(above(found[ROUND_TRIPS[0]], judges.KEPT), below(found[ROUND_TRIPS[-1]], judges.KEPT)),
        f"Rate over contract of flows 8 to 10 on 50 Mbit/s by round trip, ms: {judges.listed(found)}.",
    )


def in_profile_must_be_spared(evidence: Evidence) -> Judgement:
    """Where dynamic WRED drops IN packets as well, flows 8, 9 and 10 miss their contracts under it."""
    found = judges.of_large(evidence, Case(baseline=PROPOSED_IN), 2)
    return judge(
        below(found, judges.KEPT), f"Rate over contract of flows 8 to 10 on 50 Mbit/s: {found.text()}."
    )


SETTINGS_STUDY = Study(
    id="bouras-settings",
    title="Every setting tried against every claim",
    source=f"{TITLE}: round trip and contracts of its lost Figure 1, and WRED's colors",
    summary="round trips of 40 to 200 ms, 17 sets of contracts, four readings of the thresholds, all claims",
    cells=cells(),
    scenario=build,
    samples=take,
    summaries=verdicts,
    published=STATEMENT.values,
    claims=claims(
        STATEMENT.claims,
        {
            "round-trip-of-the-queue": round_trip_of_the_queue,
            "set-decides": set_decides,
            "low-thresholds-at-long-trips": low_thresholds_at_long_trips,
            "in-profile-must-be-spared": in_profile_must_be_spared,
        },
    ),
    tables=(
        Table(
            "Claims at each setting: 1 holds, 0 does not hold, 0.5 cannot tell; the first line is the judged "
            "setting, the first column counts those that hold",
            {"verdict": ""},
            SETTINGS,
            (Axis("claim", "Claim", {name: name for name in ("hold", *judges.ALL)}),),
            digits=1,
        ),
        Table(
            "Mean queue of the first link under TWAM + DWRED, share of the bandwidth-delay product",
            {"queue": ""},
            ROUND_TRIP_AXIS,
            (SCENARIO_AXIS,),
            where={"link": "R1-R2", "scheme": PROPOSED, "set": JUDGED_SET, "scenario": (1, 2)},
            digits=2,
        ),
        Table(
            "Rate over contract of flow 10 under TSW2CM + WRED on 50 Mbit/s",
            {"over_contract": ""},
            SET_AXIS,
            (ROUND_TRIP_AXIS,),
            where={"flow": 10, "scheme": BASELINE, "scenario": 2},
            digits=2,
        ),
    ),
    plots=(),
    notes=STATEMENT.notes,
    method=STATEMENT.method,
    assumptions=STATEMENT.assumptions,
    extra=True,
    default_runs=3,
)
