"""What judges the claims on overhead: instructions for a packet, and how often a marking rule is computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perhop.statistics.judging import at_most
from perhop.studies.bouras.common import FLOWS, TSW
from perhop.studies.costs import instructions
from perhop.studies.judges import level

if TYPE_CHECKING:
    from perhop.studies.bouras.judges import Case
    from perhop.studies.judges import Judge, Numbers


def extra(rule: str) -> float:
    """Instructions of a drop rule for a packet beyond those of the queue itself."""
    return instructions("aqm", rule) - instructions("aqm", "drop-tail")


def computations(case: Case) -> Numbers:
    """Computations of a flow's marking probability for each packet of scenario 1."""
    return level("computations", case.ours(1))


def fewer_computations(case: Case, most: float) -> Judge:
    """Judge whether TWAM's marking rule is computed far less often than once a packet."""
    return (
        computations(case)
        .all(at_most, most)
        .said(
            "Computations of a flow's marking probability for each packet: {:.4}; TSW2CM computes a rate for "
            "each."
        )
    )


def marks_for_less(case: Case, part: float, *, whole: bool) -> Judge:
    """Judge whether TWAM takes at most this part of TSW2CM's instructions for a packet.

    Args:
        case: What it is judged on.
        part: Of TSW2CM's instructions.
        whole: What an interval takes counts, too, spread over its packets.
    """
    theirs = instructions("meter", TSW)
    found = marking(case, whole=whole).all(at_most, part * theirs)
    return found.said(f"Instructions for a packet: {{:.1}} against {theirs:g}.")


def both_for_less(case: Case, part: float) -> Judge:
    """Judge whether both mechanisms take at most this part of their baselines' instructions."""
    theirs, static = instructions("meter", TSW), extra("wred-out")
    mark, drop = marking(case, whole=True), dropping(case)
    return (mark.all(at_most, part * theirs) & drop.all(at_most, part * static)).said(
        f"Instructions for a packet: TWAM {{:.1}}, TSW2CM {theirs:g}; of the drop rule alone: dynamic WRED "
        f"{{drop:.1}}, static WRED {static:.1f}.",
        drop=drop,
    )


def marking(case: Case, *, whole: bool) -> Numbers:
    """TWAM's instructions for a packet; each flow's windows are read so often for each packet."""
    packet = instructions("meter", "twam")
    interval = instructions("meter", "twam", "per_interval") if whole else 0.0
    return computations(case).scaled(lambda value: packet + interval * (value / FLOWS))


def dropping(case: Case) -> Numbers:
    """Dynamic WRED's instructions for a packet, its updates included."""
    update = instructions("aqm", "dwred", "per_update")
    return computations(case).scaled(lambda value: extra("dwred") + update * (value / FLOWS))
