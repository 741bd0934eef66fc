"""PLAN.toml: a link, who uses it, what they were promised, and what may change."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perhop import _engine, routers
from perhop.errors import ArgumentError, BlockError, PerhopError
from perhop.files import arguments, inputs
from perhop.planning import growth, guarantees, objectives
from perhop.planning.growth import Demand
from perhop.planning.objectives import Bound
from perhop.planning.verdicts import score
from perhop.routers import beside
from perhop.runs import budget, extent
from perhop.runs.metrics import names_of
from perhop.scenario import document, file_kinds
from perhop.scenario.document import Base
from perhop.scenario.keys import Flag, Fraction, Key, Multiple, Other, Table, Text, Texts, Whole
from perhop.scenario.paths import is_of_a_control, put
from perhop.scenario.ranges import Range
from perhop.statistics.observations import Observations
from perhop.sweeps import contradictions, tuning
from perhop.sweeps.plan import TITLE
from perhop.sweeps.tuning import Choice

LADDER = (8, 15, 30)
"""Runs of a plan that names no number: the most that fit into `EVENTS`."""
EVENTS = 15_000_000
"""Events of all runs of one setting, at most (`perhop.runs.budget`): a plan judges dozens of settings."""
DEFAULT_MOST = 4.0
DEFAULT_PRECISION = 0.05
DEFAULT_TRIALS = 40
DEFAULT_TRIAL_RUNS = 4
DEFAULT_BATCH = 4
MOST_MULTIPLE = 1000.0
SCORE = "score"
"""What the search maximizes: see `perhop.planning.verdicts.score`."""
RUNS = Whole(
    says="Runs of everything that is judged. Default: 30 where a run has up to half a million events, "
    "15 up to a million, else 8.",
    default=None,
    least=2,
    most=extent.MAX_RUNS,
)
OBJECTIVES = Texts(says="What was promised, a sentence each.", required=True, example="loss of voice < 1 %")
FROM = Text(
    says="The language of the configuration, if it is not recognized.", choices=tuple(routers.DIALECTS)
)
INTERFACE = Text(says="Whose queues.")
LENIENT = Flag(says="Assume what is missing, and say so.")
MATCH = Table(says="Codepoints of classes by name.", others={"type": "string"})
IMPORT = Table(
    says="Answers for the configuration, as options of `perhop import`.",
    keys={
        "from": FROM,
        "interface": INTERFACE,
        "rate": Text(says="The rate of the interface, such as 20Mbps."),
        "packet-size": Text(says="The mean packet size, such as 1000B."),
        "buffer": Text(says="The buffer of the port, or of a queue without a limit: 1MB, 200p or 50ms."),
        "segment-size": Text(says="What the device counts as a segment of its buffer (EOS), such as 208B."),
        "match": MATCH,
        "lenient": LENIENT,
    },
)
DEMANDS = Texts(says="Groups of flows whose demand grows.", least=0)
TOGETHER = Flag(says="Whether all demands are also made to grow together.")
MOST = Multiple(
    says="The largest multiple of today's demand.",
    above=1,
    most=MOST_MULTIPLE,
    default=DEFAULT_MOST,
    example="4",
)
PRECISION = Fraction(says="How close to the limit a search goes.", default=DEFAULT_PRECISION)
GROWTH = Table(
    says="How far each demand may grow.",
    keys={"demands": DEMANDS, "together": TOGETHER, "most": MOST, "precision": PRECISION},
)
TRIALS = Whole(says="Settings that are tried.", default=DEFAULT_TRIALS, most=tuning.MAX_TRIALS)
BATCH = Whole(
    says="Trials that are proposed and run together.", default=DEFAULT_BATCH, most=tuning.MAX_TRIALS
)
TRIAL_RUNS = Whole(says="Runs of each trial.", default=DEFAULT_TRIAL_RUNS, most=extent.MAX_RUNS)
MULTIPLE = Multiple(says="A multiple of today's demand.", above=0, most=MOST_MULTIPLE)
TUNING_GROWTH = Table(says="Multiples of demands under which settings are tried.", others=MULTIPLE.schema())
TUNING = Table(
    says="How the search goes.",
    keys={
        "trials": TRIALS,
        "batch": BATCH,
        "runs": TRIAL_RUNS,
        "sampler": tuning.SAMPLER,
        "population": tuning.POPULATION,
        "growth": TUNING_GROWTH,
    },
)
SEARCH = Table(says="What each factor may be: a range or values.", others=tuning.SEARCH.others)
TO = Text(says="The router's language.", choices=tuple(routers.WRITERS), required=True)
SHAPE = Flag(says="Shape to the link's rate.")
EXPORT_LENIENT = Flag(says="Leave out what the language cannot express.")
LINK = Text(says="Which link.")
EXPORT = Table(
    says="Lines for the router, as `perhop export` writes them.",
    keys={"to": TO, "link": LINK, "shape": SHAPE, "lenient": EXPORT_LENIENT},
)
KEYS: dict[str, Key] = {
    "title": TITLE,
    "scenario": Other(
        says="The name of a scenario file, or a scenario as a table.", like={"type": ["string", "object"]}
    ),
    "configuration": Text(says="The name of a router's configuration."),
    "import": IMPORT,
    "set": Table(says="Fixed values, by path; names in braces are searched.", others={}),
    "flows": Other(
        says="Who uses the link, as in a scenario.",
        like={"type": "array", "items": {"type": "object"}, "minItems": 1},
    ),
    "objectives": OBJECTIVES,
    "runs": RUNS,
    "seed": Whole(says="The first of the seeds of everything that is judged.", default=1, least=0),
    "growth": GROWTH,
    "search": SEARCH,
    "tuning": TUNING,
    "export": EXPORT,
}
"""What PLAN.toml may hold."""
TOGETHER_OR_NOT: dict[str, Any] = {
    "oneOf": [{"required": ["scenario"]}, {"required": ["configuration"]}],
    "dependentRequired": {"configuration": ["flows"], "import": ["configuration"]},
}
"""Which keys of it need or exclude others, as JSON Schema."""


@dataclass(frozen=True, slots=True)
class Search:
    """What may change.

    Attributes:
        factors: What each factor may be.
        templates: Values by path in which a factor is in braces.
        demands: Multiples of today's demands under which settings are tried, by the name of the demand.
    """

    factors: Mapping[str, Range | Choice]
    templates: Mapping[str, Any]
    trials: int
    batch: int
    runs: int
    sampler: str
    population: int
    demands: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Export:
    """How lines for the router are written; see `perhop export`."""

    dialect: str
    link: str | None
    shape: bool
    lenient: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """A checked plan.

    Attributes:
        scenario: As it is, as JSON, without what a search fills in.
        origin: The file, for messages.
        folder: Where the files are that the scenario names.
        subject: What is planned, for people: the link of a configuration, or the scenario.
        runs: Runs of everything that is judged, on the same seeds.
        seed: The first of these seeds; a search uses those that follow them.
        imported: What reading a configuration said; None for a scenario.
        runs_by_default: Nobody said how many runs.
    """

    title: str
    scenario: str
    origin: str
    folder: Path
    subject: str
    bounds: tuple[Bound, ...]
    runs: int
    seed: int
    demands: tuple[Demand, ...]
    precision: float
    search: Search | None
    export: Export | None
    imported: routers.Imported | None
    notices: tuple[str, ...]
    runs_by_default: bool = False

    @property
    def seeds(self) -> range:
        """The seeds of everything that is judged."""
        return range(self.seed, self.seed + self.runs)

    @property
    def metrics(self) -> tuple[str, ...]:
        """Every metric that an objective needs."""
        return tuple(dict.fromkeys(metric for bound in self.bounds for metric in bound.metrics))

    @property
    def measured(self) -> tuple[str, ...]:
        """The metrics that runs measure: all but bounds."""
        return tuple(metric for metric in self.metrics if not guarantees.is_bound(metric))

    @property
    def measured_bounds(self) -> tuple[Bound, ...]:
        """The objectives but for guarantees, of which runs say nothing."""
        return tuple(bound for bound in self.bounds if not bound.is_guarantee)

    def base(self, multiples: Mapping[str, float], *, templates: bool = False) -> Base:
        """The scenario with these multiples of demands, to be varied.

        Args:
            multiples: By the name of the demand.
            templates: With what the search fills in.
        """
        scenario = self.scenario
        for demand in self.demands:
            if demand.name in multiples:
                scenario = growth.grown(scenario, demand.at(multiples[demand.name]), self.origin)
        settings = self.search.templates if templates and self.search is not None else {}
        return Base(scenario, settings, self.origin, self.folder)


def read_plan(
    source: Path | Mapping[str, Any],
    *,
    runs: int | None = None,
    seed: int | None = None,
    trials: int | None = None,
) -> Plan:
    """Read PLAN.toml, or data with its keys; what the command line says comes before what the file says.

    Raises:
        PerhopError: The file cannot be read or makes no plan; the message names file and key.
        ScenarioError: The scenario is wrong.
    """
    extent.given(None, seed)
    for name, value in (("runs", runs), ("trials", trials)):
        if value is not None:
            arguments.whole(name, value)
    path = document.place_of(source, "plan")
    data = document.read(source, "a plan needs a `scenario` or a `configuration`, and `objectives`")
    file_kinds.expect("plan", data, path)
    where = str(path)
    document.known_keys(data, tuple(KEYS), where)
    runs = RUNS.read(data, "runs", where) if runs is None and "runs" in data else runs
    if runs is not None and runs < 2:
        raise ArgumentError("runs", f"{runs}: objectives are judged by intervals, which need at least 2 runs")
    seed = document.whole(data, "seed", 1, where, least=0) if seed is None else seed
    start = _start(data, path)
    settings = document.table(data, "set", where)
    document.as_json(settings, f"{where}: [set]")
    templates = _applied(start.scenario, settings, where, start.folder)
    search = _search(data, templates, trials, where)
    text = document.as_json(start.scenario, where)
    canonical, notices = _engine.read_json(text, where, folder=start.folder)
    demands, precision = _growth(document.table(data, "growth", where), start.scenario, f"{where}: [growth]")
    bounds = _bounds(data, canonical, where)
    by_default = runs is None
    if runs is None:
        runs = _affordable(canonical, seed, where)
    extent.seeds_of_file(seed, runs + (search.runs if search else 0), where)
    plan = Plan(
        TITLE.read(data, "title", where) or start.title or path.stem,
        text,
        where,
        start.folder,
        start.subject,
        bounds,
        runs,
        seed,
        demands,
        precision,
        search,
        _export(document.table(data, "export", where), f"{where}: [export]") if "export" in data else None,
        start.imported,
        tuple(notice.removeprefix(f"{where}: ") for notice in notices),
        by_default,
    )
    if search is not None:
        if not plan.measured:
            raise PerhopError(
                f"{where}: [search] needs an objective that runs measure; there are guarantees alone"
            )
        _check_demands(search, demands, f"{where}: [tuning]")
        tuning.first_point(tuning_plan(plan))
    if plan.export is not None:
        exported(plan, canonical)
    return plan


def _affordable(scenario: str, seed: int, where: str) -> int:
    """Return how many runs a plan gets that names no number, by one of the configuration as it is.

    Raises:
        PerhopError: The seed leaves no room for the fewest.
    """
    extent.seeds_of_file(seed, LADDER[0], where)
    try:
        return budget.runs_of(scenario, seed, EVENTS, LADDER)
    except BlockError:
        return LADDER[0]  # the plan's own runs say where it fails


def exported(plan: Plan, scenario: str) -> routers.Exported:
    """Lines for the router of a canonical scenario.

    Raises:
        PerhopError: The language cannot express something.
    """
    assert plan.export is not None
    given = plan.export
    return routers.exported(
        scenario, plan.origin, given.dialect, link=given.link, shape=given.shape, lenient=given.lenient
    )


def _check_demands(search: Search, demands: Sequence[Demand], where: str) -> None:
    known = [demand.name for demand in demands]
    for name in search.demands:
        if name not in known:
            raise PerhopError(
                f"{where}: `growth.{name}` is no demand; there are {', '.join(known) or 'none'}"
            )


# ---------------------------------------------------------------- the scenario


@dataclass(slots=True)
class _Start:
    """The scenario that a plan begins with, as plain data."""

    scenario: dict[str, Any]
    folder: Path
    subject: str
    title: str
    imported: routers.Imported | None


def _start(data: Mapping[str, Any], path: Path) -> _Start:
    """The scenario or configuration that a plan names, with the plan's flows in place of its own.

    Raises:
        PerhopError, ScenarioError: There is none, or it is wrong by itself.
    """
    where = str(path)
    if ("scenario" in data) == ("configuration" in data):
        raise PerhopError(
            f"{where}: needs a `scenario` (the name of a file, or a table) or a `configuration`, such as "
            '"branch-office.cfg": one of the two'
        )
    start = _configured(data, path) if "configuration" in data else _scenario(data, path)
    if "flows" in data:
        start.scenario["flows"] = _with_ends(data["flows"], start.scenario, where)
    elif start.imported is not None:
        raise PerhopError(
            f"{where}: a configuration says nothing of traffic: give [[flows]] as in a scenario "
            "(docs/scenario.md)"
        )
    return start


def _scenario(data: Mapping[str, Any], path: Path) -> _Start:
    if "import" in data:
        raise PerhopError(f"{path}: [import] is about a `configuration`; there is none")
    source = data["scenario"]
    if isinstance(source, Mapping) and "flows" in data:  # it is whole with the plan's flows alone
        scenario = json.loads(document.as_json(source, f"{path}: [scenario]"))
        title = str(scenario.get("title", ""))
        return _Start(scenario, path.parent, f"Scenario of {path.name}", title, None)
    base = document.read_base({"scenario": source}, path)
    scenario = json.loads(base.scenario)
    title = str(scenario.get("title", ""))
    subject = source if isinstance(source, str) else f"Scenario of {path.name}"
    return _Start(scenario, base.folder, subject, title, None)


def _configured(data: Mapping[str, Any], path: Path) -> _Start:
    where = str(path)
    named = document.text(data, "configuration", "", where)
    file = path.parent / named
    given = dict(document.table(data, "import", where))
    if "link-rate" in given and "rate" not in given:  # its former name
        given["rate"] = given.pop("link-rate")
    place = f"{where}: [import]"
    IMPORT.check(given, place)
    answers = beside.answers(
        *(_text(given, key, place) for key in ("rate", "packet-size", "buffer", "segment-size")),
        matches=_matches(given, place),
        lenient=LENIENT.read(given, "lenient", place),
    )
    source = routers.Source([(str(file), beside.read(file))])
    done = routers.imported(
        source,
        answers,
        dialect=FROM.maybe(given, "from", place),
        interface=INTERFACE.maybe(given, "interface", place),
    )
    scenario = inputs.toml(done.toml, named)
    return _Start(scenario, path.parent, f"{done.port} of {named}", f"{done.port} of {named}", done)


def _text(data: Mapping[str, Any], key: str, where: str) -> str | None:
    return document.text(data, key, "", where) if key in data else None


def _matches(given: Mapping[str, Any], where: str) -> list[str]:
    """The codepoints of classes, as `perhop import --match` takes them."""
    found = MATCH.read(given, "match", where)
    for name, value in found.items():
        if not isinstance(value, str):
            raise PerhopError(
                f'{where}: `match.{name}` must be codepoints such as "af21,af22", not {value!r}'
            )
    return [f"{name}={value}" for name, value in found.items()]


def _with_ends(flows: object, scenario: Mapping[str, Any], where: str) -> list[dict[str, Any]]:
    """The plan's flows; those that do not say from where to where use the only link with a queue."""
    if not isinstance(flows, list) or not flows or not all(isinstance(one, Mapping) for one in flows):
        raise PerhopError(f"{where}: `flows` must be a list of tables: write [[flows]]")
    links = [link for link in scenario.get("links", {}).values() if "queue" in link]
    ends = {"from": links[0]["from"], "to": links[0]["to"]} if len(links) == 1 else {}
    return [
        dict(flow) if {"from", "to", "path", "between"} & flow.keys() else {**flow, **ends} for flow in flows
    ]


def _applied(
    scenario: dict[str, Any], settings: Mapping[str, Any], where: str, folder: Path
) -> dict[str, Any]:
    """Put what is fixed into the scenario.

    Returns:
        The settings that a search fills in.
    """
    templates = {}
    for path, value in sorted(settings.items(), key=lambda one: is_of_a_control(one[0])):
        document.in_quotes(path, value, f"{where}: [set]")
        if any(document.fields(value)):
            templates[path] = value
        else:
            put(scenario, path, value, f"{where}: [set] `{path}`", folder)
    return templates


# ---------------------------------------------------------------- objectives, growth, search, export


def _bounds(data: Mapping[str, Any], canonical: str, where: str) -> tuple[Bound, ...]:
    if "objectives" not in data:
        raise PerhopError(f'{where}: needs `objectives`, such as ["P99 of one-way delay of voice < 20 ms"]')
    place = f"{where}: `objectives`"
    sentences = OBJECTIVES.read(data, "objectives", where)
    parsed = [objectives.parse(text, place) for text in sentences]
    subjects = objectives.Subjects.of(canonical, names_of(canonical))
    bounds = tuple(subjects.bind(one, place) for one in parsed)
    contradictions.refuse([side for bound in bounds for side in bound.sides()], place)
    return bounds


def _growth(
    table: Mapping[str, Any], scenario: Mapping[str, Any], where: str
) -> tuple[tuple[Demand, ...], float]:
    GROWTH.check(table, where)
    names = DEMANDS.read(table, "demands", where, default=growth.default_demands(scenario))
    counts = Counter(names)
    for name in names:
        if counts[name] > 1:
            raise PerhopError(f"{where}: `demands` has {name!r} twice")
    most = MOST.read(table.get("most", DEFAULT_MOST), "most", where)
    precision = PRECISION.read(table, "precision", where)
    levels = growth.Levels(most, precision)
    groups = growth.groups_of(scenario)
    demands = [growth.demand_of(scenario, (name,), name, levels, where, groups=groups) for name in names]
    if TOGETHER.read(table, "together", where) and len(names) > 1:
        demands.append(growth.demand_of(scenario, names, growth.TOGETHER, levels, where, groups=groups))
    return tuple(demands), precision


def _search(
    data: Mapping[str, Any], templates: Mapping[str, Any], trials: int | None, where: str
) -> Search | None:
    factors = document.table(data, "search", where)
    given = document.table(data, "tuning", where)
    place = f"{where}: [tuning]"
    if not factors:
        if templates:
            path, value = next(iter(templates.items()))
            raise PerhopError(
                f"{where}: [set] `{path}`: {value!r} has names in braces; say in [search] what they may be"
            )
        if given:
            raise PerhopError(f"{place} has no effect without a [search]")
        if trials is not None:
            raise ArgumentError("trials", "has no effect without a [search]")
        return None
    TUNING.check(given, place)
    sampler = tuning.SAMPLER.read(given, "sampler", place)
    demands = {
        name: MULTIPLE.read(multiple, f"growth.{name}", place)
        for name, multiple in TUNING_GROWTH.read(given, "growth", place).items()
    }
    if trials is None:
        trials = TRIALS.read(given, "trials", place)
    elif not 1 <= trials <= tuning.MAX_TRIALS:
        raise ArgumentError("trials", f"must lie between 1 and {tuning.MAX_TRIALS}, not {trials}")
    return Search(
        tuning.search_space(factors, f"{where}: [search]"),
        templates,
        trials,
        BATCH.read(given, "batch", place),
        TRIAL_RUNS.read(given, "runs", place),
        sampler,
        tuning.POPULATION.read(given, "population", place),
        demands,
    )


def _export(table: Mapping[str, Any], where: str) -> Export:
    EXPORT.check(table, where)
    return Export(
        TO.read(table, "to", where),
        LINK.maybe(table, "link", where),
        SHAPE.read(table, "shape", where),
        EXPORT_LENIENT.read(table, "lenient", where),
    )


def tuning_plan(plan: Plan) -> tuning.TuningPlan:
    """The search of a plan. Trials use the seeds after those of the verdicts, which no trial sees."""
    search = plan.search
    assert search is not None

    def derive(observed: Mapping[str, Observations]) -> dict[str, Observations]:
        return {SCORE: Observations((score(plan.measured_bounds, observed),))}

    return tuning.TuningPlan(
        title=plan.title,
        base=plan.base(search.demands, templates=True),
        search=search.factors,
        objectives=(tuning.Objective(SCORE, maximize=True),),
        constraints=(),
        trials=search.trials,
        batch=search.batch,
        runs=search.runs,
        seed=plan.seeds.stop,
        validation_runs=plan.runs,
        sampler=search.sampler,
        population=search.population,
        derive=derive,
        observed=plan.measured,
        fresh=plan.seeds,
    )
