"""Run a scenario over several seeds and read the outcome as data frames."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from perhop import _engine
from perhop.errors import PerhopError
from perhop.inputs import read_text
from perhop.measures import histogram_quantile
from perhop.parallel import available_cores, parallel_map
from perhop.runs import COLORS, Group, Run
from perhop.statistics import estimate

MAX_SEED = 2**64 - 1
MAX_RUNS = 100_000
"""Runs of one scenario that a command does at most."""
QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


class ScenarioLike(Protocol):
    """What the builder classes of `perhop.scenario` offer."""

    def to_json(self) -> str:
        """The scenario as JSON text."""
        ...


ScenarioSource: TypeAlias = "ScenarioLike | Mapping[str, Any] | Path | str"
"""A built scenario, the same as plain dicts and lists, the path of a TOML file, or TOML text."""


def canonical(scenario: ScenarioSource) -> str:
    """The scenario as canonical JSON, checked and with every default filled in.

    Args:
        scenario: See `ScenarioSource`.

    Raises:
        ScenarioError: It does not describe a network; the message names the place and the key.
        PerhopError: The file cannot be read, or this is no scenario at all.
    """
    if isinstance(scenario, str) and _names_a_file(scenario):
        scenario = Path(scenario)
    if isinstance(scenario, Path):
        return _engine.scenario_from_toml(read_text(scenario), str(scenario))
    if isinstance(scenario, str):
        return _engine.scenario_from_toml(scenario, "scenario")
    if isinstance(scenario, Mapping):
        return _engine.scenario_from_json(_as_json(scenario), "scenario")
    if not hasattr(scenario, "to_json"):
        raise PerhopError(
            "a scenario is a perhop.Scenario, a dict, the path of a TOML file, or TOML text, not "
            f"{type(scenario).__name__}"
        )
    try:
        text = scenario.to_json()
    except TypeError as error:
        raise PerhopError(f"scenario: {error}") from None
    return _engine.scenario_from_json(_as_json(json.loads(text)), "scenario")


def _names_a_file(text: str) -> bool:
    """Whether text is a file's name and not TOML: TOML of one line is no scenario."""
    if "\n" in text or not text.strip():
        return False
    try:
        return text.endswith(".toml") or Path(text).is_file()
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
        PerhopError: No run, a negative seed, one beyond 64 bits, or something that is no whole number.
    """
    _whole("runs", runs)
    _whole("seed", first)
    if runs < 1:
        raise PerhopError(f"runs must be at least 1, not {runs}")
    if not 0 <= first <= MAX_SEED:
        raise PerhopError(f"seed must be at least 0 and fit in 64 bits, not {first}")
    if first + runs - 1 > MAX_SEED:
        raise PerhopError(
            f"seed {first} leaves no room for {runs} runs: the last seed must fit in 64 bits; "
            f"begin at {MAX_SEED - runs + 1} or below"
        )
    return tuple(range(first, first + runs))


def _whole(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise PerhopError(f"{name} must be a whole number, not {value!r}")


def workers(jobs: int | None) -> int:
    """The number of threads to use: all cores unless told.

    Raises:
        PerhopError: Fewer than 1 or more than 1024 threads.
    """
    if jobs is None:
        return available_cores()
    _whole("jobs", jobs)
    if not 1 <= jobs <= 1024:
        raise PerhopError(f"jobs must lie between 1 and 1024, not {jobs}")
    return jobs


def run(
    scenario: ScenarioSource,
    *,
    runs: int = 1,
    seed: int = 1,
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    cancel: _engine.Cancel | None = None,
) -> Result:
    """Simulate a scenario on the seeds `seed`, `seed + 1`, …; any number of threads gives the same result.

    Args:
        scenario: See `ScenarioSource`.
        runs: Number of independent runs.
        seed: First seed, at least 0.
        jobs: Threads; all cores if not given.
        progress: Called with (finished, all) on the calling thread after every run.
        cancel: Set it from another thread to stop; `perhop._engine.Cancelled` is then raised.

    Raises:
        ScenarioError: The scenario is wrong; the message names the place and the key.
        PerhopError: An argument is out of range, or the file cannot be read.
        perhop._engine.Cancelled: `cancel` was set.
    """
    text = canonical(scenario)
    wanted = seeds(seed, runs)
    threads = workers(jobs)
    flag = cancel if cancel is not None else _engine.Cancel()
    done = 0

    def finished(_place: int, _run: Run) -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, runs)

    def simulate(number: int) -> Run:
        return Run(number, _engine.simulate(text, number, flag))

    return Result(text, tuple(parallel_map(simulate, wanted, jobs=threads, cancel=flag, finished=finished)))


@dataclass(frozen=True)
class Result:
    """The runs of one scenario.

    Attributes:
        scenario: The scenario as canonical JSON.
        runs: One entry for each seed, in the order of the seeds.
    """

    scenario: str
    runs: tuple[Run, ...]

    @cached_property
    def flows(self) -> pl.DataFrame:
        """One row for each run and flow: rates in bit/s, times in s, packets; null where there is none.

        All of it is measured after the warm-up: rates, packets, drops, timeouts, round trips, one-way delay
        (`mean_transit_s`) and RFC 3550's jitter (`jitter_s`; both null for TCP). Packets under way
        when it ended count where they arrive or are dropped, not where they were sent.
        """
        return pl.concat([_flow_frame(run) for run in self.runs])

    @cached_property
    def links(self) -> pl.DataFrame:
        """One row for each run and link: rate, utilization (fraction), queue (packets), delay (s).

        Packets are counted over the whole run, so that they balance; all else is measured after the warm-up.
        """
        return pl.DataFrame(
            [row for run in self.runs for row in _link_rows(run)], schema=_LINK_SCHEMA, orient="row"
        )

    @cached_property
    def link_classes(self) -> pl.DataFrame:
        """One row for each run, link and class of packets that its queue tells apart, such as green and blue.

        Packets (`arrived_packets`, `sent_packets`, `waiting_packets`, `dropped_packets`) are counted over the
        whole run; waiting times (`delay_p50_s` to `delay_max_s`) and their jitter, p99 − p50,
        (`delay_jitter_s`), in seconds, are of packets that came after the warm-up; null without any.
        """
        rows = [row for run in self.runs for row in _link_class_rows(run)]
        return pl.DataFrame(rows, schema=_LINK_CLASS_SCHEMA, orient="row")

    @cached_property
    def delays(self) -> pl.DataFrame:
        """How long packets waited, as a distribution function: one row for each run, link, class and bin.

        Columns: `seed`, `link`, `class` (`all`, and the classes of packets that the queue tells apart),
        `delay_s` (upper edge of a bin, at most 3.1 % or 1 µs wide), `packets` in the bin and `share` of
        packets that waited no longer; of packets that came after the warm-up.
        """
        return pl.DataFrame(
            [row for run in self.runs for row in _delay_rows(run)], schema=_DELAY_SCHEMA, orient="row"
        )

    @cached_property
    def drops(self) -> pl.DataFrame:
        """One row for each run, link, reason and color: packets dropped in the whole run."""
        return self._by_reason("dropped")

    @cached_property
    def notifications(self) -> pl.DataFrame:
        """One row for each run, link, reason and color: packets let in with word of congestion (ECN).

        Empty unless a rule has `ecn` and packets are capable of it; counted over the whole run.
        """
        return self._by_reason("notified")

    def _by_reason(self, count: str) -> pl.DataFrame:
        rows = [
            (run.seed, str(link["name"]), reason, color, int(packets))
            for run in self.runs
            for link in run.raw["links"]
            for reason, by_color in link.get(count, {}).items()
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
        return pl.concat([_series_frame(run) for run in self.runs])

    @cached_property
    def queues(self) -> pl.DataFrame:
        """One row for each run, probe time, link and quantity, in packets unless its name says otherwise.

        Quantities: `queue`, the length; what the queue's rule keeps track of, such as `average total`; and,
        where the queue tells classes of packets apart, `CLASS packets` that wait, and `CLASS arrived` and
        `CLASS dropped` since the run began.
        """
        frames = [frame for run in self.runs for frame in _queue_frames(run)]
        return pl.concat(frames) if frames else pl.DataFrame(schema=_QUEUE_SCHEMA)

    def classes(self) -> pl.DataFrame:
        """One row for each `[[flows]]` entry, over the runs, measured after the warm-up.

        Columns: `class`, `flows`, `profile_bps`; `throughput_bps` (mean over flows, then over runs) with
        `throughput_low_bps` and `throughput_high_bps`, null for a single run; `dropped_green`,
        `dropped_yellow`, `dropped_red` (share of the packets of that color that a queue dropped; null if
        there were none) and `mean_rtt_s`.
        """
        groups = self.runs[0].groups
        members = [_members(run, len(groups)) for run in self.runs]
        rows = [
            _class_row(self.runs, group, [of_run[index] for of_run in members])
            for index, group in enumerate(groups)
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    def link_class_summary(self) -> pl.DataFrame:
        """One row for each link and class of packets that its queue tells apart; means over the runs.

        Columns: `link`, `class`, `arrived_packets`, `loss` (fraction of them dropped, whole run), and the
        waiting times of `link_classes`.
        """
        delays = [name for name in _LINK_CLASS_SCHEMA if name.startswith("delay_")]
        return self.link_classes.group_by(["link", "class"], maintain_order=True).agg(
            pl.col("arrived_packets").mean(),
            (pl.col("dropped_packets").sum() / pl.col("arrived_packets").sum()).fill_nan(None).alias("loss"),
            *(pl.col(name).mean() for name in delays),
        )

    def link_summary(self) -> pl.DataFrame:
        """One row for each link, means over the runs.

        Columns: `link`, `rate_bps`, `utilization` with `utilization_low` and `utilization_high`,
        `mean_queue_packets`, `delay_p50_s`, `delay_p95_s`, `delay_p99_s`, `arrived_packets`, and the mean
        number of packets dropped in a run for each reason, `dropped_REASON`; where there were any, those let
        in with word of congestion, `notified_REASON`. Packets are counted over the whole run, warm-up
        included.
        """
        counts = {"dropped": self.drops, "notified": self.notifications}
        rows = []
        for (name,), frame in self.links.group_by(["link"], maintain_order=True):
            used = estimate(frame["utilization"].to_list())
            row: dict[str, Any] = {
                "link": name,
                "rate_bps": frame["rate_bps"][0],
                "utilization": used.mean,
                "utilization_low": used.ci95[0] if used.ci95 else None,
                "utilization_high": used.ci95[1] if used.ci95 else None,
            }
            for column in ("mean_queue_packets", *(f"delay_{q}_s" for q in QUANTILES), "arrived_packets"):
                row[column] = frame[column].mean()
            for count, counted in counts.items():
                for reason in counted["reason"].unique(maintain_order=True):
                    chosen = (pl.col("link") == name) & (pl.col("reason") == reason)
                    row[f"{count}_{reason}"] = counted.filter(chosen)["packets"].sum() / len(self.runs)
            rows.append(row)
        return pl.DataFrame(rows, infer_schema_length=None)


_LINK_SCHEMA = {
    "seed": pl.UInt64,
    "link": pl.String,
    "rate_bps": pl.Float64,
    "utilization": pl.Float64,
    "mean_queue_packets": pl.Float64,
    "delay_p50_s": pl.Float64,
    "delay_p95_s": pl.Float64,
    "delay_p99_s": pl.Float64,
    "arrived_packets": pl.Int64,
    "sent_packets": pl.Int64,
    "waiting_packets": pl.Int64,
    "dropped_packets": pl.Int64,
}

_LINK_CLASS_SCHEMA = {
    "seed": pl.UInt64,
    "link": pl.String,
    "class": pl.String,
    "arrived_packets": pl.Int64,
    "sent_packets": pl.Int64,
    "waiting_packets": pl.Int64,
    "dropped_packets": pl.Int64,
    "delay_p50_s": pl.Float64,
    "delay_p95_s": pl.Float64,
    "delay_p99_s": pl.Float64,
    "delay_max_s": pl.Float64,
    "delay_jitter_s": pl.Float64,
}

_DELAY_SCHEMA = {
    "seed": pl.UInt64,
    "link": pl.String,
    "class": pl.String,
    "delay_s": pl.Float64,
    "packets": pl.Int64,
    "share": pl.Float64,
}

_QUEUE_SCHEMA = {
    "seed": pl.UInt64,
    "time_s": pl.Float64,
    "link": pl.String,
    "quantity": pl.String,
    "packets": pl.Float64,
}


def _identity(run: Run) -> dict[str, pl.Series]:
    """The columns that name a flow: seed, class, member, profile."""
    groups = run.groups
    which = [int(g) for g in run.flows("group")]
    return {
        "seed": pl.Series([run.seed] * len(which), dtype=pl.UInt64),
        "class": pl.Series([groups[g].name for g in which], dtype=pl.String),
        "member": pl.Series(run.flows("member")),
        "profile_bps": pl.Series([groups[g].profile_bps for g in which], dtype=pl.Float64),
    }


def _flow_frame(run: Run) -> pl.DataFrame:
    columns = _identity(run)
    for name, values in run.raw["flows"].items():
        if name in {"group", "member"}:
            continue
        if np.ndim(values) == 2:
            for index, color in enumerate(COLORS):
                columns[f"{name}_{color}"] = pl.Series(np.ascontiguousarray(values[:, index]))
        else:
            columns[name] = pl.Series(values)
    measured = pl.col("mean_rtt_s", "mean_transit_s", "jitter_s")
    return pl.DataFrame(columns).with_columns(measured.fill_nan(None))


def _link_rows(run: Run) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for link in run.raw["links"]:
        quantiles = delay_quantiles(link["delay_s"])
        dropped = sum(int(packets.sum()) for packets in link["dropped"].values())
        rows.append(
            (
                run.seed,
                str(link["name"]),
                float(link["rate_bps"]),
                float(link["utilization"]),
                float(link["mean_queue_packets"]),
                *quantiles,
                *(int(link[key].sum()) for key in ("arrived", "sent", "waiting")),
                dropped,
            )
        )
    return rows


def _delay_rows(run: Run) -> Iterator[tuple[object, ...]]:
    for link in run.raw["links"]:
        for books in ({**link, "name": "all"}, *link["classes"]):
            counts = books["delay_s"]["counts"].sum(axis=1)
            below = np.cumsum(counts)
            for edge, packets, sum_ in zip(books["delay_s"]["edges"][1:], counts, below, strict=True):
                if packets:
                    share = float(sum_) / float(below[-1])
                    yield (run.seed, str(link["name"]), str(books["name"]), float(edge), int(packets), share)


def delay_quantiles(delay: Mapping[str, Any]) -> list[float | None]:
    """p50, p95 and p99 of waiting times as the engine reports them, in seconds; None without a packet."""
    edges = [float(edge) for edge in delay["edges"]]
    counts = [int(count) for count in delay["counts"].sum(axis=1)]
    return [histogram_quantile(edges, counts, q) for q in QUANTILES.values()]


def _link_class_rows(run: Run) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for link in run.raw["links"]:
        for books in link["classes"]:
            p50, p95, p99 = delay_quantiles(books["delay_s"])
            longest = float(books["delay_s"]["max"].max()) if p99 is not None else None
            jitter = None if p50 is None or p99 is None else p99 - p50
            counts = [int(books[key].sum()) for key in ("arrived", "sent", "waiting")]
            dropped = sum(int(packets.sum()) for packets in books["dropped"].values())
            names = (run.seed, str(link["name"]), str(books["name"]))
            rows.append((*names, *counts, dropped, p50, p95, p99, longest, jitter))
    return rows


def _series_frame(run: Run) -> pl.DataFrame:
    series = run.raw["series"]
    times = series["time_s"]
    identity = _identity(run)
    flows = len(identity["member"])
    columns = {
        name: pl.Series(np.tile(values.to_numpy(), len(times)), dtype=values.dtype)
        for name, values in identity.items()
    }
    columns["time_s"] = pl.Series(np.repeat(times, flows), dtype=pl.Float64)
    for name in ("throughput_bps", "cwnd_packets", "rtt_s", "seen_packets"):
        columns[name] = pl.Series(np.asarray(series[name]).reshape(-1), dtype=pl.Float64).fill_nan(None)
    interval = times[0] if len(times) else 0.0
    received = np.cumsum(np.asarray(series["throughput_bps"]), axis=0) * interval / 8.0
    columns["received_bytes"] = pl.Series(np.rint(received).reshape(-1), dtype=pl.Int64)
    return pl.DataFrame(columns)


def _queue_frames(run: Run) -> list[pl.DataFrame]:
    series = run.raw["series"]
    frames = []
    for link, probes in series["links"].items():
        quantities = {"queue": probes["queue_packets"]}
        quantities |= probes["gauges"]
        for name, samples in probes["classes"].items():
            quantities |= {f"{name} {what}": values for what, values in samples.items()}
        for quantity, values in quantities.items():
            size = len(values)
            frames.append(
                pl.DataFrame(
                    {
                        "seed": [run.seed] * size,
                        "time_s": series["time_s"],
                        "link": [link] * size,
                        "quantity": [quantity] * size,
                        "packets": values,
                    },
                    schema=_QUEUE_SCHEMA,
                )
            )
    return frames


def _members(run: Run, groups: int) -> list[NDArray[np.intp]]:
    """The places of each group's flows in the flow table."""
    which = run.flows("group")
    order = np.argsort(which, kind="stable")
    return np.split(order, np.searchsorted(which[order], np.arange(1, groups)))


def _class_row(runs: tuple[Run, ...], group: Group, members: Sequence[NDArray[np.intp]]) -> dict[str, object]:
    """One class over the runs; `members` are its flows' places in each run."""
    pairs = list(zip(runs, members, strict=True))
    throughput = estimate([float(run.flows("throughput_bps")[own].mean()) for run, own in pairs])
    row: dict[str, object] = {
        "class": group.name,
        "flows": group.count,
        "profile_bps": group.profile_bps,
        "throughput_bps": throughput.mean,
        "throughput_low_bps": throughput.ci95[0] if throughput.ci95 else None,
        "throughput_high_bps": throughput.ci95[1] if throughput.ci95 else None,
    }
    marked, dropped = (
        sum(run.flows(column)[own].sum(axis=0) for run, own in pairs) for column in ("marked", "dropped")
    )
    for position, color in enumerate(COLORS):
        row[f"dropped_{color}"] = int(dropped[position]) / int(marked[position]) if marked[position] else None
    trips = np.concatenate([run.flows("mean_rtt_s")[own] for run, own in pairs])
    trips = trips[np.isfinite(trips)]
    row["mean_rtt_s"] = float(trips.mean()) if len(trips) else None
    return row
