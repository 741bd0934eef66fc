"""Linux tc: units, RED's exponent, golden pairs, scripts, shown JSON."""

from __future__ import annotations

import pytest
from tests.python.routers.importing import buffer, of_file, of_text

from perhop.errors import PerhopError
from perhop.routers import Answers, Source, imported, linux


@pytest.mark.parametrize(
    ("text", "bps"),
    [
        ("1000", 1000), ("1bit", 1), ("10kbit", 10e3), ("10Mbit", 10e6), ("1gbit", 1e9), ("1tbit", 1e12),
        ("1kibit", 1024), ("1mibit", 1024**2), ("1bps", 8), ("1kbps", 8e3), ("3.5mbps", 28e6), ("1gbps", 8e9),
        ("1kibps", 8192), ("fast", None), ("-1", None),
    ],
)  # fmt: skip
def test_rates(text: str, bps: float | None) -> None:
    assert linux.rate(text) == bps


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1500", 1500), ("15k", 15360), ("15kb", 15360), ("15K", 15360), ("1m", 1048576), ("1mb", 1048576),
        ("1g", 1073741824), ("8kbit", 1024), ("2mbit", 262144), ("1x", None),
    ],
)  # fmt: skip
def test_sizes(text: str, size: float | None) -> None:
    assert linux.size(text) == size


@pytest.mark.parametrize(
    ("low", "burst", "avpkt", "exponent"),
    [
        (30000, 55, 1000, 5), (40000, 45, 1500, 5), (102400, 113, 1500, 6), (40000, 60, 1000, 5),
        (60000, 55, 1000, None), (60000, 70, 1000, 4), (60000, 75, 1000, 5), (60000, 89, 1000, 5),
    ],
)  # fmt: skip
def test_the_averaging_exponent(low: float, burst: int, avpkt: float, exponent: int | None) -> None:
    assert linux.wlog(low, burst, avpkt) == exponent


def test_bursts_of_an_exponent() -> None:
    found = {n: linux.bursts(40000, 1500, n) for n in (2, 4, 6, 7, 9)}
    assert found == {2: (28, 29), 4: (34, 40), 6: (52, 67), 7: (68, 90), 9: (125, 171)}


def test_gred_with_equal_priorities_is_wred() -> None:
    done = of_file("tc-gred.sh", link_rate=20e6)
    assert done.link["queue"] == {
        "aqm": "wred", "green": "60kB/120kB/0.05", "yellow": "30kB/90kB/0.1", "limit": "300kB",
        "weight": 2**-5, "wait": False, "scale-by-size": False, "mean-packet": "1kB",
    }  # fmt: skip
    assert done.warnings == [("W14", 1), ("W02", 2), ("W02", 3)]


def test_virtual_queues_have_limits_and_ecn_of_their_own() -> None:
    from tests.python.routers.importing import CONFIGURATIONS  # noqa: PLC0415

    text = (CONFIGURATIONS / "tc-gred.sh").read_text(encoding="utf-8")
    *first, last = text.rstrip().splitlines()
    last = last.replace("limit 300000", "limit 200000") + " ecn"
    done = of_text("\n".join([*first, last]) + "\n", link_rate=20e6)
    assert done.link["queue"]["profiles"] == [
        {"match": {"color": "green"}, "curve": "60kB/120kB/0.05"},
        {"match": {"color": "yellow"}, "curve": "30kB/90kB/0.1", "limit": "200kB", "ecn": "mark-above-max"},
    ]
    assert "W06" not in [code for code, _ in done.warnings]


def test_sixteen_virtual_queues() -> None:
    lines = ["tc qdisc add dev e root gred setup vqs 16 default 0 grio limit 300000"]
    lines += [
        f"tc qdisc change dev e root gred vq {n} limit 300000 min {10000 + 1000 * n} max 120000 avpkt 1000 "
        f"burst 60 probability 0.05 bandwidth 20mbit prio 3"
        for n in range(16)
    ]
    profiles = of_text("\n".join(lines), link_rate=20e6).link["queue"]["profiles"]
    assert len(profiles) == 16
    assert {profile["curve"] for profile in profiles} == {f"{10 + n}kB/120kB/0.05" for n in range(16)}


@pytest.mark.parametrize(
    ("words", "ecn"),
    [
        ("", None),
        ("ecn", "mark-above-max"),
        ("ecn harddrop", True),
        ("ecn nodrop", "mark-only"),
        ("ecn harddrop nodrop", "mark-only-below-max"),
    ],
)
def test_ecn_and_adaptive_of_red(words: str, ecn: object) -> None:
    text = "tc qdisc add dev e root red limit 400000 min 30000 max 90000 avpkt 1000 burst 55 bandwidth 1gbit"
    rule = of_text(f"{text} probability 0.1 {words}", link_rate=1e9).link["queue"]
    assert (rule.get("ecn"), "adaptive" in rule) == (ecn, False)
    done = of_text(f"{text} probability 0.1 adaptive {words}", link_rate=1e9)
    assert done.link["queue"]["adaptive"] is True
    assert {"W06", "W08", "W11", "W17"}.isdisjoint(code for code, _ in done.warnings)
    assert of_text(f"{text} probability 0.1 nodrop", link_rate=1e9).codes("W17") == [1]


@pytest.mark.parametrize(("burst", "code"), [("55", "W17"), ("70", "W17"), ("75", None), ("89", None)])
def test_bursts_that_tc_refuses_or_that_differ(burst: str, code: str | None) -> None:
    from tests.python.routers.importing import CONFIGURATIONS  # noqa: PLC0415

    text = (CONFIGURATIONS / "tc-gred.sh").read_text(encoding="utf-8").replace("burst 80", f"burst {burst}")
    found = [name for name, _ in of_text(text, link_rate=20e6).warnings if name == "W17"]
    assert found == ([code] if code else [])


def test_gred_with_other_priorities_is_rio() -> None:
    done = of_file("tc-rio.sh", link_rate=50e6)
    queue = done.link["queue"]
    assert (queue["aqm"], queue["averages"]) == ("rio", "own-class")
    assert (queue["in"], queue["total"]) == ("122.88kB/245.76kB/0.02", "40.96kB/122.88kB/0.1")
    assert done.codes("W17") == [5]
    assert [flow["color"] for flow in done.flows] == ["green", "yellow"]


def test_a_tree_of_htb() -> None:
    done = of_file("tc-htb.sh", link_rate=100e6, lenient=True)
    queue = done.link["queue"]
    assert (done.link["rate"], queue["scheduler"]) == ("100Mbps", "htb")
    (root,) = queue["classes"]
    assert (root["name"], root["rate"], root["burst"]) == ("1:1", "20Mbps", "15.36kB")
    queues = done.queues
    assert {name: (q["rate"], q["ceil"]) for name, q in queues.items()} == {
        "1:10": ("4Mbps", "20Mbps"),
        "1:20": ("10Mbps", "15Mbps"),
        "1:30": ("5Mbps", "20Mbps"),
    }
    assert (queues["1:10"]["prio"], queues["1:30"]["burst"]) == (0, "15.36kB")
    assert queues["1:10"]["match"] == {"dscp": ["EF"]}
    assert queues["1:10"]["queue"] == {"aqm": "drop-tail", "limit": "50p"}
    red = queues["1:20"]["queue"]
    assert (red["thresholds"], red["limit"], red["weight"]) == ("30.72kB/92.16kB/0.1", "409.6kB", 2**-5)
    assert red["ecn"] == "mark-above-max"
    assert queues["1:30"]["queue"]["scheduler"] == "fq-codel"
    assert (done.codes("W06"), done.codes("W08")) == ([], [])
    assert done.codes("W13") == [4, 16, 17]


def test_a_tree_of_three_levels_has_its_default_class_last() -> None:
    text = (
        "tc qdisc add dev e root handle 1: htb default 11 r2q 5\n"
        "tc class add dev e parent 1: classid 1:1 htb rate 10mbit\n"
        "tc class add dev e parent 1:1 classid 1:2 htb rate 6mbit ceil 10mbit\n"
        "tc class add dev e parent 1:2 classid 1:11 htb rate 4mbit ceil 8mbit quantum 3000 cburst 3k\n"
        "tc class add dev e parent 1:2 classid 1:12 htb rate 2mbit prio 3 overhead 4\n"
        "tc class add dev e parent 1:1 classid 1:3 htb rate 4mbit prio 2\n"
        "tc filter add dev e parent 1: protocol ip u32 match ip tos 0xb8 0xfc flowid 1:12\n"
        "tc filter add dev e parent 1: protocol ip u32 match ip tos 0x28 0xfc flowid 1:3\n"
    )
    done = of_text(text)
    queue = done.link["queue"]
    assert (done.link["rate"], queue["r2q"]) == ("10Mbps", 5)
    (root,) = queue["classes"]
    third, second = root["classes"]
    assert [third["name"], *(c["name"] for c in second["classes"])] == ["1:3", "1:12", "1:11"]
    last = second["classes"][1]
    assert (last["ceil"], last["quantum"], last["cburst"]) == ("8Mbps", "3kB", "3.072kB")
    assert "match" not in last
    assert (third["prio"], second["classes"][0]["prio"]) == (2, 3)
    assert ("W18", 5) in done.warnings


def test_packets_that_bypass_a_tree_have_up_to_the_links_rate() -> None:
    text = (
        "tc qdisc add dev e root handle 1: htb\n"
        "tc class add dev e parent 1: classid 1:1 htb rate 4mbit\n"
        "tc class add dev e parent 1:1 classid 1:10 htb rate 4mbit\n"
        "tc filter add dev e parent 1: protocol ip u32 match ip tos 0xb8 0xfc flowid 1:10\n"
    )
    faster = of_text(text, link_rate=1e7)
    assert [root["name"] for root in faster.link["queue"]["classes"]] == ["1:1", "unclassified"]
    bypass = faster.queues["unclassified"]
    # A class without a parent borrows of none: it reaches its rate. The kernel sends these packets first.
    assert (bypass["rate"], "ceil" in bypass) == ("10Mbps", False)
    assert faster.carried({0: 30.0})[0] == pytest.approx(10.0, rel=0.02)
    assert faster.carried({46: 30.0, 0: 2.0}) == pytest.approx({46: 4.0, 0: 2.0}, rel=0.02)
    # Where the tree's rate is taken as the link's, nothing is left.
    alone = of_text(text)
    (root,) = alone.link["queue"]["classes"]
    assert [c["name"] for c in root["classes"]] == ["1:10", "unclassified"]
    assert alone.queues["unclassified"]["ceil"] == "4Mbps"
    assert ("W17", 1) in alone.warnings


def test_priorities_below_a_token_bucket() -> None:
    done = of_file("tc-prio.sh", lenient=True)
    assert done.link["rate"] == "8Mbps"
    assert list(done.queues) == ["2:1", "2:2", "2:4"]
    assert done.queues["2:1"]["rule"]["limit"] == "15.36kB"
    assert done.queues["2:2"]["rule"] == {
        "aqm": "codel", "limit": "300p", "target": "5ms", "interval": "100ms", "ecn": True, "law": "linux",
    }  # fmt: skip
    # The priomap's band 1 is for priorities 6 and 4: codepoints whose last bits are 10x and 11x.
    assert {value for value in done.queues["2:2"]["match"]["dscp"] if isinstance(value, int)} >= {4, 5, 13}
    assert done.codes("W13") == [2, 2, 8, 9, 10]


def test_policers_at_the_ingress() -> None:
    done = of_file("tc-police.sh", link_rate=1e9)
    assert [meter["profile"]["rate"] for meter in done.link["meters"]] == ["1Mbps", "28Mbps"]
    assert done.link["meters"][0]["match"] == {"dscp": ["EF"]}
    assert done.link["meters"][0]["profile"]["burst"] == "10.24kB"


def test_shown_json() -> None:
    done = of_file("tc.json", link_rate=1e8, buffer=buffer(1e5), lenient=True)
    assert done.dialect == "tc"
    assert [queue["weight"] for queue in list(done.queues.values())[:2]] == [200, 100]
    red = done.queues["1:1"]["rule"]
    assert (red["weight"], red["thresholds"], red["ecn"]) == (2**-6, "50kB/150kB/0.05", True)
    assert done.codes("W08") == []


@pytest.mark.parametrize(
    ("text", "queue"),
    [
        ("tc qdisc add dev e root pfifo limit 30", {"aqm": "drop-tail", "limit": "30p"}),
        ("tc qdisc add dev e root tbf rate 1mbit burst 10k latency 50ms", {
            "aqm": "drop-tail", "limit": "16.49kB"}),
        ("sudo tc qdisc replace dev e root fq_codel limit 500 target 4ms noecn", {
            "scheduler": "fq-codel", "limit": "500p", "target": "4ms", "ecn": False, "law": "linux"}),
        ("tc qdisc add dev e root pie limit 200 target 20ms tupdate 30ms ecn", {
            "aqm": "pie", "limit": "200p", "target": "20ms", "update": "30ms", "ecn": True, "law": "linux"}),
        ("qdisc pfifo 8001: dev e root refcnt 2 limit 40p", {"aqm": "drop-tail", "limit": "40p"}),
        ("A=e\nB=$A\ntc qdisc add dev ${B} root bfifo limit 20kb", {"aqm": "drop-tail", "limit": "20.48kB"}),
    ],
)  # fmt: skip
def test_single_qdiscs(text: str, queue: dict[str, object]) -> None:
    done = of_text(text, link_rate=1e8)
    found = dict(done.link["queue"])
    if "tbf" in text:
        found = found["queue"]
    assert found == queue


def test_a_missing_default_class_is_reported() -> None:
    text = (
        "tc qdisc add dev e root handle 1: htb default 99\n"
        "tc class add dev e parent 1: classid 1:10 htb rate 1mbit\n"
        "tc filter add dev e parent 1: protocol ip u32 match ip tos 0xb8 0xfc flowid 1:10\n"
    )
    done = of_text(text, link_rate=1e7)
    assert {("W15", 1), ("W17", 1)} <= set(done.warnings)


def test_filters_are_tried_in_the_order_of_their_priorities() -> None:
    text = (
        "tc qdisc add dev e root handle 1: prio\n"
        "tc filter add dev e parent 1: protocol ip prio 2 u32 match ip tos 0x00 0x00 flowid 1:3\n"
        "tc filter add dev e parent 1: protocol ip prio 1 u32 match ip tos 0xa0 0xe0 flowid 1:1\n"
        "tc filter add dev e parent 1: protocol ip prio 3 u32 match ip tos 0xb8 0xfc flowid 1:2\n"
    )
    done = of_text(text, link_rate=1e7)
    # Precedence 5 goes to the first band; EF is of it, so the last filter gets nothing.
    assert done.queues["1:1"]["match"]["dscp"] == ["CS5", 41, 42, 43, 44, 45, "EF", 47]
    assert done.codes("W14")[-1] == 4


HTB = """\
tc qdisc add dev e root handle 1: htb default 20
tc class add dev e parent 1: classid 1:1 htb rate 10mbit ceil {ceil} {more}
tc class add dev e parent 1:1 classid 1:10 htb rate 2mbit ceil 10mbit {leaf}
tc class add dev e parent 1:1 classid 1:20 htb rate 3mbit
tc qdisc add dev e parent 1:20 fq_codel {options}
tc filter add dev e parent 1: protocol ip prio 1 u32 match ip dport 80 0xffff flowid 1:10
tc filter add dev e parent 1: protocol ip prio 2 flower ip_tos 0x28/0xfc classid 1:10
"""


@pytest.mark.parametrize(
    ("words", "finding"),
    [
        ({"ceil": "8mbit"}, ("W16", 2)),
        ({"more": "prio 2"}, ("W13", 2)),
        ({"leaf": "prio 9"}, ("W16", 3)),
        ({"leaf": "overhead 24"}, ("W18", 3)),
    ],
)
def test_values_of_a_tree_that_have_no_effect(words: dict[str, str], finding: tuple[str, int]) -> None:
    plain = {"ceil": "10mbit", "more": "", "leaf": "", "options": ""}
    assert finding not in of_text(HTB.format(**plain), lenient=True).warnings
    assert finding in of_text(HTB.format(**plain | words), lenient=True).warnings


@pytest.mark.parametrize(
    ("words", "key", "value"),
    [
        ({"leaf": "burst 15k"}, "burst", "15.36kB"),
        ({"leaf": "quantum 1514"}, "quantum", "1.514kB"),
        ({"leaf": "prio 1"}, "prio", 1),
    ],
)
def test_values_of_a_class(words: dict[str, str], key: str, value: object) -> None:
    plain = {"ceil": "10mbit", "more": "", "leaf": "", "options": ""}
    assert of_text(HTB.format(**plain | words), lenient=True).queues["1:10"][key] == value
    fair = of_text(HTB.format(**plain | {"options": "flows 16 quantum 300"}), lenient=True).queues["1:20"][
        "queue"
    ]
    assert (fair["scheduler"], fair["flows"], fair["quantum"]) == ("fq-codel", 16, "300B")


def test_codepoints_come_from_the_line_of_their_filter() -> None:
    text = HTB.format(ceil="10mbit", more="", leaf="", options="")
    source = Source([("tc.sh", text.encode())])
    rows = imported(source, Answers(packet_size=1000.0, lenient=True)).rows
    assert [row.line for row in rows if (row.queue, row.parameter) == ("1:10", "match")] == [7]


def test_a_token_bucket_around_a_qdisc() -> None:
    text = (
        "tc qdisc add dev e root handle 1: tbf rate 1mbit burst 32kbit latency 50ms\n"
        "tc qdisc add dev e parent 1: handle 2: fq_codel flows 16\n"
    )
    assert of_text(text).codes("W13") == [1, 1]  # burst and latency
    assert of_text(text, link_rate=1e7).codes("W13") == [1]  # the shaper has the burst


@pytest.mark.parametrize(
    "block",
    [
        "for i in 1 2; do echo $i; done",
        'if [ -n "$X" ]; then echo "a; b"; fi',
        'for i in 1; do if true; then echo "done;"; fi; done > /dev/null',
        "case $1 in a) echo;; esac",
        "for i in 1 2\ndo\n  echo $i\ndone",
        "if true; then\n  echo a\nelif false; then\n  echo c\nelse\n  echo b\nfi",
        "for i in 1 2; do\n  tc qdisc add dev eth0 root pfifo limit $i; done",
        "start() {\n  echo a\n}",
        "function start { echo a; }",
    ],
)
def test_a_block_ends_on_its_line(block: str) -> None:
    text = f"tc qdisc add dev eth0 root handle 1: tbf rate 5mbit burst 15k limit 30k\n{block}\n"
    text += "tc qdisc add dev eth0 parent 1: pfifo limit 7\n"
    done = of_text(text, "qos.sh", lenient=True)
    assert done.link["queue"]["limit"] == "7p"
    assert set(range(2, 3 + block.count("\n"))) <= set(done.codes("W13"))
    assert 3 + block.count("\n") not in done.codes("W13")


def test_a_command_in_a_loop_is_not_run() -> None:
    loop = "for i in 1 2; do tc qdisc add dev eth0 root pfifo limit 9; done"
    text = f"{loop}\ntc qdisc add dev eth0 root pfifo limit 7\n"
    with pytest.raises(PerhopError, match="line 1: shell control is not followed"):
        of_text(text, "qos.sh", link_rate=1e6)
    done = of_text(text, "qos.sh", link_rate=1e6, lenient=True)
    assert (done.link["queue"]["limit"], done.codes("W13")) == ("7p", [1])


@pytest.mark.parametrize(("rate", "lines"), [("3mbit", []), ("8mbit", [2])])
def test_rates_of_classes_above_that_of_their_parent_are_reported(rate: str, lines: list[int]) -> None:
    text = f"""\
tc qdisc add dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:1 htb rate 8mbit ceil 8mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate {rate} ceil 8mbit
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 3mbit ceil 8mbit
"""
    assert of_text(text, "qos.sh", lenient=True).codes("W17") == lines


def test_values_of_a_qdisc_name_its_line_and_not_that_of_the_class() -> None:
    text = """\
tc qdisc add dev eth0 root handle 1: htb default 10
tc class add dev eth0 parent 1: classid 1:10 htb rate 8mbit
tc qdisc add dev eth0 parent 1:10 red limit 400kb min 30kb max 90kb avpkt 1000 burst 55 adaptive
"""
    done = imported(Source([("qos.sh", text.encode())]), Answers(lenient=True))
    for key in ("adaptive", "wait", "scale-by-size"):
        assert any(line.startswith(f"{key} = ") and "line 3:" in line for line in done.toml.splitlines())


def test_each_class_has_the_virtual_queues_of_its_own_gred() -> None:
    text = "tc qdisc add dev eth0 root handle 1: prio bands 2 priomap 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n"
    for band, low in ((1, 10), (2, 20)):
        head = f"dev eth0 parent 1:{band} handle 1{band}: gred"
        text += f"tc qdisc add {head} setup vqs 2 default 0 grio limit 300000\n"
        for vq, most in ((0, "0.1"), (1, "0.2")):
            text += f"tc qdisc change {head} vq {vq} limit 300000 min {low}000 max 90000 avpkt 1000 burst 60 "
            text += f"probability {most} prio 1\n"
    text += "tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dsfield 0x28 0xfc flowid 1:1\n"
    text += "tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dsfield 0x30 0xfc flowid 1:1\n"
    text += "tc qdisc add dev eth0 clsact\n"
    text += "tc filter add dev eth0 egress protocol ip prio 1 u32 match ip dsfield 0x30 0xfc classid :1\n"
    found = of_text(text, link_rate=1e8)
    first, second = (found.queues[name]["rule"]["profiles"] for name in ("1:1", "1:2"))
    # AF12 has a filter, which AF11, the only other codepoint of the class, has not: virtual queue 0.
    assert first == [
        {"match": {"dscp": ["AF11"]}, "curve": "10kB/90kB/0.1"},
        {"match": {"dscp": ["AF12"]}, "curve": "10kB/90kB/0.2"},
    ]  # fmt: skip
    assert second[-1] == {"curve": "20kB/90kB/0.1"}
