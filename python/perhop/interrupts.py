"""Ctrl-C in the command line: while modules load it ends the program at once, else it is a KeyboardInterrupt.

Modules of other projects take a KeyboardInterrupt for a failure of their own while they load, and databases
make other exceptions of it. So loading is never interrupted by an exception, and `seen` says afterwards that
an exception came after Ctrl-C.
"""

from __future__ import annotations

import os
import signal
import threading
from contextlib import contextmanager

TYPE_CHECKING = False  # as `typing` has it, which takes long to load

if TYPE_CHECKING:
    from collections.abc import Iterator

EXIT = 130
"""Exit status of a command that Ctrl-C ended."""


class _State:
    installed = False
    loading = 0
    seen = False


def install() -> None:
    """Take over Ctrl-C, unless this process is to ignore it, as in the background of a shell script."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        return
    signal.signal(signal.SIGINT, _interrupted)
    _State.installed = True


@contextmanager
def loading() -> Iterator[None]:
    """While modules load."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _State.loading += 1
    try:
        yield
    finally:
        _State.loading -= 1


def leave_at_once() -> None:
    """From now on Ctrl-C finds nothing that is worth ending in order."""
    _State.loading += 1


def seen() -> bool:
    """Whether Ctrl-C has come."""
    return _State.seen


def _interrupted(_number: int, _frame: object) -> None:
    _State.seen = True
    if _State.loading:
        os._exit(EXIT)
    raise KeyboardInterrupt
