"""The typed builder says what a scenario file says."""

import doctest
import json
import re
import tomllib
from pathlib import Path

import pytest

import perhop
from perhop import PerhopError, _engine, scenario
from perhop.scenario import builder, reading
from perhop.scenario.builder import Access, Flow, Link, Probes, RioPlusOut, Scenario, Tcp, TokenBucket

FILE = """
title = "Assured Service sold at 76 %"
duration = "100s"
probes = { interval = "1s" }

[links.bottleneck]
from = "edge"
to = "core"
rate = "20Mbps"
delay = "48ms"
queue.aqm = "rio-plus-out"
queue.limit = "868p"
queue.in = "390/694/0.02"
queue.total = "347/694/0.05"
queue.out = "10/30/0.01"

[[flows]]
name = "gold"
count = 4
from = "edge"
to = "core"
access = { rate = "10Mbps", delay = "1ms" }
transport = { tcp = "newreno", packet = "576B", initial-window = "2p" }
profile = { rate = "2Mbps", marker = "token-bucket", burst = "40kB" }
"""

BUILT = Scenario(
    title="Assured Service sold at 76 %",
    duration="100s",
    links={
        "bottleneck": Link(
            from_="edge",
            to="core",
            rate="20Mbps",
            delay="48ms",
            queue=RioPlusOut(limit="868p", in_="390/694/0.02", total="347/694/0.05", out="10/30/0.01"),
        )
    },
    flows=[
        Flow(
            name="gold",
            count=4,
            from_="edge",
            to="core",
            access=Access(rate="10Mbps", delay="1ms"),
            transport=Tcp(tcp="newreno", packet="576B", initial_window="2p"),
            profile=TokenBucket(rate="2Mbps", burst="40kB"),
        )
    ],
    probes=Probes(interval="1s"),
)


def test_builder_and_file_say_the_same() -> None:
    assert BUILT.to_dict() == tomllib.loads(FILE)
    from_file = _engine.scenario_from_toml(FILE, "file")
    assert _engine.scenario_from_json(BUILT.to_json(), "built") == from_file


QUEUES = """
duration = "5s"
paths.gold.via = ["a", "b", "c"]
paths.silver = { via = ["a", "b", "c"], back = ["c", "d", "a"] }
links.a-b = { from = "a", to = "b", rate = "20Mbps", delay = "5ms" }
links.c-d = { from = "c", to = "d", rate = "20Mbps", delay = "5ms" }
links.d-a = { from = "d", to = "a", rate = "20Mbps", delay = "5ms" }

[links.b-c]
from = "b"
to = "c"
rate = "10Mbps"
delay = "5ms"
queue.scheduler = "wfq"
queue.queues = [
  { name = "ef", match = { dscp = 46 }, rate = "1Mbps", rule = { aqm = "drop-tail", limit = "50p" } },
  { name = "gold", match = { path = "gold" }, weight = 2, rule = { aqm = "drop-tail", limit = "99p" } },
  { name = "rest", rule = { aqm = "red", thresholds = "5/50/0.1", limit = "99p" } },
]

[[flows]]
name = "gold"
path = "gold"
transport = { tcp = "newreno" }

[[flows]]
name = "silver"
path = "silver"
transport = { tcp = "newreno" }

[[flows]]
name = "voice"
from = "b"
to = "c"
dscp = 46
transport = { udp = "cbr", rate = "64kbps" }
"""


def test_paths_and_queues_can_be_built() -> None:
    def plain(a: str, b: str) -> perhop.scenario.Link:
        return perhop.scenario.Link(from_=a, to=b, rate="20Mbps", delay="5ms")

    queues = [
        perhop.scenario.SharingQueue(
            name="ef",
            match=perhop.scenario.Match(dscp=46),
            rate="1Mbps",
            rule=perhop.scenario.DropTail(limit="50p"),
        ),
        perhop.scenario.SharingQueue(
            name="gold",
            match=perhop.scenario.Match(path="gold"),
            weight=2,
            rule=perhop.scenario.DropTail(limit="99p"),
        ),
        perhop.scenario.SharingQueue(
            name="rest", rule=perhop.scenario.Red(thresholds="5/50/0.1", limit="99p")
        ),
    ]
    port = perhop.scenario.Link(
        from_="b", to="c", rate="10Mbps", delay="5ms", queue=perhop.scenario.Wfq(queues=queues)
    )
    tcp = Tcp(tcp="newreno")
    built = Scenario(
        duration="5s",
        paths={
            "gold": perhop.scenario.LabelSwitchedPath(via=["a", "b", "c"]),
            "silver": perhop.scenario.LabelSwitchedPath(via=["a", "b", "c"], back=["c", "d", "a"]),
        },
        links={"a-b": plain("a", "b"), "c-d": plain("c", "d"), "d-a": plain("d", "a"), "b-c": port},
        flows=[
            Flow(name="gold", path="gold", transport=tcp),
            Flow(name="silver", path="silver", transport=tcp),
            Flow(
                name="voice",
                from_="b",
                to="c",
                dscp=46,
                transport=perhop.scenario.Udp(udp="cbr", rate="64kbps"),
            ),
        ],
    )
    assert built.to_dict() == tomllib.loads(QUEUES)
    canonical = _engine.scenario_from_toml(QUEUES, "file")
    assert _engine.scenario_from_json(built.to_json(), "built") == canonical
    assert _engine.scenario_from_json(canonical, "again") == canonical


def test_canonical_form_is_its_own_canonical_form() -> None:
    canonical = _engine.scenario_from_json(BUILT.to_json(), "built")
    assert _engine.scenario_from_json(canonical, "again") == canonical
    assert json.loads(canonical)["links"]["bottleneck"]["queue"]["weight"] == 0.002


def test_a_built_scenario_runs() -> None:
    short = Scenario(duration="2s", links=BUILT.links, flows=BUILT.flows)
    result = perhop.run(short, runs=2, jobs=1)
    assert result.flows.height == 8


def test_a_problem_names_the_key() -> None:
    wrong = Link(from_="edge", to="core", rate="20mbps", delay="48ms")
    with pytest.raises(perhop.ScenarioError, match=r"links.bottleneck.rate: `20mbps` has the unit `mbps`"):
        perhop.run(Scenario(duration="2s", links={"bottleneck": wrong}, flows=BUILT.flows), runs=1)


def test_every_class_is_exported() -> None:
    assert set(scenario.__all__) <= set(dir(scenario))


def test_classes_of_the_builder_go_by_their_former_names_with_a_warning() -> None:
    with pytest.warns(DeprecationWarning, match=r"perhop\.Red is perhop\.scenario\.Red"):
        assert perhop.Red is scenario.Red  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"threshold": "5/15/0.1"}, "Red has no `threshold`; did you mean `thresholds`?"),
        ({"colour": "red"}, "Red has no `colour`; it has: limit, weight"),
    ],
)
def test_a_wrong_keyword_gets_the_hint_of_a_wrong_key(keys: dict[str, str], said: str) -> None:
    with pytest.raises(TypeError, match=re.escape(said)):
        scenario.Red(**keys)  # type: ignore[arg-type]


def test_keys_are_written_by_name() -> None:
    with pytest.raises(TypeError, match="Red: write its keys by name, such as limit=…"):
        scenario.Red("60p")  # type: ignore[call-arg]


def test_a_scenario_is_read_as_it_is_written_and_another_with_a_value_of_it_changed() -> None:
    first = Scenario.read("examples/first.toml")
    other = first.with_("links.uplink.queue", scenario.Codel())
    assert other.links is not None
    assert first.links is not None
    assert other.links["uplink"]["queue"] == {"aqm": "codel"}  # type: ignore[index]
    assert first.links["uplink"]["queue"] != {"aqm": "codel"}  # type: ignore[index]
    said = r"with_\('links.up.queue'\): `links` has no `up`; did you mean"
    with pytest.raises(perhop.PerhopError, match=said):
        first.with_("links.up.queue", scenario.Codel())


@pytest.mark.parametrize("path", ["links.", ".", "links..rate"])
def test_a_path_with_an_empty_name_is_refused_as_such(path: str) -> None:
    with pytest.raises(perhop.PerhopError, match="the path ends in a dot, or has two in a row"):
        Scenario.read("examples/first.toml").with_(path, 1)


def test_none_leaves_out_a_key() -> None:
    first = Scenario.read("examples/first.toml")
    probed = first.with_("probes", scenario.Probes(interval="1s"))
    assert reading.canonical(probed.with_("probes", None)) == reading.canonical(first)
    sold, _ = json.loads(reading.canonical(first.with_("flows.0.profile", None)))["flows"]
    assert "profile" not in sold


def test_a_scenario_that_names_files_has_their_contents() -> None:
    train = Scenario.read("examples/train.toml")
    assert reading.canonical(train) == reading.canonical("examples/train.toml")


def test_the_modules_example() -> None:
    assert doctest.testmod(builder).failed == 0


def test_the_schema_accepts_what_the_engine_accepts() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    published = json.loads(Path("docs/scenario.schema.json").read_text(encoding="utf-8"))
    validator = jsonschema.Draft202012Validator(published)
    validator.check_schema(published)
    validator.validate(tomllib.loads(FILE))
    validator.validate(tomllib.loads(QUEUES))
    for broken in (
        FILE.replace("20Mbps", "20mbps"),
        FILE.replace("limit", "limti"),
        FILE.replace("newreno", "x"),
        QUEUES.replace("46", "64"),
        QUEUES.replace("weight = 2", "weight = 0"),
        QUEUES.replace("path =", "pth ="),
    ):
        assert not validator.is_valid(tomllib.loads(broken))


def test_what_is_left_open_is_not_shown() -> None:
    queue = scenario.Red(thresholds="5/15/0.1", limit="60p")
    link = Link(from_="edge", to="core", rate="20Mbps", delay="48ms", queue=queue)
    shown = (
        "Link(from_='edge', to='core', rate='20Mbps', delay='48ms', "
        "queue=Red(limit='60p', thresholds='5/15/0.1'))"
    )
    assert repr(link) == shown
    assert eval(shown, vars(builder)) == link  # noqa: S307 - its own text


def test_a_class_in_place_of_a_table_is_named() -> None:
    link = Link(from_="edge", to="core", rate="20Mbps", delay="48ms", queue=scenario.Red)  # type: ignore[arg-type]
    flow = Flow(name="gold", from_="edge", to="core", transport=Tcp(tcp="newreno"))
    red = "scenario: links.bottleneck.queue: Red is a class; write Red(…) with its parameters"
    with pytest.raises(PerhopError, match=re.escape(red)):
        perhop.run(Scenario(duration="1s", links={"bottleneck": link}, flows=[flow]), runs=1)
    tcp = "scenario: flows[1].transport: Tcp is a class; write Tcp(…) with its parameters"
    with pytest.raises(PerhopError, match=re.escape(tcp)):
        perhop.run({"duration": "1s", "links": {}, "flows": [flow, {"name": "f", "transport": Tcp}]}, runs=1)
