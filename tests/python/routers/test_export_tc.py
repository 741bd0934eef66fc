"""`perhop export --to tc`: hand vectors, what is refused, and what import reads back; the kernel's view."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from tests.python.routers.importing import CONFIGURATIONS, PORTS, buffer
from tests.python.routers.test_export_ios import FLOW, HEAD, link, written
from tests.python.routers.test_tc_kernel import shown

from perhop.errors import PerhopError
from perhop.routers import Answers, Exported, Source, exported, imported
from perhop.scenario import reading

if TYPE_CHECKING:
    from pathlib import Path

RED = """\
[links.wan.queue]
aqm = "red"
thresholds = "30kB/90kB/0.02"
limit = "200kB"
weight = 0.03125
wait = false
scale-by-size = false
ecn = true
"""
TREE = """\
[links.wan.queue]
scheduler = "htb"
[[links.wan.queue.classes]]
name = "1:1"
rate = "16Mbps"
burst = "16kB"
[[links.wan.queue.classes.classes]]
name = "1:10"
match = { dscp = ["EF", "CS5"] }
rate = "4Mbps"
ceil = "16Mbps"
prio = 1
queue = { aqm = "drop-tail", limit = "50p" }
[[links.wan.queue.classes.classes]]
name = "1:2f"
rate = "12Mbps"
ceil = "16Mbps"
quantum = "3kB"
queue = { aqm = "drop-tail", limit = "30kB" }
"""


def tc(table: str, **options: Any) -> Exported:  # noqa: ANN401 - of several types
    return written(table, dialect="tc", **options)


def commands(done: Exported) -> list[str]:
    return [line.removeprefix("tc ") for line in done.text.splitlines() if not line.startswith("#")]


def read_back(done: Exported, rate: float = 20e6) -> dict[str, Any]:
    answers = Answers(rate, 1000.0, buffer(1e6), {}, lenient=True)
    return link(imported(Source([("x.sh", done.text.encode())]), answers, dialect="tc").toml)


def test_red_and_its_exponent() -> None:
    # VENDORS 9.2: (min 30000, burst, avpkt 1000) gives Wlog 5 for bursts from 47;
    # `ecn = true` is `ecn harddrop`.
    (line,) = commands(tc(RED))
    found = re.fullmatch(
        r"qdisc add dev wan root handle 1: red limit 200000 min 30000 max 90000 avpkt 1000 burst (\d+) "
        r"probability 0\.02 bandwidth 20mbit ecn harddrop",
        line,
    )
    assert found is not None, line
    assert read_back(tc(RED))["queue"] == json.loads(simulation_link(RED))["queue"]


def simulation_link(table: str) -> str:
    """The link with every default, as JSON."""
    return json.dumps(json.loads(reading.canonical(HEAD + table + FLOW))["links"]["wan"])


def test_a_tree_comes_back() -> None:
    done = tc(TREE)
    assert commands(done)[:3] == [
        "qdisc add dev wan root handle 1: htb default 2f r2q 10",
        "class add dev wan parent 1: classid 1:1 htb rate 16mbit burst 16000 cburst 1600",
        "class add dev wan parent 1:1 classid 1:10 htb rate 4mbit ceil 16mbit burst 1600 cburst 1600 prio 1",
    ]
    assert read_back(done)["queue"] == json.loads(simulation_link(TREE))["queue"]


def queues(scheduler: str, keys: tuple[str, str] = ("", "")) -> str:
    return f"""\
[links.wan.queue]
scheduler = "{scheduler}"
[[links.wan.queue.queues]]
name = "1:1"
match = {{ dscp = ["EF"] }}
{keys[0]}
rule = {{ aqm = "drop-tail", limit = "64p" }}
[[links.wan.queue.queues]]
name = "1:2"
{keys[1]}
rule = {{ aqm = "codel", limit = "100p", target = "10ms", law = "linux" }}
"""


def test_strict_priority_comes_back() -> None:
    table = queues("priority")
    done = tc(table)
    assert commands(done)[0] == f"qdisc add dev wan root handle 1: prio bands 2 priomap {'1 ' * 15}1"
    back = read_back(done)["queue"]
    given = json.loads(simulation_link(table))["queue"]
    assert [q["rule"] for q in back["queues"]] == [q["rule"] for q in given["queues"]]
    assert back["queues"][0]["match"] == given["queues"][0]["match"]


def test_shares_become_quanta() -> None:
    done = tc(queues("drr", ("weight = 3", "weight = 1")))
    assert [line for line in commands(done) if line.startswith("class")] == [
        "class add dev wan parent 1: classid 1:1 drr quantum 4542",
        "class add dev wan parent 1: classid 1:2 drr quantum 1514",
    ]
    one, two = read_back(done)["queue"]["queues"]
    assert one["weight"] / two["weight"] == 3


def test_a_shaper_around_a_queue() -> None:
    done = tc(RED, shape=True)
    # 4 ms of 20 Mbit/s are 10 kB.
    assert commands(done)[0] == "qdisc add dev wan root handle f000: tbf rate 20mbit burst 10000 limit 15140"
    assert commands(done)[1].startswith("qdisc add dev wan parent f000:1 handle 1: red limit 200000")
    back = read_back(done, 1e8)["queue"]
    assert (back["scheduler"], back["rate"], back["burst"]) == ("shaper", "20Mbps", "10kB")


def test_colors_are_virtual_queues_with_one_average() -> None:
    table = (
        '[links.wan.queue]\naqm = "wred"\ngreen = "60kB/120kB/0.05"\nyellow = "30kB/90kB/0.1"\n'
        'limit = "300kB"\nweight = 0.03125\nwait = false\nscale-by-size = false\n'
    )
    done = tc(table)
    lines = commands(done)
    assert lines[0] == "qdisc add dev wan root handle 1: gred setup vqs 2 default 0 grio limit 300000"
    assert all(line.endswith("prio 1") for line in lines[1:3])
    assert (
        "filter add dev wan egress protocol ip prio 1 u32 match ip dsfield 0x30 0xfc classid :1" in lines
    )  # AF12
    back = read_back(done)["queue"]
    assert (back["limit"], back["weight"]) == ("300kB", 0.03125)
    assert {p["curve"] for p in back["profiles"]} == {"60kB/120kB/0.05", "30kB/90kB/0.1"}


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (RED.replace("ecn = true", "gentle = true"), "tc has no `gentle`"),
        (
            RED.replace('"red"', '"wred"').replace(
                'thresholds = "30kB/90kB/0.02',
                'yellow = "9kB/90kB/0.1"\ngreen = "segmented 30kB/0.1, 60kB/0.5',
            ),
            "tc has one segment",
        ),
        (queues("priority", ('cap = "1Mbps"', "")), "cannot limit a band"),
        ('[links.wan.queue]\naqm = "blue"\nlimit = "50p"\n', "tc cannot express blue"),
    ],
)
def test_what_tc_cannot_say_is_refused(table: str, said: str) -> None:
    with pytest.raises(PerhopError, match=re.escape(said)):
        tc(table)
    assert any(r.kind == "left out" and said in r.text for r in tc(table, lenient=True).remarks)


def test_gred_has_a_curve_for_every_codepoint_or_says_so() -> None:
    table = RED.replace('"red"', '"wred"').replace("thresholds", "green")
    done = tc(table, lenient=True)
    # FLOW has the default color, yellow, and no codepoint: it has no curve.
    assert "no curve for CS0, AF12, AF13: every virtual queue" in " ".join(r.text for r in done.remarks)
    table = table.replace("green", "red")  # red only: yellow packets do not get it
    assert "no curve for CS0, 1, 2" in " ".join(r.text for r in tc(table, lenient=True).remarks)


def test_profiles_are_virtual_queues_and_come_back() -> None:
    rule = (
        'aqm = "wred", limit = "300kB", weight = 0.03125, wait = false, scale-by-size = false, profiles = ['
    )
    rule += '{ match = { dscp = "AF11" }, curve = "60kB/120kB/0.05", limit = "200kB" }, '
    rule += '{ match = { dscp = ["AF12", "AF13"] }, curve = "30kB/90kB/0.1" }, { curve = "20kB/60kB/0.2" }]'
    table = "[links.wan]\nqueue = { " + rule + " }\n"
    text = (HEAD + FLOW).replace("[links.wan]\n", table)
    done = exported(reading.canonical(text), "x.toml", "tc")
    lines = commands(done)
    assert lines[0] == "qdisc add dev wan root handle 1: gred setup vqs 3 default 0 grio limit 300000"
    # The curve of all others has most codepoints; a packet without a filter is of virtual queue 0.
    assert ["min 20000" in lines[1], "min 60000" in lines[2], "min 30000" in lines[3]] == [True] * 3
    assert "gred vq 1 limit 200000 " in lines[2]
    assert {line.split("dsfield ")[1] for line in lines if "dsfield" in line} == {
        "0x28 0xfc classid :1", "0x30 0xfc classid :2", "0x38 0xfc classid :2",
    }  # fmt: skip
    assert any("counts its own packets" in r.text for r in done.remarks)
    given = json.loads(reading.canonical(text))["links"]["wan"]["queue"]
    assert read_back(done)["queue"] == given


def test_a_limit_that_is_not_given_is_said() -> None:
    table = '[links.wan.queue]\nscheduler = "dualpi2"\n'
    places = {r.place for r in tc(table, lenient=True).remarks if r.kind == "differs"}
    assert "links.wan.queue.limit" in places
    places = {r.place for r in tc(table + 'law = "linux"\n', lenient=True).remarks}
    assert "links.wan.queue.limit" not in places


@pytest.mark.parametrize("name", sorted(path.name for path in CONFIGURATIONS.glob("*.*")))
def test_the_second_pass_changes_nothing(name: str) -> None:
    """What was exported, imported and exported again is the same but for remarks and names of scenarios."""
    answers = Answers(1e8, 1000.0, buffer(1e6), {}, lenient=True)
    source = Source([(name, (CONFIGURATIONS / name).read_bytes())])
    first = imported(source, answers, interface=PORTS.get(name)).toml
    one = exported(reading.canonical(first), "x", "tc", lenient=True)
    if "qdisc" not in one.text:
        pytest.skip("nothing of it can be written for tc")
    again = imported(Source([("x.sh", one.text.encode())]), answers, dialect="tc").toml
    two = exported(reading.canonical(again), "x", "tc", lenient=True)
    for word in ("class", "gred"):
        # Rates come back as weights, so averages idle at the link's rate; tc's own burst is 1600 B.
        kept = [
            [
                re.sub(r" (bandwidth \S+|c?burst 1600\b)", "", c)
                for c in commands(done)
                if f" {word} " in f" {c}"
            ]
            for done in (one, two)
        ]
        assert kept[0] == kept[1]


def test_the_kernel_takes_the_tree(tmp_path: Path) -> None:
    script = tc(TREE).text.replace(" dev wan ", " dev lo ")
    files = shown(script, tmp_path)
    answers = Answers(20e6, 1000.0, buffer(1e6), {}, lenient=True)
    back = link(imported(Source(list(files.items())), answers).toml)["queue"]
    given = json.loads(simulation_link(TREE))["queue"]
    for one, two in zip(back["classes"][0]["classes"], given["classes"][0]["classes"], strict=True):
        for key in ("name", "rate", "ceil", "queue", "match"):
            assert one.get(key) == two.get(key)
        assert one.get("prio", 0) == two.get("prio", 0)


METERED = (
    RED
    + """\
[[links.wan.meters]]
name = "one"
match = { dscp = ["AF11", "AF12"] }
profile = { marker = "token-bucket", rate = "1Mbps", burst = "9kB", out = "drop" }
[[links.wan.meters]]
name = "others"
profile = { marker = "token-bucket", rate = "3Mbps", burst = "15kB", out = "drop" }
"""
)


def test_meters_are_policers_that_filters_share() -> None:
    done = tc(METERED)
    assert not [r for r in done.remarks if r.kind == "left out"]
    lines = commands(done)
    police = "action police rate 1mbit burst 9000 conform-exceed drop index 1"
    others = "action police rate 3mbit burst 15000 conform-exceed drop index 2"
    match = "u32 match ip dsfield"
    six = "filter add dev wan egress protocol ipv6 prio 2 u32 match ip6 priority"
    assert lines[lines.index("qdisc add dev wan clsact") + 1 :] == [
        f"filter add dev wan egress protocol ip prio 1 {match} 0x28 0xfc {police}",
        f"{six} 0x28 0xfc action police index 1",
        f"filter add dev wan egress protocol ip prio 1 {match} 0x30 0xfc action police index 1",
        f"{six} 0x30 0xfc action police index 1",
        f"filter add dev wan egress protocol all prio 3 matchall {others}",
    ]
    given = json.loads(simulation_link(METERED))["meters"]
    back = read_back(done)["meters"]
    assert [(m.get("match"), m["profile"]) for m in back] == [(m.get("match"), m["profile"]) for m in given]


@pytest.mark.parametrize(
    "profile",
    [
        'marker = "token-bucket", rate = "1Mbps", burst = "9kB", af = 1',
        'marker = "srtcm", rate = "1Mbps", burst = "9kB", excess-burst = "9kB", out = "drop"',
        'marker = "tsw", rate = "1Mbps"',
    ],
)
def test_what_marks_or_has_two_buckets_is_no_policer(profile: str) -> None:
    table = f'{RED}[[links.wan.meters]]\nname = "m"\nprofile = {{ {profile} }}\n'
    with pytest.raises(PerhopError, match=r"meters\[0\]\.profile: tc polices by one token bucket"):
        tc(table)
    assert "police" not in "\n".join(commands(tc(table, lenient=True)))


def test_packets_of_a_meter_that_is_left_out_come_to_no_other_policer() -> None:
    two = 'marker = "srtcm", rate = "1Mbps", burst = "9kB", excess-burst = "9kB", out = "drop"'
    done = tc(
        METERED.replace('marker = "token-bucket", rate = "1Mbps", burst = "9kB", out = "drop"', two),
        lenient=True,
    )
    match = "filter add dev wan egress protocol ip prio 1 u32 match ip dsfield"
    assert f"{match} 0x28 0xfc action ok" in commands(done)
    (meter,) = read_back(done)["meters"]
    assert set(meter["match"]["dscp"]) == set(range(64)) - {10, 12}


def test_a_policer_that_no_filter_defines_is_named() -> None:
    text = "tc qdisc add dev eth0 root pfifo limit 9\ntc qdisc add dev eth0 clsact\n"
    text += "tc filter add dev eth0 egress protocol ip prio 1 u32 match ip dsfield 0x28 0xfc "
    text += "action police index 7\n"
    done = imported(Source([("x.sh", text.encode())]), Answers(2e7, 1000.0), dialect="tc")
    assert ("W15", 3, "police: index 7 is not defined") in [(f.code, f.line, f.text) for f in done.findings]


def test_policers_of_strict_queues() -> None:
    table = queues("llq").replace('queue.queues]]\nname = "1:1"', 'queue.priority]]\nname = "1:1"', 1)
    table = table.replace('"EF"] }\n', '"EF"] }\nrate = "1Mbps"\nburst = "9kB"\npolice = "always"\n')
    table = table.replace(
        '[[links.wan.queue.queues]]\nname = "1:2"', '[[links.wan.queue.queue.queues]]\nname = "1:2"'
    )
    table = table.replace(
        "[[links.wan.queue.queue.queues",
        '[links.wan.queue.queue]\nscheduler = "drr"\n[[links.wan.queue.queue.queues',
    )
    done = tc(table)
    assert "action police rate 1mbit burst 9000 conform-exceed drop index 1" in done.text
    (meter,) = read_back(done)["meters"]
    assert (meter["match"], meter["profile"]["out"]) == ({"dscp": 46}, "drop")
    with pytest.raises(PerhopError, match="cannot limit a band"):
        tc(table.replace('police = "always"\n', ""))


RIO = """\
[links.wan.queue]
aqm = "rio"
in = "60kB/120kB/0.02"
total = "30kB/90kB/0.1"
limit = "300kB"
weight = 0.03125
wait = false
scale-by-size = false
averages = "own-class"
"""


def test_rio_is_gred_with_two_priorities() -> None:
    done = tc(RIO)
    lines = commands(done)
    assert lines[0] == "qdisc add dev wan root handle 1: gred setup vqs 2 default 0 grio limit 300000"
    assert [line.rpartition(" ")[2] for line in lines[1:3]] == ["2", "1"]
    # AF11 is IN; FLOW has no codepoint and the color yellow, so CS0 is OUT: without a filter tc_index is 0.
    targets = {line.split("dsfield ")[1].split()[0]: line[-2:] for line in lines if "dsfield" in line}
    assert targets["0x28"] == ":1"
    assert "0x00" not in targets
    assert "the kernel adds the averages" in next(r.text for r in done.remarks if r.place.endswith("total"))
    assert read_back(done)["queue"] == json.loads(simulation_link(RIO))["queue"]
    decoupled = tc(RIO + 'coupling = "decoupled"\n')
    assert commands(decoupled)[0].endswith("gred setup vqs 2 default 0 limit 300000")
    assert any(r.place.endswith("coupling") for r in decoupled.remarks)
    every = tc(RIO.replace('averages = "own-class"\n', ""))
    assert any(r.place.endswith("averages") for r in every.remarks)


SIMPLE = '[links.wan.queue]\naqm = "drop-tail"\nlimit = "50p"\n'


@pytest.mark.parametrize(
    ("table", "wanted"),
    [
        (RED, "sch_red"),
        (RIO, "sch_gred"),
        (METERED.replace(RED, SIMPLE), "act_police"),
        (queues("priority"), "sch_prio"),
        (SIMPLE, "sch_fifo"),
    ],
    ids=["red", "gred", "police", "prio", "fifo"],
)
def test_the_kernel_takes_what_it_has(table: str, wanted: str, tmp_path: Path) -> None:
    """Skips where the kernel lacks the discipline; what it shows is what was written."""
    done = tc(table)
    files = shown(done.text.replace(" dev wan ", " dev lo "), tmp_path, wanted)
    answers = Answers(20e6, 1000.0, buffer(1e6), {}, lenient=True)
    back = link(imported(Source(list(files.items())), answers).toml)
    there = read_back(done)
    assert back["queue"] == there["queue"]
    assert [m["profile"] for m in back.get("meters", [])] == [m["profile"] for m in there.get("meters", [])]


def test_rates_beside_weights_are_a_tree() -> None:
    text = queues("wfq", ('rate = "5Mbps"', "weight = 2"))
    third = '[[links.wan.queue.queues]]\nname = "1:3"\nweight = 1\nmatch = { dscp = "AF11" }\n'
    third += 'rule = { aqm = "drop-tail", limit = "64p" }\n'
    at = text.rindex("[[links.wan.queue.queues]]")
    done = tc(text[:at] + third + text[at:])
    # 15 Mbit/s are left of 20: 5 and 10 for weights 1 and 2.
    assert [line for line in commands(done) if line.startswith("class")] == [
        "class add dev wan parent 1: classid 1:1 htb rate 20mbit",
        "class add dev wan parent 1:1 classid 1:2 htb rate 5mbit ceil 20mbit",
        "class add dev wan parent 1:1 classid 1:3 htb rate 5mbit ceil 20mbit",
        "class add dev wan parent 1:1 classid 1:4 htb rate 10mbit ceil 20mbit",
    ]
    assert any("a weight is a rate there" in r.text for r in done.remarks)
    (root,) = read_back(done)["queue"]["classes"]
    assert [leaf["rate"] for leaf in root["classes"]] == ["5Mbps", "5Mbps", "10Mbps"]
