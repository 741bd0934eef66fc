"""What kept flows from sending more, in sentences: those that the receiver's window held back."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from perhop import catalog
from perhop.output.numbers import short

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from perhop.runs import Group, Run

RECEIVER = "receiver_limited"
WINDOW = "receiver_window_bytes"
BOUNDS = {
    entry.name: entry.summary.above
    for entry in catalog.FLOW
    if entry.summary is not None and entry.summary.above is not None
}
"""The measures that only tables with every column have, but where a flow has more than this."""


def remarkable(runs: Sequence[Run]) -> list[str]:
    """Those of these measures that narrower tables have, too."""
    return [name for name, bound in BOUNDS.items() if np.nanmax(_means(runs, name), initial=0.0) > bound]


def sentences(runs: Sequence[Run]) -> Iterator[str]:
    """A sentence for each class with a flow that its receiver's window held for more than 5 % of the time."""
    shares, windows = _means(runs, RECEIVER), _means(runs, WINDOW)
    first = 0
    for group in runs[0].groups:
        place = slice(first, first + group.count)
        first = place.stop
        held = shares[place] > BOUNDS[RECEIVER]  # NaN is not
        if held.any():
            yield _sentence(group, shares[place][held], float(np.nanmax(windows[place][held])))


def _sentence(group: Group, shares: NDArray[np.float64], window: float) -> str:
    """What is said of these flows of a class."""
    if group.count == 1 and not group.is_population:
        who = f"{group.name} was limited by its receiver's window"
    elif group.is_population:
        who = f"The flows of {group.name} were limited by their receivers' window"
    else:
        many = "All" if shares.size == group.count else f"{shares.size} of"
        who = f"{many} {group.count} flows of {group.name} were limited by their receivers' window"
    most = "up to " if shares.size > 1 else ""
    time = f"{shares.max():.0%}".replace("%", " %")
    return f"{who}, {size(window)}, for {most}{time} of the time; `window`."


def _means(runs: Sequence[Run], name: str) -> NDArray[np.float64]:
    """For each flow, the mean of a measure over the runs in which it has a value; NaN without any."""
    values = np.array([run.raw["flows"][name] for run in runs], dtype=np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of means of nothing
        means: NDArray[np.float64] = np.nanmean(values, axis=0)
    return means


def size(count: float) -> str:
    """Bytes as readers see them: `1 MB`, `64.2 kB`."""
    for factor, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= factor:
            return f"{short(count / factor, 3)} {unit}"
    return f"{short(count)} B"
