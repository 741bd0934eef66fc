"""The command line: `perhop reproduce`, `run`, `live`, `compare`, `sweep`, `tune`, `plan` and others.

`COMMANDS` is the table of all commands. A command's module is loaded when the command is used: help and
completion need the table alone.

Exit status: 0 fine, 1 faults that `store verify` or `check-block` found, differences that `rerun` found or
answers that `course check` found wrong, 2 a request that cannot be met (one line on standard error says why),
3 runs on real packets that are invalid, 130 interrupted by Ctrl-C, 143 by SIGTERM.
"""

from __future__ import annotations

import importlib
import io
import sys
import warnings
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from perhop import _engine
from perhop.commands import terminal
from perhop.errors import ArgumentError, PerhopError, PerhopWarning, ScenarioError
from perhop.files import outputs
from perhop.processes import interrupts, scarcity

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS = (
    ("reproduce", "Rerun papers' tables and figures and judge their claims.", "reproduce:reproduce"),
    ("init", "Ask three questions and write a first scenario.", "init:init"),
    ("import", "Make a scenario of a router's configuration.", "import_:import_"),
    ("export", "Write a link's queue and meters as a router's configuration.", "export:export"),
    ("run", "Simulate a scenario of your own.", "run:run"),
    ("bound", "Derive what no run of a scenario can exceed.", "bound:bound"),
    ("rare", "Estimate rare losses and long waits by splitting.", "rare:rare"),
    ("scenario", "Print a study's scenario, to change it or to run it on real packets.", "scenario:scenario"),
    ("live", "Run a scenario on real packets, with the kernel's TCP.", "live:live"),
    ("compare", "Compare the simulator with real packets, number by number.", "compare:compare"),
    ("witness", "Compare a queue with the kernel's own, packet by packet.", "witness:witness"),
    ("replay", "Replay a capture into a meter, a queue or a link.", "replay:replay"),
    ("topology", "Generate or read a network, describe it, write it as a scenario.", "topology:topology"),
    ("rerun", "Run a report's scenario again and compare every number.", "rerun:rerun"),
    ("sweep", "Simulate a scenario over many settings and seeds.", "sweep:sweep"),
    ("tune", "Search for the best setting, or for the Pareto front.", "tune:tune"),
    ("plan", "Judge promises, and how far each demand can grow.", "plan:plan"),
    ("check-block", "Check a block of your own, a class in Python.", "check_block:check_block"),
    ("explore", "Watch a scenario run in the browser, and change it.", "explore:explore"),
    ("doctor", "Say which parts work on this machine, and why others do not.", "doctor:doctor"),
    ("schema", "Print the JSON Schema of scenarios, sweeps, searches or plans.", "schema:print_schema"),
    ("list", "List what perhop knows: studies, blocks, measures.", "list:app"),
    ("store", "Look after the stores of finished runs.", "store:app"),
    ("course", "Labs of a course; answers checked against runs.", "course:app"),
)
"""The commands: name, one line of help, and the function, or the group of commands, with its module.

A new command is a module with a function, and a line here.
"""
STYLE: dict[str, Any] = {"rich_markup_mode": None, "pretty_exceptions_enable": False, "add_completion": False}


class Commands(TyperGroup):
    """The commands of `COMMANDS`; until one is used, it is a name with a line of help."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 - as of the base class
        super().__init__(**options)
        for name, help_line, _ in COMMANDS:
            self.add_command(_outline(name, help_line))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - as of the base class
        """Load the command that the arguments name."""
        name, outline, rest = super().resolve_command(ctx, args)
        return name, outline if outline is None else loaded(str(name)), rest


def _outline(name: str, help_line: str) -> Any:  # noqa: ANN401 - a class of typer's own
    """A command that has a name and a line of help."""
    app = typer.Typer(**STYLE)
    app.command(name, short_help=help_line)(lambda: None)
    return typer.main.get_command(app)


def loaded(name: str) -> Any:  # noqa: ANN401 - a class of typer's own
    """Load a command by its name. Ctrl-C ends the program at once meanwhile: nothing has been written."""
    help_line, place = next((text, place) for known, text, place in COMMANDS if known == name)
    module, _, function = place.partition(":")
    with interrupts.loading():
        found = getattr(importlib.import_module(f"perhop.commands.{module}"), function)
    if not isinstance(found, typer.Typer):
        app = typer.Typer(**STYLE)
        app.command(name, short_help=help_line)(found)
        found = app
    command = typer.main.get_command(found)
    command.name = name
    return command


app = typer.Typer(
    name="perhop",
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help=(
        "Who gets what at a congested link, and will it stay so when deployed?\n\n"
        "perhop simulates Differentiated Services and active queue management: links, flows, service "
        "profiles and queue rules go in; each flow's throughput against its profile, each class's loss and "
        "delay come out, with 95 % intervals over independent runs.\n\n"
        "Start here:\n\n"
        "\b\n"
        "  perhop reproduce              papers' tables and figures, judged\n"
        "  perhop list studies           which papers' items there are\n"
        "  perhop init                   asks three questions, writes my.toml\n"
        "  perhop import edge.cfg        a router's configuration as a scenario\n"
        "  perhop run my.toml            a scenario of your own\n"
        "  perhop bound my.toml          what no run of it can exceed\n"
        "  perhop rare my.toml           losses of one packet in a million\n"
        "  perhop live my.toml           the same scenario on real packets\n"
        "  perhop compare my.toml        both, and whether they agree\n"
        "  perhop replay in.pcap my.toml packets of a capture at the scenario's link\n"
        "  perhop sweep my-sweep.toml    the same over many settings\n"
        "  perhop tune my-tune.toml      the best setting\n"
        "  perhop plan my-plan.toml      what a configuration promises, and bears\n"
        "  perhop course list            labs for a course"
    ),
)


@app.callback(invoke_without_command=True)
def root(
    *,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    plugin: Annotated[
        list[str] | None,
        typer.Option(
            "--plugin",
            metavar="MODULE",
            help="Register the blocks of a Python module under their own names; may stand behind a command, "
            "and be repeated.",
        ),
    ] = None,
) -> None:
    """Options of `perhop` itself."""
    # Commands say what there is to be said of a scenario themselves, with the name of its file.
    warnings.simplefilter("ignore", PerhopWarning)
    if version:
        terminal.say(f"perhop {_engine.version}")
        raise typer.Exit
    for module in plugin or ():
        from perhop.blocks import plugins

        plugins.register(module)
        terminal.always("--plugin", module)


def main() -> None:
    """Run the command line and exit with its status."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that lacks a sign shows a question mark
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr.reconfigure(errors="backslashreplace")
    warnings.showwarning = _warn  # type: ignore[assignment] # takes what is asked and more
    try:
        sys.exit(_status())
    except KeyboardInterrupt:
        outputs.remove_unused()
        terminal.note(interrupts.left())
        sys.exit(interrupts.status())
    except BrokenPipeError:
        # The reader closed the pipe (`| head`): it needs no more output.
        terminal.abandon_stdout()
        sys.exit(1)
    except Exception as error:
        outputs.remove_unused()
        if not _told(error):
            raise
        sys.exit(2)


def _status() -> int:
    """Run the command; its exit status.

    Raises:
        KeyboardInterrupt: Ctrl-C or SIGTERM ended it.
    """
    with interrupts.translated():
        status: int = app(_plugins_first(sys.argv[1:]), prog_name="perhop", standalone_mode=False)
    if status == interrupts.EXIT:  # what Typer makes of a KeyboardInterrupt
        raise KeyboardInterrupt
    return status


def _plugins_first(words: Sequence[str]) -> list[str]:
    """The words of a command line, with `--plugin MODULE` before the command: it applies to every command."""
    first: list[str] = []
    rest: list[str] = []
    left = iter(words)
    for word in left:
        if word == "--":
            rest += [word, *left]
        elif word == "--plugin":
            first += [word, *(module for module in (next(left, None),) if module is not None)]
        elif word.startswith("--plugin="):
            first.append(word)
        else:
            rest.append(word)
    return [*first, *rest]


def _warn(message: Warning | str, *_place: object) -> None:
    """Other projects' warnings may quote what a file says."""
    terminal.note(f"warning: {message}")


UsageError: type[typer.BadParameter] = next(
    one for one in typer.BadParameter.__mro__ if one.__name__ == "UsageError"
)
"""What typer raises of options and arguments; it has this from another package in some of its versions."""


def _told(error: Exception) -> bool:
    """Say what is wrong; False if it is no fault of the user or the system."""
    match error:
        case ArgumentError():
            terminal.fail(error.of_option)
        case PerhopError() | ScenarioError():
            terminal.fail(error)
        case UsageError():
            text = io.StringIO()
            error.show(text)
            terminal.note(text.getvalue().rstrip("\n"))
        case scarcity.ScarceMemoryError():
            terminal.fail(f"out of memory: {error}")
        case MemoryError():
            more = "give the command fewer --jobs, or a smaller scenario"
            terminal.fail(f"out of memory: {error}; {more}" if str(error) else f"out of memory; {more}")
        case _ if scarcity.is_cause(error):
            terminal.fail(f"out of memory: {error}; raise the limit (ulimit -v)")
        case OSError():
            # Help texts are written by typer; everything else has said what it could not read or write.
            terminal.abandon_stdout()
            terminal.fail(error.strerror or error)
        case _:
            return False
    return True
