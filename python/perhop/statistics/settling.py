"""The warm-up of a simulation, found from its own samples.

MSER-5 (K. P. White 1997, "An effective truncation heuristic for bias reduction in simulation output",
Simulation 69(6), 323-334; Spratt 1998): of the means of five samples each, leave out as many at the beginning
as make the confidence interval of the mean of the others the narrowest. Cuts in the first half are tried, as
few values may be alike by chance; one near its end says that nothing has settled.

Queues and rates of a saturated link may stay at one value for long. Then the narrowest interval is that of
the longest such time, however small the differences before it. So differences within one percent of the mean
count as none: their variance is added to every interval.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BATCH = 5
"""Samples whose mean is one value."""
NEGLIGIBLE = 0.01
"""Differences that count as none, as a part of the mean."""
NEAR = 0.45
"""A cut beyond this part of all samples is near the end of those that are tried."""
FEWEST = 4
"""The fewest batches for which a warm-up is looked for."""


def settled_from(samples: NDArray[np.float64]) -> int | None:
    """The first sample of the steady state by MSER-5; None if there is none.

    Args:
        samples: f64[k], at equal distances.
    """
    batches = len(samples) // BATCH
    if batches < FEWEST:
        return None
    means = samples[: batches * BATCH].reshape(batches, BATCH).mean(axis=1)
    left = batches - np.arange(batches)
    # The means and variances of all batches from each one on.
    rest = np.cumsum(means[::-1])[::-1] / left
    centered = means - means.mean()
    first, second = (np.cumsum((centered**power)[::-1])[::-1] / left for power in (1, 2))
    variance = np.maximum(second - first**2, 0.0) + (NEGLIGIBLE * rest) ** 2
    cut = int(np.argmin((variance / left)[: batches // 2 + 1]))
    return cut * BATCH if cut <= NEAR * batches else None
