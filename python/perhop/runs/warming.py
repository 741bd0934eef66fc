"""`warmup = "auto"`: how long runs take to settle, found from runs of their own.

A scenario has one warm-up: the seeds of the runs that find it are always the same, so it depends neither on
the seeds nor on the number of the runs that are measured, and a point of a sweep has that of `perhop run`.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perhop import _engine
from perhop.measures import catalog
from perhop.measures.run import Run
from perhop.runs import one_run
from perhop.runs.extent import workers
from perhop.runs.parallel import parallel_map
from perhop.scenario.traces import traces
from perhop.scenario.warmup import AUTO, duration_ns, with_warmup
from perhop.show.numbers import NOISE
from perhop.statistics.settling import LEVEL, settled_from

SEEDS = range(1, 6)
"""Seeds of the runs whose samples are averaged: a mean over runs settles when their distribution does."""
SAMPLES = 1000
"""Samples of each of these runs."""
FEWEST_SAMPLES = 100
"""A network that has too many flows for as many is not sampled."""
MOST_VALUES = 2_000_000
"""Samples of all flows of a run; a large network is sampled less often."""
EARLY = 4
"""Runs that settle within this part of themselves, a quarter, are long enough to tell. In others what follows
the cut may still be the beginning, as between the end of a slow start and the first loss."""
LATE = 4
"""Flows that begin behind this part of the run, a quarter, are no part of its beginning."""
_THROUGHPUT, _LOSS = "the throughput", "the loss"
_KEPT = 100_000
"""Scenarios whose warm-ups this process keeps."""
_NAP_S = 0.05

Series = dict[str, NDArray[np.float64]]
"""Samples of one run, by what they are of."""


@dataclass(frozen=True, slots=True)
class WarmUp:
    """The warm-up that was found.

    Attributes:
        seconds: How long it is: when the last of all series settles; half of the run if one does not; nothing
            if the whole run counts.
        settles: Whether the run has a steady state, which begins in its first half.
        why: How it was found, or why there is none, as a part of a sentence.
    """

    seconds: float
    settles: bool
    why: str

    def json(self) -> dict[str, object]:
        """The values for JSON."""
        return {"seconds": self.seconds, "settles": self.settles, "why": self.why}


def settled(
    text: str,
    *,
    jobs: int | None = None,
    cancel: _engine.Cancel | None = None,
    waiting: Callable[[float], None] | None = None,
) -> tuple[str, WarmUp | None]:
    """Return a scenario with the warm-up that it asks for: a found one in place of `auto`, and how.

    Args:
        text: Canonical JSON.
        jobs: Runs at once; as many as there are cores if not given.
        cancel: Set it from another thread to stop.
        waiting: Called on the calling thread many times a second with what is under way, in whole runs.

    Raises:
        ScenarioError: The scenario cannot be run.
        BlockError: A class in Python has failed.
        perhop._engine.Cancelled: `cancel` was set.
    """
    if not is_auto(text):
        return text, None
    flag = cancel if cancel is not None else _engine.Cancel()
    threads = min(workers(jobs), len(SEEDS))
    warm_up, *_ = parallel_map(
        lambda _: _warm_up(text, flag), range(threads), jobs=threads, cancel=flag, waiting=waiting
    )
    return _with(text, warm_up), warm_up


def settled_beside_others(text: str, cancel: _engine.Cancel) -> tuple[str, WarmUp | None]:
    """Do what `settled` does on the thread that calls, which shares the work with others that do.

    Raises:
        ScenarioError, BlockError, perhop._engine.Cancelled: See `settled`.
    """
    if not is_auto(text):
        return text, None
    warm_up = _warm_up(text, cancel)
    return _with(text, warm_up), warm_up


def is_auto(text: str) -> bool:
    """Whether the warm-up of a scenario, in canonical JSON, has to be found."""
    return bool(json.loads(text).get("warmup") == AUTO)


def _with(text: str, warm_up: WarmUp) -> str:
    return with_warmup(text, f"{round(warm_up.seconds * 1e9)}ns")


def _warm_up(text: str, cancel: _engine.Cancel) -> WarmUp:
    """The warm-up of a scenario: as it was found, or found by all threads that ask for it meanwhile."""
    key = hashlib.sha256(text.encode()).digest()
    with _turn:
        if (found := _found.get(key)) is not None:
            return found
        search = _under_way.get(key)
        if search is None:
            search = _under_way[key] = _Search(text)
    try:
        found = search.join(cancel)
    except _engine.Cancelled:
        raise  # other threads may go on
    except BaseException:
        with _turn:
            _under_way.pop(key, None)
        raise
    with _turn:
        _under_way.pop(key, None)
        _found[key] = found
        if len(_found) > _KEPT:
            _found.popitem(last=False)
    return found


_turn = threading.Lock()
_found: OrderedDict[bytes, WarmUp] = OrderedDict()
_under_way: dict[bytes, _Search] = {}


class _Search:
    """The runs that find the warm-up of one scenario, on all threads that wait for it.

    They simulate its first half, or the whole where this does not settle within its own first quarter, and
    where flows may end with their volumes: then one that does ends the search.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        scenario: dict[str, Any] = json.loads(text)
        self._whole_ns = duration_ns(scenario)
        self._changed = threading.Condition()
        self._sampled: dict[int, Series] = {}
        self._left = list(SEEDS)
        self._error: BaseException | None = None
        self._found: WarmUp | None = None
        self._flows = int(_engine.memory(text)["flows"])
        self._length_ns = self._whole_ns // 2
        self._begun_s = max((_last_start_ns(group, scenario) for group in scenario["flows"]), default=0) / 1e9
        why, self._ends = _not_settling(scenario), _ends_with_volume(scenario)
        if self._ends is not None:
            self._length_ns = self._whole_ns
        if why is None and self._flows * FEWEST_SAMPLES > MOST_VALUES:
            why = "no warm-up is looked for with so many flows"
        if why is not None:
            self._found = WarmUp(0.0, settles=False, why=why)

    def join(self, cancel: _engine.Cancel) -> WarmUp:
        """Make runs until the warm-up is found, by this thread or another."""
        while True:
            with self._changed:
                while self._found is None and self._error is None and not self._left:
                    if cancel.is_cancelled():
                        raise _engine.Cancelled("cancelled")
                    self._changed.wait(_NAP_S)
                if self._error is not None:
                    raise self._error
                if self._found is not None:
                    return self._found
                seed = self._left.pop(0)
            self._run(seed, cancel)

    def _run(self, seed: int, cancel: _engine.Cancel) -> None:
        try:
            run = Run(seed, one_run.simulate(self._pilot(), seed, cancel))
            sampled = dict(_series(run))
        except BaseException as error:
            with self._changed:
                if isinstance(error, _engine.Cancelled):
                    self._left.append(seed)  # another thread, which goes on, may wait for it
                else:
                    self._error = error
                self._changed.notify_all()
            raise
        with self._changed:
            if self._ends is not None and _has_ended(run, json.loads(self._text)):
                self._found = WarmUp(0.0, settles=False, why=self._ends)
            else:
                self._sampled[seed] = sampled
            if len(self._sampled) == len(SEEDS):
                self._conclude()
            self._changed.notify_all()

    def _pilot(self) -> str:
        """The scenario of these runs."""
        scenario: dict[str, Any] = json.loads(self._text)
        samples = min(SAMPLES, MOST_VALUES // max(1, self._flows))
        probes = {"interval": f"{max(1, self._length_ns // samples)}ns"}
        return json.dumps({**scenario, "duration": f"{self._length_ns}ns", "warmup": "0s", "probes": probes})

    def _conclude(self) -> None:
        """Find the warm-up from the samples of all runs, or ask for longer ones."""
        runs = [self._sampled[seed] for seed in SEEDS]
        series = {name: np.array([run[name] for run in runs]) for name in runs[0]}
        found = _latest(series, self._length_ns / 1e9, self._begun_s)
        self._sampled = {}
        in_time = found.settles and EARLY * found.seconds * 1e9 <= self._length_ns
        if in_time or self._length_ns == self._whole_ns:
            self._found = found
        else:
            self._left, self._length_ns = list(SEEDS), self._whole_ns


def whole_run(scenario: Mapping[str, Any]) -> str | None:
    """Why the whole run of a scenario may count, as it has no one steady state, or its beginning is measured.

    None if only its runs can tell. Whether a `volume` ends within the run, they have to tell, too.
    """
    return _not_settling(scenario) or _ends_with_volume(scenario)


def _not_settling(scenario: Mapping[str, Any]) -> str | None:
    """Why the whole run of a scenario counts, whatever its runs are like; None if it need not."""
    for link, spec in scenario["links"].items():
        for direction, keys in ((link, spec), (f"{link} (reverse)", spec.get("reverse") or {})):
            if keys.get("changes") or keys.get("outages"):
                return f"`{direction}` changes meanwhile"
    if all(_starts_ns(group)[0] >= duration_ns(scenario) for group in scenario["flows"]):
        return "no flow begins within it"
    for group in scenario["flows"]:
        if (why := _whole_run_of(group, scenario)) is not None:
            return why
    recorded = next((trace for trace in traces(scenario) if trace.kind != "sizes"), None)
    return None if recorded is None else f"`{recorded.owner}` follows a recording"


def _whole_run_of(group: Mapping[str, Any], scenario: Mapping[str, Any]) -> str | None:
    """Why the whole run counts for the sake of a group of flows; None if it does not."""
    name, arrivals = group["name"], group.get("arrivals") or {}
    stops = "stop" in group and _engine.quantity("duration", group["stop"])[0] < duration_ns(scenario)
    if stops or arrivals.get("list"):
        return f"the traffic of `{name}` ends"
    if LATE * _last_start_ns(group, scenario) > duration_ns(scenario):
        return f"flows of `{name}` begin behind its first quarter"
    users = catalog.APPLICATION.get((group.get("application") or {}).get("model", ""), ())
    if any(measure.name == "startup_s" for measure in users):
        return f"how `{name}` starts is measured"
    return None


def _ends_with_volume(scenario: Mapping[str, Any]) -> str | None:
    """The sentence that says which traffic may end with its volume; None where no flow has one."""
    for group in scenario["flows"]:
        if "volume" in group and not group.get("arrivals"):
            return f"the traffic of `{group['name']}` ends with its volume"
    return None


def _has_ended(run: Run, scenario: Mapping[str, Any]) -> bool:
    """Whether a flow with a volume has sent it before the end of a run; all of it need not have arrived."""
    groups = [n for n, one in enumerate(scenario["flows"]) if "volume" in one and not one.get("arrivals")]
    begun, active = (np.asarray(run.raw["flows"][name], dtype=float) for name in ("started_s", "active_s"))
    ended = begun + active < (1 - NOISE) * run.raw["duration_s"]
    return bool((ended & np.isin(run.flows("group"), groups)).any())


def _last_start_ns(group: Mapping[str, Any], scenario: Mapping[str, Any]) -> int:
    """When the last flows of a group may begin; 0 if none does within the run, or they come and go."""
    begins, ends = _starts_ns(group)
    return ends if begins < duration_ns(scenario) and not group.get("arrivals") else 0


def _starts_ns(group: Mapping[str, Any]) -> tuple[int, int]:
    """When the first flows of a group may begin, and when the last may."""
    first, _, last = str(group.get("start", "0s")).partition("..")
    begins, ends = (int(_engine.quantity("duration", one.strip())[0]) for one in (first, last or first))
    return begins, ends


def _latest(series: Mapping[str, NDArray[np.float64]], duration_s: float, begun_s: float = 0.0) -> WarmUp:
    """Find the series that settles last; each is f64[p, k] of p runs. By `begun_s` all flows have begun."""
    last, most, samples = "", 0, 1
    for name, values in series.items():
        # Losses may be rare, and then are in one half of the run or the other.
        begins = settled_from(values, LEVEL / len(series), may_drift=name.startswith(_LOSS))
        if begins is None:
            why = f"half of the run, as by MSER-5 {name} has not settled by then"
            return WarmUp(duration_s / 2, settles=False, why=why)
        if begins > most:
            last, most, samples = name, begins, values.shape[1]
    rates = [values for name, values in series.items() if name.startswith(_THROUGHPUT)]
    if any(rate.any() for rate in rates) and not any(rate[:, most:].any() for rate in rates):
        return WarmUp(0.0, settles=False, why="the traffic ends")
    if not most:
        return WarmUp(0.0, settles=True, why="by MSER-5 its beginning does not differ from the rest")
    if (seconds := duration_s * most / samples) < begun_s:
        return WarmUp(
            begun_s, settles=True, why="when the last flows begin; by MSER-5 all has settled by then"
        )
    return WarmUp(seconds, settles=True, why=f"found by MSER-5: {last} settles last")


def _series(run: Run) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Yield what has to settle: each link's waiting and dropped packets, each class's rate and open flows."""
    series = run.raw["series"]
    for link, queue in series["links"].items():
        yield f"the queue of `{link}`", np.asarray(queue["queue_packets"], dtype=float)
        yield f"{_LOSS} at `{link}`", np.diff(np.asarray(queue["dropped"], dtype=float), prepend=0.0)
    rates = np.asarray(series["throughput_bps"]).reshape(len(series["time_s"]), -1)
    groups = run.flows("group")
    for number, group in enumerate(run.groups):
        yield f"{_THROUGHPUT} of `{group.name}`", np.nansum(rates[:, groups == number], axis=1)
    at = np.asarray(series["time_s"], dtype=float)
    for population in run.raw["populations"]:
        begun = np.asarray(population["started_s"], dtype=float)
        ended = begun + np.asarray(population["completion_s"], dtype=float)
        counts = [np.searchsorted(np.sort(one), at, side="right") for one in (begun, ended)]  # NaN comes last
        name = run.groups[groups[population["flow"]]].name
        yield f"the number of open flows of `{name}`", (counts[0] - counts[1]).astype(float)
