"""Measures: what is measured of a run, declared once; and formulas of fairness over a run's flows."""

from __future__ import annotations

from perhop.measures.fairness import (
    differentiation,
    differentiation_by_rtt,
    fairness_by_rtt,
    jain_index,
    reservation_success,
    rmse,
    subscription,
    targets,
    utilization,
)

__all__ = [
    "differentiation",
    "differentiation_by_rtt",
    "fairness_by_rtt",
    "jain_index",
    "reservation_success",
    "rmse",
    "subscription",
    "targets",
    "utilization",
]
