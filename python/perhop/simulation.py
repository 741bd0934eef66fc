"""Run a scenario over several seeds and read the outcome as data frames."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, get_args

import numpy as np
import polars as pl

from perhop import (
    _engine,
    budget,
    catalog,
    frames,
    inputs,
    kinds,
    memory,
    observing,
    populations,
    quality,
    recording,
    simulating,
)
from perhop.errors import PerhopError, PerhopWarning, ScenarioError
from perhop.lazy import Lazy
from perhop.output.latex import latex_table
from perhop.output.numbers import exact
from perhop.output.readable import Estimates, readable
from perhop.parallel import available_cores, parallel_map
from perhop.runs import COLORS, REVERSE, Run
from perhop.tables import plain
from perhop.wording import counted

if TYPE_CHECKING:
    from perhop.output import accessor, notebook
    from perhop.output.accessor import Plots
else:
    accessor = Lazy("perhop.output.accessor")
    notebook = Lazy("perhop.output.notebook")

MAX_SEED = 2**64 - 1
MAX_RUNS = 100_000
"""Runs of one scenario that a command does at most."""

Engine: TypeAlias = Literal["batched", "reference"]
ENGINES: tuple[Engine, ...] = get_args(Engine)
"""How a run is computed; see docs/results.md."""


class ScenarioLike(Protocol):
    """What the builder classes of `perhop.scenario` offer."""

    def to_json(self) -> str:
        """The scenario as JSON text."""
        ...


ScenarioSource: TypeAlias = "ScenarioLike | Mapping[str, Any] | Path | str"
"""A built scenario, the same as plain dicts and lists, the path of a TOML file, or TOML text.

Files that a scenario names are relative to its own file, without one to the working directory."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A scenario that has been read and can be run.

    Attributes:
        text: The scenario as canonical JSON, with every default filled in.
        notices: What in it cannot act, or acts otherwise than it seems: a sentence each, with its place.
    """

    text: str
    notices: tuple[str, ...]

    def warn(self) -> None:
        """Warn the caller of whoever calls this of each notice."""
        for notice in self.notices:
            warnings.warn(notice, PerhopWarning, stacklevel=3)


def canonical(scenario: ScenarioSource) -> str:
    """The scenario as canonical JSON, checked for simulation and with every default filled in; see `read`."""
    return read(scenario).text


def read(scenario: ScenarioSource, *, real_packets: bool = False) -> Checked:
    """Read and check a scenario that is to be simulated, or run on real packets.

    Args:
        scenario: See `ScenarioSource`.
        real_packets: It is to be run on real packets, where keys such as `ecn` can act that cannot otherwise.

    Raises:
        ScenarioError: It does not describe a network; the message names the place and the key.
        PerhopError: The file cannot be read, or this is no scenario at all.
    """
    try:
        parse, text, origin = _source(scenario)
    except RecursionError:
        raise PerhopError(
            "scenario: tables and lists lie too deep within each other, or in themselves"
        ) from None
    # A scenario without a file names others from the working directory.
    folder = Path() if origin == "scenario" else Path(origin).parent
    try:
        canonical_text, notices = parse(text, origin, real_packets=real_packets, folder=folder)
    except ScenarioError:
        data = None
        if parse is _engine.read_toml and origin != "scenario":
            with suppress(PerhopError):
                data = inputs.toml(text, origin)
            if data is not None:
                kinds.expect("scenario", data, Path(origin))
        raise
    return Checked(canonical_text, tuple(notices))


def _source(scenario: ScenarioSource) -> tuple[Callable[..., tuple[str, list[str]]], str, str]:
    """The reader of a scenario, its text, and the name of its file in messages.

    Raises:
        PerhopError: The file cannot be read, or this is no scenario at all.
    """
    if isinstance(scenario, str) and _names_a_file(scenario):
        scenario = Path(scenario)
    if isinstance(scenario, Path):
        return _engine.read_toml, inputs.read_text(scenario), str(scenario)
    if isinstance(scenario, str):
        return _engine.read_toml, scenario, "scenario"
    if isinstance(scenario, Mapping):
        return _engine.read_json, _as_json(plain(scenario)), "scenario"
    if isinstance(scenario, type) or not hasattr(scenario, "to_json"):
        found = f"the class {scenario.__name__}" if isinstance(scenario, type) else type(scenario).__name__
        raise PerhopError(
            f"a scenario is a perhop.Scenario, a dict, the path of a TOML file, or TOML text, not {found}"
        )
    try:
        text = scenario.to_json()
    except TypeError as error:
        raise PerhopError(f"scenario: {error}") from None
    return _engine.read_json, _as_json(json.loads(text)), "scenario"


def _files(scenario: ScenarioSource) -> list[Path]:
    """The scenario's file, if it is one."""
    if isinstance(scenario, Path) or (isinstance(scenario, str) and _names_a_file(scenario)):
        return [Path(scenario)]
    return []


def _names_a_file(text: str) -> bool:
    """Whether text is a file's name and not TOML: TOML of one line is no scenario."""
    if "\n" in text or not text.strip():
        return False
    try:
        return "=" not in text or text.endswith(".toml") or Path(text).is_file()
    except (OSError, ValueError):
        return False


def _as_json(scenario: Mapping[str, Any]) -> str:
    """Plain data as JSON text.

    Raises:
        PerhopError: It holds something that JSON has no word for, such as infinity.
    """
    strange = next(_not_finite(scenario, ""), None)
    if strange is not None:
        raise PerhopError(f"scenario: `{strange[0]}` must be a finite number, not {strange[1]}")
    try:
        return json.dumps(scenario, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise PerhopError(f"scenario: plain dicts, lists, strings and numbers only: {error}") from None


def _not_finite(value: object, place: str) -> Iterator[tuple[str, float]]:
    """Every infinity and NaN in plain data, with its place."""
    if isinstance(value, float) and not math.isfinite(value):
        yield place, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _not_finite(inner, f"{place}.{key}" if place else str(key))
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from _not_finite(inner, f"{place}[{index}]")


def seeds(first: int, runs: int) -> tuple[int, ...]:
    """The seeds of `runs` runs: first, first + 1, … All cells of a study share them, which pairs their runs.

    Raises:
        PerhopError: No run, more than `MAX_RUNS`, a negative seed, one beyond 64 bits, or something that is
            no whole number.
    """
    runs, first = _whole("runs", runs), _whole("seed", first)
    if not 1 <= runs <= MAX_RUNS:
        raise PerhopError(f"runs must be at least 1 and at most {MAX_RUNS:,}, not {runs}")
    if not 0 <= first <= MAX_SEED:
        raise PerhopError(f"seed must be at least 0 and fit in 64 bits, not {first}")
    if first + runs - 1 > MAX_SEED:
        raise PerhopError(
            f"seed {first} leaves no room for {runs} runs: the last seed must fit in 64 bits; "
            f"begin at {MAX_SEED - runs + 1} or below"
        )
    return tuple(range(first, first + runs))


def _whole(name: str, value: object) -> int:
    """A whole number as Python's own, whose sums do not overflow."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise PerhopError(f"{name} must be a whole number, not {value!r}")
    return int(value)


def workers(jobs: int | None) -> int:
    """The number of threads to use: all cores by default.

    Raises:
        PerhopError: Fewer than 1 or more than 1024 threads.
    """
    if jobs is None:
        return available_cores()
    jobs = _whole("jobs", jobs)
    if not 1 <= jobs <= 1024:
        raise PerhopError(f"jobs must lie between 1 and 1024, not {jobs}")
    return jobs


def threads_each(threads: int | None, jobs: int, runs: int) -> int:
    """The most threads of each run: if not given, the cores that the runs leave idle.

    Raises:
        PerhopError: Fewer than 1 or more than 1024 threads.
    """
    if threads is None:
        return max(1, available_cores() // max(1, min(jobs, runs)))
    threads = _whole("threads", threads)
    if not 1 <= threads <= 1024:
        raise PerhopError(f"threads must lie between 1 and 1024, not {threads}")
    return threads


def run(
    scenario: ScenarioSource,
    *,
    runs: int | None = 1,
    seed: int = 1,
    jobs: int | None = None,
    threads: int | None = None,
    engine: Engine | None = None,
    capture: Path | str | None = None,
    capture_links: Sequence[str] = (),
    events: Path | str | None = None,
    progress: Callable[[int, int], None] | None = None,
    waiting: Callable[[float], None] | None = None,
    cancel: _engine.Cancel | None = None,
) -> Result:
    """Simulate a scenario on the seeds `seed`, `seed + 1`, …; any number of threads gives the same result.

    Args:
        scenario: See `ScenarioSource`.
        runs: Number of independent runs. With None that of `perhop run`: 30 where runs are short, else 10 or
            5, by the events of the first five and not by the clock (`perhop.budget`).
        seed: First seed, at least 0. Each flow, profile, path and link draws from a random stream of its own,
            derived from the seed and its name: a group or a link of another name draws other numbers, as with
            another seed, and so gives another, equally valid run.
        jobs: Runs at once; as many as there are cores if not given.
        threads: Threads of each run of a large network; if not given, the cores that the runs leave idle. A
            network of less than 64 links runs on one, and so does one with flows that come and go, and any
            that the reference engine runs.
        engine: `batched` or `reference`; if not given, the batched engine if it accepts the network, else the
            reference engine, which takes longer. The results are the same.
        capture: A file for the packets of the run with the first seed (pcapng), which Wireshark opens. That
            run is computed by the reference engine.
        capture_links: The links whose packets are recorded, both directions of each; by default those with a
            queue.
        events: A file for what became of the packets of that run at these links, as a table (Parquet).
        progress: Called with (finished, all) on the calling thread after every run; where `runs` is None,
            all are five until these are done.
        waiting: Called on the calling thread many times a second with what is under way, in whole runs.
        cancel: Set it from another thread to stop; `perhop._engine.Cancelled` is then raised.

    Raises:
        ScenarioError: The scenario is wrong; the message names the place and the key. Or the batched engine
            is requested and refuses the network; the message says why.
        PerhopError: An argument is out of range, a file cannot be read or written, or memory is short.
        BlockError: A class in Python has failed; `__cause__` is its error.
        perhop._engine.Cancelled: `cancel` was set.
    """
    checked = read(scenario)
    checked.warn()
    text = checked.text
    wanted = seeds(seed, budget.FIRST if runs is None else runs)
    if engine not in (None, *ENGINES):
        raise PerhopError(f"engine must be {' or '.join(ENGINES)}, not {engine!r}")
    recorded = recording.plan(
        text, capture=capture, events=events, capture_links=capture_links, reads=_files(scenario)
    )
    if recorded is not None and engine == "batched":
        raise PerhopError("the batched engine cannot record packets; leave `engine` out")
    flag = cancel if cancel is not None else _engine.Cancel()
    work = _Work(text, engine, jobs, threads, recorded, wanted[0], flag, progress, waiting)
    work.make(wanted)
    if runs is None and (more := _affordable(text, wanted[0], work.made, jobs) - len(work.made)):
        work.make(seeds(wanted[-1] + 1, more))
    return Result(text, tuple(work.made))


@dataclass(slots=True)
class _Work:
    """Makes the runs of one scenario; the attributes are the arguments of `run`.

    Attributes:
        first: The seed of the run whose packets are recorded, if they are.
        made: The runs so far, in the order of their seeds.
    """

    text: str
    engine: Engine | None
    jobs: int | None
    threads: int | None
    recorded: recording.Recording | None
    first: int
    cancel: _engine.Cancel
    progress: Callable[[int, int], None] | None
    waiting: Callable[[float], None] | None
    made: list[Run] = field(default_factory=list)
    _unwritten: list[PerhopError] = field(default_factory=list)

    def make(self, numbers: Sequence[int]) -> None:
        """Make the runs with these seeds, which follow those that are made."""
        at_once, expected = memory.fitting(self.text, len(numbers), self.jobs, workers(self.jobs))
        each = threads_each(self.threads, at_once, len(numbers))
        done, total = len(self.made), len(self.made) + len(numbers)

        def finished(_place: int, _run: Run) -> None:
            nonlocal done
            done += 1
            if self.progress is not None:
                self.progress(done, total)

        try:
            self.made += parallel_map(
                lambda number: self._simulate(number, each),
                numbers,
                jobs=at_once,
                cancel=self.cancel,
                finished=finished,
                waiting=self.waiting,
                expected=expected,
            )
        except _engine.Cancelled:
            # A file that cannot be written ends all runs; another may be the first to say so.
            if self._unwritten:
                raise self._unwritten[0] from None
            raise

    def _simulate(self, number: int, each: int) -> Run:
        if self.recorded is None or number != self.first:
            outcome = simulating.simulate(self.text, number, self.cancel, engine=self.engine, threads=each)
            return Run(number, outcome)
        try:
            return Run(number, recording.record(self.text, number, self.cancel, self.recorded))
        except PerhopError as error:
            self._unwritten.append(error)
            raise


def _affordable(text: str, first: int, made: Sequence[Run], jobs: int | None) -> int:
    """How many runs a scenario gets where nobody says, by those that are made."""
    runs = budget.fitting([budget.cost(text, run.raw) for run in made], budget.EVENTS)
    for number in sorted(budget.LADDER, reverse=True):
        if len(made) < number <= runs and first + number - 1 <= MAX_SEED:
            with suppress(PerhopError):  # fewer, where memory does not hold the results of so many
                memory.fitting(text, number - len(made), jobs, workers(jobs))
                return number
    return len(made)


@dataclass(frozen=True, repr=False)
class Result:
    """The runs of one scenario.

    Everything that is measured excludes the warm-up. `classes()`, `link_summary()` and `link_class_summary()`
    are means over the runs and print themselves with their 95 % intervals; `flows`, `links` and the others
    have a row for each run.

    Attributes:
        scenario: The scenario as canonical JSON.
        runs: One entry for each seed, in the order of the seeds.
    """

    scenario: str
    runs: tuple[Run, ...]

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
        """The scenario's title."""
        return str(json.loads(self.scenario).get("title") or "Scenario")

    def __repr__(self) -> str:
        """What it is, and how to get at what it holds."""
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
            f"  {known}: .classes(), .link_summary(), .link_class_summary(),",
            "    .applications()",
            f"  a row for each run: .flows ({counted(flows * len(self.runs), 'row')}), .links,",
            "    .link_classes, .drops, .notifications, .delays, .series, .queues, .application_samples;",
            "    raw arrays: .runs[0].raw",
        ]
        if first.raw["populations"]:
            lines.append("  flows that come and go: .population_summary(), .population_flows")
        return "\n".join(line if len(line) <= 200 else line[:199] + "…" for line in lines)

    def _repr_html_(self) -> str:
        """For notebooks: the network, and what `perhop run` prints."""
        return notebook.of_result(self)

    @property
    def plot(self) -> Plots:
        """Pictures as figures of matplotlib: `plot.throughput()`, `.delay_cdf()`, `.queue()` and others.

        They are those of the report of `perhop run --out`.
        """
        return accessor.Plots(self)

    def to_latex(
        self, table: str = "classes", *, caption: str | None = None, label: str | None = None
    ) -> str:
        """One of the tables that `perhop run` prints as LaTeX, for the package booktabs; all text is escaped.

        Args:
            table: `classes`, `links`, `link-classes`, `populations`, or a model of applications: `web`.
            caption: Of the table; with it or a label, the `tabular` is within a `table`.
            label: For references to it: letters, digits and `: . _ / + -`.

        Raises:
            PerhopError: The result has no such table.
            ValueError: The label has other characters.
        """
        frames_of = {
            "classes": self.classes(),
            "links": self.link_summary(),
            "link-classes": self.link_class_summary(),
            "populations": self.population_summary(),
            **self.applications(),
        }
        known = {name: frame for name, frame in frames_of.items() if frame.height}
        if table not in known:
            raise PerhopError(f"the result has no table `{table}`; it has: {', '.join(known)}")
        return latex_table(readable(known[table]), caption, label)

    @cached_property
    def flows(self) -> pl.DataFrame:
        """One row for each run and flow: rates in bit/s, times in s, packets; null where there is none.

        The columns are those of `perhop list measures`, and all are measured after the warm-up. Packets under
        way when it ended count where they arrive or are dropped, not where they were sent.
        """
        return pl.concat([frames.flow_frame(run) for run in self.runs])

    @cached_property
    def links(self) -> pl.DataFrame:
        """One row for each run and link: rate, utilization (fraction), queue (packets), delay (s), loss.

        Measured after the warm-up: `loss` is `dropped_packets` as a fraction of `arrived_packets`.
        Over the whole run, `arrived_whole_run` = `sent_whole_run` + `dropped_whole_run` + `waiting_packets`.
        """
        return pl.DataFrame(
            [row for run in self.runs for row in frames.link_rows(run)],
            schema=frames.LINK_SCHEMA,
            orient="row",
        )

    @cached_property
    def link_classes(self) -> pl.DataFrame:
        """One row for each run, link and class of packets of its queue, such as green and blue.

        The columns are those of `links` that concern a queue. (Jitter, of RFC 3550, is of flows.)
        """
        rows = [row for run in self.runs for row in frames.link_class_rows(run)]
        return pl.DataFrame(rows, schema=frames.LINK_CLASS_SCHEMA, orient="row")

    @cached_property
    def delays(self) -> pl.DataFrame:
        """How long packets waited, as a distribution function: one row for each run, link, class and bin.

        Columns: `seed`, `link`, `class` (`all`, and the classes of packets that the queue distinguishes),
        `delay_s` (upper edge of a bin, at most 3.1 % or 1 µs wide), `packets` in the bin and `share` of
        packets that waited no longer; of packets that came after the warm-up.
        """
        return pl.DataFrame(
            [row for run in self.runs for row in frames.delay_rows(run)],
            schema=frames.DELAY_SCHEMA,
            orient="row",
        )

    @cached_property
    def drops(self) -> pl.DataFrame:
        """One row for each run, link, reason and color: packets dropped after the warm-up."""
        return self._by_reason("dropped")

    @cached_property
    def notifications(self) -> pl.DataFrame:
        """One row for each run, link, reason and color: packets marked with CE and admitted (ECN).

        Empty unless a rule has `ecn` and packets are capable of it; counted after the warm-up.
        """
        return self._by_reason("notified")

    def _by_reason(self, count: str) -> pl.DataFrame:
        rows = [
            (run.seed, str(link["name"]), reason, color, int(packets))
            for run in self.runs
            for link in run.raw["links"]
            for reason, by_color in link["measured"].get(count, {}).items()
            for color, packets in zip(COLORS, by_color, strict=True)
        ]
        names = {
            "seed": pl.UInt64,
            "link": pl.String,
            "reason": pl.String,
            "color": pl.String,
            "packets": pl.Int64,
        }
        return pl.DataFrame(rows, schema=names, orient="row")

    @cached_property
    def series(self) -> pl.DataFrame:
        """One row for each run, probe time and flow: throughput (bit/s), cwnd (packets), RTT (s).

        `received_bytes` counts up from the start of the run; `seen_packets` is the window as the control of
        the flow's path last saw it, null without one. Empty unless the scenario sets `[probes] interval`.
        """
        return pl.concat([frames.series_frame(run) for run in self.runs])

    @cached_property
    def queues(self) -> pl.DataFrame:
        """One row for each run, probe time, link and quantity, in packets unless its name says otherwise.

        Quantities: `queue`, the length; what the queue's rule keeps track of, such as `average total`; and,
        where the queue distinguishes classes of packets, `CLASS packets` that wait, and `CLASS arrived` and
        `CLASS dropped` since the run began.
        """
        samples = [frame for run in self.runs for frame in frames.queue_frames(run)]
        return pl.concat(samples) if samples else pl.DataFrame(schema=frames.QUEUE_SCHEMA)

    @cached_property
    def population_flows(self) -> pl.DataFrame:
        """One row for each run and finite flow of a population, in the order in which they began.

        Columns: `seed`, `class`, `started_s`, `size_bytes` (payload), `idle_s` (the least time that its bytes
        take on its path, headers included), `completion_s` (from the start to the arrival of the last byte;
        null for a flow that was unfinished at the end of the run) and `slowdown` (their ratio). Flows that
        began during the warm-up are included.
        """
        return pl.concat([populations.flow_frame(run) for run in self.runs])

    def population_summary(self, sizes: Sequence[float] = populations.SIZES) -> pl.DataFrame:
        """One row for each population, and one for each of its ranges of sizes, over the runs.

        Columns: `class`, `sizes` (`all`, or a range of payload), `flows_begun` and `unfinished` (flows of a
        run), `completion_p50_s`, `completion_p99_s`, `completion_mean_s`, `slowdown_p50`, `slowdown_p99`,
        `slowdown_mean`, `open_flows` (open at once, on average). All are of the flows that began after the
        warm-up, but `open_flows`. Unfinished flows count in times and slowdowns by the product limit (Kaplan
        & Meier 1958): a percentile that they leave open is null, and a mean that is a lower bound has an
        infinite upper end. Percentiles are of all runs together, the 99th of at least 100 flows of them, else
        null. The ends of 95 % intervals as in `classes`.

        Args:
            sizes: Bytes of payload that divide the ranges.

        Raises:
            ValueError: The sizes do not increase, or one is not positive.
        """
        return populations.summary(self, sizes)

    def classes(self) -> Estimates:
        """One row for each `[[flows]]` entry, over the runs, measured after the warm-up.

        Columns: `class`, `flows` (null for a population, whose flows come and go: the measures are those of
        all together), `profile_bps`, and the measures of a class in `perhop list measures`: each
        over the flows of the class, then a mean over the runs, null where there is none. Each has the ends of
        its 95 % interval beside it, such as `throughput_low_bps` and `throughput_high_bps` beside
        `throughput_bps`, null for a single run.
        """
        groups = self.runs[0].groups
        by_run = [[flows for _, flows in catalog.members(run.raw)] for run in self.runs]
        links = observing.link_queues(self.runs, self.scenario)
        rows = [
            frames.class_row(group, members, links)
            for group, members in zip(groups, zip(*by_run, strict=True), strict=True)
        ]
        return Estimates(rows, infer_schema_length=None)

    def link_class_summary(self) -> Estimates:
        """One row for each link and class of packets that its queue distinguishes; means over the runs.

        Columns: `link`, `class`, `arrived_packets`, `loss` (fraction of them dropped), and the waiting times
        of `link_classes`; measured after the warm-up. The ends of 95 % intervals as in `classes`.
        """
        measured = catalog.in_tables(catalog.QUEUE, classes=True)
        rare_load = observing.has_rare_load(self.runs)
        rows = [
            {
                "link": str(of_link[0]["name"]),
                "class": str(places[0]["name"]),
                "arrived_packets": frames.mean(places, "arrived_packets"),
                **frames.queue_columns(places, measured, observing.queue_of(places, rare_load)),
            }
            for of_link in zip(*(run.raw["links"] for run in self.runs), strict=True)
            for places in zip(*(link["classes"] for link in of_link), strict=True)
        ]
        return Estimates(rows, infer_schema_length=None)

    @cached_property
    def application_samples(self) -> pl.DataFrame:
        """What users of applications measured one by one: a row for each run, group, quantity and sample.

        Columns: `seed`, `class` (the group), `model`, `quantity` such as `page_s`, and `value`, in the unit
        that ends the quantity's name. After the warm-up.
        """
        samples = [frame for run in self.runs for frame in frames.application_frames(run)]
        return pl.concat(samples) if samples else pl.DataFrame(schema=frames.APPLICATION_SCHEMA)

    def applications(self) -> dict[str, pl.DataFrame]:
        """A table for each model of application: one row for each group of users, means over the runs.

        Columns: `class` (the group), `users`, and the measures of the model in `perhop list measures`, with
        the ends of 95 % intervals as in `classes`. Calls have those of `perhop.quality.call_summary`, a row
        for each direction.
        """
        groups: dict[str, list[int]] = {}
        for place, users in enumerate(self.runs[0].raw.get("applications", ())):
            groups.setdefault(users["model"], []).append(place)
        tables: dict[str, pl.DataFrame] = {}
        for model, places in groups.items():
            by_group = [[run.raw["applications"][place] for run in self.runs] for place in places]
            names = [str(runs[0]["name"]) for runs in by_group]
            if catalog.APPLICATION[model]:
                rows = [
                    frames.application_row(name, runs, model)
                    for name, runs in zip(names, by_group, strict=True)
                ]
                tables[model] = Estimates(rows, infer_schema_length=None)
            else:
                tables[model] = quality.call_summary(
                    self, [way for name in names for way in (name, name + REVERSE)]
                )
        return tables

    def link_summary(self) -> Estimates:
        """One row for each link, means over the runs.

        Columns: `link`, `rate_bps`, `utilization`, `loss`, `mean_queue_packets`, `delay_p50_s`,
        `delay_p95_s`, `delay_p99_s`, `arrived_packets`, and the mean number of packets dropped in a run for
        each reason, `dropped_REASON`; where there were any, of those marked with CE and admitted,
        `notified_REASON`. Measured after the warm-up. The ends of 95 % intervals as in `classes`.
        """
        measured = catalog.in_tables((*catalog.LINK, *catalog.QUEUE))
        counts = {"dropped": self.drops, "notified": self.notifications}
        rows = []
        queues = observing.link_queues(self.runs, self.scenario)
        links = zip(*(run.raw["links"] for run in self.runs), strict=True)
        for places, queue in zip(links, queues, strict=True):
            name = str(places[0]["name"])
            row: dict[str, Any] = {
                "link": name,
                "rate_bps": float(places[0]["rate_bps"]),
                **frames.queue_columns(places, measured, queue),
                "arrived_packets": frames.mean(places, "arrived_packets"),
            }
            for count, packets in counts.items():
                for reason in packets["reason"].unique(maintain_order=True):
                    chosen = (pl.col("link") == name) & (pl.col("reason") == reason)
                    row[f"{count}_{reason}"] = packets.filter(chosen)["packets"].sum() / len(self.runs)
            rows.append(row)
        return Estimates(rows, infer_schema_length=None)


def describe_runs(runs: Sequence[Run], how: str = "simulated") -> str:
    """`60 s simulated, the first 10 s excluded; 5 runs, seeds 1 to 5`."""
    raw, seeds = runs[0].raw, [run.seed for run in runs]
    span = f"{exact(raw['duration_s'])} s {how}"
    if raw["warmup_s"]:
        span += f", the first {exact(raw['warmup_s'])} s excluded"
    which = f"seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}"
    return f"{span}; {counted(len(seeds), 'run')}, {which}"
