"""perhop against ns-2's own DiffServ module: the RI+O paper's Table 1 setting, others that stress it, TSW.

Each class's mean over the seeds must differ by no more than 5 %, or the two 95 % intervals must overlap. ns-2
is a peer: `README.md` lists what its queue and its TCP do differently and by how much it matters.
"""

from __future__ import annotations

import functools
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from tests.oracle import ns2
from tests.oracle.scenario import perhop_scenario

from perhop import _engine
from perhop.statistics import Estimate, estimate

MISSING = ns2.available()
pytestmark = pytest.mark.skipif(MISSING is not None, reason=MISSING or "")

SEEDS = range(1, 7)
SETTINGS = {
    "table 1": ns2.Ns2Setting(),
    "table 1 after its first 20 s": replace(ns2.Ns2Setting(), warmup_s=20.0),
    "window-limited": replace(ns2.Ns2Setting(), window_packets=20),
    "1500-byte packets": replace(ns2.Ns2Setting(), packet_bytes=1500),
    "Reno, no handshake, initial window 1": replace(
        ns2.Ns2Setting(),
        tcp="Reno",
        handshake=False,
        delay_growth=False,
        initial_window=1,
        limited_transmit=False,
    ),
    # Timeouts rule here: about fifty for each flow.
    "tight thresholds": replace(ns2.Ns2Setting(), total_thresholds=ns2.Thresholds(10, 30, 0.01)),
    # A few flows on a plain queue: the senders' recovery decides alone.
    "one flow, drop-tail": replace(
        ns2.Ns2Setting(),
        groups=(ns2.Group(1, 0.0),),
        rate_bps=10e6,
        total_thresholds=ns2.Thresholds(1000, 1001, 0.01),
        limit_packets=100,
    ),
    "five flows, drop-tail, delayed ACKs": replace(
        ns2.Ns2Setting(),
        groups=(ns2.Group(5, 0.0),),
        rate_bps=10e6,
        total_thresholds=ns2.Thresholds(1000, 1001, 0.01),
        limit_packets=100,
        delayed_ack_s=0.1,
    ),
    "SACK": replace(ns2.Ns2Setting(), tcp="Sack1"),
    "SACK, tight thresholds": replace(
        ns2.Ns2Setting(), tcp="Sack1", total_thresholds=ns2.Thresholds(10, 30, 0.01)
    ),
    "SACK, one flow, drop-tail": replace(
        ns2.Ns2Setting(),
        tcp="Sack1",
        groups=(ns2.Group(1, 0.0),),
        rate_bps=10e6,
        total_thresholds=ns2.Thresholds(1000, 1001, 0.01),
        limit_packets=100,
    ),
    "SACK, five flows, drop-tail, delayed ACKs": replace(
        ns2.Ns2Setting(),
        tcp="Sack1",
        groups=(ns2.Group(5, 0.0),),
        rate_bps=10e6,
        total_thresholds=ns2.Thresholds(1000, 1001, 0.01),
        limit_packets=100,
        delayed_ack_s=0.1,
    ),
    "NewReno of 1998": ns2.NS_1998,
    "NewReno of 1998, window 100": replace(ns2.NS_1998, window_packets=100),
    "NewReno of 1998, window 100, tight thresholds": replace(
        ns2.NS_1998, window_packets=100, total_thresholds=ns2.Thresholds(10, 30, 0.01)
    ),
    "slow-but-steady, tight thresholds": replace(
        ns2.Ns2Setting(), impatient=False, total_thresholds=ns2.Thresholds(10, 30, 0.01)
    ),
    "deflation to ssthresh, one flow, drop-tail": replace(
        ns2.Ns2Setting(),
        groups=(ns2.Group(1, 0.0),),
        rate_bps=10e6,
        total_thresholds=ns2.Thresholds(1000, 1001, 0.01),
        limit_packets=100,
        impatient=False,
        deflates=False,
    ),
    "Yeom and Reddy, 60 %": ns2.YEOM,
    "Yeom and Reddy, 90 %": replace(ns2.YEOM, rate_bps=8e6),
}


@functools.cache
def ns2_rates(name: str) -> npt.NDArray[np.float64]:
    """Mbit/s for each seed (rows) and class (columns), as ns-2 measures it."""
    runs = ns2.run_seeds(SETTINGS[name], list(SEEDS))
    return np.array([run.class_mbps for run in runs])


@functools.cache
def perhop_rates(name: str) -> npt.NDArray[np.float64]:
    """The same from perhop: acknowledged bytes on the wire."""
    scenario = _engine.scenario_from_json(json.dumps(perhop_scenario(SETTINGS[name])), name)

    def one(seed: int) -> list[float]:
        result = _engine.simulate(scenario, seed)
        flows = result["flows"]
        return [
            float(flows["acked_bps"][flows["group"] == group].mean()) / 1e6
            for group in range(len(result["groups"]))
        ]

    with ThreadPoolExecutor(2) as pool:
        return np.array(list(pool.map(one, SEEDS)))


def agree(ours: Estimate, theirs: Estimate) -> bool:
    """Within 5 %, or with overlapping 95 % intervals."""
    assert ours.ci95 is not None
    assert theirs.ci95 is not None
    overlap = ours.ci95[0] <= theirs.ci95[1] and theirs.ci95[0] <= ours.ci95[1]
    return overlap or abs(ours.mean / theirs.mean - 1) <= 0.05


@pytest.mark.parametrize("name", SETTINGS)
def test_each_class_agrees(name: str) -> None:
    ours = [estimate(list(column)) for column in perhop_rates(name).T]
    theirs = [estimate(list(column)) for column in ns2_rates(name).T]
    apart = [
        f"class {index}: perhop {mine.mean:.3f}, ns-2 {peer.mean:.3f} Mbit/s"
        for index, (mine, peer) in enumerate(zip(ours, theirs, strict=True))
        if not agree(mine, peer)
    ]
    assert not apart, f"{name}: {'; '.join(apart)}"


def test_the_comparison_can_fail() -> None:
    """Another queue is told apart: the test has the power to see a wrong one."""
    ours = [estimate(list(column)) for column in perhop_rates("1500-byte packets").T]
    theirs = [estimate(list(column)) for column in ns2_rates("table 1").T]
    assert not all(agree(mine, peer) for mine, peer in zip(ours, theirs, strict=True))
