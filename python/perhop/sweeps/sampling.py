"""Samples of several ranges at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def latin_hypercube(dimensions: int, samples: int, seed: int) -> NDArray[np.float64]:
    """A Latin hypercube sample (McKay, Beckman & Conover 1979), f64[samples, dimensions] in [0, 1).

    Each dimension has one point in each of `samples` equal strata. The draws are those of
    `scipy.stats.qmc.LatinHypercube`, so the points are the same.
    """
    (random,) = np.random.default_rng(seed).spawn(1)
    within = random.uniform(size=(samples, dimensions))
    strata = np.tile(np.arange(1, samples + 1), (dimensions, 1))
    for row in strata:
        random.shuffle(row)
    return (strata.T - within) / samples
