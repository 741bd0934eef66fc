"""perhop's RAP against ns-2's own agent, alone and beside NewReno, over drop-tail and RED.

Each mean over the seeds must differ by no more than 5 %, or the two 95 % intervals must overlap: RAP's
always, NewReno's where it shares the link. `rap.py` lists what ns-2's queues and agents do differently.
"""

from __future__ import annotations

import functools
from dataclasses import replace

import pytest
from tests.oracle import ns2, rap
from tests.oracle.agreement import simulate
from tests.oracle.peers import rap_rates

from perhop.statistics import Estimate, estimate

MISSING = ns2.available()
pytestmark = pytest.mark.skipif(MISSING is not None, reason=MISSING or "")

SEEDS = range(1, 5)


def perhop_rates(setting: rap.Setting, seed: int) -> dict[str, float]:
    """Mean rate of the flows of each kind in perhop, Mbit/s."""
    [run] = simulate(rap.perhop_scenario(setting, seed), [seed])
    return rap_rates(run, setting)


@functools.cache
def rates(program: str, setting: rap.Setting) -> dict[str, Estimate]:
    """Each kind's mean rate over the seeds."""
    run = {"ns-2": rap.ns2_rates, "perhop": perhop_rates}[program]
    runs = [run(setting, seed) for seed in SEEDS]
    return {kind: estimate([found[kind] for found in runs]) for kind in runs[0]}


def apart(ours: Estimate, theirs: Estimate) -> bool:
    """By more than 5 %, and with intervals that do not overlap."""
    overlap = ours.low <= theirs.high and theirs.low <= ours.high
    return not overlap and abs(ours.mean / theirs.mean - 1) > 0.05


@pytest.mark.parametrize("name", rap.SETTINGS)
def test_each_kind_agrees(name: str) -> None:
    setting = rap.SETTINGS[name]
    ours, theirs = (rates(program, setting) for program in ("perhop", "ns-2"))
    wrong = [
        f"{kind}: perhop {ours[kind].mean:.3f}, ns-2 {theirs[kind].mean:.3f} Mbit/s"
        for kind in theirs
        if apart(ours[kind], theirs[kind])
    ]
    assert not wrong, f"{name}: {'; '.join(wrong)}"


def test_rap_itself_agrees_within_five_per_cent_everywhere() -> None:
    for name, setting in rap.SETTINGS.items():
        ratio = rates("perhop", setting)["rap"].mean / rates("ns-2", setting)["rap"].mean
        assert abs(ratio - 1) < 0.05, f"{name}: {ratio:.3f}"


def test_the_comparison_can_fail() -> None:
    """ns-2's `Queue/RED` spares a queue of one packet; without that rule RAP gets over a tenth less."""
    setting = rap.SETTINGS["five flows, Queue/RED"]
    ours = rates("perhop", replace(setting, spare=False))["rap"]
    assert apart(ours, rates("ns-2", setting)["rap"])
