"""The keys of sweeps, searches and plans: each with its default and bounds, as reader and as JSON Schema.

A reader asks its table for values, and `perhop schema` prints the same table: the two cannot disagree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from perhop.errors import PerhopError
from perhop.scenario import document, ranges

Schema = dict[str, Any]
PLAIN: Schema = {"type": ["string", "number", "boolean"]}
"""A plain value."""
FRACTION: Schema = {
    "anyOf": [
        {"type": "string", "pattern": f"^{document.FRACTION}$"},
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    ]
}


RANGE: Schema = {"type": "string", "pattern": f"^{ranges.RANGE}$"}
COLUMN: Schema = {
    "anyOf": [
        {"type": "array", "items": PLAIN, "minItems": 1, "uniqueItems": True},
        {"type": "object", "minProperties": 1},
    ]
}
"""A factor's values: a list of plain ones, or a table of named ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key of a table.

    Attributes:
        says: What it means, for editors.
        required: Whether it must be there.
    """

    says: str
    required: bool = False

    def _schema(self) -> Schema:
        raise NotImplementedError

    def schema(self) -> Schema:
        """The JSON Schema of the key."""
        return {"description": self.says, **self._schema()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole(Key):
    """A whole number.

    Attributes:
        default: None where it depends on other things, which `says` names.
    """

    default: int | None
    least: int = 1
    most: int | None = None

    def read(self, data: Mapping[str, Any], key: str, where: str, *, default: int | None = None) -> int:
        """The number; `default`: in place of the table's.

        Raises:
            PerhopError: It is none, too small or too large.
        """
        own = self.default if default is None else default
        if own is None and key not in data:
            raise ValueError(f"`{key}` has no default here")
        return document.whole(
            data, key, self.least if own is None else own, where, least=self.least, most=self.most
        )

    def _schema(self) -> Schema:
        most = {} if self.most is None else {"maximum": self.most}
        given = {} if self.default is None else {"default": self.default}
        return {"type": "integer", "minimum": self.least, **most, **given}


@dataclass(frozen=True, slots=True, kw_only=True)
class Text(Key):
    """A piece of text, perhaps one of some."""

    default: str = ""
    choices: tuple[str, ...] = ()

    def read(self, data: Mapping[str, Any], key: str, where: str) -> str:
        """The text.

        Raises:
            PerhopError: It is something else.
        """
        found = document.text(data, key, self.default, where)
        if self.choices and found not in self.choices:
            listed = ", ".join(self.choices)
            raise PerhopError(f"{where}: `{key}` must be one of {listed}, not {found!r}")
        return found

    def maybe(self, data: Mapping[str, Any], key: str, where: str) -> str | None:
        """The text, if there is one.

        Raises:
            PerhopError: It is something else.
        """
        return self.read(data, key, where) if key in data else None

    def _schema(self) -> Schema:
        known = {"enum": list(self.choices)} if self.choices else {"type": "string"}
        return {**known, **({"default": self.default} if self.default else {})}


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts(Key):
    """A list of texts, so many at least."""

    default: Sequence[str] = ()
    least: int = 1
    example: str = "utilization"
    pattern: str = ""
    """The regular expression that each text matches."""

    def read(
        self, data: Mapping[str, Any], key: str, where: str, *, default: Sequence[str] | None = None
    ) -> tuple[str, ...]:
        """The texts.

        Raises:
            PerhopError: They are something else.
        """
        own = self.default if default is None else default
        return document.texts(data, key, own, where, least=self.least, example=self.example)

    def _schema(self) -> Schema:
        item = {"type": "string", **({"pattern": self.pattern} if self.pattern else {})}
        given = {"default": list(self.default)} if self.default else {}
        return {"type": "array", "items": item, "minItems": self.least, **given}


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag(Key):
    """True or false, which is the default."""

    def read(self, data: Mapping[str, Any], key: str, where: str) -> bool:
        """Whether it is true.

        Raises:
            PerhopError: It is neither.
        """
        found = data.get(key, False)
        if not isinstance(found, bool):
            raise PerhopError(f"{where}: `{key}` must be true or false, not {found!r}")
        return found

    def _schema(self) -> Schema:
        return {"type": "boolean", "default": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Multiple(Key):
    """A multiple of today's demand."""

    above: float
    most: float
    default: float | None = None
    example: str = "1.5"

    def read(self, found: object, name: str, where: str) -> float:
        """The number.

        Raises:
            PerhopError: It is none, or outside of its bounds.
        """
        if (
            isinstance(found, bool)
            or not isinstance(found, int | float)
            or not self.above < found <= self.most
        ):
            raise PerhopError(
                f"{where}: `{name}` must be a multiple of today's demand, such as {self.example}, up to "
                f"{self.most:g}, not {found!r}"
            )
        return float(found)

    def _schema(self) -> Schema:
        given = {} if self.default is None else {"default": self.default}
        return {"type": "number", "exclusiveMinimum": self.above, "maximum": self.most, **given}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fraction(Key):
    """A fraction, as `"2%"` or `0.02`."""

    default: float | None = None

    def read(self, data: Mapping[str, Any], key: str, where: str) -> float:
        """The fraction.

        Raises:
            PerhopError: It is none.
        """
        return document.fraction(data.get(key, self.default), f"{where}: `{key}`")

    def _schema(self) -> Schema:
        return {**FRACTION, **({} if self.default is None else {"default": self.default})}


@dataclass(frozen=True, slots=True, kw_only=True)
class Table(Key):
    """A table with keys of its own.

    Attributes:
        keys: Those that it knows.
        others: What all others are like; None: there are no others.
        least: So many keys at least, if the table is there.
        short: What may stand in place of the table.
        empty: Whether a table without keys counts as none, so that required keys may lack.
    """

    keys: Mapping[str, Key] = field(default_factory=dict)
    others: Schema | None = None
    least: int = 0
    short: Schema | None = None
    empty: bool = False

    def read(self, data: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
        """The table; an empty one where there is none.

        Raises:
            PerhopError: Something else is there.
        """
        return document.table(data, key, where)

    def check(self, table: Mapping[str, Any], where: str) -> None:
        """Refuse keys that mean nothing.

        Raises:
            PerhopError: There is one.
        """
        document.known_keys(table, tuple(self.keys), where)

    def _schema(self) -> Schema:
        own = object_of(self.keys, others=self.others)
        if self.least:
            own["minProperties"] = self.least
        if self.empty:
            own = {"anyOf": [{"type": "object", "maxProperties": 0}, own]}
        return own if self.short is None else {"anyOf": [self.short, own]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Other(Key):
    """A key that its reader takes by itself."""

    like: Schema

    def _schema(self) -> Schema:
        return self.like


def object_of(keys: Mapping[str, Key], *, others: Schema | None = None) -> Schema:
    """The JSON Schema of a table with these keys."""
    result: Schema = {
        "type": "object",
        "properties": {name: key.schema() for name, key in keys.items()},
        "additionalProperties": False if others is None else others,
    }
    needed = [name for name, key in keys.items() if key.required]
    return {**result, "required": needed} if needed else result


def whole_schema(title: str, keys: Mapping[str, Key], more: Schema | None = None) -> Schema:
    """The JSON Schema (2020-12) of a file."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title}
    return {**head, **object_of(keys), **(more or {})}
