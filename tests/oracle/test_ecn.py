"""TCP with ECN over RED that marks, against ns-2's own: throughput, utilization, marks, drops, reductions.

Each mean over the seeds must lie within the quantity's margin, or the two 95 % intervals must overlap.
`ecn.py` lists what ns-2's senders do differently; what follows from that is expected by name.
"""

from __future__ import annotations

import functools
from dataclasses import replace

import pytest
from tests.oracle import ecn, recorded
from tests.oracle.agreement import simulate

from perhop.statistics.intervals import Estimate, estimate

MORE_IN_NS2 = {
    ("NewReno, forty flows", "reductions of a flow"),
    ("SACK, forty flows", "reductions of a flow"),
}
"""ns-2's retransmissions can be marked: its senders reduce more often where many packets are lost."""


def ns2_runs(name: str) -> dict[str, Estimate]:
    """Each quantity's mean over the seeds in ns-2."""
    return _estimates(recorded.rates(recorded.ECN + name))


@functools.cache
def perhop_runs(setting: ecn.Setting) -> dict[str, Estimate]:
    """The estimates of perhop's runs."""
    runs = simulate(functools.partial(ecn.perhop_scenario, setting), recorded.SEEDS)
    return _estimates([ecn.perhop_run(setting, run) for run in runs])


def _estimates(runs: list[dict[str, float]]) -> dict[str, Estimate]:
    return {quantity: estimate([found[quantity] for found in runs]) for quantity in runs[0]}


def apart(quantity: str, ours: Estimate, theirs: Estimate) -> bool:
    """By more than the margin, with intervals that do not overlap; a negligible share is as good as none."""
    if quantity.endswith("%") and max(ours.mean, theirs.mean) < ecn.NEGLIGIBLE:
        return False
    overlap = ours.low <= theirs.high and theirs.low <= ours.high
    return not overlap and abs(ours.mean - theirs.mean) > ecn.MARGINS[quantity] * theirs.mean


@pytest.mark.parametrize("name", ecn.SETTINGS)
def test_each_quantity_agrees(name: str) -> None:
    ours, theirs = perhop_runs(ecn.SETTINGS[name]), ns2_runs(name)
    wrong = [
        f"{quantity}: perhop {ours[quantity].mean:.4g}, ns-2 {theirs[quantity].mean:.4g}"
        for quantity in theirs
        if (name, quantity) not in MORE_IN_NS2 and apart(quantity, ours[quantity], theirs[quantity])
    ]
    assert not wrong, f"{name}: {'; '.join(wrong)}"


@pytest.mark.parametrize(("name", "quantity"), sorted(MORE_IN_NS2))
def test_senders_of_ns2_reduce_for_marked_retransmissions(name: str, quantity: str) -> None:
    ours, theirs = perhop_runs(ecn.SETTINGS[name])[quantity], ns2_runs(name)[quantity]
    assert 0.8 < ours.mean / theirs.mean < 0.95
    assert ours.high < theirs.low


def test_marks_replace_drops() -> None:
    """With few flows every early drop becomes a mark, and as many packets meet congestion as without ECN."""
    name = "NewReno, ten flows"
    capable = perhop_runs(ecn.SETTINGS[name])
    other = perhop_runs(ecn.SETTINGS[f"{name}, without ECN"])
    assert ns2_runs(name)["dropped, %"].mean == 0
    assert capable["dropped, %"].mean < ecn.NEGLIGIBLE
    assert capable["marked, %"].mean == pytest.approx(other["dropped, %"].mean, rel=0.15)


def test_the_comparison_can_fail() -> None:
    """Half the probability of a mark is detected."""
    name, quantity = "SACK, ten flows", "marked, %"
    ours = perhop_runs(replace(ecn.SETTINGS[name], thresholds="30/90/0.1"))[quantity]
    assert apart(quantity, ours, ns2_runs(name)[quantity])
