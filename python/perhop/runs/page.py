"""The page of `perhop run` and `perhop live`: who gets what, in words, as a picture, and in tables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from perhop import _engine
from perhop.measures import catalog, finite_flows
from perhop.measures.run import COLORS, REVERSE
from perhop.runs import observing, over_runs, pictures
from perhop.runs.result import Result
from perhop.runs.rows import Row
from perhop.runs.summary import Summary, numbers
from perhop.show.numbers import MISSING, PAGE, count, exact, percent
from perhop.show.page import HtmlNetwork, HtmlPlot, html_network, html_plot
from perhop.show.readable import KEPT, bound_text, end_names
from perhop.show.report import Origin, Part, Records, Report
from perhop.show.report_files import write_report

MOST_ANSWERS = 6
"""Classes that the sentences at the top tell of."""
PROFILES = {"yes": "yes", "no": "no"}
VARIATION = next(entry for entry in catalog.QUEUE if entry.name == "delay_variation_s")


def write_run(out: Path, result: Result, shown: Summary, command: str) -> None:
    """Plots, flows of every run, manifest and the page.

    Raises:
        PerhopError: A file cannot be written.
    """
    plots, network = drawn(result)
    scenario = {
        "seeds": [entry.seed for entry in result.runs],
        **({} if shown.by_default is None else {"runs_by_default": shown.by_default}),
        **({} if result.reached is None else {"until": result.reached.json()}),
        "scenario": json.loads(result.scenario),
        "results": numbers(result),
    }
    report = run_report(result, shown, command, plots, network)
    write_report(out, report, result.flows, [scenario])


def drawn(result: Result) -> tuple[list[HtmlPlot], HtmlNetwork]:
    """The pictures of a run, for its page and for files."""
    plots = [html_plot(plot, rows, "run") for plot, rows in pictures.of_result(result)]
    return plots, html_network(json.loads(result.scenario), "run")


def run_report(
    result: Result, shown: Summary, command: str, plots: Sequence[HtmlPlot], network: HtmlNetwork
) -> Report:
    """The report of a run for a page.

    Args:
        result: The runs.
        shown: What else to show of them.
        command: What to type to get the same page again.
        plots: Its plots, the most important first.
        network: The picture of its network.
    """
    links, classes = _links(result), _classes(result)
    runs = len(result.runs)
    parts: list[Part] = [
        *plots[:1],
        Records(
            "Classes of flows",
            _class_lines(classes),
            notes=[*shown.limited, _explained(classes, runs), shown.counted],
            states=PROFILES,
        ),
        *_records("Flows that come and go", shown.populations),
        *(one for model, lines in shown.applications.items() for one in _records(f"Users: {model}", lines)),
        Records("Links", _with_values([_link(row) for row in links])),
        *_records(
            "Classes of packets at a link",
            _with_values([_link_class(row) for row in result.rows.link_classes]),
        ),
        *_records("How well the machine kept up", shown.machine, shown.remarks),
        *plots[1:],
        replace(network, title="Network"),
    ]
    said = [*_users(result), *_transfers(result), *_answers(classes, runs), _busiest(links)]
    return Report(shown.title, [f"{shown.lead}."], parts, said, _origin(result, shown, command))


def _origin(result: Result, shown: Summary, command: str) -> Origin:
    engine = f" (engine: {text})" if (text := _engine_text(result)) else ""
    same = "The same command gives the same numbers, on any number of cores:"
    if shown.machine:
        same = (
            "The same seeds give the same starts and the same random numbers in the router; the kernel's TCP "
            "differs from run to run:"
        )
    return Origin(
        command,
        "every flow of every run",
        same,
        f"{'On real packets' if shown.machine else 'Simulated'} with perhop {_engine.version}{engine}",
        "version, scenario, seeds",
    )


def _records(title: str, lines: Sequence[Mapping[str, str]], notes: Sequence[str] = ()) -> list[Records]:
    """A table, if it has a line."""
    return [Records(title, lines, notes)] if lines else []


def _links(result: Result) -> list[dict[str, Any]]:
    """The summary of each link, with the delay variation, which pages alone show."""
    places = zip(*(run.raw["links"] for run in result.runs), strict=True)
    queues = observing.link_queues(result.runs, result.scenario, result.warm_up)
    variations: list[Row] = [
        over_runs.columns(VARIATION.name, observing.of_queue(VARIATION, of_link, queue))
        for of_link, queue in zip(places, queues, strict=True)
    ]
    of_links = zip(result.rows.links, result.rows.decided(variations), strict=True)
    return [{**row, **variation} for row, variation in of_links]


def _classes(result: Result) -> list[dict[str, Any]]:
    """The means of each class, and whether it is of users (`of_users`)."""
    users = {
        users["name"] + way for users in result.runs[0].raw.get("applications", ()) for way in ("", REVERSE)
    }
    return [{**row, "of_users": row["class"] in users} for row in result.rows.groups]


def _engine_text(result: Result) -> str:
    """The engine of a simulation, and why, if it was the reference engine; empty for real packets."""
    if result.engine is None or result.engine_reason is None:
        return result.engine or ""
    return f"{result.engine}: {result.engine_reason}"


def _profile_kept(row: Mapping[str, Any]) -> str:
    """Whether a flow of the class gets its profile rate, by the interval; empty for best effort."""
    if not row["profile_bps"] or row["flows"] is None or row["of_users"]:
        return ""  # Users, and flows that come and go, do not always have data to send.
    if row["throughput_low_bps"] is None:
        return "cannot tell"
    if row["throughput_low_bps"] >= row["profile_bps"]:
        return "yes"
    return "no" if row["throughput_high_bps"] < row["profile_bps"] else "cannot tell"


def _answers(classes: Sequence[Mapping[str, Any]], runs: int) -> list[str]:
    """Yield a sentence on the throughput of each class whose flows always have data."""
    classes = [row for row in classes if not row["of_users"] and row["flows"] is not None]
    said = [_answer(row, runs) for row in classes[:MOST_ANSWERS]]
    rest = len(classes) - MOST_ANSWERS
    return [*said, f"{rest} more classes are in the table below."] if rest > 0 else said


def _users(result: Result) -> list[str]:
    """Yield a sentence on each group of users of applications."""
    said = []
    for model, rows in result.rows.applications.items():
        shown = [one for one in catalog.APPLICATION[model] if one.importance == KEPT]
        for row in rows:
            parts = [
                f"{one.label} {_estimated(row, one.name, one.unit)} {catalog.SHOWN[one.unit].word}".rstrip()
                for one in shown
                if row[one.name] is not None
            ]
            if not shown and row["mos"] is not None:
                parts = [f"MOS {_estimated(row, 'mos', '')}"]
            said.append(
                f"**{_plain(row['class'])}** ({model}): {'; '.join(parts) or 'nothing was complete'}."
            )
    return said[:MOST_ANSWERS]


def _transfers(result: Result) -> list[str]:
    """Return how long flows that come and go take, a sentence for each population."""
    said = []
    for row in result.rows.populations:
        if row["sizes"] != "all":
            continue
        name, some = f"**{_plain(row['class'])}**", row["unfinished"] and row["completion_mean_s"] is not None
        if row["completion_p50_s"] is None:
            most = "most of the flows that began after the warm-up were unfinished at the end of the run"
            said.append(f"{name}: {most if some else 'no flow that began after the warm-up completed'}.")
            continue
        half = _estimated(row, "completion_p50_s", "s")
        text = f"{name}: half of the flows complete within {half} ms"
        if row["completion_p99_s"] is not None:
            text += f", 99 % within {_estimated(row, 'completion_p99_s', 's')} ms"
        elif some and row["flows_begun"] >= finite_flows.FEWEST_FOR_P99:
            unfinished = percent(row["unfinished"] / row["flows_begun"])
            text += f" ({unfinished} % were unfinished, which leaves the 99th percentile open)"
        slowdown = _estimated(row, "slowdown_mean", "")
        said.append(f"{text}; on average they take {slowdown} times as long as on an idle path.")
    return said[:MOST_ANSWERS]


def _answer(row: Mapping[str, Any], runs: int) -> str:
    if row["throughput_bps"] is None:
        return f"**{_plain(row['class'])}**: never active in the measured time."
    mean = _estimated(row, "throughput_bps", "bit/s")
    text = f"**{_plain(row['class'])}**: {mean} Mbit/s per flow"
    if not row["profile_bps"]:
        return f"{text}, best effort."
    share = percent(row["throughput_bps"] / row["profile_bps"])
    verdict = {
        "yes": "**the profile holds**",
        "no": "**the profile does not hold**",
        "cannot tell": "one run has no interval, so this cannot tell whether the profile holds"
        if runs == 1
        else "the interval contains the profile, so these runs **cannot tell** whether it holds",
    }[_profile_kept(row)]
    return f"{text}, {share} % of its profile of {exact(row['profile_bps'] / 1e6)} Mbit/s; {verdict}."


def _plain(name: str) -> str:
    """A name within Markdown: its own stars and backticks are no marks."""
    return str(name).replace("*", "∗").replace("`", "ˋ")


def _busiest(links: Sequence[Mapping[str, Any]]) -> str:
    """Return a sentence on the link with the highest utilization."""
    row = max(links, key=lambda link: link["utilization"] or 0.0)
    used = _estimated(row, "utilization", "fraction")
    others = " (the most used link)" if len(links) > 1 else ""
    text = f"**{_plain(row['link'])}**{others} is {used} % used"
    if row["delay_p95_s"] is None:
        return f"{text}."
    waits = _estimated(row, "delay_p95_s", "s")
    queue = _estimated(row, "mean_queue_packets", "packets")
    return f"{text}; its queue holds {queue} packets on average, and 95 % of packets wait at most {waits} ms."


def _class_lines(classes: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """One line for each class; columns that no class has are left out."""
    colors = [color for color in COLORS if any(row[f"dropped_{color}"] is not None for row in classes)]
    heads = {color: f"{color} lost, %" if len(colors) > 1 else "lost, %" for color in colors}
    own = {"throughput_bps", *(f"dropped_{color}" for color in COLORS)}
    measured = [entry for entry in catalog.CLASS if entry.name and entry.name not in own]
    others = list(catalog.beside(measured, catalog.FLOW_BOUNDS))
    lines = []
    for row in classes:
        line = {
            "class": str(row["class"]),
            "flows": MISSING if row["flows"] is None else count(row["flows"]),
            "throughput, Mbit/s per flow": _estimated(row, "throughput_bps", "bit/s"),
            "profile, Mbit/s": exact(row["profile_bps"] / 1e6) if row["profile_bps"] else "best effort",
            "profile holds": _profile_kept(row),
            **{head: _estimated(row, f"dropped_{color}", "fraction") for color, head in heads.items()},
            **{_head(entry): _cell(row, entry) for entry in others},
        }
        lines.append(line)
    always = {"class", "flows", "throughput, Mbit/s per flow"}
    empty = {head for head in lines[0] if all(line[head] in {MISSING, "", "best effort"} for line in lines)}
    kept = [head for head in lines[0] if head in always or head not in empty]
    return [{head: line[head] for head in kept} for line in lines]


def _head(entry: catalog.Measure | catalog.ClassMeasure | catalog.Bound) -> str:
    """Return the head of a measure's column."""
    assert entry.summary is not None
    return catalog.SHOWN[entry.unit].long_head(entry.summary.long_label)


def _cell(row: Mapping[str, Any], entry: catalog.Measure | catalog.ClassMeasure | catalog.Bound) -> str:
    """A measure with its interval, or a bound."""
    if isinstance(entry, catalog.Bound):
        return bound_text(entry, row[entry.name])
    return _estimated(row, entry.name, entry.unit)


def _estimated(row: Mapping[str, Any], name: str, unit: catalog.Unit) -> str:
    """The mean over the runs that have a value, with its interval."""
    if row[name] is None:
        return MISSING
    factor = catalog.SHOWN[unit].factor
    ends = (None if row[end] is None else row[end] * factor for end in end_names(name))
    return PAGE.estimated(row[name] * factor, *ends)


def _explained(classes: Sequence[Mapping[str, Any]], runs: int) -> str:
    if runs == 1:
        return "Means over the flows of a class in one run, which has no interval."
    means = "Means over the flows of a class, with 95 % intervals over runs."
    if not any(row["profile_bps"] and not row["of_users"] for row in classes):
        return means
    return (
        f"{means} A profile holds where the interval of the throughput lies at or above it, and does not "
        "hold where it lies below."
    )


def _with_values(lines: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    """Records without the columns in which no line has a value."""
    kept = [head for head in next(iter(lines), {}) if any(line[head] != MISSING for line in lines)]
    return [{head: line[head] for head in kept} for line in lines]


def _link(row: Mapping[str, Any]) -> dict[str, str]:
    notified = {"notified per run": _by_reason(row, "notified_")}
    entries = catalog.beside(catalog.in_tables((*catalog.LINK, *catalog.QUEUE)), catalog.QUEUE_BOUNDS)
    return {
        "link": str(row["link"]),
        **{_head(entry): _cell(row, entry) for entry in (*entries, VARIATION)},
        "drops per run": _by_reason(row, "dropped_"),
        **(notified if any(name.startswith("notified_") for name in row) else {}),
    }


def _link_class(row: Mapping[str, Any]) -> dict[str, str]:
    entries = catalog.beside(catalog.in_tables(catalog.QUEUE, classes=True), catalog.QUEUE_BOUNDS)
    return {
        "link": str(row["link"]),
        "packets": str(row["class"]),
        "per run": count(row["arrived_packets"]),
        **{_head(entry): _cell(row, entry) for entry in entries},
    }


def _by_reason(row: Mapping[str, Any], prefix: str) -> str:
    counts = {
        name.removeprefix(prefix): value for name, value in row.items() if name.startswith(prefix) and value
    }
    return ", ".join(f"{reason} {count(value)}" for reason, value in counts.items()) or "none"
