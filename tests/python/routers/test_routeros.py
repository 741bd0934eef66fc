"""MikroTik RouterOS: exports of versions 6 and 7, single keys, units."""

from __future__ import annotations

from typing import Any

import pytest
from tests.python.routers.importing import Brought, of_file, of_text

from perhop.errors import PerhopError
from perhop.routers.dialects.routeros import lines as routeros_lines
from perhop.routers.dialects.routeros import queue_types as routeros_types
from perhop.routers.source import Account, Source

TREE = """\
/queue tree
add name=wan parent=ether1 max-limit=10M
add name=a parent=wan packet-mark=a limit-at=2M max-limit=8M queue=default {a}
add name=b parent=wan packet-mark=no-mark limit-at=3M max-limit=10M queue=default
/ip firewall mangle
add chain=forward action=mark-packet dscp=10 new-packet-mark=a passthrough=no
"""


def of_a(keys: str, more: str = "", **answers: Any) -> Brought:  # noqa: ANN401 - of several types
    """A tree of two queues, one with these keys, and more lines."""
    given: dict[str, Any] = {"link_rate": 1e8, **answers}
    return of_text(TREE.format(a=keys) + more, **given)


def test_a_queue_tree() -> None:
    done = of_file("routeros-tree.rsc")
    assert (done.dialect, done.link["rate"]) == ("routeros", "1Gbps")
    (root,) = done.link["queue"]["classes"]
    # What a parent without limit-at is sure of is its max-limit; 0.1 s of it at once.
    assert (root["name"], root["rate"], root["cburst"]) == ("wan", "50Mbps", "625kB")
    voice, data, rest = root["classes"]
    assert (voice["rate"], voice["ceil"], voice["prio"]) == ("5Mbps", "10Mbps", 0)
    # A connection's mark has the codepoint of the rule that sets it.
    assert voice["match"] == {"dscp": ["EF"]}
    assert voice["queue"] == {"aqm": "drop-tail", "limit": "10p"}
    assert (data["burst"], data["cburst"], data["prio"]) == ("25kB", "62.5kB", 2)
    assert data["match"] == {"dscp": ["CS1", "AF21"]}
    red = data["queue"]
    assert (red["thresholds"], red["limit"]) == ("20kB/60kB/0.02", "90kB")
    # (1 - 0.5^25) / 0.5 is less than 25 + 1 - 20 = 6, as are those of 2; of 3 (0.125) it is 7.7.
    assert red["weight"] == 2**-3
    assert (rest["prio"], rest["queue"]["limit"], rest["queue"]["target"]) == (7, "2000p", "10ms")
    assert rest["queue"]["ecn"] is False
    assert done.codes("W13") == [18, 19, 28, 29, 30, 31]
    assert (done.codes("W05"), done.codes("W06"), done.codes("W17")) == ([14, 14], [], [])


@pytest.mark.parametrize(
    ("direction", "site", "phones", "limit"),
    [
        ("upload", "20Mbps", ("2Mbps", "5Mbps"), "127p"),
        ("download", "100Mbps", ("10Mbps", "30Mbps"), "4.096MB"),
    ],
)
def test_simple_queues_are_a_pair(direction: str, site: str, phones: tuple[str, str], limit: str) -> None:
    answers = {"interface": direction, "link_rate": 1e9, "matches": {"guests": frozenset({18})}}
    done = of_file("routeros-simple.rsc", **answers)
    root, others = done.link["queue"]["classes"]
    assert root["rate"] == site
    assert (root["classes"][0]["rate"], root["classes"][0]["ceil"]) == phones
    assert root["classes"][1]["queue"] == {"aqm": "drop-tail", "limit": limit}
    assert others["name"] == "others"
    # A kind of the other direction is not reported.
    said = " ".join(done.texts)
    assert ("pcq" in said.replace("add kind=pcq", "").replace("name=pcq", "").replace("pcq-", "")) == (
        direction == "download"
    )
    assert (10 in done.codes("W13"), done.codes("W17")) == (True, [5])


def test_an_address_is_no_codepoint() -> None:
    with pytest.raises(PerhopError, match="--match guests=DSCP"):
        of_file("routeros-simple.rsc", interface="upload", link_rate=1e9)


def test_one_simple_queue_is_a_shaper() -> None:
    done = of_file("routeros-one.rsc", interface="upload", link_rate=1e9)
    queue = done.link["queue"]
    assert (queue["scheduler"], queue["rate"], queue["burst"]) == ("shaper", "10Mbps", "250kB")
    assert queue["queue"] == {
        "aqm": "codel", "limit": "1000p", "target": "4ms", "interval": "80ms", "ecn": True, "law": "linux",
    }  # fmt: skip
    assert (done.codes("W06"), done.codes("W14"), done.codes("W13")) == ([2, 2], [2], [5, 6])
    down = of_file("routeros-one.rsc", interface="download", link_rate=1e9)
    assert down.link["queue"]["queue"] == {"aqm": "drop-tail", "limit": "61.44kB"}
    assert down.link["queue"]["rate"] == "40Mbps"


def test_a_cake_at_an_interface_shapes_by_itself() -> None:
    done = of_file("routeros-cake.rsc", interface="ether1", link_rate=1e9)
    queue = done.link["queue"]
    assert (queue["scheduler"], queue["rate"]) == ("shaper", "18Mbps")
    # The scheme `metro` is a round-trip time of 10 ms, of which the target is a twentieth.
    assert queue["queue"] == {
        "scheduler": "fq-codel", "target": "1.009333ms", "interval": "10.509333ms", "law": "linux",
    }  # fmt: skip
    assert (done.codes("W06"), done.codes("W18")) == ([2], [2, 2])
    without = of_file("routeros-cake.rsc", interface="ether1")
    assert without.link["rate"] == "18Mbps"


def test_a_cake_in_a_tree_is_a_second_shaper() -> None:
    done = of_file("routeros-cake.rsc", interface="bridge", link_rate=1e9)
    assert done.link["queue"]["rate"] == "40Mbps"
    assert done.link["queue"]["queue"]["interval"] == "50ms"
    assert any("`max-limit=90M` has no effect beside `cake-bandwidth=40M`" in text for text in done.texts)


def test_several_roots_and_what_is_wrong_with_them() -> None:
    done = of_file("routeros-roots.rsc", interface="ether5", link_rate=1e8, matches={"web": frozenset({0})})
    gold, web = done.link["queue"]["classes"]  # of all codepoints, so that none bypasses them
    assert (gold["rate"], "ceil" in gold, gold["prio"]) == ("6Mbps", False, 0)
    assert len(gold["match"]["dscp"]) == 63
    # A queue without a parent reaches its max-limit.
    assert (web["rate"], "ceil" in web) == ("4Mbps", False)
    assert (done.codes("W15"), done.codes("W16")) == ([4], [3])
    assert ("W17", 3) in done.warnings


@pytest.mark.parametrize("sure", ["", "limit-at=2M"])
@pytest.mark.parametrize("simple", [False, True])
def test_queues_without_a_parent_reach_their_max_limit(sure: str, *, simple: bool) -> None:
    if simple:
        most, sure = "max-limit=5M/40M", sure and f"{sure}/1M"
        text = f"/queue simple\nadd name=a target=1.2.3.0/24 packet-marks=a {most} {sure}\n"
        text += f"add name=b target=1.2.4.0/24 packet-marks=b max-limit=8M/80M {sure}\n"
    else:
        text = f"/queue tree\nadd name=a parent=ether1 packet-mark=a max-limit=5M {sure}\n"
        text += f"add name=b parent=ether1 packet-mark=b max-limit=8M {sure}\n"
    text += "/ip firewall mangle\n"
    for mark, code in (("a", 46), ("b", 10)):
        text += f"add chain=forward action=mark-packet dscp={code} new-packet-mark={mark} passthrough=no\n"
    matches = {"a": frozenset({46}), "b": frozenset({10})} if simple else {}
    interface = "upload" if simple else None
    done = of_text(text, link_rate=2e7, interface=interface, matches=matches)
    for offered, right in (({46: 30.0}, {46: 5.0}), ({10: 30.0}, {10: 8.0}), ({0: 30.0}, {0: 20.0})):
        assert done.carried(offered) == pytest.approx(right, rel=0.02)
    together = done.carried({46: 30.0, 10: 30.0, 0: 4.0})
    assert together == pytest.approx({46: 5.0, 10: 8.0, 0: 4.0}, rel=0.02)
    assert done.codes("W13") == ([2, 3] if sure else [])


def test_a_queue_around_others_reaches_its_max_limit() -> None:
    done = of_text(
        TREE.format(a="").replace("max-limit=10M\n", "max-limit=10M limit-at=4M\n", 1), link_rate=1e8
    )
    assert done.carried({10: 30.0})[10] == pytest.approx(8.0, rel=0.02)
    assert done.carried({0: 30.0})[0] == pytest.approx(10.0, rel=0.02)
    assert done.codes("W13") == [2]


@pytest.mark.parametrize(
    ("keys", "key", "value", "codes"),
    [
        ("priority=1", "prio", 0, []),
        ("priority=9", "prio", 7, ["W16"]),
        ("bucket-size=0.5", "cburst", "500kB", ["W05", "W05"]),
        ("bucket-size=0", "cburst", "3kB", []),
        ("bucket-size=11", "cburst", "100kB", ["W16"]),
        ("burst-limit=9M burst-threshold=7M burst-time=8s", "ceil", "8Mbps", ["W06", "W13", "W13"]),
        ("burst-limit=0 burst-threshold=0 burst-time=0s", "ceil", "8Mbps", []),
        ("wibble=1", "ceil", "8Mbps", ["W13"]),
        ('comment="a \\"b\\" = c"', "ceil", "8Mbps", []),
    ],
)
def test_keys_of_a_queue(keys: str, key: str, value: object, codes: list[str]) -> None:
    done = of_a(keys)
    assert done.queues["a"][key] == value
    assert [code for code, _ in done.warnings] == codes


@pytest.mark.parametrize(
    ("kind", "queue", "codes"),
    [
        ("kind=pfifo pfifo-limit=30", {"aqm": "drop-tail", "limit": "30p"}, []),
        ("kind=pfifo", {"aqm": "drop-tail", "limit": "50p"}, []),
        ("kind=bfifo bfifo-limit=20000", {"aqm": "drop-tail", "limit": "20kB"}, []),
        ("kind=mq-pfifo mq-pfifo-limit=40", {"aqm": "drop-tail", "limit": "40p"}, ["W09"]),
        ("kind=sfq sfq-perturb=10", {"aqm": "drop-tail", "limit": "127p"}, ["W06", "W13"]),
        ("kind=pcq pcq-total-limit=200", {"aqm": "drop-tail", "limit": "200p"}, ["W06"]),
        ("kind=codel codel-limit=200", {
            "aqm": "codel", "limit": "200p", "target": "5ms", "interval": "100ms", "ecn": False,
            "law": "linux",
        }, []),
        ("kind=fq-codel fq-codel-flows=64 fq-codel-memlimit=1.0MiB fq-codel-quantum=300", {
            "scheduler": "fq-codel", "limit": "10240p", "target": "5ms", "interval": "100ms",
            "quantum": "300B",
            "memory-limit": "1048.576kB", "flows": 64, "ecn": True, "law": "linux",
        }, []),
        ("kind=fq-codel fq-codel-flows=0", None, ["W16"]),
        ("kind=pfifo pfifo-limit=x", {"aqm": "drop-tail", "limit": "50p"}, ["W16"]),
        ("kind=wibble", {"aqm": "drop-tail", "limit": "50p"}, ["W06"]),
        ("kind=red red-min-threshold=40 red-burst=3", None, ["W01", "W01", "W01", "W02", "W04", "W17"]),
    ],
    ids=lambda value: value.split()[0] if isinstance(value, str) else "",
)  # fmt: skip
def test_kinds_of_queues(kind: str, queue: dict[str, object] | None, codes: list[str]) -> None:
    done = of_a("", f"/queue type\nadd name=t {kind}\n/queue tree\nset [ find name=b ] queue=t\n")
    others = [code for code, line in done.warnings if (code, line) != ("W17", 4)]
    assert sorted(others) == codes
    if queue is not None:
        assert done.queues["b"]["queue"] == queue


def test_how_it_is_written_does_not_matter() -> None:
    text = TREE.format(a="")
    slashes = text.replace("/queue tree", "/queue/tree").replace("/ip firewall mangle", "/ip/firewall/mangle")
    whole = text.replace("/queue tree\nadd", "/queue tree add", 1)
    wrapped = text.replace("limit-at=2M max-limit=8M", "limit-at=2M \\\n    max-limit=\\\n    8M")
    plain = of_text(text, link_rate=1e8)
    for other in (slashes, whole, wrapped, text.replace("\n", "\r\n"), f"# a comment\n{text}"):
        assert of_text(other, link_rate=1e8).queues == plain.queues
    assert ("W13", 4) not in of_text(wrapped, link_rate=1e8).warnings


def test_each_line_of_a_wrapped_command_is_used() -> None:
    text = "/queue type\nadd kind=red \\\n    name=x \\\n    wibble=1\n"
    account = Account(Source([("x", text.encode())]))
    menus = routeros_lines.Menus(account.source, account, frozenset({"queue type"}))
    (entry,) = menus.entries["queue type"]
    assert (entry.lines, entry.place("wibble"), entry.name) == ({2, 3, 4}, 4, "x")


def test_marks_in_the_order_of_rules() -> None:
    text = """\
/queue tree
add name=a parent=ether1 packet-mark=a max-limit=2M queue=default
add name=b parent=ether1 packet-mark=b max-limit=3M queue=default
/ip firewall mangle
add chain=forward action=mark-packet new-packet-mark=a dscp=10 passthrough=no
add chain=forward action=mark-packet new-packet-mark=b dscp=10 passthrough=no
add chain=forward action=mark-packet new-packet-mark=a dscp=12
add chain=forward action=mark-packet new-packet-mark=b packet-mark=a dscp=12
"""
    done = of_text(text, link_rate=1e8)
    assert done.queues["a"]["match"] == {"dscp": ["AF11"]}
    assert done.queues["b"]["match"] == {"dscp": ["AF12"]}


def test_a_mark_that_nothing_sets_is_reported() -> None:
    text = "/queue tree\nadd name=a parent=ether1 packet-mark=x max-limit=2M queue=default\n"
    text += "add name=b parent=ether1 max-limit=9M\n"
    with pytest.raises(PerhopError, match="--match a=DSCP"):
        of_text(text, link_rate=1e8)
    assert ("W15", 2) in of_text(text, link_rate=1e8, matches={"a": frozenset({10})}).warnings


def test_the_interface_queue_below_a_tree() -> None:
    cake = "/queue type\nadd name=c kind=cake cake-bandwidth=20M\n/queue interface\nset ether1 queue=c\n"
    done = of_text(TREE.format(a="") + cake)
    assert (done.link["rate"], done.codes("W06")) == ("20Mbps", [10])
    done = of_a("", "/queue interface\nset ether1 queue=ethernet-default\n")
    assert done.codes("W13") == [8]


@pytest.mark.parametrize("text", ["10M", "10000k", "10000000", "0.01G", "10Mbps"])
def test_rates(text: str) -> None:
    assert routeros_types.rate(text) == pytest.approx(1e7)


@pytest.mark.parametrize(
    ("text", "seconds"), [("5ms", 0.005), ("1s", 1.0), ("100us", 1e-4), ("00:01:30", 90.0), ("x", None)]
)
def test_times(text: str, seconds: float | None) -> None:
    assert routeros_types.time(text) == seconds


def test_a_tree_without_a_parent_is_of_all_interfaces() -> None:
    text = (
        "/queue tree\nadd name=a parent= max-limit=2M queue=default\nadd name=b max-limit=3M queue=default\n"
    )
    done = of_text(text, link_rate=1e8, interface="global")
    # Neither has marks: the first takes all packets.
    assert (list(done.queues), done.codes("W14")) == (["a"], [3])
    assert done.codes("W09") == [2]


def test_simple_queues_are_tried_in_their_order() -> None:
    text = "/queue simple\nadd name=all max-limit=9M/9M queue=default/default\n"
    text += "add name=voice packet-marks=v max-limit=1M/1M queue=default/default\n"
    text += "/ip firewall mangle\nadd chain=forward action=mark-packet dscp=46 new-packet-mark=v\n"
    done = of_text(text, link_rate=1e8, interface="upload")
    assert (list(done.queues), done.codes("W14")) == (["all"], [3])


def test_commands_over_several_lines_are_recognised() -> None:
    text = """\
/queue tree add \\
    name=up parent=ether1 \\
    max-limit=10M
/queue tree add \\
    name=voice parent=up packet-mark=voice \\
    limit-at=2M max-limit=5M priority=1 queue=default
"""
    done = of_text(text, link_rate=1e8, matches={"voice": frozenset({46})})
    assert done.dialect == "routeros"
    voice = done.queues["voice"]
    assert (voice["rate"], voice["ceil"], voice["prio"], voice["match"]) == (
        "2Mbps", "5Mbps", 0, {"dscp": ["EF"]},
    )  # fmt: skip
    assert done.codes("W13") == []


def test_a_menu_may_be_named_from_another_one() -> None:
    text = "/queue\ntree add name=up parent=ether1 max-limit=10M queue=default\n"
    assert of_text(text, link_rate=1e8, dialect="routeros").link["queue"]["rate"] == "10Mbps"


def test_a_command_that_is_not_understood_is_reported_once() -> None:
    text = TREE.format(a="") + "/queue tree \\\n    enlarge name=a \\\n    max-limit=9M\n"
    done = of_text(text, lenient=True)
    at = text.count("\n") - 2
    assert [line for line in done.codes("W13") if line >= at] == [at]
    with pytest.raises(PerhopError, match=f"line {at}: not understood"):
        of_text(text)


@pytest.mark.parametrize(
    ("value", "rate"), [("50M/20M", "20Mbps"), ("50000/20000", "20Mbps"), ("1G/1G", "100Mbps")]
)
def test_the_bandwidth_of_an_interface_limits_it(value: str, rate: str) -> None:
    text = f"/interface ethernet set [ find default-name=ether1 ] speed=100Mbps bandwidth={value}\n"
    text += "/queue interface set ether1 queue=ethernet-default\n"
    assert of_text(text).link["rate"] == rate
