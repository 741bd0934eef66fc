"""Completion times of finite TCP flows by size against those of ns-2, on the same arrivals."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest
from tests.oracle import finite, recorded
from tests.oracle.agreement import compared, simulate

OVERSHOOT = {
    "SACK, drop-tail": {f"mean of {size} kB, ms" for size in (100, 500)} | {"95th percentile, ms"},
}
"""Where ns-2's SACK takes longer, since its pipe keeps lost packets."""


@functools.cache
def perhop_runs(setting: finite.Setting) -> list[dict[str, float]]:
    """Each quantity for each seed in perhop."""
    runs = simulate(functools.partial(finite.perhop_scenario, setting), recorded.SEEDS)
    return [finite.perhop_run(setting, seed, run) for seed, run in zip(recorded.SEEDS, runs, strict=True)]


def differing(ours: list[dict[str, float]], theirs: list[dict[str, float]]) -> set[str]:
    """The quantities that differ by more than their margin."""
    return {
        quantity
        for quantity in theirs[0]
        if compared(
            "ns-2",
            "",
            quantity,
            ours=[run[quantity] for run in ours],
            theirs=[run[quantity] for run in theirs],
            margin=finite.margin(quantity),
            paired=True,
        ).state
        == "differs"
        and (quantity != finite.LOSS or max(run[quantity] for run in theirs) > finite.NEGLIGIBLE)
    }


@pytest.mark.parametrize("name", finite.SETTINGS)
def test_completion_times_agree(name: str) -> None:
    ours, theirs = perhop_runs(finite.SETTINGS[name]), recorded.rates(recorded.FINITE + name)
    assert differing(ours, theirs) <= OVERSHOOT.get(name, set())
    assert {run["unfinished"] for run in (*ours, *theirs)} == {0.0}


@pytest.mark.parametrize("tcp", ["NewReno", "SACK"])
def test_without_overshoot_each_size_agrees_to_a_hundredth(tcp: str) -> None:
    name = f"{tcp}, drop-tail, window of 32"
    ours, theirs = perhop_runs(finite.SETTINGS[name]), recorded.rates(recorded.FINITE + name)
    for size in finite.SIZES:
        means = [np.mean([run[f"mean of {size} kB, ms"] for run in runs]) for runs in (ours, theirs)]
        assert means[0] == pytest.approx(means[1], rel=0.015), f"{size} kB"


def test_long_transfers_with_sack_take_longer_in_ns2_where_slow_start_overshoots() -> None:
    name, quantity = "SACK, drop-tail", "mean of 500 kB, ms"
    pairs = zip(perhop_runs(finite.SETTINGS[name]), recorded.rates(recorded.FINITE + name), strict=True)
    ratios = [own[quantity] / theirs[quantity] for own, theirs in pairs]
    assert 0.75 < np.mean(ratios) < 0.95


def test_the_comparison_can_fail() -> None:
    """A first window of three packets in place of two saves transfers of 20 kB a round trip."""
    name = "NewReno, drop-tail, window of 32"
    setting = finite.SETTINGS[name]

    def larger(seed: int) -> dict[str, object]:
        described = finite.perhop_scenario(setting, seed)
        for one in described["flows"]:
            one["transport"]["initial-window"] = "3p"
        return described

    runs = simulate(larger, recorded.SEEDS)
    ours = [finite.perhop_run(setting, seed, run) for seed, run in zip(recorded.SEEDS, runs, strict=True)]
    theirs = recorded.rates(recorded.FINITE + name)
    assert {"mean of 20 kB, ms", "median, ms"} <= differing(ours, theirs)
    # And so is a round trip that is a fifth longer.
    longer = perhop_runs(replace(setting, delay=0.0244))
    assert {f"mean of {size} kB, ms" for size in (5, 20, 500)} <= differing(longer, theirs)
