"""Samples of several ranges at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import qmc

if TYPE_CHECKING:
    from numpy.typing import NDArray


def latin_hypercube(dimensions: int, samples: int, seed: int) -> NDArray[np.float64]:
    """A Latin hypercube sample (McKay, Beckman & Conover 1979), f64[samples, dimensions] in [0, 1)."""
    return qmc.LatinHypercube(dimensions, rng=np.random.default_rng(seed)).random(samples)
