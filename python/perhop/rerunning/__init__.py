"""Run what a manifest describes once more, and compare every number: of `perhop run`, `sweep`, `compare`."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from perhop.errors import ArgumentError
from perhop.files import arguments
from perhop.measures import catalog, naming
from perhop.plurals import counted
from perhop.rerunning.manifest import MISSING, SAMPLES, Difference, Manifest, read
from perhop.runs import extent, simulate
from perhop.runs.extent import Engine
from perhop.runs.result import Result, describe_runs
from perhop.runs.summary import numbers
from perhop.show import table
from perhop.show.report import Records, Report
from perhop.show.written import Shown

Progress = Callable[[int, int], None]
"""Called with the number of finished runs and of all."""
MOST_SHOWN = 10
"""Differences that text lists; the others are counted."""


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Rerun(Shown):
    """A report that was computed again: how many numbers were compared, and which of them differ.

    Attributes:
        manifest: What the report says of the first time.
        result: The runs of the second time; None for a sweep or a comparison.
        compared: How many numbers and settings were compared.
        differences: Those that differ, each with its `place` in the report and its value `then` and `now`.
    """

    TABLE: ClassVar = "differences"
    COLUMNS: ClassVar = ("number", "then", "now")
    manifest: Manifest
    result: Result | None
    compared: int
    differences: tuple[Difference, ...]

    @property
    def agrees(self) -> bool:
        """Whether every number is the same."""
        return not self.differences

    def text(self, width: int | None = None) -> str:
        """Return what `perhop rerun` prints: what ran, and the first ten numbers that differ."""
        lines = [*self._repeated(), self._verdict()]
        if self.differences:
            lines += ["", *table.records(self._rows(), width)]
        if len(self.differences) > MOST_SHOWN:
            lines.append(f"and {len(self.differences) - MOST_SHOWN:,} more")
        return "\n".join(lines)

    def _reports(self, width: int | None) -> list[Report]:  # noqa: ARG002 - the same for any width
        return [Report("", [*self._repeated(), self._verdict()], [Records("", self._rows())])]

    def _rows(self) -> list[dict[str, str]]:
        """Return the first ten numbers that differ, a row each."""
        return [
            {"number": one.place, "then": _cell(one.then), "now": _cell(one.now)}
            for one in self.differences[:MOST_SHOWN]
        ]

    def json(self) -> str:
        """Return the comparison as JSON: `kind`, `runs`, `compared`, and each of the `differences`."""
        content = {
            "manifest": str(self.manifest.path),
            "version": self.manifest.version,
            "kind": self.manifest.kind,
            "runs": self.manifest.runs,
            "compared": self.compared,
            "differences": [
                {"number": one.place, "then": _plain(one.then), "now": _plain(one.now)}
                for one in self.differences
            ],
        }
        return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    def _outline(self) -> str:
        return f"{self.manifest.path}: {counted(self.manifest.runs, 'run')}; {self._verdict().rstrip('.:')}"

    def _repeated(self) -> list[str]:
        """Return lines on what ran again, and on what is not compared."""
        first = self.manifest
        if self.result is None:
            what = counted(len(first.parts), "point" if first.kind == "sweep" else "scenario")
            only = "Only the simulated numbers are compared: real packets never give the same ones twice."
            lines = [f"perhop {first.kind}: {what}, {counted(first.runs, 'run')}"]
            return lines + [only] * (first.kind == "compare")
        lines = [f"{self.result.title}: {describe_runs(self.result.runs)}"]
        if first.results is None:
            lines.append("The manifest has no means: only the flows of each run are compared.")
        if first.samples is None:
            lines.append("samples.parquet is not beside the manifest: only the means are compared.")
        return lines

    def _verdict(self) -> str:
        what = "numbers and settings" if self.manifest.settings else "numbers"
        if self.agrees:
            return f"All {self.compared:,} {what} agree."
        differ = "differs" if len(self.differences) == 1 else "differ"
        return f"{len(self.differences):,} of {self.compared:,} {what} {differ}:"


def rerun(
    manifest: Manifest | Path | str,
    *,
    jobs: int | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
    waiting: Callable[[float], None] | None = None,
) -> Rerun:
    """Run the scenarios of a report on their seeds, and compare each number with that of the first time.

    Args:
        manifest: As `perhop.rerunning.manifest.read` returns it, or its file or folder.
        jobs: As for `perhop.run`.
        engine: As for `perhop.run`; the engine of the first time need not be the same. Runs of a sweep have
            no choice.
        progress: As for `perhop.run`.
        waiting: As for `perhop.run`.

    Raises:
        PerhopError: The report cannot be read, is of another command or holds nothing to compare with, or an
            argument is out of range.
        ScenarioError: The engine that is requested refuses the network.
    """
    first = manifest if isinstance(manifest, Manifest) else read(arguments.path("manifest", manifest))
    simulated = partial(simulate.run, jobs=jobs, engine=engine)
    if first.kind == "run":
        (part,) = first.parts
        result = simulated(
            json.loads(part.checked.text),
            **{"runs": len(part.seeds), **part.until},
            seed=part.seeds[0],
            progress=progress,
            waiting=waiting,
        )
        differences: list[Difference] = []
        compared = 0
        if first.results is not None:
            # As they would be read from a file.
            compared += _compare(first.results, json.loads(json.dumps(numbers(result))), differences)
        if first.samples is not None:
            compared += _compare_flows(first.samples, result.flows, differences)
        return Rerun(first, result, compared, tuple(differences))
    if first.kind == "sweep":
        if engine is not None:
            raise ArgumentError("engine", ": each run of a sweep chooses its engine; leave this out")
        rows = list(_swept(first, extent.workers(jobs), progress))
    else:
        rows = list(_simulated(first, simulated, progress))
    return _compared(first, rows)


Row = tuple[int, int, str, float | None]
"""The number of a scenario, a seed, the name of a measure, and its value."""


def _swept(manifest: Manifest, jobs: int, progress: Progress | None) -> Iterator[Row]:
    from perhop.runs.companions import is_companion  # noqa: PLC0415
    from perhop.sweeps.backend import Failed, LocalBackend, Task  # noqa: PLC0415 - only sweeps have it

    texts = [part.checked.text for part in manifest.parts]
    tasks = [Task(number, seed) for number, part in enumerate(manifest.parts) for seed in part.seeds]
    done = 0
    with LocalBackend(jobs) as backend, contextlib.closing(backend.run(texts, tasks)) as groups:  # type: ignore[type-var]
        for group in groups:
            for task, run in group:
                known = () if isinstance(run, Failed) else zip(run.names, run.values, strict=True)
                for name, value in known:
                    if not is_companion(name):
                        yield task.scenario, task.seed, name, None if math.isnan(value) else value
                done += 1
                if progress is not None:
                    progress(done, manifest.runs)


def _simulated(
    manifest: Manifest, simulated: Callable[..., Result], progress: Progress | None
) -> Iterator[Row]:
    from perhop.real_packets.equivalence import collect  # noqa: PLC0415 - only comparisons have it

    before = 0
    for number, part in enumerate(manifest.parts):

        def step(done: int, _all: int, before: int = before) -> None:
            if progress is not None:
                progress(before + done, manifest.runs)

        result = simulated(
            json.loads(part.checked.text), runs=len(part.seeds), seed=part.seeds[0], progress=step
        )
        before += len(part.seeds)
        for key, values in collect(result.runs).items():
            for seed, value in values.items():
                name = f"{key.kind} {key.name} {key.measure}"
                yield number, seed, f"{name} {key.of.unit}" if manifest.with_units else name, value


def _compared(manifest: Manifest, found: list[Row]) -> Rerun:
    """Compare every number of a sweep or a comparison, and the settings beside them."""
    assert manifest.samples is not None
    schema = {"part": pl.Int64, "seed": pl.Int64, "metric": pl.String, "value": pl.Float64}
    now = pl.DataFrame(found, schema=schema, orient="row")
    keys = ["part", "seed", "metric"]
    rows = manifest.samples.group_by(keys, maintain_order=True).agg(pl.col("value").first(), there=pl.len())
    both = rows.join(
        now.with_columns(here=pl.lit(1)), on=keys, how="full", coalesce=True, suffix="_now", nulls_equal=True
    )
    other = ~pl.col("value").eq_missing(pl.col("value_now")) | ~pl.col("there").eq_missing(pl.col("here"))
    differences = list(manifest.mislabeled)
    for row in both.filter(other).sort(keys).iter_rows(named=True):
        known = row["part"] is not None and 0 <= row["part"] < len(manifest.parts)
        label = manifest.parts[row["part"]].label if known else row["part"]
        place = f"{SAMPLES}, {row['metric']}[{', '.join(filter(None, (str(label), str(row['seed']))))}]"
        if row["there"] is not None and row["there"] > 1:
            differences.append(Difference(f"{place}, rows", row["there"], 1 if row["here"] else MISSING))
            continue
        then = MISSING if row["there"] is None else row["value"]
        differences.append(Difference(place, then, MISSING if row["here"] is None else row["value_now"]))
    return Rerun(manifest, None, both.height + manifest.settings, tuple(differences))


def _compare(then: object, now: object, differences: list[Difference]) -> int:
    """Return how many numbers there are in either; those that differ join `differences`."""
    old, new = dict(_leaves(then, "")), dict(_leaves(now, ""))
    places = [place for place in dict.fromkeys([*old, *new]) if place in old or not _is_bound(place)]
    for place in places:
        one, other = old.get(place, MISSING), new.get(place, MISSING)
        if type(one) is not type(other) or one != other:
            differences.append(Difference(place, one, other))
    return len(places)


def _is_bound(place: str) -> bool:
    """Whether a number is a bound, which reports of earlier versions do not have."""
    return place.rpartition(".")[2] in catalog.BOUNDS


def _leaves(value: object, place: str) -> Iterator[tuple[str, object]]:
    """Each number with its place; rows of tables are named by their texts."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(inner, str):  # texts name the row
                name = naming.current(str(key))
                yield from _leaves(inner, f"{place}.{name}" if place else name)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            row = inner.values() if isinstance(inner, dict) else ()
            texts = [text for text in row if isinstance(text, str)]
            yield from _leaves(inner, f"{place}[{', '.join([str(index), *texts])}]")
    else:
        yield place, value


def _compare_flows(then: pl.DataFrame, now: pl.DataFrame, differences: list[Difference]) -> int:
    """Return how many numbers of flows were compared; those that differ join `differences`."""
    then = then.rename(naming.current)
    if then.height != now.height:
        differences.append(Difference(f"{SAMPLES}, rows", then.height, now.height))
        return 1
    compared = 0
    for name in dict.fromkeys([*then.columns, *now.columns]):
        if name not in then.columns and _is_bound(name):
            continue
        if name not in then.columns or name not in now.columns or then[name].dtype != now[name].dtype:
            kinds = [str(one[name].dtype) if name in one.columns else MISSING for one in (then, now)]
            differences.append(Difference(f"{SAMPLES}, column {name}", *kinds))
            compared += 1
            continue
        compared += now.height
        old, new = then[name], now[name]
        for row in (~old.eq_missing(new)).arg_true().to_list():
            flow = ", ".join(str(now[key][row]) for key in ("seed", "class", "member"))
            differences.append(Difference(f"{SAMPLES}, {name}[{flow}]", old[row], new[row]))
    return compared


def _cell(value: object) -> str:
    """A value as the table shows it: a number that a run does not define is `null`, as in the manifest."""
    return "null" if value is None else str(value)


def _plain(value: object) -> Any:  # noqa: ANN401 - a number, or text
    """A value as JSON has it."""
    is_number = value is None or isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
    return value if is_number else str(value)
