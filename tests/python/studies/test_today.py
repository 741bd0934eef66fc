"""Today's mechanisms beside the papers': predictions, their judges, short runs of all cells, the page."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tools.papers.paper import paper_pages

from perhop.show.declared import Axis, Bound, Plot, Row, Table
from perhop.show.plot import caption, drawing
from perhop.show.table import as_text, pivot
from perhop.statistics.judging import Check, above, at_least, at_most, below
from perhop.studies import PAPERS, STUDIES, TODAY, in_order
from perhop.studies.evidence import Evidence, Sample
from perhop.studies.judges import failing, together
from perhop.studies.page import StudyPart
from perhop.studies.reproduction import Counts, StudyOutcome, by_paper, execute, plan
from perhop.studies.today import common, low_delay, mixes
from perhop.studies.today.common import BBR3, CUBIC, KEPT, NEWRENO, PRAGUE, SENDERS, Cells, Class

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from perhop.show.declared import Factors
    from perhop.studies.study import Study

BOUND = Bound("keeps it", "misses it", 0.95)
RULE, CONTROL = Axis("rule", "Queue", {"a": "A", "b": "B"}), Axis("control", "Senders", {NEWRENO: "NewReno"})


def evidence(values: Mapping[tuple[str, str], Iterable[float]], metric: str = "x") -> Evidence:
    """Values of runs 1, 2, … for cells named by rule and sender."""
    return Evidence(
        [
            (seed, Sample({"rule": rule, "control": control}, metric, "", value))
            for (rule, control), runs in values.items()
            for seed, value in enumerate(runs, start=1)
        ],
        (),
    )


def row(rule: str, mean: float | None, ci95: tuple[float, float] | None = None) -> Row:
    return Row({"rule": rule, "control": NEWRENO}, "x", "", None, mean, ci95, 2)


# ---------------------------------------------------------------- Bounds


@pytest.mark.parametrize(
    ("found", "state"),
    [
        (row("a", 1.0, (0.95, 1.05)), True),
        (row("a", 1.0, (0.94, 1.06)), None),
        (row("a", 0.9, (0.85, 0.95)), None),
        (row("a", 0.9, (0.86, 0.94)), False),
        (row("a", 0.95), True),
        (row("a", None), None),
    ],
)
def test_a_number_is_held_against_a_bound_by_its_interval(found: Row, state: bool | None) -> None:
    assert BOUND.state(found) is state


ROWS = [row("a", 1.0, (0.96, 1.04)), row("b", 0.5, (0.4, 0.6))]


def test_a_table_with_a_bound_says_by_signs_on_which_side_numbers_are() -> None:
    grid = pivot(Table("X", {"x": ""}, RULE, (CONTROL,), digits=2, bound=BOUND), ROWS)
    assert grid is not None
    lines = as_text(grid, 80).splitlines()
    assert lines[0] == "X (✓ keeps it, ✗ misses it, ? cannot tell)"
    assert lines[-2:] == ["A  ✓1.00±.04", "B  ✗0.50±.10"]
    plain = pivot(Table("X", {"x": ""}, RULE, (CONTROL,), digits=2), ROWS)
    assert plain is not None
    assert as_text(plain, 80).splitlines()[-1] == "B  0.50±.10"


def test_a_matrix_shows_each_number_in_the_color_of_its_side() -> None:
    plot = Plot("m", "M", "matrix", "x", CONTROL, RULE, "", bound=BOUND)
    rows = [*ROWS, replace(row("a", 0.95, (0.9, 1.0)), factors={"rule": "a", "control": CUBIC})]
    svg = drawing(plot, rows, "made-up").picture.svg
    for text in ("1.00<", "0.50<", "0.95?<", ">A<", ">B<", ">NewReno<"):
        assert text in svg, text
    assert drawing(plot, rows, "made-up").picture.svg == svg
    assert caption(plot, rows).startswith("Dark: keeps it (the whole 95 % interval is at least 0.95).")


# ---------------------------------------------------------------- Judges

CELLS = Cells({"a": "A", "b": "B"}, {})


def test_a_bound_is_judged_in_each_cell() -> None:
    found = evidence({("a", CUBIC): [1.0, 1.02, 0.98], ("a", NEWRENO): [0.5, 0.52, 0.48]})
    assert CELLS.bounded("x", ("a",), (CUBIC,), at_least, KEPT)(found).holds is True
    verdict = CELLS.bounded("x", ("a",), (CUBIC, NEWRENO), at_least, KEPT)(found)
    assert verdict.holds is False
    assert "against it: A with NewReno; open: none" in verdict.evidence
    assert CELLS.bounded("x", ("a",), (CUBIC,), at_most, 1.0)(found).holds is None


def test_pairs_are_compared_run_by_run() -> None:
    found = evidence({("a", CUBIC): [1.0, 2.0, 3.0], ("b", CUBIC): [0.9, 1.9, 2.9]})
    pair = [(("a", CUBIC), ("b", CUBIC))]
    assert CELLS.compared("x", pair, above)(found).holds is True
    assert CELLS.compared("x", pair, below)(found).holds is False
    # Twice the second is more than the first in each run.
    assert CELLS.compared("x", pair, below, factor=2.0)(found).holds is None
    steady = evidence({("a", CUBIC): [1.0, 1.1, 0.9], ("b", CUBIC): [0.9, 1.0, 0.8]})
    assert CELLS.compared("x", pair, below, factor=2.0)(steady).holds is True


def mixed(held: Mapping[tuple[str, str], float]) -> Evidence:
    """A map of one rule: these rates over the profile, 0.5 elsewhere."""
    return Evidence(
        [
            (seed, Sample(mixes.mix("rio", *one), "over_profile", "", held.get(one, 0.5) + seed / 1e4))
            for one in mixes.MIXES
            for seed in (1, 2, 3)
        ],
        (),
    )


def test_mixes_are_counted() -> None:
    found = mixed({(CUBIC, NEWRENO): 1.0, (CUBIC, CUBIC): 1.2})
    checks = mixes.held(found, "rio")
    assert sum(check.holds is True for check in checks) == 2
    assert mixes.most(("rio",), 2)(found).holds is True
    assert mixes.most(("rio",), 1)(found).holds is False
    assert mixes.holds(("rio",), [(CUBIC, CUBIC)])(found).holds is True
    assert mixes.holds(("rio",), [(CUBIC, CUBIC), (BBR3, BBR3)])(found).holds is False
    assert mixes.holds(("rio",), [(BBR3, BBR3)], kept=False)(found).holds is True
    assert mixes.lowers("rio", CUBIC, NEWRENO, CUBIC)(found).holds is True
    assert mixes.lowers("rio", CUBIC, CUBIC, NEWRENO)(found).holds is False


def test_several_statements_make_a_claim() -> None:
    found = evidence({("a", CUBIC): [1.0, 1.02, 0.98]})
    true, false = (CELLS.bounded("x", ("a",), (CUBIC,), at_least, bound) for bound in (0.5, 2.0))
    assert together(true, true)(found).holds is True
    assert together(true, false)(found).holds is False


# ---------------------------------------------------------------- Senders and queues


def test_only_prague_is_ecn_capable() -> None:
    for control in SENDERS:
        assert ("ecn" in common.sender(control, 1000)) == (control == PRAGUE)
    for ecn in (False, True):
        assert ("ecn" in common.today("codel", "200p", ecn=ecn)) == ecn
        assert common.today("fq-codel", "200p", ecn=ecn)["ecn"] is ecn


def test_a_queue_per_contract_has_the_sum_of_its_flows_rates() -> None:
    classes = [Class("large", 4, 2.0), Class("small", 2, 0.1), Class("rest", 5, 0.0)]
    rates = common.contracts(classes)
    assert rates == {"AF11": 8.0, "AF21": 0.2}
    assert common.codepoint(classes, "small") == {"dscp": "AF21"}
    assert common.codepoint(classes, "rest") == {}
    queues = common.queue_per_contract(rates, 1000, "200p", ecn=True)["queues"]
    assert [queue.get("rate") for queue in queues] == ["8Mbps", "0.2Mbps", None]
    # 1.5 packets of 1000 bytes take 60 ms at 0.2 Mbit/s.
    assert [queue["rule"].get("target") for queue in queues] == ["5ms", "60ms", None]


def test_a_packet_that_waits_nowhere_takes_as_long_as_its_links() -> None:
    # 2 ms of propagation; 8000 bits twice at 100 and once at 20 Mbit/s are 0.56 ms, 2000 bits a quarter.
    assert low_delay.base_ms("adaptive") == pytest.approx(2.56)
    assert low_delay.base_ms("sparse") == pytest.approx(2.14)


# ---------------------------------------------------------------- Studies


@pytest.mark.parametrize("study", TODAY.studies, ids=lambda study: study.id)
def test_every_claim_is_a_prediction_with_its_reason_and_rule(study: Study) -> None:
    assert study.extra
    assert study.claims
    for claim in study.claims:
        assert claim.why, claim.id
        assert claim.rule, claim.id
        assert claim.source is None
        assert not claim.finding


def shortened(study: Study) -> Study:
    """The study with 3 s of each cell, of which the last 2 count; TFRC takes longer at 200 ms."""
    times = {"duration": "10s", "warmup": "4s"} if study.id == "today-hurley" else SHORT_TIMES

    def build(factors: Factors) -> Mapping[str, Any]:
        return {**study.scenario(factors), **times}

    return replace(study, scenario=build)


SHORT_TIMES = {"duration": "3s", "warmup": "1s"}
SHORT: dict[str, StudyOutcome] = {}


def short(study: Study) -> StudyOutcome:
    """Two short runs of every cell."""
    if study.id not in SHORT:
        (SHORT[study.id],) = execute(
            plan([shortened(study)], runs=2, seed=1), jobs=2, store=None, counts=Counts()
        )
    return SHORT[study.id]


@pytest.mark.parametrize("study", TODAY.studies, ids=lambda study: study.id)
def test_every_cell_is_measured_and_every_prediction_judged(study: Study) -> None:
    outcome = short(study)
    assert all(math.isfinite(sample.value) for _, sample in outcome.samples)
    by_cell = {
        tuple(cell.items()): {
            sample.metric
            for _, sample in outcome.samples
            if all(sample.factors.get(name) == value for name, value in cell.items())
        }
        for cell in study.cells
    }
    least = {"utilization", "throughput" if study.id != "today-map" else "over_profile"}
    assert all(least <= metrics for metrics in by_cell.values())
    assert [verdict.claim.id for verdict in outcome.claims] == [claim.id for claim in study.claims]
    assert not outcome.findings
    for used in (sample.value for _, sample in outcome.samples if sample.metric == "utilization"):
        assert 0.05 < used < 1.01
    for plot in study.plots:
        assert drawing(plot, outcome.rows, study.id).picture.png.startswith(b"\x89PNG")
    for table in study.tables:
        grid = pivot(table, outcome.rows)
        assert grid is not None, table.title
        assert all(len(line) <= 80 for line in as_text(grid, 80).splitlines()), table.title


def test_the_report_says_why_a_prediction_was_expected() -> None:
    outcome = short(STUDIES["today-abe"])
    html = str(StudyPart.of(outcome).html)
    assert "<h4>Predictions</h4>" in html
    assert "Expected because:" in html
    assert "the paper is silent" not in html


def test_the_group_has_its_name_and_no_paper() -> None:
    (group,) = by_paper([short(STUDIES["today-abe"])])
    assert (group.paper, group.title, group.not_run) == (None, "Today's mechanisms", 0)
    assert sum(group.count(state) for state in (True, False, None)) == len(STUDIES["today-abe"].claims)
    assert paper_pages([short(STUDIES["today-abe"])], "x").texts.keys() == {"README.md"}


def test_today_runs_by_its_name_and_not_by_default() -> None:
    from perhop.studies import selection  # noqa: PLC0415 - what the command chose

    ours = {study.id for study in TODAY.studies}
    assert {study.id for study in selection.chosen(["today"], everything=False)} == ours
    assert not ours & {study.id for study in selection.chosen((), everything=False)}
    assert ours <= {study.id for study in selection.chosen((), everything=True)}
    assert [study.id for study in in_order(STUDIES.values())][: len(PAPERS)] == [
        paper.studies[0].id for paper in PAPERS
    ]
    assert "`today` is a group; its studies are today-map, " in selection._hint("Today")


def test_checks_of_judges_are_those_of_intervals() -> None:
    assert failing({"a": Check(holds=False), "b": Check(None), "c": Check(holds=True)}, "against it") == (
        "against it: a; open: b"
    )
