"""What commands print at the terminal: results, notes, progress, and the command that repeats them."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
import threading
import time
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING

from perhop.errors import PerhopError
from perhop.plurals import lasting

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.progress import Progress


NARROWEST = 40
"""Text is not fitted to less than this many columns."""
BAR_AFTER_S = 0.5
"""Work that takes longer has a bar on a terminal."""
PROGRESS_EVERY_S = 5.0
"""Without a terminal, progress is a line of text this often."""
FIRST_NOTE_S = 1.0
LONG_S = 10.0
"""The first line of progress comes sooner where more than this is left."""
FEWEST_STEPS = 3
"""Whole steps from which a forecast may be made."""


def width(*, wide: bool) -> int | None:
    """Return for how many columns to lay text out: the terminal's, or those of `COLUMNS`; 80 in a pipe.

    Returns:
        None where there is no limit.
    """
    return None if wide else max(NARROWEST, shutil.get_terminal_size((80, 24)).columns)


class Steps:
    """Progress of a command: a bar on a terminal, a line every few seconds in a pipe; call it once a step."""

    def __init__(self, what: str, total: int) -> None:
        """Progress of `total` steps that are called `what`, such as "runs"."""
        self._what, self._total = what, total
        self._done = 0
        self._under_way = 0.0
        self._began = time.monotonic()
        self._note_at = self._began + FIRST_NOTE_S
        self._lock = threading.RLock()
        """Held while something is printed: progress must not stand amid results."""
        self._on_terminal = sys.stderr.isatty()
        self._bar: Progress | None = None

    def __call__(self, total: int | None = None) -> None:
        """One more step is done; of so many in all, if that is not what was thought."""
        if total is not None and total != self._total:
            self._total = total
            if self._bar is not None:
                self._bar.update(self._bar.task_ids[0], total=total)
        self._done += 1
        self._under_way = max(0.0, self._under_way - 1.0)
        self._show()

    def waiting(self, under_way: float) -> None:
        """Steps are under way, which come to so many whole ones; may be called as often as one likes."""
        self._under_way = under_way
        self._show()

    def _show(self) -> None:
        done = min(self._done + self._under_way, self._total)
        with self._lock:
            if self._bar is not None:
                self._bar.update(self._bar.task_ids[0], completed=done)
            elif not self._on_terminal:
                self._note_if_due(done)

    def _note_if_due(self, done: float) -> None:
        now = time.monotonic()
        if now < self._note_at or self._done >= self._total:
            return
        past = now - self._began
        left = self._forecast(past, done)
        if past < PROGRESS_EVERY_S and (left is None or left < LONG_S):
            return
        self._note_at = now + PROGRESS_EVERY_S
        forecast = "" if left is None else f", about {lasting(left)} left"
        note(f"{self._what}: {self._done} of {self._total} after {lasting(past)}{forecast}")

    def _forecast(self, past: float, done: float) -> float | None:
        """Return how many seconds are left, if enough is known: one or two steps alone say too little."""
        if done <= 0 or (self._under_way == 0 and self._done < FEWEST_STEPS):
            return None
        return past * (self._total - done) / done

    @contextmanager
    def running(self) -> Iterator[Steps]:
        """Show the bar; without a terminal write lines, whether or not a step ends meanwhile."""
        ended = threading.Event()
        clock = threading.Thread(
            target=self._begin_bar if self._on_terminal else self._keep_noting, args=(ended,), daemon=True
        )
        clock.start()
        try:
            yield self
        finally:
            ended.set()
            clock.join()
            if self._bar is not None:
                self._bar.stop()

    def _begin_bar(self, ended: threading.Event) -> None:
        """Show the bar, unless the work ends before a reader could see it."""
        if ended.wait(BAR_AFTER_S):
            return
        with self._lock:
            self._bar = _bar(self._what, self._total)
            self._show()
            self._bar.start()

    def _keep_noting(self, ended: threading.Event) -> None:
        while not ended.wait(PROGRESS_EVERY_S):
            self._show()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Take the bar away while results are printed."""
        with self._lock:
            if self._bar is not None:
                self._bar.stop()
            try:
                yield
            finally:
                if self._bar is not None:
                    self._bar.start()


def _bar(what: str, total: int) -> Progress:
    # Not above: most commands end before they need a bar.
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False)
    bar.add_task(what, total=total)
    return bar


def progress(what: str, total: int) -> AbstractContextManager[Steps]:
    """Progress of `total` steps: a bar on a terminal, a line every few seconds in a pipe."""
    return Steps(what, total).running()


_always: list[str] = []


def always(option: str, value: str) -> None:
    """An option of every command that is printed."""
    _always.extend((option, value))


def command(*words: str, **options: object) -> str:
    """What to type to get the same again; options that are None were not given."""
    given = [part for name, value in options.items() if value is not None for part in (name, str(value))]
    return shlex.join(["perhop", *words, *given, *_always])


_CONTROLS = (
    "\\x00-\\x1f\\x7f-\\x9f"  # C0 without exceptions, DEL and C1
    "\\u061c\\u200b\\u200e\\u200f\\u202a-\\u202e\\u2060-\\u206f\\ufeff"  # directions, and what has no width
    "\\u2028\\u2029\\ufff9-\\ufffb\\ud800-\\udfff\\U000e0000-\\U000e007f"
)
_CONTROL = re.compile(f"[{_CONTROLS}]")


def escaped(text: str) -> str:
    """Text on one line in which control characters, line breaks included, stand as escapes.

    Text of a file or an argument may hold sequences that a terminal obeys, or that show it in another order.
    """
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape", "surrogatepass").decode(), text)


def _lines(text: str) -> str:
    """Text of several lines, escaped."""
    return "\n".join(map(escaped, text.split("\n")))


def _out(text: str) -> None:
    with _stdout():
        sys.stdout.write(text)
        sys.stdout.flush()


def out_bytes(data: bytes) -> None:
    """Write JSON, which is UTF-8 whatever the terminal reads; its strings have escapes of their own."""
    text = "\n".join(_CONTROL.sub(_json_escape, line) for line in data.decode().split("\n"))
    with _stdout():
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode())
        sys.stdout.buffer.flush()


def _json_escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2))


@contextmanager
def _stdout() -> Iterator[None]:
    """A full or failing standard output is the user's to mend."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        abandon_stdout()
        raise PerhopError(f"standard output: cannot be written: {error.strerror or error}") from None


def abandon_stdout() -> None:
    """Let what still waits in the buffer go nowhere, so that ending does not fail on it again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say(text: str) -> None:
    """Lines of results, on standard output."""
    _out(_lines(text) + "\n")


def note(text: str) -> None:
    """Lines about the work, on standard error. If nobody reads them, the work goes on."""
    with suppress(OSError):
        sys.stderr.write(_lines(text) + "\n")
        sys.stderr.flush()


def fail(problem: object) -> None:
    """The one line that says why a command cannot do what was asked."""
    note(f"error: {escaped(str(problem))}")


def warn(notices: Iterable[str]) -> None:
    """What a user should know of what was asked for, a line each, on standard error."""
    for notice in notices:
        note(f"warning: {notice}")
