"""Scenarios and results in notebooks, as HTML: tables and the picture of the network.

All text is escaped, and each picture is an image of its own: neither names of a scenario nor a second picture
on the page can disturb it.
"""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perhop.errors import PerhopError, ScenarioError
from perhop.runs.result import Result, describe_runs
from perhop.scenario import reading
from perhop.scenario.base import Table
from perhop.scenario.warmup import AUTO
from perhop.show.readable import html_table, readable
from perhop.show.text import printable
from perhop.show.topology import ends, network_svg, queue_text, written_out


def of_table(table: Table) -> str:
    """A table of a scenario: its keys; of a whole scenario its network, links and flows."""
    from perhop.scenario.builder import Scenario  # noqa: PLC0415 - its tables show themselves through this module

    if isinstance(table, Scenario):
        return _of_scenario(table)
    try:
        keys = table.to_dict()
    except PerhopError as error:
        return _paragraph(f"{type(table).__name__}: {error}")
    lines = [{"key": key, "value": _value(value)} for key, value in keys.items()]
    return _paragraph(type(table).__name__) + (_html(lines) if lines else "")


def of_result(result: Result) -> str:
    """Return the tables of `perhop run` below the picture of the network."""
    of = result.rows
    found = (of.groups, of.populations, *of.applications.values(), of.links, of.link_classes)
    lead = _paragraph(f"{result.title}: {describe_runs(result.runs)}")
    tables = [_html(readable(rows)) for rows in found if rows]
    return "".join([lead, _network(json.loads(result.scenario)), *tables])


def _of_scenario(scenario: Table) -> str:
    """A scenario with every default filled in; one that cannot be run, with the reason."""
    try:
        read = reading.read(scenario)
    except (PerhopError, ScenarioError) as error:
        title = getattr(scenario, "title", None) or "Scenario"
        return _paragraph(f"{title}: cannot be run. {error}")
    found = json.loads(read.text)
    words = {"0s": "", AUTO: ", the warm-up excluded"}
    warmup = words.get(found["warmup"], f", the first {found['warmup']} excluded")
    lead = f"{found.get('title') or 'Scenario'}: {found['duration']}{warmup}"
    notices = [_paragraph(f"Note: {notice}") for notice in read.notices]
    tables = [list(_links(written_out(found))), list(_flows(found))]
    shown = [_html(table) for table in tables if table]  # the picture describes a large topology in words
    return "".join([_paragraph(lead), *notices, _network(found), *shown])


def _links(scenario: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    for name, link in scenario["links"].items():
        yield {
            "link": name,
            "from": link["from"],
            "to": link["to"],
            "rate": link["rate"],
            "delay": link["delay"],
            "queue": queue_text(link.get("queue")) or "none",
        }


def _flows(scenario: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    for flow in scenario["flows"]:
        transport = flow.get("transport", {})
        kinds = [f"{key} {transport[key]}" for key in ("tcp", "udp", "rap", "tfrc") if key in transport]
        kinds += ["replay"] if "replay" in flow else []
        application = [flow["application"]["model"]] if "application" in flow else []
        profile = flow.get("profile")
        begin, end = ("by matrix", "by matrix") if "between" in flow else ends(scenario, flow)
        yield {
            "class": flow["name"],
            "flows": "come and go" if "arrivals" in flow else str(flow["count"]),
            "from": begin,
            "to": end,
            "sends": " over ".join([*application, *kinds]),
            "profile": "best effort" if profile is None else _profile(profile),
        }


def _profile(profile: Mapping[str, Any] | str) -> str:
    """A profile of the flow's own by its rate; one that several share, by its name."""
    return profile if isinstance(profile, str) else str(profile.get("rate", _value(profile)))


def _network(scenario: Mapping[str, Any]) -> str:
    """The picture of the network as an image, which shares neither ids nor styles with the page."""
    svg, alt = network_svg(scenario)
    data = base64.b64encode(svg.encode()).decode()
    return f'<p><img alt="{_text(alt)}" src="data:image/svg+xml;base64,{data}"></p>'


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _html(lines: Sequence[Mapping[str, str]]) -> str:
    return html_table([{head: printable(text) for head, text in line.items()} for line in lines])


def _paragraph(text: str) -> str:
    return f"<p>{_text(text)}</p>"


def _text(text: str) -> str:
    return html.escape(printable(text))
