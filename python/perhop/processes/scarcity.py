"""Little address space, as of `ulimit -v`: what is loaded takes less of it; what does not fit is refused.

Libraries start a thread for each processor, and the C library reserves 64 MB for the memory of each thread.
Where they cannot have it, they end the program without a word that says why. So under a limit the program
starts itself again with fewer threads, and refuses to load what does not fit.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # as `typing` has it, which takes long to load

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

AMPLE = 6_000_000_000
"""Bytes of address space that are no limit."""
SPARING = {
    "MALLOC_ARENA_MAX": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "POLARS_MAX_THREADS": "1",
    "RAYON_NUM_THREADS": "1",
}
NEEDS = {"numpy": 460_000_000, "polars": 370_000_000}
"""Bytes that a command takes from when it loads a library until its end, if its runs are small."""
_MARK = "PERHOP_SPARING"


def limit() -> int | None:
    """Return the bytes of address space or data that this process may have; None if ample or not known."""
    if sys.platform == "win32":
        return None
    import resource  # noqa: PLC0415 - Windows has none

    limits = [resource.getrlimit(number)[0] for number in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    tight = [one for one in limits if one != resource.RLIM_INFINITY and one < AMPLE]
    return min(tight, default=None)


def prepare() -> None:
    """Begin the program under a limit of memory: use little, and watch what is loaded."""
    if limit() is None:
        return
    if _MARK not in os.environ and sys.platform == "linux" and _is_program():
        kept = {name: value for name, value in SPARING.items() if name not in os.environ}
        os.execve(  # noqa: S606 - this program
            sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, **kept, _MARK: "1"}
        )
    sys.meta_path.insert(0, _Watch())


def _is_program() -> bool:
    """Return whether this process was started with the words that it works on."""
    words = sys.argv[1:]
    return sys.orig_argv[len(sys.orig_argv) - len(words) :] == words


class ScarceMemoryError(MemoryError):
    """A command needs more memory than a limit of the user's allows."""


class _Watch:
    """Is asked for every module before it loads, and finds none."""

    @staticmethod
    def find_spec(name: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None) -> None:
        """Refuse a library that does not fit any more.

        Raises:
            ScarceMemoryError: It does not.
        """
        if sys.platform == "win32" or name not in NEEDS:
            return
        most = limit()
        if most is None:
            return
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - `pathlib` may not be loaded
            taken = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        if most - taken < NEEDS[name]:
            raise ScarceMemoryError(
                f"this command takes at least {(taken + NEEDS[name]) / 1e6:.0f} MB of address space, and the "
                f"limit is {most / 1e6:.0f} MB; raise it (ulimit -v, ulimit -d)"
            )


def is_cause(error: BaseException) -> bool:
    """Whether an error that nobody expects is most likely one of too little memory."""
    if limit() is None:
        return False
    text = str(error).lower()
    return any(sign in text for sign in _SIGNS)


_SIGNS = (
    "can't start new thread",
    "cannot allocate memory",
    "could not spawn threads",
    "failed to map segment",
    "failed to spawn thread",
    "resource temporarily unavailable",
)
"""Messages of libraries that get no memory."""
