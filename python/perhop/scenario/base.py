"""The base of the builder classes of `perhop.scenario`: a table of a scenario, as plain data."""

from __future__ import annotations

import difflib
import importlib
import inspect
import json
import keyword
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from pathlib import PurePath
from typing import Any, ClassVar

from perhop.errors import PerhopError


class _Checked(type):
    """Tables whose wrong keywords get the hint that wrong keys of a file get."""

    def __call__(cls, *values: object, **keys: object) -> Any:  # noqa: ANN401 - an object of the class
        """Make a table.

        Raises:
            TypeError: A keyword is none of the table's, a value has none, or a key is missing.
        """
        known = [field.name for field in fields(cls)]  # type: ignore[arg-type] # a table is a dataclass
        unknown = next((key for key in keys if key not in known), None)
        if unknown is not None:
            near = difflib.get_close_matches(unknown, known, n=1, cutoff=0.6)
            hint = f"did you mean `{near[0]}`?" if near else f"it has: {', '.join(known) or 'none'}"
            raise TypeError(f"{cls.__name__} has no `{unknown}`; {hint}")
        if values:
            example = f", such as {known[0]}=…" if known else ""
            raise TypeError(f"{cls.__name__}: write its keys by name{example}")
        missing = [f"`{one.name}`" for one in fields(cls) if one.name not in keys and _is_required(one)]  # type: ignore[arg-type]
        if missing:
            *first, last = missing
            listed = f"keys {', '.join(first)} and {last} are" if first else f"key {last} is"
            raise TypeError(f"{cls.__name__}: {listed} missing")
        return super().__call__(**keys)

    @property
    def __signature__(cls) -> inspect.Signature:
        """The keys of the table with their defaults; None means the engine's default, which `help` names."""
        _, *keys = inspect.signature(vars(cls)["__init__"]).parameters.values()
        return inspect.Signature(keys, return_annotation=cls.__name__)


def _is_required(one: Field[Any]) -> bool:
    return one.default is MISSING and one.default_factory is MISSING


@dataclass(frozen=True, kw_only=True, repr=False)
class Table(metaclass=_Checked):
    """One table of a scenario."""

    TAG: ClassVar[tuple[str, str] | None] = None
    """The key and name by which a scenario chooses among alternatives, such as `aqm = "rio"`."""

    def __dir__(self) -> list[str]:
        """Return the names that complete it: those in capitals describe its class."""
        return [name for name in super().__dir__() if not name.isupper()]

    def to_dict(self) -> dict[str, Any]:
        """The table as a scenario's plain data: what is left open is left out."""
        return self._plain("")

    def _plain(self, place: str) -> dict[str, Any]:
        values = {_key(field.name): getattr(self, field.name) for field in fields(self)}
        table = {key: plain(value, _join(place, key)) for key, value in values.items() if value is not None}
        return dict([self.TAG], **table) if self.TAG else table

    def to_json(self) -> str:
        """The table as JSON text, which `perhop run` and the engine read."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    def __repr__(self) -> str:
        """Return the table as it is written: what is left open is left out."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        shown = ", ".join(f"{name}={value!r}" for name, value in values.items() if value is not None)
        return f"{type(self).__name__}({shown})"

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: the keys; of a scenario its network, links and flows."""
        # It reads scenarios, whose tables these are.
        return str(importlib.import_module("perhop.runs.notebook").of_table(self))


class PythonBlock:
    """An object of a class in Python, which can stand where a table can."""

    def to_dict(self) -> dict[str, Any]:
        """The table of a scenario with this block."""
        raise NotImplementedError


class PythonAqm(PythonBlock):
    """An object of a subclass of `perhop.Aqm`: an AQM in Python."""


class PythonMeter(PythonBlock):
    """An object of a subclass of `perhop.Meter`: a meter in Python."""


class PythonCongestionControl(PythonBlock):
    """An object of a subclass of `perhop.CongestionControl`: a congestion control in Python."""


class PythonApplication(PythonBlock):
    """An object of a subclass of `perhop.Application`: users in Python."""


def attribute(key: str) -> str:
    """Return a scenario's key as a Python name, such as `from_` for `from`."""
    name = key.replace("-", "_")
    return f"{name}_" if keyword.iskeyword(name) else name


def _key(name: str) -> str:
    return name.rstrip("_").replace("_", "-")


def _join(place: str, key: object) -> str:
    return f"{place}.{key}" if place else str(key)


def plain(value: Any, place: str = "") -> Any:  # noqa: ANN401 - whatever JSON has a word for, and more
    """Tables as dicts; numbers and arrays of numpy, and paths, as what JSON has for them.

    Args:
        value: A scenario, or the value at `place` in one.
        place: The key's path, for messages.

    Raises:
        PerhopError: A class is where a table belongs.
    """
    if isinstance(value, Table):
        return value._plain(place)  # noqa: SLF001 - the other half of this function
    if isinstance(value, Mapping):
        return {key: plain(inner, _join(place, key)) for key, inner in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [plain(inner, f"{place}[{index}]") for index, inner in enumerate(value)]
    if isinstance(value, type) and issubclass(value, Table | PythonBlock):
        where = f"{place}: " if place else ""
        raise PerhopError(
            f"scenario: {where}{value.__name__} is a class; write {value.__name__}(…) with its parameters"
        )
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, PythonBlock):
        return value.to_dict()
    # Numpy need not be loaded to know its numbers.
    return plain(value.tolist()) if type(value).__module__ == "numpy" and hasattr(value, "tolist") else value
