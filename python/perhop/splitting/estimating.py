"""`perhop.rare`: a pilot that finds levels, then independent runs with splitting."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

from perhop import _engine
from perhop.bounds import deriving
from perhop.errors import ArgumentError, PerhopError
from perhop.files import arguments
from perhop.processes import memory
from perhop.runs import warming
from perhop.runs.extent import seeds, workers
from perhop.runs.parallel import parallel_map
from perhop.scenario.reading import ScenarioSource, _files, read
from perhop.show.numbers import exact
from perhop.splitting.result import Event, Rare, percentile

RUNS = 10
MOST_EVENTS = 100_000_000
"""A run that takes more events is given up."""
PILOT_EVENTS = 20_000_000
"""Levels that take more events to be found are not looked for: half a minute of a core."""
UNITS = ("packets", "bytes")
REVERSE = " (reverse)"
UNVARIED = (
    "splitting gives nothing here: copies of a run with other random numbers do what the run does, since its "
    "traffic draws none once it has begun; more runs of `perhop run` vary the start"
)


def rare(
    scenario: ScenarioSource,
    *,
    link: str | None = None,
    class_name: str | None = None,
    wait: str | None = None,
    quantile: float | None = None,
    backlog: str | None = None,
    levels: Sequence[tuple[int, int]] | None = None,
    runs: int = RUNS,
    seed: int = 1,
    jobs: int | None = None,
    most_events: int = MOST_EVENTS,
    progress: Callable[[int, int], None] | None = None,
    waiting: Callable[[float], None] | None = None,
    cancel: _engine.Cancel | None = None,
) -> Rare:
    """Estimate the probability of a rare event at a link by splitting (RESTART), or a far quantile of waits.

    Runs are copied where the backlog of the link's queue rises to a level, and the copies go on with other
    random numbers; what happens in them counts with a weight, so that estimates stay unbiased. See
    docs/rare-events.md.

    Args:
        scenario: See `ScenarioSource`.
        link: The link; by default the only one with a queue.
        class_name: The class of packets at the link that the event is about, and whose backlog is split; by
            default all packets.
        wait: The event is that a packet waits longer than this, such as `20ms`. By default it is that the
            queue drops a packet.
        quantile: In place of an event, this quantile of waits, such as 0.9999.
        backlog: Levels are in `packets` or `bytes`; by default in packets for losses, else in bytes.
        levels: The least backlog of each level, and how many trials go on where a run rises to it; by default
            a pilot finds both, by runs of its own.
        runs: Independent runs, for the interval.
        seed: First seed; runs use `seed`, `seed + 1`, …
        jobs: Runs at once; as many as there are cores if not given.
        most_events: A run that takes more events than this is given up.
        progress: Called with (finished, all) on the calling thread after every run.
        waiting: Called on the calling thread many times a second with what is under way, in whole runs.
        cancel: Set it from another thread to stop; `perhop._engine.Cancelled` is then raised.

    Raises:
        ScenarioError: The scenario is wrong; the message names the place and the key.
        PerhopError: An argument is out of range or does not fit the scenario, the event is impossible by
            `perhop bound`, the traffic has no randomness, or a run takes too many events.
        perhop._engine.Cancelled: `cancel` was set.
    """
    event = event_of(wait, quantile)
    numbers = seeds(seed, runs)
    at_once = workers(jobs)
    given = None if levels is None else [(int(start), int(trials)) for start, trials in levels]
    if given is not None:
        check_levels(given)
    arguments.whole("most_events", most_events, 1)
    unit = backlog or ("packets" if event.kind == "loss" else "bytes")
    arguments.one_of("backlog", unit, UNITS)
    checked = read(scenario)
    checked.warn()
    flag = cancel if cancel is not None else _engine.Cancel()
    text, _ = warming.settled(checked.text, jobs=jobs, cancel=flag)
    place = chosen(text, link)
    queue = (place, class_name, unit)
    _refuse_the_impossible(text, queue, event, given or [])
    pilot: dict[str, Any] | None = None
    if given is None:
        goal = ("share", 1 - event.level) if event.kind == "quantile" else _what(event)
        (found,) = parallel_map(
            lambda _: _engine.split_pilot(text, seed, queue, goal, min(most_events, PILOT_EVENTS), flag),
            [None],
            jobs=1,
            cancel=flag,
        )
        pilot = json.loads(found)
        _refuse(pilot["ending"], place)
        given = [(level["from"], level["trials"]) for level in pilot["levels"]]
    split, done = given, 0

    def finished(_place: int, _counts: str) -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, len(numbers))

    at_once, expected = memory.fitting(text, len(numbers), jobs, at_once)
    counts = parallel_map(
        lambda number: _engine.split_run(text, number, queue, _what(event), split, most_events, flag),
        numbers,
        jobs=at_once,
        cancel=flag,
        finished=finished,
        waiting=waiting,
        expected=expected,
    )
    files = _files(scenario)
    name = files[0].stem if files else ""
    return Rare(
        text, place, class_name, event, unit, given, pilot, numbers, [json.loads(one) for one in counts], name
    )


def event_of(wait: str | None, quantile: float | None) -> Event:
    """The event that the arguments name.

    Raises:
        ArgumentError: Both are given, or one of them cannot be.
    """
    if wait is not None and quantile is not None:
        raise ArgumentError("quantile", "and `wait` are two questions; give one of them")
    if quantile is not None:
        level = arguments.finite("quantile", quantile)
        if not 0.5 <= level < 1:
            raise ArgumentError(
                "quantile", f"must be at least 0.5 and below 1, such as 0.9999, not {level:g}"
            )
        return Event("quantile", percentile(level), level=level)
    if wait is None:
        return Event("loss", "loss")
    try:
        wait_ns = _engine.duration_ns(arguments.text("wait", wait))
    except _engine.ScenarioError as error:
        raise ArgumentError("wait", str(error)) from None
    return Event("wait", f"wait over {wait}", wait_ns=wait_ns)


def check_levels(levels: Sequence[tuple[int, int]]) -> None:
    """Refuse levels that cannot be.

    Raises:
        ArgumentError: They do not rise, or have no trial.
    """
    starts = [start for start, _ in levels]
    if any(start < 1 for start in starts) or starts != sorted(set(starts)):
        raise ArgumentError("levels", "must rise from 1 on, such as 5 and 10")
    if any(not 1 <= trials <= 1000 for _, trials in levels):
        raise ArgumentError("levels", "must each have 1 to 1000 trials")


def chosen(text: str, link: str | None) -> str:
    """The link that is asked for, by default the only one with a queue.

    Raises:
        PerhopError: The scenario has none with a queue, several, or not this one.
    """
    names = _engine.Stepper(text, 0, "reference").link_names()
    if link is not None:
        if link in names:
            return link
        raise PerhopError(f"link `{link}` has no queue; there are: {', '.join(names) or 'none'}")
    forward = [name for name in names if not name.endswith(REVERSE)]
    if len(forward) == 1:
        return forward[0]
    if not names:
        raise PerhopError("no link of the scenario has a queue, so none can lose or delay a packet there")
    raise PerhopError(f"which link? Several have a queue: {', '.join(forward or names)}; name one of them")


def _refuse_the_impossible(
    text: str, queue: tuple[str, str | None, str], event: Event, levels: Sequence[tuple[int, int]]
) -> None:
    """Refuse an event, or a level in bytes, that network calculus excludes; no run would ever come to it.

    Raises:
        PerhopError: It is excluded.
    """
    link, class_name, unit = queue
    known = {one["name"]: one for one in deriving.beside_runs(text).content["links"]}
    if link not in known:
        return
    classes = {one["name"]: one for one in known[link]["classes"]}
    found = known[link] if class_name is None else classes.get(class_name, known[link])
    if event.kind == "loss" and found["loss"]["excluded"]:
        raise PerhopError(f"the queue of link `{link}` cannot lose a packet, as `perhop bound` derives")
    longest_s = found["delay"].get("at_most_s", math.inf)
    if event.kind == "wait" and event.wait_ns >= 1e9 * longest_s:
        raise ArgumentError(
            "wait",
            f"must be below {exact(1e3 * longest_s)} ms: no packet can wait longer at link `{link}`, as "
            "`perhop bound` derives",
        )
    most = found["backlog"].get("at_most_bytes", math.inf)
    if unit == "bytes" and levels and levels[-1][0] > most:
        raise ArgumentError(
            "levels",
            f"must be at most {exact(most)} bytes: no more can wait at link `{link}`, as `perhop bound` "
            "derives",
        )


def _what(event: Event) -> tuple[str, float]:
    return ("wait", float(event.wait_ns)) if event.kind == "wait" else ("loss", 0.0)


def _refuse(ending: str, link: str) -> None:
    """Refuse a scenario in which there is nothing to split.

    Raises:
        PerhopError: The pilot found so.
    """
    if ending == "unvaried":
        raise PerhopError(UNVARIED)
    if ending == "empty":
        raise PerhopError(f"no packet waits at link `{link}` after the warm-up, so there is nothing to split")
