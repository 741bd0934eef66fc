"""The histogram of the one-way delays of a class: each packet once, whatever flows and engine are."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

import perhop
from perhop.measures import fairness

SCENARIO = """
duration = "12s"
warmup = "2s"
[links.a]
from = "x"
to = "y"
rate = "2Mbps"
delay = "10ms"
queue = { aqm = "drop-tail", limit = "20p" }
[[flows]]
name = "one"
from = "x"
to = "y"
transport = { udp = "on-off", rate = "800kbps", packet = "500B", on = "200ms", off = "100ms" }
[[flows]]
name = "voices"
count = 5
from = "x"
to = "y"
application = { model = "call" }
[[flows]]
name = "come"
from = "x"
to = "y"
transport = { udp = "cbr", rate = "300kbps", packet = "500B" }
arrivals = { rate = "3/s" }
sizes = { constant = "20kB" }
[[flows]]
name = "rap"
from = "x"
to = "y"
transport = { rap = "aimd" }
[[flows]]
name = "tcp"
from = "x"
to = "y"
transport = { tcp = "newreno" }
[[flows]]
name = "asks"
from = "x"
to = "y"
transport = { tcp = "linux" }
application = { model = "request-response" }
"""


@pytest.mark.parametrize("engine", ["batched", "reference"])
def test_the_delays_of_a_class_are_those_of_all_its_packets(engine: Literal["batched", "reference"]) -> None:
    raw = perhop.run(SCENARIO, runs=1, engine=engine).runs[0].raw
    flows, groups = raw["flows"], {group["name"]: group for group in raw["groups"]}
    names = {"one", "voices", "voices (reverse)", "come", "rap"}
    for number, (name, group) in enumerate(groups.items()):
        place = flows["group"] == number
        if name in names:
            bins = group["transit_s"]
            assert bins["counts"].sum() == flows["delivered_packets"][place].sum() > 500
            assert bins["counts"].shape == bins["longest"].shape == (len(bins["edges"]) - 1,)
            assert bins["counts"][0] > 0 < bins["counts"][-1]
            inside = (bins["longest"] >= bins["edges"][:-1]) & (bins["longest"] < bins["edges"][1:])
            assert (inside == (bins["counts"] > 0)).all()
        else:
            assert group["transit_s"] is None, name
    for name in ("one", "come", "rap"):
        (p99,) = flows["one_way_delay_p99_s"][flows["group"] == list(groups).index(name)]
        bins = groups[name]["transit_s"]
        assert p99 == fairness.histogram_quantile(
            bins["edges"].tolist(), bins["counts"].tolist(), 0.99, bins["longest"].tolist()
        )
    voices = groups["voices"]["transit_s"]
    assert voices["longest"].max() <= 10e-3 + 20 * 1540 * 8 / 2e6
    own = flows["one_way_delay_p99_s"][flows["group"] == list(groups).index("voices")]
    p99 = np.quantile(np.repeat(voices["longest"], voices["counts"]), 0.99)
    assert own.min() <= p99 <= own.max()


def test_nothing_arrives() -> None:
    scenario = SCENARIO.partition('[[flows]]\nname = "voices"')[0] + 'start = "11.999s"\n'
    bins = perhop.run(scenario, runs=1).runs[0].raw["groups"][0]["transit_s"]
    assert [len(bins[name]) for name in ("edges", "counts", "longest")] == [1, 0, 0]
