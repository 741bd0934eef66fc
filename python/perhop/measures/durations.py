"""Times of which some had not ended when the run did: of flows, pages, responses.

Those that ended alone are the short ones, and their percentiles and mean are too low. The product limit
(Kaplan & Meier 1958, "Nonparametric estimation from incomplete observations", J. Am. Stat. Assoc. 53,
457-481) uses both. A share is estimated as long as each time carries the weight of at
most one censored time beside its own: with arrivals at a constant rate, up to times of half the run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perhop._engine import product_limit
from perhop.measures.fairness import quantile
from perhop.statistics.observations import Distribution

MOST_OPEN = 0.05
"""A mean is a lower bound where the open times are more than this part of all, so far."""
EPSILON = float(np.finfo(np.float64).eps)
"""The rounding error by which a share may be below another one."""


@dataclass(frozen=True, slots=True)
class Durations:
    """Times, or slowdowns, of which some had not ended when the run did.

    Attributes:
        ended: f64[n], those that had.
        open: f64[m], the others, so far.
    """

    ended: NDArray[np.float64]
    open: NDArray[np.float64]

    @classmethod
    def of_users(cls, users: Mapping[str, Any], name: str) -> Durations:
        """Collect the times that the users of an application waited in a run.

        Args:
            users: As the engine reports them.
            name: Of the samples, such as `page_s`.
        """
        none = np.empty(0)
        return cls(*(np.asarray(users[key].get(name, none)) for key in ("samples", "open")))

    @property
    def count(self) -> int:
        """The number of durations."""
        return len(self.ended) + len(self.open)

    @property
    def distribution(self) -> Distribution:
        """Theirs, by the product limit (Kaplan & Meier 1958)."""
        return Distribution.from_times(self.ended, self.open)

    @property
    def mean(self) -> float:
        """The mean time by the product limit; a lower bound if `is_cut_off`; NaN where no time ended."""
        if not len(self.ended):
            return math.nan
        if not len(self.open):
            return math.fsum(self.ended) / len(self.ended)
        mean = product_limit(np.ascontiguousarray(self.ended), np.ascontiguousarray(self.open))[2]
        return math.nan if mean is None else mean

    @property
    def is_cut_off(self) -> bool:
        """Whether the mean is a lower bound: the longest is open, or all open ones are much of all time."""
        if not len(self.open):
            return False
        if float(self.open.max()) > float(self.ended.max(initial=-math.inf)):
            return True
        return math.fsum(self.open) > MOST_OPEN * (math.fsum(self.ended) + math.fsum(self.open))

    def quantile(self, share: float, fewest: int = 1) -> float:
        """A quantile of at least so many, else NaN; NaN where the open ones leave it unknown, too."""
        if self.count < max(fewest, 1):
            return math.nan
        if not len(self.open):
            return quantile(self.ended, share)
        values, shares, _ = product_limit(np.ascontiguousarray(self.ended), np.ascontiguousarray(self.open))
        place = int(np.searchsorted(shares, share - EPSILON))
        return float(values[place]) if place < len(values) else math.nan
