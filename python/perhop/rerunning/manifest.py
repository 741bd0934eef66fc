"""Manifests of reports: which scenarios ran on which seeds, and what came of them the first time."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from perhop.errors import PerhopError, ScenarioError
from perhop.files import inputs
from perhop.measures import naming
from perhop.runs import extent
from perhop.scenario import reading
from perhop.scenario.reading import Checked

KINDS = ("run", "sweep", "compare")
"""Commands whose reports can be run again; a manifest of `run` holds one scenario."""
LIMIT = 64_000_000
"""Bytes of a manifest: a scenario of a megabyte, and the means of its classes and links."""
SAMPLES = "samples.parquet"
MISSING = "nothing"
"""In place of a number that one of both times lacks."""


@dataclass(frozen=True, slots=True)
class Part:
    """One scenario: that of a run, a point of a sweep, or what was compared with real packets.

    Attributes:
        label: The name that distinguishes it from the others.
        checked: The scenario.
        seeds: One after the other.
        factors: The setting of a point of a sweep; empty of others.
        until: The arguments of `perhop.run` by which intervals decided how many runs there are; else none.
    """

    label: str
    checked: Checked
    seeds: range
    factors: Mapping[str, Any]
    until: Mapping[str, Any]

    @property
    def notices(self) -> tuple[str, ...]:
        """The notices of the scenario, as sentences that begin with the key of what cannot act."""
        return tuple(notice.removeprefix("scenario: ") for notice in self.checked.notices)


@dataclass(frozen=True, slots=True)
class Difference:
    """A number that is not what it was: where, then, and now."""

    place: str
    then: object
    now: object


@dataclass(frozen=True, slots=True, eq=False)
class Manifest:
    """Runs to be repeated, and their recorded results.

    Attributes:
        path: The file.
        version: The version of perhop that wrote it.
        kind: The command, one of `KINDS`.
        parts: The scenarios.
        results: The means of a run; None of other kinds, and of earlier versions, which wrote none.
        samples: Of a run, its flows, or None without `samples.parquet` beside the manifest; of other kinds,
            every simulated number: `part`, `seed`, `metric`, `value`.
        with_units: The names of a comparison's measures in `samples` end in their units.
        mislabeled: Columns and settings of the samples that are not those of the manifest.
    """

    path: Path
    version: str
    kind: str
    parts: tuple[Part, ...]
    results: Mapping[str, Any] | None
    samples: pl.DataFrame | None
    with_units: bool = False
    mislabeled: tuple[Difference, ...] = ()

    @property
    def runs(self) -> int:
        """The runs of all scenarios together."""
        return sum(len(part.seeds) for part in self.parts)

    @property
    def settings(self) -> int:
        """The number of settings that the samples repeat from the manifest: the factors of each point."""
        return sum(len(part.factors) for part in self.parts)


def read(path: Path) -> Manifest:
    """Read a manifest, or that of a report's folder, with the samples beside it.

    Raises:
        PerhopError: It cannot be read, is of another command, or holds nothing to compare with.
    """
    if path.is_dir():
        path /= "manifest.json"
    content = _content(path)
    kind, entries = _kind(content, path), content["scenarios"]
    samples = _samples(path.with_name(SAMPLES))
    parts = tuple(_parts(entries, kind, path))
    if not parts:
        raise PerhopError(f"{path}: has no scenarios: there is nothing to run")
    version = str(content.get("perhop"))
    if kind == "run":
        results = entries[0].get("results")
        if not isinstance(results, dict) and samples is None:
            raise PerhopError(
                f"{path}: has no `results`, and {SAMPLES} is not beside it: there is nothing to compare with"
            )
        return Manifest(path, version, kind, parts, results if isinstance(results, dict) else None, samples)
    if samples is None:
        raise PerhopError(f"{path}: {SAMPLES} is not beside it: there is nothing to compare with")
    known = _known(samples, parts, kind, path)
    mislabeled = tuple(_mislabeled(samples, parts) if kind == "sweep" else _invalid(samples))
    return Manifest(path, version, kind, parts, None, known, "unit" in samples.columns, mislabeled)


def _content(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            data = file.read(LIMIT + 1)
    except FileNotFoundError:
        raise PerhopError(f"{path}: no such file; `perhop run --out DIR` writes DIR/manifest.json") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise PerhopError(f"{path}: cannot be read: {reason or error}") from None
    if len(data) > LIMIT:
        raise PerhopError(f"{path}: larger than {LIMIT // 1_000_000} MB, so no manifest of `perhop run`")
    content = inputs.from_json(data, str(path))
    return content if isinstance(content, dict) else {}


def _kind(content: Mapping[str, Any], path: Path) -> str:
    """The command that wrote a manifest.

    Raises:
        PerhopError: It is none whose numbers can come out again.
    """
    command, entries = content.get("command"), content.get("scenarios")
    if not isinstance(command, str) or not isinstance(entries, list):
        raise PerhopError(f"{path}: is no manifest; give the manifest.json that `perhop run --out DIR` wrote")
    kind = command.split()[1] if command.startswith("perhop ") and len(command.split()) > 1 else ""
    if kind == "live" or command.startswith("perhop.live"):
        raise PerhopError(f"{path}: was made on real packets, whose numbers are never the same twice")
    if kind == "rerun":  # what a result that was written from Python names, and `perhop rerun` repeats
        first = entries[0] if entries and isinstance(entries[0], dict) else {}
        kind = "sweep" if "factors" in first else "compare" if isinstance(first.get("seeds"), dict) else "run"
    if kind not in KINDS or (kind == "run" and (len(entries) != 1 or not isinstance(entries[0], dict))):
        raise PerhopError(f"{path}: not of `perhop run`, `sweep` or `compare`; run `{command}` again")
    return kind


def _parts(entries: Sequence[Any], kind: str, path: Path) -> Iterator[Part]:
    """The scenarios of a manifest, checked."""
    names: list[str] | None = None
    for number, entry in enumerate(entries):
        place = f"{path}: scenarios[{number}]"
        table = entry.get("scenario") if isinstance(entry, dict) else None
        if not isinstance(table, dict):
            hint = "; a manifest holds the scenarios of at most 1000 points" if kind == "sweep" else ""
            raise PerhopError(f"{place}.scenario: a table is missing here{hint}")
        try:
            checked = reading.read(table)
        except (PerhopError, ScenarioError) as error:
            raise PerhopError(f"{place}: {error}") from None
        factors = entry.get("factors") if kind == "sweep" else {}
        if not isinstance(factors, dict) or list(factors) != (names or list(factors)):
            raise PerhopError(f"{place}.factors: must be a table with the factors of all points")
        names = list(factors)
        label = ", ".join(f"{name} = {value}" for name, value in factors.items())
        if kind == "compare":
            label = str(entry.get("name"))
        seeds, until = _seeds(entry.get("seeds"), kind, f"{place}.seeds"), entry.get("until")
        yield Part(label, checked, seeds, factors, {} if until is None else _until(until, f"{place}.until"))


def _until(found: Any, where: str) -> dict[str, Any]:  # noqa: ANN401 - any JSON value
    """The arguments of `perhop.run` behind what it wrote of its rule of stopping."""
    try:
        return {"until": found["width"], "until_of": found["metrics"], "runs": found["most_runs"]}
    except (TypeError, KeyError):
        raise PerhopError(f"{where}: must be a table with `width`, `metrics` and `most_runs`") from None


def _seeds(found: Any, kind: str, where: str) -> range:  # noqa: ANN401 - any JSON value
    """Seeds that follow each other, as `perhop run` takes them; a sweep writes the first and the last."""
    if kind == "compare":
        found = found.get("simulated") if isinstance(found, dict) else None
    whole = isinstance(found, list) and all(type(one) is int for one in found)
    if kind == "sweep" and whole and len(found) == 2:
        found = list(range(found[0], min(found[1], found[0] + extent.MAX_RUNS) + 1))
    if not found or not whole or found[-1] - found[0] + 1 != len(found):
        raise PerhopError(f"{where}: must be whole numbers one after the other")
    extent.seeds_of_file(found[0], len(found), where)
    if found != list(range(found[0], found[-1] + 1)):
        raise PerhopError(f"{where}: must be whole numbers one after the other")
    return range(found[0], found[-1] + 1)


def _samples(path: Path) -> pl.DataFrame | None:
    try:
        return pl.read_parquet(io.BytesIO(path.read_bytes()))
    except FileNotFoundError:
        return None
    except (OSError, pl.exceptions.PolarsError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is damaged, or no Parquet file"
        raise PerhopError(f"{path}: {reason}; remove it to compare with the manifest alone") from None


def _known(samples: pl.DataFrame, parts: Sequence[Part], kind: str, path: Path) -> pl.DataFrame:
    """The simulated numbers of the first time, in a form that sweeps and comparisons share."""
    try:
        if kind == "sweep":
            names = samples.select(pl.col("metric").cast(pl.String).unique()).to_series().drop_nulls()
            today = {name: naming.current(name) for name in names}
            metric = pl.col("metric").cast(pl.String).replace(today)
            frame = samples.select(pl.col("point").cast(pl.Int64).alias("part"), "seed", metric, "value")
        else:
            numbers = {part.label: number for number, part in enumerate(parts)}
            named_by = ["kind", "name", "measure", *(["unit"] if "unit" in samples.columns else [])]
            frame = samples.filter(pl.col("source") == "simulated").select(
                pl.col("scenario").replace_strict(numbers, return_dtype=pl.Int64).alias("part"),
                "seed",
                pl.concat_str(*named_by, separator=" ").alias("metric"),
                "value",
            )
        return frame.cast({"seed": pl.Int64, "metric": pl.String, "value": pl.Float64})
    except pl.exceptions.PolarsError:
        raise PerhopError(
            f"{path.with_name(SAMPLES)}: its columns are not those of `perhop {kind}`"
        ) from None


def _mislabeled(samples: pl.DataFrame, parts: Sequence[Part]) -> Iterator[Difference]:
    """Columns of a sweep's samples that are not those of its factors, and factors with another value."""
    from perhop.sweeps.summary import factor_frame  # noqa: PLC0415 - only sweeps have it

    wanted = factor_frame([part.factors for part in parts])
    known = [*wanted.columns, "seed", "metric", "value"]
    for name in dict.fromkeys([*samples.columns, *known]):
        if (name in samples.columns) is not (name in known):
            then, now = ("a column" if name in one else MISSING for one in (samples.columns, known))
            yield Difference(f"{SAMPLES}, column {name}", then, now)
    for name in parts[0].factors:
        if name not in samples.columns:
            continue
        found = samples.select(pl.col("point").cast(wanted["point"].dtype), pl.col(name).alias("found"))
        if found["found"].dtype != wanted[name].dtype:
            kinds = str(found["found"].dtype), str(wanted[name].dtype)
            yield Difference(f"{SAMPLES}, column {name}", *kinds)
            continue
        both = found.unique(maintain_order=True).join(wanted.select("point", name), on="point")
        for point, then, now in both.filter(~pl.col("found").eq_missing(pl.col(name))).sort("point").rows():
            yield Difference(f"{SAMPLES}, {name}[point {point}]", then, now)


def _invalid(samples: pl.DataFrame) -> Iterator[Difference]:
    """Simulated numbers of a comparison that are said to be no valid ones: all are."""
    if "valid" in samples.columns:
        wrong = samples.filter((pl.col("source") == "simulated") & ~pl.col("valid").eq_missing(other=True))
        for row in wrong.iter_rows(named=True):
            place = f"{SAMPLES}, valid[{row['scenario']}, {row['seed']}, {row['measure']}]"
            yield Difference(place, row["valid"], now=True)
