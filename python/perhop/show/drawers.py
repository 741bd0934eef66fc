"""Pictures drawn on several cores, by processes: the drawing library is not safe in threads.

A drawer is a process of its own (`drawer.py`) that draws one picture after the other, with the same bytes as
if it were drawn here. It has a session of its own, so that Ctrl-C reaches only this process, and it ends when
its standard input does: however this process ends, no drawer outlives it by more than a picture.
"""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, cast

if TYPE_CHECKING:
    from perhop.show.kept import Drawn, KeptPictures

T = TypeVar("T")

DRAWER = Path(__file__).with_name("drawer.py")
PICTURES_FOR_A_DRAWER = 6
"""A drawer takes as long to start as to draw three or four pictures: for fewer than these it does not pay."""
MOST_DRAWERS = 15
"""The most drawers at once: each takes about 100 MB."""
_NAP_S = 0.05


@dataclass(eq=False, slots=True)
class Picturing(Generic[T]):
    """A picture that is to be drawn: a function of a module and its arguments, which can be pickled.

    Attributes:
        kept: Where it is kept once it is drawn.
        over: It has been drawn, or must be drawn here because a drawer could not.
    """

    work: Callable[..., T]
    arguments: tuple[Any, ...]
    kept: KeptPictures | None = None
    over: threading.Event = field(default_factory=threading.Event)
    _drawn: list[T] = field(default_factory=list)

    def draw(self) -> None:
        """Draw it here, unless it is drawn."""
        if not self._drawn:
            self.take(self.work(*self.arguments))

    def take(self, picture: T) -> None:
        """Take the picture that has just been drawn; keep it in the directory of kept pictures, if any."""
        if self.kept is not None:
            self.kept.keep(self.work, self.arguments, cast("Drawn", picture))
        self.give(picture)

    def give(self, picture: T) -> None:
        """Take the drawn picture, and wake whoever waits for it."""
        self._drawn.append(picture)
        self.over.set()

    @property
    def picture(self) -> T:
        """The picture that was drawn."""
        return self._drawn[0]


class Drawers:
    """Draws pictures on so many cores; one of them is the caller's, who helps while it waits."""

    def __init__(self, jobs: int, expected: int, kept: KeptPictures | None = None) -> None:
        """No drawer starts before the first picture is asked for that is not kept.

        Args:
            jobs: How many cores may be used.
            expected: How many pictures there will be, about.
            kept: Pictures that were drawn before; those that are drawn now are added.
        """
        self._kept = kept
        self.most = max(0, min(jobs - 1, expected // PICTURES_FOR_A_DRAWER, MOST_DRAWERS))
        self._waiting: deque[Picturing[Any]] = deque()
        self._change = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._processes: list[subprocess.Popen[bytes]] = []
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End all drawers, whatever they do."""
        with self._change:
            self._closed = True
            self._waiting.clear()
            self._change.notify_all()
            for process in self._processes:
                process.kill()
        for thread in self._threads:
            thread.join()
        for process in self._processes:
            process.communicate()

    def ask(self, work: Callable[..., T], *arguments: object) -> Picturing[T]:
        """Have a picture drawn unless it is kept; without drawers it is drawn at once."""
        asked = Picturing(work, arguments, self._kept)
        if self._kept is not None and (found := self._kept.find(work, arguments)) is not None:
            asked.give(cast("T", found))
        elif not self.most:
            asked.draw()
        else:
            self._queue(asked)
        return asked

    def _queue(self, asked: Picturing[Any]) -> None:
        with self._change:
            self._waiting.append(asked)
            self._change.notify()
            while len(self._threads) < self.most:
                thread = threading.Thread(target=self._have_drawn, name="perhop-drawer", daemon=True)
                self._threads.append(thread)
                thread.start()

    def get(self, asked: Sequence[Picturing[T]]) -> list[T]:
        """The pictures, in this order; this thread draws, too, until all are there.

        Waits are short, so that Ctrl-C gets through.
        """
        for one in asked:
            while not one.over.is_set():
                self._help(one)
            one.draw()
        return [one.picture for one in asked]

    def _help(self, wanted: Picturing[Any]) -> None:
        """Draw a picture that no drawer has begun, this one if that is so; else wait for a moment."""
        with self._change:
            if wanted in self._waiting:
                self._waiting.remove(wanted)
                mine = wanted
            elif self._waiting:
                mine = self._waiting.popleft()
            else:
                mine = None
        if mine is None:
            wanted.over.wait(_NAP_S)
        else:
            mine.draw()

    def _next(self) -> Picturing[Any] | None:
        with self._change:
            self._change.wait_for(lambda: self._closed or self._waiting)
            return None if self._closed else self._waiting.popleft()

    def _have_drawn(self) -> None:
        """One drawer's pictures, on a thread of its own. One that fails is drawn again by who wants it."""
        process = self._started()
        while process is not None and (asked := self._next()) is not None:
            try:
                picture = _drawn(process, asked)
            except (OSError, EOFError, pickle.PickleError):
                picture, process = None, None
            if picture is None:
                asked.over.set()
            else:
                asked.take(picture)

    def _started(self) -> subprocess.Popen[bytes] | None:
        with self._change:
            if self._closed:
                return None
            try:
                process = subprocess.Popen(
                    [sys.executable, "-I", str(DRAWER), json.dumps(sys.path)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    start_new_session=True,
                )
            except OSError:
                return None
            self._processes.append(process)
            return process


def _drawn(process: subprocess.Popen[bytes], asked: Picturing[T]) -> T | None:
    """Return the picture that a drawer makes; None if it fails."""
    try:
        order = pickle.dumps((asked.work, asked.arguments))
    except (pickle.PickleError, AttributeError, TypeError):
        return None
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(order)
    process.stdin.flush()
    picture: T | None = pickle.load(process.stdout)  # noqa: S301 - our own process wrote it
    return picture
