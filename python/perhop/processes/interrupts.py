"""Ctrl-C and SIGTERM in the command line: a KeyboardInterrupt, but never while modules load.

Modules of other projects take a KeyboardInterrupt for a failure of their own while they load, and databases
make other exceptions of it. So while a program starts, Ctrl-C ends it at once; where a command loads a module
in the middle of its work, the KeyboardInterrupt comes when that is loaded. Where other code fails with an
exception of its own after Ctrl-C, `translated` makes a KeyboardInterrupt of that. Where Python discards the
KeyboardInterrupt, as in a finalizer, it is raised again soon. At the end the command line says what Ctrl-C
leaves, from the last call of `leaves`. Where a class in Python keeps the interpreter's lock in C code, no
handler runs: a thread of the engine then ends the program, 2 s after Ctrl-C, and SIGTERM ends it at once.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import contextmanager

TYPE_CHECKING = False  # as `typing` has it, which takes long to load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from sys import UnraisableHookArgs

EXIT = 130
"""Exit status of a command that Ctrl-C ended; that of another signal is 128 and its number, too."""

_AGAIN_S = 0.01
"""Seconds after which a discarded KeyboardInterrupt is raised again."""


class _State:
    loading = 0
    leaving = False
    deferring = 0
    pending = False
    seen = False
    installed = False
    watched = False
    left: Callable[[], str] | None = None
    status = EXIT


def install() -> None:
    """Take over Ctrl-C and SIGTERM, unless this process is to ignore them, as in a script's background."""
    taken = [one for one in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(one) is not signal.SIG_IGN]
    for one in taken:
        signal.signal(one, _interrupted)
    if not taken:
        return
    _State.installed = True
    if sys.platform != "win32":
        signal.signal(signal.SIGALRM, _again)
    sys.unraisablehook = _discarded


def watch() -> None:
    """Watch, before a class in Python is called, for signals that cannot reach their handlers.

    SIGTERM ends the program at once from now on, and the programs that the class forks.
    """
    if (
        not _State.installed
        or _State.watched
        or sys.platform == "win32"
        or threading.current_thread() is not threading.main_thread()
    ):
        return
    from perhop import _engine  # noqa: PLC0415 - most commands need no watch

    _State.watched = True
    if signal.getsignal(signal.SIGTERM) is _interrupted:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.set_wakeup_fd(_engine.watch_interrupts(), warn_on_full_buffer=False)


@contextmanager
def loading() -> Iterator[None]:
    """While the program starts: Ctrl-C ends it at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _State.loading += 1
    try:
        yield
    finally:
        _State.loading -= 1


@contextmanager
def deferred() -> Iterator[None]:
    """While a command at work loads a module or keeps runs: Ctrl-C acts at the end; a second ends at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _State.deferring += 1
    try:
        yield
    finally:
        _State.deferring -= 1
        if _State.pending and not _State.deferring:
            _State.pending = False
            raise KeyboardInterrupt


@contextmanager
def translated() -> Iterator[None]:
    """Raise KeyboardInterrupt where other code, such as a database, made another exception of Ctrl-C."""
    try:
        yield
    except Exception:
        if _State.seen:
            raise KeyboardInterrupt from None
        raise


def leaves(text: str | Callable[[], str]) -> None:
    """Set what the command line says if Ctrl-C ends the command from now on. Before, nothing was written."""
    _State.left = text if callable(text) else lambda: text


def left() -> str:
    """Return a line on what an interrupted command has left behind."""
    return "interrupted; nothing was written" if _State.left is None else _State.left()


def status() -> int:
    """The exit status of a command that a signal ended."""
    return _State.status


def leave_at_once() -> None:
    """Let Ctrl-C end the program at once from now on: nothing is left that is worth ending in order."""
    _State.leaving = True


def _interrupted(number: int, _frame: object) -> None:
    _State.seen = True
    _State.status = 128 + number
    if _State.watched:
        sys.modules["perhop._engine"].interrupt_handled()
    if _State.loading:
        os.write(2, b"interrupted; nothing was written\n")
    if _State.loading or _State.leaving or _State.pending:
        os._exit(_State.status)
    _raise()


def _raise() -> None:
    if _State.deferring:
        _State.pending = True
        return
    raise KeyboardInterrupt


def _discarded(discarded: UnraisableHookArgs) -> None:
    """Python calls this with an exception that it cannot pass on, as of a finalizer or a callback of C code.

    A timer of the operating system raises the KeyboardInterrupt again. A thread could not: to start it takes
    locks, and the code that was interrupted may hold them.
    """
    if discarded.exc_type is KeyboardInterrupt and _State.seen:
        if sys.platform == "win32":  # which has no such timer
            signal.raise_signal(signal.SIGINT)
        else:
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
    else:
        sys.__unraisablehook__(discarded)


def _again(_number: int, _frame: object) -> None:
    if not _State.leaving:
        _raise()
