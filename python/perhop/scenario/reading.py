"""Read a scenario from a file, TOML text, plain data or a builder, and check it."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from perhop import _engine
from perhop.errors import PerhopError, PerhopWarning, ScenarioError
from perhop.files import inputs
from perhop.scenario import file_kinds
from perhop.scenario.base import plain


class ScenarioLike(Protocol):
    """A class of the builder: one that gives its JSON."""

    def to_json(self) -> str:
        """The scenario as JSON text."""
        ...


ScenarioSource: TypeAlias = "ScenarioLike | Mapping[str, Any] | Path | str"
"""A built scenario, the same as plain dicts and lists, the path of a TOML file, or TOML text.

Files that a scenario names are relative to its own file, without one to the working directory."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A scenario that has been read and can be run.

    Attributes:
        text: The scenario as canonical JSON, with every default filled in.
        notices: What in it cannot act, or acts otherwise than it seems: a sentence each, with its place.
    """

    text: str
    notices: tuple[str, ...]

    def warn(self) -> None:
        """Warn the caller of whoever calls this of each notice."""
        for notice in self.notices:
            warnings.warn(notice, PerhopWarning, stacklevel=3)


def canonical(scenario: ScenarioSource) -> str:
    """The scenario as canonical JSON, checked for simulation and with every default filled in; see `read`."""
    return read(scenario).text


def read(scenario: ScenarioSource, *, real_packets: bool = False) -> Checked:
    """Read and check a scenario that is to be simulated, or run on real packets.

    Args:
        scenario: See `ScenarioSource`.
        real_packets: It is to be run on real packets, where keys such as `ecn` can act that cannot otherwise.

    Raises:
        ScenarioError: It does not describe a network; the message names the place and the key.
        PerhopError: The file cannot be read, or this is no scenario at all.
    """
    try:
        parse, text, origin = _source(scenario)
    except RecursionError:
        raise PerhopError(
            "scenario: tables and lists lie too deep within each other, or in themselves"
        ) from None
    # A scenario without a file names others from the working directory.
    folder = Path() if origin == "scenario" else Path(origin).parent
    try:
        canonical_text, notices = parse(text, origin, real_packets=real_packets, folder=folder)
    except ScenarioError:
        data = None
        if parse is _engine.read_toml and origin != "scenario":
            with suppress(PerhopError):
                data = inputs.toml(text, origin)
            if data is not None:
                file_kinds.expect("scenario", data, Path(origin))
        raise
    return Checked(canonical_text, tuple(notices))


def _source(scenario: ScenarioSource) -> tuple[Callable[..., tuple[str, list[str]]], str, str]:
    """The reader of a scenario, its text, and the name of its file in messages.

    Raises:
        PerhopError: The file cannot be read, or this is no scenario at all.
    """
    if isinstance(scenario, str) and names_a_file(scenario):
        scenario = Path(scenario)
    if isinstance(scenario, Path):
        return _engine.read_toml, inputs.read_text(scenario), str(scenario)
    if isinstance(scenario, str):
        return _engine.read_toml, scenario, "scenario"
    if isinstance(scenario, Mapping):
        return _engine.read_json, _as_json(plain(scenario)), "scenario"
    if isinstance(scenario, type) or not hasattr(scenario, "to_json"):
        found = f"the class {scenario.__name__}" if isinstance(scenario, type) else type(scenario).__name__
        raise PerhopError(
            f"a scenario is a perhop.Scenario, a dict, the path of a TOML file, or TOML text, not {found}"
        )
    try:
        text = scenario.to_json()
    except TypeError as error:
        raise PerhopError(f"scenario: {error}") from None
    return _engine.read_json, _as_json(json.loads(text)), "scenario"


def _files(scenario: ScenarioSource) -> list[Path]:
    """The scenario's file, if it is one."""
    if isinstance(scenario, Path) or (isinstance(scenario, str) and names_a_file(scenario)):
        return [Path(scenario)]
    return []


def names_a_file(text: str) -> bool:
    """Return whether text is a file's name and not TOML: TOML of one line is no scenario."""
    if "\n" in text or not text.strip():
        return False
    try:
        return "=" not in text or text.endswith(".toml") or Path(text).is_file()
    except (OSError, ValueError):
        return False


def names_other_files(table: Mapping[str, Any], canonical_text: str) -> bool:
    """Return whether a scenario is another one without the folder of its file: it names other files.

    Args:
        table: The scenario as it is written.
        canonical_text: The same, read from its file.
    """
    try:
        return _engine.read_json(_as_json(table), "scenario", folder=None)[0] != canonical_text
    except ScenarioError:
        return True


def _as_json(scenario: Mapping[str, Any]) -> str:
    """Plain data as JSON text.

    Raises:
        PerhopError: It holds something that JSON has no word for, such as infinity.
    """
    strange = next(_not_finite(scenario, ""), None)
    if strange is not None:
        raise PerhopError(f"scenario: `{strange[0]}` must be a finite number, not {strange[1]}")
    try:
        return json.dumps(scenario, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise PerhopError(f"scenario: plain dicts, lists, strings and numbers only: {error}") from None


def _not_finite(value: object, place: str) -> Iterator[tuple[str, float]]:
    """Every infinity and NaN in plain data, with its place."""
    if isinstance(value, float) and not math.isfinite(value):
        yield place, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _not_finite(inner, f"{place}.{key}" if place else str(key))
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from _not_finite(inner, f"{place}[{index}]")
