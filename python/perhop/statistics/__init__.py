"""Statistics: means and intervals over independent runs, comparisons, and judgements of claims."""

from __future__ import annotations

from perhop.statistics.intervals import (
    Difference,
    Equivalence,
    Estimate,
    equivalence,
    estimate,
    overlap,
    paired,
    paired_difference,
    runs_to_exclude,
    welch,
)

__all__ = [
    "Difference",
    "Equivalence",
    "Estimate",
    "equivalence",
    "estimate",
    "overlap",
    "paired",
    "paired_difference",
    "runs_to_exclude",
    "welch",
]
