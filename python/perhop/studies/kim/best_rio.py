"""The search behind Table 1's row "Best RIO": RIO under 35 IN+OUT sets on the table's setting.

The paper does not say which set was best, nor by what measure. Here it is the smallest root-mean-square error
against the fair share, by the means over the runs.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from perhop.judging import above, all_of, below, fact, judge
from perhop.studies.kim import table1
from perhop.studies.kim.common import PAPER, stated
from perhop.studies.paper import claims
from perhop.study import Axis, Evidence, Plot, Study, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from perhop.judging import Judgement
    from perhop.runs import Run
    from perhop.study import Factors, Sample

THRESHOLDS = ("347/694", "200/600", "100/300", "60/180", "30/90", "10/30", "5/15")
"""min/max in packets: the text's, and those of the table's OUT sets and of Figure 2's queue."""
MAX_P = (0.01, 0.02, 0.05, 0.1, 0.2)
SETS = tuple(itertools.product(THRESHOLDS, MAX_P))
STATEMENT = stated("best-rio")


def cell(thresholds: str, max_p: float) -> Factors:
    """The cell of one set."""
    return {"thresholds": thresholds, "max_p": max_p}


def build(found: Factors) -> Mapping[str, Any]:
    """Table 1's setting under RIO with this set."""
    return table1.network("rio", f"{found['thresholds']}/{found['max_p']:g}")


def samples(found: Factors, run: Run) -> Iterator[Sample]:
    """Those of Table 1."""
    return table1.samples(found, run)


def errors(evidence: Evidence) -> dict[tuple[str, float], float]:
    """The mean error of every set, smallest first."""
    found = {key: evidence.mean("rmse", cell(*key)) for key in SETS}
    return dict(sorted(found.items(), key=lambda entry: entry[1]))


def best_set(evidence: Evidence) -> Judgement:
    """The set that Table 1 uses has the smallest error, or none with an error surely smaller."""
    mine = next(key for key in SETS if f"{key[0]}/{key[1]:g}" == table1.BEST_SET)
    apart = {
        key: evidence.difference("rmse", cell(*key), cell(*mine))
        for key in list(errors(evidence))[:4]
        if key != mine
    }
    first = ", ".join(
        f"{'/'.join((thresholds, f'{max_p:g}'))} {evidence.estimate('rmse', cell(thresholds, max_p)).text()}"
        for thresholds, max_p in list(errors(evidence))[:4]
    )
    return judge(
        fact(holds=not any(below(e).holds for e in apart.values())),
        f"Error against the fair share, Mbit/s, the smallest four of {len(SETS)}: {first}.",
    )


def no_control(evidence: Evidence) -> Judgement:
    """Under no set does a 2 Mbit/s flow get as much OUT traffic through as a best-effort flow."""
    found = {
        key: evidence.difference(
            "out_throughput", {**cell(*key), "profile_mbps": 0.0}, {**cell(*key), "profile_mbps": 2.0}
        )
        for key in SETS
    }
    least = min(found, key=lambda key: found[key].mean)
    most = max(found, key=lambda key: found[key].mean)
    return judge(
        all_of(*(above(e) for e in found.values())),
        f"OUT traffic of a best-effort flow − that of a 2 Mbit/s flow, Mbit/s: {found[least].text(sign=True)} "
        f"with {_name(least)} to {found[most].text(sign=True)} with {_name(most)}.",
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

BEST_RIO = Study(
    id="kim-best-rio",
    title="The best RIO: 35 IN+OUT sets",
    source=f"{PAPER}, Table 1: the set of its row Best RIO, which it does not state",
    summary="Table 1's flows under RIO, seven pairs of thresholds by five values of max_p",
    cells=[cell(*key) for key in SETS],
    scenario=build,
    samples=samples,
    published=(),
    claims=claims(
        STATEMENT.claims,
        {"no-matter-how": no_control, "best-set": best_set, "never-reaches-2": never_reaches},
    ),
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
            title="Error against the fair share by IN+OUT set",
            kind="points",
            metric="rmse",
            x=ROWS,
            series=COLUMNS,
            y_label="Mbit/s",
            from_zero=False,
        ),
    ),
    notes=STATEMENT.notes,
    method=STATEMENT.method,
    assumptions=STATEMENT.assumptions,
    extra=True,
    default_runs=6,
)
