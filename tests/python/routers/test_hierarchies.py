"""Ceilings of classes and policies within classes become trees of `htb` (docs/hierarchy.md)."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from tests.python.routers.importing import Brought, of_file, of_text

from perhop import run
from perhop.routers import Answers, Source, exported, imported
from perhop.scenario import reading

TWO = """\
class-map A
 match dscp af11
class-map B
 match dscp af21
policy-map P
 class A
  bandwidth {a}
  shape average {shape}
 class B
  bandwidth {b}
 class class-default
interface Gi0
 bandwidth 10000
 service-policy output P
"""


def tree(done: Brought) -> dict[str, Any]:
    """The only root class of the link's tree."""
    queue = done.link["queue"]
    while queue["scheduler"] == "shaper":
        queue = queue["queue"]
    assert queue["scheduler"] == "htb"
    (root,) = queue["classes"]
    return root  # type: ignore[no-any-return]


def test_a_shaper_of_one_class_is_its_ceiling() -> None:
    done = of_text(TWO.format(a="4000", b="3000", shape="6000000 48000"))
    root = tree(done)
    # 4, 3 and the other 3 of 10 Mbit/s; bc is in bits. Turns are as the rates: 3000 B are for 3 Mbit/s.
    classes = {entry["name"]: entry for entry in root["classes"]}
    assert [(c["rate"], c.get("ceil")) for c in classes.values()] == [
        ("4Mbps", "6Mbps"), ("3Mbps", "10Mbps"), ("3Mbps", "10Mbps"),
    ]  # fmt: skip
    assert classes["A"]["cburst"] == "6kB"
    assert [entry["quantum"] for entry in classes.values()] == ["2kB", "1.5kB", "1.5kB"]
    assert (root["rate"], "ceil" in root) == ("10Mbps", False)
    assert done.codes("W06") == []


def test_a_ceiling_below_the_guarantee_is_the_rate() -> None:
    done = of_text(TWO.format(a="4000", b="3000", shape="2000000"))
    classes = tree(done)["classes"]
    assert (classes[0]["rate"], "ceil" in classes[0]) == ("2Mbps", False)


def test_a_ceiling_that_is_not_below_the_link_has_no_effect() -> None:
    done = of_text(TWO.format(a="4000", b="3000", shape="10000000"))
    assert done.link["queue"]["scheduler"] == "wfq"
    assert done.codes("W13") == [8]


def test_a_shaper_above_the_link_has_no_effect() -> None:
    text = TWO.format(a="4000", b="3000", shape="6000000").replace("policy output P", "policy output Q")
    done = of_text(text + "policy-map Q\n class class-default\n  shape average 20m\n   service-policy P\n")
    assert (done.link["rate"], done.link["queue"]["scheduler"]) == ("10Mbps", "htb")
    assert done.codes("W13") == [17]


def test_ceilings_are_exported_and_read_back() -> None:
    text = TWO.format(a="4000", b="3000", shape="6000000 48000")
    toml = imported(Source([("x", text.encode())]), Answers(packet_size=1000.0)).toml
    lines = exported(reading.canonical(toml), "x", "ios").text
    assert " class A\n  bandwidth 4000\n  shape average 6000000 48000 0\n" in lines
    assert of_text(lines, link_rate=1e7).link["queue"] == of_text(text, link_rate=1e7).link["queue"]


def test_guarantees_above_the_link_are_shares() -> None:
    done = of_text(TWO.format(a="9000", b="9000", shape="6000000"))
    rates = [entry["rate"] for entry in tree(done)["classes"]]
    # Together below 10 Mbit/s, beside the least part for class-default.
    assert done.codes("W16") == [12]
    assert sum(float(rate.removesuffix("bps").rstrip("Mk")) for rate in rates[:2]) < 10


def test_a_small_burst_is_a_packet() -> None:
    done = of_text(TWO.format(a="4000", b="3000", shape="6000000 8000"))
    assert tree(done)["classes"][0]["cburst"] == "1.5kB"
    assert ("W16", 8) in done.warnings


def test_strict_priority_goes_before_classes_with_ceilings() -> None:
    text = TWO.format(a="4000", b="3000", shape="6000000")
    text = text.replace("class-map A", "class-map V\n match dscp ef\nclass-map A", 1)
    done = of_text(text.replace(" class A\n", " class V\n  priority 1000\n class A\n", 1))
    queue = done.link["queue"]
    assert (queue["scheduler"], queue["priority"][0]["rate"]) == ("llq", "1Mbps")
    (root,) = queue["queue"]["classes"]
    # What the strict queue leaves is the tree's: a root borrows of no other, so its rate is the link's.
    assert (root["rate"], "ceil" in root) == ("10Mbps", False)
    assert done.carried({0: 30.0})[0] == pytest.approx(10.0, rel=0.02)
    assert [entry["rate"] for entry in root["classes"]] == ["4Mbps", "3Mbps", "2Mbps"]
    assert done.codes("W06") == []


def test_policies_within_classes() -> None:
    done = of_file("ios-nested.cfg")
    classes = {entry["name"]: entry for entry in tree(done)["classes"]}
    site, other, rest = classes.values()
    assert (site["rate"], site["ceil"], other["rate"], other["ceil"]) == ("4Mbps", "6Mbps", "2Mbps", "10Mbps")
    # class-default is shaped to 1 of the 4 Mbit/s that are left.
    assert (rest["rate"], rest["queue"]["aqm"]) == ("1Mbps", "drop-tail")
    inner = site["queue"]
    assert (inner["scheduler"], inner["priority"][0]["match"]) == ("llq", {"dscp": ["EF"]})
    assert [queue.get("weight") for queue in inner["queue"]["queues"]] == [2, 1]
    assert other["queue"]["priority"][0]["match"] == {"dscp": ["CS5"]}
    # The policy is used twice: each has its own policer, for the packets that no other class takes.
    assert [(meter["name"], meter["match"]) for meter in done.link["meters"]] == [
        ("SITE-A/class-default", {"dscp": ["CS1", "AF13"]}),
        ("SITE-B/class-default", {"dscp": ["CS2", "AF23"]}),
    ]
    names = [flow["name"] for flow in done.flows]
    assert names[0] == "SITE-A/VOICE"
    assert len(set(names)) == len(names)
    assert (done.codes("W06"), done.codes("W13"), done.codes("W14")) == ([], [], [])


NESTED = """\
class-map A
 match dscp af11 ef
class-map V
 match dscp ef
policy-map IN
 class V
  bandwidth percent 30
policy-map P
 class A
  {line}
  service-policy IN
 class class-default
interface Gi0
 bandwidth 10000
 service-policy output P
"""


def test_percents_within_a_class_are_of_its_ceiling() -> None:
    done = of_text(NESTED.format(line="shape average 5m"))
    (a, _) = tree(done)["classes"]
    assert a["queue"]["queues"][0]["rate"] == "1.5Mbps"


def test_a_policy_within_a_strict_class_is_reported() -> None:
    done = of_text(NESTED.format(line="priority 2000"))
    assert done.codes("W06") == [11]


def test_a_policy_that_is_not_defined_within_a_class() -> None:
    text = NESTED.replace("service-policy IN", "service-policy OUT").format(line="bandwidth 2000")
    assert 11 in of_text(text, interface="Gi0").codes("W15")


def test_a_guarantee_within_a_class_without_a_ceiling_is_a_part_of_it() -> None:
    text = NESTED.replace("bandwidth percent 30", "bandwidth 500").format(line="bandwidth 2000")
    done = of_text(text.replace(" class class-default", "  shape average 9m\n class class-default"))
    assert done.codes("W05") == []
    text = text.replace(" class class-default\n", " class class-default\n  shape average 1m\n")
    done = of_text(text)
    # 500 of 2000 kbit/s are 25 % of the 10 Mbit/s that the class may have.
    assert tree(done)["classes"][0]["queue"]["queues"][0]["rate"] == "2.5Mbps"
    assert done.codes("W05") == [7]


JUNOS = """\
set class-of-service classifiers dscp C forwarding-class a loss-priority low code-points af11
set class-of-service schedulers A transmit-rate percent 20
set class-of-service schedulers A shaping-rate 30m
set class-of-service schedulers A buffer-size percent 20
set class-of-service schedulers B transmit-rate percent 80
set class-of-service schedulers B buffer-size percent 80
set class-of-service scheduler-maps M forwarding-class a scheduler A
set class-of-service scheduler-maps M forwarding-class best-effort scheduler B
set class-of-service interfaces ge-0/0/0 scheduler-map M
set class-of-service interfaces ge-0/0/0 unit 0 classifiers dscp C
"""


@pytest.mark.parametrize(
    ("line", "rates"),
    [
        (JUNOS, ("20Mbps", "30Mbps")),
        (JUNOS.replace("transmit-rate percent 20\n", "transmit-rate percent 20 exact\n").replace(
            "set class-of-service schedulers A shaping-rate 30m\n", ""), ("20Mbps", None)),
    ],
    ids=["shaping-rate", "exact"],
)  # fmt: skip
def test_shaped_schedulers_of_junos(line: str, rates: tuple[str, str | None]) -> None:
    done = of_text(line, link_rate=1e8, buffer=None, lenient=True)
    a = done.queues["a"]
    assert (a["rate"], a.get("ceil")) == rates
    assert done.codes("W06") == []


def test_the_ceiling_holds_in_a_run(tmp_path: Any) -> None:  # noqa: ANN401 - pathlib's
    text = TWO.format(a="4000", b="3000", shape="6000000")
    done = imported(Source([("x", text.encode())]), Answers(packet_size=1000.0))
    alone = done.toml.split("[[flows]]")
    # Only the shaped class sends: 6 of 10 Mbit/s.
    scenario = "[[flows]]".join([alone[0], next(part for part in alone[1:] if '"AF11"' in part)])
    scenario = scenario.replace('duration = "60s"', 'duration = "12s"').replace('"10s"', '"4s"')
    (tmp_path / "a.toml").write_text(scenario, encoding="utf-8")
    with warnings.catch_warnings(action="ignore"):  # the other classes stay empty
        classes = run(tmp_path / "a.toml", runs=1).classes()
    assert classes["throughput_bps"][0] == pytest.approx(6e6, rel=0.01)
