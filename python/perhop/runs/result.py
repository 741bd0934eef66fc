"""The result of several runs: tables with a row for each run, and means with intervals."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from perhop.bounds import deriving
from perhop.bounds.deriving import Bounds
from perhop.errors import PerhopError
from perhop.measures.run import Run
from perhop.plurals import counted
from perhop.runs import populations
from perhop.runs.rows import Rows
from perhop.show.numbers import exact
from perhop.show.readable import readable
from perhop.show.written import Written

if TYPE_CHECKING:
    import polars as pl

    from perhop.runs.accessor import Plots
    from perhop.runs.summary import Summary
    from perhop.runs.until import Reached
    from perhop.runs.warming import WarmUp
    from perhop.show.estimates import Estimates


@dataclass(frozen=True, repr=False, eq=False)
class Result(Written):
    """The runs of one scenario: tables of all measures, means with intervals, pictures and a report.

    Everything that is measured excludes the warm-up. `group_summary()`, `link_summary()` and other summaries
    are means over the runs and print themselves with their 95 % intervals; `flows`, `links` and the others
    have a row for each run.

    Attributes:
        scenario: The scenario as canonical JSON.
        runs: One entry for each seed, in the order of the seeds.
        by_default: Whether nobody said how many runs to make; None where that is not known.
        was_changed: Whether values of the scenario were set during the run (`perhop.Simulation.set`).
        name: The title where the scenario has none: the name of its file.
        warm_up: How the warm-up was found, if it was.
        reached: How narrow the intervals are, if runs were added until they are; all intervals of the
            summaries are then those of `perhop.statistics.stopping`.
        interrupted_of: How many runs there would have been, if Ctrl-C came before; else None.
    """

    COMMAND: ClassVar = "perhop run"
    RERUNS: ClassVar = True
    TABLE: ClassVar = "classes"
    command = ""
    scenario: str
    runs: tuple[Run, ...]
    by_default: bool | None = None
    was_changed: bool = False
    name: str = ""
    warm_up: WarmUp | None = None
    reached: Reached | None = None
    interrupted_of: int | None = None

    @property
    def engine(self) -> str | None:
        """The engine that computed the runs: `batched` or `reference`; None for runs on real packets.

        The results of both are the same; `docs/results.md` says when each runs.
        """
        return self.runs[0].raw.get("engine")

    @property
    def engine_reason(self) -> str | None:
        """Why the reference engine ran: requested, refused by the batched engine, or packets are recorded."""
        return self.runs[0].raw.get("engine_reason")

    @property
    def title(self) -> str:
        """The scenario's title, or the name of its file."""
        return str(json.loads(self.scenario).get("title") or self.name or "Scenario")

    def __repr__(self) -> str:
        """Lines on the scenario, its groups and links, and the names of the tables."""
        first = self.runs[0]
        sizes = {g.name: "population" if g.is_population else counted(g.count, "flow") for g in first.groups}
        classes = ", ".join(f"{name} ({size})" for name, size in sizes.items())
        links = ", ".join(str(link["name"]) for link in first.raw["links"]) or "none with a queue rule"
        flows = sum(group.count for group in first.groups)
        known = "means with 95 % intervals" if len(self.runs) > 1 else "values of one run, without intervals"
        lines = [
            f"{type(self).__name__} of {self.title!r}: {describe_runs(self.runs)}",
            f"  classes: {classes}",
            f"  links: {links}",
            f"  {known}: .group_summary(), .link_summary(),",
            "    .link_class_summary(), .application_summary(); against another result: .difference(…)",
            f"  a row for each run: .flows ({counted(flows * len(self.runs), 'row')}), .links,",
            "    .link_classes, .drops, .notifications, .delays, .series, .queues, .application_samples;",
            "    raw arrays: .runs[0].raw",
        ]
        if first.raw["populations"]:
            lines.append("  flows that come and go: .population_summary(), .population_flows")
        return "\n".join(line if len(line) <= 200 else line[:199] + "…" for line in lines)

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: the network, and what `perhop run` prints."""
        from perhop.runs import notebook  # noqa: PLC0415 - for notebooks alone

        return notebook.of_result(self)

    def difference(self, other: Result, measure: str, *, of: str | None = None) -> Estimates:
        """Return how much this result is above another one in a measure, paired by seed.

        Args:
            other: A result of another scenario on the same seeds.
            measure: Its column in a summary, such as `throughput_bps`, `loss` or `delay_p99_s`.
            of: `groups`, `links`, `link_classes`, `populations` or `applications`; by default the first of
                these that has the measure.

        Returns:
            One row for each group, link, … that both results have: its name, this value minus the other
            in the measure's unit, and the ends of the 95 % interval of the difference, null for a single run.

        Raises:
            PerhopError: The seeds differ, or neither result has the measure.
        """
        from perhop.runs import differences  # noqa: PLC0415 - it reads results

        return differences.difference(self, other, measure, of)

    def text(self, width: int | None = None) -> str:
        """Return what `perhop run` prints, for text of that many columns; None for no limit."""
        return self._summary().text(width)

    def json(self) -> str:
        """Return what `perhop run --json` writes: means with intervals, and what is measured once."""
        from perhop.runs import summary  # noqa: PLC0415 - it reads results

        return summary.to_json(self)

    def write(self, folder: Path | str, command: str = "", jobs: int = 1) -> None:
        """Write what the command writes with `--out`: a report that opens offline, pictures and samples.

        Args:
            folder: Where; an earlier report there is replaced as a whole.
            command: What the report says gives the same again; by default `perhop rerun` with this folder.
            jobs: How many cores draw.

        Raises:
            PerhopError: A file cannot be written, or values were set during the run: no scenario gives these
                numbers again.
        """
        if self.was_changed:
            raise PerhopError(
                "values were set during this run, which a report cannot show; use its data frames"
            )
        super().write(folder, command, jobs)

    def _write(self, place: Path, command: str, jobs: int) -> None:  # noqa: ARG002 - few pictures
        from perhop.runs import page  # noqa: PLC0415 - pictures load matplotlib

        page.write_run(place, self, self._summary(), command)

    def _summary(self) -> Summary:
        """Return the tables and sentences that show the result."""
        from perhop.runs import summary  # noqa: PLC0415 - it reads results

        return summary.summarize(self)

    @property
    def plot(self) -> Plots:
        """Pictures as figures of matplotlib: `plot.throughput()`, `.delay_cdf()`, `.queue()` and others.

        They are those of the report of `perhop run --out`.
        """
        from perhop.runs.accessor import Plots  # noqa: PLC0415 - pictures load matplotlib

        return Plots(self)

    def _more_frames(self) -> dict[str, pl.DataFrame]:
        from perhop.runs import summary  # noqa: PLC0415 - it reads results

        return summary.frames_of_runs(self)

    def _tables(self) -> dict[str, list[dict[str, str]]]:
        tables = {
            "classes": self.rows.groups,
            "links": self.rows.links,
            "link_classes": self.rows.link_classes,
            "populations": self.rows.populations,
            **{f"applications-{model}": rows for model, rows in self.rows.applications.items()},
        }
        return {name: readable(rows) for name, rows in tables.items() if rows}

    @cached_property
    def rows(self) -> Rows:
        """The rows of the summaries, as plain data."""
        return Rows(self)

    @cached_property
    def bounds(self) -> Bounds:
        """Bounds that no run of the scenario can exceed, by network calculus; see `perhop.bound`.

        There are none where that fails (`bounds.failure` says why), after values were set during the run, and
        on real packets.
        """
        if self.was_changed:
            return deriving.none(self.scenario, "values were set during the run")
        return deriving.beside_runs(self.scenario)

    @cached_property
    def flows(self) -> pl.DataFrame:
        """One row for each run and flow: rates in bit/s, times in s, packets; null where there is none.

        The columns are those of `perhop list measures`, and all are measured after the warm-up. Packets under
        way when it ended count where they arrive or are dropped, not where they were sent.
        """
        from perhop.runs import frames  # noqa: PLC0415 - polars takes long to load

        return frames.flows(self.runs, self.bounds)

    @cached_property
    def links(self) -> pl.DataFrame:
        """One row for each run and link: rate, utilization (fraction), queue (packets), delay (s), loss.

        Measured after the warm-up: `loss` is `dropped_packets` as a fraction of `arrived_packets`.
        Over the whole run, `arrived_whole_run` = `sent_whole_run` + `dropped_whole_run` + `waiting_packets`.
        """
        from perhop.runs import frames  # noqa: PLC0415 - polars takes long to load

        return frames.links(self.runs, self.bounds)

    @cached_property
    def link_classes(self) -> pl.DataFrame:
        """One row for each run, link and class of packets of its queue, such as green and blue.

        The columns are those of `links` that concern a queue. (Jitter, of RFC 3550, is of flows.)
        """
        from perhop.runs import frames  # noqa: PLC0415 - polars takes long to load

        return frames.link_classes(self.runs, self.bounds)

    @cached_property
    def delays(self) -> pl.DataFrame:
        """The distribution function of waiting times: one row for each run, link, class and bin.

        Columns: `seed`, `link`, `class` (`all`, and the classes of packets that the queue distinguishes),
        `delay_s` (upper edge of a bin, at most 3.1 % or 1 µs wide), `packets` in the bin and `share` of
        packets that waited no longer; of packets that came after the warm-up.
        """
        from perhop.runs import frames  # noqa: PLC0415 - polars takes long to load

        return frames.delays(self.runs)

    @cached_property
    def drops(self) -> pl.DataFrame:
        """One row for each run, link, reason and color: packets dropped after the warm-up."""
        from perhop.runs import frames  # noqa: PLC0415 - polars takes long to load

        return frames.by_reason(self.runs, "dropped")

    @cached_property
    def notifications(self) -> pl.DataFrame:
        """One row for each run, link, reason and color: packets marked with CE and admitted (ECN).

        Empty unless a rule has `ecn` and packets are capable of it; counted after the warm-up.
        """
        from perhop.runs import frames  # noqa: PLC0415 - polars takes long to load

        return frames.by_reason(self.runs, "notified")

    @cached_property
    def series(self) -> pl.DataFrame:
        """One row for each run, probe time and flow: throughput (bit/s), cwnd (packets), RTT (s).

        `received_bytes` counts up from the start of the run; `seen_packets` is the window as the control of
        the flow's path last saw it, null without one. Empty unless the scenario sets `[probes] interval`.
        """
        from perhop.runs import frames  # noqa: PLC0415 - polars takes long to load

        return frames.series(self.runs)

    @cached_property
    def queues(self) -> pl.DataFrame:
        """One row for each run, probe time, link and quantity, in packets unless its name says otherwise.

        Quantities: `queue`, the length; what the queue's rule keeps track of, such as `average total`; and,
        where the queue distinguishes classes of packets, `CLASS packets` that wait, and `CLASS arrived` and
        `CLASS dropped` since the run began.
        """
        from perhop.runs import frames  # noqa: PLC0415 - polars takes long to load

        return frames.queues(self.runs)

    @cached_property
    def population_flows(self) -> pl.DataFrame:
        """One row for each run and finite flow of a population, in the order in which they began.

        Columns: `seed`, `class`, `started_s`, `size_bytes` (payload), `idle_s` (the least time that its bytes
        take on its path, headers included), `completion_s` (from the start to the arrival of the last byte;
        null for a flow that was unfinished at the end of the run) and `slowdown` (their ratio). Flows that
        began during the warm-up are included.
        """
        from perhop.runs import frames  # noqa: PLC0415 - polars takes long to load

        return frames.population_flows(self.runs)

    def population_summary(self, sizes: Sequence[float] = populations.SIZES) -> pl.DataFrame:
        """One row for each population, and one for each of its ranges of sizes, over the runs.

        Columns: `class`, `sizes` (`all`, or a range of payload), `flows_begun` and `unfinished` (flows of a
        run), `completion_p50_s`, `completion_p99_s`, `completion_mean_s`, `slowdown_p50`, `slowdown_p99`,
        `slowdown_mean`, `open_flows` (open at once, on average). All are of the flows that began after the
        warm-up, but `open_flows`. Unfinished flows count in times and slowdowns by the product limit (Kaplan
        & Meier 1958): a percentile that they leave open is null, and a mean that is a lower bound has an
        infinite upper end. Percentiles are of all runs together, the 99th of at least 100 flows of them, else
        null. The ends of 95 % intervals as in `group_summary`.

        Args:
            sizes: Bytes of payload that divide the ranges.

        Raises:
            ValueError: The sizes do not increase, or one is not positive.
        """
        return _estimates(self.rows.decided(populations.rows(self, sizes)))

    def classes(self) -> Estimates:
        """Return `group_summary()`: its former name."""
        return self.group_summary()

    def group_summary(self) -> Estimates:
        """One row for each `[[flows]]` entry, over the runs, measured after the warm-up.

        Columns: `class`, `flows` (null for a population, whose flows come and go: the measures are those of
        all together), `profile_bps`, and the measures of a class in `perhop list measures`: each
        over the flows of the class, then a mean over the runs, null where there is none. Each has the ends of
        its 95 % interval beside it, such as `throughput_low_bps` and `throughput_high_bps` beside
        `throughput_bps`, null for a single run.
        """
        return _estimates(self.rows.groups)

    def link_class_summary(self) -> Estimates:
        """One row for each link and class of packets that its queue distinguishes; means over the runs.

        Columns: `link`, `class`, `arrived_packets`, `loss` (fraction of them dropped), and the waiting times
        of `link_classes`; measured after the warm-up. The ends of 95 % intervals as in `group_summary`.
        """
        return _estimates(self.rows.link_classes)

    @cached_property
    def application_samples(self) -> pl.DataFrame:
        """Samples of users of applications: a row for each run, group, quantity and sample.

        Columns: `seed`, `class` (the group), `model`, `quantity` such as `page_s`, and `value`, in the unit
        that ends the quantity's name. After the warm-up.
        """
        from perhop.runs import frames  # noqa: PLC0415 - polars takes long to load

        return frames.application_samples(self.runs)

    def applications(self) -> dict[str, pl.DataFrame]:
        """Return `application_summary()`: its former name."""
        return self.application_summary()

    def application_summary(self) -> dict[str, pl.DataFrame]:
        """A table for each model of application: one row for each group of users, means over the runs.

        Columns: `class` (the group), `users`, and the measures of the model in `perhop list measures`, with
        the ends of 95 % intervals as in `group_summary`. Calls have those of `perhop.quality.call_summary`, a
        row for each direction.
        """
        return {model: _estimates(rows) for model, rows in self.rows.applications.items()}

    def link_summary(self) -> Estimates:
        """One row for each link, means over the runs.

        Columns: `link`, `rate_bps`, `utilization`, `loss`, `mean_queue_packets`, `delay_p50_s`,
        `delay_p95_s`, `delay_p99_s`, `arrived_packets`, and the mean number of packets dropped in a run for
        each reason, `dropped_REASON`; where there were any, of those marked with CE and admitted,
        `notified_REASON`. Measured after the warm-up. The ends of 95 % intervals as in `group_summary`.
        """
        return _estimates(self.rows.links)


def _estimates(rows: Sequence[Mapping[str, Any]]) -> Estimates:
    """Rows of a summary as a data frame."""
    from perhop.show.estimates import Estimates  # noqa: PLC0415 - polars takes long to load

    return Estimates(rows, infer_schema_length=None)


def describe_runs(runs: Sequence[Run], how: str = "simulated") -> str:
    """`60 s simulated, the first 10 s excluded; 5 runs, seeds 1 to 5`."""
    raw, seeds = runs[0].raw, [run.seed for run in runs]
    span = f"{exact(raw['duration_s'])} s {how}"
    if raw["warmup_s"]:
        span += f", the first {exact(raw['warmup_s'])} s excluded"
    which = f"seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}"
    return f"{span}; {counted(len(seeds), 'run')}, {which}"
