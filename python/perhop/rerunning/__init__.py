"""Run what a manifest describes once more, and compare every number: of `perhop run`, `sweep`, `compare`."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from perhop import _engine
from perhop.errors import PerhopError, ScenarioError
from perhop.files import inputs
from perhop.measures import naming
from perhop.rerunning import sets
from perhop.runs import extent, simulate
from perhop.runs.summary import numbers
from perhop.scenario import reading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from perhop.rerunning.sets import SetManifest
    from perhop.runs.extent import Engine
    from perhop.runs.result import Result
    from perhop.scenario.reading import Checked

LIMIT = 64_000_000
"""Bytes of a manifest: a scenario of a megabyte, and the means of its classes and links."""
SAMPLES = "samples.parquet"


@dataclass(frozen=True, slots=True)
class Manifest:
    """A run to be repeated, and its recorded results.

    Attributes:
        path: The file.
        version: Of perhop, when it was written.
        checked: The scenario.
        seeds: One after the other.
        results: The means of the first time; None of a manifest of an earlier version, which has none.
        samples: The flows of each run of the first time; None without `samples.parquet` beside it.
    """

    path: Path
    version: str
    checked: Checked
    seeds: range
    results: Mapping[str, Any] | None
    samples: pl.DataFrame | None

    @property
    def scenarios(self) -> list[Checked]:
        """The one scenario."""
        return [self.checked]

    @property
    def runs(self) -> int:
        """One for each seed."""
        return len(self.seeds)


@dataclass(frozen=True, slots=True)
class Difference:
    """A number that is not what it was: where, then, and now."""

    place: str
    then: object
    now: object


@dataclass(frozen=True, slots=True)
class Rerun:
    """The second time.

    Attributes:
        manifest: The first time.
        result: All that came of it; None of several scenarios.
        compared: How many numbers were compared.
        differences: Those that differ.
    """

    manifest: Manifest | SetManifest
    result: Result | None
    compared: int
    differences: tuple[Difference, ...]

    @property
    def agrees(self) -> bool:
        """Whether every number is the same."""
        return not self.differences


def read(path: Path) -> Manifest | SetManifest:
    """Read a manifest, or that of a report's folder, with the samples beside it.

    Raises:
        PerhopError: It cannot be read, is of another command, or holds nothing to compare with.
    """
    if path.is_dir():
        path /= "manifest.json"
    content = _content(path)
    command = content.get("command")
    entries = content.get("scenarios")
    if not isinstance(command, str) or not isinstance(entries, list):
        raise PerhopError(f"{path}: is no manifest; give the manifest.json that `perhop run --out DIR` wrote")
    kind = command.split()[1] if command.startswith("perhop ") and len(command.split()) > 1 else ""
    if kind in sets.KINDS:
        samples = _samples(path.with_name(SAMPLES))
        return sets.read(content, path, kind, samples, lambda found, place: _seeds(found, path, place))
    if command.split()[:2] == ["perhop", "live"]:
        raise PerhopError(f"{path}: was made on real packets, whose numbers are never the same twice")
    # A result that was written from Python names `perhop rerun`, since no file of its scenario is known.
    if kind not in ("run", "rerun") or len(entries) != 1 or not isinstance(entries[0], dict):
        raise PerhopError(f"{path}: not of `perhop run`, `sweep` or `compare`; run `{command}` again")
    entry = entries[0]
    try:
        checked = reading.read(_table(entry.get("scenario")))
    except (PerhopError, ScenarioError) as error:
        raise PerhopError(f"{path}: {error}") from None
    results = entry.get("results")
    samples = _samples(path.with_name(SAMPLES))
    if not isinstance(results, dict) and samples is None:
        raise PerhopError(
            f"{path}: has no `results`, and {SAMPLES} is not beside it: there is nothing to compare with"
        )
    return Manifest(
        path,
        str(content.get("perhop")),
        checked,
        _seeds(entry.get("seeds"), path),
        results if isinstance(results, dict) else None,
        samples,
    )


def rerun(
    manifest: Manifest | SetManifest | Path | str,
    *,
    jobs: int | None = None,
    engine: Engine | None = None,
    progress: Callable[[int, int], None] | None = None,
    waiting: Callable[[float], None] | None = None,
) -> Rerun:
    """Run the scenario of a manifest on its seeds, and compare each number with that of the first time.

    Args:
        manifest: As `read` returns it, or its file or folder.
        jobs: As for `perhop.run`.
        engine: As for `perhop.run`; the engine of the first time need not be the same. Runs of a sweep have
            no choice.
        progress: As for `perhop.run`.
        waiting: As for `perhop.run`.

    Raises:
        PerhopError: As `read`, or an argument is out of range.
        ScenarioError: The engine that is requested refuses the network.
    """
    first = read(Path(manifest)) if isinstance(manifest, Path | str) else manifest
    if not isinstance(first, Manifest):
        compared, others = sets.rerun(first, jobs=jobs, engine=engine, progress=progress)
        return Rerun(first, None, compared, tuple(Difference(*one) for one in others))
    result = simulate.run(
        json.loads(first.checked.text),
        runs=len(first.seeds),
        seed=first.seeds[0],
        jobs=jobs,
        engine=engine,
        progress=progress,
        waiting=waiting,
    )
    compared, differences = 0, list[Difference]()
    if first.results is not None:
        # As they would be read from a file.
        compared += _compare(first.results, json.loads(json.dumps(numbers(result))), differences)
    if first.samples is not None:
        compared += _compare_samples(first.samples, result.flows, differences)
    return Rerun(first, result, compared, tuple(differences))


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


def _table(scenario: object) -> dict[str, Any]:
    if not isinstance(scenario, dict):
        raise PerhopError("scenarios[0].scenario: a table is missing here")
    return scenario


def _seeds(found: object, path: Path, place: str = "scenarios[0]") -> range:
    """Seeds that follow each other, as `perhop run` takes them."""
    whole = isinstance(found, list) and all(type(one) is int for one in found)
    if not isinstance(found, list) or not found or not whole or found[-1] - found[0] + 1 != len(found):
        raise PerhopError(f"{path}: {place}.seeds: must be whole numbers one after the other")
    extent.seeds(found[0], len(found))
    if found != list(range(found[0], found[-1] + 1)):
        raise PerhopError(f"{path}: {place}.seeds: must be whole numbers one after the other")
    return range(found[0], found[-1] + 1)


def _samples(path: Path) -> pl.DataFrame | None:
    try:
        return pl.read_parquet(io.BytesIO(path.read_bytes()))
    except FileNotFoundError:
        return None
    except (OSError, pl.exceptions.PolarsError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is damaged, or no Parquet file"
        raise PerhopError(f"{path}: {reason}; remove it to compare with the manifest alone") from None


def _compare(then: object, now: object, differences: list[Difference]) -> int:
    """Return how many numbers there are in either; those that differ join `differences`."""
    old, new = dict(_leaves(then, "")), dict(_leaves(now, ""))
    places = list(dict.fromkeys([*old, *new]))
    for place in places:
        one, other = old.get(place, _MISSING), new.get(place, _MISSING)
        if type(one) is not type(other) or one != other:
            differences.append(Difference(place, one, other))
    return len(places)


_MISSING = "nothing"


def _leaves(value: object, place: str) -> Iterator[tuple[str, object]]:
    """Each number with its place; rows of tables are named by their texts."""
    if isinstance(value, dict):
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


def _compare_samples(then: pl.DataFrame, now: pl.DataFrame, differences: list[Difference]) -> int:
    """Compare the flows of every run."""
    then = then.rename(naming.current)
    if then.height != now.height:
        differences.append(Difference(f"{SAMPLES}, rows", then.height, now.height))
        return 1
    compared = 0
    for name in dict.fromkeys([*then.columns, *now.columns]):
        if name not in then.columns or name not in now.columns or then[name].dtype != now[name].dtype:
            kinds = [str(one[name].dtype) if name in one.columns else _MISSING for one in (then, now)]
            differences.append(Difference(f"{SAMPLES}, column {name}", *kinds))
            compared += 1
            continue
        compared += now.height
        old, new = then[name], now[name]
        for row in (~old.eq_missing(new)).arg_true().to_list():
            flow = ", ".join(str(now[key][row]) for key in ("seed", "class", "member"))
            differences.append(Difference(f"{SAMPLES}, {name}[{flow}]", old[row], new[row]))
    return compared


def version() -> str:
    """Return the version of this perhop."""
    return _engine.version
