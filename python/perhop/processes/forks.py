"""Classes in Python that fork the program: the child must not go on with the simulation.

A child that returns from the class would simulate, too, and write the same results; a class that forks for
each packet would multiply the program without end. So the child ends as it returns to the engine, and the
class has failed in the parent. A child that ends in the class, by `os._exit` or another program, is the
class's own affair; `subprocess` does so.
"""

from __future__ import annotations

import os
import select
import sys
import threading
import traceback
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from perhop import _engine
from perhop.errors import BlockError

if TYPE_CHECKING:
    from collections.abc import Iterator

_HERE = Path(__file__).parent.parent
_LIBRARY = str(Path(os.__file__).parent) + os.sep
_PATIENCE_S = 1.0
"""Seconds that the parent waits for a child to return or to end; later it checks at each call."""


class _State(threading.local):
    loading = 0
    pipe: tuple[int, int, str] | None = None


_state = _State()
_children: list[tuple[int, str]] = []
"""The children: pipes through which they report their return, and the classes that forked them."""
_waited: set[tuple[int, str]] = set()
"""The children that were waited for once."""
_parent: int | None = None
"""The pipe of a child that has not returned; None in the parent."""


@contextmanager
def loading() -> Iterator[None]:
    """While the module of a class loads on this thread.

    Raises:
        BlockError: It has forked.
    """
    _state.loading += 1
    try:
        yield
    finally:
        _state.loading -= 1
        if _parent is not None or _children:
            returned()


def returned() -> None:
    """A class has returned after a fork: a child ends here. The engine calls this.

    Raises:
        BlockError: In the parent, if its child has returned.
    """
    if _parent is not None:
        with suppress(OSError):
            os.write(_parent, str(os.getpid()).encode())
        os._exit(0)
    for child in tuple(_children):
        descriptor, what = child
        ready, _, _ = select.select([descriptor], [], [], _PATIENCE_S if child not in _waited else 0)
        _waited.add(child)
        if not ready:
            continue  # it is at work in the class
        _children.remove(child)
        _waited.discard(child)
        pid = os.read(descriptor, 20)
        os.close(descriptor)
        if pid:
            with suppress(ChildProcessError):
                os.waitpid(int(pid), 0)
            _engine.set_forked(bool(_children))
            raise BlockError(
                f"{what}: it forked the program, and the child returned to the simulation; end a child with "
                "os._exit, or start programs with subprocess"
            )
    _engine.set_forked(bool(_children))


def _before() -> None:
    if not (_engine.inside_class() or _state.loading):
        return
    place = next(
        (
            f"{Path(frame.filename).name}:{frame.lineno}"
            for frame in reversed(traceback.extract_stack())
            if not Path(frame.filename).is_relative_to(_HERE) and Path(frame.filename).is_file()
            if not frame.filename.startswith(_LIBRARY)
        ),
        "a class in Python",
    )
    _state.pipe = (*os.pipe(), place)


def _in_parent() -> None:
    if _state.pipe is None:
        return
    ours, theirs, place = _state.pipe
    _state.pipe = None
    os.close(theirs)
    _children.append((ours, place))
    _engine.set_forked(True)


def _in_child() -> None:
    global _parent  # noqa: PLW0603 - a process has one parent
    if _state.pipe is None:
        return
    ours, theirs, _ = _state.pipe
    _state.pipe = None
    os.close(ours)
    for descriptor, _ in _children:
        os.close(descriptor)
    _children.clear()
    if _parent is not None:
        os.close(_parent)
    _parent = theirs
    _engine.set_forked(True)


if sys.platform != "win32":
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
