"""Bounds for readers: tables, the reasons where there is none, and derivations step by step."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from perhop import _engine
from perhop.bounds.deriving import Bounds
from perhop.bounds.rows import Entry, classes_of, reason_column, values
from perhop.errors import PerhopError
from perhop.measures.catalog import FLOW_BOUNDS, QUEUE_BOUNDS, SHOWN, Bound
from perhop.show.readable import bound_text
from perhop.show.report import Items, Origin, Part, Records, Report, Text

LEAD = (
    "Bounds by network calculus: no packet of any run exceeds them, whatever the seed, warm-up included, as "
    "long as the traffic is what the scenario says."
)
MOST_PLACES = 6
"""Places without a bound that a reason names; the others are counted."""


def report(bounds: Bounds, *, with_steps: bool = False, origin: Origin | None = None) -> Report:
    """The tables of all bounds, and the reasons where there is none.

    Args:
        bounds: The bounds.
        with_steps: Show the derivations below the tables.
        origin: How to get it again, for a page.
    """
    tables = (
        ("Classes of flows", bounds.rows.classes, FLOW_BOUNDS),
        ("Links", bounds.rows.links, QUEUE_BOUNDS),
        ("Classes of packets at a link", bounds.rows.link_classes, QUEUE_BOUNDS),
    )
    shown: list[Part] = [
        Records(title if origin else "", [_line(row, columns) for row in rows])
        for title, rows, columns in tables
        if rows
    ]
    shown.append(Items("Not guaranteed, and why:", list(_reasons(bounds))))
    shown.append(Text(list(bounds.notes)))
    return Report(
        bounds.title, [LEAD], [*shown, *(items for _, items in _named(bounds) if with_steps)], origin=origin
    )


def _line(row: Mapping[str, Any], bounds: Sequence[Bound]) -> dict[str, str]:
    """A row of a table: the names of what it is about, and its bounds."""
    names = {name: str(row[name]) for name in ("link", "class", "flows") if name in row}
    return {**names, **{_head(one): bound_text(one, row[one.name]) for one in bounds}}


def _head(one: Bound) -> str:
    return SHOWN[one.unit].head(one.summary.long_label)


def _reasons(bounds: Bounds) -> Iterator[list[str]]:
    """Yield each reason why there is no bound, and of what there is none."""
    lacking: dict[str, dict[str, list[str]]] = {}
    queues = [*_without_classes(bounds), *bounds.rows.link_classes]
    for rows, columns in ((bounds.rows.classes, FLOW_BOUNDS), (queues, QUEUE_BOUNDS)):
        for row in rows:
            place = " at ".join(str(row[name]) for name in ("class", "link") if name in row)
            found: dict[str, list[str]] = {}
            for one in columns:
                if (reason := row[reason_column(one)]) is not None:
                    # Reasons of flows name the link.
                    found.setdefault(f"`{row['link']}`: {reason}" if "link" in row else reason, []).append(
                        _what(one)
                    )
            for reason, what in found.items():
                lacking.setdefault(reason, {}).setdefault(_listed(what), []).append(place)
    for reason, places in lacking.items():
        yield [reason, "; ".join(f"{what} of {_few(of)}" for what, of in places.items())]


def _few(places: Sequence[str]) -> str:
    more = [f"{len(places) - MOST_PLACES} more"] if len(places) > MOST_PLACES else []
    return ", ".join([*places[:MOST_PLACES], *more])


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _what(one: Bound) -> str:
    """Name the quantity that is bounded."""
    return one.summary.long_label.removesuffix(" at most").removesuffix(" excluded")


def _without_classes(bounds: Bounds) -> Iterator[dict[str, Any]]:
    """Yield the rows of links whose queues distinguish no classes."""
    with_classes = {row["link"] for row in bounds.rows.link_classes}
    return (row for row in bounds.rows.links if row["link"] not in with_classes)


# ---------------------------------------------------------------- derivations


def derivations(bounds: Bounds, of: str) -> Report:
    """The derivations of a class, a flow, a link or a class of packets at links, step by step.

    Raises:
        PerhopError: The scenario has nothing of this name.
    """
    chosen = [items for names, items in _named(bounds) if of in names]
    if not chosen:
        chosen = [_of_flow(flow, flow["name"]) for flow in bounds.content["flows"] if flow["name"] == of]
    if not chosen:
        known = list(dict.fromkeys(name for names, _ in _named(bounds) for name in names))
        close = difflib.get_close_matches(of, known, 1)
        hint = f"did you mean `{close[0]}`?" if close else f"there are: {', '.join(known) or 'none'}"
        raise PerhopError(f"the scenario has no class, flow or link `{of}`; {hint}")
    return Report(bounds.title, [LEAD], chosen)


def _named(bounds: Bounds) -> Iterator[tuple[list[str], Items]]:
    """Yield the derivation for each class of flows and each queue, and the names that it goes by.

    That of a class is the one of its flow with the largest bound.
    """
    for name, members in bounds.rows.by_class.items():
        flow = max(members, key=_rank)
        which = f" ({flow['name']}, the largest of {len(members)} flows)" if len(members) > 1 else ""
        yield [name], _of_flow(flow, f"{name}{which}")
    for link in bounds.content["links"]:
        for queue in link["classes"]:
            names = [queue["name"], link["name"]] if queue in classes_of(link) else [link["name"]]
            said = _said(values([queue], QUEUE_BOUNDS), QUEUE_BOUNDS)
            yield names, Items(f"{' at '.join(names)}: {said}", _steps(queue))


def _of_flow(flow: Entry, name: str) -> Items:
    route = f" over {', '.join(flow['route'])}" if flow["route"] else ""
    method = f" ({flow['method']})" if flow["method"] else ""
    return Items(f"{name}{route}: {_said(values([flow], FLOW_BOUNDS), FLOW_BOUNDS)}{method}", _steps(flow))


def _rank(flow: Entry) -> float:
    """The order of flows by their bounds: one without a bound is above all."""
    delay: float | None = flow["delay"].get("at_most_s")
    return float("inf") if delay is None else delay


def _said(row: Mapping[str, Any], bounds: Sequence[Bound]) -> str:
    """The bounds of a row in words."""
    said = []
    for one in bounds:
        value, label, unit = row[one.name], one.summary.long_label, SHOWN[one.unit].symbol
        if one.unit == "":
            said.append(label if value else label.replace("excluded", "not excluded"))
        elif value is None:
            said.append(f"no bound of the {_what(one)}")
        else:
            said.append(f"{label} {bound_text(one, value)} {unit}")
    return ", ".join(said)


def _steps(entry: Entry) -> list[list[str]]:
    """The steps of a derivation: each with its formula, and where that is from; else why there is none."""
    listed = [
        [f"{number}. {step['text']}", *filter(None, (step.get("formula"), _cited(step)))]
        for number, step in enumerate(entry.get("steps", ()), 1)
    ]
    of = dict.fromkeys(one.key[0] for one in (*FLOW_BOUNDS, *QUEUE_BOUNDS))
    reasons = dict.fromkeys(entry[key]["reason"] for key in of if "reason" in entry.get(key, {}))
    return [*listed, *([f"No more is guaranteed: {reason}"] for reason in reasons)]


def _cited(step: Mapping[str, Any]) -> str:
    return f"[{step['source']}]" if step.get("source") else ""


def write(out: Path, bounds: Bounds, command: str) -> None:
    """Write the page with all derivations and the network, the bounds of every flow, and the manifest.

    Raises:
        PerhopError: A file cannot be written.
    """
    from perhop.show.page import html_network  # noqa: PLC0415 - pictures load matplotlib
    from perhop.show.report_files import write_report  # noqa: PLC0415

    scenario = json.loads(bounds.scenario)
    origin = Origin(
        command,
        "the bounds of every flow",
        "The same command gives the same bounds on every machine:",
        f"Derived with perhop {_engine.version}",
        "version, scenario, bounds",
    )
    page = report(bounds, with_steps=True, origin=origin)
    network = replace(html_network(scenario, "bound"), title="Network")
    entry = {"scenario": scenario, "bounds": bounds.to_dict()}
    write_report(out, replace(page, parts=[*page.parts, network]), bounds.flows, [entry])
