"""`perhop export --to perhop-router`: tables of the scenario, remarks, refusals, the check of the router."""

from __future__ import annotations

import json
import subprocess
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.python.processes import router_binary
from tests.python.routers.importing import CONFIGURATIONS
from tests.python.routers.test_export_ios import ANSWERS, EXAMPLES, FLOW, HEAD, written

from perhop.errors import PerhopError
from perhop.routers import Exported, Source, exported, imported
from perhop.routers.dialects.perhop_router import checked_devices
from perhop.scenario import reading

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.python.conftest import Finished

    Perhop = Callable[..., Finished]

RIO = """\
[links.wan.queue]
aqm = "rio"
limit = "200p"
in = "60/180/0.02"
total = "30/90/0.05"
"""
REVERSE = 'reverse = { rate = "2Mbps", queue = { aqm = "drop-tail", limit = "50p" } }\n'
SILVER = """\
[[links.wan.meters]]
name = "silver"
match = { dscp = ["AF21", "AF22", "AF23"], not = { precedence = 0 } }
profile = { marker = "srtcm", mode = "color-aware", rate = "2Mbps", burst = "20kB", excess-burst = "20kB", \
out = "drop-red" }
"""


def router(table: str, **options: Any) -> Exported:  # noqa: ANN401 - of several types
    return written(table, dialect="perhop-router", **{"devices": "eth1,eth0", **options})


def colored(**keys: Any) -> str:  # noqa: ANN401
    """A flow with these keys."""
    return FLOW + "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())


def without_nothing(value: Any) -> Any:  # noqa: ANN401
    """A table without keys that stand for nothing."""
    if isinstance(value, dict):
        return {key: without_nothing(inner) for key, inner in value.items() if inner is not None}
    return [without_nothing(inner) for inner in value] if isinstance(value, list) else value


def as_in_the_scenario(canonical: str, name: str, done: Exported) -> dict[str, Any]:
    """The configuration; its tables, in place of the link's, make the same scenario."""
    config = tomllib.loads(done.text)
    scenario = json.loads(canonical)
    link = scenario["links"][name]
    sides = {"upstream": (link, link["rate"])}
    reverse = link.get("reverse") or {}
    if reverse.get("queue"):
        sides["downstream"] = (reverse, reverse.get("rate") or link["rate"])
    assert {side for side in ("upstream", "downstream") if side in config} == set(sides)
    for side, (table, rate) in sides.items():
        assert set(config[side]) <= {"rate", "queue", "meters"}
        assert config[side]["rate"] == rate
        table["queue"] = config[side]["queue"]
        if table.get("meters"):
            table["meters"] = config[side]["meters"]
    again = json.loads(reading.canonical(scenario))
    assert without_nothing(again) == without_nothing(json.loads(canonical))
    return config


def test_a_queue_and_its_meters_by_hand() -> None:
    done = router(SILVER + RIO)
    assert [remark.place for remark in done.remarks] == ["links.wan.delay"]
    lines = done.text.splitlines()
    assert lines[0] == "# links.wan of x.toml, written by perhop export."
    assert tomllib.loads(done.text) == {
        "unmatched": "trust",
        "inside": {"device": "eth1", "kind": "packet"},
        "outside": {"device": "eth0", "kind": "packet"},
        "upstream": {
            "rate": "20Mbps",
            "queue": {
                "aqm": "rio",
                "in": "60/180/0.02",
                "total": "30/90/0.05",
                "coupling": "coupled",
                "averages": "every-arrival",
                "limit": "200p",
                "weight": 0.002,
                "wait": True,
                "gentle": False,
                "ecn": False,
                "mean-packet": "1kB",
                "scale-by-size": True,
            },
            "meters": [
                {
                    "name": "silver",
                    "match": {"dscp": ["AF21", "AF22", "AF23"], "not": {"precedence": 0}},
                    "profile": {
                        "marker": "srtcm",
                        "rate": "2Mbps",
                        "burst": "20kB",
                        "excess-burst": "20kB",
                        "mode": "color-aware",
                        "out": "drop-red",
                    },
                }
            ],
        },
    }


def test_both_directions() -> None:
    config = tomllib.loads(router(REVERSE + RIO).text)
    assert config["downstream"]["rate"] == "2Mbps"
    assert config["downstream"]["queue"]["limit"] == "50p"
    config = tomllib.loads(router(REVERSE.replace('rate = "2Mbps", ', "") + RIO).text)
    assert config["downstream"]["rate"] == "20Mbps"


@pytest.mark.parametrize(
    ("keys", "classes"),
    [
        ({}, []),
        ({"dscp": 10, "color": "green"}, []),
        ({"dscp": 30, "color": "red"}, []),
        ({"dscp": 34, "color": "yellow"}, [("codepoint-af41", "AF41", "yellow")]),
        ({"dscp": 46, "color": "green"}, [("codepoint-ef", "EF", "green")]),
        ({"dscp": 46, "color": "yellow"}, []),
        ({"dscp": 5, "color": "red"}, [("codepoint-5", 5, "red")]),
        ({"color": "green"}, [("codepoint-cs0", "CS0", "green")]),
        ({"service": "green", "color": "green"}, [("codepoint-3", 3, "green")]),
    ],
)
def test_colors_that_codepoints_do_not_say_are_classes(keys: dict[str, Any], classes: list[Any]) -> None:
    text = reading.canonical(HEAD + RIO + colored(**keys))
    config = tomllib.loads(exported(text, "x.toml", "perhop-router", devices="a,b").text)
    assert config.get("classes", []) == [
        {"name": name, "match": {"dscp": code}, "color": color, "dscp": code} for name, code, color in classes
    ]


def test_a_codepoint_of_several_colors_is_told() -> None:
    flows = colored(dscp=46, color="green") + colored(dscp=46, color="red").replace('"f"', '"g"')
    text = reading.canonical(HEAD + RIO + flows)
    done = exported(text, "x.toml", "perhop-router", devices="a,b")
    said = "flows of codepoint EF have several colors; in the router it is yellow"
    assert said in [remark.text for remark in done.remarks]
    assert "classes" not in tomllib.loads(done.text)


def test_what_the_wire_and_the_hosts_do_is_told() -> None:
    profile = {"marker": "token-bucket", "rate": "1Mbps", "burst": "10kB"}
    flow = FLOW + 'profile = { marker = "token-bucket", rate = "1Mbps", burst = "10kB" }\n'
    text = reading.canonical(HEAD + "loss = 0.01\n" + REVERSE + RIO + flow)
    assert json.loads(text)["flows"][0]["profile"] == profile
    done = exported(text, "x.toml", "perhop-router", shape=True)
    assert [(remark.kind, remark.place) for remark in done.remarks] == [
        ("differs", "links.wan.rate"),
        ("differs", "links.wan.delay"),
        ("differs", "links.wan.loss"),
        ("differs", "links.wan"),
        ("differs", "flows[0].profile"),
    ]
    config = tomllib.loads(done.text)
    assert (config["inside"]["device"], config["outside"]["device"]) == ("INSIDE", "OUTSIDE")
    assert "placeholders" in done.text


def test_room_for_what_queues_may_hold() -> None:
    assert "buffers" not in tomllib.loads(router(RIO).text)
    # 12000 packets, and 1000 to spare
    assert tomllib.loads(router(RIO.replace("200p", "12000p")).text)["buffers"] == 13_000
    # 400 kB are 10000 packets of 40 B
    assert tomllib.loads(router(RIO.replace("200p", "400kB")).text)["buffers"] == 11_000
    done = router(RIO.replace("200p", "1GB"))
    assert tomllib.loads(done.text)["buffers"] == 1_000_000
    assert any("at most 1000000 packets" in remark.text for remark in done.remarks)


BY_PATH = """\
[links.wan.queue]
scheduler = "priority"
[[links.wan.queue.queues]]
name = "p"
match = { path = "p" }
rule = { aqm = "drop-tail", limit = "9p" }
[[links.wan.queue.queues]]
name = "q"
rule = { aqm = "drop-tail", limit = "9p" }
"""
PATH = """
[paths]
p = { via = ["a", "b"], control = { interval = "40ms" } }
[[flows]]
name = "on the path"
path = "p"
transport = { tcp = "newreno" }
"""


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (
            '[links.wan.queue]\naqm = "dwred"\nlimit = "100p"\nout = "10/30/0.1"\n',
            "x.toml: links.wan.queue: perhop-router does not have `dwred`, which needs the window control",
        ),
        (BY_PATH, "x.toml: links.wan.queue.queues[0].match.path: perhop-router has no label-switched paths"),
    ],
)
def test_queues_that_the_router_does_not_have_are_refused(table: str, said: str) -> None:
    with pytest.raises(PerhopError) as refused:
        router(table + PATH, lenient=True)
    assert str(refused.value).startswith(said)
    assert "\n" not in str(refused.value)


def test_a_meter_that_the_router_does_not_have_is_left_out() -> None:
    table = SILVER.replace('dscp = ["AF21", "AF22", "AF23"], not = { precedence = 0 }', 'path = "p"')
    with pytest.raises(PerhopError, match=r"links\.wan\.meters\[0\]: .*no label-switched paths.*--lenient"):
        router(table + RIO + PATH)
    done = router(table + RIO + PATH, lenient=True)
    assert "meters" not in tomllib.loads(done.text)["upstream"]
    assert "left out" in {remark.kind for remark in done.remarks}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("--devices", "eth0"),
            "--devices takes two interfaces, inside and outside, such as eth1,eth0, not `eth0`",
        ),
        (("--devices", "eth0,eth0"), "--devices: `eth0` cannot be on both sides; name two interfaces"),
        (("--devices", "eth0,"), "--devices: `` is no name of an interface"),
        (("--devices", "a b,c"), "--devices: `a b` is no name of an interface"),
        (("--devices", "eth0,sixteen-letters-"), "--devices: `sixteen-letters-` is no name of an interface"),
    ],
)
def test_bad_devices_are_one_line(perhop: Perhop, tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    (tmp_path / "x.toml").write_text(HEAD + RIO + FLOW, encoding="utf-8")
    done = perhop("export", "x.toml", "--to", "perhop-router", *words)
    assert (done.code, done.out) == (2, "")
    assert done.err.count("\n") == 1, done.err
    assert said in done.err


def test_devices_are_for_the_router_only(perhop: Perhop, tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(HEAD + RIO + FLOW, encoding="utf-8")
    done = perhop("export", "x.toml", "--to", "tc", "--devices", "eth1,eth0")
    assert (done.code, done.out) == (2, "")
    assert "--devices has no effect with --to tc" in done.err


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=20))
def test_devices_are_two_names_or_refused(text: str) -> None:
    try:
        names = checked_devices(text)
    except PerhopError:
        return
    assert len(set(names)) == 2
    assert tomllib.loads(f'device = "{names[0]}"')["device"] == names[0]


def links() -> list[tuple[str, str, str]]:
    """Links with a queue: of the examples, and of what is imported from the other dialects."""
    texts = []
    for path in EXAMPLES:
        try:
            texts.append((path.name, reading.canonical(path)))
        except PerhopError:  # examples/ has plans and configurations of perhop-router, too
            continue
    for path in sorted(CONFIGURATIONS.iterdir()):
        try:
            toml = imported(Source([(path.name, path.read_bytes())]), ANSWERS).toml
        except PerhopError:  # several interfaces
            continue
        texts.append((path.name, reading.canonical(toml)))
    return [
        (origin, text, name)
        for origin, text in texts
        for name, link in (json.loads(text).get("links") or {}).items()
        if "queue" in link
    ]


def test_every_link_is_written_with_its_own_tables_and_the_router_takes_it(tmp_path: Path) -> None:
    binary = router_binary()
    taken = refused = 0
    for origin, text, name in links():
        try:
            done = exported(text, origin, "perhop-router", link=name, devices="in0,out0")
        except PerhopError as error:
            assert "\n" not in str(error)  # noqa: PT017 - whether it raises depends on the link
            refused += 1
            continue
        as_in_the_scenario(text, name, done)
        taken += 1
        if binary is not None:
            path = tmp_path / "router.toml"
            path.write_text(done.text, encoding="utf-8")
            checked = subprocess.run([binary, "--check", path], capture_output=True, text=True, check=False)
            assert checked.returncode == 0, f"{origin}: {name}: {checked.stderr}"
    assert taken > 30
    assert refused > 0


@pytest.mark.skipif(router_binary() is None, reason="no perhop-router: cargo build --package perhop-router")
def test_placeholders_pass_the_check_and_no_interface_has_their_names(tmp_path: Path) -> None:
    path = tmp_path / "router.toml"
    path.write_text(router(REVERSE + SILVER + RIO, devices=None).text, encoding="utf-8")
    binary = str(router_binary())
    done = subprocess.run([binary, "--check", path], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done
    interfaces = Path("/sys/class/net")
    assert not interfaces.exists() or not {"INSIDE", "OUTSIDE"} & {one.name for one in interfaces.iterdir()}
