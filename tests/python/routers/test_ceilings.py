"""A ceiling is a ceiling: more than it is offered, alone and beside others, and what leaves is measured."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest
from tests.python.routers.importing import Brought, buffer, of_text

import perhop
from perhop.routers import Answers, Source, exported, imported
from perhop.scenario import reading

CEILING, LINK = 10.0, 100.0
EF, AF11, BE = 46, 10, 0
CISCO = """\
class-map match-any VOICE
 match dscp ef
class-map match-any DATA
 match dscp af11
policy-map P
 class VOICE
  {voice}
 class DATA
  {data}
 class class-default
  {rest}
interface {name}
 bandwidth 100000
 service-policy output P
"""
XR = CISCO.replace("\npolicy-map", "\n end-class-map\npolicy-map").replace(
    "\ninterface", "\n end-policy-map\ninterface"
)
NEXUS = """\
class-map type qos match-any VOICE
  match dscp 46
class-map type qos match-any DATA
  match dscp 10
policy-map type qos IN
  class VOICE
    set qos-group 7
  class DATA
    set qos-group 3
policy-map type queuing OUT
  class type queuing c-out-8q-q-default
    {rest}
  class type queuing c-out-8q-q3
    {data}
  class type queuing c-out-8q-q7
    {voice}
interface Ethernet1/1
  speed 100
  service-policy type queuing output OUT
interface Ethernet1/2
  service-policy type qos input IN
"""
EOS = """\
qos map dscp 46 to traffic-class 5
qos map dscp 10 to traffic-class 3
qos map dscp 0 to traffic-class 1
interface Ethernet1
   speed forced 100full
   tx-queue 5
      {voice}
   tx-queue 3
      no priority
      {data}
   tx-queue 1
      no priority
      {rest}
"""


IOS = CISCO.replace("{name}", "GigabitEthernet0/0")
XR = XR.replace("{name}", "GigabitEthernet0/0/0/0")
EOS_TWO = EOS.replace("tx-queue 3\n      no priority", "tx-queue 3\n      priority strict")
FORTY = "bandwidth percent 40"
REMAINING = "bandwidth remaining percent 40"
SHARED = {
    "eos strict": (EOS, "priority strict; shape rate 10000", FORTY, "bandwidth percent 60"),
    "eos two strict": (
        EOS_TWO,
        "priority strict; shape rate 10 mbps",
        "shape rate 60 mbps",
        "bandwidth percent 100",
    ),
    "eos sharing": (EOS, "no priority; bandwidth percent 20; shape rate 10 percent", FORTY, FORTY),
    "ios sharing": (IOS, "bandwidth percent 10; shape average 10000000", FORTY, FORTY),
    "ios remaining": (IOS, "bandwidth remaining percent 20; shape average percent 10", REMAINING, REMAINING),
    "ios strict, policed": (
        IOS,
        "priority; police cir 10000000 conform-action transmit exceed-action drop",
        FORTY,
        FORTY,
    ),
    "ios strict, shaped": (IOS, "priority; shape average 10000000", FORTY, FORTY),
    "xr strict, policed": (
        XR,
        "priority level 1; police rate 10 mbps   ! voice",
        REMAINING,
        "bandwidth remaining percent 60",
    ),
    "xr sharing": (XR, "shape average 10 mbps; bandwidth remaining percent 20", REMAINING, REMAINING),
    "nexus strict": (
        NEXUS,
        "priority level 1; shape min 0 kbps max 10 mbps",
        REMAINING,
        "bandwidth remaining percent 60",
    ),
    "nexus sharing": (
        NEXUS,
        "bandwidth remaining percent 20; shape min 1 mbps max 10 mbps",
        REMAINING,
        REMAINING,
    ),
}
"""Classes with 10 Mbit/s at most of 100, beside two that share the rest: the lines of each of the three."""
PARTS = {"eos two strict": 2 / 3, "eos strict": 0.4, "xr strict, policed": 0.4, "nexus strict": 0.4}
"""Of what it leaves, the second class's part, where that is not one half."""


def configuration(name: str) -> str:
    """The text with the lines of its classes."""
    text, *classes = SHARED[name]
    before = text.partition("{voice}")[0]
    indentation = "\n" + " " * (len(before) - before.rindex("\n") - 1)
    voice, data, rest = (lines.replace("; ", indentation) for lines in classes)
    return text.format(voice=voice, data=data, rest=rest)


def brought(name: str) -> Brought:
    """The import of a configuration."""
    return of_text(configuration(name), buffer=buffer(2e5))


def brought_toml(name: str) -> str:
    """The scenario of a configuration."""
    source = Source([("x", configuration(name).encode())])
    return imported(source, Answers(packet_size=1000.0, buffer=buffer(2e5))).toml


@pytest.mark.parametrize("name", SHARED)
def test_alone_it_gets_its_ceiling(name: str) -> None:
    assert brought(name).carried({EF: 50.0})[EF] == pytest.approx(CEILING, rel=0.02)


@pytest.mark.parametrize("name", SHARED)
def test_beside_others_it_gets_no_more_and_they_what_is_left(name: str) -> None:
    """90 Mbit/s are left, of which the others have parts or, where one is strict, its ceiling of 60."""
    carried = brought(name).carried({EF: 50.0, AF11: 90.0, BE: 90.0})
    assert carried[EF] == pytest.approx(CEILING, rel=0.02)
    assert sum(carried.values()) == pytest.approx(LINK, rel=0.02)
    assert carried[AF11] == pytest.approx(90 * PARTS.get(name, 0.5), rel=0.05)


@pytest.mark.parametrize("name", ["eos strict", "eos two strict", "ios strict, shaped", "nexus strict"])
def test_below_its_ceiling_a_strict_class_loses_nothing(name: str) -> None:
    assert brought(name).carried({EF: 9.9, AF11: 90.0, BE: 90.0})[EF] == pytest.approx(9.9, rel=0.005)


@dataclass(frozen=True)
class Class:
    """A transmit queue: its ceiling and its weight, and what it is offered, in Mbit/s."""

    number: int
    strict: bool
    ceiling: float
    weight: int
    offered: float

    def lines(self) -> str:
        """The lines of the queue's configuration."""
        kind = "priority strict" if self.strict else f"no priority\n      bandwidth percent {self.weight}"
        shaper = f"\n      shape rate {self.ceiling:g} mbps" if self.ceiling < LINK else ""
        return f"   tx-queue {self.number}\n      {kind}{shaper}\n"


def fluid(classes: list[Class]) -> list[float]:
    """What each class gets: strict ones in their order, then parts by weight, none above what it can use."""
    got = dict.fromkeys(classes, 0.0)
    left = LINK
    for one in (one for one in classes if one.strict):
        got[one] = min(one.offered, one.ceiling, left)
        left -= got[one]
    hungry = [one for one in classes if not one.strict]
    while hungry and left > 0:
        part = left / sum(one.weight for one in hungry)
        full = [one for one in hungry if min(one.offered, one.ceiling) - got[one] <= part * one.weight]
        for one in full or hungry:
            more = min(one.offered, one.ceiling) - got[one] if full else part * one.weight
            got[one], left = got[one] + more, left - more
        hungry = [one for one in hungry if full and one not in full]
    return list(got.values())


@pytest.mark.parametrize("seed", range(16))
def test_any_classes_get_what_a_fluid_does(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - not for secrets
    number = chance.randint(2, 5)
    strict = chance.randint(0, number - 1)
    classes = [
        Class(7 - n, n < strict, chance.choice([LINK, LINK, 5, 10, 20, 40, 60]), 10 * chance.randint(1, 3),
              chance.choice([3, 15, 50, 90]))
        for n in range(number)
    ]  # fmt: skip
    codes = [8 * one.number for one in classes]
    maps = dict.fromkeys(range(64), classes[-1].number) | {8 * one.number: one.number for one in classes}
    text = "".join(f"qos map dscp {code} to traffic-class {queue}\n" for code, queue in maps.items())
    text += "interface Ethernet1\n   speed forced 100full\n" + "".join(one.lines() for one in classes)
    done = of_text(text, buffer=buffer(1e5))
    carried = done.carried({code: one.offered for code, one in zip(codes, classes, strict=True)})
    assert list(carried.values()) == pytest.approx(fluid(classes), rel=0.03, abs=0.4)


@pytest.mark.parametrize("dialect", ["ios", "junos", "tc"])
@pytest.mark.parametrize("name", ["eos strict", "eos sharing"])
def test_a_ceiling_that_is_exported_is_one_there(name: str, dialect: str) -> None:
    text = exported(reading.canonical(brought_toml(name)), "x.toml", dialect).text
    back = of_text(text, dialect=dialect, link_rate=LINK * 1e6, buffer=buffer(2e5))
    assert back.carried({EF: 50.0})[EF] == pytest.approx(CEILING, rel=0.02)
    offered = {EF: 50.0, AF11: 90.0, BE: 90.0}
    assert back.carried(offered) == pytest.approx(brought(name).carried(offered), rel=0.05)


def test_a_strict_class_waits_for_a_packet_of_others_beside_downloads() -> None:
    """5 ms on the way, 80 us to send 1 kB, and at most 120 us of a packet of 1500 bytes before it."""
    link = brought("eos strict").link
    ends = {"from": link["from"], "to": link["to"]}
    voice = {"name": "v", **ends, "dscp": EF, "transport": {"udp": "cbr", "rate": "9Mbps", "packet": "1kB"}}
    others = [
        {"name": f"t{code}", **ends, "dscp": code, "transport": {"tcp": "linux"}} for code in (AF11, BE)
    ]
    scenario = {
        "title": "x",
        "duration": "4s",
        "warmup": "2s",
        "links": {"l": link},
        "flows": [voice, *others],
    }
    row = next(iter(perhop.run(scenario, runs=1).flows.iter_rows(named=True)))
    assert row["play_out_delay_s"] <= 5e-3 + 80e-6 + 120e-6 + 1e-6


def test_a_shaper_of_the_only_class_is_the_port_s() -> None:
    text = (
        "policy-map P\n class class-default\n  shape average 10m\ninterface Gi0\n service-policy output P\n"
    )
    assert of_text(text).carried({0: 50.0})[0] == pytest.approx(CEILING, rel=0.02)
    assert of_text(text, link_rate=1e8).carried({0: 50.0})[0] == pytest.approx(CEILING, rel=0.02)
    queue = "interface Ethernet1\n   speed forced 100full\n   tx-queue 1\n      shape rate 10 mbps\n"
    assert of_text(queue, buffer=buffer(1e5)).carried({0: 50.0})[0] == pytest.approx(CEILING, rel=0.02)
