"""An AQM that cannot act says so: its queue is too short for its target or its thresholds."""

import json
import warnings
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import perhop
from perhop import _engine

PACKET = 1500 * 8

# Thresholds in packets, or a target in seconds; the queue is drawn around them.
BY_LENGTH = {
    "red": ["thresholds"],
    "rio": ["in", "total"],
    "rio-plus-out": ["in", "total", "out"],
    "rio-three": ["in", "out-in", "out-out"],
    "inverse-rate": ["in", "total"],
    "abe": ["thresholds"],
    "wred": ["yellow"],
}
BY_DELAY = {"codel": 0.005, "pie": 0.015, "pi2": 0.015, "cobalt": 0.005}
OTHERS = {
    "drop-tail": "has no rule besides its limit",
    "blue": "begins with overflows",
    "dwred": "has thresholds that follow its path's windows",
    "python": "is a class of the user",
}


def overloaded(
    queue: dict[str, Any], rate: int, seconds: float = 1.5, load: float = 1.5
) -> tuple[dict[str, int], list[str]]:
    """Drops by reason under so many times the rate of the link, and what the engine says of the queue."""
    flow = {"udp": "cbr", "rate": f"{round(rate * load)}bps", "packet": "1500B"}
    scenario = {
        "duration": f"{seconds}s",
        "links": {"l": {"from": "a", "to": "b", "rate": f"{rate}bps", "delay": "1ms", "queue": queue}},
        "flows": [{"name": "f", "from": "a", "to": "b", "start": "0s", "transport": flow}],
    }
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        result = perhop.run(scenario, runs=1)
    reasons = result.drops.select("reason", "packets").group_by("reason").sum().iter_rows()
    return dict(reasons), [str(one.message) for one in said]


def early(reasons: dict[str, int]) -> int:
    return sum(packets for reason, packets in reasons.items() if reason != "overflow")


def test_every_aqm_is_tried_or_has_its_reason() -> None:
    names = {block["name"] for block in json.loads(_engine.blocks()) if block["role"] == "aqm"}
    assert names == {*BY_LENGTH, *BY_DELAY, *OTHERS}


@pytest.mark.parametrize("aqm", BY_LENGTH)
@settings(max_examples=6, deadline=None)
@given(low=st.integers(8, 60), times=st.sampled_from([0.5, 1.0, 1.5, 3.0]))
def test_thresholds_above_the_limit_are_said(aqm: str, low: int, times: float) -> None:
    limit = max(2, round(low * times))
    keys = dict.fromkeys(BY_LENGTH[aqm], f"{low}/{2 * low}/0.5")
    reasons, said = overloaded(
        {"aqm": aqm, **keys, "limit": f"{limit}p", "weight": 0.02, "wait": False}, 20_000_000
    )
    assert (early(reasons) == 0) == any("these thresholds drop nothing" in text for text in said)


@pytest.mark.parametrize("aqm", BY_DELAY)
@settings(max_examples=8, deadline=None)
@given(rate=st.sampled_from([10_000_000, 60_000_000]), times=st.sampled_from([0.3, 0.8, 1.5, 4]))
def test_a_target_that_the_limit_keeps_out_of_reach_is_said(aqm: str, rate: int, times: float) -> None:
    target = BY_DELAY[aqm]
    packets = max(2, int(times * target * rate / PACKET))
    # PIE forgets the probabilities of earlier packets at each overflow, so these must be far apart.
    reasons, said = overloaded({"aqm": aqm, "limit": f"{packets}p"}, rate, 10.0, 1.01)
    longest = (packets + 1) * PACKET / rate
    assert (longest < target) == any("queue.target" in text for text in said), said
    if any("none is dropped that the queue has room for" in text for text in said):
        assert early(reasons) == 0
    if longest > target:
        assert early(reasons) > 0


@pytest.mark.parametrize("aqm", BY_DELAY)
@pytest.mark.parametrize("rate", [100_000, 10_000_000, 1_000_000_000, 10_000_000_000])
def test_default_limits_leave_room_for_the_target(aqm: str, rate: int) -> None:
    seconds = max(0.01, 20 * PACKET / rate) if rate < 1e9 else 0.02
    said = overloaded({"aqm": aqm}, rate, seconds)[1]
    # At 100 kbit/s a packet takes 120 ms: the target, not the limit, is what cannot be.
    wanted = "a packet of 1.5kB takes 120ms to leave at 100kbps" if rate == 100_000 else ""
    assert [wanted in text for text in said] == ([True] if wanted else [])


def test_pie_at_a_gigabit_acts_by_default_and_says_so_with_1000_packets() -> None:
    """1000 packets of 1500 bytes are sent in 12 ms, below the target of 15 ms: nearly drop-tail then."""
    reasons, said = overloaded({"aqm": "pie"}, 1_000_000_000, 1.0)
    assert early(reasons) > 1000
    assert said == []
    _, said = overloaded({"aqm": "pie", "limit": "1000p"}, 1_000_000_000, 1.0)
    assert ["queue.target" in text and "12.012ms" in text for text in said] == [True]


@pytest.mark.parametrize(
    ("queue", "key"),
    [
        # 31 packets of 1500 bytes: 3.7 ms at 100 Mbit/s, below CoDel's 5 ms; 37 ms at 10 Mbit/s.
        ({"scheduler": "fifo", "rule": {"aqm": "codel", "limit": "30p"}}, "queue.rule.target"),
        (
            {
                "scheduler": "shaper",
                "burst": "3kB",
                "rate": "90Mbps",
                "queue": {"aqm": "codel", "limit": "30p"},
            },
            "queue.queue.target",
        ),
        (
            {
                "scheduler": "shaper",
                "burst": "3kB",
                "rate": "10Mbps",
                "queue": {"aqm": "codel", "limit": "30p"},
            },
            None,
        ),
        ({"scheduler": "fq-codel", "limit": "30p"}, "queue.target"),
        (
            {
                "scheduler": "shaper",
                "burst": "3kB",
                "rate": "10Mbps",
                "queue": {"scheduler": "fq-codel", "limit": "30p"},
            },
            None,
        ),
        ({"scheduler": "dualpi2", "limit": "30p"}, "queue.target"),
    ],
)
def test_the_rate_is_that_at_which_the_queue_is_served(queue: dict[str, Any], key: str | None) -> None:
    _, said = overloaded(queue, 100_000_000, 0.01)
    assert [key is not None and key in text for text in said if "target" in text] == ([True] if key else [])


def shared(*shares: dict[str, Any], scheduler: str = "wfq") -> dict[str, Any]:
    """Two queues of 30 packets under CoDel; the first is for AF11, which no flow has."""
    rule = {"aqm": "codel", "limit": "30p"}
    first, second = shares
    queues = [
        {"name": "first", "match": {"dscp": "AF11"}, "rule": rule, **first},
        {"name": "rest", "rule": rule, **second},
    ]
    return {"scheduler": scheduler, "queues": queues}


@pytest.mark.parametrize(
    ("queue", "unreachable"),
    [
        # At 90 Mbit/s 31 packets are sent in 4.1 ms, at 10 Mbit/s in 37 ms.
        (shared({"weight": 9}, {"weight": 1}), ["queues[0].rule.target"]),
        (shared({"weight": 1}, {"weight": 9}, scheduler="drr"), ["queues[1].rule.target"]),
        # Packets of the second queue wait as long as the first has some.
        (shared({}, {}, scheduler="priority"), ["queues[0].rule.target"]),
    ],
)
def test_a_queue_beside_others_counts_with_what_it_gets_at_least(
    queue: dict[str, Any], unreachable: list[str]
) -> None:
    _, said = overloaded(queue, 100_000_000, 0.01)
    assert [text.split("queue.", 1)[1].split(":")[0] for text in said if ".target" in text] == unreachable


def test_a_link_without_a_queue_is_measured() -> None:
    """Packets wait there without a limit: with 1.5 times its rate for 2 s, 10 Mbit wait at the end."""
    flow = {"udp": "cbr", "rate": "15Mbps", "packet": "1500B"}
    scenario = {
        "duration": "2s",
        "links": {
            "l": {"from": "a", "to": "b", "rate": "10Mbps", "delay": "1ms", "reverse": {"rate": "1Mbps"}}
        },
        "flows": [{"name": "f", "from": "a", "to": "b", "start": "0s", "transport": flow}],
    }
    links = perhop.run(scenario, runs=1).links
    assert links["link"].to_list() == ["l", "l (reverse)"]
    assert links["dropped_packets"].to_list() == [0, 0]
    assert links["utilization"][0] == pytest.approx(1.0, abs=1e-3)
    assert links["waiting_packets"][0] == pytest.approx(10e6 / PACKET, abs=3)
    assert links["delay_max_s"][0] == pytest.approx(
        2 / 3, abs=2e-3
    )  # half a second for each second until 4/3 s
