"""`perhop list`: what perhop knows, as text or JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perhop import _engine, terminal
from perhop.lazy import Lazy
from perhop.wording import counted

if TYPE_CHECKING:
    from perhop import catalog, studies
    from perhop.output import table
else:
    catalog = Lazy("perhop.catalog")
    studies = Lazy("perhop.studies")
    table = Lazy("perhop.output.table")

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="List what perhop knows: studies, blocks, measures."
)

MOST_INDENT = 30
"""The largest indent of text that continues below a parameter, so that it has room."""
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("studies", short_help="Papers' tables and figures.")
def list_studies(*, as_json: AsJson = False, wide: terminal.Wide = False) -> None:
    """List the papers' tables and figures that `perhop reproduce` reruns."""
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
        parts = [counted(len(study.cells), "cell"), runs, f"claims: {claims}"]
        if claims < len(study.claims):
            parts.append(f"findings of ours: {len(study.claims) - claims}")
        extra = "; only with --all or by name" if study.extra else ""
        terminal.say(table.prose(", ".join(parts) + extra, width, "    ") + "\n")
    terminal.say(
        table.prose("perhop reproduce reruns the papers' printed items, with --all every study.", width)
    )


@app.command("blocks", short_help="Queue rules, meters, schedulers, congestion controls.")
def list_blocks(*, as_json: AsJson = False, wide: terminal.Wide = False) -> None:
    """List queue rules, meters, schedulers and congestion controls, with their parameters."""
    blocks: list[dict[str, Any]] = json.loads(_engine.blocks())
    if as_json:
        terminal.say(json.dumps({"blocks": blocks}, indent=1, ensure_ascii=False))
        return
    width = terminal.width(wide=wide)
    for block in blocks:
        terminal.say(f"{block['name']}  ({block['role']})")
        for text in (block["summary"], block["source"]):
            terminal.say(table.prose(text, width, "    "))
        for line, entry in zip(_defaults(block), block["parameters"].values(), strict=True):
            text = f"{entry['description']} [{entry['type']}]"
            terminal.say(table.prose(text, width, line, " " * min(len(line), MOST_INDENT)))
        terminal.say("")


@app.command("measures", short_help="What is measured of runs, flows and links.")
def list_measures(*, as_json: AsJson = False, wide: terminal.Wide = False) -> None:
    """List what perhop measures: columns of data frames, metrics of sweeps, units and meanings."""
    if as_json:
        entries = [
            {
                "of": of,
                "column": line.name,
                "metric": line.metric,
                "unit": line.unit,
                "description": line.description,
            }
            for of, lines in catalog.lines().items()
            for line in lines
        ]
        terminal.say(json.dumps({"measures": entries}, indent=1, ensure_ascii=False))
        return
    width = terminal.width(wide=wide)
    for of, lines in catalog.lines().items():
        terminal.say(f"of a {of}")
        for line in lines:
            names = ", ".join(filter(None, (line.name, line.metric)))
            unit = f" [{line.unit}]" if line.unit else ""
            terminal.say(table.prose(f"{names}{unit}", width, "    "))
            terminal.say(table.prose(line.description, width, "        "))
        terminal.say("")


def _default(parameter: dict[str, Any]) -> str:
    """A parameter's default, or what stands for none."""
    if parameter["default"] is None:
        return "required" if parameter["required"] else "none"
    return json.dumps(parameter["default"]).strip('"')


def _defaults(block: dict[str, Any]) -> list[str]:
    """A block's parameters with their defaults, padded to columns."""
    pairs = {name: _default(parameter) for name, parameter in block["parameters"].items()}
    wide, deep = (max(map(len, texts), default=0) for texts in (pairs, pairs.values()))
    return [f"      {name:{wide}}  {default:{deep}}  " for name, default in pairs.items()]
