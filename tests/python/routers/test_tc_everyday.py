"""Linux tc as people write it every day: each qdisc, filter and policer has a meaning, or a warning names it."""

# ruff: noqa: E501 - lines of configurations stay whole
from __future__ import annotations

from typing import Any

import pytest
from tests.python.routers.importing import of_text

from perhop.errors import PerhopError

LAW = {"law": "linux"}
HTB = """\
tc qdisc add dev e root handle 1: htb default 20
tc class add dev e parent 1: classid 1:1 htb rate 10mbit
tc class add dev e parent 1:1 classid 1:10 htb rate 6mbit ceil 10mbit prio 1
tc class add dev e parent 1:1 classid 1:20 htb rate 4mbit ceil 5mbit prio 2
"""


@pytest.mark.parametrize(
    ("qdisc", "queue", "codes"),
    [
        ("sfq perturb 10", {"aqm": "drop-tail", "limit": "127p"}, ["W06"]),
        ("sfq limit 300", {"aqm": "drop-tail", "limit": "300p"}, ["W06"]),
        ("fq maxrate 10mbit", {"aqm": "drop-tail", "limit": "10000p"}, ["W06"]),
        ("fq_pie target 20ms", {"aqm": "pie", "limit": "10240p", "target": "20ms", **LAW}, ["W06"]),
        # 2 and 20 sixteenths are the defaults, RFC 8033's 0.125 and 1.25.
        ("pie alpha 4 beta 20", {"aqm": "pie", "limit": "1000p", "alpha": 0.25, "beta": 1.25, **LAW}, []),
        (
            "choke limit 300 min 30 max 90 avpkt 1000 burst 60 ecn",
            {
                "aqm": "red", "thresholds": "30/90/0.02", "limit": "300p", "weight": 2**-6, "wait": False,
                "ecn": True, "mean-packet": "1kB",
            },
            ["W06"],
        ),
        (
            "fq_codel drop_batch 32 noecn",
            {"scheduler": "fq-codel", "limit": "10240p", "batch": 32, "ecn": False, **LAW},
            [],
        ),
        (
            "dualpi2 coupling_factor 3 step_thresh 2ms classic_protection 5%",
            {
                "scheduler": "dualpi2", "limit": "10000p", "step": "2ms", "k": 3.0, "classic-share": 0.05, **LAW,
            },
            [],
        ),
        ("noqueue", {"aqm": "drop-tail", "limit": "2.5MB"}, ["W04", "W04", "W06"]),
    ],
)  # fmt: skip
def test_qdiscs(qdisc: str, queue: dict[str, Any], codes: list[str]) -> None:
    done = of_text(f"tc qdisc add dev e root {qdisc}\n", link_rate=4e8, lenient=True)
    assert done.link["queue"] == queue
    assert sorted(code for code, _ in done.warnings) == codes


def test_cake_is_fq_codel_under_its_shaper() -> None:
    text = "tc qdisc replace dev e root cake bandwidth 18mbit besteffort rtt 50ms memlimit 8mb docsis nat\n"
    done = of_text(text, link_rate=1e9)
    queue = done.link["queue"]
    assert (queue["scheduler"], queue["rate"]) == ("shaper", "18Mbps")
    # The target is a twentieth of the round-trip time; 8mb are 8 · 1024 · 1024 bytes.
    assert queue["queue"] == {
        "scheduler": "fq-codel", "memory-limit": "8388.608kB", "target": "2.5ms", "interval": "50ms", **LAW,
    }  # fmt: skip
    assert sorted(done.warnings) == [("W06", 1), ("W13", 1), ("W18", 1)]
    alone = of_text(text)
    assert (alone.link["rate"], alone.link["queue"]["scheduler"]) == ("18Mbps", "fq-codel")


@pytest.mark.parametrize(
    ("words", "interval"), [("", "100ms"), ("metro", "10ms"), ("satellite", "1000ms"), ("rtt 30ms", "30ms")]
)
def test_the_round_trip_time_of_cake(words: str, interval: str) -> None:
    done = of_text(f"tc qdisc add dev e root cake {words}\n", link_rate=1e8)
    assert done.link["queue"]["interval"] == interval
    assert any("diffserv3" in text and "triple-isolate" in text for text in done.texts)


def test_pfifo_fast_has_three_bands_by_the_field_tos() -> None:
    done = of_text("tc qdisc add dev e root pfifo_fast\n", link_rate=1e8)
    assert done.link["queue"]["scheduler"] == "priority"
    # CS6 has priority 0 in `ip_tos2prio`, as best effort, and thus band 1.
    assert [name for name, q in done.queues.items() if "CS6" in q.get("match", {"dscp": []})["dscp"]] == [
        "1:2"
    ]
    assert {queue["rule"]["limit"] for queue in done.queues.values()} == {"1000p"}


def test_netem_is_the_link() -> None:
    done = of_text("tc qdisc add dev e root netem delay 50ms loss 1% rate 20mbit limit 200\n")
    assert {key: done.link[key] for key in ("rate", "delay", "loss")} == {
        "rate": "20Mbps", "delay": "50ms", "loss": 0.01,
    }  # fmt: skip
    assert done.link["queue"]["limit"] == "200p"


def test_classes_of_hfsc_and_cbq_without_a_parent_borrow_of_the_link() -> None:
    """Unlike htb's; an upper limit or `bounded` is what they reach."""
    text = """\
tc qdisc add dev e root handle 1: hfsc default 20
tc class add dev e parent 1: classid 1:10 hfsc ls rate 2mbit ul rate 8mbit
tc class add dev e parent 1: classid 1:20 hfsc sc rate 3mbit
tc filter add dev e parent 1: protocol ip u32 match ip dsfield 0xb8 0xfc flowid 1:10
"""
    done = of_text(text, link_rate=2e7)
    assert done.carried({46: 30.0})[46] == pytest.approx(8.0, rel=0.02)
    assert done.carried({0: 30.0})[0] == pytest.approx(20.0, rel=0.02)
    assert done.carried({46: 30.0, 0: 30.0}) == pytest.approx({46: 8.0, 0: 12.0}, rel=0.03)
    text = """\
tc qdisc add dev e root handle 1: cbq bandwidth 20mbit avpkt 1000
tc class add dev e parent 1: classid 1:10 cbq rate 2mbit prio 5 bounded
tc class add dev e parent 1: classid 1:20 cbq rate 3mbit prio 5
tc filter add dev e parent 1: protocol ip u32 match ip dsfield 0xb8 0xfc flowid 1:10
tc filter add dev e parent 1: protocol ip u32 match ip dsfield 0 0xfc flowid 1:20
"""
    done = of_text(text, link_rate=2e7)
    assert done.carried({46: 30.0})[46] == pytest.approx(2.0, rel=0.02)
    assert done.carried({0: 30.0})[0] == pytest.approx(20.0, rel=0.02)
    flat = "".join(
        line.replace("1:1 ", "1: ") for line in HTB.splitlines(keepends=True) if "1:1 htb" not in line
    )
    htb = of_text(flat, link_rate=2e7, matches={"1:10": frozenset({46})})
    assert htb.carried({0: 30.0})[0] == pytest.approx(4.0, rel=0.02)


@pytest.mark.parametrize(
    "line",
    ["tc class del dev e classid 1:20", "tc filter del dev e parent 1:", "tc qdisc del dev e parent 1:20"],
)
def test_deleting_a_part_of_what_stands_before_is_refused(line: str) -> None:
    """What a script deletes at its head was of the one before."""
    rest = "tc qdisc add dev e parent 1:20 handle 20: sfq\n"
    rest += "tc filter add dev e parent 1: protocol ip u32 match ip dsfield 0x28 0xfc flowid 1:10\n"
    assert of_text(f"{line}\n{HTB}{rest}").codes("W13") == [1]
    with pytest.raises(PerhopError, match="line 7: deletes a part of what comes before"):
        of_text(f"{HTB}{rest}{line}\n")
    assert of_text(f"{HTB}{rest}tc qdisc del dev e ingress\n").codes("W13") == [7]


@pytest.mark.parametrize("losses", ["loss gemodel 1% 10%", "loss state 1% 10%"])
def test_losses_of_netem_that_are_not_read_are_refused(losses: str) -> None:
    text = f"tc qdisc add dev e root netem delay 5ms {losses} rate 20mbit limit 200\n"
    with pytest.raises(PerhopError, match=r"line 1: netem: not understood: `loss "):
        of_text(text)
    assert of_text(text, lenient=True).codes("W13") == [1]


def test_hfsc_is_htb_with_the_rates_of_its_curves() -> None:
    text = """\
tc qdisc add dev e root handle 1: hfsc default 20
tc class add dev e parent 1: classid 1:1 hfsc sc rate 20mbit ul rate 20mbit
tc class add dev e parent 1:1 classid 1:10 hfsc rt m1 5mbit d 10ms m2 2mbit ls m2 4mbit
tc class add dev e parent 1:1 classid 1:20 hfsc ls m2 16mbit ul m2 18mbit
tc filter add dev e parent 1: protocol ip u32 match ip tos 0xb8 0xfc flowid 1:10
"""
    done = of_text(text)
    assert done.link["rate"] == "20Mbps"
    queues = done.queues
    assert {name: (q["rate"], q.get("ceil")) for name, q in queues.items()} == {
        "1:10": ("4Mbps", "20Mbps"),
        "1:20": ("16Mbps", "18Mbps"),
    }
    assert [queue["quantum"] for queue in queues.values()] == ["1.514kB", "6.056kB"]
    assert any("`rt m1 5mbit d 10ms m2 2mbit` is not simulated" in text for text in done.texts)


@pytest.mark.parametrize(
    ("curves", "rate", "first"),
    [  # of 9 Mbit/s, `first` is the part of the first class: its real-time curve, or its share if that is more
        (("rt rate 5mbit ls rate 3mbit", "ls rate 5mbit"), 9.0, 5 / 9),
        (("rt rate 2mbit ls rate 3mbit", "ls rate 5mbit"), 9.0, 3 / 8),
        (("rt rate 6mbit ls rate 1mbit", "rt rate 1mbit ls rate 8mbit"), 9.0, 6 / 9),
        (("sc rate 2mbit", "ls rate 1mbit"), 9.0, 2 / 3),
        (("ls rate 3mbit ul rate 2mbit", "ls rate 5mbit"), 9.0, 2 / 9),
        (("rt rate 2mbit", "ls rate 5mbit"), 9.0, 2 / 9),
    ],
)
def test_real_time_curves_of_hfsc_beside_shares(curves: tuple[str, str], rate: float, first: float) -> None:
    """As sch_hfsc: what the real-time criterion serves counts for the share; without one, no more than that."""
    text = f"""\
tc qdisc add dev e root handle 1: hfsc default 20
tc class add dev e parent 1: classid 1:1 hfsc ls rate {rate:g}mbit ul rate {rate:g}mbit
tc class add dev e parent 1:1 classid 1:10 hfsc {curves[0]}
tc class add dev e parent 1:1 classid 1:20 hfsc {curves[1]}
tc filter add dev e parent 1: protocol ip u32 match ip tos 0xb8 0xfc flowid 1:10
"""
    done = of_text(text)
    carried = done.carried({46: 2 * rate, 0: 2 * rate})
    assert carried == pytest.approx({46: first * rate, 0: (1 - first) * rate}, rel=0.03)
    alone = {"ul": 2.0}.get(curves[0].split()[-3], rate) if "ul" in curves[0] else rate
    alone = alone if "s" in curves[0] else 2.0
    assert done.carried({46: 2 * rate})[46] == pytest.approx(alone, rel=0.03)


def test_a_policer_over_several_lines() -> None:
    text = (
        "tc qdisc add dev e handle ffff: ingress\n"
        "tc filter add dev e parent ffff: protocol ip prio 50 u32 match ip src \\\n"
        "   0.0.0.0/0 police rate 256kbit burst 10k \\\n   drop flowid :1\n"
    )
    done = of_text(text, link_rate=1e8)
    (meter,) = done.link["meters"]
    assert meter["profile"] == {
        "marker": "token-bucket", "rate": "256kbps", "burst": "10.24kB", "out": "drop",
    }  # fmt: skip
    assert done.warnings == [("W04", 1)]
    # Lost as a whole, it is one line of the report.
    bad = text.replace("parent ffff:", "parent 1:").replace("rate 256kbit ", "").replace(" flowid :1", "")
    lost = of_text(HTB + bad, lenient=True)
    assert [line for line in lost.codes("W13") if line >= 6] == [6]


@pytest.mark.parametrize(
    ("match", "named"),
    [
        ("ip src 192.0.2.1", "match ip src 192.0.2.1"),
        ("ip dst 10.0.0.0/8", "match ip dst 10.0.0.0/8"),
        ("ip dport 80 0xffff", "match ip dport 80 0xffff"),
        ("ip protocol 17 0xff", "match ip protocol 17 0xff"),
        ("ip6 dst 2001:db8::/32", "match ip6 dst 2001:db8::/32"),
        ("ether src 00:11:22:33:44:55", "match ether src 00:11:22:33:44:55"),
        ("mark 6 0xff", "match mark 6 0xff"),
        ("u16 0x0050 0xffff at 22", "match u16 0x0050 0xffff at 22"),
    ],
)
def test_conditions_that_are_no_codepoints_ask(match: str, named: str) -> None:
    text = f"{HTB}tc filter add dev e parent 1: protocol ip prio 1 u32 match {match} flowid 1:10\n"
    with pytest.raises(PerhopError, match=r"--match 1:10=DSCP") as error:
        of_text(text)
    assert f"`{named}`" in str(error.value)
    done = of_text(text, matches={"1:10": frozenset({18})})
    assert done.queues["1:10"]["match"] == {"dscp": ["AF21"]}
    assert "W13" not in {code for code, _ in done.warnings}


@pytest.mark.parametrize(
    "match",
    [
        "match ip tos 0x28 0xfc",
        "match ip dsfield 40 fc",
        "match u8 0x28 0xfc at 1",
        "match ip src any match ip tos 0x28 0xff",
    ],
)
def test_codepoints_of_u32(match: str) -> None:
    text = f"{HTB}tc filter add dev e parent 1: protocol ip prio 1 u32 {match} flowid 1:10\n"
    assert of_text(text).queues["1:10"]["match"] == {"dscp": ["AF11"]}


def test_policers_of_arriving_packets_are_a_port_of_their_own() -> None:
    text = (
        "tc qdisc add dev e root fq_codel\ntc qdisc add dev e handle ffff: ingress\n"
        "tc filter add dev e parent ffff: protocol ip u32 match u32 0 0 police rate 1mbit burst 10k drop\n"
    )
    out = of_text(text, link_rate=1e8)
    assert "meters" not in out.link
    assert (out.codes("W13"), out.codes("W10")) == ([2], [3])  # not part of this port
    assert any('imported by --interface "e ingress"' in text for text in out.texts)
    arriving = of_text(text, link_rate=1e8, interface="e ingress")
    assert arriving.link["meters"][0]["profile"]["rate"] == "1Mbps"


def test_packets_a_second_of_a_policer() -> None:
    text = (
        "tc qdisc add dev e clsact\n"
        "tc filter add dev e ingress matchall action police pkts_rate 1000 pkts_burst 20 conform-exceed drop\n"
    )
    profile = of_text(text, link_rate=1e8).link["meters"][0]["profile"]
    assert (profile["rate"], profile["burst"]) == ("8Mbps", "20kB")  # of packets of 1000 bytes


def test_several_commands_on_a_line_and_batches() -> None:
    line = (
        "tc qdisc del dev e root 2>/dev/null; tc qdisc add dev e root handle 1: htb default 10 && "
        "tc class add dev e parent 1: classid 1:10 htb rate 2mbit"
    )
    assert of_text(f"{line}\n", link_rate=1e8).queues["1:10"]["rate"] == "2Mbps"
    batch = "qdisc add dev e root handle 1: tbf rate 2mbit burst 15k limit 30k\n"
    assert of_text(batch, dialect="tc").link["rate"] == "2Mbps"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("tc class add dev e parent 5: classid 5:1 htb rate 1mbit", "nothing that is simulated holds it"),
        ("tc qdisc add dev e parent 1:99 pfifo limit 9", "nothing that is simulated holds it"),
        ("tc filter add dev e parent 1: u32 match ip tos 0x28 0xfc flowid 1:99", "which is no queue here"),
        ("tc filter add dev e parent 1: u32 match ip tos 0x28 0xfc", "a filter without a class or policer"),
        ("tc filter add dev e parent 1: flower dst_port 25 action drop", "its action chooses no class"),
        ("tc class add dev e parent 1:1 clasid 1:40 htb rate 1mbit", "not"),
        (
            "tc qdisc add dev e parent 1:10 red limit 9x min 1000 max 3000 avpkt 1000",
            "no value that tc takes",
        ),
    ],
)
def test_a_line_that_leads_to_nothing_is_refused(line: str, said: str) -> None:
    with pytest.raises(PerhopError, match=r"line 5: .*--lenient") as error:
        of_text(f"{HTB}{line}\n", matches={"1:10": frozenset({10})})
    assert said in str(error.value)
    done = of_text(f"{HTB}{line}\n", lenient=True)
    assert 5 in done.codes("W13")


def test_packets_that_no_filter_of_prio_takes_go_by_the_field_tos() -> None:
    text = "tc qdisc add dev e root handle 1: prio bands 4 priomap 2 1\n"
    text += "tc filter add dev e parent 1: protocol ip u32 match ip dsfield 0xb8 0xfc flowid 1:1\n"
    text += "tc filter add dev e parent 1: protocol ip u32 match ip dsfield 0x10 0xfc flowid 1:3\n"
    text += "tc filter add dev e parent 1: protocol arp u32 match u32 0 0 flowid 1:4\n"
    done = of_text(text, link_rate=1e8)
    # A priomap is filled with its first band: 2, which is 1:3. Priority 1 is of no TOS.
    assert {name: q.get("match", {}).get("dscp") for name, q in done.queues.items()} == {
        "1:1": ["EF"],
        "1:3": None,
    }
    assert (4, True) in [(line, "packets of arp" in text) for (_, line), text in
                         zip(done.warnings, done.texts, strict=True)]  # fmt: skip


def test_a_catch_all_leaves_nothing_to_the_field_tos() -> None:
    text = "tc qdisc add dev e root handle 1: prio\n"
    text += "tc filter add dev e parent 1: protocol ip prio 1 u32 match ip dsfield 0xb8 0xfc flowid 1:1\n"
    text += "tc filter add dev e parent 1: protocol ip prio 2 matchall flowid 1:3\n"
    done = of_text(text, link_rate=1e8)
    assert {name: q.get("match", {}).get("dscp") for name, q in done.queues.items()} == {
        "1:1": ["EF"],
        "1:3": None,
    }


def test_a_scheduler_within_a_class() -> None:
    text = f"{HTB}tc qdisc add dev e parent 1:10 handle 20: prio\n"
    text += "tc qdisc add dev e parent 20:1 handle 21: pfifo limit 10\n"
    text += "tc filter add dev e parent 20: protocol ip u32 match ip dsfield 0xb8 0xfc flowid 20:1\n"
    text += "tc filter add dev e parent 1: protocol ip u32 match ip dsfield 0xb8 0xfc flowid 1:10\n"
    text += "tc filter add dev e parent 1: protocol ip u32 match ip dsfield 0x88 0xfc flowid 1:10\n"
    done = of_text(text)
    (root,) = done.link["queue"]["classes"]
    inner = root["classes"][0]["queue"]
    assert (inner["scheduler"], [q["name"] for q in inner["queues"]]) == ("priority", ["20:1", "20:3"])
    assert inner["queues"][0]["rule"]["limit"] == "10p"
    carried = done.carried({46: 3.0, 34: 50.0, 0: 50.0})
    assert carried[46] == pytest.approx(3.0, rel=0.02)  # before AF41, which has what the class leaves
    assert carried[46] + carried[34] == pytest.approx(6.0, rel=0.05)


def test_words_that_begin_with_a_dash_are_kept() -> None:
    text = "tc -s qdisc add dev e root cbs idleslope 98688 sendslope -901312 hicredit 153 locredit -1389\n"
    done = of_text(text, link_rate=1e8, lenient=True)
    assert any("sendslope -901312" in line for line in done.texts)


def test_handles_are_hexadecimal_and_rates_may_be_percents() -> None:
    text = HTB.replace("classid 1:10 htb rate 6mbit ceil 10mbit", "classid 1:0x10 htb rate 6mbit ceil 80%")
    text += "tc filter add dev e parent 1: protocol ip u32 match ip tos 0xb8 0xff flowid 1:10\n"
    done = of_text(text, link_rate=1e7)
    gold = done.queues["1:0x10"]
    assert (gold["match"], gold["rate"], gold["ceil"]) == ({"dscp": ["EF"]}, "6Mbps", "8Mbps")
    assert of_text("tc qdisc add dev e root tbf rate 10% burst 15k limit 30k\n", link_rate=1e8).link[
        "rate"
    ] == ("10Mbps")


@pytest.mark.parametrize(
    ("script", "rate"),
    [
        ("UP=20\ntc qdisc add dev e root tbf rate $((UP * 9 / 10))mbit burst 15k limit 30k", "18Mbps"),
        (
            "UP=$((20*1000))\nR=$((UP-2000))kbit\ntc qdisc add dev e root tbf rate $R burst 15k limit 30k",
            "18Mbps",
        ),
        ("R=${1:-18mbit}\ntc qdisc add dev e root tbf rate $R burst 15k limit 30k", "18Mbps"),
        ("tc qdisc add dev ${DEV:-e} root tbf rate $[9*2]mbit burst 15k limit 30k", "18Mbps"),
    ],
)
def test_simple_expressions_of_scripts(script: str, rate: str) -> None:
    assert of_text(f"{script}\n", "qos.sh").link["rate"] == rate


@pytest.mark.parametrize("value", ["$((1/0))mbit", "$((2**70))mbit", "$((X))mbit", "$((1 << 4))mbit"])
def test_expressions_that_are_not_simple_are_refused(value: str) -> None:
    with pytest.raises(PerhopError, match="line 1: "):
        of_text(f"tc qdisc add dev e root tbf rate {value} burst 15k limit 30k\n", "qos.sh", link_rate=1e8)


def test_a_tree_within_a_class_leaves_its_ceiling() -> None:
    text = """\
tc qdisc add dev e root handle 1: prio
tc qdisc add dev e parent 1:1 handle 10: htb default 3
tc class add dev e parent 10: classid 10:1 htb rate 5mbit
tc class add dev e parent 10:1 classid 10:2 htb rate 2mbit ceil 3mbit
tc class add dev e parent 10:1 classid 10:3 htb rate 3mbit
tc filter add dev e parent 1: protocol ip u32 match ip dsfield 0xb8 0xfc flowid 1:1
"""
    done = of_text(text, link_rate=1e8)
    assert done.carried({46: 50.0, 0: 90.0})[46] == pytest.approx(5.0, rel=0.03)
    named = [text for (code, line), text in zip(done.warnings, done.texts, strict=True) if line in {4, 5}]
    assert any("`rate 2mbit`, `ceil 3mbit` is not simulated" in text for text in named)


CLASS = """tc qdisc add dev e root handle 1: htb default 10
tc class add dev e parent 1: classid 1:10 htb rate 8mbit
"""


@pytest.mark.parametrize(
    "length",
    [
        "ip link set dev e txqueuelen 200",
        "sudo ip -b link set e up qlen 200",
        "/sbin/ip l s e txqlen 200 && echo done",
        "ip link add link f name e txqueuelen 200 type vlan id 5",
        "ifconfig e txqueuelen 200",
    ],
)
@pytest.mark.parametrize(
    ("leaf", "limit"),
    [
        ("", "200p"),
        ("tc qdisc add dev e parent 1:10 pfifo\n", "200p"),
        ("tc qdisc add dev e parent 1:10 bfifo\n", "302.8kB"),
        ("tc qdisc add dev e parent 1:10 sfb\n", "200p"),
    ],
)
def test_the_length_of_a_device_is_the_limit_of_queues_that_say_none(
    length: str, leaf: str, limit: str
) -> None:
    done = of_text(f"{length}\n{CLASS}{leaf}", link_rate=1e7)
    assert done.queues["1:10"]["queue"]["limit"] == limit
    assert done.codes("W13") == done.codes("W04") == []


def test_the_length_of_a_device_is_for_queues_that_are_made_later() -> None:
    last = "ip link set e txqueuelen 200\n"
    done = of_text(f"{CLASS}{last}", link_rate=1e7)
    assert (done.queues["1:10"]["queue"]["limit"], done.codes("W13")) == ("1000p", [3])
    done = of_text(f"{last}{CLASS}tc qdisc add dev e parent 1:10 pfifo limit 50\n", link_rate=1e7)
    assert (done.queues["1:10"]["queue"]["limit"], done.codes("W13")) == ("50p", [1])
    done = of_text(f"tc qdisc add dev e root pfifo_fast\n{last}", link_rate=1e7)
    assert {queue["rule"]["limit"] for queue in done.queues.values()} == {"200p"}
    done = of_text(f"ip link set f txqueuelen 200\n{CLASS}", link_rate=1e7)
    assert (done.queues["1:10"]["queue"]["limit"], done.codes("W13")) == ("1000p", [1])
    with pytest.raises(PerhopError, match="line 2: within a loop"):
        of_text(f"for d in e; do\nip link set $d txqueuelen 200\ndone\n{CLASS}", link_rate=1e7)
