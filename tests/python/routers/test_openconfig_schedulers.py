"""A scheduler of OpenConfig with several inputs: its rate is for all of them together."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.python.routers.importing import Brought, buffer, of_text

CODES = {"A": 10, "B": 12, "C": 0}


def scheduled(*schedulers: dict[str, Any], way: str = "output") -> Brought:
    """The import of an interface of 100 Mbit/s with these schedulers, each of some of the queues."""
    listed = []
    for number, given in enumerate(schedulers, 1):
        inputs = [
            {"id": name, "config": {"id": name, "input-type": "QUEUE", "queue": name, "weight": weight}}
            for name, weight in given["inputs"].items()
        ]
        one = {
            "sequence": number,
            "config": {"sequence": number} | given.get("more", {}),
            "inputs": {"input": inputs},
        }
        if "rates" in given:
            one["one-rate-two-color"] = {"config": {"bc": 100000} | given["rates"]}
        listed.append(one)
    terms = [
        {
            "id": name,
            "conditions": {"ipv4": {"config": {"dscp": code}}},
            "actions": {"config": {"target-group": name}},
        }
        for name, code in CODES.items()
    ]
    groups = [{"name": name, "config": {"name": name, "output-queue": name}} for name in CODES]
    classifiers = {"classifier": [{"type": "IPV4", "config": {"type": "IPV4", "name": "c"}}]}
    attached: dict[str, Any] = {"input": {"classifiers": classifiers}}
    attached.setdefault(way, {})["scheduler-policy"] = {"config": {"name": "sp"}}
    qos = {
        "forwarding-groups": {"forwarding-group": groups},
        "queues": {"queue": [{"name": name, "config": {"name": name}} for name in CODES]},
        "scheduler-policies": {"scheduler-policy": [{"name": "sp", "schedulers": {"scheduler": listed}}]},
        "classifiers": {"classifier": [{"name": "c", "config": {"name": "c"}, "terms": {"term": terms}}]},
        "interfaces": {"interface": [{"interface-id": "Ethernet1", **attached}]},
    }
    text = json.dumps({"openconfig-qos:qos": qos}, indent=1)
    return of_text(text, "x.json", link_rate=1e8, buffer=buffer(1.5e5))


def test_a_shaper_of_all_queues_serves_them_by_weight() -> None:
    done = scheduled({"inputs": {"A": 4, "B": 1}, "rates": {"cir": "20000000"}})
    carried = done.carried({10: 50.0, 12: 50.0})
    assert carried[10] == pytest.approx(16.0, rel=0.03)
    assert carried[12] == pytest.approx(4.0, rel=0.03)


@pytest.mark.parametrize("more", [{}, {"priority": "STRICT"}])
def test_a_shaper_of_some_queues_serves_them_by_weight(more: dict[str, str]) -> None:
    shaped = {"inputs": {"A": 4, "B": 1}, "rates": {"cir": "20000000"}, "more": more}
    carried = scheduled(shaped, {"inputs": {"C": 1}}).carried({10: 50.0, 12: 50.0, 0: 150.0})
    assert carried[10] == pytest.approx(16.0, rel=0.05)
    assert carried[12] == pytest.approx(4.0, rel=0.05)
    assert carried[0] == pytest.approx(80.0, rel=0.03)


@pytest.mark.parametrize("way", ["output", "input"])
def test_a_policer_of_several_queues_is_one(way: str) -> None:
    rates = {"cir": "20000000", "queuing-behavior": "POLICE"}
    (meter,) = scheduled({"inputs": {"A": 4, "B": 1}, "rates": rates}, way=way).link["meters"]
    assert meter["match"] == {"dscp": ["AF11", "AF12"]}
