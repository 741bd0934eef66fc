"""Run what a manifest of `perhop sweep` or `perhop compare` describes once more, and compare every number."""

from __future__ import annotations

import contextlib
import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from perhop.errors import PerhopError, ScenarioError
from perhop.measures import naming
from perhop.runs import extent, simulate
from perhop.scenario import reading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from perhop.runs.extent import Engine
    from perhop.scenario.reading import Checked

KINDS = ("sweep", "compare")
"""Commands whose manifests hold several scenarios."""
Row = tuple[int, int, str, float | None]
"""The number of a scenario, a seed, the name of a measure, and its value."""
Other = tuple[str, object, object]
"""A difference: its place, the value then, and the value now."""
SAMPLES = "samples.parquet"


@dataclass(frozen=True, slots=True)
class Part:
    """One scenario of several: a point of a sweep, or what was compared with real packets.

    Attributes:
        label: The name that distinguishes it from the others.
        checked: The scenario.
        seeds: One after the other.
        factors: The setting of a point of a sweep; empty of a comparison.
    """

    label: str
    checked: Checked
    seeds: range
    factors: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SetManifest:
    """A set of runs to be repeated, and their recorded results.

    Attributes:
        path: The file.
        version: Of perhop, when it was written.
        kind: The command, `sweep` or `compare`.
        parts: The scenarios.
        samples: Every simulated number of the first time: `part`, `seed`, `metric`, `value`.
        with_units: The names of a comparison's measures in `samples` end in their units.
        settings: How many settings the samples repeat from the manifest: the factors of each point.
        mislabeled: Columns and settings of the samples that are not those of the manifest.
    """

    path: Path
    version: str
    kind: str
    parts: tuple[Part, ...]
    samples: pl.DataFrame
    with_units: bool
    settings: int
    mislabeled: tuple[Other, ...]

    @property
    def scenarios(self) -> list[Checked]:
        """The scenarios, in the order of the manifest."""
        return [part.checked for part in self.parts]

    @property
    def runs(self) -> int:
        """The runs of all scenarios together."""
        return sum(len(part.seeds) for part in self.parts)


def read(
    content: Mapping[str, Any],
    path: Path,
    kind: str,
    samples: pl.DataFrame | None,
    seeds: Callable[[object, str], range],
) -> SetManifest:
    """Read a manifest of several scenarios.

    Args:
        content: What the file holds.
        path: The file.
        kind: The command.
        samples: What is beside it.
        seeds: Checks that whole numbers follow each other; given their place, too.

    Raises:
        PerhopError: It holds no scenarios, or nothing to compare with.
    """
    if samples is None:
        raise PerhopError(f"{path}: {SAMPLES} is not beside it: there is nothing to compare with")
    parts: list[Part] = []
    for number, entry in enumerate(content["scenarios"]):
        place = f"scenarios[{number}]"
        table = entry.get("scenario") if isinstance(entry, dict) else None
        if not isinstance(table, dict):
            hint = "; a manifest holds the scenarios of at most 1000 points" if kind == "sweep" else ""
            raise PerhopError(f"{path}: {place}.scenario: a table is missing here{hint}")
        try:
            checked = reading.read(table)
        except (PerhopError, ScenarioError) as error:
            raise PerhopError(f"{path}: {place}: {error}") from None
        found = entry.get("seeds")
        if kind == "compare":
            found = found.get("simulated") if isinstance(found, dict) else None
        elif isinstance(found, list) and len(found) == 2 and all(type(one) is int for one in found):
            found = list(range(found[0], min(found[1], found[0] + extent.MAX_RUNS) + 1))
        factors = entry.get("factors") if kind == "sweep" else {}
        if not isinstance(factors, dict) or (parts and list(factors) != list(parts[0].factors)):
            raise PerhopError(f"{path}: {place}.factors: must be a table with the factors of all points")
        parts.append(Part(_label(entry, kind), checked, seeds(found, place), factors))
    if not parts:
        raise PerhopError(f"{path}: has no scenarios: there is nothing to run")
    known = _known(samples, parts, kind, path)
    mislabeled = _mislabeled(samples, parts) if kind == "sweep" else _invalid(samples)
    settings = sum(len(part.factors) for part in parts)
    return SetManifest(
        path,
        str(content.get("perhop")),
        kind,
        tuple(parts),
        known,
        "unit" in samples.columns,
        settings,
        tuple(mislabeled),
    )


def _label(entry: Mapping[str, Any], kind: str) -> str:
    if kind == "compare":
        return str(entry.get("name"))
    factors = entry.get("factors")
    named = factors.items() if isinstance(factors, dict) else ()
    return ", ".join(f"{name} = {value}" for name, value in named)


def _known(samples: pl.DataFrame, parts: Sequence[Part], kind: str, path: Path) -> pl.DataFrame:
    """The simulated numbers of the first time, in a form that both kinds share."""
    try:
        if kind == "sweep":
            names = samples.select(pl.col("metric").cast(pl.String).unique()).to_series().drop_nulls()
            today = {name: naming.current(name) for name in names}
            metric = pl.col("metric").cast(pl.String).replace(today)
            frame = samples.select(pl.col("point").cast(pl.Int64).alias("part"), "seed", metric, "value")
        else:
            numbers = {part.label: number for number, part in enumerate(parts)}
            frame = samples.filter(pl.col("source") == "simulated").select(
                pl.col("scenario").replace_strict(numbers, return_dtype=pl.Int64).alias("part"),
                "seed",
                pl.concat_str(*_named_by(samples), separator=" ").alias("metric"),
                "value",
            )
        return frame.cast({"seed": pl.Int64, "metric": pl.String, "value": pl.Float64})
    except pl.exceptions.PolarsError:
        raise PerhopError(
            f"{path.with_name(SAMPLES)}: its columns are not those of `perhop {kind}`"
        ) from None


def _named_by(samples: pl.DataFrame) -> list[str]:
    """The columns that name a number of a comparison; earlier versions wrote no units."""
    return ["kind", "name", "measure", *(["unit"] if "unit" in samples.columns else [])]


def _mislabeled(samples: pl.DataFrame, parts: Sequence[Part]) -> Iterator[Other]:
    """Columns of a sweep's samples that are not those of its factors, and factors with another value."""
    from perhop.sweeps.summary import factor_frame  # noqa: PLC0415 - only sweeps have it

    wanted = factor_frame([part.factors for part in parts])
    known = [*wanted.columns, "seed", "metric", "value"]
    for name in dict.fromkeys([*samples.columns, *known]):
        if (name in samples.columns) is not (name in known):
            then, now = ("a column" if name in one else "nothing" for one in (samples.columns, known))
            yield f"{SAMPLES}, column {name}", then, now
    for name in parts[0].factors:
        if name not in samples.columns:
            continue
        found = samples.select(pl.col("point").cast(wanted["point"].dtype), pl.col(name).alias("found"))
        if found["found"].dtype != wanted[name].dtype:
            yield f"{SAMPLES}, column {name}", str(found["found"].dtype), str(wanted[name].dtype)
            continue
        both = found.unique(maintain_order=True).join(wanted.select("point", name), on="point")
        for point, then, now in both.filter(~pl.col("found").eq_missing(pl.col(name))).sort("point").rows():
            yield f"{SAMPLES}, {name}[point {point}]", then, now


def _invalid(samples: pl.DataFrame) -> Iterator[Other]:
    """Simulated numbers of a comparison that are said to be no valid ones: all are."""
    if "valid" in samples.columns:
        wrong = samples.filter((pl.col("source") == "simulated") & ~pl.col("valid").eq_missing(other=True))
        for row in wrong.iter_rows(named=True):
            yield f"{SAMPLES}, valid[{row['scenario']}, {row['seed']}, {row['measure']}]", row["valid"], True


def rerun(
    manifest: SetManifest,
    *,
    jobs: int | None = None,
    engine: Engine | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[int, list[Other]]:
    """Run all scenarios on their seeds.

    Args:
        manifest: As `read` returns it.
        jobs: As for `perhop.run`.
        engine: As for `perhop.run`; of a sweep, none.
        progress: As for `perhop.run`.

    Returns:
        How many numbers and settings were compared, and those that differ.

    Raises:
        PerhopError: An argument is out of range.
        ScenarioError: The engine that is requested refuses a network.
    """
    step = _Steps(manifest.runs, progress)
    if manifest.kind == "sweep":
        if engine is not None:
            raise PerhopError("--engine: each run of a sweep chooses its engine; leave this option out")
        rows = list(_swept(manifest, extent.workers(jobs), step))
    else:
        rows = list(_simulated(manifest, jobs, engine, step))
    schema = {"part": pl.Int64, "seed": pl.Int64, "metric": pl.String, "value": pl.Float64}
    now = pl.DataFrame(rows, schema=schema, orient="row")
    return _compared(manifest, now)


@dataclass(slots=True)
class _Steps:
    """Counts runs."""

    total: int
    progress: Callable[[int, int], None] | None
    done: int = 0

    def __call__(self) -> None:
        self.done += 1
        if self.progress is not None:
            self.progress(self.done, self.total)


def _swept(manifest: SetManifest, jobs: int, step: _Steps) -> Iterator[Row]:
    from perhop.stores.companions import is_companion  # noqa: PLC0415
    from perhop.sweeps.backend import Failed, LocalBackend, Task  # noqa: PLC0415 - only sweeps have it

    texts = [part.checked.text for part in manifest.parts]
    tasks = [Task(number, seed) for number, part in enumerate(manifest.parts) for seed in part.seeds]
    with LocalBackend(jobs) as backend, contextlib.closing(backend.run(texts, tasks)) as groups:  # type: ignore[type-var]
        for group in groups:
            for task, run in group:
                known = () if isinstance(run, Failed) else zip(run.names, run.values, strict=True)
                for name, value in known:
                    if not is_companion(name):
                        yield task.scenario, task.seed, name, None if math.isnan(value) else value
                step()


def _simulated(manifest: SetManifest, jobs: int | None, engine: Engine | None, step: _Steps) -> Iterator[Row]:
    from perhop.real_packets.equivalence import collect  # noqa: PLC0415 - only comparisons have it

    with_units = manifest.with_units
    for number, part in enumerate(manifest.parts):
        result = simulate.run(
            json.loads(part.checked.text),
            runs=len(part.seeds),
            seed=part.seeds[0],
            jobs=jobs,
            engine=engine,
            progress=lambda _done, _all: step(),
        )
        for key, values in collect(result.runs).items():
            for seed, value in values.items():
                name = f"{key.kind} {key.name} {key.measure}"
                yield number, seed, f"{name} {key.of.unit}" if with_units else name, value


def _compared(manifest: SetManifest, now: pl.DataFrame) -> tuple[int, list[Other]]:
    """Return how many numbers and settings there are in either, and those that differ."""
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
            differences.append((f"{place}, rows", row["there"], 1 if row["here"] else "nothing"))
            continue
        differences.append(
            (
                place,
                "nothing" if row["there"] is None else row["value"],
                "nothing" if row["here"] is None else row["value_now"],
            )
        )
    return both.height + manifest.settings, differences
