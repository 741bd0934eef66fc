"""No line is lost: a line that says a rate, ceiling, priority, drop rule or match changes what is imported.

In `WHOLE` each line with such a meaning is behind the words for it and a bar. Each is dropped in its
turn: the scenario is another, or there is another warning. So it is with lines of the other configurations.
"""

# ruff: noqa: E501 - lines of configurations stay whole
from __future__ import annotations

import re
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.python.routers.importing import CONFIGURATIONS, PORTS, buffer

from perhop.errors import PerhopError
from perhop.routers import READERS, Answers, Source, imported, recognised

EXAMPLES = Path(__file__).parents[3] / "examples"
KINDS = ("rate", "ceiling", "priority", "drop", "limit", "match", "policer")
"""A guarantee or share; a shaper; strict priority or an order; an AQM; a limit; a condition; a meter."""
WHOLE = {
    "ios": """
              |class-map match-any VOICE
 match        | match dscp ef
              |class-map match-any GOLD
 match        | match dscp af11
 match        | match ip precedence 2
              |class-map match-any BULK
 match        | match dscp cs1
              |policy-map P
              | class VOICE
 priority     |  priority 1000
              | class GOLD
 rate         |  bandwidth 2000
 ceiling      |  shape average 4000000
 limit        |  queue-limit 90 packets
              |  random-detect dscp-based
 drop         |  random-detect dscp af11 20 40 10
 drop         |  random-detect exponential-weighting-constant 6
              | class BULK
 rate         |  bandwidth 1000
 policer      |  police cir 800000 bc 20000 conform-action transmit exceed-action drop
              | class class-default
 limit        |  queue-limit 77 packets
              |policy-map SITE
              | class class-default
 ceiling      |  shape average 8000000
              |  service-policy P
              |interface GigabitEthernet0/0
 ceiling      | bandwidth 20000
              | service-policy output SITE
""",
    "ios-xr": """
              |class-map match-any VOICE
 match        | match dscp ef
              | end-class-map
              |class-map match-any GOLD
 match        | match dscp af11
 match        | match precedence 2
              | end-class-map
              |policy-map P
              | class VOICE
 priority     |  priority level 1
 policer      |  police rate 2 mbps   ! voice
              | class GOLD
 rate         |  bandwidth remaining percent 40
 ceiling      |  shape average 30 mbps
 limit        |  queue-limit 600 packets
 drop         |  random-detect dscp af11 100 packets 300 packets
              | class class-default
 rate         |  bandwidth remaining percent 30
 limit        |  queue-limit 900 packets
              | end-policy-map
              |interface GigabitEthernet0/0/0/0
 ceiling      | bandwidth 100000
              | service-policy output P
""",
    "nx-os": """
              |class-map type qos match-any VOICE
 match        |  match dscp 46
              |class-map type qos match-any GOLD
 match        |  match dscp 10
              |policy-map type qos IN
              |  class VOICE
 match        |    set qos-group 7
              |  class GOLD
 match        |    set qos-group 3
              |policy-map type queuing OUT
              |  class type queuing c-out-8q-q-default
 rate         |    bandwidth remaining percent 30
              |  class type queuing c-out-8q-q3
 rate         |    bandwidth remaining percent 40
 ceiling      |    shape min 1 mbps max 30 mbps
 limit        |    queue-limit 900000 bytes
 drop         |    random-detect minimum-threshold 200 kbytes maximum-threshold 800 kbytes drop-probability 20 weight 0
              |  class type queuing c-out-8q-q7
 priority     |    priority level 1
 ceiling      |    shape min 0 kbps max 10 mbps
              |interface Ethernet1/1
 ceiling      |  speed 100
              |  service-policy type queuing output OUT
              |interface Ethernet1/2
              |  service-policy type qos input IN
""",
    "nx-os police": """
              |class-map type qos match-any GOLD
 match        |  match dscp 10
              |policy-map type qos IN
              |  class GOLD
 policer      |    police cir 50 mbps bc 200 ms conform transmit violate drop
              |interface Ethernet1/2
 policer      |  service-policy type qos input IN
""",
    "eos": """
 match        |qos map dscp 45 to traffic-class 6
 match        |qos map dscp 11 to traffic-class 3
 match        |qos map dscp 1 to traffic-class 2
              |interface Ethernet1
 ceiling      |   speed forced 100full
              |   tx-queue 6
              |      priority strict
 ceiling      |      shape rate 10000
              |   tx-queue 3
 priority     |      no priority
 rate         |      bandwidth percent 40
 ceiling      |      shape rate 50 mbps
 drop         |      random-detect drop minimum-threshold 30 kbytes maximum-threshold 90 kbytes drop-probability 20 weight 4
              |   tx-queue 2
              |      no priority
 rate         |      bandwidth percent 60
""",
    "eos police": """
              |class-map type qos match-any BULK
 match        |   match dscp 8
              |policy-map type quality-of-service LIMIT
              |   class BULK
 policer      |      police rate 5 mbps burst-size 64 kbytes
              |interface Ethernet2
 policer      |   service-policy type qos input LIMIT
""",
    "tc": """
              |tc qdisc add dev e root handle 1: htb default 30
 ceiling      |tc class add dev e parent 1: classid 1:1 htb rate 10mbit
 rate         |tc class add dev e parent 1:1 classid 1:10 htb rate 2mbit \\
 ceiling      |  ceil 4mbit \\
 priority     |  prio 0
              |tc class add dev e parent 1:1 classid 1:20 htb rate 3mbit ceil 10mbit \\
 priority     |  prio 2
              |tc class add dev e parent 1:1 classid 1:30 htb rate 5mbit ceil 10mbit
 drop limit   |tc qdisc add dev e parent 1:10 red limit 60000 min 10000 max 30000 avpkt 1000 burst 20 \\
 drop         |  probability 0.1 bandwidth 10mbit
 drop         |tc qdisc add dev e parent 1:20 fq_codel target 10ms \\
 limit        |  limit 500
 limit        |tc qdisc add dev e parent 1:30 pfifo limit 70
 match        |tc filter add dev e parent 1: protocol ip prio 1 u32 match ip tos 0xb8 0xfc flowid 1:10
 match        |tc filter add dev e parent 1: protocol ip prio 2 flower ip_tos 0x28/0xfc classid 1:20
              |tc qdisc add dev e clsact
 policer      |tc filter add dev e egress protocol ip u32 match ip tos 0x20 0xfc action police rate 1mbit burst 10k drop
""",
    "junos": """
              |set class-of-service forwarding-classes class voice queue-num 5
              |set class-of-service forwarding-classes class gold queue-num 2
              |set class-of-service forwarding-classes class bulk queue-num 1
 match        |set class-of-service classifiers dscp C forwarding-class voice loss-priority low code-points ef
 match        |set class-of-service classifiers dscp C forwarding-class gold loss-priority low code-points mine
 match        |set class-of-service classifiers dscp C forwarding-class gold loss-priority high code-points af12
 match        |set class-of-service classifiers dscp C forwarding-class bulk loss-priority low code-points cs1
 match        |set class-of-service code-point-aliases dscp mine 001010
 drop         |set class-of-service drop-profiles R interpolate fill-level [ 30 70 ]
 drop         |set class-of-service drop-profiles R interpolate drop-probability [ 0 20 ]
 priority     |set class-of-service schedulers V priority strict-high
 ceiling      |set class-of-service schedulers V shaping-rate 10m
 limit        |set class-of-service schedulers V buffer-size temporal 20k
 rate         |set class-of-service schedulers G transmit-rate percent 40
 ceiling      |set class-of-service schedulers G shaping-rate 50m
 limit        |set class-of-service schedulers G buffer-size percent 30
 drop         |set class-of-service schedulers G drop-profile-map loss-priority high protocol any drop-profile R
 drop         |set class-of-service schedulers G explicit-congestion-notification
 rate         |set class-of-service schedulers K transmit-rate 5m
 limit        |set class-of-service schedulers K buffer-size 100k
 rate         |set class-of-service schedulers B transmit-rate remainder
 limit        |set class-of-service schedulers B buffer-size remainder
              |set class-of-service scheduler-maps M forwarding-class voice scheduler V
              |set class-of-service scheduler-maps M forwarding-class gold scheduler G
              |set class-of-service scheduler-maps M forwarding-class bulk scheduler K
              |set class-of-service scheduler-maps M forwarding-class best-effort scheduler B
              |set class-of-service interfaces ge-0/0/1 scheduler-map M
 ceiling      |set class-of-service interfaces ge-0/0/1 shaping-rate 80m
 match        |set class-of-service interfaces ge-0/0/1 unit 0 classifiers dscp C
 policer      |set firewall policer P if-exceeding bandwidth-limit 5m
 policer      |set firewall policer P if-exceeding burst-size-limit 625k
 policer      |set firewall policer P then discard
 match        |set firewall family inet filter OUT term a from dscp cs1
 policer      |set firewall family inet filter OUT term a then policer P
 policer      |set interfaces ge-0/0/1 unit 0 family inet filter output OUT
 match        |set firewall family inet filter IN term b from dscp cs2
 match        |set firewall family inet filter IN term b then forwarding-class gold
 match        |set interfaces ge-0/0/1 unit 0 family inet filter input IN
""",
    "vyos": """
              |set qos interface eth0 egress 'W'
 ceiling      |set qos policy shaper W bandwidth '50mbit'
 rate         |set qos policy shaper W class 10 bandwidth '20%'
 ceiling      |set qos policy shaper W class 10 ceiling '20mbit'
 priority     |set qos policy shaper W class 10 priority '1'
 limit        |set qos policy shaper W class 10 queue-limit '40'
 drop         |set qos policy shaper W class 10 queue-type 'drop-tail'
 match        |set qos policy shaper W class 10 match voice ip dscp 'critical'
 rate         |set qos policy shaper W class 20 bandwidth '10mbit'
 ceiling      |set qos policy shaper W class 20 ceiling '100%'
 drop         |set qos policy shaper W class 20 target '10'
 match        |set qos policy shaper W class 20 match-group 'G'
 match        |set qos traffic-match-group G match a ip dscp 'internet'
 rate         |set qos policy shaper W class 30 bandwidth '5mbit'
 drop         |set qos policy shaper W class 30 queue-type 'random-detect'
 drop         |set qos policy shaper W class 30 maximum-threshold '30'
 match        |set qos policy shaper W class 30 match x ip dscp 'AF21'
 rate         |set qos policy shaper W default bandwidth '30%'
 limit        |set qos policy shaper W default queue-limit '500'
""",
    "vyos limiter": """
              |set qos interface eth0 ingress 'L'
 policer      |set qos policy limiter L class 1 bandwidth '2mbit'
 policer      |set qos policy limiter L class 1 burst '30k'
 policer      |set qos policy limiter L class 1 exceed 'continue'
 match        |set qos policy limiter L class 1 match a ip dscp 'network'
 policer      |set qos policy limiter L default bandwidth '20mbit'
""",
    "routeros": """
              |/queue type
 drop limit   |add kind=red name=r red-limit=90 red-max-threshold=60 \\
 drop         |  red-min-threshold=20
 limit        |add kind=pfifo name=p pfifo-limit=33
              |/queue tree add \\
 ceiling      |  max-limit=50M \\
              |  name=up parent=ether1
              |/queue tree add \\
 rate         |  limit-at=2M \\
 ceiling      |  max-limit=5M \\
 priority     |  priority=1 \\
 match        |  packet-mark=voice \\
 limit        |  queue=p \\
              |  name=voice parent=up
              |/queue tree add \\
 rate         |  limit-at=20M \\
 ceiling      |  max-limit=40M \\
 priority     |  priority=3 \\
 drop         |  queue=r \\
              |  name=rest parent=up
              |/ip firewall mangle add action=mark-packet chain=postrouting \\
 match        |  dscp=46 \\
              |  new-packet-mark=voice passthrough=no
""",
    "sonic": """
              |{
              | "PORT": {"Ethernet0": {
 ceiling      |  "speed": "10000"
              | }},
              | "WRED_PROFILE": {"W": {
 drop         |  "ecn": "ecn_green",
 drop         |  "wred_green_enable": "true",
 drop         |  "green_min_threshold": "100000",
 drop         |  "green_max_threshold": "300000",
 drop         |  "green_drop_probability": "10"
              | }},
              | "SCHEDULER": {
              |  "v": {
 priority     |   "type": "STRICT",
 ceiling      |   "pir": "12500000"
              |  },
              |  "d": {"type": "DWRR",
 rate         |   "weight": "40"
              |  },
              |  "e": {"type": "DWRR", "weight": "20"},
              |  "g": {"type": "DWRR",
 rate         |   "cir": "250000000",
 ceiling      |   "pir": "500000000"
              |  },
              |  "p": {
 ceiling      |   "pir": "1000000000"
              |  }
              | },
              | "DSCP_TO_TC_MAP": {"A": {
 match        |  "46": "5",
 match        |  "10": "3",
 match        |  "8": "1",
              |  "0": "0"
              | }},
              | "TC_TO_QUEUE_MAP": {"A": {
 match        |  "5": "5",
 match        |  "3": "3",
 match        |  "1": "1",
              |  "0": "0"
              | }},
              | "PORT_QOS_MAP": {"Ethernet0": {
              |  "dscp_to_tc_map": "A", "tc_to_queue_map": "A",
 ceiling      |  "scheduler": "p"
              | }},
              | "QUEUE": {
              |  "Ethernet0|5": {
 priority     |   "scheduler": "v"
              |  },
              |  "Ethernet0|3": {
 rate         |   "scheduler": "g",
 drop         |   "wred_profile": "W"
              |  },
              |  "Ethernet0|1": {"scheduler": "d"},
              |  "Ethernet0|0": {"scheduler": "e"}
              | }
              |}
""",
    "openconfig": """
              |{"openconfig-qos:qos": {
              | "queues": {"queue": [{"name": "v"}, {"name": "a"}, {"name": "b"}]},
              | "queue-management-profiles": {"queue-management-profile": [{
              |  "name": "D",
              |  "wred": {"uniform": {"config": {
 drop         |   "min-threshold": "200000",
 drop         |   "max-threshold": "600000",
 drop         |   "max-drop-probability-percent": 10,
 drop         |   "weight": 4,
 drop         |   "enable-ecn": true,
 drop         |   "drop": true
              |  }}}
              | }]},
              | "forwarding-groups": {"forwarding-group": [
              |  {"name": "V", "config": {
 match        |   "output-queue": "v"
              |  }},
 match        |  {"name": "A", "config": {"output-queue": "a"}},
              |  {"name": "B", "config": {"output-queue": "b"}}
              | ]},
              | "classifiers": {"classifier": [{"name": "c", "terms": {"term": [
 match        |  {"id": "1", "conditions": {"ipv4": {"config": {"dscp": 46}}}, "actions": {"config": {"target-group": "V"}}},
              |  {"id": "2", "conditions": {"ipv4": {"config": {
 match        |    "dscp-set": [10, 12]
              |   }}}, "actions": {"config": {
 match        |    "target-group": "A"
              |   }}},
              |  {"id": "3", "conditions": {"ipv4": {"config": {"dscp": 0}}}, "actions": {"config": {"target-group": "B"}}}
              | ]}}]},
              | "scheduler-policies": {"scheduler-policy": [{"name": "S", "schedulers": {"scheduler": [
              |  {"sequence": 0, "config": {"sequence": 0,
 priority     |    "priority": "STRICT"
              |   }, "inputs": {"input": [{"id": "v", "config": {"queue": "v"}}]},
              |   "one-rate-two-color": {"config": {
 ceiling      |    "cir": "10000000"
              |   }}},
              |  {"sequence": 1, "config": {"sequence": 1}, "inputs": {"input": [
              |   {"id": "a", "config": {"queue": "a",
 rate         |    "weight": "30"
              |   }},
              |   {"id": "b", "config": {"queue": "b", "weight": "10"}}
              |  ]}},
              |  {"sequence": 2, "inputs": {"input": [{"id": "a", "config": {"queue": "p"}}]},
              |   "one-rate-two-color": {"config": {
 policer      |    "queuing-behavior": "POLICE",
 policer      |    "cir": "5000000",
 policer      |    "bc": 20000
              |   }, "exceed-action": {"config": {
              |    "set-dscp": 8,
 policer      |    "drop": true
              |   }}}}
              | ]}}]},
              | "interfaces": {"interface": [{"interface-id": "e", "output": {
              |  "scheduler-policy": {"config": {"name": "S"}},
              |  "queues": {"queue": [
              |   {"name": "a", "config": {"name": "a",
 drop         |    "queue-management-profile": "D"
              |   }}
              |  ]}
              | }}]}
              |}}
""",
}
WITHOUT_RATE = {"openconfig", "vyos limiter", "eos police", "nx-os police"}
"""Configurations that say nothing of the rate of the link."""
MATCHES = {"openconfig": {"p": frozenset({8})}}
"""Codepoints of classes that a configuration chooses by nothing that perhop knows."""


@dataclass(frozen=True)
class Line:
    """A line with a meaning, and the text around it."""

    dialect: str
    kinds: tuple[str, ...]
    number: int
    text: str


def tagged(name: str) -> tuple[list[str], list[Line]]:
    """The lines of a configuration, and those of them that have a meaning."""
    dialect = name.partition(" ")[0]
    rows = [row.partition("|") for row in WHOLE[name].strip("\n").split("\n")]
    texts = [text for _, _, text in rows]
    found = [
        Line(dialect, tuple(kinds.split()), number, text)
        for number, (kinds, _, text) in enumerate(rows, 1)
        if kinds.split()
    ]
    return texts, found


def scenario(name: str, lines: list[str], *, lenient: bool = True) -> tuple[Any, list[tuple[str, str]]]:
    """What a configuration becomes, and warnings, both without their lines; the error, if it is refused."""
    dialect = name.partition(" ")[0]
    rate = 1e8 if name in WITHOUT_RATE else None
    answers = Answers(rate, 1000.0, buffer(1e6), MATCHES.get(name, {}), lenient=lenient)
    try:
        done = imported(Source([("router", "\n".join(lines).encode())]), answers, dialect=dialect)
    except PerhopError as error:
        return str(error), []
    return tomllib.loads(done.toml), [(finding.code, finding.text) for finding in done.findings]


def report(lines: list[str], dialect: str, port: str | None) -> tuple[object, ...]:
    """All that an import says: values with the lines from which they come, and warnings."""
    answers = Answers(None, 1000.0, buffer(1e6), lenient=True)
    source = Source([("router", "\n".join(lines).encode())])
    try:
        done = imported(source, answers, dialect=dialect, interface=port)
    except PerhopError as error:
        return (str(error),)
    return done.toml, done.rows, done.findings


def without(lines: list[str], number: int) -> list[str]:
    """The lines with a blank in the place of one; a command that went on there ends before it."""
    result = list(lines)
    continued = number > 1 and lines[number - 2].endswith("\\")
    if continued and not lines[number - 1].endswith("\\"):
        result[number - 2] = result[number - 2][:-1]
    result[number - 1] = "\\" if lines[number - 1].endswith("\\") and continued else ""
    return result


EVERY = [(name, line) for name in WHOLE for line in tagged(name)[1]]


@pytest.mark.parametrize(("name", "line"), EVERY, ids=[f"{name} {line.number}" for name, line in EVERY])
def test_a_line_less_is_another_scenario(name: str, line: Line) -> None:
    lines, _ = tagged(name)
    assert scenario(name, without(lines, line.number)) != scenario(name, lines), line.text


NAMES_ONLY = {"ge-", "inet", "ipv", "forced", "pfifo", "egress", "IN", "OUT", "voice"}
"""Words that stand for a name, or of which there is only one."""


@pytest.mark.long
@pytest.mark.parametrize("name", WHOLE)
def test_a_misspelt_word_is_not_passed_over(name: str) -> None:
    """Without `--lenient` the configuration is refused, or it is another one, or a warning says so."""
    lines, found = tagged(name)
    full = scenario(name, lines, lenient=False)
    passed = []
    for line in found:
        for word in re.finditer(r"[A-Za-z][A-Za-z-]{2,}", line.text.partition("!")[0]):
            misspelt = f"{line.text[: word.end()]}x{line.text[word.end() :]}"
            other = [*lines[: line.number - 1], misspelt, *lines[line.number :]]
            named = word[0] in NAMES_ONLY or f"type {word[0]}" in line.text
            if not named and scenario(name, other, lenient=False) == full:
                passed.append(misspelt)
    assert passed == []


@pytest.mark.parametrize("name", WHOLE)
def test_the_whole_text_is_used(name: str) -> None:
    """Without `--lenient`, and no line is without effect."""
    lines, found = tagged(name)
    full, findings = scenario(name, lines, lenient=False)
    assert isinstance(full, dict), full
    shown = [text for code, text in findings if code == "W13"]
    assert [line.text for line in found if any(f"`{line.text.strip()}`" in text for text in shown)] == []


def test_how_many_combinations_there_are() -> None:
    combinations = Counter((line.dialect, kind) for _, line in EVERY for kind in line.kinds)
    assert {kind for _, kind in combinations} == set(KINDS)
    assert {dialect for dialect, _ in combinations} == set(READERS)
    assert len(combinations) >= 60


# Configurations as they are


WORDS = re.compile(
    r"(?i)(?<![a-z])(priority|bandwidth|rate|limit|ceil\w*|burst\w*|drop\w*|discard|match|polic\w+|shap\w+|"
    r"random-detect|w?red|queue\w*|scheduler\w*|dscp|precedence|quantum|threshold\w*|weight|max-limit|limit-at|"
    r"code-points?|transmit-rate|drop-profile\w*|[cp]ir|[cp]bs|target|min|max)(?![a-z])"
)
"""What lines about queues name, in any dialect."""


REDUNDANT = {
    # What holds without them: the platform's default, or what lines below imply.
    "eos-flat.cfg": (
        "no priority",
        "qos map dscp 32 34 to traffic-class 4",
        "qos map dscp 0 to traffic-class 1",
    ),
    "eos-profile.cfg": (
        "qos map dscp 8 9 10 11 12 13 14 15 to traffic-class 0",
        "qos map dscp 24 26 28 30 to traffic-class 3",
        "qos map dscp 46 to traffic-class 5",
    ),
    "eos-roce.cfg": (
        "no priority",
        "qos map dscp 26 to traffic-class 3",
        "qos map dscp 48 to traffic-class 6",
    ),
    "branch.cfg": ("random-detect dscp-based",),
    "ios-branch.cfg": ("random-detect dscp-based", "bandwidth 20000"),
    "ios-bytes.cfg": ("random-detect dscp-based",),
    "junos-set.conf": (
        "set class-of-service schedulers BE priority low",
        "set class-of-service schedulers AF priority low",
    ),
    "nxos-roce.cfg": ("bandwidth remaining percent 0",),
    "tc.json": ('"min": 50000,', '"max": 150000,', '"limit": 10240,'),
    # Of a class that no packet comes to, as a warning for its class map says.
    "ios-old.cfg": ("bandwidth 512",),
}
"""Lines that change nothing, as they should."""
STRUCTURE = re.compile(r'forwarding-classes\b|"name"|^/queue|^end-policy-map')
"""Lines that name things, or begin and end blocks."""


def alone(text: str) -> bool:
    """Whether a line is whole without those around it."""
    pairs = [text.count(a) == text.count(b) for a, b in ("{}", "[]")]
    return all(pairs) and not text.strip().startswith(("!", "#"))


def text_of(name: str) -> list[str]:
    """The lines of a configuration of the folder, or of the example that the documentation uses."""
    folder = EXAMPLES if name == "branch.cfg" else CONFIGURATIONS
    return (folder / name).read_text(encoding="utf-8").split("\n")


def named(path_name: str) -> list[tuple[str, int]]:
    lines = text_of(path_name)
    meant = [(n, line.strip()) for n, line in enumerate(lines, 1) if WORDS.search(line) and alone(line)]
    return [(path_name, n) for n, line in meant if not STRUCTURE.search(line)]


NAMES = [*sorted(path.name for path in CONFIGURATIONS.iterdir()), "branch.cfg"]
CASES = [case for name in NAMES for case in named(name)]


@pytest.mark.parametrize("name", sorted({name for name, _ in CASES}))
def test_no_line_of_a_configuration_is_lost_in_silence(name: str) -> None:
    lines = text_of(name)
    dialect = recognised(Source([(name, "\n".join(lines).encode())])).name
    full = report(lines, dialect, PORTS.get(name))
    silent = [
        lines[number - 1].strip()
        for _, number in named(name)
        if report(without(lines, number), dialect, PORTS.get(name)) == full
    ]
    assert sorted(silent) == sorted(REDUNDANT.get(name, ()))
