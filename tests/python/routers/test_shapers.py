"""Ceilings of Linux, Junos, VyOS, RouterOS, SONiC and OpenConfig are ceilings: more than they let through is offered.

Each configuration has a class with 10 Mbit/s at most of a link of 100 Mbit/s for EF, and others.
"""
# ruff: noqa: E501 - lines of configurations stay whole

from __future__ import annotations

import json

import pytest
from tests.python.routers.importing import Brought, buffer, of_text

CEILING, LINK = 10.0, 100.0
EF, AF11, BE = 46, 10, 0
JUNOS = """\
set class-of-service classifiers dscp C forwarding-class voice loss-priority low code-points ef
set class-of-service classifiers dscp C forwarding-class gold loss-priority low code-points af11
set class-of-service schedulers G transmit-rate percent 45
set class-of-service schedulers B transmit-rate percent 45
set class-of-service scheduler-maps M forwarding-class voice scheduler V
set class-of-service scheduler-maps M forwarding-class gold scheduler G
set class-of-service scheduler-maps M forwarding-class best-effort scheduler B
set class-of-service interfaces ge-0/0/0 scheduler-map M
set class-of-service interfaces ge-0/0/0 unit 0 classifiers dscp C
set interfaces ge-0/0/0 speed 100m
"""
HTB = """\
tc qdisc add dev e root handle 1: htb default 30
tc class add dev e parent 1: classid 1:1 htb rate 100mbit
tc class add dev e parent 1:1 classid 1:10 htb rate {voice}
tc class add dev e parent 1:1 classid 1:20 htb rate 45mbit ceil 100mbit prio 1
tc class add dev e parent 1:1 classid 1:30 htb rate 45mbit ceil 100mbit prio 1
tc filter add dev e parent 1: protocol ip u32 match ip dsfield 0xb8 0xfc flowid 1:10
tc filter add dev e parent 1: protocol ip u32 match ip dsfield 0x28 0xfc flowid 1:20
"""
BANDS = """\
tc qdisc add dev e root handle 1: {kind}
tc qdisc add dev e parent 1:1 handle 10: {shaper}
tc qdisc add dev e parent 1:2 handle 20: pfifo limit 100
tc qdisc add dev e parent 1:3 handle 30: pfifo limit 100
tc filter add dev e parent 1: protocol ip u32 match ip dsfield 0xb8 0xfc flowid 1:1
tc filter add dev e parent 1: protocol ip u32 match ip dsfield 0x28 0xfc flowid 1:2
tc filter add dev e parent 1: protocol ip u32 match u32 0 0 flowid 1:3
"""
DRR = BANDS.replace("root handle 1: {kind}", "root handle 1: drr").replace(
    "tc qdisc add dev e parent 1:1",
    "".join(f"tc class add dev e parent 1: classid 1:{n} drr quantum 1500\n" for n in (1, 2, 3))
    + "tc qdisc add dev e parent 1:1",
    1,
)
HFSC = """\
tc qdisc add dev e root handle 1: hfsc default 30
tc class add dev e parent 1: classid 1:1 hfsc sc rate 100mbit ul rate 100mbit
tc class add dev e parent 1:1 classid 1:10 hfsc sc rate 5mbit ul rate 10mbit
tc class add dev e parent 1:1 classid 1:20 hfsc ls rate 45mbit
tc class add dev e parent 1:1 classid 1:30 hfsc ls rate 45mbit
tc filter add dev e parent 1: protocol ip u32 match ip dsfield 0xb8 0xfc flowid 1:10
tc filter add dev e parent 1: protocol ip u32 match ip dsfield 0x28 0xfc flowid 1:20
"""
VYOS = """\
set qos interface eth0 egress 'W'
set qos policy shaper W bandwidth '100mbit'
set qos policy shaper W class 10 bandwidth '5%'
set qos policy shaper W class 10 ceiling '10%'
set qos policy shaper W class 10 priority '0'
set qos policy shaper W class 10 match v ip dscp 'EF'
set qos policy shaper W class 20 bandwidth '45%'
set qos policy shaper W class 20 ceiling '100%'
set qos policy shaper W class 20 match a ip dscp 'AF11'
set qos policy shaper W default bandwidth '45%'
set qos policy shaper W default ceiling '100%'
set qos policy shaper W class 20 priority '1'
set qos policy shaper W default priority '1'
"""
ROUTEROS = """\
/queue tree add name=up parent=ether1 max-limit=100M
/queue tree add name=v parent=up packet-mark=v limit-at=5M max-limit=10M \\
    priority=1 queue=default
/queue tree add name=a parent=up packet-mark=a limit-at=45M max-limit=100M queue=default
/queue tree add name=b parent=up packet-mark=no-mark limit-at=45M max-limit=100M queue=default
/ip firewall mangle add action=mark-packet chain=postrouting dscp=46 new-packet-mark=v passthrough=no
/ip firewall mangle add action=mark-packet chain=postrouting dscp=10 new-packet-mark=a passthrough=no
"""


def sonic(**voice: str) -> str:
    """A switch with three queues at one port of 100 Mbit/s."""
    return json.dumps(
        {
            "PORT": {"Ethernet0": {"speed": "100"}},
            "SCHEDULER": {"v": voice, "a": {"type": "DWRR", "weight": "45"}},
            "DSCP_TO_TC_MAP": {"M": {"46": "5", "10": "1", "0": "0"}},
            "TC_TO_QUEUE_MAP": {"M": {"5": "5", "1": "1", "0": "0"}},
            "PORT_QOS_MAP": {"Ethernet0": {"dscp_to_tc_map": "M", "tc_to_queue_map": "M"}},
            "QUEUE": {
                "Ethernet0|5": {"scheduler": "v"},
                "Ethernet0|1": {"scheduler": "a"},
                "Ethernet0|0": {"scheduler": "a"},
            },
        },
        indent=1,
    )


def openconfig(rates: dict[str, object], priority: str | None = "STRICT") -> str:
    """A router with three queues, one of which a scheduler shapes."""

    def served(*names: str) -> dict[str, object]:
        return {"input": [{"id": name, "config": {"queue": name, "weight": "45"}} for name in names]}

    first = {"sequence": 0, "config": {"priority": priority} if priority else {}, "inputs": served("v")}
    schedulers = [
        {**first, "one-rate-two-color": {"config": rates}},
        {"sequence": 1, "inputs": served("a", "b")},
    ]
    codes = {"v": EF, "a": AF11, "b": BE}
    terms = [
        {
            "id": name,
            "conditions": {"ipv4": {"config": {"dscp": code}}},
            "actions": {"config": {"target-group": name}},
        }
        for name, code in codes.items()
    ]
    groups = [{"name": name, "config": {"output-queue": name}} for name in codes]
    interface = {"interface-id": "e", "output": {"scheduler-policy": {"config": {"name": "S"}}}}
    return json.dumps(
        {
            "openconfig-qos:qos": {
                "forwarding-groups": {"forwarding-group": groups},
                "classifiers": {"classifier": [{"name": "c", "terms": {"term": terms}}]},
                "scheduler-policies": {
                    "scheduler-policy": [{"name": "S", "schedulers": {"scheduler": schedulers}}]
                },
                "interfaces": {"interface": [interface]},
            }
        },
        indent=1,
    )


TBF = "tbf rate 10mbit burst 15k limit 60k"
STRICT = {
    "tc prio over tbf": BANDS.format(kind="prio", shaper=TBF),
    "tc prio over cake": BANDS.format(kind="prio", shaper="cake bandwidth 10mbit"),
    "tc ets over tbf": BANDS.format(kind="ets bands 3 strict 1 quanta 1500 1500", shaper=TBF),
    "tc htb": HTB.format(voice="10mbit ceil 10mbit prio 0"),
    "junos strict": f"{JUNOS}set class-of-service schedulers V priority strict-high\n"
    "set class-of-service schedulers V shaping-rate 10m\n",
    "junos strict exact": f"{JUNOS}set class-of-service schedulers V priority strict-high\n"
    "set class-of-service schedulers V transmit-rate percent 10 exact\n",
    "vyos": VYOS,
    "routeros": ROUTEROS,
    "sonic strict": sonic(type="STRICT", pir="1250000"),
    "openconfig strict": openconfig({"cir": "10000000", "queuing-behavior": "SHAPE"}),
    "openconfig percent": openconfig({"cir-pct": 10, "queuing-behavior": "SHAPE"}),
}
SHARED = {
    "tc htb tbf": HTB.format(voice="5mbit ceil 100mbit prio 1") + f"tc qdisc add dev e parent 1:10 {TBF}\n",
    "tc drr over tbf": DRR.format(shaper=TBF),
    "tc hfsc": HFSC,
    "junos": f"{JUNOS}set class-of-service schedulers V transmit-rate 5m\n"
    "set class-of-service schedulers V shaping-rate 10m\n",
    "junos exact": f"{JUNOS}set class-of-service schedulers V transmit-rate 10m exact\n",
    "junos rate-limit": f"{JUNOS}set class-of-service schedulers V transmit-rate 10m rate-limit\n",
    "sonic": sonic(type="DWRR", weight="10", cir="625000", pir="1250000"),
    "openconfig": openconfig({"cir": "10000000", "queuing-behavior": "SHAPE"}, None),
}
EVERY = STRICT | SHARED


def brought(name: str) -> Brought:
    """The import of a configuration, with nothing assumed."""
    return of_text(EVERY[name], link_rate=LINK * 1e6, buffer=buffer(1.5e5))


@pytest.mark.parametrize("name", EVERY)
def test_alone_it_gets_its_ceiling(name: str) -> None:
    assert brought(name).carried({EF: 50.0})[EF] == pytest.approx(CEILING, rel=0.03)


@pytest.mark.parametrize("name", EVERY)
def test_beside_others_it_gets_no_more_and_they_what_is_left(name: str) -> None:
    carried = brought(name).carried({EF: 50.0, AF11: 90.0, BE: 90.0})
    assert carried[EF] <= CEILING * 1.03
    assert sum(carried.values()) == pytest.approx(LINK, rel=0.02)
    if name in STRICT:
        assert carried[EF] == pytest.approx(CEILING, rel=0.03)


@pytest.mark.parametrize("name", STRICT)
def test_below_its_ceiling_it_loses_nothing(name: str) -> None:
    assert brought(name).carried({EF: 9.5, AF11: 90.0, BE: 90.0})[EF] == pytest.approx(9.5, rel=0.02)


WHOLE = {
    "tc cake": "tc qdisc replace dev e root cake bandwidth 10mbit\n",
    "tc tbf": f"tc qdisc add dev e root {TBF}\n",
    "tc netem": "tc qdisc add dev e root netem rate 10mbit limit 100\n",
    "tc tbf below netem": "tc qdisc add dev e root handle 1: netem delay 5ms\n"
    f"tc qdisc add dev e parent 1:1 {TBF}\n",
    "junos": f"{JUNOS}set class-of-service interfaces ge-0/0/0 shaping-rate 10m\n",
    "junos traffic control profile": JUNOS.replace(
        "interfaces ge-0/0/0 scheduler-map M", "traffic-control-profiles T scheduler-map M"
    )
    + "set class-of-service traffic-control-profiles T shaping-rate 10m\n"
    "set class-of-service interfaces ge-0/0/0 output-traffic-control-profile T\n",
    "vyos rate-control": "set qos policy rate-control R bandwidth '10mbit'\nset qos interface e egress 'R'\n",
    "vyos cake": "set qos policy cake R bandwidth '10mbit'\nset qos interface e egress 'R'\n",
    "routeros simple": "/queue simple add name=all target=lan max-limit=10M/10M queue=default/default\n",
    "routeros cake": "/queue type add name=c kind=cake cake-bandwidth=10M\n"
    "/queue interface set ether1 queue=c\n",
    "tc htb": HTB.replace("100mbit", "10mbit").replace("45mbit", "4mbit").format(voice="1mbit"),
    "vyos shaper": """\
set qos interface e egress 'R'
set qos policy shaper R bandwidth '10mbit'
set qos policy shaper R default bandwidth '60%'
set qos policy shaper R default ceiling '100%'
set qos policy shaper R class 10 bandwidth '40%'
set qos policy shaper R class 10 ceiling '100%'
set qos policy shaper R class 10 match v ip dscp 'EF'
""",
    "routeros tree": """\
/queue tree
add name=up parent=ether1 max-limit=10M
add name=rest parent=up packet-mark=no-mark limit-at=5M queue=default
""",
    "sonic port": sonic(type="DWRR", weight="10")
    .replace('"SCHEDULER": {', '"SCHEDULER": {"port": {"pir": "1250000"},')
    .replace('"tc_to_queue_map"', '"scheduler": "port", "tc_to_queue_map"'),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_shaper_of_all_packets(name: str) -> None:
    port = "upload" if name == "routeros simple" else None
    done = of_text(WHOLE[name], link_rate=1e8, buffer=buffer(1.5e5), interface=port)
    assert sum(done.carried({EF: 50.0, BE: 50.0}).values()) == pytest.approx(CEILING, rel=0.03)


@pytest.mark.parametrize("name", WHOLE)
def test_the_rate_of_the_link_goes_before_a_shaper_above_it(name: str) -> None:
    port = "upload" if name == "routeros simple" else None
    done = of_text(WHOLE[name], link_rate=5e6, buffer=buffer(1.5e5), interface=port)
    assert done.link["rate"] == "5Mbps"
    assert any("is above the link's 5 Mbit/s" in text for text in done.texts)
    assert sum(done.carried({EF: 50.0, BE: 50.0}).values()) == pytest.approx(5.0, rel=0.03)
