"""`perhop export --to junos`: hand vectors, what is rounded or refused, and what import reads back."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.python.routers.importing import CONFIGURATIONS, PORTS, buffer
from tests.python.routers.test_export_ios import EDGE, EXAMPLES, FLOW, HEAD, link, written

from perhop.errors import PerhopError
from perhop.routers import Answers, Exported, Source, exported, imported
from perhop.routers.curves import COLORS
from perhop.scenario import reading

EXACT = "weight = 1.0, wait = false, scale-by-size = false"
"""What a drop profile of Junos is like, as import reads it."""


def junos(table: str, **options: Any) -> Exported:  # noqa: ANN401 - of several types
    return written(table, dialect="junos", **options)


def read_back(done: Exported, **answers: Any) -> dict[str, Any]:  # noqa: ANN401
    given = {"packet_size": 1000.0, **answers}
    return link(imported(Source([("x.cfg", done.text.encode())]), Answers(**given), dialect="junos").toml)


def body(done: Exported) -> list[str]:
    return [line.strip() for line in done.text.splitlines() if not line.startswith("#")]


def red(curve: str, more: str = "", limit: str = "1MB") -> str:
    keys = EXACT.replace(", ", "\n")
    return f'[links.wan.queue]\naqm = "red"\nthresholds = "{curve}"\nlimit = "{limit}"\n{keys}\n{more}'


def wred(curve: str) -> str:
    keys = EXACT.replace(", ", "\n")
    text = f'[links.wan.queue]\naqm = "wred"\nlimit = "1MB"\n{keys}\n'
    return text + "".join(f'{color} = "{curve}"\n' for color in ("green", "yellow", "red"))


def test_the_worked_example() -> None:
    # VENDORS, worked example C, from right to left: 200 kB and 600 kB are 20 and 60 % of 1 MB; above max
    # all is dropped, which is 100 % at the next level. 1 MB at 20 Mbit/s is 400 ms.
    done = junos(red("200kB/600kB/0.1"), shape=True)
    lines = body(done)
    at = lines.index("interpolate {")
    assert lines[at + 1 : at + 3] == ["fill-level [ 20 60 61 ];", "drop-probability [ 0 10 100 ];"]
    assert "buffer-size temporal 400000;" in lines
    assert [(r.kind, r.place) for r in done.remarks] == [("differs", "links.wan.queue.limit")]
    assert read_back(done)["queue"] == link(HEAD + red("200kB/600kB/0.1") + FLOW)["queue"]


@pytest.mark.parametrize(
    ("curve", "words"),
    [
        (
            "segmented 500kB/0.1, 800kB/0.4",
            ["fill-level 50 drop-probability 10", "fill-level 80 drop-probability 40"],
        ),
        (
            "interpolate 300kB/0, 700kB/0.2, 1MB/1",
            ["fill-level [ 30 70 100 ]", "drop-probability [ 0 20 100 ]"],
        ),
        # A jump at the first and at the last point takes a percent of the limit.
        (
            "interpolate 300kB/0.1, 700kB/0.2",
            ["fill-level [ 29 30 70 71 ]", "drop-probability [ 0 10 20 100 ]"],
        ),
        # Beyond the limit: on the line from 500 kB to 1.5 MB, 1 MB is half of the way.
        ("500kB/1500kB/0.2", ["fill-level [ 50 100 ]", "drop-probability [ 0 10 ]"]),
        ("600kB/600kB/1", ["fill-level 60 drop-probability 100"]),
    ],
)
def test_curves_as_drop_profiles(curve: str, words: list[str]) -> None:
    lines = body(junos(wred(curve), shape=True))
    for text in words:
        assert lines.count(f"{text};") == 1, lines


@pytest.mark.parametrize(
    ("curve", "said"),
    [
        ("204kB/600kB/0.1", "fill 20.4 % of the limit becomes 20 %, off by -2 %"),
        ("200kB/600kB/0.034", "p 0.034 becomes 3 %, off by -12 %"),
        ("200kB/600kB/0.125", "p 0.125 becomes 13 %, off by +4 %"),
    ],
)
def test_rounded_values_say_by_how_much(curve: str, said: str) -> None:
    done = junos(red(curve), shape=True)
    assert [r.text for r in done.remarks if r.kind == "rounded"] == [said]
    assert f"{said}\n" in done.text


def test_a_probability_that_becomes_nothing_is_refused() -> None:
    with pytest.raises(PerhopError, match=r"whole percents, and 0\.004 becomes 0"):
        junos(red("200kB/600kB/0.004"))


@pytest.mark.parametrize(
    ("limit", "kind", "micro"),
    [("125kB", None, 50_000), ("126kB", "differs", 50_400), ("100MB", "left out", 32_000_000)],
)
def test_times_of_buffers_have_caps(limit: str, kind: str | None, micro: int) -> None:
    # 20 Mbit/s are 2.5 MB/s: 125 kB are 50 ms, 100 MB are 40 s.
    done = junos(f'[links.wan.queue]\naqm = "drop-tail"\nlimit = "{limit}"\n', lenient=True, shape=True)
    assert f"buffer-size temporal {micro};" in body(done)
    assert [r.kind for r in done.remarks if r.place == "links.wan.queue.limit"] in (
        [[]] if kind is None else [[kind], [kind, "rounded"]]
    )


def test_packets_become_bytes_of_their_mean_size() -> None:
    done = junos(EDGE, shape=True)
    said = [r.text for r in done.remarks if r.kind == "differs"]
    assert "limit 100 packets: a time or a fill there, of packets of 1000 B" in said
    # 100 packets of 1000 B at 8 Mbit/s.
    assert "buffer-size temporal 100000;" in body(done)
    assert any(text.startswith("no statement sets the weight 0.015625") for text in said)
    (data, rest) = read_back(done)["queue"]["queues"]
    assert (data["rule"]["green"], data["rule"]["limit"]) == ("30kB/60kB/0.05", "100kB")
    assert (data["rate"], rest["rule"]["limit"]) == ("8Mbps", "64kB")


def test_weights_are_percentages_that_add_up() -> None:
    table = '[links.wan.queue]\nscheduler = "wfq"\n'
    for name, match, weight in (("a", 8, 4), ("b", 16, 2), ("c", None, 1)):
        table += f'[[links.wan.queue.queues]]\nname = "{name}"\nweight = {weight}\n'
        table += f"match = {{ dscp = {match} }}\n" if match else ""
        table += 'rule = { aqm = "drop-tail", limit = "10kB" }\n'
    done = junos(table, shape=True)
    # 4/7, 2/7 and 1/7 are 57.1, 28.6 and 14.3 %.
    assert [line for line in body(done) if line.startswith("transmit-rate")] == [
        "transmit-rate percent 14;", "transmit-rate percent 57;", "transmit-rate percent 29;",
    ]  # fmt: skip
    assert "share 57.14 % becomes 57 %, off by -0.25 %" in [r.text for r in done.remarks]
    assert [q["weight"] for q in read_back(done)["queue"]["queues"]] == [570, 290, 140]


STRICT = """\
[links.wan.queue]
scheduler = "llq"
[[links.wan.queue.priority]]
name = "RT"
match = { dscp = "EF" }
rate = "1Mbps"
burst = "25kB"
police = "always"
rule = { aqm = "drop-tail", limit = "50kB" }
[links.wan.queue.queue]
scheduler = "wfq"
[[links.wan.queue.queue.queues]]
name = "DATA"
match = { dscp = ["AF11"] }
rate = "5Mbps"
rule = { aqm = "drop-tail", limit = "40kB" }
[[links.wan.queue.queue.queues]]
name = "class-default"
rule = { aqm = "drop-tail", limit = "30kB" }
"""


def test_strict_priority_and_its_policer() -> None:
    done = junos(STRICT, shape=True)
    text = "\n".join(body(done))
    assert "priority strict-high;\nbuffer-size temporal 20000;" in text
    assert (
        "policer RT {\nif-exceeding {\nbandwidth-limit 1m;\nburst-size-limit 25k;\n}\nthen discard;\n}"
        in text
    )
    assert "term RT {\nfrom {\ndscp ef;\n}\nthen {\npolicer RT;\naccept;\n}\n}" in text
    back, given = read_back(done), link(HEAD + STRICT + FLOW)
    (meter,) = back["meters"]
    assert (meter["match"], meter["profile"]["rate"], meter["profile"]["out"]) == (
        {"dscp": 46},
        "1Mbps",
        "drop",
    )
    assert back["queue"]["queue"] == given["queue"]["queue"]
    assert back["queue"]["priority"][0]["rule"] == given["queue"]["priority"][0]["rule"]
    # In congestion only: there it acts always.
    done = junos(STRICT.replace('police = "always"\n', ""), shape=True)
    assert "not in congestion only" in next(
        r.text for r in done.remarks if r.place.endswith("priority[0].rate")
    )


METERS = """\
[[links.wan.meters]]
name = "one"
match = { dscp = ["AF11", "AF12"] }
profile = { marker = "srtcm", rate = "1Mbps", burst = "9kB", excess-burst = "20kB", mode = "color-aware" }
[[links.wan.meters]]
name = "two"
match = { dscp = "AF21" }
profile = { marker = "trtcm", rate = "1Mbps", burst = "9kB", peak-rate = "2Mbps", peak-burst = "20kB", \
out = "drop-red" }
[[links.wan.meters]]
name = "others"
profile = { marker = "token-bucket", rate = "3Mbps", burst = "15kB", out = "drop" }
"""


def test_meters_are_policers_of_a_filter() -> None:
    done = junos(red("200kB/600kB/0.1") + METERS, shape=True)
    back, given = read_back(done)["meters"], link(HEAD + red("200kB/600kB/0.1") + METERS + FLOW)["meters"]
    assert [(m.get("match"), m["profile"]) for m in back] == [(m.get("match"), m["profile"]) for m in given]
    assert [r.place for r in done.remarks if "loss priorities" in r.text] == [
        "links.wan.meters[0].profile.out", "links.wan.meters[1].profile.out",
    ]  # fmt: skip
    assert any("IPv4" in r.text for r in done.remarks)


def test_packets_of_a_meter_that_is_left_out_come_to_no_other_policer() -> None:
    others = '[[links.wan.meters]]\nname = "o"\n'
    others += 'profile = { marker = "token-bucket", rate = "1Mbps", burst = "9kB", out = "drop" }\n'
    left_out = TSW.replace("profile", 'match = { dscp = "AF11" }\nprofile')
    done = junos(red("200kB/600kB/0.1") + left_out + others, lenient=True, shape=True)
    assert "term m {\nfrom {\ndscp af11;\n}\nthen {\naccept;\n}\n}" in "\n".join(body(done))
    (meter,) = read_back(done)["meters"]
    assert set(meter["match"]["dscp"]) == set(range(64)) - {10}


TSW = '[[links.wan.meters]]\nname = "m"\nprofile = { marker = "tsw", rate = "1Mbps" }\n'


def test_units_and_odd_names() -> None:
    text = (HEAD + STRICT + FLOW).replace("links.wan", 'links."ge-0/0/1.7"').replace('"RT"', '"best-effort"')
    done = exported(reading.canonical(text), "x.toml", "junos", shape=True)
    lines = body(done)
    at = lines.index("ge-0/0/1 {")
    assert lines[at + 1 : at + 4] == ["unit 7 {", "scheduler-map ge-0-0-1-7-MAP;", "shaping-rate 20m;"]
    # best-effort has the packets that nothing names.
    assert "class best-effort-2 queue-num 1;" in lines
    assert any("is forwarding class best-effort-2 there" in r.text for r in done.remarks)
    read_back(done)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('[links.wan.queue]\naqm = "blue"\nlimit = "60p"\n', "links.wan.queue.aqm: Junos cannot"),
        (red("200kB/600kB/0.1", "gentle = true\n"), "links.wan.queue.gentle: Junos has no `gentle`"),
        (red("200kB/600kB/0.1").replace("red", "wred").replace("thresholds", 'drop-at = "head"\nyellow'),
         "links.wan.queue.drop-at: Junos has no `drop-at`"),
        (red("200kB/600kB/0.1") + METERS.replace('out = "drop-red"', 'out = "drop"'),
         "links.wan.meters[1].profile.out: a three-color policer drops red packets only"),
        (red("200kB/600kB/0.1") + TSW,
         "links.wan.meters[0].profile.marker: Junos has no policer like tsw"),
    ],
)  # fmt: skip
def test_what_junos_cannot_express_is_refused_or_left_out(table: str, said: str) -> None:
    with pytest.raises(PerhopError) as raised:
        junos(table)
    assert str(raised.value).startswith(f"x.toml: {said}")
    assert "\n" not in str(raised.value)
    done = junos(table, lenient=True)
    assert any(f"{r.place}: {r.text}".startswith(said) for r in done.remarks if r.kind == "left out")
    read_back(done, lenient=True, link_rate=2e7)


def test_points_within_a_percent_get_a_level_each() -> None:
    assert "fill-level [ 99 100 ];" in body(junos(red("990kB/994kB/0.1")))
    with pytest.raises(PerhopError, match=r"points closer to each other than 1 % of the limit, at 99\.9 %"):
        junos(red("997kB/999kB/0.1"))


def test_profiles_become_loss_priorities() -> None:
    rule = f'aqm = "wred", limit = "1MB", {EXACT}, profiles = ['
    rule += '{ match = { dscp = [1, 2] }, curve = "100kB/300kB/0.1" }, '
    rule += '{ match = { dscp = 3 }, curve = "segmented 500kB/0.5" }]'
    table = '[links.wan.queue]\nscheduler = "wfq"\n[[links.wan.queue.queues]]\nname = "D"\n'
    table += f'match = {{ dscp = [1, 2, 3, 4] }}\nrate = "5Mbps"\nrule = {{ {rule} }}\n'
    table += '[[links.wan.queue.queues]]\nname = "rest"\nrule = { aqm = "drop-tail", limit = "9kB" }\n'
    lines = body(junos(table, shape=True))
    assert "loss-priority low code-points [ 000001 000010 ];" in lines
    assert "loss-priority medium-high code-points 000011;" in lines
    assert "loss-priority high code-points 000100;" in lines  # without a drop profile
    assert [line for line in lines if line.startswith("drop-profile-map")] == [
        "drop-profile-map loss-priority low protocol any drop-profile D-PROFILES-0;",
        "drop-profile-map loss-priority medium-high protocol any drop-profile D-PROFILES-1;",
    ]
    many = table.replace("profiles = [", "profiles = [{ match = { dscp = 4 }, curve = '1kB/9kB/0.1' }, ")
    many = many.replace("[1, 2, 3, 4]", "[1, 2, 3, 4, 5]")
    with pytest.raises(PerhopError, match="4 kinds of packets in one queue; three loss priorities"):
        junos(many, shape=True)


def test_every_link_of_the_examples_is_written_or_refused_in_one_line() -> None:
    found = 0
    for path in EXAMPLES:
        try:
            text = reading.canonical(path)
        except PerhopError:
            continue
        for name in json.loads(text).get("links") or {}:
            try:
                done = exported(text, path.name, "junos", link=name, lenient=True)
            except PerhopError as error:
                assert "\n" not in str(error)  # noqa: PT017 - whether it raises depends on the link
                continue
            found += 1
            read_back(done, lenient=True)
    assert found > 5


FLAT = """\
[links.wan.queue]
scheduler = "htb"
[[links.wan.queue.classes]]
name = "all"
rate = "20Mbps"
[[links.wan.queue.classes.classes]]
name = "voice"
match = { dscp = ["EF"] }
rate = "2Mbps"
prio = 0
queue = { aqm = "drop-tail", limit = "12500B" }
[[links.wan.queue.classes.classes]]
name = "gold"
match = { dscp = ["AF11"] }
rate = "8Mbps"
ceil = "12Mbps"
prio = 1
queue = { aqm = "drop-tail", limit = "50kB" }
[[links.wan.queue.classes.classes]]
name = "rest"
rate = "10Mbps"
ceil = "20Mbps"
prio = 1
queue = { aqm = "drop-tail", limit = "50kB" }
"""


def test_one_level_of_a_tree_is_schedulers_with_shaping_rates() -> None:
    done = junos(FLAT)
    lines = body(done)
    voice, gold, rest = (lines.index(f"{name}-SCHEDULER {{") for name in ("voice", "gold", "rest"))
    assert lines[voice + 1 : voice + 3] == ["priority strict-high;", "shaping-rate 2m;"]
    assert lines[gold + 1 : gold + 3] == ["transmit-rate 8m;", "shaping-rate 12m;"]
    assert lines[rest + 1 : rest + 3] == ["transmit-rate 10m;", "priority low;"]
    tree = read_back(done, link_rate=2e7)["queue"]["classes"][0]
    assert [(c["rate"], c.get("ceil", c["rate"]), c["prio"]) for c in tree["classes"]] == [
        ("2Mbps", "2Mbps", 0), ("8Mbps", "12Mbps", 1), ("10Mbps", "20Mbps", 1),
    ]  # fmt: skip


def test_what_writes_a_deeper_tree_is_said() -> None:
    deep = (
        FLAT + '[[links.wan.queue.classes]]\nname = "other"\nrate = "1Mbps"\nqueue = { aqm = "drop-tail" }\n'
    )
    deep = deep.replace('name = "rest"\n', 'name = "rest"\nmatch = { dscp = [0] }\n')
    deep = deep.replace('aqm = "drop-tail" }\n', 'aqm = "drop-tail", limit = "9p" }\n')
    with pytest.raises(
        PerhopError, match=r"--to junos cannot express .* htb .*; --to ios, --to tc and --to perhop-r"
    ):
        junos(deep)


@pytest.mark.parametrize("path", sorted(CONFIGURATIONS.glob("*.*")), ids=lambda path: path.name)
def test_a_second_export_changes_nothing(path: Any) -> None:  # noqa: ANN401 - a Path
    answers = Answers(1e9, 1000.0, buffer(1e6), {}, lenient=True)
    toml = imported(Source([(path.name, path.read_bytes())]), answers, interface=PORTS.get(path.name)).toml
    try:
        first = exported(reading.canonical(toml), path.name, "junos", lenient=True)
    except PerhopError as error:
        assert "--to junos cannot express the scheduler" in str(error)  # noqa: PT017 - of a tree
        return
    again = imported(Source([("x.cfg", first.text.encode())]), answers, dialect="junos").toml
    second = exported(reading.canonical(again), path.name, "junos", lenient=True)
    profiles = [
        [line for line in body(one) if "fill-level" in line or "probability" in line]
        for one in (first, second)
    ]
    left_out = [remark for remark in first.remarks if remark.kind == "left out"]
    assert sorted(profiles[0]) == sorted(profiles[1]) or left_out


percents = st.lists(st.integers(1, 96), min_size=3, max_size=3, unique=True).map(sorted)


@st.composite
def curves(draw: st.DrawFn, unit: int) -> str:
    """A curve in whole percents of a limit of 100 `unit` bytes."""
    low, middle, high = draw(percents)
    first = draw(st.integers(2, 50))
    second = draw(st.integers(first + 1, 99))
    match draw(st.sampled_from(["ramp", "interpolate", "segmented"])):
        case "ramp":
            return f"{low * unit}B/{high * unit}B/{second / 100}"
        case "interpolate":
            return f"interpolate {low * unit}B/0, {middle * unit}B/{first / 100}, {(high + 3) * unit}B/1"
        case _:
            return f"segmented {low * unit}B/{first / 100}, {high * unit}B/{second / 100}"


@st.composite
def ports(draw: st.DrawFn) -> str:
    """A port that Junos can say: classes with guarantees, the last one gets the rest."""
    count = draw(st.integers(1, 4))
    text = '[links.wan.queue]\nscheduler = "wfq"\n'
    for number in range(1, count + 1):
        unit = draw(st.integers(10, 3000))
        limit, keys = f'"{100 * unit}B"', f"{EXACT}, ecn = {str(draw(st.booleans())).lower()}"
        match draw(st.sampled_from(["drop-tail", "red", "wred"])):
            case "drop-tail":
                rule = f'aqm = "drop-tail", limit = {limit}'
            case "red":
                low, _, high = draw(percents)
                curve = f"{low * unit}B/{high * unit}B/{draw(st.integers(1, 100)) / 100}"
                rule = f'aqm = "red", thresholds = "{curve}", limit = {limit}, {keys}'
            case _:
                # Equal ones come back as one, for all packets.
                drawn = draw(st.lists(curves(unit), min_size=3, max_size=3, unique=True))
                colors = [f'{c} = "{curve}"' for c, curve in zip(COLORS, drawn, strict=True)]
                rule = f'aqm = "wred", {", ".join(colors)}, limit = {limit}, {keys}'
        text += f'[[links.wan.queue.queues]]\nname = "C{number}"\nrule = {{ {rule} }}\n'
        text += f'rate = "{draw(st.integers(100, 4900))}kbps"\n'
        text += f'match = {{ dscp = ["AF{number}1", "AF{number}2", "AF{number}3"] }}\n'
    text += '[[links.wan.queue.queues]]\nname = "rest"\nrule = { aqm = "drop-tail", limit = "30kB" }\n'
    if draw(st.booleans()):
        out = draw(st.sampled_from(["mark", "drop-red"]))
        text += '[[links.wan.meters]]\nname = "m"\nmatch = { dscp = "AF11" }\n'
        text += 'profile = { marker = "srtcm", burst = "9kB", excess-burst = "5kB", '
        text += f'rate = "{draw(st.integers(100, 900))}kbps", out = "{out}" }}\n'
    return text


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(ports())
def test_any_port_comes_back_up_to_the_stated_rounding(table: str) -> None:
    given = link(HEAD + table + FLOW)
    done = junos(table, shape=True)
    said = [r.place for r in done.remarks if r.kind == "rounded"]
    ours = read_back(done)
    assert [m["profile"] for m in ours.get("meters", [])] == [m["profile"] for m in given.get("meters", [])]
    assert len(ours["queue"]["queues"]) == len(given["queue"]["queues"])
    for number, (one, two) in enumerate(zip(ours["queue"]["queues"], given["queue"]["queues"], strict=True)):
        place = f"links.wan.queue.queues[{number}].rule"
        # A limit is whole microseconds at the class's rate; fills are parts of it, in whole bytes.
        slack = 0.0 if not any(text.startswith(place) for text in said) else 0.51e-6 * 5e6 / 8
        rule, wanted = one.pop("rule"), two.pop("rule")
        assert one == two
        assert rule.keys() == wanted.keys()
        for key, value in wanted.items():
            if isinstance(value, str) and re.search(r"\d", value):
                assert numbers(rule[key]) == [
                    pytest.approx(n, abs=slack + 0.51, rel=1e-9) if n > 1 else n for n in numbers(value)
                ]
            else:
                assert rule[key] == value


def numbers(text: str) -> list[float]:
    """The numbers of a limit or a curve, amounts in bytes."""
    factors = {"kB": 1e3, "MB": 1e6, "B": 1.0, "": 1.0}
    return [float(n) * factors[unit] for n, unit in re.findall(r"([0-9.]+)([kM]?B)?", text)]
