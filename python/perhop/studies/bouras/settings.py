"""What the choice of the setting rests on: queues by round trip, large flows by set of contracts.

The paper's round trip and contracts stood in its Figure 1, which is lost. What other settings make of the
claims is in the map.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perhop.show.declared import Table
from perhop.statistics.judging import Judgement, above, below, fact, judge
from perhop.studies.bouras import judges
from perhop.studies.bouras.common import (
    ADMISSIBLE,
    BASELINE,
    JUDGED_SET,
    PROPOSED,
    PROPOSED_IN,
    ROUND_TRIP_AXIS,
    ROUND_TRIPS,
    SET_AXIS,
    SETS,
    SHORT,
    THIS,
    TITLE,
)
from perhop.studies.bouras.judges import Case, cell
from perhop.studies.bouras.scenarios import SCENARIO_AXIS, samples, setting_of
from perhop.studies.evidence import Sample
from perhop.studies.judges import grouped

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from perhop.measures.run import Run
    from perhop.show.declared import Factors
    from perhop.studies.evidence import Evidence
    from perhop.studies.judges import Judge

QUOTED = (0.20, 0.25)
"""Mean queue over BW*D that section 4 quotes from the authors' earlier work."""
ABOUT = 0.03
"""How far "approximately" goes."""
ALL_SETS_AT = (150, 200)
"""The round trips at which the queue is about that; all sets are run there."""


def cells() -> list[dict[str, Any]]:
    """What the choices need: dynamic WRED's queue by round trip, the baseline by round trip and by set."""
    queue = [cell(n, PROPOSED, JUDGED_SET, ms) for ms in ROUND_TRIPS for n in (1, 2)]
    trips = [cell(2, BASELINE, JUDGED_SET, ms) for ms in ROUND_TRIPS]
    sets = [cell(2, BASELINE, name, ms) for ms in ALL_SETS_AT for name in SETS if name != JUDGED_SET]
    return [*queue, *trips, *sets, cell(2, PROPOSED_IN)]


def build(factors: Factors) -> Mapping[str, Any]:
    """One scenario under one scheme, in short."""
    return setting_of(factors).scenario(int(factors["scenario"]), str(factors["scheme"]), SHORT)


def take(factors: Factors, run: Run) -> Iterator[Sample]:
    """The samples of the figures."""
    return samples(factors, run, SHORT)


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
        return [n for n, case in cases.items() if judges.of_large(case, 2)(evidence)[""].mean < judges.KEPT]

    found = {ms: miss(ms) for ms in ALL_SETS_AT}
    text = "; ".join(
        f"{ms} ms: {len(names)} of {len(ADMISSIBLE)} ({', '.join(names)})" for ms, names in found.items()
    )
    return judge(
        fact(holds=all(0 < len(names) < len(ADMISSIBLE) for names in found.values())),
        f"Sets with which flows 8, 9 and 10 miss their contracts on 50 Mbit/s under the baseline, {text}.",
    )


def low_thresholds_at_long_trips() -> Judge:
    """Where 160 packets are the bandwidth-delay product, static WRED's large flows are safe; beyond, not."""
    found = {ms: judges.of_large(Case(round_trip=ms), 2) for ms in ROUND_TRIPS}
    short, long = found[ROUND_TRIPS[0]], found[ROUND_TRIPS[-1]]
    return (short.all(above, judges.KEPT) & long.all(below, judges.KEPT)).said(
        "Rate over contract of flows 8 to 10 on 50 Mbit/s by round trip, ms: {by_trip:.2}.",
        by_trip=grouped(found, between=", "),
    )


def in_profile_must_be_spared() -> Judge:
    """Where dynamic WRED drops IN packets as well, flows 8, 9 and 10 miss their contracts under it."""
    found = judges.of_large(Case(baseline=PROPOSED_IN), 2).all(below, judges.KEPT)
    return found.said("Rate over contract of flows 8 to 10 on 50 Mbit/s: {}.")


SETTINGS_STUDY = THIS.study(
    "settings",
    title="What the choice of the setting rests on",
    source=f"{TITLE}: round trip and contracts of its lost Figure 1",
    summary="dynamic WRED's queue at four round trips; large flows with 17 sets of contracts",
    cells=cells(),
    scenario=build,
    samples=take,
    judges={
        "round-trip-of-the-queue": round_trip_of_the_queue,
        "set-decides": set_decides,
        "low-thresholds-at-long-trips": low_thresholds_at_long_trips(),
        "in-profile-must-be-spared": in_profile_must_be_spared(),
    },
    tables=(
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
    extra=True,
    default_runs=3,
)
