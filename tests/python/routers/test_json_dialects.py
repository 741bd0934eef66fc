"""VyOS, SONiC and OpenConfig: golden pairs and single values."""

# ruff: noqa: E501 - lines of configurations stay whole
from __future__ import annotations

import pytest
from tests.python.routers.importing import buffer, of_file, of_text

from perhop.errors import PerhopError


def test_the_worked_example_of_sonic() -> None:
    done = of_file("sonic.json", link_rate=1e10, interface="Ethernet0", buffer=buffer(4e6))
    assert done.dialect == "sonic"
    queues = done.queues
    assert list(queues) == ["7", "3", "2", "other"]
    silver = queues["2"]
    assert silver["match"] == {"dscp": ["AF11", "AF12"]}
    assert {key: silver["queue"][key] for key in ("green", "yellow", "weight")} == {
        "green": "600kB/1.5MB/0.1",
        "yellow": "300kB/900kB/0.3",
        "weight": 1.0,
    }
    # 12.5 million bytes a second are 100 Mbit/s.
    assert queues["7"]["rate"] == "100Mbps"
    # 60 and 40 parts of what it leaves, beside one that no codepoint has.
    assert [queues[name]["rate"] for name in ("3", "2")] == ["5.881188118Gbps", "3.920792079Gbps"]
    assert queues["3"]["queue"]["green"] == "1048.576kB/2097.152kB/0.05"
    # `ecn` covers green, which is not enabled: marked, never dropped early.
    assert queues["3"]["queue"]["ecn"] == "mark-only"
    assert silver["queue"]["profiles"] == [{"match": {"color": "red"}}]
    assert {"W02", "W04", "W07", "W09", "W13"} == {code for code, _ in done.warnings} - {"W06", "W12"}
    assert done.codes("W13") == [34, 35]


def test_a_shaper_of_vyos() -> None:
    done = of_file("vyos-shaper.conf", interface="eth0", lenient=True)
    assert (done.dialect, done.link["rate"]) == ("vyos", "20Mbps")
    queues = done.queues
    assert {name: queue["rate"] for name, queue in queues.items()} == {
        "10": "2Mbps", "20": "8Mbps", "default": "6Mbps",
    }  # fmt: skip
    # As VyOS makes them, classes of htb: a class without a ceiling borrows nothing, burst is 15 · 1024.
    assert [queue.get("ceil") for queue in queues.values()] == ["20Mbps", "12Mbps", None]
    assert {queue["burst"] for queue in queues.values()} == {"15.36kB"}
    assert {queue["quantum"] for queue in queues.values()} == {"1.514kB"}
    assert queues["10"]["queue"] == {"aqm": "drop-tail", "limit": "40p"}
    assert queues["20"]["queue"]["scheduler"] == "fq-codel"
    assert queues["default"]["queue"]["limit"] == "127p"
    assert (done.codes("W01"), done.codes("W06")) == ([9], [14])
    assert {12, 1, 15, 16, 17} <= set(done.codes("W13")) | set(done.codes("W15")) | set(done.codes("W17"))


def test_random_detect_of_vyos_has_a_curve_for_each_precedence() -> None:
    done = of_file("vyos-shaper.conf", interface="RD")
    rule = done.link["queue"]
    # Precedence 0: min 9, max 18 packets of 1024 bytes; 5: (9 + 5) 36 / 18 = 28 and 36.
    assert rule["aqm"] == "wred"
    assert rule["profiles"][4] == {"match": {"precedence": 5}, "curve": "28.672kB/36.864kB/0.02"}
    # The largest limit, 147.456 kB, is the queue's; others have 4 times 18 packets.
    assert rule["profiles"][-1] == {"curve": "9.216kB/18.432kB/0.1", "limit": "73.728kB"}
    assert rule["limit"] == "147.456kB"
    assert rule["mean-packet"] == "1.024kB"
    assert done.codes("W07") == []
    assert 15 in done.codes("W17")


def test_openconfig() -> None:
    done = of_file("openconfig.json", link_rate=1e9, buffer=buffer(1e6), matches={"be": frozenset({0})})
    assert done.dialect == "openconfig"
    queues = done.queues
    assert queues["nc"]["match"] == {"dscp": ["CS6"]}
    assert queues["af"]["match"] == {"dscp": ["AF11", "AF12"]}
    # Shares of 30 and 10 behind a strict queue.
    assert [queue.get("weight") for queue in queues.values()] == [None, 30, 10, None]
    rule = queues["af"]["rule"]
    assert (rule["thresholds"], rule["weight"], rule["ecn"]) == ("200kB/600kB/0.1", 2**-4, True)
    # 20 and 60 % of 1 MB; `drop` is false, and there is no weight.
    assert queues["be"]["rule"]["thresholds"] == "200kB/600kB/0.5"
    assert queues["be"]["rule"]["ecn"] == "mark-only"
    assert {"W02", "W04", "W09"} <= {code for code, _ in done.warnings}


def test_braces_of_vyos_end_with_lines() -> None:
    done = of_file("vyos-braces.conf")
    assert (done.dialect, done.link["rate"]) == ("vyos", "10Mbps")
    gold, rest = done.queues.values()
    assert gold["match"] == {"dscp": ["AF11", "AF12"]}
    # A leaf is red: 9 and 18 packets of 1024 bytes.
    assert [(queue["rate"], queue["ceil"]) for queue in (gold, rest)] == [
        ("2Mbps", "10Mbps"), ("8Mbps", "10Mbps"),
    ]  # fmt: skip
    assert gold["burst"] == "15.36kB"
    assert gold["queue"]["aqm"] == "red"
    assert (gold["queue"]["thresholds"], gold["queue"]["limit"]) == ("9.216kB/18.432kB/0.1", "73.728kB")
    assert rest["queue"] == {"aqm": "drop-tail", "limit": "100p"}
    assert done.codes("W13") == [3, 34]


def test_priorities_of_vyos() -> None:
    done = of_file("vyos-priority.conf", link_rate=1e8)
    assert done.link["queue"]["scheduler"] == "priority"
    queues = done.queues
    assert {name: queue["rule"]["limit"] for name, queue in queues.items()} == {
        "1": "20p", "2": "60p", "default": "200p",
    }  # fmt: skip
    assert queues["2"]["match"] == {"dscp": ["CS6", "CS7"]}
    assert done.warnings == []


def test_a_rate_and_a_limiter_of_vyos() -> None:
    done = of_file("vyos-rate.conf", interface="eth3")
    # 50 ms at 4 Mbit/s are 25 kB, and the burst 10 kB of 1024.
    assert (done.link["rate"], done.link["queue"]["limit"]) == ("4Mbps", "35.24kB")
    limiter = of_file("vyos-rate.conf", interface="eth3 ingress", link_rate=1e8)
    first, rest = limiter.link["meters"]
    assert first["match"] == {"dscp": ["AF31"]}
    assert first["profile"] == {"marker": "token-bucket", "rate": "2Mbps", "burst": "20.48kB", "out": "drop"}
    assert (rest["profile"]["rate"], rest["profile"]["burst"]) == ("8Mbps", "15.36kB")


def test_round_robin_and_fq_codel_of_vyos() -> None:
    matches = {"20": frozenset({8})}
    done = of_file("vyos-robin.conf", interface="eth4", link_rate=1e8, matches=matches)
    assert done.link["queue"]["scheduler"] == "drr"
    assert [queue["weight"] for queue in done.queues.values()] == [3000, 1500, 1500]
    assert done.queues["20"]["match"] == {"dscp": ["CS1"]}
    other = of_file("vyos-robin.conf", interface="FQ", link_rate=1e8)
    assert other.link["queue"] == {
        "scheduler": "fq-codel", "limit": "2000p", "target": "5ms", "interval": "100ms", "flows": 512,
        "ecn": False, "law": "linux",
    }  # fmt: skip
    assert (other.codes("W15"), len(other.codes("W13"))) == ([10], 9)


@pytest.mark.parametrize(
    ("leaf", "said"),
    [
        ("class 20 priority 'x'", "not understood"),
        ("class 20 codel-quantum '0'", "not understood"),
        ("class 20 latency '5ms'", "has no effect here"),
        ("wibble '1'", "not understood"),
        ("class 20 wibble '1'", "not understood"),
        ("class 20 flows '0'", "not understood"),
    ],
)
def test_each_leaf_of_vyos_is_used_or_reported(leaf: str, said: str) -> None:
    text = f"""\
set qos policy shaper WAN bandwidth '10mbit'
set qos policy shaper WAN class 20 bandwidth '3mbit'
set qos policy shaper WAN class 20 match Z ip dscp 'AF21'
set qos policy shaper WAN default bandwidth '10%'
set qos policy shaper WAN {leaf}
set qos interface eth0 egress 'WAN'
"""
    done = of_text(text, lenient=True)
    assert done.codes("W13") == [5]
    assert any(said in line for line in done.texts)


@pytest.mark.parametrize(
    ("leaf", "key", "value", "codes"),
    [
        ("class 20 priority '3'", "prio", 3, []),
        ("class 20 priority '20'", "prio", 7, ["W16"]),
        ("class 20 burst '30k'", "burst", "30.72kB", []),
        ("class 20 codel-quantum '3000'", "quantum", "3kB", []),
        ("class 20 ceiling '50%'", "ceil", "5Mbps", []),
        ("class 20 ceiling '2mbit'", "rate", "2Mbps", ["W16"]),
        ("class 20 bandwidth 'auto'", "rate", "10Mbps", ["W17"]),
    ],
)
def test_leaves_of_a_shaper_of_vyos_are_those_of_htb(
    leaf: str, key: str, value: object, codes: list[str]
) -> None:
    text = f"""\
set qos policy shaper WAN bandwidth '10mbit'
set qos policy shaper WAN class 20 bandwidth '3mbit'
set qos policy shaper WAN class 20 match Z ip dscp 'AF21'
set qos policy shaper WAN default bandwidth '10%'
set qos policy shaper WAN {leaf}
set qos interface eth0 egress 'WAN'
"""
    done = of_text(text)
    assert done.queues["20"][key] == value
    assert [code for code, _ in done.warnings if code in {"W13", "W16", "W17"}] == codes


def test_leaves_of_a_limiter_of_vyos_are_reported() -> None:
    text = """\
set qos policy limiter IN class 5 bandwidth '2mbit'
set qos policy limiter IN class 5 match Z ip dscp 'AF21'
set qos policy limiter IN class 5 wibble '1'
set qos policy limiter IN wobble '1'
set qos interface eth0 ingress 'IN'
"""
    assert of_text(text, link_rate=1e8).codes("W13") == [3, 4]


SWITCH = """\
{
 "PORT": {"Ethernet0": {
   "speed": "25000",
   "alias": "Eth1/1"
 }, "Ethernet4": {
   "speed": "10000"
 }},
 "SCHEDULER": {"v": {"type": "STRICT", "pir": "125000000", "pbs": "65536"},
  "d": {"type": "DWRR", "weight": "20", "cir": "250000000"}, "port": {"pir": "2500000000"}},
 "DSCP_TO_TC_MAP": {"A": {"46": "5", "0": "0"}},
 "TC_TO_QUEUE_MAP": {"A": {"5": "5", "0": "0"}},
 "PORT_QOS_MAP": {"Ethernet0": {"dscp_to_tc_map": "A", "tc_to_queue_map": "A",
   "pfc_enable": "3,4",
   "scheduler": "port"
 }},
 "QUEUE": {"Ethernet0|5": {"scheduler": "v"}, "Ethernet0|0": {"scheduler": "d"}}
}
"""


def test_a_weight_beside_a_guaranteed_rate_of_sonic_is_reported() -> None:
    text = """{"PORT": {"Ethernet0": {"speed": "1000"}},
 "DSCP_TO_TC_MAP": {"M": {"10": "3", "0": "0"}}, "TC_TO_QUEUE_MAP": {"M": {"0": "0", "3": "3"}},
 "PORT_QOS_MAP": {"Ethernet0": {"dscp_to_tc_map": "M", "tc_to_queue_map": "M"}},
 "SCHEDULER": {"a": {"type": "DWRR", "weight": "1"},
  "b": {"type": "DWRR", "weight": "3", "cir": "12500000", "pir": "25000000"}},
 "QUEUE": {"Ethernet0|0": {"scheduler": "a"}, "Ethernet0|3": {"scheduler": "b"}}}"""
    done = of_text(text, buffer=buffer(1e6))
    assert any("class 3: `DWRR weight 3` has no effect beside `cir 12500000" in said for said in done.texts)


def test_speed_and_shapers_of_sonic() -> None:
    done = of_text(SWITCH, buffer=buffer(1e6))
    assert done.link["rate"] == "25Gbps"
    shaper = done.link["queue"]
    assert (shaper["scheduler"], shaper["rate"]) == ("shaper", "20Gbps")
    voice, rest = done.queues.values()
    assert (voice["rate"], voice.get("ceil"), voice["prio"]) == ("1Gbps", None, 0)
    assert voice["cburst"] == "65.536kB"
    # `cir` is a guarantee; queue 0 takes what no map names.
    assert (rest["rate"], rest["ceil"], rest["prio"], rest.get("match")) == ("2Gbps", "20Gbps", 1, None)
    assert ("W09", 13) in done.warnings  # pauses
    assert done.codes("W13") == [4, 6, 9]  # the alias, the other port, and a weight beside `cir`
    answered = of_text(SWITCH, buffer=buffer(1e6), link_rate=1e11)
    assert answered.link["rate"] == "100Gbps"


def test_maps_of_sonic_that_no_port_binds() -> None:
    text = SWITCH.replace('"dscp_to_tc_map": "A", "tc_to_queue_map": "A",', "")
    done = of_text(text, buffer=buffer(1e6))
    assert done.queues["5"]["match"] == {"dscp": ["EF"]}
    assert any("PORT_QOS_MAP does not bind both maps" in line for line in done.texts)
    dot1p = text.replace('"pfc_enable": "3,4"', '"dot1p_to_tc_map": "B"')
    with pytest.raises(PerhopError, match="line 13: PORT_QOS_MAP: `dot1p_to_tc_map`"):
        of_text(dot1p, buffer=buffer(1e6))


ROUTER = """\
{"openconfig-qos:qos": {
 "queues": {"queue": [
  {"name": "nc", "config": {"name": "nc"}},
  {"name": "be", "config": {"name": "be"}},
  {"name": "spare", "config": {"name": "spare"}}
 ]},
 "forwarding-groups": {"forwarding-group": [
  {"name": "NC", "config": {"name": "NC", "output-queue": "nc"}},
  {"name": "BE", "config": {"name": "BE", "output-queue": "be"}}
 ]},
 "classifiers": {"classifier": [{"name": "c", "terms": {"term": [
  {"id": "0", "conditions": {"ipv4": {"config": {"dscp-set": [48, 56]%s}}}, "actions": {"config": {"target-group": "NC"}}},
  {"id": "1", "conditions": {"ipv4": {"config": {"dscp": 0}}}, "actions": {"config": {"target-group": "BE"}}}
 ]}}]},
 "scheduler-policies": {"scheduler-policy": [
  {"name": "s", "schedulers": {"scheduler": [
   {"sequence": 0, "config": {"priority": "STRICT"}, "inputs": {"input": [{"id": "n", "config": {"queue": "nc"}}]}},
   {"sequence": 1, "inputs": {"input": [{"id": "b", "config": {"queue": "be", "weight": "10"}}]}}
  ]}},
  {"name": "in", "schedulers": {"scheduler": [{"sequence": 0, "one-rate-two-color": {
   "config": {"cir": "5000000", "bc": 10000, "queuing-behavior": "POLICE"},
   "exceed-action": {"config": {"drop": true}}
  }}]}}
 ]},
 "interfaces": {"interface": [{
  "interface-id": "eth1",
  "input": {"scheduler-policy": {"config": {"name": "in"}}},
  "output": {"scheduler-policy": {"config": {"name": "s"}}}
 }]}
}}
"""


def test_declared_queues_of_openconfig() -> None:
    done = of_text(ROUTER % "", link_rate=1e8, buffer=buffer(1e6))
    assert {name: q.get("match") for name, q in done.queues.items()} == {
        "nc": {"dscp": ["CS6", "CS7"]}, "be": {"dscp": ["CS0"]}, "other": None,
    }  # fmt: skip
    assert not [text for text in done.texts if "not understood" in text]
    assert done.codes("W15") == [5]  # attached to no interface
    assert set(done.codes("W13")) == {21, 22, 27}  # of the spare queue, and of the input
    assert done.codes("W10") == [20]


def test_a_policer_at_an_input_of_openconfig() -> None:
    done = of_text(ROUTER % "", link_rate=1e8, interface="eth1 ingress")
    (meter,) = done.link["meters"]
    assert meter["profile"] == {
        "marker": "token-bucket", "rate": "5Mbps", "burst": "10kB", "out": "drop",
    }  # fmt: skip
    assert "match" not in meter


def test_classifiers_of_openconfig_are_those_of_interfaces() -> None:
    spare = (
        '{"name": "spare", "terms": {"term": [{"id": "0", "conditions": {"ipv4": {"config": {"dscp": 46}}},'
        ' "actions": {"config": {"target-group": "NC"}}}]}},'
    )
    at = '"input": {"classifiers": {"classifier": [\n{"type": "IPV4", "config": {"name": "c"}}]}, '
    text = (ROUTER % "").replace('{"name": "c", "terms"', spare + '\n{"name": "c", "terms"')
    done = of_text(text, link_rate=1e8, buffer=buffer(1e6))
    assert done.queues["nc"]["match"] == {"dscp": ["EF", "CS6", "CS7"]}  # none is attached
    done = of_text(text.replace('"input": {', at), link_rate=1e8, buffer=buffer(1e6))
    assert done.queues["nc"]["match"] == {"dscp": ["CS6", "CS7"]}
    assert any("classifier spare is attached to no interface" in said for said in done.texts)
    assert not [said for said in done.texts if "not understood" in said]


def test_conditions_of_openconfig_beside_codepoints_ask() -> None:
    text = ROUTER % ', "source-address": "192.0.2.0/24"'
    with pytest.raises(PerhopError, match=r"--match nc=DSCP .*ipv4 source-address 192.0.2.0/24"):
        of_text(text, link_rate=1e8, buffer=buffer(1e6))


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("default", "CS0"), ("reliability", 1), ("throughput", 2), ("lowdelay", 4), ("priority", "CS1"),
        ("immediate", "CS2"), ("flash", "CS3"), ("flash-override", "CS4"), ("critical", "CS5"),
        ("internet", "CS6"), ("network", "CS7"), ("AF21", "AF21"), ("cs3", "CS3"), ("EF", "EF"), ("12", "AF12"),
    ],
)  # fmt: skip
def test_names_of_codepoints_of_vyos(name: str, code: object) -> None:
    text = f"""\
set qos policy shaper W bandwidth '10mbit'
set qos policy shaper W class 10 bandwidth '3mbit'
set qos policy shaper W class 10 match a ip dscp '{name}'
set qos policy shaper W default bandwidth '7mbit'
set qos interface eth0 egress 'W'
"""
    done = of_text(text)
    assert done.queues["10"]["match"] == {"dscp": [code]}
    assert (done.codes("W13"), done.codes("W17")) == ([], [3] if name == "critical" else [])


def test_groups_of_matches_of_vyos() -> None:
    text = """\
set qos policy shaper W bandwidth '10mbit'
set qos policy shaper W class 10 bandwidth '3mbit'
set qos policy shaper W class 10 match-group 'G'
set qos policy shaper W default bandwidth '7mbit'
set qos traffic-match-group G match a ip dscp 'AF31'
set qos traffic-match-group G match b ip dscp 'AF32'
set qos interface eth0 egress 'W'
"""
    done = of_text(text)
    assert done.queues["10"]["match"] == {"dscp": ["AF31", "AF32"]}
    assert done.codes("W13") == []
    missing = of_text(text.replace("match-group 'G'", "match-group 'H'"), lenient=True)
    assert missing.codes("W15") == [3]


@pytest.mark.parametrize(
    ("lines", "queue"),
    [
        (
            ["cake C bandwidth '18mbit'", "cake C rtt '50'"],
            {"scheduler": "fq-codel", "target": "2.5ms", "interval": "50ms", "law": "linux"},
        ),
        (["network-emulator C bandwidth '18mbit'"], {"aqm": "drop-tail", "limit": "1000p"}),
    ],
)
def test_policies_of_vyos_that_shape(lines: list[str], queue: dict[str, str]) -> None:
    text = "".join(f"set qos policy {line}\n" for line in lines) + "set qos interface eth0 egress 'C'\n"
    done = of_text(text)
    assert (done.link["rate"], done.link["queue"]) == ("18Mbps", queue)


def test_an_emulator_of_vyos() -> None:
    leaves = {"bandwidth": "9mbit", "delay": "40", "loss": "2", "queue-limit": "55", "corruption": "1"}
    text = "".join(f"set qos policy network-emulator N {key} '{value}'\n" for key, value in leaves.items())
    done = of_text(f"{text}set qos interface eth0 egress 'N'\n")
    assert {key: done.link[key] for key in ("rate", "delay", "loss")} == {
        "rate": "9Mbps", "delay": "40ms", "loss": 0.0298,
    }  # fmt: skip
    assert (done.link["queue"]["limit"], done.codes("W06")) == ("55p", [5])


def test_hfsc_of_vyos() -> None:
    text = """\
set qos policy shaper-hfsc H bandwidth '20mbit'
set qos policy shaper-hfsc H class 10 realtime m2 '5mbit'
set qos policy shaper-hfsc H class 10 realtime m1 '8mbit'
set qos policy shaper-hfsc H class 10 upperlimit m2 '8mbit'
set qos policy shaper-hfsc H class 10 match a ip dscp 'AF41'
set qos policy shaper-hfsc H default linkshare m2 '15mbit'
set qos interface eth0 egress 'H'
"""
    done = of_text(text)
    assert {name: (q["rate"], q.get("ceil")) for name, q in done.queues.items()} == {
        "10": ("5Mbps", "8Mbps"),
        "default": ("15Mbps", "20Mbps"),
    }
    assert done.codes("W06") == [3]
    # Without an upper limit a class of hfsc has what others leave.
    assert done.carried({0: 30.0})[0] == pytest.approx(20.0, rel=0.02)
    assert done.carried({34: 30.0})[34] == pytest.approx(8.0, rel=0.02)


def test_classes_of_hfsc_of_vyos_share_what_real_time_leaves() -> None:
    text = """\
set qos policy shaper-hfsc H bandwidth '10mbit'
set qos policy shaper-hfsc H class 10 linkshare m2 '4mbit'
set qos policy shaper-hfsc H class 10 realtime m2 '1mbit'
set qos policy shaper-hfsc H class 10 match a ip dscp 'EF'
set qos policy shaper-hfsc H class 20 realtime m2 '2mbit'
set qos policy shaper-hfsc H class 20 match a ip dscp 'AF41'
set qos policy shaper-hfsc H default linkshare m2 '6mbit'
set qos interface eth0 egress 'H'
"""
    done = of_text(text)
    assert "W13" not in {code for code, _ in done.warnings}
    carried = done.carried({46: 20.0, 34: 20.0, 0: 20.0})
    # Class 20 has no share, and so what it is sure of only; the others share 8 Mbit/s as 4 to 6.
    assert carried == pytest.approx({46: 3.2, 34: 2.0, 0: 4.8}, rel=0.03)


@pytest.mark.parametrize(("action", "out"), [("drop", "drop"), ("continue", "mark"), ("reclassify", "mark")])
def test_what_a_limiter_of_vyos_does(action: str, out: str) -> None:
    text = f"""\
set qos policy limiter L default bandwidth '2mbit'
set qos policy limiter L default exceed '{action}'
set qos interface eth0 ingress 'L'
"""
    done = of_text(text, link_rate=1e8)
    assert done.link["meters"][0]["profile"]["out"] == out
    assert done.codes("W10") == ([] if action == "drop" else [2])


def test_priorities_within_a_class_of_vyos() -> None:
    text = """\
set qos policy shaper W bandwidth '10mbit'
set qos policy shaper W class 20 bandwidth '3mbit'
set qos policy shaper W class 20 queue-type 'priority'
set qos policy shaper W class 20 queue-limit '60'
set qos policy shaper W class 20 match a ip dscp 'AF12'
set qos policy shaper W class 20 match b ip dscp 'AF11'
set qos policy shaper W default bandwidth '7mbit'
set qos interface eth0 egress 'W'
"""
    done = of_text(text)
    inner = done.link["queue"]["classes"][0]["classes"][0]["queue"]
    # TOS 0x30 of AF12 has a priority of band 0, 0x28 of AF11 one of band 2.
    assert [(q["name"], q["rule"]["limit"]) for q in inner["queues"]] == [("20.1", "60p"), ("20.3", "60p")]
    carried = done.carried({12: 2.0, 10: 9.0, 0: 9.0})
    assert carried[12] == pytest.approx(2.0, rel=0.02)
    assert carried[12] + carried[10] == pytest.approx(3.0, rel=0.03)


def test_a_type_of_queue_that_vyos_has_not_is_refused() -> None:
    text = """\
set qos policy shaper W bandwidth '10mbit'
set qos policy shaper W default bandwidth '7mbit'
set qos policy shaper W default queue-type 'drop-tial'
set qos interface eth0 egress 'W'
"""
    with pytest.raises(PerhopError, match="line 3: not understood: `queue-type drop-tial`"):
        of_text(text)


@pytest.mark.parametrize("bandwidth", ["10mbit", "auto"])
@pytest.mark.parametrize(
    "shares", [("6mbit", "2mbit"), ("3mbit", "1mbit"), ("90mbit", "30mbit"), ("30%", "10%")]
)
def test_classes_of_hfsc_in_vyos_without_realtime_share_by_linkshare(
    bandwidth: str, shares: tuple[str, str]
) -> None:
    """Whether their sum is below, at or above the bandwidth: what others leave, too, is shared so."""
    text = f"""\
set qos interface eth0 egress H
set qos policy shaper-hfsc H bandwidth {bandwidth}
set qos policy shaper-hfsc H class 1 match a ip dscp ef
set qos policy shaper-hfsc H class 1 linkshare m2 {shares[0]}
set qos policy shaper-hfsc H class 2 match a ip dscp af11
set qos policy shaper-hfsc H class 2 linkshare m2 {shares[1]}
set qos policy shaper-hfsc H default linkshare m2 {shares[1]}
"""
    done = of_text(text, link_rate=1e7)
    assert done.codes("W13") == []
    assert done.carried({46: 12.0, 10: 12.0, 0: 12.0}) == pytest.approx({46: 6.0, 10: 2.0, 0: 2.0}, rel=0.02)
    assert done.carried({46: 12.0, 0: 12.0}) == pytest.approx({46: 7.5, 0: 2.5}, rel=0.02)
    assert done.carried({10: 12.0}) == pytest.approx({10: 10.0}, rel=0.02)
