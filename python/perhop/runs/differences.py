"""The difference of two scenarios in one measure, over runs on the same seeds."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from typing import Any

from perhop.errors import PerhopError
from perhop.files import arguments
from perhop.measures import catalog, finite_flows, flow_table
from perhop.runs import observing, over_runs, populations
from perhop.runs.result import Result
from perhop.show.estimates import Estimates
from perhop.show.written import named
from perhop.statistics import stopping
from perhop.statistics.intervals import Estimate
from perhop.statistics.observations import Observations, paired

Named = tuple[dict[str, Any], Observations]
"""The observations of a measure at one place, and the columns that name the place."""


def difference(result: Result, other: Result, measure: str, of: str | None = None) -> Estimates:
    """Return `result` - `other` in a measure; see `perhop.Result.difference`."""
    if not hasattr(other, "runs"):
        raise PerhopError(f"a difference is of two results of perhop.run, not {type(other).__name__}")
    if [run.seed for run in result.runs] != [run.seed for run in other.runs]:
        raise PerhopError("a difference is paired by seed: give both results the same seeds")
    arguments.text("measure", measure)
    if of is not None:
        of = named(of, TABLES)
        arguments.one_of("of", of, tuple(TABLES))
    for table in TABLES if of is None else (of,):
        mine, theirs = (list(TABLES[table](one, measure)) for one in (result, other))
        if mine or theirs:
            stopped = not (result.reached is other.reached is None)
            return _paired(measure, mine, theirs, estimate=_widened if stopped else paired)
    where = "" if of is None else f" of {of}"
    known = [*(one.name for one in catalog.CLASS), *(one.name for one in (*catalog.LINK, *catalog.QUEUE))]
    near = difflib.get_close_matches(measure, known, n=1)
    hint = (
        f"did you mean `{near[0]}`?" if near else "those are columns of summaries, such as `group_summary()`"
    )
    raise PerhopError(f"neither result has the measure `{measure}`{where}; {hint}")


def _widened(a: Observations, b: Observations) -> Estimate | None:
    """`paired`, where the width of intervals decided how many runs there are."""
    return stopping.widened(paired(a, b), len(a.values))


def _paired(
    measure: str,
    mine: list[Named],
    theirs: list[Named],
    *,
    estimate: Callable[[Observations, Observations], Estimate | None],
) -> Estimates:
    others = {tuple(name.values()): found for name, found in theirs}
    both = [(name, found, others.get(tuple(name.values()))) for name, found in mine]
    rows = [
        {**name, **over_runs.ends(measure, estimate(found, beside))}
        for name, found, beside in both
        if beside is not None
    ]
    if not rows:
        raise PerhopError(f"`{measure}`: the results have no place in common")
    return Estimates(rows, infer_schema_length=None)


def _of_groups(result: Result, measure: str) -> Iterator[Named]:
    entry = next((one for one in catalog.CLASS if one.name == measure and measure), None)
    if entry is None:
        return
    links = observing.link_queues(result.runs, result.scenario, result.warm_up)
    by_run = [[flows for _, flows in flow_table.members(run.raw)] for run in result.runs]
    for group, members in zip(result.runs[0].groups, zip(*by_run, strict=True), strict=True):
        transit = observing.waits([flows.transit for flows in members])
        queues = observing.seen_by(transit, links)
        yield {"class": group.name}, observing.of_class(entry, members, transit, queues)


def _of_links(result: Result, measure: str) -> Iterator[Named]:
    entry = next((one for one in (*catalog.LINK, *catalog.QUEUE) if one.name == measure), None)
    if entry is None:
        return
    queues = observing.link_queues(result.runs, result.scenario, result.warm_up)
    links = zip(*(run.raw["links"] for run in result.runs), strict=True)
    for places, queue in zip(links, queues, strict=True):
        yield {"link": str(places[0]["name"])}, observing.of_queue(entry, places, queue)


def _of_link_classes(result: Result, measure: str) -> Iterator[Named]:
    entry = next((one for one in catalog.QUEUE if one.name == measure), None)
    if entry is None:
        return
    rare_load = observing.has_rare_load(result.runs)
    for of_link in zip(*(run.raw["links"] for run in result.runs), strict=True):
        for places in zip(*(link["classes"] for link in of_link), strict=True):
            name = {"link": str(of_link[0]["name"]), "class": str(places[0]["name"])}
            yield name, observing.of_queue(entry, places, observing.queue_of(places, rare_load))


def _of_populations(result: Result, measure: str) -> Iterator[Named]:
    entry = next((one for one in finite_flows.MEASURES if one.name == measure), None)
    for number, (name, flows) in enumerate(populations.by_run(result)):
        if entry is not None:
            yield {"class": name}, observing.of_flows(entry, flows)
        elif measure == finite_flows.OPEN.name:
            values = [run.raw["populations"][number]["mean_open"] for run in result.runs]
            yield {"class": name}, observing.observations(measure, values)


def _of_applications(result: Result, measure: str) -> Iterator[Named]:
    for users in zip(*(run.raw.get("applications", ()) for run in result.runs), strict=True):
        for entry in catalog.APPLICATION[users[0]["model"]]:
            if entry.name == measure:
                yield {"class": str(users[0]["name"])}, observing.of_users(entry, users)


TABLES: dict[str, Callable[[Result, str], Iterator[Named]]] = {
    "groups": _of_groups,
    "links": _of_links,
    "link_classes": _of_link_classes,
    "populations": _of_populations,
    "applications": _of_applications,
}
"""The tables with measures, in the order in which a measure is looked for."""
