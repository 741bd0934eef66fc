"""The picture of a network follows from its scenario."""

from __future__ import annotations

import json
import random
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from matplotlib.patches import FancyBboxPatch

from perhop.scenario.reading import canonical
from perhop.show.sheet import styled
from perhop.show.text import label
from perhop.show.topology import (
    MOST_HOSTS,
    MOST_LINES,
    MOST_ROUTERS,
    NAME_CHARACTERS,
    Layout,
    distinct,
    draw,
    draw_network,
    layout,
    places,
    queue_text,
    topology,
)
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
        ({"scheduler": "fq-codel", "flows": 1024}, "fq-codel"),
    ],
)
def test_a_queue_in_a_few_words(queue: dict[str, object] | None, text: str) -> None:
    assert queue_text(queue) == text


def drawn(found: dict[str, object]) -> str:
    return draw_network(json.loads(canonical(found)), "test")[0]


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
    for text in (
        "5 hosts, 10\u202fMbit/s, 1\u202fms",
        "3 hosts, 10\u202fMbit/s, 1\u202fms",
        "2 hosts, 10\u202fMbit/s, 7\u202fms",
    ):
        assert picture.count(text) == 1, text
    assert picture.count("hosts") == 3
    assert "host" not in drawn(scenario())
    several = [
        {**flow, "name": f"{n}", "access": {"rate": "10Mbps", "delay": f"{n}ms"}}
        for n in range(MOST_HOSTS + 1)
    ]
    assert drawn({**found, "flows": several}).count("4 hosts, 4 kinds of links") == 2


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


def overlaps(made: Layout) -> list[tuple[str, str]]:
    """Pairs of texts and routers that cover each other in the drawn figure, and texts beyond its edge."""
    figure = draw(made)
    (axes,) = figure.axes
    boxes = [(text.get_text(), text.get_window_extent().padded(-0.5)) for text in axes.texts]
    routers = [patch for patch in axes.patches if isinstance(patch, FancyBboxPatch)]
    drawn = {label(name, NAME_CHARACTERS) for name in made.routers}
    others = [(text, box) for text, box in boxes if text not in drawn]
    pairs = [(a, b) for (a, one), (b, other) in combinations(boxes, 2) if one.overlaps(other)]
    pairs += [
        (text, "a router")
        for text, box in others
        for patch in routers
        if box.overlaps(patch.get_window_extent().padded(-0.5))
    ]
    edge = figure.bbox
    beyond = [
        (text, "the edge")
        for text, box in boxes
        if box.x0 < edge.x0 or box.y0 < edge.y0 or box.x1 > edge.x1 or box.y1 > edge.y1
    ]
    return pairs + beyond


EXAMPLES = sorted(Path("examples").glob("*.toml"))
SCENARIOS = [path for path in EXAMPLES if not path.name.startswith(("sweep", "tune"))]


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_labels_of_an_example_do_not_overlap(path: Path) -> None:
    with styled():
        assert overlaps(layout(json.loads(canonical(path)))) == []


@pytest.mark.parametrize("name", ["kim-table1", "yeom-fig11", "hurley-fig2", "bouras-fig5"])
def test_labels_of_a_study_do_not_overlap(name: str) -> None:
    study = STUDIES[name]
    with styled():
        assert overlaps(layout(json.loads(canonical(study.scenario(study.cells[0]))))) == []


def random_network(seed: int) -> dict[str, Any]:
    """Some routers with links in any direction, names of any length, queues and hosts."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    routers = [
        f"R{n}" + chance.choice(["", " in a town with a long name", "�", " $x_2^3$"])
        for n in range(chance.randint(2, 9))
    ]
    queues = [
        None,
        {"aqm": "rio"},
        {"scheduler": "edf", "rule": {"aqm": "abe"}},
        {"scheduler": "wfq", "queues": [{"name": n, "rule": {"aqm": "red"}} for n in "abc"]},
    ]
    links: dict[str, dict[str, Any]] = {}
    for number in range(chance.randint(1, 3 * len(routers))):
        source, target = chance.sample(routers, 2)
        links[f"link {number}" + " with a name" * chance.randint(0, 2)] = {
            "from": source,
            "to": target,
            "rate": chance.choice(["10Mbps", "1.5Mbps", "622.08Mbps", "3333333bps"]),
            "delay": chance.choice(["0s", "5ms", "3.33333ms"]),
            "queue": chance.choice(queues),
        }
    known = sorted({str(link[end]) for link in links.values() for end in ("from", "to")})
    access = [{"rate": "100Mbps", "delay": f"{n}ms"} for n in range(5)]
    flows = []
    for number in range(chance.randint(1, 14)):
        begin, end = chance.sample(known, 2)
        flows.append(
            {
                "name": f"group {number}" + " that has a long name" * chance.randint(0, 4),
                "count": chance.randint(1, 2000),
                "from": begin,
                "to": end,
                "access": chance.choice([None, *access]),
                "transport": chance.choice([{"tcp": "reno"}, {"udp": "on-off"}]),
            }
        )
    return {"links": links, "flows": flows}


@pytest.mark.parametrize("first", range(0, 40, 20))
def test_labels_of_random_networks_do_not_overlap(first: int) -> None:
    with styled():
        for seed in range(first, first + 20):
            assert overlaps(layout(random_network(seed))) == [], seed


def test_every_link_is_named_on_the_drawing_or_below_it() -> None:
    for seed in range(20):
        network = random_network(seed)
        made = layout(network)
        said = [line.text for _, lines in made.labels for line in lines] + [line.text for line in made.below]
        for name in network["links"]:
            short = label(name, NAME_CHARACTERS)
            assert any(short in text for text in said), (seed, name)


def test_a_network_of_very_many_routers_is_told_in_words() -> None:
    count = MOST_ROUTERS + 1
    links = {
        f"l{n}": {"from": f"r{n}", "to": f"r{n + 1}", "rate": "1Mbps", "delay": "1ms"} for n in range(count)
    }
    flows = [{"name": "all", "count": 1, "from": "r0", "to": f"r{count}", "transport": {"tcp": "reno"}}]
    svg, _ = draw_network({"links": links, "flows": flows}, "many")
    assert "l0: r0 → r1" in svg
    assert "more" in svg
