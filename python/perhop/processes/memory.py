"""Memory: how much there is, and whether runs fit into it; better refused than ended by the system.

What flows and samples take is known before a run (`perhop._engine.memory`). Packets that wait or are on their
way are not: `Guard` stops runs whose packets are about to take the last of it.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perhop import _engine
from perhop.errors import PerhopError
from perhop.plurals import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

if sys.platform == "win32":
    PAGE = 4096
else:
    import resource

    PAGE = resource.getpagesize()
RESERVE = 256_000_000
"""Bytes that runs leave to the rest of the program."""
GROWN = 256_000_000
"""A program that has not grown by this many bytes is not what memory is short for."""


@dataclass(frozen=True, slots=True)
class Free:
    """The memory that this process may still take.

    Attributes:
        bytes: How much.
        limit: What sets the limit, in words.
        address_space: It counts what is reserved, not what is used.
    """

    bytes: int
    limit: str
    address_space: bool = False


def free() -> Free | None:
    """The tightest of all limits; None where the system gives none."""
    return min(_limits(), key=lambda one: one.bytes, default=None)


def fitting(scenario: str, runs: int, jobs: int | None, cores: int) -> tuple[int, int]:
    """Return how many runs of a scenario may be simulated at a time, and how many bytes all runs then take.

    Args:
        scenario: Canonical JSON.
        runs: How many there are; the results of all are kept.
        jobs: How many at a time were asked for; None for as many as there are cores and memory for.
        cores: How many cores there are.

    Raises:
        PerhopError: They do not fit into memory; the message says what takes how much.
    """
    there = free()
    need = _engine.memory(scenario)
    at_once = min(cores if jobs is None else jobs, runs)
    # A run that is on will be kept, too: its samples stay where they are, and its flows give way to results.
    kept, flows = need["kept_bytes"], need["flow_bytes"] + need["link_bytes"]
    if there is None or runs * kept + at_once * flows < RESERVE:
        return at_once, runs * kept + at_once * flows
    room = there.bytes - RESERVE - runs * kept
    possible = room // max(flows, 1)
    if possible < (at_once if jobs is not None else 1):
        total = runs * kept + (at_once if jobs is not None else 1) * flows
        several = f", {at_once} at a time" if jobs is not None and at_once > 1 else ""
        raise PerhopError(
            f"not enough memory: {need['text']}, and its results {_gigabytes(kept)}; for "
            f"{counted(runs, 'run')}{several} that is about {_gigabytes(total)}, and "
            f"{_gigabytes(there.bytes)} are free ({there.limit}); use {_remedies(scenario, need, runs, jobs)}"
        )
    at_once = min(at_once, possible)
    return at_once, runs * kept + at_once * flows


def _remedies(scenario: str, need: Mapping[str, Any], runs: int, jobs: int | None) -> str:
    """Return changes that make the runs smaller by a tenth at least, the largest saving first."""
    at_once = 1 if jobs is None else min(jobs, runs)
    records = need["run_bytes"] - need["flow_bytes"] - need["link_bytes"] - need["sample_bytes"]
    others = need["kept_bytes"] - need["sample_bytes"] - records
    # The results of links count where links do; beside them those of flows are small.
    of_flows, of_links = (0, others) if need["links"] and need["link_bytes"] else (others, 0)
    fewer_results = (
        "`results` of [topology] with only the tiers whose links you need"
        if "topology" in json.loads(scenario)
        else "fewer links with a queue"
    )
    takes = {
        "fewer flows": need["flow_bytes"] * at_once + of_flows * runs,
        "fewer routers and links": need["link_bytes"] * at_once,
        fewer_results: of_links * runs,
        "fewer flows that come and go": records * runs,
        "a longer `interval` of [probes]": need["sample_bytes"] * runs,
    }
    tenth = sum(takes.values()) / 10
    counts = [f"fewer {name}" for name, count in (("--runs", runs), ("--jobs", at_once)) if count > 1]
    found = [*counts, *sorted((what for what in takes if takes[what] > tenth), key=lambda what: -takes[what])]
    return " or ".join(part for part in (", ".join(found[:-1]), found[-1]) if part)


def share(jobs: int) -> int | None:
    """The most that each of so many runs at a time may take; None where the system gives no limit."""
    there = free()
    return None if there is None else max(there.bytes - RESERVE, RESERVE) // jobs


class Guard:
    """Watches memory while runs are on."""

    def __init__(self, expected: int = 0) -> None:
        """Begins with what the program takes now, and with how many bytes the runs will take for certain."""
        self._begun = _sizes()
        self._expected = expected

    def check(self) -> None:
        """Called many times a second.

        Raises:
            PerhopError: Memory is about to run out.
        """
        there = free()
        if there is None:
            return
        grown = _sizes()[not there.address_space] - self._begun[not there.address_space] - self._expected
        if grown < GROWN:
            return
        # What grows is moved to twice the room from time to time, which address space must have beside it.
        if there.bytes < RESERVE + (grown if there.address_space else 0):
            raise PerhopError(
                "stopped before memory runs out: packets in queues and in transit take "
                f"{_gigabytes(grown)}, and {_gigabytes(there.bytes)} are free ({there.limit}); lower the "
                "limits of queues (a link without `queue` has no limit), the rates of UDP flows, or --jobs"
            )


def _limits() -> Iterator[Free]:
    if sys.platform != "win32":
        for number, name in ((resource.RLIMIT_AS, "ulimit -v"), (resource.RLIMIT_DATA, "ulimit -d")):
            most = resource.getrlimit(number)[0]
            if most != resource.RLIM_INFINITY:
                yield Free(max(most - _sizes()[0], 0), f"{name}: {_gigabytes(most)}", address_space=True)
    yield from _control_groups()
    for line in _lines(Path("/proc/meminfo")):
        if line.startswith("MemAvailable:"):
            yield Free(int(line.split()[1]) * 1024, "of this machine's memory")


def _control_groups() -> Iterator[Free]:
    """Limits of the control groups that this process is in, containers among them."""
    for line in _lines(Path("/proc/self/cgroup")):
        _, controllers, name = line.split(":", 2)
        if controllers == "":
            root, most, used = Path("/sys/fs/cgroup"), "memory.max", "memory.current"
        elif "memory" in controllers.split(","):
            root, most, used = Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        here = root / name.strip("/")
        for group in (here, *here.parents):
            if not group.is_relative_to(root):
                break
            limit, current = _number(group / most), _number(group / used)
            if limit is not None and current is not None and limit < 1 << 60:
                # Cached files are counted as used, and make room.
                cached = next(
                    (
                        int(entry.split()[1])
                        for entry in _lines(group / "memory.stat")
                        if entry.startswith("inactive_file ")
                    ),
                    0,
                )
                yield Free(max(limit - current + cached, 0), f"control group: {_gigabytes(limit)}")


def _sizes() -> tuple[int, int]:
    """Bytes of address space, and of memory in use."""
    for line in _lines(Path("/proc/self/statm")):
        size, resident = line.split()[:2]
        return int(size) * PAGE, int(resident) * PAGE
    return 0, 0


def _number(path: Path) -> int | None:
    return next((int(line) for line in _lines(path) if line.strip().isdigit()), None)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return []


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:.1f} GB"
