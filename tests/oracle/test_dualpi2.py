"""DualPI2's promises (`dualpi2.py`): some here; all in the test marked `long` and in docs/project."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.oracle import dualpi2
from tests.oracle.agreement import Agreement, simulate
from tools import validity

if TYPE_CHECKING:
    from collections.abc import Iterable

SEEDS = (1, 2)
TOO_SLOW = ("4 Mbit/s, 5 to 100 ms", "12 Mbit/s, 5 to 100 ms, 5 flows of each")
"""Where packets take longer than the promise allows: its rows differ there."""
TOO_FEW = "40 Mbit/s, 10 ms, 5 flows of each, no target"
"""Where a third of the packets are marked and CUBIC's windows have seven segments, the law is 3 % off."""


def differing(found: Iterable[Agreement]) -> list[str]:
    return [
        f"{one.setting}, {one.quantity}: {one.ours.text(4)} beside {one.theirs.text(4)}"
        for one in found
        if one.state == "differs"
    ]


@pytest.mark.parametrize("rate", [12, 200])
def test_l4s_packets_wait_a_millisecond_beside_cubic(rate: int) -> None:
    found = list(dualpi2.waits(rate, 1, SEEDS, round_trips=(5, 50)))
    assert len(found) == 3
    assert not differing(found)


def test_at_4_mbit_a_packet_of_3_ms_breaks_the_promise() -> None:
    median, p99, share = dualpi2.waits(4, 1, SEEDS, round_trips=(10,))
    assert (median.state, p99.state, share.state) == ("differs", "differs", "agrees")
    # An L4S packet waits for the packet in transmission, and at times for one more.
    assert 1.2 < median.ours.mean < 3
    assert 3 < p99.ours.mean < 6


def test_marks_are_twice_the_root_of_drops() -> None:
    found = dualpi2.coupling(dualpi2.Law(120, 10, 10, 0.0), SEEDS)
    assert found.state == "agrees", found.ours.text(4)


@pytest.mark.parametrize(("rtt", "target"), [(20, 0.0), (50, 0.0), (10, dualpi2.PRAGUE_TARGET_S)])
def test_prague_and_cubic_share_by_the_coupling_law(rtt: int, target: float) -> None:
    case = dualpi2.Law(40, rtt, 5, target)
    assert case in dualpi2.law_cases()
    found = dualpi2.rates(case, SEEDS)
    assert found.state == "agrees", f"{found.ours.text(4)} beside {found.theirs.text(4)}"


def test_another_coupling_is_noticed() -> None:
    """With k = 1 Prague gets more than the law of k = 2 allows."""
    found = dualpi2.rates(dualpi2.Law(40, 20, 5, 0.0), SEEDS, k=1)
    assert found.state == "differs"
    assert found.ours.mean > found.theirs.mean


def test_the_law_by_hand() -> None:
    """One flow of each, 12 Mbit/s, 50 ms: 1000 segments/s, and p' of 3.72 % with even marks."""
    case = dualpi2.Law(12, 50, 1, 0.0)
    found = case.solve("even")
    # Prague: 2 (1 - 2 p') / (2 p') segments each 50 ms; CUBIC: sqrt(1.5) / p' each 65 ms.
    p = found.p
    assert found.prague_rate == pytest.approx((1 - 2 * p) / p / 0.05)
    assert found.cubic_rate == pytest.approx(1.224744871391589 / p / 0.065)
    assert found.prague_rate + found.cubic_rate == pytest.approx(1000, rel=1e-6)
    assert p == pytest.approx(0.0373, abs=5e-5)
    # Marks at random: x^2 = 2 (1 - 2 p') (x + 1).
    random = case.solve("random")
    x = random.prague * 2 * random.p
    assert x**2 == pytest.approx(2 * (1 - 2 * random.p) * (x + 1))


def test_both_queues_lose_alike_in_overload() -> None:
    assert not differing(dualpi2.overload(SEEDS))


@pytest.mark.parametrize(
    "queue",
    [
        *(
            {"order": order, "overload": reaction}
            for order in dualpi2.ORDERS
            for reaction in ("drop", "overflow")
        ),
        {"law": "linux"},
        {"law": "linux", "overload": "overflow"},
    ],
    ids=lambda queue: " ".join(queue.values()),
)
@pytest.mark.parametrize(("l4s", "classic"), [(80, 2), (2, 80), (44, 10), (200, 200)])
def test_overload_starves_no_queue(queue: dict[str, Any], l4s: int, classic: int) -> None:
    """In each class what came was sent, dropped or waits, and most of what equal losses leave is sent."""
    described = {**dualpi2.unresponsive(40, l4s, classic, queue), "duration": "10s", "warmup": "3s"}
    [run] = simulate(described, [1])
    for one, came in zip(run["links"][0]["classes"], (l4s, classic), strict=True):
        left = one["arrived_whole_run"] - one["sent_whole_run"] - one["dropped_whole_run"]
        assert left == one["waiting_packets"] >= 0
        # With `overflow` the full queue drops whatever comes, and the classic queue loses p'^2 besides.
        least = 40 * came / (l4s + classic) * (0.25 if queue.get("overload") == "overflow" else 0.75)
        assert one["sent_packets"] * 12_000 / 7 >= least * 1e6, one["name"]


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_every_promise() -> None:
    found = list(dualpi2.all_of_dualpi2(range(1, 5)))
    assert {one.setting for one in found} == {row["setting"] for row in kept()}
    assert not [text for text in differing(found) if not text.startswith((*TOO_SLOW, TOO_FEW))]


def test_what_is_kept_differs_where_that_is_explained() -> None:
    wrong = [row["setting"] for row in kept() if row["state"] == "differs"]
    assert wrong
    assert all(setting.startswith((*TOO_SLOW, TOO_FEW)) for setting in wrong)
    assert {case.name for case in dualpi2.law_cases()} <= {row["setting"] for row in kept()}


def kept() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(validity.DATA.read_text(encoding="utf-8"))["dualpi2"]["rows"]
    return rows
