"""Cisco IOS, IOS-XE, IOS-XR and NX-OS: golden pairs, realistic configurations, single lines."""

from __future__ import annotations

import pytest
from tests.python.routers.importing import CONFIGURATIONS, buffer, of_file, of_text

from perhop.errors import PerhopError

EDGE = """\
policy-map EDGE
 class DATA
  bandwidth percent 40
  queue-limit 100 packets
  random-detect dscp-based
  random-detect exponential-weighting-constant 6
  random-detect dscp af21 30 60 20
  random-detect dscp af22 20 50 10
  random-detect dscp af23 10 40 5
"""


def test_the_worked_example() -> None:
    done = of_text(EDGE, link_rate=20e6)
    data = done.queues["DATA"]
    assert data["rate"] == "8Mbps"
    assert data["match"] == {"dscp": ["AF21", "AF22", "AF23"]}
    assert data["rule"] == {
        "aqm": "wred",
        "green": "30/60/0.05",
        "yellow": "20/50/0.1",
        "red": "10/40/0.2",
        "limit": "100p",
        "weight": 0.015625,
        "wait": False,
        "mean-packet": "1kB",
    }
    # The fragment has neither class map nor interface, nor a class-default with a limit.
    assert done.warnings == [("W04", 1), ("W15", 1), ("W12", 2), ("W15", 2)]
    assert [(flow["dscp"], flow["color"]) for flow in done.flows[:3]] == [
        ("AF21", "green"),
        ("AF22", "yellow"),
        ("AF23", "red"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        EDGE.replace("  ", "").replace(" class", "class"),
        EDGE.replace("bandwidth", "band").replace("policy-map", "POLICY-MAP"),
        EDGE.replace("\n", "\r\n"),
        "! a comment\n" + EDGE,
    ],
    ids=["no indentation", "truncated words", "line ends", "a comment"],
)
def test_how_it_is_written_does_not_matter(text: str) -> None:
    done = of_text(text, link_rate=20e6)
    assert done.queues == of_text(EDGE, link_rate=20e6).queues
    assert "W13" not in [code for code, _ in done.warnings]


def test_missing_answers_are_asked_for_by_name() -> None:
    with pytest.raises(PerhopError) as raised:
        of_text(EDGE, packet_size=None)
    assert str(raised.value) == (
        "router.cfg: missing --rate (line 1: the rate of the link), --packet-size (line 7: class DATA: "
        "idle time of its average counts in mean packets); give them, or assume with --lenient"
    )
    done = of_text(EDGE, packet_size=None, lenient=True)
    assert ("W05", 1) in done.warnings
    assert done.link["rate"] == "1Gbps"


def test_a_branch_router() -> None:
    with pytest.raises(
        PerhopError, match=r"missing --match BULK=DSCP \(line 14: class BULK: `match access-group"
    ):
        of_file("ios-branch.cfg")
    done = of_file("ios-branch.cfg", lenient=True)
    assert (done.dialect, done.link["rate"]) == ("ios", "20Mbps")
    queues = done.queues
    assert list(queues) == ["VOICE", "SIGNALLING", "BUSINESS", "BULK", "class-default"]
    # 20 % of the shaper's 20 Mbit/s, policed in congestion with 200 ms; the other policer has 250 ms.
    assert done.link["queue"]["scheduler"] == "llq"
    assert (queues["VOICE"]["rate"], queues["VOICE"]["burst"]) == ("4Mbps", "100kB")
    assert "police" not in queues["VOICE"]
    assert done.link["meters"][0]["profile"] == {
        "marker": "token-bucket", "rate": "4Mbps", "burst": "125kB", "out": "drop",
    }  # fmt: skip
    assert [queues[name]["weight"] for name in list(queues)[1:]] == [5, 40, 15, 40]
    assert queues["BUSINESS"]["rule"]["ecn"] is True
    assert queues["BUSINESS"]["rule"]["weight"] == 2**-7
    # WRED by precedence without thresholds, of a limit of 64: 64 (1/4 + 1/32) = 18, 64 / 2 = 32.
    assert queues["BULK"]["rule"]["thresholds"] == "18/32/0.1"
    assert queues["BULK"]["match"]["dscp"] == ["CS1", 9, "AF11", 11, "AF12", 13, "AF13", 15]
    assert queues["class-default"]["rule"] == {"aqm": "drop-tail", "limit": "256p"}
    assert done.codes("W13") == [2, 3, 14, 36, 40, 46, 48, 49, 50, 51]
    assert done.codes("W04") == [17, 19, 20, 31, 33]
    assert (done.codes("W06"), done.codes("W10"), done.codes("W02")) == ([], [], [33])


def test_an_old_configuration() -> None:
    done = of_file("ios-old.cfg", lenient=True)
    assert done.link["rate"] == "1.544Mbps"
    # match-all of two codepoints never matches; AF21 belongs to precedence 2, which comes first.
    assert list(done.queues) == ["SILVER", "COPPER", "UNKNOWN", "class-default"]
    assert done.codes("W14") == [2, 2, 7]
    assert done.queues["SILVER"]["rule"]["thresholds"] == "20/40/0.1"
    assert done.link["meters"][0]["profile"] == {
        "marker": "srtcm", "rate": "256kbps", "burst": "8kB", "excess-burst": "16kB", "out": "drop-red",
    }  # fmt: skip
    with pytest.raises(PerhopError, match="--match UNKNOWN=DSCP"):
        of_file("ios-old.cfg")
    answered = of_file("ios-old.cfg", matches={"UNKNOWN": frozenset({46})})
    assert answered.queues["UNKNOWN"]["match"] == {"dscp": ["EF"]}


def test_strict_priority_with_four_curves() -> None:
    done = of_file("ios-llq.cfg", link_rate=10e6)
    assert done.link["queue"]["scheduler"] == "llq"
    assert (done.queues["RT"]["rate"], done.queues["RT"]["burst"]) == ("1Mbps", "25kB")
    assert done.codes("W10") == []
    profiles = done.link["queue"]["queue"]["profiles"]
    curves = {code: p["curve"] for p in profiles for code in p.get("match", {"dscp": ["others"]})["dscp"]}
    configured = {"CS0": "40/120/0.125", "AF11": "100/200/0.1", "AF12": "80/200/0.1", "AF13": "60/160/0.1"}
    assert {code: curves[code] for code in configured} == configured
    # Codepoints without a line keep the defaults of `random-detect dscp`: min by precedence, max 40, 1/10.
    for code, least in {
        "AF21": 32,
        "AF42": 28,
        "AF33": 24,
        "CS1": 22,
        "CS7": 34,
        "EF": 36,
        "others": 20,
    }.items():
        assert curves[code] == f"{least}/40/0.1"
    assert (done.codes("W07"), done.codes("W04")) == ([], [4, 7])
    assert [(flow["name"], flow["dscp"]) for flow in done.flows[1:4]] == [
        ("class-default", "CS0"), ("class-default-CS1", "CS1"), ("class-default-af11", "AF11"),
    ]  # fmt: skip


def test_times_need_the_rate_of_the_class() -> None:
    done = of_file("ios-bytes.cfg", link_rate=100e6)
    a, rest = done.queues["A"], done.queues["NOT-A"]
    # 60 % of 100 Mbit/s: 50 ms are 375 kB, 20 and 40 ms 150 and 300 kB.
    assert (a["queue"]["limit"], a["queue"]["green"]) == ("375kB", "150kB/300kB/0.1")
    assert a["queue"]["red"] == "75kB/225kB/0.1"
    # The other class is shaped to 6 Mbit/s, of which it is sure; its turns are as the 40 % left for it.
    assert (a["rate"], a["ceil"], rest["rate"], rest.get("ceil")) == ("60Mbps", "100Mbps", "6Mbps", None)
    assert (a["quantum"], rest["quantum"]) == ("2.25kB", "1.5kB")
    assert set(done.codes("W05")) == {8, 10, 11, 12}
    assert a["queue"]["scale-by-size"] is False
    assert done.codes("W06") == []
    # `match not` leaves the other 61 codepoints, so class-default gets none.
    assert len(done.queues) == 2
    assert "limit" in rest["queue"]


def test_policers_of_arriving_packets() -> None:
    done = of_file("ios-police.cfg", link_rate=100e6)
    gold, rest = done.link["meters"]
    assert gold["match"] == {"dscp": ["AF11"]}
    assert gold["profile"] == {
        "marker": "trtcm", "rate": "2Mbps", "burst": "62.5kB", "peak-rate": "4Mbps",
        "peak-burst": "125kB", "out": "drop-red",
    }  # fmt: skip
    # 1 Mbit/s for 250 ms.
    assert rest["profile"]["burst"] == "31.25kB"
    assert "match" not in rest


def test_ios_xr_counts_packets_of_256_bytes() -> None:
    done = of_file("xr-core.cfg", link_rate=1e9)
    assert done.dialect == "ios-xr"
    rule = done.queues["class-default"]["rule"]
    assert (rule["thresholds"], rule["limit"]) == ("102.4kB/230.4kB/0.1", "256kB")
    assert done.codes("W01") == [14, 15]
    # 8 and 16 ms at 1 Gbit/s.
    assert done.queues["GOLD"]["rule"]["green"] == "1MB/2MB/0.1"
    assert done.codes("W02") == [10, 14]


def test_nx_os_without_indentation() -> None:
    answers = {"c-out-8q-q7": frozenset({56}), "c-out-8q-q4": frozenset({26})}
    done = of_file("nxos-fabric.cfg", link_rate=1e10, buffer=buffer(4e6), matches=answers)
    assert done.dialect == "nx-os"
    # Strict priority, then shares of 45 and 55 %.
    assert [queue.get("weight") for queue in done.queues.values()] == [None, 45, 55]
    assert done.codes("W06") == []
    rule = done.queues["c-out-8q-q4"]["rule"]
    assert (rule["thresholds"], rule["weight"], rule["ecn"]) == ("200kB/800kB/0.2", 1.0, True)
    assert rule["limit"] == "4MB"
    assert done.codes("W13") == []


def test_queuing_classes_of_nx_os_are_those_of_qos_groups() -> None:
    done = of_file("nxos-roce.cfg", link_rate=1e11, buffer=buffer(4e6))
    assert done.link["queue"]["scheduler"] == "llq"
    queues = done.queues
    # No packet is of group 1; the default class is the last one, wherever it is listed.
    assert list(queues) == ["c-out-8q-q7", "c-out-8q-q3", "c-out-8q-q-default"]
    assert queues["c-out-8q-q7"]["match"] == {"dscp": ["CS6"]}
    assert queues["c-out-8q-q3"]["match"]["dscp"] == ["CS3", 25, "AF31", 27, "AF32", 29, "AF33", 31]
    assert [queue.get("weight") for queue in queues.values()] == [None, 50, 50]
    assert queues["c-out-8q-q3"]["rule"]["thresholds"] == "950kB/3MB/0.07"
    assert (done.codes("W14"), done.codes("W15"), done.codes("W06")) == ([22], [], [])


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
@pytest.mark.parametrize(
    ("prefix", "groups"), [("c-out-8q-", (3, 7)), ("c-out-4q-", (2, 3)), ("c-out-", (1, 3))]
)
def test_their_order_does_not_matter(order: tuple[int, ...], prefix: str, groups: tuple[int, int]) -> None:
    low, high = groups
    classes = [
        f" class type queuing {prefix}q-default\n  bandwidth remaining percent 60\n",
        f" class type queuing {prefix}q{low}\n  bandwidth remaining percent 40\n",
        f" class type queuing {prefix}q{high}\n  priority level 1\n",
    ]
    text = "class-map type qos match-any A\n match dscp 46\nclass-map type qos match-any B\n match dscp 10\n"
    text += f"policy-map type qos IN\n class A\n  set qos-group {high}\n class B\n  set qos-group {low}\n"
    text += "policy-map type queuing OUT\n" + "".join(classes[n] for n in order)
    text += "interface Ethernet1/1\n speed 100\n service-policy type queuing output OUT\n"
    done = of_text(text + " service-policy type qos input IN\n", buffer=buffer(1e5))
    carried = done.carried({46: 20.0, 10: 90.0, 0: 90.0})
    assert carried == pytest.approx({46: 20.0, 10: 32.0, 0: 48.0}, rel=0.03)


def test_a_share_of_zero_has_next_to_nothing_beside_others() -> None:
    text = "class-map type qos match-any A\n match dscp 10\n"
    text += "policy-map type qos IN\n class A\n  set qos-group 1\n"
    text += "policy-map type queuing OUT\n class type queuing c-out-8q-q1\n  bandwidth remaining percent 0\n"
    text += " class type queuing c-out-8q-q-default\n  bandwidth remaining percent 100\n"
    text += "interface Ethernet1/1\n speed 100\n service-policy type queuing output OUT\n"
    done = of_text(text + " service-policy type qos input IN\n", buffer=buffer(1e5))
    assert done.codes("W06") == [8]
    assert done.carried({10: 90.0, 0: 110.0})[10] < 0.5
    assert done.carried({10: 50.0})[10] == pytest.approx(50.0, rel=0.01)


@pytest.mark.parametrize("of", ["1p7q4t", "8q2t", "1p3q1t", "8e-4q8q"])
def test_classes_of_the_nexus_7000_have_parts_of_the_buffer_and_a_default(of: str) -> None:
    text = f"policy-map type queuing OUT\n class type queuing {of}-out-pq1\n  priority level 1\n"
    text += f"  queue-limit percent 15\n class type queuing {of}-out-q-default\n"
    text += "  bandwidth remaining percent 100\n  shape percent 50\n  queue-limit percent 60\n"
    text += "interface Ethernet2/1\n bandwidth 100000\n service-policy type queuing output OUT\n"
    done = of_text(text, buffer=buffer(1e6), matches={f"{of}-out-pq1": frozenset({46})})
    limits = {name: (queue.get("rule") or queue["queue"])["limit"] for name, queue in done.queues.items()}
    assert limits == {f"{of}-out-pq1": "150kB", f"{of}-out-q-default": "600kB"}
    assert done.carried({0: 90.0})[0] == pytest.approx(50.0, rel=0.02)
    with pytest.raises(
        PerhopError, match=r"--buffer \(line 4: `queue-limit percent 15` of the port's buffer"
    ):
        of_text(text, matches={f"{of}-out-pq1": frozenset({46})})


def test_groups_that_nothing_sets_are_asked_for() -> None:
    text = "policy-map type queuing OUT\n class type queuing c-out-8q-q3\n  bandwidth remaining percent 40\n"
    text += " class type queuing c-out-8q-q1\n  bandwidth remaining percent 0\n"
    text += " class type queuing c-out-8q-q-default\n  bandwidth remaining percent 60\n"
    with pytest.raises(PerhopError, match=r"missing --match c-out-8q-q3=DSCP \(line 2: .* `qos-group 3`"):
        of_text(text, link_rate=1e9, buffer=buffer(1e5))
    done = of_text(text, link_rate=1e9, buffer=buffer(1e5), matches={"c-out-8q-q3": frozenset({26})})
    assert list(done.queues) == ["c-out-8q-q3", "c-out-8q-q-default"]


def test_a_class_of_classes_by_cos_is_asked_for_by_the_name_of_its_queue() -> None:
    text = "class-map type qos match-all RDMA\n match cos 3\n"
    text += "policy-map type qos IN\n class RDMA\n  set qos-group 3\n"
    text += "policy-map type queuing OUT\n class type queuing c-out-8q-q3\n  bandwidth remaining percent 50\n"
    text += " class type queuing c-out-8q-q-default\n  bandwidth remaining percent 50\nsystem qos\n"
    text += " service-policy type queuing output OUT\n service-policy type qos input IN\n"
    with pytest.raises(PerhopError, match=r"missing --match c-out-8q-q3=DSCP \(line 2: .* `match cos 3`"):
        of_text(text, link_rate=1e9, buffer=buffer(1e5))


@pytest.mark.parametrize(
    "line",
    [
        "shape average 10 mbps 100 kbytes",
        "shape average per-thousand 100",
        "shape average 100 per-thousand",
        "shape average kbps 10000",
        "shape average percent 10 50 ms",
    ],
)
def test_forms_of_shapers_of_ios_xr(line: str) -> None:
    text = (CONFIGURATIONS / "xr-groups.cfg").read_text(encoding="utf-8")
    text = text.replace("interface TenGigE0/0/0/1", "interface TenGigE0/0/0/1\n bandwidth 100000")
    done = of_text(text.replace("  queue-limit 10 ms ! of 10 Gbit/s", f"  {line}"))
    assert done.queues["class-default"]["rate"] == "10Mbps"


def test_ecn_of_nx_os_without_thresholds_is_said() -> None:
    text = "policy-map type queuing OUT\n class type queuing c-out-8q-q-default\n  random-detect ecn\n"
    done = of_text(text, link_rate=1e9, buffer=buffer(1e5))
    assert any("no thresholds are configured" in said for said in done.texts)


def test_groups_of_ios_xr_and_comments_after_commands() -> None:
    done = of_file("xr-groups.cfg", link_rate=1e10)
    queue = done.queues["TC6"]
    assert queue["match"] == {"dscp": ["EF"]}
    assert (queue["rate"], queue["police"]) == ("2Mbps", "always")
    assert done.link["queue"]["queue"]["limit"] == "12.5MB"


@pytest.mark.parametrize("more", ["", " account user-defined 4", " account layer2"])
def test_policies_of_ios_xr_that_count_headers_are_attached(more: str) -> None:
    text = "class-map match-any V\n match dscp ef\n end-class-map\npolicy-map OUT\n class V\n"
    text += "  priority level 1\n  shape average 1 gbps\n class class-default\n  random-detect default\n"
    text += " end-policy-map\ninterface TenGigE0/0/0/1\n bandwidth 10000000\n"
    done = of_text(text + f" service-policy output OUT{more}\n")
    assert (done.link["rate"], done.codes("W15"), done.codes("W13")) == ("10Gbps", [], [])
    assert bool(done.codes("W18")) == bool(more)
    assert any("no thresholds are configured" in said for said in done.texts)


def test_parts_of_the_buffer_of_a_catalyst() -> None:
    done = of_file("ios-catalyst.cfg", link_rate=1e9, buffer=buffer(1e6))
    rules = {name: queue["rule"] for name, queue in done.queues.items()}
    assert rules["VOICE"] == {"aqm": "drop-tail", "limit": "50kB"}
    # 10 % of 1 MB, of which CS2 may use 80 %, CS3 90 %.
    assert rules["CONTROL"] == {
        "aqm": "wred", "limit": "100kB", "profiles": [
            {"match": {"dscp": ["CS2"]}, "limit": "80kB"}, {"match": {"dscp": ["CS3"]}, "limit": "90kB"},
        ],
    }  # fmt: skip
    assert rules["class-default"]["limit"] == "250kB"
    assert done.codes("W13") == []
    with pytest.raises(PerhopError, match="missing --buffer"):
        of_file("ios-catalyst.cfg", link_rate=1e9)


def test_codepoints_without_thresholds_of_a_catalyst_drop_at_the_limit() -> None:
    lines = "queue-buffers ratio 25\n  random-detect dscp-based\n  random-detect dscp 8 percent 60 100"
    rule = of_text(CLASS.format(lines), link_rate=1e9, buffer=buffer(1e6)).link["queue"]
    assert rule["profiles"] == [{"match": {"dscp": ["CS1"]}, "curve": "150kB/250kB/0.1"}]


def test_a_running_configuration_has_lines_that_are_about_other_things() -> None:
    """Commands of interfaces with words such as `priority` and `limit`, also in parts of an interface."""
    others = [
        "device-tracking attach-policy X",
        "authentication priority dot1x mab",
        "dot1x timeout tx-period 7",
        "ip dhcp snooping limit rate 100",
        "power inline static max 30000",
        "hsrp 1",
        "  priority 110",
        "  preempt delay minimum 60",
        "standby 1 priority 110",
        "access-session limit 3",
    ]
    text = CLASS.format("queue-limit 50") + "".join(f" {line}\n" for line in others)
    assert of_text(text, link_rate=1e7).link["queue"]["limit"] == "50p"
    with pytest.raises(PerhopError, match="not understood: `priority-group 1`"):
        of_text(text + " priority-group 1\n", link_rate=1e7)


def test_percentages_of_a_limit_in_packets() -> None:
    lines = "queue-limit 200 packets\n  queue-limit dscp cs2 percent 80\n"
    lines += "  queue-limit dscp values 8 24 percent 90"
    rule = of_text(CLASS.format(lines), link_rate=1e7).link["queue"]
    assert {p["limit"]: p["match"]["dscp"] for p in rule["profiles"]} == {
        "160p": ["CS2"],
        "180p": ["CS1", "CS3"],
    }


def test_what_there_is_to_say_of_a_policer_is_said_once() -> None:
    lines = "police rate percent 20 burst 100 kbytes peak-rate percent 30\n"
    lines += "   conform-action transmit\n   exceed-action drop"
    done = of_text(CLASS.format(lines), link_rate=1e7)
    assert len([text for text in done.texts if "peak burst not configured" in text]) == 1


def test_a_second_policy_of_departing_packets_that_only_marks_is_no_port() -> None:
    text = CLASS.format("queue-limit 50") + " service-policy output MARK\n"
    text += "policy-map MARK\n class class-default\n  set mpls experimental topmost 0\n"
    text += "policy-map SPARE\n class class-default\n  queue-limit 9\n"
    assert of_text(text, link_rate=1e7).link["queue"]["limit"] == "50p"  # SPARE is attached to nothing
    assert of_text(text, link_rate=1e7, interface="SPARE").link["queue"]["limit"] == "9p"


CLASS = "policy-map P\n class class-default\n  {}\ninterface Gi0\n service-policy output P\n"


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("queue-limit 50", {"aqm": "drop-tail", "limit": "50p"}),
        ("queue-limit 64000 bytes", {"aqm": "drop-tail", "limit": "64kB"}),
        ("queue-limit 10 ms", {"aqm": "drop-tail", "limit": "12.5kB"}),
        ("queue-limit 500 us", {"aqm": "drop-tail", "limit": "625B"}),
    ],
)
def test_units_of_queue_limits(line: str, rule: dict[str, str]) -> None:
    done = of_text(CLASS.format(line), link_rate=10e6)
    assert done.link["queue"] == rule


@pytest.mark.parametrize(
    ("line", "profile"),
    [
        ("police 8000", {"marker": "token-bucket", "rate": "8kbps", "burst": "1.5kB", "out": "drop"}),
        ("police cir 200000", {
            "marker": "token-bucket", "rate": "200kbps", "burst": "6.25kB", "out": "drop"}),
        ("police cir 1m bc 20000", {
            "marker": "token-bucket", "rate": "1Mbps", "burst": "20kB", "out": "drop"}),
        ("police rate 100 mbps burst 200 ms", {
            "marker": "token-bucket", "rate": "100Mbps", "burst": "2.5MB", "out": "drop"}),
        ("police cir 100 mbps bc 200 ms conform transmit violate drop", {
            "marker": "token-bucket", "rate": "100Mbps", "burst": "2.5MB", "out": "drop"}),
        ("police cir 1m bc 20k", {
            "marker": "token-bucket", "rate": "1Mbps", "burst": "20kB", "out": "drop"}),
        ("police rate 100 pps burst 20 packets", {
            "marker": "token-bucket", "rate": "800kbps", "burst": "20kB", "out": "drop"}),
        ("police cir percent 10 bc 10 ms conform-action transmit exceed-action set-dscp-transmit af12", {
            "marker": "token-bucket", "rate": "1Mbps", "burst": "1.25kB", "out": "mark"}),
    ],
)  # fmt: skip
def test_forms_of_policers(line: str, profile: dict[str, str]) -> None:
    done = of_text(CLASS.format(line), link_rate=10e6, lenient=True)
    (meter,) = done.link["meters"]
    assert meter["profile"] == profile


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("random-detect dscp af11 60 30 10", "W16"),
        ("random-detect exponential-weighting-constant 20", "W16"),
        ("random-detect dscp af11 30 200 10", "W03"),
        ("shape average 100000000 account user-defined 24", "W18"),
    ],
)
def test_lines_that_are_reported(line: str, code: str) -> None:
    done = of_text(CLASS.format(line), link_rate=10e6)
    assert (code, 3) in done.warnings


@pytest.mark.parametrize(
    "line",
    [
        "bandwidth percent 10 account user-defined 24",
        "bandwidth remaining ratio 5 account qinq aal5 snap-rbe",
        "shape average 1000000 4 ms 0 ms",
        "shape average percent 10 100 ms 0 ms",
        "random-detect dscp-based aggregate",
        "random-detect dscp-based aggregate minimum-thresh 10 maximum-thresh 20 mark-prob 5",
        "random-detect dscp values 18 20 minimum-thresh 10 maximum-thresh 20 mark-prob 5",
        "police rate percent 10 burst 20 ms",
        "queue-limit percent 50",
        "trust dscp",
    ],
)
def test_more_forms_of_commands(line: str) -> None:
    assert of_text(CLASS.format(line), link_rate=10e6, buffer=buffer(1e5)).link


@pytest.mark.parametrize(
    "line",
    [
        "fair-queue individual-limit 20",
        "drop",
        "random-detect threshold burst-optimized",
        "queue-limit discard-class 1 20 packets",
        "queue-limit cos 3 percent 80",
        "queue-limit dscp af11 some",
        "bandwidth loads",
        "bandwith 1000",
        "random-detect dscp af11 30",
        "random-detect cos 3 20 40 10",
        "police fast",
        "shape average loads",
        "priority quickly",
        "no bandwidth 1000",
    ],
)
def test_a_line_of_a_class_that_is_not_understood_is_an_error_unless_lenient(line: str) -> None:
    with pytest.raises(
        PerhopError, match=rf"router.cfg: line 3: .*`{line}`; what Gi0 does depends on it: correct it"
    ):
        of_text(CLASS.format(line), link_rate=10e6)
    assert ("W13", 3) in of_text(CLASS.format(line), link_rate=10e6, lenient=True).warnings


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("class-map match-any A\n match dscp ef\n mtach dscp cs5\n match dscp cs3\n", 3),
        ("class-map match-any A\n match dscp ef\n match dscp loud\n", 3),
        ("class-map match-any A gold\n match dscp ef\n", 1),
        ("interface Gi0\n rate-limit output 8000 1500 2000 conform-action transmit exceed-action drop\n", 2),
        ("interface Gi0\n srr-queue bandwidth share 1 30 35 5\n", 2),
        ("interface Gi0\n service-policy sideways P\n", 2),
    ],
)
def test_so_is_one_of_a_class_map_or_an_interface(text: str, line: int) -> None:
    rest = "policy-map P\n class A\n  priority 1000\ninterface Gi0\n service-policy output P\n"
    rest = rest if "class-map" in text else "class-map A\n match dscp ef\n" + rest
    with pytest.raises(PerhopError, match=rf"router.cfg: line {line}: "):
        of_text(text + rest, link_rate=1e7)
    done = of_text(text + rest, link_rate=1e7, lenient=True)
    assert ("W13", line) in done.warnings
    assert "EF" in done.queues["A"]["match"]["dscp"]  # lines after it are read


@pytest.mark.parametrize(
    "line", ["service instance 10 ethernet", "template T", "track 1", "nat inside", "platform x"]
)
def test_lines_within_an_interface_do_not_end_it(line: str) -> None:
    """`service` and others begin commands outside of all blocks, too."""
    text = "policy-map P\n class class-default\n  queue-limit 77 packets\ninterface Ethernet1\n"
    text += f" {line}\n  encapsulation dot1q 10\n bandwidth 20000\n service-policy output P\nrouter bgp 1\n"
    done = of_text(text)
    assert (done.link["rate"], done.link["queue"]["limit"]) == ("20Mbps", "77p")
    flat = of_text("".join(part.lstrip() + "\n" for part in text.replace(f" {line}\n", "").splitlines()))
    assert flat.link["rate"] == "20Mbps"


@pytest.mark.parametrize(
    "line", ["ip rtp priority 16384 16383 64", "frame-relay traffic-shaping", "frame-relay class SHAPED"]
)
def test_priority_and_shapers_from_before_policies_are_refused(line: str) -> None:
    text = "policy-map P\n class class-default\n  queue-limit 77 packets\ninterface Serial1\n bandwidth 512\n"
    with pytest.raises(PerhopError, match=f"line 6: not understood: `{line}`"):
        of_text(f"{text} {line}\n service-policy output P\n")


def test_lines_of_other_blocks_are_no_errors() -> None:
    """Lines with the same words: outside, at other interfaces, in other policies and those of other types."""
    text = """\
logging rate-limit 100
class-map type inspect match-any WEB
 match protocol http
policy-map type inspect FIREWALL
 class type inspect WEB
  police rate 8000
policy-map OTHER
 class class-default
  bandwidth loads
policy-map P
 class class-default
  queue-limit 50
interface Gi1
 rate-limit output 8000 1500 2000 conform-action transmit exceed-action drop
 service-policy output OTHER
interface Gi0
 spanning-tree port-priority 16
 standby 1 priority 110
 mls qos trust dscp
 max-reserved-bandwidth 100
 service-policy output P
spanning-tree vlan 1 priority 4096
route-map SET permit 10
 match ip address 10
 set ip precedence priority
control-plane
 service-policy input COPP
router ospf 1
 auto-cost reference-bandwidth 100000
"""
    done = of_text(text, link_rate=1e7, interface="Gi0")
    assert done.link["queue"] == {"aqm": "drop-tail", "limit": "50p"}
    with pytest.raises(PerhopError, match="line 9: not understood: `bandwidth loads`"):
        of_text(text, link_rate=1e7, interface="Gi1")
    flat = "\n".join(line.strip() for line in text.splitlines())
    assert of_text(flat, link_rate=1e7, interface="Gi0").link["queue"] == done.link["queue"]


LIMITS = """\
class-map match-any A
 match dscp af11 af12 af13 cs1
policy-map P
 class A
  queue-limit 100 packets
  queue-limit dscp af13 40 packets
  queue-limit dscp af12,af13 60 packets
  random-detect dscp-based
  random-detect dscp af11 50 80 10
  random-detect dscp af12 50 80 10
  random-detect dscp af13 20 30 5
interface Gi0
 service-policy output P
"""


def test_limits_of_codepoints() -> None:
    done = of_text(LIMITS, link_rate=1e7)
    rule = done.queues["A"]["rule"]
    # CS1 has no line of its own: the default of its precedence. Two lines limit AF13; the first acts.
    assert rule["profiles"] == [
        {"match": {"dscp": ["CS1"]}, "curve": "22/40/0.1"},
        {"match": {"dscp": ["AF11"]}, "curve": "50/80/0.1"},
        {"match": {"dscp": ["AF12"]}, "curve": "50/80/0.1", "limit": "60p"},
        {"match": {"dscp": ["AF13"]}, "curve": "20/30/0.2", "limit": "40p"},
    ]
    assert "green" not in rule
    assert done.codes("W06") == [4]  # the class has no share


def test_limits_alone() -> None:
    text = "\n".join(line for line in LIMITS.splitlines() if "random-detect" not in line)
    rule = of_text(text, link_rate=1e7).queues["A"]["rule"]
    assert rule == {
        "aqm": "wred", "limit": "100p", "profiles": [
            {"match": {"dscp": ["AF12"]}, "limit": "60p"}, {"match": {"dscp": ["AF13"]}, "limit": "40p"},
        ],
    }  # fmt: skip


def test_a_policy_that_is_not_defined_is_reported() -> None:
    with pytest.raises(PerhopError, match="no queues or policers were found as Cisco IOS"):
        of_text("interface Gi0\n service-policy output NONE\n", dialect="ios")
    done = of_text(
        "policy-map A\n class class-default\n  shape average 5m\n  service-policy NONE\n", link_rate=1e7
    )
    assert ("W15", 4) in done.warnings


def test_interfaces_are_chosen_by_name() -> None:
    text = CLASS.format("queue-limit 20") + "interface Gi1\n service-policy output P\n"
    with pytest.raises(
        PerhopError, match=r"several interfaces have queues; choose one with --interface: Gi0, Gi1"
    ):
        of_text(text, link_rate=1e7)
    done = of_text(text, link_rate=1e7, interface="gi1")
    assert done.link["queue"]["limit"] == "20p"
    assert ("W13", 4) in done.warnings


def test_what_has_no_effect_is_said() -> None:
    text = """\
policy-map C
 class class-default
  queue-limit 30
policy-map P
 class class-default
  bandwidth remaining ratio 10
  shape average 5m
  service-policy C
interface Gi0
 traffic-shape rate 64000
 no shutdown
 service-policy output P
"""
    done = of_text(text, lenient=True)
    assert done.codes("W13") == [6, 10, 11]
    assert done.link["rate"] == "5Mbps"


def test_a_class_map_may_continue_later() -> None:
    text = "class-map match-any A\n match dscp ef\nclass-map match-any A\n match dscp cs5\n"
    done = of_text(text + "policy-map P\n class A\n  bandwidth percent 10\n", link_rate=1e7)
    assert done.queues["A"]["match"] == {"dscp": ["CS5", "EF"]}


def test_a_policer_of_the_default_class_spares_classes_without_one() -> None:
    text = """\
class-map match-any VOICE
 match dscp ef
policy-map P
 class VOICE
  bandwidth 1000
 class class-default
  police cir 1000000 bc 10000 conform-action transmit exceed-action drop
"""
    done = of_text(text, link_rate=1e7)
    (meter,) = done.link["meters"]
    assert len(meter["match"]["dscp"]) == 63
    assert "EF" not in meter["match"]["dscp"]
    both = of_text(text.replace("  bandwidth 1000\n", "  police cir 500000 bc 9000\n"), link_rate=1e7)
    assert ["match" in meter for meter in both.link["meters"]] == [True, False]


def test_a_policy_map_may_continue_later() -> None:
    """IOS adds the lines of a second `policy-map P` to the first ones."""
    first = "policy-map P\n class A\n  bandwidth percent 30\n  queue-limit 70\n"
    text = "class-map A\n match dscp ef\n" + first + "policy-map P\n class A\n  queue-limit 80\n class B\n"
    done = of_text(text + "  bandwidth percent 20\n", link_rate=1e7, matches={"B": frozenset({10})})
    assert (done.queues["A"]["rate"], done.queues["A"]["rule"]["limit"]) == ("3Mbps", "80p")
    assert done.queues["B"]["rate"] == "2Mbps"
    # The replaced limit is said to be.
    assert ("W17", 6) in done.warnings


@pytest.mark.parametrize(
    ("lines", "reported"),
    [
        (["bandwidth percent 30", "bandwidth remaining ratio 4"], [("W13", 5)]),
        (["bandwidth percent 30", "bandwidth percent 40"], [("W17", 4)]),
        (["bandwidth remaining ratio 3", "bandwidth remaining ratio 4"], [("W17", 4)]),
        (["queue-limit 100 packets", "queue-limit 200 packets"], [("W17", 4)]),
        (["shape average 1m", "shape average 2m"], [("W17", 4)]),
        (["priority percent 10", "priority percent 20"], [("W17", 4)]),
        (
            ["bandwidth percent 30", "bandwidth remaining ratio 4", "priority percent 10"],
            [("W13", 4), ("W13", 5)],
        ),
        (["priority 512", "shape average 1m"], []),  # a shaper of a strict class is one here, too
    ],
)
def test_values_that_another_line_supersedes_are_reported(
    lines: list[str], reported: list[tuple[str, int]]
) -> None:
    policy = ["policy-map P", " class A", *[f"  {line}" for line in lines], " class C", " class D"]
    text = "\n".join(["class-map A", *policy, "interface Gi0", " service-policy output P\n"])
    codes = {name: frozenset({value}) for name, value in (("A", 46), ("C", 10), ("D", 12))}
    done = of_text(text, link_rate=1e7, matches=codes)
    assert [found for found in done.warnings if found[0] in {"W13", "W17"}] == reported


def test_a_strict_class_is_policed_before_those_that_share_the_rest() -> None:
    text = (
        "policy-map P\n class A\n  priority {}\n class B\n  bandwidth percent 10\n"
        "interface Gi0\n service-policy output P\n"
    )
    answers = {"A": frozenset({46}), "B": frozenset({10})}
    done = of_text(text.format("512 20000"), link_rate=1e7, matches=answers)
    assert done.link["queue"]["scheduler"] == "llq"
    a = done.queues["A"]
    assert (a["rate"], a["burst"], a.get("police")) == ("512kbps", "20kB", None)
    # 10 % of the link, not of what the strict class leaves.
    assert (done.queues["B"]["rate"], done.codes("W06")) == ("1Mbps", [])
    always = of_text(text.format("\n  police cir 512000 bc 20000"), link_rate=1e7, matches=answers)
    a = always.queues["A"]
    assert (a["rate"], a["burst"], a["police"]) == ("512kbps", "20kB", "always")
    assert "meters" not in always.link
    alone = of_text(text.format(""), link_rate=1e7, matches=answers)
    assert "rate" not in alone.queues["A"]


def test_the_speed_of_an_interface_is_its_rate() -> None:
    done = of_text(CLASS.format("queue-limit 30") + " speed 10000\nline con 0\n speed 9600\n")
    assert done.link["rate"] == "10Gbps"
    assert done.codes("W13") == [6 + 1, 6 + 2]
    both = of_text(CLASS.format("queue-limit 30") + " speed 100\n bandwidth 50000\n")
    assert both.link["rate"] == "50Mbps"
    assert both.codes("W13") == [6]
    assert of_text(CLASS.format("queue-limit 30") + " speed auto\n", link_rate=1e7).codes("W13") == [6]


def test_a_curve_of_packets_that_the_class_does_not_take_is_reported() -> None:
    text = "class-map A\n match dscp af31\n" + CLASS.replace("class-default", "A").format(
        "random-detect dscp af31 20 40 10\n  random-detect dscp af32 10 40 10"
    )
    done = of_text(text, link_rate=1e7)
    rule = done.queues["A"]["rule"]
    assert (rule["aqm"], rule["thresholds"]) == ("red", "20/40/0.1")
    assert done.codes("W14") == [6]


@pytest.mark.parametrize("more", ["", "\n  random-detect dscp 24 10 30 5"])
def test_thresholds_of_codepoints_without_a_line_are_the_command_reference_s(more: str) -> None:
    """`random-detect dscp`, table of defaults: AF21 32/40, AF22 28/40, AF23 24/40, 1/10."""
    text = "class-map match-any A\n match dscp af21 af22 af23 cs3\n"
    text += CLASS.format("random-detect dscp-based" + more).replace("class-default", "A")
    rule = of_text(text, link_rate=10e6).queues["A"]["rule"]
    curves = {code: p["curve"] for p in rule["profiles"] for code in p["match"]["dscp"]}
    own = "10/30/0.2" if more else "26/40/0.1"
    assert curves == {"AF21": "32/40/0.1", "AF22": "28/40/0.1", "AF23": "24/40/0.1", "CS3": own}


def test_thresholds_of_precedences_without_a_line_are_ios_xe_s() -> None:
    """Of a limit of 64: min 64 (1/4 + p/32), max 32."""
    rule = of_text(CLASS.format("random-detect\n  random-detect precedence 1 10 20 5"), link_rate=10e6).link[
        "queue"
    ]
    curves = [p["curve"] for p in rule["profiles"]]
    assert sorted(curves) == sorted(["10/20/0.2", *(f"{low}/32/0.1" for low in (16, 20, 22, 24, 26, 28, 30))])


@pytest.mark.parametrize("value", ["af32", "af13", "cs1"])
def test_a_codepoint_that_a_policer_sets_is_reported(value: str) -> None:
    line = f"police cir 2m bc 31250 exceed-action set-dscp-transmit {value}"
    done = of_text(CLASS.format(line), link_rate=10e6)
    assert 3 in done.codes("W10")
    assert any(f"exceed sets {value}" in text for text in done.texts)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("tx-ring-limit 3", "perhop has no such queue"),
        ("hold-queue 100 out", "perhop has no such queue"),
        ("frobnicate 12", "not understood"),
        ("ip address 10.0.0.1 255.255.255.0", "not about queues"),
    ],
)
def test_lines_of_an_interface_that_are_not_used(line: str, said: str) -> None:
    done = of_text(CLASS.format("queue-limit 50") + f" {line}\n", link_rate=10e6)
    assert done.codes("W13") == [6]
    assert any(text.startswith(said) and line in text for text in done.texts)


def test_a_denominator_of_zero_is_named() -> None:
    done = of_text(CLASS.format("random-detect precedence 3 20 40 0"), link_rate=10e6)
    assert 3 in done.codes("W16")
    assert any("denominator" in text for text in done.texts)


def test_a_shaper_in_percent_shows_what_it_is_of() -> None:
    text = """\
policy-map C
 class class-default
  queue-limit 50
policy-map P
 class class-default
  shape average percent 50
  service-policy C
interface Gi0
 bandwidth 20000
 service-policy output P
"""
    done = of_text(text)
    assert done.codes("W05") == [6]
    assert any("10 Mbit/s, of 20 Mbit/s" in text for text in done.texts)
