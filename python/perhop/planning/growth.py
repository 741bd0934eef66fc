"""How far a demand can grow before the first objective breaks: levels of a demand, and a bracketed search.

The search looks at a few levels, each on the same seeds. It answers with a bracket: the highest level up to
which every objective holds, and the lowest at which one breaks. Between them the runs cannot tell, or the
level was not looked at. It takes for granted that what breaks at a level breaks at all higher ones.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from perhop.errors import PerhopError
from perhop.plurals import counted
from perhop.scenario.paths import Keys, put
from perhop.scenario.quantities import NUMBER, UNIT, canonical
from perhop.scenario.ranges import COUNTED, plain

State: TypeAlias = "bool | None"
"""Of all objectives together: they hold, one breaks, or the runs cannot tell."""

_QUANTITY = re.compile(rf"\s*({NUMBER})\s*({UNIT})\s*")
TOGETHER = "all together"
"""The name of the demand that is all others, growing by the same factor."""
Groups: TypeAlias = "Mapping[str, Mapping[str, Any]]"
"""Groups of flows by name."""
_ARRIVALS = ("load", "rate", "every")


@dataclass(frozen=True, slots=True)
class Target:
    """A number of the scenario that grows.

    Attributes:
        path: Its place in the scenario.
        value: Today's number.
        unit: What is written behind it.
        whole: It is a count.
        inverse: It is a time between arrivals, which becomes shorter.
        noun: What it counts, for tables, in the singular.
    """

    path: str
    value: float
    unit: str
    whole: bool
    inverse: bool = False
    noun: str = ""

    def text(self, multiple: float) -> str | int | float:
        """The value at a multiple of today's demand, as a scenario has it."""
        number = self.value / multiple if self.inverse else self.value * multiple
        if self.whole:
            number = math.floor(number + 0.5)
        if self.unit:
            return f"{plain(number)}{self.unit}"
        return int(number) if self.whole else float(plain(number))

    def shown(self, multiple: float) -> str:
        """The value at a multiple, for tables: `12 users`, `3Mbps`."""
        value = self.text(multiple)
        if isinstance(value, int) and self.noun:
            return counted(value, self.noun)
        return f"{value} {self.noun}".rstrip()


@dataclass(frozen=True, slots=True)
class Demand:
    """What grows: the users of a group, its arrivals, a rate, or several at once.

    Attributes:
        name: As the plan has it.
        levels: The multiples of today's demand that a search may look at, the first of which is 1.
    """

    name: str
    targets: tuple[Target, ...]
    levels: tuple[float, ...]

    def at(self, multiple: float) -> dict[str, str | int | float]:
        """The values at a multiple, by path."""
        return {target.path: target.text(multiple) for target in self.targets}

    def shown(self, multiple: float) -> str:
        """What it is at a multiple, for tables."""
        return self.targets[0].shown(multiple) if len(self.targets) == 1 else f"{100 * multiple:.0f} %"


@dataclass(frozen=True, slots=True)
class Levels:
    """What multiples of today's demand a search may look at.

    Attributes:
        most: The largest.
        precision: The step between two of them, over the lower.
    """

    most: float
    precision: float

    def of(self, targets: Sequence[Target]) -> tuple[float, ...]:
        """Return the levels from 1 on; of a single count those that are whole."""
        if len(targets) == 1 and targets[0].whole:
            return tuple(self._counts(targets[0].value))
        return tuple(self._multiples(targets))

    def _counts(self, today: float) -> Iterator[float]:
        number = int(today)
        while number <= self.most * today:
            yield number / today
            number = max(number + 1, round(number * (1 + self.precision)))

    def _multiples(self, targets: Sequence[Target]) -> Iterator[float]:
        steps = math.ceil(math.log(self.most) / math.log(1 + self.precision))
        before = None
        for step in range(steps + 1):
            level = self.most ** (step / steps)
            values = [target.text(level) for target in targets]
            if values != before:
                yield level
            before = values


def demand_of(
    scenario: Mapping[str, Any],
    names: Sequence[str],
    name: str,
    levels: Levels,
    where: str,
    *,
    groups: Groups | None = None,
) -> Demand:
    """The demand of these groups of flows or paths, which grow by the same factor.

    Args:
        scenario: Plain data.
        names: Groups of flows, or paths to numbers.
        name: What it is called.
        levels: What multiples to look at.
        where: For messages.
        groups: The scenario's groups, as `groups_of` returns them, where many demands are of one scenario.

    Raises:
        PerhopError: One of them cannot grow.
    """
    groups = groups_of(scenario) if groups is None else groups
    targets = tuple(_target(scenario, groups, one, where) for one in names)
    return Demand(name, targets, levels.of(targets))


def default_demands(scenario: Mapping[str, Any]) -> list[str]:
    """The groups of flows that can grow, which are those that no trace or list gives."""
    return [
        group["name"]
        for group in scenario.get("flows", ())
        if "replay" not in group and ("arrivals" not in group or _arrivals(group["arrivals"]) is not None)
    ]


def _arrivals(arrivals: object) -> str | None:
    """The key by which arrivals grow."""
    return next((key for key in _ARRIVALS if isinstance(arrivals, Mapping) and key in arrivals), None)


def groups_of(scenario: Mapping[str, Any]) -> Groups:
    """The groups of flows of a scenario, by name."""
    return {group["name"]: group for group in scenario.get("flows", ()) if "name" in group}


def _target(scenario: Mapping[str, Any], groups: Groups, name: str, where: str) -> Target:
    group = groups.get(name)
    if group is None:
        return _number(scenario, name, where)
    if "replay" in group:
        raise PerhopError(f"{where}: `{name}` sends a capture again, which cannot grow; leave it out")
    if "arrivals" in group:
        key = _arrivals(group["arrivals"])
        if key is None:
            raise PerhopError(
                f"{where}: the arrivals of `{name}` are a list or a trace, which cannot grow; leave it out"
            )
        found = _number(scenario, f"flows.{name}.arrivals.{key}", where)
        noun = "load" if key == "load" else ""
        return replace(found, whole=False, inverse=key == "every", noun=noun)
    noun = "user" if "application" in group else "flow"
    return Target(f"flows.{name}.count", float(group.get("count", 1)), "", whole=True, noun=noun)


def _number(scenario: Mapping[str, Any], path: str, where: str) -> Target:
    """The number at a path."""
    place = f"{where}: `{path}`"
    value = _read(scenario, put(deepcopy(dict(scenario)), path, None, place))
    if isinstance(value, str) and (found := _QUANTITY.fullmatch(value)):
        number, unit = float(found[1]), canonical(found[2])
    elif isinstance(value, int | float) and not isinstance(value, bool):
        number, unit = float(value), ""
    else:
        said = "nothing" if value is None else f"{value!r}"
        raise PerhopError(
            f"{place}: {said} is there; give the name of a group of flows, or the path of "
            "a number such as `flows.backup.transport.rate`"
        )
    if number <= 0:
        raise PerhopError(f"{place}: {value!r} cannot grow by a factor")
    whole = unit in COUNTED or (isinstance(value, int) and not unit)
    return Target(path, number, unit, whole=whole)


def _read(scenario: Mapping[str, Any], keys: Keys) -> Any:  # noqa: ANN401 - whatever is there
    found: Any = scenario
    for key in keys:
        if isinstance(found, str) or (isinstance(found, Mapping) and key not in found):
            return None
        found = found[key]
    return found


def grown(scenario: str, values: Mapping[str, str | int | float], where: str) -> str:
    """A scenario as JSON with these values in place.

    Raises:
        PerhopError: A path names nothing.
    """
    data = json.loads(scenario)
    for path, value in values.items():
        put(data, path, value, f"{where}: `{path}`")
    return json.dumps(data)


@dataclass(frozen=True, slots=True)
class Bracket:
    """The place where the first objective breaks, as indices of levels.

    Attributes:
        holds: The highest level up to which, as far as was looked, every objective holds.
        breaks: The lowest level at which one breaks; None where none does up to the highest level.
    """

    holds: int
    breaks: int | None


def bracket(last: int) -> Generator[int, State, Bracket]:
    """Search levels 0 to `last`, where all objectives hold at level 0.

    Yields:
        A level to look at; it is sent whether all objectives hold there, one breaks, or none can be decided.

    Returns:
        The bracket.
    """
    known: dict[int, State] = {0: True}
    at = 0
    while known[at] is not False and at < last:
        at = min(last, 2 * at or 1)
        known[at] = yield at
    holds = yield from _edge(known, lambda state: state is True)
    broken = yield from _edge(known, lambda state: state is not False)
    return Bracket(holds, None if known.get(broken + 1, True) is not False else broken + 1)


def _edge(known: dict[int, State], passes: Callable[[State], bool]) -> Generator[int, State, int]:
    """The last level before the first that does not pass, between levels that are known to and not to."""
    failed = [level for level, state in known.items() if not passes(state)]
    if not failed:
        return max(known)
    high = min(failed)
    low = max(level for level, state in known.items() if level < high and passes(state))
    while high - low > 1:
        middle = (low + high) // 2
        if middle not in known:
            known[middle] = yield middle
        low, high = (middle, high) if passes(known[middle]) else (low, middle)
    return low
