"""How the sentences on No-OUT of Table 1 and its figures are judged."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from perhop.statistics.judging import (
    Check,
    Judgement,
    above,
    all_of,
    at_least,
    at_least_of,
    at_most,
    below,
    judge,
    near,
)
from perhop.studies.evidence import Evidence
from perhop.studies.yeom.common import (
    FAIRLY_CLOSE,
    NAMES,
    NO_OUT,
    PROFILES,
    RIO,
    cell,
    combined,
    each_above,
    each_below,
    failing,
)
from perhop.studies.yeom.table1_claims import mean_target
from perhop.studies.yeom.ten_flows import CAPACITY, COUNT, RESERVED, TARGETS, entry

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def no_out_better(classes: Sequence[float], levels: Sequence[int]) -> Callable[[Evidence], Judgement]:
    """A claim that classes get more under No-OUT than under RIO."""

    def judged(evidence: Evidence) -> Judgement:
        found = {
            f"{p} %, {NAMES[r]}": evidence.difference("throughput", entry(NO_OUT, p, r), entry(RIO, p, r))
            for p in levels
            for r in classes
        }
        text = "; ".join(f"{name} {e.text(sign=True)}" for name, e in found.items())
        return each_above(found, f"No-OUT − RIO, Mbit/s: {text}.")

    return judged


def no_out_better_together(classes: Sequence[float]) -> Callable[[Evidence], Judgement]:
    """A claim that classes get more under No-OUT than under RIO, in the mean over the levels."""

    def judged(evidence: Evidence) -> Judgement:
        found = {
            r: combined(
                evidence,
                lambda *rates: (sum(rates[: len(CAPACITY)]) - sum(rates[len(CAPACITY) :])) / len(CAPACITY),
                *(("throughput", entry(s, p, r)) for s in (NO_OUT, RIO) for p in CAPACITY),
            )
            for r in classes
        }
        text = "; ".join(f"{NAMES[r]} {e.text(sign=True)}" for r, e in found.items())
        return each_above(found, f"Mean over levels, No-OUT − RIO, Mbit/s: {text}.")

    return judged


def no_out_captures(share: float) -> Callable[[Evidence], Judgement]:
    """A claim on the part of the excess bandwidth at 60 % that best-effort flows get."""

    def judged(evidence: Evidence) -> Judgement:
        excess = CAPACITY[60] - COUNT * sum(PROFILES)
        found = combined(evidence, lambda rate: COUNT * rate / excess, ("throughput", entry(NO_OUT, 60, 0.0)))
        return judge(
            at_least(found, share), f"60 %, share of the excess that best-effort flows get: {found.text()}."
        )

    return judged


def no_out_prevents(tolerance: float, least_mbps: float = 0.0) -> Callable[[Evidence], Judgement]:
    """A claim that every reserved class gets its reservation and no more.

    Args:
        tolerance: The share of the reservation that it may get beyond it.
        least_mbps: What it may get beyond it whatever the share.
    """

    def judged(evidence: Evidence) -> Judgement:
        found = {
            (p, rate): evidence.estimate("throughput", entry(NO_OUT, p, rate))
            for p in CAPACITY
            for rate in RESERVED
        }
        checks = {
            f"{p} %, {NAMES[r]}": at_most(e, r + max(tolerance * r, least_mbps))
            for (p, r), e in found.items()
        }
        text = "; ".join(
            f"{p} % " + ", ".join(f"{NAMES[r]} {found[p, r].text()}" for r in RESERVED) for p in CAPACITY
        )
        return judge(all_of(*checks.values()), f"Mbit/s: {text} ({failing(checks)}).")

    return judged


def no_out_unfair(evidence: Evidence) -> Judgement:
    """Best effort's excess against every reserved class's, and a reserved class below best effort."""
    checks, texts = [], []
    for p in (60, 90):
        excess = {
            r: combined(
                evidence,
                lambda best, rate, reserved=r: best - (rate - reserved),
                ("throughput", entry(NO_OUT, p, 0.0)),
                ("throughput", entry(NO_OUT, p, r)),
            )
            for r in RESERVED
        }
        lower = evidence.difference("throughput", entry(NO_OUT, p, 0.0), entry(NO_OUT, p, 0.1))
        checks += [*(above(e) for e in excess.values()), above(lower)]
        texts.append(
            f"{p} %, excess of best effort − that of "
            + ", ".join(f"{NAMES[r]} {e.text(sign=True)}" for r, e in excess.items())
            + f"; its rate − that of the 0.1 Mbit/s class {lower.text(sign=True)}"
        )
    return judge(all_of(*checks), f"Mbit/s: {'; '.join(texts)}.")


def no_out_fewer_drops(evidence: Evidence) -> Judgement:
    """OUT packets and drops of reserved flows, No-OUT − RIO, and the share of the target that they get."""
    found = {}
    for metric, p in itertools.product(("sent_out", "drops"), CAPACITY):
        pairs = [(metric, entry(s, p, r)) for s in (NO_OUT, RIO) for r in RESERVED]
        found[metric, p] = combined(
            evidence, lambda *n: (sum(n[: len(RESERVED)]) - sum(n[len(RESERVED) :])) / len(RESERVED), *pairs
        )
    words = {"sent_out": "OUT packets", "drops": "drops"}
    text = "; ".join(f"{words[m]} at {p} % {e.text(1, sign=True)}" for (m, p), e in found.items())
    return each_below(found, f"A reserved flow in the run, No-OUT − RIO: {text}.")


def no_out_nearly_reserved(share: float) -> Callable[[Evidence], Judgement]:
    """A claim that every reserved class gets that share of its rate at 60 % and 90 %."""

    def judged(evidence: Evidence) -> Judgement:
        found = {
            (percent, rate): evidence.estimate("throughput", entry(NO_OUT, percent, rate))
            for percent in (60, 90)
            for rate in RESERVED
        }
        text = ", ".join(f"{p} %, {NAMES[rate]}: {e.mean / rate:.3f}" for (p, rate), e in found.items())
        checks = [at_least(e, share * rate) for (_, rate), e in found.items()]
        return judge(all_of(*checks), f"Achieved over reserved rate, {text}.")

    return judged


def no_out_far_from_targets(share: float) -> Callable[[Evidence], Judgement]:
    """A claim that the 1 and the 2 Mbit/s class get less than that share of their targets at 60 %."""

    def judged(evidence: Evidence) -> Judgement:
        found = {rate: evidence.estimate("throughput", entry(NO_OUT, 60, rate)) for rate in (2.0, 1.0)}
        text = ", ".join(f"{NAMES[r]} {e.text()} of {TARGETS[60][r]:.2f}" for r, e in found.items())
        checks = [below(e, share * TARGETS[60][rate]) for rate, e in found.items()]
        return judge(all_of(*checks), f"60 %, Mbit/s: {text}.")

    return judged


def no_out_beats_reserved(least: int) -> Callable[[Evidence], Judgement]:
    """A claim that best effort gets more than so many of the reserved classes."""

    def judged(evidence: Evidence) -> Judgement:
        found = {
            rate: evidence.difference("throughput", entry(NO_OUT, 60, 0.0), entry(NO_OUT, 60, rate))
            for rate in RESERVED
        }
        text = ", ".join(f"{NAMES[rate]} {e.text(sign=True)}" for rate, e in found.items())
        return judge(
            at_least_of(least, [above(e) for e in found.values()]),
            f"60 %, best effort − class, Mbit/s: {text}.",
        )

    return judged


def no_out_at_120(share: float) -> Callable[[Evidence], Judgement]:
    """A claim that rates are near their targets: that share of them, or two fifths as many Mbit/s."""

    def judged(evidence: Evidence) -> Judgement:
        wanted = TARGETS[120]
        found = {rate: evidence.estimate("throughput", entry(NO_OUT, 120, rate)) for rate in PROFILES}
        text = ", ".join(f"{NAMES[rate]} {e.text()} of {wanted[rate]:.3f}" for rate, e in found.items())
        checks = [near(e, wanted[rate], max(share * wanted[rate], 0.4 * share)) for rate, e in found.items()]
        return judge(all_of(*checks), f"120 %, Mbit/s: {text}.")

    return judged


def no_out_levels(share: float) -> Callable[[Evidence], Judgement]:
    """A claim on the error: small at 90 % and 120 %, large at 60 %, and larger there than at both others."""

    def judged(evidence: Evidence) -> Judgement:
        found = {p: evidence.estimate("rmse", cell(NO_OUT, p)) for p in CAPACITY}
        limits = {p: share * mean_target(p) for p in CAPACITY}
        checks = [at_most(found[p], limits[p]) for p in (90, 120)] + [above(found[60], limits[60])]
        checks += [above(evidence.difference("rmse", cell(NO_OUT, 60), cell(NO_OUT, p))) for p in (90, 120)]
        text = ", ".join(f"{p} % {e.text()} ({limits[p]:.2f})" for p, e in found.items())
        return judge(all_of(*checks), f"Error and limit, Mbit/s: {text}.")

    return judged


def no_out_nearer_than_rio(evidence: Evidence) -> Judgement:
    """Judge whether No-OUT works well at high subscription only, and at 90 % has a smaller error than RIO."""
    alone = no_out_levels(FAIRLY_CLOSE)(evidence)
    less = evidence.difference("rmse", cell(NO_OUT, 90), cell(RIO, 90))
    return judge(
        all_of(Check(alone.holds, alone.runs_needed), below(less)),
        f"{alone.evidence} Less RIO's at 90 %: {less.text(sign=True)}.",
    )
