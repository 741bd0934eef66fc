"""What tests of sweeps share."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from perhop.sweeps.job import run_sweep
from perhop.sweeps.plan import Given, read_plan

if TYPE_CHECKING:
    from pathlib import Path

    from perhop.sweeps.job import Swept, Workplace


def quietly(path: Path, place: Workplace, given: Given | None = None) -> Swept:
    """Do a sweep in this process, without a word."""
    return run_sweep(
        read_plan(path, given or Given()),
        place,
        say=lambda _: None,
        progress=lambda _what, _total: nullcontext(lambda: None),
    )
