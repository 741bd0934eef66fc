"""Junos class-of-service: golden pairs, realistic configurations in all forms, single statements."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.python.routers.importing import Brought, buffer, of_file, of_text

from perhop.errors import PerhopError
from perhop.routers import READERS, Source, importing

RAMP = """\
class-of-service {{
  drop-profiles {{ R {{ {profile} }} }}
  schedulers {{ s {{ buffer-size 1m; drop-profile-map loss-priority any protocol any drop-profile R; }} }}
  scheduler-maps {{ m {{ forwarding-class best-effort scheduler s; }} }}
  interfaces {{ xe-0/0/0 {{ scheduler-map m; }} }}
}}
"""


def test_the_worked_example() -> None:
    profile = "interpolate { fill-level [ 20 60 61 ]; drop-probability [ 0 10 100 ]; }"
    done = of_text(RAMP.format(profile=profile), link_rate=1e8)
    assert done.link["queue"] == {
        "aqm": "red", "thresholds": "200kB/600kB/0.1", "limit": "1MB", "weight": 1.0, "wait": False,
        "scale-by-size": False, "mean-packet": "1kB",
    }  # fmt: skip
    assert sorted({code for code, _ in done.warnings}) == ["W02", "W05", "W09", "W12"]


@pytest.mark.parametrize(
    ("profile", "curve"),
    [
        (
            "fill-level 50 drop-probability 10; fill-level 80 drop-probability 40;",
            "segmented 500kB/0.1, 800kB/0.4",
        ),
        (
            "interpolate { fill-level [ 40 80 ]; drop-probability [ 8 30 ]; }",
            "interpolate 0B/0, 400kB/0.08, 800kB/0.3, 1MB/1",
        ),
        (
            "interpolate { fill-level [ 10 30 70 ]; drop-probability [ 0 0 20 ]; }",
            "interpolate 300kB/0, 700kB/0.2, 1MB/1",
        ),
    ],
)
def test_curves_of_several_segments_and_steps(profile: str, curve: str) -> None:
    done = of_text(RAMP.format(profile=profile), link_rate=1e8)
    rule = done.link["queue"]
    assert (rule["aqm"], rule["profiles"]) == ("wred", [{"curve": curve}])
    assert done.codes("W06") == []


def test_a_probability_that_falls_stays() -> None:
    profile = "fill-level 50 drop-probability 40; fill-level 80 drop-probability 10;"
    done = of_text(RAMP.format(profile=profile), link_rate=1e8)
    assert done.link["queue"]["profiles"] == [{"curve": "segmented 500kB/0.4, 800kB/0.4"}]
    assert done.codes("W06") == [2]


def test_an_edge_router_with_braces() -> None:
    done = of_file("junos-edge.conf", link_rate=1e8, buffer=buffer(1e6))
    assured = done.queues["assured"]
    assert assured["match"] == {"dscp": ["AF11", "AF13"]}
    assert (assured["rate"], assured["ceil"], assured["prio"]) == ("30Mbps", "100Mbps", 1)
    # 20 ms at the 30 % that the class is sure of.
    assert assured["queue"]["limit"] == "75kB"
    assert assured["queue"]["red"] == "22.5kB/52.5kB/0.2"
    assert assured["queue"]["green"] == "segmented 37.5kB/0.1, 60kB/0.4"
    # Strict, and shaped to 2 Mbit/s.
    voice = done.queues["ef"]
    assert (voice["rate"], voice.get("ceil"), voice["prio"]) == ("2Mbps", None, 0)
    assert done.queues["best-effort"]["queue"]["limit"] == "400kB"
    assert [(f["name"], f["dscp"], f["color"]) for f in done.flows[1:3]] == [
        ("assured", "AF11", "green"),
        ("assured-red", "AF13", "red"),
    ]
    assert done.codes("W13") == [21]


def test_set_lines_with_filters_and_policers() -> None:
    done = of_file("junos-set.conf", buffer=buffer(1e6), interface="ge-0/0/1")
    assert done.link["rate"] == "50Mbps"
    queues = done.queues
    # 60, 90 and 91 % of 400 kB, 40 % of the buffer.
    assert queues["assured"]["rule"]["green"] == "240kB/360kB/0.05"
    assert queues["assured"]["rule"]["yellow"] == "80kB/240kB/0.1"
    # Voice is strict; 45 and 35 % of 50 Mbit/s.
    assert done.link["queue"]["scheduler"] == "llq"
    assert [queue.get("rate") for queue in queues.values()] == [None, "22.5Mbps", "17.5Mbps"]
    assert done.codes("W06") == []
    assert queues["best-effort"]["rule"]["limit"] == "600kB"
    assert queues["voice"]["rule"]["limit"] == "25kB"
    voice, assured = done.link["meters"]
    assert voice["match"] == {"dscp": ["EF"]}
    assert voice["profile"] == {"marker": "token-bucket", "rate": "5Mbps", "burst": "625kB", "out": "drop"}
    assert assured["match"] == {"dscp": ["AF31", "AF32", "AF33"]}
    assert assured["profile"] == {
        "marker": "trtcm", "rate": "10Mbps", "burst": "100kB", "peak-rate": "20Mbps", "peak-burst": "200kB",
        "out": "drop-red",
    }  # fmt: skip
    assert {1, 20, 51}.issubset(done.codes("W13"))


def test_json_says_the_same_as_braces() -> None:
    done = of_file("junos.json", link_rate=1e8, buffer=buffer(1e6))
    assert done.dialect == "junos"
    gold = done.queues["gold"]
    assert gold["rate"] == "60Mbps"
    assert gold["rule"]["red"] == "180kB/420kB/0.2"
    assert "green" not in gold["rule"]
    assert done.queues["best-effort"]["rule"]["limit"] == "400kB"
    assert done.codes("W13") == []


def test_inactive_parts_and_groups_are_reported() -> None:
    done = of_file(
        "junos-groups.conf", link_rate=1e9, buffer=buffer(1e6), matches={"network-control": frozenset({48})}
    )
    # First up to its 100 Mbit/s; above these it shares with the other, which has a ceiling (`exact`).
    control = done.queues["network-control"]
    assert (control["rate"], control["ceil"], control["prio"]) == ("100Mbps", "1Gbps", 0)
    assert (done.queues["best-effort"]["rate"], done.queues["best-effort"].get("ceil")) == ("900Mbps", None)
    assert done.codes("W13") == [2, 4, 6, 16]
    assert done.codes("W07") == [11]


def test_a_policer_at_a_unit() -> None:
    done = of_file("junos-policer.conf")
    assert done.link["rate"] == "10Mbps"
    # 100 ms at 10 Mbit/s are 125 kB; 5 % from 70 % on, all from 95 % on.
    assert done.link["queue"]["limit"] == "125kB"
    assert done.link["queue"]["profiles"] == [{"curve": "segmented 87.5kB/0.05, 118.75kB/1"}]
    assert done.link["meters"][0]["profile"]["rate"] == "32kbps"
    assert (done.codes("W16"), done.codes("W15")) == ([8], [9])


def test_all_forms_give_the_same_statements() -> None:
    tree = {"class-of-service": {"drop-profiles": [{"name": "R", "fill-level": [{"name": "10"}]}]}}
    texts = [
        "class-of-service { drop-profiles { R { fill-level 10; } } }",
        "set class-of-service drop-profiles R fill-level 10",
        json.dumps({"configuration": tree}),
    ]
    words = []
    for text in texts:
        source = Source([("x", text.encode())])
        reading = importing.read(source, READERS["junos"])
        words.append(reading.account)
    assert len(words) == 3
    assert not any(account.findings for account in words)


SCHEDULED = """\
set class-of-service interfaces xe-0/0/0 scheduler-map SM
set class-of-service scheduler-maps SM forwarding-class ef scheduler E
set class-of-service scheduler-maps SM forwarding-class be scheduler B
set class-of-service forwarding-classes queue 1 ef
set class-of-service forwarding-classes queue 0 be
set class-of-service schedulers E buffer-size 10k
set class-of-service schedulers B buffer-size 90k
set class-of-service classifiers dscp CL forwarding-class ef loss-priority low code-points ef
set class-of-service interfaces xe-0/0/0 unit 0 classifiers dscp CL
"""


def test_a_classifier_that_is_bound_to_no_interface_is_reported() -> None:
    assert of_text(SCHEDULED, link_rate=1e8).codes("W15") == []
    unbound = "".join(SCHEDULED.splitlines(keepends=True)[:-1])
    assert of_text(unbound, link_rate=1e8).codes("W15") == [8]


@pytest.mark.parametrize(
    "speed", ["set interfaces xe-0/0/0 speed 1g\n", "set interfaces xe-0/0/0 gigether-options speed 1g\n"]
)
def test_the_speed_of_an_interface_is_its_rate(speed: str) -> None:
    done = of_text(SCHEDULED + speed)
    assert done.link["rate"] == "1Gbps"
    assert done.codes("W13") == []


def test_a_shaper_with_a_burst() -> None:
    shaper = "set class-of-service interfaces xe-0/0/0 shaping-rate 100m burst-size 10k\n"
    done = of_text(SCHEDULED + shaper, link_rate=1e9)
    queue = done.link["queue"]
    assert (queue["scheduler"], queue["rate"], queue["burst"]) == ("shaper", "100Mbps", "10kB")


@pytest.mark.parametrize(
    ("lines", "finding"),
    [
        (["E transmit-rate 10m exact", "E transmit-rate rate-limit"], ("W10", 11)),
        (["E transmit-rate 1m exact", "E shaping-rate 2m"], ("W13", 10)),
        (["E priority strict-high", "E transmit-rate 1m", "E shaping-rate 2m"], ("W13", 11)),
        (["E shaping-rate 2m burst-size 3k"], ("W10", 10)),
        (["B drop-profile-map loss-priority any protocol tcp drop-profile D"], ("W07", 10)),
        (["B drop-profile-map loss-priority any protocol non-tcp drop-profile D"], ("W07", 10)),
    ],
)
def test_values_without_effect_are_reported(lines: list[str], finding: tuple[str, int]) -> None:
    text = SCHEDULED + "".join(f"set class-of-service schedulers {line}\n" for line in lines)
    profile = (
        "set class-of-service drop-profiles D interpolate fill-level [ 30 70 ] drop-probability [ 0 80 ]\n"
    )
    done = of_text(text + profile, link_rate=1e8)
    assert finding in done.warnings


def test_the_order_of_protocols_does_not_matter() -> None:
    maps = [
        f"set class-of-service schedulers B drop-profile-map loss-priority any protocol {protocol} "
        f"drop-profile {name}\n"
        for protocol, name in (("tcp", "T"), ("non-tcp", "N"))
    ]
    profiles = "".join(
        f"set class-of-service drop-profiles {name} interpolate fill-level [ {low} 70 ] "
        "drop-probability [ 0 80 ]\n"
        for name, low in (("T", 30), ("N", 60))
    )
    there = of_text(SCHEDULED + "".join(maps) + profiles, link_rate=1e8)
    back = of_text(SCHEDULED + "".join(maps[::-1]) + profiles, link_rate=1e8)
    assert there.queues == back.queues
    assert (there.codes("W07"), back.codes("W07")) == ([11], [10])


MAPPED = """\
set class-of-service schedulers s buffer-size 1m
set class-of-service scheduler-maps m forwarding-class best-effort scheduler s
set class-of-service interfaces xe-0/0/0 scheduler-map m
"""


def test_a_shaper_of_the_unit_is_the_shaper_of_the_port() -> None:
    done = of_text(MAPPED + "set class-of-service interfaces xe-0/0/0 unit 0 shaping-rate 10m\n")
    assert done.link["rate"] == "10Mbps"
    assert done.codes("W06") == []


def test_shapers_beside_another_are_reported() -> None:
    units = "".join(f"set class-of-service interfaces xe-0/0/0 unit {n} shaping-rate 1{n}m\n" for n in (0, 1))
    assert of_text(MAPPED + units, link_rate=1e8).codes("W06") == [4, 5]
    both = "set class-of-service interfaces xe-0/0/0 shaping-rate 20m\n" + units.splitlines()[0] + "\n"
    done = of_text(MAPPED + both)
    assert (done.link["rate"], done.codes("W06")) == ("20Mbps", [5])


def test_a_class_with_a_priority_in_the_fabric_is_read() -> None:
    text = MAPPED + "set class-of-service forwarding-classes class best-effort queue-num 5 priority high\n"
    done = of_text(text, link_rate=1e8)
    assert done.codes("W13") == [4]
    assert any("fabric" in text for text in done.texts)


def test_the_rate_that_remains_names_its_line() -> None:
    done = of_text(MAPPED + "set class-of-service schedulers s transmit-rate remainder\n", link_rate=1e8)
    assert 4 in done.codes("W05")


def test_aliases_of_codepoints_stand_before_or_behind_the_classifier() -> None:
    text = """\
set class-of-service classifiers dscp C forwarding-class gold loss-priority low code-points [ my-gold 101011 ]
set class-of-service classifiers inet-precedence D forwarding-class gold loss-priority low code-points third
set class-of-service code-point-aliases dscp my-gold 001010
set class-of-service code-point-aliases dscp spare 000011
set class-of-service code-point-aliases inet-precedence third 011
set class-of-service scheduler-maps M forwarding-class gold scheduler G
set class-of-service scheduler-maps M forwarding-class best-effort scheduler B
set class-of-service interfaces ge-0/0/0 scheduler-map M
set class-of-service interfaces ge-0/0/0 unit 0 classifiers dscp C
set class-of-service interfaces ge-0/0/1 scheduler-map M
set class-of-service interfaces ge-0/0/1 unit 0 classifiers inet-precedence D
set class-of-service schedulers G transmit-rate percent 40
set class-of-service schedulers B transmit-rate percent 60
"""
    done = of_text(text, link_rate=1e8, buffer=buffer(1e6), interface="ge-0/0/0")
    assert done.queues["gold"]["match"] == {"dscp": ["AF11", 43]}
    assert done.codes("W13") == [2, 4, 5, 10, 11]  # the spare alias, and what is of the other interface
    other = of_text(text, link_rate=1e8, buffer=buffer(1e6), interface="ge-0/0/1")
    assert other.queues["gold"]["match"]["dscp"] == ["CS3", 25, "AF31", 27, "AF32", 29, "AF33", 31]


@pytest.mark.parametrize("bound", ["C", "default"])
def test_the_default_classifier(bound: str) -> None:
    text = f"""\
set class-of-service classifiers dscp C import default
set class-of-service classifiers dscp C forwarding-class network-control loss-priority low code-points af11
set class-of-service scheduler-maps M forwarding-class expedited-forwarding scheduler S
set class-of-service scheduler-maps M forwarding-class assured-forwarding scheduler S
set class-of-service scheduler-maps M forwarding-class network-control scheduler S
set class-of-service scheduler-maps M forwarding-class best-effort scheduler S
set class-of-service schedulers S transmit-rate percent 25
set class-of-service interfaces ge-0/0/0 scheduler-map M
set class-of-service interfaces ge-0/0/0 unit 0 classifiers dscp {bound}
"""
    done = of_text(text, link_rate=1e8, buffer=buffer(1e6))
    moved = bound == "C"
    assert {name: q.get("match", {}).get("dscp") for name, q in done.queues.items()} == {
        "expedited-forwarding": ["EF"],
        "assured-forwarding": ["AF12", "AF13"] if moved else ["AF11", "AF12", "AF13"],
        "network-control": ["AF11", "CS6", "CS7"] if moved else ["CS6", "CS7"],
        "best-effort": None,
    }


FILTERED = """\
set class-of-service scheduler-maps M forwarding-class gold scheduler G
set class-of-service scheduler-maps M forwarding-class best-effort scheduler B
set class-of-service schedulers G transmit-rate percent 40
set class-of-service schedulers B transmit-rate percent 60
set class-of-service traffic-control-profiles T scheduler-map M
set class-of-service traffic-control-profiles T shaping-rate 50m
set class-of-service interfaces ge-0/0/0 unit 0 output-traffic-control-profile T
set firewall policer P if-exceeding bandwidth-limit 1m
set firewall policer P if-exceeding burst-size-limit 15k
set firewall policer P then discard
set firewall family inet filter IN term a from {condition}
set firewall family inet filter IN term a then forwarding-class gold
set firewall family inet filter IN term b from precedence 1
set firewall family inet filter IN term b then policer P
set interfaces ge-0/0/0 unit 0 family inet filter input IN
"""


def test_a_filter_of_arriving_packets_chooses_classes() -> None:
    text = FILTERED.format(condition="dscp af31")
    done = of_text(text, link_rate=1e9, buffer=buffer(1e6))
    shaper = done.link["queue"]
    assert (shaper["scheduler"], shaper["rate"]) == ("shaper", "50Mbps")
    assert done.queues["gold"]["match"] == {"dscp": ["AF31"]}
    with pytest.raises(PerhopError, match=r"--match gold=DSCP .*from protocol udp"):
        of_text(FILTERED.format(condition="protocol udp"), link_rate=1e9, buffer=buffer(1e6))


def test_a_filter_of_arriving_packets_polices() -> None:
    text = FILTERED.format(condition="dscp af31")
    done = of_text(text, link_rate=1e9, interface="ge-0/0/0.0 ingress")
    (meter,) = done.link["meters"]
    assert (meter["profile"]["rate"], meter["profile"]["out"]) == ("1Mbps", "drop")
    assert meter["match"]["dscp"][0] == "CS1"
    assert len(meter["match"]["dscp"]) == 8


def test_a_policer_of_arriving_packets_is_named_beside_queues() -> None:
    text = FILTERED.format(condition="dscp af31")
    done = of_text(text, link_rate=1e9, buffer=buffer(1e6), interface="ge-0/0/0.0")
    assert done.codes("W10") == [8]
    assert any('imported by --interface "ge-0/0/0.0 ingress"' in said for said in done.texts)
    # One that polices departing packets, too, is used; the line is that of the other application.
    both = f"{text}set interfaces ge-0/0/0 unit 0 family inet policer output P\n"
    done = of_text(both, link_rate=1e9, buffer=buffer(1e6), interface="ge-0/0/0.0")
    assert [meter["profile"]["rate"] for meter in done.link["meters"]] == ["1Mbps"]
    assert done.codes("W10") == [15]


DEPARTING = """\
set class-of-service classifiers dscp C forwarding-class gold loss-priority low code-points [ af11 af12 ]
set class-of-service classifiers dscp C forwarding-class voice loss-priority low code-points ef
set class-of-service scheduler-maps M forwarding-class voice scheduler S
set class-of-service scheduler-maps M forwarding-class gold scheduler S
set class-of-service scheduler-maps M forwarding-class best-effort scheduler S
set class-of-service schedulers S transmit-rate percent 30
set class-of-service interfaces ge-0/0/0 scheduler-map M
set class-of-service interfaces ge-0/0/0 unit 0 classifiers dscp C
set interfaces ge-0/0/0 unit 0 family inet filter output OUT
"""


def _departing(*lines: str, **answers: Any) -> Brought:  # noqa: ANN401 - of several types
    listed = "".join(f"set firewall family inet filter OUT term {line}\n" for line in lines)
    return of_text(DEPARTING + listed, link_rate=1e8, buffer=buffer(1e6), **answers)


@pytest.mark.parametrize(
    ("lines", "voice", "gold"),
    [
        ([], ["EF"], ["AF11", "AF12"]),
        (["a from dscp [ ef 8 ]", "a then forwarding-class gold"], None, ["CS1", "AF11", "AF12", "EF"]),
        (["a from dscp af12", "a then forwarding-class best-effort"], ["EF"], ["AF11"]),
        (["a from forwarding-class gold", "a then forwarding-class voice"], ["AF11", "AF12", "EF"], None),
        (
            ["a from dscp af11", "a then accept", "b from dscp [ 10 12 ]", "b then forwarding-class voice"],
            ["AF12", "EF"],
            ["AF11"],
        ),
        (
            ["a from dscp ef", "a then forwarding-class gold", "a then next term", "b from dscp [ ef 8 ]",
             "b then forwarding-class voice"],
            ["CS1", "EF"],
            ["AF11", "AF12"],
        ),
        (["a from dscp af12", "a then forwarding-class lost"], ["EF"], ["AF11"]),
    ],
)  # fmt: skip
def test_a_filter_of_departing_packets_chooses_queues(
    lines: list[str], voice: list[str] | None, gold: list[str] | None
) -> None:
    done = _departing(*lines)
    found = {name: queue.get("match", {}).get("dscp") for name, queue in done.queues.items()}
    expected = {"voice": voice, "gold": gold, "best-effort": None}
    assert found == {name: codes for name, codes in expected.items() if codes or name == "best-effort"}
    lost = any("lost has no scheduler at ge-0/0/0" in text for text in done.texts)
    assert lost == any("lost" in line for line in lines)


def test_conditions_of_a_filter_of_departing_packets_are_asked_for_or_refused() -> None:
    udp = "a from protocol udp"
    with pytest.raises(PerhopError, match=r"--match gold=DSCP \(line 10: class gold: `from protocol udp`"):
        _departing(udp, "a then forwarding-class gold")
    done = _departing(udp, "a then forwarding-class gold", matches={"gold": frozenset({18})})
    assert done.queues["gold"]["match"]["dscp"] == ["AF11", "AF12", "AF21"]
    with pytest.raises(
        PerhopError, match=r"line 10: filter OUT, term a: `from protocol udp` is no codepoint"
    ):
        _departing(udp, "a then forwarding-class best-effort")
    assert 10 in _departing(udp, "a then forwarding-class best-effort", lenient=True).codes("W13")


def test_a_policer_of_packets_a_second() -> None:
    text = FILTERED.format(condition="dscp af31")
    text = text.replace("if-exceeding bandwidth-limit 1m", "if-exceeding-pps pps-limit 1k")
    text = text.replace("if-exceeding burst-size-limit 15k", "if-exceeding-pps packet-burst 15")
    done = of_text(text, link_rate=1e9, interface="ge-0/0/0.0 ingress")
    profile = done.link["meters"][0]["profile"]
    assert (profile["rate"], profile["burst"]) == ("8Mbps", "15kB")  # of packets of 1000 bytes


@pytest.mark.parametrize(
    "line",
    [
        "set class-of-service schedulers G transmit-rat percent 40",
        "set class-of-service schedulers G priority highest",
        "set class-of-service interfaces ge-0/0/0 unit 0 forwarding-class gold",
    ],
)
def test_a_line_that_is_not_understood_is_refused(line: str) -> None:
    text = FILTERED.format(condition="dscp af31") + f"{line}\n"
    with pytest.raises(PerhopError, match=r"line 16: not understood: .*--lenient"):
        of_text(text, link_rate=1e9, buffer=buffer(1e6))
    assert 16 in of_text(text, link_rate=1e9, buffer=buffer(1e6), lenient=True).codes("W13")


def test_a_value_of_a_policer_that_is_not_understood_is_refused_where_it_polices() -> None:
    text = FILTERED.format(condition="dscp af31")
    text += "set firewall policer P if-exceeding bandwith-limit 1m\n"
    with pytest.raises(PerhopError, match="line 16: not understood"):
        of_text(text, link_rate=1e9, interface="ge-0/0/0.0 ingress")
    assert 16 in of_text(text, link_rate=1e9, buffer=buffer(1e6), interface="ge-0/0/0.0").codes("W13")


def test_the_default_classifier_by_queue_numbers() -> None:
    text = """\
set class-of-service forwarding-classes class BE queue-num 0
set class-of-service forwarding-classes class EF queue-num 1
set class-of-service classifiers dscp C import default
set class-of-service scheduler-maps M forwarding-class EF scheduler S
set class-of-service scheduler-maps M forwarding-class BE scheduler S
set class-of-service schedulers S transmit-rate percent 50
set class-of-service interfaces ge-0/0/0 scheduler-map M
set class-of-service interfaces ge-0/0/0 unit 0 classifiers dscp C
"""
    done = of_text(text, link_rate=1e8, buffer=buffer(1e6))
    assert done.queues["EF"]["match"] == {"dscp": ["EF"]}


@pytest.mark.parametrize("action", ["discard", "loss-priority high", "reject"])
def test_what_a_filter_of_departing_packets_does_is_not_lost(action: str) -> None:
    text = FILTERED.format(condition="dscp af31").replace("filter input IN", "filter output IN")
    text += f"set firewall family inet filter IN term c then {action}\n"
    with pytest.raises(PerhopError, match=f"line 16: filter IN, term c: `then {action}` is not simulated"):
        of_text(text, link_rate=1e9, buffer=buffer(1e6), matches={"gold": frozenset({26})})


@pytest.mark.parametrize(
    "line",
    [
        "set interfaces ge-0/0/0 unit 0 layer2-policer input-policer P",
        "set interfaces ge-0/0/0 unit 0 family inet filter input-list [ A B ]",
    ],
)
def test_filters_and_policers_of_interfaces_that_are_not_read_are_refused(line: str) -> None:
    text = FILTERED.format(condition="dscp af31") + f"{line}\n"
    with pytest.raises(PerhopError, match="line 16: not understood"):
        of_text(text, link_rate=1e9, buffer=buffer(1e6))


def test_percents_of_what_remains() -> None:
    text = (
        JUNOS_OF_THREE
        + """\
set class-of-service schedulers A transmit-rate percent 50
set class-of-service schedulers B transmit-rate remainder 20
set class-of-service schedulers C transmit-rate remainder
"""
    )
    done = of_text(text, link_rate=1e8, buffer=buffer(1.5e5))
    assert done.codes("W13") == []
    carried = done.carried({10: 90.0, 12: 90.0, 0: 90.0})
    # Half of the link, a fifth of the other half, and what is left.
    assert carried == pytest.approx({10: 50.0, 12: 10.0, 0: 40.0}, rel=0.05)


JUNOS_OF_THREE = """\
set class-of-service classifiers dscp C forwarding-class a loss-priority low code-points af11
set class-of-service classifiers dscp C forwarding-class b loss-priority low code-points af12
set class-of-service scheduler-maps M forwarding-class a scheduler A
set class-of-service scheduler-maps M forwarding-class b scheduler B
set class-of-service scheduler-maps M forwarding-class best-effort scheduler C
set class-of-service interfaces ge-0/0/0 scheduler-map M
set class-of-service interfaces ge-0/0/0 unit 0 classifiers dscp C
"""


@pytest.mark.parametrize("exact", ["", " exact"])
def test_priority_high_means_the_same_beside_a_ceiling(exact: str) -> None:
    text = f"""\
set class-of-service interfaces ge-0/0/1 unit 0 scheduler-map SM
set class-of-service interfaces ge-0/0/1 unit 0 shaping-rate 50m
set class-of-service interfaces ge-0/0/1 unit 0 classifiers dscp default
set class-of-service scheduler-maps SM forwarding-class best-effort scheduler BE
set class-of-service scheduler-maps SM forwarding-class expedited-forwarding scheduler EF
set class-of-service scheduler-maps SM forwarding-class assured-forwarding scheduler AF
set class-of-service schedulers BE transmit-rate percent 40
set class-of-service schedulers EF transmit-rate percent 10
set class-of-service schedulers EF priority high
set class-of-service schedulers AF transmit-rate 20m{exact}
"""
    done = of_text(text, buffer=buffer(1e6))
    assert any("strict queue expedited-forwarding beside queues that share" in said for said in done.texts)
    # AF sends nothing: all is shared as 5 to 20.
    carried = done.carried({46: 60.0, 0: 60.0})
    assert carried == pytest.approx({46: 10.0, 0: 40.0}, rel=0.05)
