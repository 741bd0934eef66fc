"""The kernel's queueing discipline as a witness: the comparison, and the kernel where it has one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.python.live.living import INVALID

from perhop import _engine
from perhop import witness as asked_of_kernel
from perhop.errors import PerhopError
from perhop.real_packets import decisions, laboratory, witnessing
from perhop.real_packets.decisions import RESOLUTION_NS, Differences, Offered, Passed
from perhop.scenario import reading

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.python.conftest import Finished

    Perhop = Callable[..., Finished]

EXAMPLES = Path(__file__).parents[3] / "examples"
MS = 1_000_000
SHAPER = {
    "scheduler": "shaper",
    "rate": "8Mbps",
    "burst": "1500B",
    "queue": {"aqm": "drop-tail", "limit": "2p"},
}
"""The tokens of 1000 bytes come in a millisecond. One packet may wait behind the one that waits for them."""


SHARE = 0.99
"""The share of packets that must fare alike. Where the machine has time for it, it is above 99.9 %."""
SOON = (50_000, 100_000)
"""Times at which two packets come while there are no tokens for them."""


def lacks() -> str | None:
    """The thing that is missing here for a queue of the kernel: tc, a discipline, or namespaces."""
    request = {"device": "wan", "at_ns": [0], "size": [100], "dscp": [0], "ecn": [0], "flow": [0]}
    for kind in ("tbf rate 1mbit burst 1600 limit 9999", "htb"):
        commands = [f"tc qdisc add dev wan root handle 1: {kind}"]
        try:
            laboratory.ask({"kernel_queue": {**request, "commands": commands}}, None)
        except _engine.LiveUnavailable as error:
            return str(error)
    return None


needs_kernel = pytest.mark.skipif(
    (missing := lacks()) is not None, reason=f"needs tc with tbf and htb, and namespaces: {missing}"
)


def block(table: dict[str, Any] | None = None) -> _engine.QueueByHand:
    return _engine.QueueByHand(json.dumps(table or SHAPER), "100Mbps", 1)


def packets(*came_ns: int) -> list[Offered]:
    """Packets of 1000 bytes, each handed over in a call of 4 µs."""
    return [Offered(ns, ns + 4000, (1000, "green", 0, 0, 0, 0, 0)) for ns in came_ns]


def passed(*left_ns: int | None) -> Passed:
    """Fates of packets of which none was marked, and those that did not leave were refused."""
    return Passed(list(left_ns), [False] * len(left_ns), [ns is None for ns in left_ns])


def test_a_block_in_its_own_time_sends_as_soon_as_it_may() -> None:
    # 1500 bytes of tokens are there: the first packet goes at once, the second has 500 bytes and waits half a
    # millisecond, the third waits behind it, and the fourth finds the queue full.
    found = decisions.own_time(block(), packets(0, 0, 0, 0, 5 * MS))
    assert found.left_ns == [0, MS // 2, 3 * MS // 2, None, 5 * MS]
    assert found.refused == [False, False, False, True, False]


def test_a_late_kernel_is_followed() -> None:
    # The kernel sent the second packet 40 µs late, and a packet that came meanwhile found the queue full.
    offered = packets(0, *SOON, MS // 2 + 20_000)
    kernel = passed(0, MS // 2 + 40_000, 3 * MS // 2 + 20_000, None)
    own = decisions.own_time(block(), offered)
    assert Differences.between(kernel, own).fates == {3}
    followed = decisions.following(block(), offered, kernel)
    assert not Differences.between(kernel, followed.passed).packets
    assert not followed.tied
    assert followed.late_ns == [0, 40_000, 20_000]


def test_a_departure_within_the_call_that_hands_a_packet_over_is_in_either_order() -> None:
    # The second packet leaves room 2 µs after the call began that hands over the fourth.
    offered = packets(0, *SOON, MS // 2 - 2000)
    kernel = passed(0, MS // 2, 3 * MS // 2, 5 * MS // 2)
    followed = decisions.following(block(), offered, kernel)
    assert not Differences.between(kernel, followed.passed).packets
    assert followed.tied == {3}
    # Long after the call it is not.
    offered = packets(0, *SOON, MS // 2 - 4000 - RESOLUTION_NS - 1)
    followed = decisions.following(block(), offered, kernel)
    assert Differences.between(kernel, followed.passed).fates == {3}


def test_a_kernel_that_decides_otherwise_is_found() -> None:
    offered = packets(0, *SOON, 5 * MS)
    kernel = passed(
        0, None, MS // 2, 5 * MS
    )  # it dropped the second packet, for which there was room: the block is one behind
    followed = decisions.following(block(), offered, kernel)
    assert Differences.between(kernel, followed.passed).fates == {1, 3}


def test_a_kernel_that_was_interrupted_between_a_decision_and_its_departure_is_followed() -> None:
    # The first packet was 1.4 ms late, but tokens had come since the kernel decided, at 0: the second, of the
    # full bucket, left at 1.5 ms. A block that decides at 1.4 ms lets it go at 1.9 ms.
    offered = packets(0, 50_000)
    kernel = passed(1_400_000, 1_500_000)
    followed = decisions.following(block(), offered, kernel)
    assert not Differences.between(kernel, followed.passed).packets
    assert followed.tied == {1}


def tree(lender: str) -> _engine.QueueByHand:
    """A class of 1 Mbit/s, whose 1000 bytes take 8 ms, that borrows from one of this rate."""
    buckets = {"burst": "0B", "cburst": "99kB"}
    leaf = {"name": "a", "rate": "1Mbps", "ceil": "100Mbps", "queue": SHAPER["queue"], **buckets}
    return block(
        {
            "scheduler": "htb",
            "classes": [{"name": "link", "rate": lender, "ceil": "100Mbps", "classes": [leaf], **buckets}],
        }
    )


def test_who_pays_for_a_packet_hangs_on_when_the_kernel_decided() -> None:
    # Both are in debt after the first packet: the class until 8 ms, its lender until 7.998 ms. The second
    # packet left at 8.005 ms. The kernel decided before 8 ms, so the lender alone paid: the third left at
    # once, on the class's account. A block that decides at 8.005 ms has the class pay, and lets the third
    # wait until 16 ms.
    offered = packets(0, 7 * MS, 7 * MS + 10_000)
    kernel = passed(0, 8 * MS + 5000, 8 * MS + 9000)
    followed = decisions.following(tree("1000250bps"), offered, kernel)
    assert not Differences.between(kernel, followed.passed).packets
    assert followed.tied == {2}


def test_turns_are_compared_within_the_resolution() -> None:
    tree = {
        "scheduler": "priority",
        "queues": [
            {"name": "first", "match": {"dscp": 46}, "rule": {"aqm": "drop-tail", "limit": "9p"}},
            {"name": "rest", "rule": {"aqm": "drop-tail", "limit": "9p"}},
        ],
    }
    rest, urgent = (1000, "green", 0, 0, 0, 0, 0), (1000, "green", 46, 0, 0, 0, 0)
    offered = [Offered(0, 1000, rest), Offered(5000, 6000, urgent)]
    # The kernel took the first packet at 7 µs, when the urgent one may have been there or not.
    kernel = passed(7000, 8000)
    followed = decisions.following(block(tree), offered, kernel)
    assert (Differences.between(kernel, followed.passed).packets, followed.tied) == (set(), {0})
    # At 30 µs it was there.
    kernel = passed(30_000, 31_000)
    followed = decisions.following(block(tree), offered, kernel)
    assert len(Differences.between(kernel, followed.passed).turns) == 1


@pytest.mark.parametrize(
    ("first", "second", "differing"),
    [
        ([1, 2, 3, 4], [10, 20, 30, 40], 0),
        ([1, 2, 3, 4], [10, 30, 20, 40], 1),  # two changed places
        ([1, 2, 3, 4], [40, 10, 20, 30], 1),  # one came last
        ([1, None, 3, 4], [20, 10, None, 30], 0),  # what only one of them sent has no turn
        ([4, 3, 2, 1], [10, 20, 30, 40], 3),
        ([], [], 0),
    ],
)
def test_the_fewest_packets_out_of_turn(
    first: list[int | None], second: list[int | None], differing: int
) -> None:
    assert len(decisions.out_of_turn(first, second)) == differing


def test_a_mark_is_a_decision() -> None:
    one, other = passed(1, 2, None), Passed([1, 2, None], [False, True, False], [False, False, True])
    assert Differences.between(one, other) == Differences(set(), {1}, set())


def test_a_queue_without_a_rate_gets_a_shaper_and_a_queue_with_one_stays() -> None:
    text = (EXAMPLES / "witness-tbf.toml").read_text(encoding="utf-8")
    setting = witnessing._setting(reading.canonical(text), "here", None)
    assert (setting.link, setting.queue["burst"], setting.rate) == ("wan", "3kB", "100Mbps")
    bare = text.replace(
        'scheduler = "shaper"\nrate = "10Mbps"\nburst = "3kB"\nqueue = {', "rule = {"
    ).replace("[links.wan.queue]", '[links.wan.queue]\nscheduler = "fifo"')
    setting = witnessing._setting(reading.canonical(bare), "here", None)
    assert (setting.queue["rate"], setting.queue["burst"], setting.rate) == ("100Mbps", "50kB", "200Mbps")
    assert setting.device == "wan"
    assert setting.commands == [
        "tc qdisc add dev wan root handle f000: tbf rate 100mbit burst 50000 limit 50000",
        "tc qdisc add dev wan parent f000:1 handle 1: pfifo limit 20",
    ]


def test_what_no_discipline_of_the_kernel_has_is_refused(perhop: Perhop, tmp_path: Path) -> None:
    text = (EXAMPLES / "witness-tbf.toml").read_text(encoding="utf-8")
    path = tmp_path / "odd.toml"
    path.write_text(text.replace('{ aqm = "drop-tail", limit', '{ aqm = "blue", limit'), encoding="utf-8")
    done = perhop("witness", path)
    assert done.code == 2
    assert "links.wan.queue.queue: tc cannot express blue" in done.err
    path.write_text(text.replace("duration = ", 'meters = 1\nduration = "1s" # '), encoding="utf-8")
    assert perhop("witness", path).code == 2


def test_packets_that_the_kernel_counts_otherwise_make_a_run_invalid() -> None:
    kernel = passed(1, None)
    counted = {"clock_step_ns": 0, "counters": json.dumps([{"root": True, "packets": 1, "drops": 1}, {}])}
    assert witnessing._invalid(kernel, counted) == []
    counted["counters"] = json.dumps([{"root": True, "packets": 2, "drops": 0}])
    assert "2 sent and 0 dropped, but 1 were seen" in witnessing._invalid(kernel, counted)[0]
    counted["clock_step_ns"] = 10**9
    assert len(witnessing._invalid(kernel, counted)) == 2


def test_a_different_decision_gets_its_cause() -> None:
    def row(
        packet: int, came_s: float, kernel_s: float | None, perhop_s: float | None, differs: str
    ) -> dict[str, Any]:
        left = {"kernel_left_s": kernel_s, "perhop_left_s": perhop_s}
        return {"packet": packet, "came_s": came_s, **left, "differs": differs}

    rows = [
        row(0, 0.1, 0.5, 0.500005, "turn"),
        row(1, 0.6, None, 0.9, "fate"),  # perhop holds it until 0.9 s
        row(2, 0.7, 0.8, None, "fate"),
        row(3, 0.1, 0.85, 0.95, "turn"),
        row(4, 0.1, 3.1, 3.2, "turn"),  # since 0.95 s both have held the same packets
    ]
    witnessing._explain(rows)
    assert [one["because"] for one in rows] == [
        "two classes could send within 30 µs",
        "not explained",
        "other packets wait in perhop since 1",
        "other packets wait in perhop since 1",
        "not explained",
    ]


def shortened(name: str, tmp_path: Path) -> Path:
    """An example of two seconds."""
    path = tmp_path / name
    text = (EXAMPLES / name).read_text(encoding="utf-8")
    path.write_text(text.replace('duration = "10s"\nwarmup = "1s"', 'duration = "2s"'), encoding="utf-8")
    return path


@needs_kernel
@pytest.mark.parametrize(("name", "discipline"), [("witness-tbf.toml", "tbf"), ("witness-htb.toml", "htb")])
def test_the_kernel_decides_as_the_block_does(
    name: str, discipline: str, perhop: Perhop, tmp_path: Path
) -> None:
    out, tables = tmp_path / "out", tmp_path / "csv"
    done = perhop("witness", shortened(name, tmp_path), "--json", "-", "--out", out, "--csv", tables)
    report = json.loads(done.out)
    assert done.code == (INVALID if report["invalid"] else 0), done.err
    assert report["discipline"] == discipline
    following = report["decisions"][0]
    assert report["packets"] > 1000
    assert len(report["differing"]) == following["differing"]
    assert {path.name for path in out.iterdir()} >= {"report.html", "samples.parquet", "manifest.json"}
    assert {path.name for path in tables.iterdir()} >= {"decisions.csv", "packets.csv", "columns.csv"}
    if report["invalid"]:
        pytest.skip(f"this run is invalid: {report['invalid']}")
    assert following["dropped_kernel"] > 0
    assert following["alike"] >= SHARE


@needs_kernel
def test_the_packets_of_a_capture_are_sent(perhop: Perhop, tmp_path: Path) -> None:
    path, captured = shortened("witness-tbf.toml", tmp_path), tmp_path / "run.pcapng"
    assert perhop("run", path, "--runs", "1", "--capture", captured).code == 0
    found = asked_of_kernel(path, arrivals=EXAMPLES / "capture.pcap")
    assert found.packets.height > 0
    if not found.valid:
        pytest.skip(f"this run is invalid: {found.report['invalid']}")
    assert found.alike >= SHARE


@needs_kernel
def test_a_discipline_that_the_kernel_lacks_is_named() -> None:
    request = {"device": "wan", "at_ns": [0], "size": [100], "dscp": [0], "ecn": [0], "flow": [0]}
    commands = ["tc qdisc add dev wan root handle 1: nonesuch"]
    with pytest.raises((_engine.LiveUnavailable, PerhopError), match="nonesuch"):
        laboratory.ask({"kernel_queue": {**request, "commands": commands}}, None)
