"""What becomes of claims: readings, other rules, claims that do not count, and maps of assumptions."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from perhop.show.declared import Row
from perhop.show.plot import caption, drawing
from perhop.statistics.judging import Judgement
from perhop.studies import STUDIES
from perhop.studies.assumptions import STATED, Hang, Place, everywhere, hangs, map_of
from perhop.studies.evidence import Evidence, Published, Sample, UnmeasuredError
from perhop.studies.judges import Judges
from perhop.studies.paper import Statement, claims, statement
from perhop.studies.reproduction import Cell, StudyOutcome, by_paper, judge, to_json
from perhop.studies.study import Claim, ClaimVerdict, Reading, Sentence, Study

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

EMPTY = Statement((), (), {}, (), "")
EVIDENCE = Evidence([(seed, Sample({}, "rate", "Mbit/s", 1.0)) for seed in (1, 2, 3)], [])


def study(judged: Sequence[Claim], name: str = "made-up") -> Study:
    """One cell, one number."""
    return Study(
        id=name,
        title="Made up",
        source="none",
        summary="for tests",
        cells=[{}],
        scenario=lambda _: {},
        samples=lambda _cell, _run: [],
        published=[],
        claims=judged,
        tables=(),
        plots=(),
    )


def judged_once(claims_: Sequence[Claim]) -> StudyOutcome:
    """The study of these claims with three runs."""
    samples = [(seed, Sample({}, "rate", "Mbit/s", 1.0)) for seed in (1, 2, 3)]
    return judge(study(claims_), [Cell({}, "{}")], [1, 2, 3], samples)


def says(*, holds: bool | None, needed: int | None = None) -> Callable[[Evidence], Judgement]:
    """A judge that always says the same."""
    return lambda _: Judgement(holds, "as it is", needed)


YES, NO, OPEN = says(holds=True), says(holds=False), says(holds=None)
NINE = says(holds=None, needed=9)


def test_a_claim_with_readings_holds_only_if_all_of_them_do() -> None:
    def verdict(*readings: Callable[[Evidence], Judgement]) -> ClaimVerdict:
        wording = statement(
            {
                "method": "",
                "claims": {
                    "one": {
                        "text": "It is so.",
                        "readings": [
                            {"name": f"reading {n}", "rule": f"Rule {n}."} for n in range(len(readings))
                        ],
                    }
                },
            }
        )
        judges = {f"reading {n}": judged for n, judged in enumerate(readings)}
        (claim,) = claims(wording.claims, {"one": judges})
        return claim.verdict(EVIDENCE)

    assert verdict(YES, YES).state == "holds"
    assert verdict(NO, NO).state == "does not hold"
    differing = verdict(YES, NO)
    assert (differing.holds, differing.state) == (None, "cannot tell (readings differ)")
    assert differing.judgement.evidence == (
        "“reading 0”: holds. as it is “reading 1”: does not hold. as it is"
    )
    assert differing.claim.rules == "Read as “reading 0”: Rule 0. Read as “reading 1”: Rule 1."
    assert verdict(YES, NINE).state == "cannot tell (needs about 9 runs)"
    assert verdict(NO, OPEN).state == "cannot tell (needs more than 1000 runs)"
    three = verdict(YES, NINE, NO)
    assert three.state == "cannot tell (readings differ)", "no number of runs makes them agree"


def test_another_rule_is_shown_and_does_not_decide() -> None:
    words = {
        "text": "It is so.",
        "rule": "Within a half.",
        "others": [{"name": "within a tenth", "rule": "…"}],
    }
    found = statement({"method": "", "claims": {"one": words}}).claims
    (claim,) = claims(found, {"one": {"": YES, "within a tenth": NO}})
    outcome = judged_once([claim])
    (verdict,) = outcome.verdicts
    assert verdict.state == "holds"
    assert verdict.by_others == "By other rules: within a tenth: does not hold."
    entry = json.loads(to_json([outcome]))["studies"][0]["claims"][0]
    assert entry["holds"] is True
    assert [(rule["name"], rule["holds"]) for rule in entry["other_rules"]] == [("within a tenth", False)]


@pytest.mark.parametrize(
    ("words", "judges", "message"),
    [
        ({"rule": "So."}, {"": YES, "within a tenth": YES}, "within a tenth"),
        ({"readings": [{"name": "a", "rule": "A."}, {"name": "b", "rule": "B."}]}, {"a": YES}, "b"),
        ({"rule": "So.", "others": [{"name": "a", "rule": "A."}]}, {"": YES}, "a"),
        ({"rule": "So.", "readings": [{"name": "a", "rule": "A."}]}, {"a": YES}, "two `readings`"),
        ({"readings": [{"name": "a", "rule": "A."}]}, {"a": YES}, "two `readings`"),
    ],
)
def test_every_reading_and_rule_has_words_and_a_judge(
    words: dict[str, Any], judges: Judges, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        claims(statement({"method": "", "claims": {"one": {"text": "…", **words}}}).claims, {"one": judges})


def test_a_claim_that_chose_a_setting_is_judged_and_not_counted() -> None:
    source = Sentence("It is so.", "3")
    chosen = Claim("chosen", "…", YES, source, chose="the contracts")
    outcome = judged_once([chosen, Claim("free", "…", NO, source)])
    (group,) = by_paper([outcome])
    assert [verdict.claim.id for verdict in outcome.claims] == ["chosen", "free"]
    assert [verdict.claim.id for verdict in outcome.counted] == ["free"]
    assert (group.count(holds=True), group.count(holds=False), group.not_counted) == (0, 1, 1)
    entries = json.loads(to_json([outcome]))["studies"][0]["claims"]
    assert [(entry["counted"], entry.get("chose")) for entry in entries] == [
        (False, "the contracts"),
        (True, None),
    ]


def test_totals_of_papers_are_in_the_json() -> None:
    paper = STUDIES["kim-table1"]
    verdicts = [
        ClaimVerdict(
            replace(claim, readings=(), others=(), chose="a setting" if first else ""),
            Judgement(holds=True, evidence=""),
        )
        for claim, first in zip(paper.claims, (True, *[False] * len(paper.claims)), strict=False)
    ]
    outcome = StudyOutcome(paper, [], [1], [], [], verdicts)
    (totals,) = json.loads(to_json([outcome]))["papers"]
    judged = sum(not claim.finding for claim in paper.claims)
    assert totals["id"] == "kim"
    assert (totals["holds"], totals["does_not_hold"], totals["cannot_tell"]) == (judged - 1, 0, 0)
    assert totals["not_counted"] == 1
    assert totals["not_run"] == sum(
        not claim.finding and claim.counted
        for one in STUDIES.values()
        if one.id.startswith("kim-") and one.id != "kim-table1"
        for claim in one.claims
    )


def test_the_distance_to_a_printed_table_leaves_out_what_cannot_be_right() -> None:
    apart = [3.0, -4.0, 0.0, 0.0, 0.0]

    def row(number: int, printed: float | None) -> Row:
        return Row({"row": number}, "throughput", "Mbit/s", printed, 1.0, (0.9, 1.1), 3)

    rows = [row(number, 1.0 - one) for number, one in enumerate(apart)]
    rows += [replace(row(5, 100.0), misprint=True), replace(row(6, 100.0), derived=True), row(7, None)]
    outcome = StudyOutcome(study([]), [], [1], [], rows, [])
    (distance,) = outcome.distances
    assert (distance.count, distance.largest) == (5, 4.0)
    assert distance.rms == pytest.approx(5**0.5)
    assert "2.236 Mbit/s" in distance.text
    assert StudyOutcome(study([]), [], [1], [], rows[:4], []).distances == [], "four numbers are no table"


def test_a_misprint_stands_beside_the_row_that_it_is_in() -> None:
    row = {"metric": "throughput", "by": "load", "at": [1.0, 2.0], "values": [3.0, 4.0], "misprint": [2.0]}
    values = statement({"method": "", "values": [row]}).values
    assert [value.misprint for value in values] == [False, True]


def a_map(judges: dict[str, Callable[[Evidence], Judgement]]) -> Study:
    """Two values of one assumption and one of another, beside the stated setting."""
    source = Sentence("It is so.", "3")
    stated = study([Claim(name, "…", one, source) for name, one in judges.items()], "paper-fig1")
    return map_of(
        "paper",
        "A map",
        "none",
        stated=[stated],
        places=[
            *(everywhere("Window", f"{n} packets", [stated], lambda scenario: scenario) for n in (20, 64)),
            everywhere("Clock", "10 ms", [stated], lambda scenario: scenario),
        ],
        statement=EMPTY,
    )


def outcome_of(of: Study, rates: dict[str, float]) -> StudyOutcome:
    """The map's outcome, where a run gives so much at each place; it measures nothing at places left out."""
    samples = [
        (seed, Sample({"place": place, "of_study": "paper-fig1"}, "rate", "Mbit/s", rate))
        for place, rate in rates.items()
        for seed in (1, 2)
    ]
    return judge(of, [Cell({}, "{}")], [1, 2], samples)


def test_a_map_judges_every_claim_at_every_place_with_the_studys_own_rule() -> None:
    def fast(evidence: Evidence) -> Judgement:
        return Judgement(evidence.mean("rate", {}) > 1.0, "")

    made = a_map({"fast": fast, "always": YES, "open": OPEN})
    assert [cell["place"] for cell in made.cells] == [
        STATED,
        "Window: 20 packets",
        "Window: 64 packets",
        "Clock: 10 ms",
    ]
    rates = {STATED: 2.0, "Window: 20 packets": 0.5, "Window: 64 packets": 3.0}
    outcome = outcome_of(made, rates)
    states = {
        (row.factors["claim"], row.factors["place"]): row.mean
        for row in outcome.rows
        if row.metric == "state"
    }
    assert [states["fig1: fast", place] for place in rates] == [1.0, 0.0, 1.0]
    assert states["fig1: fast", "Clock: 10 ms"] is None, "nothing was measured there"
    fast_, always, open_ = hangs(made, outcome.rows)
    assert (fast_.where, fast_.holds, fast_.fails, fast_.on) == ("somewhere", 2, 1, ["Window"])
    assert (always.where, always.holds, always.on) == ("everywhere", 4, [])
    assert (open_.where, open_.open) == ("mostly open", 4)


def test_a_map_has_a_line_for_each_reading_of_a_claim() -> None:
    readings = [Reading("strictly", "…", NO), Reading("loosely", "…", YES)]
    source = Sentence("It is so.", "3")
    stated = study([Claim("two", "…", OPEN, source, readings=readings, chose="it")], "paper-fig1")
    same = everywhere("Clock", "10 ms", [stated], lambda scenario: scenario)
    made = map_of("paper", "A map", "none", stated=[stated], places=[same], statement=EMPTY)
    found = hangs(made, outcome_of(made, {STATED: 1.0, "Clock: 10 ms": 1.0}).rows)
    assert [(one.claim, one.where) for one in found] == [
        ("fig1: two* (strictly)", "nowhere"),
        ("fig1: two* (loosely)", "everywhere"),
    ]
    assert list(made.plots[0].series.names.values()) == ["fig1: two* (strictly)", "or (loosely)"]


def test_a_claim_that_is_judged_at_one_place_holds_nowhere_else() -> None:
    alone = Hang("fig1: one", 1, 0, 0, [])
    assert alone.where == "as stated only"
    assert replace(alone, holds=2).where == "everywhere"


def test_a_map_is_drawn_as_one_picture() -> None:
    made = a_map({"always": YES, "never": NO})
    outcome = outcome_of(made, {STATED: 1.0})
    (plot,) = made.plots
    drawn = drawing(plot, outcome.rows, made.id)
    assert drawn.picture.png.startswith(b"\x89PNG")
    (panel,) = drawn.panels
    for text in ("fig1: always", "64 packets", "Window"):
        assert text in panel
    assert "“×”: it does not hold" in caption(plot, outcome.rows)


def test_two_places_of_a_map_have_two_names() -> None:
    one = study([], "paper-fig1")
    with pytest.raises(ValueError, match="two places of one name: Window: 20"):
        map_of(
            "paper",
            "A map",
            "none",
            stated=[one],
            places=[Place("Window", "20", [one])] * 2,
            statement=EMPTY,
        )


def test_evidence_within_a_part_has_only_its_numbers() -> None:
    samples = [
        (seed, Sample({"place": place, "load": 1}, "rate", "Mbit/s", value))
        for seed in (1, 2)
        for place, value in (("a", 1.0), ("b", 2.0))
    ]
    part = Evidence(samples, []).within({"place": "b"}, [Published({"load": 1}, "rate", 3.0)])
    assert part.mean("rate", {"load": 1}) == 2.0
    assert part.published("rate", {"load": 1}) == 3.0
    with pytest.raises(UnmeasuredError):
        part.mean("rate", {"place": "b", "load": 1})
