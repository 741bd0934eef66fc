"""Parameters of blocks in Python: their types, and how a scenario's keys become values.

>>> Duration("1.5ms") + 0
1500000
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, fields
from math import isfinite
from typing import (
    Any,
    ClassVar,
    Literal,
    Self,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from perhop import _engine
from perhop._engine import Depth
from perhop.errors import PerhopError

RESERVED = ("aqm", "class", "control", "marker", "model", "source")
"""Keys that every table of a class may have; a role adds those that the class itself says."""


class _Whole(int):
    """A whole number that is written as text with a unit."""

    KIND: ClassVar[str]
    UNIT: ClassVar[str]

    def __new__(cls, value: str | int) -> Self:
        return super().__new__(cls, _engine.quantity(cls.KIND, value)[0] if isinstance(value, str) else value)

    def __str__(self) -> str:
        return str(_engine.quantity(self.KIND, f"{int(self)}{self.UNIT}")[1])

    def __repr__(self) -> str:
        return f'{type(self).__name__}("{self}")'


class Duration(_Whole):
    """A time: `20ms` in scenarios, whole nanoseconds in a block."""

    KIND, UNIT = "duration", "ns"


class Bitrate(_Whole):
    """A rate: `20Mbps` in scenarios, bit/s in a block."""

    KIND, UNIT = "rate", "bps"


class Bytes(_Whole):
    """A size: `40kB` in scenarios, bytes in a block."""

    KIND, UNIT = "size", "B"


class Probability(float):
    """A number from 0 to 1."""

    KIND: ClassVar[str] = "probability"

    def __new__(cls, value: float) -> Self:
        """Check a number.

        Raises:
            TypeError, ValueError: It is none, or not from 0 to 1.
        """
        return super().__new__(cls, _engine.quantity("probability", value)[0])


KINDS: dict[Any, str] = {
    Duration: "duration",
    Bitrate: "rate",
    Bytes: "size",
    Probability: "probability",
    Depth: "depth",
}
TYPES: dict[Any, str] = {
    Duration: "duration, such as `48ms`",
    Bitrate: "bitrate, such as `20Mbps`",
    Bytes: "bytes, such as `40kB`",
    Probability: "number from 0 to 1",
    Depth: "depth, such as `868p`",
    int: "integer",
    float: "number",
    bool: "boolean",
    str: "string",
}
_FORMS = "Depth, Duration, Bitrate, Bytes, Probability, int, float, bool, str, Literal[…], each also `| None`"


class ParameterError(PerhopError):
    """A parameter of a class is wrong.

    Attributes:
        key: The parameter's key; empty for the class itself.
        text: What is wrong, and what would be right.
    """

    def __init__(self, key: str, text: str) -> None:
        super().__init__(f"`{key}`: {text}" if key else text)
        self.key, self.text = key, text


def path_of(cls: type) -> str:
    """Return the name of a class in a scenario: `module:Class`."""
    return f"{cls.__module__}:{cls.__qualname__}"


def key_of(attribute: str) -> str:
    """The key of a scenario for an attribute of a class."""
    return attribute.rstrip("_").replace("_", "-")


def unknown(path: str, key: str, known: Mapping[str, str]) -> ParameterError:
    """A key that a class does not have."""
    listed = ", ".join(known) or "none"
    return ParameterError(key, f"unknown key `{key}` of {path} (valid keys: {listed})")


def read(cls: type, given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters as a block has them, and as a scenario writes them, defaults filled in."""
    hints, names = hints_of(cls), {field.name: field for field in fields(cls)}
    for name in given:
        if name not in names:
            raise unknown(path_of(cls), name, {key_of(known): known for known in names})
    values, table = {}, {}
    for name, field in names.items():
        if name in given:
            value = given[name]
        elif field.default is not MISSING:
            value = field.default
        elif field.default_factory is not MISSING:
            value = field.default_factory()
        else:
            raise ParameterError("", f"key `{key_of(name)}` of {path_of(cls)} is missing")
        try:
            values[name], written = value_of(hints[name], value)
        except (TypeError, ValueError) as error:
            default = "" if name in given else f"the default in {path_of(cls)}: "
            raise ParameterError(key_of(name), f"{default}{error}") from None
        if written is not None:
            table[key_of(name)] = written
    return values, table


def hints_of(cls: type) -> dict[str, Any]:
    """The types of the parameters.

    Raises:
        ParameterError: One has a type that scenarios cannot write, or a name that they use otherwise.
    """
    try:
        hints = get_type_hints(cls)
    except (NameError, TypeError) as error:
        raise ParameterError("", f"{path_of(cls)}: types of parameters: {error}") from None
    for field in fields(cls):
        if key_of(field.name) in (*RESERVED, *getattr(cls, "SAYS", ())):
            raise ParameterError("", f"{path_of(cls)}: `{field.name}` is a key of every table; rename it")
        if not _is_readable(hints[field.name]):
            text = f"{path_of(cls)}: parameter `{field.name}` has the type {hints[field.name]}; take {_FORMS}"
            raise ParameterError("", text)
    return hints


def _is_readable(hint: Any) -> bool:  # noqa: ANN401 - an annotation
    if get_origin(hint) in (Union, types.UnionType):
        return (
            all(one is type(None) or _is_readable(one) for one in get_args(hint)) and len(get_args(hint)) == 2
        )
    return hint in KINDS or hint in (int, float, bool, str) or get_origin(hint) is Literal


def value_of(hint: Any, value: Any) -> tuple[Any, Any]:  # noqa: ANN401 - an annotation, and what is there
    """A parameter as a block has it, and as a scenario writes it."""
    if get_origin(hint) in (Union, types.UnionType):
        if value is None:
            return None, None
        hint = next(one for one in get_args(hint) if one is not type(None))
    if hint in KINDS:
        return _engine.quantity(KINDS[hint], str(value) if isinstance(value, _Whole | Depth) else value)
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            raise ValueError(f"expected one of {', '.join(map(repr, get_args(hint)))}, not {value!r}")
        return value, value
    if hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        if not isfinite(value):
            raise ValueError(f"expected a finite number, not {value}")
        return float(value), float(value)
    if isinstance(value, hint) and not (hint is int and isinstance(value, bool)):
        return value, value
    words: dict[TypeAlias, str] = {
        int: "a whole number",
        float: "a number",
        bool: "true or false",
        str: "text",
    }
    raise TypeError(f"expected {words[hint]}, not {value!r}")


def type_name(hint: Any) -> str:  # noqa: ANN401 - an annotation
    """Return the type of a parameter as tables of blocks show it."""
    if get_origin(hint) in (Union, types.UnionType):
        return next(type_name(one) for one in get_args(hint) if one is not type(None))
    if get_origin(hint) is Literal:
        return " or ".join(f"`{word}`" for word in get_args(hint))
    return TYPES[hint]
