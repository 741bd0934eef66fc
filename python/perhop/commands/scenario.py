"""`perhop scenario`: the scenario of a cell of a study."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from perhop import _engine
from perhop.commands import terminal
from perhop.errors import PerhopError
from perhop.processes import interrupts

if TYPE_CHECKING:
    from perhop.show.declared import Factors


def scenario(
    study: Annotated[str, typer.Argument(metavar="STUDY", help="A study by id (see `perhop list studies`).")],
    factors: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FACTOR=VALUE", help="Selects one of the study's cells, such as out=10/30/0.01."
        ),
    ] = None,
) -> None:
    """Print the scenario of one cell of a study as TOML, defaults filled in.

    \b
    Examples:
      perhop scenario kim-table1 out=10/30/0.01 > ri+o.toml
      perhop live ri+o.toml
    """
    with interrupts.loading():
        from perhop.studies import selection
    found = selection.study(study)
    wanted = dict(_factor(text) for text in factors or ())
    known = dict.fromkeys(name for cell in found.cells for name in cell)
    unknown = next((name for name in wanted if name not in known), None)
    if unknown is not None:
        raise PerhopError(f"{study} has no factor `{unknown}`; its cells differ by {', '.join(known)}")
    cells = [
        cell for cell in found.cells if all(str(cell.get(name)) == value for name, value in wanted.items())
    ]
    if len(cells) != 1:
        listed = cells or found.cells
        what = (
            f"{len(cells)} cells of {study} match; choose one"
            if cells
            else f"no cell of {study} matches; there are"
        )
        raise PerhopError(f"{what}: {'; '.join(map(_cell, listed))}")
    text = _engine.scenario_to_toml(json.dumps(found.scenario(cells[0])), study)
    terminal.say(f"# {study}: {_cell(cells[0])}\n{text}")


def _factor(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise PerhopError(f"`{text}` is no FACTOR=VALUE, such as scheme=rio")
    return name, value


def _cell(cell: Factors) -> str:
    """A cell as it is named on the command line."""
    return " ".join(
        f"'{name}={value}'" if " " in str(value) else f"{name}={value}" for name, value in cell.items()
    )
