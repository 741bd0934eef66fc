"""What the commands share at the terminal: their common options, progress, and what is said where."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import threading
import time
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from perhop import simulation
from perhop.errors import PerhopError

if TYPE_CHECKING:
    from collections.abc import Iterator


NARROWEST = 40
"""Text is not fitted to less than this many columns."""
PROGRESS_EVERY_S = 5.0
"""Without a terminal, progress is a line of text this often."""


def place(text: object) -> Path:
    """A file name or directory as typed; an empty one would quietly mean the current directory."""
    if not str(text):
        raise PerhopError("--out, --json, --store: a name is empty; give one, such as `results`")
    return Path(str(text))


Runs = Annotated[
    int | None, typer.Option("--runs", metavar="N", help="Independent runs, each with its own seed.")
]
Seed = Annotated[int, typer.Option("--seed", metavar="S", help="First seed; runs use S, S+1, ...")]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs", metavar="N", help="Threads (default: all cores). Results are the same for any number."
    ),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", parser=place, help="Write report.html, plots and data there."),
]
Json = Annotated[
    Path | None,
    typer.Option(
        "--json", metavar="FILE", parser=place, help="Write the results as JSON, too; - is standard output."
    ),
]


Wide = Annotated[
    bool, typer.Option("--wide", help="Show all columns of tables, however wide the terminal is.")
]


def width(*, wide: bool) -> int | None:
    """For how many columns to lay text out: the terminal's, or those of `COLUMNS`; 80 in a pipe.

    Returns:
        None where there is no limit.
    """
    return None if wide else max(NARROWEST, shutil.get_terminal_size((80, 24)).columns)


def seeds(seed: int, runs: int) -> tuple[int, int]:
    """The first seed and the number of runs, checked."""
    if runs > simulation.MAX_RUNS:
        raise PerhopError(f"--runs must be at most {simulation.MAX_RUNS:,}, not {runs}")
    simulation.seeds(seed, runs)
    return seed, runs


class Steps:
    """Progress of a command: a bar on a terminal, a line every few seconds in a pipe; call it once a step."""

    def __init__(self, what: str, total: int) -> None:
        """Progress of `total` steps that are called `what`, such as "runs"."""
        self._what, self._total = what, total
        self._done = 0
        self._began = self._noted = time.monotonic()
        self._lock = threading.RLock()
        """Held while something is printed: a line must not stand amid results."""
        self._bar: Progress | None = None
        console = Console(stderr=True)
        if console.is_terminal:
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
            self._bar = Progress(
                *columns, TimeRemainingColumn(), console=console, transient=True, redirect_stdout=False
            )
            self._bar.add_task(what, total=total)

    def __call__(self) -> None:
        """One more step is done."""
        self._done += 1
        if self._bar is None:
            self._note_if_due()
        else:
            self._bar.advance(self._bar.task_ids[0])

    def _note_if_due(self) -> None:
        with self._lock:
            now = time.monotonic()
            if now - self._noted < PROGRESS_EVERY_S or self._done >= self._total:
                return
            self._noted = now
            past = now - self._began
            left = past * (self._total - self._done) / self._done if self._done else None
            line = f"{self._what}: {self._done} of {self._total} after {past:.0f} s"
            note(line if left is None else f"{line}, about {left:.0f} s left")

    @contextmanager
    def running(self) -> Iterator[Steps]:
        """Show the bar; without a terminal write lines, whether or not a step ends meanwhile."""
        if self._bar is None:
            ended = threading.Event()
            clock = threading.Thread(target=self._keep_noting, args=(ended,), daemon=True)
            clock.start()
            try:
                yield self
            finally:
                ended.set()
                clock.join()
            return
        with self._bar:
            yield self

    def _keep_noting(self, ended: threading.Event) -> None:
        while not ended.wait(PROGRESS_EVERY_S):
            self._note_if_due()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Take the bar away while results are printed."""
        if self._bar is None:
            with self._lock:
                yield
            return
        self._bar.stop()
        try:
            yield
        finally:
            self._bar.start()


def progress(what: str, total: int) -> AbstractContextManager[Steps]:
    """Progress of `total` steps: a bar on a terminal, a line every few seconds in a pipe."""
    return Steps(what, total).running()


def command(*words: str, **options: object) -> str:
    """What to type to get the same again; options that are None were not given."""
    given = [part for name, value in options.items() if value is not None for part in (name, str(value))]
    return shlex.join(["perhop", *words, *given])


def _out(text: str) -> None:
    with _stdout():
        sys.stdout.write(text)
        sys.stdout.flush()


def out_bytes(data: bytes) -> None:
    """For JSON, which is UTF-8 whatever the terminal reads."""
    with _stdout():
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


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
    """A line of results, on standard output."""
    _out(text + "\n")


def note(text: str) -> None:
    """A line about the work, on standard error."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
