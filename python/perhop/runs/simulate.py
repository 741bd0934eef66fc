"""Run a scenario over several seeds and read the outcome as data frames."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from perhop import _engine
from perhop.errors import PerhopError
from perhop.files import arguments
from perhop.measures.run import Run
from perhop.processes import memory
from perhop.runs import budget, one_run, recording, warming
from perhop.runs import until as stopping
from perhop.runs.extent import ENGINES, MAX_SEED, Engine, seeds, threads_each, workers
from perhop.runs.parallel import parallel_map
from perhop.runs.result import Result
from perhop.scenario.reading import ScenarioSource, _files
from perhop.scenario.warmup import read
from perhop.statistics.stopping import FEWEST


class Interrupted(KeyboardInterrupt):
    """Ctrl-C has ended `run` behind its first runs.

    Attributes:
        result: The runs that had finished, up to the first seed that had not: those that finish first may be
            the short ones.
    """

    def __init__(self, result: Result) -> None:
        super().__init__(result)
        self.result = result


def run(
    scenario: ScenarioSource,
    *,
    runs: int | None = None,
    until: str | None = None,
    until_of: Sequence[str] = (),
    seed: int = 1,
    jobs: int | None = None,
    threads: int | None = None,
    engine: Engine | None = None,
    warmup: str | None = None,
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
            5, by the events of the first five and not by the clock (`perhop.runs.budget`). With `until` the
            most that are made, 1000 if not given.
        until: Add runs until 95 % intervals are this narrow: `2%`, each side over the value. The intervals of
            the result are valid though they decide how many runs there are (`perhop.statistics.stopping`).
        until_of: The metrics of which that holds, by name or pattern as in sweeps, such as
            `links.uplink.delay_p99_s`; by default the throughput of each class.
        seed: First seed, at least 0. Each flow, profile, path and link draws from a random stream of its own,
            derived from the seed and its name: a group or a link of another name draws other numbers, as with
            another seed, and so gives another, equally valid run.
        jobs: Runs at once; as many as there are cores if not given.
        threads: Threads of each run of a large network; if not given, the cores that the runs leave idle. A
            network of less than 64 links runs on one, and so does one with flows that come and go, and any
            that the reference engine runs.
        engine: `batched` or `reference`; if not given, the batched engine if it accepts the network, else the
            reference engine, which takes longer. The results are the same.
        warmup: A duration, such as `10s`, in place of the scenario's `warmup`; or `auto`, as in a scenario
            that sets none: the time after which the last queue and the last class's rate have settled, by
            MSER-5 in five runs of their own.
        capture: A file for the packets of the run with the first seed (pcapng), which Wireshark opens. That
            run is computed by the reference engine.
        capture_links: The links whose packets are recorded, both directions of each; by default those with a
            queue.
        events: A file for what became of the packets of that run at these links, as a table (Parquet).
        progress: Called with (finished, all) on the calling thread after every run; where `runs` is None,
            all are five until these are done, and with `until` as many as are needed by forecast.
        waiting: Called on the calling thread many times a second with what is under way, in whole runs.
        cancel: Set it from another thread to stop; `perhop._engine.Cancelled` is then raised.

    Raises:
        ScenarioError: The scenario is wrong; the message names the place and the key. Or the batched engine
            is requested and refuses the network; the message says why.
        PerhopError: An argument is out of range, a file cannot be read or written, or memory is short.
        BlockError: A class in Python has failed; `__cause__` is its error.
        perhop._engine.Cancelled: `cancel` was set.
        Interrupted: Ctrl-C, behind two runs or more; a KeyboardInterrupt that has their results.
    """
    rule = stopping.read(until, until_of, runs)
    checked = read(scenario, warmup)
    checked.warn()
    flag = cancel if cancel is not None else _engine.Cancel()
    text, warm_up = warming.settled(checked.text, jobs=jobs, cancel=flag)
    wanted = seeds(seed, rule.most if rule is not None else budget.FIRST if runs is None else runs)
    if engine is not None:
        arguments.one_of("engine", engine, ENGINES)
    recorded = recording.plan(
        text, capture=capture, events=events, capture_links=capture_links, reads=_files(scenario)
    )
    if recorded is not None and engine == "batched":
        raise PerhopError("the batched engine cannot record packets; leave `engine` out")
    work = _Work(text, engine, jobs, threads, recorded, wanted[0], flag, progress, waiting)
    files = _files(scenario)
    name = files[0].stem if files else ""

    def result(reached: stopping.Reached | None = None, *, by_default: bool = False) -> Result:
        made = tuple(work.made)
        return Result(text, made, by_default=by_default, name=name, warm_up=warm_up, reached=reached)

    watch = None if rule is None else stopping.Watch(text, rule, warm_up)
    try:
        if watch is not None:
            return result(work.until(watch))
        work.make(wanted)
        if runs is None and (more := _affordable(text, wanted[0], work.made, jobs) - len(work.made)):
            work.make(seeds(wanted[-1] + 1, more))
    except KeyboardInterrupt:
        if len(work.made) < (2 if watch is None else FEWEST):
            raise
        reached = None if watch is None else watch.interrupted(work.made)
        raise Interrupted(replace(result(reached), interrupted_of=work.wanted)) from None
    return result(by_default=runs is None)


@dataclass(slots=True)
class _Work:
    """Makes the runs of one scenario; the attributes are the arguments of `run`.

    Attributes:
        first: The seed of the run whose packets are recorded, if they are.
        made: The runs so far, in the order of their seeds.
        wanted: How many there will be, as far as is known.
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
    wanted: int = 0
    _unwritten: list[PerhopError] = field(default_factory=list)

    def until(self, watch: stopping.Watch) -> stopping.Reached:
        """Make runs until intervals are narrow, or there are as many as may be.

        Cores that would be idle until the next look make further runs; those count that a look asks for.
        """
        rule = watch.rule
        runs, expected, cores = rule.least, rule.least, workers(self.jobs)
        while True:
            if (missing := runs - len(self.made)) > 0:
                more = min(missing + -missing % cores, rule.most - len(self.made))
                self.make(seeds(self.first + len(self.made), more), expected)
            look = watch.look(self.made[:runs])
            if (after := rule.after(look)) == runs:
                self.made = self.made[:runs]
                return stopping.Reached(rule, look)
            runs, expected = after, math.ceil(min(rule.most, max(after, rule.needed(look))))

    def make(self, numbers: Sequence[int], expected_in_all: int = 0) -> None:
        """Make the runs with these seeds, which follow those that are made.

        Args:
            numbers: The seeds.
            expected_in_all: Runs that there will be by forecast, if more than with these.
        """
        at_once, expected = memory.fitting(self.text, len(numbers), self.jobs, workers(self.jobs))
        each = threads_each(self.threads, at_once, len(numbers))
        before = len(self.made)
        self.wanted = max(before + len(numbers), expected_in_all)
        done: dict[int, Run] = {}

        def finished(place: int, run: Run) -> None:
            done[place] = run
            if self.progress is not None:
                self.progress(before + len(done), self.wanted)

        try:
            parallel_map(
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
        finally:
            self.made += [
                done[place] for place in itertools.takewhile(done.__contains__, range(len(numbers)))
            ]

    def _simulate(self, number: int, each: int) -> Run:
        if self.recorded is None or number != self.first:
            outcome = one_run.simulate(self.text, number, self.cancel, engine=self.engine, threads=each)
            return Run(number, outcome)
        try:
            return Run(number, recording.record(self.text, number, self.cancel, self.recorded))
        except PerhopError as error:
            self._unwritten.append(error)
            raise


def _affordable(text: str, first: int, made: Sequence[Run], jobs: int | None) -> int:
    """Return how many runs a scenario gets where nobody says, by the cost of those that are made."""
    runs = budget.fitting([budget.cost(text, run.raw) for run in made], budget.EVENTS)
    for number in sorted(budget.LADDER, reverse=True):
        if len(made) < number <= runs and first + number - 1 <= MAX_SEED:
            with suppress(PerhopError):  # fewer, where memory does not hold the results of so many
                memory.fitting(text, number - len(made), jobs, workers(jobs))
                return number
    return len(made)
