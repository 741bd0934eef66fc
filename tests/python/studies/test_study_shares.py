"""Evidence that is no mean over runs: shares, percentiles, times that the end of a run cuts off."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

from perhop.measures.durations import Durations
from perhop.show.declared import Row
from perhop.show.table import interval
from perhop.statistics.intervals import estimate
from perhop.statistics.judging import above, below
from perhop.statistics.observations import Distribution, pooled
from perhop.studies.evidence import Evidence, Sample
from perhop.studies.reproduction import Cell, judge, sample_frame, to_json
from perhop.studies.sampling import times, waits
from perhop.studies.study import Study

if TYPE_CHECKING:
    from collections.abc import Sequence

A, B = {"rule": "a"}, {"rule": "b"}


def evidence(*shares: tuple[float, float], unit: str = "fraction") -> Evidence:
    samples = [(seed, Sample({}, "loss", unit, *share)) for seed, share in enumerate(shares)]
    return Evidence(samples, [])


def test_no_loss_in_the_runs_of_a_cell_is_a_bound() -> None:
    found = evidence(*[(0.0, 1000.0)] * 6).estimate("loss", {})
    assert found.ci95 == pytest.approx((0.0, 1 - 0.025 ** (1 / 6000)))
    assert below(found, 0.0001).holds is None
    assert below(found, 0.001).holds is True


def test_a_share_is_of_all_packets_whatever_its_unit() -> None:
    assert evidence((0.1, 300.0), (0.4, 100.0)).mean("loss", {}) == pytest.approx(0.175)
    assert evidence((10.0, 300.0), (40.0, 100.0), unit="%").mean("loss", {}) == pytest.approx(17.5)


def test_all_of_ten_flows_in_each_run_is_no_certainty() -> None:
    found = evidence(*[(10.0, 1.0)] * 6, unit="of 10").estimate("loss", {})
    assert found.mean == 10
    assert found.ci95 == pytest.approx((10 * 0.025 ** (1 / 6), 10.0))


def of_rules(metric: str, unit: str, a: Sequence[float], b: Sequence[float], of: float | None) -> Evidence:
    pairs = [
        (seed, Sample(rule, metric, unit, value, of))
        for rule, values in ((A, a), (B, b))
        for seed, value in enumerate(values)
    ]
    return Evidence(pairs, [])


def test_two_cells_that_lose_nothing_may_differ() -> None:
    found = of_rules("loss", "%", [0.0] * 6, [0.0] * 6, 1000.0).difference("loss", A, B)
    most = 100 * (1 - 0.025 ** (1 / 6000))
    assert found.ci95 == pytest.approx((-most, most))


def test_a_difference_of_shares_is_that_of_the_shares_of_all_runs() -> None:
    samples = [
        (seed, Sample(rule, "loss", "%", value, of))
        for rule, runs in ((A, [(10.0, 300.0), (40.0, 100.0)]), (B, [(5.0, 100.0), (5.0, 300.0)]))
        for seed, (value, of) in enumerate(runs)
    ]
    assert Evidence(samples, []).difference("loss", A, B).mean == pytest.approx(17.5 - 5.0)


def test_a_difference_of_means_is_taken_run_by_run_and_in_times_the_second() -> None:
    found = of_rules("rate", "Mbit/s", [3.0, 5.0, 4.0], [1.0, 2.0, 2.0], None)
    assert found.difference("rate", A, B, factor=2.0).ci95 == estimate([1.0, 1.0, 0.0]).ci95


def test_a_share_is_compared_as_it_is() -> None:
    with pytest.raises(ValueError, match="loss is a share"):
        of_rules("loss", "%", [1.0] * 3, [1.0] * 3, 10.0).difference("loss", A, B, factor=2.0)


def test_an_interval_does_not_go_below_what_a_measure_can_be() -> None:
    found = Evidence(
        [(seed, Sample(A, "stalled", "s/h", value)) for seed, value in enumerate([0, 0, 0, 5])], []
    )
    assert found.estimate("stalled", A).low == 0
    with pytest.raises(ValueError, match="stalled is below 0"):
        Evidence([(1, Sample(A, "stalled", "s/h", -1.0))], []).estimate("stalled", A)


# ---------------------------------------------------------------- percentiles


def pages(factors: dict[str, str], ended: Sequence[float], open_: Sequence[float] = ()) -> list[Sample]:
    found = Durations(np.array(ended, dtype=float), np.array(open_, dtype=float))
    return list(times(factors, found, {"p90": 0.9, "mean": None}, "ms", 1e3))


def test_a_percentile_is_that_of_all_runs_not_the_mean_of_theirs() -> None:
    runs = [[1.0] * 20, [1.0] * 20, [1.0] * 8 + [9.0] * 12]
    found = Evidence([(n, one) for n, run in enumerate(runs) for one in pages(A, run)], [])
    whole = pooled([Distribution.from_times(np.array(run), np.empty(0)) for run in runs])
    assert found.mean("p90", A) == pytest.approx(1e3 * whole.quantile(0.9))
    assert found.mean("p90", A) > 1.5 * np.mean(list(found.by_seed("p90", A).values()))


def test_a_percentile_is_compared_with_a_multiple_of_another() -> None:
    samples = [
        (seed, one)
        for seed in range(4)
        for rule, scale in ((A, 3.0), (B, 1.0))
        for one in pages(rule, [scale * n for n in range(1, 101)])
    ]
    found = Evidence(samples, []).difference("p90", A, B, factor=3.0)
    assert found.mean == pytest.approx(0.0, abs=1e-6)


def test_waits_are_without_the_time_of_the_path() -> None:
    delays = {
        "edges": np.array([0.0, 0.010, 0.020]),
        "counts": np.array([0, 10]),
        "longest": np.array([0.0, 0.015]),
    }
    (found,) = waits(A, delays, {"p100": 1.0}, less_ms=5.0)
    assert found.value == pytest.approx(10.0)
    assert list(waits(A, None, {"p50": 0.5})) == []


# ---------------------------------------------------------------- what the end of a run cuts off


def test_unfinished_times_count_in_means_and_percentiles() -> None:
    (p90, mean) = pages(A, [1.0] * 8 + [30.0], [10.0])
    (_, of_ended) = pages(A, [1.0] * 8 + [30.0])
    assert mean.value > of_ended.value
    assert p90.value == pytest.approx(30_000)


def test_a_mean_whose_longest_times_are_open_has_no_upper_end() -> None:
    samples = [(seed, one) for seed in range(4) for one in pages(A, [1.0, 1.1 + seed / 10], [5.0])]
    found = Evidence(samples, []).estimate("mean", A)
    assert math.isinf(found.high)
    assert above(found, 0.5e3).holds is True
    assert below(found, 10e3).holds is None


def outcome_text(samples: Sequence[tuple[int, Sample]]) -> str:
    study = Study(
        id="made-up",
        title="",
        source="",
        summary="",
        cells=[A],
        scenario=lambda _cell: {},
        samples=lambda _cell, _run: [],
        published=(),
        claims=(),
        tables=(),
        plots=(),
    )
    outcome = judge(study, [Cell(A, "{}")], [seed for seed, _ in samples], samples)
    assert sample_frame([outcome])["value"].null_count() == sum(math.isnan(one.value) for _, one in samples)
    return to_json([outcome])


def test_what_the_runs_do_not_show_has_no_value_and_decides_nothing() -> None:
    samples = [(seed, one) for seed in range(4) for one in pages(A, [1.0, 1.5], [5.0, 6.0, 7.0])]
    found = Evidence(samples, []).estimate("p90", A)
    assert math.isnan(found.mean)
    assert above(found, 0.0).holds is None
    p90, mean = json.loads(outcome_text(samples))["studies"][0]["rows"]
    assert (p90["mean"], p90["ci95"]) == (None, None)
    assert mean["ci95"][1] is None


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (Row(A, "x", "", None, 1.5, (1.4, 1.6), 4), "±.10"),
        (Row(A, "x", "", None, 0.17, (0.06, 0.46), 4), "(.06–.46)"),
        (Row(A, "x", "", None, 0.1, (-0.06, 0.46), 4), "(-.06 to .46)"),
        (Row(A, "x", "", None, 0.0, (0.0, 0.001), 4), "±.00"),
        (Row(A, "x", "", None, 2.0, (1.5, math.inf), 4), "(over 1.50)"),
        (Row(A, "x", "", None, 1.5, (1.4, 1.6), 4, of=6), "±.10 4 of 6 runs"),
        (Row(A, "x", "", None, None, None, 0, of=6), ""),
    ],
)
def test_intervals_in_tables(row: Row, text: str) -> None:
    assert interval(row, 2) == text
