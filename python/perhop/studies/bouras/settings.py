"""The grounds for the choice of the setting: queues by round trip, large flows by set of contracts.

The paper's round trip and contracts stood in its Figure 1, which is lost. What other settings make of the
claims is in the map.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from perhop.measures.run import Run
from perhop.show.declared import Factors, tables
from perhop.statistics.judging import Judgement, above, below, fact, judge
from perhop.studies.bouras import common, judges
from perhop.studies.bouras.common import ADMISSIBLE, BASELINE, JUDGED_SET, PROPOSED, PROPOSED_IN, ROUND_TRIPS
from perhop.studies.bouras.judges import Case, cell
from perhop.studies.bouras.scenarios import SCENARIO_AXIS, samples, setting_of
from perhop.studies.evidence import Evidence, Sample
from perhop.studies.judges import Numbers, grouped

QUOTED = (0.20, 0.25)
"""Mean queue over BW*D that section 4 quotes from the authors' earlier work."""
ABOUT = 0.03
"""The tolerance of "approximately"."""
ALL_SETS_AT = (150, 200)
"""The round trips at which the queue is about that; all sets are run there."""


def cells() -> list[dict[str, Any]]:
    """The cells of the choices: dynamic WRED's queue by round trip, the baseline by round trip and by set."""
    queue = [cell(n, PROPOSED, JUDGED_SET, ms) for ms in ROUND_TRIPS for n in (1, 2)]
    trips = [cell(2, BASELINE, JUDGED_SET, ms) for ms in ROUND_TRIPS]
    sets = [cell(2, BASELINE, name, ms) for ms in ALL_SETS_AT for name in common.SETS if name != JUDGED_SET]
    return [*queue, *trips, *sets, cell(2, PROPOSED_IN)]


def build(factors: Factors) -> Mapping[str, Any]:
    """One scenario under one scheme, in short."""
    return setting_of(factors).scenario(int(factors["scenario"]), str(factors["scheme"]), common.SHORT)


def take(factors: Factors, run: Run) -> Iterator[Sample]:
    """The samples of the figures."""
    return samples(factors, run, common.SHORT)


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


def of_large(**case: Any) -> Numbers:  # noqa: ANN401 - fields of a case
    """Rate over contract of flows 8 to 10 on 50 Mbit/s under the baseline of a case."""
    return judges.of_large(Case(**case), 2)


SHORTEST, *_, LONGEST = TRIPS = {ms: of_large(round_trip=ms) for ms in ROUND_TRIPS}

SETTINGS_STUDY = common.THIS.study(
    "settings",
    title="What the choice of the setting rests on",
    source=f"{common.TITLE}: round trip and contracts of its lost Figure 1",
    summary="dynamic WRED's queue at four round trips; large flows with 17 sets of contracts",
    cells=cells(),
    scenario=build,
    samples=take,
    judges={
        "round-trip-of-the-queue": round_trip_of_the_queue,
        "set-decides": set_decides,
        # Where 160 packets are the bandwidth-delay product, static WRED's large flows are safe; beyond, not.
        "low-thresholds-at-long-trips": (
            TRIPS[SHORTEST].all(above, judges.KEPT) & TRIPS[LONGEST].all(below, judges.KEPT)
        ).said(
            "Rate over contract of flows 8 to 10 on 50 Mbit/s by round trip, ms: {by_trip:.2}.",
            by_trip=grouped(TRIPS, between=", "),
        ),
        # Where dynamic WRED drops IN packets as well, flows 8, 9 and 10 miss their contracts under it.
        "in-profile-must-be-spared": of_large(baseline=PROPOSED_IN)
        .all(below, judges.KEPT)
        .said("Rate over contract of flows 8 to 10 on 50 Mbit/s: {}."),
    },
    tables=(
        *tables(
            common.ROUND_TRIP_AXIS,
            (SCENARIO_AXIS,),
            (
                "Mean queue of the first link under TWAM + DWRED, share of the bandwidth-delay product",
                "queue",
                2,
            ),
            link="R1-R2",
            scheme=PROPOSED,
            set=JUDGED_SET,
            scenario=(1, 2),
        ),
        *tables(
            common.SET_AXIS,
            (common.ROUND_TRIP_AXIS,),
            ("Rate over contract of flow 10 under TSW2CM + WRED on 50 Mbit/s", "over_contract", 2),
            flow=10,
            scheme=BASELINE,
            scenario=2,
        ),
    ),
    plots=(),
    extra=True,
    default_runs=3,
)
