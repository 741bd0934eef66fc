"""The warm-up of a simulation, found from its own samples.

MSER-5 (K. P. White 1997, "An effective truncation heuristic for bias reduction in simulation output",
Simulation 69(6), 323-334; Spratt 1998): of the means of five samples each, leave out as many at the beginning
as make the confidence interval of the mean of the others the narrowest. Cuts in the first half are tried, as
few values may be alike by chance; one near its end says that nothing has settled.

Queues and rates of a saturated link may stay at one value for long. Then the narrowest interval is that of
the longest such time, however small the differences before it. So differences within one percent of the mean
count as none: their variance is added to every interval.

Stationary traffic has a narrowest interval, too, whose cut is chance: of few packets it is often long. So a
cut counts only where the beginning differs from the rest by more than chance: all that is cut, or its first
half, quarter and so on, as a long cut may hide a short transient. Its mean is held by Student's t against the
means of all times behind the cut that are as long as it, in all runs together: they vary as it does, however
samples depend on each other. And it must lie on the same side of them in every run, as one run may begin with
a rare burst.

What grows ever faster, as a large buffer that fills, has its narrowest interval with the flat beginning and
without the rest, where no cut is tried. So nothing has settled while the second half of what is behind the
cut is another than the first: by more than `DRIFT` of the run's own mean, in every run to the same side, and
by Student's t of the runs' differences.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from perhop._engine import student_t_quantile

BATCH = 5
"""Samples whose mean is one value."""
NEGLIGIBLE = 0.01
"""Differences that count as none, as a part of the mean."""
DRIFT = 0.1
"""The distance of the halves of a steady state at most, as a part of its mean: sawteeth have few periods."""
NEAR = 0.45
"""A cut beyond this part of all samples is near the end of those that are tried."""
FEWEST = 4
"""The fewest batches for which a warm-up is looked for."""
LEVEL = 0.01
"""The probability at most that a beginning differs by chance, were the cut not chosen. As it is, at most one
in fifty series that are stationary has a cut."""


def settled_from(
    samples: NDArray[np.float64], level: float = LEVEL, *, may_drift: bool = False
) -> int | None:
    """The first sample of the steady state, 0 without a beginning that differs; None if there is none.

    Args:
        samples: f64[k] of one run, or f64[p, k] of p independent ones, at equal distances.
        level: See `LEVEL`; a part of it, where a series is one of several.
        may_drift: Halves are not compared, as of rare events.
    """
    runs = np.atleast_2d(samples)
    batches = runs.shape[1] // BATCH
    if batches < FEWEST:
        return None
    means = runs[:, : batches * BATCH].reshape(len(runs), batches, BATCH).mean(axis=2)
    cut = _narrowest(means.mean(axis=0))
    if not cut or not _differs(means, cut, level):
        cut = 0
    if cut > NEAR * batches or (not may_drift and _drifts(means[:, cut:], level)):
        return None
    return cut * BATCH


def _narrowest(means: NDArray[np.float64]) -> int:
    """The number of batches to leave out by MSER."""
    batches = len(means)
    left = batches - np.arange(batches)
    # The means and variances of all batches from each one on.
    rest = np.cumsum(means[::-1])[::-1] / left
    centered = means - means.mean()
    first, second = (np.cumsum((centered**power)[::-1])[::-1] / left for power in (1, 2))
    variance = np.maximum(second - first**2, 0.0) + (NEGLIGIBLE * rest) ** 2
    return int(np.argmin((variance / left)[: batches // 2 + 1]))


def _drifts(means: NDArray[np.float64], level: float) -> bool:
    """Whether the halves of a series, f64[p, k] of p runs, differ by more than chance and `DRIFT`."""
    runs, batches = means.shape
    half = batches // 2
    own = means.mean(axis=1)
    if runs < 2 or not own.all():
        return False
    # In proportion to each run's own mean, as runs may have high and low queues that behave alike.
    apart = (means[:, -half:].mean(axis=1) - means[:, :half].mean(axis=1)) / own
    if abs(float(apart.mean())) <= DRIFT:
        return False
    if not ((apart > 0).all() or (apart < 0).all()):
        return False
    error = float(apart.std(ddof=1)) / math.sqrt(runs)
    return abs(float(apart.mean())) > student_t_quantile(runs - 1, 1 - level / 2) * error


def _differs(means: NDArray[np.float64], cut: int, level: float) -> bool:
    """Whether the beginning differs from what follows a cut by more than chance and one percent.

    Args:
        means: f64[p, k], of the batches of p runs.
        cut: The batches before it, at most half of them.
        level: See `LEVEL`.
    """
    lengths = [cut >> halvings for halvings in range(cut.bit_length())]
    return any(_begins_apart(means, cut, length, level / len(lengths)) for length in lengths)


def _begins_apart(means: NDArray[np.float64], cut: int, length: int, level: float) -> bool:
    """Whether the first batches of this number differ from what follows a cut; see `_differs`."""
    runs, batches = means.shape
    times = (batches - cut) // length
    begin = means[:, :length].mean(axis=1)
    behind = means[:, batches - times * length :].reshape(runs * times, length).mean(axis=1)
    mean, number = float(behind.mean()), len(behind)
    away = float(begin.mean()) - mean
    if abs(away) <= NEGLIGIBLE * abs(mean) or not ((begin > mean).all() or (begin < mean).all()):
        return False
    if number == 1:
        return True  # of one run's two halves nothing is known but that they differ
    error = float(behind.std(ddof=1)) * math.sqrt(1 / runs + 1 / number)
    return abs(away) > student_t_quantile(number - 1, 1 - level / 2) * error
