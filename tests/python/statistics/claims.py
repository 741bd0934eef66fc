"""How often the commands claim a difference: where there is none, and where there is one of known size.

`python -m tests.python.statistics.claims` prints the table of docs/statistics.md.

Of samples, with what judges them in each command, and with runs of `SCENARIO` through each command. Its
settings differ in the name of a group of flows, by which the engine draws the group's random numbers: so they
have other luck and nothing else. An effect is a longer way of the probe before and behind the link: it delays
each packet by as much, and changes the queue by chance alone. Runs on real packets need a kernel, and take as
long as the scenario says: here `perhop compare` gets simulated ones of other seeds in their place.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from tests.python.live.living import pretend
from tests.python.sweeps.running import quietly

import perhop
from perhop.planning.job import gain
from perhop.planning.objectives import Bound, parse
from perhop.planning.verdicts import smallest_margins
from perhop.real_packets.equivalence import MARGINS, Comparison, Key, Margin, tested
from perhop.runs import simulate
from perhop.statistics.observations import Observations
from perhop.sweeps.choosing import Validated, choose
from perhop.sweeps.job import Swept, Workplace
from perhop.sweeps.plan import Point
from perhop.sweeps.report import answers
from perhop.sweeps.summary import PointSummary
from perhop.sweeps.tune import tune
from perhop.sweeps.tuning import Objective, read_tuning

Values: TypeAlias = NDArray[np.float64]

# ---------------------------------------------------------------- theory


def of_students_t(runs: int, effect: float, *, sides: int = 2) -> float:
    """How often a paired t test, 2.5 % on each side, finds an effect of so many standard errors."""
    quantile = stats.t.ppf(0.975, runs - 1)
    below = stats.nct.cdf(-quantile, runs - 1, effect) if sides == 2 else 0.0
    return float(stats.nct.sf(quantile, runs - 1, effect) + below)


def of_the_range(settings: int, runs: int, effect: float) -> float:
    """How often the studentized range distinguishes the extremes of settings, of which one is higher.

    Args:
        effect: By how much it is higher, over the standard error of a paired difference.
    """
    critical = stats.studentized_range.ppf(0.95, settings, runs - 1)
    means = np.zeros(settings)
    means[-1] = effect * math.sqrt(2)
    at = np.linspace(-9.0, 9.0 + means[-1], 1501)

    def within(width: float) -> float:
        """The probability that the range is at most that: some mean is the lowest, the others follow."""
        inside = stats.norm.cdf(at[:, None] + width - means) - stats.norm.cdf(at[:, None] - means)
        lowest = [
            np.trapezoid(stats.norm.pdf(at - means[i]) * np.delete(inside, i, axis=1).prod(axis=1), at)
            for i in (0, settings - 1)
        ]
        return float((settings - 1) * lowest[0] + lowest[1])

    shares = (np.arange(200) + 0.5) / 200
    spreads = np.sqrt(stats.chi2.ppf(shares, runs - 1) / (runs - 1))
    return 1 - float(np.mean([within(critical * spread) for spread in spreads]))


def of_two_samples(first: int, second: int, effect: float) -> float:
    """How often the longer of Welch's and Student's intervals finds an effect of so many standard errors.

    Both samples are normal and spread alike.
    """
    shares = (np.arange(400) + 0.5) / 400
    a, b = (stats.chi2.ppf(shares, n - 1) / (n - 1) for n in (first, second))
    a, b = a[:, None], b[None, :]
    parts = a / first, b / second
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / (first - 1) + parts[1] ** 2 / (second - 1))
    welch = stats.t.ppf(0.975, freedom) * np.sqrt(sum(parts))
    pooled = ((first - 1) * a + (second - 1) * b) / (first + second - 2) * (1 / first + 1 / second)
    student = stats.t.ppf(0.975, first + second - 2) * np.sqrt(pooled)
    half = np.maximum(welch, student) / math.sqrt(1 / first + 1 / second)
    return float(np.mean(stats.norm.sf(half - effect) + stats.norm.cdf(-half - effect)))


# ---------------------------------------------------------------- what judges samples

SWEPT = "flows.gold.throughput_bps"
DELAY = Bound(parse("P99 of one-way delay of voice < 20 ms", "plan.toml"), (("d",),), "s")
FEWER = Objective("d", maximize=False)


def points(values: Values) -> list[PointSummary]:
    """A sweep; f64[settings, runs]."""
    found = []
    for place, row in enumerate(values.tolist()):
        one = Observations(tuple(row))
        point = Point({"links.up.queue.limit": f"{place}p"}, "{}", str(place))
        found.append(PointSummary(point, len(row), {SWEPT: one.estimate}, {SWEPT: one}))
    return found


def sweep_claims(summaries: Sequence[PointSummary]) -> bool:
    """The sentence about the extremes of a sweep says that they differ."""
    (text,) = answers(summaries)
    return "by chance" not in text


def validated(values: Values) -> list[Validated]:
    """Settings on fresh seeds; f64[settings, runs]."""
    observed = [{"d": Observations(tuple(row))} for row in values.tolist()]
    return [
        Validated(str(place), {"d": one["d"].estimate}, one, holds=True) for place, one in enumerate(observed)
    ]


def tune_claims(values: Values) -> bool:
    """A search says of some of its best, or of the scenario as it is (the last), that they differ."""
    *trials, now = validated(values)
    return choose([FEWER], trials, now).differ


def plan_claims(values: Values) -> bool:
    """A plan says that a setting (the first) is surely better than as it is (the second)."""
    margins = [smallest_margins([DELAY], {"d": Observations(tuple(row))}) for row in values.tolist()]
    found = gain(*margins)
    return found is not None and found.low > 0


def compare_claims(simulated: Values, live: Values, margin: float) -> bool:
    """A comparison says that a number is different on real packets."""
    return tested(simulated.tolist(), live.tolist(), margin).verdict == "different"


# ---------------------------------------------------------------- runs

SCENARIO = """\
duration = "700ms"
warmup = "200ms"
[links.link]
from = "a"
to = "b"
rate = "1.5Mbps"
delay = "5ms"
queue = { aqm = "drop-tail", limit = "10p" }
[[flows]]
name = "probe"
from = "a"
to = "b"
access = { rate = "10Mbps", delay = "10ms" }
transport = { udp = "cbr", rate = "48kbps", packet = "100B" }
start = "0s..100ms"
[[flows]]
name = "sources"
from = "a"
to = "b"
count = 6
transport = { udp = "on-off", rate = "500kbps", packet = "500B", on = "20ms", off = "20ms" }
start = "0s..100ms"
"""
USUAL = 10e-3
"""The way of the probe to the link, and from it to the other end."""

_SWEEP = """\
scenario = "scenario.toml"
runs = {runs}
seed = {seed}
metrics = ["flows.probe.one_way_delay_s"]
[list]
"flows.1.name" = {names}
"flows.0.access.delay" = {ways}
"""
_TUNE = """\
scenario = "scenario.toml"
runs = 2
validation-runs = {runs}
seed = {seed}
objectives = ["minimize flows.probe.one_way_delay_s"]
[search]
"flows.1.name" = ["s0", "s1", "s2"]
"flows.0.access.delay" = ["{way}"]
"""
_PLAN = """\
scenario = "scenario.toml"
runs = {runs}
seed = {seed}
objectives = ["mean of one-way delay of probe < 40 ms"]
[set]
"flows.1.name" = "{{name}}"
"flows.0.access.delay" = "{{way}}"
[growth]
demands = []
[search]
name = ["s0", "s1", "s2"]
way = ["{way}"]
[tuning]
runs = 2
"""


def scenario(way: float) -> str:
    """The scenario with another way of the probe."""
    return SCENARIO.replace('"10ms"', f'"{seconds(way)}"')


def seconds(value: float) -> str:
    """A time as scenarios have it."""
    return f"{value * 1e9:.0f}ns"


@dataclass(frozen=True)
class Laboratory:
    """Where commands run: a folder with the scenario, and a store for each first seed."""

    folder: Path

    def written(self, name: str, text: str, way: float = USUAL) -> Path:
        """A file beside the scenario, in which the probe has this way."""
        (self.folder / "scenario.toml").write_text(scenario(way), encoding="utf-8")
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def place(self, seed: int) -> Workplace:
        """Where runs are kept."""
        return Workplace(self.folder / f"store-{seed}", "local", 1, None)

    def sweep(self, seed: int, runs: int, ways: Sequence[float]) -> Swept:
        """A sweep over the names of the group, each with a way of the probe."""
        names = [f"s{place}" for place in range(len(ways))]
        different = [seconds(way + 1e-9 * place) for place, way in enumerate(ways)]
        listed = {"names": json.dumps(names), "ways": json.dumps(different)}
        text = _SWEEP.format(runs=runs, seed=seed, **listed)
        return quietly(self.written("sweep.toml", text), self.place(seed))

    def tune(self, seed: int, runs: int, way: float, now: float) -> bool:
        """A search over three names of the group claims a difference of some of them, or from as it is.

        Args:
            seed: The first.
            runs: On fresh seeds.
            way: That of all three.
            now: That of the scenario as it is.
        """
        path = self.written("tune.toml", _TUNE.format(runs=runs, seed=seed, way=seconds(way)), now)
        plan = read_tuning(path, trials=None, runs=None, seed=None)
        quiet = nullcontext(lambda: None)
        found = tune(plan, self.place(seed), say=lambda _: None, progress=lambda _what, _total: quiet)
        return found.choice.differ

    def plan(self, seed: int, runs: int, way: float, now: float) -> bool:
        """A plan with such a search says that its best is surely better."""
        path = self.written("plan.toml", _PLAN.format(runs=runs, seed=seed, way=seconds(way)), now)
        better = perhop.plan(path, store=self.place(seed).store, jobs=1).better
        return better is not None and better.sure


def compared(
    seed: int, runs: tuple[int, int], ways: tuple[float, float], given: Mapping[str, Margin]
) -> Comparison:
    """Simulated runs beside others on other seeds.

    Args:
        seed: The first of the simulated ones.
        runs: How many, and how many others.
        ways: Of the probe in both.
        given: Margins, where they are not the defaults.
    """
    simulated = simulate.run(scenario(ways[0]), runs=runs[0], seed=seed, jobs=1)
    return Comparison(
        simulated, pretend(scenario(ways[1]), runs[1], seed=seed + runs[0]), {**MARGINS, **given}
    )


# ---------------------------------------------------------------- the table

TRIALS = 200
RUNS = 12
SETTINGS = 6
LIVE, SIMULATED = 4, 30
EFFECT = 2.0
"""Standard errors of the difference."""


@dataclass(frozen=True)
class Row:
    """What one way of asking gives: of `trials`, how many claims on noise, and with an effect."""

    command: str
    how: str
    noise: int
    found: int
    theory: float
    trials: int = TRIALS

    def text(self, of: str) -> str:
        """As a line of the table."""
        found, theory = (f"{100 * share:.1f} %" for share in (self.found / self.trials, self.theory))
        noise = f"{self.noise} of {self.trials} ({100 * self.noise / self.trials:.1f} %)"
        return f"| `{self.command}` | {of} | {self.how} | {noise} | {found} | {theory} |"


def noise(random: np.random.Generator, settings: int, runs: int) -> Values:
    """f64[settings, runs] without any effect; runs on a seed share luck."""
    return 20 + random.normal(size=(settings, runs)) + 3 * random.normal(size=(1, runs))


def of_samples(trials: int = TRIALS) -> Iterator[Row]:
    """The judges of all commands on normal values."""
    random = np.random.default_rng(36)
    shift = EFFECT * math.sqrt(2 / RUNS)

    def count(settings: int, claims: Callable[[Values], bool], effect: float = 0.0) -> int:
        found = 0
        for _ in range(trials):
            values = noise(random, settings, RUNS)
            values[-1] += effect
            found += claims(values)
        return found

    def row(command: str, how: str, settings: int, claims: Callable[[Values], bool], theory: float) -> Row:
        return Row(command, how, count(settings, claims), count(settings, claims, shift), theory, trials)

    of_range = of_the_range(SETTINGS, RUNS, EFFECT)
    yield row("sweep", f"{SETTINGS} points", SETTINGS, lambda values: sweep_claims(points(values)), of_range)
    yield row("tune", f"{SETTINGS - 1} best and as it is", SETTINGS, tune_claims, of_range)
    of_t = of_students_t(RUNS, EFFECT, sides=1)
    yield row("plan", "the best and as it is", 2, lambda values: plan_claims(values / 1e3), of_t)
    error = math.sqrt(1 / SIMULATED + 1 / LIVE)

    def live(effect: float) -> int:
        found = 0
        for _ in range(trials):
            a, b = random.normal(size=SIMULATED), random.normal(size=LIVE) + effect * error
            found += compare_claims(a, b, 0.0)
        return found

    of_two = of_two_samples(SIMULATED, LIVE, EFFECT)
    yield Row("compare", f"{SIMULATED} runs and {LIVE}", live(0.0), live(EFFECT), of_two, trials)


@cache
def spread() -> float:
    """The standard deviation of the probe's mean delay over runs."""
    many = simulate.run(SCENARIO, runs=1000, seed=1_000_000, jobs=2).flows
    return float(np.std(many.filter(many["class"] == "probe")["one_way_delay_s"].to_numpy(), ddof=1))


def of_runs(command: str, folder: Path, trials: int = TRIALS) -> Row:
    """One of `COMMANDS` on runs of the scenario."""
    laboratory = Laboratory(folder)
    seeds = range(1, 100 * trials, 100)
    error = math.sqrt(2 / RUNS) if command != "compare" else math.sqrt(1 / SIMULATED + 1 / LIVE)
    claims, how, theory = COMMANDS[command]
    noise, found = (
        sum(claims(laboratory, seed, USUAL + effect * spread() * error / 2) for seed in seeds)
        for effect in (0.0, EFFECT)
    )
    return Row(command, how, noise, found, theory(), trials)


def _swept(laboratory: Laboratory, seed: int, way: float) -> bool:
    """A sweep over six names, the last with this way."""
    ways = [*[USUAL] * (SETTINGS - 1), way]
    return sweep_claims(laboratory.sweep(seed, RUNS, ways).summaries)


def _compared(_: Laboratory, seed: int, way: float) -> bool:
    """Simulated runs and others with this way, of which the probe's delay is said to be different."""
    lines = compared(seed, (SIMULATED, LIVE), (USUAL, way), {"one-way": Margin(0.0, 0.0)}).lines
    delay = Key("class", "probe", "one-way")
    return any(line.verdict == "different" for line in lines if line.key == delay)


COMMANDS: Mapping[str, tuple[Callable[[Laboratory, int, float], bool], str, Callable[[], float]]] = {
    "sweep": (
        _swept,
        f"{SETTINGS} points, {RUNS} runs",
        lambda: of_the_range(SETTINGS, RUNS, EFFECT),
    ),
    "tune": (
        lambda laboratory, seed, now: laboratory.tune(seed, RUNS, USUAL, now),
        f"3 settings and as it is, {RUNS} runs",
        lambda: of_the_range(4, RUNS, EFFECT),
    ),
    "plan": (
        lambda laboratory, seed, now: laboratory.plan(seed, RUNS, USUAL, now),
        f"the best of 3 settings, {RUNS} runs",
        lambda: of_students_t(RUNS, EFFECT, sides=1),
    ),
    "compare": (
        _compared,
        f"{SIMULATED} runs and {LIVE}, margin 0",
        lambda: of_two_samples(SIMULATED, LIVE, EFFECT),
    ),
}
"""What claims a difference, on how many runs, and how often it finds the effect by theory."""


def main() -> None:
    """Print the table."""
    for row in of_samples():
        print(row.text("samples"), flush=True)  # noqa: T201
    for command in COMMANDS:
        with tempfile.TemporaryDirectory() as folder:
            print(of_runs(command, Path(folder)).text("runs"), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
