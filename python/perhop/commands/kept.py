"""What the commands share whose runs are kept in a store: `perhop sweep`, `tune` and `plan`."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perhop import extras
from perhop.commands import terminal
from perhop.commands.context import Results
from perhop.files import outputs
from perhop.plurals import counted
from perhop.processes import interrupts

if TYPE_CHECKING:
    from collections.abc import Sequence

Store = Annotated[
    Path,
    typer.Option("--store", metavar="DIR", parser=terminal.place, help="Where finished runs are kept."),
]
Backend = Annotated[
    str, typer.Option("--backend", metavar="local|ray", help="This machine's cores, or a Ray cluster.")
]
Address = Annotated[
    str | None,
    typer.Option(
        "--address",
        metavar="HOST:PORT",
        help="The Ray cluster, or auto for this machine's; without one, a Ray starts here.",
    ),
]
Seed = Annotated[int | None, typer.Option("--seed", metavar="S", help="First seed (default: the file's).")]
DEFAULT_STORE = Path("results/store")


def installed(*parts: extras.Extra, backend: str) -> None:
    """Refuse before anything is made where a part is missing.

    Raises:
        PerhopError: One is.
    """
    for part in (*parts, *([extras.RAY] if backend == "ray" else [])):
        part.demand()


class KeptResults(Results):
    """What `--out`, `--json`, `--csv` and `--wide` of a command ask for whose runs are kept in a store."""

    def __init__(self, store: Path, **asked: Any) -> None:  # noqa: ANN401 - as `Results` takes them
        """Prove, before the work begins, that everything can be written; see `Results`."""
        outputs.prepare_directory(store, "--store")
        super().__init__(**asked)
        self.store = store

    def conclude(self, result: Any, command: str, cores: int) -> None:  # noqa: ANN401
        """Write what was asked for, and print the result.

        Args:
            result: Has `text(width)`, `json()` and `write(folder, command, jobs)`.
            command: What to type for the same.
            cores: How many cores draw.
        """
        if self.out is not None:
            with interrupts.deferred():
                importlib.import_module("perhop.show.page")  # it loads matplotlib
            result.write(self.out, command, cores)
        text = result.json() if self.in_json else ""
        self.write_json(text)
        self.say(result.text(self.width))
        self.write_csv(text)

    def say_counts(self, work: Any) -> None:  # noqa: ANN401
        """Print what the work cost, and where the report is."""
        failed = f", {work.failed} failed" if work.failed else ""
        self.say(
            f"\n{counted(work.simulated, 'run')} simulated, {work.found} reused from {self.store}{failed}"
        )
        self.say_where("")


def end_with(failures: Sequence[Any]) -> None:
    """End with status 1 where a run failed.

    Raises:
        typer.Exit: One did.
    """
    if failures:
        raise typer.Exit(1)
