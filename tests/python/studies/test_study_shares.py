"""Shares in the evidence of studies: of the packets of all runs together, and bounded where none was lost."""

from __future__ import annotations

import pytest

from perhop.judging import below
from perhop.study import Evidence, Sample


def evidence(*shares: tuple[float, float], unit: str = "fraction") -> Evidence:
    samples = [(seed, Sample({}, "loss", unit, *share)) for seed, share in enumerate(shares)]
    return Evidence(samples, [])


def test_no_loss_in_the_runs_of_a_cell_is_a_bound() -> None:
    found = evidence(*[(0.0, 1000.0)] * 6).estimate("loss", {})
    assert found.ci95 == pytest.approx((0.0, 1 - 0.025 ** (1 / 6000)))
    assert below(found, 0.0001).holds is None
    assert below(found, 0.001).holds is True


def test_a_share_is_of_all_packets_whatever_its_unit() -> None:
    assert evidence((0.1, 300.0), (0.4, 100.0)).mean("loss", {}) == pytest.approx(0.175)
    assert evidence((10.0, 300.0), (40.0, 100.0), unit="%").mean("loss", {}) == pytest.approx(17.5)
