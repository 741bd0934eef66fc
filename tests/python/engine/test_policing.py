"""A profile whose meter drops packets out of profile, as results show it."""

from __future__ import annotations

from typing import Any

import pytest

import perhop

SCENARIO: dict[str, Any] = {
    "duration": "10s",
    "links": {
        "link": {
            "from": "a",
            "to": "b",
            "rate": "10Mbps",
            "delay": "10ms",
            "queue": {"aqm": "drop-tail", "limit": "9p"},
        }
    },
    "flows": [
        {
            "name": name,
            "from": "a",
            "to": "b",
            "start": "0s",
            "stop": "8s",
            "transport": {"udp": "cbr", "rate": "2Mbps", "packet": "1000B", "jitter": 0},
            "profile": {"rate": "1Mbps", "marker": "token-bucket", "burst": "2kB", "out": out},
        }
        for name, out in (("policed", "drop"), ("marked", "mark"))
    ],
}


def test_policed_packets_are_in_the_results() -> None:
    """A packet each 4 ms; the bucket has tokens for the first three and every second one after that."""
    policed, marked = perhop.run(SCENARIO).flows.iter_rows(named=True)
    assert (policed["sent_packets"], policed["delivered_packets"]) == (2000, 1001)
    assert (policed["policed_yellow"], policed["dropped_yellow"]) == (999, 0)
    assert policed["policing_ratio"] == pytest.approx(999 / 2000)
    assert (marked["delivered_packets"], marked["policed_yellow"]) == (2000, 0)
    assert marked["policing_ratio"] is None


def test_drop_red_needs_a_meter_of_three_colors() -> None:
    flow = SCENARIO["flows"][0]
    wrong = {**SCENARIO, "flows": [{**flow, "profile": {**flow["profile"], "out": "drop-red"}}]}
    with pytest.raises(perhop.ScenarioError, match=r"profile\.out: unknown value `drop-red`"):
        perhop.run(wrong)
