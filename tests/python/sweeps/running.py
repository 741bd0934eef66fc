"""What tests of sweeps share."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from perhop.sweep.job import run_sweep
from perhop.sweep.plan import Given, read_plan

if TYPE_CHECKING:
    from pathlib import Path

    from perhop.sweep.job import Swept, Workplace


def quietly(path: Path, place: Workplace, given: Given | None = None) -> Swept:
    """Do a sweep in this process, without a word."""
    return run_sweep(
        read_plan(path, given or Given()),
        place,
        say=lambda _: None,
        progress=lambda _what, _total: nullcontext(lambda: None),
    )
