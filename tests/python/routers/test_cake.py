"""CAKE's times, which depend on the rate of its shaper."""

from __future__ import annotations

import pytest
from tests.python.routers.importing import of_text

TC = "tc qdisc add dev eth0 root cake bandwidth {rate}\n"
VYOS = """set qos interface eth0 egress C
set qos policy cake C bandwidth {rate}
"""
ROUTEROS = """/queue type
add kind=cake name=c cake-bandwidth={rate}
/queue interface
set ether1 queue=c
"""


@pytest.mark.parametrize(
    ("text", "slow", "fast"), [(TC, "1mbit", "50mbit"), (VYOS, "1mbit", "50mbit"), (ROUTEROS, "1M", "50M")]
)
def test_a_slow_shaper_has_a_target_of_one_and_a_half_frames(text: str, slow: str, fast: str) -> None:
    # Linux, net/sched/sch_cake.c, cake_set_rate: 1514 bytes take 12.112 ms at 1 Mbit/s.
    queue = of_text(text.format(rate=slow), link_rate=1e9, lenient=True).link["queue"]["queue"]
    assert (queue["target"], queue["interval"]) == ("18.168ms", "113.168ms")
    queue = of_text(text.format(rate=fast), link_rate=1e9, lenient=True).link["queue"]["queue"]
    assert (queue["target"], queue["interval"]) == ("5ms", "100ms")


def test_the_interval_is_at_least_two_targets() -> None:
    text = TC.format(rate="1mbit lan")
    queue = of_text(text, link_rate=1e9).link["queue"]["queue"]
    assert (queue["target"], queue["interval"]) == ("18.168ms", "36.336ms")


def test_a_cake_within_a_shaper_does_not_know_its_rate() -> None:
    text = "tc qdisc add dev eth0 root handle 1: tbf rate 1mbit burst 10k latency 50ms\n"
    text += "tc qdisc add dev eth0 parent 1:1 cake\n"
    assert of_text(text).link["queue"]["target"] == "5ms"
