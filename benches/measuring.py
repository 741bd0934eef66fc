"""What the benchmarks share: programs run on one core, what they cost, and tables of it.

All costs are marginal, (cost of a long run - cost of a short run) / (what the long one did more), so that no
program's start-up counts.
"""

from __future__ import annotations

import os
import re
import shutil
import statistics
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.oracle import process

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

AT_FIRST: frozenset[int] = frozenset(os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ())
"""The cores that this process might use when it began."""


class CountError(RuntimeError):
    """Instructions cannot be counted here; the message says why."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Median and range over repetitions."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """The spread of at least one value."""
        return cls(statistics.median(values), min(values), max(values))

    def text(self, scale: float = 1.0, digits: int = 1) -> str:
        """Median (low..high), times `scale`."""
        middle, low, high = (f"{value * scale:.{digits}f}" for value in (self.median, self.low, self.high))
        return f"{middle} ({low}..{high})"


def marginal(short: tuple[float, float], long: tuple[float, float]) -> float:
    """What one more unit of work costs, from (cost, work) of two runs.

    Raises:
        ValueError: The long run did not do more work.
    """
    (cost, work), (more_cost, more_work) = short, long
    if more_work <= work:
        raise ValueError(f"the long run did {more_work:g}, no more than the short one's {work:g}")
    return (more_cost - cost) / (more_work - work)


def cores() -> int:
    """How many cores this process might use when it began."""
    return len(AT_FIRST) or os.cpu_count() or 1


@contextmanager
def on_all_cores() -> Iterator[None]:
    """Programs that it starts within use all cores that it might use when it began."""
    if not AT_FIRST:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, AT_FIRST)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def stay_on_one_core() -> str:
    """Pins this process, and so the programs that it starts, to one core; says which."""
    if not hasattr(os, "sched_setaffinity"):
        return "on a core of the system's choice"
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    return f"on core {core}"


def machine() -> str:
    """The processor's name, as far as the system says."""
    cpus = Path("/proc/cpuinfo")
    names = re.findall(r"^model name\s*: (.*)$", cpus.read_text(), re.MULTILINE) if cpus.exists() else []
    return names[0] if names else "unknown processor"


@dataclass(frozen=True, slots=True)
class Counted:
    """Instructions that one run executed, and what it printed."""

    instructions: int
    output: str


def count_instructions(command: Sequence[str]) -> Counted:
    """User instructions of one run: by the processor's counter where it may be read, else under valgrind.

    Raises:
        CountError: Neither works here.
    """
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        by_counter = ["perf", "stat", "-x,", "-e", "instructions:u", "-o", str(log), "--", *command]
        by_valgrind = [
            *("valgrind", "--tool=cachegrind", "--cache-sim=no", "--branch-sim=no"),
            *("--cachegrind-out-file=/dev/null", f"--log-file={log}", *command),
        ]
        reasons = []
        for line, found in ((by_counter, r"^(\d+),,instructions"), (by_valgrind, r"I\s+refs:\s+([\d,]+)")):
            if shutil.which(line[0]) is None:
                reasons.append(f"`{line[0]}` is not installed")
                continue
            try:
                output = process.run(line).output
            except process.RunError as error:
                reasons.append(str(error).splitlines()[0])
                continue
            count = re.search(found, log.read_text(errors="replace"), re.MULTILINE)
            if count is not None:
                return Counted(int(count[1].replace(",", "")), output)
            reasons.append(f"`{line[0]}` counts no instructions on this machine")
    raise CountError("; ".join(reasons))


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, markdown: bool) -> str:
    """Rows under a header, for a terminal or for Markdown; the first column is flush left, the rest right."""
    if markdown:
        rule = ["---", *("---:" for _ in header[1:])]
        return "\n".join("| " + " | ".join(line) + " |" for line in (header, rule, *rows))
    widths = [max(len(line[column]) for line in (header, *rows)) for column in range(len(header))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in (header, *rows)
    )


def verdict(*, holds: bool) -> str:
    """As tables say it."""
    return "holds" if holds else "does not hold"
