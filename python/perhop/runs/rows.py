"""The rows of a result's summary tables: each class, link or group of users, over the runs.

Text, JSON and pages are made of these rows. `Result` makes data frames of them for those who ask for one:
polars takes longer to load than a short run takes.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from perhop.measures import catalog, flow_table
from perhop.measures.run import REVERSE
from perhop.runs import observing, over_runs, populations

if TYPE_CHECKING:
    from perhop.runs.result import Result

Row: TypeAlias = dict[str, Any]
"""The values of a line by the names of their columns."""


class Rows:
    """The rows of each summary table of a result, made when they are first asked for.

    All rows of a table have the same columns. The methods of `Result` with these tables say what they are.
    """

    def __init__(self, result: Result) -> None:
        """The rows of a result."""
        self._result = result

    @cached_property
    def groups(self) -> list[Row]:
        """The rows of `Result.group_summary`."""
        runs, bounds = self._result.runs, self._result.bounds
        by_run = [[flows for _, flows in flow_table.members(run.raw)] for run in runs]
        links = observing.link_queues(runs, self._result.scenario, self._result.warm_up)
        rows = [
            over_runs.class_row(group, members, links, bounds)
            for group, members in zip(runs[0].groups, zip(*by_run, strict=True), strict=True)
        ]
        return self.decided(rows)

    @cached_property
    def links(self) -> list[Row]:
        """The rows of `Result.link_summary`."""
        runs, bounds = self._result.runs, self._result.bounds
        measured = catalog.in_tables((*catalog.LINK, *catalog.QUEUE))
        queues = observing.link_queues(runs, self._result.scenario, self._result.warm_up)
        links = list(zip(*(run.raw["links"] for run in runs), strict=True))
        reasons = {
            count: dict.fromkeys(
                reason
                for run in runs
                for link in run.raw["links"]
                for reason in link["measured"].get(count, ())
            )
            for count in ("dropped", "notified")
        }
        rows = []
        for places, queue in zip(links, queues, strict=True):
            name = str(places[0]["name"])
            row: Row = {
                "link": name,
                "rate_bps": float(places[0]["rate_bps"]),
                **over_runs.queue_columns(places, measured, queue, bounds.of_queue(name)),
                "arrived_packets": over_runs.mean(places, "arrived_packets"),
            }
            for count, known in reasons.items():
                for reason in known:
                    packets = [link["measured"].get(count, {}).get(reason, ()) for link in places]
                    row[f"{count}_{reason}"] = sum(int(n) for colors in packets for n in colors) / len(runs)
            rows.append(row)
        return self.decided(rows)

    @cached_property
    def link_classes(self) -> list[Row]:
        """The rows of `Result.link_class_summary`."""
        runs, bounds = self._result.runs, self._result.bounds
        measured = catalog.in_tables(catalog.QUEUE, classes=True)
        rare_load = observing.has_rare_load(runs)
        rows = []
        for of_link in zip(*(run.raw["links"] for run in runs), strict=True):
            for places in zip(*(link["classes"] for link in of_link), strict=True):
                link, name = str(of_link[0]["name"]), str(places[0]["name"])
                queue = observing.queue_of(places, rare_load)
                rows.append(
                    {
                        "link": link,
                        "class": name,
                        "arrived_packets": over_runs.mean(places, "arrived_packets"),
                        **over_runs.queue_columns(places, measured, queue, bounds.of_queue(link, name)),
                    }
                )
        return self.decided(rows)

    @cached_property
    def populations(self) -> list[Row]:
        """The rows of `Result.population_summary`, with the usual ranges of sizes."""
        return self.decided(populations.rows(self._result))

    @cached_property
    def applications(self) -> dict[str, list[Row]]:
        """The rows of `Result.application_summary`: a table for each model."""
        runs = self._result.runs
        groups: dict[str, list[int]] = {}
        for place, users in enumerate(runs[0].raw.get("applications", ())):
            groups.setdefault(users["model"], []).append(place)
        tables: dict[str, list[Row]] = {}
        for model, places in groups.items():
            by_group = [[run.raw["applications"][place] for run in runs] for place in places]
            names = [str(of_runs[0]["name"]) for of_runs in by_group]
            if catalog.APPLICATION[model]:
                tables[model] = [
                    over_runs.application_row(name, of_runs, model)
                    for name, of_runs in zip(names, by_group, strict=True)
                ]
            else:
                from perhop.runs import quality  # noqa: PLC0415 - it rates calls in data frames

                ways = [way for name in names for way in (name, name + REVERSE)]
                tables[model] = quality.rows(self._result, ways)
        return {model: self.decided(rows) for model, rows in tables.items()}

    def decided(self, rows: list[Row]) -> list[Row]:
        """Rows with intervals that are valid though their width decided how many runs there are, if so."""
        runs = len(self._result.runs)
        return rows if self._result.reached is None else [over_runs.widened(row, runs) for row in rows]
