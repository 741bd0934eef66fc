"""SWEEP.toml: which scenarios, on which seeds, and when there are enough."""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perhop.errors import ArgumentError, PerhopError
from perhop.measures import naming
from perhop.plurals import counted
from perhop.runs import extent
from perhop.runs.metrics import names_of, unknown, why_unknown
from perhop.scenario import document, file_kinds
from perhop.scenario.document import Base
from perhop.scenario.keys import COLUMN, FRACTION, RANGE, Fraction, Key, Other, Table, Text, Texts, Whole
from perhop.scenario.ranges import Value, parse_range, text_of
from perhop.statistics import stopping
from perhop.statistics.stopping import Until
from perhop.sweeps.backend import RunErrors
from perhop.sweeps.of_traffic import of_traffic

DEFAULT_RUNS = 6
DEFAULT_MOST_RUNS = 100
"""Where a sweep stops by itself, this many runs of a point at most."""
MAX_POINTS = 1_000_000
MAX_ALL_RUNS = 10_000_000
TITLE = Text(says="The title of reports; the file's name without one.")
SCENARIO = Other(
    says="The name of a scenario file, or a scenario as a table.",
    required=True,
    like={"anyOf": [{"type": "string"}, {"$ref": "#/$defs/Scenario"}]},
)
RUNS = Whole(says="Runs of each point.", default=DEFAULT_RUNS, most=extent.MAX_RUNS)
SEED = Whole(says="The first seed, shared by all points.", default=1, least=0)
METRICS = Texts(says="Patterns of the metrics to show; by default those of the traffic (docs/sweeps.md).")
SET = Table(says="Values by path; `{name}` in text is replaced by a factor.", others={})
SAMPLES = Whole(says="How many points.", default=0, most=MAX_POINTS, required=True)
SAMPLING_SEED = Whole(says="Of the sample.", default=1, least=0)
WATCHED = Texts(says="Patterns of the metrics whose intervals count.", default=stopping.METRICS)
LEAST_RUNS = Whole(says="Runs of each point, at least.", default=stopping.LEAST, least=stopping.FEWEST)
UNTIL = Table(
    says="Stop running a point once its intervals are tight.",
    keys={
        "width": Fraction(says="Each side of the 95 % interval over its value, at most.", required=True),
        "metrics": WATCHED,
        "least-runs": LEAST_RUNS,
    },
    short=FRACTION,
)
GRID = Table(says="Every combination of these values.", others=COLUMN)
LIST = Table(says="These values together, row by row.", others=COLUMN)
LATIN_HYPERCUBE = Table(
    says="A sample of ranges.", keys={"samples": SAMPLES, "seed": SAMPLING_SEED}, others=RANGE, empty=True
)
KEYS: dict[str, Key] = {
    "title": TITLE,
    "scenario": SCENARIO,
    "runs": RUNS,
    "seed": SEED,
    "metrics": METRICS,
    "until": UNTIL,
    "set": SET,
    "grid": GRID,
    "list": LIST,
    "latin-hypercube": LATIN_HYPERCUBE,
}
"""What SWEEP.toml may hold."""


@dataclass(frozen=True, slots=True)
class Point:
    """One setting of the factors.

    Attributes:
        factors: How each factor reads.
        scenario: Canonical JSON.
        key: What names the scenario in the store: SHA-256 of `scenario`, in hex.
        notices: What in the scenario cannot act, or acts otherwise than it seems: a sentence each, which
            begins with its key.
    """

    factors: Mapping[str, Value]
    scenario: str = field(repr=False)
    key: str
    notices: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The setting of the point, as messages name it."""
        return ", ".join(f"{name} = {text_of(value)}" for name, value in self.factors.items())


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """A checked sweep: every point's scenario has passed the engine's parser.

    Attributes:
        metrics: Patterns of the metrics to show.
        runs: Runs of each point; with `until`, at most.
        seed: First seed, shared by all points.
        until: When a point has enough runs; None where all have `runs`.
    """

    title: str
    points: Sequence[Point]
    metrics: tuple[str, ...]
    runs: int
    seed: int
    until: Until | None

    @property
    def factors(self) -> tuple[str, ...]:
        """Names of the factors, in the file's order."""
        return tuple(self.points[0].factors)


def notices(points: Sequence[Point]) -> list[str]:
    """The notices about points: each key once, with how many of them it concerns."""
    first: dict[str, tuple[str, Point]] = {}
    concerned: Counter[str] = Counter()
    for point in points:
        keys = {notice.partition(": ")[0]: notice for notice in point.notices}
        concerned.update(keys.keys())
        for key, notice in keys.items():
            first.setdefault(key, (notice, point))
    return [
        f"{notice} (so at {concerned[key]} of {counted(len(points), 'point')}, first at {point.label})"
        if point.factors
        else notice
        for key, (notice, point) in first.items()
    ]


@dataclass(frozen=True, slots=True)
class Given:
    """What the command line says instead of the file; None where it says nothing."""

    runs: int | None = None
    seed: int | None = None
    until: str | None = None


def read_plan(source: Path | Mapping[str, Any], given: Given) -> SweepPlan:
    """Read SWEEP.toml, or data with its keys, and check every point.

    Raises:
        PerhopError: The file cannot be read or makes no sweep; the message names file and key.
        ScenarioError: A point is no scenario that can be run.
    """
    extent.given(given.runs, given.seed)
    path = document.place_of(source, "sweep")
    data = document.read(source, "a sweep needs a `scenario`, and what to vary in it")
    file_kinds.expect("sweep", data, path)
    where = str(path)
    document.known_keys(data, tuple(KEYS), where)
    base = document.read_base(data, path)
    stops = "until" in data or given.until is not None
    most = DEFAULT_MOST_RUNS if stops else DEFAULT_RUNS
    runs = RUNS.read(data, "runs", where, default=most) if given.runs is None else given.runs
    seed = SEED.read(data, "seed", where) if given.seed is None else given.seed
    extent.seeds_of_file(seed, runs, where)
    until = _until(data, given, runs, where) if stops else None
    settings = _settings(data, where)
    if len(settings) * runs > MAX_ALL_RUNS:
        raise PerhopError(
            f"{where}: {len(settings)} points of {runs} runs are more than {MAX_ALL_RUNS:,} runs"
        )
    points = [_point(base, factors, number) for number, factors in enumerate(settings, 1)]
    if "metrics" in data:
        metrics = tuple(map(naming.current, METRICS.read(data, "metrics", where)))
        check_metrics(points, metrics, f"{where}: `metrics`")
    else:
        metrics = of_traffic([point.scenario for point in points])
    check_metrics(points, until.metrics if until else (), f"{where}: `until.metrics`")
    return SweepPlan(TITLE.read(data, "title", where) or path.stem, points, metrics, runs, seed, until)


def check_metrics(points: Sequence[Point], patterns: Sequence[str], where: str) -> None:
    """Refuse a pattern that meets nothing that is measured at any point.

    Raises:
        PerhopError: There is one; the message says what is measured.
    """
    left = list(patterns)
    names: tuple[str, ...] = ()
    for point in points:
        if not left:
            return
        try:
            names = names_of(point.scenario)
        except RunErrors:
            continue  # its runs fail, too, and are said then
        left = unknown(left, names)
    if left and names:
        raise PerhopError(f"{where}: {why_unknown(left[0], names)}")


def make_point(base: Base, factors: Mapping[str, Value], values: Mapping[str, Any], label: str) -> Point:
    """The point at which the factors have these values.

    Raises:
        PerhopError, ScenarioError: It is no scenario.
    """
    scenario, notices = base.scenario_with(factors, values, label)
    return Point(factors, scenario, hashlib.sha256(scenario.encode()).hexdigest(), notices)


Setting = Mapping[str, tuple["Value", Any]]
"""For each factor how its value reads, and what it puts into the scenario."""


def _point(base: Base, setting: Setting, number: int) -> Point:
    factors = {name: label for name, (label, _) in setting.items()}
    named = ", ".join(f"{name} = {text_of(value)}" for name, value in factors.items())
    label = f"point {number} ({named})" if named else "the only point"
    return make_point(base, factors, {name: value for name, (_, value) in setting.items()}, label)


def _settings(data: Mapping[str, Any], where: str) -> list[Setting]:
    """Every combination of the three designs that the file has."""
    designs = [
        _grid(GRID.read(data, "grid", where), f"{where}: [grid]"),
        _list(LIST.read(data, "list", where), f"{where}: [list]"),
        _latin_hypercube(LATIN_HYPERCUBE.read(data, "latin-hypercube", where), f"{where}: [latin-hypercube]"),
    ]
    names = [name for design in designs for name in design[0]]
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise PerhopError(f"{where}: `{twice}` is varied twice; once is enough")
    points = 1
    for design in designs:
        points *= len(design)
    if points > MAX_POINTS:
        raise PerhopError(f"{where}: {points:,} points are more than {MAX_POINTS:,}")
    return [
        {name: value for part in parts for name, value in part.items()}
        for parts in itertools.product(*designs)
    ]


def _grid(table: Mapping[str, Any], where: str) -> list[Setting]:
    columns = {name: column(name, values, where) for name, values in table.items()}
    size = 1
    for entries in columns.values():
        size *= len(entries)
    if size > MAX_POINTS:
        raise PerhopError(f"{where}: {size:,} points are more than {MAX_POINTS:,}")
    return [dict(zip(columns, row, strict=True)) for row in itertools.product(*columns.values())]


def _list(table: Mapping[str, Any], where: str) -> list[Setting]:
    columns = {name: column(name, values, where, repeats=True) for name, values in table.items()}
    lengths = {name: len(entries) for name, entries in columns.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"`{name}` has {length}" for name, length in lengths.items())
        raise PerhopError(f"{where}: columns must be of one length: {listed}")
    rows = list(zip(*columns.values(), strict=True))
    seen: dict[str, int] = {}
    for number, row in enumerate(rows, 1):
        first = seen.setdefault(repr(row), number)
        if first != number:
            raise PerhopError(f"{where}: row {number} is row {first} again; leave one of them out")
    return [dict(zip(columns, row, strict=True)) for row in rows] or [{}]


def column(name: str, values: object, where: str, *, repeats: bool = False) -> list[tuple[Value, Any]]:
    """A factor's values, how each reads and what it is: a list of plain ones, or a table of named ones.

    Args:
        name: The factor.
        values: From the file.
        where: The table that has it, for messages.
        repeats: Whether a value may stand there more than once.

    Raises:
        PerhopError: It is neither, or has a value twice that may stand there once.
    """
    document.as_json(values, f"{where}: `{name}`")
    document.in_quotes(name, values, where)
    if isinstance(values, Mapping) and values:
        return [(label, value) for label, value in values.items()]
    if not isinstance(values, list) or not values:
        raise PerhopError(f"{where}: `{name}` must be a list of values, not {values!r}")
    for value in values:
        if not document.is_value(value):
            raise PerhopError(
                f"{where}: `{name}`: {value!r} is no plain value; name tables and lists, "
                "such as { first = {…}, second = {…} }"
            )
    if not repeats and len(set(map(repr, values))) < len(values):
        raise PerhopError(f"{where}: `{name}` has a value twice: {values!r}")
    return [(value, value) for value in values]


def _latin_hypercube(table: Mapping[str, Any], where: str) -> list[Setting]:
    """A sample with one point in each part of each range, cut into as many parts as there are points."""
    if not table:
        return [{}]
    samples = SAMPLES.read(table, "samples", where)
    seed = SAMPLING_SEED.read(table, "seed", where)
    ranges = {}
    for name, value in table.items():
        if name not in LATIN_HYPERCUBE.keys:
            if not isinstance(value, str):
                raise PerhopError(f'{where}: `{name}` must be a range such as "1..20", not {value!r}')
            ranges[name] = parse_range(value, f"{where}: `{name}`")
    if not ranges:
        raise PerhopError(f'{where}: names no range, such as "links.uplink.rate" = "2Mbps..10Mbps"')
    drawn = sample(len(ranges), samples, seed)
    rows = [[one.at(float(part)) for one, part in zip(ranges.values(), row, strict=True)] for row in drawn]
    return [{name: (value, value) for name, value in zip(ranges, row, strict=True)} for row in rows]


def sample(dimensions: int, samples: int, seed: int) -> NDArray[np.float64]:
    """A Latin hypercube sample (McKay, Beckman & Conover 1979), f64[samples, dimensions] in [0, 1).

    Each dimension has one point in each of `samples` equal strata. The draws are those of
    `scipy.stats.qmc.LatinHypercube`, so the points are the same.
    """
    (random,) = np.random.default_rng(seed).spawn(1)
    within = random.uniform(size=(samples, dimensions))
    strata = np.tile(np.arange(1, samples + 1), (dimensions, 1))
    for row in strata:
        random.shuffle(row)
    return (strata.T - within) / samples


def _until(data: Mapping[str, Any], given: Given, runs: int, where: str) -> Until:
    """When a point has enough of at most so many runs, by a file or by what is given instead."""
    found = data.get("until", {})
    table = found if isinstance(found, Mapping) else {"width": found}
    place = f"{where}: [until]"
    UNTIL.check(table, place)
    if given.until is None:
        width = document.fraction(table.get("width"), f"{place}: `width`")
    else:
        width = document.fraction(given.until, None)
    if runs < stopping.FEWEST:
        says = f"{stopping.TOO_FEW}, not {runs}"
        raise PerhopError(f"{where}: `runs` {says}") if given.runs is None else ArgumentError("runs", says)
    metrics = tuple(map(naming.current, WATCHED.read(table, "metrics", place)))
    return Until(width, metrics, min(LEAST_RUNS.read(table, "least-runs", place), runs), runs)
