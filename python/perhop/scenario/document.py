"""The common parts of SWEEP.toml and TUNE.toml: checked keys, a scenario to start from, templates."""

from __future__ import annotations

import difflib
import json
import re
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perhop import _engine
from perhop.errors import ArgumentError, PerhopError
from perhop.files.inputs import SCENARIO_NEEDS, read_text, toml
from perhop.scenario.base import plain
from perhop.scenario.paths import Entries, Keys, is_of_a_control, put
from perhop.scenario.quantities import NUMBER
from perhop.scenario.ranges import Value, text_of

_NAMED_TABLES = frozenset({"links", "flows", "paths", "profiles"})
"""The tables of a scenario that hold others by name."""
MOST_ENTRIES = 1000
"""The most entries of a table: each is looked for in the scenario of every point."""
FRACTION = rf"\s*({NUMBER})\s*(%?)\s*"
"""A fraction as text."""
_FRACTION = re.compile(FRACTION)


@dataclass(frozen=True, slots=True)
class Base:
    """The scenario that a file varies, and what it sets in it for every point.

    Attributes:
        scenario: As JSON, valid by itself: reading it again is the fastest way to a copy.
        settings: Values by path; `{name}` in their text is replaced by a factor.
        origin: The file, for messages.
        folder: Where the files are that the scenario names.
    """

    scenario: str
    settings: Mapping[str, Any]
    origin: str
    folder: Path

    @property
    def variables(self) -> frozenset[str]:
        """Names that stand in braces in a setting; a factor of such a name is no path."""
        return frozenset(name for value in self.settings.values() for name in fields(value))

    def scenario_with(
        self, factors: Mapping[str, Value], values: Mapping[str, Any], label: str
    ) -> tuple[str, tuple[str, ...]]:
        """The canonical scenario in which each factor has its value, and what is to be said of it.

        Args:
            factors: How each factor reads, for templates.
            values: What each factor puts into the scenario; a table where its value is a named one.
            label: What names the point in messages.

        Raises:
            PerhopError, ScenarioError: The result is no scenario, or a path names nothing.
        """
        scenario: dict[str, Any] = json.loads(self.scenario)
        variables = self.variables
        puts = [(name, deepcopy(value), True) for name, value in values.items() if name not in variables]
        for path, value in self.settings.items():
            puts.append((path, _filled(value, values, factors, f"{self.origin}: [set] `{path}`"), False))
        # A link of a topology with a value of its own has the others of the topology as it is in the end, and
        # a parameter the congestion control.
        puts.sort(key=lambda one: (one[0].partition(".")[0] != "topology", is_of_a_control(one[0])))
        entries = Entries()
        # Every table that a factor lies in, and its own place.
        varied: dict[Keys, str] = {}
        for path, value, is_factor in puts:
            what = f"`{path}`" if is_factor else f"[set] `{path}`"
            keys = put(scenario, path, value, f"{self.origin}: {what}", self.folder, entries=entries)
            # Tables would then show a value that no run had.
            if keys in varied:
                raise PerhopError(
                    f"{self.origin}: {what} overwrites `{varied[keys]}`, which is varied; give one of them"
                )
            if is_factor:
                for length in range(1, len(keys) + 1):
                    varied.setdefault(keys[:length], path)
        origin = f"{self.origin}: {label}"
        text, notices = _engine.read_json(json.dumps(scenario), origin, folder=self.folder)
        return text, tuple(notice.removeprefix(f"{origin}: ") for notice in notices)


def read(source: Path | Mapping[str, Any], needs: str = SCENARIO_NEEDS) -> dict[str, Any]:
    """A TOML file as plain data, or data that has the same keys; `needs`: what an empty file lacks.

    Raises:
        PerhopError: It cannot be read, or it is no TOML.
    """
    if isinstance(source, Mapping):
        return dict(plain(source))
    return toml(read_text(source, needs), str(source))


def place_of(source: Path | Mapping[str, Any], kind: str) -> Path:
    """Return the file, for messages and for the names of other files; data has the name of its kind."""
    return Path(kind) if isinstance(source, Mapping) else source


def read_base(data: Mapping[str, Any], path: Path) -> Base:
    """The scenario that a file names or holds, checked, and its `[set]`.

    Raises:
        PerhopError, ScenarioError: There is none, or it is wrong by itself.
    """
    source = data.get("scenario")
    if isinstance(source, str):
        place = path.parent / source
        text = read_text(place)
        folder = place.parent
        _engine.read_toml(text, str(place), folder=folder)
        scenario = as_json(toml(text, str(place)), str(place))
    elif isinstance(source, Mapping):
        scenario, folder = as_json(source, f"{path}: [scenario]"), path.parent
        _engine.read_json(scenario, f"{path}: [scenario]", folder=folder)
    else:
        raise PerhopError(
            f'{path}: needs a `scenario`: the name of a scenario file, such as "first.toml", or a table'
        )
    settings = table(data, "set", str(path))
    as_json(settings, f"{path}: [set]")
    for name, value in settings.items():
        in_quotes(name, value, f"{path}: [set]")
    return Base(scenario, settings, str(path), folder)


def in_quotes(name: str, value: object, where: str) -> None:
    """Refuse a path that lacks its quotes: TOML reads it as tables within tables.

    Raises:
        PerhopError: It does.
    """
    if name in _NAMED_TABLES and isinstance(value, Mapping) and value:
        raise PerhopError(f'{where}: write a path in quotes, such as "{name}.{next(iter(value))}"')


def as_json(value: object, where: str) -> str:
    """Plain data as JSON text.

    Raises:
        PerhopError: It holds what JSON has no word for, such as a date or infinity.
    """
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise PerhopError(f"{where}: text, numbers, true and false only: {error}") from None


def known_keys(data: Mapping[str, Any], keys: Sequence[str], where: str) -> None:
    """Refuse keys that mean nothing.

    Raises:
        PerhopError: There is one.
    """
    for key in data:
        if key not in keys:
            near = difflib.get_close_matches(key, keys, n=1, cutoff=0.5)
            hint = f"did you mean `{near[0]}`?" if near else f"there are {', '.join(keys)}"
            raise PerhopError(f"{where}: unknown key `{key}`; {hint}")


def table(data: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    """A table; an empty one where there is none.

    Raises:
        PerhopError: Something else is there, or more entries than can be meant.
    """
    found: object = data.get(key, {})
    if not isinstance(found, Mapping):
        raise PerhopError(f"{where}: `{key}` must be a table, not {found!r}")
    if len(found) > MOST_ENTRIES:
        raise PerhopError(f"{where}: `{key}` has {len(found):,} entries; at most {MOST_ENTRIES:,} make sense")
    return found


def whole(
    data: Mapping[str, Any], key: str, default: int, where: str, *, least: int = 1, most: int | None = None
) -> int:
    """A whole number.

    Raises:
        PerhopError: It is none, too small or too large.
    """
    found = data.get(key, default)
    if isinstance(found, bool) or not isinstance(found, int) or found < least:
        raise PerhopError(f"{where}: `{key}` must be a whole number from {least}, not {found!r}")
    if most is not None and found > most:
        raise PerhopError(f"{where}: `{key}` must be at most {most:,}, not {found}")
    return found


def text(data: Mapping[str, Any], key: str, default: str, where: str) -> str:
    """A piece of text.

    Raises:
        PerhopError: It is something else.
    """
    found = data.get(key, default)
    if not isinstance(found, str):
        raise PerhopError(f"{where}: `{key}` must be text, not {found!r}")
    return found


def texts(
    data: Mapping[str, Any],
    key: str,
    default: Sequence[str],
    where: str,
    *,
    least: int = 1,
    example: str = "utilization",
) -> tuple[str, ...]:
    """A list of texts, so many at least; a message shows the example.

    Raises:
        PerhopError: It is something else.
    """
    found = data.get(key, list(default))
    if not isinstance(found, list) or len(found) < least or not all(isinstance(one, str) for one in found):
        raise PerhopError(f'{where}: `{key}` must be a list of text, such as ["{example}"], not {found!r}')
    return tuple(found)


def fraction(value: object, where: str | None) -> float:
    """A fraction, written as `"2%"` or `0.02`; `where` in a file, None for the argument `until`.

    Raises:
        PerhopError: It is none, or it lies outside of 0 and 1.
    """
    number: object = value
    if isinstance(value, str) and (found := _FRACTION.fullmatch(value)):
        number = float(found[1]) / (100 if found[2] else 1)
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 < number < 1:
        says = f'must be a fraction such as "2%", not {value!r}'
        raise ArgumentError("until", says) if where is None else PerhopError(f"{where} {says}")
    return float(number)


def is_value(value: object) -> bool:
    """Whether something is a plain value, and no list or table."""
    return isinstance(value, str | int | float | bool)


def fields(value: object) -> Iterator[str]:
    """The names in braces in a setting's text."""
    if isinstance(value, str):
        try:
            parsed = list(string.Formatter().parse(value))
        except ValueError:
            return
        yield from (name for _, name, _, _ in parsed if name)
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from fields(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from fields(inner)


def _filled(value: object, values: Mapping[str, Any], factors: Mapping[str, Value], where: str) -> object:
    """A setting with its names in braces replaced; a name alone gives the value itself, not its text."""
    if isinstance(value, Mapping):
        return {key: _filled(inner, values, factors, where) for key, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, values, factors, where) for inner in value]
    if not isinstance(value, str) or "{" not in value:
        return value
    if value.startswith("{") and value.endswith("}") and value[1:-1] in values:
        return values[value[1:-1]]
    for name in fields(value):
        if name not in factors:
            near: Iterable[str] = difflib.get_close_matches(name, factors, n=1, cutoff=0.4) or factors
            raise PerhopError(f"{where}: {value!r} asks for `{name}`; there is {', '.join(near)}")
    out = value
    for name in fields(value):
        out = out.replace("{" + name + "}", text_of(factors[name]))
    return out
