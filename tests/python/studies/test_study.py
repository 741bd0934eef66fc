"""Evidence, rows, tables, and the published data of the studies."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from perhop import _engine
from perhop.show.declared import Axis, Factors, Row, Table, chosen
from perhop.show.numbers import rounded
from perhop.show.table import as_text, pivot, records
from perhop.statistics.judging import Judgement
from perhop.studies import PAPERS, QUESTIONS, STUDIES, reproduction
from perhop.studies.evidence import Evidence, Published, Sample
from perhop.studies.paper import statement
from perhop.studies.reproduction import Cell, judge, sample_frame, to_json
from perhop.studies.study import Claim, Study

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from perhop.studies.reproduction import Task

SCHEMES = Axis("scheme", "Scheme", {"rio": "RIO", "rio-plus-out": "RI+O"})
LOAD = Axis("load", "Load")


def sample(scheme: str, load: int, value: float) -> Sample:
    return Sample({"scheme": scheme, "load": load}, "throughput", "Mbit/s", value)


SAMPLES = [
    (seed, sample(scheme, load, base + load + seed / 10))
    for scheme, base in (("rio-plus-out", 2.0), ("rio", 1.0))
    for load in (10, 2)
    for seed in (1, 2, 3)
]
PUBLISHED = [Published({"load": 2, "scheme": "rio"}, "throughput", 3.5)]


def study(claims: list[Claim], tables: tuple[Table, ...] = ()) -> Study:
    return Study(
        id="made-up",
        title="Made up <b>by hand</b>",
        source="nobody & co",
        summary="for tests",
        cells=[{"scheme": "rio"}],
        scenario=lambda _cell: {},
        samples=lambda _cell, _run: [],
        published=PUBLISHED,
        claims=claims,
        tables=tables,
        plots=(),
        method="None.",
    )


def test_evidence() -> None:
    evidence = Evidence(SAMPLES, PUBLISHED)
    rio: Factors = {"scheme": "rio", "load": 2}
    ours: Factors = {"load": 2, "scheme": "rio-plus-out"}
    assert evidence.runs == 3
    assert evidence.mean("throughput", rio) == pytest.approx(3.2)
    assert evidence.published("throughput", rio) == 3.5
    assert evidence.published("throughput", ours) is None
    difference = evidence.difference("throughput", ours, rio)
    assert difference.mean == pytest.approx(1.0)
    assert difference.half_width == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(KeyError):
        evidence.mean("throughput", {"scheme": "rio"})


def test_rows_and_claims_become_json() -> None:
    def holds(evidence: Evidence) -> Judgement:
        return Judgement(evidence.runs == 3, "three runs")

    outcome = judge(study([Claim("three", "There are three.", holds)]), [Cell({}, "{}")], [1, 2, 3], SAMPLES)
    text = to_json([outcome])
    assert text == to_json([outcome])
    content = json.loads(text)
    entry = content["studies"][0]
    assert entry["id"] == "made-up"
    assert entry["claims"] == [
        {
            "id": "three",
            "text": "There are three.",
            "quote": None,
            "section": None,
            "rule": "",
            "ours": "",
            "counted": True,
            "holds": True,
            "runs_needed": None,
            "evidence": "three runs",
        }
    ]
    row = entry["rows"][-1]
    assert list(row) == ["scheme", "load", "metric", "unit", "published", "mean", "ci95", "runs"]
    assert (row["scheme"], row["load"], row["published"], row["runs"]) == ("rio", 2, 3.5, 3)
    assert row["ci95"] == pytest.approx([3.2 - 0.2484, 3.2 + 0.2484], abs=1e-4)


def test_a_single_run_has_null_for_its_interval() -> None:
    outcome = judge(study([]), [Cell({}, "{}")], [1], [(1, sample("rio", 2, 1.0))])
    row = json.loads(to_json([outcome]))["studies"][0]["rows"][0]
    assert row["ci95"] is None
    assert row["runs"] == 1


def test_json_refuses_nan() -> None:
    with pytest.raises(ValueError, match="no place in a result"):
        rounded(float("nan"))
    assert rounded(1 / 3) == 0.333333333
    assert rounded(-123456789.123) == -123456789.0


def test_sample_frame() -> None:
    outcome = judge(study([]), [Cell({}, "{}")], [1, 2, 3], SAMPLES)
    frame = sample_frame([outcome])
    assert frame.columns == ["study", "seed", "load", "scheme", "metric", "unit", "value"]
    assert frame.height == len(SAMPLES)
    assert frame["load"].to_list()[:4] == [10, 10, 10, 2]


def test_axis_orders_numbers_as_numbers_and_names_as_given() -> None:
    assert LOAD.order([10, 2, 100, 2]) == [2, 10, 100]
    assert SCHEMES.order(["rio-plus-out", "zzz", "rio"]) == ["rio", "rio-plus-out", "zzz"]
    assert [LOAD.text(value) for value in (2.0, 0.05, "x")] == ["2", "0.05", "x"]


def test_table_beside_published() -> None:
    rows = Evidence(SAMPLES, PUBLISHED).rows()
    grid = pivot(Table("Throughput, Mbit/s", {"throughput": ""}, SCHEMES, (LOAD,)), rows)
    assert grid is not None
    assert as_text(grid).splitlines() == [
        "Throughput, Mbit/s",
        "                     2      10",
        "──────────────────────────────",
        "RIO, published   3.500       –",
        "  measured       3.200  11.200",
        "  95 %           ±.248   ±.248",
        "RI+O, published      –       –",
        "  measured       4.200  12.200",
        "  95 %           ±.248   ±.248",
    ]


def test_table_without_published_values_and_with_two_heads() -> None:
    rows = [
        Row({"load": load, "scheme": scheme, "p": p}, "rate", "Mbit/s", None, 1.25, (1.0, 1.5), 6)
        for load in (1, 2)
        for scheme in ("rio", "rio-plus-out")
        for p in (40, 50)
    ]
    levels = Axis("p", "Subscription", {40: "40 %", 50: "50 %"})
    grid = pivot(Table("Rate", {"rate": ""}, LOAD, (levels, SCHEMES), digits=2), rows)
    assert grid is not None
    assert as_text(grid).splitlines() == [
        "Rate",
        "          40 %                50 %",
        "        RIO      RI+O       RIO      RI+O",
        "─────────────────────────────────────────",
        "1  1.25±.25  1.25±.25  1.25±.25  1.25±.25",
        "2  1.25±.25  1.25±.25  1.25±.25  1.25±.25",
    ]


def test_a_single_published_run_stands_beside_the_spread_of_ours() -> None:
    def single(value: float) -> Study:
        published = [Published({"load": 2, "scheme": "rio"}, "throughput", value)]
        return replace(study([]), published=published, single_run=True)

    def text(value: float, samples: list[tuple[int, Sample]]) -> list[str]:
        outcome = judge(single(value), [Cell({}, "{}")], [1, 2, 3], samples)
        grid = pivot(Table("Throughput, Mbit/s", {"throughput": ""}, SCHEMES, (LOAD,)), outcome.rows)
        assert grid is not None
        return as_text(grid).splitlines()

    ours = [entry for entry in SAMPLES if entry[1].factors == {"scheme": "rio", "load": 2}]
    assert text(3.15, ours)[3:] == [
        "RIO, published  3.150",
        "  measured      3.200",
        "  95 %          ±.248",
        "  lowest        3.100",
        "  highest       3.300",
    ]
    assert text(3.5, ours)[3] == "RIO, published  3.500↑"
    assert text(3.0, ours)[3] == "RIO, published  3.000↓"
    assert text(3.5, ours[:1])[3:] == ["RIO, published  3.500", "  measured      3.100"]
    row = json.loads(to_json([judge(single(3.5), [Cell({}, "{}")], [1, 2, 3], ours)]))["studies"][0]["rows"][
        0
    ]
    assert row["range"] == pytest.approx([3.1, 3.3])


def test_a_table_of_nothing_is_none() -> None:
    assert pivot(Table("Rate", {"rate": ""}, LOAD), []) is None


def test_records() -> None:
    assert records([{"a": "x", "bb": "1"}, {"a": "yy", "bb": "22"}]) == [
        "a   bb",
        "──────",
        "x    1",
        "yy  22",
    ]


def test_chosen_takes_one_value_or_several() -> None:
    rows = Evidence(SAMPLES, []).rows()
    assert len(chosen(rows, "throughput", {"scheme": "rio"})) == 2
    assert len(chosen(rows, "throughput", {"scheme": ("rio", "rio-plus-out"), "load": 2})) == 2
    assert chosen(rows, "delay", {}) == []


def test_statement_refuses_a_row_that_does_not_fit_its_head() -> None:
    row = {"metric": "x", "by": "p", "at": [1, 2], "values": [1.0]}
    with pytest.raises(ValueError, match="zip"):
        statement({"method": "", "values": [row]})


def test_study_ids_and_claims_are_unique_and_named_like_the_paper() -> None:
    groups = {group.id: group.studies for group in PAPERS} | {group.id: group.studies for group in QUESTIONS}
    for group, studies in groups.items():
        for study in studies:
            assert study.id.startswith(f"{group}-")
            claims = [claim.id for claim in study.claims]
            assert len(claims) == len(set(claims))
            assert len({json.dumps(dict(cell)) for cell in study.cells}) == len(study.cells)
    assert len(STUDIES) == sum(map(len, groups.values()))
    assert {"kim-table1", "yeom-table1", "hurley-fig2", "bouras-fig3"} <= STUDIES.keys()


@pytest.mark.parametrize("name", list(STUDIES))
def test_every_cell_is_a_valid_scenario(name: str) -> None:
    entry = STUDIES[name]
    scenarios = {
        _engine.scenario_from_json(json.dumps(entry.scenario(cell)), f"study {name}") for cell in entry.cells
    }
    if not entry.is_map:  # whose studies may share a setting
        assert len(scenarios) == len(entry.cells)


def test_studies_are_told_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the order is in which their runs finish, such as on several threads."""

    def backwards(
        work: Callable[[Task], list[Sample]],
        tasks: Sequence[Task],
        *,
        finished: Callable[[int, list[Sample]], None],
        **_options: object,
    ) -> None:
        for place in reversed(range(len(tasks))):
            finished(place, work(tasks[place]))

    monkeypatch.setattr(reproduction, "parallel_map", backwards)
    wanted = ["bouras-fig5", "bouras-fig4"]
    judged: list[str] = []
    planned = reproduction.plan([STUDIES[name] for name in wanted], runs=1, seed=1)
    outcomes = reproduction.execute(
        planned,
        jobs=1,
        store=None,
        counts=reproduction.Counts(),
        judged=lambda outcome: judged.append(outcome.study.id),
    )
    assert judged == [outcome.study.id for outcome in outcomes] == wanted
