"""Words of several dialects that were misread or refused."""

from __future__ import annotations

import pytest
from tests.python.routers.importing import of_text

XR = """class-map match-any {name}
 match {condition}
 end-class-map
policy-map P
 class {name}
  bandwidth 5 mbps
 class class-default
interface GigabitEthernet0/0/0/0
 service-policy output P
"""


@pytest.mark.parametrize(
    ("condition", "taken"),
    [
        ("precedence ipv4 4", ["CS4", 33, "AF41", 35, "AF42", 37, "AF43", 39]),
        ("dscp ipv4 af11", ["AF11"]),
        ("dscp ipv6 af11 af12", ["AF11", "AF12"]),
    ],
)
def test_conditions_of_ios_xr_by_version_of_ip(condition: str, taken: list[str | int]) -> None:
    done = of_text(XR.format(name="A", condition=condition), dialect="ios-xr", link_rate=1e8, lenient=True)
    assert done.queues["A"]["match"] == {"dscp": taken}


def test_pie_in_bytemode_is_read_with_a_reason() -> None:
    done = of_text("tc qdisc add dev eth0 root pie limit 100 bytemode\n", link_rate=1e7)
    assert done.link["queue"]["aqm"] == "pie"
    assert ("W06", 1) in done.warnings
    of_text("tc qdisc add dev eth0 root pie limit 100 nobytemode\n", link_rate=1e7)


def test_sfb_is_no_fair_queueing() -> None:
    (said,) = [t for t in of_text("tc qdisc add dev eth0 root sfb\n", link_rate=1e7).texts if "sfb" in t]
    assert "an AQM" in said
    assert "fairness" not in said


def test_an_assumed_buffer_is_of_the_rate_of_its_class() -> None:
    text = """set class-of-service interfaces ge-0/0/1 scheduler-map SM
set class-of-service classifiers dscp C forwarding-class gold loss-priority low code-points af11
set class-of-service interfaces ge-0/0/1 unit 0 classifiers dscp C
set class-of-service scheduler-maps SM forwarding-class gold scheduler G
set class-of-service scheduler-maps SM forwarding-class best-effort scheduler B
set class-of-service schedulers G transmit-rate 1m
set class-of-service schedulers B transmit-rate 400k
"""
    done = of_text(text, lenient=True)
    assert done.link["rate"] == "1Gbps"
    limits = {name: queue["rule"]["limit"] for name, queue in done.queues.items()}
    # 50 ms at 1 Mbit/s; at 400 kbit/s these are less than two packets.
    assert limits == {"gold": "6.25kB", "best-effort": "3kB"}


CISCO = """class-map match-any V
 match dscp ef
policy-map IN
 class V
  police 1000000 conform-action transmit exceed-action drop
policy-map OUT
 class V
  priority 1000
interface GigabitEthernet0/1
 bandwidth 10000
 service-policy input IN
 service-policy output OUT
"""
VYOS = """set qos policy limiter IN default bandwidth 5mbit
set qos policy rate-control OUT bandwidth 5mbit
set qos interface GigabitEthernet0/1 ingress IN
set qos interface GigabitEthernet0/1 egress OUT
"""


@pytest.mark.parametrize("text", [CISCO, VYOS])
def test_the_queues_have_the_name_of_their_interface(text: str) -> None:
    done = of_text(text, link_rate=1e7)
    assert "meters" not in done.link
    assert any('--interface "GigabitEthernet0/1 ingress"' in said for said in done.texts)
    arriving = of_text(text, link_rate=1e7, interface="GigabitEthernet0/1 ingress")
    assert len(arriving.link["meters"]) == 1


def test_the_template_has_traffic_for_each_policer() -> None:
    text = """tc qdisc add dev eth0 root handle 1: prio
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dsfield 0xb8 0xfc police rate 1mbit burst 20k drop flowid 1:1
"""  # noqa: E501 - a command stays whole
    done = of_text(text, link_rate=1e7)
    (meter,) = done.link["meters"]
    assert meter["match"] == {"dscp": ["EF"]}
    assert "EF" in [flow["dscp"] for flow in done.flows]
