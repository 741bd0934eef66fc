"""The search behind Table 1's row "Best RIO": RIO under 42 IN+OUT sets on the table's setting.

The paper does not say which set was best, nor by what measure. Here it is the smallest root-mean-square error
against the fair share, by the means over the runs, among the 28 sets of thresholds and max_p that the paper
names somewhere. Fourteen more go beyond its largest max_p.
"""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING, Any

from perhop.show.declared import Axis, Plot, Table
from perhop.statistics.judging import all_of, below, fact, judge
from perhop.studies.evidence import Evidence
from perhop.studies.kim import table1
from perhop.studies.kim.common import PAPER, THIS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from perhop.measures.run import Run
    from perhop.show.declared import Factors
    from perhop.statistics.judging import Judgement
    from perhop.studies.evidence import Sample

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


def samples(found: Factors, run: Run) -> Iterator[Sample]:
    """The samples of Table 1."""
    return table1.samples(found, run)


def first_four(evidence: Evidence, sets: tuple[tuple[str, float], ...]) -> list[tuple[str, float]]:
    """The sets of the smallest mean errors, smallest first."""
    return sorted(sets, key=lambda key: evidence.mean("rmse", cell(*key)))[:4]


def said(evidence: Evidence, sets: list[tuple[str, float]]) -> str:
    """The errors of these sets, as text."""
    return ", ".join(f"{_name(key)} {evidence.estimate('rmse', cell(*key)).text()}" for key in sets)


def measured(evidence: Evidence) -> list[tuple[str, float]]:
    """The sets that were run: all of them, but for a map of assumptions."""
    return [key for key in SETS if evidence.measured("rmse", cell(*key))]


def mine() -> tuple[str, float]:
    """The set that Table 1 uses."""
    return next(key for key in SETS if _name(key) == table1.BEST_SET)


def best_set(evidence: Evidence) -> Judgement:
    """The set that Table 1 uses has the smallest mean error of those that the paper's values make."""
    first = first_four(evidence, NAMED)
    return judge(
        fact(holds=first[0] == mine()),
        f"Error against the fair share, Mbit/s, the smallest four of {len(NAMED)}: {said(evidence, first)}.",
    )


def beyond(evidence: Evidence) -> Judgement:
    """A larger max_p than any of the paper's has a smaller error still."""
    first = first_four(evidence, SETS)
    apart = evidence.difference("rmse", cell(*first[0]), cell(*mine()))
    return judge(
        below(apart),
        f"The smallest four of {len(SETS)}: {said(evidence, first)}; the first − {table1.BEST_SET}: "
        f"{apart.text(sign=True)}.",
    )


def no_control(evidence: Evidence, part: float = 1.0) -> Judgement:
    """Under no set does a 2 Mbit/s flow get this part of a best-effort flow's OUT traffic through."""
    found = {
        key: evidence.difference(
            "out_throughput",
            {**cell(*key), "profile_mbps": 2.0},
            {**cell(*key), "profile_mbps": 0.0},
            factor=part,
        )
        for key in measured(evidence)
    }
    parts = {
        key: evidence.mean("out_throughput", {**cell(*key), "profile_mbps": 2.0})
        / evidence.mean("out_throughput", {**cell(*key), "profile_mbps": 0.0})
        for key in found
    }
    least, most = (pick(parts, key=lambda key: parts[key]) for pick in (min, max))
    return judge(
        all_of(*(below(e) for e in found.values())),
        "OUT traffic of a 2 Mbit/s flow as a part of that of a best-effort flow: "
        f"{parts[least]:.2f} with {_name(least)} to {parts[most]:.2f} with {_name(most)}.",
    )


def never_reaches(evidence: Evidence) -> Judgement:
    """Under every set the 2.0 class misses its profile."""
    found = {key: evidence.estimate("throughput", {**cell(*key), "profile_mbps": 2.0}) for key in SETS}
    least, most = (pick(found, key=lambda key: found[key].mean) for pick in (min, max))
    return judge(
        all_of(*(below(e, 2.0) for e in found.values())),
        f"2 Mbit/s class, Mbit/s: {found[least].text()} with {_name(least)} to {found[most].text()} with "
        f"{_name(most)}.",
    )


def _name(key: tuple[str, float]) -> str:
    return f"{key[0]}/{key[1]:g}"


ROWS = Axis("thresholds", "IN+OUT set", {t: t for t in THRESHOLDS})
COLUMNS = Axis("max_p", "max_p", {p: f"{p:g}" for p in MAX_P})

BEST_RIO = THIS.study(
    "best-rio",
    title="The best RIO: 42 IN+OUT sets",
    source=f"{PAPER}, Table 1: the set of its row Best RIO, which it does not state",
    summary="Table 1's flows under RIO, seven pairs of thresholds by six values of max_p",
    cells=[cell(*key) for key in SETS],
    scenario=build,
    samples=samples,
    judges={
        "no-matter-how": {"": no_control, "half as much": functools.partial(no_control, part=0.5)},
        "best-set": best_set,
        "larger-max-p": beyond,
        "never-reaches-2": never_reaches,
    },
    tables=(
        Table("Error against the fair share, Mbit/s, by max_p", {"rmse": ""}, ROWS, (COLUMNS,)),
        Table(
            "Throughput of a 2 Mbit/s flow, Mbit/s, by max_p",
            {"throughput": ""},
            ROWS,
            (COLUMNS,),
            where={"profile_mbps": 2.0},
        ),
        Table(
            "Throughput of a best-effort flow, Mbit/s, by max_p",
            {"throughput": ""},
            ROWS,
            (COLUMNS,),
            where={"profile_mbps": 0.0},
        ),
    ),
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
