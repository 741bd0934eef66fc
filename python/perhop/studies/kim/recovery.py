"""How long congestion windows take to be again what they were, by class, under Table 1's network.

The window of every flow is sampled over time. A reduction is a fall by more than a quarter from one sample to
the next. It has recovered when the window is again what it was before. Often the next reduction comes first:
the time is then censored there, as at the end of the run, and the quantiles are those of the product limit.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from perhop.measures.durations import Durations
from perhop.show.declared import Axis, Plot, Table
from perhop.statistics.judging import above, all_of, judge
from perhop.studies.evidence import Sample
from perhop.studies.kim import table1
from perhop.studies.kim.common import PAPER, THIS
from perhop.studies.sampling import times

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from perhop.measures.run import Run
    from perhop.show.declared import Factors
    from perhop.statistics.judging import Judgement
    from perhop.studies.evidence import Evidence

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
    """By class: the mean window, reductions, and the times to recover from them."""
    series = run.raw["series"]
    time_s, windows = np.asarray(series["time_s"]), np.asarray(series["cwnd_packets"])
    groups = [group.name for group in run.groups]
    for rate in table1.COUNTS:
        factors = {**cell, "profile_mbps": rate}
        own = windows[:, run.flows("group") == groups.index(table1.class_name(rate))]
        yield Sample(factors, "window", "packets", float(own[time_s >= FROM_S].mean()))
        found = [recoveries(time_s, own[:, flow]) for flow in range(own.shape[1])]
        together = Durations(
            np.concatenate([one.ended for one in found]), np.concatenate([one.open for one in found])
        )
        yield Sample(factors, "reductions", "per flow", together.count / own.shape[1])
        yield from times(factors, together, {"recovery_p25": LEVEL}, "s")


def longer(evidence: Evidence) -> Judgement:
    """Under RIO the time to recover falls from each class to the next smaller one."""
    steps = [
        evidence.difference("recovery_p25", table1.by_class(cell, large), table1.by_class(cell, small))
        for cell in table1.RIOS.values()
        for large, small in itertools.pairwise(table1.COUNTS)
    ]
    return judge(
        all_of(*(above(step) for step in steps)),
        f"Seconds until a quarter has recovered: {_said(evidence, 'recovery_p25')}.",
    )


def suffer(evidence: Evidence) -> Judgement:
    """Under RIO large profiles' windows are larger than small ones', and take longer to recover."""
    checks = [
        above(evidence.difference(metric, table1.by_class(cell, LARGE), table1.by_class(cell, small)))
        for cell in table1.RIOS.values()
        for metric in ("window", "recovery_p25")
        for small in SMALL
    ]
    return judge(
        all_of(*checks),
        f"Mean window, packets: {_said(evidence, 'window', 1)}. Seconds until a quarter has recovered: "
        f"{_said(evidence, 'recovery_p25')}.",
    )


def _said(evidence: Evidence, metric: str, digits: int = 2) -> str:
    return "; ".join(
        f"{name}: "
        + ", ".join(
            f"{table1.NAMES[rate]} {evidence.estimate(metric, table1.by_class(cell, rate)).text(digits)}"
            for rate in table1.COUNTS
        )
        for name, cell in table1.RIOS.items()
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
    judges={
        "large-windows-suffer": suffer,
        "longer-recovery": longer,
    },
    tables=(
        Table(
            "Time until a quarter of the reductions has recovered, s, by profile",
            {"recovery_p25": ""},
            ROWS,
            (table1.CLASSES,),
            digits=2,
        ),
        Table("Mean window, packets, by profile", {"window": ""}, ROWS, (table1.CLASSES,), digits=1),
        Table(
            "Reductions of a flow in 90 s, by profile", {"reductions": ""}, ROWS, (table1.CLASSES,), digits=1
        ),
    ),
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
