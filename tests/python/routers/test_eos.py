"""Arista EOS: realistic configurations, single lines, units."""

from __future__ import annotations

from typing import Any

import pytest
from tests.python.routers.importing import Brought, buffer, of_file, of_text

from perhop.errors import PerhopError

PORT = """\
interface Ethernet1
   speed 10g
   tx-queue 1
      no priority
      bandwidth percent 60
      {line}
   !
   tx-queue 2
      bandwidth percent 40
!
qos map dscp 0 to traffic-class 1
"""


def of_line(line: str, **answers: Any) -> Brought:  # noqa: ANN401 - of several types
    """A port with two queues that share, with one more line in the first."""
    given: dict[str, Any] = {"buffer": buffer(4e6), **answers}
    return of_text(PORT.format(line=line), **given)


def _limit(entry: dict[str, dict[str, str]]) -> str:
    return (entry.get("rule") or entry["queue"])["limit"]


def test_a_leaf_switch() -> None:
    done = of_file("eos-leaf.cfg", interface="Ethernet3/1", buffer=buffer(2e6))
    assert (done.dialect, done.link["rate"]) == ("eos", "10Gbps")
    # `shape rate` after the queues, no deeper than these, is the interface's.
    assert (done.link["queue"]["scheduler"], done.link["queue"]["rate"]) == ("shaper", "5Gbps")
    queues = done.queues
    assert list(queues) == ["6", "4", "1"]
    # Traffic class 5 goes to queue 6; queue 6 has its own packets, too.
    assert queues["6"]["match"]["dscp"][:2] == ["CS5", 41]
    # Strict and shaped: first of all up to 1 Gbit/s, and never more.
    assert (queues["6"]["rate"], queues["6"].get("ceil"), queues["6"]["prio"]) == ("1Gbps", None, 0)
    four = queues["4"]
    # Codepoints 32 to 39 by default, AF21 to AF23 by `qos map`, AF23 with no precedence of its own.
    assert four["match"]["dscp"] == ["AF21", "AF22", "AF23", "CS4", 33, "AF41", 35, "AF42", 37, "AF43", 39]
    assert (four["queue"]["green"], four["queue"]["yellow"]) == ("600kB/900kB/0.1", "300kB/900kB/0.2")
    # A quarter of the 4 Gbit/s that it leaves.
    assert (four["rate"], four["ceil"], four["queue"]["weight"]) == ("1Gbps", "5Gbps", 2**-4)
    assert four["queue"]["scale-by-size"] is False
    assert queues["1"]["queue"]["ecn"] == "mark-above-max"
    assert queues["1"]["queue"]["thresholds"] == "128kB/256kB/0.8"
    assert done.codes("W05") == [15, 16, 20]
    assert done.codes("W02") == [15, 16, 20]
    assert (done.codes("W08"), done.codes("W09")) == ([20], [12, 18, 23])
    # The policers are another port's.
    assert done.codes("W10") == [35, 37]
    assert any('imported by --interface "Ethernet3/1 ingress"' in text for text in done.texts)


def test_the_policers_of_a_leaf_switch() -> None:
    done = of_file("eos-leaf.cfg", interface="Ethernet3/1 ingress")
    assert [(meter["name"], meter["profile"]["rate"]) for meter in done.link["meters"]] == [
        ("VOICE", "20Mbps"),
        ("class-default", "8Mbps"),
    ]
    # Nothing is said of queues, which are not this port's.
    assert {line for code, line in done.warnings if code not in {"W13", "W04"}} == {35, 37}
    assert done.codes("W06") == []


def test_a_profile_and_what_an_interface_has_over_it() -> None:
    done = of_file("eos-profile.cfg", interface="Ethernet1", buffer=buffer(2e6))
    # 80 percent of 25 Gbit/s.
    assert done.link["rate"] == "20Gbps"
    assert done.link["queue"]["scheduler"] == "llq"
    queues = done.queues
    assert {name: queue.get("weight") for name, queue in queues.items()} == {
        "5": None,
        "3": 60,
        "0": 10,
        "1": 30,
    }
    assert queues["1"]["rule"]["thresholds"] == "200kB/400kB/0.05"
    assert done.codes("W17") == [12]
    assert done.codes("W15") == [24, 45]
    assert 26 in done.codes("W13")  # another profile's shaper


def test_a_profile_that_is_attached_to_nothing_is_a_port() -> None:
    done = of_file("eos-profile.cfg", interface="SPARE", link_rate=1e9, buffer=buffer(1e6))
    # 5 ms of 500 Mbit/s.
    assert _limit(done.queues["2"]) == "312.5kB"
    assert ("W05", 27) in done.warnings


def test_segments_are_asked_for() -> None:
    with pytest.raises(PerhopError, match=r"missing --segment-size \(line 21"):
        of_file("eos-roce.cfg", buffer=buffer(4e6))
    done = of_file("eos-roce.cfg", buffer=buffer(4e6), segment_size=256.0)
    rule = done.queues["3"]["rule"]
    assert (rule["thresholds"], rule["ecn"]) == ("512kB/2.56MB/0.2", "mark-only")
    # Two thresholds, each with its assumption.
    assert done.codes("W05") == [21, 21]
    assert done.codes("W13") == [7, 8, 10, 22, 27, 28]
    assert of_file("eos-roce.cfg", lenient=True).queues["3"]["rule"]["thresholds"] == "416kB/2.08MB/0.2"


def test_policers_of_arriving_packets() -> None:
    done = of_file("eos-police.cfg", interface="Ethernet7", matches={"WEB": frozenset({18})})
    assert [meter["profile"] for meter in done.link["meters"]] == [
        {
            "marker": "trtcm", "rate": "10Mbps", "burst": "128kB", "peak-rate": "20Mbps",
            "peak-burst": "256kB", "out": "drop-red",
        },
        {"marker": "token-bucket", "rate": "8Mbps", "burst": "100kB", "out": "drop"},
        {"marker": "token-bucket", "rate": "64kbps", "burst": "16kB", "out": "drop"},
    ]  # fmt: skip
    assert (done.codes("W05"), done.codes("W10"), done.codes("W01")) == ([14, 17, 21, 21], [14, 17], [17])


def test_a_policy_of_departing_packets_is_refused() -> None:
    text = PORT.format(line="bandwidth percent 60").replace(
        "   speed 10g\n", "   speed 10g\n   service-policy type qos output LIMIT\n"
    )
    policy = "policy-map type qos LIMIT\n   class class-default\n      police cir 5 mbps bc 64 kbytes\n!\n"
    text = policy + text
    with pytest.raises(PerhopError, match=r"line 7: policies of departing .*qos output LIMIT`.*--lenient"):
        of_text(text, buffer=buffer(4e6))
    done = of_text(text, buffer=buffer(4e6), lenient=True)
    assert 7 in done.codes("W13")
    assert "meters" not in done.link


def test_packets_a_second_need_the_size_of_packets() -> None:
    with pytest.raises(PerhopError, match="--packet-size"):
        of_file("eos-police.cfg", interface="Ethernet7", packet_size=None, matches={"WEB": frozenset({18})})


def test_a_strict_queue_with_a_shaper() -> None:
    done = of_file("eos-police.cfg", interface="Ethernet8", buffer=buffer(1e6))
    assert (done.link["queue"]["scheduler"], done.queues["4"]["rate"]) == ("htb", "20Mbps")
    assert "ceil" not in done.queues["4"]
    # Lines of the policers are not this port's, though their classes say the traffic class.
    assert done.codes("W10") == []


def test_lost_indentation() -> None:
    done = of_file("eos-flat.cfg", buffer=buffer(4e6))
    # The first `shape rate` comes before a queue, the second one within it.
    assert done.link["queue"]["rate"] == "40Mbps"
    four, one = done.queues.values()
    assert (four["rate"], four["ceil"], one["rate"], one["ceil"]) == ("8Mbps", "20Mbps", "32Mbps", "40Mbps")
    # 10 and 40 ms, 2 and 20 ms at the rate that the shaper leaves the queue.
    assert (four["queue"]["green"], four["queue"]["red"]) == ("25kB/100kB/0.04", "5kB/50kB/0.2")
    assert one["queue"]["thresholds"] == "2MB/3MB/1"
    assert done.codes("W08") == [15]
    assert done.codes("W05") == [8, 8, 9, 9, 15, 16]


@pytest.mark.parametrize(
    ("amounts", "thresholds", "notes"),
    [
        ("100000 bytes maximum-threshold 400000 bytes", "100kB/400kB/0.1", []),
        ("100 kbytes maximum-threshold 400 kbytes", "100kB/400kB/0.1", [6]),
        ("1 mbytes maximum-threshold 2 mbytes", "1MB/2MB/0.1", [6]),
        ("1000 segments maximum-threshold 2000 segments", "100kB/200kB/0.1", [6, 6]),
        ("100 microseconds maximum-threshold 300 us", "125kB/375kB/0.1", [6, 6]),
        ("1 milliseconds maximum-threshold 2 ms", "1.25MB/2.5MB/0.1", [6, 6]),
        ("100000 maximum-threshold 200000", "100kB/200kB/0.1", [6]),
    ],
)
def test_units_of_thresholds(amounts: str, thresholds: str, notes: list[int]) -> None:
    done = of_line(f"random-detect drop minimum-threshold {amounts} drop-probability 10", segment_size=100.0)
    assert done.queues["1"]["rule"]["thresholds"] == thresholds
    assert done.codes("W05") == notes


@pytest.mark.parametrize(
    ("line", "rate", "codes"),
    [
        ("shape rate 2000000", "2Gbps", ["W05"]),
        ("shape rate 2000000 kbps", "2Gbps", []),
        ("shape rate 2000 mbps", "2Gbps", []),
        ("shape rate 2 gbps", "2Gbps", []),
        ("shape rate 20 percent", "2Gbps", []),
        ("shape rate 250000 pps", "2Gbps", ["W05"]),
    ],
)
def test_units_of_shapers(line: str, rate: str, codes: list[str]) -> None:
    done = of_line(line)
    one = done.queues["1"]
    assert one.get("ceil", one["rate"]) == rate
    assert [code for code, _ in done.warnings if code in {"W05", "W10", "W13"}] == codes


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("random-detect drop minimum-threshold 9 bytes maximum-threshold 8 bytes drop-probability 10", "W16"),
        ("random-detect drop minimum-threshold 8 bytes maximum-threshold 9 bytes drop-probability 0", "W16"),
        (
            "random-detect drop minimum-threshold 8 bytes maximum-threshold 9 bytes drop-probability 900",
            "W16",
        ),
        ("random-detect drop minimum-threshold 8 bytes maximum-threshold 9 bytes", "W04"),
        ("random-detect ecn count", "W13"),
        ("bandwidth percent 70", "W17"),
        ("priority strict", "W17"),
    ],
)
def test_lines_that_are_reported(line: str, code: str) -> None:
    found = of_line(line).warnings
    assert (code, 6) in found or (code, 5) in found or (code, 4) in found


@pytest.mark.parametrize(
    "line",
    [
        "random-detect drop minimum-threshold 8 bytes maximum-threshold 9 ms",
        "random-detect drop drop-precedence 7 minimum-threshold 8 bytes",
        "shape rate",
        "shape rate fast",
        "bandwidth percent lots",
        "latency maximum long",
        "wibble 3",
    ],
)
def test_a_line_of_a_queue_that_is_not_understood_is_an_error_unless_lenient(line: str) -> None:
    with pytest.raises(
        PerhopError, match=rf"router.cfg: line 6: not understood: `{line}`; what Ethernet1 does"
    ):
        of_line(line)
    assert ("W13", 6) in of_line(line, lenient=True).warnings


@pytest.mark.parametrize(
    "line", ["no bandwidth percent", "no shape rate", "default random-detect ecn", "no priority"]
)
def test_what_a_running_configuration_says_of_defaults_is_no_error(line: str) -> None:
    plain = of_line("").queues["1"]
    assert of_line("shape rate 2 gbps\n      no shape rate").queues["1"] == plain
    assert of_line(line).link["queue"]["scheduler"] == "wfq"


def test_a_codepoint_that_is_none_is_not_left_out() -> None:
    text = "class-map type qos match-any A\n   match ip dscp 46 loud\n"
    text += "policy-map type quality-of-service IN\n   class A\n      set traffic-class 5\n"
    port = PORT.format(line="").replace(
        "   speed 10g\n", "   speed 10g\n   service-policy type qos input IN\n"
    )
    with pytest.raises(PerhopError, match="line 2: not understood: `match ip dscp 46 loud`"):
        of_text(text + port, buffer=buffer(1e6))


def test_guarantees_in_percent_and_in_rates() -> None:
    done = of_line("bandwidth guaranteed 300 mbps")
    assert done.queues["1"]["rate"] == "300Mbps"
    assert of_line("bandwidth guaranteed percent 3").queues["1"]["rate"] == "300Mbps"
    assert of_line("bandwidth guaranteed 300000").codes("W05") == [6]


def test_one_queue_that_is_not_configured_is_singular() -> None:
    maps = "qos map dscp 0-63 to traffic-class 1\nqos map dscp 8 to traffic-class 5\n"
    done = of_text(PORT.format(line="") + maps, buffer=buffer(1e6))
    assert any(text.startswith("tx-queue 5 is not configured") for text in done.texts)
    done = of_text(PORT.format(line=""), buffer=buffer(1e6))
    assert any(text.startswith("tx-queues 0, 3, 4, 5, 6, 7 are not configured") for text in done.texts)


def test_a_share_without_a_word_of_priority_shares() -> None:
    done = of_line("")
    # Queue 2 is above the highest one that has `no priority`.
    assert {name: queue.get("weight") for name, queue in done.queues.items()} == {"2": 40, "1": 60}
    assert done.codes("W17") == [9]
