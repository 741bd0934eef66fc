"""A profile whose meter drops packets out of profile, as results show it."""

from __future__ import annotations

import re
from typing import Any

import pytest

import perhop
from perhop.runs import metrics
from perhop.runs.summary import summarize

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
    policed, marked = perhop.run(SCENARIO, runs=1).flows.iter_rows(named=True)
    assert (policed["sent_packets"], policed["delivered_packets"]) == (2000, 1001)
    assert (policed["policed_yellow"], policed["dropped_yellow"]) == (999, 0)
    assert policed["policing_ratio"] == pytest.approx(999 / 2000)
    assert (marked["delivered_packets"], marked["policed_yellow"]) == (2000, None)
    assert marked["policing_ratio"] is None


def test_a_color_that_the_meter_drops_whole_has_no_loss_at_queues() -> None:
    policed, marked = perhop.run(SCENARIO, runs=1).classes().iter_rows(named=True)
    assert (policed["dropped_green"], policed["dropped_yellow"]) == (0.0, None)
    assert marked["dropped_yellow"] == 0.0


def test_the_loss_of_a_class_excludes_policed_packets() -> None:
    """A flow of 30 Mbit/s, policed to 15 Mbit/s, at a link of 10 Mbit/s."""
    flow = SCENARIO["flows"][0]
    transport, profile = {**flow["transport"], "rate": "30Mbps"}, {**flow["profile"], "rate": "15Mbps"}
    result = perhop.run({**SCENARIO, "flows": [{**flow, "transport": transport, "profile": profile}]}, runs=1)
    policed = result.flows.row(0, named=True)
    assert policed["dropped_green"] > 0
    assert policed["marked_green"] + policed["policed_yellow"] == policed["sent_packets"]
    expected = policed["dropped_green"] / policed["marked_green"]
    assert result.classes()["dropped_green"][0] == pytest.approx(expected)
    assert metrics.measure(result.runs[0].raw)["flows.policed.loss"] == pytest.approx(expected)


@pytest.mark.parametrize("colors", [2, 3])
def test_a_narrow_table_keeps_the_share_of_policed_packets_and_defines_it(colors: int) -> None:
    """Of UDP flows, which have more columns than 80 characters hold."""
    policed, marked = SCENARIO["flows"]
    if colors == 3:
        rates = {"rate": "1Mbps", "marker": "three-precedence"}
        policed = {**policed, "profile": {**rates, "out": "drop-red"}}
        marked = {**marked, "profile": rates}
    text = summarize(perhop.run({**SCENARIO, "flows": [policed, marked]}, runs=3)).text(80)
    heads = text.split("─")[0]
    assert re.search(r"\bpoliced,", heads), text
    assert "columns left out" in text
    assert "Policed: packets that the meter dropped, of those sent." in " ".join(text.split())


def test_a_scenario_without_a_policer_does_not_mention_policing() -> None:
    text = summarize(perhop.run({**SCENARIO, "flows": SCENARIO["flows"][1:]}, runs=1)).text()
    assert "oliced" not in text


def test_drop_red_needs_a_meter_of_three_colors() -> None:
    flow = SCENARIO["flows"][0]
    wrong = {**SCENARIO, "flows": [{**flow, "profile": {**flow["profile"], "out": "drop-red"}}]}
    with pytest.raises(perhop.ScenarioError, match=r"profile\.out: unknown value `drop-red`"):
        perhop.run(wrong, runs=1)


def test_packets_that_the_meters_of_a_link_drop_are_in_its_table() -> None:
    """A token bucket at the link polices the packets of both flows."""
    bucket = {"rate": "2Mbps", "marker": "token-bucket", "burst": "2kB", "out": "drop"}
    link = {**SCENARIO["links"]["link"], "meters": [{"name": "edge", "profile": bucket}]}
    flows = [{name: of for name, of in flow.items() if name != "profile"} for flow in SCENARIO["flows"]]
    result = perhop.run({**SCENARIO, "links": {"link": link}, "flows": flows}, runs=1)
    row = next(row for row in result.links.iter_rows(named=True) if row["link"] == "link")
    dropped = sum(
        flow["sent_packets"] - flow["delivered_packets"] for flow in result.flows.iter_rows(named=True)
    )
    assert row["policed_packets"] == dropped
    assert row["policing_ratio"] == pytest.approx(dropped / 4000)
    unmetered = perhop.run(SCENARIO, runs=1).links.row(0, named=True)
    assert (unmetered["policed_packets"], unmetered["policing_ratio"]) == (None, None)
    _, of_links = summarize(result).text(80).split("\nlink ", maxsplit=1)
    assert re.search(r"\bpoliced,", of_links.split("─")[0])
