"""The picture of a network follows from its scenario."""

from __future__ import annotations

import json

import pytest

from perhop.output.topology import (
    MOST_HOSTS,
    MOST_LINES,
    _staggered,
    distinct,
    inline_topology,
    places,
    queue_text,
    topology,
)
from perhop.simulation import canonical
from perhop.studies import STUDIES

LINKS = {
    name: {"from": name[0], "to": name[1], "rate": "1Mbps", "delay": "1ms"}
    for name in ("ab", "bc", "db", "xy")
}


def scenario(groups: int = 1, variants: tuple[str, ...] = ("reno",)) -> dict[str, object]:
    flow = {"from": "a", "to": "c"}
    return {
        "duration": "1s",
        "links": LINKS,
        "flows": [
            {**flow, "name": f"group <{n}>", "count": 3, "transport": {"tcp": variants[n % len(variants)]}}
            for n in range(groups)
        ],
    }


def test_routers_stand_by_hops_from_where_flows_begin() -> None:
    found = places(json.loads(canonical(scenario())))
    assert found == {"a": (0, 0), "b": (1, 0), "c": (2, 0), "d": (2, 1), "x": (3, 0), "y": (4, 0)}


@pytest.mark.parametrize(
    ("queue", "text"),
    [
        (None, ""),
        ({"aqm": "rio"}, "rio"),
        ({"scheduler": "edf", "rule": {"aqm": "abe"}}, "edf: abe"),
        (
            {"scheduler": "wfq", "queues": [{"name": n, "rule": {"aqm": "red"}} for n in "ab"]},
            "wfq: a red, b red",
        ),
    ],
)
def test_a_queue_in_a_few_words(queue: dict[str, object] | None, text: str) -> None:
    assert queue_text(queue) == text


def drawn(found: dict[str, object]) -> str:
    return inline_topology(json.loads(canonical(found)), "test")


def test_what_begins_at_a_router_is_named_and_the_rest_counted() -> None:
    some = drawn(scenario(MOST_LINES))
    assert "3 × group &lt;7&gt; (tcp reno) → c" in some
    assert "more" not in some
    crowded = drawn(scenario(MOST_LINES + 5, ("reno", "newreno")))
    assert "and 6 more" in crowded


def test_many_groups_that_are_alike_share_a_line() -> None:
    assert "27 × group &lt;0&gt; … group &lt;8&gt; (tcp reno) → c" in drawn(scenario(MOST_LINES + 1))


def test_hosts_that_are_alike_are_drawn_once_at_either_end() -> None:
    near, far = ({"rate": "10Mbps", "delay": delay} for delay in ("1ms", "7ms"))
    flow = {"from": "a", "to": "c", "transport": {"tcp": "reno"}}
    flows = [
        {**flow, "name": "near", "count": 3, "access": near},
        {**flow, "name": "far", "count": 2, "access": near, "egress": far},
        {**flow, "name": "at the router"},
    ]
    found: dict[str, object] = {"duration": "1s", "links": LINKS, "flows": flows}
    picture = drawn(found)
    for text in ("5 hosts, 10Mbps, 1ms", "3 hosts, 10Mbps, 1ms", "2 hosts, 10Mbps, 7ms"):
        assert picture.count(text) == 1, text
    assert picture.count("hosts") == 3
    assert "host" not in drawn(scenario())
    several = [
        {**flow, "name": f"{n}", "access": {"rate": "10Mbps", "delay": f"{n}ms"}}
        for n in range(MOST_HOSTS + 1)
    ]
    assert drawn({**found, "flows": several}).count("4 hosts, 4 kinds of links") == 2


def test_lines_of_routers_in_a_row_do_not_meet() -> None:
    at = {"a": (0, 0), "b": (1, 0), "c": (2, 1), "d": (3, 0)}
    texts = {"a": ["1", "2"], "b": [], "c": ["3"], "d": ["4"]}
    assert _staggered(texts, at) == {"a": ["1", "2"], "b": [], "c": ["3"], "d": ["", "", "4"]}


def test_each_graph_of_routers_is_drawn_once() -> None:
    first, other = scenario(), {**scenario(2), "title": "other flows"}
    smaller = {**scenario(), "links": {"ab": LINKS["ab"], "bc": LINKS["bc"]}}
    assert distinct([first, other, smaller], "x") == [(first, "x"), (smaller, "x-2")]


@pytest.mark.parametrize("name", ["kim-table1", "yeom-fig11", "hurley-fig2", "bouras-fig5"])
def test_every_paper_has_its_picture(name: str) -> None:
    study = STUDIES[name]
    picture = topology(json.loads(canonical(study.scenario(study.cells[0]))), name)
    assert picture.name == f"{name}-network"
    assert picture.png.startswith(b"\x89PNG")
