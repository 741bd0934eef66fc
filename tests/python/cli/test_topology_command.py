"""`perhop topology`: what it prints, what it writes, what it refuses; and networks written short."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

from perhop import _engine, run
from perhop.scenario import reading

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.python.conftest import Finished

    Perhop = Callable[..., Finished]

ROOT = Path(__file__).parents[3]
LARGE = ROOT / "examples" / "large.toml"
GRAPH = """\
<graphml>
  <key id="a" for="node" attr.name="label"/>
  <key id="x" for="node" attr.name="Longitude"/>
  <key id="y" for="node" attr.name="Latitude"/>
  <graph edgedefault="undirected">
    <node id="0"><data key="a">West</data><data key="x">0</data><data key="y">0</data></node>
    <node id="1"><data key="a">East</data><data key="x">1</data><data key="y">0</data></node>
    <node id="2"><data key="a">North</data></node>
    <edge source="0" target="1"/>
    <edge source="1" target="2"/>
  </graph>
</graphml>
"""


def test_a_fat_tree_is_described_by_tier(perhop: Perhop) -> None:
    done = perhop("topology", "fat-tree", "k=4")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0] == "fat tree of switches with 4 ports: 36 routers, 48 links"
    assert [line.split() for line in lines[3:7]] == [
        ["core", "4", "0", "4"],
        ["aggregation", "8", "16", "4"],
        ["edge", "8", "16", "4"],
        ["host", "16", "16", "1"],
    ]
    assert lines[7:] == [
        "distances: at most 6 hops, 3.70 on average",
        "links of a router × routers: 1 × 16, 4 × 20",
    ]
    shape = json.loads(perhop("topology", "fat-tree", "k=4", "--json").out)
    assert (shape["routers"], shape["links"], shape["diameter"]) == (36, 48, 6)


def test_directed_circuits_are_paired_and_what_is_merged_is_said(perhop: Perhop, tmp_path: Path) -> None:
    ends = [("a", "b")] * 3 + [("b", "a")] * 2 + [("a", "a")]
    edges = "".join(f'<edge source="{one}" target="{other}"/>' for one, other in ends)
    nodes = "".join(f'<node id="{name}"/>' for name in "abc")
    (tmp_path / "g.graphml").write_text(
        f'<graphml><graph edgedefault="directed">{nodes}{edges}</graph></graphml>', encoding="utf-8"
    )
    done = perhop("topology", "g.graphml")
    assert done.out.splitlines()[0] == "graph g.graphml: 2 routers, 3 links"
    assert done.err.rstrip().endswith(
        "g.graphml: 2 directed edges made the other direction of a link between the same two nodes; 1 "
        "directed edge without one in the other direction, whose link carries both directions; 1 edge from a "
        "node to itself, left out; 1 node without an edge to another, left out"
    )


def test_what_is_written_is_a_scenario_that_runs(perhop: Perhop, tmp_path: Path) -> None:
    (tmp_path / "made.graphml").write_text(GRAPH, encoding="utf-8")
    words = ("topology", "made.graphml", "distances=true", "rate=5Mbps", "-o")
    assert perhop(*words, "short.toml").code == 0
    assert perhop(*words, "long.toml", "--links").code == 0
    # Nothing of it needs the graph any more.
    (tmp_path / "made.graphml").unlink()
    short = tomllib.loads((tmp_path / "short.toml").read_text(encoding="utf-8"))
    assert short["topology"]["graph"] == {
        "name": "made.graphml",
        "links": [["West", "East", "556us"], ["East", "North"]],
    }
    long = tomllib.loads((tmp_path / "long.toml").read_text(encoding="utf-8"))
    assert {name: (link["delay"], link["rate"]) for name, link in long["links"].items()} == {
        "West--East": ("556us", "5Mbps"),
        "East--North": ("1ms", "5Mbps"),
    }
    results = [run(tmp_path / name, runs=1).flows for name in ("short.toml", "long.toml")]
    assert results[0].equals(results[1])
    assert (results[0]["throughput_bps"] > 0).all()


@pytest.mark.parametrize("name", ["made.GRAPHML", "made.Xml"])
def test_endings_may_be_in_upper_case(perhop: Perhop, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(GRAPH, encoding="utf-8")
    done = perhop("topology", name)
    assert done.code == 0, done.err
    assert done.out.startswith(f"graph {name}: 3 routers, 2 links\n")


def test_a_graph_of_several_parts_is_described_and_written(perhop: Perhop, tmp_path: Path) -> None:
    edges = [("B", "C"), ("D", "E"), ("E", "F"), ("F", "G"), ("F", "H"), ("D", "H")]
    (tmp_path / "parts.graphml").write_text(
        "<graphml><graph>"
        + "".join(f'<node id="{name}"/>' for name in "ABCDEFGH")
        + "".join(f'<edge source="{one}" target="{other}"/>' for one, other in edges)
        + "</graph></graphml>",
        encoding="utf-8",
    )
    done = perhop("topology", "parts.graphml", "-o", "parts.toml")
    assert done.code == 0, done.err
    assert done.out.startswith("graph parts.graphml: 7 routers, 6 links\n")
    assert "\n2 parts that no link connects\n" in done.out
    assert "are among the routers of the largest part" in done.out
    written = tomllib.loads((tmp_path / "parts.toml").read_text(encoding="utf-8"))
    assert written["flows"][0]["between"]["among"] == ["D", "E", "F", "G", "H"]
    assert perhop("topology", "parts.toml").out == done.out[: done.out.index("written:")]


def test_a_pair_of_numbers_stays_on_a_line(perhop: Perhop) -> None:
    done = perhop("topology", "isp", "core=60", "aggregation=9", "edge=3")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith("links of a router × "))
    assert begin < len(lines) - 1
    assert all(re.search(r"\d+ × \d+(,| and \d+ more)?$", line) for line in lines[begin:]), done.out


def test_small_networks_are_drawn(perhop: Perhop, tmp_path: Path) -> None:
    done = perhop("topology", "isp", "core=4", "aggregation=1", "edge=1", "--plot", "isp.svg")
    assert done.code == 0, done.err
    assert "core1-agg1-edge1" in (tmp_path / "isp.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("fat-tree", "k=5"), "topology.fat-tree.k: a switch has an even number of ports, at least 2, not 5"),
        (("fat-tree", "ports=4"), "unknown key `ports`"),
        (("fat-tree", "k"), "`k` is no KEY=VALUE, such as k=8"),
        (("chain",), "chain has the parameter routers, such as routers=12: give its size"),
        (("chain", "length=3"), "`length` is none"),
        (("chain", "routers=many"), "topology.chain: expected a whole number"),
        (("chain", "routers=3", "rate=fast"), "topology.link.rate: "),
        (("tree",), "`tree` is no topology and no file"),
        (("chain=5",), "`chain=5`: write the size as a parameter, `chain routers=5`"),
        (("none.graphml",), "no such file"),
        (("none.toml",), "none.toml"),
        (("zoo.gml",), "zoo.gml: a graph is in GraphML, .graphml or .xml, and a scenario in .toml; convert"),
        (("net.DOT", "rate=1Mbps"), "convert what is in .DOT to GraphML"),
        (("chain", "routers=3", "--links"), "--links says how --output writes links"),
        (("chain", "routers=61", "--plot", "x.svg"), "--plot: 61 routers; networks of at most 60 are drawn"),
        (("chain", "routers=3", "--plot", "x.png"), "--plot x.png: the picture is an SVG"),
        (("fat-tree", "k=4", "k=6"), "`k=` is given twice; leave one out"),
        (("chain", "routers=3", "-o", "no/such.toml"), "--output no/such.toml"),
        (("chain", "routers=3", "-o", "-", "--json"), "--json and --output - both print on standard output"),
        (("chain", "routers=3", "-o", "d.svg", "--plot", "./d.svg"), "--output and --plot both name d.svg"),
    ],
)
def test_bad_input_is_one_line(perhop: Perhop, tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    done = perhop("topology", *words)
    assert (done.code, done.out) == (2, "")
    assert done.err.count("\n") == 1, done.err
    assert said in done.err
    assert not list(tmp_path.iterdir())


def test_the_large_example_is_short_and_can_be_set_up() -> None:
    text = LARGE.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 60
    canonical = reading.canonical(LARGE)
    assert len(canonical) < 4000
    shape = json.loads(_engine.shape(canonical))
    assert (shape["routers"], shape["links"], shape["parts"]) == (5000, 5475, 1)
    scenario = {**json.loads(canonical), "duration": "1us", "warmup": "0s"}
    assert _engine.engine_for(json.dumps(scenario)) == ("batched", None)
    raw = _engine.simulate(json.dumps(scenario), 1)
    assert len(raw["flows"]["group"]) == 100_000
    # The core's, in both directions.
    assert len(raw["links"]) == 2 * 75


def test_a_capture_names_links_of_the_topology(perhop: Perhop, tmp_path: Path) -> None:
    (tmp_path / "ring.toml").write_text(
        'duration = "1s"\n[topology]\nring = 4\nlink = { rate = "5Mbps", delay = "1ms" }\n'
        '[[flows]]\nname = "udp"\nfrom = "r1"\nto = "r2"\ntransport = { udp = "cbr", rate = "1Mbps" }\n',
        encoding="utf-8",
    )
    words = ("run", "ring.toml", "--runs", "1", "--events", "e.parquet", "--capture-link")
    assert perhop(*words, "r1--r2").code == 0
    refused = perhop(*words, "r1-r2")
    assert refused.code == 2
    assert "there is no link `r1-r2`; the scenario has `r1--r2`, `r2--r3`" in refused.err


def test_events_name_links_of_the_topology_beside_others(perhop: Perhop, tmp_path: Path) -> None:
    (tmp_path / "chain.toml").write_text(
        'duration = "1s"\n[topology]\nchain = 3\n'
        'link = { rate = "5Mbps", delay = "1ms", queue = { aqm = "drop-tail", limit = "50p" } }\n'
        '[links.a1]\nfrom = "r1"\nto = "x"\nrate = "5Mbps"\ndelay = "1ms"\n'
        '[[flows]]\nname = "udp"\nfrom = "r2"\nto = "r1"\ntransport = { udp = "cbr", rate = "1Mbps" }\n',
        encoding="utf-8",
    )
    done = perhop("run", "chain.toml", "--runs", "1", "--events", "e.parquet")
    assert done.code == 0, done.err
    events = pl.read_parquet(tmp_path / "e.parquet")
    assert events["link"].unique().to_list() == ["r1--r2 (reverse)"]
    # Whichever of the two directions leads from r2 to r1: the same as in results.
    sent = run(tmp_path / "chain.toml", runs=1).links.filter(pl.col("sent_packets") > 0)
    assert sent["link"].to_list() == ["r1--r2 (reverse)"]
