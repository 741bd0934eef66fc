"""AQMs that control the queue do so with TCP: at the target, whatever the number of flows."""

from __future__ import annotations

from typing import Any

import pytest

import perhop


def loaded(queue: dict[str, Any], flows: int) -> dict[str, Any]:
    """The row of a link of 10 Mbit/s, with so many NewReno flows whose round-trip time is 40 ms."""
    ends = {"from": "a", "to": "z"}
    link = {**ends, "rate": "10Mbps", "delay": "20ms", "queue": queue}
    scenario = {
        "duration": "60s",
        "warmup": "20s",
        "links": {"link": link},
        "flows": [{**ends, "name": "flow", "count": flows, "transport": {"tcp": "newreno"}}],
    }
    return next(perhop.run(scenario, runs=1).links.iter_rows(named=True))


@pytest.mark.parametrize("flows", [5, 20])
@pytest.mark.parametrize(
    ("queue", "target_s"),
    [
        ({"aqm": "pie"}, 0.015),
        ({"aqm": "pie", "target": "30ms"}, 0.030),
        ({"aqm": "pie", "law": "basic"}, 0.015),
        ({"aqm": "pie", "law": "docsis", "limit": "300p"}, 0.010),
        ({"aqm": "pi2"}, 0.015),
        ({"aqm": "pi2", "target": "30ms"}, 0.030),
        ({"aqm": "pi2", "spread": False}, 0.015),
        ({"aqm": "cobalt"}, 0.005),
        ({"aqm": "red", "target-delay": "15ms", "adaptive": True, "gentle": True, "limit": "300p"}, 0.015),
    ],
)
def test_the_median_delay_is_near_the_target(queue: dict[str, Any], target_s: float, flows: int) -> None:
    """Within 35 %, and the 3.1 % by which the longest delay of a histogram's bin may exceed the median."""
    row = loaded(queue, flows)
    assert 0.65 * target_s < row["delay_p50_s"] < 1.35 * 1.031 * target_s
    assert row["utilization"] > 0.97


def test_adaptive_red_keeps_the_queue_in_the_middle_of_its_thresholds() -> None:
    """From 44 to 56 packets, whatever the load; RED's own queue grows with it."""
    red = {"aqm": "red", "thresholds": "20/80/0.1", "gentle": True, "limit": "300p"}
    adaptive = [loaded({**red, "adaptive": True}, flows)["mean_queue_packets"] for flows in (5, 40)]
    plain = [loaded(red, flows)["mean_queue_packets"] for flows in (5, 40)]
    assert all(44 < queue < 56 for queue in adaptive), adaptive
    assert plain[0] < 44, plain
    assert plain[1] > 56, plain


@pytest.mark.parametrize("flows", [5, 20])
def test_blue_neither_fills_its_queue_nor_empties_it(flows: int) -> None:
    row = loaded({"aqm": "blue", "limit": "100p"}, flows)
    assert row["utilization"] > 0.97
    assert 10 < row["mean_queue_packets"] < 70
