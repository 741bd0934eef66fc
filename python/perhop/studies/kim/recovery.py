"""The time that congestion windows take to be again what they were, by class, in Table 1's network.

The window of every flow is sampled over time. A reduction is a fall by more than a quarter from one sample to
the next. It has recovered when the window is again what it was before. Often the next reduction comes first:
the time is then censored there, as at the end of the run, and the quantiles are those of the product limit.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perhop.measures.durations import Durations
from perhop.measures.run import Run
from perhop.show.declared import Axis, Factors, Plot, tables
from perhop.statistics.judging import above
from perhop.studies.evidence import Sample
from perhop.studies.judges import Judge, Statement, differences
from perhop.studies.kim import table1
from perhop.studies.kim.common import PAPER, THIS
from perhop.studies.kim.table1 import COUNTS, RIOS, by_class
from perhop.studies.sampling import times

INTERVAL = "50ms"
FALL = 0.25
"""A larger fall between two samples is a reduction: a halving, or a timeout's."""
FROM_S = 10.0
"""Reductions before are those of the first slow start."""
LEVEL = 0.25
"""The quantile that is judged: about half of all reductions are followed by the next before they recover."""
CELLS = (table1.STATED, table1.RIO, table1.ri_plus_o(table1.PRINTED_BEST))
LARGE, SMALL = 2.0, (0.1, 0.0)


def build(cell: Factors) -> Mapping[str, Any]:
    """Table 1's setting with windows sampled."""
    return {**table1.build(cell), "probes": {"interval": INTERVAL}}


def recoveries(time_s: NDArray[np.float64], window: NDArray[np.float64]) -> Durations:
    """Times from each reduction of a window until it is what it was; open where another comes first.

    Args:
        time_s: f64[n], the times of the samples.
        window: f64[n], the window at them.
    """
    cuts = np.flatnonzero(window[1:] < (1 - FALL) * window[:-1]) + 1
    ends = np.append(cuts[1:], len(window))
    ended: list[float] = []
    open_: list[float] = []
    for cut, end in zip(cuts.tolist(), ends.tolist(), strict=True):
        if time_s[cut] < FROM_S:
            continue
        back = np.flatnonzero(window[cut:end] >= window[cut - 1])
        until = cut + int(back[0]) if len(back) else min(end, len(window) - 1)
        (ended if len(back) else open_).append(float(time_s[until] - time_s[cut]))
    return Durations(np.array(ended), np.array(open_))


def samples(cell: Factors, run: Run) -> Iterator[Sample]:
    """Sample by class the mean window, reductions, and the times to recover from them."""
    series = run.raw["series"]
    time_s, windows = np.asarray(series["time_s"]), np.asarray(series["cwnd_packets"])
    groups = [group.name for group in run.groups]
    for rate in COUNTS:
        factors = {**cell, "profile_mbps": rate}
        own = windows[:, run.flows("group") == groups.index(table1.class_name(rate))]
        yield Sample(factors, "window", "packets", float(own[time_s >= FROM_S].mean()))
        found = [recoveries(time_s, own[:, flow]) for flow in range(own.shape[1])]
        together = Durations(
            np.concatenate([one.ended for one in found]), np.concatenate([one.open for one in found])
        )
        yield Sample(factors, "reductions", "per flow", together.count / own.shape[1])
        yield from times(factors, together, {"recovery_p25": LEVEL}, "s")


def larger(metric: str, pairs: Iterable[tuple[float, float]]) -> Statement:
    """State that under either set of RIO each pair's first class has more of a measure than the second."""
    places = {
        (name, a, b): (by_class(cell, a), by_class(cell, b))
        for (name, cell), (a, b) in itertools.product(RIOS.items(), pairs)
    }
    return differences(metric, places).all(above)


WINDOWS = table1.both(lambda cell: table1.rates(cell, COUNTS, "window"))
TIMES = table1.both(lambda cell: table1.rates(cell, COUNTS, "recovery_p25"))


def longer() -> Judge:
    """Judge whether under RIO the time to recover falls from each class to the next smaller one."""
    return larger("recovery_p25", itertools.pairwise(COUNTS)).said(
        "Seconds until a quarter has recovered: {times:.2}.", times=TIMES
    )


def _suffer() -> Judge:
    """Judge whether under RIO large profiles' windows are larger than small ones', and recover later."""
    pairs = [(LARGE, small) for small in SMALL]
    return (larger("window", pairs) & larger("recovery_p25", pairs)).said(
        "Mean window, packets: {windows:.1}. Seconds until a quarter has recovered: {times:.2}.",
        windows=WINDOWS,
        times=TIMES,
    )


ROWS = Axis("out", "Queue", {str(cell["out"]): table1.LABELS[str(cell["out"])] for cell in CELLS})

RECOVERY = THIS.study(
    "recovery",
    title="How long a window takes to be what it was",
    source=f"{PAPER}, section 3: the recovery of windows",
    summary="windows in time on Table 1's network, RIO with two IN+OUT sets, and RI+O",
    cells=CELLS,
    scenario=build,
    samples=samples,
    judges={"large-windows-suffer": _suffer(), "longer-recovery": longer()},
    tables=[
        *tables(
            ROWS,
            (table1.CLASSES,),
            ("Time until a quarter of the reductions has recovered, s, by profile", "recovery_p25", 2),
            ("Mean window, packets, by profile", "window", 1),
            ("Reductions of a flow in 90 s, by profile", "reductions", 1),
        )
    ],
    plots=(
        Plot(
            id="recovery",
            title="Time until a quarter of the reductions has recovered",
            kind="points",
            metric="recovery_p25",
            x=table1.CLASSES,
            series=ROWS,
            y_label="s",
        ),
    ),
    default_runs=12,
)
