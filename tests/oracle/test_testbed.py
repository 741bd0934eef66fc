"""The published rows of a Linux testbed as scenarios, and perhop beside the groups that need no long runs."""

from __future__ import annotations

import json
import statistics

import pytest
from tests.oracle import testbed
from tests.oracle.agreement import simulate
from tools import validity

ROWS = testbed.rows()


def test_every_row_is_a_scenario_and_in_a_group() -> None:
    assert len(ROWS) == 129
    assert {row.scenario for row in ROWS} == {1, 6}
    for row in ROWS:
        assert testbed.scenario(row)["links"]
    data = json.loads(validity.DATA.read_text(encoding="utf-8"))
    assert {row["setting"] for row in data["testbed"]["rows"]} == {row.setting for row in ROWS}


def test_the_weight_of_red_is_that_of_tc() -> None:
    """By hand, limit 400000 B: min 33333, burst 55, so 56 - 33.3 = 22.7 <= (1 - (31/32)^55) x 32 = 26.4."""
    assert testbed.red_weight(33_333, 100_000) == 1 / 32
    # Limit 150000 B: min 12500, burst 20, 8.5 <= (1 - (15/16)^20) x 16 = 11.6, and 7.4 with an eighth.
    assert testbed.red_weight(12_500, 37_500) == 1 / 16


def test_the_factor_does_not_depend_on_which_flow_comes_first() -> None:
    ends = (testbed.End("prague", 10, 30.0), testbed.End("cubic", 20, 10.0))
    for order, rates in ((ends, (36.0, 6.0)), (ends[::-1], (6.0, 36.0))):
        row = testbed.Row(1, 50, "dualpi2", order)
        assert row.pair == ("prague", "cubic")
        assert row.factor(rates) == pytest.approx(2.0)


def test_round_trips_are_those_published() -> None:
    """In FQ-CoDel's queues a mean round trip is little above the published one, and never below."""
    unequal = (row for row in ROWS if {end.rtt_ms for end in row.ends} == {20, 80})
    row = next(row for row in unequal if row.queue == "fq_codel")
    short = {**testbed.scenario(row), "duration": "40s", "warmup": "20s"}
    measured = simulate(short, [1])[0]["flows"]["mean_rtt_s"]
    for rtt_s, end in zip(measured, row.ends, strict=False):  # The third flow is the ping, which has none.
        assert end.rtt_ms <= 1000 * rtt_s < end.rtt_ms + 10


@pytest.mark.parametrize(
    ("queue", "control"),
    [
        ("dualpi2", "cubic"),
        ("red(400000b)", "cubic-ecn"),
        ("fq_codel", "cubic"),
        ("fq_codel(1q)", "cubic-ecn"),
    ],
)
def test_prague_and_another_share_a_queue_as_in_the_testbed(queue: str, control: str) -> None:
    """The median over the rows at 50 Mbit/s; with `reduction = "exact"` CUBIC's in CoDel's queue is 0.61."""
    group = [row for row in ROWS if (row.rate_mbps, row.queue, row.pair) == (50, queue, ("prague", control))]
    factors = [[row.factor(rates) for rates in testbed.measured(row, range(1, 4))] for row in group]
    assert statistics.median(statistics.median(of_row) for of_row in factors) == pytest.approx(1.0, abs=0.25)
