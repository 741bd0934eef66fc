"""The notes below the tables of a run: which packets count, what columns mean, and what runs lack."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from perhop.measures import catalog, finite_flows, flow_table, naming
from perhop.measures.run import Run
from perhop.plurals import lasting
from perhop.runs import budget, observing, populations
from perhop.runs.result import Result
from perhop.scenario.traces import traces
from perhop.show.numbers import exact
from perhop.show.readable import HEADS, LOSS, end_names


def counted(result: Result, heads: Collection[str], *, by_default: bool) -> str:
    """Footnotes: which packets count, how many runs there are, and what each column in `heads` means."""
    warmup = result.runs[0].raw["warmup_s"]
    excluded = f"the first {exact(warmup)} s{_how(result)}"
    sentences = [
        f"All figures exclude the warm-up ({excluded}), loss and drops included."
        if warmup
        else f"All figures are of the whole run: {_no_warmup(result)}."
    ]
    if any(head.endswith(LOSS) for head in heads):
        sentences.append("Lost: packets dropped, of those that arrived.")
    if len(result.runs) > 1:
        cut = "" if result.interrupted_of is None else f" of {result.interrupted_of}, as it was interrupted"
        sentences.append(f"{len(result.runs)} runs{cut}; ± or in brackets: the 95 % interval.")
        if _are_alike(result):
            sentences.append(
                "All runs are the same: no random number decides anything here, and intervals say nothing."
            )
        if result.reached is not None:
            sentences.append(result.reached.sentence())
        if by_default:
            sentences.append(budget.reason(len(result.runs)))
    else:
        sentences.append(f"1 run: no interval; --runs {30 if result.engine else 5} gives intervals.")
    sentences += _explained(result, heads)
    return " ".join(sentences)


def _are_alike(result: Result) -> bool:
    """Whether all runs had the same events and carried the same."""
    first, *others = result.runs
    return result.engine is not None and all(
        run.raw["events"] == first.raw["events"]
        and _mean_queues(run) == _mean_queues(first)
        and (run.flows("delivered_bytes") == first.flows("delivered_bytes")).all()
        for run in others
    )


def _mean_queues(run: Run) -> list[float]:
    return [link["mean_queue_packets"] for link in run.raw["links"]]


def _how(result: Result) -> str:
    return "" if result.warm_up is None else f", {result.warm_up.why}"


def _no_warmup(result: Result) -> str:
    return "its warm-up is 0 s" if result.warm_up is None else result.warm_up.why


_MOSTLY = 0.9
"""A flow that is active for less of the measured time has a rate that is not a part of the link's."""

_COLUMNS = {
    HEADS["jitter_s"]: "Jitter: RFC 3550, from host to host.",
    HEADS["policing_ratio"]: "Policed: packets that the meter dropped, of those sent.",
    HEADS["late_ratio"]: "Late: for the play-out buffer, of the packets that arrived.",
    HEADS["call_r"]: "R, MOS: E-model of ITU-T G.107, without echo.",
    "FCT": "FCT: flow completion time; unfinished flows count by the product limit. No p99 where they leave "
    "it open.",
    "slowdown": "Slowdown: FCT over the least time on the idle path.",
    HEADS["link_loss"]: "Link loss: packets that a link lost after it had sent them, of those that it sent.",
    HEADS["reordering_ratio"]: "Reordered: packets that came after one that the link had sent later.",
    HEADS["delay_variation_s"]: "Delay variation: p99 − p50 of the waiting time at the link.",
}
"""Explanations of columns below their tables, by the beginning of the column's head."""

AT_MOST = {HEADS["one_way_delay_at_most_s"], HEADS["delay_at_most_s"]}
"""The heads of bounds of delays."""

_FROM_FILES = {
    "rates": "Rates of links from traces",
    "arrivals": "Arrivals of flows from traces",
    "sizes": "Sizes of flows from distributions",
    "packets": "Packets replayed",
}
"""Parts of a scenario that come from files."""


def _explained(result: Result, heads: Collection[str]) -> list[str]:
    """Footnotes for columns that only some tables have, and for data that comes from files."""
    sentences = []
    raw = result.runs[0].raw
    mostly_s = _MOSTLY * (raw["duration_s"] - raw["warmup_s"])
    if any((run.flows("active_s") < mostly_s).any() for run in result.runs):
        sentences.append("Throughput: of each flow over the time in which it was active (`active_s`).")
    if any(run.raw["populations"] for run in result.runs):
        come_and_go = [flow for flow in json.loads(result.scenario)["flows"] if "arrivals" in flow]
        part = any(
            "stop" in flow or not str(flow.get("start", "0s")).startswith("0s") for flow in come_and_go
        )
        sentences.append(
            "The throughput of flows that come and go is that of all of a class together, over the whole "
            f"measured time{', also before its `start` and after its `stop`' if part else ''}."
        )
        sentences.append("Sizes are of payload.")
    sentences += [text for head, text in _COLUMNS.items() if any(_begins(shown, head) for shown in heads)]
    if not AT_MOST.isdisjoint(heads):
        sentences.append(_at_most(result))
    elif result.engine and result.bounds.failure:
        sentences.append(f"No bounds: {result.bounds.failure}.")
    sentences += filter(None, (_cut_off(result), _unseen(result), _partial(result)))
    followed = list(traces(json.loads(result.scenario)))
    for kind, text in _FROM_FILES.items():
        if of_kind := [str(trace) for trace in followed if trace.kind == kind]:
            sentences.append(f"{text}: {'; '.join(of_kind)}.")
    return sentences


def _at_most(result: Result) -> str:
    """A note on bounds, and on where there is none."""
    found = result.bounds
    delays = (
        [row["one_way_delay_at_most_s"] for row in found.rows.classes],
        *([row["delay_at_most_s"] for row in rows] for rows in (found.rows.links, found.rows.link_classes)),
    )
    lacking = any(0 < of.count(None) < len(of) for of in delays)
    why = ", and says why some have none" if lacking else ""
    return f"At most: in any run, warm-up included; `perhop bound` derives it{why}."


def _cut_off(result: Result) -> str:
    """A note that mean times are lower bounds where the longest were unfinished at the end of the runs."""
    tables = (result.rows.groups, result.rows.populations, *result.rows.applications.values())
    heads = [
        HEADS[name].partition(",")[0]
        for rows in tables
        for name in (rows[0] if rows else ())
        if name in _TIMES and any(row[end_names(name)[1]] == math.inf for row in rows)
    ]
    if not heads:
        return ""
    return (
        f"{', '.join(dict.fromkeys(heads))} (over …): a lower bound, too low by what the longest would have "
        "taken, which were unfinished at the end of the run."
    )


def _unseen(result: Result) -> str:
    """A note on how long users were simulated where an event that is measured per hour happened to none."""
    for users in result.runs[0].raw.get("applications", ()):
        for entry in catalog.APPLICATION[users["model"]]:
            if entry.unit != "s/h":
                continue
            rows, high = result.rows.applications[users["model"]], end_names(entry.name)[1]
            unseen = [row for row in rows if row[entry.name] == 0 and row[high] == math.inf]
            if unseen:
                watched = float(sum(row["users"] for row in unseen)) * _measured_s(result) * len(result.runs)
                return (
                    f"{entry.label.capitalize()} 0 (or more): none in {lasting(watched)}, all users and runs "
                    "together; longer or more runs show how rare it is."
                )
    return ""


def _measured_s(result: Result) -> float:
    raw = result.runs[0].raw
    return float(raw["duration_s"] - raw["warmup_s"])


@dataclass(frozen=True, slots=True)
class Partial:
    """A measure that some runs lack.

    Attributes:
        table: Its key in the results as JSON.
        name: Of the class or link.
        column: Its column there.
        head: What tables call it.
        runs: How many have a value.
    """

    table: str
    name: str
    column: str
    head: str
    runs: int


def partial(result: Result) -> list[Partial]:
    """Return the measures that some of the runs lack."""
    found = [
        Partial(table, name, column, head, sum(not math.isnan(value) for value in values))
        for of in (_values_of_classes, _values_of_users, _values_of_links, _values_of_populations)
        for table, name, column, head, values in of(result)
    ]
    return [one for one in found if 0 < one.runs < len(result.runs)]


Values = tuple[str, str, str, str, list[float]]
"""A measure in each run: table, name of the line, column, head, values."""


def _values_of_classes(result: Result) -> Iterator[Values]:
    by_run = [list(flow_table.members(run.raw)) for run in result.runs]
    for of_class in zip(*by_run, strict=True):
        for entry in catalog.CLASS:
            if entry.name in HEADS:
                values = [entry.value(members) for _, members in of_class]
                yield "classes", str(of_class[0][0]["name"]), entry.name, _head(entry.name), values


def _values_of_users(result: Result) -> Iterator[Values]:
    for users in zip(*(run.raw.get("applications", ()) for run in result.runs), strict=True):
        for entry in catalog.APPLICATION[users[0]["model"]]:
            if naming.percentile(entry.name) is None:
                values = [observing.number(each["measures"][entry.name]) for each in users]
                yield "applications", str(users[0]["name"]), entry.name, entry.label, values


def _values_of_links(result: Result) -> Iterator[Values]:
    for places in zip(*(run.raw["links"] for run in result.runs), strict=True):
        for entry in catalog.in_tables((*catalog.LINK, *catalog.QUEUE)):
            if naming.percentile(entry.name) is None:
                values = [observing.number(place[entry.name]) for place in places]
                yield "links", str(places[0]["name"]), entry.name, _head(entry.name), values


def _values_of_populations(result: Result) -> Iterator[Values]:
    for name, flows in populations.by_run(result):
        for entry in finite_flows.MEASURES:
            if entry.is_mean:
                values = [entry.value(one) for one in flows]
                yield "populations", name, entry.name, _head(entry.name), values


def _head(column: str) -> str:
    return HEADS[column].partition(",")[0]


def _partial(result: Result) -> str:
    """Return a sentence on the means of fewer runs than there are; empty without any."""
    some = [f"{one.name} {one.head} in {one.runs} of {len(result.runs)}" for one in partial(result)]
    if not some:
        return ""
    rest = f" and {len(some) - MOST_PARTIAL} more (see --json)" if len(some) > MOST_PARTIAL else ""
    return f"Not all runs have a value: {', '.join(some[:MOST_PARTIAL])}{rest}."


MOST_PARTIAL = 5
"""Measures that some runs lack and that a note names."""

_TIMES = {
    *naming.OF_COMPLETED,
    *(one.name for one in finite_flows.MEASURES if one.is_mean),
    *(
        one.name
        for entries in catalog.APPLICATION.values()
        for one in entries
        if naming.times_of(one.name) is not None and naming.percentile(one.name) is None
    ),
}
"""Means of times that the end of a run may cut off."""


def _begins(shown: str, head: str) -> bool:
    """Whether a column is the one of this head, or one of several of this word."""
    return shown == head or shown.startswith((f"{head} ", f"{head},"))
