"""Which packets a class takes: its codepoints, what `--match` answers, and what earlier filters leave."""

from __future__ import annotations

import pytest
from tests.python.routers.importing import of_text

IOS = """class-map {kind} V
 match dscp ef
 match access-group name SIP
policy-map P
 class V
  priority 1000
 class class-default
  bandwidth 5000
interface GigabitEthernet0/0
 bandwidth 10000
 service-policy output P
"""
POLICED = """class-map match-any V
 match dscp ef
 match access-group name SIP
policy-map P
 class V
  police 1000000 conform-action transmit exceed-action drop
interface GigabitEthernet0/0
 bandwidth 10000
 service-policy input P
"""
HTB = """tc qdisc add dev eth0 root handle 1: htb default 30
tc class add dev eth0 parent 1: classid 1:1 htb rate 20mbit
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 10mbit ceil 20mbit
tc class add dev eth0 parent 1:1 classid 1:30 htb rate 10mbit ceil 20mbit
"""
BESIDE = """tc filter add dev eth0 parent 1: protocol ip prio 1 flower ip_tos 0x88/0xfc classid 1:20
tc filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip dport 22 0xffff flowid 1:20
"""
VYOS = """set qos interface eth0 egress WAN
set qos policy shaper WAN bandwidth 50mbit
set qos policy shaper WAN default bandwidth 60%
set qos policy shaper WAN class 20 bandwidth 5mbit
set qos policy shaper WAN class 20 match m1 ip dscp AF21
set qos policy shaper WAN class 20 match {name} ip protocol tcp
"""
JUNOS = """set class-of-service interfaces ge-0/0/1 scheduler-map SM
set class-of-service interfaces ge-0/0/1 shaping-rate 50m
set class-of-service scheduler-maps SM forwarding-class gold scheduler G
set class-of-service scheduler-maps SM forwarding-class best-effort scheduler B
set class-of-service schedulers G transmit-rate percent 40
set class-of-service schedulers B transmit-rate percent 60
set interfaces ge-0/0/2 unit 0 family inet filter input C
set firewall family inet filter C term a from dscp af11
set firewall family inet filter C term a then forwarding-class gold
set firewall family inet filter C term {term} from protocol udp
set firewall family inet filter C term {term} then forwarding-class gold
set firewall family inet filter C term z then forwarding-class best-effort
"""
SIMPLE = """/queue simple
add name=a target=192.0.2.0/24 packet-marks=gold max-limit=10M/10M
add name=b target=198.51.100.0/24 max-limit=10M/10M
/ip firewall mangle
add action=mark-packet chain=forward dscp=10 new-packet-mark=gold passthrough=no
"""


@pytest.mark.parametrize(
    ("text", "name", "answer", "taken"),
    [
        (IOS.format(kind="match-any"), "V", {24}, ["CS3", "EF"]),
        (IOS.format(kind="match-all"), "V", {46, 24}, ["EF"]),
        (HTB + BESIDE, "1:20", {8}, ["CS1", "AF41"]),
        (
            f"{HTB}{BESIDE.splitlines()[0]} dst_port 22\n".replace("flower", "flower "),
            "1:20",
            {34, 8},
            ["AF41"],
        ),
        (VYOS.format(name="m2"), "20", {8}, ["CS1", "AF21"]),
        (VYOS.format(name="m1"), "20", {8, 18}, ["AF21"]),
        (JUNOS.format(term="b"), "gold", {8}, ["CS1", "AF11"]),
        (JUNOS.format(term="a"), "gold", {8, 10}, ["AF11"]),
    ],
)
def test_an_answer_is_for_what_is_no_codepoint(
    text: str, name: str, answer: set[int], taken: list[str]
) -> None:
    done = of_text(text, matches={name: frozenset(answer)}, lenient=True)
    assert done.queues[name]["match"] == {"dscp": taken}
    left_out = "does not take CS" in "".join(done.texts)
    assert left_out == (len(answer) > len(taken))


def test_an_answer_for_a_policer_is_beside_its_codepoints() -> None:
    (meter,) = of_text(POLICED, matches={"V": frozenset({24})}, lenient=True).link["meters"]
    assert meter["match"] == {"dscp": ["CS3", "EF"]}


def test_a_simple_queue_takes_marked_packets_of_its_target_only() -> None:
    answers = {"a": frozenset({10, 12}), "b": frozenset({8})}
    done = of_text(SIMPLE, interface="upload", matches=answers, lenient=True)
    assert done.queues["a"]["match"] == {"dscp": ["AF11"]}


def test_an_answer_in_place_of_configured_codepoints_is_reported() -> None:
    text = IOS.format(kind="match-any").replace(" match access-group name SIP\n", "")
    done = of_text(text, matches={"V": frozenset({24})})
    assert done.queues["V"]["match"] == {"dscp": ["CS3"]}
    assert "--match V: CS3 in place of EF, which the configuration says" in done.texts


def test_any_packet_that_an_access_list_permits_is_not_any_packet() -> None:
    text = IOS.format(kind="match-all").replace("match dscp ef", "match any")
    done = of_text(text, matches={"V": frozenset({24})})
    assert done.queues["V"]["match"] == {"dscp": ["CS3"]}


def test_classification_ends_at_the_first_filter() -> None:
    police = "action police rate 3mbit burst 20k conform-exceed drop/pass"
    text = f"""{HTB}tc filter add dev eth0 parent 1: protocol ip prio 4 matchall {police}
tc filter add dev eth0 parent 1: protocol ip prio 3 flower ip_tos 0x88/0xfc classid 1:20
tc filter add dev eth0 parent 1: protocol ip prio 2 flower ip_tos 0x28/0xfc action pass
"""
    (meter,) = of_text(text).link["meters"]
    assert {"AF11", "AF41"}.isdisjoint(meter["match"]["dscp"])
    assert len(meter["match"]["dscp"]) == 62


def test_a_class_of_all_other_packets_stands_anywhere() -> None:
    text = f"""{HTB}tc filter add dev eth0 parent 1: protocol ip prio 1 flower ip_tos 0x88/0xfc classid 1:30
tc filter add dev eth0 parent 1: protocol ip prio 2 matchall classid 1:20
"""
    done = of_text(text.replace(" default 30", ""))
    assert done.queues["1:30"]["match"] == {"dscp": ["AF41"]}
    assert "match" not in done.queues["1:20"]


@pytest.mark.parametrize(("more", "policed"), [("", 62), (" next term", 63)])
def test_a_term_of_junos_polices_what_earlier_ones_leave(more: str, policed: int) -> None:
    then = f"then{more}" if more else "then accept"
    text = f"""set class-of-service interfaces ge-0/0/1 shaping-rate 50m
set interfaces ge-0/0/1 unit 0 family inet filter output F
set firewall policer P if-exceeding bandwidth-limit 3m
set firewall policer P if-exceeding burst-size-limit 20k
set firewall policer P then discard
set firewall family inet filter F term a from dscp af11
set firewall family inet filter F term a then accept
set firewall family inet filter F term b from dscp af12
set firewall family inet filter F term b {then}
set firewall family inet filter F term c then policer P
"""
    (meter,) = of_text(text, lenient=True).link["meters"]
    assert len(meter["match"]["dscp"]) == policed


@pytest.mark.parametrize(
    ("action", "on"),
    [
        ("conform-exceed continue", ["what exceeds"]),
        ("conform-exceed pipe/continue", ["what conforms"]),
        ("continue", ["what exceeds"]),
        ("conform-exceed drop", []),
    ],
)
def test_a_policer_that_goes_on_to_a_later_filter_is_named(action: str, on: list[str]) -> None:
    match = "u32 match ip dsfield 0xb8 0xfc"
    text = f"""tc qdisc add dev eth0 root handle 1: prio
tc filter add dev eth0 parent 1: protocol ip prio 1 {match} police rate 1mbit burst 20k {action} flowid 1:1
tc filter add dev eth0 parent 1: protocol ip prio 2 {match} flowid 1:3
"""
    done = of_text(text, link_rate=1e7)
    said = [f"police: {which} goes on to the filter of line 3, to 1:3" for which in on]
    assert [text.partition(";")[0] for text in done.texts if "goes on" in text] == said
    assert ("a filter whose packets earlier ones take" in done.texts) == (not on)
