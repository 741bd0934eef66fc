"""The summary of `perhop run`: one line for each class and link, and JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from perhop.measures import catalog
from perhop.runs import footnotes
from perhop.runs.result import Result, describe_runs
from perhop.show import limits
from perhop.show.numbers import rounded
from perhop.show.readable import LEFT_OUT_FIRST, readable
from perhop.show.report import Records, Report, Text, as_text

if TYPE_CHECKING:
    import polars as pl

    from perhop.runs.rows import Row


@dataclass(frozen=True, slots=True)
class Summary:
    """A scenario's outcome in words.

    Attributes:
        classes: One record of strings for each class.
        links: The same for each link.
        populations: The same for each population and range of sizes of its flows.
        applications: By model, the same for each group of users.
        link_classes: The same for each class of packets that a link's queue distinguishes, if any does.
        all_columns: The tables `classes`, `links` and `link_classes` with every column, by name.
        scenario: What was simulated.
        machine: On real packets, one record for each run: how well the machine kept up.
        remarks: What a reader should know of it.
        limited: What kept flows from sending more.
        counted: What the numbers are: what is counted when, and what ± means.
        by_default: Whether nobody said how many runs to make; None where that is not known.
    """

    title: str
    lead: str
    classes: Sequence[Mapping[str, str]]
    links: Sequence[Mapping[str, str]]
    scenario: Mapping[str, Any]
    link_classes: Sequence[Mapping[str, str]] = ()
    populations: Sequence[Mapping[str, str]] = ()
    applications: Mapping[str, Sequence[Mapping[str, str]]] = field(default_factory=dict)
    all_columns: Mapping[str, Sequence[Mapping[str, str]]] = field(default_factory=dict)
    limited: Sequence[str] = ()
    counted: str = ""
    machine: Sequence[Mapping[str, str]] = ()
    remarks: Sequence[str] = ()
    by_default: bool | None = None

    def text(self, width: int | None = None) -> str:
        """The summary as plain text for a terminal of that width; None for no limit."""
        wide = self.all_columns if width is None else {}
        tables = [
            wide.get("classes", self.classes),
            self.populations,
            *self.applications.values(),
            wide.get("links", self.links),
            wide.get("link_classes", self.link_classes),
        ]
        parts = [Records("", table, gives_way=LEFT_OUT_FIRST) for table in tables if table]
        notes = Text([text for text in (*self.limited, self.counted) if text])
        return as_text(Report(self.title, [self.lead], [*parts, notes]), width)


def summarize(result: Result, how: str = "simulated") -> Summary:
    """Return the summary of a result; `how` says how the runs were made."""
    scenario = json.loads(result.scenario)
    of = result.rows
    shown = readable(of.groups, limits.remarkable(result.runs))
    of_links, of_classes, of_populations = map(readable, (of.links, of.link_classes, of.populations))
    rows = (*shown, *of_links, *of_classes, *of_populations)
    return Summary(
        title=result.title,
        lead=describe_runs(result.runs, how),
        classes=shown,
        links=of_links,
        link_classes=of_classes,
        populations=of_populations,
        all_columns={
            name: readable(every, None)
            for name, every in (
                ("classes", of.groups),
                ("links", of.links),
                ("link_classes", of.link_classes),
            )
            if every
        },
        scenario=scenario,
        applications={model: readable(users) for model, users in of.applications.items()},
        counted=footnotes.counted(
            result, {head for row in rows for head in row}, by_default=bool(result.by_default)
        ),
        by_default=result.by_default,
        limited=list(limits.sentences(result.runs, scenario)),
    )


def to_json(result: Result) -> str:
    """Classes and links as JSON text, byte for byte the same for the same scenario, seeds and engine."""
    engine = {"name": result.engine, "reason": result.engine_reason}
    content = {
        **({"engine": engine} if result.engine else {}),
        "seeds": [run.seed for run in result.runs],
        **({} if result.interrupted_of is None else {"interrupted_of": result.interrupted_of}),
        **({} if result.by_default is None else {"runs_by_default": result.by_default}),
        "warmup_s": result.runs[0].raw["warmup_s"],
        **({} if result.warm_up is None else {"warmup": result.warm_up.json()}),
        **({} if result.reached is None else {"until": result.reached.json()}),
        **numbers(result),
        **partial_json(result),
    }
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def numbers(result: Result) -> dict[str, Any]:
    """Every number of the tables as plain data, the same for the same scenario and seeds."""

    def cells(rows: Sequence[Row]) -> list[Row]:
        return [
            {name: value if name in catalog.BOUNDS else plain(value) for name, value in row.items()}
            for row in rows
        ]

    of = result.rows
    applications = {model: cells(rows) for model, rows in of.applications.items()}
    return {
        "classes": cells(of.groups),
        **({"applications": applications} if applications else {}),
        "links": cells(of.links),
        "link_classes": cells(of.link_classes),
        **({"populations": cells(of.populations)} if of.populations else {}),
    }


def frames_of_runs(result: Result) -> dict[str, pl.DataFrame]:
    """Return the frames behind the tables, by name: the flows of each run, and samples over time."""
    return {
        "flows": result.flows,
        "flows-of-populations": result.population_flows,
        "flows-over-time": result.series,
        "queues-over-time": result.queues,
    }


def partial_json(result: Result) -> dict[str, Any]:
    """The measures that some runs lack, as data; nothing where there is none."""
    found = [
        {"table": one.table, "of": one.name, "measure": one.column, "runs": one.runs}
        for one in footnotes.partial(result)
    ]
    return {"partial": found} if found else {}


def plain(value: object) -> object:
    """A cell as JSON has it: null for the end of an interval that is not known."""
    if not isinstance(value, float):
        return value
    return None if math.isinf(value) else rounded(value)
