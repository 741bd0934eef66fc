"""Classes of Linux's hfsc as classes of htb: what they are sure of, and the turns in which they share."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from perhop.routers.model import Curves, How, Quantity, Rate, RateUnit, TreeClass, Unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perhop.routers.source import Account

LEAST = 1000.0
"""Bit/s of a class without a rate, which tc refuses."""
PACKET = 1514.0
MOST_QUANTUM = 60_000.0
"""Bytes of the largest turn where turns are in proportion to shares."""


def of_curves(name: str, line: int, rates: Sequence[Rate | None], account: Account) -> TreeClass:
    """A class of hfsc as one of htb; `rates` are those of its real-time, link-sharing and upper-limit curves.

    Its quantum is its share, of which `turns` makes bytes.
    """
    sure, share, most = rates
    rate = sure or share or Rate(LEAST, line=line, text="no rate")
    ceil = Rate(100, RateUnit.PERCENT, 0, How.DEFAULT, "no ul: the link's rate")
    if most is not None:
        ceil = most
    elif share is None and sure is not None:  # without a share it has nothing of what others leave
        ceil = replace(sure, text=f"`{sure.text}` without a share: no more than this")
    if ceil.unit is RateUnit.BPS and rate.number > ceil.number:
        text = f"hfsc class {name}: `{rate.text}` is above `{ceil.text}`, which is its rate here"
        account.find("W16", line, text)
        rate = ceil
    made = TreeClass(name, line, rate, ceil)
    made.curves = Curves(sure.number if sure else 0.0, share.number if share else 0.0)
    turn = share or rate
    made.quantum = Quantity(turn.number, Unit.BYTES, turn.line, How.ASSUMED, text=turn.text)
    return made


def turns(classes: list[TreeClass]) -> None:
    """Make the turns of classes, which are their shares so far, bytes in proportion to them."""
    shares = [made.quantum.number for made in classes if made.quantum is not None]
    unit = min(PACKET, MOST_QUANTUM * min(shares) / max(shares)) / min(shares) if shares else 0.0
    for made in classes:
        if made.quantum is not None:
            said = f"in proportion to `{made.quantum.text}`"
            number = max(1.0, unit * made.quantum.number)
            made.quantum = replace(made.quantum, number=number, line=0, text=said)
