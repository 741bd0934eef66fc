"""One run, whatever its blocks are: classes in Python have the interpreter to themselves while they run.

The engine's own blocks run beside other threads. Classes in Python hold the interpreter's lock, so of the
runs that go on at once one runs here, and each other one in a process of its own (`worker.py`). What a run
gives does not depend on where it runs.

Ctrl-C must end a class that does not return: a run here is ended by an exception in its thread, a process is
killed. A class that waits in C code, such as `time.sleep`, meets the exception only when that returns: `join`
then leaves its thread behind, and the program ends without it.
"""

from __future__ import annotations

import atexit
import ctypes
import json
import pickle
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from perhop import _engine

if TYPE_CHECKING:
    from perhop.runs.extent import Engine
    from perhop.runs.outcome import Outcome

SIMULATOR = Path(__file__).with_name("worker.py")
_CLASSES = re.compile(r'"(?:aqm|control|marker|model)": ?"python", ?"class": ?"([^":]+):')
_NAP_S = 0.05

PATIENCE_S = 1.0
"""Seconds that a class may take to end after its run was cancelled."""

_here = threading.Lock()
_in_classes: set[int] = set()
"""The threads that run classes."""
_left_behind: list[threading.Thread] = []
_idle: list[subprocess.Popen[bytes]] = []


def modules(scenario: str) -> set[str]:
    """The modules of the classes in Python that a scenario names.

    Args:
        scenario: Canonical JSON.
    """
    return set(_CLASSES.findall(scenario))


def simulate(
    scenario: str, seed: int, cancel: _engine.Cancel, *, engine: Engine | None = None, threads: int = 1
) -> Outcome:
    """Run a scenario once; see `perhop._engine.simulate`.

    Raises:
        ScenarioError: The scenario cannot be run.
        BlockError: A class in Python has failed.
        perhop._engine.Cancelled: `cancel` was set.
    """
    classes = modules(scenario)
    if not classes:
        return _engine.simulate(scenario, seed, cancel, engine=engine, threads=threads)
    if not _here.acquire(blocking=False):
        # A class of the main program cannot be loaded elsewhere: its runs take turns.
        if "__main__" not in classes:
            found = _elsewhere(scenario, seed, cancel, engine)
            if found is not None:
                return found
        while not _here.acquire(timeout=_NAP_S):
            if cancel.is_cancelled():
                raise _engine.Cancelled("cancelled")
    try:
        with interruptible(cancel):
            return _engine.simulate(scenario, seed, cancel, engine=engine)
    finally:
        _here.release()


def join(threads: Sequence[threading.Thread]) -> None:
    """Wait for threads whose runs are done or cancelled, but for a class that does not end only so long."""
    end = time.monotonic() + PATIENCE_S
    try:
        for thread in threads:
            while thread.is_alive():
                thread.join(_NAP_S)
                if time.monotonic() > end and thread.ident in _in_classes:
                    break
    finally:
        _left_behind.extend(thread for thread in threads if thread.is_alive())


def has_left_behind() -> bool:
    """Whether a class is still at work on a thread that nobody waits for."""
    return any(thread.is_alive() for thread in _left_behind)


@contextmanager
def interruptible(cancel: _engine.Cancel) -> Iterator[None]:
    """While a class runs on this thread: once `cancel` is set, it is interrupted until it ends.

    Raises:
        perhop._engine.Cancelled: It was.
    """
    me = threading.get_ident()
    interrupted = False
    _in_classes.add(me)

    def interrupt() -> None:
        nonlocal interrupted
        interrupted = True
        _raise_in(me, KeyboardInterrupt)

    try:
        with _watched(cancel, interrupt):
            try:
                yield
            finally:
                # What has not been raised yet has come too late.
                if interrupted:
                    _raise_in(me, None)
    except KeyboardInterrupt:
        if cancel.is_cancelled():
            raise _engine.Cancelled("cancelled") from None
        raise
    finally:
        _in_classes.discard(me)
        if interrupted:
            _settle(me)


def _settle(me: int) -> None:
    """Let the interpreter forget that exceptions were to be raised in this thread.

    One that is taken back leaves a flag, which it looks at again before every instruction; one that is raised
    clears it.
    """
    try:
        _raise_in(me, KeyboardInterrupt)
        while True:
            time.sleep(0)
    except KeyboardInterrupt:
        return


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    """Raise an exception in a thread before its next instruction in Python, or take back one that waits."""
    raised = None if error is None else ctypes.py_object(error)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), raised)


@contextmanager
def _watched(cancel: _engine.Cancel, interrupt: Callable[[], None]) -> Iterator[None]:
    """Call `interrupt` again and again once `cancel` is set, until the end of the block."""
    over, turn = threading.Event(), threading.Lock()

    def watch() -> None:
        while not over.wait(_NAP_S):
            if cancel.is_cancelled():
                with turn:
                    if not over.is_set():
                        interrupt()

    watcher = threading.Thread(target=watch, name="perhop-watch", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        with turn:
            over.set()


def _elsewhere(scenario: str, seed: int, cancel: _engine.Cancel, engine: Engine | None) -> Outcome | None:
    """The run in another process; None if it failed there, so that it is run here and fails here.

    Raises:
        perhop._engine.Cancelled: `cancel` was set.
    """
    try:
        process = _idle.pop() if _idle else _started()
    except OSError:
        return None
    assert process.stdin is not None
    assert process.stdout is not None
    found: Outcome | None = None
    try:
        with _watched(cancel, process.kill):
            process.stdin.write(pickle.dumps((scenario, seed, engine)))
            process.stdin.flush()
            found = pickle.load(process.stdout)  # noqa: S301 - our own process wrote it
    except (OSError, EOFError, pickle.PickleError):
        if cancel.is_cancelled():
            raise _engine.Cancelled("cancelled") from None
    finally:
        if found is None or cancel.is_cancelled():
            process.kill()
            process.communicate()
        else:
            _idle.append(process)
    return found


def _started() -> subprocess.Popen[bytes]:
    """A process that runs one scenario after the other; it ends when its standard input does."""
    return subprocess.Popen(
        [sys.executable, "-I", str(SIMULATOR), json.dumps(sys.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )


@atexit.register
def _end() -> None:
    """End the processes that wait for work."""
    for process in _idle:
        process.kill()
        process.communicate()
