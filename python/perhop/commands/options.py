"""The options and arguments that commands share, and how an option of each kind is declared."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from perhop.errors import PerhopError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# ---------------------------------------------------------------- kinds of options


def option(name: str, metavar: str, says: str, **more: Any) -> Any:  # noqa: ANN401 - as typer.Option
    """An option with a value: its name, the placeholder of the value in help, and its help text."""
    return typer.Option(name, metavar=metavar, help=says, **more)


def flag(name: str, says: str) -> Any:  # noqa: ANN401
    """An option without a value."""
    return typer.Option(name, help=says)


def output(name: str, metavar: str, says: str, short: str | None = None) -> Any:  # noqa: ANN401
    """An option that names a file or folder to write."""
    names = [name] if short is None else [name, short]
    return typer.Option(*names, metavar=metavar, parser=_named(name), help=says)


def source(name: str, metavar: str, says: str) -> Any:  # noqa: ANN401
    """An option that names a file to read."""
    return typer.Option(name, metavar=metavar, parser=_named(name), help=says)


def choice(name: str, values: Sequence[str], says: str) -> Any:  # noqa: ANN401
    """An option that takes one of a few values."""

    def parse(text: object) -> str:
        if text not in values:
            raise PerhopError(f"{name} must be {', '.join(values[:-1])} or {values[-1]}, not `{text}`")
        return str(text)

    return typer.Option(name, metavar=f"[{'|'.join(values)}]", parser=parse, help=says)


def runs(counted: str) -> Any:  # noqa: ANN401
    """The option --runs, which counts something else in each command."""
    return option("--runs", "N", f"{counted}, each with its own seed.")


def _named(name: str) -> Callable[[object], Path]:
    """What reads the name of a file or folder; an empty one would quietly mean the current directory."""

    def parse(text: object) -> Path:
        if not str(text):
            raise PerhopError(f"{name}: a name is empty; give one, such as `results`")
        return Path(str(text))

    return parse


# ---------------------------------------------------------------- what is run

Scenario = Annotated[Path, typer.Argument(metavar="SCENARIO.toml", help="A scenario file.")]
Seed = Annotated[
    int,
    option(
        "--seed",
        "S",
        "First seed; runs use S, S+1, ... Random numbers depend on the seed and on the names of groups and "
        "links: renaming one changes the results of a seed.",
    ),
]
SeedOfFile = Annotated[int | None, option("--seed", "S", "First seed (default: the file's).")]
Trials = Annotated[int | None, option("--trials", "N", "How many settings to try.")]
Jobs = Annotated[
    int | None, option("--jobs", "N", "Threads (default: all cores). Results are the same for any number.")
]
Threads = Annotated[
    int | None,
    option(
        "--threads",
        "N",
        "Threads of each run of a large network (default: the cores that the runs leave idle). Results are "
        "the same for any number.",
    ),
]
Engine = Annotated[
    Literal["batched", "reference"] | None,
    choice(
        "--engine",
        ("batched", "reference"),
        "Default: batched if it accepts the network, else reference, which is slower. Same results.",
    ),
]
Store = Annotated[Path, output("--store", "DIR", "Where finished runs are kept.")]
DEFAULT_STORE = Path("results/store")
Backend = Annotated[str, option("--backend", "local|ray", "This machine's cores, or a Ray cluster.")]
Address = Annotated[
    str | None,
    option(
        "--address",
        "HOST:PORT",
        "The Ray cluster, or auto for this machine's; without one, a Ray starts here.",
    ),
]
RealTime = Annotated[
    bool, flag("--real-time/--no-real-time", "Give the router real-time priority where that is allowed.")
]
Device = Annotated[
    Literal["auto", "tun", "packet"],
    choice(
        "--device",
        ("auto", "tun", "packet"),
        "How hosts are joined to the router: by TUN devices, or by packet sockets over Ethernet; "
        "auto takes TUN where it can be opened.",
    ),
]

# ---------------------------------------------------------------- what is written

Out = Annotated[Path | None, output("--out", "DIR", "Write report.html, plots and data there.")]
Json = Annotated[
    Path | None, output("--json", "FILE", "Write the results as JSON, too; - is standard output.")
]
Csv = Annotated[
    Path | None,
    output("--csv", "DIR", "Write the tables as CSV files there, one for each; columns.csv has their units."),
]
AsJson = Annotated[bool, flag("--json", "Print JSON.")]
Wide = Annotated[bool, flag("--wide", "Show all columns of tables, however wide the terminal is.")]
Holm = Annotated[
    bool,
    flag(
        "--holm", "Add a column of verdicts that are corrected for their number: with 95 % none of them errs."
    ),
]
