"""How the sentences on No-OUT of Table 1 and its figures are judged."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from perhop.statistics.judging import above, at_least, at_most, below, near
from perhop.studies.judges import (
    difference,
    differences,
    grouped,
    less_means,
    level,
    levels,
    of_runs,
    of_statements,
)
from perhop.studies.yeom.common import NAMES, NO_OUT, PROFILES, RIO, cell
from perhop.studies.yeom.table1_claims import LOADED, classes, mean_target, of_targets
from perhop.studies.yeom.ten_flows import CAPACITY, COUNT, RESERVED, entry

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from perhop.studies.judges import Judge


def better(rates: Sequence[float], at: Sequence[int]) -> Judge:
    """Judge whether classes get more under No-OUT than under RIO."""
    pairs = {f"{p} %, {NAMES[r]}": (entry(NO_OUT, p, r), entry(RIO, p, r)) for p in at for r in rates}
    found = differences("throughput", pairs).reads("{name} {value}", "; ")
    return found.all(above).said("No-OUT − RIO, Mbit/s: {:+}.")


def better_together(rates: Sequence[float]) -> Judge:
    """Judge whether classes get more under No-OUT than under RIO, in the mean over the levels."""
    means = {
        NAMES[r]: (less_means, *(("throughput", entry(s, p, r)) for s in (NO_OUT, RIO) for p in CAPACITY))
        for r in rates
    }
    found = of_runs(means).reads("{name} {value}", "; ")
    return found.all(above).said("Mean over levels, No-OUT − RIO, Mbit/s: {:+}.")


def captures(share: float) -> Judge:
    """Judge the part of the excess bandwidth at 60 % that best-effort flows get."""
    excess = CAPACITY[60] - COUNT * sum(PROFILES)
    part = (lambda rate: COUNT * rate / excess, ("throughput", entry(NO_OUT, 60, 0.0)))
    found = of_runs({"": part}).reads("{value}").all(at_least, share)
    return found.said("60 %, share of the excess that best-effort flows get: {}.")


def prevents(tolerance: float, least_mbps: float = 0.0) -> Judge:
    """Judge whether every reserved class gets its reservation and no more.

    Args:
        tolerance: The share of the reservation that it may get beyond it.
        least_mbps: What it may get beyond it whatever the share.
    """
    most = {f"{p} %, {NAMES[r]}": r + max(tolerance * r, least_mbps) for p in CAPACITY for r in RESERVED}
    rates = {
        f"{p} %": levels("throughput", {NAMES[r]: entry(NO_OUT, p, r) for r in RESERVED}) for p in CAPACITY
    }
    found = classes("throughput", NO_OUT, CAPACITY, RESERVED).all(at_most, most)
    return found.said("Mbit/s: {rates} ({failing}).", rates=grouped(rates, "{name} {all}"))


def unfair() -> Judge:
    """Judge best effort's excess against every reserved class's, and a reserved class below best effort."""
    excess, lower = {}, {}
    for p in LOADED:
        best = entry(NO_OUT, p, 0.0)
        mine = {
            NAMES[r]: (
                lambda best, rate, r=r: best - (rate - r),
                *(("throughput", key) for key in (best, entry(NO_OUT, p, r))),
            )
            for r in RESERVED
        }
        excess[p] = of_runs(mine)
        lower[p] = difference("throughput", best, entry(NO_OUT, p, 0.1))
    text = "; ".join(
        f"{p} %, excess of best effort − that of {{excess_{p}:+}}; its rate − that of the 0.1 Mbit/s class "
        f"{{lower_{p}:+}}"
        for p in LOADED
    )
    return (grouped(excess).all(above) & grouped(lower).all(above)).said(
        f"Mbit/s: {text}.",
        **{f"excess_{p}": one for p, one in excess.items()},
        **{f"lower_{p}": one for p, one in lower.items()},
    )


def fewer_drops() -> Judge:
    """Judge OUT packets and drops of reserved flows, No-OUT − RIO."""
    words = {"sent_out": "OUT packets", "drops": "drops"}
    means = {
        f"{words[metric]} at {p} %": (
            less_means,
            *((metric, entry(s, p, r)) for s in (NO_OUT, RIO) for r in RESERVED),
        )
        for metric, p in itertools.product(words, CAPACITY)
    }
    found = of_runs(means).reads("{name} {value}", "; ")
    return found.all(below).said("A reserved flow in the run, No-OUT − RIO: {:+.1}.")


def _over(reserved: float) -> Callable[[float], float]:
    return lambda rate: rate / reserved


def nearly_reserved(share: float) -> Judge:
    """Judge whether every reserved class gets that share of its rate at 60 % and 90 %."""
    wanted = {f"{p} %, {NAMES[r]}": share * r for p in LOADED for r in RESERVED}
    shares = {
        f"{p} %, {NAMES[r]}": level("throughput", entry(NO_OUT, p, r)).scaled(_over(r))
        for p in LOADED
        for r in RESERVED
    }
    return (
        classes("throughput", NO_OUT, LOADED, RESERVED)
        .all(at_least, wanted)
        .said("Achieved over reserved rate, {shares:.3f}.", shares=grouped(shares, between=", "))
    )


def far_from_targets(share: float) -> Judge:
    """Judge whether the 1 and the 2 Mbit/s class get less than that share of their targets at 60 %."""
    found = of_targets(NO_OUT, 60, (2.0, 1.0), 2)
    return found.all(below, lambda name: share * name[1]).said("60 %, Mbit/s: {}.")


def beats_reserved(least: int) -> Judge:
    """Judge whether best effort gets more than so many of the reserved classes."""
    pairs = {NAMES[r]: (entry(NO_OUT, 60, 0.0), entry(NO_OUT, 60, r)) for r in RESERVED}
    return (
        differences("throughput", pairs).most(least, above).said("60 %, best effort − class, Mbit/s: {:+}.")
    )


def at_120(share: float) -> Judge:
    """Judge whether rates are near their targets: that share of them, or two fifths as many Mbit/s."""
    found = of_targets(NO_OUT, 120, PROFILES, 3)
    return found.all(near, lambda name: name[1], lambda name: max(share * name[1], 0.4 * share)).said(
        "120 %, Mbit/s: {}."
    )


def error_by_level(share: float, *, than_rio: bool = False) -> Judge:
    """Judge the error: small at 90 % and 120 %, large at 60 %, and larger there than at both others.

    Args:
        share: Of the mean target: what is small.
        than_rio: And below RIO's at 90 %.
    """
    found = {p: level("rmse", cell(NO_OUT, p)) for p in CAPACITY}
    statements = {p: found[p].all(at_most, share * mean_target(p)) for p in (90, 120)}
    statements[60] = found[60].all(above, share * mean_target(60))
    larger = differences("rmse", {p: (cell(NO_OUT, 60), cell(NO_OUT, p)) for p in (90, 120)}).all(above)
    whole = of_statements(statements) & larger
    less = difference("rmse", cell(NO_OUT, 90), cell(RIO, 90))
    errors = levels("rmse", {(p, share * mean_target(p)): cell(NO_OUT, p) for p in CAPACITY})
    return (whole & less.all(below) if than_rio else whole).said(
        "Error and limit, Mbit/s: {errors}." + (" Less RIO's at 90 %: {less:+}." if than_rio else ""),
        errors=errors.reads("{name[0]} % {value} ({name[1]:.2f})"),
        less=less,
    )
