"""`perhop list`: what perhop knows, as text or JSON."""

from __future__ import annotations

import difflib
import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perhop.commands import options, terminal
from perhop.errors import PerhopError
from perhop.plurals import counted
from perhop.processes import interrupts

if TYPE_CHECKING:
    from perhop.blocks import catalogue


app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    help="List what perhop knows: studies, blocks, measures.",
)

MOST_INDENT = 30
"""The largest indent of text that continues below a parameter, so that it has room."""


@app.command("studies", short_help="Papers' tables and figures, and questions of our own.")
def list_studies(*, as_json: options.AsJson = False, wide: options.Wide = False) -> None:
    """List what `perhop reproduce` reruns: the papers' tables and figures, then questions of our own."""
    with interrupts.loading():
        from perhop import studies
        from perhop.show import table
    if as_json:
        entries = [
            {
                "id": study.id,
                "title": study.title,
                "source": study.source,
                "summary": study.summary,
                "cells": len(study.cells),
                "runs": study.default_runs,
                "extra": study.extra,
                "claims": sum(not claim.finding for claim in study.claims),
                "findings": sum(claim.finding for claim in study.claims),
            }
            for study in studies.STUDIES.values()
        ]
        terminal.say(json.dumps({"studies": entries}, indent=1, ensure_ascii=False))
        return
    width = terminal.width(wide=wide)
    for study in studies.STUDIES.values():
        terminal.say(table.prose(f"{study.id}  {study.title}", width, "", "    "))
        for text in (study.source, study.summary):
            terminal.say(table.prose(text, width, "    "))
        claims = sum(not claim.finding for claim in study.claims)
        runs = f"{counted(study.default_runs, 'run')} of each"
        what = "predictions" if any(claim.why for claim in study.claims) else "claims"
        parts = [counted(len(study.cells), "cell"), runs, f"{what}: {claims}"]
        if claims < len(study.claims):
            parts.append(f"findings of ours: {len(study.claims) - claims}")
        group = studies.group_of(study.id)
        named = f"{group.id}, --all or by name" if group in studies.QUESTIONS else "--all or by name"
        extra = f"; only with {named}" if study.extra else ""
        terminal.say(table.prose(", ".join(parts) + extra, width, "    ") + "\n")
    groups = ", ".join(
        f"perhop reproduce {group.id} what is about {group.about}" for group in studies.QUESTIONS
    )
    terminal.say(
        table.prose(
            f"perhop reproduce reruns the papers' printed items, {groups}, with --all every study.", width
        )
    )


@app.command("blocks", short_help="Queue rules, meters, schedulers, congestion controls.")
def list_blocks(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...", help="Only these, or classes in Python as module:Class; without, all."
        ),
    ] = None,
    *,
    as_json: options.AsJson = False,
    wide: options.Wide = False,
) -> None:
    """List queue rules, meters, schedulers and congestion controls by role and age, with their parameters.

    Each says which paper, RFC, draft or program it follows, and since when Linux has it.
    """
    chosen = _chosen(names or [])
    if as_json:
        terminal.say(json.dumps({"blocks": chosen}, indent=1, ensure_ascii=False))
        return
    width = terminal.width(wide=wide)
    if not names:
        _overview(width)
    for block in chosen:
        _describe(block, width)


@app.command("measures", short_help="What is measured of runs, flows and links.")
def list_measures(*, as_json: options.AsJson = False, wide: options.Wide = False) -> None:
    """List what perhop measures: columns of data frames, metrics of sweeps, units and meanings."""
    with interrupts.loading():
        from perhop.measures import listing
        from perhop.show import table
    if as_json:
        entries = [
            {
                "of": of,
                "column": line.name,
                "metric": line.metric,
                "unit": line.unit,
                "description": line.description,
            }
            for of, lines in listing.lines().items()
            for line in lines
        ]
        terminal.say(json.dumps({"measures": entries}, indent=1, ensure_ascii=False))
        return
    width = terminal.width(wide=wide)
    for of, lines in listing.lines().items():
        terminal.say(f"of a {of}")
        for line in lines:
            names = ", ".join(filter(None, (line.name, line.metric)))
            unit = f" [{line.unit}]" if line.unit else ""
            terminal.say(table.prose(f"{names}{unit}", width, "    "))
            terminal.say(table.prose(line.description, width, "        "))
        terminal.say("")


def _chosen(names: list[str]) -> list[catalogue.Block]:
    """The blocks of these names, or all, by role; a class by its path or its registered name.

    Raises:
        PerhopError: There is no such block or class.
    """
    from perhop.blocks import catalogue, plugins

    classes = [plugins.of_path(name) for name in names if ":" in name]
    names = [name for name in names if ":" not in name]
    if classes and not names:
        return classes
    roles = list(catalogue.ROLES)
    listed = sorted(
        [*catalogue.registered(), *plugins.described()], key=lambda block: roles.index(block["role"])
    )
    known = [block["name"] for block in listed]
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean `{close[0]}`?" if close else "; `perhop list blocks` lists all"
            raise PerhopError(f"no block is called `{name}`{hint}")
    return [block for block in listed if not names or block["name"] in names] + classes


def _overview(width: int | None) -> None:
    """All names by role and age."""
    from perhop.blocks import catalogue, plugins
    from perhop.show import table

    deep = max(map(len, catalogue.ERAS)) + 4
    for role, eras in catalogue.grouped().items():
        terminal.say(table.prose(f"{role}: {catalogue.ROLES[role]}", width, "", "  "))
        for era, members in eras.items():
            text = ", ".join(block["name"] for block in members)
            terminal.say(table.prose(text, width, f"  {era}".ljust(deep), " " * deep))
    classes = ", ".join(f"{block['name']} ({block['role']})" for block in plugins.described())
    if classes:
        terminal.say(table.prose(f"Classes in Python: {classes}", width, "", "  "))
    terminal.say("")
    for era, meaning in catalogue.ERAS.items():
        terminal.say(table.prose(meaning, width, f"  {era}".ljust(deep), " " * deep))
    terminal.say("")


def _describe(block: catalogue.Block, width: int | None) -> None:
    """One block: what it does, where it comes from, what can be set."""
    from perhop.blocks import catalogue
    from perhop.show import table

    age = ", ".join(str(part) for part in (block["role"], block["era"], block["year"]) if part is not None)
    terminal.say(f"{block['name']}  ({age})")
    linux = catalogue.linux(block)
    for text in (block["summary"], f"follows {block['source']}", linux and f"in Linux: {linux}"):
        if text:
            terminal.say(table.prose(text, width, "    "))
    for line, entry in zip(_defaults(block), block["parameters"].values(), strict=True):
        text = f"{entry['description']} [{entry['type']}]"
        if isinstance(entry["default"], dict | list):
            text += f" Default: {json.dumps(entry['default'])}"
        terminal.say(table.prose(text, width, line, " " * min(len(line), MOST_INDENT)))
    terminal.say("")


def _default(parameter: dict[str, Any]) -> str:
    """A parameter's default, or the sign for none."""
    if parameter["default"] is None:
        return "required" if parameter["required"] else "none"
    if isinstance(parameter["default"], dict | list):
        return "see there"  # As long as a line: it is behind the description.
    return json.dumps(parameter["default"]).strip('"')


def _defaults(block: dict[str, Any]) -> list[str]:
    """A block's parameters with their defaults, padded to columns."""
    pairs = {name: _default(parameter) for name, parameter in block["parameters"].items()}
    wide, deep = (max(map(len, texts), default=0) for texts in (pairs, pairs.values()))
    return [f"      {name:{wide}}  {default:{deep}}  " for name, default in pairs.items()]
