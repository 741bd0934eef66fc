"""`perhop store`: look after finished runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perhop.commands import options, terminal
from perhop.processes import interrupts

if TYPE_CHECKING:
    from perhop.stores.verify import Checked

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    help="Look after the stores of finished runs.",
)


@app.callback()
def root() -> None:
    """Keep `verify` a command of its own while it is the only one."""


@app.command("verify", short_help="Check every finished run against its checksum.")
def check(
    directory: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="What --out of `reproduce` or --store of `sweep` and `tune` names."
        ),
    ],
    *,
    delete: Annotated[
        bool, options.flag("--delete", "Remove files that no command reads, and repair what can be repaired.")
    ] = False,
) -> None:
    """Check every finished run that is kept in DIR against its checksum.

    Lists what is broken, what does not belong there, runs in the format of an earlier version, and files that
    a program left unfinished when it was killed. Whole runs are counted, those of other builds of the
    engine apart. None of this affects a result: commands ignore these files and compute their runs again.
    The exit status is 1 where something is broken or does not belong there, else 0.

    \b
    Examples:
      perhop store verify results
      perhop store verify results/store --delete
    """
    with interrupts.loading():
        from perhop.stores import verify
    checked = verify.verify(directory)
    for store in checked:
        _say(store)
    faulty = any(store.faulty for store in checked)
    if delete and any(store.findings for store in checked):
        verify.delete(directory, terminal.note)
        checked = verify.verify(directory)
        terminal.say("\nafter --delete")
        for store in checked:
            _say(store)
        faulty = any(store.faulty for store in checked)
    if faulty:
        raise typer.Exit(1)


def _say(store: Checked) -> None:
    others = f", {store.others} of other builds of the engine" if store.others else ""
    terminal.say(f"{store.directory}: {store.whole} whole runs{others}")
    for found in store.findings:
        terminal.say(f"  {found.kind}: {found.text}")
