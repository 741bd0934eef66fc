"""The search behind Table 1's row "Best RIO": RIO under 42 IN+OUT sets on the table's setting.

The paper does not say which set was best, nor by what measure. Here it is the smallest root-mean-square error
against the fair share, by the means over the runs, among the 28 sets of thresholds and max_p that the paper
names somewhere. Fourteen more go beyond its largest max_p.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

from perhop.show.declared import Axis, Factors, Plot, tables
from perhop.statistics.judging import below, fact
from perhop.studies.evidence import Evidence
from perhop.studies.judges import Judge, Number, Numbers, difference, differences, levels, stated, variants
from perhop.studies.kim import table1
from perhop.studies.kim.common import PAPER, THIS

THRESHOLDS = ("347/694", "200/600", "100/300", "60/180", "30/90", "10/30", "5/15")
"""min/max in packets: the text's, and those of the table's OUT sets and of Figure 2's queue."""
NAMED_MAX_P = (0.01, 0.02, 0.05, 0.1)
"""Every max_p of the paper, of whatever set."""
MAX_P = (*NAMED_MAX_P, 0.2, 0.5)
SETS = tuple(itertools.product(THRESHOLDS, MAX_P))
NAMED = tuple(itertools.product(THRESHOLDS, NAMED_MAX_P))


def cell(thresholds: str, max_p: float) -> Factors:
    """The cell of one set."""
    return {"thresholds": thresholds, "max_p": max_p}


def build(found: Factors) -> Mapping[str, Any]:
    """Table 1's setting under RIO with this set."""
    return table1.network("rio", f"{found['thresholds']}/{found['max_p']:g}")


def _named(sets: Iterable[tuple[str, float]]) -> dict[str, Factors]:
    return {f"{thresholds}/{max_p:g}": cell(thresholds, max_p) for thresholds, max_p in sets}


CELLS = _named(SETS)
"""The cell of each set by its name."""


def _first_four(sets: Iterable[tuple[str, float]]) -> Numbers:
    """The smallest four mean errors of some sets, smallest first."""
    return levels("rmse", _named(sets)).ordered().first(4)


def best_set() -> Judge:
    """Judge whether Table 1's set has the smallest mean error of those that the paper's values make."""
    found = _first_four(NAMED)
    best = stated(lambda evidence: fact(holds=next(iter(found(evidence))) == table1.BEST_SET))
    text = f"Error against the fair share, Mbit/s, the smallest four of {len(NAMED)}: {{found}}."
    return best.said(text, found=found)


def _larger_max_p() -> Judge:
    """Judge whether a larger max_p than any of the paper's has a smaller error still."""
    found = _first_four(SETS)

    def less(evidence: Evidence) -> Mapping[Any, Number]:
        first = CELLS[next(iter(found(evidence)))]
        return difference("rmse", first, CELLS[table1.BEST_SET]).find(evidence)

    statement = Numbers(less).reads("{value}").all(below)
    return statement.said(
        f"The smallest four of {len(SETS)}: {{found}}; the first − {table1.BEST_SET}: {{:+}}.", found=found
    )


def of_class(rate: float) -> dict[str, Factors]:
    """The factors of a class's flow under each set, by the set's name."""
    return {name: table1.by_class(of, rate) for name, of in CELLS.items()}


def no_control(part: float = 1.0) -> Judge:
    """Judge whether under no set a 2 Mbit/s flow gets that part of a best-effort flow's OUT traffic."""
    large, none = of_class(2.0), of_class(0.0)
    pairs = {name: (large[name], none[name]) for name in CELLS}
    found = differences("out_throughput", pairs, factor=part, measured=True)
    mine, other = (levels("out_throughput", places, measured=True) for places in (large, none))
    parts = mine.relative(other).reads("{value:.2f} with {name}")
    return found.all(below).said(
        "OUT traffic of a 2 Mbit/s flow as a part of that of a best-effort flow: {least} to {most}.",
        least=parts.lowest(),
        most=parts.highest(),
    )


def _never_reaches() -> Judge:
    found = levels("throughput", of_class(2.0))
    rates = found.reads("{value} with {name}")
    return found.all(below, 2.0).said(
        "2 Mbit/s class, Mbit/s: {least} to {most}.", least=rates.lowest(), most=rates.highest()
    )


ROWS = Axis("thresholds", "IN+OUT set", {t: t for t in THRESHOLDS})
COLUMNS = Axis("max_p", "max_p", {p: f"{p:g}" for p in MAX_P})

BEST_RIO = THIS.study(
    "best-rio",
    title="The best RIO: 42 IN+OUT sets",
    source=f"{PAPER}, Table 1: the set of its row Best RIO, which it does not state",
    summary="Table 1's flows under RIO, seven pairs of thresholds by six values of max_p",
    cells=list(CELLS.values()),
    scenario=build,
    samples=table1.samples,
    judges={
        "no-matter-how": variants(no_control, {"": 1.0, "half as much": 0.5}),
        "best-set": best_set(),
        "larger-max-p": _larger_max_p(),
        "never-reaches-2": _never_reaches(),
    },
    tables=[
        *tables(
            ROWS,
            (COLUMNS,),
            ("Error against the fair share, Mbit/s, by max_p", "rmse", 3),
            ("Throughput of a 2 Mbit/s flow, Mbit/s, by max_p", "throughput", 3, {"profile_mbps": 2.0}),
            ("Throughput of a best-effort flow, Mbit/s, by max_p", "throughput", 3, {"profile_mbps": 0.0}),
        )
    ],
    plots=(
        Plot(
            id="error",
            title="Error by IN+OUT set",
            kind="lines",
            metric="rmse",
            x=COLUMNS,
            series=ROWS,
            y_label="error against the fair share, Mbit/s",
            ordinal=True,
            from_zero=False,
        ),
    ),
    extra=True,
    default_runs=12,
)
